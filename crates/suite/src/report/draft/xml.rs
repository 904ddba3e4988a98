//! Elements of RFCXML (RFC 7991) that a draft has.

use super::references::{Reference, reference};
use quick_xml::Writer;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::collections::BTreeSet;

/// A document that grows.
pub(super) struct Page {
    writer: Writer<Vec<u8>>,
    /// The numbers of the RFCs that its text cites.
    pub(super) cited: BTreeSet<u32>,
}

/// What XML can hold: a control character in a name that a caller gave becomes the replacement character.
pub(super) fn clean(text: &str) -> String {
    let allowed = |c: char| matches!(c, '\t' | '\n') || (c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    text.chars().map(|c| if allowed(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// An anchor for a name that a suite gives: what no anchor can hold stands there by its number.
pub(super) fn anchor(of: &str, name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' { c.to_string() } else { format!("_{:x}_", c as u32) }
    };
    format!("{of}-{}", name.chars().map(plain).collect::<String>())
}

impl Page {
    pub(super) fn new() -> Self {
        let mut page = Self { writer: Writer::new_with_indent(Vec::new(), b' ', 1), cited: BTreeSet::new() };
        page.event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
        page
    }

    /// The document as text.
    pub(super) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.writer.into_inner()).into_owned() + "\n"
    }

    fn event(&mut self, event: Event<'_>) {
        self.writer.write_event(event).unwrap_or_else(|e| unreachable!("memory takes every byte: {e}"));
    }

    fn start<'a>(name: &'a str, attributes: &[(&str, &str)]) -> BytesStart<'a> {
        let mut start = BytesStart::new(name);
        for (key, value) in attributes {
            start.push_attribute((*key, &*clean(value)));
        }
        start
    }

    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.event(Event::Start(Self::start(name, attributes)));
    }

    pub(super) fn close(&mut self, name: &str) {
        self.event(Event::End(BytesEnd::new(name)));
    }

    /// An element that is empty.
    pub(super) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.event(Event::Empty(Self::start(name, attributes)));
    }

    /// Text within an element.
    pub(super) fn text(&mut self, text: &str) {
        // Quotes may stand in text, where people read and edit them.
        self.event(Event::Text(BytesText::from_escaped(partial_escape(clean(text)))));
    }

    /// An element with text.
    pub(super) fn element(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// A paragraph; an `RFC N` in it is a citation, if we know that RFC.
    pub(super) fn t(&mut self, text: &str) {
        self.citing("t", text);
    }

    fn citing(&mut self, element: &str, text: &str) {
        self.open(element, &[]);
        let mut rest = text;
        let mut from = 0;
        while let Some(at) = rest[from..].find("RFC ").map(|at| from + at) {
            let digits = &rest[at + 4..];
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let known = digits[..end].parse().ok().and_then(reference);
            from = at + 4 + end;
            if let Some(Reference { number, .. }) = known {
                self.text(&rest[..at]);
                self.empty("xref", &[("target", &format!("RFC{number}"))]);
                self.cited.insert(*number);
                rest = &rest[from..];
                from = 0;
            }
        }
        self.text(rest);
        self.close(element);
    }

    /// A section with a name; `body` fills it.
    pub(super) fn section(&mut self, anchor: &str, name: &str, body: impl FnOnce(&mut Self)) {
        self.section_with(&[("anchor", anchor)], name, body);
    }

    /// A section with these attributes.
    pub(super) fn section_with(&mut self, of: &[(&str, &str)], name: &str, body: impl FnOnce(&mut Self)) {
        self.open("section", of);
        self.element("name", &[], name);
        body(self);
        self.close("section");
    }

    /// An unordered list; nothing if it has no item, since RFCXML has no empty list.
    pub(super) fn list<'a>(&mut self, items: impl IntoIterator<Item = &'a String>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        self.open("ul", &[]);
        for item in items {
            self.citing("li", item);
        }
        self.close("ul");
    }

    /// A list of terms, each with what it is.
    pub(super) fn terms<'a>(&mut self, terms: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.open("dl", &[]);
        for (term, about) in terms {
            self.element("dt", &[], &format!("{term}:"));
            self.citing("dd", about);
        }
        self.close("dl");
    }

    /// A table.
    pub(super) fn table(&mut self, anchor: &str, name: &str, head: &[&str], rows: &[Vec<String>]) {
        self.open("table", &[("anchor", anchor)]);
        self.element("name", &[], name);
        self.open("thead", &[]);
        self.row("th", head.iter().copied());
        self.close("thead");
        self.open("tbody", &[]);
        for row in rows {
            self.row("td", row.iter().map(String::as_str));
        }
        self.close("tbody");
        self.close("table");
    }

    fn row<'a>(&mut self, cell: &str, cells: impl Iterator<Item = &'a str>) {
        self.open("tr", &[]);
        cells.for_each(|text| self.element(cell, &[], text));
        self.close("tr");
    }
}
