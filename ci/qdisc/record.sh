#!/usr/bin/env bash
# Compares the disciplines, buckets and netem's elements of crates/sim with the kernel's: `ci/qdisc/record.sh [PACKETS]`.
# Fetches the source of a Debian kernel (apt verifies it), compiles the functions of each discipline as they stand (kernel.h has
# what they use), and lets the test qdisc_decisions compare each decision over ten schedules. With BLESS=1 it writes the short
# recordings that `make test` replays. SOURCE names another kernel, SUITE the Debian suite that has it.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."
. ci/needs.sh
install_missing cc:gcc tc:iproute2 xz:xz-utils /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
. ci/debian.sh
source=${SOURCE:-linux-source-7.3}
suite=${SUITE:-trixie-backports}
packets=${1:-100000}
root=target/kernels/source
recordings=$(realpath -m "$root/decisions")
mkdir -p "$recordings"
use_suite "$suite"
archive=$(package "$root" "$source")
version=$(dpkg-deb -f "$archive" Version)
tree=$root/$source
if [[ ! -e $tree/lib/math/reciprocal_div.c ]]; then
  dpkg-deb --fsys-tarfile "$archive" | tar -xO "./usr/src/$source.tar.xz" |
    tar -xJ -C "$root" "$source"/{net/sched,include/net,include/linux/reciprocal_div.h,lib/math/reciprocal_div.c}
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the lines of a file from the one that begins with FROM to the one before that which begins with TO.
cut_out() { # FILE FROM TO
  awk -v from="$2" -v to="$3" '
    !on && index($0, from) == 1 { on = 1; seen = 1 }
    on && index($0, to) == 1 { exit }
    on { print }
    END { exit !seen }' "$tree/$1" || { echo "$1: no line begins with \"$2\"" >&2; exit 1; }
}

# The kernel's headers name others, which are empty here: kernel.h has what is used of them.
mkdir -p "$work"/{linux,net}
touch "$work"/linux/{types,ktime,skbuff,bug}.h "$work"/net/{inet_ecn,pkt_sched,dsfield}.h
cp "$tree"/include/net/{codel,codel_impl,codel_qdisc,pie,red}.h "$work/net/"
cp "$tree/include/linux/reciprocal_div.h" "$work/linux/"
sched=net/sched
cut_out lib/math/reciprocal_div.c 'struct reciprocal_value reciprocal_value(' 'EXPORT_SYMBOL' >"$work/reciprocal_div_c.h"
cut_out $sched/sch_fifo.c 'static int pfifo_tail_enqueue(' 'static void fifo_offload_init' >"$work/sch_fifo.h"
cut_out $sched/sch_codel.c 'struct codel_sched_data {' 'static const struct nla_policy' >"$work/sch_codel.h"
cut_out $sched/sch_fq_codel.c 'struct fq_codel_flow {' 'static void fq_codel_flow_purge' >"$work/sch_fq_codel.h"
{
  cut_out $sched/sch_pie.c 'struct pie_sched_data {' 'static const struct nla_policy'
  cut_out $sched/sch_pie.c 'void pie_process_dequeue' 'static int pie_init'
  cut_out $sched/sch_pie.c 'static struct sk_buff *pie_qdisc_dequeue' 'static void pie_reset'
} >"$work/sch_pie.h"
{
  cut_out $sched/sch_red.c 'struct red_sched_data {' 'static struct sk_buff *red_peek'
  cut_out $sched/sch_red.c 'static inline void red_adaptative_timer' 'static int red_init'
} >"$work/sch_red.h"
cut_out $sched/sch_fq.c 'struct fq_skb_cb {' 'static void fq_flow_purge' >"$work/sch_fq.h"
{
  cut_out include/net/sch_generic.h 'struct psched_ratecfg {' 'void psched_ratecfg_precompute'
  cut_out $sched/sch_generic.c 'static void psched_ratecfg_precompute__' 'void psched_ratecfg_precompute('
} >"$work/psched_ratecfg.h"
{
  cut_out $sched/sch_tbf.c 'struct tbf_sched_data {' '/* Time to Length'
  cut_out $sched/sch_tbf.c 'static int tbf_enqueue' 'static void tbf_reset'
} >"$work/sch_tbf.h"
cut_out include/net/tc_act/tc_police.h 'struct tcf_police_params {' '/* old policer' >"$work/tc_police.h"
cut_out $sched/act_police.c 'TC_INDIRECT_SCOPE int tcf_police_act(' 'static void tcf_police_cleanup' >"$work/act_police.h"
cut_out $sched/sch_netem.c 'struct disttable {' 'static void netem_reset' >"$work/sch_netem.h"
disciplines=(pfifo_head_drop codel fq_codel pie red fq tbf police netem tc_netem)
if [[ -e $tree/$sched/sch_dualpi2.c ]]; then
  cut_out $sched/sch_dualpi2.c '#define MAX_PROB' 'static struct netlink_range_validation' >"$work/sch_dualpi2.h"
  disciplines+=(dualpi2)
fi
for name in "${disciplines[@]}"; do
  cc -O2 -w -fno-strict-aliasing -I "$work" -o "$work/$name" "ci/qdisc/$name.c"
done

# What tc sends for the parameters of each schedule of red, and for each line of netem.
cc -O2 -shared -fPIC -o "$work/tc_message.so" ci/qdisc/tc_message.c
for schedule in {0..9}; do
  ((schedule % 3)) && words=(min 30000 max 90000 burst 55) || words=(min 6000 max 18000 burst 20)
  ((schedule % 5 == 4)) && words+=(limit 100000) || words+=(limit 400000)
  ((schedule % 2)) && words+=(probability 0.1 ecn) || words+=(probability 0.02)
  ((schedule % 4 == 3)) && words+=(harddrop)
  ((schedule % 3 == 2)) && words+=(adaptive)
  TC_MESSAGE=$work/red-$schedule LD_PRELOAD=$work/tc_message.so unshare -n \
    tc qdisc add dev lo root red "${words[@]}" avpkt 1000 bandwidth 10mbit
done
schedule=0
while read -ra words; do
  TC_MESSAGE=$work/tc_netem-$schedule LD_PRELOAD=$work/tc_message.so unshare -n tc qdisc add dev lo root netem "${words[@]}"
  schedule=$((schedule + 1))
done <crates/sim/tests/data/netem-lines

record() { # NAME SCHEDULE PACKETS
  "$work/$1" "$2" "$3" "$work/$1-$2"
}
rm -f "$recordings"/*
for name in "${disciplines[@]}"; do
  for schedule in {0..9}; do
    record "$name" "$schedule" "$packets" >"$recordings/$name-$schedule"
  done
  if [[ ${BLESS:-} ]]; then
    short=10000
    [[ $name != tbf && $name != tc_netem ]] || short=2000
    for schedule in {0..9}; do record "$name" "$schedule" "$short"; done |
      gzip -9n >"crates/sim/tests/data/$name-decisions.gz"
  fi
done
echo "$source $version: ten schedules of $packets packets each"
SLOWSTART_QDISC=$recordings cargo test -q --locked -p slowstart-sim --test qdisc_decisions new_recordings -- --nocapture
