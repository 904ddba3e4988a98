//! Whether a timeout was spurious, by what is acknowledged after it: F-RTO with SACK (RFC 5682 §3, Linux
//! `tcp_process_loss`).
//!
//! After a timeout the first segment is sent again. If the next ACK advances, new data follows in place of
//! further retransmissions. If a segment that was not sent again is acknowledged then, nothing was lost.

use super::{Incoming, Outgoing, Phase, Sender};
use crate::tcp::scoreboard::Delivered;
use slowstart::control::Controller;
use slowstart::units::Instant;

/// The state of F-RTO (`tp->frto`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    /// There was no timeout, or its losses are real, or it is too late to tell.
    Off,
    /// A timeout may have been spurious.
    Watching,
    /// New data is sent in place of retransmissions, until an ACK decides.
    SendingNew,
}

impl<C: Controller + Clone> Sender<C> {
    /// Begins to watch after a timeout, unless a recovery was under way (RFC 5682 §3.1 step 1). `repeated` is
    /// true if the timeout repeats another.
    pub(super) fn begin_frto(&mut self, repeated: bool) {
        let fresh = matches!(self.phase, Phase::Open | Phase::Disorder);
        let watches = self.profile.frto && self.profile.sack && (fresh || repeated);
        self.frto = if watches { Frto::Watching } else { Frto::Off };
    }

    /// Processes an ACK after a timeout.
    pub(super) fn process_loss(&mut self, now: Instant, a: &Incoming, d: &Delivered, advanced: bool) {
        let recovered = self.board.una() >= self.high;
        if advanced && self.may_undo(a.echo) {
            return self.exit_recovery(now, true);
        }
        if self.frto != Frto::Off {
            self.frto = Frto::Watching;
            // Step 3.b: the peer has a segment that left before the timeout and was not sent again.
            if d.first_original <= self.high {
                return self.exit_recovery(now, true);
            }
            if self.next > self.high {
                // Step 3.a: it has new data, and nothing from before it.
                if d.sacked {
                    self.frto = Frto::Off;
                }
            } else if advanced && !recovered {
                // Step 2.b.
                self.high = self.next;
                let has_new = self.next < self.data_end() && self.next < self.send_limit();
                self.frto = if has_new { Frto::SendingNew } else { Frto::Off };
                return;
            }
        }
        if recovered {
            self.exit_recovery(now, false);
        }
    }

    /// Retransmits after all where the window let no new data go (`tcp_xmit_recovery`).
    pub(super) fn end_frto_without_new_data(&mut self, now: Instant, out: &mut impl FnMut(Outgoing)) {
        if self.frto == Frto::SendingNew && self.next <= self.high {
            self.frto = Frto::Off;
            self.transmit(now, out);
        }
    }
}
