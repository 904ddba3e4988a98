//! Standard slow start: growth per ACK under each rule.

use crate::language::play;

/// IW * 2^n after n round trips without loss.
#[test]
fn doubles_with_an_ack_for_each_packet() {
    for rule in ["ack", "rfc5681", "abc", "bytes"] {
        play(&format!(
            "growth {rule}
             round -> cwnd 20, ssthresh -
             round -> cwnd 40
             round -> cwnd 80
             round -> cwnd 160, ssthresh -"
        ));
    }
}

/// RFC 9002 §7.3.1: bytes count, however few ACKs cover them.
#[test]
fn doubles_with_delayed_acks_where_bytes_are_counted() {
    play(
        "growth bytes
         round 2 -> cwnd 20
         round 4 -> cwnd 40
         round 40 -> cwnd 80",
    );
}

/// Jacobson 1988 with a receiver that acknowledges every second packet: 1.5 times per round trip.
#[test]
fn grows_by_half_with_delayed_acks_where_acks_are_counted() {
    play(
        "growth ack
         iw 16
         round 2 -> cwnd 24
         round 2 -> cwnd 36
         round 2 -> cwnd 54
         round 2 -> cwnd 81",
    );
}

/// RFC 5681 §3.1, equation 2: cwnd += min(N, SMSS).
#[test]
fn rfc_5681_earns_at_most_a_segment_an_ack() {
    play(
        "growth rfc5681
         ack 4 -> cwnd 11
         ack 1 -> cwnd 12
         ack 500b -> cwnd 12.5
         ack 1500b -> cwnd 13.5",
    );
}

/// RFC 3465 §2.2 with L = 2: an ACK of four packets permits two segments.
#[test]
fn abc_earns_at_most_two_segments_an_ack() {
    play(
        "growth abc
         ack 4 -> cwnd 12
         ack 2 -> cwnd 14
         ack 1 -> cwnd 15
         ack 100b -> cwnd 15.1",
    );
}

/// The parameter replaces the host's rule.
#[test]
fn a_parameter_overrides_the_host() {
    for (rule, cwnd) in [("host", 14), ("ack", 11), ("rfc5681", 11), ("abc", 12), ("bytes", 14)] {
        play(&format!("startup standard:growth={rule}\nack 4 -> cwnd {cwnd}"));
    }
}

/// RFC 5681 §3.1: only new data permits growth.
#[test]
fn a_duplicate_ack_earns_nothing() {
    for rule in ["ack", "rfc5681", "abc", "bytes"] {
        play(&format!("growth {rule}\nduplicate x100 -> cwnd 10"));
    }
}
