//! What a connection sent and what was acknowledged, as [`crate::fit`] and [`crate::fork`] need it.

use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::Sent;
use std::collections::BTreeMap;

/// Packets and ACKs kept of a connection; later ones are not.
const KEPT: usize = 1 << 20;

/// Data sent at one moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SentData {
    /// When it was sent.
    pub at: Instant,
    /// False if that is not known: it was captured away from its sender, and echoes no captured ACK. It was sent by `at`.
    pub dated: bool,
    /// The stream offset after it, or its packet number and one.
    pub upto: u64,
    /// The bytes of its payload.
    pub bytes: u32,
    /// How many of them were lost; of a retransmission, also those that the receiver had already.
    pub lost: u32,
}

/// An ACK that acknowledged new data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AckedData {
    /// When it arrived at the sender.
    pub at: Instant,
    /// Payload bytes delivered so far.
    pub delivered: Bytes,
    /// Its RTT sample; `None` if it gives none.
    pub rtt: Option<Span>,
}

/// Bytes of IPv4 and TCP headers with timestamps.
const TCP_HEADERS: u32 = 52;

/// Packets and ACKs of a connection: the first million of each.
#[derive(Clone, Debug)]
pub struct PacketLog {
    /// Bytes of headers that each packet has on the wire besides its payload.
    pub headers: u32,
    sends: Vec<SentData>,
    retransmissions: Vec<SentData>,
    /// The newest retransmission up to each offset.
    newest: BTreeMap<u64, usize>,
    acks: Vec<AckedData>,
}

impl Default for PacketLog {
    fn default() -> Self {
        Self {
            headers: TCP_HEADERS,
            sends: Vec::new(),
            retransmissions: Vec::new(),
            newest: BTreeMap::new(),
            acks: Vec::new(),
        }
    }
}

impl PacketLog {
    /// First transmissions, in order of time and of their offsets.
    pub fn sends(&self) -> &[SentData] {
        &self.sends
    }

    /// When the last first transmission was kept, if no more are.
    pub fn full_since(&self) -> Option<Instant> {
        self.sends.last().filter(|_| self.sends.len() == KEPT).map(|s| s.at)
    }

    /// Retransmissions, in order of time.
    pub fn retransmissions(&self) -> &[SentData] {
        &self.retransmissions
    }

    /// ACKs, in order of time.
    pub fn acks(&self) -> &[AckedData] {
        &self.acks
    }

    /// Adds a packet that was sent. `upto` is the stream offset after it, or its number and one.
    pub fn sent(&mut self, s: &Sent, upto: u64) {
        let bytes = u32::try_from(s.bytes.0).unwrap_or(u32::MAX);
        let data = SentData { at: s.at, dated: true, upto, bytes, lost: 0 };
        if s.retransmission {
            if self.retransmissions.len() < KEPT {
                self.newest.insert(upto, self.retransmissions.len());
                self.retransmissions.push(data);
            }
        } else if self.sends.len() < KEPT && self.sends.last().is_none_or(|l| l.upto < upto) {
            self.sends.push(data);
        }
    }

    /// When the newest first transmission was sent is not known.
    pub fn undated(&mut self) {
        if let Some(newest) = self.sends.last_mut() {
            newest.dated = false;
        }
    }

    /// Adds an ACK that arrived at this time, with all that was delivered by then.
    pub fn acked(&mut self, at: Instant, delivered: Bytes, rtt: Option<Span>) {
        if self.acks.len() < KEPT {
            self.acks.push(AckedData { at, delivered, rtt });
        }
    }

    /// What was sent last of `from..upto` is lost. Call this before the retransmission is added.
    pub fn lost(&mut self, from: u64, upto: u64) {
        if let Some(again) = self.newest.get(&upto).and_then(|i| self.retransmissions.get_mut(*i)) {
            again.lost = again.bytes;
        }
        self.each_within(from, upto, |s, part| s.lost = s.bytes.min(s.lost + part));
    }

    /// The first transmission of `from..upto` had arrived: what was sent after it had no use.
    pub fn arrived(&mut self, from: u64, upto: u64) {
        if let Some(again) = self.newest.get(&upto).and_then(|i| self.retransmissions.get_mut(*i)) {
            again.lost = again.bytes;
        }
        self.each_within(from, upto, |s, part| s.lost -= part.min(s.lost));
    }

    /// Of what was sent at this moment, `bytes` are lost.
    pub fn lost_at(&mut self, at: Instant, bytes: Bytes) {
        let mut left = u32::try_from(bytes.0).unwrap_or(u32::MAX);
        let first = self.sends.partition_point(|s| s.at < at);
        for s in self.sends.iter_mut().skip(first) {
            let lost = left.min(s.bytes - s.lost);
            s.lost += lost;
            left -= lost;
            if left == 0 {
                break;
            }
        }
    }

    /// Calls `each` with the first transmissions of `from..upto`, and how many of their bytes lie in it.
    fn each_within(&mut self, from: u64, upto: u64, each: impl Fn(&mut SentData, u32)) {
        let first = self.sends.partition_point(|s| s.upto <= from);
        let mut begin = first.checked_sub(1).map_or(0, |i| self.sends[i].upto);
        for s in self.sends.iter_mut().skip(first) {
            if begin.max(from) >= upto.min(s.upto) {
                break;
            }
            // Packet numbers count packets, not bytes.
            let numbers = s.upto - begin != u64::from(s.bytes);
            let part = upto.min(s.upto) - from.max(begin);
            let whole = numbers || (from <= begin && s.upto <= upto);
            each(s, if whole { s.bytes } else { u32::try_from(part).unwrap_or(u32::MAX) });
            begin = s.upto;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: u64, retransmission: bool) -> Sent {
        Sent { bytes: Bytes(bytes), retransmission, ..Sent::default() }
    }

    #[test]
    fn a_full_log_says_since_when() {
        let mut log = PacketLog::default();
        for n in 1..=KEPT as u64 {
            assert_eq!(log.full_since(), None);
            log.sent(&Sent { at: Instant(n), ..sent(1, false) }, n);
        }
        let last = Some(Instant(KEPT as u64));
        log.sent(&Sent { at: Instant(u64::MAX), ..sent(1, false) }, u64::MAX);
        assert_eq!((log.full_since(), log.sends().len()), (last, KEPT));
    }

    /// Ten packets in one super-segment and one after it: a lost packet in the middle counts alone.
    #[test]
    fn a_part_of_a_super_segment_is_lost_and_turns_out_to_have_arrived() {
        let mut log = PacketLog::default();
        log.sent(&sent(10_000, false), 10_000);
        log.sent(&sent(1000, false), 11_000);
        log.lost(4000, 5000);
        log.lost(10_000, 11_000);
        log.sent(&sent(1000, true), 5000);
        let lost = |log: &PacketLog| log.sends().iter().map(|s| s.lost).collect::<Vec<_>>();
        assert_eq!(lost(&log), [1000, 1000]);
        log.arrived(4000, 5000);
        assert_eq!(lost(&log), [0, 1000]);
        assert_eq!(log.retransmissions()[0].lost, 1000);
    }
}
