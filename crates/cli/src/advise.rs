//! `slowstart advise`: from recordings of a service to what to load for it, or to leave it alone.

use crate::comparison::{Comparison, View};
use crate::folder::{refuse_existing, write_new};
use crate::output::{color, command, print, print_verdict, width, wrap};
use crate::printable::printable;
use crate::replay::{passed_over, progress, warn};
use crate::table::{Align, Cell, Table};
use anyhow::{Context, Result};
use clap::Args;
use slowstart_replay::advise::{self, Advice, Asked, Band, Compared, Recorded};
use slowstart_replay::fit::text;
use slowstart_replay::folder::expand;
use slowstart_replay::open;
use slowstart_replay::replay::stream;
use slowstart_study::scenario::{self, Contender};
use slowstart_study::words::number;
use std::path::PathBuf;

/// Say which startup would serve the users of recorded connections best
///
/// It also says how sure that is, and what to do next. FILE is anything that
/// `slowstart replay` reads; captures made at the server show most. Of a folder it
/// reads all files. Each transfer that filled its path gives a path; the
/// startups run over these paths, and are compared with the one in use.
///
/// Examples:
///   slowstart advise captures/
///   slowstart advise server.pcapng.zst --page advice.html
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is not Markdown")]
pub(crate) struct Advise {
    /// Files or folders to read; - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The startup that the service uses now [default: what most recordings name or show; hystart if none does]
    #[arg(long, value_name = "STARTUP")]
    in_use: Option<String>,
    /// Leave out transfers of fewer bytes
    #[arg(long, default_value = "100kB")]
    min_bytes: String,
    /// Bytes of a transfer to decide for [default: those of the transfer in the middle]
    #[arg(long)]
    size: Option<String>,
    /// The cgroup of the service, for the commands that are printed
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup/system.slice/nginx.service")]
    cgroup: PathBuf,
    /// Print the advice as JSON, and nothing else
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write the advice as a page to this file, which must not exist
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    page: Option<PathBuf>,
    /// Write the paths to this file, which must not exist, for `slowstart compare`
    #[arg(long, help_heading = "Output", value_name = "FILE")]
    paths: Option<PathBuf>,
}

impl Advise {
    pub(crate) fn main(self) -> Result<()> {
        let written = [("--page", &self.page), ("--paths", &self.paths)];
        for (key, file) in written {
            file.as_deref().map_or(Ok(()), refuse_existing).context(key)?;
        }
        if let Some(name) = &self.in_use {
            Contender::read("in-use", name, "cubic")?;
        }
        let size = self.size.as_deref().map(|s| scenario::bytes("size", s)).transpose()?;
        let recorded = self.read()?;
        let (failed, files) = (recorded.failed as usize, (recorded.files + recorded.failed) as usize);
        let asked = Asked { in_use: self.in_use.clone(), size, cgroup: self.cgroup.clone() };
        let advised = advise::advise(recorded, &asked, &|| false)?;
        let (advice, compared) = (&advised.advice, advised.compared.as_ref());
        if self.json {
            print(&serde_json::to_string(advice)?)?;
        } else {
            show(advice, compared.filter(|_| advice.none_because.is_none()))?;
        }
        let Some(compared) = compared else {
            for (key, _) in written.iter().filter(|(_, file)| file.is_some()) {
                warn(&format!("{key}: not written, since there is no advice"));
            }
            return passed_over(failed, files);
        };
        if let Some(file) = &self.paths {
            write_new(file, &text::toml(&command(), &advice.recorded.largest_paths())).context("--paths")?;
        }
        if let Some(file) = &self.page {
            write_new(file, &compared.page(advice, &command())).context("--page")?;
        }
        passed_over(failed, files)
    }

    fn read(&self) -> Result<Recorded> {
        let options = advise::options(scenario::bytes("min-bytes", &self.min_bytes)?);
        let files = expand(&self.files)?;
        let mut recorded = Recorded::default();
        for file in &files {
            let short = file.file_name().map_or("-".into(), |n| n.to_string_lossy());
            let bar = progress();
            let read = open::open(file).and_then(|(kind, input)| {
                let mut each = |t| recorded.add(&short, &t);
                stream(kind, input, &options, &mut each, &mut |read| bar.set_position(read))
            });
            bar.finish_and_clear();
            match read.with_context(|| file.display().to_string()) {
                Ok(summary) => {
                    recorded.files += 1;
                    if let Some(e) = &summary.incomplete {
                        warn(&format!("{}: {e}; only the part before it counts", file.display()));
                    }
                }
                Err(e) if files.len() == 1 => return Err(e),
                Err(e) => {
                    warn(&format!("{e:#}; skipped"));
                    recorded.failed += 1;
                }
            }
        }
        Ok(recorded)
    }
}

fn show(a: &Advice, compared: Option<&Compared>) -> Result<()> {
    for line in a.recordings() {
        print(&wrap(&printable(&line), 2))?;
    }
    if !a.recorded.bands.is_empty() {
        print("")?;
        print(exits(&a.recorded.bands).render(color(), Some(width() as u16)).trim_end())?;
    }
    if let Some(compared) = compared {
        print("")?;
        let view = View::default();
        let decision = compared.decision();
        let (table, _) = Comparison::new(&decision, &view).render(&view, color(), width());
        print(table.trim_end())?;
    }
    print("")?;
    for sentence in a.sure.iter().chain(&a.other_questions()) {
        print(&wrap(&printable(sentence), 2))?;
    }
    if !a.commands.is_empty() {
        print("Next:")?;
        a.commands.iter().try_for_each(|c| print(&format!("  {c}")))?;
    }
    // A terminal shows the end.
    print("")?;
    print_verdict(&printable(&a.headline()))
}

/// How transfers left slow start, a line a class of RTT.
fn exits(bands: &[Band]) -> Table {
    let mut headers: Vec<String> = ["least RTT", "transfers"].map(String::from).into();
    headers.extend(["too early", "link full", "by loss", "not at all", "unknown"].map(String::from));
    headers.push("costs at least".into());
    let count = |n: u64| if n == 0 { "-".to_string() } else { number(n as f64) };
    let line = |b: &Band| -> Vec<Cell> {
        let mut cells: Vec<Cell> = vec![b.rtt.into(), number(b.transfers as f64).into()];
        cells.extend(b.exits.iter().map(|n| Cell::from(count(*n))));
        cells.push(b.cost_s().map_or("-".to_string(), |c| format!("{} s", number(c))).into());
        cells
    };
    let rows = bands.iter().filter(|b| b.transfers > 0).map(line).collect();
    let mut alignments = vec![Align::Right; headers.len()];
    alignments[0] = Align::Left;
    Table { headers, rows, alignments }
}
