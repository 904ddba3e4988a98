//! The answer for one connection, one way: the row that programs get.
//!
//! Units stand in the names; times count from the connection's first packet; absent values are null.

use crate::analysis::{Findings, Period, StartupResult};
use crate::connection::{Connection, Vantage};
use crate::fit::FittedPath;
use crate::fork::ForkResult;
use crate::infer::{ExitEstimate, NoExit};
use crate::observer::{Moment, TimedEvent};
use serde::{Deserialize, Serialize};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_lab::record::Class;
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};

/// The version of the schema.
pub const SCHEMA: u32 = 1;

/// The end of slow start as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// When.
    pub time_s: f64,
    /// The window then, as far as it was in flight.
    pub cwnd_bytes: u64,
    /// Why it is believed.
    pub evidence: String,
}

/// A time in which something else than its window held the sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitPeriod {
    /// `application`, which had no more; `receive window`; or `idle`: nothing was in flight for 200 ms and more.
    pub what: String,
    /// From when on.
    pub from_s: f64,
    /// Until when.
    pub until_s: f64,
}

/// What a startup would have done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartupRow {
    /// Its name and parameters.
    pub startup: String,
    /// Its exit, if it would have had one while the question had an answer.
    pub exit: Option<TimedEvent>,
    /// How that is judged.
    pub class: Class,
    /// From when on it would have sent something else than was sent, or known of a loss that need not have happened
    /// to it. Null: to the end.
    pub valid_until_s: Option<f64>,
    /// When its own rule says to leave, over all that was seen, losses and validity aside.
    pub rule: Option<TimedEvent>,
    /// Its changes of phase.
    pub phases: Vec<TimedEvent>,
}

/// A moment of a transfer: what was in flight, and the window that each startup had by then.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Of which connection.
    pub connection: u64,
    /// Who sends.
    pub from: String,
    /// Seconds since the connection's first packet.
    pub time_s: f64,
    /// Bytes in flight.
    pub inflight_bytes: u64,
    /// The round trip that an ACK brought then.
    pub rtt_s: Option<f64>,
    /// Bytes delivered so far.
    pub delivered_bytes: u64,
    /// Each startup's window, as long as its prediction is worth something.
    pub cwnd_bytes: BTreeMap<String, u64>,
}

/// The samples of a transfer, at most some thousands.
pub fn samples<'a>(t: &'a Transfer, f: &'a Findings) -> impl Iterator<Item = Sample> + 'a {
    f.snapshots.iter().map(move |s| {
        let time_s = seconds(s.at);
        let worth = |w: &&(&StartupRow, &Bytes)| w.0.valid_until_s.is_none_or(|v| time_s <= v);
        let windows: Vec<(&StartupRow, &Bytes)> = t.startups.iter().zip(&s.windows).collect();
        Sample {
            connection: t.connection,
            from: t.from.clone(),
            time_s,
            inflight_bytes: s.inflight.0,
            rtt_s: s.rtt.map(Span::as_secs_f64),
            delivered_bytes: s.delivered.0,
            cwnd_bytes: windows.iter().filter(worth).map(|(w, b)| (w.startup.clone(), b.0)).collect(),
        }
    })
}

/// What would have come after, over a path fitted to the capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The path.
    pub path: FittedPath,
    /// Each startup from where its prediction ended.
    pub startups: Vec<ForkResult>,
}

/// One connection, one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version that computed it.
    pub version: String,
    /// What kind of file it is from.
    pub source: String,
    /// Its number in the file.
    pub connection: u64,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// Where it was seen from: `sender`, `receiver`, `middle` or `unknown`.
    pub vantage: String,
    /// When it began: its first packet, seconds since 1970; 0 where the file does not say.
    pub start_s: f64,
    /// How long it was seen.
    pub duration_s: f64,
    /// Payload delivered.
    pub bytes: u64,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// Initial window.
    pub iw_bytes: u64,
    /// The handshake's round trip.
    pub handshake_rtt_s: Option<f64>,
    /// Least round trip.
    pub min_rtt_s: Option<f64>,
    /// Greatest round trip less the least: what queues, and the receiver, added.
    pub peak_delay_s: Option<f64>,
    /// Data packets.
    pub packets: u64,
    /// Packets sent again.
    pub retransmitted_packets: u64,
    /// Of those, for nothing.
    pub spurious_packets: u64,
    /// Packets overtaken by others.
    pub reordered_packets: u64,
    /// Packets that the network had marked where they were seen (ECN).
    #[serde(default)]
    pub marked_packets: u64,
    /// ACKs that told the sender of marks.
    #[serde(default)]
    pub mark_echoes: u64,
    /// Payload that was acknowledged and never seen.
    pub unseen_bytes: u64,
    /// The share of ACKs that were for more than one segment.
    pub delayed_acks: Option<f64>,
    /// Segments in the largest super-segment.
    pub super_segment: u64,
    /// The end of slow start as it was.
    pub exit: Option<ExitRecord>,
    /// Why none is claimed.
    pub unclear: Option<String>,
    /// How it is judged: `none` if there is none, or if the file does not tell when the path was full.
    pub class: Class,
    /// By which of the SEARCH thesis' heuristics (5.2): `latency` or `throughput`.
    pub heuristic: String,
    /// When the path was full, by that.
    pub capacity_time_s: Option<f64>,
    /// By delay.
    pub capacity_by_latency_s: Option<f64>,
    /// By throughput.
    pub capacity_by_throughput_s: Option<f64>,
    /// The median throughput.
    pub median_bps: Option<f64>,
    /// When the sender first knew of a loss.
    pub first_loss_time_s: Option<f64>,
    /// What leaving early cost.
    pub cost_s: Option<f64>,
    /// When something else than its window held the sender, to the round trip: the first 256 such times.
    #[serde(default)]
    pub held: Vec<LimitPeriod>,
    /// What each startup would have done.
    pub startups: Vec<StartupRow>,
    /// What would have come after, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// What a reader must know before believing these numbers.
    pub caveats: Vec<String>,
}

fn seconds(at: Instant) -> f64 {
    Span(at.0).as_secs_f64()
}

fn when(m: &Moment) -> TimedEvent {
    TimedEvent { what: m.what.to_string(), time_s: seconds(m.at), cwnd_bytes: m.cwnd.0 }
}

fn would(o: &StartupResult) -> StartupRow {
    StartupRow {
        startup: o.label.clone(),
        exit: o.exit.as_ref().map(when),
        class: o.class,
        valid_until_s: o.prediction.valid_until.map(seconds),
        rule: o.prediction.rule.map(|(_, m)| when(&m)),
        phases: o.prediction.changes.iter().map(when).collect(),
    }
}

impl Transfer {
    /// A row without findings.
    pub fn new(source: &str, connection: u64, mss: Bytes) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            source: source.to_string(),
            connection,
            from: String::new(),
            to: String::new(),
            vantage: Vantage::Sender.name().to_string(),
            start_s: 0.0,
            duration_s: 0.0,
            bytes: 0,
            mss_bytes: mss.0,
            iw_bytes: 0,
            handshake_rtt_s: None,
            min_rtt_s: None,
            peak_delay_s: None,
            packets: 0,
            retransmitted_packets: 0,
            spurious_packets: 0,
            reordered_packets: 0,
            marked_packets: 0,
            mark_echoes: 0,
            unseen_bytes: 0,
            delayed_acks: None,
            super_segment: 1,
            exit: None,
            unclear: None,
            class: Class::None,
            heuristic: "throughput".to_string(),
            capacity_time_s: None,
            capacity_by_latency_s: None,
            capacity_by_throughput_s: None,
            median_bps: None,
            first_loss_time_s: None,
            cost_s: None,
            held: Vec::new(),
            startups: Vec::new(),
            fork: None,
            caveats: Vec::new(),
        }
    }

    /// The end of slow start, or why none is claimed.
    pub fn observe(&mut self, observed: Result<ExitEstimate, NoExit>) {
        self.exit = observed.ok().map(|f| ExitRecord {
            time_s: seconds(f.at),
            cwnd_bytes: f.cwnd.0,
            evidence: f.evidence.words().to_string(),
        });
        self.unclear = observed.err().map(|u| u.words().to_string());
    }

    /// With what was found.
    #[must_use]
    pub fn with(mut self, f: &Findings) -> Self {
        self.observe(f.observed);
        self.duration_s = seconds(f.last);
        self.bytes = f.delivered.0;
        self.iw_bytes = f.iw.0;
        self.min_rtt_s = f.min_rtt.map(Span::as_secs_f64);
        self.peak_delay_s = f.min_rtt.zip(f.max_rtt).map(|(least, most)| (most - least).as_secs_f64());
        self.class = f.class;
        self.heuristic = f.heuristic.to_string();
        self.capacity_time_s = f.capacity.map(seconds);
        self.capacity_by_latency_s = f.by_latency.map(seconds);
        self.capacity_by_throughput_s = f.by_throughput.map(seconds);
        self.median_bps = f.median_bps;
        self.first_loss_time_s = f.first_loss.map(seconds);
        self.cost_s = f.cost_s();
        let held = |(by, from, until): &Period| LimitPeriod {
            what: by.words().to_string(),
            from_s: seconds(*from),
            until_s: seconds(*until),
        };
        self.held = f.periods.iter().map(held).collect();
        self.startups = f.startups.iter().map(would).collect();
        self
    }
}

fn address(end: (u128, u16)) -> String {
    SocketAddr::new(Ipv6Addr::from_bits(end.0).to_canonical(), end.1).to_string()
}

/// The rows of a connection that is over, with the findings they are from: one each way that has data.
pub fn of(mut c: Connection) -> Vec<(Transfer, Findings)> {
    let senders: Vec<_> = c.directions.iter_mut().map(|w| w.sender.take()).collect();
    let mut rows = Vec::new();
    for (from, sender) in senders.into_iter().enumerate() {
        let Some(sender) = sender else { continue };
        let (way, n, mss) = (&c.directions[from], sender.counters, sender.mss());
        let told = (!way.syn_seen()).then_some(Err(NoExit::BeganBefore));
        let findings = sender.analysis.finish(told);
        let mut t = Transfer::new("capture", c.number, mss).with(&findings);
        (t.from, t.to) = (address(c.ends[from]), address(c.ends[1 - from]));
        t.vantage = way.vantage.name().to_string();
        t.start_s = c.start as f64 / 1e9;
        t.handshake_rtt_s = c.handshake.map(Span::as_secs_f64);
        (t.packets, t.retransmitted_packets) = (n.packets, n.retransmitted);
        (t.spurious_packets, t.reordered_packets) = (n.spurious, n.reordered);
        (t.marked_packets, t.mark_echoes) = (n.marked, n.echoes);
        t.unseen_bytes = n.unseen;
        t.super_segment = n.super_segment.max(1);
        t.delayed_acks = (n.acks > 0).then(|| n.acks_of_several as f64 / n.acks as f64);
        t.caveats = caveats(&c, from, &t, n.acks);
        rows.push((t, findings));
    }
    rows
}

fn caveats(c: &Connection, from: usize, t: &Transfer, acks: u64) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |when: bool, what: &str| {
        if when {
            all.push(what.to_string());
        }
    };
    let vantage = c.directions[from].vantage;
    say(
        !c.directions[from].syn_seen(),
        "the connection began before the capture: its slow start was not seen",
    );
    say(
        c.directions[from].syn_seen() && c.handshake.is_none(),
        "the handshake is not whole: taken for the sender's side",
    );
    say(vantage == Vantage::Middle, "captured on the way: round trips are those from there to the receiver");
    say(
        vantage == Vantage::Receiver && !c.timestamps,
        "at the receiver's side and without timestamps: the handshake's round trip stands for all, delays are not seen",
    );
    say(
        vantage == Vantage::Receiver && c.timestamps,
        "at the receiver's side: times are its own, to the tick of the timestamps",
    );
    say(
        vantage != Vantage::Receiver && t.unseen_bytes > 0,
        "the capture missed packets that were acknowledged",
    );
    say(acks == 0, "no acknowledgement was captured: nothing can be said of the path");
    say(c.doubled > 0, "packets that were captured twice were counted once");
    say(
        c.directions[from].syn_seen() && !c.ecn && t.marked_packets > 0,
        "the network marked packets, but the ends had not agreed that marks mean anything (RFC 3168)",
    );
    say(c.backwards > 0, "times run backwards in places: the later one was taken");
    say(c.silent, "silent for more than ten minutes, or a time that is damaged: what came after is left out");
    say(c.syn_losses() > 0, "a handshake packet was sent again");
    all
}
