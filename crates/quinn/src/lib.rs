//! [`Host`] as a congestion controller of `quinn-proto` 0.11.
//!
//! What quinn tells its controller is less than what noq tells: no packet numbers with an acknowledgement, no
//! spurious losses, the lost bytes but not the packets, and no limit by the window. Its pacer sends at 1.25
//! windows a smoothed round trip whatever a controller asks, so
//! [`Facts::supports_pacing`](slowstart::view::Facts::supports_pacing) is false: a startup that paces a jump
//! is standard slow start here.
//!
//! Connections with SEARCH in place of the stack's own slow start:
//!
//! ```
//! use slowstart_quinn::Quinn;
//! use slowstart_quic::factory::Factory;
//! use std::sync::Arc;
//!
//! let search = Factory::named("search").expect("a startup");
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(Quinn::new(Arc::new(search))));
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use slowstart::control::Controller as _;
use slowstart::units::Bytes;
use slowstart_quic::factory::{Clock, Factory, Owner};
use slowstart_quic::host::Host;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant as StdInstant;

/// The factory of controllers of an endpoint: what `congestion_controller_factory` takes.
#[derive(Clone, Debug)]
pub struct Quinn(Arc<Factory>);

impl Quinn {
    /// An endpoint whose controllers `factory` makes.
    pub fn new(factory: Arc<Factory>) -> Self {
        Self(factory)
    }
}

impl ControllerFactory for Quinn {
    fn build(self: Arc<Self>, now: StdInstant, mtu: u16) -> Box<dyn Controller> {
        let (host, clock) = self.0.make(now, mtu, false);
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
    fn on_sent(&mut self, now: StdInstant, bytes: u64, last_packet_number: u64) {
        self.host.with(|h| h.on_packet_sent(self.clock.at(now), Bytes(bytes), last_packet_number));
    }

    fn on_ack(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        bytes: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        let (now, sent) = (self.clock.at(now), self.clock.at(sent));
        self.host.with(|h| h.on_bytes_acked(now, sent, Bytes(bytes), app_limited));
    }

    fn on_end_acks(&mut self, now: StdInstant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        self.host.with(|h| {
            h.set_inflight(Bytes(in_flight));
            h.on_bytes_ack_end(self.clock.at(now));
        });
    }

    fn on_congestion_event(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.clock.at(now), self.clock.at(sent));
        self.host.with(|h| h.on_bytes_lost(now, sent, is_persistent_congestion, Bytes(lost_bytes)));
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
            metrics.pacing_rate = h.pacing_rate().map(|r| r.0);
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
