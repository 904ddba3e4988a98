//! The kernel's monotonic clock.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use slowstart::units::Instant;

/// Returns the time of `CLOCK_MONOTONIC`, which BPF programs read too; steps of the wall clock do not change
/// it.
pub(crate) fn clock() -> Instant {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    Instant(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
