//! The avoidances: Reno, RFC 5681 §3.1; CUBIC, RFC 9438 as in Linux; DCTCP, RFC 8257; Prague; and ABE, RFC
//! 8511.

use crate::common::{Host, avoidance, facts, startup};
use crate::language::play;
use slowstart::control::Controller;
use slowstart::units::{Bytes, Span};
use slowstart::view::Signal;

const RTT: Span = Span::millis(100);

/// A connection with this window and no history.
fn host(follows: &str, iw: u64) -> Host {
    let mut host = Host::new(startup("standard"), avoidance(follows), facts(1000, iw));
    host.fill();
    host
}

/// Loses one packet. At the end of the recovery the whole old flight has been acknowledged.
fn lose(host: &mut Host) {
    let _ = host.lose(1);
    let flight = host.out();
    for _ in 0..flight {
        let _ = host.ack(1000, Some(RTT));
    }
    let _ = host.recovered(false);
    host.fill();
}

/// Runs round trips with evenly spaced ACKs for this time. Returns the windows after each.
fn rounds(host: &mut Host, time: Span) -> Vec<f64> {
    (0..time.0 / RTT.0)
        .map(|_| {
            host.round(1, RTT, RTT);
            host.cwnd()
        })
        .collect()
}

/// RFC 5681 §3.1: half the window on loss, then one segment per window acknowledged.
#[test]
fn reno_grows_a_segment_a_window() {
    play(
        "avoidance reno
         iw 16
         loss 1 -> exit loss, cwnd 8, ssthresh 8
         ack 1 x16 -> cwnd 8                      # in recovery
         recovered
         ack 1 x7 -> cwnd 8
         ack 1 -> cwnd 9
         ack 1 x8 -> cwnd 9
         ack 1 -> cwnd 10
         ack 10 -> cwnd 11                        # bytes, not ACKs",
    );
}

/// RFC 9438 §4.6 and §4.2: 0.7 of the window on loss, and back at it after K = cbrt(`W_max` * 0.3 / 0.4)
/// seconds.
#[test]
fn cubic_is_back_at_its_maximum_after_k() {
    for w_max in [100.0, 400.0, 1000.0_f64] {
        let mut host = host("cubic", w_max as u64);
        lose(&mut host);
        assert_eq!((host.cwnd(), host.ssthresh()), (0.7 * w_max, Some(0.7 * w_max)));
        let k = (w_max * 0.3 / 0.4).cbrt();
        let windows = rounds(&mut host, Span((k * 1e9) as u64));
        let got = *windows.last().unwrap();
        assert!((got - w_max).abs() <= 1.0, "W_max {w_max}: {got} after K = {k} s");
        // At K / 2 the window is on the curve and not on a line: W(K/2) = W_max - 0.4 (K/2)^3, one round trip
        // ahead.
        let half = windows[windows.len() / 2 - 1];
        let curve = w_max - 0.4 * (k / 2.0).powi(3);
        assert!(half > 0.85 * w_max && (half - curve).abs() <= 0.03 * w_max, "{half} where {curve} was due");
    }
}

/// Without a `W_max`, growth of at least 5 % and at most half per round trip.
#[test]
fn cubic_without_a_maximum_looks_for_one() {
    let mut host = Host::new(startup("hystart:detect=delay"), avoidance("cubic"), facts(1000, 100));
    host.fill();
    host.round(1, RTT, RTT);
    let changes = host.round(1, RTT, RTT * 2);
    assert_eq!(changes.iter().filter(|c| c.exited.is_some()).count(), 1);
    let mut last = host.cwnd();
    for (n, cwnd) in rounds(&mut host, Span::secs(5)).into_iter().enumerate() {
        // A round may have one ACK too few for its last segment.
        assert!(cwnd >= last * 1.05 - 1.0, "round {n}: {last} to {cwnd}");
        assert!(cwnd <= last * 1.5, "round {n}: {last} to {cwnd}");
        last = cwnd;
    }
}

/// RFC 9438 §5.8 (`CA_EVENT_TX_START`): idle time does not count on the curve.
#[test]
fn cubic_stands_still_while_idle() {
    let after = |idle: Span| {
        let mut host = host("cubic", 1000);
        lose(&mut host);
        rounds(&mut host, Span::secs(2));
        let _ = host.idle(idle, None);
        host.fill();
        rounds(&mut host, Span::secs(3))
    };
    let (short, long) = (after(Span::millis(1)), after(Span::secs(20)));
    // The curve is evaluated every 1/32 s, so that a segment may be counted in the next round trip.
    for (a, b) in short.iter().zip(&long) {
        assert!((a - b).abs() <= 1.0, "{short:?}\n{long:?}");
    }
    assert!(short.last() > short.first());
}

/// `CA_EVENT_TX_START`: the time since the last transmission may be longer than that since the ACK with which the
/// curve began. The curve then begins now, not later.
#[test]
fn cubic_does_not_begin_in_the_future() {
    let after = |since_last_sent: Span| {
        let mut host = host("cubic", 1000);
        lose(&mut host);
        rounds(&mut host, RTT);
        let _ = host.idle(Span::ZERO, None);
        let _ = host.control.on_idle(&host.facts, since_last_sent, None);
        host.fill();
        rounds(&mut host, Span::secs(3))
    };
    let (soon, late) = (after(RTT), after(Span::secs(10)));
    assert_eq!(soon, late);
    assert!(late.last() > late.first(), "{late:?}");
}

/// RFC 9438 §4.7: after a second loss at a lower window, `W_max` is 0.85 of that window.
#[test]
fn fast_convergence_aims_lower() {
    for (params, plateau) in [("cubic", 297.0), ("cubic:fast_convergence=off", 350.0_f64)] {
        let mut host = host(params, 500);
        lose(&mut host);
        assert_eq!(host.cwnd(), 350.0);
        lose(&mut host);
        assert_eq!(host.cwnd(), 245.0);
        let k = ((plateau - 245.0) / 0.4).cbrt();
        let got = *rounds(&mut host, Span((k * 1e9) as u64)).last().unwrap();
        assert!((got - plateau).abs() <= 1.0, "{params}: {got} after {k} s");
    }
}

/// A timeout discards `W_max` (`TCP_CA_Loss`): above the threshold the window grows by at least 5 %, where
/// the curve for a `W_max` of 100 would hardly grow from 90 on.
#[test]
fn a_timeout_forgets_the_maximum() {
    let mut host = host("cubic", 100);
    let _ = host.timeout();
    host.fill();
    assert_eq!((host.cwnd(), host.ssthresh()), (1.0, Some(70.0)));
    let windows = rounds(&mut host, Span::secs(4));
    let past: Vec<f64> = windows.into_iter().filter(|w| *w > 70.0).collect();
    assert!(past.len() > 20 && *past.last().unwrap() > 200.0, "{past:?}");
    for pair in past.windows(2) {
        assert!(pair[1] >= pair[0] * 1.05 - 1.0, "{} to {}", pair[0], pair[1]);
    }
}

/// `startup_beta` applies to the loss that ends the startup, `beta` to later ones.
#[test]
fn the_first_loss_may_cut_differently() {
    let mut host = host("cubic:startup_beta=0.5", 100);
    lose(&mut host);
    assert_eq!(host.cwnd(), 50.0);
    lose(&mut host);
    assert_eq!(host.cwnd(), 35.0);
    assert_eq!(host.control.phase(), "avoidance");
}

/// A mark in congestion avoidance; the window after it.
fn mark(host: &mut Host) -> f64 {
    let _ = host.signal(Signal::Ecn);
    let cut = host.cwnd();
    let _ = host.recovered(false);
    cut
}

/// RFC 8511 §3.1: 0.8 (Reno) and 0.85 (CUBIC) of the window for a mark, but not for the one that ends the
/// startup, and not for a loss.
#[test]
fn abe_applies_to_marks_in_congestion_avoidance() {
    for (follows, loss, ecn) in
        [("reno", 0.5, 0.5), ("reno-abe", 0.5, 0.8), ("cubic", 0.7, 0.7), ("cubic-abe", 0.7, 0.85)]
    {
        let mut host = host(follows, 1000);
        let mut window = 1000.0;
        for share in [loss, ecn] {
            window *= share;
            assert!((mark(&mut host) - window).abs() < 1e-6, "{follows}");
        }
        let _ = host.lose(1);
        assert!((host.cwnd() - window * loss).abs() <= 1.0, "{follows}");
    }
}

/// Acknowledges a flight of which this many segments were marked.
fn marked_round(host: &mut Host, marked: u64) {
    host.wait(RTT);
    let flight = host.out() as u64;
    for n in 0..flight {
        let more = Bytes(if n < marked { 1000 } else { 0 });
        host.facts.marked = Some(host.facts.marked.unwrap_or_default() + more);
        let _ = host.ack(1000, Some(RTT));
        host.fill();
    }
}

/// RFC 8257 §3.3: alpha = (1 - g) alpha + g F, with g = 1/16 and alpha = 1 at first; a mark reduces the
/// window by alpha / 2.
#[test]
fn dctcp_responds_to_the_share_of_marks() {
    let mut host = host("dctcp", 100);
    // The first mark halves the window, as alpha is 1.
    assert_eq!(mark(&mut host), 50.0);
    let mut alpha = 1.0;
    // The rest of the first flight; then rounds in which a tenth is marked.
    marked_round(&mut host, 100);
    for _ in 0..60 {
        let flight = host.out() as u64;
        marked_round(&mut host, flight / 10);
        alpha = alpha * 15.0 / 16.0 + 0.1 / 16.0;
    }
    let before = host.cwnd();
    let share = mark(&mut host) / before;
    assert!((share - (1.0 - alpha / 2.0)).abs() < 0.01, "{share}, alpha {alpha}");
    // A loss halves it whatever the share.
    let before = host.cwnd();
    let _ = host.lose(1);
    assert!((host.cwnd() / before - 0.5).abs() < 0.01);
}

/// Prague grows by a segment a round trip for what is not marked. Once it no longer depends on the round
/// trip, by (RTT / target)^2 of that.
#[test]
fn prague_grows_less_on_short_round_trips() {
    let growth = |rtt: u64, transition: u32, marked: u64| {
        let mut host = host(&format!("prague:target=25ms,transition={transition}"), 100);
        assert_eq!(mark(&mut host), 50.0);
        let rtt = Span::millis(rtt);
        let mut round = |marked: u64| {
            let flight = host.out() as u64;
            host.wait(rtt);
            for n in 0..flight {
                let more = Bytes(if n < marked { 1000 } else { 0 });
                host.facts.marked = Some(host.facts.marked.unwrap_or_default() + more);
                let _ = host.ack(1000, Some(rtt));
            }
            host.fill();
            host.cwnd()
        };
        for _ in 0..3 {
            round(0);
        }
        let before = round(0);
        round(marked) - before
    };
    let near = |got: f64, want: f64| assert!((got - want).abs() < 0.05, "{got}, not {want}");
    near(growth(5, 500, 0), 1.0);
    near(growth(5, 1, 0), 0.04);
    near(growth(50, 1, 0), 1.0);
    // Half the flight is marked.
    near(growth(50, 500, 27), 0.5);
}

/// The draft's A in segments, in floating point.
fn a(w: f64, epoch: f64, prior: f64, w_max: f64, rtt: f64) -> f64 {
    let (c, alpha) = (0.4, 3.0 * 0.3 / 1.7);
    let cubic = prior / rtt * (((w_max - epoch) / c).cbrt() + ((w - w_max) / c).cbrt());
    let turn = w.min(prior);
    let slow = (turn - epoch) * (turn + epoch - 1.0) / (2.0 * alpha);
    let fast = if w > prior { (w - prior) * (w + prior - 1.0) / 2.0 } else { 0.0 };
    cubic.min(slow + fast)
}

/// draft-kazuho-ccwg-cuback: the window is w once A(w) has been acknowledged, in small windows by Reno's
/// curve, in large ones by CUBIC's, and with at least two segments for each of growth.
#[test]
fn cuback_follows_the_draft() {
    for prior in [10.0, 40.0, 100.0, 1000.0, 4000.0_f64] {
        let mut host = host("cuback", prior as u64);
        let _ = host.ack(1000, Some(RTT)); // the RTT
        let prior = host.cwnd();
        host.fill();
        lose(&mut host);
        let epoch = (prior * 700.0).round() / 1000.0;
        assert_eq!((host.cwnd(), host.ssthresh()), (epoch, Some(epoch)), "{prior}");
        let (epoch, mut acked) = (epoch.floor(), 0.0);
        let start = host.cwnd();
        let mut due = 0.0;
        while host.cwnd() < 1.2 * prior {
            let before = host.cwnd();
            while host.cwnd() == before {
                let _ = host.ack(1000, Some(RTT));
                host.fill();
                acked += 1.0;
            }
            // D(w) = max(2, A(w + 1) - A(w)) for the window that has grown.
            let w = epoch + (before - start);
            let each = |w| a(w, epoch, prior.floor(), prior.floor(), 0.1);
            due += (each(w + 1.0) - each(w)).max(2.0);
            assert!((acked - due).abs() <= 2.0, "prior {prior}, w {w}: {acked} acknowledged, {due} due");
        }
    }
}

/// After an exit without a reduction `W_max` is the window and only the convex part follows. Idle time
/// changes nothing.
#[test]
fn cuback_has_no_clock() {
    let grown = |pause: Option<Span>| {
        let mut host = Host::new(startup("hystart:detect=delay"), avoidance("cuback"), facts(1000, 1000));
        host.fill();
        host.round(1, RTT, RTT);
        let changes = host.round(1, RTT, RTT * 2);
        assert!(changes.iter().any(|c| c.exited.is_some()));
        if let Some(pause) = pause {
            let _ = host.idle(pause, None);
            host.fill();
        }
        let from = host.cwnd();
        for _ in 0..40 {
            host.round(1, RTT, RTT);
        }
        host.cwnd() - from
    };
    let (steady, paused) = (grown(None), grown(Some(Span::secs(60))));
    assert!(steady > 10.0 && (steady - paused).abs() <= 2.0, "{steady} {paused}");
}

/// Fast convergence (RFC 9438 §4.7): a reduction below the last maximum lowers `W_max` to 0.85 of the window.
#[test]
fn cuback_converges_fast() {
    let mut growth = Vec::new();
    for follows in ["cuback", "cuback:fast_convergence=off"] {
        let mut host = host(follows, 10_000);
        let _ = host.ack(1000, Some(RTT));
        host.fill();
        lose(&mut host);
        lose(&mut host);
        growth.push(rounds(&mut host, Span::secs(4)).pop().unwrap());
    }
    assert!(growth[0] < growth[1], "{growth:?}");
}

/// What is set from text acts as if it had been there from the start, also where something is made from it:
/// CUBIC's Reno-friendly growth from `beta` (a segment a window with 0.5, about half of one with 0.7), what
/// ABBA makes faster, and DCTCP's first share of marks.
#[test]
fn parameters_that_are_set_act() {
    for follows in ["cubic", "cuback", "abba", "abba:over=cuback", "abba-recalibrate"] {
        let colon = if follows.contains(':') { ',' } else { ':' };
        let mut host = host(&format!("{follows}{colon}beta=0.6"), 100);
        lose(&mut host);
        let before = host.cwnd();
        let _ = host.lose(1);
        assert!((host.cwnd() - 0.6 * before).abs() <= 1.0, "{follows}: {} of {before}", host.cwnd());
    }
    let mut host = host("cubic:beta=0.5", 10);
    lose(&mut host);
    let windows = rounds(&mut host, Span::secs(2));
    assert!(windows[19] >= 20.0, "{windows:?}");
    let mut host = Host::new(startup("standard"), avoidance("dctcp:alpha=0"), facts(1000, 100));
    host.fill();
    let before = host.cwnd();
    let _ = host.signal(Signal::Ecn);
    assert_eq!(host.cwnd(), before);
}
