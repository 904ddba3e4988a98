//! How long a control lives: held, pinned, replaced, its holder killed.

use crate::common::{Net, transfer, with_control};
use crate::{Child, able, child, names, output_of, running, spec, wait_for_line};
use slowstart_linux::{Check, Verb, load, load_pinned, unload};
use std::fs;
use std::path::Path;
use std::time::Duration;

#[test]
fn a_control_ends_with_its_holder_and_its_connections_continue() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let net = Net::veth("holder");
    let held = load(&spec("search")).expect("loads");
    let mut pair = transfer(&net, Some(&held.name));
    pair.send(200_000);
    assert_eq!(running()[0].startup, Some("search"));
    drop(held);
    assert_eq!(names(), Vec::<String>::new());
    pair.send(2_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
}

#[test]
fn of_loads_at_once_one_succeeds_and_the_others_say_why() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let begin = std::sync::Barrier::new(4);
    let all: Vec<_> = std::thread::scope(|scope| {
        let one = || {
            begin.wait();
            load(&spec("search")).map_err(|e| e.to_string())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    });
    let refused: Vec<&String> = all.iter().filter_map(|r| r.as_ref().err()).collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused.iter().all(|e| e.contains("already loaded: unload it first")), "{refused:?}");
}

#[test]
fn a_name_is_loaded_once() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let held = load(&spec("search")).expect("loads");
    let e = load(&spec("search:threshold=0.3")).expect_err("the name is taken").to_string();
    assert!(e.contains("already loaded"), "{e}");
    let other = load(&spec("search-2.0")).expect("another name");
    drop(held);
    assert_eq!(names(), ["ss_search2"]);
    drop(other);
}

#[test]
fn pinned_it_outlives_its_loader_and_is_replaced_under_a_connection() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    if !Check::new().links {
        let e = load_pinned(&spec("search")).expect_err("no links here").to_string();
        assert!(e.contains("6.4"), "{e}");
        println!("skipped: kernel tests of pins (this kernel has no links)");
        return;
    }
    crate::common::own_bpffs();
    let net = Net::veth("pin");
    let (name, replaced) = load_pinned(&spec("search")).expect("pins");
    assert_eq!((name.as_str(), replaced), ("ss_search", false));
    let mut pair = transfer(&net, Some(&name));
    pair.send(100_000);
    let found = Net::here(&net.sender, running);
    assert!(found[0].pinned && found[0].held_by.is_empty(), "{found:?}");
    assert_eq!(found[0].counts.as_ref().unwrap().open, Some(1));

    let (_, replaced) = load_pinned(&spec("search:threshold=0.35")).expect("replaces");
    assert!(replaced);
    pair.send(1_000_000);
    assert_eq!(
        running()[0].counts.as_ref().unwrap().started,
        0,
        "the old connection is counted by the old control"
    );
    assert_eq!(with_control(&net, &name, 100_000), name);
    assert_eq!(running()[0].counts.as_ref().unwrap().started, 1, "a new connection uses the new control");

    assert_eq!(unload("search").expect("removes").control.as_deref(), Some("ss_search"));
    assert_eq!(names(), Vec::<String>::new());
    pair.send(1_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
    assert!(!Path::new("/sys/fs/bpf/slowstart/ss_search").exists());
    let e = unload("search").expect_err("gone").to_string();
    assert!(e.contains("not loaded"), "{e}");
}

/// The child of the test below: loads, prints the name and waits to be killed.
#[test]
fn loads_as_child() {
    let Ok(startup) = std::env::var("SLOWSTART_LOAD") else { return };
    let held = load(&spec(&startup)).expect("loads");
    println!("holds {}", held.name);
    std::thread::sleep(Duration::from_mins(1));
}

#[test]
fn a_killed_loader_leaves_no_control_and_its_connections_continue() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    if !Check::new().links {
        println!("skipped: kernel test of kill -9 (without links a control stays until it is unloaded)");
        return;
    }
    let mut child = Child(child("lifetime::loads_as_child", "SLOWSTART_LOAD", "search"));
    wait_for_line(&mut child.0, "holds ss_search");
    assert_eq!(names(), ["ss_search"]);
    assert_eq!(running()[0].held_by[0].0, child.0.id());
    let e = unload("search").expect_err("a process holds it").to_string();
    assert!(e.contains(&child.0.id().to_string()), "{e}");
    let net = Net::veth("killed");
    let mut pair = transfer(&net, Some("ss_search"));
    pair.send(200_000);
    drop(child);
    assert_eq!(crate::common::settles(|| names().len() as u64, 0), 0);
    pair.send(2_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
    drop(load(&spec("search")).expect("the name is free again"));
    drop(pair);
}

/// The child of the test below: pins a startup and prints the result.
#[test]
fn pins_as_child() {
    let Ok(startup) = std::env::var("SLOWSTART_PIN") else { return };
    match load_pinned(&spec(&startup)) {
        Ok((name, replaced)) => println!("pinned {name} {replaced}"),
        Err(e) => println!("failed {e}"),
    }
}

#[test]
fn concurrent_pins_all_succeed_and_lose_nothing() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    if !Check::new().links {
        println!("skipped: kernel tests of pins (this kernel has no links)");
        return;
    }
    crate::common::own_bpffs();
    let pins = Path::new("/sys/fs/bpf/slowstart");
    for round in 0..3 {
        let children: Vec<_> = (0..6)
            .map(|i| {
                child("lifetime::pins_as_child", "SLOWSTART_PIN", &format!("search:threshold=0.{}", 20 + i))
            })
            .collect();
        let said: Vec<String> = children.into_iter().map(output_of).collect();
        assert!(said.iter().all(|s| s.contains("pinned ss_search")), "round {round}: {said:?}");
        let first = said.iter().filter(|s| s.contains("pinned ss_search false")).count();
        assert_eq!(first, 1, "one loads it, the others replace it: {said:?}");
        let mut files: Vec<_> = fs::read_dir(pins.join("ss_search"))
            .expect("pinned")
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, ["conns", "counts", "events", "link", "watching"]);
        assert!(!pins.join("ss_search-next").exists());
        let found = running();
        assert!(found.len() == 1 && found[0].pinned && found[0].counts.is_some(), "{found:?}");
        unload("search").expect("removes");
        assert_eq!(names(), Vec::<String>::new());
    }
}
