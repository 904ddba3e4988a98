//! The effect of one arm against another: the ratio of their means, with an interval of [`slowstart_stats::sequence`].
//!
//! A unit of assignment is a connection, or all connections of a client's prefix, which are not independent.
//! Each unit has the sum of its connections' values and their number; the variance of an arm's mean is that
//! of the units' deviations from it (linearisation of a ratio: Deng et al., Applying the delta method in
//! metric analytics, KDD 2018).

use crate::outcome::{Measure, Outcome};
use serde::{Deserialize, Serialize};
use slowstart_stats::sequence::{self, FEWEST, Power};
use std::collections::BTreeMap;

/// The sums of one arm's units for one measure: all that an estimate needs, so rows of connections can stay
/// where they are. Of a unit, `y` is the sum of its connections' values (logarithms, for a geometric measure)
/// and `x` their number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sums {
    /// Number of units.
    units: u64,
    /// Number of connections.
    connections: u64,
    y: f64,
    x: f64,
    yy: f64,
    xx: f64,
    xy: f64,
}

/// The largest value of a connection, of a geometric measure its logarithm: a nanosecond and 2^64 of them lie
/// within.
const MOST_TERM: f64 = 24.0;

/// A mean, which of a geometric measure is one of logarithms, and the variance of that mean.
pub(crate) type Mean = (f64, f64);

impl Sums {
    /// Adds one unit, with the sum of its connections' values.
    fn add(&mut self, y: f64, connections: u64) {
        let x = connections as f64;
        self.units += 1;
        self.connections += connections;
        self.y += y;
        self.x += x;
        self.yy += y * y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// Returns the sums of one arm over connections. Units are looked up only if several connections may
    /// share one.
    pub fn of<'a>(
        outcomes: impl Iterator<Item = &'a Outcome>,
        measure: Measure,
        arm: usize,
        shared_units: bool,
    ) -> Self {
        let mine = outcomes.filter(|o| o.arm == arm).filter_map(|o| Some((o.unit, measure.term(o)?)));
        Self::of_terms(mine, shared_units)
    }

    /// Returns the sums of connections, each with its unit and its value.
    pub(crate) fn of_terms(terms: impl Iterator<Item = (u64, f64)>, shared_units: bool) -> Self {
        let mut sums = Self::default();
        if shared_units {
            let mut units: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
            for (unit, y) in terms {
                let (sum, n) = units.entry(unit).or_default();
                *sum += y;
                *n += 1;
            }
            for (sum, n) in units.into_values() {
                sums.add(sum, n);
            }
        } else {
            for (_, y) in terms {
                sums.add(y, 1);
            }
        }
        sums
    }

    /// Returns the sums of units of one connection each, of which `ones` have the value 1 and the others 0.
    pub(crate) fn of_count(units: u64, ones: u64) -> Self {
        let (n, ones) = (units as f64, ones as f64);
        Self { units, connections: units, y: ones, x: n, yy: ones, xx: n, xy: ones }
    }

    /// Returns the number of units.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Returns the mean; `None` with fewer than [`FEWEST`] units.
    pub(crate) fn mean(&self) -> Option<Mean> {
        if self.units < FEWEST || self.x <= 0.0 {
            return None;
        }
        let (n, mean) = (self.units as f64, self.y / self.x);
        let squares = self.yy - 2.0 * mean * self.xy + mean * mean * self.xx;
        let variance = n / (n - 1.0) * squares.max(0.0) / (self.x * self.x);
        Some((mean, variance))
    }

    /// Returns the sum of the values.
    pub(crate) fn total(&self) -> f64 {
        self.y
    }

    /// Returns the mean of the values, 0 of none.
    pub(crate) fn share(&self) -> f64 {
        if self.x > 0.0 { self.y / self.x } else { 0.0 }
    }

    /// Returns the variance of the difference of both means if the units of both have one mean.
    pub(crate) fn variance_of_like_shares(&self, other: &Self) -> f64 {
        let mut both = self.clone();
        both.merge(other);
        let mean = both.share();
        let squares = (both.yy - 2.0 * mean * both.xy + mean * mean * both.xx).max(0.0);
        let of = |s: &Self| s.units as f64 / (s.x * s.x);
        squares / (both.units as f64 - 1.0) * (of(self) + of(other))
    }

    /// True if these may be the sums of units: finite, with the squares that such sums have, no more units than
    /// connections, and no value beyond those that a connection can have ([`MOST_TERM`]).
    pub(crate) fn is_plausible(&self) -> bool {
        // Rounding of sums.
        let at_most = |a: f64, b: f64| a <= b * (1.0 + 1e-9) + 1e-9;
        let units = self.units as f64;
        [self.y, self.x, self.yy, self.xx, self.xy].iter().all(|v| v.is_finite())
            && (self.units == 0) == (self.connections == 0)
            && self.units <= self.connections
            && self.x.total_cmp(&(self.connections as f64)).is_eq()
            && self.xx >= self.x
            && at_most(self.xx, self.x * self.x)
            && at_most(self.y.abs(), MOST_TERM * self.x)
            && at_most(self.xy.abs(), MOST_TERM * self.xx)
            && at_most(self.yy, MOST_TERM * MOST_TERM * self.xx)
            // The squares of means are at most the means of squares (Cauchy, Schwarz).
            && at_most(self.y * self.y, units * self.yy)
            && at_most(self.x * self.x, units * self.xx)
            && at_most(self.xy * self.xy, self.xx * self.yy)
    }

    /// Returns the arm's mean in the unit of the measure: a geometric mean of seconds or of a ratio, or a
    /// mean share. `None` if it has no value.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        let mean = (self.x > 0.0).then(|| self.y / self.x)?;
        Some(if measure.is_geometric() { libm::exp(mean) } else { mean })
    }
}

/// The ratio of two arms' means less 1: -0.2 is 20 % less.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The estimate, in the unit of the measure.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval; infinite if the control's mean may be zero, which JSON has as null.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
    /// Standard error of the contrast times the square root of the number of units, relative to the control's
    /// mean.
    #[serde(skip)]
    pub deviation: f64,
    /// Units of both arms.
    pub units: u64,
}

impl Effect {
    /// True if the interval shows that the arm has less than the control.
    pub fn is_less(&self) -> bool {
        self.high < 0.0
    }

    /// True if the interval shows that the arm has more than the control.
    pub fn is_more(&self) -> bool {
        self.low > 0.0
    }
}

/// An estimate of a difference of logarithms as a ratio less 1.
pub(crate) fn of_logarithms(difference: f64, variance: f64, units: u64, alpha: f64) -> Effect {
    let half = sequence::radius(units, alpha) * libm::sqrt(variance);
    Effect {
        estimate: libm::expm1(difference),
        low: libm::expm1(difference - half),
        high: libm::expm1(difference + half),
        deviation: libm::sqrt(variance * units as f64),
        units,
    }
}

/// Returns the effect of `arm` against `control`; `None` while either has fewer than [`FEWEST`] units. The
/// interval of a ratio of arithmetic means holds each ratio whose contrast (arm - ratio x control) may be
/// zero (Fieller 1954).
pub fn effect(measure: Measure, arm: &Sums, control: &Sums, alpha: f64) -> Option<Effect> {
    effect_of_means(measure, arm.mean()?, control.mean()?, arm.units + control.units, alpha)
}

/// Returns the effect of an arm with this mean against a control with that one, from so many units of both.
fn effect_of_means(measure: Measure, (a, va): Mean, (c, vc): Mean, units: u64, alpha: f64) -> Option<Effect> {
    if measure.is_geometric() {
        return Some(of_logarithms(a - c, va + vc, units, alpha));
    }
    let q2 = sequence::radius(units, alpha).powi(2);
    if c <= 0.0 {
        return None;
    }
    let deviation = libm::sqrt((va + vc) * units as f64) / c;
    let (square, estimate) = (c * c - q2 * vc, a / c - 1.0);
    if square <= 0.0 {
        // The control's mean may be zero.
        return Some(Effect { estimate, low: -1.0, high: f64::INFINITY, deviation, units });
    }
    let root = libm::sqrt((q2 * (a * a * vc + c * c * va - q2 * va * vc)).max(0.0));
    let end = |sign: f64| (a * c + sign * root) / square - 1.0;
    Some(Effect { estimate, low: end(-1.0).max(-1.0), high: end(1.0), deviation, units })
}

/// Returns true if it is shown that the arm's mean exceeds the control's by more than the fraction `more`
/// (0.2: 20 %).
pub fn exceeds(measure: Measure, arm: &Sums, control: &Sums, more: f64, alpha: f64) -> bool {
    let (Some(a), Some(c)) = (arm.mean(), control.mean()) else { return false };
    exceeds_of_means(measure, a, c, arm.units + control.units, more, alpha)
}

fn exceeds_of_means(
    measure: Measure,
    (a, va): Mean,
    (c, vc): Mean,
    units: u64,
    more: f64,
    alpha: f64,
) -> bool {
    let radius = sequence::radius(units, alpha);
    if measure.is_geometric() {
        return a - c - libm::log1p(more) > radius * libm::sqrt(va + vc);
    }
    let factor = 1.0 + more;
    a - factor * c > radius * libm::sqrt(va + factor * factor * vc)
}

/// Returns the number of units of both arms together after which an arm whose measure is the control's times
/// `1 + harm` is found to exceed it by `more`, with a probability of 95 %. The arm's values are taken to be
/// spread as the control's, times `1 + harm`, and the number of units to grow in the present proportion.
/// `None` while it cannot be said.
pub fn units_until_exceeds(
    measure: Measure,
    arm: &Sums,
    control: &Sums,
    (more, harm): (f64, f64),
    alpha: f64,
) -> Option<u64> {
    let (c, vc) = control.mean()?;
    let (na, nc) = (arm.units.max(1) as f64, control.units as f64);
    let (units, of_arm) = (na + nc, vc * nc / na);
    if measure.is_geometric() {
        let contrast = libm::log1p(harm) - libm::log1p(more);
        return sequence::needed(contrast, libm::sqrt((vc + of_arm) * units), alpha, Power::NinetyFive);
    }
    let square = |x: f64| x * x;
    let variance = square(1.0 + harm) * of_arm + square(1.0 + more) * vc;
    sequence::needed((harm - more) * c, libm::sqrt(variance * units), alpha, Power::NinetyFive)
}

/// The means of an arm and of the control over strata, each stratum weighted by its units of both, and the
/// units of all. Strata without enough units count together as one, and not at all if even together they have
/// too few.
fn means_over_strata(strata: &[(Sums, Sums)]) -> Option<(Mean, Mean, u64)> {
    let mut rest = (Sums::default(), Sums::default());
    let mut parts = Vec::new();
    for (arm, control) in strata {
        if let (Some(a), Some(c)) = (arm.mean(), control.mean()) {
            parts.push((a, c, arm.units + control.units));
        } else {
            rest.0.merge(arm);
            rest.1.merge(control);
        }
    }
    if let (Some(a), Some(c)) = (rest.0.mean(), rest.1.mean()) {
        parts.push((a, c, rest.0.units + rest.1.units));
    }
    let units: u64 = parts.iter().map(|p| p.2).sum();
    let mut over = ((0.0, 0.0), (0.0, 0.0));
    for ((a, va), (c, vc), n) in parts {
        let weight = n as f64 / units as f64;
        over.0.0 += weight * a;
        over.0.1 += weight * weight * va;
        over.1.0 += weight * c;
        over.1.1 += weight * weight * vc;
    }
    (units > 0).then_some((over.0, over.1, units))
}

/// Returns the effect over strata: that of the strata's means, weighted by their units. Strata without enough
/// units count together as one, and not at all if even together they have too few.
pub fn stratified(measure: Measure, strata: &[(Sums, Sums)], alpha: f64) -> Option<Effect> {
    let (arm, control, units) = means_over_strata(strata)?;
    effect_of_means(measure, arm, control, units, alpha)
}

/// Returns true if it is shown over strata that the arm's mean exceeds the control's by more than the
/// fraction `more`.
pub fn exceeds_over_strata(measure: Measure, strata: &[(Sums, Sums)], more: f64, alpha: f64) -> bool {
    means_over_strata(strata)
        .is_some_and(|(arm, control, units)| exceeds_of_means(measure, arm, control, units, more, alpha))
}

/// The logarithm of the ratio of an arm's mean to the control's over strata, its variance (by the delta
/// method, for an arithmetic measure) and the units it comes from; `None` without enough units or where a
/// mean is zero.
pub(crate) fn log_ratio(measure: Measure, strata: &[(Sums, Sums)]) -> Option<(f64, f64, u64)> {
    let ((a, va), (c, vc), units) = means_over_strata(strata)?;
    if measure.is_geometric() {
        return Some((a - c, va + vc, units));
    }
    (a > 0.0 && c > 0.0).then(|| (libm::log(a / c), va / (a * a) + vc / (c * c), units))
}

impl Sums {
    /// Adds the sums of other units of the same arm and measure.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.units += other.units;
        self.connections += other.connections;
        self.y += other.y;
        self.x += other.x;
        self.yy += other.yy;
        self.xx += other.xx;
        self.xy += other.xy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: impl Iterator<Item = f64>) -> Sums {
        let mut s = Sums::default();
        for v in values {
            s.add(v, 1);
        }
        s
    }

    #[test]
    fn the_effect_on_times_is_the_ratio_of_geometric_means() {
        // Logarithms 0 and 1 alternate; the arm's are greater by ln 1.1.
        let at = |i: u32, by: f64| f64::from(i % 2) + by;
        let control = sums((0..100).map(|i| at(i, 0.0)));
        let arm = sums((0..100).map(|i| at(i, 1.1_f64.ln())));
        let e = effect(Measure::TimeLast, &arm, &control, 0.05).unwrap();
        assert!((e.estimate - 0.1).abs() < 1e-9 && e.low < 0.0 && e.high > 0.1, "{e:?}");
        // The variance of each mean is 0.25 / 99.
        let half = sequence::radius(200, 0.05) * (2.0_f64 * 0.25 / 99.0).sqrt();
        assert!((e.high - (1.1 * half.exp() - 1.0)).abs() < 1e-9);
        assert_eq!(effect(Measure::TimeLast, &sums((0..49).map(|i| at(i, 0.0))), &control, 0.05), None);
    }

    #[test]
    fn sums_that_no_units_have_are_not_plausible() {
        let fair = Sums::of_terms((0..200_u64).map(|i| (i / 3, (i as f64 * 0.01).sin() * 20.0)), true);
        assert!(fair.is_plausible() && Sums::default().is_plausible() && Sums::of_count(9, 4).is_plausible());
        assert!(sums((0..5000).map(|_| -21.3)).is_plausible(), "all the same");
        let changes: [fn(&mut Sums); 9] = [
            |s| s.y = 1e307,
            |s| s.yy = 1e307,
            |s| s.y *= 60.0,
            |s| s.yy /= 2.0,
            |s| s.xy = s.xx * 30.0,
            |s| s.xx = s.x * s.x * 2.0,
            |s| s.x += 1.0,
            |s| s.connections = s.units - 1,
            |s| s.yy = f64::NAN,
        ];
        for (n, change) in changes.iter().enumerate() {
            let mut forged = fair.clone();
            change(&mut forged);
            assert!(!forged.is_plausible(), "{n}: {forged:?}");
        }
    }

    #[test]
    fn a_ratio_of_means_has_an_interval_that_agrees_with_the_test_of_a_guardrail() {
        let control = sums((0..2000).map(|i| f64::from(i % 10)));
        let arm = sums((0..2000).map(|i| 2.0 * f64::from(i % 10)));
        let e = effect(Measure::Retrans, &arm, &control, 0.05).unwrap();
        assert!((e.estimate - 1.0).abs() < 1e-9, "{e:?}");
        let exceeds = |by: f64| exceeds(Measure::Retrans, &arm, &control, by, 0.05);
        assert!(exceeds(e.low - 1e-6) && !exceeds(e.low + 1e-6), "{e:?}");
    }

    #[test]
    fn a_harm_is_seen_where_the_control_has_none() {
        let control = sums((0..200).map(|_| 0.0));
        let arm = sums((0..200).map(|i| f64::from(i % 10)));
        assert!(exceeds(Measure::Retrans, &arm, &control, 0.2, 0.05));
        assert_eq!(effect(Measure::Retrans, &arm, &control, 0.05), None);
    }

    #[test]
    fn connections_of_one_unit_count_as_one() {
        let outcome = |unit: u64, last: f64| Outcome {
            arm: 0,
            unit,
            prefix: unit,
            handshake_rtt_s: Some(0.1),
            milestones_s: [None; 3],
            last_s: Some(last),
            delivered_bytes: 0,
            sent_bytes: 0,
            retransmitted_bytes: 0,
            rtt_mean: None,
            rtt_peak: None,
            app_limited: None,
            exit: None,
        };
        let all: Vec<Outcome> = (0..600).map(|i| outcome(i % 60, 1.0 + (i % 60) as f64)).collect();
        let apart = Sums::of(all.iter(), Measure::TimeLast, 0, false);
        let together = Sums::of(all.iter(), Measure::TimeLast, 0, true);
        assert_eq!((apart.units(), together.units(), together.connections()), (600, 60, 600));
        let ((a, va), (b, vb)) = (apart.mean().unwrap(), together.mean().unwrap());
        assert!((a - b).abs() < 1e-9);
        // Ten equal values a unit tell as much as one: the variance is ten times that of 600 values.
        assert!((vb / va - 10.0).abs() < 0.3, "{va} {vb}");
    }
}
