//! Stateful-TCP: what the remembered rate carries in the new round trip.

use crate::language::play;

/// 8 Mbit/s in 200 ms are 200 segments, whatever the window and the round trip were then.
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
fn nothing_remembered_is_standard() {
    play("startup stateful\nhandshake 200ms\nestablished -> cwnd 10, pace host\nround -> cwnd 20");
    play("startup stateful\nremembered 50 100ms 8000000\nestablished -> cwnd 10, pace host");
}
