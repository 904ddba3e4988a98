//! Explicit congestion notification end to end: marks of a path, feedback of the receiver, response of the
//! sender.

mod common;

use common::{flow, run, run_to_exit, with};
use slowstart::step::Exit;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{End, Engine, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::ecn::Feedback;
use slowstart_sim::tcp::profile::Profile;

/// 100 Mbit/s and 20 ms hold 167 packets; a packet takes 0.12 ms. What waits for more than a millisecond is
/// marked.
const MARKING: &str = "rate=100Mbit rtt=20ms queue=4bdp mark=1ms";

fn download(startup: &str, avoidance: &str, ecn: &str) -> FlowSpec {
    let profile = with(Profile::LINUX_6_18, &[("ecn", ecn)]);
    FlowSpec { avoidance: common::named::avoidance(avoidance), ..flow(startup, profile) }
}

/// Data packets that arrived marked, and the bytes of which the sender learned that they were.
fn marks(e: &Engine) -> (u64, u64) {
    let f = &e.flows[0];
    (f.ends[End::Client].rx.ecn.marked, f.ends[End::Server].tx.counters.marked)
}

#[test]
fn a_mark_ends_slow_start_before_anything_is_lost() {
    for ecn in ["rfc3168", "accecn"] {
        let e = run_to_exit(MARKING, vec![download("standard", "cubic", ecn)], Span::secs(5));
        let exit = e.flows[0].truth.exit.expect("an exit");
        assert_eq!((exit.why, e.dropped), (Exit::Ecn, 0), "{ecn}");
        // The window at the mark is reduced to 0.7 of it, by proportional rate reduction.
        assert_eq!(exit.exit_cwnd.0, exit.detected_cwnd.0 / 1448 * 7 / 10 * 1448, "{ecn}");
        assert_eq!(e.flows[0].ends[End::Server].tx.counters.mark_responses, 1);
    }
    // Without ECN nothing is marked, and the queue overflows.
    for ecn in ["off", "passive"] {
        let e = run_to_exit(MARKING, vec![download("standard", "cubic", ecn)], Span::secs(5));
        assert_eq!((e.flows[0].truth.exit.expect("an exit").why, marks(&e)), (Exit::Loss, (0, 0)), "{ecn}");
        assert!(e.dropped > 0);
    }
}

/// RFC 3168 §6.1.2: at most one response a round trip, however many ACKs echo a mark.
#[test]
fn marks_reduce_the_window_once_a_round_trip() {
    for ecn in ["rfc3168", "accecn"] {
        let spec = PathSpec::load(MARKING, None).expect("a path");
        let flows = vec![download("standard", "reno", ecn)];
        let mut e = Engine::new(spec.build(1), flows, 1, Sampling::Every(Span::millis(100)), false);
        e.run(Instant(20_000_000_000));
        let tx = &e.flows[0].ends[End::Server].tx;
        assert_eq!((e.dropped, tx.counters.retransmitted, tx.counters.recoveries), (0, 0, 0));
        let times: Vec<f64> =
            e.trace.events.iter().filter(|e| e.what == "mark").map(|e| Span(e.at.0).as_secs_f64()).collect();
        assert_eq!(times.len() as u64, tx.counters.mark_responses);
        let apart = times.windows(2).map(|w| w[1] - w[0]).reduce(f64::min).expect("several");
        assert!(times.len() > 5 && apart > 0.020, "{ecn}: {} responses, {apart} s apart", times.len());
        // More packets were marked than answered.
        assert!(marks(&e).0 > tx.counters.mark_responses, "{ecn}: {:?}", marks(&e));
    }
}

#[test]
fn accurate_feedback_counts_each_marked_packet() {
    for (avoidance, profile) in
        [("dctcp", "linux-6.18"), ("prague", "linux-6.18"), ("dctcp", "linux-6.18-gro")]
    {
        let profile = with(Profile::named(profile).expect("one"), &[("ecn", "accecn")]);
        let spec = FlowSpec { profile, ..download("standard", avoidance, "accecn") };
        let e = run(MARKING, vec![spec], Span::secs(10));
        assert_eq!(e.flows[0].ends[End::Server].feedback(), Feedback::Count);
        let (packets, bytes) = marks(&e);
        assert!(packets > 100 && e.dropped == 0, "{avoidance}: {packets}");
        // Those of the last round trip are not known yet.
        let flight = e.flows[0].ends[End::Server].tx.board().inflight().0;
        let missing = packets * 1448 - bytes;
        assert!(missing <= flight, "{avoidance}: {packets} packets, {bytes} bytes");
    }
}

/// DCTCP and Prague keep the queue near a threshold of BDP / 7, and the link busy (Alizadeh et al. 2010,
/// section 3.3: a threshold above that suffices). A response as to a loss does not.
#[test]
fn a_scalable_response_keeps_the_queue_short_and_the_link_busy() {
    let figures = |avoidance: &str, ecn: &str| {
        let path = "rate=100Mbit rtt=20ms queue=4bdp mark=3ms";
        let mut e = run(path, vec![download("standard", avoidance, ecn)], Span::secs(5));
        let before = e.flows[0].delivered();
        let mut most = Span::ZERO;
        for ms in 0..5000 {
            e.run(Instant(5_000_000_000 + ms * 1_000_000));
            most = most.max(e.path().forward.queue_delay(e.now()));
        }
        ((e.flows[0].delivered() - before) as f64 * 8.0 / 5.0 / 1e6, most.as_secs_f64() * 1e3, e.dropped)
    };
    let full = 100.0 * 1448.0 / 1500.0;
    for (avoidance, ecn) in [("dctcp", "dctcp"), ("dctcp", "accecn"), ("prague", "accecn")] {
        let (rate, queue, dropped) = figures(avoidance, ecn);
        println!("{avoidance} {ecn}: {rate:.1} Mbit/s, {queue:.2} ms");
        assert!(rate > 0.98 * full && dropped == 0, "{avoidance} {ecn}: {rate} Mbit/s");
        // Growth of a segment in the round trip before marks are known, and a burst.
        assert!(queue > 3.0 && queue < 5.0, "{avoidance} {ecn}: {queue} ms");
    }
    for ecn in ["rfc3168", "accecn"] {
        let (rate, ..) = figures("reno", ecn);
        println!("reno {ecn}: {rate:.1} Mbit/s");
        assert!(rate < 0.95 * full, "{rate} Mbit/s");
    }
}

/// RFC 8511: in congestion avoidance a mark costs less than a loss.
#[test]
fn abe_reduces_the_window_less_for_a_mark() {
    let cut = |avoidance: &str| {
        let mut e = run(MARKING, vec![download("standard", avoidance, "rfc3168")], Span::millis(1500));
        let responses = |e: &Engine| e.flows[0].ends[End::Server].tx.counters.mark_responses;
        let window = |e: &Engine| {
            slowstart::control::Controller::state(e.flows[0].ends[End::Server].tx.control()).cwnd.0
        };
        let (before, mut last) = (responses(&e), window(&e));
        while responses(&e) == before {
            last = window(&e);
            e.run(e.now() + Span::micros(50));
        }
        window(&e) as f64 / last as f64
    };
    for (avoidance, share) in [("reno", 0.5), ("reno-abe", 0.8), ("cubic", 0.7), ("cubic-abe", 0.85)] {
        let cut = cut(avoidance);
        assert!((cut - share).abs() < 0.015, "{avoidance}: {cut}");
    }
}

/// The option counts bytes: where ACKs are thinned so that the three bits of the ACE field go around, it
/// tells how often.
#[test]
fn the_option_counts_marked_bytes_where_the_field_goes_around() {
    // Receive offload merges up to 45 packets into one acknowledgement.
    let told = |ecn_option: &str| {
        let keys =
            [("ecn", "accecn"), ("ecn_option", ecn_option), ("gro_wait", "5ms"), ("ack_pushed", "off")];
        let profile = with(Profile::named("linux-6.18-gro").expect("one"), &keys);
        let spec = FlowSpec { profile, ..download("standard", "prague", "accecn") };
        let e = run(MARKING, vec![spec], Span::secs(10));
        let (packets, bytes) = marks(&e);
        let tx = &e.flows[0].ends[End::Server].tx;
        (packets * u64::from(tx.mss()), bytes, tx.board().inflight().0)
    };
    let (marked, bytes, flight) = told("on");
    assert!(bytes <= marked && marked - bytes <= flight, "{marked} were marked, {bytes} reported");
    // Without it the safe number is taken, which is too large by the packets that were not marked.
    let (marked, bytes, _) = told("off");
    assert!(bytes > marked * 11 / 10, "{marked} were marked, {bytes} counted");
}

#[test]
fn the_option_takes_its_space_from_the_payload() {
    let keys = [("ecn", "accecn"), ("ecn_option", "on")];
    let spec =
        FlowSpec { profile: with(Profile::LINUX_6_18, &keys), ..download("standard", "prague", "accecn") };
    let path = PathSpec::load(MARKING, None).expect("a path");
    let mut e =
        Engine::new(path.build(1), vec![FlowSpec { recorded: true, ..spec }], 1, Sampling::Off, false);
    e.start_capture();
    e.run(Instant(2_000_000_000));
    let packets = e.take_capture();
    let data: Vec<_> = packets.iter().filter(|p| p.segment.len > 0).collect();
    assert!(data.len() > 1000 && data.iter().all(|p| p.segment.wire() <= 1500));
    assert_eq!(data[10].segment.len, 1436);
    let without = packets.iter().filter(|p| !p.segment.has_ecn_option()).count();
    // The SYN leaves and arrives without it.
    assert_eq!(without, 2, "of {}", packets.len());
}
