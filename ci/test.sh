#!/usr/bin/env bash
# All that a change must pass. Every step runs, whatever became of the one before. What could not be checked is listed
# at the end; the last line adds up what the test runners said, and a step that failed without one counts as one.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=target/ci
rm -rf "$logs" && mkdir -p "$logs" || exit 1

# What the tests need beside Rust. Parts that need more add it here.
. ci/needs.sh
install_missing cc:gcc nm:binutils \
  clang:clang ip:iproute2 /usr/include/gelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev || exit 1 # crates/linux
# Tools of others that some tests hold ours against: without them those are skipped.
install_missing bpftool:bpftool tcpdump:tcpdump tshark:tshark || true
command -v cargo >/dev/null || { echo "missing: Rust; install it from https://rustup.rs" >&2; exit 1; }

broken=()
skipped=()
step() { # NAME COMMAND...: what it says is kept in target/ci/NAME.log
  local name=$1
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$logs/$name.log" || broken+=("$name")
}

# The command of the README prints what the README shows, to the byte; so do its rows in a debug build, and with one
# thread or two.
rows() { cargo run --locked --quiet "$@" -- compare geo --runs 2 --json; }
readme() {
  rows --release >"$logs/rows.jsonl" || return 1
  local all good
  all=$(wc -l <"$logs/rows.jsonl")
  good=$(grep -c '^{"schema":1,.*"path":"geo".*}$' "$logs/rows.jsonl")
  echo "$good rows in $all lines"
  ((good >= 2 && good == all)) || return 1
  cargo run --locked --quiet --release -- compare geo >"$logs/table.txt" || return 1
  sed -n '/^```text$/,/^```$/p' README.md | sed '1d;$d' | diff - "$logs/table.txt" || return 1
  RAYON_NUM_THREADS=1 rows --release | cmp - "$logs/rows.jsonl" &&
    RAYON_NUM_THREADS=2 rows | cmp - "$logs/rows.jsonl"
}

step fmt cargo fmt --all --check
step clippy cargo clippy --locked --workspace --all-targets -- -D warnings
step test cargo test --locked --workspace --no-fail-fast -- --show-output
step test-release cargo test --locked --release -p slowstart-lab --test determinism -- --show-output
step kernel-feature cargo clippy --locked -p slowstart-cli --features kernel --all-targets -- -D warnings
step doc env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
step readme readme
if cargo deny --version >/dev/null 2>&1; then
  step deny cargo deny check
else
  skipped+=("skipped: cargo-deny is not installed")
fi

# What tests say they left out (reference data, for instance), and those that are ignored.
mapfile -t -O "${#skipped[@]}" skipped < <(
  sed -nE 's/.*(skipped: .*)/\1/p; s/^test (.*) \.\.\. ignored.*/skipped: \1 is ignored/p' "$logs"/test*.log | sort -u
)
read -r passed failed < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$logs"/test*.log)
echo
for name in ${broken[@]+"${broken[@]}"}; do
  echo "FAILED: $name, see $logs/$name.log"
  grep -q '^test result: FAILED' "$logs/$name.log" || failed=$((failed + 1))
done
for line in ${skipped[@]+"${skipped[@]}"}; do echo "$line"; done
echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
((failed == 0))
