//! The size and kind of an IP packet, from its headers.

use slowstart_lab::path::{Ecn, Kind, PacketInfo};

const TCP: u8 = 6;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Returns what a path element needs to know about a packet. A packet that is not TCP over IPv4, or that is cut short,
/// counts as data.
pub(super) fn packet_info(packet: &[u8]) -> PacketInfo {
    PacketInfo {
        bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
        flow: 0,
        kind: kind(packet).unwrap_or(Kind::Data),
        ecn: ecn(packet),
    }
}

/// The codepoint of an IPv4 packet; a packet of another kind counts as not capable.
fn ecn(packet: &[u8]) -> Ecn {
    match packet {
        [version, tos, ..] if version >> 4 == 4 => Ecn::from_bits(*tos),
        _ => Ecn::NotEct,
    }
}

fn kind(packet: &[u8]) -> Option<Kind> {
    let first = *packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let header = usize::from(first & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let offset = usize::from(packet.get(header + 12)? >> 4) * 4;
    let flags = *packet.get(header + 13)?;
    Some(match (flags & SYN != 0, flags & ACK != 0) {
        (true, false) => Kind::Syn,
        (true, true) => Kind::SynAck,
        _ if total > header + offset => Kind::Data,
        _ if flags & FIN != 0 => Kind::Fin,
        _ => Kind::Ack,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flags: u8, payload: usize) -> Vec<u8> {
        let mut p = vec![0; 40 + payload];
        p[0] = 0x45;
        p[2..4].copy_from_slice(&u16::try_from(40 + payload).unwrap().to_be_bytes());
        p[9] = TCP;
        p[32] = 0x50;
        p[33] = flags;
        p
    }

    #[test]
    fn flags_and_payload_determine_the_kind() {
        for (flags, payload, kind) in [
            (SYN, 0, Kind::Syn),
            (SYN | ACK, 0, Kind::SynAck),
            (ACK, 0, Kind::Ack),
            (ACK, 1, Kind::Data),
            (FIN | ACK, 0, Kind::Fin),
            (FIN | ACK, 9, Kind::Data),
        ] {
            let got = packet_info(&packet(flags, payload));
            assert_eq!((got.kind, got.bytes as usize), (kind, 40 + payload));
        }
    }

    #[test]
    fn anything_else_is_data() {
        let whole = packet(SYN, 0);
        for cut in 0..whole.len() {
            packet_info(&whole[..cut]);
        }
        assert_eq!(packet_info(&whole[..33]).kind, Kind::Data);
        assert_eq!(packet_info(&[0x60; 60]).kind, Kind::Data);
        assert_eq!(packet_info(&[]).kind, Kind::Data);
    }
}
