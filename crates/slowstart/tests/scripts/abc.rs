//! Appropriate byte counting, RFC 3465 §2.2 and §2.3.

use crate::language::play;

/// §2.2: min(bytes, L * SMSS), independent of the host's rule; an ACK of four segments permits two.
#[test]
fn a_stretch_ack_earns_two_segments() {
    for growth in ["ack", "rfc5681", "bytes"] {
        play(&format!(
            "startup abc
             growth {growth}
             ack 4 -> cwnd 12
             ack 2 -> cwnd 14
             ack 1 -> cwnd 15
             ack 500b -> cwnd 15.5"
        ));
    }
    play("startup abc:limit=1\nack 4 -> cwnd 11");
}

/// §2.3: L is one in the slow start after a timeout.
#[test]
fn after_a_timeout_an_ack_earns_one_segment() {
    play(
        "startup abc
         iw 32
         timeout -> exit timeout, cwnd 1, ssthresh 16
         ack 1 -> cwnd 2
         ack 2 -> cwnd 3
         ack 3 -> cwnd 4
         idle 1s rto 300ms -> cwnd 4
         ack 2 -> cwnd 5",
    );
}
