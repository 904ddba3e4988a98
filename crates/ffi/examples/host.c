/* A host in C: a sender over 100 Mbit/s and 50 ms whose queue is unlimited. It runs the startup of its first argument until
 * that leaves slow start, and prints why and with which window.
 *
 *     cargo build --release -p slowstart-ffi
 *     cc -I crates/ffi/include crates/ffi/examples/host.c target/release/libslowstart_c.a -lm -lpthread -ldl -o host
 *     ./host search
 */
#include "slowstart.h"
#include <inttypes.h>
#include <stdio.h>

#define MSS 1448u
#define RTT 50000000u
#define EACH 116000u
#define MOST 200000u

static struct { uint64_t at, arrival; } flight[MOST];

int main(int argc, char **argv)
{
	char error[200] = "";
	struct slowstart_controller *c = slowstart_create(argc > 1 ? argv[1] : NULL, "cubic", 10 * MSS, 1, error, sizeof error);
	if (c == NULL) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	const uint64_t unknown = SLOWSTART_UNKNOWN;
	struct slowstart_facts f = {
		.size = sizeof f, .mss = MSS, .iw = 10 * MSS, .min_window = MSS, .marked = unknown, .unacked = unknown,
		.srtt_ns = unknown, .min_rtt_ns = unknown, .rwnd = unknown, .pacing_rate_bps = unknown, .unsent = unknown,
		.host_queue_used = unknown, .host_queue_limit = unknown, .nic_rate_bps = unknown,
	};
	struct slowstart_handshake hs = { .size = sizeof hs, .rtt_ns = RTT, .granted_bps = unknown, .remembered_cwnd = unknown };
	struct slowstart_state s = { .size = sizeof s };
	int bad = slowstart_on_established(c, &f, &hs);

	uint64_t acked = 0, sent = 0, free_at = 0;
	for (;;) {
		bad |= slowstart_get_state(c, &s);
		if (bad || s.exit_why != NULL || sent == MOST)
			break;
		while (f.inflight + MSS <= s.cwnd && sent < MOST) {
			f.next = sent + 1;
			f.inflight += MSS;
			struct slowstart_sent p = { .size = sizeof p, .mark = sent + 1, .at_ns = f.now_ns, .bytes = MSS };
			if (slowstart_needs_sent(c))
				bad |= slowstart_on_sent(c, &f, &p);
			free_at = (free_at > f.now_ns ? free_at : f.now_ns) + EACH;
			flight[sent].at = f.now_ns;
			flight[sent++].arrival = free_at + RTT;
		}
		/* The next ACK. */
		uint64_t prior = f.inflight, sample = flight[acked].arrival - flight[acked].at;
		f.now_ns = flight[acked].arrival;
		f.inflight -= MSS;
		f.delivered += MSS;
		f.min_rtt_ns = sample < f.min_rtt_ns ? sample : f.min_rtt_ns;
		f.srtt_ns = f.srtt_ns == unknown ? sample : f.srtt_ns * 7 / 8 + sample / 8;
		struct slowstart_ack a = {
			.size = sizeof a, .upto = acked + 1, .bytes = MSS, .delivered = MSS, .prior_inflight = prior, .rtt_ns = sample,
			.newest = { .size = sizeof a.newest, .mark = acked + 1, .at_ns = flight[acked].at, .bytes = MSS },
		};
		acked++;
		bad |= slowstart_on_ack(c, &f, &a);
	}
	printf("%s %" PRIu64 "\n", bad ? "refused" : s.exit_why ? s.exit_why : "none", s.exit_cwnd / MSS);
	slowstart_free(c);
	return bad ? 1 : 0;
}
