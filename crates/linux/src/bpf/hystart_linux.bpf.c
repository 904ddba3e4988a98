// SPDX-License-Identifier: GPL-2.0
/*
 * HyStart by Linux' rules with parameters for each connection, among them the pause of the patch in contrib/linux; the
 * reference is `hystart.rs`. Without parameters the kernel's own runs: hystart.bpf.c.
 */
#include "startup.h"
#define NAME "ss_hspause"
#define RESTARTS_TIMEOUT
#define ON_IDLE
#define EACH_SAMPLE
enum { V613, V516, V510 };
enum { BOTH, TRAIN, DELAY };
#ifdef STOCK
#define RULES V613
#define DETECT BOTH
#define LOW_WINDOW 16
#define ACK_DELTA (2000 * US)
#define PAUSE 2
#else
#define RULES PARAM(0)
#define DETECT PARAM(1)
#define LOW_WINDOW PARAM(2)
#define ACK_DELTA PARAM(3)
#define PAUSE PARAM(4)
#endif

#define SAMPLES 8
#define MS (1000 * US)

struct startup {
	__u64 delay_min;	/* minimum RTT of the connection, ns; 0: none */
	__u64 start;		/* of the round, ns */
	__u64 last_ack;		/* of the train, ns */
	__u64 round_end;	/* valid if in_round */
	__u64 least;		/* RTT in this round, ns; valid if samples > 0 */
	__u64 newest;		/* when the newest sample came, ns; 0: none */
	__u32 samples;
	__u16 in_round;
	__u16 paused;		/* the round follows a pause of the ACKs */
};

/* Begins a round if this ACK is beyond the end of the last. */
static __always_inline void mark(struct startup *s, struct facts *f)
{
	if (!s->in_round || f->acked_bytes > s->round_end) {
		s->paused = PAUSE && (!s->newest || sub(f->now_ns, s->newest) > s->delay_min >> PAUSE);
		s->start = s->last_ack = f->now_ns;
		s->round_end = f->next;
		s->samples = 0;
		s->in_round = 1;
	}
	s->newest = f->now_ns;
}

/* The longest train that does not end the startup. */
static __always_inline __u64 longest_train(struct startup *s, struct facts *f)
{
	__u64 whole = s->delay_min;

	if (f->pacing_rate)
		whole += MIN(mul_div(4ull * f->gso_max, NS_PER_S, f->pacing_rate), MS);
	return f->paced ? whole : whole / 2;
}

/* The largest RTT that does not end the startup. */
static __always_inline __u64 largest_rtt(struct startup *s)
{
	__u64 rise = MAX(s->delay_min / 8, 4 * MS);

	return s->delay_min + MIN(rise, 16 * MS);
}

static __always_inline __u32 found(struct startup *s, struct facts *f, __u64 rtt)
{
	__u32 why = WHY_NONE, full = s->samples >= SAMPLES;

	if (!s->in_round)
		return WHY_NONE;
	if (DETECT != DELAY && sub(f->now_ns, s->last_ack) <= ACK_DELTA) {
		s->last_ack = f->now_ns;
		if (sub(f->now_ns, s->start) > longest_train(s, f))
			why = WHY_ACK_TRAIN;
	}
	if (DETECT != TRAIN) {
		s->least = s->samples ? MIN(s->least, rtt) : rtt;
		s->samples += !full;
		if (full && !s->paused && s->least > largest_rtt(s) && !why)
			why = WHY_DELAY;
	}
	return why;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u32 low = f->cwnd < LOW_WINDOW, why;
	__u64 rtt = f->rtt_us * US;

	if (!rtt)
		return;
	s->delay_min = s->delay_min ? MIN(s->delay_min, rtt) : rtt;
	if (RULES == V613 || (RULES == V516 && !low))
		mark(s, f);
	why = low ? WHY_NONE : found(s, f, rtt);
	if (why) {
		f->why = why;
		f->earned = 0;
	} else if (RULES == V510 && f->limited) {
		mark(s, f);
	}
}

static __always_inline void on_idle(struct startup *s, struct facts *f)
{
	__u64 min = f->min_rtt_us * US;

	if (min && (!s->delay_min || min < s->delay_min))
		s->delay_min = min;
}

#include "hooks.h"
