//! The claims of all experiments as records, one line of JSON each, and the texts that are written from them:
//! the summary in `docs/evidence/papers/README.md` and the list of all claims.

use crate::claim::Origin;
use crate::experiment::Experiment;
use crate::judge::Judged;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A judged claim, as `claims.jsonl` keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The claim as `paper/experiment/claim`.
    pub id: String,
    /// Whose claim it is: `paper`, `arithmetic`, `fitted` or `ours`.
    pub origin: String,
    /// The statement that is judged.
    pub says: String,
    /// The figure that the paper prints.
    pub claimed: String,
    /// The bound that the values have to keep.
    pub bound: String,
    /// The measured values, with their unit.
    pub measured: String,
    /// Number of runs of each value; the smallest.
    pub runs: usize,
    /// The word for the verdict.
    pub verdict: String,
    /// Why a claim of the paper does not hold; empty if it does.
    pub cause: String,
    /// The reason, with figures.
    pub reason: String,
}

impl Record {
    /// The record of a judged claim of an experiment.
    pub fn new(e: &Experiment, j: &Judged) -> Self {
        Self {
            id: format!("{}/{}", e.id, j.claim.id),
            origin: j.claim.origin.name().into(),
            says: j.claim.says.clone(),
            claimed: j.claim.claimed.clone(),
            bound: j.bound_text(),
            measured: j.measured_text(),
            runs: j.measured.iter().map(|m| m.runs).min().unwrap_or(0),
            verdict: j.verdict.name().into(),
            cause: j.claim.cause.map_or(String::new(), |c| c.name().into()),
            reason: j.reason.clone(),
        }
    }

    fn experiment(&self) -> &str {
        self.id.rsplit_once('/').map_or("", |(e, _)| e)
    }

    fn paper(&self) -> &str {
        self.id.split('/').next().unwrap_or("")
    }
}

/// The records of the experiments that were run in place of those of the same experiments in `before`, in the
/// order of the experiments.
pub fn merge(before: &[Record], run: &[(&Experiment, Vec<Judged>)]) -> Vec<Record> {
    let mut all = Vec::new();
    for e in Experiment::all() {
        match run.iter().find(|(r, _)| r.id == e.id) {
            Some((_, judged)) => all.extend(judged.iter().map(|j| Record::new(e, j))),
            None => all.extend(before.iter().filter(|r| r.experiment() == e.id).cloned()),
        }
    }
    for (e, judged) in run.iter().filter(|(r, _)| !Experiment::all().iter().any(|e| e.id == r.id)) {
        all.extend(judged.iter().map(|j| Record::new(e, j)));
    }
    all
}

/// A paper as the summary shows it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paper {
    name: String,
    title: String,
    concludes: String,
    stands: String,
    rows: Vec<String>,
    /// True if it is none of the five papers: its line stands below the sum.
    #[serde(default)]
    apart: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Papers {
    paper: Vec<Paper>,
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Measured values for a table: the first and last of many, without their cases.
fn short(text: &str) -> String {
    let parts: Vec<&str> = text.split("; ").collect();
    let value = |part: &str| part.rsplit_once(": ").map_or(part, |(_, v)| v).to_string();
    match parts.as_slice() {
        [first, .., last] if parts.len() > 2 => format!("{}; ...; {}", value(first), value(last)),
        _ => text.to_string(),
    }
}

const VERDICTS: [&str; 5] = ["holds", "differs", "undecided", "the paper does not say", "not checkable here"];

fn count<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    let records: Vec<&Record> = records.collect();
    let n = |v: &str| records.iter().filter(|r| r.verdict == v).count();
    let counts: Vec<String> = VERDICTS.iter().filter(|v| n(v) > 0).map(|v| format!("{} {v}", n(v))).collect();
    counts.join(", ")
}

/// The summary: for each paper its conclusion, whether it stands, and three of its claims.
///
/// # Errors
/// Says which row of `papers.toml` is no claim.
pub fn readme(records: &[Record]) -> Result<String, String> {
    let papers: Papers = toml::from_str(include_str!("papers.toml")).map_err(|e| e.to_string())?;
    let mut out = String::from(
        "# What five papers claim, and what is measured\n\nDo the claims of five papers hold, by the papers' own measures? About \
         half do. Below the sum are numbers that others published (`field`). `slowstart reproduce EXPERIMENT --out FOLDER` \
         makes the page of an experiment, with every claim; `claims.jsonl` has all of them.\n\n\
         A claim *holds* if the whole 95 % interval of the measured value lies within its bound, *differs* if it lies outside, \
         and is *undecided* if it contains an end. *The paper does not say* if it holds with some values of what the paper \
         leaves out, and differs with others. One rule gives all bounds: a printed number has half a unit of its last digit on \
         either side, a whole unit after \"about\" or off a figure, and beyond that the 95 % interval of the paper's own sample; \
         \"more\" is more than 1, \"the same\" 0.95 to 1.05, \"slightly\" up to 1.1, \"much\" 1.5 or more.\n\n\
         Causes of what does not hold: a, the paper; b, its network, of which something unknown matters; c, ours; \
         d, unclear.\n\n",
    );
    let of = |origin: Origin| records.iter().filter(move |r| r.origin == origin.name());
    out.push_str("| Paper | holds | differs | undecided | does not say | not checkable | a | b | c | d |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
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
    for p in &papers.paper {
        let _ = writeln!(out, "## {}\n\n{} {}\n", p.title, p.concludes, p.stands);
        out.push_str("| Claim | Paper | Ours | Verdict | Cause |\n|---|---|---|---|---|\n");
        for id in &p.rows {
            let wanted = format!("{}/{id}", p.name);
            let Some(r) = records.iter().find(|r| r.id == wanted) else {
                if records.iter().any(|r| wanted.starts_with(&format!("{}/", r.experiment()))) {
                    return Err(format!("papers.toml: found {wanted:?}, expected the id of a claim"));
                }
                continue;
            };
            let _ = writeln!(
                out,
                "| {} (`{}`) | {} | {} | **{}** | {} |",
                cell(&r.says),
                r.experiment(),
                cell(&r.claimed),
                cell(&short(&r.measured)),
                r.verdict,
                r.cause.get(..1).unwrap_or(""),
            );
        }
        out.push('\n');
    }
    Ok(out)
}
