//! Analyses a sender's events: the end of its slow start, the path's capacity, and what each startup would
//! have done.

mod findings;

pub use findings::{Findings, StartupResult};

use crate::capacity::{CapacityEstimate, DelayHeuristic, OneWayDelay, ThroughputBins};
use crate::filled::{Filling, Seen};
use crate::infer::{Evidence, ExitEstimate, Inference, LimitedBy, NoExit, Round};
use crate::naming::{self, Suspects};
use crate::observer::{Candidate, Observer, Prediction};
use crate::own::OwnFacts;
use crate::packets::PacketLog;
use crate::transfer::ExitClass;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent, Signal};
use slowstart_study::record::Class;
use slowstart_study::stats;
use std::sync::Arc;

/// Packets kept until the first ACK shows the initial window.
const FIRST_FLIGHT: usize = 1024;
/// Round trips after the end of a prediction's validity in which a loss may still turn out to be spurious.
const SPURIOUS: u32 = 4;
/// Offset added to the time that startups see when their state is kept for `--fork`: the simulator needs time
/// for a handshake before time zero. No startup may depend on absolute time (tested in `crates/slowstart`).
pub const EPOCH: Span = Span::secs(1000);
/// Silence with nothing in flight that counts as idle (the minimum RTO of Linux).
const IDLE: Span = Span::millis(200);
/// Periods kept in which something other than cwnd limited the sender.
const PERIODS: usize = 256;
/// Snapshots kept for charts.
const SNAPSHOTS: usize = 4000;

/// A sender that cwnd limits answers an ACK within the minimum RTT divided by this.
const QUIET: u64 = 16;
/// The share of the window, and the number of segments, that a sender limited by cwnd may hold back for a
/// burst (`tcp_tso_should_defer`: up to a third).
const SLACK: u64 = 3;
const SLACK_LEAST: u64 = 4;

/// Facts of a connection before its first event.
pub fn facts(mss: Bytes) -> Facts {
    let mut f = Facts::new(mss, mss * 10);
    f.pacing_on = true;
    f.gso_max = Bytes(65_536);
    f.supports_pacing = true;
    f
}

/// The state of a connection at one moment, for charts.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Time since the connection's first packet.
    pub at: Instant,
    /// Bytes sent that are neither acknowledged nor deemed lost.
    pub inflight: Bytes,
    /// The newest RTT sample.
    pub rtt: Option<Span>,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// The window of each startup, in the order of the candidates.
    pub windows: Vec<Bytes>,
}

/// A period in which something other than cwnd limited the sender: by what, its begin and its end.
pub type Period = (LimitedBy, Instant, Instant);

/// What is kept of a connection besides its row: each costs memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// True to keep snapshots for charts.
    pub snapshots: bool,
    /// Every packet sent and every ACK, from which [`crate::fit`] makes a path.
    pub packets: bool,
    /// The state of each startup at the end of its prediction, for [`crate::fork`].
    pub fork_states: bool,
}

impl Keep {
    /// True if findings are wanted with the row.
    pub const fn any(self) -> bool {
        self.snapshots || self.packets || self.fork_states
    }
}

/// Facts known before the first event.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The initial window, if the file states it; otherwise it is taken from the first flight.
    pub iw: Option<Bytes>,
    /// True if a startup's window grows only when it was used. False for kernel logs, which state what was
    /// acknowledged and nothing else.
    pub gated: bool,
    /// How the connection was established.
    pub handshake: Handshake,
    /// What is kept besides the findings.
    pub keep: Keep,
}

/// What of the window was in flight when the sender had nothing to wait for but ACKs.
#[derive(Clone, Debug, Default)]
struct Usage {
    /// The newest event, and what was in flight after it.
    at: Instant,
    inflight: Bytes,
    /// When the newest packet was sent.
    sent_at: Instant,
    /// Bytes acknowledged since the last quiet time.
    acked: Bytes,
    /// Bytes acknowledged in this round trip, and those of them after which less than the window was in
    /// flight.
    all: Bytes,
    unused: Bytes,
}

/// Analysis of one connection in one direction, fed event by event.
#[derive(Clone, Debug)]
pub struct Analysis {
    setup: Setup,
    candidates: Arc<[Candidate]>,
    waiting: Vec<(Facts, Sent)>,
    begun: bool,
    iw: Bytes,
    /// Startups that are still observed, by their index among the candidates; those that ended are in
    /// `finished`. Few are touched for each packet, which matters with thousands of connections.
    observers: Vec<(usize, Observer)>,
    finished: Vec<(usize, Prediction)>,
    /// Startups that may be the sender's.
    suspects: Suspects,
    infer: Inference,
    filling: Filling,
    /// True if losses were being repaired when the round trip began.
    recovering: bool,
    /// The least and the greatest RTT sample of the round trip.
    least_rtt: Option<Span>,
    most_rtt: Span,
    /// When the round trip began, and what ends it when it is acknowledged: anything at all ends the first,
    /// since the whole first flight may be one super-segment.
    round: Option<(Instant, Option<SendOrder>)>,
    peak: Bytes,
    peak_before: Bytes,
    /// The most in flight since the connection began; `None` until a packet is sent.
    most: Option<Bytes>,
    /// `full`: the last packet filled the receive window. `peer`: a packet of this round trip did.
    full: bool,
    peer: bool,
    application: bool,
    short: bool,
    usage: Usage,
    throughput: ThroughputBins,
    latency: DelayHeuristic,
    /// At the receiver, arrivals measure the path, not acknowledgements.
    arrivals: Option<OneWayDelay>,
    first_loss: Option<Instant>,
    periods: Vec<Period>,
    packets: PacketLog,
    snapshots: Vec<Snapshot>,
    stride: u32,
    skipped: u32,
    last: Instant,
    /// The newest RTT sample; zero before the first.
    rtt: Span,
    min_rtt: Option<Span>,
    max_rtt: Option<Span>,
    rtt_before_loss: Option<Span>,
    delivered: Bytes,
}

impl Analysis {
    /// An analysis before the first event.
    pub fn new(setup: Setup, candidates: &Arc<[Candidate]>) -> Self {
        Self {
            iw: setup.iw.unwrap_or(setup.mss * 10),
            setup,
            candidates: Arc::clone(candidates),
            waiting: Vec::new(),
            begun: false,
            observers: Vec::new(),
            finished: Vec::new(),
            suspects: Suspects::default(),
            infer: Inference::default(),
            filling: Filling::default(),
            recovering: false,
            least_rtt: None,
            most_rtt: Span::ZERO,
            round: None,
            peak: Bytes::ZERO,
            peak_before: Bytes::ZERO,
            most: None,
            full: false,
            peer: false,
            application: false,
            short: false,
            usage: Usage::default(),
            throughput: ThroughputBins::default(),
            latency: DelayHeuristic::default(),
            arrivals: None,
            first_loss: None,
            periods: Vec::new(),
            packets: PacketLog::default(),
            snapshots: Vec::new(),
            stride: 1,
            skipped: 0,
            last: Instant::ZERO,
            rtt: Span::ZERO,
            min_rtt: None,
            max_rtt: None,
            rtt_before_loss: None,
            delivered: Bytes::ZERO,
        }
    }

    /// Starts the observers, once the initial window is known.
    fn begin(&mut self) {
        self.begun = true;
        let Some((first, _)) = self.waiting.first() else { return };
        let mss = self.setup.mss;
        self.iw = self.setup.iw.unwrap_or_else(|| {
            // Whole segments. A first flight that ended for lack of data does not show the window: RFC 6928's
            // ten is assumed.
            let flight = mss * self.waiting.iter().map(|w| w.1.inflight.0).max().unwrap_or(0).div_ceil(mss.0);
            if self.short { flight.max(mss * 10) } else { flight.max(mss) }
        });
        let f = self.for_startup(first);
        let (handshake, keeps) = (&self.setup.handshake, self.setup.keep.fork_states);
        let watcher = |c: &Candidate| Observer::new(c, &f, handshake, keeps);
        self.observers = self.candidates.iter().map(watcher).enumerate().collect();
        if self.setup.gated {
            self.suspects = Suspects::new(&f, handshake);
        }
        for (f, s) in std::mem::take(&mut self.waiting) {
            self.pass_sent(&f, &s);
        }
    }

    fn pass_sent(&mut self, f: &Facts, s: &Sent) {
        let (mut own, s) = (OwnFacts::from(self.for_startup(f)), self.sent_for_startup(s));
        self.each_observer(|w| w.on_sent(&mut own, &s));
        self.suspects.each(|t| t.on_sent(&mut own, &s));
    }

    fn epoch(&self) -> Span {
        if self.setup.keep.fork_states { EPOCH } else { Span::ZERO }
    }

    /// The facts with the initial window and on the clock that startups see.
    fn for_startup(&self, f: &Facts) -> Facts {
        let mut f = *f;
        (f.iw, f.now) = (self.iw, f.now + self.epoch());
        f
    }

    fn sent_for_startup(&self, s: &Sent) -> Sent {
        let epoch = self.epoch();
        Sent {
            at: s.at + epoch,
            delivered_at: s.delivered_at + epoch,
            first_sent_at: s.first_sent_at + epoch,
            ..*s
        }
    }

    /// Passes an event to every startup that is still observed.
    fn each_observer(&mut self, mut event: impl FnMut(&mut Observer)) {
        let mut over = false;
        for (_, w) in &mut self.observers {
            event(w);
            over |= w.done();
        }
        if over {
            let done = self.observers.extract_if(.., |(_, w)| w.done());
            self.finished.extend(done.map(|(i, w)| (i, w.prediction)));
            self.observers.shrink_to_fit();
        }
    }

    /// Measures arrivals as well. `syn` is the arrival of the sender's SYN and its timestamp value.
    pub fn at_receiver(&mut self, syn: Option<(Instant, u32)>) {
        self.arrivals = Some(OneWayDelay::new(syn));
    }

    /// At the receiver: `bytes` arrived, new or again, with this timestamp value.
    pub fn arrived(&mut self, now: Instant, bytes: Bytes, timestamp: Option<u32>) {
        self.throughput.add(now, bytes);
        let Some(offset) = &mut self.arrivals else { return };
        let late = timestamp.and_then(|t| offset.above(now, t));
        let least = self.min_rtt.into_iter().chain(self.setup.handshake.rtt).min();
        if let (Some(late), Some(least)) = (late, least) {
            self.latency.add(now, late, least);
        }
    }

    /// A packet was sent. `short` is true if it was less than a full segment, so the application had no more
    /// data.
    pub fn sent(&mut self, f: &Facts, s: &Sent, short: bool) {
        if s.inflight <= s.bytes && f.now.since(self.last) > IDLE && self.begun {
            self.limited(LimitedBy::Idle, self.last, f.now);
        }
        self.application |= !s.retransmission && self.waits(f);
        self.last = f.now;
        self.round.get_or_insert((f.now, None));
        self.full = s.inflight + f.mss > f.rwnd;
        self.peer |= self.full;
        self.short = short;
        self.usage.sent_at = f.now;
        self.count_use(f, Bytes::ZERO, s.inflight);
        self.peak = self.peak.max(s.inflight);
        self.most = self.most.max(Some(s.inflight));
        if !s.retransmission {
            self.infer.on_sent(f.now, s.inflight, s.bytes, self.rtt, f.mss);
        }
        if self.begun {
            self.pass_sent(f, s);
        } else {
            self.waiting.push((*f, *s));
            if self.waiting.len() >= FIRST_FLIGHT {
                self.begin();
            }
        }
    }

    /// An ACK arrived. `f` are the facts before anything was sent in response.
    pub fn ack(&mut self, f: &Facts, a: &Ack) {
        self.last = f.now;
        self.count_use(f, a.delivered, f.inflight);
        if !self.begun {
            self.begin();
        }
        if let (Some(rtt), Some(least)) = (a.rtt, f.min_rtt) {
            if self.arrivals.is_none() {
                self.latency.add(f.now, rtt - least, least);
            }
            (self.rtt, self.min_rtt) = (rtt, Some(least));
            self.most_rtt = self.most_rtt.max(rtt);
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |l| l.min(rtt)));
            self.max_rtt = Some(self.max_rtt.map_or(rtt, |m| m.max(rtt)));
        }
        if a.delivered > Bytes::ZERO {
            if self.arrivals.is_none() {
                self.throughput.add(f.now, a.delivered);
            }
            self.delivered = f.delivered;
            if self.setup.keep.packets {
                self.packets.acked(f.now, f.delivered, a.rtt);
            }
            // An ACK that arrives when there is no more data, or no space in the receive window, allows no
            // new packet.
            if !self.short && !self.full {
                self.infer.on_ack(f.now, a.delivered);
            }
        }
        // The application limits: half of the flight is acknowledged, nothing was sent, and the last packet
        // was not full.
        self.application |= self.short && f.inflight < self.peak / 2;
        let used = self.setup.gated.then_some(self.peak.max(self.peak_before));
        let (mut own, mut ack) = (OwnFacts::from(self.for_startup(f)), *a);
        ack.newest = self.sent_for_startup(&a.newest);
        self.each_observer(|w| w.on_ack(&mut own, &mut ack, used));
        let used = self.peak.max(self.peak_before);
        self.suspects.each(|t| t.on_ack(&mut own, &mut ack, used));
        if let Some((start, end)) = self.round
            && end.map_or(a.delivered > Bytes::ZERO, |end| a.upto >= end)
        {
            self.round_over(f, start);
        }
        if self.setup.keep.snapshots {
            self.snapshot(f, a);
        }
    }

    /// True if the newest packet was short, and nothing has been sent since although less than the window is
    /// in flight: the sender had no more data.
    fn waits(&self, f: &Facts) -> bool {
        let quiet = f.min_rtt.is_some_and(|rtt| f.now.since(self.usage.sent_at) > rtt / QUIET);
        self.short && quiet && f.inflight + f.mss < self.peak.max(self.peak_before)
    }

    /// Counts whether the sender answers ACKs. One that cwnd limits answers at once with as much as it may
    /// send; one whose application or send buffer limits it lets ACKs pass, and less than the window is in
    /// flight until something is written. Called at each event, before it counts.
    fn count_use(&mut self, f: &Facts, acked: Bytes, inflight: Bytes) {
        let u = &mut self.usage;
        let quiet = f.min_rtt.is_some_and(|rtt| f.now.since(u.at) > rtt / QUIET);
        if quiet && u.acked > Bytes::ZERO {
            let most = self.peak.max(self.peak_before);
            u.all += u.acked;
            if u.inflight + (f.mss * SLACK_LEAST).max(most / SLACK) < most {
                u.unused += u.acked;
            }
            u.acked = Bytes::ZERO;
        }
        u.acked = if f.in_recovery { Bytes::ZERO } else { u.acked + acked };
        (u.at, u.inflight) = (f.now, inflight);
    }

    fn round_over(&mut self, f: &Facts, start: Instant) {
        self.application |= self.usage.unused > self.usage.all / 2;
        let limited_by = if self.peer {
            LimitedBy::ReceiveWindow
        } else if self.application {
            LimitedBy::Application
        } else {
            LimitedBy::Cwnd
        };
        let recovering = self.recovering || f.in_recovery;
        self.infer.on_round(&Round { start, peak: self.peak, limited_by, recovering }, f.mss);
        let usable = limited_by == LimitedBy::Cwnd && !recovering;
        let seen = Seen {
            start,
            end: f.now,
            flight: self.peak,
            delivered: f.delivered,
            least_rtt: self.least_rtt.take().unwrap_or_default(),
            most_rtt: std::mem::take(&mut self.most_rtt),
            usable,
        };
        self.filling.add(seen);
        self.suspects.each(|t| t.on_round(&seen, f.mss));
        self.recovering = f.in_recovery;
        if limited_by != LimitedBy::Cwnd {
            self.limited(limited_by, start, f.now);
        }
        let (peak, gated) = (self.peak, self.setup.gated);
        let by_cwnd = limited_by == LimitedBy::Cwnd && self.first_loss.is_none();
        let facts = self.for_startup(f);
        self.each_observer(|w| {
            w.on_round(&facts, start, peak, by_cwnd);
            if gated {
                w.stop_after(SPURIOUS);
            }
        });
        self.round = Some((f.now, Some(f.next.max(SendOrder::new(1)))));
        self.peak_before = self.peak;
        (self.peak, self.peer, self.application) = (f.inflight, false, false);
        (self.usage.all, self.usage.unused) = (Bytes::ZERO, Bytes::ZERO);
    }

    /// Records a period in which something other than cwnd limited the sender.
    fn limited(&mut self, by: LimitedBy, from: Instant, until: Instant) {
        if let Some(p) = self.periods.last_mut().filter(|p| p.0 == by && p.2 >= from) {
            p.2 = until;
        } else if self.periods.len() < PERIODS {
            self.periods.push((by, from, until));
        }
    }

    fn snapshot(&mut self, f: &Facts, a: &Ack) {
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        if self.snapshots.len() >= SNAPSHOTS {
            let mut n = 0;
            self.snapshots.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.stride *= 2;
        }
        let mut windows = vec![Bytes::ZERO; self.candidates.len()];
        self.each_prediction(|i, o| {
            if let Some(window) = windows.get_mut(i) {
                *window = o.cwnd;
            }
        });
        let (inflight, delivered) = (a.prior_inflight, f.delivered);
        self.snapshots.push(Snapshot { at: f.now, inflight, rtt: a.rtt, delivered, windows });
    }

    /// Calls `each` with every prediction and the index of its candidate.
    fn each_prediction(&self, mut each: impl FnMut(usize, &Prediction)) {
        self.observers.iter().for_each(|(i, w)| each(*i, &w.prediction));
        self.finished.iter().for_each(|(i, o)| each(*i, o));
    }

    /// The sender detected a loss, or an ECN mark.
    pub fn loss(&mut self, f: &Facts, c: &Congestion) {
        if !self.begun {
            self.begin();
        }
        let evidence = match c.signal {
            Signal::Timeout => Evidence::Timeout,
            Signal::Ecn => Evidence::Mark,
            _ => Evidence::Loss,
        };
        self.infer.on_loss(f.now, evidence, self.short || self.full);
        if self.first_loss.is_none() && evidence != Evidence::Mark {
            (self.first_loss, self.rtt_before_loss) = (Some(f.now), self.max_rtt);
        }
        let (mut own, mut congestion) = (OwnFacts::from(self.for_startup(f)), *c);
        congestion.newest = self.sent_for_startup(&c.newest);
        self.suspects.each(|t| t.on_congestion(&mut own, &congestion));
        self.each_observer(|w| {
            w.on_congestion(&mut own, &congestion);
            // From here on the sender's window, and what it sends, differs from the startup's.
            w.prediction.valid_until = w.prediction.valid_until.or(Some(f.now));
        });
    }

    /// At the receiver: this much was in flight when the sender detected the loss.
    pub fn window_at_loss(&mut self, window: Bytes) {
        self.infer.window_at_loss(window);
    }

    /// The loss was spurious: everything retransmitted had arrived.
    pub fn undone(&mut self, f: &Facts) {
        self.infer.on_undone();
        let since = self.first_loss.take();
        self.rtt_before_loss = None;
        let facts = self.for_startup(f);
        self.suspects.undone();
        self.each_observer(|w| {
            w.on_undone(&facts, &Recovery::new(Bytes::ZERO, true));
            if w.prediction.valid_until == since {
                w.prediction.valid_until = None;
            }
        });
    }

    /// The log of what is sent, if one is kept: whoever reads the events adds packets and losses to it, by
    /// their offsets.
    pub fn packets(&mut self) -> Option<&mut PacketLog> {
        self.setup.keep.packets.then_some(&mut self.packets)
    }

    /// When the first loss was detected.
    pub fn first_loss(&self) -> Option<Instant> {
        self.first_loss
    }

    /// Returns the findings. `recorded` is the end of slow start if the file states it.
    pub fn finish(mut self, recorded: Option<Result<ExitEstimate, NoExit>>) -> Findings {
        if !self.begun {
            self.begin();
        }
        let (mss, epoch) = (self.setup.mss, self.epoch());
        // The last round trip of a transfer is application-limited.
        if let Some((start, _)) = self.round.filter(|_| self.peak > Bytes::ZERO) {
            let limited_by = LimitedBy::Application;
            let recovering = self.recovering;
            self.infer.on_round(&Round { start, peak: self.peak, limited_by, recovering }, mss);
        }
        let min_rtt = self.min_rtt.unwrap_or(Span::ZERO);
        let rates = self.throughput.rates(min_rtt);
        let values: Vec<f64> = rates.iter().map(|r| r.1).collect();
        // Intervals without data do not describe the path if they are the majority.
        let busy: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
        let values = if busy.len() * 2 > values.len() { values } else { busy };
        let median = stats::quantile(&values, 0.5);
        let by_throughput = median.and_then(|m| rates.iter().find(|r| r.1 >= m).map(|r| r.0));
        let estimate = CapacityEstimate {
            by_latency: self.latency.capacity,
            by_throughput,
            median,
            min_rtt,
            first_loss: self.first_loss,
        };
        // A window stated by the file is cwnd; otherwise it is the bytes in flight.
        let wide = |window: Bytes| estimate.bdp().is_some_and(|b| window > b);
        let bdp = estimate.bdp();
        let filled = bdp.and_then(|b| self.infer.first(b));
        let more = bdp.and_then(|b| self.infer.first_above(b));
        let stated = recorded.is_some();
        let observed = recorded.unwrap_or_else(|| self.infer.result(mss));
        let full_at_exit = observed.ok().and_then(|f| self.filling.at_exit(f.at, f.cwnd));
        let rtt = self.rtt_before_loss.or(self.max_rtt).unwrap_or_default();
        let suspects = std::mem::take(&mut self.suspects).all();
        let by_rule = |exit: ExitEstimate| {
            let loss = ExitEstimate { at: exit.at + epoch, ..exit };
            exit.evidence.is_congestion() && naming::left_before(&suspects, loss, rtt, mss)
        };
        let certain = match observed {
            // A stated exit is certain, and its class is not.
            Ok(_) if stated && bdp.is_none() && full_at_exit.is_none() => true,
            Ok(exit) => {
                (stated || self.infer.is_certain(exit, mss) && !by_rule(exit))
                    && full_at_exit.is_some_and(|f| f.certain)
            }
            // An exit in the last round trip leaves no trace.
            Err(why) => why == NoExit::StillGrowing && stated,
        };
        let class = observed.ok().filter(|_| bdp.is_some() || full_at_exit.is_some()).map(|f| {
            let by_then = |when: Option<Instant>| when.is_some_and(|t| t <= f.at);
            let full = match f.evidence {
                Evidence::Recorded | Evidence::RecordedLoss => wide(f.cwnd),
                // A window that stopped exactly at the BDP was reached before that much was in flight.
                Evidence::GrowthStopped => by_then(more),
                _ => by_then(filled),
            };
            match full_at_exit {
                Some(found) => estimate.class_if(f.at, found.full, f.evidence.is_congestion()),
                None => estimate.class(f.at, full, f.evidence.is_congestion()),
            }
        });
        let capacity = estimate.capacity(full_at_exit.is_some_and(|f| f.full && f.waited));
        self.finished.extend(self.observers.drain(..).map(|(i, w)| (i, w.prediction)));
        self.finished.sort_by_key(|o| o.0);
        self.finished.iter_mut().for_each(|(_, o)| o.since(epoch));
        let named = naming::named(&suspects, mss);
        let result = |(i, o): (usize, Prediction)| {
            let exit = o.exit();
            let class = exit.map(|m| estimate.class(m.at, wide(m.cwnd), o.loss == Some(m)));
            StartupResult {
                label: self.candidates[i].label.clone(),
                class: class.unwrap_or(Class::None),
                exit,
                prediction: o,
            }
        };
        let startups = self.finished.into_iter().map(result).collect();
        Findings {
            mss,
            iw: self.iw,
            observed,
            window_fell: None,
            certain,
            class: class.map_or(ExitClass::Unknown, ExitClass::from),
            heuristic: estimate.heuristic(),
            capacity: capacity.filter(|c| {
                // An exit of a path that was not full refutes an earlier time.
                let refuted = full_at_exit.is_some_and(|f| !f.full) && observed.is_ok_and(|e| *c <= e.at);
                !refuted && !observed.is_err_and(NoExit::is_limit)
            }),
            by_latency: self.latency.capacity,
            by_throughput,
            median_bps: median.map(|m| m * 8.0),
            rates,
            first_loss: self.first_loss,
            min_rtt: self.min_rtt,
            max_rtt: self.max_rtt,
            rtt_before_loss: self.rtt_before_loss,
            startups,
            named,
            periods: self.periods,
            packets: self.packets,
            snapshots: self.snapshots,
            last: self.last,
            delivered: self.delivered,
            peak_inflight: self.most,
            no_path: None,
        }
    }
}

/// The limit on an ACK's growth, as startups get it.
pub fn limit(peer: bool) -> Limit {
    if peer { Limit::Peer } else { Limit::Window }
}
