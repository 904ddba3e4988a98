/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/*
 * What a startup in the kernel may know of an event, and what it decided: the kernel's part of `Facts` and `Ack`. The
 * first half is read from the kernel's own fields before the decision. `facts.rs` is the same record in Rust.
 */
#pragma once

enum kind {
	KIND_BEGIN,	/* the connection is established, or took this control */
	KIND_ACK,	/* the startup was asked */
	KIND_LOSS,	/* a loss episode begins */
	KIND_TIMEOUT,	/* the retransmission timer fired */
	KIND_IDLE,	/* the window was restarted after silence */
	KIND_UNDO,	/* the loss proved spurious */
	KIND_END,	/* the connection closed, or took another control */
};

enum why {
	WHY_NONE,
	WHY_SSTHRESH,	/* the window reached a threshold that somebody else set */
	WHY_LOSS,
	WHY_TIMEOUT,
	WHY_CWR,	/* marked by the network, or refused by the host's own queue */
	WHY_CSS_ROUNDS,
	WHY_RATE_FLAT,
	WHY_DELAY,	/* the round trip rose */
	WHY_ESTIMATE,	/* the window reached an estimate of capacity */
	WHY_MAX,
};

struct facts {
	/* known */
	__u64 sk;		/* which connection, while it lives */
	__u64 now_ns;
	__u64 acked_bytes;	/* acknowledged cumulatively since the connection began */
	__u64 sent_bytes;	/* sent, retransmissions included */
	__u64 next;		/* what acked_bytes will be when all that is sent is acknowledged */
	__u64 pacing_rate;	/* bytes a second */
	__u64 queue_used;	/* bytes in the queue of the host's interface, where a startup asks for it */
	__u64 queue_limit;	/* ... and what it holds; 0: not known */
	__u32 kind;
	__u32 mss;
	__u32 cwnd;		/* segments, before */
	__u32 ssthresh;		/* segments, before */
	__u32 inflight;		/* segments */
	__u32 acked;		/* segments this ACK delivered */
	__u32 rtt_us;		/* the sample it brought, or 0 */
	__u32 srtt_us;
	__u32 min_rtt_us;	/* 0: none yet */
	__u32 iw;		/* segments */
	__u32 delivered;	/* segments */
	__u32 retransmitted;	/* segments */
	__u32 gso_max;		/* bytes the kernel hands to the interface at once */
	__u32 peer[4];		/* an IPv6 address in network order; IPv4 as ::ffff:a.b.c.d */
	__u16 sport, dport;
	__u32 paced;
	__u32 asked;		/* whether the startup is still asked, before */
	__u32 limited;		/* the window held the sender back: growth is earned */
	__u32 fresh;		/* no data has been sent */
	__u32 doubted;		/* what was sent again may have been lost: nothing has proved it spurious */
	__u32 cut;		/* the window was cut with this event */
	/* decided */
	__u32 why;		/* left startup, for this reason */
	__u32 set;		/* the window is to be this, in segments; 0: it is left alone */
	__u32 threshold;	/* so is the threshold */
	/* what became of it, the avoidance included */
	__u32 cwnd_after;
	__u32 ssthresh_after;
	__u32 pad;
	__u64 earned;		/* bytes the window may grow by, before the kernel's own gating */
};
