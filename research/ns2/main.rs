//! Runs the web clients of the TSL paper in ns-2, which is the Debian package `ns2`, and prints the mean over the seeds of each
//! figure.
//!
//! Of the startups after a lost SYN-ACK the package knows (3,2) alone. The others need `syn-ack.patch` in the source of that
//! package (`patch -p1`). What was measured stands in `scenarios/papers/tsl/load-90.toml`, beside ours.

use anyhow::{Context, bail};
use clap::Parser;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Run the web clients of the TSL paper in ns-2.
///
/// Where ns-2 is not installed (Debian package ns2), this says so and exits with status 0.
///
/// Examples:
///   ns2 --startup 3,2
///   ns2 --ns ns-2.35/ns --startup 1,2 --startup 3,16 --buffer 100 --seeds 3
#[derive(Parser)]
#[command(verbatim_doc_comment)]
struct Ns2 {
    /// The program
    #[arg(long, default_value = "ns")]
    ns: PathBuf,
    /// Window and threshold after a lost SYN-ACK, in segments
    #[arg(long, default_value = "3,2")]
    startup: Vec<String>,
    /// The buffer, in packets
    #[arg(long, default_value = "100")]
    buffer: Vec<u32>,
    /// Connections a second; 145.472 offers 90 % of the link
    #[arg(long, default_value = "145.472")]
    rate: String,
    /// Connections of a run
    #[arg(long, default_value_t = 50_000)]
    connections: u32,
    /// The number of runs, of seeds from 1
    #[arg(long, default_value_t = 1)]
    seeds: u32,
}

/// The script that ns-2 runs.
const SCRIPT: &str = include_str!("tsl.tcl");

/// What a run measured: shares in per cent, response times of connections that lost a SYN-ACK in round-trip times.
#[derive(Debug, Deserialize, PartialEq)]
struct Seen {
    answers: u32,
    retried: u32,
    loss: f64,
    peak: f64,
    utilisation: f64,
    throughput: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
}

impl Ns2 {
    /// One run.
    fn run(&self, seed: u32, buffer: u32, startup: &str) -> anyhow::Result<Seen> {
        let (iw, ssthresh) = startup
            .split_once(',')
            .with_context(|| format!("--startup: found {startup:?}, expected 3,16 or the like"))?;
        let folder = std::env::temp_dir()
            .join(format!("slowstart-ns2-{}-{seed}-{buffer}-{iw}-{ssthresh}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let script = folder.join("tsl.tcl");
        std::fs::write(&script, SCRIPT)?;
        let numbers = [seed.to_string(), self.rate.clone(), buffer.to_string(), self.connections.to_string()];
        let done = Command::new(&self.ns)
            .arg(&script)
            .args(&numbers)
            .args([iw, ssthresh])
            .arg(&folder)
            .stderr(Stdio::null())
            .output();
        let removed = std::fs::remove_dir_all(&folder);
        let done = done?;
        removed?;
        let text = String::from_utf8_lossy(&done.stdout);
        if !done.status.success() {
            bail!("{}: {}", self.ns.display(), done.status);
        }
        serde_json::from_str(text.trim()).with_context(|| format!("output of ns-2, not a result: {text}"))
    }

    /// True if the program can be started.
    fn is_there(&self) -> bool {
        let asked =
            Command::new(&self.ns).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok()
    }
}

fn main() -> anyhow::Result<()> {
    let ns2 = Ns2::parse();
    if !ns2.is_there() {
        println!("skipped: no ns-2 as {} (apt-get install ns2)", ns2.ns.display());
        return Ok(());
    }
    println!("buffer  startup   loss (%)  peak (%)  utilisation (%)  mean (RTTs)  90 %   99 %");
    for buffer in &ns2.buffer {
        for startup in &ns2.startup {
            let runs = (1..=ns2.seeds)
                .map(|seed| ns2.run(seed, *buffer, startup))
                .collect::<anyhow::Result<Vec<Seen>>>()?;
            let mean = |of: fn(&Seen) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
            println!(
                "{buffer:>6}  {startup:>7}  {:>9.2}  {:>8.1}  {:>15.1}  {:>11.2}  {:>5.1}  {:>5.0}",
                mean(|s| s.loss),
                mean(|s| s.peak),
                mean(|s| s.utilisation),
                mean(|s| s.mean),
                mean(|s| s.p90),
                mean(|s| s.p99)
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac_sha256::Hash as Sha256;

    /// The recorded values are those of this script.
    #[test]
    fn recorded_values_name_the_script() {
        let recorded = include_str!("../../scenarios/papers/tsl/load-90.toml");
        let bytes: [u8; 8] = Sha256::hash(SCRIPT.as_bytes())[..8].try_into().expect("eight of 32");
        let hash = format!("{:016x}", u64::from_be_bytes(bytes));
        assert!(
            recorded.contains(&hash),
            "load-90.toml: expected {hash} in the source of `beside`: measure again"
        );
    }

    /// The package gives what it gave when the values were recorded.
    #[test]
    fn ns2_gives_what_it_gave() {
        let ns2 = Ns2 {
            ns: "ns".into(),
            startup: Vec::new(),
            buffer: Vec::new(),
            rate: "145.472".into(),
            connections: 500,
            seeds: 1,
        };
        if !ns2.is_there() {
            println!("skipped: web clients in ns-2 (no ns: apt-get install ns2)");
            return;
        }
        let seen = ns2.run(1, 100, "3,2").expect("a run");
        let expected = Seen {
            answers: 481,
            retried: 6,
            loss: 5.5273,
            peak: 8.172,
            utilisation: 96.309,
            throughput: 75.080,
            mean: 3.2629,
            p50: 3.3420,
            p90: 5.2960,
            p99: 5.2960,
        };
        assert_eq!(seen, expected);
    }
}
