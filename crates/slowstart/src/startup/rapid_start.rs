//! Rapid start, editor's copy of draft-kazuho-ccwg-rapid-start (commit 00e5ea1d, 2026): the initial window is
//! paced over a round trip; the window triples each round trip while there is no queue and doubles while
//! there is one. On congestion it is reduced with each byte acknowledged or lost, to `beta` of what the path
//! held, and the avoidance is told to look for twice that (`W_max` of CUBIC). `rapid-start-00` is draft-00: K
//! = 11/18, no pacing, no `W_max`.
//!
//! Departs from the draft:
//! - the minimum RTT of the last round trip is kept per quarter of a minimum RTT, so it covers at least three
//!   quarters of a round trip;
//! - the initial window is the host's, times `iw`: the draft permits up to twice the usual one;
//! - with a host that cannot pace, or without an RTT sample of the handshake, the first flight is sent by the
//!   host's rule;
//! - with `hystart=on`, growth is that of HyStart++ (RFC 9406) in its conservative rounds, and its exit
//!   leaves the window as it is: the draft says that both can be used together, and no more.
//!
//! With K = 11/18, as in draft-00, nothing is sent for 1/3 of the full BDP at a loss ratio of 2/3 and beta =
//! 0.7, and not for 1 - beta as that draft states. For K = 2/3 the statement holds.

use super::Startup;
use super::hystart_pp::{self, HyStartPp};
use crate::param::{choice, params};
use crate::step::{Pace, Resume, Step};
use crate::units::{Bytes, Fixed, Gain, Instant, Span, mul_div};
use crate::view::{Ack, Congestion, Handshake, Recovery, Restart, Signal, View};

choice! {
    /// K, which determines the reduction factors.
    pub enum K {
        /// 11/18, as in draft-00.
        Draft00 = "11/18",
        /// 2/3, as in the editor's copy.
        TwoThirds = "2/3",
    }
}

choice! {
    /// What is paced over a full round trip, at one window per smoothed RTT.
    pub enum Paced {
        /// Nothing: the host's own rule holds.
        Off = "off",
        /// The initial window of the connection.
        First = "first",
        /// All of the startup.
        All = "all",
    }
}

params! {
    /// Parameters of rapid start.
    pub struct Params {
        /// Share of what the path held that remains after recovery: the avoidance's decrease factor (RFC
        /// 9438: 0.7).
        beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// The share that remains if a mark and not a loss ended it (RFC 8511: 0.8 or 0.85).
        beta_ecn: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.8", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// K, which determines the reduction factors.
        k: K = K::TwoThirds, "one of 11/18, 2/3", |_v| true;
        /// What is paced over a full round trip.
        pace: Paced = Paced::All, "one of off, first, all", |_v| true;
        /// The initial window, in initial windows of the host.
        iw: Fixed = Fixed::milli(1000), "a number from 1 to 2", |v| (Fixed::ONE..=2 * Fixed::ONE).contains(&v.0);
        /// Stop the reduction at `beta` times the initial window.
        keep_iw: bool = false, "on or off", |_v| true;
        /// Tell the avoidance to look for twice what the path held (`W_max` of CUBIC).
        w_max: bool = true, "on or off", |_v| true;
        /// Leave also by the rules of HyStart++.
        hystart: bool = false, "on or off", |_v| true;
    }
}

/// The factors of the reduction, in millionths.
#[derive(Copy, Clone, Debug)]
struct Factors {
    /// What remains of what the path held.
    beta: u64,
    /// The reduction per acknowledged byte: K (1 - beta).
    ack: u64,
    /// The share of the window kept on entering recovery, and the reduction per lost byte: beta + K (1 -
    /// beta).
    silence: u64,
}

impl Params {
    /// Returns the parameters of draft-00, which quicly has.
    pub fn draft_00() -> Self {
        Self { k: K::Draft00, pace: Paced::Off, w_max: false, ..Self::default() }
    }

    fn factors(&self, signal: Signal) -> Factors {
        let beta = if signal == Signal::Ecn { self.beta_ecn } else { self.beta };
        let (n, d) = if self.k == K::Draft00 { (11, 18) } else { (2, 3) };
        let ack = mul_div((Fixed::ONE - beta.0) as u64, n, d);
        Factors { beta: beta.0 as u64, ack, silence: beta.0 as u64 + ack }
    }
}

/// Parts of a minimum RTT for which the recent minimum is kept.
const QUARTERS: usize = 4;

/// Rapid start, one instance a connection.
#[derive(Clone, Debug)]
pub struct RapidStart {
    pub(crate) params: Params,
    /// The minimum RTT in each quarter of a round trip, in a ring; the index of the newest, and when it
    /// began.
    floors: [Span; QUARTERS],
    newest: usize,
    began: Option<Instant>,
    /// The RTT indicates a queue.
    queue: bool,
    recovery: Option<Down>,
    /// What the path held, in bytes, once the recovery is over.
    held: Option<Bytes>,
    hystart: HyStartPp,
}

/// State of the reduction.
#[derive(Clone, Debug)]
struct Down {
    factors: Factors,
    /// The window when it began, in bytes.
    cwnd: Bytes,
    /// Bytes delivered and lost when it began.
    delivered: Bytes,
    lost: Bytes,
}

impl RapidStart {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            floors: [Span::MAX; QUARTERS],
            newest: 0,
            began: None,
            queue: false,
            recovery: None,
            held: None,
            hystart: HyStartPp::new(hystart_pp::Params::default()),
        }
    }

    /// Compares the minimum RTT of the last round trip with that of the connection.
    fn observe(&mut self, v: &View, rtt: Span, min: Span) {
        let quarter = (min / QUARTERS as u64).max(Span(1));
        let began = *self.began.get_or_insert(v.now);
        let passed = v.now.since(began).0 / quarter.0;
        for _ in 0..passed.min(QUARTERS as u64) {
            self.newest = (self.newest + 1) % QUARTERS;
            self.floors[self.newest] = Span::MAX;
        }
        self.began = Some(began + quarter * passed);
        self.floors[self.newest] = self.floors[self.newest].min(rtt);
        let floor = self.floors.into_iter().min().unwrap_or(rtt);
        self.queue = floor > (min + Span::millis(4)).min(min.scale(110, 100));
    }

    /// Returns the current window of the recovery.
    fn down(&self, v: &View, d: &Down) -> Step {
        let one = Fixed::ONE as u64;
        let Factors { beta, ack, silence } = d.factors;
        let cwnd = d.cwnd.scale(silence, one)
            - (v.delivered - d.delivered).scale(ack, one)
            - (v.lost - d.lost).scale(silence, one);
        // silence - ack / 3 - 2 loss / 3 = beta / 3
        let mut floor = d.cwnd.scale(beta, 3 * one).max(v.mss * 2);
        if self.params.keep_iw {
            floor = floor.max(v.iw.scale(beta, one));
        }
        let cwnd = cwnd.max(floor).min(v.cwnd);
        Step::set(cwnd).ssthresh(cwnd)
    }
}

impl Startup for RapidStart {
    fn has_exit_rule(&self) -> bool {
        self.params.hystart
    }

    fn on_established(&mut self, v: &View, _: &Handshake) -> Step {
        let p = &self.params;
        let mut step = Step::HOLD;
        if p.iw.0 > Fixed::ONE {
            step = Step::set(v.iw.scale(p.iw.0.unsigned_abs(), Fixed::ONE.unsigned_abs()));
        }
        if p.pace != Paced::Off && v.supports_pacing && v.srtt.is_some() {
            step = step.pace(Pace::Gain(Gain::UNIT));
        }
        step
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let Some(d) = &self.recovery {
            return self.down(v, d);
        }
        if let (Some(rtt), Some(min)) = (ack.rtt, v.min_rtt) {
            self.observe(v, rtt, min);
        }
        let mut step = Step::grow(v.slow_start_growth(ack) * if self.queue { 1 } else { 2 });
        if self.params.hystart {
            let theirs = self.hystart.on_ack(v, ack);
            if theirs.exit.is_some() || self.hystart.is_conservative() {
                step = theirs;
            }
        }
        // With the first ACK the initial window has been sent: it is paced over a round trip.
        if self.params.pace == Paced::First { step.pace(Pace::Host) } else { step }
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        if let Some(d) = &self.recovery {
            return self.down(v, d);
        }
        if matches!(c.signal, Signal::Timeout | Signal::LocalStall) {
            return Step::exit(c.signal.into());
        }
        let factors = self.params.factors(c.signal);
        let d = Down { factors, cwnd: v.cwnd, delivered: v.delivered, lost: v.lost - c.lost };
        let step = self.down(v, &d).and_exit(c.signal.into());
        self.recovery = Some(d);
        step
    }

    fn on_recovered(&mut self, v: &View, r: &Recovery) -> Step {
        match self.recovery.take() {
            Some(d) if !r.undone => {
                let step = self.down(v, &d);
                let cwnd = step.ssthresh.unwrap_or(v.cwnd);
                self.held = Some(cwnd.scale(Fixed::ONE as u64, d.factors.beta));
                step
            }
            _ => Step::HOLD,
        }
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        self.held = None;
        Resume::Standard
    }

    fn looks_for(&self, _: &View) -> Option<Bytes> {
        self.held.filter(|_| self.params.w_max).map(|held| held * 2)
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn phase(&self) -> &'static str {
        match (&self.recovery, self.queue) {
            (Some(_), _) => "down",
            (None, _) if self.hystart.is_conservative() => "css",
            (None, true) => "slow-start",
            (None, false) => "rapid",
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let floor = self.floors.into_iter().min().filter(|f| *f < Span::MAX);
        put("rtt_floor_s", floor.map_or(f64::NAN, Span::as_secs_f64));
    }
}
