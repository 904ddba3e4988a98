//! What became worse since an earlier report.
//!
//! Runs of one number have the same seed in both, so they are compared in pairs. In the simulator a
//! difference is real whatever its size, so what counts is one beyond a percent of the value before.

use crate::judge::Verdict;
use crate::run::{Entry, Report};
use crate::scenario::Criterion;
use slowstart_study::stats;

/// The least change that counts, as a share of the value before.
const LEAST: f64 = 0.01;

/// A criterion that became worse.
#[derive(Clone, Debug)]
pub struct Worse {
    /// The entry of the report that is compared.
    pub now: Entry,
    /// The verdict on the same criterion in the earlier report.
    pub before: Verdict,
    /// Lower and upper end of the 95 % interval of the paired differences, in the unit of the measure;
    /// positive is worse.
    pub by: Option<[f64; 2]>,
}

/// Returns what is worse in `now` than in `before`: a criterion that was met and is not, or a value that is
/// worse by more than a percent in the whole interval. Also returns how many entries both have.
///
/// # Errors
/// If the reports are not of one suite, engine, avoidance and seed: what differs.
pub fn worse(now: &Report, before: &Report) -> Result<(Vec<Worse>, usize), String> {
    for (key, a, b) in [
        ("suite", &now.suite, &before.suite),
        ("engine", &now.engine, &before.engine),
        ("avoidance", &now.avoidance, &before.avoidance),
        ("seed", &now.seed.to_string(), &before.seed.to_string()),
        ("schema", &now.schema.to_string(), &before.schema.to_string()),
    ] {
        if a != b {
            return Err(format!("{key}: found {b:?}, expected {a:?} as in this run"));
        }
    }
    let (mut all, mut both) = (Vec::new(), 0);
    for n in &now.entries {
        let same =
            |b: &&Entry| (&b.scenario, &b.criterion, &b.startup) == (&n.scenario, &n.criterion, &n.startup);
        let Some(b) = before.entries.iter().find(same) else { continue };
        both += 1;
        let lost = b.verdict == Verdict::Meets && n.verdict == Verdict::DoesNotMeet;
        let at_least = Criterion::parse(&n.criterion).is_some_and(|c| c.at_least);
        let by = difference(n, b, at_least);
        let size = b.value.unwrap_or_default().abs() * LEAST;
        if lost || by.is_some_and(|[low, _]| low > size.max(1e-9)) {
            all.push(Worse { now: n.clone(), before: b.verdict, by });
        }
    }
    Ok((all, both))
}

fn difference(now: &Entry, before: &Entry, at_least: bool) -> Option<[f64; 2]> {
    if now.values.len() != before.values.len() {
        return None;
    }
    let pairs: Option<Vec<(f64, f64)>> =
        now.values.iter().zip(&before.values).map(|(n, b)| Some(((*n)?, (*b)?))).collect();
    let differences = pairs?.into_iter().map(|(n, b)| if at_least { b - n } else { n - b });
    let m = stats::median(&differences.collect::<Vec<f64>>())?;
    Some([m.low, m.high])
}
