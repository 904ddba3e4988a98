// SPDX-License-Identifier: GPL-2.0
/* TCP Hybla's slow start; the reference is `hybla.rs`. */
#include "startup.h"
#define NAME "ss_hybla"
#define RESTARTS
#ifdef STOCK
#define RTT0 (25000 * US)
#else
#define RTT0 PARAM(0)
#endif

#define CLAMP 65535ull	/* segments */

struct startup {
	__u8 nothing;
};

/* Returns rho in eighths, at least one. */
static __always_inline __u64 rho(__u64 rtt)
{
	__u64 eighths = rtt * 8 / MAX(RTT0, 1);

	return MAX(eighths, 8);
}

/* 2^(n/8) in units of 1/128. */
static __always_inline __u64 fraction(__u64 n)
{
	switch (n) {
	case 0: return 128;
	case 1: return 139;
	case 2: return 152;
	case 3: return 165;
	case 4: return 181;
	case 5: return 197;
	case 6: return 215;
	default: return 234;
	}
}

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	__u64 cwnd = (__u64)f->cwnd * f->mss, want = mul_div(cwnd, rho(handshake_rtt(f)), 8);

	want = MIN(want, CLAMP * f->mss);
	set_cwnd(f, MAX(want, cwnd));
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 r = rho(f->min_rtt_us * US), power = MIN(r / 8, 16), gain = (fraction(r % 8) << power) - 128, room;

	room = sub(CLAMP * f->mss, (__u64)f->cwnd * f->mss);
	f->earned = mul_div(f->earned, gain, 128);
	f->earned = MIN(f->earned, room);
}

#include "hooks.h"
