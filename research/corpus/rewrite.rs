//! Captures made out of another: as a point between the two ends sees the connection, and as an interface
//! with segmentation or receive offload shows it.

/// A packet of a capture: nanoseconds since 1970, length on the wire, what was captured of its IP packet.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) ns: u64,
    pub(crate) len: u32,
    pub(crate) bytes: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}

/// Reads a pcap with microseconds in this machine's byte order, as tcpdump writes it on a TUN device.
pub(crate) fn read(file: &[u8]) -> Vec<Frame> {
    let (mut all, mut at) = (Vec::new(), 24);
    while file.len() >= at + 16 {
        let captured = word(file, at + 8) as usize;
        let Some(bytes) = file.get(at + 16..at + 16 + captured) else { break };
        let ns = u64::from(word(file, at)) * 1_000_000_000 + u64::from(word(file, at + 4)) * 1000;
        all.push(Frame { ns, len: word(file, at + 12), bytes: bytes.to_vec() });
        at += 16 + captured;
    }
    all
}

/// Writes a pcap with the header of `like`.
pub(crate) fn write(like: &[u8], frames: &[Frame]) -> Vec<u8> {
    let mut file = like[..24].to_vec();
    for f in frames {
        let us = f.ns / 1000;
        for n in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, f.bytes.len() as u32, f.len] {
            file.extend(n.to_le_bytes());
        }
        file.extend(&f.bytes);
    }
    file
}

/// The connection as seen `ns` away from the server's end of the path, where it was captured, with nothing
/// that delays packets in between.
pub(crate) fn away(frames: &[Frame], ns: u64) -> Vec<Frame> {
    let by_server = |f: &Frame| f.bytes.get(12..16) == Some(&[10, 77, 0, 1]);
    let shift = |f: &Frame| {
        let ns = if by_server(f) { f.ns + ns } else { f.ns - ns };
        Frame { ns, ..f.clone() }
    };
    let mut all: Vec<Frame> = frames.iter().map(shift).collect();
    all.sort_by_key(|f| f.ns);
    all
}

/// Joins data packets that follow each other within `ns`, as segmentation and receive offloads do: of one
/// direction, in order, with the same acknowledgement and options, up to 64 kB. The time of a received
/// super-segment is that of its last packet.
pub(crate) fn join(frames: &[Frame], ns: u64, last: bool) -> Vec<Frame> {
    let mut all: Vec<(Frame, u64)> = Vec::new();
    for f in frames {
        if let Some((prior, newest)) = all.last_mut()
            && let (Some(a), Some(b)) = (Data::of(prior), Data::of(f))
            && a.follows(&b)
            && f.ns.saturating_sub(*newest) <= ns
            && a.len + b.len <= 65_000 - a.header
            && (prior.bytes.len() == f.bytes.len())
        {
            let total = (a.header + a.len + b.len) as u16;
            prior.bytes[2..4].copy_from_slice(&total.to_be_bytes());
            prior.len += b.len as u32;
            prior.bytes[a.ip + 13] |= b.flags;
            *newest = f.ns;
            if last {
                prior.ns = f.ns;
            }
            continue;
        }
        all.push((f.clone(), f.ns));
    }
    all.into_iter().map(|f| f.0).collect()
}

/// The fields of a TCP packet with data.
struct Data {
    ip: usize,
    header: usize,
    len: usize,
    seq: u32,
    flags: u8,
    /// Source and destination, acknowledgement and options.
    same: (Vec<u8>, Vec<u8>, Vec<u8>),
}

impl Data {
    fn of(f: &Frame) -> Option<Self> {
        let b = &f.bytes;
        let ip = usize::from(b.first()? & 15) * 4;
        let tcp = usize::from(b.get(ip + 12)? >> 4) * 4;
        let header = ip + tcp;
        let total = usize::from(u16::from_be_bytes([*b.get(2)?, *b.get(3)?]));
        let len = total.checked_sub(header).filter(|l| *l > 0)?;
        let flags = b[ip + 13];
        // SYN, FIN, RST and URG are not joined.
        if flags & 0x27 != 0 || b.get(9) != Some(&6) {
            return None;
        }
        Some(Self {
            ip,
            header,
            len,
            seq: u32::from_be_bytes(b.get(ip + 4..ip + 8)?.try_into().ok()?),
            flags,
            same: (
                b.get(12..20)?.to_vec(),
                b.get(ip + 8..ip + 12)?.to_vec(),
                b.get(ip + 20..header)?.to_vec(),
            ),
        })
    }

    fn follows(&self, next: &Self) -> bool {
        self.same == next.same && self.seq.wrapping_add(self.len as u32) == next.seq
    }
}
