//! The sending half: its state, and what its application, its peer's SYN and its controller make of it.

mod ack;
mod recovery;
mod timers;
mod transmit;

use super::pacer::Pacer;
use super::profile::Profile;
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use slowstart::control::{Change, Controller, Exited};
use slowstart::units::{Bytes, Instant, Mark, Rate, Span};
use slowstart::view::{Facts, Handshake, HostQueue, Limit};

/// What is to leave: the endpoint puts a header on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Offset of its first byte.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// The sender is done.
    pub fin: bool,
    /// It has been sent before.
    pub retransmission: bool,
    /// How many such segments leave, one after the other in sequence, of which this is the first.
    pub times: u32,
}

/// An acknowledgement, with offsets in place of sequence numbers.
#[derive(Copy, Clone, Debug, Default)]
pub struct Incoming {
    /// Everything before has arrived.
    pub ack: u64,
    /// The peer takes data up to here.
    pub window_end: u64,
    /// What it holds beyond, the newest first.
    pub blocks: [(u64, u64); super::segment::SACK_BLOCKS],
    /// How many of these are set.
    pub sacks: usize,
    /// The timestamp it echoes, in milliseconds.
    pub echo: Option<u32>,
}

/// The state of loss recovery (`enum tcp_ca_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is amiss.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// Lost segments are being sent again.
    Recovery,
    /// The retransmission timer fired.
    Loss,
}

/// What a record of a connection wants to know.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The startup was left.
    Exited(Exited),
    /// That was taken back: the loss was none.
    Resumed,
    /// A loss episode began.
    Loss,
    /// It is over; `undone` if nothing had been lost.
    Recovered {
        /// Nothing had been lost.
        undone: bool,
    },
    /// The retransmission timer fired.
    Timeout,
    /// A tail loss probe left.
    Probe,
    /// The host's interface queue had no room.
    Stall,
}

/// The sender's own interface: what the host sees of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its queue.
    pub queue: HostQueue,
    /// Full packets it still has room for.
    pub room: u64,
    /// Its rate.
    pub rate: Rate,
}

/// What the timer is for; as in Linux there is one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Timer {
    /// Nothing: it does not run.
    Off,
    Retransmit,
    Probe,
    Reordering,
    ZeroWindow,
}

/// Proportional rate reduction (RFC 6937; `tcp_cwnd_reduction`), in segments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prr {
    prior: u64,
    delivered: u64,
    sent: u64,
    cwnd: u64,
}

/// What is needed to see that a loss was none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Undo {
    /// What had been acknowledged when the episode began.
    since: u64,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    open: Option<u32>,
    /// When the first left, on the timestamp clock.
    first: Option<u32>,
    retransmitted: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Probe {
    /// What had been sent when it left.
    high: u64,
    /// It was a retransmission.
    retransmission: bool,
}

/// What holds back a segment that is not full.
#[derive(Copy, Clone, Debug, Default)]
struct Hold {
    cork: bool,
    nagle: bool,
}

/// Segments that leave before pacing begins.
const UNPACED: u64 = 10;

/// Counters of a connection.
#[derive(Copy, Clone, Debug, Default)]
#[repr(C)]
pub struct Counters {
    /// Segments sent, retransmissions included.
    pub packets: u64,
    /// The most bytes in flight.
    pub peak_inflight: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Loss episodes entered without a timeout.
    pub recoveries: u64,
    /// Loss episodes that proved to be none.
    pub undone: u64,
    /// How often the host's interface queue did.
    pub stalls: u64,
    /// How often the peer's receive window stopped a burst.
    pub peer_limited: u64,
    /// Number of expected ACKs whose effect was compared with that of the general path.
    #[cfg(debug_assertions)]
    pub compared_acks: u64,
}

/// The sending half of a connection.
///
/// In the order of use: first what even an end that only receives is asked for with each packet, then what each
/// acknowledgement needs, so that among many flows a packet waits for few lines of memory.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Sender<C> {
    /// The next offset to send, and the end of what the application has written.
    next: u64,
    end: u64,
    /// When the timer fires, or the controller wants to be called: what each packet asks, kept as those two change.
    deadline: Instant,
    /// When the pacer lets the next burst go, if that is what sending waits for.
    paced: Instant,
    /// What happened since it was last asked.
    pub events: Vec<(Instant, Event)>,
    ready: bool,
    timer: Timer,
    phase: Phase,
    hold: Hold,
    // tcp_cwnd_validate: whether the window was used, within the last window of data.
    cwnd_limited: bool,
    /// What else held it back.
    limited_by: Limit,
    /// The application has closed: a FIN stands at `end`.
    closed: bool,
    /// The controller's window in segments, and the window in bytes from which it was computed. Written by
    /// `sync_state` alone, which divides only if the window has changed.
    cwnd: u64,
    cwnd_bytes: Bytes,
    board: Scoreboard,
    window_end: u64,
    usage_mark: u64,
    max_out: u32,
    /// Duplicates counted in place of blocks, without selective acknowledgement.
    duplicates: u32,
    /// The newest round-trip sample; [`Span::MAX`] before the first.
    last_rtt: Span,
    last_sent: Instant,
    /// Delivered bytes up to which samples are the application's doing.
    app_limited_until: u64,
    iw: Bytes,
    /// When the timer fires; never, while it is off.
    timer_at: Instant,
    rtt: Rtt,
    pacer: Pacer,
    rack: Rack,
    probe: Option<Probe>,
    prr: Option<Box<Prr>>,
    /// What the handshake told, until there is something to send.
    handshake: Option<Box<Handshake>>,
    /// The host's interface, where its queue is the one that fills.
    pub(crate) interface: Option<Interface>,
    undo: Option<Undo>,
    profile: Profile,
    /// What has been counted.
    pub counters: Counters,
    /// What had been sent when the present episode began.
    high: u64,
    /// The end of the last segment sent that was not full (`snd_sml`).
    small: u64,
    control: C,
    /// What had been sent when the interface last had no room: one stall a round trip is congestion.
    stalled: u64,
}

impl<C: Controller + Clone> Sender<C> {
    /// Before the handshake. `control` has its initial window already.
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
            window_end: 1,
            phase: Phase::Open,
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
            usage_mark: 0,
            limited_by: Limit::Application,
            app_limited_until: 0,
            ready: false,
            handshake: None,
            interface: None,
            stalled: 0,
            events: Vec::new(),
            counters: Counters::default(),
        }
    }

    // What others may see.

    /// The controller.
    pub fn control(&self) -> &C {
        &self.control
    }
    /// The round-trip estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }
    /// The segments in flight.
    pub fn board(&self) -> &Scoreboard {
        &self.board
    }
    /// The pacer.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
    /// How loss is told from reordering.
    pub fn rack(&self) -> &Rack {
        &self.rack
    }
    /// The state of recovery.
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// The window in force, in segments: that of rate reduction while it lasts.
    pub fn window(&self) -> u64 {
        self.prr.as_ref().map_or(self.cwnd, |p| p.cwnd).max(1)
    }
    /// The next offset to send.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// The end of what there is to send: the FIN counts as one.
    fn data_end(&self) -> u64 {
        self.end + u64::from(self.closed)
    }
    /// Everything written is acknowledged, the FIN included if there is one.
    pub fn done(&self) -> bool {
        self.board.una() == self.data_end()
    }
    /// When the timer fires, or the algorithm wants to be called; [`Instant::NEVER`] for not at all.
    pub fn timer(&self) -> Instant {
        self.deadline
    }
    /// When the pacer lets the next burst go, if that is what sending waits for; else [`Instant::NEVER`].
    pub fn paced(&self) -> Instant {
        self.paced
    }
    /// The newest round-trip sample.
    pub fn last_rtt(&self) -> Option<Span> {
        (self.last_rtt < Span::MAX).then_some(self.last_rtt)
    }

    /// Payload of a full segment, bytes.
    pub fn mss(&self) -> u32 {
        self.profile.mss
    }
    /// Bytes written that have not been sent.
    pub fn unsent(&self) -> u64 {
        self.end - self.next.min(self.end)
    }
    /// The end of what the application has written.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// Bytes the peer takes beyond what it acknowledged.
    pub fn peer_window(&self) -> u64 {
        self.window_end.saturating_sub(self.board.una())
    }
    /// The congestion window has room, the peer's window has none for what is next.
    pub fn peer_limited(&self) -> bool {
        let len = u64::from(self.profile.mss).min(self.unsent());
        len > self.window_end.saturating_sub(self.next)
            && u64::from(self.board.packets_inflight()) < self.window()
    }
    /// The application has written all it will.
    pub fn closing(&self) -> bool {
        self.closed
    }

    fn segment(&self) -> Bytes {
        Bytes(u64::from(self.profile.mss))
    }

    fn facts(&self, now: Instant) -> Facts {
        Facts {
            now,
            mss: self.segment(),
            iw: self.iw,
            inflight: self.board.inflight(),
            delivered: Bytes(self.board.delivered),
            lost: Bytes(self.board.lost_total),
            next: Mark(self.next),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            rwnd: Bytes(self.window_end.saturating_sub(self.board.una())),
            pacing_rate: self.pacer.rate(),
            pacing_on: self.pacer.on(),
            gso_max: Bytes(u64::from(self.profile.tso)),
            unsent: Some(Bytes(self.end - self.next.min(self.end))),
            host_queue: self.interface.map(|i| i.queue),
            nic_rate: self.interface.map(|i| i.rate),
            supports_pacing: true,
            growth: self.profile.growth,
            in_recovery: self.phase == Phase::Recovery,
        }
    }

    fn push_event(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }

    /// Takes what the controller says. Its window in segments is a division, and mostly it has not changed.
    fn sync_state(&mut self) {
        let bytes = self.control.state().cwnd;
        if bytes != self.cwnd_bytes {
            self.cwnd = bytes.units(self.segment());
            self.cwnd_bytes = bytes;
        }
        self.update_deadline();
    }

    /// After the timer was set, or the controller heard.
    fn update_deadline(&mut self) {
        let wake = self.control.state().wake.unwrap_or(Instant::NEVER);
        self.deadline = self.timer_at.min(wake);
    }

    fn apply_change(&mut self, now: Instant, change: Change) {
        self.sync_state();
        if let Some(e) = change.exited {
            self.push_event(now, Event::Exited(e));
        }
        if change.resumed {
            self.push_event(now, Event::Resumed);
        }
    }

    // What the application does.

    /// The application writes this many bytes more.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(!self.closed, "written after close");
        self.end = self.end.saturating_add(bytes);
    }

    /// The application has written all it will.
    pub fn close(&mut self) {
        if self.profile.fin {
            self.closed = true;
        }
    }

    /// Holds back a segment that is not full: always (`TCP_CORK`, `MSG_MORE`), or while one is not acknowledged (Nagle,
    /// RFC 9293 §3.7.4, with Minshall's: `tcp_nagle_check`). Neither to begin with.
    pub fn set_hold(&mut self, cork: bool, nagle: bool) {
        self.hold = Hold { cork, nagle };
    }

    // What the handshake says.

    /// What the peer's SYN leaves of the profile; nothing has been sent.
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

    /// The connection is established.
    pub fn established(&mut self, now: Instant, hs: &Handshake, window_end: u64) {
        self.window_end = window_end;
        self.last_sent = now;
        if let Some(rtt) = hs.rtt {
            self.rtt.sample(rtt, Mark(self.board.una()), Mark(self.next));
        }
        if hs.syn_losses > 0 {
            self.rtt.after_syn_loss();
        }
        self.ready = true;
        self.handshake = Some(Box::new(*hs));
    }

    /// From now on this controller has the say. The window is held for used: whoever takes over knows that it was.
    pub fn replace_controller(&mut self, control: C) {
        self.control = control;
        self.sync_state();
        (self.cwnd_limited, self.max_out, self.usage_mark) = (true, self.board.out.packets, self.next);
        self.app_limited_until = 0;
        self.update_pacer();
    }

    /// The first data is there: now the algorithm is told of the connection, as a server accepts before it answers.
    #[cold]
    fn start_controller(&mut self, now: Instant) {
        let Some(hs) = self.handshake.take() else { return };
        let change = self.control.on_established(&self.facts(now), &hs);
        self.apply_change(now, change);
        self.update_pacer();
    }

    fn update_pacer(&mut self) {
        let out = Bytes(self.board.out.bytes);
        self.pacer.update(&self.profile, self.control.state(), out, &self.rtt);
    }
}
