//! Loss detection and recovery (Linux `tcp_fastretrans_alert` and the functions it calls).

use super::{Event, Frto, Incoming, Phase, Prr, Sender, Timer, Undo};
use crate::tcp::rack::{DUPLICATES, Lost};
use crate::tcp::scoreboard::Delivered;
use crate::tcp::segment::is_before;
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::{Congestion, Recovery, Signal};

/// By how much the timer of reordering is late, at least (`TCP_TIMEOUT_MIN`).
const TIMEOUT_MIN: Span = Span::millis(2);

impl<C: Controller + Clone> Sender<C> {
    /// True if the recovery proved unnecessary (`tcp_may_undo`).
    pub(super) fn may_undo(&self, echo: Option<u32>) -> bool {
        self.resent_in_vain() || self.was_delayed(echo)
    }

    /// True if every retransmission of the recovery was reported as a duplicate.
    pub(super) fn resent_in_vain(&self) -> bool {
        let undo = self.undo.as_ref().filter(|_| self.profile.undo);
        undo.is_some_and(|u| u.open == Some(0))
    }

    /// True if an ACK with this echo is for a segment that left before the first retransmission
    /// (`tcp_packet_delayed`). Before that has left, any ACK is, but one that ends a recovery without SACK.
    fn was_delayed(&self, echo: Option<u32>) -> bool {
        let undo = self.undo.as_ref().filter(|_| self.profile.undo);
        undo.is_some_and(|u| match u.first {
            Some(first) => echo.is_some_and(|e| is_before(e, first)),
            None => self.profile.sack || self.board.una() < self.high,
        })
    }

    /// The state machine of `tcp_fastretrans_alert`.
    #[inline]
    pub(super) fn update_recovery(
        &mut self,
        now: Instant,
        a: &Incoming,
        d: &Delivered,
        (advanced, marked): (bool, bool),
        prior_una: u64,
    ) -> Lost {
        let una = self.board.una();
        self.check_probe(now, a, d);
        // The end of a recovery.
        match self.phase {
            Phase::Loss => self.process_loss(now, a, d, advanced),
            Phase::Recovery if una >= self.high => {
                let undone = advanced && self.may_undo(a.echo);
                self.exit_recovery(now, undone);
            }
            // The hole was filled by a segment that was late, not lost (tcp_try_undo_partial): how late is
            // how far the path reorders. While retransmissions are on their way, no more is marked lost.
            Phase::Recovery if advanced && self.was_delayed(a.echo) => {
                let distance = self.board.highest_held().saturating_sub(prior_una);
                self.rack.reordering(distance, u64::from(self.profile.mss));
                if self.board.resent.packets > 0 {
                    return Lost::default();
                }
                self.exit_recovery(now, true);
            }
            Phase::Cwr if una > self.high => self.end_cwr(now),
            _ => {}
        }
        let lost = self.detect(now, d, advanced);
        match self.phase {
            // Segments sent during a recovery that are lost begin another when that one ends
            // (tcp_time_to_recover).
            Phase::Open | Phase::Disorder | Phase::Cwr if self.board.lost.packets > 0 => {
                self.enter_recovery(now, lost);
            }
            Phase::Recovery | Phase::Loss if lost.bytes > 0 => {
                self.signal_congestion(now, Signal::Loss, false, lost);
            }
            Phase::Open | Phase::Disorder if marked => self.enter_cwr(now),
            Phase::Open | Phase::Disorder => {
                let held = self.board.sacked.packets > 0 || self.duplicates > 0;
                self.phase = if held { Phase::Disorder } else { Phase::Open };
            }
            _ => {}
        }
        lost
    }

    /// Detects losses, by time or by duplicates, and marks the segments.
    #[inline]
    pub(super) fn detect(&mut self, now: Instant, d: &Delivered, advanced: bool) -> Lost {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if self.profile.sack && self.profile.rack {
            let (min, srtt) = (self.rtt.min(), self.rtt.srtt());
            let (lost, again) = self.rack.detect(&mut self.board, now, recovering, min, srtt);
            if let Some(at) = again {
                self.set_timer(Timer::Reordering, at + TIMEOUT_MIN);
            } else if self.timer == Timer::Reordering {
                self.set_timer(Timer::Off, Instant::NEVER);
            }
            return lost;
        }
        let mut lost = Lost::default();
        if self.profile.sack {
            let mut found = Vec::new();
            if d.sacked || advanced {
                self.board.lost_by_duplicates(DUPLICATES, |n| found.push(n));
            }
            for n in found {
                lost.add(n, self.board.mark_lost(n));
            }
            return lost;
        }
        // RFC 6582: the third duplicate, and each partial acknowledgement in recovery, indicates one lost
        // segment.
        if advanced {
            self.duplicates = 0;
        } else {
            self.duplicates += 1;
        }
        let third = self.duplicates == DUPLICATES && self.phase != Phase::Recovery;
        let partial = advanced && self.phase == Phase::Recovery;
        if let Some(first) = self.board.first().filter(|_| third || partial) {
            lost.add(first, self.board.mark_lost(first));
        }
        lost
    }

    /// The timer of reordering fires when the first segment is overdue. True if it is to wait for others: it is set anew.
    pub(super) fn waits_for_reordering(&mut self, now: Instant) -> bool {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let last = self.rack.last_overdue(&self.board, recovering, self.rtt.min(), self.rtt.srtt());
        let waits = last.map(|at| at + TIMEOUT_MIN).filter(|at| *at > now);
        if let Some(at) = waits {
            self.set_timer(Timer::Reordering, at);
        }
        waits.is_some()
    }

    /// Detects whether a tail loss probe repaired a loss that nothing else revealed (RFC 8985 §7.4).
    pub(super) fn check_probe(&mut self, now: Instant, a: &Incoming, d: &Delivered) {
        let Some(p) = self.probe.as_ref().filter(|p| a.ack >= p.high) else { return };
        let beyond = a.ack > p.high;
        // An ACK of exactly what was probed may acknowledge the original or the probe; the next ACK shows
        // which.
        if p.retransmission && !beyond && (d.acked > 0 || d.sacked) {
            return;
        }
        let again = p.retransmission;
        self.probe = None;
        if again && beyond && matches!(self.phase, Phase::Open | Phase::Disorder) {
            // The recovery ends at once: nothing is left to retransmit (tcp_process_tlp_ack).
            self.push_event(now, Event::Loss);
            self.signal_congestion(now, Signal::Loss, true, Lost::default());
            let change = self.control.on_recovered(&self.facts(now), &Recovery::default());
            self.apply_change(now, change);
            self.push_event(now, Event::Recovered { undone: false });
        }
    }

    #[cold]
    pub(super) fn signal_congestion(&mut self, now: Instant, signal: Signal, first: bool, lost: Lost) {
        let c = Congestion::new(signal, first, self.board.newest()).losing(Bytes(lost.bytes), lost.ranges);
        let change = self.control.on_congestion(&self.facts(now), &c);
        self.apply_change(now, change);
    }

    pub(super) fn begin_prr(&mut self) {
        let prior = self.cwnd.max(1);
        if self.profile.prr && !self.control.owns_recovery() {
            self.prr = Some(Box::new(Prr { prior, delivered: 0, sent: 0, cwnd: prior }));
        }
    }

    /// Begins to watch for a spurious loss. If earlier retransmissions, or a probe, are still in flight, they
    /// stay part of it (`tcp_init_undo`): originals are distinguished from them.
    pub(super) fn begin_undo(&mut self) {
        let probe = self.probe.as_ref().is_some_and(|p| p.retransmission);
        let outstanding = self.board.resent.packets.max(u32::from(probe));
        let since = self.board.una();
        self.undo = Some(match self.undo.take().filter(|_| outstanding > 0) {
            Some(u) => Undo { since, open: Some(outstanding), ..u },
            None => Undo { since, open: probe.then_some(1), first: None, retransmitted: Bytes::ZERO },
        });
    }

    /// The peer reports marks: the window is reduced, once a round trip, as after a loss (`tcp_enter_cwr`).
    #[cold]
    pub(super) fn enter_cwr(&mut self, now: Instant) {
        if !self.control.grows_between_marks() {
            self.begin_prr();
        }
        self.phase = Phase::Cwr;
        self.high = self.next;
        self.undo = None;
        self.probe = None;
        self.ecn.cwr = self.ecn.feedback.uses_cwr();
        self.counters.mark_responses += 1;
        self.push_event(now, Event::Mark);
        self.signal_congestion(now, Signal::Ecn, true, Lost::default());
    }

    /// What was in flight when marks were reported is delivered: the reduction is complete
    /// (`tcp_end_cwnd_reduction`).
    #[cold]
    pub(super) fn end_cwr(&mut self, now: Instant) {
        self.prr = None;
        self.phase = Phase::Open;
        let change = self.control.on_recovered(&self.facts(now), &Recovery::default());
        self.apply_change(now, change);
    }

    /// Begins a recovery. If a mark has reduced the window in this round trip, the loss reduces it no
    /// further, unless the controller's response to a mark is a small one; and the reduction is not undone
    /// (`tcp_enter_recovery`).
    #[cold]
    pub(super) fn enter_recovery(&mut self, now: Instant, lost: Lost) {
        if self.phase == Phase::Cwr && self.board.una() <= self.high {
            self.phase = Phase::Recovery;
            if self.prr.is_none() {
                self.begin_prr();
            }
            self.counters.recoveries += 1;
            self.push_event(now, Event::Loss);
            self.signal_congestion(now, Signal::Loss, self.control.needs_each_mark(), lost);
            return;
        }
        self.begin_prr();
        self.phase = Phase::Recovery;
        self.high = self.next;
        self.begin_undo();
        self.counters.recoveries += 1;
        self.push_event(now, Event::Loss);
        self.signal_congestion(now, Signal::Loss, true, lost);
    }

    /// Ends a recovery; `undone` if the loss was spurious, so that no segment stays marked lost.
    #[cold]
    pub(super) fn exit_recovery(&mut self, now: Instant, undone: bool) {
        if undone {
            self.board.unmark_all();
        }
        self.end_episode(now, undone);
    }

    #[cold]
    pub(super) fn end_episode(&mut self, now: Instant, undone: bool) {
        let retransmitted = self.undo.as_ref().map_or(Bytes::ZERO, |u| u.retransmitted);
        if undone {
            self.undo = None;
            self.counters.undone += 1;
        }
        self.prr = None;
        self.frto = Frto::Off;
        self.duplicates = 0;
        self.phase = if self.board.sacked.packets > 0 { Phase::Disorder } else { Phase::Open };
        if !undone {
            self.rack.recovered();
        }
        let change = self.control.on_recovered(&self.facts(now), &Recovery::new(retransmitted, undone));
        self.apply_change(now, change);
        self.push_event(now, Event::Recovered { undone });
    }

    /// Updates the window of proportional rate reduction after an ACK that delivered `newly` segments.
    #[inline]
    pub(super) fn update_prr(&mut self, newly: u64, lost: Lost, advanced: bool) {
        if self.prr.is_none() {
            return;
        }
        let ssthresh = self.cwnd;
        let inflight = u64::from(self.board.packets_inflight());
        let Some(p) = self.prr.as_mut().filter(|_| newly > 0) else { return };
        p.delivered += newly;
        let send = if inflight > ssthresh {
            (ssthresh * p.delivered).div_ceil(p.prior).saturating_sub(p.sent)
        } else {
            // The slow-start reduction bound of RFC 6937 §3.1, with one more segment if the ACK advances and
            // reports no loss.
            let more = u64::from(advanced && lost.bytes == 0);
            (p.delivered.saturating_sub(p.sent).max(newly) + more).min(ssthresh - inflight)
        };
        // The first retransmission is sent at once.
        p.cwnd = inflight + send.max(u64::from(p.sent == 0));
    }
}
