// SPDX-License-Identifier: GPL-2.0
/* Packet-pair slow start; the reference is `packet_pair.rs`. */
#include "startup.h"
#include "dispersion.h"
#define NAME "ss_pair"
#define OWN_SSTHRESH
#ifdef STOCK
#define PAIRS 3
#else
#define PAIRS PARAM(0)
#endif

struct startup {
	struct dispersion pairs;
	__u32 done;		/* the estimate is complete */
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 bdp;

	if (s->done) {
		if (f->ssthresh < TCP_INFINITE_SSTHRESH && f->cwnd >= f->ssthresh) {
			f->why = WHY_ESTIMATE;
			f->earned = 0;
		}
		return;
	}
	dispersion_add(&s->pairs, f);
	if (s->pairs.pairs < PAIRS)
		return;
	s->done = 1;
	if (!f->min_rtt_us)
		return;
	bdp = rate_over(s->pairs.rate, f->min_rtt_us * US);
	set_ssthresh(f, bdp);
	if ((__u64)f->cwnd * f->mss >= bdp) {
		f->why = WHY_ESTIMATE;
		f->earned = 0;
	}
}

#include "hooks.h"
