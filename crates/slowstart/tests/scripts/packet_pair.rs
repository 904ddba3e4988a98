//! Packet-pair slow start: section 2.5.

use crate::language::play;

/// A segment of 1000 bytes a millisecond is 8 Mbit/s, which fills 100 ms with 100 segments: slow start ends there.
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

/// Delayed ACKs come half as often and cover twice as much.
#[test]
fn delayed_acks_show_the_same() {
    play(
        "startup packet-pair
         +100ms ack 2
         +2ms ack 2 x3 -> cwnd 18, ssthresh 100",
    );
}

/// Nothing is filtered: the closest pair counts. The HyStart paper saw 248 and 308 Mbit/s on 100 Mbit/s.
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

/// A pair that comes at once shows nothing; nor does one that its sender had spread as far.
#[test]
fn a_pair_must_have_been_spread_by_the_path() {
    play(
        "startup packet-pair
         iw 1
         limit application
         +100ms ack 1 x10 -> cwnd 1, ssthresh -     # one at a time, each 100 ms after the other",
    );
    play("startup packet-pair\n+100ms ack 1\nack 1 x9 -> cwnd 20, ssthresh -");
}

/// A window beyond the estimate leaves at once, and keeps what it has.
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
