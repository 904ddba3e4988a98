/* dualpi2: net/sched/sch_dualpi2.c, in kernels since 6.17. The memory of a packet is that of crates/sim. */
#include "kernel.h"
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
struct iphdr { u32 unused[5]; };
struct ipv6hdr { u32 unused[10]; };
#define skb_network_offset(skb) 0
#define skb_protocol(skb, vlan) htons(ETH_P_IP)
#define pskb_may_pull(skb, n) 1
#define skb_try_make_writable(skb, n) 0
#define ip_hdr(skb) (skb)
#define ipv6_hdr(skb) (skb)
#define ipv4_get_dsfield skb_get_dsfield
#define ipv6_get_dsfield skb_get_dsfield
#define netif_skb_features(skb) 0
#define NETIF_F_GSO_MASK 0
#define skb_gso_segment(skb, features) NULL
#define IS_ERR_OR_NULL(p) (!(p))
#define skb_list_walk_safe(first, skb, next) for ((skb) = (first), (next) = NULL; (skb); (skb) = (next))
typedef u64 netdev_features_t;
#include "sch_dualpi2.h"
#include "schedule.h"

static struct dualpi2_sched_data q;

static void fire(void)
{
	dualpi2_timer(&q.pi2_timer);
}

int main(int argc, char **argv)
{
	struct Qdisc l_queue = { 0 };
	struct Qdisc sch = { .priv = &q, .enqueue = dualpi2_qdisc_enqueue, .dequeue = dualpi2_qdisc_dequeue };

	begin(argv);
	q.sch = &sch;
	q.l_queue = &l_queue;
	sch.limit = schedule % 5 == 4 ? 200 : 10000;
	q.memory_limit = schedule % 7 == 6 ? 300000 : get_memory_limit(&sch, sch.limit);
	q.pi2_target = (schedule % 3 == 1 ? 5 : 15) * NSEC_PER_MSEC;
	q.pi2_tupdate = (schedule % 3 == 1 ? 4 : 16) * NSEC_PER_MSEC;
	q.pi2_alpha = dualpi2_scale_alpha_beta(41);
	q.pi2_beta = dualpi2_scale_alpha_beta(819);
	q.step_in_packets = schedule % 4 == 2;
	q.step_thresh = q.step_in_packets ? 5 : NSEC_PER_MSEC;
	q.min_qlen_step = schedule % 4 == 3 ? 3 : 0;
	dualpi2_calculate_c_protection(&sch, &q, schedule % 4 == 1 ? 30 : 10);
	q.coupling_factor = schedule % 5 == 3 ? 3 : 2;
	q.drop_overload = schedule % 3 != 2;
	q.drop_early = schedule % 2;
	q.ecn_mask = schedule % 5 == 1 ? 3 : INET_ECN_ECT_1;
	hrtimer_set_expires(&q.pi2_timer, next_pi2_timeout(&q));
	poll_discipline(&sch, fire);
	return 0;
}
