#!/usr/bin/env bash
# Runs every fuzz target for a time, each in turn: ci/fuzz.sh [SECONDS [TARGET...]]. Default: 60 seconds each. A target such as
# `files:ss` begins with the inputs of the corpus whose names end in `-ss` alone.
#
# The build is one of stable Rust, instrumented for coverage by LLVM's pass. libFuzzer is built from the crate
# libfuzzer-sys, which needs a C++ compiler. New inputs go to target/fuzz/corpus; those that fail a target, to
# target/fuzz/failures, and the status is 1. Memory is limited to 1 GB and a single input to 10 s.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
targets=("$@")
((${#targets[@]})) || targets=($(ls crates/fuzz/corpus))
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=$PWD/target/fuzz
export RUSTFLAGS="${RUSTFLAGS:-} --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
cargo build --locked --quiet --profile fuzz --target "$host" -p slowstart-fuzz --features libfuzzer --bins || exit 1
failed=0
for target in "${targets[@]}"; do
  new=target/fuzz/corpus/${target/:/-}
  failures=target/fuzz/failures/${target/:/-}
  seeds=target/fuzz/seeds
  rm -rf "$seeds"
  mkdir -p "$new" "$failures" "$seeds"
  if [[ $target == *:* ]]; then
    cp "crates/fuzz/corpus/${target%:*}/"*"-${target#*:}" "$seeds" || exit 1
  else
    cp "crates/fuzz/corpus/$target/"* "$seeds"
  fi
  log=target/fuzz/${target/:/-}.log
  TIMEFORMAT=%0U
  cpu=$( { time "target/fuzz/$host/fuzz/${target%:*}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="$failures/" "$new" "$seeds" >"$log" 2>&1; } 2>&1)
  status=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  slowest=$(sed -n 's/^stat::slowest_unit_time_sec: *//p' "$log")
  memory=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  echo "$target: ${inputs:-?} inputs in $cpu s of CPU time, slowest ${slowest:-?} s, memory ${memory:-?} MB"
  if ((status)); then
    failed=1
    echo "$target failed with status $status; its input is in $failures:"
    grep -m1 -A3 -E 'panicked at|ERROR: libFuzzer' "$log"
  fi
done
exit "$failed"
