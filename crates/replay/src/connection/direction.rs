//! One direction of a connection's data: what was seen of its sender, and what is held back until the sender's order of
//! events is known.

use super::{RECENT, Vantage};
use crate::capture::frame::TcpSegment;
use crate::sender::{AckInfo, DataInfo, Sender, before};
use slowstart::units::{Instant, Span};
use std::collections::VecDeque;

/// Maximum number of data packets with the same timestamp echo that are held.
pub(super) const MOST_HELD: usize = 512;
/// Ticks between the ACKs that two packets of one timestamp value echo, from which on the earlier echo says nothing.
const TICKS_APART: u64 = 2;

/// An ACK that has passed the capture point but has not reached the sender of the data.
#[derive(Copy, Clone, Debug)]
pub(super) struct PendingAck {
    pub(super) timestamp: Option<u32>,
    pub(super) report: AckInfo,
}

/// One direction of data.
#[derive(Debug)]
pub struct Direction {
    /// Sequence number of the first data byte, once known.
    pub(super) first: Option<u32>,
    pub(super) syn_seen: bool,
    /// Maximum segment size offered on the SYN.
    pub(super) mss: Option<u16>,
    pub(super) scale: Option<u8>,
    /// True if the SYN was cut within its options.
    pub(super) syn_cut: bool,
    /// By how many bits its windows are shifted; `None` if the handshake does not show it.
    pub(super) shift: Option<u8>,
    pub(super) syns: u32,
    /// Sequence number after the FIN, once it was sent.
    pub(super) fin: Option<u32>,
    pub(super) fin_acked: bool,
    pub(super) syn_at: Option<u64>,
    /// Timestamp value of the SYN.
    pub(super) syn_stamp: Option<u32>,
    /// Where the capture was made relative to this direction's sender.
    pub vantage: Vantage,
    /// Time of the first data since the connection's first packet.
    pub began: Option<Instant>,
    /// Packets that wait until the vantage point is known: true for data, arrival time, segment.
    pub(super) undecided: Vec<(bool, Instant, TcpSegment)>,
    /// Index of the first ACK in `undecided`.
    pub(super) acked: Option<usize>,
    pub(super) decided: bool,
    pub(super) pending: VecDeque<PendingAck>,
    /// At the receiver without timestamps: arrival of the newest data, time of the first ACK for data, and
    /// the RTT between that ACK and the first data after a silence, which may differ from the handshake's.
    pub(super) newest_data: Instant,
    pub(super) first_ack: Option<Instant>,
    pub(super) data_rtt: Option<Span>,
    /// The newest ACK that was passed on to the sender.
    pub(super) released: Option<PendingAck>,
    /// Away from the sender: data with the same timestamp echo, which waits until data with another echo
    /// comes.
    pub(super) held: Vec<DataInfo>,
    pub(super) held_echo: u32,
    /// The newest data of unknown time was sent by then.
    pub(super) unknown_until: Instant,
    /// Round trip to the sender before the first ACK.
    pub(super) away: Span,
    /// The sender, once it has sent data.
    pub sender: Option<Box<Sender>>,
    /// Hashes of the newest packets, to find second captures.
    pub(super) recent: [u64; RECENT],
    pub(super) newest: usize,
    /// How often each of them was captured again, and the SYN.
    pub(super) taken: [u8; RECENT],
    pub(super) syn_copies: u8,
    /// The newest timestamp value of its packets.
    pub(super) stamp: Option<u32>,
    /// The first timestamp value, and when it was captured; and the same of the newest.
    pub(super) stamped: Option<[(Instant, u32); 2]>,
    /// The newest ACK that it sent, and the count of marks in it (RFC 9768 §3.2.2).
    pub(super) ack: Option<u32>,
    pub(super) ace: Option<u8>,
}

/// The data of a segment, sent and captured at these times.
pub(super) fn data(s: &TcpSegment, offset: u64, sent: Instant, captured: Instant) -> DataInfo {
    DataInfo {
        at: sent,
        captured,
        undated: false,
        id: s.id,
        from: offset,
        upto: offset + u64::from(s.len),
        timestamp: s.timestamp.map(|t| t.0),
        marked: s.marked,
    }
}

impl Direction {
    /// Passes the held data to the sender, and before it the ACKs that the sender had received by then. All
    /// ACKs with a timestamp value before the echo had arrived; of those with the echo's own value the first,
    /// before the first data, and all of them before the last: the others are spread evenly over the data, as
    /// a sender sends that its window limits.
    pub(super) fn release_held(&mut self) {
        let Some(sender) = &mut self.sender else { return };
        let echo = self.held_echo;
        let upto = |value: u32| echo.wrapping_sub(value).cast_signed();
        let same = self.pending.iter().skip_while(|a| a.timestamp.is_some_and(|t| upto(t) > 0));
        let same = same.take_while(|a| a.timestamp == Some(echo)).count();
        let (all, mut released) = (self.held.len(), 0);
        for (i, d) in self.held.iter_mut().enumerate() {
            while let Some(next) = self.pending.front() {
                let Some(value) = next.timestamp else { break };
                let due = upto(value) > 0 || (value == echo && released * all < same * (i + 1));
                if !due {
                    break;
                }
                released += usize::from(value == echo);
                sender.on_ack(&next.report);
                self.released = self.pending.pop_front();
            }
            let by_echo = self.released.filter(|r| r.timestamp.is_some());
            d.undated = by_echo.is_none() && (self.away == Span::ZERO || !self.syn_seen);
            d.at = by_echo.map_or(Instant(d.captured.0.saturating_sub(self.away.0)), |r| r.report.at);
            if d.undated {
                self.unknown_until = d.at;
            }
            // What was sent earlier, by its echo, follows data of unknown time: it was sent later than that, or both were
            // sent earlier.
            d.undated |= d.at < self.unknown_until;
            sender.on_data(d);
        }
        self.held.clear();
    }

    pub(super) fn new() -> Self {
        Self {
            first: None,
            syn_seen: false,
            mss: None,
            scale: None,
            syn_cut: false,
            shift: None,
            syns: 0,
            fin: None,
            fin_acked: false,
            syn_at: None,
            syn_stamp: None,
            vantage: Vantage::Unknown,
            began: None,
            undecided: Vec::new(),
            acked: None,
            decided: false,
            pending: VecDeque::new(),
            newest_data: Instant::ZERO,
            first_ack: None,
            data_rtt: None,
            released: None,
            held: Vec::new(),
            held_echo: 0,
            unknown_until: Instant::ZERO,
            away: Span::ZERO,
            sender: None,
            recent: [0; RECENT],
            newest: 0,
            taken: [0; RECENT],
            syn_copies: 0,
            stamp: None,
            stamped: None,
            ack: None,
            ace: None,
        }
    }

    /// Takes in the timestamp value of a packet. Returns true if it is older than one before: the packet was
    /// made before that one.
    pub(super) fn is_stale(&mut self, at: Instant, value: Option<u32>) -> bool {
        let Some(value) = value else { return false };
        if self.stamp.is_some_and(|newest| before(value, newest)) {
            return true;
        }
        self.stamp = Some(value);
        self.take_stamp(at, value);
        false
    }

    /// Takes in when a timestamp value was captured, if it is the newest.
    pub(super) fn take_stamp(&mut self, at: Instant, value: u32) {
        match &mut self.stamped {
            Some([_, newest]) if before(value, newest.1) => {}
            Some([_, newest]) => *newest = (at, value),
            none => *none = Some([(at, value); 2]),
        }
    }

    /// How long a tick of its timestamps lasts; `None` if they do not show it.
    pub(super) fn tick(&self) -> Option<Span> {
        let [(from, first), (until, last)] = self.stamped?;
        let ticks = u64::from(last.wrapping_sub(first));
        (ticks > 0).then(|| Span(until.since(from).0 / ticks))
    }

    /// From which on the held data has this timestamp value, if its echo is of an earlier ACK than this one by more
    /// than the value's tick: it was sent within the tick in which the later ACK arrived, whatever it echoes.
    pub(super) fn stale_from(&self, value: u32, echo: u32) -> Option<usize> {
        let from = self.held.iter().rposition(|d| d.timestamp != Some(value)).map_or(0, |i| i + 1);
        if from == self.held.len() {
            return None;
        }
        let mut acks = self.released.iter().chain(&self.pending).take(MOST_HELD);
        let mut arrived = |echo| acks.find(|a| a.timestamp == Some(echo)).map(|a| a.report.at);
        // In order of time: the echo's ACK comes after the earlier one.
        let earlier = arrived(self.held_echo)?;
        let apart = arrived(echo)?.since(earlier);
        (apart > self.tick()? * TICKS_APART).then_some(from)
    }

    /// True if its SYN was cut within its options, and their end is not known.
    pub fn is_cut(&self) -> bool {
        self.syn_cut && self.scale.is_none()
    }

    /// True if the SYN of this direction was captured.
    pub fn syn_seen(&self) -> bool {
        self.syn_seen
    }
}
