//! What a process without privileges can do, and what it is told.

use crate::common::{Net, transfer};
use crate::{able, child, names, output_of, spec};
use nix::sched::{CloneFlags, setns};
use slowstart::units::Span;
use slowstart_linux::{Check, Verb, Watch, drop_privileges, load, load_pinned, unload};
use std::cell::RefCell;
use std::fs::{self, File};

#[test]
fn a_holder_works_without_privileges() {
    let Some(_one) = able(&[Verb::Load, Verb::Watch]) else { return };
    let net = Net::veth("shed");
    // Capabilities belong to a thread.
    std::thread::spawn(move || {
        // A walk over the sockets sees those of the network namespace in which it begins.
        setns(File::open(format!("/run/netns/{}", net.sender)).expect("it exists"), CloneFlags::CLONE_NEWNET)
            .expect("root may");
        let held = load(&spec("search")).expect("loads");
        let watch = Watch::start(0, Span::ZERO).expect("watches");
        let mut pair = transfer(&net, Some(&held.name));
        drop_privileges(&[]).expect("needs no privilege");
        let status = fs::read_to_string("/proc/thread-self/status").expect("readable");
        let zero = |field| status.lines().any(|l| l == format!("{field}:\t0000000000000000"));
        assert!(["CapInh", "CapPrm", "CapEff"].into_iter().all(zero), "{status}");
        assert!(load(&spec("limited")).expect_err("it has no capabilities").to_string().contains("CAP_BPF"));
        held.watch(1).expect("the map is open");
        let (events_seen, records_seen) = (RefCell::new(0), RefCell::new(0));
        let events = held.events(|_| *events_seen.borrow_mut() += 1).expect("a ring");
        let records = watch.records(|_| *records_seen.borrow_mut() += 1).expect("a ring");
        let open = || held.counts().expect("counts").open;
        assert_eq!(open(), Some(1));
        pair.send(100_000);
        drop(pair);
        assert_eq!(crate::common::settles(open, Some(0)), Some(0));
        events.consume().expect("readable");
        records.consume().expect("readable");
        let counts = (*events_seen.borrow(), *records_seen.borrow());
        assert!(counts.0 > 0 && counts.1 > 0, "{counts:?}");
    })
    .join()
    .expect("no panic");
    assert_eq!(names(), Vec::<String>::new(), "it ends with its holder");
}

/// The child of the test below, which runs as the user nobody.
#[test]
fn is_refused_as_child() {
    if std::env::var("SLOWSTART_NOBODY").is_err() {
        return;
    }
    nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("root may become anybody");
    let e = load(&spec("search")).expect_err("it has no capabilities").to_string();
    println!("refused: {}", e.replace('\n', " "));
}

#[test]
fn an_unprivileged_user_gets_the_reason() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    let done = std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "privileges::is_refused_as_child", "--nocapture"])
        .env("SLOWSTART_NOBODY", "1")
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        ["refused: ", "CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"].iter().all(|word| said.contains(word)),
        "{said}"
    );
    if Check::new().links {
        crate::common::no_bpffs();
        let e = load_pinned(&spec("search")).expect_err("nowhere to pin").to_string();
        assert!(e.contains("mount -t bpf"), "{e}");
    }
    assert_eq!(names(), Vec::<String>::new(), "nothing is half loaded");
}

#[test]
fn systemd_accepts_the_unit() {
    let unit = include_str!("../../../../contrib/slowstart-kernel.service");
    let dir = std::env::temp_dir().join(format!("slowstart-unit-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("slowstart-kernel.service");
    // systemd-analyze looks for the program, which need not be installed.
    fs::write(&file, unit.replace("/usr/local/bin/slowstart", "/bin/true")).unwrap();
    let done = std::process::Command::new("systemd-analyze").arg("verify").arg(&file).output();
    fs::remove_dir_all(&dir).unwrap();
    match done {
        Err(_) => println!("skipped: the unit (systemd-analyze is not installed)"),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            let ours: Vec<&str> = said.lines().filter(|l| l.contains("slowstart-kernel")).collect();
            assert!(done.status.success() && ours.is_empty(), "{said}");
        }
    }
}

/// The child of the test below: runs as the user nobody.
#[test]
fn unloads_as_nobody() {
    if std::env::var("SLOWSTART_UNLOAD").is_err() {
        return;
    }
    nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("root may become any user");
    println!("result: {}", unload("search").map_or_else(|e| e.to_string(), |u| format!("removed {u:?}")));
}

#[test]
fn unload_without_rights_fails_and_says_so() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    if !Check::new().links {
        println!("skipped: kernel tests of pins (this kernel has no links)");
        return;
    }
    crate::common::own_bpffs();
    load_pinned(&spec("search")).expect("pins");
    let said = output_of(child("privileges::unloads_as_nobody", "SLOWSTART_UNLOAD", "1"));
    assert!(
        said.contains("not permitted") && said.contains("CAP_BPF") && !said.contains("removed"),
        "{said}"
    );
    assert_eq!(names(), ["ss_search"]);
    unload("search").expect("root may");
}
