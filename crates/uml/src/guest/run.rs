//! One transfer over a path, both ends and the path in one loop.
//!
//! The clock of a guest stands while this runs, so that what one moment brings is done before the next: packets that are due are
//! written, the kernel answers at once, the receiver reads, and what both ends send enters the path. Then the loop sleeps until
//! the next moment.

use super::info::{Info, bbr_gains, counters};
use super::lane::Lane;
use super::net::{CLIENT, Counters, SERVER, Tun, enter, set};
use crate::error::GuestError;
use crate::exits::Phase;
use crate::order::{HyStart, Recording, Seen, Transfer};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::{SocketError, TcpCongestion};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockFlag, SockType, SockaddrIn, accept4, bind, connect,
    getsockopt, listen, recv, send, setsockopt, shutdown, socket,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use slowstart::units::{Instant, Span};
use slowstart_sim::path::{PathFacts, PathSpec};
use slowstart_sim::trace::MILESTONES;
use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// The port of the server, which is never another.
const PORT: u16 = 5001;
/// Bytes that the server hands to the kernel at a time.
const CHUNK: usize = 1 << 18;
/// The server has more to send until the kernel holds so much of it that it has not sent.
const AHEAD: u32 = 1 << 20;
/// After so long without an acknowledgement, what the server sends says that a timer fired.
const SILENCE: Span = Span::millis(100);
/// Bytes that the client reads at most at a time.
const READ: usize = 1 << 24;

fn clock() -> Instant {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    Instant(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

fn stream() -> Result<OwnedFd, GuestError> {
    socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_NONBLOCK, None)
        .map_err(GuestError::io("make a socket"))
}

/// Buffers as large as the path may need, no state of earlier connections, and the ECN of the study.
fn configure(t: &Transfer, facts: &PathFacts) -> Result<(), GuestError> {
    let buffer = facts.buffer.map_or(facts.bdp.0 * 4, |b| b.0);
    let most = facts.bdp.0.saturating_add(buffer).saturating_mul(8).clamp(32 << 20, 1 << 30);
    set("tcp_rmem", &format!("4096 {} {most}", t.rmem_first.min(most)))?;
    set("tcp_wmem", &format!("4096 {most} {most}"))?;
    set("tcp_no_metrics_save", "1")?;
    set("tcp_notsent_lowat", &AHEAD.to_string())?;
    t.ecn.map_or(Ok(()), |value| set("tcp_ecn", &value.to_string()))
}

/// The sending end.
struct Server {
    listener: OwnedFd,
    connection: Option<OwnedFd>,
    /// Bytes that it has not handed to the kernel.
    left: u64,
    zeros: Vec<u8>,
    counters: Counters,
    is_bbr: bool,
    sampled: Instant,
    /// What the kernel holds of it that it has not sent, bytes.
    unsent: u32,
}

impl Server {
    /// Hands to the kernel what it takes.
    fn write(&mut self) {
        let Some(connection) = &self.connection else { return };
        if self.left == 0 || self.unsent > AHEAD / 2 {
            return;
        }
        while self.left > 0 {
            let n = self.left.min(CHUNK as u64) as usize;
            match send(connection.as_raw_fd(), &self.zeros[..n], MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => self.left -= n as u64,
                Err(_) => break,
            }
        }
        if self.left == 0 {
            let _ = shutdown(connection.as_raw_fd(), Shutdown::Write);
        }
    }

    /// Takes the connection that came, if one did.
    fn accept(&mut self) -> Result<(), GuestError> {
        match accept4(self.listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK) {
            Ok(fd) => self.connection = Some(own(fd)),
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(GuestError::io("accept the connection")(e)),
        }
        Ok(())
    }

    /// Records the state of the sender.
    fn sample(&mut self, now: Instant, queue: u64, r: &mut Recording) -> Result<(), GuestError> {
        let Some(connection) = &self.connection else { return Ok(()) };
        let i = Info::of(connection).map_err(GuestError::io("read TCP_INFO"))?;
        (self.sampled, self.unsent) = (now, i.unsent());
        let gains = if self.is_bbr { bbr_gains(connection) } else { None };
        let phase = gains.map_or(Phase::Other, Phase::of);
        // Its later phases need not be asked for.
        self.is_bbr &= phase != Phase::ProbeBw;
        let seen = Seen {
            at: now.0,
            cwnd: i.cwnd(),
            ssthresh: i.ssthresh(),
            inflight: i.inflight(),
            srtt: i.srtt(),
            min_rtt: i.min_rtt(),
            state: i.state(),
            retransmitted: i.retransmitted(),
            received: r.received,
            unsent: u64::from(i.unsent()) + self.left,
            queue,
            pacing: i.pacing(),
            phase: phase as u32,
        };
        r.mss = i.mss();
        if r.seen.is_empty() {
            r.initial_window = seen.cwnd;
        }
        if seen.ssthresh != u32::MAX && r.seen.last().is_none_or(|last| last.ssthresh == u32::MAX) {
            let names = ["TCPHystartTrainDetect", "TCPHystartDelayDetect"];
            let [train, delay] = counters(&self.counters.read()?, names);
            r.hystart = HyStart { train, delay };
        }
        r.seen.push(seen);
        Ok(())
    }
}

/// The receiving end.
struct Client {
    socket: OwnedFd,
    is_connected: bool,
    /// True if the peer has sent all, or the connection failed.
    is_over: bool,
    /// When it reads what has arrived.
    reads_at: Option<Instant>,
    buffer: Vec<u8>,
}

impl Client {
    /// Learns whether the handshake succeeded.
    fn connected(&mut self, r: &mut Recording) -> Result<(), GuestError> {
        self.is_connected = true;
        let error = getsockopt(&self.socket, SocketError).map_err(GuestError::io("connect"))?;
        if error != 0 {
            r.failed = Some(Errno::from_raw(error).desc().to_string());
            self.is_over = true;
        }
        Ok(())
    }

    /// Reads all that has arrived.
    fn read(&mut self, now: Instant, t: &Transfer, r: &mut Recording) {
        self.reads_at = None;
        // The kernel throws away what it would copy.
        match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC) {
            Ok(0) => self.is_over = true,
            Ok(n) => r.received += n as u64,
            Err(Errno::EAGAIN) => {}
            Err(e) => {
                r.failed = Some(e.desc().to_string());
                self.is_over = true;
            }
        }
        for (at, bytes) in r.milestones.iter_mut().zip(MILESTONES) {
            if r.received >= bytes {
                at.get_or_insert(now.0);
            }
        }
        if t.size.is_some_and(|size| r.received >= size) {
            r.completed.get_or_insert(now.0);
        }
    }
}

#[allow(unsafe_code, reason = "nix returns the new descriptor as a number; nothing else has it")]
fn own(fd: i32) -> OwnedFd {
    // SAFETY: the descriptor is open and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Runs a transfer.
pub(super) fn transfer(t: &Transfer) -> Result<Recording, GuestError> {
    let spec = PathSpec::load(&t.path, Some(&t.folder)).map_err(|e| GuestError::Refused(e.to_string()))?;
    let path = spec.build(t.seed);
    let facts = path.facts;
    let server_tun = enter(SERVER)?;
    configure(t, &facts)?;
    let counters = Counters::open()?;
    let listener = stream()?;
    setsockopt(&listener, TcpCongestion, &OsString::from(&t.control))
        .map_err(GuestError::io(format!("use the congestion control {}", t.control)))?;
    let address = SockaddrIn::from(SocketAddrV4::new(SERVER, PORT));
    bind(listener.as_raw_fd(), &address).map_err(GuestError::io("bind"))?;
    listen(&listener, Backlog::MAXCONN).map_err(GuestError::io("listen"))?;
    let client_tun = enter(CLIENT)?;
    configure(t, &facts)?;
    let mut server = Server {
        listener,
        connection: None,
        left: t.size.unwrap_or(u64::MAX),
        zeros: vec![0; CHUNK],
        counters,
        is_bbr: t.control.starts_with("bbr"),
        sampled: Instant::ZERO,
        unsent: 0,
    };
    let mut client = Client {
        socket: stream()?,
        is_connected: false,
        is_over: false,
        reads_at: None,
        buffer: vec![0; READ],
    };
    let mut tuns = [server_tun, client_tun];
    let mut forward = Lane::new(path.forward, 0, t.capture);
    let mut back = Lane::new(path.back, 1, t.capture);
    let mut r = Recording::default();
    let end = Instant(t.duration);
    let start = clock();
    match connect(client.socket.as_raw_fd(), &address) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(e) => return Err(GuestError::io("connect")(e)),
    }
    let (mut at, mut ready) = (Instant::ZERO, [false, true]);
    loop {
        step(at, ready, t, &mut tuns, (&mut forward, &mut back), (&mut server, &mut client), &mut r)?;
        let is_done = client.is_over || r.completed.is_some();
        if at >= end || is_done && forward.is_empty() && back.is_empty() {
            break;
        }
        let moments = [forward.next(), back.next(), client.reads_at, Some(end)];
        let wait = moments.into_iter().flatten().min().unwrap_or(end).since(at);
        let wait = TimeSpec::new((wait.0 / 1_000_000_000) as i64, (wait.0 % 1_000_000_000) as i64);
        let mut fds = [
            PollFd::new(tuns[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(tuns[1].as_fd(), PollFlags::POLLIN),
            PollFd::new(client.socket.as_fd(), PollFlags::POLLOUT),
        ];
        // Once it is connected, only what arrives changes what it can do.
        let n = if client.is_connected { 2 } else { 3 };
        // A signal would end it early, and the loop look again.
        let _ = ppoll(&mut fds[..n], Some(wait), None);
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|e| !e.is_empty());
        ready = [is_ready(&fds[0]), is_ready(&fds[1])];
        let connects = n == 3 && is_ready(&fds[2]);
        at = Instant(clock().since(start).0);
        if connects {
            client.connected(&mut r)?;
        }
    }
    r.ended = at.0;
    let counted = server.connection.as_ref().and_then(|c| Info::of(c).ok());
    r.chrono = counted.map(|i| i.chrono());
    let counts = forward.counts;
    r.late = counts.late + back.counts.late;
    r.released = counts.released + back.counts.released;
    (r.data, r.drops, r.marked) = (counts.data, counts.drops, counts.marked);
    r.waits = counts.waits;
    r.packets = forward.packets.into_iter().chain(back.packets).flatten().collect();
    r.packets.sort_by_key(|p| p.at);
    r.drops.sort_unstable();
    Ok(r)
}

/// Does what one moment brings. `ready`: the devices that have packets of the server and of the client.
fn step(
    now: Instant,
    ready: [bool; 2],
    t: &Transfer,
    tuns: &mut [Tun; 2],
    (forward, back): (&mut Lane, &mut Lane),
    (server, client): (&mut Server, &mut Client),
    r: &mut Recording,
) -> Result<(), GuestError> {
    forward.serve(now);
    back.serve(now);
    let mut acks = 0;
    // Each acknowledgement has its state of the sender, also of those that come at one moment.
    while back.release_one(now, &mut tuns[0]) {
        acks += 1;
        if server.connection.is_none() {
            server.accept()?;
        }
        server.sample(now, forward.backlog(now), r)?;
    }
    r.acks += acks;
    if acks > 0 {
        server.write();
    }
    if acks > 0 || ready[0] {
        let sent = forward.receive(now, &mut tuns[0])?;
        if sent > 0 && acks == 0 && now.since(server.sampled) > SILENCE {
            server.sample(now, forward.backlog(now), r)?;
        }
    }
    let arrived = forward.release(now, &mut tuns[1]);
    r.arrived += arrived;
    if arrived > 0 && client.is_connected && !client.is_over {
        client.reads_at.get_or_insert(now + Span(t.read));
    }
    let reads = client.reads_at.is_some_and(|at| at <= now);
    if reads {
        client.read(now, t, r);
    }
    if arrived > 0 || reads || ready[1] {
        back.receive(now, &mut tuns[1])?;
    }
    Ok(())
}
