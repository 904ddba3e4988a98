/* What net/sched/sch_netem.c uses beside kernel.h. */
#include "kernel.h"
#define GFP_ATOMIC 0
#define CHECKSUM_PARTIAL 3
#define NETIF_F_GSO_MASK 0
#define NETEM_DIST_SCALE 8192
#define netif_skb_features(skb) 0
#define skb_gso_segment(skb, features) NULL
#define IS_ERR_OR_NULL(p) (!(p))
#define skb_orphan_partial(skb)
#define skb_unshare(skb, flags) (skb)
#define skb_linearize(skb) 0
#define skb_checksum_help(skb) 0
#define rtnl_kfree_skbs(from, to)
#define rb_next(n) NULL
#define kfree_skb_list(list)
#define qdisc_drop_all qdisc_drop
typedef u64 netdev_features_t;
struct tc_netem_slot {
	s64 min_delay, max_delay, dist_delay, dist_jitter;
	s32 max_packets, max_bytes;
};
#include <linux/reciprocal_div.h>
