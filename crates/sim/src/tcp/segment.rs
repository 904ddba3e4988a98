//! TCP segments, of 64 bytes each whatever their payload, which is only counted.

use super::accecn::EcnOption;
use crate::path::Ecn;
use slowstart::units::{Bytes, Instant};

/// The flag that synchronises sequence numbers.
pub const SYN: u8 = 1 << 1;
/// No more data from the sender.
pub const FIN: u8 = 1;
/// The flag that resets the connection.
pub const RST: u8 = 1 << 2;
/// The flag that pushes data to the application.
pub const PSH: u8 = 1 << 3;
/// The acknowledgement number is valid.
pub const ACK: u8 = 1 << 4;

/// Accurate ECN (RFC 9768): the bit before CWR in the header. Here it has the place of URG, which is never
/// set.
pub const AE: u8 = 1 << 5;
/// Echo of congestion experienced (RFC 3168).
pub const ECE: u8 = 1 << 6;
/// Congestion window reduced (RFC 3168).
pub const CWR: u8 = 1 << 7;

/// Bytes of an IPv4 and a TCP header without options.
pub const HEADERS: u32 = 40;
/// Bytes of the timestamp option, padded.
pub const TIMESTAMP_OPTION: u32 = 12;
/// Number of SACK blocks that fit beside a timestamp.
pub const SACK_BLOCKS: usize = 3;

/// A TCP segment, without its payload.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of SYN or FIN.
    pub seq: u32,
    /// Acknowledgement number: the next sequence number expected.
    pub ack: u32,
    /// The bytes of its payload, without headers.
    pub len: u32,
    /// The window field of the header, before scaling.
    pub window: u16,
    /// A combination of [`SYN`], [`FIN`], [`RST`], [`PSH`], [`ACK`], [`AE`], [`ECE`], [`CWR`].
    pub flags: u8,
    /// Number of valid entries of `sack`.
    pub sacks: u8,
    /// SACK blocks, the newest first; a duplicate is reported in the first (RFC 2883).
    pub sack: [(u32, u32); SACK_BLOCKS],
    /// Timestamp and echo, milliseconds (RFC 7323).
    pub timestamp: Option<(u32, u32)>,
    /// On a SYN: the maximum segment size; 0 if absent.
    pub mss: u16,
    /// On a SYN: the window scale.
    pub scale: Option<u8>,
    /// On a SYN: true if selective acknowledgement is permitted.
    pub sack_ok: bool,
    /// On a SYN: the Quick-Start rate request of RFC 4782 §3.1, an IP option: 40 kbit/s * 2^N; 0 if absent.
    pub rate_request: u8,
    /// The Quick-Start response, a TCP option: the remainder of the peer's request; 0 if absent.
    pub rate_response: u8,
    /// The ECN codepoint of the IP header; a queue on the path may set [`Ecn::Ce`].
    pub ecn: Ecn,
    /// The fields of the `AccECN` option, as bits; 0 if absent. Its values share the space of SACK blocks, as
    /// in the header.
    pub ecn_fields: u8,
}

/// The fields that every segment of an established connection has.
#[derive(Copy, Clone, Debug)]
pub struct Numbers {
    /// The number of its first byte, as in [`Segment::seq`].
    pub seq: u32,
    /// What it acknowledges, as in [`Segment::ack`].
    pub ack: u32,
    /// The bytes of its payload, as in [`Segment::len`].
    pub len: u32,
    /// The receive window, as in [`Segment::window`].
    pub window: u16,
    /// The flags of its header, as in [`Segment::flags`].
    pub flags: u8,
    /// Timestamp and echo, as in [`Segment::timestamp`]; `None` without the option.
    pub timestamp: Option<(u32, u32)>,
}

impl Segment {
    /// Its fields that every segment has.
    #[inline]
    pub fn numbers(&self) -> Numbers {
        let Self { seq, ack, len, window, flags, timestamp, .. } = *self;
        Numbers { seq, ack, len, window, flags, timestamp }
    }

    /// Returns the segments of a [train](Wire::put_train) of `n`, of which this is the first.
    pub fn train(&self, n: u32) -> impl Iterator<Item = Self> {
        // rustc 1.95 rejects a struct update from a value that the closure owns.
        (1..=n).map(move |i| Self {
            seq: self.seq.wrapping_add((i - 1) * self.len),
            flags: if i < n { self.flags & !PSH } else { self.flags },
            ..*self
        })
    }

    /// True if all of these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Number of sequence numbers it occupies.
    pub fn span(&self) -> u64 {
        u64::from(self.len) + u64::from(self.has(SYN)) + u64::from(self.has(FIN))
    }

    /// Returns the SACK blocks; none if it has none.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sacks)]
    }

    /// Returns the `AccECN` option; `None` if it has none.
    #[cold]
    pub fn ecn_option(&self) -> Option<EcnOption> {
        let has = |field: u8, value: u32| if self.ecn_fields & field != 0 { value } else { 0 };
        let [_, (e0b, _), (e1b, ceb)] = self.sack;
        let bytes = [has(1, e1b), has(2, ceb), has(4, e0b)];
        (self.ecn_fields > 0).then_some(EcnOption { fields: self.ecn_fields, bytes })
    }

    /// True if it has an `AccECN` option.
    #[inline]
    pub fn has_ecn_option(&self) -> bool {
        self.ecn_fields > 0
    }

    /// Adds an `AccECN` option after the SACK blocks. Returns false if there is no space: with three blocks,
    /// or beside two for the field of ECT(0).
    pub fn set_ecn_option(&mut self, option: &EcnOption) -> bool {
        let blocks = if option.fields & 4 != 0 { 1 } else { 2 };
        if usize::from(self.sacks) > blocks {
            return false;
        }
        let [e1b, ceb, e0b] = option.bytes;
        self.sack[2] = (e1b, ceb);
        if blocks == 1 {
            self.sack[1] = (e0b, 0);
        }
        self.ecn_fields = option.fields & 7;
        true
    }

    /// Size of the IP packet, bytes.
    pub fn wire(&self) -> u32 {
        let timestamp = if self.timestamp.is_some() { TIMESTAMP_OPTION } else { 0 };
        let sack = if self.sacks > 0 { 4 + 8 * u32::from(self.sacks) } else { 0 };
        // MSS 4 bytes, SACK-permitted 2 (within the padding of a timestamp, else 4), window scale 4.
        let syn = if self.has(SYN) {
            u32::from(self.mss > 0) * 4
                + u32::from(self.sack_ok && self.timestamp.is_none()) * 4
                + u32::from(self.scale.is_some()) * 4
        } else {
            0
        };
        let quick = 8 * (u32::from(self.rate_request > 0) + u32::from(self.rate_response > 0));
        let ecn =
            if self.ecn_fields > 0 { (2 + 3 * self.ecn_fields.count_ones()).next_multiple_of(4) } else { 0 };
        HEADERS + timestamp + sack + syn + quick + ecn + self.len
    }

    /// Payload bytes, as a quantity.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.len))
    }
}

/// A destination for the segments that an endpoint sends.
pub trait Wire {
    /// Sends a train of `n` segments: `s`, and those that follow it in sequence with the same length and
    /// header, but for PSH, which is that of the last.
    fn put_train(&mut self, s: &Segment, n: u32);

    /// Sends one segment; it leaves in the order of calls.
    #[inline]
    fn put(&mut self, s: &Segment) {
        self.put_train(s, 1);
    }
}

impl Wire for Vec<Segment> {
    fn put_train(&mut self, s: &Segment, n: u32) {
        self.extend(s.train(n));
    }
}

/// The timestamp clock (RFC 7323 §5.4): milliseconds since time zero.
pub fn milliseconds(now: Instant) -> u32 {
    (now.0 / 1_000_000) as u32
}

/// True if the timestamp `echo` is before `sent`, both in milliseconds of the timestamp clock (RFC 7323 §5.2).
pub fn is_before(echo: u32, sent: u32) -> bool {
    echo.wrapping_sub(sent).cast_signed() < 0
}

/// Returns the offset that the sequence number `wire` stands for, the one nearest to `near`; `isn` is the
/// sequence number of offset 0. `None` if it would be negative.
pub fn unwrap(wire: u32, isn: u32, near: u64) -> Option<u64> {
    let away = wire.wrapping_sub(isn).wrapping_sub(near as u32).cast_signed();
    near.checked_add_signed(i64::from(away))
}

/// Returns the sequence number of an offset.
pub fn wrap(offset: u64, isn: u32) -> u32 {
    isn.wrapping_add(offset as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_the_wrap() {
        let isn = u32::MAX - 5;
        for offset in [0, 1, 6, 7, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40) + 12_345] {
            for away in [-70_000_i64, -1, 0, 1, 70_000] {
                let Some(near) = u64::checked_add_signed(offset, away) else { continue };
                assert_eq!(unwrap(wrap(offset, isn), isn, near), Some(offset));
            }
        }
    }

    #[test]
    fn a_full_segment_is_1500_bytes() {
        let s = Segment { len: 1448, timestamp: Some((1, 2)), flags: ACK, ..Segment::default() };
        assert_eq!(s.wire(), 1500);
        assert_eq!(Segment { sacks: 3, len: 0, ..s }.wire(), 80);
        let mut with_option = Segment { len: 1436, ..s };
        let option = EcnOption { fields: 0b111, bytes: [1, 2, 3] };
        assert!(with_option.set_ecn_option(&option) && with_option.ecn_option() == Some(option));
        assert_eq!(with_option.wire(), 1500);
        assert!(!Segment { sacks: 2, ..s }.set_ecn_option(&option));
        assert!(size_of::<Segment>() <= 64);
    }
}
