// SPDX-License-Identifier: GPL-2.0
/*
 * SEARCH 1.0, 2.0 (the thesis) and draft-chung-ccwg-search-09; the reference is `search.rs`. Rings have 32 slots where 26
 * are needed, because the verifier can bound an index by a mask but not by a remainder.
 */
#include "startup.h"
#define RESTARTS
#ifdef STOCK
#ifdef THESIS
#define NAME "ss_search2"
#define THRESHOLD 350000ull
#define OF_SENT 0
#define DRAIN 0
#define MISSED 0xffffffffull
#else
#define NAME "ss_search"
#define THRESHOLD 260000ull
#define OF_SENT 1
#define DRAIN 1
#define MISSED 10ull
#endif
#define WINDOW 3500000ull
#define INITIAL 0
#define DRAIN_ACKS 3ull
#else
#define NAME "ss_search"
#define THRESHOLD PARAM(0)
#define WINDOW PARAM(1)
#define OF_SENT PARAM(2)
#define INITIAL PARAM(3)
#define DRAIN PARAM(4)
#define DRAIN_ACKS PARAM(5)
#define MISSED PARAM(6)
#endif

#define W 10
#define EXTRA 15
#define SLOT(i) ((__u32)(i) & 31)

struct startup {
	__u64 width;		/* of a bin, in ns; 0: no bins yet */
	__u64 first_rtt;	/* ns */
	__u64 end;		/* of the bin being filled, ns */
	__u64 target;		/* bytes, while draining */
	__u64 credit;		/* bytes acknowledged since the last packet was allowed, while draining */
	__u64 seen;		/* acked_bytes at the last ACK */
	__u32 at;		/* bins filled */
	__u32 draining;
	__u64 acked[32];	/* bytes in total at the end of each bin */
	__u64 sent[32];
};

static __always_inline void bins_new(struct startup *s, struct facts *f, __u64 rtt)
{
	s->width = MAX(mul_div(rtt, WINDOW, ONE * W), 1);
	s->first_rtt = rtt;
	s->end = f->now_ns + s->width;
	s->at = 0;
	for (int i = 0; i < 32; i++) {
		s->acked[i] = f->acked_bytes;
		s->sent[i] = f->sent_bytes;
	}
}

/* Returns the number of bins that have ended by now, including the one being filled. */
static __always_inline __u64 bins_passed(struct startup *s, struct facts *f)
{
	return f->now_ns <= s->end ? 0 : (f->now_ns - s->end) / s->width + 1;
}

/* Closes this many bins; there was no ACK in any but the last. */
static __always_inline void bins_close(struct startup *s, struct facts *f, __u64 passed)
{
	__u64 a, b;

	a = s->acked[SLOT(s->at)];
	b = s->sent[SLOT(s->at)];
	/* More empty bins than the ring has slots make no difference. */
	for (int i = 1; i < 52; i++) {
		if (i >= passed)
			break;
		s->at++;
		s->acked[SLOT(s->at)] = a;
		s->sent[SLOT(s->at)] = b;
	}
	s->at++;
	s->acked[SLOT(s->at)] = f->acked_bytes;
	s->sent[SLOT(s->at)] = f->sent_bytes;
	s->end += s->width * passed;
}

/* Returns the bytes expected to be delivered in the window that ends now; 0 if the history does not reach back that far. */
static __always_inline __u64 expected(struct startup *s, __u64 rtt)
{
	__u64 back = rtt / s->width, part = rtt % s->width, old, older, new, newer, window;
	__u64 *ring = OF_SENT ? s->sent : s->acked;
	__u32 prev;

	if (back >= EXTRA || s->at < back)
		return 0;
	prev = s->at - (__u32)back;
	if (prev <= W)
		return 0;
	old = ring[SLOT(prev - W)];
	older = ring[SLOT(prev - W - 1)];
	new = ring[SLOT(prev - 1)];
	newer = ring[SLOT(prev)];
	window = new - old + mul_div(old - older, part, s->width) + mul_div(newer - new, s->width - part, s->width);
	return OF_SENT ? window : window * 2;
}

/* Allows one packet for each DRAIN_ACKS acknowledged, until cwnd is the target. */
static __always_inline void drain(struct startup *s, struct facts *f, __u64 delivered)
{
	__u64 each = DRAIN_ACKS * f->mss, add, want;

	s->credit += delivered;
	add = each ? s->credit / each : 0;
	s->credit -= add * each;
	want = ((__u64)f->inflight + add) * f->mss;
	want = MAX(want, s->target);
	want = MIN(want, (__u64)f->cwnd * f->mss);
	f->set = MAX(want / f->mss, 1);
	f->earned = 0;
	if (want <= s->target)
		f->why = WHY_RATE_FLAT;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US, delivered = f->acked_bytes - s->seen, passed, due, got;

	s->seen = f->acked_bytes;
	if (s->draining) {
		drain(s, f, delivered);
		return;
	}
	if (!rtt)
		return;
	if (!s->width)
		bins_new(s, f, rtt);
	passed = bins_passed(s, f);
	if (!passed)
		return;
	if (passed > MISSED) {
		bins_new(s, f, rtt);
		return;
	}
	bins_close(s, f, passed);
	due = expected(s, INITIAL ? s->first_rtt : rtt);
	if (!due)
		return;
	got = s->acked[SLOT(s->at)] - s->acked[SLOT(s->at - W)];
	got = due > got ? due - got : 0;
	if (mul_div(got, ONE, due) < THRESHOLD)
		return;
	f->earned = 0;
	if (DRAIN) {
		__u64 n = (s->first_rtt + s->width - 1) / s->width, target;

		n = MIN(n, s->at);
		n = MIN(n, W);
		target = s->acked[SLOT(s->at)] - s->acked[SLOT(s->at - (__u32)n)];
		target = MAX(target, (__u64)f->iw * f->mss);
		s->target = MIN(target, (__u64)f->cwnd * f->mss);
		s->credit = 0;
		s->draining = 1;
	} else {
		f->why = WHY_RATE_FLAT;
	}
}

/* While it drains it has already decided to exit; the loss is of data sent before. */
#define EXIT_REASON(s, why) ((s)->draining ? WHY_RATE_FLAT : (why))

#include "hooks.h"
