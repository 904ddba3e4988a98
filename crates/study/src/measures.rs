//! The catalogue of measures: each figure of a run, what it is called, in which unit, which way is better, from which
//! difference on it counts, and how it follows from a row.
//!
//! Tables, pages, decisions, intervals, the suite's criteria, the league's scores and Python's figures have their measures
//! from here, so that a new one is one entry. One name is one quantity.

use crate::record::{Objects, Row};

/// Differences of fewer lost packets are none: what an initial window holds (RFC 6928).
pub const LOSS_MARGIN: f64 = 10.0;
/// A change of another flow's share by fewer points than this counts as none.
pub const HARM_MARGIN: f64 = 3.0;

/// The unit of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Seconds of a wait, which are shown in milliseconds.
    Delay,
    /// Bandwidth-delay products of the path.
    Bdp,
    /// Packets.
    Packets,
    /// Megabits a second.
    Mbps,
    /// Percent; differences are points.
    Percent,
    /// A share, which is shown in percent.
    Share,
    /// A ratio of two values of one unit.
    Ratio,
    /// A number of events, which the name counts.
    Events,
}

impl Unit {
    /// The unit of values, as results name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds | Self::Delay => "s",
            Self::Bdp => "BDP",
            Self::Packets => "packets",
            Self::Mbps => "Mbit/s",
            Self::Percent => "percent",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Events => "events",
        }
    }

    /// What a value is multiplied by where a person reads it.
    pub const fn factor(self) -> f64 {
        match self {
            Self::Delay => 1e3,
            Self::Share => 100.0,
            _ => 1.0,
        }
    }

    /// What stands behind a value where a person reads it; nothing behind numbers that the heading explains.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Delay => "ms",
            Self::Mbps => "Mbit/s",
            Self::Percent | Self::Share => "%",
            Self::Bdp | Self::Packets | Self::Ratio | Self::Events => "",
        }
    }
}

/// Which way is better.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less.
    Less,
    /// More.
    More,
    /// Neither.
    Neither,
}

/// The difference from which on it counts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Margin {
    /// A share of the other's value, which who compares names; differences are in percent.
    Relative,
    /// So much, in the unit of the value.
    Fixed(f64),
    /// A least round trip: what a queue may add before it doubles the response time.
    RoundTrip,
    /// None: a comparison does not judge it. A criterion of a suite has a limit of its own.
    Unjudged,
}

/// What a value follows from.
#[derive(Copy, Clone, Debug)]
pub enum Source {
    /// The row of a run.
    Row(fn(&Row) -> Option<f64>),
    /// The objects that an application asked for; of two runs those are compared that both asked for.
    Objects(fn(&Objects) -> Option<f64>),
    /// A run of its own beside another flow, which not each row has.
    Beside(fn(&Row) -> Option<f64>),
}

/// When `slowstart compare` shows a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Where a run has a value.
    Usual,
    /// Where it is what decides.
    Deciding,
    /// On pages, and in the terminal's table with `--wide`.
    Wide,
    /// Where `--columns` names it.
    Named,
}

/// What the catalogue says of a measure.
#[derive(Copy, Clone, Debug)]
pub struct Entry {
    /// The name in results: that of the column of rows, where rows have the value itself.
    pub name: &'static str,
    /// What it is, with its unit, in a sentence without a stop.
    pub about: &'static str,
    /// What it is, in a few words.
    pub label: &'static str,
    /// The word for it in `--columns`.
    pub word: &'static str,
    /// The heading of its column in a terminal.
    pub heading: &'static str,
    /// Its heading on a page: two lines.
    pub title: [&'static str; 2],
    /// The unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// From which difference on it counts.
    pub margin: Margin,
    /// When `slowstart compare` shows it.
    pub shown: Shown,
    /// What it follows from.
    pub source: Source,
}

/// A measure for each entry, whose first lines say what it is.
macro_rules! measures {
    ($($(#[doc = $about:literal])+ $measure:ident { $($field:ident: $value:expr),+ $(,)? })+) => {
        /// A measure of a run.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Measure {
            $($(#[doc = $about])+ $measure,)+
        }

        impl Measure {
            /// All measures, in the order of columns.
            pub const ALL: &[Self] = &[$(Self::$measure),+];
        }

        const ENTRIES: &[Entry] =
            &[$(Entry { about: concat!($($about),+).trim_ascii_start(), $($field: $value),+ }),+];
    };
}

fn count(n: Option<u64>) -> Option<f64> {
    n.map(|n| n as f64)
}

fn bdps(bytes: u64, row: &Row) -> f64 {
    bytes as f64 / row.bdp_bytes as f64
}

fn time_to(row: &Row, bytes: &str) -> Option<f64> {
    *row.time_to_bytes_s.get(bytes)?
}

measures! {
    /// the time from the request to the last byte of an object, in seconds, its median
    ObjectMedian {
        name: "objects_median_s", label: "median time of an object", word: "object", heading: "object",
        title: ["an object", "median"], unit: Unit::Seconds, better: Better::Less, margin: Margin::Relative,
        shown: Shown::Usual, source: Source::Objects(|o| o.median_s),
    }
    /// the time from the request to the last byte of an object, in seconds, its 95th percentile
    ObjectP95 {
        name: "objects_p95_s", label: "95th percentile of an object", word: "p95", heading: "p95",
        title: ["an object", "95th percentile"], unit: Unit::Seconds, better: Better::Less, margin: Margin::Relative,
        shown: Shown::Usual, source: Source::Objects(|o| o.p95_s),
    }
    /// when the receiver had 10 MB, in seconds
    Time10MB {
        name: "time_to_10mb_s", label: "time to 10 MB", word: "10mb", heading: "10 MB", title: ["10 MB", ""],
        unit: Unit::Seconds, better: Better::Less, margin: Margin::Relative, shown: Shown::Usual,
        source: Source::Row(|r| time_to(r, "10000000")),
    }
    /// when the receiver had 1 MB, in seconds
    Time1MB {
        name: "time_to_1mb_s", label: "time to 1 MB", word: "1mb", heading: "1 MB", title: ["1 MB", ""],
        unit: Unit::Seconds, better: Better::Less, margin: Margin::Relative, shown: Shown::Usual,
        source: Source::Row(|r| time_to(r, "1000000")),
    }
    /// when the receiver had 100 kB, in seconds
    Time100kB {
        name: "time_to_100kb_s", label: "time to 100 kB", word: "100kb", heading: "100 kB", title: ["100 kB", ""],
        unit: Unit::Seconds, better: Better::Less, margin: Margin::Relative, shown: Shown::Named,
        source: Source::Row(|r| time_to(r, "100000")),
    }
    /// when the receiver had everything, in seconds; a transfer that never completes is later than any other
    Completion {
        name: "completion_s", label: "time to completion", word: "all", heading: "all", title: ["all", ""],
        unit: Unit::Seconds, better: Better::Less, margin: Margin::Relative, shown: Shown::Usual,
        source: Source::Row(|r| r.completion_s),
    }
    /// what the receiver's application got, in Mbit/s
    Goodput {
        name: "goodput_mbps", label: "goodput", word: "goodput", heading: "goodput", title: ["goodput", ""],
        unit: Unit::Mbps, better: Better::More, margin: Margin::Relative, shown: Shown::Deciding,
        source: Source::Row(|r| Some(r.goodput_bps as f64 / 1e6)),
    }
    /// when the reason of the exit from slow start was seen, in seconds
    ExitTime {
        name: "exit_time_s", label: "time of the exit", word: "at", heading: "at", title: ["at", "s"],
        unit: Unit::Seconds, better: Better::Neither, margin: Margin::Unjudged, shown: Shown::Wide,
        source: Source::Row(|r| Some(r.exit.as_ref()?.time_s)),
    }
    /// the window when the reason of the exit was seen, in bandwidth-delay products
    ExitWindow {
        name: "exit_window_bdp", label: "window at the exit", word: "cwnd", heading: "BDP", title: ["window", "BDP"],
        unit: Unit::Bdp, better: Better::Neither, margin: Margin::Unjudged, shown: Shown::Usual,
        source: Source::Row(|r| Some(bdps(r.exit.as_ref()?.detected_cwnd_bytes, r))),
    }
    /// of the lost packets, those sent before the startup ended
    StartupLost {
        name: "startup_lost_packets", label: "packets lost in startup", word: "lost", heading: "lost",
        title: ["lost", "packets"], unit: Unit::Packets, better: Better::Less, margin: Margin::Fixed(LOSS_MARGIN),
        shown: Shown::Usual, source: Source::Row(|r| count(r.startup_lost_packets)),
    }
    /// data packets that the network dropped
    Lost {
        name: "lost_packets", label: "packets lost", word: "dropped", heading: "dropped",
        title: ["dropped", "packets"], unit: Unit::Packets, better: Better::Less, margin: Margin::Unjudged,
        shown: Shown::Named, source: Source::Row(|r| count(r.lost_packets)),
    }
    /// timeouts of the retransmission timer
    Timeouts {
        name: "timeouts", label: "retransmission timeouts", word: "timeouts", heading: "timeouts",
        title: ["timeouts", ""], unit: Unit::Events, better: Better::Less, margin: Margin::Unjudged,
        shown: Shown::Named, source: Source::Row(|r| count(r.timeouts)),
    }
    /// the most bytes in flight, in bandwidth-delay products
    PeakInflight {
        name: "peak_inflight_bdp", label: "most in flight", word: "inflight", heading: "in flight",
        title: ["most in flight", "BDP"], unit: Unit::Bdp, better: Better::Less, margin: Margin::Unjudged,
        shown: Shown::Named, source: Source::Row(|r| Some(bdps(r.peak_inflight_bytes?, r))),
    }
    /// the longest wait at the bottleneck, in seconds
    QueueDelay {
        name: "peak_queue_delay_s", label: "longest wait in the queue", word: "queue", heading: "queue",
        title: ["longest queue", ""], unit: Unit::Delay, better: Better::Less, margin: Margin::RoundTrip,
        shown: Shown::Usual, source: Source::Row(|r| r.peak_queue_delay_s),
    }
    /// what a CUBIC flow beside it got, in percent of what it got in the same time alone
    OthersGot {
        name: "got_percent", label: "goodput of a CUBIC flow beside it", word: "harm", heading: "CUBIC",
        title: ["a CUBIC flow got", ""], unit: Unit::Percent, better: Better::More, margin: Margin::Fixed(HARM_MARGIN),
        shown: Shown::Usual, source: Source::Beside(|r| r.got_percent),
    }
    /// packets that the other flows lost
    OthersLost {
        name: "others_lost_packets", label: "packets that others lost", word: "others-lost", heading: "others lost",
        title: ["others lost", "packets"], unit: Unit::Packets, better: Better::Less, margin: Margin::Unjudged,
        shown: Shown::Named, source: Source::Row(|r| Some(r.others.as_ref()?.lost_packets as f64)),
    }
    /// how far the goodput of the other flows fell, as a share
    OthersDip {
        name: "others_goodput_dip", label: "dip of others' goodput", word: "others-dip", heading: "others' dip",
        title: ["others' dip", ""], unit: Unit::Share, better: Better::Less, margin: Margin::Unjudged,
        shown: Shown::Named, source: Source::Row(|r| r.others.as_ref()?.goodput_dip),
    }
    /// the 99th percentile of the other flows' queueing delay, in seconds
    OthersDelay {
        name: "others_delay_p99_s", label: "99th percentile of others' delay", word: "others-p99", heading: "others' p99",
        title: ["others' delay", "99th percentile"], unit: Unit::Delay, better: Better::Less, margin: Margin::Unjudged,
        shown: Shown::Named, source: Source::Row(|r| r.others.as_ref()?.delay_p99_s),
    }
}

impl Measure {
    /// What the catalogue says of it.
    pub const fn entry(self) -> &'static Entry {
        &ENTRIES[self as usize]
    }

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// The measure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|m| m.name() == name)
    }

    /// The measure that a column of rows has the values of, in its unit or another one: goodput of `goodput_bps`.
    pub fn of_column(column: &str) -> Option<Self> {
        let quantity = |name: &str| {
            let units = ["_s", "_bdp", "_bytes", "_mbps", "_bps", "_packets", "_percent"];
            units.iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name).to_string()
        };
        Self::named(column)
            .or_else(|| Self::ALL.iter().copied().find(|m| quantity(m.name()) == quantity(column)))
    }

    /// The value of a run, if it has one.
    pub fn of(self, row: &Row) -> Option<f64> {
        let value = match self.entry().source {
            Source::Row(of) | Source::Beside(of) => of(row),
            Source::Objects(of) => row.objects.as_ref().and_then(of),
        };
        value.filter(|v| v.is_finite())
    }

    /// The values of two runs of one path, over what both have of it: of objects, those that both asked for.
    pub fn of_pair(self, a: &Row, b: &Row) -> (Option<f64>, Option<f64>) {
        match (self.entry().source, &a.objects, &b.objects) {
            (Source::Objects(of), Some(x), Some(y)) if !x.is_unfinished() && !y.is_unfinished() => {
                let both = x.times_s.len().min(y.times_s.len());
                (of(&x.first(both)), of(&y.first(both)))
            }
            _ => (self.of(a), self.of(b)),
        }
    }

    /// The measures of a run itself, whatever the command.
    pub fn of_rows() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|m| !matches!(m.entry().source, Source::Beside(_)))
    }

    /// True if it is of the objects that an application asked for.
    pub const fn is_of_objects(self) -> bool {
        matches!(self.entry().source, Source::Objects(_))
    }

    /// True if differences are in percent of the other's value.
    pub const fn is_relative(self) -> bool {
        matches!(self.entry().margin, Margin::Relative)
    }

    /// True if a run without a value is one that never got there, rather than one that was not observed.
    pub const fn is_time(self) -> bool {
        self.is_relative() && matches!(self.entry().unit, Unit::Seconds)
    }

    /// True if tables show the difference from the baseline rather than the value: percent, or points.
    pub const fn is_shown_as_difference(self) -> bool {
        self.is_relative() || matches!(self.entry().unit, Unit::Percent)
    }

    /// True if differences are judged.
    pub const fn is_judged(self) -> bool {
        !matches!(self.entry().margin, Margin::Unjudged)
    }

    /// True if more is better.
    pub const fn more_is_better(self) -> bool {
        matches!(self.entry().better, Better::More)
    }

    /// The unit of differences, as results name it.
    pub const fn unit_of_difference(self) -> &'static str {
        if self.is_relative() { "percent" } else { self.entry().unit.name() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Cell, columns};
    use crate::record::{Others, ROW_SCHEMA};
    use crate::sample::rows;
    use std::collections::BTreeSet;

    /// A row of a run in which nothing was observed but that bytes came, or none.
    fn nothing() -> Row {
        Row {
            exit: None,
            peak_inflight_bytes: None,
            peak_queue_delay_s: None,
            startup_lost_packets: None,
            lost_packets: None,
            retransmitted_packets: None,
            timeouts: None,
            completion_s: None,
            time_to_bytes_s: std::collections::BTreeMap::new(),
            objects: None,
            others: None,
            ..rows("a", &[1.0]).remove(0)
        }
    }

    #[test]
    fn each_entry_is_whole_and_its_names_are_its_own() {
        for of in [|e: &Entry| e.name, |e: &Entry| e.word, |e: &Entry| e.label] {
            let names: BTreeSet<&str> = ENTRIES.iter().map(of).collect();
            assert_eq!(names.len(), ENTRIES.len());
        }
        for m in Measure::ALL {
            let e = m.entry();
            assert_eq!(Measure::named(e.name), Some(*m));
            assert!(!e.about.is_empty() && !e.about.ends_with('.') && !e.heading.is_empty(), "{}", e.name);
            // A name ends with its unit; those of shares and counts of events have none.
            let end = match e.unit {
                Unit::Seconds | Unit::Delay => "_s",
                Unit::Bdp => "_bdp",
                Unit::Packets => "_packets",
                Unit::Mbps => "_mbps",
                Unit::Percent => "_percent",
                Unit::Share | Unit::Ratio | Unit::Events => "",
            };
            assert!(e.name.ends_with(end), "{}", e.name);
            assert!(
                !m.is_judged() || e.better != Better::Neither,
                "{}: judged, and neither way is better",
                e.name
            );
        }
        assert_eq!(Measure::named("losses"), None);
    }

    /// Goodput alone is of what every engine observes.
    #[test]
    fn what_was_not_observed_has_no_value() {
        let row = nothing();
        for m in Measure::ALL {
            assert_eq!(m.of(&row).is_some(), *m == Measure::Goodput, "{}", m.name());
        }
    }

    #[test]
    fn a_measure_with_the_name_of_a_column_is_that_column() {
        let mut row = rows("a", &[7.0]).remove(0);
        row.others = Some(Others::new(3, &[8.0, 8.0], &[6.0, 2.0], Some(0.02)));
        row.objects = Some(Objects::new(vec![Some(0.5), Some(1.5), Some(0.25)]));
        row.got_percent = Some(93.5);
        let json = serde_json::to_value(&row).expect("plain data");
        let mut found = 0;
        for column in columns(ROW_SCHEMA) {
            let Some(m) = Measure::named(&column.name) else { continue };
            let value = match column.cell(&json) {
                Cell::Integer(n) => Some(n as f64),
                Cell::Number(x) => Some(x),
                _ => None,
            };
            assert!(value.is_some() && m.of(&row) == value, "{}", column.name);
            found += 1;
        }
        assert_eq!(found, 12);
    }
}
