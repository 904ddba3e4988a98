/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A startup in front of the kernel's own CUBIC or Reno. A file NAME.bpf.c defines its state and its reaction to an
 * acknowledgement, then includes hooks.h, which defines the congestion control:
 *
 *	struct startup { ... };				zeroed when a connection begins
 *	static void on_ack(struct startup *, struct facts *)	fills the decision; `earned` is preset
 *
 * and may define RESTARTS (its state is reset and it runs again after a timeout or an idle time), HYSTART (the kernel's
 * HyStart stays on), QUEUE (it reads the interface's queue), ON_BEGIN with on_begin(facts) (called once, with KIND_BEGIN)
 * and EXIT_REASON(startup, why) (the exit reason to report if it ends by congestion).
 *
 * A decision that ends the startup (`why`) keeps cwnd, unless it sets cwnd or leaves growth in `earned`, which is applied.
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

/* Written before loading and constant for the verifier: 1 for Reno or 0 for CUBIC, then the startup's parameters in the order
 * of table.rs. */
#define PARAMS 12
const volatile __u64 config[1 + PARAMS] SEC(".rodata.config") = { 0 };
#define RENO (config[0])
#define PARAM(i) (config[1 + (i)])
