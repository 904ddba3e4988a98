//! Stateful-TCP: the saved rate times the new RTT.

use crate::language::play;

/// 8 Mbit/s for 200 ms are 200 segments, independent of the saved window and RTT.
#[test]
fn rate_times_round_trip_and_then_avoidance() {
    play(
        "startup stateful
         handshake 200ms
         remembered 50 100ms 8000000
         established -> cwnd 200, pace 8000000, phase paced
         +200ms ack 1 rtt 200ms -> exit estimate, cwnd 200, ssthresh 200, pace host, phase avoidance",
    );
}

#[test]
fn without_saved_state_it_is_standard() {
    play("startup stateful\nhandshake 200ms\nestablished -> cwnd 10, pace host\nround -> cwnd 20");
    play("startup stateful\nremembered 50 100ms 8000000\nestablished -> cwnd 10, pace host");
}
