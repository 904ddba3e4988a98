/* Records the decisions of the kernel's FQ-CoDel: the functions of net/sched/sch_fq_codel.c from its data to its dequeue,
 * compiled here as they stand, with a clock that the schedule sets. record.sh cuts them out of a kernel's source as
 * fq_codel.h. Schedules are drawn as in crates/lab/tests/codel_decisions.rs; keep both the same.
 *
 * Usage: record_fq SCHEDULE PACKETS; letters as those of record.c. The hash of a flow and the memory of a packet are those
 * of crates/lab, which draws the one from the seed and estimates the other.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

#define __rcu
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L
#define unlikely(x) (x)
#define likely(x) (x)
#define typecheck(type, x) 1
#define WRITE_ONCE(x, value) ((x) = (value))
#define READ_ONCE(x) (x)
#define do_div(n, base) ((n) /= (base))
#define rcu_dereference_bh(p) (p)
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))

struct list_head {
	struct list_head *next, *prev;
};

#define INIT_LIST_HEAD(l) ((l)->next = (l)->prev = (l))
#define list_empty(l) ((l)->next == (l))
#define list_first_entry(l, type, member) container_of((l)->next, type, member)

static void list_add_tail(struct list_head *item, struct list_head *list)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

static void list_del_init(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	INIT_LIST_HEAD(item);
}

static void list_move_tail(struct list_head *item, struct list_head *list)
{
	list_del_init(item);
	list_add_tail(item, list);
}

struct sk_buff {
	struct sk_buff *next;
	u32 id, len, truesize, hash, priority;
	u8 ecn;
	char cb[48];
};

struct tcf_proto;
struct tcf_block;
struct tcf_result {
	u32 classid;
};
struct Qdisc {
	void *priv;
	u32 limit, handle;
	struct sk_buff *gso_skb;
	struct {
		u32 qlen;
	} q;
	struct {
		u32 backlog, drops;
	} qstats;
};

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_CN 2
#define __NET_XMIT_BYPASS 0x20000
#define __NET_XMIT_STOLEN 0x10000
#define TC_H_MAJ(h) ((h) & 0xffff0000u)
#define TC_H_MIN(h) ((h) & 0xffffu)
#define qdisc_priv(sch) ((sch)->priv)
#define qdisc_cb_private_validate(skb, size)
#define qdisc_tree_reduce_backlog(sch, n, len)
#define qdisc_bstats_update(sch, skb)
#define qdisc_qstats_drop(sch) ((sch)->qstats.drops++)
#define __qdisc_qstats_drop(sch, n) ((sch)->qstats.drops += (n))
#define qdisc_qstats_backlog_inc(sch, skb) ((sch)->qstats.backlog += (skb)->len)
#define skb_mark_not_on_list(skb) ((skb)->next = NULL)
#define skb_get_hash(skb) ((skb)->hash)
/* No filter is attached. */
#define tcf_classify(skb, block, filter, res, compat) (-1)
#define tcf_classify_qdisc(skb, filter, res, compat) (-1)

struct private {
	char data[40];
};
#define qdisc_skb_cb(skb) ((struct private *)(skb)->cb)

static u64 now_ns;
static char *outcome;

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

static int skb_get_dsfield(struct sk_buff *skb)
{
	return skb->ecn;
}

static u32 qdisc_pkt_len(const struct sk_buff *skb)
{
	return skb->len;
}

static void kfree_skb(struct sk_buff *skb)
{
	outcome[skb->id] = 'd';
	free(skb);
}

static void __qdisc_drop(struct sk_buff *skb, struct sk_buff **to_free)
{
	outcome[skb->id] = 'f';
	free(skb);
}

static struct sk_buff *skb_peek(struct sk_buff **list)
{
	return *list;
}

static void __skb_queue_head(struct sk_buff **list, struct sk_buff *skb)
{
	*list = skb;
}

#include <net/codel.h>
#include <net/codel_impl.h>
#include <net/codel_qdisc.h>
#include "fq_codel.h"

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

/* The first number of the stream "codel" of seed 1 (crates/lab/src/random.rs). */
static u64 hash_key(void)
{
	u64 hash = 0xcbf29ce484222325ULL;
	const char *c;

	for (c = "codel"; *c; c++)
		hash = (hash ^ (u8)*c) * 0x100000001b3ULL;
	return drawn(drawn(drawn(1, 0) ^ hash, 0), 0);
}

int main(int argc, char **argv)
{
	static const u64 gaps[] = { 20000, 50000, 100000, 200000, 500000 };
	static const u32 lengths[] = { 54, 590, 1514, 1514 }, flows[] = { 1, 3, 20, 300 };
	u64 schedule = strtoull(argv[1], NULL, 10), packets = strtoull(argv[2], NULL, 10);
	u64 gap = gaps[schedule % 5], event, load = 500, key = hash_key();
	struct fq_codel_sched_data q;
	struct Qdisc sch;
	u32 i, id = 0;

	memset(&q, 0, sizeof(q));
	memset(&sch, 0, sizeof(sch));
	sch.priv = &q;
	sch.limit = schedule % 3 ? 10240 : 100;
	q.flows_cnt = schedule % 2 ? 1024 : 16;
	q.quantum = schedule % 4 == 1 ? 300 : 1514;
	q.memory_limit = schedule % 5 == 4 ? 200000 : 32 << 20;
	q.drop_batch_size = schedule % 6 ? 64 : 5;
	codel_params_init(&q.cparams);
	codel_stats_init(&q.cstats);
	q.cparams.mtu = 1514;
	q.cparams.ecn = schedule % 2;
	if (schedule % 4 == 2)
		q.cparams.target = (1000 * NSEC_PER_USEC) >> CODEL_SHIFT, q.cparams.interval = MS2TIME(20);
	if (schedule % 4 == 3)
		q.cparams.ce_threshold = (2000 * NSEC_PER_USEC) >> CODEL_SHIFT;
	INIT_LIST_HEAD(&q.new_flows);
	INIT_LIST_HEAD(&q.old_flows);
	q.flows = calloc(q.flows_cnt, sizeof(*q.flows));
	q.backlogs = calloc(q.flows_cnt, sizeof(*q.backlogs));
	for (i = 0; i < q.flows_cnt; i++) {
		INIT_LIST_HEAD(&q.flows[i].flowchain);
		codel_vars_init(&q.flows[i].cvars);
	}
	outcome = malloc(packets + 1);
	memset(outcome, 'q', packets);
	outcome[packets] = 0;
	seed = 1000 + schedule;
	for (event = 0; id < packets; event++) {
		if (event % 2000 == 0)
			load = 400 + below(201);
		now_ns += below(2 * gap + 1);
		if (below(1000) < load) {
			u32 len = lengths[below(4)];
			u8 ecn = below(4);
			/* Half of the packets are of one flow. */
			u64 flow = below(2) ? 0 : below(flows[below(4)]);
			struct sk_buff *skb = calloc(1, sizeof(*skb)), *to_free = NULL;

			skb->id = id++;
			skb->len = len;
			skb->truesize = (len + 768 + 255) / 256 * 256;
			skb->hash = drawn(key, flow) >> 32;
			skb->ecn = ecn;
			fq_codel_enqueue(skb, &sch, &to_free);
		} else {
			struct sk_buff *skb = fq_codel_dequeue(&sch);

			if (skb) {
				outcome[skb->id] = skb->ecn == 3 ? 'm' : 's';
				free(skb);
			}
		}
	}
	puts(outcome);
	return 0;
}
