//! Stateful-TCP: the saved rate times the saved minimum RTT, for one paced flight; then `HyStart`.

use crate::language::play;

/// 8 Mbit/s for 100 ms are 100 segments, whatever the window saved and the RTT of the handshake. The first sample
/// finds 99 in flight. Then a train of more than half of 100 ms ends slow start.
#[test]
fn a_paced_flight_and_then_hystart() {
    play(
        "startup stateful
         handshake 200ms
         remembered 50 100ms 8000000
         established -> cwnd 100, pace 8000000, phase paced
         +100ms ack 1 rtt 100ms -> cwnd 100, pace host, phase slow-start
         +1ms ack 1 x50 rtt 100ms -> cwnd 150, ssthresh -
         +1ms ack 1 rtt 100ms -> exit ack-train, cwnd 150, ssthresh 150, phase avoidance",
    );
}

/// What could not be filled is not kept: the window falls to the data in flight.
#[test]
fn the_window_falls_to_what_was_sent() {
    play(
        "startup stateful
         remembered 50 100ms 8000000
         unsent 40
         established -> cwnd 100, phase paced, out 40
         limit application
         +100ms ack 1 rtt 100ms -> cwnd 39, pace host, phase slow-start",
    );
}

/// Up to five segments in flight end nothing; more do, once the application has sent them.
#[test]
fn a_sample_with_few_in_flight_does_not_end_the_flight() {
    play(
        "startup stateful
         remembered 50 100ms 8000000
         unsent 12
         established -> cwnd 100, phase paced, out 12
         limit application
         +100ms ack 7 rtt 100ms -> cwnd 100, pace 8000000, phase paced, out 5
         unsent 100
         +1ms ack 1 x4 rtt 100ms -> cwnd 99, pace host, phase slow-start",
    );
}

/// 10 segments are the initial window: not worth it.
#[test]
fn without_more_than_the_initial_window_it_is_hystart() {
    play("startup stateful\nhandshake 200ms\nestablished -> cwnd 10, pace host\nround -> cwnd 20");
    play("startup stateful\nremembered 50 100ms 800000\nestablished -> cwnd 10, pace host\nround -> cwnd 20");
}
