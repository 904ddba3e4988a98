#!/usr/bin/env bash
# What ci/test.sh has Cargo run in place of rustdoc: runs a crate's examples, then writes its documentation from the same compiled
# libraries, where a warning fails. `cargo doc` would check every dependency anew.
set -euo pipefail
out=$(cd "$(dirname "$0")/.." && pwd)/target/doc
rustdoc "$@"
crate=()
while (($#)); do
  case $1 in
  --test) ;;
  --test-run-directory | --test-runtool | --test-runtool-arg | --test-args) shift ;;
  *) crate+=("$1") ;;
  esac
  shift
done
exec rustdoc "${crate[@]}" --out-dir "$out" -D warnings
