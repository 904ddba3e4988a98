//! What rows and events say where the network reorders, its delay steps, or a handshake packet is lost.

mod common;

use common::{engine, run, sized};
use slowstart::step::Exit;
use slowstart::units::{Instant, Span};
use slowstart_sim::app::{Bursts, Kind as App, Writes};
use slowstart_sim::engine::{Engine, FlowSpec, Sampling};
use slowstart_sim::path::{Cause, Ecn, Kind, PacketInfo, PathSpec};
use slowstart_sim::tcp::profile::Profile;
use slowstart_sim::tcp::sender::LimitedBy;

/// Flights of 10, 20 and 40 segments: 100 kB are here after three round trips and the transmission of the last
/// flight, and no segment of them waits for a delayed ACK, as on a live kernel with either buffer (0.211 s).
#[test]
fn a_hundred_kilobytes_take_four_round_trips() {
    for first in ["131072", "1048576"] {
        let profile = common::with(Profile::LINUX_6_18, &[("rmem_first", first)]);
        let e =
            run("rate=50Mbit rtt=50ms queue=1bdp", vec![sized("hystart", profile, 100_000)], Span::secs(2));
        let took = e.flows[0].truth.completed.expect("complete");
        assert!((209..213).contains(&(took.0 / 1_000_000)), "{first}: {} us", took.0 / 1000);
    }
}

/// Two routes, one of them 10 or 30 ms longer: nothing is dropped, so no startup leaves by a loss, and no loss is
/// known, though segments are sent again.
#[test]
fn what_was_only_late_is_no_loss() {
    for (startup, profile, later) in [
        ("rapid-start", Profile::LINUX_6_18_FQ, "10ms"),
        ("c4", Profile::LINUX_6_18_FQ, "10ms"),
        ("hystart", Profile::LINUX_6_18, "30ms"),
    ] {
        let path = format!("rate=100Mbit rtt=40ms queue=10bdp second_route=20%,{later}");
        let spec = PathSpec::load(&path, None).expect("a path");
        let mut resent = 0;
        for seed in 1..=12 {
            let flows = vec![sized(startup, profile, 2_000_000)];
            let mut e = Engine::new(spec.build(seed), flows, seed, Sampling::Off, false);
            e.run(Instant::ZERO + Span::secs(5));
            let (t, tx) = (&e.flows[0].truth, &e.flows[0].ends[e.flows[0].sender()].tx);
            assert_eq!((e.dropped, t.first_loss), (0, None), "{startup}, seed {seed}");
            assert_ne!(t.exit.map(|x| x.why), Some(Exit::Loss), "{startup}, seed {seed}");
            resent += tx.counters.retransmitted;
        }
        assert!(resent > 0, "{startup}: the path does not reorder enough for this test");
    }
}

/// The delay of the path rises from 5 to 200 ms when it has been filled, 40 ms after the beginning, and stays: when
/// the first loss ends slow start, the path holds more than was ever in flight.
#[test]
fn capacity_is_that_of_the_path_at_the_exit() {
    let file = std::env::temp_dir().join(format!("slowstart-step-{}.delay", std::process::id()));
    // One-way, a line for 10 ms.
    std::fs::write(&file, "5\n".repeat(4) + &"200\n".repeat(2000)).expect("written");
    let path = |delay: &str| format!("rate=20Mbit {delay} queue=1bdp");
    let step = path(&format!("delay_trace={} trace_start=0", file.display()));
    let capacity = |path: &str| {
        let mut e = engine(path, vec![sized("standard", Profile::LINUX_6_18, 20_000_000)]);
        e.run_until(Instant::ZERO + Span::secs(20), |e| e.flows[0].truth.exit.is_some());
        let t = &e.flows[0].truth;
        (t.exit.expect("an exit").detected_at, t.capacity)
    };
    let (left, full) = capacity(&step);
    std::fs::remove_file(&file).expect("removed");
    assert!(full.is_none(), "it left at {left:?}, full at {full:?}");
    let (left, full) = capacity(&path("rtt=10ms"));
    assert!(full.is_some_and(|full| full < left), "{left:?} {full:?}");
}

/// The SYN-ACK is lost after half a round trip, and the SYN comes again after a second.
#[test]
fn a_lost_syn_ack_is_in_the_trace() {
    let spec = PathSpec::load("rate=10Mbit rtt=40ms queue=1bdp drop_synack=1", None).expect("a path");
    let flows = vec![sized("hystart", Profile::LINUX_6_18, 100_000)];
    let mut e = Engine::new(spec.build(1), flows, 1, Sampling::EachAck, false);
    e.run(Instant::ZERO + Span::secs(3));
    let told: Vec<(u64, &str)> = e
        .trace
        .events
        .iter()
        .filter(|e| e.what == "handshake")
        .map(|e| ((e.at.0 + 500_000) / 1_000_000, e.why.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(told[..3], [(20, "SYN-ACK lost"), (1000, "SYN sent again"), (1020, "SYN-ACK sent again")]);
    // The first sample is not the SYN's.
    assert!(e.trace.samples[0].time_s > 1.06, "{}", e.trace.samples[0].time_s);
}

/// One SYN-ACK is lost: the server sends it twice again, for its timer and for the SYN that comes again, and begins
/// with a window of one segment, as Linux 6.12 does.
#[test]
fn a_second_retransmission_of_the_handshake_leaves_one_segment() {
    let first_flight = |path: &str, set: &[(&str, &str)]| {
        let profile = common::with(Profile::LINUX_6_18, set);
        let mut e = engine(
            &format!("rate=10Mbit rtt=40ms queue=1bdp {path}"),
            vec![sized("standard", profile, 100_000)],
        );
        let sent = |e: &Engine| e.flows[0].ends[e.flows[0].sender()].tx.counters.packets;
        e.run_until(Instant::ZERO + Span::secs(5), |e| sent(e) > 0);
        sent(&e)
    };
    assert_eq!(first_flight("drop_synack=1", &[]), 1);
    // The client's, which sends no data.
    assert_eq!(first_flight("drop_syn=2", &[]), 10);
    assert_eq!(first_flight("drop_synack=1", &[("iw_lost_syn", "off")]), 10);
}

/// A shaper or a policer behind the link holds the rate: it is what fills, and where packets wait.
#[test]
fn what_lies_behind_the_link_fills_too() {
    for (bucket, waits) in [("shaper", true), ("policer", false)] {
        let path =
            format!("rate=100Mbit rtt=30ms queue=2bdp {bucket}=\"rate=20Mbit burst=50kB place=after\"");
        let e = run(&path, vec![sized("standard", Profile::LINUX_6_18, 5_000_000)], Span::secs(10));
        let t = &e.flows[0].truth;
        let (full, left) = (t.capacity.expect("full"), t.exit.expect("an exit").detected_at);
        assert!(full < left, "{bucket}: {full:?} {left:?}");
        // One BDP at 20 Mbit/s, and what the burst let through.
        let longest = t.peak_queue_delay;
        assert_eq!(longest > Span::millis(25), waits, "{bucket}: {longest:?}");
    }
}

/// Linux's `pfifo_head_drop` has the same drops as a tail-drop queue of the same length, but the sender learns of the
/// first one round trip of the queue earlier: what is dropped is the next to leave.
#[test]
fn a_front_drop_is_known_sooner() {
    let known = |queue: &str| {
        let path = format!("rate=20Mbit rtt=50ms queue=\"{queue} limit 83p\"");
        let e = run(&path, vec![sized("standard", Profile::LINUX_6_18, 3_000_000)], Span::secs(10));
        let t = &e.flows[0].truth;
        (t.first_drop.expect("dropped"), t.first_loss.expect("known"))
    };
    let ((tail_drop, tail), (head_drop, head)) = (known("pfifo"), known("pfifo_head_drop"));
    assert_eq!(tail_drop, head_drop);
    // 83 packets take 49.8 ms.
    let sooner = tail.since(head);
    assert!(Span::millis(40) < sooner && sooner < Span::millis(55), "{sooner:?}");
}

/// What still waits when slow start ends was sent in it: a front drop is known while the packets behind it wait, a whole queue of
/// 332 packets, 199 ms.
#[test]
fn what_waits_at_the_end_of_slow_start_counts() {
    let path = "rate=20Mbit rtt=50ms queue=\"pfifo_head_drop limit 332p\"";
    let e = run(path, vec![sized("standard", Profile::LINUX_6_18, 3_000_000)], Span::secs(10));
    let wait = e.flows[0].truth.exit_queue_delay;
    assert!(Span::millis(190) < wait && wait < Span::millis(205), "{wait:?}");
}

/// A table with all columns: 12 Mbit/s and 20 ms one-way, then all packets are lost, then 24 Mbit/s.
#[test]
fn a_table_gives_rate_delay_and_loss() {
    let file = std::env::temp_dir().join(format!("slowstart-table-{}.csv", std::process::id()));
    let text =
        "time_ms,loss_percent,rate_mbps,delay_ms\n0,0,12,20\n1000,100,12,20\n2000,0,24,20\n3000,0,24,20\n";
    std::fs::write(&file, text).expect("written");
    let name = file.display();
    let line =
        format!("trace={name} delay_trace={name} loss_trace={name} trace_start=0 rtt=40ms queue=infinite");
    let spec = PathSpec::load(&line, None).expect("a path");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(spec.facts().base_rtt, Span::millis(40));
    let mut way = spec.build(1).forward;
    let second = |n: u64| Instant::ZERO + Span::secs(n);
    assert_eq!(way.capacity(second(0), second(1)).0, 1_500_000);
    assert_eq!(way.capacity(second(2), second(3)).0, 3_000_000);
    let data = PacketInfo { bytes: 1500, flow: 0, kind: Kind::Data, ecn: Ecn::NotEct };
    let mut pass = |ms: u64| way.pass(Instant::ZERO + Span::millis(ms), &data).map(|at| at.0 / 1_000_000);
    assert_eq!(pass(100), Ok(121));
    assert_eq!(pass(1500).map_err(|d| d.cause), Err(Cause::Random));
    assert_eq!(pass(2500), Ok(2521));
}

/// Two bursts with two seconds between them: the second is complete its transfer time after the first and the pause.
#[test]
fn bursts_have_their_pauses() {
    let bursts = Bursts::parse("1MB,2s,1MB").expect("bursts");
    let spec = FlowSpec { app: App::Bursts(bursts), ..sized("standard", Profile::LINUX_6_18, 0) };
    let e = run("rate=50Mbit rtt=40ms queue=4bdp", vec![spec], Span::secs(20));
    let (f, t) = (&e.flows[0], &e.flows[0].truth);
    let (first, all) = (t.milestones[1].expect("1 MB"), t.completed.expect("complete"));
    assert_eq!(f.delivered(), 2_000_000);
    let second = all.since(first);
    // 1 MB takes 160 ms of the link at least, and the window is restarted after two seconds.
    assert!(Span::millis(2200) < second && second < Span::millis(2700), "{second:?}");
}

/// A sender that writes by a schedule keeps it, whatever has arrived: pauses also within a round trip, and a rate.
#[test]
fn a_schedule_of_writes_is_kept() {
    let play = |app: &str, ahead: bool| {
        let app = App::Writes(Writes::parse(app).expect("writes"));
        let spec = FlowSpec { app, ..sized("hystart", Profile::LINUX_6_18, 0) };
        let mut e = engine("rate=100Mbit rtt=40ms queue=4bdp", vec![spec]);
        let end = Instant::ZERO + Span::secs(30);
        if ahead {
            e.complete(end);
        } else {
            e.run_until(end, |e| e.flows[0].truth.completed.is_some());
        }
        e
    };
    for (app, last_write_ms) in [
        // Written when the connection is established, after 60 ms; three pieces within one round trip.
        ("writes:10kB@4kB/5ms", 60 + 10),
        ("writes:1MB,2s,10kB", 60 + 2000),
        // 1 Mbit/s are 1250 bytes each 10 ms: 400 pieces.
        ("writes:500kB@1Mbit,10kB", 60 + 4000),
    ] {
        let e = play(app, true);
        let completed = e.flows[0].truth.completed.expect("complete").0;
        let after = completed - last_write_ms * 1_000_000;
        // Half a round trip, and the transmission of ten segments.
        assert!((20_000_000..23_000_000).contains(&after), "{app}: {after} ns after the last write");
        let f = &e.flows[0];
        let limits = f.ends[f.sender()].tx.limits();
        let waited = limits.spent(LimitedBy::Application, Instant::ZERO, e.now())
            + limits.spent(LimitedBy::Idle, Instant::ZERO, e.now());
        assert!(waited >= Span::millis(last_write_ms - 60) * 8 / 10, "{app}: {waited:?} for the application");
        // Both ends act at their own times, whichever is computed first.
        assert_eq!(play(app, false).flows[0].truth.completed.map(|at| at.0), Some(completed), "{app}");
    }
}
