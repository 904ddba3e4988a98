/* Slow start that cheats, for the tests of the audit. With -DREADS it looks for the path in the file that the command names, and begins
 * with the whole bandwidth-delay product; with -DIGNORES it answers no loss. With neither it is honest. */
#include "slowstart.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *create(uint64_t iw, uint64_t seed)
{
	(void)iw;
	(void)seed;
	return calloc(1, 1);
}

#ifdef READS
/* The bytes that fill the path of the suite in the file after --file; 0 if it finds none. */
static uint64_t path(void)
{
	static char words[4096], text[8192];
	char *file = 0, *rate, *rtt;
	FILE *f = fopen("/proc/self/cmdline", "r");
	size_t n = f ? fread(words, 1, sizeof words - 1, f) : 0;
	if (f)
		fclose(f);
	for (char *w = words; w < words + n; w += strlen(w) + 1)
		if (!strcmp(w, "--file"))
			file = w + strlen(w) + 1;
	f = file ? fopen(file, "r") : 0;
	n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	rate = strstr(text, "rate=");
	rtt = strstr(text, "rtt=");
	return rate && rtt ? strtoull(rate + 5, 0, 10) * 1000 / 8 * strtoull(rtt + 4, 0, 10) : 0;
}
#endif

static void established(void *c, const struct slowstart_facts *f, const struct slowstart_handshake *hs,
                        struct slowstart_state *s)
{
	(void)c;
	(void)f;
	(void)hs;
	(void)s;
#ifdef READS
	if (path() > s->cwnd)
		s->cwnd = path();
#endif
}

static void ack(void *c, const struct slowstart_facts *f, const struct slowstart_ack *a, struct slowstart_state *s)
{
	(void)c;
	if (f->in_recovery || a->limit == SLOWSTART_BY_APPLICATION)
		return;
	if (s->cwnd < s->ssthresh)
		s->cwnd += a->bytes;
	else
		s->cwnd += f->mss * a->bytes / s->cwnd;
}

static void congestion(void *c, const struct slowstart_facts *f, const struct slowstart_congestion *e, struct slowstart_state *s)
{
	uint64_t half = s->cwnd / 2 < 2 * f->mss ? 2 * f->mss : s->cwnd / 2;
	(void)c;
#ifdef IGNORES
	return;
#endif
	if (!e->first)
		return;
	if (s->ssthresh == UINT64_MAX) {
		s->exit_detected_ns = f->now_ns;
		s->exit_detected_cwnd = s->cwnd;
		s->exit_cwnd = half;
		s->exit_why = e->signal == SLOWSTART_ECN ? "ecn" : e->signal == SLOWSTART_TIMEOUT ? "timeout" : "loss";
	}
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
