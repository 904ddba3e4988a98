/* What tbf and police use of include/net/sch_generic.h and net/sched/sch_generic.c: lengths as times. */
#define TC_LINKLAYER_ATM 2
#include "psched_ratecfg.h"

/* A rate in bytes a second. */
static struct psched_ratecfg rate_of(u64 bytes_per_s)
{
	struct psched_ratecfg r = { .rate_bytes_ps = bytes_per_s };

	psched_ratecfg_precompute__(r.rate_bytes_ps, &r.mult, &r.shift);
	return r;
}

/* Those of the schedules, in Mbit/s: times of a byte that are whole nanoseconds, and others. */
static const u64 rates_mbit[] = { 20, 3, 8, 50, 7 };
