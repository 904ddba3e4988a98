/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * The record of an event: what a startup may know of it, read from the kernel's fields before the decision, and the
 * decision. `facts.rs` is the same record in Rust.
 */
#pragma once

enum kind {
	KIND_BEGIN,	/* the connection was established, or switched to this control */
	KIND_ACK,	/* an acknowledgement for which the startup was called */
	KIND_LOSS,	/* a loss episode began */
	KIND_TIMEOUT,	/* the retransmission timer fired */
	KIND_IDLE,	/* cwnd was restarted after an idle time */
	KIND_UNDO,	/* a reduction was undone: the loss was spurious */
	KIND_END,	/* the connection closed, or switched to another control */
	KIND_RECOVERED,	/* a loss episode ended, for startups that ask (ON_RECOVERED) */
	KIND_SEND,	/* the sender is about to send, before the first ACK (ON_SEND) or in an episode that a startup owns (OWNS_RECOVERY) */
};

enum why {
	WHY_NONE,
	WHY_SSTHRESH,	/* cwnd reached an ssthresh that the startup did not set */
	WHY_LOSS,
	WHY_TIMEOUT,
	WHY_CWR,	/* ECN marks, or a refusal by the host's own queue */
	WHY_CSS_ROUNDS,
	WHY_RATE_FLAT,
	WHY_DELAY,	/* the RTT rose */
	WHY_ESTIMATE,	/* cwnd reached an estimate of capacity */
	WHY_ACK_TRAIN,	/* the ACKs of a round took as long as the path */
	WHY_MAX,
};

#define PACE_HOST (~0ull)

struct facts {
	/* before the decision */
	__u64 sk;		/* identifier of the connection, unique while it exists */
	__u64 now_ns;
	__u64 acked_bytes;	/* tp->bytes_acked */
	__u64 sent_bytes;	/* sent, retransmissions included */
	__u64 next;		/* value of acked_bytes once everything sent so far is acknowledged */
	__u64 pacing_rate;	/* bytes per second */
	__u64 queue_used;	/* backlog of the interface's queue in bytes, if the startup defines QUEUE */
	__u64 queue_limit;	/* its limit in bytes; 0: unknown */
	__u64 unsent;		/* bytes queued by the application and not sent; for KIND_SEND all not acknowledged, in whole segments */
	__u64 newest_us;	/* when the newest packet that this ACK delivered was sent */
	__u64 sent_since;	/* bytes sent since the last ACK for which the startup was called */
	__u64 acked_since;	/* bytes acknowledged since then */
	__u64 memory_cwnd;	/* path memory, for KIND_BEGIN: bytes; 0: none */
	__u64 memory_rate;	/* bits per second */
	__u32 memory_rtt_us;
	__u32 rwnd;		/* receive window of the peer, in bytes */
	__u32 lost;		/* segments marked lost so far */
	__u32 prior;		/* segments in flight before this ACK */
	__u32 kind;
	__u32 mss;
	__u32 cwnd;		/* segments, before */
	__u32 ssthresh;		/* segments, before */
	__u32 inflight;		/* segments */
	__u32 acked;		/* segments this ACK delivered */
	__u32 rtt_us;		/* RTT sample of this ACK; after an idle time conn->least_us; 0: none */
	__u32 srtt_us;
	__u32 min_rtt_us;	/* 0: none yet */
	__u32 iw;		/* segments */
	__u32 delivered;	/* segments */
	__u32 retransmitted;	/* segments */
	__u32 gso_max;		/* largest GSO packet, in bytes */
	__u32 peer[4];		/* an IPv6 address in network order; IPv4 as ::ffff:a.b.c.d */
	__u16 sport, dport;
	__u32 paced;
	__u32 asked;		/* the startup was still in control */
	__u32 limited;		/* cwnd limited the sender, so it may grow */
	__u32 no_data_sent;
	__u32 undo_marker;	/* set: the retransmissions have not been shown to be spurious */
	__u32 cut;		/* this event reduced cwnd; for a control of its own (BBR): it began a loss episode */
	/* of the newest packet delivered, when it was sent, for BBR only: */
	__u32 newest_delivered;	/* segments delivered then */
	__u32 newest_inflight;	/* segments in flight, an estimate */
	__u32 newest_lost;	/* segments marked lost, an estimate */
	__u32 newest_limited;	/* the application limited the sender */
	__u32 interval_us;	/* of the delivery-rate sample of this ACK; 0: there is none */
	/* the decision */
	__u32 why;		/* the startup ended for this reason */
	__u32 set;		/* new cwnd, in segments; 0: unchanged */
	__u32 threshold;	/* new ssthresh, in segments; 0: unchanged */
	/* after the event, including what the avoidance did */
	__u32 cwnd_after;
	__u32 ssthresh_after;
	__u64 earned;		/* bytes that cwnd may grow by; they count only if `limited` */
	__u64 pace;		/* cap of the pacing rate, in bits per second; 0: unchanged; PACE_HOST: none; for BBR the rate */
};
