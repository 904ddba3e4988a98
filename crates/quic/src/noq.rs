//! [`Host`](crate::host::Host) as a congestion controller of `noq-proto` 1.4, n0's fork of quinn.
//!
//! noq supplies packet numbers, losses, spurious losses, and whether the window limits the sender, and its
//! pacer follows the rate that a controller reports. It has no timer for a controller, so
//! [`Host::on_timer`](crate::host::Host::on_timer) runs with the next event unless the program calls it (see
//! [`Factory::newest`]).

use crate::factory::{Clock, Factory, Handle};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use slowstart::control::Controller as _;
use slowstart::units::Bytes;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant as StdInstant;

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: StdInstant, mtu: u16) -> Box<dyn Controller> {
        let (handle, clock) = self.make(now, mtu, true);
        Box::new(Noq { handle, clock })
    }
}

/// A connection's controller.
#[derive(Debug)]
struct Noq {
    handle: Handle,
    clock: Clock,
}

impl Controller for Noq {
    fn on_packet_sent(&mut self, now: StdInstant, bytes: u16, pn: u64) {
        self.handle.lock().on_packet_sent(self.clock.at(now), Bytes(bytes.into()), pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.handle.lock().on_cwnd_limited();
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
        self.handle.lock().on_packet_acked(self.clock.at(now), self.clock.at(sent), pn, app_limited);
    }

    fn on_end_acks(&mut self, now: StdInstant, in_flight: u64, _app_limited: bool, largest: Option<u64>) {
        let mut host = self.handle.lock();
        host.set_inflight(Bytes(in_flight));
        host.on_ack_end(self.clock.at(now), largest);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: StdInstant) {
        self.handle.lock().on_packet_lost(self.clock.at(now), pn);
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
        self.handle.lock().on_congestion(
            self.clock.at(now),
            self.clock.at(sent),
            is_persistent_congestion,
            is_ecn,
            Bytes(lost_bytes),
        );
    }

    fn on_spurious_congestion_event(&mut self) {
        self.handle.lock().on_spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.handle.lock().on_mtu(Bytes(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        self.handle.lock().window().0
    }

    fn metrics(&self) -> ControllerMetrics {
        let host = self.handle.lock();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = host.window().0;
        metrics.ssthresh = host.control().state().ssthresh.map(|t| t.0);
        metrics.pacing_rate = host.pacing_rate().map(|r| (r.0 / 8).max(1));
        metrics
    }

    /// The stack calls this if the peer's port alone has changed. The new path takes over the host, so that a
    /// program with its handle goes on to see the connection. A path to another address has a controller that
    /// the factory makes.
    fn clone_box(&self) -> Box<dyn Controller> {
        self.handle.lock().on_new_path();
        Box::new(Self { handle: self.handle.clone(), clock: self.clock })
    }

    fn initial_window(&self) -> u64 {
        self.handle.lock().initial_window().0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
