/* pie: include/net/pie.h and net/sched/sch_pie.c. */
#include "kernel.h"
#include <net/pie.h>
#include "sch_pie.h"
#include "schedule.h"

static struct pie_sched_data q;

static void fire(void)
{
	pie_timer(&q.adapt_timer);
}

int main(int argc, char **argv)
{
	struct Qdisc sch = { .priv = &q, .enqueue = pie_qdisc_enqueue, .dequeue = pie_qdisc_dequeue };

	begin(argv);
	pie_params_init(&q.params);
	pie_vars_init(&q.vars);
	q.sch = &sch;
	sch.limit = schedule % 3 ? 1000 : 200;
	q.params.ecn = schedule % 2;
	q.params.bytemode = schedule % 4 == 1;
	if (schedule % 3 == 1) {
		q.params.target = PSCHED_NS2TICKS(5 * NSEC_PER_MSEC);
		q.params.tupdate = usecs_to_jiffies(4000);
	}
	if (schedule % 5 == 3)
		q.params.alpha = 10, q.params.beta = 25;
	mod_timer(&q.adapt_timer, jiffies + HZ / 2);
	poll_discipline(&sch, fire);
	return 0;
}
