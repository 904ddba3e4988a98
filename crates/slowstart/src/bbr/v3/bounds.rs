//! The limits that losses set on data in flight and rate (draft-ietf-ccwg-bbr §5.5.10, §5.5.11).

use super::{Mode, Sample};
use crate::bbr::shared::MIN_SEGMENTS;
use crate::units::{Bytes, Rate};
use crate::view::{Ack, Congestion, Facts, Sent};

/// The share of the data in flight that may be lost per round trip of probing (`LossThresh`), in percent.
const LOSS_PERCENT: u64 = 2;
/// The factor by which a short-term limit falls per round trip with losses (`Beta`), in tenths.
pub(super) const KEPT_TENTHS: u64 = 7;
/// The share of `inflight_longterm` that is left to other flows (`Headroom`), in percent.
const HEADROOM_PERCENT: u64 = 15;

/// Returns true if more of the data in flight when this packet was sent has been lost than a probe permits.
pub(super) fn too_high(f: &Facts, packet: &Sent) -> bool {
    f.lost - packet.lost > packet.inflight.scale(LOSS_PERCENT, 100)
}

/// The limits, and the deliveries and losses of the current round from which they follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// The data in flight above which a probe lost too much.
    pub(super) inflight_longterm: Option<Bytes>,
    /// The limits of data in flight and bandwidth until the next probe.
    pub(super) inflight_shortterm: Option<Bytes>,
    pub(super) bandwidth_shortterm: Option<Rate>,
    /// The maximum delivered within one round trip, in the last round.
    pub(super) inflight_latest: Bytes,
    bandwidth_latest: Rate,
    /// There was loss in this round, and in how many ranges.
    pub(super) lossy: bool,
    pub(super) ranges: u32,
    /// The round ends with a packet sent when at least this much was delivered; `round_start`: this ACK ended
    /// one.
    round_ends: Bytes,
    pub(super) round_start: bool,
    /// The limits, and the mode of the probe, before an episode that may prove spurious.
    before: (Option<Bytes>, Option<Bytes>, Option<Rate>),
    pub(super) undo_mode: Option<Mode>,
}

/// The larger of two limits, where `None` is infinite.
fn greater<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.zip(b).map(|(a, b)| a.max(b))
}

impl Bounds {
    /// `UpdateLatestDeliverySignals`
    pub(super) fn note_delivery(&mut self, f: &Facts, a: &Ack, s: &Sample) {
        self.bandwidth_latest = self.bandwidth_latest.max(s.rate);
        self.inflight_latest = self.inflight_latest.max(s.delivered);
        self.round_start = a.newest.delivered >= self.round_ends;
        if self.round_start {
            self.round_ends = f.delivered;
        }
    }

    /// `UpdateCongestionSignals` without the bandwidth: once per round, and not during a probe, the
    /// short-term limits follow what was delivered.
    pub(super) fn end_loss_round(&mut self, probes: bool, bandwidth: Rate, window: Bytes) {
        if !self.round_start {
            return;
        }
        if self.lossy && !probes {
            let rate = self.bandwidth_shortterm.unwrap_or(bandwidth).scale(KEPT_TENTHS, 10);
            self.bandwidth_shortterm = Some(self.bandwidth_latest.max(rate));
            let flight = self.inflight_shortterm.unwrap_or(window).scale(KEPT_TENTHS, 10);
            self.inflight_shortterm = Some(self.inflight_latest.max(flight));
        }
        self.lossy = false;
    }

    /// `AdvanceLatestDeliverySignals`
    pub(super) fn begin_delivery_round(&mut self, s: &Sample) {
        if self.round_start {
            self.bandwidth_latest = s.rate;
            self.inflight_latest = s.delivered;
        }
    }

    /// `ResetCongestionSignals`
    pub(super) fn forget_round(&mut self) {
        self.lossy = false;
        self.bandwidth_latest = Rate(0);
        self.inflight_latest = Bytes::ZERO;
    }

    /// `ResetShortTermModel`
    pub(super) fn forget_short_term(&mut self) {
        self.bandwidth_shortterm = None;
        self.inflight_shortterm = None;
    }

    /// `NoteLoss`: the first loss of a round begins a new one.
    pub(super) fn note_loss(&mut self, f: &Facts, c: &Congestion) {
        if !self.lossy {
            self.round_ends = f.delivered;
            self.ranges = 0;
        }
        self.lossy = true;
        self.ranges += c.lost_ranges;
    }

    /// `SaveStateUponLoss`
    pub(super) fn save(&mut self) {
        self.undo_mode = None;
        self.before = (self.inflight_longterm, self.inflight_shortterm, self.bandwidth_shortterm);
    }

    /// Raises each limit to its saved value after a spurious episode. Returns the mode of the probe that the
    /// losses had ended.
    pub(super) fn undo(&mut self) -> Option<Mode> {
        self.lossy = false;
        self.inflight_longterm = greater(self.inflight_longterm, self.before.0);
        self.inflight_shortterm = greater(self.inflight_shortterm, self.before.1);
        self.bandwidth_shortterm = greater(self.bandwidth_shortterm, self.before.2);
        self.undo_mode.take()
    }

    /// Returns `inflight_longterm` less the share left to other flows (`InflightWithHeadroom`).
    pub(super) fn with_headroom(&self, f: &Facts) -> Option<Bytes> {
        let bound = self.inflight_longterm?;
        let room = bound.scale(HEADROOM_PERCENT, 100).max(f.mss);
        Some((bound - room).max(f.mss * MIN_SEGMENTS))
    }

    /// Returns the largest window that the limits permit (`BoundCwndForModel`).
    pub(super) fn window(&self, f: &Facts, mode: Mode) -> Bytes {
        let long = match mode {
            Mode::Down | Mode::Refill | Mode::Up => self.inflight_longterm,
            Mode::ProbeRtt | Mode::Cruise => self.with_headroom(f),
            Mode::Startup | Mode::Drain => None,
        };
        let bound = [long, self.inflight_shortterm].into_iter().flatten().min();
        bound.map_or(Bytes::MAX, |b| b.max(f.mss * MIN_SEGMENTS))
    }
}
