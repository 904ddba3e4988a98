#!/usr/bin/env bash
# Builds the playground, a folder that any host serves. Usage: ci/playground.sh FOLDER [PROFILE] | --tools
#
# PROFILE is Cargo's: web (the default) for use, iterate for a quick build. With --tools it installs what the build needs, and
# builds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: ci/playground.sh FOLDER [PROFILE] | --tools}
profile=${2:-web}
target=wasm32-unknown-unknown
PATH=$PWD/target/tools/bin:$PATH

# Returns 1 if the target cannot be installed.
have_wasm() {
  command -v rustup >/dev/null || return 1
  rustup target list --installed | grep -qx "$target" || timeout 300 rustup target add "$target"
}
# wasm-bindgen must have the version of the crate. It is built from its published source into target/tools, in about 150
# CPU seconds.
have_bindgen() {
  local version
  version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
  [[ $(wasm-bindgen --version 2>/dev/null) == "wasm-bindgen $version" ]] ||
    cargo install --quiet --debug --root target/tools "wasm-bindgen-cli@$version"
}
have_wasm || { echo "missing: the target $target (rustup target add $target)" >&2; exit 3; }
have_bindgen || { echo "missing: wasm-bindgen (cargo install wasm-bindgen-cli)" >&2; exit 3; }
[[ $out == --tools ]] && exit

cargo build --locked --profile "$profile" -p slowstart-web --target "$target"
mkdir -p "$out"
wasm-bindgen --target web --no-typescript --out-name engine --out-dir "$out" \
  "target/$target/$profile/slowstart_web.wasm"
report=crates/lab/src/report
cp crates/web/page/* "$report"/script/{data,figures,map,save,panes,tables,view}.js "$report/style.css" "$out"
cp "$report"/script/uplot.{js,css} "$report/script/LICENSE-uplot" "$out"
