//! Packet-pair slow start (Hoe, SIGCOMM 1996).

use crate::language::play;

/// One segment of 1000 bytes per millisecond is 8 Mbit/s, a BDP of 100 segments at 100 ms: slow start ends
/// there.
#[test]
fn slow_start_ends_at_what_the_spacing_fills() {
    play(
        "startup packet-pair
         +100ms ack 1 -> cwnd 11, ssthresh -
         +1ms ack 1 x2 -> cwnd 13, ssthresh -
         +1ms ack 1 -> cwnd 14, ssthresh 100, capacity_bps 8000000
         +1ms ack 1 x6 -> cwnd 20
         round -> cwnd 40
         round -> cwnd 80
         ack 1 x20 -> cwnd 100
         ack 1 -> exit estimate, cwnd 100, ssthresh 100, left 100",
    );
}

/// Delayed ACKs arrive half as often and cover twice as much.
#[test]
fn delayed_acks_show_the_same() {
    play(
        "startup packet-pair
         +100ms ack 2
         +2ms ack 2 x3 -> cwnd 18, ssthresh 100",
    );
}

/// There is no filter: the closest pair counts. The HyStart report measured 248 and 308 Mbit/s on 100 Mbit/s.
#[test]
fn the_closest_pair_counts() {
    play(
        "startup packet-pair
         +100ms ack 1
         +1ms ack 1
         +100us ack 1
         +1ms ack 1 -> ssthresh 1000, capacity_bps 80000000",
    );
}

/// Two ACKs at the same time give no estimate, nor does a pair that the sender had spaced as far apart.
#[test]
fn a_pair_must_be_spaced_by_the_path() {
    play(
        "startup packet-pair
         iw 1
         limit application
         +100ms ack 1 x10 -> cwnd 1, ssthresh -     # one at a time, each 100 ms after the other",
    );
    play("startup packet-pair\n+100ms ack 1\nack 1 x9 -> cwnd 20, ssthresh -");
}

/// With a window above the estimate it exits at once, and keeps the window.
#[test]
fn an_estimate_below_the_window_ends_it_at_once() {
    play(
        "startup packet-pair
         iw 150
         +100ms ack 1
         +1ms ack 1 x2
         +1ms ack 1 -> exit estimate, cwnd 153, ssthresh 100",
    );
}
