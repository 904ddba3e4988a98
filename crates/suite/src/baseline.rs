//! What became worse since an earlier report.
//!
//! Runs of one number have the same seed in both, so they are compared in pairs; of unequal numbers, the runs
//! that both have, by which both are judged again. In the simulator a difference is real whatever its size, so what counts is one beyond a
//! percent of the value before. A value that a run had before and lacks now is worse than any.

use crate::judge::{Verdict, judge};
use crate::run::{Entry, Report};
use crate::scenario::Criterion;
use slowstart_study::measures::Measure;
use slowstart_study::stats::{self, FEWEST_PAIRS};

/// The least change that counts, as a share of the value before.
const LEAST: f64 = 0.01;

/// A criterion that became worse.
#[derive(Clone, Debug)]
pub struct Worse {
    /// The entry of the report that is compared.
    pub now: Entry,
    /// The verdict on it, over the runs that both have.
    pub verdict: Verdict,
    /// The verdict on the same criterion in the earlier report, over the same runs.
    pub before: Verdict,
    /// Lower and upper end of the 95 % interval of the paired differences, in the unit of the measure;
    /// positive is worse.
    pub by: Option<[f64; 2]>,
    /// Runs that have no value now and had one before.
    pub lost: usize,
    /// Runs that both have.
    pub runs: usize,
}

/// How far a verdict is from the best.
const fn badness(v: Verdict) -> u8 {
    match v {
        Verdict::Meets => 0,
        Verdict::Undecided | Verdict::NotObserved => 1,
        Verdict::DoesNotMeet => 2,
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// What became worse: a verdict that is worse, a value that is worse by more than a percent in the whole
    /// interval, or one that is missing in a run.
    pub worse: Vec<Worse>,
    /// Criteria that were compared.
    pub both: usize,
    /// Of these, those of which the reports have different numbers of runs, and the fewest runs that both have.
    pub unequal: Option<(usize, usize)>,
}

/// The verdict on the first `runs` runs of an entry; `None` if the report is of a version that kept no limits.
fn verdict_over(e: &Entry, c: &Criterion, runs: usize) -> Option<Verdict> {
    if runs >= e.values.len() {
        return Some(e.verdict);
    }
    if e.limits.len() != e.values.len() {
        return None;
    }
    let pairs = || e.values.iter().zip(&e.limits).take(runs);
    // Of a report that knows of stalls, a value that is missing beside its limit is one.
    let stalls = e.never > 0 && pairs().any(|(v, l)| v.is_none() && l.is_some());
    let both: Vec<(f64, f64)> = pairs().filter_map(|(v, l)| v.zip(*l)).collect();
    let limits: Vec<f64> = pairs().filter_map(|p| *p.1).collect();
    Some(match judge(&both, &limits, c.at_least).verdict {
        _ if e.broken > 0 || stalls && c.measure == Measure::Completion => Verdict::DoesNotMeet,
        Verdict::Meets if stalls => Verdict::Undecided,
        verdict => verdict,
    })
}

/// Returns what is worse in `now` than in `before`, and what was compared.
///
/// # Errors
/// If the reports are not of one suite, engine, avoidance and seed; of one kernel, its releases may differ within a
/// series, such as 6.18; if `before` lacks a startup, a scenario or
/// a criterion of `now`, or has one that `now` leaves out; or if they have fewer than [`FEWEST_PAIRS`] runs in
/// common: what differs.
pub fn worse(now: &Report, before: &Report) -> Result<Compared, String> {
    for (key, a, b) in [
        ("suite", &now.suite, &before.suite),
        ("engine", &series(&now.engine), &series(&before.engine)),
        ("stack", &kernel(&now.stack, &before.stack), &kernel(&before.stack, &now.stack)),
        ("avoidance", &now.avoidance, &before.avoidance),
        ("seed", &now.seed.to_string(), &before.seed.to_string()),
        ("schema", &now.schema.to_string(), &before.schema.to_string()),
    ] {
        if a != b {
            return Err(format!("{key}: found {b:?}, expected {a:?} as in this run"));
        }
    }
    // Reports of before there were hashes have none.
    if !before.suite_sha256.is_empty() && now.suite_sha256 != before.suite_sha256 {
        let (found, expected) = (&before.suite_sha256, &now.suite_sha256);
        return Err(format!(
            "{}: found the suite with SHA-256 {found}, expected {expected} as in this run",
            now.suite
        ));
    }
    if let Some(missing) = now.startups.iter().find(|s| !before.startups.contains(s)) {
        return Err(format!("startups: found {}, expected {missing} among them", before.startups.join(", ")));
    }
    let known = |scenario: &str| before.entries.iter().any(|b| b.scenario == *scenario);
    if let Some(l) = now.left_out.iter().find(|l| known(&l.scenario)) {
        return Err(format!("{}: found results, which this run lacks: {}", l.scenario, l.why));
    }
    let mut all = Compared::default();
    for n in &now.entries {
        let same =
            |b: &&Entry| (&b.scenario, &b.criterion, &b.startup) == (&n.scenario, &n.criterion, &n.startup);
        let Some(b) = before.entries.iter().find(same) else {
            return Err(format!(
                "{}: found no results of {} for {:?}, expected those of an earlier run of the same scenarios",
                n.scenario, n.startup, n.criterion
            ));
        };
        let runs = n.values.len().min(b.values.len());
        if runs < FEWEST_PAIRS {
            return Err(format!(
                "{}: found {runs} runs of {} that both have, expected {FEWEST_PAIRS} or more",
                n.scenario, n.startup
            ));
        }
        all.both += 1;
        if n.values.len() != b.values.len() {
            let (others, fewest) = all.unequal.unwrap_or((0, runs));
            all.unequal = Some((others + 1, fewest.min(runs)));
        }
        let gone = n.values.iter().zip(&b.values).filter(|(n, b)| n.is_none() && b.is_some()).count();
        let of = |e: &Entry| {
            let criterion = Criterion::parse(&e.criterion);
            criterion.and_then(|c| Some((verdict_over(e, &c, runs)?, c.at_least))).ok_or_else(|| {
                format!(
                    "{}: found {} runs in one report and {} in the other, and no limits to judge those that both have by: \
                     run the baseline again",
                    n.scenario,
                    n.values.len(),
                    b.values.len()
                )
            })
        };
        let ((verdict, at_least), (before, _)) = (of(n)?, of(b)?);
        let fell = badness(verdict) > badness(before);
        let by = difference(n, b, at_least);
        let size = b.value.unwrap_or_default().abs() * LEAST;
        if fell || gone > 0 || by.is_some_and(|[low, _]| low > size.max(1e-9)) {
            let by = by.filter(|by| *by != [0.0, 0.0]);
            all.worse.push(Worse { now: n.clone(), verdict, before, by, lost: gone, runs });
        }
    }
    if all.both == 0 {
        return Err("found nothing that this run has too".to_string());
    }
    Ok(all)
}

/// The series of the kernel that a report ran on, if it and the other one name kernels; else nothing.
fn kernel(stack: &str, other: &str) -> String {
    let named = |s: &str| s.starts_with("Linux ");
    if named(stack) && named(other) { series(stack) } else { String::new() }
}

/// A name in which the release of a kernel is cut to its series: `Linux 6.18.44-cloud` becomes `Linux 6.18`.
fn series(name: &str) -> String {
    let Some((before, release)) = name.split_once("Linux ") else { return name.to_string() };
    let (release, after) =
        release.split_once([' ', ',', ')']).map_or((release, ""), |(r, _)| (r, &release[r.len()..]));
    let numbers: Vec<&str> = release.splitn(3, '.').take(2).collect();
    let minor = |n: &str| n.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().to_string();
    match numbers[..] {
        [major, n] => format!("{before}Linux {major}.{}{after}", minor(n)),
        _ => name.to_string(),
    }
}

/// The interval of the differences, over the runs in which both have a value; `None` if those are too few.
fn difference(now: &Entry, before: &Entry, at_least: bool) -> Option<[f64; 2]> {
    let pairs = now.values.iter().zip(&before.values).filter_map(|(n, b)| Some(((*n)?, (*b)?)));
    let differences: Vec<f64> = pairs.map(|(n, b)| if at_least { b - n } else { n - b }).collect();
    let m = stats::median(&differences).filter(|_| differences.len() >= FEWEST_PAIRS)?;
    Some([m.low, m.high])
}

#[cfg(test)]
mod tests {
    use super::series;

    #[test]
    fn releases_of_a_series_are_one_kernel() {
        assert_eq!(series("emulated path, Linux 6.18.44-fc-v782"), "emulated path, Linux 6.18");
        assert_eq!(series("Linux 6.18.0, virtual"), "Linux 6.18, virtual");
        assert_eq!(series("Linux 7.0-rc3"), "Linux 7.0");
        assert_ne!(series("Linux 6.12.1"), series("Linux 6.18.1"));
        assert_eq!(series("quinn 0.11.14"), "quinn 0.11.14");
    }
}
