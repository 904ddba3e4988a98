//! The Startup of quiche's `BBRv2`, where it differs from BBR v3.

use crate::feed::{Feed, MSS, mbit};
use slowstart::bbr::v3::{Bbr3, quiche};
use slowstart::control::Controller;
use slowstart::param::Parameters;
use slowstart::step::Exit;
use slowstart::units::{Bytes, Rate};

fn new(iw: Bytes, seed: u64) -> Bbr3 {
    Bbr3::quiche(iw, seed, quiche::Params::default())
}

/// In Startup at 8 Mbit/s: the BDP is 100 segments.
fn growing(make: fn(Bytes, u64) -> Bbr3) -> Feed<Bbr3> {
    let mut s = Feed::new(make, 1);
    for n in [1, 2, 4, 8] {
        s.round(mbit(n), 100);
    }
    s
}

/// 2.885 initial windows in the handshake's RTT, then one, then 2.77 times the bandwidth less a hundredth.
#[test]
fn the_first_ack_slows_the_pace_to_a_window_a_round_trip() {
    let mut s = Feed::new(new, 1);
    assert!((s.pace().0 as f64 / 800_000.0 - 2.885).abs() < 0.001);
    s.round(Rate(80_000), 10);
    assert_eq!(s.pace(), Rate(800_000));
    s.round(mbit(1), 10);
    assert_eq!(s.pace(), mbit(1).scale(2839 * 99, 102_400));
}

/// Growth is that of the maximum: a lower sample is no growth, and application-limited rounds neither count
/// nor end it.
#[test]
fn three_rounds_in_which_the_maximum_does_not_grow_end_it() {
    let mut s = growing(new);
    s.app_limited = true;
    s.rounds(20, mbit(4), 50);
    assert_eq!((s.c.phase(), s.internal_value("flat_rounds")), ("startup", 0.0));
    s.app_limited = false;
    s.rounds(2, mbit(8), 200);
    s.app_limited = true;
    s.round(mbit(10), 200);
    assert_eq!(
        (s.c.phase(), s.internal_value("flat_rounds")),
        ("startup", 0.0),
        "an application-limited sample grows"
    );
    s.app_limited = false;
    s.rounds(3, mbit(10), 200);
    assert_eq!(s.c.phase(), "drain");
    // 1 / 2.885, less a hundredth.
    assert_eq!(s.pace(), mbit(10).scale(355 * 99, 102_400));
    s.rounds(10, mbit(10), 126);
    assert_eq!(s.c.phase(), "drain", "no limit of three rounds");
    s.round(mbit(10), 125);
    assert_ne!(s.c.phase(), "drain");
    assert_eq!(s.exits[0].why, Exit::RateFlat);
}

/// More than 1.5 % of the flight in eight events of one round without growth.
#[test]
fn eight_events_of_loss_end_it() {
    let mut s = growing(new);
    s.round(mbit(8), 200);
    for n in 0..8 {
        s.lose(1, 1, n == 0);
    }
    s.round(mbit(8), 150);
    assert_eq!(s.c.phase(), "drain");
    assert_eq!(s.internal_value("inflight_longterm_bytes"), 100.0 * MSS as f64);
    s.round(mbit(8), 100);
    assert_eq!(s.exits[0].why, Exit::Loss);
    // Seven events, or growth.
    for (events, rate) in [(7, mbit(8)), (8, mbit(10))] {
        let mut s = growing(new);
        s.round(mbit(8), 200);
        for n in 0..events {
            s.lose(1, 1, n == 0);
        }
        s.round(rate, 150);
        assert_eq!(s.c.phase(), "startup", "{events} events, {rate:?}");
    }
}

/// Off by default. With two rounds: never less than 1.75 BDP in flight, twice in a row, without growth.
#[test]
fn a_persistent_queue_ends_it() {
    fn two(iw: Bytes, seed: u64) -> Bbr3 {
        let mut params = quiche::Params::default();
        params.set("queue_rounds", "2").unwrap();
        Bbr3::quiche(iw, seed, params)
    }
    for (inflight, phase) in [(174, "startup"), (175, "drain")] {
        let mut s = growing(two);
        s.rounds(2, mbit(8), inflight);
        assert_eq!(s.c.phase(), phase, "{inflight}");
    }
    let mut s = growing(new);
    s.rounds(2, mbit(8), 300);
    assert_eq!(s.c.phase(), "startup");
}

/// The window is never below the initial one, and doubles it whatever the bandwidth.
#[test]
fn the_initial_window_is_the_least() {
    let mut s = Feed::new(new, 1);
    s.rounds(3, Rate(80_000), 5);
    assert!((12..=20).contains(&s.cwnd()), "{}", s.cwnd());
    s.rounds(8, Rate(80_000), 1);
    assert!(s.cwnd() >= 10, "{}", s.cwnd());
}
