//! ESS, Enhanced Slow-Start, section 3 of its paper. Packets a, b, c, d are the initial window; e, which the first ACK releases,
//! is selected.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::Limit;

/// Three packets in 3 ms at an RTT of 100 ms: a target of a hundred packets. In the second cycle the rate is
/// the same, and the window has reached the target.
#[test]
fn it_jumps_to_the_trains_rate_times_the_round_trip_and_leaves_there() {
    play(
        "startup ess
         iw 4
         +100ms ack 1 rtt 100ms -> cwnd 5                     # a
         +1ms ack 1 x3 -> cwnd 8, target_bytes NaN            # b, c, d
         +97ms ack 1 -> cwnd 100, target_bytes 100000         # e
         +1ms ack 1 x7 rtt 104ms -> cwnd 107, ssthresh -      # what a, b, c and d released beside e
         +93ms ack 1 rtt 100ms -> exit estimate, cwnd 108, ssthresh 108, detected 107, left 108",
    );
}

/// A window that reaches the target with this ACK is enough (3.4: not greater than the current window).
#[test]
fn it_leaves_at_the_target_and_not_only_beyond_it() {
    // Three packets in 33.336 ms are 8999 bytes in 100 ms; in 33.2 ms they are 9036.
    play(
        "startup ess
         iw 4
         +100ms ack 1 rtt 100ms
         +11.112ms ack 1 x3 -> cwnd 8
         +66.664ms ack 1 rtt 100ms -> exit estimate, cwnd 9",
    );
    play(
        "startup ess
         iw 4
         +100ms ack 1 rtt 100ms
         +11.066666ms ack 1 x3 -> cwnd 8
         +66.8ms ack 1 rtt 100ms -> cwnd 9.036, ssthresh -, target_bytes 9036",
    );
}

/// The selected packet may take twice the minimum RTT, not longer (k = minimum / t2 below a half).
#[test]
fn a_selected_packet_that_takes_more_than_twice_the_least_ends_it() {
    for (wait, end) in [("197ms", "cwnd 200, ssthresh -"), ("197.001ms", "exit delay, cwnd 9, ssthresh 9")] {
        play(&format!(
            "startup ess
             iw 4
             +100ms ack 1 rtt 100ms
             +1ms ack 1 x3
             +{wait} ack 1 rtt 200ms -> {end}"
        ));
    }
}

/// Section 3.2 of the paper: the RTT is that of the selected packet e, from its sending to the ACK that covers it. Here a
/// delayed ACK covers d and e, and its sample, by the timestamp it echoes, is that of d: nearly twice as
/// long.
#[test]
fn the_rtt_of_a_cycle_is_that_of_the_selected_packet() {
    play(
        "startup ess
         iw 4
         +100ms ack 1 rtt 100ms -> cwnd 5                     # a
         +1ms ack 1 x2 -> cwnd 7                              # b, c
         +98.5ms ack 2 rtt 200.5ms -> cwnd 100.5, target_bytes 100500   # d, e: e was sent 100.5 ms ago",
    );
}

/// The selected packet is sent when the host sends it, which may be after the ACK that began the cycle; the
/// time before that is no part of its RTT.
#[test]
fn time_before_the_selected_packet_is_sent_does_not_count() {
    let mut host = Host::new(startup("ess"), avoidance("reno"), facts(1000, 4));
    let rtt = Some(Span::millis(100));
    host.fill();
    for wait in [100, 1, 1, 1] {
        host.wait(Span::millis(wait));
        let _ = host.ack(1000, rtt);
    }
    // 20 ms after the cycle began.
    host.wait(Span::millis(17));
    host.fill();
    host.wait(Span::millis(100));
    let _ = host.ack(1000, rtt);
    // Three packets in 3 ms, for 100 ms and not for 120.
    assert_eq!(host.internal_value("target_bytes"), Some(100_000.0));
}

/// A train of one ACK, or of zero length, gives no estimate: growth continues.
#[test]
fn trains_without_length_are_ignored() {
    play(
        "startup ess
         iw 2
         +100ms ack 1 rtt 100ms -> cwnd 3                     # a
         +1ms ack 1 -> cwnd 4                                 # b
         +99ms ack 1 -> cwnd 5, target_bytes NaN              # the packet that a released",
    );
    play(
        "startup ess
         iw 4
         +100ms ack 1 rtt 100ms
         ack 1 x3 -> cwnd 8
         +100ms ack 1 -> cwnd 9, target_bytes NaN",
    );
}

/// A cycle limited by the application or the peer gives no estimate, and a jump would not be permitted.
#[test]
fn a_cycle_in_which_the_window_was_not_used_is_ignored() {
    for limit in ["application", "peer"] {
        play(&format!(
            "startup ess
             iw 4
             +100ms ack 1 rtt 100ms
             +1ms ack 1 x2
             limit {limit}
             +1ms ack 1 -> cwnd 7
             limit window
             +97ms ack 1 -> cwnd 8, target_bytes NaN
             +1ms ack 1 x6 -> cwnd 14
             +94ms ack 1 -> cwnd 100                          # the next cycle is whole"
        ));
    }
}

/// The other readings of equation (2). Over the whole cycle (t1 = 0, d2 = 0), b, c, d and e in 100 ms are
/// four packets, below the window: it exits at once and never jumps. With t1 = RTT(a) there is a rate only if
/// the selected packet took longer than the first: three packets in 3 ms, over 103 ms.
#[test]
fn the_other_readings_of_equation_2() {
    play(
        "startup ess:estimate=cycle
         iw 4
         +100ms ack 1 rtt 100ms
         +1ms ack 1 x3
         +97ms ack 1 -> exit estimate, cwnd 9",
    );
    play(
        "startup ess:estimate=first-rtt
         iw 4
         +100ms ack 1 rtt 100ms
         +1ms ack 1 x3
         +97ms ack 1 -> cwnd 9, target_bytes NaN",
    );
    play(
        "startup ess:estimate=first-rtt
         iw 4
         +100ms ack 1 rtt 100ms
         +1ms ack 1 x3
         +100ms ack 1 rtt 103ms -> cwnd 103, target_bytes 103000",
    );
}

/// A loss ends it, and the avoidance reduces the window.
#[test]
fn loss_ends_it() {
    play(
        "startup ess
         iw 10
         +100ms ack 1 rtt 100ms -> cwnd 11
         loss 1 -> exit loss, cwnd 5.5, ssthresh 5.5",
    );
}

/// As a burst, or paced at the estimated rate until the exit.
#[test]
fn the_jump_may_be_paced() {
    for (jump, pace) in [("burst", None), ("paced", Some(Pace::Rate(Rate(8_000_000))))] {
        let mut host = Host::new(startup(&format!("ess:jump={jump}")), avoidance("reno"), facts(1000, 4));
        let rtt = Some(Span::millis(100));
        let mut ack = |wait| {
            host.fill();
            host.wait(Span::millis(wait));
            let change = host.ack(1000, rtt);
            (host.state(), change)
        };
        for wait in [100, 1, 1, 1] {
            assert_eq!(ack(wait).0.pace, None);
        }
        assert_eq!(ack(97).0.pace, pace);
        for _ in 0..7 {
            assert_eq!(ack(1).0.pace, pace);
        }
        let (state, change) = ack(93);
        assert!(change.exited.is_some());
        assert_eq!(state.pace, None, "the host's own again");
    }
}

/// When its own pacing rate limits it, the flow does not use the window. With data waiting, its train still
/// counts.
#[test]
fn a_cycle_limited_by_its_own_pacing_counts() {
    for (unsent, leaves) in [(None, false), (Some(Bytes::ZERO), false), (Some(Bytes(1_000_000)), true)] {
        let mut host = Host::new(startup("ess:jump=paced"), avoidance("reno"), facts(1000, 4));
        let rtt = Some(Span::millis(100));
        for wait in [100, 1, 1, 1, 97] {
            host.fill();
            host.wait(Span::millis(wait));
            let _ = host.ack(1000, rtt);
        }
        host.fill();
        host.limit = Limit::Application;
        host.facts.unsent = unsent;
        let mut left = false;
        for wait in [1, 1, 1, 1, 1, 1, 1, 93] {
            host.wait(Span::millis(wait));
            left |= host.ack(1000, rtt).exited.is_some();
        }
        assert_eq!(left, leaves, "{unsent:?}");
    }
}
