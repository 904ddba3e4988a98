//! Scripts of segments against one endpoint, as in packetdrill: handshake, windows, sequence numbers, the
//! receiver's ACKs, and the close. For losses see `recovery.rs`.
//!
//! The sequence numbers of both ends wrap within the first segments of every script.

#[cfg(debug_assertions)]
mod common;
#[path = "common/script.rs"]
mod script;

#[cfg(debug_assertions)]
use common::{flow, run};

use script::{BEGIN, ISN, LINUX, MSS, PEER_ISN, RTT, Script, control, established};
use slowstart::units::{Instant, Span};
use slowstart_sim::tcp::endpoint::{Endpoint, State};
use slowstart_sim::tcp::profile::Profile;
use slowstart_sim::tcp::segment::{ACK, FIN, PSH, RST, SYN, Segment};

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
        // The payload of a packet of 1500 bytes without the timestamp.
        mss: 1460,
        // 256 MB >> 13 is the first to fit 16 bits.
        scale: Some(13),
        sack_ok: true,
        timestamp: Some((1000, 77)),
        ..Segment::default()
    };
    assert_eq!(left[0].segment, synack);
    // A second copy of the SYN is answered again; a segment that does not acknowledge the SYN-ACK is ignored.
    s.receive(&syn);
    assert_eq!(s.take().len(), 1);
    s.receive(&Segment { ack: ISN, ..s.bare(0) });
    assert_eq!((s.end.state(), s.take().len()), (State::SynReceived, 0));
    // From here on the window is scaled.
    s.receive(&Segment { window: 10, ..s.bare(1) });
    assert_eq!(s.end.state(), State::Established);
    s.write(5);
    assert_eq!(s.data(), Vec::<u64>::new(), "10 << 7 is less than a segment");
}

#[test]
fn a_client_sends_its_options_and_then_data() {
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
    // A SYN-ACK that acknowledges something else is ignored.
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
        // Rounded up, so that it is not scaled away.
        window: 64_240_u16.div_ceil(1 << 13),
        timestamp: Some((1100, 50)),
        ..Segment::default()
    };
    assert_eq!(out[0], ack);
    assert_eq!(out[1], Segment { len: 1448, flags: ACK, ..ack });
    assert_eq!(out[3].seq, ISN.wrapping_add(1 + 2 * 1448));
    assert_eq!(end.tx.rtt().srtt(), Some(RTT));
    // The SYN-ACK again: its ACK was lost.
    out.clear();
    end.on_segment(later, &Segment { ack: ISN.wrapping_add(1), ..synack }, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].flags, out[0].ack), (ACK, PEER_ISN.wrapping_add(1)));
}

#[test]
fn a_syn_is_given_up_after_its_last_timer() {
    for (profile, last, failed) in [
        // 1, 1, 1, 1, 1, 2, 4, 8, 16, 32 and 64 s. For 2.6 the initial timeout of 3 s is not modelled.
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

/// RFC 7323 §4, RFC 6298 §5.7: after two SYN-ACKs, only the timestamp shows which was acknowledged. If the
/// first: the RTT of the path is 1.5 s. If the second: the first was lost, and data begins with a timeout of
/// 3 s.
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

/// RFC 6298 §3, RFC 7323 §4: the peer's SYN arrives again after 500 ms, because the path is longer than the
/// peer's timeout, and is answered again. The ACK comes at the same moment. Only the timestamp shows that it
/// is of the first SYN-ACK.
#[test]
fn a_repeated_syn_does_not_shorten_the_rtt_of_the_handshake() {
    for (echo, srtt) in [(1000, Some(500)), (1500, None)] {
        let mut s = Script::listening(&LINUX);
        let syn = Segment { seq: PEER_ISN, flags: SYN, timestamp: Some((5, 0)), ..Segment::default() };
        s.receive(&syn);
        s.wait(Span::millis(500));
        s.receive(&syn);
        assert_eq!(s.take().len(), 2);
        s.receive(&Segment { timestamp: Some((6, echo)), ..s.bare(1) });
        assert_eq!(s.end.state(), State::Established);
        assert_eq!(s.end.tx.rtt().srtt(), srtt.map(Span::millis));
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

/// What is left of the window after full bursts waits for an ACK that is due within a millisecond, and for no
/// later one (`tcp_tso_should_defer`).
#[test]
fn a_burst_that_is_not_full_waits_for_an_ack_that_is_near() {
    let sent = |after: Span| {
        let mut s = Script::established(&Profile { tso_defer: true, ..LINUX }, Span::millis(8));
        s.write(1000);
        s.wait(Span::millis(8));
        s.ack(10, &[]);
        assert_eq!(s.data().len(), 30);
        s.wait(after);
        s.ack(15, &[]);
        s.data().len()
    };
    assert_eq!((sent(Span::millis(8)), sent(Span::micros(7200)), sent(Span::micros(5600))), (6, 6, 10));
}

#[test]
fn the_last_segment_has_the_remaining_bytes() {
    let mut s = established();
    s.end.tx.write(100);
    s.write(1);
    let left: Vec<(u64, u32)> = s.take().iter().map(|l| (l.from, l.segment.len)).collect();
    assert_eq!(left, [(0, 1448), (1448, 100)]);
}

#[test]
fn acks_of_unsent_or_old_data_change_nothing() {
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
    // Five and a half segments: the half follows one that is full (`tcp_mss_split_point`).
    s.window = 5 * 1448 + 724;
    s.wait(RTT);
    s.receive(&s.bare(1));
    s.zero = s.now;
    s.take();
    s.write(20);
    let sizes = |s: &mut Script| s.take().iter().map(|l| l.segment.len).collect::<Vec<_>>();
    assert_eq!(sizes(&mut s), [1448, 1448, 1448, 1448, 1448, 724]);
    s.wait(RTT);
    s.ack(2, &[]);
    assert_eq!(sizes(&mut s), [1448, 1448]);
    // Less than a segment waits.
    s.window = 6 * 1448;
    s.ack(2, &[]);
    assert_eq!(sizes(&mut s), [] as [u32; 0]);
    // The window closes: no more than what is in flight is allowed.
    s.window = 5 * 1448;
    s.ack(2, &[]);
    assert_eq!(sizes(&mut s), [] as [u32; 0]);
    s.window = 2 * 1448;
    s.ack(5, &[]);
    assert_eq!(sizes(&mut s), [] as [u32; 0]);
    s.window = 3 * 1448 + 724;
    s.ack(5, &[]);
    assert_eq!(sizes(&mut s), [1448]);
}

/// RFC 9293 §3.8.6.1, `tcp_send_probe0`: a closed window is probed after a timeout, which doubles each time,
/// with a sequence number already acknowledged.
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
    // The timeout is the smoothed RTT and 200 ms.
    assert_eq!(probes, [(300, MSS - 1), (900, MSS - 1), (2100, MSS - 1)]);
    // The window opens: data is sent at once, with a timer of its own.
    s.window = u16::MAX;
    s.zero = s.now;
    s.ack(1, &[]);
    assert_eq!(s.timed(), [(0.0, 1), (0.0, 2), (0.0, 3)]);
    s.wait(Span::millis(250));
    assert_eq!(s.timed(), [(202.0, 3)], "a tail loss probe");
}

/// `tcp_write_wakeup`: a window smaller than a segment is filled only after a timeout.
#[test]
fn a_window_smaller_than_a_segment_is_filled_after_a_timeout() {
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
    // Only the rest of it is retransmitted.
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
    assert!(seqs[3] > seqs[4], "the fifth is after the wrap: {seqs:?}");
    s.wait(RTT);
    // Segment 3 ends after the wrap, and the block begins before it.
    s.ack(2, &[(3, 6)]);
    assert_eq!(s.end.tx.board().sacked.packets, 3);
    s.ack(6, &[]);
    assert_eq!(s.end.tx.board().una(), 1 + 6 * MSS);
    s.ack(10, &[]);
    assert!(s.end.tx.done());
    // The peer's sequence numbers: six segments cross the wrap at 9000.
    s.peer_data([0, 1, 2, 3, 4, 6, 7]);
    let last = s.take().pop().expect("an acknowledgement").segment;
    assert_eq!((s.acked(&last), s.blocks(&last)), (5, vec![(6, 8)]));
    s.peer_data([5]);
    assert_eq!(s.end.rx.delivered(), 8 * MSS);
}

// Receiving.

/// RFC 2018 §4: the newest block first, as many as fit beside a timestamp. RFC 2883 §4: a duplicate before
/// all.
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
    // A hole between two blocks is filled: they become one, the newest.
    assert_eq!(report(&mut s, 3), (1, vec![(2, 5), (8, 9), (6, 7)]));
    // A duplicate of SACKed data, and one of acknowledged data.
    assert_eq!(report(&mut s, 6), (1, vec![(6, 7), (6, 7), (2, 5)]));
    assert_eq!(report(&mut s, 0), (1, vec![(0, 1), (6, 7), (2, 5)]));
    // The first hole is filled.
    assert_eq!(report(&mut s, 1), (5, vec![(6, 7), (8, 9)]));
    assert_eq!(s.end.rx.delivered(), 5 * MSS);
}

#[test]
fn data_carries_the_delayed_acknowledgement() {
    let mut s = Script::established(&Profile { quick: 0, autotune: false, ..LINUX }, RTT);
    s.peer_data([0]);
    assert!(s.take().is_empty());
    s.write(1);
    let left = s.take();
    assert_eq!((left.len(), s.acked(&left[0].segment)), (1, 1));
    s.wait(Span::millis(50));
    assert!(s.take().is_empty(), "no delayed ACK is due");
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
    // A probe after two RTTs and the minimum timeout, or the timeout, from the ACK on.
    assert_eq!(again, [(400, MSS)]);
    s.receive(&s.bare(1 + MSS + 1));
    assert!(s.end.tx.done());
}

#[test]
fn a_fin_may_arrive_before_the_data_it_follows() {
    let mut s = established();
    s.peer_fin(1);
    assert!(!s.end.rx.finished());
    s.peer_data([0]);
    assert!(s.end.rx.finished());
    assert_eq!(s.end.rx.delivered(), MSS);
    assert_eq!(s.take().last().map(|l| l.segment.ack), Some(PEER_ISN.wrapping_add(1 + 1448 + 1)));
}

#[test]
fn a_reset_ends_the_connection() {
    let mut s = established();
    s.write(10);
    s.take();
    s.receive(&Segment { flags: RST, ..s.bare(1) });
    assert_eq!((s.end.state(), s.deadline()), (State::Failed, None));
    s.wait(Span::secs(100));
    s.ack(10, &[]);
    assert!(s.take().is_empty());
    // An endpoint that waits for a SYN has no connection to end.
    let mut s = Script::listening(&LINUX);
    s.receive(&Segment { flags: RST, ..Segment::default() });
    assert_eq!(s.end.state(), State::Listen);
    assert_eq!(s.now, Instant(BEGIN.0));
}

/// Debug builds process one of eight expected ACKs by the general path too and compare the results. Here they
/// must have done so, over a transfer with slow start, losses and recoveries.
#[cfg(debug_assertions)]
#[test]
fn expected_acks_are_compared_with_the_general_path() {
    let path = "rate=20Mbit rtt=40ms queue=0.5bdp";
    let engine = run(path, vec![flow("hystart", Profile::LINUX_6_18)], Span::secs(20));
    let counters = engine.flows[0].ends[slowstart_sim::engine::End::Server].tx.counters;
    assert!(counters.recoveries > 2, "{counters:?}");
    assert!(counters.compared_acks > 1000, "{counters:?}");
}
