#!/usr/bin/env bash
# Draws the pictures of the documents: from runs of this version, and the playground as Chromium shows it, where that is installed.
# Tests hold that the former are not stale.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/printed.sh
rm -f "$picture"
cargo run --locked --quiet --release -- $(picture_command "$picture") >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-report --test pictures >/dev/null
SLOWSTART_BLESS=1 cargo test --locked --quiet -p slowstart-trial --test populations the_picture >/dev/null
if missing=$(bash ci/browser.sh --missing); then
  bash ci/playground.sh target/playground
  PLAYGROUND=$PWD/target/playground node crates/web/tests/browser/screenshot.mjs docs/guide/playground.webp
else
  echo "not drawn: docs/guide/playground.webp (missing: $missing)"
fi
