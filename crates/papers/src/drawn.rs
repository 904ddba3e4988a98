//! The figures and tables of the papers, drawn again from the records of their claims: what the paper prints as marks, what
//! is measured here as intervals in the colours of the verdicts.

use crate::claim::Claim;
use crate::experiment::Experiment;
use crate::judge::value_text;
use crate::record::{Record, Value};
use maud::{Markup, html};
use serde::Deserialize;
use slowstart_report::intervals::{Interval, Place, intervals};
use std::collections::BTreeSet;

/// A figure or a table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drawn {
    /// The paper.
    pub(crate) paper: String,
    /// Its name, and what it shows.
    title: String,
    /// The experiments on whose pages its runs are.
    #[serde(default)]
    pages: Vec<String>,
    /// What a reader must know.
    #[serde(default)]
    note: String,
    /// The vertical axis of a figure.
    #[serde(default)]
    y: String,
    /// True if that axis is logarithmic.
    #[serde(default)]
    log: bool,
    /// The places of a figure: group, name, and claim as `experiment/claim`. With `*` as its name a claim has a place for
    /// each of its values, by the part of the value's name that differs; of two parts the one with fewer values is the
    /// group.
    #[serde(default)]
    points: Vec<(String, String, String)>,
    /// The headings of a table.
    #[serde(default)]
    columns: Vec<String>,
    /// The rows of a table: a name, and a claim for each heading, or nothing.
    #[serde(default)]
    rows: Vec<Vec<String>>,
}

/// The figures and tables of all papers.
pub(crate) fn read() -> Result<Vec<Drawn>, String> {
    #[derive(Deserialize)]
    struct All {
        drawn: Vec<Drawn>,
    }
    let all: All = toml::from_str(include_str!("drawn.toml")).map_err(|e| format!("drawn.toml: {e}"))?;
    Ok(all.drawn)
}

/// The CSS class of a verdict.
pub(crate) fn class(verdict: &str) -> &'static str {
    match verdict {
        "holds" => "meets",
        "differs" => "does-not-meet",
        "undecided" => "undecided",
        _ => "not-observed",
    }
}

/// The place of a claim on the page of its experiment.
pub(crate) fn link(r: &Record) -> String {
    let claim = r.id.rsplit('/').next().unwrap_or("");
    format!("{}.html#{claim}", r.experiment().replace('/', "-"))
}

/// The claim of a record as its file defines it.
fn claim(r: &Record) -> Option<&'static Claim> {
    let e = Experiment::all().iter().find(|e| e.id == r.experiment())?;
    e.claim.iter().find(|c| r.id.ends_with(&format!("/{}", c.id)))
}

/// A measured value as an interval.
fn interval(r: &Record, v: &Value, verdict: &str) -> Interval {
    let ends = if v.low < v.high {
        format!(" ({} to {})", value_text(v.low), value_text(v.high))
    } else {
        String::new()
    };
    let of = if v.of.is_empty() { &r.says } else { &v.of };
    let text = format!("{of}: {}{ends}: {verdict}", value_text(v.mid));
    Interval { low: v.low, value: v.mid, high: v.high, class: class(verdict), text }
}

/// The parts by which names differ: without what all begin and end with.
fn differing(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|n| n.split(", ").collect()).collect();
    let Some(first) = parts.first() else { return Vec::new() };
    let is_common = |at: usize| parts.iter().all(|p| p.len() == first.len() && p.get(at) == first.get(at));
    let kept: Vec<usize> = (0..first.len()).filter(|at| !is_common(*at)).collect();
    let of = |p: &Vec<&str>| {
        let kept = kept.iter().filter_map(|at| p.get(*at).copied()).collect::<Vec<_>>().join(", ");
        if kept.is_empty() || p.len() != first.len() { p.join(", ") } else { kept }
    };
    parts.iter().map(of).collect()
}

/// The places of one claim.
fn places(group: &str, name: &str, r: &Record) -> Vec<Place> {
    let own = claim(r);
    let bound = own.map_or((None, None), |c| (c.at_least, c.at_most));
    let printed = own.and_then(|c| c.printed.as_ref()).and_then(crate::claim::Printed::value);
    let values = r.values();
    let verdicts = r.each.iter().map(String::as_str).chain(std::iter::repeat("undecided"));
    let measured: Vec<Interval> =
        values.iter().zip(verdicts).map(|(v, verdict)| interval(r, v, verdict)).collect();
    let place = |name: &str, measured| Place {
        name: name.into(),
        group: group.into(),
        printed,
        bound,
        measured,
        link: link(r),
    };
    if name != "*" {
        return vec![place(name, measured)];
    }
    let names = differing(&values.iter().map(|v| v.of.as_str()).collect::<Vec<_>>());
    let parts = || names.iter().filter_map(|name| name.split_once(", "));
    let first: BTreeSet<&str> = parts().map(|p| p.0).collect();
    let rest: BTreeSet<&str> = parts().map(|p| p.1).collect();
    let split = |(name, m): (&String, Interval)| match name.split_once(", ") {
        Some((name, rest_of_it)) if group.is_empty() => {
            let (group, name) =
                if first.len() < rest.len() { (name, rest_of_it) } else { (rest_of_it, name) };
            Place { group: group.into(), ..place(name, vec![m]) }
        }
        _ => place(name, vec![m]),
    };
    names.iter().zip(measured).map(split).collect()
}

/// A cell of a table: what the paper prints, and what is measured.
fn cell(r: Option<&Record>) -> Markup {
    let Some(r) = r else { return html! { td {} } };
    let values = r.values();
    let number = |v: &Value| value_text(v.mid);
    let measured = match values.as_slice() {
        [] => "-".to_string(),
        [one] => {
            let ends = if one.low < one.high {
                format!(" ({} to {})", value_text(one.low), value_text(one.high))
            } else {
                String::new()
            };
            number(one) + &ends
        }
        all => {
            let least = all.iter().min_by(|a, b| a.mid.total_cmp(&b.mid));
            let most = all.iter().max_by(|a, b| a.mid.total_cmp(&b.mid));
            let (least, most) = (least.map_or(String::new(), number), most.map_or(String::new(), number));
            if least == most { least } else { format!("{least} to {most}") }
        }
    };
    html! {
        td class=(class(&r.verdict)) title={ (r.says) ": " (r.verdict) } {
            a href=(link(r)) { (if r.claimed.is_empty() { r.origin.as_str() } else { r.claimed.as_str() }) }
            " | " b { (measured) }
            @if r.origin == "fitted" { " *" }
        }
    }
}

impl Drawn {
    /// The record of a claim of this paper.
    fn record<'a>(&self, records: &'a [Record], id: &str) -> Result<Option<&'a Record>, String> {
        crate::record::find(records, &format!("{}/{id}", self.paper))
    }

    /// The figure or table; `None` if none of its experiments was run.
    ///
    /// # Errors
    /// Says which id is no claim.
    pub(crate) fn html(&self, records: &[Record]) -> Result<Option<Markup>, String> {
        let mut all = Vec::new();
        for (group, name, id) in &self.points {
            if let Some(r) = self.record(records, id)? {
                all.extend(places(group, name, r));
            }
        }
        let mut rows = Vec::new();
        for row in &self.rows {
            let mut cells = Vec::new();
            for id in row.iter().skip(1) {
                cells.push(if id.is_empty() { None } else { self.record(records, id)? });
            }
            if cells.iter().any(Option::is_some) {
                rows.push((row.first().map_or("", String::as_str), cells));
            }
        }
        if all.is_empty() && rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(html! {
            figure class=[(!rows.is_empty()).then_some("wide")] {
                h3 { (self.title) }
                @if !all.is_empty() { (intervals(&self.title, &self.y, self.log, &all)) }
                @if !rows.is_empty() {
                    div class="scroll" tabindex="0" {
                        table {
                            thead { tr {
                                th scope="col" {}
                                @for c in &self.columns { th scope="col" { (c) } }
                            } }
                            tbody {
                                @for (name, cells) in &rows { tr { th scope="row" { (name) } @for c in cells { (cell(*c)) } } }
                            }
                        }
                    }
                }
                figcaption {
                    @if !self.note.is_empty() { (self.note) ". " }
                    @for (i, page) in self.pages.iter().enumerate() {
                        @if i > 0 { ", " } @else { "Runs: " }
                        a href={ (self.paper) "-" (page) ".html" } { (page) }
                    }
                }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, measured: &str, each: &[&str]) -> Record {
        Record {
            id: id.into(),
            origin: "paper".into(),
            claimed: "1.40".into(),
            measured: measured.into(),
            each: each.iter().map(|v| (*v).into()).collect(),
            verdict: "differs".into(),
            ..Record::default()
        }
    }

    #[test]
    fn names_are_what_differs() {
        let of = ["10 Mbit/s, CPU none, x", "50 Mbit/s, CPU none, x"];
        assert_eq!(differing(&of), ["10 Mbit/s", "50 Mbit/s"]);
        assert_eq!(differing(&["a, x"]), ["a, x"]);
        assert_eq!(differing(&["a, x", "b, c, x"]), ["a, x", "b, c, x"]);
    }

    /// Two networks with three receivers each: the networks are the groups, whichever part of the name they are.
    #[test]
    fn the_part_with_fewer_values_is_the_group() {
        let of = |measured: &str| {
            let places = places("", "*", &record("p/e/a", measured, &[]));
            places.into_iter().map(|p| (p.group, p.name)).collect::<Vec<_>>()
        };
        let first = of("a, 1, x: 1; a, 2, x: 1; a, 3, x: 1; b, 1, x: 1");
        assert_eq!(first[1], ("a".to_string(), "2".to_string()));
        let second = of("1, a, x: 1; 2, a, x: 1; 3, a, x: 1; 1, b, x: 1");
        assert_eq!(second[1], ("a".to_string(), "2".to_string()));
    }

    #[test]
    fn every_claim_that_is_drawn_is_recorded() {
        let text = include_str!("../../../docs/evidence/papers/claims.jsonl");
        let records: Vec<Record> = text.lines().map(|l| serde_json::from_str(l).expect("a record")).collect();
        for d in read().expect("as written") {
            let ids = d.rows.iter().flat_map(|row| &row[1..]).chain(d.points.iter().map(|(.., id)| id));
            for id in ids.filter(|id| !id.is_empty()) {
                assert!(matches!(d.record(&records, id), Ok(Some(_))), "{}: {id}", d.title);
            }
        }
    }

    #[test]
    fn a_figure_and_a_table_have_every_claim() {
        let records = [
            record("p/e/a", "s, 1 ms, x: 1.5 (1.2 to 1.8); s, 2 ms, x: 9", &["holds", "differs"]),
            record("p/e/b", "7 %", &["undecided"]),
        ];
        let drawn: Drawn = toml::from_str(
            "paper = 'p'\ntitle = 'Table 1'\ny = 'ratio'\npages = ['e']\npoints = [['', '*', 'e/a'], ['', 'b', 'e/b']]\ncolumns = ['A', 'B']\n\
             rows = [['row', 'e/a', 'e/b']]",
        )
        .expect("as written");
        let out = drawn.html(&records).expect("claims").expect("run").into_string();
        for text in [
            ">1 ms<",
            ">2 ms<",
            "measured meets",
            "measured does-not-meet",
            "measured undecided",
            "1.50 to 9",
            "p-e.html#a",
        ] {
            assert!(out.contains(text), "{text}: {out}");
        }
        assert!(drawn.html(&records[..1]).is_err(), "its experiment has no such claim");
        assert_eq!(drawn.html(&[]).map(|d| d.is_none()), Ok(true));
    }
}
