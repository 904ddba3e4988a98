//! A startup as the default of a network namespace.

use crate::common::Net;
use crate::{Child, able, child, names, spec, wait_for_line};
use slowstart_linux::{
    Check, DefaultChange, RestoreOutcome, Verb, list_defaults, load, load_pinned, restore_stale_defaults,
    set_default, unload,
};
use std::fs;
use std::time::Duration;

/// The default congestion control of a network namespace.
fn default_of(ns: &str) -> String {
    let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("readable");
    Net::within(ns, read).trim().to_string()
}

/// The child of the test below: holds a startup as the default of its network namespace and waits to be
/// killed.
#[test]
fn holds_the_default_as_child() {
    let Ok(startup) = std::env::var("SLOWSTART_DEFAULT") else { return };
    let held = load(&spec(&startup)).expect("loads");
    println!(
        "default: {}",
        set_default(&held.name, false).map_or_else(|e| e.to_string(), |c| format!("{c:?}"))
    );
    println!("ready");
    std::thread::sleep(Duration::from_mins(1));
}

#[test]
fn a_default_is_restored_on_every_way_out() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    if !Check::new().links {
        println!("skipped: kernel tests of pins (this kernel has no links)");
        return;
    }
    crate::common::own_bpffs();
    let (net, before) = (Net::veth("default"), "reno");
    let ns = net.sender.as_str();
    Net::within(ns, || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", before).expect("root may"));
    let machine = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("readable");

    // A holder that is killed: the next command restores.
    let holder = |startup: &str| {
        let mut child = Child(Net::within(ns, || {
            child("defaults::holds_the_default_as_child", "SLOWSTART_DEFAULT", startup)
        }));
        wait_for_line(&mut child.0, "ready");
        child
    };
    let first = holder("search");
    assert_eq!(default_of(ns), "ss_search");
    // A second holder is refused and does not overwrite what the first one recorded.
    let second = holder("limited");
    assert_eq!(default_of(ns), "ss_search");
    assert_eq!(list_defaults().unwrap().iter().map(|d| d.previous.as_str()).collect::<Vec<_>>(), [before]);
    drop(second);
    assert!(!list_defaults().unwrap()[0].is_stale());
    drop(first);
    assert!(list_defaults().unwrap()[0].is_stale());
    // From another network namespace, as an administrator would.
    let restored = restore_stale_defaults().expect("restores");
    assert_eq!(restored.iter().map(|r| &r.outcome).collect::<Vec<_>>(), [&RestoreOutcome::Restored]);
    assert_eq!((default_of(ns).as_str(), list_defaults().unwrap().len()), (before, 0));
    assert_eq!(crate::common::settles(|| names().len() as u64, 0), 0);

    // A pinned one, replaced once: the original default is what `unload` restores.
    let pin = |startup: &str| {
        let (name, _) = load_pinned(&spec(startup)).expect("pins");
        Net::within(ns, || set_default(&name, true)).expect("sets it")
    };
    let previous = || DefaultChange::Set { previous: before.to_string() };
    assert_eq!(pin("search"), previous());
    assert_eq!(pin("search:threshold=0.3"), previous(), "a replacement keeps the original");
    assert_eq!(default_of(ns), "ss_search");
    let done = unload("search").expect("removes");
    assert_eq!((done.control.as_deref(), done.defaults.len()), (Some("ss_search"), 1));
    assert_eq!(default_of(ns), before);

    // Somebody else changed the default since: it stays. (In a network namespace not every control may be the
    // default.)
    let other = load(&spec("standard")).expect("loads");
    pin("search");
    Net::within(ns, || {
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", &other.name).expect("root may");
    });
    let done = unload("search").expect("removes");
    assert_eq!(done.defaults[0].outcome, RestoreOutcome::ChangedSince(other.name.clone()));
    assert_eq!(default_of(ns), other.name);

    // The namespace is gone: nothing is left of the record.
    pin("search");
    drop(net);
    let done = unload("search").expect("removes");
    assert_eq!(done.defaults[0].outcome, RestoreOutcome::NamespaceGone);
    assert_eq!(list_defaults().unwrap().len(), 0);
    let now = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("readable");
    assert_eq!(now, machine, "the default of the machine is not touched");
}
