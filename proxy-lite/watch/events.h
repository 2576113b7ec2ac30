/*
 * events.h - purpose: tell users by an Event what of their objects is left out, and why.
 *
 * Best effort: an API that does not take events is left alone after its first refusal. Loop thread only.
 */
#pragma once
#include "common/net/http_client.h"

struct events;

/* client and node are borrowed. */
struct events *events_new(struct http_client *client, const char *node);
void events_free(struct events *events);
/* `object` is "Service ns/name" or "EndpointSlice ns/name"; others are ignored. */
void events_warn(struct events *events, const char *object, const char *text);
