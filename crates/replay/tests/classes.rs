//! Classes of errors seen on captures of others, each with a small synthetic capture: zero windows,
//! keep-alives, uploads, coarse clocks, older formats.

use crate::common::{Frame, RTT, Wire, pcap};
use slowstart_replay::answer::facts;
use slowstart_replay::observer::Candidate;
use slowstart_replay::open;
use slowstart_replay::replay::{Options, Report, read};
use slowstart_replay::transfer::{ExitClass, Transfer};
use slowstart_sim::tcp::segment::{ACK, PSH};
use std::fmt::Write as _;
use std::io::Cursor;

const RAW: u32 = 101;

fn replay(file: Vec<u8>) -> Report {
    let (kind, input) = open::detect(Box::new(Cursor::new(file))).expect("known");
    let all = slowstart::startup::REGISTRY.iter();
    let candidates = all.map(|e| Candidate { label: e.name.to_string(), startup: (e.make)() }).collect();
    read(kind, input, &Options { candidates, ..Options::default() }, |_| {}).expect("a capture")
}

fn rows(frames: &[Frame]) -> Vec<Transfer> {
    replay(pcap(frames, RAW, false, true, 65_535)).transfers.into_iter().map(|t| t.row).collect()
}

fn download(frames: &[Frame]) -> Transfer {
    rows(frames).into_iter().max_by_key(|t| t.bytes).expect("a transfer")
}

/// The receiver closes its window; the sender probes with the next byte, five times, and goes on when it
/// opens. Later the connection is idle and sends keep-alives.
#[test]
fn window_probes_and_keep_alives_are_no_losses() {
    let mut w = Wire::new();
    w.round(0, 10, 60_000);
    w.round(0, 20, 0);
    for n in 0..5 {
        w.us += 200_000 << n;
        w.packet(0, ACK, 1, 0, 60_000);
        w.us += RTT;
        w.packet(1, ACK, 0, 0, 0);
    }
    w.us += 1000;
    w.packet(1, ACK, 0, 0, 60_000);
    w.round(0, 20, 60_000);
    w.round(0, 40, 60_000);
    for _ in 0..5 {
        w.us += 10_000_000;
        w.packet(0, ACK, 1, 1, 60_000);
        w.us += RTT;
        w.packet(1, ACK, 0, 0, 60_000);
    }
    w.close();
    let t = download(&w.frames);
    assert_eq!((t.bytes, t.window_probes, t.keep_alives), (Some(90_000), Some(5), Some(5)));
    assert_eq!(
        (t.retransmitted_packets, t.first_loss_time_s, t.unseen_bytes),
        (Some(0), None, Some(0)),
        "{t:?}"
    );
    assert!(t.exit.is_none_or(|e| e.evidence != "loss" && e.evidence != "timeout"));
    assert!(t.startups.iter().all(|s| s.exit.as_ref().is_none_or(|e| e.what != "loss")), "{:?}", t.startups);
    // The receiver takes the byte of a probe.
    let mut w = Wire::new();
    w.round(0, 10, 0);
    w.us += 200_000;
    w.packet(0, ACK, 1, 0, 60_000);
    w.us += RTT;
    w.next[0] += 1;
    w.packet(1, ACK, 0, 0, 60_000);
    w.round(0, 20, 60_000);
    w.close();
    let t = download(&w.frames);
    assert_eq!(
        (t.window_probes, t.retransmitted_packets, t.unseen_bytes),
        (Some(1), Some(0), Some(0)),
        "{t:?}"
    );
}

/// An upload: the client sends a file, the server some small responses. Each row says which way the data
/// went, and only the direction with the data has an exit.
#[test]
fn the_direction_with_the_data_is_judged() {
    let mut w = Wire::new();
    for n in [10, 20, 40, 80, 80, 81, 81] {
        w.round(1, n, 60_000);
        w.packet(0, ACK | PSH, 100, 0, 60_000);
        w.next[0] += 100;
        w.us += 1000;
        w.packet(1, ACK, 0, 0, 60_000);
    }
    w.close();
    let all = rows(&w.frames);
    assert_eq!(all.len(), 2);
    let upload = all.iter().find(|t| t.direction.as_deref() == Some("upload")).expect("by the client");
    let answers = all.iter().find(|t| t.direction.as_deref() == Some("download")).expect("by the server");
    assert_eq!((upload.bytes, upload.other_bytes), (Some(392_000), Some(700)));
    assert_eq!((answers.bytes, answers.other_bytes), (Some(700), Some(392_000)));
    assert!(upload.from.starts_with("198.51.100.1") && !upload.startups.is_empty());
    assert_eq!(answers.unclear.as_deref(), Some("little data: most went the other way"));
    assert_eq!(
        (answers.class, answers.exit.is_none(), answers.startups.len()),
        (ExitClass::Unknown, true, 0)
    );
}

/// What is not known has a class of its own: a startup whose prediction ended is not one that did not leave.
#[test]
fn unknown_is_a_class_of_its_own() {
    let mut w = Wire::new();
    for n in [10, 20, 40, 40, 40, 41, 41, 42, 43, 44] {
        w.round(0, n, 60_000);
    }
    w.close();
    let t = download(&w.frames);
    // Who had gone on doubling would have sent something else.
    let standard = t.startups.iter().find(|s| s.startup == "standard").expect("registered");
    assert!(standard.exit.is_none() && standard.valid_until_s.is_some(), "{standard:?}");
    assert_eq!(standard.class, ExitClass::Unknown);
    assert!(serde_json::to_string(&t).expect("a row").contains("\"class\":\"unknown\""));
    // Until the end in slow start: it did not leave.
    let mut w = Wire::new();
    for n in [10, 20, 40] {
        w.round(0, n, 60_000);
    }
    w.close();
    let t = download(&w.frames);
    let standard = t.startups.iter().find(|s| s.startup == "standard").expect("registered");
    assert_eq!((standard.class, t.class), (ExitClass::None, ExitClass::None), "{:?}", t.unclear);
    // Where the begin is missing, nothing is known.
    assert_eq!(download(&w.frames[5..]).class, ExitClass::Unknown);
}

/// Of most data only the acknowledgements were captured: nothing is said about what limited its sender.
#[test]
fn data_that_was_not_captured_has_no_limit() {
    let mut w = Wire::new();
    for n in [10, 20, 40, 60, 60, 60, 60, 60] {
        w.round(0, n, 470);
    }
    w.close();
    let all = download(&w.frames);
    assert!(all.limits.iter().flatten().any(|l| l.what == "receive window"), "{:?}", all.limits);
    // Every tenth packet of the server, which has the port 443.
    let mut n = 0;
    w.frames.retain(|f| {
        n += u32::from(f.bytes[20..22] == [1, 187] && f.len > 1000);
        f.bytes[20..22] != [1, 187] || f.len < 1000 || n % 10 == 1
    });
    let t = download(&w.frames);
    assert!(t.mostly_uncaptured() && t.limits.is_none() && t.startups.is_empty(), "{t:?}");
    assert_eq!(
        (t.class, t.unclear.as_deref()),
        (ExitClass::Unknown, Some("most of its data was not captured"))
    );
    assert!(facts(&t).iter().any(|(what, of)| *what == "limited by" && of == "unknown"), "{:?}", facts(&t));
}

#[test]
fn a_coarse_clock_is_stated() {
    let mut w = Wire::new();
    w.us += 13_000;
    for n in [10, 20, 40] {
        w.round(0, n, 60_000);
    }
    w.close();
    let notes =
        |f: &[Frame]| download(f).caveats.iter().any(|c| c.contains("the capture clock ticks every 10 ms"));
    assert!(!notes(&w.frames));
    for f in &mut w.frames {
        f.ns = f.ns / 10_000_000 * 10_000_000;
    }
    assert!(notes(&w.frames));
}

/// Before version 2.3 of pcap the length on the wire comes first; snoop has headers of its own.
#[test]
fn older_capture_formats_are_read() {
    let mut w = Wire::new();
    for n in [10, 20, 40] {
        w.round(0, n, 60_000);
    }
    w.close();
    let want = rows(&w.frames);
    for big in [false, true] {
        let mut old = pcap(&w.frames, RAW, big, false, 65_535);
        old[if big { 7 } else { 6 }] = 2;
        let mut at = 24;
        while at < old.len() {
            let word: [u8; 4] = old[at + 8..at + 12].try_into().expect("four");
            let captured = if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) } as usize;
            old[at + 8..at + 16].rotate_left(4);
            at += 16 + captured;
        }
        let report = replay(old);
        assert_eq!(report.summary.incomplete, None);
        let found: Vec<Transfer> = report.transfers.into_iter().map(|t| t.row).collect();
        assert_eq!(found, want, "{big}");
    }
    let mut snoop = b"snoop\0\0\0\0\0\0\x02\0\0\0\x04".to_vec();
    for f in &w.frames {
        let frame = [&[0; 12][..], &[8, 0], &f.bytes].concat();
        let pad = frame.len().next_multiple_of(4) - frame.len();
        for n in [f.len + 14, frame.len() as u32, (24 + frame.len() + pad) as u32, 0] {
            snoop.extend(n.to_be_bytes());
        }
        snoop.extend(((f.ns / 1_000_000_000) as u32).to_be_bytes());
        snoop.extend(((f.ns % 1_000_000_000 / 1000) as u32).to_be_bytes());
        snoop.extend(&frame);
        snoop.resize(snoop.len() + pad, 0);
    }
    let report = replay(snoop.clone());
    assert_eq!(report.summary.incomplete, None);
    assert_eq!(report.transfers.into_iter().map(|t| t.row).collect::<Vec<_>>(), want);
    let cut = replay(snoop[..snoop.len() - 30].to_vec());
    assert!(cut.summary.incomplete.is_some_and(|e| e.to_string().contains("in the middle of a packet")));
}

/// A log whose 32-bit clock wraps goes on; a clock that goes back ends it there, and what was before is
/// analysed.
#[test]
fn clocks_that_wrap_or_go_back_do_not_lose_the_log() {
    let log = |times: &[i64]| {
        let mut text = "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n".to_string();
        for (n, t) in times.iter().enumerate() {
            let acked = 1000 * (n + 1);
            writeln!(text, "{t},{acked},1000,50000,{},100000", 10_000 + 2 * acked).expect("a String");
        }
        replay(text.into_bytes())
    };
    let whole = log(&[0, 50_000, 100_000, 150_000]);
    // Signed and unsigned.
    for times in [
        [4_294_900_000, 4_294_950_000, 32_704, 82_704],
        [2_147_400_000, 2_147_450_000, -2_147_467_296, -2_147_417_296],
    ] {
        let r = log(&times);
        assert_eq!(r.summary.incomplete, None);
        let span = |r: &Report| r.transfers[0].row.bytes.expect("delivered");
        assert_eq!(span(&r), span(&whole));
        let last = r.transfers[0].row.duration_s - times[0] as f64 / 1e6;
        assert!((last - 0.15).abs() < 1e-6, "{last}");
    }
    let back = log(&[10_000_000, 10_050_000, 10_100_000, 50_000]);
    let why = back.summary.incomplete.expect("said").to_string();
    assert_eq!(why, "line 5: now_us: found 50000, expected no less than in the line before");
    assert_eq!(back.transfers[0].row.bytes, Some(3000));
    // A damaged line ends the log there.
    let text = "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate\n0,1000,1000,50000,12000,1\nx,y\n";
    let r = replay(text.as_bytes().to_vec());
    assert!(r.summary.incomplete.is_some_and(|e| e.to_string().starts_with("line 3: ")));
}

/// Times in microseconds, as the configuration of the first drafts says, apply to events and round trips.
#[test]
fn units_of_early_qlog_drafts_apply_to_round_trips() {
    let text = |unit: &str, scale: u64| {
        let ms = |t: u64| t * scale;
        format!(
            "{{\"qlog_version\":\"draft-01\",\"traces\":[{{\"configuration\":{{\"time_units\":\"{unit}\"}},\
             \"event_fields\":[\"relative_time\",\"category\",\"event\",\"data\"],\"events\":[\
             [{},\"recovery\",\"metrics_updated\",{{\"cwnd\":12000,\"latest_rtt\":{},\"min_rtt\":{}}}],\
             [{},\"recovery\",\"metrics_updated\",{{\"cwnd\":24000}}],\
             [{},\"recovery\",\"metrics_updated\",{{\"cwnd\":48000,\"ssthresh\":40000}}]]}}]}}",
            ms(0),
            ms(42),
            ms(40),
            ms(50),
            ms(100)
        )
    };
    for (unit, scale) in [("ms", 1), ("us", 1000)] {
        let t = replay(text(unit, scale).into_bytes()).transfers.remove(0).row;
        assert_eq!((t.min_rtt_s, t.duration_s), (Some(0.04), 0.1), "{unit}");
        assert!(t.exit.is_some_and(|e| (e.time_s - 0.1).abs() < 1e-9));
    }
    // Times as differences.
    let delta = "\u{1e}{\"qlog_version\":\"0.4\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"common_fields\":\
        {\"time_format\":\"delta\"}}}\n\u{1e}{\"time\":10,\"name\":\"recovery:metrics_updated\",\"data\":\
        {\"congestion_window\":10000}}\n\u{1e}{\"time\":30,\"name\":\"recovery:metrics_updated\",\"data\":\
        {\"congestion_window\":20000,\"ssthresh\":9000}}\n";
    let t = replay(delta.as_bytes().to_vec()).transfers.remove(0).row;
    assert!((t.duration_s - 0.04).abs() < 1e-9, "{}", t.duration_s);
}

/// Files without anything to analyse are named.
#[test]
fn unsupported_files_are_named() {
    let refuse = |bytes: &[u8]| match open::detect(Box::new(Cursor::new(bytes.to_vec()))) {
        Ok(_) => panic!("accepted"),
        Err(e) => e.to_string(),
    };
    assert!(refuse(b"PK\x03\x04..").contains("a zip archive (extract it first)"));
    assert!(refuse(b"{\"S2C\":{}}").contains("an NDT5 result"));
    assert!(refuse(b"<!doctype html>").contains("an HTML or XML document"));
    assert!(refuse(b"{\"a\":1}").contains("JSON of an unknown format"));
    // A capture of QUIC.
    let mut w = Wire::new();
    for f in &mut w.frames {
        f.bytes[9] = 17;
    }
    let file = pcap(&w.frames, RAW, false, true, 65_535);
    let (kind, input) = open::detect(Box::new(Cursor::new(file))).expect("a capture");
    let e = read(kind, input, &Options::default(), |_| {}).expect_err("no TCP").to_string();
    assert!(e.contains("no packet of TCP, but 3 of QUIC") && e.contains("give a qlog"), "{e}");
}

/// At the receiver, without timestamps, with a handshake that took longer than the data's round trips: the
/// rounds are the data's.
#[test]
fn rounds_are_those_of_the_data() {
    let mut w = Wire::new();
    w.frames[0].ns -= 347_000_000;
    w.frames[2].ns = w.frames[1].ns + 100_000;
    w.us = w.frames[2].ns / 1000 + 307_000;
    for n in [10, 20, 40, 80, 160, 160, 161, 161, 162, 162] {
        let start = w.us;
        for _ in 0..n {
            w.packet(0, ACK | PSH, 1000, 0, 60_000);
            w.next[0] += 1000;
            w.us += 20;
            w.packet(1, ACK, 0, 0, 60_000);
            w.us += 80;
        }
        w.us = start + 20 + 307_000;
    }
    w.close();
    let t = download(&w.frames);
    assert_eq!((t.vantage.as_str(), t.iw_bytes), ("receiver", Some(10_000)), "{t:?}");
    let exit = t.exit.expect("growth stopped");
    assert_eq!(exit.cwnd_bytes, 160_000, "{exit:?}");
}

/// A window that stays the same for eight round trips after growth, to the segment, is limited by something
/// else than cwnd, such as the send buffer; also if a loss follows.
#[test]
fn a_limit_of_the_senders_own_is_no_exit() {
    let mut w = Wire::new();
    for n in [10, 20, 40].into_iter().chain([64; 14]) {
        w.round(0, n, 60_000);
    }
    // The last segment is retransmitted.
    w.us += 300_000;
    w.packet(0, ACK | PSH, 1000, 0, 60_000);
    w.next[0] += 1000;
    w.us += 300_000;
    w.packet(0, ACK | PSH, 1000, 1000, 60_000);
    w.us += RTT;
    w.packet(1, ACK, 0, 0, 60_000);
    w.close();
    let t = download(&w.frames);
    assert_eq!((t.retransmitted_packets, t.class), (Some(1), ExitClass::Unknown), "{:?}", t.exit);
    assert_eq!(t.unclear.as_deref(), Some("limited by something other than cwnd"));
}

/// A window that is as good as flat for seconds after the exit, a segment more every second round trip, is an
/// exit at the end of the growth; slow start that lasts until a loss is not.
#[test]
fn a_long_plateau_is_an_exit_and_growth_until_a_loss_is_none_before() {
    let mut w = Wire::new();
    for n in [10, 20, 40, 80].into_iter().chain((0..40).map(|n| 80 + n / 2)) {
        w.round(0, n, 60_000);
    }
    w.close();
    let t = download(&w.frames);
    let exit = t.exit.as_ref().expect("growth stopped");
    assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (80_000, "growth stopped without loss"));
    assert!(t.class != ExitClass::None, "{t:?}");
}

/// CUBIC with a long RTT: after the exit its window is flat for two round trips, and then grows by a sixth to
/// a third in each. That is no slow start, which grows by half or more.
#[test]
fn the_growth_of_cubic_over_long_round_trips_is_no_slow_start() {
    let mut w = Wire::new();
    for n in [10, 20, 28, 29, 31, 36, 44, 60, 78, 105, 143, 190, 250, 322] {
        w.round(0, n, 60_000);
    }
    w.close();
    let t = download(&w.frames);
    let exit = t.exit.as_ref().expect("growth stopped");
    assert_eq!((exit.cwnd_bytes, exit.evidence.as_str()), (28_000, "growth stopped without loss"), "{t:?}");
}

/// An application that writes blocks with pauses: the sender begins each with its initial window (RFC 2861).
/// The block ends before anything else limits the sender, so that no exit is seen.
#[test]
fn blocks_with_pauses_show_no_exit() {
    let mut w = Wire::new();
    for _ in 0..6 {
        for n in [10, 20, 4] {
            w.round(0, n, 60_000);
        }
        w.us += 900_000;
    }
    w.close();
    let t = download(&w.frames);
    assert!(t.exit.is_none() && !t.certain, "{:?}", t.exit);
}

/// An application that writes 8.5 kB every 20 ms: each write ends in a short segment, and ACKs before the
/// next are not answered. As much as the path delays is in flight, which is a plateau, but not that of a
/// window.
#[test]
fn an_application_that_writes_at_a_rate_shows_no_exit() {
    let mut w = Wire::new();
    w.round(0, 10, 60_000);
    w.round(0, 18, 60_000);
    let (begin, first) = (w.us, w.next[0]);
    // The write with number k is sent, or acknowledged, of which the first ACK arrives 5 ms before another
    // write.
    let mut all: Vec<(u64, u32, bool)> = (0..14).map(|k| (begin + u64::from(k) * 20_000, k, true)).collect();
    all.extend((0..14).map(|k| (begin + u64::from(k) * 20_000 + 55_000, k, false)));
    all.sort_unstable();
    for (us, k, sent) in all {
        w.us = us;
        w.next[0] = first + k * 8500;
        for len in [1000; 8].into_iter().chain([500]) {
            if sent {
                w.packet(0, ACK | PSH, len, 0, 60_000);
            }
            w.next[0] += len;
            if !sent {
                w.packet(1, ACK, 0, 0, 60_000);
            }
        }
    }
    w.close();
    let t = download(&w.frames);
    assert_eq!(
        (t.class, t.unclear.as_deref()),
        (ExitClass::Unknown, Some("application-limited")),
        "{:?}",
        t.exit
    );
}

/// A download in flights of so many segments, each sent by the ACKs of the one before. `first` is the size of
/// the packets of the first flight, in segments.
fn flights(sizes: &[u32], first: u32) -> Transfer {
    let mut w = Wire::new();
    let (mut start, mut acked) = (w.us, w.next[0]);
    let mut sent = acked;
    for (n, pair) in [&[1], sizes].concat().windows(2).enumerate() {
        let begin = sent;
        let len = if n == 0 { first * 1000 } else { 1000 };
        for k in 1..=pair[0] {
            w.us = start + u64::from(k) * 100;
            if sent > acked {
                acked += 1000;
                w.next[0] = acked;
                w.packet(1, ACK, 0, 0, 60_000);
            }
            w.next[0] = sent;
            while sent < begin + pair[1] * k / pair[0] * 1000 {
                w.packet(0, ACK | PSH, len, 0, 60_000);
                sent += len;
                w.next[0] = sent;
            }
        }
        start += RTT;
    }
    w.us = start;
    w.packet(1, ACK, 0, 0, 60_000);
    w.close();
    download(&w.frames)
}

/// After the exit, more than the window seems to be in flight in one round trip, as away from the sender: 15
/// % more is neither slow start nor a reason to look for its end again.
#[test]
fn one_larger_flight_after_the_exit_is_no_slow_start() {
    let t = flights(&[10, 20, 40, 40, 48, 45, 46, 47, 48, 49, 50], 1);
    let exit = t.exit.as_ref().expect("growth stopped");
    assert!(exit.cwnd_bytes <= 40_000 && exit.evidence == "growth stopped without loss", "{exit:?}");
}

/// The first flight of 30 segments is one super-segment. Its ACKs let 41 go, and then growth stops: it is
/// seen within a round trip of the first.
#[test]
fn growth_after_a_first_flight_in_one_packet_is_seen() {
    for first in [30, 1] {
        let t = flights(&[30, 41, 41, 42, 42, 43, 43, 44, 44, 45, 45], first);
        let exit = t.exit.as_ref().unwrap_or_else(|| panic!("{first}: {:?}", t.unclear));
        assert!((40_000..=41_000).contains(&exit.cwnd_bytes), "{first}: {exit:?}");
        assert_eq!(exit.evidence, "growth stopped without loss");
    }
}

/// At the receiver, a loss at the end of what was captured: whether the window fell after it is not seen.
#[test]
fn a_loss_after_which_nothing_is_seen_is_not_certain_at_the_receiver() {
    for (peaks, certain) in [(&[10, 20, 40][..], false), (&[10, 20, 40, 80, 160], false)] {
        let mut w = Wire::new();
        w.frames[0].ns -= RTT * 1000;
        w.frames[2].ns = w.frames[1].ns + 100_000;
        w.us = w.frames[2].ns / 1000 + RTT;
        for (i, n) in peaks.iter().enumerate() {
            let (start, base) = (w.us, w.next[0]);
            let hole = if i + 1 < peaks.len() { *n } else { n * 3 / 4 };
            for k in (0..*n).filter(|k| *k != hole) {
                w.next[0] = base + k * 1000;
                w.packet(0, ACK | PSH, 1000, 0, 60_000);
                w.next[0] = base + hole.min(k + 1) * 1000;
                w.us += 20;
                w.packet(1, ACK, 0, 0, 60_000);
                w.us += 80;
            }
            w.us = start + RTT + 100;
            if hole < *n {
                w.next[0] = base + hole * 1000;
                w.packet(0, ACK | PSH, 1000, 0, 60_000);
                w.us += 20;
            }
            w.next[0] = base + n * 1000;
            if hole < *n {
                w.packet(1, ACK, 0, 0, 60_000);
            }
        }
        w.close();
        let t = download(&w.frames);
        let exit = t.exit.as_ref().expect("a loss");
        assert_eq!(
            (t.vantage.as_str(), exit.evidence.as_str(), t.certain),
            ("receiver", "loss", certain),
            "{t:?}"
        );
    }
}

/// Twelve transfers of 6 kB: none of them has an exit, with the link full or otherwise.
#[test]
fn transfers_of_some_packets_have_no_exit() {
    for n in 1..=12 {
        let mut w = Wire::new();
        w.round(0, n.min(6), 60_000);
        w.close();
        let t = download(&w.frames);
        assert!(t.exit.is_none() && t.class != ExitClass::LinkFull && !t.certain, "{t:?}");
    }
}
