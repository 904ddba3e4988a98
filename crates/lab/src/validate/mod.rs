//! Compares the simulator with the live kernel and with ns-3.

pub mod kernel;
pub mod ns3;
pub mod page;
