//! Where startups end in the simulator's TCP and in QUIC stacks, over ten paths, and which settings of TCP
//! remove the difference. Prints the tables of docs/evidence/quic.md.
//!
//! `tcp [--kernel ROWS] [PATH...]` takes other paths. ROWS are those of
//! `slowstart compare PATH --engine kernel --json`: the live kernel's figures stand beside the others, the
//! median run by the time of the exit.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

use serde_json::Value;
use slowstart_quic_sim::{Knobs, NOT_CARRIED, Which};
use slowstart_sim::engine::Sampling;
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use std::collections::BTreeMap;
use std::error::Error;

const PATHS: [&str; 10] = [
    "rate=10Mbit rtt=20ms queue=1bdp",
    "rate=10Mbit rtt=100ms queue=1bdp",
    "rate=20Mbit rtt=40ms queue=0.5bdp",
    "rate=20Mbit rtt=40ms queue=2bdp",
    "rate=20Mbit rtt=100ms queue=1bdp",
    "rate=50Mbit rtt=20ms queue=1bdp",
    "rate=50Mbit rtt=50ms queue=0.5bdp",
    "rate=50Mbit rtt=50ms queue=1bdp",
    "rate=50Mbit rtt=50ms queue=2bdp",
    "rate=20Mbit rtt=50ms queue=1bdp jitter=5ms loss=0.1%",
];
/// Settings of TCP, each added to those before it, and what they remove.
const STEPS: [(&str, &[(&str, &str)]); 6] = [
    ("as it is", &[]),
    ("packets of 1228 bytes", &[("mss", "1176")]),
    ("receive window without effect", &[("autotune", "off")]),
    ("paced, no TSO", &[("pacing", "on"), ("tso", "0")]),
    (
        "every second packet acknowledged, after 25 ms",
        &[("ack", "delayed"), ("delack", "25ms"), ("gro", "0")],
    ),
    ("no PRR", &[("prr", "off")]),
];
/// Set against noq with a pacing rate of 100 windows a round trip, after all of them.
const UNPACED: (&str, &str) = ("pacing", "off");
/// Startups whose figures are printed.
const SHOWN: [&str; 3] = ["standard", "hystart++", "search"];
const SIZE: &str = "6MB";

/// Where a startup ended: the window in bytes on the wire when it saw its reason, before any reduction, and
/// that time.
#[derive(Clone, Debug)]
struct End {
    reason: String,
    wire: f64,
    time_s: f64,
    lost: u64,
    completion_s: Option<f64>,
    rtt_s: f64,
}

fn end(row: &Row, mss: u64, headers: u64) -> Option<End> {
    let exit = row.exit.as_ref()?;
    Some(End {
        reason: exit.reason.clone(),
        wire: exit.detected_cwnd_bytes as f64 * (mss + headers) as f64 / mss as f64,
        time_s: exit.time_s,
        lost: row.lost_packets.expect("the simulator observes it"),
        completion_s: row.completion_s,
        rtt_s: row.base_rtt_s,
    })
}

/// Within 5 % of the window and one round trip, or neither ended.
fn agree(a: Option<&End>, b: Option<&End>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a.wire / b.wire - 1.0).abs() <= 0.05 && (a.time_s - b.time_s).abs() <= a.rtt_s,
        (None, None) => true,
        _ => false,
    }
}

fn study(path: &str, startups: &[String], set: &BTreeMap<String, String>) -> Study {
    let text = StudyText {
        path: path.into(),
        startups: startups.to_vec(),
        size: Some(SIZE.into()),
        set: set.clone(),
        runs: Some(1),
        ..StudyText::default()
    };
    Study::check(&text, None).expect("the study is valid")
}

fn show(end: Option<&End>) -> String {
    end.map_or("none | | |".to_string(), |e| {
        let done = e.completion_s.map_or("not".to_string(), |s| format!("{s:.2}"));
        format!("{} {:.2} s | {:.0} kB | {} | {done} s", e.reason, e.time_s, e.wire / 1e3, e.lost)
    })
}

/// The live kernel's rows, by path and startup.
fn kernel_rows(file: &str) -> Result<BTreeMap<(String, String), End>, Box<dyn Error>> {
    let mut all: BTreeMap<(String, String), Vec<End>> = BTreeMap::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
        let exit = &row["exit"];
        let (Some(time_s), Some(cwnd)) = (exit["time_s"].as_f64(), exit["detected_cwnd_bytes"].as_f64())
        else {
            continue;
        };
        let end = End {
            reason: text(&exit["reason"]),
            wire: cwnd * 1500.0 / 1448.0,
            time_s,
            lost: row["lost_packets"].as_u64().unwrap_or(0),
            completion_s: row["completion_s"].as_f64(),
            rtt_s: row["base_rtt_s"].as_f64().unwrap_or(0.0),
        };
        all.entry((text(&row["path"]), text(&row["startup"]))).or_default().push(end);
    }
    let median = |mut runs: Vec<End>| {
        runs.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        runs.swap_remove(runs.len() / 2)
    };
    Ok(all.into_iter().map(|(key, runs)| (key, median(runs))).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let mut kernel = BTreeMap::new();
    if given.first().is_some_and(|a| a == "--kernel") {
        kernel = kernel_rows(given.get(1).ok_or("--kernel: expected a file of rows")?)?;
        given.drain(..2);
    }
    let paths = if given.is_empty() { PATHS.map(String::from).to_vec() } else { given };
    let startups: Vec<String> = slowstart::registry::all()
        .map(|e| e.name.to_string())
        .filter(|n| NOT_CARRIED.iter().all(|(name, _)| name != n))
        .collect();
    let clear = Knobs { encrypts: false, ..Knobs::default() };
    let (mut figures, mut sums, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for path in &paths {
        let quic = study(path, &startups, &BTreeMap::new());
        let jobs: Vec<Job> = (0..startups.len()).map(|contender| Job { contender, run: 0 }).collect();
        let over = |which: Which, knobs: &Knobs| -> Vec<Option<End>> {
            let run = |job: &Job| {
                let row = which.run(knobs, &quic, *job, Sampling::Off, false).expect("it runs").row;
                end(&row, u64::from(knobs.mtu), 28)
            };
            jobs.iter().map(run).collect()
        };
        let noq = over(Which::Noq, &clear);
        let quinn = over(Which::Quinn, &Knobs::default());
        let slow = over(Which::Noq, &Knobs { gain: 125, ..clear });
        let unpaced = over(Which::Noq, &Knobs { gain: 10_000, ..clear });
        let tcp = |set: &BTreeMap<String, String>| -> Vec<Option<End>> {
            let study = study(path, &startups, set);
            let mss = if set.contains_key("mss") { 1176 } else { 1448 };
            jobs.iter().map(|j| end(&study.run(*j, Sampling::Off, false).row, mss, 52)).collect()
        };
        let mut set = BTreeMap::new();
        let mut add = |knobs: &[(&str, &str)]| {
            set.extend(knobs.iter().map(|(k, v)| (k.to_string(), v.to_string())));
            tcp(&set)
        };
        let steps: Vec<Vec<Option<End>>> = STEPS.iter().map(|(_, knobs)| add(knobs)).collect();
        let tcp_unpaced = add(&[UNPACED]);
        let agreeing = |a: &[Option<End>], b: &[Option<End>]| {
            a.iter().zip(b).filter(|(a, b)| agree(a.as_ref(), b.as_ref())).count()
        };
        let counts: Vec<String> = steps.iter().map(|s| agreeing(&noq, s).to_string()).collect();
        let found = |i: usize| {
            steps.iter().any(|s| agree(noq[i].as_ref(), s[i].as_ref()))
                || agree(unpaced[i].as_ref(), tcp_unpaced[i].as_ref())
        };
        let any = (0..jobs.len()).filter(|i| found(*i)).count();
        sums.push(format!(
            "| `{path}` | {} | {} | {any} | {} | {} | {} |",
            counts.join(" | "),
            agreeing(&unpaced, &tcp_unpaced),
            agreeing(&quinn, &noq),
            agreeing(&quinn, &slow),
            jobs.len()
        ));
        for (i, name) in startups.iter().enumerate() {
            if SHOWN.contains(&name.as_str()) {
                let of = |ends: &[Option<End>]| show(ends[i].as_ref());
                figures.push(format!("| `{path}` | `{name}` | TCP | {} |", of(&steps[0])));
                if let Some(end) = kernel.get(&(path.clone(), name.clone())) {
                    figures.push(format!("| | | TCP of the live kernel | {} |", show(Some(end))));
                }
                figures.push(format!("| | | noq | {} |", of(&noq)));
                figures.push(format!("| | | quinn | {} |", of(&quinn)));
            }
            if !found(i) {
                let what = |e: Option<&End>| {
                    e.map_or("none".into(), |e| {
                        format!("{} {:.0} kB {:.2} s", e.reason, e.wire / 1e3, e.time_s)
                    })
                };
                let last = steps.last().and_then(|s| s[i].as_ref());
                open.push(format!("| `{path}` | `{name}` | {} | {} |", what(last), what(noq[i].as_ref())));
            }
        }
        eprintln!("{path}");
    }
    println!(
        "Startups of which noq's end is that of TCP, within 5 % of the window on the wire and one round trip:\n"
    );
    let heads: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    println!(
        "| Path | TCP {} | both unpaced | in one of these | quinn as noq | quinn as noq at `gain=125` | startups |",
        heads.join(" | ")
    );
    println!("|---{}", "|---".repeat(heads.len() + 5) + "|");
    println!("{}", sums.join("\n"));
    println!("\n| Path | Startup | Stack | exit | window | lost | download |\n|---|---|---|---|---|---|---|");
    println!("{}", figures.join("\n"));
    println!("\nOpen:\n\n| Path | Startup | TCP with all settings | noq |\n|---|---|---|---|");
    println!("{}", open.join("\n"));
    Ok(())
}
