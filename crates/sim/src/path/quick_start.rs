//! The rates of Quick-Start (RFC 4782 §3.1), which routers grant and TCP requests, as codes of four bits.

use slowstart::units::Rate;

/// Returns the largest code of a Quick-Start rate not above `rate`; 0 if there is none.
pub fn rate_code(rate: Rate) -> u8 {
    (1..=15).rev().find(|n| rate_of(*n).is_some_and(|r| r <= rate)).unwrap_or(0)
}

/// Returns the rate of a Quick-Start code; `None` for 0 and codes above 15.
pub fn rate_of(code: u8) -> Option<Rate> {
    (1..=15).contains(&code).then(|| Rate(40_000 << code))
}
