//! Captures as tools make them: packets twice, cut packets, one direction, clocks that step, the receiver's side
//! without a handshake. Each gives the row of the capture without that fault, or says what it does not show.

use crate::common::{Frame, frames, pcap, run, run_with, six, under};
use slowstart_replay::analysis::Keep;
use slowstart_replay::fit::fit;
use slowstart_replay::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, Report, read};
use slowstart_replay::transfer::Transfer;
use std::io::Cursor;

const RAW: u32 = 101;
const ETHERNET: u32 = 1;
const ALL: usize = 65_535;

fn report(file: Vec<u8>) -> Report {
    let (kind, input) = open::detect(Box::new(Cursor::new(file))).expect("known");
    let options = Options { keep: Keep { packets: true, ..Keep::default() }, ..Options::default() };
    read(kind, input, &options, |_| {}).expect("a capture")
}

fn largest(frames: &[Frame], link: u32, snap: usize) -> AnalysedTransfer {
    let all = report(pcap(frames, link, false, true, snap)).transfers;
    all.into_iter().max_by_key(|t| t.row.bytes).expect("a download")
}

fn row(frames: &[Frame], snap: usize) -> Transfer {
    largest(frames, RAW, snap).row
}

/// A download with losses, at the server.
fn download() -> Vec<Frame> {
    frames(&run("rate=20Mbit rtt=40ms queue=1bdp", "standard", Some("2MB")), 0)
}

/// The frames without an IPv4 identification.
fn without_id(frames: &[Frame]) -> Vec<Frame> {
    let of = |f: &Frame| {
        let mut f = f.clone();
        f.bytes[4..6].fill(0);
        f
    };
    frames.iter().map(of).collect()
}

/// The frames, and each again after some time.
fn twice(frames: &[Frame], later_ns: u64) -> Vec<Frame> {
    let again = frames.iter().map(|f| Frame { ns: f.ns + later_ns, ..f.clone() });
    let mut all: Vec<Frame> = frames.iter().cloned().chain(again).collect();
    all.sort_by_key(|f| f.ns);
    all
}

fn same(found: &Transfer, want: &Transfer, what: &str) {
    let key = |t: &Transfer| {
        let counts = (t.bytes, t.packets, t.retransmitted_packets, t.spurious_packets);
        (counts, t.min_rtt_s, t.exit.clone(), t.class, t.first_loss_time_s)
    };
    assert_eq!(key(found), key(want), "{what}");
    assert!(found.caveats.iter().any(|c| c.contains("captured twice")), "{what}: {:?}", found.caveats);
    assert!(!found.caveats.iter().any(|c| c.contains("handshake packet")), "{what}: {:?}", found.caveats);
}

#[test]
fn packets_that_are_captured_twice_count_once() {
    let ip = download();
    let want = row(&ip, ALL);
    assert!(want.retransmitted_packets > Some(0) && want.exit.is_some(), "{want:?}");
    for later in [0, 2_000, 5_000_000, 20_000_000] {
        for (what, frames) in
            [("IPv4", ip.clone()), ("identification 0", without_id(&ip)), ("IPv6", six(&ip))]
        {
            same(&row(&twice(&frames, later), ALL), &want, &format!("{what}, {later} ns later"));
        }
    }
    // Neither timestamps nor identification nor SACK: only the time tells a second capture from a
    // retransmission.
    let bare = without_id(&ip);
    let want = row(&bare, 40);
    for later in [0, 2_000, 5_000_000] {
        let found = row(&twice(&bare, later), 40);
        assert_eq!((found.bytes, found.min_rtt_s), (want.bytes, want.min_rtt_s));
        assert_eq!(found.retransmitted_packets, want.retransmitted_packets, "{later}");
        // Duplicate ACKs are equal to each other, too.
        let exit = |t: &Transfer| t.exit.as_ref().map_or(0.0, |e| e.time_s);
        assert!((exit(&found) - exit(&want)).abs() < 0.01, "{later}: {:?}, {:?}", found.exit, want.exit);
    }
}

/// Runs of data packets that follow each other as one super-segment, which is then captured again in parts.
#[test]
fn a_super_segment_and_its_parts_count_once() {
    let ip = without_id(&frames(&run("rate=20Mbit rtt=40ms queue=4bdp", "standard", Some("1MB")), 0));
    let header = |f: &Frame| 20 + usize::from(f.bytes[32] >> 4) * 4;
    let data = |f: &Frame| f.bytes[12] == 192 && f.len as usize > header(f);
    let (mut whole, mut both) = (Vec::new(), Vec::new());
    let mut i = 0;
    while i < ip.len() {
        let number = |f: &Frame| u32::from_be_bytes(f.bytes[24..28].try_into().expect("four"));
        let follows = |(n, f): &(usize, &Frame)| {
            let before = ip[i..i + n].iter().map(|f| f.len - header(f) as u32).sum::<u32>();
            data(f) && f.ns - ip[i].ns < 1_000_000 && number(f) == number(&ip[i]).wrapping_add(before)
        };
        let run = ip[i..].iter().take(8).enumerate().take_while(follows).count().max(1);
        let mut first = ip[i].clone();
        if run > 1 {
            first.len += ip[i + 1..i + run].iter().map(|f| f.len - header(f) as u32).sum::<u32>();
            let total = (first.len as u16).to_be_bytes();
            first.bytes[2..4].copy_from_slice(&total);
        }
        let at = first.ns;
        whole.push(first.clone());
        both.push(first);
        both.extend(ip[i..i + run].iter().map(|f| {
            let mut f = Frame { ns: at + 3000, ..f.clone() };
            // The parts have the timestamps of the whole.
            f.bytes[40..].copy_from_slice(&ip[i].bytes[40..]);
            f
        }));
        i += run;
    }
    assert!(whole.len() * 3 < ip.len() * 2, "{} of {}", whole.len(), ip.len());
    both.sort_by_key(|f| f.ns);
    same(&row(&both, ALL), &row(&whole, ALL), "super-segments");
}

#[test]
fn without_acknowledgements_nothing_is_known_of_the_path() {
    let all = download();
    let ip: Vec<Frame> = all.into_iter().filter(|f| f.bytes[12] == 192).collect();
    let t = largest(&ip, RAW, ALL);
    assert_eq!(
        (t.row.exit.clone(), t.row.unclear.as_deref()),
        (None, Some("no acknowledgement was captured"))
    );
    assert_eq!((t.row.bytes, &t.row.limits), (None, &None));
    assert!(!t.row.certain && t.row.capacity_time_s.is_none() && t.row.min_rtt_s.is_none(), "{:?}", t.row);
    assert!(t.findings.as_ref().map(fit).expect("kept").is_err());
}

/// Ethernet frames of 54 to 128 bytes: all options, some, or none; IPv6 without the end of the TCP header.
#[test]
fn cut_packets_give_rows_without_what_was_cut() {
    let ip = frames(&run("rate=20Mbit rtt=40ms queue=4bdp", "hystart", Some("2MB")), 0);
    let four = under(&ip, &[&[0; 12][..], &[8, 0]].concat());
    let six = under(&six(&ip), &[&[0; 12][..], &[0x86, 0xdd]].concat());
    let want = largest(&four, ETHERNET, 128).row;
    let exit = want.exit.as_ref().expect("by its rule");
    for (frames, snaps) in [(&four, 54..=72), (&six, 68..=92)] {
        for snap in snaps {
            let t = largest(frames, ETHERNET, snap).row;
            let found = t.exit.as_ref().unwrap_or_else(|| panic!("{snap}: {:?}", t.unclear));
            assert!(
                (found.time_s - exit.time_s).abs() < 1e-9 && found.cwnd_bytes == exit.cwnd_bytes,
                "{snap}"
            );
            assert_eq!(
                (t.bytes, t.retransmitted_packets, t.min_rtt_s),
                (want.bytes, Some(0), want.min_rtt_s),
                "{snap}"
            );
            assert!(t.limits.iter().flatten().all(|l| l.what != "receive window"), "{snap}: {:?}", t.limits);
            assert!(
                t.caveats.iter().any(|c| c.contains("receive window is not known")),
                "{snap}: {:?}",
                t.caveats
            );
        }
    }
    // The ports alone say nothing.
    let (kind, input) =
        open::detect(Box::new(Cursor::new(pcap(&six, ETHERNET, false, true, 64)))).expect("known");
    let e = read(kind, input, &Options::default(), |_| {}).expect_err("refused").to_string();
    assert!(e.contains("TCP packets that are cut before the end of their header"), "{e}");
}

/// The rows are those of the part before, and the report names the place. Connections that begin after the
/// step are read.
#[test]
fn a_clock_that_steps_back_ends_the_connections_that_were_open() {
    let ip = frames(&run("rate=20Mbit rtt=40ms queue=4bdp", "hystart", Some("2MB")), 0);
    let half = ip.len() / 2;
    let want = row(&ip[..half], ALL);
    for by in [30_000_000, 100_000_000, 2_000_000_000] {
        let mut back = ip.clone();
        for f in &mut back {
            f.ns += 10_000_000_000;
        }
        for f in &mut back[half..] {
            f.ns -= by;
        }
        let end = back[back.len() - 1].ns;
        // Another port: a connection of its own.
        let mut later = ip.clone();
        for f in &mut later {
            f.ns += end;
            let port = if f.bytes[12] == 192 { 22 } else { 20 };
            f.bytes[port] ^= 1;
        }
        back.extend(later);
        let found = report(pcap(&back, RAW, false, true, ALL));
        let says = found.summary.incomplete.as_ref().expect("a step").to_string();
        assert!(says.starts_with("offset ") && says.contains("the clock goes back"), "{says}");
        let mut rows: Vec<_> =
            found.transfers.iter().map(|t| &t.row).filter(|t| t.bytes > want.bytes.map(|b| b / 2)).collect();
        rows.sort_by_key(|t| t.bytes);
        let [cut, whole] = rows[..] else { panic!("{} rows", rows.len()) };
        assert_eq!((cut.bytes, cut.min_rtt_s, &cut.exit), (want.bytes, want.min_rtt_s, &want.exit), "{by}");
        assert!(
            cut.caveats.iter().any(|c| c.contains("clock of the capture goes back")),
            "{:?}",
            cut.caveats
        );
        assert_eq!((whole.bytes, whole.min_rtt_s), (row(&ip, ALL).bytes, want.min_rtt_s));
    }
}

/// At the receiver, without the handshake: the time from data to its ACK is that of the host, and no RTT.
#[test]
fn a_receiver_without_a_handshake_shows_no_short_round_trip() {
    let ip = frames(&run("rate=1Gbit rtt=40ms queue=1bdp", "standard", Some("3MB")), 1);
    let late = &ip[ip.len() / 3..];
    for (what, snap) in [("timestamps", ALL), ("none", 40)] {
        let t = largest(late, RAW, snap);
        assert_eq!(t.row.unclear.as_deref(), Some("began before the capture"), "{what}");
        assert!(t.row.min_rtt_s.is_none_or(|r| (0.038..0.045).contains(&r)), "{what}: {:?}", t.row.min_rtt_s);
        match t.findings.as_ref().map(fit).expect("kept") {
            Ok(path) => assert!((0.035..0.045).contains(&path.base_rtt_s.value), "{what}: {path:?}"),
            Err(why) => {
                assert!(why.contains("no round-trip time") || why.contains("no RTT"), "{what}: {why}");
            }
        }
    }
    // A round trip within a tick of the timestamps: they restore no order.
    let near = frames(&run("rate=100Mbit rtt=400us queue=1bdp", "standard", Some("3MB")), 1);
    let t = largest(&near, RAW, ALL);
    assert_eq!((t.row.exit.clone(), t.row.min_rtt_s, t.row.certain), (None, None, false), "{:?}", t.row);
    assert!(t.findings.as_ref().map(fit).expect("kept").is_err());
}

/// At the receiver, from the middle on: a burst each round trip of 20 ms, whose first packets echo the ACK before the
/// newest. All have one timestamp value: they were sent at once.
#[test]
fn data_that_echoes_an_older_ack_is_dated_by_its_own_timestamp() {
    const ROUND: u64 = 20_000_000;
    let o = run_with("rate=10Gbit rtt=20ms queue=1bdp", "standard", Some("3MB"), &[("rmem", "120000")]);
    let mut ip = frames(&o, 1);
    drop(ip.drain(..ip.len() / 5));
    let (begin, mut newest, mut in_burst) = (ip[0].ns, 0, 0);
    for f in &mut ip {
        let round = (f.ns - begin) / ROUND;
        f.ns = begin + round * ROUND + (f.ns - begin) % ROUND / 100;
        let (data, ack) = (1000 + 20 * round as u32, 2000 + 20 * round as u32);
        let stamps = if f.bytes[12] == 192 {
            in_burst = if round > newest { 0 } else { in_burst + 1 };
            newest = round;
            [data, if in_burst < 20 { ack - 40 } else { ack - 20 }]
        } else {
            [ack, data]
        };
        for (at, stamp) in [44, 48].into_iter().zip(stamps) {
            f.bytes[at..at + 4].copy_from_slice(&stamp.to_be_bytes());
        }
    }
    let t = largest(&ip, RAW, ALL);
    assert_eq!(t.row.vantage, "receiver");
    assert!(t.row.min_rtt_s.is_some_and(|r| (0.0195..0.0205).contains(&r)), "{:?}", t.row.min_rtt_s);
    let path = t.findings.as_ref().map(fit).expect("kept").expect("a path");
    assert!((0.019..0.0205).contains(&path.base_rtt_s.value), "{path:?}");
    assert!(path.ack_aggregate_s.is_none() && path.rate_bps.high.is_none(), "{path:?}");
}

/// Both ends negotiate accurate ECN: the three flags are a count of marks, which begins with 5, and no echo.
#[test]
fn accurate_ecn_counts_marks() {
    let mut ip = frames(&run("rate=20Mbit rtt=40ms queue=4bdp", "standard", Some("1MB")), 0);
    let set = |f: &mut Frame, ace: u8| {
        f.bytes[32] = (f.bytes[32] & 0xfe) | ace >> 2;
        f.bytes[33] = (f.bytes[33] & 0x3f) | (ace & 3) << 6;
    };
    let begin = ip[0].ns;
    let (mut count, mut first) = (5, true);
    for f in &mut ip {
        let from_client = f.bytes[12] == 198;
        if f.bytes[33] & 2 != 0 {
            // Asked for; answered: the SYN was not ECN-capable.
            set(f, if from_client { 0b111 } else { 0b010 });
        } else if from_client {
            let marked = (200_000_000..240_000_000).contains(&(f.ns - begin));
            count = (count + u8::from(marked)) & 7;
            // The ACK of the handshake tells of the SYN-ACK.
            set(f, if std::mem::take(&mut first) { 0b010 } else { count });
        }
    }
    let t = row(&ip, ALL);
    let exit = t.exit.as_ref().expect("an exit");
    // The sender of this capture did not answer the marks: they were no exit.
    assert_eq!(exit.evidence, "loss");
    assert!(t.mark_echoes > Some(10), "{:?}", t.mark_echoes);
    // Without a mark the same flags are none.
    for f in ip.iter_mut().filter(|f| f.bytes[12] == 198 && f.bytes[33] & 2 == 0) {
        set(f, 5);
    }
    let t = row(&ip, ALL);
    assert!(
        t.mark_echoes == Some(0) && t.exit.as_ref().is_none_or(|e| !e.evidence.contains("mark")),
        "{:?}",
        t.exit
    );
}

/// The receiver sees which packets were sent again: also those that fill a hole of many, one after another.
#[test]
fn retransmissions_are_counted_at_the_receiver() {
    for path in ["rate=20Mbit rtt=40ms queue=1bdp", "rate=20Mbit rtt=40ms queue=1bdp loss=1%"] {
        let o = run(path, "standard", Some("3MB"));
        let sent = row(&frames(&o, 0), ALL).retransmitted_packets.expect("counted") as f64;
        let t = row(&frames(&o, 1), ALL);
        let seen = t.retransmitted_packets.expect("counted") as f64;
        assert!(sent > 20.0 && (0.9..=1.0).contains(&(seen / sent)), "{path}: {seen} of {sent}, {t:?}");
    }
    // Packets that the network sent twice.
    let o = run("rate=20Mbit rtt=40ms queue=8bdp duplicate=5%", "hystart", Some("3MB"));
    let sent = row(&frames(&o, 0), ALL).retransmitted_packets;
    let t = row(&frames(&o, 1), ALL);
    assert!(sent <= Some(3) && t.retransmitted_packets <= Some(3), "{sent:?}, {t:?}");
}

/// Data alone, without ACKs: what fills a hole was late or was sent again, and which is not known. What comes a second
/// time as another packet was sent again.
#[test]
fn data_without_acks_shows_few_retransmissions() {
    let data = |ip: Vec<Frame>| ip.into_iter().filter(|f| f.bytes[12] == 192).collect::<Vec<_>>();
    let reordered = run("rate=20Mbit rtt=40ms queue=8bdp second_route=20%,10ms", "standard", Some("1MB"));
    let t = row(&data(frames(&reordered, 1)), ALL);
    assert_eq!((t.retransmitted_packets, t.reordered_packets), (None, None), "{t:?}");
    let mut ip = data(frames(&run("rate=20Mbit rtt=40ms queue=8bdp", "standard", Some("1MB")), 0));
    let mut again = Frame { ns: ip[200].ns + 362_000_000, ..ip[200].clone() };
    again.bytes[4] ^= 0x55;
    ip.push(again);
    ip.sort_by_key(|f| f.ns);
    let t = row(&ip, ALL);
    assert_eq!(t.retransmitted_packets, Some(1), "{t:?}");
    assert!(!t.caveats.iter().any(|c| c.contains("captured twice")), "{:?}", t.caveats);
}

/// Every transfer has a median rate. That the path was full is said where it was seen.
#[test]
fn a_path_that_was_never_full_has_no_time_of_it() {
    for (path, set) in [
        ("rate=1Gbit rtt=50ms queue=1bdp", &[("rmem", "242000")][..]),
        ("rate=1Gbit rtt=50ms queue=1bdp", &[("send_buffer", "300000")]),
        ("rate=1Gbit rtt=20ms queue=1bdp loss=0.5%", &[]),
        ("rate=1Gbit rtt=50ms queue=1bdp policer=\"rate=20Mbit burst=50kB\"", &[]),
    ] {
        let o = run_with(path, "standard", Some("4MB"), set);
        for end in [0, 1] {
            let t = row(&frames(&o, end), ALL);
            assert_eq!((t.capacity_time_s, t.cost_s), (None, None), "{path} {set:?}: {t:?}");
        }
    }
}

/// A rule that leaves in the round trip before the loss that its last round brings: the loss ended nothing, and both
/// are possible.
#[test]
fn a_loss_soon_after_an_exit_by_rule_is_not_certain() {
    for path in [
        "rate=7Mbit rtt=14ms queue=3bdp",
        "rate=9Mbit rtt=15ms queue=3bdp",
        "rate=12Mbit rtt=16ms queue=3bdp",
        "rate=13Mbit rtt=14ms queue=1.5bdp second_route=15%,3ms",
    ] {
        let o = run(path, "hystart", Some("3MB"));
        for end in [0, 1] {
            let t = row(&frames(&o, end), ALL);
            let by_loss = t.exit.as_ref().is_some_and(|e| e.evidence == "loss");
            assert!(!(by_loss && t.certain), "{path}: {t:?}");
        }
    }
}
