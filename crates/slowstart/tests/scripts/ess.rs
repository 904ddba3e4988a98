//! ESS: section 1.1 and part 9. Packets a, b, c, d are the initial window; e, which the first ACK releases, is selected.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::Limit;

/// Three packets in 3 ms, a round trip of 100 ms: a hundred packets. In the second cycle the rate is the same, and the
/// window there.
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

/// A window that has grown to the target by this very ACK is enough (3.4: not greater than the current window).
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

/// The selected packet may take twice the least round trip, no longer (k = least / t2 below a half).
#[test]
fn a_selected_packet_that_takes_more_than_twice_the_least_ends_it() {
    for (rtt, end) in [("200ms", "cwnd 200, ssthresh -"), ("200.001ms", "exit delay, cwnd 9, ssthresh 9")] {
        play(&format!(
            "startup ess
             iw 4
             +100ms ack 1 rtt 100ms
             +1ms ack 1 x3
             +197ms ack 1 rtt {rtt} -> {end}"
        ));
    }
}

/// A train of one ACK says nothing, nor does one of no length: growth goes on as ever.
#[test]
fn trains_without_length_are_passed_over() {
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

/// What the application or the peer held back does not tell of the path, and a jump would not be earned.
#[test]
fn a_cycle_in_which_the_window_was_not_needed_is_passed_over() {
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

/// The other readings of equation (2). Over the whole cycle (t1 = 0, d2 = 0) b, c, d and e in 100 ms are four packets,
/// which the window has passed: it leaves at once, and never jumps. With t1 = RTT(a) there is a rate only where the
/// selected packet took longer than the first: three packets in 3 ms, over 103 ms.
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
         +97ms ack 1 rtt 103ms -> cwnd 103, target_bytes 103000",
    );
}

/// Loss ends it, and the avoidance makes the cut.
#[test]
fn loss_ends_it() {
    play(
        "startup ess
         iw 10
         +100ms ack 1 rtt 100ms -> cwnd 11
         loss 1 -> exit loss, cwnd 5.5, ssthresh 5.5",
    );
}

/// A burst, or paced at the rate found, for as long as it lasts.
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

/// Paced at its own rate, the flow no longer needs its window; with data waiting, its train tells of the path all the
/// same.
#[test]
fn what_its_own_rate_held_back_counts() {
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
