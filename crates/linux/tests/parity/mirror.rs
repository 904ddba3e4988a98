//! The Rust algorithm for a connection of the kernel: it gets the fields that the object got, and its
//! decision is compared with the object's.

use slowstart::startup::{AnyStartup, Startup};
use slowstart::step::{Exit, Pace, Step, Wake, Window};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{
    Ack, Congestion, Facts as Known, Handshake, HostQueue, Limit, PathMemory, Recovery, Restart, Sent,
    Signal, View,
};
use slowstart_linux::{ExitReason, Facts, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of what was compared.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) connections: u64,
    pub(crate) acks: u64,
    pub(crate) recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) idle: u64,
    pub(crate) undone: u64,
    pub(crate) not_limited: u64,
    /// Exits by startup and reason.
    pub(crate) exits: BTreeMap<(String, &'static str), u64>,
    pub(crate) disagreements: u64,
    /// Counters of an object that are higher than its events say.
    pub(crate) miscounted: u64,
    /// Windows set above the previous one, and pacing rates set.
    pub(crate) jumps: u64,
    pub(crate) paced: u64,
    /// Windows set in a loss episode that the startup owns.
    pub(crate) owned: u64,
    /// Packets that the kernel sent above such a window.
    pub(crate) above: u64,
    /// Loss episodes through which a startup continued, and connections that had path memory.
    pub(crate) continued: u64,
    pub(crate) remembered: u64,
    /// Phases in which a controller was compared.
    pub(crate) phases: BTreeSet<&'static str>,
    /// Estimates of the data in flight at sending that were compared, that were equal, and that differed by
    /// at most a burst.
    pub(crate) flights: u64,
    pub(crate) flights_equal: u64,
    pub(crate) flights_near: u64,
    /// Messages of the first disagreements.
    pub(crate) messages: Vec<String>,
}

impl Tally {
    pub(crate) fn differ(&mut self, name: &str, what: &str, rust: &str, f: &Facts) {
        self.disagreements += 1;
        if self.messages.len() < 12 {
            self.messages.push(format!("{name}: {what}: Rust has {rust}, the kernel {f:?}"));
        }
    }

    /// Returns the exits of all startups by reason.
    pub(crate) fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for ((_, why), n) in &self.exits {
            *all.entry(*why).or_default() += n;
        }
        all
    }
}

/// The Rust algorithm of one connection.
pub(crate) struct Mirror {
    name: String,
    fresh: AnyStartup,
    startup: AnyStartup,
    /// True if it sets ssthresh itself and runs on beyond it.
    owns_ssthresh: bool,
    /// True in the loss episode that ended it, if it sets the window there.
    owns_recovery: bool,
    /// The window that it set there last, in segments, and the bytes sent by then.
    owned: Option<(u32, u64)>,
    /// Segments that had been marked lost at the last ACK.
    lost: u32,
    /// Segments retransmitted when a loss episode began that goes on.
    resent: u32,
    /// True if the kernel's own `HyStart` decides; the Rust model of it is compared.
    kernels: bool,
    /// True after an undo: the kernel's own `HyStart` has measured round trips in the loss episode, for which
    /// no object is called, so that the model knows less than it does.
    unseen: bool,
    asked: bool,
    first: bool,
    /// True once it went on in a loss episode: if it reports nothing, the event does not say whether a loss, a mark or the
    /// host's own queue began it.
    unsaid: bool,
    /// ssthresh at the start, in segments.
    given: u32,
    /// State before the last reduction, until an undo.
    before: Option<(bool, bool)>,
    credit: u64,
    /// Values at the last ACK for which the startup was called.
    now: u64,
    acked: u64,
    sent: u64,
    delivered: u32,
}

/// An infinite ssthresh.
pub(crate) const INFINITE: u32 = 0x7fff_ffff;

pub(crate) fn seg(f: &Facts, n: u32) -> Bytes {
    Bytes(u64::from(n) * u64::from(f.mss))
}

pub(crate) fn some(us: u32) -> Option<Span> {
    (us > 0).then(|| Span::micros(us.into()))
}

pub(crate) fn known(f: &Facts) -> Known {
    let mut k = Known::new(Bytes(f.mss.into()), seg(f, f.iw));
    k.now = Instant(f.now_ns);
    k.inflight = seg(f, f.inflight);
    k.delivered = seg(f, f.delivered);
    k.next = SendOrder::new(f.next);
    k.srtt = some(f.srtt_us);
    k.min_rtt = some(f.min_rtt_us);
    k.pacing_rate = Some(Rate(f.pacing_rate.saturating_mul(8)));
    k.pacing_on = f.paced;
    k.gso_max = Bytes(f.gso_max.into());
    k.lost = seg(f, f.lost);
    k.rwnd = Bytes(f.rwnd.into());
    k.unsent = Some(Bytes(f.unsent));
    k.supports_pacing = true;
    k.host_queue =
        (f.queue_limit > 0).then_some(HostQueue { used: Bytes(f.queue_used), limit: Bytes(f.queue_limit) });
    k
}

pub(crate) fn why(e: Exit) -> ExitReason {
    match e {
        Exit::Ssthresh => ExitReason::Ssthresh,
        Exit::AckTrain => ExitReason::AckTrain,
        Exit::Loss => ExitReason::Loss,
        Exit::Ecn | Exit::LocalStall => ExitReason::Cwr,
        Exit::Timeout => ExitReason::Timeout,
        Exit::Delay => ExitReason::Delay,
        Exit::CssRounds => ExitReason::CssRounds,
        Exit::RateFlat => ExitReason::RateFlat,
        Exit::Estimate => ExitReason::Estimate,
        other => panic!("the objects have no reason {}", other.name()),
    }
}

/// The window of a step in whole segments, 0 if it sets none, and the bytes of growth.
fn window(step: &Step, f: &Facts) -> (u32, u64) {
    match step.window {
        Window::Keep => (0, 0),
        Window::Grow(b) => (0, b.0),
        Window::Set(b) => ((b.0 / u64::from(f.mss)).max(1) as u32, 0),
        other => panic!("the objects have no {other:?}"),
    }
}

/// The threshold of a step in whole segments; 0 if it sets none.
fn threshold(step: &Step, f: &Facts) -> u32 {
    step.ssthresh.map_or(0, |b| (b.0 / u64::from(f.mss)).max(2) as u32)
}

/// The pacing rate of a step as the object reports it.
fn pace(step: &Step) -> u64 {
    match step.pace {
        None => 0,
        Some(Pace::Rate(rate)) => rate.0,
        Some(_) => u64::MAX,
    }
}

/// The RTT of the handshake, unless a segment was resent.
fn handshake(f: &Facts) -> Option<Span> {
    some(f.srtt_us).filter(|_| f.retransmitted == 0)
}

impl Mirror {
    pub(crate) fn new(name: &str, fresh: &AnyStartup) -> Self {
        Self {
            name: name.to_string(),
            fresh: fresh.clone(),
            startup: fresh.clone(),
            kernels: name == "hystart",
            owns_ssthresh: ["adaptive", "packet-pair", "careful-resume"].contains(&name),
            owns_recovery: false,
            owned: None,
            lost: 0,
            resent: 0,
            asked: false,
            first: false,
            unsaid: false,
            given: INFINITE,
            before: None,
            unseen: false,
            credit: 0,
            now: 0,
            acked: 0,
            sent: 0,
            delivered: 0,
        }
    }

    /// Processes an event of the kernel.
    pub(crate) fn take(&mut self, f: &Facts, t: &mut Tally) {
        match f.kind {
            Kind::Begin => self.begin(f, t),
            Kind::Ack => self.ack(f, t),
            Kind::Loss | Kind::Timeout => self.congestion(f, t),
            Kind::Idle => {
                t.idle += 1;
                self.again(f, Restart::Idle);
            }
            Kind::Undo => {
                t.undone += 1;
                if let Some((asked, first)) = self.before.take() {
                    (self.asked, self.first) = (asked, first);
                }
                self.owns_recovery = false;
                self.unseen = self.kernels;
                if self.asked {
                    let (k, recovery) = (known(f), Recovery::new(Bytes::ZERO, true));
                    let _ = self.startup.on_recovered(&Self::view(f, &k), &recovery);
                }
            }
            Kind::Recovered => self.recovered(f, t),
            Kind::Send => self.send(f, t),
            Kind::End => {
                if self.first {
                    *t.exits.entry((self.name.clone(), "none")).or_default() += 1;
                }
                self.asked = false;
            }
        }
    }

    fn view<'a>(f: &Facts, k: &'a Known) -> View<'a> {
        View { facts: k, cwnd: seg(f, f.cwnd), ssthresh: (f.ssthresh < INFINITE).then(|| seg(f, f.ssthresh)) }
    }

    /// Ends the startup; compares the reason if it is the first exit, and counts it.
    fn leave(&mut self, f: &Facts, t: &mut Tally, mut reason: ExitReason) {
        if self.unsaid && (reason, f.why) == (ExitReason::Loss, ExitReason::Cwr) {
            reason = f.why;
        }
        let expected = if self.first { reason } else { ExitReason::None };
        if f.why != expected {
            t.differ(&self.name, "reason", expected.name(), f);
        }
        if self.first {
            *t.exits.entry((self.name.clone(), reason.name())).or_default() += 1;
        }
        (self.asked, self.first) = (false, false);
    }

    fn begin(&mut self, f: &Facts, t: &mut Tally) {
        t.connections += 1;
        self.asked = f.cwnd < f.ssthresh;
        self.first = self.asked;
        self.given = f.ssthresh;
        self.lost = f.lost;
        if !self.asked {
            return;
        }
        let mut k = known(f);
        // The kernel's does not pace its initial window (docs/reference/kernel.md), as on a host that cannot
        // pace.
        k.supports_pacing = !self.name.starts_with("rapid-start");
        let lost = if f.no_data_sent { f.retransmitted.min(255) as u8 } else { 0 };
        let mut hs = Handshake::new(handshake(f).filter(|_| f.no_data_sent));
        (hs.syn_losses, hs.spurious) = (lost, !f.undo_marker);
        hs.remembered = (f.memory_cwnd > 0).then(|| PathMemory {
            cwnd: Bytes(f.memory_cwnd),
            rtt: Span::micros(f.memory_rtt_us.into()),
            rate: Rate(f.memory_rate),
        });
        t.remembered += u64::from(hs.remembered.is_some());
        // Jump Start begins when the application has queued its data; see `send`.
        let step = if self.name == "jump-start" {
            Step::HOLD
        } else {
            self.startup.on_established(&Self::view(f, &k), &hs)
        };
        self.compare(f, t, &step, "beginning");
        let (set, threshold) = (window(&step, f).0, threshold(&step, f));
        let after = (if set > 0 { set } else { f.cwnd }, if threshold > 0 { threshold } else { f.ssthresh });
        if (f.cwnd_after, f.ssthresh_after) != after {
            t.differ(&self.name, "state after the beginning", &format!("{after:?}"), f);
        }
        match step.exit {
            Some(e) => self.leave(f, t, why(e)),
            None if after.0 > after.1 => self.leave(f, t, ExitReason::Ssthresh),
            None => {}
        }
    }

    /// Compares window, threshold and pacing rate of a decision.
    fn compare(&self, f: &Facts, t: &mut Tally, step: &Step, what: &str) {
        let wanted = (window(step, f).0, threshold(step, f), pace(step));
        t.jumps += u64::from(f.set > f.cwnd);
        t.paced += u64::from(f.pace > 0 && f.pace < u64::MAX);
        if (f.set, f.threshold, f.pace) != wanted {
            t.differ(&self.name, what, &format!("set, threshold, pace {wanted:?}"), f);
        }
    }

    /// Before the first ACK: the application has queued more. In a loss episode that the startup owns: its
    /// window as of now.
    fn send(&mut self, f: &Facts, t: &mut Tally) {
        let k = known(f);
        if self.name.starts_with("rapid-start") {
            if !self.owns_recovery {
                t.differ(&self.name, "owned recovery", "none", f);
            }
            t.owned += 1;
            // The kernel obeys: it has sent nothing above the window, but perhaps one packet. One was seen on a busy
            // machine, twice; that it was a loss probe, which no window holds back (RFC 8985 §7.3), was not shown.
            let above = self.owned.map_or(0, |(cwnd, sent)| {
                let packets = f.sent_bytes.saturating_sub(sent).div_ceil(u64::from(f.mss));
                packets.min(u64::from(f.inflight.saturating_sub(cwnd)))
            });
            t.above += u64::from(above > 0);
            if above > 1 {
                t.differ(&self.name, "in flight", &format!("{:?}", self.owned), f);
            }
            self.owned = Some((f.cwnd_after, f.sent_bytes));
            let ack = Ack::new(Sent::default(), Bytes::ZERO, k.inflight);
            let step = self.startup.on_ack(&Self::view(f, &k), &ack);
            self.compare(f, t, &step, "window in recovery");
            return;
        }
        let hs = Handshake::new(handshake(f));
        self.startup = self.fresh.clone();
        let step = self.startup.on_established(&Self::view(f, &k), &hs);
        self.compare(f, t, &step, "flight");
        let sent = Sent { bytes: Bytes(f.next - f.acked_bytes), ..Sent::default() };
        self.startup.on_sent(&Self::view(f, &k), &sent);
        self.sent = f.sent_bytes;
    }

    /// The end of a loss episode in which the startup was in control.
    fn recovered(&mut self, f: &Facts, t: &mut Tally) {
        if !self.asked && !self.owns_recovery {
            return;
        }
        self.owns_recovery = false;
        let (k, resent) = (known(f), f.retransmitted.wrapping_sub(self.resent));
        let recovery = Recovery::new(seg(f, resent), false);
        let step = self.startup.on_recovered(&Self::view(f, &k), &recovery);
        self.compare(f, t, &step, "end of recovery");
        if let Some(e) = step.exit {
            self.leave(f, t, why(e));
        }
    }

    /// Returns the decision for an ACK. What was sent since the previous ACK is given as one packet sent
    /// right after that ACK, because the kernel does not call a control when a packet is sent.
    fn answer(&mut self, f: &Facts) -> Step {
        let k = known(f);
        let since = f.delivered.wrapping_sub(self.delivered);
        let mut then = k;
        then.now = Instant(self.now);
        then.inflight = seg(f, f.inflight.wrapping_add(since));
        then.delivered = seg(f, self.delivered);
        let bytes = Bytes(f.sent_bytes - self.sent);
        let sent = Sent { mark: k.next, at: then.now, bytes, ..Sent::default() };
        self.startup.on_sent(&Self::view(f, &then), &sent);
        let delivered = Bytes(f.acked_bytes - self.acked);
        let upto = SendOrder::new(f.acked_bytes);
        let newest = Sent { mark: upto, at: Instant(f.newest_us * 1000), ..Sent::default() };
        let mut ack = Ack::new(newest, delivered, then.inflight);
        ack.upto = upto;
        ack.bytes = seg(f, f.acked);
        ack.rtt = some(f.rtt_us);
        ack.limit = if f.limited { Limit::Window } else { Limit::Application };
        let mut v = Self::view(f, &k);
        if self.kernels {
            // The kernel's HyStart has already set it, if it has decided.
            v.ssthresh = None;
        }
        let mut step = self.startup.on_ack(&v, &ack);
        if let (Wake::At(_), "suss") = (step.wake, &*self.name) {
            // The object has no timer: it does at once what the timer would do.
            step = self.startup.on_timer(&v);
        }
        self.lost = f.lost;
        (self.now, self.acked, self.sent, self.delivered) =
            (f.now_ns, f.acked_bytes, f.sent_bytes, f.delivered);
        step
    }

    fn ack(&mut self, f: &Facts, t: &mut Tally) {
        t.acks += 1;
        t.not_limited += u64::from(!f.limited);
        if f.asked != self.asked {
            t.differ(&self.name, "whether the startup is in control", &self.asked.to_string(), f);
            self.asked = f.asked;
        }
        if self.kernels && self.first {
            self.compare_with_kernel(f, t);
            return;
        }
        if f.cwnd >= f.ssthresh && !self.owns_ssthresh {
            self.leave(f, t, ExitReason::Ssthresh);
            return;
        }
        let step = self.answer(f);
        let (set, earned) = window(&step, f);
        let threshold = threshold(&step, f);
        self.compare(f, t, &step, "decision");
        if f.earned != earned {
            t.differ(&self.name, "growth", &format!("earned {earned}"), f);
        }
        let limit = if threshold > 0 { threshold } else { f.ssthresh };
        let mut cwnd = if set > 0 { set } else { f.cwnd };
        let mut whole = 0;
        if f.limited {
            self.credit += earned;
            whole = (self.credit / u64::from(f.mss)) as u32;
            self.credit %= u64::from(f.mss);
        }
        let grown = cwnd.saturating_add(whole);
        // Growth stops at ssthresh; setting cwnd does not.
        let beyond = whole > 0 && grown > limit;
        cwnd = if whole > 0 { grown.min(limit.max(cwnd)) } else { cwnd };
        // The avoidance gets the remaining bytes, and grows cwnd by at most the bytes acknowledged.
        let rest = if step.exit.is_some() { set == 0 && earned == 0 } else { beyond };
        let exact = if rest { (cwnd..=cwnd + f.acked).contains(&f.cwnd_after) } else { f.cwnd_after == cwnd };
        let ssthresh = if step.exit.is_some() && threshold == 0 { cwnd.max(2) } else { limit };
        if !exact || f.ssthresh_after != ssthresh {
            t.differ(&self.name, "state after the ACK", &format!("{cwnd} and {ssthresh}"), f);
        }
        match step.exit {
            Some(e) => self.leave(f, t, why(e)),
            None if f.why != ExitReason::None => t.differ(&self.name, "reason", "none", f),
            None => {}
        }
    }

    /// For the kernel's `HyStart`, which decided just before by lowering ssthresh to cwnd.
    fn compare_with_kernel(&mut self, f: &Facts, t: &mut Tally) {
        let left = f.cwnd >= f.ssthresh;
        if left && (self.unseen || f.ssthresh == self.given) {
            self.leave(f, t, ExitReason::Ssthresh);
            return;
        }
        if self.unseen {
            return;
        }
        let before = self.startup.clone();
        let exit = self.answer(f).exit;
        if exit.is_some() != left {
            t.differ(&self.name, "the kernel's HyStart", &format!("{exit:?} from {before:?}"), f);
        }
        if left {
            let reason = exit.map_or("disagreed", Exit::name);
            *t.exits.entry((self.name.clone(), reason)).or_default() += 1;
            (self.asked, self.first) = (false, false);
        }
    }

    fn congestion(&mut self, f: &Facts, t: &mut Tally) {
        let signal = match (f.kind, f.why) {
            (Kind::Timeout, _) => Signal::Timeout,
            (_, ExitReason::Cwr) => Signal::Ecn,
            _ => Signal::Loss,
        };
        *(if f.kind == Kind::Timeout { &mut t.timeouts } else { &mut t.recoveries }) += 1;
        if f.cut {
            self.before = Some((self.asked, self.first));
        }
        if self.asked {
            let k = known(f);
            // The kernel does not tell what this event has found lost.
            let rapid = self.name.starts_with("rapid-start");
            let lost = if rapid { seg(f, f.lost.wrapping_sub(self.lost)) } else { Bytes::ZERO };
            let newest = Sent { mark: SendOrder::new(f.acked_bytes), ..Sent::default() };
            let c = Congestion::new(signal, f.cut, newest).losing(lost, 1);
            if self.name == "jump-start" {
                // There may have been no ACK since the flight was sent, of which this is a part.
                let bytes = Bytes(f.sent_bytes - self.sent);
                self.startup.on_sent(&Self::view(f, &k), &Sent { bytes, ..Sent::default() });
                self.sent = f.sent_bytes;
            }
            let step = self.startup.on_congestion(&Self::view(f, &k), &c);
            self.compare(f, t, &step, "congestion");
            self.resent = f.retransmitted;
            self.owned = None;
            self.owns_recovery = self.startup.owns_recovery() && signal != Signal::Timeout;
            match step.exit {
                Some(e) => self.leave(f, t, why(e)),
                None if f.why == ExitReason::None => {
                    t.continued += 1;
                    self.unsaid = true;
                }
                None => t.differ(&self.name, "congestion", "no exit", f),
            }
        } else if f.why != ExitReason::None {
            t.differ(&self.name, "reason", "none: the startup had ended", f);
        }
        if f.kind == Kind::Timeout {
            self.owns_recovery = false;
            self.again(f, Restart::Timeout);
        }
    }

    /// Restarts slow start.
    fn again(&mut self, f: &Facts, restart: Restart) {
        use slowstart::step::Resume;
        let k = known(f);
        if let (Restart::Idle, Some(least)) = (restart, some(f.rtt_us)) {
            self.startup.observe(least);
        }
        if self.startup.on_restart(&Self::view(f, &k), restart) == Resume::FromStart {
            self.startup = self.fresh.clone();
            self.unsaid = false;
            // The kernel's HyStart continues by itself; the object does not call a startup.
            self.asked |= !self.kernels;
        }
    }
}
