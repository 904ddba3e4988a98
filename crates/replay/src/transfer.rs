//! The result for one connection in one direction, as a row for programs.
//!
//! Names contain the units; times count from the connection's first packet; absent values are null.

use crate::analysis::{Findings, Period, StartupResult};
use crate::connection::{Connection, Ecn, Vantage};
use crate::fit::FittedPath;
use crate::fork::ForkResult;
use crate::infer::{ExitEstimate, NoExit};
use crate::naming::Named;
use crate::observer::{Moment, TimedEvent};
use crate::sender::Counters;
use serde::{Deserialize, Serialize};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_study::record::Class;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};

/// Version of the schema.
pub const SCHEMA: u32 = 1;

/// JSON Schema of a [`Transfer`], of version [`SCHEMA`].
pub const TRANSFER_SCHEMA: &str = include_str!("../schema/transfer.json");
/// JSON Schema of a [`Sample`].
pub const SAMPLE_SCHEMA: &str = include_str!("../schema/sample.json");

/// Where a transfer was found. A file of one kind may have transfers of several sources.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A capture of packets.
    Capture,
    /// A kernel's log of ACKs.
    KernelLog,
    /// A qlog of a QUIC or TCP stack.
    Qlog,
    /// A log of Chrome's network stack.
    Netlog,
    /// Events of startups in a running kernel.
    KernelEvents,
    /// Repeated output of `ss -tin`.
    Ss,
    /// Output of the kernel's tracepoint `tcp:tcp_probe`.
    TcpProbe,
    /// A measurement of NDT7.
    Ndt7,
    /// Rows of M-Lab's `tcp-info`.
    TcpInfo,
    /// A result of iperf3.
    Iperf3,
    /// Text printed by iperf 2.
    Iperf2,
    /// Text printed by nuttcp.
    Nuttcp,
    /// A flent data file.
    Flent,
    /// Rows of `slowstart compare`.
    Rows,
}

/// Class of an exit as in [`Class`], with a value for what is not known.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitClass {
    /// Before the path was full: [`Class::Early`].
    Early,
    /// By its own rule, once the path was full: [`Class::LinkFull`].
    LinkFull,
    /// Once the path was full, by congestion or once a loss was known: [`Class::Late`].
    Late,
    /// [`Class::None`]: it was in slow start until the end.
    None,
    /// The file does not show whether it left slow start, or whether the path was full by then.
    Unknown,
}

impl ExitClass {
    /// All classes, in the order of their definition.
    pub const ALL: [Self; 5] = [Self::Early, Self::LinkFull, Self::Late, Self::None, Self::Unknown];

    /// The words where a person reads it.
    pub const fn how(self) -> &'static str {
        match self.known() {
            Some(class) => class.how(),
            None => "unknown",
        }
    }

    /// The word in rows.
    pub const fn name(self) -> &'static str {
        match self.known() {
            Some(class) => class.name(),
            None => "unknown",
        }
    }

    /// The class; `None` if it is not known.
    pub const fn known(self) -> Option<Class> {
        match self {
            Self::Early => Some(Class::Early),
            Self::LinkFull => Some(Class::LinkFull),
            Self::Late => Some(Class::Late),
            Self::None => Some(Class::None),
            Self::Unknown => None,
        }
    }
}

impl From<Class> for ExitClass {
    fn from(class: Class) -> Self {
        match class {
            Class::Early => Self::Early,
            Class::LinkFull => Self::LinkFull,
            Class::Late => Self::Late,
            Class::None => Self::None,
        }
    }
}

/// The observed end of slow start.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// When slow start ended, in seconds since the connection's first packet.
    pub time_s: f64,
    /// The window at that time: the maximum in flight, or cwnd if the file states it.
    pub cwnd_bytes: u64,
    /// What shows that it ended, in words.
    pub evidence: String,
}

/// A period in which something other than cwnd limited the sender.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitPeriod {
    /// `application`; `receive window`; `send buffer`; or `idle`: nothing was in flight for 200 ms or more.
    pub what: String,
    /// When it began, in seconds since the connection's first packet.
    pub from_s: f64,
    /// When it ended, in seconds since the connection's first packet.
    pub until_s: f64,
}

/// What a startup would have done.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartupRow {
    /// The startup's name and parameters.
    pub startup: String,
    /// Its exit, if it would have left while the prediction was valid.
    pub exit: Option<TimedEvent>,
    /// Class of that exit: `none` if the startup would have remained in slow start to the end, `unknown` if
    /// the prediction ended before.
    pub class: ExitClass,
    /// When the prediction's validity ended: from here on the startup would have sent something else than was
    /// sent, or a loss was detected that might not have happened to it. Null: valid to the end.
    pub valid_until_s: Option<f64>,
    /// Its exit by its own rule over all events, regardless of losses and validity.
    pub rule: Option<TimedEvent>,
    /// The phases that it entered, in order of time.
    pub phases: Vec<TimedEvent>,
}

/// A transfer at one moment, as `samples.jsonl` of `slowstart replay` holds it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Number of the connection.
    pub connection: u64,
    /// The sender: address and port.
    pub from: String,
    /// Seconds since the connection's first packet.
    pub time_s: f64,
    /// Bytes sent that are neither acknowledged nor deemed lost.
    pub inflight_bytes: u64,
    /// The RTT sample of this ACK.
    pub rtt_s: Option<f64>,
    /// Payload bytes delivered so far.
    pub delivered_bytes: u64,
    /// The window of each startup whose prediction is still valid.
    pub cwnd_bytes: BTreeMap<String, u64>,
}

/// The samples of a transfer, at most some thousands.
pub fn samples<'a>(t: &'a Transfer, f: &'a Findings) -> impl Iterator<Item = Sample> + 'a {
    f.snapshots.iter().map(move |s| {
        let time_s = seconds(s.at);
        let valid = |w: &&(&StartupRow, &Bytes)| w.0.valid_until_s.is_none_or(|v| time_s <= v);
        let windows: Vec<(&StartupRow, &Bytes)> = t.startups.iter().zip(&s.windows).collect();
        Sample {
            connection: t.connection,
            from: t.from.clone(),
            time_s,
            inflight_bytes: s.inflight.0,
            rtt_s: s.rtt.map(Span::as_secs_f64),
            delivered_bytes: s.delivered.0,
            cwnd_bytes: windows.iter().filter(valid).map(|(w, b)| (w.startup.clone(), b.0)).collect(),
        }
    })
}

/// Continuation of each startup on a path fitted to the capture.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The fitted path, each value an estimate.
    pub path: FittedPath,
    /// The result for each startup, from where its prediction ends.
    pub startups: Vec<ForkResult>,
}

/// One connection in one direction, as `slowstart replay --json` prints it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The version of the schema.
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Kind of the file.
    pub source: Source,
    /// The file, if the caller set it.
    #[serde(default)]
    pub file: Option<String>,
    /// Number of the connection in the file, from 1.
    pub connection: u64,
    /// The sender: address and port.
    pub from: String,
    /// The receiver: address and port.
    pub to: String,
    /// `download` if the called end sends, `upload` if the calling end sends; null if the handshake is
    /// missing.
    #[serde(default)]
    pub direction: Option<String>,
    /// Payload bytes delivered in the other direction of the connection.
    #[serde(default)]
    pub other_bytes: Option<u64>,
    /// Where the capture was made: `sender`, `receiver`, `middle` or `unknown`.
    pub vantage: String,
    /// Time of the first packet, seconds since 1970; 0 if the file does not state it.
    pub start_s: f64,
    /// Seconds from the first packet to the last event.
    pub duration_s: f64,
    /// Payload bytes delivered in this direction; null if the file does not show it, as everything below.
    pub bytes: Option<u64>,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// The sender's congestion control, as the file names it; null if it does not.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// The startup that the sender used, by what it sent; versions of one startup have one name. Null if several explain
    /// what was sent, or none.
    #[serde(default)]
    pub sender_startup: Option<String>,
    /// The startups of which the sender used one, by what it sent: what was sent does not tell them apart. Three or fewer only
    /// if a window was exactly in flight. Null if that is not known, or if all are possible.
    #[serde(default)]
    pub sender_startup_class: Option<Vec<String>>,
    /// The startups that explain what was sent, in the order of `slowstart list startups`: what was sent does not tell
    /// them apart. Empty if none does. Null if too little is seen to compare them, or if slow start did not end.
    #[serde(default)]
    pub sender_startup_fits: Option<Vec<String>>,
    /// The greatest receive window that the receiver offered; null if it is not known.
    #[serde(default)]
    pub receive_window_bytes: Option<u64>,
    /// Bytes of the initial window: the most in flight before the first acknowledgement.
    pub iw_bytes: Option<u64>,
    /// RTT of the handshake.
    pub handshake_rtt_s: Option<f64>,
    /// Least RTT sample, in seconds; null if there is no sample.
    pub min_rtt_s: Option<f64>,
    /// Maximum RTT less minimum RTT.
    pub peak_delay_s: Option<f64>,
    /// Number of data packets, those sent again included.
    pub packets: Option<u64>,
    /// Packets that the sender sent again.
    pub retransmitted_packets: Option<u64>,
    /// Retransmitted packets that had arrived before.
    pub spurious_packets: Option<u64>,
    /// Packets that arrived out of order.
    pub reordered_packets: Option<u64>,
    /// Packets with a CE mark at the capture point.
    #[serde(default)]
    pub marked_packets: Option<u64>,
    /// ACKs that tell of a mark.
    #[serde(default)]
    pub mark_echoes: Option<u64>,
    /// Packets sent while the receive window was zero, to learn when it opens.
    #[serde(default)]
    pub window_probes: Option<u64>,
    /// Packets that only keep the connection alive.
    #[serde(default)]
    pub keep_alives: Option<u64>,
    /// Payload bytes that were acknowledged but never captured.
    pub unseen_bytes: Option<u64>,
    /// Share of ACKs that acknowledged more than one segment.
    pub delayed_acks: Option<f64>,
    /// Packets in the largest super-segment.
    pub super_segment: Option<u64>,
    /// The observed end of slow start.
    pub exit: Option<ExitRecord>,
    /// Why no exit is reported.
    pub unclear: Option<String>,
    /// True if the answer is certain: growth was seen until the exit, and congestion avoidance after it, or the
    /// file states the exit; and so is its class, if it has one.
    #[serde(default)]
    pub certain: bool,
    /// Class of the exit: `none` if slow start lasted to the end, `unknown` if the file does not show the
    /// exit, or when the path was full.
    pub class: ExitClass,
    /// Heuristic of `capacity_time_s` (SEARCH thesis, 5.2): `latency` or `throughput`.
    pub heuristic: String,
    /// When the path was full, by that heuristic; null if it was not seen full.
    pub capacity_time_s: Option<f64>,
    /// When the path was full if the heuristic of delay is right.
    pub capacity_by_latency_s: Option<f64>,
    /// When the path was full if the heuristic of throughput is right: the first interval that reached the median,
    /// which every transfer has.
    pub capacity_by_throughput_s: Option<f64>,
    /// Median throughput in bits per second; null if too little was delivered.
    pub median_bps: Option<f64>,
    /// When the sender first detected a loss.
    pub first_loss_time_s: Option<f64>,
    /// The least that an early exit cost, in seconds; null if the path was not seen full after it.
    pub cost_s: Option<f64>,
    /// Periods in which something other than cwnd limited the sender, to the round trip or the sample: the first
    /// 256. Null if the file does not show it.
    #[serde(default, rename = "held")]
    pub limits: Option<Vec<LimitPeriod>>,
    /// What each startup would have done.
    pub startups: Vec<StartupRow>,
    /// Continuation in the simulator, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// What a reader must know to interpret the row.
    pub caveats: Vec<String>,
}

fn seconds(at: Instant) -> f64 {
    Span(at.0).as_secs_f64()
}

fn timed_event(m: &Moment) -> TimedEvent {
    TimedEvent { what: m.what.to_string(), time_s: seconds(m.at), cwnd_bytes: m.cwnd.0 }
}

fn startup_row(o: &StartupResult) -> StartupRow {
    StartupRow {
        startup: o.label.clone(),
        exit: o.exit.as_ref().map(timed_event),
        class: match o.exit {
            None if o.prediction.valid_until.is_some() => ExitClass::Unknown,
            _ => o.class.into(),
        },
        valid_until_s: o.prediction.valid_until.map(seconds),
        rule: o.prediction.rule.map(|(_, m)| timed_event(&m)),
        phases: o.prediction.changes.iter().map(timed_event).collect(),
    }
}

impl Transfer {
    /// A row without findings.
    pub fn new(source: Source, connection: u64, mss: Bytes) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            source,
            file: None,
            connection,
            from: String::new(),
            to: String::new(),
            direction: None,
            other_bytes: None,
            vantage: Vantage::Sender.name().to_string(),
            start_s: 0.0,
            duration_s: 0.0,
            bytes: None,
            mss_bytes: mss.0,
            congestion_control: None,
            sender_startup: None,
            sender_startup_class: None,
            sender_startup_fits: None,
            receive_window_bytes: None,
            iw_bytes: None,
            handshake_rtt_s: None,
            min_rtt_s: None,
            peak_delay_s: None,
            packets: None,
            retransmitted_packets: None,
            spurious_packets: None,
            reordered_packets: None,
            marked_packets: None,
            mark_echoes: None,
            window_probes: None,
            keep_alives: None,
            unseen_bytes: None,
            delayed_acks: None,
            super_segment: None,
            exit: None,
            unclear: None,
            certain: false,
            class: ExitClass::Unknown,
            heuristic: "throughput".to_string(),
            capacity_time_s: None,
            capacity_by_latency_s: None,
            capacity_by_throughput_s: None,
            median_bps: None,
            first_loss_time_s: None,
            cost_s: None,
            limits: None,
            startups: Vec::new(),
            fork: None,
            caveats: Vec::new(),
        }
    }

    /// Sets the observed end of slow start and its class, or why none is reported.
    pub fn observe(&mut self, observed: Result<ExitEstimate, NoExit>, class: ExitClass) {
        self.class = match observed {
            Ok(_) => class,
            Err(NoExit::StillGrowing) => ExitClass::None,
            Err(_) => ExitClass::Unknown,
        };
        self.exit = observed.ok().map(|f| ExitRecord {
            time_s: seconds(f.at),
            cwnd_bytes: f.cwnd.0,
            evidence: f.evidence.words().to_string(),
        });
        self.unclear = observed.err().map(|u| u.words().to_string());
    }

    /// Reports neither an exit nor predictions, for this reason.
    fn withhold(&mut self, why: NoExit) {
        self.observe(Err(why), ExitClass::Unknown);
        self.startups.clear();
        (self.sender_startup, self.sender_startup_class, self.sender_startup_fits) = (None, None, None);
        (self.certain, self.cost_s) = (false, None);
    }

    /// Removes what rests on round-trip times, which are not those of the path.
    fn forget_times(&mut self) {
        (self.min_rtt_s, self.peak_delay_s) = (None, None);
        (self.capacity_time_s, self.capacity_by_latency_s, self.capacity_by_throughput_s) =
            (None, None, None);
    }

    /// True if more than half of the data was acknowledged but not captured. What limited its sender is then
    /// not known.
    pub fn mostly_uncaptured(&self) -> bool {
        self.unseen_bytes.zip(self.bytes).is_some_and(|(unseen, all)| unseen > all / 2)
    }

    /// Sets what the findings contain.
    #[must_use]
    pub fn with(mut self, f: &Findings) -> Self {
        self.observe(f.observed, f.class);
        self.certain = f.certain;
        self.duration_s = seconds(f.last);
        self.bytes = Some(f.delivered.0);
        self.iw_bytes = Some(f.iw.0);
        self.min_rtt_s = f.min_rtt.map(Span::as_secs_f64);
        self.peak_delay_s = f.min_rtt.zip(f.max_rtt).map(|(least, most)| (most - least).as_secs_f64());
        self.heuristic = f.heuristic.to_string();
        self.capacity_time_s = f.capacity.map(seconds);
        self.capacity_by_latency_s = f.by_latency.map(seconds);
        self.capacity_by_throughput_s = f.by_throughput.map(seconds);
        self.median_bps = f.median_bps;
        self.first_loss_time_s = f.first_loss.map(seconds);
        self.cost_s = f.cost_s();
        let limit = |(by, from, until): &Period| LimitPeriod {
            what: by.words().to_string(),
            from_s: seconds(*from),
            until_s: seconds(*until),
        };
        self.limits = Some(f.periods.iter().map(limit).collect());
        self.startups = f.startups.iter().map(startup_row).collect();
        self
    }

    /// States which startup the sender used: without the begin of the connection only those that explain what was sent.
    pub(crate) fn name(&mut self, named: &Named, begins: bool) {
        let strings = |all: &Vec<&str>| all.iter().map(ToString::to_string).collect();
        self.sender_startup = named.name.filter(|_| begins).map(str::to_string);
        self.sender_startup_class = named.class.as_ref().filter(|_| begins).map(strings);
        self.sender_startup_fits = Some(strings(&named.fits));
    }
}

fn address(end: (u128, u16)) -> String {
    SocketAddr::new(Ipv6Addr::from_bits(end.0).to_canonical(), end.1).to_string()
}

/// A direction carries little data if the other one carried more than this many times as much, and it carried
/// less than this many segments: requests for a download, or responses to an upload.
const LITTLE: (u64, u64) = (10, 100);
/// Seen at the receiver, a loss or a mark with less than this in flight is not certain.
const SURE_WINDOW: Bytes = Bytes(65_536);

/// The rows of a finished connection, with their findings: one for each direction that has data. No exit is
/// reported for a direction with little data.
pub fn of(c: &mut Connection) -> Vec<(Transfer, Findings)> {
    let senders: Vec<_> = c.directions.iter_mut().map(|w| w.sender.take()).collect();
    let mut rows: Vec<(Transfer, Findings)> = Vec::new();
    for (from, sender) in senders.into_iter().enumerate() {
        let Some(sender) = sender else { continue };
        let (way, n, mss) = (&c.directions[from], sender.counters, sender.mss());
        let recorded = (!way.syn_seen()).then_some(Err(NoExit::BeganBefore));
        let mut findings = sender.analysis.finish(recorded);
        findings.no_path = c.no_path(from, findings.min_rtt);
        let mut t = Transfer::new(Source::Capture, c.number, mss).with(&findings);
        (t.from, t.to) = (address(c.ends[from]), address(c.ends[1 - from]));
        t.vantage = way.vantage.name().to_string();
        t.direction = c.caller().map(|caller| if caller == from { "upload" } else { "download" }.to_string());
        t.start_s = c.start as f64 / 1e9;
        t.handshake_rtt_s = c.handshake.map(Span::as_secs_f64);
        (t.packets, t.retransmitted_packets) = (Some(n.packets), Some(n.retransmitted));
        (t.spurious_packets, t.reordered_packets) = (Some(n.spurious), Some(n.reordered));
        (t.marked_packets, t.mark_echoes) = (Some(n.marked), Some(n.echoes));
        (t.window_probes, t.keep_alives) = (Some(n.window_probes), Some(n.keep_alives));
        t.receive_window_bytes = sender.widest;
        // Elsewhere it is not known exactly what was in flight, nor whether the sender waited for ACKs. At
        // the receiver the growth until a loss is half a round trip late, and shows in a window of many
        // segments.
        let of_loss = |e: ExitEstimate| {
            e.evidence.is_congestion() && (way.vantage != Vantage::Receiver || e.cwnd >= SURE_WINDOW)
        };
        t.certain &= way.vantage == Vantage::Sender || findings.observed.is_ok_and(of_loss);
        t.unseen_bytes = Some(n.unseen);
        t.super_segment = Some(n.super_segment.max(1));
        // What was not captured may have been a retransmission.
        t.certain &= n.unseen == 0 || way.vantage == Vantage::Receiver;
        // Elsewhere the order of its events is not exact; what arrives out of order looks like losses.
        let exact = way.vantage == Vantage::Sender && n.unseen == 0;
        let by_loss = findings.observed.is_ok_and(|e| e.evidence.is_congestion());
        let reordered = n.reordered > 0 || n.spurious > 0;
        // A rule that left before such a loss does not show in what was sent after it.
        t.certain &= !(by_loss && reordered);
        if let Some(named) = findings.named.as_ref().filter(|_| exact && !(by_loss && reordered)) {
            // Without the handshake it is not known that the connection begins here.
            t.name(named, c.handshake.is_some());
        }
        t.delayed_acks = (n.acks > 0).then(|| n.acks_of_several as f64 / n.acks as f64);
        t.caveats = caveats(c, from, &n, findings.no_path);
        if t.mostly_uncaptured() {
            t.withhold(NoExit::Uncaptured);
            t.limits = None;
        }
        if n.acks == 0 {
            // What was sent is known, and nothing of what became of it.
            (t.bytes, t.iw_bytes, t.limits) = (None, None, None);
            if n.filled > 0 {
                // Without ACKs the RTT is unknown, and a late packet looks like a retransmission.
                (t.retransmitted_packets, t.spurious_packets, t.reordered_packets) = (None, None, None);
            }
            if way.syn_seen() {
                t.withhold(NoExit::NoAcks);
            }
        }
        if let Some(why) = findings.no_path {
            if t.exit.is_some() || t.class == ExitClass::None {
                t.withhold(why);
            }
            t.startups.clear();
            t.forget_times();
        }
        rows.push((t, findings));
    }
    let sizes: Vec<Option<u64>> = rows.iter().map(|r| r.0.bytes).collect();
    if let [a, b] = sizes[..] {
        for ((t, _), other) in rows.iter_mut().zip([b, a]) {
            t.other_bytes = other;
            let (bytes, other) = (t.bytes.unwrap_or(0), other.unwrap_or(0));
            if bytes.saturating_mul(LITTLE.0) < other && bytes < t.mss_bytes * LITTLE.1 {
                t.withhold(NoExit::LittleData);
            }
        }
    }
    rows
}

fn caveats(c: &Connection, from: usize, n: &Counters, no_path: Option<NoExit>) -> Vec<String> {
    let (acks, copies) = (n.acks, n.copies + c.duplicates);
    let mut all = Vec::new();
    let mut add = |applies: bool, text: &str| {
        if applies {
            all.push(text.to_string());
        }
    };
    let vantage = c.directions[from].vantage;
    add(
        !c.directions[from].syn_seen(),
        "the connection began before the capture: its slow start was not seen",
    );
    add(
        c.directions[from].syn_seen() && c.handshake.is_none() && no_path.is_none(),
        "the handshake was not captured completely: the capture is assumed to be at the sender",
    );
    add(
        vantage == Vantage::Middle,
        "captured between the two ends: the order of events at the sender is restored with the part of the path to it",
    );
    add(
        vantage == Vantage::Receiver && !c.timestamps,
        "captured at the receiver, without timestamps: the handshake RTT is used throughout, delays cannot be measured",
    );
    add(
        vantage == Vantage::Receiver && c.timestamps,
        "captured at the receiver: times are those of its clock, to the resolution of the timestamps; what was sent again \
         and lost again is not seen",
    );
    add(vantage != Vantage::Receiver && n.unseen > 0, "the capture missed packets that were acknowledged");
    add(acks == 0, "no acknowledgement was captured: nothing is known about the path");
    add(
        no_path == Some(NoExit::NoVantage),
        "where it was captured is not known, without the handshake: RTTs of less than a millisecond may be the time that the \
         receiver takes to answer",
    );
    add(
        no_path == Some(NoExit::BelowTick),
        "the RTT is not known: it is no longer than a few ticks of the timestamps by which the sender's order of events is restored",
    );
    add(
        copies > 0,
        "packets that were captured twice, or that came late after they were sent again, are counted once",
    );
    add(
        c.directions[1 - from].is_cut(),
        "packets are cut within the SYN's options: the receive window is not known",
    );
    add(
        c.directions[from].syn_seen() && c.ecn == Ecn::No && n.marked > 0,
        "packets have ECN marks, but ECN was not negotiated (RFC 3168)",
    );
    add(
        c.backwards > 0,
        "some packets have a time before that of an earlier packet: the later time was used",
    );
    let tick_ms = c.tick as f64 / 1e6;
    if tick_ms >= 1.0 && n.packets > 20 {
        all.push(format!(
            "the capture clock ticks every {tick_ms} ms: times and RTTs are no more precise, and an RTT of 0 counts as none"
        ));
    }
    let mut add = |applies: bool, text: &str| {
        if applies {
            all.push(text.to_string());
        }
    };
    add(c.stepped, "the clock of the capture goes back: later packets were ignored");
    add(c.silent, "silent for more than ten minutes, or a damaged time: later packets were ignored");
    add(c.syn_losses() > 0, "a handshake packet was retransmitted");
    all
}
