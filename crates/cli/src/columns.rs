//! The columns of the table of a comparison, and what stands in them.

use crate::table::{Cell, Tone};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use slowstart::registry::Need;
use slowstart_study::decision::{Change, Decision, Difference, Standing};
use slowstart_study::measures::{Measure, Unit};
use slowstart_study::stats::Median;
use slowstart_study::summary::Summary;
use slowstart_study::words::{bytes, delay, number, signed, spread, two_digits};
use std::sync::LazyLock;

/// A column, besides the name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// One more than the number of startups that are better.
    Rank,
    /// When it left slow start, and in how many runs.
    Exit,
    /// A figure of the catalogue.
    Of(Measure),
}

/// All, in the order of the table: how it leaves slow start stands behind times and rates.
static ORDER: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let (times, rest): (Vec<Measure>, Vec<Measure>) = Measure::ALL.iter().partition(|m| m.is_relative());
    let of = |all: Vec<Measure>| all.into_iter().map(Column::Of);
    [Column::Rank].into_iter().chain(of(times)).chain([Column::Exit]).chain(of(rest)).collect()
});

impl ValueEnum for Column {
    fn value_variants<'a>() -> &'a [Self] {
        &ORDER
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, help) = match self {
            Self::Rank => ("rank", "One more than the number of startups that are better".to_string()),
            Self::Exit => ("exit", "When it left slow start, and in how many runs".to_string()),
            Self::Of(m) => (m.entry().word, capitalised(m.entry().about)),
        };
        Some(PossibleValue::new(word).help(help))
    }
}

impl Column {
    /// The order in which columns are dropped from a table that is too wide, once its interval is.
    pub(crate) const DROPPED: [Self; 3] =
        [Self::Of(Measure::QueueDelay), Self::Of(Measure::Completion), Self::Of(Measure::ExitWindow)];

    pub(crate) const fn measure(self) -> Option<Measure> {
        if let Self::Of(m) = self { Some(m) } else { None }
    }

    /// Its heading; the size is that of the runs.
    pub(crate) fn heading(self, decision: &Decision) -> String {
        let size = || decision.baseline().and_then(|b| b.summary.rows[0].size_bytes);
        match self {
            Self::Rank => "#".into(),
            Self::Exit => "leaves slow start".into(),
            Self::Of(m) => {
                let size = size().filter(|_| m == Measure::Completion);
                size.map_or(m.entry().heading.to_string(), bytes)
            }
        }
    }

    /// The cell of a startup: of the baseline its own values, of others the difference from it for times,
    /// rates and harm.
    pub(crate) fn cell(self, decision: &Decision, s: &Standing, all_intervals: bool, interval: bool) -> Cell {
        let summary = &s.summary;
        let measure = match self {
            Self::Rank => return s.rank.map_or("-".to_string(), |r| r.to_string()).into(),
            Self::Exit => return classes(summary, all_intervals).into(),
            Self::Of(m) => m,
        };
        let unit = measure.entry().unit;
        let difference = decision.against(summary, measure);
        let price = decision.costs().find(|c| *c == measure).and_then(|m| decision.price(summary, m));
        let tone = match price {
            // Nothing that broke a rule is better or worse.
            _ if s.rank.is_none() => Tone::Plain,
            Some(p) if p.outweighs() => Tone::Bad,
            // Of losses that are not shown none is better.
            Some(p) if measure == Measure::StartupLost && p.is_unseen() => Tone::Plain,
            _ => tone(difference.as_ref()),
        };
        if let Some(d) = difference.filter(|_| measure.is_shown_as_difference()) {
            let range = if interval { range(&d.median) } else { String::new() };
            let text = never(&d).unwrap_or_else(|| {
                format!("{}{}{range}{}", signed(d.median.mid), sign_of_difference(measure), unsure(&d))
            });
            return Cell { text, tone };
        }
        let baseline = decision.baseline().is_some_and(|b| b.summary.label == summary.label);
        let tone = if baseline && measure.is_shown_as_difference() { Tone::Bold } else { tone };
        if measure == Measure::StartupLost && !all_intervals {
            return Cell { text: summary.lost(|m| spread(m).mid), tone };
        }
        let Some((median, runs)) = decision.typical(summary, measure) else {
            return Cell { text: "-".to_string(), tone };
        };
        let own = || {
            let of = summary.rows.len();
            let some = if runs < of { format!(" {runs}/{of}") } else { String::new() };
            let [mid, low, high] = [median.mid, median.low, median.high].map(|x| x * unit.factor());
            let shown = spread(&Median { mid, low, high });
            let range = shown.range.filter(|_| all_intervals).map_or(String::new(), |r| format!(" ({r})"));
            let space = if unit.sign().is_empty() { "" } else { " " };
            format!("{}{space}{}{range}{some}", shown.mid, unit.sign())
        };
        let text = match unit {
            // A queue that some run does not show has no median to compare.
            Unit::Delay if runs < summary.rows.len() => "-".to_string(),
            Unit::Percent | Unit::Share => format!("{:.0} %", median.mid * unit.factor()),
            _ if all_intervals => own(),
            Unit::Delay => delay(median.mid * unit.factor()),
            Unit::Bdp => two_digits(median.mid),
            Unit::Seconds | Unit::Mbps | Unit::Packets | Unit::Ratio | Unit::Events => own(),
        };
        Cell { text, tone }
    }

    /// The cell of versions: from the least to the greatest median.
    pub(crate) fn span(self, decision: &Decision, versions: &[&Standing]) -> Cell {
        let of = |s: &Standing| -> Option<(f64, String)> {
            let measure = self.measure()?;
            if measure.is_shown_as_difference() {
                let d = decision.against(&s.summary, measure).filter(|d| d.median.mid.is_finite())?;
                return Some((d.median.mid, signed(d.median.mid) + sign_of_difference(measure)));
            }
            match measure.entry().unit {
                Unit::Bdp => s.summary.typical(measure).map(|(m, _)| (m.mid, two_digits(m.mid))),
                Unit::Delay => s.summary.of_all_runs(measure).map(|m| (m.mid, delay(m.mid * 1e3))),
                Unit::Packets | Unit::Ratio | Unit::Events => {
                    s.summary.of_all_runs(measure).map(|m| (m.mid, number(m.mid)))
                }
                Unit::Seconds | Unit::Mbps | Unit::Percent | Unit::Share => None,
            }
        };
        let mut all: Vec<(f64, String)> = versions.iter().filter_map(|s| of(s)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        match &all[..] {
            [] => Cell::default(),
            [(_, one)] => one.clone().into(),
            [(_, low), .., (_, high)] if low == high => low.clone().into(),
            [(_, low), .., (_, high)] => {
                let unit = low.find(' ').map_or("", |at| &low[at..]);
                let low = if high.ends_with(unit) { low.trim_end_matches(unit) } else { low };
                format!("{low}..{high}").into()
            }
        }
    }
}

/// What stands behind a difference.
const fn sign_of_difference(measure: Measure) -> &'static str {
    if measure.is_relative() { " %" } else { " pt" }
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

/// Where what startups do to another flow was not measured.
pub(crate) const HARM_LEFT_OUT: &str = "What each does to a CUBIC flow beside it: --harm.";

/// The tone of a difference: only a certain one has another than plain text.
pub(crate) fn tone(difference: Option<&Difference>) -> Tone {
    match difference.map(|d| d.change) {
        Some(Change::Better) => Tone::Good,
        Some(Change::Worse) => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// The mark of a difference that the runs do not show.
pub(crate) const fn unsure(difference: &Difference) -> &'static str {
    if matches!(difference.change, Change::NotShown { .. } | Change::TooFew) { "?" } else { "" }
}

/// `never 2/12`: in 2 of 12 runs the transfer never delivered this much, and the baseline's did.
pub(crate) fn never(difference: &Difference) -> Option<String> {
    let [own, base] = difference.never;
    match (own, base) {
        (0, 0) => None,
        (0, _) if difference.median.mid.is_finite() => None,
        (0, k) => Some(format!("ends {k}/{}", difference.runs)),
        (k, _) if k == difference.runs => Some("never".to_string()),
        (k, _) => Some(format!("never {k}/{}", difference.runs)),
    }
}

/// What startups of a table need that a sender may lack, and how many of its lines are not shown.
pub(crate) fn notes(needs: impl Iterator<Item = Need>, shown: usize, of: usize) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for need in needs.filter(|n| n.is_rare()) {
        if !names.contains(&need.name()) {
            names.push(need.name());
        }
    }
    let needs = (!names.is_empty()).then(|| format!("+: needs {}.", names.join(" or ")));
    let top = (shown < of).then(|| format!("{shown} of {of} lines shown (--top)"));
    needs.into_iter().chain(top).collect()
}

/// ` (-44 to -35)`, unless it reads the same as the median.
fn range(m: &Median) -> String {
    let [low, mid, high] = [m.low, m.mid, m.high].map(signed);
    if low == mid && high == mid { String::new() } else { format!(" ({low} to {high})") }
}

/// `link full 27/30`, or all classes.
fn classes(summary: &Summary, all: bool) -> String {
    let runs = summary.rows.len();
    let shares = summary
        .classes()
        .into_iter()
        .map(|(c, n)| if n == runs { c.how().to_string() } else { format!("{} {n}/{runs}", c.how()) });
    shares.take(if all { usize::MAX } else { 1 }).collect::<Vec<_>>().join(", ")
}
