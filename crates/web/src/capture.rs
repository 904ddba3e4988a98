//! The analysis of a capture or log: what `slowstart replay` says about it.

use serde::Serialize;
use slowstart::startup::REGISTRY;
use slowstart_lab::scenario;
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::{answer, open, page};
use std::io::Cursor;

/// The largest file that is analysed in a page, in bytes.
pub const LARGEST: usize = 100_000_000;
/// Transfers with a page of their own, the largest first.
const PAGES: usize = 3;

/// What was found.
#[derive(Debug, Serialize)]
struct Analysis {
    /// The rows as `slowstart replay --json` prints them.
    rows: Vec<String>,
    /// The answer for each of the largest transfers, and its page.
    transfers: Vec<Answer>,
    /// Where reading ended early, and why.
    incomplete: Option<String>,
}

/// A transfer in sentences, and its page.
#[derive(Debug, Serialize)]
struct Answer {
    from: String,
    to: String,
    bytes: u64,
    sentences: Vec<String>,
    page: String,
}

/// Analyses a file of any kind that `slowstart replay` reads. `startups` are names with parameters; all if none.
pub fn analyse(name: &str, bytes: Vec<u8>, startups: &[String]) -> Result<String, String> {
    if bytes.len() > LARGEST {
        return Err(format!(
            "{name}: found {} MB, expected at most {} MB in a page; slowstart replay has no such limit",
            bytes.len() / 1_000_000,
            LARGEST / 1_000_000
        ));
    }
    let all: Vec<String> = REGISTRY.iter().map(|e| e.name.to_string()).collect();
    let wanted = if startups.is_empty() { &all } else { startups };
    let candidates = wanted
        .iter()
        .map(|n| Ok(Candidate { label: n.clone(), startup: scenario::startup("startup", n)?.1 }))
        .collect::<Result<Vec<_>, scenario::StudyError>>()
        .map_err(|e| e.to_string())?;
    let options = Options {
        candidates: candidates.into(),
        keep: Keep { snapshots: true, packets: false, fork_states: false },
        connections: Vec::new(),
        min_bytes: 0,
    };
    let (kind, input) = open::detect(Box::new(Cursor::new(bytes))).map_err(|e| format!("{name}: {e}"))?;
    let mut rows = Vec::new();
    let mut largest: Vec<AnalysedTransfer> = Vec::new();
    let each = |mut t: AnalysedTransfer| {
        t.row.file = Some(name.to_string());
        rows.push(serde_json::to_string(&t.row).expect("a row is JSON"));
        let at = largest.partition_point(|l| l.row.bytes >= t.row.bytes);
        largest.insert(at, t);
        largest.truncate(PAGES);
    };
    let summary = stream(kind, input, &options, each, |_| {}).map_err(|e| format!("{name}: {e}"))?;
    let command = format!("slowstart replay {name}");
    let answer = |t: &AnalysedTransfer| Answer {
        from: t.row.from.clone(),
        to: t.row.to.clone(),
        bytes: t.row.bytes,
        sentences: answer::sentences(&t.row),
        page: t.findings.as_ref().map_or(String::new(), |f| page::html(&t.row, f, &command)),
    };
    let analysis = Analysis {
        rows,
        transfers: largest.iter().map(answer).collect(),
        incomplete: summary.incomplete.map(|e| e.to_string()),
    };
    Ok(serde_json::to_string(&analysis).expect("an analysis is JSON"))
}
