#!/usr/bin/env bash
# The compiler of ci/test.sh, as RUSTC_WORKSPACE_WRAPPER: clippy's driver, so that lints and tests come from one compilation.
#
# The unit tests, a second compilation of each library, are not optimised: optimising them takes longer than running them. Those of
# crates/study and crates/papers simulate much.
set -euo pipefail
case " $* " in
*" --crate-name slowstart_study "* | *" --crate-name slowstart_papers "*) ;;
*"/src/lib.rs "*" --test "*) set -- "${@/#opt-level=*/opt-level=0}" ;;
esac
exec "$CLIPPY_DRIVER" "$@"
