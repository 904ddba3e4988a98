//! `slowstart analyse rtt`: the period of recorded RTT samples, by the method of the SEARCH thesis (4.5.1).

use crate::output::print;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use slowstart_lab::report::words::number;
use slowstart_papers::spectrum;
use std::fs;
use std::path::PathBuf;

/// Analyse recorded samples
///
/// Examples:
///   slowstart analyse rtt out/samples.jsonl
///   slowstart analyse rtt kernel-log.csv --until 10
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Analyse {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Rtt(Rtt),
}

/// Find the period of RTT samples by Fourier transform
///
/// FILE has samples as JSON lines (keys `time_s` and `rtt_s`, of the first flow), or is a kernel log (columns `now_us` and
/// `rtt_us`).
///
/// Examples:
///   slowstart analyse rtt out/samples.jsonl
///   slowstart analyse rtt kernel-log.csv --until 10
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Rtt {
    /// File with the samples
    file: PathBuf,
    /// Use only samples before this time, in seconds: for example, those of slow start
    #[arg(long)]
    until: Option<f64>,
}

/// Number of peaks shown, the greatest first.
const SHOWN: usize = 5;

impl Analyse {
    pub(crate) fn main(self) -> Result<()> {
        let What::Rtt(rtt) = self.what;
        let text = fs::read_to_string(&rtt.file).with_context(|| rtt.file.display().to_string())?;
        let mut points = read(&text).with_context(|| rtt.file.display().to_string())?;
        points.retain(|p| rtt.until.is_none_or(|t| p.0 <= t));
        let mut peaks = spectrum::spectrum(&points);
        let Some(best) = spectrum::peak(&points) else {
            bail!(
                "{}: found {} samples of the round-trip time, expected 16 at least",
                rtt.file.display(),
                points.len()
            );
        };
        let least = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        print(&format!(
            "minimum RTT {} ms; greatest peak at {} Hz: a period of {} s, or {} round trips",
            number(least * 1e3),
            number(best.hz),
            number(1.0 / best.hz),
            number(1.0 / best.hz / least)
        ))?;
        peaks.sort_by(|a, b| b.amplitude.total_cmp(&a.amplitude));
        for p in peaks.iter().take(SHOWN) {
            print(&format!("  {} Hz: {} ms", number(p.hz), number(p.amplitude * 1e3)))?;
        }
        Ok(())
    }
}

fn read(text: &str) -> Result<Vec<(f64, f64)>> {
    let mut points = Vec::new();
    if text.trim_start().starts_with('{') {
        for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let v: serde_json::Value =
                serde_json::from_str(line).with_context(|| format!("line {}", i + 1))?;
            if v["flow"].as_u64().unwrap_or(0) > 0 {
                continue;
            }
            if let (Some(t), Some(r)) = (v["time_s"].as_f64(), v["rtt_s"].as_f64()) {
                points.push((t, r));
            }
        }
        return Ok(points);
    }
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let column = |name: &str| {
        header.iter().position(|h| *h == name).with_context(|| {
            format!("line 1: found {:?}, expected JSON lines or a column {name:?}", header.join(","))
        })
    };
    let (at, rtt) = (column("now_us")?, column("rtt_us")?);
    for (i, line) in lines.enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').collect();
        let value = |c: usize| -> Result<f64> {
            let text = fields.get(c).map_or("", |f| f.trim());
            let n: f64 =
                text.parse().with_context(|| format!("line {}: found {text:?}, expected a number", i + 2))?;
            Ok(n / 1e6)
        };
        points.push((value(at)?, value(rtt)?));
    }
    Ok(points)
}
