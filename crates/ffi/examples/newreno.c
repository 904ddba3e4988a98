/* NewReno in C, as a plugin: slow start (RFC 5681), half the window on loss, one segment a round trip, and the saved window back
 * after a loss that proves spurious. In the simulator it does what the startup standard with the avoidance reno does.
 *
 *     cc -shared -fPIC -O2 -I crates/ffi/include crates/ffi/examples/newreno.c -o newreno.so
 *     slowstart compare geo --startup plugin:./newreno.so,standard --avoidance reno
 */
#include "slowstart.h"
#include <stdlib.h>

enum alg_state {
	SLOW_START,           /* until the first congestion */
	SLOW_START_AGAIN,     /* after a timeout or idle time, up to ssthresh */
	CONGESTION_AVOIDANCE,
};

struct newreno {
	enum alg_state state;
	uint64_t residual_ack; /* bytes acknowledged since the last increase */
	int saved;             /* what an undone loss restores */
	enum alg_state saved_state;
	uint64_t saved_cwnd;
	uint64_t saved_ssthresh;
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void *create(uint64_t iw, uint64_t seed)
{
	(void)iw;
	(void)seed;
	return calloc(1, sizeof(struct newreno));
}

static void established(void *c, const struct slowstart_facts *f, const struct slowstart_handshake *hs,
                        struct slowstart_state *s)
{
	/* The window is the initial one. */
	(void)c;
	(void)f;
	(void)hs;
	(void)s;
}

static void avoid_congestion(struct newreno *nr, const struct slowstart_facts *f, uint64_t bytes, struct slowstart_state *s)
{
	nr->residual_ack += bytes;
	uint64_t windows = nr->residual_ack / s->cwnd;
	nr->residual_ack -= windows * s->cwnd;
	s->cwnd += windows * f->mss;
}

static void ack(void *c, const struct slowstart_facts *f, const struct slowstart_ack *a, struct slowstart_state *s)
{
	struct newreno *nr = c;
	/* Only a sender that used its window may raise it, and not in recovery. */
	if (f->in_recovery || (a->limit != SLOWSTART_BY_WINDOW && a->limit != SLOWSTART_BY_PACER))
		return;
	if (nr->state == CONGESTION_AVOIDANCE) {
		avoid_congestion(nr, f, a->bytes, s);
		return;
	}
	/* ssthresh is unknown, the largest number, until the first congestion. */
	uint64_t room = s->ssthresh > s->cwnd ? s->ssthresh - s->cwnd : 0;
	uint64_t grown = least(a->bytes, room);
	s->cwnd += grown;
	if (a->bytes > grown) {
		nr->state = CONGESTION_AVOIDANCE;
		nr->residual_ack = 0;
		avoid_congestion(nr, f, a->bytes - grown, s);
	}
}

static void leave(const struct slowstart_facts *f, uint64_t before, const char *why, struct slowstart_state *s)
{
	s->exit_detected_ns = f->now_ns;
	s->exit_detected_cwnd = before;
	s->exit_cwnd = s->cwnd;
	s->exit_why = why;
}

static void congestion(void *c, const struct slowstart_facts *f, const struct slowstart_congestion *e, struct slowstart_state *s)
{
	static const char *const why[] = { "loss", "ecn", "timeout", "local-stall" };
	struct newreno *nr = c;
	const uint64_t before = s->cwnd, floor = most(2 * f->mss, f->min_window);
	const enum alg_state was = nr->state;
	if (e->first) {
		nr->saved = 1;
		nr->saved_state = nr->state;
		nr->saved_cwnd = s->cwnd;
		nr->saved_ssthresh = s->ssthresh;
	}
	if (e->signal == SLOWSTART_TIMEOUT) {
		/* A timeout in an episode that has reduced the threshold reduces it no further. */
		if (e->first || s->ssthresh == SLOWSTART_UNKNOWN)
			s->ssthresh = most(before / 2, floor);
		s->cwnd = f->min_window;
		nr->state = SLOW_START_AGAIN;
	} else if (e->first || was == SLOW_START) {
		s->cwnd = s->ssthresh = most(before / 2, floor);
		nr->state = CONGESTION_AVOIDANCE;
	} else {
		return;
	}
	nr->residual_ack = 0;
	if (was == SLOW_START)
		leave(f, before, why[e->signal], s);
}

static void recovered(void *c, const struct slowstart_facts *f, uint64_t retransmitted, uint32_t undone,
                      struct slowstart_state *s)
{
	struct newreno *nr = c;
	(void)f;
	(void)retransmitted;
	if (!undone || !nr->saved)
		return;
	nr->saved = 0;
	s->cwnd = most(s->cwnd, nr->saved_cwnd);
	s->ssthresh = nr->saved_ssthresh;
	if (nr->saved_state == SLOW_START)
		s->exit_detected_ns = SLOWSTART_UNKNOWN;
	nr->state = nr->saved_state;
}

/* RFC 2861, as Linux has it: half the window for each timeout of idle time. */
static void idle(void *c, const struct slowstart_facts *f, uint64_t idle_ns, uint64_t restart_ns, struct slowstart_state *s)
{
	struct newreno *nr = c;
	if (restart_ns == SLOWSTART_UNKNOWN)
		return;
	const uint64_t floor = least(f->iw, s->cwnd), remembered = s->cwnd * 3 / 4;
	while (idle_ns > restart_ns && s->cwnd > floor) {
		idle_ns -= restart_ns;
		s->cwnd /= 2;
	}
	s->cwnd = most(s->cwnd, floor);
	if (s->ssthresh != SLOWSTART_UNKNOWN)
		s->ssthresh = most(s->ssthresh, remembered);
	if (nr->state != SLOW_START && s->ssthresh != SLOWSTART_UNKNOWN && s->cwnd < s->ssthresh)
		nr->state = SLOW_START_AGAIN;
}

static const struct slowstart_plugin newreno = {
	.size = sizeof newreno, .version = SLOWSTART_VERSION,
	.create = create, .destroy = free, .established = established, .ack = ack,
	.congestion = congestion, .recovered = recovered, .idle = idle,
};

const struct slowstart_plugin *slowstart_get_plugin(void)
{
	return &newreno;
}
