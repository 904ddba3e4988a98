/* SPDX-License-Identifier: GPL-2.0 */
/* The callbacks of a congestion control around the startup defined above; see startup.h. NAME is its name in the kernel. */
#pragma once
#ifdef PACES
#include "pace.h"
#endif
#ifdef MEMORY
#include "memory.h"
#endif
#ifdef RESTARTS
#define RESTARTS_TIMEOUT
#define RESTARTS_IDLE
#endif

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

#include "connection.h"

/* Applies the rest of a decision: the pacing rate, and its end with the startup. */
static __always_inline void apply_pace(struct sock *sk, struct conn *c, struct facts *f)
{
#ifdef PACES
	set_pace(sk, &c->pacing, c->asked ? f->pace : PACE_HOST);
#endif
}

static __always_inline void disable_hystart(struct sock *sk)
{
#ifndef HYSTART
	/* For this socket only; the parameter of the module applies to all. */
	if (!RENO)
		((struct bictcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv)->found = 1;
#endif
}

SEC("struct_ops/ss_init")
void BPF_PROG(ss_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;
	struct conn *c;

	if (!RENO)
		cubictcp_init(sk);
	disable_hystart(sk);
	c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!c) {
		__sync_fetch_and_add(&counts.without_storage, 1);
		return;
	}
	__sync_fetch_and_add(&counts.started, 1);
	c->iw = tp->snd_cwnd;
	/* A connection that switches to this control later may have left slow start already. */
	c->asked = c->first = tp->snd_cwnd < tp->snd_ssthresh;
	read_facts(sk, c, KIND_BEGIN, 0, &f);
#ifdef MEMORY
	memory_take(sk, &c->memory, &f);
#endif
#ifdef ON_BEGIN
	if (c->asked) {
		on_begin(&c->s, &f);
		if (f.set)
			tp->snd_cwnd = MIN(f.set, tp->snd_cwnd_clamp);
		if (f.threshold)
			tp->snd_ssthresh = MAX(f.threshold, 2);
		if (tp->snd_cwnd > tp->snd_ssthresh)
			end_startup(c, &f, WHY_SSTHRESH);
		apply_pace(sk, c, &f);
		f.cwnd_after = tp->snd_cwnd;
		f.ssthresh_after = tp->snd_ssthresh;
	}
#endif
	write_event(&f);
}

/* May be called twice for a connection (6.1, 6.12, after a disconnect). */
SEC("struct_ops/ss_release")
void BPF_PROG(ss_release, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (!c)
		return;
	read_facts(sk, c, KIND_END, 0, &f);
	if (c->first)
		end_startup(c, &f, WHY_NONE);
#ifdef MEMORY
	memory_leave(&c->memory, c->memory.used | used_memory(&c->s));
#endif
#ifdef PACES
	/* The socket option cannot be set here. */
	if (c->pacing.on && c->pacing.was_off)
		sk->sk_pacing_status = SK_PACING_NONE;
#endif
	write_event(&f);
	__sync_fetch_and_add(&counts.ended, 1);
	bpf_sk_storage_delete(&conns, sk);
}

/* Converts growth in bytes to whole segments and keeps the rest. There is no growth unless cwnd limited the sender. */
static __always_inline __u32 whole_segments(struct conn *c, struct facts *f)
{
	__u64 n;

	if (!f->limited)
		return 0;
	c->credit += f->earned;
	n = c->credit / f->mss;
	c->credit -= n * f->mss;
	return n;
}

/* Calls the startup and applies its decision to cwnd. Returns the number of segments that the avoidance is to count. */
static __always_inline __u32 apply_ack(struct tcp_sock *tp, struct conn *c, struct facts *f)
{
	__u32 why, rest = f->acked;

	on_ack(&c->s, f);
	c->sent = f->sent_bytes;
	c->acked = f->acked_bytes;
	c->delivered = f->delivered;
	if (f->threshold)
		tp->snd_ssthresh = MAX(f->threshold, 2);
	if (f->set)
		tp->snd_cwnd = MIN(f->set, tp->snd_cwnd_clamp);
	why = f->why;
	if (!why)
		return whole_segments(c, f);
	f->why = WHY_NONE;
	if (f->set)
		rest = 0;
	if (f->earned) {
		tp->snd_cwnd = MIN(tp->snd_cwnd + whole_segments(c, f), MIN(tp->snd_ssthresh, tp->snd_cwnd_clamp));
		rest = 0;
	}
	if (!f->threshold)
		tp->snd_ssthresh = MAX(tp->snd_cwnd, 2);
	end_startup(c, f, why);
	return rest;
}

SEC("struct_ops/ss_acked")
void BPF_PROG(ss_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (!RENO)
		cubictcp_acked(sk, sample);
	if (c) {
		c->rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0;
		if (c->rtt_us && (!c->least_us || c->rtt_us < c->least_us))
			c->least_us = c->rtt_us;
	}
#ifdef MEMORY
	if (c)
		memory_observe(&c->memory, (struct tcp_sock *)sk, sample->pkts_acked);
#endif
#ifdef EACH_SAMPLE
	/* cong_avoid is not called for an ACK that only brings SACK blocks. */
	if (c && c->asked && c->rtt_us && !sample->pkts_acked) {
		struct tcp_sock *tp = (struct tcp_sock *)sk;
		struct facts f;

		read_facts(sk, c, KIND_ACK, 0, &f);
		c->rtt_us = 0;
		if (f.cwnd >= f.ssthresh)
			end_startup(c, &f, WHY_SSTHRESH);
		else
			apply_ack(tp, c, &f);
		f.cwnd_after = tp->snd_cwnd;
		f.ssthresh_after = tp->snd_ssthresh;
		write_event(&f);
	}
#endif
}

#ifdef OWN_SSTHRESH
#define OWNS_SSTHRESH 1
#else
#define OWNS_SSTHRESH 0
#endif

static __always_inline void avoid(struct sock *sk, __u32 ack, __u32 acked)
{
	if (RENO)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/ss_cong_avoid")
void BPF_PROG(ss_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;

	if (!c || !c->asked) {
		avoid(sk, ack, acked);
		return;
	}
	read_facts(sk, c, KIND_ACK, acked, &f);
	c->rtt_us = 0;
	if (f.cwnd >= f.ssthresh && !OWNS_SSTHRESH)
		end_startup(c, &f, WHY_SSTHRESH);
	else
		acked = apply_ack(tp, c, &f);
	apply_pace(sk, c, &f);
	/* A startup that keeps cwnd constant leaves nothing for the avoidance. */
	if (acked)
		avoid(sk, ack, acked);
	f.cwnd_after = tp->snd_cwnd;
	f.ssthresh_after = tp->snd_ssthresh;
	write_event(&f);
}

/* Called when a loss episode begins, before ss_state. The reason is known only there, cwnd before the reduction only here. */
SEC("struct_ops/ss_ssthresh")
__u32 BPF_PROG(ss_ssthresh, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);

	if (c) {
		c->was_asked = c->asked;
		c->was_first = c->first;
		c->undoable = 1;
		c->cut_cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
		c->cut_ssthresh = ((struct tcp_sock *)sk)->snd_ssthresh;
	}
	return RENO ? tcp_reno_ssthresh(sk) : cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops/ss_undo")
__u32 BPF_PROG(ss_undo, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (c) {
		read_facts(sk, c, KIND_UNDO, 0, &f);
		/* An exit that was undone is not counted. */
		if (c->undoable && c->was_first && !c->first && c->left < WHY_MAX)
			__sync_fetch_and_sub(&counts.exits[c->left], 1);
		if (c->undoable) {
			c->asked = c->was_asked;
			c->first = c->was_first;
			c->undoable = 0;
		}
#ifdef ON_RECOVERED
		if (c->asked)
			on_undone(&c->s);
		c->recovering = 0;
#endif
#ifdef OWNS_RECOVERY
		c->owned_cwnd = 0;
#endif
		write_event(&f);
	}
	return tcp_reno_undo_cwnd(sk);
}

/* Resets the startup, which runs again after a timeout or an idle time. */
static __always_inline void restart_startup(struct conn *c)
{
#ifdef MEMORY
	c->memory.used |= used_memory(&c->s);
#endif
	__builtin_memset(&c->s, 0, sizeof(c->s));
	c->asked = 1;
}

/* A loss, a mark or a timeout while the startup is in control: it ends, unless it asks to continue. */
static __always_inline void congestion(struct sock *sk, struct conn *c, struct facts *f, __u32 why)
{
#ifdef EXIT_REASON
	why = EXIT_REASON(&c->s, why);
#endif
#ifdef ON_CONGESTION
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	f->why = why;
	on_congestion(&c->s, f);
	why = f->why;
	f->why = WHY_NONE;
	/* The kernel's recovery reduces cwnd to ssthresh. */
	if (f->threshold || f->set)
		tp->snd_ssthresh = MAX(f->threshold ? f->threshold : f->set, 2);
	c->recovering = f->kind == KIND_LOSS && !why;
#ifdef OWNS_RECOVERY
	c->owned_cwnd = f->set;
	c->recovering = f->set != 0;
#endif
	if (!why)
		return;
#endif
	end_startup(c, f, why);
}

SEC("struct_ops/ss_state")
void BPF_PROG(ss_state, struct sock *sk, __u8 new_state)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct facts f;

	if (!RENO)
		cubictcp_state(sk, new_state);
	if (new_state == TCP_CA_Loss)
		disable_hystart(sk); /* cubictcp_state has reset it */
	if (!c)
		return;
	/* As bictcp_reset does with delay_min. */
	if (new_state == TCP_CA_Loss)
		c->least_us = 0;
#ifdef ON_RECOVERED
	if (new_state == TCP_CA_Open && c->recovering) {
		struct tcp_sock *tp = (struct tcp_sock *)sk;

		c->recovering = 0;
		read_facts(sk, c, KIND_RECOVERED, 0, &f);
#ifdef OWNS_RECOVERY
		f.cwnd = c->owned_cwnd;
		c->owned_cwnd = 0;
		if (f.cwnd) {
#else
		if (c->asked) {
#endif
			__u32 why;

			on_recovered(&c->s, &f);
			why = f.why;
			f.why = WHY_NONE;
			if (f.threshold)
				tp->snd_ssthresh = MAX(f.threshold, 2);
			if (f.set)
				tp->snd_cwnd = MIN(f.set, tp->snd_cwnd_clamp);
			if (why)
				end_startup(c, &f, why);
			apply_pace(sk, c, &f);
		}
		write_event(&f);
		return;
	}
#endif
	if (new_state == TCP_CA_Open || new_state == TCP_CA_Disorder)
		return;
#ifdef OWNS_RECOVERY
	if (new_state == TCP_CA_Loss)
		c->recovering = c->owned_cwnd = 0;
#endif
	read_facts(sk, c, new_state == TCP_CA_Loss ? KIND_TIMEOUT : KIND_LOSS, 0, &f);
	if (c->cut_cwnd) {
		f.cwnd = c->cut_cwnd;
		f.ssthresh = c->cut_ssthresh;
		c->cut_cwnd = 0;
		f.cut = 1;
	}
#ifdef MEMORY
	c->memory.lost = 1;
#endif
	if (c->asked) {
		congestion(sk, c, &f, new_state == TCP_CA_Loss ? WHY_TIMEOUT : new_state == TCP_CA_CWR ? WHY_CWR : WHY_LOSS);
		apply_pace(sk, c, &f);
	}
	write_event(&f);
#ifdef RESTARTS_TIMEOUT
	if (new_state == TCP_CA_Loss)
		restart_startup(c);
#endif
}

#ifdef OWNS_RECOVERY
/* The kernel's recovery computes cwnd anew for each ACK, before it sends. */
static __always_inline void set_owned_cwnd(struct sock *sk, struct conn *c)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;

	read_facts(sk, c, KIND_SEND, 0, &f);
	f.cwnd = c->owned_cwnd;
	in_recovery(&c->s, &f);
	c->owned_cwnd = f.set;
	tp->snd_cwnd = f.set;
	tp->snd_ssthresh = f.threshold;
	f.cwnd_after = f.set;
	f.ssthresh_after = f.threshold;
	write_event(&f);
}
#endif

#if defined(ON_SEND) || defined(OWNS_RECOVERY)
/* The kernel calls this before each attempt to send, and uses the result as the least number of segments of a burst. */
SEC("struct_ops/ss_send")
__u32 BPF_PROG(ss_send, struct sock *sk)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, 0);
	struct net *net = sk->__sk_common.skc_net.net;

#ifdef OWNS_RECOVERY
	if (c && c->owned_cwnd)
		set_owned_cwnd(sk, c);
#endif
#ifdef ON_SEND
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct facts f;

	if (c && c->asked && wants_on_send(&c->s)) {
		read_facts(sk, c, KIND_SEND, 0, &f);
		f.unsent += tp->snd_nxt - tp->snd_una;
		f.unsent = (f.unsent + f.mss - 1) / f.mss * f.mss;
		on_send(&c->s, &f);
		if (f.set) {
			tp->snd_cwnd = MIN(f.set, tp->snd_cwnd_clamp);
			apply_pace(sk, c, &f);
			f.cwnd_after = tp->snd_cwnd;
			write_event(&f);
		}
	}
#endif
	return net ? net->ipv4.sysctl_tcp_min_tso_segs : 2;
}
#endif

static __always_inline void event(struct sock *sk, enum tcp_ca_event ev)
{
	struct facts f;
	struct conn *c;

	if (ev != CA_EVENT_CWND_RESTART)
		return;
	c = bpf_sk_storage_get(&conns, sk, 0, 0);
	if (!c)
		return;
	read_facts(sk, c, KIND_IDLE, 0, &f);
	f.rtt_us = c->least_us;
	write_event(&f);
#ifdef ON_IDLE
	on_idle(&c->s, &f);
#endif
#ifdef RESTARTS_IDLE
	restart_startup(c);
#endif
}

SEC("struct_ops/ss_event")
void BPF_PROG(ss_event, struct sock *sk, enum tcp_ca_event ev)
{
	if (!RENO)
		cubictcp_cwnd_event(sk, ev);
	event(sk, ev);
}

#if defined(ON_SEND) || defined(OWNS_RECOVERY)
#define SEND .min_tso_segs = (void *)ss_send,
#else
#define SEND
#endif

#define COMMON							\
	SEND							\
	.init = (void *)ss_init,				\
	.release = (void *)ss_release,				\
	.ssthresh = (void *)ss_ssthresh,			\
	.cong_avoid = (void *)ss_cong_avoid,			\
	.pkts_acked = (void *)ss_acked,				\
	.undo_cwnd = (void *)ss_undo,				\
	.set_state = (void *)ss_state,				\
	.flags = TCP_CONG_NON_RESTRICTED,			\
	.name = NAME

#ifdef STOCK
/* For bpftool: Linux 6.1 to 6.18, default parameters, CUBIC. */
SEC(".struct_ops")
struct tcp_congestion_ops ops = { COMMON, .cwnd_event = (void *)ss_event };
#else
SEC("struct_ops/ss_event_v7")
void BPF_PROG(ss_event_v7, struct sock *sk, enum tcp_ca_event ev)
{
	event(sk, ev);
}

SEC("struct_ops/ss_tx_start")
void BPF_PROG(ss_tx_start, struct sock *sk)
{
	if (!RENO)
		cubictcp_cwnd_event_tx_start(sk);
}

/* The loader creates the one that fits the kernel. */
SEC(".struct_ops.link")
struct tcp_congestion_ops ops = { COMMON, .cwnd_event = (void *)ss_event };

SEC(".struct_ops.link")
struct tcp_congestion_ops___v7 ops_v7 = {
	COMMON, .cwnd_event = (void *)ss_event_v7, .cwnd_event_tx_start = (void *)ss_tx_start,
};
#endif
