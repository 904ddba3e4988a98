//! The objects: each loads, carries a transfer, reports events and leaves nothing.

use crate::common::{Net, transfer, transfer_to, with_control};
use crate::{able, names, spec};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use slowstart::units::Span;
use slowstart_linux::{Check, ExitReason, Kind, Spec, TABLE, Verb, Watch, load, unload};
use std::cell::RefCell;
use std::fs;
use std::time::Duration;

#[test]
fn every_startup_loads_carries_a_transfer_and_leaves_nothing() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("each");
    for control in TABLE {
        for avoidance in ["cubic", "reno"] {
            if control.no_reno().is_some() && avoidance == "reno" {
                continue;
            }
            let held =
                load(&Spec::read(control.written(), avoidance).unwrap()).unwrap_or_else(|e| panic!("{e}"));
            assert!(held.name.len() <= 15 && names().contains(&held.name), "{}", held.name);
            let used = with_control(&net, &held.name, 2_000_000);
            assert_eq!(used, held.name, "the connection used it");
            let counts = held.counts().expect("counts");
            // Only the sender asked for it, so one connection is counted.
            assert_eq!(
                (counts.started, counts.without_storage, counts.dropped_events),
                (1, 0, 0),
                "{}",
                held.name
            );
            assert_eq!(
                crate::common::settles(|| held.counts().unwrap().open, Some(0)),
                Some(0),
                "{}: storage is freed",
                held.name
            );
            drop(held);
        }
    }
    assert_eq!(names(), Vec::<String>::new(), "nothing stays registered");
}

#[test]
fn events_describe_a_connection_from_begin_to_end() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("events");
    let held = load(&spec("standard")).expect("loads");
    let seen = RefCell::new(Vec::new());
    let ring = held.events(|f| seen.borrow_mut().push(f)).expect("a ring");
    with_control(&net, &held.name, 100_000);
    ring.consume().expect("readable");
    assert!(seen.borrow().is_empty(), "without a reader no events are written");
    held.watch(2).expect("live");
    with_control(&net, &held.name, 3_000_000);
    crate::common::ended(&held);
    ring.consume().expect("readable");
    let all = seen.borrow();
    let first = all.first().expect("events");
    let last = all.last().expect("events");
    assert_eq!((first.kind, first.cwnd, first.iw, first.asked), (Kind::Begin, 10, 10, true));
    assert_eq!(last.kind, Kind::End);
    assert!(all.iter().all(|f| f.sk == first.sk && f.dport == first.dport && f.dport != 0));
    assert!(all.windows(2).all(|w| w[0].acked_bytes <= w[1].acked_bytes && w[0].now_ns <= w[1].now_ns));
    let acks: Vec<_> = all.iter().filter(|f| f.kind == Kind::Ack).collect();
    assert!(acks.len() >= 5, "{} ACKs", acks.len());
    assert!(
        acks.iter().all(|f| f.earned == u64::from(f.acked) * u64::from(f.mss) && f.next >= f.acked_bytes)
    );
    assert!(acks.iter().any(|f| f.rtt_us > 0));
}

#[test]
fn parameters_reach_the_object() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("params");
    // RFC 3742: above max_ssthresh growth is divided by 2 * cwnd / max_ssthresh.
    let held = load(&spec("limited:max_ssthresh=2")).expect("loads");
    let seen = RefCell::new(Vec::new());
    let ring = held.events(|f| seen.borrow_mut().push(f)).expect("a ring");
    held.watch(2).expect("live");
    with_control(&net, &held.name, 1_000_000);
    ring.consume().expect("readable");
    let all = seen.borrow();
    let acks: Vec<_> = all.iter().filter(|f| f.kind == Kind::Ack && f.why == ExitReason::None).collect();
    assert!(!acks.is_empty());
    for f in acks {
        let full = u64::from(f.acked) * u64::from(f.mss);
        assert_eq!(f.earned, full / u64::from(2 * f.cwnd / 2), "{f:?}");
    }
}

#[test]
fn a_thousand_connections_leave_nothing() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("many");
    let held = load(&spec("search")).expect("loads");
    for _ in 0..10 {
        let pairs: Vec<_> = (0..100).map(|_| transfer(&net, Some(&held.name))).collect();
        assert_eq!(Net::here(&net.sender, || held.counts().unwrap().open), Some(100));
        drop(pairs);
        assert_eq!(crate::common::settles(|| held.counts().unwrap().open, Some(0)), Some(0));
    }
    let counts = held.counts().unwrap();
    assert_eq!((counts.started, counts.without_storage), (1000, 0));
}

/// Opens and closes a thousand connections at a time for a minute, under each object.
#[test]
#[ignore = "takes a minute for each object"]
fn a_thousand_at_a_time_leave_nothing() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("readable");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("up to the limit");
    let seconds = std::env::var("SLOWSTART_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let net = Net::veth("busy");
    for control in TABLE {
        let before = storages();
        let held = load(&spec(control.written())).expect("loads");
        let ends = slow_clock() + Duration::from_secs(seconds);
        while slow_clock() < ends {
            let mut pairs = crate::common::many(&net, &held.name, 1000);
            assert_eq!(Net::here(&net.sender, || held.counts().unwrap().open), Some(1000));
            pairs.iter_mut().step_by(10).for_each(|p| p.send(30_000));
            drop(pairs);
            let open = crate::common::settles(|| held.counts().unwrap().open, Some(0));
            assert_eq!(
                open,
                Some(0),
                "{}: of {} begun\n{}",
                held.name,
                held.counts().unwrap().started,
                net.sockets()
            );
        }
        let (counts, name) = (held.counts().unwrap(), held.name.clone());
        assert_eq!((counts.without_storage, counts.dropped_events, counts.open), (0, 0, Some(0)));
        // The kernel does not report every end (docs/evidence/kernel.md).
        let unreported = counts.at_most_open();
        // A connection that the kernel has not freed would hold the control and its maps.
        drop(held);
        assert_eq!(crate::common::settles(storages, before), before, "{name}");
        println!("{name}: {} connections, none left, {unreported} ends not reported", counts.started);
    }
}

/// Returns the number of connection maps in the kernel.
fn storages() -> u64 {
    libbpf_rs::query::MapInfoIter::default().filter(|m| m.name == "conns").count() as u64
}

#[allow(clippy::disallowed_methods, reason = "connections run on the real clock")]
fn slow_clock() -> std::time::Instant {
    std::time::Instant::now()
}

#[test]
fn peers_are_reported_with_their_addresses() {
    let Some(_one) = able(&[Verb::Load, Verb::Watch]) else { return };
    let net = Net::veth("peers");
    let held = load(&spec("search")).expect("loads");
    held.watch(1).expect("live");
    let (told, shown) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let events = held.events(|f| told.borrow_mut().push(f.peer)).expect("a ring");
    let watch = Watch::start(0, Span::ZERO).expect("watches");
    let records = watch
        .records(|f| {
            if f.control == "ss_search" {
                shown.borrow_mut().push(f.peer);
            }
        })
        .expect("a ring");
    for (address, peer) in
        [("10.99.0.2", "10.99.0.2"), ("fd99::2", "fd99::2"), ("::ffff:10.99.0.2", "10.99.0.2")]
    {
        transfer_to(&net, Some(&held.name), address).send(300_000);
        crate::common::ended(&held);
        events.consume().expect("readable");
        records.consume().expect("readable");
        for seen in [told.take(), shown.take()] {
            assert!(seen.len() > 1 && seen.iter().all(|p| p.to_string() == peer), "{address}: {seen:?}");
        }
    }
}

/// The objects for bpftool, with default parameters.
#[test]
fn bpftool_registers_the_stock_objects() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    if std::process::Command::new("bpftool").arg("version").output().is_err() {
        println!("skipped: bpftool is not installed");
        return;
    }
    let check = Check::new();
    if check.tx_start {
        println!("skipped: the stock objects are for 6.1 to 6.18");
        return;
    }
    // The arguments of one operation changed in 6.10.
    let others = if check.control_arguments == 2 {
        ["bbr3.bpf.o", "bbr2_quiche.bpf.o"]
    } else {
        ["bbr3_before_6_10.bpf.o", "bbr2_quiche_before_6_10.bpf.o"]
    };
    let mut seen = 0;
    for file in fs::read_dir(slowstart_linux::STOCK_OBJECTS).expect("built") {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|e| e != "o") || others.iter().any(|o| file.ends_with(o)) {
            continue;
        }
        let done = std::process::Command::new("bpftool")
            .args(["struct_ops", "register"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&done.stderr));
        let name = names().pop().expect("registered");
        assert_eq!(unload(&name).expect("removes").control, Some(name));
        seen += 1;
    }
    assert_eq!((seen, names().len()), (29, 0));
}
