//! Older capture formats, converted to pcap while they are read: pcap before version 2.4, and snoop (RFC
//! 1761).

use crate::error::InputError;
use std::io::{self, Cursor, Read};

/// Length of a file header and of a packet header of pcap.
const PCAP: [usize; 2] = [24, 16];
/// Length of a file header and of a packet header of snoop.
const SNOOP: [usize; 2] = [16, 24];
/// Bytes read at the begin of a file.
const START: u64 = 1 << 16;
/// The longest packet of snoop.
const LONGEST: u32 = 1 << 24;

/// A capture of any supported version.
pub fn convert(mut input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, InputError> {
    let cannot = |e: io::Error| InputError::at(0, e.to_string());
    // The reader of pcapng wants its first block at the first read.
    let mut head = slowstart_files::head(&mut input, START).map_err(cannot)?;
    if head.starts_with(b"snoop\0\0\0") && head.len() >= PCAP[0] {
        let rest = Cursor::new(head.split_off(SNOOP[0])).chain(input);
        let link = u32::from_be_bytes([head[12], head[13], head[14], head[15]]);
        // Ethernet is 4 (RFC 1761), and 1 in pcap; nothing else is known to be in use.
        let link = if link == 4 { 1_u32 } else { 0xffff };
        let mut pcap = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
        pcap.extend(link.to_be_bytes());
        return Ok(Box::new(Converter { input: rest, out: Cursor::new(pcap), left: 0, pad: 0, next: snoop }));
    }
    let order: Option<fn([u8; 4]) -> u32> = match head.get(..4) {
        Some([0xa1, 0xb2, 0xc3, 0xd4]) => Some(u32::from_be_bytes),
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => Some(u32::from_le_bytes),
        _ => None,
    };
    let version = |big: bool| {
        let half = |at: usize| {
            let bytes = [head[at], head[at + 1]];
            if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        (half(4), half(6))
    };
    match order {
        Some(_)
            if head.len() >= PCAP[0]
                && (2, 0) <= version(head[0] == 0xa1)
                && version(head[0] == 0xa1) < (2, 4) =>
        {
            let next = if head[0] == 0xa1 { pcap::<true> } else { pcap::<false> };
            let rest = Cursor::new(head.split_off(PCAP[0])).chain(input);
            Ok(Box::new(Converter { input: rest, out: Cursor::new(head), left: 0, pad: 0, next }))
        }
        _ => Ok(Box::new(Cursor::new(head).chain(input))),
    }
}

/// The next packet header as pcap has it, the captured bytes that follow, and the padding after them; nothing
/// at the end.
type Next<R> = fn(&mut R) -> io::Result<Option<(Vec<u8>, u64, u64)>>;

/// A capture that is converted packet by packet.
struct Converter<R> {
    input: R,
    /// A header that is handed over.
    out: Cursor<Vec<u8>>,
    /// Bytes of the packet that are left.
    left: u64,
    /// Bytes after it that are skipped.
    pad: u64,
    next: Next<R>,
}

impl<R: Read> Read for Converter<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.out.read(buf)?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            if self.left > 0 {
                let n = self.input.by_ref().take(self.left).read(buf)?;
                // The end in the middle of a packet is that of the file.
                self.left = if n == 0 { 0 } else { self.left - n as u64 };
                return Ok(n);
            }
            io::copy(&mut self.input.by_ref().take(self.pad), &mut io::sink())?;
            let Some((header, left, pad)) = (self.next)(&mut self.input)? else { return Ok(0) };
            (self.out, self.left, self.pad) = (Cursor::new(header), left, pad);
        }
    }
}

/// The next header, or what there is of it.
fn header<R: Read>(input: &mut R, len: usize) -> io::Result<Vec<u8>> {
    slowstart_files::head(input, len as u64)
}

/// A packet header before version 2.4: until 2.2 the length on the wire comes first; 2.3 has both orders. The
/// length captured is never the greater one.
fn pcap<const BIG: bool>(input: &mut impl Read) -> io::Result<Option<(Vec<u8>, u64, u64)>> {
    let mut head = header(input, PCAP[1])?;
    if head.len() < PCAP[1] {
        return Ok((!head.is_empty()).then_some((head, 0, 0)));
    }
    let word = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    let (first, second) = (word(8), word(12));
    if first > second {
        let (a, b) = head[8..].split_at_mut(4);
        a.swap_with_slice(b);
    }
    Ok(Some((head, first.min(second).into(), 0)))
}

/// A packet header of snoop: length on the wire, captured length, record length, drops, seconds,
/// microseconds.
fn snoop(input: &mut impl Read) -> io::Result<Option<(Vec<u8>, u64, u64)>> {
    let head = header(input, SNOOP[1])?;
    if head.len() < SNOOP[1] {
        return Ok((!head.is_empty()).then_some((head, 0, 0)));
    }
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (captured, record) = (word(4), word(8));
    if captured > LONGEST || record > 2 * LONGEST || (record as usize) < SNOOP[1] + captured as usize {
        return Err(io::Error::other("found a packet of snoop with an impossible length"));
    }
    let pcap = [&head[16..24], &head[4..8], &head[..4]].concat();
    Ok(Some((pcap, captured.into(), u64::from(record) - SNOOP[1] as u64 - u64::from(captured))))
}
