//! `slowstart replay --out STORE` in a build without the feature `sweep`.

use super::Replay;
use anyhow::{Result, bail};
use slowstart_replay::replay::Options;
use std::path::{Path, PathBuf};

pub(super) fn replay(_: &Replay, _: &[PathBuf], _: &[String], _: &Options, _: &Path) -> Result<()> {
    bail!(
        "--out: several files go into a store, and this program was built without it; build with \
         `cargo build --release -p slowstart-cli --features sweep`, or use --json or --csv"
    )
}
