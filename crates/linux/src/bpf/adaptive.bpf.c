// SPDX-License-Identifier: GPL-2.0
/* Adaptive start of TCP Westwood; the reference is `adaptive.rs`. */
#include "startup.h"
#define NAME "ss_astart"
#define OWN_SSTHRESH
#ifdef STOCK
#define TAU ONE
#else
#define TAU PARAM(0)
#endif

struct startup {
	__u64 eligible;		/* rate estimate, bits per second; valid if has_eligible */
	__u64 since;		/* when the sample began, ns; 0: none yet */
	__u64 bytes;		/* delivered in it */
	__u64 seen;		/* acked_bytes at the last ACK */
	__u64 round_end;	/* valid if in_round */
	__u64 round_since;	/* ns */
	__u64 round_bytes;
	__u64 rate;		/* of the previous round; valid if has_rate */
	__u32 in_round, has_rate, has_eligible;
};

/* The length of a sample: short while the path delivers what cwnd permits, up to one RTT while it does not. */
static __always_inline __u64 interval(struct startup *s, struct facts *f)
{
	__u64 cwnd = (__u64)f->cwnd * f->mss;
	__u64 got = s->has_rate ? rate_over(s->rate, f->min_rtt_us * US) : cwnd;

	return mul_div(f->srtt_us * US, sub(cwnd, got), cwnd);
}

static __always_inline void sample(struct startup *s, struct facts *f)
{
	__u64 dt = f->now_ns - s->since, tau = mul_div(f->srtt_us * US, TAU, ONE) * 2, rate, kept, added;

	rate = rate_of(s->bytes, dt);
	if (s->has_eligible) {
		kept = mul_div(s->eligible, sub(tau, dt), tau + dt);
		added = dt >= tau ? rate : mul_div(rate, dt * 2, tau + dt);
		rate = kept + added;
	}
	s->eligible = rate;
	s->has_eligible = 1;
}

/* The product of the estimate and the minimum RTT, at least two segments; 0 if there is none. */
static __always_inline __u64 pipe(struct startup *s, struct facts *f)
{
	__u64 bytes;

	if (!s->has_eligible || !f->min_rtt_us)
		return 0;
	bytes = rate_over(s->eligible, f->min_rtt_us * US);
	return MAX(bytes, 2ull * f->mss);
}

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	set_ssthresh(f, (__u64)f->iw * f->mss);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 delivered = f->acked_bytes - s->seen, target;

	s->seen = f->acked_bytes;
	s->bytes += delivered;
	s->round_bytes += delivered;
	if (!s->in_round || f->acked_bytes > s->round_end) {
		if (s->in_round) {
			s->has_rate = f->now_ns > s->round_since;
			s->rate = s->has_rate ? rate_of(s->round_bytes, f->now_ns - s->round_since) : 0;
			s->round_since = f->now_ns;
			s->round_bytes = 0;
		}
		if (!s->in_round && !s->since) {
			s->round_since = f->now_ns;
			s->round_bytes = 0;
		}
		s->in_round = 1;
		s->round_end = f->next;
	} else if (!s->since) {
		s->round_since = f->now_ns;
		s->round_bytes = 0;
	}
	if (!f->srtt_us || !f->min_rtt_us)
		return;
	if (s->since) {
		if (f->now_ns <= s->since || f->now_ns - s->since < interval(s, f))
			return;
		sample(s, f);
	}
	s->since = f->now_ns;
	s->bytes = 0;
	target = pipe(s, f);
	if (target && (f->ssthresh >= TCP_INFINITE_SSTHRESH || (__u64)f->ssthresh * f->mss < target))
		set_ssthresh(f, target);
}

/* As in Westwood, cwnd becomes the estimated BDP instead of half. */
#define ON_CONGESTION
static __always_inline void on_congestion(struct startup *s, struct facts *f)
{
	__u64 target = pipe(s, f);

	if (!target)
		return;
	set_ssthresh(f, target);
	set_cwnd(f, MIN(target, (__u64)f->cwnd * f->mss));
}

#include "hooks.h"
