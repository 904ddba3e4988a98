//! Tables as plain text: the same on a terminal and in a pipe, except that the best values may be bold.

use clap::ValueEnum;
use comfy_table::{Attribute, CellAlignment, ContentArrangement, LineStyle, TableStyle};
use slowstart_lab::record::{Class, Others, Row};
use slowstart_lab::report::summary::{Measure, Standing, Summary, rank};
use slowstart_lab::report::words::spread;
use slowstart_lab::stats::{Median, median};

pub(crate) use slowstart_lab::report::verdict;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Its text.
    pub text: String,
    /// True if it is printed in bold.
    pub bold: bool,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), bold: false }
    }
}

/// The alignment of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// The headers of the columns.
    pub headers: Vec<String>,
    /// Rows of as many cells as there are headers.
    pub rows: Vec<Vec<Cell>>,
    /// The alignment of each column.
    pub alignments: Vec<Align>,
}

impl Table {
    /// Returns text that ends with a line break. Cells wrap if they do not fit into `width`.
    pub(crate) fn render(&self, colour: bool, width: Option<u16>) -> String {
        let mut out = comfy_table::Table::new();
        out.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
        // Whether there is a terminal, and its width, is the caller's to say.
        out.force_no_tty();
        if colour {
            out.enforce_styling();
        }
        if let Some(width) = width {
            out.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
        }
        out.set_header(&self.headers);
        for row in &self.rows {
            out.add_row(row.iter().map(|c| {
                let cell = comfy_table::Cell::new(&c.text);
                if c.bold { cell.add_attribute(Attribute::Bold) } else { cell }
            }));
        }
        for (column, align) in out.column_iter_mut().zip(&self.alignments) {
            column.set_padding((0, 2)).set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        let lines: Vec<String> = out.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n") + "\n"
    }
}

/// A column of the comparison, besides the rank and the name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// Time until the receiver had 1 MB.
    #[value(name = "1mb")]
    Time1MB,
    /// Time until the receiver had 10 MB.
    #[value(name = "10mb")]
    Time10MB,
    /// Time until the receiver had everything.
    All,
    /// The time to completion less that of the first startup in the same run.
    Behind,
    /// Exit classes and in how many runs.
    Exit,
    /// Time at which the reason of the exit was seen.
    At,
    /// The window at that time, as a share of the BDP.
    Cwnd,
    /// Packets dropped of those sent before the exit.
    Lost,
    /// The longest wait at the bottleneck.
    Queue,
    /// Goodput.
    Goodput,
}

impl Column {
    /// All, in the order of the table.
    const ORDER: [Self; 10] = [
        Self::Time1MB,
        Self::Time10MB,
        Self::All,
        Self::Behind,
        Self::Exit,
        Self::At,
        Self::Cwnd,
        Self::Lost,
        Self::Queue,
        Self::Goodput,
    ];
    /// The order in which columns are dropped from a table that is too wide.
    const DROPPED: [Self; 6] = [Self::Queue, Self::Time1MB, Self::At, Self::Time10MB, Self::Cwnd, Self::Lost];

    const fn measure(self) -> Option<Measure> {
        Some(match self {
            Self::Time1MB => Measure::Time1MB,
            Self::Time10MB => Measure::Time10MB,
            Self::All => Measure::Completion,
            Self::Behind | Self::Exit => return None,
            Self::At => Measure::ExitTime,
            Self::Cwnd => Measure::ExitWindow,
            Self::Lost => Measure::StartupLost,
            Self::Queue => Measure::QueueDelay,
            Self::Goodput => Measure::Goodput,
        })
    }

    /// The header, with the unit.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Time1MB => "1 MB (s)",
            Self::Time10MB => "10 MB (s)",
            Self::All => "all (s)",
            Self::Behind => "behind (s)",
            Self::Exit => "exit",
            Self::At => "at (s)",
            Self::Cwnd => "cwnd/BDP",
            Self::Lost => "lost",
            Self::Queue => "queue (ms)",
            Self::Goodput => "Mbit/s",
        }
    }
}

/// How a comparison is sorted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// By rank.
    #[default]
    Rank,
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
}

/// A line of a comparison: startups that did exactly the same in every run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line<'a> {
    /// One more than the number of startups of better ranks.
    pub rank: usize,
    /// True if the line above has the same rank: no certain difference from the first line of the rank.
    pub tied: bool,
    /// The labels of the startups.
    pub labels: Vec<String>,
    /// The difference to the first startup in the same run, in the unit of the rank's measure; of the first, none.
    pub behind: Option<Median>,
    /// The runs of the first.
    pub summary: Summary<'a>,
}

impl Line<'_> {
    /// The labels as they are printed in `room` columns.
    pub(crate) fn name(&self, room: usize) -> String {
        name_group(&self.labels, room)
    }
}

/// As many of `labels` as fit into `room` columns, at least one, and how many more there are.
pub(crate) fn name_group(labels: &[String], room: usize) -> String {
    let name = |shown: usize| {
        let names = labels[..shown].join(", ");
        if shown < labels.len() { format!("{names}, {} more", labels.len() - shown) } else { names }
    };
    let fits = |shown: &usize| name(*shown).chars().count() <= room;
    name((1..=labels.len()).rev().find(fits).unwrap_or(1))
}

/// A comparison, ranked, grouped, sorted and cut as the view says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison<'a> {
    /// What the rank is by.
    pub by: Measure,
    /// The lines that are shown.
    pub lines: Vec<Line<'a>>,
    /// The number of lines there are.
    pub of: usize,
}

/// Widest label column where startups are grouped.
const NAMES: usize = 30;

/// True if two runs differ in nothing but the startup's name, its parameters and what it cost to compute them.
fn same_run(a: &Row, b: &Row) -> bool {
    let other = Row {
        startup: a.startup.clone(),
        params: a.params.clone(),
        avoidance: a.avoidance.clone(),
        cost: a.cost,
        ..b.clone()
    };
    *a == other
}

fn same_runs(a: &Summary, b: &Summary) -> bool {
    a.rows.len() == b.rows.len() && a.rows.iter().zip(&b.rows).all(|(a, b)| same_run(a, b))
}

impl<'a> Comparison<'a> {
    /// The startups of `rows`, best first unless the view says otherwise. The rank is by time to completion if every run
    /// completed, else by goodput.
    pub(crate) fn new(rows: &'a [Row], view: &View) -> Self {
        let (by, places) = rank(rows);
        let mut lines: Vec<Line> = Vec::new();
        for p in places {
            match lines.iter_mut().find(|l| !view.wide && same_runs(&l.summary, &p.summary)) {
                Some(line) => line.labels.push(p.summary.label.clone()),
                None => lines.push(Line {
                    rank: p.rank,
                    tied: lines.last().is_some_and(|l| l.rank == p.rank),
                    labels: vec![p.summary.label.clone()],
                    behind: p.behind,
                    summary: p.summary,
                }),
            }
        }
        match view.order {
            Order::Rank => {}
            Order::Startup => lines.sort_by(|a, b| a.labels[0].cmp(&b.labels[0])),
            Order::Column(column) => {
                let key = |l: &Line| match column.measure() {
                    Some(m) => l.summary.typical(m).map_or(f64::INFINITY, |(median, _)| {
                        if m.less_is_better() == Some(false) { -median.mid } else { median.mid }
                    }),
                    None if column == Column::Behind => l.behind.map_or(f64::NEG_INFINITY, |b| b.mid),
                    None => l.summary.classes().first().map_or(0.0, |(c, _)| f64::from(*c as u8)),
                };
                lines.sort_by(|a, b| key(a).total_cmp(&key(b)));
            }
        }
        if view.order != Order::Rank {
            for line in &mut lines {
                line.tied = false;
            }
        }
        let of = lines.len();
        lines.truncate(view.top.unwrap_or(of));
        Self { by, lines, of }
    }

    /// The columns of the view, or all that have a value.
    fn columns(&self, view: &View) -> Vec<Column> {
        if !view.columns.is_empty() {
            return view.columns.clone();
        }
        let has_value = |c: &Column| match c.measure() {
            // Goodput says the same as the time to completion, where there is one.
            Some(Measure::Goodput) => self.by == Measure::Goodput,
            Some(m) => self.lines.iter().any(|l| l.summary.typical(m).is_some()),
            None if *c == Column::Behind => view.wide && self.by == Measure::Completion,
            None => true,
        };
        Column::ORDER.into_iter().filter(has_value).collect()
    }

    fn table(&self, columns: &[Column], intervals: Intervals) -> Table {
        let all: Vec<&Summary> = self.lines.iter().map(|l| &l.summary).collect();
        let standings: Vec<Vec<Standing>> =
            columns.iter().map(|c| c.measure().map(|m| m.standings(&all)).unwrap_or_default()).collect();
        let mut headers = vec!["#".to_string(), "startup".to_string()];
        headers.extend(columns.iter().map(|c| c.heading().to_string()));
        let mut alignments = vec![Align::Right, Align::Left];
        alignments
            .extend(columns.iter().map(|c| if *c == Column::Exit { Align::Left } else { Align::Right }));
        let line = |(i, l): (usize, &Line)| {
            let mut cells: Vec<Cell> =
                vec![format!("{}{}", if l.tied { "=" } else { "" }, l.rank).into(), l.name(NAMES).into()];
            cells.extend(columns.iter().zip(&standings).map(|(c, s)| match c.measure() {
                None if *c == Column::Behind => match l.behind.filter(|_| self.by == Measure::Completion) {
                    Some(b) => {
                        let shown = spread(&b);
                        let range = shown.range.filter(|_| intervals == Intervals::All);
                        [shown.mid, range.map_or(String::new(), |r| format!(" ({r})"))].concat().into()
                    }
                    None => "-".into(),
                },
                None => classes(&l.summary).into(),
                Some(m) => {
                    let interval = match intervals {
                        Intervals::All => true,
                        Intervals::Ranked => m == self.by,
                        Intervals::None => false,
                    };
                    Cell { text: value(&l.summary, m, interval), bold: s[i] == Standing::Best }
                }
            }));
            cells
        };
        Table { headers, rows: self.lines.iter().enumerate().map(line).collect(), alignments }
    }

    /// The table and the columns that it leaves out. In a `width`, first all intervals but those of the ranked column go,
    /// then columns in the order of [`Column::DROPPED`], then the last interval.
    pub(crate) fn render(&self, view: &View, color: bool, width: usize) -> (String, Vec<Column>) {
        if self.lines.is_empty() {
            return ("no runs\n".into(), Vec::new());
        }
        let fits = |t: &Table| t.render(false, None).lines().all(|l| l.chars().count() <= width);
        let mut columns = self.columns(view);
        if view.wide {
            return (self.table(&columns, Intervals::All).render(color, None), Vec::new());
        }
        let mut left_out = Vec::new();
        let full = self.table(&columns, Intervals::All);
        if fits(&full) {
            return (full.render(color, None), left_out);
        }
        let mut drops = Column::DROPPED.into_iter();
        loop {
            let table = self.table(&columns, Intervals::Ranked);
            if fits(&table) {
                return (table.render(color, None), left_out);
            }
            // Columns that were asked for all stay.
            let next = if view.columns.is_empty() { drops.next() } else { None };
            let Some(drop) = next else {
                let table = self.table(&columns, Intervals::None);
                let width = u16::try_from(width).unwrap_or(u16::MAX);
                return (table.render(color, (!fits(&table)).then_some(width)), left_out);
            };
            if let Some(at) = columns.iter().position(|c| *c == drop) {
                left_out.push(columns.remove(at));
            }
        }
    }

    /// What each startup did to the flows that were there before it; nothing if there were none.
    pub(crate) fn others(&self, color: bool, width: usize) -> Option<String> {
        self.lines.iter().flat_map(|l| &l.summary.rows).find(|r| r.others.is_some())?;
        let cell = |s: &Summary, of: &dyn Fn(&Others) -> Option<f64>| -> Cell {
            let values: Vec<f64> = s.rows.iter().filter_map(|r| r.others.as_ref()).filter_map(of).collect();
            let Some(m) = median(&values) else { return "-".into() };
            let shown = spread(&m);
            shown.range.map_or(shown.mid.clone(), |r| format!("{} ({r})", shown.mid)).into()
        };
        let line = |l: &Line| {
            let s = &l.summary;
            vec![
                l.name(NAMES).into(),
                cell(s, &|o| Some(o.lost_packets as f64)),
                cell(s, &|o| o.goodput_dip.map(|d| d * 100.0)),
                cell(s, &|o| o.delay_p99_s.map(|d| d * 1e3)),
            ]
        };
        let table = Table {
            headers: ["to others", "lost", "goodput dip (%)", "delay p99 (ms)"].map(String::from).to_vec(),
            rows: self.lines.iter().map(line).collect(),
            alignments: vec![Align::Left, Align::Right, Align::Right, Align::Right],
        };
        Some(table.render(color, u16::try_from(width).ok()))
    }

    /// What the columns mean, one note a line: the rank, the exit classes, lines of several startups, and what is not
    /// shown.
    pub(crate) fn legend(&self, view: &View, left_out: &[Column], width: usize) -> Vec<String> {
        let runs = self.lines.iter().map(|l| l.summary.rows.len()).max().unwrap_or(0);
        let by =
            if self.by == Measure::Completion { "finish certainly earlier" } else { "get certainly more" };
        let interval = if runs < 2 { "one run" } else { "medians, with 95 % intervals in brackets" };
        let mut all = vec![format!(
            "#: 1 + the number of startups that {by} ({interval}); =: no certain difference, run by run, from the first \
             line of this rank"
        )];
        let exit = view.columns.is_empty() || view.columns.contains(&Column::Exit);
        if exit {
            all.push(
                "exit: early = before the path was full; choke = by its own rule, with the path full and no loss known; \
                 late = by loss or after one; none = it did not exit (docs/glossary.md)"
                    .to_string(),
            );
        }
        for l in self.lines.iter().filter(|l| l.name(NAMES).ends_with(" more")) {
            all.push(format!("same in every run: {}", l.labels.join(", ")));
        }
        if self.lines.len() < self.of {
            all.push(format!("{} of {} lines shown (--top)", self.lines.len(), self.of));
        }
        if !left_out.is_empty() {
            let names: Vec<&str> = left_out.iter().map(|c| c.heading()).collect();
            all.push(format!("not shown in {width} columns: {}; --wide shows everything", names.join(", ")));
        }
        all
    }
}

/// Which columns have intervals.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Intervals {
    All,
    Ranked,
    None,
}

/// `7.42 (7.31-7.60)`, and of how many runs if not of all.
fn value(summary: &Summary, measure: Measure, interval: bool) -> String {
    let Some((median, runs)) = summary.typical(measure) else { return "-".into() };
    let shown = spread(&median);
    let range = shown.range.filter(|_| interval).map_or(String::new(), |r| format!(" ({r})"));
    let all = summary.rows.len();
    let some = if runs < all { format!(" {runs}/{all}") } else { String::new() };
    [shown.mid, range, some].concat()
}

/// `choke 8/10, late 2/10`.
fn classes(summary: &Summary) -> String {
    let name = |class: Class| if class == Class::ChokePoint { "choke" } else { class.name() };
    let shares =
        summary.classes().into_iter().map(|(c, n)| format!("{} {n}/{}", name(c), summary.rows.len()));
    shares.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of `startup` with 10 MB and this time to completion.
    pub(crate) fn row(startup: &str, completion: Option<f64>) -> Row {
        let text = format!(
            r#"{{"schema":1,"version":"0","engine":"sim","path":"geo","profile":"linux-6.18","startup":"{startup}",
            "params":{{}},"avoidance":"cubic","flow":0,"run":0,"seed":0,"iw_bytes":14480,"size_bytes":10000000,
            "duration_s":30.0,"rate_bps":100000000,"base_rtt_s":0.1,"bdp_bytes":1000000,"buffer_bytes":null,
            "exit":{{"reason":"rate-flat","time_s":1.5,"left_s":1.5,"detected_cwnd_bytes":1200000,"cwnd_bytes":1,
            "inflight_bytes":1}},"class":"choke-point","class_by_heuristic":null,"capacity_time_s":1.2,
            "capacity_time_by_heuristic_s":null,"first_drop_time_s":null,"first_loss_time_s":null,
            "peak_inflight_bytes":1,"peak_queue_delay_s":0.03,"startup_lost_packets":14210,"lost_packets":0,
            "retransmitted_packets":0,"timeouts":0,"goodput_bps":9000000,"completion_s":null,
            "time_to_bytes_s":{{"1000000":0.9}},"others":null,"cost":{{"packets":0,"events":0}},"caveats":[]}}"#
        );
        Row { completion_s: completion, ..serde_json::from_str(&text).expect("a row") }
    }

    fn rows() -> Vec<Row> {
        let runs = [("slow", 9.0), ("b", 7.1), ("b", 7.3), ("a", 7.0), ("a", 7.24)];
        runs.map(|(startup, completion)| row(startup, Some(completion))).to_vec()
    }

    /// The table without colour in `width` columns.
    fn shown(rows: &[Row], view: &View, width: usize) -> String {
        Comparison::new(rows, view).render(view, false, width).0
    }

    #[test]
    fn best_first_with_ranks() {
        let text = shown(&rows(), &View::default(), 1000);
        let firsts: Vec<String> = text
            .lines()
            .skip(2)
            .take(3)
            .map(|line| line.split_whitespace().take(5).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            firsts,
            ["1 a 0.900 7.12 (7.00-7.24)", "=1 b 0.900 7.20 (7.10-7.30)", "3 slow 0.900 9 choke"]
        );
        assert!(text.contains("choke 2/2") && text.contains("14,210"));
        assert!(!text.contains('\x1b') && !text.contains("Mbit/s"));
    }

    #[test]
    fn the_best_is_bold_where_colour_is_allowed() {
        let view = View::default();
        let bold =
            |rows: &[Row]| Comparison::new(rows, &view).render(&view, true, 1000).0.contains("\x1b[1m");
        assert!(bold(&rows()));
        // The intervals of these two overlap.
        assert!(!bold(&rows()[1..]));
    }

    #[test]
    fn without_every_completion_goodput_ranks() {
        let mut rows = rows();
        rows[0] = Row { goodput_bps: 10_000_000, ..row("slow", None) };
        let text = shown(&rows, &View::default(), 1000);
        let first = text.lines().nth(2).expect("a line");
        assert!(text.contains("Mbit/s") && first.contains(" slow ") && first.contains(" - "), "{text}");
    }

    #[test]
    fn a_table_fits_its_width() {
        let rows = rows();
        let view = View::default();
        for width in [40, 50, 66, 80, 100, 120, 160] {
            let (text, left_out) = Comparison::new(&rows, &view).render(&view, false, width);
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains("all (s)") && text.contains("exit"), "{width}:\n{text}");
            // Columns go in the stated order.
            let places = left_out.iter().map(|c| Column::DROPPED.iter().position(|d| d == c));
            assert!(places.is_sorted(), "{width}: {left_out:?}");
        }
        let narrow = shown(&rows, &view, 50);
        assert!(narrow.contains("7.12 (7.00-7.24)") && !narrow.contains("queue"), "{narrow}");
        assert_eq!(shown(&[], &view, 80), "no runs\n");
    }

    /// Each run of b takes 0.1 s longer than that of a, which the medians with their intervals do not show.
    #[test]
    fn the_difference_to_the_first_is_that_of_the_same_run() {
        let times = [7.0, 9.0, 8.0, 12.0, 10.0, 7.5, 8.5];
        let rows: Vec<Row> =
            times.iter().flat_map(|t| [row("a", Some(*t)), row("b", Some(t + 0.1))]).collect();
        let view = View { columns: vec![Column::All, Column::Behind], ..View::default() };
        let text = shown(&rows, &view, 80);
        let line = |name: &str| text.lines().find(|l| l.contains(name)).expect("a line").to_string();
        assert!(line(" b ").contains("0.100"), "{text}");
        assert!(line(" a ").trim_end().ends_with('-'), "{text}");
        assert!(!shown(&rows, &View::default(), 160).contains("behind"));
    }

    #[test]
    fn startups_that_did_the_same_are_one_line() {
        let names = ["tsl", "standard", "search", "abc", "restricted", "quick-start"];
        let mut rows: Vec<Row> = names.iter().flat_map(|n| [row(n, Some(7.0)), row(n, Some(7.5))]).collect();
        rows.push(row("ess", Some(7.0)));
        rows.push(row("ess", Some(7.6)));
        let view = View::default();
        let all = Comparison::new(&rows, &view);
        assert_eq!(all.lines.len(), 2);
        assert_eq!(all.lines[0].labels, names);
        assert_eq!(all.lines[0].name(NAMES), "tsl, standard, search, 3 more");
        assert_eq!(all.lines[0].name(5), "tsl, 5 more");
        let legend = all.legend(&view, &[], 100).join("\n");
        assert!(legend.contains("same in every run: tsl, standard, search, abc"), "{legend}");
        let wide = View { wide: true, ..View::default() };
        assert_eq!(Comparison::new(&rows, &wide).lines.len(), 7);
    }

    #[test]
    fn a_view_chooses_columns_order_and_number() {
        let rows = rows();
        let view = View {
            columns: vec![Column::Lost, Column::All],
            order: Order::Column(Column::All),
            top: Some(2),
            wide: false,
        };
        let text = shown(&rows, &view, 80);
        let header: Vec<&str> = text.lines().next().expect("a header").split_whitespace().collect();
        assert_eq!(header, ["#", "startup", "lost", "all", "(s)"]);
        assert_eq!(text.lines().count(), 4, "{text}");
        let by_name = View { order: Order::Startup, ..View::default() };
        let all = Comparison::new(&rows, &by_name);
        assert_eq!(all.lines.iter().map(|l| l.labels[0].as_str()).collect::<Vec<_>>(), ["a", "b", "slow"]);
        assert!(all.lines.iter().all(|l| !l.tied));
    }
}
