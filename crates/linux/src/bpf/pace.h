/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A startup's pacing rate. The kernel computes sk_pacing_rate anew after each ACK, but never above sk_max_pacing_rate, so the
 * rate is set as that maximum; setting it also turns the kernel's own pacing on. Afterwards both are as the application left
 * them.
 */
#pragma once

struct pacing {
	__u64 max_before;	/* bytes per second, as the application set it */
	__u32 on;
	__u32 was_off;		/* the connection was not paced before */
};

static __always_inline void set_max_pacing_rate(struct sock *sk, __u64 bytes)
{
	/* The option of 32 bits has no limit at its largest value. */
	__u32 value = bytes < 0xffffffff ? bytes : 0xffffffff;

	bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value));
}

/* Applies the `pace` of a decision. */
static __always_inline void set_pace(struct sock *sk, struct pacing *p, __u64 bits)
{
	__u64 bytes = MAX(bits / 8, 1);

	if (!bits || (bits == PACE_HOST && !p->on))
		return;
	if (bits == PACE_HOST) {
		set_max_pacing_rate(sk, p->max_before);
		if (p->was_off)
			sk->sk_pacing_status = SK_PACING_NONE;
		p->on = 0;
		return;
	}
	if (!p->on) {
		p->max_before = sk->sk_max_pacing_rate;
		p->was_off = sk->sk_pacing_status == SK_PACING_NONE;
		p->on = 1;
	}
	bytes = MIN(bytes, p->max_before);
	set_max_pacing_rate(sk, bytes);
	/* Before the next ACK nothing else raises the rate. */
	sk->sk_pacing_rate = bytes;
}
