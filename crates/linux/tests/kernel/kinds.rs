//! A trial on a server whose connections are of other kinds than in `trial.rs`: their handshake is never
//! complete, their peer has disappeared, they come to several listeners at one port, over Multipath TCP or
//! TCP Fast Open, they are idle for minutes, or their program is frozen.

use crate::common::{Cgroup, Net, ip, settles};
use crate::trial::trial_while;
use crate::{able, child};
use nix::libc;
use nix::sys::socket::sockopt::{KeepAlive, ReusePort, TcpKeepCount, TcpKeepIdle, TcpKeepInterval};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, connect, listen,
    sendto, setsockopt, socket,
};
use slowstart_linux::{TrialCounts, TrialRecord, Verb};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ChildStdout;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const CLIENTS: usize = 12;
/// The answer to a byte is so many times its value.
const UNIT: usize = 10_000;
/// A request whose answer is more than the first milestone, 100 kB.
const PAGE: u8 = 15;
const PAGE_BYTES: usize = UNIT * PAGE as usize;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
/// No machine has it.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 77);

/// A TCP socket, or one of Multipath TCP.
#[allow(unsafe_code, reason = "no crate in use has this protocol; a descriptor has one owner")]
fn tcp(multipath: bool) -> std::io::Result<OwnedFd> {
    let protocol = if multipath { libc::IPPROTO_MPTCP } else { libc::IPPROTO_TCP };
    // SAFETY: it takes numbers and has no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it is open, and of nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn listener(at: SocketAddrV4, multipath: bool) -> TcpListener {
    let fd = tcp(multipath).expect("a socket");
    setsockopt(&fd, ReusePort, &true).expect("a TCP socket");
    bind(fd.as_raw_fd(), &SockaddrIn::from(at)).expect("a port");
    listen(&fd, Backlog::MAXCONN).expect("bound");
    fd.into()
}

fn connected(to: SocketAddrV4, multipath: bool) -> TcpStream {
    let fd = tcp(multipath).expect("a socket");
    connect(fd.as_raw_fd(), &SockaddrIn::from(to)).expect("connects");
    fd.into()
}

/// The server, a child process in a cgroup, killed on drop.
struct Server {
    child: crate::Child,
    said: BufReader<ChildStdout>,
    address: SocketAddrV4,
}

impl Server {
    /// Starts it with some of the words `multipath`, `keepalive`, `calls-nobody`. It ends after so many
    /// connections.
    fn start(cgroup: &Cgroup, net: &Net, listeners: usize, connections: usize, how: &str) -> Self {
        let request = format!("{}|{listeners}|{connections}|{how}", cgroup.0.display());
        let mut child =
            Net::within(&net.sender, || child("kinds::serves_in_a_cgroup", "SLOWSTART_SERVES", &request));
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "it ended");
            if let Some((_, port)) = line.split_once("listens at ") {
                break port.trim().parse().expect("a port");
            }
        };
        Self { child: crate::Child(child), said, address: SocketAddrV4::new(SERVER, port) }
    }

    /// Waits for its end. Returns how many connections each listener had.
    fn end(mut self) -> Vec<usize> {
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("text");
        assert!(self.child.0.wait().expect("it ends").success(), "{said}");
        let line = said.lines().find_map(|l| l.split_once("accepted ")).expect("it says that");
        line.1.split(' ').map(|n| n.parse().expect("a number")).collect()
    }
}

/// The child process: answers each byte until its peer closes.
#[test]
fn serves_in_a_cgroup() {
    let Ok(request) = std::env::var("SLOWSTART_SERVES") else { return };
    let [cgroup, listeners, connections, how] = request.split('|').collect::<Vec<_>>()[..] else {
        panic!("{request}")
    };
    fs::write(format!("{cgroup}/cgroup.procs"), std::process::id().to_string())
        .expect("root may move itself");
    let [listeners, connections] = [listeners, connections].map(|n| n.parse::<usize>().expect("a number"));
    if how.contains("calls-nobody") {
        let to = SocketAddrV4::new(NOBODY, 9).into();
        TcpStream::connect_timeout(&to, Duration::from_millis(300)).expect_err("nobody answers");
    }
    let multipath = how.contains("multipath");
    let first = listener(SocketAddrV4::new(SERVER, 0), multipath);
    let port = first.local_addr().expect("bound").port();
    let others = (1..listeners).map(|_| listener(SocketAddrV4::new(SERVER, port), multipath));
    let all: Vec<TcpListener> = std::iter::once(first).chain(others).collect();
    println!("listens at {port}");
    let keep = how.contains("keepalive");
    let (ends, ended) = channel();
    for (number, listener) in all.into_iter().enumerate() {
        let ends = ends.clone();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, ends) = (socket.expect("connected"), ends.clone());
                thread::spawn(move || {
                    answers(socket, keep);
                    ends.send(number).expect("the test waits");
                });
            }
        });
    }
    let mut accepted = vec![0; listeners];
    for number in ended.iter().take(connections) {
        accepted[number] += 1;
    }
    let accepted: Vec<String> = accepted.iter().map(ToString::to_string).collect();
    println!("accepted {}", accepted.join(" "));
}

fn answers(mut socket: TcpStream, keep: bool) {
    if keep {
        setsockopt(&socket, KeepAlive, &true).expect("a TCP socket");
        setsockopt(&socket, TcpKeepIdle, &1).expect("a TCP socket");
        setsockopt(&socket, TcpKeepInterval, &1).expect("a TCP socket");
        setsockopt(&socket, TcpKeepCount, &2).expect("a TCP socket");
    }
    let mut request = [0];
    while socket.read(&mut request).is_ok_and(|n| n > 0) {
        socket.write_all(&vec![7; UNIT * usize::from(request[0])]).expect("the connection lives");
    }
}

/// Reads the answer to a request.
fn read_answer(socket: &mut TcpStream, request: u8) {
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    socket.read_exact(&mut vec![0; UNIT * usize::from(request)]).expect("the connection lives");
}

/// Requests a page and reads it.
fn ask(socket: &mut TcpStream) {
    socket.write_all(&[PAGE]).expect("the connection lives");
    read_answer(socket, PAGE);
}

/// A counter of a network namespace in /proc/net/netstat, such as `MPTcpExt` and `MPCapableSYNRX`; `None` if
/// the kernel has none.
fn counter(ns: &str, group: &str, name: &str) -> Option<u64> {
    let text = Net::within(ns, || fs::read_to_string("/proc/thread-self/net/netstat")).expect("readable");
    let mut lines = text.lines().filter_map(|l| l.strip_prefix(group)?.strip_prefix(": "));
    let (names, values) = (lines.next()?, lines.next()?);
    names.split(' ').zip(values.split(' ')).find(|(n, _)| *n == name)?.1.parse().ok()
}

/// Each connection has one last record and is counted once; its active time is less than half a second.
fn each_is_counted_once(records: &[TrialRecord], counts: &TrialCounts, connections: usize, bytes: usize) {
    each_is_counted_once_within(records, counts, connections, bytes, bytes);
}

/// Each is counted once, where data may be delivered twice.
fn each_is_counted_once_within(
    records: &[TrialRecord],
    counts: &TrialCounts,
    connections: usize,
    bytes: usize,
    most: usize,
) {
    let (bytes, most) = (bytes as u64, most as u64);
    let closed: Vec<_> = records.iter().filter(|r| r.closed).collect();
    assert_eq!((closed.len(), counts.assigned.iter().sum()), (connections, connections as u64));
    assert_eq!((counts.outside, counts.own_choice, counts.refused, counts.lost_records), (0, 0, 0, 0));
    for r in closed {
        let o = &r.outcome;
        assert!((bytes..=most).contains(&o.delivered_bytes) && o.sent_bytes >= o.delivered_bytes, "{r:?}");
        assert!(o.last_s.is_some_and(|s| s < 0.5) && o.milestones_s[0] <= o.last_s, "{r:?}");
        assert_eq!(o.milestones_s[0].is_some(), bytes >= 100_000, "{r:?}");
    }
}

/// Sends SYNs from an address that nobody has, so that no answer arrives.
fn send_syns(to: SocketAddrV4, number: u16) {
    let raw =
        socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw).expect("root may");
    for port in 40_000..40_000 + number {
        let mut segment = Vec::new();
        segment.extend(port.to_be_bytes());
        segment.extend(to.port().to_be_bytes());
        segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 2, 0xff, 0xff, 0, 0, 0, 0]);
        let pseudo = [&NOBODY.octets()[..], &to.ip().octets(), &[0, 6, 0, 20]].concat();
        let mut sum: u32 =
            [&pseudo[..], &segment].concat().chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        segment[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        // The kernel adds the length and the checksum of the header.
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
        packet.extend([NOBODY.octets(), to.ip().octets()].concat());
        packet.extend(&segment);
        let sent = sendto(raw.as_raw_fd(), &packet, &SockaddrIn::from(to), MsgFlags::empty());
        assert_eq!(sent, Ok(packet.len()));
    }
}

/// The connections of a namespace whose handshake is not complete (state 3 of the kernel's list).
fn half_open(ns: &str) -> usize {
    let text = Net::within(ns, || fs::read_to_string("/proc/thread-self/net/tcp")).expect("readable");
    text.lines().filter(|l| l.split_whitespace().nth(3) == Some("03")).count()
}

#[test]
fn a_handshake_that_is_never_complete_is_no_connection() {
    const SYNS: u16 = 16;
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let done = trial_while("half", CLIENTS, |cgroup, net| {
        let server = Server::start(cgroup, net, 1, CLIENTS, "calls-nobody");
        let address = server.address;
        Net::within(&net.receiver, || send_syns(address, SYNS));
        assert_eq!(settles(|| half_open(&net.sender), SYNS.into()), usize::from(SYNS));
        for _ in 0..CLIENTS {
            ask(&mut Net::within(&net.receiver, || connected(address, false)));
        }
        server.end();
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once(&records, &counts, CLIENTS, PAGE_BYTES);
}

/// Its end is found by keepalives: the wait for them is idle time.
#[test]
fn a_peer_that_disappears_while_nothing_is_sent_adds_no_time() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let done = trial_while("vanish", CLIENTS, |cgroup, net| {
        let server = Server::start(cgroup, net, 1, CLIENTS, "keepalive");
        let address = server.address;
        let mut all: Vec<_> =
            Net::within(&net.receiver, || (0..CLIENTS).map(|_| connected(address, false)).collect());
        all.iter_mut().for_each(ask);
        // What arrives at an address that a machine does not have is dropped.
        ip(&format!("-n {} addr del {CLIENT}/24 dev v0", net.receiver));
        server.end();
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once(&records, &counts, CLIENTS, PAGE_BYTES);
}

#[test]
fn connections_of_several_listeners_at_one_port_are_counted_once() {
    const LISTENERS: usize = 3;
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let done = trial_while("reuse", 4 * CLIENTS, |cgroup, net| {
        let server = Server::start(cgroup, net, LISTENERS, 4 * CLIENTS, "");
        let address = server.address;
        for _ in 0..4 * CLIENTS {
            ask(&mut Net::within(&net.receiver, || connected(address, false)));
        }
        let accepted = server.end();
        assert!(accepted.iter().all(|n| *n > 0), "each listener takes some: {accepted:?}");
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once(&records, &counts, 4 * CLIENTS, PAGE_BYTES);
}

/// Each subflow is a connection of its own; here each has one. Multipath TCP sends data once more as other
/// data, if it takes that which is in flight for lost.
#[test]
fn connections_of_multipath_tcp_are_counted_once() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    if let Err(e) = tcp(true) {
        println!("skipped: kernel tests that need Multipath TCP: {e}");
        return;
    }
    let done = trial_while("mptcp", CLIENTS, |cgroup, net| {
        let server = Server::start(cgroup, net, 1, CLIENTS, "multipath");
        let address = server.address;
        for _ in 0..CLIENTS {
            ask(&mut Net::within(&net.receiver, || connected(address, true)));
        }
        server.end();
        assert_eq!(counter(&net.sender, "MPTcpExt", "MPCapableACKRX"), Some(CLIENTS as u64));
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once_within(&records, &counts, CLIENTS, PAGE_BYTES, 2 * PAGE_BYTES);
}

/// The request is in the SYN, and the answer may be sent before the handshake is complete: its RTT is not
/// known then.
#[test]
fn connections_of_tcp_fast_open_are_counted_once() {
    /// Both ends, no cookies, all listeners.
    const FAST_OPEN: u32 = 0x1 | 0x2 | 0x4 | 0x200 | 0x400;
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let done = trial_while("tfo", CLIENTS, |cgroup, net| {
        for ns in [&net.sender, &net.receiver] {
            let file = "/proc/sys/net/ipv4/tcp_fastopen";
            Net::within(ns, || fs::write(file, FAST_OPEN.to_string())).expect("root may");
        }
        let server = Server::start(cgroup, net, 1, CLIENTS, "");
        let address = server.address;
        for _ in 0..CLIENTS {
            let mut socket: TcpStream = Net::within(&net.receiver, || {
                let fd = tcp(false).expect("a socket");
                let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
                assert_eq!(sendto(fd.as_raw_fd(), &[PAGE], &SockaddrIn::from(address), flags), Ok(1));
                fd.into()
            });
            read_answer(&mut socket, PAGE);
        }
        server.end();
        assert_eq!(counter(&net.sender, "TcpExt", "TCPFastOpenPassive"), Some(CLIENTS as u64));
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once(&records, &counts, CLIENTS, PAGE_BYTES);
    assert!(records.iter().all(|r| r.outcome.handshake_rtt_s.is_none()), "{records:?}");
}

/// On a veth the ACK of the last byte arrives before the kernel has advanced `snd_nxt`. Here the client waits
/// and closes.
#[test]
fn the_wait_of_a_client_that_has_everything_and_closes_is_no_active_time() {
    const REQUEST: u8 = 2;
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let done = trial_while("waits", CLIENTS, |cgroup, net| {
        let server = Server::start(cgroup, net, 1, CLIENTS, "");
        let address = server.address;
        thread::scope(|s| {
            for n in 0..CLIENTS as u64 {
                let mut socket = Net::within(&net.receiver, || connected(address, false));
                socket.write_all(&[REQUEST]).expect("the connection lives");
                s.spawn(move || {
                    read_answer(&mut socket, REQUEST);
                    thread::sleep(Duration::from_millis(1000 + 25 * n));
                });
            }
        });
        server.end();
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once(&records, &counts, CLIENTS, UNIT * usize::from(REQUEST));
}

/// Two seconds; minutes in the long form (`SLOWSTART_LONG=1`).
#[test]
fn minutes_without_a_packet_and_a_frozen_program_add_no_time() {
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let long = std::env::var_os("SLOWSTART_LONG").is_some();
    let idle = Duration::from_secs(if long { 180 } else { 2 });
    let done = trial_while("idle", CLIENTS, |cgroup, net| {
        let server = Server::start(cgroup, net, 1, CLIENTS, "");
        let address = server.address;
        let mut all: Vec<_> =
            Net::within(&net.receiver, || (0..CLIENTS).map(|_| connected(address, false)).collect());
        all.iter_mut().for_each(ask);
        thread::sleep(idle);
        all.iter_mut().for_each(ask);
        // As in a container that is paused: the kernel acknowledges the request, and the answer comes late.
        let freeze = |on: &str| fs::write(cgroup.0.join("cgroup.freeze"), on).expect("Linux since 5.2");
        freeze("1");
        for socket in &mut all {
            socket.write_all(&[PAGE]).expect("the connection lives");
        }
        thread::sleep(Duration::from_secs(1));
        freeze("0");
        for socket in &mut all {
            read_answer(socket, PAGE);
        }
        drop(all);
        server.end();
    });
    let Some((records, counts)) = done else { return };
    each_is_counted_once(&records, &counts, CLIENTS, 3 * PAGE_BYTES);
}

/// Nobody reads the records meanwhile, as if the program was stopped: what the ring does not hold is counted.
#[test]
fn records_that_the_ring_does_not_hold_are_counted() {
    /// The ring holds 7,000 to 9,000.
    const MANY: usize = 10_000;
    let Some(_one) = able(&[Verb::Load, Verb::Trial]) else { return };
    let done = trial_while("full", MANY, |cgroup, net| {
        let server = Server::start(cgroup, net, 1, MANY, "");
        let address = server.address;
        Net::within(&net.receiver, || (0..MANY).for_each(|_| drop(connected(address, false))));
        server.end();
    });
    let Some((records, counts)) = done else { return };
    let read = records.iter().filter(|r| r.closed).count() as u64;
    assert!(counts.lost_records > 0 && read > 5_000, "{counts:?}, {read} read");
    assert_eq!((read + counts.lost_records, counts.assigned.iter().sum()), (MANY as u64, MANY as u64));
}
