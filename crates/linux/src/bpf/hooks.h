/* SPDX-License-Identifier: GPL-2.0 */
/* Makes a congestion control of the startup defined above; see startup.h. NAME is its name in the kernel. */
#pragma once

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

struct conn {
	struct startup s;
	__u64 credit;		/* bytes earned that are not yet a segment */
	__u32 rtt_us;		/* the sample of the ACK being processed */
	__u32 iw;
	__u32 asked;		/* the startup is asked */
	__u32 first;		/* ... for the first time: its end is an exit */
	__u32 was_asked, was_first; /* before the cut, for an undo */
	__u32 undoable;		/* ... if there was one since the last */
	__u32 left;		/* why it was left */
	__u32 cut_cwnd, cut_ssthresh; /* before the cut; 0: told already */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} events SEC(".maps");

/* What somebody outside may read. */
struct counts {
	__u64 begun;		/* connections that were under this control; those that are have storage, see open.bpf.c */
	__u64 missed;		/* events for which the ring had no room */
	__u64 bare;		/* connections for which there was no memory: they run the avoidance alone */
	__u64 exits[WHY_MAX];
} counts SEC(".data.counts") = { 0 };

/*
 * What somebody outside may write: nothing is told (0), events are (1), each ACK is too (2); and until when, so that one
 * who was killed costs nothing.
 */
struct {
	__u64 level, until;
} watching SEC(".data.watching") = { 0 };

/* As tcp_is_cwnd_limited: in slow start, a window of which more than half was used. */
static __always_inline __u32 cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void read_peer(struct sock *sk, struct facts *f)
{
	struct sock_common *c = &sk->__sk_common;

	/* A kernel may be built without IPv6. */
	if (c->skc_family == AF_INET6 && bpf_core_field_exists(c->skc_v6_daddr)) {
		f->peer[0] = c->skc_v6_daddr.in6_u.u6_addr32[0];
		f->peer[1] = c->skc_v6_daddr.in6_u.u6_addr32[1];
		f->peer[2] = c->skc_v6_daddr.in6_u.u6_addr32[2];
		f->peer[3] = c->skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		f->peer[2] = __builtin_bswap32(0xffff);
		f->peer[3] = c->skc_daddr;
	}
}

#ifdef QUEUE
/*
 * The root queue of the interface this connection sends through. Its limit counts packets, but bytes in a bfifo; one that
 * keeps it to itself (TBF) holds what the device's own queue would.
 */
static __always_inline void read_queue(struct sock *sk, struct facts *f)
{
	struct dst_entry *dst = sk->sk_dst_cache;
	struct net_device *dev = dst ? dst->dev : 0;
	struct Qdisc *q = dev ? dev->qdisc : 0;

	if (!q)
		return;
	f->queue_used = q->qstats.backlog;
	f->queue_limit = q->limit ? q->limit : dev->tx_queue_len;
	if (!q->limit || q->ops->id[0] != 'b')
		f->queue_limit *= dev->mtu;
}
#endif

static __always_inline void read_facts(struct sock *sk, struct conn *c, __u32 kind, __u32 acked, struct facts *f)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	__builtin_memset(f, 0, sizeof(*f));
	f->sk = (__u64)(long)sk;
	f->kind = kind;
	f->now_ns = tp->tcp_mstamp * US;
	f->acked_bytes = tp->bytes_acked;
	f->sent_bytes = tp->bytes_sent;
	f->next = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
	f->pacing_rate = sk->sk_pacing_rate;
	f->mss = MAX(tp->mss_cache, 1);
	f->cwnd = tp->snd_cwnd;
	f->ssthresh = tp->snd_ssthresh;
	f->inflight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	f->acked = acked;
	f->srtt_us = tp->srtt_us >> 3;
	f->min_rtt_us = tp->rtt_min.s[0].v + 1 ? tp->rtt_min.s[0].v : 0;
	f->gso_max = sk->sk_gso_max_size;
	f->delivered = tp->delivered;
	f->retransmitted = tp->total_retrans;
	read_peer(sk, f);
	f->sport = sk->__sk_common.skc_num;
	f->dport = __builtin_bswap16(sk->__sk_common.skc_dport);
	f->paced = sk->sk_pacing_status != 0;
	f->rtt_us = c->rtt_us;
	f->iw = c->iw;
	f->asked = c->asked;
	f->limited = cwnd_limited(tp);
	f->fresh = !tp->data_segs_out;
	f->doubted = tp->undo_marker != 0;
	f->cwnd_after = f->cwnd;
	f->ssthresh_after = f->ssthresh;
#ifdef QUEUE
	read_queue(sk, f);
#endif
	f->earned = (__u64)acked * f->mss;
}

/* ACKs come by the thousand: whoever reads them polls. The rest are rare, and wake the reader. */
static __always_inline void tell(struct facts *f)
{
	if (watching.level && (f->kind != KIND_ACK || f->why || watching.level > 1) && f->now_ns < watching.until &&
	    bpf_ringbuf_output(&events, f, sizeof(*f), f->kind == KIND_ACK && !f->why ? BPF_RB_NO_WAKEUP : 0))
		__sync_fetch_and_add(&counts.missed, 1);
}

/* The startup is over: counted once a connection, however often it is asked again after timeouts. */
static __always_inline void leave(struct conn *c, struct facts *f, __u32 why)
{
	if (c->first && why < WHY_MAX) {
		__sync_fetch_and_add(&counts.exits[why], 1);
		c->left = why;
		f->why = why;
	}
	c->asked = c->first = 0;
}

static __always_inline void silence_hystart(struct sock *sk)
{
#ifndef HYSTART
	/* For this socket alone; the module's parameter is everybody's. */
	if (!RENO)
		((struct bictcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv)->found = 1;
#endif
}

SEC("struct_ops/ss_init")
void BPF_PROG(ss_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;
	struct conn *c;

	if (!RENO)
		cubictcp_init(sk);
	silence_hystart(sk);
	c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c) {
		__sync_fetch_and_add(&counts.bare, 1);
		return;
	}
	__sync_fetch_and_add(&counts.begun, 1);
	c->iw = tp->snd_cwnd;
	/* A connection that took this control in its midst has left slow start already, if it has a threshold. */
	c->asked = c->first = tp->snd_cwnd < tp->snd_ssthresh;
	read_facts(sk, c, KIND_BEGIN, 0, &f);
#ifdef ON_BEGIN
	on_begin(&f);
	if (f.set)
		tp->snd_cwnd = MIN(f.set, tp->snd_cwnd_clamp);
	if (f.threshold)
		tp->snd_ssthresh = MAX(f.threshold, 2);
	if (tp->snd_cwnd > tp->snd_ssthresh && c->asked)
		leave(c, &f, WHY_SSTHRESH);
	f.cwnd_after = tp->snd_cwnd;
	f.ssthresh_after = tp->snd_ssthresh;
#endif
	tell(&f);
}

/* May be called twice for one connection (6.1, 6.12, after a disconnect). */
SEC("struct_ops/ss_release")
void BPF_PROG(ss_release, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (!c)
		return;
	read_facts(sk, c, KIND_END, 0, &f);
	if (c->first)
		leave(c, &f, WHY_NONE);
	tell(&f);
	bpf_sk_storage_delete(&conns, sk);
}

SEC("struct_ops/ss_acked")
void BPF_PROG(ss_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (!RENO)
		cubictcp_acked(sk, sample);
	if (c)
		c->rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0;
#ifdef HYSTART
	/* An ACK that tells of nothing but what a SACK holds is no matter for cong_avoid; HyStart has counted its round trip. */
	if (c && c->asked && c->rtt_us && !sample->pkts_acked) {
		struct facts f;

		read_facts(sk, c, KIND_ACK, 0, &f);
		c->rtt_us = 0;
		if (f.cwnd >= f.ssthresh)
			leave(c, &f, WHY_SSTHRESH);
		tell(&f);
	}
#endif
}

/* What is earned and amounts to whole segments; the rest is kept. Nothing is earned where the window was not needed. */
static __always_inline __u32 whole(struct conn *c, struct facts *f)
{
	__u64 n;

	if (!f->limited)
		return 0;
	c->credit += f->earned;
	n = c->credit / f->mss;
	c->credit -= n * f->mss;
	return n;
}

/* The one place where a startup's wish becomes a window. Answers the segments that the kernel is to count. */
static __always_inline __u32 answer(struct tcp_sock *tp, struct conn *c, struct facts *f)
{
	__u32 why, rest = f->acked;

	on_ack(&c->s, f);
	if (f->set)
		tp->snd_cwnd = MIN(f->set, tp->snd_cwnd_clamp);
	why = f->why;
	if (!why)
		return whole(c, f);
	f->why = WHY_NONE;
	if (f->set)
		rest = 0;
	if (f->earned) {
		tp->snd_cwnd = MIN(tp->snd_cwnd + whole(c, f), MIN(f->ssthresh, tp->snd_cwnd_clamp));
		rest = 0;
	}
	tp->snd_ssthresh = MAX(tp->snd_cwnd, 2);
	leave(c, f, why);
	return rest;
}

static __always_inline void avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	if (RENO)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/ss_cong_avoid")
void BPF_PROG(ss_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;

	if (!c || !c->asked) {
		avoid(sk, ack, acked);
		return;
	}
	read_facts(sk, c, KIND_ACK, acked, &f);
	c->rtt_us = 0;
	if (f.cwnd >= f.ssthresh)
		leave(c, &f, WHY_SSTHRESH);
	else
		acked = answer(tp, c, &f);
	/* A startup that holds the window leaves nothing to do. */
	if (acked)
		avoid(sk, ack, acked);
	f.cwnd_after = tp->snd_cwnd;
	f.ssthresh_after = tp->snd_ssthresh;
	tell(&f);
}

/* Called as an episode of loss begins, before ss_state tells which: only there is the reason known, here the window. */
SEC("struct_ops/ss_ssthresh")
__u32 BPF_PROG(ss_ssthresh, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (c) {
		c->was_asked = c->asked;
		c->was_first = c->first;
		c->undoable = 1;
		c->cut_cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
		c->cut_ssthresh = ((struct tcp_sock *)sk)->snd_ssthresh;
	}
	return RENO ? tcp_reno_ssthresh(sk) : cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops/ss_undo")
__u32 BPF_PROG(ss_undo, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (c) {
		read_facts(sk, c, KIND_UNDO, 0, &f);
		/* An exit that was taken back does not count. */
		if (c->undoable && c->was_first && !c->first && c->left < WHY_MAX)
			__sync_fetch_and_sub(&counts.exits[c->left], 1);
		if (c->undoable) {
			c->asked = c->was_asked;
			c->first = c->was_first;
			c->undoable = 0;
		}
		tell(&f);
	}
	return tcp_reno_undo_cwnd(sk);
}

/* Slow start from the beginning of the startup, where it wants that. */
static __always_inline void again(struct conn *c)
{
#ifdef AS_BORN
	__builtin_memset(&c->s, 0, sizeof(c->s));
	c->asked = 1;
#endif
}

SEC("struct_ops/ss_state")
void BPF_PROG(ss_state, struct sock *sk, __u8 new_state)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (!RENO)
		cubictcp_state(sk, new_state);
	if (new_state == TCP_CA_Loss)
		silence_hystart(sk); /* cubictcp_state has forgotten it */
	if (!c || new_state == TCP_CA_Open || new_state == TCP_CA_Disorder)
		return;
	read_facts(sk, c, new_state == TCP_CA_Loss ? KIND_TIMEOUT : KIND_LOSS, 0, &f);
	if (c->cut_cwnd) {
		f.cwnd = c->cut_cwnd;
		f.ssthresh = c->cut_ssthresh;
		c->cut_cwnd = 0;
		f.cut = 1;
	}
	if (c->asked) {
		__u32 why = new_state == TCP_CA_Loss ? WHY_TIMEOUT : new_state == TCP_CA_CWR ? WHY_CWR : WHY_LOSS;

#ifdef LEAVES_WITH
		why = LEAVES_WITH(&c->s, why);
#endif
		leave(c, &f, why);
	}
	tell(&f);
	if (new_state == TCP_CA_Loss)
		again(c);
}

static __always_inline void event(struct sock *sk, enum tcp_ca_event ev)
{
	struct facts f;
	struct conn *c;

	if (ev != CA_EVENT_CWND_RESTART)
		return;
	c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!c)
		return;
	read_facts(sk, c, KIND_IDLE, 0, &f);
	tell(&f);
	again(c);
}

SEC("struct_ops/ss_event")
void BPF_PROG(ss_event, struct sock *sk, enum tcp_ca_event ev)
{
	if (!RENO)
		cubictcp_cwnd_event(sk, ev);
	event(sk, ev);
}

#define COMMON							\
	.init = (void *)ss_init,				\
	.release = (void *)ss_release,				\
	.ssthresh = (void *)ss_ssthresh,			\
	.cong_avoid = (void *)ss_cong_avoid,			\
	.pkts_acked = (void *)ss_acked,				\
	.undo_cwnd = (void *)ss_undo,				\
	.set_state = (void *)ss_state,				\
	.flags = TCP_CONG_NON_RESTRICTED,			\
	.name = NAME

#ifdef STOCK
/* For bpftool as distributions have it: 6.1 to 6.18, the startup's defaults, CUBIC. */
SEC(".struct_ops")
struct tcp_congestion_ops ops = { COMMON, .cwnd_event = (void *)ss_event };
#else
SEC("struct_ops/ss_event_v7")
void BPF_PROG(ss_event_v7, struct sock *sk, enum tcp_ca_event ev)
{
	event(sk, ev);
}

SEC("struct_ops/ss_tx_start")
void BPF_PROG(ss_tx_start, struct sock *sk)
{
	if (!RENO)
		cubictcp_cwnd_event_tx_start(sk);
}

/* The loader keeps the one that fits the kernel. */
SEC(".struct_ops.link")
struct tcp_congestion_ops ops = { COMMON, .cwnd_event = (void *)ss_event };

SEC(".struct_ops.link")
struct tcp_congestion_ops___v7 ops_v7 = {
	COMMON, .cwnd_event = (void *)ss_event_v7, .cwnd_event_tx_start = (void *)ss_tx_start,
};
#endif
