// SPDX-License-Identifier: GPL-2.0
/*
 * HyStart by Linux' rules with parameters for each connection, among them the pause of the patch in contrib/linux; the
 * reference is `hystart.rs`. Without parameters the kernel's own runs: hystart.bpf.c.
 */
#include "startup.h"
#define NAME "ss_hspause"
#define RESTARTS_TIMEOUT
#define ON_IDLE
#define EACH_SAMPLE
#ifdef STOCK
#define RULES V613
#define DETECT BOTH
#define LOW_WINDOW 16
#define ACK_DELTA (2000 * US)
#define PAUSE 2
#else
#define RULES PARAM(0)
#define DETECT PARAM(1)
#define LOW_WINDOW PARAM(2)
#define ACK_DELTA PARAM(3)
#define PAUSE PARAM(4)
#endif
#include "hystart.h"

struct startup {
	struct hystart h;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	hystart_ack(&s->h, f);
}

static __always_inline void on_idle(struct startup *s, struct facts *f)
{
	hystart_idle(&s->h, f);
}

#include "hooks.h"
