//! `slowstart validate`: the simulator held against others.

mod ns3;

use clap::{Args, Subcommand};

/// Hold the simulator against others
#[derive(Args)]
pub(crate) struct Validate {
    #[command(subcommand)]
    against: Against,
}

#[derive(Subcommand)]
enum Against {
    /// ns-3, over dumbbells: exits, windows, drops and goodput side by side
    Ns3(ns3::Ns3),
}

impl Validate {
    /// Runs it; whether all agreed.
    pub(crate) fn main(self) -> anyhow::Result<bool> {
        match self.against {
            Against::Ns3(n) => n.main(),
        }
    }
}
