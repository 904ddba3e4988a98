//! `slowstart compare --engine kernel`: the same table, measured on the running kernel.

use super::{Compare, Drawn, middle, report, title, write};
use crate::interrupt::{Interrupt, Interrupted};
use crate::kernel_folder::KernelFolder;
use crate::output;
use crate::study_args::startups;
use anyhow::{Result, bail};
use slowstart::units::{Bytes, Span};
use slowstart_lab::record::{ROW_SCHEMA, Row};
use slowstart_lab::report::data::SAMPLES;
use slowstart_lab::report::summary::label;
use slowstart_lab::report::words;
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::{Study, StudyText};
use slowstart_linux::{KERNEL_CONTROLS, LoadedControl, TABLE, run_transfer};

/// Time that setting up and removing a path takes, for each run.
const SETUP: Span = Span::millis(500);
/// Payload of a segment and its bytes with IP and TCP headers.
const SEGMENT: (u64, u64) = (1448, 1500);
/// The initial window of the kernel, in segments.
const INITIAL_WINDOW: u64 = 10;

/// Runs every startup over the path, one after the other, since there is only one real clock.
pub(super) fn compare(c: Compare) -> Result<()> {
    for (key, given) in [
        ("profile", c.study.transfer.profile.is_some()),
        ("set", !c.study.transfer.set.is_empty()),
        ("app", c.study.transfer.app.is_some()),
        ("against", !c.study.transfer.against.is_empty()),
        ("remember", c.study.transfer.remember.is_some()),
        ("samples", c.how.samples.is_some()),
        ("pcap", c.how.pcap),
        ("qlog", c.how.qlog),
    ] {
        if given {
            bail!(
                "--{key}: only for the simulator; with --engine kernel the kernel's own TCP sends one bulk transfer"
            );
        }
    }
    let text = StudyText {
        path: c.paths[0].clone(),
        // A study needs startups from the simulator's list; those that run here are in `wanted`.
        startups: vec!["standard".to_string()],
        size: c.study.transfer.size,
        duration: c.study.transfer.duration,
        runs: c.study.runs,
        seed: c.study.transfer.seed,
        ..StudyText::default()
    };
    let study = Study::check(&text, None)?;
    let avoidance = c.study.transfer.avoidance.as_deref().unwrap_or("cubic");
    let mut wanted = startups(&c.study.startup);
    if wanted.is_empty() {
        let able = TABLE.iter().filter(|t| avoidance != "reno" || t.no_reno().is_none());
        wanted = able.map(|t| t.startup).chain(KERNEL_CONTROLS).map(str::to_string).collect();
    }
    eprintln!("slowstart: {}", time_needed(&study, wanted.len() as u64));
    if let Some(warning) = too_short(&study) {
        eprintln!("slowstart: note: {warning}");
    }
    let interrupt = Interrupt::record()?;
    let mut folder = c.how.out.as_deref().map(|dir| KernelFolder::open(dir, c.how.force)).transpose()?;
    let mut writer = c.how.rows.writer(ROW_SCHEMA)?;
    let total = study.runs as usize * wanted.len();
    let bar = output::progress(total as u64);
    let (mut rows, mut drawn) = (Vec::new(), Vec::new());
    for (contender, written) in wanted.iter().enumerate() {
        if interrupt.signal().is_some() {
            break;
        }
        let control = LoadedControl::load(written, avoidance)?;
        let mut outcomes = Vec::new();
        for n in 0..study.runs {
            let job = Job { contender, run: n };
            let run = || Ok(run_transfer(&study, &control, job, &|| interrupt.signal().is_some())?);
            let outcome = match &mut folder {
                Some(folder) => folder.run(job, run),
                None => run(),
            };
            let outcome = match outcome {
                Err(_) if interrupt.signal().is_some() => break,
                outcome => outcome?,
            };
            writer.write(&outcome.row)?;
            outcomes.push(outcome);
            bar.inc(1);
        }
        let finished: Vec<Row> = outcomes.iter().map(|o| o.row.clone()).collect();
        if finished.is_empty() {
            continue;
        }
        let chosen = middle(&finished).run;
        drawn.extend(
            outcomes.into_iter().filter(|o| o.row.run == chosen).map(|Outcome { row, trace, .. }| Drawn {
                label: label(&row),
                row,
                trace,
            }),
        );
        rows.extend(finished);
    }
    bar.finish_and_clear();
    writer.finish()?;
    if let Some(release) = rows.first().map(|r: &Row| &r.profile) {
        if let Some(folder) = &folder {
            let at = |d: &Drawn| rows.iter().position(|r| r.startup == d.row.startup && r.run == d.row.run);
            let curve = |d: &Drawn| Some(report::curve(&study, at(d)?, &d.row, &d.trace, SAMPLES));
            write(folder.folder(), &study, &rows, &drawn, drawn.iter().filter_map(curve).collect())?;
        }
        let title = title(&study).replace(&study.profile_label, &format!("Linux {release}"));
        c.how.show(&study, &rows, &drawn, &title)?;
    }
    if let Some(signal) = interrupt.signal() {
        return Err(Interrupted { signal, finished: Some((rows.len(), total)) }.into());
    }
    Ok(())
}

/// Says how long the study takes: at the rate of the path, and at most.
fn time_needed(study: &Study, startups: u64) -> String {
    let facts = study.path.facts();
    let runs = startups * u64::from(study.runs);
    let wall = |transfer: Span| duration(Span(runs.saturating_mul(transfer.0.saturating_add(SETUP.0))));
    let most = wall(study.duration);
    let what = format!("startups: {startups}, runs of each: {}, on the real clock", study.runs);
    match study.size {
        Some(bytes) => {
            let sending = facts.rate.time_for(Bytes(bytes / SEGMENT.0 * SEGMENT.1));
            let usual = wall(sending + Span(facts.base_rtt.0.saturating_mul(rounds_to_fill(study))));
            format!("{what}: about {usual}, at most {most}")
        }
        None => format!("{what}: about {most}"),
    }
}

/// Round trips until slow start has doubled the initial window to one BDP.
fn rounds_to_fill(study: &Study) -> u64 {
    let packets = study.path.facts().bdp.0 / SEGMENT.1;
    u64::from((packets / INITIAL_WINDOW).max(1).ilog2()) + 1
}

/// Returns a warning if slow start cannot fill the path within the transfer, so that no startup is sure to end.
fn too_short(study: &Study) -> Option<String> {
    let facts = study.path.facts();
    // When slow start has raised cwnd to one BDP, it has sent twice that, less the initial window.
    let bytes = (facts.bdp.0 / SEGMENT.1 * SEGMENT.0 * 2).saturating_sub(INITIAL_WINDOW * SEGMENT.0);
    let time = Span(facts.base_rtt.0.saturating_mul(rounds_to_fill(study) + 1));
    let (given, needed) = match study.size {
        Some(size) if size < bytes => (words::bytes(size), words::bytes(bytes)),
        None if study.duration < time => (duration(study.duration), duration(time)),
        _ => return None,
    };
    Some(format!(
        "a transfer of {given} may end before its startup does: slow start needs {needed} to fill this path"
    ))
}

/// A duration in words, in steps of 0.1 s, of a second or of a minute.
fn duration(span: Span) -> String {
    let seconds = span.as_secs_f64();
    let minutes = (seconds / 60.0).ceil() as u64;
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(path: &str, size: Option<&str>, duration: Option<&str>) -> Study {
        let text = StudyText {
            path: path.to_string(),
            startups: vec!["standard".to_string()],
            size: size.map(str::to_string),
            duration: duration.map(str::to_string),
            ..StudyText::default()
        };
        Study::check(&text, None).expect("a study")
    }

    #[test]
    fn the_time_needed_is_that_of_the_transfers() {
        // 10 runs of 15 MB at 12 Mbit/s take 10.36 s each, with four round trips and 0.5 s of setup 11.26 s. A run ends
        // after ten times 10 s and a minute: 160.5 s with setup.
        let s = study("rate=12Mbit rtt=100ms queue=1bdp", Some("15MB"), None);
        assert_eq!(
            time_needed(&s, 1),
            "startups: 1, runs of each: 10, on the real clock: about 113 s, at most 27 min"
        );
        let s = study("rate=12Mbit rtt=100ms queue=1bdp", None, Some("5s"));
        assert_eq!(time_needed(&s, 2), "startups: 2, runs of each: 10, on the real clock: about 110 s");
    }

    #[test]
    fn a_transfer_that_cannot_fill_the_path_is_too_short() {
        // BDP 100 packets: cwnd is 100 once 190 are sent, after five round trips.
        let path = "rate=12Mbit rtt=100ms queue=1bdp";
        assert!(too_short(&study(path, Some("274kB"), None)).is_some_and(|w| w.contains("275 kB")));
        assert_eq!(too_short(&study(path, Some("276kB"), None)), None);
        assert!(too_short(&study(path, None, Some("400ms"))).is_some_and(|w| w.contains("0.5 s")));
        assert_eq!(too_short(&study(path, None, Some("2s"))), None);
    }
}
