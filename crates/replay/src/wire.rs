//! Writes a simulated run as a capture: pcapng, headers only, raw IPv4, nanoseconds.

use etherparse::{IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, TcpOptions};
use slowstart_sim::tcp::segment::{ACK, FIN, PSH, RST, SYN, Segment};
use slowstart_sim::trace::CapturedPacket;
use std::io::{self, Write};

/// Addresses of server and client, reserved for documentation (RFC 5737).
const ADDRESSES: [[u8; 4]; 2] = [[192, 0, 2, 1], [198, 51, 100, 1]];
/// Port of the server, and of the client in the first flow.
const PORTS: [u16; 2] = [443, 50_000];
/// `LINKTYPE_RAW`: the packet begins with the IP header.
const RAW: u16 = 101;
/// More than any header written here.
const SNAPLEN: u32 = 128;

/// Writes a block: its type, and its body padded to four bytes between two lengths.
fn block(out: &mut impl Write, kind: u32, body: &[&[u8]]) -> io::Result<()> {
    let len: usize = body.iter().map(|b| b.len()).sum();
    let pad = len.next_multiple_of(4) - len;
    let total = (12 + len + pad) as u32;
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&total.to_le_bytes())?;
    for part in body {
        out.write_all(part)?;
    }
    out.write_all(&[0; 3][..pad])?;
    out.write_all(&total.to_le_bytes())
}

/// Writes the section header and the one interface (draft-ietf-opsawg-pcapng 4.1, 4.2).
fn header(out: &mut impl Write, end: u8) -> io::Result<()> {
    // Byte order, version 1.0, length of the section unknown.
    block(out, 0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes(), &1_u16.to_le_bytes(), &[0; 2], &[0xff; 8]])?;
    let name: &[u8; 8] = if end == 0 { b"server\0\0" } else { b"client\0\0" };
    let options: &[&[u8]] = &[
        &RAW.to_le_bytes(),
        &[0; 2],
        &SNAPLEN.to_le_bytes(),
        // if_name, if_tsresol in 10^-9 s, end of options.
        &[2, 0, 6, 0],
        name,
        &[9, 0, 1, 0, 9, 0, 0, 0],
        &[0; 4],
    ];
    block(out, 1, options)
}

fn options(s: &Segment) -> Vec<TcpOptionElement> {
    let mut all = Vec::new();
    if s.has(SYN) {
        if s.mss > 0 {
            all.push(TcpOptionElement::MaximumSegmentSize(s.mss));
        }
        if s.sack_ok {
            all.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
        }
    }
    if let Some((value, echo)) = s.timestamp {
        // Linux places its padding here.
        if !(s.has(SYN) && s.sack_ok) {
            all.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
        }
        all.push(TcpOptionElement::Timestamp(value, echo));
    } else if s.has(SYN) && s.sack_ok {
        all.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
    }
    if let Some(scale) = s.scale.filter(|_| s.has(SYN)) {
        all.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(scale)]);
    }
    if let [first, more @ ..] = s.blocks() {
        all.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
        let more = [more.first().copied(), more.get(1).copied(), None];
        all.push(TcpOptionElement::SelectiveAcknowledgement(*first, more));
    }
    all
}

/// The packet's headers and its length on the wire.
fn packet(c: &CapturedPacket, id: u16) -> (Vec<u8>, u32) {
    let s = &c.segment;
    // The end that sent the packet.
    let from = usize::from(if c.leaves { c.end } else { 1 - c.end });
    let port = |end: usize| if end == 0 { PORTS[0] } else { PORTS[1].wrapping_add(c.flow as u16) };
    let mut tcp = TcpHeader::new(port(from), port(1 - from), s.seq, s.window);
    (tcp.ack, tcp.syn, tcp.fin) = (s.has(ACK), s.has(SYN), s.has(FIN));
    (tcp.psh, tcp.rst) = (s.has(PSH), s.has(RST));
    tcp.acknowledgment_number = s.ack;
    // The options of a segment always fit into 40 bytes.
    tcp.options = TcpOptions::try_from_elements(&options(s)).unwrap_or_default();
    let length = u32::from(tcp.header_len_u16()) + s.len;
    // Segments are those on the wire, so they fit into an IPv4 packet.
    let short = u16::try_from(length).unwrap_or(u16::MAX - 20);
    let (source, destination) = (ADDRESSES[from], ADDRESSES[1 - from]);
    let mut ip = Ipv4Header::new(short, 64, IpNumber::TCP, source, destination).unwrap_or_default();
    ip.identification = id;
    ip.dont_fragment = true;
    ip.header_checksum = ip.calc_header_checksum();
    let payload = vec![0; s.len as usize];
    tcp.checksum = tcp.calc_checksum_ipv4_raw(source, destination, &payload).unwrap_or_default();
    let mut bytes = ip.to_bytes().to_vec();
    bytes.extend_from_slice(&tcp.to_bytes());
    (bytes, 20 + length)
}

/// Writes the packets at the interface of an end (0: server, 1: client). Times count from the begin of the
/// run, as if that were 1970.
pub fn write(out: &mut impl Write, packets: &[CapturedPacket], end: u8) -> io::Result<()> {
    header(out, end)?;
    // Each end numbers its packets, so that no two are identical.
    let mut ids = [0_u16; 2];
    for c in packets.iter().filter(|c| c.end == end) {
        let id = &mut ids[usize::from(c.leaves)];
        *id = id.wrapping_add(1).max(1);
        let (bytes, length) = packet(c, *id);
        let head = [0, (c.at.0 >> 32) as u32, c.at.0 as u32, bytes.len() as u32, length];
        let head: Vec<u8> = head.iter().flat_map(|w| w.to_le_bytes()).collect();
        block(out, 6, &[&head, &bytes])?;
    }
    Ok(())
}
