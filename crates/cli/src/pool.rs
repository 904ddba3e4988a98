//! `slowstart trial pool`: the trials of several servers together.

use crate::folder::write_new;
use crate::output::{color, print, width, wrap};
use crate::table::{Align, Cell, Table};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use slowstart_files::{WholeFile, read_from, read_text};
use slowstart_report::fleet::{heterogeneity_text, pooled_html, without_value_text};
use slowstart_report::trial::{effect_text, unit, value_text};
use slowstart_trial::{Measure, Pooled, Server, Statistics, pool};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Trials of a fleet: what several servers found, taken together. A trial runs with `slowstart kernel trial`
#[derive(Args)]
pub(crate) struct Trials {
    #[command(subcommand)]
    command: TrialsCommand,
}

#[derive(Subcommand)]
enum TrialsCommand {
    Pool(Pool),
}

/// Join the trials of several servers that have one plan
///
/// Each folder is one that `slowstart kernel trial --out` writes; its `statistics.json` is enough, which
/// holds sums and no rows of connections. Each server is compared with itself only, and servers that differ
/// from the others are named. You may look as often as you like: the intervals hold while the trials run and after
/// them.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart trial pool server-a server-b server-c
  slowstart trial pool fleet/* --report fleet.html --stop-file stop

Exit status: 0, 1 if an arm has crossed a guardrail over all servers, 2 for bad input.")]
pub(crate) struct Pool {
    /// A folder of a trial, or its statistics.json. The server is named as the folder
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Print the result as a JSON object on one line
    #[arg(long)]
    json: bool,
    /// Write the result as a page to this file, which must not exist
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the names of arms that have crossed a guardrail to this file, one a line.
    /// `kernel trial --stop-file` reads it. Another stop file is replaced, and no other file
    #[arg(long, value_name = "FILE")]
    stop_file: Option<PathBuf>,
}

/// The largest file that is read: eight arms, seven measures and five classes of RTT need 40 kB.
const MOST_BYTES: u64 = 1 << 20;

fn read(folder: &Path) -> Result<Server> {
    let file = if folder.is_dir() { folder.join("statistics.json") } else { folder.to_path_buf() };
    let shown = file.display().to_string();
    let text = read_text(&file, MOST_BYTES)
        .with_context(|| format!("{shown}: expected the statistics of a trial"))?;
    let statistics = Statistics::parse(&text).with_context(|| shown)?;
    let dir = file.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf());
    let name =
        dir.file_name().map_or_else(|| dir.display().to_string(), |n| n.to_string_lossy().into_owned());
    Ok(Server { name, statistics })
}

impl Trials {
    /// Returns false if a guardrail was crossed.
    pub(crate) fn main(&self) -> Result<bool> {
        let TrialsCommand::Pool(pool) = &self.command;
        pool.main()
    }
}

impl Pool {
    fn main(&self) -> Result<bool> {
        let mut servers = self.folders.iter().map(|f| read(f)).collect::<Result<Vec<_>>>()?;
        for (i, folder) in self.folders.iter().enumerate() {
            // Two folders of one name in different places keep their paths.
            if servers.iter().filter(|s| s.name == servers[i].name).count() > 1 {
                servers[i].name = folder.display().to_string();
            }
        }
        let pooled = pool(&servers)?;
        if let Some(file) = &self.report {
            write_new(file, &pooled_html(&pooled, &crate::output::command())).context("--report")?;
        }
        if self.json {
            print(&serde_json::to_string(&pooled)?)?;
        } else {
            print(&text(&pooled))?;
        }
        let crossed = pooled.arms.iter().filter(|a| !a.crossed.is_empty());
        let crossed: Vec<&str> = crossed.map(|a| a.name.as_str()).collect();
        if let Some(file) = self.stop_file.as_ref().filter(|_| !crossed.is_empty()) {
            let arms: Vec<&str> = pooled.arms.iter().map(|a| a.name.as_str()).collect();
            write_stop_file(file, &crossed, &arms)
                .with_context(|| format!("--stop-file {}", file.display()))?;
        }
        Ok(crossed.is_empty())
    }
}

/// Writes the names of these arms, whole, so that a trial never reads half of them. A file that is there is
/// replaced if it is a stop file: if it has nothing but names of `arms`, those of the plan.
fn write_stop_file(file: &Path, crossed: &[&str], arms: &[&str]) -> Result<()> {
    if fs::symlink_metadata(file).is_ok_and(|m| !m.is_file()) {
        bail!("found no regular file, and does not replace it; choose another name or remove it");
    }
    if file.exists() {
        let bytes = read_from(slowstart_files::open(file)?, MOST_BYTES)?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some(line) = text.lines().find(|l| !arms.contains(l)) {
            bail!("found {line:?} in it, and does not replace it; expected names of arms, one a line");
        }
    }
    let mut out = WholeFile::beside(file)?;
    out.write_all((crossed.join("\n") + "\n").as_bytes())?;
    Ok(out.finish()?)
}

fn render(headers: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let alignments = (0..headers.len()).map(|i| if i == 0 { Align::Left } else { Align::Right }).collect();
    let headers = headers.iter().map(ToString::to_string).collect();
    Table { headers, rows, alignments }.render(color(), u16::try_from(width()).ok())
}

fn text(p: &Pooled) -> String {
    let control = p.arms[0].name.as_str();
    let comparison = |arm: &str, with: &str| {
        p.comparisons.iter().find(|c| c.arm == arm && c.with == with && c.measure == p.measure)
    };
    // A column of zeros says nothing.
    let lacking = p.servers.iter().flat_map(|s| &s.without_value).any(|n| *n != Some(0));
    let arms = p.arms.iter().map(|arm| {
        let mean = |m: Measure| value_text(m, arm.means.get(m.name()).copied());
        let effect = comparison(&arm.name, control)
            .map_or_else(|| "-".to_string(), |c| effect_text(c.effect.as_ref()));
        let ended = !arm.ended_on.is_empty() || !arm.crossed.is_empty();
        let mut row: Vec<Cell> = vec![
            format!("{}{}", arm.name, if ended { " (ended)" } else { "" }).into(),
            arm.units.to_string().into(),
            mean(p.measure).into(),
            effect.into(),
            mean(Measure::Retrans).into(),
        ];
        if lacking {
            row.insert(2, arm.without_value.to_string().into());
        }
        row
    });
    let measure = format!("{}{}", p.measure, unit(p.measure));
    let against = format!("against {control}");
    let without = format!("no {}", p.measure);
    let mut headers = vec!["arm", "units", &measure, &against, "retrans"];
    if lacking {
        headers.insert(2, &without);
    }
    let mut out = render(&headers, arms.collect());
    let compared: Vec<_> = p.arms.iter().skip(1).filter_map(|a| comparison(&a.name, control)).collect();
    if let Some(first) = compared.first() {
        let rows = first.servers.iter().enumerate().map(|(i, s)| {
            let server = p.servers.iter().find(|x| x.name == s.server);
            let units = server.map_or(0, |x| x.units.iter().sum::<u64>());
            let mut row: Vec<Cell> = vec![s.server.clone().into(), units.to_string().into()];
            if lacking {
                row.push(server.map_or_else(String::new, without_value_text).into());
            }
            row.extend(compared.iter().map(|c| {
                let found = &c.servers[i];
                let mark = if found.disagrees { " !" } else { "" };
                Cell::from(format!("{}{mark}", effect_text(found.effect.as_ref())))
            }));
            row
        });
        let mut headers = vec!["server".to_string(), "units".to_string()];
        if lacking {
            headers.push(format!("{without} by arm"));
        }
        headers.extend(compared.iter().map(|c| format!("{} {against}", c.arm)));
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        out += "\n";
        out += &render(&headers, rows.collect());
    }
    out += "\n";
    out += &wrap(&p.verdict, 0);
    for c in compared {
        if let Some(h) = &c.heterogeneity {
            out += "\n";
            out += &wrap(&format!("{}, {}", c.arm, heterogeneity_text(h)), 2);
        }
    }
    for note in &p.notes {
        out += "\n";
        out += &wrap(note, 2);
    }
    out
}
