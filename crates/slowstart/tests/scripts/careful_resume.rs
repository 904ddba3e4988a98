//! Careful Resume: phases and windows of RFC 9959.

use crate::language::play;

const PATH: &str = "startup careful-resume
    handshake 100ms
    remembered 400 100ms 32000000
    established -> cwnd 10, phase reconnaissance, pace host
    +100ms ack 1 x9 rtt 100ms -> cwnd 19, phase reconnaissance
    ";

fn resume(rest: &str) {
    play(&format!("{PATH}{rest}"));
}

/// The last ACK of the initial window jumps to half of 400: 200 segments in 100 ms, 16 Mbit/s, with 18 in
/// flight. The first ACK of a packet of the jump ends it.
#[test]
fn jumps_to_half_of_what_is_remembered() {
    resume(
        "unsent 180
         ack 1 -> cwnd 200, phase unvalidated, pace 16000000, pipe_bytes 18000, out 198
         ack 18 -> cwnd 200, phase unvalidated, pipe_bytes 36000
         ack 1 -> cwnd 179, phase validating, pace host, pipe_bytes 37000
         ack 179 -> phase slow-start, cwnd 358",
    );
}

/// When all of the jump has been sent, it ends too.
#[test]
fn a_jump_that_has_left_is_to_be_validated() {
    resume(
        "ack 1 -> cwnd 200, phase unvalidated, out 200
         ack 1 -> cwnd 199, phase validating, pace host, pipe_bytes 19000
         ack 1 -> cwnd 200
         ack 198 -> phase slow-start, cwnd 398",
    );
}

/// It also ends after one round trip: the window is then the data in flight.
#[test]
fn a_jump_lasts_a_round_trip() {
    resume("unsent 60\nack 1 -> out 78\ntimer -> phase validating, cwnd 78, pace host, pipe_bytes 18000");
    resume("unsent 3\nack 1 -> out 21\nack 18 -> cwnd 200\ntimer -> phase slow-start, cwnd 36, pace host");
}

/// After a jump that was hardly used, the window is the initial window.
#[test]
fn the_window_stays_above_the_initial_one() {
    play(
        "startup careful-resume
         remembered 400 100ms 32000000
         established -> cwnd 10
         unsent 3
         +100ms ack 10 rtt 100ms -> cwnd 200, phase unvalidated, out 3
         +100ms ack 1 -> cwnd 10, phase slow-start, out 2",
    );
}

/// At most half of the saved window, and no jump for less than four initial windows.
#[test]
fn small_saved_windows_are_not_used() {
    play("startup careful-resume\nremembered 39 100ms 3200000\nestablished -> cwnd 10, phase slow-start");
    play("startup careful-resume\nestablished -> cwnd 10, phase slow-start");
}

/// An RTT of at most half of the saved one, or of more than ten times it, indicates a different path.
#[test]
fn a_different_round_trip_means_a_different_path() {
    let begin =
        "startup careful-resume\nremembered 400 100ms 32000000\nestablished -> phase reconnaissance\n";
    for (rtt, phase) in [
        ("50ms", "slow-start"),
        ("51ms", "reconnaissance"),
        ("1s", "reconnaissance"),
        ("1001ms", "slow-start"),
    ] {
        play(&format!("{begin}+1ms ack 1 rtt {rtt} -> phase {phase}, cwnd 11"));
    }
}

#[test]
fn a_loss_of_the_initial_window_ends_it() {
    resume("loss 1 -> exit loss, cwnd 9.5");
}

/// Only a sender that uses its window may jump.
#[test]
fn the_application_must_need_it() {
    resume(
        "limit application\nack 1 -> cwnd 19, phase reconnaissance\nlimit window\nack 1 -> phase unvalidated, cwnd 200",
    );
}

/// The retreat is to half of `PipeSize`; at its end the threshold is half of what was delivered by
/// then.
#[test]
fn a_loss_retreats_below_what_got_through() {
    resume(
        "unsent 180
         ack 1 -> phase unvalidated
         ack 18 -> pipe_bytes 36000
         ack 1 -> phase validating, pipe_bytes 37000, cwnd 179
         unsent 10000
         loss 50 -> phase safe-retreat, cwnd 18.5
         ack 130 -> phase safe-retreat, pipe_bytes 167000, cwnd 18.5
         recovered
         ack 49 -> phase slow-start, pipe_bytes 216000, cwnd 18.5, ssthresh 108
         ack 18 -> cwnd 36.5
         ack 36 -> cwnd 72.5
         ack 72 -> cwnd 108
         ack 1 -> exit loss, detected 179, ssthresh 108, phase avoidance",
    );
}

/// A mark is congestion too, and the exit is recorded with that reason.
#[test]
fn a_mark_retreats_as_well() {
    resume(
        "ack 1 -> phase unvalidated
         ecn -> phase safe-retreat, cwnd 9, pace host
         recovered
         ack 200 -> phase slow-start, pipe_bytes 218000, cwnd 9, ssthresh 109
         ack 9 -> cwnd 18
         ack 18 -> cwnd 36
         ack 36 -> cwnd 72
         ack 72 -> cwnd 109
         ack 1 -> exit ecn, detected 200, ssthresh 109, phase avoidance",
    );
}

#[test]
fn a_spurious_loss_is_no_retreat() {
    resume(
        "ack 1 -> cwnd 200\nloss 1 -> phase safe-retreat, cwnd 9\nundone -> cwnd 200, phase slow-start, ssthresh -",
    );
}
