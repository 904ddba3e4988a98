//! BBR v3 compared with draft-ietf-ccwg-bbr, including those of its test cases that need no network.

use crate::feed::{Feed, MSS, RTT, mbit};
use slowstart::bbr::v3::Bbr3;
use slowstart::control::Controller;
use slowstart::step::Exit;
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::Limit;

/// A connection in Startup at 8 Mbit/s, still growing.
fn growing() -> Feed<Bbr3> {
    let mut s = Feed::new(Bbr3::new, 1);
    for n in [1, 2, 4, 8] {
        s.round(mbit(n), 100);
    }
    s
}

/// A connection in `ProbeBW`, going down, at 8 Mbit/s: the BDP is 100 segments.
fn going_down() -> Feed<Bbr3> {
    let mut s = growing();
    s.rounds(3, mbit(8), 200);
    s.rounds(4, mbit(8), 150);
    assert_eq!(s.c.phase(), "probe-bw-down");
    s
}

/// A connection in `ProbeBW`, as soon as the data in flight is within the BDP.
fn cruising() -> Feed<Bbr3> {
    let mut s = growing();
    s.rounds(3, mbit(8), 200);
    assert_eq!(s.c.phase(), "drain");
    s.round(mbit(8), 100);
    assert_eq!(s.c.phase(), "probe-bw-cruise");
    s
}

/// A connection at the beginning of a probe upwards.
fn going_up() -> Feed<Bbr3> {
    let mut s = cruising();
    s.limit = Limit::Pacer;
    until(&mut s, "probe-bw-up", 100);
    s
}

fn until(s: &mut Feed<Bbr3>, phase: &str, inflight: u64) -> u32 {
    let mut rounds = 0;
    while s.c.phase() != phase {
        rounds += 1;
        assert!(rounds < 100, "never {phase}, but {}", s.c.phase());
        // A slightly lower RTT each time, so that `ProbeRTT` is not needed.
        s.rtt -= Span(100);
        s.round(mbit(8), inflight);
    }
    rounds
}

#[test]
fn the_first_pace_is_2_77_initial_windows_a_round_trip() {
    let s = Feed::new(Bbr3::new, 1);
    // 4 ln 2 times 800 kbit/s, without the margin.
    assert_eq!(s.pace(), Rate(800_000 * 2839 / 1024));
    assert!((s.pace().0 as f64 / 800_000.0 - 4.0 * 2_f64.ln()).abs() < 0.001);
}

#[test]
fn the_plateau_is_of_samples_not_of_the_maximum() {
    let mut s = growing();
    assert_eq!(s.pace(), mbit(8).scale(2839 * 99, 102_400));
    s.rounds(2, Rate(9_999_999), 100);
    s.round(mbit(10), 100);
    assert_eq!((s.internal_value("flat_rounds"), s.c.phase()), (0.0, "startup"));
    s.rounds(2, mbit(12), 200);
    assert_eq!(s.c.phase(), "startup");
    s.round(mbit(5), 200);
    assert_eq!(s.c.phase(), "drain");
    assert_eq!(s.pace(), mbit(12).scale(99, 200), "half, less a hundredth");
}

#[test]
fn never_out_of_startup_when_application_limited_without_loss() {
    let mut s = growing();
    s.app_limited = true;
    s.rounds(30, mbit(4), 50);
    assert_eq!(s.c.phase(), "startup");
}

/// A round of recovery that lost `segments` of the 100 in flight, in this number of ranges.
fn lossy_startup(segments: u64, ranges: u32) -> Feed<Bbr3> {
    let mut s = growing();
    s.app_limited = true;
    s.lose(segments, ranges, true);
    s.round(mbit(8), 150);
    s
}

#[test]
fn startup_ends_by_more_than_two_per_cent_in_six_ranges_even_when_application_limited() {
    assert_eq!(lossy_startup(3, 5).c.phase(), "startup", "five ranges");
    assert_eq!(lossy_startup(2, 6).c.phase(), "startup", "two per cent, not more");
    let mut s = lossy_startup(3, 6);
    assert_eq!(s.c.phase(), "drain");
    // max(bdp, inflight_latest): both are 100 segments.
    assert_eq!(s.internal_value("inflight_longterm_bytes"), 100.0 * MSS as f64);
    s.round(mbit(8), 100);
    assert_eq!(s.exits[0].why, Exit::Loss);
}

#[test]
fn losses_in_two_rounds_do_not_add_up() {
    let mut s = growing();
    for first in [true, false] {
        s.lose(2, 3, first);
        s.round(mbit(16), 100);
    }
    assert_eq!(s.c.phase(), "startup");
}

#[test]
fn drain_ends_by_flight_or_after_three_rounds() {
    let mut s = growing();
    s.rounds(3, mbit(8), 200);
    s.round(mbit(8), 101);
    assert_eq!(s.c.phase(), "drain");
    s.round(mbit(8), 100);
    // In Down, and already at the target.
    assert_eq!((s.c.phase(), s.exits[0].why), ("probe-bw-cruise", Exit::RateFlat));

    let mut s = growing();
    s.rounds(3, mbit(8), 200);
    s.rounds(3, mbit(8), 150);
    assert_eq!(s.c.phase(), "drain");
    s.round(mbit(8), 150);
    assert_eq!(s.c.phase(), "probe-bw-down");
    assert_eq!(s.exits[0].at.since(s.exits[0].detected_at), RTT * 4);
}

#[test]
fn the_cycle_goes_down_cruises_refills_for_a_round_and_goes_up() {
    let mut s = going_down();
    s.limit = Limit::Pacer;
    assert_eq!(s.internal_value("pacing_gain"), 922.0 / 1024.0);
    s.round(mbit(8), 101);
    assert_eq!(s.c.phase(), "probe-bw-down");
    s.round(mbit(8), 100);
    assert_eq!((s.c.phase(), s.internal_value("pacing_gain")), ("probe-bw-cruise", 1.0));
    let began = s.f.now;
    until(&mut s, "probe-bw-refill", 100);
    // Two to three seconds, less the three round trips before.
    let waited = s.f.now.since(began);
    assert!((Span::millis(1700)..Span::millis(3000)).contains(&waited), "{waited:?}");
    assert_eq!(s.internal_value("pacing_gain"), 1.0);
    s.round(mbit(8), 100);
    assert_eq!(
        (s.c.phase(), s.internal_value("pacing_gain"), s.internal_value("window_gain")),
        ("probe-bw-up", 1.25, 2.25)
    );
    s.rounds(2, mbit(8), 125);
    assert_eq!(s.c.phase(), "probe-bw-up");
    s.round(mbit(8), 125);
    assert_eq!(s.c.phase(), "probe-bw-down", "three rounds of a plateau");
}

#[test]
fn the_wait_follows_from_the_seed() {
    let wait = |seed| {
        let mut s = Feed::new(Bbr3::new, seed);
        for n in [1, 2, 4, 8, 8, 8, 8] {
            s.round(mbit(n), 90);
        }
        s.rtt = Span::millis(101);
        until(&mut s, "probe-bw-refill", 90)
    };
    let waits: Vec<u32> = (0..50).map(wait).collect();
    assert_eq!(waits, (0..50).map(wait).collect::<Vec<_>>());
    // 2 to 3 s in round trips of 101 ms, rounded up.
    assert!(waits.iter().all(|w| (19..=31).contains(w)), "{waits:?}");
    assert!(waits.iter().max() > waits.iter().min());
}

#[test]
fn a_small_flow_probes_as_often_as_reno_would_be_back() {
    let mut s = Feed::new(Bbr3::new, 1);
    for n in [1, 1, 1, 1] {
        s.round(mbit(n), 10);
    }
    s.round(mbit(1), 5);
    // A BDP of 12 segments: 12 rounds, less the 0 or 1 with which it began.
    let rounds = until_at(&mut s, mbit(1), "probe-bw-refill");
    assert!((10..=12).contains(&rounds), "{rounds}");
}

fn until_at(s: &mut Feed<Bbr3>, rate: Rate, phase: &str) -> u32 {
    let mut rounds = 0;
    while s.c.phase() != phase {
        rounds += 1;
        assert!(rounds < 100, "never {phase}, but {}", s.c.phase());
        s.round(rate, 5);
    }
    rounds
}

#[test]
fn a_probe_that_loses_too_much_bounds_the_flight_and_the_next_is_cautious() {
    let mut s = going_up();
    s.round(mbit(8), 120);
    s.lose(2, 1, true);
    assert_eq!(s.c.phase(), "probe-bw-up", "2 of 120 are not more than 2 %");
    s.lose(1, 1, false);
    assert_eq!(s.c.phase(), "probe-bw-down");
    // max(tx_in_flight, 0.7 of the target).
    assert_eq!(s.internal_value("inflight_longterm_bytes"), 120.0 * MSS as f64);
    s.round(mbit(8), 99);
    s.recovered(false);
    s.round(mbit(8), 99);
    assert_eq!(s.c.phase(), "probe-bw-cruise");
    // 0.85 of the limit while cruising.
    s.round(mbit(8), 99);
    assert_eq!(s.cwnd(), 102);
    until(&mut s, "probe-bw-up", 100);
    assert_eq!(s.cwnd(), 120);
    s.round(mbit(8), 120);
    assert_eq!(s.c.phase(), "probe-bw-down", "no further than where the last went wrong");
    // A round without loss: the probe may continue.
    s.round(mbit(8), 110);
    assert_eq!(s.c.phase(), "probe-bw-refill");
    s.round(mbit(8), 120);
    assert_eq!(s.c.phase(), "probe-bw-up");
    s.limit = Limit::Window;
    let mut bounds = vec![s.internal_value("inflight_longterm_bytes") as u64 / MSS];
    for _ in 0..4 {
        s.round(mbit(8), s.cwnd());
        bounds.push(s.internal_value("inflight_longterm_bytes") as u64 / MSS);
    }
    assert!(bounds.windows(2).all(|b| b[1] >= b[0]) && bounds[4] > bounds[0], "{bounds:?}");
}

#[test]
fn a_lossy_probe_ends_also_when_application_limited() {
    let mut s = going_up();
    s.app_limited = true;
    s.round(mbit(8), 120);
    s.lose(3, 1, true);
    assert_eq!(s.c.phase(), "probe-bw-down");
    // The application limited what was in flight, so no bound follows from it.
    assert!(s.internal_value("inflight_longterm_bytes").is_nan());
}

#[test]
fn between_probes_losses_lower_the_short_term_bounds_to_seven_tenths_a_round_or_what_is_delivered() {
    let mut s = cruising();
    s.limit = Limit::Pacer;
    let window = s.c.state().cwnd.0 as f64;
    s.lose(1, 1, true);
    s.round(mbit(4), 60);
    s.round(mbit(4), 60);
    // The round of the loss delivered at 8 and then 4 Mbit/s; the limit is the larger of that and 0.7 of the
    // previous value.
    assert!(s.internal_value("bandwidth_bps") <= 8e6);
    s.lose(1, 1, false);
    s.round(mbit(4), 60);
    s.round(mbit(4), 60);
    let (bandwidth, flight) =
        (s.internal_value("bandwidth_bps"), s.internal_value("inflight_shortterm_bytes"));
    assert!((bandwidth - 5.6e6).abs() < 1.0, "{bandwidth}");
    assert!(flight < window && flight >= 0.49 * window, "{flight} of {window}");
    // The next probe removes them.
    until(&mut s, "probe-bw-refill", 50);
    assert_eq!(s.internal_value("bandwidth_bps"), 8e6);
    assert!(s.internal_value("inflight_shortterm_bytes").is_nan());
}

#[test]
fn after_five_seconds_half_a_product_for_200_ms_shows_the_round_trip() {
    let mut s = cruising();
    s.rtt = Span::millis(99);
    s.round(mbit(8), 100);
    let low = s.f.now;
    s.rtt = Span::millis(105);
    while s.f.now.since(low) <= Span::secs(5) {
        assert_ne!(s.c.phase(), "probe-rtt", "after {:?}", s.f.now.since(low));
        s.round(mbit(8), 100);
    }
    // 8 Mbit/s for 99 ms are 99 segments.
    assert_eq!((s.c.phase(), s.cwnd()), ("probe-rtt", 49));
    s.round(mbit(8), 49);
    s.rounds(1, mbit(4), 49);
    assert_eq!(s.c.phase(), "probe-rtt");
    s.round(mbit(4), 49);
    assert_eq!(s.c.phase(), "probe-bw-cruise", "210 ms and a round later");
    assert!(s.cwnd() > 100, "{}", s.cwnd());
    assert_eq!((s.internal_value("max_bandwidth_bps"), s.internal_value("min_rtt_s")), (8e6, 0.099));
}

#[test]
fn out_of_a_probe_in_startup_it_goes_back_to_startup() {
    let mut s = growing();
    s.app_limited = true;
    s.rtt = Span::millis(105);
    until(&mut s, "probe-rtt", 20);
    s.rounds(5, mbit(1), 4);
    assert_eq!(s.c.phase(), "startup");
    assert!(s.exits.is_empty());
}

#[test]
fn an_idle_period_replaces_probe_rtt() {
    let mut s = cruising();
    s.idle(Span::secs(6));
    assert_eq!(s.pace(), mbit(8).scale(99, 100));
    s.rtt = Span::millis(120);
    s.round(mbit(8), 100);
    assert_ne!(s.c.phase(), "probe-rtt");
}

/// `C.app_limited`: a sender that always has data, and whose flight one ACK acknowledges whole, was not idle.
#[test]
fn an_empty_flight_of_a_sender_with_data_is_no_idle_period() {
    let mut s = cruising();
    s.f.unsent = Some(Bytes(1_000_000));
    s.round(mbit(8), 100);
    s.idle(Span::secs(6));
    s.rtt = Span::millis(120);
    s.round(mbit(8), 100);
    assert_eq!(s.c.phase(), "probe-rtt");
}

#[test]
fn a_bandwidth_is_kept_for_two_cycles() {
    let mut s = cruising();
    s.limit = Limit::Pacer;
    s.rtt = Span::millis(99);
    let mut cycles = 0;
    while s.internal_value("max_bandwidth_bps") > 6e6 {
        let before = s.c.phase();
        assert!(s.f.now.0 < 60_000_000_000, "{before}, {}", s.internal_value("max_bandwidth_bps"));
        s.rtt -= Span(100);
        s.round(mbit(6), 74);
        cycles += u32::from(before == "probe-bw-refill" && s.c.phase() == "probe-bw-up");
        assert!(cycles < 5);
    }
    // A round after the end of a probe the filter advances: after the second time no sample of 8 Mbit/s is
    // left.
    assert_eq!(cycles, 1, "the first period ended when Startup's did");
}

#[test]
fn a_spurious_loss_restores_startup() {
    let mut s = lossy_startup(3, 6);
    s.round(mbit(8), 90);
    assert_eq!((s.c.phase(), s.exits.len()), ("probe-bw-cruise", 1));
    s.recovered(true);
    assert_eq!((s.c.phase(), s.resumed), ("startup", 1));
    s.app_limited = false;
    s.rounds(4, mbit(8), 100);
    s.round(mbit(8), 90);
    assert_eq!((s.exits.len(), s.exits[1].why), (2, Exit::RateFlat));
}

#[test]
fn a_spurious_loss_repeats_the_probe() {
    let mut s = going_up();
    s.round(mbit(8), 120);
    s.lose(3, 1, true);
    assert_eq!(s.c.phase(), "probe-bw-down");
    s.recovered(true);
    assert_eq!(s.c.phase(), "probe-bw-refill");
    assert!(s.internal_value("inflight_longterm_bytes").is_nan());
}

#[test]
fn a_timeout_leaves_one_segment_and_the_window_comes_back() {
    let mut s = cruising();
    let window = s.cwnd();
    s.time_out();
    assert_eq!(s.cwnd(), 1);
    s.round(mbit(1), 2);
    s.recovered(false);
    assert!(s.cwnd() >= window.min(200), "{}", s.cwnd());
}

#[test]
fn four_segments_are_the_least() {
    let mut s = Feed::new(Bbr3::new, 1);
    s.rounds(6, Rate(40_000), 4);
    s.rounds(20, Rate(40_000), 2);
    assert_eq!(s.c.state().cwnd.max(Bytes(4 * MSS)), s.c.state().cwnd, "a product of half a segment");
}
