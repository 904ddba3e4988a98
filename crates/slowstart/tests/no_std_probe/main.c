/* Links the probe into a program that has no Rust runtime. */
#include <stdint.h>
#include <stdio.h>

uint64_t slowstart_probe(uint64_t now_ns, uint64_t mss, uint64_t rtt_ns);

/* Toolchains ship a core that was built to unwind, and names this; nothing here unwinds. */
void rust_eh_personality(void) {}

int main(void) {
    printf("%llu\n", (unsigned long long)slowstart_probe(1000000000, 1000, 100000000));
    return 0;
}
