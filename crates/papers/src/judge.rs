//! Compares claims with measured values.

use crate::claim::{Bound, Cause, Claim, Origin, Verdict};
use crate::experiment::Experiment;
use crate::result::RunResult;
use crate::statistic::{Statistic, statistic};
use slowstart_study::words;

/// A measured value with its 95 % interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Study and startup; empty for arithmetic.
    pub of: String,
    /// The value, in the unit of the measure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of runs that have a value.
    pub runs: usize,
    /// The paper's own sample in this network, in our runs, if it is known.
    pub paper_runs: Option<f64>,
    /// The bound that is applied to it.
    pub bound: Bound,
}

impl Measured {
    /// Half of the interval.
    fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// What the bound makes of the value.
    pub fn verdict(&self) -> Verdict {
        let (low, high) = (self.bound.0.unwrap_or(f64::NEG_INFINITY), self.bound.1.unwrap_or(f64::INFINITY));
        if self.runs == 0 {
            Verdict::Undecided
        } else if self.high < low || self.low > high {
            Verdict::Differs
        } else if self.low < low || self.high > high {
            Verdict::Undecided
        } else {
            Verdict::Holds
        }
    }

    /// True if the interval of a sample as large as the paper's contains an end of the bound.
    fn is_below_the_papers_noise(&self) -> bool {
        let Some(runs) = self.paper_runs.filter(|_| self.runs > 1) else { return false };
        let half = self.half() * (self.runs as f64 / runs).sqrt();
        let crosses = |end: f64| (end - self.value).abs() < half;
        self.bound.0.is_some_and(crosses) || self.bound.1.is_some_and(crosses)
    }

    /// True if this is a value of the unknown: the end of the study's name, or the startup.
    fn is_with(&self, value: &str) -> bool {
        let (study, startup) = self.of.rsplit_once(", ").unwrap_or_default();
        study.ends_with(value) || startup == value
    }
}

/// A claim with its measured values and verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The claim that is judged.
    pub claim: &'a Claim,
    /// One value for each study and startup of the claim.
    pub measured: Vec<Measured>,
    /// The verdict on the measured values.
    pub verdict: Verdict,
    /// Why a claim of the paper does not hold.
    pub cause: Option<Cause>,
    /// The reason, with the figures of these runs.
    pub reason: String,
}

impl Judged<'_> {
    /// True if verdict and cause are the recorded ones.
    pub fn matches_record(&self) -> bool {
        self.verdict == self.claim.verdict && self.cause == self.claim.cause
    }

    /// True if the verdict is the opposite of the recorded one: *holds* for *differs*, or *differs* for
    /// *holds*. With another seed a verdict may become undecided or cease to be, but must not become the
    /// opposite.
    pub fn contradicts_record(&self) -> bool {
        use Verdict::{Differs, Holds};
        matches!((self.verdict, self.claim.verdict), (Holds, Differs) | (Differs, Holds))
    }

    /// The measured values as text.
    pub fn measured_text(&self) -> String {
        let unit = if matches!(self.claim.take, Statistic::Share | Statistic::Within) { " %" } else { "" };
        let each = |m: &Measured| {
            let none = m.runs == 0;
            let mut text = if none { "none".into() } else { format!("{}{unit}", value_text(m.value)) };
            let (low, high) = (value_text(m.low), value_text(m.high));
            if !none && low != high {
                text = match (m.low.is_finite(), m.high.is_finite()) {
                    (true, true) => format!("{text} ({low} to {high})"),
                    (true, false) => format!("{text} (at least {low})"),
                    (false, true) => format!("{text} (at most {high})"),
                    (false, false) => text,
                };
            }
            if self.measured.len() > 1 { format!("{}: {text}", m.of) } else { text }
        };
        if self.measured.is_empty() {
            return "-".into();
        }
        self.measured.iter().map(each).collect::<Vec<_>>().join("; ")
    }

    /// The bound as text: that of each value, if they differ.
    pub fn bound_text(&self) -> String {
        let Some(first) = self.measured.first() else {
            return bound_text(self.claim, self.claim.bound(0.0, &[]));
        };
        if self.measured.iter().all(|m| m.bound == first.bound) {
            return bound_text(self.claim, first.bound);
        }
        let each = self.measured.iter().map(|m| format!("{}: {}", m.of, bound_text(self.claim, m.bound)));
        each.collect::<Vec<_>>().join("; ")
    }
}

/// A measured value as text: three digits, but near one as many as show by how much it is not one, since ratios of 0.9996
/// and 1.0004 are not the same.
pub(crate) fn value_text(x: f64) -> String {
    let off = (x - 1.0).abs();
    if off == 0.0 || off >= 0.01 {
        return words::number(x);
    }
    let places = (1.0 - off.log10().floor()).min(6.0) as usize;
    let text = format!("{x:.places$}");
    if text.ends_with("000000") { "1".into() } else { text }
}

/// The end of a bound as text: up to five digits, without zeros at the end, since 1.005 is not 1.
fn end_text(x: f64) -> String {
    if x.abs() >= 1000.0 || x.fract() == 0.0 {
        return words::number(x);
    }
    let places = 4 - x.abs().log10().floor() as i32;
    format!("{x:.*}", places.max(0) as usize).trim_end_matches('0').trim_end_matches('.').into()
}

/// A bound as text.
pub fn bound_text(claim: &Claim, bound: Bound) -> String {
    let number = end_text;
    match bound {
        (Some(a), Some(b)) => format!("{} to {}", number(a), number(b)),
        (Some(a), None) => format!("at least {}", number(a)),
        (None, Some(b)) => format!("at most {}", number(b)),
        (None, None) if claim.grows => "grows".into(),
        (None, None) => "-".into(),
    }
}

/// The verdict on a group of values, in each of which the claim must hold.
fn all(group: &[&Measured]) -> Verdict {
    if group.is_empty() {
        Verdict::Undecided
    } else if group.iter().all(|m| m.verdict() == Verdict::Holds) {
        Verdict::Holds
    } else if group.iter().any(|m| m.verdict() == Verdict::Differs) {
        Verdict::Differs
    } else {
        Verdict::Undecided
    }
}

/// The verdict for each value of what the paper does not give; one if it gives all.
fn verdicts(claim: &Claim, measured: &[Measured]) -> Vec<Verdict> {
    if claim.grows {
        return vec![match measured {
            [] | [_] => Verdict::Undecided,
            _ if measured.windows(2).all(|w| w[0].high <= w[1].low && w[0].value < w[1].value) => {
                Verdict::Holds
            }
            _ if measured.windows(2).any(|w| w[0].low >= w[1].high) => Verdict::Differs,
            _ => Verdict::Undecided,
        }];
    }
    if claim.unknown.is_none() {
        return vec![all(&measured.iter().collect::<Vec<_>>())];
    }
    if claim.values.is_empty() {
        return measured.iter().map(Measured::verdict).collect();
    }
    let with = |v: &String| measured.iter().filter(|m| m.is_with(v)).collect::<Vec<_>>();
    claim.values.iter().map(|v| all(&with(v))).collect()
}

/// The verdict from those with each value of what the paper does not give.
fn verdict(claim: &Claim, measured: &[Measured]) -> Verdict {
    let each = verdicts(claim, measured);
    let any = |v: Verdict| each.contains(&v);
    match (any(Verdict::Holds), any(Verdict::Differs), any(Verdict::Undecided)) {
        (true, true, _) => Verdict::NotStated,
        (true, false, false) => Verdict::Holds,
        (false, true, false) => Verdict::Differs,
        // A printed number is judged with the paper's noise about it; an order is not.
        (false, false, true)
            if claim.origin == Origin::Paper
                && claim.printed.is_none()
                && !measured.is_empty()
                && measured.iter().all(Measured::is_below_the_papers_noise) =>
        {
            Verdict::CannotShow
        }
        _ => Verdict::Undecided,
    }
}

/// Why a claim of the paper does not hold: the recorded cause, but where the verdict follows from what the
/// paper does not give, or from the number of runs.
fn cause(claim: &Claim, verdict: Verdict, measured: &[Measured]) -> Option<Cause> {
    if claim.origin != Origin::Paper || verdict == Verdict::Holds {
        return None;
    }
    let each = verdicts(claim, measured);
    match verdict {
        Verdict::CannotShow => Some(Cause::Paper),
        // With some values it is decided, with others not.
        Verdict::Undecided if each.iter().any(|v| *v != Verdict::Undecided) => Some(Cause::Network),
        Verdict::Undecided => Some(Cause::Ours),
        _ => claim.cause,
    }
}

/// The number of runs that would decide: those there are, times the square of what the interval is too wide
/// by.
fn runs_to_decide(measured: &[Measured]) -> Option<u64> {
    let needed = |m: &Measured| {
        let ends: Vec<f64> = m.bound.0.into_iter().chain(m.bound.1).collect();
        let room = ends.iter().map(|e| (e - m.value).abs()).fold(f64::INFINITY, f64::min);
        let crossed = ends.iter().any(|e| m.low < *e && *e < m.high);
        (crossed && m.runs > 1).then(|| m.runs as f64 * (m.half() / room).powi(2))
    };
    let most = measured.iter().filter_map(needed).fold(0.0, f64::max);
    (most > 0.0 && most < 1e9).then(|| most.ceil() as u64)
}

/// What would make a claim fail that holds: the end of a bound that is nearest to its interval, and how far it
/// is. A share cannot lie beyond 0 and 100 %.
fn would_fail(claim: &Claim, measured: &[Measured]) -> String {
    if claim.grows {
        return "It would fail if a value were not above the one before it.".into();
    }
    let is_wall = |end: f64| claim.is_share() && (end <= 0.0 || end >= 100.0);
    let below = measured.iter().filter_map(|m| Some((m.bound.0.filter(|b| !is_wall(*b))?, m.low, true)));
    let above = measured.iter().filter_map(|m| Some((m.bound.1.filter(|b| !is_wall(*b))?, m.high, false)));
    let room = |end: &(f64, f64, bool)| (end.0 - end.1).abs();
    let Some((end, reached, is_below)) = below.chain(above).min_by(|a, b| room(a).total_cmp(&room(b))) else {
        return String::new();
    };
    let (side, which) = if is_below { ("below", "lowest") } else { ("above", "highest") };
    let (end, reached) = (end_text(end), end_text(reached));
    format!("It would fail {side} {end}; the {which} end of an interval is {reached}.")
}

/// The verdicts on all claims of an experiment.
pub fn judge<'a>(e: &'a Experiment, results: &[RunResult]) -> Vec<Judged<'a>> {
    e.claim.iter().map(|claim| judge_claim(e, claim, results)).collect()
}

fn judge_claim<'a>(e: &'a Experiment, claim: &'a Claim, results: &[RunResult]) -> Judged<'a> {
    let measured = measure(e, claim, results);
    let verdict = if claim.measure.is_some() { verdict(claim, &measured) } else { Verdict::NotCheckable };
    let mut reason = claim.why.clone();
    if verdict == Verdict::Holds {
        reason = [reason, would_fail(claim, &measured)].join(" ").trim().to_string();
    }
    if verdict == Verdict::Undecided
        && let Some(runs) = runs_to_decide(&measured)
    {
        reason = format!("{reason} About {} runs would decide.", words::number(runs as f64));
    }
    for name in claim.cited() {
        let text = match name {
            "value" => range(measured.iter().map(|m| (m.value, m.value))),
            "interval" => range(measured.iter().map(|m| (m.low, m.high))),
            _ => {
                let figure = claim.figures.get(name).map(|f| measure(e, &claim.with(f), results));
                range(figure.iter().flatten().map(|m| (m.value, m.value)))
            }
        };
        reason = reason.replace(&format!("{{{name}}}"), &text);
    }
    let cause = cause(claim, verdict, &measured);
    Judged { claim, measured, verdict, cause, reason }
}

/// The smallest and the greatest of some values, as text.
fn range(values: impl Iterator<Item = (f64, f64)>) -> String {
    let whole = values.filter(|(low, high)| !low.is_nan() && !high.is_nan());
    match whole.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
        Some((low, high)) if value_text(low) == value_text(high) => value_text(low),
        Some((low, high)) => format!("{} to {}", value_text(low), value_text(high)),
        None => "-".into(),
    }
}

/// The values of a claim's measure: one for each study and startup.
fn measure(e: &Experiment, claim: &Claim, results: &[RunResult]) -> Vec<Measured> {
    let Some(measure) = claim.measure else { return Vec::new() };
    if let Some(value) = measure.formula() {
        let bound = claim.bound(0.0, &[]);
        return vec![Measured {
            of: String::new(),
            value,
            low: value,
            high: value,
            runs: 1,
            paper_runs: None,
            bound,
        }];
    }
    let mut measured = Vec::new();
    let cells = e.cells(1, false).unwrap_or_default();
    for study in e.studies_of(claim, &cells) {
        let against = claim.study_of_other(&study);
        let paper_runs =
            cells.iter().find(|c| c.study == study).and_then(|c| c.cloud.as_ref()).map(|c| c.0.paper_runs());
        let mut add = |of: &str, (value, low, high): (f64, f64, f64), runs: usize, values: &[f64]| {
            let bound = claim.bound((high - low) / 2.0, values);
            measured.push(Measured {
                of: format!("{study}, {of}"),
                value,
                low,
                high,
                runs,
                paper_runs,
                bound,
            });
        };
        for of in &claim.of {
            let value = |study: &str, label: &str, run: u32| {
                let found = results.iter().find(|s| s.study == study && s.label == label && s.run == run)?;
                claim.versus_measure.unwrap_or(measure).of(found, claim.flow)
            };
            let runs = results.iter().filter(|s| s.study == study && s.label == *of);
            let runs: Vec<&RunResult> = runs.collect();
            if let Some(found) = measure.of_all(&runs) {
                add(of, found, runs.len(), &[]);
                continue;
            }
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|s| {
                    let own = measure.of(s, claim.flow)?;
                    if let Some(less) = &claim.less {
                        return Some(own - value(&against, less, s.run)?);
                    }
                    let other = claim.versus.as_ref().unwrap_or(of);
                    if claim.versus.is_none() && claim.versus_study.is_none() {
                        return Some(own);
                    }
                    let by = value(&against, other, s.run)?;
                    // The ratio of two zeros is 1.
                    Some(if own.abs().max(by.abs()) <= 0.0 { 1.0 } else { own / by })
                })
                .filter(|v| !v.is_nan())
                .collect();
            let found = statistic(claim.take, claim.within.or(claim.sample).unwrap_or(f64::NAN), &values);
            add(of, found.unwrap_or((f64::NAN, f64::NAN, f64::NAN)), values.len(), &values);
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(low: Option<f64>, high: Option<f64>) -> Claim {
        let text = "id = 'x'\nsays = 'x'\nmeasure = 'exit_time_s'\nverdict = 'holds'\nwhy = ''\n";
        let claim: Claim = toml::from_str(text).expect("as written");
        Claim { at_least: low, at_most: high, ..claim }
    }

    fn value(of: &str, value: f64, half: f64, runs: usize) -> Measured {
        let (low, high) = (value - half, value + half);
        Measured { of: of.into(), value, low, high, runs, paper_runs: None, bound: (None, None) }
    }

    /// The verdict on values to which the claim's bound applies.
    fn judged(claim: &Claim, measured: &[Measured]) -> Verdict {
        let bounded =
            |m: &Measured| Measured { bound: claim.bound(m.half(), &vec![m.value; m.runs]), ..m.clone() };
        verdict(claim, &measured.iter().map(bounded).collect::<Vec<_>>())
    }

    #[test]
    fn an_interval_decides() {
        let m = |low: f64, high: f64| Measured { low, high, ..value("", low, 0.0, 5) };
        let of = |measured: &[Measured]| judged(&claim(Some(1.0), Some(2.0)), measured);
        assert_eq!(of(&[m(1.0, 2.0)]), Verdict::Holds);
        assert_eq!(of(&[m(0.9, 1.5)]), Verdict::Undecided);
        assert_eq!(of(&[m(2.1, 2.5)]), Verdict::Differs);
        // The claim must hold for each value.
        assert_eq!(of(&[m(1.0, 2.0), m(0.9, 1.5)]), Verdict::Undecided);
        assert_eq!(of(&[m(0.9, 1.5), m(0.1, 0.5)]), Verdict::Differs);
        let grows = Claim { grows: true, ..claim(None, None) };
        assert_eq!(judged(&grows, &[m(1.0, 1.1), m(1.2, 1.3)]), Verdict::Holds);
        assert_eq!(judged(&grows, &[m(1.0, 1.1), m(1.05, 1.3)]), Verdict::Undecided);
        assert_eq!(judged(&grows, &[m(1.0, 1.1), m(0.5, 0.9)]), Verdict::Differs);
        // Where the studies vary an unknown, it must differ in each.
        let unknown = Claim { unknown: Some("buffer".into()), ..claim(Some(1.0), Some(2.0)) };
        assert_eq!(judged(&unknown, &[m(1.1, 1.5), m(0.1, 0.5)]), Verdict::NotStated);
        assert_eq!(judged(&unknown, &[m(1.1, 1.5), m(0.5, 1.5)]), Verdict::Undecided);
        assert_eq!(judged(&unknown, &[m(2.1, 2.5), m(0.1, 0.5)]), Verdict::Differs);
        assert_eq!(judged(&unknown, &[m(1.1, 1.5), m(1.2, 1.6)]), Verdict::Holds);
        // A value is the end of a study's name, or a startup.
        let named = |of: &str, low| Measured { of: of.into(), ..m(low, low) };
        let all = [named("10 ms, small", 1.5), named("20 ms, small", 1.1), named("10 ms, large", 0.5)];
        let values =
            |v: &[&str]| Claim { values: v.iter().map(|v| (*v).into()).collect(), ..unknown.clone() };
        let startups = all.clone().map(|m| Measured { of: format!("study, {}", &m.of[..5]), ..m });
        let studies = all.map(|m| Measured { of: format!("{}, standard", m.of), ..m });
        assert_eq!(judged(&values(&["small", "large"]), &studies), Verdict::NotStated);
        assert_eq!(judged(&values(&["small"]), &studies), Verdict::Holds);
        assert_eq!(judged(&values(&["20 ms", "10 ms"]), &startups), Verdict::NotStated);
        assert_eq!(of(&[Measured { runs: 0, ..m(f64::NAN, f64::NAN) }]), Verdict::Undecided);
    }

    #[test]
    fn each_network_has_the_spread_of_its_own_runs() {
        let c = claim(Some(9.5), Some(10.5));
        let c = Claim { printed: toml::from_str("value = '10'\nruns = 4.0").ok(), ..c };
        let c = Claim { unknown: Some("buffer".into()), ..c };
        // A paper's sample of four of these runs has an interval twice as wide as that of 16.
        let (wide, near, narrow) =
            (value("a, x", 12.4, 1.0, 16), value("b, x", 11.4, 1.0, 16), value("c, x", 12.4, 0.1, 16));
        assert_eq!(judged(&c, &[wide]), Verdict::Undecided);
        assert_eq!(judged(&c, std::slice::from_ref(&near)), Verdict::Holds);
        assert_eq!(judged(&c, &[narrow.clone(), near.clone()]), Verdict::NotStated);
        // The bound that is printed is the one that is applied, a network each.
        let bounded = |m: Measured| Measured { bound: c.bound(m.half(), &vec![m.value; m.runs]), ..m };
        let measured = vec![bounded(narrow), bounded(near)];
        let j =
            Judged { claim: &c, measured, verdict: Verdict::NotStated, cause: None, reason: String::new() };
        assert_eq!(j.bound_text(), "c, x: 9.3 to 10.7; b, x: 7.5 to 12.5");
    }

    #[test]
    fn a_value_near_one_shows_by_how_much_it_is_not_one() {
        let texts = [1.0, 1.0123, 1.0045, 0.99964, 1.000_107, 1.000_000_1].map(value_text);
        assert_eq!(texts, ["1", "1.01", "1.0045", "0.99964", "1.00011", "1"]);
    }

    #[test]
    fn an_end_keeps_its_digits() {
        let of = |low, high| bound_text(&claim(None, None), (low, high));
        assert_eq!(of(Some(1.005), None), "at least 1.005");
        assert_eq!(of(None, Some(0.9999)), "at most 0.9999");
        assert_eq!(of(Some(1.395), Some(1.405)), "1.395 to 1.405");
        assert_eq!(of(Some(0.0), Some(12_950.7)), "0 to 12,951");
        assert_eq!(of(Some(0.000_23), Some(0.000_25)), "0.00023 to 0.00025");
        assert_eq!(of(Some(-5.5), Some(99.55)), "-5.5 to 99.55");
    }

    #[test]
    fn what_the_papers_sample_cannot_show_is_not_undecided() {
        let c = Claim { unknown: Some("buffer".into()), ..claim(None, Some(0.999)) };
        let sampled = |m: Measured| Measured { paper_runs: Some(4.0), ..m };
        // Half an interval of a sample of four is twice that of these 16 runs.
        let (none, some) = (sampled(value("a", 0.99, 0.02, 16)), sampled(value("b", 0.985, 0.02, 16)));
        let clear = sampled(value("c", 0.9, 0.02, 16));
        let both = [none.clone(), some];
        assert_eq!(judged(&c, &both), Verdict::CannotShow);
        assert_eq!(judged(&c, &[none.clone(), clear.clone()]), Verdict::Undecided);
        assert_eq!(judged(&c, std::slice::from_ref(&clear)), Verdict::Holds);
        assert_eq!(judged(&c, &[Measured { paper_runs: None, ..none.clone() }]), Verdict::Undecided);
        // The letters follow from the verdicts by the unknown.
        let bounded = |all: &[Measured]| -> Vec<Measured> {
            all.iter().map(|m| Measured { bound: c.bound(0.0, &[]), ..m.clone() }).collect()
        };
        let of = |all: &[Measured], v| cause(&c, v, &bounded(all));
        assert_eq!(of(&both, Verdict::CannotShow), Some(Cause::Paper));
        assert_eq!(of(&[none.clone(), clear.clone()], Verdict::Undecided), Some(Cause::Network));
        assert_eq!(of(&[none], Verdict::Undecided), Some(Cause::Ours));
        assert_eq!(of(&[clear], Verdict::Holds), None);
    }

    #[test]
    fn a_reason_has_the_figures_of_the_runs() {
        let text = "title = 't'\nfigure = 'f'\ncovers = []\nabout = 'a'\n[[claim]]\nid = 'c'\nsays = 'c'\nverdict = 'holds'\n\
                    measure = 'best_window:10,12'\nat_least = 1.0\nwhy = 'It is {value}, not {other}.'\n\
                    figures.other = { measure = 'best_window:8,12' }\n";
        let e = Experiment::read("x/y", text).expect("as written");
        assert_eq!(
            judge(&e, &[])[0].reason,
            "It is 15,000, not 12,000. It would fail below 1; the lowest end of an interval is 15,000."
        );
        let why = |text: String| Experiment::read("x/y", &text).expect_err("refused").to_string();
        assert!(why(text.replace("{other}", "{another}")).contains("found {another}"));
        assert!(why(text.replace(", not {other}", "")).contains("expected {other} in why"));
        let e = why(text.replace("holds", "differs").replace("It is {value}, not {other}.", ""));
        assert!(e.contains("claim \"c\": cause: expected"), "{e}");
    }

    #[test]
    fn another_seed_may_be_undecided_but_not_the_opposite() {
        let claim = claim(Some(1.0), Some(2.0));
        let of = |verdict| Judged {
            claim: &claim,
            measured: Vec::new(),
            verdict,
            cause: None,
            reason: String::new(),
        };
        assert!(of(Verdict::Holds).matches_record() && !of(Verdict::Holds).contradicts_record());
        assert!(!of(Verdict::Undecided).matches_record() && !of(Verdict::Undecided).contradicts_record());
        assert!(of(Verdict::Differs).contradicts_record());
    }
}
