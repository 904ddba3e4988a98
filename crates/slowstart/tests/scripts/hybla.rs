//! Hybla (Caini and Firrincieli 2004).

use crate::common::{avoidance, facts, startup};
use crate::language::play;
use slowstart::control::{Composed, Controller};
use slowstart::units::{Bytes, Span};
use slowstart::view::Handshake;

/// An ACK permits 2^rho - 1 segments: 1 at 25 ms and below, 3 at 50 ms, 7 at 75 ms; 2^(9/8) = 278/128 at 30
/// ms, in eighths.
#[test]
fn an_ack_earns_two_to_the_rho_less_one() {
    for (rtt, cwnd) in [("10ms", "3"), ("25ms", "3"), ("30ms", "3.171"), ("50ms", "5"), ("75ms", "9")] {
        play(&format!("startup hybla\niw 2\nack 1 rtt {rtt} -> cwnd {cwnd}"));
    }
    play("startup hybla:rtt0=50ms\niw 2\nack 1 rtt 100ms -> cwnd 5");
}

/// The minimum RTT counts; 2^16 and 65,535 segments are Linux's limits.
#[test]
fn rho_is_of_the_least_round_trip_and_bounded() {
    play(
        "startup hybla
         iw 2
         ack 1 rtt 50ms -> cwnd 5, rho 2
         ack 1 rtt 100ms -> cwnd 8, rho 2",
    );
    play("startup hybla\niw 2\nack 1 rtt 600ms -> cwnd 65535, rho 24\nack 1 -> cwnd 65535");
}

/// The initial window is multiplied by rho if the handshake has an RTT sample.
#[test]
fn the_initial_window_is_rho_times_as_large() {
    for (ms, want) in [(10, 10_000), (25, 10_000), (100, 40_000), (600, 240_000)] {
        let f = facts(1000, 10);
        let mut c = Composed::new(startup("hybla"), avoidance("reno"), f.iw);
        let hs = Handshake::new(Some(Span::millis(ms)));
        let _ = c.on_established(&f, &hs);
        assert_eq!(c.state().cwnd, Bytes(want), "{ms} ms");
    }
}
