// SPDX-License-Identifier: GPL-2.0
/*
 * Sets the congestion control of every new connection of a cgroup, when it is established and before it sends data. This
 * overrides what the program chose.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

enum { SOL_TCP = 6, TCP_CONGESTION = 13 };
enum { ACTIVE_ESTABLISHED = 4, PASSIVE_ESTABLISHED = 5 };

struct bpf_sock_ops {
	__u32 op;
};

/* Written by the loader (select.rs). The program does not read `cgroup`: it is for whoever lists the selections. */
struct choice {
	char control[16];
	char cgroup[4096];	/* path */
};

const volatile struct choice choice SEC(".rodata.choice") = { 0 };
__u64 chosen[2] SEC(".data.chosen") = { 0 };	/* connections set, connections that the kernel refused to set */

SEC("sockops")
int ss_select(struct bpf_sock_ops *ctx)
{
	char name[16];

	if (ctx->op != ACTIVE_ESTABLISHED && ctx->op != PASSIVE_ESTABLISHED)
		return 1;
	for (int i = 0; i < 16; i++)
		name[i] = choice.control[i];
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		__sync_fetch_and_add(&chosen[1], 1);
	else
		__sync_fetch_and_add(&chosen[0], 1);
	return 1;
}
