//! Recordings as predictions of each other: `make field DIR=FOLDER`.
//!
//! The kernel logs of a folder whose names begin alike (`geo-`, `4g-`) are of one network. Each is predicted
//! by the others of its network, with the code of `slowstart fit`, in three ways: as paths whose rate follows
//! time, as paths of constant rate, and by the built-in ensemble of such networks. Nothing of a recording
//! goes into its prediction. Predicted are:
//!
//! - for each startup, when it decides to leave by its own rule over the ACKs of the recording itself
//!   (`standard`: the first loss), and the class of that exit;
//! - of the startup that was really used: the first loss, and the times to 1 MB and 10 MB.
//!
//! Times count from the first ACK of data, up to the end of the shortest recording of the network and at most
//! 60 s; what did not happen until then counts as infinite. A prediction is 60 runs. It covers what lies
//! between their 10 % and 90 % quantiles; its width is the ratio of these, and its score the CRPS of the
//! logarithm of the time, in which infinite counts as the end: a proper score, of which less is better.

use slowstart::step::Exit;
use slowstart::units::Instant;
use slowstart_lab::engine::Sampling;
use slowstart_lab::record::Row;
use slowstart_lab::scenario::{self, Study, StudyText};
use slowstart_lab::stats::quantile;
use slowstart_replay::analysis::{Findings, Keep, StartupResult};
use slowstart_replay::fit::course::{course, traces};
use slowstart_replay::fit::fit;
use slowstart_replay::fit::text::{Fitted, toml, with_traces};
use slowstart_replay::observer::Candidate;
use slowstart_replay::{kernlog, open};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const STARTUPS: [&str; 6] =
    ["standard", "hystart", "hystart:rules=5.10", "hystart++", "search-2.0", "search"];
const RUNS: u32 = 60;
/// The most seconds that are predicted.
const LONGEST: f64 = 60.0;
/// Traces of a recording.
const TRACES: usize = 9;
const WAYS: [&str; 3] = ["rate over time", "constant rate", "built-in"];

struct Log {
    name: String,
    findings: Findings,
    /// The startup that was really used, as far as the name tells: growth of the flight in the logs named
    /// `search` ends at the exit of `search-2.0`.
    used: &'static str,
}

fn read(file: &Path) -> Option<Log> {
    let name = file.file_name()?.to_string_lossy().into_owned();
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
    let findings = match kernlog::replay(input, &candidates.into(), keep) {
        Ok(log) => log.findings,
        Err(e) => {
            eprintln!("{name}: {e}; skipped");
            return None;
        }
    };
    let used = match name.split('-').nth(1).unwrap_or_default() {
        n if n.starts_with("hystart") => "hystart",
        n if n.starts_with("search") => "search-2.0",
        _ => "standard",
    };
    Some(Log { name, findings, used })
}

fn seconds(at: Instant) -> f64 {
    at.0 as f64 / 1e9
}

/// When a startup decides to leave. One that drains first does not leave over the ACKs of a sender that did
/// not drain.
fn decided(s: &StartupResult) -> Option<Instant> {
    let drain = || s.prediction.changes.iter().find(|m| m.what == "drain").map(|m| m.at);
    s.prediction.rule.map(|(_, m)| m.at).or_else(drain)
}

impl Log {
    fn left(&self, startup: &str) -> Option<f64> {
        if startup == "standard" {
            return self.findings.first_loss.map(seconds);
        }
        self.findings.startups.iter().find(|s| s.label == startup).and_then(decided).map(seconds)
    }

    fn class(&self, startup: &str) -> Option<&'static str> {
        let name = self.findings.startups.iter().find(|s| s.label == startup)?.class.name();
        (name != "unknown").then_some(name)
    }

    fn time_to(&self, bytes: u64) -> Option<f64> {
        self.findings.packets.acks().iter().find(|a| a.delivered.0 >= bytes).map(|a| seconds(a.at))
    }
}

/// The runs of each startup over a path.
fn runs(path: &str, mss: u64, horizon: f64) -> BTreeMap<&'static str, Vec<Row>> {
    let all = |startup: &&'static str| {
        let text = StudyText {
            path: path.to_string(),
            startups: vec![startup.to_string()],
            duration: Some(format!("{:.0}ms", (horizon + 2.0) * 1e3)),
            set: [("pacing".to_string(), "off".to_string()), ("mss".to_string(), mss.to_string())].into(),
            runs: Some(RUNS),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).unwrap_or_else(|e| panic!("{path}: {e}"));
        let jobs = study.jobs();
        let half = jobs.len().div_ceil(2);
        let rows = std::thread::scope(|s| {
            let parts: Vec<_> = jobs
                .chunks(half)
                .map(|part| {
                    let study = &study;
                    s.spawn(move || {
                        let run = |job: &_| study.run(Clone::clone(job), Sampling::Off, false).row;
                        part.iter().map(run).collect::<Vec<Row>>()
                    })
                })
                .collect();
            parts.into_iter().flat_map(|p| p.join().expect("no panic")).collect()
        });
        (*startup, rows)
    };
    STARTUPS.iter().map(all).collect()
}

/// The first ACK comes two and a half round trips after the client's SYN, with which a flow begins: SYN,
/// SYN-ACK, the ACK that lets the server send, data, its ACK.
fn since_first_ack(row: &Row, t: f64) -> f64 {
    (t - 2.5 * row.base_rtt_s).max(1e-3)
}

fn exit(row: &Row) -> Option<f64> {
    let t = if row.startup == "standard" {
        row.first_loss_time_s?
    } else {
        let exit = row.exit.as_ref()?;
        let by_rule = !Exit::named(&exit.reason).is_some_and(Exit::by_congestion);
        by_rule.then_some(exit.time_s)?
    };
    Some(since_first_ack(row, t))
}

fn time_to(row: &Row, bytes: u64) -> Option<f64> {
    // The row has the time at the client, the recording that of the ACK.
    Some(since_first_ack(row, (*row.time_to_bytes_s.get(&bytes.to_string())?)? + row.base_rtt_s / 2.0))
}

/// One prediction and its outcome; infinite: not until the horizon.
struct Judged {
    low: f64,
    high: f64,
    covers: bool,
    score: f64,
}

/// A quantile of values some of which are infinite: an order statistic.
fn ordered(values: &[f64], q: f64) -> f64 {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v[(q * (v.len() - 1) as f64).round() as usize]
}

fn judge(predicted: &[Option<f64>], outcome: f64, horizon: f64) -> Judged {
    let within = |t: f64| if t <= horizon { t } else { f64::INFINITY };
    let all: Vec<f64> = predicted.iter().map(|t| within(t.unwrap_or(f64::INFINITY))).collect();
    let (low, high) = (ordered(&all, 0.1), ordered(&all, 0.9));
    let log = |t: f64| libm::log(t.clamp(1e-3, horizon));
    let n = all.len() as f64;
    let off = all.iter().map(|t| (log(*t) - log(outcome)).abs()).sum::<f64>() / n;
    let each = |t: &f64| all.iter().map(|u| (log(*t) - log(*u)).abs()).sum::<f64>();
    let spread = all.iter().map(each).sum::<f64>() / (n * n);
    Judged { low, high, covers: low <= outcome && outcome <= high, score: off - spread / 2.0 }
}

fn words(t: f64) -> String {
    if t.is_finite() { format!("{t:.2}") } else { "no".into() }
}

/// The files of the ensembles of these recordings; the first is none if no recording shows its rate.
fn ensembles(folder: &Path, others: &[&Log]) -> [Option<PathBuf>; 2] {
    let mut fitted = Vec::new();
    let mut courses = Vec::new();
    for log in others {
        match fit(&log.findings) {
            Ok(path) => {
                match course(&log.findings, path.base_rtt_s.value) {
                    Ok(c) => {
                        eprintln!("{}: rate known in {:.0} % of the time", log.name, c.known() * 100.0);
                        courses.push((c, fitted.len()));
                    }
                    Err(why) => eprintln!("{}: {why}", log.name),
                }
                fitted.push(Fitted { source: log.name.clone(), path });
            }
            Err(why) => eprintln!("{}: {why}; left out", log.name),
        }
    }
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).expect("written");
        file
    };
    let constant = (!fitted.is_empty()).then(|| write("constant.toml", &toml("example field", &fitted)));
    let over_time = (!courses.is_empty()).then(|| {
        let all: Vec<_> = courses.iter().map(|c| &c.0).collect();
        let of = |(i, texts): (usize, &Vec<String>)| -> Vec<String> {
            let one = |(v, text): (usize, &String)| {
                let name = format!("{i}-{v}.down");
                write(&name, text);
                name
            };
            texts.iter().enumerate().map(one).collect()
        };
        let names: Vec<Vec<String>> = traces(&all, TRACES).iter().enumerate().map(of).collect();
        let paths: Vec<Fitted> = courses.iter().map(|c| fitted[c.1].clone()).collect();
        write("over-time.toml", &with_traces("example field", &paths, &names))
    });
    [over_time, constant]
}

#[derive(Default)]
struct Total {
    covered: u32,
    all: u32,
    widths: Vec<f64>,
    score: f64,
    /// The share of runs with the class of the recording, summed, and of how many.
    class: f64,
    classes: u32,
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder of kernel logs"));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    let mut networks: BTreeMap<String, Vec<Log>> = BTreeMap::new();
    for log in files.iter().filter_map(|f| read(f)) {
        let network = log.name.split('-').next().unwrap_or_default().to_string();
        networks.entry(network).or_default().push(log);
    }
    let temporary = std::env::temp_dir().join(format!("slowstart-field-{}", std::process::id()));
    std::fs::create_dir(&temporary).expect("a folder of its own");
    println!("| Recording | Quantity | Outcome (s) | {} |", WAYS.join(" | "));
    println!("|---|---|---{}|", "|---".repeat(WAYS.len()));
    let mut totals: BTreeMap<(String, String, usize), Total> = BTreeMap::new();
    for (network, logs) in &networks {
        if logs.len() < 2 {
            eprintln!("{network}: found one recording, expected two or more; skipped");
            continue;
        }
        let horizon = logs.iter().map(|l| seconds(l.findings.last)).fold(LONGEST, f64::min);
        let built_in = match network.as_str() {
            "geo" => Some("geo"),
            "4g" | "lte" => Some("lte"),
            "leo" => Some("leo"),
            _ => None,
        };
        let mss = logs[0].findings.mss.0;
        let standing = built_in.map(|name| runs(name, mss, horizon));
        for (i, log) in logs.iter().enumerate() {
            let others: Vec<&Log> = logs.iter().enumerate().filter(|(j, _)| *j != i).map(|l| l.1).collect();
            let [over_time, constant] = ensembles(&temporary, &others)
                .map(|file| file.map(|f| runs(f.to_str().expect("text"), mss, horizon)));
            let ways = [over_time.as_ref(), constant.as_ref(), standing.as_ref()];
            let mut line = |group: &str,
                            quantity: &str,
                            outcome: Option<f64>,
                            startup: &str,
                            of: &dyn Fn(&Row) -> Option<f64>| {
                let outcome = outcome.filter(|t| *t <= horizon).unwrap_or(f64::INFINITY);
                print!("| {} | {quantity} | {} |", log.name, words(outcome));
                for (way, all) in ways.iter().enumerate() {
                    let Some(rows) = all.map(|a| &a[startup]) else {
                        print!(" - |");
                        continue;
                    };
                    let times: Vec<Option<f64>> = rows.iter().map(of).collect();
                    let j = judge(&times, outcome, horizon);
                    print!(
                        " {} to {}{} |",
                        words(j.low),
                        words(j.high),
                        if j.covers { "" } else { " **not**" }
                    );
                    let total = totals.entry((network.clone(), group.to_string(), way)).or_default();
                    total.covered += u32::from(j.covers);
                    total.all += 1;
                    total.widths.push(if j.high <= j.low { 1.0 } else { j.high / j.low });
                    total.score += j.score;
                    if let Some(class) = log.class(startup).filter(|_| group == "exits") {
                        let same = rows.iter().filter(|r| r.class.name() == class).count();
                        total.class += same as f64 / rows.len() as f64;
                        total.classes += 1;
                    }
                }
                println!();
            };
            for startup in STARTUPS {
                line("exits", startup, log.left(startup), startup, &exit);
            }
            let lost = |r: &Row| r.first_loss_time_s.map(|t| since_first_ack(r, t));
            line("first loss", "first loss", log.findings.first_loss.map(seconds), log.used, &lost);
            for (name, bytes) in [("1 MB", 1_000_000), ("10 MB", 10_000_000)] {
                line("times", &format!("to {name}, {}", log.used), log.time_to(bytes), log.used, &|r| {
                    time_to(r, bytes)
                });
            }
        }
    }
    println!("\n| Network | Quantity | Prediction | Covered | Median width | Score | Class |");
    println!("|---|---|---|---|---|---|---|");
    for ((network, group, way), t) in &totals {
        let width = quantile(&t.widths, 0.5).filter(|w| w.is_finite());
        println!(
            "| {network} | {group} | {} | {} of {} | {} | {:.3} | {} |",
            WAYS[*way],
            t.covered,
            t.all,
            width.map_or("open".to_string(), |w| format!("{w:.2}")),
            t.score / f64::from(t.all),
            if t.classes > 0 {
                format!("{:.0} %", t.class / f64::from(t.classes) * 100.0)
            } else {
                "-".into()
            },
        );
    }
    std::fs::remove_dir_all(&temporary).expect("removed");
}
