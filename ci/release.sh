#!/usr/bin/env bash
# Builds the command for a release. Its bytes depend on the sources, the compilers and the target alone, and not on the
# folders of the sources, of cargo or of the target directory. Arguments are passed to cargo, for example
# `--features kernel` or `--target aarch64-unknown-linux-gnu`.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO_HOME:-$HOME/.cargo}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
rust=() c=()
# The last map that fits is used, so the target directory comes after the sources that contain it.
for map in "$cargo=/cargo" "$PWD=/slowstart" "$target=/target"; do
  rust+=("--remap-path-prefix=$map")
  c+=("-ffile-prefix-map=$map")
done
export RUSTFLAGS="${RUSTFLAGS:-} ${rust[*]}" CFLAGS="${CFLAGS:-} ${c[*]}"
exec cargo build --locked --release -p slowstart-cli "$@"
