//! `slowstart sweep` in a build without the feature `sweep`.

use anyhow::{Result, bail};
use clap::Args;

/// Run startups over a region of paths, with a store of results (needs a build with the feature sweep)
#[derive(Args)]
pub(crate) struct Sweep {
    /// Arguments of the command in a build that has it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<String>,
}

impl Sweep {
    pub(crate) fn main(&self) -> Result<()> {
        let _ = &self.arguments;
        bail!("sweep: built without it; build with `cargo build --release -p slowstart-cli --features sweep`")
    }
}
