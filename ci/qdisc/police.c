/* police: net/sched/act_police.c. Lengths are those of IP packets, as in crates/sim. */
#include "kernel.h"
#include "rates.h"
#define TC_ACT_OK 0
#define TC_ACT_SHOT 2
#define tcf_lastuse_update(t)
#define bstats_update(b, skb)
#define this_cpu_ptr(p) (p)
#define qstats_cpu_overlimit_inc(q)
#define qstats_cpu_drop_inc(q)
#define tcf_police_mtu_check(skb, mtu) 1
#define gen_estimator_read(est, sample) 0
#define psched_pkt2t_ns(r, n) 0
struct gnet_stats_rate_est64 { u64 bps; };
struct psched_pktrate { u64 rate_pkts_ps; };
struct rcu_head { int unused; };
struct tc_action { int unused; };
#include "tc_police.h"
#include "act_police.h"
#include "schedule.h"

int main(int argc, char **argv)
{
	struct tcf_police_params p = { .action = TC_ACT_SHOT, .tcfp_result = TC_ACT_OK, .rate_present = true };
	struct tcf_police police = { .params = &p };
	u64 event, load = 500, rate;

	begin(argv);
	rate = rates_mbit[schedule % 5] * 125000;
	p.rate = rate_of(rate);
	p.tcfp_burst = psched_l2t_ns(&p.rate, schedule % 3 ? 20000 : 3000);
	if (schedule % 2) {
		p.peak_present = true;
		p.peak = rate_of(4 * rate);
		p.tcfp_mtu_ptoks = psched_l2t_ns(&p.peak, 1500);
	}
	police.tcfp_toks = p.tcfp_burst;
	police.tcfp_ptoks = p.tcfp_mtu_ptoks;
	for (event = 0; next_id < packets; event++) {
		struct sk_buff *skb;

		/* The mean load changes between 0.8 and 1.6. */
		if (event % 500 == 0)
			load = 800 + below(801);
		now_ns += below(2 * 914 * NSEC_PER_SEC / rate * 1000 / load + 1);
		skb = next_packet();
		skb->len -= 14;
		if (tcf_police_act(skb, &police.common, NULL) == TC_ACT_SHOT)
			kfree_skb(skb);
		else
			leaves(skb);
	}
	end();
	return 0;
}
