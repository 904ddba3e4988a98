//! Quantiles with bootstrap intervals (Efron, Tibshirani: An Introduction to the Bootstrap, 1993, chapter 13:
//! percentiles).
//!
//! Units are resampled, not connections. An interval holds for one look: it is for the end of a trial whose
//! length was decided before, and no decision is derived from it.

use crate::outcome::{Measure, Outcome};
use serde::Serialize;
use slowstart_stats::quantile_of_sorted;
use slowstart_stats::random::Stream;
use std::collections::BTreeMap;

/// Number of resamples. Ours.
const RESAMPLES: usize = 400;

/// Largest number of units of an arm that are resampled; of more, evenly spaced ones are taken.
const MOST_UNITS: usize = 4000;

/// A quantile and its 95 % interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Quantile {
    /// Which: 0.5 is the median.
    pub q: f64,
    /// The estimate, in the unit of the measure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Returns the quantiles `qs` (0 to 1) of one arm; empty with fewer than ten units.
pub fn quantiles(outcomes: &[Outcome], measure: Measure, arm: usize, qs: &[f64], seed: u64) -> Vec<Quantile> {
    let mut units: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for o in outcomes.iter().filter(|o| o.arm == arm) {
        if let Some(value) = measure.value(o) {
            units.entry(o.unit).or_default().push(value);
        }
    }
    let every = units.len().div_ceil(MOST_UNITS).max(1);
    let units: Vec<Vec<f64>> = units.into_values().step_by(every).collect();
    if units.len() < 10 {
        return Vec::new();
    }
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let at = |sorted: &[f64], q| quantile_of_sorted(sorted, q).expect("values of ten units or more");
    let all = sorted(units.iter().flatten().copied().collect());
    let mut random = Stream::named(seed, "bootstrap");
    let resamples: Vec<Vec<f64>> = (0..RESAMPLES)
        .map(|_| {
            let draw = |_| &units[random.below(units.len() as u64) as usize];
            let values = sorted((0..units.len()).flat_map(draw).copied().collect());
            qs.iter().map(|q| at(&values, *q)).collect()
        })
        .collect();
    let of = |(i, q): (usize, &f64)| {
        let drawn = sorted(resamples.iter().map(|r| r[i]).collect());
        Quantile { q: *q, value: at(&all, *q), low: at(&drawn, 0.025), high: at(&drawn, 0.975) }
    };
    qs.iter().enumerate().map(of).collect()
}
