//! Scripts of segments against one endpoint, as in packetdrill: loss detection, retransmission, and spurious
//! losses.

#[path = "common/script.rs"]
mod script;

use script::{ISN, LINUX, MSS, PEER_ISN, RTT, Script, established, opened};
use slowstart::avoidance;
use slowstart::control::Checked;
use slowstart::registry;
use slowstart::units::{Bytes, Span};
use slowstart_sim::tcp::endpoint::Endpoint;
use slowstart_sim::tcp::profile::Profile;
use slowstart_sim::tcp::segment::{SYN, Segment};
use slowstart_sim::tcp::sender::Phase;

// Holes.

/// RFC 5681 §3.2 with RFC 6675: the third segment SACKed beyond a hole triggers its retransmission at once.
#[test]
fn the_third_sacked_segment_triggers_the_retransmission() {
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
    // Recovery ends when everything sent before it is acknowledged.
    s.wait(RTT);
    s.ack(11, &[]);
    assert_eq!(s.end.tx.phase(), Phase::Recovery, "segment 11 was sent before recovery too");
    s.ack(12, &[]);
    assert_eq!(s.end.tx.phase(), Phase::Open);
    assert_eq!(s.end.tx.counters.recoveries, 1);
    assert_eq!(s.end.tx.counters.retransmitted, 1);
}

/// RFC 8985 §6.2 step 5: with fewer than three, the retransmission waits for a quarter of the minimum RTT
/// beyond the newest segment's RTT; the timer adds the 2 ms of `TCP_TIMEOUT_MIN`.
#[test]
fn two_sacked_segments_wait_for_the_reordering_window() {
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

/// RFC 8985 §6.2: on a path with observed reordering, three SACKed segments do not indicate a loss; the
/// reordering window does.
#[test]
fn on_a_path_that_reorders_three_sacked_segments_indicate_no_loss() {
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    // Segment 0 arrives late, after 1 and 2.
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

/// An ACK that reports several segments because earlier ACKs were lost does not indicate reordering.
#[test]
fn lost_acks_are_not_taken_for_reordering() {
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    // 0 and 3 are lost, and the ACKs of 1, 2 and 4.
    s.ack(0, &[(4, 6), (1, 3)]);
    let again: Vec<u64> = s.data().into_iter().filter(|n| *n < 10).collect();
    assert_eq!((again, s.end.tx.phase()), (vec![0, 3], Phase::Recovery));
    // The same where the cumulative acknowledgement advances.
    let mut s = established();
    s.write(100);
    s.take();
    s.wait(RTT);
    s.ack(4, &[(5, 8)]);
    assert!(s.data().contains(&4));
    assert_eq!(s.end.tx.phase(), Phase::Recovery);
}

/// RFC 8985 §6.2 step 4: each RTT with a duplicate widens the window by another quarter.
#[test]
fn duplicates_widen_the_reordering_window() {
    let mut s = established();
    s.write(100);
    s.wait(RTT);
    s.ack(0, &[(1, 2)]);
    s.ack(0, &[(1, 3)]);
    s.wait(Span::millis(30));
    // The retransmission was spurious: the first copy was only late.
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

/// Loses the first segment of a window, with an avoidance that halves. Returns how many segments each ACK of
/// another segment releases.
fn reduced(window: u64) -> (Script, Vec<u64>) {
    let mut s = Script::listening(&LINUX);
    let startup = registry::named("standard").expect("a startup").algorithm;
    let reno = (avoidance::REGISTRY.iter().find(|e| e.name == "reno").expect("an avoidance").make)();
    let control = Checked::new(startup.controller(&reno, Bytes(window * MSS), 0));
    s.end = Endpoint::listening(&LINUX, control, ISN);
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

/// RFC 6937 §4, the example of one loss in a window of twenty: one segment for every two delivered, the
/// retransmission first, until ten are in flight; then one for each delivered.
#[test]
fn prr_with_half_the_window_sends_on_every_other_ack() {
    let (mut s, sent) = reduced(20);
    // Two by limited transmit, then the retransmission, then one for every other ACK; the last ACK finds ten
    // in flight.
    assert_eq!(sent, [1, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!((s.cwnd(), s.end.tx.board().packets_inflight()), (10, 10));
    // Everything sent before the loss was detected is delivered: the window is that of the avoidance.
    s.wait(RTT);
    s.ack(22, &[]);
    assert_eq!((s.cwnd(), s.end.tx.board().packets_inflight()), (10, 10));
}

/// The arithmetic of RFC 6937 §3 for every window: while `pipe` is above `ssthresh`, the fraction `ssthresh /
/// RecoverFS` of what was delivered; below it, as much as was delivered, up to `ssthresh`.
#[test]
fn prr_is_that_of_rfc_6937() {
    for window in 8..=64_u64 {
        let ssthresh = window / 2;
        // Limited transmit sent two; the third duplicate indicates the loss.
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
            // The first retransmission is sent at once.
            let sent = if out == 0 { share.max(1) } else { share };
            out += sent;
            pipe += sent;
            plain.push(sent);
        }
        assert_eq!(reduced(window).1, plain, "a window of {window}");
    }
}

/// Where most of a window is lost, packet conservation plus one segment for each ACK that advances: the
/// slow-start reduction bound of RFC 6937.
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
    // The retransmissions arrive one by one, and each releases two more segments, up to the threshold.
    s.wait(RTT);
    s.take();
    s.ack(31, &[(60, 70)]);
    assert_eq!(s.data().len(), 2);
    s.ack(32, &[(60, 70)]);
    assert_eq!(s.data().len(), 2);
}

#[test]
fn a_lost_retransmission_is_detected_with_rack_and_times_out_without() {
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

/// Data that the peer already held has been counted: the ACK that fills the last hole does not grow the
/// window by it (`tcp_cong_avoid`'s `acked_sacked`).
#[test]
fn the_end_of_a_recovery_grows_the_window_only_by_new_deliveries() {
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

/// RFC 8985 §7.2: the probe is sent after twice the smoothed RTT and 2 ms, for a single segment after an
/// additional minimum timeout, in case its ACK is delayed, but never later than the timeout. Then a whole
/// timeout from the probe on, which doubles.
#[test]
fn a_tail_is_probed_and_then_times_out() {
    let mut s = established();
    s.write(3);
    s.wait(Span::secs(2));
    assert_eq!(s.timed(), [(0.0, 0), (0.0, 1), (0.0, 2), (202.0, 2), (502.0, 0), (1102.0, 0)]);
    assert_eq!(s.end.tx.counters.timeouts, 2);
    // One segment: 2 * 100 + 200 ms is more than the timeout of 300 ms.
    let mut s = established();
    s.write(1);
    s.wait(Span::secs(1));
    assert_eq!(s.timed(), [(0.0, 0), (300.0, 0), (600.0, 0)]);
    assert_eq!(s.end.tx.counters.timeouts, 1, "the first was a probe");
}

/// RFC 8985 §7.3: the probe is new data if there is any; it may exceed the congestion window.
#[test]
fn a_probe_is_new_data_if_there_is_any() {
    let mut s = established();
    s.write(11);
    assert_eq!(s.data().len(), 10);
    s.wait(Span::millis(202));
    assert_eq!(s.timed(), [(202.0, 10)]);
}

/// RFC 8985 §7.4.2: an ACK beyond the probed data without a report of a duplicate shows that the probe
/// repaired a loss: the window is reduced once. With that report nothing was lost.
#[test]
fn a_loss_repaired_by_a_probe_reduces_the_window_once() {
    for (duplicate, cwnd) in [(false, 7), (true, 10)] {
        let mut s = established();
        s.write(3);
        s.wait(Span::millis(250));
        assert_eq!(s.data(), [0, 1, 2, 2]);
        s.ack(3, &[]);
        if duplicate {
            s.ack(3, &[(2, 3)]);
        }
        // The loss is detected with the next ACK.
        s.write(1);
        s.wait(RTT);
        s.ack(4, &[]);
        assert_eq!((s.cwnd(), s.end.tx.phase()), (cwnd, Phase::Open), "duplicate={duplicate}");
    }
}

/// `tcp_timeout_mark_lost`: everything the peer does not hold is lost; the window is one segment and grows
/// again.
#[test]
fn a_timeout_restarts_slow_start() {
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
    // The threshold is 0.7 of the former ten segments: growth stops there, or at the window in use.
    assert!((7..=8).contains(&s.cwnd()), "{}", s.cwnd());
}

// Spurious losses.

/// RFC 3708: the peer reports each retransmission as a duplicate, after the recovery has ended.
#[test]
fn duplicates_of_all_retransmissions_undo_the_recovery() {
    let mut s = established();
    s.write(30);
    s.wait(RTT);
    for n in [2, 3, 4] {
        s.ack(0, &[(1, n)]);
    }
    assert_eq!(s.cwnd(), 7);
    // The first copy was only late, but the echo does not show it.
    s.wait(RTT);
    let all = s.end.tx.next() / MSS;
    s.ack(all, &[]);
    // The ACK that ends the recovery may grow the window by one.
    assert!(s.end.tx.phase() == Phase::Open && (7..=8).contains(&s.cwnd()));
    s.ack(all, &[(0, 1)]);
    assert_eq!(s.end.tx.counters.undone, 1);
    assert!((10..=12).contains(&s.cwnd()), "{}", s.cwnd());
}

/// Duplicates of only some retransmissions undo nothing. Where the network made a duplicate, there are more
/// of them than segments were sent again, and which retransmission was unnecessary is unknown
/// (`tcp_dsack_seen`).
#[test]
fn other_duplicates_undo_nothing() {
    for by_network in [false, true] {
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
        if by_network {
            // A segment acknowledged before the recovery began.
            s.ack(all, &[(3, 4)]);
        }
        s.ack(all, &[(10, 11)]);
        assert_eq!((s.end.tx.counters.undone, s.cwnd()), (0, reduced));
        s.ack(all, &[(12, 13)]);
        assert_eq!(s.end.tx.counters.undone, u64::from(!by_network));
        assert_eq!(s.cwnd() >= 20, !by_network);
    }
}

/// RFC 3522: the echo of a timestamp from before the retransmission; within recovery, it takes effect at
/// once.
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

/// Two timeouts; the first copy is lost, the second late: its echo is not from before the first
/// retransmission.
#[test]
fn a_late_retransmission_is_not_the_original() {
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(1);
    s.at_ms(910);
    assert_eq!(s.timed(), [(0.0, 0), (300.0, 0), (900.0, 0)]);
    let second = s.zero + Span::millis(300);
    s.ack_echoing(1, &[], second);
    assert_eq!(s.end.tx.counters.undone, 0);
    // With the echo of the original the timeout is undone.
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(1);
    s.at_ms(910);
    s.ack_original(1, &[]);
    assert_eq!((s.end.tx.counters.undone, s.cwnd() >= 10), (1, true));
}

/// After an outage in which the first of two segments was sent again, its ACK echoes the original: the copy was
/// unnecessary and is no evidence (`tcp_skb_spurious_retrans`) that the segments sent before it are lost. Once
/// marked by time they would not be marked again after the reduction is undone, and a segment that is lost
/// would wait for the next timeout.
#[test]
fn an_unnecessary_retransmission_is_no_evidence_of_loss() {
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(10);
    s.at_ms(600);
    assert_eq!(s.end.tx.counters.timeouts, 1);
    s.take();
    s.ack_original(1, &[]);
    assert_eq!(
        (s.end.tx.phase(), s.end.tx.counters.undone, s.end.tx.counters.recoveries),
        (Phase::Open, 1, 0)
    );
    // Of the rest, one is lost. The others show it.
    s.ack_original(4, &[]);
    s.ack(4, &[(5, 8)]);
    assert_eq!(s.end.tx.phase(), Phase::Recovery);
    assert_eq!(s.data().iter().filter(|n| **n == 4).count(), 1);
}
