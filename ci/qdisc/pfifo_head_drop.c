/* pfifo_head_drop: net/sched/sch_fifo.c. */
#include "kernel.h"
#include "sch_fifo.h"
#include "schedule.h"

int main(int argc, char **argv)
{
	struct Qdisc sch = { .enqueue = pfifo_tail_enqueue, .dequeue = qdisc_dequeue_head };

	begin(argv);
	sch.limit = schedule % 3 ? 100 : 20;
	poll_discipline(&sch, NULL);
	return 0;
}
