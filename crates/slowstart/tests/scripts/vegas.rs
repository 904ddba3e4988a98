//! Vegas' slow start, of 1995 and of Linux.

use crate::language::play;

/// Exponential growth in every other round trip only.
#[test]
fn the_original_doubles_every_other_round_trip() {
    play(
        "startup vegas
         round rtt 100ms -> cwnd 20, phase slow-start
         round -> cwnd 20, phase hold
         round -> cwnd 40, phase slow-start
         round -> cwnd 40, phase hold
         round -> cwnd 80, phase slow-start, ssthresh -",
    );
}

/// Judged at the end of a round without growth: (39 / 100 - 40 / rtt) * 100 segments are queued, rounded to a
/// whole segment; above gamma the window is reduced by an eighth.
#[test]
fn the_original_leaves_with_seven_eighths() {
    for (rtt, end) in [
        ("110ms", "exit delay, cwnd 35, ssthresh 2, detected 40, left 35"),
        ("106.7ms", "exit delay, cwnd 35"),       // 1.51 segments: 2
        ("106.6ms", "cwnd 41, phase slow-start"), // 1.48: 1
        ("100ms", "cwnd 41, phase slow-start"),
    ] {
        play(&format!(
            "startup vegas
             round rtt 100ms
             round -> cwnd 20
             round -> cwnd 40
             ack 1 -> cwnd 40, phase hold
             ack 1 x39 rtt {rtt} -> cwnd 40
             ack 1 rtt {rtt} -> {end}"
        ));
    }
}

/// In Linux every round grows and every round is judged, by its minimum RTT; the window becomes the estimated
/// BDP and one segment.
#[test]
fn linux_leaves_with_what_the_path_held_and_one() {
    for (rtt, end) in [("105ms", "exit delay, cwnd 39.095, ssthresh 39.095"), ("102ms", "cwnd 41")] {
        play(&format!(
            "startup vegas-linux
             round rtt 100ms -> cwnd 20
             ack 1 rtt 100ms -> cwnd 21
             ack 1 x19 rtt {rtt} -> cwnd 40
             ack 1 rtt {rtt} -> {end}"
        ));
    }
    // One sample without a queue prevents the detection.
    play(
        "startup vegas-linux
         round rtt 100ms -> cwnd 20
         ack 1 rtt 100ms
         ack 1 x18 rtt 150ms
         ack 1 rtt 100ms -> cwnd 40
         ack 1 rtt 150ms -> cwnd 41",
    );
}

/// Two samples of a round may both be of delayed ACKs: Linux does not judge.
#[test]
fn linux_needs_three_samples() {
    play(
        "startup vegas-linux
         iw 2
         ack 1 rtt 100ms
         ack 1 rtt 300ms -> cwnd 4
         ack 2 rtt 300ms -> cwnd 6
         ack 2 rtt 300ms -> cwnd 8
         ack 8 rtt 300ms -> cwnd 16",
    );
}
