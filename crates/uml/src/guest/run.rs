//! One transfer over a path, both ends and the path in one loop.
//!
//! The clock of a guest stands while this runs, so that what one moment brings is done before the next: packets that are due are
//! written, the kernel answers at once, the receiver reads, and what both ends send enters the path. Then the loop sleeps until
//! the next moment.

use super::ends::{AHEAD, Apps, Client, Server};
use super::info::Info;
use super::lane::{LATE, Lane};
use super::net::{CLIENT, Counters, SERVER, Tun, enter, set};
use crate::error::GuestError;
use crate::order::{Recording, Transfer};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::{TcpCongestion, TcpNoDelay};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt, socket,
};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use slowstart::units::{Instant, Span};
use slowstart_sim::app::Kind;
use slowstart_sim::path::{PathFacts, PathSpec};
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::scenario::application;
use slowstart_study::simulator::LEAST_WAIT;
use std::ffi::OsString;
use std::mem::take;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The port of the server, which is never another.
const PORT: u16 = 5001;
/// After so long without an acknowledgement, what the server sends says that a timer fired.
const SILENCE: Span = Span::millis(100);

const MS: Span = Span::millis(1);
const US: u64 = 1000;
/// After what is due has woken this process, the clock has been read for less than this.
const READ: Span = Span::micros(3);

/// The kernel learns of what is due from then on, at the next whole number of 256 ns: as many microseconds later each time. It
/// counts whole ones, so that what comes every 2 ms would else be 2.001 ms apart at times.
fn told_at(due: Instant) -> Instant {
    Instant(due.0 / US * US) + READ
}

/// Lets a timer fire at `at`, by the clock of the guest.
fn set_timer(timer: &TimerFd, at: Instant) -> Result<(), GuestError> {
    let at = TimeSpec::new((at.0 / 1_000_000_000) as i64, (at.0 % 1_000_000_000) as i64);
    timer
        .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
        .map_err(GuestError::io("set the timer"))
}

fn clock() -> Instant {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    Instant(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// A socket that sends small writes at once, as those of servers do and the simulator does.
fn stream() -> Result<OwnedFd, GuestError> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_NONBLOCK, None)
        .map_err(GuestError::io("make a socket"))?;
    setsockopt(&socket, TcpNoDelay, &true).map_err(GuestError::io("switch off Nagle's algorithm"))?;
    Ok(socket)
}

/// Buffers as large as the path may need, no state of earlier connections, and the ECN of the study.
fn configure(t: &Transfer, facts: &PathFacts) -> Result<(), GuestError> {
    let buffer = facts.buffer.map_or(facts.bdp.0 * 4, |b| b.0);
    let most = facts.bdp.0.saturating_add(buffer).saturating_mul(8).clamp(32 << 20, 1 << 30);
    let received = t.rmem.unwrap_or(Profile::LINUX_6_18.rmem.0);
    set("tcp_rmem", &format!("4096 {} {received}", t.rmem_first.min(received)))?;
    set("tcp_wmem", &format!("4096 {most} {most}"))?;
    set("tcp_no_metrics_save", "1")?;
    set("tcp_notsent_lowat", &AHEAD.to_string())?;
    t.ecn.map_or(Ok(()), |value| set("tcp_ecn", &value.to_string()))
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
    let kind = match application(&t.app) {
        Some(Kind::Bulk { .. }) => Kind::Bulk { size: t.size },
        Some(kind) => kind,
        None => return Err(GuestError::Refused(format!("no application {}", t.app))),
    };
    let server = Server {
        listener,
        connection: None,
        counters,
        is_bbr: t.control.starts_with("bbr"),
        sampled: Instant::ZERO,
        unsent: 0,
    };
    let client = Client { socket: stream()?, is_connected: false, is_over: false, reads_at: None };
    let mut r = Recording::default();
    let timer = TimerFd::new(timerfd::ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)
        .map_err(GuestError::io("make a timer"))?;
    // At a whole millisecond for the kernel, as in the simulator: timestamps are in milliseconds.
    let start = Instant((clock().0 / MS.0 + 1) * MS.0 - READ.0);
    set_timer(&timer, start)?;
    let _ = ppoll(&mut [PollFd::new(timer.as_fd(), PollFlags::POLLIN)], None, None);
    while clock() < start + READ {}
    match connect(client.socket.as_raw_fd(), &address) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        Err(e) => return Err(GuestError::io("connect")(e)),
    }
    let mut all = Run {
        start,
        timer,
        now: Instant::ZERO,
        ready: [false, true],
        read: Span(t.read),
        tuns: [server_tun, client_tun],
        forward: Lane::new(path.forward, 0, t.capture),
        back: Lane::new(path.back, 1, t.capture),
        server,
        client,
        apps: Apps::new(kind, t.seed),
    };
    let end = Instant(t.duration);
    all.until(end, &mut r, |all, r| {
        (all.client.is_over || r.completed.is_some()) && all.forward.is_empty() && all.back.is_empty()
    })?;
    let ended = all.now;
    all.record(&mut r);
    // The objects that are under way, of a run without a size: as long again.
    if t.size.is_none() && r.completed.is_none() && all.apps.waits_for_object(ended) {
        let last = ended + Span(ended.0).max(LEAST_WAIT);
        let waits = |all: &Run, _: &Recording| !all.apps.waits_for_object(ended) || all.client.is_over;
        all.until(last, &mut Recording::default(), waits)?;
    }
    all.apps.record_objects(ended, &mut r);
    Ok(r)
}

/// A run under way.
struct Run {
    /// By the clock of the guest; all other times are from here.
    start: Instant,
    /// Ends a sleep at its time: `ppoll` itself would be late by a thousandth of the wait, and by 50 us at least
    /// (`select_estimate_accuracy`).
    timer: TimerFd,
    now: Instant,
    /// The devices that have packets of the server and of the client.
    ready: [bool; 2],
    /// How long after data can be read the receiver reads it.
    read: Span,
    tuns: [Tun; 2],
    forward: Lane,
    back: Lane,
    server: Server,
    client: Client,
    apps: Apps,
}

impl Run {
    /// Goes on until `end`, or until `is_done` returns true.
    fn until(
        &mut self,
        end: Instant,
        r: &mut Recording,
        is_done: impl Fn(&Self, &Recording) -> bool,
    ) -> Result<(), GuestError> {
        loop {
            self.step(r)?;
            if self.now >= end || is_done(self, r) {
                return Ok(());
            }
            self.sleep(end, r)?;
        }
    }

    /// Sleeps until the next moment, at most until `end`.
    fn sleep(&mut self, end: Instant, r: &mut Recording) -> Result<(), GuestError> {
        let moments =
            [self.forward.next(), self.back.next(), self.client.reads_at, self.apps.acts_at, Some(end)];
        let due = moments.into_iter().flatten().min().unwrap_or(end);
        set_timer(&self.timer, self.start + Span(due.0))?;
        let mut fds = [
            PollFd::new(self.timer.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.tuns[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.tuns[1].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.client.socket.as_fd(), PollFlags::POLLOUT),
        ];
        // Once it is connected, only what arrives and the clock change what it can do.
        let n = if self.client.is_connected { 3 } else { 4 };
        // A signal would end it early, and the loop look again.
        let _ = ppoll(&mut fds[..n], None, None);
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|e| !e.is_empty());
        let connects = n == 4 && is_ready(&fds[3]);
        self.ready = [is_ready(&fds[1]), is_ready(&fds[2])];
        let mut now = Instant(clock().since(self.start).0);
        // The clock advances as it is read. What is due is due at its time for the path, or each round trip would be longer by
        // that.
        while now >= due && now < told_at(due) {
            now = Instant(clock().since(self.start).0);
        }
        self.now = if now >= due && now.since(due) <= LATE { due } else { now };
        if connects {
            self.ready[1] |= self.client.connected(self.now, &mut self.apps, r)?;
        }
        Ok(())
    }

    /// Does what one moment brings.
    fn step(&mut self, r: &mut Recording) -> Result<(), GuestError> {
        let Self { now, ready, tuns, forward, back, server, client, apps, .. } = self;
        let now = *now;
        forward.serve(now);
        back.serve(now);
        let wakes = apps.wake(now, r);
        let mut acks = 0;
        // Each acknowledgement has its state of the sender, also of those that come at one moment.
        while back.release_one(now, &mut tuns[0]) {
            acks += 1;
            if server.connection.is_none() {
                server.accept(now, apps, r)?;
            }
            server.sample(now, forward.backlog(now), apps, r)?;
        }
        r.acks += acks;
        if acks > 0 && apps.has_requests {
            server.read(now, apps, r);
        }
        if acks > 0 || wakes {
            server.write(apps);
        }
        if acks > 0 || wakes || ready[0] {
            let sent = forward.receive(now, &mut tuns[0])?;
            // What is sent after an idle time is sent with another window.
            let begins = r.seen.last().is_some_and(|s| s.inflight == 0);
            if sent > 0 && (begins || acks == 0 && now.since(server.sampled) > SILENCE) {
                server.sample(now, forward.backlog(now), apps, r)?;
            }
        }
        let (mut arrived, mut reads) = (0, false);
        loop {
            let one = forward.release_one(now, &mut tuns[1]);
            arrived += u64::from(one);
            if one && client.is_connected && !client.is_over {
                client.reads_at.get_or_insert(now + self.read);
            }
            // What is read at once is read before the next packet of this moment.
            if client.reads_at.is_some_and(|at| at <= now) {
                reads = true;
                client.read(now, apps, r);
                // A request may be due at once.
                apps.wake(now, r);
            }
            if !one {
                break;
            }
        }
        r.arrived += arrived;
        let requests = (reads || wakes) && client.write(apps);
        if arrived > 0 || reads || requests || ready[1] {
            back.receive(now, &mut tuns[1])?;
        }
        Ok(())
    }

    /// Records what was counted so far.
    fn record(&mut self, r: &mut Recording) {
        r.ended = self.now.0;
        let counted = self.server.connection.as_ref().and_then(|c| Info::of(c).ok());
        r.chrono = counted.map(|i| i.chrono());
        let (counts, back) = (take(&mut self.forward.counts), take(&mut self.back.counts));
        r.late = counts.late + back.late;
        r.released = counts.released + back.released;
        (r.data, r.drops, r.marked) = (counts.data, counts.drops, counts.marked);
        r.waits = counts.waits;
        (r.syns, r.lost_syns) = ([back.syns, counts.syns], [back.lost_syns, counts.lost_syns]);
        let packets = [self.forward.packets.take(), self.back.packets.take()];
        r.packets = packets.into_iter().flatten().flatten().collect();
        r.packets.sort_by_key(|p| p.at);
        r.drops.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock of the guest stands at multiples of 256 ns from a moment that need not be the beginning of the run.
    #[test]
    fn the_kernel_measures_the_microseconds_of_the_path() {
        for phase in 0..256 {
            let told = |due: u64| (told_at(Instant(due)).0 - phase).div_ceil(256) * 256 + phase;
            for slot in 0..1000 {
                let due = 12_823_803 + slot * 2_000_000;
                assert_eq!(told(due) / US - due / US, 3, "{due} from {phase}");
            }
        }
    }
}
