#!/usr/bin/env bash
# Draws the picture of the README from runs of this version.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/printed.sh
cargo run --locked --quiet --release -- $(picture_command "$picture") >/dev/null
