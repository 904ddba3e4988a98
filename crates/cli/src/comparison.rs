//! The table of a comparison: a line a startup, against the baseline.

use crate::columns::{Column, HARM_LEFT_OUT, notes};
use crate::table::{Align, Cell, Table};
use clap::ValueEnum;
use slowstart::registry;
use slowstart_study::decision::{Change, Decision, Standing, role};
use slowstart_study::figures::tells;
use slowstart_study::measures::{Measure, Shown};
use slowstart_study::record::{Class, Limits, LostBy, Others, Row};
use slowstart_study::stats::median;
use slowstart_study::summary::Summary;
use slowstart_study::words::{RECONSTRUCTED, marked, name_group, number, spread};

/// How a comparison is sorted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// The baseline, then by the difference from it.
    #[default]
    Gain,
    /// By name.
    Startup,
    /// By a column: best first, or least first where neither is better.
    Column(Column),
}

/// Which part of a comparison is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The columns, in this order; those that fit if none is named.
    pub columns: Vec<Column>,
    /// The order of the lines.
    pub order: Order,
    /// The number of lines, if not all.
    pub top: Option<usize>,
    /// A line for each startup, every column, whatever the width.
    pub wide: bool,
    /// One line for the versions of an algorithm that is shown itself.
    pub fold: bool,
}

/// A line: startups that did exactly the same in every run, or the versions of one algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Line<'d, 'a> {
    /// The labels of the startups.
    pub labels: Vec<String>,
    /// The startups that did the same: the first of them. Of versions: all.
    pub standings: Vec<&'d Standing<'a>>,
    /// True for the versions of the startup of an earlier line.
    versions: bool,
}

impl<'a> Line<'_, 'a> {
    pub(crate) fn first(&self) -> &Summary<'a> {
        &self.standings[0].summary
    }

    /// The labels as they are printed.
    fn marked(&self) -> Vec<String> {
        self.labels.iter().map(|l| marked(l)).collect()
    }

    /// The name as it is printed.
    fn name(&self) -> String {
        let labels = self.marked();
        if self.versions {
            return match &labels[..] {
                [one] => format!("    {one}"),
                all => format!("    {} versions", all.len()),
            };
        }
        let front = if self.standings[0].unbeaten { "* " } else { "  " };
        let need = match self.standings[0].need {
            Some(need) if need.is_rare() => " +",
            _ => "",
        };
        format!("{front}{}{need}", name_group(&labels, NAMES))
    }
}

/// A comparison, grouped, sorted and cut as the view says.
#[derive(Clone, Debug)]
pub(crate) struct Comparison<'d, 'a> {
    pub decision: &'d Decision<'a>,
    /// The lines that are shown.
    pub lines: Vec<Line<'d, 'a>>,
    /// The number of lines there are.
    of: usize,
    /// True if a CUBIC flow could be measured but was not asked for.
    pub harm_left_out: bool,
}

/// Widest label column where startups are grouped.
const NAMES: usize = 28;
/// Spaces between columns.
const GAP: u16 = 1;

/// True if two runs differ in nothing but the startup's name, its parameters and what it cost to compute
/// them.
fn same_run(a: &Row, b: &Row) -> bool {
    let other = Row {
        startup: a.startup.clone(),
        params: a.params.clone(),
        settings: a.settings.clone(),
        avoidance: a.avoidance.clone(),
        cost: a.cost,
        ..b.clone()
    };
    *a == other
}

fn same_runs(a: &Summary, b: &Summary) -> bool {
    a.rows.len() == b.rows.len() && a.rows.iter().zip(&b.rows).all(|(a, b)| same_run(a, b))
}

/// The algorithm of which a startup is a version: `search` of `search-1.0`.
fn algorithm_of(startup: &str) -> Option<&str> {
    let (name, _) = startup.split_once('-')?;
    registry::named(name).map(|_| name)
}

impl<'d, 'a> Comparison<'d, 'a> {
    /// The startups of a decision. Versions of an algorithm that is among them are one line, if the view says
    /// so.
    pub(crate) fn new(decision: &'d Decision<'a>, view: &View) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        let named = |name: &str| decision.standings.iter().any(|s| s.summary.label == name);
        let mut versions: Vec<(&str, Line)> = Vec::new();
        for (i, s) in decision.standings.iter().enumerate() {
            let label = s.summary.label.clone();
            let own = || Line { labels: vec![label.clone()], standings: vec![s], versions: false };
            if let Some(of) = algorithm_of(&s.summary.rows[0].startup)
                .filter(|of| i > 0 && view.fold && !view.wide && named(of))
            {
                match versions.iter_mut().find(|(name, _)| *name == of) {
                    Some((_, line)) => {
                        line.labels.push(label);
                        line.standings.push(s);
                    }
                    None => versions.push((of, Line { versions: true, ..own() })),
                }
                continue;
            }
            // One that needs something is not what those without it can take.
            let same = |l: &&mut Line| {
                !view.wide && i > 0 && l.standings[0].need == s.need && same_runs(l.first(), &s.summary)
            };
            match lines.iter_mut().skip(1).find(same) {
                Some(line) => line.labels.push(label),
                None => lines.push(own()),
            }
        }
        match view.order {
            Order::Gain => {}
            Order::Startup => lines.sort_by(|a, b| a.labels[0].cmp(&b.labels[0])),
            Order::Column(column) => {
                let key = |l: &Line| match column {
                    Column::Of(m) => decision.typical(l.first(), m).map_or(f64::INFINITY, |(median, _)| {
                        if m.more_is_better() { -median.mid } else { median.mid }
                    }),
                    Column::Rank => l.standings[0].rank.map_or(f64::INFINITY, |r| r as f64),
                    Column::Exit => l.first().classes().first().map_or(0.0, |(c, _)| f64::from(*c as u8)),
                };
                lines.sort_by(|a, b| key(a).total_cmp(&key(b)));
            }
        }
        for (of, line) in versions {
            let at = lines.iter().position(|l| l.labels.iter().any(|l| l == of)).unwrap_or(0);
            lines.insert(at + 1, line);
        }
        let of = lines.len();
        lines.truncate(view.top.unwrap_or(of));
        Self { decision, lines, of, harm_left_out: false }
    }

    /// The columns of the view, or all that have a value and say something of their own.
    fn columns(&self, view: &View) -> Vec<Column> {
        if !view.columns.is_empty() {
            return view.columns.clone();
        }
        let by = self.decision.by;
        let shown: Vec<&Summary> = self.lines.iter().map(Line::first).collect();
        let is_shown = |c: &Column| match c {
            Column::Rank => view.wide,
            Column::Exit => true,
            Column::Of(m) if m.entry().shown == Shown::Wide => view.wide,
            Column::Of(m) => tells(self.decision, &shown, *m),
        };
        let mut all: Vec<Column> = Column::value_variants().iter().copied().filter(is_shown).collect();
        // What decides comes first.
        all.sort_by_key(|c| c.measure() != Some(by) && *c != Column::Rank);
        all
    }

    fn table(&self, columns: &[Column], intervals: Intervals) -> Table {
        let mut headers = vec!["  startup".to_string()];
        headers.extend(columns.iter().map(|c| c.heading(self.decision)));
        let mut alignments = vec![Align::Left];
        alignments
            .extend(columns.iter().map(|c| if *c == Column::Exit { Align::Left } else { Align::Right }));
        let line = |l: &Line| {
            let mut cells: Vec<Cell> = vec![l.name().into()];
            cells.extend(columns.iter().map(|c| {
                if l.versions && l.standings.len() > 1 {
                    return c.span(self.decision, &l.standings);
                }
                let decides = c.measure() == Some(self.decision.by);
                let interval = intervals == Intervals::All || decides && intervals == Intervals::Deciding;
                c.cell(self.decision, l.standings[0], intervals == Intervals::All, interval)
            }));
            cells
        };
        Table { headers, rows: self.lines.iter().map(line).collect(), alignments }
    }

    /// The table and the columns that it leaves out. In a `width`, first the interval of the deciding column
    /// goes, then columns in the order of [`Column::DROPPED`]; then cells wrap.
    pub(crate) fn render(&self, view: &View, color: bool, width: usize) -> (String, Vec<String>) {
        if self.lines.is_empty() {
            return ("no runs\n".into(), Vec::new());
        }
        let fits = |t: &Table| t.render_with(false, None, GAP).lines().all(|l| l.chars().count() <= width);
        let mut columns = self.columns(view);
        if view.wide {
            return (self.table(&columns, Intervals::All).render_with(color, None, GAP), Vec::new());
        }
        let mut left_out = Vec::new();
        for intervals in [Intervals::Deciding, Intervals::None] {
            let table = self.table(&columns, intervals);
            if fits(&table) {
                return (table.render_with(color, None, GAP), left_out);
            }
            if intervals == Intervals::Deciding {
                left_out.push("the 95 % interval".to_string());
            }
        }
        // Columns that were asked for all stay.
        for drop in Column::DROPPED.into_iter().filter(|_| view.columns.is_empty()) {
            if let Some(at) = columns.iter().position(|c| *c == drop) {
                left_out.push(columns.remove(at).heading(self.decision));
            }
            let table = self.table(&columns, Intervals::None);
            if fits(&table) {
                return (table.render_with(color, None, GAP), left_out);
            }
        }
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        (self.table(&columns, Intervals::None).render_with(color, Some(width), GAP), left_out)
    }

    /// What each startup did to the flows of --against that were there before it; nothing if there were none.
    pub(crate) fn others(&self, color: bool, width: usize) -> Option<String> {
        self.lines.iter().flat_map(|l| &l.first().rows).find(|r| r.others.is_some())?;
        let cell = |s: &Summary, of: &dyn Fn(&Others) -> Option<f64>| -> Cell {
            let values: Vec<f64> = s.rows.iter().filter_map(|r| r.others.as_ref()).filter_map(of).collect();
            let Some(m) = median(&values) else { return "-".into() };
            let shown = spread(&m);
            shown.range.map_or(shown.mid.clone(), |r| format!("{} ({r})", shown.mid)).into()
        };
        let line = |l: &Line| {
            let s = l.first();
            vec![
                name_group(&l.marked(), NAMES).into(),
                cell(s, &|o| Some(o.lost_packets as f64)),
                cell(s, &|o| {
                    // The worst second saturates where the flows have bad seconds of their own.
                    o.goodput_before_bps
                        .filter(|b| *b > 0.0)
                        .zip(o.goodput_bps)
                        .map(|(b, with)| 100.0 * with / b)
                }),
                cell(s, &|o| o.delay_p99_s.map(|d| d * 1e3)),
            ]
        };
        let headers = ["to the other flows", "lost", "goodput (% of before)", "delay p99 (ms)"];
        let table = Table {
            headers: headers.map(String::from).to_vec(),
            rows: self.lines.iter().map(line).collect(),
            alignments: vec![Align::Left, Align::Right, Align::Right, Align::Right],
        };
        Some(table.render(color, u16::try_from(width).ok()))
    }

    /// What limited each startup's sender, as mean shares of the time of a run; nothing if no run observed it.
    pub(crate) fn limits(&self, color: bool, width: usize) -> Option<String> {
        let of = |l: &Line| -> Vec<(String, f64)> {
            let all = Limits::mean(&l.first().rows.iter().filter_map(|r| r.limits).collect::<Vec<_>>());
            // What no run observed is not a number.
            all.into_iter().map(|(name, share)| (name.to_string(), share.unwrap_or(f64::NAN))).collect()
        };
        self.by_line("limited by, mean % of time", color, width, &of, |share| match share * 100.0 {
            unknown if unknown.is_nan() => "?".into(),
            0.0 => "-".into(),
            percent if percent < 0.5 => "<1".into(),
            percent => format!("{percent:.0}"),
        })
    }

    /// What dropped packets of each startup, a run on average, at each link of a path of several; nothing if no run
    /// observed it.
    pub(crate) fn lost_by(&self, color: bool, width: usize) -> Option<String> {
        let mean = |lost: Vec<LostBy>| LostBy::mean(&lost).into_iter();
        let of = |l: &Line| -> Vec<(String, f64)> {
            let rows = &l.first().rows;
            let links = rows.iter().map(|r| r.links.len()).max().unwrap_or(0);
            if links == 0 {
                let whole = mean(rows.iter().filter_map(|r| r.lost_by).collect());
                return whole.map(|(cause, n)| (cause.to_string(), n)).collect();
            }
            let at =
                |i: usize| rows.iter().filter_map(move |r| r.links.get(i)).map(|link| link.lost_by).collect();
            let each = (0..links)
                .flat_map(|i| mean(at(i)).map(move |(cause, n)| (format!("{cause} at link {}", i + 1), n)));
            each.collect()
        };
        self.by_line("packets dropped, mean of runs, by", color, width, &of, |n| {
            if n == 0.0 { "-".into() } else { number(n) }
        })
    }

    /// A table of named values of each line, without the names that are 0 in all.
    fn by_line(
        &self,
        heading: &str,
        color: bool,
        width: usize,
        of: &dyn Fn(&Line) -> Vec<(String, f64)>,
        text: impl Fn(f64) -> String,
    ) -> Option<String> {
        let lines: Vec<(&Line, Vec<(String, f64)>)> =
            self.lines.iter().map(|l| (l, of(l))).filter(|(_, values)| !values.is_empty()).collect();
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in lines.iter().flat_map(|(_, values)| values).filter(|(_, v)| *v > 0.0 || v.is_nan()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let cells = |(l, values): &(&Line, Vec<(String, f64)>)| {
            let value = |name: &&str| values.iter().find(|v| v.0 == *name).map_or(0.0, |v| v.1);
            let mut cells: Vec<Cell> = vec![name_group(&l.marked(), NAMES).into()];
            cells.extend(names.iter().map(|name| text(value(name)).into()));
            cells
        };
        let table = Table {
            headers: std::iter::once(heading).chain(names.iter().copied()).map(String::from).collect(),
            rows: lines.iter().map(cells).collect(),
            alignments: std::iter::once(Align::Left).chain(names.iter().map(|_| Align::Right)).collect(),
        };
        (!names.is_empty()).then(|| table.render(color, u16::try_from(width).ok()))
    }

    /// What a question mark says, if there is one: that the runs do not show a difference, and how many
    /// would.
    fn unsure(&self, view: &View) -> Option<String> {
        let d = self.decision;
        let own = |c: Column| c.measure().filter(|m| m.is_shown_as_difference());
        let unsure = |f: Measure| -> Vec<Option<usize>> {
            let changes = self.lines.iter().filter_map(|l| d.against(l.first(), f));
            changes
                .filter_map(|x| match x.change {
                    Change::NotShown { runs } => Some(runs),
                    _ => None,
                })
                .collect()
        };
        let any = self.columns(view).into_iter().filter_map(own).any(|f| !unsure(f).is_empty());
        let deciding: Vec<usize> = unsure(d.by).into_iter().flatten().collect();
        let many = deciding.iter().min().zip(deciding.iter().max()).map_or(String::new(), |(low, high)| {
            let [low_text, high_text] = [low, high].map(|n| number(*n as f64));
            if low == high {
                format!(" (about {low_text} would)")
            } else {
                format!(" (about {low_text} to {high_text} would)")
            }
        });
        any.then(|| format!("?: these runs do not show it{many}"))
    }

    /// What the classes of exits that are in the table mean.
    fn exits(&self) -> Option<String> {
        let shown = |class: Class| {
            self.lines
                .iter()
                .any(|l| !l.versions && l.first().classes().first().is_some_and(|c| c.0 == class))
        };
        let all: Vec<String> = Class::ALL
            .into_iter()
            .filter(|c| shown(*c))
            .map(|c| format!("{}: {}", c.how(), c.brief()))
            .collect();
        (!all.is_empty()).then(|| format!("{}.", all.join("; ")))
    }

    /// The legend in two lines of a narrow terminal.
    pub(crate) fn brief(&self) -> String {
        let base = self.decision.baseline().map_or("", |b| &b.summary.label);
        let times = if self.decision.by == Measure::ObjectMedian {
            "Times of objects: median and p95"
        } else {
            "Times:"
        };
        format!(
            "*: a best trade-off. {times} against {base}, run by run; ?: not shown. lost: packets lost in startup. -v explains all."
        )
    }

    /// What the table means, one note a line.
    pub(crate) fn legend(&self, view: &View, left_out: &[String], width: usize) -> Vec<String> {
        let d = self.decision;
        let Some(base) = d.baseline() else { return Vec::new() };
        let label = &base.summary.label;
        let mut all = Vec::new();
        if d.standings.len() > 1 {
            let what = role(base.summary.rows[0], label).map_or(String::new(), |r| format!(" ({r})"));
            let interval = if left_out.iter().any(|l| l.contains("interval")) {
                "median"
            } else {
                "median and 95 % interval"
            };
            let margin = number(100.0 * d.margin());
            let unsure = self.unsure(view).map_or(String::new(), |u| format!("; {u}"));
            all.push(format!(
                "Difference from {label}{what}, run by run: {interval}; within {margin} %, with the whole interval, counts as none{unsure}."
            ));
            if d.by == Measure::ObjectMedian {
                all.push(
                    "object, p95: median and 95th percentile of the time from request to last byte, over the objects that both asked for in \
                     a run."
                        .to_string(),
                );
            }
            let harm = if d.has_harm() { ", delay or harm" } else { " or delay" };
            all.push(format!(
                "*: no other is better in time, losses{harm} without being worse in another. BDP: the window when it leaves. lost: packets \
                 lost in startup. queue: the longest wait."
            ));
        }
        all.extend(self.exits());
        if d.has_harm() && self.columns(view).contains(&Column::Of(Measure::OthersGot)) {
            all.push(format!(
                "CUBIC: the goodput of a CUBIC flow that was there before, beside {label}, as a share of its goodput alone; beside others, the \
                 difference in points."
            ));
        }
        all.extend(notes(self.lines.iter().filter_map(|l| l.standings[0].need), self.lines.len(), self.of));
        for l in self.lines.iter().filter(|l| !l.versions && l.name().contains(" more")) {
            all.push(format!("same in every run: {}", l.marked().join(", ")));
        }
        if self.lines.iter().any(|l| l.marked() != l.labels) {
            all.push(RECONSTRUCTED.to_string());
        }
        if self.lines.iter().any(|l| l.versions && l.labels.len() > 1) {
            all.push("Versions from the least to the greatest median; --wide shows each.".to_string());
        }
        if !left_out.is_empty() {
            all.push(format!(
                "Not shown in {width} columns: {}; --wide shows everything.",
                left_out.join(", ")
            ));
        }
        if self.harm_left_out {
            all.push(HARM_LEFT_OUT.to_string());
        }
        all
    }
}

/// Which columns have intervals.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Intervals {
    All,
    Deciding,
    None,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use slowstart_study::decision::Terms;

    /// A run of `startup` with 10 MB and this time to completion.
    pub(crate) fn row(startup: &str, completion: Option<f64>) -> Row {
        let text = format!(
            r#"{{"schema":1,"version":"0","engine":"sim","path":"geo","profile":"linux-6.18","startup":"{startup}",
            "params":{{}},"avoidance":"cubic","flow":0,"run":0,"seed":0,"iw_bytes":14480,"size_bytes":10000000,
            "duration_s":30.0,"rate_bps":100000000,"base_rtt_s":0.1,"bdp_bytes":1000000,"buffer_bytes":null,
            "exit":{{"reason":"rate-flat","time_s":1.5,"left_s":1.5,"detected_cwnd_bytes":1200000,"cwnd_bytes":1,
            "inflight_bytes":1}},"class":"link-full","class_by_heuristic":null,"capacity_time_s":1.2,
            "capacity_time_by_heuristic_s":null,"first_drop_time_s":null,"first_loss_time_s":null,
            "peak_inflight_bytes":1,"peak_queue_delay_s":0.03,"startup_lost_packets":14210,"lost_packets":0,
            "retransmitted_packets":0,"timeouts":0,"goodput_bps":9000000,"completion_s":null,
            "time_to_bytes_s":{{"1000000":0.9}},"others":null,"cost":{{"packets":0,"events":0}},"caveats":[]}}"#
        );
        Row { completion_s: completion, ..serde_json::from_str(&text).expect("a row") }
    }

    /// Runs of `startup`.
    fn runs(startup: &str, completions: &[f64]) -> Vec<Row> {
        let row = |(run, c): (usize, &f64)| Row { run: run as u32, ..row(startup, Some(*c)) };
        completions.iter().enumerate().map(row).collect()
    }

    fn rows() -> Vec<Row> {
        let path = [7.0, 7.5, 9.0, 8.0, 7.2, 10.0];
        let all = [("hystart", 1.0), ("slow", 1.3), ("b", 0.9), ("a", 0.7), ("same", 0.99)];
        all.iter().flat_map(|(name, by)| runs(name, &path.map(|p| p * by))).collect()
    }

    /// The table without colour in `width` columns.
    fn shown(rows: &[Row], view: &View, width: usize) -> String {
        let d = Decision::new(rows, &Terms::default());
        Comparison::new(&d, view).render(view, false, width).0
    }

    fn lines(text: &str) -> Vec<String> {
        text.lines().skip(2).map(|l| l.split_whitespace().take(4).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn the_baseline_and_then_what_gains_most() {
        let text = shown(&rows(), &View::default(), 1000);
        assert_eq!(
            lines(&text),
            ["hystart 7.75 s 0.900", "* a -30 %", "b -10 % 0", "same -1 % 0", "slow +30 % 0"],
            "{text}"
        );
        assert!(text.contains("link full") && text.contains("14,210"), "{text}");
        assert!(!text.contains('\x1b') && !text.contains("Mbit/s"), "{text}");
    }

    #[test]
    fn certain_differences_have_a_colour_where_it_is_allowed() {
        let all = rows();
        let d = Decision::new(&all, &Terms::default());
        let view = View::default();
        let text = Comparison::new(&d, &view).render(&view, true, 1000).0;
        let line = |name: &str| text.lines().find(|l| l.contains(name)).expect("a line").to_string();
        assert!(
            line(" a ").contains("\x1b[38;5;10m") && line("  slow ").contains("\x1b[38;5;9m"),
            "{text:?}"
        );
        assert!(!line(" same ").contains("\x1b[38"), "{text:?}");
    }

    #[test]
    fn without_every_completion_goodput_decides() {
        let mut all = rows();
        // A missing time is worse than any; goodput decides only where most runs of the baseline have none.
        for row in all.iter_mut().filter(|r| r.startup == "hystart") {
            row.completion_s = None;
            row.time_to_bytes_s.values_mut().for_each(|t| *t = None);
        }
        let text = shown(&all, &View::default(), 1000);
        assert!(text.contains("goodput") && text.contains("Mbit/s"), "{text}");
    }

    #[test]
    fn a_table_fits_its_width() {
        let all = rows();
        let view = View::default();
        let d = Decision::new(&all, &Terms::default());
        for width in [40, 50, 66, 80, 100, 120, 160] {
            let (text, left_out) = Comparison::new(&d, &view).render(&view, false, width);
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            for column in ["1 MB", "lost"] {
                assert!(text.contains(column), "{width}:\n{text}");
            }
            // This table has 60 columns.
            assert_eq!(left_out.is_empty(), width >= 60, "{width}: {left_out:?}");
        }
        assert_eq!(shown(&[], &view, 80), "no runs\n");
    }

    #[test]
    fn what_harms_another_flow_says_so() {
        let mut all = rows();
        for row in &mut all {
            row.got_percent = Some(if row.startup == "a" { 60.0 } else { 80.0 });
        }
        let view = View::default();
        let d = Decision::new(&all, &Terms::default());
        let text = Comparison::new(&d, &view).render(&view, false, 120).0;
        let line = |name: &str| text.lines().find(|l| l.contains(name)).expect("a line").to_string();
        assert!(line(" hystart ").ends_with("80 %") && line(" a ").ends_with("-20 pt"), "{text}");
        assert!(line(" b ").ends_with(" 0 pt"), "{text}");
    }

    #[test]
    fn startups_that_did_the_same_are_one_line() {
        let names = ["tsl", "standard", "abc", "restricted", "quick-start"];
        let mut all: Vec<Row> = runs("hystart", &[8.0; 6]);
        all.extend(names.iter().flat_map(|n| runs(n, &[7.0; 6])));
        all.extend(runs("ess", &[7.6; 6]));
        let view = View::default();
        let d = Decision::new(&all, &Terms::default());
        let grouped = Comparison::new(&d, &view);
        assert_eq!(grouped.lines.len(), 4, "quick-start needs routers");
        assert_eq!(grouped.lines[1].labels, ["tsl", "standard", "abc", "restricted"]);
        let legend = grouped.legend(&view, &[], 100).join("\n");
        assert!(legend.contains("same in every run: tsl, standard, abc, restricted"), "{legend}");
        let wide = View { wide: true, ..View::default() };
        assert_eq!(Comparison::new(&d, &wide).lines.len(), 7);
    }

    #[test]
    fn versions_are_one_line_below_their_algorithm() {
        let all = [
            runs("hystart", &[8.0; 6]),
            runs("search-1.0", &[6.0; 6]),
            runs("ess", &[7.0; 6]),
            runs("search", &[7.5; 6]),
            runs("search-neqo", &[4.0; 6]),
        ]
        .concat();
        let d = Decision::new(&all, &Terms::default());
        let view = View { fold: true, ..View::default() };
        let c = Comparison::new(&d, &view);
        let names: Vec<String> = c.lines.iter().map(Line::name).collect();
        assert_eq!(names, ["  hystart", "  ess", "  search", "    2 versions"]);
        let text = c.render(&view, false, 200).0;
        assert!(text.lines().last().expect("a line").contains("-50..-25 %"), "{text}");
        assert_eq!(Comparison::new(&d, &View::default()).lines.len(), 5);
    }

    #[test]
    fn a_view_chooses_columns_order_and_number() {
        let all = rows();
        let view = View {
            columns: vec![Column::Of(Measure::StartupLost), Column::Of(Measure::Completion)],
            order: Order::Column(Column::Of(Measure::Completion)),
            top: Some(2),
            ..View::default()
        };
        let text = shown(&all, &view, 80);
        let header: Vec<&str> = text.lines().next().expect("a header").split_whitespace().collect();
        assert_eq!(header, ["startup", "lost", "10", "MB"]);
        assert_eq!(text.lines().count(), 4, "{text}");
        let by_name = View { order: Order::Startup, ..View::default() };
        let d = Decision::new(&all, &Terms::default());
        let c = Comparison::new(&d, &by_name);
        assert_eq!(
            c.lines.iter().map(|l| l.labels[0].as_str()).collect::<Vec<_>>(),
            ["a", "b", "hystart", "same", "slow"]
        );
    }
}
