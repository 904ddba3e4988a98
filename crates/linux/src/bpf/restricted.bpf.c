// SPDX-License-Identifier: GPL-2.0
/* Restricted slow start: a PID controller on the interface's queue; the reference is `restricted.rs`. */
#include "startup.h"
#define NAME "ss_rss"
#define QUEUE
#ifdef STOCK
#define SET_POINT 900000ull
#define KP 660000ull
#define TI (120 * US)
#define TD (80 * US)
#define HOLD 1
#else
#define SET_POINT PARAM(0)
#define KP PARAM(1)
#define TI PARAM(2)
#define TD PARAM(3)
#define HOLD PARAM(4)
#endif

#define LARGEST (1ll << 32)

struct startup {
	__u64 last;		/* time of the last sample, ns; valid if sampled */
	__s64 error;		/* of that sample, in bytes */
	__s64 integral;		/* divided by ti, in bytes */
	__s64 output;		/* in millionths of a segment */
	__u32 sampled;
};

/* a * b / c with the sign of a, at most LARGEST in size. */
static __always_inline __s64 scale(__s64 a, __u64 b, __u64 c)
{
	__u64 size = a < 0 ? -a : a;

	c = MAX(c, 1);
	/* A product that does not fit is above the bound. */
	size = b && size / c > LARGEST / b ? LARGEST : mul_div(size, b, c);
	size = MIN(size, (__u64)LARGEST);
	return a < 0 ? -(__s64)size : (__s64)size;
}

static __always_inline __s64 output(struct startup *s, struct facts *f, __s64 error, __s64 integral, __s64 slope)
{
	return scale(error + integral + slope, KP, f->mss);
}

static __always_inline void sample(struct startup *s, struct facts *f)
{
	__s64 error = scale(f->queue_limit, SET_POINT, ONE) - (__s64)f->queue_used, slope, more, integral, raw;
	__u64 dt = s->sampled ? f->now_ns - s->last : 0;

	if (s->sampled && !dt)
		return;
	slope = dt ? scale(error - s->error, TD, dt) : 0;
	more = TI ? scale(error, dt, TI) : 0;
	s->sampled = 1;
	s->last = f->now_ns;
	s->error = error;
	integral = MAX(MIN(s->integral + more, LARGEST), -LARGEST);
	raw = output(s, f, error, integral, slope);
	/* Anti-windup: the integral does not grow while the output is beyond its bounds in the same direction. */
	if (!((raw > (__s64)ONE && more > 0) || (raw < 0 && more < 0)))
		s->integral = integral;
	s->output = output(s, f, error, s->integral, slope);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 size, part;

	if (!f->queue_limit)
		return;
	sample(s, f);
	size = s->output < 0 ? -s->output : s->output;
	part = mul_div(f->earned, MIN(size, ONE), ONE);
	if (s->output >= 0) {
		f->earned = part;
		return;
	}
	f->earned = 0;
	if (!HOLD) {
		__u64 cwnd = (__u64)f->cwnd * f->mss;

		f->set = MAX((cwnd > part ? cwnd - part : 0) / f->mss, 1);
	}
}

#include "hooks.h"
