#!/usr/bin/env bash
# Builds the playground, a folder that any host serves. Usage: ci/playground.sh FOLDER [PROFILE]
#
# PROFILE is Cargo's: web (the default) for use, iterate for a quick build. $BINDGEN is slowstart-bindgen, if it is built.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: ci/playground.sh FOLDER [PROFILE]}
profile=${2:-web}
target=wasm32-unknown-unknown

# Returns 1 if the target cannot be installed.
have_wasm() {
  command -v rustup >/dev/null || return 1
  rustup target list --installed | grep -qx "$target" || timeout 300 rustup target add "$target"
}
have_wasm || { echo "missing: the target $target (rustup target add $target)" >&2; exit 3; }

if [[ ! ${BINDGEN:-} ]]; then
  cargo build --locked -p slowstart-bindgen
  BINDGEN=target/debug/slowstart-bindgen
fi
cargo build --locked --profile "$profile" -p slowstart-web --target "$target"
mkdir -p "$out"
"$BINDGEN" "target/$target/$profile/slowstart_web.wasm" "$out"
report=crates/report/src
cp crates/web/page/* "$report"/script/{data,figures,map,save,panes,tables,view}.js "$report/style.css" "$out"
cp "$report"/script/uplot.{js,css} "$report/script/LICENSE-uplot" "$out"
