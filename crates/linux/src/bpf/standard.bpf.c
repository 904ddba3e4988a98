// SPDX-License-Identifier: GPL-2.0
/* Standard slow start: the kernel's CUBIC without HyStart, or Reno; the reference is `standard.rs`. */
#include "startup.h"
#define NAME "ss_std"

struct startup {
	__u8 nothing;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
}

#include "hooks.h"
