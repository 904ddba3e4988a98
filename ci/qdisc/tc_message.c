/* Preloaded into tc: writes the netlink message of a new discipline to the file TC_MESSAGE, and refuses it. So the parameters
 * that tc derives can be had without the discipline.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <linux/rtnetlink.h>

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
	const struct nlmsghdr *header = message->msg_iov[0].iov_base;

	if (header->nlmsg_type == RTM_NEWQDISC) {
		FILE *file = fopen(getenv("TC_MESSAGE"), "w");

		fwrite(header, 1, header->nlmsg_len, file);
		exit(fclose(file));
	}
	return next(fd, message, flags);
}
