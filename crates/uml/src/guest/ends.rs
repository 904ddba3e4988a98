//! The two ends of the connection, with the application of the simulator.

use super::info::{Info, bbr_gains, counters};
use super::net::Counters;
use crate::error::GuestError;
use crate::exits::Phase;
use crate::order::{HyStart, Recording, Seen};
use nix::errno::Errno;
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{MsgFlags, Shutdown, SockFlag, accept4, getsockopt, recv, send, shutdown};
use slowstart::units::Instant;
use slowstart_sim::app::{Action, App, Feedback, Kind, Socket};
use slowstart_sim::ends::{End, PerEnd};
use slowstart_sim::random::Stream;
use slowstart_sim::trace::MILESTONES;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Bytes that an end hands to the kernel at a time.
const CHUNK: usize = 1 << 18;
/// The server has more to send until the kernel holds so much of it that it has not sent.
pub(super) const AHEAD: u32 = 1 << 20;
/// Bytes that an end reads at most at a time.
const READ: usize = 1 << 24;

/// One end of the connection as its application sees it.
#[derive(Copy, Clone, Debug, Default)]
struct Side {
    /// Bytes that it has read, and those that it has not handed to the kernel.
    delivered: u64,
    left: u64,
    peer_closed: bool,
    closed: bool,
}

/// The applications of both ends.
pub(super) struct Apps {
    app: App,
    sides: PerEnd<Side>,
    /// When one of them acts next by itself.
    pub acts_at: Option<Instant>,
    /// True if the client sends requests.
    pub has_requests: bool,
    zeros: Vec<u8>,
    /// What is read is thrown away.
    buffer: Vec<u8>,
}

impl Apps {
    /// With the random numbers that the flow has in the simulator.
    pub(super) fn new(kind: Kind, seed: u64) -> Self {
        Self {
            app: App::new(kind, Stream::named(seed, "flow0.app")),
            sides: PerEnd::default(),
            acts_at: None,
            has_requests: !matches!(
                kind,
                Kind::Bulk { .. } | Kind::External { .. } | Kind::Writes(_) | Kind::Media
            ),
            zeros: vec![0; CHUNK],
            buffer: vec![0; READ],
        }
    }

    /// Lets the application of an end act on what it has read.
    pub(super) fn run(&mut self, now: Instant, end: End, r: &mut Recording) {
        let Side { delivered, peer_closed, closed, .. } = self.sides[end];
        let socket = Socket { end, is_sender: end == End::Server, delivered, peer_closed, closed };
        let action = self.app.on_event(now, &socket);
        self.act(now, end, action, r);
    }

    /// Does what is due by the clock; returns true if something was.
    pub(super) fn wake(&mut self, now: Instant, r: &mut Recording) -> bool {
        if self.acts_at.take_if(|at| *at <= now).is_none() {
            return false;
        }
        if let Some(action) = self.app.write(now, End::Server, Feedback::default()) {
            self.act(now, End::Server, action, r);
        } else if let Some(bytes) = self.app.request() {
            self.sides[End::Client].left += bytes;
        }
        true
    }

    fn act(&mut self, now: Instant, end: End, action: Action, r: &mut Recording) {
        if action.complete {
            r.completed.get_or_insert(now.0);
        }
        self.acts_at = action.acts_at.or(self.acts_at);
        let side = &mut self.sides[end];
        side.left += action.write;
        // The client leaves that to the end of the run.
        side.closed |= action.close && end == End::Server;
    }

    /// True if an object that was asked for at `end` or before has not come.
    pub(super) fn waits_for_object(&self, end: Instant) -> bool {
        self.app.waits_for_object(end)
    }

    /// Records the objects that were asked for at `end` or before.
    pub(super) fn record_objects(&self, end: Instant, r: &mut Recording) {
        let asked = self.app.objects().iter().filter(|o| o.asked <= end);
        r.objects = asked.map(|o| (o.asked.0, o.came.map(|at| at.0))).collect();
    }

    /// Hands to the kernel what it takes.
    fn write(&mut self, end: End, connection: &OwnedFd) {
        let side = &mut self.sides[end];
        let had = side.left;
        while side.left > 0 {
            let n = side.left.min(CHUNK as u64) as usize;
            match send(connection.as_raw_fd(), &self.zeros[..n], MsgFlags::MSG_NOSIGNAL) {
                Ok(n) => side.left -= n as u64,
                Err(_) => break,
            }
        }
        if had > 0 && side.left == 0 && side.closed {
            let _ = shutdown(connection.as_raw_fd(), Shutdown::Write);
        }
    }

    /// Reads all that has arrived.
    fn read(&mut self, end: End, connection: &OwnedFd) -> Result<(), Errno> {
        let side = &mut self.sides[end];
        // The kernel throws away what it would copy.
        match recv(connection.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC) {
            Ok(0) => side.peer_closed = true,
            Ok(n) => side.delivered += n as u64,
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

/// The sending end.
pub(super) struct Server {
    pub listener: OwnedFd,
    pub connection: Option<OwnedFd>,
    pub counters: Counters,
    pub is_bbr: bool,
    pub sampled: Instant,
    /// What the kernel holds of it that it has not sent, bytes.
    pub unsent: u32,
}

impl Server {
    /// Hands to the kernel what it takes.
    pub(super) fn write(&self, apps: &mut Apps) {
        if let Some(connection) = self.connection.as_ref().filter(|_| self.unsent <= AHEAD / 2) {
            apps.write(End::Server, connection);
        }
    }

    /// Reads the requests that have arrived.
    pub(super) fn read(&self, now: Instant, apps: &mut Apps, r: &mut Recording) {
        if let Some(connection) = &self.connection
            && apps.read(End::Server, connection).is_ok()
        {
            apps.run(now, End::Server, r);
        }
    }

    /// Takes the connection that came, if one did.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        apps: &mut Apps,
        r: &mut Recording,
    ) -> Result<(), GuestError> {
        match accept4(self.listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK) {
            Ok(fd) => {
                self.connection = Some(own(fd));
                apps.run(now, End::Server, r);
            }
            Err(Errno::EAGAIN) => {}
            Err(e) => return Err(GuestError::io("accept the connection")(e)),
        }
        Ok(())
    }

    /// Records the state of the sender.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        queue: u64,
        apps: &Apps,
        r: &mut Recording,
    ) -> Result<(), GuestError> {
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
            received: apps.sides[End::Client].delivered,
            unsent: u64::from(i.unsent()) + apps.sides[End::Server].left,
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
pub(super) struct Client {
    pub socket: OwnedFd,
    pub is_connected: bool,
    /// True if the peer has sent all, or the connection failed.
    pub is_over: bool,
    /// When it reads what has arrived.
    pub reads_at: Option<Instant>,
}

impl Client {
    /// Learns whether the handshake succeeded. Returns true if the application sent something.
    pub(super) fn connected(
        &mut self,
        now: Instant,
        apps: &mut Apps,
        r: &mut Recording,
    ) -> Result<bool, GuestError> {
        self.is_connected = true;
        let error = getsockopt(&self.socket, SocketError).map_err(GuestError::io("connect"))?;
        if error != 0 {
            r.failed = Some(Errno::from_raw(error).desc().to_string());
            self.is_over = true;
            return Ok(false);
        }
        apps.run(now, End::Client, r);
        apps.wake(now, r);
        Ok(self.write(apps))
    }

    /// Hands its requests to the kernel. Returns true if there were any.
    pub(super) fn write(&self, apps: &mut Apps) -> bool {
        let had = apps.sides[End::Client].left > 0;
        apps.write(End::Client, &self.socket);
        had
    }

    /// Reads all that has arrived.
    pub(super) fn read(&mut self, now: Instant, apps: &mut Apps, r: &mut Recording) {
        self.reads_at = None;
        if let Err(e) = apps.read(End::Client, &self.socket) {
            r.failed = Some(e.desc().to_string());
            self.is_over = true;
            return;
        }
        let Side { delivered, peer_closed, .. } = apps.sides[End::Client];
        (r.received, self.is_over) = (delivered, peer_closed);
        for (at, bytes) in r.milestones.iter_mut().zip(MILESTONES) {
            if r.received >= bytes {
                at.get_or_insert(now.0);
            }
        }
        apps.run(now, End::Client, r);
    }
}

#[allow(unsafe_code, reason = "nix returns the new descriptor as a number; nothing else has it")]
fn own(fd: i32) -> OwnedFd {
    // SAFETY: the descriptor is open and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
