//! Delivery-rate samples (draft-ietf-ccwg-bbr §4.1; Linux `tcp_rate.c`), and round trips counted by them.

use crate::units::{Bytes, Rate};
use crate::view::{Ack, Facts};

/// What an acknowledgement tells of the rate at which the path delivers.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sample {
    /// Bytes delivered between the sending of the newest packet acknowledged and now.
    pub(super) delivered: Bytes,
    /// These over the time that sending or acknowledging them took, whichever was longer.
    pub(super) rate: Rate,
    /// The rate may be the application's, or the probe's for the round trip, not the path's.
    pub(super) app_limited: bool,
}

/// Takes samples, and counts round trips by what had been delivered when a packet left.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// A packet that left when this much was delivered ends the round.
    round_ends: Bytes,
    /// Rounds ended.
    pub(super) rounds: u64,
    /// This acknowledgement ended one.
    pub(super) round_start: bool,
    /// Packets that left while the window was held low, by what had been delivered then: from the first to the last.
    held: Option<(Bytes, Bytes)>,
}

impl Rates {
    /// The sample of this acknowledgement, if it brings one.
    pub(super) fn take(&mut self, f: &Facts, a: &Ack) -> Option<Sample> {
        self.round_start = false;
        if a.delivered.0 == 0 {
            return None;
        }
        let sent = a.newest;
        let delivered = f.delivered - sent.delivered;
        let sending = sent.at.since(sent.first_sent_at);
        let acknowledging = f.now.since(sent.delivered_at);
        let interval = sending.max(acknowledging);
        // What seems to have come back sooner than light does is an artefact, such as a retransmission's.
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

    /// A round begins here: it ends with the first packet sent from now on.
    pub(super) fn begin_round(&mut self, f: &Facts) {
        self.round_ends = f.delivered;
    }

    /// The window is being held low: what leaves now says nothing of the path (`MarkConnectionAppLimited`).
    pub(super) fn hold(&mut self, f: &Facts, begins: bool) {
        let from = self.held.filter(|_| !begins).map_or(f.delivered, |(from, _)| from);
        self.held = Some((from, f.delivered + f.inflight));
    }
}
