//! `slowstart compare --engine kernel`: the same table over the running kernel.

use super::{Compare, Drawn, middle, startups, title, write};
use crate::output::{self, Folder, print};
use crate::table;
use anyhow::{Result, bail};
use slowstart_lab::record::Row;
use slowstart_lab::report::summary::label;
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::{Study, StudyText};
use slowstart_linux::{KERNEL_CONTROLS, LoadedControl, TABLE, run_transfer};

/// Runs every contestant over the path, one after the other: there is one real clock.
pub(super) fn compare(c: Compare) -> Result<()> {
    for (key, given) in [
        ("profile", c.profile.is_some()),
        ("set", !c.set.is_empty()),
        ("app", c.app.is_some()),
        ("against", !c.against.is_empty()),
        ("remember", c.remember.is_some()),
        ("samples", c.how.samples.is_some()),
        ("pcap", c.how.pcap),
        ("qlog", c.how.qlog),
    ] {
        if given {
            bail!(
                "--{key}: of the simulator alone; with --engine kernel the kernel's own endpoints send in bulk"
            );
        }
    }
    let text = StudyText {
        path: c.path,
        // What is studied is not of the simulator's list; this one stands for it.
        startups: vec!["standard".to_string()],
        size: c.size,
        duration: c.duration,
        runs: c.runs,
        seed: c.seed,
        ..StudyText::default()
    };
    let study = Study::check(&text, None)?;
    let mut wanted = startups(&c.startup);
    if wanted.is_empty() {
        wanted = TABLE.iter().map(|t| t.startup).chain(KERNEL_CONTROLS).map(str::to_string).collect();
    }
    let avoidance = c.avoidance.as_deref().unwrap_or("cubic");
    let mut folder = c.how.out.as_deref().map(Folder::create).transpose()?;
    let bar = output::progress(u64::from(study.runs) * wanted.len() as u64);
    let (mut rows, mut drawn) = (Vec::new(), Vec::new());
    for (contender, written) in wanted.iter().enumerate() {
        let contestant = LoadedControl::load(written, avoidance)?;
        let mut outcomes = Vec::new();
        for n in 0..study.runs {
            let outcome = run_transfer(&study, &contestant, Job { contender, run: n })?;
            if let Some(folder) = &mut folder {
                folder.row(&outcome.row)?;
            }
            if c.how.json {
                print(&serde_json::to_string(&outcome.row)?)?;
            }
            outcomes.push(outcome);
            bar.inc(1);
        }
        let here: Vec<Row> = outcomes.iter().map(|o| o.row.clone()).collect();
        let chosen = middle(&here).run;
        drawn.extend(
            outcomes.into_iter().filter(|o| o.row.run == chosen).map(|Outcome { row, trace, .. }| Drawn {
                label: label(&row),
                row,
                trace,
            }),
        );
        rows.extend(here);
    }
    bar.finish_and_clear();
    if let Some(folder) = &folder {
        write(folder, &study, &rows, &drawn, &table::verdict(&rows))?;
    }
    let release = rows.first().map_or("", |r| &r.profile);
    let title = title(&study).replace(&study.profile_label, &format!("Linux {release}"));
    c.how.show(&study, &rows, &drawn, &title)
}
