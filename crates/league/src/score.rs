//! The measures of a startup over many cases, and their intervals.

use crate::game::GameRow;
use slowstart_study::measures::{LOSS_MARGIN, Margin, Unit};
use slowstart_study::record::Class;
use slowstart_study::stats::{self, Median};

/// A table of scores.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Table {
    /// Times.
    Times,
    /// Where it left, behind the shares of exits.
    Exits,
    /// Losses, delay, harm and fairness.
    Costs,
}

/// What a column has of the values of all cases.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean with its interval.
    Mean,
    /// The median.
    Median,
    /// The 95th percentile.
    P95,
}

/// What the list says of a measure.
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// The name; one that the catalogue of runs has too ([`slowstart_study::measures`]) is the same quantity.
    pub name: &'static str,
    /// The heading of differences in it.
    pub heading: &'static str,
    /// The unit of values of rows; scores have them times its factor.
    pub unit: Unit,
    /// From which difference to an earlier league on it counts.
    pub margin: Margin,
    /// The table that has its columns.
    pub table: Table,
    /// The headings of these, and what they show.
    pub columns: &'static [(&'static str, Statistic)],
    /// The value of a case, if it has one.
    pub of: fn(&GameRow) -> Option<f64>,
}

/// A measure for each entry.
macro_rules! measures {
    ($($(#[doc = $about:literal])+ $measure:ident { $($field:ident: $value:expr),+ $(,)? })+) => {
        /// A measure of a case.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum Measure {
            $($(#[doc = $about])+ $measure,)+
        }

        impl Measure {
            /// All measures, in the order of tables.
            pub const ALL: &[Self] = &[$(Self::$measure),+];
        }

        const ENTRIES: &[Entry] = &[$(Entry { $($field: $value),+ }),+];
    };
}

measures! {
    /// Time to 100 kB over the oracle's.
    Regret100kB {
        name: "regret_100kb", heading: "100 kB", unit: Unit::Ratio, margin: Margin::Relative, table: Table::Times,
        columns: &[("100 kB", Statistic::Mean)], of: |r| Some(r.regret(100_000)?.0),
    }
    /// Time to 1 MB over the oracle's.
    Regret1MB {
        name: "regret_1mb", heading: "1 MB", unit: Unit::Ratio, margin: Margin::Relative, table: Table::Times,
        columns: &[("1 MB", Statistic::Mean), ("p95", Statistic::P95)], of: |r| Some(r.regret(1_000_000)?.0),
    }
    /// Time to 10 MB over the oracle's.
    Regret10MB {
        name: "regret_10mb", heading: "10 MB", unit: Unit::Ratio, margin: Margin::Relative, table: Table::Times,
        columns: &[("10 MB", Statistic::Mean), ("p95", Statistic::P95)], of: |r| Some(r.regret(10_000_000)?.0),
    }
    /// The window left with.
    Left {
        name: "left_bdp", heading: "left with, BDP", unit: Unit::Bdp, margin: Margin::Unjudged, table: Table::Exits,
        columns: &[("left", Statistic::Median)], of: |r| r.left_bdp,
    }
    /// Packets lost of those sent before the startup ended.
    Lost {
        name: "startup_lost_packets", heading: "lost", unit: Unit::Packets, margin: Margin::Fixed(LOSS_MARGIN),
        table: Table::Costs, columns: &[("lost", Statistic::Mean), ("p95", Statistic::P95)],
        of: |r| r.startup_lost_packets.map(|n| n as f64),
    }
    /// The longest wait at the bottleneck in startup.
    Queue {
        name: "startup_queue_delay_s", heading: "queue, ms", unit: Unit::Delay, margin: Margin::Unjudged,
        table: Table::Costs, columns: &[("queue, ms", Statistic::Mean)], of: |r| r.startup_queue_delay_s,
    }
    /// Packets that flows that were there before lost.
    OthersLost {
        name: "others_lost_packets", heading: "others lost", unit: Unit::Packets, margin: Margin::Fixed(LOSS_MARGIN),
        table: Table::Costs, columns: &[("others lost", Statistic::Mean)],
        of: |r| Some(r.others.as_ref()?.lost_packets as f64),
    }
    /// The share by which their goodput fell: the lowest second against the mean before.
    OthersDip {
        name: "others_goodput_dip", heading: "others' dip, %", unit: Unit::Share, margin: Margin::Unjudged,
        table: Table::Costs, columns: &[("others' dip, %", Statistic::Mean)],
        of: |r| r.others.as_ref()?.goodput_dip,
    }
    /// The 99th percentile of their delay above its least.
    OthersDelay {
        name: "others_delay_p99_s", heading: "others' p99, ms", unit: Unit::Delay, margin: Margin::Unjudged,
        table: Table::Costs, columns: &[("others' p99, ms", Statistic::Mean)],
        of: |r| r.others.as_ref()?.delay_p99_s,
    }
    /// Jain's index of flows that started together.
    Fairness {
        name: "fairness", heading: "fairness", unit: Unit::Ratio, margin: Margin::Unjudged, table: Table::Costs,
        columns: &[("fairness", Statistic::Mean)], of: |r| r.fairness,
    }
}

impl Measure {
    /// What the list says of it.
    pub const fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// The value of a case, in the unit of scores, if it has one.
    pub fn of(self, row: &GameRow) -> Option<f64> {
        let e = self.entry();
        (e.of)(row).map(|v| v * e.unit.factor()).filter(|v| v.is_finite())
    }
}

/// A measure over cases.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Figure {
    /// The mean, with Student's 95 % interval.
    pub mean: Median,
    /// The median over the cases, in the unit of the score.
    pub median: f64,
    /// The 95th percentile over the cases, in the unit of the score.
    pub p95: f64,
}

/// Shares of cases, in per cent.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Exits {
    /// Before capacity, by a rule of the startup.
    pub early_by_rule: f64,
    /// Before capacity, by loss, mark, timeout or stall.
    pub early_by_loss: f64,
    /// By its own rule, with the link full.
    pub full: f64,
    /// By loss or after one, past capacity.
    pub late: f64,
    /// The startup did not end.
    pub none: f64,
    /// With the link full, of the cases whose queue holds half a bandwidth-delay product or more; `None` if
    /// there are none.
    pub full_of_deep: Option<f64>,
}

/// The score of a startup over cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The startup as written, with its parameters.
    pub startup: String,
    /// True if it uses what an earlier connection learned.
    pub memory: bool,
    /// Number of cases that it is a mean or percentile of.
    pub cases: usize,
    /// Cases in which 10 MB were not delivered in the time given; their regret is a lower bound.
    pub unfinished: usize,
    /// Those of them in which it never would ([`GameRow::never`]).
    pub stalled: usize,
    /// True if its controller broke a rule in a case: the score has no figures.
    pub broken: bool,
    /// How often it left by each class.
    pub exits: Exits,
    figures: Vec<Option<Figure>>,
}

impl Score {
    /// The score of the rows of one startup; `None` if there are no rows.
    pub fn of(rows: &[&GameRow]) -> Option<Self> {
        let first = rows.first()?;
        let broken = rows.iter().any(|r| r.broken.is_some());
        let of = |m: Measure| figure(&rows.iter().filter_map(|r| m.of(r)).collect::<Vec<_>>());
        Some(Self {
            startup: first.startup.clone(),
            memory: first.memory,
            cases: rows.len(),
            unfinished: rows.iter().filter(|r| r.regret(10_000_000).is_some_and(|r| r.1)).count(),
            stalled: rows.iter().filter(|r| r.never(10_000_000)).count(),
            broken,
            exits: exits(rows),
            figures: Measure::ALL.iter().map(|m| of(*m).filter(|_| !broken)).collect(),
        })
    }

    /// A measure, if any case has it.
    pub fn figure(&self, m: Measure) -> Option<Figure> {
        self.figures[m as usize]
    }
}

pub(crate) fn figure(values: &[f64]) -> Option<Figure> {
    Some(Figure {
        mean: stats::mean(values)?,
        median: stats::quantile(values, 0.5)?,
        p95: stats::quantile(values, 0.95)?,
    })
}

fn exits(rows: &[&GameRow]) -> Exits {
    let share = |of: &[&GameRow], f: &dyn Fn(&GameRow) -> bool| {
        100.0 * of.iter().filter(|r| f(r)).count() as f64 / of.len() as f64
    };
    let deep: Vec<&GameRow> = rows.iter().copied().filter(|r| r.has_deep_queue()).collect();
    let full = |r: &GameRow| r.class == Class::LinkFull;
    Exits {
        early_by_rule: share(rows, &|r| r.class == Class::Early && r.by_rule),
        early_by_loss: share(rows, &|r| r.class == Class::Early && !r.by_rule),
        full: share(rows, &full),
        late: share(rows, &|r| r.class == Class::Late),
        none: share(rows, &|r| r.class == Class::None),
        full_of_deep: (!deep.is_empty()).then(|| share(&deep, &full)),
    }
}

/// The names of the startups of `rows`, in the order of their first rows.
pub fn startups(rows: &[GameRow]) -> Vec<&str> {
    names(rows, |r| &r.startup)
}

/// The names of the populations of `rows`, in the order of their first rows.
pub fn populations(rows: &[GameRow]) -> Vec<&str> {
    names(rows, |r| &r.population)
}

fn names<'a>(rows: &'a [GameRow], of: impl Fn(&'a GameRow) -> &'a String) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in rows.iter().map(of) {
        if all.last() != Some(&name.as_str()) && !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    all
}

/// The score of each startup over all rows, or over those of one population. Every case counts once.
pub fn scores(rows: &[GameRow], population: Option<&str>) -> Vec<Score> {
    let of = |startup: &str| {
        let own = |r: &&GameRow| r.startup == startup && population.is_none_or(|p| r.population == p);
        Score::of(&rows.iter().filter(own).collect::<Vec<_>>())
    };
    startups(rows).into_iter().filter_map(of).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use slowstart_study::measures;

    pub(crate) fn row(startup: &str, case: u32, seconds: f64, lost: u64) -> GameRow {
        GameRow {
            league: crate::game::SCHEMA,
            drawn_from: 1,
            commit: None,
            version: "0.1.0".into(),
            population: "random".into(),
            case,
            seed: u64::from(case),
            path: "rate=10Mbit rtt=50ms".into(),
            profile: "linux-6.18".into(),
            startup: startup.into(),
            memory: false,
            rate_bps: 10_000_000,
            base_rtt_s: 0.05,
            bdp_bytes: 60_000,
            buffer_bytes: Some(30_000),
            time_s: [("1000000".into(), Some(seconds)), ("10000000".into(), None)].into(),
            oracle_s: [("1000000".into(), 0.5), ("10000000".into(), 5.0)].into(),
            given_s: 50.0,
            class: Class::LinkFull,
            exit: Some("delay".into()),
            by_rule: true,
            left_bdp: Some(1.25),
            startup_lost_packets: Some(lost),
            lost_packets: Some(lost),
            startup_queue_delay_s: Some(0.02),
            others: None,
            fairness: None,
            broken: None,
        }
    }

    #[test]
    fn regret_is_time_over_the_oracles_and_a_bound_where_the_run_ended() {
        let r = row("a", 0, 1.0, 0);
        assert_eq!(r.regret(1_000_000), Some((2.0, false)));
        assert_eq!(r.regret(10_000_000), Some((10.0, true)));
        assert_eq!(r.regret(100_000), None);
        let s = Score::of(&[&r]).expect("a row");
        assert_eq!((s.unfinished, s.figure(Measure::Regret100kB)), (1, None));
    }

    #[test]
    fn a_measure_that_runs_have_too_has_their_unit() {
        let shared = Measure::ALL.iter().filter_map(|m| Some((m, measures::Measure::named(m.entry().name)?)));
        let found = shared.inspect(|(m, run)| assert_eq!(m.entry().unit, run.entry().unit, "{m:?}")).count();
        assert_eq!(found, 4);
    }

    #[test]
    fn classes_are_shares_of_their_cases() {
        let mut rows: Vec<GameRow> = (0..4).map(|i| row("a", i, 1.0, 0)).collect();
        (rows[0].class, rows[1].class) = (Class::Early, Class::Early);
        rows[1].by_rule = false;
        rows[2].buffer_bytes = Some(20_000);
        let e = scores(&rows, None)[0].exits;
        assert_eq!((e.early_by_rule, e.early_by_loss, e.full), (25.0, 25.0, 50.0));
        // Three have a queue of half a BDP, and one of those left with the link full.
        assert!((e.full_of_deep.expect("three") - 100.0 / 3.0).abs() < 1e-9);
    }

    /// It loses nothing, since it stalls; or it is the best, and broke a rule.
    #[test]
    fn what_stalls_is_counted_and_what_broke_a_rule_has_no_figures() {
        let all = |name, seconds, lost, of: fn(&mut GameRow)| {
            (0..6).map(move |i| {
                let mut r = row(name, i, seconds, lost);
                r.time_s.insert("10000000".into(), Some(20.0));
                of(&mut r);
                r
            })
        };
        let stalls = all("stalls", 0.9, 0, |r| {
            r.time_s.insert("10000000".into(), (r.case > 0).then_some(20.0));
        });
        let broken = all("broken", 0.5, 0, |r| r.broken = (r.case == 0).then(|| "cwnd 0".into()));
        let rows: Vec<GameRow> = broken.chain(all("good", 1.0, 100, |_| {})).chain(stalls).collect();
        let scores = scores(&rows, None);
        assert_eq!(scores.iter().map(|s| s.stalled).collect::<Vec<_>>(), [0, 0, 1]);
        // It stands last, and without figures.
        let lines = crate::sheet::speed(&scores).lines;
        assert_eq!((lines[2][0].as_str(), lines[2][2].as_str()), ("broken", "-"));
    }
}
