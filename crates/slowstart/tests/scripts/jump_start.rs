//! Jump Start: D = min(queued, window of the peer), over the handshake's round trip.

use crate::language::play;

/// 100 segments of 1000 bytes in 100 ms are 8 Mbit/s; the first ACK ends pacing, the rest is clocked by ACKs.
#[test]
fn all_that_is_queued_is_paced_over_the_handshakes_round_trip() {
    play(
        "startup jump-start
         handshake 100ms
         unsent 100
         established -> cwnd 100, pace 8000000, phase jump, out 100
         +100ms ack 1 -> cwnd 100, pace host, phase slow-start
         ack 1 -> cwnd 101",
    );
}

#[test]
fn the_peers_window_is_the_limit() {
    play("startup jump-start\nhandshake 100ms\nunsent 100\nrwnd 40\nestablished -> cwnd 40, pace 3200000");
}

/// What fits into the initial window needs no jump; nor is there one without a round trip, or with nothing known queued.
#[test]
fn no_reason_no_jump() {
    play(
        "startup jump-start\nhandshake 100ms\nunsent 10\nestablished -> cwnd 10, pace host, phase slow-start",
    );
    play("startup jump-start\nunsent 100\nestablished -> cwnd 10, pace host");
    play("startup jump-start\nhandshake 100ms\nestablished -> cwnd 10, pace host");
}

/// (D - R) / 2: of 100 segments 30 were sent again. (The scripted host reports one segment sent again: 49.5.)
#[test]
fn after_a_loss_the_window_is_half_of_what_got_through() {
    play(
        "startup jump-start
         handshake 100ms
         unsent 1000
         rwnd 100
         established -> cwnd 100
         +100ms ack 1 -> cwnd 100
         loss 1 -> cwnd 50, ssthresh 50, phase jump-recovery
         ack 20 -> cwnd 50
         recovered -> exit loss, detected 100, left 49.5, ssthresh 49.5, phase avoidance",
    );
}

#[test]
fn a_loss_after_the_flight_is_an_ordinary_one() {
    play(
        "startup jump-start
         handshake 100ms
         unsent 1000
         rwnd 20
         established -> cwnd 20
         +100ms ack 20 -> cwnd 20
         ack 20 -> cwnd 40
         ack 1
         loss 1 -> exit loss, detected 41, cwnd 20.5",
    );
}

/// RFC 3522: what was not lost was not too much.
#[test]
fn a_spurious_loss_gives_the_window_back() {
    play(
        "startup jump-start
         handshake 100ms
         unsent 1000
         rwnd 100
         established -> cwnd 100
         +100ms ack 1 -> cwnd 100
         loss 1 -> cwnd 50
         undone -> cwnd 100, ssthresh -, phase slow-start
         ack 1 -> cwnd 101",
    );
}
