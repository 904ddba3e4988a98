//! One trial: its outcomes so far and what they show.
//!
//! Every statement is made with 95 % confidence over all looks together. The comparisons of one measure, of
//! each pair of arms, share that error equally (Bonferroni), as do the strata of a comparison and the
//! guardrails of all arms. Measures other than the one that the trial was started for are not corrected for
//! their number.

use crate::balance;
use crate::estimate::{Effect, Sums, effect, exceeds, stratified, units_until_exceeds};
use crate::guard::Guard;
use crate::lacking::{borne_out, lacks_more, verdict_text};
use crate::outcome::{Measure, Outcome, RttClass, Stratify};
use crate::plan::Plan;
use crate::quantile::{Quantile, quantiles};
use crate::statistics::{self, PlannedTrial, Statistics, StratumSums};
use serde::Serialize;
use slowstart_stats::sequence::{self, Power};
use std::collections::{BTreeMap, BTreeSet};

/// The error of all statements of one kind together.
pub const ALPHA: f64 = 0.05;

/// Connections that a trial holds at most, which bounds its memory; later ones are counted and not analysed.
pub const MOST_CONNECTIONS: usize = 1_000_000;

/// Prefixes that are strata of their own.
const PREFIX_STRATA: usize = 8;

/// An arm that was ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ended {
    /// The guardrail that it crossed.
    pub guard: String,
    /// The effect on the guardrail's measure then; `None` if the control's mean was zero.
    pub effect: Option<Effect>,
    /// Connections of this arm and of the control until then.
    pub connections: u64,
}

/// A trial: its plan, and the outcomes so far.
#[derive(Clone, Debug)]
pub struct Trial {
    plan: Plan,
    measure: Measure,
    stratify: Stratify,
    guards: Vec<Guard>,
    shared_units: bool,
    outcomes: Vec<Outcome>,
    /// Positions of the connections that are still open, by their identifier.
    open: BTreeMap<u64, usize>,
    not_held: u64,
    /// Records that were lost.
    lost: u64,
    ended: Vec<Option<Ended>>,
}

/// What is known of one arm.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The name of the arm.
    pub name: String,
    /// Its share, as a fraction of 1.
    pub share: f64,
    /// The number of connections that it got.
    pub connections: u64,
    /// The number of units of assignment: connections, or groups of them.
    pub units: u64,
    /// Connections without a value of the trial's measure: those that are open or delivered nothing have no time
    /// to the last byte. Means are of the others.
    pub without_value: u64,
    /// The bytes that its connections had acknowledged.
    pub delivered_bytes: u64,
    /// Mean of each measure, by its name: geometric means of times and RTT ratios, arithmetic mean of
    /// `retrans`.
    pub means: BTreeMap<&'static str, f64>,
    /// Median and 95th percentile of the trial's measure.
    pub quantiles: Vec<Quantile>,
    /// Connections by how their startup ended.
    pub exits: BTreeMap<&'static str, u64>,
    /// Mean share of ACKs at which the application limited the sender.
    pub app_limited: Option<f64>,
    /// Why it was ended, if it was.
    pub ended: Option<Ended>,
}

/// One arm compared with the first by one measure.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the arm that is compared.
    pub arm: String,
    /// What it is compared with.
    pub with: String,
    /// The measure by which it is compared.
    pub measure: Measure,
    /// The stratum; `None` for all connections.
    pub stratum: Option<String>,
    /// The effect; `None` until both arms have enough units.
    pub effect: Option<Effect>,
}

/// How many connections the trial needs for an effect.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needed {
    /// The arm, compared with the control.
    pub arm: String,
    /// The effect: -0.05 is 5 % less.
    pub effect: f64,
    /// Units of both arms in all after which it is found with a probability of 80 %; `None` if a billion are
    /// not enough.
    pub units: Option<u64>,
    /// Units that are still to come.
    pub more: Option<u64>,
}

/// How soon a guardrail ends an arm that has twice the permitted measure.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopDelay {
    /// The guardrail as it was written.
    pub guard: String,
    /// The name of the arm that it would end.
    pub arm: String,
    /// The harm: 1.4 is 140 % more than the control.
    pub harm: f64,
    /// Units that have the guardrail's measure, in the arm or the control, whichever has fewer. With none
    /// the guardrail protects nobody.
    pub observed: u64,
    /// Units of the arm and the control after which it is ended with a probability of 95 %; `None` if not
    /// known.
    pub units: Option<u64>,
}

/// All that a trial shows at one time.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// The measure that the trial was started for.
    pub measure: Measure,
    /// The arms; the first is the control.
    pub arms: Vec<ArmSummary>,
    /// Each pair of arms by the trial's measure, with strata for those against the control; then each arm
    /// against the control by the other measures.
    pub comparisons: Vec<Comparison>,
    /// What is needed for an effect of 5 % on the trial's measure.
    pub needed: Vec<Needed>,
    /// How soon guardrails end an arm.
    pub stop_delays: Vec<StopDelay>,
    /// False if the arms have not received their shares, so that nothing can be concluded.
    pub balanced: bool,
    /// Connections beyond [`MOST_CONNECTIONS`], which are not analysed.
    pub not_held: u64,
    /// Arms that no other arm is shown to be better than.
    pub leaders: Vec<String>,
    /// The result in one sentence.
    pub verdict: String,
}

impl Trial {
    /// Returns a trial without outcomes. With `shared_units` several connections may have the same unit.
    pub fn new(
        plan: Plan,
        measure: Measure,
        stratify: Stratify,
        guards: Vec<Guard>,
        shared_units: bool,
    ) -> Self {
        let ended = vec![None; plan.arms().len()];
        Self {
            plan,
            measure,
            stratify,
            guards,
            shared_units,
            outcomes: Vec::new(),
            open: BTreeMap::new(),
            not_held: 0,
            lost: 0,
            ended,
        }
    }

    /// Returns the plan that it follows.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Adds a connection, or replaces what is known of it if it is open. `connection` identifies it until
    /// `closed`.
    pub fn put(&mut self, connection: u64, outcome: Outcome, closed: bool) {
        let at = if closed { self.open.remove(&connection) } else { self.open.get(&connection).copied() };
        if let Some(at) = at {
            self.outcomes[at] = outcome;
        } else if self.outcomes.len() == MOST_CONNECTIONS {
            self.not_held += u64::from(closed);
        } else {
            if !closed {
                self.open.insert(connection, self.outcomes.len());
            }
            self.outcomes.push(outcome);
        }
    }

    /// Forgets a connection that was open: it belongs to no arm.
    pub fn withdraw(&mut self, connection: u64) {
        let Some(at) = self.open.remove(&connection) else { return };
        self.outcomes.swap_remove(at);
        // The last one took its place.
        let moved = self.outcomes.len();
        if let Some(place) = self.open.values_mut().find(|place| **place == moved) {
            *place = at;
        }
    }

    /// Sets how many records of connections were lost before they could be added, which the verdict names.
    pub fn set_lost(&mut self, records: u64) {
        self.lost = records;
    }

    /// What the verdict says of lost records.
    fn lost_text(&self) -> String {
        let (lost, held) = (self.lost, self.outcomes.len());
        if lost == 0 {
            return String::new();
        }
        format!(
            ". INCOMPLETE: {lost} records were lost beside {held} connections that were analysed; if those that were lost \
             differ, this does not hold"
        )
    }

    /// Returns the connections of arms that have not been ended, and those of ended arms from before.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Returns the connections that are still open and have reached a milestone.
    pub fn open(&self) -> impl Iterator<Item = &Outcome> {
        self.open.values().map(|at| &self.outcomes[*at])
    }

    /// Returns the arms that have been ended.
    pub fn ended(&self) -> &[Option<Ended>] {
        &self.ended
    }

    fn pairs(&self) -> f64 {
        let k = self.plan.arms().len() as f64;
        k * (k - 1.0) / 2.0
    }

    fn sums(&self, measure: Measure, arm: usize) -> Sums {
        Sums::of(self.outcomes.iter(), measure, arm, self.shared_units)
    }

    /// The strata of a connection's stratum number, with their names; one without a name if there are none.
    fn strata(&self) -> (Vec<Option<String>>, Vec<usize>) {
        let mut largest = Vec::new();
        if self.stratify.prefix {
            let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
            for o in &self.outcomes {
                *counts.entry(o.prefix).or_default() += 1;
            }
            largest = counts.into_iter().collect();
            largest.sort_by_key(|(prefix, n)| (std::cmp::Reverse(*n), *prefix));
            largest.truncate(PREFIX_STRATA);
        }
        let name = |o: &Outcome| {
            let rtt = self.stratify.rtt.then(|| RttClass::of(o.handshake_rtt_s).name().to_string());
            let prefix = self.stratify.prefix.then(|| {
                let known = largest.iter().any(|(p, _)| *p == o.prefix);
                if known { format!("prefix {:016x}", o.prefix) } else { "other prefixes".to_string() }
            });
            let names: Vec<String> = rtt.into_iter().chain(prefix).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let mut numbers: BTreeMap<Option<String>, usize> = BTreeMap::new();
        let mut names = Vec::new();
        let of = self.outcomes.iter().map(|o| {
            let name = name(o);
            *numbers.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            })
        });
        let of = of.collect();
        (names, of)
    }

    /// Whether one arm, and another, are shown to lack a value of the measure more often than the other.
    fn lacks(&self, measure: Measure, arm: usize, with: usize) -> [bool; 2] {
        let [a, b] = [arm, with].map(|i| self.lacking(measure, i));
        let alpha = ALPHA / self.pairs();
        [lacks_more(&a, &b, alpha), lacks_more(&b, &a, alpha)]
    }

    fn lacking(&self, measure: Measure, arm: usize) -> Sums {
        Sums::lacking(self.outcomes.iter(), measure, arm, self.shared_units)
    }

    /// Returns the effect of one arm against another on a measure, over strata if there are any and the
    /// measure allows it. Its error over all looks is [`ALPHA`] divided by the number of pairs of arms. `None` if
    /// an arm would be better by the values that it has, and is shown to lack them more often than the other.
    pub fn compare(&self, measure: Measure, arm: usize, with: usize) -> Option<Effect> {
        borne_out(self.effect(measure, arm, with), self.lacks(measure, arm, with))
    }

    fn effect(&self, measure: Measure, arm: usize, with: usize) -> Option<Effect> {
        let alpha = ALPHA / self.pairs();
        if !measure.is_geometric() || !(self.stratify.rtt || self.stratify.prefix) {
            return effect(measure, &self.sums(measure, arm), &self.sums(measure, with), alpha);
        }
        let (names, of) = self.strata();
        stratified(measure, &self.sums_by_stratum(measure, arm, with, names.len(), &of), alpha)
    }

    fn sums_by_stratum(
        &self,
        measure: Measure,
        arm: usize,
        with: usize,
        strata: usize,
        of: &[usize],
    ) -> Vec<(Sums, Sums)> {
        let within = |s: usize| {
            let members = || self.outcomes.iter().zip(of).filter(move |(_, i)| **i == s).map(|(o, _)| o);
            let sums = |a| Sums::of(members(), measure, a, self.shared_units);
            (sums(arm), sums(with))
        };
        (0..strata).map(within).collect()
    }

    /// Returns what this server tells a fleet, after so many seconds. `run` identifies the trial on this
    /// server.
    pub fn statistics(&self, run: &str, kernel: &str, seconds: f64, lost_records: u64) -> Statistics {
        let arms = self.plan.arms();
        let mut strata: BTreeMap<Option<RttClass>, Vec<&Outcome>> = BTreeMap::new();
        for o in &self.outcomes {
            let class = self.stratify.rtt.then(|| RttClass::of(o.handshake_rtt_s));
            strata.entry(class).or_default().push(o);
        }
        let sums = |members: &[&Outcome], measure| -> Vec<Sums> {
            let of = |arm| Sums::of(members.iter().copied(), measure, arm, self.shared_units);
            (0..arms.len()).map(of).collect()
        };
        let lacking = |members: &[&Outcome], measure| -> Vec<Sums> {
            let of = |arm| Sums::lacking(members.iter().copied(), measure, arm, self.shared_units);
            (0..arms.len()).map(of).collect()
        };
        let stratum = |(class, members): (Option<RttClass>, Vec<&Outcome>)| StratumSums {
            rtt: class.map(|c| c.name().to_string()),
            sums: Measure::ALL.into_iter().map(|m| (m.name().to_string(), sums(&members, m))).collect(),
            lacking: Measure::ALL.into_iter().map(|m| (m.name().to_string(), lacking(&members, m))).collect(),
        };
        let guards = self.guards.iter().map(ToString::to_string).collect();
        let ended = arms.iter().zip(&self.ended).filter(|(_, e)| e.is_some());
        Statistics {
            version: statistics::VERSION,
            run: run.to_string(),
            kernel: kernel.to_string(),
            plan: PlannedTrial::new(&self.plan, self.measure, guards, self.stratify.rtt, self.shared_units),
            seconds,
            units: self.units(),
            lost_records,
            ended: ended.map(|(a, _)| a.name.clone()).collect(),
            strata: strata.into_iter().map(stratum).collect(),
        }
    }

    fn guard_alpha(&self) -> f64 {
        ALPHA / ((self.plan.arms().len() - 1) * self.guards.len()).max(1) as f64
    }

    /// Returns after how many units of an arm and the control an arm that has `1 + harm` times the control's
    /// measure is ended by this guardrail, with a probability of 95 %; `None` while that cannot be said.
    pub fn units_until_ended(&self, guard: &Guard, arm: usize, harm: f64) -> Option<u64> {
        let (arm, control) = (self.sums(guard.measure, arm), self.sums(guard.measure, 0));
        units_until_exceeds(guard.measure, &arm, &control, (guard.more, harm), self.guard_alpha())
    }

    /// Ends every arm that has crossed a guardrail since the last call, and returns their numbers. The
    /// control is never ended.
    pub fn end_harmful(&mut self) -> Vec<usize> {
        let arms = self.plan.arms().len();
        let alpha = self.guard_alpha();
        let mut now = Vec::new();
        for guard in &self.guards {
            let control = self.sums(guard.measure, 0);
            for arm in 1..arms {
                let sums = self.sums(guard.measure, arm);
                if self.ended[arm].is_none() && exceeds(guard.measure, &sums, &control, guard.more, alpha) {
                    self.ended[arm] = Some(Ended {
                        guard: guard.to_string(),
                        effect: effect(guard.measure, &sums, &control, alpha),
                        connections: sums.connections() + control.connections(),
                    });
                    now.push(arm);
                }
            }
        }
        now
    }

    /// Returns the number of units of each arm.
    fn units(&self) -> Vec<u64> {
        let mut units = vec![BTreeSet::new(); self.ended.len()];
        let mut counts = vec![0; self.ended.len()];
        for o in &self.outcomes {
            counts[o.arm] += u64::from(!self.shared_units || units[o.arm].insert(o.unit));
        }
        counts
    }

    /// Returns false if the arms have not received their shares. Arms that were ended are left out, with
    /// nothing to say about the others.
    pub fn is_balanced(&self) -> bool {
        let counts = self.units();
        let kept = || (0..counts.len()).filter(|i| self.ended[*i].is_none());
        let shares: Vec<f64> = kept().map(|i| self.plan.arms()[i].share.fraction()).collect();
        balance::is_balanced(&kept().map(|i| counts[i]).collect::<Vec<_>>(), &shares)
    }

    /// Returns true if an A/A phase found what it has to: the planned shares, and no difference between any
    /// two arms.
    pub fn is_a_a(&self) -> bool {
        let arms = self.plan.arms().len();
        let differs =
            |a: usize, b: usize| self.compare(self.measure, a, b).is_some_and(|e| e.is_less() || e.is_more());
        let differs = |a: usize, b: usize| differs(a, b) || self.lacks(self.measure, a, b) != [false; 2];
        self.is_balanced() && !(1..arms).any(|a| (0..a).any(|b| differs(a, b)))
    }

    /// Ends an arm for another reason than a guardrail of this trial. Returns false if it had been ended
    /// before.
    pub fn end(&mut self, arm: usize, why: &str) -> bool {
        if self.ended[arm].is_some() {
            return false;
        }
        let (of_arm, control) = (self.sums(self.measure, arm), self.sums(self.measure, 0));
        self.ended[arm] = Some(Ended {
            guard: why.to_string(),
            effect: effect(self.measure, &of_arm, &control, ALPHA / self.pairs()),
            connections: of_arm.connections() + control.connections(),
        });
        true
    }

    fn summary(&self, arm: usize) -> ArmSummary {
        let mine = || self.outcomes.iter().filter(|o| o.arm == arm);
        let mean = |m: Measure| Some((m.name(), self.sums(m, arm).value(m)?));
        let mut exits = BTreeMap::new();
        for o in mine() {
            *exits.entry(o.exit.map_or("none", |e| e.reason)).or_default() += 1;
        }
        let limited: Vec<f64> = mine().filter_map(|o| o.app_limited).collect();
        let units: BTreeSet<u64> = mine().map(|o| o.unit).collect();
        ArmSummary {
            name: self.plan.arms()[arm].name.clone(),
            share: self.plan.arms()[arm].share.fraction(),
            connections: mine().count() as u64,
            units: units.len() as u64,
            without_value: self.lacking(self.measure, arm).total() as u64,
            delivered_bytes: mine().map(|o| o.delivered_bytes).sum(),
            means: Measure::ALL.into_iter().filter_map(mean).collect(),
            quantiles: quantiles(&self.outcomes, self.measure, arm, &[0.5, 0.95], self.plan.seed()),
            exits,
            app_limited: (!limited.is_empty()).then(|| limited.iter().sum::<f64>() / limited.len() as f64),
            ended: self.ended[arm].clone(),
        }
    }

    /// Returns what the trial shows now.
    pub fn analyse(&self) -> Analysis {
        let arms = self.plan.arms();
        let name = |i: usize| arms[i].name.clone();
        let running: Vec<usize> = (0..arms.len()).filter(|i| self.ended[*i].is_none()).collect();
        let compared = |measure, arm, with| Comparison {
            arm: name(arm),
            with: name(with),
            measure,
            stratum: None,
            effect: self.compare(measure, arm, with),
        };
        let mut comparisons = Vec::new();
        let mut beaten = vec![false; arms.len()];
        let mut unlike = String::new();
        for (i, arm) in running.iter().enumerate() {
            for with in &running[..i] {
                let lacks = self.lacks(self.measure, *arm, *with);
                for (lacks, more, less) in [(lacks[0], *arm, *with), (lacks[1], *with, *arm)] {
                    if lacks {
                        unlike += &verdict_text(self.measure, &name(more), &name(less));
                        beaten[more] |= self.sums(self.measure, more).units() == 0;
                    }
                }
                let comparison = compared(self.measure, *arm, *with);
                if let Some(e) = comparison.effect {
                    beaten[*arm] |= e.is_more();
                    beaten[*with] |= e.is_less();
                }
                comparisons.push(comparison);
            }
        }
        let (names, of) = self.strata();
        if names.len() > 1 {
            let alpha = ALPHA / self.pairs() / names.len() as f64;
            for arm in running.iter().filter(|i| **i > 0) {
                let sums = self.sums_by_stratum(self.measure, *arm, 0, names.len(), &of);
                // Of a stratum alone it takes more to be shown.
                let lacks = self.lacks(self.measure, *arm, 0);
                for (stratum, (a, c)) in names.iter().zip(sums) {
                    comparisons.push(Comparison {
                        arm: name(*arm),
                        with: name(0),
                        measure: self.measure,
                        stratum: stratum.clone(),
                        effect: borne_out(effect(self.measure, &a, &c, alpha), lacks),
                    });
                }
            }
        }
        let needed = running.iter().filter(|i| **i > 0).filter_map(|arm| {
            let e = self.compare(self.measure, *arm, 0)?;
            let wanted = -0.05;
            let contrast = if self.measure.is_geometric() { libm::log1p(wanted) } else { wanted };
            let units = sequence::needed(contrast, e.deviation, ALPHA / self.pairs(), Power::Eighty);
            let more = units.map(|n| n.saturating_sub(e.units));
            Some(Needed { arm: name(*arm), effect: wanted, units, more })
        });
        let needed = needed.collect();
        let stop_delays = self.guards.iter().flat_map(|guard| {
            let harm = 2.0 * (1.0 + guard.more) - 1.0;
            running.iter().filter(|i| **i > 0).map(move |arm| StopDelay {
                guard: guard.to_string(),
                arm: name(*arm),
                harm,
                observed: self.sums(guard.measure, *arm).units().min(self.sums(guard.measure, 0).units()),
                units: self.units_until_ended(guard, *arm, harm),
            })
        });
        let stop_delays = stop_delays.collect();
        for measure in Measure::ALL.into_iter().filter(|m| *m != self.measure) {
            comparisons.extend(running.iter().filter(|i| **i > 0).map(|arm| compared(measure, *arm, 0)));
        }
        let balanced = self.is_balanced();
        // An invalid trial decides nothing.
        let leaders: Vec<usize> = running.iter().copied().filter(|i| !balanced || !beaten[*i]).collect();
        let decided = verdict(self.measure, &leaders, &running, balanced, &name);
        let verdict = if balanced { decided + &unlike } else { decided } + &self.lost_text();
        Analysis {
            measure: self.measure,
            arms: (0..arms.len()).map(|i| self.summary(i)).collect(),
            comparisons,
            needed,
            stop_delays,
            balanced,
            not_held: self.not_held,
            leaders: leaders.into_iter().map(name).collect(),
            verdict,
        }
    }
}

fn verdict(
    measure: Measure,
    leaders: &[usize],
    running: &[usize],
    balanced: bool,
    name: &dyn Fn(usize) -> String,
) -> String {
    if !balanced {
        return "invalid: the arms have not received their shares, so they cannot be compared".to_string();
    }
    let names: Vec<String> = leaders.iter().map(|i| name(*i)).collect();
    decided(measure, &names.iter().map(String::as_str).collect::<Vec<_>>(), running.len())
}

/// Says which of `arms` arms are left as the best.
pub(crate) fn decided(measure: Measure, leaders: &[&str], arms: usize) -> String {
    match leaders {
        [only] if arms == 1 => format!("only {only} is left"),
        [best] => format!("{best} has less {measure} than every other arm"),
        _ if leaders.len() == arms => {
            format!("not decided: no arm is shown to have less {measure} than another")
        }
        _ => format!(
            "not decided between {}: each other arm has more {measure} than one of them",
            leaders.join(" and ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Arm;

    fn outcome(arm: usize, unit: u64) -> Outcome {
        Outcome {
            arm,
            unit,
            prefix: 0,
            handshake_rtt_s: Some(0.05),
            milestones_s: [None; 3],
            last_s: Some(1.0),
            delivered_bytes: 1000,
            sent_bytes: 1000,
            retransmitted_bytes: 0,
            rtt_mean: None,
            rtt_peak: None,
            app_limited: None,
            exit: None,
        }
    }

    fn trial() -> Trial {
        guarded(Vec::new())
    }

    fn guarded(guards: Vec<Guard>) -> Trial {
        let arms = ["cubic:50%", "search:50%"].map(|a| Arm::parse(a).expect("an arm")).to_vec();
        let plan = Plan::new(arms, 1).expect("a plan");
        Trial::new(plan, Measure::TimeLast, Stratify::default(), guards, false)
    }

    #[test]
    fn a_guardrail_whose_measure_no_connection_has_says_so() {
        let guards = ["time-10mb=+20%", "time-last=+20%"].map(|g| Guard::parse(g).expect("a guardrail"));
        let mut t = guarded(guards.to_vec());
        for n in 0..200 {
            t.put(n, outcome((n % 2) as usize, n), true);
        }
        let seen: Vec<u64> = t.analyse().stop_delays.iter().map(|d| d.observed).collect();
        assert_eq!(seen, [0, 100]);
    }

    #[test]
    fn a_connection_that_is_withdrawn_leaves_the_others_as_they_are() {
        let mut t = trial();
        for n in 0..3 {
            t.put(n, outcome(0, n), false);
        }
        t.withdraw(0);
        t.withdraw(7);
        t.put(2, outcome(1, 20), true);
        t.put(1, outcome(1, 10), true);
        let mut units: Vec<u64> = t.outcomes().iter().map(|o| o.unit).collect();
        units.sort_unstable();
        assert_eq!((units, t.open().count()), (vec![10, 20], 0));
    }

    /// The second arm gets `each` connections of which one in `lacks` has no time, the first 1,000 slower ones.
    fn faster(each: u64, lacks: u64) -> Trial {
        let mut t = trial();
        for n in 0..1000 {
            t.put(n, outcome(0, n), true);
        }
        for n in 0..each {
            let last_s = (n % lacks > 0).then_some(0.5 + 0.001 * (n % 7) as f64);
            t.put(1000 + n, Outcome { last_s, ..outcome(1, 1000 + n) }, true);
        }
        t
    }

    #[test]
    fn an_invalid_trial_decides_nothing() {
        let a = faster(1000, 1000).analyse();
        assert!(a.balanced && a.leaders == ["search"], "{}", a.verdict);
        let invalid = faster(700, 1000).analyse();
        assert!(!invalid.balanced && invalid.leaders == ["cubic", "search"], "{:?}", invalid.leaders);
        assert!(invalid.verdict.starts_with("invalid: "), "{}", invalid.verdict);
        // Nor does it say which arm lacks values, which another share of the connections may cause.
        let lacking = |each| faster(each, 3).analyse().verdict;
        assert!(lacking(1000).contains("search lacks a time-last more often"), "{}", lacking(1000));
        assert!(!lacking(700).contains("lacks"), "{}", lacking(700));
    }

    #[test]
    fn an_a_a_phase_without_the_planned_shares_has_failed() {
        let of = |each: u64| {
            let mut t = trial();
            for n in 0..1000 + each {
                let last_s = Some(1.0 + 0.001 * (n % 7) as f64);
                t.put(n, Outcome { last_s, ..outcome(usize::from(n >= 1000), n) }, true);
            }
            t.is_a_a()
        };
        assert!(of(1000) && !of(700));
    }

    #[test]
    fn lost_records_are_named_in_the_verdict() {
        let mut t = trial();
        for n in 0..200 {
            t.put(n, outcome((n % 2) as usize, n), true);
        }
        assert!(!t.analyse().verdict.contains("lost"));
        t.set_lost(3918);
        let verdict = t.analyse().verdict;
        assert!(verdict.contains("INCOMPLETE: 3918 records were lost beside 200 connections"), "{verdict}");
    }
}
