//! `slowstart compare` and `slowstart run`: startups over one path or several.

use crate::engine::{EngineArg, interrupt_of, interrupt_of_all};
use crate::folder::folder_name;
use crate::interrupt::Interrupt;
use crate::output::{self, print};
use crate::paths_summary::{self, PathResult};
use crate::printable::printable;
use crate::row_output::RowWriter;
use crate::run_args::{RunArgs, check_finished, ended, print_legend};
use crate::study_args::StudyArgs;
use anyhow::{Context, Result, bail};
use clap::Args;
use slowstart_report::study::title;
use slowstart_study::axis;
use slowstart_study::chosen;
use slowstart_study::engines::Engine;
use slowstart_study::record::ROW_SCHEMA;
use slowstart_study::scenario::{Study, StudyText};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Compare startups over one path or several
///
/// The startups that people choose among (--all: every one) transfer the same data over the same path,
/// several times with different random seeds, in a deterministic simulator. The table shows what each gains
/// and costs against a baseline, which is what Linux runs today, run by run. Over several paths a summary
/// shows both for each path; without a path, over eight common ones.
///
/// docs/reference/glossary.md explains the terms, docs/explain/method.md the measures.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart compare
  slowstart compare geo
  slowstart compare \"rate=50Mbit rtt=80ms queue=2bdp\" --startup search,hystart:detect=delay
  slowstart compare \"rate=10,50,200Mbit rtt=20..300ms/4 queue=1bdp\" --startup search,hystart
  slowstart compare lte --against cubic@-10s --top 5
  slowstart compare lte --startup hystart,hystart@iw=20,hystart@pacing=on
  slowstart compare geo --all --baseline standard
  slowstart compare geo leo scenarios/paths --startup standard,search,bbr --out results

Where standard output is not a terminal, tables are 100 columns wide. If a table is too wide, it drops first the 95 %
interval, then these columns: queue, all, cwnd.

Exit status: 0, or 2 for bad input, or 130 after Ctrl-C (what is finished is shown and kept).")]
pub(crate) struct Compare {
    /// Paths. Each is a built-in name (`geo`, see `slowstart list paths`), a TOML file (`my.toml`), a folder
    /// of TOML files, or written inline as "rate=100Mbit rtt=40ms queue=1bdp" (see
    /// `slowstart list path-keys`). An inline path may begin with one whose keys it replaces ("geo
    /// rate=20Mbit"), and have lists and ranges ("rate=10,50Mbit rtt=20..300ms/4")
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    study: StudyArgs,
    /// Every startup, not only those that people choose among
    #[arg(long, conflicts_with = "startup")]
    all: bool,
    #[command(flatten)]
    engine: EngineArg,
    #[command(flatten)]
    how: RunArgs,
}

/// Run studies from TOML files
///
/// A study file has the keys of the arguments of `slowstart compare`: path, startups, engine, avoidance,
/// size, duration, profile, set, app, against, remember, runs, seed. docs/reference/studies.md explains each.
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart run scenarios/lte-beside-cubic.toml
  slowstart run scenarios/*.toml --out results
  slowstart run study.toml --engine quic:quinn

Exit status: 0, or 2 for bad input, or 130 after Ctrl-C (what is finished is shown and kept).")]
pub(crate) struct Run {
    /// Study files in TOML, such as scenarios/lte-beside-cubic.toml. With several and --out, each study gets
    /// a folder with the name of its file
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    engine: EngineArg,
    #[command(flatten)]
    how: RunArgs,
}

/// The paths that the arguments name: each folder stands for the TOML files in it, in order of their names,
/// and an inline path with axes for one path at each of their points.
fn expand(paths: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for path in paths {
        if path.contains('=') {
            all.extend(axis::paths(path)?);
            continue;
        }
        if !Path::new(path).is_dir() {
            all.push(path.clone());
            continue;
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).with_context(|| path.clone())? {
            let file = entry.with_context(|| path.clone())?.path();
            if file.extension().is_some_and(|e| e == "toml") {
                files.push(
                    file.to_str().with_context(|| format!("{}: not UTF-8", file.display()))?.to_string(),
                );
            }
        }
        if files.is_empty() {
            bail!("{path}: found no TOML files, expected a folder of paths");
        }
        files.sort();
        all.append(&mut files);
    }
    Ok(all)
}

/// A folder within `out` for each name. Fails if a name gives no folder or two give the same.
fn folders(out: &Path, names: &[String]) -> Result<Vec<PathBuf>> {
    let mut all: BTreeMap<String, &String> = BTreeMap::new();
    let mut dirs = Vec::new();
    for name in names {
        let folder = folder_name(name)
            .with_context(|| format!("--out: {name:?} gives no name for a folder; rename it"))?;
        dirs.push(out.join(&folder));
        if let Some(other) = all.insert(folder, name) {
            bail!(
                "--out: {other:?} and {name:?} would both write to {}; rename one or run them separately",
                dirs[dirs.len() - 1].display()
            );
        }
    }
    Ok(dirs)
}

impl Compare {
    pub(crate) fn main(mut self) -> Result<()> {
        let engine = self.engine.of(&StudyText::default())?;
        if self.paths.is_empty() {
            if engine.is_real_clock() {
                bail!("--engine kernel: found no path, expected one: eight on the real clock take hours");
            }
            self.paths = paths_summary::COMMON.map(String::from).to_vec();
        }
        self.how.fold = self.all;
        let paths = expand(&self.paths)?;
        engine.require(&self.how.parts())?;
        let mut studies = paths
            .iter()
            .map(|path| Ok(engine.study(&self.study.text(path)?, None)?))
            .collect::<Result<Vec<_>>>()?;
        if !self.study.has("startups") && !self.all {
            // The kernel's own default besides.
            for study in &mut studies {
                study.contenders.retain(|c| chosen::is_chosen(&c.startup_name) || c.startup_name == "cubic");
            }
        }
        if self.how.picture.is_some() && studies.len() > 1 {
            bail!("--picture: found {} paths, expected one", studies.len());
        }
        self.how.check_rows(&studies)?;
        let interrupt = interrupt_of(&*engine)?;
        let mut writer = self.how.rows.writer(ROW_SCHEMA)?;
        let result = match &studies[..] {
            [study] => self.how.study(&*engine, study, self.how.out.as_deref(), &interrupt, &mut writer),
            _ => self.several(&*engine, &studies, &interrupt, &mut writer),
        };
        ended(result, writer)
    }

    /// Runs the same study over several paths and prints a summary over them.
    fn several(
        &self,
        engine: &dyn Engine,
        studies: &[Study],
        interrupt: &Interrupt,
        writer: &mut RowWriter,
    ) -> Result<()> {
        let names: Vec<String> = studies.iter().map(|s| s.path.name.clone()).collect();
        let dirs = self.how.out.as_deref().map(|out| folders(out, &names)).transpose()?;
        studies.iter().try_for_each(|study| self.how.check(engine, study))?;
        let mut results = Vec::new();
        let (mut done, of) = (0, studies.iter().map(|s| s.jobs().len()).sum());
        for (i, study) in studies.iter().enumerate() {
            let finished =
                self.how.run(engine, study, dirs.as_ref().map(|d| d[i].as_path()), interrupt, writer)?;
            done += finished.done;
            if !self.how.rows.printed() {
                print(&output::wrap(&printable(&title(study)), 2))?;
            }
            // Of a path that was interrupted some startups have no run.
            if finished.done == study.jobs().len() {
                results.push(PathResult { name: study.path.name.clone(), rows: finished.rows });
            }
            if interrupt.signal().is_some() {
                break;
            }
        }
        if results.is_empty() && !self.how.rows.printed() {
            print("\nThere is no verdict: no path is finished.")?;
        } else if !self.how.rows.printed() {
            let view = self.how.view();
            print("")?;
            let terms = self.how.terms();
            let (text, brief, legend, verdict) =
                paths_summary::render(&results, &view, &terms, output::color(), output::width());
            print(text.trim_end())?;
            print_legend(&brief, || legend)?;
            print("")?;
            output::print_verdict(&printable(&verdict))?;
        }
        check_finished(interrupt, done, of)
    }
}

impl Run {
    pub(crate) fn main(self) -> Result<()> {
        // All files are read before the first study starts, so that a mistake in the last is found at once.
        let studies = self
            .files
            .iter()
            .map(|file| {
                let text = StudyText::load(file)?;
                let named = || file.display().to_string();
                let engine = self.engine.of(&text).with_context(named)?;
                engine.require(&self.how.parts()).with_context(named)?;
                let study = engine.study(&text, file.parent()).with_context(named)?;
                Ok((engine, study))
            })
            .collect::<Result<Vec<_>>>()?;
        self.how.check_rows(studies.iter().map(|(_, study)| study))?;
        let stems: Vec<String> = self
            .files
            .iter()
            .map(|f| f.file_stem().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        let dirs = match &self.how.out {
            Some(out) if studies.len() > 1 => Some(folders(out, &stems)?),
            Some(out) => Some(vec![out.clone()]),
            None => None,
        };
        let interrupt = interrupt_of_all(studies.iter().map(|(engine, _)| &**engine))?;
        let mut writer = self.how.rows.writer(ROW_SCHEMA)?;
        let result = studies.iter().enumerate().try_for_each(|(i, (engine, study))| {
            if i > 0 && !self.how.rows.printed() {
                print("")?;
            }
            let dir = dirs.as_ref().map(|d| d[i].as_path());
            self.how.study(&**engine, study, dir, &interrupt, &mut writer)
        });
        ended(result, writer)
    }
}
