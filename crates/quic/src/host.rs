//! What every QUIC stack needs between its own callbacks and a [`Controller`]: a record of the packets in
//! flight, the facts of each event, and loss episodes by RFC 9002 §7.3.2.
//!
//! Departures from TCP, all of which follow from QUIC:
//! - A mark counts packets in the order of sending: packet numbers repeat in the spaces of the handshake.
//!   QUIC acknowledges in any order, so [`Ack::upto`] is the mark of the newest packet that the peer
//!   acknowledged, as RFC 9406 and RFC 9002 count rounds.
//! - Packets that were sent before the first acknowledgement are of the handshake. The first establishes the
//!   connection; the controller is not told of acknowledgements of the others, so they earn no growth and
//!   begin no round, as in TCP.
//! - The window is at least two packets (RFC 9002 §7.2). A probe timeout changes no window; persistent
//!   congestion counts as a timeout.
//! - No recovery of the host's own bounds sending in an episode: the window does.
//! - An idle time changes no window by itself (RFC 9002 has no restart window, RFC 5681 §4.1 has); the
//!   controller is told of it, so that a window that depends on time excludes it.
//!
//! A stack of one's own makes the calls that the README of this crate shows. In debug builds, what the host
//! tells its controller is checked ([`Checked`]).
//!
//! What a QUIC host cannot supply: the queue of its interface, grants of Quick-Start, losses of handshake
//! packets, and a resend of a packet that is not known to be lost.

use slowstart::control::{Change, Checked, Controller, Exited, State};
use slowstart::step::Pace;
use slowstart::units::{Bytes, Gain, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, PathMemory, Recovery, Sent, Signal};
use std::collections::VecDeque;

mod carried;
mod unnumbered;

/// The initial window in packets (RFC 9002 §7.2).
pub const INITIAL_PACKETS: u64 = 10;
/// The least window in packets (RFC 9002 §7.2).
const LEAST_PACKETS: u64 = 2;
/// Pacing in slow start, windows a smoothed round trip: what Linux uses, and what a doubling window needs.
const SLOW_START_GAIN: Gain = Gain::percent(200);
/// Pacing afterwards (RFC 9002 §7.7).
const AVOIDANCE_GAIN: Gain = Gain::percent(125);
/// What neqo's pacer sends at once (`PACING_BURST_SIZE`).
const BURST_PACKETS: u64 = 2;
/// Stands for no pacing: a terabit a second.
const UNPACED: Rate = Rate(1_000_000_000_000);

/// The largest UDP payload. A larger packet counts as this.
const LARGEST: Bytes = Bytes(65_527);
/// Times beyond this count as this: 146 years.
const LATEST: Instant = Instant(1 << 62);

/// Which sender counts as limited by its application, so that its window does not grow.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Limited {
    /// The one that the stack says is: it has nothing more to send, and space in its window.
    #[default]
    Stack,
    /// neqo's rule (`app_limited` of its `classic_cc.rs`): one that sends while less than half of its window
    /// is in flight; after slow start, while the window has space for more than two packets. An ACK is that
    /// of a limited sender if all its packets are newer than the newest one that was sent otherwise.
    Neqo,
    /// As [`Limited::Stack`], but the window of such a sender grows to what slow start, or Reno's congestion
    /// avoidance, makes in a round trip of the most in flight since the last reduction
    /// (draft-ietf-ccwg-ratelimited-increase).
    Draft,
}

/// A packet in flight.
#[derive(Clone, Debug)]
struct InFlight {
    number: u64,
    sent: Sent,
    /// Acknowledged or lost; removed once it is the oldest.
    done: bool,
}

/// What has been acknowledged since the stack began with an ACK frame.
#[derive(Copy, Clone, Debug, Default)]
struct Batch {
    bytes: Bytes,
    newest: Option<Sent>,
    /// The packet number of the newest.
    largest: u64,
    app_limited: bool,
    /// True if one of them is not newer than [`Host::used`].
    used: bool,
    prior_inflight: Bytes,
}

/// Counters of a connection, for rows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Ack-eliciting packets sent so far.
    pub packets: u64,
    /// Packets declared lost, also if one arrived later.
    pub lost_packets: u64,
    /// Episodes of congestion: each reduces the window once, for losses or marks.
    pub episodes: u64,
    /// Loss episodes that marks began.
    pub ecn_episodes: u64,
    /// Times of persistent congestion (RFC 9002 §7.6).
    pub persistent: u64,
    /// Episodes that proved spurious.
    pub spurious: u64,
    /// The most bytes in flight.
    pub peak_inflight: Bytes,
}

/// A controller with what a QUIC stack tells it. Times are since any fixed moment; they never decrease.
#[derive(Clone, Debug)]
pub struct Host<C> {
    control: Checked<C>,
    mss: Bytes,
    now: Instant,
    packets: VecDeque<InFlight>,
    batch: Batch,
    sent_total: Bytes,
    inflight: Bytes,
    delivered: Bytes,
    delivered_at: Instant,
    /// When the first packet of the flight that delivery is measured in was sent (delivery-rate draft,
    /// `C.first_sent_time`).
    first_sent_at: Instant,
    app_limited: bool,
    lost: Bytes,
    srtt: Option<Span>,
    latest_rtt: Option<Span>,
    min_rtt: Option<Span>,
    /// The newest packet acknowledged.
    newest: Sent,
    /// When the first acknowledgement came, which ends the handshake.
    established: Option<Instant>,
    /// Packets that were sent earlier were sent on another path.
    path_since: Instant,
    /// When something was last in flight; `None` before the connection is established.
    busy: Option<Instant>,
    /// Since when a loss episode lasts (RFC 9002, `congestion_recovery_start_time`), and whether it is over.
    episode: Option<(Instant, bool)>,
    cwnd_limited: bool,
    /// The newest packet that was sent while the window was in use, by the rule of [`Limited::Neqo`].
    used: SendOrder,
    /// The most in flight since the window was last reduced, at first the initial window, and the window when
    /// the newest packet was sent.
    max_flight: Bytes,
    window_before: Bytes,
    /// Which sender counts as limited by its application.
    pub limited: Limited,
    /// True if the stack's pacer follows [`Host::pacing_rate`]; otherwise it sends at 1.25 windows a smoothed
    /// round trip, and [`Pace`] has no effect.
    pub paces: bool,
    /// The pacing rate in slow start, in windows a smoothed round trip: 2 by default.
    pub slow_start_gain: Gain,
    /// Bytes that the application has written and the stack has not sent, where the application says so.
    pub unsent: Option<Bytes>,
    /// The peer's flow-control limit.
    pub rwnd: Bytes,
    /// Bytes delivered in packets that the network marked, where the stack tells how many packets those are:
    /// it sets `Some(Bytes::ZERO)` at the beginning and calls [`Host::on_marks`]. `None` where it does not;
    /// an avoidance that [needs each mark](Controller::needs_each_mark) must not be used then.
    pub marked: Option<Bytes>,
    /// What an earlier connection to this peer left.
    pub remembered: Option<PathMemory>,
    /// The end of the first slow start.
    pub exit: Option<Exited>,
    /// The avoidance has returned to slow start.
    restarted: bool,
    /// When a loss was first known.
    pub first_loss: Option<Instant>,
    /// When the peer first reported a mark.
    pub first_mark: Option<Instant>,
    /// What was sent and lost so far.
    pub counters: Counters,
}

impl<C: Controller> Host<C> {
    /// A connection that begins at `now` with packets of `mss` bytes. The controller must have been made with
    /// an initial window of [`INITIAL_PACKETS`] packets.
    pub fn new(control: C, now: Instant, mss: Bytes) -> Self {
        Self {
            control: Checked::new(control),
            mss: mss.max(Bytes(1)),
            now,
            packets: VecDeque::new(),
            batch: Batch::default(),
            sent_total: Bytes::ZERO,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            delivered_at: now,
            first_sent_at: now,
            app_limited: false,
            lost: Bytes::ZERO,
            srtt: None,
            latest_rtt: None,
            min_rtt: None,
            newest: Sent::default(),
            established: None,
            path_since: now,
            busy: None,
            episode: None,
            cwnd_limited: false,
            used: SendOrder::default(),
            max_flight: mss.max(Bytes(1)) * INITIAL_PACKETS,
            window_before: Bytes::ZERO,
            limited: Limited::default(),
            paces: true,
            slow_start_gain: SLOW_START_GAIN,
            unsent: None,
            rwnd: Bytes::MAX,
            marked: None,
            remembered: None,
            exit: None,
            restarted: false,
            first_loss: None,
            first_mark: None,
            counters: Counters::default(),
        }
    }

    /// Returns the controller, whose state has window and pacing.
    pub fn control(&self) -> &C {
        self.control.get()
    }

    /// The window and what belongs to it.
    pub fn state(&self) -> &State {
        self.control.state()
    }

    /// Bytes that may be in flight: at least two packets.
    pub fn window(&self) -> Bytes {
        self.state().cwnd.max(self.mss * LEAST_PACKETS)
    }

    /// Returns the initial window, in bytes of UDP payload.
    pub fn initial_window(&self) -> Bytes {
        self.mss * INITIAL_PACKETS
    }

    /// The size of a full packet.
    pub fn mss(&self) -> Bytes {
        self.mss
    }

    /// True once the first acknowledgement has come, which ends the handshake.
    pub fn is_established(&self) -> bool {
        self.established.is_some()
    }

    /// True if the stack had nothing more to send when it last told.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited
    }

    /// Returns the bytes in flight: sent, and neither acknowledged nor lost.
    pub fn inflight(&self) -> Bytes {
        self.inflight
    }

    /// The newest round-trip sample.
    pub fn latest_rtt(&self) -> Option<Span> {
        self.latest_rtt
    }

    /// The smoothed round-trip time.
    pub fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// What this connection leaves for the next one to its peer, once it has a round-trip sample.
    pub fn memory(&self) -> Option<PathMemory> {
        let cwnd = self.state().cwnd.min(self.counters.peak_inflight);
        Some(PathMemory { cwnd, rtt: self.min_rtt?, rate: Rate::new(cwnd, self.srtt?)? })
    }

    /// The rate to send at; `None` before the first round-trip sample.
    pub fn pacing_rate(&self) -> Option<Rate> {
        let per_srtt = |gain: Gain| Some(Rate::new(self.window(), self.srtt?)? * gain);
        if !self.paces {
            return per_srtt(AVOIDANCE_GAIN);
        }
        match self.state().pace {
            Some(Pace::Off) => Some(UNPACED),
            Some(Pace::Rate(rate)) => Some(rate),
            Some(Pace::Gain(gain)) => per_srtt(gain),
            _ => per_srtt(if self.in_slow_start() { self.slow_start_gain } else { AVOIDANCE_GAIN }),
        }
    }

    /// True below the slow-start threshold.
    fn in_slow_start(&self) -> bool {
        self.state().ssthresh.is_none_or(|t| self.state().cwnd < t)
    }

    /// True if a packet that is sent now uses the window, by the rule of [`Limited::Neqo`].
    fn uses_window(&self) -> bool {
        let (inflight, cwnd) = (self.inflight, self.window());
        if self.in_slow_start() { inflight >= cwnd / 2 } else { inflight + self.mss * BURST_PACKETS >= cwnd }
    }

    /// When [`Host::on_timer`] wants to be called. A stack without a timer to spare may leave it out: it is
    /// then called with the next event.
    pub fn wake(&self) -> Option<Instant> {
        self.state().wake
    }

    fn facts(&self) -> Facts {
        let mut f = Facts::new(self.mss, self.initial_window());
        f.now = self.now;
        f.min_window = self.mss * LEAST_PACKETS;
        f.inflight = self.inflight;
        f.delivered = self.delivered;
        f.lost = self.lost;
        f.marked = self.marked;
        f.next = SendOrder::new(self.counters.packets);
        f.srtt = self.srtt;
        f.min_rtt = self.min_rtt;
        f.rwnd = self.rwnd;
        f.pacing_rate = self.pacing_rate();
        f.pacing_on = true;
        f.unsent = self.unsent;
        f.supports_pacing = self.paces;
        f.in_recovery = self.episode.is_some_and(|(_, over)| !over);
        f
    }

    fn note(&mut self, change: Change) {
        if !self.restarted {
            self.exit = change.exited.or(self.exit.filter(|_| !change.resumed));
        }
        self.restarted |= change.restarted;
    }

    /// Time passes. A clock that goes back stands still instead.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now.min(LATEST));
        if self.inflight > Bytes::ZERO && self.established.is_some() {
            self.busy = Some(self.now);
        }
        if self.established.is_some() && self.wake().is_some_and(|at| at <= self.now) {
            let change = self.control.on_timer(&self.facts());
            self.note(change);
        }
    }

    /// The time of [`Host::wake`] has come.
    pub fn on_timer(&mut self, now: Instant) {
        self.advance(now);
    }

    /// An ack-eliciting packet of `bytes` bytes was sent.
    pub fn on_packet_sent(&mut self, now: Instant, bytes: Bytes, number: u64) {
        let sent = self.send(now, bytes);
        self.packets.push_back(InFlight { number, sent, done: false });
    }

    /// Notes that an ack-eliciting packet was sent, and tells the controller. Returns what is to be known
    /// when it is acknowledged or lost.
    fn send(&mut self, now: Instant, bytes: Bytes) -> Sent {
        self.advance(now);
        let bytes = bytes.min(LARGEST);
        if self.inflight == Bytes::ZERO {
            (self.delivered_at, self.first_sent_at) = (self.now, self.now);
            let idle = self.busy.map_or(Span::ZERO, |since| self.now.since(since));
            if idle > Span::ZERO {
                let change = self.control.on_idle(&self.facts(), idle, None);
                self.note(change);
            }
        }
        if self.limited == Limited::Neqo && self.uses_window() {
            self.used = SendOrder::new(self.counters.packets + 1);
        }
        self.sent_total += bytes;
        self.inflight += bytes;
        self.counters.packets += 1;
        self.counters.peak_inflight = self.counters.peak_inflight.max(self.inflight);
        let window = self.state().cwnd;
        if window < self.window_before {
            self.max_flight = Bytes::ZERO;
        }
        self.window_before = window;
        self.max_flight = self.max_flight.max(self.inflight);
        let sent = Sent {
            mark: SendOrder::new(self.counters.packets),
            at: self.now,
            bytes,
            retransmission: false,
            sent_total: self.sent_total,
            inflight: self.inflight,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            app_limited: self.app_limited,
            cwnd: self.state().cwnd,
        };
        if self.established.is_some() && self.control.needs_on_sent() {
            self.control.on_sent(&self.facts(), &sent);
        }
        sent
    }

    /// The stack had data to send and the window had no space for it.
    pub fn on_cwnd_limited(&mut self) {
        self.cwnd_limited = true;
    }

    /// Takes a packet out of the record. Packet numbers repeat in the spaces of the handshake, so the time of
    /// sending, where the stack tells it, decides.
    fn take(&mut self, number: u64, at: Option<Instant>) -> Option<Sent> {
        let found = match at {
            Some(at) => {
                let from = self.packets.partition_point(|p| p.sent.at < at);
                let same = self.packets.range(from..).take_while(|p| p.sent.at == at);
                from + same.into_iter().position(|p| p.number == number && !p.done)?
            }
            // Once the handshake is over, packet numbers are in order, but for retransmissions of the
            // handshake.
            None => self
                .packets
                .binary_search_by_key(&number, |p| p.number)
                .ok()
                .filter(|i| !self.packets[*i].done)
                .or_else(|| self.packets.iter().position(|p| p.number == number && !p.done))?,
        };
        let packet = &mut self.packets[found];
        packet.done = true;
        let sent = packet.sent;
        self.inflight -= sent.bytes;
        while self.packets.front().is_some_and(|p| p.done) {
            self.packets.pop_front();
        }
        Some(sent)
    }

    /// One packet of an ACK frame was newly acknowledged. It was sent at `sent`.
    pub fn on_packet_acked(&mut self, now: Instant, sent: Instant, number: u64, app_limited: bool) {
        self.advance(now);
        let prior = self.inflight;
        let Some(packet) = self.take(number, Some(sent)) else { return };
        if self.batch.newest.is_none() {
            self.batch.prior_inflight = prior;
        }
        self.batch.bytes += packet.bytes;
        self.batch.app_limited = app_limited;
        self.batch.used |= packet.mark <= self.used;
        if self.batch.newest.is_none_or(|n| n.mark <= packet.mark) {
            self.batch.newest = Some(packet);
            self.batch.largest = number;
        }
    }

    fn sample(&mut self, rtt: Span) {
        self.latest_rtt = Some(rtt);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        // RFC 9002 §5.3 without the acknowledgement delay, as TCP measures.
        self.srtt = Some(self.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
    }

    /// All packets of an ACK frame were handed over. `largest` is the largest packet number that the peer has
    /// acknowledged; the frame brings a round-trip sample if it is new.
    pub fn on_ack_end(&mut self, now: Instant, largest: Option<u64>) {
        self.advance(now);
        let batch = std::mem::take(&mut self.batch);
        let Some(newest) = batch.newest else { return };
        let samples = largest.is_none_or(|l| l == batch.largest);
        self.acknowledge(batch, newest, samples);
    }

    /// Tells the controller what an ACK frame acknowledged. `samples` is true if it brings a round-trip
    /// sample.
    fn acknowledge(&mut self, batch: Batch, mut newest: Sent, samples: bool) {
        if newest.at < self.path_since {
            return;
        }
        newest.at = newest.at.min(self.now);
        self.delivered += batch.bytes;
        self.delivered_at = self.now;
        self.app_limited = batch.app_limited;
        if newest.mark > self.newest.mark {
            self.newest = newest;
            self.first_sent_at = newest.at;
        }
        let rtt = samples.then(|| self.now.since(newest.at));
        if let Some(rtt) = rtt {
            self.sample(rtt);
        }
        let Some(established) = self.established else { return self.establish(rtt) };
        // The controller was not told that these packets of the handshake were sent.
        if newest.at < established {
            return;
        }
        if let Some((since, false)) = self.episode
            && newest.at > since
        {
            self.episode = Some((since, true));
            let change = self.control.on_recovered(&self.facts(), &Recovery::default());
            self.note(change);
        }
        let cwnd_limited = std::mem::take(&mut self.cwnd_limited);
        let by_application = match self.limited {
            Limited::Stack | Limited::Draft => batch.app_limited && !cwnd_limited,
            Limited::Neqo => !batch.used,
        };
        let flight = self.max_flight;
        let most = if self.in_slow_start() { flight * 2 } else { flight + self.mss };
        let most = Some(most).filter(|_| by_application && self.limited == Limited::Draft);
        let by_application = by_application && most.is_none_or(|most| self.state().cwnd >= most);
        let limit = if by_application { Limit::Application } else { Limit::Window };
        let mut ack = Ack::new(newest, batch.bytes, batch.prior_inflight);
        ack.upto = self.newest.mark;
        ack.rtt = rtt;
        ack.limit = limit;
        ack.most = most;
        let change = self.control.on_ack(&self.facts(), &ack);
        self.note(change);
    }

    /// The first acknowledgement ends the handshake. Its packets are forgotten: the stack discards their keys
    /// without a word to the controller.
    fn establish(&mut self, rtt: Option<Span>) {
        self.established = Some(self.now);
        self.packets.retain(|p| !p.done);
        let mut handshake = Handshake::new(rtt);
        handshake.remembered = self.remembered;
        let change = self.control.on_established(&self.facts(), &handshake);
        self.note(change);
    }

    /// The stack says how many bytes are in flight: packets of the handshake leave without another word.
    pub fn set_inflight(&mut self, inflight: Bytes) {
        self.inflight = inflight.min(self.sent_total);
    }

    /// A packet was declared lost.
    pub fn on_packet_lost(&mut self, now: Instant, number: u64) {
        self.advance(now);
        let Some(sent) = self.take(number, None) else { return };
        self.lost += sent.bytes;
        self.counters.lost_packets += 1;
        self.first_loss.get_or_insert(self.now);
    }

    /// Packets were declared lost ([`Signal::Loss`], or [`Signal::Timeout`] for persistent congestion), the
    /// newest of which was sent at `sent`, or the peer reported marks ([`Signal::Ecn`]).
    pub fn on_congestion(&mut self, now: Instant, sent: Instant, signal: Signal, lost: Bytes) {
        self.advance(now);
        if self.established.is_none() || sent < self.path_since {
            return;
        }
        let first = self.episode.is_none_or(|(since, _)| sent > since);
        let ecn = signal == Signal::Ecn;
        if ecn {
            self.first_mark.get_or_insert(self.now);
        }
        if first {
            self.episode = Some((self.now, false));
            self.counters.episodes += 1;
            self.counters.ecn_episodes += u64::from(ecn);
        }
        self.counters.persistent += u64::from(signal == Signal::Timeout);
        let lost = lost.min(self.lost);
        let congestion = Congestion::new(signal, first, self.newest).losing(lost, 1);
        let change = self.control.on_congestion(&self.facts(), &congestion);
        self.note(change);
    }

    /// The peer's counter of marked packets has increased by `packets`. To be called before
    /// [`Host::on_congestion`] for the same ACK frame.
    pub fn on_marks(&mut self, packets: u64) {
        let most = self.sent_total;
        self.marked = self.marked.map(|m| m + (self.mss * packets.min(self.counters.packets)).min(most - m));
    }

    /// Every packet that the last episode declared lost has been acknowledged after all.
    pub fn on_spurious(&mut self) {
        let Some((since, _)) = self.episode else { return };
        self.episode = Some((since, true));
        self.counters.spurious += 1;
        // The loss with which the episode began was none.
        self.first_loss = self.first_loss.filter(|first| *first < since);
        let undone = Recovery::new(Bytes::ZERO, true);
        let change = self.control.on_recovered(&self.facts(), &undone);
        self.note(change);
    }

    /// The peer's address has changed, in a way that leaves the congestion state in force (RFC 9000 §9.4: its
    /// port alone). The stack says nothing more about packets that were sent before.
    pub fn on_new_path(&mut self) {
        self.packets.clear();
        self.inflight = Bytes::ZERO;
        self.batch = Batch::default();
    }

    /// The connection moved to another path at `now`, for which RFC 9000 §9.4 asks for a new controller. It
    /// was made with an initial window of [`INITIAL_PACKETS`] packets of `mss` bytes. `rtt` is the round-trip
    /// time of the new path, as the exchange of `PATH_CHALLENGE` and `PATH_RESPONSE` showed it, if known.
    /// What is still in flight on the old path is no longer counted; its acknowledgements and losses change
    /// nothing. Counters and the recorded exit continue with the new path.
    pub fn on_path_change(&mut self, now: Instant, control: C, mss: Bytes, rtt: Option<Span>) {
        self.advance(now);
        self.on_new_path();
        self.control = Checked::new(control);
        self.mss = mss.max(Bytes(1));
        (self.srtt, self.latest_rtt, self.min_rtt) = (None, None, None);
        (self.episode, self.remembered, self.exit) = (None, None, None);
        self.restarted = false;
        (self.path_since, self.delivered_at, self.first_sent_at) = (self.now, self.now, self.now);
        self.cwnd_limited = false;
        if let Some(rtt) = rtt {
            self.sample(rtt);
        }
        if self.established.is_some() {
            self.busy = None;
            self.establish(rtt);
        }
    }

    /// Packets may have `mss` bytes from now on.
    pub fn on_mtu(&mut self, mss: Bytes) {
        self.mss = mss.max(Bytes(1));
    }
}
