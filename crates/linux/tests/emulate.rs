//! The path on the real clock. Needs root and TUN devices; says so where it has neither.

mod common;

use common::Net;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use slowstart::units::{Bytes, Span};
use slowstart_lab::path::{Kind, PathSpec};
use slowstart_linux::emulate::{CLIENT, Emulation, SERVER, remove_stale_namespaces};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Each path is a thread before all others, and a machine has few processors: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn able(test: &str) -> Option<MutexGuard<'static, ()>> {
    let able = nix::unistd::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !able {
        println!("skipped: emulator test {test} (needs root and /dev/net/tun)");
    }
    able.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn start(line: &str, seed: u64) -> Emulation {
    let spec = PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
    Emulation::start(&spec, seed, true).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// The server sends so many bytes to the client, under Reno.
fn download(e: &Emulation, bytes: usize) {
    let listener = Net::within(e.server(), || TcpListener::bind((SERVER, 0))).expect("a port");
    setsockopt(&listener, TcpCongestion, &"reno".into()).expect("every kernel has it");
    let address = listener.local_addr().expect("bound");
    std::thread::scope(|s| {
        s.spawn(move || listener.accept().expect("a client").0.write_all(&vec![1; bytes]).expect("it reads"));
        let mut client = Net::within(e.client(), || TcpStream::connect(address)).expect("connects");
        let mut all = Vec::new();
        client.read_to_end(&mut all).expect("a stream");
        assert_eq!(all.len(), bytes);
    });
}

/// What it recorded, handed to the same path once more, has the same fate: the emulator adds nothing and loses nothing.
#[test]
fn what_happened_is_what_the_simulator_s_path_does() {
    let Some(_one) = able("what_happened_is_what_the_simulator_s_path_does") else { return };
    let line = "rate=50Mbit rtt=20ms queue=30packets loss=0.5% jitter=1ms drop_synack=1 random_drop=20%@20kB";
    let e = start(line, 7);
    download(&e, 4_000_000);
    let report = e.stop().expect("it ran");
    let mut path = PathSpec::load(line, None).unwrap().build(7);
    for (way, again) in [(&report.forward, &mut path.forward), (&report.back, &mut path.back)] {
        assert!(way.records.len() > 500, "{} packets", way.records.len());
        for f in &way.records {
            assert_eq!(again.pass(f.at, &f.packet), f.outcome);
        }
        let dropped = way.records.iter().filter(|f| f.outcome.is_err()).count() as u64;
        assert_eq!(dropped, way.dropped);
        assert_eq!(way.lateness.packets() + way.dropped + way.in_transit, way.entered);
        assert_eq!(way.refused, 0);
    }
    assert!(report.forward.dropped > 5, "{} dropped", report.forward.dropped);
    let syn_acks = report.forward.records.iter().filter(|f| f.packet.kind == Kind::SynAck);
    assert!(syn_acks.clone().count() >= 2 && syn_acks.clone().next().unwrap().outcome.is_err());
}

#[test]
fn round_trips_are_not_shorter_than_the_path() {
    let Some(_one) = able("round_trips_are_not_shorter_than_the_path") else { return };
    let e = start("rate=100Mbit rtt=50ms queue=1bdp", 1);
    let server = Net::within(e.server(), || UdpSocket::bind((SERVER, 7777))).expect("a port");
    let client = Net::within(e.client(), || UdpSocket::bind((CLIENT, 7777))).expect("a port");
    for s in [&server, &client] {
        s.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    let mut buffer = [0; 64];
    for n in 0..20_u8 {
        client.send_to(&[n; 20], (SERVER, 7777)).expect("sent");
        let (got, from) = server.recv_from(&mut buffer).expect("arrives");
        server.send_to(&buffer[..got], from).expect("sent");
        client.recv(&mut buffer).expect("arrives");
        assert_eq!(buffer[0], n);
    }
    let report = e.stop().expect("it ran");
    // By the path's own account: 25 ms each way, and 48 bytes at 100 Mbit/s on the way back from the server.
    let took =
        |w: &slowstart_linux::emulate::DirectionStats| w.records[0].outcome.unwrap().since(w.records[0].at);
    assert_eq!((took(&report.back), took(&report.forward)), (Span::millis(25), Span(25_003_840)));
    let between = |i: usize| report.forward.records[i].at.since(report.back.records[i].at);
    let least = (0..20).map(between).min().unwrap();
    assert!(least >= Span::millis(25), "{least:?}");
    println!("server's answer after {least:?} at the least; forward {}", report.forward.lateness);
}

/// The rate is a ceiling that a transfer reaches: never above (by arithmetic), and not below, if time was kept.
#[test]
fn the_link_is_as_fast_as_it_says() {
    let Some(_one) = able("the_link_is_as_fast_as_it_says") else { return };
    let e = start("rate=100Mbit rtt=20ms queue=2bdp", 1);
    let first = e.caveats.is_empty();
    download(&e, 25_000_000);
    let report = e.stop().expect("it ran");
    let way = &report.forward;
    // The middle half: half of three BDP, which Reno falls to, still fills the link.
    let arrived: Vec<_> =
        way.records.iter().filter_map(|f| Some((f.outcome.ok()?, f.packet.bytes))).collect();
    let (from, to) = (arrived.len() / 4, arrived.len() * 3 / 4);
    let bytes = Bytes(arrived[from + 1..=to].iter().map(|(_, b)| u64::from(*b)).sum());
    let rate = slowstart::units::Rate::new(bytes, arrived[to].0.since(arrived[from].0)).unwrap();
    println!("100 Mbit/s as {:.2}; {}", rate.0 as f64 / 1e6, way.lateness);
    assert!(rate.0 <= 100_000_100, "{rate:?}");
    if report.valid() {
        // A host that stops the machine for some milliseconds moves the mean (docs/kernel.md has it, by a benchmark), not
        // the median: that the thread slept too long would.
        let half = way.lateness.quantile_per_mille(500);
        assert!(!first || half < Span::micros(50), "{half:?}");
        // Whether the sender always fills the link is the machine's doing too (98.3 was seen): one per cent is for a
        // benchmark to show, and what a machine that is busy cannot cross is held here.
        assert!(rate.0 >= 50_000_000, "{rate:?}");
    } else {
        println!("skipped: the rate from below (this machine did not keep time)");
    }
}

#[test]
fn nothing_stays_behind() {
    let Some(_one) = able("nothing_stays_behind") else { return };
    let e = start("rate=100Mbit rtt=2ms queue=1bdp", 1);
    let (server, client) = (e.server().to_string(), e.client().to_string());
    let there = |name: &str| Path::new("/run/netns").join(name).exists();
    assert!(there(&server) && there(&client));
    drop(e);
    assert!(!there(&server) && !there(&client));
    // As if a process had been killed: its namespaces bear the number of one that is gone.
    let mut gone = Command::new("true").spawn().unwrap();
    let orphan = format!("slowstart-{}-0-server", gone.id());
    gone.wait().unwrap();
    common::ip(&format!("netns add {orphan}"));
    assert!(remove_stale_namespaces() >= 1);
    assert!(!there(&orphan));
}
