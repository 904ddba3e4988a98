// SPDX-License-Identifier: GPL-2.0
/*
 * SEARCH as in its authors' Linux modules 3.0 to 4.0, with all parameters; the reference is `search.rs`. Rings have 64 and 16
 * slots where 51 and 11 are needed, because the verifier can bound an index by a mask but not by a remainder.
 */
#include "startup.h"
#define NAME "ss_srch30"
#define RESTARTS
#ifdef STOCK
#define THRESHOLD 350000ull
#define WINDOW 3500000ull
#define OF_SENT 0
#define INITIAL 0
#define DRAIN 0
#define DRAIN_ACKS 3ull
#define ROLLBACK 0
#define MISSED 2ull
#define KEEP_WIDTH 0
#define APP_LIMITED 0
#define SCALED 1
#define EXTRA 15ull
#define INTERPOLATES 1
#else
#define THRESHOLD PARAM(0)
#define WINDOW PARAM(1)
#define OF_SENT PARAM(2)
#define INITIAL PARAM(3)
#define DRAIN PARAM(4)
#define DRAIN_ACKS PARAM(5)
#define ROLLBACK PARAM(6)
#define MISSED PARAM(7)
#define KEEP_WIDTH PARAM(8)
#define APP_LIMITED PARAM(9)
#define SCALED PARAM(10)
#define EXTRA PARAM(11)
#define INTERPOLATES PARAM(12)
#endif

#define W 10ull		/* bins in a window */
#define N 51ull		/* bins of the ring of what is compared with */
#define SLOT(i) ((__u32)(i) & 63)
#define ACKED(i) ((__u32)(i) & 15)

struct startup {
	__u64 width;		/* of a bin, in ns; 0: no bins yet */
	__u64 first_rtt;	/* ns */
	__u64 end;		/* of the bin being filled, ns */
	__u64 total_acked, total_sent;	/* bytes */
	__u64 target;		/* bytes, while draining */
	__u64 credit;		/* bytes acknowledged since the last packet was allowed, while draining */
	__u64 at;		/* bins filled */
	__u32 draining;
	__u32 shift;		/* totals are shifted right by this many bits */
	__u32 acked[16];	/* totals at the end of each bin */
	__u32 expected[64];
};

/* Number of significant bits. */
static __always_inline __u32 bits_of(__u64 x)
{
	__u32 n = 0;

	for (int step = 32; step; step /= 2) {
		if (x >> step) {
			x >>= step;
			n += step;
		}
	}
	return n + (x != 0);
}

/*
 * Stores the totals of the newest bin; shifts all totals until these fit. Not inlined and not static, as bins_close: the verifier
 * walks such a function once, and not again for each state of its callers, which would exceed its limit on 6.1.
 */
__attribute__((noinline)) int put(struct startup *s)
{
	if (!s)
		return 0;

	__u64 acked = s->total_acked, expected = OF_SENT ? s->total_sent : acked, largest = MAX(acked, expected);
	__u32 most = SCALED ? 16 : 32, bits = bits_of(largest >> (s->shift & 63)), more;

	if (bits > most) {
		more = bits - most;
		s->shift += more;
		for (int i = 0; i < 64; i++)
			s->expected[i] = more < 32 ? s->expected[i] >> (more & 31) : 0;
		for (int i = 0; i < 16; i++)
			s->acked[i] = more < 32 ? s->acked[i] >> (more & 31) : 0;
	}
	s->acked[ACKED(s->at)] = acked >> (s->shift & 63);
	s->expected[SLOT(s->at)] = expected >> (s->shift & 63);
	return 0;
}

static __always_inline void bins_new(struct startup *s, struct facts *f, __u64 rtt)
{
	s->width = MAX(mul_div(rtt, WINDOW, ONE * W), 1);
	s->first_rtt = rtt;
	s->end = f->now_ns + s->width;
	s->at = s->shift = 0;
	__builtin_memset(s->acked, 0, sizeof(s->acked));
	__builtin_memset(s->expected, 0, sizeof(s->expected));
	put(s);
	if (SCALED)
		return;
	for (int i = 1; i < 16; i++)
		s->acked[i] = s->acked[0];
	for (int i = 1; i < 64; i++)
		s->expected[i] = s->expected[0];
}

/* Closes this many bins; there was no ACK in any but the last. */
__attribute__((noinline)) int bins_close(struct startup *s, __u64 passed)
{
	if (!s)
		return 0;

	__u32 a = s->acked[ACKED(s->at)], e = s->expected[SLOT(s->at)];

	for (int i = 1; i < 2 * N; i++) {
		if (i >= passed)
			break;
		s->at++;
		s->acked[ACKED(s->at)] = a;
		s->expected[SLOT(s->at)] = e;
	}
	s->at++;
	put(s);
	s->end += s->width * passed;
	return 0;
}

/* What was expected for the window that ends now, shifted; 0 if the bins do not reach that far back. */
static __always_inline __u64 expected(struct startup *s, __u64 rtt)
{
	__u64 back = rtt / s->width, part = rtt % s->width, whole = s->width, old, older, new, newer, window, prev;

	if (back >= (SCALED ? EXTRA - 1 : EXTRA) || s->at < back)
		return 0;
	prev = s->at - back;
	if (prev < W + (SCALED ? 0 : 1))
		return 0;
	if (!INTERPOLATES) {
		part = 0;
		whole = 1;
	} else if (SCALED) {
		part = mul_div(part, 100, whole);
		whole = 100;
	}
	old = s->expected[SLOT(prev - W)];
	/* Nothing precedes the first bin. */
	older = prev > W ? s->expected[SLOT(prev - W - 1)] : 0;
	new = s->expected[SLOT(prev - 1)];
	newer = s->expected[SLOT(prev)];
	window = sub(new, old) + mul_div(sub(old, older), part, whole) + mul_div(sub(newer, new), whole - part, whole);
	return OF_SENT ? window : window * 2;
}

/* The bytes delivered in the newest `bins` bins, as far back as the ring that holds them reaches. */
static __always_inline __u64 delivered_in(struct startup *s, __u64 bins)
{
	__u64 n = MIN(bins, s->at), new, old;

	if (OF_SENT) {
		n = MIN(n, W);
		new = s->acked[ACKED(s->at)];
		old = s->acked[ACKED(s->at - n)];
	} else {
		n = MIN(n, N - 1);
		new = s->expected[SLOT(s->at)];
		old = s->expected[SLOT(s->at - n)];
	}
	return sub(new, old) << (s->shift & 63);
}

/* Allows one packet for each DRAIN_ACKS acknowledged, until cwnd is the target. */
static __always_inline void drain(struct startup *s, struct facts *f)
{
	__u64 each = DRAIN_ACKS * f->mss, add, want;

	s->credit += f->acked_since;
	add = each ? s->credit / each : 0;
	s->credit -= add * each;
	want = ((__u64)f->inflight + add) * f->mss;
	want = MAX(want, s->target);
	want = MIN(want, (__u64)f->cwnd * f->mss);
	set_cwnd(f, want);
	if (want <= s->target)
		f->why = WHY_RATE_FLAT;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 rtt = f->rtt_us * US, cwnd = (__u64)f->cwnd * f->mss, iw = (__u64)f->iw * f->mss, passed, due, got, bytes;

	s->total_acked += f->acked_since;
	s->total_sent += f->sent_since;
	if (s->draining) {
		drain(s, f);
		return;
	}
	if (!rtt)
		return;
	if (!s->width)
		bins_new(s, f, rtt);
	if (f->now_ns <= s->end)
		return;
	passed = (f->now_ns - s->end) / s->width + 1;
	if ((APP_LIMITED && !f->limited) || passed > MISSED) {
		int keep = (APP_LIMITED && !f->limited) || (KEEP_WIDTH && passed <= W);

		bins_new(s, f, keep ? s->first_rtt : rtt);
		return;
	}
	bins_close(s, passed);
	due = expected(s, INITIAL ? s->first_rtt : rtt);
	if (!due)
		return;
	got = sub(s->acked[ACKED(s->at)], s->acked[ACKED(s->at - W)]);
	if (mul_div(sub(due, got), ONE, due) < THRESHOLD)
		return;
	f->earned = 0;
	if (DRAIN) {
		__u64 n = (s->first_rtt + s->width - 1) / s->width;

		bytes = delivered_in(s, MIN(n, W));
		bytes = MAX(bytes, iw);
		s->target = MIN(bytes, cwnd);
		s->credit = 0;
		s->draining = 1;
		return;
	}
	if (ROLLBACK) {
		bytes = sub(cwnd, delivered_in(s, s->first_rtt * 2 / s->width));
		bytes = MAX(bytes, iw);
		set_cwnd(f, MIN(bytes, cwnd));
	}
	f->why = WHY_RATE_FLAT;
}

/* While it drains it has already decided to exit; the loss is of data sent before. */
#define EXIT_REASON(s, why) ((s)->draining ? WHY_RATE_FLAT : (why))

#include "hooks.h"
