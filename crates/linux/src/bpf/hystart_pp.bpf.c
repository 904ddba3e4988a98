// SPDX-License-Identifier: GPL-2.0
/* HyStart++, RFC 9406; the reference is `hystart_pp.rs`. */
#include "startup.h"
#define NAME "ss_hspp"
#ifdef STOCK
#define MIN_RTT_THRESH (4000 * US)
#define MAX_RTT_THRESH (16000 * US)
#define RTT_DIVISOR 8ull
#define SAMPLES 8
#define CSS_DIVISOR 4ull
#define CSS_ROUNDS 5
#define LIMIT 8ull
#define BASELINE_ENTRY 0
#define FRESH 0
#else
#define MIN_RTT_THRESH PARAM(0)
#define MAX_RTT_THRESH PARAM(1)
#define RTT_DIVISOR PARAM(2)
#define SAMPLES PARAM(3)
#define CSS_DIVISOR PARAM(4)
#define CSS_ROUNDS PARAM(5)
#define LIMIT PARAM(6)
#define BASELINE_ENTRY PARAM(7)
#define FRESH PARAM(8)
#endif

struct startup {
	__u64 round_end;	/* valid if in_round */
	__u64 last;		/* ns; 0: none */
	__u64 least;		/* ns; 0: none */
	__u64 baseline;		/* ns; valid if css */
	__u32 samples;
	__u32 in_round;
	__u32 css;
	__u32 css_rounds;
};

/* Section 4.2: enters conservative slow start when the RTT rises, leaves it when the RTT falls. */
static __always_inline void judge(struct startup *s)
{
	__u64 rise;

	if (s->samples < SAMPLES)
		return;
	if (s->css && s->least < s->baseline)
		s->css = 0;
	if (s->css || !s->last)
		return;
	rise = s->last / RTT_DIVISOR;
	rise = MIN(rise, MAX_RTT_THRESH);
	rise = MAX(rise, MIN_RTT_THRESH);
	if (s->least >= s->last + rise) {
		s->css = 1;
		s->css_rounds = 0;
		s->baseline = BASELINE_ENTRY ? s->last + rise : s->least;
		if (FRESH)
			s->samples = 0;
	}
}

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
	if (!s->in_round || f->acked_bytes > s->round_end) {
		if (s->in_round) {
			s->last = s->least;
			s->least = 0;
			s->samples = 0;
			if (s->css && ++s->css_rounds >= CSS_ROUNDS) {
				f->why = WHY_CSS_ROUNDS;
				f->earned = 0;
				s->in_round = 1;
				s->round_end = f->next;
				return;
			}
		}
		s->in_round = 1;
		s->round_end = f->next;
	}
	if (!f->paced)
		f->earned = MIN(f->earned, LIMIT * f->mss);
	if (f->rtt_us) {
		__u64 rtt = f->rtt_us * US;

		s->least = s->least ? MIN(s->least, rtt) : rtt;
		s->samples++;
		judge(s);
	}
	if (s->css)
		f->earned /= CSS_DIVISOR;
}

#include "hooks.h"
