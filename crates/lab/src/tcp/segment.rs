//! What travels: a TCP segment of 64 bytes, whatever its payload (which is only counted).

use slowstart::units::{Bytes, Instant, Rate};

/// Synchronise.
pub const SYN: u8 = 1 << 1;
/// The sender is done.
pub const FIN: u8 = 1;
/// Abort.
pub const RST: u8 = 1 << 2;
/// Push.
pub const PSH: u8 = 1 << 3;
/// The acknowledgement field counts.
pub const ACK: u8 = 1 << 4;

/// Congestion was experienced (RFC 3168).
pub const ECE: u8 = 1 << 6;
/// The window was reduced for it (RFC 3168).
pub const CWR: u8 = 1 << 7;

/// The bytes of an IPv4 and a TCP header without options.
pub const HEADERS: u32 = 40;
/// The bytes the timestamp option takes, padded.
pub const TIMESTAMP_OPTION: u32 = 12;
/// Selective acknowledgement blocks that fit beside a timestamp.
pub const SACK_BLOCKS: usize = 3;

/// A segment.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (or of SYN or FIN).
    pub seq: u32,
    /// Next sequence number expected.
    pub ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// Window as it stands in the header, before scaling.
    pub window: u16,
    /// Of [`SYN`], [`FIN`], [`RST`], [`PSH`], [`ACK`], [`ECE`], [`CWR`].
    pub flags: u8,
    /// How many of `sack` are set.
    pub sacks: u8,
    /// Selective acknowledgement blocks, the newest first; a duplicate is reported in the first (RFC 2883).
    pub sack: [(u32, u32); SACK_BLOCKS],
    /// Timestamp and echo, in milliseconds (RFC 7323).
    pub timestamp: Option<(u32, u32)>,
    /// On a SYN: the maximum segment size offered; 0 if none.
    pub mss: u16,
    /// On a SYN: the window scale offered.
    pub scale: Option<u8>,
    /// On a SYN: selective acknowledgement is offered.
    pub sack_ok: bool,
    /// The Quick-Start rate request of RFC 4782 §3.1, an IP option on a SYN: 40 kbit/s * 2^N; 0 if none.
    pub rate_request: u8,
    /// The Quick-Start response, a TCP option: what was left of the peer's request; 0 if none.
    pub rate_response: u8,
}

impl Segment {
    /// Whether all of these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Sequence numbers it takes.
    pub fn span(&self) -> u64 {
        u64::from(self.len) + u64::from(self.has(SYN)) + u64::from(self.has(FIN))
    }

    /// The selective acknowledgement blocks.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sacks)]
    }

    /// Bytes of the IP packet.
    pub fn wire(&self) -> u32 {
        let timestamp = if self.timestamp.is_some() { TIMESTAMP_OPTION } else { 0 };
        let sack = if self.sacks > 0 { 4 + 8 * u32::from(self.sacks) } else { 0 };
        // MSS 4, SACK-permitted 2 (in the timestamp's padding if there is one, else 4), window scale 4.
        let syn = if self.has(SYN) {
            u32::from(self.mss > 0) * 4
                + u32::from(self.sack_ok && self.timestamp.is_none()) * 4
                + u32::from(self.scale.is_some()) * 4
        } else {
            0
        };
        let quick = 8 * (u32::from(self.rate_request > 0) + u32::from(self.rate_response > 0));
        HEADERS + timestamp + sack + syn + quick + self.len
    }

    /// Payload as a quantity.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.len))
    }
}

/// The largest code of a Quick-Start rate that is not above `rate`; 0 if there is none.
pub fn rate_code(rate: Rate) -> u8 {
    (1..=15).rev().find(|n| rate_of(*n).is_some_and(|r| r <= rate)).unwrap_or(0)
}

/// The rate that a Quick-Start code stands for.
pub fn rate_of(code: u8) -> Option<Rate> {
    (1..=15).contains(&code).then(|| Rate(40_000 << code))
}

/// Where an endpoint puts what it sends.
pub trait Wire {
    /// A train leaves: `n` segments that follow one another and are alike but for their numbers. `s` is the first.
    fn put_train(&mut self, s: &Segment, n: u32);

    /// A segment leaves.
    #[inline]
    fn put(&mut self, s: &Segment) {
        self.put_train(s, 1);
    }
}

impl Wire for Vec<Segment> {
    fn put_train(&mut self, s: &Segment, n: u32) {
        self.extend((0..n).map(|i| Segment { seq: s.seq.wrapping_add(i * s.len), ..*s }));
    }
}

/// The timestamp clock (RFC 7323 §5.4): milliseconds since time zero.
pub fn milliseconds(now: Instant) -> u32 {
    (now.0 / 1_000_000) as u32
}

/// The offset that `wire` stands for, nearest to `near`, where `isn` is the wire number of offset 0.
pub fn unwrap(wire: u32, isn: u32, near: u64) -> Option<u64> {
    let away = wire.wrapping_sub(isn).wrapping_sub(near as u32).cast_signed();
    near.checked_add_signed(i64::from(away))
}

/// The wire number of an offset.
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
        assert!(size_of::<Segment>() <= 64);
    }
}
