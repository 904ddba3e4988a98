//! Limits of harm: an arm is ended when it is shown that a measure exceeds the control's by more than stated.

use crate::outcome::Measure;
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// A limit to what an arm may do, by one measure.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Guard {
    /// The measure that is limited.
    pub measure: Measure,
    /// How much more than the control's is permitted: 0.2 is 20 %. Up to 100.
    pub more: f64,
}

/// A limit that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?}: expected MEASURE=+PERCENT%, such as retrans=+20%, with a measure of {names} and 1% to 10000%", names = names())]
pub struct GuardError(String);

fn names() -> String {
    Measure::ALL.map(Measure::name).join(", ")
}

impl Guard {
    /// Reads a guardrail such as `retrans=+20%`.
    pub fn parse(text: &str) -> Result<Self, GuardError> {
        let failed = || GuardError(text.to_string());
        let (name, more) = text.split_once("=+").ok_or_else(failed)?;
        let measure = Measure::named(name).ok_or_else(failed)?;
        let digits = more.strip_suffix('%').ok_or_else(failed)?;
        let percent: u32 = digits.parse().map_err(|_| failed())?;
        if digits.starts_with('+') || !(1..=10_000).contains(&percent) {
            return Err(failed());
        }
        Ok(Self { measure, more: f64::from(percent) / 100.0 })
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=+{:.0}%", self.measure, self.more * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_measure_and_a_percentage() {
        let guard = Guard::parse("retrans=+20%").unwrap();
        assert_eq!(guard, Guard { measure: Measure::Retrans, more: 0.2 });
        assert_eq!(guard.to_string(), "retrans=+20%");
        for wrong in ["retrans", "retrans=20%", "retrans=+20", "loss=+20%", "retrans=++2%", "retrans=+0%"] {
            assert!(Guard::parse(wrong).unwrap_err().to_string().contains("time-1mb"), "{wrong}");
        }
    }
}
