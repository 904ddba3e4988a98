//! The conditions over which kernels are run: those of the path, not of the application or of the capture.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

use crate::conditions::{CONDITIONS, Case, draw};
use crate::fits::Fits;
use serde_json::{Value, json};
use slowstart_study::run::Job;
use std::error::Error;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

/// What a kernel does not run: applications, other connections, and damage to captures.
const OTHERS: [&str; 7] =
    ["video", "web", "slow reader", "offload", "cross traffic", "mid-connection", "cut packets"];

/// Prints the cases, one a line.
pub(crate) fn cases(seeds: &RangeInclusive<u64>, only: &[&str]) {
    let wanted = |c: &&&str| !OTHERS.contains(c) && (only.is_empty() || only.contains(c));
    for condition in CONDITIONS.iter().filter(wanted) {
        for seed in seeds.clone() {
            let case = draw(condition, seed);
            let study = &case.study;
            let bytes = |key: &str| study.set.get(key).and_then(|v| v.parse::<u64>().ok());
            let control = match study.startups[0].as_str() {
                "bbr" => "bbr",
                "standard" => "reno",
                _ => "cubic",
            };
            let line = json!({
                "condition": condition, "seed": seed, "path": study.path, "delay_ms": case.delay,
                "control": control, "bytes": size(&case), "rmem": bytes("rmem"), "send_buffer": bytes("send_buffer"),
            });
            println!("{line}");
        }
    }
}

fn size(case: &Case) -> u64 {
    let size = case.study.size.as_ref().and_then(|s| s.strip_suffix('B')?.parse().ok());
    size.expect("each case has a size in bytes")
}

/// Prints how often the intervals of paths that are fitted to the captures in a folder hold the truth.
pub(crate) fn fits(dir: &Path) -> Result<(), Box<dyn Error>> {
    let mut all: Vec<(String, Fits)> =
        CONDITIONS.iter().map(|c| ((*c).to_string(), Fits::default())).collect();
    let mut late = 0;
    for line in fs::read_to_string(dir.join("index.jsonl"))?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let (condition, seed) = (line["kind"].as_str().unwrap_or_default(), line["seed"].as_u64());
        let seed = seed.ok_or("index: seed: expected a number")?;
        if line["late"] == true {
            late += 1;
            continue;
        }
        let found = all.iter_mut().find(|c| c.0 == condition);
        let fits = &mut found.ok_or_else(|| format!("index: kind: no condition {condition}"))?.1;
        let case = draw(condition, seed);
        let simulated = case.checked().capture(Job { contender: 0, run: 0 });
        let number = line["case"].as_u64().ok_or("index: case: expected a number")?;
        let file = fs::read(dir.join(format!("{number:04}-sender.pcap")))?;
        let seconds = line["seconds"].as_f64().ok_or("index: seconds: expected a number")?;
        let link_bps = case.link_bps(&case.checked(), seed, seconds);
        fits.add_capture(&case, file, seconds, link_bps, simulated.row.buffer_bytes);
    }
    println!("{}", Fits::HEADER);
    for (condition, fits) in all.iter().filter(|c| !OTHERS.contains(&c.0.as_str())) {
        println!("{}", fits.line(condition));
    }
    println!("{late} runs are left out: the machine sent packets late");
    Ok(())
}
