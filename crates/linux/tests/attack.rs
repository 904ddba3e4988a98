//! Receivers that manipulate their acknowledgements (Savage et al., "TCP congestion control with a
//! misbehaving receiver", 1999) against each object in the running kernel. The receiver is this program,
//! behind a TUN device; the sender is a socket of the kernel. Needs root and /dev/net/tun, and prints
//! `skipped` otherwise.
//!
//! Time runs in rounds: the receiver takes all segments that the kernel sends, then acknowledges them. A
//! startup that decides by time ends early for an honest receiver, whose acknowledgements show the rate of
//! the path, and a receiver may hide that. It then gets standard slow start, which doubles the flight in each
//! round, and must not get more.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

mod common;

use common::{Cgroup, Net, ip, settles};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use nix::unistd::Pid;
use slowstart_linux::{RunningTrial, Spec, TABLE, TrialRecord, TrialSpec, Verb, load_as};
use slowstart_trial::Plan;
use slowstart_trial::plan::Arm;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
const MSS: usize = 1400;
/// Rounds of acknowledgements; the first flight has the initial cwnd of 10 segments.
const ROUNDS: usize = 4;
/// Time between two acknowledged segments, and the silence after which a flight is complete.
const SPACING: Duration = Duration::from_micros(500);
const SILENCE: Duration = Duration::from_millis(40);
/// The longest wait for the first segment of a flight.
const PATIENCE: Duration = Duration::from_secs(10);
const RUNS: usize = 3;
/// Segments in the last flight of standard slow start.
const DOUBLED: usize = 10 << ROUNDS;

/// What the receiver does with a flight.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Receiver {
    /// Acknowledges each segment.
    Honest,
    /// Acknowledges each segment in eight parts.
    Division,
    /// Sends three duplicates after each acknowledgement.
    Duplicates,
    /// Also acknowledges data that was never sent.
    BeyondSent,
    /// Acknowledges every fourth segment only, and with it three that it skipped.
    Skipping,
    /// Acknowledges the whole flight when its first segment arrives, without spacing.
    AtOnce,
}

const ATTACKS: [Receiver; 5] =
    [Receiver::Division, Receiver::Duplicates, Receiver::BeyondSent, Receiver::Skipping, Receiver::AtOnce];

#[allow(unsafe_code, reason = "no crate in use has this call; the structure outlives it")]
fn tun(ns: &str) -> File {
    let file = Net::within(ns, || {
        let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").expect("it exists");
        // SAFETY: a structure of numbers, which may be zero.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(b"tun0") {
            *to = (*from).cast_signed();
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the structure is that of this request, and outlives the call.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        file
    });
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a file");
    ip(&format!("-n {ns} addr add {SENDER}/24 dev tun0"));
    ip(&format!("-n {ns} link set tun0 txqueuelen 10000 up"));
    file
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for pair in parts.concat().chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

const SYN: u8 = 2;
const ACK: u8 = 16;

/// The receiving end of a connection.
struct Peer {
    tun: File,
    port: u16,
    /// Next sequence number of this end.
    seq: u32,
    /// Next sequence number expected.
    next: u32,
}

impl Peer {
    fn packet(&self, flags: u8, seq: u32, ack: u32, options: &[u8]) -> Vec<u8> {
        let mut tcp = Vec::new();
        tcp.extend(5000_u16.to_be_bytes());
        tcp.extend(self.port.to_be_bytes());
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([(((20 + options.len()) / 4) << 4) as u8, flags]);
        tcp.extend(60_000_u16.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        let pseudo =
            [&RECEIVER.octets()[..], &SENDER.octets(), &[0, 6], &(tcp.len() as u16).to_be_bytes()].concat();
        let sum = checksum(&[&pseudo, &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = vec![0x45, 0];
        packet.extend(((20 + tcp.len()) as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend(RECEIVER.octets());
        packet.extend(SENDER.octets());
        let sum = checksum(&[&packet]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(tcp);
        packet
    }

    fn send(&mut self, flags: u8, seq: u32, ack: u32, options: &[u8]) {
        let packet = self.packet(flags, seq, ack, options);
        self.tun.write_all(&packet).expect("the device is up");
    }

    /// Connects to a listener behind the device.
    fn connect(tun: File, listener: &TcpListener) -> (Self, TcpStream) {
        let port = listener.local_addr().expect("bound").port();
        let mut peer = Self { tun, port, seq: 1000, next: 0 };
        // MSS, window scale 10.
        peer.send(SYN, 1000, 0, &[2, 4, (MSS >> 8) as u8, MSS as u8, 1, 3, 3, 10]);
        let answer = loop {
            if let Some((seq, _, flags)) = peer.receive()
                && flags == SYN | ACK
            {
                break seq;
            }
            thread::sleep(Duration::from_millis(1));
        };
        // The handshake takes as long as a round.
        thread::sleep(SILENCE);
        (peer.seq, peer.next) = (1001, answer.wrapping_add(1));
        peer.ack(peer.next);
        (peer, listener.accept().expect("connected").0)
    }

    /// Ends the connection.
    fn reset(&mut self) {
        let (seq, next) = (self.seq, self.next);
        self.send(4 | ACK, seq, next, &[]);
    }

    fn ack(&mut self, ack: u32) {
        self.send(ACK, self.seq, ack, &[]);
    }

    /// Reads a TCP segment of the connection: sequence number, bytes of payload, flags.
    fn receive(&mut self) -> Option<(u32, usize, u8)> {
        let mut buffer = [0; 2048];
        loop {
            let n = self.tun.read(&mut buffer).ok()?;
            let packet = &buffer[..n];
            if n < 40 || packet[0] != 0x45 || packet[9] != 6 {
                continue;
            }
            let header = 20 + usize::from(packet[32] >> 4) * 4;
            let seq = u32::from_be_bytes([packet[24], packet[25], packet[26], packet[27]]);
            return Some((seq, n - header, packet[33]));
        }
    }

    /// Waits for the end of a flight of at least one segment: a sender that waits for a processor has not ended one. Returns the
    /// sequence numbers after each of its new segments.
    fn flight(&mut self) -> Vec<u32> {
        let mut ends = Vec::new();
        let mut quiet = Duration::ZERO;
        while quiet < if ends.is_empty() { PATIENCE } else { SILENCE } {
            match self.receive() {
                Some((seq, bytes, _)) if seq == self.next && bytes > 0 => {
                    self.next = self.next.wrapping_add(bytes as u32);
                    ends.push(self.next);
                    quiet = Duration::ZERO;
                }
                Some(_) => {}
                None => {
                    thread::sleep(Duration::from_millis(1));
                    quiet += Duration::from_millis(1);
                }
            }
        }
        ends
    }

    fn acknowledge(&mut self, flight: &[u32], receiver: Receiver) {
        let mut from = flight.first().map_or(0, |e| e.wrapping_sub(MSS as u32));
        for (i, end) in flight.iter().enumerate() {
            match receiver {
                Receiver::Honest | Receiver::AtOnce => self.ack(*end),
                Receiver::Division => {
                    let bytes = end.wrapping_sub(from);
                    (1..=8).for_each(|part| self.ack(from.wrapping_add(bytes * part / 8)));
                }
                Receiver::Duplicates => (0..4).for_each(|_| self.ack(*end)),
                Receiver::BeyondSent => {
                    self.ack(*end);
                    self.ack(self.next.wrapping_add(1000 * MSS as u32));
                }
                Receiver::Skipping => {
                    if i % 4 == 3 || i + 1 == flight.len() {
                        self.ack(*end);
                    }
                }
            }
            from = *end;
            if receiver != Receiver::AtOnce {
                thread::sleep(SPACING);
            }
        }
    }
}

/// Runs one transfer. Returns the segments of the last flight.
fn last_flight(control: &str, receiver: Receiver) -> usize {
    static RUN: AtomicUsize = AtomicUsize::new(0);
    let ns = format!("ss-{}-attack-{}", std::process::id(), RUN.fetch_add(1, Ordering::Relaxed));
    ip(&format!("netns add {ns}"));
    let segments = {
        let tun = tun(&ns);
        let listener = Net::within(&ns, || TcpListener::bind((SENDER, 0))).expect("a port");
        setsockopt(&listener, TcpCongestion, &OsString::from(control)).expect("it is loaded");
        let (mut peer, mut server) = Peer::connect(tun, &listener);
        server.set_write_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let writer = thread::spawn(move || {
            // Ends when the device is gone and the socket is shut down.
            let _ = server.write_all(&vec![1; 16 << 20]);
        });
        for _ in 0..ROUNDS {
            let flight = peer.flight();
            peer.acknowledge(&flight, receiver);
        }
        let last = peer.flight().len();
        // This ends the writer too.
        peer.reset();
        writer.join().expect("no panic");
        last
    };
    ip(&format!("netns del {ns}"));
    segments
}

/// Startups that do not decide by time, and must give an attacker no more than an honest receiver.
const TIMELESS: [&str; 6] = ["standard", "limited", "restricted", "tsl", "abc", "smooth"];

/// It sends all that the application has written in its first round trip, so that there is no flight to
/// compare.
const JUMPS: &str = "jump-start";

/// Without SACK the kernel counts a duplicate as a delivered segment, so its rate samples, which these startups
/// set cwnd by, are too large, and a loss alone does not end them. The kernel's own `bbr` has the same
/// weakness.
const BELIEVE_DUPLICATES: [&str; 2] = ["bbr3", "bbr2-quiche"];

/// The most segments of the last flight under a startup that decides by time: those of standard slow start,
/// unless it sends more by design. `usize::MAX` is a known weakness (docs/evidence/kernel.md, "Receivers that
/// manipulate their acknowledgements").
fn bound(startup: &str, attack: Receiver) -> usize {
    match (startup, attack) {
        ("hybla", _) | ("ess", Receiver::AtOnce) => usize::MAX,
        (s, Receiver::Duplicates) if BELIEVE_DUPLICATES.contains(&s) => usize::MAX,
        ("ess" | "suss", _) => 2 * DOUBLED,
        // Three times the flight in each round.
        ("rapid-start" | "rapid-start-00", _) => 10 * 3_usize.pow(ROUNDS as u32),
        // Two and a half times the flight in each round.
        ("rate-bound", _) => 10 * 5_usize.pow(ROUNDS as u32) / 2_usize.pow(ROUNDS as u32),
        _ => DOUBLED,
    }
}

/// Controls that are measured at a time, each against receivers in namespaces of its own.
const AT_ONCE: usize = 4;

fn measure(control: &str, receiver: Receiver) -> Vec<usize> {
    (0..RUNS).map(|_| last_flight(control, receiver)).collect()
}

fn most(flights: &[usize]) -> usize {
    flights.iter().copied().max().unwrap_or(0)
}

fn median(flights: &[usize]) -> usize {
    let mut sorted = flights.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Returns a line for each attack on a startup that gains more than it may.
fn attack(startup: &str, i: usize) -> Vec<String> {
    let spec = Spec::read(startup, "cubic").expect("in the table");
    let held = load_as(&spec, format!("ss_a{}_{i}", std::process::id())).unwrap_or_else(|e| panic!("{e}"));
    let mut honest = measure(&held.name, Receiver::Honest);
    let mut failed = Vec::new();
    for attack in ATTACKS {
        let mut flights = measure(&held.name, attack);
        let bound = |honest: &[usize]| {
            if attack == Receiver::Duplicates && !BELIEVE_DUPLICATES.contains(&startup) {
                // Without SACK three duplicates are a loss.
                39
            } else if TIMELESS.contains(&startup) {
                // An ACK of several segments is earned at the smaller cwnd before it (limited slow start): 2 %.
                most(honest) * 103 / 100
            } else {
                bound(startup, attack)
            }
        };
        // The median: a pause of the machine changes one run. What exceeds the bound is measured with twice
        // as many more, and so is the honest receiver.
        if median(&flights) > bound(&honest) {
            for _ in 0..2 {
                flights.extend(measure(&held.name, attack));
                honest.extend(measure(&held.name, Receiver::Honest));
            }
        }
        println!("{startup}: {attack:?} {flights:?} segments, honest {honest:?}");
        let bound = bound(&honest);
        if median(&flights) > bound {
            failed.push(format!(
                "{startup}: {attack:?} {flights:?} segments, bound {bound}, honest {honest:?}"
            ));
        }
    }
    if most(&honest) <= 15 {
        failed.push(format!("{startup}: an honest receiver gets {honest:?} segments"));
    }
    failed
}

#[test]
fn manipulated_acknowledgements_gain_nothing() {
    if !common::works(&[Verb::Load]) || !common::has_tun() {
        return;
    }
    let next = AtomicUsize::new(0);
    let failed: Vec<String> = thread::scope(|s| {
        let work = || {
            let mut failed = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(entry) = TABLE.get(i) else { break failed };
                if entry.startup != JUMPS {
                    failed.extend(attack(entry.written(), i));
                }
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| s.spawn(work)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Two processors of those that this program may use.
fn two_processors() -> Option<[usize; 2]> {
    let all = sched_getaffinity(Pid::from_raw(0)).expect("this thread exists");
    let mut usable = (0..CpuSet::count()).filter(|n| all.is_set(*n).unwrap_or(false));
    Some([usable.next()?, usable.next()?])
}

/// Writes each packet twice at the same time, once on each processor.
fn write_at_once(tun: &File, packets: &[Vec<u8>], processors: [usize; 2]) {
    let ready = AtomicUsize::new(0);
    thread::scope(|s| {
        for processor in processors {
            let (mut tun, ready) = (tun, &ready);
            s.spawn(move || {
                let mut only = CpuSet::new();
                only.set(processor).expect("a processor");
                sched_setaffinity(Pid::from_raw(0), &only).expect("it may use it");
                for (n, packet) in packets.iter().enumerate() {
                    ready.fetch_add(1, Ordering::SeqCst);
                    for turn in 1_u32.. {
                        if ready.load(Ordering::SeqCst) >= 2 * (n + 1) {
                            break;
                        }
                        // The other may wait for its processor.
                        if turn.is_multiple_of(10_000) {
                            thread::yield_now();
                        }
                    }
                    tun.write_all(packet).expect("the device is up");
                }
            });
        }
    });
}

/// Returns a listener that belongs to a cgroup, as do the connections that it accepts.
fn listener_of(cgroup: &Cgroup, ns: &str) -> TcpListener {
    let own = fs::read_to_string("/proc/self/cgroup").expect("readable");
    let own = own.lines().find_map(|l| l.strip_prefix("0::/")).expect("cgroup v2 is there");
    let enter = |dir: &std::path::Path| {
        fs::write(dir.join("cgroup.procs"), std::process::id().to_string()).expect("root may");
    };
    enter(&cgroup.0);
    let listener = Net::within(ns, || TcpListener::bind((SENDER, 0))).expect("a port");
    enter(&cgroup.0.parent().expect("below the root").join(own));
    listener
}

/// A program sees the ACKs of a connection before the kernel takes the lock of its socket: on a veth, on
/// loopback and behind a TUN device on the processors of their senders, two at the same time.
#[test]
fn an_acknowledgement_that_two_processors_see_at_once_counts_once() {
    const BYTES: usize = 4_000_000;
    if !common::works(&[Verb::Trial]) || !common::has_tun() {
        return;
    }
    let Some(processors) = two_processors() else {
        println!("skipped: kernel tests that need two processors");
        return;
    };
    let Some(cgroup) = Cgroup::new("at-once") else {
        println!("skipped: kernel tests that need a writable cgroup v2");
        return;
    };
    let arms = ["reno:50%", "cubic:50%"].map(|a| Arm::parse(a).expect("an arm"));
    let plan = Plan::new(arms.to_vec(), 7).expect("valid");
    let spec =
        TrialSpec { cgroup: &cgroup.0, plan: &plan, sticky: false, a_a: false, dry: false, salt: None };
    let trial = RunningTrial::start(&spec).unwrap_or_else(|e| panic!("{e}"));
    let records = std::sync::Mutex::new(Vec::<TrialRecord>::new());
    let mut reader = trial.reader(|r| records.lock().expect("one thread").push(r)).expect("a ring");

    let ns = format!("ss-{}-at-once", std::process::id());
    ip(&format!("netns add {ns}"));
    let (mut peer, mut server) = Peer::connect(tun(&ns), &listener_of(&cgroup, &ns));
    server.set_write_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let first = peer.next;
    let writer = thread::spawn(move || server.write_all(&vec![1; BYTES]).map(|()| server));
    while (peer.next.wrapping_sub(first) as usize) < BYTES {
        let acks: Vec<_> = peer.flight().iter().map(|end| peer.packet(ACK, peer.seq, *end, &[])).collect();
        write_at_once(&peer.tun, &acks, processors);
    }
    let server = writer.join().expect("no panic").expect("everything was acknowledged");
    peer.reset();
    settles(
        || {
            reader.poll().expect("readable");
            records.lock().expect("one thread").iter().filter(|r| r.closed).count()
        },
        1,
    );
    drop((server, peer));
    ip(&format!("netns del {ns}"));
    let records = records.lock().expect("one thread");
    let delivered: Vec<_> = records.iter().filter(|r| r.closed).map(|r| r.outcome.delivered_bytes).collect();
    assert_eq!(delivered, [BYTES as u64]);
    // At 100 kB, 1 MB, and at the end.
    assert_eq!(records.len(), 3, "{records:?}");
}
