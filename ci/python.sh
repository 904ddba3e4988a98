#!/usr/bin/env bash
# The Python package. Usage: ci/python.sh wheel|test|--missing
#
# `wheel` builds it for release into target/python/wheels. `test` runs its tests in a virtual environment without Rust on the
# PATH, with the library beside the command that SLOWSTART names, or else a debug build. `ci/test-dist.sh` installs the wheel.
# The environment is made anew when the list of packages changes. With --missing it prints what is not there, and returns 1 if
# something is not.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
out=$root/target/python
# What the tests use besides the package.
packages=(pytest mypy 'pyright[nodejs]' numpy pandas polars pyarrow duckdb gymnasium distributed nbclient ipykernel matplotlib tqdm)

missing() { # WHAT: nothing of Python can be tested without it
  echo "$1"
  exit 1
}
python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || missing "python3 3.10 or later with venv"
mkdir -p "$out"
environment() { # NAME PACKAGES...: a virtual environment with these packages, kept while they are the same
  local stamp=$out/$1/packages
  [[ -f $stamp && $(<"$stamp") == "${*:2}" ]] && return
  rm -rf "${out:?}/$1"
  python3 -m venv "$out/$1" >/dev/null 2>&1 || missing "python3 -m venv"
  "$out/$1/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check "${@:2}" || missing "a registry for pip"
  echo "${*:2}" >"$stamp"
}
if [[ ${1:-} == --missing ]]; then
  environment test "${packages[@]}"
  exit
fi

case ${1:-} in
wheel)
  environment tools 'maturin>=1.8,<2'
  rm -rf "${out:?}/wheels"
  "$out/tools/bin/maturin" build --quiet --locked --manifest-path python/Cargo.toml --profile wheel --out "$out/wheels" \
    --compatibility linux
  ls "$out"/wheels/*.whl
  ;;
test)
  library=${SLOWSTART:+$(dirname "$SLOWSTART")/lib_slowstart.so}
  if [[ ! -f $library ]]; then
    cargo build --locked --manifest-path python/Cargo.toml
    library=target/debug/lib_slowstart.so
  fi
  environment test "${packages[@]}"
  site=$("$out/test/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  rm -rf "$site/slowstart"
  cp -r python/slowstart "$site/"
  cp "$library" "$site/slowstart/_slowstart.abi3.so"
  # Not in python/: there `import slowstart` would take the sources.
  cd "$out"
  run() { env -i HOME="$HOME" LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PATH="$out/test/bin:/usr/bin:/bin" SLOWSTART_ROOT="$root" "$@"; }
  if run sh -c 'command -v cargo rustc' >/dev/null; then echo "note: Rust is in /usr/bin"; fi
  passed=0 failed=0
  output=$(run python -m pytest --quiet -rs --durations=8 -p no:cacheprovider "$root/python/tests" 2>&1) || true
  # Tests that are skipped are listed by ci/test.sh.
  sed 's/^SKIPPED \[[0-9]*\] /skipped: /' <<<"$output"
  count() { tail -1 <<<"$output" | grep -oE "[0-9]+ $1" | cut -d' ' -f1 || echo 0; }
  passed=$(count passed) failed=$(($(count failed) + $(count errors?)))
  ((passed + failed > 0)) || failed=1
  check() { # NAME COMMAND...: counts as a test
    if run "${@:2}"; then passed=$((passed + 1)); else
      echo "FAILED: $1"
      failed=$((failed + 1))
    fi
  }
  check "types" python -m mypy --strict --no-incremental --ignore-missing-imports -p slowstart
  # It fetches its program from the registry of npm when it first runs.
  if run python -m pyright --version >/dev/null 2>&1; then
    check "types, by pyright" python -m pyright --pythonpath "$out/test/bin/python" "$site/slowstart"
  else
    echo "skipped: types by pyright (no npm registry)"
  fi
  check "stubs" python -m mypy.stubtest --concise --ignore-missing-stub slowstart._slowstart
  result=ok
  ((failed == 0)) || result=FAILED
  # The line that ci/test.sh counts.
  echo "test result: $result. $passed passed; $failed failed"
  ((failed == 0))
  ;;
*)
  echo "usage: ci/python.sh wheel|test|--missing" >&2
  exit 2
  ;;
esac
