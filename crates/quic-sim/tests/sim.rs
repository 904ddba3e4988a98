//! Whole downloads over QUIC at virtual time.

use slowstart_quic_sim::{self as sim, Knobs, Quic, Which};
use slowstart_sim::engine::Sampling;
use slowstart_study::engines::Engine as _;
use slowstart_study::record::Row;
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Study, StudyText};

fn study(path: &str, startup: &str, size: &str) -> Study {
    let text = StudyText {
        path: path.into(),
        startups: vec![startup.into()],
        size: Some(size.into()),
        runs: Some(1),
        ..StudyText::default()
    };
    Study::check(&text, None).unwrap()
}

fn run(path: &str, startup: &str, size: &str) -> Outcome {
    Which::Noq
        .run(
            &Knobs::default(),
            &study(path, startup, size),
            Job { contender: 0, run: 0 },
            Sampling::EachAck,
            true,
        )
        .unwrap()
}

fn row(path: &str, startup: &str, size: &str) -> Row {
    run(path, startup, size).row
}

#[test]
fn standard_slow_start_doubles_until_the_queue_overflows() {
    // 50 Mbit/s and 50 ms: 260 packets of 1228 bytes fill the path, and with a queue of one BDP it overflows
    // at 520.
    let o = run("rate=50Mbit rtt=50ms queue=1bdp ack_jitter=0", "standard", "20MB");
    let exit = o.row.exit.expect("it leaves by loss");
    assert_eq!(exit.reason, "loss");
    assert_eq!(o.row.class.name(), "late");
    let packets = exit.detected_cwnd_bytes / 1200;
    assert!((520..1100).contains(&packets), "{packets}");
    assert!(o.row.completion_s.is_some_and(|s| s < 6.0), "{:?}", o.row.completion_s);
    assert!(o.row.retransmitted_packets >= o.row.lost_packets, "every drop is repaired");
    // The window doubles each round trip: 10 packets grow to at least 500 within six.
    let at = |t: f64| o.trace.samples.iter().rfind(|s| s.time_s <= t).map_or(0, |s| s.cwnd_bytes / 1200);
    assert!(at(0.13) <= 20 && at(0.42) >= 300, "{} {}", at(0.13), at(0.42));
}

#[test]
fn hystart_leaves_with_the_link_full() {
    let row = row("rate=50Mbit rtt=50ms queue=2bdp ack_jitter=0", "hystart", "10MB");
    assert_ne!(row.exit.expect("a train or a delay").reason, "loss");
    assert_eq!(row.class.name(), "link-full");
    assert_eq!(row.startup_lost_packets, Some(0));
}

/// A fifth of the packets takes 30 ms longer, and nothing is dropped. noq takes the losses back, and so does the row: what is
/// left is the exit that was not taken back.
#[test]
fn a_loss_that_was_none_is_taken_back() {
    let row = row("rate=100Mbit rtt=40ms queue=10bdp second_route=20%,30ms", "hystart", "5MB");
    assert_eq!(row.lost_packets, Some(0));
    let exit = row.exit.expect("an exit");
    assert!(row.first_loss_time_s.is_none_or(|at| at >= exit.time_s), "{:?} {exit:?}", row.first_loss_time_s);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let text = StudyText {
        path: "rate=20Mbit rtt=40ms queue=1bdp jitter=2ms loss=0.1%".into(),
        startups: vec!["search".into(), "bbr".into(), "careful-resume".into()],
        size: Some("3MB".into()),
        runs: Some(2),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).unwrap();
    for stack in Which::ALL {
        let all = || -> Vec<String> {
            let jobs = study.jobs().into_iter();
            jobs.map(|j| stack.run(&Knobs::default(), &study, j, Sampling::Off, false).unwrap().row)
                .map(|row| serde_json::to_string(&row).unwrap())
                .collect()
        };
        assert_eq!(all(), all());
    }
}

#[test]
fn every_startup_that_quic_carries_completes() {
    for entry in slowstart::registry::all() {
        if sim::NOT_CARRIED.iter().any(|(name, _)| *name == entry.name) {
            continue;
        }
        for stack in Which::ALL {
            let study = study("rate=20Mbit rtt=40ms queue=1bdp", entry.name, "2MB");
            let row = stack
                .run(&Knobs::default(), &study, Job { contender: 0, run: 0 }, Sampling::Off, false)
                .unwrap()
                .row;
            assert!(row.completion_s.is_some(), "{} in {}", entry.name, stack.name());
            assert!(
                row.peak_inflight_bytes.is_some_and(|n| n >= 12_000),
                "{} in {}",
                entry.name,
                stack.name()
            );
        }
    }
}

#[test]
fn a_remembered_path_is_used() {
    let first = row("rate=50Mbit rtt=100ms queue=1bdp", "standard", "5MB").completion_s.unwrap();
    let second = row("rate=50Mbit rtt=100ms queue=1bdp", "careful-resume", "5MB").completion_s.unwrap();
    assert!(second < first - 0.1, "{second} {first}");
}

/// Jump Start sends 200 kB in the round trip after the handshake, which slow start would need four for.
#[test]
fn a_jump_is_paced_over_the_first_round_trip() {
    let path = "rate=50Mbit rtt=100ms queue=1bdp";
    let of = |startup| row(path, startup, "200kB").completion_s.unwrap();
    // Half a round trip until the server hears of the client, one for the handshake, one for the flight, and
    // half on the way.
    let (jump, slow) = (of("jump-start"), of("standard"));
    assert!(jump < 0.32 && slow > jump + 0.2, "{jump} {slow}");
}

#[test]
fn what_quic_cannot_carry_is_refused() {
    let quinn = Quic::new(Which::Quinn, "").unwrap();
    let error = |text: StudyText| {
        let text = StudyText { path: "lte".into(), ..text };
        quinn.study(&text, None).unwrap_err().to_string()
    };
    let startup = |s: &str| StudyText { startups: vec![s.into()], ..StudyText::default() };
    assert_eq!(
        error(startup("quick-start")),
        "startup: the engine quic:quinn cannot run this: quick-start needs routers that grant a rate in the handshake; \
         expected --engine sim"
    );
    let beside = error(StudyText { against: vec!["cubic@-1s".into()], ..startup("search") });
    assert!(beside.starts_with("against: the engine quic:quinn cannot run this"), "{beside}");
    let stack = error(StudyText { profile: Some("linux-6.18".into()), ..startup("search") });
    assert!(stack.starts_with("profile: the engine quic:quinn"), "{stack}");
    let syn = StudyText { path: "rate=20Mbit rtt=60ms drop_syn=1".into(), ..StudyText::default() };
    let syn = quinn.study(&syn, None).unwrap_err().to_string();
    assert!(
        syn.starts_with("path: the engine quic:quinn cannot run this: drop_syn and drop_synack"),
        "{syn}"
    );
    let all = quinn.study(&StudyText { path: "lte".into(), ..StudyText::default() }, None).unwrap();
    assert!(all.contenders.len() > 30 && all.contenders.iter().all(|c| c.startup_name != "quick-start"));
    let log = quinn.capture(&all, Job { contender: 0, run: 0 }).unwrap_err().to_string();
    assert!(log.ends_with("expected --engine quic:noq or sim"), "{log}");
}

#[test]
fn the_stack_of_the_rows_is_the_one_that_is_built() {
    let lock = include_str!("../../../Cargo.lock");
    for stack in Which::ALL {
        let (name, version) = stack.name().split_once(' ').unwrap();
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")), "{}", stack.name());
    }
}

/// quinn's host does without packet numbers. On the same path it sees the same doubling, and leaves by the
/// same rule within a round trip.
#[test]
fn quinn_leaves_where_noq_leaves() {
    let of = |stack: Which, startup: &str| {
        let study = study("rate=50Mbit rtt=50ms queue=2bdp ack_jitter=0", startup, "10MB");
        stack.run(&Knobs::default(), &study, Job { contender: 0, run: 0 }, Sampling::Off, false).unwrap().row
    };
    for startup in ["hystart++", "search", "standard"] {
        let (noq, quinn) = (of(Which::Noq, startup), of(Which::Quinn, startup));
        let (a, b) = (noq.exit.expect("noq leaves"), quinn.exit.expect("quinn leaves"));
        assert_eq!(a.reason, b.reason, "{startup}");
        assert!((a.time_s - b.time_s).abs() < 0.1, "{startup}: {} and {}", a.time_s, b.time_s);
        assert!(b.reason != "loss" || quinn.retransmitted_packets.is_some_and(|n| n > 0), "{startup}");
    }
}

/// The log with each run of 16 or more hexadecimal digits, which is an identifier or a token, replaced by
/// `#`.
fn without_identifiers(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log);
    let (mut out, mut run) = (String::new(), String::new());
    for c in text.chars() {
        if c.is_ascii_hexdigit() {
            run.push(c);
            continue;
        }
        out.push_str(if run.len() < 16 { &run } else { "#" });
        out.push(c);
        run.clear();
    }
    out
}

/// The server's qlog holds the exit that the row states, to the microsecond and the byte, and the most in
/// flight; the client's is that of a receiver. But for identifiers of connections, which are random, the
/// bytes are the same each time.
#[test]
fn replay_reads_the_exit_of_the_row_from_the_log_of_the_server() {
    for startup in ["hystart", "search", "standard"] {
        let study = study("rate=50Mbit rtt=50ms queue=1bdp", startup, "5MB");
        let job = Job { contender: 0, run: 0 };
        let row = Which::Noq.run(&Knobs::default(), &study, job, Sampling::Off, false).unwrap().row;
        let exit = row.exit.expect("it leaves");
        let [client, server] = Which::Noq.logs(&Knobs::default(), &study, job).unwrap();
        let again = Which::Noq.logs(&Knobs::default(), &study, job).unwrap();
        for (one, two) in [&client, &server].into_iter().zip(&again) {
            let (one, two) = (without_identifiers(one), without_identifiers(two));
            assert_eq!(one.lines().count(), two.lines().count());
            for (a, b) in one.lines().zip(two.lines()) {
                assert_eq!(a, b);
            }
        }
        let read = |log: &[u8]| {
            let mut transfers = Vec::new();
            let done = slowstart_replay::qlog::replay(
                log,
                &Vec::new().into(),
                slowstart_replay::analysis::Keep::default(),
                |t, findings| transfers.push((t, findings)),
            );
            done.expect("the log is well-formed");
            assert_eq!(transfers.len(), 1);
            transfers.remove(0)
        };
        header_is_that_of_the_draft(&client, "client");
        header_is_that_of_the_draft(&server, "server");
        acknowledged_packets_are_those_that_arrived(&client);
        let (server, findings) = read(&server);
        assert_eq!(
            findings.expect("packets").peak_inflight.expect("sent packets").0,
            row.peak_inflight_bytes.expect("observed"),
            "{startup}"
        );
        let server = serde_json::to_value(server).unwrap();
        let found = &server["exit"];
        let time_s = found["time_s"].as_f64().expect("an exit with a time");
        assert!((time_s - exit.left_s).abs() < 2e-6, "{startup}: {found}, {exit:?}");
        assert_eq!(found["cwnd_bytes"], exit.cwnd_bytes, "{startup}: {found}, {exit:?}");
        // The client only acknowledges: it logs no exit.
        assert!(serde_json::to_value(read(&client).0).unwrap()["exit"].is_null());
    }
}

/// The first record, by main schema draft 13 (`QlogFileSeq`, `TraceSeq`) and QUIC events draft 12
/// §2.1; and all events after it are of the schema that it names, in order of time.
fn header_is_that_of_the_draft(log: &[u8], end: &str) {
    let text = std::str::from_utf8(log).expect("UTF-8");
    let records: Vec<serde_json::Value> = text
        .split('\u{1e}')
        .skip(1)
        .map(|r| serde_json::from_str(r).expect("each record is a JSON text after a record separator"))
        .collect();
    let (file, trace) = (&records[0], &records[0]["trace"]);
    assert_eq!(file["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(file["serialization_format"], "application/qlog+json-seq");
    assert_eq!(trace["vantage_point"]["type"], end);
    assert_eq!(trace["event_schemas"], serde_json::json!(["urn:ietf:params:qlog:events:quic-12"]));
    let common = &trace["common_fields"];
    assert!(common["group_id"].as_str().is_some_and(|id| id.len() >= 16), "{common}");
    assert_eq!(common["time_format"], "relative_to_epoch");
    let reference = serde_json::json!({ "clock_type": "monotonic", "epoch": "unknown" });
    assert_eq!(common["reference_time"], reference);
    assert!(records.len() > 1000);
    let mut before = 0.0;
    for event in &records[1..] {
        assert!(event["name"].as_str().is_some_and(|n| n.starts_with("quic:")), "{event}");
        assert!(event["data"].is_object(), "{event}");
        let time = event["time"].as_f64().expect("a time");
        assert!(time >= before, "{before} {event}");
        before = time.floor();
    }
}

/// An ACK that the client sends covers all that it has received: its largest packet number is the largest
/// that arrived.
fn acknowledged_packets_are_those_that_arrived(client: &[u8]) {
    let (mut largest, mut acks) = (0, 0);
    for record in String::from_utf8_lossy(client).split('\u{1e}').skip(2) {
        let event: serde_json::Value = serde_json::from_str(record).expect("JSON");
        let data = &event["data"];
        if data["header"]["packet_type"] != "1RTT" {
            continue;
        }
        if event["name"] == "quic:packet_received" {
            largest = largest.max(data["header"]["packet_number"].as_u64().expect("a number"));
        }
        let frames = data["frames"].as_array().into_iter().flatten();
        for frame in frames.filter(|f| event["name"] == "quic:packet_sent" && f["frame_type"] == "ack") {
            let ranges = frame["acked_ranges"].as_array().expect("ranges");
            let ends = ranges.iter().filter_map(|r| r.as_array()?.last()?.as_u64());
            assert_eq!(ends.max(), Some(largest), "{event}");
            acks += 1;
        }
    }
    assert!(acks > 100, "{acks}");
}
