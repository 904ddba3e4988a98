//! What the headers of an endpoint's segments contain, and how what its halves send becomes segments.

use crate::path::Ecn;
use crate::tcp::ecn::{ACE, Feedback};
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{self, ACK, CWR, FIN, PSH, Segment, Wire, milliseconds};
use crate::tcp::sender::Outgoing;
use slowstart::units::Instant;

/// Header values that the handshake negotiated.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) isn: u32,
    pub(super) peer_isn: u32,
    pub(super) peer_scale: u8,
    pub(super) scale: u8,
    /// True if both ends use window scaling (RFC 7323 §2.2); otherwise neither does.
    pub(super) scaled: bool,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// The feedback about marks on which both ends agreed.
    pub(super) feedback: Feedback,
    /// The codepoint of new data, of data sent again, and (twice) of all else.
    pub(super) ect: [Ecn; 4],
    /// True if the connection is established, without receive offload, ECN, a slow reader and a CPU that
    /// takes time. Written by `set_state` alone.
    pub(super) plain: bool,
}

/// The window to advertise and the flags about marks, for a connection that is not plain.
#[inline(never)]
fn special_state(now: Instant, rx: &mut Receiver) -> (u64, u8) {
    (rx.advertise_window(now), rx.ecn.flags)
}

impl Header {
    /// Completes `s` with the acknowledgement number, the window, the timestamp and, if `held`, SACK blocks,
    /// and sends it as a train of `n` consecutive segments. Always inlined, so that the segment stays in
    /// registers (docs/dev/engine.md).
    #[allow(clippy::inline_always, reason = "each packet passes here, from two places")]
    #[inline(always)]
    pub(super) fn send_train(
        &self,
        now: Instant,
        rx: &mut Receiver,
        held: bool,
        s: Segment,
        n: u32,
        out: &mut impl Wire,
    ) {
        let (window, ace) = if self.plain { (rx.advertise_at_once(), 0) } else { special_state(now, rx) };
        let s = Segment {
            ack: segment::wrap(rx.next(), self.peer_isn),
            timestamp: self.timestamps.then(|| (milliseconds(now), rx.echo())),
            window: u16::try_from(window >> self.scale).unwrap_or(u16::MAX),
            // The mask tells the compiler which flags cannot change.
            flags: s.flags | (ace & ACE),
            ..s
        };
        if held {
            self.send_train_with_sack(rx, s, n, out);
        } else {
            out.put_train(&s, n);
        }
    }

    /// Sends a train with SACK blocks or an `AccECN` option.
    #[cold]
    #[inline(never)]
    fn send_train_with_sack(&self, rx: &mut Receiver, mut s: Segment, n: u32, out: &mut impl Wire) {
        for ((from, to), block) in rx.sack_blocks().zip(&mut s.sack).filter(|_| self.sack) {
            *block = (segment::wrap(from, self.peer_isn), segment::wrap(to, self.peer_isn));
            s.sacks += 1;
        }
        let (blocks, option) = rx.ecn.arrived.option(usize::from(s.sacks));
        s.sacks = blocks as u8;
        if let Some(option) = option {
            s.set_ecn_option(&option);
        }
        out.put_train(&s, n);
    }

    /// What the sending half sends, as a segment that lacks what [`Header::send_train`] adds.
    #[allow(clippy::inline_always, reason = "so that the segment stays in registers")]
    #[inline(always)]
    fn segment(&self, c: &Outgoing) -> Segment {
        let flags = match *c {
            Outgoing { fin: true, .. } => ACK | FIN,
            Outgoing { len: 1.., push: true, .. } => ACK | PSH,
            _ => ACK,
        };
        let ecn = self.ect[usize::from(c.len == 0) << 1 | usize::from(c.retransmission)];
        Segment { seq: segment::wrap(c.start, self.isn), len: c.len, flags, ecn, ..Segment::default() }
    }

    /// Sends a train whose first segment says that the window was reduced.
    #[cold]
    #[inline(never)]
    fn send_with_cwr(&self, now: Instant, rx: &mut Receiver, held: bool, c: &Outgoing, out: &mut impl Wire) {
        let (s, n) = (self.segment(c), c.times);
        let push = if n > 1 { 0 } else { s.flags & PSH };
        self.send_train(now, rx, held, Segment { flags: s.flags & !PSH | push | CWR, ..s }, 1, out);
        if n > 1 {
            self.send_train(now, rx, false, Segment { seq: s.seq.wrapping_add(s.len), ..s }, n - 1, out);
        }
    }

    /// Returns a function that turns what the sending half sends into segments with headers. All of them
    /// together count as one acknowledgement.
    pub(super) fn packetizer(
        &self,
        now: Instant,
        rx: &mut Receiver,
        out: &mut impl Wire,
    ) -> impl FnMut(Outgoing) {
        let mut held = None;
        move |c| {
            let held = *held.get_or_insert_with(|| rx.acknowledge(self.plain));
            if c.cwr {
                self.send_with_cwr(now, rx, held, &c, out);
            } else {
                self.send_train(now, rx, held, self.segment(&c), c.times, out);
            }
        }
    }
}
