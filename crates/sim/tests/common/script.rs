//! A test harness for one endpoint: the test plays the network, the peer and the clock.
//!
//! Data is counted in full segments from 0, in both directions. Times are relative to when the connection was
//! established.
#![allow(dead_code, reason = "each test takes what it needs")]

use slowstart::avoidance;
use slowstart::control::{Checked, Controller};
use slowstart::registry;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_sim::engine::Control;
use slowstart_sim::tcp::endpoint::{Endpoint, State};
use slowstart_sim::tcp::profile::Profile;
use slowstart_sim::tcp::segment::milliseconds;
use slowstart_sim::tcp::segment::{ACK, FIN, SYN, Segment};

/// The endpoint's initial sequence number: sequence numbers wrap after 5000 bytes.
pub(crate) const ISN: u32 = u32::MAX - 5000;
/// The peer's initial sequence number: it wraps after 9000 bytes.
pub(crate) const PEER_ISN: u32 = u32::MAX - 9000;
/// When a script begins. Not zero, so that timestamps are not zero.
pub(crate) const BEGIN: Instant = Instant(1_000_000_000);
/// The peer's window scale: its largest window is 1 GB.
const SCALE: u8 = 14;

pub(crate) const RTT: Span = Span::millis(100);
pub(crate) const MSS: u64 = 1448;

/// Linux without pacing and without deferred bursts, which would only delay the segments that these scripts
/// look for.
pub(crate) const LINUX: Profile = Profile { pacing: false, tso_defer: false, ..Profile::LINUX_6_18 };

/// A controller of standard slow start and CUBIC.
pub(crate) fn control(profile: &Profile) -> Control {
    let startup = registry::named("standard").expect("it is there").algorithm;
    let iw = Bytes(u64::from(profile.iw) * u64::from(profile.mss));
    Checked::new(startup.controller(&(avoidance::REGISTRY[0].make)(), iw, 0))
}

/// A segment that was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// When, after the connection was established.
    pub(crate) at: Span,
    /// The first byte, as an offset of the endpoint's data.
    pub(crate) from: u64,
    pub(crate) segment: Segment,
}

pub(crate) struct Script {
    pub(crate) end: Endpoint<Control>,
    pub(crate) now: Instant,
    /// When the connection was established.
    pub(crate) zero: Instant,
    mss: u64,
    timestamps: bool,
    /// The window field of the peer's segments.
    pub(crate) window: u16,
    scale: u8,
    out: Vec<Segment>,
    /// Segments sent since the last [`Script::take`].
    left: Vec<Left>,
    /// For each data segment, when it was sent first and last.
    copies: Vec<(Instant, Instant)>,
    /// Bytes that the peer has sent.
    pub(crate) peer_next: u64,
    /// Flags of the peer's data beside ACK.
    pub(crate) peer_flags: u8,
}

impl Script {
    /// An endpoint that waits for a SYN.
    pub(crate) fn listening(profile: &Profile) -> Self {
        Self {
            end: Endpoint::listening(profile, control(profile), ISN),
            now: BEGIN,
            zero: BEGIN,
            mss: u64::from(profile.mss),
            timestamps: profile.timestamps,
            window: u16::MAX,
            scale: SCALE,
            out: Vec::new(),
            left: Vec::new(),
            copies: Vec::new(),
            peer_next: 0,
            peer_flags: 0,
        }
    }

    /// An endpoint with an established connection, whose handshake took `rtt`.
    pub(crate) fn established(profile: &Profile, rtt: Span) -> Self {
        let mut s = Self::listening(profile);
        let syn = Segment {
            mss: 1460,
            scale: Some(SCALE),
            sack_ok: true,
            flags: SYN,
            timestamp: s.stamp(milliseconds(s.now)),
            seq: PEER_ISN,
            window: u16::MAX,
            ..Segment::default()
        };
        s.receive(&syn);
        let synack = s.take();
        assert_eq!(synack.len(), 1);
        s.wait(rtt);
        let echo = synack[0].segment.timestamp.map_or(0, |t| t.0);
        s.receive(&Segment { timestamp: s.stamp(echo), ..s.bare(1) });
        s.zero = s.now;
        assert_eq!(s.end.state(), State::Established);
        assert!(s.take().is_empty());
        s
    }

    /// The peer's timestamp option with this echo.
    fn stamp(&self, echo: u32) -> Option<(u32, u32)> {
        self.timestamps.then(|| (milliseconds(self.now), echo))
    }

    /// An ACK without data of everything before `offset` (the SYN is 0, data begins at 1).
    pub(crate) fn bare(&self, offset: u64) -> Segment {
        Segment {
            seq: PEER_ISN.wrapping_add(1 + self.peer_next as u32),
            ack: ISN.wrapping_add(offset as u32),
            window: self.window,
            flags: ACK,
            ..Segment::default()
        }
    }

    /// Delivers a segment to the endpoint.
    pub(crate) fn receive(&mut self, s: &Segment) {
        let mut out = std::mem::take(&mut self.out);
        self.end.on_segment(self.now, s, &mut out);
        self.out = out;
        self.gather();
    }

    fn gather(&mut self) {
        for segment in self.out.drain(..) {
            // An ACK without data carries the next sequence number to be sent.
            let from = u64::from(segment.seq.wrapping_sub(ISN.wrapping_add(1)));
            if segment.len > 0 {
                let n = (from / self.mss) as usize;
                if n == self.copies.len() {
                    self.copies.push((self.now, self.now));
                } else if let Some(c) = self.copies.get_mut(n) {
                    c.1 = self.now;
                }
            }
            self.left.push(Left { at: self.now.since(self.zero), from, segment });
        }
    }

    /// Returns the segments sent since the last call.
    pub(crate) fn take(&mut self) -> Vec<Left> {
        std::mem::take(&mut self.left)
    }

    /// Returns the numbers of the data segments sent since the last call.
    pub(crate) fn data(&mut self) -> Vec<u64> {
        self.take().iter().filter(|l| l.segment.len > 0).map(|l| l.from / self.mss).collect()
    }

    /// Returns the data segments sent since the last call, with their times in milliseconds.
    pub(crate) fn timed(&mut self) -> Vec<(f64, u64)> {
        let ms = |l: &Left| l.at.as_secs_f64() * 1e3;
        self.take().iter().filter(|l| l.segment.len > 0).map(|l| (ms(l), l.from / self.mss)).collect()
    }

    /// The application writes this number of full segments.
    pub(crate) fn write(&mut self, segments: u64) {
        self.end.tx.write(segments * self.mss);
        self.send();
    }

    /// The application closes.
    pub(crate) fn close(&mut self) {
        self.end.tx.close();
        self.send();
    }

    fn send(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        self.end.send(self.now, &mut out);
        self.out = out;
        self.gather();
    }

    /// The earliest deadline of the endpoint.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.end.deadlines().into_iter().min().filter(|t| *t < Instant::NEVER)
    }

    /// Advances time by `span`.
    pub(crate) fn wait(&mut self, span: Span) {
        self.until(self.now + span);
    }

    /// Advances time until `ms` milliseconds after the connection was established.
    pub(crate) fn at_ms(&mut self, ms: u64) {
        self.until(self.zero + Span::millis(ms));
    }

    fn until(&mut self, end: Instant) {
        let mut fired = 0;
        while let Some(at) = self.deadline().filter(|t| *t <= end) {
            self.now = self.now.max(at);
            let mut out = std::mem::take(&mut self.out);
            self.end.on_timer(self.now, &mut out);
            self.out = out;
            self.gather();
            fired += 1;
            assert!(fired < 100_000, "timers that never end");
        }
        self.now = end;
    }

    /// The peer acknowledges `upto` segments and SACKs the ranges `held`, the newest first. It echoes the
    /// timestamp of the last transmission of the last segment acknowledged.
    pub(crate) fn ack(&mut self, upto: u64, held: &[(u64, u64)]) {
        let stamp = upto.checked_sub(1).and_then(|n| self.copies.get(n as usize)).map_or(self.zero, |c| c.1);
        self.ack_echoing(upto, held, stamp);
    }

    /// Acknowledges with the echo of the first transmission of that segment.
    pub(crate) fn ack_original(&mut self, upto: u64, held: &[(u64, u64)]) {
        let stamp = upto.checked_sub(1).and_then(|n| self.copies.get(n as usize)).map_or(self.zero, |c| c.0);
        self.ack_echoing(upto, held, stamp);
    }

    /// Acknowledges with the timestamp of `stamp` as echo.
    pub(crate) fn ack_echoing(&mut self, upto: u64, held: &[(u64, u64)], stamp: Instant) {
        let mut s = self.bare(1 + upto * self.mss);
        s.timestamp = self.stamp(milliseconds(stamp));
        s.sacks = held.len() as u8;
        for (block, (from, to)) in s.sack.iter_mut().zip(held) {
            let wire = |n: u64| ISN.wrapping_add(1 + (n * self.mss) as u32);
            *block = (wire(*from), wire(*to));
        }
        self.receive(&s);
    }

    /// The peer's segments of these numbers arrive.
    pub(crate) fn peer_data(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for n in numbers {
            let mut s = self.bare(1);
            s.seq = PEER_ISN.wrapping_add(1 + (n * self.mss) as u32);
            s.len = self.mss as u32;
            s.flags |= self.peer_flags;
            s.timestamp = self.stamp(milliseconds(self.now));
            self.receive(&s);
            self.peer_next = self.peer_next.max((n + 1) * self.mss);
        }
    }

    /// The peer's FIN arrives, after this number of segments.
    pub(crate) fn peer_fin(&mut self, after: u64) {
        let mut s = self.bare(1);
        s.seq = PEER_ISN.wrapping_add(1 + (after * self.mss) as u32);
        s.flags |= FIN;
        s.timestamp = self.stamp(0);
        self.receive(&s);
        self.peer_next = self.peer_next.max(after * self.mss + 1);
    }

    /// The SACK blocks in a segment of the endpoint, as numbers of the peer's segments.
    pub(crate) fn blocks(&self, s: &Segment) -> Vec<(u64, u64)> {
        let number = |wire: u32| u64::from(wire.wrapping_sub(PEER_ISN.wrapping_add(1))) / self.mss;
        s.blocks().iter().map(|(a, b)| (number(*a), number(*b))).collect()
    }

    /// Number of the peer's segments that a segment of the endpoint acknowledges.
    pub(crate) fn acked(&self, s: &Segment) -> u64 {
        u64::from(s.ack.wrapping_sub(PEER_ISN.wrapping_add(1))) / self.mss
    }

    /// The congestion window, in segments.
    pub(crate) fn cwnd(&self) -> u64 {
        self.end.tx.control().state().cwnd.0 / self.mss
    }
}

pub(crate) fn established() -> Script {
    Script::established(&LINUX, RTT)
}

/// An endpoint after flights of 10, 20, 40 ... segments, each acknowledged after one RTT: its window is
/// `window` segments, all in flight, the first of them number `window - 10`.
pub(crate) fn opened(profile: &Profile, window: u64) -> Script {
    let mut s = Script::established(profile, RTT);
    s.write(4 * window);
    let mut acked = 0;
    while s.cwnd() < window {
        s.wait(RTT);
        acked += s.cwnd();
        s.ack(acked, &[]);
    }
    assert_eq!((s.cwnd(), acked), (window, window - 10));
    s.take();
    s
}
