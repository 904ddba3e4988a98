//! The packet inside a tunnel: IP in IP (RFC 2003, 2473, 4213), GRE (RFC 2784, 2890), VXLAN (RFC 7348),
//! GENEVE (RFC 8926), GTP-U (3GPP TS 29.281) and MPLS (RFC 3032, with the control word of RFC 4448).

use etherparse::{IpNumber, LaxIpPayloadSlice, LaxSlicedPacket};

/// Tunnels within each other that are opened.
pub(super) const MOST: usize = 4;

const IPV4_IN_IP: IpNumber = IpNumber(4);
const IPV6_IN_IP: IpNumber = IpNumber(41);
const MPLS_IN_IP: IpNumber = IpNumber(137);
/// VXLAN's port, and the one that Linux used before it was assigned.
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;
pub(super) const MPLS: u16 = 0x8847;
pub(super) const PPPOE: u16 = 0x8864;

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn ip(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    LaxSlicedPacket::from_ip(bytes).ok()
}

fn ethernet(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    LaxSlicedPacket::from_ethernet(bytes).ok()
}

/// Returns the packet inside the payload of an IP packet; `None` if the payload is no tunnel, is a fragment,
/// or is cut within the tunnel's header.
pub(super) fn open<'a>(payload: &LaxIpPayloadSlice<'a>) -> Option<LaxSlicedPacket<'a>> {
    let bytes = payload.payload;
    if payload.fragmented {
        return None;
    }
    match payload.ip_number {
        IPV4_IN_IP | IPV6_IN_IP => ip(bytes),
        IpNumber::GRE => gre(bytes),
        MPLS_IN_IP => mpls(bytes),
        IpNumber::UDP => match be16(bytes, 2)? {
            port if VXLAN.contains(&port) => {
                // The header has the flag of a valid network identifier, and is eight bytes.
                (bytes.get(8)? & 0x08 != 0).then_some(())?;
                ethernet(bytes.get(16..)?)
            }
            GENEVE => geneve(bytes.get(8..)?),
            GTP_U => gtp_u(bytes.get(8..)?),
            _ => None,
        },
        _ => None,
    }
}

/// What a tunnel states with an `EtherType` that it carries.
fn of_type(kind: u16, inner: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    match kind {
        0x0800 | 0x86dd => ip(inner),
        // Transparent Ethernet bridging.
        0x6558 => ethernet(inner),
        MPLS => mpls(inner),
        _ => None,
    }
}

/// GENEVE of version 0, after the header of UDP: options of so many words, and the kind of what follows.
fn geneve(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let first = *bytes.first()?;
    (first >> 6 == 0).then_some(())?;
    of_type(be16(bytes, 2)?, bytes.get(8 + 4 * usize::from(first & 0x3f)..)?)
}

/// The message of GTP-U that carries a packet.
const G_PDU: u8 = 255;

/// GTP-U of version 1, after the header of UDP. Any of three flags adds four bytes, of which the last is the
/// kind of an extension header; each of these begins with its length in words, and ends with the next kind.
fn gtp_u(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let flags = *bytes.first()?;
    (flags >> 4 == 3 && *bytes.get(1)? == G_PDU).then_some(())?;
    let mut at = 8;
    if flags & 7 > 0 {
        let mut next = *bytes.get(11)?;
        at = 12;
        while flags & 4 > 0 && next != 0 {
            let words = usize::from(*bytes.get(at)?);
            (words > 0).then_some(())?;
            at += 4 * words;
            next = *bytes.get(at - 1)?;
        }
    }
    ip(bytes.get(at..)?)
}

/// GRE of version 0 with any of its optional fields.
fn gre(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let flags = be16(bytes, 0)?;
    let version = flags % 8;
    (version == 0).then_some(())?;
    let fields = [0x8000, 0x2000, 0x1000].into_iter().filter(|f| flags & f != 0).count();
    of_type(be16(bytes, 2)?, bytes.get(4 + 4 * fields..)?)
}

/// The packet below a stack of labels. Labels do not state what they carry: the first four bits of IP are its
/// version, those of a control word are 0 (RFC 4385), and everything else is Ethernet.
pub(super) fn mpls(mut bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    loop {
        let last = bytes.get(2)? & 1 == 1;
        bytes = bytes.get(4..)?;
        if last {
            break;
        }
    }
    match bytes.first()? >> 4 {
        4 | 6 => ip(bytes),
        0 => ethernet(bytes.get(4..)?),
        _ => ethernet(bytes),
    }
}
