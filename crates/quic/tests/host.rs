//! The calls that a controller gets for each event of a QUIC stack.

use slowstart::avoidance;
use slowstart::control::Controller as _;
use slowstart::registry::{self, AnyController};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::Signal;
use slowstart_quic::host::{Host, INITIAL_PACKETS, Limited};
use std::collections::VecDeque;

const MSS: u64 = 1200;

fn ms(t: u64) -> Instant {
    Instant::ZERO + Span::millis(t)
}

fn host(startup: &str) -> Host<AnyController> {
    let avoidance = (avoidance::REGISTRY.iter().find(|e| e.name == "cubic").unwrap().make)();
    let algorithm = registry::named(startup).unwrap().algorithm;
    let control = algorithm.controller(&avoidance, Bytes(MSS) * INITIAL_PACKETS, 1);
    Host::new(control, Instant::ZERO, Bytes(MSS))
}

/// A host whose handshake took 50 ms, with packets 1 to `n` sent at 100 ms.
fn established(startup: &str, n: u64) -> Host<AnyController> {
    let mut h = host(startup);
    h.on_packet_sent(ms(0), Bytes(MSS), 0);
    h.on_packet_acked(ms(50), ms(0), 0, false);
    h.on_ack_end(ms(50), Some(0));
    for number in 1..=n {
        h.on_packet_sent(ms(100), Bytes(MSS), number);
    }
    h
}

fn packets(h: &Host<AnyController>) -> u64 {
    h.window().0 / MSS
}

fn lose(h: &mut Host<AnyController>, at: u64, numbers: std::ops::RangeInclusive<u64>, persistent: bool) {
    let mut lost = 0;
    for number in numbers {
        h.on_packet_lost(ms(at), number);
        lost += MSS;
    }
    let signal = if persistent { Signal::Timeout } else { Signal::Loss };
    h.on_congestion(ms(at), ms(100), signal, Bytes(lost));
}

#[test]
fn the_handshake_earns_nothing_and_brings_the_first_sample() {
    let h = established("standard", 0);
    assert_eq!(packets(&h), INITIAL_PACKETS);
    assert_eq!(h.srtt(), Some(Span::millis(50)));
    assert_eq!(h.inflight(), Bytes::ZERO);
}

/// A server sends packets of the handshake in several flights. Their acknowledgements come one after another,
/// and the first data after them: Jump Start paces its first flight until that is acknowledged.
#[test]
fn later_acknowledgements_of_the_handshake_are_no_data() {
    let mut h = host("jump-start");
    h.unsent = Some(Bytes(100 * MSS));
    for number in 0..3 {
        h.on_packet_sent(ms(number), Bytes(MSS), number);
    }
    for number in 0..3 {
        h.on_packet_acked(ms(50 + number), ms(number), number, false);
        h.on_ack_end(ms(50 + number), Some(number));
    }
    assert_eq!((packets(&h), h.control().phase()), (100, "jump"));
    for number in 3..103 {
        h.on_packet_sent(ms(60), Bytes(MSS), number);
    }
    h.on_packet_acked(ms(110), ms(60), 3, false);
    h.on_ack_end(ms(110), Some(3));
    assert_eq!((packets(&h), h.control().phase()), (100, "slow-start"));
}

#[test]
fn acknowledgements_in_any_order_grow_the_window_by_what_they_deliver() {
    let mut h = established("standard", 10);
    for number in [9, 10] {
        h.on_packet_acked(ms(150), ms(100), number, false);
    }
    h.on_ack_end(ms(150), Some(10));
    assert_eq!(packets(&h), 12);
    // Older packets, out of order: they bring no sample, since the largest is known.
    h.on_packet_acked(ms(190), ms(100), 2, false);
    h.on_ack_end(ms(190), Some(10));
    assert_eq!(packets(&h), 13);
    assert_eq!(h.latest_rtt(), Some(Span::millis(50)));
    assert_eq!(h.inflight(), Bytes(7 * MSS));
}

#[test]
fn an_application_that_sends_little_earns_nothing() {
    let mut h = established("standard", 3);
    h.on_packet_acked(ms(150), ms(100), 3, true);
    h.on_ack_end(ms(150), Some(3));
    assert_eq!(packets(&h), INITIAL_PACKETS);
}

/// neqo's rule: with a window of ten packets the sixth of a burst is the first to find half of it in flight,
/// and what was sent before it then counts as well. The stack's own word has no effect.
#[test]
fn by_the_rule_of_neqo_half_a_window_in_flight_is_use() {
    for (sent, acked, earned) in [(3, 3, 0), (5, 5, 0), (6, 6, 6), (6, 2, 2)] {
        let mut h = host("standard");
        h.limited = Limited::Neqo;
        h.on_packet_sent(ms(0), Bytes(MSS), 0);
        h.on_packet_acked(ms(50), ms(0), 0, false);
        h.on_ack_end(ms(50), Some(0));
        for number in 1..=sent {
            h.on_packet_sent(ms(100), Bytes(MSS), number);
        }
        for number in 1..=acked {
            h.on_packet_acked(ms(150), ms(100), number, true);
        }
        h.on_ack_end(ms(150), Some(acked));
        assert_eq!(packets(&h), INITIAL_PACKETS + earned, "{sent} {acked}");
        // Alone, after that: newer than the newest that used the window.
        h.on_packet_sent(ms(200), Bytes(MSS), sent + 1);
        h.on_packet_acked(ms(250), ms(200), sent + 1, false);
        h.on_ack_end(ms(250), Some(sent + 1));
        assert_eq!(packets(&h), INITIAL_PACKETS + earned, "{sent} {acked}");
    }
}

/// The example of draft-ietf-ccwg-ratelimited-increase: ten packets, a pause, four packets. The application limits
/// the sender throughout, and the window grows to twice the ten that were in flight.
#[test]
fn by_the_rule_of_the_draft_a_window_is_twice_the_flight() {
    for (limited, wanted) in [(Limited::Stack, 10), (Limited::Draft, 20)] {
        let mut h = established("standard", 10);
        h.limited = limited;
        let mut upto = 0;
        for (at, n) in [(100, 10), (200, 4)] {
            if at > 100 {
                (upto + 1..=upto + n).for_each(|number| h.on_packet_sent(ms(at), Bytes(MSS), number));
            }
            for number in upto + 1..=upto + n {
                h.on_packet_acked(ms(at + 50), ms(at), number, true);
                h.on_ack_end(ms(at + 50), Some(number));
            }
            upto += n;
        }
        assert_eq!(packets(&h), wanted, "{limited:?}");
    }
}

/// An application writes a number of packets in each of ten round trips: the window after them, by the stack's word (as
/// quinn and noq give it), by neqo's rule and by the draft's. The same table for TCP is in `tests/mechanisms.rs` of the
/// simulator.
#[test]
fn windows_of_applications_that_send_little() {
    let few = |first: [u64; 3], later: u64| -> Vec<u64> { first.into_iter().chain([later; 7]).collect() };
    let windows = |writes: Vec<u64>| {
        [Limited::Stack, Limited::Neqo, Limited::Draft].map(|limited| {
            let mut h = established("standard", 0);
            h.limited = limited;
            let (mut flying, mut unsent, mut number) = (VecDeque::new(), 0, 0);
            let mut send = |h: &mut Host<AnyController>, unsent: &mut u64, flying: &mut VecDeque<_>, at| {
                while *unsent > 0 && h.inflight() + Bytes(MSS) <= h.window() {
                    number += 1;
                    *unsent -= 1;
                    h.on_packet_sent(at, Bytes(MSS), number);
                    flying.push_back((number, at));
                }
                if *unsent > 0 {
                    h.on_cwnd_limited();
                }
            };
            for (n, round) in writes.iter().zip(2..) {
                unsent += n;
                send(&mut h, &mut unsent, &mut flying, ms(50 * round));
                let now = ms(50 * round + 50);
                for (acked, at) in std::mem::take(&mut flying) {
                    h.on_packet_acked(now, at, acked, unsent == 0);
                    h.on_ack_end(now, Some(acked));
                    send(&mut h, &mut unsent, &mut flying, now);
                }
            }
            packets(&h)
        })
    };
    let applications =
        [few([4; 3], 4), few([8; 3], 8), few([10, 4, 4], 4), few([40, 0, 0], 2), few([16, 0, 16], 8)];
    let wanted = [[10, 10, 20], [10, 18, 20], [10, 20, 20], [25, 50, 50], [15, 42, 32]];
    assert_eq!(applications.map(windows), wanted);
}

/// After slow start, a window of seven packets is in use by the sixth packet of a burst: two more would fill
/// it.
#[test]
fn by_the_rule_of_neqo_two_packets_less_than_a_window_are_use_afterwards() {
    for (burst, grows) in [(5, false), (6, true)] {
        let mut h = established("standard", 10);
        h.limited = Limited::Neqo;
        lose(&mut h, 160, 1..=10, false);
        assert_eq!(packets(&h), 7);
        let mut number = 10;
        for round in 4..30 {
            let at = ms(50 * round);
            for _ in 0..burst {
                number += 1;
                h.on_packet_sent(at, Bytes(MSS), number);
            }
            for acked in number + 1 - burst..=number {
                h.on_packet_acked(ms(50 * round + 50), at, acked, false);
            }
            h.on_ack_end(ms(50 * round + 50), Some(number));
        }
        assert_eq!(packets(&h) > 7, grows, "{burst}");
    }
}

#[test]
fn a_loss_cuts_once_an_episode_and_ends_the_startup() {
    let mut h = established("standard", 10);
    lose(&mut h, 160, 1..=3, false);
    assert_eq!(h.exit.unwrap().why.name(), "loss");
    assert_eq!(packets(&h), 7);
    // Sent before the episode began: the same episode.
    lose(&mut h, 170, 4..=4, false);
    assert_eq!(packets(&h), 7);
    assert_eq!((h.counters.lost_packets, h.counters.episodes), (4, 1));
    assert_eq!(h.first_loss, Some(ms(160)));
}

#[test]
fn an_episode_that_was_spurious_is_undone() {
    let mut h = established("standard", 10);
    lose(&mut h, 160, 1..=3, false);
    h.on_spurious();
    assert_eq!(packets(&h), INITIAL_PACKETS);
    assert_eq!(h.exit, None, "the startup goes on");
    assert_eq!(h.counters.spurious, 1);
}

#[test]
fn persistent_congestion_leaves_two_packets() {
    let mut h = established("standard", 10);
    lose(&mut h, 900, 1..=10, true);
    assert_eq!(h.exit.unwrap().why.name(), "timeout");
    // RFC 9002 §7.6.2 and §7.2: the minimum window.
    assert_eq!(packets(&h), 2);
}

#[test]
fn marks_end_the_startup_as_marks() {
    let mut h = established("standard", 10);
    h.on_congestion(ms(160), ms(100), Signal::Ecn, Bytes::ZERO);
    assert_eq!(h.exit.unwrap().why.name(), "ecn");
    assert_eq!(h.counters.lost_packets, 0);
}

#[test]
fn the_floor_follows_the_size_of_packets() {
    let mut h = established("standard", 10);
    lose(&mut h, 900, 1..=10, true);
    h.on_mtu(Bytes(9000));
    assert_eq!(h.window(), Bytes(18_000));
}

#[test]
fn slow_start_is_paced_at_two_windows_a_round_trip() {
    let h = established("standard", 0);
    // 12,000 bytes in 50 ms are 1.92 Mbit/s.
    assert_eq!(h.pacing_rate().unwrap().0, 3_840_000);
    let mut h = established("standard", 10);
    lose(&mut h, 160, 1..=3, false);
    // 8,400 bytes in 50 ms, by 1.25.
    assert_eq!(h.pacing_rate().unwrap().0, 1_680_000);
}

#[test]
fn a_new_path_forgets_what_was_in_flight_and_keeps_the_window() {
    let mut h = established("standard", 10);
    h.on_packet_acked(ms(150), ms(100), 1, false);
    h.on_ack_end(ms(150), Some(1));
    h.on_new_path();
    assert_eq!((packets(&h), h.inflight()), (11, Bytes::ZERO));
    // What was sent on the old path earns and costs nothing; what is sent on the new one does.
    h.on_packet_acked(ms(160), ms(100), 2, false);
    h.on_packet_lost(ms(160), 3);
    h.on_ack_end(ms(160), Some(2));
    assert_eq!((packets(&h), h.counters.lost_packets), (11, 0));
    h.on_packet_sent(ms(160), Bytes(MSS), 11);
    h.on_packet_acked(ms(210), ms(160), 11, false);
    h.on_ack_end(ms(210), Some(11));
    assert_eq!(packets(&h), 12);
}

/// Linux 6.18's CUBIC, the default, depends on the time since the last cut: an idle time is no part of it.
#[test]
fn the_controller_is_told_of_idle_time() {
    let cwnd_after = |idle: u64| {
        let mut h = established("standard", 10);
        lose(&mut h, 160, 1..=1, false);
        let mut at = 170;
        for number in 2..=10 {
            h.on_packet_acked(ms(at), ms(100), number, false);
            h.on_ack_end(ms(at), Some(number));
        }
        assert_eq!(h.inflight(), Bytes::ZERO);
        at += idle;
        for number in 11..111 {
            h.on_packet_sent(ms(at), Bytes(MSS), number);
            h.on_packet_acked(ms(at + 50), ms(at), number, false);
            h.on_ack_end(ms(at + 50), Some(number));
            at += 50;
        }
        h.window()
    };
    assert_eq!(cwnd_after(0), cwnd_after(60_000));
}

/// RFC 8257 §3.3: with a tenth of the packets marked, the share tends to a tenth, and a cut to a twentieth.
/// Without a count of marks a cut is a half, as RFC 8257 §3.5 asks.
#[test]
fn dctcp_cuts_by_the_share_of_marks_that_the_stack_tells() {
    let cuts = |counts: bool| {
        let dctcp = (avoidance::REGISTRY.iter().find(|e| e.name == "dctcp").unwrap().make)();
        let standard = registry::named("standard").unwrap().algorithm;
        let control = standard.controller(&dctcp, Bytes(MSS) * INITIAL_PACKETS, 1);
        let mut h = Host::new(control, Instant::ZERO, Bytes(MSS));
        h.marked = counts.then_some(Bytes::ZERO);
        h.on_packet_sent(ms(0), Bytes(MSS), 0);
        h.on_packet_acked(ms(50), ms(0), 0, false);
        h.on_ack_end(ms(50), Some(0));
        let (mut at, mut next, mut cuts, mut marks) = (100, 1, Vec::new(), 0);
        for _ in 0..100 {
            let n = h.window().0 / MSS;
            for number in next..next + n {
                h.on_packet_sent(ms(at), Bytes(MSS), number);
            }
            // Every tenth packet is marked, and the frame that says so is the flight's last.
            marks += n;
            h.on_marks(marks / 10);
            marks %= 10;
            for number in next..next + n {
                h.on_packet_acked(ms(at + 50), ms(at), number, false);
            }
            h.on_ack_end(ms(at + 50), Some(next + n - 1));
            let before = h.window().0 as f64;
            h.on_congestion(ms(at + 50), ms(at), Signal::Ecn, Bytes::ZERO);
            cuts.push(1.0 - h.window().0 as f64 / before);
            (next, at) = (next + n, at + 100);
        }
        cuts
    };
    let cut = cuts(true)[99];
    assert!((0.03..0.08).contains(&cut), "{cut}");
    // From 10 packets to 5, and with the packet that a round trip earns to 3; then the least window.
    let cuts = cuts(false);
    assert!(cuts[..2].iter().all(|c| (0.45..=0.5).contains(c)), "{:?}", &cuts[..4]);
}

/// RFC 9000 §9.4: on a new path the congestion state begins anew, and packets of the old path do not count.
#[test]
fn a_change_of_path_begins_anew() {
    let mut h = established("standard", 10);
    for number in 1..=5 {
        h.on_packet_acked(ms(150), ms(100), number, false);
    }
    h.on_ack_end(ms(150), Some(5));
    assert_eq!(packets(&h), 15);
    let fresh = registry::named("standard").unwrap().algorithm;
    let cubic = (avoidance::REGISTRY[0].make)();
    let control = fresh.controller(&cubic, Bytes(1400) * INITIAL_PACKETS, 1);
    h.on_path_change(ms(160), control, Bytes(1400), Some(Span::millis(20)));
    assert_eq!((h.window(), h.inflight(), h.srtt()), (Bytes(14_000), Bytes::ZERO, Some(Span::millis(20))));
    // Late news of the old path: neither growth, nor a sample, nor a cut.
    h.on_packet_acked(ms(170), ms(100), 6, false);
    h.on_ack_end(ms(170), Some(6));
    h.on_packet_lost(ms(170), 7);
    h.on_congestion(ms(170), ms(100), Signal::Loss, Bytes(MSS));
    assert_eq!((h.window(), h.srtt(), h.exit), (Bytes(14_000), Some(Span::millis(20)), None));
    // The new path.
    h.on_packet_sent(ms(180), Bytes(1400), 11);
    h.on_packet_acked(ms(200), ms(180), 11, false);
    h.on_ack_end(ms(200), Some(11));
    assert_eq!(h.window(), Bytes(15_400));
}
