//! ABBA, draft-kazuho-ccwg-abba, the editor's copy of September 2026 before its linear model (commit dfaea8b2;
//! the design of quicly's pull request 689): CUBIC that grows faster while the queue of the bottleneck is
//! drained, and returns to slow start where it stays so.
//!
//! It knows the RTT of a full queue (`full`: the smoothed RTT at the end of the recovery that ended slow
//! start), the least RTT of the period since the last congestion (`now`), and mean and variance of those of
//! the periods before (gains 1/8 and 1/4, at first 5 ms). With `bottom` = max(mean - variance, min) and
//! `drained` = max(mean - variance / 2, min + 2 ms), where `now` limits the former and `now` + 2 ms the latter:
//!
//! - an ACK whose RTT is below `drained` and below `full` / 1.05 adds max(2 ms / `drained`, 1/40) of what it
//!   acknowledges, at most (1 / beta - 1) / 2, if `full` exceeds `bottom` by more than 10 ms;
//! - slow start begins again, with the window as it is, once the smoothed RTT has been less than 10 ms above
//!   `bottom` for twice the time in which a flow would refill the queue, min(K, K of Reno) cbrt(`full` /
//!   `bottom`), and the rule above has added a quarter of 1 - beta of the window; if `full` does not exceed
//!   `bottom` by 10 ms, for eight times that time;
//! - congestion in that slow start reduces the window to 1 / (2 (2 - beta)), which is also `W_max`.
//!
//! The draft leaves open, and here is chosen:
//! - which CUBIC: that of `cubic`, as in [`abba`](super::abba);
//! - where slow start ends by a rule and not by congestion, `full` is the smoothed RTT at that time; where it
//!   ends by a timeout, what it was; before it is known the window grows as `cubic`'s and nothing is taken again;
//! - the slow start that begins again is the connection's startup, if that is for every slow start, and
//!   otherwise standard; a startup that sets the window of a loss itself does so here too;
//! - a timeout ends a period; idle time does not count.
//!
//! Departs from the draft:
//! - an undo of a spurious reduction restores the window and not the rest, as for `cubic`;
//! - of the marks of an episode the first counts.

use super::{Adjust, Avoidance};
use super::abba::Faster;
use super::cuback::curve;
use super::cubic::{self, Cubic};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, Fixed, Instant, Span, cube_root, mul_div};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// The parameters of ABBA with recalibration, with their defaults.
    pub struct Params {
        /// Factor applied to the window on congestion (RFC 9438 §4.6: 0.7).
        beta: Fixed = Fixed::milli(700), "a share above 0 and below 1, such as 0.7", |v| 0 < v.0 && v.0 < Fixed::ONE;
        /// Reduce `W_max` further if it is below the previous one (RFC 9438 §4.7).
        fast_convergence: bool = true, "on or off", |_v| true;
    }
}

/// How far the RTT of a full queue must be above the bottom.
const DEEP: Span = Span::millis(10);
/// The queue that a round trip of acceleration adds.
const ADDS: Span = Span::millis(2);
/// The variance after the first period.
const FIRST_VARIANCE: Span = Span::millis(5);

/// Mean and variance of the least RTTs of past periods.
#[derive(Copy, Clone, Debug)]
struct Past {
    mean: Span,
    variance: Span,
}

/// CUBIC, accelerated while the queue is drained, which returns to slow start where it stays so.
#[derive(Clone, Debug)]
pub struct Recalibrate {
    pub(crate) params: Params,
    faster: Faster<Cubic>,
    /// The smoothed RTT with a full queue.
    full: Option<Span>,
    /// Slow start ended by congestion: `full` is due at the end of the recovery.
    full_due: bool,
    /// The least RTT since the last congestion.
    now: Option<Span>,
    past: Option<Past>,
    /// When the queue was last seen to be occupied.
    high_at: Instant,
    /// The smoothed RTT at the last ACK.
    srtt: Option<Span>,
    /// The window when the avoidance began, in segments.
    epoch: u64,
    /// It has taken over, and slow start has not begun again.
    avoids: bool,
    /// In the slow start that it asked for.
    probes: bool,
    /// [`Avoidance::on_congestion`] was called, and `enter` not yet.
    told: bool,
}

impl Recalibrate {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        let Params { beta, fast_convergence } = params;
        let cubic = cubic::Params { beta, startup_beta: beta, beta_ecn: beta, fast_convergence };
        Self {
            params,
            faster: Faster::new(Cubic::new(cubic)),
            full: None,
            full_due: false,
            now: None,
            past: None,
            high_at: Instant::ZERO,
            srtt: None,
            epoch: 1,
            avoids: false,
            probes: false,
            told: false,
        }
    }

    /// `bottom_rtt()`: the RTT of an empty queue.
    fn bottom(&self, v: &View) -> Span {
        let past = self.past.map_or(Span::ZERO, |p| p.mean - p.variance);
        let floor = past.max(v.min_rtt.unwrap_or_default());
        self.now.map_or(floor, |now| floor.min(now))
    }

    /// The bytes that the acceleration adds for this ACK.
    fn accelerates(&self, v: &View, ack: &Ack, full: Span, bottom: Span) -> Bytes {
        let (Some(rtt), Some(past)) = (ack.rtt, self.past) else { return Bytes::ZERO };
        let estimated = past.mean - past.variance / 2;
        let drained = estimated.max(v.min_rtt.unwrap_or_default() + ADDS);
        let drained = self.now.map_or(drained, |now| drained.min(now + ADDS));
        if full <= bottom + DEEP || full <= rtt.scale(21, 20) || rtt >= drained {
            return Bytes::ZERO;
        }
        let (one, beta) = (Fixed::ONE as u64, self.params.beta.0 as u64);
        let rate = ack.bytes.scale(ADDS.0, drained.0.max(1)).max(ack.bytes / 40);
        rate.min(ack.bytes.scale(one - beta, 2 * beta))
    }

    /// `recalibration_interval()`; `None` if it is endless.
    fn interval(&self, v: &View, full: Span, bottom: Span) -> Option<Span> {
        let (one, beta) = (Fixed::ONE as u64, self.params.beta.0 as u64);
        // `expected_high_queue_interval()`
        let down = mul_div(self.epoch, one - beta, beta);
        let reno = full.scale(down, 1).scale(one + beta, 3 * (one - beta));
        let least = curve(down).min(reno);
        // The ratio in 2^30ths, whose root is in 2^10ths.
        let ratio = mul_div(full.0, 1 << 30, bottom.0.max(1));
        let expected = least.scale(cube_root(ratio), 1 << 10);
        if full <= bottom + DEEP {
            return Some(expected * 8);
        }
        let enough = v.cwnd.scale(one - beta, 4 * one);
        (self.faster.gained(v.mss) >= enough).then_some(expected * 2)
    }

    /// Congestion ends the period.
    fn end_period(&mut self) {
        let Some(sample) = self.now.take() else { return };
        self.past = Some(match self.past {
            None => Past { mean: sample, variance: FIRST_VARIANCE },
            Some(p) => Past {
                variance: p.variance.scale(3, 4) + Span(p.mean.0.abs_diff(sample.0)) / 4,
                mean: p.mean.scale(7, 8) + sample / 8,
            },
        });
    }
}

impl Avoidance for Recalibrate {
    fn enter(&mut self, v: &View, how: Exit) {
        self.faster.enter(v, how);
        self.epoch = v.cwnd.units(v.mss).max(1);
        if how.by_congestion() && !core::mem::take(&mut self.told) {
            // A startup set its own window.
            self.end_period();
        }
        if !self.avoids {
            match how {
                Exit::Timeout | Exit::Ssthresh => {}
                _ if how.by_congestion() => self.full_due = true,
                _ => (self.full, self.high_at) = (v.srtt, v.now),
            }
        }
        // Slow start up to the threshold follows a timeout.
        self.avoids = how != Exit::Timeout;
        self.full_due &= self.avoids;
        self.probes = false;
    }

    fn look_for(&mut self, v: &View, window: Bytes) {
        self.faster.under.look_for(v, window);
    }

    fn observe(&mut self, v: &View, ack: &Ack) {
        if !v.in_recovery {
            if core::mem::take(&mut self.full_due) {
                // Before the sample of this ACK, which is of a packet sent with the reduced window.
                (self.full, self.high_at) = (self.srtt, v.now);
            }
            if let Some(rtt) = ack.rtt {
                self.now = Some(self.now.map_or(rtt, |least| least.min(rtt)));
            }
        }
        self.srtt = v.srtt;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        let Some(full) = self.full else { return self.faster.on_ack(v, ack, Bytes::ZERO) };
        let bottom = self.bottom(v);
        let other = self.accelerates(v, ack, full, bottom);
        let window = self.faster.on_ack(v, ack, other);
        if ack.rtt.is_some() {
            if v.srtt.is_some_and(|srtt| srtt >= bottom + DEEP) {
                self.high_at = v.now;
            } else if self.interval(v, full, bottom).is_some_and(|i| v.now.since(self.high_at) >= i) {
                self.faster.under.forget();
                (self.probes, self.avoids) = (true, false);
                return Adjust::Restart;
            }
        }
        window
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        self.end_period();
        self.told = true;
        if c.signal == Signal::Ecn {
            self.high_at = v.now;
        }
        let cut = self.faster.under.on_congestion(v, c);
        if !self.probes {
            return cut;
        }
        let (one, beta) = (Fixed::ONE as u64, self.params.beta.0 as u64);
        let cut = v.cwnd.scale(one, 2 * (2 * one - beta));
        self.faster.under.look_for(v, cut);
        cut
    }

    fn on_idle(&mut self, now: Instant, idle: Span) {
        self.faster.under.on_idle(now, idle);
        self.high_at = (self.high_at + idle).min(now);
    }
}
