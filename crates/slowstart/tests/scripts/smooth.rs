//! Smooth start (Wang et al., reference 11 of the `HyStart` paper).

use crate::language::play;

/// Per ACK, half a segment from half of the threshold on, a quarter from three quarters, an eighth from seven
/// eighths.
#[test]
fn growth_is_halved_on_the_last_half_of_the_way_and_again() {
    play(
        "startup smooth:ssthresh=64000
         iw 31
         ack 1 -> cwnd 32, phase slow-start, ssthresh 64
         ack 1 -> cwnd 32.5, phase smooth, step 1
         ack 1 x31 -> cwnd 48
         ack 1 -> cwnd 48.25, step 2
         ack 1 x31 -> cwnd 56
         ack 1 -> cwnd 56.125, step 3
         ack 1 x63 -> cwnd 64, step 3
         ack 1 -> exit ssthresh, cwnd 64, ssthresh 64, phase avoidance",
    );
}

/// The slow start after a timeout follows the same rule.
#[test]
fn slow_start_after_a_timeout_is_smooth() {
    play(
        "startup smooth:ssthresh=128000
         iw 64
         timeout -> exit timeout, cwnd 1, ssthresh 32
         ack 1 x15 -> cwnd 16
         ack 1 -> cwnd 16.5, phase smooth",
    );
}

/// RFC 2001: 65,535 bytes.
#[test]
fn the_first_threshold_is_65535_bytes() {
    play("startup smooth\nack 1 -> ssthresh 65.535, cwnd 11");
}
