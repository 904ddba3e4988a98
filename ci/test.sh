#!/usr/bin/env bash
# The tests of the project. Usage: ci/test.sh [check|test]
#
# `test` runs everything. On a machine with Rust alone it runs all that needs Rust alone. `check` is the fast tier: it
# needs Rust alone, and takes less than two minutes of CPU time once the tree is built.
#
# Every step runs, also after a failed one, and says what time it took. The end lists what was skipped and why, then what failed
# with its message; the last line is the sum over all test runners, where a failed step without a test runner counts as one failure.
#
# SLOWSTART_LONG=1     the long form of every test that has one
# SLOWSTART_RANDOM=1   property tests draw new cases; the end says what repeats them
set -uo pipefail
cd "$(dirname "$0")/.."
tier=${1:-test}
logs=target/ci
rm -rf "$logs" && mkdir -p "$logs" || exit 1
. ci/needs.sh
. ci/printed.sh

command -v cargo >/dev/null || { echo "missing: Rust; install it from https://rustup.rs" >&2; exit 1; }

# Property tests take their seed from here, else from .cargo/config.toml.
if [[ ${SLOWSTART_RANDOM:-} ]]; then
  PROPTEST_RNG_SEED=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
  export PROPTEST_RNG_SEED
fi
# A clean clone gains nothing from what a second build could reuse, nor from what a debugger reads. One unit a crate takes less
# CPU time in all, and a clean build has crates enough for all processors.
if [[ ${CI:-} ]]; then
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_CODEGEN_UNITS=1
fi

skip() { echo "skipped: $*" >>"$logs/skipped"; }
step() { # NAME COMMAND...: keeps the output in target/ci/NAME.log
  local name=$1 TIMEFORMAT="   $1: %0R s, of CPU time %0U s and %0S s in the kernel"
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  time { "$@" 2>&1 | tee "$logs/$name.log" || echo "$name" >>"$logs/broken"; }
}
# A function whose steps run beside others. `show` waits for it and shows what it printed.
beside() { "$1" >"$logs/$1.shown" 2>&1 & }
show() { wait; cat "$logs"/*.shown; }
trap 'trap - TERM; kill 0' INT TERM
# Lines `skipped: WHAT (REASON)`, those with one reason as one line.
by_reason() {
  awk '
    { reason = ""; what = $0; sub(/^skipped: /, "", what) }
    match(what, / \(.*\)$/) { reason = substr(what, RSTART); what = substr(what, 1, RSTART - 1) }
    reason == "" { print "skipped: " what; next }
    !(reason in all) { order[++n] = reason; all[reason] = what; next }
    { all[reason] = all[reason] "; " what }
    END { for (i = 1; i <= n; i++) print "skipped: " all[order[i]] order[i] }'
}

# What a log says of its failures: errors, the names of failed tests, and what each printed as it failed.
why() {
  grep -E '^error|^test .* FAILED$|^FAILED |^not ok ' "$1" | head -n 40
  # libtest repeats the output of failed tests between `failures:` and the result.
  awk '/^failures:$/ { failures = 1 }
    /^test result:/ { failures = 0 }
    /^stack backtrace:$/ { left = 0 }
    failures && /panicked at/ { left = seen[$0]++ ? 0 : 12 }
    failures && left-- > 0' "$1" | cut -c 1-300 | head -n 120
}

# Prints the summary; its status is that of the whole run.
finish() {
  # Lines that tests print when they skip, and ignored tests.
  local skipped
  mapfile -t skipped < <(
    cat "$logs/skipped" 2>/dev/null
    sed -nE 's/.*(skipped: .*)/\1/p; s/^test (.*) \.\.\. ignored.*/skipped: \1 is ignored/p' "$logs"/test*.log | sort -u
  )
  # A test that says that it skipped has not passed, although its runner has no such status.
  read -r passed failed < <(awk '
    /^test result:/ { p += $4; f += $6; said = 0 }
    /^---- .* stdout ----$/ { said = 1 }
    said && /skipped: / { p--; said = 0 }
    END { print p + 0, f + 0 }' "$logs"/test*.log)
  echo
  ((${#skipped[@]} == 0)) || printf '%s\n' "${skipped[@]}" | by_reason
  [[ ! ${SLOWSTART_RANDOM:-} ]] || echo "property tests: PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED repeats them"
  while read -r name; do
    echo "FAILED: $name, see $logs/$name.log"
    why "$logs/$name.log"
    grep -q '^test result: FAILED' "$logs/$name.log" || failed=$((failed + 1))
  done < <(cat "$logs/broken" 2>/dev/null)
  echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
  ((failed == 0))
}

if [[ $tier == check ]]; then
  step fmt cargo fmt --all --check
  step clippy cargo clippy --locked --all-targets -- -D warnings
  step test cargo test --locked --lib --bins --test scripts --test laws --test no_std --test determinism \
    --test endpoint --test recovery --test mechanisms --test scoreboard --test closed_forms --test packetdrill \
    --test files
  finish
  exit
fi
[[ $tier == test ]] || { echo "usage: ci/test.sh [check|test]" >&2; exit 2; }

# crates/linux needs a C compiler for BPF and two libraries; everything else needs Rust and a linker.
features=slowstart-research/sweep,slowstart-cli/quic,slowstart-cli/sweep
if install_missing clang:clang pkg-config:pkg-config ip:iproute2 /usr/include/gelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev; then
  packages=(--workspace)
  features+=,slowstart-cli/kernel,slowstart-research/kernel
else
  packages=(--workspace --exclude slowstart-linux)
  skip "crates/linux and the feature kernel (they need clang, pkg-config, iproute2, libelf-dev and zlib1g-dev)"
fi
everything=("${packages[@]}" --features "$features")
# Tests that compare with other tools skip where the tool is missing.
install_missing nm:binutils bpftool:bpftool tcpdump:tcpdump tshark:tshark || true

# README.md and docs/evidence/compare-geo.md show what the command without features prints, to the byte. The debug build with
# every feature, and one and two threads, print the same rows, over four kinds of networks, and the same documents.
readme() {
  rows() { "target/$1/slowstart" compare geo leo lte wifi-weak --runs 2 --json; }
  rows release >"$logs/rows.jsonl" || return 1
  local all good
  all=$(wc -l <"$logs/rows.jsonl")
  good=$(grep -c '^{"schema":1,.*"path":".*}$' "$logs/rows.jsonl")
  echo "$good rows in $all lines"
  ((good >= 8 && good == all)) || return 1
  local file
  for file in "${printed[@]}"; do
    # shellcheck disable=SC2046 # the arguments are words
    target/release/slowstart $(printed_command "$file") >"$logs/printed.txt" || return 1
    printed_part "$file" <"$logs/printed.txt" >"$logs/table.txt"
    printed_block "$file" | diff - "$logs/table.txt" || { echo "$file is not what the command prints"; return 1; }
  done
  # shellcheck disable=SC2046 # the arguments are words
  rm -f "$logs/picture.svg"
  target/release/slowstart $(picture_command "$logs/picture.svg") >/dev/null || return 1
  cmp "$picture" "$logs/picture.svg" || { echo "$picture is not what \`make pictures\` draws"; return 1; }
  target/release/slowstart vectors search | cmp - <(target/debug/slowstart vectors search) || return 1
  RAYON_NUM_THREADS=1 rows release | cmp - "$logs/rows.jsonl" &&
    RAYON_NUM_THREADS=2 rows debug | cmp - "$logs/rows.jsonl"
}

# The algorithms on a processor without std. Returns 1 if the target cannot be installed.
bare=thumbv7m-none-eabi
have_target() {
  command -v rustup >/dev/null || return 1
  rustup target list --installed | grep -qx "$bare" || timeout 300 rustup target add "$bare"
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

# Lints and tests from one compilation: clippy's driver is a compiler of Rust.
CLIPPY_DRIVER=$(rustup which clippy-driver 2>/dev/null || command -v clippy-driver) ||
  { echo "missing: clippy; install it with: rustup component add clippy" >&2; exit 1; }
export CLIPPY_DRIVER RUSTC_WORKSPACE_WRAPPER=$PWD/ci/rustc.sh CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

# Tests of the kernel mostly wait for the clock. Beside them run the others.
lane() { # LANE [OPTION..]
  # Pins are made in a file system of its own.
  local own=()
  # shellcheck disable=SC2016 # the inner shell expands
  if unshare --mount mount -t bpf bpf /sys/fs/bpf 2>/dev/null; then
    own=(unshare --mount bash -c 'mount -t bpf bpf /sys/fs/bpf && exec "$@"' own)
  fi
  ${own[@]+"${own[@]}"} nice -n "$([[ $1 == kernel ]] && echo 0 || echo 5)" cargo test --locked "${everything[@]}" --no-fail-fast "${@:2}" \
    --config "target.'cfg(all())'.runner = ['bash', '$PWD/ci/lane.sh', '$1']" -- --show-output
}
test_kernel() { step test-kernel lane kernel --tests; }

# As a user builds it.
as_a_user() {
  unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
  renice -n 19 -p "$BASHPID" >/dev/null
  step build-release cargo build --locked --release
  step readme readme
}

# Fetches and builds what the tests of the Python package and of the pages need, and writes what is missing. Chromium is
# installed as root.
fetch() {
  bash ci/python.sh --missing >"$logs/python.missing"
  bash ci/browser.sh --missing >"$logs/pages.missing"
  if [[ $(<"$logs/pages.missing") == chromium ]] && install_missing chromium:chromium; then
    bash ci/browser.sh --missing >"$logs/pages.missing"
  fi
  true
}
tools() {
  unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
  renice -n 19 -p "$BASHPID" >/dev/null
  step tools fetch
}

# Both are compared with the command of the step `build`, and take its tools.
python_and_pages() {
  unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
  renice -n 5 -p "$BASHPID" >/dev/null
  export SLOWSTART=$PWD/target/debug/slowstart BINDGEN=$PWD/target/debug/slowstart-bindgen
  local missing
  missing=$(<"$logs/python.missing")
  if [[ $missing ]]; then
    skip "the Python package (missing: $missing)"
  else
    step test-python bash ci/python.sh test
  fi
  missing=$(<"$logs/pages.missing")
  if [[ $missing ]]; then
    skip "playground and report in a browser (missing: $missing)"
  else
    step test-browser bash ci/browser.sh
  fi
}

step fmt cargo fmt --all --check
beside tools
step build cargo build --locked "${everything[@]}" --all-targets
wait
beside as_a_user
beside test_kernel
beside python_and_pages
step test lane other --tests
RUSTDOC=$PWD/ci/rustdoc.sh step test-doc lane other --doc
if have_target >/dev/null 2>&1; then
  step no-std cargo build --locked -p slowstart --target "$bare"
else
  skip "the build without std (the target $bare cannot be installed)"
fi
show
if cargo deny --version >/dev/null 2>&1; then
  step test-deny deny
else
  skip "licences and advisories of dependencies (cargo-deny is not installed: cargo install --locked cargo-deny)"
fi
finish
