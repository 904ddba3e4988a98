//! What is measured in a run, and what of it was observed.

use slowstart::units::Span;
use slowstart_study::run::Outcome;

/// What is measured in a run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// When the receiver had everything, seconds; infinite if it never had.
    Completion,
    /// Data packets that the network dropped.
    Lost,
    /// Of these, those sent before the startup ended.
    StartupLost,
    /// Timeouts of the retransmission timer.
    Timeouts,
    /// The longest wait at the bottleneck, seconds.
    QueueDelay,
    /// The most in flight, in bandwidth-delay products.
    PeakFlight,
    /// What the receiver's application got, Mbit/s.
    Goodput,
    /// Packets that others lost.
    OthersLost,
    /// How far others' goodput fell, as a share.
    OthersDip,
    /// The 99th percentile of others' queueing delay, seconds.
    OthersDelay,
}

impl Measure {
    /// All, in the order of their definition.
    pub const ALL: [Self; 10] = [
        Self::Completion,
        Self::Lost,
        Self::StartupLost,
        Self::Timeouts,
        Self::QueueDelay,
        Self::PeakFlight,
        Self::Goodput,
        Self::OthersLost,
        Self::OthersDip,
        Self::OthersDelay,
    ];

    /// Its name in a criterion.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion_s",
            Self::Lost => "lost_packets",
            Self::StartupLost => "startup_lost_packets",
            Self::Timeouts => "timeouts",
            Self::QueueDelay => "queue_delay_s",
            Self::PeakFlight => "peak_flight_bdp",
            Self::Goodput => "goodput_mbps",
            Self::OthersLost => "others_lost_packets",
            Self::OthersDip => "others_dip",
            Self::OthersDelay => "others_delay_s",
        }
    }

    /// What it is, with its unit.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Completion => {
                "when the receiver had everything, in seconds; a transfer that never completes is later than any other"
            }
            Self::Lost => "data packets that the network dropped",
            Self::StartupLost => "of the lost packets, those sent before the startup ended",
            Self::Timeouts => "timeouts of the retransmission timer",
            Self::QueueDelay => "the longest wait at the bottleneck, in seconds",
            Self::PeakFlight => "the most bytes in flight, in bandwidth-delay products",
            Self::Goodput => "what the receiver's application got, in Mbit/s",
            Self::OthersLost => "packets that the other flows lost",
            Self::OthersDip => "how far the goodput of the other flows fell, as a share",
            Self::OthersDelay => "the 99th percentile of the other flows' queueing delay, in seconds",
        }
    }

    /// The measure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name)
    }
}

/// The values of a run; what was not observed has none.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Observed {
    values: [Option<f64>; Measure::ALL.len()],
    /// True if the controller broke a rule, after which the run ended: it has no values.
    pub broken: bool,
    late: bool,
}

impl Observed {
    /// What an engine observed.
    pub fn of(outcome: &Outcome) -> Self {
        let (row, m) = (&outcome.row, &outcome.measured);
        let count = |n: Option<u64>| n.map(|n| n as f64);
        let seconds = |t: Option<Span>| t.map(Span::as_secs_f64);
        let others = m.others.as_ref();
        let mut all = Self { broken: m.broken.is_some(), ..Self::default() };
        if all.broken {
            return all;
        }
        all.set(Measure::Completion, row.size_bytes.map(|_| seconds(m.completed).unwrap_or(f64::INFINITY)));
        all.set(Measure::Lost, count(m.lost));
        all.set(Measure::StartupLost, count(m.startup_lost));
        all.set(Measure::Timeouts, count(m.timeouts));
        all.set(Measure::QueueDelay, seconds(m.peak_queue_delay));
        all.set(Measure::PeakFlight, m.peak_inflight.map(|b| b as f64 / row.bdp_bytes.max(1) as f64));
        all.set(Measure::Goodput, Some(row.goodput_bps as f64 / 1e6));
        all.set(Measure::OthersLost, others.map(|o| o.lost_packets as f64));
        all.set(Measure::OthersDip, others.and_then(|o| o.goodput_dip));
        all.set(Measure::OthersDelay, others.and_then(|o| o.delay_p99_s));
        all
    }

    /// Nothing, since an engine on the real clock was too late: another run might observe something.
    pub fn late() -> Self {
        Self { late: true, ..Self::default() }
    }

    /// True if the engine was too late to observe anything.
    pub const fn is_late(&self) -> bool {
        self.late
    }

    /// The value of a measure.
    pub const fn get(&self, m: Measure) -> Option<f64> {
        self.values[m as usize]
    }

    /// Only the values of these measures.
    #[must_use]
    pub fn only(self, of: &[Measure]) -> Self {
        let mut all = Self::default();
        for m in of {
            all.set(*m, self.get(*m));
        }
        all
    }

    /// These values, and those of `other` where they have none.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.values.iter_mut().zip(other.values).for_each(|(value, other)| *value = value.or(other));
        self
    }

    /// Sets the value of a measure.
    pub const fn set(&mut self, m: Measure, value: Option<f64>) {
        self.values[m as usize] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for m in Measure::ALL {
            assert_eq!(Measure::named(m.name()), Some(m));
        }
        assert_eq!(Measure::named("losses"), None);
    }
}
