/*
 * tunnel.h - purpose: join a client of the API to the runtime's streaming server, byte for byte.
 *
 * The client's request to change protocols is passed on, and so is the answer; what is spoken afterwards is between
 * those two. As a kubelet does.
 */
#pragma once
#include "common/base/error.h"
#include "kubelet-lite/local/api_i.h"

/* To be answered; the exchange is the tunnel's from now on. */
struct tunnel *tunnel_new(struct local_api *api, struct http_exchange *exchange, const char *method);
/* A stream_url_cb; data is the tunnel. */
void tunnel_connect(void *data, const char *url, const struct error *status);
/* Instead: the exchange is answered already. */
void tunnel_abandon(struct tunnel *t);
