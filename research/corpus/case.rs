//! What one connection of the corpus is: path, congestion control, settings of both hosts, and application,
//! drawn from a seed.

use serde::Deserialize;
use serde_json::{Value, json};
use slowstart_sim::random::Stream;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What limits a connection besides its congestion window.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One download without a pause.
    Bulk,
    /// The client sends.
    Upload,
    /// The sender's application pauses between blocks.
    Pauses,
    /// The sender's application writes at a rate of its own.
    Paced,
    /// The client's receive buffer is fixed and often small.
    Window,
    /// The client stops reading for a time, so that its receive window closes.
    ZeroWindow,
    /// The sender's send buffer is fixed and often small.
    SendBuffer,
    /// Few packets.
    Short,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Upload => "upload",
            Self::Pauses => "pauses",
            Self::Paced => "paced application",
            Self::Window => "receive window",
            Self::ZeroWindow => "zero window",
            Self::SendBuffer => "send buffer",
            Self::Short => "short",
        }
    }
}

/// Controls of the corpus with their weights: those of the kernel, and the objects of this project.
pub(crate) const CONTROLS: &[(&str, u64)] = &[
    ("cubic", 40),
    ("reno", 14),
    ("hystart++", 12),
    ("search", 12),
    ("standard", 10),
    ("limited", 4),
    ("ess", 4),
    ("stopeg", 4),
];

/// Paths of a corpus of senders.
const PATHS: u64 = 100;

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) number: u64,
    pub(crate) seed: u64,
    /// Longest time that it may take.
    pub(crate) longest: Duration,
    pub(crate) kind: Kind,
    pub(crate) path: String,
    pub(crate) control: String,
    /// Bytes to send, block by block, with the pause after each block in milliseconds.
    pub(crate) blocks: Vec<(u64, u64)>,
    /// `SO_RCVBUF` of the receiver and `SO_SNDBUF` of the sender, if set.
    pub(crate) receive_buffer: Option<usize>,
    pub(crate) send_buffer: Option<usize>,
    /// After how many bytes the receiver stops to read, and for how many milliseconds.
    pub(crate) stop_reading: Option<(u64, u64)>,
    pub(crate) initial_window: Option<u64>,
    /// Files below `/proc/sys/net/ipv4` with their values, at both ends.
    pub(crate) settings: Vec<(&'static str, &'static str)>,
    /// Super-segments in the captures, as offloads of the interfaces show them.
    pub(crate) offload: bool,
    /// The condition of a case that was [read](Case::read).
    pub(crate) condition: Option<String>,
}

/// A line that `certain FROM TO cases` prints (`crates/replay/examples/certain`).
#[derive(Clone, Debug, Deserialize)]
struct Line {
    condition: String,
    seed: u64,
    path: String,
    delay_ms: Vec<u32>,
    control: String,
    bytes: u64,
    rmem: Option<u64>,
    send_buffer: Option<u64>,
}

/// Draws one of these by weight.
fn pick<T: Copy>(s: &mut Stream, all: &[(T, u64)]) -> T {
    let mut n = s.below(all.iter().map(|a| a.1).sum());
    for (what, weight) in all {
        if n < *weight {
            return *what;
        }
        n -= weight;
    }
    all[0].0
}

/// Draws from `low` to `high` with equal chances for equal ratios.
fn ratio(s: &mut Stream, low: f64, high: f64) -> f64 {
    let share = s.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    low * (high / low).powf(share)
}

impl Case {
    pub(crate) fn draw(corpus: u64, number: u64) -> Self {
        let seed = Stream::named(corpus, &format!("case {number}")).any();
        let s = &mut Stream::named(seed, "case");
        let kind = pick(
            s,
            &[
                (Kind::Bulk, 40),
                (Kind::Upload, 14),
                (Kind::Pauses, 10),
                (Kind::Paced, 6),
                (Kind::Window, 9),
                (Kind::ZeroWindow, 8),
                (Kind::SendBuffer, 7),
                (Kind::Short, 6),
            ],
        );
        let (path, bdp) = draw_path(s);
        // Most transfers outlast slow start by some round trips; some do not.
        let size = ((bdp * ratio(s, 3.0, 30.0)) as u64).clamp(200_000, 5_000_000);
        let mut blocks = vec![(size, 0)];
        match kind {
            Kind::Short => blocks = vec![(ratio(s, 3_000.0, 150_000.0) as u64, 0)],
            Kind::Pauses => {
                let n = 3 + s.below(8);
                blocks = (0..n)
                    .map(|_| (ratio(s, 0.1, 2.0) * size as f64 / n as f64, 20 + s.below(900)))
                    .map(|b| (b.0 as u64, b.1))
                    .collect();
            }
            Kind::Paced => {
                // 20 ms of a rate between a fifth and nine tenths of the path's.
                let each = (bdp / 5.0 * ratio(s, 0.2, 0.9)).max(400.0) as u64;
                blocks = vec![(each, 20); (size / each).clamp(20, 250) as usize];
            }
            _ => {}
        }
        let wide = (bdp * 4.0).max(100_000.0);
        let receive_buffer = match kind {
            Kind::Window => Some(ratio(s, 8_000.0, wide) as usize),
            Kind::ZeroWindow => Some(ratio(s, 16_000.0, 400_000.0) as usize),
            _ => None,
        };
        let mut settings = Vec::new();
        for (chance, key, value) in [
            (150, "tcp_timestamps", "0"),
            (60, "tcp_sack", "0"),
            (80, "tcp_recovery", "0"),
            (60, "tcp_early_retrans", "0"),
            (100, "tcp_slow_start_after_idle", "0"),
            (30, "tcp_window_scaling", "0"),
            (60, "tcp_dsack", "0"),
        ] {
            if s.below(1000) < chance {
                settings.push((key, value));
            }
        }
        Self {
            number,
            seed,
            longest: Duration::from_secs(12),
            kind,
            path,
            control: pick(s, CONTROLS).to_string(),
            blocks,
            receive_buffer,
            send_buffer: (kind == Kind::SendBuffer).then(|| ratio(s, 8_000.0, wide) as usize),
            stop_reading: (kind == Kind::ZeroWindow).then(|| (s.below(size / 2), 300 + s.below(2500))),
            initial_window: (s.below(100) < 25).then(|| [2, 3, 4, 16, 32][s.below(5) as usize]),
            settings,
            offload: s.below(2) == 0,
            condition: None,
        }
    }

    /// Reads a case from a line; writes its trace of delays to the folder.
    pub(crate) fn read(number: u64, line: &str, out: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let line: Line = serde_json::from_str(line)?;
        let mut path = line.path;
        if !line.delay_ms.is_empty() {
            let file = out.join(format!("{number:04}.delay"));
            let lines: Vec<String> = line.delay_ms.iter().map(|ms| format!("{ms}\n")).collect();
            fs::write(&file, lines.concat())?;
            let name = fs::canonicalize(&file)?;
            path = path.replace("delay_trace=delay", &format!("delay_trace={}", name.display()));
        }
        Ok(Self {
            number,
            seed: line.seed,
            longest: Duration::from_secs(30),
            kind: Kind::Bulk,
            path,
            control: line.control,
            blocks: vec![(line.bytes, 0)],
            // Linux doubles the values of SO_RCVBUF and SO_SNDBUF.
            receive_buffer: line.rmem.map(|b| b as usize / 2),
            send_buffer: line.send_buffer.map(|b| b as usize / 2),
            stop_reading: None,
            initial_window: None,
            settings: Vec::new(),
            offload: false,
            condition: Some(line.condition),
        })
    }

    /// A download or upload without a pause that outlasts most slow starts, with one of these controls, over one of [`PATHS`]
    /// paths.
    pub(crate) fn draw_sender(corpus: u64, number: u64, controls: &[String]) -> Self {
        let mut case = Self::draw(corpus, number);
        let s = &mut Stream::named(corpus, &format!("path {}", number % PATHS));
        let (path, bdp) = draw_path(s);
        let size = ((bdp * ratio(s, 15.0, 60.0)) as u64).clamp(1_000_000, 60_000_000);
        let s = &mut Stream::named(corpus, &format!("sender {number}"));
        case.longest = Duration::from_secs(20);
        case.kind = pick(s, &[(Kind::Bulk, 3), (Kind::Upload, 1)]);
        case.control.clone_from(&controls[s.below(controls.len() as u64) as usize]);
        (case.path, case.blocks) = (path, vec![(size, 0)]);
        (case.receive_buffer, case.send_buffer, case.stop_reading) = (None, None, None);
        case
    }

    /// As one line of the index.
    pub(crate) fn describe(&self) -> Value {
        let settings: Vec<String> = self.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let kind = self.condition.as_deref().unwrap_or(self.kind.name());
        json!({
            "case": self.number, "seed": self.seed, "kind": kind, "path": self.path,
            "control": self.control, "bytes": self.blocks.iter().map(|b| b.0).sum::<u64>(),
            "receive_buffer": self.receive_buffer, "send_buffer": self.send_buffer,
            "initial_window": self.initial_window, "settings": settings, "offload": self.offload,
        })
    }
}

/// A path, and an estimate of its bandwidth-delay product in bytes.
fn draw_path(s: &mut Stream) -> (String, f64) {
    if s.below(100) < 25 {
        let (name, bdp) = pick(
            s,
            &[(("lte", 150e3), 4), (("leo", 250e3), 3), (("wifi-weak", 150e3), 3), (("geo", 3e6), 1)],
        );
        return (name.to_string(), bdp);
    }
    let (rate, rtt) = (ratio(s, 1.0, 40.0), ratio(s, 8.0, 300.0));
    let mut path = format!("rate={:.0}kbit rtt={rtt:.1}ms queue={:.2}bdp", rate * 1000.0, ratio(s, 0.3, 5.0));
    if s.below(100) < 30 {
        let _ = write!(path, " jitter={:.2}ms", rtt * ratio(s, 0.005, 0.1));
    }
    if s.below(100) < 20 {
        let _ = write!(path, " ack_jitter={:.2}ms", rtt * ratio(s, 0.005, 0.15));
    }
    if s.below(100) < 18 {
        let _ = write!(path, " ack_aggregate={}ms", [2, 5, 10, 20, 40][s.below(5) as usize]);
    }
    if s.below(100) < 22 {
        let _ = write!(path, " loss={:.3}%", ratio(s, 0.01, 1.0));
    }
    (path, rate * rtt * 125.0)
}
