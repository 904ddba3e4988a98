//! Adaptive start (Wang, Pau, Yamada, Sanadidi, Gerla, INFOCOM 2004).

use crate::language::play;

/// The threshold begins at the initial window and is raised to the estimate times the minimum RTT: 8 Mbit/s
/// for 100 ms are 100 kB. At the threshold growth is that of the avoidance.
#[test]
fn the_threshold_follows_the_estimate_upwards() {
    play(
        "startup adaptive
         +100ms ack 1 -> cwnd 10, ssthresh 10
         +1ms ack 1 -> cwnd 11, ssthresh 100, eligible_bps 8000000
         +10ms ack 1 -> cwnd 12, ssthresh 100, eligible_bps 7314285   # alpha 190/210: (190 * 8 + 20 * 0.8) / 210
         ack 1 x7 -> cwnd 19
         ack 1 x10 -> cwnd 29
         ack 1 x71 -> cwnd 100, phase adaptive
         ack 1 x98 -> cwnd 100            # a hundred acknowledged for one, the first ACK among them
         ack 1 -> cwnd 101, ssthresh 100",
    );
}

/// Westwood's reduction: to the estimated BDP.
#[test]
fn loss_leaves_what_the_estimate_fills() {
    play(
        "startup adaptive
         iw 200
         +100ms ack 1
         +1ms ack 1 -> eligible_bps 8000000, ssthresh 200
         loss 1 -> exit loss, cwnd 100, ssthresh 100",
    );
    play(
        "startup adaptive
         +100ms ack 1
         +1ms ack 1 -> cwnd 11
         loss 1 -> exit loss, cwnd 11, ssthresh 100",
    );
    play("startup adaptive\nloss 1 -> exit loss, cwnd 5, ssthresh 5      # no estimate: the avoidance's");
}

/// As the paper of HyStart has it: no threshold until the estimate exceeds the window in slow start.
#[test]
fn without_a_first_threshold_the_estimate_must_exceed_the_window() {
    play(
        "startup adaptive:begin=infinite
         iw 200
         +100ms ack 1 -> cwnd 201
         +1ms ack 1 -> cwnd 202, eligible_bps 8000000, phase adaptive   # 100 segments are less than the window
         ack 1 x98 -> cwnd 300",
    );
    play(
        "startup adaptive:begin=infinite
         +100ms ack 1 -> cwnd 11
         +1ms ack 1 -> cwnd 12, ssthresh 100",
    );
}
