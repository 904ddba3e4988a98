/* netem: net/sched/sch_netem.c with gemodel, reorder or duplicate, by the schedule, on a device that sends at once. Letters: s
 * sent, d lost, i sent at once where others are delayed, 2 sent twice.
 */
#include "netem.h"

static bool is_copied;

static struct sk_buff *skb_clone(struct sk_buff *skb, int flags)
{
	struct sk_buff *copy = malloc(sizeof(*copy));

	*copy = *skb;
	is_copied = true;
	return copy;
}

/* Reordering draws the low half of a number of crates/sim, the others the high half. */
static bool is_low;

#undef prandom_u32_state
#define prandom_u32_state(s) ((u32)(stream_any(&random_numbers) >> (is_low ? 0 : 32)))
#include "sch_netem.h"
#include "schedule.h"

static struct netem_sched_data q;

static void send_all(struct Qdisc *sch)
{
	struct sk_buff *skb;

	watchdog_at = U64_MAX;
	while ((skb = netem_dequeue(sch))) {
		char letter = outcome[skb->id];
		u32 id = skb->id;

		leaves(skb);
		outcome[id] = letter;
	}
}

/* A share as tc sends it. */
static u32 share(double percent)
{
	return percent / 100 * 4294967295.0 + 0.5;
}

int main(int argc, char **argv)
{
	struct Qdisc sch = { .priv = &q, .enqueue = netem_enqueue, .dequeue = netem_dequeue, .limit = 100000 };
	u64 at = 0;

	begin(argv);
	switch (schedule % 3) {
	case 0:
		random_numbers = stream_named(1 + schedule, "forward.gemodel");
		q.loss_model = CLG_GILB_ELL;
		q.clg.state = GOOD_STATE;
		q.clg.a1 = share(schedule % 2 ? 5 : 1);
		q.clg.a2 = share(schedule % 2 ? 25 : 10);
		/* tc sends h and 1-k; the option has 1-h and 1-k. */
		q.clg.a3 = U32_MAX - share(schedule % 2 ? 100 : 70);
		q.clg.a4 = share(schedule % 2 ? 0 : 0.1);
		break;
	case 1:
		random_numbers = stream_named(1 + schedule, "forward.reorder");
		is_low = true;
		q.gap = schedule % 2 ? 5 : 1;
		q.reorder = share(25);
		init_crandom(&q.reorder_cor, schedule % 4 == 3 ? 0 : share(50));
		/* init_crandom draws from the high half. */
		q.reorder_cor.last = drawn(stream_named(1 + schedule, "forward.reorder").key, 0);
		break;
	case 2:
		random_numbers = stream_named(1 + schedule, "forward.duplicate");
		q.duplicate = share(schedule % 2 ? 5 : 30);
	}
	q.latency = 10 * NSEC_PER_MSEC;
	while (next_id < packets) {
		struct sk_buff *to_free = NULL, *skb;
		u32 id = next_id;

		at += below(2 * mean_gap() + 1);
		while (watchdog_at <= at) {
			now_ns = watchdog_at;
			send_all(&sch);
		}
		now_ns = at;
		skb = next_packet();
		outcome[id] = 's';
		is_copied = false;
		netem_enqueue(skb, &sch, &to_free);
		if (outcome[id] == 'f')
			outcome[id] = 'd';
		else if (sch.q.head && sch.q.head->id == id)
			outcome[id] = 'i';
		else if (is_copied)
			outcome[id] = '2';
		send_all(&sch);
	}
	while (watchdog_at != U64_MAX) {
		now_ns = watchdog_at;
		send_all(&sch);
	}
	end();
	return 0;
}
