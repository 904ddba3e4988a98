/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What connections leave for the next one on their path (RFC 9959). An entry belongs to a prefix of the peer's address and
 * to a local service: the listening port (for a connection that this host opened, the peer's port) or the cgroup. A
 * connection that begins takes the entry, so that one connection at a time uses it (section 3.2); when it ends, it leaves its
 * own, or puts back what it took if it did not come to use it.
 */
#pragma once

struct memory_key {
	__u32 prefix[4];	/* an IPv6 address in network order, IPv4 as ::ffff:a.b.c.d; zero beyond the prefix */
	__u64 scope;		/* port, or identifier of the cgroup */
};

struct memory {
	__u64 cwnd;		/* bytes */
	__u64 rate;		/* bits per second */
	__u64 at;		/* when it was left, in ns since boot, time of sleep included */
	__u32 rtt_us;		/* minimum RTT */
	__u32 pad;
};

/* The loader sets the number of entries. If there is no room, the kernel removes entries that were not used recently. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct memory_key);
	__type(value, struct memory);
} memory SEC(".maps");

/* Written before loading. */
const volatile struct {
	__u32 v4, v6;		/* length of a prefix, in bits */
	__u32 by_cgroup;
	__u32 pad;
	__u64 lifetime;		/* ns */
} memory_config SEC(".rodata.memory") = { 32, 64, 0, 0, 3600 * NS_PER_S };

struct remembering {
	struct memory_key key;
	struct memory taken;	/* cwnd 0: none */
	__u64 cwnd;		/* now, in bytes */
	__u64 peak;		/* most bytes in flight of which none was lost */
	__u64 flight, flight_before; /* most bytes in flight in this round, and in the one before */
	__u64 until;		/* bytes_acked at the end of this round */
	__u32 lost_before;	/* tp->lost at the ACK before */
	__u32 sacked_before;	/* tp->sacked_out then */
	__u32 rwnd;		/* largest receive window seen, in bytes */
	__u32 srtt_us;
	__u32 rtt_us;
	__u32 lost;		/* there was a loss, a mark or a timeout */
	__u32 iw;		/* bytes */
	__u32 used;		/* a startup that begins anew has used the entry */
};

/* The first `bits` bits of a word in network order. */
static __always_inline __u32 first_bits(__u32 word, __u32 bits)
{
	if (!bits)
		return 0;
	if (bits >= 32)
		return word;
	return word & __builtin_bswap32(~0u << (32 - bits));
}

static __always_inline void memory_key(struct sock *sk, struct facts *f, struct memory_key *key)
{
	__u32 v4 = !f->peer[0] && !f->peer[1] && f->peer[2] == __builtin_bswap32(0xffff);
	__u32 bits = v4 ? 96 + memory_config.v4 : memory_config.v6;

	key->prefix[0] = first_bits(f->peer[0], bits);
	key->prefix[1] = first_bits(f->peer[1], sub(bits, 32));
	key->prefix[2] = first_bits(f->peer[2], sub(bits, 64));
	key->prefix[3] = first_bits(f->peer[3], sub(bits, 96));
	if (memory_config.by_cgroup) {
		struct cgroup *cgroup = sk->sk_cgrp_data.cgroup;
		struct kernfs_node *kn = cgroup ? cgroup->kn : 0;

		key->scope = kn ? kn->id : 0;
	} else {
		key->scope = sk->__sk_common.skc_state == TCP_SYN_RECV ? f->sport : f->dport;
	}
}

/* At the beginning of a connection: takes the entry of its path. */
static __always_inline void memory_take(struct sock *sk, struct remembering *r, struct facts *f)
{
	struct memory *m;

	memory_key(sk, f, &r->key);
	r->taken.cwnd = r->lost = r->used = 0;
	r->lost_before = ((struct tcp_sock *)sk)->lost;
	r->sacked_before = 0;
	r->iw = f->cwnd * f->mss;
	m = bpf_map_lookup_elem(&memory, &r->key);
	if (!m)
		return;
	r->taken = *m;
	/* Only one of two that begin at the same time can remove it. */
	if (bpf_map_delete_elem(&memory, &r->key)) {
		r->taken.cwnd = 0;
		return;
	}
	if (bpf_ktime_get_boot_ns() - r->taken.at > memory_config.lifetime) {
		r->taken.cwnd = 0;
		return;
	}
	f->memory_cwnd = r->taken.cwnd;
	f->memory_rate = r->taken.rate;
	f->memory_rtt_us = r->taken.rtt_us;
}

/* On each ACK: what the connection would leave if it ended now. At its end the socket no longer shows it. */
static __always_inline void memory_observe(struct remembering *r, struct tcp_sock *tp, __u32 acked)
{
	__u64 mss = tp->mss_cache, out = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out, flight;

	/* With what this ACK acknowledges, unless that was in flight no more: what has arrived behind a hole counts when it is filled. */
	flight = (tp->sacked_out || r->sacked_before ? out : out + acked) * mss;
	r->sacked_before = tp->sacked_out;
	r->cwnd = tp->snd_cwnd * mss;
	r->rwnd = MAX(r->rwnd, tp->snd_wnd);
	/* What is in flight in a round has arrived, if nothing is lost, when the next round ends, or when nothing is in flight. */
	if (tp->lost != r->lost_before) {
		r->lost_before = tp->lost;
		r->flight = r->flight_before = 0;
		r->until = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
	} else {
		if (tp->bytes_acked >= r->until) {
			r->peak = MAX(r->peak, r->flight_before);
			r->flight_before = r->flight;
			r->flight = 0;
			r->until = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
		}
		r->flight = MAX(r->flight, flight);
		if (!tp->packets_out)
			r->peak = MAX(r->peak, MAX(r->flight, r->flight_before));
	}
	r->srtt_us = tp->srtt_us >> 3;
	r->rtt_us = tp->rtt_min.s[0].v + 1 ? tp->rtt_min.s[0].v : 0;
}

/*
 * At the end: leaves the window, as far as the receive window permitted it and as much was in flight without a loss, unless that
 * is too small for a jump; see careful_resume.rs.
 */
static __always_inline void memory_leave(struct remembering *r, int used)
{
	struct memory m = { .cwnd = MIN(MIN(r->cwnd, r->peak), r->rwnd), .rtt_us = r->rtt_us };

	if (r->taken.cwnd && !used && !r->lost && m.cwnd < r->taken.cwnd) {
		m = r->taken;
	} else {
		if (!r->srtt_us || !r->rtt_us || m.cwnd < 4ull * r->iw)
			return;
		m.rate = rate_of(m.cwnd, r->srtt_us * US);
		m.at = bpf_ktime_get_boot_ns();
	}
	bpf_map_update_elem(&memory, &r->key, &m, 0);
	r->cwnd = r->taken.cwnd = 0;
}
