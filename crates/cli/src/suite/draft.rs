//! `slowstart suite report`: a stored report again, as Markdown or as an Internet-Draft.

use super::{stored, suite};
use crate::output::print;
use anyhow::{Context, Result};
use clap::Args;
use slowstart_suite::report::{self, Date, Front};
use std::path::PathBuf;

/// Print a stored report: as Markdown, or as an Internet-Draft by the sections of RFC 9743
///
/// Examples:
///   slowstart suite run --startup search --json result.json
///   slowstart suite report result.json
///   slowstart suite report --draft --date 2026-11-28 result.json >draft.xml
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is no markdown")]
pub(super) struct ReportArgs {
    /// The JSON that `slowstart suite run --json FILE` wrote
    #[arg(value_name = "FILE")]
    report: PathBuf,
    /// Print the XML source of an Internet-Draft, for xml2rfc
    #[arg(long, requires = "date")]
    draft: bool,
    /// The day of the draft, as 2026-11-28
    #[arg(long, value_name = "DAY", requires = "draft")]
    date: Option<Date>,
    /// The name of the draft with its version, which is also that of its file
    #[arg(
        long,
        value_name = "NAME",
        requires = "draft",
        default_value = "draft-author-ccwg-startup-evaluation-00"
    )]
    name: String,
    /// Its author [default: a place to fill in]
    #[arg(long, value_name = "NAME", requires = "draft")]
    author: Option<String>,
    /// The author's organization
    #[arg(long, value_name = "NAME", requires = "draft")]
    organization: Option<String>,
    /// The author's address
    #[arg(long, value_name = "ADDRESS", requires = "draft")]
    email: Option<String>,
    /// The file of the suite, if it is not the built-in suite
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl ReportArgs {
    pub(super) fn main(self) -> Result<()> {
        let mut suite = suite(self.file.as_ref())?;
        let (report, text) = stored(&self.report)?;
        let file = || self.report.display().to_string();
        report::board::check_verdicts(&report).map_err(anyhow::Error::msg).with_context(file)?;
        let Some(date) = self.date.filter(|_| self.draft) else {
            // As `suite run` printed it: of the scenarios that were asked for.
            let has = |name: &String| {
                let left_out = report.left_out.iter().any(|l| l.scenario == *name);
                left_out || report.entries.iter().any(|e| e.scenario == *name)
            };
            suite.scenarios.retain(|s| has(&s.name));
            return print(&report::markdown(&suite, &report));
        };
        let front = Front {
            name: self.name,
            date,
            author: self.author,
            organization: self.organization,
            email: self.email,
        };
        let draft = report::draft(&suite, &report, &text, &front);
        print(draft.with_context(|| self.report.display().to_string())?.trim_end())
    }
}
