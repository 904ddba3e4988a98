//! Startups that jump, in the running kernel: the jump is paced on the wire, and path memory (RFC 9959) is
//! used where it is valid and nowhere else. Needs root and TUN devices.

mod common;

use common::Net;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket,
    sockopt::{Linger, TcpCongestion},
};
use slowstart::units::Span;
use slowstart_linux::emulate::{CLIENT, Emulation, Report, SERVER};
use slowstart_linux::{Facts, Held, Kind, Memory, MemoryEntry, MemoryScope, Spec, Verb, load_as};
use slowstart_sim::path::{Kind as PacketKind, PathSpec};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

static ONE: Mutex<()> = Mutex::new(());

fn able(needs: &[Verb]) -> Option<MutexGuard<'static, ()>> {
    let able = common::works(needs) && common::has_tun();
    able.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn loaded(startup: &str) -> Held {
    let spec = Spec::read(startup, "cubic").unwrap_or_else(|e| panic!("{e}"));
    let held = load_as(&spec, format!("ss_j_{}", std::process::id())).unwrap_or_else(|e| panic!("{e}"));
    held.watch(2).expect("live");
    held
}

fn emulate(path: &str) -> Emulation {
    let spec = PathSpec::load(path, None).unwrap_or_else(|e| panic!("{path}: {e}"));
    Emulation::start(&spec, 1, true).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[allow(clippy::disallowed_methods, reason = "connections run on the real clock")]
fn now() -> Instant {
    Instant::now()
}

/// The port of the server in these tests.
const PORT: u16 = 8443;
const PATIENCE: Duration = Duration::from_secs(30);

/// A download of `bytes` bytes by a client at `from`; returns how long it took from the request to connect,
/// and the events of the sender.
fn download(e: &Emulation, held: &Held, from: &str, bytes: usize) -> (Duration, Vec<Facts>) {
    download_in_parts(e, held, from, &[bytes])
}

/// A download of several parts, each of which the client asks for when it has those before.
fn download_in_parts(e: &Emulation, held: &Held, from: &str, parts: &[usize]) -> (Duration, Vec<Facts>) {
    let seen = RefCell::new(Vec::new());
    let ring = held.events(|f| seen.borrow_mut().push(f)).expect("a ring");
    let listener = Net::within(e.server(), || TcpListener::bind((SERVER, PORT))).expect("the port is free");
    setsockopt(&listener, TcpCongestion, &OsString::from(&held.name)).expect("loaded");
    let begin = now();
    let took = thread::scope(|s| {
        s.spawn(|| {
            let (mut server, _) = listener.accept().expect("a client");
            server.set_write_timeout(Some(PATIENCE)).expect("a timeout");
            server.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            for (i, bytes) in parts.iter().enumerate() {
                assert!(i == 0 || server.read(&mut [0]).expect("a request") == 1);
                server.write_all(&vec![7; *bytes]).expect("written");
            }
            let _ = server.shutdown(std::net::Shutdown::Write);
            let _ = server.read(&mut [0]);
            setsockopt(&server, Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 })
                .expect("a TCP socket");
        });
        let mut client: TcpStream = Net::within(e.client(), || {
            let fd =
                socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).expect("a socket");
            let from: SocketAddrV4 = format!("{from}:0").parse().expect("an address");
            bind(fd.as_raw_fd(), &SockaddrIn::from(from)).expect("its address");
            let to: SocketAddrV4 = format!("{SERVER}:{PORT}").parse().expect("an address");
            connect(fd.as_raw_fd(), &SockaddrIn::from(to)).expect("connects");
            fd.into()
        });
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut buffer = vec![0; 1 << 16];
        for (i, bytes) in parts.iter().enumerate() {
            assert!(i == 0 || client.write(&[7]).expect("a request") == 1);
            let mut left = *bytes;
            while left > 0 {
                left -= match client.read(&mut buffer).expect("data") {
                    0 => panic!("closed with {left} bytes to come"),
                    n => n,
                };
            }
        }
        begin.elapsed()
    });
    common::ended(held);
    ring.consume().expect("readable");
    drop(ring);
    (took, seen.into_inner())
}

/// Times at which the sender's data packets reached its device, since the first of them, in ms.
fn spacing(report: &Report) -> Vec<f64> {
    let data = report.forward.records.iter().filter(|r| r.packet.kind == PacketKind::Data);
    let times: Vec<u64> = data.map(|r| r.at.0).collect();
    times.iter().map(|t| (t - times[0]) as f64 / 1e6).collect()
}

/// The event at which the startup set a pacing rate.
fn jump(events: &[Facts]) -> &Facts {
    events.iter().find(|f| f.pace > 0 && f.pace < u64::MAX).expect("a jump")
}

/// One transfer of 101 packets: its events, how many of the packets reached the device in the first round
/// trip, and how many in each quarter of that.
fn first_round_trip(startup: &str) -> (Vec<Facts>, usize, [usize; 4]) {
    let (held, e) = (loaded(startup), emulate("rate=100Mbit rtt=200ms queue=4bdp"));
    let (_, events) = download(&e, &held, CLIENT, 145_000);
    let times = spacing(&e.stop().expect("it ran"));
    let first: Vec<f64> = times.iter().copied().filter(|t| *t < 190.0).collect();
    println!("{startup}: {} of {} packets in the first round trip: {first:.0?}", first.len(), times.len());
    let within = |from: f64| first.iter().filter(|t| (from..from + 50.0).contains(*t)).count();
    (events, first.len(), [0.0, 50.0, 100.0, 150.0].map(within))
}

/// Attempts at a transfer that nothing else on the machine delays: a device that is read late shows packets
/// together that were not sent together.
const ATTEMPTS: usize = 3;

#[test]
fn a_jump_is_paced_on_the_wire_and_pacing_ends_with_it() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    // The whole flight within the first round trip, evenly: no quarter of it has more than 40 %.
    let even = |all: usize, quarters: &[usize; 4]| all >= 95 && quarters.iter().all(|n| n * 10 <= all * 4);
    let mut attempts: Vec<_> = Vec::new();
    while attempts.len() < ATTEMPTS && attempts.last().is_none_or(|(_, all, q)| !even(*all, q)) {
        attempts.push(first_round_trip("jump-start"));
    }
    let (events, all, quarters) = attempts.pop().expect("an attempt");
    assert!(even(all, &quarters), "{all} packets, {quarters:?}");
    let most = events.iter().filter(|f| f.kind == Kind::Send).map(|f| f.cwnd_after).max();
    assert_eq!(most, Some(101), "the window of the flight");
    let last = events.iter().rfind(|f| f.kind == Kind::Ack && f.asked).expect("ACKs");
    assert!(!last.paced, "pacing was turned off again: {last:?}");

    let (_, all, _) = first_round_trip("standard");
    assert!((10..=14).contains(&all), "the initial window only, not {all}");
}

/// The jump of one download by `startup`: its size in segments, and the most by which the bytes sent within
/// the next 50 ms exceed what a pacing rate of the new window per round trip lets out in that time and one
/// super-segment, as a ratio. By the kernel's own sequence numbers and clock, so that a device read late
/// changes nothing.
fn sent_after_jump(startup: &str) -> (u32, f64) {
    let (held, e) = (loaded(startup), emulate("rate=100Mbit rtt=100ms queue=8bdp"));
    let (_, events) = download(&e, &held, CLIENT, 3_000_000);
    let at = events.iter().find(|f| f.kind == Kind::Ack && f.set > 2 * f.cwnd).expect("a jump");
    let bytes_per_ns = f64::from(at.set) * f64::from(at.mss) / (f64::from(at.srtt_us) * 1e3);
    let ratio = |f: &Facts| {
        let paced = bytes_per_ns * (f.now_ns - at.now_ns) as f64;
        (f.next - at.next) as f64 / (paced + f64::from(at.gso_max))
    };
    let soon = events.iter().filter(|f| (at.now_ns..at.now_ns + 50_000_000).contains(&f.now_ns));
    let most = soon.map(ratio).fold(0.0, f64::max);
    println!("{startup}: from {} to {} segments, sent at most {most:.2} of a paced window", at.cwnd, at.set);
    (at.set - at.cwnd, most)
}

#[test]
fn ess_paces_its_jump_if_asked() {
    let Some(_one) = able(&[Verb::Load]) else { return };
    // The rate is estimated from the spacing of ACKs, and the burst needs a processor: noise makes both
    // smaller.
    let mut burst = (1..=ATTEMPTS).map(|_| sent_after_jump("ess"));
    assert!(burst.any(|(size, most)| size > 300 && most > 1.5), "no burst");
    let mut paced = (1..=ATTEMPTS).map(|_| sent_after_jump("ess:jump=paced"));
    let (_, most) = paced.find(|(size, _)| *size > 300).expect("a jump of the size of the path");
    assert!(most < 1.2, "{most}");
}

fn entries(held: &Held) -> Vec<MemoryEntry> {
    held.memory().as_ref().map(Memory::entries).unwrap_or_default()
}

const RTT: Duration = Duration::from_millis(600);

#[test]
fn careful_resume_saves_round_trips_on_the_same_path_only() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    let (held, e) = (loaded("careful-resume"), emulate("rate=20Mbit rtt=600ms queue=1bdp"));
    // Another client, too.
    common::ip(&format!("-n {} addr add 10.78.0.2/24 dev path0", e.client()));
    common::ip(&format!("-n {} route add 10.78.0.0/24 dev path0", e.server()));
    let size = 800_000;
    let (first, events) = download(&e, &held, CLIENT, 3_000_000);
    assert_eq!(events[0].memory_cwnd, 0, "nothing is known yet");
    let left = entries(&held);
    println!("first {first:?}, left {left:?}");
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].prefix.to_string().as_str(), left[0].bits), (CLIENT, 32));
    assert_eq!(left[0].scope, MemoryScope::Port(PORT));
    assert!((600_000..700_000).contains(&left[0].rtt_us) && left[0].cwnd_bytes >= 1_000_000, "{left:?}");

    let (other, events) = download(&e, &held, "10.78.0.2", size);
    assert_eq!(events[0].memory_cwnd, 0, "memory of another client is not used");
    assert!(events.iter().all(|f| f.pace == 0 || f.pace == u64::MAX));

    let saved = left[0].cwnd_bytes;
    let (second, events) = download(&e, &held, CLIENT, size);
    assert_eq!((events[0].memory_cwnd, events[0].kind), (saved, Kind::Begin));
    let at = jump(&events);
    println!("second {second:?}, another prefix {other:?}, jump from {} to {} segments", at.cwnd, at.set);
    // Half of the saved window, paced over one round trip, once the initial window has arrived (RFC 9959).
    assert_eq!(u64::from(at.set), saved / 2 / u64::from(at.mss));
    assert!(
        (590_000..700_000).contains(&(u64::from(at.set) * u64::from(at.mss) * 8_000_000 / at.pace)),
        "{at:?}"
    );
    // In slow start each packet acknowledged adds one: by ACKs of the second round trip there would be more than 20.
    assert!(at.cwnd <= 20, "from {} segments: after the first round trip", at.cwnd);
    // Doubling from 10 segments to half of the saved window takes log2(saved / 2 / 10) round trips; the jump
    // takes one.
    let rounds = (f64::from(at.set) / 10.0).log2() - 1.0;
    let wins = other.as_secs_f64() - second.as_secs_f64();
    // Whole round trips: of a time that is a multiple of them, noise decides which side it is on.
    let saved = (wins / RTT.as_secs_f64()).round();
    assert!(saved >= rounds.floor() - 1.0, "{wins} s of {rounds} round trips");
    assert!(entries(&held).iter().any(|m| m.prefix.to_string() == CLIENT), "it left its own");

    let memory = held.memory().expect("it has one");
    assert_eq!((memory.clear().expect("root may"), entries(&held).len()), (2, 0));
    let (_, events) = download(&e, &held, CLIENT, 50_000);
    assert_eq!(events[0].memory_cwnd, 0, "forgotten");
    assert_eq!(entries(&held).len(), 0, "a short download leaves nothing");
}

/// Slow start overflows this queue: what was in flight then is more than the path holds, and so is 0.7 of it,
/// CUBIC's window after the loss, which the end of the download does not use. While it recovers, much of what
/// is not acknowledged has arrived or is lost.
#[test]
fn what_is_left_was_in_flight_without_a_loss() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    // The path holds its bandwidth-delay product, its queue and the packet that is being sent.
    let holds = 125_000 + 41 * 1500;
    for parts in [&[600_000, 5_000][..], &[650_000, 5_000], &[800_000], &[800_000]] {
        let mut after = 0;
        // A machine that pauses between the parts for a retransmission timeout has the kernel restart its window
        // (RFC 5681 §4.1); the case is then another one.
        for _ in 0..5 {
            let (held, e) = (loaded("stateful"), emulate("rate=10Mbit rtt=100ms queue=40packets"));
            let (_, events) = download_in_parts(&e, &held, CLIENT, parts);
            after = events.last().map_or(0, |f| u64::from(f.cwnd * f.mss));
            let left: Vec<u64> = entries(&held).iter().map(|m| m.cwnd_bytes).collect();
            println!("{parts:?} bytes: a window of {after} bytes at the end; left {left:?}");
            assert!(left.iter().all(|n| *n <= holds), "it holds {holds} bytes: {left:?}");
            assert!(parts.len() == 1 || left.len() == 1, "{after} {left:?}");
            if parts.len() == 1 || after > holds {
                break;
            }
        }
        assert!(parts.len() == 1 || after > holds, "{after}");
    }
}

#[test]
fn careful_resume_retreats_on_a_path_with_a_tenth_of_the_rate() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    let held = loaded("careful-resume");
    let e = emulate("rate=20Mbit rtt=600ms queue=1bdp");
    download(&e, &held, CLIENT, 3_000_000);
    drop(e);
    let left = entries(&held);
    assert_eq!(left.len(), 1);
    let e = emulate("rate=2Mbit rtt=600ms queue=1bdp");
    let (_, events) = download(&e, &held, CLIENT, 800_000);
    let report = e.stop().expect("it ran");
    let at = jump(&events);
    let retreat = events
        .iter()
        .find(|f| f.kind == Kind::Loss && f.now_ns > at.now_ns)
        .expect("the jump overflows the queue");
    let after = Span(retreat.now_ns - at.now_ns).as_secs_f64();
    let srtt = f64::from(retreat.srtt_us) / 1e6;
    let dropped = report.forward.records.iter().filter(|r| r.outcome.is_err()).count();
    println!(
        "left {left:?}; jump to {} segments; retreat after {after:.2} s (SRTT {srtt:.2} s) to {} segments; {dropped} dropped",
        at.set, retreat.set
    );
    // The retreat keeps control of the window, and halves what the path has been seen to hold (RFC 9959, Safe
    // Retreat).
    assert_eq!(retreat.why, slowstart_linux::ExitReason::None);
    assert!(retreat.set > 0 && retreat.set < at.set / 4, "{retreat:?}");
    // The first loss occurs while the jump is sent. The retreat begins when it is detected, one round trip
    // (through the full queue) later.
    let first = report.forward.records.iter().find(|r| r.outcome.is_err()).expect("it was lost");
    let seen = Span(retreat.now_ns - (report.start + Span(first.at.0)).0).as_secs_f64();
    println!("the first loss was {seen:.2} s before the retreat");
    assert!(seen < srtt + 0.3 && after < 0.6 + 1.2 + 0.3, "{seen} {after}");
    assert!(dropped as u32 <= at.set, "{dropped}");
}

#[test]
fn stateful_begins_at_the_rate_of_the_connection_before() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    let (held, e) = (loaded("stateful"), emulate("rate=20Mbit rtt=200ms queue=1bdp"));
    let (first, _) = download(&e, &held, CLIENT, 600_000);
    let left = entries(&held);
    let (second, events) = download(&e, &held, CLIENT, 600_000);
    println!("first {first:?}, second {second:?}, left {left:?}");
    assert_eq!((events[0].memory_cwnd, events[0].pace), (left[0].cwnd_bytes, left[0].rate_bps));
    assert!(events[0].cwnd_after > 100, "{:?}", events[0]);
    assert!(first > second + Duration::from_millis(300), "{first:?} {second:?}");
}

#[test]
fn an_entry_is_used_by_one_connection_and_until_it_expires() {
    let Some(_one) = able(&[Verb::Load, Verb::Memory]) else { return };
    let mut spec = Spec::read("careful-resume", "cubic").expect("in the table");
    spec.memory.lifetime = Duration::from_secs(5);
    let held = load_as(&spec, format!("ss_j_{}", std::process::id())).expect("loads");
    held.watch(2).expect("live");
    // Slow start does not fill this queue. A machine that pauses has the kernel time out, and end with a window
    // that is too small to leave.
    let e = emulate("rate=50Mbit rtt=20ms queue=8bdp");
    let mut left = Vec::new();
    for _ in 0..ATTEMPTS {
        let (_, events) = download(&e, &held, CLIENT, 1_000_000);
        left = entries(&held);
        if !left.is_empty() {
            break;
        }
        println!("nothing was left: {:?}", events.last());
    }
    assert_eq!(left.len(), 1);
    // It begins, and is application-limited before it can use the entry: the entry is put back as it was.
    let (_, events) = download(&e, &held, CLIENT, 2_000);
    assert_eq!(events[0].memory_cwnd, left[0].cwnd_bytes);
    let back = entries(&held);
    assert_eq!((back[0].cwnd_bytes, back[0].rate_bps), (left[0].cwnd_bytes, left[0].rate_bps));
    assert!(
        back[0].saved.abs_diff(left[0].saved) < Duration::from_millis(50),
        "its age is that of the first"
    );
    thread::sleep(spec.memory.lifetime + Duration::from_millis(500));
    assert_eq!(entries(&held).len(), 0);
    let (_, events) = download(&e, &held, CLIENT, 2_000);
    assert_eq!(events[0].memory_cwnd, 0, "expired");
}
