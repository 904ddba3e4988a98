//! [`Host`] as a congestion controller of `noq-proto` 1.4, n0's fork of quinn.
//!
//! noq supplies packet numbers, losses, spurious losses, and whether the window limits the sender, and its
//! pacer follows the rate that a controller reports. It has no timer for a controller, so
//! [`Host::on_timer`](slowstart_quic::host::Host::on_timer) runs with the next event unless the program calls it (see
//! [`Factory::newest`]).
//!
//! Connections with SEARCH in place of the stack's own slow start:
//!
//! ```
//! use slowstart_noq::Noq;
//! use slowstart_quic::factory::Factory;
//! use std::sync::Arc;
//!
//! let search = Factory::named("search").expect("a startup");
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(Noq::new(Arc::new(search))));
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use slowstart::control::Controller as _;
use slowstart::units::Bytes;
use slowstart::view::Signal;
use slowstart_quic::factory::{Clock, Factory, Owner};
use slowstart_quic::host::Host;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant as StdInstant;

/// The factory of controllers of an endpoint: what `congestion_controller_factory` takes.
#[derive(Clone, Debug)]
pub struct Noq(Arc<Factory>);

impl Noq {
    /// An endpoint whose controllers `factory` makes.
    pub fn new(factory: Arc<Factory>) -> Self {
        Self(factory)
    }
}

impl ControllerFactory for Noq {
    fn build(self: Arc<Self>, now: StdInstant, mtu: u16) -> Box<dyn Controller> {
        let (host, clock) = self.0.make(now, mtu, true);
        Box::new(Control { host, clock })
    }
}

/// A connection's controller.
#[derive(Debug)]
struct Control {
    host: Owner,
    clock: Clock,
}

impl Controller for Control {
    fn on_packet_sent(&mut self, now: StdInstant, bytes: u16, pn: u64) {
        self.host.with(|h| h.on_packet_sent(self.clock.at(now), Bytes(bytes.into()), pn));
    }

    fn on_cwnd_limited(&mut self) {
        self.host.with(Host::on_cwnd_limited);
    }

    fn on_ack(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        _bytes: u64,
        pn: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.host.with(|h| h.on_packet_acked(self.clock.at(now), self.clock.at(sent), pn, app_limited));
    }

    fn on_end_acks(&mut self, now: StdInstant, in_flight: u64, _app_limited: bool, largest: Option<u64>) {
        self.host.with(|h| {
            h.set_inflight(Bytes(in_flight));
            h.on_ack_end(self.clock.at(now), largest);
        });
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: StdInstant) {
        self.host.with(|h| h.on_packet_lost(self.clock.at(now), pn));
    }

    fn on_congestion_event(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let signal = match (is_persistent_congestion, is_ecn) {
            (true, _) => Signal::Timeout,
            (_, true) => Signal::Ecn,
            _ => Signal::Loss,
        };
        let (now, sent) = (self.clock.at(now), self.clock.at(sent));
        self.host.with(|h| h.on_congestion(now, sent, signal, Bytes(lost_bytes)));
    }

    fn on_spurious_congestion_event(&mut self) {
        self.host.with(Host::on_spurious);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.host.with(|h| h.on_mtu(Bytes(new_mtu.into())));
    }

    fn window(&self) -> u64 {
        self.host.read(Host::window).0
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        self.host.read(|h| {
            metrics.congestion_window = h.window().0;
            metrics.ssthresh = h.control().state().ssthresh.map(|t| t.0);
            metrics.pacing_rate = h.pacing_rate().map(|r| (r.0 / 8).max(1));
        });
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { host: self.host.for_new_path(), clock: self.clock })
    }

    fn initial_window(&self) -> u64 {
        self.host.read(Host::initial_window).0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
