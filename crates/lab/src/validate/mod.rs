//! The simulator held against others: what is compared, and how close is close.

pub mod kernel;
pub mod ns3;
pub mod page;
