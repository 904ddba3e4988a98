//! BBR v1 compared with Linux `tcp_bbr.c`.

use crate::feed::{Feed, MSS, RTT, mbit};
use slowstart::bbr::v1::{Bbr, Params};
use slowstart::control::Controller;
use slowstart::step::Exit;
use slowstart::units::{Bytes, Fixed, Rate, Span};

/// Returns `gain` (in 1/256) times the rate, less 1 %.
fn paced(rate: Rate, gain: u64) -> Rate {
    rate.scale(gain * 99, 256 * 100)
}

/// A connection in Startup at 8 Mbit/s, still growing.
fn growing() -> Feed<Bbr> {
    let mut s = Feed::new(Bbr::new, 1);
    for n in [1, 2, 4, 8] {
        s.round(mbit(n), 10);
    }
    s
}

/// A connection in `ProbeBW` at 8 Mbit/s: the BDP is 100 segments.
fn cruising() -> Feed<Bbr> {
    let mut s = growing();
    s.rounds(3, mbit(8), 200);
    assert_eq!(s.c.phase(), "drain");
    s.round(mbit(8), 90);
    assert_eq!(s.c.phase(), "probe-bw");
    s
}

#[test]
fn the_first_pace_is_2_885_initial_windows_a_round_trip() {
    let s = Feed::new(Bbr::new, 1);
    // 10 segments of 1000 bytes in 100 ms are 800 kbit/s; bbr_high_gain is 256 * 2885 / 1000 + 1 = 739.
    assert_eq!(s.pace(), paced(Rate(800_000), 739));
    assert_eq!((s.c.phase(), s.cwnd()), ("startup", 10));
}

#[test]
fn three_rounds_with_less_than_a_quarter_more_fill_the_path() {
    let mut s = growing();
    assert_eq!(s.pace(), paced(mbit(8), 739));
    s.round(Rate(9_999_999), 100);
    s.round(Rate(9_999_999), 100);
    assert_eq!((s.internal_value("flat_rounds"), s.c.phase()), (2.0, "startup"));
    // Exactly a quarter more: it still grows.
    s.round(mbit(10), 100);
    assert_eq!(s.internal_value("flat_rounds"), 0.0);
    s.rounds(2, mbit(12), 200);
    assert_eq!(s.c.phase(), "startup");
    s.round(mbit(12), 200);
    assert_eq!((s.c.phase(), s.exits.len()), ("drain", 0));
    // bbr_drain_gain is 256 * 1000 / 2885 = 88.
    assert_eq!(s.pace(), paced(mbit(12), 88));
}

/// With xquic's 1.1 a round that grows by a tenth is growth, and one that grows by less counts.
#[test]
fn the_growth_that_counts_is_a_parameter() {
    let xquic = |iw, seed| {
        let mut params = Params::default();
        params.growth = Fixed::milli(1100);
        Bbr::with(iw, seed, params)
    };
    let mut s = Feed::new(xquic, 1);
    for tenth in [80_u64, 88, 97, 107] {
        s.round(Rate(tenth * 100_000), 100);
        assert_eq!((s.internal_value("flat_rounds"), s.c.phase()), (0.0, "startup"));
    }
    s.rounds(3, Rate(11_000_000), 200);
    assert_eq!(s.c.phase(), "drain");
}

#[test]
fn application_limited_rounds_do_not_end_startup() {
    let mut s = growing();
    s.app_limited = true;
    s.rounds(20, mbit(7), 50);
    assert_eq!((s.internal_value("flat_rounds"), s.c.phase()), (0.0, "startup"));
    // They do not lower the bandwidth estimate, but may raise it.
    assert_eq!(s.internal_value("bandwidth_bps"), 8e6);
    s.round(mbit(9), 50);
    assert_eq!(s.internal_value("bandwidth_bps"), 9e6);
}

#[test]
fn drain_ends_when_what_is_in_flight_fits() {
    let mut s = growing();
    s.rounds(3, mbit(8), 300);
    let (seen, window) = (s.f.now, s.c.state().cwnd);
    // bbr_inflight: 8 Mbit/s for 100 ms are 100 segments; with three bursts of one, rounded up to an even
    // number, 104.
    s.round(mbit(8), 105);
    assert_eq!(s.c.phase(), "drain");
    assert_eq!(s.c.state().ssthresh, Some(Bytes(104 * MSS)));
    s.round(mbit(8), 104);
    assert_eq!(s.c.phase(), "probe-bw");
    let exit = s.exits[0];
    assert_eq!((exit.why, exit.detected_at, exit.at), (Exit::RateFlat, seen, s.f.now));
    assert!(exit.detected_cwnd <= window && exit.inflight == Bytes(104 * MSS));
    s.rounds(100, mbit(8), 100);
    assert_eq!(s.exits.len(), 1);
}

/// Returns the gains of `n` round trips, each slightly longer than the minimum, with enough data in flight to
/// end the probe.
fn gains(s: &mut Feed<Bbr>, n: u32) -> Vec<f64> {
    s.rtt = RTT + Span::millis(1);
    s.f.inflight = Bytes(140 * MSS);
    let mut gains = Vec::new();
    for _ in 0..n {
        gains.push(s.internal_value("pacing_gain"));
        assert_eq!(
            s.pace(),
            paced(Rate(s.internal_value("bandwidth_bps") as u64), (gains[gains.len() - 1] * 256.0) as u64)
        );
        s.round(mbit(8), 140);
    }
    gains
}

#[test]
fn the_cycle_has_eight_phases_and_begins_anywhere_but_where_it_drains() {
    let cycle = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let mut begins = [0; 8];
    for seed in 0..200 {
        let mut s = Feed::new(Bbr::new, seed);
        for n in [1, 2, 4, 8, 8, 8, 8] {
            s.round(mbit(n), 90);
        }
        let seen = gains(&mut s, 24);
        let first = (0..8).find(|i| (0..24).all(|k| seen[k] == cycle[(i + k) % 8]));
        begins[first.unwrap_or_else(|| panic!("not the cycle: {seen:?}"))] += 1;
    }
    assert_eq!(begins[1], 0, "{begins:?}");
    assert!([0, 2, 3, 4, 5, 6, 7].iter().all(|i| begins[*i] > 10), "{begins:?}");
}

#[test]
fn a_probe_lasts_until_its_flight_is_there_or_something_is_lost() {
    for lossy in [false, true] {
        let mut s = cruising();
        let _ = gains(&mut s, 8);
        while s.internal_value("pacing_gain") != 1.25 {
            let _ = gains(&mut s, 1);
            assert!(s.f.now.0 < 60_000_000_000, "never up");
        }
        // 1.25 BDP, with the budget and two more segments while probing: 130 segments.
        s.f.inflight = Bytes(129 * MSS);
        s.rounds(5, mbit(8), 129);
        assert_eq!(s.internal_value("pacing_gain"), 1.25);
        if lossy {
            s.lose(1, 1, true);
        } else {
            s.f.inflight = Bytes(130 * MSS);
        }
        s.round(mbit(8), 104);
        assert_eq!(s.internal_value("pacing_gain"), 0.75);
        // Data in flight within the BDP ends the drain at any time.
        s.rtt = Span::millis(100);
        s.round(mbit(8), 104);
        assert_eq!(s.internal_value("pacing_gain"), 1.0);
    }
}

#[test]
fn the_window_is_two_products_and_what_comes_in_clumps() {
    let mut s = cruising();
    s.rounds(40, mbit(8), 100);
    // One ACK per round trip aggregates one BDP: 2 * 100 + 100, and the budget of four; two more while
    // probing.
    let budget = if s.internal_value("pacing_gain") == 1.25 { 6 } else { 4 };
    assert_eq!(s.cwnd(), 300 + budget);
}

#[test]
fn a_bandwidth_is_kept_for_ten_rounds() {
    let mut s = cruising();
    s.rounds(10, mbit(6), 100);
    assert_eq!(s.internal_value("bandwidth_bps"), 8e6);
    s.round(mbit(6), 100);
    assert_eq!(s.internal_value("bandwidth_bps"), 6e6);
}

#[test]
fn after_ten_seconds_four_segments_for_200_ms_show_the_round_trip() {
    let mut s = cruising();
    // The last sample equal to the minimum arrived now.
    s.round(mbit(8), 100);
    let low = s.f.now;
    s.rtt = Span::millis(110);
    while s.f.now.since(low) <= Span::secs(10) {
        assert_eq!(s.c.phase(), "probe-bw", "after {:?}", s.f.now.since(low));
        s.round(mbit(8), 100);
    }
    let before = s.cwnd();
    assert_eq!((s.c.phase(), s.cwnd()), ("probe-rtt", 4));
    assert_eq!(s.internal_value("min_rtt_s"), 0.11);
    // The 200 ms begin when four segments are in flight.
    s.rounds(3, mbit(4), 5);
    s.round(mbit(1), 4);
    s.rtt = Span::millis(90);
    s.rounds(2, mbit(1), 4);
    assert_eq!((s.c.phase(), s.cwnd()), ("probe-rtt", 4));
    s.round(mbit(1), 4);
    assert_eq!(s.c.phase(), "probe-bw");
    assert!(s.cwnd() > 100 && s.cwnd() <= before.max(300), "{} restored to {}", before, s.cwnd());
    // Samples taken meanwhile do not count for the bandwidth.
    s.rounds(6, mbit(8), 100);
    assert_eq!((s.internal_value("bandwidth_bps"), s.internal_value("min_rtt_s")), (8e6, 0.09));
}

#[test]
fn an_idle_period_replaces_probe_rtt_and_sending_resumes_at_the_bandwidth() {
    let mut s = cruising();
    let window = s.cwnd();
    s.idle(Span::secs(11));
    assert_eq!(s.pace(), paced(mbit(8), 256));
    assert_eq!(s.cwnd(), window, "no restarted window");
    s.rtt = Span::millis(120);
    s.round(mbit(8), 100);
    assert_eq!(s.c.phase(), "probe-bw");
    assert_eq!(s.internal_value("min_rtt_s"), 0.12);
}

/// `bbr_cwnd_event`: a sender that always has data, and whose flight one ACK acknowledges whole, was not idle.
#[test]
fn an_empty_flight_of_a_sender_with_data_is_no_idle_period() {
    let mut s = cruising();
    let (pace, window) = (s.pace(), s.cwnd());
    s.f.unsent = Some(Bytes(1_000_000));
    s.rounds(1, mbit(8), 100);
    s.idle(Span::secs(11));
    assert_eq!((s.pace(), s.cwnd()), (pace, window));
    s.rtt = Span::millis(120);
    s.round(mbit(8), 100);
    assert_eq!(s.c.phase(), "probe-rtt");
}

#[test]
fn recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let mut s = cruising();
    s.rounds(40, mbit(8), 100);
    let before = s.cwnd();
    s.lose(5, 2, true);
    s.round(mbit(2), 80);
    // 25 were delivered: the window is the data in flight and as many again.
    assert_eq!(s.cwnd(), 80 + 25);
    // After that round it grows by what is delivered, not more.
    s.round(mbit(2), 80);
    assert_eq!(s.cwnd(), 105 + 25);
    s.recovered(false);
    s.round(mbit(8), 100);
    assert!(s.cwnd() >= before - 2, "{} after {before}", s.cwnd());
}

#[test]
fn a_timeout_leaves_one_segment_and_startup_goes_on() {
    let mut s = growing();
    s.round(mbit(8), 100);
    s.time_out();
    assert_eq!((s.cwnd(), s.c.phase()), (1, "startup"));
    // bbr_set_state: only the search for a full path begins again, not the bandwidth filter.
    s.round(mbit(1), 1);
    assert_eq!((s.internal_value("flat_rounds"), s.internal_value("bandwidth_bps")), (0.0, 8e6));
    assert!(s.exits.is_empty());
    s.recovered(false);
    s.round(mbit(8), 50);
    assert!(s.cwnd() >= 50, "{}", s.cwnd());
}

#[test]
fn a_spurious_loss_restarts_the_search_for_a_full_path() {
    let mut s = growing();
    s.rounds(2, mbit(8), 100);
    s.lose(1, 1, true);
    s.recovered(true);
    s.rounds(3, mbit(8), 100);
    assert_eq!((s.c.phase(), s.internal_value("flat_rounds")), ("startup", 2.0));
    s.round(mbit(8), 100);
    assert_ne!(s.c.phase(), "startup");
}
