//! Limited slow start, RFC 3742 §2.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::units::Span;

/// K = int(cwnd / (0.5 `max_ssthresh`)), growth int(MSS / K).
#[test]
fn k_steps_with_the_window() {
    play(
        "startup limited
         iw 99
         ack 1 -> cwnd 100
         ack 1 -> cwnd 101         # at max_ssthresh still one an ACK
         ack 1 -> cwnd 101.5       # 101 to 149: K = 2
         ack 1 x96 -> cwnd 149.5
         ack 1 -> cwnd 150
         ack 1 -> cwnd 150.333     # from 150: K = 3, int(1000 / 3) bytes",
    );
}

/// §2: at most `max_ssthresh` / 2 a round trip above `max_ssthresh`; 5000 segments after log2(100) +
/// (5000 - 100) / 50 = 105 round trips. The whole bytes of int(MSS / K) cost a real segment two more.
#[test]
fn five_thousand_segments_take_105_rounds() {
    for (mss, want) in [(1_000_000, 105), (1460, 107)] {
        let mut host = Host::new(startup("limited"), avoidance("reno"), facts(mss, 1));
        host.fill();
        let mut rounds = 0;
        while host.cwnd() < 5000.0 {
            let before = host.cwnd();
            host.round(1, Span::ZERO, Span::millis(200));
            rounds += 1;
            let most = if before > 100.0 { 50.01 } else { before };
            assert!(host.cwnd() - before <= most, "{before} grew to {}", host.cwnd());
        }
        assert_eq!(rounds, want, "segments of {mss} bytes");
    }
}
