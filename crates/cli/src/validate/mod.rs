//! `slowstart validate`: compares the simulator with Linux, and any engine with another.

mod engines;

use clap::{Args, Subcommand};

/// Validate the simulator against Linux, or one engine against another
///
/// Examples:
///   slowstart validate kernel --cell "100M-10ms-1 cubic"
///   slowstart validate engines sim quic:quinn
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
}

impl Validate {
    /// Runs the comparison. Returns true if all figures agree.
    pub(crate) fn main(self) -> anyhow::Result<bool> {
        match self.against {
            Against::Kernel(k) => k.main(),
            Against::Engines(e) => e.main(),
        }
    }
}
