//! The TCP header in a captured frame, for any link type and snapshot length, also inside tunnels.

use super::tunnel;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpOptionsIterator};
use pcap_parser::Linktype;

/// Maximum number of SACK blocks in a header without timestamps.
const BLOCKS: usize = 4;

/// A TCP segment as captured.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpSegment {
    /// Source and destination address; IPv4 addresses as IPv4-mapped IPv6.
    pub addresses: [u128; 2],
    /// Source and destination port.
    pub ports: [u16; 2],
    /// The sequence number of the header.
    pub seq: u32,
    /// The acknowledgement number of the header.
    pub ack: u32,
    /// Window field, not scaled.
    pub window: u16,
    /// Flags, as in `tcp::segment`.
    pub flags: u8,
    /// True if congestion experienced is set (RFC 3168 §5).
    pub marked: bool,
    /// Payload bytes on the wire, captured or not.
    pub len: u32,
    /// IPv4 identification; 0 if there is none.
    pub id: u16,
    /// Timestamp value and echo.
    pub timestamp: Option<(u32, u32)>,
    /// Maximum segment size, on a SYN.
    pub mss: Option<u16>,
    /// Window scale, on a SYN.
    pub scale: Option<u8>,
    /// SACK blocks; only the first `sacks` are set.
    pub sack: [(u32, u32); BLOCKS],
    /// Number of SACK blocks.
    pub sacks: u8,
}

impl TcpSegment {
    /// Returns the SACK blocks of the packet; empty if it has none.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sacks)]
    }
    /// True if all of these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// True if frames of this link type can be read.
pub fn known(link: Linktype) -> bool {
    matches!(link.0, 0 | 1 | 12 | 14 | 101 | 108 | 113 | 228 | 229 | 276)
}

/// Ports of a UDP packet in a frame that [`parse`] refuses.
pub fn udp_ports(link: Linktype, frame: &[u8]) -> Option<[u16; 2]> {
    let payload = ip_payload(link, frame)?;
    let udp = payload.payload;
    let be16 = |at: usize| Some(u16::from_be_bytes(udp.get(at..at + 2)?.try_into().ok()?));
    (payload.ip_number == etherparse::IpNumber::UDP && !payload.fragmented).then_some(())?;
    Some([be16(0)?, be16(2)?])
}

/// The payload of the IP packet in a frame, outside of tunnels.
fn ip_payload(link: Linktype, frame: &[u8]) -> Option<etherparse::LaxIpPayloadSlice<'_>> {
    payload(&packet(link, frame)?)
}

fn payload<'a>(packet: &LaxSlicedPacket<'a>) -> Option<etherparse::LaxIpPayloadSlice<'a>> {
    match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => Some(ip.payload().clone()),
        LaxNetSlice::Ipv6(ip) => Some(ip.payload().clone()),
        LaxNetSlice::Arp(_) => None,
    }
}

/// The packet inside the tunnels of a packet, or the packet itself.
fn innermost(mut packet: LaxSlicedPacket<'_>) -> Option<LaxSlicedPacket<'_>> {
    for _ in 0..tunnel::MOST {
        let inner = match packet.ether_payload() {
            Some(labels) if labels.ether_type.0 == tunnel::MPLS => tunnel::mpls(labels.payload),
            _ => tunnel::open(&payload(&packet)?),
        };
        match inner {
            Some(inner) => packet = inner,
            None => break,
        }
    }
    Some(packet)
}

/// The packet in a frame.
fn packet(link: Linktype, frame: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let be16 = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let cooked = |protocol: usize, header: usize| {
        Some(LaxSlicedPacket::from_ether_type(EtherType(be16(protocol)?), frame.get(header..)?))
    };
    // Link types: http://www.tcpdump.org/linktypes.html. The address family before the packet (NULL, LOOP) is
    // redundant: the first four bits of the packet state the IP version.
    match link.0 {
        1 => LaxSlicedPacket::from_ethernet(frame).ok(),
        0 | 108 => LaxSlicedPacket::from_ip(frame.get(4..)?).ok(),
        12 | 14 | 101 | 228 | 229 => LaxSlicedPacket::from_ip(frame).ok(),
        113 => cooked(14, 16),
        276 => cooked(0, 20),
        _ => None,
    }
}

/// The TCP segment in a frame; `None` for all other traffic, for fragments other than the first, and if the
/// frame is cut too short. `on_wire` is the length of the whole frame.
pub fn parse(link: Linktype, frame: &[u8], on_wire: u32) -> Option<TcpSegment> {
    let packet = innermost(packet(link, frame)?)?;
    let mut segment = TcpSegment::default();
    let (payload, announced) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let h = ip.header();
            let mapped = |a: [u8; 4]| 0xffff_0000_0000 | u128::from(u32::from_be_bytes(a));
            segment.addresses = [mapped(h.source()), mapped(h.destination())];
            segment.id = h.identification();
            segment.marked = h.ecn().value() == 3;
            if h.fragments_offset().value() > 0 {
                return None;
            }
            // Zero for super-segments captured before the interface segments them.
            let total = u32::from(h.total_len());
            (ip.payload(), total.checked_sub(u32::from(h.ihl()) * 4))
        }
        LaxNetSlice::Ipv6(ip) => {
            let h = ip.header();
            segment.addresses = [h.source(), h.destination()].map(u128::from_be_bytes);
            segment.marked = h.traffic_class() & 3 == 3;
            let length = u32::from(h.payload_length());
            let extensions = ip.extensions().slice().len() as u32;
            (ip.payload(), length.checked_sub(extensions).filter(|_| length > 0))
        }
        LaxNetSlice::Arp(_) => return None,
    };
    if payload.ip_number != etherparse::IpNumber::TCP || payload.fragmented {
        return None;
    }
    let tcp = payload.payload;
    let head: &[u8; 20] = tcp.get(..20)?.try_into().ok()?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let header = usize::from(head[12] >> 4) * 4;
    if header < 20 {
        return None;
    }
    // If IP does not state the length, the frame's length is used; Ethernet padding then counts as payload.
    let before = tcp.as_ptr() as usize - frame.as_ptr() as usize;
    let length = announced.unwrap_or_else(|| on_wire.saturating_sub(before as u32));
    segment.ports = [half(0), half(2)];
    (segment.seq, segment.ack) = (word(4), word(8));
    segment.flags = head[13];
    segment.window = half(14);
    segment.len = length.saturating_sub(header as u32);
    options(&mut segment, tcp.get(20..header.min(tcp.len())).unwrap_or_default());
    Some(segment)
}

fn options(segment: &mut TcpSegment, bytes: &[u8]) {
    for option in TcpOptionsIterator::from_slice(bytes) {
        // An option that is cut or invalid ends the list; the options before it are kept.
        let Ok(option) = option else { return };
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => segment.mss = Some(mss),
            TcpOptionElement::WindowScale(scale) => segment.scale = Some(scale.min(14)),
            TcpOptionElement::Timestamp(value, echo) => segment.timestamp = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                segment.sack[0] = first;
                segment.sacks = 1;
                for block in more.into_iter().flatten() {
                    segment.sack[usize::from(segment.sacks)] = block;
                    segment.sacks += 1;
                }
            }
            TcpOptionElement::Noop | TcpOptionElement::SelectiveAcknowledgementPermitted => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv4, TCP with timestamps, 1000 bytes of payload of which none was captured.
    pub(super) fn packet() -> Vec<u8> {
        let mut p = vec![0x45, 0, 0x04, 0x1c, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        p.extend([0x1f, 0x90, 0xc3, 0x50, 0, 0, 0, 1, 0, 0, 0, 9, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
        p.extend([1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 4]);
        p
    }

    fn with(head: &[u8]) -> Vec<u8> {
        [head, &packet()].concat()
    }

    #[test]
    fn every_link_leads_to_the_same_segment() {
        let raw = parse(Linktype(101), &packet(), 1052).expect("a segment");
        assert_eq!((raw.len, raw.seq, raw.ack, raw.timestamp), (1000, 1, 9, Some((5, 4))));
        assert_eq!((raw.ports, raw.id, raw.flags), ([8080, 50_000], 7, 0x10));
        let ethernet = with(&[&[0; 12][..], &[8, 0]].concat());
        let vlan = with(&[&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat());
        let cooked = with(&[&[0; 14][..], &[8, 0]].concat());
        let cooked2 = with(&[&[8, 0][..], &[0; 18]].concat());
        let null = with(&[2, 0, 0, 0]);
        for (link, frame) in [(1, ethernet), (1, vlan), (113, cooked), (276, cooked2), (0, null)] {
            assert_eq!(parse(Linktype(link), &frame, 1066), Some(raw), "link {link}");
        }
    }

    /// An IPv4 header around so many bytes of a protocol.
    fn outer(protocol: u8, inner: &[u8]) -> Vec<u8> {
        let length = (20 + inner.len() as u16).to_be_bytes();
        let mut p = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
        p.extend([172, 16, 0, 1, 172, 16, 0, 2]);
        p.extend(inner);
        p
    }

    #[test]
    fn every_tunnel_leads_to_the_same_segment() {
        let raw = parse(Linktype(101), &packet(), 1052).expect("a segment");
        let ethernet = with(&[&[0; 12][..], &[8, 0]].concat());
        let udp = |port: [u8; 2], rest: &[u8]| [&[0xc0, 0][..], &port, &[0, 0, 0, 0], rest].concat();
        let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet].concat();
        let labels = with(&[&[0; 12][..], &[0x88, 0x47], &[0, 1, 0x40, 64], &[0, 2, 0x41, 64]].concat());
        let wire = [&[0; 12][..], &[0x88, 0x47], &[0, 2, 0x41, 64], &[0, 0, 0, 9], &ethernet].concat();
        let cases = [
            ("IP in IP", 101, outer(4, &packet())),
            ("GRE", 101, outer(47, &with(&[0, 0, 8, 0]))),
            (
                "GRE with key and sequence number",
                101,
                outer(47, &with(&[0x30, 0, 8, 0, 0, 0, 0, 7, 0, 0, 0, 1])),
            ),
            ("GRE bridge", 101, outer(47, &[&[0, 0, 0x65, 0x58][..], &ethernet].concat())),
            ("VXLAN", 101, outer(17, &udp([0x12, 0xb5], &vxlan))),
            (
                "VXLAN in GRE",
                101,
                outer(47, &[&[0, 0, 8, 0][..], &outer(17, &udp([0x21, 0x18], &vxlan))].concat()),
            ),
            ("MPLS, two labels", 1, labels),
            ("MPLS pseudowire with control word", 1, wire),
        ];
        for (name, link, frame) in cases {
            let whole = frame.len();
            assert_eq!(parse(Linktype(link), &frame, 1152), Some(raw), "{name}");
            // Cut anywhere, it gives a segment only if the ports and numbers of the inner one are there.
            for cut in 0..whole {
                let segment = parse(Linktype(link), &frame[..cut], 1152);
                assert_eq!(segment.is_some(), cut >= whole - 12, "{name}, {cut}");
            }
        }
        // More tunnels than are opened, another port, and GRE of another version are no TCP.
        let deep = (0..=tunnel::MOST).fold(packet(), |p, _| outer(4, &p));
        for frame in [deep, outer(17, &udp([0, 53], &vxlan)), outer(47, &with(&[0, 1, 8, 0]))] {
            assert_eq!(parse(Linktype(101), &frame, 1152), None);
        }
    }

    #[test]
    fn ipv6_and_lengths_that_are_not_set() {
        let tcp = packet()[20..].to_vec();
        let mut six = vec![0x60, 0, 0, 0, 0x04, 0x08, 6, 64];
        six.extend([0x20; 32]);
        six.extend(&tcp);
        assert_eq!(parse(Linktype(101), &six, 1072).map(|s| s.len), Some(1000));
        // A super-segment captured before segmentation: no length in the header.
        let mut big = packet();
        (big[2], big[3]) = (0, 0);
        assert_eq!(parse(Linktype(101), &big, 20 + 32 + 64_000).map(|s| s.len), Some(64_000));
    }

    #[test]
    fn what_is_cut_is_read_as_far_as_it_goes() {
        let whole = packet();
        for cut in 0..whole.len() {
            let segment = parse(Linktype(101), &whole[..cut], 1052);
            assert_eq!(segment.is_some(), cut >= 40, "{cut}");
            if let Some(s) = segment {
                assert_eq!((s.len, s.timestamp.is_some()), (1000, false));
            }
        }
    }
}
