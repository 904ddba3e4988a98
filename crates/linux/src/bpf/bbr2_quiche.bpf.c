// SPDX-License-Identifier: GPL-2.0
/* BBR version 3 with the Startup and Drain of quiche's BBRv2. */
#define QUICHE 1
#include "bbr3.bpf.c"
