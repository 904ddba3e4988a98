//! [`Host`] as a congestion controller of `s2n-quic` 1.91, which needs its feature
//! `unstable-congestion-controller`.
//!
//! s2n-quic carries a record with each packet, counts bytes in flight by the controller's word, and waits for
//! the departure time that the controller states. It tells neither packet numbers nor spurious losses, and of
//! an ACK frame the newest packet, the sum of bytes, and how many marked packets the peer has counted since
//! the one before. It has no timer for a controller. Its times are whole microseconds.
//!
//! ```
//! use slowstart_quic::factory::Factory;
//! use slowstart_s2n::S2n;
//! use std::sync::Arc;
//!
//! let search = S2n::new(Arc::new(Factory::named("search").expect("a startup")));
//! // s2n_quic::Server::builder().with_congestion_controller(search)
//! # let _ = search;
//! ```

use s2n_quic_core::event::api::SocketAddress;
use s2n_quic_core::event::builder::SlowStartExitCause;
use s2n_quic_core::random;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint, PathInfo, Publisher};
use s2n_quic_core::time::Timestamp;
use slowstart::step::Exit;
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::{PathMemory, Sent, Signal};
use slowstart_quic::factory::{Factory, Owner};
use slowstart_quic::host::{Host, INITIAL_PACKETS};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What looks up the memory of a peer.
type Recall = Box<dyn FnMut(IpAddr) -> Option<PathMemory> + Send>;

/// Makes the controllers of an endpoint: what `with_congestion_controller` takes.
pub struct S2n {
    factory: Arc<Factory>,
    recall: Option<Recall>,
}

impl S2n {
    /// An endpoint whose controllers `factory` makes.
    pub fn new(factory: Arc<Factory>) -> Self {
        Self { factory, recall: None }
    }

    /// Asks `recall` for what an earlier connection to each peer left, for example
    /// [`Peers::take`](slowstart_quic::peers::Peers::take).
    #[must_use]
    pub fn recalling(mut self, recall: impl FnMut(IpAddr) -> Option<PathMemory> + Send + 'static) -> Self {
        self.recall = Some(Box::new(recall));
        self
    }
}

impl fmt::Debug for S2n {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S2n").field("factory", &self.factory).finish_non_exhaustive()
    }
}

fn ip(address: &SocketAddress<'_>) -> Option<IpAddr> {
    match address {
        SocketAddress::IpV4 { ip, .. } => Some(IpAddr::from(**ip)),
        SocketAddress::IpV6 { ip, .. } => Some(IpAddr::from(**ip)),
        _ => None,
    }
}

impl Endpoint for S2n {
    type CongestionController = Control;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Control {
        let peer = ip(&path.remote_address);
        let recalled = peer.and_then(|p| self.recall.as_mut().and_then(|r| r(p)));
        let mut host = self.factory.make_at(Instant::ZERO, path.max_datagram_size, true);
        host.with(|h| {
            h.marked = Some(Bytes::ZERO);
            h.remembered = recalled.or(h.remembered);
        });
        Control::new(host)
    }
}

/// The largest burst that the pacer lets go at once, in packets: the initial window (RFC 9002 §7.7).
const BURST: u64 = INITIAL_PACKETS;

/// The congestion controller of one connection of s2n-quic.
#[derive(Debug)]
pub struct Control {
    host: Owner,
    /// The time that the host counts from: that of the first event.
    origin: Option<Timestamp>,
    /// When the bytes sent so far have left at the pacing rate.
    paced_until: Option<Timestamp>,
    /// When the newest packet was sent that brought a round-trip sample; and whether the next ACK has one.
    sampled: Option<Timestamp>,
    samples: bool,
    /// When persistent congestion was last told: the stack states it with each packet of one loss.
    persistent_at: Option<Timestamp>,
    exited: bool,
}

impl Control {
    fn new(host: Owner) -> Self {
        Self {
            host,
            origin: None,
            paced_until: None,
            sampled: None,
            samples: false,
            persistent_at: None,
            exited: false,
        }
    }

    fn at(&mut self, t: Timestamp) -> Instant {
        let origin = *self.origin.get_or_insert(t);
        // Of two equal times, `saturating_duration_since` makes a microsecond.
        Instant::ZERO + if t > origin { Span::from(t - origin) } else { Span::ZERO }
    }

    /// Tells the end of the startup as s2n-quic's own event, once.
    fn publish<P: Publisher>(&mut self, publisher: &mut P) {
        let (exit, window) = self.host.read(|h| (h.exit, h.window()));
        match exit {
            Some(exit) if !self.exited => {
                let cause = match exit.why {
                    Exit::Loss | Exit::Timeout => SlowStartExitCause::PacketLoss,
                    Exit::Ecn => SlowStartExitCause::Ecn,
                    Exit::Delay => SlowStartExitCause::Rtt,
                    _ => SlowStartExitCause::Other,
                };
                publisher.on_slow_start_exited(cause, to_u32(window));
            }
            _ => {}
        }
        self.exited = exit.is_some();
    }
}

fn to_u32(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0).unwrap_or(u32::MAX)
}

impl Clone for Control {
    /// The copy has a host of its own, which the program does not see.
    fn clone(&self) -> Self {
        Self { host: self.host.apart(), ..*self }
    }
}

impl CongestionController for Control {
    type PacketInfo = Option<Sent>;

    fn congestion_window(&self) -> u32 {
        to_u32(self.host.read(Host::window))
    }

    fn bytes_in_flight(&self) -> u32 {
        to_u32(self.host.read(Host::inflight))
    }

    fn is_congestion_limited(&self) -> bool {
        self.host.read(|h| h.inflight() + h.mss() > h.window())
    }

    /// RFC 9002 §7.3.2 permits one packet beyond the window when recovery begins; noq and quinn do not send
    /// it either.
    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _: &RttEstimator,
        publisher: &mut P,
    ) -> Option<Sent> {
        // A packet of ACK frames alone is not congestion controlled.
        if sent_bytes == 0 {
            return None;
        }
        let now = self.at(time_sent);
        let bytes = Bytes(sent_bytes as u64);
        let (sent, rate, mss) = self.host.with(|h| {
            let sent = h.on_record_sent(now, bytes, app_limited.unwrap_or(false));
            (sent, h.pacing_rate(), h.mss())
        });
        if let Some(rate) = rate {
            // Time that was not used earns at most one burst.
            let burst = Duration::from(rate.time_for(mss * BURST));
            let earliest = time_sent.checked_sub(burst).unwrap_or(time_sent);
            let from = self.paced_until.map_or(earliest, |t| t.max(earliest));
            self.paced_until = from.checked_add(rate.time_for(bytes).into());
        }
        self.publish(publisher);
        Some(sent)
    }

    fn on_rtt_update<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        _: Timestamp,
        _: &RttEstimator,
        _: &mut P,
    ) {
        self.sampled = Some(time_sent);
        self.samples = true;
    }

    fn on_ack<P: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Option<Sent>,
        _: &RttEstimator,
        _: &mut dyn random::Generator,
        ack_receive_time: Timestamp,
        publisher: &mut P,
    ) {
        let Some(newest) = newest_acked_packet_info else { return };
        let samples = std::mem::take(&mut self.samples) && self.sampled == Some(newest_acked_time_sent);
        let now = self.at(ack_receive_time);
        self.host.with(|h| h.on_record_acked(now, newest, Bytes(bytes_acknowledged as u64), samples));
        self.publish(publisher);
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        _: u32,
        packet_info: Option<Sent>,
        persistent_congestion: bool,
        _: bool,
        _: &mut dyn random::Generator,
        timestamp: Timestamp,
        publisher: &mut P,
    ) {
        let Some(sent) = packet_info else { return };
        let now = self.at(timestamp);
        let persistent = persistent_congestion && self.persistent_at.replace(timestamp) != Some(timestamp);
        self.host.with(|h| h.on_record_lost(now, sent, persistent));
        self.publish(publisher);
    }

    fn on_explicit_congestion<P: Publisher>(&mut self, marks: u64, event_time: Timestamp, publisher: &mut P) {
        // The marks were reported by the ACK frame whose round-trip sample came just before.
        let sent = self.sampled.unwrap_or(event_time);
        let (sent, now) = (self.at(sent), self.at(event_time));
        self.host.with(|h| {
            h.on_marks(marks);
            h.on_congestion(now, sent, Signal::Ecn, Bytes::ZERO);
        });
        self.publish(publisher);
    }

    fn on_mtu_update<P: Publisher>(&mut self, max_data_size: u16, _: &mut P) {
        self.host.with(|h| h.on_mtu(Bytes(max_data_size.into())));
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes_sent: usize, _: &mut P) {
        self.host.with(|h| h.on_discarded(Bytes(bytes_sent as u64)));
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.paced_until
    }
}
