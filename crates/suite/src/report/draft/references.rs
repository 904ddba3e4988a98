//! What a draft cites: the words of a text that name an RFC, an Internet-Draft, a paper or code, and the list of those that are
//! cited.

use super::xml::Page;
use serde::Deserialize;
use std::sync::LazyLock;

/// What a text may name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    /// The number of an RFC.
    rfc: Option<u32>,
    /// The name of an Internet-Draft, with its revision.
    draft: Option<String>,
    /// The anchor of what is neither.
    #[serde(default)]
    pub(super) anchor: String,
    /// The words that name it.
    #[serde(default)]
    names: Vec<String>,
    /// True if a reader must know it to judge what the draft says.
    #[serde(default)]
    normative: bool,
    title: String,
    /// Initials and surname, or an organization; `, Ed.` follows the name of an editor.
    authors: Vec<String>,
    /// A year, or a month and a year.
    date: Option<String>,
    /// Best Current Practice or standard, and the number of an RFC in that series.
    series: Option<(String, String)>,
    /// Where it appeared.
    #[serde(rename = "in")]
    published: Option<String>,
    doi: Option<String>,
    target: Option<String>,
}

#[derive(Deserialize)]
struct File {
    reference: Vec<Reference>,
}

static REFERENCES: LazyLock<Vec<Reference>> = LazyLock::new(|| {
    let File { mut reference } = toml::from_str(include_str!("references.toml"))
        .unwrap_or_else(|e| unreachable!("a test reads the references: {e}"));
    for r in &mut reference {
        if let Some(n) = r.rfc {
            r.anchor = format!("RFC{n}");
            r.names.push(format!("RFC {n}"));
            r.doi = Some(format!("10.17487/RFC{n}"));
            r.target = Some(format!("https://www.rfc-editor.org/info/rfc{n}"));
        }
        if let Some(draft) = &r.draft {
            let document = unrevised(draft);
            r.anchor = format!("I-D.{}", document.trim_start_matches("draft-"));
            r.names.push(document.to_string());
            r.target = Some(format!("https://datatracker.ietf.org/doc/html/{draft}"));
        }
    }
    reference
});

/// The name of an Internet-Draft without its revision.
fn unrevised(draft: &str) -> &str {
    let revision =
        draft.rsplit_once('-').filter(|(_, r)| r.len() == 2 && r.bytes().all(|b| b.is_ascii_digit()));
    revision.map_or(draft, |(document, _)| document)
}

/// The first words of a text that name something: where they begin and end, and what they name. Within a longer word or number
/// there is none.
pub(super) fn first(text: &str) -> Option<(usize, usize, &'static Reference)> {
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut best: Option<(usize, usize, &Reference)> = None;
    for r in &*REFERENCES {
        for name in &r.names {
            let whole = |(at, _): &(usize, &str)| {
                !word(text[..*at].chars().next_back()) && !word(text[at + name.len()..].chars().next())
            };
            if let Some((at, _)) = text.match_indices(name.as_str()).find(whole) {
                let mut end = at + name.len();
                if r.names.iter().any(|n| n.starts_with("draft-")) {
                    // The revision stays beside the name.
                    let revision = text
                        .get(end..end + 3)
                        .filter(|t| t.starts_with('-') && t[1..].bytes().all(|b| b.is_ascii_digit()));
                    end += revision.map_or(0, str::len);
                }
                if best.is_none_or(|(b, e, _)| at < b || at == b && end > e) {
                    best = Some((at, end, r));
                }
            }
        }
    }
    best
}

impl Reference {
    /// True if its anchor is what people call it, so that a citation needs no name beside it.
    pub(super) const fn is_rfc(&self) -> bool {
        self.rfc.is_some()
    }

    fn write(&self, page: &mut Page) {
        let target = self.target.as_deref().map(|t| ("target", t));
        let attributes: Vec<(&str, &str)> = [("anchor", &*self.anchor)].into_iter().chain(target).collect();
        page.open("reference", &attributes);
        page.open("front", &[]);
        page.element("title", &[], &self.title);
        for author in &self.authors {
            write_author(page, author);
        }
        if self.authors.is_empty() {
            page.empty("author", &[]);
        }
        if let Some(date) = &self.date {
            match date.split_once(' ') {
                Some((month, year)) => page.empty("date", &[("month", month), ("year", year)]),
                None => page.empty("date", &[("year", date)]),
            }
        }
        page.close("front");
        let rfc = self.rfc.map(|n| n.to_string());
        let series = self.series.as_ref().map(|(name, n)| (&**name, &**n));
        let rfc = rfc.as_deref().map(|n| ("RFC", n));
        let draft = self.draft.as_deref().map(|d| ("Internet-Draft", d));
        let doi = self.doi.as_deref().map(|d| ("DOI", d));
        for (name, value) in [series, rfc, draft, doi].into_iter().flatten() {
            page.empty("seriesInfo", &[("name", name), ("value", value)]);
        }
        if let Some(published) = &self.published {
            page.element("refcontent", &[], published);
        }
        page.close("reference");
    }
}

fn write_author(page: &mut Page, author: &str) {
    let (name, editor) = author.strip_suffix(", Ed.").map_or((author, false), |a| (a, true));
    let Some(at) = name.rfind(". ") else {
        page.open("author", &[]);
        page.element("organization", &[], name);
        page.close("author");
        return;
    };
    let (initials, surname) = (&name[..=at], &name[at + 2..]);
    let who = [("initials", initials), ("surname", surname), ("fullname", name), ("role", "editor")];
    page.empty("author", if editor { &who } else { &who[..3] });
}

/// Writes the lists of what the page cites, under one heading.
pub(super) fn write(page: &mut Page) {
    let cited = std::mem::take(&mut page.cited);
    page.open("references", &[("anchor", "references")]);
    page.element("name", &[], "References");
    for (normative, anchor, name) in
        [(true, "normative", "Normative References"), (false, "informative", "Informative References")]
    {
        let of = |r: &&Reference| r.normative == normative && cited.contains(r.anchor.as_str());
        let mut own = REFERENCES.iter().filter(of).peekable();
        if own.peek().is_some() {
            page.open("references", &[("anchor", anchor)]);
            page.element("name", &[], name);
            own.for_each(|r| r.write(page));
            page.close("references");
        }
    }
    page.close("references");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Each has an anchor and words of its own.
    #[test]
    fn no_two_references_are_alike() {
        let anchors: BTreeSet<&str> = REFERENCES.iter().map(|r| r.anchor.as_str()).collect();
        assert_eq!(anchors.len(), REFERENCES.len());
        let names: Vec<&str> = REFERENCES.iter().flat_map(|r| &r.names).map(String::as_str).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for r in &*REFERENCES {
            assert!(!r.anchor.is_empty() && !r.names.is_empty() && !r.title.is_empty(), "{r:?}");
            let letters = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            assert!(r.anchor.chars().all(letters), "{}", r.anchor);
        }
    }

    #[test]
    fn the_first_whole_name_is_cited() {
        let cited = |text: &'static str| first(text).map(|(at, end, r)| (&text[at..end], r.anchor.as_str()));
        assert_eq!(cited("see RFC 5681, RFC 9002"), Some(("RFC 5681", "RFC5681")));
        assert_eq!(cited("RFC 99999 and RFC 97430"), None);
        let search = Some(("draft-chung-ccwg-search-08", "I-D.chung-ccwg-search"));
        assert_eq!(cited("draft-chung-ccwg-search-08; SEARCH thesis"), search);
        assert_eq!(cited("by the SEARCH thesis 5.1.1"), Some(("SEARCH thesis", "SEARCH")));
        assert_eq!(cited("hystart-picoquic, quicly2"), None);
        assert_eq!(cited("Größe, draft-kazuho-ccwg-abba"), Some(("draft-kazuho-ccwg-abba", "ABBA")));
    }
}
