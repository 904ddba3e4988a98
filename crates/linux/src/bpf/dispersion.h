/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The capacity of a path from the spacing of ACKs, as the highest rate between two consecutive ACKs that came further apart
 * than their packets were sent; the reference is `Dispersion` in `round.rs`.
 */
#pragma once

struct dispersion {
	__u64 rate;		/* bits per second; 0: none yet */
	__u64 came, left;	/* the previous ACK, and the sending time of its newest packet, ns; came 0: none */
	__u64 seen;		/* acked_bytes then */
	__u32 pairs;
};

static __always_inline void dispersion_add(struct dispersion *d, struct facts *f)
{
	__u64 delivered = f->acked_bytes - d->seen, left = f->newest_us * US, apart, rate;

	d->seen = f->acked_bytes;
	if (!delivered)
		return;
	apart = sub(f->now_ns, d->came);
	if (d->came && apart && sub(left, d->left) < apart) {
		rate = rate_of(delivered, apart);
		d->rate = MAX(d->rate, rate);
		d->pairs++;
	}
	d->came = f->now_ns;
	d->left = left;
}
