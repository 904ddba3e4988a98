// SPDX-License-Identifier: GPL-2.0
/* Appropriate byte counting, RFC 3465; the reference is `abc.rs`. */
#include "startup.h"
#define NAME "ss_abc"
#define RESTARTS
#ifdef STOCK
#define LIMIT 2ull
#else
#define LIMIT PARAM(0)
#endif

struct startup {
	__u8 nothing;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u64 limit = f->ssthresh < TCP_INFINITE_SSTHRESH ? 1 : LIMIT;

	f->earned = MIN(f->earned, limit * f->mss);
}

#include "hooks.h"
