// SPDX-License-Identifier: GPL-2.0
/*
 * Jump Start; the reference is `jump_start.rs`. The kernel learns of the application's data as it is written, so the flight
 * is computed again before each attempt to send until the first ACK, from all that was queued by then, in whole segments. The
 * send buffer limits what can be queued.
 */
#include "startup.h"
#define NAME "ss_jump"
#define PACES

struct startup {
	__u64 size;		/* of the flight, in bytes; 0: there is none */
	__u64 sent;		/* how much of it has been sent */
	__u64 sent_at;		/* sent_bytes when that was computed */
	__u64 end;		/* acked_bytes once it has arrived; valid if closed */
	__u32 begun;		/* there was an ACK */
	__u32 closed;
	__u32 lost;		/* a loss in it was detected */
	__u32 resent;		/* segments retransmitted before that */
};

#define ON_SEND
static __always_inline int wants_on_send(struct startup *s)
{
	return !s->begun;
}

static __always_inline void on_send(struct startup *s, struct facts *f)
{
	/* Before the first ACK the only sample is that of the handshake. */
	__u64 rtt = f->retransmitted || f->acked_bytes > 1 ? 0 : f->srtt_us * US, size = MIN(f->unsent, f->rwnd), bits;

	bits = rtt ? rate_of(size, rtt) : 0;
	if (!rtt || size <= (__u64)f->iw * f->mss || size <= s->size)
		return;
	s->size = size;
	s->sent = f->next - f->acked_bytes;
	s->sent_at = f->sent_bytes;
	set_cwnd(f, size);
	f->pace = bits;
}

/* Ends pacing: what has been sent is the flight. */
static __always_inline void close_flight(struct startup *s, struct facts *f)
{
	__u64 sent = s->sent + (f->sent_bytes - s->sent_at);

	s->closed = 1;
	s->end = f->next;
	s->size = MIN(s->size, sent);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	s->begun = 1;
	if (s->size && !s->closed) {
		__u64 prior = (__u64)f->prior * f->mss, least = (__u64)f->iw * f->mss;

		close_flight(s, f);
		s->size = MIN(s->size, prior);
		least = MAX(prior, least);
		set_cwnd(f, MIN((__u64)f->cwnd * f->mss, least));
		f->pace = PACE_HOST;
	} else if (s->size && s->lost) {
		f->earned = 0;
	}
}

#define ON_CONGESTION
static __always_inline void on_congestion(struct startup *s, struct facts *f)
{
	__u64 half = (__u64)f->cwnd * f->mss / 2;

	s->begun = 1;
	if (f->why != WHY_LOSS || !s->size || (!s->lost && s->closed && f->acked_bytes > s->end)) {
		s->size = 0;
		return;
	}
	f->why = WHY_NONE;
	if (s->lost)
		return;
	if (!s->closed)
		close_flight(s, f);
	s->lost = 1;
	s->resent = f->retransmitted;
	set_cwnd(f, half);
	set_ssthresh(f, half);
	f->pace = PACE_HOST;
}

#define ON_RECOVERED
static __always_inline void on_recovered(struct startup *s, struct facts *f)
{
	__u64 size = s->size, window;

	s->size = 0;
	if (!size || !s->lost)
		return;
	window = sub(size, (__u64)(f->retransmitted - s->resent) * f->mss) / 2;
	window = MAX(window, 2ull * f->mss);
	set_cwnd(f, window);
	set_ssthresh(f, window);
	f->why = WHY_LOSS;
}

static __always_inline void on_undone(struct startup *s)
{
	s->size = 0;
}

#include "hooks.h"
