#!/usr/bin/env bash
# Compares the CoDel of crates/lab with the kernel's: `ci/codel/record.sh [PACKETS]`. Fetches the headers of a Debian kernel
# (SUITE's newest linux-headers-*-common; apt verifies them), compiles codel_impl.h with record.c, and lets the test
# codel_decisions compare each decision. With BLESS=1 it writes the short recordings that `make test` replays.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
root=target/kernels/headers
mkdir -p "$root"
root=$(realpath "$root")
pattern=${HEADERS:-linux-headers-6.12.*-common}
name=$(apt-cache pkgnames linux-headers | grep -E "^${pattern//\*/[^ ]*}\$" | sort -V | tail -1)
[[ $name ]] || { echo "no package $pattern" >&2; exit 1; }
compgen -G "$root/${name}_*.deb" >/dev/null || (cd "$root" && apt-get -qq download "$name")
dpkg-deb -x "$root/${name}"_*.deb "$root/unpacked-$name"
include=$(echo "$root/unpacked-$name"/usr/src/*/include)
# The headers that codel.h names; record.c has what is used of them.
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
mkdir -p "$stubs"/{linux,net}
touch "$stubs"/linux/{types,ktime,skbuff}.h "$stubs/net/inet_ecn.h"
cp "$include"/net/codel.h "$include"/net/codel_impl.h "$stubs/net/"
cc -O2 -w -I "$stubs" -o "$stubs/record" ci/codel/record.c
recordings=$root/codel
mkdir -p "$recordings"
packets=${1:-100000}
for schedule in 0 1 2 3 4 5 6 7 8 9; do
  "$stubs/record" "$schedule" "$packets" >"$recordings/$schedule"
done
echo "$name: 10 schedules of $packets packets"
if [[ ${BLESS:-} ]]; then
  for schedule in 0 1 2 3 4 5 6 7 8 9; do "$stubs/record" "$schedule" 10000; done |
    gzip -9n >crates/lab/tests/data/codel-decisions.gz
fi
SLOWSTART_CODEL=$recordings cargo test -q --locked -p slowstart-lab --test codel_decisions -- --nocapture
