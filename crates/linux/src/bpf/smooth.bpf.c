// SPDX-License-Identifier: GPL-2.0
/* Smooth start: growth is halved in steps on the way to ssthresh; the reference is `smooth.rs`. */
#include "startup.h"
#define NAME "ss_smooth"
#define RESTARTS
#ifdef STOCK
#define FIRST_SSTHRESH 65535ull
#define STEPS 3
#else
#define FIRST_SSTHRESH PARAM(0)
#define STEPS PARAM(1)
#endif

struct startup {
	__u8 nothing;
};

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	set_ssthresh(f, FIRST_SSTHRESH);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 threshold = (__u64)f->ssthresh * f->mss, left = threshold - (__u64)f->cwnd * f->mss, earned = f->earned;

	if (f->ssthresh >= TCP_INFINITE_SSTHRESH)
		return;
	for (int n = 1; n <= 16; n++) {
		if (n > STEPS || left > threshold >> n)
			break;
		f->earned = earned >> n;
	}
	if (!f->earned)
		f->earned = MIN(earned, 1);
}

#include "hooks.h"
