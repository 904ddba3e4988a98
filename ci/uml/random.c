// Linked into a guest's kernel in place of the host's getrandom(): without it, initial sequence numbers, ports and the draws of
// bbr would differ in each run. The command line of the guest, which has a seed, makes its kernel's numbers; these are the same
// in every guest.
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// A kernel with this symbol repeats its runs: the engine looks for it.
const char slowstart_repeats[] = "slowstart: random numbers of this kernel repeat";

ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags)
{
	static uint64_t state;
	unsigned char *byte = to;
	size_t i;

	(void)flags;
	for (i = 0; i < n; i++) {
		// SplitMix64.
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		byte[i] = z ^ z >> 31;
	}
	return n;
}
