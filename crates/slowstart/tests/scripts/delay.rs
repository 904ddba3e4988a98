//! Delay-based slow start (reference 9 of the `HyStart` paper).

use crate::language::play;

/// Above tau (not at it) limited slow start begins, with the window at that time as its limit: K = int(2 cwnd
/// / max).
#[test]
fn a_rise_beyond_tau_limits_growth() {
    play(
        "startup delay
         iw 100
         round rtt 100ms -> cwnd 200, phase slow-start
         ack 1 rtt 110ms -> cwnd 201, phase slow-start
         ack 1 rtt 110.001ms -> cwnd 202, phase limited, max_ssthresh_bytes 201000
         ack 1 rtt 100ms -> cwnd 202.5
         ack 1 x198 -> cwnd 301.5          # K = 3 from 301.5
         ack 1 -> cwnd 301.833, ssthresh -
         loss 1 -> exit loss",
    );
    play("startup delay:tau=20ms\nround rtt 100ms\nround rtt 120ms -> cwnd 40, phase slow-start");
}
