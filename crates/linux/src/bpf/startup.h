/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A startup around the kernel's own CUBIC or Reno. A file NAME.bpf.c defines what it remembers and how it answers an
 * acknowledgement, then includes hooks.h, which makes a congestion control of it:
 *
 *	struct startup { ... };				zeroed when a connection begins
 *	static void on_ack(struct startup *, struct facts *)	fills the decided half; `earned` is preset
 *
 * and may define AS_BORN (it begins anew after a timeout or silence), HYSTART (the kernel's own is left on), QUEUE (it
 * wants to know of the interface's queue), ON_BEGIN with on_begin(facts) (called once, with KIND_BEGIN) and
 * LEAVES_WITH(startup, why) (the reason it leaves with on congestion).
 *
 * An answer that leaves (`why`) keeps the window unless it sets it or leaves something in `earned`: that is grown first.
 */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "facts.h"

char _license[] SEC("license") = "GPL";

#define US 1000ull		/* nanoseconds */
#define ONE 1000000ull		/* parameters that are shares are in millionths */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* a * b / c, exact while c * b fits; 128 bits there are none. */
static __always_inline __u64 mul_div(__u64 a, __u64 b, __u64 c)
{
	c = MAX(c, 1);
	return a / c * b + a % c * b / c;
}

/* Set before loading, constant for the verifier: the first says whether Reno follows rather than CUBIC, the rest are the
 * startup's parameters in the order of the table in table.rs. */
#define PARAMS 12
const volatile __u64 config[1 + PARAMS] SEC(".rodata.config") = { 0 };
#define RENO (config[0])
#define PARAM(i) (config[1 + (i)])
