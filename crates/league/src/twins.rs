//! The same cases on two engines: two kernels before and after a patch, or the simulator beside a kernel.
//!
//! A case has one flow, and both engines meet the same path with the same random draws. What differs between the two runs of a
//! case is therefore what differs between the engines.

use crate::population::{Case, Load, Population};
use serde::{Deserialize, Serialize};
use slowstart_sim::engine::Sampling;
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::engines::{Engine, EngineError, Part, Watched};
use slowstart_study::measures::{self, Better};
use slowstart_study::record::{Row, Sample};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::stats::{self, Median};
use std::collections::BTreeMap;

/// What is run in every case.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The congestion control, by its name in Linux: `cubic` is the simulator's `hystart`, `reno` its `standard`.
    pub control: String,
    /// Bytes of the transfer, as written.
    pub size: String,
    /// Settings of the stack of an engine that has any.
    pub set: BTreeMap<String, String>,
}

/// The settings with which the simulator's stack is that of a kernel, as an engine names it: Linux 6.18's grows the receive
/// window by another rule than earlier versions.
pub fn settings(stack: &str) -> BTreeMap<String, String> {
    let version = stack.strip_prefix("Linux ").and_then(|s| s.split([' ', '-']).next());
    let mut numbers = version.into_iter().flat_map(|v| v.split('.')).map(str::parse);
    let earlier = matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < (6, 16));
    earlier.then(|| ("right_size".to_string(), "6.12".to_string())).into_iter().collect()
}

/// The simulator's startup and avoidance for a control of Linux.
fn model(control: &str) -> (&str, &str) {
    match control {
        "cubic" => ("hystart", "cubic"),
        "reno" => ("standard", "reno"),
        other => (other, "cubic"),
    }
}

/// The cases of a population that have one flow and need no setting of the stack but ECN.
pub fn cases(population: &Population, seed: u64, count: u32) -> Vec<Case> {
    let plain = |c: &Case| c.load == Load::Alone && c.set.keys().all(|key| key == "ecn");
    population.cases(seed, count).into_iter().filter(plain).collect()
}

/// The study of a case on an engine.
///
/// # Errors
/// If the engine cannot run it.
pub fn study(engine: &dyn Engine, terms: &Terms, case: &Case) -> Result<Study, EngineError> {
    let has = engine.startups("cubic").contains(&terms.control);
    let (startup, avoidance) = if has { (terms.control.as_str(), "cubic") } else { model(&terms.control) };
    let profile = engine.lacks(Part::Profile).is_none().then(|| Profile::LINUX_6_18.name.to_string());
    let mut set = case.set.clone();
    if engine.lacks(Part::Knobs).is_none() {
        set.extend(terms.set.clone());
    }
    let text = StudyText {
        path: case.path.clone(),
        startups: vec![startup.to_string()],
        avoidance: Some(avoidance.to_string()),
        profile,
        set,
        size: Some(terms.size.clone()),
        runs: Some(1),
        seed: Some(case.seed),
        ..StudyText::default()
    };
    engine.study(&text, None)
}

/// Where the windows of two runs part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parting {
    /// Which acknowledgement of data it is, from 1.
    pub ack: usize,
    /// The states of both after it: time in seconds, window and threshold in segments.
    pub states: [(f64, f64, Option<f64>); 2],
}

/// The two runs of a case.
#[derive(Clone, Debug)]
pub struct Twin {
    /// The case.
    pub case: Case,
    /// The rows, of the first engine and of the second.
    pub rows: [Row; 2],
    /// The first acknowledgement after which they differ; `None` if none does.
    pub parting: Option<Parting>,
}

/// Runs a case on both engines.
///
/// # Errors
/// If an engine cannot run it, or a run fails.
pub fn twin(
    engines: [&dyn Engine; 2],
    terms: &Terms,
    case: &Case,
    stop: &dyn Fn() -> bool,
) -> Result<Twin, EngineError> {
    let run = |engine: &dyn Engine| -> Result<Outcome, EngineError> {
        let study = study(engine, terms, case)?;
        let watched = Watched { stop, ..Watched::samples(Sampling::EachAck) };
        engine.run(&study, Job { contender: 0, run: 0 }, &watched)
    };
    let [a, b] = [run(engines[0])?, run(engines[1])?];
    let parting = parting([&a.trace.samples, &b.trace.samples], [segment(&a.row), segment(&b.row)]);
    Ok(Twin { case: case.clone(), rows: [a.row, b.row], parting })
}

/// Payload of a segment: an initial window has ten. One byte where that was not observed.
fn segment(row: &Row) -> f64 {
    row.iw_bytes.map_or(1.0, |bytes| (bytes as f64 / 10.0).max(1.0))
}

fn parting(samples: [&[Sample]; 2], segments: [f64; 2]) -> Option<Parting> {
    let state = |s: &Sample, segment: f64| {
        (s.time_s, s.cwnd_bytes as f64 / segment, s.ssthresh_bytes.map(|b| b as f64 / segment))
    };
    let differ =
        |(a, b): (&Sample, &Sample)| (a.cwnd_bytes, a.ssthresh_bytes) != (b.cwnd_bytes, b.ssthresh_bytes);
    // Before the first data arrived, engines differ in what they count as an acknowledgement.
    let samples = samples.map(|s| &s[s.iter().position(|s| s.delivered_bytes > 0).unwrap_or(s.len())..]);
    let i = samples[0].iter().zip(samples[1]).position(differ)?;
    Some(Parting {
        ack: i + 1,
        states: [state(&samples[0][i], segments[0]), state(&samples[1][i], segments[1])],
    })
}

/// A figure of a run that is compared.
#[derive(Copy, Clone, Debug)]
pub struct Measure {
    /// What it is, with its unit.
    pub name: &'static str,
    /// Differences up to this count as none.
    pub slack: f64,
    /// What the catalogue has of it, or what it follows from.
    pub source: Source,
}

/// Where a figure comes from.
#[derive(Copy, Clone, Debug)]
pub enum Source {
    /// The catalogue of measures.
    Catalogue(measures::Measure),
    /// The row alone: neither more nor less of it is better.
    Row(fn(&Row) -> Option<f64>),
}

impl Measure {
    const fn new(name: &'static str, slack: f64, source: Source) -> Self {
        Self { name, slack, source }
    }

    /// Its value; `None` where a run has none.
    pub fn of(&self, row: &Row) -> Option<f64> {
        match self.source {
            Source::Catalogue(m) => m.of(row),
            Source::Row(of) => of(row),
        }
    }

    /// True if less is better; `None` if neither is.
    pub fn less_is_better(&self) -> Option<bool> {
        let Source::Catalogue(m) = self.source else { return None };
        match m.entry().better {
            Better::Less => Some(true),
            Better::More => Some(false),
            Better::Neither => None,
        }
    }
}

/// The time of the whole transfer.
pub const ALL_RECEIVED: Measure =
    Measure::new("all received (s)", 0.001, Source::Catalogue(measures::Measure::Completion));

/// The figures that are compared, in the order of tables. A packet and a millisecond are no difference.
pub const MEASURES: [Measure; 9] = [
    Measure::new("100 kB received (s)", 0.001, Source::Catalogue(measures::Measure::Time100kB)),
    Measure::new("1 MB received (s)", 0.001, Source::Catalogue(measures::Measure::Time1MB)),
    ALL_RECEIVED,
    Measure::new("slow start ended (s)", 0.001, Source::Catalogue(measures::Measure::ExitTime)),
    Measure::new(
        "window then (packets)",
        1.0,
        Source::Row(|r| Some(r.exit.as_ref()?.detected_cwnd_bytes as f64 / (r.iw_bytes? as f64 / 10.0))),
    ),
    Measure::new("first loss known (s)", 0.001, Source::Row(|r| r.first_loss_time_s)),
    Measure::new("packets lost in slow start", 1.0, Source::Catalogue(measures::Measure::StartupLost)),
    Measure::new("packets lost", 1.0, Source::Catalogue(measures::Measure::Lost)),
    Measure::new("longest wait in the queue (s)", 0.001, Source::Catalogue(measures::Measure::QueueDelay)),
];

/// A figure over all twins.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The figure.
    pub measure: Measure,
    /// The medians of both engines, of the runs that have it in both.
    pub medians: [f64; 2],
    /// The median of the differences, second less first, with its 95 % interval.
    pub difference: Median,
    /// Of how many twins the second has more, less, and the same within the slack.
    pub more: usize,
    /// See [`Self::more`].
    pub less: usize,
    /// See [`Self::more`].
    pub same: usize,
    /// In how many twins one run has the figure and the other has not.
    pub one_has: usize,
}

/// Compares a figure; `None` if no twin has it in both runs.
pub fn compared(twins: &[Twin], measure: Measure) -> Option<Compared> {
    let values: Vec<[Option<f64>; 2]> =
        twins.iter().map(|t| [0, 1].map(|i| measure.of(&t.rows[i]))).collect();
    let both: Vec<(f64, f64)> = values.iter().filter_map(|[a, b]| a.zip(*b)).collect();
    let one_has = values.iter().filter(|[a, b]| a.is_some() != b.is_some()).count();
    let differences: Vec<f64> = both.iter().map(|(a, b)| b - a).collect();
    let count = |holds: &dyn Fn(f64) -> bool| differences.iter().filter(|d| holds(**d)).count();
    // Of two decimal times a millisecond apart the difference may be a little more.
    let slack = measure.slack * (1.0 + 1e-9);
    let (more, less) = (count(&|d| d > slack), count(&|d| d < -slack));
    let mid = |f: &dyn Fn(&(f64, f64)) -> f64| {
        stats::median(&both.iter().map(f).collect::<Vec<_>>()).map(|m| m.mid)
    };
    Some(Compared {
        measure,
        medians: [mid(&|p| p.0)?, mid(&|p| p.1)?],
        difference: stats::median(&differences)?,
        more,
        less,
        same: both.len() - more - less,
        one_has,
    })
}

/// Why slow start ended, in the words of rows; `none` if it did not.
pub fn reason(row: &Row) -> &str {
    row.exit.as_ref().map_or("none", |e| e.reason.as_str())
}

/// How many twins ended slow start for each pair of reasons.
pub fn reasons(twins: &[Twin]) -> BTreeMap<(String, String), usize> {
    let mut all = BTreeMap::new();
    for t in twins {
        *all.entry((reason(&t.rows[0]).to_string(), reason(&t.rows[1]).to_string())).or_default() += 1;
    }
    all
}

/// True if all figures are the same within their slack, and slow start ended for the same reason.
pub fn agree(t: &Twin) -> bool {
    let same = |m: &Measure| match (m.of(&t.rows[0]), m.of(&t.rows[1])) {
        (Some(a), Some(b)) => (a - b).abs() <= m.slack * (1.0 + 1e-9),
        (a, b) => a.is_none() && b.is_none(),
    };
    reason(&t.rows[0]) == reason(&t.rows[1]) && MEASURES.iter().all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population;
    use slowstart_sim::tcp::profile::RightSize;
    use slowstart_study::simulator::Simulator;

    fn some_cases() -> Vec<Case> {
        let all = population::all();
        let random = all.iter().find(|p| p.name == "shallow").expect("a population");
        cases(random, 7, 4)
    }

    fn terms(control: &str) -> Terms {
        Terms { control: control.into(), size: "1MB".into(), set: BTreeMap::new() }
    }

    #[test]
    fn the_stack_is_that_of_the_kernel() {
        let of = |stack: &str| settings(stack).get("right_size").cloned();
        for earlier in ["Linux 6.12.117 at virtual time, reads at once", "Linux 5.10.0-rc1 at virtual time"] {
            assert_eq!(of(earlier).as_deref(), Some("6.12"), "{earlier}");
        }
        for other in ["Linux 6.18.44 at virtual time", "Linux 7.0-rc1 at virtual time", "linux-6.18", "Linux"]
        {
            assert_eq!(of(other), None, "{other}");
        }
        let terms = Terms { set: settings("Linux 6.1.192"), ..terms("cubic") };
        let study = study(&Simulator, &terms, &some_cases()[0]).expect("a study");
        assert_eq!(study.profile.right_size, RightSize::V612);
    }

    #[test]
    fn an_engine_does_not_differ_from_itself() {
        for case in some_cases() {
            let t = twin([&Simulator, &Simulator], &terms("cubic"), &case, &|| false).expect("it runs");
            assert!(agree(&t) && t.parting.is_none() && t.rows[0] == t.rows[1]);
        }
    }

    #[test]
    fn windows_part_at_the_first_ack_that_tells_two_runs_apart() {
        let case = &some_cases()[0];
        let run = |control: &str| {
            let study = study(&Simulator, &terms(control), case).expect("a study");
            let job = Job { contender: 0, run: 0 };
            Simulator.run(&study, job, &Watched::samples(Sampling::EachAck)).expect("it runs")
        };
        let [a, b] = [run("reno"), run("cubic")];
        let p = parting([&a.trace.samples, &b.trace.samples], [1448.0; 2]).expect("they part");
        let at = |o: &Outcome, i: usize| (o.trace.samples[i].cwnd_bytes, o.trace.samples[i].ssthresh_bytes);
        let first = a.trace.samples.iter().position(|s| s.delivered_bytes > 0).expect("data arrives");
        let parted = first + p.ack - 1;
        assert!((0..parted).all(|i| at(&a, i) == at(&b, i)));
        assert_ne!(at(&a, parted), at(&b, parted));
        assert!((p.states[0].1 - at(&a, parted).0 as f64 / 1448.0).abs() < 1e-9);
    }

    #[test]
    fn differences_count_beyond_the_slack() {
        let case = &some_cases()[0];
        let t = twin([&Simulator, &Simulator], &terms("cubic"), case, &|| false).expect("it runs");
        let mut later = t.clone();
        later.rows[1].completion_s = later.rows[1].completion_s.map(|s| s + 0.002);
        let mut never = t.clone();
        never.rows[1].completion_s = None;
        let all = MEASURES[2];
        let c = compared(&[t.clone(), later.clone(), never.clone()], all).expect("compared");
        assert_eq!((c.more, c.less, c.same, c.one_has), (1, 0, 1, 1));
        assert!(agree(&t) && !agree(&later) && !agree(&never));
    }
}
