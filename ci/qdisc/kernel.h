/* What the kernel's queue disciplines use of the rest of the kernel, in user space: types, lists, packets, a clock and timers
 * that the schedule sets, and random numbers of crates/sim (src/random.rs). record.sh cuts the functions of a discipline out
 * of a kernel's source; they are compiled here as they stand.
 */
#ifndef KERNEL_H
#define KERNEL_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef s64 ktime_t;
typedef u64 psched_time_t;
typedef int spinlock_t;

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX
#define BITS_PER_BYTE 8
#define NSEC_PER_SEC 1000000000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_USEC 1000L
#define USEC_PER_MSEC 1000L
#define EINVAL 22

/* Language and locking. */
#define __rcu
#define __init
#define ____cacheline_aligned_in_smp
#define __read_mostly
#define __counted_by(n)
#define TC_INDIRECT_SCOPE static
#define EXPORT_SYMBOL(x)
#define EXPORT_SYMBOL_GPL(x)
#define unlikely(x) (x)
#define likely(x) (x)
#define typecheck(type, x) 1
#define fallthrough
#define prefetch(x)
#define BUG() abort()
#define WRITE_ONCE(x, value) ((x) = (value))
#define READ_ONCE(x) (x)
#define smp_store_release(p, v) (*(p) = (v))
#define rcu_dereference_bh(p) (p)
#define rcu_read_lock()
#define rcu_read_unlock()
#define spin_lock(l)
#define spin_unlock(l)
#define spin_lock_bh(l)
#define spin_unlock_bh(l)
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define net_warn_ratelimited(...)
#define NL_SET_ERR_MSG_MOD(...)

/* Arithmetic. */
#define min(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp_t(type, x, low, high) min_t(type, max_t(type, x, low), high)
#define do_div(n, base) ({ u32 _rest = (n) % (base); (n) /= (base); _rest; })
#define div_u64(n, base) ((u64)(n) / (base))
#define div64_u64(n, base) ((u64)(n) / (base))
#define div64_ul(n, base) ((u64)(n) / (base))
#define mul_u32_u32(a, b) ((u64)(a) * (b))
#define mul_u64_u32_shr(a, b, shift) ((u64)(((unsigned __int128)(a) * (b)) >> (shift)))
#define upper_32_bits(x) ((u32)((x) >> 32))
#define lower_32_bits(x) ((u32)(x))
#define DIV_ROUND_CLOSEST(x, d) (((x) + (d) / 2) / (d))
#define DIV_ROUND_UP(x, d) (((x) + (d) - 1) / (d))
#define fls(x) ((x) ? 32 - __builtin_clz(x) : 0)
#define htons(x) __builtin_bswap16(x)

static u32 reciprocal_scale(u32 val, u32 ep_ro)
{
	return (u32)(((u64)val * ep_ro) >> 32);
}

/* Time: jiffies are nanoseconds, so that timers fire when they are due. */
static u64 now_ns, timer_at = U64_MAX, watchdog_at = U64_MAX;
#define HZ NSEC_PER_SEC
#define jiffies now_ns
#define usecs_to_jiffies(us) ((us) * 1000ULL)
#define time_after(a, b) ((s64)((b) - (a)) < 0)
#define ktime_get_ns() (now_ns)
#define ktime_get() ((ktime_t)now_ns)
#define ktime_add_ns(t, ns) ((t) + (ns))
#define ktime_sub(a, b) ((a) - (b))
#define ktime_us_delta(later, earlier) (((later) - (earlier)) / 1000)
#define ktime_mono_to_any(t, to) (t)
#define ktime_mono_to_real(t) (t)
#define TIME_UPTIME_SEC_MAX (30LL * 365 * 24 * 3600)
#define PSCHED_SHIFT 6
#define PSCHED_TICKS2NS(x) ((s64)(x) << PSCHED_SHIFT)
#define PSCHED_NS2TICKS(x) ((x) >> PSCHED_SHIFT)
#define PSCHED_TICKS_PER_SEC PSCHED_NS2TICKS(NSEC_PER_SEC)
#define psched_get_time() PSCHED_NS2TICKS(ktime_get_ns())

/* One timer and one watchdog are enough for each discipline. */
struct timer_list { int unused; };
struct hrtimer { int unused; };
struct qdisc_watchdog { int unused; };
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
#define timer_container_of(var, t, member) container_of(t, __typeof__(*var), member)
#define from_timer timer_container_of
#define mod_timer(t, at) (timer_at = (at))
#define hrtimer_set_expires(t, at) (timer_at = (at))
#define qdisc_watchdog_schedule_ns(w, at) (watchdog_at = (at))
#define qdisc_watchdog_schedule_range_ns(w, at, slack) (watchdog_at = (at))

/* Random numbers. */
static u64 drawn(u64 seed, u64 n)
{
	u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

struct stream {
	u64 key, n;
};

/* The stream of a name (Stream::named). */
static struct stream stream_named(u64 seed, const char *name)
{
	u64 hash = 0xcbf29ce484222325ULL;

	for (; *name; name++)
		hash = (hash ^ (u8)*name) * 0x100000001b3ULL;
	return (struct stream){ drawn(drawn(seed, 0) ^ hash, 0), 0 };
}

static u64 stream_any(struct stream *s)
{
	return drawn(s->key, s->n++);
}

/* That of the discipline: what the kernel draws are the numbers that crates/sim draws. */
static struct stream random_numbers;

struct rnd_state { int unused; };

static u32 get_random_u32(void)
{
	return stream_any(&random_numbers) >> 32;
}

static void get_random_bytes(void *to, size_t n)
{
	u64 value = stream_any(&random_numbers);

	memcpy(to, &value, n);
}

static u64 get_random_u64(void)
{
	return stream_any(&random_numbers);
}

#define get_random_u32_below(n) reciprocal_scale(get_random_u32(), n)
#define prandom_u32_state(s) get_random_u32()

/* Lists and trees. The trees are not balanced. */
struct list_head {
	struct list_head *next, *prev;
};

#define INIT_LIST_HEAD(l) ((l)->next = (l)->prev = (l))
#define list_empty(l) ((l)->next == (l))
#define list_first_entry(l, type, member) container_of((l)->next, type, member)

static void list_add_tail(struct list_head *item, struct list_head *list)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

static void list_del_init(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	INIT_LIST_HEAD(item);
}

static void list_move_tail(struct list_head *item, struct list_head *list)
{
	list_del_init(item);
	list_add_tail(item, list);
}

struct rb_node {
	struct rb_node *rb_left, *rb_right, *parent;
};

struct rb_root {
	struct rb_node *rb_node;
};

#define rb_entry container_of
#define rb_to_skb(p) rb_entry(p, struct sk_buff, rbnode)
#define rb_insert_color(node, root)
#define skb_rb_first(root) ({ struct rb_node *_n = rb_first(root); _n ? rb_to_skb(_n) : NULL; })
#define skb_rb_last(root) ({ struct rb_node *_n = rb_last(root); _n ? rb_to_skb(_n) : NULL; })

static void rb_link_node(struct rb_node *node, struct rb_node *parent, struct rb_node **link)
{
	*node = (struct rb_node){ .parent = parent };
	*link = node;
}

static struct rb_node *rb_first(const struct rb_root *root)
{
	struct rb_node *n = root->rb_node;

	while (n && n->rb_left)
		n = n->rb_left;
	return n;
}

static struct rb_node *rb_last(const struct rb_root *root)
{
	struct rb_node *n = root->rb_node;

	while (n && n->rb_right)
		n = n->rb_right;
	return n;
}

/* Puts `by` in the place of `n`. */
static void rb_replace(struct rb_root *root, struct rb_node *n, struct rb_node *by)
{
	if (!n->parent)
		root->rb_node = by;
	else if (n->parent->rb_left == n)
		n->parent->rb_left = by;
	else
		n->parent->rb_right = by;
	if (by)
		by->parent = n->parent;
}

static void rb_erase(struct rb_node *n, struct rb_root *root)
{
	struct rb_node *after;

	if (!n->rb_left || !n->rb_right) {
		rb_replace(root, n, n->rb_left ? n->rb_left : n->rb_right);
		return;
	}
	for (after = n->rb_right; after->rb_left; after = after->rb_left)
		;
	if (after->parent != n) {
		rb_replace(root, after, after->rb_right);
		after->rb_right = n->rb_right;
		after->rb_right->parent = after;
	}
	rb_replace(root, n, after);
	after->rb_left = n->rb_left;
	after->rb_left->parent = after;
}

/* Packets. */
struct sock {
	int sk_state, sk_pacing_status;
	u32 sk_hash;
	unsigned long sk_max_pacing_rate, sk_pacing_rate;
};

struct sk_buff {
	struct sk_buff *next, *prev;
	struct rb_node rbnode;
	struct sock *sk;
	void *dev, *end;
	u64 at;
	s64 tstamp;
	u32 id, len, truesize, hash, priority;
	u8 ecn, tstamp_type, tc_depth, ip_summed, *data;
	char cb[64];
};

#define skb_mark_not_on_list(skb) ((skb)->next = NULL)
#define skb_get_hash(skb) ((skb)->hash)
#define skb_is_gso(skb) 0
#define skb_peek(list) (*(list))
#define __skb_queue_head(list, skb) (*(list) = (skb))
#define consume_skb kfree_skb
#define is_skb_wmem(skb) 0
#define tcf_set_qdisc_drop_reason(skb, reason)

struct qdisc_skb_cb {
	u32 pkt_len;
	u16 pkt_segs;
	char data[40] __attribute__((aligned(8)));
};
#define qdisc_skb_cb(skb) ((struct qdisc_skb_cb *)(skb)->cb)
#define qdisc_cb_private_validate(skb, size)

#define INET_ECN_NOT_ECT 0
#define INET_ECN_ECT_1 1
#define INET_ECN_MASK 3

static int INET_ECN_set_ce(struct sk_buff *skb)
{
	if (!skb->ecn)
		return 0;
	skb->ecn = 3;
	return 1;
}

/* The selector of ce_threshold is off. */
static int skb_get_dsfield(struct sk_buff *skb)
{
	return skb->ecn;
}

static u32 qdisc_pkt_len(const struct sk_buff *skb)
{
	return skb->len;
}

/* Disciplines. */
struct Qdisc;
struct Qdisc_ops {
	struct sk_buff *(*peek)(struct Qdisc *sch);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
};
struct qdisc_skb_head {
	struct sk_buff *head, *tail;
	u32 qlen;
};
struct Qdisc {
	void *priv;
	const struct Qdisc_ops *ops;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	u32 limit, handle, flags;
	struct sk_buff *gso_skb;
	struct qdisc_skb_head q;
	struct {
		u32 backlog, drops, overlimits, requeues;
	} qstats;
};
struct tcf_proto;
struct tcf_block;
struct tcf_qevent { int unused; };
struct tcf_result {
	u32 classid;
};

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define NET_XMIT_CN 2
#define __NET_XMIT_STOLEN 0x10000
#define __NET_XMIT_BYPASS 0x20000
#define TC_H_MAJ(h) ((h) & 0xffff0000u)
#define TC_H_MIN(h) ((h) & 0xffffu)
#define TC_PRIO_MAX 15
#define net_xmit_drop_count(e) 1
#define qdisc_priv(sch) ((sch)->priv)
#define qdisc_dev(sch) NULL
#define psched_mtu(dev) 1514
#define qdisc_qlen(sch) ((sch)->q.qlen)
#define qdisc_qlen_inc(sch) ((sch)->q.qlen++)
#define qdisc_qlen_dec(sch) ((sch)->q.qlen--)
#define qdisc_lock(sch) NULL
#define qdisc_root_sleeping(sch) (sch)
#define qdisc_root_bh(sch) (sch)
#define qdisc_tree_reduce_backlog(sch, n, len)
#define qdisc_bstats_update(sch, skb)
#define qdisc_qstats_overlimit(sch) ((sch)->qstats.overlimits++)
#define qdisc_qstats_drop(sch) ((sch)->qstats.drops++)
#define __qdisc_qstats_drop(sch, n) ((sch)->qstats.drops += (n))
#define qdisc_qstats_backlog_inc(sch, skb) ((sch)->qstats.backlog += (skb)->len)
#define qdisc_qstats_backlog_dec(sch, skb) ((sch)->qstats.backlog -= (skb)->len)
#define qstats_backlog_add(sch, n) ((sch)->qstats.backlog += (n))
#define qstats_backlog_sub(sch, n) ((sch)->qstats.backlog -= (n))
#define qdisc_enqueue(skb, sch, to_free) ((sch)->enqueue(skb, sch, to_free))
/* No filter is attached. */
#define tcf_classify(skb, block, filter, res, compat) (-1)
#define tcf_classify_qdisc(skb, filter, res, compat) (-1)
#define tcf_qevent_handle(event, sch, skb, to_free, ret) (skb)

static struct sk_buff *qdisc_peek_head(struct Qdisc *sch)
{
	return sch->q.head;
}

static int qdisc_enqueue_tail(struct sk_buff *skb, struct Qdisc *sch)
{
	skb->next = NULL;
	if (sch->q.head)
		sch->q.tail->next = skb;
	else
		sch->q.head = skb;
	sch->q.tail = skb;
	sch->q.qlen++;
	sch->qstats.backlog += skb->len;
	return NET_XMIT_SUCCESS;
}

static void __qdisc_enqueue_head(struct sk_buff *skb, struct qdisc_skb_head *q)
{
	skb->next = q->head;
	if (!q->head)
		q->tail = skb;
	q->head = skb;
	q->qlen++;
}

static struct sk_buff *__qdisc_dequeue_head(struct qdisc_skb_head *q)
{
	struct sk_buff *skb = q->head;

	if (skb) {
		q->head = skb->next;
		if (!q->head)
			q->tail = NULL;
		skb->next = NULL;
		q->qlen--;
	}
	return skb;
}

static struct sk_buff *qdisc_dequeue_head(struct Qdisc *sch)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&sch->q);

	if (skb)
		sch->qstats.backlog -= skb->len;
	return skb;
}

static struct sk_buff *qdisc_dequeue_peeked(struct Qdisc *sch)
{
	return sch->dequeue(sch);
}

/* Drops the first packet, for lack of room. */
#define __qdisc_queue_drop_head(sch, q, to_free) drop(qdisc_dequeue_head(sch), 'f')

/* bfifo, the child of red and tbf. */
static int bfifo_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
static const struct Qdisc_ops bfifo_ops = { .peek = qdisc_peek_head };
static struct Qdisc bfifo = { .enqueue = bfifo_enqueue, .dequeue = qdisc_dequeue_head, .ops = &bfifo_ops };

/* What became of each packet: s sent, m sent with a mark, d dropped, f dropped for lack of room, q still in the queue. */
static char *outcome;

static void kfree_skb(struct sk_buff *skb)
{
	outcome[skb->id] = 'd';
	free(skb);
}

enum qdisc_drop_reason {
	QDISC_DROP_OVERLIMIT = 'f',
	QDISC_DROP_FLOW_LIMIT = 'f',
	QDISC_DROP_BAND_LIMIT = 'f',
	QDISC_DROP_CONGESTED = 'd',
	QDISC_DROP_L4S_STEP_NON_ECN = 'd',
	QDISC_DROP_HORIZON_LIMIT = 'd',
};

static int drop(struct sk_buff *skb, char why)
{
	outcome[skb->id] = why;
	free(skb);
	return NET_XMIT_DROP;
}

#define qdisc_drop(skb, sch, to_free) drop(skb, 'f')
#define qdisc_drop_reason(skb, sch, to_free, reason) drop(skb, reason)
#define qdisc_dequeue_drop(sch, skb, reason) drop(skb, reason)
#define __qdisc_drop(skb, to_free) drop(skb, 'f')

static int bfifo_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if ((u64)sch->qstats.backlog + skb->len <= sch->limit)
		return qdisc_enqueue_tail(skb, sch);
	return qdisc_drop(skb, sch, to_free);
}
#endif
