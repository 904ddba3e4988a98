//! Runs of the simulator, analysed, fitted and continued.

mod common;
mod fit;
mod fork;
mod names;
mod roundtrip;
