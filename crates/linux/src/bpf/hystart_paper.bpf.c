// SPDX-License-Identifier: GPL-2.0
/* HyStart as published, and as in ns-3; the reference is `hystart.rs`, whose Linux rules are those of the kernel itself. */
#include "startup.h"
#define NAME "ss_hspap"
#define RESTARTS_TIMEOUT
enum { NS3, PAPER };
enum { BOTH, TRAIN, DELAY };
#ifdef STOCK
#define RULES PAPER
#define DETECT BOTH
#define LOW_WINDOW 16
#define ACK_DELTA (2000 * US)
#define LATCH 1
#else
#define RULES PARAM(0)
#define DETECT PARAM(1)
#define LOW_WINDOW PARAM(2)
#define ACK_DELTA PARAM(3)
#define LATCH PARAM(4)
#endif

#define SAMPLES 8
#define MS (1000 * US)

struct startup {
	__u64 delay_min;	/* minimum RTT of the connection, ns; 0: none */
	__u64 start;		/* of the round, ns */
	__u64 last_ack;		/* of the train, ns */
	__u64 round_end;	/* valid if in_round */
	__u64 least;		/* RTT in this round, ns; 0: none */
	__u64 before;		/* ... in the previous one */
	__u32 samples;
	__u32 in_round;
	__u32 latched;		/* a detection below LOW_WINDOW, with LATCH */
};

static __always_inline void mark(struct startup *s, struct facts *f)
{
	if (s->in_round ? f->acked_bytes <= s->round_end : !f->acked_since)
		return;
	s->before = s->in_round ? s->least : 0;
	s->least = s->samples = 0;
	s->start = s->last_ack = f->now_ns;
	s->round_end = f->next;
	s->in_round = 1;
}

/* The longest train that does not end the startup. */
static __always_inline __u64 longest_train(struct startup *s)
{
	return RULES == PAPER ? sub(s->delay_min / 2, 1) : s->delay_min;
}

/* The largest RTT that does not end the startup. */
static __always_inline __u64 largest_rtt(struct startup *s)
{
	__u64 rise;

	if (RULES == PAPER) {
		if (!s->before)
			return ~0ull;
		rise = (s->before + 16 * MS - 1) / (16 * MS) * MS;
		rise = MAX(rise, 2 * MS);
		return s->before + rise - 1;
	}
	rise = MAX(s->delay_min, 4 * MS);
	return s->delay_min + MIN(rise, 1000 * MS);
}

static __always_inline __u32 found(struct startup *s, struct facts *f, __u64 rtt)
{
	__u32 why = WHY_NONE, full = s->samples >= SAMPLES;

	if (!s->in_round)
		return WHY_NONE;
	if (DETECT != DELAY && sub(f->now_ns, s->last_ack) <= ACK_DELTA) {
		s->last_ack = f->now_ns;
		if (sub(f->now_ns, s->start) > longest_train(s))
			why = WHY_ACK_TRAIN;
	}
	if (DETECT != TRAIN) {
		if (!full) {
			s->samples++;
			s->least = s->least ? MIN(s->least, rtt) : rtt;
		}
		if ((RULES == PAPER ? s->samples == SAMPLES : full) && s->least > largest_rtt(s) && !why)
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
	if (RULES == PAPER)
		mark(s, f);
	why = low && RULES != PAPER ? WHY_NONE : found(s, f, rtt);
	if (low && LATCH && !s->latched)
		s->latched = why;
	if (!why)
		why = s->latched;
	if (why && !low) {
		f->why = why;
		f->earned = 0;
		return;
	}
	if (RULES == NS3)
		mark(s, f);
}

#include "hooks.h"
