//! Elements of RFCXML (RFC 7991) that a draft has.

use super::references;
use quick_xml::Writer;
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::collections::BTreeSet;

/// A document that grows.
pub(super) struct Page {
    writer: Writer<Vec<u8>>,
    /// The anchors of what its text cites.
    pub(super) cited: BTreeSet<&'static str>,
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

    /// A paragraph, with what it names cited.
    pub(super) fn t(&mut self, text: &str) {
        self.citing("t", text);
    }

    /// An element with text, and a citation of each RFC, draft, paper or code that the text names: in place of the number of an
    /// RFC, and after any other name.
    fn citing(&mut self, element: &str, text: &str) {
        self.open(element, &[]);
        let mut rest = text;
        while let Some((at, end, reference)) = references::first(rest) {
            if reference.is_rfc() {
                self.text(&rest[..at]);
            } else {
                self.text(&rest[..end]);
                self.text(" ");
            }
            self.empty("xref", &[("target", &reference.anchor)]);
            self.cited.insert(&reference.anchor);
            rest = &rest[end..];
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
        cells.for_each(|text| self.citing(cell, text));
        self.close("tr");
    }
}
