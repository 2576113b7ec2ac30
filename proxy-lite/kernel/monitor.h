/*
 * monitor.h - purpose: hear when somebody else changes our table.
 *
 * A socket in the nftables notification group. Our own commits are told by the port id of the socket that made them.
 * Notifications can be lost (ENOBUFS): then the generation number tells whether anything was missed.
 */
#pragma once
#include "proxy-lite/kernel/netlink.h"

struct monitor {
	struct netlink nl;
	const char *table; /* borrowed */
	uint32_t own;	   /* port id whose commits are ours */
	bool pending;	   /* a foreign change of our table whose end was not heard yet */
};

struct monitor_news {
	bool touched; /* somebody else changed our table */
	bool lost;    /* notifications were lost */
	uint32_t gen; /* newest generation heard of; 0: none */
	uint32_t pid; /* who did it last, 0: unknown */
	char who[32];
};

int monitor_open(struct monitor *m, const char *table, uint32_t own_portid, struct error *err) MUST_USE;
void monitor_close(struct monitor *m);
/* Reads all that is there, without waiting. */
int monitor_read(struct monitor *m, struct monitor_news *ret, struct error *err) MUST_USE;
/* Stops and starts listening, around big commits of our own: the kernel then spares itself the notifications. Compare
 * generations afterwards. */
void monitor_pause(const struct monitor *m, bool pause);
