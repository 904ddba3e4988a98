//! A simulated download as frames, and files of them in every supported form.

#![allow(dead_code, reason = "each test takes what it needs")]

use slowstart_replay::wire;
use slowstart_sim::tcp::segment::{ACK, FIN, PSH, SYN};
use slowstart_study::run::Job;
use slowstart_study::run::Outcome;
use slowstart_study::scenario::{Study, StudyText};

/// A download over a path.
pub(crate) fn run(path: &str, startup: &str, size: Option<&str>) -> Outcome {
    run_with(path, startup, size, &[])
}

/// A download with settings of its hosts.
pub(crate) fn run_with(path: &str, startup: &str, size: Option<&str>, set: &[(&str, &str)]) -> Outcome {
    let text = StudyText {
        set: set.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect(),
        path: path.to_string(),
        startups: vec![startup.to_string()],
        size: size.map(String::from),
        runs: Some(1),
        profile: Some("linux-6.18-fq".into()),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).expect("a study");
    study.capture(Job { contender: 0, run: 0 })
}

/// A packet: time in nanoseconds, captured bytes, length on the wire.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) ns: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) len: u32,
}

/// The IP packets at one end.
pub(crate) fn frames(o: &Outcome, end: u8) -> Vec<Frame> {
    let mut file = Vec::new();
    wire::write(&mut file, &o.trace.packets, end).expect("a Vec takes everything");
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four"));
    let (mut at, mut all) = (0, Vec::new());
    while at < file.len() {
        if word(at) == 6 {
            let (captured, len) = (word(at + 20) as usize, word(at + 24));
            let ns = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            all.push(Frame { ns, bytes: file[at + 28..at + 28 + captured].to_vec(), len });
        }
        at += word(at + 4) as usize;
    }
    all
}

/// These packets with a link-layer header.
pub(crate) fn under(frames: &[Frame], header: &[u8]) -> Vec<Frame> {
    let with =
        |f: &Frame| Frame { ns: f.ns, bytes: [header, &f.bytes].concat(), len: f.len + header.len() as u32 };
    frames.iter().map(with).collect()
}

/// These packets as IPv6.
pub(crate) fn six(frames: &[Frame]) -> Vec<Frame> {
    let with = |f: &Frame| {
        let payload = (f.len - 20) as u16;
        let mut head = vec![0x60, 0, 0, 0];
        head.extend(payload.to_be_bytes());
        head.extend([6, 64]);
        for address in [12, 16] {
            head.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
            head.extend(&f.bytes[address..address + 4]);
        }
        Frame { ns: f.ns, bytes: [&head, &f.bytes[20..]].concat(), len: f.len + 20 }
    };
    frames.iter().map(with).collect()
}

/// A number in the file's byte order.
fn number(big: bool, n: u32) -> [u8; 4] {
    if big { n.to_be_bytes() } else { n.to_le_bytes() }
}

/// A classic pcap with microseconds or nanoseconds, in either byte order, with at most `snap` bytes of each
/// packet.
pub(crate) fn pcap(frames: &[Frame], link: u32, big: bool, nanos: bool, snap: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    out.extend(number(big, magic));
    out.extend(number(big, if big { 0x0002_0004 } else { 0x0004_0002 }));
    for n in [0, 0, snap as u32, link] {
        out.extend(number(big, n));
    }
    for f in frames {
        let part = f.ns % 1_000_000_000 / if nanos { 1 } else { 1000 };
        let captured = f.bytes.len().min(snap);
        for n in [(f.ns / 1_000_000_000) as u32, part as u32, captured as u32, f.len] {
            out.extend(number(big, n));
        }
        out.extend(&f.bytes[..captured]);
    }
    out
}

/// A pcapng whose clock ticks every `10^-exponent` s, or every `2^-exponent` s if `binary`.
pub(crate) fn pcapng(frames: &[Frame], link: u16, big: bool, exponent: u8, binary: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let total = number(big, padded as u32 + 12);
        out.extend(number(big, kind));
        out.extend(total);
        out.extend(body);
        out.resize(out.len() + padded - body.len(), 0);
        out.extend(total);
    };
    let half = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let head = [&number(big, 0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &head);
    let resolution = exponent | if binary { 0x80 } else { 0 };
    let option = [&half(9)[..], &half(1), &[resolution, 0, 0, 0], &[0; 4]].concat();
    block(1, &[&half(link)[..], &half(0), &number(big, 65_535), &option].concat());
    // Unknown blocks are skipped.
    block(0x0bad_0bad, &[1, 2, 3, 4]);
    for f in frames {
        let per = if binary { 1_u128 << exponent } else { 10_u128.pow(u32::from(exponent)) };
        let units = (u128::from(f.ns) * per / 1_000_000_000) as u64;
        let mut body = Vec::new();
        for n in [0, (units >> 32) as u32, units as u32, f.bytes.len() as u32, f.len] {
            body.extend(number(big, n));
        }
        body.extend(&f.bytes);
        block(6, &body);
    }
    out
}

/// Payload of a segment of [`Wire`].
const MSS: u32 = 1000;
/// Its round-trip time, microseconds.
pub(crate) const RTT: u64 = 50_000;

/// The two ends of a connection, as seen at the server.
pub(crate) struct Wire {
    pub(crate) frames: Vec<Frame>,
    pub(crate) us: u64,
    id: u16,
    /// Next sequence number of server and client.
    pub(crate) next: [u32; 2],
}

impl Wire {
    /// With a handshake by the client.
    pub(crate) fn new() -> Self {
        let mut w = Self { frames: Vec::new(), us: 1_000_000, id: 0, next: [1000, 5000] };
        w.packet(1, SYN, 0, 0, 60_000);
        w.packet(0, SYN | ACK, 0, 0, 60_000);
        w.us += RTT;
        (w.next[0], w.next[1]) = (1001, 5001);
        w.packet(1, ACK, 0, 0, 60_000);
        w
    }

    /// A packet of end `from` with `len` bytes, `back` bytes below its next sequence number.
    pub(crate) fn packet(&mut self, from: usize, flags: u8, len: u32, back: u32, window: u16) {
        self.id += 1;
        let (seq, ack) = (self.next[from].wrapping_sub(back), self.next[1 - from]);
        let syn = flags & SYN > 0;
        // On a SYN: MSS 1000, window scale 7.
        let options: &[u8] = if syn { &[2, 4, 3, 0xe8, 1, 3, 3, 7] } else { &[] };
        let header = 20 + options.len() as u32;
        let total = 20 + header + len;
        let mut b = vec![0x45, 0];
        b.extend((total as u16).to_be_bytes());
        b.extend(self.id.to_be_bytes());
        b.extend([0x40, 0, 64, 6, 0, 0]);
        let ends = [[192, 0, 2, 1], [198, 51, 100, 1]];
        b.extend(ends[from]);
        b.extend(ends[1 - from]);
        let ports = [443_u16, 50_000];
        b.extend(ports[from].to_be_bytes());
        b.extend(ports[1 - from].to_be_bytes());
        b.extend(seq.to_be_bytes());
        b.extend(if flags & ACK > 0 { ack } else { 0 }.to_be_bytes());
        b.extend([(header as u8 / 4) << 4, flags]);
        b.extend(window.to_be_bytes());
        b.extend([0; 4]);
        b.extend(options);
        self.frames.push(Frame { ns: self.us * 1000, bytes: b, len: total });
    }

    /// End `from` sends `n` segments, which are acknowledged a round trip later, each with this window.
    pub(crate) fn round(&mut self, from: usize, n: u32, window: u16) {
        let sent = self.us;
        for i in 0..n {
            self.us = sent + u64::from(i) * 100;
            self.packet(from, ACK | PSH, MSS, 0, 60_000);
            self.next[from] = self.next[from].wrapping_add(MSS);
        }
        let end = self.next[from];
        for i in 0..n {
            self.us = sent + RTT + u64::from(i) * 100;
            self.next[from] = end.wrapping_sub((n - 1 - i) * MSS);
            self.packet(1 - from, ACK, 0, 0, window);
        }
        self.us = sent + RTT + u64::from(n) * 100;
    }

    pub(crate) fn close(&mut self) {
        self.packet(0, ACK | FIN, 0, 0, 60_000);
        self.next[0] += 1;
        self.packet(1, ACK | FIN, 0, 0, 60_000);
        self.next[1] += 1;
        self.packet(0, ACK, 0, 0, 60_000);
    }
}
