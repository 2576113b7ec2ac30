/*
 * stream.h - purpose: ask the runtime for the URL of an exec, attach or port-forward, which a client is then joined to.
 */
#pragma once
#include "common/base/str.h"
#include "kubelet-lite/cri/client.h"

enum stream_kind { STREAM_EXEC, STREAM_ATTACH, STREAM_PORT_FORWARD };

enum { STREAM_PORTS_MAX = 100 };

struct stream_wanted {
	enum stream_kind kind;
	const char *ns, *pod;
	const char *container; /* EXEC, ATTACH */
	struct strv command;   /* EXEC */
	bool in, out, err, tty;
	int32_t ports[STREAM_PORTS_MAX]; /* PORT_FORWARD, for clients that name none on their way; may be none */
	size_t n_ports;
};

/* url: "http://127.0.0.1:34567/exec/..."; NULL: status tells why. Never called from inside cri_stream_url(). */
typedef void (*stream_url_cb)(void *data, const char *url, const struct error *status);
/* `id`: of the container, or of the sandbox. */
void cri_stream_url(
	struct cri_client *client, const struct stream_wanted *wanted, const char *id, stream_url_cb cb, void *data);
