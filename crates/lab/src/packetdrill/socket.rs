//! What a script's calls and sysctls mean to an endpoint.

use crate::engine::Control;
use crate::scenario;
use crate::tcp::endpoint::{Endpoint, State};
use crate::tcp::profile::Profile;
use crate::tcp::segment::{ACK, RST, Segment};
use crate::tcp::sender::Phase;
use slowstart::avoidance;
use slowstart::control::{Composed, Controller};
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Instant, Span};

use super::expr::Names;

/// What a call answers, `None` while it blocks.
pub type Answer = Option<Result<i64, &'static str>>;

/// The machine a script runs on: its sysctls.
#[derive(Clone, Debug)]
pub struct Host {
    /// The stack.
    pub profile: Profile,
    startup: &'static str,
    avoidance: &'static str,
    notsent_lowat: u64,
    /// The first send buffer, bytes (`tcp_wmem[1]`).
    wmem: u64,
}

impl Default for Host {
    fn default() -> Self {
        // Under pfifo nothing paces.
        let profile = Profile { pacing: false, ..Profile::LINUX_6_18 };
        Self {
            profile,
            startup: "hystart",
            avoidance: "cubic",
            notsent_lowat: u64::from(u32::MAX),
            wmem: 256 << 10,
        }
    }
}

impl Host {
    /// Runs shell commands: those that set what is modelled.
    ///
    /// # Errors
    /// At the first that does anything else.
    pub fn shell(&mut self, text: &str) -> Result<(), String> {
        for line in text.replace("\\\n", " ").lines() {
            let line = line.split('#').next().unwrap_or(line).trim();
            let mut words = line.split_whitespace();
            match words.next() {
                None => {}
                // The suite's own: what it sets for every script.
                Some(c) if c.ends_with("common/defaults.sh") => {
                    *self = Self::default();
                    self.profile.idle_restart = false;
                    self.profile.syn_retries = 5;
                    self.profile.rmem = Bytes(15 << 20);
                }
                // Puts back what a script changed; each begins anew here.
                Some(c) if c.starts_with("/tmp/sysctl_restore_") => {}
                Some("sysctl") => self.settings(line.trim_start_matches("sysctl"))?,
                Some(c) if c.ends_with("set_sysctls.py") => self.settings(line.trim_start_matches(c))?,
                Some("tc") if line.ends_with("root fq") => self.profile.pacing = true,
                Some("tc") if line.ends_with("root pfifo") => self.profile.pacing = false,
                Some("echo") if line.ends_with("/sys/module/tcp_cubic/parameters/hystart_detect") => {
                    self.startup = match words.next() {
                        Some("0") => "standard",
                        Some("3") => "hystart",
                        _ => return Err(format!("unsupported: `{line}`")),
                    };
                }
                Some(_) => return Err(format!("unsupported: `{line}`")),
            }
        }
        Ok(())
    }

    /// `key=value` words; a quoted value may hold spaces.
    fn settings(&mut self, text: &str) -> Result<(), String> {
        let mut quoted = false;
        let mut words = vec![String::new()];
        for c in text.chars() {
            match c {
                '"' => quoted = !quoted,
                c if c.is_whitespace() && !quoted => words.push(String::new()),
                c => words.last_mut().into_iter().for_each(|w| w.push(c)),
            }
        }
        for word in words.iter().filter(|w| !w.is_empty() && !w.starts_with('-')) {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("unsupported: `{word}`"))?;
            let key = key.rsplit(['.', '/']).next().unwrap_or(key);
            self.set(key, value).ok_or_else(|| format!("unsupported: sysctl {key}={value}"))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let flag = || match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let last = || value.split_whitespace().nth(2)?.parse().ok();
        let p = &mut self.profile;
        match key {
            "tcp_slow_start_after_idle" => p.idle_restart = flag()?,
            "tcp_timestamps" => {
                p.timestamps = flag()?;
                p.mss = if p.timestamps { 1448 } else { 1460 };
            }
            "tcp_sack" => p.sack = flag()?,
            "tcp_recovery" => p.rack = flag()?,
            "tcp_early_retrans" => p.tlp = value != "0",
            "tcp_rmem" => p.rmem = Bytes(last().filter(|&n| (4096..1 << 30).contains(&n))?),
            "tcp_wmem" => self.wmem = value.split_whitespace().nth(1)?.parse().ok()?,
            "tcp_syn_retries" => p.syn_retries = value.parse().ok()?,
            "tcp_synack_retries" => p.synack_retries = value.parse().ok()?,
            "tcp_syn_linear_timeouts" => p.syn_linear = value.parse().ok()?,
            "tcp_notsent_lowat" => self.notsent_lowat = value.parse().ok()?,
            "tcp_congestion_control" => match value {
                "cubic" => self.avoidance = "cubic",
                "reno" => (self.startup, self.avoidance) = ("standard", "reno"),
                _ => return None,
            },
            // How a burst is cut is not modelled: a segment is a segment.
            "tcp_tso_win_divisor" | "tcp_min_tso_segs" => {}
            // What is modelled, and always on.
            "tcp_pacing_ss_ratio" => return (value == "200").then_some(()),
            "tcp_pacing_ca_ratio" => return (value == "120").then_some(()),
            "tcp_ecn" => return (value == "0").then_some(()),
            _ => return None,
        }
        Some(())
    }

    fn endpoint(&self) -> Endpoint<Control> {
        let p = &self.profile;
        let startup = scenario::startup("startup", self.startup).map(|s| s.1);
        let startup = startup.unwrap_or_else(|e| unreachable!("{} is registered: {e}", self.startup));
        let avoidance = avoidance::REGISTRY.iter().find(|a| a.name == self.avoidance);
        let avoidance =
            avoidance.map_or_else(|| unreachable!("{} is registered", self.avoidance), |a| (a.make)());
        let iw = Bytes(u64::from(p.iw) * u64::from(p.mss));
        Endpoint::connecting(p, AnyController::Composed(Composed::new(startup, avoidance, iw)), 0)
    }
}

/// The sockets of a script: one connection, and the listener it came from.
#[derive(Clone, Debug)]
pub struct Sockets {
    host: Host,
    /// The connection.
    pub end: Option<Endpoint<Control>>,
    listener: Option<i64>,
    fd: Option<i64>,
    next_fd: i64,
    /// Descriptors that do not block.
    nonblocking: Vec<i64>,
    lowat: Option<u64>,
    sndbuf: Option<u64>,
    /// What the application has taken, bytes.
    taken: u64,
    shut: (bool, bool),
    /// Cork, and no delay (Nagle's rule off).
    hold: (bool, bool),
    /// Nobody holds the descriptor.
    orphan: bool,
    /// When data last arrived.
    heard: Instant,
}

impl Sockets {
    /// None yet.
    pub fn new(host: &Host) -> Self {
        Self {
            host: host.clone(),
            end: None,
            listener: None,
            fd: None,
            next_fd: 3,
            nonblocking: Vec::new(),
            lowat: None,
            sndbuf: None,
            taken: 0,
            shut: (false, false),
            hold: (false, false),
            orphan: false,
            heard: Instant::ZERO,
        }
    }

    /// The sysctls change.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    fn unread(&self) -> u64 {
        self.end.as_ref().map_or(0, |e| e.rx.delivered()).saturating_sub(self.taken)
    }

    fn unsent(&self) -> u64 {
        self.end.as_ref().map_or(0, |e| e.tx.unsent())
    }

    fn room(&self) -> u64 {
        let held = self.end.as_ref().map_or(0, |e| e.tx.unsent() + e.tx.next() - e.tx.board().una());
        // SO_SNDBUF is doubled for what the kernel adds to the data; what it adds is not modelled, so half is data.
        self.sndbuf.unwrap_or(self.host.wmem).saturating_sub(held)
    }

    /// A segment arrives: at the connection, or at nobody (RFC 9293 §3.10.7.1).
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
                let before = e.rx.delivered();
                e.on_segment(now, s, out);
                // Data that nobody will read (RFC 2525 §2.17).
                if self.orphan && e.rx.delivered() > before {
                    out.clear();
                    out.push(Segment { seq: s.ack, flags: RST, ..Segment::default() });
                    self.end = None;
                }
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

    /// The peer closed first: nothing is left to wait for once our FIN is acknowledged.
    fn passive_close(&self) -> bool {
        self.end.as_ref().is_some_and(Endpoint::peer_closed_first)
    }

    /// Makes a call, or asks again whether one that blocks is done.
    ///
    /// # Errors
    /// What is not modelled.
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
                self.end = Some(self.host.endpoint().into_listening());
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
                    let mut end = self.host.endpoint();
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
                        self.nonblocking.retain(|&n| n != fd);
                        if arg(2).contains("O_NONBLOCK") {
                            self.nonblocking.push(fd);
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
                    "SO_SNDBUF" => self.sndbuf.map_or(self.host.wmem, |n| 2 * n),
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
                let room = self.room();
                if self.end.as_ref().is_none_or(|e| e.state() != State::Established)
                    || (room < bytes && blocks)
                {
                    return Ok(wait(blocks));
                }
                if room == 0 {
                    return Ok(Some(Err("EAGAIN")));
                }
                let n = bytes.min(room);
                if let Some(e) = &mut self.end {
                    e.tx.write(n);
                    e.tx.hold(self.hold.0 || more, !self.hold.1);
                    e.send(now, out);
                    e.tx.hold(self.hold.0, !self.hold.1);
                    // What MSG_MORE held back is not let go by the next acknowledgement.
                    if more {
                        e.tx.hold(true, !self.hold.1);
                    }
                }
                Ok(Some(Ok(n.cast_signed())))
            }
            "read" | "recv" => {
                let n = self.unread().min(integer(2)?.max(0).cast_unsigned());
                let over = self.shut.0
                    || self.end.as_ref().is_none_or(|e| e.rx.finished() || e.state() == State::Failed);
                if n == 0 && !over {
                    return Ok(wait(blocks));
                }
                // A read that blocks takes what there is.
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
                            out.push(e.reset());
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

    fn finish(&mut self, now: Instant, out: &mut Vec<Segment>) {
        if let Some(e) = &mut self.end {
            e.tx.hold(false, false);
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
        let n: u64 = value.trim_matches(['[', ']']).parse().ok()?;
        match (level, name) {
            ("SOL_SOCKET", "SO_SNDBUF") => self.sndbuf = Some(n),
            ("SOL_TCP", "TCP_NOTSENT_LOWAT") => self.lowat = Some(n),
            ("SOL_TCP", "TCP_NODELAY") => self.hold.1 = n != 0,
            ("SOL_TCP", "TCP_CORK") => self.hold.0 = n != 0,
            // There is one host; and a segment does not carry a type of service.
            ("SOL_SOCKET", "SO_REUSEADDR") | ("SOL_IP", "IP_TOS") => {}
            _ => return None,
        }
        if let Some(e) = &mut self.end {
            // To switch delay off, or to uncork, is to push what waits.
            let push = matches!((name, n), ("TCP_NODELAY", 1..) | ("TCP_CORK", 0));
            e.tx.hold(self.hold.0 && !push, !self.hold.1 && !push);
            if push {
                e.send(now, out);
            }
            e.tx.hold(self.hold.0, !self.hold.1);
        }
        Some(())
    }

    fn poll(&self, args: &[String]) -> Option<Answer> {
        let wants = args.first()?;
        let writable = self.unsent() < self.lowat.filter(|&n| n > 0).unwrap_or(self.host.notsent_lowat)
            && self.room() > 0;
        let readable = self.unread() > 0 || self.end.as_ref()?.rx.finished();
        let ready = if wants.contains("events=POLLOUT") {
            writable
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

    /// What `tcp_info` says.
    pub fn info(&self, now: Instant, names: &mut Names) {
        let Some(e) = &self.end else { return };
        let (t, b) = (&e.tx, e.tx.board());
        let micros = |t: Option<Span>| i64::try_from(t.map_or(0, |t| t.0 / 1000)).unwrap_or(i64::MAX);
        let mss = Bytes(u64::from(t.mss()));
        let threshold = t.control().state().ssthresh.map_or(0x7fff_ffff, |s| s.units(mss).cast_signed());
        let ca = match t.phase() {
            Phase::Open => 0,
            Phase::Disorder => 1,
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
            ("tcpi_snd_cwnd", t.window().cast_signed()),
            ("tcpi_snd_ssthresh", threshold),
            ("tcpi_unacked", i64::from(b.out.packets)),
            ("tcpi_sacked", i64::from(b.sacked.packets)),
            ("tcpi_lost", i64::from(b.lost.packets)),
            ("tcpi_retrans", i64::from(b.resent.packets)),
            ("tcpi_snd_mss", mss.0.cast_signed()),
            ("tcpi_rtt", micros(t.rtt().srtt())),
            ("tcpi_min_rtt", micros(t.rtt().min())),
            ("tcpi_rto", micros(Some(t.rtt().rto()))),
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
