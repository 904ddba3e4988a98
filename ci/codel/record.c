/* Records the decisions of the kernel's CoDel: include/net/codel_impl.h of a kernel's headers, compiled here as it stands,
 * with a clock that the schedule sets. Schedules are drawn as in crates/lab/tests/codel_decisions.rs; keep both the same.
 *
 * Usage: record SCHEDULE PACKETS; writes a letter for each packet: s sent, m sent with a mark, d dropped, f dropped because
 * the queue was full, q still in the queue.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L
#define unlikely(x) (x)
#define likely(x) (x)
#define typecheck(type, x) 1
#define WRITE_ONCE(x, value) ((x) = (value))
#define READ_ONCE(x) (x)
#define do_div(n, base) ((n) /= (base))

struct sk_buff {
	u64 at;
	u32 id, len;
	u8 ecn;
	struct sk_buff *next;
};

static u64 now_ns;

static u64 ktime_get_ns(void)
{
	return now_ns;
}

static u32 reciprocal_scale(u32 val, u32 ep_ro)
{
	return (u32)(((u64)val * ep_ro) >> 32);
}

static int INET_ECN_set_ce(struct sk_buff *skb)
{
	if (!skb->ecn)
		return 0;
	skb->ecn = 3;
	return 1;
}

/* The selector of ce_threshold is off. */
static int skb_get_dsfield(struct sk_buff *skb)
{
	return skb->ecn;
}

#include <net/codel.h>
#include <net/codel_impl.h>

static struct sk_buff *head, *tail;
static u32 backlog, qlen;
static char *outcome;

static u32 length(const struct sk_buff *skb)
{
	return skb->len;
}

static codel_time_t entered(const struct sk_buff *skb)
{
	return skb->at >> CODEL_SHIFT;
}

static void dropped(struct sk_buff *skb, void *ctx)
{
	outcome[skb->id] = 'd';
	free(skb);
}

static struct sk_buff *take(struct codel_vars *vars, void *ctx)
{
	struct sk_buff *skb = head;

	if (skb) {
		head = skb->next;
		backlog -= skb->len;
		qlen--;
	}
	return skb;
}

static u64 drawn(u64 seed, u64 n)
{
	u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u64 seed, draws;

static u64 below(u64 n)
{
	return (u64)(((unsigned __int128)drawn(seed, draws++) * n) >> 64);
}

int main(int argc, char **argv)
{
	static const u64 gaps[] = { 20000, 50000, 100000, 200000, 500000 };
	static const u32 lengths[] = { 54, 590, 1514, 1514 };
	u64 schedule = strtoull(argv[1], NULL, 10), packets = strtoull(argv[2], NULL, 10);
	u64 gap = gaps[schedule % 5], limit = schedule % 3 ? 1000 : 200, event, load = 500;
	struct codel_params params;
	struct codel_vars vars;
	struct codel_stats stats;
	u32 id = 0;

	memset(&params, 0, sizeof(params));
	codel_params_init(&params);
	codel_vars_init(&vars);
	codel_stats_init(&stats);
	params.mtu = 1514;
	params.ecn = schedule % 2;
	if (schedule % 4 == 2)
		params.target = (1000 * NSEC_PER_USEC) >> CODEL_SHIFT, params.interval = MS2TIME(20);
	if (schedule % 4 == 3)
		params.ce_threshold = (2000 * NSEC_PER_USEC) >> CODEL_SHIFT;
	outcome = malloc(packets + 1);
	memset(outcome, 'q', packets);
	outcome[packets] = 0;
	seed = schedule;
	for (event = 0; id < packets; event++) {
		if (event % 2000 == 0)
			load = 400 + below(201);
		now_ns += below(2 * gap + 1);
		if (below(1000) < load) {
			u32 len = lengths[below(4)];
			u8 ecn = below(4);
			struct sk_buff *skb;

			if (qlen >= limit) {
				outcome[id++] = 'f';
				continue;
			}
			skb = calloc(1, sizeof(*skb));
			*skb = (struct sk_buff){ .at = now_ns, .id = id++, .len = len, .ecn = ecn };
			if (head)
				tail->next = skb;
			else
				head = skb;
			tail = skb;
			backlog += len;
			qlen++;
		} else {
			struct sk_buff *skb;

			skb = codel_dequeue(NULL, &backlog, &params, &vars, &stats, length, entered,
					    dropped, take);
			if (skb) {
				/* A packet that came marked and leaves marked counts as marked on both sides. */
				outcome[skb->id] = skb->ecn == 3 ? 'm' : 's';
				free(skb);
			}
		}
	}
	puts(outcome);
	return 0;
}
