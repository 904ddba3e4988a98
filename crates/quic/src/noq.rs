//! [`Host`] as a congestion controller of `noq-proto` 1.4, n0's fork of quinn.
//!
//! noq supplies packet numbers, losses, spurious losses, and whether the window limits the sender, and its pacer follows
//! the rate that a controller reports. It has no timer for a controller, so [`Host::on_timer`] runs with the next event
//! unless the program calls it (see [`Handle`]).

use crate::host::{Host, INITIAL_PACKETS};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use slowstart::avoidance::AnyAvoidance;
use slowstart::control::Controller as _;
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::{Bytes, Instant};
use slowstart::view::PathMemory;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as StdInstant;

/// The host of a connection, shared by the stack and the program.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Mutex<Host<AnyController>>>);

impl Handle {
    /// The host. Do not keep the guard over a call into the stack.
    pub fn lock(&self) -> MutexGuard<'_, Host<AnyController>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a controller for each connection of an endpoint: give it to
/// [`TransportConfig::congestion_controller_factory`](noq_proto::TransportConfig::congestion_controller_factory).
#[derive(Debug)]
pub struct Factory {
    algorithm: Algorithm,
    avoidance: AnyAvoidance,
    seed: u64,
    remembered: Option<PathMemory>,
    made: Mutex<Option<Handle>>,
}

impl Factory {
    /// Connections with this startup and what follows it; random choices follow from the seed.
    pub fn new(algorithm: Algorithm, avoidance: AnyAvoidance, seed: u64) -> Self {
        Self { algorithm, avoidance, seed, remembered: None, made: Mutex::new(None) }
    }

    /// Gives its connections what an earlier one to the same peer left.
    #[must_use]
    pub fn remembering(mut self, memory: Option<PathMemory>) -> Self {
        self.remembered = memory;
        self
    }

    /// The host of the newest connection.
    pub fn newest(&self) -> Option<Handle> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: StdInstant, mtu: u16) -> Box<dyn Controller> {
        let mss = Bytes(u64::from(mtu));
        let control = self.algorithm.controller(&self.avoidance, mss * INITIAL_PACKETS, self.seed);
        let mut host = Host::new(control, Instant::ZERO, mss);
        host.remembered = self.remembered;
        let handle = Handle(Arc::new(Mutex::new(host)));
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.clone());
        Box::new(Noq { handle, origin: now })
    }
}

/// A connection's controller.
#[derive(Debug)]
struct Noq {
    handle: Handle,
    /// What the host counts time from.
    origin: StdInstant,
}

impl Noq {
    fn at(&self, t: StdInstant) -> Instant {
        let since = t.saturating_duration_since(self.origin);
        Instant(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Controller for Noq {
    fn on_packet_sent(&mut self, now: StdInstant, bytes: u16, pn: u64) {
        self.handle.lock().on_packet_sent(self.at(now), Bytes(bytes.into()), pn);
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
        self.handle.lock().on_packet_acked(self.at(now), self.at(sent), pn, app_limited);
    }

    fn on_end_acks(&mut self, now: StdInstant, in_flight: u64, _app_limited: bool, largest: Option<u64>) {
        let mut host = self.handle.lock();
        host.set_inflight(Bytes(in_flight));
        host.on_ack_end(self.at(now), largest);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: StdInstant) {
        self.handle.lock().on_packet_lost(self.at(now), pn);
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
            self.at(now),
            self.at(sent),
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

    /// A new path of the connection begins with a copy, which the program no longer sees.
    fn clone_box(&self) -> Box<dyn Controller> {
        let host = self.handle.lock().clone();
        Box::new(Self { handle: Handle(Arc::new(Mutex::new(host))), origin: self.origin })
    }

    fn initial_window(&self) -> u64 {
        self.handle.lock().initial_window().0
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
