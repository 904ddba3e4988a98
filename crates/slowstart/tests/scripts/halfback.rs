//! Halfback: paced, then retransmitted in reverse order.

use crate::language::play;

/// Ten ACKs of a flow of 20 segments retransmit the other ten, the last first, until they meet.
#[test]
fn half_of_a_short_flow_is_retransmitted_in_reverse_order() {
    play(
        "startup halfback
         handshake 100ms
         unsent 20
         established -> cwnd 20, pace 1600000, phase paced, out 20
         +100ms ack 1 -> resend 20, pace host, phase reverse, cwnd 20
         ack 1 -> resend 19
         ack 1 x7 -> resend 12
         ack 1 -> resend 11
         ack 1 -> resend -, phase slow-start
         ack 9 -> out 0",
    );
}

/// The first phase lasts until all of the flow has been sent.
#[test]
fn an_early_ack_changes_nothing() {
    play(
        "startup halfback:limit=20000
         handshake 100ms
         unsent 100
         established -> cwnd 20
         ack 1 -> resend 20, cwnd 20",
    );
}

/// A flow above the limit continues in slow start: 141 of 1000 segments are paced.
#[test]
fn a_long_flow_has_its_first_part_paced() {
    play(
        "startup halfback
         handshake 100ms
         unsent 1000
         established -> cwnd 141, pace 11280000
         +100ms ack 1 x70 -> cwnd 141, resend 72
         ack 1 -> resend -, cwnd 142, phase slow-start",
    );
}

#[test]
fn loss_ends_it() {
    play(
        "startup halfback\nhandshake 100ms\nunsent 100\nestablished -> cwnd 100\nloss 1 -> exit loss, cwnd 50",
    );
}
