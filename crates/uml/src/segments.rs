//! Reads the headers of captured packets.

use crate::order::Captured;
use slowstart::units::Instant;
use slowstart_sim::path::Ecn;
use slowstart_sim::tcp::segment::{SACK_BLOCKS, Segment};
use slowstart_sim::trace::CapturedPacket;

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The segment of a packet; `None` if it is not TCP over IPv4 without IP options.
fn segment(packet: &[u8], length: u32) -> Option<Segment> {
    let (ip, tcp) = (packet.get(..20)?, packet.get(20..)?);
    if ip[0] != 0x45 || ip[9] != 6 {
        return None;
    }
    let u16_at = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_be_bytes(tcp.get(at..at + 4)?.try_into().ok()?));
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let mut s = Segment {
        seq: u32_at(4)?,
        ack: u32_at(8)?,
        len: length.checked_sub(20 + header as u32)?,
        window: u16_at(14)?,
        flags: tcp[13],
        ecn: Ecn::from_bits(ip[1]),
        ..Segment::default()
    };
    let mut at = 20;
    while at < header {
        let size = match *tcp.get(at)? {
            0 => break,
            1 => 1,
            _ => usize::from(*tcp.get(at + 1)?).max(2),
        };
        match (tcp[at], size) {
            (2, 4) => s.mss = u16_at(at + 2)?,
            (3, 3) => s.scale = Some(*tcp.get(at + 2)?),
            (4, 2) => s.sack_ok = true,
            (5, _) => {
                for (i, block) in s.sack.iter_mut().enumerate().take(((size - 2) / 8).min(SACK_BLOCKS)) {
                    *block = (u32_at(at + 2 + 8 * i)?, u32_at(at + 6 + 8 * i)?);
                    s.sacks = i as u8 + 1;
                }
            }
            (8, 10) => s.timestamp = Some((u32_at(at + 2)?, u32_at(at + 6)?)),
            _ => {}
        }
        at += size;
    }
    Some(s)
}

/// The packets that a guest captured, as traces have them.
pub(crate) fn packets(captured: &[Captured]) -> Vec<CapturedPacket> {
    let one = |c: &Captured| {
        let segment = segment(&bytes_of(&c.headers), c.length)?;
        Some(CapturedPacket { at: Instant(c.at), flow: 0, end: c.end, leaves: c.leaves, segment })
    };
    captured.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_sim::tcp::segment::{ACK, SYN};

    #[test]
    fn headers_become_segments_and_damage_none() {
        // SYN-ACK with MSS 1460, SACK permitted, timestamps 9 and 7, window scale 7.
        let text = "450000 3c0000400040060000 0a4d0001 0a4d0002 1389 9c40 00000064 00000033 a0 12 fe88 0000 0000 \
                    020405b4 0402 080a 00000009 00000007 01 030307";
        let hex: String = text.split_whitespace().collect();
        let bytes = bytes_of(&hex);
        let s = segment(&bytes, 60).expect("a segment");
        assert_eq!((s.seq, s.ack, s.len, s.flags), (100, 51, 0, SYN | ACK));
        assert_eq!((s.mss, s.scale, s.sack_ok, s.timestamp), (1460, Some(7), true, Some((9, 7))));
        for cut in 0..bytes.len() {
            assert!(segment(&bytes[..cut], 60).is_none_or(|cut| cut.seq == s.seq));
        }
        assert_eq!(segment(&bytes, 10), None, "shorter than its headers");
    }
}
