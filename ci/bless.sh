#!/usr/bin/env bash
# After a change of behaviour that is meant: writes anew what the tests hold to the byte, for the reviewer to read.
set -euo pipefail
cd "$(dirname "$0")/.."
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-lab --test determinism >/dev/null
table=$(mktemp)
trap 'rm -f "$table"' EXIT
cargo run --locked --quiet --release -- compare geo >"$table"
awk -v table="$table" '
  /^```text$/ { print; while ((getline line < table) > 0) print line; shown = 1 }
  /^```$/ { shown = 0 }
  !shown' README.md >README.new
mv README.new README.md
git diff --stat
