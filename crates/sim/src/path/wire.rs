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
