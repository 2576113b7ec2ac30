/*
 * node_object.h - purpose: the Node object: capacity, addresses, labels, conditions. Written when something changes and
 * every five minutes.
 */
#pragma once
#include "kubelet-lite/worker/node_i.h"

/* Finds out addresses and capacity, fills node->host_ips (if empty), cpu, memory, storage and labels, and puts the
 * Node. */
struct node_object *node_object_start(struct node *node, const struct node_options *options);
void node_object_stop(struct node_object *object);
