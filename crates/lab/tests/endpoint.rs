//! Scripts of segments against one endpoint, as packetdrill has them: handshake, loss recovery, windows, close.
//!
//! Both ends' sequence numbers wrap within the first few segments of every script.

#[path = "common/script.rs"]
mod script;

use script::{BEGIN, ISN, PEER_ISN, Script, control};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_lab::scenario;
use slowstart_lab::tcp::endpoint::{Endpoint, State};
use slowstart_lab::tcp::profile::Profile;
use slowstart_lab::tcp::segment::{ACK, FIN, PSH, RST, SYN, Segment};
use slowstart_lab::tcp::sender::Phase;

const RTT: Span = Span::millis(100);
const MSS: u64 = 1448;

/// Linux without pacing, which would only spread what these scripts look at, and without waiting for bursts to grow, which
/// acknowledgements of one moment would all do.
const LINUX: Profile = Profile { pacing: false, tso_defer: false, ..Profile::LINUX_6_18 };

fn established() -> Script {
    Script::established(&LINUX, RTT)
}

/// Flights of ten, twenty, forty ... segments, each acknowledged after a round trip: a window of so many, all of it in
/// flight, the first of which has number `window - 10`.
fn opened(profile: &Profile, window: u64) -> Script {
    let mut s = Script::established(profile, RTT);
    s.write(4 * window);
    let mut acked = 0;
    while s.cwnd() < window {
        s.wait(RTT);
        acked += s.cwnd();
        s.ack(acked, &[]);
    }
    assert_eq!((s.cwnd(), acked), (window, window - 10));
    s.take();
    s
}

// The handshake.

#[test]
fn a_listener_answers_with_its_options() {
    let mut s = Script::listening(&LINUX);
    let syn = Segment {
        seq: PEER_ISN,
        flags: SYN,
        window: 60_000,
        mss: 1460,
        scale: Some(7),
        sack_ok: true,
        timestamp: Some((77, 0)),
        ..Segment::default()
    };
    s.receive(&syn);
    assert_eq!(s.end.state(), State::SynReceived);
    let left = s.take();
    assert_eq!(left.len(), 1);
    let synack = Segment {
        seq: ISN,
        ack: PEER_ISN.wrapping_add(1),
        flags: SYN | ACK,
        // tcp_rmem[1], halved, in whole segments.
        window: 64_240,
        // What a packet of 1500 bytes holds without the timestamp.
        mss: 1460,
        // 256 MB >> 13 is the first to fit 16 bits.
        scale: Some(13),
        sack_ok: true,
        timestamp: Some((1000, 77)),
        ..Segment::default()
    };
    assert_eq!(left[0].segment, synack);
    // A second copy of the SYN is answered again; what does not acknowledge the SYN-ACK is not.
    s.receive(&syn);
    assert_eq!(s.take().len(), 1);
    s.receive(&Segment { ack: ISN, ..s.bare(0) });
    assert_eq!((s.end.state(), s.take().len()), (State::SynReceived, 0));
    // The window is scaled from now on.
    s.receive(&Segment { window: 10, ..s.bare(1) });
    assert_eq!(s.end.state(), State::Established);
    s.write(5);
    assert_eq!(s.data(), Vec::<u64>::new(), "10 << 7 is less than a segment");
}

#[test]
fn a_caller_sends_its_options_and_then_data() {
    let mut end = Endpoint::connecting(&LINUX, control(&LINUX), ISN);
    let mut out = Vec::new();
    assert_eq!(end.state(), State::Closed);
    end.connect(BEGIN, &mut out);
    let syn = Segment {
        seq: ISN,
        flags: SYN,
        window: 64_240,
        mss: 1460,
        scale: Some(13),
        sack_ok: true,
        timestamp: Some((1000, 0)),
        ..Segment::default()
    };
    assert_eq!(out, [syn]);
    out.clear();
    end.tx.write(3 * MSS);
    let later = BEGIN + RTT;
    // An answer to something else is not one.
    let synack = Segment {
        seq: PEER_ISN,
        ack: ISN,
        flags: SYN | ACK,
        window: 65_000,
        mss: 1460,
        scale: Some(2),
        sack_ok: true,
        timestamp: Some((50, 1000)),
        ..Segment::default()
    };
    end.on_segment(later, &synack, &mut out);
    assert_eq!((end.state(), out.len()), (State::SynSent, 0));
    end.on_segment(later, &Segment { ack: ISN.wrapping_add(1), ..synack }, &mut out);
    assert_eq!(end.state(), State::Established);
    assert_eq!(out.len(), 4, "an acknowledgement and three segments");
    let ack = Segment {
        seq: ISN.wrapping_add(1),
        ack: PEER_ISN.wrapping_add(1),
        flags: ACK,
        window: 65_535 >> 13,
        timestamp: Some((1100, 50)),
        ..Segment::default()
    };
    assert_eq!(out[0], ack);
    assert_eq!(out[1], Segment { len: 1448, flags: ACK | PSH, ..ack });
    assert_eq!(out[3].seq, ISN.wrapping_add(1 + 2 * 1448));
    assert_eq!(end.tx.rtt().srtt(), Some(RTT));
    // The SYN-ACK again: its acknowledgement was lost.
    out.clear();
    end.on_segment(later, &Segment { ack: ISN.wrapping_add(1), ..synack }, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].flags, out[0].ack), (ACK, PEER_ISN.wrapping_add(1)));
}

#[test]
fn a_syn_is_given_up_after_its_last_timer() {
    for (profile, last, failed) in [
        // 1, 1, 1, 1, 1, 2, 4, 8, 16, 32 and 64 s; 3 s are not modelled for 2.6.
        (Profile::LINUX_6_18, 67, 131),
        (Profile::LINUX_2_6, 31, 63),
    ] {
        let mut s = Script::listening(&profile);
        s.end = Endpoint::connecting(&profile, control(&profile), ISN);
        s.end.connect(BEGIN, &mut Vec::new());
        s.at_ms(1000 * failed - 1);
        assert_eq!(s.take().last().map(|l| l.at), Some(Span::secs(last)));
        assert_eq!(s.end.state(), State::SynSent);
        s.at_ms(1000 * failed);
        assert_eq!((s.end.state(), s.deadline()), (State::Failed, None));
    }
}

/// RFC 7323 §4, RFC 6298 §5.7: after a SYN-ACK was sent twice, only the timestamp tells which was answered. The first:
/// the path is slow, its round trip is 1.5 s. The second: the first was lost, and data begins with a timeout of 3 s.
#[test]
fn the_timestamp_tells_which_syn_ack_was_answered() {
    for (echo, srtt, rto) in [(1000, Some(1500), 4500), (2000, None, 3000)] {
        let mut s = Script::listening(&LINUX);
        s.receive(&Segment { seq: PEER_ISN, flags: SYN, timestamp: Some((5, 0)), ..Segment::default() });
        s.wait(Span::millis(1500));
        assert_eq!(s.take().len(), 2);
        s.receive(&Segment { timestamp: Some((6, echo)), ..s.bare(1) });
        assert_eq!(s.end.tx.rtt().srtt(), srtt.map(Span::millis));
        assert_eq!(s.end.tx.rtt().rto(), Span::millis(rto));
    }
}

// Sending.

#[test]
fn the_initial_window_leaves_at_once_and_acks_clock_the_rest() {
    let mut s = established();
    s.write(1000);
    assert_eq!(s.timed(), (0..10).map(|n| (0.0, n)).collect::<Vec<_>>());
    s.wait(RTT);
    s.ack(1, &[]);
    assert_eq!(s.data(), [10, 11]);
    s.ack(10, &[]);
    assert_eq!(s.data(), (12..30).collect::<Vec<_>>());
    assert_eq!(s.cwnd(), 20);
}

#[test]
fn the_last_segment_is_as_short_as_what_is_left() {
    let mut s = established();
    s.end.tx.write(100);
    s.write(1);
    let left: Vec<(u64, u32)> = s.take().iter().map(|l| (l.from, l.segment.len)).collect();
    assert_eq!(left, [(0, 1448), (1448, 100)]);
}

#[test]
fn acks_of_what_was_never_sent_or_long_ago_change_nothing() {
    let mut s = established();
    s.write(20);
    s.take();
    s.wait(RTT);
    s.ack(11, &[]);
    assert_eq!((s.data(), s.end.tx.board().una()), (vec![], 1));
    s.ack(4, &[]);
    s.take();
    s.ack(2, &[]);
    assert_eq!((s.data(), s.end.tx.board().una()), (vec![], 1 + 4 * MSS));
}

#[test]
fn the_peers_window_is_never_exceeded() {
    let mut s = Script::listening(&LINUX);
    let syn =
        Segment { seq: PEER_ISN, flags: SYN, mss: 1448, scale: Some(0), sack_ok: true, ..Segment::default() };
    s.receive(&syn);
    // Five segments and a half.
    s.window = 5 * 1448 + 724;
    s.wait(RTT);
    s.receive(&s.bare(1));
    s.zero = s.now;
    s.take();
    s.write(20);
    assert_eq!(s.data(), [0, 1, 2, 3, 4]);
    s.wait(RTT);
    s.ack(2, &[]);
    assert_eq!(s.data(), [5, 6]);
    // It closes: the five in flight are all it may have.
    s.window = 5 * 1448;
    s.ack(2, &[]);
    assert_eq!(s.data(), [] as [u64; 0]);
    s.window = 2 * 1448;
    s.ack(5, &[]);
    assert_eq!(s.data(), [] as [u64; 0]);
    s.window = 3 * 1448;
    s.ack(5, &[]);
    assert_eq!(s.data(), [7]);
}

/// RFC 9293 §3.8.6.1, `tcp_send_probe0`: a closed window is probed after a timeout, and after twice that each time, with
/// a number that was acknowledged before.
#[test]
fn a_closed_window_is_probed() {
    let mut s = established();
    s.write(1);
    s.wait(RTT);
    s.window = 0;
    s.ack(1, &[]);
    s.take();
    s.zero = s.now;
    s.write(3);
    s.wait(Span::secs(3));
    let probes: Vec<(u64, u64)> = s.take().iter().map(|l| (l.at.0 / 1_000_000, l.from)).collect();
    // The timeout is the smoothed round trip and 200 ms.
    assert_eq!(probes, [(300, MSS - 1), (900, MSS - 1), (2100, MSS - 1)]);
    // It opens: data goes at once, and its own timer is not that of the probes.
    s.window = u16::MAX;
    s.zero = s.now;
    s.ack(1, &[]);
    assert_eq!(s.timed(), [(0.0, 1), (0.0, 2), (0.0, 3)]);
    s.wait(Span::millis(250));
    assert_eq!(s.timed(), [(202.0, 3)], "a tail loss probe");
}

/// `tcp_write_wakeup`: a window smaller than a segment gets what fits, once a timeout has shown that it stays so.
#[test]
fn a_window_smaller_than_a_segment_gets_what_fits() {
    let mut s = Script::listening(&LINUX);
    s.receive(&Segment { seq: PEER_ISN, flags: SYN, scale: Some(0), ..Segment::default() });
    s.window = 500;
    s.wait(RTT);
    s.receive(&s.bare(1));
    s.zero = s.now;
    s.take();
    s.write(2);
    assert!(s.take().is_empty());
    s.wait(Span::millis(300));
    let left: Vec<(u64, u64, u32)> =
        s.take().iter().map(|l| (l.at.0 / 1_000_000, l.from, l.segment.len)).collect();
    assert_eq!(left, [(300, 0, 500)]);
}

// Loss recovery.

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

// Edges of segments and of numbers.

#[test]
fn an_ack_may_end_within_a_segment() {
    let mut s = Script::established(&Profile { tlp: false, ..LINUX }, RTT);
    s.write(2);
    s.take();
    s.wait(RTT);
    let part = Segment { timestamp: Some((9, 1100)), ..s.bare(1 + 1000) };
    s.receive(&part);
    let board = s.end.tx.board();
    assert_eq!((board.una(), board.out.packets, board.out.bytes), (1001, 2, 2 * MSS - 1000));
    assert_eq!(board.delivered, 1000);
    // What is left of it is what is sent again.
    s.wait(Span::millis(300));
    let again = s.take();
    assert_eq!((again[0].from, again[0].segment.len), (1000, 448));
    s.wait(RTT);
    s.ack(2, &[]);
    assert!(s.end.tx.done());
}

#[test]
fn numbers_wrap_in_data_blocks_and_acknowledgements() {
    let mut s = established();
    s.write(10);
    let seqs: Vec<u32> = s.take().iter().map(|l| l.segment.seq).collect();
    assert!(seqs.windows(2).all(|w| w[1].wrapping_sub(w[0]) == 1448), "{seqs:?}");
    assert!(seqs[3] > seqs[4], "the fifth is beyond the wrap: {seqs:?}");
    s.wait(RTT);
    // 3 ends beyond the wrap; a block from before it to after it.
    s.ack(2, &[(3, 6)]);
    assert_eq!(s.end.tx.board().sacked.packets, 3);
    s.ack(6, &[]);
    assert_eq!(s.end.tx.board().una(), 1 + 6 * MSS);
    s.ack(10, &[]);
    assert!(s.end.tx.done());
    // The peer's numbers: six segments cross the wrap at 9000.
    s.peer_data([0, 1, 2, 3, 4, 6, 7]);
    let last = s.take().pop().expect("an acknowledgement").segment;
    assert_eq!((s.acked(&last), s.blocks(&last)), (5, vec![(6, 8)]));
    s.peer_data([5]);
    assert_eq!(s.end.rx.delivered(), 8 * MSS);
}

// Receiving.

/// RFC 2018 §4: the newest first, as many as fit beside a timestamp. RFC 2883 §4: a duplicate before all.
#[test]
fn blocks_are_reported_newest_first_and_duplicates_before_them() {
    let mut s = established();
    let report = |s: &mut Script, n: u64| {
        s.peer_data([n]);
        let left = s.take();
        assert_eq!(left.len(), 1, "at once");
        (s.acked(&left[0].segment), s.blocks(&left[0].segment))
    };
    assert_eq!(report(&mut s, 0), (1, vec![]));
    assert_eq!(report(&mut s, 2), (1, vec![(2, 3)]));
    assert_eq!(report(&mut s, 4), (1, vec![(4, 5), (2, 3)]));
    assert_eq!(report(&mut s, 6), (1, vec![(6, 7), (4, 5), (2, 3)]));
    assert_eq!(report(&mut s, 8), (1, vec![(8, 9), (6, 7), (4, 5)]));
    // A hole between two is filled: they are one, and the newest.
    assert_eq!(report(&mut s, 3), (1, vec![(2, 5), (8, 9), (6, 7)]));
    // A duplicate of what is held, and of what was acknowledged.
    assert_eq!(report(&mut s, 6), (1, vec![(6, 7), (6, 7), (2, 5)]));
    assert_eq!(report(&mut s, 0), (1, vec![(0, 1), (6, 7), (2, 5)]));
    // The first hole is filled.
    assert_eq!(report(&mut s, 1), (5, vec![(6, 7), (8, 9)]));
    assert_eq!(s.end.rx.delivered(), 5 * MSS);
}

#[test]
fn data_carries_the_acknowledgement_that_was_due() {
    let mut s = Script::established(&Profile { quick: 0, autotune: false, ..LINUX }, RTT);
    s.peer_data([0]);
    assert!(s.take().is_empty());
    s.write(1);
    let left = s.take();
    assert_eq!((left.len(), s.acked(&left[0].segment)), (1, 1));
    s.wait(Span::millis(50));
    assert!(s.take().is_empty(), "none is due any more");
}

// The close.

#[test]
fn both_ends_close() {
    let mut s = established();
    s.peer_data([0]);
    s.take();
    s.peer_fin(1);
    let left = s.take();
    assert_eq!((left.len(), left[0].segment.flags), (1, ACK), "at once");
    assert_eq!(left[0].segment.ack, PEER_ISN.wrapping_add(1 + 1448 + 1));
    assert!(s.end.rx.finished());
    assert_eq!(s.end.rx.delivered(), MSS);
    s.end.tx.write(100);
    s.close();
    let left: Vec<(u8, u32, u64)> =
        s.take().iter().map(|l| (l.segment.flags, l.segment.len, l.from)).collect();
    assert_eq!(left, [(ACK | PSH, 100, 0), (ACK | FIN, 0, 100)]);
    assert!(!s.end.tx.done());
    s.wait(RTT);
    s.receive(&s.bare(1 + 100 + 1));
    assert!(s.end.tx.done());
    s.wait(Span::secs(100));
    assert!(s.take().is_empty());
    assert_eq!(s.deadline(), None);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut s = established();
    s.write(1);
    s.close();
    s.take();
    s.wait(RTT);
    s.ack(1, &[]);
    s.wait(Span::millis(350));
    let again: Vec<(u64, u64)> =
        s.take().iter().filter(|l| l.segment.has(FIN)).map(|l| (l.at.0 / 1_000_000, l.from)).collect();
    // Probed for after two round trips and the least timeout, or the timeout, from the acknowledgement on.
    assert_eq!(again, [(400, MSS)]);
    s.receive(&s.bare(1 + MSS + 1));
    assert!(s.end.tx.done());
}

#[test]
fn a_fin_may_come_before_what_precedes_it() {
    let mut s = established();
    s.peer_fin(1);
    assert!(!s.end.rx.finished());
    s.peer_data([0]);
    assert!(s.end.rx.finished());
    assert_eq!(s.end.rx.delivered(), MSS);
    assert_eq!(s.take().last().map(|l| l.segment.ack), Some(PEER_ISN.wrapping_add(1 + 1448 + 1)));
}

#[test]
fn a_reset_ends_it() {
    let mut s = established();
    s.write(10);
    s.take();
    s.receive(&Segment { flags: RST, ..s.bare(1) });
    assert_eq!((s.end.state(), s.deadline()), (State::Failed, None));
    s.wait(Span::secs(100));
    s.ack(10, &[]);
    assert!(s.take().is_empty());
    // One that listens has nothing to end.
    let mut s = Script::listening(&LINUX);
    s.receive(&Segment { flags: RST, ..Segment::default() });
    assert_eq!(s.end.state(), State::Listen);
    assert_eq!(s.now, Instant(BEGIN.0));
}
