//! `slowstart validate`: compares the simulator with Linux or with ns-3, and any engine with another.

mod engines;
mod ns3;

use clap::{Args, Subcommand};

/// Validate the simulator against Linux or ns-3, or one engine against another
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
    Kernel(engines::Kernel),
    Engines(engines::Engines),
    Ns3(ns3::Ns3),
}

impl Validate {
    /// Runs the comparison. Returns true if all figures agree.
    pub(crate) fn main(self) -> anyhow::Result<bool> {
        match self.against {
            Against::Kernel(k) => k.main(),
            Against::Engines(e) => e.main(),
            Against::Ns3(n) => n.main(),
        }
    }
}
