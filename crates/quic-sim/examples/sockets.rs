//! The same downloads at virtual time and on real sockets, to show how far pacing and timers of a process
//! move the result. Prints the table of docs/evidence/quic.md. Needs root, and the examples server and client
//! of the same build.
//!
//! `sockets SLOWSTART [RUNS]`, where SLOWSTART is the command built with the feature kernel.

use serde_json::Value;
use slowstart_quic_sim::{Knobs, Which};
use slowstart_sim::engine::Sampling;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use std::error::Error;
use std::process::Command;

const PATHS: [&str; 2] = ["rate=20Mbit rtt=40ms queue=1bdp", "rate=50Mbit rtt=50ms queue=1bdp"];
const STARTUPS: [&str; 3] = ["standard", "hystart++", "search"];
const SIZE: u64 = 5_000_000;

/// A finished download: the reason of the exit, its time since the server's connection began, the window
/// then, the packets that were declared lost, and the time until the client had everything.
#[derive(Clone, Default)]
struct Figures {
    reason: String,
    exit_s: f64,
    kilobytes: f64,
    lost: u64,
    completion_s: f64,
}

fn virtual_time(path: &str, startup: &str) -> Result<Figures, Box<dyn Error>> {
    let text = StudyText {
        path: path.into(),
        startups: vec![startup.into()],
        size: Some(format!("{}MB", SIZE / 1_000_000)),
        runs: Some(1),
        ..StudyText::default()
    };
    let study = Study::check(&text, None)?;
    let job = Job { contender: 0, run: 0 };
    let row = Which::Noq.run(&Knobs::default(), &study, job, Sampling::Off, false)?.row;
    let mut figures = Figures {
        reason: "none".into(),
        lost: row.retransmitted_packets.expect("each engine of these observes it"),
        completion_s: row.completion_s.unwrap_or(f64::NAN),
        ..Figures::default()
    };
    if let Some(exit) = row.exit {
        // The row counts from the client's first packet.
        figures.exit_s = exit.time_s - row.base_rtt_s / 2.0;
        (figures.reason, figures.kilobytes) = (exit.reason, exit.detected_cwnd_bytes as f64 / 1e3);
    }
    Ok(figures)
}

fn sockets(slowstart: &str, path: &str, startup: &str) -> Result<Figures, Box<dyn Error>> {
    let examples = std::env::current_exe()?.parent().ok_or("no folder")?.to_path_buf();
    let program = |name: &str| examples.join(name).display().to_string();
    let cert = std::env::temp_dir().join(format!("slowstart-{}.der", std::process::id()));
    let cert = cert.display().to_string();
    let serve = format!("{} --cert {cert} --startup {startup} --size {SIZE}", program("server"));
    let out = Command::new(slowstart)
        .args(["emulate", path, "--serve", &serve, "--", &program("client"), "--cert", &cert])
        .output()?;
    let (said, noted) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let json = |text: &str, key: &str| -> Option<Value> {
        text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).find(|v| v.get(key).is_some())
    };
    let client = json(&said, "completion_s").ok_or_else(|| format!("the client failed: {said}{noted}"))?;
    let server = json(&noted, "startup").ok_or_else(|| format!("the server failed: {said}{noted}"))?;
    let exit = &server["exit"];
    Ok(Figures {
        reason: exit["reason"].as_str().unwrap_or("none").to_string(),
        exit_s: exit["time_s"].as_f64().unwrap_or(f64::NAN),
        kilobytes: exit["cwnd_bytes"].as_f64().unwrap_or(f64::NAN) / 1e3,
        lost: server["lost_packets"].as_u64().unwrap_or(0),
        completion_s: client["completion_s"].as_f64().unwrap_or(f64::NAN),
    })
}

/// The least, the middle and the largest.
fn range(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let (least, most, middle) = (values[0], values[values.len() - 1], values[values.len() / 2]);
    format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let slowstart = args.next().ok_or("expected the command slowstart, and the number of runs")?;
    let runs: usize = args.next().map_or(Ok(5), |n| n.parse())?;
    println!("| Path | Startup | Clock | Exit | at, s | Window, kB | Lost packets | Download, s |");
    println!("|---|---|---|---|---|---|---|---|");
    for path in PATHS {
        for startup in STARTUPS {
            let f = virtual_time(path, startup)?;
            println!(
                "| `{path}` | `{startup}` | virtual | {} | {:.3} | {:.0} | {} | {:.3} |",
                f.reason, f.exit_s, f.kilobytes, f.lost, f.completion_s
            );
            let all = (0..runs).map(|_| sockets(&slowstart, path, startup)).collect::<Result<Vec<_>, _>>()?;
            let of = |what: fn(&Figures) -> f64, digits| range(all.iter().map(what).collect(), digits);
            let mut reasons: Vec<&str> = all.iter().map(|f| f.reason.as_str()).collect();
            reasons.sort_unstable();
            reasons.dedup();
            println!(
                "| | | real, {runs} runs | {} | {} | {} | {} | {} |",
                reasons.join(", "),
                of(|f| f.exit_s, 3),
                of(|f| f.kilobytes, 0),
                of(|f| f.lost as f64, 0),
                of(|f| f.completion_s, 3)
            );
        }
    }
    Ok(())
}
