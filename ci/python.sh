#!/usr/bin/env bash
# The Python package. Usage: ci/python.sh wheel|test
#
# `wheel` builds it in release into target/python/wheels. `test` builds it in the profile of the tests, whose parts are shared
# with them, installs it into a fresh virtual environment without Rust on the PATH, and runs its tests there.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=$root/target/python
skip() { echo "skipped: the Python package ($*)"; exit 0; }

python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "needs python3 3.10 or later with venv"
mkdir -p "$out"
venv() { # NAME PACKAGES...
  [[ -x $out/$1/bin/python ]] || python3 -m venv "$out/$1" >/dev/null || skip "python3 -m venv fails"
  "$out/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}" || skip "pip cannot install ${*:2}"
}
venv tools 'maturin>=1.8,<2'

build() { # PROFILE FOLDER
  rm -rf "${out:?}/$2"
  "$out/tools/bin/maturin" build --quiet --manifest-path python/Cargo.toml --profile "$1" --out "$out/$2" \
    --compatibility linux
}

case ${1:-} in
wheel)
  build release wheels
  ls "$out"/wheels/*.whl
  ;;
test)
  build dev test-wheels
  rm -rf "$out/fresh"
  venv fresh "$out"/test-wheels/*.whl pytest mypy numpy pandas polars gymnasium distributed nbclient ipykernel matplotlib
  cd "$out"
  run() { env -i HOME="$HOME" LANG=C.UTF-8 PATH="$out/fresh/bin:/usr/bin:/bin" SLOWSTART_ROOT="$root" "$@"; }
  if run sh -c 'command -v cargo rustc' >/dev/null; then echo "note: Rust is in /usr/bin"; fi
  status=0
  run python -m pytest --quiet -p no:cacheprovider "$root/python/tests" || status=1
  run python -m mypy --strict --no-incremental --ignore-missing-imports -p slowstart || status=1
  run python -m mypy.stubtest --concise --ignore-missing-stub slowstart._slowstart || status=1
  exit "$status"
  ;;
*)
  echo "usage: ci/python.sh wheel|test" >&2
  exit 2
  ;;
esac
