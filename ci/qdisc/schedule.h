/* The schedule of packets: draws as crates/sim/tests/qdisc_decisions.rs; keep both the same.
 *
 * A recorder takes SCHEDULE PACKETS and writes a line: a letter for each packet (see kernel.h), and a hash of the order in
 * which packets left.
 */
static u64 schedule, packets, draw_seed, draws;
static u32 next_id;
static u64 order = 0xcbf29ce484222325ULL;

static u64 below(u64 n)
{
	return (u64)(((unsigned __int128)drawn(draw_seed, draws++) * n) >> 64);
}

static void begin(char **argv)
{
	schedule = strtoull(argv[1], NULL, 10);
	packets = strtoull(argv[2], NULL, 10);
	draw_seed = schedule;
	random_numbers = stream_named(1 + schedule, "queue");
	outcome = malloc(packets + 1);
	memset(outcome, 'q', packets);
	outcome[packets] = 0;
}

static u64 mean_gap(void)
{
	static const u64 gaps[] = { 20000, 50000, 100000, 200000, 500000 };

	return gaps[schedule % 5];
}

/* The hash of a flow: that of crates/sim, which takes the first number of the stream as its key. */
static u64 hash_key;

static struct sk_buff *next_packet(void)
{
	static const u32 lengths[] = { 54, 590, 1514, 1514 }, flows[] = { 1, 3, 20, 300 };
	struct sk_buff *skb = calloc(1, sizeof(*skb));
	u64 flow;

	skb->at = now_ns;
	skb->id = next_id++;
	skb->len = lengths[below(4)];
	skb->ecn = below(4);
	/* Half of the packets are of one flow. */
	flow = below(2) ? 0 : below(flows[below(4)]);
	skb->hash = hash_key ? drawn(hash_key, flow) >> 32 : flow;
	skb->truesize = (skb->len + 768 + 255) / 256 * 256;
	return skb;
}

/* A packet that came marked and leaves marked counts as marked on both sides. */
static void leaves(struct sk_buff *skb)
{
	int i;

	outcome[skb->id] = skb->ecn == 3 ? 'm' : 's';
	for (i = 0; i < 4; i++)
		order = (order ^ (u8)(skb->id >> 8 * i)) * 0x100000001b3ULL;
	free(skb);
}

static void end(void)
{
	printf("%s %016llx\n", outcome, (unsigned long long)order);
}

/* A discipline that is asked for a packet at drawn times. `fire` is its timer. */
static void poll_discipline(struct Qdisc *sch, void (*fire)(void))
{
	u64 event, load = 500, at = 0;

	for (event = 0; next_id < packets; event++) {
		if (event % 2000 == 0)
			load = 400 + below(201);
		at += below(2 * mean_gap() + 1);
		while (timer_at <= at) {
			now_ns = timer_at;
			timer_at = U64_MAX;
			fire();
		}
		now_ns = at;
		if (below(1000) < load) {
			struct sk_buff *to_free = NULL;

			sch->enqueue(next_packet(), sch, &to_free);
		} else {
			struct sk_buff *skb = sch->dequeue(sch);

			if (skb)
				leaves(skb);
		}
	}
	end();
}
