/* SPDX-License-Identifier: GPL-2.0 */
/*
 * HyStart by Linux' rules, for a startup that includes this after startup.h and defines RULES (V613, V516 or V510), DETECT,
 * LOW_WINDOW, ACK_DELTA and PAUSE; the reference is `hystart.rs`.
 */
#pragma once
enum { V613, V516, V510 };
enum { BOTH, TRAIN, DELAY };
#define SAMPLES 8
#define MS (1000 * US)

struct hystart {
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

/* Begins a round if this ACK is beyond the end of the last, the first with the first that advances. */
static __always_inline void mark(struct hystart *h, struct facts *f)
{
	if (h->in_round ? f->acked_bytes > h->round_end : f->acked_since > 0) {
		h->paused = PAUSE && (!h->newest || sub(f->now_ns, h->newest) > h->delay_min >> PAUSE);
		h->start = h->last_ack = f->now_ns;
		h->round_end = f->next;
		h->samples = 0;
		h->in_round = 1;
	}
	h->newest = f->now_ns;
}

/* The longest train that does not end the startup. */
static __always_inline __u64 longest_train(struct hystart *h, struct facts *f)
{
	__u64 whole = h->delay_min;

	if (f->pacing_rate)
		whole += MIN(mul_div(4ull * f->gso_max, NS_PER_S, f->pacing_rate), MS);
	return f->paced ? whole : whole / 2;
}

/* The largest RTT that does not end the startup. */
static __always_inline __u64 largest_rtt(struct hystart *h)
{
	__u64 rise = MAX(h->delay_min / 8, 4 * MS);

	return h->delay_min + MIN(rise, 16 * MS);
}

static __always_inline __u32 found(struct hystart *h, struct facts *f, __u64 rtt)
{
	__u32 why = WHY_NONE, full = h->samples >= SAMPLES;

	if (!h->in_round)
		return WHY_NONE;
	if (DETECT != DELAY && sub(f->now_ns, h->last_ack) <= ACK_DELTA) {
		h->last_ack = f->now_ns;
		if (sub(f->now_ns, h->start) > longest_train(h, f))
			why = WHY_ACK_TRAIN;
	}
	if (DETECT != TRAIN) {
		h->least = h->samples ? MIN(h->least, rtt) : rtt;
		h->samples += !full;
		if (full && !h->paused && h->least > largest_rtt(h) && !why)
			why = WHY_DELAY;
	}
	return why;
}

static __always_inline void hystart_ack(struct hystart *h, struct facts *f)
{
	__u32 low = f->cwnd < LOW_WINDOW, why;
	__u64 rtt = f->rtt_us * US;

	if (!rtt)
		return;
	h->delay_min = h->delay_min ? MIN(h->delay_min, rtt) : rtt;
	if (RULES == V613 || (RULES == V516 && !low))
		mark(h, f);
	why = low ? WHY_NONE : found(h, f, rtt);
	if (why) {
		f->why = why;
		f->earned = 0;
	} else if (RULES == V510 && f->limited) {
		mark(h, f);
	}
}

static __always_inline void hystart_idle(struct hystart *h, struct facts *f)
{
	__u64 min = f->rtt_us * US;

	if (min && (!h->delay_min || min < h->delay_min))
		h->delay_min = min;
}
