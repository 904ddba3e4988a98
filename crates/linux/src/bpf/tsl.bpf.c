// SPDX-License-Identifier: GPL-2.0
/*
 * TCP SYN Loss startup: after a lost SYN or SYN-ACK, a small window and a threshold in place of what RFC 5681 (1, 2) or
 * the kernel (1, infinite, and that only after the second) would do. A retransmission that proved unnecessary is no loss:
 * the kernel clears undo_marker then.
 */
#include "startup.h"
#define NAME "ss_tsl"
#ifdef STOCK
#define WINDOW 3
#define SSTHRESH 16
#else
#define WINDOW PARAM(0)
#define SSTHRESH PARAM(1)
#endif

struct startup {
	__u8 nothing;
};

#define ON_BEGIN
static __always_inline void on_begin(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (tp->data_segs_out || !tp->total_retrans || !tp->undo_marker)
		return;
	tp->snd_cwnd = MIN(MAX((__u32)WINDOW, 1u), tp->snd_cwnd_clamp);
	tp->snd_ssthresh = MAX((__u32)SSTHRESH, 2u);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
}

#include "hooks.h"
