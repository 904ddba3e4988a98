// SPDX-License-Identifier: GPL-2.0
/*
 * Records of every TCP connection that sends, whatever its congestion control: samples, the end of its startup with the
 * reason, the close. It reads tracepoints of the kernel, changes nothing, and is removed with the process that holds it.
 * `flows.rs` parses the record.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "facts.h"

char _license[] SEC("license") = "GPL";

enum { TCP_CLOSE = 7 };
enum { CLOSED, SAMPLE, EXIT };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr___w {
	__u8 in6_u[16];
};

struct ns_common___w {
	unsigned int inum;
};

struct net___w {
	struct ns_common___w ns;
};

struct possible_net___w {
	struct net___w *net;
};

struct sock_common___w {
	unsigned short skc_family;
	__u32 skc_daddr;
	struct possible_net___w skc_net;
	struct in6_addr___w skc_v6_daddr;
};

struct sock___w {
	struct sock_common___w __sk_common;
};

struct tcp_congestion_ops___w {
	char name[16];
};

struct inet_connection_sock___w {
	const struct tcp_congestion_ops___w *icsk_ca_ops;
	__u8 icsk_ca_state : 5;
};

#pragma clang attribute pop

struct flow {
	__u64 sk;
	__u64 now_ns;
	__u64 acked_bytes;
	__u64 next;		/* value of acked_bytes once everything sent so far is acknowledged */
	__u64 sent_bytes;
	__u64 pacing_rate;	/* bytes per second */
	__u32 kind;
	__u32 why;		/* from EXIT on */
	__u32 cwnd, ssthresh;	/* segments */
	__u32 inflight, mss;
	__u32 srtt_us, min_rtt_us;
	__u32 retransmitted, state;
	__u32 timeouts;
	__u32 exit_cwnd;	/* segments, before a reduction */
	__u64 exit_ns;
	__u64 begun_ns;
	__u16 sport, dport;
	__u16 family, pad;
	__u8 daddr[16];
	char control[16];
};

struct watched {
	__u64 begun_ns, sampled_ns, exit_ns;
	__u32 why, exit_cwnd;
	__u32 state, timeouts;
	__u32 cwnd;		/* at the last ACK, before a reduction */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct watched);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} records SEC(".maps");

/* Inode of the network namespace to watch, 0 for all; time between two samples of a connection, in ns. */
const volatile __u64 scope[2] SEC(".rodata.scope") = { 0 };
__u64 missed[1] SEC(".data.missed") = { 0 };

static __always_inline void write_record(struct sock *sk, struct tcp_sock *tp, struct watched *s, __u32 kind)
{
	struct sock___w *w = (void *)sk;
	struct inet_connection_sock___w *icsk = (void *)sk;
	const struct tcp_congestion_ops___w *ops = BPF_CORE_READ(icsk, icsk_ca_ops);
	struct flow f;

	__builtin_memset(&f, 0, sizeof(f));
	f.sk = (__u64)(long)sk;
	f.now_ns = tp->tcp_mstamp * 1000;
	f.acked_bytes = tp->bytes_acked;
	f.next = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
	f.sent_bytes = tp->bytes_sent;
	f.pacing_rate = BPF_CORE_READ(sk, sk_pacing_rate);
	f.kind = kind;
	f.why = s->why;
	f.cwnd = tp->snd_cwnd;
	f.ssthresh = tp->snd_ssthresh;
	f.inflight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	f.mss = tp->mss_cache;
	f.srtt_us = tp->srtt_us >> 3;
	f.min_rtt_us = tp->rtt_min.s[0].v + 1 ? tp->rtt_min.s[0].v : 0;
	f.retransmitted = tp->total_retrans;
	f.state = s->state;
	f.timeouts = s->timeouts;
	f.exit_cwnd = s->exit_cwnd;
	f.exit_ns = s->exit_ns;
	f.begun_ns = s->begun_ns;
	f.sport = BPF_CORE_READ(sk, __sk_common.skc_num);
	f.dport = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	f.family = BPF_CORE_READ(w, __sk_common.skc_family);
	if (f.family == AF_INET6)
		bpf_probe_read_kernel(f.daddr, 16, __builtin_preserve_access_index(&w->__sk_common.skc_v6_daddr));
	else
		bpf_probe_read_kernel(f.daddr, 4, __builtin_preserve_access_index(&w->__sk_common.skc_daddr));
	bpf_probe_read_kernel(f.control, sizeof(f.control), __builtin_preserve_access_index(&ops->name));
	if (bpf_ringbuf_output(&records, &f, sizeof(f), kind == SAMPLE ? BPF_RB_NO_WAKEUP : 0))
		__sync_fetch_and_add(&missed[0], 1);
}

/* Called before a packet of the peer is processed, so the state is that after the previous one. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(watch_probe, struct sock *sk, void *skb)
{
	struct sock___w *w = (void *)sk;
	struct inet_connection_sock___w *icsk = (void *)sk;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__u32 state, cwnd, kind = SAMPLE;
	struct watched *s;

	if (!tp || !tp->bytes_sent)
		return 0;
	if (scope[0] && BPF_CORE_READ(w, __sk_common.skc_net.net, ns.inum) != scope[0])
		return 0;
	s = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return 0;
	cwnd = tp->snd_cwnd;
	/* Forces the load here: the compiler would merge it with s->cwnd below into a load from a selected pointer, which the
	 * verifier rejects. */
	asm volatile("" : "+r"(cwnd));
	state = BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state);
	if (!s->begun_ns) {
		s->begun_ns = tp->tcp_mstamp * 1000;
		/* The reason is unknown if the startup ended before this watch began. */
		s->why = tp->snd_ssthresh < TCP_INFINITE_SSTHRESH ? WHY_MAX : WHY_NONE;
	}
	if (state == TCP_CA_Loss && s->state != TCP_CA_Loss)
		s->timeouts++;
	s->state = state;
	/* The reduction that ended the startup was undone. */
	if (s->why && s->why != WHY_MAX && s->why != WHY_SSTHRESH && tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH) {
		s->why = WHY_NONE;
		s->exit_ns = 0;
		s->exit_cwnd = 0;
	}
	if (!s->why && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH && cwnd >= tp->snd_ssthresh) {
		s->why = state == TCP_CA_Loss ? WHY_TIMEOUT : state == TCP_CA_CWR ? WHY_CWR :
			 state == TCP_CA_Recovery ? WHY_LOSS : WHY_SSTHRESH;
		s->exit_ns = tp->tcp_mstamp * 1000;
		s->exit_cwnd = s->why == WHY_SSTHRESH ? cwnd : s->cwnd;
		kind = EXIT;
	} else if (!s->why && state == TCP_CA_Loss) {
		s->why = WHY_TIMEOUT;
		s->exit_ns = tp->tcp_mstamp * 1000;
		s->exit_cwnd = s->cwnd;
		kind = EXIT;
	}
	s->cwnd = cwnd;
	if (kind == SAMPLE && tp->tcp_mstamp * 1000 - s->sampled_ns < scope[1])
		return 0;
	s->sampled_ns = tp->tcp_mstamp * 1000;
	write_record(sk, tp, s, kind);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(watch_state, struct sock *sk, int from, int to)
{
	struct tcp_sock *tp;
	struct watched *s;

	if (to != TCP_CLOSE)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	s = tp ? bpf_sk_storage_get(&flows, sk, 0, 0) : 0;
	if (!s)
		return 0;
	write_record(sk, tp, s, CLOSED);
	bpf_sk_storage_delete(&flows, sk);
	return 0;
}
