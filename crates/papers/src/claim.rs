//! A claim as the file of an experiment defines it: statement, measure, bound, recorded verdict and reason.

use crate::measure::Measure;
use crate::statistic::{self, Statistic};
use serde::Deserialize;
use slowstart_study::stats;
use std::collections::BTreeMap;

/// The verdict on a claim.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval of the measured value lies within the bound.
    Holds,
    /// The whole interval lies outside the bound.
    Differs,
    /// The interval contains an end of the bound, or there is no value.
    Undecided,
    /// No number of runs decides: it holds with some values of what the paper does not give, and differs with
    /// others.
    NotStated,
    /// Undecided, and a sample as large as the paper's own would decide with no network: the effect is below
    /// its noise.
    CannotShow,
    /// The claim depends on something that the simulator does not model.
    NotCheckable,
}

impl Verdict {
    /// All verdicts, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Holds, Self::Differs, Self::Undecided, Self::NotStated, Self::CannotShow, Self::NotCheckable];

    /// The verdict as the summary prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::NotStated => "the paper does not say",
            Self::CannotShow => "the paper cannot show it",
            Self::NotCheckable => "not checkable here",
        }
    }
}

/// The lower and the upper end of a bound.
pub type Bound = (Option<f64>, Option<f64>);

/// What a claim is. Only those of the papers are counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The paper itself states it.
    #[default]
    Paper,
    /// Arithmetic of the paper's own numbers, which no run can change.
    Arithmetic,
    /// A value to which the network was fitted, or a premise that was put into it.
    Fitted,
    /// A hypothesis of ours: the paper leaves the question to future work, or assumes the answer.
    Ours,
}

impl Origin {
    /// The origin in a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Arithmetic => "arithmetic",
            Self::Fitted => "fitted",
            Self::Ours => "ours",
        }
    }
}

/// Why a claim of a paper is not found to hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The paper is wrong, contradicts itself, or does not say what is needed.
    Paper,
    /// The paper's network has something that is not known, and matters.
    Network,
    /// Our model, reading, measure or number of runs.
    Ours,
    /// It is not known why.
    Unclear,
}

impl Cause {
    /// The cause as results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "a: the paper",
            Self::Network => "b: the network",
            Self::Ours => "c: ours",
            Self::Unclear => "d: unclear",
        }
    }
}

/// A value as a paper prints it. Its bound follows from the one rule of all claims: half a unit of the last
/// printed digit to either side; after "about" or the like a whole unit of the last digit that is not a zero at
/// the end; and, where the paper took it from a sample, the 95 % interval of that sample beyond it. A share stays
/// within 0 and 100 %.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// The number with its digits ("0.30", "2,600"), or the lower end of a range.
    value: String,
    /// The upper end of a range. Each end has its own digits.
    to: Option<String>,
    /// The paper says "about", "approximately", "almost", "up to" or the like, or the value is read off a
    /// figure.
    #[serde(default)]
    about: bool,
    /// The printed standard deviation of the sample whose mean the value is.
    sd: Option<f64>,
    /// Size of the sample of which the value is the mean, the standard deviation or the share.
    n: Option<f64>,
    /// The paper prints no spread: its sample is as large as this many of our runs, from whose spread the interval of its
    /// mean follows.
    runs: Option<f64>,
}

impl Printed {
    /// A number as printed, and how far its bound reaches to either side.
    fn number(&self, printed: &str) -> Option<(f64, f64)> {
        let digits = printed.replace(',', "");
        let value: f64 = digits.parse().ok()?;
        let places = match digits.split_once('.') {
            Some((_, fraction)) => -i32::try_from(fraction.len()).ok()?,
            None => 0,
        };
        if !self.about {
            return Some((value, 0.5 * 10_f64.powi(places)));
        }
        // "About 870" names tens.
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let rounded = if places == 0 && value != 0.0 { i32::try_from(zeros).ok()? } else { places };
        Some((value, 10_f64.powi(rounded)))
    }

    /// True if the text has a share with other digits than the value, which is in per cent too or is a ratio: 40 % is 40
    /// or 1.40.
    pub(crate) fn loses_digits(&self, text: &str) -> bool {
        let places = |number: &str| number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let Some((before, _)) = text.split_once('%') else { return false };
        let number = before.trim_end().rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or("");
        let own = places(&self.value);
        !self.about && !number.is_empty() && own != places(number) && own != places(number) + 2
    }

    /// True if the sample has the spread of our runs.
    pub(crate) fn is_of_runs(&self) -> bool {
        self.runs.is_some()
    }

    /// The number; `None` of a range.
    pub(crate) fn value(&self) -> Option<f64> {
        self.to.is_none().then(|| self.number(&self.value))?.map(|(value, _)| value)
    }

    /// The bound, for this statistic.
    pub(crate) fn bound(&self, take: Statistic) -> Option<(f64, f64)> {
        let (value, half) = self.number(&self.value)?;
        if let Some(to) = &self.to {
            let (end, half_of_end) = self.number(to)?;
            return Some((value - half, end + half_of_end));
        }
        let (low, high) = match (take, self.n, self.sd) {
            (Statistic::Share | Statistic::Within, Some(n), _) => {
                let (_, low, high) = stats::wilson(value / 100.0, n);
                (low, high)
            }
            (Statistic::Deviation, Some(n), _) => statistic::deviation_ends(value, n),
            (_, Some(n), Some(sd)) => {
                let reach = 1.96 * sd / n.sqrt();
                (value - reach, value + reach)
            }
            _ => (value, value),
        };
        if matches!(take, Statistic::Share | Statistic::Within) {
            return Some(((low - half).max(0.0), (high + half).min(100.0)));
        }
        Some((low - half, high + half))
    }
}

/// A statement of a paper that runs can confirm or refute.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A name of its own within the experiment, which stays when the claim moves.
    pub id: String,
    /// What the claim is.
    #[serde(default)]
    pub origin: Origin,
    /// Why a claim of the paper does not hold.
    pub cause: Option<Cause>,
    /// The statement, in our words.
    pub says: String,
    /// The figure that the paper gives, as printed.
    #[serde(default)]
    pub claimed: String,
    /// The measure of each run; absent only if the claim is not checkable.
    pub measure: Option<Measure>,
    /// The studies; all of the experiment if empty. The claim must hold in each.
    #[serde(default)]
    pub studies: Vec<String>,
    /// The startups. The claim must hold for each.
    #[serde(default)]
    pub of: Vec<String>,
    /// If present, the measure is divided by that of this startup in the same run ...
    pub versus: Option<String>,
    /// ... or, if this is present too, in this study, in whose name `{study}` stands for that of the claim and
    /// `{end}` for what follows the last comma of that.
    pub versus_study: Option<String>,
    /// The measure of that startup, if it is another one.
    pub versus_measure: Option<Measure>,
    /// If present, the value of this startup in the same run is subtracted.
    pub less: Option<String>,
    /// Index of the flow in the run.
    #[serde(default)]
    pub flow: usize,
    /// The statistic over the runs.
    #[serde(default)]
    pub take: Statistic,
    /// The bound of [`Statistic::Within`].
    pub within: Option<f64>,
    /// The size of the paper's sample in our runs, of which [`Statistic::Highest`] is the highest.
    pub sample: Option<f64>,
    /// The value that the paper prints, from which the bound follows.
    pub printed: Option<Printed>,
    /// Lower end of the bound.
    pub at_least: Option<f64>,
    /// Upper end of the bound.
    pub at_most: Option<f64>,
    /// True if the claim is that the measured values grow in the order of the studies, in place of a bound.
    #[serde(default)]
    pub grows: bool,
    /// A value that the paper does not give, if the studies of the claim vary it ("buffer"). The claim then
    /// holds if it holds with every value, differs if it differs with every value, and otherwise the paper
    /// does not say.
    pub unknown: Option<String>,
    /// Its values: the ends of the names of the studies, or the startups. If empty, each study has a value of
    /// its own.
    #[serde(default)]
    pub values: Vec<String>,
    /// The verdict that the file records.
    pub verdict: Verdict,
    /// The reason for the verdict and, where it is known, the assumption under which the claim would hold.
    /// `{value}` stands for the measured values, `{interval}` for their intervals, `{name}` for a figure. If
    /// empty, the verdict is *holds*.
    #[serde(default)]
    pub why: String,
    /// Figures that the reason cites, computed from the runs.
    #[serde(default)]
    pub figures: BTreeMap<String, Figure>,
}

/// A quantity that a reason cites. What it does not give is that of its claim, except `versus`,
/// `versus_study`, `less` and `within`, which it has only if it gives them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    measure: Option<Measure>,
    studies: Option<Vec<String>>,
    of: Option<Vec<String>>,
    versus: Option<String>,
    versus_study: Option<String>,
    less: Option<String>,
    flow: Option<usize>,
    take: Option<Statistic>,
    within: Option<f64>,
    sample: Option<f64>,
}

impl Claim {
    /// The claim's own quantity with the fields of `figure`; its bound is not used.
    #[must_use]
    pub fn with(&self, figure: &Figure) -> Self {
        let f = figure.clone();
        Self {
            measure: f.measure.or(self.measure),
            studies: f.studies.unwrap_or_else(|| self.studies.clone()),
            of: f.of.unwrap_or_else(|| self.of.clone()),
            versus: f.versus,
            versus_study: f.versus_study,
            versus_measure: None,
            less: f.less,
            flow: f.flow.unwrap_or(self.flow),
            take: f.take.unwrap_or(self.take),
            within: f.within,
            sample: f.sample.or(self.sample),
            figures: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// The bound of what has these values in our runs, widened by the 95 % interval of the paper's own sample if that
    /// follows from their spread. `half` is half of the interval of their mean.
    pub(crate) fn bound(&self, half: f64, values: &[f64]) -> Bound {
        let runs = self.printed.as_ref().and_then(|p| p.runs).filter(|_| half.is_finite());
        let of_mean = runs.map(|runs| half * (values.len() as f64 / runs).sqrt()).map(|r| (r, r));
        let printed_highest = self.sample.filter(|_| self.printed.is_some());
        let of_highest = printed_highest.and_then(|sample| statistic::reach_of_highest(sample, values));
        // A sample whose highest value is high may be of what is as far below.
        let (below, above) = of_highest.or(of_mean).unwrap_or((0.0, 0.0));
        let (low, high) = (self.at_least.map(|v| v - above), self.at_most.map(|v| v + below));
        if self.is_share() { (low.map(|v| v.max(0.0)), high.map(|v| v.min(100.0))) } else { (low, high) }
    }

    /// True if what is judged lies within 0 and 100 %.
    pub(crate) fn is_share(&self) -> bool {
        let of_a_run = self.measure.is_some_and(|m| m.is_share()) && self.neutral().is_none();
        match self.take {
            Statistic::Share | Statistic::Within => true,
            Statistic::Median | Statistic::Mean | Statistic::Highest => of_a_run,
            Statistic::Deviation => false,
        }
    }

    /// The study in which the other startup is measured.
    pub fn study_of_other(&self, study: &str) -> String {
        let end = study.rsplit_once(", ").map_or(study, |(_, end)| end);
        let named = |s: &String| s.replace("{study}", study).replace("{end}", end);
        self.versus_study.as_ref().map_or_else(|| study.to_string(), named)
    }

    /// The value of no effect, if the claim compares two startups: 1 for a ratio, 0 for a difference.
    pub(crate) fn neutral(&self) -> Option<f64> {
        let ratio = self.versus.is_some() || self.versus_study.is_some();
        if self.less.is_some() { Some(0.0) } else { ratio.then_some(1.0) }
    }

    /// True if the paper says "better", "more" or the like of a comparison, and the bound permits no effect.
    pub(crate) fn permits_none(&self) -> bool {
        const COMPARATIVES: [&str; 17] = [
            "better",
            "more",
            "faster",
            "higher",
            "sooner",
            "earlier",
            "larger",
            "longer",
            "fewer",
            "smaller",
            "lower",
            "less",
            "worse",
            "slower",
            "shorter",
            "farther",
            "reduction",
        ];
        let text = self.claimed.to_lowercase();
        let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
        let compares = words.any(|w| COMPARATIVES.contains(&w));
        // "Similar or worse", "no gain" and "less than 1 %" permit none.
        let limits = text.split(" than ").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let permits = text.contains("similar") || text.starts_with("no ") || limits || self.grows;
        let within = |v: f64| self.at_least.is_none_or(|a| a <= v) && self.at_most.is_none_or(|b| v <= b);
        self.origin == Origin::Paper && compares && !permits && self.neutral().is_some_and(within)
    }

    /// The names of the figures that the reason cites, in order.
    pub fn cited(&self) -> impl Iterator<Item = &str> {
        self.why.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_has_half_a_unit_of_its_last_digit() {
        let of = |text: &str, take| {
            let printed: Printed = toml::from_str(text).expect("as written");
            printed.bound(take)
        };
        let mean = |text| of(text, Statistic::Mean);
        assert_eq!(mean("value = '0.30'"), Some((0.295, 0.305)));
        assert_eq!(mean("value = '2,600'"), Some((2599.5, 2600.5)));
        assert_eq!(mean("value = '100'"), Some((99.5, 100.5)));
        assert_eq!(mean("value = '0'"), Some((-0.5, 0.5)));
        assert_eq!(mean("value = '-5'\nto = '-1'"), Some((-5.5, -0.5)));
        let loses = |text: &str, claimed| {
            let printed: Printed = toml::from_str(text).expect("as written");
            printed.loses_digits(claimed)
        };
        assert!(loses("value = '1.4'", "40 % more") && !loses("value = '1.40'", "40 % more"));
        assert!(!loses("value = '6.745'", "+6.745 %") && !loses("value = '1.7'\nabout = true", "up to 70 %"));
        assert!(!loses("value = '13.7'", "13.7 s (sd 1.7)"));
        // "About" names the last digit that is not a zero at the end.
        assert_eq!(mean("value = '870'\nabout = true"), Some((860.0, 880.0)));
        assert_eq!(mean("value = '37,000'\nabout = true"), Some((36_000.0, 38_000.0)));
        assert_eq!(mean("value = '0.3'\nabout = true"), Some((0.3 - 0.1, 0.3 + 0.1)));
        assert_eq!(mean("value = '0'\nabout = true"), Some((-1.0, 1.0)));
        // A share stays a share, with or without a sample.
        assert_eq!(of("value = '100'", Statistic::Share), Some((99.5, 100.0)));
        let (low, high) = of("value = '0'\nn = 395.0", Statistic::Share).expect("a number");
        assert!(low == 0.0 && (1.0..2.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn a_comparative_excludes_no_effect() {
        let of = |more: &str| {
            let text = format!("id = 'c'\nsays = 'c'\nmeasure = 'exit_time_s'\nverdict = 'holds'\n{more}");
            toml::from_str::<Claim>(&text).expect("as written").permits_none()
        };
        assert!(of("claimed = 'better'\nversus = 'x'\nat_least = 0.99"));
        assert!(!of("claimed = 'better'\nversus = 'x'\nat_least = 1.001"));
        assert!(!of("claimed = 'better'\nat_least = 0.99"));
        assert!(of("claimed = 'fewer losses'\nless = 'x'\nat_most = 0.0"));
        assert!(!of("claimed = 'similar or worse'\nversus = 'x'\nat_least = 0.95"));
        assert!(!of("claimed = 'the increase is less than 1%'\nversus = 'x'\nat_most = 1.01"));
        assert!(of("claimed = 'less than with 1 MB'\nversus = 'x'\nat_most = 1.01"));
        assert!(!of("claimed = 'better'\norigin = 'ours'\nversus = 'x'\nat_least = 0.99"));
    }
}
