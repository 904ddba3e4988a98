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
    /// The claim depends on something that the simulator does not model.
    NotCheckable,
}

impl Verdict {
    /// The verdict as the summary prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::NotStated => "the paper does not say",
            Self::NotCheckable => "not checkable here",
        }
    }
}

/// What a claim is. Only those of the papers are counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The paper itself states it.
    #[default]
    Paper,
    /// Arithmetic of the paper's own numbers, which no run can change.
    Arithmetic,
    /// A value to which the network was fitted, or that was put into it.
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
/// digit to either side, a whole unit if the paper says "about" or the like; and, where the paper took it
/// from a sample, the 95 % interval of that sample beyond it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// The number with its digits ("0.30", "2,600"). Zeros at the end of an integer are not digits.
    value: String,
    /// The paper says "about", "approximately", "almost", "up to" or the like, or the value is read off a
    /// figure.
    #[serde(default)]
    about: bool,
    /// The printed standard deviation of the sample whose mean the value is.
    sd: Option<f64>,
    /// Size of the sample of which the value is the mean, the standard deviation or the share.
    n: Option<f64>,
    /// The paper prints no spread: its sample is as large as this many of our runs, from whose spread its
    /// interval follows.
    runs: Option<f64>,
}

impl Printed {
    /// The number, and half a unit of its last digit.
    fn number(&self) -> Option<(f64, f64)> {
        let digits = self.value.replace(',', "");
        let value: f64 = digits.parse().ok()?;
        let places = match digits.split_once('.') {
            Some((_, fraction)) => -i32::try_from(fraction.len()).ok()?,
            None => i32::try_from(digits.len() - digits.trim_end_matches('0').len()).ok()?,
        };
        let unit = 10_f64.powi(if value == 0.0 { places.min(0) } else { places });
        Some((value, if self.about { unit } else { 0.5 * unit }))
    }

    /// The bound, for this statistic.
    pub(crate) fn bound(&self, take: Statistic) -> Option<(f64, f64)> {
        let (value, half) = self.number()?;
        let (low, high) = match (take, self.n, self.sd) {
            (Statistic::Share, Some(n), _) => {
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
    /// ... or, if this is present too, in this study.
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
            figures: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// The claim with the bound widened by the 95 % interval of the paper's own sample, if that follows from
    /// the spread of our runs. `half` is half of the interval of a mean of `n` of our runs.
    #[must_use]
    pub fn widened(&self, half: f64, n: usize) -> Self {
        let reach =
            self.printed.as_ref().and_then(|p| p.runs).map_or(0.0, |runs| half * (n as f64 / runs).sqrt());
        let (at_least, at_most) = (self.at_least.map(|v| v - reach), self.at_most.map(|v| v + reach));
        Self { at_least, at_most, ..self.clone() }
    }

    /// The names of the figures that the reason cites, in order.
    pub fn cited(&self) -> impl Iterator<Item = &str> {
        self.why.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
    }
}
