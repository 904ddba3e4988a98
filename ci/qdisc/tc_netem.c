/* tc_netem: net/sched/sch_netem.c with the options of a whole line (crates/sim/tests/data/netem-lines), on a device that sends
 * at once. A third argument is the message in which tc asks the kernel for it. Letters: s sent, m sent with a mark, d lost or
 * corrupt, f dropped for lack of room. Appends to the line how long each packet that arrives waited, in nanoseconds, in the
 * order in which they leave.
 */
#include "netem.h"
#include "tc_message.h"

/* Packets under way with each number. */
static u8 *copies;

static struct sk_buff *skb_clone(struct sk_buff *skb, int flags)
{
	struct sk_buff *copy = malloc(sizeof(*copy));

	*copy = *skb;
	copy->data = memcpy(malloc(skb->len), skb->data, skb->len);
	copies[skb->id]++;
	return copy;
}

static int lose(struct sk_buff *skb)
{
	if (outcome[skb->id] != 'f')
		outcome[skb->id] = 'd';
	copies[skb->id]--;
	free(skb);
	return 0;
}

#undef __qdisc_drop
#define __qdisc_drop(skb, to_free) lose(skb)
#include "reciprocal_div_c.h"
#include "sch_netem.h"
#include "schedule.h"

struct tc_netem_qopt {
	u32 latency, limit, loss, gap, duplicate, jitter;
};
enum { CORR = 1, DELAY_DIST, REORDER, CORRUPT, LOSS, RATE, ECN, RATE64, SLOT = 12, SLOT_DIST };

static struct netem_sched_data q;
static u64 *waits, arrived;

static void send_all(struct Qdisc *sch)
{
	struct sk_buff *skb;

	watchdog_at = U64_MAX;
	while ((skb = netem_dequeue(sch))) {
		bool corrupt = false;
		u32 i;

		for (i = 0; i < skb->len; i++)
			corrupt |= skb->data[i] && (i < 6 || i >= 12);
		copies[skb->id]--;
		free(skb->data);
		if (!corrupt) {
			waits[arrived++] = now_ns - skb->at;
			leaves(skb);
			continue;
		}
		/* It is lost if no other copy is under way. */
		if (!copies[skb->id])
			outcome[skb->id] = 'd';
		free(skb);
	}
}

static void correlate(struct crndstate *state, u32 rho)
{
	if (rho)
		init_crandom(state, rho);
}

static struct disttable *table(int option)
{
	struct disttable *t;

	if (!options[option])
		return NULL;
	t = malloc(sizeof(*t) + option_sizes[option]);
	t->size = option_sizes[option] / sizeof(s16);
	memcpy(t->table, options[option], option_sizes[option]);
	return t;
}

/* As netem_change. */
static void configure(struct Qdisc *sch)
{
	const struct tc_netem_qopt *base = (const void *)options[0];
	const u32 *corr = (const void *)options[CORR], *pair;

	sch->limit = base->limit;
	q.latency = PSCHED_TICKS2NS(base->latency);
	q.jitter = PSCHED_TICKS2NS(base->jitter);
	q.loss = base->loss;
	q.gap = base->gap;
	q.duplicate = base->duplicate;
	q.ecn = options[ECN] ? *(const u32 *)options[ECN] : 0;
	if (corr) {
		correlate(&q.delay_cor, corr[0]);
		correlate(&q.loss_cor, corr[1]);
		correlate(&q.dup_cor, corr[2]);
	}
	if ((pair = (const void *)options[REORDER])) {
		q.reorder = pair[0];
		correlate(&q.reorder_cor, pair[1]);
	}
	if ((pair = (const void *)options[CORRUPT])) {
		q.corrupt = pair[0];
		correlate(&q.corrupt_cor, pair[1]);
	}
	q.delay_dist = table(DELAY_DIST);
	q.slot_dist = table(SLOT_DIST);
	if (options[LOSS]) {
		u16 type = *(const u16 *)(options[LOSS] + 2) & 0x3fff;
		const u32 *p = (const void *)(options[LOSS] + 4);

		q.clg.state = 1;
		q.clg.a1 = p[0];
		q.clg.a2 = p[1];
		q.clg.a3 = p[2];
		if (type == 1) {
			/* The message has p13, p31, p32, p14, p23. */
			q.loss_model = CLG_4_STATES;
			q.clg.a4 = p[3];
			q.clg.a5 = p[4];
		} else {
			q.loss_model = CLG_GILB_ELL;
			q.clg.a4 = p[3];
		}
	}
	if (options[RATE]) {
		const s32 *r = (const void *)options[RATE];

		q.rate = (u32)r[0];
		q.packet_overhead = r[1];
		q.cell_size = r[2];
		q.cell_overhead = r[3];
		if (q.cell_size)
			q.cell_size_reciprocal = reciprocal_value(q.cell_size);
	}
	if (options[SLOT]) {
		struct tc_netem_slot *s = &q.slot_config;
		const s64 *wide = (const void *)options[SLOT];
		const s32 *narrow = (const void *)(options[SLOT] + 16);

		s->min_delay = wide[0];
		s->max_delay = wide[1];
		s->max_packets = narrow[0] ? narrow[0] : INT_MAX;
		s->max_bytes = narrow[1] ? narrow[1] : INT_MAX;
		s->dist_delay = wide[3];
		s->dist_jitter = wide[4];
		q.slot.packets_left = s->max_packets;
		q.slot.bytes_left = s->max_bytes;
		/* The time at which it was configured; 0 would be no slots. */
		if (s->min_delay | s->max_delay | s->dist_jitter)
			q.slot.slot_next = 1;
	}
}

int main(int argc, char **argv)
{
	struct Qdisc sch = { .priv = &q, .enqueue = netem_enqueue, .dequeue = netem_dequeue };
	/* A delay below 0 lies in the past, which the kernel's clock has. */
	u64 at = NSEC_PER_SEC, i;

	begin(argv);
	copies = calloc(packets, 1);
	waits = calloc(2 * packets, sizeof(*waits));
	random_numbers = stream_named(1 + schedule, "back.netem");
	read_message(argv[3], sizeof(struct tc_netem_qopt));
	configure(&sch);
	while (next_id < packets) {
		struct sk_buff *to_free = NULL, *skb;

		at += below(2 * mean_gap() + 1);
		while (watchdog_at <= at) {
			now_ns = watchdog_at;
			send_all(&sch);
		}
		now_ns = at;
		skb = next_packet();
		skb->data = calloc(skb->len, 1);
		copies[skb->id] = 1;
		netem_enqueue(skb, &sch, &to_free);
		send_all(&sch);
	}
	while (watchdog_at != U64_MAX) {
		now_ns = watchdog_at;
		send_all(&sch);
	}
	printf("%s %016llx", outcome, (unsigned long long)order);
	for (i = 0; i < arrived; i++)
		printf(" %llu", (unsigned long long)waits[i]);
	puts("");
	return 0;
}
