//! Text from outside the program (file names, TOML values, fields of captures), made safe to print on a
//! terminal.

use std::borrow::Cow;

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

/// Returns `text` made printable line by line: its line breaks stay.
pub(crate) fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(printable("geo, 40 ms, é, 網"), "geo, 40 ms, é, 網");
        assert_eq!(printable("\x1b]0;title\x07a\r\nb"), "\\u{1b}]0;title\\u{7}a\\r\\nb");
        assert_eq!(printable("a\u{9b}2J\u{202e}b\u{7f}"), "a\\u{9b}2J\\u{202e}b\\u{7f}");
        assert_eq!(printable_lines("one\ntwo\x1b[2J"), "one\ntwo\\u{1b}[2J");
    }
}
