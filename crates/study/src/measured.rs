//! What a run observed of one flow, whatever ran it, and the row that follows from it.
//!
//! Each engine fills in [`Measured`]; [`Row::new`] alone computes class, goodput and caveats from it, so that
//! a field of a row means the same whatever engine it came from. `None` is what an engine does not observe,
//! or what did not happen where the field says so.

use crate::record::{
    Class, Connection, Cost, ExitRow, HANDSHAKE_FAILED, Limits, LinkRow, LostBy, Marks, Objects, Others,
    Param, Row, SCHEMA,
};
use crate::scenario::{Contender, Study};
use slowstart::control::Exited;
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart_sim::path::{AtLink, LinkFacts, PathFacts, PathSpec};
use slowstart_sim::trace::MILESTONES;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The name of the simulator as an engine.
pub const SIMULATOR: &str = "sim";

/// The caveat of a run on the real clock for which the machine was too busy.
pub const INVALID: &str = "Run invalid: the machine was too busy: more than 1 % of packets were released over 1 ms late, the path stood still for over 1 % of the run, or an end waited for a processor for over 10 % of the run.";

/// What the caveat of a run begins with that ended because a controller in a library broke a rule.
pub const BROKEN: &str = "the run ended, since its controller broke a rule";

/// Which flow of which run it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// `sim`, `quic` or `kernel`.
    pub engine: &'static str,
    /// The name of the path.
    pub path: String,
    /// The stack, with its settings.
    pub profile: String,
    /// The name of the startup in the registry.
    pub startup: String,
    /// The parameters of the startup; times are in seconds.
    pub params: BTreeMap<String, Param>,
    /// Settings of the stack that the startup has besides those of `profile`.
    pub settings: BTreeMap<String, String>,
    /// The avoidance's name, if one follows.
    pub avoidance: Option<String>,
    /// Size of the transfer, if it has one.
    pub size_bytes: Option<u64>,
    /// Which flow of the run.
    pub flow: u32,
    /// Which run of the study.
    pub run: u32,
    /// The seed of the run.
    pub seed: u64,
}

impl Identity {
    /// The first flow of a run of `study`, with this contender.
    pub fn new(engine: &'static str, study: &Study, contender: &Contender, run: u32, seed: u64) -> Self {
        Self {
            engine,
            path: study.path.name.clone(),
            profile: study.profile_label.clone(),
            startup: contender.startup_name.clone(),
            params: contender.params.clone(),
            settings: contender.settings(),
            avoidance: contender.avoidance_name.clone(),
            size_bytes: study.size,
            flow: 0,
            run,
            seed,
        }
    }
}

/// A full packet of a flow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PacketSize {
    /// Bytes that count for the congestion window: the payload of TCP, the UDP payload of QUIC.
    pub payload: u64,
    /// Bytes of the IP packet.
    pub wire: u64,
}

/// How a startup ended, as observed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MeasuredExit {
    /// The name of the reason (`slowstart::step::Exit::name`).
    pub reason: &'static str,
    /// True for a loss, a mark, a timeout or a stall of the host's own queue.
    pub by_congestion: bool,
    /// When the reason was seen, since the flow began.
    pub detected: Span,
    /// When the startup left: later, if it drained first.
    pub left: Span,
    /// The window when the reason was seen, before anything was done about it.
    pub detected_cwnd: Bytes,
    /// The window at the moment it left, before the reduction that the reason brings; `None` if only the one
    /// after it was seen.
    pub before: Option<Bytes>,
    /// The window that it left with, after that reduction: the threshold for a loss or a mark, one packet for
    /// a timeout.
    pub after: Bytes,
    /// Bytes in flight when it left.
    pub inflight: Bytes,
}

impl MeasuredExit {
    /// An exit as a controller of this project reports it, of a flow that began at `start`.
    pub fn of(e: &Exited, start: Instant) -> Self {
        Self {
            reason: e.why.name(),
            by_congestion: e.why.by_congestion(),
            detected: e.detected_at.since(start),
            left: e.at.since(start),
            detected_cwnd: e.detected_cwnd,
            before: (e.at == e.detected_at).then_some(e.detected_cwnd),
            after: e.exit_cwnd,
            inflight: e.inflight,
        }
    }
}

impl From<MeasuredExit> for ExitRow {
    fn from(e: MeasuredExit) -> Self {
        Self {
            reason: e.reason.to_string(),
            time_s: e.detected.as_secs_f64(),
            left_s: e.left.as_secs_f64(),
            detected_cwnd_bytes: e.detected_cwnd.0,
            cwnd_bytes: e.after.0,
            inflight_bytes: e.inflight.0,
        }
    }
}

/// When a startup saw its reason to end, on any clock, and whether that reason was congestion.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Ended<T> {
    /// When the reason was seen.
    pub at: T,
    /// True for a loss, a mark, a timeout or a stall of the host's own queue; false for a rule of the
    /// startup.
    pub by_congestion: bool,
}

impl From<&Exited> for Ended<Instant> {
    fn from(e: &Exited) -> Self {
        Self { at: e.detected_at, by_congestion: e.why.by_congestion() }
    }
}

/// Classifies the end of a startup, given when the path was first full and when the sender first knew of a
/// loss.
///
/// [`Class`] says what each means. Capacity is reached when the data in flight first fills the path.
///
/// All times are on one clock: the simulator passes [`Instant`]s, other users seconds.
pub fn class<T: PartialOrd>(exit: Option<Ended<T>>, capacity: Option<T>, first_loss: Option<T>) -> Class {
    let Some(exit) = exit else { return Class::None };
    if capacity.is_none_or(|c| exit.at < c) {
        Class::Early
    } else if exit.by_congestion || first_loss.is_some_and(|l| exit.at >= l) {
        Class::Late
    } else {
        Class::LinkFull
    }
}

/// `tcp_ca_state` of a sender that reduced its window for a mark, or for a loss that a probe repaired; above it, of one
/// that repairs losses.
pub const CWR: u32 = 2;

/// The record with which the sender of a kernel first knew of a loss: when it began a recovery that was not undone, or
/// reduced its window for a loss that a probe had repaired. A recovery was undone if the threshold is then as before.
/// `of` tells of a record `tcp_ca_state`, the threshold, and the number of segments sent again.
pub fn first_loss<T>(records: &[T], of: impl Fn(&T) -> (u32, u32, u32)) -> Option<&T> {
    let mut begun = None;
    let (mut before, mut resent) = (u32::MAX, 0);
    for record in records {
        let (state, ssthresh, retransmitted) = of(record);
        match state {
            ..CWR if begun.is_some() && ssthresh != before => return begun,
            ..CWR => (begun, before, resent) = (None, ssthresh, retransmitted),
            CWR if retransmitted > resent => return Some(record),
            CWR => {}
            _ => begun = begun.or(Some(record)),
        }
    }
    begun
}

/// What a run observed of one flow. Times are since the flow began.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The size of a full packet.
    pub packet: PacketSize,
    /// Initial window, bytes of payload.
    pub iw_bytes: Option<u64>,
    /// Rate and buffer of the path of this run.
    pub facts: PathFacts,
    /// Least round-trip time of this flow.
    pub base_rtt: Span,
    /// Values that this run drew for its path.
    pub drawn: BTreeMap<String, f64>,
    /// How long the flow was observed.
    pub lasted: Span,
    /// The end of the startup; `None` if it did not end.
    pub exit: Option<MeasuredExit>,
    /// Why the end of the startup cannot be observed, as a caveat; `None` if it can.
    pub exit_unknown: Option<&'static str>,
    /// When the data in flight first reached what the path held; `None` if it never did.
    pub capacity: Option<Span>,
    /// The class by the heuristic of the SEARCH thesis, if it has an answer.
    pub class_by_heuristic: Option<Class>,
    /// That heuristic's time of capacity.
    pub capacity_by_heuristic: Option<Span>,
    /// When the network first dropped a data packet; `None` if it dropped none.
    pub first_drop: Option<Span>,
    /// When the sender first knew of a loss or timed out; `None` if it did not.
    pub first_loss: Option<Span>,
    /// What the network marked; `None` if the ends do not use ECN.
    pub marks: Option<Marks>,
    /// The most bytes in flight.
    pub peak_inflight: Option<u64>,
    /// The longest wait at the bottleneck, which may be the sender's own interface.
    pub peak_queue_delay: Option<Span>,
    /// The longest wait at the bottleneck of a packet sent before the startup ended.
    pub startup_queue_delay: Option<Span>,
    /// Data packets dropped of those sent before the startup left.
    pub startup_lost: Option<u64>,
    /// Data packets that the network dropped.
    pub lost: Option<u64>,
    /// These by cause.
    pub lost_by: Option<LostBy>,
    /// What each link of a path of several did to the data; empty on a path of one link, or if the engine does not tell
    /// them apart.
    pub links: Vec<LinkRow>,
    /// Packets that the sender sent again, by what it took for a loss.
    pub retransmitted: Option<u64>,
    /// Timeouts of the retransmission timer; for QUIC, episodes of persistent congestion.
    pub timeouts: Option<u64>,
    /// What limited the sender.
    pub limits: Option<Limits>,
    /// Bytes that the receiver's application got.
    pub delivered: u64,
    /// When the receiver had everything; `None` if it never had.
    pub completed: Option<Span>,
    /// When the receiver had the bytes of each of [`MILESTONES`].
    pub milestones: [Option<Span>; MILESTONES.len()],
    /// The objects of an application that asks for several.
    pub objects: Option<Objects>,
    /// The connections of a transfer that has several.
    pub connections: Vec<Connection>,
    /// The effect on the flows that were there before.
    pub others: Option<Others>,
    /// The work of the run.
    pub cost: Cost,
    /// Why an end closed the connection before the transfer was complete.
    pub closed: Option<String>,
    /// What a controller in a library did wrong, after which the run ended.
    pub broken: Option<String>,
    /// What else a reader of the row should know.
    pub caveats: Vec<String>,
}

impl LinkRow {
    /// The links of a path, and what each did to the data of a flow; empty if that is, as on a path of one link.
    pub fn all(path: &PathSpec, seen: &[AtLink]) -> Vec<Self> {
        let row = |(link, seen): (LinkFacts, &AtLink)| {
            Self::new(link, Some(seen.peak_queue_delay), LostBy::new(seen.dropped_by))
        };
        path.links().into_iter().zip(seen).map(row).collect()
    }

    /// A link, and the longest wait and the drops of data there.
    pub fn new(link: LinkFacts, peak_queue_delay: Option<Span>, lost_by: LostBy) -> Self {
        Self {
            rate_bps: link.rate.0,
            base_rtt_s: link.base_rtt.as_secs_f64(),
            buffer_bytes: link.buffer.map(|b| b.0),
            peak_queue_delay_s: peak_queue_delay.map(Span::as_secs_f64),
            lost_by,
        }
    }
}

impl Measured {
    /// Payload that fills the path without a queue, bytes.
    pub fn bdp(&self) -> u64 {
        self.facts.rate.over(self.base_rtt).scale(self.packet.payload, self.packet.wire).0
    }

    /// What the receiver's application got, over the time to completion or the end, bit/s.
    pub fn goodput(&self) -> u64 {
        Rate::new(Bytes(self.delivered), self.completed.unwrap_or(self.lasted)).map_or(0, |r| r.0)
    }

    /// The class of the exit.
    pub fn class(&self) -> Class {
        let ended = self.exit.map(|e| Ended { at: e.detected, by_congestion: e.by_congestion });
        class(ended, self.capacity, self.first_loss)
    }

    /// What a reader should know, the most important first.
    fn caveats(&self, has_size: bool) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(why) = &self.broken {
            all.push(format!("{BROKEN}: {why}"));
        } else if let Some(why) = &self.closed {
            all.push(format!("the stack closed the connection: {why}"));
        } else if has_size && self.completed.is_none() && !self.caveats.iter().any(|c| c == HANDSHAKE_FAILED)
        {
            all.push("the transfer did not complete within the time given".to_string());
        }
        if let Some(why) = self.exit_unknown {
            all.push(why.to_string());
        } else if self.exit.is_none() && self.completed.is_some() {
            all.push("the transfer ended before the startup did".to_string());
        }
        all.extend_from_slice(&self.caveats);
        all
    }
}

/// The commit of this program, for what it computes.
static COMMIT: OnceLock<&'static str> = OnceLock::new();

/// Says of which commit this program is, once, before it computes rows.
pub fn set_commit(commit: &'static str) {
    let _ = COMMIT.set(commit);
}

/// Returns the commit of this program, with `modified` after it if the checkout had changes; `None` if it is not known.
pub fn commit() -> Option<&'static str> {
    COMMIT.get().copied()
}

impl Row {
    /// The row of a flow: the only place where one is computed.
    pub fn new(identity: Identity, m: &Measured) -> Self {
        let seconds = |t: Option<Span>| t.map(Span::as_secs_f64);
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_string(),
            commit: commit().map(str::to_string),
            engine: identity.engine.to_string(),
            path: identity.path,
            profile: identity.profile,
            startup: identity.startup,
            params: identity.params,
            settings: identity.settings,
            avoidance: identity.avoidance,
            flow: identity.flow,
            run: identity.run,
            seed: identity.seed,
            iw_bytes: m.iw_bytes,
            size_bytes: identity.size_bytes,
            duration_s: m.lasted.as_secs_f64(),
            rate_bps: m.facts.rate.0,
            base_rtt_s: m.base_rtt.as_secs_f64(),
            bdp_bytes: m.bdp(),
            buffer_bytes: m.facts.buffer.map(|b| b.0),
            drawn: m.drawn.clone(),
            exit: m.exit.map(ExitRow::from),
            class: m.class(),
            class_by_heuristic: m.class_by_heuristic,
            capacity_time_s: seconds(m.capacity),
            capacity_time_by_heuristic_s: seconds(m.capacity_by_heuristic),
            first_drop_time_s: seconds(m.first_drop),
            first_loss_time_s: seconds(m.first_loss),
            marks: m.marks.clone(),
            peak_inflight_bytes: m.peak_inflight,
            peak_queue_delay_s: seconds(m.peak_queue_delay),
            startup_lost_packets: m.startup_lost,
            lost_packets: m.lost,
            lost_by: m.lost_by,
            links: m.links.clone(),
            retransmitted_packets: m.retransmitted,
            timeouts: m.timeouts,
            limits: m.limits,
            goodput_bps: m.goodput(),
            completion_s: seconds(m.completed),
            time_to_bytes_s: MILESTONES
                .iter()
                .zip(m.milestones)
                .map(|(b, at)| (b.to_string(), seconds(at)))
                .collect(),
            objects: m.objects.clone(),
            connections: m.connections.clone(),
            others: m.others.clone(),
            got_percent: None,
            cost: m.cost,
            caveats: m.caveats(identity.size_bytes.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::StudyText;
    use slowstart::step::Exit;

    /// A transfer that nothing was observed of but its path.
    fn nothing() -> Measured {
        let text = StudyText { path: "rate=12Mbit rtt=100ms queue=1bdp".into(), ..StudyText::default() };
        let facts = Study::check(&text, None).expect("a study").path.facts();
        Measured {
            packet: PacketSize { payload: 1448, wire: 1500 },
            iw_bytes: Some(14_480),
            facts,
            base_rtt: facts.base_rtt,
            drawn: BTreeMap::new(),
            lasted: Span::secs(2),
            exit: None,
            exit_unknown: None,
            capacity: None,
            class_by_heuristic: None,
            capacity_by_heuristic: None,
            first_drop: None,
            first_loss: None,
            marks: None,
            peak_inflight: None,
            peak_queue_delay: None,
            startup_queue_delay: None,
            startup_lost: None,
            lost: None,
            lost_by: None,
            links: Vec::new(),
            retransmitted: None,
            timeouts: None,
            limits: None,
            delivered: 1_000_000,
            completed: None,
            milestones: [None; MILESTONES.len()],
            objects: None,
            connections: Vec::new(),
            others: None,
            cost: Cost::default(),
            closed: None,
            broken: None,
            caveats: vec!["last".into()],
        }
    }

    fn row(m: &Measured) -> Row {
        let identity = Identity {
            engine: "sim",
            path: "a path".into(),
            profile: "a stack".into(),
            startup: "search".into(),
            params: BTreeMap::new(),
            settings: BTreeMap::new(),
            avoidance: None,
            size_bytes: Some(2_000_000),
            flow: 0,
            run: 3,
            seed: 7,
        };
        Row::new(identity, m)
    }

    #[test]
    fn figures_follow_from_what_was_observed() {
        let r = row(&nothing());
        assert_eq!((r.goodput_bps, r.bdp_bytes, r.class), (4_000_000, 144_800, Class::None));
        assert_eq!(r.caveats, ["the transfer did not complete within the time given", "last"]);
        let exit = MeasuredExit {
            reason: "loss",
            by_congestion: true,
            detected: Span::secs(1),
            left: Span::secs(1),
            detected_cwnd: Bytes(200_000),
            before: Some(Bytes(200_000)),
            after: Bytes(140_000),
            inflight: Bytes(190_000),
        };
        let capacity = Some(Span::millis(500));
        let m = Measured { exit: Some(exit), capacity, completed: Some(Span::secs(1)), ..nothing() };
        let r = row(&m);
        assert_eq!((r.goodput_bps, r.class), (8_000_000, Class::Late));
        let exit = r.exit.expect("an exit");
        assert_eq!((exit.detected_cwnd_bytes, exit.cwnd_bytes), (200_000, 140_000), "before and after");
        assert_eq!(r.caveats, ["last"]);
    }

    #[test]
    fn a_connection_that_the_stack_closed_says_so_first_and_not_that_time_was_short() {
        let r = row(&Measured { closed: Some("a frame was wrong".into()), ..nothing() });
        assert_eq!(r.caveats, ["the stack closed the connection: a frame was wrong", "last"]);
    }

    #[test]
    fn an_end_that_cannot_be_seen_is_not_told_as_one_that_never_came() {
        let completed = Some(Span::secs(1));
        let r = row(&Measured { exit_unknown: Some("nobody tells"), completed, ..nothing() });
        assert_eq!(r.caveats, ["nobody tells", "last"]);
        let r = row(&Measured { completed, ..nothing() });
        assert_eq!(r.caveats, ["the transfer ended before the startup did", "last"]);
    }

    #[test]
    fn classes() {
        let at = |s: u64| Instant(s * 1_000_000_000);
        let exit = |why, s| Exited {
            why,
            at: at(s),
            detected_at: at(s),
            detected_cwnd: Bytes(1),
            exit_cwnd: Bytes(1),
            inflight: Bytes(1),
        };
        let rule = exit(Exit::Delay, 5);
        let loss = exit(Exit::Loss, 5);
        assert_eq!(class::<Instant>(None, None, None), Class::None);
        assert_eq!(class(Some(Ended::from(&rule)), None, None), Class::Early);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(6)), None), Class::Early);
        assert_eq!(class(Some(Ended::from(&loss)), Some(at(6)), Some(at(5))), Class::Early);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(4)), None), Class::LinkFull);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(4)), Some(at(6))), Class::LinkFull);
        assert_eq!(class(Some(Ended::from(&rule)), Some(at(4)), Some(at(5))), Class::Late);
        assert_eq!(class(Some(Ended::from(&loss)), Some(at(4)), Some(at(5))), Class::Late);
        // Any clock will do, and a class does not depend on it.
        let left = |at, by_congestion| Some(Ended { at, by_congestion });
        assert_eq!(class(left(5.0, false), Some(4.0), Some(6.0)), Class::LinkFull);
        assert_eq!(class(left(5.0, true), Some(4.0), None), Class::Late);
    }
}
