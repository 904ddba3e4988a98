// SPDX-License-Identifier: GPL-2.0
/* Stateful-TCP: begins at the final rate of an earlier connection; the reference is `stateful.rs`. */
#include "startup.h"
#define NAME "ss_state"
#define PACES
#define MEMORY

struct startup {
	__u32 paced;
};

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	__u64 rtt = handshake_rtt(f), window;

	if (!f->memory_cwnd || !rtt)
		return;
	s->paced = 1;
	window = rate_over(f->memory_rate, rtt);
	set_cwnd(f, MAX(window, 2ull * f->mss));
	f->pace = f->memory_rate;
}

static __always_inline int used_memory(struct startup *s)
{
	return s->paced;
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	if (s->paced) {
		f->why = WHY_ESTIMATE;
		f->earned = 0;
	}
}

#include "hooks.h"
