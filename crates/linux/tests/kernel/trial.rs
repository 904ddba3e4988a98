//! A trial among the connections of a cgroup, as the kernel counts and measures them.

use crate::able;
use crate::common::{Cgroup, Net, ip, settles};
use nix::sys::socket::sockopt::{TcpCongestion, TcpUserTimeout};
use nix::sys::socket::{getsockopt, setsockopt};
use slowstart_linux::{RunningTrial, TrialCounts, TrialRecord, TrialSpec, Verb};
use slowstart_trial::Plan;
use slowstart_trial::plan::Arm;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write, copy, sink};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

const CONNECTIONS: usize = 24;
/// More than the first milestone, 100 kB, and less than the second.
const BYTES: usize = 150_000;

#[test]
fn each_connection_is_counted_once_and_uses_the_control_of_its_arm() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let Some(cgroup) = Cgroup::new("trial") else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    let net = Net::veth("trial");
    let arms = ["cubic:50%", "search:50%"].map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 7).expect("valid");
    let spec =
        TrialSpec { cgroup: &cgroup.0, plan: &plan, sticky: false, a_a: false, dry: false, salt: None };
    let trial = RunningTrial::start(&spec).unwrap_or_else(|e| panic!("{e}"));
    let records = Mutex::new(Vec::<TrialRecord>::new());
    let mut reader = trial.reader(|r| records.lock().expect("one thread").push(r)).expect("a ring");

    let controls = controls_of_a_child(&cgroup, &net, Program::Plain);
    assert_eq!(controls.len(), CONNECTIONS, "{controls:?}");
    assert_eq!(cgroup.run_inside(&net), "reno", "a program that chose a control keeps it");
    let closed = || records.lock().expect("one thread").iter().filter(|r| r.closed).count() as u64;
    settles(
        || {
            reader.poll().expect("readable");
            closed()
        },
        CONNECTIONS as u64,
    );

    let records = records.lock().expect("one thread");
    let closed: Vec<_> = records.iter().filter(|r| r.closed).collect();
    assert_eq!(closed.len(), CONNECTIONS, "each has one last record");
    // The child's connections follow one another, and so do their records.
    for (r, control) in closed.iter().zip(&controls) {
        let o = &r.outcome;
        assert_eq!(Some(o.arm), plan.assign(r.connection), "{r:?}");
        if o.arm == 0 {
            assert_eq!(control, "cubic");
        } else {
            assert!(control.starts_with("ss_") && control.ends_with("_t1"), "{control}");
        }
        assert_eq!(o.delivered_bytes, BYTES as u64, "{r:?}");
        assert!(
            o.sent_bytes >= o.delivered_bytes && o.rtt_peak >= o.rtt_mean && o.rtt_mean >= Some(1.0),
            "{r:?}"
        );
        let [first, second, third] = o.milestones_s;
        assert!(first.is_some() && first <= o.last_s && (second, third) == (None, None), "{r:?}");
        // One record at the milestone and one at the end.
        assert_eq!(records.iter().filter(|other| other.connection == r.connection).count(), 2);
    }
    let of = |arm| closed.iter().filter(|r| r.outcome.arm == arm).count() as u64;
    let counts = trial.counts().expect("counts");
    assert_eq!(counts.assigned, [of(0), of(1)]);
    assert!(of(0) > 0 && of(1) > 0, "{counts:?}");
    assert_eq!((counts.own_choice, counts.outside, counts.refused), (1, 0, 0));
    assert_eq!((counts.without_storage, counts.lost_records), (0, 0));

    drop(reader);
    drop(trial);
    assert!(
        controls_of_a_child(&cgroup, &net, Program::Plain).iter().all(|c| !c.starts_with("ss_")),
        "the trial has ended"
    );
}

/// What the child process does with each connection.
#[derive(Copy, Clone, Debug)]
enum Program {
    /// Sends [`BYTES`].
    Plain,
    /// Sends 20 kB, and closes a second later.
    ClosesLate,
    /// Sends [`BYTES`] under a congestion control that it chooses before the first byte.
    ChoosesFirst,
    /// As the one before, but it chooses between the first milestone, which its peer answers, and the end.
    ChoosesLater,
    /// Sends 20 kB, and as much again a second later, when the peer has disappeared; gives up after half a
    /// second.
    LosesPeer,
    /// As that, under CUBIC, the control of an arm.
    ChoosesCubic,
    /// Sends 20 kB, a second later a packet that is lost, and half a second after that one that is not.
    LosesPacket,
}

/// Runs a trial of the arms `reno` and `search` on a cgroup while a closure makes connections, and until so
/// many are closed. Returns their records and the counts.
pub(crate) fn trial_while(
    name: &str,
    connections: usize,
    during: impl FnOnce(&Cgroup, &Net),
) -> Option<(Vec<TrialRecord>, TrialCounts)> {
    trial_between(["reno:50%", "search:50%"], name, connections, during)
}

/// A trial between these arms.
fn trial_between(
    arms: [&str; 2],
    name: &str,
    connections: usize,
    during: impl FnOnce(&Cgroup, &Net),
) -> Option<(Vec<TrialRecord>, TrialCounts)> {
    let cgroup = Cgroup::new(name).or_else(|| {
        println!("skipped: kernel tests that need a writable cgroup v2");
        None
    })?;
    let net = Net::veth(name);
    let arms = arms.map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 7).expect("valid");
    let spec =
        TrialSpec { cgroup: &cgroup.0, plan: &plan, sticky: false, a_a: false, dry: false, salt: None };
    let trial = RunningTrial::start(&spec).unwrap_or_else(|e| panic!("{e}"));
    let records = Mutex::new(Vec::<TrialRecord>::new());
    let mut reader = trial.reader(|r| records.lock().expect("one thread").push(r)).expect("a ring");
    during(&cgroup, &net);
    settles(
        || {
            reader.poll().expect("readable");
            let closed = records.lock().expect("one thread").iter().filter(|r| r.closed).count();
            closed + trial.counts().expect("counts").lost_records as usize
        },
        connections,
    );
    let counts = trial.counts().expect("counts");
    drop(reader);
    Some((records.into_inner().expect("one thread"), counts))
}

/// Runs a trial until the connections of this program are closed.
fn trial_of(name: &str, program: Program) -> Option<(Vec<TrialRecord>, TrialCounts)> {
    trial_while(name, CONNECTIONS, |cgroup, net| drop(controls_of_a_child(cgroup, net, program)))
}

/// On a veth an ACK arrives before the kernel has advanced `snd_nxt`, and is taken all the same.
#[test]
fn the_time_of_the_last_byte_does_not_include_the_wait_for_the_close() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let Some((records, _)) = trial_of("late", Program::ClosesLate) else { return };
    let closed: Vec<_> = records.iter().filter(|r| r.closed).collect();
    assert_eq!(closed.len(), CONNECTIONS);
    for r in closed {
        assert_eq!(r.outcome.delivered_bytes, 20_000, "{r:?}");
        assert!(r.outcome.last_s.is_some_and(|s| s < 0.5), "{r:?}");
    }
}

/// A program that sets the control of one arm changes nothing for the connections of that arm, and is seen there
/// too: else large files, for which programs do this, would count in one arm alone.
#[test]
fn a_choice_of_an_arms_own_control_withdraws_from_every_arm() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let Some((records, counts)) =
        trial_between(["cubic:50%", "reno:50%"], "same", CONNECTIONS, |cgroup, net| {
            controls_of_a_child(cgroup, net, Program::ChoosesCubic);
        })
    else {
        return;
    };
    assert_eq!((counts.own_choice, counts.assigned), (CONNECTIONS as u64, vec![0, 0]));
    let last: Vec<_> = records.iter().filter(|r| r.closed).collect();
    assert!(last.len() == CONNECTIONS && last.iter().all(|r| r.own_choice), "{last:?}");
    let arms: std::collections::BTreeSet<_> = last.iter().map(|r| r.outcome.arm).collect();
    assert_eq!(arms.len(), 2, "connections of both arms");
}

#[test]
fn a_selection_on_the_same_connections_is_named_at_the_start() {
    let Some(_one) = able(&[Verb::Select, Verb::Trial]) else { return };
    let (Some(outer), Some(other)) = (Cgroup::new("outer"), Cgroup::new("other")) else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    let inner = Cgroup(outer.0.join("inner"));
    fs::create_dir(&inner.0).expect("writable");
    let arms = ["cubic:50%", "reno:50%"].map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 7).expect("valid");
    let start = |cgroup| {
        RunningTrial::start(&TrialSpec {
            cgroup,
            plan: &plan,
            sticky: false,
            a_a: false,
            dry: false,
            salt: None,
        })
    };
    for (selected, tried) in [(&outer, &inner), (&inner, &outer), (&outer, &outer)] {
        let selection = slowstart_linux::select(&selected.0, "reno", false).expect("root");
        let e = start(&tried.0).expect_err("it is selected").to_string();
        assert!(e.contains("a selection") && e.contains(&selected.0.display().to_string()), "{e}");
        let beside = start(&other.0).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(beside.others(), []);
        drop(selection);
    }
    let running = start(&inner.0).unwrap_or_else(|e| panic!("{e}"));
    let e = start(&outer.0).expect_err("there is a trial in it").to_string();
    assert!(e.contains("another trial runs on") && e.contains("inner"), "{e}");
    drop(running);
    start(&outer.0).unwrap_or_else(|e| panic!("{e}"));
}

/// Any user may lock a cgroup's directory.
#[test]
fn a_lock_of_another_user_refuses_no_trial() {
    let Some(_one) = able(&[Verb::Trial]) else { return };
    let Some(cgroup) = Cgroup::new("locked") else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    let dir = fs::File::open(&cgroup.0).expect("it exists");
    dir.lock().expect("nobody has it");
    let arms = ["cubic:50%", "reno:50%"].map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 7).expect("valid");
    let spec =
        TrialSpec { cgroup: &cgroup.0, plan: &plan, sticky: false, a_a: false, dry: false, salt: None };
    let running = RunningTrial::start(&spec).unwrap_or_else(|e| panic!("{e}"));
    let e = RunningTrial::start(&spec).expect_err("it has one").to_string();
    assert!(e.contains(&format!("(process {})", std::process::id())), "{e}");
    drop(running);
}

#[test]
fn a_control_that_the_program_sets_later_is_its_own_choice() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    for (name, program) in [("first", Program::ChoosesFirst), ("later", Program::ChoosesLater)] {
        let Some((records, counts)) = trial_of(name, program) else { return };
        assert_eq!((counts.own_choice, counts.assigned), (CONNECTIONS as u64, vec![0, 0]), "{program:?}");
        let last: Vec<_> = records.iter().filter(|r| r.closed).collect();
        assert!(last.len() == CONNECTIONS && last.iter().all(|r| r.own_choice), "{program:?}: {last:?}");
        // Those that were reported before are withdrawn.
        let before = records.len() - last.len();
        assert_eq!(before, if matches!(program, Program::ChoosesFirst) { 0 } else { CONNECTIONS });
    }
}

/// What was sent after an idle time was never acknowledged.
#[test]
fn the_time_of_the_last_byte_of_a_peer_that_disappeared_does_not_include_idle_time() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let Some((records, counts)) = trial_of("gone", Program::LosesPeer) else { return };
    let closed: Vec<_> = records.iter().filter(|r| r.closed).collect();
    assert_eq!((closed.len(), counts.assigned.iter().sum()), (CONNECTIONS, CONNECTIONS as u64));
    for r in closed {
        assert!(r.outcome.delivered_bytes == 20_000 && r.outcome.sent_bytes > 20_000, "{r:?}");
        assert!(r.outcome.last_s.is_some_and(|s| s < 0.5), "{r:?}");
    }
}

/// The wait for a packet that was lost is active time, also if it is the first after an idle time, which is
/// not.
#[test]
fn an_idle_time_ends_with_the_first_packet_that_is_sent_and_not_with_the_first_that_arrives() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let Some((records, _)) = trial_of("lost", Program::LosesPacket) else { return };
    for r in records.iter().filter(|r| r.closed) {
        assert_eq!(r.outcome.delivered_bytes, 20_300, "{r:?}");
        assert!(r.outcome.last_s.is_some_and(|s| (0.45..1.4).contains(&s)), "{r:?}");
    }
}

#[test]
fn a_pattern_takes_cgroups_that_are_made_later() {
    let Some(_one) = able(&[Verb::Trial]) else { return };
    let Some(first) = Cgroup::new("many-a") else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    let net = Net::veth("many");
    let arms = ["cubic:50%", "reno:50%"].map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 7).expect("valid");
    let pattern = first.0.with_file_name(format!("slowstart-{}-many-*", std::process::id()));
    let spec = TrialSpec { cgroup: &pattern, plan: &plan, sticky: false, a_a: false, dry: false, salt: None };
    let mut trial = RunningTrial::start(&spec).unwrap_or_else(|e| panic!("{e}"));
    assert!(trial.follow().expect("nothing to do").is_empty());
    let second = Cgroup::new("many-b").expect("writable");
    assert_eq!(trial.follow().expect("attaches"), std::slice::from_ref(&second.0));
    for cgroup in [&first, &second] {
        controls_of_a_child(cgroup, &net, Program::Plain);
    }
    let all = || trial.counts().expect("counts").assigned.iter().sum();
    assert_eq!(settles(all, 2 * CONNECTIONS as u64), 2 * CONNECTIONS as u64);
    let e =
        RunningTrial::start(&TrialSpec { cgroup: &second.0, ..spec }).expect_err("it has one").to_string();
    assert!(e.contains("another trial runs on this cgroup"), "{e}");
    drop(second);
    assert!(trial.follow().expect("one is left").is_empty());
}

/// Runs [`sends_in_a_cgroup`] in a child process; returns the congestion control of each of its connections.
fn controls_of_a_child(cgroup: &Cgroup, net: &Net, program: Program) -> Vec<String> {
    let listener = Net::within(&net.receiver, || TcpListener::bind("10.99.0.2:0")).expect("a port");
    let address = listener.local_addr().expect("bound");
    // A lost packet is sent again when a later one has arrived, and not before.
    ip(&format!("-n {} route change 10.99.0.0/24 dev v0 src 10.99.0.1 rto_min 5s", net.sender));
    let request = format!("{}|{address}|{program:?}|{}", cgroup.0.display(), net.receiver);
    let child =
        Net::within(&net.sender, || crate::child("trial::sends_in_a_cgroup", "SLOWSTART_SENDS", &request));
    let receiver = thread::spawn(move || {
        let readers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (mut from, _) = listener.accept().expect("connected");
                from.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
                thread::spawn(move || {
                    if matches!(program, Program::ChoosesLater) {
                        from.read_exact(&mut vec![0; BYTES]).expect("the connection lives");
                        from.write_all(&[0]).expect("the connection lives");
                    }
                    let done = copy(&mut from, &mut sink());
                    assert!(done.is_ok() || matches!(program, Program::LosesPeer), "{done:?}");
                })
            })
            .collect();
        for reader in readers {
            reader.join().expect("no panic");
        }
    });
    let said = crate::output_of(child);
    receiver.join().unwrap_or_else(|_| panic!("{said}"));
    said.lines().filter_map(|l| l.split_once("uses ")).map(|(_, name)| name.to_string()).collect()
}

/// The child process: connects from within the cgroup, one connection after another.
#[test]
fn sends_in_a_cgroup() {
    let Ok(request) = std::env::var("SLOWSTART_SENDS") else { return };
    let [cgroup, address, program, receiver] = request.split('|').collect::<Vec<_>>()[..] else {
        panic!("{request}")
    };
    fs::write(format!("{cgroup}/cgroup.procs"), std::process::id().to_string())
        .expect("root may move itself");
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut socket = TcpStream::connect(address).expect("connects");
        let choose = || setsockopt(&socket, TcpCongestion, &OsString::from("cubic")).expect("it is there");
        match program {
            "ClosesLate" | "LosesPeer" | "LosesPacket" => {
                socket.write_all(&vec![7; 20_000]).expect("the connection lives");
                idle.push(socket);
                continue;
            }
            "ChoosesFirst" | "ChoosesCubic" => choose(),
            "ChoosesLater" => {
                (&socket).write_all(&vec![7; BYTES]).expect("the connection lives");
                // The answer comes with an ACK of the first milestone.
                (&socket).read_exact(&mut [0]).expect("the peer answers");
                choose();
            }
            _ => {}
        }
        socket.write_all(&vec![7; BYTES]).expect("the connection lives");
        socket.shutdown(Shutdown::Write).expect("connected");
        let used = getsockopt(&socket, TcpCongestion).expect("a TCP socket");
        println!("uses {}", used.to_string_lossy().trim_end_matches('\0'));
        // The peer closes when it has everything.
        assert_eq!(socket.read(&mut [0]).expect("the connection lives"), 0);
    }
    if !idle.is_empty() {
        thread::sleep(Duration::from_secs(1));
    }
    if program != "ClosesLate" && !idle.is_empty() {
        // What arrives at an address that a machine does not have is dropped.
        ip(&format!("-n {receiver} addr del 10.99.0.2/24 dev v0"));
        let peer = program == "LosesPeer";
        for mut socket in &idle {
            if peer {
                setsockopt(socket, TcpUserTimeout, &500).expect("a TCP socket");
            }
            socket.write_all(&vec![7; if peer { 20_000 } else { 100 }]).expect("there is room");
        }
        if peer {
            for mut socket in idle {
                assert!(socket.read(&mut [0]).is_err(), "the peer has disappeared");
            }
            return;
        }
        thread::sleep(Duration::from_millis(500));
        ip(&format!("-n {receiver} addr add 10.99.0.2/24 dev v0"));
        for mut socket in &idle {
            socket.write_all(&[7; 200]).expect("the connection lives");
        }
    }
    for mut socket in idle {
        socket.shutdown(Shutdown::Write).expect("connected");
        assert_eq!(socket.read(&mut [0]).expect("the connection lives"), 0);
    }
}
