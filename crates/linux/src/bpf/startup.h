/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A startup around the kernel's own CUBIC or Reno. A file NAME.bpf.c defines what it remembers and how it answers an
 * acknowledgement, then includes hooks.h, which makes a congestion control of it:
 *
 *	struct startup { ... };				zeroed when a connection begins
 *	static void on_ack(struct startup *, struct facts *)	fills the decided half; `earned` is preset
 *
 * and may define AS_BORN (it begins anew after a timeout or silence), HYSTART (the kernel's own is left on) and
 * on_begin(sk) (called once at the beginning).
 */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "facts.h"

char _license[] SEC("license") = "GPL";

#define US 1000ull		/* nanoseconds */
#define ONE 1000000ull		/* parameters that are shares are in millionths */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Set before loading, constant for the verifier: the first says whether Reno follows rather than CUBIC, the rest are the
 * startup's parameters in the order of the table in table.rs. */
#define PARAMS 12
const volatile __u64 config[1 + PARAMS] SEC(".rodata.config") = { 0 };
#define RENO (config[0])
#define PARAM(i) (config[1 + (i)])
