//! A report of the suite on a terminal: the Markdown with its tables drawn, and the verdict at the end, which a
//! terminal shows.

use crate::output::{brief, color, print, print_verdict, width, wrap};
use crate::table::{Align, Cell, Table, Tone};
use anyhow::Result;
use slowstart_suite::{Report, Suite, report};

/// Prints a report.
pub(crate) fn show(suite: &Suite, of: &Report) -> Result<()> {
    let verdicts = report::sentences(of);
    let text = report::markdown(suite, of);
    let mut body = text.strip_prefix(&verdicts.join("\n\n")).unwrap_or(&text);
    if brief() {
        body = body.split_once(report::NOT_SHOWN).map_or(body, |(shown, _)| shown);
    }
    print(drawn(body, color(), width()).trim_start())?;
    verdicts.iter().try_for_each(|v| print_verdict(v))
}

/// The cells of a line of a table in Markdown.
fn cells(line: &str) -> Vec<Cell> {
    let cell = |text: &str| {
        let text = text.trim();
        match text.strip_prefix("**").and_then(|t| t.strip_suffix("**")) {
            Some(bold) => Cell { text: bold.into(), tone: Tone::Bold },
            None => text.into(),
        }
    };
    line.trim_matches('|').split('|').map(cell).collect()
}

/// Leaves out what makes lines wrap: a criterion's formula, since its limit stands beside it, and the startup if
/// there is one only.
fn shorten(headers: &mut Vec<String>, rows: &mut [Vec<Cell>]) {
    let column = |headers: &[String], name: &str| headers.iter().position(|h| h == name);
    if let Some(at) = column(headers, "Criterion") {
        for cell in rows.iter_mut().filter_map(|r| r.get_mut(at)) {
            if let Some((words, _)) = cell.text.split_once(" (") {
                cell.text.truncate(words.len());
            }
        }
    }
    if let Some(at) = column(headers, "Startup").filter(|_| headers.iter().any(|h| h == "Scenario"))
        && rows.windows(2).all(|pair| pair[0].get(at) == pair[1].get(at))
    {
        headers.remove(at);
        rows.iter_mut().filter(|r| r.len() > at).for_each(|r| drop(r.remove(at)));
    }
}

/// Markdown as the report has it (paragraphs, lists and tables) for a terminal of this width.
fn drawn(markdown: &str, colour: bool, width: usize) -> String {
    let mut out = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') {
            out += &wrap(line, 2);
            out.push('\n');
            continue;
        }
        let mut headers: Vec<String> = cells(line).into_iter().map(|c| c.text).collect();
        let mut rows = Vec::new();
        while let Some(row) = lines.next_if(|l| l.starts_with('|')) {
            if !row.starts_with("|---") {
                rows.push(cells(row));
            }
        }
        shorten(&mut headers, &mut rows);
        let alignments = vec![Align::Left; headers.len()];
        out += &Table { headers, rows, alignments }.render(colour, u16::try_from(width).ok());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_drawn_and_paragraphs_stay() {
        let markdown = "Not met:\n\n| Section | search |\n|---|---|\n| 5.1.5 Short flows | 7/8, 1 not |\n| **All** | **7/8** |\n\n- a note\n";
        let drawn = drawn(markdown, false, 80);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "Not met:");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["Section", "search"]);
        assert_eq!(lines[4], "5.1.5 Short flows  7/8, 1 not");
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), ["All", "7/8"]);
        assert_eq!(lines[7], "- a note");
    }

    #[test]
    fn a_criterion_has_its_words_only_and_one_startup_no_column() {
        let table = |startup: &str| {
            format!(
                "| Startup | Scenario | Criterion | Value |\n|---|---|---|---|\n\
                 | a | leo (7.3) | lost_packets: no worse than slow start (lost_packets <= 1 standard) | 3 |\n\
                 | {startup} | geo (7.5) | completion_s: short | 4 |\n"
            )
        };
        let one = drawn(&table("a"), false, 80);
        assert!(one.starts_with("Scenario   Criterion"), "{one}");
        assert!(one.contains("leo (7.3)  lost_packets: no worse than slow start  3"), "{one}");
        assert!(drawn(&table("b"), false, 80).starts_with("Startup  Scenario"));
    }
}
