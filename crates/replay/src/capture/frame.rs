//! The TCP header in a captured frame, for any link type and snapshot length, also inside tunnels.

use super::{link, tunnel};
use etherparse::{
    IpNumber, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TcpOptionReadError, TcpOptionsIterator,
};
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
    /// Window field, not scaled; `None` if the packet is cut before it.
    pub window: Option<u16>,
    /// Flags, as in `tcp::segment`.
    pub flags: u8,
    /// The ninth flag, AE (RFC 9768), which was NS before.
    pub accurate: bool,
    /// True if the packet is cut within its options: of those that it lacks nothing is known.
    pub cut: bool,
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

/// Why a frame gives no TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Its TCP header is cut before the flags.
    Cut,
    /// It has no TCP header, or it is a fragment other than the first.
    Other,
}

/// What a frame that [`parse`] refuses contains, in words.
pub fn what(link: Linktype, frame: &[u8]) -> String {
    let is_wireless = matches!(link.0, 105 | 127);
    let Some(packet) = innermost(link, frame) else {
        let encrypted = is_wireless && link::is_encrypted(link::unwrapped(link, frame).unwrap_or_default());
        return if encrypted { "encrypted 802.11" } else { "no IP" }.to_string();
    };
    let Some(found) = payload(&packet) else {
        return match packet.ether_payload().map(|p| p.ether_type) {
            Some(etherparse::EtherType::ARP) => "ARP".to_string(),
            Some(kind) => format!("EtherType {:#06x}", kind.0),
            None => "no IP".to_string(),
        };
    };
    let port = |at: usize| Some(u16::from_be_bytes(found.payload.get(at..at + 2)?.try_into().ok()?));
    match (found.ip_number, port(0), port(2)) {
        _ if found.fragmented => "IP fragments".to_string(),
        (IpNumber::UDP, Some(a), Some(b)) => udp(a.min(b), a.max(b)),
        (n, ..) => match n.keyword_str() {
            Some(name) => name.to_string(),
            None => format!("IP protocol {}", n.0),
        },
    }
}

/// What UDP between these ports is.
fn udp(low: u16, high: u16) -> String {
    for port in [low, high] {
        let name = match port {
            53 => "DNS",
            443 => "QUIC",
            500 | 4500 => "IPsec over UDP, which is encrypted",
            1194 => "OpenVPN, which is encrypted",
            1701 => "L2TP",
            2152 => "GTP-U without IP",
            4790 => "VXLAN-GPE",
            37008 => "TZSP",
            51820 => "WireGuard, which is encrypted",
            _ => continue,
        };
        return name.to_string();
    }
    format!("UDP of port {low}")
}

fn payload<'a>(packet: &LaxSlicedPacket<'a>) -> Option<etherparse::LaxIpPayloadSlice<'a>> {
    match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => Some(ip.payload().clone()),
        LaxNetSlice::Ipv6(ip) => Some(ip.payload().clone()),
        LaxNetSlice::Arp(_) => None,
    }
}

/// The packet in a frame, inside its tunnels.
fn innermost(link: Linktype, frame: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let mut packet = link::packet(link, frame)?;
    for _ in 0..tunnel::MOST {
        let inner = match packet.ether_payload() {
            Some(labels) if labels.ether_type.0 == tunnel::MPLS => tunnel::mpls(labels.payload),
            Some(session) if session.ether_type.0 == tunnel::PPPOE => link::pppoe(session.payload),
            _ => payload(&packet).and_then(|p| tunnel::open(&p)),
        };
        match inner {
            Some(inner) => packet = inner,
            None => break,
        }
    }
    Some(packet)
}

/// Bytes of a TCP header up to its flags.
const LEAST: usize = 14;

/// The TCP segment in a frame. `on_wire` is the length of the whole frame.
///
/// # Errors
/// For all other traffic, for fragments other than the first, and if the frame is cut too short.
pub fn parse(link: Linktype, frame: &[u8], on_wire: u32) -> Result<TcpSegment, Unread> {
    let packet = innermost(link, frame).ok_or(Unread::Other)?;
    let mut segment = TcpSegment::default();
    let (payload, announced) = match packet.net.as_ref().ok_or(Unread::Other)? {
        LaxNetSlice::Ipv4(ip) => {
            let h = ip.header();
            let mapped = |a: [u8; 4]| 0xffff_0000_0000 | u128::from(u32::from_be_bytes(a));
            segment.addresses = [mapped(h.source()), mapped(h.destination())];
            segment.id = h.identification();
            segment.marked = h.ecn().value() == 3;
            if h.fragments_offset().value() > 0 {
                return Err(Unread::Other);
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
        LaxNetSlice::Arp(_) => return Err(Unread::Other),
    };
    if payload.ip_number != IpNumber::TCP || payload.fragmented {
        return Err(Unread::Other);
    }
    let tcp = payload.payload;
    let head = tcp.first_chunk::<LEAST>().ok_or(Unread::Cut)?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let header = usize::from(head[12] >> 4) * 4;
    if header < 20 {
        return Err(Unread::Other);
    }
    // If IP does not state the length, the frame's length is used; Ethernet padding then counts as payload.
    let before = tcp.as_ptr() as usize - frame.as_ptr() as usize;
    let length = announced.unwrap_or_else(|| on_wire.saturating_sub(before as u32));
    segment.ports = [half(0), half(2)];
    (segment.seq, segment.ack) = (word(4), word(8));
    (segment.flags, segment.accurate) = (head[13], head[12] & 1 == 1);
    segment.window = tcp.get(14..16).map(|w| u16::from_be_bytes([w[0], w[1]]));
    segment.len = length.saturating_sub(header as u32);
    segment.cut = tcp.len() < header;
    options(&mut segment, tcp.get(20..header.min(tcp.len())).unwrap_or_default());
    Ok(segment)
}

fn options(segment: &mut TcpSegment, bytes: &[u8]) {
    // What nearly every segment has, as the kernel reads it (`tcp_parse_aligned_timestamp`).
    if let [1, 1, 8, 10, v0, v1, v2, v3, e0, e1, e2, e3] = *bytes {
        segment.timestamp =
            Some((u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3])));
        return;
    }
    let mut all = TcpOptionsIterator::from_slice(bytes);
    loop {
        let rest = all.rest();
        let option = match (all.next(), rest) {
            (Some(Ok(option)), _) => option,
            // One that is not known here is passed over.
            (Some(Err(TcpOptionReadError::UnknownId(_))), [_, length, ..]) if *length >= 2 => {
                all = TcpOptionsIterator::from_slice(rest.get(usize::from(*length)..).unwrap_or_default());
                continue;
            }
            // One that is cut or invalid ends the list; the options before it are kept.
            _ => return,
        };
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
        let pppoe = [0x11, 0, 0, 1, 4, 30, 0, 0x21];
        let session = with(&[&[0; 12][..], &[0x88, 0x64], &pppoe].concat());
        let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let wireless = with(&[&[0x08, 1][..], &[0; 22], &llc].concat());
        // With quality of service, four addresses and +HTC.
        let quality = with(&[&[0x88, 0x83][..], &[0; 22], &[0; 6 + 2 + 4], &llc].concat());
        let radiotap = [&[0, 0, 9, 0, 0, 0, 0, 0, 7][..], &wireless].concat();
        let pktap =
            |link: u8, frame: &[u8]| [&[16, 0, 0, 0, 1, 0, 0, 0, link, 0, 0, 0, 7, 7, 7, 7], frame].concat();
        // The payload, attribute 9 of NFLOG, after an attribute of 2 bytes and its padding.
        let nflog = with(&[2, 0, 0, 1, 6, 0, 1, 0, 7, 7, 0, 0, 56, 0, 9, 0]);
        for (link, frame) in [
            (1, ethernet.clone()),
            (1, vlan),
            (113, cooked),
            (276, cooked2),
            (0, null),
            (1, session),
            (51, with(&pppoe)),
            (9, with(&[0xff, 3, 0, 0x21])),
            (9, with(&[0x21])),
            (104, with(&[0x0f, 0, 8, 0])),
            (105, wireless),
            (105, quality),
            (127, radiotap),
            (149, pktap(1, &ethernet)),
            (258, pktap(12, &packet())),
            (239, nflog),
        ] {
            assert_eq!(parse(Linktype(link), &frame, 1066), Ok(raw), "link {link}");
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
            (
                "GENEVE",
                101,
                outer(17, &udp([0x17, 0xc1], &[&[0, 0, 0x65, 0x58, 0, 0, 1, 0][..], &ethernet].concat())),
            ),
            (
                "GENEVE with an option",
                101,
                outer(17, &udp([0x17, 0xc1], &with(&[1, 0, 8, 0, 0, 0, 1, 0, 7, 7, 7, 7]))),
            ),
            ("GTP-U", 101, outer(17, &udp([8, 104], &with(&[0x30, 255, 4, 28, 0, 0, 0, 7])))),
            (
                "GTP-U with a sequence number and an extension",
                101,
                outer(17, &udp([8, 104], &with(&[0x36, 255, 4, 28, 0, 0, 0, 7, 0, 9, 0, 0x85, 1, 0, 9, 0]))),
            ),
            ("MPLS, two labels", 1, labels),
            ("MPLS pseudowire with control word", 1, wire),
        ];
        for (name, link, frame) in cases {
            let whole = frame.len();
            assert_eq!(parse(Linktype(link), &frame, 1152), Ok(raw), "{name}");
            // Cut anywhere, it gives a segment only if the ports and numbers of the inner one are there.
            for cut in 0..whole {
                let segment = parse(Linktype(link), &frame[..cut], 1152);
                assert_eq!(segment.is_ok(), cut >= whole - 18, "{name}, {cut}");
            }
        }
        // More tunnels than are opened, another port, and GRE of another version are no TCP.
        let deep = (0..=tunnel::MOST).fold(packet(), |p, _| outer(4, &p));
        for (frame, says) in [
            (deep, "IPv4"),
            (outer(17, &udp([0, 53], &vxlan)), "DNS"),
            (outer(17, &udp([0xca, 0x6c], &vxlan)), "WireGuard, which is encrypted"),
            (outer(47, &with(&[0, 1, 8, 0])), "GRE"),
            (outer(50, &packet()), "ESP"),
        ] {
            assert_eq!(parse(Linktype(101), &frame, 1152), Err(Unread::Other));
            assert_eq!(what(Linktype(101), &frame), says);
        }
        assert_eq!(what(Linktype(105), &[&[8, 0x41][..], &[7; 60]].concat()), "encrypted 802.11");
        for (kind, says) in [([8, 6], "ARP"), ([0x88, 0xcc], "EtherType 0x88cc")] {
            let request =
                [0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
            assert_eq!(what(Linktype(1), &[&[2; 12][..], &kind, &request].concat()), says);
        }
    }

    #[test]
    fn ipv6_and_lengths_that_are_not_set() {
        let tcp = packet()[20..].to_vec();
        let mut six = vec![0x60, 0, 0, 0, 0x04, 0x08, 6, 64];
        six.extend([0x20; 32]);
        six.extend(&tcp);
        assert_eq!(parse(Linktype(101), &six, 1072).map(|s| s.len), Ok(1000));
        // A super-segment captured before segmentation: no length in the header.
        let mut big = packet();
        (big[2], big[3]) = (0, 0);
        assert_eq!(parse(Linktype(101), &big, 20 + 32 + 64_000).map(|s| s.len), Ok(64_000));
    }

    #[test]
    fn what_is_cut_is_read_as_far_as_it_goes() {
        let whole = packet();
        for cut in 0..whole.len() {
            let segment = parse(Linktype(101), &whole[..cut], 1052);
            assert_eq!(segment.is_ok(), cut >= 34, "{cut}");
            match segment {
                Ok(s) => {
                    assert_eq!((s.len, s.timestamp.is_some(), s.cut), (1000, false, true));
                    assert_eq!(s.window, (cut >= 36).then_some(256));
                }
                Err(why) => assert_eq!(why == Unread::Cut, cut >= 20, "{cut}"),
            }
        }
    }

    /// Options of accurate ECN and Multipath TCP stand before the timestamps.
    #[test]
    fn options_that_are_not_known_are_passed_over() {
        let mut p = packet();
        let stamps = p.split_off(40);
        p[32] = 0xb0;
        p.extend([172, 5, 0, 0, 1, 30, 4, 0, 0]);
        p.extend(stamps);
        let found = parse(Linktype(101), &p, 1052).expect("a segment");
        assert_eq!((found.timestamp, found.cut), (Some((5, 4)), true));
    }
}
