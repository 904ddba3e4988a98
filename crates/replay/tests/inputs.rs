//! Every form of a file gives the same rows as every other form with the same packets.

use crate::common::{Frame, frames, pcap, pcapng, run, six, under};
use slowstart_replay::observer::Candidate;
use slowstart_replay::open::{self, Kind};
use slowstart_replay::replay::{Options, Report, read};
use slowstart_replay::transfer::ExitClass;
use slowstart_replay::transfer::Transfer;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

const ETHERNET: u32 = 1;
const RAW: u32 = 101;
/// More than the length of all headers.
const ALL: usize = 65_535;

fn replay(file: Vec<u8>) -> Report {
    let (kind, input) = open::detect(Box::new(Cursor::new(file))).expect("known");
    let all = slowstart::startup::REGISTRY.iter();
    let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    read(kind, input, &Options { candidates, ..Options::default() }, |_| {}).expect("a file of its kind")
}

/// The rows, without the addresses, which depend on the form.
fn rows(file: Vec<u8>) -> Vec<Transfer> {
    let report = replay(file);
    assert_eq!((report.summary.kind, report.summary.incomplete), (Kind::Capture, None));
    let clean = |mut t: Transfer| {
        (t.from, t.to) = (String::new(), String::new());
        t
    };
    report.transfers.into_iter().map(|t| clean(t.row)).collect()
}

fn download() -> Vec<Frame> {
    frames(&run("rate=20Mbit rtt=40ms queue=1bdp", "standard", Some("2MB")), 0)
}

#[test]
fn every_link_layer_gives_the_same_rows() {
    let ip = download();
    let want = rows(pcap(&ip, RAW, false, true, ALL));
    let row = want.iter().max_by_key(|t| t.bytes).expect("a download");
    assert!(
        row.bytes > Some(1_900_000) && row.exit.is_some() && row.retransmitted_packets > Some(0),
        "{row:?}"
    );
    let mac = [0_u8; 12];
    let ethernet = |tags: &[u8], kind: u16| [&mac[..], tags, &kind.to_be_bytes()].concat();
    let cooked = |kind: u16| [&[0; 14][..], &kind.to_be_bytes()].concat();
    let cooked2 = |kind: u16| [&kind.to_be_bytes()[..], &[0; 18]].concat();
    let v6 = six(&ip);
    for (frames, kind, family) in [(&ip, 0x0800, 2_u8), (&v6, 0x86dd, 10)] {
        for (what, link, header) in [
            ("Ethernet", ETHERNET, ethernet(&[], kind)),
            ("VLAN", ETHERNET, ethernet(&[0x81, 0, 0, 7], kind)),
            ("VLAN in VLAN", ETHERNET, ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9], kind)),
            ("Linux cooked", 113, cooked(kind)),
            ("Linux cooked 2", 276, cooked2(kind)),
            ("raw IP", RAW, Vec::new()),
            ("loopback, this byte order", 0, vec![family, 0, 0, 0]),
            ("loopback, the other", 0, vec![0, 0, 0, family]),
            ("OpenBSD loopback", 108, vec![0, 0, 0, family]),
        ] {
            let found = rows(pcap(&under(frames, &header), link, false, true, ALL));
            assert_eq!(found, want, "{what}, {kind:x}");
        }
    }
    assert_eq!(rows(pcap(&ip, 228, false, true, ALL)), want);
    assert_eq!(rows(pcap(&v6, 229, false, true, ALL)), want);
}

#[test]
fn byte_orders_resolutions_and_compression_give_the_same_rows() {
    let ip = download();
    let want = rows(pcap(&ip, RAW, false, true, ALL));
    assert_eq!(rows(pcap(&ip, RAW, true, true, ALL)), want);
    for big in [false, true] {
        assert_eq!(rows(pcapng(&ip, RAW as u16, big, 9, false)), want, "{big}");
    }
    // To the resolution of the file: a microsecond, or 2^-20 of a second.
    for file in [
        pcap(&ip, RAW, false, false, ALL),
        pcap(&ip, RAW, true, false, ALL),
        pcapng(&ip, RAW as u16, false, 6, false),
        pcapng(&ip, RAW as u16, false, 20, true),
    ] {
        for (found, want) in rows(file).iter().zip(&want) {
            let key = |t: &Transfer| (t.bytes, t.retransmitted_packets, t.class, t.vantage.clone());
            assert_eq!(key(found), key(want));
            let near = |a: Option<f64>, b: Option<f64>| a.zip(b).is_none_or(|(a, b)| (a - b).abs() < 3e-6);
            let exit = |t: &Transfer| t.exit.as_ref().map(|e| e.time_s);
            assert!(near(found.min_rtt_s, want.min_rtt_s) && near(exit(found), exit(want)), "{found:?}");
        }
    }
    let plain = pcapng(&ip, RAW as u16, false, 9, false);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).expect("a Vec takes everything");
    assert_eq!(rows(gz.finish().expect("a Vec takes everything")), want);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    assert_eq!(rows(ruzstd::encoding::compress_to_vec(&*plain, level)), want);
}

/// Packets cut after 40 bytes have no TCP options, so neither timestamps nor SACK; data is counted by the
/// length in the IP header.
#[test]
fn cut_packets_count_with_their_full_length() {
    let ip = download();
    let want = rows(pcap(&ip, RAW, false, true, ALL));
    assert_eq!(rows(pcap(&ip, RAW, false, true, 128)), want);
    let cut = rows(pcap(&ip, RAW, false, true, 40));
    // Without SACK, data above a hole is not known to have arrived: some of the last round trips, 100 kB
    // each, is missing.
    assert!(cut.iter().any(|t| t.bytes > Some(1_800_000)), "{:?}", cut.iter().map(|t| t.bytes).max());
    assert_eq!(
        cut.iter().map(|t| t.retransmitted_packets).max(),
        want.iter().map(|t| t.retransmitted_packets).max()
    );
}

/// Both ends negotiate ECN; the first ECE ends slow start (RFC 3168).
#[test]
fn marks_are_counted_and_end_slow_start() {
    let mut ip = frames(&run("rate=20Mbit rtt=40ms queue=4bdp", "standard", Some("1MB")), 0);
    let begin = ip[0].ns;
    let (mut agreed, mut told) = (0, 0);
    for f in &mut ip {
        let syn = f.bytes[33] & 2 != 0;
        let answer = f.bytes[33] & 0x10 != 0;
        if syn {
            f.bytes[33] |= if answer { 0x40 } else { 0xc0 };
            agreed += 1;
        }
        let from_client = f.bytes[12] == 198;
        if !syn && from_client && (200_000_000..240_000_000).contains(&(f.ns - begin)) {
            f.bytes[33] |= 0x40;
            told += 1;
        }
        if !syn && !from_client {
            // Marked before the capture point, by a router near the sender.
            f.bytes[1] |= 3;
        }
    }
    assert!(agreed == 2 && told > 10);
    let found = rows(pcap(&ip, RAW, false, true, ALL));
    let t = found.iter().max_by_key(|t| t.bytes).expect("a download");
    assert_eq!((t.mark_echoes, t.marked_packets), (Some(told), t.packets));
    let exit = t.exit.as_ref().expect("an exit");
    // The marks were put into a capture of a sender that did not answer them: they were no exit.
    assert_eq!(exit.evidence, "loss");
    let standard = t.startups.iter().find(|s| s.startup == "standard").expect("registered");
    assert_eq!(standard.exit.as_ref().map(|e| e.what.as_str()), Some("ecn"));
    // If ECN was not negotiated, the bit has no meaning.
    for f in ip.iter_mut().filter(|f| f.bytes[33] & 2 != 0) {
        f.bytes[33] &= !0xc0;
    }
    let found = rows(pcap(&ip, RAW, false, true, ALL));
    let t = found.iter().max_by_key(|t| t.bytes).expect("a download");
    assert!(
        t.mark_echoes == Some(0) && t.exit.as_ref().is_none_or(|e| !e.evidence.contains("mark")),
        "{t:?}"
    );
    assert!(t.caveats.iter().any(|c| c.contains("ECN was not negotiated")));
}

/// A capture that begins in the middle of a connection, has each packet twice, or has a time before an
/// earlier one.
#[test]
fn defects_of_a_capture_are_stated() {
    let ip = download();
    let says = |frames: &[Frame], what: &str| {
        let found = rows(pcap(frames, RAW, false, true, ALL));
        let t = found.iter().max_by_key(|t| t.bytes).expect("a download").clone();
        assert!(t.caveats.iter().any(|c| c.contains(what)), "{what}: {:?}", t.caveats);
        t
    };
    let t = says(&ip[60..], "began before the capture");
    assert_eq!((t.exit, t.unclear.as_deref()), (None, Some("began before the capture")));
    let twice: Vec<Frame> = ip.iter().flat_map(|f| [f.clone(), f.clone()]).collect();
    let t = says(&twice, "captured twice");
    let want = rows(pcap(&ip, RAW, false, true, ALL));
    let want = want.iter().max_by_key(|t| t.bytes).expect("a download");
    assert_eq!((t.retransmitted_packets, &t.exit), (want.retransmitted_packets, &want.exit));
    let mut back = ip.clone();
    back[50].ns -= 1_000_000;
    says(&back, "some packets have a time before");
    let mut late = ip.clone();
    for f in &mut late[300..] {
        f.ns += 700_000_000_000;
    }
    says(&late, "silent for more than ten minutes");
    says(&ip[1..], "the handshake was not captured completely");
}

/// Events of a startup in the kernel: its own exit and, as every ACK has an event, the predictions for other
/// startups.
#[test]
fn kernel_events_are_replayed() {
    let mut text = String::new();
    let mut event = |us: u64, kind: &str, acked: u64, cwnd: u64, why: &str| {
        writeln!(
            text,
            "{{\"sk\":18446612682070000000,\"now_ns\":{},\"kind\":\"{kind}\",\"acked_bytes\":{acked},\"next\":{},\
             \"mss\":1000,\"cwnd\":{cwnd},\"ssthresh\":2147483647,\"rtt_us\":{},\"iw\":10,\"asked\":true,\
             \"retransmitted\":0,\"why\":\"{why}\",\"daddr\":33580554,\"sport\":443,\"dport\":5000,\"new\":[1]}}",
            us * 1000,
            acked + cwnd * 1000,
            if kind == "ack" { 50_000 + acked / 100 } else { 0 }
        )
        .expect("a String");
    };
    event(7_000_000, "begin", 0, 10, "none");
    let mut acked = 0;
    for n in 0..400_u64 {
        acked += 1000;
        event(7_050_000 + n * 1000, "ack", acked, 10 + n + 1, if n == 399 { "rate-flat" } else { "none" });
    }
    event(7_500_000, "end", acked, 410, "none");
    let report = replay(text.clone().into_bytes());
    assert_eq!((report.summary.kind, report.transfers.len()), (Kind::Events, 1));
    let t = &report.transfers[0].row;
    assert_eq!((t.from.as_str(), t.to.as_str(), t.bytes), (":443", "10.102.0.2:5000", Some(400_000)));
    let exit = t.exit.as_ref().expect("an exit");
    assert_eq!((exit.evidence.as_str(), exit.cwnd_bytes), ("stated in the file", 410_000));
    assert!((exit.time_s - 0.449).abs() < 1e-9, "{exit:?}");
    assert!(t.startups.iter().any(|s| s.startup == "hystart" && s.exit.is_some()), "{:?}", t.startups);
    // Only events other than plain ACKs.
    let told = |l: &&str| !l.contains("\"ack\"") || l.contains("rate-flat");
    let rare = text.lines().filter(told).collect::<Vec<_>>().join("\n");
    assert!(replay(rare.into_bytes()).transfers[0].row.exit.is_some());
    let bad = |text: &str| {
        let (kind, input) = open::detect(Box::new(Cursor::new(text.as_bytes().to_vec()))).expect("known");
        read(kind, input, &Options::default(), |_| {}).expect_err("refused").to_string()
    };
    assert!(bad("{\"sk\":1,\"now_ns\":2}\n").starts_with("line 1: found no kernel event"));
    let zero = "{\"sk\":1,\"now_ns\":2,\"kind\":\"ack\",\"acked_bytes\":0,\"next\":0,\"mss\":0,\"cwnd\":1}\n";
    assert!(bad(zero).starts_with("line 1: mss: found 0"));
}

/// Samples and events of a stock control, as `kernel watch --json` writes them: the state counts, and the reason of an
/// exit; that the exit is stated makes nothing else certain.
#[test]
fn kernel_events_without_acks_are_samples() {
    let line = |ms: u64,
                kind: &str,
                (cwnd, ssthresh): (u64, &str),
                acked: u64,
                srtt: u64,
                asked: bool,
                why: &str| {
        format!(
            "{{\"sk\":\"ffff\",\"now_ns\":{},\"kind\":\"{kind}\",\"control\":\"reno\",\"daddr\":\"10.77.0.2\",\"dport\":35842,\
             \"sport\":5999,\"mss\":1448,\"cwnd\":{cwnd},\"ssthresh\":{ssthresh},\"acked_bytes\":{acked},\"next\":{},\
             \"srtt_us\":{srtt},\"min_rtt_us\":40690,\"retransmitted\":{},\"asked\":{asked},\"why\":\"{why}\"}}\n",
            1_000_000_000 + ms * 1_000_000,
            acked + cwnd * 1448,
            if ssthresh == "null" { 0 } else { 339 }
        )
    };
    let mut lines = vec![line(0, "begin", (10, "null"), 0, 40_690, true, "none")];
    for (ms, cwnd, acked, srtt) in
        [(100, 41, 44_888, 44_608), (200, 150, 200_000, 60_000), (300, 330, 450_000, 110_000)]
    {
        lines.push(line(ms, "sample", (cwnd, "null"), acked, srtt, true, "none"));
    }
    let growing = lines.clone();
    let exit = line(519, "exit", (670, "335"), 955_680, 198_543, true, "loss");
    lines.push(exit.clone());
    for n in 6..50_u64 {
        lines.push(line(n * 100, "sample", (335 + n, "335"), n * 120_000, 100_000, false, "none"));
    }
    lines.push(line(5_000, "end", (380, "335"), 6_000_001, 100_000, false, "none"));
    let one = |lines: &[String]| replay(lines.concat().into_bytes()).transfers.remove(0).row;
    let t = one(&lines);
    let found = (t.bytes, t.retransmitted_packets, t.min_rtt_s, t.congestion_control.as_deref());
    assert_eq!(found, (Some(6_000_001), Some(339), Some(0.040_690), Some("reno")));
    assert_eq!((t.class, t.certain), (ExitClass::Late, false), "{t:?}");
    let stated = t.exit.expect("stated");
    assert_eq!((stated.cwnd_bytes, stated.evidence.as_str()), (670 * 1448, "congestion, stated in the file"));
    // No event states the exit, and a threshold shows it.
    let hidden: Vec<String> = lines.iter().filter(|l| **l != exit).cloned().collect();
    let t = one(&hidden);
    assert!(t.exit.is_some() && !t.certain, "{t:?}");
    let last = [&growing[..], &[line(900, "end", (516, "167"), 900_000, 150_000, true, "none")]].concat();
    let t = one(&last);
    assert!(t.exit.is_some() && t.class != ExitClass::None && !t.certain, "{t:?}");
    // It never left.
    let t = one(&growing);
    assert_eq!((t.class, t.certain, t.bytes), (ExitClass::None, true, Some(450_000)), "{t:?}");
}
