//! The size and kind of an IP packet, from its headers.

use super::{Ecn, Kind, PacketInfo};
use std::net::SocketAddrV4;

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Returns what a path element needs to know about a packet. A packet that is not TCP over IPv4, or that is
/// cut short, counts as data.
pub fn packet_info(packet: &[u8]) -> PacketInfo {
    PacketInfo {
        bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
        flow: flow(packet),
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

/// A number for the addresses, protocol and ports of a packet, by which queues tell flows apart. Packets of
/// both directions of a connection have different ones.
fn flow(packet: &[u8]) -> u32 {
    let Some(first) = packet.first().filter(|first| **first >> 4 == 4) else { return 0 };
    let header = usize::from(first & 15) * 4;
    let ports = packet.get(header..header + 4).unwrap_or_default();
    let addresses = packet.get(12..20).unwrap_or_default();
    let bytes = packet.get(9).into_iter().chain(addresses).chain(ports);
    bytes.fold(0x811c_9dc5, |hash: u32, b| (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

/// The number of the packets of a TCP connection that go from one address to another, as records have it.
pub fn tcp_flow(from: SocketAddrV4, to: SocketAddrV4) -> u32 {
    let mut header = [0; 24];
    (header[0], header[9]) = (0x45, TCP);
    header[12..16].copy_from_slice(&from.ip().octets());
    header[16..20].copy_from_slice(&to.ip().octets());
    header[20..22].copy_from_slice(&from.port().to_be_bytes());
    header[22..24].copy_from_slice(&to.port().to_be_bytes());
    flow(&header)
}

/// Sets "congestion experienced" in an IPv4 header, with its checksum (RFC 1624).
pub fn set_ce(packet: &mut [u8]) {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return;
    }
    let old = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= Ecn::Ce as u8;
    let new = u16::from_be_bytes([packet[0], packet[1]]);
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut total = u32::from(!sum) + u32::from(!old) + u32::from(new);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    packet[10..12].copy_from_slice(&(!(total as u16)).to_be_bytes());
}

/// True if a packet carries a handshake: QUIC's long header (RFC 8999 section 5.1), or a handshake record of TLS at the
/// beginning of a TCP segment.
pub fn is_handshake(packet: &[u8]) -> bool {
    payload(packet).is_some_and(|(protocol, payload)| match (protocol, payload) {
        (UDP, [first, ..]) => first & 0x80 != 0,
        // A record of the type handshake, version 3.x.
        (TCP, [22, 3, ..]) => true,
        _ => false,
    })
}

/// The protocol and what follows its header, of IPv4.
fn payload(packet: &[u8]) -> Option<(u8, &[u8])> {
    let first = *packet.first().filter(|first| **first >> 4 == 4)?;
    let header = usize::from(first & 15) * 4;
    let protocol = *packet.get(9)?;
    let length = match protocol {
        TCP => usize::from(packet.get(header + 12)? >> 4) * 4,
        UDP => 8,
        _ => return None,
    };
    Some((protocol, packet.get(header + length..)?))
}

/// True if two packets are acknowledgements of TCP alone, without SACK blocks, of the same direction of a connection, and
/// the first acknowledges more.
pub(super) fn acknowledges_more(newer: &[u8], older: &[u8]) -> bool {
    let numbers = plain_ack(newer).zip(plain_ack(older));
    flow(newer) == flow(older)
        && numbers.is_some_and(|(newer, older)| newer.wrapping_sub(older).cast_signed() > 0)
}

/// The number of an acknowledgement alone, without SACK blocks.
fn plain_ack(packet: &[u8]) -> Option<u32> {
    const OPTION_END: u8 = 0;
    const OPTION_PAD: u8 = 1;
    const OPTION_SACK: u8 = 5;
    const FLAGS_BUT_PUSH: u8 = !8;
    if kind(packet)? != Kind::Ack {
        return None;
    }
    let tcp = packet.get(usize::from(packet[0] & 15) * 4..)?;
    let mut options = tcp.get(20..usize::from(tcp.get(12)? >> 4) * 4)?;
    if tcp[13] & FLAGS_BUT_PUSH != ACK {
        return None;
    }
    while let [kind, rest @ ..] = options {
        options = match *kind {
            OPTION_END => break,
            OPTION_PAD => rest,
            OPTION_SACK => return None,
            _ => options.get(usize::from(*rest.first()?).max(2)..)?,
        };
    }
    Some(u32::from_be_bytes(tcp.get(8..12)?.try_into().ok()?))
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
    fn an_ack_with_sack_blocks_or_another_flag_is_not_plain() {
        let ack = |number: u32, options: &[u8], flags: u8| {
            let mut p = packet(ACK | flags, 0);
            p[28..32].copy_from_slice(&number.to_be_bytes());
            p.extend_from_slice(options);
            p[32] = (5 + options.len() as u8 / 4) << 4;
            p[3] = p.len() as u8;
            p
        };
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let old = ack(u32::MAX, &timestamps, 0);
        assert!(acknowledges_more(&ack(4, &timestamps, 0), &old), "the numbers wrap");
        assert!(!acknowledges_more(&old, &ack(4, &timestamps, 0)), "an older one");
        assert!(!acknowledges_more(&old, &old), "a duplicate");
        assert!(!acknowledges_more(&ack(4, &sack, 0), &old));
        assert!(!acknowledges_more(&ack(4, &timestamps, 0x40), &old), "ECE");
        assert!(!acknowledges_more(&packet(ACK, 10), &old), "data");
        let cut = ack(4, &timestamps, 0);
        for n in 0..cut.len() {
            assert!(!acknowledges_more(&cut[..n], &old), "{n} bytes");
        }
        // Options that end early, or have no length.
        for options in [[8, 0, 0, 0], [8, 40, 0, 0], [1, 1, 1, 8]] {
            assert_eq!(plain_ack(&ack(4, &options, 0)).is_some(), options == [8, 0, 0, 0], "{options:?}");
        }
    }

    #[test]
    fn handshakes_are_told_from_data() {
        let tcp = |first: [u8; 2]| {
            let mut p = packet(ACK, 100);
            p[40..42].copy_from_slice(&first);
            p
        };
        assert!(is_handshake(&tcp([22, 3])), "a handshake record of TLS");
        assert!(!is_handshake(&tcp([23, 3])), "application data of TLS");
        assert!(!is_handshake(&packet(ACK, 0)), "no payload");
        let udp = |first: u8| {
            let mut p = vec![0; 28 + 1200];
            (p[0], p[9], p[28]) = (0x45, UDP, first);
            p
        };
        assert!(is_handshake(&udp(0xc3)), "QUIC's long header");
        assert!(!is_handshake(&udp(0x43)), "QUIC's short header");
        assert!(!is_handshake(&[]) && !is_handshake(&[0x45; 12]));
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        let sum = |p: &[u8]| {
            let words = p[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
            (words & 0xffff) + (words >> 16)
        };
        for tos in [0xb8 | 1, 2, 0x01] {
            let mut p = packet(ACK, 10);
            p[1] = tos;
            let rest = 0xffff - sum(&p) as u16;
            p[10..12].copy_from_slice(&rest.to_be_bytes());
            assert_eq!(sum(&p), 0xffff);
            set_ce(&mut p);
            assert_eq!((p[1], sum(&p)), (tos | 3, 0xffff), "{tos}");
            assert_eq!(packet_info(&p).ecn, Ecn::Ce);
        }
        set_ce(&mut [0x45; 3]);
    }

    #[test]
    fn connections_differ_in_their_flow() {
        let with_port = |port: u8| {
            let mut p = packet(ACK, 10);
            p[21] = port;
            packet_info(&p).flow
        };
        assert!(with_port(1) != with_port(2) && with_port(1) == with_port(1));
        let any = SocketAddrV4::new([0, 0, 0, 0].into(), 1);
        assert_eq!(tcp_flow(any, SocketAddrV4::new([0, 0, 0, 0].into(), 0)), with_port(1));
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
