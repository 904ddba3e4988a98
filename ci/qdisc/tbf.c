/* tbf: net/sched/sch_tbf.c with a bfifo, on a device that sends at once. Appends to the line how long each packet waited, in
 * nanoseconds, in their order. Lengths are those of IP packets, as in crates/sim.
 */
#include "kernel.h"
#include "rates.h"
#include "sch_tbf.h"
#include "schedule.h"

static struct tbf_sched_data q;
static u64 *waits;

static void send_all(struct Qdisc *sch)
{
	struct sk_buff *skb;

	watchdog_at = U64_MAX;
	while ((skb = tbf_dequeue(sch))) {
		waits[skb->id] = now_ns - skb->at;
		leaves(skb);
	}
}

int main(int argc, char **argv)
{
	struct Qdisc sch = { .priv = &q, .enqueue = tbf_enqueue, .dequeue = tbf_dequeue };
	u64 event, load = 500, at = 0, rate, i;

	begin(argv);
	waits = calloc(packets, sizeof(*waits));
	rate = rates_mbit[schedule % 5] * 125000;
	q.rate = rate_of(rate);
	q.max_size = 1 << 20;
	q.buffer = psched_l2t_ns(&q.rate, schedule % 3 ? 20000 : 3000);
	if (schedule % 2) {
		q.peak = rate_of(4 * rate);
		q.mtu = psched_l2t_ns(&q.peak, 1500);
	}
	q.tokens = q.buffer;
	q.ptokens = q.mtu;
	q.qdisc = &bfifo;
	bfifo.limit = 60000;
	for (event = 0; next_id < packets; event++) {
		struct sk_buff *to_free = NULL;
		struct sk_buff *skb;

		/* The mean load changes between 0.8 and 1.2. */
		if (event % 500 == 0)
			load = 800 + below(401);
		at += below(2 * 914 * NSEC_PER_SEC / rate * 1000 / load + 1);
		while (watchdog_at <= at) {
			now_ns = watchdog_at;
			send_all(&sch);
		}
		now_ns = at;
		skb = next_packet();
		skb->len -= 14;
		tbf_enqueue(skb, &sch, &to_free);
		send_all(&sch);
	}
	printf("%s %016llx", outcome, (unsigned long long)order);
	for (i = 0; i < packets; i++)
		if (outcome[i] != 'f' && outcome[i] != 'q')
			printf(" %llu", (unsigned long long)waits[i]);
	puts("");
	return 0;
}
