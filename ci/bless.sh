#!/usr/bin/env bash
# After an intended change of results: rewrites what tests compare to the byte, for the reviewer to read. These are the
# JSON Schemas and the tables of documents that follow from types and lists, the golden rows, the figures of the small league, the small draft, the outputs in guides, docs/evidence/compare-geo.md, and the table and the picture
# of the README.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/printed.sh
# The document of rows follows from the schemas, which are compiled into its test.
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-cli --test cli rows::the_schemas >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-cli --test cli rows::the_document >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-cli --test cli documents::every_key >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-study --test determinism --test exit_points >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-league --test small >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-suite --test draft the_same_bytes >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-cli --test cli replay::documented_outputs >/dev/null
for file in "${printed[@]}"; do
  command=$(printed_command "$file")
  output=$(cargo run --locked --quiet --release -- $command)
  [[ $output ]] || { echo "slowstart $command printed nothing" >&2; exit 1; }
  printf '%s\n' "$output" | printed_part "$file" | rewrite_block "$file"
done
bash ci/pictures.sh
git diff --stat
