#!/usr/bin/env bash
# Instructions a packet of each case of the bench `speed`, by cachegrind: they repeat to within 0.1 % whatever
# else runs. Without an argument also those of the bare loop; with a commit, fails where the working tree takes
# 3 % more than that.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v valgrind >/dev/null; then
  echo "skipped: instructions a packet (no valgrind)"
  # A comparison that cannot be made fails.
  exit $(($# > 0 ? 2 : 0))
fi

# Builds the bench of a tree; prints the path of the program.
build() {
  cargo bench --locked --quiet --manifest-path "$1/Cargo.toml" -p slowstart-sim --bench speed --no-run \
    --message-format json | jq -r 'select(.executable and .target.name == "speed").executable'
}

# Prints the instructions a packet of a program with these arguments; nothing for a case that it lacks.
count() {
  local log packets
  log=$(mktemp)
  packets=$(valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --log-file="$log" "$@" |
    jq '.packets * (.repeats // 1)')
  [[ $packets ]] && awk -v packets="$packets" '/I +refs:/ { gsub(",", ""); printf "%.0f", $NF / packets }' "$log"
  rm "$log"
}

cases=(cubic-1g-100ms geo geo-built-in 100-flows 100-flows-fq-codel overshoot-geo window-10 window-100 window-30000 window-100000)
ours=$(build .)
if [[ $# -eq 0 ]]; then
  printf '%-20s %7s %7s\n' case engine bare
  for case in "${cases[@]}"; do
    printf '%-20s %7s %7s\n' "$case" "$(count "$ours" --once "$case")" "$(count "$ours" --bare "$case" || true)"
  done
  exit
fi

before=$(mktemp -d)
trap 'git worktree remove --force "$before"' EXIT
git worktree add --quiet --detach "$before" "$1"
theirs=$(CARGO_TARGET_DIR="$PWD/target/before" build "$before")
failed=0 compared=0
for case in "${cases[@]}"; do
  old=$(count "$theirs" --once "$case" || true)
  new=$(count "$ours" --once "$case")
  echo "$case: $new instructions a packet, ${old:-none} before"
  [[ $old ]] || continue
  compared=$((compared + 1))
  if ((new * 100 > old * 103)); then
    echo "  more than 3 % above"
    failed=1
  fi
done
((compared > 0)) || { echo "no case of $1 could be counted"; exit 2; }
exit "$failed"
