//! The packet inside a tunnel: IP in IP (RFC 2003, 2473, 4213), GRE (RFC 2784, 2890), VXLAN (RFC 7348) and
//! MPLS (RFC 3032, with the control word of RFC 4448).

use etherparse::{IpNumber, LaxIpPayloadSlice, LaxSlicedPacket};

/// Tunnels within each other that are opened.
pub(super) const MOST: usize = 4;

const IPV4_IN_IP: IpNumber = IpNumber(4);
const IPV6_IN_IP: IpNumber = IpNumber(41);
const MPLS_IN_IP: IpNumber = IpNumber(137);
/// VXLAN's port, and the one that Linux used before it was assigned.
const VXLAN: [u16; 2] = [4789, 8472];
pub(super) const MPLS: u16 = 0x8847;

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
        IpNumber::UDP if VXLAN.contains(&be16(bytes, 2)?) => {
            // The header has the flag of a valid network identifier, and is eight bytes.
            (bytes.get(8)? & 0x08 != 0).then_some(())?;
            ethernet(bytes.get(16..)?)
        }
        _ => None,
    }
}

/// GRE of version 0 with any of its optional fields.
fn gre(bytes: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let flags = be16(bytes, 0)?;
    let version = flags % 8;
    (version == 0).then_some(())?;
    let fields = [0x8000, 0x2000, 0x1000].into_iter().filter(|f| flags & f != 0).count();
    let inner = bytes.get(4 + 4 * fields..)?;
    match be16(bytes, 2)? {
        0x0800 | 0x86dd => ip(inner),
        // Transparent Ethernet bridging.
        0x6558 => ethernet(inner),
        MPLS => mpls(inner),
        _ => None,
    }
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
