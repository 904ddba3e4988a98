#!/usr/bin/env bash
# Builds the command and the tests of the algorithms for aarch64 with Debian's cross-compiler, and runs them in qemu's user
# emulation: `compare geo` must print the rows that it prints on this machine, to the byte, and hostile files must do no harm.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh

target=aarch64-unknown-linux-gnu
sysroot=/usr/aarch64-linux-gnu
install_missing aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu "$sysroot/include/stdio.h:libc6-dev-arm64-cross" \
  qemu-aarch64:qemu-user
rustup target add "$target"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $sysroot"

rows=target/aarch64
mkdir -p "$rows"
command=(-p slowstart-cli -- compare geo --runs 1 --json)
cargo run --locked --quiet "${command[@]}" >"$rows/here.jsonl"
timeout 1200 cargo run --locked --quiet --profile iterate --target "$target" "${command[@]}" >"$rows/aarch64.jsonl"
cmp "$rows/here.jsonl" "$rows/aarch64.jsonl"
echo "$(wc -l <"$rows/aarch64.jsonl") rows of aarch64 are those of $(uname -m)"

timeout 1200 cargo test --locked --profile iterate --target "$target" -p slowstart --lib --test scripts
timeout 2400 cargo test --locked --profile iterate --target "$target" -p slowstart-replay -p slowstart-fuzz -p slowstart-files \
  -p slowstart-sweep --lib --test files --test corpus --test hostile
