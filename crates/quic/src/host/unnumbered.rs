//! [`Host`] for a stack that names no packet to its controller, only when it was sent and how long it is.
//!
//! A record is then a transmission: what left at one moment, whose acknowledgements come in parts. A
//! transmission may contain a packet that elicits no acknowledgement, so records are dropped by age, and the
//! stack's own count of bytes in flight is believed.

use super::{Batch, Host};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant};
use slowstart::view::{Sent, Signal};

/// A record is dropped once a packet was acknowledged that was sent this many smoothed round trips later: its
/// packets are lost by the time threshold of RFC 9002 §6.1.2 (9/8 of one), and a spurious loss is not
/// reported.
const KEPT: u64 = 4;

impl<C: Controller> Host<C> {
    /// `bytes` bytes of a packet that was sent at `sent` were newly acknowledged.
    pub fn on_bytes_acked(&mut self, now: Instant, sent: Instant, bytes: Bytes, app_limited: bool) {
        self.advance(now);
        if sent < self.path_since {
            return;
        }
        let bytes = bytes.min(super::LARGEST);
        let from = self.packets.partition_point(|p| p.sent.at < sent);
        let known = self.packets.get(from).filter(|p| p.sent.at == sent);
        self.batch.used |= known.is_some_and(|p| p.sent.mark <= self.used);
        // The order of sending of a transmission that is unknown or forgotten is unknown too: it advances no
        // round.
        let packet = known.map_or(Sent { at: sent, bytes, ..Sent::default() }, |p| Sent { bytes, ..p.sent });
        if self.batch.newest.is_none() {
            self.batch.prior_inflight = self.inflight;
        }
        self.inflight -= bytes;
        self.batch.bytes += bytes;
        self.batch.app_limited = app_limited;
        if self.batch.newest.is_none_or(|n| n.mark <= packet.mark) {
            self.batch.newest = Some(packet);
        }
    }

    /// All packets of an ACK frame were handed over. The frame brings a round-trip sample if it acknowledges
    /// a packet that was sent later than any acknowledged before.
    pub fn on_bytes_ack_end(&mut self, now: Instant) {
        self.advance(now);
        let batch: Batch = std::mem::take(&mut self.batch);
        let Some(newest) = batch.newest else { return };
        let samples = newest.mark > self.newest.mark;
        self.acknowledge(batch, newest, samples);
        let Some(srtt) = self.srtt else { return };
        let recent = self.newest.at;
        while self.packets.front().is_some_and(|p| p.sent.at + srtt * KEPT < recent) {
            self.packets.pop_front();
        }
    }

    /// `lost` bytes were declared lost, in packets of which the newest was sent at `sent`; zero bytes stand
    /// for marks by the network. How many packets they were is estimated from their size.
    pub fn on_bytes_lost(&mut self, now: Instant, sent: Instant, persistent: bool, lost: Bytes) {
        self.advance(now);
        if sent < self.path_since {
            return;
        }
        let lost = lost.min(self.sent_total);
        if lost > Bytes::ZERO {
            self.inflight -= lost;
            self.lost += lost;
            self.counters.lost_packets += lost.0.div_ceil(self.mss.0);
            self.first_loss.get_or_insert(self.now);
        }
        let signal = match lost {
            _ if persistent => Signal::Timeout,
            Bytes::ZERO => Signal::Ecn,
            _ => Signal::Loss,
        };
        self.on_congestion(now, sent, signal, lost);
    }
}
