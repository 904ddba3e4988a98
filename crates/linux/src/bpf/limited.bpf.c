// SPDX-License-Identifier: GPL-2.0
/* Limited slow start, RFC 3742; the reference is `limited.rs`. */
#include "startup.h"
#define NAME "ss_limited"
#ifdef STOCK
#define MAX_SSTHRESH 100ull
#else
#define MAX_SSTHRESH PARAM(0)
#endif

struct startup {
	__u8 nothing;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 max = MAX_SSTHRESH;

	if (max && f->cwnd > max)
		f->earned /= 2ull * f->cwnd / max;
}

#include "hooks.h"
