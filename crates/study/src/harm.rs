//! What a startup does to another flow: what a CUBIC flow that was there before gets while the newcomer
//! transfers, of what it gets in the same time without the newcomer.
//!
//! Bytes do not saturate, as the worst second does on a path where the CUBIC flow has bad seconds of its own.
//! The flow is simulated once a run up to the moment at which the newcomer begins; from there it goes on with
//! each startup, and alone.

use crate::decision::{Decision, Terms};
use crate::measured::SIMULATOR;
use crate::measures::Measure;
use crate::record::Row;
use crate::run::in_order;
use crate::scenario::{Contender, Study};
use crate::summary::{label, label_of_contender};
use slowstart::registry::Algorithm;
use slowstart::units::{Instant, Span};
use slowstart_sim::app;
use slowstart_sim::engine::{Direction, Engine, FlowSpec};
use std::collections::BTreeMap;

/// Runs that are measured at most: enough for an interval, few enough to wait for.
pub const RUNS: u32 = 10;
/// The fewest runs that decide. If they agree, no more are made.
const LEAST: usize = 6;
/// Runs agree if they lie within this many points: a third of what counts as a difference.
const NARROW: f64 = 1.0;
/// What the newcomer transfers at most.
const NEWCOMER: u64 = 10_000_000;
/// Least round trips for which the CUBIC flow is there before: it has left slow start, filled the path and
/// recovered.
const BEFORE_RTTS: u64 = 90;
/// ... at least and at most.
const BEFORE: (Span, Span) = (Span::secs(10), Span::secs(60));
/// Most packets of the path that are worth waiting for, over all runs: some seconds of work.
const AFFORDABLE: f64 = 12e6;

/// Why a study that this engine runs has no such measurement.
pub fn unable(engine: &str, study: &Study) -> Option<&'static str> {
    if engine != SIMULATOR {
        Some("only the simulator measures it")
    } else if study.path.proxy().is_some() {
        Some("the proxy of this path carries one connection")
    } else if !study.against.is_empty() {
        Some("--against has other flows already")
    } else if !study.is_one_bulk() {
        Some("it is measured with a bulk transfer over one connection")
    } else {
        None
    }
}

/// The time for which both are observed: the median time that the baseline of `rows` needs alone, for 10 MB if it
/// transfers as much. `None` if in most runs it never completes.
pub fn alone_s(rows: &[Row], terms: &Terms<'_>) -> Option<f64> {
    let decision = Decision::new(rows, terms);
    let baseline = &decision.baseline()?.summary;
    let alone =
        baseline.of_all_runs(Measure::Time10MB).or_else(|| baseline.of_all_runs(Measure::Completion))?;
    Some(alone.mid)
}

/// How long the CUBIC flow is there before the newcomer.
fn before(study: &Study) -> Span {
    let rtts = study.path.facts().base_rtt * BEFORE_RTTS;
    rtts.clamp(BEFORE.0, BEFORE.1)
}

/// True if the measurement takes no more than some seconds. `alone_s` is the time that the baseline needs
/// alone.
pub fn is_affordable(study: &Study, alone_s: f64) -> bool {
    let contenders = study.contenders.len() as f64;
    let seconds = before(study).as_secs_f64() + (contenders + 1.0) * alone_s;
    let packets = study.path.facts().rate.0 as f64 / 8.0 / 1500.0 * seconds;
    packets * f64::from(study.runs.min(RUNS)) <= AFFORDABLE
}

/// What the CUBIC flow got beside each startup, in percent, by the startup's label and the run.
pub type Got = BTreeMap<(String, u32), f64>;

/// Measures every startup of a study, in the first [`RUNS`] runs, or six if these agree. `alone_s` is the median time that the baseline needs for
/// its transfer, of at most 10 MB, alone; so long both are observed. A longer time would show no more than that every
/// newcomer takes its 10 MB; in a shorter one none has begun. Nothing where [`unable`] says so.
pub fn measure(study: &Study, alone_s: f64) -> Got {
    let runs: Vec<u32> = (0..study.runs.min(RUNS)).collect();
    let window = Span((alone_s * 1e9) as u64);
    let mut all = Got::new();
    let (first, more) = runs.split_at(runs.len().min(LEAST));
    for part in [first, more] {
        let each = |of_run: Vec<((String, u32), f64)>| -> Result<(), std::convert::Infallible> {
            all.extend(of_run);
            Ok(())
        };
        let Ok(()) = in_order(part, |run| one(study, run, window), each);
        if is_narrow(&all) {
            break;
        }
    }
    all
}

/// True if beside each startup the flow got the same in every run, within [`NARROW`] points.
fn is_narrow(all: &Got) -> bool {
    let mut of_startup = BTreeMap::<&str, (f64, f64)>::new();
    for ((label, _), got) in all {
        let (least, most) = of_startup.entry(label).or_insert((*got, *got));
        (*least, *most) = (least.min(*got), most.max(*got));
    }
    of_startup.values().all(|(least, most)| most - least <= NARROW)
}

/// Measures it, and adds it to the rows of the study.
pub fn add(study: &Study, alone_s: f64, rows: &mut [Row]) {
    let all = measure(study, alone_s);
    for row in rows {
        row.got_percent = all.get(&(label(row), row.run)).copied();
    }
}

/// A run: what the CUBIC flow got beside each startup, by its label and the run.
fn one(study: &Study, run: u32, window: Span) -> Vec<((String, u32), f64)> {
    let seed = study.run_seed(run);
    let start = Instant::ZERO + before(study);
    let Ok(cubic) = Contender::read("against", "hystart", "cubic") else { return Vec::new() };
    let flow = |c: &Contender, start, size| FlowSpec {
        start,
        direction: Direction::Download,
        recorded: false,
        app: app::Kind::Bulk { size },
        profile: study.profile_of(c),
        extra_delay: Span::ZERO,
        links: slowstart_sim::path::Links::ALL,
        remembered: None,
        impact_from: None,
        avoidance: c.avoidance.clone(),
        startup: c.startup.clone(),
    };
    let mut engine = Engine::with_slots(study.path.build(seed), 2, seed);
    let Some(witness) = engine.add_flow(flow(&cubic, Instant::ZERO, None), seed) else { return Vec::new() };
    engine.run(start);
    let got = |newcomer: Option<FlowSpec>| {
        let mut engine = engine.clone();
        let had = engine.flow(witness).delivered();
        if let Some(spec) = newcomer {
            engine.add_flow(spec, seed);
        }
        engine.run(start + window);
        engine.flow(witness).delivered() - had
    };
    let alone = got(None);
    let size = study.size.unwrap_or(NEWCOMER).min(NEWCOMER);
    let beside = |c: &Contender| {
        let mut newcomer = flow(c, start, Some(size));
        newcomer.remembered = study.memory(&newcomer, seed);
        let percent = 100.0 * got(Some(newcomer)) as f64 / alone.max(1) as f64;
        ((label_of_contender(c), run), percent)
    };
    study.contenders.iter().filter(|c| !is_foreign(&c.startup)).map(beside).collect()
}

/// True for a startup that a host defines, which may not be run by several threads.
fn is_foreign(startup: &Algorithm) -> bool {
    !matches!(startup, Algorithm::Startup(_)) && !startup.is_standalone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs that agree within a point decide; one that does not asks for more.
    #[test]
    fn runs_that_agree_are_enough() {
        let mut all: Got = (0..6).map(|run| (("a".to_owned(), run), 99.0 + f64::from(run) / 5.0)).collect();
        assert!(is_narrow(&all));
        all.insert(("b".to_owned(), 0), 70.0);
        assert!(is_narrow(&all), "startups may differ");
        all.insert(("b".to_owned(), 1), 71.5);
        assert!(!is_narrow(&all));
    }
}
