//! The trials of several servers with one plan, taken together.
//!
//! Each server is a stratum, and so is each class of RTT within it if the trial is stratified: an effect over
//! all is that of the strata's means, weighted by their units ([`crate::estimate::stratified`]). So a server
//! is compared with itself only, and servers may differ in clients, kernels and load.
//!
//! **Looks.** What a server has told only grows. The units of all servers, in the order in which they became
//! known to the one who looks, are one sequence of independent units, and its intervals ([`slowstart_stats::sequence`])
//! hold at every look whichever server reports when, as long as nobody chooses the time of a report by units
//! that have not been reported yet.
//!
//! **Heterogeneity.** Cochran's Q (Biometrics 10, 1954), I² (Higgins, Thompson, Statistics in Medicine 21,
//! 2002) and the variance between servers tau² (`DerSimonian`, Laird, Controlled Clinical Trials 7, 1986).
//! The effect on a server like these is the mean of random effects with the interval of Hartung and Knapp
//! (Statistics in Medicine 20, 2001) and the interval of prediction of Higgins, Thompson and Spiegelhalter
//! (Journal of the Royal Statistical Society A 172, 2009). These hold for one look.

use crate::analysis::ALPHA;
use crate::balance;
use crate::estimate::{Effect, Sums, exceeds_over_strata, log_ratio, stratified};
use crate::guard::Guard;
use crate::lacking::{borne_out, lacks_more, verdict_text};
use crate::outcome::Measure;
use crate::statistics::{PlannedTrial, Statistics};
use serde::Serialize;
use slowstart_stats::sequence::radius;
use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};
use std::collections::BTreeMap;
use thiserror::Error;

/// A server of the fleet.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name: that of its folder.
    pub name: String,
    /// The statistics of its trial.
    pub statistics: Statistics,
}

/// Why servers cannot be taken together.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PoolError {
    /// There is no server at all.
    #[error("no server: give the folder of at least one trial")]
    None,
    /// Two folders hold the same trial.
    #[error("{first} and {second} hold the same trial of the same server (run {run})")]
    Twice {
        /// The first folder.
        first: String,
        /// The second.
        second: String,
        /// The identifier of both.
        run: String,
    },
    /// A server had another plan than the first one.
    #[error(
        "{server}: {key}: found {found}, expected {expected} as in {first}; only trials with one plan can be pooled"
    )]
    Plan {
        /// The server.
        server: String,
        /// What differs.
        key: &'static str,
        /// What it has.
        found: String,
        /// What the first server has.
        expected: String,
        /// The first server.
        first: String,
    },
}

/// The effect of an arm against the control on one server.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerEffect {
    /// The name of the server.
    pub server: String,
    /// The effect; `None` without enough units. The intervals of all servers of a comparison hold together at
    /// every look.
    pub effect: Option<Effect>,
    /// True if it is shown, over all looks and servers, that this server's effect is not that of the others.
    pub disagrees: bool,
}

/// How the effects of servers differ. For one look.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Heterogeneity {
    /// Servers with enough units.
    pub servers: usize,
    /// Cochran's Q, the weighted sum of squares of what servers differ by.
    pub q: f64,
    /// Probability of a Q at least as large if all servers had one effect.
    pub p: f64,
    /// Share of the variation between servers that chance does not explain, 0 to 1.
    pub i_squared: f64,
    /// Standard deviation between servers, of the logarithm of the ratio.
    pub tau: f64,
    /// The mean effect of servers like these, with its interval of 95 %; -0.2 is 20 % less.
    pub mean: [f64; 3],
    /// The interval in which the effect of one more such server lies with 95 %; `None` with fewer than three
    /// servers.
    pub next_server: Option<[f64; 2]>,
}

/// Two arms compared over all servers.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledComparison {
    /// The name of the arm that is compared.
    pub arm: String,
    /// What it is compared with.
    pub with: String,
    /// The measure by which it is compared.
    pub measure: Measure,
    /// The effect over all servers; `None` until there are enough units.
    pub effect: Option<Effect>,
    /// Effects by server; empty for measures other than that of the trial.
    pub servers: Vec<ServerEffect>,
    /// How the servers differ; `None` with fewer than two that have enough units.
    pub heterogeneity: Option<Heterogeneity>,
}

/// What is known of one arm over all servers.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledArm {
    /// The name of the arm.
    pub name: String,
    /// Its share, as a fraction of 1.
    pub share: f64,
    /// Units of assignment on the servers that are compared.
    pub units: u64,
    /// Connections of these servers without a value of the trials' measure, as far as it is known.
    pub without_value: u64,
    /// Mean of each measure over these servers, by its name.
    pub means: BTreeMap<&'static str, f64>,
    /// Servers that ended it.
    pub ended_on: Vec<String>,
    /// Guardrails that it is shown to have crossed over all servers.
    pub crossed: Vec<String>,
}

/// What is known of one server.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerSummary {
    /// The name of the server.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// Seconds since its trial began.
    pub seconds: f64,
    /// Units of each arm.
    pub units: Vec<u64>,
    /// Connections of each arm without a value of the trials' measure: those that are open or delivered nothing
    /// have no time to the last byte. Means and effects are of the others. `None` if it is not known.
    pub without_value: Vec<Option<u64>>,
    /// Records that its kernel could not hand over.
    pub lost_records: u64,
    /// False if its arms have not received their shares. It is then left out of every comparison.
    pub balanced: bool,
}

/// All that the trials of a fleet show at one time.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pooled {
    /// The measure that the trials were started for.
    pub measure: Measure,
    /// The servers, in the order in which they were given.
    pub servers: Vec<ServerSummary>,
    /// The arms; the first is the control.
    pub arms: Vec<PooledArm>,
    /// Each pair of arms by the trials' measure, then each arm against the control by the other measures.
    pub comparisons: Vec<PooledComparison>,
    /// Arms that no other arm is shown to be better than.
    pub leaders: Vec<String>,
    /// The result in one sentence.
    pub verdict: String,
    /// What limits it, a sentence each.
    pub notes: Vec<String>,
}

fn same_plan(first: &Server, other: &Server) -> Result<(), PoolError> {
    let Some((key, expected, found)) = first.statistics.plan.difference(&other.statistics.plan) else {
        return Ok(());
    };
    let (server, first) = (other.name.clone(), first.name.clone());
    Err(PoolError::Plan { server, key, found, expected, first })
}

/// The sums of two arms, a pair for each class of RTT.
fn pairs(statistics: &Statistics, measure: Measure, arm: usize, with: usize) -> Vec<(Sums, Sums)> {
    let of = |s: &crate::statistics::StratumSums| {
        let sums = s.sums.get(measure.name())?;
        Some((sums.get(arm)?.clone(), sums.get(with)?.clone()))
    };
    statistics.strata.iter().filter_map(of).collect()
}

/// The servers that are compared.
struct Fleet<'a> {
    servers: Vec<&'a Server>,
    arms: usize,
}

impl Fleet<'_> {
    fn number_of_pairs(&self) -> f64 {
        (self.arms * (self.arms - 1)) as f64 / 2.0
    }

    fn strata(&self, measure: Measure, arm: usize, with: usize) -> Vec<(Sums, Sums)> {
        self.servers.iter().flat_map(|s| pairs(&s.statistics, measure, arm, with)).collect()
    }

    /// Whether an arm, and what it is compared with, are shown to lack a value of the measure more often than the
    /// other: on each server, then over all of them. `None` where that is not known.
    fn lacks(&self, measure: Measure, arm: usize, with: usize) -> Vec<Option<[bool; 2]>> {
        let alpha = ALPHA / self.number_of_pairs() / (self.servers.len() + 1) as f64;
        let mut all = (Sums::default(), Sums::default());
        let of = |a: &Sums, b: &Sums| [lacks_more(a, b, alpha), lacks_more(b, a, alpha)];
        let mut found: Vec<_> = self
            .servers
            .iter()
            .map(|s| {
                let (a, b) = s.statistics.lacking(measure, arm).zip(s.statistics.lacking(measure, with))?;
                all.0.merge(&a);
                all.1.merge(&b);
                Some(of(&a, &b))
            })
            .collect();
        found.push(Some(of(&all.0, &all.1)));
        found
    }

    /// Units of an arm that have a value, on a server or, beyond the last one, on all of them.
    fn units_with_value(&self, measure: Measure, arm: usize, place: usize) -> u64 {
        let servers = self.servers.get(place..=place).unwrap_or(&self.servers);
        let strata = servers.iter().flat_map(|s| &s.statistics.strata);
        strata.filter_map(|s| s.sums.get(measure.name())?.get(arm)).map(Sums::units).sum()
    }

    fn by_server(
        &self,
        measure: Measure,
        arm: usize,
        with: usize,
        lacks: &[Option<[bool; 2]>],
    ) -> Vec<ServerEffect> {
        let comparable = !anywhere(lacks).contains(&true);
        let alpha = ALPHA / self.number_of_pairs() / self.servers.len() as f64;
        let of = |(i, server): (usize, &&Server)| {
            let mine = pairs(&server.statistics, measure, arm, with);
            let others: Vec<(Sums, Sums)> = self
                .servers
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != i)
                .flat_map(|(_, s)| pairs(&s.statistics, measure, arm, with))
                .collect();
            let both = log_ratio(measure, &mine).zip(log_ratio(measure, &others));
            let disagrees = both.filter(|_| comparable).is_some_and(|((a, va, na), (b, vb, nb))| {
                (a - b).abs() > radius(na + nb, alpha) * libm::sqrt(va + vb)
            });
            let effect = borne_out(stratified(measure, &mine, alpha), lacks[i].unwrap_or_default());
            ServerEffect { server: server.name.clone(), effect, disagrees }
        };
        self.servers.iter().enumerate().map(of).collect()
    }

    fn heterogeneity(&self, measure: Measure, arm: usize, with: usize) -> Option<Heterogeneity> {
        let each = self.servers.iter().filter_map(|s| {
            let (d, v, _) = log_ratio(measure, &pairs(&s.statistics, measure, arm, with))?;
            (v > 0.0).then_some((d, v))
        });
        heterogeneity(&each.collect::<Vec<_>>())
    }
}

/// An arm that is shown to lack a value of the trials' measure more often than another.
struct Unlike {
    more: usize,
    less: usize,
    /// The numbers of the servers on which it is shown; beyond the last one if only all together show it.
    places: Vec<usize>,
}

impl Unlike {
    fn notes(&self, measure: Measure, arms: &[PooledArm], fleet: &Fleet<'_>) -> Vec<String> {
        let note = |place: usize| {
            let servers = fleet.servers.get(place..=place).unwrap_or(&fleet.servers);
            let on = servers.first().filter(|_| place < fleet.servers.len());
            let on = on.map_or("all servers", |s| s.name.as_str());
            let (more, less) = (&arms[self.more].name, &arms[self.less].name);
            let of = |arm: usize| {
                let mut all = Sums::default();
                servers.iter().filter_map(|s| s.statistics.lacking(measure, arm)).for_each(|l| all.merge(&l));
                (all.total() as u64, all.connections())
            };
            let ((a, all_a), (b, all_b)) = (of(self.more), of(self.less));
            if fleet.units_with_value(measure, self.more, place) == 0 {
                let have = all_b - b;
                return format!(
                    "{on}: no unit of {more} has a {measure}, and {have} of {less} have: worse than any"
                );
            }
            format!("{on}: {a} of {all_a} units of {more} have no {measure}, and {b} of {all_b} of {less}")
        };
        self.places.iter().copied().map(note).collect()
    }
}

/// A sentence on a server where no arm has a value of the measure, or where that is not known.
fn nothing_known(measure: Measure, server: &Server, summary: &ServerSummary) -> Option<String> {
    let (name, units) = (&summary.name, summary.units.iter().sum::<u64>());
    let sums = server.statistics.strata.iter().filter_map(|s| s.sums.get(measure.name()));
    let none = units > 0 && sums.flatten().all(|s| s.units() == 0);
    if !none && summary.without_value.iter().any(Option::is_none) {
        return Some(format!("{name}: how many have no {measure} is not known"));
    }
    none.then(|| format!("{name}: none of its {units} units has a {measure}, so it says nothing about that"))
}

/// Of what [`Fleet::lacks`] returns: whether it is so anywhere.
fn anywhere(lacks: &[Option<[bool; 2]>]) -> [bool; 2] {
    let any = |side: usize| lacks.iter().flatten().any(|l| l[side]);
    [any(0), any(1)]
}

/// The mean of `effects`, pairs of a contrast and its variance, weighted by the inverse of their variances
/// plus `between`; and the sum of the weights.
fn weighted_mean(effects: &[(f64, f64)], between: f64) -> (f64, f64) {
    let weights: f64 = effects.iter().map(|(_, v)| 1.0 / (v + between)).sum();
    (effects.iter().map(|(d, v)| d / (v + between)).sum::<f64>() / weights, weights)
}

/// Returns how contrasts (logarithms of ratios, with their variances above 0) differ; `None` with fewer than
/// two.
fn heterogeneity(effects: &[(f64, f64)]) -> Option<Heterogeneity> {
    let k = effects.len();
    if k < 2 {
        return None;
    }
    let freedom = (k - 1) as f64;
    let (fixed, weights) = weighted_mean(effects, 0.0);
    let q: f64 = effects.iter().map(|(d, v)| (d - fixed).powi(2) / v).sum();
    let squares: f64 = effects.iter().map(|(_, v)| 1.0 / (v * v)).sum();
    let between = ((q - freedom) / (weights - squares / weights)).max(0.0);
    let (mean, weights) = weighted_mean(effects, between);
    let spread: f64 = effects.iter().map(|(d, v)| (d - mean).powi(2) / (v + between)).sum();
    // Not below the variance of a fixed effect, which few servers that happen to agree would promise (Röver
    // et al., BMC Medical Research Methodology 15, 2015).
    let variance = (spread / freedom).max(1.0) / weights;
    let half = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975) * libm::sqrt(variance);
    let ratio = |d: f64| libm::expm1(d);
    let next = (k >= 3).then(|| StudentsT::new(0.0, 1.0, (k - 2) as f64).ok()).flatten().map(|t| {
        let half = t.inverse_cdf(0.975) * libm::sqrt(between + variance);
        [ratio(mean - half), ratio(mean + half)]
    });
    Some(Heterogeneity {
        servers: k,
        q,
        p: ChiSquared::new(freedom).ok()?.sf(q),
        i_squared: if q > 0.0 { ((q - freedom) / q).max(0.0) } else { 0.0 },
        tau: libm::sqrt(between),
        mean: [ratio(mean), ratio(mean - half), ratio(mean + half)],
        next_server: next,
    })
}

fn is_balanced(statistics: &Statistics, servers: usize) -> bool {
    let arms = statistics.plan.arms.iter().zip(&statistics.units);
    let kept = arms.filter(|(a, _)| !statistics.ended.contains(&a.name));
    let (counts, shares): (Vec<u64>, Vec<f64>) =
        kept.map(|(a, n)| (*n, f64::from(a.share_millionths))).unzip();
    // The servers share the error of one trial.
    counts.len() < 2
        || balance::log_bayes_factor(&counts, &shares) < -libm::log(balance::ALPHA / servers as f64)
}

/// Returns what the trials of these servers show together. The order of the servers changes the order of the
/// result only.
pub fn pool(servers: &[Server]) -> Result<Pooled, PoolError> {
    let first = servers.first().ok_or(PoolError::None)?;
    for (i, server) in servers.iter().enumerate() {
        same_plan(first, server)?;
        if let Some(other) = servers[..i].iter().find(|o| o.statistics.run == server.statistics.run) {
            return Err(PoolError::Twice {
                first: other.name.clone(),
                second: server.name.clone(),
                run: server.statistics.run.clone(),
            });
        }
    }
    let plan = &first.statistics.plan;
    // `Statistics::parse` refuses others.
    let measure = Measure::named(&plan.measure).unwrap_or(Measure::TimeLast);
    let without_value = |s: &Server| -> Vec<Option<u64>> {
        let of = |arm| s.statistics.lacking(measure, arm).map(|l| l.total() as u64);
        (0..plan.arms.len()).map(of).collect()
    };
    let summaries: Vec<ServerSummary> = servers
        .iter()
        .map(|s| ServerSummary {
            name: s.name.clone(),
            kernel: s.statistics.kernel.clone(),
            seconds: s.statistics.seconds,
            units: s.statistics.units.clone(),
            without_value: without_value(s),
            lost_records: s.statistics.lost_records,
            balanced: is_balanced(&s.statistics, servers.len()),
        })
        .collect();
    let compared = servers.iter().zip(&summaries).filter(|(_, summary)| summary.balanced);
    let fleet = Fleet { servers: compared.map(|(s, _)| s).collect(), arms: plan.arms.len() };
    let arms = arms_of(plan, measure, &fleet, servers);
    // As on one server, an arm that was ended takes part in no comparison.
    let running: Vec<usize> =
        (0..arms.len()).filter(|i| arms[*i].ended_on.is_empty() && arms[*i].crossed.is_empty()).collect();
    let (comparisons, beaten, unlike) = comparisons(&fleet, &arms, &running, measure);
    let leaders: Vec<usize> = running.iter().copied().filter(|i| !beaten[*i]).collect();
    let names: Vec<&str> = leaders.iter().map(|i| arms[*i].name.as_str()).collect();
    let verdict = if fleet.servers.is_empty() {
        "invalid: on no server have the arms received their shares, so nothing can be compared".to_string()
    } else if names.is_empty() {
        "not decided: each arm is worse than another on some server".to_string()
    } else {
        let unlike = unlike.iter().map(|u| verdict_text(measure, &arms[u.more].name, &arms[u.less].name));
        crate::analysis::decided(measure, &names, running.len()) + &unlike.collect::<String>()
    };
    let mut notes = notes(&summaries, &arms, &comparisons);
    notes
        .extend(servers.iter().zip(&summaries).filter_map(|(s, summary)| nothing_known(measure, s, summary)));
    notes.extend(unlike.iter().flat_map(|u| u.notes(measure, &arms, &fleet)));
    let leaders = names.into_iter().map(str::to_string).collect();
    Ok(Pooled { measure, servers: summaries, arms, comparisons, leaders, verdict, notes })
}

/// The arms, with where they were ended and the guardrails that they crossed over all servers.
fn arms_of(plan: &PlannedTrial, measure: Measure, fleet: &Fleet<'_>, servers: &[Server]) -> Vec<PooledArm> {
    let guards: Vec<Guard> = plan.guards.iter().filter_map(|g| Guard::parse(g).ok()).collect();
    let alpha = ALPHA / ((plan.arms.len() - 1) * guards.len()).max(1) as f64;
    let of = |(i, planned): (usize, &crate::statistics::PlannedArm)| {
        let mean = |m: Measure| {
            let mut all = Sums::default();
            fleet.strata(m, i, 0).iter().for_each(|(sums, _)| all.merge(sums));
            Some((m.name(), all.value(m)?))
        };
        let crosses = |g: &&Guard| {
            i > 0 && exceeds_over_strata(g.measure, &fleet.strata(g.measure, i, 0), g.more, alpha)
        };
        let ended = servers.iter().filter(|s| s.statistics.ended.contains(&planned.name));
        let lacking = fleet.servers.iter().filter_map(|s| s.statistics.lacking(measure, i));
        PooledArm {
            name: planned.name.clone(),
            share: crate::plan::Share(planned.share_millionths).fraction(),
            units: fleet.servers.iter().map(|s| s.statistics.units[i]).sum(),
            without_value: lacking.map(|l| l.total() as u64).sum(),
            means: Measure::ALL.into_iter().filter_map(mean).collect(),
            ended_on: ended.map(|s| s.name.clone()).collect(),
            crossed: guards.iter().filter(crosses).map(ToString::to_string).collect(),
        }
    };
    plan.arms.iter().enumerate().map(of).collect()
}

fn comparisons(
    fleet: &Fleet<'_>,
    arms: &[PooledArm],
    running: &[usize],
    measure: Measure,
) -> (Vec<PooledComparison>, Vec<bool>, Vec<Unlike>) {
    let alpha = ALPHA / fleet.number_of_pairs();
    let compared = |measure, arm: usize, with: usize, lacks: &[Option<[bool; 2]>], by_server: bool| {
        let any = anywhere(lacks);
        PooledComparison {
            arm: arms[arm].name.clone(),
            with: arms[with].name.clone(),
            measure,
            effect: borne_out(stratified(measure, &fleet.strata(measure, arm, with), alpha), any),
            servers: if by_server { fleet.by_server(measure, arm, with, lacks) } else { Vec::new() },
            heterogeneity: (any == [false; 2]).then(|| fleet.heterogeneity(measure, arm, with)).flatten(),
        }
    };
    let mut all = Vec::new();
    let mut unlike = Vec::new();
    let mut beaten = vec![false; arms.len()];
    for (i, arm) in running.iter().enumerate() {
        for with in &running[..i] {
            let lacks = fleet.lacks(measure, *arm, *with);
            for (side, more, less) in [(0, *arm, *with), (1, *with, *arm)] {
                let places = lacks.iter().enumerate().filter(|(_, l)| l.is_some_and(|l| l[side]));
                let places: Vec<usize> = places.map(|(place, _)| place).collect();
                if let Some(first) = places.first() {
                    // All of them together say no more than each by itself.
                    let places = places.iter().copied().filter(|p| p == first || *p < fleet.servers.len());
                    unlike.push(Unlike { places: places.collect(), more, less });
                }
            }
            let comparison = compared(measure, *arm, *with, &lacks, true);
            if let Some(e) = comparison.effect {
                beaten[*arm] |= e.is_more();
                beaten[*with] |= e.is_less();
            }
            all.push(comparison);
        }
    }
    for u in &unlike {
        beaten[u.more] |= u.places.iter().any(|place| fleet.units_with_value(measure, u.more, *place) == 0);
    }
    for other in Measure::ALL.into_iter().filter(|m| *m != measure) {
        all.extend(
            running
                .iter()
                .filter(|i| **i > 0)
                .map(|arm| compared(other, *arm, 0, &fleet.lacks(other, *arm, 0), false)),
        );
    }
    (all, beaten, unlike)
}

fn notes(servers: &[ServerSummary], arms: &[PooledArm], comparisons: &[PooledComparison]) -> Vec<String> {
    let mut notes = Vec::new();
    for s in servers.iter().filter(|s| !s.balanced) {
        notes.push(format!("{}: its arms have not received their shares, so it is left out", s.name));
    }
    for s in servers.iter().filter(|s| s.lost_records > 0) {
        let units: u64 = s.units.iter().sum();
        let lost = s.lost_records;
        notes.push(format!("{}: {lost} records were lost and {units} units are known", s.name));
    }
    for arm in arms {
        if !arm.ended_on.is_empty() {
            let on = arm.ended_on.join(", ");
            notes.push(format!("{}: ended on {on}, so it takes part in no comparison", arm.name));
        }
        if !arm.crossed.is_empty() {
            let guards = arm.crossed.join(", ");
            notes.push(format!("{}: shown to have crossed {guards} over all servers", arm.name));
        }
    }
    for c in comparisons {
        let disagree: Vec<&str> =
            c.servers.iter().filter(|s| s.disagrees).map(|s| s.server.as_str()).collect();
        if !disagree.is_empty() {
            notes.push(format!(
                "{} against {} on {}: not the effect of the other servers on {}",
                c.arm,
                c.with,
                c.measure,
                disagree.join(", ")
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of chapter 14 of Borenstein, Hedges, Higgins and Rothstein (Introduction to
    /// Meta-Analysis, 2009): six studies, Q = 12.003, I² = 58.34 %, T² = 0.037, p = 0.035, mean of random
    /// effects 0.358. It prints the variances with two digits; half a unit of the last digit of the smallest
    /// one (0.011) changes Q by 0.3.
    #[test]
    fn heterogeneity_is_that_of_a_published_example() {
        let studies =
            [(0.095, 0.033), (0.277, 0.031), (0.367, 0.050), (0.664, 0.011), (0.462, 0.043), (0.185, 0.023)];
        let h = heterogeneity(&studies).expect("six studies");
        assert!((h.q - 12.003).abs() < 0.3, "{h:?}");
        assert!((h.i_squared - 0.583).abs() < 0.012, "{h:?}");
        assert!((h.tau * h.tau - 0.037).abs() < 0.001, "{h:?}");
        assert!((h.mean[0].ln_1p() - 0.358).abs() < 0.001, "{h:?}");
        assert!((h.p - 0.035).abs() < 0.005, "{h:?}");
        assert_eq!(heterogeneity(&studies[..1]), None);
    }

    #[test]
    fn servers_that_agree_have_no_variance_between_them() {
        let h = heterogeneity(&[(-0.2, 0.01), (-0.2, 0.02), (-0.2, 0.03)]).expect("three");
        assert!(h.q.abs() < 1e-12 && h.tau.abs() < 1e-12 && h.i_squared.abs() < 1e-12 && h.p > 0.99, "{h:?}");
        assert!(h.mean[1] < h.mean[0] && h.mean[0] < h.mean[2]);
    }
}
