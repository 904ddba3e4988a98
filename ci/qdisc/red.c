/* red: include/net/red.h and net/sched/sch_red.c. A third argument is the message in which tc asks the kernel for the
 * discipline (tc_message.c): weight, decay and probability are those that tc derives.
 */
#include "kernel.h"
/* A drop above the upper threshold is RED's, whatever the kernel calls its reason. */
#define QDISC_DROP_OVERLIMIT QDISC_DROP_CONGESTED

#define TC_RED_ECN 1
#define TC_RED_HARDDROP 2
#define TC_RED_ADAPTATIVE 4
#define TC_RED_NODROP 8
#define TC_RED_HISTORIC_FLAGS (TC_RED_ECN | TC_RED_HARDDROP | TC_RED_ADAPTATIVE)
struct nlattr;
struct netlink_ext_ack;
struct nla_bitfield32 {
	u32 value, selector;
};
struct nla_bitfield32 nla_get_bitfield32(struct nlattr *attr)
{
	abort();
}

#include <linux/reciprocal_div.h>
#include "reciprocal_div_c.h"
#include <net/red.h>
#include "sch_red.h"
#include "schedule.h"
#include "tc_message.h"

static struct red_sched_data q;

static void fire(void)
{
	red_adaptative_timer(&q.adapt_timer);
}

struct tc_red_qopt {
	u32 limit, qth_min, qth_max;
	u8 Wlog, Plog, Scell_log, flags;
};

int main(int argc, char **argv)
{
	struct Qdisc sch = { .priv = &q, .enqueue = red_enqueue, .dequeue = red_dequeue };
	const struct tc_red_qopt *opt;

	begin(argv);
	/* TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P, TCA_RED_FLAGS. */
	read_message(argv[3], 0);
	opt = (const struct tc_red_qopt *)options[1];
	/* 0 would mean that there is no idle period. */
	now_ns = 1;
	q.sch = &sch;
	q.qdisc = &bfifo;
	bfifo.limit = q.limit = opt->limit;
	q.flags = options[4] ? *(const u32 *)options[4] : opt->flags;
	red_set_parms(&q.parms, opt->qth_min, opt->qth_max, opt->Wlog, opt->Plog, opt->Scell_log, (u8 *)options[2],
		      *(const u32 *)options[3]);
	red_set_vars(&q.vars);
	red_start_of_idle_period(&q.vars);
	if (q.flags & TC_RED_ADAPTATIVE)
		mod_timer(&q.adapt_timer, HZ / 2);
	poll_discipline(&sch, fire);
	return 0;
}
