//! Picoquic's `HyStart`: the filter over seven samples, and what it leaves with.

use crate::language::play;

/// With a floor of 100 ms more than 125 ms count, once the least of seven samples exceeds that: after seven
/// such samples the first counts, after thirteen the seventh. It leaves with half the window, after a round
/// trip.
#[test]
fn seven_samples_above_the_floor_by_a_quarter_end_it() {
    play(
        "startup hystart-picoquic
         iw 100
         +2ms ack 1 rtt 100ms x7 -> cwnd 107, rtt_floor_s 0.1, rtt_excess 0
         +2ms ack 1 rtt 126ms x6 -> cwnd 113, rtt_excess 0
         +2ms ack 1 rtt 126ms x6 -> cwnd 119, rtt_excess 6
         +2ms ack 1 rtt 126ms -> cwnd 59.5, ssthresh 59.5, phase recovery
         loss 20 -> cwnd 59.5
         recovered -> cwnd 59.5, phase recovery
         +50ms ack 118 rtt 126ms -> cwnd 59.5, phase recovery
         +50ms ack 1 rtt 126ms -> exit delay, detected 119, left 59.5, phase avoidance",
    );
}

/// A rise of exactly a quarter does not count, a sample within it keeps the count, and one at the floor
/// clears it.
#[test]
fn a_sample_at_the_floor_clears_the_count() {
    play(
        "startup hystart-picoquic
         iw 100
         +2ms ack 1 rtt 100ms x7
         +2ms ack 1 rtt 125ms x20 -> rtt_excess 0
         +2ms ack 1 rtt 126ms x9 -> rtt_excess 3
         +2ms ack 1 rtt 110ms x2 -> rtt_excess 3
         +2ms ack 1 rtt 100ms -> rtt_excess 0",
    );
}

/// Samples within a millisecond of the last are left out.
#[test]
fn samples_are_a_millisecond_apart() {
    play(
        "startup hystart-picoquic
         iw 100
         +2ms ack 1 rtt 100ms x6 -> rtt_floor_s NaN
         +1ms ack 1 rtt 100ms -> rtt_floor_s NaN
         +1us ack 1 rtt 100ms -> rtt_floor_s 0.1",
    );
}

/// Over 100 ms the reduction is half the way to 100 ms of data: at 600 ms to 7/12. Over 610 ms that is the
/// path's RTT.
#[test]
fn long_paths_keep_more() {
    for (rtt, risen, left) in [(100, 126, 60), (200, 251, 90), (600, 751, 70), (1220, 1526, 90)] {
        play(&format!(
            "startup hystart-picoquic
             iw 101
             +20ms ack 1 rtt {rtt}ms x7
             +20ms ack 1 rtt {risen}ms x12 -> cwnd 120
             +20ms ack 1 rtt {risen}ms -> cwnd {left}, phase recovery"
        ));
    }
}

/// A sixteenth for each loss: 6 and 12 % do not end it, 17 % do. What was delivered in between lowers the
/// share.
#[test]
fn the_third_loss_in_a_row_ends_it() {
    play(
        "startup hystart-picoquic
         iw 100
         loss 1 -> cwnd 100
         loss 1 -> cwnd 100, ssthresh -
         loss 1 -> exit loss, cwnd 50, phase avoidance",
    );
    play(
        "startup hystart-picoquic
         iw 100
         loss 2
         ack 20 rtt 100ms -> cwnd 100           # in recovery nothing grows
         loss 2
         recovered -> cwnd 100, phase slow-start",
    );
    play("startup hystart-picoquic\niw 100\necn -> exit ecn, cwnd 50");
}

/// Half of the highest rate times the smoothed RTT is the least window: 100 segments in 10 ms, and 100 ms,
/// are 500.
#[test]
fn the_rate_raises_the_window() {
    play(
        "startup hystart-picoquic
         iw 200
         ack 1 rtt 100ms -> cwnd 201
         +10ms ack 100 rtt 100ms -> cwnd 600",
    );
}
