//! Drives a controller that measures delivery: one ACK per round trip, with the rate and the data in flight
//! that the test states.

use crate::common::facts;
use slowstart::control::{Controller, Exited};
use slowstart::step::Pace;
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Recovery, Sent, Signal};

/// The RTT of the path.
pub(crate) const RTT: Span = Span::millis(100);
/// One segment, in bytes.
pub(crate) const MSS: u64 = 1000;

pub(crate) const fn mbit(n: u64) -> Rate {
    Rate(n * 1_000_000)
}

pub(crate) struct Feed<C> {
    pub(crate) c: C,
    pub(crate) f: Facts,
    /// The RTT of the ACKs to come.
    pub(crate) rtt: Span,
    pub(crate) app_limited: bool,
    pub(crate) limit: Limit,
    /// Bytes marked lost by the next acknowledgement.
    lost: Bytes,
    last: Instant,
    pub(crate) exits: Vec<Exited>,
    pub(crate) resumed: u32,
}

impl<C: Controller> Feed<C> {
    /// A connection with a handshake of one RTT and a window of ten segments.
    pub(crate) fn new(make: fn(Bytes, u64) -> C, seed: u64) -> Self {
        let mut f = facts(MSS, 10);
        f.now = Instant(7_000_000_000);
        f.srtt = Some(RTT);
        f.min_rtt = Some(RTT);
        let mut c = make(f.iw, seed);
        let _ = c.on_established(&f, &Handshake::new(Some(RTT)));
        let last = f.now;
        Self {
            c,
            f,
            rtt: RTT,
            app_limited: false,
            limit: Limit::Window,
            lost: Bytes::ZERO,
            last,
            exits: Vec::new(),
            resumed: 0,
        }
    }

    fn took(&mut self, change: slowstart::control::Change) {
        self.exits.extend(change.exited);
        self.resumed += u32::from(change.resumed);
    }

    /// The state when the packet that is acknowledged next was sent: right after the last ACK.
    fn newest(&self) -> Sent {
        Sent {
            at: self.last,
            bytes: Bytes(MSS),
            inflight: self.f.inflight,
            delivered: self.f.delivered,
            delivered_at: self.last,
            first_sent_at: self.last,
            lost: self.f.lost - self.lost,
            app_limited: self.app_limited,
            cwnd: self.c.state().cwnd,
            ..Sent::default()
        }
    }

    /// A round trip in which the path delivers at this rate. Afterwards this number of segments is in flight.
    pub(crate) fn round(&mut self, rate: Rate, inflight: u64) {
        let newest = self.newest();
        let prior_inflight = self.f.inflight;
        self.f.now = self.last + self.rtt;
        self.last = self.f.now;
        self.f.min_rtt = self.f.min_rtt.map(|least| least.min(self.rtt));
        let delivered = rate.over(self.rtt);
        self.f.delivered += delivered;
        self.f.inflight = Bytes(inflight * MSS);
        let mut ack = Ack::new(newest, delivered, prior_inflight);
        ack.upto = SendOrder::new(self.f.delivered.0);
        ack.newly_lost = std::mem::take(&mut self.lost);
        ack.rtt = Some(self.rtt);
        ack.limit = self.limit;
        let change = self.c.on_ack(&self.f, &ack);
        self.took(change);
    }

    pub(crate) fn rounds(&mut self, n: u32, rate: Rate, inflight: u64) {
        for _ in 0..n {
            self.round(rate, inflight);
        }
    }

    /// The next ACK marks this number of segments lost, in this number of ranges.
    pub(crate) fn lose(&mut self, segments: u64, ranges: u32, first: bool) {
        let newest = self.newest();
        self.lost += Bytes(segments * MSS);
        self.f.lost += Bytes(segments * MSS);
        self.f.in_recovery = true;
        let lost = Bytes(segments * MSS);
        let c = Congestion::new(Signal::Loss, first, newest).losing(lost, ranges);
        let change = self.c.on_congestion(&self.f, &c);
        self.took(change);
    }

    /// The timer expires: all data in flight is marked lost.
    pub(crate) fn time_out(&mut self) {
        let newest = self.newest();
        let lost = std::mem::take(&mut self.f.inflight);
        self.f.lost += lost;
        let c = Congestion::new(Signal::Timeout, true, newest).losing(lost, 1);
        let change = self.c.on_congestion(&self.f, &c);
        self.took(change);
    }

    pub(crate) fn recovered(&mut self, undone: bool) {
        self.f.in_recovery = false;
        let change = self.c.on_recovered(&self.f, &Recovery::new(Bytes(MSS), undone));
        self.took(change);
    }

    pub(crate) fn idle(&mut self, time: Span) {
        self.f.inflight = Bytes::ZERO;
        self.f.now = self.f.now + time;
        self.last = self.f.now;
        let change = self.c.on_idle(&self.f, time, None);
        self.took(change);
    }

    /// The window in segments.
    pub(crate) fn cwnd(&self) -> u64 {
        self.c.state().cwnd.units(Bytes(MSS))
    }

    pub(crate) fn pace(&self) -> Rate {
        match self.c.state().pace {
            Some(Pace::Rate(rate)) => rate,
            other => panic!("BBR paces at a rate, not {other:?}"),
        }
    }

    pub(crate) fn internal_value(&self, name: &str) -> f64 {
        let mut found = None;
        self.c.internal_values(&mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.unwrap_or_else(|| panic!("no internal_value {name}"))
    }
}
