//! The simulator held against others: what is compared, and how close is close.

pub mod ns3;
