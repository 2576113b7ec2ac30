/* batch.c - purpose: one transaction on our table: taken by the kernel whole or not at all. */
#include "proxy-lite/kernel/batch.h"

#include "common/base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { ELEMENTS_PER_MESSAGE = 256, OBJECT_MAX = 16 * 1024, ERRORS_BYTES = 64 * 1024 };

/* A run of messages; element messages have their elements' causes in order. */
struct stream {
	struct str bytes;
	uint32_t n_messages;
	/* For elements only: */
	size_t open;	  /* offset of the message being filled + 1; 0: none */
	size_t list;	  /* offset of its list attribute */
	uint32_t in_open; /* elements in it */
	uint32_t *first;  /* by message: position of its first cause */
	uint32_t *causes;
	size_t n_causes, cap_causes, cap_first;
};

/* Objects, then for each set its deletions, then additions, then chains that go. */
enum {
	STREAM_OBJECTS,
	STREAM_DELETE,
	STREAM_ADD = STREAM_DELETE + SET_COUNT,
	STREAM_LAST = STREAM_ADD + SET_COUNT,
	STREAMS
};

struct batch {
	const struct base_config *config;
	bool singles;
	uint32_t cause;
	size_t n_elements;
	struct stream streams[STREAMS];
};

struct batch *batch_new(const struct base_config *config, bool singles)
{
	struct batch *b = xnew(struct batch);

	b->config = config;
	b->singles = singles;
	b->cause = BATCH_NO_CAUSE;
	return b;
}

struct batch *batch_free(struct batch *b)
{
	if (!b)
		return NULL;
	for (int i = 0; i < STREAMS; i++) {
		str_done(&b->streams[i].bytes);
		free(b->streams[i].first);
		free(b->streams[i].causes);
	}
	free(b);
	return NULL;
}

/* ---- objects ---- */

/* Starts a message in `buf` (OBJECT_MAX bytes). */
static struct nlmsghdr *object_begin(char *buf, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type);
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = NFPROTO_INET;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = 0;
	return nlh;
}

static void object_end(struct batch *b, int stream, const struct nlmsghdr *nlh)
{
	assert(nlh->nlmsg_len <= OBJECT_MAX);
	str_add_bytes(&b->streams[stream].bytes, nlh, MNL_ALIGN(nlh->nlmsg_len));
	b->streams[stream].n_messages++;
}

static void table_message(struct batch *b, uint16_t type, uint16_t flags)
{
	char buf[512] = { 0 };
	struct nlmsghdr *nlh = object_begin(buf, type, flags);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, b->config->table);
	if (type == NFT_MSG_NEWTABLE)
		mnl_attr_put_u32(nlh, NFTA_TABLE_FLAGS, 0);
	object_end(b, STREAM_OBJECTS, nlh);
}

void batch_table_delete(struct batch *b)
{
	table_message(b, NFT_MSG_DELTABLE, 0);
}

static void chain_message(struct batch *b, const struct base_chain *chain)
{
	struct nftnl_chain *c = base_nftnl_chain(b->config, chain);
	char buf[1024] = { 0 };
	struct nlmsghdr *nlh = object_begin(buf, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

	nftnl_chain_nlmsg_build_payload(nlh, c);
	object_end(b, STREAM_OBJECTS, nlh);
	nftnl_chain_free(c);
}

static void flush_message(struct batch *b, const char *chain)
{
	char buf[512] = { 0 };
	struct nlmsghdr *nlh = object_begin(buf, NFT_MSG_DELRULE, 0);

	mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, b->config->table);
	mnl_attr_put_strz(nlh, NFTA_RULE_CHAIN, chain);
	object_end(b, STREAM_OBJECTS, nlh);
}

static void rule_messages(struct batch *b, const struct base_chain *chain)
{
	for (size_t i = 0; i < chain->n_rules; i++) {
		_cleanup_free_ char *buf = xcalloc(1, OBJECT_MAX);
		struct nlmsghdr *nlh = object_begin(buf, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);

		nftnl_rule_nlmsg_build_payload(nlh, chain->rules[i]);
		object_end(b, STREAM_OBJECTS, nlh);
	}
}

void batch_chain(struct batch *b, const struct base_chain *chain)
{
	chain_message(b, chain);
	flush_message(b, chain->name);
	rule_messages(b, chain);
}

void batch_chain_delete(struct batch *b, const char *name)
{
	char buf[512] = { 0 };
	struct nlmsghdr *nlh;

	flush_message(b, name);
	nlh = object_begin(buf, NFT_MSG_DELCHAIN, 0);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, b->config->table);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, name);
	object_end(b, STREAM_LAST, nlh);
}

void batch_base(struct batch *b)
{
	size_t n;
	struct base_chain *chains = base_chains(b->config, &n);

	table_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	for (int id = 0; id < SET_COUNT; id++) {
		struct nftnl_set *set = base_set(b->config, (enum set_id)id);
		char buf[2048] = { 0 };
		struct nlmsghdr *nlh = object_begin(buf, NFT_MSG_NEWSET, NLM_F_CREATE);

		nftnl_set_nlmsg_build_payload(nlh, set);
		object_end(b, STREAM_OBJECTS, nlh);
		nftnl_set_free(set);
	}
	for (size_t i = 0; i < n; i++)
		chain_message(b, &chains[i]);
	for (size_t i = 0; i < n; i++)
		rule_messages(b, &chains[i]);
	base_chains_free(chains, n);
}

/* ---- elements ---- */

/* Attributes of elements are written by hand: there are tens of thousands of them. */
static void attr(struct str *s, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = { .nla_len = (uint16_t)(MNL_ATTR_HDRLEN + len), .nla_type = type };
	static const char zero[4];

	str_add_bytes(s, &a, sizeof(a));
	str_add_bytes(s, data, len);
	str_add_bytes(s, zero, MNL_ALIGN(len) - len);
}

static size_t nest_begin(struct str *s, uint16_t type)
{
	struct nlattr a = { .nla_type = (uint16_t)(type | NLA_F_NESTED) };
	size_t at = s->len;

	str_add_bytes(s, &a, sizeof(a));
	return at;
}

static void nest_end(struct str *s, size_t at)
{
	((struct nlattr *)(void *)(s->buf + at))->nla_len = (uint16_t)(s->len - at);
}

static void message_open(struct batch *b, struct stream *st, enum set_id set, bool add)
{
	char buf[512] = { 0 };
	struct nlmsghdr *nlh = object_begin(buf, add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM, add ? NLM_F_CREATE : 0);

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, b->config->table);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set_spec(set)->name);
	st->open = st->bytes.len + 1;
	str_add_bytes(&st->bytes, nlh, nlh->nlmsg_len);
	st->list = nest_begin(&st->bytes, NFTA_SET_ELEM_LIST_ELEMENTS);
	st->in_open = 0;
	if (st->n_messages == st->cap_first) {
		st->cap_first = MAX((size_t)4, st->cap_first * 2);
		st->first = xreallocarray(st->first, st->cap_first, sizeof(*st->first));
	}
	st->first[st->n_messages++] = (uint32_t)st->n_causes;
}

static void message_close(struct stream *st)
{
	if (!st->open)
		return;
	nest_end(&st->bytes, st->list);
	((struct nlmsghdr *)(void *)(st->bytes.buf + st->open - 1))->nlmsg_len =
		(uint32_t)(st->bytes.len - st->open + 1);
	st->open = 0;
}

static void put_value(struct str *s, enum set_id set, const uint8_t *key, const uint8_t *value)
{
	size_t data = nest_begin(s, NFTA_SET_ELEM_DATA);

	if (set_is_verdict(set)) {
		size_t verdict = nest_begin(s, NFTA_DATA_VERDICT);
		uint32_t code = htonl((uint32_t)(set == SET_DRAW ? NFT_JUMP : NFT_GOTO)), id;
		char name[PLAN_NAME_MAX];

		memcpy(&id, key, sizeof(id));
		plan_chain_name(id, name);
		attr(s, NFTA_VERDICT_CODE, &code, sizeof(code));
		attr(s, NFTA_VERDICT_CHAIN, name, strlen(name) + 1);
		nest_end(s, verdict);
	} else {
		attr(s, NFTA_DATA_VALUE, value, set_value_len(set));
	}
	nest_end(s, data);
}

void batch_cause(struct batch *b, uint32_t cause)
{
	b->cause = cause;
}

void batch_element(struct batch *b, enum set_id set, bool add, const uint8_t *key, const uint8_t *value)
{
	struct stream *st = &b->streams[(add ? STREAM_ADD : STREAM_DELETE) + (int)set];
	struct str *s = &st->bytes;
	size_t element, nested;

	if (st->open && (b->singles || st->in_open == ELEMENTS_PER_MESSAGE))
		message_close(st);
	if (!st->open)
		message_open(b, st, set, add);
	element = nest_begin(s, NFTA_LIST_ELEM);
	nested = nest_begin(s, NFTA_SET_ELEM_KEY);
	attr(s, NFTA_DATA_VALUE, key, set_key_len(set));
	nest_end(s, nested);
	if (add && set_spec(set)->map)
		put_value(s, set, key, value);
	if (set_spec(set)->interval) {
		nested = nest_begin(s, NFTA_SET_ELEM_KEY_END);
		attr(s, NFTA_DATA_VALUE, value, set_key_len(set));
		nest_end(s, nested);
	}
	nest_end(s, element);
	if (st->n_causes == st->cap_causes) {
		st->cap_causes = MAX((size_t)16, st->cap_causes * 2);
		st->causes = xreallocarray(st->causes, st->cap_causes, sizeof(*st->causes));
	}
	st->causes[st->n_causes++] = b->cause;
	st->in_open++;
	b->n_elements++;
}

bool batch_is_empty(const struct batch *b)
{
	return batch_bytes(b) == 0;
}

size_t batch_elements(const struct batch *b)
{
	return b->n_elements;
}

size_t batch_bytes(const struct batch *b)
{
	size_t n = 0;

	for (int i = 0; i < STREAMS; i++)
		n += b->streams[i].bytes.len;
	return n;
}

/* ---- sending ---- */

static struct nlmsghdr *frame(char *buf, uint16_t type, uint32_t seq, uint32_t gen)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = seq;
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = AF_UNSPEC;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(NFNL_SUBSYS_NFTABLES);
	if (gen)
		mnl_attr_put_u32(nlh, NFNL_BATCH_GENID, htonl(gen));
	return nlh;
}

/* Numbers the messages from `seq` on; the last one asks for an acknowledgement. Returns the number after the last. */
static uint32_t number_messages(struct batch *b, uint32_t seq)
{
	struct nlmsghdr *last = NULL;

	for (int i = 0; i < STREAMS; i++) {
		struct str *s = &b->streams[i].bytes;

		message_close(&b->streams[i]);
		for (size_t at = 0; at < s->len;) {
			last = (struct nlmsghdr *)(void *)(s->buf + at);
			last->nlmsg_seq = seq++;
			at += MNL_ALIGN(last->nlmsg_len);
		}
	}
	if (last)
		last->nlmsg_flags |= NLM_F_ACK;
	return seq;
}

/* The element of a message that the attribute at `offset` belongs to; -1 if that is none. */
static int element_at(const struct nlmsghdr *nlh, uint32_t offset)
{
	struct nlattr *a, *list = NULL;
	int i = 0;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) == NFTA_SET_ELEM_LIST_ELEMENTS)
		list = a;
	if (!list)
		return -1;
	mnl_attr_for_each_nested(a, list)
	{
		size_t at = (size_t)((const char *)a - (const char *)nlh);

		if (offset >= at && offset < at + a->nla_len)
			return i;
		i++;
	}
	return -1;
}

/* Which cause has the message of that number (counted from 0)? */
static struct batch_fault fault_of(const struct batch *b, uint32_t number, uint32_t offset)
{
	struct batch_fault fault = { BATCH_NO_CAUSE, true };

	for (int i = 0; i < STREAMS; i++) {
		const struct stream *st = &b->streams[i];
		uint32_t first, end;
		size_t at = 0;
		int element;

		if (number >= st->n_messages) {
			number -= st->n_messages;
			continue;
		}
		if (!st->first)
			return fault;
		for (uint32_t m = 0; m < number; m++)
			at += MNL_ALIGN(((const struct nlmsghdr *)(const void *)(st->bytes.buf + at))->nlmsg_len);
		first = st->first[number];
		end = number + 1 < st->n_messages ? st->first[number + 1] : (uint32_t)st->n_causes;
		element = offset ? element_at((const struct nlmsghdr *)(const void *)(st->bytes.buf + at), offset) : -1;
		fault.exact = element >= 0 || end - first == 1;
		fault.cause = st->causes[first + (uint32_t)MAX(element, 0)];
		return fault;
	}
	return fault;
}

struct answers {
	struct batch *batch;
	uint32_t first_seq, end_seq;
	bool acknowledged;
	int error; /* of the first message that was refused; others follow from it */
	uint32_t seq, offset;
};

static void extended(const struct nlmsghdr *nlh, const struct nlmsgerr *e, struct answers *answers)
{
	size_t header = sizeof(*e);
	const struct nlattr *a;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		header += e->msg.nlmsg_len - sizeof(e->msg);
	if (nlh->nlmsg_len < sizeof(*nlh) + MNL_ALIGN(header))
		return;
	a = (const struct nlattr *)(const void *)((const char *)e + MNL_ALIGN(header));
	while (mnl_attr_ok(a, (int)((const char *)nlh + nlh->nlmsg_len - (const char *)a))) {
		if (mnl_attr_get_type(a) == NLMSGERR_ATTR_OFFS && mnl_attr_get_payload_len(a) == 4)
			answers->offset = mnl_attr_get_u32(a);
		a = mnl_attr_next(a);
	}
}

static void read_answer(const struct nlmsghdr *nlh, struct answers *answers)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type != NLMSG_ERROR || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*e)))
		return;
	if (nlh->nlmsg_seq < answers->first_seq || nlh->nlmsg_seq >= answers->end_seq)
		return; /* of an older batch */
	if (e->error == 0) {
		answers->acknowledged = true;
	} else if (!answers->error) {
		answers->error = -e->error;
		answers->seq = nlh->nlmsg_seq;
		extended(nlh, e, answers);
	}
}

/* The kernel has answered before sendmsg() returned, so nothing is waited for. */
static int read_answers(const struct netlink *nl, struct answers *answers, struct error *err)
{
	_cleanup_free_ char *buf = xmalloc(ERRORS_BYTES);

	for (;;) {
		ssize_t n = recv(nl->fd, buf, ERRORS_BYTES, MSG_DONTWAIT);
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)buf;
		int left = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ENOBUFS) /* more errors than fit: those read so far are enough */
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return error_sys(err, errno, "netlink: receive");
		for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			read_answer(nlh, answers);
	}
}

int batch_commit(struct batch *b, struct netlink *nl, uint32_t gen, struct batch_fault *ret_fault, struct error *err)
{
	char begin[64] = { 0 }, end[64] = { 0 };
	struct nlmsghdr *first = frame(begin, NFNL_MSG_BATCH_BEGIN, nl->seq + 1, gen), *last;
	struct answers answers = { .batch = b, .first_seq = nl->seq + 1 };
	struct iovec iov[STREAMS + 2] = { { first, first->nlmsg_len } };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct msghdr msg = { .msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = iov, .msg_iovlen = 1 };
	int r;

	nl->seq = number_messages(b, nl->seq + 2);
	last = frame(end, NFNL_MSG_BATCH_END, nl->seq, 0);
	answers.end_seq = nl->seq + 1;
	for (int i = 0; i < STREAMS; i++)
		if (b->streams[i].bytes.len)
			iov[msg.msg_iovlen++] = (struct iovec){ b->streams[i].bytes.buf, b->streams[i].bytes.len };
	iov[msg.msg_iovlen++] = (struct iovec){ last, last->nlmsg_len };
	if ((r = netlink_reserve_send(nl, batch_bytes(b) + 128)) < 0)
		return error_sys(err, r, "netlink: room for %zu bytes", batch_bytes(b));
	if (sendmsg(nl->fd, &msg, 0) < 0)
		return error_sys(err, errno, "netlink: send a batch of %zu bytes", batch_bytes(b));
	if ((r = read_answers(nl, &answers, err)) < 0)
		return r;
	*ret_fault = (struct batch_fault){ BATCH_NO_CAUSE, true };
	if (answers.error) {
		if (answers.seq >= answers.first_seq + 1 && answers.seq < nl->seq)
			*ret_fault = fault_of(b, answers.seq - answers.first_seq - 1, answers.offset);
		return error_sys(err, answers.error, "nftables");
	}
	if (!answers.acknowledged)
		return error_set(err, ERROR_INTERNAL, "nftables: the kernel neither took nor refused a batch");
	return 0;
}
