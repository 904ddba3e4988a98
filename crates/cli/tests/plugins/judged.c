/* A startup for the tests of gates: doubles until the least RTT of a round is a quarter above the least of all, and leaves with
 * what was delivered in that round. With -DSTALL, of every fourth seed or so, it sends nothing more after 250 ms; with -DBREAK its
 * window is then 0, which breaks a rule. */
#include "slowstart.h"
#include <stdlib.h>

struct judged {
	int fails;
	int left;
	uint64_t round_end;
	uint64_t round_least;
	uint64_t least;
	uint64_t delivered;
	uint64_t acked;
};

static void *create(uint64_t iw, uint64_t seed)
{
	struct judged *j = calloc(1, sizeof *j);
	(void)iw;
	if (!j)
		return 0;
	j->fails = (seed & 3) == 0;
	j->round_least = j->least = UINT64_MAX;
	return j;
}

static void established(void *c, const struct slowstart_facts *f, const struct slowstart_handshake *hs,
                        struct slowstart_state *s)
{
	struct judged *j = c;
	(void)s;
	j->round_end = f->next;
	if (hs->rtt_ns != SLOWSTART_UNKNOWN)
		j->least = hs->rtt_ns;
}

static void leave(struct judged *j, const struct slowstart_facts *f, uint64_t to, const char *why, struct slowstart_state *s)
{
	if (j->left)
		return;
	j->left = 1;
	s->exit_detected_ns = f->now_ns;
	s->exit_detected_cwnd = s->cwnd;
	s->cwnd = s->ssthresh = s->exit_cwnd = to;
	s->exit_why = why;
}

static void ack(void *c, const struct slowstart_facts *f, const struct slowstart_ack *a, struct slowstart_state *s)
{
	struct judged *j = c;
#ifdef BREAK
	if (f->now_ns > 250000000) {
		s->cwnd = 0;
		return;
	}
#endif
#ifdef STALL
	if (j->fails && f->now_ns > 250000000) {
		s->cwnd = s->ssthresh = f->mss;
		s->pace_kind = SLOWSTART_PACE_RATE;
		s->pace = 1;
		return;
	}
#endif
	if (a->rtt_ns != SLOWSTART_UNKNOWN && a->rtt_ns < j->round_least)
		j->round_least = a->rtt_ns;
	if (j->round_least < j->least)
		j->least = j->round_least;
	if (f->in_recovery || a->limit == SLOWSTART_BY_APPLICATION)
		return;
	if (j->left) {
		j->acked += a->bytes * f->mss;
		s->cwnd += j->acked / s->cwnd;
		j->acked %= s->cwnd;
		return;
	}
	s->cwnd += a->bytes;
	if (a->upto > j->round_end) {
		uint64_t to = f->delivered - j->delivered;
		if (j->round_least != UINT64_MAX && j->round_least > j->least + j->least / 4 && to > 0)
			leave(j, f, to < f->iw ? f->iw : to, "delay", s);
		j->round_end = f->next;
		j->round_least = UINT64_MAX;
		j->delivered = f->delivered;
	}
}

static void congestion(void *c, const struct slowstart_facts *f, const struct slowstart_congestion *e, struct slowstart_state *s)
{
	struct judged *j = c;
	uint64_t half = s->cwnd / 2 < 2 * f->mss ? 2 * f->mss : s->cwnd / 2;
	if (!e->first)
		return;
	leave(j, f, half, e->signal == SLOWSTART_ECN ? "ecn" : e->signal == SLOWSTART_TIMEOUT ? "timeout" : "loss", s);
	s->ssthresh = half;
	s->cwnd = e->signal == SLOWSTART_TIMEOUT ? f->min_window : half;
}

static const struct slowstart_plugin plugin = {
	.size = sizeof plugin,
	.version = SLOWSTART_VERSION,
	.create = create,
	.destroy = free,
	.established = established,
	.ack = ack,
	.congestion = congestion,
};

const struct slowstart_plugin *slowstart_get_plugin(void) { return &plugin; }
