//! `StopEG` (Arghavani et al., LCN 2020). With x BDP in flight and a busy bottleneck, the forward share is 1 - 1/(2x).

use crate::common::{Host, avoidance, facts, startup};
use slowstart::step::Exit;
use slowstart::units::Span;
use slowstart::view::Limit;

/// One segment per millisecond through a path of 100 ms, with a constant number of segments in flight.
fn busy(window: u64) -> (Option<Exit>, Option<f64>) {
    let mut host = Host::new(startup("stopeg"), avoidance("reno"), facts(1000, window));
    host.limit = Limit::Peer;
    host.fill();
    host.wait(Span::millis(100));
    let _ = host.ack(1000, Some(Span::millis(100)));
    let mut share = None;
    for _ in 0..8 * window {
        host.fill();
        host.wait(Span::millis(1));
        let change = host.ack(1000, Some(Span::millis(window)));
        if let Some(e) = change.exited {
            return (Some(e.why), share);
        }
        share = host.internal_value("forward_share").filter(|s| !s.is_nan()).or(share);
    }
    (None, share)
}

#[test]
fn the_share_in_saturation_is_1_minus_1_over_2x() {
    for window in [100, 105, 110] {
        let (exit, share) = busy(window);
        let want = 1.0 - 1.0 / (2.0 * window as f64 / 100.0);
        // The data in flight is sampled after an ACK and before the packet that it releases: on average half
        // a segment less.
        assert!((share.unwrap() - want).abs() < 0.01, "{window}: {share:?}, wanted {want}");
        assert_eq!(exit, None);
    }
    // 0.568 is exceeded from x = 1.157 on.
    for window in [118, 130, 200] {
        assert_eq!(busy(window).0, Some(Exit::Estimate), "{window}");
    }
}

/// A window that doubles in bursts is on the forward path half of the time, so it continues.
#[test]
fn bursts_are_as_long_on_one_way_as_on_the_other() {
    let mut host = Host::new(startup("stopeg"), avoidance("reno"), facts(1000, 10));
    host.fill();
    for round in 0..8 {
        host.wait(Span::millis(100));
        for change in host.round(1, Span::ZERO, Span::millis(100)) {
            assert_eq!(change.exited, None, "round {round}");
        }
    }
    assert!((host.cwnd() - 2560.0).abs() < 1e-9);
    let share = host.internal_value("forward_share").unwrap();
    assert!((share - 0.5).abs() < 0.02, "{share}");
}
