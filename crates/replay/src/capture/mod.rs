//! Captures: reads pcap and pcapng as a stream of TCP packets.
//!
//! - [`frame`]: the TCP header in a captured frame
//! - `link`, `tunnel`: the packet in a frame, and in a packet
//! - [`old`]: older formats, converted to pcap
//! - [`read`]: the packets of a file

pub mod frame;
mod link;
pub mod old;
mod tunnel;

use crate::error::InputError;
use frame::{TcpSegment, Unread};
use pcap_parser::pcapng::Block;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, create_reader};
use std::collections::BTreeMap;
use std::io::Read;

/// Size of the read buffer.
const BUFFER: usize = 1 << 18;
/// Maximum length of a block. The largest packets are 256 kB (BIG TCP); a greater length is damage and must
/// not cause an allocation.
const LONGEST: usize = 1 << 24;

/// Maximum time, nanoseconds since 1970: in the year 2116.
const LATEST: u64 = 1 << 62;

/// A TCP packet of a capture.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was captured, in nanoseconds since 1970.
    pub at: u64,
    /// Index of the capture interface.
    pub interface: u32,
    /// Its TCP header and lengths.
    pub segment: TcpSegment,
}

/// A capture interface: its link type, and the unit and offset of its clock.
#[derive(Copy, Clone, Debug)]
struct Interface {
    link: Linktype,
    units_a_second: u64,
    offset_s: i64,
}

/// Units per second from `if_tsresol` (draft-ietf-opsawg-pcapng 4.2): a power of ten, or of two if the
/// highest bit is set, which `pcap-parser` 0.17 rejects as too large. A value that does not fit in 64 bits
/// counts as microseconds.
fn units_a_second(resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base = if resolution & 0x80 == 0 { 10_u64 } else { 2 };
    base.checked_pow(exponent).unwrap_or(1_000_000)
}

impl Interface {
    fn at(&self, units: u64) -> u64 {
        let per = u128::from(self.units_a_second.max(1));
        let ns = match self.units_a_second {
            1_000_000_000 => u128::from(units),
            1_000_000 => u128::from(units) * 1000,
            _ => u128::from(units) * 1_000_000_000 / per,
        };
        let ns = i128::try_from(ns).unwrap_or(i128::MAX) + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX).min(LATEST)
    }
}

/// Kinds of packets other than TCP that are named.
const NAMED: usize = 16;

/// Packet counts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of any kind.
    pub packets: u64,
    /// TCP packets that could be read.
    pub tcp: u64,
    /// TCP packets that are cut before the flags of their header, which cannot be read.
    pub cut: u64,
    /// Packets before the first of TCP, by what they are.
    pub others: BTreeMap<String, u64>,
    /// Number of packets with an unsupported link type, and the last such type.
    pub unknown_link: Option<(u64, i32)>,
    /// How many bytes were read, after decompression.
    pub bytes: u64,
}

impl Counts {
    /// Why a capture without TCP packets cannot be analysed.
    pub fn without_tcp(&self) -> String {
        if let Some((n, link)) = self.unknown_link {
            let name = link::name(link).map_or(String::new(), |name| format!(" ({name})"));
            return format!("found {n} packets of link type {link}{name}, expected {}", link::KNOWN);
        }
        if self.cut > 0 {
            return format!(
                "found {} TCP packets that are cut before the end of their header, expected at least its first 14 bytes: \
                 capture with -s 128",
                self.cut
            );
        }
        let mut others: Vec<_> = self.others.iter().collect();
        others.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let quic = others.first().is_some_and(|(what, _)| *what == "QUIC");
        let list: Vec<String> = others.iter().take(3).map(|(what, n)| format!("{n} of {what}")).collect();
        match list.join(", ") {
            list if list.is_empty() => "found no TCP packet".to_string(),
            list if quic => format!(
                "found no packet of TCP, but {list}: QUIC encrypts its acknowledgements, give a qlog instead"
            ),
            list => format!("found no packet of TCP, but {list}"),
        }
    }
}

/// Reads all packets of a capture in file order, also those with a time before an earlier one's. `each` gets
/// the packet and its offset; packets before an error have been passed to it.
pub fn read<R: Read + Send>(
    input: R,
    counts: &mut Counts,
    mut each: impl FnMut(&Packet, u64),
) -> Result<(), InputError> {
    let mut reader = create_reader(BUFFER, input).map_err(|e| refuse(0, &e))?;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut capacity = BUFFER;
    loop {
        let offset = reader.consumed() as u64;
        counts.bytes = offset;
        match reader.next() {
            Ok((used, block)) => {
                take(&block, &mut interfaces, counts, &mut each);
                // A block of length 0 would be read forever.
                if used == 0 {
                    return Err(InputError::at(
                        offset,
                        "found a block of length 0, expected one with a header",
                    ));
                }
                reader.consume_noshift(used);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|e| refuse(offset, &e))?;
            }
            Err(PcapError::BufferTooSmall) => {
                let before = reader.data().len();
                reader.refill().map_err(|e| refuse(offset, &e))?;
                if reader.data().len() == before {
                    if reader.reader_exhausted() {
                        return Err(refuse(offset, &PcapError::UnexpectedEof));
                    }
                    capacity *= 2;
                    if capacity > LONGEST || !reader.grow(capacity) {
                        return Err(InputError::at(
                            offset,
                            format!("found a block of more than {LONGEST} bytes, expected a packet"),
                        ));
                    }
                }
            }
            Err(e) => return Err(refuse(offset, &e)),
        }
    }
}

fn refuse(offset: u64, e: &PcapError<&[u8]>) -> InputError {
    let why = match e {
        PcapError::UnexpectedEof | PcapError::Eof | PcapError::Incomplete(_) => {
            "the file ends in the middle of a packet"
        }
        PcapError::ReadError => "the file cannot be read or decompressed any further",
        PcapError::HeaderNotRecognized => "found no pcap or pcapng header",
        _ => "found no valid packet or block header, expected one",
    };
    InputError::at(offset, why)
}

fn take(
    block: &PcapBlockOwned,
    interfaces: &mut Vec<Interface>,
    counts: &mut Counts,
    each: &mut impl FnMut(&Packet, u64),
) {
    let mut packet = |i: &Interface, interface: u32, at: u64, data: &[u8], on_wire: u32| {
        counts.packets += 1;
        if !link::known(i.link) {
            let n = counts.unknown_link.map_or(0, |(n, _)| n);
            counts.unknown_link = Some((n + 1, i.link.0));
            return;
        }
        match frame::parse(i.link, data, on_wire) {
            Ok(segment) => {
                counts.tcp += 1;
                each(&Packet { at, interface, segment }, counts.bytes);
            }
            Err(Unread::Cut) => counts.cut += 1,
            Err(Unread::Other) if counts.tcp == 0 => {
                let what = frame::what(i.link, data);
                if counts.others.len() < NAMED || counts.others.contains_key(&what) {
                    *counts.others.entry(what).or_default() += 1;
                }
            }
            Err(Unread::Other) => {}
        }
    };
    let cut = |data, captured: u32| <[u8]>::get(data, ..captured as usize).unwrap_or(data);
    match block {
        PcapBlockOwned::LegacyHeader(h) => {
            let units_a_second = if h.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            // The upper bits may hold the length of the frame check sequence.
            let link = Linktype(h.network.0 & 0xffff);
            *interfaces = vec![Interface { link, units_a_second, offset_s: 0 }];
        }
        PcapBlockOwned::Legacy(b) => {
            if let Some(i) = interfaces.first() {
                let units = u64::from(b.ts_sec) * i.units_a_second + u64::from(b.ts_usec);
                packet(i, 0, i.at(units), cut(b.data, b.caplen), b.origlen);
            }
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(b)) => interfaces.push(Interface {
            link: b.linktype,
            units_a_second: units_a_second(b.if_tsresol),
            offset_s: b.ts_offset(),
        }),
        PcapBlockOwned::NG(Block::EnhancedPacket(b)) => {
            if let Some(i) = interfaces.get(b.if_id as usize) {
                let units = u64::from(b.ts_high) << 32 | u64::from(b.ts_low);
                packet(i, b.if_id, i.at(units), cut(b.data, b.caplen), b.origlen);
            }
        }
        // Simple packet blocks have no time.
        PcapBlockOwned::NG(_) => {}
    }
}
