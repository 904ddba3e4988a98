// SPDX-License-Identifier: GPL-2.0
/*
 * Rapid start; the reference is `rapid_start.rs`. Its window in the loss episode that ends it is set before each attempt to
 * send, in place of the one that the kernel's recovery has computed for the same ACK.
 */
#include "startup.h"
#define NAME "ss_rapid"
#define OWNS_RECOVERY
#ifdef STOCK
#define BETA 700000
#define BETA_ECN 700000
#define TWO_THIRDS 1
#define KEEP_IW 0
#else
#define BETA PARAM(0)
#define BETA_ECN PARAM(1)
#define TWO_THIRDS PARAM(2)
#define KEEP_IW PARAM(3)
#endif

/* Parts of a minimum RTT for which the recent minimum is kept. */
#define QUARTERS 4

struct startup {
	__u64 floors[QUARTERS];	/* the minimum RTT in each quarter, in ns, in a ring; 0: no sample */
	__u64 began;		/* of the newest, ns; 0: there is none */
	__u32 newest;
	__u32 queue;		/* the RTT indicates a queue */
	__u32 lost;		/* segments, at the last ACK */
	__u32 beta;		/* of this reduction, in millionths */
	__u64 down_cwnd, down_delivered, down_lost; /* at the begin of the reduction, in bytes */
};

/* Compares the minimum RTT of the last round trip with that of the connection. */
static __always_inline void observe(struct startup *s, __u64 now, __u64 rtt, __u64 min)
{
	__u64 quarter = MAX(min / QUARTERS, 1), passed, floor = ~0ull;
	__u32 i;

	if (!s->began)
		s->began = now;
	passed = sub(now, s->began) / quarter;
	for (i = 0; i < QUARTERS; i++) {
		if (i >= passed)
			break;
		s->newest = (s->newest + 1) % QUARTERS;
		s->floors[s->newest % QUARTERS] = 0;
	}
	s->began += quarter * passed;
	i = s->newest % QUARTERS;
	s->floors[i] = s->floors[i] ? MIN(s->floors[i], rtt) : rtt;
	for (i = 0; i < QUARTERS; i++)
		if (s->floors[i])
			floor = MIN(floor, s->floors[i]);
	s->queue = floor > MIN(min + 4000 * US, mul_div(min, 110, 100));
}

/* Sets cwnd and ssthresh to the window of the reduction. */
static __always_inline void reduce(struct startup *s, struct facts *f)
{
	__u64 beta = MIN(s->beta, ONE);
	__u64 ack = TWO_THIRDS ? mul_div(ONE - beta, 2, 3) : mul_div(ONE - beta, 11, 18), silence = beta + ack;
	__u64 delivered = (__u64)f->delivered * f->mss, lost = (__u64)f->lost * f->mss;
	__u64 cwnd = mul_div(s->down_cwnd, silence, ONE), least = mul_div(s->down_cwnd, beta, 3 * ONE);

	cwnd = sub(cwnd, mul_div(sub(delivered, s->down_delivered), ack, ONE));
	cwnd = sub(cwnd, mul_div(sub(lost, s->down_lost), silence, ONE));
	least = MAX(least, 2ull * f->mss);
	if (KEEP_IW)
		least = MAX(least, mul_div((__u64)f->iw * f->mss, beta, ONE));
	cwnd = MAX(cwnd, least);
	cwnd = MIN(cwnd, (__u64)f->cwnd * f->mss);
	set_cwnd(f, cwnd);
	set_ssthresh(f, cwnd);
}

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	s->lost = f->lost;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	s->lost = f->lost;
	if (f->rtt_us && f->min_rtt_us)
		observe(s, f->now_ns, f->rtt_us * US, f->min_rtt_us * US);
	if (!s->queue)
		f->earned *= 2;
}

#define ON_CONGESTION
static __always_inline void on_congestion(struct startup *s, struct facts *f)
{
	if (f->why == WHY_TIMEOUT)
		return;
	s->beta = f->why == WHY_CWR ? BETA_ECN : BETA;
	s->down_cwnd = (__u64)f->cwnd * f->mss;
	s->down_delivered = (__u64)f->delivered * f->mss;
	s->down_lost = (__u64)s->lost * f->mss;
	reduce(s, f);
}

static __always_inline void in_recovery(struct startup *s, struct facts *f)
{
	reduce(s, f);
}

#define ON_RECOVERED
static __always_inline void on_recovered(struct startup *s, struct facts *f)
{
	reduce(s, f);
}

static __always_inline void on_undone(struct startup *s)
{
}

#include "hooks.h"
