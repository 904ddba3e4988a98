//! A proxy that splits connections (a satellite's performance enhancing proxy, RFC 3135 §2.1): the server's
//! connection ends at the proxy, which has one of its own to the client, with a bounded buffer between.
//!
//! Each leg is an engine of its own. Data that arrives at the proxy is written to the connection to the
//! client at that time; data that the client acknowledges is removed from the buffer. The free space of the
//! buffer is the receive window offered to the server.

use super::{Direction, End, Engine, FlowId, FlowSpec, Sampling};
use crate::app::Kind as AppKind;
use crate::path::{Path, ProxySpec};
use crate::random;
use crate::tcp::endpoint::State;
use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::registry;
use slowstart::units::{Bytes, Instant};

/// The flow of each leg.
const FLOW: FlowId = FlowId(0);
/// A transfer without end.
const ENDLESS: u64 = u64::MAX >> 2;

/// A download through a proxy.
#[derive(Clone, Debug)]
pub struct Proxied {
    /// From the proxy to the client.
    client: Engine,
    /// From the server to the proxy; `None` until the client's SYN reaches the proxy.
    server: Option<Engine>,
    /// The arguments of the server's connection, until it begins.
    begin: Option<Begin>,
    buffer: Bytes,
    /// Bytes written to the client's connection so far.
    forwarded: u64,
}

/// The server's connection before it begins.
#[derive(Clone, Debug)]
struct Begin {
    path: Path,
    spec: FlowSpec,
    seed: u64,
    sampling: Sampling,
    gauges: bool,
    captures: bool,
}

impl Proxied {
    /// A download that is to begin at [`FlowSpec::start`], when its client connects: `spec` is the server's,
    /// and `path` lies between the proxy and the client. All random numbers follow from `seed`. Packets are
    /// captured at the ends of the server's leg if `captures`.
    pub fn new(
        proxy: &ProxySpec,
        path: Path,
        spec: FlowSpec,
        seed: u64,
        (sampling, gauges): (Sampling, bool),
        captures: bool,
    ) -> Self {
        let size = match spec.app {
            AppKind::Bulk { size } => size.unwrap_or(ENDLESS),
            _ => ENDLESS,
        };
        let to_client = FlowSpec {
            app: AppKind::External { size },
            direction: Direction::Download,
            recorded: false,
            remembered: None,
            impact_from: None,
            startup: registry::named(proxy.startup).expect("checked when the path was read").algorithm,
            avoidance: linux_avoidance(),
            ..spec.clone()
        };
        let server_seed = random::at(seed, 1) >> 11;
        Self {
            client: Engine::new(path, vec![to_client], seed, Sampling::Off, false),
            server: None,
            begin: Some(Begin {
                path: proxy.leg.build(server_seed),
                spec,
                seed: server_seed,
                sampling,
                gauges,
                captures,
            }),
            buffer: proxy.buffer,
            forwarded: 0,
        }
    }

    /// Runs until the client has everything, or until `end`. Returns the engine of the server's leg, in which
    /// the times of the flow are those of the client: its start, milestones, and completion.
    pub fn complete(mut self, end: Instant) -> Engine {
        loop {
            let server = self.server.as_ref().map_or(Instant::NEVER, |e| e.net.first());
            let now = self.client.net.first().min(server);
            if now > end || now == Instant::NEVER {
                break;
            }
            self.client.step_to(now);
            if let Some(server) = &mut self.server {
                server.step_to(now);
            } else if self.client.flows[0].ends[End::Server].state() != State::Listen {
                self.begin_server(now);
            }
            self.forward(now);
            if self.client.flows[0].truth.completed.is_some() {
                break;
            }
        }
        self.finish(end)
    }

    /// The client's SYN has come: the proxy connects to the server.
    fn begin_server(&mut self, now: Instant) {
        let Some(b) = self.begin.take() else { return };
        let spec = FlowSpec { start: now, ..b.spec };
        let mut server = Engine::new(b.path, vec![spec], b.seed, b.sampling, b.gauges);
        if b.captures {
            server.start_capture();
        }
        server.limit_window(FLOW, self.buffer.0);
        self.server = Some(server);
    }

    /// Writes the data that has arrived at the proxy to the client's connection, and offers the free space to
    /// the server.
    fn forward(&mut self, now: Instant) {
        let Some(server) = &mut self.server else { return };
        let arrived = server.flows[0].delivered();
        if arrived > self.forwarded {
            self.client.step_to(now);
            self.client.write(FLOW, arrived - self.forwarded);
            self.forwarded = arrived;
        }
        let acknowledged = self.client.flows[0].ends[End::Server].tx.board().una() - 1;
        server.limit_window(FLOW, acknowledged + self.buffer.0);
    }

    fn finish(mut self, end: Instant) -> Engine {
        // If no SYN reached the proxy, the server's connection does not begin.
        self.begin_server(end);
        let mut server = self.server.take().expect("begun now at the latest");
        let client = &self.client.flows[0];
        server.step_to(client.truth.completed.unwrap_or(end));
        server.sort_events();
        let flow = &mut server.flows[0];
        flow.spec.start = client.spec.start;
        flow.truth.completed = client.truth.completed;
        flow.truth.milestones = client.truth.milestones;
        flow.truth.proxy_handshake_failed = client.handshake_failed();
        server
    }
}

/// The avoidance of the proxy's connection: Linux's default.
fn linux_avoidance() -> AnyAvoidance {
    (avoidance::REGISTRY[0].make)()
}
