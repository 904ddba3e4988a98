//! Maps: path memory, which a connection leaves for the next; and maps that are full: the ring of events,
//! path memory, the storage of connections. The connection goes on, and what is lost is counted or is the
//! entry that was used longest ago.

use crate::common::{Net, many, transfer, with_control};
use crate::{able, spec};
use nix::time::{ClockId, clock_gettime};
use slowstart_linux::{Kind, MemoryEntry, MemoryScope, TABLE, Verb, load};
use std::cell::{Cell, RefCell};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

#[test]
fn a_ring_that_is_full_drops_events_and_the_connection_goes_on() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("ring");
    let held = load(&spec("standard")).expect("loads");
    held.watch(2).expect("live");
    let dropped = || held.counts().expect("counts").dropped_events;
    let mut pair = transfer(&net, Some(&held.name));
    // Nobody reads the ring, which has room for about 14,000 events. Each connection writes one when it
    // begins and one when it ends. A process may have 1024 files open.
    let full = (0..50).any(|_| {
        drop(many(&net, &held.name, 400));
        dropped() > 0
    });
    assert!(full, "20,000 connections did not fill the ring");
    pair.send(1_000_000);
    assert_eq!(pair.control(), held.name);
    let read = Cell::new(0);
    let ring = held.events(|_| read.set(read.get() + 1)).expect("a ring");
    ring.consume().expect("readable");
    assert!(read.get() > 10_000, "{} events", read.get());
    // With room again nothing more is lost.
    let (before, lost) = (read.get(), dropped());
    with_control(&net, &held.name, 100_000);
    ring.consume().expect("readable");
    assert!(read.get() > before);
    assert_eq!(dropped(), lost);
}

#[test]
fn memory_that_is_full_takes_new_entries_and_forgets_old_ones() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    let net = Net::veth("memory");
    let held = load(&spec("careful-resume")).expect("loads");
    let memory = held.memory().expect("it keeps memory");
    let saved: Duration = clock_gettime(ClockId::CLOCK_REALTIME).expect("a clock").into();
    let entry = |n: u32| MemoryEntry {
        prefix: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n)),
        bits: 32,
        scope: MemoryScope::Port(443),
        cwnd_bytes: 1_000_000,
        rtt_us: 50_000,
        rate_bps: 160_000_000,
        saved: saved.saturating_sub(Duration::from_secs(1)),
    };
    let most = 16_384;
    for n in 0..most + 2000 {
        memory.put(&entry(n)).expect("room is made");
    }
    let entries = memory.entries();
    assert!(entries.len() <= most as usize && entries.len() > most as usize / 2, "{}", entries.len());
    let newest = entry(most + 1999).prefix;
    assert!(entries.iter().any(|e| e.prefix == newest));
    // A connection runs as if there were room.
    assert_eq!(with_control(&net, &held.name, 3_000_000), held.name);
    assert_eq!(held.counts().expect("counts").without_storage, 0);
    assert!(memory.entries().len() <= most as usize);
}

/// The kernel limits the storage of a socket by `optmem_max`.
#[test]
fn a_connection_without_storage_is_counted_and_runs_without_the_startup() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("storage");
    if Net::within(&net.sender, || fs::write("/proc/sys/net/core/optmem_max", "1")).is_err() {
        println!("skipped: connections without storage (optmem_max is not per network namespace before 6.8)");
        return;
    }
    for control in TABLE {
        let held = load(&spec(control.written())).expect("loads");
        let mut pair = transfer(&net, Some(&held.name));
        pair.send(3_000_000);
        assert_eq!(pair.control(), held.name);
        let sockets = net.sockets();
        let cwnd = sockets.split(" cwnd:").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        assert!(cwnd.is_some_and(|c: u32| c > 10), "{}: cwnd grows\n{sockets}", held.name);
        let counts = held.counts().expect("counts");
        assert_eq!((counts.started, counts.open, counts.without_storage), (0, Some(0), 1), "{}", held.name);
    }
}

#[test]
fn a_connection_begins_with_what_the_one_before_left() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    let net = Net::veth("left");
    for startup in ["stateful", "careful-resume"] {
        let mut spec = spec(startup);
        // Each connection has another port.
        spec.memory.by_cgroup = true;
        let held = load(&spec).expect("loads");
        let memory = held.memory().expect("it keeps memory");
        held.watch(1).expect("live");
        let begun = RefCell::new(Vec::new());
        let ring = held
            .events(|f| {
                if f.kind == Kind::Begin {
                    begun.borrow_mut().push((f.memory_cwnd, f.memory_rtt_us, f.memory_rate));
                }
            })
            .expect("a ring");
        let left = || {
            crate::common::ended(&held);
            let entries = memory.entries();
            let [entry] = &*entries else { panic!("{startup}: {entries:?}") };
            assert_eq!((entry.prefix.to_string(), entry.bits), ("10.99.0.2".into(), 32));
            (entry.cwnd_bytes, entry.rtt_us, entry.rate_bps)
        };
        with_control(&net, &held.name, 5_000_000);
        let first = left();
        // It takes the entry, so that it alone uses it.
        let mut second = transfer(&net, Some(&held.name));
        assert_eq!(memory.entries().len(), 0, "{startup}");
        second.send(5_000_000);
        drop(second);
        left();
        ring.consume().expect("readable");
        assert_eq!(*begun.borrow(), [(0, 0, 0), first], "{startup}");
    }
}
