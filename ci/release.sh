#!/usr/bin/env bash
# Builds the command for a release. The compilers replace the folders of the sources, of cargo and of the target directory
# in everything that they write. Arguments are passed to cargo, for example `--features kernel`.
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
exec cargo build --locked --profile published -p slowstart-cli "$@"
