//! A download over a path of the simulator, between two whole QUIC stacks at virtual time.
//!
//! Both ends are `noq-proto` or `quinn-proto` without sockets: real TLS 1.3, encryption, frames, ACK ranges,
//! loss detection and pacing. Only the clock and the path are ours. MTU discovery and segmentation offload
//! are off and flow control has no effect below a gibibyte by default ([`Knobs`]), so that congestion control
//! is what is measured. The same study gives the same rows on any machine: keys differ from run to run, but
//! no size and no time depends on them.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use self::log::Logs;
use self::script::Script;
use bytes::BytesMut;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use slowstart::control::Controller as _;
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Gain, Instant, Span};
use slowstart_quic::factory::{Factory, Handle, Unsuited};
use slowstart_quic::host::Host;
use slowstart_sim::engine::Sampling;
use slowstart_sim::path::queue::Departure;
use slowstart_sim::path::{Cause, Direction, Ecn, Held, Kind, PacketInfo, Path};
use slowstart_sim::tcp::ranges::Ranges;
use slowstart_sim::tcp::sender::Limits;
use slowstart_sim::trace::MILESTONES;
use slowstart_study::record::{EventRow, Sample, Trace};
use slowstart_study::scenario::{Contender, Study};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant as StdInstant};
use thiserror::Error;

mod engine;
mod knobs;
mod limit;
mod log;
mod noq;
mod null;
mod quinn;
mod row;
mod script;
mod which;

pub use self::engine::Quic;
pub use self::knobs::Knobs;
pub use self::script::{Session, Write};
pub use self::which::Which;

/// Startups that a QUIC host cannot carry, and what is missing.
pub const NOT_CARRIED: &[(&str, &str)] = &[
    ("halfback", "a host that sends a packet again that is not known to be lost"),
    ("quick-start", "routers that grant a rate in the handshake"),
    ("restricted", "the queue of the sender's interface"),
    ("tsl", "the number of lost handshake packets"),
];
/// Bytes of IPv4 and UDP headers before a QUIC packet.
const HEADERS: u64 = 28;
/// Sequence and index of the two ends.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// What the server sends, over and over.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Why a study cannot run over QUIC.
#[derive(Debug, Error)]
pub enum QuicError {
    /// A key asks for what this engine lacks.
    #[error("{key}: {why}")]
    Unsupported {
        /// The key of the study.
        key: &'static str,
        /// What is expected.
        why: String,
    },
    /// The stack failed, which is a defect of this crate.
    #[error("the QUIC stack failed: {0}")]
    Stack(String),
    /// An end closed the connection before the transfer was complete. A row says so; no study fails by it.
    #[error("the QUIC stack closed the connection: {0}")]
    Closed(String),
}

fn stack(e: impl std::fmt::Display) -> QuicError {
    QuicError::Stack(e.to_string())
}

fn unsuited(why: Unsuited) -> QuicError {
    QuicError::Unsupported { key: "avoidance", why: why.to_string() }
}

/// The address of an end.
fn address(end: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, end as u8 + 1), 443))
}

/// The seed of an end's connection identifiers.
fn end_seed(end: usize, seed: u64) -> [u8; 32] {
    let mut bytes = [end as u8 + 1; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes
}

/// A certificate for `localhost`, made once a process. Ed25519 signatures and keys have a fixed size.
fn certificate() -> Result<&'static (CertificateDer<'static>, PrivateKeyDer<'static>), QuicError> {
    static MADE: OnceLock<Result<(CertificateDer<'static>, PrivateKeyDer<'static>), String>> =
        OnceLock::new();
    let make = || -> Result<_, rcgen::Error> {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_string()])?;
        params.serial_number = Some(vec![1_u8; 8].into());
        let cert = params.self_signed(&key)?;
        Ok((cert.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into())))
    };
    MADE.get_or_init(|| make().map_err(|e| e.to_string())).as_ref().map_err(|e| QuicError::Stack(e.clone()))
}

/// Two ends of a connection, both of one QUIC stack without sockets: a client that reads and a server that
/// writes.
trait Stack: Sized {
    /// The stack and its version, as rows name it.
    const NAME: &'static str;
    /// What a row of it is to be read with, if it tells its controller less than another.
    const CAVEAT: Option<&'static str>;

    /// A client that connects at `origin` to a server whose controllers `factory` makes. A stack that writes
    /// no qlog ignores `logs`.
    fn new(
        knobs: &Knobs,
        factory: Arc<Factory>,
        origin: StdInstant,
        seed: u64,
        logs: Option<Logs>,
    ) -> Result<Self, QuicError>;
    /// A datagram arrives at an end.
    fn receive(&mut self, end: usize, now: StdInstant, ecn: Ecn, datagram: BytesMut)
    -> Result<(), QuicError>;
    /// From now on the server sees datagrams of the client come from another address, as behind a NAT.
    #[cfg(test)]
    fn move_client(&mut self, to: SocketAddr);
    /// When the next timer of an end expires.
    fn timeout(&mut self, end: usize) -> Option<StdInstant>;
    /// Timers of an end may have expired.
    fn on_timeout(&mut self, end: usize, now: StdInstant);
    /// Processes the events of an end: the server opens a stream, the client accepts it.
    fn events(&mut self, end: usize) -> Result<(), QuicError>;
    /// The server writes; returns how much of `data` the stack took.
    fn write(&mut self, data: &'static [u8]) -> usize;
    /// The client reads; returns the bytes. With `pieces` it reads them as they come, in any order, and adds
    /// where they belong: the stack holds none then, and closes no connection for its gaps.
    fn read(&mut self, pieces: Option<&mut Ranges>) -> u64;
    /// What is to be processed after reading and writing.
    fn settle(&mut self, end: usize);
    /// Writes the next datagram of an end into `buffer`; returns its size and codepoint, or `None` if it has
    /// nothing to send now.
    fn transmit(&mut self, end: usize, now: StdInstant, buffer: &mut Vec<u8>) -> Option<(usize, Ecn)>;
}

/// What is measured beside the host's own counters.
#[derive(Default)]
struct Observed {
    received: u64,
    milestones: [Option<Instant>; MILESTONES.len()],
    completed: Option<Instant>,
    capacity: Option<Instant>,
    /// The round-trip time of the path at that time.
    capacity_rtt: Span,
    first_drop: Option<Instant>,
    /// Times and causes of drops of data packets.
    drops: Vec<(Instant, Cause)>,
    peak_queue_delay: Span,
    data_packets: u64,
    /// Data packets that the path marked.
    marked: u64,
    /// How long each thing limited the server, and when its window was last full.
    limits: Limits,
    window_full: Option<Instant>,
    /// How often the server stopped sending because the peer's flow-control window was used up.
    peer_limited: u64,
    steps: u64,
    /// When the next sample is due.
    sample_at: Instant,
    exited: bool,
    trace: Trace,
    /// The most gaps between pieces of the stream that had come.
    most_gaps: u64,
}

/// A transfer under way.
struct Transfer<S> {
    stack: S,
    /// Packets under way to each end, in order of arrival.
    arriving: [VecDeque<(Instant, Ecn, BytesMut)>; 2],
    path: Path,
    /// Datagrams in the queue disciplines of what each end sends into.
    held: [Held<(Kind, BytesMut)>; 2],
    now: Instant,
    origin: StdInstant,
    size: Option<u64>,
    script: Script,
    /// Bytes the server's application has not written yet.
    unwritten: u64,
    /// True if the stack takes no more of them now.
    refused: bool,
    handle: Option<Handle>,
    factory: Arc<Factory>,
    knobs: Knobs,
    sampling: Sampling,
    internals: bool,
    logs: Option<Logs>,
    /// What has come of the stream, if the client reads it in any order.
    pieces: Option<Ranges>,
    /// Why an end closed the connection.
    closed: Option<String>,
    observed: Observed,
    /// A datagram being made, and what has left a queue; kept for the next.
    scratch: (Vec<u8>, Vec<Left>),
}

/// Bytes in flight with the headers of their packets.
fn on_wire(host: &Host<AnyController>, bytes: Bytes) -> Bytes {
    bytes.scale(host.mss().0 + HEADERS, host.mss().0)
}

/// A datagram that has left a queue.
type Left = ((Kind, BytesMut), Departure);

impl<S: Stack> Transfer<S> {
    fn new(
        knobs: &Knobs,
        study: &Study,
        contender: &Contender,
        seed: u64,
        remembered: Option<slowstart::view::PathMemory>,
        logged: bool,
    ) -> Result<Self, QuicError> {
        #[allow(
            clippy::disallowed_methods,
            reason = "an origin for the stack's clock: only differences count"
        )]
        let origin = StdInstant::now();
        let factory = Arc::new(
            Factory::new(contender.startup.clone(), contender.avoidance.clone(), seed)
                .map_err(unsuited)?
                .remembering(remembered)
                .since(origin)
                .watched(),
        );
        let logs = logged.then(|| Logs::new(origin));
        Ok(Self {
            stack: S::new(knobs, factory.clone(), origin, seed, logs.clone())?,
            arriving: Default::default(),
            path: study.path.build(seed),
            held: [Held::default(), Held::default()],
            now: Instant::ZERO,
            origin,
            size: study.size,
            script: Script::default(),
            unwritten: study.size.unwrap_or(u64::MAX),
            refused: false,
            handle: None,
            factory,
            knobs: *knobs,
            sampling: Sampling::Off,
            internals: false,
            logs,
            pieces: None,
            closed: None,
            observed: Observed::default(),
            scratch: Default::default(),
        })
    }

    fn std_now(&self) -> StdInstant {
        self.origin + Duration::from_nanos(self.now.0)
    }

    fn since_origin(&self, t: StdInstant) -> Instant {
        Instant(t.saturating_duration_since(self.origin).as_nanos() as u64)
    }

    /// Hands an end what has arrived.
    fn receive(&mut self, i: usize) -> Result<(), QuicError> {
        let now = self.std_now();
        while self.arriving[i].front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, ecn, datagram)) = self.arriving[i].pop_front() else { break };
            self.stack.receive(i, now, ecn, datagram)?;
        }
        if i == SERVER && self.handle.is_none() {
            self.handle = self.factory.newest();
            if let Some(handle) = &self.handle {
                let mut host = handle.lock();
                host.unsent = self.size.filter(|_| self.script.is_empty()).map(Bytes);
                host.slow_start_gain = Gain::percent(self.knobs.gain);
                host.limited = self.knobs.limited;
            }
        }
        Ok(())
    }

    /// The applications: the server writes, the client reads.
    fn applications(&mut self, i: usize) -> Result<(), QuicError> {
        self.stack.events(i)?;
        if i == SERVER {
            self.unwritten += self.script.write(self.now);
            self.refused = false;
            while self.unwritten > 0 && !self.refused {
                let most = self.unwritten.min(ZEROS.len() as u64) as usize;
                let written = self.stack.write(&ZEROS[..most]);
                self.unwritten -= written as u64;
                self.refused = written == 0;
            }
        } else {
            let received = self.stack.read(self.pieces.as_mut());
            if received > 0 {
                let m = &mut self.observed;
                if let Some(pieces) = &self.pieces {
                    m.most_gaps = m.most_gaps.max(pieces.gaps());
                }
                m.received += received;
                for (at, bytes) in m.milestones.iter_mut().zip(MILESTONES) {
                    if m.received >= bytes {
                        at.get_or_insert(self.now);
                    }
                }
                if self.size.is_some_and(|size| m.received >= size) {
                    m.completed.get_or_insert(self.now);
                }
                self.script.received(self.now, m.received);
            }
        }
        self.stack.settle(i);
        Ok(())
    }

    /// Sends what the stack and its pacer allow.
    fn transmit(&mut self, i: usize) {
        let now = self.std_now();
        let (mut buffer, mut left) = std::mem::take(&mut self.scratch);
        loop {
            buffer.clear();
            let Some((size, ecn)) = self.stack.transmit(i, now, &mut buffer) else { break };
            let bytes = size as u64 + HEADERS;
            // What the scripts and ACK filters of a path would take it for; its content is encrypted.
            let kind = if bytes > 300 { Kind::Data } else { Kind::Ack };
            let ecn = if self.knobs.ecn { ecn } else { Ecn::NotEct };
            let info = PacketInfo { bytes: bytes as u32, flow: 0, kind, ecn };
            if i == SERVER {
                self.observed.data_packets += u64::from(kind == Kind::Data);
                // A queue discipline tells each packet's wait when it leaves.
                if !self.path.forward.has_discipline() {
                    let m = &mut self.observed;
                    m.peak_queue_delay = m.peak_queue_delay.max(self.path.forward.queue_delay(self.now));
                }
            }
            let datagram = BytesMut::from(&buffer[..size]);
            let at = self.now;
            let (direction, held) = self.leaving(i);
            held.send(direction, at, &info, (kind, datagram), &mut left);
            self.on_departures(i, &mut left);
            if i == SERVER && self.observed.capacity.is_none() {
                self.judge_capacity();
            }
        }
        if i == SERVER && self.refused && self.is_peer_limited() {
            self.observed.peer_limited += 1;
        }
        self.scratch = (buffer, left);
        if i == SERVER {
            self.note_limit();
        }
    }

    /// True if the peer's flow-control window is used up, and the congestion window is not. A peer extends its
    /// window when an eighth of it has been read.
    fn is_peer_limited(&self) -> bool {
        self.handle.as_ref().is_some_and(|handle| {
            let host = handle.lock();
            let inflight = host.inflight();
            let window = Bytes(u64::from(self.knobs.window));
            inflight + host.mss() <= host.window() && inflight + host.mss() * 2 >= window.scale(7, 8)
        })
    }

    /// The direction that an end sends into, and what its queue holds.
    fn leaving(&mut self, i: usize) -> (&mut Direction, &mut Held<(Kind, BytesMut)>) {
        let direction = if i == SERVER { &mut self.path.forward } else { &mut self.path.back };
        (direction, &mut self.held[i])
    }

    /// Takes what left the queue of what an end sends into.
    fn on_departures(&mut self, i: usize, left: &mut Vec<Left>) {
        for ((kind, datagram), d) in left.drain(..) {
            let is_data = i == SERVER && kind == Kind::Data;
            if is_data {
                self.observed.marked += u64::from(d.ecn == Ecn::Ce);
                self.observed.peak_queue_delay = self.observed.peak_queue_delay.max(d.waited);
            }
            match d.outcome {
                Ok(at) => {
                    let arriving = &mut self.arriving[1 - i];
                    // Mostly the last to arrive, or near it.
                    let later = arriving.iter().rev().take_while(|(other, ..)| *other > at).count();
                    let direction = if i == SERVER { &mut self.path.forward } else { &mut self.path.back };
                    let place = arriving.len() - later;
                    if direction.draws_copy() {
                        arriving.insert(place, (at, d.ecn, datagram.clone()));
                    }
                    arriving.insert(place, (at, d.ecn, datagram));
                }
                Err(dropped) if is_data => {
                    self.observed.drops.push((self.now, dropped.cause));
                    self.observed.first_drop.get_or_insert(dropped.at);
                    if self.sampling != Sampling::Off {
                        self.event(dropped.at, "drop", Some(dropped.cause.to_string()));
                        let several = self.path.forward.links() > 1;
                        if let Some(event) = self.observed.trace.events.last_mut().filter(|_| several) {
                            event.link = Some(dropped.link + 1);
                        }
                    }
                }
                Err(_) => {}
            }
        }
    }

    fn event(&mut self, at: Instant, what: &'static str, why: Option<String>) {
        let time_s = at.since(Instant::ZERO).as_secs_f64();
        self.observed.trace.events.push(EventRow { time_s, flow: 0, what: what.into(), why, link: None });
    }

    /// Sets the time of capacity once the data in flight fills the path, by the definition of the simulator.
    fn judge_capacity(&mut self) {
        let Some(handle) = &self.handle else { return };
        let rtt = self.path.rtt_at(self.now);
        let host = handle.lock();
        if on_wire(&host, host.inflight()) >= self.path.bytes_per_rtt(self.now, rtt) {
            drop(host);
            (self.observed.capacity, self.observed.capacity_rtt) = (Some(self.now), rtt);
        }
    }

    /// Forgets that time if the delay of the path has risen since, so that the most that was in flight does not
    /// fill it at the exit.
    fn rejudge_capacity(&mut self, exit: Instant) {
        let Some(handle) = &self.handle else { return };
        let rtt = self.path.rtt_at(exit);
        let host = handle.lock();
        let most = on_wire(&host, host.counters.peak_inflight);
        if rtt > self.observed.capacity_rtt && most < self.path.bytes_per_rtt(exit, rtt) {
            drop(host);
            self.observed.capacity = None;
        }
    }

    /// Notes the end of the startup, once.
    fn note_exit(&mut self) {
        let Some(exit) = self.handle.as_ref().and_then(|h| h.lock().exit) else { return };
        if std::mem::replace(&mut self.observed.exited, true) {
            return;
        }
        self.rejudge_capacity(exit.detected_at);
        if self.sampling != Sampling::Off {
            self.event(exit.at, "exit", Some(exit.why.name().to_string()));
        }
        if let Some(logs) = &self.logs {
            logs.note_exit(&exit);
        }
    }

    fn sample(&mut self) {
        let due = match self.sampling {
            Sampling::Off => return,
            Sampling::EachAck => true,
            Sampling::Every(_) => self.now >= self.observed.sample_at,
        };
        let Some(handle) = self.handle.clone() else { return };
        let host = handle.lock();
        if !due {
            return;
        }
        if let Sampling::Every(interval) = self.sampling {
            self.observed.sample_at = self.now + interval;
        }
        let mut gauges = BTreeMap::new();
        if self.internals {
            host.control().internal_values(&mut |k, v| {
                gauges.insert(k.into(), v);
            });
        }
        let state = *host.state();
        let queue_bytes = self.path.forward.backlog(self.now).0;
        self.observed.trace.samples.push(Sample {
            time_s: self.now.since(Instant::ZERO).as_secs_f64(),
            flow: 0,
            cwnd_bytes: host.window().0,
            ssthresh_bytes: state.ssthresh.map(|t| t.0),
            inflight_bytes: host.inflight().0,
            rtt_s: host.latest_rtt().map(Span::as_secs_f64),
            delivered_bytes: self.observed.received,
            queue_bytes: Some(queue_bytes),
            pacing_bps: host.pacing_rate().map(|r| r.0),
            phase: Some(host.control().phase().into()),
            limited_by: None,
            gauges,
        });
    }

    /// Runs until the client has everything, an end closes the connection, or `until`.
    fn run(&mut self, until: Instant) -> Result<(), QuicError> {
        match self.play(until) {
            Err(QuicError::Closed(why)) => {
                self.closed = Some(why);
                Ok(())
            }
            other => other,
        }
    }

    fn play(&mut self, until: Instant) -> Result<(), QuicError> {
        loop {
            self.observed.steps += 1;
            for i in [CLIENT, SERVER] {
                self.receive(i)?;
                let now = self.std_now();
                if self.stack.timeout(i).is_some_and(|t| t <= now) {
                    self.stack.on_timeout(i, now);
                }
                self.applications(i)?;
                self.transmit(i);
            }
            if !self.observed.exited {
                self.note_exit();
            }
            self.sample();
            if self.observed.completed.is_some() {
                return Ok(());
            }
            for i in [CLIENT, SERVER] {
                let (at, mut left) = (self.now, Vec::new());
                let (direction, held) = self.leaving(i);
                held.serve(direction, at, &mut left);
                self.on_departures(i, &mut left);
            }
            let mut next = None::<Instant>;
            let mut consider = |t: Instant| next = Some(next.map_or(t, |n| n.min(t)));
            [self.path.forward.next(), self.path.back.next(), self.script.due()]
                .into_iter()
                .flatten()
                .for_each(&mut consider);
            for i in [CLIENT, SERVER] {
                if let Some((at, ..)) = self.arriving[i].front() {
                    consider(*at);
                }
                if let Some(t) = self.stack.timeout(i) {
                    consider(self.since_origin(t));
                }
            }
            let wake = self.handle.as_ref().and_then(|h| h.lock().wake());
            if let Some(at) = wake {
                consider(at);
            }
            let Some(next) = next.filter(|t| *t <= until) else {
                self.now = until;
                return Ok(());
            };
            // Timers of the stack are rounded up by less than a nanosecond; time never stands still.
            self.now = next.max(self.now);
            if wake.is_some_and(|at| at <= self.now)
                && let Some(handle) = &self.handle
            {
                handle.lock().on_timer(self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
