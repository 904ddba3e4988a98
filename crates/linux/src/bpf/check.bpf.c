// SPDX-License-Identifier: GPL-2.0
/*
 * One program of each type and one map of each type that other objects need, each as small as it can be: `check.rs` loads them
 * one at a time to find out which of them the kernel refuses.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} sk_storage SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} ringbuf SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} lru_hash SEC(".maps");

SEC("tp_btf/tcp_probe")
int BPF_PROG(try_tp_btf, struct sock *sk, void *skb)
{
	return 0;
}

SEC("sockops")
int try_sockops(void *ctx)
{
	return 1;
}

SEC("cgroup/setsockopt")
int try_setsockopt(void *ctx)
{
	return 1;
}

SEC("cgroup_skb/ingress")
int try_cgroup_skb(void *ctx)
{
	return 1;
}
