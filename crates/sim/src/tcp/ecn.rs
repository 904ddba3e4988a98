//! Explicit congestion notification: negotiation, the receiver's feedback, and how the sender reads it (RFC
//! 3168, RFC 8257 §3.2, RFC 9768; Linux `tcp_ecn_*` and `tcp_accecn_*`).
//!
//! Departs from its sources:
//! - SYN and SYN-ACK are never ECN-capable (RFC 9768 allows it, Linux does not do it);
//! - a path does not change the codepoint of a packet but to CE, so bleaching and mangling are not detected;
//! - without `ecn_option` the ACE field alone carries the count, which RFC 9768 permits.

use super::accecn::{Arrived, EcnOption, Reported, marked_packets};
use super::segment::{ACK, AE, CWR, ECE, SYN};
use crate::path::Ecn;

/// What a stack does about ECN (`tcp_ecn`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum EcnRule {
    /// Neither asks for it nor accepts it (0).
    #[default]
    Off,
    /// Accepts it with the feedback of RFC 3168, and does not ask for it (2, the default of Linux).
    Passive,
    /// Asks for it with the feedback of RFC 3168 (1).
    Rfc3168,
    /// As [`EcnRule::Rfc3168`], and each ACK says whether the packets it acknowledges were marked (RFC 8257
    /// §3.2). Both ends must have this rule, since nothing negotiates it.
    Dctcp,
    /// Asks for accurate feedback (RFC 9768), and falls back to RFC 3168 (3).
    AccEcn,
}

/// The feedback on which both ends agreed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// ECN is not used.
    #[default]
    None,
    /// ECE from a mark until CWR (RFC 3168 §6.1).
    Echo,
    /// ECE on each ACK tells of its own packets (RFC 8257 §3.2).
    EchoEach,
    /// The ACE field counts marked packets modulo 8 (RFC 9768 §3.2.2).
    Count,
}

/// The three flags of the handshake and of the ACE field: AE, CWR, ECE.
pub(super) const ACE: u8 = AE | CWR | ECE;
/// Where the counters of marked packets begin (RFC 9768 §3.2.1).
const FIRST_COUNT: u8 = 5;

/// The flags for a value of the ACE field; its low three bits count.
pub const fn ace_flags(value: u8) -> u8 {
    (if value & 4 != 0 { AE } else { 0 })
        | (if value & 2 != 0 { CWR } else { 0 })
        | (if value & 1 != 0 { ECE } else { 0 })
}

/// The value of the ACE field of a segment with these flags.
const fn ace_value(flags: u8) -> u8 {
    (if flags & AE != 0 { 4 } else { 0 })
        | (if flags & CWR != 0 { 2 } else { 0 })
        | (if flags & ECE != 0 { 1 } else { 0 })
}

/// The flags that report the codepoint of a SYN or SYN-ACK (RFC 9768 §3.1.1, Tables 2 and 3).
const fn report(ecn: Ecn) -> u8 {
    ace_flags(match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    })
}

impl EcnRule {
    /// The flags of a SYN that was lost so often. One that is sent again asks for nothing (RFC 3168
    /// §6.1.1.1); for accurate feedback the first retransmission still asks (RFC 9768 §3.1.4.1).
    pub(super) const fn syn_flags(self, losses: u8) -> u8 {
        match (self, losses) {
            (Self::Rfc3168 | Self::Dctcp, 0) => ECE | CWR,
            (Self::AccEcn, 0 | 1) => ACE,
            _ => 0,
        }
    }

    /// What a server agrees to, from the flags of the SYN.
    pub(super) const fn accept(self, syn: u8) -> Feedback {
        match (self, syn & ACE) {
            (Self::AccEcn, ACE) => Feedback::Count,
            (Self::Dctcp, f) if f & (ECE | CWR) == ECE | CWR => Feedback::EchoEach,
            (Self::Passive | Self::Rfc3168 | Self::AccEcn, f) if f & (ECE | CWR) == ECE | CWR => {
                Feedback::Echo
            }
            _ => Feedback::None,
        }
    }

    /// What a client that asked takes the flags of the SYN-ACK for.
    pub(super) const fn agreed(self, syn_ack: u8) -> Feedback {
        match (self, ace_value(syn_ack)) {
            (Self::AccEcn | Self::Rfc3168, 0b001) | (Self::Rfc3168, 0b101) => Feedback::Echo,
            // Also 0b101, which is unused so far (tcp_ecn_rcv_synack).
            (Self::AccEcn, 0b010..=0b110) => Feedback::Count,
            (Self::Dctcp, 0b001 | 0b101) => Feedback::EchoEach,
            _ => Feedback::None,
        }
    }
}

impl Feedback {
    /// The flags of a SYN-ACK that agrees and was lost so often, for a SYN that arrived with this codepoint.
    /// From the second retransmission on it does not agree to accurate feedback, which may be why it is lost
    /// (`tcp_ecn_make_synack`).
    pub(super) const fn syn_ack_flags(self, syn: Ecn, losses: u8) -> u8 {
        match self {
            Self::None => 0,
            Self::Echo | Self::EchoEach => ECE,
            Self::Count if losses > 1 => 0,
            Self::Count => report(syn),
        }
    }

    /// The flags of the ACK of a SYN-ACK that arrived with this codepoint.
    pub(super) const fn handshake_ack_flags(self, syn_ack: Ecn) -> u8 {
        if matches!(self, Self::Count) { report(syn_ack) } else { 0 }
    }

    /// True if the sender says with CWR that it has reduced its window.
    pub(super) const fn uses_cwr(self) -> bool {
        matches!(self, Self::Echo | Self::EchoEach)
    }
}

/// When an ACK is to be sent because of a codepoint.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// Not because of it.
    None,
    /// At once, and this many times in a row (`tcp_enter_quickack_mode`).
    Quick(u32),
    /// An acknowledgement at once.
    Now,
    /// What is delayed first, with the flags before; then at once.
    Both,
}

/// The receiver's state: what arrived marked, and what its ACKs say.
#[derive(Clone, Debug, Default)]
pub struct EcnReceiver {
    feedback: Feedback,
    /// The flags of each segment that is sent: ECE, or the ACE field.
    pub(super) flags: u8,
    /// Marked packets since the last ACK.
    pending: u8,
    /// True once an ECN-capable packet has arrived.
    seen: bool,
    /// Bytes by codepoint, for the `AccECN` option.
    pub(super) arrived: Arrived,
    /// Marked packets of data.
    pub marked: u64,
}

impl EcnReceiver {
    /// Begins with this feedback.
    pub(super) fn begin(&mut self, feedback: Feedback) {
        self.feedback = feedback;
        self.flags = if feedback == Feedback::Count { ace_flags(FIRST_COUNT) } else { 0 };
    }

    /// Takes the codepoint and flags of a segment of `packets` packets, whose ACE field or ECE is the peer's
    /// own matter.
    pub(super) fn on_segment(&mut self, ecn: Ecn, flags: u8, packets: u8, delayed: bool) -> Prompt {
        let ce = ecn == Ecn::Ce;
        let data = packets > 0;
        if ce && data {
            self.marked += u64::from(packets);
        }
        match self.feedback {
            Feedback::None => Prompt::None,
            Feedback::Echo => {
                let mut prompt = Prompt::None;
                if flags & CWR != 0 {
                    self.flags &= !ECE;
                    // A small window may wait for nothing but this ACK (tcp_ecn_accept_cwr).
                    prompt = if data { Prompt::Now } else { Prompt::None };
                }
                if ce && self.flags & ECE == 0 {
                    self.flags |= ECE;
                    prompt = Prompt::Quick(2);
                } else if ecn == Ecn::NotEct && data && self.seen {
                    // A retransmission (tcp_ecn_check_ce).
                    prompt = Prompt::Quick(2);
                }
                self.seen |= ecn != Ecn::NotEct;
                prompt
            }
            Feedback::EchoEach if !data || ecn == Ecn::NotEct => Prompt::None,
            Feedback::EchoEach => {
                if ce == (self.flags & ECE != 0) {
                    return Prompt::None;
                }
                if delayed { Prompt::Both } else { Prompt::Now }
            }
            Feedback::Count => {
                if !ce {
                    return Prompt::None;
                }
                let packets = packets.max(1);
                self.flags = ace_flags(ace_value(self.flags).wrapping_add(packets));
                self.pending = self.pending.saturating_add(packets);
                // RFC 9768 §3.2.2.5.1: an ACK after two marks.
                if self.pending >= 2 && data { Prompt::Now } else { Prompt::None }
            }
        }
    }

    /// Takes the state of the newest packet, once a delayed ACK has gone with the one before (RFC 8257 §3.2).
    pub(super) fn change_echo(&mut self) {
        self.flags ^= ECE;
    }

    /// An ACK is sent.
    pub(super) fn acknowledged(&mut self) {
        self.pending = 0;
    }
}

/// The sender's state: what the peer's feedback said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EcnSender {
    pub(super) feedback: Feedback,
    /// The flags that may bring news, and their value if they bring none: the last value of the ACE field, or
    /// no ECE.
    news: u8,
    known: u8,
    /// True if the next new data is to carry CWR.
    pub(super) cwr: bool,
    reported: Reported,
}

impl EcnSender {
    /// Begins with this feedback.
    pub(super) fn begin(&mut self, feedback: Feedback) {
        let (news, known) = match feedback {
            Feedback::None => (0, 0),
            Feedback::Echo | Feedback::EchoEach => (ECE, 0),
            Feedback::Count => (ACE, ace_flags(FIRST_COUNT)),
        };
        *self = Self { feedback, news, known, cwr: false, reported: Reported::default() };
    }

    /// True if an ACK with these flags tells of marks.
    #[inline]
    pub(super) fn has_news(&self, flags: u8) -> bool {
        flags & self.news != self.known
    }

    /// The bytes that the peer's options have reported with ECT(1), CE and ECT(0).
    pub(crate) fn reported_bytes(&self) -> [u32; 3] {
        self.reported.bytes()
    }

    /// Takes flags and option of an ACK that delivered `packets` packets with `bytes` bytes, `mss` in a full
    /// one; returns how many packets and bytes of them were marked. With [`Feedback::Echo`] all of them
    /// count, as in Linux (`tcp_newly_delivered`).
    pub(super) fn on_ack(
        &mut self,
        flags: u8,
        option: Option<&EcnOption>,
        (packets, bytes): (u64, u64),
        mss: u64,
    ) -> (u64, u64) {
        let reported = option.and_then(|option| self.reported.take(option));
        let marked = self.marked_packets(flags, (packets, bytes), reported, mss);
        (marked, reported.unwrap_or(marked * mss).min(bytes))
    }

    fn marked_packets(
        &mut self,
        flags: u8,
        (packets, bytes): (u64, u64),
        reported: Option<u64>,
        mss: u64,
    ) -> u64 {
        match self.feedback {
            Feedback::None => 0,
            Feedback::Echo | Feedback::EchoEach => {
                if flags & ECE != 0 {
                    packets
                } else {
                    0
                }
            }
            Feedback::Count => {
                debug_assert!(flags & (ACK | SYN) == ACK, "the ACE field of a SYN is no count");
                let value = ace_value(flags);
                let least = u64::from(value.wrapping_sub(ace_value(self.known)) & 7);
                self.known = flags & ACE;
                marked_packets(least, packets, bytes, reported, mss)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_agree_as_the_tables_of_the_rfcs_say() {
        use EcnRule::{AccEcn, Dctcp, Off, Passive, Rfc3168};
        use Feedback::{Count, Echo, EchoEach, None};
        for (client, server, agreed) in [
            (Off, AccEcn, None),
            (Passive, AccEcn, None),
            (Rfc3168, Off, None),
            (Rfc3168, Passive, Echo),
            (Rfc3168, Rfc3168, Echo),
            (Rfc3168, AccEcn, Echo),
            (Dctcp, Dctcp, EchoEach),
            (AccEcn, Off, None),
            (AccEcn, Passive, Echo),
            (AccEcn, Rfc3168, Echo),
            (AccEcn, AccEcn, Count),
        ] {
            let accepted = server.accept(client.syn_flags(0));
            assert_eq!(accepted, agreed, "{client:?} and {server:?}");
            for syn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                assert_eq!(
                    client.agreed(accepted.syn_ack_flags(syn, 0)),
                    agreed,
                    "{client:?} and {server:?}"
                );
            }
            assert_eq!(server.accept(client.syn_flags(2)), None);
            let again = if client == AccEcn { agreed } else { None };
            assert_eq!(server.accept(client.syn_flags(1)), again);
        }
        // A server that reflects all flags does not understand them.
        assert_eq!(AccEcn.agreed(ACE), None);
        assert_eq!(Rfc3168.agreed(ECE | CWR), None);
    }

    #[test]
    fn the_count_goes_around() {
        let (mut rx, mut tx) = (EcnReceiver::default(), EcnSender::default());
        rx.begin(Feedback::Count);
        tx.begin(Feedback::Count);
        assert!(!tx.has_news(rx.flags | ACK));
        for n in 0..20 {
            let prompt = rx.on_segment(Ecn::Ce, ACK, 1, false);
            assert_eq!(prompt, Prompt::None);
            rx.acknowledged();
            assert!(tx.has_news(rx.flags | ACK));
            assert_eq!(tx.on_ack(rx.flags | ACK, None, (2, 2000), 1000).0, 1, "mark {n}");
        }
        // Two marks since the last ACK ask for one; seven may be told apart, and of ten the safe number is
        // taken.
        assert_eq!(rx.on_segment(Ecn::Ce, ACK, 1, false), Prompt::None);
        assert_eq!(rx.on_segment(Ecn::Ce, ACK, 1, false), Prompt::Now);
        assert_eq!(tx.on_ack(rx.flags | ACK, None, (7, 7000), 1000).0, 2);
        rx.on_segment(Ecn::Ce, ACK, 1, false);
        assert_eq!(tx.on_ack(rx.flags | ACK, None, (10, 10_000), 1000).0, 9);
        assert_eq!(rx.marked, 23);
    }

    #[test]
    fn an_echo_lasts_until_cwr() {
        let mut rx = EcnReceiver::default();
        rx.begin(Feedback::Echo);
        assert_eq!(rx.on_segment(Ecn::Ect0, ACK, 1, false), Prompt::None);
        assert_eq!(rx.on_segment(Ecn::Ce, ACK, 1, false), Prompt::Quick(2));
        assert_eq!((rx.on_segment(Ecn::Ect0, ACK, 1, false), rx.flags), (Prompt::None, ECE));
        assert_eq!((rx.on_segment(Ecn::Ect0, ACK | CWR, 1, false), rx.flags), (Prompt::Now, 0));
        // CWR on a packet that is itself marked clears the old echo and begins a new one.
        rx.on_segment(Ecn::Ce, ACK, 1, false);
        assert_eq!((rx.on_segment(Ecn::Ce, ACK | CWR, 1, false), rx.flags), (Prompt::Quick(2), ECE));
    }
}
