/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A startup in front of the kernel's own CUBIC or Reno. A file NAME.bpf.c defines its state and its reaction to an
 * acknowledgement, then includes hooks.h, which defines the congestion control:
 *
 *	struct startup { ... };				zeroed when a connection begins
 *	static void on_ack(struct startup *, struct facts *)	fills the decision; `earned` is preset
 *
 * and may define
 *
 *	RESTARTS_TIMEOUT, RESTARTS_IDLE, RESTARTS	its state is reset and it runs again after a timeout, an idle time, both
 *	OWN_SSTHRESH		it sets ssthresh and runs on beyond it, where the avoidance determines growth
 *	PACES			it sets a pacing rate (`pace`)
 *	MEMORY			it uses what earlier connections to the peer left; see memory.h
 *	HYSTART			the kernel's HyStart stays on
 *	EACH_SAMPLE		on_ack is also called for an ACK that brings an RTT sample and acknowledges nothing cumulatively
 *	QUEUE			it reads the interface's queue
 *	ON_BEGIN		on_begin(startup, facts) is called once, with KIND_BEGIN
 *	ON_IDLE			on_idle(startup, facts) is called when cwnd is restarted after an idle time
 *	ON_SEND			on_send(startup, facts) is called before data is sent, until the first ACK
 *	ON_CONGESTION		on_congestion(startup, facts) is called on a loss, a mark or a timeout, with `why` preset; it may
 *				clear that to continue, and set cwnd (the target of the kernel's recovery) or ssthresh
 *	ON_RECOVERED		on_recovered(startup, facts) is called at the end of a loss episode, and on_undone(startup)
 *				if it was spurious
 *	OWNS_RECOVERY		it sets cwnd during the loss episode that ends it: in_recovery(startup, facts) is called before each
 *				attempt to send, with the window that it set last in `cwnd`; on_recovered() is the last call
 *	EXIT_REASON(startup, why)	the exit reason to report if it ends by congestion
 *
 * A decision that ends the startup (`why`) keeps cwnd, unless it sets cwnd or leaves growth in `earned`, which is applied.
 * ssthresh becomes cwnd, unless it sets that.
 */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "facts.h"

char _license[] SEC("license") = "GPL";

#define US 1000ull		/* nanoseconds */
#define ONE 1000000ull		/* parameters that are fractions are in millionths */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* a * b / c without 128-bit arithmetic; exact as long as c * b fits in 64 bits. */
static __always_inline __u64 mul_div(__u64 a, __u64 b, __u64 c)
{
	c = MAX(c, 1);
	return a / c * b + a % c * b / c;
}

#define NS_PER_S 1000000000ull

/* Bits per second of `bytes` in `ns`, and the bytes that a rate delivers in `ns`; see `Rate` in units.rs. */
static __always_inline __u64 rate_of(__u64 bytes, __u64 ns)
{
	return mul_div(bytes * 8, NS_PER_S, ns);
}

static __always_inline __u64 rate_over(__u64 bits, __u64 ns)
{
	return mul_div(bits, ns, 8 * NS_PER_S);
}

static __always_inline __u64 sub(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* Written before loading and constant for the verifier: 1 for Reno or 0 for CUBIC, then the startup's parameters in the order
 * of table.rs. */
#define PARAMS 13
const volatile __u64 config[1 + PARAMS] SEC(".rodata.config") = { 0 };
#define RENO (config[0])
#define PARAM(i) (config[1 + (i)])

/* Sets cwnd and ssthresh in a decision, from bytes. */
static __always_inline void set_cwnd(struct facts *f, __u64 bytes)
{
	f->set = MAX(bytes / f->mss, 1);
	f->earned = 0;
}

static __always_inline void set_ssthresh(struct facts *f, __u64 bytes)
{
	f->threshold = MAX(bytes / f->mss, 2);
}

/* The RTT of the handshake in ns; 0 if it is not known, or ambiguous because a segment was resent. */
static __always_inline __u64 handshake_rtt(struct facts *f)
{
	return f->no_data_sent && !f->retransmitted ? f->srtt_us * US : 0;
}
