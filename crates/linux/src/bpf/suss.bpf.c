// SPDX-License-Identifier: GPL-2.0
/*
 * SUSS; the reference is `suss.rs`. There is no timer: cwnd is raised at the last blue ACK at once, and a cap of the pacing
 * rate spreads the added packets, which so begin up to half a round trip earlier than there.
 */
#include "startup.h"
#define NAME "ss_suss"
#define PACES
#ifdef STOCK
#define ROUNDS 3
#define LOW_WINDOW 16
#define ACK_DELTA (2000 * US)
#else
#define ROUNDS PARAM(0)
#define LOW_WINDOW PARAM(1)
#define ACK_DELTA PARAM(2)
#endif

#define MS (1000 * US)
#define MIN_SAMPLES 8

struct startup {
	__u64 head;		/* acked_bytes at which the round ends; valid if begun */
	__u64 began;		/* of the round, ns */
	__u64 sent;		/* bytes of the blue part sent in it */
	__u64 next_tail, tail;	/* end of the blue part being sent, and being acknowledged (valid if blue_left) */
	__u64 blue;		/* blue bytes acknowledged in this round */
	__u64 last_train;	/* ns */
	__u64 min;		/* minimum RTT, ns; 0: none */
	__u64 last_ack;		/* ns */
	__u64 least;		/* RTT in this round, ns */
	__u64 cap;		/* bytes; valid if has_cap */
	__u32 round, min_round, samples, jumps;
	__u32 begun, blue_left, slow, planned, has_cap;
};

static __always_inline __u64 blue_size(struct startup *s, struct facts *f)
{
	__u32 doublings = s->round - 1;

	return (__u64)f->iw * f->mss << MIN(doublings, 31);
}

/* True if cwnd may quadruple, where the blue ACKs took `train`. */
static __always_inline int safe(struct startup *s, __u64 train)
{
	__u64 dt, before, ahead, k = s->round - s->min_round, now = s->samples ? s->least : s->min;

	if (s->round == 2)
		return s->min > 10 * MS && train < s->min / 4;
	if (s->round < 3 || s->round >= ROUNDS + 2)
		return 0;
	dt = train << (s->round - 2 & 31);
	before = s->last_train << (s->round - 3 & 31);
	ahead = mul_div(dt, dt, MAX(before, 1));
	return ahead <= s->min && now * (k + 1) <= s->min * (k + 1) + s->min * k / 8;
}

/* On the last blue ACK of a round, decides what to send in addition. */
static __always_inline void plan(struct startup *s, struct facts *f)
{
	__u64 size = blue_size(s, f), train, red, red_acks, limit, guarded, bits;
	__u32 r = s->round;

	if (!s->min)
		return;
	train = mul_div(f->now_ns - s->began, size / 2, s->blue);
	if (s->slow || r >= 31 || r < 2 || !safe(s, train)) {
		s->slow = 1;
		return;
	}
	s->last_train = train;
	red = size * ((1ull << (r - 1 & 31)) - 1);
	red_acks = size / 2 * ((1ull << (r - 2 & 31)) - 1);
	limit = sub((__u64)f->cwnd * f->mss + (__u64)f->acked * f->mss + red, red_acks);
	guarded = s->min >> (r - 1 & 31);
	if (s->min == guarded || guarded <= train)
		return;
	bits = rate_of(red, s->min - guarded);
	s->jumps++;
	s->planned = 1;
	set_cwnd(f, MAX(limit, (__u64)f->cwnd * f->mss));
	f->pace = bits;
}

static __always_inline __u32 found(struct startup *s, struct facts *f, __u64 rtt, __u32 was_blue)
{
	__u32 jumps = MIN(s->jumps, 31);
	__u64 cwnd = (__u64)f->cwnd * f->mss, rise;

	if (f->cwnd < LOW_WINDOW)
		return WHY_NONE;
	if (s->has_cap && cwnd > s->cap)
		return WHY_ACK_TRAIN;
	if (!s->has_cap && (was_blue || !s->jumps) && sub(f->now_ns, s->last_ack) <= ACK_DELTA) {
		s->last_ack = f->now_ns;
		if (sub(f->now_ns, s->began) << jumps > s->min / 2) {
			s->has_cap = 1;
			s->cap = cwnd + s->blue * ((1ull << jumps) - 1);
		}
	}
	s->least = s->samples ? MIN(s->least, rtt) : rtt;
	s->samples++;
	rise = MAX(s->min / 8, 4 * MS);
	rise = MIN(rise, 16 * MS);
	return s->samples > MIN_SAMPLES && s->least > s->min + rise ? WHY_DELAY : WHY_NONE;
}

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	s->round = 1;
	s->slow = !ROUNDS;
	f->pace = PACE_HOST;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US, grow = f->earned;
	__u32 was_blue, why;

	if (s->sent < blue_size(s, f)) {
		s->sent += f->sent_since;
		s->next_tail = f->next;
	}
	if (rtt && (!s->min || rtt < s->min)) {
		s->min = rtt;
		s->min_round = s->round;
	}
	if (!s->begun || f->acked_bytes > s->head) {
		s->round++;
		s->tail = s->next_tail;
		s->blue_left = s->begun = 1;
		s->head = f->next;
		s->began = s->last_ack = f->now_ns;
		s->sent = s->blue = s->planned = s->samples = 0;
		f->pace = PACE_HOST;
	}
	was_blue = s->blue_left;
	if (s->blue_left && f->acked_bytes >= s->tail) {
		s->blue_left = 0;
		if (!s->has_cap)
			plan(s, f);
	} else if (!was_blue && s->planned) {
		f->earned = 0;	/* the plan includes the growth by red ACKs */
	}
	why = rtt ? (s->min ? found(s, f, rtt, was_blue) : WHY_NONE) : WHY_NONE;
	if (was_blue)
		s->blue += grow;
	if (!why)
		return;
	f->why = why;
	f->earned = 0;
	f->set = 0;
	f->pace = 0;
	if (s->jumps > 1)
		set_cwnd(f, (__u64)MIN(f->inflight, f->cwnd) * f->mss);
}

#include "hooks.h"
