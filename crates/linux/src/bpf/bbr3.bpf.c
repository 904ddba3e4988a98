// SPDX-License-Identifier: GPL-2.0
/*
 * BBR version 3 (draft-ietf-ccwg-bbr-06): a complete congestion control, which no avoidance follows; the reference is
 * `bbr/v3.rs`, whose names and order of functions these are. Windows are in bytes, rates in bits per second, times in ns.
 *
 * Its limits need the data in flight and the losses at the time at which a packet was sent. The kernel does not keep them, but
 * for each ACK it tells how much had been delivered when the newest acknowledged packet was sent. So a ring keeps flight and
 * losses of earlier ACKs by what had been delivered then; see `find_sent`.
 *
 * With QUICHE (bbr2_quiche.bpf.c) Startup and Drain are those of quiche's BBRv2; the reference is `bbr/v3/quiche.rs`.
 */
#include "startup.h"
#ifndef QUICHE
#define QUICHE 0
#define NAME "ss_bbr3"
#else
#define NAME "ss_bbr2q"
#endif
#ifdef STOCK
#define QUEUE_ROUNDS 0
#define LOSS_EVENTS 8
#else
#define QUEUE_ROUNDS PARAM(0)
#define LOSS_EVENTS PARAM(1)
#endif

#define UNLIMITED (~0ull)	/* no limit of window or rate */
#define MIN_SEGMENTS 4
#define FULL_ROUNDS 3
#define FULL_LOSSES 6
#define DRAIN_ROUNDS 3
#define RENO_ROUNDS 63
#define MS (1000 * US)
#define PROBE_RTT_TIME (200 * MS)
#define PROBE_RTT_INTERVAL (5000 * MS)
#define MIN_RTT_AGE (10000 * MS)
#define WAIT (2000 * MS)
#define WAIT_SPREAD (1000 * MS)

/* Gains, in units of 1/1024. */
enum { UNIT = 1024, GAIN_STARTUP = 2839, GAIN_UP = 1280, GAIN_DOWN = 922 };
enum { GAIN_FIRST = QUICHE ? 2954 : GAIN_STARTUP, GAIN_DRAIN = QUICHE ? 355 : 512, GAIN_QUEUE = 1792 };
enum { WINDOW = 2048, WINDOW_UP = 2304, WINDOW_PROBE_RTT = 512 };

enum mode { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT, NO_MODE };

/* Which packets of a probe are being acknowledged. */
enum feedback { FEEDBACK_NONE, REFILLING, STARTING, ARRIVING, STOPPING };

/* Flight and losses after an ACK, in segments, and the end of the data sent by then. */
struct past {
	__u32 delivered, lost, inflight, next;
};

#define PASTS 256		/* a power of two */

struct candidate {
	__u64 round, value;
};

struct startup {
	__u64 cwnd, saved_cwnd, rate, bandwidth;
	__u64 max_bandwidth[2];	/* of the previous period and of this one */
	__u64 full_base, rounds, round_ends, drain_began;
	__u64 held_from, held_to;	/* samples of packets sent with this much delivered are limited by ProbeRTT */
	__u64 inflight_longterm, inflight_shortterm, bandwidth_shortterm;
	__u64 longterm_before, shortterm_before, bandwidth_before;
	__u64 inflight_latest, bandwidth_latest, loss_round_ends;
	__u64 cycle_rounds, cycle_began, wait, cycle_acked, per_segment;
	__u64 random;
	__u64 min_rtt, min_rtt_at, recent_rtt, recent_rtt_at, probe_rtt_done;
	__u64 clump_since, clump;
	struct candidate extra[3];
	__u32 mode, undo_mode, feedback, filled;
	__u32 full_rounds, full_now, round_start, has_rtt, held;
	__u32 lossy, ranges, loss_round_start;
	__u32 samples, raised_rounds, too_high, cautious;
	__u32 rtt_expired, round_done, recovering, restarts;
	/* Of quiche: losses, least flight and greatest delivery of this round; rounds in a row with a queue. */
	__u64 round_lost, least_flight, most_delivered;
	__u32 loss_events, queued_rounds, acked_before;
	/* Beyond the reference: */
	__u32 ca_state;		/* of the kernel */
	__u32 undone;		/* the kernel has found that all retransmissions were spurious */
	__u32 lost;		/* segments reported as lost so far */
	__u32 mss;
	__u32 was_unpaced;	/* before this control */
	__u32 newest_delivered, newest_inflight, newest_lost, newest_limited; /* see facts.h; of the last ACK */
	__u32 head;		/* number of records ever made */
	struct past past[PASTS];
};

#include "connection.h"

/* A connection for which there is no memory runs Reno, without the kernel's rate reduction. */
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

/* Delivery-rate sample of an ACK. */
struct sample {
	__u64 delivered, rate;
	__u32 app_limited, valid;
};

static __always_inline __u64 bytes_of(struct facts *f, __u32 segments)
{
	return (__u64)segments * f->mss;
}

static __always_inline __u64 times(__u64 n, __u64 gain)
{
	return mul_div(n, gain, UNIT);
}

/* Times are whole microseconds, so this is exact for hours. */
static __always_inline __u64 bytes_over(__u64 bandwidth, __u64 ns)
{
	return mul_div(bandwidth, ns / US, 8000000);
}

static __always_inline __u64 max_bandwidth(struct startup *s)
{
	return MAX(s->max_bandwidth[0], s->max_bandwidth[1]);
}

/* SplitMix64; an integer below n, which is less than 2^32. */
static __always_inline __u64 random_below(struct startup *s, __u64 n)
{
	__u64 z;

	s->random += 0x9e3779b97f4a7c15ull;
	z = s->random;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return ((z >> 32) * n + ((z & 0xffffffff) * n >> 32)) >> 32;
}

static __always_inline int probes_bandwidth(struct startup *s)
{
	return s->mode == STARTUP || s->mode == REFILL || s->mode == UP;
}

static __always_inline int in_probe_bw(struct startup *s)
{
	return s->mode >= DOWN && s->mode <= UP;
}

static __always_inline __u64 pacing_gain(struct startup *s)
{
	switch (s->mode) {
	case STARTUP:
		return GAIN_STARTUP;
	case DRAIN:
		return GAIN_DRAIN;
	case DOWN:
		return GAIN_DOWN;
	case UP:
		return GAIN_UP;
	}
	return UNIT;
}

/* Amounts of data in flight. */

static __always_inline __u64 product(struct startup *s, struct facts *f, __u64 bandwidth, __u64 gain)
{
	return s->min_rtt ? times(bytes_over(bandwidth, s->min_rtt), gain) : bytes_of(f, f->iw);
}

static __always_inline __u64 budget(struct startup *s, struct facts *f, __u64 window)
{
	__u64 burst = f->gso_max ? MIN(s->rate >> 13, f->gso_max) : f->mss;

	if (f->gso_max)
		burst = MAX(burst, 2 * f->mss);
	window = MAX(window, 3 * burst);
	window = MAX(window, bytes_of(f, MIN_SEGMENTS));
	return s->mode == UP ? window + 2 * f->mss : window;
}

static __always_inline __u64 wanted_inflight(struct startup *s, struct facts *f, __u64 bandwidth)
{
	return budget(s, f, product(s, f, bandwidth, UNIT));
}

static __always_inline __u64 target_inflight(struct startup *s, struct facts *f)
{
	return MIN(product(s, f, s->bandwidth, UNIT), s->cwnd);
}

/* More than 2 % of the flight has been lost since the newest acknowledged packet was sent. (The kernel's counters wrap.) */
static __always_inline int lost_too_much(struct facts *f)
{
	return bytes_of(f, f->lost - f->newest_lost) > bytes_of(f, f->newest_inflight) * 2 / 100;
}

/* Delivery-rate samples and rounds. */

static __always_inline void begin_round(struct startup *s, struct facts *f)
{
	s->round_ends = bytes_of(f, f->delivered);
}

static __always_inline struct sample take_sample(struct startup *s, struct facts *f)
{
	__u64 sent = bytes_of(f, f->newest_delivered);
	struct sample a = {};

	s->round_start = 0;
	if (!f->acked || !f->interval_us)
		return a;
	a.valid = 1;
	a.delivered = bytes_of(f, f->delivered - f->newest_delivered);
	a.rate = mul_div(a.delivered * 8, 1000000, f->interval_us);
	if (sent >= s->round_ends) {
		begin_round(s, f);
		s->rounds++;
		s->round_start = 1;
	}
	a.app_limited = f->newest_limited || (s->held && sent >= s->held_from && sent <= s->held_to);
	return a;
}

/* The limits that losses set. */

static __always_inline void note_delivery(struct startup *s, struct facts *f, struct sample *a)
{
	s->bandwidth_latest = MAX(s->bandwidth_latest, a->rate);
	s->inflight_latest = MAX(s->inflight_latest, a->delivered);
	s->loss_round_start = bytes_of(f, f->newest_delivered) >= s->loss_round_ends;
	if (s->loss_round_start)
		s->loss_round_ends = bytes_of(f, f->delivered);
}

static __always_inline void end_loss_round(struct startup *s)
{
	__u64 rate, flight;

	if (!s->loss_round_start)
		return;
	if (s->lossy && !probes_bandwidth(s)) {
		rate = s->bandwidth_shortterm == UNLIMITED ? max_bandwidth(s) : s->bandwidth_shortterm;
		s->bandwidth_shortterm = MAX(s->bandwidth_latest, mul_div(rate, 7, 10));
		flight = s->inflight_shortterm == UNLIMITED ? s->cwnd : s->inflight_shortterm;
		s->inflight_shortterm = MAX(s->inflight_latest, mul_div(flight, 7, 10));
	}
	s->lossy = 0;
}

static __always_inline void forget_short_term(struct startup *s)
{
	s->bandwidth_shortterm = s->inflight_shortterm = UNLIMITED;
}

static __always_inline __u64 with_headroom(struct startup *s, struct facts *f)
{
	__u64 bound = s->inflight_longterm;
	__u64 others;

	if (bound == UNLIMITED)
		return UNLIMITED;
	others = MAX(mul_div(bound, 15, 100), f->mss);
	return MAX(sub(bound, others), bytes_of(f, MIN_SEGMENTS));
}

static __always_inline __u64 bounded_window(struct startup *s, struct facts *f)
{
	__u64 bound = UNLIMITED;

	if (s->mode == DOWN || s->mode == REFILL || s->mode == UP)
		bound = s->inflight_longterm;
	else if (s->mode == PROBE_RTT || s->mode == CRUISE)
		bound = with_headroom(s, f);
	bound = MIN(bound, s->inflight_shortterm);
	return MAX(bound, bytes_of(f, MIN_SEGMENTS));
}

/* The model of the path. */

static __always_inline void raise_extra(struct startup *s, __u64 window, __u64 value)
{
	struct candidate new = { .round = s->rounds, .value = value };
	struct candidate *e = s->extra;
	__u64 age;

	if (value >= e[0].value || new.round - e[2].round > window) {
		e[0] = e[1] = e[2] = new;
		return;
	}
	if (value >= e[1].value)
		e[1] = e[2] = new;
	else if (value >= e[2].value)
		e[2] = new;
	age = new.round - e[0].round;
	if (age > window) {
		e[0] = e[1];
		e[1] = e[2];
		e[2] = new;
		if (new.round - e[0].round > window) {
			e[0] = e[1];
			e[1] = e[2];
			e[2] = new;
		}
	} else if (e[1].round == e[0].round && age > window / 4) {
		e[1] = e[2] = new;
	} else if (e[2].round == e[1].round && age > window / 2) {
		e[2] = new;
	}
}

static __always_inline void update_aggregation(struct startup *s, struct facts *f)
{
	__u64 expected = bytes_over(s->bandwidth, f->now_ns - s->clump_since);

	if (s->clump <= expected) {
		s->clump = expected = 0;
		s->clump_since = f->now_ns;
	}
	s->clump += bytes_of(f, f->acked);
	raise_extra(s, s->filled ? 10 : 1, MIN(sub(s->clump, expected), s->cwnd));
}

static __always_inline void reset_full(struct startup *s, __u64 base)
{
	s->full_base = base;
	s->full_rounds = s->full_now = 0;
}

static __always_inline void check_full(struct startup *s, struct sample *a)
{
	if (s->full_now || !s->round_start || a->app_limited)
		return;
	if (a->rate >= mul_div(s->full_base, 5, 4)) {
		reset_full(s, a->rate);
		return;
	}
	s->full_now = ++s->full_rounds >= FULL_ROUNDS;
	if (s->full_now && !s->filled)
		s->filled = WHY_RATE_FLAT;
}

/* What is measured in a round of quiche's Startup begins anew. */
static __always_inline void reset_round(struct startup *s)
{
	s->round_lost = s->most_delivered = s->loss_events = 0;
	s->least_flight = UNLIMITED;
}

static __always_inline void check_full_quiche(struct startup *s, struct facts *f, struct sample *a)
{
	__u64 max = max_bandwidth(s), bdp = product(s, f, max, UNIT);
	__u64 queue = MAX(product(s, f, max, GAIN_QUEUE), bdp + 2 * f->mss);
	__u64 least = MIN(s->least_flight, bytes_of(f, f->inflight)), most = MAX(s->most_delivered, a->delivered);
	__u64 flight = bytes_of(f, f->newest_inflight), lost = s->round_lost;
	__u32 events = s->loss_events, why = WHY_NONE;

	s->least_flight = least;
	s->most_delivered = most;
	if (!s->round_start)
		return;
	reset_round(s);
	if (max >= mul_div(s->full_base, 5, 4)) {
		reset_full(s, max);
		return;
	}
	if (!a->app_limited && ++s->full_rounds >= FULL_ROUNDS) {
		s->full_now = 1;
		why = WHY_RATE_FLAT;
	}
	s->queued_rounds = least < queue ? 0 : s->queued_rounds + 1;
	if (!why && QUEUE_ROUNDS && s->queued_rounds >= QUEUE_ROUNDS)
		why = WHY_ESTIMATE;
	if (!why && !a->app_limited && events >= LOSS_EVENTS && flight && lost > flight * 15 / 1000) {
		s->inflight_longterm = MAX(bdp, most);
		s->undo_mode = STARTUP;
		why = WHY_LOSS;
	}
	if (!s->filled)
		s->filled = why;
}

/* The cycle of ProbeBW. */

static __always_inline void start_down(struct startup *s, struct facts *f)
{
	s->lossy = 0;
	s->bandwidth_latest = s->inflight_latest = 0;
	s->per_segment = UNLIMITED;
	s->cycle_rounds = random_below(s, 2);
	s->wait = WAIT + random_below(s, WAIT_SPREAD);
	s->cycle_began = f->now_ns;
	s->feedback = STOPPING;
	begin_round(s, f);
	s->mode = DOWN;
}

static __always_inline void start_refill(struct startup *s, struct facts *f)
{
	forget_short_term(s);
	s->raised_rounds = 0;
	s->cycle_acked = 0;
	s->cautious = 0;
	s->feedback = REFILLING;
	begin_round(s, f);
	s->mode = REFILL;
}

static __always_inline void raise_slope(struct startup *s, struct facts *f)
{
	__u64 per_segment = s->cwnd >> (s->raised_rounds & 31);

	s->raised_rounds = MIN(s->raised_rounds + 1, 30);
	s->per_segment = MAX(per_segment, f->mss);
}

static __always_inline void start_up(struct startup *s, struct facts *f, struct sample *a)
{
	s->samples = 1;
	s->feedback = STARTING;
	begin_round(s, f);
	reset_full(s, a->valid ? a->rate : s->full_base);
	s->mode = UP;
	raise_slope(s, f);
}

static __always_inline int held_by_bound(struct startup *s, struct facts *f)
{
	return f->limited && s->cwnd >= s->inflight_longterm;
}

static __always_inline void probe_upward(struct startup *s, struct facts *f)
{
	__u64 segments;

	if (!held_by_bound(s, f))
		return;
	s->cycle_acked += bytes_of(f, f->acked);
	segments = s->cycle_acked / MAX(s->per_segment, 1);
	s->cycle_acked -= s->per_segment * segments;
	s->inflight_longterm += f->mss * segments;
	if (s->round_start)
		raise_slope(s, f);
}

/* Returns true if it chose the next mode. */
static __always_inline int adapt_long_term(struct startup *s, struct facts *f, struct sample *a)
{
	if (s->round_start && s->feedback == STARTING) {
		s->feedback = ARRIVING;
	} else if (s->round_start && s->feedback == STOPPING) {
		s->samples = 0;
		s->feedback = FEEDBACK_NONE;
		if (in_probe_bw(s)) {
			if (a->valid && !a->app_limited) {
				s->max_bandwidth[0] = s->max_bandwidth[1];
				s->max_bandwidth[1] = 0;
			}
			if (s->cautious && !s->too_high) {
				start_refill(s, f);
				return 1;
			}
		}
	}
	if (s->inflight_longterm != UNLIMITED && !lost_too_much(f)) {
		s->inflight_longterm = MAX(s->inflight_longterm, bytes_of(f, f->newest_inflight));
		if (s->mode == UP)
			probe_upward(s, f);
	}
	return 0;
}

static __always_inline int is_time_to_probe(struct startup *s, struct facts *f)
{
	__u64 reno = MIN(target_inflight(s, f) / MAX(f->mss, 1), RENO_ROUNDS);

	return f->now_ns > s->cycle_began + s->wait || s->cycle_rounds >= reno;
}

static __always_inline int is_time_to_cruise(struct startup *s, struct facts *f)
{
	__u64 inflight = bytes_of(f, f->inflight);

	return inflight <= with_headroom(s, f) && inflight <= wanted_inflight(s, f, max_bandwidth(s));
}

static __always_inline int is_time_to_go_down(struct startup *s, struct facts *f, struct sample *a)
{
	if (s->too_high && bytes_of(f, f->inflight) >= s->inflight_longterm) {
		s->cautious = 1;
		return 1;
	}
	if (held_by_bound(s, f)) {
		reset_full(s, a->valid ? a->rate : s->full_base);
		return 0;
	}
	return s->full_now;
}

static __always_inline void update_cycle(struct startup *s, struct facts *f, struct sample *a)
{
	if (!s->filled || adapt_long_term(s, f, a))
		return;
	switch (s->mode) {
	case DOWN:
		if (is_time_to_probe(s, f))
			start_refill(s, f);
		else if (is_time_to_cruise(s, f))
			s->mode = CRUISE;
		break;
	case CRUISE:
		if (is_time_to_probe(s, f))
			start_refill(s, f);
		break;
	case REFILL:
		if (s->round_start)
			start_up(s, f, a);
		break;
	case UP:
		if (is_time_to_go_down(s, f, a)) {
			s->too_high = 0;
			start_down(s, f);
		}
		break;
	}
}

/* Startup and Drain. */

static __always_inline void check_startup_done(struct startup *s, struct facts *f)
{
	__u32 ranges = s->ranges;

	if (!QUICHE && s->loss_round_start) {
		s->ranges = 0;
		if (s->recovering && ranges >= FULL_LOSSES && lost_too_much(f) && s->mode == STARTUP) {
			s->undo_mode = STARTUP;
			if (!s->filled)
				s->filled = WHY_LOSS;
			s->inflight_longterm = MAX(product(s, f, s->bandwidth, UNIT), s->inflight_latest);
		}
	}
	if (s->mode == STARTUP && s->filled) {
		s->mode = DRAIN;
		s->drain_began = s->rounds;
		set_ssthresh(f, wanted_inflight(s, f, s->bandwidth));
	}
}

static __always_inline int is_drained(struct startup *s, struct facts *f)
{
	__u64 inflight = bytes_of(f, f->inflight);

	if (QUICHE)
		return inflight <= product(s, f, max_bandwidth(s), UNIT);
	return inflight <= wanted_inflight(s, f, s->bandwidth) || s->rounds > s->drain_began + DRAIN_ROUNDS;
}

static __always_inline void check_drain_done(struct startup *s, struct facts *f)
{
	if (s->mode == DRAIN && is_drained(s, f))
		start_down(s, f);
}

/* ProbeRTT. */

static __always_inline void update_min_rtt(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US;

	s->rtt_expired = f->now_ns > s->recent_rtt_at + PROBE_RTT_INTERVAL;
	if (rtt && (s->rtt_expired || !s->recent_rtt || rtt < s->recent_rtt)) {
		s->recent_rtt = rtt;
		s->recent_rtt_at = f->now_ns;
	}
	if (s->recent_rtt && (f->now_ns > s->min_rtt_at + MIN_RTT_AGE || !s->min_rtt || s->recent_rtt < s->min_rtt)) {
		s->min_rtt = s->recent_rtt;
		s->min_rtt_at = s->recent_rtt_at;
	}
}

static __always_inline void save_window(struct startup *s)
{
	int reduced = s->recovering || s->mode == PROBE_RTT;

	s->saved_cwnd = reduced ? MAX(s->saved_cwnd, s->cwnd) : s->cwnd;
}

static __always_inline void restore_window(struct startup *s)
{
	s->cwnd = MAX(s->cwnd, s->saved_cwnd);
}

static __always_inline __u64 probe_rtt_window(struct startup *s, struct facts *f)
{
	return MAX(product(s, f, s->bandwidth, WINDOW_PROBE_RTT), bytes_of(f, MIN_SEGMENTS));
}

static __always_inline void check_probe_rtt_done(struct startup *s, struct facts *f)
{
	if (!s->probe_rtt_done || f->now_ns <= s->probe_rtt_done)
		return;
	s->recent_rtt_at = f->now_ns;
	restore_window(s);
	forget_short_term(s);
	if (s->filled) {
		start_down(s, f);
		s->mode = CRUISE;
	} else {
		s->mode = STARTUP;
	}
}

static __always_inline void stay_in_probe_rtt(struct startup *s, struct facts *f, int enters)
{
	__u64 delivered = bytes_of(f, f->delivered);

	if (enters)
		s->probe_rtt_done = 0;
	if (enters || !s->held)
		s->held_from = delivered;
	s->held_to = delivered + bytes_of(f, f->inflight);
	s->held = 1;
	if (s->probe_rtt_done) {
		s->round_done |= s->round_start;
		if (s->round_done)
			check_probe_rtt_done(s, f);
	} else if (bytes_of(f, f->inflight) <= probe_rtt_window(s, f)) {
		s->probe_rtt_done = f->now_ns + PROBE_RTT_TIME;
		s->round_done = 0;
		begin_round(s, f);
	}
}

static __always_inline void check_probe_rtt(struct startup *s, struct facts *f)
{
	int enters = s->mode != PROBE_RTT && s->rtt_expired && !s->restarts;

	if (enters) {
		s->mode = PROBE_RTT;
		save_window(s);
		s->feedback = STOPPING;
		begin_round(s, f);
	}
	if (s->mode == PROBE_RTT)
		stay_in_probe_rtt(s, f, enters);
	if (f->acked)
		s->restarts = 0;
}

/* Window and pacing. */

/* The window per smoothed RTT, or per millisecond before there is one, times the first gain. */
static __always_inline __u64 nominal_rate(struct startup *s, struct facts *f)
{
	__u64 us = f->srtt_us ? f->srtt_us : 1000;

	return times(mul_div(s->cwnd * 8, 1000000, us), GAIN_FIRST);
}

static __always_inline void pace_at(struct startup *s, struct facts *f, __u64 gain)
{
	__u64 rate = mul_div(s->bandwidth, gain * 99, 102400);

	if (!s->has_rtt && f->srtt_us) {
		s->has_rtt = 1;
		s->rate = nominal_rate(s, f);
	}
	if (s->filled || rate > s->rate)
		s->rate = rate;
}

/* With the first ACK the rate is that of the initial window per RTT. */
static __always_inline void slow_first_pace(struct startup *s, struct facts *f)
{
	if (!s->acked_before && s->min_rtt)
		s->rate = mul_div(s->cwnd * 8, 1000000, s->min_rtt / US);
	s->acked_before |= f->acked != 0;
}

static __always_inline void set_window(struct startup *s, struct facts *f)
{
	__u64 gain = s->mode == UP ? WINDOW_UP : s->mode == PROBE_RTT ? WINDOW_PROBE_RTT : WINDOW;
	__u64 most = budget(s, f, product(s, f, s->bandwidth, gain) + s->extra[0].value);
	__u64 window = s->cwnd;

	if (s->filled)
		window = MIN(window + bytes_of(f, f->acked), most);
	else if (window < most || f->delivered < f->iw)
		window += bytes_of(f, f->acked);
	window = MAX(window, bytes_of(f, MIN_SEGMENTS));
	if (QUICHE && !s->filled && s->cwnd < 2 * bytes_of(f, f->iw))
		window = MAX(window, s->cwnd + bytes_of(f, f->acked));
	if (QUICHE)
		window = MAX(window, bytes_of(f, f->iw));
	if (s->mode == PROBE_RTT)
		window = MIN(window, probe_rtt_window(s, f));
	s->cwnd = MIN(window, bounded_window(s, f));
}

/* Events. */

static __always_inline void on_established(struct startup *s, struct facts *f)
{
	s->cwnd = bytes_of(f, f->iw);
	s->undo_mode = NO_MODE;
	s->inflight_longterm = s->longterm_before = UNLIMITED;
	s->shortterm_before = s->bandwidth_before = UNLIMITED;
	forget_short_term(s);
	s->random = f->now_ns + f->dport;
	s->min_rtt = f->srtt_us * US;
	s->min_rtt_at = s->recent_rtt_at = s->clump_since = f->now_ns;
	s->has_rtt = f->srtt_us != 0;
	if (QUICHE)
		reset_round(s);
	s->rate = nominal_rate(s, f);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	struct sample a = take_sample(s, f);

	if (a.valid) {
		note_delivery(s, f, &a);
		s->cycle_rounds += s->round_start;
		if (!a.app_limited || a.rate >= max_bandwidth(s))
			s->max_bandwidth[1] = MAX(s->max_bandwidth[1], a.rate);
		end_loss_round(s);
		update_aggregation(s, f);
		if (QUICHE && s->mode == STARTUP)
			check_full_quiche(s, f, &a);
		else
			check_full(s, &a);
		check_startup_done(s, f);
	}
	check_drain_done(s, f);
	update_cycle(s, f, &a);
	update_min_rtt(s, f);
	check_probe_rtt(s, f);
	if (a.valid && s->loss_round_start) {
		s->bandwidth_latest = a.rate;
		s->inflight_latest = a.delivered;
	}
	s->bandwidth = MIN(max_bandwidth(s), s->bandwidth_shortterm);
	pace_at(s, f, pacing_gain(s));
	if (QUICHE)
		slow_first_pace(s, f);
	set_window(s, f);
}

static __always_inline void on_congestion(struct startup *s, struct facts *f)
{
	if (f->cut || !s->lossy) {
		save_window(s);
		s->undo_mode = NO_MODE;
		s->longterm_before = s->inflight_longterm;
		s->shortterm_before = s->inflight_shortterm;
		s->bandwidth_before = s->bandwidth_shortterm;
	}
	s->recovering = 1;
	if (!s->lossy) {
		s->loss_round_ends = bytes_of(f, f->delivered);
		s->ranges = 0;
	}
	s->lossy = 1;
	/* One for each ACK with losses. */
	s->ranges++;
	if (s->samples && lost_too_much(f)) {
		s->too_high = 1;
		s->samples = 0;
		if (!f->newest_limited)
			s->inflight_longterm = MAX(bytes_of(f, f->newest_inflight), mul_div(target_inflight(s, f), 7, 10));
		if (s->mode == UP) {
			s->undo_mode = UP;
			start_down(s, f);
		}
	}
	if (f->kind == KIND_TIMEOUT)
		s->cwnd = bytes_of(f, f->inflight + 1);
}

/* Returns true if Startup continues, because the losses that ended it were spurious. */
static __always_inline int on_recovered(struct startup *s, struct facts *f)
{
	__u32 ended = s->undo_mode;

	s->recovering = 0;
	restore_window(s);
	if (f->kind != KIND_UNDO)
		return 0;
	reset_full(s, 0);
	s->lossy = 0;
	s->inflight_longterm = MAX(s->inflight_longterm, s->longterm_before);
	s->inflight_shortterm = MAX(s->inflight_shortterm, s->shortterm_before);
	s->bandwidth_shortterm = MAX(s->bandwidth_shortterm, s->bandwidth_before);
	s->undo_mode = NO_MODE;
	if (ended == STARTUP && s->mode != STARTUP) {
		s->filled = 0;
		if (s->mode != PROBE_RTT)
			s->mode = STARTUP;
		return 1;
	}
	if (ended == UP && s->mode != UP && s->mode != PROBE_RTT)
		start_refill(s, f);
	return 0;
}

static __always_inline void on_idle(struct startup *s, struct facts *f)
{
	s->restarts = 1;
	s->clump_since = f->now_ns;
	if (in_probe_bw(s))
		pace_at(s, f, UNIT);
	else if (s->mode == PROBE_RTT)
		check_probe_rtt_done(s, f);
}

/* What the kernel does not keep. */

/*
 * Records flight and losses: not after every ACK, but after each 1/128 of the flight, so that the ring covers two round trips,
 * and early after losses.
 */
static __always_inline void record_past(struct startup *s, struct facts *f, __u32 next)
{
	struct past *last = &s->past[(s->head - 1) & (PASTS - 1)];
	__u32 since = f->delivered - last->delivered + 4 * (f->lost - last->lost);
	struct past *new = &s->past[s->head & (PASTS - 1)];

	if (s->head && since <= f->inflight / 128)
		return;
	new->delivered = f->delivered;
	new->lost = f->lost;
	new->inflight = f->inflight;
	new->next = next;
	s->head++;
}

/*
 * Estimates flight and losses at the sending of a packet that ends with `end`, when `delivered` segments had been delivered:
 * those of the last record before it, less what was delivered since then, plus the data sent since then up to this packet.
 */
static __always_inline void find_sent(struct startup *s, struct facts *f, __u32 delivered, __u32 end)
{
	__u32 back = 0, last = MIN(s->head, PASTS) - 1, step, sent;
	struct past *found;

	/* `back` counts from the newest record. */
	for (step = PASTS / 2; step; step /= 2) {
		__u32 newer = back + step - 1;

		if (newer < last && (__s32)(s->past[(s->head - 1 - newer) & (PASTS - 1)].delivered - delivered) > 0)
			back += step;
	}
	found = &s->past[(s->head - 1 - back) & (PASTS - 1)];
	sent = (__s32)(end - found->next) > 0 ? (end - found->next + f->mss - 1) / f->mss : 0;
	f->newest_inflight = sub(found->inflight + sent, sub(delivered, found->delivered));
	f->newest_lost = found->lost;
}

/* The callbacks. */

static __always_inline void read_newest(struct startup *s, struct facts *f)
{
	f->newest_delivered = s->newest_delivered;
	f->newest_inflight = s->newest_inflight;
	f->newest_lost = s->newest_lost;
	f->newest_limited = s->newest_limited;
}

/* Applies window and rate, and writes the event. The end of Startup is reported at the end of Drain. */
static __always_inline void apply(struct sock *sk, struct conn *c, struct facts *f)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct startup *s = &c->s;

	if (c->first && s->filled && in_probe_bw(s))
		end_startup(c, f, s->filled);
	f->set = MAX(s->cwnd / f->mss, 1);
	f->pace = s->rate;
	tp->snd_cwnd = MIN(f->set, tp->snd_cwnd_clamp);
	sk->sk_pacing_rate = MIN(MAX(s->rate / 8, 1), sk->sk_max_pacing_rate);
	if (f->threshold)
		tp->snd_ssthresh = f->threshold;
	f->cwnd_after = tp->snd_cwnd;
	f->ssthresh_after = tp->snd_ssthresh;
	write_event(f);
	f->threshold = f->why = 0;
	f->asked = c->asked;
}

SEC("struct_ops/ss_init")
void BPF_PROG(ss_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;
	struct conn *c;

	c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c) {
		__sync_fetch_and_add(&counts.without_storage, 1);
		return;
	}
	__sync_fetch_and_add(&counts.started, 1);
	c->iw = tp->snd_cwnd;
	c->asked = c->first = 1;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (sk->sk_pacing_status == SK_PACING_NONE) {
		c->s.was_unpaced = 1;
		sk->sk_pacing_status = SK_PACING_NEEDED;
	}
	c->s.lost = tp->lost;
	c->s.mss = MAX(tp->mss_cache, 1);
	read_facts(sk, c, KIND_BEGIN, 0, &f);
	on_established(&c->s, &f);
	record_past(&c->s, &f, tp->snd_nxt);
	apply(sk, c, &f);
}

/* May be called twice for a connection (6.1, 6.12, after a disconnect). */
SEC("struct_ops/ss_release")
void BPF_PROG(ss_release, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (!c)
		return;
	read_facts(sk, c, KIND_END, 0, &f);
	if (c->first)
		end_startup(c, &f, WHY_NONE);
	if (c->s.was_unpaced)
		sk->sk_pacing_status = SK_PACING_NONE;
	write_event(&f);
	__sync_fetch_and_add(&counts.ended, 1);
	bpf_sk_storage_delete(&conns, sk);
}

static __always_inline void recovered(struct sock *sk, struct conn *c, struct facts *f)
{
	f->kind = c->s.undone ? KIND_UNDO : KIND_RECOVERED;
	c->s.undone = 0;
	if (on_recovered(&c->s, f)) {
		f->threshold = c->s.mode == STARTUP ? TCP_INFINITE_SSTHRESH : 0;
		if (!c->first && c->left < WHY_MAX) {
			__sync_fetch_and_sub(&counts.exits[c->left], 1);
			c->asked = c->first = 1;
		}
	}
	apply(sk, c, f);
}

static __always_inline void lost(struct sock *sk, struct conn *c, struct facts *f, __u32 kind)
{
	f->kind = kind;
	f->cut = !c->s.recovering;
	if (QUICHE) {
		c->s.round_lost += bytes_of(f, f->lost - c->s.lost);
		c->s.loss_events++;
	}
	c->s.lost = f->lost;
	on_congestion(&c->s, f);
	apply(sk, c, f);
	f->cut = 0;
}

static __always_inline void control(struct sock *sk, const struct rate_sample *rs)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct startup *s;
	struct facts f;

	if (!c) {
		if (rs->acked_sacked)
			tcp_reno_cong_avoid(sk, 0, rs->acked_sacked);
		return;
	}
	s = &c->s;
	c->rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
	read_facts(sk, c, KIND_ACK, rs->acked_sacked, &f);
	if (f.mss != s->mss || f.delivered < c->delivered) {
		/* Rounds are counted in bytes delivered: begin them anew with another MSS, and when the kernel's counter wraps. */
		s->mss = f.mss;
		s->loss_round_ends = s->round_ends = bytes_of(&f, f.delivered);
	}
	if (rs->acked_sacked && rs->prior_mstamp) {
		find_sent(s, &f, rs->prior_delivered, rs->last_end_seq);
		s->newest_delivered = f.newest_delivered = rs->prior_delivered;
		s->newest_inflight = f.newest_inflight;
		s->newest_lost = f.newest_lost;
		s->newest_limited = f.newest_limited = rs->is_app_limited;
		f.interval_us = rs->interval_us > 0 && rs->delivered > 0 ? rs->interval_us : 0;
	} else {
		read_newest(s, &f);
	}
	if (s->undone || (s->recovering && s->ca_state < TCP_CA_Recovery))
		recovered(sk, c, &f);
	if (f.lost != s->lost)
		lost(sk, c, &f, KIND_LOSS);
	f.kind = KIND_ACK;
	on_ack(s, &f);
	apply(sk, c, &f);
	c->sent = f.sent_bytes;
	c->acked = f.acked_bytes;
	c->delivered = f.delivered;
	record_past(s, &f, tp->snd_nxt);
}

/* The arguments of cong_control are sk, ack, flag and the sample since 6.10; before, sk and the sample. */
#if !defined(STOCK) || defined(BEFORE_6_10)
SEC("struct_ops/ss_control_v1")
void BPF_PROG(ss_control_v1, struct sock *sk, const struct rate_sample *rs)
{
	control(sk, rs);
}
#endif

#ifndef BEFORE_6_10
SEC("struct_ops/ss_control")
void BPF_PROG(ss_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	control(sk, rs);
}
#endif

SEC("struct_ops/ss_ssthresh")
__u32 BPF_PROG(ss_ssthresh, struct sock *sk)
{
	if (!bpf_sk_storage_get(&conns, sk, 0, 0))
		return tcp_reno_ssthresh(sk);
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

/* Applied with the ACK that showed it. */
SEC("struct_ops/ss_undo")
__u32 BPF_PROG(ss_undo, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (c)
		c->s.undone = 1;
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC("struct_ops/ss_state")
void BPF_PROG(ss_state, struct sock *sk, __u8 new_state)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;

	if (!c) {
		if (new_state == TCP_CA_CWR || new_state == TCP_CA_Recovery)
			tp->snd_cwnd = tp->snd_ssthresh;
		return;
	}
	c->s.ca_state = new_state;
	if (new_state != TCP_CA_Loss)
		return;
	c->rtt_us = 0;
	read_facts(sk, c, KIND_TIMEOUT, 0, &f);
	read_newest(&c->s, &f);
	if (f.lost != c->s.lost)
		lost(sk, c, &f, KIND_TIMEOUT);
}

/* The application had nothing to send until now, and nothing is in flight. */
static __always_inline void start_after_idle(struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;

	if (!c || !tp->app_limited)
		return;
	c->rtt_us = 0;
	read_facts(sk, c, KIND_IDLE, 0, &f);
	read_newest(&c->s, &f);
	on_idle(&c->s, &f);
	apply(sk, c, &f);
}

SEC("struct_ops/ss_event")
void BPF_PROG(ss_event, struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_TX_START)
		start_after_idle(sk);
}

#ifndef STOCK
SEC("struct_ops/ss_tx_start")
void BPF_PROG(ss_tx_start, struct sock *sk)
{
	start_after_idle(sk);
}
#endif

/* The kernel keeps three windows of data in the send buffer, since a burst of retransmissions leaves it late. */
SEC("struct_ops/ss_sndbuf")
__u32 BPF_PROG(ss_sndbuf, struct sock *sk)
{
	return 3;
}

#define COMMON							\
	.init = (void *)ss_init,				\
	.release = (void *)ss_release,				\
	.ssthresh = (void *)ss_ssthresh,			\
	.undo_cwnd = (void *)ss_undo,				\
	.set_state = (void *)ss_state,				\
	.sndbuf_expand = (void *)ss_sndbuf,			\
	.flags = TCP_CONG_NON_RESTRICTED,			\
	.name = NAME

#if defined(BEFORE_6_10)
/* For bpftool: Linux 6.1 to 6.9. */
SEC(".struct_ops")
struct tcp_congestion_ops ops = {
	COMMON, .cong_control = (void *)ss_control_v1, .cwnd_event = (void *)ss_event,
};
#elif defined(STOCK)
/* For bpftool: Linux 6.10 to 6.18. */
SEC(".struct_ops")
struct tcp_congestion_ops ops = {
	COMMON, .cong_control = (void *)ss_control, .cwnd_event = (void *)ss_event,
};
#else
/* The loader creates the one that fits the kernel. */
SEC(".struct_ops.link")
struct tcp_congestion_ops ops_v1 = {
	COMMON, .cong_control = (void *)ss_control_v1, .cwnd_event = (void *)ss_event,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops ops = {
	COMMON, .cong_control = (void *)ss_control, .cwnd_event = (void *)ss_event,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops___v7 ops_v7 = {
	COMMON, .cong_control = (void *)ss_control, .cwnd_event_tx_start = (void *)ss_tx_start,
};
#endif
