//! A download over a path of the simulator, between two whole QUIC stacks at virtual time.
//!
//! Both ends are `noq-proto` without sockets: real TLS 1.3, encryption, frames, ACK ranges, loss detection and pacing.
//! Only the clock and the path are ours. MTU discovery and segmentation offload are off and flow control has no effect
//! below a gibibyte, so that congestion control is what is measured. The same study gives the same rows on any machine:
//! keys differ from run to run, but no size and no time depends on them.

use crate::host::Host;
use crate::noq::{Factory, Handle};
use bytes::{Bytes as Buffer, BytesMut};
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, FourTuple,
    ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use slowstart::control::Controller as _;
use slowstart::registry::AnyController;
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart_lab::engine::{MILESTONES, Sampling};
use slowstart_lab::path::queue::Departure;
use slowstart_lab::path::{Direction, Ecn, Held, Kind, PacketInfo, Path};
use slowstart_lab::record::{Cost, EventRow, ExitRow, Row, SCHEMA, Sample, Trace};
use slowstart_lab::run::{Job, Outcome};
use slowstart_lab::scenario::{Contender, Study};
use slowstart_lab::{app, eval, random};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant as StdInstant};
use thiserror::Error;

/// The stack and its version, as rows name it.
pub const STACK: &str = "noq-proto 1.4.0";
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
/// Flow-control limits: beyond any window here.
const UNLIMITED: u32 = 1 << 30;
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
}

fn stack(e: impl std::fmt::Display) -> QuicError {
    QuicError::Stack(e.to_string())
}

/// Checks what this engine cannot do: other flows, applications other than bulk, and the startups of [`NOT_CARRIED`].
pub fn check(study: &Study) -> Result<(), QuicError> {
    let unsupported = |key, why: &str| Err(QuicError::Unsupported { key, why: why.to_string() });
    if !study.against.is_empty() {
        return unsupported("against", "the engine quic runs one connection at a time");
    }
    if study.path.proxy().is_some() {
        return unsupported("path", "a proxy cannot split a QUIC connection: name the path without it");
    }
    if !matches!(study.app, app::Kind::Bulk { .. }) {
        return unsupported("app", "the engine quic has bulk downloads only");
    }
    for c in &study.contenders {
        if let Some((name, why)) = NOT_CARRIED.iter().find(|(n, _)| *n == c.startup_name) {
            return unsupported("startup", &format!("{name} cannot run over QUIC: it needs {why}"));
        }
    }
    Ok(())
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

/// One end.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    /// Packets under way to it, in order of arrival.
    arriving: VecDeque<(Instant, BytesMut)>,
    stream: Option<StreamId>,
}

impl End {
    fn new(last: u8, seed: u64, server: Option<ServerConfig>) -> Self {
        let mut config = EndpointConfig::default();
        let mut bytes = [last; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        config.rng_seed(Some(bytes));
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), false),
            connection: None,
            address: SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), 443)),
            arriving: VecDeque::new(),
            stream: None,
        }
    }
}

/// What is measured beside the host's own counters.
#[derive(Default)]
struct Measured {
    received: u64,
    milestones: [Option<Instant>; MILESTONES.len()],
    completed: Option<Instant>,
    capacity: Option<Instant>,
    first_drop: Option<Instant>,
    /// Times of drops of data packets.
    drops: Vec<Instant>,
    peak_queue_delay: Span,
    data_packets: u64,
    steps: u64,
    /// When the next sample is due.
    sample_at: Instant,
    exited: bool,
    trace: Trace,
}

/// A transfer under way.
struct Transfer {
    ends: [End; 2],
    path: Path,
    /// Datagrams in the queue disciplines of what each end sends into.
    held: [Held<(Kind, BytesMut)>; 2],
    now: Instant,
    origin: StdInstant,
    size: Option<u64>,
    /// Bytes the server's application has not written yet.
    unwritten: u64,
    handle: Option<Handle>,
    factory: Arc<Factory>,
    sampling: Sampling,
    internals: bool,
    measured: Measured,
}

fn transport(factory: Option<Arc<Factory>>) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if let Some(factory) = factory {
        config.congestion_controller_factory(factory);
    }
    config
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .max_idle_timeout(None)
        .send_window(u64::from(UNLIMITED))
        .stream_receive_window(VarInt::from_u32(UNLIMITED))
        .receive_window(VarInt::from_u32(UNLIMITED));
    Arc::new(config)
}

impl Transfer {
    fn new(
        study: &Study,
        contender: &Contender,
        seed: u64,
        remembered: Option<slowstart::view::PathMemory>,
    ) -> Result<Self, QuicError> {
        let (cert, key) = certificate()?;
        let factory = Arc::new(
            Factory::new(contender.startup.clone(), contender.avoidance.clone(), seed)
                .remembering(remembered),
        );
        let mut server =
            ServerConfig::with_single_cert(vec![cert.clone()], key.clone_key()).map_err(stack)?;
        server.transport_config(transport(Some(factory.clone())));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(cert.clone()).map_err(stack)?;
        let mut client = noq_proto::ClientConfig::with_root_certificates(Arc::new(roots)).map_err(stack)?;
        client.transport_config(transport(None));
        #[allow(
            clippy::disallowed_methods,
            reason = "an origin for the stack's clock: only differences count"
        )]
        let origin = StdInstant::now();
        let mut ends = [End::new(1, seed, None), End::new(2, seed, Some(server))];
        let to = ends[SERVER].address;
        ends[CLIENT].connection =
            Some(ends[CLIENT].endpoint.connect(origin, client, to, "localhost").map_err(stack)?);
        Ok(Self {
            ends,
            path: study.path.build(seed),
            held: [Held::default(), Held::default()],
            now: Instant::ZERO,
            origin,
            size: study.size,
            unwritten: study.size.unwrap_or(u64::MAX),
            handle: None,
            factory,
            sampling: Sampling::Off,
            internals: false,
            measured: Measured::default(),
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
        let from = self.ends[1 - i].address;
        let end = &mut self.ends[i];
        while end.arriving.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, datagram)) = end.arriving.pop_front() else { break };
            let mut answer = Vec::new();
            match end.endpoint.handle(now, FourTuple::new(from, None), None, datagram, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut end.connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = end.endpoint.accept(incoming, now, &mut answer, None);
                    end.connection = Some(accepted.map_err(|e| stack(format!("{:?}", e.cause)))?);
                    self.handle = self.factory.newest();
                    if let (Some(handle), Some(size)) = (&self.handle, self.size) {
                        handle.lock().unsent = Some(Bytes(size));
                    }
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
        Ok(())
    }

    /// The applications: the server writes, the client reads.
    fn applications(&mut self, i: usize) -> Result<(), QuicError> {
        let end = &mut self.ends[i];
        let Some((handle, connection)) = &mut end.connection else { return Ok(()) };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if i == SERVER => end.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { dir }) if i == CLIENT => {
                    end.stream = connection.streams().accept(dir).or(end.stream);
                }
                Event::ConnectionLost { reason, .. } => return Err(stack(reason)),
                _ => {}
            }
        }
        if let (SERVER, Some(stream)) = (i, end.stream) {
            while self.unwritten > 0 {
                let most = self.unwritten.min(ZEROS.len() as u64) as usize;
                let mut chunks = [Buffer::from_static(&ZEROS[..most])];
                match connection.send_stream(stream).write_chunks(&mut chunks.as_mut_slice()) {
                    Ok(written) => self.unwritten -= written as u64,
                    Err(_) => break,
                }
            }
        }
        if let (CLIENT, Some(stream)) = (i, end.stream) {
            let mut received = 0;
            if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len() as u64;
                }
                let _ = chunks.finalize();
            }
            if received > 0 {
                let m = &mut self.measured;
                m.received += received;
                for (at, bytes) in m.milestones.iter_mut().zip(MILESTONES) {
                    if m.received >= bytes {
                        at.get_or_insert(self.now);
                    }
                }
                if self.size.is_some_and(|size| m.received >= size) {
                    m.completed.get_or_insert(self.now);
                }
            }
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = end.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        Ok(())
    }

    /// Sends what the stack and its pacer allow.
    fn transmit(&mut self, i: usize) {
        let now = self.std_now();
        let mut buffer = Vec::with_capacity(2048);
        loop {
            let Some((_, connection)) = &mut self.ends[i].connection else { return };
            buffer.clear();
            let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) else {
                return;
            };
            let bytes = transmit.size as u64 + HEADERS;
            // What the scripts and ACK filters of a path would take it for; its content is encrypted.
            let kind = if bytes > 300 { Kind::Data } else { Kind::Ack };
            let info = PacketInfo { bytes: bytes as u32, flow: 0, kind, ecn: Ecn::NotEct };
            if i == SERVER {
                self.measured.data_packets += u64::from(kind == Kind::Data);
                // A queue discipline tells each packet's wait when it leaves.
                if !self.path.forward.has_discipline() {
                    let m = &mut self.measured;
                    m.peak_queue_delay = m.peak_queue_delay.max(self.path.forward.queue_delay(self.now));
                }
            }
            let datagram = BytesMut::from(&buffer[..transmit.size]);
            let mut left = Vec::new();
            let at = self.now;
            let (direction, held) = self.leaving(i);
            held.send(direction, at, &info, (kind, datagram), &mut left);
            self.on_departures(i, left);
            if i == SERVER && self.measured.capacity.is_none() {
                self.judge_capacity();
            }
        }
    }

    /// The direction that an end sends into, and what its queue holds.
    fn leaving(&mut self, i: usize) -> (&mut Direction, &mut Held<(Kind, BytesMut)>) {
        let direction = if i == SERVER { &mut self.path.forward } else { &mut self.path.back };
        (direction, &mut self.held[i])
    }

    /// Takes what left the queue of what an end sends into.
    fn on_departures(&mut self, i: usize, left: Vec<((Kind, BytesMut), Departure)>) {
        for ((kind, datagram), d) in left {
            let is_data = i == SERVER && kind == Kind::Data;
            if is_data {
                self.measured.peak_queue_delay = self.measured.peak_queue_delay.max(d.waited);
            }
            match d.outcome {
                Ok(at) => {
                    let arriving = &mut self.ends[1 - i].arriving;
                    // Mostly the last to arrive, or near it.
                    let later = arriving.iter().rev().take_while(|(other, _)| *other > at).count();
                    let direction = if i == SERVER { &mut self.path.forward } else { &mut self.path.back };
                    for _ in 0..=u32::from(direction.draws_copy()) {
                        arriving.insert(arriving.len() - later, (at, datagram.clone()));
                    }
                }
                Err(dropped) if is_data => {
                    self.measured.drops.push(self.now);
                    self.measured.first_drop.get_or_insert(dropped.at);
                    if self.sampling != Sampling::Off {
                        self.event(dropped.at, "drop", Some(dropped.cause.to_string()));
                    }
                }
                Err(_) => {}
            }
        }
    }

    fn event(&mut self, at: Instant, what: &'static str, why: Option<String>) {
        let time_s = at.since(Instant::ZERO).as_secs_f64();
        self.measured.trace.events.push(EventRow { time_s, flow: 0, what, why });
    }

    /// Sets the time of capacity once the data in flight fills the path, by the definition of the simulator.
    fn judge_capacity(&mut self) {
        let Some(handle) = &self.handle else { return };
        let host = handle.lock();
        let mss = host.initial_window().0 / crate::host::INITIAL_PACKETS;
        let wire = host.inflight().scale(mss + HEADERS, mss);
        if wire >= self.path.bytes_per_rtt(self.now, self.path.facts.base_rtt) {
            drop(host);
            self.measured.capacity = Some(self.now);
        }
    }

    fn sample(&mut self) {
        let due = match self.sampling {
            Sampling::Off => return,
            Sampling::EachAck => true,
            Sampling::Every(_) => self.now >= self.measured.sample_at,
        };
        let Some(handle) = self.handle.clone() else { return };
        let host = handle.lock();
        if let (Some(exit), false) = (host.exit, self.measured.exited) {
            self.measured.exited = true;
            self.event(exit.at, "exit", Some(exit.why.name().to_string()));
        }
        if !due {
            return;
        }
        if let Sampling::Every(interval) = self.sampling {
            self.measured.sample_at = self.now + interval;
        }
        let mut gauges = BTreeMap::new();
        if self.internals {
            host.control().internal_values(&mut |k, v| {
                gauges.insert(k, v);
            });
        }
        let state = *host.state();
        let queue_bytes = self.path.forward.backlog(self.now).0;
        self.measured.trace.samples.push(Sample {
            time_s: self.now.since(Instant::ZERO).as_secs_f64(),
            flow: 0,
            cwnd_bytes: host.window().0,
            ssthresh_bytes: state.ssthresh.map(|t| t.0),
            inflight_bytes: host.inflight().0,
            rtt_s: host.latest_rtt().map(Span::as_secs_f64),
            delivered_bytes: self.measured.received,
            queue_bytes,
            pacing_bps: host.pacing_rate().map(|r| r.0),
            phase: host.control().phase(),
            gauges,
        });
    }

    /// Runs until the client has everything or `until`.
    fn run(&mut self, until: Instant) -> Result<(), QuicError> {
        loop {
            self.measured.steps += 1;
            for i in [CLIENT, SERVER] {
                self.receive(i)?;
                let now = self.std_now();
                if let Some((_, connection)) = &mut self.ends[i].connection
                    && connection.poll_timeout().is_some_and(|t| t <= now)
                {
                    connection.handle_timeout(now);
                }
                self.applications(i)?;
                self.transmit(i);
            }
            self.sample();
            if self.measured.completed.is_some() {
                return Ok(());
            }
            for i in [CLIENT, SERVER] {
                let (at, mut left) = (self.now, Vec::new());
                let (direction, held) = self.leaving(i);
                held.serve(direction, at, &mut left);
                self.on_departures(i, left);
            }
            let mut next = None::<Instant>;
            let mut consider = |t: Instant| next = Some(next.map_or(t, |n| n.min(t)));
            for end in &mut self.ends {
                if let Some((at, _)) = end.arriving.front() {
                    consider(*at);
                }
            }
            [self.path.forward.next(), self.path.back.next()].into_iter().flatten().for_each(&mut consider);
            for i in [CLIENT, SERVER] {
                let due = self.ends[i].connection.as_mut().and_then(|(_, c)| c.poll_timeout());
                if let Some(t) = due {
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

/// What an earlier connection leaves, for startups that use it: the same transfer, with another seed.
fn memory(
    study: &Study,
    contender: &Contender,
    seed: u64,
) -> Result<Option<slowstart::view::PathMemory>, QuicError> {
    if !study.remember || !contender.startup.uses_path_memory() {
        return Ok(None);
    }
    let before = random::at(seed, u64::MAX) >> 11;
    let mut transfer = Transfer::new(study, contender, before, None)?;
    transfer.run(Instant::ZERO + study.duration)?;
    Ok(transfer.handle.and_then(|h| h.lock().memory()))
}

/// Runs one job of a study that [`check`] accepts. `internals` records the startup's internal values with each sample.
pub fn run(study: &Study, job: Job, sampling: Sampling, internals: bool) -> Result<Outcome, QuicError> {
    let contender = &study.contenders[job.contender];
    let seed = study.run_seed(job.run);
    let mut transfer = Transfer::new(study, contender, seed, memory(study, contender, seed)?)?;
    (transfer.sampling, transfer.internals) = (sampling, internals);
    transfer.run(Instant::ZERO + study.duration)?;
    let Transfer { path, now, measured: m, handle, .. } = transfer;
    let handle = handle.ok_or_else(|| stack("the client's first packet never arrived"))?;
    let host = handle.lock();
    let row = row(study, contender, job, seed, &path, now, &m, &host);
    drop(host);
    Ok(Outcome { job, row, trace: m.trace })
}

#[allow(clippy::too_many_arguments, reason = "one call, which takes a finished transfer apart")]
fn row(
    study: &Study,
    contender: &Contender,
    job: Job,
    seed: u64,
    path: &Path,
    ended: Instant,
    m: &Measured,
    host: &Host<AnyController>,
) -> Row {
    let since = |at: Instant| at.since(Instant::ZERO).as_secs_f64();
    let facts = path.facts;
    let iw = host.initial_window().0;
    let mss = iw / crate::host::INITIAL_PACKETS;
    let exit_at = host.exit.map_or(Instant(u64::MAX), |e| e.at);
    let mut caveats = Vec::new();
    if study.size.is_some() && m.completed.is_none() {
        caveats.push("the transfer did not complete within the time given".to_string());
    }
    if host.exit.is_none() && m.completed.is_some() {
        caveats.push("the transfer ended before the startup did".to_string());
    }
    let end = m.completed.unwrap_or(ended);
    Row {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_string(),
        engine: "quic".to_string(),
        path: study.path.name.clone(),
        drawn: path.drawn.clone(),
        profile: STACK.to_string(),
        startup: contender.startup_name.clone(),
        params: contender.params.clone(),
        avoidance: contender.avoidance_name.clone(),
        flow: 0,
        run: job.run,
        seed,
        iw_bytes: iw,
        size_bytes: study.size,
        duration_s: since(ended),
        rate_bps: facts.rate.0,
        base_rtt_s: facts.base_rtt.as_secs_f64(),
        bdp_bytes: facts.rate.over(facts.base_rtt).scale(mss, mss + HEADERS).0,
        buffer_bytes: facts.buffer.map(|b| b.0),
        exit: host.exit.map(|e| ExitRow {
            reason: e.why.name().to_string(),
            time_s: since(e.detected_at),
            left_s: since(e.at),
            detected_cwnd_bytes: e.detected_cwnd.0,
            cwnd_bytes: e.exit_cwnd.0,
            inflight_bytes: e.inflight.0,
        }),
        class: eval::class(host.exit.as_ref().map(Into::into), m.capacity, host.first_loss),
        class_by_heuristic: None,
        capacity_time_s: m.capacity.map(since),
        capacity_time_by_heuristic_s: None,
        first_drop_time_s: m.first_drop.map(since),
        first_loss_time_s: host.first_loss.map(since),
        marks: None,
        peak_inflight_bytes: host.counters.peak_inflight.0,
        peak_queue_delay_s: m.peak_queue_delay.as_secs_f64(),
        startup_lost_packets: m.drops.iter().filter(|at| **at < exit_at).count() as u64,
        lost_packets: m.drops.len() as u64,
        retransmitted_packets: host.counters.lost_packets,
        timeouts: host.counters.persistent,
        goodput_bps: Rate::new(Bytes(m.received), end.since(Instant::ZERO)).map_or(0, |r| r.0),
        completion_s: m.completed.map(since),
        time_to_bytes_s: MILESTONES
            .iter()
            .zip(m.milestones)
            .map(|(b, at)| (b.to_string(), at.map(since)))
            .collect(),
        others: None,
        cost: Cost { packets: m.data_packets, events: m.steps },
        caveats,
    }
}
