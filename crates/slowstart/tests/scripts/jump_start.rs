//! Jump Start: D = min(queued data, receive window), over the RTT of the handshake.

use crate::language::play;

/// 100 segments of 1000 bytes in 100 ms are 8 Mbit/s; the first ACK ends pacing, and ACKs clock the rest.
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

/// No jump if the data fits into the initial window, without an RTT sample, or if the queued data is unknown.
#[test]
fn without_the_conditions_there_is_no_jump() {
    play(
        "startup jump-start\nhandshake 100ms\nunsent 10\nestablished -> cwnd 10, pace host, phase slow-start",
    );
    play("startup jump-start\nunsent 100\nestablished -> cwnd 10, pace host");
    play("startup jump-start\nhandshake 100ms\nestablished -> cwnd 10, pace host");
}

/// (D - R) / 2: of 100 segments 30 were retransmitted. (The scripted host reports one retransmitted segment:
/// 49.5.)
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

/// RFC 3522: nothing was lost, so the window is restored.
#[test]
fn a_spurious_loss_restores_the_window() {
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
