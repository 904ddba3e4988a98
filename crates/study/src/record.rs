//! The schema of results: a row for each flow, samples over time, and events.
//!
//! Names contain the units; absent values are null. Rows are deterministic: they contain no wall-clock or CPU
//! time.

pub use crate::limits::{Limits, LostBy};
use crate::stats::quantile;
use serde::{Deserialize, Serialize};
use slowstart::units::Span;
#[cfg(feature = "schema")]
use slowstart_sim::trace::MILESTONES;
use slowstart_sim::trace::{self, CapturedPacket};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The version of the schema.
pub const SCHEMA: u32 = 1;

/// Rows of many studies as this version computes them: a change of results changes them. The tests compare
/// them to the byte.
pub const GOLDEN_ROWS: &str = include_str!("../tests/data/golden.jsonl");

/// JSON Schema of a [`Row`], of version [`SCHEMA`].
pub const ROW_SCHEMA: &str = include_str!("../schema/row.json");
/// JSON Schema of a line of `samples.jsonl`: a [`Sample`] as [`OfRun`].
pub const SAMPLE_SCHEMA: &str = include_str!("../schema/sample.json");
/// JSON Schema of a line of `events.jsonl`: an [`EventRow`] as [`OfRun`].
pub const EVENT_SCHEMA: &str = include_str!("../schema/event.json");

/// The caveat of a flow whose handshake was given up.
pub const HANDSHAKE_FAILED: &str = "the handshake failed: an end gave up after its last retransmission";

/// The value of a parameter.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param {
    /// A number; times are in seconds.
    Number(f64),
    /// A word, such as `on`.
    Word(String),
}

/// The class of a startup's exit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Before the path was full, for any reason.
    Early,
    /// By its own rule, once the path was full and before a loss was known.
    LinkFull,
    /// Once the path was full, by loss, mark, timeout or a stall of the host's own queue, or once a loss was
    /// known.
    Late,
    /// It did not end.
    None,
}

impl Class {
    /// All classes, in the order of their definition.
    pub const ALL: [Self; 4] = [Self::Early, Self::LinkFull, Self::Late, Self::None];

    /// What it says of a startup, as a clause.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Early => "it left before the path was full",
            Self::LinkFull => "it left by its own rule, once the path was full and before a loss was known",
            Self::Late => {
                "it left once the path was full, by loss, mark, timeout or a stall of the host's own queue, or once a loss was \
                 known"
            }
            Self::None => "it did not leave",
        }
    }

    /// What it says, in a few words.
    pub const fn brief(self) -> &'static str {
        match self {
            Self::Early => "before the link was full",
            Self::LinkFull => "by its own rule, once the link was full",
            Self::Late => "by a loss or a mark, or after one",
            Self::None => "still in slow start at the end",
        }
    }

    /// How it left, where a person reads it: `too early`. [`Class::name`] is the word in results.
    pub const fn how(self) -> &'static str {
        match self {
            Self::Early => "too early",
            Self::LinkFull => "link full",
            Self::Late => "by loss",
            Self::None => "not at all",
        }
    }

    /// How it left, within a sentence: `with the link full`.
    pub const fn manner(self) -> &'static str {
        match self {
            Self::LinkFull => "with the link full",
            other => other.how(),
        }
    }

    /// What one startup (`leaves slow start by loss`) or several (`leave slow start by loss`) do.
    pub fn verb(self, several: bool) -> String {
        match (self, several) {
            (Self::None, false) => "does not leave slow start".to_string(),
            (Self::None, true) => "do not leave slow start".to_string(),
            (_, false) => format!("leaves slow start {}", self.manner()),
            (_, true) => format!("leave slow start {}", self.manner()),
        }
    }

    /// The word in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::LinkFull => "link-full",
            Self::Late => "late",
            Self::None => "none",
        }
    }
}

/// The end of a startup.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExitRow {
    /// The name of the reason (`slowstart::step::Exit::name`).
    pub reason: String,
    /// When the reason was seen, seconds since the flow began.
    pub time_s: f64,
    /// When it left: later, if it drained first.
    pub left_s: f64,
    /// The window when the reason was seen.
    pub detected_cwnd_bytes: u64,
    /// The window it left with.
    pub cwnd_bytes: u64,
    /// Bytes in flight when it left.
    pub inflight_bytes: u64,
}

/// The effect of a flow on those that were there before it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Packets of theirs the network dropped while the flow was there.
    pub lost_packets: u64,
    /// How far their goodput fell, as a share: the lowest second with it against the mean before it. On a path on
    /// which they have bad seconds of their own, or still grow, it shows little: `goodput_bps` does not saturate.
    pub goodput_dip: Option<f64>,
    /// The goodput of all of them together in the five seconds before it, as far as they were there.
    #[serde(default)]
    pub goodput_before_bps: Option<f64>,
    /// The same while the flow was there, over its whole seconds.
    #[serde(default)]
    pub goodput_bps: Option<f64>,
    /// The same of each of these seconds.
    #[serde(default)]
    pub seconds_bps: Vec<f64>,
    /// The 99th percentile of their one-way delay above its least, while the flow was there.
    pub delay_p99_s: Option<f64>,
}

impl Others {
    /// What the flows had together, in bytes: in up to five seconds before the studied flow, and in each whole
    /// second while it was there.
    pub fn new(lost_packets: u64, before: &[f64], during: &[f64], delay_p99_s: Option<f64>) -> Self {
        let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
        let had = mean(before).filter(|m| *m > 0.0);
        let lowest = during.iter().copied().min_by(f64::total_cmp);
        Self {
            lost_packets,
            goodput_dip: had.zip(lowest).map(|(had, lowest)| ((had - lowest) / had).max(0.0)),
            goodput_before_bps: mean(before).map(|m| 8.0 * m),
            goodput_bps: mean(during).map(|m| 8.0 * m),
            seconds_bps: during.iter().map(|b| 8.0 * b).collect(),
            delay_p99_s,
        }
    }
}

/// The marks (CE) of a flow whose ends use ECN.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marks {
    /// When the sender first learned of one, seconds since the flow began.
    pub first_time_s: Option<f64>,
    /// Data packets that arrived marked.
    pub packets: u64,
    /// How often the sender reduced its window because of marks.
    pub responses: u64,
}

/// The objects that the client of a browser, web, video or burst application asked for while the run lasted, or the parts
/// that a sender wrote by a schedule of several; and how long each took, from its request, or the last write of the part,
/// to its last byte. The run goes on for those under way at its end, as long again as it lasted and a minute at least; then
/// they never came.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objects {
    /// Number of objects that were asked for.
    pub asked: u64,
    /// Number of those that came.
    pub complete: u64,
    /// The median time, seconds; null if an object never came.
    pub median_s: Option<f64>,
    /// The 95th percentile, seconds; null if an object never came.
    pub p95_s: Option<f64>,
    /// The time of each in the order of the requests, seconds; null for one that never came. With the same seed the
    /// n-th object is the same whatever the startup.
    pub times_s: Vec<Option<f64>>,
}

impl Objects {
    /// The objects with these times.
    pub fn new(times_s: Vec<Option<f64>>) -> Self {
        let came: Vec<f64> = times_s.iter().copied().flatten().collect();
        // Nine decimals are read back as they were written.
        let rounded = |t: f64| (t * 1e9).round() / 1e9;
        let quantile = |q| quantile(&came, q).filter(|_| came.len() == times_s.len()).map(rounded);
        Self {
            asked: times_s.len() as u64,
            complete: came.len() as u64,
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
            times_s,
        }
    }

    /// The first `n` of them.
    #[must_use]
    pub fn first(&self, n: usize) -> Self {
        Self::new(self.times_s[..n.min(self.times_s.len())].to_vec())
    }

    /// True if one never came.
    pub const fn is_unfinished(&self) -> bool {
        self.complete < self.asked
    }
}

/// One of several connections that carry a transfer together. Times are since the transfer began.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The end of its startup; null if it did not end.
    pub exit: Option<ExitRow>,
    /// The class of that: capacity is what the path holds of all connections together.
    pub class: Class,
    /// Bytes that it delivered, over the time from the start of the transfer to its own completion or the end.
    pub goodput_bps: u64,
    /// When the receiver had its part.
    pub completion_s: Option<f64>,
    /// Data packets dropped of those sent before its startup ended.
    pub startup_lost_packets: Option<u64>,
    /// Data packets the network dropped.
    pub lost_packets: Option<u64>,
}

/// One of several links of a path, and what it did to the data of a flow.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRow {
    /// Its mean rate, on the wire.
    pub rate_bps: u64,
    /// What it adds to the least round-trip time of the path.
    pub base_rtt_s: f64,
    /// Bytes its queue holds, on the wire; null if it is infinite.
    pub buffer_bytes: Option<u64>,
    /// The longest wait of a data packet of the flow in its queue; null if it was not observed.
    pub peak_queue_delay_s: Option<f64>,
    /// Data packets of the flow that it dropped, by cause.
    pub lost_by: LostBy,
}

/// The work of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Data packets of all flows.
    pub packets: u64,
    /// Events of the engine.
    pub events: u64,
}

impl From<trace::Cost> for Cost {
    fn from(trace::Cost { packets, events }: trace::Cost) -> Self {
        Self { packets, events }
    }
}

/// The result of one flow of one run, as `--json` prints it and `results.jsonl` holds it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The version of the schema.
    pub schema: u32,
    /// The version that computed it.
    pub version: String,
    /// The commit of the program that computed it, with `modified` after it if the checkout had changes; null if it
    /// was not built in a checkout or is not the command, and in stores of sweeps, whose bytes do not depend on it.
    #[serde(default)]
    pub commit: Option<String>,
    /// `sim`, `kernel` or `quic`.
    pub engine: String,
    /// The name of the path.
    pub path: String,
    /// The stack's name, with the knobs that were set.
    pub profile: String,
    /// The startup's name in the registry.
    pub startup: String,
    /// The parameters of the startup; times are in seconds.
    pub params: BTreeMap<String, Param>,
    /// Settings of the stack that this startup has besides those of `profile`; absent if it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The avoidance's name; null for a controller that is a whole of its own.
    pub avoidance: Option<String>,
    /// Which flow of the run.
    pub flow: u32,
    /// Which run of the study.
    pub run: u32,
    /// The seed of the run.
    pub seed: u64,
    /// Initial window, in bytes of payload; null if it was not observed.
    pub iw_bytes: Option<u64>,
    /// Size of the transfer, if it has one.
    pub size_bytes: Option<u64>,
    /// How long it was observed.
    pub duration_s: f64,
    /// Mean rate of the path, on the wire.
    pub rate_bps: u64,
    /// Least round-trip time of the path.
    pub base_rtt_s: f64,
    /// Payload that fills the path without a queue.
    pub bdp_bytes: u64,
    /// Bytes its queue holds, on the wire; null if it is infinite.
    pub buffer_bytes: Option<u64>,
    /// Values that this run drew for its path, each by its key and unit: `rate_bps`, `rtt_s`, `queue_bytes`;
    /// absent for a fixed path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drawn: BTreeMap<String, f64>,
    /// The end of the startup.
    pub exit: Option<ExitRow>,
    /// Its class by truth.
    pub class: Class,
    /// Its class by the heuristic of the SEARCH thesis (5.2).
    pub class_by_heuristic: Option<Class>,
    /// When data in flight first reached what the path then held.
    pub capacity_time_s: Option<f64>,
    /// That time by the heuristic of the SEARCH thesis.
    pub capacity_time_by_heuristic_s: Option<f64>,
    /// When the network first dropped a packet of the flow.
    pub first_drop_time_s: Option<f64>,
    /// When the sender first knew of a loss.
    pub first_loss_time_s: Option<f64>,
    /// What the network marked; absent if the ends do not use ECN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// The most bytes in flight; null if it was not observed, as each of the next five.
    pub peak_inflight_bytes: Option<u64>,
    /// The longest wait at the bottleneck.
    pub peak_queue_delay_s: Option<f64>,
    /// Data packets dropped of those sent before the startup ended.
    pub startup_lost_packets: Option<u64>,
    /// Data packets the network dropped.
    pub lost_packets: Option<u64>,
    /// The same by cause; absent if it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_by: Option<LostBy>,
    /// The links of a path of several, in the order in which the data crosses them, and what each did to it; absent on a
    /// path of one link, and where the engine does not tell them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRow>,
    /// Packets that the sender sent again.
    pub retransmitted_packets: Option<u64>,
    /// Timeouts of the retransmission timer.
    pub timeouts: Option<u64>,
    /// What limited the sender, in shares of the duration; absent if it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Bytes that the receiver's application got, over the time from the start of the flow to its completion
    /// or the end.
    pub goodput_bps: u64,
    /// When the receiver had everything.
    pub completion_s: Option<f64>,
    /// Seconds until the receiver had so many bytes, by their number; null if it never had.
    #[cfg_attr(feature = "schema", schemars(schema_with = "milestones"))]
    pub time_to_bytes_s: BTreeMap<String, Option<f64>>,
    /// The objects of a browser, of web, video, bursts and writes in several parts; absent for other applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<Objects>,
    /// The connections of a transfer that has several, whose exit and class are then those of the one that left
    /// first; absent for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Its effect on others.
    pub others: Option<Others>,
    /// What a CUBIC flow that was there before got while this startup transferred, in a run of its own over the same path, in
    /// percent of what it got in the same time alone; absent if it was not measured (`compare --harm`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got_percent: Option<f64>,
    /// The work of the run.
    pub cost: Cost,
    /// What a reader of the row should know, the most important first.
    pub caveats: Vec<String>,
}

impl Row {
    /// True if a transfer of a given size did not complete, or an object never came.
    pub fn is_unfinished(&self) -> bool {
        let transfer = self.size_bytes.is_some() && self.completion_s.is_none();
        transfer || self.objects.as_ref().is_some_and(Objects::is_unfinished)
    }
}

/// The schema of [`Row::time_to_bytes_s`], whose keys are those of [`MILESTONES`].
#[cfg(feature = "schema")]
fn milestones(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let seconds = generator.subschema_for::<Option<f64>>();
    let names = MILESTONES.map(|bytes| bytes.to_string());
    let all: serde_json::Map<_, _> = MILESTONES
        .iter()
        .zip(&names)
        .map(|(bytes, name)| {
            let mut one = seconds.clone();
            let about = format!(
                "Seconds until the receiver had {}; null if it never had.",
                crate::words::bytes(*bytes)
            );
            one.insert("description".into(), about.into());
            (name.clone(), one.to_value())
        })
        .collect();
    schemars::json_schema!({"type": "object", "required": names, "properties": all})
}

/// A flow at a moment, as `samples.jsonl` holds it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the run began.
    pub time_s: f64,
    /// Which flow of the run, from 0.
    pub flow: u32,
    /// Congestion window, in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; absent until one is set.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes sent that are neither acknowledged nor deemed lost.
    pub inflight_bytes: u64,
    /// The newest round-trip sample.
    pub rtt_s: Option<f64>,
    /// Bytes the receiver's application has.
    pub delivered_bytes: u64,
    /// Bytes waiting at the bottleneck, on the wire, of all flows; null if the engine does not observe it.
    pub queue_bytes: Option<u64>,
    /// The pacing rate, in force or not.
    pub pacing_bps: Option<u64>,
    /// The phase of the controller, such as `slow-start`; null if the engine does not observe it.
    pub phase: Option<Cow<'static, str>>,
    /// What kept the sender from sending more, by its name in a row's `limits`; absent if it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<Cow<'static, str>>,
    /// Internal values of the startup.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<Cow<'static, str>, f64>,
}

/// An event of a flow, as `events.jsonl` holds it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Seconds since the run began.
    pub time_s: f64,
    /// Which flow of the run, from 0.
    pub flow: u32,
    /// What: `exit`, `resumed`, `restart`, `loss`, `recovered`, `undone`, `timeout`, `probe`, `mark`, `drop`
    /// of data, `ack-drop` of any other packet, `handshake`.
    pub what: Cow<'static, str>,
    /// The reason of an exit, the cause of a drop, what happened to a SYN or SYN-ACK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Which link of the path dropped the data, from 1; absent on a path of one link, and of other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<u8>,
}

impl From<trace::Sample> for Sample {
    fn from(s: trace::Sample) -> Self {
        Self {
            time_s: s.time_s,
            flow: s.flow,
            cwnd_bytes: s.cwnd_bytes,
            ssthresh_bytes: s.ssthresh_bytes,
            inflight_bytes: s.inflight_bytes,
            rtt_s: s.rtt_s,
            delivered_bytes: s.delivered_bytes,
            queue_bytes: Some(s.queue_bytes),
            pacing_bps: s.pacing_bps,
            phase: Some(s.phase.into()),
            limited_by: Some(s.limited_by.into()),
            gauges: s.gauges.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        }
    }
}

impl From<trace::FlowEvent> for EventRow {
    fn from(trace::FlowEvent { at, flow, what, why, link }: trace::FlowEvent) -> Self {
        Self { time_s: Span(at.0).as_secs_f64(), flow, what: what.into(), why, link }
    }
}

/// A sample or an event of a run of one startup.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct OfRun<'a, T> {
    /// The startup of the flow studied, with its parameters as written.
    pub startup: &'a str,
    /// Which run of the study.
    pub run: u32,
    /// The sample or the event.
    #[serde(flatten)]
    pub what: &'a T,
}

/// Samples, events and packets of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Samples, in order of time.
    pub samples: Vec<Sample>,
    /// Events, in order of time.
    pub events: Vec<EventRow>,
    /// Packets of the recorded flows at both ends, in order of time, if they were asked for.
    pub packets: Vec<CapturedPacket>,
}

impl From<trace::Trace> for Trace {
    fn from(trace::Trace { samples, events }: trace::Trace) -> Self {
        let samples = samples.into_iter().map(Sample::from).collect();
        Self { samples, events: events.into_iter().map(EventRow::from).collect(), packets: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A study that continues reads rows and prints them again.
    #[test]
    fn rows_that_are_read_are_written_to_the_byte() {
        for line in GOLDEN_ROWS.lines() {
            let row: Row = serde_json::from_str(line).expect("a row");
            assert_eq!(serde_json::to_string(&row).expect("text"), line);
        }
    }
}
