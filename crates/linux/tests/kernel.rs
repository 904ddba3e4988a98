//! The objects in the running kernel. Needs root and a kernel that `kernel check` is content with; says so where it has
//! neither. Everything happens in network namespaces of the test's own; the machine's default is left alone.

mod common;

use common::{Net, transfer, transfer_to, with_control};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use slowstart::units::Span;
use slowstart_linux::{
    Check, ExitReason, Kind, Spec, TABLE, Watch, drop_privileges, list, load, load_pinned, select, unload,
    unselect,
};
use std::cell::RefCell;
use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Names in the kernel are everybody's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The lock, if this machine can run the test at all.
fn able(test: &str) -> Option<MutexGuard<'static, ()>> {
    let check = Check::new();
    if !check.can_load {
        let no: Vec<&str> = check.findings.iter().filter(|f| !f.present).map(|f| f.what).collect();
        println!("skipped: kernel test {test} (needs {})", no.join(", "));
        return None;
    }
    Some(ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn spec(startup: &str) -> Spec {
    Spec::read(startup, "cubic").expect("in the table")
}

fn names() -> Vec<String> {
    list().expect("readable").into_iter().map(|r| r.name).collect()
}

#[test]
fn every_startup_loads_carries_a_transfer_and_leaves_nothing() {
    let Some(_one) = able("every_startup_loads_carries_a_transfer_and_leaves_nothing") else { return };
    let net = Net::veth("each");
    for control in TABLE {
        for avoidance in ["cubic", "reno"] {
            if control.startup == "hystart" && avoidance == "reno" {
                continue;
            }
            let held =
                load(&Spec::read(control.startup, avoidance).unwrap()).unwrap_or_else(|e| panic!("{e}"));
            assert!(held.name.len() <= 15 && names().contains(&held.name), "{}", held.name);
            let used = with_control(&net, &held.name, 2_000_000);
            assert_eq!(used, held.name, "the connection used it");
            let counts = held.counts().expect("counts");
            // Both ends of a connection may use it, but only the sender asked for it here.
            assert_eq!(
                (counts.started, counts.without_storage, counts.dropped_events),
                (1, 0, 0),
                "{}",
                held.name
            );
            assert_eq!(
                common::settles(|| held.counts().unwrap().open, 0),
                0,
                "{}: storage is freed",
                held.name
            );
            drop(held);
        }
    }
    assert_eq!(names(), Vec::<String>::new(), "nothing stays registered");
}

#[test]
fn events_tell_a_connection_from_beginning_to_end() {
    let Some(_one) = able("events_tell_a_connection_from_beginning_to_end") else { return };
    let net = Net::veth("events");
    let held = load(&spec("standard")).expect("loads");
    let seen = RefCell::new(Vec::new());
    let ring = held.events(|f| seen.borrow_mut().push(f)).expect("a ring");
    with_control(&net, &held.name, 100_000);
    ring.consume().expect("readable");
    assert!(seen.borrow().is_empty(), "nobody watches, nothing is told");
    held.watch(2).expect("live");
    with_control(&net, &held.name, 3_000_000);
    common::settles(|| held.counts().unwrap().open, 0);
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
    let Some(_one) = able("parameters_reach_the_object") else { return };
    let net = Net::veth("params");
    // Above two segments hardly anything is earned: 2 * 10 / 2 makes it a tenth.
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
fn a_control_goes_with_its_holder_and_its_connections_live_on() {
    let Some(_one) = able("a_control_goes_with_its_holder_and_its_connections_live_on") else { return };
    let net = Net::veth("holder");
    let held = load(&spec("search")).expect("loads");
    let mut pair = transfer(&net, Some(&held.name));
    pair.send(200_000);
    assert_eq!(list().unwrap()[0].startup, Some("search"));
    drop(held);
    assert_eq!(names(), Vec::<String>::new());
    pair.send(2_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
}

#[test]
fn a_holder_needs_no_privileges_any_more() {
    let Some(_one) = able("a_holder_needs_no_privileges_any_more") else { return };
    let net = Net::veth("shed");
    // They are a thread's own.
    std::thread::spawn(move || {
        let held = load(&spec("search")).expect("loads");
        let watch = Watch::start(0, Span::ZERO).expect("watches");
        let mut pair = transfer(&net, Some(&held.name));
        drop_privileges(false).expect("anybody may");
        let status = fs::read_to_string("/proc/thread-self/status").expect("readable");
        let zero = |field| status.lines().any(|l| l == format!("{field}:\t0000000000000000"));
        assert!(["CapInh", "CapPrm", "CapEff"].into_iter().all(zero), "{status}");
        assert!(load(&spec("limited")).expect_err("not any more").to_string().contains("CAP_BPF"));
        held.watch(1).expect("still live");
        let (told, shown) = (RefCell::new(0), RefCell::new(0));
        let events = held.events(|_| *told.borrow_mut() += 1).expect("a ring");
        let records = watch.records(|_| *shown.borrow_mut() += 1).expect("a ring");
        assert_eq!(held.counts().expect("counts").open, 1);
        pair.send(100_000);
        drop(pair);
        assert_eq!(common::settles(|| held.counts().unwrap().open, 0), 0);
        events.consume().expect("readable");
        records.consume().expect("readable");
        let heard = (*told.borrow(), *shown.borrow());
        assert!(heard.0 > 0 && heard.1 > 0, "{heard:?}");
    })
    .join()
    .expect("no panic");
    assert_eq!(names(), Vec::<String>::new(), "it goes with its holder");
}

#[test]
fn what_is_loaded_is_not_loaded_twice() {
    let Some(_one) = able("what_is_loaded_is_not_loaded_twice") else { return };
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
    let Some(_one) = able("pinned_it_outlives_its_loader_and_is_replaced_under_a_connection") else { return };
    if !Check::new().links {
        let e = load_pinned(&spec("search")).expect_err("no links here").to_string();
        assert!(e.contains("6.4"), "{e}");
        println!("skipped: kernel test of pinning (this kernel has no links)");
        return;
    }
    common::own_bpffs();
    let net = Net::veth("pin");
    let (name, replaced) = load_pinned(&spec("search")).expect("pins");
    assert_eq!((name.as_str(), replaced), ("ss_search", false));
    let mut pair = transfer(&net, Some(&name));
    pair.send(100_000);
    let found = list().unwrap();
    assert!(found[0].pinned && found[0].held_by.is_empty(), "{found:?}");
    assert_eq!(found[0].counts.as_ref().unwrap().open, 1);

    let (_, replaced) = load_pinned(&spec("search:threshold=0.35")).expect("replaces");
    assert!(replaced);
    pair.send(1_000_000);
    assert_eq!(
        list().unwrap()[0].counts.as_ref().unwrap().started,
        0,
        "the old connection counts where it began"
    );
    assert_eq!(with_control(&net, &name, 100_000), name);
    assert_eq!(list().unwrap()[0].counts.as_ref().unwrap().started, 1, "a new one takes the new");

    assert_eq!(unload("search").expect("removes"), "ss_search");
    assert_eq!(names(), Vec::<String>::new());
    pair.send(1_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
    assert!(!Path::new("/sys/fs/bpf/slowstart/ss_search").exists());
    let e = unload("search").expect_err("gone").to_string();
    assert!(e.contains("not loaded"), "{e}");
}

#[test]
fn a_cgroup_is_given_a_startup_and_gets_its_own_back() {
    let Some(_one) = able("a_cgroup_is_given_a_startup_and_gets_its_own_back") else { return };
    let Some(cgroup) = common::Cgroup::new("select") else {
        println!("skipped: kernel test of select (needs a writable cgroup v2)");
        return;
    };
    if Check::new().links {
        common::own_bpffs();
    }
    let net = Net::veth("select");
    let e = select(&cgroup.0, "search", false).expect_err("not loaded").to_string();
    assert!(e.contains("not loaded"), "{e}");
    let held = load(&spec("search")).expect("loads");
    let selection = select(&cgroup.0, "search", false).expect("selects");
    assert_eq!(selection.control, "ss_search");
    let before = with_control(&net, "reno", 1000);
    assert_eq!(before, "reno", "this process is not in the cgroup");
    assert_eq!(cgroup.run_inside(&net), "ss_search", "whatever the program chose");
    drop(selection);
    assert_eq!(cgroup.run_inside(&net), "reno");
    if Check::new().links {
        drop(select(&cgroup.0, "search", true).expect("pins"));
        assert_eq!(cgroup.run_inside(&net), "ss_search");
        unselect(&cgroup.0).expect("takes back");
        assert_eq!(cgroup.run_inside(&net), "reno");
    }
    assert!(held.counts().unwrap().started >= 1);
}

#[test]
fn a_thousand_connections_leave_nothing() {
    let Some(_one) = able("a_thousand_connections_leave_nothing") else { return };
    let net = Net::veth("many");
    let held = load(&spec("search")).expect("loads");
    for _ in 0..10 {
        let pairs: Vec<_> = (0..100).map(|_| transfer(&net, Some(&held.name))).collect();
        assert_eq!(held.counts().unwrap().open, 100);
        drop(pairs);
        assert_eq!(common::settles(|| held.counts().unwrap().open, 0), 0);
    }
    let counts = held.counts().unwrap();
    assert_eq!((counts.started, counts.without_storage), (1000, 0));
}

/// A thousand connections at a time under each object, opened and closed for a minute.
#[test]
#[ignore = "takes a minute for each object"]
fn a_thousand_at_a_time_leave_nothing() {
    let Some(_one) = able("a_thousand_at_a_time_leave_nothing") else { return };
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("readable");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("up to the limit");
    let seconds = std::env::var("SLOWSTART_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let net = Net::veth("busy");
    for control in TABLE {
        let before = storages();
        let held = load(&spec(control.startup)).expect("loads");
        let ends = slow_clock() + Duration::from_secs(seconds);
        while slow_clock() < ends {
            let mut pairs = common::many(&net, &held.name, 1000);
            assert_eq!(held.counts().unwrap().open, 1000);
            pairs.iter_mut().step_by(10).for_each(|p| p.send(30_000));
            drop(pairs);
            let open = common::settles(|| held.counts().unwrap().open, 0);
            assert_eq!(
                open,
                0,
                "{}: of {} begun\n{}",
                held.name,
                held.counts().unwrap().started,
                net.sockets()
            );
        }
        let (counts, name) = (held.counts().unwrap(), held.name.clone());
        assert_eq!((counts.without_storage, counts.dropped_events, counts.open), (0, 0, 0));
        // Each has an end, and there its reason; for which the kernel does not always ask (docs/kernel.md).
        let untold = counts.started - counts.exits.iter().map(|(_, n)| n).sum::<u64>();
        // A connection that is not let go of would hold the control, and so its maps.
        drop(held);
        assert_eq!(common::settles(storages, before), before, "{name}");
        println!("{name}: {} connections, none left, {untold} ends not told", counts.started);
    }
}

/// Maps of connections in the kernel.
fn storages() -> u64 {
    libbpf_rs::query::MapInfoIter::default().filter(|m| m.name == "conns").count() as u64
}

#[allow(clippy::disallowed_methods, reason = "connections live on the real clock")]
fn slow_clock() -> std::time::Instant {
    std::time::Instant::now()
}

/// What the child of the test below does: loads, says so, and waits to be killed.
#[test]
fn loads_when_told() {
    let Ok(startup) = std::env::var("SLOWSTART_LOAD") else { return };
    let held = load(&spec(&startup)).expect("loads");
    println!("holds {}", held.name);
    std::thread::sleep(Duration::from_mins(1));
}

#[test]
fn a_killed_loader_leaves_no_control_and_its_connections_live_on() {
    let Some(_one) = able("a_killed_loader_leaves_no_control_and_its_connections_live_on") else { return };
    if !Check::new().links {
        println!("skipped: kernel test of kill -9 (without links a control stays until it is unloaded)");
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "loads_when_told", "--nocapture"])
        .env("SLOWSTART_LOAD", "search")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let holds = out.lines().map_while(Result::ok).any(|l| l.contains("holds ss_search"));
    assert!(holds && names() == ["ss_search"]);
    assert_eq!(list().unwrap()[0].held_by[0].0, child.id());
    let e = unload("search").expect_err("somebody holds it").to_string();
    assert!(e.contains(&child.id().to_string()), "{e}");
    let net = Net::veth("killed");
    let mut pair = transfer(&net, Some("ss_search"));
    pair.send(200_000);
    child.kill().expect("it lives");
    child.wait().expect("killed");
    assert_eq!(common::settles(|| names().len() as u64, 0), 0);
    pair.send(2_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
    drop(load(&spec("search")).expect("the name is free again"));
    drop(pair);
}

/// What the child of the test below does, as nobody.
#[test]
fn is_refused_when_told() {
    if std::env::var("SLOWSTART_NOBODY").is_err() {
        return;
    }
    nix::unistd::setuid(nix::unistd::Uid::from_raw(65534)).expect("root may become anybody");
    let e = load(&spec("search")).expect_err("nobody may").to_string();
    println!("refused: {}", e.replace('\n', " "));
}

#[test]
fn who_may_not_is_refused_with_the_reason() {
    let Some(_one) = able("who_may_not_is_refused_with_the_reason") else { return };
    let done = std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "is_refused_when_told", "--nocapture"])
        .env("SLOWSTART_NOBODY", "1")
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        ["refused: ", "CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"].iter().all(|word| said.contains(word)),
        "{said}"
    );
    if Check::new().links {
        common::no_bpffs();
        let e = load_pinned(&spec("search")).expect_err("nowhere to pin").to_string();
        assert!(e.contains("mount -t bpf"), "{e}");
    }
    assert_eq!(names(), Vec::<String>::new(), "nothing is half loaded");
}

#[test]
fn peers_have_the_addresses_they_have() {
    let Some(_one) = able("peers_have_the_addresses_they_have") else { return };
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
        common::settles(|| held.counts().unwrap().open, 0);
        events.consume().expect("readable");
        records.consume().expect("readable");
        for seen in [told.take(), shown.take()] {
            assert!(seen.len() > 1 && seen.iter().all(|p| p.to_string() == peer), "{address}: {seen:?}");
        }
    }
}

/// The objects for a stock bpftool, of one flavour.
#[test]
fn bpftool_registers_the_stock_objects() {
    let Some(_one) = able("bpftool_registers_the_stock_objects") else { return };
    if std::process::Command::new("bpftool").arg("version").output().is_err() {
        println!("skipped: bpftool is not installed");
        return;
    }
    if Check::new().tx_start {
        println!("skipped: the stock objects are for 6.1 to 6.18");
        return;
    }
    let mut seen = 0;
    for file in fs::read_dir(slowstart_linux::STOCK_OBJECTS).expect("built") {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|e| e != "o") {
            continue;
        }
        let done = std::process::Command::new("bpftool")
            .args(["struct_ops", "register"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&done.stderr));
        let name = names().pop().expect("registered");
        assert_eq!(unload(&name).expect("removes"), name);
        seen += 1;
    }
    assert_eq!((seen, names().len()), (10, 0));
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let unit = include_str!("../../../contrib/slowstart-kernel.service");
    let dir = std::env::temp_dir().join(format!("slowstart-unit-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("slowstart-kernel.service");
    // What it starts need not be installed for its words to be right.
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
