/*
 * grpc_check.h - purpose: one call of grpc.health.v1.Health/Check, on a connection of its own, in clear text.
 */
#pragma once
#include "common/net/sock.h"

#include <uv.h>

struct grpc_check;

/* `serving`: the answer was SERVING. `text` says what else it was. Called once, never from inside grpc_check_start().
 */
typedef void (*grpc_check_cb)(void *data, bool serving, const char *text);
struct grpc_check *grpc_check_start(uv_loop_t *loop, const struct sock_address *address, const char *authority,
	const char *service, const char *user_agent, grpc_check_cb done, void *data);
/* No callback any more. */
void grpc_check_cancel(struct grpc_check *check);
