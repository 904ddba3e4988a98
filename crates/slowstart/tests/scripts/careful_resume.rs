//! Careful Resume: phases and windows of the draft.

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

/// The last ACK of the initial window jumps to half of 400: 200 segments in 100 ms, 16 Mbit/s. 18 are in flight then.
#[test]
fn jumps_to_half_of_what_is_remembered() {
    resume(
        "ack 1 -> cwnd 200, phase unvalidated, pace 16000000, pipe_bytes 18000, out 200
         ack 18 -> cwnd 200, phase unvalidated, pipe_bytes 36000
         ack 1 -> cwnd 199, phase validating, pace host, pipe_bytes 37000
         ack 199 -> phase slow-start, cwnd 398",
    );
}

/// Part 9: never more than half, and nothing that was worth less than four initial windows.
#[test]
fn little_is_not_remembered() {
    play("startup careful-resume\nremembered 39 100ms 3200000\nestablished -> cwnd 10, phase slow-start");
    play("startup careful-resume\nestablished -> cwnd 10, phase slow-start");
}

/// Part 9: a round trip of at most half of the remembered one, or of more than ten times it, is another path.
#[test]
fn another_round_trip_is_another_path() {
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

/// Part 9: the retreat is to half of `PipeSize`; its end sets the threshold to half of what was then seen to fit.
#[test]
fn a_loss_retreats_below_what_got_through() {
    resume(
        "ack 1 -> phase unvalidated
         ack 18 -> pipe_bytes 36000
         ack 1 -> phase validating, pipe_bytes 37000, cwnd 199
         loss 50 -> phase safe-retreat, cwnd 18.5
         ack 150 -> phase safe-retreat, pipe_bytes 187000, cwnd 18.5
         recovered
         ack 49 -> phase slow-start, pipe_bytes 236000, cwnd 18.5, ssthresh 118
         ack 18 -> cwnd 36.5
         ack 36 -> cwnd 72.5
         ack 72 -> cwnd 118
         ack 1 -> exit loss, detected 199, ssthresh 118, phase avoidance",
    );
}

#[test]
fn a_spurious_loss_is_no_retreat() {
    resume(
        "ack 1 -> cwnd 200\nloss 1 -> phase safe-retreat, cwnd 9\nundone -> cwnd 200, phase slow-start, ssthresh -",
    );
}
