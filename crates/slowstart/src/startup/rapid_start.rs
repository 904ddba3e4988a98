//! Rapid start, draft-kazuho-ccwg-rapid-start-00: the window triples each round trip while there is no queue and
//! doubles while there is one. On congestion it is reduced with each byte acknowledged or lost, to `beta` of what the
//! path held.
//!
//! Version -02 of March 2026 permits an initial window of up to twice the standard one if it is paced over one round
//! trip; this is not implemented.
//!
//! Departs from the draft:
//! - the host sends the first window by its own rule; the draft paces it over one round trip;
//! - the minimum RTT of the last round trip is kept per quarter of a minimum RTT, so it covers at least three quarters
//!   of a round trip.
//!
//! With K = 11/18, as in the draft, nothing is sent for 1/3 of the full BDP at a loss ratio of 2/3 and beta = 0.7, and
//! not for 1 - beta as the draft states. The editor's copy later changed K to 2/3, for which the statement holds
//! (`k=2/3`).

use super::Startup;
use crate::param::{choice, params};
use crate::step::Step;
use crate::units::{Bytes, Fixed, Instant, Span, mul_div};
use crate::view::{Ack, Congestion, Recovery, Signal, View};

choice! {
    /// K, which determines the reduction factors.
    pub enum K {
        /// 11/18, as in draft-00.
        Draft00 = "11/18",
        /// 2/3, as in the editor's copy after draft-00.
        TwoThirds = "2/3",
    }
}

params! {
    /// Parameters of rapid start.
    pub struct Params {
        /// Share of what the path held that remains after recovery: the avoidance's decrease factor (RFC 9438: 0.7).
        beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// K, which determines the reduction factors.
        k: K = K::Draft00, "one of 11/18, 2/3", |_v| true;
    }
}

impl Params {
    /// Returns the reduction per acknowledged byte in recovery, in millionths: K (1 - beta).
    fn ack_factor(&self) -> u64 {
        let (n, d) = if self.k == K::Draft00 { (11, 18) } else { (2, 3) };
        mul_div((Fixed::ONE - self.beta.0) as u64, n, d)
    }

    /// Returns the share of the window kept on entering recovery, and the reduction per lost byte, in millionths: beta
    /// + K (1 - beta).
    fn silence_factor(&self) -> u64 {
        self.beta.0 as u64 + self.ack_factor()
    }
}

/// Parts of a minimum RTT for which the recent minimum is kept.
const QUARTERS: usize = 4;

/// Rapid start.
#[derive(Clone, Debug)]
pub struct RapidStart {
    pub(crate) params: Params,
    /// The minimum RTT in each quarter of a round trip, in a ring; the index of the newest, and when it began.
    floors: [Span; QUARTERS],
    newest: usize,
    began: Option<Instant>,
    /// The RTT indicates a queue.
    queue: bool,
    recovery: Option<Down>,
}

/// State of the reduction.
#[derive(Clone, Debug)]
struct Down {
    /// The window when it began, in bytes.
    cwnd: Bytes,
    /// Bytes delivered and lost when it began.
    delivered: Bytes,
    lost: Bytes,
}

impl RapidStart {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, floors: [Span::MAX; QUARTERS], newest: 0, began: None, queue: false, recovery: None }
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
        let (ack, silence) = (self.params.ack_factor(), self.params.silence_factor());
        let cwnd = d.cwnd.scale(silence, one)
            - (v.delivered - d.delivered).scale(ack, one)
            - (v.lost - d.lost).scale(silence, one);
        // silence - ack / 3 - 2 loss / 3 = beta / 3
        let floor = d.cwnd.scale(self.params.beta.0 as u64, 3 * one).max(v.mss * 2);
        let cwnd = cwnd.max(floor).min(v.cwnd);
        Step::set(cwnd).ssthresh(cwnd)
    }
}

impl Startup for RapidStart {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let Some(d) = &self.recovery {
            return self.down(v, d);
        }
        if let (Some(rtt), Some(min)) = (ack.rtt, v.min_rtt) {
            self.observe(v, rtt, min);
        }
        Step::grow(v.slow_start_growth(ack) * if self.queue { 1 } else { 2 })
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        if let Some(d) = &self.recovery {
            return self.down(v, d);
        }
        if matches!(c.signal, Signal::Timeout | Signal::LocalStall) {
            return Step::exit(c.signal.into());
        }
        let d = Down { cwnd: v.cwnd, delivered: v.delivered, lost: v.lost - c.lost };
        let step = self.down(v, &d).and_exit(c.signal.into());
        self.recovery = Some(d);
        step
    }

    fn on_recovered(&mut self, v: &View, r: &Recovery) -> Step {
        match self.recovery.take() {
            Some(d) if !r.undone => self.down(v, &d),
            _ => Step::HOLD,
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn phase(&self) -> &'static str {
        match (&self.recovery, self.queue) {
            (Some(_), _) => "down",
            (None, true) => "slow-start",
            (None, false) => "rapid",
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let floor = self.floors.into_iter().min().filter(|f| *f < Span::MAX);
        put("rtt_floor_s", floor.map_or(f64::NAN, Span::as_secs_f64));
    }
}
