//! One end of a connection: the handshake, the close, and both halves, with segments in and out.

use super::accecn::{EcnOption, FULL_OPTION, LATEST};
use super::backlog::Backlog;
use super::ecn::{ACE, Feedback, Prompt};
use super::gro::Gro;
use super::profile::Profile;
use super::receiver::{AckDecision, Receiver};
use super::rtt::RTO_INITIAL;
use super::segment::{self, ACK, CWR, FIN, Numbers, PSH, RST, SYN, Segment, Wire, milliseconds};
use super::sender::{Incoming, Outgoing, Sender};
use crate::path::Ecn;
use slowstart::control::Controller;
use slowstart::units::{Instant, Span};
use slowstart::view::{Handshake, PathMemory};

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

/// Header values that the handshake negotiated.
#[derive(Clone, Debug)]
struct Header {
    isn: u32,
    peer_isn: u32,
    peer_scale: u8,
    scale: u8,
    /// True if both ends use window scaling (RFC 7323 §2.2); otherwise neither does.
    scaled: bool,
    sack: bool,
    timestamps: bool,
    /// The feedback about marks on which both ends agreed.
    feedback: Feedback,
    /// The codepoint of new data, of data sent again, and (twice) of all else.
    ect: [Ecn; 4],
    /// True if the connection is established, without receive offload, ECN, a slow reader and a CPU that takes time. Written by
    /// `set_state` alone.
    plain: bool,
}

/// The window to advertise and the flags about marks, for a connection that is not plain.
#[inline(never)]
fn special_state(now: Instant, rx: &mut Receiver) -> (u64, u8) {
    (rx.advertise_window(now), rx.ecn.flags)
}

impl Header {
    /// Completes `s` with the acknowledgement number, the window, the timestamp and, if `held`, SACK blocks, and sends
    /// it as a train of `n` consecutive segments. Always inlined, so that the segment stays in registers
    /// (docs/dev/engine.md).
    #[allow(clippy::inline_always, reason = "each packet passes here, from two places")]
    #[inline(always)]
    fn send_train(
        &self,
        now: Instant,
        rx: &mut Receiver,
        held: bool,
        s: Segment,
        n: u32,
        out: &mut impl Wire,
    ) {
        let (window, ace) = if self.plain { (rx.advertise_at_once(), 0) } else { special_state(now, rx) };
        let s = Segment {
            ack: segment::wrap(rx.next(), self.peer_isn),
            timestamp: self.timestamps.then(|| (milliseconds(now), rx.echo())),
            window: u16::try_from(window >> self.scale).unwrap_or(u16::MAX),
            // The mask tells the compiler which flags cannot change.
            flags: s.flags | (ace & ACE),
            ..s
        };
        if held {
            self.send_train_with_sack(rx, s, n, out);
        } else {
            out.put_train(&s, n);
        }
    }

    /// Sends a train with SACK blocks or an `AccECN` option.
    #[cold]
    #[inline(never)]
    fn send_train_with_sack(&self, rx: &mut Receiver, mut s: Segment, n: u32, out: &mut impl Wire) {
        for ((from, to), block) in rx.sack_blocks().zip(&mut s.sack).filter(|_| self.sack) {
            *block = (segment::wrap(from, self.peer_isn), segment::wrap(to, self.peer_isn));
            s.sacks += 1;
        }
        let (blocks, option) = rx.ecn.arrived.option(usize::from(s.sacks));
        s.sacks = blocks as u8;
        if let Some(option) = option {
            s.set_ecn_option(&option);
        }
        out.put_train(&s, n);
    }

    /// What the sending half sends, as a segment that lacks what [`Header::send_train`] adds.
    #[allow(clippy::inline_always, reason = "so that the segment stays in registers")]
    #[inline(always)]
    fn segment(&self, c: &Outgoing) -> Segment {
        let flags = match *c {
            Outgoing { fin: true, .. } => ACK | FIN,
            Outgoing { len: 1.., .. } => ACK | PSH,
            _ => ACK,
        };
        let ecn = self.ect[usize::from(c.len == 0) << 1 | usize::from(c.retransmission)];
        Segment { seq: segment::wrap(c.start, self.isn), len: c.len, flags, ecn, ..Segment::default() }
    }

    /// Sends a train whose first segment says that the window was reduced.
    #[cold]
    #[inline(never)]
    fn send_with_cwr(&self, now: Instant, rx: &mut Receiver, held: bool, c: &Outgoing, out: &mut impl Wire) {
        let (s, n) = (self.segment(c), c.times);
        self.send_train(now, rx, held, Segment { flags: s.flags | CWR, ..s }, 1, out);
        if n > 1 {
            self.send_train(now, rx, false, Segment { seq: s.seq.wrapping_add(s.len), ..s }, n - 1, out);
        }
    }

    /// Returns a function that turns what the sending half sends into segments with headers. All of them together count
    /// as one acknowledgement.
    fn packetizer(&self, now: Instant, rx: &mut Receiver, out: &mut impl Wire) -> impl FnMut(Outgoing) {
        let mut held = None;
        move |c| {
            let held = *held.get_or_insert_with(|| rx.acknowledge(self.plain));
            if c.cwr {
                self.send_with_cwr(now, rx, held, &c, out);
            } else {
                self.send_train(now, rx, held, self.segment(&c), c.times, out);
            }
        }
    }
}

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
    /// The receiving half.
    pub rx: Receiver,
    /// The sending half.
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

    /// The same endpoint, waiting for a SYN.
    #[must_use]
    pub fn into_listening(self) -> Self {
        Self { state: State::Listen, ..self }
    }

    /// True if the peer's FIN arrived before this end closed: there is no TIME-WAIT after our FIN is acknowledged.
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

    /// Number of retransmissions of our SYN or SYN-ACK, by its timer or, of a SYN-ACK, because the SYN came again.
    pub fn syn_losses(&self) -> u8 {
        self.syn_losses
    }

    /// Time from our first SYN or SYN-ACK to the last copy of it.
    pub fn syn_wait(&self) -> Span {
        self.syn_resent.since(self.syn_sent)
    }

    /// Sends the SYN.
    pub fn connect(&mut self, now: Instant, out: &mut impl Wire) {
        self.set_state(State::SynSent);
        self.send_syn(now, true, out);
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        self.header.plain = state == State::Established
            && self.gro.is_none()
            && self.backlog.is_none()
            && self.header.feedback == Feedback::None
            && !self.rx.reads_slowly();
    }

    /// Sends the SYN, or the SYN-ACK that answers the peer's.
    fn send_syn(&mut self, now: Instant, first: bool, out: &mut impl Wire) {
        self.syn_resent = now;
        if self.syn_losses == 0 {
            self.syn_sent = now;
        }
        let answering = self.state == State::SynReceived;
        let mut syn = Segment {
            seq: self.header.isn,
            ack: if answering { self.header.peer_isn.wrapping_add(1) } else { 0 },
            // The window of a SYN is not scaled (RFC 7323 §2.2).
            window: u16::try_from(self.rx.advertise_window(now)).unwrap_or(u16::MAX),
            flags: if answering {
                SYN | ACK | self.header.feedback.syn_ack_flags(self.peer_syn, self.syn_timeouts)
            } else {
                SYN | self.profile.ecn.syn_flags(self.syn_timeouts)
            },
            timestamp: self.header.timestamps.then(|| (milliseconds(now), self.rx.echo())),
            mss: (self.profile.packet() - segment::HEADERS) as u16,
            scale: self.header.scaled.then_some(self.header.scale),
            sack_ok: self.header.sack,
            rate_request: self.tx.control().requested_rate().map_or(0, segment::rate_code),
            rate_response: self.rate_response,
            ..Segment::default()
        };
        // A SYN-ACK that is sent again may have been lost because of the option (tcp_synack_options).
        if answering && self.counts_bytes() && first {
            syn.set_ecn_option(&EcnOption::FIRST);
        }
        out.put(&syn);
        // The first timeouts of a SYN are linear (tcp_syn_linear_timeouts), those of a SYN-ACK double from the start.
        let linear = if answering { 0 } else { self.profile.syn_linear };
        let doublings = u32::from(self.syn_timeouts).saturating_sub(linear);
        self.syn_timer = Some(now + RTO_INITIAL * (1 << doublings.min(10)));
    }

    /// Sends the receive window, once the connection is established.
    pub(crate) fn send_window(&mut self, now: Instant, out: &mut impl Wire) {
        if self.state == State::Established {
            self.acknowledge(now, out);
        }
    }

    /// Sends an ACK without data.
    fn acknowledge(&mut self, now: Instant, out: &mut impl Wire) {
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

    /// Sends the ACK of a SYN-ACK, which reports the codepoint with which that arrived (RFC 9768 §3.1.1).
    fn acknowledge_syn(&mut self, now: Instant, out: &mut impl Wire) {
        let count = self.rx.ecn.flags;
        if self.header.feedback == Feedback::Count {
            self.rx.ecn.flags = self.header.feedback.handshake_ack_flags(self.peer_syn);
        }
        self.acknowledge(now, out);
        self.rx.ecn.flags = count;
    }

    /// Begins to use ECN as both ends agreed.
    fn use_feedback(&mut self, feedback: Feedback) {
        self.header.feedback = feedback;
        self.rx.ecn.begin(feedback);
        self.tx.ecn.begin(feedback);
        if feedback != Feedback::None {
            // RFC 3168 §6.1.5 keeps ECT from retransmissions; senders with a scalable response set it on all data, and
            // ends with accurate feedback on all that follows the SYNs (tcp_ecn_send).
            let control = self.tx.control();
            let new = if control.is_l4s() { Ecn::Ect1 } else { Ecn::Ect0 };
            let ect_if = |all| if all { new } else { Ecn::NotEct };
            let counts = feedback == Feedback::Count;
            let resent = ect_if(counts || control.needs_each_mark());
            self.header.ect = [new, resent, ect_if(counts), ect_if(counts)];
        }
    }

    /// True if this end sends the `AccECN` option if the peer does.
    fn counts_bytes(&self) -> bool {
        self.header.feedback == Feedback::Count && self.profile.ecn_option
    }

    /// Takes the space of the `AccECN` option from the payload of segments, which each will carry.
    fn make_room_for_option(&mut self) {
        let mss = self.tx.mss() - FULL_OPTION;
        self.tx.negotiated(mss, self.header.sack);
        self.rx.set_mss(mss);
    }

    /// The feedback about marks on which both ends agreed.
    pub fn feedback(&self) -> Feedback {
        self.header.feedback
    }

    /// Takes the codepoint of a segment; returns true if it is to be acknowledged now.
    #[inline(never)]
    fn on_codepoint(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        let packets = self.rx.packets(s.len);
        let arrived = &mut self.rx.ecn.arrived;
        arrived.count(s.ecn, s.len);
        if s.has_ecn_option() && self.tx.next() < LATEST {
            self.rx.ecn.arrived.is_sent = self.counts_bytes();
        }
        let prompt = self.rx.ecn.on_segment(s.ecn, s.flags, packets, self.rx.delays_ack());
        if prompt == Prompt::Both {
            self.acknowledge(now, out);
        }
        if self.header.feedback == Feedback::EchoEach && matches!(prompt, Prompt::Now | Prompt::Both) {
            self.rx.ecn.change_echo();
        }
        self.rx.prompt(prompt)
    }

    /// True if segments with these flags may be processed by [`Endpoint::on_numbers`].
    #[inline]
    pub(crate) fn is_plain(&self, flags: u8) -> bool {
        self.header.plain && flags & (RST | SYN | FIN | ACK) == ACK
    }

    /// Processes a segment. Returns false if it did not reach the sending half, whose state then is unchanged.
    #[inline]
    pub fn on_segment(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        if self.is_plain(s.flags) {
            return self.on_data(now, s.numbers(), Some(s), true, out);
        }
        self.on_special_segment(now, s, out)
    }

    /// Does the same for a segment of which these numbers are all, if [it may](Endpoint::is_plain).
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    pub(crate) fn on_numbers(&mut self, now: Instant, s: Numbers, out: &mut impl Wire) -> bool {
        self.on_data(now, s, None, true, out)
    }

    /// Processes a segment of an endpoint that is not plain, or with flags that few segments have. It is a function of its
    /// own so that the code for all others stays short (docs/dev/engine.md, "Inlining").
    #[inline(never)]
    pub(crate) fn on_special_segment(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        if self.state == State::Established {
            if let Some(backlog) = &mut self.backlog {
                backlog.arrive(s);
                self.work(now, out);
                return true;
            }
            if self.gro.is_some() {
                self.merge(now, s, out);
                return true;
            }
        }
        self.process(now, s, out)
    }

    /// Processes the segments for which the CPU has time. Those with SACK blocks take it for each packet of the write queue.
    #[inline(never)]
    fn work(&mut self, now: Instant, out: &mut impl Wire) {
        while let Some(s) = self.backlog.as_mut().and_then(|b| b.take(now)) {
            let packets = if s.sacks > 0 { self.tx.board().out.packets } else { 0 };
            self.process(now, &s, out);
            if let Some(backlog) = &mut self.backlog {
                backlog.look_at(now, u64::from(packets));
            }
        }
    }

    /// Holds a segment to be merged with those that follow, or processes it. What is complete is processed.
    #[inline(never)]
    fn merge(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) {
        let Some(gro) = &mut self.gro else { return };
        if !gro.merge(now, s) {
            let held = gro.take();
            let holds = gro.merge(now, s);
            if let Some(held) = held {
                self.process(now, &held, out);
            }
            if !holds {
                self.process(now, s, out);
            }
        }
        self.process_merged(now, out);
    }

    /// Processes the merged segments whose time is over.
    fn process_merged(&mut self, now: Instant, out: &mut impl Wire) {
        let due = self.gro.as_mut().filter(|g| g.due() <= now).and_then(|g| g.take());
        if let Some(held) = due {
            self.process(now, &held, out);
        }
    }

    /// Processes a segment, or several merged into one.
    #[inline(never)]
    fn process(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        let connected = self.state == State::Established && s.flags & (RST | SYN) == 0;
        let reached_sender = (connected || self.on_control(now, s, out))
            && self.on_data(now, s.numbers(), Some(s), false, out);
        reached_sender || !connected
    }

    /// Processes a segment outside the established state, or with SYN or RST. Returns true if its data and ACK are to
    /// be processed too.
    #[cold]
    fn on_control(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
        match self.state {
            State::Closed | State::Failed => {}
            State::Listen if s.has(RST) => {}
            _ if s.has(RST) => self.set_state(State::Failed),
            State::Listen if s.has(SYN) => {
                self.set_state(State::SynReceived);
                self.accept_syn(s);
                self.use_feedback(self.profile.ecn.accept(s.flags));
                if self.counts_bytes() {
                    self.make_room_for_option();
                }
                self.send_syn(now, true, out);
            }
            State::SynSent if s.has(SYN | ACK) && s.ack == self.header.isn.wrapping_add(1) => {
                self.accept_syn(s);
                self.use_feedback(self.profile.ecn.agreed(s.flags));
                if self.counts_bytes() && s.has_ecn_option() {
                    self.rx.ecn.arrived.is_sent = true;
                    self.make_room_for_option();
                }
                self.establish(now, s, u64::from(s.window));
                self.acknowledge_syn(now, out);
                self.send(now, out);
            }
            State::SynReceived if s.has(SYN) => {
                self.peer_syn = s.ecn;
                // The SYN-ACK is sent again and counts as lost; its timer does not back off (tcp_check_req, inet_rtx_syn_ack).
                if now >= self.next_challenge_ack {
                    self.next_challenge_ack = now + CHALLENGE_INTERVAL;
                    self.syn_losses = self.syn_losses.saturating_add(1);
                    self.send_syn(now, false, out);
                }
            }
            State::SynReceived if s.has(ACK) && s.ack == self.header.isn.wrapping_add(1) => {
                // The response went with the SYN-ACK.
                self.rate_response = 0;
                self.establish(now, s, u64::from(s.window) << self.header.peer_scale);
                return true;
            }
            // The ACK of the SYN-ACK was lost (tcp_send_challenge_ack).
            State::Established => {
                self.peer_syn = s.ecn;
                self.acknowledge_syn(now, out);
            }
            State::Listen | State::SynSent | State::SynReceived => {}
        }
        false
    }

    /// Takes the options of the peer's SYN.
    fn accept_syn(&mut self, s: &Segment) {
        self.header.peer_isn = s.seq;
        self.header.scaled = s.scale.is_some();
        // A larger shift counts as 14 (RFC 7323 §2.3).
        self.header.peer_scale = s.scale.unwrap_or(0).min(14);
        if !self.header.scaled {
            self.header.scale = 0;
        }
        self.header.sack &= s.sack_ok;
        self.header.timestamps &= s.timestamp.is_some();
        let options = if self.header.timestamps { segment::TIMESTAMP_OPTION } else { 0 };
        // 536 bytes without the option (RFC 9293 §3.7.1). The options of each segment reduce it (RFC 6691).
        let peer = if s.mss == 0 { 536 } else { u32::from(s.mss).max(64) };
        let mss = peer.min(self.profile.packet() - segment::HEADERS) - options;
        self.tx.negotiated(mss, self.header.sack);
        self.rx.set_mss(mss);
        self.rx.update_echo(0, s.timestamp.map(|t| t.0));
        self.rate_response = s.rate_request;
        self.peer_syn = s.ecn;
    }

    fn establish(&mut self, now: Instant, s: &Segment, window: u64) {
        self.set_state(State::Established);
        self.syn_timer = None;
        // If the echo is that of the first SYN-ACK, the retransmissions were spurious (RFC 7323 §4): the RTT exceeds
        // the timeout and nothing was lost.
        let echo = s.timestamp.map(|t| t.1);
        let first = echo == Some(milliseconds(self.syn_sent));
        let spurious = self.syn_losses > 0 && first;
        let clear = self.syn_losses == 0 || first;
        let mut hs = Handshake::new(clear.then(|| now.since(self.syn_sent)));
        (hs.syn_losses, hs.spurious) = (self.syn_losses, spurious);
        (hs.granted, hs.remembered) = (segment::rate_of(s.rate_response), self.remembered);
        self.tx.established(now, &hs, 1 + window);
    }

    /// Drops a segment that acknowledges data never sent, and sends a challenge ACK (RFC 9293 §3.10.7.4).
    #[cold]
    fn on_ack_of_unsent(&mut self, now: Instant, out: &mut impl Wire) {
        if now >= self.next_challenge_ack {
            self.next_challenge_ack = now + CHALLENGE_INTERVAL;
            self.acknowledge(now, out);
        }
    }

    /// Processes data and acknowledgement of a segment, which is `whole` unless `s` is all of it. `plain` says, at compile
    /// time, that the endpoint is plain and that of RST, SYN, FIN and ACK only ACK is set.
    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    fn on_data(
        &mut self,
        now: Instant,
        s: Numbers,
        whole: Option<&Segment>,
        plain: bool,
        out: &mut impl Wire,
    ) -> bool {
        let sent = segment::wrap(self.tx.next(), self.header.isn);
        let acknowledges = plain || s.flags & ACK != 0;
        if s.ack.wrapping_sub(sent).cast_signed() > 0 && acknowledges {
            self.on_ack_of_unsent(now, out);
            return false;
        }
        let marks = !plain && self.header.feedback != Feedback::None;
        let prompted = marks && whole.is_some_and(|s| self.on_codepoint(now, s, out));
        if self.receive(now, s, plain) == AckDecision::Now || prompted {
            self.acknowledge(now, out);
        }
        // For an end with nothing in flight and nothing to send, the acknowledgement in a data segment brings no news.
        // One without data may report a duplicate or another window.
        let has_news = acknowledges && (s.len == 0 || !self.tx.idle());
        if has_news {
            match whole.filter(|s| s.sacks > 0 || s.has_ecn_option()) {
                Some(whole) => self.on_ack_with_options(now, whole, out),
                None => self.on_ack(now, s.ack, s.window, s.timestamp.map(|t| t.1), s.flags, out),
            }
        }
        has_news
    }

    #[allow(clippy::inline_always, reason = "each packet passes here")]
    #[inline(always)]
    fn receive(&mut self, now: Instant, s: Numbers, plain: bool) -> AckDecision {
        let fin = !plain && s.flags & FIN != 0;
        let span = u64::from(s.len) + u64::from(fin);
        let mut answer = AckDecision::Later;
        let Some(from) = segment::unwrap(s.seq, self.header.peer_isn, self.rx.next()) else { return answer };
        let stamp = s.timestamp.map(|t| t.0);
        if span > 0 {
            if !plain {
                self.rx.read_slowly(now);
            }
            answer = self.rx.on_data(now, from, from + span, fin, stamp);
            if let Some((_, echo)) = s.timestamp.filter(|t| t.1 > 0) {
                self.rx.sample_rtt(now, echo);
            }
            if fin {
                self.peer_closed_first |= self.rx.finished() && !self.tx.closing();
            }
        } else {
            self.rx.update_echo(from, stamp);
            if from < self.rx.next() {
                // A window probe.
                answer = AckDecision::Now;
            }
        }
        answer
    }

    /// What an acknowledgement says apart from its options; `None` if it is for nothing.
    #[inline]
    fn incoming(&self, ack: u32, window: u16, echo: Option<u32>, flags: u8) -> Option<Incoming> {
        let ack = segment::unwrap(ack, self.header.isn, self.tx.board().una())?;
        let window_end = ack + (u64::from(window) << self.header.peer_scale);
        Some(Incoming { ack, window_end, echo, flags, ..Incoming::default() })
    }

    /// Processes an acknowledgement without SACK blocks and `AccECN` option. Takes its numbers one by one so that they stay in
    /// registers.
    #[inline(never)]
    fn on_ack(
        &mut self,
        now: Instant,
        ack: u32,
        window: u16,
        echo: Option<u32>,
        flags: u8,
        out: &mut impl Wire,
    ) {
        let Some(a) = self.incoming(ack, window, echo, flags) else { return };
        let Self { tx, rx, header, .. } = self;
        tx.on_ack(now, &a, &mut header.packetizer(now, rx, out));
    }

    /// Processes an acknowledgement with SACK blocks or an `AccECN` option.
    #[inline(never)]
    fn on_ack_with_options(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) {
        let echo = s.timestamp.map(|t| t.1);
        let Some(mut a) = self.incoming(s.ack, s.window, echo, s.flags) else { return };
        if s.has_ecn_option() {
            a.option = s.ecn_option();
        }
        for &(from, to) in s.blocks() {
            if let (Some(from), Some(to)) =
                (segment::unwrap(from, self.header.isn, a.ack), segment::unwrap(to, self.header.isn, a.ack))
                && from < to
            {
                a.blocks[a.sacks] = (from, to);
                a.sacks += 1;
            }
        }
        let Self { tx, rx, header, .. } = self;
        tx.on_ack_with_options(now, &a, &mut header.packetizer(now, rx, out));
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
        let held = self.gro.as_ref().map_or(Instant::NEVER, |g| g.due());
        let busy = self.backlog.as_ref().map_or(Instant::NEVER, |b| b.due());
        self.rx.ack_deadline().min(held).min(busy)
    }

    /// When [`Endpoint::on_timer`] is to be called next, for each clock; [`Instant::NEVER`] if it is not set. The
    /// clocks are: the timer of the sending half (retransmission, probe, reordering, and the controller's), the delayed
    /// ACK with receive offload, and the pacer. The first is mostly postponed, the second mostly cancelled, the third always fires, so a
    /// host should keep one pending event for each.
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
        self.process_merged(now, out);
        self.work(now, out);
        if self.rx.on_timer(now) {
            self.acknowledge(now, out);
        }
        if self.tx.timer().min(self.tx.paced()) <= now {
            let Self { tx, rx, header, .. } = self;
            tx.on_timer(now, &mut header.packetizer(now, rx, out));
        }
    }
}
