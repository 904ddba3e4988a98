// SPDX-License-Identifier: GPL-2.0
/* Standard slow start: the kernel's CUBIC (or Reno) with HyStart silenced. `standard.rs` says more. */
#include "startup.h"
#define NAME "ss_std"

struct startup {
	__u8 nothing;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
}

#include "hooks.h"
