//! A trial on a veth: so that each kernel shows that its programs are accepted and see what they must.

use crate::able;
use crate::common::{Cgroup, Net};
use nix::sys::socket::{getsockopt, sockopt::TcpCongestion};
use slowstart_linux::{RunningTrial, TrialSpec};
use slowstart_trial::Plan;
use slowstart_trial::plan::Arm;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const CONNECTIONS: usize = 20;
const BYTES: usize = 150_000;

/// A child process: sends over connections of the cgroup, one after the other, and prints the control of each.
#[test]
fn sends_in_a_cgroup() {
    let Ok(request) = std::env::var("SLOWSTART_SEND") else { return };
    let (cgroup, address) = request.split_once('|').expect("both");
    fs::write(format!("{cgroup}/cgroup.procs"), std::process::id().to_string()).expect("root may");
    for _ in 0..CONNECTIONS {
        let mut socket = TcpStream::connect(address).expect("connects");
        let control = getsockopt(&socket, TcpCongestion).expect("a TCP socket");
        println!("uses {}", control.to_string_lossy().trim_end_matches('\0'));
        socket.write_all(&vec![7; BYTES]).expect("the connection lives");
    }
}

#[test]
fn each_connection_of_a_trial_is_counted_once_with_its_times() {
    let Some(_one) = able("each_connection_of_a_trial_is_counted_once_with_its_times") else { return };
    let Some(cgroup) = Cgroup::new("trial") else {
        println!("skipped: kernel test of trials (needs a writable cgroup v2)");
        return;
    };
    let net = Net::veth("trial");
    let arms = ["reno:50%", "search:50%"].map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 3).expect("a plan");
    let spec = TrialSpec { cgroup: &cgroup.0, plan: &plan, sticky: false, a_a: false, dry: false };
    let trial = RunningTrial::start(&spec).expect("the kernel accepts its programs");

    let listener = Net::within(&net.receiver, || TcpListener::bind("10.99.0.2:0")).expect("a port");
    let request = format!("{}|{}", cgroup.0.display(), listener.local_addr().expect("bound"));
    let receives = thread::spawn(move || {
        for _ in 0..CONNECTIONS {
            let (mut socket, _) = listener.accept().expect("connected");
            let mut all = Vec::new();
            assert_eq!(socket.read_to_end(&mut all).expect("the connection lives"), BYTES);
        }
    });
    let child =
        Net::within(&net.sender, || crate::child("trial::sends_in_a_cgroup", "SLOWSTART_SEND", &request));
    let said = crate::output_of(child);
    receives.join().expect("all arrived");
    let used = |control: &str| said.lines().filter(|l| l.contains(&format!("uses {control}"))).count();
    assert_eq!(used(""), CONNECTIONS, "{said}");

    let mut records = Vec::new();
    {
        let mut reader = trial.reader(|r| records.push(r)).expect("a ring");
        for _ in 0..40 {
            reader.poll().expect("readable");
            thread::sleep(Duration::from_millis(50));
        }
    }
    let counts = trial.counts().expect("readable");
    assert_eq!(counts.assigned, [used("reno") as u64, used("ss_") as u64], "{said}");
    assert_eq!((counts.refused, counts.without_storage, counts.lost_records), (0, 0, 0));
    let closed: Vec<_> = records.iter().filter(|r| r.closed).collect();
    assert_eq!((closed.len(), records.len()), (CONNECTIONS, 2 * CONNECTIONS), "a milestone and a close each");
    for r in closed {
        let o = &r.outcome;
        assert_eq!(o.delivered_bytes, BYTES as u64, "{o:?}");
        assert!(o.sent_bytes >= BYTES as u64 && o.rtt_peak >= o.rtt_mean && o.rtt_mean >= Some(1.0), "{o:?}");
        let (first, last) = (o.milestones_s[0].expect("100 kB"), o.last_s.expect("closed"));
        assert!(0.0 < first && first <= last && o.milestones_s[1].is_none(), "{o:?}");
    }
}
