//! Rate-bound (docs/explain/rate-bound.md): the rate at which the ACKs of a flight come bounds the window,
//! and it leaves when a larger flight has brought no higher rate.
//!
//! Departs from its specification: nowhere.

use super::Startup;
use crate::param::params;
use crate::round::{Flight, Floor, Round, Train};
use crate::step::{Exit, Step};
use crate::units::{Bytes, Fixed, Instant, Rate, Span};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// The parameters of rate-bound, with their defaults.
    pub struct Params {
        /// The largest growth in a round, as a multiple of the flight.
        fast: Fixed = Fixed::milli(2500), "a number from 2 to 8", |v| (2 * Fixed::ONE..=8 * Fixed::ONE).contains(&v.0);
        /// The bound, as a multiple of what the rate of the ACKs fills.
        over: Fixed = Fixed::milli(1250), "a number from 1 to 2", |v| (Fixed::ONE..=2 * Fixed::ONE).contains(&v.0);
        /// Growth in a round at the bound, as a share of the flight.
        creep: Fixed = Fixed::milli(250), "a share from 0.125 to 1", |v| (Fixed::ONE / 8..=Fixed::ONE).contains(&v.0);
        /// The share of the growth of a flight that the rate must follow.
        follow: Fixed = Fixed::milli(300), "a share from 0 to 0.5", |v| (0..=Fixed::ONE / 2).contains(&v.0);
        /// The window that it leaves with, as a multiple of what the rate found fills.
        keep: Fixed = Fixed::milli(1250), "a number from 0.5 to 2", |v| (Fixed::ONE / 2..=2 * Fixed::ONE).contains(&v.0);
        /// Lost segments in a round that are no sign of a full path, if nothing else is.
        few: u32 = 2, "a whole number up to 10", |v| v <= 10;
        /// If off, neither the noise in round-trip times nor a rise of their floor is learned.
        noise: bool = true, "on or off", |_v| true;
        /// If off, the rate of the ACKs does not slow growth below doubling.
        brake: bool = true, "on or off", |_v| true;
    }
}

/// Points of a train that is believed at any length; half of them are enough for a long one.
const POINTS: u32 = 8;
/// What is left of the data in flight after a loss: beta of CUBIC (RFC 9438 §4.6), in tenths.
const BETA: u64 = 7;

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

/// The startup rate-bound, one instance a connection.
#[derive(Clone, Debug)]
pub struct RateBound {
    pub(crate) params: Params,
    round: Round,
    /// When the round began, and the bytes delivered before it.
    began: Option<Instant>,
    before: Bytes,
    flight: Flight,
    train: Train,
    /// The rate that the train of the last round showed.
    shown: Option<Rate>,
    /// The last round that the application did not limit.
    past: Option<Past>,
    /// Delay above the floor that is not of a queue's making.
    noise: Span,
    /// The least RTT of all.
    least: Floor,
    /// That of this round.
    least_of_round: Floor,
    /// That of the last round that met no queue, or a lower one since.
    floor: Span,
}

impl RateBound {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            round: Round::default(),
            began: None,
            before: Bytes::ZERO,
            flight: Flight::default(),
            train: Train::default(),
            shown: None,
            past: None,
            noise: Span::ZERO,
            least: Floor::default(),
            least_of_round: Floor::default(),
            floor: Span::ZERO,
        }
    }

    /// Returns the RTT of the path without a queue: the host's minimum, or the least sample if the host has none, or more if
    /// the path has become longer; `None` if there is no sample.
    fn base(&self, v: &View) -> Option<Span> {
        Some(v.min_rtt.filter(|min| min.0 > 0).or(self.least.0)?.max(self.floor))
    }

    /// Returns the rate that this round's train shows, if it is believed: it is long, or the path spread it
    /// and its parts agree.
    fn rate_now(&self, base: Span) -> Option<Rate> {
        let whole = self.train.whole()?;
        let many = self.train.points >= POINTS;
        let long = self.train.points >= POINTS / 2 && whole.took * if many { 4 } else { 2 } >= base;
        let even = many && whole.is_spread() && self.train.is_even();
        let tail = self.train.tail()?;
        Some(whole.rate.max(tail.rate)).filter(|_| (long || even) && !self.flight.limited)
    }

    /// Ends a round. Returns the step that leaves, if a larger flight has brought no higher rate.
    fn end_round(&mut self, v: &View, began: Instant, before: Bytes, base: Span) -> Option<Step> {
        let (flight, took) = (before - self.before, v.now.since(began));
        let rate = Rate::new(flight, took).filter(|_| !self.flight.limited)?;
        let last = self.past.replace(Past { flight, took, rate });
        let busy = self.train.took() >= took.scale(7, 8);
        self.shown = self.rate_now(base);
        let last = last.filter(|l| flight > l.flight + l.flight / 8)?;
        if self.params.noise && rate >= last.rate_for(flight, Fixed(Fixed::ONE / 2)) {
            // Neither flight met a queue: what delay both had is not of their making. Of this, what all packets of the round
            // had is the path's.
            self.floor = self.floor.max(self.least_of_round.0.unwrap_or(base));
            let base = base.max(self.floor);
            let delay = Span(took.min(last.took).0.saturating_sub(base.0));
            self.noise = self.noise.max(delay.min(base));
        }
        if !busy || rate >= last.rate_for(flight, self.params.follow) {
            return None;
        }
        let filled = rate.max(last.rate).over(base + self.noise);
        let left = times(filled, self.params.keep).max(flight.scale(BETA, 10)).min(v.cwnd);
        Some(Step::set(left).and_exit(Exit::RateFlat))
    }

    /// Returns the largest window of this round.
    fn cap(&self, base: Span) -> Bytes {
        let (now, flight) = (self.rate_now(base), self.flight.first);
        let least = if self.params.brake && now.is_some() && self.train.took() * 4 >= base {
            // Twice the noise: so much more is distinguished from none.
            let noise = flight.scale(self.noise.0 * 2, base.0.max(1));
            flight + times(flight, self.params.creep).max(noise).min(flight)
        } else {
            flight * 2
        };
        let fills = now.max(self.shown).map_or(Bytes::ZERO, |r| r.over(base + self.noise));
        times(fills, self.params.over).min(times(flight, self.params.fast)).max(least)
    }

    fn grow(&self, v: &View, ack: &Ack, base: Span) -> Step {
        let cap = self.cap(base);
        let gain = if cap > self.flight.first * 2 { self.params.fast.0 - Fixed::ONE } else { Fixed::ONE };
        Step::raise(v.cwnd, (v.cwnd + times(v.slow_start_growth(ack), Fixed(gain))).min(cap))
    }
}

impl Startup for RateBound {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        if let Some(rtt) = ack.rtt {
            self.least.add(rtt);
        }
        let Some(base) = self.base(v) else { return Step::grow(v.slow_start_growth(ack)) };
        let before = v.delivered - ack.delivered;
        if self.round.ends_round(ack.newest.mark, v.next) || self.began.is_none() {
            let left = self.began.and_then(|began| self.end_round(v, began, before, base));
            (self.began, self.before) = (Some(v.now), before);
            self.flight = Flight::new(ack.prior_inflight.max(v.mss));
            self.train = Train::default();
            self.least_of_round = Floor::default();
            if let Some(left) = left {
                return left;
            }
        }
        if let Some(rtt) = ack.rtt.filter(|rtt| rtt.0 > 0) {
            self.least_of_round.add(rtt);
            self.floor = self.floor.min(rtt);
        }
        self.flight.add(ack);
        self.train.add(v.now, before, ack);
        self.grow(v, ack, base)
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Step {
        if matches!(c.signal, Signal::Timeout | Signal::LocalStall) {
            return Step::exit(c.signal.into());
        }
        self.flight.lost += c.lost.max(v.mss);
        let few = self.flight.lost <= v.mss * u64::from(self.params.few);
        let full = self.base(v).is_some_and(|base| {
            self.rate_now(base).is_some_and(|rate| self.flight.first >= rate.over(base).scale(3, 4))
        });
        if c.signal == Signal::Loss && few && !full {
            return Step::HOLD;
        }
        let left = self.flight.peak.max(v.inflight + c.lost).scale(BETA, 10).max(v.mss * 2);
        Step::set(left).ssthresh(left).and_exit(c.signal.into())
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.shown.map_or(f64::NAN, |r| r.0 as f64));
        put("noise_s", self.noise.as_secs_f64());
        put("floor_s", self.floor.as_secs_f64());
    }
}
