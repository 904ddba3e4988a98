//! What a receiver gains by shaping its ACKs: it holds them and releases them back to back, so that the path
//! seems fast.
//!
//! The measure is the growth of cwnd in a round: cwnd when the last packet of a round is acknowledged, over
//! cwnd when the last packet of the round before was. Standard slow start doubles. The path carries 24 Mbit/s
//! with 40 ms and a queue without a limit, and each ACK is of two packets, so that an honest receiver's ACKs
//! are 1 ms apart.

mod common;

use common::{engine, flow};
use slowstart::registry;
use slowstart::units::{Instant, Span};
use slowstart_sim::engine::End;
use slowstart_sim::tcp::profile::Profile;

const PATH: &str = "rate=24Mbit rtt=40ms queue=infinite ack_jitter=0";
/// ACKs held for a few packets, for some tens, for a round trip and more, and released back to back; and
/// released as an even train, of 52 bytes each, that is 2.4, 12 and 48 times as fast as the path.
const SHAPES: [&str; 10] = [
    "ack_aggregate=3ms",
    "ack_aggregate=10ms",
    "ack_aggregate=40ms",
    "ack_aggregate=150ms",
    "ack_aggregate=10ms ack_rate=1Mbit ack_queue=infinite",
    "ack_aggregate=10ms ack_rate=5Mbit ack_queue=infinite",
    "ack_aggregate=40ms ack_rate=1Mbit ack_queue=infinite",
    "ack_aggregate=40ms ack_rate=5Mbit ack_queue=infinite",
    "ack_aggregate=40ms ack_rate=20Mbit ack_queue=infinite",
    "ack_aggregate=150ms ack_rate=5Mbit ack_queue=infinite",
];

/// The largest growth of cwnd in a round. The first round is left out: a startup that sends at once what it
/// was told or remembers grows there without an ACK.
fn growth(startup: &str, path: &str) -> f64 {
    let mut e = engine(path, vec![flow(startup, Profile::LINUX_6_18)]);
    let (mut mark, mut last, mut round, mut most) = (0, None, 0, 0.0_f64);
    e.run_until(Instant::ZERO + Span::secs(4), |e| {
        let tx = &e.flows[0].ends[End::Server].tx;
        if mark == 0 {
            mark = tx.next().saturating_sub(1);
        } else if tx.board().una() > mark {
            let cwnd = tx.window() as f64;
            let factor = cwnd / last.unwrap_or(cwnd);
            if round >= 1 {
                most = most.max(factor);
            }
            (mark, last, round) = (tx.next(), Some(cwnd), round + 1);
        }
        false
    });
    most
}

/// The largest growth that was measured of those that gain more. `ess` jumps to an estimate of the rate of ACKs;
/// docs/reference/kernel.md states what other shapes gain from the kernel object. `suss` takes two rounds in one
/// for safe where ACKs come together each 10 ms; `hystart-picoquic` raises its window to half the highest rate
/// that it saw; `hybla` grows 2.88 times with an honest receiver, 8.3 % less.
const MORE: [(&str, f64); 4] = [("ess", 7.31), ("suss", 8.01), ("hystart-picoquic", 2.61), ("hybla", 3.155)];

#[test]
fn a_shaping_receiver_gains_at_most_what_an_honest_one_does() {
    let mut wrong = Vec::new();
    for entry in registry::all() {
        let honest = growth(entry.name, PATH);
        let shaped = SHAPES.map(|shape| growth(entry.name, &format!("{PATH} {shape}")));
        let most = shaped.into_iter().fold(0.0, f64::max);
        println!("{}: honest {honest:.2}, shaped at most {most:.2}", entry.name);
        // An ACK that is held covers more packets than the two of an honest one: the round is counted up to 8
        // % longer.
        let known = MORE.iter().find(|(name, _)| *name == entry.name);
        let allowed = known.map_or(honest.max(2.0) * 1.08, |(_, most)| *most);
        if most > allowed {
            wrong.push(format!("{}: {most:.2}, allowed {allowed:.2}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
