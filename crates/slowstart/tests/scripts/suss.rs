//! SUSS (Arghavani et al., SIGCOMM 2024).

use crate::language::play;

/// Blue ACKs 0.1 ms apart on a path of 100 ms: rounds two, three and four quadruple, later ones do not.
///
/// The train of round r is normalised to its blue half: 1, 2, 4 ms. Pacing begins after half of the remaining
/// guard time: (50 - 1) / 2 ms after it in round two.
#[test]
fn three_rounds_quadruple() {
    play(
        "startup suss
         +100ms ack 1 rtt 100ms -> cwnd 11, round 2
         +100us ack 1 x8 -> cwnd 19, phase slow-start
         +100us ack 1 -> cwnd 20, phase red, jumps 1, train_s 0.001
         timer -> cwnd 40, phase red
         +50ms ack 1 -> cwnd 41, round 3, phase slow-start
         +100us ack 1 x18 -> cwnd 59
         +100us ack 1 -> cwnd 60, phase red, jumps 2, train_s 0.002
         +100us ack 1 x20 -> cwnd 60               # red: what they earn has been counted
         timer -> cwnd 160
         +50ms ack 1 -> cwnd 161, round 4
         +100us ack 1 x39 -> cwnd 200, phase red, jumps 3, train_s 0.004
         +100us ack 1 x120 -> cwnd 200
         timer -> cwnd 640
         +50ms ack 1 -> cwnd 641, round 5
         +100us ack 1 x79 -> cwnd 720, jumps 3, phase slow-start",
    );
}

/// Round two: a minimum RTT above 10 ms, and a train shorter than a quarter of it.
#[test]
fn short_paths_and_long_trains_do_not_quadruple() {
    for (rtt, apart, phase) in [
        ("10ms", "10us", "slow-start"),
        ("10.1ms", "10us", "red"),
        ("100ms", "2.49ms", "red"),
        ("100ms", "2.5ms", "slow-start"),
    ] {
        play(&format!(
            "startup suss
             +100ms ack 1 rtt {rtt}
             +{apart} ack 1 x9 -> cwnd 20, phase {phase}"
        ));
    }
}

/// Condition 1: trains of 10 and 20 ms, 40^2 / 10 = 160 ms in the next round on a path of 100 ms. Then the
/// train rule: scaled by the quadrupling, the train exceeds half the minimum RTT 26 ms into the round; the
/// limit is the window and the blue ACKs so far.
#[test]
fn a_train_that_would_not_fit_stops_it_and_a_cap_ends_it() {
    play(
        "startup suss
         +100ms ack 1 rtt 100ms
         +1ms ack 1 x9 -> cwnd 20, phase red
         timer -> cwnd 40
         +50ms ack 1 -> cwnd 41, round 3
         +1ms ack 1 x19 -> cwnd 60, phase slow-start, jumps 1
         +1ms ack 1 x20 -> cwnd 80
         +50ms ack 1 -> cwnd 81, round 4
         +1ms ack 1 x52 -> cwnd 133
         +1ms ack 1 -> exit ack-train, cwnd 133, ssthresh 133",
    );
}

/// Condition 2: round three, the minimum RTT found in round one: three times the current RTT is at most 3.25
/// times that.
#[test]
fn a_rise_in_delay_stops_it() {
    for (rtt, phase) in [("108.3ms", "red"), ("108.4ms", "slow-start")] {
        play(&format!(
            "startup suss
             +100ms ack 1 rtt 100ms
             +100us ack 1 x9 -> phase red
             timer
             +50ms ack 1 rtt {rtt} -> round 3
             +100us ack 1 x19 -> phase {phase}"
        ));
    }
}

/// `HyStart`'s delay rule: above an eighth, at the ninth sample. After two quadruplings the window is cut to
/// the data in flight.
#[test]
fn delay_ends_it_as_it_ends_hystart() {
    play(
        "startup suss
         iw 16
         +100ms ack 1 rtt 112.6ms x7
         ack 1 rtt 112.6ms
         ack 1 rtt 112.6ms -> cwnd 25
         ack 1 x7 rtt 100ms -> cwnd 32",
    );
    play(
        "startup suss:rounds=0
         iw 16
         round rtt 100ms -> cwnd 32
         ack 1 x8 rtt 112.6ms -> cwnd 40
         ack 1 rtt 112.6ms -> exit delay, cwnd 40, ssthresh 40",
    );
}
