//! The handshake: SYNs out and in, and what both ends agree on.

use super::{CHALLENGE_INTERVAL, Endpoint, State};
use crate::path::{Ecn, quick_start};
use crate::tcp::accecn::{EcnOption, FULL_OPTION};
use crate::tcp::ecn::Feedback;
use crate::tcp::rtt::RTO_INITIAL;
use crate::tcp::segment::{self, ACK, RST, SYN, Segment, Wire, milliseconds};
use slowstart::control::Controller;
use slowstart::units::Instant;
use slowstart::view::Handshake;

impl<C: Controller + Clone> Endpoint<C> {
    /// Sends the SYN and starts its timer.
    pub fn connect(&mut self, now: Instant, out: &mut impl Wire) {
        self.set_state(State::SynSent);
        self.send_syn(now, true, out);
    }

    /// Sends the SYN, or the SYN-ACK that answers the peer's.
    pub(super) fn send_syn(&mut self, now: Instant, first: bool, out: &mut impl Wire) {
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
            rate_request: self.tx.control().requested_rate().map_or(0, quick_start::rate_code),
            rate_response: self.rate_response,
            ..Segment::default()
        };
        // A SYN-ACK that is sent again may have been lost because of the option (tcp_synack_options).
        if answering && self.counts_bytes() && first {
            syn.set_ecn_option(&EcnOption::FIRST);
        }
        out.put(&syn);
        // The first timeouts of a SYN are linear (tcp_syn_linear_timeouts), those of a SYN-ACK double from
        // the start.
        let linear = if answering { 0 } else { self.profile.syn_linear };
        let doublings = u32::from(self.syn_timeouts).saturating_sub(linear);
        self.syn_timer = Some(now + RTO_INITIAL * (1 << doublings.min(10)));
    }

    /// Processes a segment outside the established state, or with SYN or RST. Returns true if its data and
    /// ACK are to be processed too.
    #[cold]
    pub(super) fn on_control(&mut self, now: Instant, s: &Segment, out: &mut impl Wire) -> bool {
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
                // The SYN-ACK is sent again and counts as lost; its timer does not back off (tcp_check_req,
                // inet_rtx_syn_ack).
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
        // If the echo is that of the first SYN-ACK, the retransmissions were spurious (RFC 7323 §4): the RTT
        // exceeds the timeout and nothing was lost.
        let echo = s.timestamp.map(|t| t.1);
        let first = echo == Some(milliseconds(self.syn_sent));
        let spurious = self.syn_losses > 0 && first;
        let clear = self.syn_losses == 0 || first;
        let rtt = clear.then(|| now.since(self.syn_sent));
        self.rx.begin(now, rtt, self.header.scale);
        let mut hs = Handshake::new(rtt);
        (hs.syn_losses, hs.spurious) = (self.syn_losses, spurious);
        (hs.granted, hs.remembered) = (quick_start::rate_of(s.rate_response), self.remembered);
        self.tx.established(now, &hs, 1 + window);
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
            // RFC 3168 §6.1.5 keeps ECT from retransmissions; senders with a scalable response set it on all
            // data, and ends with accurate feedback on all that follows the SYNs (tcp_ecn_send).
            let control = self.tx.control();
            let new = if control.is_l4s() { Ecn::Ect1 } else { Ecn::Ect0 };
            let ect_if = |all| if all { new } else { Ecn::NotEct };
            let counts = feedback == Feedback::Count;
            let resent = ect_if(counts || control.needs_each_mark());
            self.header.ect = [new, resent, ect_if(counts), ect_if(counts)];
        }
    }

    /// True if this end sends the `AccECN` option if the peer does.
    pub(super) fn counts_bytes(&self) -> bool {
        self.header.feedback == Feedback::Count && self.profile.ecn_option
    }

    /// Takes the space of the `AccECN` option from the payload of segments, which each will carry.
    fn make_room_for_option(&mut self) {
        let mss = self.tx.mss() - FULL_OPTION;
        self.tx.negotiated(mss, self.header.sack);
        self.rx.set_mss(mss);
    }
}
