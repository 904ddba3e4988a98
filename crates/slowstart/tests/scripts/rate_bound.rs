//! Rate-bound: docs/explain/rate-bound.md. Segments have 1000 bytes, so that one in a millisecond is 8
//! Mbit/s.

use crate::language::play;

/// ACKs that come at one time show no rate: the window doubles.
#[test]
fn without_a_rate_it_is_standard_slow_start() {
    play(
        "startup rate-bound
         +100ms ack 1 rtt 100ms -> cwnd 11
         ack 1 x9 -> cwnd 20, rate_bps NaN
         +100ms ack 1 rtt 100ms -> cwnd 21
         ack 1 x19 -> cwnd 40",
    );
}

/// Ten packets that left at once come a millisecond apart. The eighth gap is believed: the path holds a
/// hundred, the bound is 125, and two and a half flights are the most. One and a half are added for each from
/// there on.
#[test]
fn an_even_train_permits_half_as_much_more_for_each() {
    play(
        "startup rate-bound
         +100ms ack 1 rtt 100ms -> cwnd 11
         +1ms ack 1 x7 -> cwnd 18
         +1ms ack 1 -> cwnd 19.5
         +1ms ack 1 -> cwnd 21",
    );
}

/// ACKs come faster than the path can have delivered: a round grows by 2.5 at most, a quarter more than
/// doubling. The first round has 40 packets, the second 96.
#[test]
fn a_receiver_that_shapes_its_acks_gains_a_quarter_in_a_round() {
    play(
        "startup rate-bound
         iw 40
         +100ms ack 1 rtt 100ms -> cwnd 41
         +1us ack 1 x39 -> cwnd 96
         +1us ack 1 x96 -> cwnd 240",
    );
}

/// A train whose halves have different rates is not believed.
#[test]
fn an_uneven_train_permits_nothing_more() {
    play(
        "startup rate-bound
         +100ms ack 1 rtt 100ms
         +1ms ack 1 x5 -> cwnd 16
         +3ms ack 1 x4 -> cwnd 20",
    );
}

/// A hundred packets come in a hundred milliseconds. From a quarter of the round trip on the train is long:
/// growth ends at a quarter above the flight. The next round's flight is a quarter larger and its rate the
/// same: it leaves with a quarter more than what the rate fills.
const FULL: &str = "startup rate-bound
     iw 100
     +100ms ack 1 rtt 100ms -> cwnd 101
     +1ms ack 1 x24 -> cwnd 125
     +1ms ack 1 x75 -> cwnd 125";

#[test]
fn it_leaves_when_a_larger_flight_brings_no_higher_rate() {
    play(&format!(
        "{FULL}
         +1ms ack 1 rtt 125ms -> rate_bps 8000000
         +1ms ack 1 x124 rtt 125ms -> ssthresh -
         +1ms ack 1 rtt 156ms -> exit rate-flat, cwnd 125, ssthresh 125"
    ));
}

/// A pause of an eighth of the round before its end: the path was not full, whatever the delay is.
#[test]
fn it_goes_on_if_the_acks_paused() {
    for (pause, end) in [("17ms", "exit rate-flat"), ("19ms", "ssthresh -")] {
        play(&format!(
            "{FULL}
             +1ms ack 1 rtt 125ms
             +1ms ack 1 x124 rtt 125ms
             +{pause} ack 1 rtt 175ms -> {end}"
        ));
    }
}

/// The flight is a quarter larger; a rate that is 7.5 % higher is what it needs to go on.
#[test]
fn it_goes_on_when_the_rate_follows() {
    for (gap, end) in [("928us", "ssthresh -"), ("940us", "exit rate-flat")] {
        play(&format!(
            "{FULL}
             +1ms ack 1 rtt 125ms
             +{gap} ack 1 x124 rtt 120ms
             +{gap} ack 1 rtt 120ms -> {end}"
        ));
    }
}

/// The application limited the sender: that round is judged neither for its rate nor for its delay.
#[test]
fn a_round_that_the_application_limited_says_nothing() {
    play(&format!(
        "{FULL}
         +1ms ack 1 rtt 125ms
         limit application
         +1ms ack 1 x124 rtt 125ms -> ssthresh -
         +1ms ack 1 rtt 156ms -> ssthresh -"
    ));
}

/// Ten and twenty packets take 150 ms, and the rate doubles: the delay is not of their making. Where a packet of the round
/// had less it is noise; with `noise=off` it is a queue's.
#[test]
fn delay_with_which_the_rate_still_follows_is_noise() {
    for (params, noise) in [("", "0.05"), (":noise=off", "0")] {
        play(&format!(
            "startup rate-bound{params}
             +100ms ack 1 rtt 100ms
             ack 1 x9
             +150ms ack 1 rtt 150ms -> noise_s 0
             ack 1 x19 rtt 100ms
             +150ms ack 1 rtt 150ms -> noise_s {noise}"
        ));
    }
}

/// As before, and all packets of the round had 150 ms: the path has become longer, and a shorter RTT takes that back.
#[test]
fn delay_that_all_packets_of_such_a_round_have_is_the_paths() {
    play(
        "startup rate-bound
         +100ms ack 1 rtt 100ms
         ack 1 x9
         +150ms ack 1 rtt 150ms -> floor_s 0
         ack 1 x19 rtt 150ms
         +150ms ack 1 rtt 150ms -> noise_s 0, floor_s 0.15
         +1ms ack 1 rtt 130ms -> floor_s 0.13",
    );
}

/// Two lost segments in a round are not a full path; the third ends it, with 0.7 of the most in flight.
#[test]
fn a_third_loss_in_a_round_ends_it() {
    play(
        "startup rate-bound
         iw 20
         +100ms ack 1 rtt 100ms -> cwnd 21
         loss 1 -> ssthresh -
         loss 1 -> ssthresh -
         loss 1 -> exit loss, cwnd 14.7, ssthresh 14.7",
    );
}

/// Where the rate is known and the flight fills three quarters of what it holds, one loss ends it, with 0.7
/// of 125.
#[test]
fn one_loss_ends_it_on_a_full_path() {
    play(&format!("{FULL}\n loss 1 -> exit loss, cwnd 87.5, ssthresh 87.5"));
}

/// A mark ends it like a loss; a timeout leaves the window to RFC 5681.
#[test]
fn marks_and_timeouts_end_it() {
    play(&format!("{FULL}\n ecn -> exit ecn, cwnd 87.5, ssthresh 87.5"));
    play(&format!("{FULL}\n timeout -> exit timeout, cwnd 1"));
}

/// Without the brake it doubles through the round.
#[test]
fn without_the_brake_it_doubles() {
    play(
        "startup rate-bound:brake=off
         iw 100
         +100ms ack 1 rtt 100ms
         +1ms ack 1 x99 -> cwnd 200",
    );
}
