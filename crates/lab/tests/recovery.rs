//! Scripts of segments against one endpoint, as packetdrill has them: what is lost, what is sent again, and when nothing was
//! lost.

#[path = "common/script.rs"]
mod script;

use script::{ISN, LINUX, MSS, PEER_ISN, RTT, Script, established, opened};
use slowstart::units::{Bytes, Span};
use slowstart_lab::scenario;
use slowstart_lab::tcp::endpoint::Endpoint;
use slowstart_lab::tcp::profile::Profile;
use slowstart_lab::tcp::segment::{SYN, Segment};
use slowstart_lab::tcp::sender::Phase;

// A hole.

/// RFC 5681 §3.2 with RFC 6675: the third segment held beyond a hole sends it again, at once.
#[test]
fn the_third_segment_held_beyond_a_hole_repairs_it() {
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    s.ack(0, &[(1, 2)]);
    s.ack(0, &[(1, 3)]);
    assert_eq!(s.data(), [10, 11], "limited transmit");
    assert_eq!(s.end.tx.phase(), Phase::Disorder);
    s.ack(0, &[(1, 4)]);
    assert_eq!(s.data(), [0]);
    assert_eq!(s.end.tx.phase(), Phase::Recovery);
    assert_eq!(s.cwnd(), 7, "0.7 of ten");
    // All that was sent before the loss was known arrives: it is over.
    s.wait(RTT);
    s.ack(11, &[]);
    assert_eq!(s.end.tx.phase(), Phase::Recovery, "11 was sent before, too");
    s.ack(12, &[]);
    assert_eq!(s.end.tx.phase(), Phase::Open);
    assert_eq!(s.end.tx.counters.recoveries, 1);
    assert_eq!(s.end.tx.counters.retransmitted, 1);
}

/// RFC 8985 §6.2 step 5: fewer than three, and the hole is given a quarter of the least round trip beyond the newest one;
/// the timer adds the 2 ms of `TCP_TIMEOUT_MIN`.
#[test]
fn two_held_segments_wait_for_the_reordering_window() {
    let mut s = established();
    s.write(10);
    s.take();
    s.wait(RTT);
    s.ack(0, &[(1, 2)]);
    s.ack(0, &[(1, 3)]);
    assert_eq!(s.data(), [] as [u64; 0]);
    s.wait(Span::millis(60));
    assert_eq!(s.timed(), [(127.0, 0)]);
    assert_eq!(s.end.tx.phase(), Phase::Recovery);
}

/// RFC 8985 §6.2: on a path that has been seen to reorder, three are no evidence; the window of time is.
#[test]
fn on_a_path_that_reorders_three_are_no_evidence() {
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    // 0 arrives late, after 1 and 2.
    s.ack(0, &[(1, 2)]);
    s.ack(0, &[(1, 3)]);
    s.ack(3, &[]);
    s.take();
    s.ack(3, &[(4, 5)]);
    s.ack(3, &[(4, 6)]);
    s.ack(3, &[(4, 7)]);
    assert!(!s.data().contains(&3));
    assert_eq!(s.end.tx.phase(), Phase::Disorder);
    s.wait(Span::millis(26));
    assert!(!s.data().contains(&3));
    s.wait(Span::millis(1));
    assert!(s.data().contains(&3));
}

/// Acknowledgements are lost as well: what the next one tells of several segments is no sign of their order.
#[test]
fn lost_acknowledgements_do_not_look_like_reordering() {
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    // 0 and 3 are lost, and with them the acknowledgements of 1, 2 and 4.
    s.ack(0, &[(4, 6), (1, 3)]);
    let again: Vec<u64> = s.data().into_iter().filter(|n| *n < 10).collect();
    assert_eq!((again, s.end.tx.phase()), (vec![0, 3], Phase::Recovery));
    // The same where the cumulative part moves.
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    s.ack(4, &[(5, 8)]);
    assert!(s.data().contains(&4));
    assert_eq!(s.end.tx.phase(), Phase::Recovery);
}

/// RFC 8985 §6.2 step 4: each round trip with a duplicate widens the window by another quarter.
#[test]
fn duplicates_widen_the_reordering_window() {
    let mut s = established();
    s.write(100);
    s.wait(RTT);
    s.ack(0, &[(1, 2)]);
    s.ack(0, &[(1, 3)]);
    s.wait(Span::millis(30));
    // Sent again, in vain: the first copy was only late.
    assert!(s.data().contains(&0));
    s.ack_original(3, &[]);
    s.ack(3, &[(0, 1)]);
    s.take();
    let first = s.end.tx.next() / MSS;
    s.wait(RTT);
    s.ack(first, &[]);
    s.take();
    s.wait(RTT);
    s.ack(first, &[(first + 1, first + 2)]);
    s.wait(Span::millis(51));
    assert!(!s.data().contains(&first));
    s.wait(Span::millis(1));
    assert!(s.data().contains(&first), "50 ms of window and 2 of timer");
}

/// The first of a window is lost under a halving avoidance; how many segments each acknowledgement of another lets go.
fn reduced(window: u64) -> (Script, Vec<u64>) {
    let mut s = Script::listening(&LINUX);
    let startup = scenario::algorithm("startup", "standard").expect("a startup").1;
    let reno = scenario::avoidance("avoidance", "reno").expect("an avoidance").1;
    s.end = Endpoint::listening(&LINUX, startup.controller(&reno, Bytes(window * MSS), 0), ISN);
    s.receive(&Segment {
        seq: PEER_ISN,
        flags: SYN,
        mss: 1460,
        scale: Some(14),
        sack_ok: true,
        timestamp: Some((5, 0)),
        ..Segment::default()
    });
    s.wait(RTT);
    s.receive(&Segment { timestamp: Some((6, 1000)), ..s.bare(1) });
    s.take();
    s.write(5 * window);
    assert_eq!(s.data().len() as u64, window);
    s.wait(RTT);
    let mut sent = Vec::new();
    for n in 2..=window {
        s.ack(0, &[(1, n)]);
        sent.push(s.data().len() as u64);
    }
    (s, sent)
}

/// RFC 6937 §4, the example of one loss in a window of twenty: one segment for each two delivered, the retransmission
/// first, until ten are in flight; then one for one.
#[test]
fn rate_reduction_of_a_half_sends_on_every_other_ack() {
    let (mut s, sent) = reduced(20);
    // Limited transmit twice, then the retransmission, then on every other; the last finds ten in flight already.
    assert_eq!(sent, [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!((s.cwnd(), s.end.tx.board().packets_inflight()), (10, 10));
    // All that was sent before the loss was known is delivered: the window is what avoidance made it.
    s.wait(RTT);
    s.ack(22, &[]);
    assert_eq!((s.cwnd(), s.end.tx.board().packets_inflight()), (10, 10));
}

/// RFC 6937 §3's arithmetic, for every window: with `pipe` above `ssthresh` the share `ssthresh / RecoverFS` of what was
/// delivered, below it as much as was delivered, up to `ssthresh`.
#[test]
fn rate_reduction_is_that_of_rfc_6937() {
    for window in 8..=64_u64 {
        let ssthresh = window / 2;
        // Limited transmit sent two; the third duplicate tells of the loss.
        let (mut pipe, mut delivered, mut out) = (window + 2 - 2 - 1, 0_u64, 0_u64);
        let mut plain = vec![1, 1];
        for _ in 4..=window {
            delivered += 1;
            pipe -= 1;
            let share = if pipe > ssthresh {
                (ssthresh * delivered).div_ceil(window) - out
            } else {
                (delivered - out).max(1).min(ssthresh - pipe)
            };
            // The first retransmission leaves at once.
            let sent = if out == 0 { share.max(1) } else { share };
            out += sent;
            pipe += sent;
            plain.push(sent);
        }
        assert_eq!(reduced(window).1, plain, "a window of {window}");
    }
}

/// Where most of a window is lost, conservation and one more for each acknowledgement that makes progress: RFC 6937's
/// slow-start reduction bound.
#[test]
fn after_a_heavy_loss_the_window_is_refilled_as_in_slow_start() {
    let mut s = opened(&LINUX, 40);
    s.wait(RTT);
    // 30 to 59 are lost: all but the last ten of the window.
    for n in 61..=70 {
        s.ack(30, &[(60, n)]);
    }
    let inflight = s.end.tx.board().packets_inflight();
    let sent = s.data();
    assert!(sent.iter().filter(|n| **n < 60).count() >= 8, "{sent:?}");
    assert!(inflight <= 12, "{inflight} in flight of a window of {}", s.cwnd());
    // The retransmissions arrive one by one, and each lets two more go, up to the threshold.
    s.wait(RTT);
    s.take();
    s.ack(31, &[(60, 70)]);
    assert_eq!(s.data().len(), 2);
    s.ack(32, &[(60, 70)]);
    assert_eq!(s.data().len(), 2);
}

#[test]
fn a_lost_retransmission_times_out_without_rack_and_not_with_it() {
    for (rack, times) in [(true, vec![0.0, 100.0]), (false, vec![0.0])] {
        let mut s = Script::established(&Profile { rack, ..LINUX }, RTT);
        s.write(100);
        s.wait(RTT);
        s.take();
        s.zero = s.now;
        for n in 2..=10 {
            s.ack(0, &[(1, n)]);
        }
        let last = s.end.tx.next() / MSS;
        s.wait(RTT);
        s.ack(0, &[(1, last)]);
        s.wait(Span::millis(1));
        let copies: Vec<f64> = s.timed().iter().filter(|t| t.1 == 0).map(|t| t.0).collect();
        assert_eq!(copies, times, "rack={rack}");
    }
}

/// What the peer held already has been counted: filling the last hole earns no window full of segments
/// (`tcp_cong_avoid`'s `acked_sacked`).
#[test]
fn the_end_of_a_recovery_earns_what_it_newly_delivers() {
    let mut s = opened(&LINUX, 160);
    s.wait(RTT);
    for n in 152..=310 {
        s.ack(150, &[(151, n)]);
    }
    let high = s.end.tx.next() / MSS;
    s.wait(RTT);
    s.ack(150, &[(151, high)]);
    let before = s.cwnd();
    assert_eq!(before, 112, "0.7 of 160");
    s.ack(high, &[]);
    assert_eq!((s.end.tx.phase(), s.cwnd()), (Phase::Open, before));
}

// Timeouts and probes.

/// RFC 8985 §7.2: twice the smoothed round trip and 2 ms, and for a single segment the least timeout, in case its
/// acknowledgement is delayed; but never later than the timeout. Then a whole timeout from the probe on, and doubling.
#[test]
fn a_tail_is_probed_and_then_times_out() {
    let mut s = established();
    s.write(3);
    s.wait(Span::secs(2));
    assert_eq!(s.timed(), [(0.0, 0), (0.0, 1), (0.0, 2), (202.0, 2), (502.0, 0), (1102.0, 0)]);
    assert_eq!(s.end.tx.counters.timeouts, 2);
    // One segment: 2 * 100 + 200 ms is beyond the timeout of 300.
    let mut s = established();
    s.write(1);
    s.wait(Span::secs(1));
    assert_eq!(s.timed(), [(0.0, 0), (300.0, 0), (600.0, 0)]);
    assert_eq!(s.end.tx.counters.timeouts, 1, "the first was a probe");
}

/// RFC 8985 §7.3: new data, if there is any, is the better probe; it may exceed the congestion window.
#[test]
fn a_probe_is_new_data_if_there_is_any() {
    let mut s = established();
    s.write(11);
    assert_eq!(s.data().len(), 10);
    s.wait(Span::millis(202));
    assert_eq!(s.timed(), [(202.0, 10)]);
}

/// RFC 8985 §7.4.2: an acknowledgement beyond what was probed, without a report of a duplicate, says that the probe
/// repaired a loss; the window is cut once, and that is all. With that report nothing was lost.
#[test]
fn a_loss_that_a_probe_repaired_cuts_the_window_once() {
    for (duplicate, cwnd) in [(false, 7), (true, 10)] {
        let mut s = established();
        s.write(3);
        s.wait(Span::millis(250));
        assert_eq!(s.data(), [0, 1, 2, 2]);
        s.ack(3, &[]);
        if duplicate {
            s.ack(3, &[(2, 3)]);
        }
        // The loss is taken for granted with the next acknowledgement.
        s.write(1);
        s.wait(RTT);
        s.ack(4, &[]);
        assert_eq!((s.cwnd(), s.end.tx.phase()), (cwnd, Phase::Open), "duplicate={duplicate}");
    }
}

/// `tcp_timeout_mark_lost`: everything not held by the peer is lost, the window is one segment and grows again.
#[test]
fn after_a_timeout_slow_start_again() {
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(10);
    s.wait(Span::millis(310));
    assert_eq!(s.timed().last(), Some(&(300.0, 0)));
    assert_eq!((s.cwnd(), s.end.tx.phase()), (1, Phase::Loss));
    s.at_ms(400);
    s.ack(1, &[]);
    assert_eq!(s.data(), [1, 2]);
    s.at_ms(500);
    s.ack(3, &[]);
    assert_eq!(s.data(), [3, 4, 5, 6]);
    s.at_ms(600);
    s.ack(7, &[]);
    assert_eq!(s.data(), [7, 8, 9]);
    s.at_ms(700);
    s.ack(10, &[]);
    assert_eq!((s.end.tx.phase(), s.end.tx.counters.timeouts), (Phase::Open, 1));
    // The threshold is 0.7 of the ten that were: growth stopped there, or at what was in use.
    assert!((7..=8).contains(&s.cwnd()), "{}", s.cwnd());
}

// Losses that were none.

/// RFC 3708: the peer reports each retransmission as a duplicate, after the episode has ended.
#[test]
fn duplicates_of_all_retransmissions_undo_the_episode() {
    let mut s = established();
    s.write(30);
    s.wait(RTT);
    for n in [2, 3, 4] {
        s.ack(0, &[(1, n)]);
    }
    assert_eq!(s.cwnd(), 7);
    // The first copy was only late, but the echo does not say so.
    s.wait(RTT);
    let all = s.end.tx.next() / MSS;
    s.ack(all, &[]);
    // The acknowledgement that ends it may earn one.
    assert!(s.end.tx.phase() == Phase::Open && (7..=8).contains(&s.cwnd()));
    s.ack(all, &[(0, 1)]);
    assert_eq!(s.end.tx.counters.undone, 1);
    assert!((10..=12).contains(&s.cwnd()), "{}", s.cwnd());
}

/// Duplicates of something else, or of only some, undo nothing.
#[test]
fn other_duplicates_undo_nothing() {
    let mut s = opened(&LINUX, 20);
    s.wait(RTT);
    // 10 and 12 are lost.
    for n in [14, 15, 16] {
        s.ack(10, &[(13, n), (11, 12)]);
    }
    let again: Vec<u64> = s.data().into_iter().filter(|n| *n < 20).collect();
    assert_eq!(again, [10, 12]);
    s.wait(RTT);
    let all = s.end.tx.next() / MSS;
    s.ack(all, &[]);
    assert!((14..=15).contains(&s.cwnd()));
    let reduced = s.cwnd();
    // What was acknowledged before the episode began, and one of the two.
    s.ack(all, &[(3, 4)]);
    s.ack(all, &[(10, 11)]);
    assert_eq!((s.end.tx.counters.undone, s.cwnd()), (0, reduced));
    s.ack(all, &[(12, 13)]);
    assert_eq!(s.end.tx.counters.undone, 1);
    assert!(s.cwnd() >= 20);
}

/// RFC 3522: the echo of a timestamp from before the retransmission; within recovery, as soon as it comes.
#[test]
fn the_originals_timestamp_undoes_a_fast_retransmission() {
    let mut s = established();
    s.write(30);
    s.wait(RTT);
    for n in [2, 3, 4] {
        s.ack(0, &[(1, n)]);
    }
    s.wait(Span::millis(5));
    s.ack_original(4, &[]);
    assert_eq!((s.end.tx.phase(), s.end.tx.counters.undone), (Phase::Open, 1));
    assert!(s.cwnd() >= 10);
}

/// Two timeouts, the first copy lost, the second late: its echo is not from before the first retransmission.
#[test]
fn a_late_retransmission_is_not_the_original() {
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(1);
    s.at_ms(910);
    assert_eq!(s.timed(), [(0.0, 0), (300.0, 0), (900.0, 0)]);
    let second = s.zero + Span::millis(300);
    s.ack_echoing(1, &[], second);
    assert_eq!(s.end.tx.counters.undone, 0);
    // And if it is, it is.
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(1);
    s.at_ms(910);
    s.ack_original(1, &[]);
    assert_eq!((s.end.tx.counters.undone, s.cwnd() >= 10), (1, true));
}
