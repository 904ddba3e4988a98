// SPDX-License-Identifier: GPL-2.0
/* Vegas' slow start, and that of Linux' tcp_vegas.c; the reference is `vegas.rs`. */
#include "startup.h"
#define NAME "ss_vegas"
#define RESTARTS_IDLE
#ifdef STOCK
#define LINUX 0
#define GAMMA 1ull
#else
#define LINUX PARAM(0)
#define GAMMA PARAM(1)
#endif

#define MIN_SAMPLES 3

struct startup {
	__u64 round_end;	/* valid if in_round */
	__u64 base;		/* minimum RTT of the connection, ns; 0: none */
	/* In this round: bytes sent; RTT samples, their sum and their minimum, ns. */
	__u64 sent;
	__u64 samples;
	__u64 sum;
	__u64 least;
	__u32 in_round;
	__u32 hold;		/* cwnd does not grow in this round */
};

/* Called at the end of a round. */
static __always_inline void judge(struct startup *s, struct facts *f)
{
	__u64 mss = f->mss, cwnd = f->cwnd * mss, gamma = GAMMA, target, queued, kept;

	if (LINUX) {
		if (s->samples < MIN_SAMPLES)
			return;
		target = mul_div(cwnd, s->base, s->least);
		if (sub(cwnd, target) > gamma * mss) {
			set_cwnd(f, MIN(target + mss, cwnd));
			f->why = WHY_DELAY;
		}
		return;
	}
	if (s->samples) {
		queued = sub(f->inflight * mss, mul_div(s->sent, s->base, s->sum / s->samples));
		if (s->hold && (queued + mss / 2) / mss > gamma) {
			kept = cwnd - cwnd / 8;
			set_cwnd(f, MAX(kept, 2 * mss));
			set_ssthresh(f, 2 * mss);
			f->why = WHY_DELAY;
			return;
		}
	}
	s->hold = !s->hold;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US;

	s->sent += f->sent_since;
	if (rtt) {
		s->least = s->samples ? MIN(s->least, rtt) : rtt;
		s->base = s->base ? MIN(s->base, rtt) : rtt;
		s->samples++;
		s->sum += rtt;
	}
	if (!s->in_round || f->acked_bytes > s->round_end) {
		if (s->in_round) {
			judge(s, f);
			s->sent = s->samples = s->sum = 0;
			if (f->why)
				return;
		}
		s->in_round = 1;
		s->round_end = f->next;
	}
	if (s->hold)
		f->earned = 0;
}

#include "hooks.h"
