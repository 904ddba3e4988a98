//! The verdict of a criterion from paired runs.
//!
//! In each run the value is compared with its limit, which may refer to what another startup had in the same
//! run. The excess is the value minus the limit. The criterion is met if the whole 95 % interval of the
//! median excess is at most zero, not met if all of it is above, and undecided otherwise. A transfer that never
//! completes where the limit's does is worse than any that completes, in however many other runs it does.
//! Fewer than [`FEWEST_PAIRS`] runs decide nothing, not even if one never completes.

use serde::{Deserialize, Serialize};
use slowstart_study::stats::{self, FEWEST_PAIRS};

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
    /// The median limit, in the unit of the value; where that lies on the other side of the median value than
    /// the runs say, the value less the median excess. `None` if nothing was observed.
    pub limit: Option<f64>,
    /// The median excess with its interval; beyond all numbers if a transfer never completed.
    pub excess: Option<(f64, f64, f64)>,
    /// About how many runs would decide, if it is undecided.
    pub runs_to_decide: Option<u32>,
    /// Runs in which the value has no end and the limit has one.
    pub never: u32,
}

/// Judges pairs of value and limit, one a run. `limits` are those of all runs, also of such as have no value, since
/// what slow start does does not depend on who stalls. `at_least` turns the comparison round.
pub fn judge(pairs: &[(f64, f64)], limits: &[f64], at_least: bool) -> Judgement {
    let excess: Vec<f64> = pairs
        .iter()
        .map(|(v, l)| if v.is_infinite() && l.is_infinite() { 0.0 } else { v - l })
        .map(|e| if at_least { -e } else { e })
        // The median interpolates, which infinities would turn into no number.
        .map(|e| e.clamp(-1e300, 1e300))
        .collect();
    let middle = |of: &mut dyn Iterator<Item = f64>| {
        stats::median(&of.filter(|v| v.is_finite()).collect::<Vec<_>>()).map(|m| m.mid)
    };
    let Some(m) = stats::median(&excess) else {
        return Judgement {
            verdict: Verdict::NotObserved,
            value: None,
            limit: None,
            excess: None,
            runs_to_decide: None,
            never: 0,
        };
    };
    let never = pairs.iter().filter(|(v, l)| v.is_infinite() && l.is_finite()).count() as u32;
    let verdict = if pairs.len() < FEWEST_PAIRS {
        Verdict::Undecided
    } else if never > 0 && !at_least {
        Verdict::DoesNotMeet
    } else if m.high <= 0.0 {
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
        .map(|n| n.clamp((pairs.len() + 1).max(FEWEST_PAIRS) as f64, 1e6) as u32);
    let (value, limit) = (middle(&mut pairs.iter().map(|p| p.0)), middle(&mut limits.iter().copied()));
    let limit = value
        .zip(limit)
        .filter(|_| m.mid.abs() < 1e299 && limits.len() == pairs.len())
        .map(|(v, l)| {
            let excess = if at_least { l - v } else { v - l };
            // The medians of values and of limits may lie the other way round than most pairs do.
            if (excess > 0.0) == (m.mid > 0.0) {
                l
            } else if at_least {
                v + m.mid
            } else {
                v - m.mid
            }
        })
        .or(limit);
    Judgement { verdict, value, limit, never, excess: Some((m.mid, m.low, m.high)), runs_to_decide: needed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(pairs: &[(f64, f64)], at_least: bool) -> Judgement {
        super::judge(pairs, &pairs.iter().map(|p| p.1).collect::<Vec<_>>(), at_least)
    }

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

    #[test]
    fn few_runs_decide_nothing_and_one_that_never_ends_decides() {
        assert_eq!(judge(&[(8.0, 10.0); 5], false).verdict, Verdict::Undecided);
        assert_eq!(judge(&[(12.0, 10.0); 5], false).verdict, Verdict::Undecided);
        // 2 of 12 stall: the median is well within the limit.
        let mut pairs = [(8.0, 10.0); 12];
        pairs[3].0 = f64::INFINITY;
        pairs[9].0 = f64::INFINITY;
        let j = judge(&pairs, false);
        assert_eq!((j.verdict, j.never), (Verdict::DoesNotMeet, 2));
        let few = judge(&pairs[..5], false);
        assert_eq!((few.verdict, few.never, few.runs_to_decide), (Verdict::Undecided, 1, None));
    }

    /// The median value is below the median limit, though every pair but one is above its limit.
    #[test]
    fn value_and_limit_differ_as_the_runs_do() {
        let pairs = [(1.0, 0.9), (2.0, 1.9), (3.0, 2.9), (4.0, 3.9), (5.0, 4.9), (6.0, 5.9), (3.2, 9.0)];
        let j = judge(&pairs, true);
        assert!(j.value.zip(j.limit).is_some_and(|(v, l)| v >= l), "{j:?}");
    }

    /// A transfer that never completes is later than any other, and as late as another that never does.
    #[test]
    fn transfers_that_never_complete() {
        let never = f64::INFINITY;
        assert_eq!(judge(&[(never, 10.0); 6], false).verdict, Verdict::DoesNotMeet);
        assert_eq!(judge(&[(never, never); 6], false).verdict, Verdict::Meets);
        assert_eq!(judge(&[(10.0, never); 6], false).verdict, Verdict::Meets);
    }

    #[test]
    fn the_limit_is_that_of_all_runs() {
        let limits = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
        let pairs: Vec<(f64, f64)> = limits[..6].iter().map(|l| (8.0, *l)).collect();
        assert_eq!(super::judge(&pairs, &limits, false).limit, Some(13.0));
    }
}
