//! The scripts, by startup. Each says what it shows.

use super::Hand;
use slowstart::control::Controller;
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::{Handshake, HostQueue, Limit, PathMemory, Signal};

pub(in super::super) struct Script {
    pub(in super::super) name: &'static str,
    /// Whom it is for.
    pub(in super::super) startups: &'static [&'static str],
    pub(in super::super) mss: u64,
    /// The initial window, in packets.
    pub(in super::super) iw: u64,
    pub(in super::super) play: fn(&mut Hand),
}

const fn of(startups: &'static [&'static str], name: &'static str, iw: u64, play: fn(&mut Hand)) -> Script {
    Script { name, startups, mss: 1000, iw, play }
}

pub(in super::super) const SCRIPTS: &[Script] = &[
    of(&["bbr3"], "hand-wait-to-the-nanosecond", 10, wait_to_the_nanosecond),
    of(&["c4"], "hand-share-of-marks", 10, share_of_marks),
    of(&["c4"], "hand-no-minimum-rtt", 10, no_minimum_rtt),
    of(&["c4"], "hand-leaves-within-its-window", 10, leaves_within_its_window),
    Script { mss: 975, ..of(&["c4"], "hand-share-of-losses-at-the-limit", 100, share_of_losses) },
    Script { mss: 977, ..of(&["c4"], "hand-share-of-losses-above-the-limit", 100, share_of_losses) },
    of(&["c4"], "hand-resumes-and-fills", 10, resumes_and_fills),
    of(&["c4"], "hand-resumes-with-a-selective-ack", 10, resumes_with_a_selective_ack),
    of(&["c4"], "hand-resumes-and-is-slowed", 10, resumes_and_is_slowed),
    Script { mss: 9325, ..of(&["c4"], "hand-resumes-at-a-high-rate", 10, resumes_at_a_high_rate) },
    of(&["c4"], "hand-slowed-without-a-rate", 10, slowed_without_a_rate),
    of(&["careful-resume"], "hand-little-remembered", 10, little_remembered),
    of(&["careful-resume"], "hand-confirmed-in-recovery", 10, confirmed_in_recovery),
    of(&["careful-resume"], "hand-confirmed-by-a-selective-ack", 10, confirmed_selectively),
    of(&["careful-resume"], "hand-confirmed-without-rtt", 10, confirmed_without_rtt),
    of(&["careful-resume"], "hand-jump-of-an-initial-window", 10, jump_of_an_initial_window),
    of(&["careful-resume"], "hand-validated-exactly", 10, validated_exactly),
    of(&["careful-resume"], "hand-not-validated-selectively", 10, not_validated_selectively),
    of(&["ess"], "hand-target-is-the-window", 10, target_is_the_window),
    of(&["ess"], "hand-probe-before-the-selected", 10, probe_before_the_selected),
    of(&["ess"], "hand-cycle-ends-in-recovery", 10, cycle_ends_in_recovery),
    of(&["hystart", "hystart-paper"], "hand-train-just-below-half", 20, train_just_below_half),
    of(&["hystart-paper"], "hand-rtt-two-ticks-above", 20, |h| rtt_above(h, 20, 22_000_000)),
    of(&["hystart-paper"], "hand-rtt-below-two-ticks", 20, |h| rtt_above(h, 20, 21_999_999)),
    of(&["hystart-paper"], "hand-rtt-three-ticks-above", 20, |h| rtt_above(h, 47, 50_000_000)),
    of(&["hystart", "hystart-picoquic"], "hand-train-and-bursts", 20, train_and_bursts),
    of(&["hystart", "hystart-picoquic"], "hand-train-and-no-rate", 20, |h| train_at(h, 0)),
    of(&["hystart", "hystart-picoquic"], "hand-train-and-least-rate", 20, |h| train_at(h, 1)),
    of(&["hystart-ns3"], "hand-rtt-doubles-in-the-first-round", 20, rtt_doubles),
    of(&["hystart", "hystart-paper"], "hand-found-at-the-threshold", 20, found_at_the_threshold),
    of(&["hystart", "hystart-paper"], "hand-found-above-the-threshold", 20, found_above_the_threshold),
    of(&["hystart-paper"], "hand-found-before-undone", 20, found_before_undone),
    of(&["jump-start"], "hand-probe-in-the-jump", 10, probe_in_the_jump),
    of(&["packet-pair"], "hand-pairs-without-rtt", 10, pairs_without_rtt),
    of(&["packet-pair"], "hand-estimate-is-the-window", 10, estimate_is_the_window),
    of(&["quick-start"], "hand-handshake-delivers", 10, handshake_delivers),
    of(&["quick-start"], "hand-not-validated-selectively", 10, granted_selectively),
    of(&["rate-bound"], "hand-minimum-of-a-nanosecond", 10, |h| coarse_minimum(h, 1)),
    of(&["rate-bound"], "hand-minimum-of-zero", 10, |h| coarse_minimum(h, 0)),
    of(&["rate-bound"], "hand-an-eighth-more", 10, |h| larger_flight(h, 1000)),
    of(&["rate-bound"], "hand-more-than-an-eighth", 10, |h| larger_flight(h, 1100)),
    of(&["restricted"], "hand-queue-beyond-all-bounds", 10, queue_beyond_all_bounds),
    of(&["restricted"], "hand-queue-and-no-integral", 10, queue_and_no_integral),
    of(&["search-4.0"], "hand-longest-look-back", 10, longest_look_back),
    of(&["search-3.1"], "hand-gap-of-a-window", 10, gap_of_a_window),
];

const fn ms(n: u64) -> Span {
    Span::millis(n)
}

const fn us(n: u64) -> Span {
    Span::micros(n)
}

/// `ProbeBW` waits for the time that it has drawn, and not a nanosecond less, in its first two cycles. In the second
/// the RTT is lower, so that it need not be measured anew.
fn wait_to_the_nanosecond(h: &mut Hand) {
    h.begin(ms(20));
    for (rtt, wait) in [(20, 2_745_781_757), (19, 2_444_359_217)] {
        while !["probe-bw-down", "probe-bw-cruise"].contains(&h.control.phase()) {
            let room = (h.control.state().cwnd - h.f.inflight).units(h.f.mss);
            h.send(room.min(100)).after(ms(rtt)).ack(usize::MAX);
        }
        let began = h.f.now;
        while h.f.now + ms(500) < began + Span(wait) {
            h.after(ms(430)).send(1).after(ms(rtt)).ack(1);
        }
        h.send(3);
        h.f.now = began + Span(wait);
        h.ack(1);
        for _ in 0..3 {
            h.send(10).after(ms(rtt)).ack(usize::MAX);
        }
    }
}

/// What an earlier connection had: its window, in bytes.
fn remembered(cwnd: u64, rtt: Span) -> Handshake {
    let mut hs = Handshake::new(Some(rtt));
    hs.remembered = Some(PathMemory { cwnd: Bytes(cwnd), rtt, rate: Rate(8_000_000) });
    hs
}

/// The connection begins with this window remembered.
fn resume(h: &mut Hand, cwnd: u64, rtt: Span) {
    (h.f.srtt, h.f.min_rtt) = (Some(rtt), Some(rtt));
    h.begin_with(&remembered(cwnd, rtt));
}

/// One full-sized packet is sent, and arrives after this time; so often.
fn one_by_one(h: &mut Hand, n: u64, rtt: Span, limit: Limit) {
    for _ in 0..n {
        h.send(1).after(rtt).ack_as(1, |a| a.limit = limit);
    }
}

/// At 12.8 MB/s a share of marks above 96 1024ths counts.
fn share_of_marks(h: &mut Hand) {
    h.f.marked = Some(Bytes::ZERO);
    resume(h, 200_000, ms(10));
    // The share becomes 31, 61, 89, 96 and 97.
    for (i, part) in [511, 511, 511, 208, 112].into_iter().enumerate() {
        h.send(128).after(ms(10));
        h.f.marked = h.f.marked.map(|m| m + Bytes(part * 125));
        h.ack(128);
        h.signal(Signal::Ecn, i == 0);
    }
}

/// A slower rate is not the path's if the host knows no RTT.
fn no_minimum_rtt(h: &mut Hand) {
    h.begin_with(&Handshake::new(None));
    h.send(10).after(ms(10)).ack_as(10, |a| a.rtt = None);
    for _ in 0..5 {
        h.send(5).after(ms(10)).ack_as(5, |a| a.rtt = None);
    }
}

/// What the rate fills in the least RTT is more than the window.
fn leaves_within_its_window(h: &mut Hand) {
    h.begin(us(1100));
    h.send(10).after(us(1100)).ack_as(10, |a| a.limit = Limit::Application);
    one_by_one(h, 20, us(1100), Limit::Application);
    h.send(5);
    h.lose(1, true);
}

/// A single loss is a share of 62 thousandths.
fn share_of_losses(h: &mut Hand) {
    h.begin(ms(100));
    h.send(100).after(ms(100)).ack(100);
    one_by_one(h, 20, ms(100), Limit::Application);
    h.send(2);
    h.lose(1, true);
}

/// A flight and a sixteenth are exactly the window; one round later it leaves.
fn resumes_and_fills(h: &mut Hand) {
    resume(h, 17_000, ms(10));
    h.send(16).after(ms(10)).ack(16);
    h.send(17).after(ms(10)).ack(17);
}

/// An ACK that advances nothing ends no round.
fn resumes_with_a_selective_ack(h: &mut Hand) {
    resume(h, 17_000, ms(10));
    h.send(17).after(ms(10)).sack(1);
    h.send(2).after(ms(10)).ack(18);
}

/// The RTT rises in the second round.
fn resumes_and_is_slowed(h: &mut Hand) {
    resume(h, 17_000, ms(10));
    h.send(16).after(ms(10)).ack(16);
    h.send(16).after(ms(15)).ack(16);
}

/// At 9.325 MB/s a delay of 6.3 ms is too much.
fn resumes_at_a_high_rate(h: &mut Hand) {
    resume(h, 3_000_000, ms(100));
    h.send(100).after(ms(100)).ack(100);
    h.send(1).after(us(106_300)).ack(1);
}

/// The RTT rises before anything is delivered.
fn slowed_without_a_rate(h: &mut Hand) {
    h.begin(ms(10));
    h.send(10).after(ms(10));
    h.ack_as(0, |a| a.rtt = Some(ms(10)));
    h.after(ms(40)).ack_as(0, |a| a.rtt = Some(ms(50)));
}

/// A window of three initial windows is not worth a jump, although it would be one.
fn little_remembered(h: &mut Hand) {
    h.shows_sent = true;
    resume(h, 30_000, ms(50));
    h.send(10).after(ms(50)).ack(10);
}

/// The ACK that confirms the path comes before the loss that it shows.
fn confirmed_in_recovery(h: &mut Hand) {
    resume(h, 60_000, ms(50));
    h.send(10).after(ms(50));
    h.f.in_recovery = true;
    h.ack(10);
}

/// All but the first packet arrived.
fn confirmed_selectively(h: &mut Hand) {
    resume(h, 60_000, ms(50));
    h.send(10).after(ms(50)).sack(9);
}

/// The first RTT is known too late.
fn confirmed_without_rtt(h: &mut Hand) {
    let mut hs = remembered(60_000, ms(50));
    hs.rtt = None;
    h.begin_with(&hs);
    h.send(10).after(ms(50)).ack_as(10, |a| a.rtt = None);
    h.send(20).after(ms(50)).ack(1);
}

/// Jumps to 30 packets, and sends `sent` of them within a round trip.
fn jump(h: &mut Hand, sent: u64) {
    resume(h, 60_000, ms(50));
    h.send(10).after(ms(50)).ack(10);
    h.send(sent).after(ms(50)).timer();
}

/// As much as the initial window is in flight: that is validated.
fn jump_of_an_initial_window(h: &mut Hand) {
    jump(h, 10);
    h.lose(1, true);
}

/// The last packet of the jump arrives, and one after it is lost.
fn validated_exactly(h: &mut Hand) {
    jump(h, 20);
    h.after(ms(1)).ack(20);
    h.send(1).lose(1, true);
}

/// All but one packet of the jump arrive, and more than twice its size after it.
fn not_validated_selectively(h: &mut Hand) {
    jump(h, 20);
    h.sack(19);
    for _ in 0..2 {
        h.send(19).after(ms(50)).sack(19);
    }
    h.lose(1, true);
}

/// Ten packets arrive at 8 Mbit/s, and the eleventh, the selected one, 21 ms after it was sent.
fn cycle(h: &mut Hand, between: fn(&mut Hand), end: fn(&mut Hand)) {
    h.begin(ms(50));
    h.send(10).after(ms(50)).ack(1);
    between(h);
    for _ in 0..9 {
        h.after(ms(1)).ack(1);
    }
    h.at(ms(71));
    end(h);
}

/// The rate fills exactly the window.
fn target_is_the_window(h: &mut Hand) {
    cycle(h, |h| _ = h.send(1), |h| h.ack(1));
}

/// What was the newest packet when the cycle began is sent again before the selected one.
fn probe_before_the_selected(h: &mut Hand) {
    let end = |h: &mut Hand| {
        h.send(1).after(ms(21)).ack(2);
    };
    cycle(h, Hand::probe, end);
}

/// The ACK that ends the cycle comes before the loss that it shows.
fn cycle_ends_in_recovery(h: &mut Hand) {
    let end = |h: &mut Hand| {
        h.f.in_recovery = true;
        h.ack(1);
    };
    cycle(h, |h| _ = h.send(1), end);
}

/// Packets arrive at these times, in nanoseconds, with this RTT.
fn arrive(h: &mut Hand, rtt: Span, times: &[u64]) {
    for t in times {
        h.at(Span(*t)).ack_as(1, |a| a.rtt = Some(rtt));
    }
}

/// A train as long as half the RTT less a nanosecond.
fn train_just_below_half(h: &mut Hand) {
    h.begin(ms(20));
    h.send(20);
    let m = 1_000_000;
    arrive(h, ms(20), &[20 * m, 22 * m, 24 * m, 26 * m, 28 * m, 30 * m - 1]);
}

/// A round with an RTT in milliseconds, and one with another, in nanoseconds.
fn rtt_above(h: &mut Hand, first: u64, second: u64) {
    h.begin(ms(first));
    h.send(20).after(ms(first)).ack(20);
    h.send(8).after(Span(second));
    (0..8).for_each(|_| h.ack(1));
}

/// At 160 Mbit/s the bursts of the host lengthen the longest train by 0.4 ms, to 5.4 ms.
fn train_and_bursts(h: &mut Hand) {
    (h.f.pacing_rate, h.f.gso_max) = (Some(Rate(160_000_000)), Bytes(4000));
    h.begin(ms(10));
    h.send(20);
    arrive(h, ms(10), &[10_000_000, 12_000_000, 14_000_000, 15_350_000, 15_450_000]);
}

/// A train of 5.2 ms at a pacing rate of next to nothing.
fn train_at(h: &mut Hand, rate: u64) {
    (h.f.pacing_rate, h.f.gso_max) = (Some(Rate(rate)), Bytes(4000));
    h.begin(ms(10));
    h.send(20);
    arrive(h, ms(10), &[10_000_000, 12_000_000, 14_000_000, 15_200_000]);
}

/// After the first sample the RTT is more than twice as long.
fn rtt_doubles(h: &mut Hand) {
    h.begin(ms(20));
    h.send(20).after(ms(20)).ack(1);
    h.after(ms(25));
    (0..12).for_each(|_| h.ack(1));
}

/// Slow start to a threshold of 40 packets after a timeout, up to this window.
fn again(h: &mut Hand, packets: u64) {
    h.begin(ms(20));
    h.send(60).after(ms(20)).ack(60);
    h.send(2).after(ms(300)).time_out();
    h.send(packets - 1).after(ms(20)).ack(packets as usize - 1);
}

/// ACKs that advance nothing, 2 ms apart: a train of 12 ms.
fn train_of_nothing(h: &mut Hand) {
    for _ in 0..6 {
        h.after(ms(2)).ack_as(0, |a| (a.bytes, a.rtt) = (Bytes::ZERO, Some(ms(20))));
    }
}

/// Whether it had found something shows after an idle time: then it looks no more.
fn looks_again(h: &mut Hand) {
    h.after(ms(5));
    h.ack(usize::MAX);
    h.idle(Span::secs(1));
    h.send(5).after(ms(20)).ack(1);
    train_of_nothing(h);
    h.ack(1);
}

/// A train while the window is exactly the threshold.
fn found_at_the_threshold(h: &mut Hand) {
    again(h, 40);
    h.send(5);
    train_of_nothing(h);
    looks_again(h);
}

/// An episode after which the window grew above the threshold proves spurious.
fn found_above_the_threshold(h: &mut Hand) {
    again(h, 30);
    h.send(2).lose(1, true);
    h.recover(Bytes::ZERO, false);
    for _ in 0..40 {
        h.send(60).after(ms(20)).ack(60);
    }
    h.recover(Bytes::ZERO, true);
    h.send(5).after(ms(20)).ack_as(1, |a| a.bytes = Bytes::ZERO);
    train_of_nothing(h);
    looks_again(h);
}

/// A timeout in whose slow start something is found proves spurious.
fn found_before_undone(h: &mut Hand) {
    again(h, 20);
    h.send(5).after(ms(20)).ack(1);
    train_of_nothing(h);
    h.recover(Bytes::ZERO, true);
    h.after(ms(5)).ack(1);
}

/// The last packet of the jump is sent twice before anything arrives.
fn probe_in_the_jump(h: &mut Hand) {
    h.f.unsent = Some(Bytes(50_000));
    h.begin(ms(50));
    h.send(49).probe();
    h.after(ms(50)).ack(1);
    h.lose(5, true);
    h.recover(Bytes(5000), false);
}

/// The pairs are complete, and no RTT is known.
fn pairs_without_rtt(h: &mut Hand) {
    h.begin_with(&Handshake::new(None));
    h.send(10).after(ms(50));
    for _ in 0..6 {
        h.after(ms(1)).ack_as(1, |a| a.rtt = None);
    }
}

/// 8 Mbit/s fill 13 packets in 13 ms.
fn estimate_is_the_window(h: &mut Hand) {
    h.begin(ms(13));
    h.send(10);
    arrive(h, ms(13), &[13_000_000, 14_000_000, 15_000_000, 16_000_000, 17_000_000]);
}

/// 50 packets are granted.
fn granted(h: &mut Hand) {
    (h.f.srtt, h.f.min_rtt) = (Some(ms(52)), Some(ms(52)));
    let mut hs = Handshake::new(Some(ms(52)));
    hs.granted = Some(Rate(8_000_000));
    h.begin_with(&hs);
    h.send(50).after(ms(52)).ack(1);
}

/// The handshake of QUIC has delivered data.
fn handshake_delivers(h: &mut Hand) {
    h.f.delivered = Bytes(9000);
    granted(h);
    h.ack(20);
    h.lose(5, true);
}

/// All but the first packets of the grant arrive.
fn granted_selectively(h: &mut Hand) {
    granted(h);
    h.sack(10);
    h.lose(1, true);
}

/// The host's minimum RTT is next to nothing, and samples are of 20 ms.
fn coarse_minimum(h: &mut Hand, min: u64) {
    h.begin(Span(min));
    for n in [10, 20] {
        h.send(n).after(ms(20));
        for _ in 0..n {
            h.after(us(500)).ack_as(1, |a| a.rtt = Some(ms(20)));
        }
    }
    h.send(10).lose(1, true);
}

/// Eight packets in a round and then nine, of which one has this size, at one rate.
fn larger_flight(h: &mut Hand, size: u64) {
    h.begin(ms(20));
    h.send(8).after(ms(20)).ack(1);
    h.packet(Bytes(size));
    h.send(8);
    (0..7).for_each(|_| h.after(ms(1)).ack(1));
    h.after(ms(1)).ack(1);
    h.send(2);
    (0..10).for_each(|_| h.after(ms(1)).ack(1));
}

/// A queue of 2^63 bytes counts as one of 2^32.
fn queue_beyond_all_bounds(h: &mut Hand) {
    h.f.host_queue = Some(HostQueue { used: Bytes(3_865_470_066), limit: Bytes(1 << 63) });
    h.begin(ms(10));
    h.send(10).after(ms(10)).ack(10);
}

/// An error of a byte for a microsecond.
fn queue_and_no_integral(h: &mut Hand) {
    h.f.host_queue = Some(HostQueue { used: Bytes(899), limit: Bytes(1000) });
    h.begin(ms(10));
    h.send(11).after(ms(10)).ack(1);
    h.after(us(1)).ack(10);
}

/// What is sent falls from 20 packets a bin to five. The longest look-back is of 38 bins.
fn longest_look_back(h: &mut Hand) {
    h.begin(ms(10));
    h.packet(Bytes(60_000));
    for i in 0..74_u64 {
        h.packet(Bytes(1000 * (20 - (i / 3).min(15))));
        let rtt = match i {
            70 => us(138_250),
            72 => us(134_750),
            _ => ms(10),
        };
        h.after(us(3500)).ack_as(1, |a| a.rtt = Some(rtt));
    }
}

/// Nothing arrives for ten bins, and then the RTT is twice as long.
fn gap_of_a_window(h: &mut Hand) {
    h.begin(ms(10));
    h.send(10).after(ms(10)).ack(1);
    h.after(us(3500 * 10 + 1000)).ack_as(1, |a| a.rtt = Some(ms(20)));
    for _ in 0..60 {
        h.send(1).after(us(3500)).ack_as(1, |a| a.rtt = Some(ms(20)));
    }
}
