//! The columns of the table of a comparison, and what stands in them.

use crate::table::{Cell, Tone};
use clap::ValueEnum;
use slowstart::registry::Need;
use slowstart_study::decision::{Change, Decision, Difference, Figure, Standing};
use slowstart_study::stats::Median;
use slowstart_study::summary::{Measure, Summary};
use slowstart_study::words::{bytes, delay, number, signed, spread, two_digits};

/// A column, besides the name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// One more than the number of startups that are better.
    Rank,
    /// Median time of an object.
    Object,
    /// 95th percentile of the time of an object.
    P95,
    /// Time until the receiver had 10 MB.
    #[value(name = "10mb")]
    Time10MB,
    /// Time until the receiver had 1 MB.
    #[value(name = "1mb")]
    Time1MB,
    /// Time until the receiver had everything.
    All,
    /// Goodput.
    Goodput,
    /// When it left slow start, and in how many runs.
    Exit,
    /// Time at which the reason of the exit was seen.
    At,
    /// The window at that time, in BDP.
    Cwnd,
    /// Packets dropped of those sent before the exit.
    Lost,
    /// The longest wait at the bottleneck.
    Queue,
    /// What a CUBIC flow beside it keeps of its goodput.
    Harm,
}

impl Column {
    /// All, in the order of the table.
    pub(crate) const ORDER: [Self; 13] = [
        Self::Rank,
        Self::Object,
        Self::P95,
        Self::Time10MB,
        Self::Time1MB,
        Self::All,
        Self::Goodput,
        Self::Exit,
        Self::At,
        Self::Cwnd,
        Self::Lost,
        Self::Queue,
        Self::Harm,
    ];
    /// The order in which columns are dropped from a table that is too wide, once its interval is.
    pub(crate) const DROPPED: [Self; 3] = [Self::Queue, Self::All, Self::Cwnd];

    pub(crate) const fn measure(self) -> Option<Measure> {
        Some(match self {
            Self::Object => Measure::ObjectMedian,
            Self::P95 => Measure::ObjectP95,
            Self::Time10MB => Measure::Time10MB,
            Self::Time1MB => Measure::Time1MB,
            Self::All => Measure::Completion,
            Self::Goodput => Measure::Goodput,
            Self::At => Measure::ExitTime,
            Self::Cwnd => Measure::ExitWindow,
            Self::Lost => Measure::StartupLost,
            Self::Queue => Measure::QueueDelay,
            Self::Rank | Self::Exit | Self::Harm => return None,
        })
    }

    /// True if it is shown without being asked for.
    pub(crate) const fn is_usual(self) -> bool {
        !matches!(self, Self::Rank | Self::At)
    }

    /// Its heading; the size is that of the runs.
    pub(crate) fn heading(self, decision: &Decision) -> String {
        let size = || decision.baseline().and_then(|b| b.summary.rows[0].size_bytes);
        match self {
            Self::Rank => "#".into(),
            Self::Object => "object".into(),
            Self::P95 => "p95".into(),
            Self::Time10MB => "10 MB".into(),
            Self::Time1MB => "1 MB".into(),
            Self::All => size().map_or("all".into(), bytes),
            Self::Goodput => "goodput".into(),
            Self::Exit => "leaves slow start".into(),
            Self::At => "at".into(),
            Self::Cwnd => "BDP".into(),
            Self::Lost => "lost".into(),
            Self::Queue => "queue".into(),
            Self::Harm => "CUBIC".into(),
        }
    }

    /// The cell of a startup: of the baseline its own values, of others the difference from it for times,
    /// rates and harm.
    pub(crate) fn cell(self, decision: &Decision, s: &Standing, all_intervals: bool, interval: bool) -> Cell {
        let summary = &s.summary;
        let figure = match self {
            Self::Harm => Some(Figure::OthersGot),
            Self::At | Self::Cwnd => None,
            _ => self.measure().map(Figure::Of),
        };
        let difference = figure.and_then(|f| decision.against(summary, f));
        let price = figure.and_then(|f| decision.price(summary, f));
        let tone = match self {
            // Nothing that broke a rule is better or worse.
            _ if s.rank.is_none() => Tone::Plain,
            Self::P95 | Self::Lost | Self::Queue | Self::Harm if price.is_some_and(|p| p.outweighs()) => {
                Tone::Bad
            }
            // Of losses that are not shown none is better.
            Self::Lost if price.is_some_and(|p| p.is_unseen()) => Tone::Plain,
            _ => tone(difference.as_ref()),
        };
        let relative = |unit: &str| {
            difference.map(|d| {
                let range = if interval { range(&d.median) } else { String::new() };
                Cell {
                    text: never(&d)
                        .unwrap_or_else(|| format!("{}{unit}{range}{}", signed(d.median.mid), unsure(&d))),
                    tone,
                }
            })
        };
        let own = |unit: &str| {
            summary.typical(self.measure().unwrap_or(Measure::Completion)).map_or(
                "-".to_string(),
                |(m, runs)| {
                    let some = if runs < summary.rows.len() {
                        format!(" {runs}/{}", summary.rows.len())
                    } else {
                        String::new()
                    };
                    let shown = spread(&m);
                    let range =
                        shown.range.filter(|_| all_intervals).map_or(String::new(), |r| format!(" ({r})"));
                    format!("{}{unit}{range}{some}", shown.mid)
                },
            )
        };
        let baseline = decision.baseline().is_some_and(|b| b.summary.label == summary.label);
        let bold = |text: String| Cell { text, tone: if baseline { Tone::Bold } else { tone } };
        match self {
            Self::Rank => s.rank.map_or("-".to_string(), |r| r.to_string()).into(),
            Self::Exit => classes(summary, all_intervals).into(),
            Self::Object | Self::P95 | Self::Time1MB | Self::Time10MB | Self::All => {
                relative(" %").unwrap_or_else(|| bold(own(" s")))
            }
            Self::Goodput => relative(" %").unwrap_or_else(|| bold(own(" Mbit/s"))),
            Self::At => own(" s").into(),
            Self::Cwnd => match summary.typical(Measure::ExitWindow).filter(|_| !all_intervals) {
                Some((m, _)) => two_digits(m.mid).into(),
                None => own("").into(),
            },
            Self::Lost if all_intervals => Cell { text: own(""), tone },
            Self::Lost => Cell { text: summary.lost(|m| spread(m).mid), tone },
            Self::Queue => {
                let text = summary
                    .of_all_runs(Measure::QueueDelay)
                    .map_or("-".into(), |m| if all_intervals { own(" ms") } else { delay(m.mid) });
                Cell { text, tone }
            }
            Self::Harm => relative(" pt").unwrap_or_else(|| {
                bold(decision.others_got(summary).map_or("-".into(), |m| format!("{:.0} %", m.mid)))
            }),
        }
    }

    /// The cell of versions: from the least to the greatest median.
    pub(crate) fn span(self, decision: &Decision, versions: &[&Standing]) -> Cell {
        let of = |s: &Standing| -> Option<(f64, String)> {
            let against = |f, unit: &str| {
                let d = decision.against(&s.summary, f).filter(|d| d.median.mid.is_finite())?;
                Some((d.median.mid, signed(d.median.mid) + unit))
            };
            match self {
                Self::Rank | Self::Exit | Self::At => None,
                Self::Harm => against(Figure::OthersGot, " pt"),
                Self::Object | Self::P95 | Self::Time1MB | Self::Time10MB | Self::All | Self::Goodput => {
                    against(Figure::Of(self.measure()?), " %")
                }
                Self::Queue => s.summary.of_all_runs(Measure::QueueDelay).map(|m| (m.mid, delay(m.mid))),
                Self::Cwnd => s.summary.typical(Measure::ExitWindow).map(|(m, _)| (m.mid, two_digits(m.mid))),
                Self::Lost => s.summary.of_all_runs(Measure::StartupLost).map(|m| (m.mid, number(m.mid))),
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
