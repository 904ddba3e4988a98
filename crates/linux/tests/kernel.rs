//! Tests of the objects in the running kernel. They need root and a kernel for which `kernel check` finds everything that
//! loading requires, and print `skipped` otherwise. They run in network namespaces that they create; the default congestion
//! control of the machine is not changed.

mod common;

use common::{Net, transfer, transfer_to, with_control};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use slowstart::units::Span;
use slowstart_linux::{
    Check, DefaultChange, ExitReason, Kind, PinnedSelection, RestoreOutcome, Running, SelectionState, Spec,
    TABLE, Watch, drop_privileges, list, list_defaults, list_selections, load, load_pinned,
    restore_stale_defaults, select, set_default, unload, unselect,
};
use std::cell::RefCell;
use std::fs;
use std::io::BufRead;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Names of controls are global in the kernel, so the tests run one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Returns the lock, or `None` if this machine cannot run the test.
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

/// The registered controls that have a name of the table; a study at the same time has names of its own.
fn running() -> Vec<Running> {
    list().expect("readable").into_iter().filter(|r| r.startup.is_some()).collect()
}

fn names() -> Vec<String> {
    running().into_iter().map(|r| r.name).collect()
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
            // Only the sender asked for it, so one connection is counted.
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
fn events_describe_a_connection_from_begin_to_end() {
    let Some(_one) = able("events_describe_a_connection_from_begin_to_end") else { return };
    let net = Net::veth("events");
    let held = load(&spec("standard")).expect("loads");
    let seen = RefCell::new(Vec::new());
    let ring = held.events(|f| seen.borrow_mut().push(f)).expect("a ring");
    with_control(&net, &held.name, 100_000);
    ring.consume().expect("readable");
    assert!(seen.borrow().is_empty(), "without a reader no events are written");
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
fn a_control_ends_with_its_holder_and_its_connections_continue() {
    let Some(_one) = able("a_control_ends_with_its_holder_and_its_connections_continue") else { return };
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
fn a_holder_works_without_privileges() {
    let Some(_one) = able("a_holder_works_without_privileges") else { return };
    let net = Net::veth("shed");
    // Capabilities belong to a thread.
    std::thread::spawn(move || {
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
        assert_eq!(held.counts().expect("counts").open, 1);
        pair.send(100_000);
        drop(pair);
        assert_eq!(common::settles(|| held.counts().unwrap().open, 0), 0);
        events.consume().expect("readable");
        records.consume().expect("readable");
        let counts = (*events_seen.borrow(), *records_seen.borrow());
        assert!(counts.0 > 0 && counts.1 > 0, "{counts:?}");
    })
    .join()
    .expect("no panic");
    assert_eq!(names(), Vec::<String>::new(), "it ends with its holder");
}

#[test]
fn a_name_is_loaded_once() {
    let Some(_one) = able("a_name_is_loaded_once") else { return };
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
    let found = running();
    assert!(found[0].pinned && found[0].held_by.is_empty(), "{found:?}");
    assert_eq!(found[0].counts.as_ref().unwrap().open, 1);

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

#[test]
fn a_selection_applies_until_it_is_removed() {
    let Some(_one) = able("a_selection_applies_until_it_is_removed") else { return };
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
    assert_eq!(cgroup.run_inside(&net), "ss_search", "it overrides the choice of the program");
    drop(selection);
    assert_eq!(cgroup.run_inside(&net), "reno");
    if Check::new().links {
        drop(select(&cgroup.0, "search", true).expect("pins"));
        assert_eq!(cgroup.run_inside(&net), "ss_search");
        assert_eq!(unselect(&cgroup.0).expect("removes").control, "ss_search");
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

/// Opens and closes a thousand connections at a time for a minute, under each object.
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
        // The kernel does not report every end (docs/kernel.md).
        let unreported = counts.started - counts.exits.iter().map(|(_, n)| n).sum::<u64>();
        // A connection that the kernel has not freed would hold the control and its maps.
        drop(held);
        assert_eq!(common::settles(storages, before), before, "{name}");
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
    let Some(_one) = able("a_killed_loader_leaves_no_control_and_its_connections_continue") else { return };
    if !Check::new().links {
        println!("skipped: kernel test of kill -9 (without links a control stays until it is unloaded)");
        return;
    }
    let mut child = Child(child("loads_as_child", "SLOWSTART_LOAD", "search"));
    wait_for_line(&mut child.0, "holds ss_search");
    assert_eq!(names(), ["ss_search"]);
    assert_eq!(running()[0].held_by[0].0, child.0.id());
    let e = unload("search").expect_err("a process holds it").to_string();
    assert!(e.contains(&child.0.id().to_string()), "{e}");
    let net = Net::veth("killed");
    let mut pair = transfer(&net, Some("ss_search"));
    pair.send(200_000);
    drop(child);
    assert_eq!(common::settles(|| names().len() as u64, 0), 0);
    pair.send(2_000_000);
    assert_eq!(pair.control(), "ss_search", "the connection keeps it");
    drop(load(&spec("search")).expect("the name is free again"));
    drop(pair);
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
    let Some(_one) = able("an_unprivileged_user_gets_the_reason") else { return };
    let done = std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "is_refused_as_child", "--nocapture"])
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
fn peers_are_reported_with_their_addresses() {
    let Some(_one) = able("peers_are_reported_with_their_addresses") else { return };
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

/// The objects for bpftool, with default parameters.
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
        assert_eq!(unload(&name).expect("removes").control, Some(name));
        seen += 1;
    }
    assert_eq!((seen, names().len()), (24, 0));
}

#[test]
fn systemd_accepts_the_unit() {
    let unit = include_str!("../../../contrib/slowstart-kernel.service");
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

/// A child that is killed when the test ends, also if it fails.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this test program again to run one test, with an instruction for it in the environment.
fn child(test: &str, variable: &str, value: &str) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", test, "--nocapture"])
        .env(variable, value)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("starts")
}

/// Returns what a child printed until it ended.
fn output_of(child: std::process::Child) -> String {
    String::from_utf8_lossy(&child.wait_with_output().expect("ends").stdout).into_owned()
}

/// Waits until a child prints a line that contains this.
fn wait_for_line(child: &mut std::process::Child, text: &str) {
    let out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    assert!(out.lines().map_while(Result::ok).any(|l| l.contains(text)), "no line with {text}");
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
    let Some(_one) = able("concurrent_pins_all_succeed_and_lose_nothing") else { return };
    if !Check::new().links {
        println!("skipped: kernel test of concurrent pins (this kernel has no links)");
        return;
    }
    common::own_bpffs();
    let pins = Path::new("/sys/fs/bpf/slowstart");
    for round in 0..3 {
        let children: Vec<_> = (0..6)
            .map(|i| child("pins_as_child", "SLOWSTART_PIN", &format!("search:threshold=0.{}", 20 + i)))
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
    let Some(_one) = able("unload_without_rights_fails_and_says_so") else { return };
    if !Check::new().links {
        println!("skipped: kernel test of unload without rights (this kernel has no links)");
        return;
    }
    common::own_bpffs();
    load_pinned(&spec("search")).expect("pins");
    let said = output_of(child("unloads_as_nobody", "SLOWSTART_UNLOAD", "1"));
    assert!(
        said.contains("not permitted") && said.contains("CAP_BPF") && !said.contains("removed"),
        "{said}"
    );
    assert_eq!(names(), ["ss_search"]);
    unload("search").expect("root may");
}

/// The default congestion control of a network namespace.
fn default_of(ns: &str) -> String {
    let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("readable");
    Net::within(ns, read).trim().to_string()
}

/// The child of the test below: holds a startup as the default of its network namespace and waits to be killed.
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
    let Some(_one) = able("a_default_is_restored_on_every_way_out") else { return };
    if !Check::new().links {
        println!("skipped: kernel test of defaults (this kernel has no links)");
        return;
    }
    common::own_bpffs();
    let (net, before) = (Net::veth("default"), "reno");
    let ns = net.sender.as_str();
    Net::within(ns, || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", before).expect("root may"));
    let machine = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("readable");

    // A holder that is killed: the next command restores.
    let holder = |startup: &str| {
        let mut child =
            Child(Net::within(ns, || child("holds_the_default_as_child", "SLOWSTART_DEFAULT", startup)));
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
    assert_eq!(common::settles(|| names().len() as u64, 0), 0);

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

    // Somebody else changed the default since: it stays. (In a network namespace not every control may be the default.)
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

#[test]
fn a_selection_survives_a_new_cgroup_or_is_reported() {
    let Some(_one) = able("a_selection_survives_a_new_cgroup_or_is_reported") else { return };
    let Some(cgroup) = common::Cgroup::new("again") else {
        println!("skipped: kernel test of selections (needs a writable cgroup v2)");
        return;
    };
    if !Check::new().links {
        println!("skipped: kernel test of selections (this kernel has no links)");
        return;
    }
    common::own_bpffs();
    let net = Net::veth("again");
    let held = load(&spec("search")).expect("loads");
    let make_again = || {
        fs::remove_dir(&cgroup.0).expect("it is empty");
        fs::create_dir(&cgroup.0).expect("root may");
    };

    // One that is held follows the path.
    let mut selection = select(&cgroup.0, "search", false).expect("selects");
    assert!(!selection.follow().expect("nothing to do"));
    make_again();
    assert_eq!(cgroup.run_inside(&net), "reno", "the new cgroup has no selection");
    assert!(selection.follow().expect("attaches"));
    assert_eq!(cgroup.run_inside(&net), held.name);
    drop(selection);

    // A pinned one is reported, and repaired by the same command.
    let state = || list_selections().into_iter().map(|s| s.state).collect::<Vec<_>>();
    drop(select(&cgroup.0, "search", true).expect("pins"));
    assert_eq!(state(), [SelectionState::Active]);
    make_again();
    assert_eq!(state(), [SelectionState::CgroupReplaced]);
    let repaired = select(&cgroup.0, "search", true).expect("pins again");
    assert_eq!(repaired.replaced.as_ref().map(|s| s.state), Some(SelectionState::CgroupReplaced));
    drop(repaired);
    assert_eq!(state(), [SelectionState::Active]);
    assert_eq!(cgroup.run_inside(&net), held.name);

    // One whose cgroup is gone can be removed.
    fs::remove_dir(&cgroup.0).expect("it is empty");
    assert_eq!(state(), [SelectionState::CgroupGone]);
    let removed = unselect(&cgroup.0).expect("removes what is stale");
    let expected = PinnedSelection {
        cgroup: cgroup.0.clone(),
        control: held.name.clone(),
        state: SelectionState::CgroupGone,
    };
    assert_eq!((removed, state()), (expected, vec![]));
    let e = unselect(&cgroup.0).expect_err("nothing is left").to_string();
    assert!(e.contains("no selection is pinned"), "{e}");
}
