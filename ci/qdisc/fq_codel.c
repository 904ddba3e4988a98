/* fq_codel: net/sched/sch_fq_codel.c. The hash of a flow and the memory of a packet are those of crates/sim. */
#include "kernel.h"
#include <net/codel.h>
#include <net/codel_impl.h>
#include <net/codel_qdisc.h>
#include "sch_fq_codel.h"
#include "schedule.h"

int main(int argc, char **argv)
{
	struct fq_codel_sched_data q = { 0 };
	struct Qdisc sch = { .priv = &q, .enqueue = fq_codel_enqueue, .dequeue = fq_codel_dequeue };
	u32 i;

	begin(argv);
	hash_key = stream_any(&random_numbers);
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
	poll_discipline(&sch, NULL);
	return 0;
}
