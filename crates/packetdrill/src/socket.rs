//! The socket calls of a script.

use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart::view::{HostQueue, Limit};
use slowstart_sim::engine::Control;
use slowstart_sim::path::Interface;
use slowstart_sim::tcp::endpoint::{Endpoint, State};
use slowstart_sim::tcp::segment::{ACK, RST, Segment};
use slowstart_sim::tcp::sender::Phase;
use std::collections::BTreeSet;

use crate::expr::Names;
use crate::host::Host;
use crate::queue::{Chrono, Extent, Queue, Wait, goal};

/// The result of a call; `None` while it blocks.
pub type Answer = Option<Result<i64, &'static str>>;

/// The sockets of a script: one connection and its listener.
#[derive(Clone, Debug)]
pub struct Sockets {
    host: Host,
    /// The connection; `None` before connect or accept.
    pub end: Option<Endpoint<Control>>,
    listener: Option<i64>,
    fd: Option<i64>,
    next_fd: i64,
    /// Non-blocking descriptors.
    nonblocking: BTreeSet<i64>,
    lowat: Option<u64>,
    buffer: Queue,
    /// Bytes written so far by a blocking call.
    written: u64,
    /// The largest window the peer offered (`tp->max_window`).
    largest_window: u64,
    chrono: Chrono,
    /// Bytes read by the application.
    taken: u64,
    shut: (bool, bool),
    /// `TCP_CORK` and `TCP_NODELAY` (Nagle's algorithm off).
    hold: (bool, bool),
    /// The descriptor is closed.
    orphan: bool,
    /// The time at which data last arrived.
    heard: Instant,
}

impl Sockets {
    /// Begins without a socket, on this host.
    pub fn new(host: &Host) -> Self {
        Self {
            host: host.clone(),
            end: None,
            listener: None,
            fd: None,
            next_fd: 3,
            nonblocking: BTreeSet::new(),
            lowat: None,
            buffer: host.buffer(),
            written: 0,
            largest_window: 0,
            chrono: Chrono::default(),
            taken: 0,
            shut: (false, false),
            hold: (false, false),
            orphan: false,
            heard: Instant::ZERO,
        }
    }

    /// Sets the next descriptor, since a script chooses its own numbers.
    pub fn number(&mut self, fd: i64) {
        self.next_fd = fd;
    }

    /// Returns the host, so that a sysctl of the script can change it.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    fn unread(&self) -> u64 {
        self.end.as_ref().map_or(0, |e| e.rx.delivered()).saturating_sub(self.taken)
    }

    fn extent(&self) -> Extent {
        self.end.as_ref().map_or(Extent { una: 1, next: 1, end: 1 }, |e| {
            let (una, end) = (e.tx.board().una(), e.tx.end());
            Extent { una: una.min(end), next: e.tx.next().min(end), end }
        })
    }

    fn low_water(&self) -> u64 {
        self.lowat.filter(|&n| n > 0).unwrap_or(self.host.notsent_lowat)
    }

    fn established(&self) -> bool {
        self.end.as_ref().is_some_and(|e| e.state() == State::Established)
    }

    /// Updates what limits the sender, and whether the application waits for space (`tcp_check_space`), after
    /// time has passed, a segment has arrived or data was written.
    fn look(&mut self, now: Instant, heard: bool) {
        let Some(e) = &self.end else { return };
        let idle = e.tx.done() && self.extent().una == self.extent().end;
        // tcp_cwnd_validate: all data is sent, the window is not full, and a write found no space.
        let starved = self.buffer.full
            && e.tx.unsent() == 0
            && (self.chrono.wait() == Wait::Buffer || (heard && e.tx.growth_limit() != Limit::Window));
        let wait = if idle {
            Wait::Idle
        } else if e.tx.peer_limited() && e.tx.unsent() > 0 {
            Wait::Peer
        } else if starved {
            Wait::Buffer
        } else {
            Wait::Busy
        };
        let (window, degree, mss) = (e.tx.window(), u64::from(e.tx.rack().degree), u64::from(e.tx.mss()));
        self.chrono.set(now, wait);
        if heard && self.buffer.full {
            // A full window does not prevent growth, as measured on Linux.
            self.buffer.expand(window, degree, mss);
            let (extent, lowat) = (self.extent(), self.low_water());
            if self.buffer.writeable(extent, lowat) {
                self.buffer.full = false;
                if wait == Wait::Buffer {
                    self.chrono.set(now, Wait::Busy);
                }
            }
        }
    }

    /// A timer of the connection expired.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if let Some(e) = &mut self.end {
            e.on_timer(now, out);
        }
        self.look(now, false);
    }

    /// Stops or restarts the interface.
    pub fn block(&mut self) {
        let blocked = self.host.blocked;
        let queue = HostQueue { used: Bytes::ZERO, limit: Bytes::ZERO };
        if let Some(e) = &mut self.end {
            e.tx.interface = blocked.then_some(Interface {
                queue,
                room: 0,
                rate: Rate(1_000_000),
                held: None,
                throttled: false,
            });
        }
    }

    /// A segment arrives, for the connection or for no connection (RFC 9293 §3.10.7.1).
    pub fn receive(&mut self, now: Instant, s: &Segment, out: &mut Vec<Segment>) {
        // The handshake counts (tcp_finish_connect, tcp_create_openreq_child).
        if s.len > 0 || self.end.as_ref().is_some_and(|e| e.state() != State::Established) {
            self.heard = now;
        }
        let gone = self.end.as_ref().is_none_or(|e| {
            let over = e.tx.done() && e.tx.closing() && e.rx.finished() && self.passive_close();
            (self.orphan && e.state() != State::Established) || over || e.state() == State::Failed
        });
        match &mut self.end {
            Some(e) if !gone => {
                let (before, was) = (e.rx.delivered(), e.state());
                e.on_segment(now, s, out);
                self.largest_window = self.largest_window.max(e.tx.peer_window());
                if was != State::Established {
                    // tcp_init_buffer_space
                    self.buffer.expand(u64::from(self.host.profile.iw), 3, u64::from(e.tx.mss()));
                }
                // Data that will not be read (RFC 2525 §2.17).
                if self.orphan && e.rx.delivered() > before {
                    out.clear();
                    out.push(Segment { seq: s.ack, flags: RST, ..Segment::default() });
                    self.end = None;
                }
                self.look(now, true);
            }
            _ if s.has(RST) => {}
            _ if s.has(ACK) => out.push(Segment { seq: s.ack, flags: RST, ..Segment::default() }),
            _ => out.push(Segment {
                ack: s.seq.wrapping_add(s.span() as u32),
                flags: RST | ACK,
                ..Segment::default()
            }),
        }
    }

    /// The peer closed first: the connection ends when our FIN is acknowledged.
    fn passive_close(&self) -> bool {
        self.end.as_ref().is_some_and(Endpoint::peer_closed_first)
    }

    /// Makes a call, or checks again whether a blocking call has returned.
    ///
    /// # Errors
    /// A call or argument that is not modelled.
    pub fn call(
        &mut self,
        now: Instant,
        name: &str,
        args: &[String],
        again: bool,
        out: &mut Vec<Segment>,
    ) -> Result<Answer, String> {
        let unsupported = || format!("unsupported: {name}({})", args.join(", "));
        let arg = |n: usize| args.get(n).map_or("", |a| a.trim());
        let integer = |n: usize| arg(n).parse::<i64>().map_err(|_| unsupported());
        if name == "socket" {
            if arg(1) != "SOCK_STREAM" {
                return Err(unsupported());
            }
            self.next_fd += 1;
            return Ok(Some(Ok(self.next_fd - 1)));
        }
        if name == "poll" {
            return self.poll(args).ok_or_else(unsupported);
        }
        let fd = integer(0)?;
        let blocks = !self.nonblocking.contains(&fd);
        let wait = |blocks: bool| if blocks { None } else { Some(Err("EAGAIN")) };
        let ok = Some(Ok(0));
        match name {
            "bind" => return Ok(ok),
            "listen" => {
                self.listener = Some(fd);
                self.buffer = self.host.buffer();
                self.end = Some(self.host.server());
                return Ok(ok);
            }
            "accept" => {
                if self.end.as_ref().is_none_or(|e| e.state() != State::Established) {
                    return Ok(wait(blocks));
                }
                self.fd = Some(self.next_fd);
                self.next_fd += 1;
                return Ok(Some(Ok(self.next_fd - 1)));
            }
            "connect" => {
                if !again {
                    let mut end = self.host.client();
                    end.connect(now, out);
                    self.end = Some(end);
                    self.fd = Some(fd);
                    self.orphan = false;
                }
                return Ok(match self.end.as_ref().map(Endpoint::state) {
                    Some(State::Established) => ok,
                    Some(State::SynSent) if !blocks => Some(Err("EINPROGRESS")),
                    Some(State::SynSent) => None,
                    _ => Some(Err("ECONNREFUSED")),
                });
            }
            "fcntl" => {
                return match arg(1) {
                    "F_GETFL" => Ok(Some(Ok(if blocks { 2 } else { 0x802 }))),
                    "F_SETFL" => {
                        self.nonblocking.remove(&fd);
                        if arg(2).contains("O_NONBLOCK") {
                            self.nonblocking.insert(fd);
                        }
                        Ok(ok)
                    }
                    _ => Err(unsupported()),
                };
            }
            "setsockopt" => {
                return self
                    .set_option(now, arg(1), arg(2), arg(3), out)
                    .map(|()| ok)
                    .ok_or_else(unsupported);
            }
            "getsockopt" => {
                let want = arg(3).trim_matches(['[', ']']);
                let value = match arg(2) {
                    "SO_ERROR" => 0,
                    "SO_SNDBUF" => self.buffer.limit(),
                    "TCP_NOTSENT_LOWAT" => self.lowat.unwrap_or(0),
                    _ => return Err(unsupported()),
                };
                return if want == value.to_string() {
                    Ok(ok)
                } else {
                    Err(format!("expected [{want}], seen [{value}]"))
                };
            }
            _ => {}
        }
        if self.fd != Some(fd) && !(name == "close" && self.listener == Some(fd)) {
            return Err(unsupported());
        }
        match name {
            "write" | "send" | "sendmsg" => {
                let more = args.last().is_some_and(|a| a.contains("MSG_MORE"));
                let bytes = if name == "sendmsg" {
                    vectors(arg(1)).ok_or_else(unsupported)?
                } else {
                    integer(2)?.max(0).cast_unsigned()
                };
                if self.shut.1 {
                    return Ok(Some(Err("EPIPE")));
                }
                if !self.established() || (again && self.buffer.full) {
                    return Ok(wait(blocks));
                }
                if !again {
                    self.written = 0;
                }
                self.written += self.write(now, bytes - self.written, more, out);
                if self.written < bytes && blocks {
                    return Ok(None);
                }
                let answer = if self.written == 0 && bytes > 0 {
                    Err("EAGAIN")
                } else {
                    Ok(self.written.cast_signed())
                };
                Ok(Some(answer))
            }
            "read" | "recv" => {
                let n = self.unread().min(integer(2)?.max(0).cast_unsigned());
                let over = self.shut.0
                    || self.end.as_ref().is_none_or(|e| e.rx.finished() || e.state() == State::Failed);
                if n == 0 && !over {
                    return Ok(wait(blocks));
                }
                // A blocking read returns the available bytes.
                self.taken += n;
                Ok(Some(Ok(n.cast_signed())))
            }
            "shutdown" => {
                let (rd, wr) = match arg(1) {
                    "SHUT_RD" => (true, false),
                    "SHUT_WR" => (false, true),
                    "SHUT_RDWR" => (true, true),
                    _ => return Err(unsupported()),
                };
                self.shut = (self.shut.0 || rd, self.shut.1 || wr);
                if wr {
                    self.finish(now, out);
                }
                Ok(ok)
            }
            "close" => {
                if self.fd == Some(fd) {
                    self.orphan = true;
                    self.fd = None;
                    if self.unread() > 0 {
                        if let Some(e) = self.end.take() {
                            out.push(e.reset(now));
                        }
                    } else {
                        self.shut = (true, true);
                        self.finish(now, out);
                    }
                }
                Ok(ok)
            }
            _ => Err(unsupported()),
        }
    }

    /// Writes as many bytes as the buffer accepts, and pushes each full socket buffer. Returns the number of
    /// bytes.
    fn write(&mut self, now: Instant, bytes: u64, more: bool, out: &mut Vec<Segment>) -> u64 {
        let lowat = self.low_water();
        let mut done = 0;
        while done < bytes {
            let extent = self.extent();
            let Some(e) = &mut self.end else { break };
            let room = self.buffer.room(extent, goal(u64::from(e.tx.mss()), self.largest_window), lowat);
            if room == 0 {
                self.buffer.full = true;
                break;
            }
            let n = room.min(bytes - done);
            e.tx.write(n);
            done += n;
            // MSG_MORE delays a partial segment; an acknowledgement releases it.
            e.tx.set_hold(self.hold.0 || more, !self.hold.1);
            e.send(now, out);
            e.tx.set_hold(self.hold.0, !self.hold.1);
        }
        self.look(now, false);
        done
    }

    fn finish(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if let Some(e) = &mut self.end {
            e.tx.set_hold(false, false);
            e.tx.close();
            e.send(now, out);
        }
    }

    fn set_option(
        &mut self,
        now: Instant,
        level: &str,
        name: &str,
        value: &str,
        out: &mut Vec<Segment>,
    ) -> Option<()> {
        let value = value.trim_matches(['[', ']']);
        // Packets are never fragmented. The path MTU is the MTU of the host.
        if name == "IP_MTU_DISCOVER" {
            return (level == "SOL_IP").then_some(());
        }
        let n: u64 = value.parse().ok()?;
        match (level, name) {
            ("SOL_SOCKET", "SO_SNDBUF") => self.buffer.set(n),
            ("SOL_TCP", "TCP_NOTSENT_LOWAT") => self.lowat = Some(n),
            ("SOL_TCP", "TCP_NODELAY") => self.hold.1 = n != 0,
            ("SOL_TCP", "TCP_CORK") => self.hold.0 = n != 0,
            // There is one host, and segments carry no type of service.
            ("SOL_SOCKET", "SO_REUSEADDR") | ("SOL_IP", "IP_TOS") => {}
            _ => return None,
        }
        if let Some(e) = &mut self.end {
            // Setting TCP_NODELAY and clearing TCP_CORK push pending data.
            let push = matches!((name, n), ("TCP_NODELAY", 1..) | ("TCP_CORK", 0));
            e.tx.set_hold(self.hold.0 && !push, !self.hold.1 && !push);
            if push {
                e.send(now, out);
            }
            e.tx.set_hold(self.hold.0, !self.hold.1);
        }
        Some(())
    }

    fn poll(&mut self, args: &[String]) -> Option<Answer> {
        let wants = args.first()?;
        let (extent, lowat) = (self.extent(), self.low_water());
        let writeable = self.buffer.writeable(extent, lowat);
        let readable = self.unread() > 0 || self.end.as_ref()?.rx.finished();
        let ready = if wants.contains("events=POLLOUT") {
            self.buffer.full |= !writeable;
            writeable
        } else if wants.contains("events=POLLIN") {
            readable
        } else {
            return None;
        };
        let timeout: i64 = args.get(2)?.trim().parse().ok()?;
        Some(if ready {
            Some(Ok(1))
        } else if timeout == 0 {
            Some(Ok(0))
        } else {
            None
        })
    }

    /// Adds the fields of `tcp_info`.
    pub fn info(&self, now: Instant, names: &mut Names) {
        let Some(e) = &self.end else { return };
        let (t, b) = (&e.tx, e.tx.board());
        let micros = |t: Option<Span>| i64::try_from(t.map_or(0, |t| t.0 / 1000)).unwrap_or(i64::MAX);
        let mss = Bytes(u64::from(t.mss()));
        // The algorithm learns the peer's segment size with the first data.
        let window = if t.counters.packets == 0 { u64::from(self.host.profile.iw) } else { t.window() };
        let (busy, peer, buffer) = self.chrono.spent(now);
        let [e1, ce, e0] = t.reported_bytes();
        let threshold = t.control().state().ssthresh.map_or(0x7fff_ffff, |s| s.units(mss).cast_signed());
        let ca = match t.phase() {
            Phase::Open => 0,
            Phase::Disorder => 1,
            Phase::Cwr => 2,
            Phase::Recovery => 3,
            Phase::Loss => 4,
        };
        for (name, value) in [
            ("TCP_CA_Open", 0),
            ("TCP_CA_Disorder", 1),
            ("TCP_CA_CWR", 2),
            ("TCP_CA_Recovery", 3),
            ("TCP_CA_Loss", 4),
            ("tcpi_ca_state", ca),
            ("tcpi_snd_cwnd", window.cast_signed()),
            ("tcpi_snd_ssthresh", threshold),
            ("tcpi_unacked", i64::from(b.out.packets)),
            ("tcpi_sacked", i64::from(b.sacked.packets)),
            ("tcpi_lost", i64::from(b.lost.packets)),
            ("tcpi_retrans", i64::from(b.resent.packets)),
            ("tcpi_total_retrans", t.counters.retransmitted.cast_signed() + i64::from(e.syn_losses())),
            ("tcpi_snd_mss", mss.0.cast_signed()),
            ("tcpi_rtt", micros(t.rtt().srtt())),
            ("tcpi_min_rtt", micros(t.rtt().min())),
            ("tcpi_rto", micros(Some(t.rtt().rto()))),
            // Bytes are counted, of which a packet may have less than a full segment.
            ("tcpi_delivered_ce", t.counters.marked.div_ceil(mss.0).cast_signed()),
            ("tcpi_delivered_e1_bytes", i64::from(e1)),
            ("tcpi_delivered_ce_bytes", i64::from(ce)),
            ("tcpi_delivered_e0_bytes", i64::from(e0)),
            ("tcpi_received_ce", e.rx.ecn.marked.cast_signed()),
            ("tcpi_reordering", i64::from(t.rack().degree)),
            ("tcpi_reord_seen", i64::from(t.rack().reorderings)),
            ("tcpi_busy_time", micros(Some(busy))),
            ("tcpi_rwnd_limited", micros(Some(peer))),
            ("tcpi_sndbuf_limited", micros(Some(buffer))),
            ("tcpi_last_data_recv", micros(Some(now.since(self.heard))) / 1000),
        ] {
            names.insert(name.to_owned(), value);
        }
    }
}

/// The bytes of a message: the sum of `{..., n}`.
fn vectors(message: &str) -> Option<u64> {
    let (_, list) = message.split_once("msg_iov(")?;
    let (list, _) = list.split_once(']')?;
    list.split("...,").skip(1).map(|v| v.split('}').next()?.trim().parse::<u64>().ok()).sum()
}
