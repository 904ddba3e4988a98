//! Formats of other tools: every draft of qlog gives the same row, and files that cannot be analysed are
//! named with what to do.

use slowstart_replay::infer::Evidence;
use slowstart_replay::open::{self, Kind};
use slowstart_replay::replay::{Options, read};
use slowstart_replay::transfer::{ExitClass, Transfer};
use std::io::Cursor;

fn rows(text: &str) -> Vec<Transfer> {
    let (kind, input) = open::detect(Box::new(Cursor::new(text.as_bytes().to_vec()))).expect("known");
    let report = read(kind, input, &Options::default(), |_| {}).expect("valid");
    assert_eq!((report.summary.kind, report.summary.incomplete), (Kind::Qlog, None), "{text}");
    report.transfers.into_iter().map(|t| t.row).collect()
}

/// Windows of 10 to 80 packets at round trips of 40 ms, and the loss at which slow start ends; the same in
/// each draft.
#[test]
fn every_draft_of_qlog_gives_the_same_row() {
    struct Step {
        at: u64,
        what: &'static str,
        cwnd: u64,
        old: bool,
    }
    let steps: Vec<Step> = (0..4)
        .map(|n| Step { at: n * 40, what: "metrics", cwnd: 12_000 << n, old: n == 0 })
        .chain([Step { at: 170, what: "left", cwnd: 0, old: false }])
        .collect();
    let state = r#"{"old":"slow_start","new":"recovery"}"#;
    let numbers = |s: &Step, cwnd: &str, unit: f64, quoted: bool| {
        let text = |n: f64| if quoted { format!("\"{n}\"") } else { n.to_string() };
        let first = if s.old { format!(",\"min_rtt\":{}", text(40.0 * unit)) } else { String::new() };
        format!("{{\"{cwnd}\":{}{first}}}", text(s.cwnd as f64))
    };
    // The arrays of the first drafts, with absolute times, differences, units, and numbers as text.
    let arrays = |version: &str, fields: &str, unit: &str, scale: f64, delta: bool, quoted: bool| {
        let mut before = 0;
        let mut events = Vec::new();
        for s in &steps {
            let at = (if delta { s.at - before } else { s.at }) as f64 * scale;
            before = s.at;
            let at = if quoted { format!("\"{at}\"") } else { at.to_string() };
            events.push(match s.what {
                "left" => format!("[{at},\"RECOVERY\",\"CONGESTION_STATE_UPDATED\",{state}]"),
                _ => format!("[{at},\"RECOVERY\",\"METRIC_UPDATE\",{}]", numbers(s, "cwnd", scale, quoted)),
            });
        }
        format!(
            "{{\"qlog_version\":\"{version}\",\"traces\":[{{\"configuration\":{{\"time_units\":\"{unit}\"}},\
             \"event_fields\":[{fields}],\"events\":[{}]}}]}}",
            events.join(",")
        )
    };
    // The objects of the later ones.
    let objects = |head: &str, tail: &str, name: &dyn Fn(&str) -> String, origin: u64, join: &str| {
        let one = |s: &Step| {
            let data = if s.what == "left" {
                state.to_string()
            } else {
                numbers(s, "congestion_window", 1.0, false)
            };
            let what = if s.what == "left" { "congestion_state_updated" } else { "metrics_updated" };
            format!("{{\"time\":{},{},\"data\":{data}}}", origin + s.at, name(what))
        };
        format!("{head}{}{tail}", steps.iter().map(one).collect::<Vec<_>>().join(join))
    };
    let plain = |what: &str| format!("\"name\":\"recovery:{what}\"");
    let apart = |what: &str| format!("\"category\":\"recovery\",\"type\":\"{what}\"");
    let renamed = |what: &str| {
        let what = if what == "metrics_updated" { "recovery_metrics_updated" } else { what };
        format!("\"name\":\"quic:{what}\"")
    };
    let first = r#""relative_time","CATEGORY","EVENT_TYPE","DATA""#;
    let drafts = [
        arrays("draft-01", first, "ms", 1.0, false, false),
        arrays("draft-01", first, "us", 1000.0, false, true),
        arrays("draft-00", r#""delta_time","category","event","data""#, "ms", 1.0, true, false),
        objects(r#"{"qlog_version":"draft-02","traces":[{"events":["#, "]}]}", &apart, 0, ","),
        objects(
            r#"{"qlog_version":"0.3","qlog_format":"JSON","traces":[{"common_fields":{"time_format":"absolute"},"events":["#,
            "]}]}",
            &plain,
            1_700_000_000_000,
            ",",
        ),
        objects(
            "\u{1e}{\"qlog_version\":\"0.4\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{}}\n\u{1e}",
            "\n",
            &plain,
            0,
            "\n\u{1e}",
        ),
        objects(
            "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"serialization_format\":\"application/qlog+json-seq\",\
             \"trace\":{\"common_fields\":{\"time_format\":\"relative_to_epoch\"}}}\n\u{1e}",
            "\n",
            &renamed,
            0,
            "\n\u{1e}",
        ),
    ];
    let want = rows(&drafts[0]).remove(0);
    let exit = want.exit.as_ref().expect("an exit");
    assert_eq!((exit.time_s, exit.cwnd_bytes, want.min_rtt_s), (0.17, 96_000, Some(0.04)));
    for text in &drafts {
        let found = rows(text).remove(0);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let at = found.exit.as_ref().expect("an exit");
        assert_eq!(
            (at.cwnd_bytes, &at.evidence, found.min_rtt_s),
            (exit.cwnd_bytes, &exit.evidence, want.min_rtt_s),
            "{text}"
        );
        assert!(near(at.time_s, exit.time_s) && near(found.duration_s, want.duration_s), "{at:?} {text}");
    }
}

/// Each path of a multipath connection has packet numbers and a window of its own.
#[test]
fn paths_of_a_multipath_qlog_have_rows_of_their_own() {
    let mut events = Vec::new();
    for (path, rtt, kind) in [(0, 40, "ack"), (1, 90, "path_ack")] {
        let mut number = 0;
        for round in 0..4 {
            let (first, at) = (number, round * rtt);
            for _ in 0..10 << round {
                events.push((at, format!(
                    r#"{{"time":{at},"path_id":{path},"name":"transport:packet_sent","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1200}},"frames":[{{"frame_type":"stream"}}]}}}}"#
                )));
                number += 1;
            }
            // The ACK comes on the other path.
            events.push((at + rtt, format!(
                r#"{{"time":{},"path_id":{},"name":"transport:packet_received","data":{{"header":{{"packet_type":"1RTT","packet_number":{round}}},"frames":[{{"frame_type":"{kind}","path_id":{path},"acked_ranges":[[{first},{}]]}}]}}}}"#,
                at + rtt, 1 - path, number - 1
            )));
        }
    }
    events.sort_by_key(|e| e.0);
    let events: Vec<String> = events.into_iter().map(|e| e.1).collect();
    let text = format!(
        r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"name":"s"}},"events":[{}]}}]}}"#,
        events.join(",")
    );
    let found: Vec<_> = rows(&text).into_iter().map(|t| (t.from, t.bytes, t.min_rtt_s, t.packets)).collect();
    let of = |path: u64, rtt| (format!("s path {path}"), Some(150 * 1200), Some(rtt), Some(150));
    assert_eq!(found, [of(0, 0.04), of(1, 0.09)]);
}

/// What was delivered, and what was lost, is not known from packets sent and metrics alone.
#[test]
fn a_qlog_without_acks_says_what_it_does_not_show() {
    let event = |n: u64, cwnd: u64| {
        let at = n * 50;
        format!(
            r#"{{"time":{at},"name":"recovery:metrics_updated","data":{{"congestion_window":{cwnd},"latest_rtt":50.2,"min_rtt":50}}}},
            {{"time":{at},"name":"transport:packet_sent","data":{{"header":{{"packet_type":"1RTT","packet_number":{n}}},"raw":{{"length":1400}}}}}}"#
        )
    };
    let events: Vec<String> =
        [14, 28, 56, 112, 112, 113].iter().enumerate().map(|(n, w)| event(n as u64, w * 1000)).collect();
    let with = |more: &str| {
        let text =
            format!(r#"{{"qlog_version":"0.3","traces":[{{"events":[{}{more}]}}]}}"#, events.join(","));
        rows(&text).remove(0)
    };
    let t = with("");
    assert_eq!((t.bytes, t.packets, t.retransmitted_packets), (None, Some(6), None));
    assert!(t.caveats.iter().any(|c| c.contains("the log has no ACKs")), "{:?}", t.caveats);
    let lost = with(
        r#",{"time":300,"name":"recovery:packet_lost","data":{"header":{"packet_number":3}}},
        {"time":301,"name":"recovery:metrics_updated","data":{"congestion_window":56000,"congestion_control":"Cubic"}}"#,
    );
    assert_eq!((lost.retransmitted_packets, lost.congestion_control.as_deref()), (Some(1), Some("cubic")));
}

/// As quic-go does, a log may state new states only, and that the application limits the sender, in slow start or not.
#[test]
fn states_of_a_qlog_tell_the_exit_without_old_ones() {
    let read = |states: &[(u64, &str)]| {
        let event = |(at, new): &(u64, &str)| {
            format!(
                r#"{{"time":{at},"name":"recovery:metrics_updated","data":{{"congestion_window":{},"min_rtt":50}}}},
                {{"time":{at},"name":"recovery:congestion_state_updated","data":{{"new":"{new}"}}}}"#,
                10_000 + at * 100
            )
        };
        let events: Vec<String> = states.iter().map(event).collect();
        rows(&format!(r#"{{"qlog_version":"0.3","traces":[{{"events":[{}]}}]}}"#, events.join(","))).remove(0)
    };
    let limited = (54, "application_limited");
    let grows = [(0, "slow_start"), limited, (106, "slow_start"), (125, "application_limited")];
    let t = read(&grows);
    assert_eq!((t.exit.is_none(), t.class), (true, ExitClass::None), "{:?}", t.unclear);
    let t = read(&[&grows[..], &[(230, "congestion_avoidance"), (290, "application_limited")]].concat());
    let exit = t.exit.expect("it leaves slow start");
    assert_eq!((exit.time_s, exit.cwnd_bytes, &*exit.evidence), (0.23, 33_000, Evidence::Recorded.words()));
    let t = read(&[(0, "slow_start"), (106, "recovery"), (160, "congestion_avoidance")]);
    assert_eq!(t.exit.map(|e| e.time_s), Some(0.106));
}

/// One sentence says what the file is and what to give instead.
#[test]
fn what_cannot_be_analysed_is_named_with_what_to_do() {
    for (text, says) in [
        (
            "{\"GitShortCommit\":\"a\",\"S2C\":{\"TCPInfo\":{\"SndCwnd\":10}}}",
            "an NDT5 result (it has one TCPInfo",
        ),
        ("CLIENT_RANDOM 00 11\n", "a TLS key log"),
        ("PERFILE2\0\0", "the output of perf script"),
    ] {
        let e =
            open::detect(Box::new(Cursor::new(text.as_bytes().to_vec()))).err().expect("refused").to_string();
        assert!(e.contains(says), "{e}");
    }
}
