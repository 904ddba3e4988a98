//! What decides between startups over one path: differences from a baseline, ranks, and the startups that
//! nothing beats.
//!
//! Run `n` of every startup is over the same path, so that startups are compared run by run. A difference
//! counts if its median is at least the margin and its 95 % interval excludes zero; there is none if the whole
//! interval is within the margin; fewer than [`FEWEST_PAIRS`] runs decide nothing. A transfer that never completes
//! is worse than any that does. Runs that are invalid decide nothing, and a controller that broke a rule has no
//! place. Everything that shows results takes its order and its words from here.

use crate::measured::{BROKEN, INVALID};
use crate::measures::{LOSS_MARGIN, Margin, Measure};
use crate::order::Order;
use crate::price::{Price, RARE};
use crate::record::{Class, Row};
use crate::scenario::Study;
use crate::stats::{FEWEST_PAIRS, Median, median};
use crate::summary::{Summary, label_of_contender, summarise};
use serde::Serialize;
use slowstart::registry::{self, Need};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Differences of times, rates and bytes below this share are none.
pub const MARGIN: f64 = 0.03;

/// What is measured about a startup in one run, beyond its row: the harm to another flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Harm {
    /// The label of the startup, from [`crate::summary::label`].
    #[serde(rename = "startup")]
    pub label: String,
    /// The number of the run.
    pub run: u32,
    /// What the other flow got, in percent of what it got in the same time without the newcomer.
    pub got_percent: f64,
}

/// What differences are judged by.
#[derive(Copy, Clone, Debug)]
pub struct Terms<'a> {
    /// The label of the baseline; `None` for the default of the engine, else the first startup.
    pub baseline: Option<&'a str>,
    /// The margin, as a share.
    pub margin: f64,
    /// Measurements beside another flow; empty if there are none.
    pub harm: &'a [Harm],
}

impl Default for Terms<'_> {
    fn default() -> Self {
        Self { baseline: None, margin: MARGIN, harm: &[] }
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

/// What a difference says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Certainly better, by the margin at least.
    Better,
    /// Certainly worse, by the margin at least.
    Worse,
    /// Within the margin with its whole interval, so no difference.
    Even,
    /// Beyond the margin, but not certain; or within it, but its interval reaches beyond.
    NotShown {
        /// About how many runs would show a median that is beyond the margin, if it is real.
        runs: Option<usize>,
    },
    /// Fewer than [`FEWEST_PAIRS`] runs, which decide nothing.
    TooFew,
}

/// A difference between two startups, from pairs of runs.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Difference {
    /// Median and interval: percent for times and rates; packets, seconds or points for the others. Of
    /// times, over the runs in which both transfers got there; infinite if there are none.
    pub median: Median,
    /// What the runs say of the difference.
    pub change: Change,
    /// Runs that both have.
    pub runs: usize,
    /// Runs in which only the first transfer never got there, and those in which only the second never did.
    pub never: [usize; 2],
}

/// A startup and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing<'a> {
    /// The startup and its runs.
    pub summary: Summary<'a>,
    /// One more than the number of startups that certainly beat it, or beat one that does. Startups that
    /// certainly beat each other in a circle share a rank. `None` if it broke a rule, or is reconstructed.
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
    /// The startups: the baseline; then by their difference from it, but none behind one that it certainly
    /// beats; last those that need what a sender may lack, and the reconstructed. Empty if there are no rows.
    pub standings: Vec<Standing<'a>>,
    margin: f64,
    harm: &'a [Harm],
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

/// About how many runs would make the interval exclude zero, if the median stays: an interval narrows with
/// the root of the number of runs. In steps of ten.
fn runs_to_show(m: &Median, runs: usize) -> usize {
    let reach = if m.mid < 0.0 { m.high - m.mid } else { m.mid - m.low };
    let times = (reach / m.mid.abs()).powi(2).clamp(1.0, 1e4);
    ((runs as f64 * times * 0.1 - 1e-6).ceil() as usize * 10).max(FEWEST_PAIRS)
}

fn judge(m: &Median, margin: f64, less_is_better: bool, runs: usize) -> Change {
    if runs < FEWEST_PAIRS {
        return Change::TooFew;
    }
    if m.mid.abs() < margin {
        // A median of nothing may hide a mixture.
        let is_within = m.low.abs().max(m.high.abs()) <= margin;
        return if is_within { Change::Even } else { Change::NotShown { runs: None } };
    }
    if m.low <= 0.0 && m.high >= 0.0 {
        return Change::NotShown { runs: Some(runs_to_show(m, runs)) };
    }
    if (m.mid < 0.0) == less_is_better { Change::Better } else { Change::Worse }
}

/// The median difference, with its interval, of the first values of pairs from the second: in percent of the
/// second if it is relative. Of a time, a missing value is later than any other: the second result has the pairs in
/// which only the first never got there, and those in which only the second never did, and the difference is over
/// the pairs in which both did, infinite if there are none. `None` without pairs, and where a value is missing that
/// is no time.
pub fn paired(
    pairs: &[(Option<f64>, Option<f64>)],
    is_relative: bool,
    is_time: bool,
) -> Option<(Median, [usize; 2])> {
    let by = |x: f64, y: f64| if is_relative { 100.0 * (x / y - 1.0) } else { x - y };
    let both: Vec<f64> =
        pairs.iter().filter_map(|(x, y)| Some(by((*x)?, (*y)?))).filter(|d| d.is_finite()).collect();
    let count = |x: bool, y: bool| pairs.iter().filter(|p| (p.0.is_some(), p.1.is_some()) == (x, y)).count();
    let never = [count(false, true), count(true, false)];
    let missing = pairs.len() - count(true, true);
    if missing > 0 && (!is_time || both.is_empty() && never == [0, 0]) {
        return None;
    }
    let away = if never[0] >= never[1] { f64::INFINITY } else { f64::NEG_INFINITY };
    match median(&both) {
        Some(middle) => Some((middle, never)),
        None if missing > 0 => Some((Median { mid: away, low: away, high: away }, never)),
        None => None,
    }
}

/// The difference in percent of the first times of pairs from the second, of which a missing one is later than any.
pub fn times(pairs: &[(Option<f64>, Option<f64>)], margin: f64) -> Option<Difference> {
    let (middle, never) = paired(pairs, true, true)?;
    Some(Difference::of(middle, margin * 100.0, true, pairs.len()).with_never(never))
}

impl Difference {
    /// A difference of which every run has a value.
    fn of(median: Median, margin: f64, less_is_better: bool, runs: usize) -> Self {
        Self { median, change: judge(&median, margin, less_is_better, runs), runs, never: [0, 0] }
    }

    /// The same where transfers never got there in some runs: that is worse than any time, whatever the
    /// others took.
    #[must_use]
    pub fn with_never(mut self, never: [usize; 2]) -> Self {
        self.never = never;
        self.change = match (self.change, never) {
            (Change::TooFew, _) => Change::TooFew,
            (change, [0, 0]) => change,
            (_, [_, 0]) => Change::Worse,
            (_, [0, _]) => Change::Better,
            _ => Change::NotShown { runs: Some(10 * self.runs) },
        };
        self
    }
}

/// True if the emulator was too late in this run.
fn is_invalid(row: &Row) -> bool {
    row.caveats.iter().any(|c| c == INVALID)
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
    pub fn new(rows: &'a [Row], terms: &Terms<'a>) -> Self {
        let all = summarise(rows);
        let mut decision =
            Self { by: Measure::Goodput, standings: Vec::new(), margin: terms.margin, harm: terms.harm };
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
            all.iter().map(|s| decision.pairs(s, &all[base], decision.by).len() >= FEWEST_PAIRS).collect();
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
        !self.harm.is_empty()
    }

    /// The median of a measure over the runs of a startup that have a value, and how many have.
    pub fn typical(&self, s: &Summary, measure: Measure) -> Option<(Median, usize)> {
        if measure != Measure::OthersGot {
            return s.typical(measure);
        }
        let all: Vec<f64> = self.values(s, measure).into_iter().filter_map(|(_, x)| x).collect();
        Some((median(&all)?, s.rows.len()))
    }

    /// The values of a measure with their runs, without invalid ones; `None` where a run has no value.
    fn values(&self, s: &Summary, measure: Measure) -> Vec<(u32, Option<f64>)> {
        if measure == Measure::OthersGot {
            let own = self.harm.iter().filter(|h| h.label == s.label);
            return own.map(|h| (h.run, Some(h.got_percent))).collect();
        }
        s.rows.iter().filter(|r| !is_invalid(r)).map(|r| (r.run, measure.of(r))).collect()
    }

    /// The values of two startups in the runs that both have.
    fn pairs(&self, a: &Summary, b: &Summary, measure: Measure) -> Vec<(u32, Option<f64>, Option<f64>)> {
        if measure != Measure::OthersGot {
            let theirs: BTreeMap<u32, &Row> =
                b.rows.iter().filter(|r| !is_invalid(r)).map(|r| (r.run, *r)).collect();
            let own = a.rows.iter().filter(|r| !is_invalid(r));
            let both = own.filter_map(|r| Some((r.run, measure.of_pair(r, theirs.get(&r.run)?))));
            return both.map(|(run, (x, y))| (run, x, y)).collect();
        }
        let theirs: BTreeMap<u32, Option<f64>> = self.values(b, measure).into_iter().collect();
        let own = self.values(a, measure).into_iter();
        own.filter_map(|(run, x)| Some((run, x, *theirs.get(&run)?))).collect()
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
        let pairs = self.pairs(a, b, measure);
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
        let values = self.values(s, measure);
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
        let left_out: BTreeSet<u32> = self
            .pairs(a, b, time)
            .into_iter()
            .filter(|_| stalls)
            .filter_map(|(run, x, y)| {
                let gets_there = x.is_some() && y.is_none();
                (gets_there || measure.is_time() && (x.is_none() || y.is_none())).then_some(run)
            })
            .collect();
        let pairs = self.pairs(a, b, measure);
        let both = pairs.iter().filter(|(run, ..)| !left_out.contains(run));
        let differences = both.map(|(run, x, y)| {
            let by = sign * ((*x)? - (*y)?);
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

    /// The runs in which a startup takes longer than the baseline by a time, in percent, if these are certainly more than
    /// those in which it is faster, and count: a median near zero does not show a mixture.
    pub fn slower(&self, s: &Summary, by: Measure) -> Option<Price> {
        let base = self.baseline().filter(|b| b.summary.label != s.label)?;
        let pairs = self.pairs(s, &base.summary, by);
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

    /// True if `a` beats `b`: it is certainly better in at least one measure that its runs show, certainly worse in
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

    /// How two startups stand to each other by the measure of the order: `Less` if the first is certainly
    /// better.
    pub fn compare(&self, a: &Summary, b: &Summary) -> Ordering {
        match self.difference(a, b, self.by).map(|d| d.change) {
            Some(Change::Better) => Ordering::Less,
            Some(Change::Worse) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{rows, with};
    use crate::verdict::verdict;
    use slowstart_sim::random::Stream;

    fn decide<'a>(rows: &'a [Row], baseline: &'a str) -> Decision<'a> {
        Decision::new(rows, &Terms { baseline: Some(baseline), ..Terms::default() })
    }

    #[test]
    fn the_default_is_that_of_the_engine_and_an_unknown_engine_has_none() {
        let named = ["sim", "kernel", "quic", "quic:noq", "ns-3"].map(default_startup);
        assert_eq!(named, [Some("hystart"), Some("cubic"), Some("standard"), Some("standard"), None]);
        let mut all = [rows("standard", &[1.0; 4]), rows("hystart", &[1.0; 4])].concat();
        let of = |all: &[Row]| {
            let decision = Decision::new(all, &Terms::default());
            decision.baseline().expect("a baseline").summary.label.clone()
        };
        assert_eq!((of(&all).as_str(), role(&all[4], "hystart")), ("hystart", Some("Linux's default")));
        for r in &mut all {
            r.engine = "ns-3".into();
        }
        assert_eq!((of(&all).as_str(), role(&all[4], "hystart")), ("standard", None));
    }

    /// A study of random startups: times that share the path of their run, losses and queues.
    fn random(seed: u64, names: &[String], runs: usize) -> Vec<Row> {
        let mut chance = Stream::named(seed, "decision");
        let path: Vec<f64> = (0..runs).map(|_| 5.0 + chance.below(2000) as f64 / 100.0).collect();
        let mut all = Vec::new();
        for name in names {
            let (speed, noise) = (0.6 + chance.below(80) as f64 / 100.0, 1 + chance.below(60));
            let (lost, queue) = (chance.below(3) * chance.below(200), chance.below(300) as f64);
            let times: Vec<f64> =
                path.iter().map(|p| p * speed * (1.0 + chance.below(noise) as f64 / 100.0)).collect();
            let mut mine = rows(name, &times);
            for r in &mut mine {
                r.startup_lost_packets = Some(lost * chance.below(3));
                r.peak_queue_delay_s = Some((queue + chance.below(40) as f64) / 1e3);
            }
            all.extend(mine);
        }
        all
    }

    /// Over random data no startup stands behind one that it certainly beats, by rank or in the order of the
    /// lines; the front is not empty, and nothing outside the needs of its startups beats one of it alone.
    #[test]
    fn ranks_and_order_are_sound() {
        let names: Vec<String> = (0..7).map(|i| format!("s{i}")).collect();
        let mut certain = 0;
        for seed in 0..300 {
            let all = random(seed, &names, [6, 10, 30][seed as usize % 3]);
            let d = decide(&all, "s0");
            let of = |i: usize| &d.standings[i].summary;
            let n = d.standings.len();
            let order = Order::new(n, |i, j| d.beats(of(i), of(j)));
            for (i, s) in d.standings.iter().enumerate() {
                for (j, other) in d.standings.iter().enumerate() {
                    let wins = d.beats(&s.summary, &other.summary);
                    certain += usize::from(wins);
                    if wins && order.is_ahead(i, j) {
                        assert!(s.rank < other.rank, "seed {seed}: rank of {}", s.summary.label);
                        // The baseline stands first, whoever beats it.
                        assert!(i < j || j == 0, "seed {seed}: {} stands behind", s.summary.label);
                    }
                }
            }
            assert!(d.standings.iter().any(|s| s.rank == Some(1)));
            assert!(d.standings.iter().any(|s| s.unbeaten), "seed {seed}: an empty front");
        }
        // Both certain and uncertain pairs are many.
        assert!((1000..300 * 21 - 500).contains(&certain), "{certain} of 6300 pairs");
    }

    /// Other names change nothing but the names, in order, ranks, front and words.
    #[test]
    fn names_decide_nothing() {
        let names: Vec<String> = (0..6).map(|i| format!("s{i}")).collect();
        let renamed: Vec<String> = names.iter().rev().map(|n| format!("{n}x")).collect();
        let back = |text: &str| {
            let swapped = names
                .iter()
                .zip(&renamed)
                .fold(text.to_string(), |t, (n, r)| t.replace(r, &format!("<{n}>")));
            swapped.replace(['<', '>'], "")
        };
        for seed in 0..100 {
            let (a, b) = (random(seed, &names, 10), random(seed, &renamed, 10));
            let (da, db) = (decide(&a, "s0"), decide(&b, &renamed[0]));
            let facts = |d: &Decision| -> Vec<_> {
                d.standings.iter().map(|s| (back(&s.summary.label), s.rank, s.unbeaten)).collect()
            };
            assert_eq!(facts(&da), facts(&db), "seed {seed}");
            assert_eq!(verdict(&da), back(&verdict(&db)), "seed {seed}");
        }
    }

    /// The same facts give the same words: the seed, the version and runs in another order are none.
    #[test]
    fn the_same_facts_give_the_same_words() {
        let names: Vec<String> = (0..4).map(|i| format!("s{i}")).collect();
        for seed in 0..50 {
            let a = random(seed, &names, 10);
            let mut b = with(a.clone(), |r| (r.version, r.seed) = ("9".into(), r.seed + 100));
            for of_startup in b.chunks_mut(10) {
                of_startup.reverse();
            }
            assert_eq!(verdict(&decide(&a, "s0")), verdict(&decide(&b, "s0")), "seed {seed}");
        }
    }

    /// Each run of b takes 4 % longer than that of a, which medians with their intervals do not show.
    #[test]
    fn runs_are_compared_with_the_same_run() {
        let times = [7.0, 9.0, 8.0, 12.0, 10.0, 7.5, 8.5];
        let all =
            [rows("a", &times), rows("b", &times.map(|t| t * 1.04)), rows("c", &times.map(|t| t * 1.02))]
                .concat();
        let d = decide(&all, "a");
        let of = |label: &str| {
            let s = d.standings.iter().find(|s| s.summary.label == label).expect("a startup");
            (s.rank, d.against(&s.summary, d.by).map(|x| (x.median.mid.round(), x.change)))
        };
        assert_eq!(of("a"), (Some(1), None));
        assert_eq!(of("b"), (Some(2), Some((4.0, Change::Worse))));
        assert_eq!(of("c"), (Some(1), Some((2.0, Change::Even))), "within the margin, however certain");
        assert_eq!(d.by, Measure::Time10MB);
    }

    #[test]
    fn what_runs_do_not_show_says_how_many_would() {
        let a = [10.0; 10];
        let b = [8.0, 12.0, 8.1, 12.0, 8.2, 12.0, 8.0, 9.0, 9.1, 8.9];
        let all = [rows("a", &a), rows("b", &b)].concat();
        let d = decide(&all, "a");
        let change = d.against(&d.standings[1].summary, d.by).expect("a difference").change;
        assert!(matches!(change, Change::NotShown { runs: Some(runs) } if runs > 10), "{change:?}");
        assert_eq!((d.standings[1].rank, d.runs()), (Some(1), 10));
    }

    /// Ten of thirty runs take six times as long: the median difference is 0, its interval is not.
    #[test]
    fn what_may_be_beyond_the_margin_is_not_even() {
        let change = |slow: usize, by: f64| {
            let mut b = [10.0; 30];
            b[..slow].iter_mut().for_each(|t| *t *= by);
            let all = [rows("a", &[10.0; 30]), rows("b", &b)].concat();
            let d = decide(&all, "a");
            let found = d.against(&d.standings[1].summary, d.by).expect("a difference");
            (found.median.mid, found.change)
        };
        assert_eq!(change(12, 6.0), (0.0, Change::NotShown { runs: None }));
        assert_eq!(change(12, 0.5), (0.0, Change::NotShown { runs: None }));
        assert_eq!(change(12, 1.02), (0.0, Change::Even));
        assert_eq!(change(2, 6.0), (0.0, Change::Even), "the interval is 0");
    }

    #[test]
    fn the_front_weighs_more_than_time() {
        let lossy = |rows| with(rows, |r: &mut Row| r.startup_lost_packets = Some(5000));
        let all = [
            rows("today", &[10.0; 6]),
            lossy(rows("fast", &[6.0; 6])),
            rows("good", &[7.0; 6]),
            lossy(rows("bad", &[8.0; 6])),
        ]
        .concat();
        let d = decide(&all, "today");
        let front: Vec<&str> =
            d.standings.iter().filter(|s| s.unbeaten).map(|s| s.summary.label.as_str()).collect();
        assert_eq!(front, ["fast", "good"]);
        assert_eq!(d.standings.iter().map(|s| s.rank).collect::<Vec<_>>(), [4, 1, 2, 3].map(Some));
    }

    /// What costs less beats what is as quick; where that is not shown, nothing is said.
    #[test]
    fn what_is_not_shown_to_be_as_quick_beats_nothing_for_sure() {
        let lossy = with(rows("lossy", &[6.0; 10]), |r: &mut Row| r.startup_lost_packets = Some(500));
        let of = |clean: &[f64; 10]| {
            let all = [rows("today", &[10.0; 10]), lossy.clone(), rows("clean", clean)].concat();
            let d = decide(&all, "today");
            let found = d.standings.iter().find(|s| s.summary.label == "lossy").expect("lossy");
            (found.unbeaten, found.maybe_unbeaten)
        };
        assert_eq!(of(&[6.0; 10]), (false, false));
        assert_eq!(of(&[5.0, 7.0, 7.2, 7.0, 5.0, 7.1, 5.0, 6.9, 7.0, 5.0]), (false, true));
    }

    /// A startup that takes half of what another flow got is beaten by one that takes nothing, if both are as
    /// quick.
    #[test]
    fn harm_decides_between_equals() {
        let all = [rows("today", &[10.0; 6]), rows("rude", &[8.0; 6]), rows("kind", &[8.0; 6])].concat();
        let harm: Vec<Harm> = [("today", 90.0), ("rude", 50.0), ("kind", 90.0)]
            .into_iter()
            .flat_map(|(label, got_percent)| {
                (0..6).map(move |run| Harm { label: label.to_string(), run, got_percent })
            })
            .collect();
        let d = Decision::new(&all, &Terms { baseline: Some("today"), harm: &harm, ..Terms::default() });
        let front: Vec<&str> =
            d.standings.iter().filter(|s| s.unbeaten).map(|s| s.summary.label.as_str()).collect();
        assert_eq!(front, ["kind"]);
    }

    /// What is known of jump-start is what others say of it: it takes no rank, no star, and neither from another.
    #[test]
    fn what_is_reconstructed_stands_apart() {
        let all =
            [rows("hystart", &[10.0; 6]), rows("jump-start", &[5.0; 6]), rows("search", &[8.0; 6])].concat();
        let d = Decision::new(&all, &Terms::default());
        let places: Vec<(&str, Option<usize>, bool)> =
            d.standings.iter().map(|s| (s.summary.label.as_str(), s.rank, s.unbeaten)).collect();
        assert_eq!(
            places,
            [("hystart", Some(2), false), ("search", Some(1), true), ("jump-start", None, false)]
        );
        assert!(d.standings[2].is_apart() && !d.standings[1].is_apart());
    }

    /// careful-resume needs memory: it never heads the list.
    #[test]
    fn what_needs_more_stands_last() {
        let all = [rows("hystart", &[10.0; 6]), rows("careful-resume", &[5.0; 6]), rows("search", &[8.0; 6])]
            .concat();
        let d = Decision::new(&all, &Terms::default());
        let labels: Vec<&str> = d.standings.iter().map(|s| s.summary.label.as_str()).collect();
        assert_eq!(labels, ["hystart", "search", "careful-resume"]);
        assert!(d.standings[1].unbeaten && !d.standings[2].unbeaten);
        assert_eq!(d.standings[2].need, Some(Need::PathMemory));
    }

    #[test]
    fn what_never_completes_is_worse_than_any_time() {
        let never = |r: &mut Row| {
            r.completion_s = None;
            r.time_to_bytes_s.clear();
        };
        let mut some = rows("some", &[5.0; 12]);
        some[3..5].iter_mut().for_each(never);
        let all = [rows("a", &[7.0; 12]), some, with(rows("none", &[9.0; 12]), never)].concat();
        let d = decide(&all, "a");
        let of = |label: &str| d.standings.iter().find(|s| s.summary.label == label).expect("a startup");
        let time = |label: &str| d.against(&of(label).summary, d.by).expect("a difference");
        assert_eq!(d.by, Measure::Time10MB);
        // 29 % sooner in the ten runs in which it completes.
        assert_eq!((time("some").change, time("some").never), (Change::Worse, [2, 0]));
        assert_eq!((time("none").change, time("none").never), (Change::Worse, [12, 0]));
        let places = ["a", "some", "none"].map(|l| (of(l).rank, of(l).unbeaten));
        assert_eq!(places, [(Some(1), true), (Some(2), false), (Some(3), false)]);
        // What stalls loses less than what does not: that is no merit.
        let lossy = with(all.clone(), |r| {
            r.startup_lost_packets = Some(if r.startup == "a" { 170 } else { 0 });
        });
        let d = decide(&lossy, "a");
        assert_eq!(d.standings.iter().map(|s| s.unbeaten).collect::<Vec<_>>(), [true, false, false]);
        // A baseline that completes in no run leaves goodput.
        assert_eq!(decide(&all, "none").by, Measure::Goodput);
        assert!(Decision::new(&[], &Terms::default()).baseline().is_none());
    }

    #[test]
    fn what_broke_a_rule_has_no_place() {
        let broken = with(rows("mine", &[5.0; 6]), |r| r.caveats = vec![format!("{BROKEN}: cwnd 0")]);
        let all = [rows("a", &[7.0; 6]), broken].concat();
        let d = decide(&all, "a");
        assert_eq!(
            d.standings.iter().map(|s| (s.rank, s.unbeaten)).collect::<Vec<_>>(),
            [(Some(1), true), (None, false)]
        );
    }

    #[test]
    fn invalid_and_few_runs_decide_nothing() {
        let change = |all: &[Row]| {
            let d = decide(all, "a");
            let time = d.against(&d.standings[1].summary, d.by).map(|x| x.change);
            (time, d.standings[1].unbeaten)
        };
        let of = |n: usize| [rows("a", &vec![7.0; n]), rows("b", &vec![5.0; n])].concat();
        assert_eq!(change(&of(6)), (Some(Change::Better), true));
        assert_eq!(change(&of(5)), (Some(Change::TooFew), false));
        let mut late = of(6);
        late[0].caveats = vec![INVALID.to_string()];
        assert_eq!(change(&late), (Some(Change::TooFew), false));
    }

    /// Half of the runs show no queue: the other half decides nothing.
    #[test]
    fn what_a_run_does_not_show_is_not_left_out() {
        let queue = |s: f64| with(rows("a", &[7.0; 12]), |r| r.peak_queue_delay_s = Some(s));
        let mut b = with(rows("b", &[7.0; 12]), |r| r.peak_queue_delay_s = Some(0.0));
        let change = |b: &[Row]| {
            let all = [queue(2.0), b.to_vec()].concat();
            let d = decide(&all, "a");
            d.against(&d.standings[1].summary, Measure::QueueDelay).map(|x| x.change)
        };
        assert_eq!(change(&b), Some(Change::Better));
        b[..6].iter_mut().for_each(|r| r.peak_queue_delay_s = None);
        assert_eq!(change(&b), None);
    }

    /// Losses of transfers that ended before slow start did are not fewer than those that another shows, in part
    /// or whole.
    #[test]
    fn what_hides_its_losses_does_not_lose_less() {
        let unended = |r: &mut Row| (r.exit, r.class) = (None, Class::None);
        let mut partly = with(rows("a", &[10.0; 12]), |r| r.startup_lost_packets = Some(100));
        partly[..1].iter_mut().for_each(|r| {
            unended(r);
            r.startup_lost_packets = Some(0);
        });
        let all = [partly, with(rows("b", &[10.0; 12]), unended)].concat();
        let d = decide(&all, "a");
        let [a, b] = [0, 1].map(|i| &d.standings[i].summary);
        assert_eq!(d.against(b, Measure::StartupLost).map(|x| x.change), Some(Change::Better));
        assert!(!d.is_better(b, a) && d.shown(&[a, b]) == [Measure::QueueDelay]);
    }

    /// Ten of thirty runs lose 3,000 packets: the median hides it.
    #[test]
    fn a_mixture_of_losses_beats_nothing() {
        let mut mixed = rows("mixed", &[6.0; 30]);
        mixed[..10].iter_mut().for_each(|r| r.startup_lost_packets = Some(3000));
        let all = [rows("a", &[10.0; 30]), mixed, rows("clean", &[7.0; 30])].concat();
        let d = decide(&all, "a");
        let price = d.price(&d.standings[1].summary, Measure::StartupLost).expect("a price");
        assert_eq!((price.pays, price.runs, price.most), (10, 30, 3000.0));
        assert!(!d.is_better(&d.standings[1].summary, &d.standings[0].summary));
        assert!(d.standings[2].unbeaten, "clean is not beaten by what loses");
    }
}
