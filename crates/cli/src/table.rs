//! Tables for people: plain text that reads the same in a pipe, with the best in bold on a terminal.

use comfy_table::{Attribute, CellAlignment, ContentArrangement, LineStyle, TableStyle};
use slowstart_lab::record::{Class, Others, Row};
use slowstart_lab::report::summary::{Measure, Place, Standing, Summary, rank};
use slowstart_lab::report::words::spread;
use slowstart_lab::stats::median;

pub(crate) use slowstart_lab::report::verdict;

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// What it says.
    pub text: String,
    /// Whether it stands out.
    pub bold: bool,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), bold: false }
    }
}

/// To which side a column leans.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// What the columns are called.
    pub headers: Vec<String>,
    /// As many cells a row as there are headers.
    pub rows: Vec<Vec<Cell>>,
    /// One a column.
    pub alignments: Vec<Align>,
}

impl Table {
    /// As text that ends with a line break. Cells wrap if they do not fit into `width`.
    pub(crate) fn render(&self, colour: bool, width: Option<u16>) -> String {
        let mut out = comfy_table::Table::new();
        out.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
        // The caller knows whether there is a terminal and how wide it is; this must not look.
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
        // Padding at the ends of lines would only make diffs.
        let lines: Vec<String> = out.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n") + "\n"
    }
}

/// What a column is called.
const fn heading(measure: Measure) -> &'static str {
    match measure {
        Measure::Time1MB => "1 MB (s)",
        Measure::Time10MB => "10 MB (s)",
        Measure::Completion => "all (s)",
        Measure::ExitTime => "at (s)",
        Measure::ExitWindow => "cwnd/BDP",
        Measure::StartupLost => "lost",
        Measure::QueueDelay => "queue (ms)",
        Measure::Goodput => "Mbit/s",
    }
}

/// Where intervals stand: the first that fits is taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Form {
    Beside,
    Below,
    Nowhere,
}

/// The startups of `rows`, best first, a line each, with medians and their 95 % intervals over runs. The order is by
/// time to completion if every run completed, else by goodput. A rank is one more than the number of startups that are
/// certainly better; one with `=` does not differ, run by run, from the first of its rank. Without a
/// `width` there is room for everything; with one, intervals go below the medians, or away, before cells wrap.
pub(crate) fn comparison(rows: &[Row], colour: bool, width: Option<u16>) -> String {
    let (by, places) = rank(rows);
    if places.is_empty() {
        return "no runs\n".into();
    }
    let all: Vec<&Summary> = places.iter().map(|p| &p.summary).collect();
    // Goodput says the same as completion, where there is completion.
    let shown = |m: &Measure| {
        (*m != Measure::Goodput || by == Measure::Goodput) && all.iter().any(|s| s.typical(*m).is_some())
    };
    let measures: Vec<_> = Measure::ALL.into_iter().filter(shown).map(|m| (m, m.standings(&all))).collect();
    // How it left stands before when it left.
    let times = |m: Measure| matches!(m, Measure::Time1MB | Measure::Time10MB | Measure::Completion);
    let split = measures.iter().take_while(|(m, _)| times(*m)).count();

    let table = |form: Form| {
        let name = |m: Measure| heading(m).replace(" (", if form == Form::Beside { " (" } else { "\n(" });
        let mut headers: Vec<String> = measures.iter().map(|(m, _)| name(*m)).collect();
        headers.insert(split, "exit".into());
        headers.splice(0..0, ["#".into(), "startup".into()]);
        let mut alignments = vec![Align::Right; headers.len()];
        (alignments[1], alignments[2 + split]) = (Align::Left, Align::Left);
        let line = |(i, p): (usize, &Place)| {
            let mut cells: Vec<Cell> =
                measures.iter().map(|(m, s)| value(&p.summary, *m, s[i], form)).collect();
            cells.insert(split, classes(&p.summary, form).into());
            let place = format!("{}{}", if p.tied { "=" } else { "" }, p.rank);
            cells.splice(0..0, [place.into(), p.summary.label.clone().into()]);
            cells
        };
        Table { headers, rows: places.iter().enumerate().map(line).collect(), alignments }
    };
    let room = width.map_or(usize::MAX, usize::from);
    let fits = |t: &Table| t.render(false, None).lines().all(|l| l.chars().count() <= room);
    let roomy = [Form::Beside, Form::Below].into_iter().map(table).find(fits);
    let mut out = match roomy {
        Some(table) => table.render(colour, None),
        None => {
            table(Form::Nowhere).render(colour, width)
                + "medians alone: there is no room for their intervals\n"
        }
    };
    if places.iter().any(|p| p.tied) {
        out += "= no difference from the first line of this rank: the 95 % interval of the differences, run by run, includes 0\n";
    }
    out
}

/// What each startup did to the flows that were there before it, a line each in the order of [`comparison`]; nothing if
/// there were none.
pub(crate) fn others(rows: &[Row], colour: bool, width: Option<u16>) -> Option<String> {
    rows.iter().find(|r| r.others.is_some())?;
    let cell = |s: &Summary, of: &dyn Fn(&Others) -> Option<f64>| -> Cell {
        let values: Vec<f64> = s.rows.iter().filter_map(|r| r.others.as_ref()).filter_map(of).collect();
        let Some(m) = median(&values) else { return "-".into() };
        let shown = spread(&m);
        shown.range.map_or(shown.mid.clone(), |r| format!("{} ({r})", shown.mid)).into()
    };
    let line = |p: &Place| {
        let s = &p.summary;
        vec![
            s.label.clone().into(),
            cell(s, &|o| Some(o.lost_packets as f64)),
            cell(s, &|o| o.goodput_dip.map(|d| d * 100.0)),
            cell(s, &|o| o.delay_p99_s.map(|d| d * 1e3)),
        ]
    };
    let table = Table {
        headers: ["to others", "lost", "goodput dip (%)", "delay p99 (ms)"].map(String::from).to_vec(),
        rows: rank(rows).1.iter().map(line).collect(),
        alignments: vec![Align::Left, Align::Right, Align::Right, Align::Right],
    };
    Some(table.render(colour, width))
}

/// `7.42 (7.31-7.60)`, and of how many runs if not of all.
fn value(summary: &Summary, measure: Measure, standing: Standing, form: Form) -> Cell {
    let Some((median, runs)) = summary.typical(measure) else {
        return "-".into();
    };
    let shown = spread(&median);
    let range = shown.range.map_or(String::new(), |r| match form {
        Form::Beside => format!(" ({r})"),
        Form::Below => format!("\n{r}"),
        Form::Nowhere => String::new(),
    });
    let gap = if form == Form::Beside { ' ' } else { '\n' };
    let all = summary.rows.len();
    let some = if runs < all { format!("{gap}{runs}/{all}") } else { String::new() };
    let text = [shown.mid, range, some].concat();
    Cell { text, bold: standing == Standing::Best }
}

/// `choke 8/10, late 2/10`.
fn classes(summary: &Summary, form: Form) -> String {
    let name = |class: Class| if class == Class::ChokePoint { "choke" } else { class.name() };
    let shares =
        summary.classes().into_iter().map(|(c, n)| format!("{} {n}/{}", name(c), summary.rows.len()));
    shares.collect::<Vec<_>>().join(if form == Form::Beside { ", " } else { ",\n" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of `startup` that took so long for 10 MB.
    fn row(startup: &str, completion: Option<f64>) -> Row {
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

    #[test]
    fn best_first_with_ranks() {
        let text = comparison(&rows(), false, None);
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
        assert!(text.contains("choke 2/2") && text.contains("14,210") && text.contains("= no difference"));
        assert!(!text.contains('\x1b') && !text.contains("Mbit/s"));
    }

    #[test]
    fn the_best_is_bold_where_colour_is_allowed() {
        let text = comparison(&rows(), true, None);
        assert!(text.contains("\x1b[1m"));
        // Nothing tells the two apart.
        assert!(!comparison(&rows()[1..], true, None).contains("\x1b[1m"));
    }

    #[test]
    fn what_does_not_complete_is_ranked_by_goodput() {
        let mut rows = rows();
        rows[0] = Row { goodput_bps: 10_000_000, ..row("slow", None) };
        let text = comparison(&rows, false, None);
        let first = text.lines().nth(2).expect("a line");
        assert!(text.contains("Mbit/s") && first.contains(" slow ") && first.contains(" - "), "{text}");
    }

    #[test]
    fn intervals_yield_before_cells_wrap() {
        let widest = |text: &str| text.lines().take(8).map(|l| l.chars().count()).max();
        let below = comparison(&rows(), false, Some(80));
        assert!(below.contains(" 7.00-7.24") && widest(&below) <= Some(80), "{below}");
        let alone = comparison(&rows(), false, Some(66));
        assert!(!alone.contains("7.00-7.24") && alone.contains("medians alone"), "{alone}");
        assert_eq!(comparison(&[], false, None), "no runs\n");
    }
}
