/* fold_test.c - purpose: the runtime's lists to what is seen of a pod. */
#include "tests/unit/kubelet-lite/core/pods.h"

#include "kubelet-lite/core/cri_config.h"
#include "kubelet-lite/observe/fold.h"

#define TWO "{'containers':[{'name':'c','image':'i'},{'name':'d','image':'i'}]}"

/* Tokens: S<id><attempt><+|-> a sandbox; <name><id><attempt><R|E|C>@<sandbox id> a container. */
static void list(struct listing *l, const char *script)
{
	_cleanup_(strv_done) struct strv tokens = STRV_INIT;

	strv_split(&tokens, script, ' ');
	for (size_t i = 0; i < tokens.n; i++) {
		const char *t = tokens.v[i];

		if (!*t)
			continue;
		l->v = xreallocarray(l->v, l->n + 1, sizeof(*l->v));
		struct listed *x = &l->v[l->n++];
		char state = t[3];

		*x = (struct listed){ .is_sandbox = *t == 'S', .attempt = (uint32_t)(t[2] - '0'), .created_at = (int64_t)i };
		x->id = xasprintf("%c%c", t[0], t[1]);
		x->state = state == '+' || state == 'R' ? STATE_RUNNING : state == 'C' ? STATE_CREATED : STATE_EXITED;
		if (!x->is_sandbox) {
			x->name = xstrndup(t, 1);
			x->sandbox_id = xstrdup(strchr(t, '@') + 1);
		}
	}
}

/* Folds, answering every question with an instance of that id. */
static void fold(const struct pod *pod, struct pod_seen *seen, const char *script, char *ret_asked, char *ret_changed)
{
	struct listing l = { 0 };
	size_t wanted[8];
	bool changed[2];
	int sandbox;

	list(&l, script);
	struct instance *instances = xcalloc(l.n + 1, sizeof(*instances));
	size_t n = fold_wanted(pod, seen, &l, wanted, &sandbox);
	*ret_asked = '\0';
	for (size_t i = 0; i < n; i++) {
		instances[wanted[i]] = (struct instance){ .state = l.v[wanted[i]].state, .id = xstrdup(l.v[wanted[i]].id),
			.restarts = l.v[wanted[i]].attempt, .image_ref = xstrdup("") };
		strcat(strcat(ret_asked, l.v[wanted[i]].id), " ");
	}
	fold_listing(pod, seen, &l, instances, changed);
	snprintf(ret_changed, 8, "%d%d", changed[0], changed[1]);
	for (size_t i = 0; i < l.n; i++)
		instance_done(&instances[i]);
	free(instances);
	listing_done(&l);
}

static void render(const struct pod_seen *seen, struct str *out)
{
	static const char states[] = "-CRE?";

	if (seen->sandbox.id)
		str_addf(out, "%s%s", seen->sandbox.id, seen->sandbox.state == SANDBOX_READY ? "+" : "-");
	for (size_t i = 0; i < seen->n; i++) {
		const struct instance *now = &seen->c[i].now, *last = &seen->c[i].last;

		str_addf(out, " %s%c", now->id ? now->id : "", states[now->state]);
		if (last->state)
			str_addf(out, "/%s", last->id);
	}
	for (size_t i = 0; i < seen->n_leftovers; i++)
		str_addf(out, " L%s%s%s", seen->leftovers[i].id, seen->leftovers[i].running ? "+" : "",
			seen->leftovers[i].kept ? "k" : "");
}

static const struct {
	const char *name, *before, *list, *expect, *asked, *changed;
} cases[] = {
	{ "nothing", "", "", " - -", "", "00" },
	{ "new", "", "Sa0+ ca0R@Sa da0C@Sa", "Sa+ caR daC", "ca da ", "11" },
	{ "the same again asks only for what is not settled", "Sa0+ ca0R@Sa da0C@Sa", "Sa0+ ca0R@Sa da0C@Sa", "Sa+ caR daC", "da ", "00" },
	{ "one has ended", "Sa0+ ca0R@Sa", "Sa0+ ca0E@Sa", "Sa+ caE -", "ca ", "00" },
	{ "restarted", "Sa0+ ca0E@Sa", "Sa0+ ca0E@Sa cb1R@Sa", "Sa+ cbR/ca -", "cb ", "10" },
	{ "older ones are left over", "", "Sa0+ ca0E@Sa cb1E@Sa cc2R@Sa", "Sa+ ccR/cb - Lca", "cc cb ", "10" },
	{ "an older one that runs is no lastState", "", "Sa0+ ca0R@Sa cb1R@Sa", "Sa+ cbR - Lca+", "cb ", "10" },
	{ "a newer sandbox; the old one holds a lastState", "Sa0+ ca0R@Sa", "Sa0- Sb1+ ca0E@Sa cb1R@Sb", "Sb+ cbR/ca - LSak", "cb ca ", "10" },
	{ "an old sandbox that holds nothing", "", "Sa0- Sb1+", "Sb+ - - LSa", "", "00" },
	{ "gone", "Sa0+ ca0R@Sa", "", " - -", "", "00" },
	{ "a container that is not in the spec", "", "Sa0+ xa0R@Sa", "Sa+ - - Lxa+", "", "00" },
};

START_TEST(fold_case)
{
	struct pod *pod = pod_make(TWO);
	struct pod_seen seen;
	struct str got = STR_INIT;
	char asked[64], changed[8];

	pod_seen_init(&seen, 2);
	if (*cases[_i].before)
		fold(pod, &seen, cases[_i].before, asked, changed);
	fold(pod, &seen, cases[_i].list, asked, changed);
	render(&seen, &got);
	ck_assert_msg(str_eq(str_get(&got), cases[_i].expect), "%s: %s", cases[_i].name, str_get(&got));
	ck_assert_msg(str_eq(asked, cases[_i].asked), "%s: asked %s", cases[_i].name, asked);
	ck_assert_msg(str_eq(changed, cases[_i].changed), "%s: changed %s", cases[_i].name, changed);
	str_done(&got);
	pod_seen_done(&seen);
	pod_free(pod);
}
END_TEST

/* After a start of ours the list tells nothing new, but the status has the image's id and the user. */
START_TEST(own_start)
{
	struct pod *pod = pod_make(TWO);
	struct pod_seen seen;
	char asked[64], changed[8];

	pod_seen_init(&seen, 2);
	seen.c[0].now = (struct instance){ .state = STATE_RUNNING, .id = xstrdup("ca"), .sandbox_id = xstrdup("Sa") };
	fold(pod, &seen, "Sa0+ ca0R@Sa", asked, changed);
	ck_assert_str_eq(asked, "ca ");
	fold(pod, &seen, "Sa0+ ca0R@Sa", asked, changed);
	ck_assert_str_eq(asked, "");
	pod_seen_done(&seen);
	pod_free(pod);
}
END_TEST

/* The annotations bring identity back; times move to the monotonic clock, whatever the other one does. */
START_TEST(status_to_instance)
{
	CRI(ContainerStatus) *s = CRI_NEW(ContainerStatus, container_status);
	const ProtobufCMessageDescriptor *type = &runtime__v1__container_status__annotations_entry__descriptor;
	struct instance i;

	message_set(&s->id, "abc");
	message_set(&s->reason, "Error");
	s->state = RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;
	s->exit_code = 3;
	s->started_at = 1000 * S_NS;
	s->finished_at = 1010 * S_NS;
	message_map_add(&s->n_annotations, &s->annotations, type, ANNOTATION_RESTARTS, "7");
	message_map_add(&s->n_annotations, &s->annotations, type, ANNOTATION_HASH, "beef");
	message_map_add(&s->n_annotations, &s->annotations, type, ANNOTATION_BACKOFF, "40000000000");
	instance_from_status(s, 500 * S_NS, 1015ull * 1000000000, &i);
	ck_assert_int_eq(i.restarts, 7);
	ck_assert_uint_eq(i.hash, 0xbeef);
	ck_assert_int_eq(i.backoff_ns, 40 * S_NS);
	ck_assert_int_eq(i.finished_ns, 495 * S_NS);
	ck_assert_int_eq(i.started_ns, 485 * S_NS);
	ck_assert_int_eq(i.exit_code, 3);
	instance_done(&i);
	/* The clock was set back since: it ended just now, not in the future. */
	instance_from_status(s, 500 * S_NS, 10ull * 1000000000, &i);
	ck_assert_int_eq(i.finished_ns, 500 * S_NS);
	instance_done(&i);
	message_free(s);
}
END_TEST

START_TEST(signatures)
{
	struct listing a = { 0 }, b = { 0 }, c = { 0 };

	list(&a, "Sa0+ ca0R@Sa");
	list(&b, "ca0R@Sa Sa0+");
	list(&c, "Sa0+ ca0E@Sa");
	ck_assert(listing_signature(&a) == listing_signature(&b));
	ck_assert(listing_signature(&a) != listing_signature(&c));
	listing_done(&a);
	listing_done(&b);
	listing_done(&c);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("fold");

	tcase_add_loop_test(t, fold_case, 0, ARRAY_LEN(cases));
	tcase_add_test(t, own_start);
	tcase_add_test(t, status_to_instance);
	tcase_add_test(t, signatures);
	return run_case(t);
}
