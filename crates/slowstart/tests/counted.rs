//! [`Ack::counted`]: which startups need no more than what a host without a record of packets knows.

use slowstart::avoidance;
use slowstart::control::{Controller, Exited};
use slowstart::registry::{self, Algorithm, AnyController};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, COUNTED, Facts, Handshake, PathMemory, Sent};
use std::collections::VecDeque;

const MSS: Bytes = Bytes(1000);

/// A path of this rate, as the time of a packet, and this RTT; an ACK every `every` packets.
#[derive(Copy, Clone)]
struct Path {
    each: Span,
    rtt: Span,
    every: usize,
}

fn controller(algorithm: &Algorithm) -> AnyController {
    let reno = avoidance::REGISTRY.iter().find(|e| e.name == "reno").expect("it is there");
    algorithm.controller(&(reno.make)(), MSS * 10, 1)
}

/// Windows after each ACK, and the exit, with a record of each packet or without.
fn windows(algorithm: &Algorithm, path: Path, counted: bool) -> (Vec<u64>, Option<Exited>) {
    let mut c = controller(algorithm);
    let mut f = Facts::new(MSS, MSS * 10);
    // What a startup may ask for besides, so that none is standard slow start for want of it.
    f.supports_pacing = true;
    f.unsent = Some(MSS * 5000);
    let mut hs = Handshake::new(Some(path.rtt));
    hs.granted = Some(Rate(8_000_000));
    hs.remembered = Some(PathMemory { cwnd: MSS * 40, rtt: path.rtt, rate: Rate(6_000_000) });
    let mut exited = c.on_established(&f, &hs).exited;
    let (mut delivered_at, mut first_sent_at) = (Instant::ZERO, Instant::ZERO);
    let mut flight: VecDeque<(Sent, Instant)> = VecDeque::new();
    let (mut free, mut sent, mut all) = (Instant::ZERO, Bytes::ZERO, Vec::new());
    while all.len() < 900 {
        while f.inflight + MSS <= c.state().cwnd {
            sent += MSS;
            f.inflight += MSS;
            f.next = SendOrder::new(sent.0);
            let packet = Sent {
                mark: f.next,
                at: f.now,
                bytes: MSS,
                sent_total: sent,
                inflight: f.inflight,
                delivered: f.delivered,
                delivered_at,
                first_sent_at,
                cwnd: c.state().cwnd,
                ..Sent::default()
            };
            if !counted && c.needs_on_sent() {
                c.on_sent(&f, &packet);
            }
            free = free.max(f.now) + path.each;
            flight.push_back((packet, free + path.rtt));
        }
        let covered = path.every.min(flight.len());
        let (newest, at) = flight.drain(..covered).next_back().expect("the window is a packet at least");
        if let Some(wake) = c.state().wake.filter(|wake| *wake <= at) {
            f.now = f.now.max(wake);
            exited = exited.or(c.on_timer(&f).exited);
        }
        let (len, rtt) = (MSS * covered as u64, at.since(newest.at));
        let ack = if counted {
            let inflight = f.inflight - len;
            Ack::counted(&mut f, at, len, inflight, Some(rtt))
        } else {
            let prior = f.inflight;
            (f.now, f.inflight, f.delivered) = (at, f.inflight - len, f.delivered + len);
            f.min_rtt = Some(f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            f.srtt = Some(f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
            let mut ack = Ack::new(newest, len, prior);
            ack.rtt = Some(rtt);
            ack
        };
        (delivered_at, first_sent_at) = (at, newest.at);
        exited = exited.or(c.on_ack(&f, &ack).exited);
        all.push(c.state().cwnd.0);
    }
    (all, exited)
}

const PATHS: [Path; 4] = [
    Path { each: Span::micros(800), rtt: Span::millis(50), every: 1 },
    Path { each: Span::micros(800), rtt: Span::millis(50), every: 2 },
    Path { each: Span::micros(80), rtt: Span::millis(20), every: 10 },
    Path { each: Span::millis(4), rtt: Span::millis(200), every: 1 },
];

#[test]
fn the_list_has_those_whose_windows_are_the_same() {
    let same = |a: &Algorithm| PATHS.iter().all(|p| windows(a, *p, true) == windows(a, *p, false));
    let found: Vec<&str> = registry::all().filter(|e| same(&e.algorithm)).map(|e| e.name).collect();
    assert_eq!(found, COUNTED);
}

/// Of those with a rule of their own some leave by it on these paths: the comparison is not of windows that
/// nothing bounds.
#[test]
fn listed_startups_leave_by_their_rules() {
    let leaves = |name: &&&str| {
        let a = registry::named(name).expect("it is listed").algorithm;
        PATHS.iter().any(|p| windows(&a, *p, true).1.is_some())
    };
    assert!(COUNTED.iter().filter(leaves).count() > 5);
}
