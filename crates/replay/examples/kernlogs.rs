//! Each kernel log's exits as a prediction: `cargo run --release -p slowstart-replay --example kernlogs -- FOLDER`.
//!
//! The logs of a folder whose names begin alike (`geo-`, `4g-`) are of one network. For each of them a path is fitted to the
//! others of its network, with the code of `slowstart fit`; every run draws one of these paths. The exits of each startup over
//! that ensemble are the prediction; what it would have done over the ACKs of the log itself (`slowstart replay`) is the
//! outcome. Nothing of a log goes into its prediction. Times count from the first ACK of data.

use slowstart::step::Exit;
use slowstart_lab::engine::Sampling;
use slowstart_lab::scenario::{self, Study, StudyText};
use slowstart_lab::stats::quantile;
use slowstart_replay::analysis::{Findings, Keep};
use slowstart_replay::fit::fit;
use slowstart_replay::fit::text::{Fitted, toml};
use slowstart_replay::observer::Candidate;
use slowstart_replay::{kernlog, open};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Of startups without a rule of their own, the exit is the first loss.
const STARTUPS: [&str; 6] =
    ["standard", "hystart", "hystart:rules=5.10", "hystart++", "search-2.0", "search"];
const RUNS: u32 = 60;

fn read(file: &Path) -> Option<Findings> {
    let (kind, input) = open::open(file).ok()?;
    if kind != open::Kind::KernelLog {
        return None;
    }
    let candidate = |label: &&str| {
        let startup = scenario::startup("startup", label).expect("of the registry").1;
        Candidate { label: (*label).to_string(), startup }
    };
    let candidates: Vec<Candidate> = STARTUPS.iter().map(candidate).collect();
    let keep = Keep { packets: true, ..Keep::default() };
    Some(kernlog::replay(input, &candidates.into(), keep).ok()?.findings)
}

/// When a startup would have left on the log: by its own rule, or by the first loss if it has none.
fn left(f: &Findings, startup: &str) -> Option<f64> {
    let seconds = |at: slowstart::units::Instant| at.0 as f64 / 1e9;
    if startup == "standard" {
        return f.first_loss.map(seconds);
    }
    let own = f.startups.iter().find(|s| s.label == startup)?;
    own.prediction.rule.map(|(_, m)| seconds(m.at))
}

/// When it leaves in each run over a path, in the same way.
fn predicted(path: &Path, startup: &str) -> Vec<Option<f64>> {
    let text = StudyText {
        path: path.to_str().expect("text").to_string(),
        startups: vec![startup.to_string()],
        duration: Some("60s".into()),
        set: [("pacing".to_string(), "off".to_string())].into(),
        runs: Some(RUNS),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).unwrap_or_else(|e| panic!("{e}"));
    let row = |job| study.run(job, Sampling::Off, false).row;
    let exit = |row: slowstart_lab::record::Row| {
        // Handshake and first flight take a round trip each.
        let begin = 2.0 * row.base_rtt_s;
        if startup == "standard" {
            return row.first_loss_time_s.map(|t| t - begin);
        }
        let exit = row.exit?;
        let by_rule = !Exit::named(&exit.reason).is_some_and(Exit::by_congestion);
        by_rule.then_some(exit.time_s - begin)
    };
    study.jobs().into_iter().map(row).map(exit).collect()
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder of kernel logs"));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    let mut networks: BTreeMap<String, Vec<(String, Findings)>> = BTreeMap::new();
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        if let Some(findings) = read(&file) {
            let network = name.split('-').next().unwrap_or_default().to_string();
            networks.entry(network).or_default().push((name, findings));
        }
    }
    println!("| Log | {} |", STARTUPS.join(" | "));
    println!("|---{}|", "|---".repeat(STARTUPS.len()));
    let (mut within, mut all) = (0, 0);
    for logs in networks.values() {
        for (name, findings) in logs {
            let others = logs.iter().filter(|(other, _)| other != name);
            let fitted: Vec<Fitted> = others
                .filter_map(|(other, f)| Some(Fitted { source: other.clone(), path: fit(f).ok()? }))
                .collect();
            for f in &fitted {
                eprintln!("{name}: {}: {}", f.source, f.path.inline());
            }
            let path = std::env::temp_dir().join(format!("slowstart-kernlogs-{}.toml", std::process::id()));
            std::fs::write(&path, toml("example kernlogs", &fitted)).expect("written");
            print!("| {name} |");
            for startup in STARTUPS {
                let outcome = left(findings, startup);
                let runs = predicted(&path, startup);
                let times: Vec<f64> = runs.iter().flatten().copied().collect();
                let of = |q: f64| quantile(&times, q);
                let range = match (of(0.1), of(0.9)) {
                    (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
                    _ => "none".to_string(),
                };
                let share = times.len() as f64 * 100.0 / runs.len() as f64;
                // A log in which it does not leave agrees with runs of which most do not.
                let agrees = match (outcome, of(0.1), of(0.9)) {
                    (Some(t), Some(low), Some(high)) => times.len() * 2 > runs.len() && low <= t && t <= high,
                    (None, ..) => times.len() * 2 < runs.len(),
                    _ => false,
                };
                (within, all) = (within + u32::from(agrees), all + 1);
                let outcome = outcome.map_or("stays".to_string(), |t| format!("{t:.2}"));
                print!(" {outcome}; {range} in {share:.0} %: {} |", if agrees { "yes" } else { "no" });
            }
            println!();
            std::fs::remove_file(&path).expect("removed");
        }
    }
    println!("\n{within} of {all} exits are within the predicted range.");
}
