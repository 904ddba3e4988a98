//! The analysis of a capture or log: what `slowstart replay` says about it.

use serde::Serialize;
use slowstart::startup::REGISTRY;
use slowstart_replay::analysis::Keep;
use slowstart_replay::observer::Candidate;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::Fork;
use slowstart_replay::{answer, fit, fork, open, page};
use slowstart_study::scenario;
use std::io::Cursor;
use std::sync::Arc;

/// The largest file that is analysed in a page, in bytes.
pub const LARGEST: usize = 100_000_000;
/// Transfers with a page of their own, the largest first.
const PAGES: usize = 3;

/// What was found.
#[derive(Debug, Serialize)]
struct Analysis {
    /// The rows as `slowstart replay --json` prints them; with a continuation, as
    /// `slowstart replay --fork --json` does.
    rows: Vec<String>,
    /// The answer for each of the largest transfers, and its page.
    transfers: Vec<Answer>,
    /// Where reading ended early, and why.
    incomplete: Option<String>,
    /// Why no transfer was continued in the simulator, if that was asked for.
    not_continued: Option<String>,
}

/// A transfer in sentences, and its page.
#[derive(Debug, Serialize)]
struct Answer {
    from: String,
    to: String,
    bytes: Option<u64>,
    sentences: Vec<String>,
    page: String,
    /// The transfer continued in the simulator with each startup.
    fork: Option<Fork>,
    /// The time that it took as observed, in seconds.
    duration_s: f64,
}

/// A file to analyse.
#[derive(Clone, Debug)]
pub struct File<'a> {
    /// Its name, with the end that tells its kind.
    pub name: &'a str,
    /// Its bytes as they are, compressed or not.
    pub bytes: Vec<u8>,
}

/// Analyses a file of any kind that `slowstart replay` reads. `startups` are names with parameters; all if
/// none. With `fork`, the largest transfer is continued in the simulator with each startup on a path fitted
/// to it. Pages link to the playground at `base`.
pub fn analyse(file: File, startups: &[String], fork: bool, base: &str) -> Result<String, String> {
    let File { name, bytes } = file;
    if bytes.len() > LARGEST {
        return Err(format!(
            "{name}: found {} MB, expected at most {} MB in a page; slowstart replay has no such limit",
            bytes.len() / 1_000_000,
            LARGEST / 1_000_000
        ));
    }
    let all: Vec<String> = REGISTRY.iter().map(|e| e.name.to_string()).collect();
    let wanted = if startups.is_empty() { &all } else { startups };
    let candidates: Arc<[Candidate]> = wanted
        .iter()
        .map(|n| Ok(Candidate { label: n.clone(), startup: scenario::startup("startup", n)?.1 }))
        .collect::<Result<_, scenario::StudyError>>()
        .map_err(|e| e.to_string())?;
    let options = Options {
        candidates: candidates.clone(),
        keep: Keep { snapshots: true, packets: fork, fork_states: fork },
        connections: Vec::new(),
        min_bytes: 0,
    };
    let (kind, input) = open::detect(Box::new(Cursor::new(bytes))).map_err(|e| format!("{name}: {e}"))?;
    let mut found = Found::default();
    // With `fork` the largest transfer so far, whose row comes last, as on the command line.
    let mut pending: Option<AnalysedTransfer> = None;
    let mut each = |mut t: AnalysedTransfer| {
        t.row.file = Some(name.to_string());
        if !fork || t.findings.is_none() {
            return found.add(t);
        }
        match pending.take() {
            Some(before) if before.row.bytes >= t.row.bytes => {
                pending = Some(before);
                found.add(t);
            }
            before => {
                pending = Some(t);
                if let Some(before) = before {
                    found.add(before);
                }
            }
        }
    };
    let summary =
        stream(kind, input, &options, &mut each, &mut |_| {}).map_err(|e| format!("{name}: {e}"))?;
    let mut not_continued = None;
    match pending {
        Some(mut t) => {
            match continued(&t, &candidates) {
                Ok(fork) => t.row.fork = Some(fork),
                Err(e) => not_continued = Some(e),
            }
            found.add(t);
        }
        None if fork => not_continued = Some("found no transfer with acknowledgements".to_string()),
        None => {}
    }
    let command = format!("slowstart replay {name}");
    let answer = |t: &AnalysedTransfer| Answer {
        from: t.row.from.clone(),
        to: t.row.to.clone(),
        bytes: t.row.bytes,
        sentences: answer::sentences(&t.row),
        page: t.findings.as_ref().map_or(String::new(), |f| page::html(&t.row, f, &command, base)),
        fork: t.row.fork.clone(),
        duration_s: t.row.duration_s,
    };
    let analysis = Analysis {
        transfers: found.largest.iter().map(answer).collect(),
        rows: found.rows,
        incomplete: summary.incomplete.map(|e| e.to_string()),
        not_continued,
    };
    Ok(serde_json::to_string(&analysis).expect("an analysis is JSON"))
}

/// Rows, and the largest transfers.
#[derive(Default)]
struct Found {
    rows: Vec<String>,
    largest: Vec<AnalysedTransfer>,
}

impl Found {
    fn add(&mut self, t: AnalysedTransfer) {
        self.rows.push(serde_json::to_string(&t.row).expect("a row is JSON"));
        let at = self.largest.partition_point(|l| l.row.bytes >= t.row.bytes);
        self.largest.insert(at, t);
        self.largest.truncate(PAGES);
    }
}

/// Continues a transfer in the simulator with each startup.
fn continued(t: &AnalysedTransfer, candidates: &[Candidate]) -> Result<Fork, String> {
    let findings = t.findings.as_ref().ok_or("found no events, expected a capture")?;
    let path = fit::fit(findings)?;
    let startups = fork::run(findings, &path, candidates).map_err(|e| e.to_string())?;
    Ok(Fork { path, startups })
}
