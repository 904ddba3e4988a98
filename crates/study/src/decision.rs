//! What decides between startups over one path: differences from a baseline, ranks, and the startups that
//! nothing beats.
//!
//! Run `n` of every startup is over the same path, so that startups are compared run by run ([`Difference`]). A transfer
//! that never completes is worse than any that does. Runs that are invalid decide nothing, and a controller that broke a rule has no
//! place. Everything that shows results takes its order and its words from here.

use crate::difference::paired;
pub use crate::difference::{Change, Difference};
use crate::measured::{BROKEN, INVALID};
use crate::measures::{LOSS_MARGIN, Margin, Measure};
use crate::order::Order;
use crate::price::{Price, RARE};
use crate::record::{Class, Row};
use crate::scenario::Study;
use crate::stats::{FEWEST_PAIRS, Median, median};
use crate::summary::{Summary, label_of_contender, summarise};
use slowstart::registry::{self, Need};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Differences of times, rates and bytes below this share are none.
pub const MARGIN: f64 = 0.03;

/// What differences are judged by.
#[derive(Copy, Clone, Debug)]
pub struct Terms<'a> {
    /// The label of the baseline; `None` for the default of the engine, else the first startup.
    pub baseline: Option<&'a str>,
    /// The margin, as a share.
    pub margin: f64,
}

impl Default for Terms<'_> {
    fn default() -> Self {
        Self { baseline: None, margin: MARGIN }
    }
}

impl Terms<'_> {
    /// The label of the baseline of a study on an engine: the one asked for, else the engine's default, else the first
    /// startup.
    pub fn baseline_of(&self, study: &Study, engine: &str) -> Option<String> {
        let wanted = self.baseline.or_else(|| default_startup(engine));
        let mut labels = study.contenders.iter().map(label_of_contender);
        let first = labels.clone().next();
        labels.find(|l| Some(l.as_str()) == wanted).or(first)
    }

    /// # Errors
    /// No startup of the study has the label of the baseline. The text names what was found and what was
    /// expected.
    pub fn check(&self, study: &Study) -> Result<(), String> {
        let Some(baseline) = self.baseline else { return Ok(()) };
        let labels: Vec<String> = study.contenders.iter().map(label_of_contender).collect();
        if labels.iter().any(|l| l == baseline) {
            return Ok(());
        }
        Err(format!("found {baseline:?}, expected one of the startups: {}", labels.join(", ")))
    }
}

/// A startup and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing<'a> {
    /// The startup and its runs.
    pub summary: Summary<'a>,
    /// One more than the number of startups that beat it at 95 % confidence, or beat one that does. Startups
    /// that beat each other in a circle share a rank. `None` if it broke a rule, or is reconstructed.
    pub rank: Option<usize>,
    /// True if nothing beats it in time, losses, delay and harm together, among startups without special
    /// needs, it gets there wherever each of them does, and its runs show its losses and all that those of others do.
    /// False for all if there are fewer than [`FEWEST_PAIRS`] runs.
    pub unbeaten: bool,
    /// True if that is not shown: nothing beats it, but its runs do not show its losses, or what those of another do; or
    /// what costs less is not shown to be as quick.
    pub maybe_unbeaten: bool,
    /// What it needs that a sender may lack.
    pub need: Option<Need>,
    /// True if it is reconstructed without its paper: what it does says little of the startup of that name, which
    /// neither ranks nor beats another.
    pub reconstructed: bool,
}

impl Standing<'_> {
    /// True if it is no answer for every sender: it needs what one may lack, or is reconstructed.
    pub fn is_apart(&self) -> bool {
        self.reconstructed || self.need.is_some_and(Need::is_rare)
    }
}

/// The startups of one path, compared.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    /// What the order and the ranks are by: the median time of an object if the application asks for objects, else
    /// the time to 10 MB, else the time to completion, the first that most runs of the baseline have, else goodput.
    pub by: Measure,
    /// The startups: the baseline; then by their difference from it, but none behind one that it beats at
    /// 95 % confidence; last those that need what a sender may lack, and the reconstructed. Empty if there are no rows.
    pub standings: Vec<Standing<'a>>,
    margin: f64,
    harm: bool,
}

/// What the users of an engine run today: the engine as rows name it, its default startup, and what that is.
const DEFAULTS: [(&str, &str, &str); 3] = [
    ("sim", "hystart", "Linux's default"),
    ("kernel", "cubic", "Linux's default"),
    // noq and quinn: CUBIC with slow start as RFC 9002 has it.
    ("quic", "standard", "the default of QUIC stacks"),
];

/// The default of an engine by its name, such as `sim` or `quic:quinn`; `None` of one that is not known.
pub fn default_startup(engine: &str) -> Option<&'static str> {
    let name = engine.split(':').next();
    DEFAULTS.iter().find(|d| Some(d.0) == name).map(|d| d.1)
}

/// What a baseline is, for a header: `Linux's default`.
pub fn role(row: &Row, label: &str) -> Option<&'static str> {
    DEFAULTS.iter().find(|d| d.0 == row.engine && d.1 == label).map(|d| d.2)
}

/// True if the emulator was too late in this run.
fn is_invalid(row: &Row) -> bool {
    row.caveats.iter().any(|c| c == INVALID)
}

/// True of a run that counts for a measure: a valid one, and of harm one beside which it was measured.
fn counts(row: &Row, measure: Measure) -> bool {
    !is_invalid(row) && (measure != Measure::OthersGot || row.got_percent.is_some())
}

/// The runs in which the transfer ended before slow start did.
fn unended(s: &Summary) -> BTreeSet<u32> {
    s.rows.iter().filter(|r| r.class == Class::None).map(|r| r.run).collect()
}

/// True if a controller of a library broke a rule in one of the runs.
pub fn is_broken(s: &Summary) -> bool {
    s.rows.iter().any(|r| r.caveats.iter().any(|c| c.starts_with(BROKEN)))
}

impl<'a> Decision<'a> {
    /// Compares the startups of `rows`, which are of one path.
    pub fn new(rows: &'a [Row], terms: &Terms<'_>) -> Self {
        let all = summarise(rows);
        let harm = rows.iter().any(|r| r.got_percent.is_some());
        let mut decision = Self { by: Measure::Goodput, standings: Vec::new(), margin: terms.margin, harm };
        let Some(first) = all.first() else { return decision };
        let wanted = terms.baseline.or_else(|| default_startup(&first.rows[0].engine));
        let base = all.iter().position(|s| Some(s.label.as_str()) == wanted).unwrap_or(0);
        let most = |m: &Measure| {
            let have = all[base].rows.iter().filter(|r| m.of(r).is_some()).count();
            2 * have > all[base].rows.len()
        };
        let times = if all[base].rows.iter().any(|r| r.objects.is_some()) {
            &[Measure::ObjectMedian][..]
        } else {
            &[Measure::Time10MB, Measure::Completion]
        };
        decision.by = times.iter().copied().find(most).unwrap_or(Measure::Goodput);
        let gains: Vec<f64> = all
            .iter()
            .map(|s| {
                let gain = decision.difference(s, &all[base], decision.by);
                gain.map_or(f64::INFINITY, |d| {
                    if decision.by.more_is_better() { -d.median.mid } else { d.median.mid }
                })
            })
            .collect();
        let entries: Vec<_> = all.iter().map(|s| registry::named(&s.rows[0].startup)).collect();
        let needs: Vec<Option<Need>> =
            entries.iter().map(|e| e.as_ref().and_then(|e| e.algorithm.need())).collect();
        let reconstructed: Vec<bool> =
            entries.iter().map(|e| e.as_ref().is_some_and(|e| e.is_reconstructed)).collect();
        let lacks = |i: usize| i != base && (reconstructed[i] || needs[i].is_some_and(Need::is_rare));
        let broken: Vec<bool> = all.iter().map(is_broken).collect();
        let lacking: Vec<bool> = (0..all.len()).map(|i| lacks(i) || i != base && broken[i]).collect();
        let ranks = |i: usize| !broken[i] && !reconstructed[i];
        let order = Order::new(all.len(), |i, j| ranks(i) && decision.beats(&all[i], &all[j]));
        let able = |i: usize| !lacks(i) && ranks(i);
        let n = all.len();
        let beats = |i: usize, j: usize| able(i) && able(j) && decision.is_better(&all[i], &all[j]);
        let beats: Vec<bool> = (0..n * n).map(|k| k / n != k % n && beats(k / n, k % n)).collect();
        let better = Order::new(n, |i, j| beats[i * n + j]);
        let shows_time = |i: usize, j: usize| {
            let time = decision.difference(&all[i], &all[j], decision.by);
            time.is_some_and(|d| matches!(d.change, Change::Better | Change::Even))
        };
        let surely = Order::new(n, |i, j| beats[i * n + j] && shows_time(i, j));
        // A transfer that stalls loses little and waits for nobody: that is no merit.
        let stalls = |i: usize, j: usize| {
            let time = decision.difference(&all[i], &all[j], decision.by);
            time.is_some_and(|d| d.never[0] > 0 && d.never[1] == 0)
        };
        let left: Vec<bool> =
            (0..all.len()).map(|i| (0..all.len()).any(|j| able(j) && stalls(i, j))).collect();
        let decides: Vec<bool> =
            all.iter().map(|s| Decision::pairs(s, &all[base], decision.by).len() >= FEWEST_PAIRS).collect();
        let shown: Vec<Measure> = decision.shown(all.iter().collect::<Vec<_>>().as_slice());
        let lost = Measure::StartupLost;
        let hides_losses = |s: &Summary| {
            decision.hides(s, lost)
                || s.label != all[base].label && decision.price_of(s, &all[base], lost).is_unseen()
        };
        let hides: Vec<bool> =
            all.iter().map(|s| hides_losses(s) || shown.iter().any(|f| decision.hides(s, *f))).collect();
        let mut summaries: Vec<Option<Summary>> = all.into_iter().map(Some).collect();
        for i in order.sorted(base, &lacking, &gains) {
            let Some(summary) = summaries[i].take() else { continue };
            let by_none = |of: &Order| {
                able(i) && decides[i] && !left[i] && !(0..lacking.len()).any(|j| of.is_ahead(j, i))
            };
            let unbeaten = by_none(&better) && !hides[i];
            decision.standings.push(Standing {
                summary,
                rank: ranks(i).then(|| order.rank(i)),
                unbeaten,
                maybe_unbeaten: by_none(&surely) && !unbeaten,
                need: needs[i],
                reconstructed: reconstructed[i],
            });
        }
        decision
    }

    /// The baseline; `None` if there are no rows.
    pub fn baseline(&self) -> Option<&Standing<'a>> {
        self.standings.first()
    }

    /// Valid runs of the startup with the fewest.
    pub fn runs(&self) -> usize {
        let valid = |s: &Standing| s.summary.rows.iter().filter(|r| !is_invalid(r)).count();
        self.standings.iter().map(valid).min().unwrap_or(0)
    }

    /// True if some startup has enough runs to be compared with the baseline.
    pub fn is_decided(&self) -> bool {
        let time = |s: &Standing| self.against(&s.summary, self.by).map(|d| d.change);
        self.standings.iter().skip(1).filter_map(time).any(|c| c != Change::TooFew)
    }

    /// The margin as a share.
    pub const fn margin(&self) -> f64 {
        self.margin
    }

    /// True if there are measurements beside another flow.
    pub const fn has_harm(&self) -> bool {
        self.harm
    }

    /// The median of a measure over the runs of a startup that have a value, and how many have.
    pub fn typical(&self, s: &Summary, measure: Measure) -> Option<(Median, usize)> {
        let (middle, have) = s.typical(measure)?;
        // Harm is measured in the first runs only.
        Some((middle, if measure == Measure::OthersGot { s.rows.len() } else { have }))
    }

    /// The values of a measure with their runs, of those that count; `None` where a run has no value.
    fn values(s: &Summary, measure: Measure) -> Vec<(u32, Option<f64>)> {
        s.rows.iter().filter(|r| counts(r, measure)).map(|r| (r.run, measure.of(r))).collect()
    }

    /// The values of two startups in the runs that both have.
    fn pairs(a: &Summary, b: &Summary, measure: Measure) -> Vec<(u32, Option<f64>, Option<f64>)> {
        let theirs: BTreeMap<u32, &Row> =
            b.rows.iter().filter(|r| counts(r, measure)).map(|r| (r.run, *r)).collect();
        let own = a.rows.iter().filter(|r| counts(r, measure));
        let both = own.filter_map(|r| Some((r.run, measure.of_pair(r, theirs.get(&r.run)?))));
        both.map(|(run, (x, y))| (run, x, y)).collect()
    }

    /// A least round trip of a startup's runs, seconds.
    fn round_trip(s: &Summary) -> f64 {
        let rtts: Vec<f64> = s.rows.iter().map(|r| r.base_rtt_s).collect();
        median(&rtts).map_or(0.0, |m| m.mid)
    }

    /// The margin of a measure against `b`, in the unit of its differences.
    fn margin_of(&self, b: &Summary, measure: Measure) -> f64 {
        let margin = match measure.entry().margin {
            Margin::Relative => self.margin * 100.0,
            Margin::Fixed(margin) => margin,
            Margin::RoundTrip => Self::round_trip(b).max(0.001),
            // No difference counts.
            Margin::Unjudged => f64::INFINITY,
        };
        // A difference of nothing is none, whatever the margin.
        margin.max(f64::MIN_POSITIVE)
    }

    /// The difference of `a` from `b` over the runs that both have; `None` if there are none, if something was not
    /// observed in a run, or if differences of the measure are not judged. Of times a missing one is later than any
    /// other.
    fn difference(&self, a: &Summary, b: &Summary, measure: Measure) -> Option<Difference> {
        if !measure.is_judged() {
            return None;
        }
        let pairs = Self::pairs(a, b, measure);
        let values: Vec<_> = pairs.iter().map(|(_, x, y)| (*x, *y)).collect();
        let (middle, never) = paired(&values, measure.is_relative(), measure.is_time())?;
        let of = Difference::of(middle, self.margin_of(b, measure), !measure.more_is_better(), pairs.len());
        Some(of.with_never(never))
    }

    /// The figures, beside time or rate, that one of the startups shows at least.
    pub fn shown(&self, of: &[&Summary]) -> Vec<Measure> {
        self.costs().filter(|f| of.iter().any(|s| !is_broken(s) && !self.hides(s, *f))).collect()
    }

    /// True if too many runs of a startup do not show a measure: it was not observed, or the transfer ended before
    /// slow start did, and with it the losses.
    pub fn hides(&self, s: &Summary, measure: Measure) -> bool {
        // A time that is missing was not reached.
        if measure.is_time() {
            return false;
        }
        let lost = measure == Measure::StartupLost;
        let unended = unended(s);
        let values = Self::values(s, measure);
        let shows = |(run, x): &(u32, Option<f64>)| {
            x.is_some_and(|x| !lost || x > LOSS_MARGIN || !unended.contains(run))
        };
        let unseen = values.iter().filter(|v| !shows(v)).count();
        unseen * RARE >= values.len()
    }

    /// What `a` pays against `b` in a measure.
    fn price_of(&self, a: &Summary, b: &Summary, measure: Measure) -> Price {
        let sign = if measure.more_is_better() { -1.0 } else { 1.0 };
        // Of a time, in seconds.
        let margin = if measure.is_time() { Self::round_trip(b) } else { self.margin_of(b, measure) };
        let lost = measure == Measure::StartupLost;
        let unended = if lost { unended(a) } else { BTreeSet::new() };
        let time = self.by;
        // Harm is measured in runs of its own.
        let stalls = time.is_time() && measure != Measure::OthersGot;
        let times = if stalls { Self::pairs(a, b, time) } else { Vec::new() };
        let a_stalls: BTreeSet<u32> =
            times.iter().filter(|(_, x, y)| x.is_none() && y.is_some()).map(|(run, ..)| *run).collect();
        let left_out: BTreeSet<u32> = times
            .into_iter()
            .filter_map(|(run, x, y)| {
                let gets_there = x.is_some() && y.is_none();
                (gets_there || measure.is_time() && (x.is_none() || y.is_none())).then_some(run)
            })
            .collect();
        let pairs = Self::pairs(a, b, measure);
        let both = pairs.iter().filter(|(run, ..)| !left_out.contains(run));
        let differences = both.map(|(run, x, y)| {
            let by = sign * ((*x)? - (*y)?);
            // What stalls spares nothing by that.
            let by = if a_stalls.contains(run) { by.max(0.0) } else { by };
            (by > margin || !unended.contains(run)).then_some(by)
        });
        let price = Price::of(differences, margin);
        Price { left_out: pairs.len() - price.runs, ..price }
    }

    /// What a startup pays against the baseline in a measure; `None` for the baseline itself.
    pub fn price(&self, s: &Summary, measure: Measure) -> Option<Price> {
        let base = self.baseline().filter(|b| b.summary.label != s.label)?;
        Some(self.price_of(s, &base.summary, measure))
    }

    /// The runs in which a startup takes longer than the baseline by a time, in percent, if at 95 % confidence they are more than
    /// those in which it is faster, and count: a median near zero does not show a mixture.
    pub fn slower(&self, s: &Summary, by: Measure) -> Option<Price> {
        let base = self.baseline().filter(|b| b.summary.label != s.label)?;
        let pairs = Self::pairs(s, &base.summary, by);
        let longer = pairs.iter().filter_map(|(_, x, y)| x.zip(*y)).map(|(x, y)| Some(100.0 * (x / y - 1.0)));
        let price = Price::of(longer, 100.0 * self.margin);
        (by.is_time() && price.runs >= FEWEST_PAIRS && price.is_certain()).then_some(price)
    }

    /// The difference of a startup from the baseline; `None` for the baseline itself, and where a run has no
    /// value.
    pub fn against(&self, s: &Summary, measure: Measure) -> Option<Difference> {
        let base = self.baseline()?;
        if base.summary.label == s.label {
            return None;
        }
        self.difference(s, &base.summary, measure)
    }

    /// The difference of the first startup from the second.
    pub fn between(&self, a: &Summary, b: &Summary, measure: Measure) -> Option<Difference> {
        self.difference(a, b, measure)
    }

    fn beats(&self, a: &Summary, b: &Summary) -> bool {
        self.difference(a, b, self.by).is_some_and(|d| d.change == Change::Better)
    }

    /// What a startup may cost beside time or rate, the gravest first: the time of slow objects if objects decide,
    /// packets lost before the exit, harm if it was measured, and the longest wait in the queue.
    pub fn costs(&self) -> impl Iterator<Item = Measure> {
        let tail = (self.by == Measure::ObjectMedian).then_some(Measure::ObjectP95);
        let harm = self.has_harm().then_some(Measure::OthersGot);
        let lost = Some(Measure::StartupLost);
        [tail, lost, harm, Some(Measure::QueueDelay)].into_iter().flatten()
    }

    /// What is weighed: time or rate, and what a startup may cost.
    pub fn figures(&self) -> impl Iterator<Item = Measure> {
        std::iter::once(self.by).chain(self.costs())
    }

    /// True if `a` beats `b`: at 95 % confidence it is better in at least one measure that its runs show, worse in
    /// none, costs more in no more runs than it costs less, completes wherever `b` does, and hides no measure that `b`
    /// shows.
    pub fn is_better(&self, a: &Summary, b: &Summary) -> bool {
        let change = |f| self.difference(a, b, f).map(|d| d.change);
        let stalls = self.difference(a, b, self.by).is_some_and(|d| d.never[0] > 0);
        let gains = |f: Measure| change(f) == Some(Change::Better);
        (gains(self.by) || self.costs().any(|f| gains(f) && !self.hides(a, f)))
            && !self.figures().any(|f| change(f) == Some(Change::Worse))
            && !stalls
            && !self.costs().any(|f| self.price_of(a, b, f).outweighs())
            && !self.costs().any(|f| self.hides(a, f) && !self.hides(b, f))
    }

    /// How two startups stand to each other by the measure of the order: `Less` if the first is better
    /// at 95 % confidence.
    pub fn compare(&self, a: &Summary, b: &Summary) -> Ordering {
        match self.difference(a, b, self.by).map(|d| d.change) {
            Some(Change::Better) => Ordering::Less,
            Some(Change::Worse) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

#[cfg(test)]
mod tests;
