//! Rate-bound (docs/rate-bound.md): the rate at which the ACKs of a flight come bounds the window, and it leaves when a
//! larger flight has brought no higher rate.
//!
//! Departs from its specification: nowhere.

use super::Startup;
use crate::param::params;
use crate::round::{Round, Train};
use crate::step::{Exit, Pace, Step};
use crate::units::{Bytes, Fixed, Instant, Mark, Rate, Span};
use crate::view::{Ack, Congestion, Limit, Signal, View};

params! {
    /// Parameters of rate-bound.
    pub struct Params {
        /// The largest growth in a round, as a multiple of the flight.
        fast: u32 = 4, "a whole number from 2 to 8", |v| (2..=8).contains(&v);
        /// The bound, as a multiple of what the rate of the ACKs fills.
        over: Fixed = Fixed::milli(1250), "a number from 1 to 2", |v| (Fixed::ONE..=2 * Fixed::ONE).contains(&v.0);
        /// Growth in a round at the bound, as a share of the flight.
        creep: Fixed = Fixed::milli(250), "a share from 0.125 to 1", |v| (Fixed::ONE / 8..=Fixed::ONE).contains(&v.0);
        /// The share of the growth of a flight that the rate must follow.
        follow: Fixed = Fixed::milli(300), "a share from 0 to 0.5", |v| (0..=Fixed::ONE / 2).contains(&v.0);
        /// The window that it leaves with, as a multiple of what the rate found fills.
        keep: Fixed = Fixed::milli(1250), "a number from 0.5 to 2", |v| (Fixed::ONE / 2..=2 * Fixed::ONE).contains(&v.0);
        /// The pace, as a multiple of the rate found.
        pace: Fixed = Fixed::milli(1250), "a number from 1 to 2", |v| (Fixed::ONE..=2 * Fixed::ONE).contains(&v.0);
        /// If off, the noise in round-trip times is not learned.
        noise: bool = true, "on or off", |_v| true;
        /// If off, the rate of the ACKs does not slow growth below doubling.
        brake: bool = true, "on or off", |_v| true;
    }
}

/// Points of a train that is believed at any length; half of them are enough for a long one.
const POINTS: u32 = 8;
/// Lost segments in a round that are no sign of a full path, if nothing else is.
const FEW: u64 = 2;

fn times(b: Bytes, f: Fixed) -> Bytes {
    b.scale(f.0.unsigned_abs(), Fixed::ONE.unsigned_abs())
}

/// A round that is over: the bytes delivered in it, over what time.
#[derive(Copy, Clone, Debug)]
struct Past {
    flight: Bytes,
    took: Span,
    rate: Rate,
}

impl Past {
    /// Returns the rate to expect of a larger flight if this share of the growth shows in it.
    fn rate_for(&self, flight: Bytes, share: Fixed) -> Rate {
        let all = self.flight + times(flight - self.flight, share);
        self.rate.scale(all.0, self.flight.0)
    }
}

/// Rate-bound.
#[derive(Clone, Debug)]
pub struct RateBound {
    pub(crate) params: Params,
    round: Round,
    /// The newest mark delivered.
    newest: Option<Mark>,
    /// When the round began, the bytes delivered before it, and the bytes in flight.
    began: Option<Instant>,
    before: Bytes,
    flight: Bytes,
    /// The most in flight in this round.
    peak: Bytes,
    /// Bytes lost in this round.
    lost: Bytes,
    /// The application limited the sender in this round.
    limited: bool,
    train: Train,
    /// The rate that the train of the last round showed.
    shown: Option<Rate>,
    /// The last round that the application did not limit.
    past: Option<Past>,
    /// Delay above the minimum RTT that is not of a queue's making.
    noise: Span,
    /// It has asked for a pace.
    paced: bool,
}

impl RateBound {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            round: Round::default(),
            newest: None,
            began: None,
            before: Bytes::ZERO,
            flight: Bytes::ZERO,
            peak: Bytes::ZERO,
            lost: Bytes::ZERO,
            limited: false,
            train: Train::default(),
            shown: None,
            past: None,
            noise: Span::ZERO,
            paced: false,
        }
    }

    /// Returns the rate that this round's train shows, if it is believed: it is long, or the path spread it and its parts
    /// agree.
    fn rate_now(&self, base: Span) -> Option<Rate> {
        let whole = self.train.whole()?;
        let many = self.train.points >= POINTS;
        let long = self.train.points >= POINTS / 2 && whole.took * if many { 4 } else { 2 } >= base;
        let even = many && whole.is_spread() && self.train.is_even();
        let tail = self.train.tail()?;
        Some(whole.rate.max(tail.rate)).filter(|_| (long || even) && !self.limited)
    }

    /// Ends a round. Returns the step that leaves, if a larger flight has brought no higher rate.
    fn end_round(&mut self, v: &View, began: Instant, before: Bytes, base: Span) -> Option<Step> {
        let (flight, took) = (before - self.before, v.now.since(began));
        let rate = Rate::new(flight, took).filter(|_| !self.limited)?;
        let last = self.past.replace(Past { flight, took, rate });
        let busy = self.train.took() >= (base + self.noise).scale(7, 8);
        self.shown = self.rate_now(base);
        let last = last.filter(|l| flight > l.flight + l.flight / 8)?;
        if self.params.noise && rate >= last.rate_for(flight, Fixed(Fixed::ONE / 2)) {
            // Neither flight met a queue: what delay both had is not of their making.
            let delay = Span(took.min(last.took).0.saturating_sub(base.0));
            self.noise = self.noise.max(delay.min(base));
        }
        if !busy || rate >= last.rate_for(flight, self.params.follow) {
            return None;
        }
        let filled = rate.max(last.rate).over(base + self.noise);
        let left = times(filled, self.params.keep).max(v.iw / 2).min(v.cwnd);
        Some(Step::set(left).and_exit(Exit::RateFlat))
    }

    /// Returns the largest window of this round.
    fn cap(&self, rate: Option<Rate>, brakes: bool, base: Span) -> Bytes {
        let least = if brakes {
            // Twice the noise: so much more is told from none.
            let noise = self.flight.scale(self.noise.0 * 2, base.0.max(1));
            self.flight + times(self.flight, self.params.creep).max(noise).min(self.flight)
        } else {
            self.flight * 2
        };
        let bound = rate.map_or(Bytes::ZERO, |r| times(r.over(base + self.noise), self.params.over));
        bound.min(self.flight * u64::from(self.params.fast)).max(least)
    }

    fn grow(&mut self, v: &View, ack: &Ack, base: Span) -> Step {
        let now = self.rate_now(base);
        let rate = now.max(self.shown);
        let brakes = self.params.brake && now.is_some() && self.train.took() * 4 >= base;
        let cap = self.cap(rate, brakes, base);
        let gain = if cap > self.flight * 2 { u64::from(self.params.fast) - 1 } else { 1 };
        let step = Step::grow((v.slow_start_growth(ack) * gain).min(cap - v.cwnd));
        let spread = self.train.whole().is_none_or(|w| w.is_spread());
        match rate.filter(|_| v.supports_pacing && spread) {
            Some(rate) => {
                self.paced = true;
                // Never slower than the window needs.
                let rate = rate.max(Rate::new(v.cwnd, base).unwrap_or(rate));
                step.pace(Pace::Rate(
                    rate.scale(self.params.pace.0.unsigned_abs(), Fixed::ONE.unsigned_abs()),
                ))
            }
            None if core::mem::take(&mut self.paced) => step.pace(Pace::Host),
            None => step,
        }
    }
}

impl Startup for RateBound {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let before = v.delivered - ack.delivered;
        let base = v.min_rtt.unwrap_or(Span::ZERO);
        let newest = self.newest.map_or(ack.newest.mark, |m| m.max(ack.newest.mark));
        self.newest = Some(newest);
        if self.round.ends_round(newest, v.next) || self.began.is_none() {
            let left = self.began.and_then(|began| self.end_round(v, began, before, base));
            (self.began, self.before) = (Some(v.now), before);
            self.flight = ack.prior_inflight.max(v.mss);
            (self.peak, self.lost, self.limited) = (self.flight, Bytes::ZERO, false);
            self.train = Train::default();
            if let Some(left) = left {
                return left;
            }
        }
        self.limited |= ack.limit == Limit::Application;
        self.peak = self.peak.max(ack.prior_inflight);
        self.train.add(v.now, before, ack);
        self.grow(v, ack, base)
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        if matches!(c.signal, Signal::Timeout | Signal::LocalStall) {
            return Step::exit(c.signal.into());
        }
        let base = v.min_rtt.unwrap_or(Span::ZERO);
        self.lost += c.lost.max(v.mss);
        let now = self.rate_now(base);
        let few = self.lost <= v.mss * FEW;
        let full = now.is_some_and(|r| self.flight >= r.over(base).scale(3, 4));
        if c.signal == Signal::Loss && few && !full {
            return Step::HOLD;
        }
        let most = self.peak.max(v.inflight + c.lost).scale(7, 10);
        let rate = now.max(self.shown);
        let left = rate.map_or(most, |r| r.over(base).min(most)).max(v.mss * 2);
        Step::set(left).ssthresh(left).and_exit(c.signal.into())
    }

    fn phase(&self) -> &'static str {
        if self.paced { "paced" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.shown.map_or(f64::NAN, |r| r.0 as f64));
        put("noise_s", self.noise.as_secs_f64());
    }
}
