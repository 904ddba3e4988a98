//! The texts that are written from the records of all claims: the summary in `docs/evidence/papers/README.md` and
//! the list of all claims.

use crate::claim::{Origin, Verdict};
use crate::experiment::Experiment;
use crate::joint::{self, Group, Headline};
use crate::record::Record;
use serde::Deserialize;
use std::fmt::Write;

/// A paper as the summary shows it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) concludes: String,
    pub(crate) stands: String,
    /// True if it is none of the five papers: its line stands below the sum.
    #[serde(default)]
    apart: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Papers {
    pub(crate) paper: Vec<Paper>,
    pub(crate) headline: Vec<Headline>,
    pub(crate) joint: Vec<Group>,
}

impl Papers {
    pub(crate) fn read() -> Result<Self, String> {
        toml::from_str(include_str!("papers.toml")).map_err(|e| format!("papers.toml: {e}"))
    }
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Measured values for a table: the first and last of many, without their cases.
pub(crate) fn short(text: &str) -> String {
    let parts: Vec<&str> = text.split("; ").collect();
    let value = |part: &str| part.rsplit_once(": ").map_or(part, |(_, v)| v).to_string();
    match parts.as_slice() {
        [first, .., last] if parts.len() > 2 => format!("{}; ...; {}", value(first), value(last)),
        _ => text.to_string(),
    }
}

const VERDICTS: [&str; 6] = {
    let mut names = [""; 6];
    let mut i = 0;
    while i < names.len() {
        names[i] = Verdict::ALL[i].name();
        i += 1;
    }
    names
};

pub(crate) fn count<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let records: Vec<&Record> = records.collect();
    let n = |v: &str| records.iter().filter(|r| r.verdict == v).count();
    let counts: Vec<String> = VERDICTS.iter().filter(|v| n(v) > 0).map(|v| format!("{} {v}", n(v))).collect();
    counts.join(", ")
}

/// The summary: the verdicts by paper, the headlines, and for each paper its conclusion and whether it stands.
///
/// # Errors
/// Says which id of `papers.toml` is no claim.
pub fn readme(records: &[Record]) -> Result<String, String> {
    let papers = Papers::read()?;
    let mut out = String::from(
        "# What five papers claim, and what is measured\n\nWhich claims of five papers hold, by the papers' \
         own measures? Below the sum are numbers that others published (`field`). \
         `slowstart reproduce EXPERIMENT --out FOLDER` \
         makes the page of an experiment, a page of each paper, and an index of all claims. [`claims.jsonl`](claims.jsonl) has all \
         claims as data; the book lists them (`claims.md`). [How the verdicts are checked](checks.md).\n\n\
         A claim *holds* if the whole 95 % interval of the measured value lies within its bound, *differs* if it lies outside, \
         and is *undecided* if it contains an end. *The paper does not say* if it holds with some values of what the paper \
         leaves out, and differs with others. *The paper cannot show it* if it is undecided here, and a sample of the paper's size \
         would not decide it with any network. One rule gives all bounds: a printed number has half a unit of its last printed \
         digit on either side; after \"about\" or off a figure a whole unit of the last digit that is not a zero at the end; and \
         beyond that the 95 % interval of the paper's own sample, by the spread of each network. \
         A highest value is that of as many runs as the paper has. A share stays within 0 and 100 %. \
         \"More\" and \"better\" exclude 1, \"the same\" is 0.95 to 1.05, \"slightly\" up to 1.1, \"noticeably\" \
         1.1 and \"much\" 1.5 or more. Means that C4 publishes without a spread have 0.95 to 1.05.\n\n\
         Causes of what does not hold: a, the paper; b, its network, of which something unknown matters; c, ours; \
         d, unclear. Where a claim is undecided the letter follows from the verdicts by the unknown.\n\n",
    );
    let of = |origin: Origin| records.iter().filter(move |r| r.origin == origin.name());
    out.push_str("| Paper | holds | differs | undecided | does not say | cannot show | not checkable | a | b | c | d |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    let row = |name: &str, all: &[&Record]| {
        let mut line = format!("| {name} |");
        for v in VERDICTS {
            let _ = write!(line, " {} |", all.iter().filter(|r| r.verdict == v).count());
        }
        for c in ["a", "b", "c", "d"] {
            let _ = write!(line, " {} |", all.iter().filter(|r| r.cause.starts_with(c)).count());
        }
        line + "\n"
    };
    let own = |p: &Paper| of(Origin::Paper).filter(|r| r.paper() == p.name).collect::<Vec<&Record>>();
    let (apart, five): (Vec<&Paper>, Vec<&Paper>) = papers.paper.iter().partition(|p| p.apart);
    for p in &five {
        out.push_str(&row(&p.title, &own(p)));
    }
    let known = |r: &Record| !apart.iter().any(|p| p.name == r.paper());
    out.push_str(&row("all five", &of(Origin::Paper).filter(|r| known(r)).collect::<Vec<_>>()));
    for p in &apart {
        out.push_str(&row(&p.title, &own(p)));
    }
    let _ = writeln!(
        out,
        "\nNot counted: {} hypotheses of ours ({}), {} of arithmetic ({}), {} to which the networks were fitted ({}).\n",
        of(Origin::Ours).count(),
        count(of(Origin::Ours)),
        of(Origin::Arithmetic).count(),
        count(of(Origin::Arithmetic)),
        of(Origin::Fitted).count(),
        count(of(Origin::Fitted)),
    );
    out.push_str(
        "## Headlines, judged jointly\n\nThe claims of a headline must hold together, with one value of what the paper does not \
         give. The page of a paper has what it prints, and a table by these values.\n\n| Headline | Together |\n|---|---|\n",
    );
    for h in &papers.headline {
        if let Some(v) = joint::headline(h, &papers.joint, records)? {
            let _ = writeln!(out, "| {} | **{}** |", v.says, v.together);
        }
    }
    out.push('\n');
    for p in &papers.paper {
        let _ = writeln!(out, "## {}\n\n{} {}\n", p.title, p.concludes, p.stands);
    }
    Ok(out)
}

/// The list of all claims, a table for each experiment.
pub fn list(records: &[Record]) -> String {
    let mut out = String::from(
        "# All claims\n\nEvery claim that is judged, by experiment, with what the [summary](README.md) says of verdicts and causes. \
         Measured values, bounds and reasons are in `claims.jsonl` and on the page that `slowstart reproduce EXPERIMENT --out \
         FOLDER` makes. A claim without a paper's words is ours, arithmetic or fitted, and not counted.\n",
    );
    let mut experiment = "";
    for r in records {
        if r.experiment() != experiment {
            experiment = r.experiment();
            let title = Experiment::all().iter().find(|e| e.id == experiment);
            let title = title.map_or(String::new(), |e| format!("\n\n{}: {}.", e.figure, e.title));
            let _ = writeln!(
                out,
                "\n## {experiment}{title}\n\n| Claim | | Paper | Verdict | Cause |\n|---|---|---|---|---|"
            );
        }
        let name = r.id.rsplit('/').next().unwrap_or("");
        let paper =
            if r.origin == Origin::Paper.name() { cell(&r.claimed) } else { format!("({})", r.origin) };
        let _ = writeln!(
            out,
            "| `{name}` | {} | {paper} | {} | {} |",
            cell(&r.says),
            r.verdict,
            r.cause.get(..1).unwrap_or("")
        );
    }
    out
}
