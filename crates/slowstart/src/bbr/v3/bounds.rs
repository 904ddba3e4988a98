//! What losses say of how much may be in flight, and how fast (draft-ietf-ccwg-bbr §5.5.10, §5.5.11).

use super::{Mode, Sample};
use crate::bbr::MIN_SEGMENTS;
use crate::units::{Bytes, Rate};
use crate::view::{Ack, Congestion, Facts, Sent};

/// The share of a flight that may be lost in a round trip of probing (`LossThresh`), in per cent.
const LOSS_PERCENT: u64 = 2;
/// What is kept of a bound at most in a round trip with losses (`Beta`), in tenths.
pub(super) const KEPT_TENTHS: u64 = 7;
/// What is left free of `inflight_longterm` for others (`Headroom`), in per cent.
const HEADROOM_PERCENT: u64 = 15;

/// More of the flight that this packet left in was lost than a probe may cost.
pub(super) fn too_high(f: &Facts, packet: &Sent) -> bool {
    f.lost - packet.lost > packet.inflight.scale(LOSS_PERCENT, 100)
}

/// The bounds, and the deliveries and losses of the present round that they follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// The flight above which a probe lost too much.
    pub(super) inflight_longterm: Option<Bytes>,
    /// What losses since the last probe leave of the flight, and of the bandwidth.
    pub(super) inflight_shortterm: Option<Bytes>,
    pub(super) bandwidth_shortterm: Option<Rate>,
    /// The most delivered within a round trip, in the last round: what the path still carries.
    pub(super) inflight_latest: Bytes,
    bandwidth_latest: Rate,
    /// Something was lost in this round, in so many ranges.
    pub(super) lossy: bool,
    pub(super) ranges: u32,
    /// A packet that left when this much was delivered ends the round; this acknowledgement did.
    round_ends: Bytes,
    pub(super) round_start: bool,
    /// What an episode that lost nothing gives back: the bounds, and the probe that it ended.
    before: (Option<Bytes>, Option<Bytes>, Option<Rate>),
    pub(super) undo_mode: Option<Mode>,
}

/// `None` is infinite.
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

    /// `UpdateCongestionSignals`, but for the bandwidth: once a round, and not while a probe runs, the short-term bounds
    /// follow what was delivered.
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

    /// `NoteLoss`: the first loss of a round begins one.
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

    /// Nothing was lost: no bound is lower than before. Answers the probe that the losses ended.
    pub(super) fn undo(&mut self) -> Option<Mode> {
        self.lossy = false;
        self.inflight_longterm = greater(self.inflight_longterm, self.before.0);
        self.inflight_shortterm = greater(self.inflight_shortterm, self.before.1);
        self.bandwidth_shortterm = greater(self.bandwidth_shortterm, self.before.2);
        self.undo_mode.take()
    }

    /// `inflight_longterm`, less the room left for others (`InflightWithHeadroom`).
    pub(super) fn with_headroom(&self, f: &Facts) -> Option<Bytes> {
        let bound = self.inflight_longterm?;
        let room = bound.scale(HEADROOM_PERCENT, 100).max(f.mss);
        Some((bound - room).max(f.mss * MIN_SEGMENTS))
    }

    /// The window that they allow (`BoundCwndForModel`).
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
