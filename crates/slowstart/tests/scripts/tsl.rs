//! TSL: the state after a handshake in which a packet was lost.

use crate::language::play;

/// The six variants.
#[test]
fn a_lost_synack_sets_window_and_threshold() {
    for (i, s) in [(1, 2), (1, 16), (1, 1000), (3, 16), (3, 1000)] {
        play(&format!(
            "startup tsl:iw={i},ssthresh={s}
             mss 1460
             iw 3
             syn lost 1
             established -> cwnd {i}, ssthresh {s}, phase slow-start"
        ));
    }
}

/// (3,2) begins above its threshold: RFC 5681 §3.1 makes that congestion avoidance.
#[test]
fn three_two_begins_in_avoidance() {
    play(
        "startup tsl:iw=3,ssthresh=2
         syn lost 1
         established -> exit ssthresh, cwnd 3, ssthresh 2, phase avoidance
         round -> cwnd 4",
    );
}

#[test]
fn without_a_loss_nothing_changes() {
    play("startup tsl\niw 3\nhandshake 100ms\nestablished -> cwnd 3, ssthresh -\nround -> cwnd 6");
}

/// It grows to the threshold and then exits.
#[test]
fn the_threshold_ends_it() {
    play(
        "startup tsl:iw=1,ssthresh=2
         growth ack
         syn lost 2
         established -> cwnd 1
         ack 1 -> cwnd 2
         ack 1 -> exit ssthresh, ssthresh 2, phase avoidance",
    );
    play(
        "startup tsl
         syn lost 1
         established -> cwnd 3, ssthresh 16
         round -> cwnd 6
         round -> cwnd 12
         round -> exit ssthresh, ssthresh 16, phase avoidance",
    );
}

/// The paper does not distinguish a late SYN-ACK from a lost one; timestamps do.
#[test]
fn a_late_synack_is_a_lost_one_unless_undone() {
    play("startup tsl\nsyn late\nestablished -> cwnd 3, ssthresh 16");
    play("startup tsl:spurious=undo\nsyn late\nestablished -> cwnd 10, ssthresh -");
}

/// Three segments (4380 bytes) need one round trip of data with an initial window of 3, two with one
/// of 1.
#[test]
fn three_segments_take_one_round_trip_or_two() {
    play("startup tsl\nunsent 3\nsyn lost 1\nestablished -> out 3\nround -> out 0");
    play(
        "startup tsl:iw=1,ssthresh=2
         unsent 3
         syn lost 1
         established -> out 1
         ack 1 -> out 2
         ack 2 -> out 0, exit ssthresh",
    );
}
