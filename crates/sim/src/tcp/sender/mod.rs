//! The sending half of a connection: its state, and its interface to application, handshake and controller.

mod ack;
mod buffers;
mod duplicate;
mod frto;
mod limits;
mod recovery;
mod small_queues;
mod timers;
mod transmit;

use super::accecn::EcnOption;
use super::ecn::EcnSender;
use super::pacer::Pacer;
use super::profile::Profile;
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::{Record, Scoreboard};
use crate::path::Interface;
use crate::ring::Ring;
use buffers::Buffers;
use frto::Frto;
pub use limits::{LimitedBy, Limits};
use slowstart::control::{Change, Controller, Exited};
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Facts, Handshake, HostQueue, Limit};

/// Segments to be sent, without their headers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Offset of the first byte.
    pub start: u64,
    /// Payload of each segment, bytes.
    pub len: u32,
    /// True if it is a FIN.
    pub fin: bool,
    /// True if it has been sent before.
    pub retransmission: bool,
    /// True if the first is to say that the window was reduced (CWR).
    pub cwr: bool,
    /// Number of consecutive segments, of which this is the first.
    pub times: u32,
    /// True if the last of them pushes (PSH): it ends what was written, or a burst of several, so that
    /// receive offload hands it over (`__tcp_transmit_skb`).
    pub push: bool,
}

/// An ACK, with offsets in place of sequence numbers.
#[derive(Copy, Clone, Debug, Default)]
pub struct Incoming {
    /// The cumulative acknowledgement: the offset of the next byte expected.
    pub ack: u64,
    /// The end of the peer's receive window.
    pub window_end: u64,
    /// SACK blocks, the newest first.
    pub blocks: [(u64, u64); super::segment::SACK_BLOCKS],
    /// Number of valid `blocks`.
    pub sacks: usize,
    /// The echoed timestamp, milliseconds.
    pub echo: Option<u32>,
    /// The flags of the header.
    pub flags: u8,
    /// The `AccECN` option, if it had one.
    pub option: Option<EcnOption>,
}

/// The state of loss recovery (`enum tcp_ca_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss and no reordering.
    Open,
    /// Something was delivered out of order.
    Disorder,
    /// The window is being reduced because of a mark (`TCP_CA_CWR`).
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// The retransmission timer fired.
    Loss,
}

/// An event for the record of a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The startup ended, for this reason.
    Exited(Exited),
    /// The startup resumed: the loss that ended it was spurious.
    Resumed,
    /// The avoidance returned to slow start.
    Restarted,
    /// The sender learned of a mark and reduces its window.
    Mark,
    /// Loss recovery began: the window is reduced.
    Loss,
    /// Loss recovery ended: all that was sent before it is acknowledged.
    Recovered {
        /// True if the loss was spurious.
        undone: bool,
    },
    /// The retransmission timer fired.
    Timeout,
    /// A tail loss probe was sent.
    Probe,
    /// The queue of the host's interface was full.
    Stall,
}

/// The purpose of the timer; as in Linux there is one timer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Timer {
    /// The timer is not set.
    Off,
    Retransmit,
    Probe,
    Reordering,
    ZeroWindow,
}

/// Proportional rate reduction, in segments (RFC 6937; `tcp_cwnd_reduction`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prr {
    prior: u64,
    delivered: u64,
    sent: u64,
    cwnd: u64,
}

/// The state for detecting spurious losses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Undo {
    /// The acknowledged offset when recovery began.
    since: u64,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    open: Option<u32>,
    /// When the first retransmission left, in milliseconds of the timestamp clock.
    first: Option<u32>,
    retransmitted: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Probe {
    /// The next offset to send when the probe left.
    high: u64,
    /// True if it was a retransmission.
    retransmission: bool,
}

/// What holds back a segment that is not full.
#[derive(Copy, Clone, Debug, Default)]
struct Hold {
    cork: bool,
    nagle: bool,
}

/// Number of segments sent before pacing begins.
const UNPACED: u64 = 10;

/// Counters of a connection. Those that every ACK needs come first.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Segments sent, retransmissions included.
    pub packets: u64,
    /// Maximum bytes in flight.
    pub peak_inflight: u64,
    /// Bytes delivered in packets that were marked.
    pub marked: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Timeouts of the retransmission timer.
    pub timeouts: u64,
    /// Recoveries that did not begin with a timeout.
    pub recoveries: u64,
    /// Recoveries from losses that proved spurious.
    pub undone: u64,
    /// Reductions of the window because of marks.
    pub mark_responses: u64,
    /// How often the queue of the host's interface was full.
    pub stalls: u64,
    /// Expected ACKs whose effect was compared with that of the general path.
    #[cfg(debug_assertions)]
    pub compared_acks: u64,
}

/// The sending half of a connection.
///
/// Fields are in order of use: first those read for each packet even at an end that only receives, then those
/// needed for each ACK (docs/dev/engine.md, "Memory layout").
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Sender<C> {
    /// The next offset to send, and the end of what the application has written.
    next: u64,
    end: u64,
    /// The earlier of the timer and the controller's wake-up; read with each packet, so it is updated when
    /// either changes.
    deadline: Instant,
    /// When the pacer allows the next burst, if pacing is what sending waits for; else [`Instant::NEVER`].
    paced: Instant,
    /// Events not yet taken by the owner.
    pub events: Vec<(Instant, Event)>,
    ready: bool,
    timer: Timer,
    phase: Phase,
    frto: Frto,
    hold: Hold,
    // tcp_cwnd_validate: true if the window limited sending within the last window of data.
    cwnd_limited: bool,
    /// What else limited sending.
    limited_by: Limit,
    /// True if the application has closed: a FIN is at offset `end`.
    closed: bool,
    /// True if the application will write no more, whether a FIN follows or not.
    finished: bool,
    /// True until the startup ends, and once the avoidance has returned to slow start.
    in_startup: bool,
    /// True once a timeout or a pause has begun slow start up to the threshold again.
    regrows: bool,
    /// The controller's window in segments, and the window in bytes from which it was computed. Written by
    /// `sync_state` alone, which divides only if the window has changed.
    cwnd: u64,
    cwnd_bytes: Bytes,
    /// What the peer says of marks.
    pub(crate) ecn: EcnSender,
    board: Scoreboard,
    window_end: u64,
    usage_mark: u64,
    /// The next offset to send when the window was last full.
    window_full_at: u64,
    max_out: u32,
    /// The most bytes in flight since the window was last reduced, at first the initial window (maxFS of
    /// draft-ietf-ccwg-ratelimited-increase).
    max_flight: Bytes,
    /// Duplicate ACKs, in place of SACK blocks, for a stack without SACK.
    duplicates: u32,
    /// The newest RTT sample; [`Span::MAX`] before the first.
    last_rtt: Span,
    last_sent: Instant,
    /// Delivered bytes up to which delivery samples are limited by the application.
    app_limited_until: u64,
    iw: Bytes,
    /// When the timer fires; [`Instant::NEVER`] while it is off.
    timer_at: Instant,
    rtt: Rtt,
    pacer: Pacer,
    rack: Rack,
    probe: Option<Probe>,
    prr: Option<Box<Prr>>,
    limits: Limits,
    /// The result of the handshake, until the first data is sent.
    handshake: Option<Box<Handshake>>,
    buffers: Buffers,
    /// The state of the host's interface, if that is the bottleneck.
    pub interface: Option<Interface>,
    profile: Profile,
    /// What was sent, lost and acknowledged so far.
    pub counters: Counters,
    /// The next offset to send when the current recovery began.
    high: u64,
    /// The end of the last segment sent that was not full (`snd_sml`).
    small: u64,
    control: C,
    undo: Option<Undo>,
    /// Segments that the peer reported to have twice (`dsack_dups`).
    duplicated: u64,
    /// The next offset to send when the interface was last full: it signals congestion once per RTT.
    stalled: u64,
}

/// The memory that a sender had allocated.
pub(crate) struct Memory {
    segments: Ring<Record>,
    events: Vec<(Instant, Event)>,
}

impl<C: Controller + Clone> Sender<C> {
    /// A sender before the handshake. `control` has its initial window.
    pub fn new(profile: &Profile, control: C) -> Self {
        Self {
            profile: *profile,
            iw: control.state().cwnd,
            cwnd: control.state().cwnd.units(Bytes(u64::from(profile.mss))),
            cwnd_bytes: control.state().cwnd,
            board: Scoreboard::new(1, profile.mss, control.needs_delivery_state()),
            control,
            rack: Rack::default(),
            rtt: Rtt::new(profile.rto_rule, profile.rto_min),
            pacer: Pacer::new(profile),
            next: 1,
            end: 1,
            closed: false,
            finished: false,
            in_startup: true,
            regrows: false,
            window_end: 1,
            phase: Phase::Open,
            frto: Frto::Off,
            duplicated: 0,
            high: 0,
            prr: None,
            undo: None,
            probe: None,
            timer: Timer::Off,
            timer_at: Instant::NEVER,
            deadline: Instant::NEVER,
            duplicates: 0,
            last_sent: Instant::ZERO,
            hold: Hold::default(),
            small: 0,
            paced: Instant::NEVER,
            last_rtt: Span::MAX,
            cwnd_limited: false,
            max_out: 0,
            max_flight: Bytes::ZERO,
            usage_mark: 0,
            window_full_at: 0,
            limits: Limits::default(),
            limited_by: Limit::Application,
            app_limited_until: 0,
            ready: false,
            handshake: None,
            buffers: Buffers::default(),
            ecn: EcnSender::default(),
            interface: None,
            stalled: 0,
            events: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Takes the memory of a connection that is over, for [`Sender::use_memory`].
    pub(crate) fn take_memory(&mut self) -> Memory {
        Memory { segments: self.board.take_memory(), events: std::mem::take(&mut self.events) }
    }

    /// Uses the memory of a connection that is over, before anything is sent.
    pub(crate) fn use_memory(&mut self, memory: Memory) {
        self.board.use_memory(memory.segments);
        self.events = memory.events;
        self.events.clear();
    }

    // State for other parts.

    /// Returns the congestion controller.
    pub fn control(&self) -> &C {
        &self.control
    }
    /// The bytes that the peer says arrived with ECT(1), CE and ECT(0) (`AccECN`).
    pub fn reported_bytes(&self) -> [u32; 3] {
        self.ecn.reported_bytes()
    }

    /// Returns the estimator of the round-trip time.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }
    /// The segments in flight.
    pub fn board(&self) -> &Scoreboard {
        &self.board
    }
    /// Returns the pacer of new data.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
    /// The state of RACK.
    pub fn rack(&self) -> &Rack {
        &self.rack
    }
    /// The state of loss recovery.
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// The window in force, segments: that of proportional rate reduction during recovery.
    pub fn window(&self) -> u64 {
        self.prr.as_ref().map_or(self.cwnd, |p| p.cwnd).max(1)
    }
    /// The next offset to send.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// The end of what is to be sent; a FIN counts as one.
    fn data_end(&self) -> u64 {
        self.end + u64::from(self.closed)
    }
    /// The end of what the peer's window and the send buffer allow to be sent.
    fn send_limit(&self) -> u64 {
        self.window_end.min(self.board.una().saturating_add(self.profile.send_buffer.0))
    }
    /// True if everything written is acknowledged, the FIN included.
    pub fn done(&self) -> bool {
        self.board.una() == self.data_end()
    }
    /// The earlier of the timer and the controller's wake-up; [`Instant::NEVER`] if neither is set.
    pub fn timer(&self) -> Instant {
        self.deadline
    }
    /// When the pacer allows the next burst, if pacing is what sending waits for; else [`Instant::NEVER`].
    pub fn paced(&self) -> Instant {
        self.paced
    }
    /// The newest RTT sample.
    pub fn last_rtt(&self) -> Option<Span> {
        (self.last_rtt < Span::MAX).then_some(self.last_rtt)
    }

    /// Payload of a full segment, bytes.
    pub fn mss(&self) -> u32 {
        self.profile.mss
    }
    /// Bytes written and not yet sent.
    pub fn unsent(&self) -> u64 {
        self.end - self.next.min(self.end)
    }
    /// The end offset of what the application has written.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// The peer's receive window: bytes beyond the acknowledgement.
    pub fn peer_window(&self) -> u64 {
        self.window_end.saturating_sub(self.board.una())
    }
    /// True if the peer's window, and not the congestion window, stops the next segment.
    pub fn peer_limited(&self) -> bool {
        let len = u64::from(self.profile.mss).min(self.unsent());
        len > self.window_end.saturating_sub(self.next)
            && u64::from(self.board.packets_inflight()) < self.window()
    }
    /// True if the application has closed.
    pub fn closing(&self) -> bool {
        self.closed
    }

    fn segment(&self) -> Bytes {
        Bytes(u64::from(self.profile.mss))
    }

    fn facts(&self, now: Instant) -> Facts {
        let mut f = Facts::new(self.segment(), self.iw);
        f.now = now;
        f.inflight = self.board.inflight();
        f.delivered = Bytes(self.board.delivered);
        f.lost = Bytes(self.board.lost_total);
        f.marked = Some(Bytes(self.counters.marked));
        f.next = SendOrder::new(self.next);
        f.unacked = Some(Bytes(self.next.saturating_sub(self.board.una())));
        f.srtt = self.rtt.srtt();
        f.min_rtt = self.rtt.min();
        f.rwnd = Bytes(self.window_end.saturating_sub(self.board.una()));
        f.pacing_rate = self.pacer.rate();
        f.pacing_on = self.pacer.on();
        f.gso_max = Bytes(u64::from(self.profile.tso));
        f.unsent = Some(Bytes(self.end - self.next.min(self.end)));
        (f.host_queue, f.nic_rate) = self.interface.as_ref().map_or((None, None), Self::interface_facts);
        f.supports_pacing = true;
        f.growth = self.profile.growth;
        f.in_recovery = self.phase != Phase::Open && self.withholds_growth();
        f
    }

    /// A function of its own so that these fields are not read where there is no interface.
    #[cold]
    #[inline(never)]
    fn interface_facts(i: &Interface) -> (Option<HostQueue>, Option<Rate>) {
        (Some(i.queue), Some(i.rate))
    }

    #[cold]
    fn withholds_growth(&self) -> bool {
        match self.phase {
            Phase::Recovery => true,
            Phase::Cwr => !self.control.grows_between_marks(),
            _ => false,
        }
    }

    fn push_event(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }

    /// Takes the controller's window and wake-up. To be called after each call of the controller.
    fn sync_state(&mut self) {
        let bytes = self.control.state().cwnd;
        if bytes != self.cwnd_bytes {
            if bytes < self.cwnd_bytes {
                self.max_flight = Bytes::ZERO;
            }
            self.cwnd = bytes.units(self.segment());
            self.cwnd_bytes = bytes;
        }
        self.update_deadline();
    }

    /// Updates `deadline`, after the timer or the controller's wake-up changed.
    fn update_deadline(&mut self) {
        let wake = self.control.state().wake.unwrap_or(Instant::NEVER);
        self.deadline = self.timer_at.min(wake);
    }

    fn apply_change(&mut self, now: Instant, change: Change) {
        self.sync_state();
        if change.exited.is_some() || change.resumed || change.restarted {
            self.push_change(now, change);
        }
    }

    /// A function of its own so that all other calls of [`Sender::apply_change`] save no registers.
    #[cold]
    #[inline(never)]
    fn push_change(&mut self, now: Instant, change: Change) {
        self.in_startup = change.exited.is_none();
        if let Some(e) = change.exited {
            self.push_event(now, Event::Exited(e));
        }
        if change.resumed {
            self.push_event(now, Event::Resumed);
        }
        if change.restarted {
            self.push_event(now, Event::Restarted);
        }
    }

    // For the application.

    /// Appends `bytes` bytes to what is to be sent.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.closed, "written after close");
        self.end = self.end.saturating_add(bytes);
    }

    /// Ends what is sent: a FIN follows the last byte, if the stack sends one.
    pub fn close(&mut self) {
        self.finished = true;
        if self.profile.fin {
            self.closed = true;
        }
    }

    /// Sets what holds back a segment that is not full: `cork` always (`TCP_CORK`, `MSG_MORE`), `nagle` while
    /// such a segment is unacknowledged (RFC 9293 §3.7.4 with Minshall's modification: `tcp_nagle_check`).
    /// Both are off at first.
    pub fn set_hold(&mut self, cork: bool, nagle: bool) {
        self.hold = Hold { cork, nagle };
    }

    // For the handshake.

    /// Applies the options of the peer's SYN, before anything is sent.
    pub(super) fn negotiated(&mut self, mss: u32, sack: bool) {
        self.profile.sack = sack;
        if mss != self.profile.mss {
            self.iw = Bytes(self.iw.units(self.segment()) * u64::from(mss));
            self.profile.mss = mss;
            // The same bytes are another number of segments.
            self.cwnd_bytes = Bytes::ZERO;
            self.sync_state();
            self.board = Scoreboard::new(1, mss, self.control.needs_delivery_state());
            self.pacer = Pacer::new(&self.profile);
        }
    }

    /// Takes the result of the handshake.
    pub fn established(&mut self, now: Instant, hs: &Handshake, window_end: u64) {
        self.window_end = window_end;
        self.last_sent = now;
        if let Some(rtt) = hs.rtt {
            self.rtt.sample(rtt, SendOrder::new(self.board.una()), SendOrder::new(self.next));
        }
        if hs.syn_losses > 0 {
            self.rtt.after_syn_loss(self.profile.rto_lost_syn);
        }
        self.ready = true;
        self.limits.set(now, LimitedBy::Idle);
        self.handshake = Some(Box::new(*hs));
    }

    /// Replaces the controller. The window counts as used, since the caller knows that it was.
    pub fn replace_controller(&mut self, control: C) {
        self.control = control;
        self.in_startup = true;
        self.sync_state();
        (self.cwnd_limited, self.max_out, self.usage_mark) = (true, self.board.out.packets, self.next);
        self.app_limited_until = 0;
        self.update_pacer();
    }

    /// Starts the controller when the first data is to be sent.
    #[cold]
    fn start_controller(&mut self, now: Instant) {
        let Some(hs) = self.handshake.take() else { return };
        self.max_flight = self.iw;
        let mut facts = self.facts(now);
        if self.profile.iw_lost_syn && hs.syn_losses > 1 && !hs.spurious {
            facts.iw = Bytes(u64::from(self.profile.mss));
        }
        let change = self.control.on_established(&facts, &hs);
        self.apply_change(now, change);
        self.update_pacer();
    }

    fn update_pacer(&mut self) {
        let out = Bytes(self.board.out.bytes);
        self.pacer.update(&self.profile, self.control.state(), out, &self.rtt);
    }
}
