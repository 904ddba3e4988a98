//! The packet in a captured frame, for each link type (<https://www.tcpdump.org/linktypes.html>).

use etherparse::{EtherType, LaxSlicedPacket};
use pcap_parser::Linktype;
use pcap_parser::data::{PacketData, get_packetdata_nflog};

/// Link types that are read, in words.
pub(super) const KNOWN: &str = "Ethernet, Linux cooked, raw IP, loopback, PPP, PPPoE, 802.11, PKTAP or NFLOG";

/// True if frames of this link type can be read.
pub(super) fn known(link: Linktype) -> bool {
    matches!(
        link.0,
        0 | 1 | 9 | 12 | 14 | 51 | 101 | 104 | 105 | 108 | 113 | 127 | 149 | 228 | 229 | 239 | 258 | 276
    )
}

/// The name of a link type that cannot be read; `None` if it has none here.
pub(super) fn name(link: i32) -> Option<&'static str> {
    Some(match link {
        6 => "token ring",
        10 => "FDDI",
        109 => "OpenBSD IPsec",
        117 => "OpenBSD pf log",
        119 => "802.11 with a Prism header",
        147..=162 => "a user's own kind",
        163 => "802.11 with an AVS header",
        189 | 220 => "USB",
        187 | 201 | 251 | 254 | 256 => "Bluetooth",
        192 => "802.11 with a PPI header",
        195 | 230 | 283 => "802.15.4",
        227 => "CAN bus",
        252 => "Wireshark's exported protocols",
        253 => "netlink",
        _ => return None,
    })
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the packet in a frame; `None` if the frame has none, or is cut within its headers.
pub(super) fn packet(link: Linktype, frame: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let ether = |kind: usize, header: usize| {
        Some(LaxSlicedPacket::from_ether_type(EtherType(be16(frame, kind)?), frame.get(header..)?))
    };
    let ip = |bytes| LaxSlicedPacket::from_ip(bytes).ok();
    // The address family before the packet (NULL, LOOP) is redundant: the first four bits of the packet state
    // the IP version.
    match link.0 {
        1 => LaxSlicedPacket::from_ethernet(frame).ok(),
        0 | 108 => ip(frame.get(4..)?),
        // With the address and control bytes of HDLC, or without.
        9 => ppp(frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame)),
        12 | 14 | 101 | 228 | 229 => ip(frame),
        51 => pppoe(frame),
        104 => ether(2, 4),
        105 => wireless(frame),
        113 => ether(14, 16),
        127 => wireless(unwrapped(link, frame)?),
        // macOS writes PKTAP as 149 and 258: its own length, then at byte 8 the link type of what follows.
        149 | 258 => {
            let inner = Linktype(i32::try_from(le32(frame, 8)?).ok()?);
            let at = usize::try_from(le32(frame, 0)?).ok()?;
            (at >= 12 && !matches!(inner.0, 149 | 258)).then(|| packet(inner, frame.get(at..)?)).flatten()
        }
        239 => match get_packetdata_nflog(frame, frame.len())? {
            PacketData::L3(_, bytes) => ip(bytes),
            _ => None,
        },
        276 => ether(0, 20),
        _ => None,
    }
}

/// `PPPoE` from its own header on (RFC 2516): only of sessions, code 0.
pub(super) fn pppoe(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    (*bytes.get(1)? == 0).then(|| ppp(bytes.get(6..)?)).flatten()
}

/// PPP from the protocol on (RFC 1661), which may be one byte long.
fn ppp(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let (protocol, packet) = match bytes.first()? {
        short if short & 1 == 1 => (u16::from(*short), bytes.get(1..)?),
        _ => (be16(bytes, 0)?, bytes.get(2..)?),
    };
    matches!(protocol, 0x21 | 0x57).then(|| LaxSlicedPacket::from_ip(packet).ok()).flatten()
}

/// A frame of 802.11 without the header of radiotap, whose length is at byte 2.
pub(super) fn unwrapped(link: Linktype, frame: &[u8]) -> Option<&[u8]> {
    let at =
        if link.0 == 127 { usize::from(u16::from_le_bytes(frame.get(2..4)?.try_into().ok()?)) } else { 0 };
    frame.get(at..)
}

/// The flags of an 802.11 header, in its second byte: to and from the distribution system (both: a fourth
/// address), protected, and +HTC.
const FOUR_ADDRESSES: u8 = 0x03;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// True if an 802.11 frame of data is encrypted.
pub(super) fn is_encrypted(frame: &[u8]) -> bool {
    matches!(frame, [kind, flags, ..] if kind & 0x0c == 0x08 && flags & PROTECTED > 0)
}

/// A data frame of 802.11, with an LLC and SNAP header; one packet in a frame.
fn wireless(frame: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let (kind, flags) = (*frame.first()?, *frame.get(1)?);
    // Data with a payload.
    if kind & 0x4c != 0x08 || flags & PROTECTED > 0 {
        return None;
    }
    let quality = kind & 0x80 > 0;
    let mut at = 24;
    at += if flags & FOUR_ADDRESSES == FOUR_ADDRESSES { 6 } else { 0 };
    at += if quality { 2 } else { 0 };
    at += if quality && flags & ORDER > 0 { 4 } else { 0 };
    let llc = frame.get(at..)?;
    llc.starts_with(&[0xaa, 0xaa, 3]).then_some(())?;
    Some(LaxSlicedPacket::from_ether_type(EtherType(be16(llc, 6)?), llc.get(8..)?))
}
