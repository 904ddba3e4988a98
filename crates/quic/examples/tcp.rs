//! Where startups end in the simulator's TCP and in QUIC stacks, over ten paths, and which settings of TCP remove the
//! difference. Prints the tables of docs/quic.md. `tcp [PATH...]` takes other paths.

use slowstart_lab::engine::Sampling;
use slowstart_lab::record::Row;
use slowstart_lab::run::Job;
use slowstart_lab::scenario::{Study, StudyText};
use slowstart_quic::sim::{Knobs, NOT_CARRIED, Which};
use std::collections::BTreeMap;

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
const STEPS: [(&str, &[(&str, &str)]); 5] = [
    ("as it is", &[]),
    ("packets of 1228 bytes", &[("mss", "1176")]),
    ("paced, no TSO", &[("pacing", "on"), ("tso", "0")]),
    (
        "every second packet acknowledged, after 25 ms",
        &[("ack", "delayed"), ("delack", "25ms"), ("gro", "0")],
    ),
    ("no PRR", &[("prr", "off")]),
];
/// Startups whose figures are printed.
const SHOWN: [&str; 3] = ["standard", "hystart++", "search"];
const SIZE: &str = "3MB";

/// Where a startup ended: the window in bytes on the wire, and the time.
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
        wire: exit.cwnd_bytes as f64 * (mss + headers) as f64 / mss as f64,
        time_s: exit.time_s,
        lost: row.lost_packets,
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

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
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
        let mut set = BTreeMap::new();
        let steps: Vec<Vec<Option<End>>> = STEPS
            .iter()
            .map(|(_, knobs)| {
                set.extend(knobs.iter().map(|(k, v)| (k.to_string(), v.to_string())));
                let study = study(path, &startups, &set);
                let mss = if set.contains_key("mss") { 1176 } else { 1448 };
                jobs.iter().map(|j| end(&study.run(*j, Sampling::Off, false).row, mss, 52)).collect()
            })
            .collect();
        let agreeing = |a: &[Option<End>], b: &[Option<End>]| {
            a.iter().zip(b).filter(|(a, b)| agree(a.as_ref(), b.as_ref())).count()
        };
        let counts: Vec<String> = steps.iter().map(|s| agreeing(&noq, s).to_string()).collect();
        let any =
            (0..jobs.len()).filter(|i| steps.iter().any(|s| agree(noq[*i].as_ref(), s[*i].as_ref()))).count();
        sums.push(format!(
            "| `{path}` | {} | {any} | {} | {} | {} |",
            counts.join(" | "),
            agreeing(&quinn, &noq),
            agreeing(&quinn, &slow),
            jobs.len()
        ));
        for (i, name) in startups.iter().enumerate() {
            if SHOWN.contains(&name.as_str()) {
                let of = |ends: &[Option<End>]| show(ends[i].as_ref());
                figures.push(format!("| `{path}` | `{name}` | TCP | {} |", of(&steps[0])));
                figures.push(format!("| | | noq | {} |", of(&noq)));
                figures.push(format!("| | | quinn | {} |", of(&quinn)));
            }
            if !steps.iter().any(|s| agree(noq[i].as_ref(), s[i].as_ref())) {
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
        "| Path | TCP {} | in one of these | quinn as noq | quinn as noq at `gain=125` | startups |",
        heads.join(" | ")
    );
    println!("|---{}", "|---".repeat(heads.len() + 4) + "|");
    println!("{}", sums.join("\n"));
    println!("\n| Path | Startup | Stack | exit | window | lost | download |\n|---|---|---|---|---|---|---|");
    println!("{}", figures.join("\n"));
    println!("\nOpen:\n\n| Path | Startup | TCP with all settings | noq |\n|---|---|---|---|");
    println!("{}", open.join("\n"));
}
