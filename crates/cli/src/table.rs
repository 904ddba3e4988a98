//! Tables as plain text: the same on a terminal and in a pipe, except for bold text and colour.

use crate::output::untied;
use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width,
};
use slowstart_study::words::tied;

/// How a cell is printed where colour is allowed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// In bold.
    Bold,
    /// In green.
    Good,
    /// In red.
    Bad,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The text of the cell, without colour.
    pub text: String,
    /// How it is printed.
    pub tone: Tone,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
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
    /// Returns text that ends with a line break. Cells wrap between words if they do not fit into `width`.
    pub(crate) fn render(&self, colour: bool, width: Option<u16>) -> String {
        self.render_with(colour, width, 2)
    }

    /// [`Self::render`] with `gap` spaces between columns.
    pub(crate) fn render_with(&self, colour: bool, width: Option<u16>, gap: u16) -> String {
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
        let headers: Vec<String> = self.headers.iter().map(|h| tied(h)).collect();
        out.set_header(&headers);
        let mut longest: Vec<usize> = headers.iter().map(|h| longest_word(h)).collect();
        for row in &self.rows {
            out.add_row(row.iter().zip(&mut longest).map(|(c, longest)| {
                let text = tied(&c.text);
                *longest = longest_word(&text).max(*longest);
                let cell = comfy_table::Cell::new(text);
                match c.tone {
                    Tone::Plain => cell,
                    Tone::Bold => cell.add_attribute(Attribute::Bold),
                    Tone::Good => cell.fg(Color::Green),
                    Tone::Bad => cell.fg(Color::Red),
                }
            }));
        }
        // A word is not cut, unless the columns have no room for their words.
        let least: Vec<u16> =
            longest.iter().map(|n| u16::try_from(*n).unwrap_or(u16::MAX).saturating_add(gap)).collect();
        let has_room =
            width.is_some_and(|w| least.iter().map(|n| usize::from(*n)).sum::<usize>() <= w.into());
        for ((column, align), least) in out.column_iter_mut().zip(&self.alignments).zip(least) {
            column.set_padding((0, gap)).set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
            if has_room {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        let lines: Vec<String> = out.lines().map(|line| untied(&trimmed(&line))).collect();
        lines.join("\n") + "\n"
    }
}

/// Columns of the longest word.
fn longest_word(text: &str) -> usize {
    text.split([' ', '\n']).map(|w| w.chars().count()).max().unwrap_or(0)
}

/// A line without the spaces at its end, also before the sequence that ends a colour: they would reach beyond
/// the width.
fn trimmed(line: &str) -> String {
    let line = line.trim_end();
    match line.rfind('\x1b').filter(|_| line.ends_with('m')) {
        Some(at) if line[at..].find('m') == Some(line.len() - at - 1) => {
            line[..at].trim_end().to_string() + &line[at..]
        }
        _ => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_wraps_between_words_and_not_before_a_unit() {
        let row =
            |name: &str, text: &str| vec![Cell::from(name), Cell::from(text), Cell::from("transatlantic")];
        let table = Table {
            headers: ["startup", "what it needs", "where"].map(String::from).to_vec(),
            rows: vec![
                row("hystart-picoquic", "takes 36 % less time"),
                row("ess", "does not complete in 12 s"),
            ],
            alignments: vec![Align::Left, Align::Right, Align::Left],
        };
        let words = ["hystart-picoquic", "transatlantic", "complete", "36 %", "12 s"];
        for width in 44..90 {
            let text = table.render(false, Some(width));
            for word in words {
                assert!(text.contains(word), "{width}: {word}:\n{text}");
            }
            assert!(text.lines().all(|l| l.chars().count() <= width.into()), "{width}:\n{text}");
        }
    }
}
