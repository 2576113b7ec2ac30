/*
 * nft_batch.h - purpose: collect nftables messages and send them as one transaction.
 *
 *	_cleanup_(nft_batch_done) struct nft_batch b;
 *	nft_batch_init(&b, table);
 *	nlh = nft_batch_message(&b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
 *	nftnl_table_nlmsg_build_payload(nlh, t);
 *	nft_batch_put(&b, nlh);
 *	r = nft_batch_send(&b);
 */
#pragma once
#include "common/base/str.h"

#include <libmnl/libmnl.h>

enum { NFT_MESSAGE_ROOM = 64 * 1024 };

struct nft_table;

struct nft_batch {
	const struct nft_table *table; /* what it is about; for the user */
	struct str out;
	size_t begin_len; /* of the message that begins the batch */
	uint32_t seq;
	char *room; /* one message is built here */
};

void nft_batch_init(struct nft_batch *b, const struct nft_table *table);
void nft_batch_done(struct nft_batch *b);
/* Starts a message of family inet, to be filled up to NFT_MESSAGE_ROOM bytes before it is put. */
struct nlmsghdr *nft_batch_message(struct nft_batch *b, uint16_t type, uint16_t flags);
void nft_batch_put(struct nft_batch *b, const struct nlmsghdr *nlh);
/* Commits all or nothing; negative errno of the first message that the kernel refused. */
int nft_batch_send(struct nft_batch *b) MUST_USE;
/* A single request outside a transaction: 0 when the kernel says yes. */
int nft_batch_ask(struct nft_batch *b) MUST_USE;
