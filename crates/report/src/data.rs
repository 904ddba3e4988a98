//! The runs of a page as data for its script: rows, and samples as columns of whole numbers.
//!
//! Each column holds the difference of every value to the one before it, so that it compresses well. Times
//! and round trips are in microseconds, amounts in bytes.

use crate::look::looks;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use slowstart_study::record::{EventRow, Row, Sample, Trace};
use slowstart_study::summary::label;
use std::collections::BTreeMap;
use std::io::Write;

/// The most samples of a run that a page holds; of more, some are left out.
pub const SAMPLES: usize = 1500;
/// Samples of all runs of a page: about 8 bytes each, compressed.
const SAMPLES_OF_ALL: usize = 80_000;

/// The most samples of each of so many runs on one page.
pub fn samples_of_each(runs: usize) -> usize {
    (SAMPLES_OF_ALL / runs.max(1)).clamp(200, SAMPLES)
}

/// What a page shows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Runs of startups over a path.
    Study,
    /// A recorded connection, and the window of each startup on it.
    Recording,
}

/// The data of a page: of runs, with their rows; or of a recorded connection, with its
/// [courses](super::Course).
#[derive(Clone, Debug, Serialize)]
pub struct Data<'a, R = Row> {
    /// What the page shows.
    pub kind: Kind,
    /// All runs, or what each startup would have done.
    pub rows: &'a [R],
    /// The label of each one's startup.
    pub labels: Vec<String>,
    /// The [number](super::look) that gives each label its look.
    pub looks: BTreeMap<String, usize>,
    /// The runs of which there are samples.
    pub curves: Vec<Curve>,
    /// What is drawn first; nothing where each startup has one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
}

/// What a page draws first: the same run of each startup, so that all are over the same path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct First {
    /// Which run of the study, from 0; of a recorded connection nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The labels of the startups.
    pub labels: Vec<String>,
}

/// The samples of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curve {
    /// The index of its row.
    pub row: usize,
    /// Time since the flow began.
    pub t: Vec<i64>,
    /// Congestion window; 0 where it is not known.
    pub cwnd: Vec<i64>,
    /// Bytes in flight at each time.
    pub inflight: Vec<i64>,
    /// Round-trip time; 0 where there is no sample.
    pub rtt: Vec<i64>,
    /// Bytes delivered by each time.
    pub delivered: Vec<i64>,
    /// Bytes waiting at the bottleneck; empty if they were not observed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<i64>,
    /// Packets dropped so far.
    pub lost: Vec<i64>,
    /// Other quantities at the same times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Quantity>,
}

/// What a quantity counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Bytes; 0 where there is no value.
    Bytes,
    /// Microseconds; 0 where there is no value.
    Time,
    /// A number of events.
    Count,
}

/// A quantity to be read from samples: its name, its unit, and its value at a sample.
pub type More<'a> = (&'static str, Unit, &'a dyn Fn(&Sample) -> i64);

/// A quantity beyond those that every curve has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quantity {
    /// The name of the quantity.
    pub name: &'static str,
    /// What its values count.
    pub unit: Unit,
    /// A value for each time of the curve.
    pub values: Vec<i64>,
}

/// Whole microseconds; 0 for what is no number.
pub fn us(seconds: f64) -> i64 {
    if seconds.is_finite() { (seconds * 1e6).round() as i64 } else { 0 }
}

/// The difference of each value to the one before it.
fn deltas(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    values.map(|v| v - std::mem::replace(&mut last, v)).collect()
}

impl Curve {
    /// The samples of this flow, whose row has this index. `start_s` is the start of the flow on the clock of
    /// the samples, in seconds; `most` is the most samples to keep.
    pub fn new(index: usize, flow: u32, trace: &Trace, start_s: f64, most: usize) -> Self {
        Self::with(index, flow, (&trace.samples, &trace.events), start_s, most, &[])
    }

    /// [`Self::new`] with `more` quantities.
    pub fn with(
        index: usize,
        flow: u32,
        (samples, events): (&[Sample], &[EventRow]),
        start_s: f64,
        most: usize,
        more: &[More],
    ) -> Self {
        let own: Vec<_> = samples.iter().filter(|s| s.flow == flow && s.time_s >= start_s).collect();
        let every = own.len().div_ceil(most.max(1)).max(1);
        let kept: Vec<_> =
            own.iter().enumerate().filter(|(i, _)| i % every == 0 || *i + 1 == own.len()).collect();
        let column = |of: &dyn Fn(&Sample) -> i64| deltas(kept.iter().map(|(_, s)| of(s)));
        let dropped = events.iter().filter(|e| e.flow == flow && e.what == "drop");
        let drops: Vec<f64> = dropped.map(|e| e.time_s).collect();
        Self {
            row: index,
            t: column(&|s| us(s.time_s - start_s)),
            cwnd: column(&|s| s.cwnd_bytes as i64),
            inflight: column(&|s| s.inflight_bytes as i64),
            rtt: column(&|s| s.rtt_s.map_or(0, us)),
            delivered: column(&|s| s.delivered_bytes as i64),
            queue: if kept.iter().all(|(_, s)| s.queue_bytes.is_some()) {
                column(&|s| s.queue_bytes.unwrap_or(0) as i64)
            } else {
                Vec::new()
            },
            lost: column(&|s| drops.partition_point(|t| *t <= s.time_s) as i64),
            more: more
                .iter()
                .map(|(name, unit, of)| Quantity { name, unit: *unit, values: column(of) })
                .collect(),
        }
    }
}

/// JSON, compressed by gzip, in base64: no character of it has a meaning in HTML.
pub fn packed(data: &impl Serialize) -> String {
    let json = serde_json::to_vec(data).expect("data of a page is JSON");
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&json).expect("a Vec takes everything");
    STANDARD.encode(packer.finish().expect("a Vec takes everything"))
}

impl<'a, R> Data<'a, R> {
    /// The data of these rows, each with its label, without samples.
    pub fn of(kind: Kind, rows: &'a [R], labels: Vec<String>) -> Self {
        let looks = labels.iter().cloned().zip(looks(&labels)).collect();
        Self { kind, rows, labels, looks, curves: Vec::new(), first: None }
    }
}

impl<'a> Data<'a> {
    /// The data of the runs of a study, without samples.
    pub fn new(rows: &'a [Row]) -> Self {
        Self::of(Kind::Study, rows, rows.iter().map(label).collect())
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
mod tests {
    use super::*;
    use slowstart_study::sample::rows;
    use std::io::Read;

    fn sample(time_s: f64, cwnd_bytes: u64) -> Sample {
        Sample {
            time_s,
            flow: 0,
            cwnd_bytes,
            ssthresh_bytes: None,
            inflight_bytes: 7,
            rtt_s: Some(0.1),
            delivered_bytes: 0,
            queue_bytes: Some(0),
            pacing_bps: None,
            phase: Some("slow-start".into()),
            limited_by: None,
            gauges: [].into(),
        }
    }

    #[test]
    fn columns_are_differences() {
        let drop = EventRow { time_s: 10.25, flow: 0, what: "drop".into(), why: None, link: None };
        let trace = Trace {
            samples: vec![sample(9.0, 1), sample(10.0, 10), sample(10.5, 30), sample(11.0, 20)],
            events: vec![drop],
            packets: vec![],
        };
        let curve = Curve::new(4, 0, &trace, 10.0, SAMPLES);
        assert_eq!((curve.row, &curve.t[..]), (4, &[0, 500_000, 500_000][..]));
        assert_eq!(curve.cwnd, [10, 20, -10]);
        assert_eq!((&curve.rtt[..], &curve.lost[..]), (&[100_000, 0, 0][..], &[0, 1, 0][..]));
        let kb = |s: &Sample| s.cwnd_bytes as i64 * 1000;
        let parts = (&trace.samples[..], &trace.events[..]);
        let curve = Curve::with(0, 0, parts, 10.0, SAMPLES, &[("own", Unit::Bytes, &kb)]);
        assert_eq!((curve.more[0].name, &curve.more[0].values[..]), ("own", &[10_000, 20_000, -10_000][..]));
    }

    #[test]
    fn long_runs_are_thinned() {
        let samples = (0..100_000).map(|i| sample(f64::from(i) * 1e-3, 1)).collect();
        let curve = Curve::new(0, 0, &Trace { samples, ..Trace::default() }, 0.0, SAMPLES);
        assert!(curve.t.len() <= SAMPLES + 1);
        assert_eq!(curve.t.iter().sum::<i64>(), 99_999_000, "the last sample is kept");
    }

    #[test]
    fn packed_data_can_be_read_again() {
        let rows = rows("<script>", &[7.0]);
        let data = Data::new(&rows);
        let packed = packed(&data);
        assert!(packed.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c)));
        let mut text = String::new();
        let bytes = STANDARD.decode(packed).expect("base64");
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, serde_json::to_string(&data).expect("JSON"));
    }
}
