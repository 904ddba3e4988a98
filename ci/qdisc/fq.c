/* fq: net/sched/sch_fq.c. Packets have no socket, as those that a router forwards; each flow has a hash of its own. */
#include "kernel.h"
#define FQ_BANDS 3
#define GFP_ATOMIC 0
#define __GFP_NOWARN 0
#define TCP_CLOSE 7
#define SK_PACING_FQ 2
#define SKB_CLOCK_MONOTONIC 1
#define SKB_CLOCK_REALTIME 0
#define SKB_CLOCK_TAI 2
#define TK_OFFS_TAI 0
#define sk_fullsock(sk) 0
#define sk_is_tcp(sk) 0
#define sk_listener(sk) 0
#define sk_listener_or_tw(sk) 0
#define skb_orphan(skb)
#define hash_ptr(p, bits) (((unsigned long)(p) >> 1) & ((1UL << (bits)) - 1))
#define kmem_cache_zalloc(cache, flags) calloc(1, sizeof(struct fq_flow))
#define kmem_cache_free(cache, p) free(p)
#define kmem_cache_free_bulk(cache, n, p) abort()
struct kmem_cache;
#include "sch_fq.h"
#include "schedule.h"

int main(int argc, char **argv)
{
	static struct fq_sched_data q;
	struct Qdisc sch = { .priv = &q, .enqueue = fq_enqueue, .dequeue = fq_dequeue };
	static const int weights[] = { 589824, 196608, 65536 };
	int i;

	begin(argv);
	/* 0 would mean that a packet has no time. */
	now_ns = 1;
	sch.limit = schedule % 3 ? 10000 : 150;
	q.flow_plimit = schedule % 2 ? 100 : 20;
	q.quantum = schedule % 4 == 1 ? 1000 : 2 * 1514;
	q.initial_quantum = 10 * 1514;
	q.flow_refill_delay = 40 * NSEC_PER_MSEC;
	q.flow_max_rate = ~0UL;
	q.time_next_delayed_flow = ~0ULL;
	q.rate_enable = 1;
	q.orphan_mask = 1023;
	q.fq_trees_log = 10;
	q.fq_root = calloc(1 << q.fq_trees_log, sizeof(*q.fq_root));
	q.low_rate_threshold = 550000 / 8;
	q.timer_slack = 10000;
	q.horizon = 10ULL * NSEC_PER_SEC;
	q.horizon_drop = 1;
	q.ce_threshold = (u64)U32_MAX * 1000;
	/* All packets have priority 0, which is in band 1. */
	q.prio2band[0] = 1;
	for (i = 0; i < FQ_BANDS; i++)
		q.band_flows[i].quantum = weights[i];
	poll_discipline(&sch, NULL);
	return 0;
}
