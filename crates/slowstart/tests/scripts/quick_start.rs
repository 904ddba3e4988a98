//! Quick-Start: RFC 4782's arithmetic, segments of 960 bytes in packets of 1000.

use crate::common::startup;
use crate::language::play;
use slowstart::startup::Startup;
use slowstart::units::Rate;

/// §4.4: R * T / (MSS + H) = 8 Mbit/s * 100 ms / 1000 B = 100 segments; payload leaves at 960/1000 of the rate.
#[test]
fn the_grant_fills_a_round_trip() {
    play(
        "startup quick-start
         mss 960
         iw 10
         handshake 100ms
         granted 8000000
         established -> cwnd 100, pace 7680000, phase granted
         +100ms ack 1 -> cwnd 100, pace host, phase validating
         ack 1 -> cwnd 101
         ack 98 -> cwnd 199, phase slow-start",
    );
}

#[test]
fn a_grant_below_the_initial_window_or_none_is_not_used() {
    play("startup quick-start\niw 10\nhandshake 100ms\ngranted 80000\nestablished -> cwnd 10, pace host");
    play("startup quick-start\niw 10\nhandshake 100ms\nestablished -> cwnd 10, pace host");
}

/// §4.6.1: a loss of the granted window goes back to the initial one, the threshold half of what got through at most.
#[test]
fn a_loss_of_the_granted_window_takes_it_all_back() {
    play(
        "startup quick-start
         mss 960
         iw 10
         handshake 100ms
         granted 8000000
         established -> cwnd 100
         +100ms ack 40 -> cwnd 100
         loss 10 -> exit loss, detected 100, left 10, ssthresh 20, phase avoidance",
    );
}

/// §3.1, §4.1: the option has four bits: 40 kbit/s * 2^N.
#[test]
fn it_asks_in_the_options_steps() {
    assert_eq!(startup("quick-start").request(), Some(Rate(1_310_720_000)));
    assert_eq!(startup("quick-start:request=1").request(), Some(Rate(80_000)));
    assert_eq!(startup("standard").request(), None);
}
