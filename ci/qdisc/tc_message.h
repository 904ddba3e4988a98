/* The options in the message by which tc asks the kernel for a discipline (tc_message.c), by their numbers. */
static const u8 *options[16];
static u16 option_sizes[16];

static void find_options(const u8 *at, const u8 *end, size_t fixed, bool nested)
{
	while (end - at >= 4) {
		u16 length = *(const u16 *)at, type = *(const u16 *)(at + 2) & 0x3fff;

		if (length < 4)
			return;
		if (nested && type < 16) {
			options[type] = at + 4;
			option_sizes[type] = length - 4;
		} else if (!nested && type == 2) {
			/* TCA_OPTIONS; option 0 stands for what comes before the first. */
			options[0] = at + 4;
			find_options(at + 4 + fixed, at + length, 0, true);
		}
		at += (length + 3) & ~3;
	}
}

/* Reads the message in a file. `fixed` is the size of what its options begin with. */
static void read_message(const char *name, size_t fixed)
{
	static u8 message[65536];
	FILE *file = fopen(name, "r");
	size_t n = file ? fread(message, 1, sizeof(message), file) : 0;

	/* struct nlmsghdr, struct tcmsg. */
	if (n <= 36) {
		fprintf(stderr, "%s: no message\n", name);
		exit(1);
	}
	find_options(message + 36, message + n, fixed, false);
}
