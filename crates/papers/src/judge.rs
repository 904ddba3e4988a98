//! Compares claims with measured values.

use crate::claim::{Claim, Verdict};
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
}

impl Measured {
    /// Half of the interval.
    fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
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
    /// Ends of the bound.
    pub bound: (Option<f64>, Option<f64>),
    /// One value for each study and startup of the claim.
    pub measured: Vec<Measured>,
    /// The verdict on the measured values.
    pub verdict: Verdict,
    /// The reason, with the figures of these runs.
    pub reason: String,
}

impl Judged<'_> {
    /// True if the verdict is the recorded one.
    pub fn matches_record(&self) -> bool {
        self.verdict == self.claim.verdict
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
            let mut text = if none { "none".into() } else { format!("{}{unit}", words::number(m.value)) };
            let (low, high) = (words::number(m.low), words::number(m.high));
            if !none && low != high {
                text = format!("{text} ({low} to {high})");
            }
            if self.measured.len() > 1 { format!("{}: {text}", m.of) } else { text }
        };
        if self.measured.is_empty() {
            return "-".into();
        }
        self.measured.iter().map(each).collect::<Vec<_>>().join("; ")
    }

    /// The bound as text.
    pub fn bound_text(&self) -> String {
        let number = words::number;
        match self.bound {
            (Some(a), Some(b)) => format!("{} to {}", number(a), number(b)),
            (Some(a), None) => format!("at least {}", number(a)),
            (None, Some(b)) => format!("at most {}", number(b)),
            (None, None) if self.claim.grows => "grows".into(),
            (None, None) => "-".into(),
        }
    }
}

fn verdict(claim: &Claim, measured: &[Measured]) -> Verdict {
    if claim.grows {
        return match measured {
            [] | [_] => Verdict::Undecided,
            _ if measured.windows(2).all(|w| w[0].high <= w[1].low && w[0].value < w[1].value) => {
                Verdict::Holds
            }
            _ if measured.windows(2).any(|w| w[0].low >= w[1].high) => Verdict::Differs,
            _ => Verdict::Undecided,
        };
    }
    let one = |m: &Measured| {
        // The paper's own sample was taken in a network with the spread of this one.
        let c = claim.widened(m.half(), m.runs);
        let (low, high) = (c.at_least.unwrap_or(f64::NEG_INFINITY), c.at_most.unwrap_or(f64::INFINITY));
        if m.runs == 0 {
            Verdict::Undecided
        } else if m.high < low || m.low > high {
            Verdict::Differs
        } else if m.low < low || m.high > high {
            Verdict::Undecided
        } else {
            Verdict::Holds
        }
    };
    let all = |group: &[&Measured]| {
        if group.is_empty() {
            Verdict::Undecided
        } else if group.iter().all(|m| one(m) == Verdict::Holds) {
            Verdict::Holds
        } else if group.iter().any(|m| one(m) == Verdict::Differs) {
            Verdict::Differs
        } else {
            Verdict::Undecided
        }
    };
    if claim.unknown.is_none() {
        return all(&measured.iter().collect::<Vec<_>>());
    }
    // A verdict for each value of what the paper does not give.
    let each: Vec<Verdict> = if claim.values.is_empty() {
        measured.iter().map(one).collect()
    } else {
        let with = |v: &String| measured.iter().filter(|m| m.is_with(v)).collect::<Vec<_>>();
        claim.values.iter().map(|v| all(&with(v))).collect()
    };
    let any = |v: Verdict| each.contains(&v);
    match (any(Verdict::Holds), any(Verdict::Differs), any(Verdict::Undecided)) {
        (true, true, _) => Verdict::NotStated,
        (true, false, false) => Verdict::Holds,
        (false, true, false) => Verdict::Differs,
        _ => Verdict::Undecided,
    }
}

/// The number of runs that would decide: those there are, times the square of what the interval is too wide
/// by.
fn runs_to_decide(claim: &Claim, measured: &[Measured]) -> Option<u64> {
    let ends: Vec<f64> = claim.at_least.into_iter().chain(claim.at_most).collect();
    let needed = |m: &Measured| {
        let half = m.half();
        let room = ends.iter().map(|e| (e - m.value).abs()).fold(f64::INFINITY, f64::min);
        let crossed = ends.iter().any(|e| m.low < *e && *e < m.high);
        (crossed && m.runs > 1).then(|| m.runs as f64 * (half / room).powi(2))
    };
    let most = measured.iter().filter_map(needed).fold(0.0, f64::max);
    (most > 0.0 && most < 1e9).then(|| most.ceil() as u64)
}

/// What would make a claim fail that holds: the end of the bound that is nearest to the intervals, and how
/// far it is.
fn would_fail(claim: &Claim, measured: &[Measured]) -> String {
    if claim.grows {
        return "It would fail if a value were not above the one before it.".into();
    }
    let number = words::number;
    let lows =
        claim.at_least.into_iter().map(|e| (e, measured.iter().map(|m| m.low).fold(f64::INFINITY, f64::min)));
    let highs = claim
        .at_most
        .into_iter()
        .map(|e| (e, measured.iter().map(|m| m.high).fold(f64::NEG_INFINITY, f64::max)));
    let nearest = lows.chain(highs).min_by(|a, b| (a.0 - a.1).abs().total_cmp(&(b.0 - b.1).abs()));
    match nearest {
        Some((end, reached)) if Some(end) == claim.at_least => {
            format!(
                "It would fail below {}; the lowest end of an interval is {}.",
                number(end),
                number(reached)
            )
        }
        Some((end, reached)) => {
            format!(
                "It would fail above {}; the highest end of an interval is {}.",
                number(end),
                number(reached)
            )
        }
        None => String::new(),
    }
}

/// The verdicts on all claims of an experiment.
pub fn judge<'a>(e: &'a Experiment, results: &[RunResult]) -> Vec<Judged<'a>> {
    e.claim.iter().map(|claim| judge_claim(e, claim, results)).collect()
}

fn judge_claim<'a>(e: &'a Experiment, claim: &'a Claim, results: &[RunResult]) -> Judged<'a> {
    let measured = measure(e, claim, results);
    // The bound that is shown is that of the widest interval.
    let spread = measured.iter().map(|m| (m.half(), m.runs)).filter(|s| s.0.is_finite());
    let (half, n) = spread.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    let widened = claim.widened(half, n);
    let verdict = if claim.measure.is_some() { verdict(claim, &measured) } else { Verdict::NotCheckable };
    let mut reason = claim.why.clone();
    if verdict == Verdict::Holds {
        reason = [reason, would_fail(&widened, &measured)].join(" ").trim().to_string();
    }
    if verdict == Verdict::Undecided
        && let Some(runs) = runs_to_decide(&widened, &measured)
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
    Judged { claim, bound: (widened.at_least, widened.at_most), measured, verdict, reason }
}

/// The smallest and the greatest of some values, as text.
fn range(values: impl Iterator<Item = (f64, f64)>) -> String {
    let whole = values.filter(|(low, high)| !low.is_nan() && !high.is_nan());
    match whole.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
        Some((low, high)) if words::number(low) == words::number(high) => words::number(low),
        Some((low, high)) => format!("{} to {}", words::number(low), words::number(high)),
        None => "-".into(),
    }
}

/// The values of a claim's measure: one for each study and startup.
fn measure(e: &Experiment, claim: &Claim, results: &[RunResult]) -> Vec<Measured> {
    let Some(measure) = claim.measure else { return Vec::new() };
    if let Some(value) = measure.formula() {
        return vec![Measured { of: String::new(), value, low: value, high: value, runs: 1 }];
    }
    let mut measured = Vec::new();
    let cells = e.cells(1, false).unwrap_or_default();
    for study in e.studies_of(claim, &cells) {
        for of in &claim.of {
            let value = |study: &str, label: &str, run: u32| {
                let found = results.iter().find(|s| s.study == study && s.label == label && s.run == run)?;
                claim.versus_measure.unwrap_or(measure).of(found, claim.flow)
            };
            let runs = results.iter().filter(|s| s.study == study && s.label == *of);
            let runs: Vec<&RunResult> = runs.collect();
            if let Some((value, low, high)) = measure.of_all(&runs) {
                measured.push(Measured { of: format!("{study}, {of}"), value, low, high, runs: runs.len() });
                continue;
            }
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|s| {
                    let own = measure.of(s, claim.flow)?;
                    if let Some(less) = &claim.less {
                        return Some(own - value(&study, less, s.run)?);
                    }
                    let other = claim.versus.as_ref().unwrap_or(of);
                    let against = claim.versus_study.as_ref().unwrap_or(&study);
                    if claim.versus.is_none() && claim.versus_study.is_none() {
                        return Some(own);
                    }
                    let by = value(against, other, s.run)?;
                    // The ratio of two zeros is 1.
                    Some(if own.abs().max(by.abs()) <= 0.0 { 1.0 } else { own / by })
                })
                .filter(|v| !v.is_nan())
                .collect();
            let (value, low, high) = statistic(claim.take, claim.within.unwrap_or(f64::NAN), &values)
                .unwrap_or((f64::NAN, f64::NAN, f64::NAN));
            measured.push(Measured { of: format!("{study}, {of}"), value, low, high, runs: values.len() });
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(low: Option<f64>, high: Option<f64>) -> Claim {
        let text = "id = 'x'\nsays = 'x'\nmeasure = 'exit_s'\nverdict = 'holds'\nwhy = ''\n";
        let claim: Claim = toml::from_str(text).expect("as written");
        Claim { at_least: low, at_most: high, ..claim }
    }

    #[test]
    fn an_interval_decides() {
        let m = |low, high| Measured { of: String::new(), value: low, low, high, runs: 5 };
        let of = |measured: &[Measured]| verdict(&claim(Some(1.0), Some(2.0)), measured);
        assert_eq!(of(&[m(1.0, 2.0)]), Verdict::Holds);
        assert_eq!(of(&[m(0.9, 1.5)]), Verdict::Undecided);
        assert_eq!(of(&[m(2.1, 2.5)]), Verdict::Differs);
        // The claim must hold for each value.
        assert_eq!(of(&[m(1.0, 2.0), m(0.9, 1.5)]), Verdict::Undecided);
        assert_eq!(of(&[m(0.9, 1.5), m(0.1, 0.5)]), Verdict::Differs);
        let grows = Claim { grows: true, ..claim(None, None) };
        assert_eq!(verdict(&grows, &[m(1.0, 1.1), m(1.2, 1.3)]), Verdict::Holds);
        assert_eq!(verdict(&grows, &[m(1.0, 1.1), m(1.05, 1.3)]), Verdict::Undecided);
        assert_eq!(verdict(&grows, &[m(1.0, 1.1), m(0.5, 0.9)]), Verdict::Differs);
        // Where the studies vary an unknown, it must differ in each.
        let unknown = Claim { unknown: Some("buffer".into()), ..claim(Some(1.0), Some(2.0)) };
        assert_eq!(verdict(&unknown, &[m(1.1, 1.5), m(0.1, 0.5)]), Verdict::NotStated);
        assert_eq!(verdict(&unknown, &[m(1.1, 1.5), m(0.5, 1.5)]), Verdict::Undecided);
        assert_eq!(verdict(&unknown, &[m(2.1, 2.5), m(0.1, 0.5)]), Verdict::Differs);
        assert_eq!(verdict(&unknown, &[m(1.1, 1.5), m(1.2, 1.6)]), Verdict::Holds);
        // A value is the end of a study's name, or a startup.
        let named = |of: &str, low| Measured { of: of.into(), ..m(low, low) };
        let all = [named("10 ms, small", 1.5), named("20 ms, small", 1.1), named("10 ms, large", 0.5)];
        let values =
            |v: &[&str]| Claim { values: v.iter().map(|v| (*v).into()).collect(), ..unknown.clone() };
        let startups = all.clone().map(|m| Measured { of: format!("study, {}", &m.of[..5]), ..m });
        let studies = all.map(|m| Measured { of: format!("{}, standard", m.of), ..m });
        assert_eq!(verdict(&values(&["small", "large"]), &studies), Verdict::NotStated);
        assert_eq!(verdict(&values(&["small"]), &studies), Verdict::Holds);
        assert_eq!(verdict(&values(&["20 ms", "10 ms"]), &startups), Verdict::NotStated);
        assert_eq!(of(&[Measured { runs: 0, ..m(f64::NAN, f64::NAN) }]), Verdict::Undecided);
    }

    #[test]
    fn each_network_has_the_spread_of_its_own_runs() {
        let c = claim(None, None);
        let c = Claim { printed: toml::from_str("value = '10'\nruns = 4.0").ok(), ..c };
        let c = Claim { at_least: Some(9.5), at_most: Some(10.5), unknown: Some("buffer".into()), ..c };
        let m = |value: f64, half: f64| Measured {
            of: "s, x".into(),
            value,
            low: value - half,
            high: value + half,
            runs: 16,
        };
        // A paper's sample of four of these runs has an interval twice as wide as that of 16.
        assert_eq!(verdict(&c, &[m(12.4, 1.0)]), Verdict::Undecided);
        assert_eq!(verdict(&c, &[m(11.4, 1.0)]), Verdict::Holds);
        assert_eq!(verdict(&c, &[m(12.4, 0.1), m(11.4, 1.0)]), Verdict::NotStated);
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
            bound: (claim.at_least, claim.at_most),
            measured: Vec::new(),
            verdict,
            reason: String::new(),
        };
        assert!(of(Verdict::Holds).matches_record() && !of(Verdict::Holds).contradicts_record());
        assert!(!of(Verdict::Undecided).matches_record() && !of(Verdict::Undecided).contradicts_record());
        assert!(of(Verdict::Differs).contradicts_record());
    }
}
