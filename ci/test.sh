#!/usr/bin/env bash
# The tests of the project. Usage: ci/test.sh [check|test]
#
# `test` runs everything. On a machine with Rust alone it runs all that needs Rust alone. `check` is the fast tier: it
# needs Rust alone, and takes less than two minutes of CPU time once the tree is built.
#
# Every step runs, also after a failed one. The end lists what was skipped and why; the last line is the sum over all
# test runners, where a failed step without a test runner counts as one failure.
set -uo pipefail
cd "$(dirname "$0")/.."
tier=${1:-test}
logs=target/ci
rm -rf "$logs" && mkdir -p "$logs" || exit 1
. ci/needs.sh
. ci/printed.sh

command -v cargo >/dev/null || { echo "missing: Rust; install it from https://rustup.rs" >&2; exit 1; }

broken=()
skipped=()
skip() { skipped+=("skipped: $*"); }
step() { # NAME COMMAND...: keeps the output in target/ci/NAME.log
  local name=$1
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$logs/$name.log" || broken+=("$name")
}

# Prints the summary; its status is that of the whole run.
finish() {
  # Lines that tests print when they skip, and ignored tests.
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
}

if [[ $tier == check ]]; then
  step fmt cargo fmt --all --check
  step clippy cargo clippy --locked --all-targets -- -D warnings
  step test cargo test --locked --lib --bins --test scripts --test laws --test no_std --test determinism \
    --test endpoint --test recovery --test mechanisms --test scoreboard --test closed_forms --test packetdrill \
    --test inputs --test damage
  finish
  exit
fi
[[ $tier == test ]] || { echo "usage: ci/test.sh [check|test]" >&2; exit 2; }

# crates/linux needs a C compiler for BPF and two libraries; everything else needs Rust and a linker.
kernel=yes
install_missing clang:clang pkg-config:pkg-config ip:iproute2 /usr/include/gelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev || kernel=
# Tests that compare with other tools skip where the tool is missing.
install_missing nm:binutils bpftool:bpftool tcpdump:tcpdump tshark:tshark || true
packages=(--workspace)
if [[ ! $kernel ]]; then
  packages+=(--exclude slowstart-linux)
  skip "crates/linux and the feature kernel (need clang, pkg-config, iproute2, libelf-dev, zlib1g-dev)"
fi

# README.md and docs/compare-geo.md hold the output of commands to the byte. Debug and release builds, and one and two
# threads, print the same rows.
rows() { cargo run --locked --quiet "$@" -- compare geo --runs 2 --json; }
readme() {
  rows --release >"$logs/rows.jsonl" || return 1
  local all good
  all=$(wc -l <"$logs/rows.jsonl")
  good=$(grep -c '^{"schema":1,.*"path":"geo".*}$' "$logs/rows.jsonl")
  echo "$good rows in $all lines"
  ((good >= 2 && good == all)) || return 1
  local file
  for file in "${printed[@]}"; do
    cargo run --locked --quiet --release -- $(printed_command "$file") >"$logs/table.txt" || return 1
    printed_block "$file" | diff - "$logs/table.txt" || { echo "$file is not what the command prints"; return 1; }
  done
  RAYON_NUM_THREADS=1 rows --release | cmp - "$logs/rows.jsonl" &&
    RAYON_NUM_THREADS=2 rows | cmp - "$logs/rows.jsonl"
}

# The algorithms on a processor without std. Returns 1 if the target cannot be installed.
bare=thumbv7m-none-eabi
have_target() {
  command -v rustup >/dev/null || return 1
  rustup target list --installed | grep -qx "$bare" || timeout 300 rustup target add "$bare"
}

# cargo-deny is built from its published source into target/tools, in about 100 CPU seconds.
have_deny() {
  PATH=$PWD/target/tools/bin:$PATH
  cargo deny --version >/dev/null 2>&1 ||
    cargo install --locked --quiet --debug --no-default-features --root target/tools cargo-deny@0.20.2
}
# The advisory database is fetched from its repository. Licences, bans and sources are checked without it.
deny() {
  cargo deny check --hide-inclusion-graph licenses bans sources || return 1
  if timeout 60 cargo deny fetch db >/dev/null 2>&1; then
    cargo deny check --hide-inclusion-graph advisories
  else
    echo "skipped: advisories (the advisory database cannot be fetched here)"
  fi
}

step fmt cargo fmt --all --check
step clippy cargo clippy --locked "${packages[@]}" --all-targets -- -D warnings
step test cargo test --locked "${packages[@]}" --no-fail-fast -- --show-output
step test-release cargo test --locked --release -p slowstart-lab --test determinism -- --show-output
# The command with its features.
features=quic,sweep
tests=(--test quic --test sweep --test replay_store --test rows --test book)
if [[ $kernel ]]; then
  features+=,kernel
  tests+=(--test kernel --test kernel_memory --test kernel_trial --test emulate)
fi
step clippy-features cargo clippy --locked -p slowstart-cli --features "$features" --all-targets -- -D warnings
step test-features cargo test --locked -p slowstart-cli --features "$features" --bins "${tests[@]}" --no-fail-fast -- --show-output
# After the step before: its command is compared with the package.
if missing=$(bash ci/python.sh --missing); then
  step test-python bash ci/python.sh test
else
  skip "the Python package (missing: $missing)"
fi
step test-quic cargo test --locked -p slowstart-quic --features sim,s2n,sockets --no-fail-fast -- --show-output
step doc env RUSTDOCFLAGS="-D warnings" cargo doc --locked "${packages[@]}" --no-deps
step readme readme
if have_target >/dev/null 2>&1; then
  step no-std cargo build --locked -p slowstart --target "$bare"
else
  skip "the build without std (the target $bare cannot be installed)"
fi
if missing=$(bash ci/browser.sh --missing); then
  step test-browser bash ci/browser.sh
else
  skip "playground and report in a browser (missing: $missing)"
fi
if have_deny; then
  step test-deny deny
else
  skip "cargo deny (cargo-deny is not installed: cargo install --locked cargo-deny)"
fi
finish
