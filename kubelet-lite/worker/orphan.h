/*
 * orphan.h - purpose: pods that run but that no object wants: what they are, and whether they may be stopped.
 */
#pragma once
#include "kubelet-lite/worker/node_i.h"

/* A pod as far as its containers' labels and annotations tell: enough to stop it decently. */
struct pod *orphan_pod(const CRI(ListPodSandboxResponse) * sandboxes, const CRI(ListContainersResponse) * containers,
	const char *uid) MUST_USE;
/* Is its manifest still there, only broken at the moment? Then it is left alone: a typing mistake while we were down
 * must not stop a pod. */
bool orphan_held(const struct node *node, const struct pod *orphan);
