//! TCP small queues: how much of a connection may wait in the queue of its own host (Linux
//! `tcp_small_queue_check`, `tcp_tsq_write`, 6.18).
//!
//! What waits there is the host's, not the network's: a connection that has more than about a millisecond at
//! its pacing rate in the queue sends nothing until some of it has left.
//!
//! Departs from Linux: bytes of IP packets are counted, not the memory that they take (`truesize`); a packet
//! counts until its transmission begins, not until the interface reports its end.

use super::Sender;
use slowstart::control::Controller;
use slowstart::units::Bytes;

impl<C: Controller + Clone> Sender<C> {
    /// True if a burst of this many segments has to wait until less of the connection is in the host's queue.
    /// The sender is then [throttled](Sender::is_throttled).
    pub(super) fn small_queue_is_full(&mut self, burst: u32, again: bool) -> bool {
        let held = self.interface.and_then(|i| i.held);
        let (Some(held), Some(shift)) = (held, self.profile.tsq) else { return false };
        let bytes = Bytes(u64::from(burst) * u64::from(self.profile.packet()));
        let at_rate = self.pacer.rate().map_or(Bytes::MAX, |rate| Bytes((rate.0 / 8) >> shift));
        // Before 6.16 the last limit held only without pacing.
        let mut limit = at_rate.max(bytes * 2).min(self.profile.limit_output);
        if again {
            // tcp_xmit_retransmit_queue: retransmissions have twice the room.
            limit = limit * 2;
        }
        // Something has to be in flight that an ACK will release (tcp_rtx_queue_empty_or_single_skb).
        let waits = held > limit && self.board.out.packets > burst;
        if let Some(interface) = &mut self.interface {
            interface.throttled = waits;
        }
        waits
    }

    /// True if the last call sent less than it might have because of what waits in the host's queue: the
    /// owner calls [`Sender::transmit`] when a packet of the connection has left that.
    pub(crate) fn is_throttled(&self) -> bool {
        self.interface.is_some_and(|i| i.throttled)
    }
}
