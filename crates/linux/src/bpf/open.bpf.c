// SPDX-License-Identifier: GPL-2.0
/* Counts the connections that a control has: writes a byte for each that has storage in the map it is attached to. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

SEC("iter/bpf_sk_storage_map")
int each(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	/* Called once more after the last, with none. */
	if (ctx->sk)
		bpf_seq_write(ctx->meta->seq, "", 1);
	return 0;
}
