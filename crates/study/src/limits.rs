//! What limited a sender and what dropped its packets, as shares and counts in a row and in words.

use crate::words::number;
use serde::{Deserialize, Serialize};
use slowstart::units::{Instant, Span};
use slowstart_sim::path::Cause;
use slowstart_sim::tcp::sender::{self, LimitedBy};

/// The share of its duration in which each thing kept the sender from sending more. All but `busy` sum to 1.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Share of the duration in which data was written and not acknowledged (`tcpi_busy_time`).
    pub busy: f64,
    /// Share before the connection was established; this and the next nine sum to 1.
    pub handshake: f64,
    /// Share limited by the congestion window of the startup, or of slow start again.
    pub startup: f64,
    /// Share limited by the congestion window of the avoidance.
    pub avoidance: f64,
    /// Share spent in loss recovery, after a spurious loss too.
    pub recovery: f64,
    /// Share limited by pacing, where the window was not full in the round trip before.
    pub pacing: f64,
    /// Share limited by the application: all that it had written was sent.
    pub application: f64,
    /// Share limited by the peer's receive window (`tcpi_rwnd_limited`).
    pub rwnd_limited: f64,
    /// Share limited by the send buffer (`tcpi_sndbuf_limited`).
    pub sndbuf_limited: f64,
    /// Share limited by the queue of the host's own interface.
    pub host_queue: f64,
    /// Share after the last data was sent, until the application had nothing more to write and all had arrived.
    pub last_flight: f64,
}

impl Limits {
    /// Number of things that limit a sender.
    const COUNT: usize = 10;

    /// The shares of a sender whose connection began at `start`, up to `end`.
    pub fn new(spent: &sender::Limits, start: Instant, end: Instant) -> Self {
        let all = end.since(start).max(Span(1)).as_secs_f64();
        // Nine decimals are read back as they were written.
        let rounded = |share: f64| (share * 1e9).round() / 1e9;
        let share = |by| rounded(spent.spent(by, start, end).as_secs_f64() / all);
        let idle = share(LimitedBy::Idle);
        let handshake = share(LimitedBy::Handshake);
        Self {
            busy: rounded(1.0 - handshake - idle),
            handshake,
            startup: share(LimitedBy::Startup),
            avoidance: share(LimitedBy::Avoidance),
            recovery: share(LimitedBy::Recovery),
            pacing: share(LimitedBy::Pacing),
            application: rounded(share(LimitedBy::Application) + idle),
            rwnd_limited: share(LimitedBy::ReceiveWindow),
            sndbuf_limited: share(LimitedBy::SendBuffer),
            host_queue: share(LimitedBy::HostQueue),
            last_flight: share(LimitedBy::LastFlight),
        }
    }

    /// Each thing in words, and its share.
    pub fn named(&self) -> [(&'static str, f64); Self::COUNT] {
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

    /// The mean shares of several runs, by name; empty for none.
    pub fn mean(all: &[Self]) -> Vec<(&'static str, f64)> {
        let Some(first) = all.first() else { return Vec::new() };
        let mean = |i: usize| all.iter().map(|l| l.named()[i].1).sum::<f64>() / all.len() as f64;
        first.named().iter().enumerate().map(|(i, (name, _))| (*name, mean(i))).collect()
    }

    /// What limited the sender, most first: `the avoidance's window 62 %, recovery 30 %, ...`. Shares below 1 %
    /// are left out.
    pub fn sentence(&self) -> String {
        let mut all = self.named().to_vec();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> = all
            .iter()
            .filter(|(_, share)| *share >= 0.01)
            .map(|(name, share)| format!("{name} {} %", number((share * 100.0).round())))
            .collect();
        format!("Limited by, in shares of the time: {}.", parts.join(", "))
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
        let l = Limits { avoidance: 0.7, pacing: 0.295, application: 0.005, ..Limits::default() };
        assert_eq!(l.sentence(), "Limited by, in shares of the time: avoidance's window 70 %, pacing 30 %.");
    }
}
