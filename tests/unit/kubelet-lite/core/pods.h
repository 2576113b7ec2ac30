/*
 * pods.h - purpose: pods and what is seen of them, for tests, in short words.
 *
 * seen_make(): tokens, a container's ones begin with its index. Times are seconds relative to NOW_S.
 *	vol         volumes are up              stale   ... and must be refreshed
 *	sb          sandbox ready               sb! not ready   sb!! not ready and stopped
 *	0R 0C 0U    running, created, unknown   0E7     exited with 7 (just now)
 *	0f-30       finished at -30             0b20    its back-off is 20 s   0t-700 started at -700
 *	0x          is of an older sandbox      0l1     an earlier one exited with 1
 *	0i          image is there              0oI     op: I C S H(post start) P(pre stop) T(stop) D(remove)
 *	0w5         not before +5               0k5     being killed until +5   0p pre-stop done
 *	0h          post-start done             0L 0S 0Y liveness failed, startup failed, startup succeeded; 0r ready
 *	Lc Lc+      a left over container, running   Ls Ls+ Lsk   the same for sandboxes; k: is kept
 */
#pragma once
#include "kubelet-lite/core/plan.h"
#include "tests/unit/quotes.h"

#include <stdio.h>

#define S_NS ((int64_t)1000000000)
#define NOW_S 100000
#define NOW_NS (NOW_S * S_NS)

static inline UNUSED struct pod *pod_make(const char *spec)
{
	_cleanup_free_ char *text = xasprintf(
		"{'metadata':{'name':'p','namespace':'ns','uid':'u1','generation':1,'labels':{'app':'web'},'annotations':{'note':'a \\\\ b'}},'spec':%s}",
		spec);
	_cleanup_json_ json_t *tree = quoted(text);
	struct error err = ERROR_INIT;
	struct pod *pod;

	ck_assert_msg(pod_decode(tree, &pod, &err) == 0, "%s: %s", spec, err.text);
	return pod;
}

static inline UNUSED void seen_token(struct pod_seen *seen, const char *t)
{
	struct container_seen *c = &seen->c[*t - '0'];
	int n = atoi(t + 2);
	static const char ops[] = "-ICSHPTD";

	switch (t[1]) {
	case 'R': c->now.state = STATE_RUNNING; break;
	case 'C': c->now.state = STATE_CREATED; break;
	case 'U': c->now.state = STATE_UNKNOWN; break;
	case 'E':
		c->now.state = STATE_EXITED;
		c->now.exit_code = n;
		c->now.finished_ns = NOW_NS;
		break;
	case 'f': c->now.finished_ns = NOW_NS + n * S_NS; break;
	case 't': c->now.started_ns = NOW_NS + n * S_NS; break;
	case 'b': c->now.backoff_ns = n * S_NS; break;
	case 'x': free(c->now.sandbox_id); c->now.sandbox_id = xstrdup("old"); break;
	case 'l': c->last.state = STATE_EXITED; c->last.exit_code = n; break;
	case 'i': c->image_ready = true; break;
	case 'o': c->op = (enum container_op)(strchr(ops, t[2]) - ops); break;
	case 'g': c->start_asked_ns = NOW_NS + n * S_NS; break;
	case 'w': c->retry_at_ns = NOW_NS + n * S_NS; break;
	case 'k': c->killing = true; c->kill_deadline_ns = NOW_NS + n * S_NS; break;
	case 'p': c->pre_stop_done = true; break;
	case 'h': c->post_start_done = true; break;
	case 'L': c->probe[PROBE_LIVENESS] = PROBE_FAILURE; break;
	case 'S': c->probe[PROBE_STARTUP] = PROBE_FAILURE; break;
	case 'Y': c->probe[PROBE_STARTUP] = PROBE_SUCCESS; break;
	case 'r': c->probe[PROBE_READINESS] = PROBE_SUCCESS; break;
	default: ck_abort_msg("token %s", t);
	}
	/* The usual instance: id c<index>, of the sandbox, started long ago. */
	if (strchr("RCUE", t[1])) {
		c->now.id = xasprintf("c%c", *t);
		c->now.sandbox_id = xstrdup("sb");
		c->now.started_at = 1;
		c->now.started_ns = NOW_NS - 100 * S_NS;
	}
}

static inline UNUSED void seen_make(struct pod_seen *seen, const struct pod *pod, const char *script)
{
	_cleanup_(strv_done) struct strv tokens = STRV_INIT;

	pod_seen_init(seen, pod->n_containers);
	seen->observed = true;
	strv_split(&tokens, script, ' ');
	for (size_t i = 0; i < tokens.n; i++) {
		const char *t = tokens.v[i];

		if (str_eq(t, "vol") || str_eq(t, "stale")) {
			seen->volumes = VOLUMES_READY;
			seen->volumes_stale = str_eq(t, "stale");
		} else if (str_eq(t, "unseen")) {
			seen->observed = false;
		} else if (str_starts(t, "sb")) {
			seen->sandbox.state = t[2] == '!' ? SANDBOX_NOT_READY : SANDBOX_READY;
			seen->sandbox.stopped = str_eq(t, "sb!!");
			seen->sandbox.id = xstrdup("sb");
		} else if (*t == 'L') {
			seen->leftovers = xreallocarray(seen->leftovers, seen->n_leftovers + 1, sizeof(*seen->leftovers));
			seen->leftovers[seen->n_leftovers++] = (struct leftover){ .id = xstrdup(t),
				.is_sandbox = t[1] == 's', .running = t[2] == '+', .kept = t[2] == 'k' };
		} else if (*t) {
			seen_token(seen, t);
		}
	}
}
