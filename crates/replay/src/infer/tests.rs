//! Where the end of slow start is seen in the windows of made round trips.

use super::*;

const MSS: Bytes = Bytes(1000);

/// Round trips of 100 ms with this many segments in flight, reached half-way through.
fn rounds(peaks: &[u64]) -> Inference {
    let mut i = Inference::default();
    for (n, peak) in peaks.iter().enumerate() {
        let start = Instant(n as u64 * 100_000_000);
        i.on_sent(Instant(start.0 + 50_000_000), MSS * *peak, MSS, Span::millis(100), MSS);
        i.on_round(&Round { start, peak: MSS * *peak, limited_by: LimitedBy::Cwnd, recovering: false }, MSS);
    }
    i
}

#[test]
fn an_exit_is_where_the_plateau_was_reached() {
    let found = rounds(&[10, 20, 36, 37, 38]).result(MSS).expect("an exit");
    assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 36, 250));
    assert_eq!(found.evidence, Evidence::GrowthStopped);
}

#[test]
fn slower_growth_is_no_exit() {
    // Conservative slow start, then the plateau.
    let found = rounds(&[10, 20, 40, 50, 62, 78, 79, 80]).result(MSS).expect("an exit");
    assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 78, 550));
    // Limited slow start.
    assert_eq!(rounds(&[100, 150, 200, 250, 300, 350]).result(MSS), Err(NoExit::StillGrowing));
}

#[test]
fn a_pause_in_growth_is_no_exit() {
    assert_eq!(rounds(&[3, 6, 13, 13, 14, 18, 25, 38, 60]).result(MSS), Err(NoExit::StillGrowing));
    // Congestion avoidance adds a segment per round trip, for any number of round trips.
    let mut peaks = vec![5, 10, 20];
    peaks.extend(20..60);
    assert_eq!(rounds(&peaks).result(MSS).map(|f| f.cwnd), Ok(MSS * 20));
}

#[test]
fn a_loss_is_an_exit_unless_it_was_spurious() {
    let mut i = rounds(&[10, 20, 40]);
    i.on_loss(Instant(300_000_000), Evidence::Loss, false);
    assert_eq!(i.clone().result(MSS).map(|f| f.evidence), Ok(Evidence::Loss));
    i.on_undone();
    assert_eq!(i.result(MSS), Err(NoExit::StillGrowing));
}

/// A window that grows from 100 to 1000 segments by one segment per segment acknowledged, then by `slope`
/// percent of one for `segments` more, and then detects a loss.
fn slope_before_a_loss(mut i: Inference, segments: u64, slope: u64) -> Result<ExitEstimate, NoExit> {
    for n in 0..900 + segments {
        let at = Instant(400_000_000 + n * 100_000);
        i.on_ack(at, MSS);
        let window = 100 + n.min(900) + n.saturating_sub(900) * slope / 100;
        i.on_sent(at, MSS * window, MSS, Span::millis(100), MSS);
    }
    i.on_loss(Instant(600_000_000), Evidence::Loss, false);
    i.result(MSS)
}

#[test]
fn an_exit_before_a_loss_is_measured_over_more_than_a_burst() {
    let before = rounds(&[10, 20, 40, 100]);
    let found = slope_before_a_loss(before.clone(), 200, 0).expect("an exit");
    assert_eq!(found.evidence, Evidence::GrowthStopped);
    assert!((480..520).contains(&(found.at.0 / 1_000_000)), "{found:?}");
    // What one burst holds back is no exit, and a quarter is growth (RFC 9406).
    for (segments, slope) in [(40, 0), (200, 25)] {
        let found = slope_before_a_loss(before.clone(), segments, slope);
        assert_eq!(found.map(|f| f.evidence), Ok(Evidence::Loss));
    }
    // If the receive window limited the sender until then, the exit may be hidden by it.
    let mut limited_by = before;
    limited_by.on_round(
        &Round {
            start: Instant(400_000_000),
            peak: MSS * 100,
            limited_by: LimitedBy::ReceiveWindow,
            recovering: false,
        },
        MSS,
    );
    assert_eq!(slope_before_a_loss(limited_by, 200, 0), Err(NoExit::PeerLimited));
}

#[test]
fn an_exit_is_where_the_window_falls_without_loss() {
    // Vegas grows in every second round trip and reduces its window at the exit.
    let found = rounds(&[10, 20, 20, 17, 17, 18]).result(MSS).expect("an exit");
    assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 20, 250));
    // One burst limited_by back is no reduction.
    assert_eq!(rounds(&[10, 20, 20, 17, 20, 20]).result(MSS).map(|f| f.at.0 / 1_000_000), Ok(150));
}

#[test]
fn the_growth_of_a_flat_round_trip_does_not_fill_the_path() {
    let i = rounds(&[10, 20, 40, 42]);
    let ms = |at: Option<Instant>| at.map(|t| t.0 / 1_000_000);
    assert_eq!((ms(i.first(MSS * 40)), ms(i.first_above(MSS * 40))), (Some(250), None));
    assert_eq!(ms(i.first_above(MSS * 30)), Some(250));
}

#[test]
fn one_flat_round_trip_is_enough_before_the_data_ends() {
    let over = |peaks: &[u64]| {
        let mut i = rounds(peaks);
        i.on_round(
            &Round {
                start: Instant(1 << 30),
                peak: MSS * 10,
                limited_by: LimitedBy::Application,
                recovering: false,
            },
            MSS,
        );
        i.result(MSS).map(|f| f.cwnd)
    };
    assert_eq!(over(&[10, 20, 40, 41]), Ok(MSS * 40));
    assert_eq!(over(&[10, 20, 40]), Err(NoExit::StillGrowing));
}

/// A server that answers small requests: of forty round trips the application limits all but four, in
/// which an answer looks like growth that stops.
#[test]
fn a_few_round_trips_of_an_application_limited_sender_show_no_exit() {
    let mut i = Inference::default();
    for (n, peak) in [6; 36].into_iter().chain([6, 19, 20, 20]).enumerate() {
        let (start, peak) = (Instant(n as u64 * 100_000_000), MSS * peak);
        let limited_by = if n < 36 { LimitedBy::Application } else { LimitedBy::Cwnd };
        i.on_sent(start, peak, MSS, Span::millis(100), MSS);
        i.on_round(&Round { start, peak, limited_by, recovering: false }, MSS);
    }
    assert_eq!(i.result(MSS), Err(NoExit::ApplicationLimited));
}

/// Round trips of 100 ms as in `rounds`, some of them limited by the application (`true`).
fn limited(all: &[(u64, bool)]) -> Inference {
    let mut i = Inference::default();
    for (n, (peak, application)) in all.iter().enumerate() {
        let (start, peak) = (Instant(n as u64 * 100_000_000), MSS * *peak);
        let limited_by = if *application { LimitedBy::Application } else { LimitedBy::Cwnd };
        i.on_sent(Instant(start.0 + 50_000_000), peak, MSS, Span::millis(100), MSS);
        i.on_round(&Round { start, peak, limited_by, recovering: false }, MSS);
    }
    i
}

/// One flat round trip before the application's first pause, and then no more than that in flight: an
/// exit, not certain.
#[test]
fn an_exit_before_a_pause_is_confirmed_by_later_data() {
    let first = [(10, false), (20, false), (36, false), (37, false), (20, true)];
    let pauses = |then: &[(u64, bool)]| {
        let mut i = limited(&[&first[..], then, &[(10, true); 9]].concat());
        let exit = i.result(MSS);
        assert!(exit.is_err() || !i.is_certain(exit.expect("an exit"), MSS));
        exit.map(|e| (e.cwnd, e.at.0 / 1_000_000))
    };
    assert_eq!(pauses(&[(5, true), (38, false), (9, true)]), Ok((MSS * 36, 250)));
    // Unconfirmed, and refuted.
    assert_eq!(pauses(&[(5, true), (20, false), (9, true)]), Err(NoExit::ApplicationLimited));
    assert_eq!(pauses(&[(5, true), (38, false), (60, false)]), Err(NoExit::ApplicationLimited));
}

/// The data ends in the second flat round trip, and what is in flight is acknowledged in one more, in
/// which nothing is sent.
#[test]
fn the_rest_of_the_data_is_acknowledged_in_round_trips_that_show_nothing() {
    let mut i = limited(&[(10, false), (20, false), (36, false), (37, false), (37, true)]);
    i.on_round(
        &Round {
            start: Instant(500_000_000),
            peak: MSS * 20,
            limited_by: LimitedBy::Application,
            recovering: false,
        },
        MSS,
    );
    assert_eq!(i.result(MSS).map(|e| e.cwnd), Ok(MSS * 36));
    // Data that is sent later shows a pause, and not the end.
    let mut i = limited(&[(10, false), (20, false), (36, false), (37, false), (37, true), (20, true)]);
    assert_eq!(i.result(MSS), Err(NoExit::ApplicationLimited));
}

/// After a pause the window is smaller than at the exit; this does not show that something else had
/// limited it.
#[test]
fn windows_after_a_pause_do_not_show_what_limited_before() {
    let grows = [(10, false), (20, false), (40, false), (41, false), (42, false), (43, false), (44, false)];
    let mut i = limited(&[&grows[..], &[(30, true)], &[(9, false); 9]].concat());
    assert_eq!(i.result(MSS).map(|e| e.cwnd), Ok(MSS * 40));
    let mut i = limited(&[&grows[..4], &[(41, false); 9]].concat());
    assert_eq!(i.result(MSS), Err(NoExit::LimitedOtherwise));
}

/// SEARCH drains: it sends nothing until its flight has fallen to a smaller window, and goes on in
/// congestion avoidance.
#[test]
fn a_window_that_falls_and_stays_low_is_an_exit() {
    let grows = [(10, false), (20, false), (40, false), (80, false), (130, true), (30, true)];
    let after = |then: &[u64]| {
        let then: Vec<_> = then.iter().map(|n| (*n, false)).collect();
        let mut i = limited(&[&grows[..], &then, &[(9, true); 9]].concat());
        i.result(MSS).map(|e| (e.cwnd, e.at.0 / 1_000_000))
    };
    assert_eq!(after(&[21, 22, 23, 24, 25]), Ok((MSS * 130, 450)));
    // After a pause the window grows again.
    assert_eq!(after(&[10, 20, 40, 80]), Err(NoExit::ApplicationLimited));
}

/// Doubling that stops is a certain exit if congestion avoidance follows. It is not certain after slow
/// growth (as between the ends, where it is known to some segments only), nor when it was seen for a few
/// round trips only.
#[test]
fn an_exit_is_certain_if_avoidance_follows_fast_growth() {
    let avoidance = [36, 36, 37, 37, 38, 38, 39, 39, 40, 40];
    for (first, rest, certain) in [
        ([10, 19, 27, 35], &avoidance[..], true),
        ([10, 19, 27, 35], &avoidance[..5], false),
        ([10, 27, 29, 34], &avoidance[..], false),
    ] {
        let mut i = rounds(&[&first, rest].concat());
        let exit = i.result(MSS).expect("an exit");
        assert_eq!(i.is_certain(exit, MSS), certain, "{first:?} {rest:?}");
    }
}

/// The window doubles until 96 segments are in flight; a loss comes when as much as a third of the window
/// was acknowledged without growth, or none. Where segments are sent one by one, a third is enough to see
/// that growth had stopped before the loss.
#[test]
fn a_loss_is_certain_if_the_window_grew_until_it() {
    for (flat, certain) in [(0, true), (32, false)] {
        let (mut i, mut segments, mut ms) = (Inference::default(), 10, 0);
        i.on_sent(Instant::ZERO, MSS * segments, MSS * segments, Span::millis(100), MSS);
        for n in 0..86 + flat {
            ms += 1;
            i.on_ack(Instant(ms * 1_000_000), MSS);
            let more = 1 + u64::from(n < 86);
            segments += more - 1;
            i.on_sent(Instant(ms * 1_000_000), MSS * segments, MSS * more, Span::millis(100), MSS);
        }
        i.on_loss(Instant((ms + 1) * 1_000_000), Evidence::Loss, false);
        let mut fell = i.clone();
        follow(&mut fell, &[96, 67, 67, 68, 68, 69, 69, 70, 70, 71]);
        let exit = fell.result(MSS).expect("a loss");
        assert_eq!((exit.evidence, fell.is_certain(exit, MSS)), (Evidence::Loss, certain), "{flat}");
        // Nothing shows what the sender made of it, or it is BBR's, which leaves later.
        let probes = [96, 67, 67, 84, 67, 67, 67, 67, 84, 67];
        let cruises = [96, 39, 39, 38, 39, 39, 38, 38, 39, 38, 39, 39];
        for rounds in [&[][..], &probes, &cruises] {
            let mut i = i.clone();
            follow(&mut i, rounds);
            let exit = i.result(MSS).expect("a loss");
            assert!(!i.is_certain(exit, MSS), "{rounds:?}");
        }
    }
}

/// Further round trips with this much in flight.
fn follow(i: &mut Inference, peaks: &[u64]) {
    for (n, peak) in peaks.iter().enumerate() {
        let start = Instant((10 + n as u64) * 100_000_000);
        let limited_by = LimitedBy::Cwnd;
        i.on_round(&Round { start, peak: MSS * *peak, limited_by, recovering: false }, MSS);
    }
}

/// A sender that takes no notice of a loss is in slow start after it.
#[test]
fn a_loss_after_which_the_window_grows_is_no_exit() {
    let mut i = rounds(&[10, 20, 40]);
    i.on_loss(Instant(300_000_000), Evidence::Loss, false);
    follow(&mut i, &[40, 80, 160]);
    assert_eq!(i.result(MSS), Err(NoExit::StillGrowing));
}

/// 33 segments double each 100 ms until 144, then grow by a twentieth of what is acknowledged: the exit
/// is where the slope changes, although 2 % less than the plateau is reached half a round trip later.
#[test]
fn an_exit_into_growing_avoidance_is_where_the_slope_changes() {
    let (mut i, mut ns, mut segments, mut exit) = (Inference::default(), 0.0, 33.0_f64, 0.0);
    for _ in 0..7 {
        let (start, flight) = (Instant(ns as u64), segments as u64);
        for _ in 0..flight {
            ns += 1e8 / flight as f64;
            i.on_ack(Instant(ns as u64), MSS);
            (segments, exit) = if segments < 144.0 { (segments + 1.0, ns) } else { (segments + 0.05, exit) };
            i.on_sent(Instant(ns as u64), MSS * segments as u64, MSS, Span::millis(100), MSS);
        }
        i.on_round(
            &Round { start, peak: MSS * segments as u64, limited_by: LimitedBy::Cwnd, recovering: false },
            MSS,
        );
    }
    let found = i.result(MSS).expect("an exit");
    assert!((found.at.0 as f64 - exit).abs() < 2e7, "{found:?}, expected {exit}");
}

#[test]
fn an_application_limited_sender_has_no_exit() {
    let mut i = Inference::default();
    for n in 0..9 {
        let round =
            Round { start: Instant(n), peak: MSS * 3, limited_by: LimitedBy::Application, recovering: false };
        i.on_round(&round, MSS);
    }
    assert_eq!(i.result(MSS), Err(NoExit::ApplicationLimited));
}
