//! Every line of the registry on every built-in path: it finishes, it is not another line under a second
//! name, and what is its own is seen at work.
//!
//! Transfers are short, so that all of it takes seconds: long enough to leave a startup on the paths named
//! below.

use rayon::prelude::*;
use slowstart::registry;
use slowstart::step::Exit;
use slowstart::units::Span;
use slowstart_sim::engine::Sampling;
use slowstart_sim::path::PathSpec;
use slowstart_study::record::{Cost, Row};
use slowstart_study::run::Outcome;
use slowstart_study::scenario::{Study, StudyText};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Startups that no rule of their own ends: what shows that they do what they are for.
type Check = fn(&Evidence) -> bool;
const MECHANISMS: &[(&str, &str, Check)] = &[
    ("standard", "the window passes four BDP before it leaves by loss", |e| {
        e.rows().any(|r| {
            r.exit.as_ref().is_some_and(|x| x.reason == "loss" && x.detected_cwnd_bytes > 4 * r.bdp_bytes)
        })
    }),
    (
        "abc",
        "two segments an ACK, however much that covers: nothing overflows where a modem filters ACKs",
        |e| e.on("cable").all(|(r, _)| r.lost_packets == Some(0) && r.exit.is_none()),
    ),
    ("limited", "nothing is lost where standard overflows the queue", |e| {
        e.rows().any(|r| r.path == "transatlantic" && r.lost_packets == Some(0) && r.exit.is_none())
    }),
    ("adaptive", "the threshold rises from the initial window to the path's BDP and no further", |e| {
        ["datacenter", "interface"].iter().flat_map(|path| e.on(path)).all(|(r, s)| {
            let highest = s.ssthresh.unwrap_or(0) as f64 / r.bdp_bytes as f64;
            (0.9..1.2).contains(&highest)
        })
    }),
    ("capstart", "a gigabit path is at its interface's rate, a slower one is not", |e| {
        e.on("geo-144").all(|(_, s)| s.phases.contains("limited"))
            && e.on("datacenter").all(|(_, s)| !s.phases.contains("limited"))
    }),
    ("delay", "the waves of the satellite path limit its growth", |e| {
        e.on("geo-144").all(|(_, s)| s.phases.contains("limited"))
    }),
    ("hybla", "rho is 24 at 600 ms and 1 below 25 ms", |e| {
        e.on("geo-144").all(|(_, s)| s.gauges["rho"] >= 20.0)
            && e.on("fiber").all(|(_, s)| s.gauges["rho"] <= 1.0)
    }),
    ("careful-resume", "it jumps where a path is remembered", |e| {
        e.any(|s| s.phases.contains("unvalidated"))
    }),
    ("halfback", "it sends again from behind", |e| e.any(|s| s.phases.contains("reverse"))),
    ("jump-start", "it paces what is queued", |e| e.any(|s| s.phases.contains("jump"))),
    ("quick-start", "a path that grants a rate is begun with it", |e| {
        e.on("granted").all(|(_, s)| s.phases.contains("granted"))
    }),
    ("restricted", "its controller sees the interface's queue", |e| {
        e.on("interface").all(|(_, s)| s.gauges.contains_key("output"))
    }),
    ("rapid-start", "it triples, and comes down by a recovery of its own", |e| {
        e.on("fiber").all(|(_, s)| s.phases.contains("rapid") && s.phases.contains("down"))
    }),
    ("rapid-start-00", "the same", |e| {
        e.on("fiber").all(|(_, s)| s.phases.contains("rapid") && s.phases.contains("down"))
    }),
];

/// Startups with a rule of their own to leave by, and a part of them that must be seen too.
const PARTS: &[(&str, &str, Check)] = &[
    ("hystart-picoquic", "the round trip after its exit", |e| e.any(|s| s.phases.contains("recovery"))),
    ("c4", "rounds without growth", |e| e.any(|s| s.gauges["flat_rounds"] >= 2.0)),
    ("hystart++", "conservative slow start", |e| e.any(|s| s.phases.contains("css"))),
    ("search", "the drain", |e| e.any(|s| s.phases.contains("drain"))),
    ("smooth", "the steps", |e| e.any(|s| s.phases.contains("smooth"))),
    ("suss", "rounds that quadruple", |e| e.any(|s| s.phases.contains("red") && s.gauges["jumps"] >= 2.0)),
    ("tsl", "a lost handshake packet lowers the threshold", |e| {
        e.on("lost-synack").all(|(_, s)| s.ssthresh.is_some())
    }),
    ("vegas", "round trips without growth", |e| e.any(|s| s.phases.contains("hold"))),
];

/// What one run of a startup showed.
#[derive(Default)]
struct Observed {
    phases: BTreeSet<Cow<'static, str>>,
    /// The highest of each gauge, and of the threshold.
    gauges: BTreeMap<Cow<'static, str>, f64>,
    ssthresh: Option<u64>,
}

impl Observed {
    fn of(o: &Outcome) -> Self {
        let mut sight = Self::default();
        for s in &o.trace.samples {
            sight.phases.extend(s.phase.clone());
            sight.ssthresh = sight.ssthresh.max(s.ssthresh_bytes);
            for (k, v) in &s.gauges {
                let most = sight.gauges.entry(k.clone()).or_insert(f64::MIN);
                *most = most.max(*v);
            }
        }
        sight
    }
}

/// All runs of a startup, by path and run.
struct Evidence(Vec<(Row, Observed)>);

impl Evidence {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().map(|(r, _)| r)
    }
    fn on<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a Row, &'a Observed)> {
        self.0.iter().filter(move |(r, _)| r.path == path).map(|(r, s)| (r, s))
    }
    fn any(&self, seen: impl Fn(&Observed) -> bool) -> bool {
        self.0.iter().any(|(_, s)| seen(s))
    }
    /// The rows without what names the startup.
    fn anonymous(&self) -> Vec<Row> {
        self.rows()
            .map(|r| Row {
                startup: String::new(),
                params: BTreeMap::new(),
                cost: Cost::default(),
                ..r.clone()
            })
            .collect()
    }
}

/// A path with an outage of two and a half round trips at the end of slow start: versions of SEARCH differ in
/// what they do then.
const OUTAGE: &str = "schedule=0s:200Mbit,300ms:0bit,400ms:200Mbit rtt=40ms queue=8bdp ack_jitter=0";

/// Runs of each startup on each built-in path.
fn evidence(startups: &[&str], runs: u32) -> BTreeMap<String, Evidence> {
    let paths: Vec<&str> = PathSpec::builtins().iter().map(|path| path.name).collect();
    evidence_on(&paths, startups, runs)
}

fn evidence_on(paths: &[&str], startups: &[&str], runs: u32) -> BTreeMap<String, Evidence> {
    let studies: Vec<Study> = paths
        .iter()
        .map(|path| {
            let size = match *path {
                "geo-144" | "transatlantic" => "50MB",
                _ => "8MB",
            };
            let text = StudyText {
                path: (*path).into(),
                startups: startups.iter().map(|s| (*s).into()).collect(),
                size: Some(size.into()),
                runs: Some(runs),
                ..StudyText::default()
            };
            Study::check(&text, None).unwrap_or_else(|e| panic!("{e}"))
        })
        .collect();
    let jobs: Vec<_> = studies.iter().flat_map(|s| s.jobs().into_iter().map(move |j| (s, j))).collect();
    let seen: Vec<(Row, Observed)> = jobs
        .into_par_iter()
        .map(|(study, job)| {
            let outcome = study.run(job, Sampling::Every(Span::millis(1)), true);
            let sight = Observed::of(&outcome);
            (outcome.row, sight)
        })
        .collect();
    let mut all: BTreeMap<String, Evidence> = BTreeMap::new();
    for (row, sight) in seen {
        all.entry(row.startup.clone()).or_insert(Evidence(Vec::new())).0.push((row, sight));
    }
    all
}

/// The whole registry under today's Linux, once for all tests.
fn all() -> &'static BTreeMap<String, Evidence> {
    static ALL: OnceLock<BTreeMap<String, Evidence>> = OnceLock::new();
    ALL.get_or_init(|| evidence(&registry::all().map(|e| e.name).collect::<Vec<_>>(), 2))
}

#[test]
fn every_line_finishes_on_every_path() {
    let paths = PathSpec::builtins().len();
    assert_eq!(all().len(), registry::all().count());
    for (name, e) in all() {
        assert_eq!(e.0.len(), 2 * paths, "{name}");
        for r in e.rows() {
            assert!(r.completion_s.is_some(), "{name} does not finish on {}, run {}", r.path, r.run);
        }
    }
}

#[test]
fn no_two_lines_are_the_same() {
    let rows: Vec<(&String, Vec<Row>)> = all().iter().map(|(name, e)| (name, e.anonymous())).collect();
    let mut same = Vec::new();
    for (i, (a, one)) in rows.iter().enumerate() {
        for (b, two) in &rows[i + 1..] {
            if one == two {
                same.push((*a, *b));
            }
        }
    }
    // Versions of SEARCH differ in how they store their bins, which moves an exit to another ACK in few runs,
    // and in when they reset: the same comparison with as many runs as `compare` makes, then on a path with
    // an outage.
    for (a, b) in same {
        let differ =
            |evidence: BTreeMap<String, Evidence>| evidence[a].anonymous() != evidence[b].anonymous();
        let differs = differ(evidence(&[a, b], 10)) || differ(evidence_on(&[OUTAGE], &[a, b], 1));
        assert!(differs, "{a} and {b} do the same on every built-in path and through an outage");
    }
}

/// By a rule of its own on one path at least; or, if it has none, by what `MECHANISMS` says of it.
#[test]
fn what_is_its_own_is_seen_at_work() {
    for (name, e) in all() {
        let find =
            |list: &[(&str, &'static str, Check)]| list.iter().find(|m| m.0 == name).map(|m| (m.1, m.2));
        let by_congestion = |reason: &str| Exit::named(reason).expect("a reason").by_congestion();
        let ruled = |r: &Row| r.exit.as_ref().is_some_and(|x| !by_congestion(&x.reason));
        let by_rule: BTreeSet<&str> = e.rows().filter(|r| ruled(r)).map(|r| r.path.as_str()).collect();
        println!("{name:12} leaves by its own rule on {by_rule:?}");
        let has_rule = registry::named(name).expect("in the registry").algorithm.has_exit_rule();
        assert_eq!(!by_rule.is_empty(), has_rule, "{name}: Startup::has_exit_rule is {has_rule}");
        if let Some((what, seen)) = find(MECHANISMS) {
            assert!(seen(e), "{name}: {what}: not seen");
        }
        if let Some((what, seen)) = find(PARTS) {
            assert!(seen(e), "{name}: {what}: not seen");
        }
    }
}
