//! [`Host`] for a stack that carries a record of the controller's with each packet, and hands it back when
//! the packet is acknowledged or lost. The host then keeps no list of packets in flight.

use super::{Batch, Host, LARGEST};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant};
use slowstart::view::{Sent, Signal};

impl<C: Controller> Host<C> {
    /// An ack-eliciting packet of `bytes` bytes was sent. `app_limited` is true if the application has no
    /// more to send. The stack carries the record.
    pub fn on_record_sent(&mut self, now: Instant, bytes: Bytes, app_limited: bool) -> Sent {
        self.app_limited = app_limited;
        self.send(now, bytes)
    }

    /// `bytes` bytes were newly acknowledged, the newest of them in the packet of the record `newest`.
    /// `samples` is true if that brings a round-trip sample.
    pub fn on_record_acked(&mut self, now: Instant, newest: Sent, bytes: Bytes, samples: bool) {
        self.advance(now);
        if newest.at < self.path_since {
            return;
        }
        let bytes = bytes.min(self.sent_total);
        let batch = Batch {
            bytes,
            newest: Some(newest),
            largest: 0,
            app_limited: newest.app_limited,
            used: newest.mark <= self.used,
            prior_inflight: self.inflight,
        };
        self.inflight -= bytes;
        self.acknowledge(batch, newest, samples);
    }

    /// The packet of the record `sent` was declared lost.
    pub fn on_record_lost(&mut self, now: Instant, sent: Sent, persistent: bool) {
        self.advance(now);
        if sent.at < self.path_since {
            return;
        }
        let bytes = sent.bytes.min(LARGEST);
        self.inflight -= bytes;
        self.lost += bytes;
        self.counters.lost_packets += 1;
        self.first_loss.get_or_insert(self.now);
        let signal = if persistent { Signal::Timeout } else { Signal::Loss };
        self.on_congestion(now, sent.at, signal, bytes);
    }

    /// `bytes` bytes left the flight, neither acknowledged nor lost: the keys of a handshake are discarded.
    pub fn on_discarded(&mut self, bytes: Bytes) {
        self.inflight -= bytes;
    }
}
