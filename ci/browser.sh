#!/usr/bin/env bash
# Tests the playground and the report in headless Chromium. Usage: ci/browser.sh [--missing]
#
# With --missing it prints what is not there, and returns 1 if something is not.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=crates/web/tests/browser
missing=()
command -v node >/dev/null && [[ $(node -p 'process.versions.node.split(".")[0] >= 20') == true ]] || missing+=("node 20")
command -v npm >/dev/null || missing+=(npm)
for program in "${CHROMIUM:-chromium}" chromium-browser google-chrome; do
  chromium=$(command -v "$program") && break
done
[[ ${chromium:-} ]] || missing+=(chromium)
command -v rustup >/dev/null && rustup target list --installed | grep -qx wasm32-unknown-unknown ||
  timeout 300 rustup target add wasm32-unknown-unknown >/dev/null 2>&1 || missing+=("the target wasm32-unknown-unknown")
# What is fetched, once the programs are there.
if ((${#missing[@]} == 0)); then
  [[ -d $tests/node_modules ]] || npm ci --prefix "$tests" --no-audit --no-fund >/dev/null 2>&1 ||
    missing+=("the packages of $tests")
fi
if ((${#missing[@]})); then
  printf '%s\n' "$(IFS=,; echo "${missing[*]}")"
  exit 1
fi
[[ ${1:-} == --missing ]] && exit 0

# A quick build of the engine. The command is $SLOWSTART, if that is set.
bash ci/playground.sh target/playground-test iterate
if [[ ! ${SLOWSTART:-} ]]; then
  cargo build --locked -p slowstart-cli --features quic,sweep
  SLOWSTART=$PWD/target/debug/slowstart
fi
output=$(CHROMIUM=$chromium PLAYGROUND=$PWD/target/playground-test SLOWSTART=$SLOWSTART ROOT=$PWD \
  node --test --test-reporter=tap "$tests/playground.test.mjs" 2>&1) && status=0 || status=$?
echo "$output"
# The line that ci/test.sh counts.
passed=$(sed -n 's/^# pass //p' <<<"$output")
failed=$(sed -n 's/^# fail //p' <<<"$output")
result=ok
((status == 0)) || result=FAILED
echo "test result: $result. ${passed:-0} passed; ${failed:-1} failed"
exit "$status"
