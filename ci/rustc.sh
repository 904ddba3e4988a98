#!/usr/bin/env bash
# The compiler of ci/test.sh, as RUSTC_WORKSPACE_WRAPPER: clippy's driver, so that lints and tests come of one compilation.
#
# Unit tests, a second compilation of each library, are not optimised: that takes longer than they run. Those of crates/study and
# crates/papers simulate for half a minute.
set -euo pipefail
case " $* " in
*" --crate-name slowstart_study "* | *" --crate-name slowstart_papers "*) ;;
*"/src/lib.rs "*" --test "*) set -- "${@/#opt-level=*/opt-level=0}" ;;
esac
exec "$CLIPPY_DRIVER" "$@"
