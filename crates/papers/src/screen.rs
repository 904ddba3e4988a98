//! One screen a paper: what it concludes and whether that stands, its headlines, its figures and tables with what is
//! measured here, and all of its claims; and the index of all claims.

use crate::claim::Origin;
use crate::drawn::{self, Drawn, class, link};
use crate::joint::{self, Table};
use crate::record::Record;
use crate::summary::{Paper, Papers, count};
use maud::{Markup, html};
use slowstart_report::{Script, document};

/// The table of claims, each of which links to its place on the page of its experiment.
fn claims(records: &[&Record]) -> Markup {
    html! {
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    @for h in ["claim", "statement", "paper", "ours", "verdict", "cause", "whose"] { th scope="col" class="text" { (h) } }
                } }
                tbody {
                    @for r in records {
                        tr {
                            th scope="row" class="text" { a href=(link(r)) { (r.id) } }
                            td class="text words" { (r.says) }
                            td class="text words" { (r.claimed) }
                            td class="text words" { (crate::summary::short(&r.measured)) }
                            td class={ "text words " (class(&r.verdict)) } { (r.verdict) }
                            td class="text words" { (r.cause) }
                            td class="text words" { (r.origin) }
                        }
                    }
                }
            }
        }
    }
}

/// Claims that share an unknown, a row for each of its values.
fn jointly(name: &str, table: &Table) -> Markup {
    html! {
        h3 { (name) }
        div class="scroll" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { (table.unknown) }
                    @for (heading, paper) in &table.columns { th scope="col" { (heading) " (" (paper) ")" } }
                } }
                tbody {
                    @for (value, cells) in &table.rows {
                        tr {
                            th scope="row" { (value) }
                            @for c in cells {
                                @if let Some((text, met)) = c { td class=(class(met.letter())) { (text) } } @else { td { "-" } }
                            }
                        }
                    }
                }
            }
        }
        p class="note" { (table.most) }
    }
}

/// The page of a paper, and its name. `None` if none of its experiments was run.
fn paper(p: &Paper, papers: &Papers, drawn: &[Drawn], records: &[Record]) -> Result<Option<String>, String> {
    let own: Vec<&Record> = records.iter().filter(|r| r.paper() == p.name).collect();
    if own.is_empty() {
        return Ok(None);
    }
    let of_paper = |id: &String| id.split('/').next() == Some(p.name.as_str());
    let mut headlines = Vec::new();
    for h in papers.headline.iter().filter(|h| h.claims.iter().any(of_paper)) {
        headlines.extend(joint::headline(h, &papers.joint, records)?);
    }
    let mut figures = Vec::new();
    for d in drawn.iter().filter(|d| d.paper == p.name) {
        figures.extend(d.html(records)?);
    }
    let mut tables = Vec::new();
    for g in papers.joint.iter().filter(|g| g.claims.iter().any(|(id, _)| of_paper(id))) {
        tables.extend(joint::table(g, records)?.map(|table| (&g.name, table)));
    }
    let body = html! {
        p { (p.concludes) " " (p.stands) }
        p class="note" {
            (count(own.iter().copied().filter(|r| r.origin == Origin::Paper.name())))
            ". A diamond is the value that the paper prints, a bar where the measured value has to lie, an interval what is \
             measured (95 %, three digits): green holds, red differs, orange is undecided, grey depends on what the paper does not \
             say. In tables the paper's value stands before ours; of several values of ours, the least and the greatest. "
            a href="index.html" { "All claims" } "."
        }
        @if !headlines.is_empty() {
            h2 { "Headlines" }
            div class="scroll" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" class="text" { "headline" }
                            th scope="col" class="text" { "paper" }
                            th scope="col" class="text more" { "each claim alone" }
                            th scope="col" class="text" { "together" }
                        }
                    }
                    tbody {
                        @for v in &headlines {
                            @let word = v.together.split(' ').next().unwrap_or("");
                            tr {
                                th scope="row" class="text" { (v.says) }
                                td class="text words" { (v.paper) }
                                td class="text words more" { (v.alone) }
                                td class={ "text words " (class(word)) } { (v.together) }
                            }
                        }
                    }
                }
            }
        }
        @if !figures.is_empty() {
            h2 { "Figures and tables" }
            div class="charts" { @for f in &figures { (f) } }
        }
        @if !tables.is_empty() {
            h2 { "By what the paper does not give" }
            @for (name, table) in &tables { (jointly(name, table)) }
        }
        h2 { "Claims" }
        (claims(&own))
    };
    Ok(Some(document(&p.title, &body, Script::Tables)))
}

/// The pages of all papers of which an experiment was run: name of the file, and contents.
///
/// # Errors
/// Says which id of `papers.toml` or `drawn.toml` is no claim.
pub fn papers(records: &[Record]) -> Result<Vec<(String, String)>, String> {
    let (all, drawn) = (Papers::read()?, drawn::read()?);
    let mut pages = Vec::new();
    for p in &all.paper {
        pages.extend(paper(p, &all, &drawn, records)?.map(|page| (format!("{}.html", p.name), page)));
    }
    Ok(pages)
}

/// The index of all claims, with a search box.
pub fn index(records: &[Record]) -> String {
    let papers = Papers::read().map_or(Vec::new(), |p| p.paper);
    let shown = papers.iter().filter(|p| records.iter().any(|r| r.paper() == p.name));
    let body = html! {
        p { "Every claim that is judged. Pages of experiments that were not run with this folder are missing." }
        ul { @for p in shown { li { a href={ (p.name) ".html" } { (p.title) } } } }
        (claims(&records.iter().collect::<Vec<_>>()))
    };
    document("Claims of papers", &body, Script::Tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every id of the files is a claim, and every figure and table has values, by the records in the tree.
    #[test]
    fn the_recorded_claims_make_every_page() {
        let text = include_str!("../../../docs/evidence/papers/claims.jsonl");
        let read = |line: &str| serde_json::from_str::<Record>(line).expect("a record");
        let records: Vec<Record> = text.lines().map(read).collect();
        let drawn = drawn::read().expect("as written");
        for d in &drawn {
            assert!(d.html(&records).unwrap_or_else(|e| panic!("{e}")).is_some(), "{d:?}");
        }
        let pages = papers(&records).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(pages.len(), Papers::read().expect("as written").paper.len());
        for (name, page) in &pages {
            assert!(!page.contains("NaN"), "{name}");
            let figures = drawn.iter().filter(|d| format!("{}.html", d.paper) == *name).count();
            assert_eq!(page.matches("<figcaption>").count(), figures, "{name}");
        }
        let all = index(&records);
        assert!(records.iter().all(|r| all.contains(&link(r))));
    }
}
