//! Random numbers, truths and plans that the tests of populations and of fleets share.

use slowstart_stats::random::Stream;
use slowstart_trial::{Arm, Plan};

pub(crate) fn uniform(r: &mut Stream) -> f64 {
    (r.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// A standard normal number (Box and Muller).
pub(crate) fn normal(r: &mut Stream) -> f64 {
    libm::sqrt(-2.0 * libm::log(uniform(r))) * libm::cos(std::f64::consts::TAU * uniform(r))
}

/// What an arm does to its connections.
#[derive(Copy, Clone)]
pub(crate) struct Truth {
    /// Factor of all times.
    pub(crate) time: f64,
    /// Factor of the share of bytes sent again.
    pub(crate) retrans: f64,
}

pub(crate) const NONE: Truth = Truth { time: 1.0, retrans: 1.0 };

pub(crate) fn plan(arms: &[&str], seed: u64) -> Plan {
    Plan::new(arms.iter().map(|a| Arm::parse(a).expect("an arm")).collect(), seed).expect("a plan")
}
