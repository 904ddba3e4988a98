//! One end of a connection: the handshake, the close, and both halves, with segments in and out.

mod arrival;
mod handshake;
mod header;

use super::backlog::Backlog;
use super::ecn::Feedback;
use super::gro::Gro;
use super::profile::Profile;
use super::receiver::Receiver;
use super::segment::{self, ACK, RST, Segment, Wire, milliseconds};
use super::sender::Sender;
use crate::path::Ecn;
use header::Header;
use slowstart::control::Controller;
use slowstart::units::{Instant, Span};
use slowstart::view::PathMemory;

/// The state of the connection. The state of the close is in the two halves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has been sent.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN arrived and a SYN-ACK was sent.
    SynReceived,
    /// Data may be sent.
    Established,
    /// The connection was reset, or the handshake given up.
    Failed,
}

/// Number of clocks of an endpoint.
pub const CLOCKS: usize = 3;
/// The index of the delayed ACK in [`Endpoint::deadlines`].
pub const DELAYED_ACK_CLOCK: usize = 1;

/// One end of a connection. Fields that every packet needs come first (docs/dev/engine.md, "Memory layout").
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint<C> {
    state: State,
    peer_closed_first: bool,
    /// How often our SYN or SYN-ACK was sent again (`num_retrans`).
    syn_losses: u8,
    /// How often its timer was the cause (`num_timeout`).
    syn_timeouts: u8,
    /// The remainder of the peer's Quick-Start request, to be reported to it (RFC 4782); 0 if none.
    rate_response: u8,
    /// The codepoint of the peer's SYN or SYN-ACK.
    peer_syn: Ecn,
    /// Segments that are merged before they are processed; `None` without receive offload.
    gro: Option<Box<Gro>>,
    /// Segments that wait for the CPU; `None` if it takes no time.
    backlog: Option<Box<Backlog>>,
    header: Header,
    /// The half that receives data.
    pub rx: Receiver,
    /// The half that sends data.
    pub tx: Sender<C>,
    profile: Profile,
    syn_timer: Option<Instant>,
    /// When our SYN or SYN-ACK was sent first, and last.
    syn_sent: Instant,
    syn_resent: Instant,
    /// What an earlier connection to this peer measured.
    pub remembered: Option<PathMemory>,
    /// No challenge ACK is sent before this time, nor a SYN-ACK to a repeated SYN.
    next_challenge_ack: Instant,
}

/// The least interval of challenge ACKs, and of answers to repeated SYNs (`tcp_invalid_ratelimit`).
const CHALLENGE_INTERVAL: Span = Span::millis(500);

impl<C: Controller + Clone> Endpoint<C> {
    /// An endpoint that waits for a SYN. `isn` is its initial sequence number.
    pub fn listening(profile: &Profile, control: C, isn: u32) -> Self {
        Self {
            profile: *profile,
            state: State::Listen,
            header: Header {
                plain: false,
                isn,
                peer_isn: 0,
                peer_scale: 0,
                // The smallest shift with which the largest window fits 16 bits (tcp_select_initial_window).
                scale: (0..14).find(|s| profile.max_window() >> s <= 0xffff).unwrap_or(14),
                scaled: true,
                sack: profile.sack,
                timestamps: profile.timestamps,
                feedback: Feedback::None,
                ect: [Ecn::NotEct; 4],
            },
            peer_syn: Ecn::NotEct,
            backlog: (profile.sack_cost > Span::ZERO).then(|| Box::new(Backlog::new(profile.sack_cost))),
            gro: (profile.gro > 0).then(|| Box::new(Gro::new(profile.gro, profile.gro_wait))),
            tx: Sender::new(profile, control),
            rx: Receiver::new(profile),
            syn_timer: None,
            syn_sent: Instant::ZERO,
            syn_resent: Instant::ZERO,
            syn_losses: 0,
            syn_timeouts: 0,
            rate_response: 0,
            remembered: None,
            peer_closed_first: false,
            next_challenge_ack: Instant::ZERO,
        }
    }

    /// An endpoint that is to [connect](Endpoint::connect).
    pub fn connecting(profile: &Profile, control: C, isn: u32) -> Self {
        Self { state: State::Closed, ..Self::listening(profile, control, isn) }
    }

    /// Lets the endpoint wait for a SYN.
    #[must_use]
    pub fn into_listening(self) -> Self {
        Self { state: State::Listen, ..self }
    }

    /// True if the peer's FIN arrived before this end closed: there is no TIME-WAIT after our FIN is
    /// acknowledged.
    pub fn peer_closed_first(&self) -> bool {
        self.peer_closed_first
    }

    /// Returns a segment that resets the connection.
    pub fn reset(&self, now: Instant) -> Segment {
        Segment {
            timestamp: self.header.timestamps.then(|| (milliseconds(now), self.rx.echo())),
            seq: segment::wrap(self.tx.next(), self.header.isn),
            ack: segment::wrap(self.rx.next(), self.header.peer_isn),
            flags: RST | ACK,
            ..Segment::default()
        }
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Number of retransmissions of our SYN or SYN-ACK, by its timer or, of a SYN-ACK, because the SYN came
    /// again.
    pub fn syn_losses(&self) -> u8 {
        self.syn_losses
    }

    /// Time from our first SYN or SYN-ACK to the last copy of it.
    pub fn syn_wait(&self) -> Span {
        self.syn_resent.since(self.syn_sent)
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        self.header.plain = state == State::Established
            && self.gro.is_none()
            && self.backlog.is_none()
            && self.header.feedback == Feedback::None
            && !self.rx.reads_slowly();
    }

    /// Sends the receive window, once the connection is established.
    pub(crate) fn send_window(&mut self, now: Instant, out: &mut impl Wire) {
        if self.state == State::Established {
            self.acknowledge(now, out);
        }
    }

    /// Sends an ACK without data.
    pub(crate) fn acknowledge(&mut self, now: Instant, out: &mut impl Wire) {
        let s = Segment {
            seq: segment::wrap(self.tx.next(), self.header.isn),
            flags: ACK,
            ecn: self.header.ect[2],
            rate_response: std::mem::take(&mut self.rate_response),
            ..Segment::default()
        };
        let held = self.rx.acknowledge(self.header.plain);
        self.header.send_train(now, &mut self.rx, held, s, 1, out);
    }

    /// The feedback about marks on which both ends agreed.
    pub fn feedback(&self) -> Feedback {
        self.header.feedback
    }

    /// Sends what may be sent now. To be called after the application wrote or closed.
    pub fn send(&mut self, now: Instant, out: &mut impl Wire) {
        if self.state == State::Established {
            let Self { tx, rx, header, .. } = self;
            tx.transmit(now, &mut header.packetizer(now, rx, out));
        }
    }

    /// When the delayed ACK, or what receive offload or the CPU holds, is due; [`Instant::NEVER`] if none is.
    #[inline]
    pub fn receiver_deadline(&self) -> Instant {
        let ack = self.rx.ack_deadline();
        if self.header.plain { ack } else { ack.min(self.held_deadline()) }
    }

    /// When what receive offload or the CPU holds is due. A plain endpoint has neither.
    #[inline(never)]
    fn held_deadline(&self) -> Instant {
        let merged = self.gro.as_ref().map_or(Instant::NEVER, |g| g.due());
        let busy = self.backlog.as_ref().map_or(Instant::NEVER, |b| b.due());
        merged.min(busy)
    }

    /// When [`Endpoint::on_timer`] is to be called next, for each clock; [`Instant::NEVER`] if it is not set.
    /// The clocks are: the timer of the sending half (retransmission, probe, reordering, and the
    /// controller's), the delayed ACK with receive offload, and the pacer. The first is mostly postponed, the
    /// second mostly cancelled, the third always fires, so a host should keep one pending event for each.
    pub fn deadlines(&self) -> [Instant; CLOCKS] {
        if self.state == State::Established {
            [self.tx.timer(), self.receiver_deadline(), self.tx.paced()]
        } else {
            [self.syn_timer.unwrap_or(Instant::NEVER), Instant::NEVER, Instant::NEVER]
        }
    }

    /// Processes the deadlines that are due.
    pub fn on_timer(&mut self, now: Instant, out: &mut impl Wire) {
        if self.syn_timer.is_some_and(|t| t <= now) {
            self.syn_timer = None;
            let p = &self.profile;
            // The linear retransmissions are additional (tcp_write_timeout).
            let most =
                if self.state == State::SynSent { p.syn_retries + p.syn_linear } else { p.synack_retries };
            if u32::from(self.syn_timeouts) >= most {
                self.set_state(State::Failed);
                return;
            }
            self.syn_timeouts += 1;
            self.syn_losses = self.syn_losses.saturating_add(1);
            self.send_syn(now, false, out);
        }
        if self.state != State::Established {
            return;
        }
        if !self.header.plain {
            self.process_merged(now, out);
            self.work(now, out);
        }
        if self.rx.on_timer(now) {
            self.acknowledge(now, out);
        }
        if self.tx.timer().min(self.tx.paced()) <= now {
            let Self { tx, rx, header, .. } = self;
            tx.on_timer(now, &mut header.packetizer(now, rx, out));
        }
    }
}
