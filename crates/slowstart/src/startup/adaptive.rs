//! Adaptive start (Astart) of TCP Westwood, Wang et al., INFOCOM 2004: the threshold begins low and is raised
//! repeatedly to the product of the eligible rate estimate and the minimum RTT. Below the threshold the
//! window grows as in slow start, above it as in congestion avoidance: short exponential and linear phases
//! alternate until a loss.
//!
//! With `begin=infinite` it is what Ha and Rhee (2008) describe and compare with: the threshold begins without a
//! limit, and is set to the product during slow start if that exceeds the window.
//!
//! Reconstructed because the paper was not available:
//! - the threshold begins at the initial window;
//! - the time constant of the estimate's filter is one smoothed RTT, our choice;
//! - the rate that determines the length of a sample is that of the last whole round.

use super::Startup;
use crate::param::{choice, params};
use crate::round::Round;
use crate::step::Step;
use crate::units::{Bytes, Fixed, Instant, Rate, Span, mul_div};
use crate::view::{Ack, Congestion, Handshake, View};

choice! {
    /// Where the threshold begins.
    pub enum Begin {
        /// At the initial window; the estimate only raises it.
        Iw = "iw",
        /// Without a limit; the estimate sets it during slow start if it exceeds the window.
        Infinite = "infinite",
    }
}

params! {
    /// Parameters of adaptive start.
    pub struct Params {
        /// Time constant of the filter, in smoothed RTTs.
        tau: Fixed = Fixed::milli(1000), "a number of round trips above 0, such as 0.5", |v| v.0 > 0;
        /// Where the threshold begins.
        begin: Begin = Begin::Iw, "one of iw, infinite", |_v| true;
    }
}

/// Adaptive start, one instance a connection.
#[derive(Clone, Debug)]
pub struct Adaptive {
    pub(crate) params: Params,
    /// The eligible rate estimate (ERE).
    eligible: Option<Rate>,
    /// When the current sample began, and the bytes delivered in it.
    since: Option<Instant>,
    bytes: Bytes,
    round: Round,
    /// When the round began, the bytes delivered in it, and the rate of the previous round (RE).
    round_since: Instant,
    round_bytes: Bytes,
    rate: Option<Rate>,
}

impl Adaptive {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            eligible: None,
            since: None,
            bytes: Bytes::ZERO,
            round: Round::default(),
            round_since: Instant::ZERO,
            round_bytes: Bytes::ZERO,
            rate: None,
        }
    }

    /// Returns the length of a sample: short while the path delivers what the window permits, up to one RTT
    /// while it does not.
    fn interval(&self, v: &View, srtt: Span, min: Span) -> Span {
        let got = self.rate.map_or(v.cwnd, |r| r.over(min));
        srtt.scale((v.cwnd - got).0, v.cwnd.0)
    }

    fn sample(&mut self, now: Instant, srtt: Span) {
        let Some((rate, dt)) =
            self.since.map(|s| now.since(s)).and_then(|dt| Some((Rate::new(self.bytes, dt)?, dt)))
        else {
            return;
        };
        let tau = srtt.scale(self.params.tau.0 as u64, Fixed::ONE as u64) * 2;
        // alpha = (2 tau - dt) / (2 tau + dt); the old value has no weight if the sample is longer than 2
        // tau.
        let whole = (tau + dt).0;
        self.eligible = Some(self.eligible.map_or(rate, |old| {
            let kept = mul_div(old.0, (tau - dt).0, whole);
            let added = if dt >= tau { rate.0 } else { mul_div(rate.0, (dt * 2).0, whole) };
            Rate(kept.saturating_add(added))
        }));
    }

    /// Returns the product of the estimate and the minimum RTT, at least two segments.
    fn pipe(&self, v: &View) -> Option<Bytes> {
        Some(self.eligible?.over(v.min_rtt?).max(v.mss * 2))
    }
}

impl Startup for Adaptive {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_established(&mut self, v: &View, _: &Handshake) -> Step {
        match self.params.begin {
            Begin::Iw => Step::HOLD.ssthresh(v.iw),
            Begin::Infinite => Step::HOLD,
        }
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let grow = Step::grow(v.slow_start_growth(ack));
        self.bytes += ack.delivered;
        self.round_bytes += ack.delivered;
        if self.round.ends_round(ack.upto, v.next) {
            self.rate = Rate::new(self.round_bytes, v.now.since(self.round_since));
            (self.round_since, self.round_bytes) = (v.now, Bytes::ZERO);
        } else if self.since.is_none() {
            // The first ACK begins the first round and the first sample, and is part of neither.
            (self.round_since, self.round_bytes) = (v.now, Bytes::ZERO);
        }
        let (Some(srtt), Some(min)) = (v.srtt, v.min_rtt) else { return grow };
        match self.since {
            None => {}
            Some(since) if v.now > since && v.now.since(since) >= self.interval(v, srtt, min) => {
                self.sample(v.now, srtt);
            }
            Some(_) => return grow,
        }
        (self.since, self.bytes) = (Some(v.now), Bytes::ZERO);
        let sets = |pipe: &Bytes| match self.params.begin {
            Begin::Iw => v.ssthresh.is_none_or(|t| t < *pipe),
            Begin::Infinite => *pipe > v.cwnd && v.ssthresh.is_none_or(|t| v.cwnd < t),
        };
        self.pipe(v).filter(sets).map_or(grow, |pipe| grow.ssthresh(pipe))
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        // Westwood: the window becomes the estimated BDP instead of half.
        let step = Step::exit(c.signal.into());
        self.pipe(v).map_or(step, |pipe| Step::set(pipe.min(v.cwnd)).ssthresh(pipe).and_exit(c.signal.into()))
    }

    fn phase(&self) -> &'static str {
        "adaptive"
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("eligible_bps", self.eligible.map_or(f64::NAN, |r| r.0 as f64));
    }
}
