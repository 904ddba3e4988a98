//! Fitted paths as the simulator reads them: one line, or a TOML file of a path or of an ensemble.

use super::{Estimate, FittedPath};
use std::fmt::Write as _;

/// Keys of a path file in the order in which they are written.
const KEYS: [&str; 12] = [
    "rate",
    "rate_vary",
    "rate_vary_period",
    "rtt",
    "vary",
    "vary_period",
    "ack_aggregate",
    "jitter",
    "queue",
    "random_drop",
    "loss",
    "policer",
];

/// Keys of which a rate over time takes the place.
const BY_RATE: [&str; 3] = ["rate", "rate_vary", "rate_vary_period"];

/// Bytes of a full packet.
const PACKET: f64 = 1500.0;

/// A fitted path and where it comes from.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The file, with the connection.
    pub source: String,
    /// The path that was fitted.
    pub path: FittedPath,
}

/// How a number of a key is written.
fn number(key: &str, value: f64) -> String {
    match key {
        "rate" => format!("{value:.0}bit"),
        "rate_vary" | "loss" => format!("{:.4}%", value * 100.0),
        // A path file takes a queue of a full packet or more.
        "queue" => format!("{:.0}B", value.max(PACKET)),
        _ => format!("{:.3}ms", value * 1e3),
    }
}

/// An estimate in words: its interval and what it rests on.
fn words(key: &str, e: &Estimate) -> String {
    let unit = |v: f64| match key {
        "rate" | "policer" => format!("{:.3} Mbit/s", v / 1e6),
        "rate_vary" | "loss" => format!("{:.3} %", v * 100.0),
        "queue" | "random_drop" => format!("{:.1} kB", v / 1e3),
        _ => format!("{:.3} ms", v * 1e3),
    };
    match e.high {
        Some(high) => format!("{} to {}: {}", unit(e.low), unit(high), e.basis),
        None => format!("at least {}: {}", unit(e.low), e.basis),
    }
}

/// The value of a key, and the estimate behind it; `None` if the path does not have it.
fn value(p: &FittedPath, key: &str) -> Option<(String, Vec<Estimate>)> {
    let one = |e: &Estimate| (number(key, e.value), vec![e.clone()]);
    match key {
        "rate" => Some(one(&p.rate_bps)),
        "rate_vary" => p.rate_vary.as_ref().map(|v| one(&v.share)),
        "rate_vary_period" => p.rate_vary.as_ref().map(|v| one(&v.period_s)),
        "rtt" => Some(one(&p.base_rtt_s)),
        "vary" => p.wave.as_ref().map(|w| one(&w.amplitude_s)),
        "vary_period" => p.wave.as_ref().map(|w| one(&w.period_s)),
        "ack_aggregate" => p.ack_aggregate_s.as_ref().map(one),
        "jitter" => p.jitter_s.as_ref().map(one),
        "queue" => Some(one(&p.queue_bytes)),
        "random_drop" => p.random_drop.as_ref().map(|d| {
            let text = format!("{}@{}", number("loss", d.share.value), number("queue", d.above_bytes.value));
            (text, vec![d.above_bytes.clone()])
        }),
        "policer" => p.policer.as_ref().map(|b| {
            let burst = number("queue", b.burst_bytes.value);
            let text = format!("rate={} burst={burst}", number("rate", b.rate_bps.value));
            (text, vec![b.rate_bps.clone()])
        }),
        _ => p.loss.as_ref().map(one),
    }
}

/// The value that a key has in an ensemble where a path does not have it: one without effect.
const fn neutral(key: &str) -> &str {
    match key.as_bytes() {
        b"rate_vary" | b"loss" => "0%",
        // Nothing is held back for longer than a microsecond.
        b"ack_aggregate" => "0.001ms",
        b"rate_vary_period" | b"vary_period" => "1000ms",
        b"random_drop" => "0%@0B",
        _ => "0ms",
    }
}

impl FittedPath {
    /// The path as an argument of `slowstart compare`.
    pub fn inline(&self) -> String {
        self.pairs(value)
    }

    /// The path as an argument, with a schedule in place of the rate.
    pub(crate) fn inline_over_time(&self, schedule: &str) -> String {
        format!("schedule={schedule} {}", self.pairs(beside_rate))
    }

    fn pairs(&self, value: Value) -> String {
        let written = |key: &str, text: String| {
            if text.contains(' ') { format!("{key}=\"{text}\"") } else { format!("{key}={text}") }
        };
        let pairs = KEYS.iter().filter_map(|key| Some(written(key, value(self, key)?.0)));
        pairs.collect::<Vec<_>>().join(" ")
    }
}

/// The value of a key, and the estimate behind it.
type Value = fn(&FittedPath, &str) -> Option<(String, Vec<Estimate>)>;

/// The value of a key beside a rate over time, and the estimate behind it; `None` if the path does not have it
/// or the rate has what it says: what a constant rate leaves unexplained would be counted twice.
fn beside_rate(p: &FittedPath, key: &str) -> Option<(String, Vec<Estimate>)> {
    match key {
        "jitter" if p.rate_changes => {
            p.first_delay_s.as_ref().map(|d| (number(key, d.value), vec![d.clone()]))
        }
        "jitter" if p.rate_vary.is_some() => None,
        _ if BY_RATE.contains(&key) => None,
        _ => value(p, key),
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is valid JSON")
}

/// A path file: of one path, or of an ensemble in which every run draws one of several paths, all of the same
/// chance.
///
/// All values of a drawn path are those of one transfer: each key is a list in the same order, and every list
/// follows the rank of the rate.
pub fn toml(command: &str, fitted: &[Fitted]) -> String {
    file(command, fitted, &[])
}

/// A path file with a trace in place of each rate, by the names of their files: several of each transfer, as
/// many of one as of another. Every list follows the rank of the trace.
pub fn with_traces(command: &str, fitted: &[Fitted], traces: &[Vec<String>]) -> String {
    file(command, fitted, traces)
}

fn file(command: &str, fitted: &[Fitted], traces: &[Vec<String>]) -> String {
    let mut paths: Vec<&Fitted> = fitted.iter().collect();
    if traces.is_empty() {
        paths.sort_by(|a, b| {
            a.path.rate_bps.value.total_cmp(&b.path.rate_bps.value).then(a.source.cmp(&b.source))
        });
    }
    let each = traces.first().map_or(1, Vec::len);
    let mut out = String::new();
    let comment = |out: &mut String, text: &str| {
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        writeln!(out, "# {plain}").expect("a String takes everything");
    };
    comment(&mut out, &format!("Made by: {command}"));
    for p in &paths {
        for note in &p.path.notes {
            comment(&mut out, &format!("{}: {note}", p.source));
        }
    }
    let about = match paths.as_slice() {
        [one] => format!("Fitted to {}", one.source),
        all => format!("Each run draws one of {} paths, each fitted to a transfer", all.len()),
    };
    writeln!(out, "about = {}", quoted(&about)).expect("a String takes everything");
    let sources: Vec<String> = paths.iter().map(|p| quoted(&p.source)).collect();
    writeln!(out, "sources = [{}]", sources.join(", ")).expect("a String takes everything");
    if !traces.is_empty() {
        let names: Vec<&str> = traces.iter().flatten().map(String::as_str).collect();
        writeln!(out, "trace = {}", quoted(&names.join("|"))).expect("a String takes everything");
        comment(
            &mut out,
            "The traces begin one and a half base RTTs before the first data, with the client's SYN.",
        );
        writeln!(out, "trace_start = 0").expect("a String takes everything");
    }
    for key in KEYS {
        let value: Value = if traces.is_empty() { value } else { beside_rate };
        let of = |p: &&Fitted| value(&p.path, key);
        let values: Vec<_> = paths.iter().map(of).collect();
        // A bucket cannot be drawn.
        if values.iter().all(Option::is_none) || key == "policer" && values.len() > 1 {
            continue;
        }
        for (p, found) in paths.iter().zip(&values) {
            let name = if paths.len() > 1 { format!("{}: ", p.source) } else { String::new() };
            match found {
                Some((_, estimates)) => {
                    for e in estimates {
                        comment(&mut out, &format!("{name}{}", words(key, e)));
                    }
                }
                None => comment(&mut out, &format!("{name}not seen")),
            }
        }
        let texts: Vec<&str> = values
            .iter()
            .flat_map(|v| std::iter::repeat_n(v.as_ref().map_or(neutral(key), |v| v.0.as_str()), each))
            .collect();
        let leader = if traces.is_empty() { "rate" } else { "trace" };
        writeln!(out, "{key} = {}", quoted(&joined(key, leader, &texts))).expect("a String takes everything");
    }
    out
}

/// The values of a key in the order of the paths.
fn joined(key: &str, leader: &str, texts: &[&str]) -> String {
    let list = |parts: &[&str]| match parts {
        [one] => (*one).to_string(),
        _ if key == leader => parts.join("|"),
        _ => parts.join("|") + "~" + leader,
    };
    if key != "random_drop" {
        return list(texts);
    }
    // Each of its parts is drawn.
    let halves: Vec<(&str, &str)> = texts.iter().filter_map(|t| t.split_once('@')).collect();
    let part = |of: fn(&(&str, &str)) -> String| -> Vec<String> { halves.iter().map(of).collect() };
    let (shares, above) = (part(|h| h.0.to_string()), part(|h| h.1.to_string()));
    let both = [shares, above].map(|p| list(&p.iter().map(String::as_str).collect::<Vec<_>>()));
    both.join("@")
}
