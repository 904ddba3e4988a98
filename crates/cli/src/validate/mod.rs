//! `slowstart validate`: the simulator held against others.

#[cfg(feature = "kernel")]
mod kernel;
mod ns3;

#[cfg(not(feature = "kernel"))]
use crate::kernel;
use clap::{Args, Subcommand};

/// Hold the simulator against others
#[derive(Args)]
pub(crate) struct Validate {
    #[command(subcommand)]
    against: Against,
}

#[derive(Subcommand)]
enum Against {
    /// The running Linux kernel, through the emulator: exits, losses, times and windows of 50 cells
    Kernel(kernel::Kernel),
    /// ns-3, over dumbbells: exits, windows, drops and goodput side by side
    Ns3(ns3::Ns3),
}

impl Validate {
    /// Runs it; whether all agreed.
    pub(crate) fn main(self) -> anyhow::Result<bool> {
        match self.against {
            #[cfg(feature = "kernel")]
            Against::Kernel(k) => k.main(),
            #[cfg(not(feature = "kernel"))]
            Against::Kernel(k) => k.main().map(|()| true),
            Against::Ns3(n) => n.main(),
        }
    }
}
