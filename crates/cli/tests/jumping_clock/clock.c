/* Preloaded by tests: the clock named by JUMPING_CLOCK jumps with every second call, each time by an hour more. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(clockid_t clock)
{
	static unsigned calls;
	const char *name = getenv("JUMPING_CLOCK");
	clockid_t jumping = name && !strcmp(name, "monotonic") ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (clock != jumping)
		return 0;
	unsigned call = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return call % 2 ? 3600L * (1 + call / 2) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int result = syscall(SYS_clock_gettime, clock, t);

	if (!result)
		t->tv_sec += jump(clock);
	return result;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;
	int result = clock_gettime(CLOCK_REALTIME, &now);

	(void)zone;
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return result;
}

time_t time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
