#!/usr/bin/env bash
# Checks that `cargo deny` and `cargo audit` refuse a crate with an advisory, and for that advisory. Fetches the advisory database.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
mkdir "$dir/src" && touch "$dir/src/lib.rs"
cp deny.toml "$dir"
cat >"$dir/Cargo.toml" <<'E'
[package]
name = "advisory"
version = "0.0.0"
edition = "2024"
license = "MIT"
[dependencies]
# RUSTSEC-2020-0071
time = "=0.1.43"
E
cargo generate-lockfile --manifest-path "$dir/Cargo.toml"
for check in "cargo deny --manifest-path $dir/Cargo.toml check advisories" "cargo audit --file $dir/Cargo.lock"; do
  if $check >"$dir/said" 2>&1 || ! grep -q RUSTSEC-2020-0071 "$dir/said"; then
    cat "$dir/said"
    echo "does not refuse a crate for its advisory: $check" >&2
    exit 1
  fi
  echo "refused: $check"
done
