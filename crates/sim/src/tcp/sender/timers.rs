//! Timers: timeouts, probes, and when the timer fires next.

use super::{Event, Outgoing, Phase, Probe, Sender, Timer};
use crate::tcp::rack::{DUPLICATES, Lost};
use crate::tcp::scoreboard::{Delivered, Record};
use slowstart::control::Controller;
use slowstart::units::{Instant, Span};
use slowstart::view::Signal;

impl<C: Controller + Clone> Sender<C> {
    /// Processes the deadlines of [`Sender::timer`] and [`Sender::paced`] that are due.
    pub fn on_timer(&mut self, now: Instant, out: &mut impl FnMut(Outgoing)) {
        if self.control.state().wake.is_some_and(|w| w <= now) {
            let change = self.control.on_timer(&self.facts(now));
            self.apply_change(now, change);
            self.update_pacer();
        }
        if self.timer_at <= now {
            let timer = self.timer;
            self.set_timer(Timer::Off, Instant::NEVER);
            match timer {
                Timer::Off => {}
                Timer::Retransmit => self.on_timeout(now, out),
                Timer::Probe => self.send_probe(now, out),
                Timer::Reordering if self.waits_for_reordering(now) => {}
                Timer::Reordering => {
                    let lost = self.detect(now, &Delivered::new(0), false);
                    if lost.bytes > 0 {
                        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
                            self.signal_congestion(now, Signal::Loss, false, lost);
                        } else {
                            self.enter_recovery(now, lost);
                            self.update_prr(1, lost, false);
                        }
                    }
                    if self.timer == Timer::Off {
                        self.rearm(now);
                    }
                }
                Timer::ZeroWindow => {
                    self.rtt.back_off();
                    self.probe_window(now, out);
                }
            }
        }
        self.transmit(now, out);
        if self.timer == Timer::Off {
            self.rearm(now);
        }
    }

    /// Probes a window that is closed or smaller than a segment (`tcp_write_wakeup`).
    pub(super) fn probe_window(&mut self, now: Instant, out: &mut impl FnMut(Outgoing)) {
        let room = self.send_limit().saturating_sub(self.next);
        let len = room.min(self.end.saturating_sub(self.next)).min(u64::from(self.profile.mss)) as u32;
        if len == 0 {
            out(Outgoing {
                start: self.board.una() - 1,
                len: 0,
                fin: false,
                retransmission: true,
                cwr: false,
                times: 1,
                push: false,
            });
            return;
        }
        let cwnd = self.cwnd_bytes;
        let n = self.board.send(now, self.next, len as u16, cwnd, false);
        let end = self.next + u64::from(len);
        let push = end == self.end;
        out(Outgoing {
            start: self.next,
            len,
            fin: false,
            retransmission: false,
            cwr: false,
            times: 1,
            push,
        });
        self.next = end;
        let mut facts = self.control.needs_on_sent().then(|| self.facts(now));
        self.on_segment_sent(facts.as_mut(), n);
        self.set_timer(Timer::Retransmit, now + self.rtt.rto());
    }

    /// Retransmission timeout (`tcp_enter_loss`): all segments not delivered are marked lost.
    pub(super) fn on_timeout(&mut self, now: Instant, out: &mut impl FnMut(Outgoing)) {
        let Some(head) = self.board.first() else { return };
        self.counters.timeouts += 1;
        self.regrows = true;
        self.push_event(now, Event::Timeout);
        // In the state Loss too, if new data was acknowledged since the last timeout (RFC 5681 §3.1: another
        // segment than that which a timeout sent again).
        let another = self.phase == Phase::Loss && !self.rtt.is_backed_off();
        let fresh = matches!(self.phase, Phase::Open | Phase::Disorder);
        let first = fresh || another || self.board.una() >= self.high;
        let rack = self.profile.rack && self.profile.sack;
        if self.board.get(head).is_some_and(Record::sacked) {
            self.board.renege();
        }
        let all: Vec<u64> = self
            .board
            .unsacked()
            .filter(|&n| n == head || !rack || !self.board.get(n).is_some_and(|r| self.rack.is_young(r, now)))
            .collect();
        let mut lost = Lost::default();
        for n in all {
            lost.add(n, self.board.mark_lost(n));
        }
        self.prr = None;
        self.probe = None;
        self.duplicates = 0;
        // In tcp_enter_loss: after so much that was held back, the degree of reordering is overestimated.
        if fresh && self.board.sacked.packets >= DUPLICATES {
            self.rack.degree = DUPLICATES;
        }
        self.begin_frto(self.rtt.is_backed_off());
        self.signal_congestion(now, Signal::Timeout, first, lost);
        if first {
            self.begin_undo();
        }
        self.phase = Phase::Loss;
        self.high = self.next;
        self.rtt.back_off();
        self.update_pacer();
        self.resend(now, head, out);
        self.set_timer(Timer::Retransmit, now + self.rtt.rto());
    }

    /// Sends a tail loss probe (RFC 8985 §7.3): new data if there is any, else the last segment.
    pub(super) fn send_probe(&mut self, now: Instant, out: &mut impl FnMut(Outgoing)) {
        let Some(last) = self.board.last() else { return };
        if self.probe.is_none() {
            let high = self.next;
            let again = self.send_new(now, 1, out) == 0;
            if again {
                // A probe is not part of a recovery.
                let undo = self.undo.take();
                self.resend(now, last, out);
                self.undo = undo;
            }
            self.probe = Some(Probe { high: if again { high } else { self.next }, retransmission: again });
            self.push_event(now, Event::Probe);
            // Counted from the probe.
            self.set_timer(Timer::Retransmit, now + self.rtt.rto());
            return;
        }
        self.set_timer(Timer::Retransmit, self.retransmit_at(now));
    }

    /// When the retransmission timer of the first segment in flight fires, counted from its transmission.
    pub(super) fn retransmit_at(&self, now: Instant) -> Instant {
        (self.head_sent() + self.rtt.rto()).max(now + Span::millis(1))
    }

    /// When the first segment not acknowledged was last sent.
    pub fn head_sent(&self) -> Instant {
        self.board.first().and_then(|n| self.board.get(n)).map_or(Instant::ZERO, |r| r.at)
    }

    /// Sets the timer anew: to a probe where one may help, else to the retransmission timeout
    /// (`tcp_schedule_loss_probe`).
    pub(super) fn rearm(&mut self, now: Instant) {
        if self.board.is_empty() {
            if self.next < self.end && self.ready {
                self.set_timer(Timer::ZeroWindow, now + self.rtt.rto());
            } else {
                self.set_timer(Timer::Off, Instant::NEVER);
            }
            return;
        }
        let probes = self.profile.tlp
            && self.profile.sack
            && self.probe.is_none()
            && self.board.sacked.packets == 0
            && matches!(self.phase, Phase::Open | Phase::Cwr);
        let rto = now + self.rtt.rto();
        match self.rtt.srtt().filter(|_| probes) {
            Some(srtt) => {
                let slack = if self.board.out.packets == 1 { self.rtt.rto_min() } else { Span::millis(2) };
                self.set_timer(Timer::Probe, (now + srtt * 2 + slack).min(rto));
            }
            None => self.set_timer(Timer::Retransmit, rto),
        }
    }

    pub(super) fn set_timer(&mut self, timer: Timer, at: Instant) {
        self.timer = timer;
        self.timer_at = at;
        self.update_deadline();
    }
}
