//! Compares the answers of this library with a corpus that `research/corpus` made:
//! `cargo run --release -p slowstart-research --bin score -- DIR - odd`. `even` is the half to develop on,
//! `odd` the half that is only reported. Instead of `-`, a file with the rows of another version
//! (`slowstart replay --json DIR`). With `list` each answer that is not right is printed. The first table is of the names that
//! captures at the sender give its startup.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

mod names;
mod truth;

use serde_json::Value;
use slowstart_replay::replay::{Options, replay};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use truth::{Answer, TrueExit, Verdict, judge, read, same_window};

/// Counts of one line of a table.
#[derive(Clone, Debug, Default)]
struct Counts {
    verdicts: BTreeMap<Verdict, u32>,
    windows: u32,
    certain: (u32, u32),
}

impl Counts {
    fn of(&self, v: Verdict) -> u32 {
        self.verdicts.get(&v).copied().unwrap_or(0)
    }
}

/// What of the kernel's account a line counts.
fn truth_name(t: Option<&TrueExit>) -> &'static str {
    match t {
        None => "4 never left",
        Some(t) if !t.traced => "3 left without trace",
        Some(t) if t.by_loss => "2 loss",
        Some(_) => "1 rule",
    }
}

fn answer(row: &Value) -> Answer {
    if let Some(exit) = row["exit"].as_object() {
        let at = row["start_s"].as_f64().unwrap_or(0.0) + exit["time_s"].as_f64().unwrap_or(0.0);
        return Answer::Exit(at, exit["cwnd_bytes"].as_u64().unwrap_or(0));
    }
    if row["class"] == "none" { Answer::None } else { Answer::Unknown }
}

fn of_half(half: &str, n: u64) -> bool {
    half == "all" || (half == "odd") == (n % 2 == 1)
}

/// The rows of the captures of a half.
fn analyse(dir: &Path, half: &str) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_string();
        let number = name.split_once('-').and_then(|n| n.0.parse().ok());
        if number.is_none_or(|n| !of_half(half, n)) {
            continue;
        }
        for t in replay(&path, &Options::default(), |_| {})?.transfers {
            let mut row = t.row;
            row.file = Some(name.clone());
            all.push(serde_json::to_value(row)?);
        }
    }
    Ok(all)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, rows, half, rest @ ..] = &words[..] else {
        return Err("expected DIR ROWS even|odd|all [list]".into());
    };
    let (dir, list) = (Path::new(dir), !rest.is_empty());
    let mut cases = BTreeMap::new();
    for line in fs::read_to_string(dir.join("index.jsonl"))?.lines() {
        let case: Value = serde_json::from_str(line)?;
        cases.insert(case["case"].as_u64().ok_or("index: case: expected a number")?, case);
    }
    let mut best: BTreeMap<(u64, String), Value> = BTreeMap::new();
    let given: Vec<Value> = if rows == "-" {
        analyse(dir, half)?
    } else {
        let lines = BufReader::new(fs::File::open(rows)?).lines();
        lines.map(|l| Ok(serde_json::from_str(&l?)?)).collect::<Result<_, Box<dyn Error>>>()?
    };
    for row in given {
        let file = row["file"].as_str().and_then(|f| Path::new(f).file_name()?.to_str()).unwrap_or("");
        let name = file.split('.').next().unwrap_or("");
        let Some((n, end)) = name.split_once('-') else { continue };
        let key = (n.parse()?, end.to_string());
        let bytes = |r: &Value| r["bytes"].as_u64().unwrap_or(0);
        if best.get(&key).is_none_or(|b| bytes(b) < bytes(&row)) {
            best.insert(key, row);
        }
    }
    let mut without = 0;
    let mut tables: BTreeMap<String, Counts> = BTreeMap::new();
    for ((n, end), row) in &best {
        if !of_half(half, *n) {
            continue;
        }
        let Some(case) = cases.get(n) else { continue };
        let plain = case["settings"].as_array().is_some_and(|s| s.iter().any(|w| w == "tcp_timestamps=0"));
        let mss = if plain { 1460 } else { 1448 };
        let probes = fs::read_to_string(dir.join(format!("{n:04}.probes.csv")))?;
        let Ok(truth) =
            read(&probes, mss, case["received"].as_u64().unwrap_or(0), case["control"] == "search")
        else {
            without += 1;
            continue;
        };
        let said = answer(row);
        // What a capture at the receiver shows reaches the sender half a round trip later.
        let late = if end == "receiver" { 0.5 } else { 0.0 };
        let verdict = judge(truth.as_ref(), said, late);
        let certain = row.get("certain").and_then(Value::as_bool).unwrap_or(true) && said != Answer::Unknown;
        let window = matches!((said, &truth), (Answer::Exit(_, w), Some(t)) if same_window(t, w, mss));
        let what = truth_name(truth.as_ref());
        for name in [
            format!("{what} | all"),
            format!("{what} | at {end}"),
            format!("{what} | {}", case["kind"].as_str().unwrap_or("")),
            "5 any | all".to_string(),
            format!("5 any | at {end}"),
        ] {
            let c = tables.entry(name).or_default();
            *c.verdicts.entry(verdict).or_default() += 1;
            c.windows += u32::from(verdict == Verdict::Right && window);
            c.certain.0 += u32::from(certain);
            c.certain.1 += u32::from(certain && verdict == Verdict::Right);
        }
        if list && verdict != Verdict::Right || list && !window && truth.is_some() {
            let start = row["start_s"].as_f64().unwrap_or(0.0);
            let t = truth.map(|t| (t.between.0 - start, t.cwnd, t.rtt));
            println!(
                "{n}-{end} {} {verdict:?}{}: {what} {t:.3?} said {} {} {} certain {certain} | {} {} {}",
                case["kind"],
                if window { "" } else { " window" },
                row["exit"],
                row["unclear"],
                row["class"],
                case["control"],
                case["path"],
                case["settings"],
            );
        }
    }
    let at_sender = best.iter().filter(|((n, end), _)| end == "sender" && of_half(half, *n));
    names::print(at_sender.filter_map(|((n, _), row)| Some((cases.get(n)?["control"].as_str()?, row))));
    println!("{without} captures are of cases of which the kernel's account is incomplete\n");
    println!(
        "| kernel | captures | right | window within 10 % | other time | invented | missed | not known | certain | of these right |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, c) in &tables {
        let all: u32 = c.verdicts.values().sum();
        let percent = |n: u32, of: u32| {
            if of == 0 {
                "-".to_string()
            } else {
                format!("{n} ({:.1} %)", f64::from(n) * 100.0 / f64::from(of))
            }
        };
        println!(
            "| {name} | {all} | {} | {} | {} | {} | {} | {} | {} | {} |",
            percent(c.of(Verdict::Right), all),
            percent(c.windows, c.of(Verdict::Right)),
            c.of(Verdict::OtherTime),
            c.of(Verdict::Invented),
            c.of(Verdict::Missed),
            percent(c.of(Verdict::Unknown), all),
            percent(c.certain.0, all),
            percent(c.certain.1, c.certain.0)
        );
    }
    Ok(())
}
