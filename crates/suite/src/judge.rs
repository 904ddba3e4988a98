//! The verdict of a criterion from paired runs.
//!
//! In each run the value is compared with its limit, which may refer to what another startup had in the same
//! run. The excess is the value minus the limit. The criterion is met if the whole 95 % interval of the
//! median excess is at most zero, not met if all of it is above, and undecided otherwise.

use serde::{Deserialize, Serialize};
use slowstart_study::stats;

/// Whether a criterion is met.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval of the excess is at most zero.
    Meets,
    /// The whole interval of the excess is above zero.
    DoesNotMeet,
    /// The runs leave it open.
    Undecided,
    /// The measure was not observed.
    NotObserved,
}

impl Verdict {
    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Meets => "meets",
            Self::DoesNotMeet => "does not meet",
            Self::Undecided => "undecided",
            Self::NotObserved => "not observed",
        }
    }
}

/// What the runs say of a criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether the criterion is met.
    pub verdict: Verdict,
    /// The median value, and the median limit.
    pub value: Option<f64>,
    /// The median limit, in the unit of the value; `None` if nothing was observed.
    pub limit: Option<f64>,
    /// The median excess with its interval; beyond all numbers if a transfer never completed.
    pub excess: Option<(f64, f64, f64)>,
    /// About how many runs would decide, if it is undecided.
    pub runs_to_decide: Option<u32>,
}

/// Judges pairs of value and limit, one a run. `at_least` turns the comparison round.
pub fn judge(pairs: &[(f64, f64)], at_least: bool) -> Judgement {
    let excess: Vec<f64> = pairs
        .iter()
        .map(|(v, l)| if v.is_infinite() && l.is_infinite() { 0.0 } else { v - l })
        .map(|e| if at_least { -e } else { e })
        // The median interpolates, which infinities would turn into no number.
        .map(|e| e.clamp(-1e300, 1e300))
        .collect();
    let middle = |of: fn(&(f64, f64)) -> f64| {
        let all: Vec<f64> = pairs.iter().map(of).filter(|v| v.is_finite()).collect();
        stats::median(&all).map(|m| m.mid)
    };
    let Some(m) = stats::median(&excess) else {
        return Judgement {
            verdict: Verdict::NotObserved,
            value: None,
            limit: None,
            excess: None,
            runs_to_decide: None,
        };
    };
    let verdict = if m.high <= 0.0 {
        Verdict::Meets
    } else if m.low > 0.0 {
        Verdict::DoesNotMeet
    } else {
        Verdict::Undecided
    };
    // The width of the interval falls as the root of the number of runs.
    let half = (m.high - m.low) / 2.0;
    let needed = (verdict == Verdict::Undecided && m.mid != 0.0 && half < 1e299)
        .then(|| ((pairs.len() as f64) * (half / m.mid).powi(2)).ceil())
        .map(|n| n.clamp((pairs.len() + 1) as f64, 1e6) as u32);
    Judgement {
        verdict,
        value: middle(|p| p.0),
        limit: middle(|p| p.1),
        excess: Some((m.mid, m.low, m.high)),
        runs_to_decide: needed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_verdicts() {
        let of = |values: [f64; 6]| judge(&values.map(|v| (v, 10.0)), false);
        assert_eq!(of([8.0, 8.5, 9.0, 9.5, 9.9, 10.0]).verdict, Verdict::Meets);
        assert_eq!(of([10.5, 11.0, 12.0, 11.0, 13.0, 12.0]).verdict, Verdict::DoesNotMeet);
        let open = of([8.0, 9.0, 9.5, 10.5, 11.0, 9.0]);
        assert_eq!(open.verdict, Verdict::Undecided);
        assert!(open.runs_to_decide.is_some_and(|n| n > 6));
        assert_eq!(judge(&[], false).verdict, Verdict::NotObserved);
    }

    #[test]
    fn at_least_is_the_other_way_round() {
        let pairs = [(9.0, 10.0); 6];
        assert_eq!(judge(&pairs, false).verdict, Verdict::Meets);
        assert_eq!(judge(&pairs, true).verdict, Verdict::DoesNotMeet);
    }

    /// A transfer that never completes is later than any other, and as late as another that never does.
    #[test]
    fn transfers_that_never_complete() {
        let never = f64::INFINITY;
        assert_eq!(judge(&[(never, 10.0); 6], false).verdict, Verdict::DoesNotMeet);
        assert_eq!(judge(&[(never, never); 6], false).verdict, Verdict::Meets);
        assert_eq!(judge(&[(10.0, never); 6], false).verdict, Verdict::Meets);
    }
}
