// SPDX-License-Identifier: GPL-2.0
/*
 * ESS, Enhanced Slow-Start; see `ess.rs`, with which the tests compare this object. The kernel does not report when a packet is sent: the selected packet counts as sent at the last ACK before it appears in `next`.
 */
#include "startup.h"
#define NAME "ss_ess"
#define PACES
enum { TRAIN, CYCLE, FIRST_RTT };
#ifdef STOCK
#define GUARD 2000000ull
#define ESTIMATE TRAIN
#define PACED 0
#else
#define GUARD PARAM(0)
#define ESTIMATE PARAM(1)
#define PACED PARAM(2)
#endif

struct startup {
	__u64 total;		/* bytes acknowledged */
	__u64 seen;		/* acked_bytes at the last ACK */
	__u64 now;		/* time of the last ACK, ns */
	/* The cycle, if there is one: */
	__u64 selected;		/* the packet beyond it is selected, and an ACK of it ends the cycle */
	__u64 sent;		/* when that was sent, ns; 0: not yet */
	__u64 begin;		/* ns */
	__u64 first_rtt;	/* ns; 0: none */
	__u64 base;		/* the total then */
	__u64 last;		/* the last ACK of the active part: ns, and the total then */
	__u64 acked;
	__u32 acks;
	__u32 full;		/* the window limited the sender throughout */
	__u32 cycle;
	__u32 paced;		/* a jump has set a pacing rate */
};

/* The rate by equation (2), in bits per second; 0: no estimate. */
static __always_inline __u64 rate(struct startup *s, __u64 rtt)
{
	__u64 bytes = s->acked - s->base, time;

	if (ESTIMATE == TRAIN) {
		time = s->acks < 2 ? 0 : s->last - s->begin;
	} else if (ESTIMATE == CYCLE) {
		bytes = s->total - s->base;
		time = rtt;
	} else {
		time = s->first_rtt && rtt > s->first_rtt ? rtt - s->first_rtt : 0;
	}
	return time ? rate_of(bytes, time) : 0;
}

/* Called at the end of a cycle with its RTT in ns: exit, jump, or neither. */
static __always_inline void judge(struct startup *s, struct facts *f, __u64 rtt)
{
	__u64 least = f->min_rtt_us ? MIN(f->min_rtt_us * US, rtt) : rtt, bits, target;

	if (rtt > mul_div(least, GUARD, ONE)) {
		f->why = WHY_DELAY;
		return;
	}
	bits = rate(s, rtt);
	if (!bits)
		return;
	target = rate_over(bits, rtt);
	if (target <= (__u64)f->cwnd * f->mss + f->earned) {
		f->why = WHY_ESTIMATE;
		return;
	}
	set_cwnd(f, target);
	if (PACED) {
		s->paced = 1;
		f->pace = bits;
	}
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US, delivered = f->acked_bytes - s->seen;
	__u32 full = f->limited || (s->paced && f->unsent);

	if (s->cycle && !s->sent && f->next > s->selected)
		s->sent = s->now;
	s->seen = f->acked_bytes;
	s->now = f->now_ns;
	s->total += delivered;
	if (s->cycle && f->acked_bytes <= s->selected) {
		s->last = f->now_ns;
		s->acked = s->total;
		s->acks += delivered > 0;
		s->full &= full;
		return;
	}
	if (s->cycle && s->full && full && s->sent)
		judge(s, f, f->now_ns - s->sent);
	s->cycle = 1;
	s->selected = f->next;
	s->sent = 0;
	s->begin = s->last = f->now_ns;
	s->first_rtt = rtt;
	s->base = s->acked = s->total;
	s->acks = 0;
	s->full = full;
}

#include "hooks.h"
