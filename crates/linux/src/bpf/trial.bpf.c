// SPDX-License-Identifier: GPL-2.0
/*
 * A controlled experiment among the connections of a cgroup: assigns each new connection at random to an arm, sets that arm's
 * congestion control, and measures the connection until it closes. It runs for connections of this cgroup only; of
 * those that are not in the trial it only finds that out, at each packet. `trial.rs` parses the records.
 *
 * `on_choice` sees each program's own choice of a control, also of the one that its connection has: what withdraws a connection
 * from one arm would do so from each. Where the kernel refuses it, a choice is seen by what it changes.
 *
 * `trial` assigns, samples the RTT and sees the close. `on_packet` sees each packet from the peer, before the kernel takes the
 * lock of the socket: maybe at the same time as `trial` on another processor, and as itself, since on a veth or loopback the
 * processor that sends an ACK processes it. So a connection has a lock of its own.
 *
 * Times are active times: a connection that has nothing to send and nothing to be acknowledged is idle, until it sends
 * again.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "facts.h"

char _license[] SEC("license") = "GPL";

enum { SOL_TCP = 6, TCP_CONGESTION = 13, TCP_CLOSE = 7 };
enum { ACTIVE_ESTABLISHED = 4, PASSIVE_ESTABLISHED = 5, STATE_CB = 10, RTT_CB = 12 };
enum { STATE_CB_FLAG = 1 << 2, RTT_CB_FLAG = 1 << 3 };
enum { TCP_FIN_WAIT1 = 4, TCP_FIN_WAIT2 = 5, TCP_LAST_ACK = 9, TCP_CLOSING = 11 };
enum { ETH_P_IP = 0x0800, ETH_P_IPV6 = 0x86dd, IPPROTO_TCP = 6, IPV6_HEADER = 40 };

/* The kernel's interface to this type of program: the layout is fixed. */
struct bpf_sock_ops {
	__u32 op, args[4], family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port;
	__u32 is_fullsock, snd_cwnd, srtt_us, cb_flags, state, rtt_min, snd_ssthresh, rcv_nxt, snd_nxt, snd_una;
	__u32 mss_cache, ecn_flags, rate_delivered, rate_interval_us, packets_out, retrans_out, total_retrans, segs_in;
	__u32 data_segs_in, segs_out, data_segs_out, lost_out, sacked_out, sk_txhash;
	__u64 bytes_received, bytes_acked;
	struct bpf_sock *sk;
};

/* The same of the other type. */
struct __sk_buff {
	__u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority;
	__u32 ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid, data, data_end, napi_id;
	__u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port, data_meta;
	__u64 flow_keys, tstamp;
	__u32 wire_len, gso_segs;
	struct bpf_sock *sk;
};

/* The same of the third. */
struct bpf_sockopt {
	struct bpf_sock *sk;
	void *optval, *optval_end;
	__s32 level, optname, optlen, retval;
};

struct bpf_spin_lock {
	__u32 val;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct tcp_congestion_ops___t {
	char name[16];
};

struct inet_connection_sock___t {
	const struct tcp_congestion_ops___t *icsk_ca_ops;
	__u8 icsk_ca_state : 5, icsk_ca_setsockopt : 1;
};

struct tcp_sock___t {
	__u64 bytes_retrans;
	__u32 app_limited;
};

#pragma clang attribute pop

#define MAX_ARMS 8
#define MILESTONES 3

/* Written by user space; `ended` and `phase` also while the trial runs. */
struct {
	__u64 seed;
	__u32 arms;
	__u32 sticky;		/* the key is the prefix of the client */
	__u32 dry;		/* count what would be assigned, and change nothing */
	__u32 phase;		/* 0: A/A, every arm uses the control of arm 0; 1: the trial */
	struct {
		__u64 end;	/* of the interval of 32-bit hashes that this arm owns */
		__u32 ended;	/* its connections are left alone */
		__u32 pad;
		char control[16];
	} arm[MAX_ARMS];
} plan SEC(".data.plan") = { 0 };

struct {
	__u64 assigned[MAX_ARMS];
	__u64 outside;		/* in no arm, or in one that was ended */
	__u64 own_choice;	/* the program chose the congestion control, before it was assigned or later */
	__u64 refused;		/* the kernel did not set the congestion control */
	__u64 without_storage;
	__u64 lost_records;	/* the ring was full */
} counts SEC(".data.counts") = { 0 };

struct conn {
	/* Written when it is assigned. */
	__u64 cookie, prefix;
	__u32 arm, phase, v6, handshake_us;
	/* Written for each RTT sample. */
	__u64 rtt_sum_us;
	__u32 rtt_least_us, rtt_peak_us;
	__u32 samples, limited;	/* RTT samples, and those of them when the application limited the sender */
	/* Written for each packet of the peer. */
	__u64 begun_us;		/* when the first data was sent; 0: not yet */
	__u64 idle_us, idle_since_us; /* idle_since_us is 0 while it is not idle */
	__u64 last_us;		/* active time when all data was last acknowledged; in the last record, when data was */
	__u64 acked;		/* bytes of data */
	__u64 milestone_us[MILESTONES]; /* 0: not reached */
	__u64 exit_us, exit_idle_us;
	__u32 una;		/* the next sequence number that the peer expects */
	__u32 reached;		/* milestones */
	__u32 cwnd;		/* at the packet before */
	__u32 exit_cwnd, why;
	__u32 fin;		/* an ACK was taken for one of the FIN */
	/* Written with a record. */
	__u32 own_choice;	/* the program chose another control since: it is in no arm any more */
	__u32 pad;
};

struct entry {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct conn c;		/* begin() writes it, then what holds the lock; `own_choice` is atomic */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entry);
} conns SEC(".maps");

struct record {
	__u64 sk, now_us, sent_bytes, retransmitted_bytes;
	__u32 closed, pad;
	struct conn c;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} records SEC(".maps");

/* As `random::at`: SplitMix64 as a function of its counter. */
static __always_inline __u64 hash(__u64 seed, __u64 n)
{
	__u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* The client's prefix: /24 of IPv4, also if mapped into IPv6, or /56 of IPv6, in network order. */
static __always_inline __u64 prefix_of(struct bpf_sock_ops *ctx, __u32 *v6)
{
	__u32 first = ctx->remote_ip6[0], second = ctx->remote_ip6[1], third = ctx->remote_ip6[2];
	__u32 mapped = ctx->remote_ip6[3], v4 = ctx->remote_ip4, family = ctx->family;

	/* Forces the loads here: the compiler would load one of two fields from a computed address, which the verifier
	 * rejects. */
	asm volatile("" : "+r"(mapped), "+r"(v4));
	*v6 = family == AF_INET6 && (first || second || third != __builtin_bswap32(0xffff));
	if (*v6)
		return (__u64)first << 32 | (second & __builtin_bswap32(0xffffff00));
	return (family == AF_INET6 ? mapped : v4) & __builtin_bswap32(0xffffff00);
}

/* The active time until `now_us`, which is 0 for times before the first data. */
static __always_inline __u64 active(const struct conn *c, __u64 now_us)
{
	__u64 since = c->begun_us + c->idle_us;

	return c->begun_us && now_us > since ? now_us - since : 0;
}

/* The program has set a control after accept() or connect(). The first time it is counted as such, and no longer in its arm. */
static __always_inline void choose(struct conn *c)
{
	if (__sync_lock_test_and_set(&c->own_choice, 1))
		return;
	__sync_fetch_and_add(&counts.own_choice, 1);
	__sync_fetch_and_sub(&counts.assigned[c->arm & (MAX_ARMS - 1)], 1);
}

/* True if that is so, also if the connection's control is no longer the one that it was given. */
static __always_inline int has_own_choice(struct tcp_sock *tp, struct conn *c)
{
	struct inet_connection_sock___t *icsk = (void *)tp;
	const struct tcp_congestion_ops___t *ops = icsk->icsk_ca_ops;
	__u32 arm = c->arm & (MAX_ARMS - 1);
	const char *given = plan.arm[c->phase ? arm : 0].control;
	char differs = 0;

	if (c->own_choice || !ops)
		return c->own_choice;
	for (int i = 0; i < 16; i++)
		differs |= ops->name[i] ^ given[i];
	if (!differs)
		return 0;
	choose(c);
	return 1;
}

static __always_inline void write_record(struct tcp_sock *tp, struct entry *e, __u32 closed)
{
	struct record *r;

	/* What was reported of it before is withdrawn by its last record. */
	if (has_own_choice(tp, &e->c) && !closed)
		return;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r) {
		__sync_fetch_and_add(&counts.lost_records, 1);
		return;
	}
	r->sk = (__u64)(long)tp;
	r->now_us = bpf_ktime_get_ns() / 1000;
	r->sent_bytes = tp->bytes_sent;
	r->retransmitted_bytes = ((struct tcp_sock___t *)tp)->bytes_retrans;
	r->closed = closed;
	r->pad = 0;
	bpf_spin_lock(&e->lock);
	__builtin_memcpy(&r->c, &e->c, sizeof(r->c));
	bpf_spin_unlock(&e->lock);
	/*
	 * Some data, besides the FIN, was not acknowledged: the kernel noted when it processed the last ACK. Of data sent after
	 * an idle time nothing was, as if the peer has disappeared: that note is then of the time of sending.
	 */
	if (closed && tp->write_seq - r->c.una > 1 && !r->c.idle_since_us)
		r->c.last_us = active(&r->c, tp->delivered_mstamp);
	/* The reader polls five times per second. */
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

static __always_inline void begin(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct tcp_sock *tp)
{
	struct inet_connection_sock___t *icsk = (void *)tp;
	__u32 v6, arm, control;
	__u64 prefix, cookie, drawn;
	struct entry e = {};
	char name[16];

	if (BPF_CORE_READ_BITFIELD(icsk, icsk_ca_setsockopt)) {
		__sync_fetch_and_add(&counts.own_choice, 1);
		return;
	}
	prefix = prefix_of(ctx, &v6);
	cookie = bpf_get_socket_cookie(ctx);
	drawn = hash(plan.seed, plan.sticky ? prefix : cookie) >> 32;
	for (arm = 0; arm < MAX_ARMS; arm++)
		if (drawn < plan.arm[arm].end)
			break;
	if (arm >= MAX_ARMS || plan.arm[arm].ended) {
		__sync_fetch_and_add(&counts.outside, 1);
		return;
	}
	if (!plan.dry) {
		control = plan.phase ? arm : 0;
		__builtin_memcpy(name, plan.arm[control & (MAX_ARMS - 1)].control, sizeof(name));
		if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
			__sync_fetch_and_add(&counts.refused, 1);
			return;
		}
		e.c.una = tp->snd_una;
		e.c.handshake_us = tp->srtt_us >> 3;
		e.c.cookie = cookie;
		e.c.prefix = prefix;
		e.c.v6 = v6;
		e.c.arm = arm;
		e.c.phase = plan.phase;
		if (!bpf_sk_storage_get(&conns, sk, &e, BPF_SK_STORAGE_GET_F_CREATE)) {
			__sync_fetch_and_add(&counts.without_storage, 1);
			return;
		}
		bpf_sock_ops_cb_flags_set(ctx, ctx->cb_flags | RTT_CB_FLAG | STATE_CB_FLAG);
	}
	__sync_fetch_and_add(&counts.assigned[arm & (MAX_ARMS - 1)], 1);
}

/* The first time that ssthresh is finite and cwnd has reached it, or that the retransmission timer has fired. */
static __always_inline void see_exit(struct tcp_sock *tp, struct conn *c)
{
	struct inet_connection_sock___t *icsk = (void *)tp;
	__u32 cwnd = tp->snd_cwnd, state;

	if (c->why)
		return;
	state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	if ((tp->snd_ssthresh < TCP_INFINITE_SSTHRESH && cwnd >= tp->snd_ssthresh) || state == TCP_CA_Loss) {
		c->why = state == TCP_CA_Loss ? WHY_TIMEOUT : state == TCP_CA_CWR ? WHY_CWR :
			 state == TCP_CA_Recovery ? WHY_LOSS : WHY_SSTHRESH;
		c->exit_us = active(c, tp->delivered_mstamp);
		c->exit_idle_us = c->idle_us;
		c->exit_cwnd = c->why == WHY_SSTHRESH ? cwnd : c->cwnd;
	}
	c->cwnd = cwnd;
}

/* The kernel reports one RTT sample in each round trip. */
static __always_inline void on_rtt(struct bpf_sock_ops *ctx, struct tcp_sock *tp, struct entry *e)
{
	__u32 rtt = ctx->args[0];	/* 0 before 6.10 */
	struct conn *c = &e->c;

	if (!rtt)
		rtt = tp->srtt_us >> 3;
	bpf_spin_lock(&e->lock);
	c->samples++;
	c->limited += ((struct tcp_sock___t *)tp)->app_limited != 0;
	c->rtt_sum_us += rtt;
	if (rtt > c->rtt_peak_us)
		c->rtt_peak_us = rtt;
	if (!c->rtt_least_us || rtt < c->rtt_least_us)
		c->rtt_least_us = rtt;
	bpf_spin_unlock(&e->lock);
}

/* Data that was sent at this time is in flight: begins the active time, or ends an idle time that began before. */
static __always_inline void in_flight(struct conn *c, __u64 sent_us)
{
	if (!c->begun_us) {
		c->begun_us = sent_us;
	} else if (c->idle_since_us && sent_us > c->idle_since_us) {
		c->idle_us += sent_us - c->idle_since_us;
		c->idle_since_us = 0;
	}
}

/*
 * Takes a packet that acknowledges everything up to this sequence number, while the lock is held. `now_us` is 0 if more than
 * the FIN is left. Returns the milestone that it passed, or MILESTONES.
 */
static __always_inline __u32 take_ack(struct tcp_sock *tp, struct conn *c, __u32 ack, __u32 written, __u64 now_us)
{
	__u32 state = ((struct sock *)tp)->__sk_common.skc_state, fresh = ack - c->una, reached = c->reached;

	see_exit(tp, c);
	/* A duplicate: the first packet may be lost, and the kernel's note is of a later one once that was delivered. */
	if (!fresh && tp->packets_out)
		in_flight(c, tp->first_tx_mstamp);
	/*
	 * Old, or of data that was never written. On a veth or loopback an ACK arrives while the kernel is still sending, before
	 * it advances snd_nxt.
	 */
	if (!fresh || (__s32)fresh < 0 || (__s32)(written - ack) < 0)
		return MILESTONES;
	c->una = ack;
	/* The FIN is not data. An ACK between the change of the state and that of write_seq looks as if it were of the FIN too. */
	if (ack == written && (state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSING || state == TCP_LAST_ACK)) {
		if (c->fin) {
			c->acked += fresh;
			return MILESTONES;
		}
		c->fin = 1;
		if (!--fresh)
			return MILESTONES;
	}
	/* The kernel notes when it sends while nothing is in flight; while it still does that, it has only read the clock. */
	in_flight(c, tp->packets_out || (__s32)(tp->snd_nxt - ack) >= 0 ? tp->first_tx_mstamp : tp->tcp_mstamp);
	c->idle_since_us = 0;
	c->acked += fresh;
	if (now_us) {
		c->last_us = active(c, now_us);
		if (ack == written)
			c->idle_since_us = now_us;
	}
	if (reached >= MILESTONES || c->acked < (reached == 0 ? 100000 : reached == 1 ? 1000000 : 10000000))
		return MILESTONES;
	c->reached = reached + 1;
	return reached;
}

static __always_inline void on_ack(struct tcp_sock *tp, struct entry *e, __u32 ack)
{
	__u32 written = tp->write_seq, passed;
	__u64 now_us = 0;

	/* Of most ACKs the time is not needed, and reading the clock costs as much as the rest. */
	if (written - ack <= 1 && ack != e->c.una)
		now_us = bpf_ktime_get_ns() / 1000;
	bpf_spin_lock(&e->lock);
	passed = take_ack(tp, &e->c, ack, written, now_us);
	bpf_spin_unlock(&e->lock);
	if (passed >= MILESTONES)
		return;
	if (!now_us)
		now_us = bpf_ktime_get_ns() / 1000;
	e->c.milestone_us[passed] = active(&e->c, now_us);
	write_record(tp, e, 0);
}

SEC("cgroup/setsockopt")
int on_choice(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct entry *e;

	if (sk && ctx->level == SOL_TCP && ctx->optname == TCP_CONGESTION) {
		e = bpf_sk_storage_get(&conns, sk, 0, 0);
		if (e)
			choose(&e->c);
	}
	/* The kernel refuses a value of more than a page that this returns as it is. */
	if (ctx->optlen > 4096)
		ctx->optlen = 0;
	return 1;
}

SEC("cgroup_skb/ingress")
int on_packet(struct __sk_buff *skb)
{
	__u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end, *tcp;
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tp;
	struct entry *e;

	if (!sk)
		return 1;
	e = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!e || data + IPV6_HEADER > end)
		return 1;
	if (skb->protocol == __builtin_bswap16(ETH_P_IP))
		tcp = data + (data[0] & 15) * 4;
	else if (skb->protocol == __builtin_bswap16(ETH_P_IPV6) && data[6] == IPPROTO_TCP)
		tcp = data + IPV6_HEADER;
	else	/* extension headers: a later packet acknowledges the same */
		return 1;
	if (tcp + 14 > end || !(tcp[13] & 0x10))
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		on_ack(tp, e, __builtin_bswap32(*(__u32 *)(tcp + 8)));
	return 1;
}

SEC("sockops")
int trial(struct bpf_sock_ops *ctx)
{
	__u32 op = ctx->op;
	struct bpf_sock *sk;
	struct tcp_sock *tp;
	struct entry *e;

	if (op != RTT_CB && op != STATE_CB && op != ACTIVE_ESTABLISHED && op != PASSIVE_ESTABLISHED)
		return 1;
	if (op == STATE_CB && ctx->args[1] != TCP_CLOSE)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	if (op == ACTIVE_ESTABLISHED || op == PASSIVE_ESTABLISHED) {
		begin(ctx, sk, tp);
		return 1;
	}
	e = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!e)
		return 1;
	if (op == RTT_CB) {
		on_rtt(ctx, tp, e);
	} else {
		write_record(tp, e, 1);
		bpf_sk_storage_delete(&conns, sk);
	}
	return 1;
}
