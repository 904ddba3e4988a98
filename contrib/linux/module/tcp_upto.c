// SPDX-License-Identifier: GPL-2.0
/*
 * A congestion control as a module, of which `--engine linux:KERNEL,module=tcp_upto.ko` makes a startup by name: Reno whose slow
 * start ends at a number of segments.
 */
#include <linux/module.h>
#include <net/tcp.h>

static unsigned int limit __read_mostly = 64;
module_param(limit, uint, 0644);
MODULE_PARM_DESC(limit, "segments at which slow start ends");

static void upto_init(struct sock *sk)
{
	tcp_sk(sk)->snd_ssthresh = max(limit, 2U);
}

static struct tcp_congestion_ops upto __read_mostly = {
	.init		= upto_init,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.name		= "upto",
};

static int __init upto_register(void)
{
	return tcp_register_congestion_control(&upto);
}

static void __exit upto_unregister(void)
{
	tcp_unregister_congestion_control(&upto);
}

module_init(upto_register);
module_exit(upto_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Slow start up to a number of segments, then Reno");
