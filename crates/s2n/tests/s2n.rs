//! The controller of s2n-quic, called as its transport calls it.

use num_rational::Ratio;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::path::Config;
use s2n_quic_core::random;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint, PathInfo, Publisher};
use s2n_quic_core::time::{Clock, NoopClock, Timestamp};
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::{PathMemory, Sent};
use slowstart_quic::factory::{Factory, Handle};
use slowstart_s2n::{Control, S2n};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

const RTT_MS: u64 = 50;

/// The cause and the window of each exit that the controller published.
#[derive(Default)]
struct Published(Vec<(SlowStartExitCause, u32)>);

impl Publisher for Published {
    fn on_slow_start_exited(&mut self, cause: SlowStartExitCause, congestion_window: u32) {
        self.0.push((cause, congestion_window));
    }
    fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _: BbrState) {}
}

struct NoRandom;

impl random::Generator for NoRandom {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
    fn private_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
}

fn at(ms: u64) -> Timestamp {
    NoopClock.get_time() + Duration::from_millis(ms)
}

struct Connection {
    control: Control,
    handle: Handle,
    rtt: RttEstimator,
    published: Published,
    mss: usize,
}

impl Connection {
    fn new(factory: Factory) -> Self {
        let factory = Arc::new(factory.watched());
        let control = controller(&mut S2n::new(factory.clone()));
        let handle = factory.newest().unwrap();
        let mss = handle.lock().mss().0 as usize;
        let rtt = RttEstimator::new(Duration::from_millis(RTT_MS));
        Self { control, handle, rtt, published: Published::default(), mss }
    }

    /// A connection whose handshake took one round trip.
    fn established(startup: &str) -> Self {
        let mut c = Self::new(Factory::named(startup).unwrap());
        let hello = c.send(0, 1);
        c.ack(RTT_MS, 0, 1, hello[0]);
        c
    }

    fn send(&mut self, ms: u64, packets: usize) -> Vec<Option<Sent>> {
        let mss = self.mss;
        let mut one =
            || self.control.on_packet_sent(at(ms), mss, Some(false), &self.rtt, &mut self.published);
        (0..packets).map(|_| one()).collect()
    }

    fn ack(&mut self, ms: u64, sent_ms: u64, packets: usize, newest: Option<Sent>) {
        let (sent, now) = (at(sent_ms), at(ms));
        self.control.on_rtt_update(sent, now, &self.rtt, &mut self.published);
        let bytes = packets * self.mss;
        self.control.on_ack(sent, bytes, newest, &self.rtt, &mut NoRandom, now, &mut self.published);
    }

    fn lose(&mut self, ms: u64, sent: &[Option<Sent>], persistent: bool) {
        for s in sent {
            let bytes = self.mss as u32;
            self.control.on_packet_lost(
                bytes,
                *s,
                persistent,
                false,
                &mut NoRandom,
                at(ms),
                &mut self.published,
            );
        }
    }

    fn window(&self) -> u32 {
        self.control.congestion_window() / self.mss as u32
    }
}

fn controller(endpoint: &mut S2n) -> Control {
    let peer = SocketAddress::from(std::net::SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 443)));
    endpoint.new_congestion_controller(PathInfo::new(&Config::default(), &peer))
}

#[test]
fn an_ack_of_many_packets_grows_the_window_by_their_bytes() {
    let mut c = Connection::established("standard");
    assert_eq!((c.window(), c.control.bytes_in_flight()), (10, 0));
    let sent = c.send(100, 10);
    assert!(c.control.is_congestion_limited());
    c.ack(150, 100, 4, sent[3]);
    assert_eq!((c.window(), c.control.bytes_in_flight()), (14, 6 * c.mss as u32));
    assert!(!c.control.is_congestion_limited());
    let host = c.handle.lock();
    assert_eq!((host.srtt(), host.latest_rtt()), (Some(Span::millis(50)), Some(Span::millis(50))));
}

#[test]
fn packets_of_acks_alone_are_not_counted() {
    let mut c = Connection::established("standard");
    let none = c.control.on_packet_sent(at(60), 0, Some(true), &c.rtt, &mut c.published);
    assert_eq!((none, c.control.bytes_in_flight()), (None, 0));
    let bytes = c.mss;
    c.send(70, 1);
    c.control.on_packet_discarded(bytes, &mut c.published);
    assert_eq!(c.control.bytes_in_flight(), 0);
}

#[test]
fn a_sender_without_data_earns_no_growth() {
    let mut c = Connection::established("standard");
    let mss = c.mss;
    let sent = c.control.on_packet_sent(at(100), mss, Some(true), &c.rtt, &mut c.published);
    c.ack(150, 100, 1, sent);
    assert_eq!(c.window(), 10);
}

#[test]
fn a_loss_ends_the_startup_and_is_published_once() {
    let mut c = Connection::established("standard");
    let sent = c.send(100, 10);
    c.ack(150, 100, 1, sent[9]);
    c.lose(150, &sent[..3], false);
    assert_eq!(c.window(), 7, "0.7 of 11 packets, once for the episode");
    assert_eq!(c.handle.lock().counters.lost_packets, 3);
    assert!(matches!(c.published.0[..], [(SlowStartExitCause::PacketLoss, _)]));
}

#[test]
fn persistent_congestion_counts_once_and_leaves_two_packets() {
    let mut c = Connection::established("standard");
    let sent = c.send(100, 10);
    c.lose(900, &sent, true);
    assert_eq!(c.window(), 2);
    assert_eq!(c.handle.lock().counters.persistent, 1);
    assert_eq!(c.handle.lock().exit.unwrap().why.name(), "timeout");
}

#[test]
fn a_mark_is_told_as_a_mark_once_a_round_trip() {
    let mut c = Connection::established("standard");
    let sent = c.send(100, 10);
    c.control.on_rtt_update(at(100), at(150), &c.rtt, &mut c.published);
    c.control.on_explicit_congestion(1, at(150), &mut c.published);
    let window = c.window();
    assert_eq!(window, 7);
    c.ack(151, 100, 1, sent[9]);
    c.control.on_explicit_congestion(1, at(151), &mut c.published);
    assert_eq!(c.window(), window, "of packets sent before the window was reduced");
    assert_eq!(c.handle.lock().exit.unwrap().why.name(), "ecn");
    assert!(matches!(c.published.0[..], [(SlowStartExitCause::Ecn, _)]));
}

#[test]
fn larger_packets_raise_the_floor() {
    let mut c = Connection::established("standard");
    let sent = c.send(100, 10);
    c.lose(900, &sent, true);
    c.control.on_mtu_update(9000, &mut c.published);
    assert_eq!(c.control.congestion_window(), 18_000);
}

#[test]
fn departures_follow_the_pacing_rate_after_one_burst() {
    let mut c = Connection::established("standard");
    let sent = c.send(100, 10);
    // An initial window may leave at once.
    assert!(c.control.earliest_departure_time().unwrap() <= at(100));
    c.ack(150, 100, 10, sent[9]);
    // 20 packets a window of 50 ms, at two windows a round trip: 0.8 packets each millisecond. Ten may leave
    // at once.
    c.send(150, 14);
    let wait = c.control.earliest_departure_time().unwrap().saturating_duration_since(at(150));
    assert!((Duration::from_millis(4)..Duration::from_millis(6)).contains(&wait), "{wait:?}");
}

#[test]
fn a_copy_has_a_host_of_its_own() {
    let mut c = Connection::established("standard");
    let copy = c.control.clone();
    let sent = c.send(100, 10);
    c.lose(900, &sent, true);
    assert_eq!((copy.congestion_window() / c.mss as u32, c.window()), (10, 2));
}

#[test]
fn the_endpoint_recalls_the_peer() {
    let memory = PathMemory { cwnd: Bytes(1_000_000), rtt: Span::millis(50), rate: Rate(160_000_000) };
    let mut asked = Vec::new();
    let (told, heard) = std::sync::mpsc::channel();
    let factory = Arc::new(Factory::named("careful-resume").unwrap().watched());
    let mut endpoint = S2n::new(factory.clone()).recalling(move |peer| {
        told.send(peer).unwrap();
        Some(memory)
    });
    controller(&mut endpoint);
    asked.extend(heard.try_iter());
    assert_eq!(asked, [IpAddr::from([192, 0, 2, 1])]);
    assert_eq!(factory.newest().unwrap().lock().remembered, Some(memory));
}

/// All startups over a link of 10 packets each millisecond and 50 ms without a limit of its queue: the window
/// grows, or the startup ends by its rule, and the controller keeps its floor.
#[test]
fn every_startup_runs() {
    for entry in slowstart::registry::all() {
        let mut c = Connection::established(entry.name);
        let mut flight = std::collections::VecDeque::new();
        let (mut free_us, mut now) = (0, RTT_MS);
        for _ in 0..400 {
            now += 1;
            while flight.front().is_some_and(|(_, _, arrives)| *arrives <= now * 1000) {
                let (sent, sent_ms, _) = flight.pop_front().unwrap();
                c.ack(now, sent_ms, 1, sent);
            }
            while !c.control.is_congestion_limited()
                && c.control.earliest_departure_time().is_none_or(|t| t <= at(now))
            {
                let sent = c.send(now, 1)[0];
                free_us = free_us.max(now * 1000) + 100;
                flight.push_back((sent, now, free_us + RTT_MS * 1000));
            }
            assert!(c.window() >= 2, "{}", entry.name);
        }
        assert!(c.window() > 10 || c.handle.lock().exit.is_some(), "{}", entry.name);
        assert_eq!(c.control.bytes_in_flight() as usize, flight.len() * c.mss, "{}", entry.name);
    }
}
