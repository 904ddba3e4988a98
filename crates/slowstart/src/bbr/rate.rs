//! Delivery-rate samples (draft-ietf-ccwg-bbr §4.1; Linux `tcp_rate.c`), and round trips counted by them.

use crate::units::{Bytes, Rate};
use crate::view::{Ack, Facts};

/// A delivery-rate sample.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sample {
    /// Bytes delivered from the sending of the most recently sent packet acknowledged until now.
    pub(super) delivered: Bytes,
    /// `delivered` divided by the longer of the times that sending and acknowledging it took.
    pub(super) rate: Rate,
    /// True if the application or the window of `ProbeRTT` limited the rate, and not the path.
    pub(super) app_limited: bool,
}

/// Takes samples, and counts round trips by the bytes delivered when a packet was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// The round ends with a packet that was sent when at least this much was delivered.
    round_ends: Bytes,
    /// Number of rounds completed.
    pub(super) rounds: u64,
    /// True if the current ACK ended a round.
    pub(super) round_start: bool,
    /// Packets sent while the window was limited for `ProbeRTT`: the bytes delivered when the first and the
    /// last were sent.
    held: Option<(Bytes, Bytes)>,
    /// True if less than a segment waited to be sent when the last ACK came.
    pub(super) starved: bool,
}

impl Rates {
    /// Returns the sample of this ACK, or `None` if it has none.
    pub(super) fn take(&mut self, f: &Facts, a: &Ack) -> Option<Sample> {
        self.round_start = false;
        self.starved = f.unsent.is_none_or(|unsent| unsent < f.mss);
        if a.delivered.0 == 0 {
            return None;
        }
        let sent = a.newest;
        let delivered = f.delivered - sent.delivered;
        let sending = sent.at.since(sent.first_sent_at);
        let acknowledging = f.now.since(sent.delivered_at);
        let interval = sending.max(acknowledging);
        // An interval below the minimum RTT is an error of measurement, for example of a retransmission.
        if f.min_rtt.is_some_and(|least| interval < least) {
            return None;
        }
        let rate = Rate::new(delivered, interval)?;
        if sent.delivered >= self.round_ends {
            self.begin_round(f);
            self.rounds += 1;
            self.round_start = true;
        }
        let held = self.held.is_some_and(|(from, to)| (from..=to).contains(&sent.delivered));
        Some(Sample { delivered, rate, app_limited: sent.app_limited || held })
    }

    /// Begins a round, which ends with the first packet sent from now on.
    pub(super) fn begin_round(&mut self, f: &Facts) {
        self.round_ends = f.delivered;
    }

    /// Marks the samples of packets sent from now on as limited, because the window is
    /// (`MarkConnectionAppLimited`). `begins` is true for the first call of a visit to `ProbeRTT`.
    pub(super) fn limit_samples(&mut self, f: &Facts, begins: bool) {
        let from = self.held.filter(|_| !begins).map_or(f.delivered, |(from, _)| from);
        self.held = Some((from, f.delivered + f.inflight));
    }
}
