// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the kernel's own tcp_cubic.c, patched, in user space: the compiler finds empty files in place of its headers, and the
 * few names that it needs of them here. Reads events, a line each, and prints what it decides on each acknowledgement:
 *
 *	b FLOW NOW NEXT					the connection begins
 *	a FLOW NOW UNA NEXT CWND SSTHRESH RTT ACKED RATE GSO PACED LIMITED
 *	  -> CWND SSTHRESH TRAIN DELAY			windows after it, and whether each test found the end of slow start
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;

enum { HZ = 1000, USEC_PER_MSEC = 1000, USEC_PER_SEC = 1000000, ICSK_CA_PRIV_SIZE = 104 };
enum { TCP_CA_Loss = 4, SK_PACING_NONE = 0, BPF_PROG_TYPE_STRUCT_OPS = 27 };
enum { LINUX_MIB_TCPHYSTARTTRAINDETECT, LINUX_MIB_TCPHYSTARTTRAINCWND, LINUX_MIB_TCPHYSTARTDELAYDETECT, LINUX_MIB_TCPHYSTARTDELAYCWND };
enum tcp_ca_event { CA_EVENT_TX_START };

/* Everything that the file reads of a connection. */
struct tcp_sock {
	u64 ca[ICSK_CA_PRIV_SIZE / 8];
	u64 tcp_mstamp;
	u32 snd_una, snd_nxt, snd_cwnd, snd_cwnd_cnt, snd_ssthresh, lsndtime;
	bool limited;
	unsigned long sk_pacing_rate;
	u32 sk_gso_max_size, sk_pacing_status;
};
#define sock tcp_sock

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
};

struct tcp_congestion_ops {
	void (*init)(struct sock *);
	u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, u32, u32);
	void (*set_state)(struct sock *, u8);
	u32 (*undo_cwnd)(struct sock *);
	void (*cwnd_event)(struct sock *, enum tcp_ca_event);
	void (*pkts_acked)(struct sock *, const struct ack_sample *);
	void *owner;
	char name[16];
};

struct btf_kfunc_id_set {
	void *owner;
	const int *set;
};

static u32 found[4];

#define __read_mostly
#define __init
#define __exit
#define __bpf_kfunc
#define THIS_MODULE NULL
#define module_param(name, type, mode)
#define module_init(f) int (*const begin)(void) = f
#define module_exit(f) void (*const end)(void) = f
#define MODULE_PARM_DESC(name, text)
#define MODULE_AUTHOR(text)
#define MODULE_LICENSE(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define BTF_KFUNCS_START(name) static const int name;
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
#define BUILD_BUG_ON(what) _Static_assert(!(what), #what)
#define READ_ONCE(x) (x)
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define clamp(x, low, high) min(max(x, low), high)
#define do_div(n, by) ((n) /= (by))
#define div64_u64(a, b) ((a) / (b))
#define div64_ul(a, b) ((a) / (b))
#define pr_debug(...) ((void)0)
#define NET_INC_STATS(net, field) (found[field] = 1)
#define NET_ADD_STATS(net, field, n) ((void)0)
#define sock_net(sk) NULL
#define tcp_sk(sk) (sk)
#define inet_csk_ca(sk) ((void *)(sk)->ca)
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_in_slow_start(tp) ((tp)->snd_cwnd < (tp)->snd_ssthresh)
#define tcp_is_cwnd_limited(sk) ((sk)->limited)
#define tcp_jiffies32 jiffies
#define usecs_to_jiffies(us) ((us) * (u64)HZ / USEC_PER_SEC)
#define fls64(x) ((x) ? 64 - __builtin_clzll(x) : 0)
#define after(a, b) ((s32)((b) - (a)) < 0)
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
#define tcp_register_congestion_control(ops) ((void)(ops), 0)
#define tcp_unregister_congestion_control(ops) ((void)(ops))

static u32 jiffies;

static u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = cwnd;
	return acked;
}

static void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	tp->snd_cwnd_cnt += acked;
	tp->snd_cwnd += tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt %= w;
}

static u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return sk->snd_cwnd;
}

#include "tcp_cubic.c"

enum { FLOWS = 1 << 16 };
static struct tcp_sock flows[FLOWS];

int main(void)
{
	unsigned long long now, una, next, rate;
	unsigned flow, cwnd, ssthresh, rtt, acked, gso, paced, limited;
	char line[256];

	begin();
	while (fgets(line, sizeof(line), stdin)) {
		struct tcp_sock *tp;

		if (sscanf(line, "b %u %llu %llu", &flow, &now, &next) == 3 && flow < FLOWS) {
			tp = &flows[flow];
			memset(tp, 0, sizeof(*tp));
			tp->tcp_mstamp = now;
			tp->snd_nxt = next;
			cubictcp.init(tp);
		} else if (sscanf(line, "a %u %llu %llu %llu %u %u %u %u %llu %u %u %u", &flow, &now, &una, &next, &cwnd,
				  &ssthresh, &rtt, &acked, &rate, &gso, &paced, &limited) == 12 && flow < FLOWS) {
			struct ack_sample sample = { .pkts_acked = acked, .rtt_us = rtt ? (s32)rtt : -1 };

			tp = &flows[flow];
			tp->tcp_mstamp = now;
			jiffies = now / USEC_PER_MSEC;
			tp->snd_una = una;
			tp->snd_nxt = next;
			tp->snd_cwnd = cwnd;
			tp->snd_ssthresh = ssthresh;
			tp->sk_pacing_rate = rate;
			tp->sk_gso_max_size = gso;
			tp->sk_pacing_status = paced;
			tp->limited = limited;
			memset(found, 0, sizeof(found));
			cubictcp.pkts_acked(tp, &sample);
			if (acked)
				cubictcp.cong_avoid(tp, una, acked);
			printf("%u %u %u %u\n", tp->snd_cwnd, tp->snd_ssthresh, found[LINUX_MIB_TCPHYSTARTTRAINDETECT],
			       found[LINUX_MIB_TCPHYSTARTDELAYDETECT]);
		} else {
			fprintf(stderr, "not an event: %s", line);
			return 1;
		}
	}
	return 0;
}
