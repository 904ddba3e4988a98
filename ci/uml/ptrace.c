// Linked into a guest's kernel in place of the host's ptrace(). A kernel before 6.13 keeps 2,696 bytes of the state of the
// processor's vector registers for each of its processes. Where a process of the host has more (with AMX 11,008), the host takes
// no part of it: "ptrace set fp regs failed, errno = 14". What follows the 2,696 bytes is in its initial state, since the tiles of
// AMX need a permission that no process of a guest asks for.
#include <cpuid.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

// Where the state says which of its parts are not in their initial state.
#define PRESENT 512

long __real_ptrace(long request, pid_t pid, void *at, void *data);

static void forget_beyond(unsigned char *state, size_t end)
{
	uint64_t present;
	int part;

	memcpy(&present, state + PRESENT, sizeof(present));
	for (part = 2; part < 63; part++) {
		unsigned int size, start, c, d;

		if (present >> part & 1 && __get_cpuid_count(0xd, part, &size, &start, &c, &d) && start + size > end)
			present &= ~(1ull << part);
	}
	memcpy(state + PRESENT, &present, sizeof(present));
}

long __wrap_ptrace(long request, pid_t pid, void *at, void *data)
{
	static unsigned char state[16384];
	struct iovec *given = data, whole = { state, sizeof(state) };

	if (request != PTRACE_SETREGSET || (long)at != NT_X86_XSTATE || given->iov_len < PRESENT + 64)
		return __real_ptrace(request, pid, at, data);
	// How long it is here.
	if (__real_ptrace(PTRACE_GETREGSET, pid, at, &whole) < 0 || whole.iov_len <= given->iov_len)
		return __real_ptrace(request, pid, at, data);
	memset(state, 0, sizeof(state));
	memcpy(state, given->iov_base, given->iov_len);
	forget_beyond(state, given->iov_len);
	return __real_ptrace(request, pid, at, &whole);
}
