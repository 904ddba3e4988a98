// SPDX-License-Identifier: GPL-2.0
/*
 * TCP SYN Loss startup: after a lost SYN or SYN-ACK, a small cwnd and an ssthresh, instead of (1, 2) as in RFC 5681 or
 * (1, infinite), after the second loss only, as in the kernel. The reference is `tsl.rs`.
 */
#include "startup.h"
#define NAME "ss_tsl"
#ifdef STOCK
#define WINDOW 3
#define SSTHRESH 16
#define UNDO 0
#else
#define WINDOW PARAM(0)
#define SSTHRESH PARAM(1)
#define UNDO PARAM(2)
#endif

struct startup {
	__u8 nothing;
};

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	if (!f->no_data_sent || !f->retransmitted || (UNDO && !f->undo_marker))
		return;
	f->set = WINDOW;
	f->threshold = SSTHRESH;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
}

#include "hooks.h"
