//! Whether the intervals of a fitted path hold what the path is.

use crate::conditions::Case;
use slowstart_replay::analysis::Keep;
use slowstart_replay::fit::{Estimate, fit};
use slowstart_replay::open::Kind;
use slowstart_replay::replay::{Options, read};
use slowstart_replay::wire;
use slowstart_study::run::Outcome;
use std::io::Cursor;

/// Intervals, those that hold the truth, lower bounds, and those that are not above it.
#[derive(Copy, Clone, Debug, Default)]
struct Held([u32; 4]);

impl Held {
    /// Adds an estimate of what is one of `truths`.
    fn add(&mut self, e: &Estimate, truths: &[f64]) {
        if let Some(high) = e.high {
            self.0[0] += 1;
            self.0[1] += u32::from(truths.iter().any(|t| (e.low..=high).contains(t)));
        } else {
            self.0[2] += 1;
            self.0[3] += u32::from(truths.iter().any(|t| e.low <= *t));
        }
    }
}

/// The fits of one condition.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Fits {
    all: u32,
    refused: u32,
    rate: Held,
    rtt: Held,
    queue: Held,
}

impl Fits {
    pub(crate) const HEADER: &'static str = "| Condition | Fits | Refused | Rate held | Rate at least | RTT held | Queue held | Queue at least |\n|---|---|---|---|---|---|---|---|";

    /// Fits the capture at the sender.
    pub(crate) fn add(&mut self, case: &Case, o: &Outcome) {
        let mut file = Vec::new();
        if wire::write(&mut file, &o.trace.packets, 0).is_ok() {
            let (study, seconds) = (case.checked(), o.row.duration_s);
            let link_bps = case.link_bps(&study, study.run_seed(0), seconds);
            self.add_capture(case, file, seconds, link_bps, o.row.buffer_bytes);
        }
    }

    /// Fits a capture at the sender. `seconds` is what the transfer took, `link_bps` the mean rate of the link meanwhile, and
    /// `buffer` the size of the queue in bytes.
    pub(crate) fn add_capture(
        &mut self,
        case: &Case,
        file: Vec<u8>,
        seconds: f64,
        link_bps: f64,
        buffer: Option<u64>,
    ) {
        let options = Options { keep: Keep { packets: true, ..Keep::default() }, ..Options::default() };
        let Ok(report) = read(Kind::Capture, Box::new(Cursor::new(file)), &options, |_| {}) else { return };
        let found = report.transfers.into_iter().max_by_key(|t| t.row.bytes).and_then(|t| t.findings);
        let Some(findings) = found else { return };
        self.all += 1;
        let Ok(path) = fit(&findings) else {
            self.refused += 1;
            return;
        };
        self.rate.add(&path.rate_bps, &[link_bps]);
        let times = (0..=(seconds * 100.0) as u32).map(|n| f64::from(n) / 100.0);
        let least = times.map(|at| case.base_rtt_s(at)).fold(f64::INFINITY, f64::min);
        self.rtt.add(&path.base_rtt_s, &[least, least + case.late_s]);
        if let Some(buffer) = buffer {
            self.queue.add(&path.queue_bytes, &[buffer as f64]);
        }
    }

    pub(crate) fn line(&self, name: &str) -> String {
        let of = |all: u32, held: u32| if all == 0 { "-".to_string() } else { format!("{held} of {all}") };
        let [rate, rtt, queue] = [self.rate.0, self.rtt.0, self.queue.0];
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            self.all,
            self.refused,
            of(rate[0], rate[1]),
            of(rate[2], rate[3]),
            of(rtt[0], rtt[1]),
            of(queue[0], queue[1]),
            of(queue[2], queue[3])
        )
    }
}
