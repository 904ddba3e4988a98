//! Measures the timing of the emulator: one JSON line per case.
//!
//! `cargo bench -p slowstart-linux --bench emulator [-- CASE]`, as root. Other load on the machine disturbs
//! the figures.

#![allow(clippy::disallowed_methods, reason = "the benchmark measures real time")]

use nix::sys::socket::{setsockopt, sockopt::SndBuf};
use serde_json::{Value, json};
use slowstart::units::{Bytes, Rate, Span};
use slowstart_linux::emulate::{CLIENT, DirectionStats, Emulation, Lateness, SERVER};
use slowstart_sim::path::PathSpec;
use slowstart_study::stats::quantile;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TIMES: u64 = 5;

type Case = (&'static str, fn(&str) -> Value);

fn start(path: &str, seed: u64) -> Emulation {
    let spec = PathSpec::load(path, None).expect("a path");
    Emulation::start(&spec, seed, false).expect("root and /dev/net/tun")
}

fn socket(ns: &str, address: &str) -> UdpSocket {
    Emulation::in_namespace(ns, || Ok(UdpSocket::bind((address, 7777)).expect("a port")))
        .expect("the namespace")
}

fn late(l: &Lateness) -> Value {
    let us = |s: Span| s.0 as f64 / 1000.0;
    json!({ "mean_us": us(l.mean()), "p99_below_us": us(l.nearest_rank_bound(990)), "max_us": us(l.max()), "valid": l.valid() })
}

/// Returns the rate of released IP packets, in bit/s, from the first to the last.
fn rate(w: &DirectionStats) -> Option<f64> {
    let (first, last) = w.span?;
    Some(Rate::new(Bytes(w.bytes), last.since(first))?.0 as f64)
}

/// Sends datagrams at 1.1 times the rate of the link, so that it is never idle.
fn datagrams(name: &str, mbit: u64) -> Value {
    let runs = (1..=TIMES).map(|seed| {
        let e = start(&format!("rate={mbit}Mbit rtt=20ms queue=4bdp"), seed);
        let (from, to) = (socket(e.server(), SERVER), socket(e.client(), CLIENT));
        setsockopt(&from, SndBuf, &(8 << 20)).expect("root may");
        let over = AtomicBool::new(false);
        thread::scope(|s| {
            s.spawn(|| {
                let mut buffer = [0; 2048];
                to.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
                while !over.load(Ordering::Relaxed) {
                    let _ = to.recv(&mut buffer);
                }
            });
            let (began, mut sent) = (Instant::now(), 0);
            while began.elapsed() < Duration::from_secs(4) {
                let due = began.elapsed().as_micros() as u64 * mbit * 11 / 10 / 8 / 1500;
                while sent < due {
                    from.send_to(&[0; 1472], (CLIENT, 7777)).expect("sent");
                    sent += 1;
                }
                thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Ordering::Relaxed);
        });
        let w = e.stop().expect("it ran").forward;
        json!({ "mbit": rate(&w).unwrap_or(0.0) / 1e6, "refused": w.refused, "late": late(&w.lateness) })
    });
    json!({ "case": name, "configured_mbit": mbit, "runs": runs.collect::<Vec<_>>() })
}

/// Downloads over TCP with CUBIC.
fn stream(name: &str, mbit: u64) -> Value {
    let runs = (1..=TIMES).map(|seed| {
        let e = start(&format!("rate={mbit}Mbit rtt=20ms queue=2bdp"), seed);
        let listener =
            Emulation::in_namespace(e.server(), || Ok(TcpListener::bind((SERVER, 0)).expect("a port")));
        let listener = listener.expect("the namespace");
        let address = listener.local_addr().expect("bound");
        let bytes = vec![1; (mbit * 1_000_000 / 8 * 4) as usize];
        let (mut took, mut got) = (Duration::ZERO, 0);
        thread::scope(|s| {
            s.spawn(|| listener.accept().expect("a client").0.write_all(&bytes).expect("it reads"));
            let client =
                Emulation::in_namespace(e.client(), || Ok(TcpStream::connect(address).expect("connects")));
            let (mut client, mut buffer) = (client.expect("the namespace"), vec![0; 1 << 18]);
            let mut since = None;
            while let Ok(n @ 1..) = client.read(&mut buffer) {
                // The first quarter is left out: it contains the startup.
                if got > bytes.len() / 4 {
                    since.get_or_insert((Instant::now(), got));
                }
                got += n;
            }
            if let Some((at, then)) = since {
                (took, got) = (at.elapsed(), got - then);
            }
        });
        let w = e.stop().expect("it ran").forward;
        let payload = got as f64 * 8.0 / took.as_secs_f64() / 1e6;
        json!({ "ip_mbit": payload * 1500.0 / 1448.0, "refused": w.refused, "late": late(&w.lateness) })
    });
    json!({ "case": name, "configured_mbit": mbit, "runs": runs.collect::<Vec<_>>() })
}

/// Measures the RTT of 60 datagrams.
fn round_trips(name: &str) -> Value {
    let runs = (1..=TIMES).map(|seed| {
        let e = start("rate=100Mbit rtt=50ms queue=1bdp", seed);
        let (server, client) = (socket(e.server(), SERVER), socket(e.client(), CLIENT));
        let mut took: Vec<f64> = thread::scope(|s| {
            s.spawn(|| {
                let mut buffer = [0; 64];
                for _ in 0..60 {
                    let (n, from) = server.recv_from(&mut buffer).expect("arrives");
                    server.send_to(&buffer[..n], from).expect("sent");
                }
            });
            let mut buffer = [0; 64];
            let one = |_| {
                let at = Instant::now();
                client.send_to(&[0; 20], (SERVER, 7777)).expect("sent");
                client.recv(&mut buffer).expect("arrives");
                at.elapsed().as_secs_f64() * 1e3
            };
            (0..60).map(one).collect()
        });
        took.sort_by(f64::total_cmp);
        let w = e.stop().expect("it ran").back;
        json!({ "min_ms": took[0], "median_ms": quantile(&took, 0.5), "p95_ms": quantile(&took, 0.95), "max_ms": took[59], "late": late(&w.lateness) })
    });
    json!({ "case": name, "configured_ms": 50, "runs": runs.collect::<Vec<_>>() })
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let cases: [Case; 5] = [
        ("round-trips", round_trips),
        ("datagrams-100", |n| datagrams(n, 100)),
        ("stream-100", |n| stream(n, 100)),
        ("datagrams-500", |n| datagrams(n, 500)),
        ("stream-500", |n| stream(n, 500)),
    ];
    for (name, case) in cases {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!("{}", case(name));
        }
    }
}
