//! Quick-Start: RFC 4782's arithmetic, segments of 960 bytes in packets of 1000.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::control::Controller;
use slowstart::startup::Startup;
use slowstart::units::{SendOrder, Rate, Span};
use slowstart::view::{Congestion, Handshake, Sent, Signal};

/// §4.4: R * T / (MSS + H) = 8 Mbit/s * 100 ms / 1000 B = 100 segments; payload is sent at 960/1000 of the
/// rate.
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

const HALFWAY: &str = "startup quick-start
    mss 960
    iw 10
    handshake 100ms
    granted 8000000
    established -> cwnd 100
    +100ms ack 40 -> cwnd 100, phase validating
    ";

/// §4.6: after a loss or a mark in the granted window, slow start from the initial window, with a threshold
/// of at most half of what was delivered.
#[test]
fn a_loss_of_the_granted_window_returns_to_the_initial_window() {
    for what in ["loss", "ecn"] {
        let event = if what == "loss" { "loss 10" } else { "ecn" };
        play(&format!(
            "{HALFWAY}{event} -> cwnd 10, ssthresh 20, phase slow-start, pace host
             ack 90 -> cwnd 10
             recovered
             ack 5 -> cwnd 15
             ack 5 -> cwnd 20
             ack 1 -> exit {what}, detected 100, left 20, ssthresh 20, phase avoidance"
        ));
    }
    play(&format!("{HALFWAY}timeout -> exit timeout, detected 100, cwnd 1, ssthresh 20"));
}

/// The last packet of the granted window belongs to it, even if a packet sent later reveals the loss.
#[test]
fn the_end_of_the_granted_window_counts() {
    let mut hs = Handshake::new(Some(Span::millis(100)));
    hs.granted = Some(Rate(8_000_000));
    let (mut host, _) = Host::after(startup("quick-start"), avoidance("reno"), facts(960, 10), &hs);
    host.fill();
    for segments in [40, 59] {
        let _ = host.ack(segments * 960, Some(Span::millis(100)));
        host.fill();
    }
    assert_eq!(host.cwnd(), 159.0);
    let lost = host.facts.mss;
    host.facts.inflight -= lost;
    let newest = Sent { mark: SendOrder::new(110 * 960), ..host.oldest() };
    let c = Congestion::new(Signal::Loss, true, newest).losing(lost, 1);
    let change = host.control.on_congestion(&host.facts, &c);
    assert!(change.exited.is_none());
    assert_eq!(host.cwnd(), 10.0);
}

#[test]
fn a_loss_after_the_granted_window_is_an_ordinary_one() {
    play(&format!("{HALFWAY}ack 59 -> cwnd 159, phase validating\nloss 1 -> cwnd 10, phase slow-start"));
    play(&format!(
        "{HALFWAY}ack 60 -> cwnd 160, phase slow-start\nloss 1 -> exit loss, cwnd 80, detected 160"
    ));
}

#[test]
fn a_spurious_loss_restores_the_granted_window() {
    play(&format!("{HALFWAY}loss 10 -> cwnd 10\nundone -> cwnd 100, ssthresh -, phase slow-start"));
}

/// §3.1, §4.1: the option has four bits: 40 kbit/s * 2^N.
#[test]
fn it_asks_in_the_options_steps() {
    assert_eq!(startup("quick-start").requested_rate(), Some(Rate(1_310_720_000)));
    assert_eq!(startup("quick-start:request=1").requested_rate(), Some(Rate(80_000)));
    assert_eq!(startup("standard").requested_rate(), None);
}
