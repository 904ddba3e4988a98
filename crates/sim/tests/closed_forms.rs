//! Closed forms for standard slow start in an ideal world, and what the engine measures:
//! `docs/evidence/algorithms.md` 6.3, the `HyStart` paper's Figure 1, and the conservation laws of a
//! simulator.
//!
//! A window that doubles in each RTT fills path and buffer at `1 + b` BDP. The first drop is detected one RTT
//! (of a full queue) later, in which the window grows by the factor `g` once more: it peaks at `g (1 + b)`,
//! and `(g - 1) (1 + b)` is dropped. `g` is 2 if each packet is acknowledged, and 3/2 if every second one is
//! and each ACK grows the window by one segment.

mod common;

use common::{engine, flow, run, run_to_exit, sized, with};
use slowstart::control::Controller;
use slowstart::step::Exit;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::{BIN, End, Flow};
use slowstart_sim::tcp::profile::Profile;

/// One ACK for every second packet, each worth one segment (`ideal` counts ACKs).
const EVERY_SECOND: &[(&str, &str)] = &[("ack", "delayed")];

/// Returns the window when the first loss was detected, and the number of packets dropped of those sent until
/// then.
fn overshoot(path: &str, profile: Profile) -> (f64, f64) {
    let e = run_to_exit(path, vec![flow("standard", profile)], Span::secs(60));
    let truth = &e.flows[0].truth;
    let exit = truth.exit.expect("it fills the buffer within a minute");
    assert_eq!(exit.why, Exit::Loss);
    assert_eq!(truth.dropped, truth.dropped_in_startup, "nothing was sent after the loss was seen");
    (exit.detected_cwnd.0 as f64 / f64::from(profile.mss), truth.dropped as f64)
}

fn within(what: &str, got: f64, want: f64, share: f64) {
    println!("{what}: {got:.1}, by arithmetic {want:.1}");
    assert!((got / want - 1.0).abs() < share, "{what}: {got}, not {want}");
}

const LINK: &str = "rate=400Mbit rtt=360ms ack_jitter=0";

/// The sender of the `HyStart` paper: packets of 1460 bytes on the wire, an initial window of 3 (Linux
/// 2.6.23).
fn of_2_6(knobs: &[(&str, &str)]) -> Profile {
    let mut profile = Profile { iw: 3, ..with(Profile::IDEAL, &[("timestamps", "off"), ("mss", "1420")]) };
    for (key, value) in knobs {
        profile.set(key, value).expect("a knob");
    }
    assert_eq!(profile.packet(), 1460);
    profile
}

#[test]
fn the_first_overshoot_is_what_the_buffer_and_the_growth_say() {
    let bdp = 400e6 * 0.36 / 8.0 / 1460.0;
    for b in [0.5, 1.0, 2.0] {
        for (acks, knobs, g) in [("each packet", &[][..], 2.0), ("every second", EVERY_SECOND, 1.5)] {
            let (peak, drops) = overshoot(&format!("{LINK} queue={b}bdp"), of_2_6(knobs));
            within(&format!("{b} BDP, {acks}: peak"), peak, g * (1.0 + b) * bdp, 0.01);
            within(&format!("{b} BDP, {acks}: drops"), drops, (g - 1.0) * (1.0 + b) * bdp, 0.01);
        }
    }
}

/// The closed form assumes that the queue is not empty between rounds when it overflows. If each packet is
/// acknowledged and the buffer is smaller than a BDP, that depends on where the rounds begin. A round that
/// begins with a window `w` smaller than the BDP finds the queue empty and fills it with the difference
/// between arrivals (two for each packet acknowledged) and departures: at a window of `w + b`, not `1 + b`.
/// The loss is detected at twice that, and the pause between this round and the next, `1 - w`, lets as many
/// packets into the queue that otherwise would have been dropped.
///
/// From 3 segments of the paper's packets, the round before the overflow ends at 3 * 2^12 = 12,288 packets of
/// a BDP of 12,329, which is why the table has 2.99 and 1.49. From 10 full packets it ends at 10 * 2^10 =
/// 10,240 of 12,000, and half a BDP of buffer gives 2.71 and 1.21. A buffer of one BDP or more overflows in a
/// round that began with a full path, whatever `w`.
#[test]
fn a_buffer_below_the_bdp_overflows_earlier_if_the_queue_has_emptied() {
    let bdp = 12_000.0;
    for (b, w) in [(0.5, 10_240.0), (0.7, 10_240.0), (1.0, bdp), (2.0, bdp)] {
        let (peak, drops) = overshoot(&format!("{LINK} queue={b}bdp"), Profile::IDEAL);
        within(&format!("{b} BDP from 10: peak"), peak, 2.0 * (w + b * bdp), 0.001);
        within(&format!("{b} BDP from 10: drops"), drops, 2.0 * w + b * bdp - bdp, 0.001);
        // With a growth of 1.5, the buffer holds what a round adds until the path is full.
        let (peak, drops) = overshoot(&format!("{LINK} queue={b}bdp"), with(Profile::IDEAL, EVERY_SECOND));
        within(&format!("{b} BDP from 10, every second: peak"), peak, 1.5 * (1.0 + b) * bdp, 0.01);
        within(&format!("{b} BDP from 10, every second: drops"), drops, 0.5 * (1.0 + b) * bdp, 0.01);
    }
}

/// Ha & Rhee 2008, Figure 1: "12,333 packets" of buffer, 1 BDP; the window reaches 37,000 packets and 12,330
/// are lost. The BDP is that of packets of 1460 bytes on the wire, without timestamps: 400 Mbit/s * 360 ms /
/// 1460 B = 12,329.
#[test]
fn figure_1_of_the_hystart_paper() {
    let (peak, drops) = overshoot(&format!("{LINK} queue=12333packets"), of_2_6(EVERY_SECOND));
    within("peak", peak, 37_000.0, 0.01);
    within("drops", drops, 12_330.0, 0.01);
}

#[test]
fn the_window_doubles_each_round_trip() {
    let mut e =
        engine("rate=10Gbit rtt=100ms queue=infinite ack_jitter=0", vec![flow("standard", Profile::IDEAL)]);
    for n in 0..9 {
        // The server sends after one and a half RTTs; half an RTT later all ACKs of its rounds have arrived.
        e.run(Instant::ZERO + Span::millis(100 * (n + 2)));
        let cwnd = e.flows[0].ends[End::Server].tx.control().state().cwnd;
        assert_eq!(cwnd.0, (10 * 1448) << n, "after {n} round trips");
    }
}

#[test]
fn with_every_second_packet_acknowledged_the_window_grows_by_half() {
    let profile = with(Profile::IDEAL, EVERY_SECOND);
    let mut e = engine("rate=10Gbit rtt=100ms queue=infinite ack_jitter=0", vec![flow("standard", profile)]);
    let (mut least, mut most) = (10, 10);
    for n in 0..12 {
        e.run(Instant::ZERO + Span::millis(100 * (n + 2)));
        let cwnd = e.flows[0].ends[End::Server].tx.control().state().cwnd.0 / 1448;
        assert!((least..=most).contains(&cwnd), "after {n} round trips: {cwnd}, not {least} to {most}");
        // The ACK of the odd packet of a flight waits for the timer, and so may that of the packets it
        // releases.
        least = cwnd + (cwnd - 2) / 2;
        most = cwnd + cwnd / 2 + 1;
    }
}

fn sent(f: &Flow) -> u64 {
    f.ends[f.sender()].tx.counters.packets
}

fn arrived(f: &Flow) -> u64 {
    f.truth.bins().iter().map(|b| u64::from(*b)).sum::<u64>() / u64::from(f.spec.profile.mss)
}

/// With a window that always covers the path, what arrives is the link's rate less headers, to the packet.
#[test]
fn a_full_link_delivers_its_rate_less_headers() {
    // The receive window is the limit: three BDPs of 400 packets.
    let profile = with(Profile::IDEAL, &[("rmem", "1800000")]);
    let mut e = engine("rate=48Mbit rtt=100ms queue=infinite ack_jitter=0", vec![flow("standard", profile)]);
    let mut last = None;
    for s in 5..15 {
        e.run(Instant::ZERO + Span::secs(s));
        let now = e.flows[0].delivered() / 1448;
        // 48 Mbit/s are 4000 packets of 1500 bytes per second.
        if let Some(last) = last {
            assert_eq!(now - last, 4000, "in second {s}");
        }
        last = Some(now);
    }
}

#[test]
fn cubic_keeps_a_link_with_one_bdp_of_buffer_busy() {
    for (name, profile) in
        [("ideal", Profile::IDEAL), ("linux", Profile::LINUX_6_18), ("fq", Profile::LINUX_6_18_FQ)]
    {
        let mut e = engine("rate=48Mbit rtt=50ms queue=1bdp ack_jitter=0", vec![flow("hystart", profile)]);
        e.run(Instant::ZERO + Span::secs(10));
        let before = arrived(&e.flows[0]);
        e.run(Instant::ZERO + Span::secs(40));
        let f = &e.flows[0];
        assert!(f.truth.dropped > 0, "the buffer overflows now and then");
        // Every packet that arrives is new, except for spurious retransmissions, which do not occur on this
        // path.
        let packets = arrived(f) - before;
        assert!((119_990..=120_001).contains(&packets), "{name}: {packets} of 120000");
        let useful = f.ends[End::Server].tx.board().delivered / 1448;
        assert!(arrived(f) - useful <= f.ends[End::Server].tx.board().packets_inflight().into(), "{name}");
    }
}

/// Sent = delivered + dropped + in flight, at several times of an overloaded run: the packets in flight have
/// arrived, and no others, when the current queue has drained and the propagation delay has passed.
#[test]
fn packets_are_conserved() {
    for path in ["rate=20Mbit rtt=60ms queue=40packets", "rate=20Mbit rtt=60ms queue=1bdp loss=1%"] {
        for profile in Profile::ALL {
            // A receive window that cuts no segment.
            let profile = with(*profile, &[("rmem_first", "8388608")]);
            let mut e = engine(path, vec![flow("standard", profile)]);
            let mut seen = 0;
            for step in 1..200 {
                // Not a multiple of any period of the run.
                e.run(Instant(step * 97_000_003));
                let f = &e.flows[0];
                let (sent, dropped) = (sent(f), f.truth.dropped);
                let clear = e.path().forward.queue_delay(e.now()) + Span::millis(30);
                let mut later = e.clone();
                // Packets that have arrived by then were sent by now: the queue is first in, first out.
                later.run(e.now() + clear);
                let total = arrived(&later.flows[0]);
                assert_eq!(total, sent - dropped, "{path}, {}, at {}", profile.name, e.now().0);
                seen = sent;
            }
            assert!(seen > 1000, "{path}, {}: only {seen} packets", profile.name);
        }
    }
}

#[test]
fn every_packet_of_a_complete_transfer_is_counted() {
    for profile in Profile::ALL {
        let size = 2000 * u64::from(profile.mss);
        let path = "rate=20Mbit rtt=60ms queue=30packets loss=0.5%";
        let e = run(path, vec![sized("standard", *profile, size)], Span::secs(120));
        let f = &e.flows[0];
        assert_eq!(f.delivered(), size, "{}", profile.name);
        assert!(f.ends[End::Server].tx.done(), "{}: everything is acknowledged", profile.name);
        assert_eq!(e.cost.packets, arrived(f) + f.truth.dropped, "{}", profile.name);
        let fin = u64::from(profile.fin);
        let once = sent(f) - f.ends[End::Server].tx.counters.retransmitted;
        assert_eq!(once, 2000 + fin, "{}: each segment is sent once for the first time", profile.name);
    }
    assert_eq!(BIN, Span::millis(10));
}
