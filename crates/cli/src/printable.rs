//! Text from outside the program (file names, TOML values, fields of captures), made safe to print on a
//! terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True for characters that a terminal may act on: control characters, and those that change the direction of
/// text.
fn acts_on_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns `text` with every character that a terminal may act on written as an escape such as `\u{1b}`. Line
/// breaks are escaped too.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts_on_terminal) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts_on_terminal(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Bold text, the colours of tables, and the ends of both. A text of others can use no more: what is concealed, or of
/// the background's colour, would not be seen.
const STYLES: [&str; 5] = ["\x1b[1m", "\x1b[0m", "\x1b[38;5;9m", "\x1b[38;5;10m", "\x1b[39m"];

/// The length of a sequence for bold text or colour at the beginning of a text.
fn style(text: &str) -> Option<usize> {
    STYLES.iter().find(|s| text.starts_with(**s)).map(|s| s.len())
}

/// Returns lines of text or of JSON without what a terminal may act on, but line breaks, tabs and, with `styled`,
/// bold text and colour. The escapes are those of JSON.
pub(crate) fn printed(text: &str, styled: bool) -> Cow<'_, str> {
    let acts = |c: char| acts_on_terminal(c) && !matches!(c, '\n' | '\t');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() + 8), text);
    while let Some(c) = rest.chars().next() {
        let length = style(rest).filter(|_| styled).unwrap_or(c.len_utf8());
        let (kept, after) = rest.split_at(length);
        if length == c.len_utf8() && acts(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push_str(kept);
        }
        rest = after;
    }
    Cow::Owned(out)
}

/// Returns `text` made printable line by line: its line breaks stay.
pub(crate) fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Align, Cell, Table, Tone};

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(printable("geo, 40 ms, é, 網"), "geo, 40 ms, é, 網");
        assert_eq!(printable("\x1b]0;title\x07a\r\nb"), "\\u{1b}]0;title\\u{7}a\\r\\nb");
        assert_eq!(printable("a\u{9b}2J\u{202e}b\u{7f}"), "a\\u{9b}2J\\u{202e}b\\u{7f}");
        assert_eq!(printable_lines("one\ntwo\x1b[2J"), "one\ntwo\\u{1b}[2J");
        let text = "\x1b[1mbold\x1b[0m\n{\"a\":\"\u{9b}2J\x1b[2J\x1b]0;t\x07\"}";
        let json = "{\"a\":\"\\u009b2J\\u001b[2J\\u001b]0;t\\u0007\"}";
        assert_eq!(printed(text, true), format!("\x1b[1mbold\x1b[0m\n{json}"));
        assert_eq!(printed(text, false), format!("\\u001b[1mbold\\u001b[0m\n{json}"));
        assert_eq!(printed("geo\té\n", false), "geo\té\n");
        assert_eq!(printed("\x1b[8mhidden\x1b[30;40m", true), "\\u001b[8mhidden\\u001b[30;40m");
    }

    #[test]
    fn colours_of_tables_are_printed() {
        let cell = |tone| Cell { text: "a".into(), tone };
        let row = [Tone::Plain, Tone::Bold, Tone::Good, Tone::Bad].map(cell);
        let table = Table {
            headers: vec!["b".into(); 4],
            rows: vec![row.to_vec()],
            alignments: vec![Align::Left; 4],
        };
        let text = table.render(true, None);
        assert!(text.matches('\x1b').count() >= 6, "{text:?}");
        assert_eq!(printed(&text, true), text);
    }
}
