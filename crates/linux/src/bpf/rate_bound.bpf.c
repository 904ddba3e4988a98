// SPDX-License-Identifier: GPL-2.0
/*
 * Rate-bound; the reference is `rate_bound.rs` with few=0: the kernel reduces cwnd at each loss, so every loss ends it. Rounds
 * end by the cumulative acknowledgement, because a control is not called for an ACK that only brings SACK blocks.
 */
#include "startup.h"
#define NAME "ss_rbound"
#define ON_CONGESTION
#ifdef STOCK
#define FAST 2500000ull
#define OVER 1250000ull
#define CREEP 250000ull
#define FOLLOW 300000ull
#define KEEP 1250000ull
#define NOISE 1
#define BRAKE 1
#else
#define FAST PARAM(0)
#define OVER PARAM(1)
#define CREEP PARAM(2)
#define FOLLOW PARAM(3)
#define KEEP PARAM(4)
#define NOISE PARAM(5)
#define BRAKE PARAM(6)
#endif

#define POINTS 8
#define BETA 7			/* tenths */
#define NONE (~0ull)		/* no rate */

struct point {
	__u64 came;		/* ns */
	__u64 left;		/* when the newest packet delivered had been sent, ns */
	__u64 before;		/* bytes delivered before it */
};

struct startup {
	__u64 least;		/* the least RTT sample, ns; 0: none */
	__u64 round_end;	/* valid if in_round */
	__u64 began;		/* ns */
	__u64 before;		/* bytes delivered before the round */
	__u64 flight;		/* bytes in flight when it began */
	__u64 peak;		/* the most in flight in it */
	struct point first, quarter, half, newest; /* of its train; the first is valid if in_train */
	__u64 shown;		/* the rate that the train of the last round showed, bits per second */
	__u64 past_flight;	/* the last round that the application did not limit, if past_took */
	__u64 past_took;
	__u64 past_rate;
	__u64 noise;		/* ns */
	__u64 round_least;	/* the least RTT sample of the round, ns; 0: none */
	__u64 floor;		/* that of the last round that met no queue, or a lower one since, ns */
	__u32 points;
	__u32 in_round, in_train, limited, has_shown;
};

static __always_inline __u64 times(__u64 a, __u64 millionths)
{
	return mul_div(a, millionths, ONE);
}

/* The rate from one point to another; NONE if no time passed. */
static __always_inline __u64 rate_between(struct point *a, struct point *b)
{
	__u64 took = sub(b->came, a->came);

	return took ? rate_of(sub(b->before, a->before), took) : NONE;
}

static __always_inline __u64 train_took(struct startup *s)
{
	return s->in_train ? sub(s->newest.came, s->first.came) : 0;
}

static __always_inline void train_add(struct startup *s, struct point *p, __u64 delivered)
{
	if (!s->in_train) {
		s->in_train = 1;
		s->points = 0;
		s->first = s->quarter = s->half = s->newest = *p;
		return;
	}
	if (!delivered || p->came == s->newest.came)
		return;
	s->newest = *p;
	s->points++;
	if (s->half.came == s->first.came) {
		s->half = *p;
	} else if (sub(p->came, s->first.came) >= sub(s->half.came, s->first.came) * 2) {
		s->quarter = s->half;
		s->half = *p;
	}
}

/*
 * The rate that this round's train shows, if it is believed: it is long, or the path spread it and its parts agree. Not inlined, since
 * the stack of a program has 512 bytes.
 */
__attribute__((noinline)) __u64 rate_now(struct startup *s, __u64 base)
{
	if (!s)
		return NONE;

	__u64 took = train_took(s), sent = sub(s->newest.left, s->first.left), whole, begin, tail;
	int many = s->points >= POINTS;

	if (!took || s->limited || s->points < POINTS / 2)
		return NONE;
	tail = rate_between(&s->quarter, &s->newest);
	if (tail == NONE)
		return NONE;
	if (took * (many ? 4 : 2) < base) {
		if (!many || took <= sent + sent / 8)
			return NONE;
		begin = rate_between(&s->first, &s->quarter);
		if (begin == NONE || MIN(begin, tail) < mul_div(MAX(begin, tail), 3, 4))
			return NONE;
	}
	whole = rate_between(&s->first, &s->newest);
	return MAX(whole, tail);
}

/* The rate to expect of a larger flight than the last if this share of the growth shows in it. */
static __always_inline __u64 rate_for(__u64 rate, __u64 last, __u64 flight, __u64 share)
{
	return mul_div(rate, last + times(sub(flight, last), share), last);
}

/* Judges a round beside the last one. Fills the decision if a larger flight has brought no higher rate. */
static __always_inline void judge(struct startup *s, struct facts *f, __u64 base, __u64 flight, __u64 took, __u64 rate)
{
	__u64 fills;

	if (NOISE && rate >= rate_for(s->past_rate, s->past_flight, flight, ONE / 2)) {
		s->floor = MAX(s->floor, s->round_least ? s->round_least : base);
		base = MAX(base, s->floor);
		s->noise = MAX(s->noise, MIN(sub(MIN(took, s->past_took), base), base));
	}
	if (train_took(s) < mul_div(took, 7, 8) || rate >= rate_for(s->past_rate, s->past_flight, flight, FOLLOW))
		return;
	fills = times(rate_over(MAX(rate, s->past_rate), base + s->noise), KEEP);
	set_cwnd(f, MIN(MAX(fills, mul_div(flight, BETA, 10)), (__u64)f->cwnd * f->mss));
	f->why = WHY_RATE_FLAT;
}

/* Ends a round. */
static __always_inline void end_round(struct startup *s, struct facts *f, __u64 before, __u64 base)
{
	__u64 flight = sub(before, s->before), took = sub(f->now_ns, s->began), rate = took ? rate_of(flight, took) : NONE;

	if (rate == NONE || s->limited)
		return;
	s->shown = rate_now(s, base);
	s->has_shown = s->shown != NONE;
	if (s->past_took && flight > s->past_flight + s->past_flight / 8)
		judge(s, f, base, flight, took, rate);
	s->past_flight = flight;
	s->past_took = took;
	s->past_rate = rate;
}

/* The largest window of this round, in bytes. */
static __always_inline __u64 cap(struct startup *s, __u64 base)
{
	__u64 now = rate_now(s, base), most = s->flight * 2, fills = 0;

	if (BRAKE && now != NONE && train_took(s) * 4 >= base)
		most = s->flight + MIN(MAX(times(s->flight, CREEP), mul_div(s->flight, s->noise * 2, base)), s->flight);
	if (s->has_shown)
		fills = s->shown;
	if (now != NONE)
		fills = MAX(fills, now);
	fills = times(rate_over(fills, base + s->noise), OVER);
	return MAX(MIN(fills, times(s->flight, FAST)), most);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US, delivered = f->acked_since, inflight = (__u64)f->prior * f->mss, base, before, most;
	struct point p;

	if (rtt && (!s->least || rtt < s->least))
		s->least = rtt;
	base = f->min_rtt_us ? f->min_rtt_us * US : s->least;
	if (!base)
		return;
	base = MAX(base, s->floor);
	before = sub((__u64)f->delivered * f->mss, delivered);
	if (!s->in_round || f->acked_bytes > s->round_end) {
		if (s->in_round)
			end_round(s, f, before, base);
		s->in_round = 1;
		s->round_end = f->next;
		s->began = f->now_ns;
		s->before = before;
		s->flight = s->peak = MAX(inflight, f->mss);
		s->limited = s->in_train = 0;
		s->round_least = 0;
		if (f->why)
			return;
	}
	if (rtt) {
		s->round_least = s->round_least ? MIN(s->round_least, rtt) : rtt;
		s->floor = MIN(s->floor, rtt);
	}
	s->limited |= !f->limited;
	s->peak = MAX(s->peak, inflight);
	p.came = f->now_ns;
	p.left = f->newest_us * US;
	p.before = before;
	train_add(s, &p, delivered);
	most = cap(s, base);
	f->earned = MIN(times(f->earned, most > s->flight * 2 ? FAST - ONE : ONE), sub(most, (__u64)f->cwnd * f->mss));
}

/* A loss or a mark ends it with beta of the most in flight; after a timeout the kernel's rules hold. */
static __always_inline void on_congestion(struct startup *s, struct facts *f)
{
	__u64 left;

	if (f->kind == KIND_TIMEOUT)
		return;
	left = MAX(mul_div(MAX(s->peak, (__u64)f->inflight * f->mss), BETA, 10), 2ull * f->mss);
	set_cwnd(f, left);
	set_ssthresh(f, left);
}

#include "hooks.h"
