// SPDX-License-Identifier: GPL-2.0
/* Chooses the congestion control of every connection of a cgroup, before it sends data and whatever the program chose. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

enum { SOL_TCP = 6, TCP_CONGESTION = 13 };
enum { ACTIVE_ESTABLISHED = 4, PASSIVE_ESTABLISHED = 5 };

struct bpf_sock_ops {
	__u32 op;
};

const volatile char control[16] SEC(".rodata.control") = { 0 };
__u64 chosen[2] SEC(".data.chosen") = { 0 };	/* how often, and how often the kernel refused */

SEC("sockops")
int choose(struct bpf_sock_ops *ctx)
{
	char name[16];

	if (ctx->op != ACTIVE_ESTABLISHED && ctx->op != PASSIVE_ESTABLISHED)
		return 1;
	for (int i = 0; i < 16; i++)
		name[i] = control[i];
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		__sync_fetch_and_add(&chosen[1], 1);
	else
		__sync_fetch_and_add(&chosen[0], 1);
	return 1;
}
