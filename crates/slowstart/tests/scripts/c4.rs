//! C4's initial and resuming state: nominal rate, rounds without growth, and what it leaves with.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::step::Exit;
use slowstart::units::Span;

const RTT: Span = Span::millis(100);

/// 10 segments in 100 ms are 800 kbit/s; the pacing rate is twice that, and at least 1,048,576 bit/s.
#[test]
fn the_window_is_at_least_twice_the_nominal_rate_times_the_rtt() {
    play(
        "startup c4
         +100ms ack 1 rtt 100ms -> cwnd 11, nominal_rate_bps 80000, nominal_max_rtt_s 0.1, pace 1048576
         ack 1 x9 -> cwnd 20, nominal_rate_bps 800000, pace 1600000, phase initial
         +100ms round -> cwnd 40, nominal_rate_bps 1600000, pace 3200000",
    );
    // ACKs that do not permit growth measure the rate, so the next one makes up for it.
    play(
        "startup c4
         limit application
         +100ms ack 1 rtt 100ms
         ack 1 x8 -> cwnd 10, nominal_rate_bps 720000
         limit window
         ack 1 -> cwnd 20",
    );
}

/// Two ACKs of a plateau: 1/8 and 1/64 of what is acknowledged in the first and second round without growth;
/// the third ends it with 15/16 of half the window and of 15 ms at that rate.
#[test]
fn three_rounds_without_growth_end_it() {
    let mut host = Host::new(startup("c4"), avoidance("cubic"), facts(1000, 10));
    host.fill();
    for _ in 0..2 {
        host.wait(RTT);
        host.round(1, Span::ZERO, RTT);
    }
    assert_eq!(host.cwnd(), 40.0);
    // The path delivers a segment each 5 ms: 1.6 Mbit/s.
    host.wait(RTT);
    let mut earned = std::collections::BTreeMap::new();
    let exited = loop {
        let (before, flat) = (host.cwnd(), host.internal_value("flat_rounds").unwrap() as u32);
        let change = host.ack(1000, Some(RTT));
        if let Some(e) = change.exited {
            break e;
        }
        if host.internal_value("flat_rounds").unwrap() as u32 == flat {
            earned.insert(flat, host.cwnd() - before);
        }
        host.fill();
        host.wait(Span::millis(5));
    };
    assert_eq!(earned.into_values().map(|g| (g * 1000.0).round() as u32).collect::<Vec<_>>(), [1000, 125, 15]);
    assert_eq!((exited.why, exited.detected_cwnd > exited.exit_cwnd), (Exit::RateFlat, true));
    // 200 bytes each millisecond.
    let half = exited.detected_cwnd.0 as f64 / 2.0;
    let want = (half + 15.0 * 200.0) * 15.0 / 16.0;
    assert!((exited.exit_cwnd.0 as f64 - want).abs() < 3.0, "{} {want}", exited.exit_cwnd.0);
    assert_eq!(host.ssthresh(), Some(host.cwnd()));
}

/// At 200 kB/s the sensitivity is 152/1024, and 44.5 % of losses are allowed. n in a row make a smoothed
/// share of 51.6 % (1 - 0.8789^n): 44.2 % for fifteen, 45.1 % for sixteen. Below 50 kB/s no losses end it.
#[test]
fn losses_count_by_sensitivity_and_after_twenty_packets() {
    let begin = "startup c4\n+100ms round rtt 100ms\n+100ms round -> cwnd 40\n";
    play(&format!("{begin}loss 15 -> cwnd 40, ssthresh -"));
    // Half the window is 100 ms at that rate, and 15 ms more: 115 ms of 187.5 kB/s.
    play(&format!("{begin}loss 16 -> exit loss, cwnd 21.562, ssthresh 21.562, phase avoidance"));
    play("startup c4\n+100ms round rtt 100ms\nloss 20 -> cwnd 20, ssthresh -");
    play("startup c4\niw 100\nloss 90 -> cwnd 100");
    play("startup c4\ntimeout -> exit timeout, cwnd 1");
}

/// Delay ends it only after two rounds without growth.
#[test]
fn delay_alone_does_not_end_it() {
    let mut host = Host::new(startup("c4"), avoidance("cubic"), facts(1000, 10));
    host.fill();
    for _ in 0..2 {
        host.wait(RTT);
        host.round(1, Span::ZERO, RTT);
    }
    host.wait(RTT);
    let late = RTT * 2;
    let exited = loop {
        let flat = host.internal_value("flat_rounds").unwrap();
        if let Some(e) = host.ack(1000, Some(late)).exited {
            assert_eq!(flat, 2.0);
            break e;
        }
        host.fill();
        host.wait(Span::millis(5));
    };
    assert_eq!(exited.why, Exit::Delay);
    // Marks do not either, while there is no delay.
    play("startup c4\niw 100\n+100ms ack 1 rtt 100ms\necn -> ssthresh -");
}

/// A remembered path: its window over the handshake's RTT for two rounds; then the rate that was measured.
#[test]
fn a_remembered_path_is_kept_for_two_rounds() {
    play(
        "startup c4:resume=on
         handshake 100ms
         remembered 100 100ms 8000000
         established -> cwnd 100, pace 8000000, phase resuming
         +100ms round rtt 100ms -> cwnd 100, nominal_rate_bps 8000000, phase resuming
         +100ms ack 1 rtt 100ms -> exit estimate, cwnd 100, phase avoidance",
    );
    // The path delivers half of that rate, with delay: a quarter at most is taken off.
    play(
        "startup c4:resume=on
         handshake 100ms
         remembered 100 100ms 8000000
         established
         +200ms ack 50 rtt 200ms -> exit delay, cwnd 20.214",
    );
    play("startup c4\nhandshake 100ms\nremembered 100 100ms 8000000\nestablished -> cwnd 10, phase initial");
}
