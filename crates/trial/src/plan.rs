//! The arms of a trial and their shares, and the assignment of a connection to an arm.
//!
//! A connection's key (its socket cookie, or the prefix of its client's address) is hashed with the seed of
//! the trial. Each arm owns an interval of the hashes as long as its share; hashes beyond the last interval
//! are not in the trial. So an arm gets no more than its share of the keys on average, whatever the others
//! do: when an arm is ended, its interval is left alone and nobody else receives it.

use hmac_sha256::Hash as Sha256;
use slowstart_stats::random;
use thiserror::Error;

/// Returns the seed with which a server of a fleet assigns: the first eight bytes of SHA-256 over the plan's
/// seed and the server's name. With a seed of its own on each server, one client's connections to two servers
/// are assigned independently.
pub fn seed_of_server(seed: u64, server: &str) -> u64 {
    let digest = Sha256::hash(&[&seed.to_be_bytes()[..], server.as_bytes()].concat());
    digest.iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Largest number of arms; `trial.bpf.c` has the same.
pub const MAX_ARMS: usize = 8;

/// A share of all connections, in millionths: 1 to 1,000,000.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u32);

/// Why a plan is not valid.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// An arm is not written as `NAME:SHARE%`.
    #[error("arm {0:?}: expected NAME:SHARE%, such as search:25%")]
    Form(String),
    /// A share is out of range.
    #[error("arm {arm:?}: the share is {found:?}; expected a percentage from 0.0001% to 100%")]
    Share {
        /// The arm as it was written.
        arm: String,
        /// The share as it was written.
        found: String,
    },
    /// The shares exceed 100 %.
    #[error("the shares add up to {0}%; expected 100% at most")]
    Above(String),
    /// Two arms are the same.
    #[error("arm {0} is given twice")]
    Twice(String),
    /// There are too few or too many arms.
    #[error("{0} arms; expected 2 to {MAX_ARMS}, the first of which is the control")]
    Number(usize),
}

/// An arm: what its connections use, and its share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// A congestion control of the kernel, or a startup with its parameters.
    pub name: String,
    /// The share of connections.
    pub share: Share,
}

fn percent(millionths: u64) -> String {
    let (whole, rest) = (millionths / 10_000, millionths % 10_000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:04}").trim_end_matches('0').to_string()
}

impl Share {
    /// Parses a percentage with at most four decimals, such as `12.5%`.
    fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?;
        let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 3 || rest.len() > 4 || !digits(whole) || !digits(rest) {
            return None;
        }
        let decimals: u32 = format!("{rest:0<4}").parse().ok()?;
        let share = whole.parse::<u32>().ok()? * 10_000 + decimals;
        (1..=1_000_000).contains(&share).then_some(Self(share))
    }

    /// Returns it as a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}%", percent(self.0.into()))
    }
}

impl Arm {
    /// Parses `NAME:SHARE%`. The name may contain colons: it is what stands before the last one.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let (name, share) = text.rsplit_once(':').ok_or_else(|| PlanError::Form(text.to_string()))?;
        if name.is_empty() || !share.ends_with('%') {
            return Err(PlanError::Form(text.to_string()));
        }
        let failed = || PlanError::Share { arm: text.to_string(), found: share.to_string() };
        Ok(Self { name: name.to_string(), share: Share::parse(share).ok_or_else(failed)? })
    }
}

/// The arms of a trial, the first of which is the control that the others are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    arms: Vec<Arm>,
    seed: u64,
}

impl Plan {
    /// Returns a plan of two to [`MAX_ARMS`] different arms whose shares are 100 % together at most.
    pub fn new(arms: Vec<Arm>, seed: u64) -> Result<Self, PlanError> {
        if !(2..=MAX_ARMS).contains(&arms.len()) {
            return Err(PlanError::Number(arms.len()));
        }
        for (i, arm) in arms.iter().enumerate() {
            if arms[..i].iter().any(|a| a.name == arm.name) {
                return Err(PlanError::Twice(arm.name.clone()));
            }
        }
        let sum: u64 = arms.iter().map(|a| u64::from(a.share.0)).sum();
        if sum > 1_000_000 {
            return Err(PlanError::Above(percent(sum)));
        }
        Ok(Self { arms, seed })
    }

    /// Returns the arms; the first is the control.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// Returns the seed of the assignment.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns for each arm the end of its interval of 32-bit hashes, up to 2^32. The first begins at 0, each
    /// other at the end of the one before.
    pub fn ends(&self) -> Vec<u64> {
        let mut sum = 0;
        let end = |a: &Arm| {
            sum += u64::from(a.share.0);
            (sum << 32) / 1_000_000
        };
        self.arms.iter().map(end).collect()
    }

    /// Returns the arm of a key; `None` if it is not in the trial. `trial.bpf.c` computes the same.
    pub fn assign(&self, key: u64) -> Option<usize> {
        let hash = random::at(self.seed, key) >> 32;
        self.ends().iter().position(|end| hash < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arms: &[&str]) -> Result<Plan, PlanError> {
        Plan::new(arms.iter().map(|a| Arm::parse(a)).collect::<Result<_, _>>()?, 7)
    }

    #[test]
    fn an_arm_is_a_name_and_a_percentage() {
        let arm = Arm::parse("search:threshold=0.3:12.5%").unwrap();
        assert_eq!((arm.name.as_str(), arm.share), ("search:threshold=0.3", Share(125_000)));
        assert_eq!(arm.share.to_string(), "12.5%");
        assert_eq!(Arm::parse("cubic:100%").unwrap().share, Share(1_000_000));
        for wrong in ["cubic", "cubic:25", ":25%", "search:threshold=0.3"] {
            assert_eq!(Arm::parse(wrong), Err(PlanError::Form(wrong.to_string())));
        }
        for share in ["0%", "-1%", "101%", "1e1%", "%", "0.00001%", "+5%"] {
            let e = Arm::parse(&format!("cubic:{share}")).unwrap_err();
            assert!(matches!(e, PlanError::Share { .. }), "{share}: {e:?}");
        }
    }

    #[test]
    fn a_plan_that_is_not_valid_is_refused_with_what_was_found() {
        assert_eq!(plan(&["cubic:60%", "search:40.0001%"]), Err(PlanError::Above("100.0001".into())));
        assert_eq!(plan(&["cubic:60%", "cubic:10%"]), Err(PlanError::Twice("cubic".into())));
        assert_eq!(plan(&["cubic:60%"]), Err(PlanError::Number(1)));
        assert_eq!(plan(&["a:1%"; 9]), Err(PlanError::Number(9)));
    }

    #[test]
    fn arms_get_their_shares_and_the_rest_is_in_no_arm() {
        let plan = plan(&["cubic:50%", "search:25%", "bbr:5%"]).unwrap();
        let mut counts = [0_u32; 4];
        for key in 0..100_000 {
            counts[plan.assign(key).unwrap_or(3)] += 1;
        }
        // Five standard deviations of a binomial (100000, share).
        for (n, share) in counts.iter().zip([0.5, 0.25, 0.05, 0.2]) {
            let (mean, deviation) = (1e5 * share, (1e5_f64 * share * (1.0 - share)).sqrt());
            assert!((f64::from(*n) - mean).abs() < 5.0 * deviation, "{counts:?}");
        }
        assert_eq!(plan.assign(12), plan.assign(12));
    }

    #[test]
    fn servers_of_a_fleet_assign_independently() {
        let of = |server: &str| {
            Plan::new(plan(&["a:50%", "b:50%"]).unwrap().arms, seed_of_server(7, server)).unwrap()
        };
        let (a, b) = (of("a"), of("b"));
        let same = (0..10_000).filter(|key| a.assign(*key) == b.assign(*key)).count();
        // Five standard deviations of a binomial (10000, 0.5).
        assert!((4750..5250).contains(&same), "{same}");
        assert_eq!(seed_of_server(7, "a"), a.seed());
    }

    #[test]
    fn shares_of_100_percent_leave_no_key_out() {
        let plan = plan(&["a:33.3333%", "b:33.3333%", "c:33.3334%"]).unwrap();
        assert_eq!(plan.ends().last(), Some(&(1 << 32)));
    }
}
