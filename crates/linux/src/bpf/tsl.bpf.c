// SPDX-License-Identifier: GPL-2.0
/*
 * TCP SYN Loss startup: after a lost SYN or SYN-ACK, a small window and a threshold in place of what RFC 5681 (1, 2) or
 * the kernel (1, infinite, and that only after the second) would do. `tsl.rs` says more.
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
static __always_inline void on_begin(struct facts *f)
{
	if (!f->fresh || !f->retransmitted || (UNDO && !f->doubted))
		return;
	f->set = WINDOW;
	f->threshold = SSTHRESH;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
}

#include "hooks.h"
