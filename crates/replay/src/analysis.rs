//! What a sender's events say: the end of its slow start, the path's capacity, and what each startup makes of them.

use crate::capacity::{CapacityEstimate, DelayHeuristic, OneWayDelay, ThroughputBins};
use crate::infer::{Evidence, ExitEstimate, Inference, LimitedBy, NoExit, Round};
use crate::observer::{Candidate, Observer, Prediction};
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Congestion, Facts, Growth, Handshake, Limit, Recovery, Sent, Signal};
use slowstart_lab::record::Class;
use slowstart_lab::stats;
use std::sync::Arc;

/// Packets kept before the first ACK tells what the initial window was.
const FIRST_FLIGHT: usize = 1024;
/// Round trips after the end of an prediction in which a loss may yet prove to have been none.
const SPURIOUS: u32 = 4;
/// What startups are told that the time is when it is zero, if somebody wants to go on from where they stand: in the
/// simulator there must be time for a handshake before. They must not care (a law of `crates/slowstart`).
pub const EPOCH: Span = Span::secs(1000);
/// Packets whose time is kept, to be sent again in the simulator.
const KEPT: usize = 1 << 20;
/// Silence with nothing in flight from which on it is idle (the least timeout of Linux).
const IDLE: Span = Span::millis(200);
/// Periods kept in which not its window held a sender.
const PERIODS: usize = 256;
/// Samples kept for drawing.
const SNAPSHOTS: usize = 4000;

/// Facts of a connection on which nothing has happened yet.
pub fn facts(mss: Bytes) -> Facts {
    Facts {
        now: Instant::ZERO,
        mss,
        iw: mss * 10,
        inflight: Bytes::ZERO,
        delivered: Bytes::ZERO,
        lost: Bytes::ZERO,
        next: Mark(0),
        srtt: None,
        min_rtt: None,
        rwnd: Bytes::MAX,
        pacing_rate: None,
        pacing_on: true,
        gso_max: Bytes(65_536),
        unsent: None,
        host_queue: None,
        nic_rate: None,
        supports_pacing: true,
        growth: Growth::Bytes,
        in_recovery: false,
    }
}

/// A moment, for drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When.
    pub at: Instant,
    /// In flight.
    pub inflight: Bytes,
    /// The newest round trip.
    pub rtt: Option<Span>,
    /// Delivered.
    pub delivered: Bytes,
    /// Each startup's window.
    pub windows: Vec<Bytes>,
}

/// A time in which something else than its window held the sender: what, from when, until when.
pub type Period = (LimitedBy, Instant, Instant);

/// What is known beforehand.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The initial window, where the file says; else the first flight is taken for it.
    pub iw: Option<Bytes>,
    /// Whether an prediction grows only if its window was used. A kernel's log says what was acknowledged and no more.
    pub gated: bool,
    /// How the connection was established.
    pub handshake: Handshake,
    /// Whether to keep samples.
    pub snapshots: bool,
    /// Whether to keep where startups can be gone on from, and what was sent up to there.
    pub fork_states: bool,
}

/// What a connection's events say, as they come.
#[derive(Clone, Debug)]
pub struct Analysis {
    setup: Setup,
    candidates: Arc<[Candidate]>,
    waiting: Vec<(Facts, Sent)>,
    begun: bool,
    iw: Bytes,
    /// Those that have something to say, by their place among the candidates; what the others said. Of thousands of
    /// connections nothing is touched that need not be.
    observers: Vec<(usize, Observer)>,
    silent: Vec<(usize, Prediction)>,
    infer: Inference,
    round: Option<(Instant, Mark)>,
    peak: Bytes,
    peak_before: Bytes,
    /// What left last filled the peer's window; something did in this round trip.
    full: bool,
    peer: bool,
    application: bool,
    short: bool,
    throughput: ThroughputBins,
    latency: DelayHeuristic,
    /// At the receiver's side what arrives tells of the path, and not when it is acknowledged.
    arrivals: Option<OneWayDelay>,
    first_loss: Option<Instant>,
    periods: Vec<Period>,
    sends: Vec<(Instant, Bytes)>,
    snapshots: Vec<Snapshot>,
    stride: u32,
    skipped: u32,
    last: Instant,
    /// The newest round trip; zero before.
    rtt: Span,
    min_rtt: Option<Span>,
    max_rtt: Option<Span>,
    rtt_before_loss: Option<Span>,
    delivered: Bytes,
}

impl Analysis {
    /// Nothing has happened yet.
    pub fn new(setup: Setup, candidates: &Arc<[Candidate]>) -> Self {
        Self {
            iw: setup.iw.unwrap_or(setup.mss * 10),
            setup,
            candidates: Arc::clone(candidates),
            waiting: Vec::new(),
            begun: false,
            observers: Vec::new(),
            silent: Vec::new(),
            infer: Inference::default(),
            round: None,
            peak: Bytes::ZERO,
            peak_before: Bytes::ZERO,
            full: false,
            peer: false,
            application: false,
            short: false,
            throughput: ThroughputBins::default(),
            latency: DelayHeuristic::default(),
            arrivals: None,
            first_loss: None,
            periods: Vec::new(),
            sends: Vec::new(),
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

    /// The initial window is known: opinions begin.
    fn begin(&mut self) {
        self.begun = true;
        let Some((first, _)) = self.waiting.first() else { return };
        let mss = self.setup.mss;
        self.iw = self.setup.iw.unwrap_or_else(|| {
            // Whole segments; a flight that was cut short says nothing of the window, and ten it is (RFC 6928).
            let flight = mss * self.waiting.iter().map(|w| w.1.inflight.0).max().unwrap_or(0).div_ceil(mss.0);
            if self.short { flight.max(mss * 10) } else { flight.max(mss) }
        });
        let f = self.told(first);
        let (handshake, keeps) = (&self.setup.handshake, self.setup.fork_states);
        let watcher = |c: &Candidate| Observer::new(c, &f, handshake, keeps);
        self.observers = self.candidates.iter().map(watcher).enumerate().collect();
        for (f, s) in std::mem::take(&mut self.waiting) {
            let (f, s) = (self.told(&f), self.told_sent(&s));
            self.ask(|w| w.on_sent(&f, &s));
        }
    }

    fn epoch(&self) -> Span {
        if self.setup.fork_states { EPOCH } else { Span::ZERO }
    }

    /// What startups are told.
    fn told(&self, f: &Facts) -> Facts {
        Facts { iw: self.iw, now: f.now + self.epoch(), ..*f }
    }

    fn told_sent(&self, s: &Sent) -> Sent {
        let epoch = self.epoch();
        Sent {
            at: s.at + epoch,
            delivered_at: s.delivered_at + epoch,
            first_sent_at: s.first_sent_at + epoch,
            ..*s
        }
    }

    /// Asks each startup that has something to say.
    fn ask(&mut self, what: impl Fn(&mut Observer)) {
        let mut over = false;
        for (_, w) in &mut self.observers {
            what(w);
            over |= w.done();
        }
        if over {
            let done = self.observers.extract_if(.., |(_, w)| w.done());
            self.silent.extend(done.map(|(i, w)| (i, w.prediction)));
            self.observers.shrink_to_fit();
        }
    }

    /// Arrivals will be told too. `syn` is when the sender's SYN arrived, and its timestamp.
    pub fn at_receiver(&mut self, syn: Option<(Instant, u32)>) {
        self.arrivals = Some(OneWayDelay::new(syn));
    }

    /// At the receiver's side: so much arrived, once more or for the first time, with this timestamp.
    pub fn arrived(&mut self, now: Instant, bytes: Bytes, timestamp: Option<u32>) {
        self.throughput.add(now, bytes);
        let Some(offset) = &mut self.arrivals else { return };
        let late = timestamp.and_then(|t| offset.above(now, t));
        let least = self.min_rtt.into_iter().chain(self.setup.handshake.rtt).min();
        if let (Some(late), Some(least)) = (late, least) {
            self.latency.add(now, late, least);
        }
    }

    /// A packet left. `short` says that it was no full segment: there was no more to send.
    pub fn sent(&mut self, f: &Facts, s: &Sent, short: bool) {
        if s.inflight <= s.bytes && f.now.since(self.last) > IDLE && self.begun {
            self.held(LimitedBy::Idle, self.last, f.now);
        }
        self.last = f.now;
        self.round.get_or_insert((f.now, s.mark));
        self.peak = self.peak.max(s.inflight);
        self.full = s.inflight + f.mss > f.rwnd;
        self.peer |= self.full;
        self.short = short;
        if !s.retransmission {
            self.infer.on_sent(f.now, s.inflight, self.rtt, f.mss);
        }
        if self.setup.fork_states && !s.retransmission && self.sends.len() < KEPT {
            self.sends.push((f.now, s.bytes));
        }
        if self.begun {
            let (f, s) = (self.told(f), self.told_sent(s));
            self.ask(|w| w.on_sent(&f, &s));
        } else {
            self.waiting.push((*f, *s));
            if self.waiting.len() >= FIRST_FLIGHT {
                self.begin();
            }
        }
    }

    /// An ACK arrived; `f` is as it was before anything was sent in answer.
    pub fn ack(&mut self, f: &Facts, a: &Ack) {
        self.last = f.now;
        if !self.begun {
            self.begin();
        }
        if let (Some(rtt), Some(least)) = (a.rtt, f.min_rtt) {
            if self.arrivals.is_none() {
                self.latency.add(f.now, rtt - least, least);
            }
            (self.rtt, self.min_rtt) = (rtt, Some(least));
            self.max_rtt = Some(self.max_rtt.map_or(rtt, |m| m.max(rtt)));
        }
        if a.delivered > Bytes::ZERO {
            if self.arrivals.is_none() {
                self.throughput.add(f.now, a.delivered);
            }
            self.delivered = f.delivered;
            // What is acknowledged when there is no more to send, or there was no room for it, lets nothing be sent.
            if !self.short && !self.full {
                self.infer.on_ack(f.now, a.delivered);
            }
        }
        // Nothing was sent though half of what was in flight has gone, and the last packet was no full one.
        self.application |= self.short && f.inflight < self.peak / 2;
        let used = self.setup.gated.then_some(self.peak.max(self.peak_before));
        let (told, ack) = (self.told(f), Ack { newest: self.told_sent(&a.newest), ..*a });
        self.ask(|w| w.on_ack(&told, &ack, used));
        if let Some((start, end)) = self.round
            && a.upto >= end
        {
            self.round_over(f, start);
        }
        if self.setup.snapshots {
            self.shot(f, a);
        }
    }

    fn round_over(&mut self, f: &Facts, start: Instant) {
        let held = if self.peer {
            LimitedBy::ReceiveWindow
        } else if self.application {
            LimitedBy::Application
        } else {
            LimitedBy::Cwnd
        };
        self.infer.on_round(&Round { start, peak: self.peak, held }, f.mss);
        if held != LimitedBy::Cwnd {
            self.held(held, start, f.now);
        }
        let (peak, gated) = (self.peak, self.setup.gated);
        let limited = held == LimitedBy::Cwnd && self.first_loss.is_none();
        let told = self.told(f);
        self.ask(|w| {
            w.on_round(&told, start, peak, limited);
            if gated {
                w.stop_after(SPURIOUS);
            }
        });
        self.round = Some((f.now, f.next.max(Mark(1))));
        self.peak_before = self.peak;
        (self.peak, self.peer, self.application) = (f.inflight, false, false);
    }

    /// Something else than its window held it.
    fn held(&mut self, by: LimitedBy, from: Instant, until: Instant) {
        if let Some(p) = self.periods.last_mut().filter(|p| p.0 == by && p.2 >= from) {
            p.2 = until;
        } else if self.periods.len() < PERIODS {
            self.periods.push((by, from, until));
        }
    }

    fn shot(&mut self, f: &Facts, a: &Ack) {
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
        self.opinions(|i, o| windows[i] = o.cwnd);
        let (inflight, delivered) = (a.prior_inflight, f.delivered);
        self.snapshots.push(Snapshot { at: f.now, inflight, rtt: a.rtt, delivered, windows });
    }

    /// What each startup thinks so far, with its place among the candidates.
    fn opinions(&self, mut each: impl FnMut(usize, &Prediction)) {
        self.observers.iter().for_each(|(i, w)| each(*i, &w.prediction));
        self.silent.iter().for_each(|(i, o)| each(*i, o));
    }

    /// The sender knows of a loss, or of a mark.
    pub fn loss(&mut self, f: &Facts, c: &Congestion) {
        if !self.begun {
            self.begin();
        }
        let evidence = match c.signal {
            Signal::Timeout => Evidence::Timeout,
            Signal::Ecn => Evidence::Mark,
            Signal::Loss | Signal::LocalStall => Evidence::Loss,
        };
        self.infer.on_loss(f.now, evidence);
        if self.first_loss.is_none() && evidence != Evidence::Mark {
            (self.first_loss, self.rtt_before_loss) = (Some(f.now), self.max_rtt);
        }
        let (told, congestion) = (self.told(f), Congestion { newest: self.told_sent(&c.newest), ..*c });
        self.ask(|w| {
            w.on_congestion(&told, &congestion);
            // From here on the sender's window is another's, and what it sends too.
            w.prediction.valid_until = w.prediction.valid_until.or(Some(f.now));
        });
    }

    /// All that was held for lost had arrived.
    pub fn undone(&mut self, f: &Facts) {
        self.infer.on_undone();
        let since = self.first_loss.take();
        self.rtt_before_loss = None;
        let told = self.told(f);
        self.ask(|w| {
            w.on_undone(&told, &Recovery { retransmitted: Bytes::ZERO, undone: true });
            if w.prediction.valid_until == since {
                w.prediction.valid_until = None;
            }
        });
    }

    /// When a loss was first known.
    pub fn first_loss(&self) -> Option<Instant> {
        self.first_loss
    }

    /// The answers. `told` is the end of slow start where the file says it.
    pub fn finish(mut self, told: Option<Result<ExitEstimate, NoExit>>) -> Findings {
        if !self.begun {
            self.begin();
        }
        let (mss, epoch) = (self.setup.mss, self.epoch());
        // The transfer's last round trip is the application's, which has no more.
        if let Some((start, _)) = self.round.filter(|_| self.peak > Bytes::ZERO) {
            self.infer.on_round(&Round { start, peak: self.peak, held: LimitedBy::Application }, mss);
        }
        let min_rtt = self.min_rtt.unwrap_or(Span::ZERO);
        let rates = self.throughput.rates(min_rtt);
        let values: Vec<f64> = rates.iter().map(|r| r.1).collect();
        // Where it was idle for longer than not, that says nothing of the path.
        let busy: Vec<f64> = values.iter().copied().filter(|v| *v > 0.0).collect();
        let values = if busy.len() * 2 > values.len() { values } else { busy };
        let median = stats::quantile(&values, 0.5);
        let by_throughput = median.and_then(|m| rates.iter().find(|r| r.1 >= m).map(|r| r.0));
        let judge = CapacityEstimate {
            by_latency: self.latency.capacity,
            by_throughput,
            median,
            min_rtt,
            first_loss: self.first_loss,
        };
        // A window that is told is its own; what was seen was in flight.
        let wide = |window: Bytes| judge.holds().is_some_and(|b| window > b);
        let holds = judge.holds();
        let filled = holds.and_then(|b| self.infer.first(b));
        let more = holds.and_then(|b| self.infer.first_above(b));
        let observed = told.unwrap_or_else(|| self.infer.answer(mss));
        let class = observed.ok().map(|f| {
            let by_then = |when: Option<Instant>| when.is_some_and(|t| t <= f.at);
            let full = match f.evidence {
                Evidence::Recorded => wide(f.cwnd),
                // A window that stopped at what the path holds was chosen before that was in flight.
                Evidence::GrowthStopped => by_then(more),
                _ => by_then(filled),
            };
            judge.class(f.at, full, f.evidence.is_congestion())
        });
        self.silent.extend(self.observers.drain(..).map(|(i, w)| (i, w.prediction)));
        self.silent.sort_by_key(|o| o.0);
        let judged = |(i, mut o): (usize, Prediction)| {
            o.since(epoch);
            let exit = o.exit();
            let class = exit.map(|m| judge.class(m.at, wide(m.cwnd), o.loss == Some(m)));
            StartupResult {
                label: self.candidates[i].label.clone(),
                class: class.unwrap_or(Class::None),
                exit,
                prediction: o,
            }
        };
        let startups = self.silent.into_iter().map(judged).collect();
        Findings {
            mss,
            iw: self.iw,
            observed,
            class: class.unwrap_or(Class::None),
            heuristic: judge.heuristic(),
            capacity: judge.capacity(),
            by_latency: self.latency.capacity,
            by_throughput,
            median_bps: median.map(|m| m * 8.0),
            rates,
            first_loss: self.first_loss,
            min_rtt: self.min_rtt,
            max_rtt: self.max_rtt,
            rtt_before_loss: self.rtt_before_loss,
            startups,
            periods: self.periods,
            sends: self.sends,
            snapshots: self.snapshots,
            last: self.last,
            delivered: self.delivered,
        }
    }
}

/// What a startup would have done, and how that is judged.
#[derive(Clone, Debug)]
pub struct StartupResult {
    /// As a person wrote it.
    pub label: String,
    /// How its exit is judged.
    pub class: Class,
    /// Its exit, as far as it can be said.
    pub exit: Option<crate::observer::Moment>,
    /// All it thought.
    pub prediction: Prediction,
}

/// What a connection's events said.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The initial window.
    pub iw: Bytes,
    /// The end of slow start as it was, or why there is none to see.
    pub observed: Result<ExitEstimate, NoExit>,
    /// How that is judged.
    pub class: Class,
    /// By which heuristic.
    pub heuristic: &'static str,
    /// When the path was full, by that heuristic.
    pub capacity: Option<Instant>,
    /// By delay.
    pub by_latency: Option<Instant>,
    /// By throughput: the first interval that reached the median.
    pub by_throughput: Option<Instant>,
    /// The median throughput.
    pub median_bps: Option<f64>,
    /// Throughput over time, bytes a second in intervals of a least round trip.
    pub rates: Vec<(Instant, f64)>,
    /// When a loss was first known.
    pub first_loss: Option<Instant>,
    /// The least round trip.
    pub min_rtt: Option<Span>,
    /// The greatest.
    pub max_rtt: Option<Span>,
    /// The greatest before a loss was first known.
    pub rtt_before_loss: Option<Span>,
    /// What each startup would have done.
    pub startups: Vec<StartupResult>,
    /// When something else than its window held the sender: the first 256 such times.
    pub periods: Vec<Period>,
    /// What was sent for the first time, and when, if that was asked for: the first million packets.
    pub sends: Vec<(Instant, Bytes)>,
    /// Samples.
    pub snapshots: Vec<Snapshot>,
    /// The last event.
    pub last: Instant,
    /// Bytes delivered.
    pub delivered: Bytes,
}

impl Findings {
    /// What leaving early cost: the time that the path's median throughput would have needed less for what was
    /// delivered between the exit and the first interval after it that reached the median. `None` where it was not
    /// early.
    pub fn cost_s(&self) -> Option<f64> {
        let exit = self.observed.ok().filter(|_| self.class == Class::Early)?;
        let median = self.median_bps? / 8.0;
        let after: Vec<_> = self.rates.iter().skip_while(|r| r.0 < exit.at).collect();
        let width = self.rates.get(1).map(|r| r.0.since(self.rates[0].0))?.as_secs_f64();
        let slow = after.iter().take_while(|r| r.1 < median);
        Some(slow.map(|r| width * (1.0 - r.1 / median)).sum())
    }
}

/// What held the sender, as algorithms want to know.
pub fn limit(peer: bool) -> Limit {
    if peer { Limit::Peer } else { Limit::Window }
}
