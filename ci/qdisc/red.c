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

static struct red_sched_data q;

static void fire(void)
{
	red_adaptative_timer(&q.adapt_timer);
}

/* The options of tc's message, by their numbers (TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P, TCA_RED_FLAGS). */
static const u8 *options[8];

static void find_options(const u8 *at, const u8 *end, bool nested)
{
	while (end - at >= 4) {
		u16 length = *(const u16 *)at, type = *(const u16 *)(at + 2) & 0x3fff;

		if (length < 4)
			return;
		if (nested && type < 8)
			options[type] = at + 4;
		else if (!nested && type == 2)
			find_options(at + 4, at + length, true);
		at += (length + 3) & ~3;
	}
}

struct tc_red_qopt {
	u32 limit, qth_min, qth_max;
	u8 Wlog, Plog, Scell_log, flags;
};

int main(int argc, char **argv)
{
	struct Qdisc sch = { .priv = &q, .enqueue = red_enqueue, .dequeue = red_dequeue };
	static u8 message[4096];
	const struct tc_red_qopt *opt;
	FILE *file = fopen(argv[3], "r");

	begin(argv);
	/* After the headers (struct nlmsghdr, struct tcmsg). */
	find_options(message + 36, message + fread(message, 1, sizeof(message), file), false);
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
