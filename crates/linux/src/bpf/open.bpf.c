// SPDX-License-Identifier: GPL-2.0
/* Counts the connections of a control: writes one byte for each that has storage in the map that it iterates over. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

SEC("iter/bpf_sk_storage_map")
int each(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	/* After the last one it is called once more without a socket. */
	if (ctx->sk)
		bpf_seq_write(ctx->meta->seq, "", 1);
	return 0;
}
