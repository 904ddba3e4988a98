//! The table of a transfer that was continued in the simulator: what was observed, then each startup, the
//! quickest first.

use crate::fork::ForkResult;
use crate::observer::TimedEvent;
use crate::transfer::{Fork, Transfer};
use slowstart_study::words::number;

/// The names of the columns.
pub const HEADERS: [&str; 9] =
    ["startup", "from (s)", "exit", "at (s)", "window", "class", "done (s)", "lost", "queue (ms)"];

/// The lines, each with a cell for each of [`HEADERS`]. Windows are in segments.
pub fn lines(t: &Transfer, fork: &Fork) -> Vec<[String; 9]> {
    let none = || "-".to_string();
    let time = |s: Option<f64>| s.map_or_else(none, number);
    let segments = |bytes: u64| number((bytes as f64 / t.mss_bytes.max(1) as f64).round());
    let line = |f: &ForkResult| {
        let exit = |of: &dyn Fn(&TimedEvent) -> String| f.exit.as_ref().map_or_else(none, of);
        [
            f.startup.clone(),
            number(f.from_s),
            exit(&|e| e.what.clone()),
            exit(&|e| number(e.time_s)),
            exit(&|e| segments(e.cwnd_bytes)),
            f.class.how().to_string(),
            time(f.done_s),
            number(f.lost_packets as f64),
            number(f.peak_queue_delay_s * 1e3),
        ]
    };
    let observed = [
        "as observed".to_string(),
        none(),
        none(),
        time(t.exit.as_ref().map(|e| e.time_s)),
        t.exit.as_ref().map_or_else(none, |e| segments(e.cwnd_bytes)),
        t.class.how().to_string(),
        number(t.duration_s),
        t.retransmitted_packets.map_or_else(none, |n| number(n as f64)),
        time(t.peak_delay_s.map(|d| d * 1e3)),
    ];
    let mut all: Vec<&ForkResult> = fork.startups.iter().collect();
    all.sort_by(|a, b| a.done_s.unwrap_or(f64::MAX).total_cmp(&b.done_s.unwrap_or(f64::MAX)));
    std::iter::once(observed).chain(all.into_iter().map(line)).collect()
}
