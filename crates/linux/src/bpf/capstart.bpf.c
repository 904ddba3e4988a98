// SPDX-License-Identifier: GPL-2.0
/* CapStart: limited slow start if the path is slower than the interface; the reference is `capstart.rs`. */
#include "startup.h"
#include "dispersion.h"
#define NAME "ss_capst"
#ifdef STOCK
#define MAX_SSTHRESH 100ull
#define PAIRS 3
#define NIC 1000ull
#else
#define MAX_SSTHRESH PARAM(0)
#define PAIRS PARAM(1)
#define NIC PARAM(2)
#endif

struct startup {
	struct dispersion pairs;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 max = MAX(MAX_SSTHRESH, 1);

	dispersion_add(&s->pairs, f);
	if (s->pairs.pairs >= PAIRS && s->pairs.rate < NIC * 1000000 && f->cwnd > max)
		f->earned /= 2ull * f->cwnd / max;
}

#include "hooks.h"
