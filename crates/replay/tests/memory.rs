//! The memory for one file is bounded, also for a small file that decompresses to a large one.

mod common;

use common::{Wire, pcap};
use slowstart_replay::limits::MOST_HELD;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open;
use slowstart_replay::replay::{Options, Summary, stream};
use std::fs;
use std::io::{Cursor, Read};

/// Megabytes of memory that this process has used at most.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

/// A text that repeats `part` until it has `bytes`.
struct Repeat {
    part: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for Repeat {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = buf.len().min(self.part.len() - self.at).min(self.left as usize);
        buf[..n].copy_from_slice(&self.part[self.at..self.at + n]);
        self.at = (self.at + n) % self.part.len();
        self.left -= n as u64;
        Ok(n)
    }
}

fn read(head: &str, part: &str, bytes: u64) -> Result<Summary, String> {
    let repeated = Repeat { part: part.as_bytes().to_vec(), at: 0, left: bytes };
    let input = Cursor::new(head.as_bytes().to_vec()).chain(repeated);
    let (kind, input) = open::detect(Box::new(input)).map_err(|e| e.to_string())?;
    stream(kind, input, &Options::default(), |_| {}, |_| {}).map_err(|e| e.to_string())
}

/// Texts of 200 MB, which gzip makes a thousand times smaller. A parser that holds a tree of the values needs
/// gigabytes for each of them.
fn a_long_text_is_read_in_bounded_memory() {
    let before = peak_mb();
    let bytes = 200_000_000;
    // Numbers in an array that nobody needs, in every format of one JSON text.
    let qlog = "{\"qlog_version\":\"0.3\",\"x\":[0";
    let e = read(qlog, ",0", bytes).expect_err("it has no event");
    assert!(e.contains("EOF"), "{e}");
    let e = read("{\"TCPInfo\":0,\"x\":[0", ",0", bytes).expect_err("it ends in the array");
    assert!(e.contains("EOF"), "{e}");
    let e = read("{\"FLENT_VERSION\":0,\"x\":[0", ",0", bytes).expect_err("it ends in the array");
    assert!(e.contains("EOF"), "{e}");
    // A string, and a line, that do not end.
    let e = read("{\"qlog_version\":\"0.3\",\"x\":\"", "x", bytes).expect_err("too long");
    assert!(e.contains("expected a shorter string or number"), "{e}");
    let e = read("now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n", "0", bytes).expect_err("too long");
    assert!(e.starts_with("line 2: found more than 1048576 bytes"), "{e}");
    // Events and samples that are needed: held up to the limit, and what stands before it is analysed.
    let sent = "[1,\"\",\"packet_lost\",{}],";
    let s = read("{\"qlog_version\":\"0.3\",\"traces\":[{\"events\":[", sent, bytes).expect("a part");
    let why = s.incomplete.expect("cut").to_string();
    assert!(why.contains(&format!("found more than {} MiB of events", MOST_HELD >> 20)), "{why}");
    assert_eq!(s.transfers, 1);
    let ss = "1\nESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n cubic cwnd:10\n";
    let part = " cubic cwnd:10 rtt:40\n";
    let s = read(ss, part, bytes).expect("a part");
    let why = s.incomplete.expect("cut").to_string();
    assert!(why.contains("MiB of samples") && s.transfers == 1, "{why}");
    let flent = "{\"FLENT_VERSION\":\"2\",\"raw_values\":{\"a\":[{\"t\":0,\"tcp_cwnd\":1}";
    let e = read(flent, ",{\"t\":0}", bytes).expect_err("too much of one series");
    assert!(e.contains("MiB of samples"), "{e}");
    let ndt7 = "{\"TCPInfo\":0,\"Download\":{\"ServerMeasurements\":[{\"TCPInfo\":{}}";
    let e = read(ndt7, ",{\"TCPInfo\":{}}", bytes).expect_err("too much");
    assert!(e.contains("MiB of samples"), "{e}");
    // Rows, kernel events and a kernel log are not held at all.
    let event =
        "{\"sk\":1,\"now_ns\":2,\"kind\":\"begin\",\"acked_bytes\":0,\"next\":0,\"mss\":9,\"cwnd\":1}\n";
    assert!(read(event, event, bytes / 10).expect("events").transfers > 200_000);
    let log = "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n1,1000,1000,50000,11000,1\n";
    assert_eq!(read(log, "1,1000,1000,50000,11000,1\n", bytes / 10).expect("a log").transfers, 1);
    let used = peak_mb() - before;
    println!("{used} MB");
    // A vector that grows holds its old half for a moment.
    assert!(used < 4 * (MOST_HELD >> 20) as u64, "{used} MB");
}

/// Sixty thousand downloads one after the other, one each millisecond: nothing is kept of those that are over but what
/// recognises their late packets.
fn many_connections_are_read_in_bounded_memory() {
    struct Many {
        /// The frames of one connection.
        one: Vec<common::Frame>,
        connection: u32,
        out: Cursor<Vec<u8>>,
    }
    impl Read for Many {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.out.read(buf)?;
            if n > 0 || self.connection == CONNECTIONS {
                return Ok(n);
            }
            self.connection += 1;
            for f in &mut self.one {
                f.ns += 1_000_000;
                // The client's address.
                let at = if f.bytes[12] == 192 { 17 } else { 13 };
                f.bytes[at..at + 3].copy_from_slice(&self.connection.to_be_bytes()[1..]);
            }
            self.out = Cursor::new(pcap(&self.one, 101, false, true, 65_535)[24..].to_vec());
            self.out.read(buf)
        }
    }
    const CONNECTIONS: u32 = 60_000;
    let mut w = Wire::new();
    w.round(0, 4, 60_000);
    w.close();
    let head = pcap(&[], 101, false, true, 65_535);
    let input = Cursor::new(head).chain(Many { one: w.frames, connection: 0, out: Cursor::new(Vec::new()) });
    let all = slowstart::startup::REGISTRY.iter();
    let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    let options = Options { candidates, ..Options::default() };
    let before = peak_mb();
    let (kind, input) = open::detect(Box::new(input)).expect("a capture");
    let mut rows = 0;
    let summary = stream(kind, input, &options, |t| rows += t.row.startups.len(), |_| {}).expect("a capture");
    let used = peak_mb() - before;
    assert_eq!((summary.connections, summary.transfers), (u64::from(CONNECTIONS), u64::from(CONNECTIONS)));
    println!("{used} MB for {CONNECTIONS} connections");
    assert!(rows > 0 && used < 250, "{used} MB");
}

/// One after the other: the peak of memory is that of the process.
#[test]
fn memory_is_bounded() {
    many_connections_are_read_in_bounded_memory();
    a_long_text_is_read_in_bounded_memory();
}
