//! What a controller costs in a QUIC host: nanoseconds of elapsed time for each ACK frame, with the two
//! packets that it acknowledges and the two that it releases. Prints the table of docs/evidence/quic.md.
//! `cost [STARTUP...]`.
//!
//! The flow has 50 ms of round trip and at most 1000 packets in flight. The least of five runs counts.

use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_quic::host::{Host, INITIAL_PACKETS};
use std::collections::VecDeque;
use std::hint::black_box;

const MSS: Bytes = Bytes(1200);
const RTT: Span = Span::millis(50);
const FRAMES: u32 = 1_000_000;
const MOST_IN_FLIGHT: usize = 1000;

/// Plays the flow; returns the nanoseconds of an ACK frame. With numbers, the host is told what noq tells,
/// otherwise what quinn tells.
#[allow(clippy::disallowed_methods, reason = "it measures time")]
fn play(control: impl Controller, numbers: bool) -> f64 {
    let mut host = Host::new(control, Instant::ZERO, MSS);
    let (mut now, mut number) = (Instant::ZERO, 0);
    let mut flight: VecDeque<(u64, Instant)> = VecDeque::new();
    let begin = std::time::Instant::now();
    for _ in 0..FRAMES {
        while flight.len() < MOST_IN_FLIGHT && MSS * (flight.len() as u64 + 1) <= host.window() {
            host.on_packet_sent(now, MSS, number);
            flight.push_back((number, now));
            number += 1;
            now = now + Span::micros(1);
        }
        let newest = flight.get(1).map_or(now, |(_, at)| *at);
        now = now.max(newest + RTT);
        let mut largest = None;
        for (number, sent) in flight.drain(..2) {
            if numbers {
                host.on_packet_acked(now, sent, number, false);
            } else {
                host.on_bytes_acked(now, sent, MSS, false);
            }
            largest = Some(number);
        }
        host.on_cwnd_limited();
        host.set_inflight(MSS * flight.len() as u64);
        if numbers {
            host.on_ack_end(now, largest);
        } else {
            host.on_bytes_ack_end(now);
        }
        black_box(host.pacing_rate());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(FRAMES)
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let names = if given.is_empty() {
        ["standard", "hystart++", "search", "rapid-start", "careful-resume", "bbr"].map(String::from).to_vec()
    } else {
        given
    };
    println!("| Startup, then `cubic` | as noq tells it, ns | as quinn tells it, ns |\n|---|---|---|");
    for name in names {
        let entry = slowstart::registry::named(&name).expect("a name of the registry");
        let cubic = slowstart::avoidance::REGISTRY.iter().find(|e| e.name == "cubic").expect("it has CUBIC");
        let least = |numbers| {
            let run = |_| {
                let control = entry.algorithm.controller(&(cubic.make)(), MSS * INITIAL_PACKETS, 1);
                play(control, numbers)
            };
            (0..5).map(run).fold(f64::INFINITY, f64::min)
        };
        println!("| `{name}` | {:.0} | {:.0} |", least(true), least(false));
    }
}
