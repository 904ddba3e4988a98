// SPDX-License-Identifier: GPL-2.0
/*
 * Careful Resume, RFC 9959; the reference is `careful_resume.rs`. Instead of a timer, the first ACK beyond the jump's begin
 * ends it, which comes one round trip after it. In a retreat the kernel's recovery reduces cwnd.
 */
#include "startup.h"
#define NAME "ss_resume"
#define PACES
#define MEMORY
#define OWN_SSTHRESH
#ifdef STOCK
#define JUMP 500000ull
#define BETA 500000ull
#else
#define JUMP PARAM(0)
#define BETA PARAM(1)
#endif

#define WORTH 4		/* the least saved cwnd, in initial windows */
#define LONGER 10	/* the longest RTT on the same path, in saved RTTs */

enum phase { NORMAL, RECONNAISSANCE, UNVALIDATED, VALIDATING, RETREAT, REGROW };

struct startup {
	__u64 cwnd;		/* saved, in bytes */
	__u64 rtt;		/* saved, ns */
	__u64 rest;		/* bytes of the initial window that were not sent; 0: all were */
	__u64 end;		/* acked_bytes: end of the initial window, begin or end of the jump */
	__u64 pipe;		/* what the path has been seen to hold, in bytes */
	__u64 seen;		/* acked_bytes at the last ACK */
	__u32 phase;
	__u32 why;		/* of the retreat */
	__u32 used;		/* the memory has been used, or the path is another one */
};

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	__u64 iw = (__u64)f->iw * f->mss;

	if (!f->memory_cwnd || f->memory_cwnd < iw * WORTH)
		return;
	s->phase = RECONNAISSANCE;
	s->cwnd = f->memory_cwnd;
	s->rtt = f->memory_rtt_us * US;
	s->rest = iw;
}

static __always_inline int used_memory(struct startup *s)
{
	return s->used;
}

/* On the ACK of the initial window, jumps if the path is the same. */
static __always_inline void confirm(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US, jump;

	if (rtt && (rtt <= s->rtt / 2 || rtt > s->rtt * LONGER)) {
		s->phase = NORMAL;
		s->used = 1;
		return;
	}
	if (s->rest || f->acked_bytes < s->end || !f->limited)
		return;
	s->phase = NORMAL;
	jump = mul_div(s->cwnd, JUMP, ONE);
	rtt = rtt ? rtt : f->srtt_us * US;
	if (!rtt || jump <= (__u64)f->cwnd * f->mss)
		return;
	s->phase = UNVALIDATED;
	s->used = 1;
	s->end = f->next;
	s->pipe = (__u64)f->inflight * f->mss;
	set_cwnd(f, jump);
	f->pace = rate_of(jump, rtt);
}

/* No more of the jump will be sent. Keeps the data in flight, if that is more than the path has been seen to hold. */
static __always_inline void weigh(struct startup *s, struct facts *f)
{
	__u64 inflight = (__u64)f->inflight * f->mss, iw = (__u64)f->iw * f->mss, kept = inflight;

	if (inflight < iw || inflight <= s->pipe) {
		s->phase = NORMAL;
		kept = MAX(s->pipe, iw);
	} else {
		s->phase = VALIDATING;
		s->end = f->next;
	}
	set_cwnd(f, MIN((__u64)f->cwnd * f->mss, kept));
	f->pace = PACE_HOST;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 delivered = f->acked_bytes - s->seen;

	s->seen = f->acked_bytes;
	if (s->phase == RECONNAISSANCE) {
		if (s->rest) {
			s->rest = sub(s->rest, f->sent_since);
			s->end = f->next;
		}
		confirm(s, f);
		return;
	}
	if (s->phase == NORMAL)
		return;
	if (s->phase != REGROW)
		s->pipe += delivered;
	if (s->phase == UNVALIDATED) {
		f->earned = 0;
		if (f->acked_bytes > s->end || f->prior >= f->cwnd)
			weigh(s, f);
	} else if (s->phase == VALIDATING) {
		if (f->acked_bytes >= s->end)
			s->phase = NORMAL;
	} else if (s->phase == RETREAT) {
		f->earned = 0;
		if (f->acked_bytes < s->end)
			return;
		s->phase = REGROW;
		set_ssthresh(f, mul_div(s->pipe, BETA, ONE));
	} else if (f->ssthresh >= TCP_INFINITE_SSTHRESH || f->cwnd >= f->ssthresh) {
		f->why = s->why;
		f->earned = 0;
	}
}

#define ON_CONGESTION
static __always_inline void on_congestion(struct startup *s, struct facts *f)
{
	if ((s->phase == UNVALIDATED || s->phase == VALIDATING) && f->why != WHY_TIMEOUT) {
		if (s->phase == UNVALIDATED)
			s->end = f->next;
		s->phase = RETREAT;
		s->why = f->why;
		f->why = WHY_NONE;
		set_cwnd(f, MIN(s->pipe / 2, (__u64)f->cwnd * f->mss));
		f->pace = PACE_HOST;
	} else if (s->phase == RETREAT && f->why == WHY_LOSS && !f->cut) {
		f->why = WHY_NONE;	/* further losses in the same flight */
	}
}

#define ON_RECOVERED
static __always_inline void on_recovered(struct startup *s, struct facts *f)
{
}

/* Nothing was lost: the kernel restores cwnd and ssthresh. */
static __always_inline void on_undone(struct startup *s)
{
	if (s->phase == RETREAT || s->phase == REGROW)
		s->phase = NORMAL;
}

#include "hooks.h"
