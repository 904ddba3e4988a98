//! Speed of reading captures: one JSON line per case, measured in this run on this machine.
//!
//! `cargo bench -p slowstart-replay --bench capture [-- CASE]`. The capture is generated while it is read,
//! headers only: one long download, and many short ones at once. CPU time is that of the process; the
//! generator's share is measured separately and shown. Peak memory is that of the process so far.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

use serde_json::json;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::Kind;
use slowstart_replay::replay::{Options, read};
use std::io::{self, Read};

/// Bytes of a frame as captured: Ethernet, IPv4, TCP with timestamps.
const FRAME: usize = 66;
const RECORD: usize = 16 + FRAME;
const MSS: u32 = 1448;

/// Interleaved downloads, with one ACK for two data packets; about 100 Mbit/s together.
struct Maker {
    connections: u64,
    packets: u64,
    made: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl Maker {
    fn new(connections: u64, packets: u64) -> Self {
        let mut buffer = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 128, 1] {
            buffer.extend(word.to_le_bytes());
        }
        Self { connections, packets, made: 0, buffer, at: 0 }
    }

    fn frame(&mut self, ns: u64, (connection, up): (u64, bool), (seq, ack): (u32, u32), flags: u8, len: u32) {
        // Number of packets of its own connection before the packet that this one acknowledges.
        let before = match (flags, up, self.made / self.connections % 3) {
            (2, ..) => None,
            (0x10, false, 1) => Some(2),
            _ => Some(1),
        };
        let ms = |ns: u64| (ns / 1_000_000) as u32;
        let echo = before.map_or(0, |n| ms(ns.saturating_sub(n * self.connections * 80_000)));
        let head =
            [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, FRAME as u32, FRAME as u32 + len];
        for word in head {
            self.buffer.extend(word.to_le_bytes());
        }
        let mut f = [0_u8; FRAME];
        f[12] = 8;
        f[14] = 0x45;
        f[16..18].copy_from_slice(&((52 + len) as u16).to_be_bytes());
        f[18..20].copy_from_slice(&((self.made as u16) | 1).to_be_bytes());
        f[23] = 6;
        let ends = [[10, 0, 0, 1], [10, 1, (connection >> 8) as u8, connection as u8]];
        let ports = [443_u16, 50_000];
        let from = usize::from(up);
        f[26..30].copy_from_slice(&ends[from]);
        f[30..34].copy_from_slice(&ends[1 - from]);
        f[34..36].copy_from_slice(&ports[from].to_be_bytes());
        f[36..38].copy_from_slice(&ports[1 - from].to_be_bytes());
        f[38..42].copy_from_slice(&seq.to_be_bytes());
        f[42..46].copy_from_slice(&ack.to_be_bytes());
        f[46] = 0x80;
        f[47] = flags;
        f[48..50].copy_from_slice(&65_535_u16.to_be_bytes());
        f[54..58].copy_from_slice(&[1, 1, 8, 10]);
        f[58..62].copy_from_slice(&ms(ns).to_be_bytes());
        f[62..66].copy_from_slice(&echo.to_be_bytes());
        self.buffer.extend(f);
    }

    /// The next packet of the next connection: SYN, SYN-ACK, ACK, then two data packets for each ACK, 20 in
    /// flight.
    fn make(&mut self) {
        let (c, i) = (self.made % self.connections, self.made / self.connections);
        let ns = self.made * 80_000;
        match i {
            0 => self.frame(ns, (c, true), (0, 0), 2, 0),
            1 => self.frame(ns, (c, false), (0, 1), 0x12, 0),
            2 => self.frame(ns, (c, true), (1, 1), 0x10, 0),
            _ => {
                let (turn, part) = ((i - 3) / 3, (i - 3) % 3);
                let segment = turn * 2 + part;
                let seq = |n: u64| 1_u32.wrapping_add((n as u32).wrapping_mul(MSS));
                match part {
                    2 => self.frame(ns, (c, true), (1, seq((segment).saturating_sub(20))), 0x10, 0),
                    _ => self.frame(ns, (c, false), (seq(segment), 1), 0x10, MSS),
                }
            }
        }
        self.made += 1;
    }
}

impl Read for Maker {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            if self.made > 0 || self.at > 0 {
                self.buffer.clear();
            }
            self.at = 0;
            while self.buffer.len() < 1 << 16 && self.made < self.packets {
                self.make();
            }
        }
        let n = out.len().min(self.buffer.len() - self.at);
        out[..n].copy_from_slice(&self.buffer[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// CPU seconds used by this process.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> = after.split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    // utime and stime, in hundredths of a second.
    (fields.get(11).unwrap_or(&0.0) + fields.get(12).unwrap_or(&0.0)) / 100.0
}

fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

fn main() {
    let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    let cases = [
        ("short-2M-1", 1, 2_000_000_u64),
        ("many-2M-1000", 1000, 2_000_000),
        // 2 GB.
        ("long-25M-1", 1, 25_000_000),
        ("many-25M-1000", 1000, 25_000_000),
    ];
    for (name, connections, packets) in cases {
        if only.as_deref().is_some_and(|o| o != name) {
            continue;
        }
        let all = slowstart::startup::REGISTRY.iter();
        let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
        let options = Options { candidates, ..Options::default() };
        let start = cpu();
        io::copy(&mut Maker::new(connections, packets), &mut io::sink()).expect("memory");
        let making = cpu() - start;
        let start = cpu();
        let input = Box::new(Maker::new(connections, packets));
        let report = read(Kind::Capture, input, &options, |_| {}).expect("a capture");
        let seconds = cpu() - start - making;
        assert_eq!(report.summary.counts.tcp, packets);
        println!(
            "{}",
            json!({
                "case": name,
                "packets": packets,
                "megabytes": packets * RECORD as u64 / 1_000_000,
                "transfers": report.transfers.len(),
                "seconds": seconds,
                "making_seconds": making,
                "million_packets_a_second": packets as f64 / seconds / 1e6,
                "peak_mb": peak_mb(),
            })
        );
    }
}
