// SPDX-License-Identifier: GPL-2.0
/* Finds the connections of a control: writes the address of each socket that has storage in the control's map. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

/* The control's own map: the loader puts it in place of this one. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} conns SEC(".maps");

static __always_inline void write_address(struct bpf_iter_meta *meta, void *sk)
{
	__u64 address = (__u64)(long)sk;

	bpf_seq_write(meta->seq, &address, sizeof(address));
}

/* Iterates over the map. */
SEC("iter/bpf_sk_storage_map")
int each(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	/* After the last one it is called once more without a socket. */
	if (ctx->sk)
		write_address(ctx->meta, ctx->sk);
	return 0;
}

/* Walks the TCP sockets of the network namespace of whoever begins the walk. */
SEC("iter/tcp")
int walk(struct bpf_iter__tcp *ctx)
{
	struct sock_common *c = ctx->sk_common;
	struct tcp_sock *tp;

	/* Keeps the pointer that is compared: the compiler would load it again, and the verifier does not know that one. */
	asm volatile("" : "+r"(c));
	if (!c)
		return 0;
	tp = bpf_skc_to_tcp_sock(c);
	if (tp && bpf_sk_storage_get(&conns, tp, 0, 0))
		write_address(ctx->meta, tp);
	return 0;
}
