#!/usr/bin/env bash
# Runs the C interface and what calls a plugin under Miri, which sees the accesses of Rust that ci/sanitize.sh does not see.
# Installs a nightly toolchain with Miri. Miri runs no C: the plugin of this test is in Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo +nightly miri --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal --component miri,rust-src
export CARGO_TARGET_DIR=$PWD/target/miri
miri() { MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" cargo +nightly miri test --locked "$@"; }
miri -p slowstart-ffi --test c -- a_connection list_of_startups bad_arguments
# As for macOS: Miri has no clock of a thread's CPU time, which watches plugins on Linux.
miri -p slowstart-plugin --lib --target aarch64-apple-darwin
