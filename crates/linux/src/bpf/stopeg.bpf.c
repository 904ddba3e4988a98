// SPDX-License-Identifier: GPL-2.0
/*
 * StopEG; the reference is `stopeg.rs`. The kernel does not call a control when a packet is sent, so what was sent between
 * two ACKs counts from the first of them on. Rings have 32 slots where 29 are needed, because the verifier can bound an
 * index by a mask but not by a remainder.
 */
#include "startup.h"
#define NAME "ss_stopeg"
#define RESTARTS
#ifdef STOCK
#define SHARE 568000ull
#else
#define SHARE PARAM(0)
#endif

#define ROUND 12
#define HALF (ROUND / 2)
#define N (ROUND + HALF + 1 + 10)
#define SLOT(i) ((__u32)(i) & 31)

struct startup {
	__u64 width;		/* of a bin, in ns; 0: no bins yet */
	__u64 end;		/* of the bin being filled, ns */
	__u64 last;		/* the previous event: ns, bytes delivered and in flight, area */
	__u64 last_delivered;
	__u64 last_inflight;
	__u64 last_area;
	__u64 round_end;	/* valid if in_round */
	__u32 in_round;
	__u32 at;		/* bins filled */
	__u32 judge;		/* evaluate once this many are filled; 0: nothing to evaluate */
	__u32 seen;		/* segments delivered at the last ACK */
	__u64 delivered[32];	/* bytes in total at the end of each bin */
	__u64 area[32];		/* bytes in flight, integrated over microseconds */
};

static __always_inline void bins_new(struct startup *s, struct facts *f)
{
	s->width = MAX(f->min_rtt_us * US / ROUND, 1);
	s->end = f->now_ns + s->width;
	s->at = s->judge = 0;
	s->last = f->now_ns;
	s->last_delivered = (__u64)f->delivered * f->mss;
	s->last_inflight = (__u64)f->inflight * f->mss;
	s->last_area = 0;
	for (int i = 0; i < 32; i++) {
		s->delivered[i] = s->last_delivered;
		s->area[i] = 0;
	}
}

/* Adds the state after an event. Returns 0 after an idle time of more bins than are kept. */
static __always_inline int advance(struct startup *s, struct facts *f)
{
	if (f->now_ns > s->end && f->now_ns - s->end > s->width * N)
		return 0;
	for (int i = 0; i < N + 2; i++) {
		if (s->end > f->now_ns)
			break;
		s->at++;
		s->delivered[SLOT(s->at)] = s->last_delivered;
		s->area[SLOT(s->at)] = s->last_area + s->last_inflight * ((s->end - s->last) / 1000);
		s->end += s->width;
	}
	s->last_area += s->last_inflight * ((f->now_ns - s->last) / 1000);
	s->last_inflight = (__u64)f->inflight * f->mss;
	s->last_delivered = (__u64)f->delivered * f->mss;
	s->last = f->now_ns;
	return 1;
}

/* Returns the share of inflight on the way to the receiver, during the round that ended half a round before `end`. */
static __always_inline __u64 share(struct startup *s, __u32 end)
{
	__u32 first = end - (ROUND + HALF);
	__u64 back = 0, all;

	if (end < ROUND + HALF || s->at >= first + N)
		return 0;
	for (__u32 i = 1; i <= ROUND; i++) {
		__u64 then = s->delivered[SLOT(first + i)], later = s->delivered[SLOT(first + i + HALF)];

		back += later > then ? later - then : 0;
	}
	all = mul_div(s->area[SLOT(first + ROUND)] - s->area[SLOT(first)], 1000, s->width);
	return all > back ? mul_div(all - back, ONE, all) : 0;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u32 since = f->delivered - s->seen;

	if (!f->min_rtt_us)
		return;
	s->seen = f->delivered;
	s->last_inflight = ((__u64)f->inflight + since) * f->mss;
	if (!s->width || !advance(s, f)) {
		bins_new(s, f);
		return;
	}
	if (s->judge && s->at >= s->judge) {
		__u32 end = s->judge;

		s->judge = 0;
		if (share(s, end) > SHARE) {
			f->why = WHY_ESTIMATE;
			f->earned = 0;
			return;
		}
	}
	if (!s->in_round || f->acked_bytes > s->round_end) {
		if (s->in_round)
			s->judge = s->at + HALF;
		s->in_round = 1;
		s->round_end = f->next;
	}
}

#include "hooks.h"
