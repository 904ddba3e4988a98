//! `slowstart validate`: compares the simulator with Linux or with ns-3.

#[cfg(feature = "kernel")]
mod kernel;
mod ns3;

#[cfg(not(feature = "kernel"))]
use crate::kernel;
use clap::{Args, Subcommand};

/// Validate the simulator against Linux or ns-3
///
/// Examples:
///   slowstart validate kernel --cell "100M-10ms-1 cubic"
///   slowstart validate ns3 --case cubic
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Validate {
    #[command(subcommand)]
    against: Against,
}

#[derive(Subcommand)]
enum Against {
    Kernel(kernel::Kernel),
    Ns3(ns3::Ns3),
}

impl Validate {
    /// Runs the comparison. Returns true if all figures agree.
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
