/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel types that the startups use. Offsets are taken from the BTF of the running kernel at load time (CO-RE), so only
 * names and types matter here, and one object fits every kernel from 6.1 on.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24, BPF_MAP_TYPE_RINGBUF = 27 };
enum { SOL_SOCKET = 1, SO_MAX_PACING_RATE = 47 };
enum { BPF_F_NO_PREALLOC = 1, BPF_SK_STORAGE_GET_F_CREATE = 1, BPF_RB_NO_WAKEUP = 1 };
enum { AF_INET = 2, AF_INET6 = 10 };
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART };
enum { TCP_SYN_RECV = 3 };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCP_INFINITE_SSTHRESH = 0x7fffffff, TCP_CONG_NON_RESTRICTED = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct netns_ipv4 {
	__u8 sysctl_tcp_min_tso_segs;
};

struct net {
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__u16 skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	__be32 skc_daddr;
	struct in6_addr skc_v6_daddr;
	__u16 skc_num;
	__be16 skc_dport;
};

struct gnet_stats_queue {
	__u32 backlog;
};

struct Qdisc_ops {
	char id[16];
};

struct Qdisc {
	const struct Qdisc_ops *ops;
	__u32 limit;
	struct gnet_stats_queue qstats;
};

struct net_device {
	struct Qdisc *qdisc;
	unsigned int mtu, tx_queue_len;
};

struct dst_entry {
	struct net_device *dev;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	__u32 sk_pacing_status;
	unsigned int sk_gso_max_size;
};

struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
};

struct minmax_sample {
	__u32 t, v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	__u64 bytes_sent, bytes_acked, tcp_mstamp, first_tx_mstamp, delivered_mstamp;
	__u32 snd_una, snd_nxt, write_seq, snd_wnd, snd_cwnd, snd_ssthresh, snd_cwnd_clamp;
	__u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
	__u8 is_cwnd_limited : 1;
	__u32 srtt_us, mss_cache, delivered, lost, total_retrans, undo_marker, data_segs_out, app_limited;
	struct minmax rtt_min;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct rate_sample {
	__u64 prior_mstamp;
	__u32 prior_delivered;
	__s32 delivered;
	long interval_us, rtt_us;
	__u32 acked_sacked, last_end_seq;
	bool is_app_limited;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

/* CUBIC's private data, in icsk_ca_priv. */
struct bictcp {
	__u8 found;
};

#pragma clang attribute pop

/* The operations of a congestion control; every member must exist in the kernel. */
struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	/* Since 6.10 its arguments are others; see bbr3.bpf.c. */
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	__u32 flags;
	char name[16];
};

/* Since 7.x: the start of transmission has an operation of its own. */
struct tcp_congestion_ops___v7 {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*min_tso_segs)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	__u32 flags;
	char name[16];
};
