// SPDX-License-Identifier: GPL-2.0
/* The kernel's CUBIC with its HyStart, unchanged, as the reference for the other objects. */
#include "startup.h"
#define NAME "ss_hystart"
#define HYSTART
#define EACH_SAMPLE

struct startup {
	__u8 nothing;
};

static __always_inline void on_ack(struct startup *s, struct facts *f)
{
}

#include "hooks.h"
