#!/usr/bin/env bash
# Runs the C interface under AddressSanitizer and UndefinedBehaviorSanitizer: the host in C against the static library, and the
# command with the plugin in C. Both sanitizers see C and every call of malloc and free, Rust's too; the accesses of Rust they do
# not see: that takes Miri (ci/miri.sh). A plugin with an error must be found.
#
# SLOWSTART and LIBRARY name a command and a static library that are built already.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ! ${SLOWSTART:-} ]]; then
  cargo build --locked -p slowstart-cli -p slowstart-ffi
  SLOWSTART=$PWD/target/debug/slowstart LIBRARY=$PWD/target/debug/libslowstart_c.a
fi
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
flags=(-std=c11 -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -I crates/ffi/include)

gcc "${flags[@]}" crates/ffi/examples/host.c "$LIBRARY" -lm -lpthread -ldl -o "$dir/host"
"$dir/host" >"$dir/host.out"
echo "host.c: $(wc -l <"$dir/host.out") lines, no error"

# Leaks are not looked for: those of the command are not the plugin's.
compare() { # PLUGIN
  LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
    "$SLOWSTART" compare geo leo lte wifi-weak --startup "plugin:$1,hystart" --runs 3 --json
}
gcc "${flags[@]}" -shared -fPIC crates/ffi/examples/newreno.c -o "$dir/newreno.so"
compare "$dir/newreno.so" >"$dir/rows"
runs=$(grep -c newreno "$dir/rows")
((runs == 12))
echo "newreno.c: $runs runs, no error"

# Its state is one byte too short.
sed 's/calloc(1, sizeof(struct newreno))/calloc(1, sizeof(struct newreno) - 1)/' crates/ffi/examples/newreno.c >"$dir/short.c"
! cmp -s "$dir/short.c" crates/ffi/examples/newreno.c
gcc "${flags[@]}" -shared -fPIC "$dir/short.c" -o "$dir/short.so"
if compare "$dir/short.so" >"$dir/rows" 2>"$dir/said" || ! grep -q "AddressSanitizer: heap-buffer-overflow" "$dir/said"; then
  echo "a plugin that writes beyond its memory was not found" >&2
  exit 1
fi
echo "newreno.c with a state that is too short: found"
