//! The memory for one file is bounded, also for a small file that decompresses to a large one.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

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

/// Begins to count anew. What a part before has freed may still count, since the allocator keeps it.
fn count_peak_anew() {
    let _ = fs::write("/proc/self/clear_refs", "5");
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
    stream(kind, input, &Options::default(), &mut |_| {}, &mut |_| {}).map_err(|e| e.to_string())
}

/// What nobody needs is not held: texts of 20 MB, which gzip makes a thousand times smaller. A parser that
/// holds a tree of the values needs 240 MB or more for each of them.
fn what_is_not_needed_is_not_held() {
    count_peak_anew();
    let before = peak_mb();
    let bytes = 20_000_000;
    // Numbers in an array, in every format of one JSON text.
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
    // Rows, kernel events and a kernel log.
    let event =
        "{\"sk\":1,\"now_ns\":2,\"kind\":\"begin\",\"acked_bytes\":0,\"next\":0,\"mss\":9,\"cwnd\":1}\n";
    assert!(read(event, event, bytes).expect("events").transfers > 200_000);
    let log = "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n1,1000,1000,50000,11000,1\n";
    assert_eq!(read(log, "1,1000,1000,50000,11000,1\n", bytes).expect("a log").transfers, 1);
    let used = peak_mb() - before;
    println!("{used} MB of what is not needed");
    assert!(used < 64, "{used} MB");
}

/// Events and samples that are needed are held up to the limit, and what stands before it is analysed.
fn what_is_needed_is_held_up_to_the_limit() {
    count_peak_anew();
    let before = peak_mb();
    let bytes = 200_000_000;
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
    let interval = "[  5]   0.00-0.10   sec  97.7 KBytes  8.00 Mbits/sec    0   14.1 KBytes\n";
    for (head, part) in
        [("[ ID] Interval\n", interval), ("", "0.0954 MB / 0.10 sec = 8.0 Mbps 0 retrans 14 KB-cwnd\n")]
    {
        let s = read(head, part, bytes * 3 / 2).expect("a part");
        let why = s.incomplete.expect("cut").to_string();
        assert!(why.contains("MiB of samples") && s.transfers == 1, "{why}");
    }
    let used = peak_mb() - before;
    println!("{used} MB");
    // A vector that grows holds its old half for a moment.
    assert!(used < 4 * (MOST_HELD >> 20) as u64, "{used} MB");
}

/// Twenty thousand downloads one after the other, one each millisecond: nothing is kept of those that are over
/// but what recognises their late packets.
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
    const CONNECTIONS: u32 = 20_000;
    let mut w = Wire::new();
    w.round(0, 4, 60_000);
    w.close();
    let head = pcap(&[], 101, false, true, 65_535);
    let input = Cursor::new(head).chain(Many { one: w.frames, connection: 0, out: Cursor::new(Vec::new()) });
    let all = slowstart::startup::REGISTRY.iter();
    let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    let options = Options { candidates, ..Options::default() };
    count_peak_anew();
    let before = peak_mb();
    let (kind, input) = open::detect(Box::new(input)).expect("a capture");
    let mut rows = 0;
    let summary =
        stream(kind, input, &options, &mut |t| rows += t.row.startups.len(), &mut |_| {}).expect("a capture");
    let used = peak_mb() - before;
    assert_eq!((summary.connections, summary.transfers), (u64::from(CONNECTIONS), u64::from(CONNECTIONS)));
    println!("{used} MB for {CONNECTIONS} connections");
    assert!(rows > 0 && used < 80, "{used} MB");
}

/// A text of numbered parts that does not end.
struct Numbered<F> {
    part: F,
    number: u64,
    out: Cursor<Vec<u8>>,
}

impl<F: Fn(u64) -> String> Read for Numbered<F> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.out.read(buf)?;
        if n > 0 {
            return Ok(n);
        }
        self.number += 1;
        self.out = Cursor::new((self.part)(self.number).into_bytes());
        self.out.read(buf)
    }
}

/// Two samples each of sockets that are ever new, with long names: what a socket takes beside its samples
/// counts, and those that are held have their rows.
fn very_many_sockets_are_read_in_bounded_memory() {
    let end = |n: u64| format!("{n:0>70}:443");
    let probe = move |n| {
        let line = |una| {
            format!("x 1 [0] 1.5: tcp_probe: src={} dest=10.0.0.2:2 snd_una={una} snd_cwnd=10\n", end(n))
        };
        line("0x10") + &line("0x90")
    };
    let ss = move |n| {
        let sample = "cubic cwnd:10 rtt:40\n";
        format!("1\nESTAB 0 0 {} 192.0.2.2:2\n {sample} {sample}", end(n))
    };
    let read = |input: Box<dyn Read + Send>| {
        count_peak_anew();
        let (kind, input) = open::detect(input).expect("known");
        let mut rows = 0;
        let summary =
            stream(kind, input, &Options::default(), &mut |_| rows += 1, &mut |_| {}).expect("a part");
        let why = summary.incomplete.expect("cut").to_string();
        let used = peak_mb();
        println!("{used} MB for {rows} sockets");
        assert!(why.contains("MiB of samples") && rows > 300_000, "{rows} rows: {why}");
        assert!(used * 2 < 3 * (MOST_HELD >> 20) as u64, "{used} MB");
    };
    read(Box::new(Numbered { part: probe, number: 0, out: Cursor::default() }));
    read(Box::new(Numbered { part: ss, number: 0, out: Cursor::default() }));
}

/// Names may be as long as a line or a string: they count with their length.
fn long_names_are_held_up_to_the_limit() {
    fn cut(head: &str, part: impl Fn(u64, &str) -> String + Send + 'static) -> String {
        let name = "n".repeat(400_000);
        let text = Numbered { part: move |n| part(n, &name), number: 0, out: Cursor::default() };
        let input = Cursor::new(head.as_bytes().to_vec()).chain(text.take(450_000_000));
        let (kind, input) = open::detect(Box::new(input)).expect("known");
        count_peak_anew();
        let done = stream(kind, input, &Options::default(), &mut |_| {}, &mut |_| {});
        let used = peak_mb();
        println!("{used} MB for names in {kind:?}");
        assert!(used < (MOST_HELD >> 20) as u64 * 3 / 2, "{kind:?}: {used} MB");
        done.map_or_else(|e| e, |s| s.incomplete.expect("cut")).to_string()
    }
    let ss = "1\nESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n cubic cwnd:10 rtt:40\n";
    let why = cut(ss, |n, name| format!("ESTAB 0 0 {name}{n}:1 {name}:2\n cubic cwnd:10 rtt:40\n"));
    assert!(why.contains("MiB of samples"), "{why}");
    let module =
        |n: u64, end: &str| format!("1.5 {end}{n}:1 {end}:2 32 0x20 0x10 10 2147483647 65535 40 64240\n");
    let why = cut(&module(0, "a"), module);
    assert!(why.contains("MiB of samples"), "{why}");
    let why = cut("{\"event\":\"start\",\"data\":{\"version\":\"iperf 3.17\"}}\n", |n, name| {
        let ends = format!("\"socket\":{n},\"local_host\":\"{name}\",\"remote_host\":\"{name}\"");
        format!("{{\"event\":\"start\",\"data\":{{\"connected\":[{{{ends}}}]}}}}\n")
    });
    assert!(why.contains("MiB of names of streams"), "{why}");
    let traces = "{\"qlog_version\":\"0.3\",\"traces\":[{}";
    let why = cut(traces, |_, name| format!(",{{\"vantage_point\":{{\"name\":\"{name}\"}}}}"));
    assert!(why.contains("MiB of traces"), "{why}");
    // Of the names of columns the first are read.
    let fields = "{\"qlog_version\":\"0.3\",\"traces\":[{\"event_fields\":[\"a\"";
    let why = cut(fields, |_, name| format!(",\"{name}\""));
    assert!(why.contains("EOF"), "{why}");
    let event =
        "{\"sk\":1,\"now_ns\":2,\"kind\":\"begin\",\"acked_bytes\":0,\"next\":0,\"mss\":9,\"cwnd\":1}\n";
    let why = cut(event, move |n, name| event.replace("\"sk\":1", &format!("\"sk\":\"{n}{name}\"")));
    assert!(why.starts_with("line 2: sk: found 400003 bytes"), "{why}");
}

/// One after the other: the peak of memory is that of the process.
#[test]
fn memory_is_bounded() {
    what_is_not_needed_is_not_held();
    many_connections_are_read_in_bounded_memory();
    very_many_sockets_are_read_in_bounded_memory();
    long_names_are_held_up_to_the_limit();
    what_is_needed_is_held_up_to_the_limit();
}
