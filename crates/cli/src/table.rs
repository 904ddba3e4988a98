//! Tables as plain text: the same on a terminal and in a pipe, except for bold text and colour.

use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement, LineStyle, TableStyle};

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
    /// Returns text that ends with a line break. Cells wrap if they do not fit into `width`.
    pub(crate) fn render(&self, colour: bool, width: Option<u16>) -> String {
        self.render_with(colour, width, 2)
    }

    /// The same with `gap` spaces between columns.
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
        out.set_header(&self.headers);
        for row in &self.rows {
            out.add_row(row.iter().map(|c| {
                let cell = comfy_table::Cell::new(&c.text);
                match c.tone {
                    Tone::Plain => cell,
                    Tone::Bold => cell.add_attribute(Attribute::Bold),
                    Tone::Good => cell.fg(Color::Green),
                    Tone::Bad => cell.fg(Color::Red),
                }
            }));
        }
        for (column, align) in out.column_iter_mut().zip(&self.alignments) {
            column.set_padding((0, gap)).set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        let lines: Vec<String> = out.lines().map(|line| trimmed(&line)).collect();
        lines.join("\n") + "\n"
    }
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
