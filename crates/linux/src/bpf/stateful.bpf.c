// SPDX-License-Identifier: GPL-2.0
/*
 * Stateful-TCP: begins at the rate of an earlier connection, then HyStart; the reference is `stateful.rs`. Written anew: no
 * line is of the authors' module.
 */
#include "startup.h"
#define NAME "ss_state"
#define PACES
#define MEMORY
#define RESTARTS_TIMEOUT
#define ON_IDLE
#define EACH_SAMPLE
#define RULES V613
#define DETECT BOTH
#define LOW_WINDOW 16
#define ACK_DELTA (2000 * US)
#define PAUSE 0
#include "hystart.h"

/* The first flight ends once more than FEW segments are in flight, or after more than FLIGHT_SAMPLES samples. */
#define FEW 5
#define FLIGHT_SAMPLES 10

struct startup {
	struct hystart h;
	__u16 used;	/* it began with path memory */
	__u8 paced;	/* the first flight is being paced */
	__u8 samples;	/* RTT samples in it */
};

#define ON_BEGIN
static __always_inline void on_begin(struct startup *s, struct facts *f)
{
	__u64 segments;

	if (!f->memory_cwnd)
		return;
	segments = rate_over(f->memory_rate, f->memory_rtt_us * US) / f->mss;
	if (segments <= f->iw)
		return;
	s->used = s->paced = 1;
	f->set = segments;
	f->pace = f->memory_rate;
}

static __always_inline int used_memory(struct startup *s)
{
	return s->used;
}

/* The window with which a sample ends the flight; 0: it does not. */
static __always_inline __u32 landed(struct startup *s, struct facts *f)
{
	__u32 window = f->iw;

	if (!s->paced || !f->rtt_us)
		return 0;
	if (s->samples <= FLIGHT_SAMPLES) {
		if (f->inflight <= FEW) {
			s->samples++;
			return 0;
		}
		window = MAX(f->inflight, f->iw);
	}
	s->paced = 0;
	return MIN(window, f->cwnd);
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	__u32 before = f->cwnd, window = landed(s, f);

	if (window)
		f->cwnd = window; /* what HyStart sees */
	hystart_ack(&s->h, f);
	f->cwnd = before;
	if (window) {
		f->set = window + (f->limited ? f->earned / f->mss : 0);
		f->earned = 0;
		f->pace = PACE_HOST;
	}
}

static __always_inline void on_idle(struct startup *s, struct facts *f)
{
	hystart_idle(&s->h, f);
}

#include "hooks.h"
