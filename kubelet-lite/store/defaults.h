/*
 * defaults.h - purpose: the values that the Kubernetes API fills into objects where the user said nothing. Pure.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

/* Fills in; what is of a wrong type is left alone (validation names it). */
void defaults_apply(enum object_kind kind, json_t *tree);
/* "Always" for :latest or no tag, else "IfNotPresent". Static. */
const char *defaults_pull_policy(const char *image);
