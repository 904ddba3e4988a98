// SPDX-License-Identifier: GPL-2.0
/* Delay-based slow start: limited slow start once the RTT has risen; the reference is `delay.rs`. */
#include "startup.h"
#define NAME "ss_delay"
#define RESTARTS
#ifdef STOCK
#define TAU (10000 * US)
#else
#define TAU PARAM(0)
#endif

struct startup {
	__u64 max;		/* cwnd at which the RTT exceeded the threshold, in bytes; 0: it has not */
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 cwnd = (__u64)f->cwnd * f->mss;

	if (!s->max && f->rtt_us && f->min_rtt_us && f->rtt_us * US > f->min_rtt_us * US + TAU)
		s->max = cwnd;
	if (s->max && cwnd > s->max)
		f->earned /= cwnd * 2 / s->max;
}

#include "hooks.h"
