/* codel: net/sched/sch_codel.c and include/net/codel_impl.h. */
#include "kernel.h"
#include <net/codel.h>
#include <net/codel_impl.h>
#include <net/codel_qdisc.h>
#include "sch_codel.h"
#include "schedule.h"

int main(int argc, char **argv)
{
	struct codel_sched_data q = { 0 };
	struct Qdisc sch = { .priv = &q, .enqueue = codel_qdisc_enqueue, .dequeue = codel_qdisc_dequeue };

	begin(argv);
	codel_params_init(&q.params);
	codel_vars_init(&q.vars);
	codel_stats_init(&q.stats);
	sch.limit = schedule % 3 ? 1000 : 200;
	q.params.mtu = 1514;
	q.params.ecn = schedule % 2;
	if (schedule % 4 == 2)
		q.params.target = (1000 * NSEC_PER_USEC) >> CODEL_SHIFT, q.params.interval = MS2TIME(20);
	if (schedule % 4 == 3)
		q.params.ce_threshold = (2000 * NSEC_PER_USEC) >> CODEL_SHIFT;
	poll_discipline(&sch, NULL);
	return 0;
}
