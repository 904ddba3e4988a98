//! What limited a sender and what dropped its packets, as shares and counts in a row and in words.

use crate::words::number;
use serde::{Deserialize, Serialize};
use slowstart::units::{Instant, Span};
use slowstart_sim::path::Cause;
use slowstart_sim::tcp::sender::{self, LimitedBy};

/// The share of its duration in which each thing kept the sender from sending more. Null is what the engine does not
/// observe. If nothing is null, all but `busy` sum to 1.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Share of the duration in which data was written and not acknowledged (`tcpi_busy_time`).
    pub busy: Option<f64>,
    /// Share before the connection was established; this and the next nine sum to 1, or less where one is null.
    pub handshake: Option<f64>,
    /// Share limited by the congestion window of the startup, or of slow start again.
    pub startup: Option<f64>,
    /// Share limited by the congestion window of the avoidance.
    pub avoidance: Option<f64>,
    /// Share spent in loss recovery, after a spurious loss too.
    pub recovery: Option<f64>,
    /// Share limited by pacing, where the window was not full in the round trip before.
    pub pacing: Option<f64>,
    /// Share limited by the application: all that it had written was sent.
    pub application: Option<f64>,
    /// Share limited by the peer's receive window (`tcpi_rwnd_limited`); in QUIC by flow control.
    pub rwnd_limited: Option<f64>,
    /// Share limited by the send buffer (`tcpi_sndbuf_limited`).
    pub sndbuf_limited: Option<f64>,
    /// Share limited by the queue of the host's own interface.
    pub host_queue: Option<f64>,
    /// Share after the last data was sent, until the application had nothing more to write and all had arrived.
    pub last_flight: Option<f64>,
}

/// Nine decimals are read back as they were written.
fn rounded(share: f64) -> f64 {
    (share * 1e9).round() / 1e9
}

/// What a kernel counts of a connection (`TCP_INFO`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Chrono {
    /// `tcpi_busy_time`.
    pub busy: Span,
    /// `tcpi_rwnd_limited`.
    pub rwnd_limited: Span,
    /// `tcpi_sndbuf_limited`.
    pub sndbuf_limited: Span,
}

/// The sender of a kernel after an acknowledgement.
#[derive(Copy, Clone, Debug)]
pub struct State {
    /// Since the connection began.
    pub at: Span,
    /// It repairs losses (`tcp_ca_state` is recovery or loss).
    pub repairs: bool,
    /// It has sent all that there is to send.
    pub has_sent_all: bool,
}

impl Limits {
    /// Number of things that limit a sender.
    const COUNT: usize = 10;

    /// The shares of a sender whose connection began at `start`, up to `end`.
    pub fn new(spent: &sender::Limits, start: Instant, end: Instant) -> Self {
        let all = end.since(start).max(Span(1)).as_secs_f64();
        let share = |by| rounded(spent.spent(by, start, end).as_secs_f64() / all);
        let idle = share(LimitedBy::Idle);
        let handshake = share(LimitedBy::Handshake);
        Self {
            busy: Some(rounded(1.0 - handshake - idle)),
            handshake: Some(handshake),
            startup: Some(share(LimitedBy::Startup)),
            avoidance: Some(share(LimitedBy::Avoidance)),
            recovery: Some(share(LimitedBy::Recovery)),
            pacing: Some(share(LimitedBy::Pacing)),
            application: Some(rounded(share(LimitedBy::Application) + idle)),
            rwnd_limited: Some(share(LimitedBy::ReceiveWindow)),
            sndbuf_limited: Some(share(LimitedBy::SendBuffer)),
            host_queue: Some(share(LimitedBy::HostQueue)),
            last_flight: Some(share(LimitedBy::LastFlight)),
        }
    }

    /// The shares of a bulk sender of a kernel in `lasted`, which counts its limits and tells its state after each
    /// acknowledgement. That does not tell the window of the startup, that of the avoidance, the pacer, the application and the
    /// host's queue apart.
    pub fn of_kernel(states: &[State], chrono: Option<Chrono>, lasted: Span) -> Self {
        let share =
            |spent: Span| Some(rounded(spent.as_secs_f64() / lasted.max(Span(1)).as_secs_f64()).min(1.0));
        let ends = states.iter().skip(1).map(|s| s.at).chain([lasted]);
        let spent = |of: fn(&State) -> bool| {
            let each = states.iter().zip(ends.clone()).filter(|(s, _)| of(s));
            each.map(|(s, end)| end - s.at).fold(Span::ZERO, |a, b| a + b)
        };
        Self {
            busy: chrono.and_then(|c| share(c.busy)),
            handshake: states.first().and_then(|s| share(s.at)),
            recovery: share(spent(|s| s.repairs)).filter(|_| !states.is_empty()),
            rwnd_limited: chrono.and_then(|c| share(c.rwnd_limited)),
            sndbuf_limited: chrono.and_then(|c| share(c.sndbuf_limited)),
            last_flight: share(spent(|s| s.has_sent_all && !s.repairs)).filter(|_| !states.is_empty()),
            ..Self::default()
        }
    }

    /// Each thing in words, and its share.
    pub fn named(&self) -> [(&'static str, Option<f64>); Self::COUNT] {
        [
            ("handshake", self.handshake),
            ("startup's window", self.startup),
            ("avoidance's window", self.avoidance),
            ("recovery", self.recovery),
            ("pacing", self.pacing),
            ("application", self.application),
            ("receive window", self.rwnd_limited),
            ("send buffer", self.sndbuf_limited),
            ("host's queue", self.host_queue),
            ("last flight", self.last_flight),
        ]
    }

    /// The mean shares of several runs, by name; `None` for what no run observed, and empty for no runs.
    pub fn mean(all: &[Self]) -> Vec<(&'static str, Option<f64>)> {
        let Some(first) = all.first() else { return Vec::new() };
        let mean = |i: usize| {
            let known: Vec<f64> = all.iter().filter_map(|l| l.named()[i].1).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        first.named().iter().enumerate().map(|(i, (name, _))| (*name, mean(i))).collect()
    }

    /// What limited the sender, most first: `the avoidance's window 62 %, recovery 30 %, ...`. Shares below 1 %
    /// are left out. What the engine does not tell apart shares the rest.
    pub fn sentence(&self) -> String {
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.named().into_iter().partition(|(_, share)| share.is_some());
        let mut all: Vec<(String, f64)> =
            known.iter().map(|(name, share)| ((*name).to_string(), share.unwrap_or(0.0))).collect();
        if !unknown.is_empty() {
            let names: Vec<&str> = unknown.iter().map(|(name, _)| *name).collect();
            let rest = 1.0 - all.iter().map(|(_, share)| share).sum::<f64>();
            all.push((format!("{} (not told apart)", names.join(", ")), rest.max(0.0)));
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> = all
            .iter()
            .filter(|(_, share)| *share >= 0.01)
            .map(|(name, share)| format!("{name} {} %", number((share * 100.0).round())))
            .collect();
        format!(
            "Limited by, in shares of the time: {}.",
            parts.join(if unknown.is_empty() { ", " } else { "; " })
        )
    }
}

/// The data packets that the path dropped, by cause.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostBy {
    /// Data packets dropped by a full queue.
    pub queue_full: u64,
    /// Data packets dropped by active queue management.
    pub aqm: u64,
    /// Data packets dropped at random, whatever the load.
    pub random: u64,
    /// Data packets dropped in bursts, whatever the load: fades, hand-overs, `gemodel`.
    pub burst: u64,
    /// Data packets that the path names by number.
    pub scripted: u64,
    /// Data packets dropped by an outage.
    pub outage: u64,
    /// Data packets dropped by a policer.
    pub policer: u64,
}

impl LostBy {
    /// Counts by cause, in the order of [`Cause::ALL`].
    pub fn new(counts: [u64; Cause::ALL.len()]) -> Self {
        let of = |cause: Cause| counts[cause as usize];
        Self {
            queue_full: of(Cause::QueueFull),
            aqm: of(Cause::Aqm),
            random: of(Cause::Random),
            burst: of(Cause::Burst),
            scripted: of(Cause::Scripted),
            outage: of(Cause::Outage),
            policer: of(Cause::Policer),
        }
    }

    /// Counts drops.
    pub fn count(drops: impl Iterator<Item = Cause>) -> Self {
        let mut counts = [0; Cause::ALL.len()];
        drops.for_each(|cause| counts[cause as usize] += 1);
        Self::new(counts)
    }

    /// The counts of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (a, b) = (self.counts(), other.counts());
        Self::new(std::array::from_fn(|i| a[i].1 + b[i].1))
    }

    /// The mean counts of several runs, by the cause's words; empty for none.
    pub fn mean(all: &[Self]) -> Vec<(&'static str, f64)> {
        let Some(first) = all.first() else { return Vec::new() };
        let mean = |i: usize| all.iter().map(|l| l.counts()[i].1 as f64).sum::<f64>() / all.len() as f64;
        first.counts().iter().enumerate().map(|(i, (cause, _))| (drops(*cause), mean(i))).collect()
    }

    /// The causes that dropped packets, and how many.
    pub fn named(&self) -> impl Iterator<Item = (Cause, u64)> {
        self.counts().into_iter().filter(|(_, n)| *n > 0)
    }

    fn counts(&self) -> [(Cause, u64); Cause::ALL.len()] {
        [
            (Cause::QueueFull, self.queue_full),
            (Cause::Aqm, self.aqm),
            (Cause::Random, self.random),
            (Cause::Burst, self.burst),
            (Cause::Scripted, self.scripted),
            (Cause::Outage, self.outage),
            (Cause::Policer, self.policer),
        ]
    }
}

/// What drops packets for a cause, as the subject of a sentence.
pub const fn dropper(cause: Cause) -> &'static str {
    match cause {
        Cause::QueueFull => "The full queue",
        Cause::Aqm => "The queue's active management",
        Cause::Random => "Random loss",
        Cause::Burst => "Loss in bursts",
        Cause::Scripted => "The script of the path",
        Cause::Outage => "An outage",
        Cause::Policer => "A policer",
    }
}

/// What drops packets for a cause, as the heading of a column.
const fn drops(cause: Cause) -> &'static str {
    match cause {
        Cause::QueueFull => "full queue",
        Cause::Aqm => "AQM",
        Cause::Random => "random loss",
        Cause::Burst => "bursts of loss",
        Cause::Scripted => "script",
        Cause::Outage => "outage",
        Cause::Policer => "policer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_count() {
        let lost = LostBy::count([Cause::Aqm, Cause::Policer, Cause::Aqm].into_iter());
        assert_eq!(lost.named().collect::<Vec<_>>(), [(Cause::Aqm, 2), (Cause::Policer, 1)]);
        let counts = std::array::from_fn(|i| i as u64 + 1);
        assert_eq!(LostBy::new(counts).named().map(|(c, _)| c).collect::<Vec<_>>(), Cause::ALL);
        assert!(LostBy::new(counts).named().all(|(c, n)| n == c as u64 + 1));
    }

    #[test]
    fn a_sentence_names_the_largest_first_and_leaves_out_the_least() {
        let shares =
            [("avoidance", 0.7), ("pacing", 0.295), ("application", 0.005)].map(|(k, v)| (k.to_string(), v));
        let of = |known: &[&str]| {
            let mut l = serde_json::Map::new();
            for key in known {
                let share = shares.iter().find(|(k, _)| k == key).map_or(0.0, |(_, v)| *v);
                l.insert((*key).to_string(), share.into());
            }
            serde_json::from_value::<Limits>(l.into()).expect("shares").sentence()
        };
        let all = [
            "busy",
            "handshake",
            "startup",
            "avoidance",
            "recovery",
            "pacing",
            "application",
            "rwnd_limited",
            "sndbuf_limited",
            "host_queue",
            "last_flight",
        ];
        assert_eq!(of(&all), "Limited by, in shares of the time: avoidance's window 70 %, pacing 30 %.");
        let known: Vec<&str> = all.into_iter().filter(|k| !["startup", "pacing"].contains(k)).collect();
        assert_eq!(
            of(&known),
            "Limited by, in shares of the time: avoidance's window 70 %; startup's window, pacing (not told apart) 30 %."
        );
    }

    #[test]
    fn a_kernel_s_states_last_until_the_next() {
        let at = |ms: u64, repairs, has_sent_all| State { at: Span::millis(ms), repairs, has_sent_all };
        let states = [at(10, false, false), at(50, true, false), at(60, false, false), at(90, false, true)];
        let (busy, rwnd_limited) = (Span::millis(90), Span::millis(20));
        let chrono = Some(Chrono { busy, rwnd_limited, sndbuf_limited: Span::ZERO });
        let l = Limits::of_kernel(&states, chrono, Span::millis(100));
        let told = [l.handshake, l.recovery, l.last_flight, l.busy, l.rwnd_limited, l.sndbuf_limited];
        assert_eq!(told, [0.1, 0.1, 0.1, 0.9, 0.2, 0.0].map(Some));
        assert_eq!([l.startup, l.avoidance, l.pacing, l.host_queue], [None; 4]);
        let none = Limits::of_kernel(&[], None, Span::millis(100));
        assert_eq!(none, Limits::default(), "nothing was seen");
    }
}
