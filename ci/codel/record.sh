#!/usr/bin/env bash
# Compares CoDel and FQ-CoDel of crates/lab with the kernel's: `ci/codel/record.sh [PACKETS]`. Fetches the source of a Debian
# kernel (apt verifies it), compiles its functions with record.c and record_fq.c, and lets the test codel_decisions compare
# each decision. With BLESS=1 it writes the short recordings that `make test` replays.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
source=${SOURCE:-linux-source-6.12}
packets=${1:-100000}
root=target/kernels/source
recordings=$root/decisions
mkdir -p "$recordings"
compgen -G "$root/${source}_*.deb" >/dev/null || (cd "$root" && apt-get -qq download "$source")
version=$(dpkg-deb -f "$root/${source}"_*.deb Version)
tree=$root/$source
if [[ ! -e $tree/net/sched/sch_fq_codel.c ]]; then
  dpkg-deb --fsys-tarfile "$root/${source}"_*.deb | tar -xO "./usr/src/$source.tar.xz" |
    tar -xJ -C "$root" "$source/net/sched/sch_fq_codel.c" "$source"/include/net/codel{,_impl,_qdisc}.h
fi
# The headers that these name; record.c and record_fq.c have what is used of them.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{linux,net}
touch "$work"/linux/{types,ktime,skbuff}.h "$work"/net/{inet_ecn,pkt_sched}.h
cp "$tree"/include/net/codel*.h "$work/net/"
sed -n '/^struct fq_codel_flow {/,/^static void fq_codel_flow_purge/p' "$tree/net/sched/sch_fq_codel.c" |
  sed '$d' >"$work/fq_codel.h"
cc -O2 -w -I "$work" -o "$work/codel" ci/codel/record.c
cc -O2 -w -I "$work" -o "$work/fq-codel" ci/codel/record_fq.c
for name in codel fq-codel; do
  for schedule in {0..9}; do
    "$work/$name" "$schedule" "$packets" >"$recordings/$name-$schedule"
  done
  if [[ ${BLESS:-} ]]; then
    for schedule in {0..9}; do "$work/$name" "$schedule" 10000; done |
      gzip -9n >"crates/lab/tests/data/$name-decisions.gz"
  fi
done
echo "$source $version: ten schedules of $packets packets each"
SLOWSTART_CODEL=$(realpath "$recordings") cargo test -q --locked -p slowstart-lab --test codel_decisions -- --nocapture
