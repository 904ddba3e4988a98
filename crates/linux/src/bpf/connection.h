/* SPDX-License-Identifier: GPL-2.0 */
/* What an object keeps for each connection, its maps and counters, and the record of an event; see startup.h. */
#pragma once

struct conn {
	struct startup s;
	__u64 credit;		/* bytes of growth that are not yet a whole segment */
	__u32 rtt_us;		/* RTT sample of the ACK being processed; 0: none */
	__u32 least_us;		/* the least RTT sample since the last timeout, without that of the handshake; 0: none */
	__u32 iw;		/* segments */
	__u32 asked;		/* the startup is in control */
	__u32 first;		/* ... for the first time: its end is counted as an exit */
	__u32 was_asked, was_first; /* before the last reduction, for an undo */
	__u32 undoable;		/* there was a reduction since the last undo */
	__u32 left;		/* reason for the end of the startup */
	__u32 cut_cwnd, cut_ssthresh; /* before the last reduction; 0: reported already */
	__u64 sent, acked;	/* bytes, at the last ACK for which the startup was called */
	__u32 delivered;	/* segments, then */
	__u32 recovering;	/* a loss episode goes on in which the startup continues */
#ifdef OWNS_RECOVERY
	__u32 owned_cwnd;	/* what the startup has set in the loss episode that ended it; 0: there is none */
#endif
#ifdef PACES
	struct pacing pacing;
#endif
#ifdef MEMORY
	struct remembering memory;
#endif
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

/* Counters, read by user space. */
struct counts {
	__u64 started;		/* connections that ever used this control; those that use it now are found by open.bpf.c */
	__u64 ended;		/* those whose end the kernel reported */
	__u64 dropped_events;	/* because the ring was full */
	__u64 without_storage;	/* connections for which there was no memory: they run the avoidance only */
	__u64 exits[WHY_MAX];
} counts SEC(".data.counts") = { 0 };

/*
 * Written by user space: which events are written to the ring (0 none, 1 all but ACKs, 2 all), and until when, in ns, so
 * that a reader that was killed costs nothing.
 */
struct {
	__u64 level, until;
} watching SEC(".data.watching") = { 0 };

/* As tcp_is_cwnd_limited(): in slow start, true if more than half of cwnd was used. */
static __always_inline __u32 cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void read_peer(struct sock *sk, struct facts *f)
{
	struct sock_common *c = &sk->__sk_common;

	/* The field does not exist in a kernel without IPv6. */
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
 * The root qdisc of the interface that this connection sends through. Its limit is in packets, but in bytes for bfifo. One
 * that shows no limit (TBF) is taken to hold tx_queue_len packets.
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
	f->sent_since = f->sent_bytes - c->sent;
	f->acked_since = f->acked_bytes - c->acked;
	f->unsent = tp->write_seq - tp->snd_nxt;
	f->newest_us = tp->first_tx_mstamp;
	f->rwnd = tp->snd_wnd;
	f->lost = tp->lost;
	f->prior = f->inflight + (tp->delivered - c->delivered);
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
	f->no_data_sent = !tp->data_segs_out;
	f->undo_marker = tp->undo_marker != 0;
	f->cwnd_after = f->cwnd;
	f->ssthresh_after = f->ssthresh;
#ifdef QUEUE
	read_queue(sk, f);
#endif
	f->earned = (__u64)acked * f->mss;
}

/* Plain ACKs, and attempts to send after the startup, do not wake the reader, which polls; the other events are rare and do. */
static __always_inline void write_event(struct facts *f)
{
	int plain = !f->why && (f->kind == KIND_ACK || (f->kind == KIND_SEND && !f->asked));

	if (watching.level && (!plain || watching.level > 1) && f->now_ns < watching.until &&
	    bpf_ringbuf_output(&events, f, sizeof(*f), plain ? BPF_RB_NO_WAKEUP : 0))
		__sync_fetch_and_add(&counts.dropped_events, 1);
}

/* Ends the startup. Counted once per connection, however often it restarts after timeouts. */
static __always_inline void end_startup(struct conn *c, struct facts *f, __u32 why)
{
	if (c->first && why < WHY_MAX) {
		__sync_fetch_and_add(&counts.exits[why], 1);
		c->left = why;
		f->why = why;
	}
	c->asked = c->first = 0;
}
