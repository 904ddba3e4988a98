//! Transmission: Linux `tcp_write_xmit`, `tcp_cwnd_validate` and `tcp_xmit_retransmit_queue`.

use super::super::profile::Gating;
use super::super::rack::Lost;
use super::super::segment::milliseconds;
use super::limits::Stop;
use super::{Event, Frto, Outgoing, Phase, Sender, Timer, UNPACED};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Facts, Limit, Recovery, Signal};

/// A burst that is not full may be held back for so long after the last transmission, and if the next ACK is
/// due within it.
const DEFERRED: Span = Span::millis(1);

impl<C: Controller + Clone> Sender<C> {
    /// True if nothing is in flight and nothing waits to be sent.
    pub fn idle(&self) -> bool {
        // The timer is set while anything is in flight.
        debug_assert!(self.timer != Timer::Off || self.board.is_empty(), "in flight without a timer");
        self.timer == Timer::Off && (!self.ready || self.next >= self.data_end())
    }

    /// True if there is something to send or retransmit.
    pub(super) fn has_work(&self) -> bool {
        self.ready && (self.next < self.data_end() || self.board.lost.packets > self.board.resent.packets)
    }

    /// What limited sending, when an ACK arrives (`tcp_is_cwnd_limited`).
    pub fn growth_limit(&self) -> Limit {
        if self.profile.gating == Gating::Off || self.cwnd_limited {
            return Limit::Window;
        }
        if let Some(most) = self.growth_bound() {
            return if self.control.state().cwnd < most { Limit::Window } else { self.limited_by };
        }
        let s = self.control.state();
        let slow_start = s.ssthresh.is_none_or(|t| s.cwnd < t);
        // In slow start a window that is half used counts as used (tcp_is_cwnd_limited).
        if slow_start && s.cwnd < self.segment() * (2 * u64::from(self.max_out)) {
            return Limit::Window;
        }
        self.limited_by
    }

    /// The window to which a sender may grow that does not use it: what slow start, or Reno's congestion
    /// avoidance, makes in a round trip of the most in flight since the last reduction
    /// (draft-ietf-ccwg-ratelimited-increase, rule 1). `None` for a sender that uses its window, and without
    /// the rule.
    pub(super) fn growth_bound(&self) -> Option<Bytes> {
        if self.profile.gating != Gating::Draft || self.cwnd_limited {
            return None;
        }
        let s = self.control.state();
        let slow_start = s.ssthresh.is_none_or(|t| s.cwnd < t);
        let flight = self.max_flight;
        Some(if slow_start { flight * 2 } else { flight + self.segment() })
    }

    /// Sends what may be sent now.
    pub fn transmit(&mut self, now: Instant, out: &mut impl FnMut(Outgoing)) {
        self.transmit_after(now, false, out);
    }

    /// Sends what may be sent now, after an ACK. With `rearms` it also [sets the timer anew](Sender::rearm),
    /// once.
    pub(super) fn transmit_after(&mut self, now: Instant, rearms: bool, out: &mut impl FnMut(Outgoing)) {
        self.paced = Instant::NEVER;
        if !self.has_work() {
            self.limited_by = Limit::Application;
            self.mark_app_limited();
            self.update_limit(now, Stop::Data);
            if rearms {
                self.rearm(now);
            }
            return;
        }
        if self.handshake.is_some() {
            self.start_controller(now);
        }
        if self.board.is_empty() {
            self.after_idle(now);
        }
        let sent_before = self.counters.packets;
        let mut by_window = false;
        let mut window = self.window();
        let stop = loop {
            let mut inflight = u64::from(self.board.packets_inflight());
            if self.phase == Phase::Disorder && !self.profile.limited_transmit {
                inflight += u64::from(self.board.sacked.packets);
            } else if !self.profile.sack {
                inflight = inflight.saturating_sub(u64::from(self.duplicates));
            }
            if inflight >= window {
                by_window = true;
                break Stop::Window;
            }
            let again = if self.frto == Frto::SendingNew { None } else { self.board.next_to_resend() };
            if again.is_none() && self.next >= self.data_end() {
                self.limited_by = Limit::Application;
                self.mark_app_limited();
                break Stop::Data;
            }
            if let Some(at) = self.pacer.wait(now) {
                self.paced = at;
                // `limited_by` stays as it is: a window in use shows in `max_out`, as in Linux.
                break Stop::Pacer;
            }
            let room = window - inflight;
            let just = || self.counters.packets > sent_before || now.since(self.last_sent) <= DEFERRED;
            if again.is_none()
                && !self.pacer.fills(room, self.profile.mss)
                && just()
                && self.defers_burst(now, room, window)
            {
                by_window = true;
                break Stop::Window;
            }
            let mut burst = self.pacer.burst(room, self.profile.mss);
            if self.interface.is_some() {
                burst = self.burst_into_interface(now, burst, again.is_some());
                if burst == 0 {
                    window = self.window();
                    by_window = u64::from(self.board.packets_inflight()) >= window;
                    break if by_window { Stop::Window } else { Stop::HostQueue };
                }
            }
            let packets_before = self.counters.packets;
            let sent = match again {
                Some(first) => self.resend_burst(now, first, burst, out),
                None => self.send_new(now, burst, out),
            };
            if sent == 0 {
                self.limited_by = Limit::Peer;
                break Stop::Segment;
            }
            if self.interface.is_some() {
                self.count_into_interface(self.counters.packets - packets_before);
            }
            // The first ten segments are not paced (tcp_update_skb_after_send), unless the controller asks
            // for pacing.
            if self.counters.packets >= UNPACED || self.control.state().pace.is_some() {
                self.pacer.sent(now, Bytes(sent));
            }
            // The window is used up.
            if self.counters.packets - packets_before == room && self.profile.sack {
                by_window = true;
                break if self.has_work() { Stop::Window } else { Stop::Data };
            }
        };
        self.update_limit(now, stop);
        let inflight = self.board.inflight();
        self.counters.peak_inflight = self.counters.peak_inflight.max(inflight.0);
        self.max_flight = self.max_flight.max(inflight);
        let sends = self.counters.packets > sent_before;
        if sends {
            self.last_sent = now;
            if self.buffers.writes(self.next) {
                let (mss, window) = (u64::from(self.profile.mss), self.peer_window());
                self.buffers.write(self.next, self.end, mss, window);
            }
        }
        let probes = !rearms && self.timer == Timer::Probe;
        if rearms || (sends && matches!(self.timer, Timer::Off | Timer::ZeroWindow | Timer::Probe)) {
            self.rearm(now);
            // New data postpones the probe, but not beyond the timeout of earlier data.
            if sends && (probes || self.timer == Timer::Probe) {
                self.set_timer(self.timer, self.timer_at.min(self.retransmit_at(now)));
            }
        }
        // tcp_cwnd_validate
        if (sends || by_window)
            && (self.board.una() >= self.usage_mark
                || by_window
                || (!self.cwnd_limited && self.board.out.packets > self.max_out))
        {
            self.cwnd_limited = by_window;
            self.max_out = self.board.out.packets;
            self.usage_mark = self.next;
        }
        if self.board.is_empty() && self.timer == Timer::Off {
            self.rearm(now);
        }
    }

    /// True if a burst of less than its full size is to wait for the next ACK, which may let it grow
    /// (`tcp_tso_should_defer`). Only if something was sent within the last millisecond, and that ACK is due
    /// within one.
    fn defers_burst(&mut self, now: Instant, room: u64, window: u64) -> bool {
        let mss = u64::from(self.profile.mss);
        let limit = (room * mss).min(self.send_limit().saturating_sub(self.next));
        let (end, grows) = self.buffers.at(self.next);
        let left = end.min(self.end).saturating_sub(self.next);
        // The last buffer gets no more than the FIN.
        let ends = if grows { self.closed && limit > left } else { limit >= left };
        self.profile.tso_defer
            && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Cwr)
            && left > mss
            && !ends
            && limit < (window * mss).min(self.peer_window()) / 3
            && self.ack_is_near(now)
    }

    /// True if the first segment in flight should be acknowledged within a millisecond, or half an RTT.
    fn ack_is_near(&self, now: Instant) -> bool {
        let srtt = self.rtt.srtt().unwrap_or(Span::ZERO);
        let first = self.board.first().and_then(|n| self.board.get(n));
        first.is_some_and(|first| now + (srtt / 2).min(DEFERRED) >= first.at + srtt)
    }

    /// How much of a burst may go into the queue of the host's interface.
    #[cold]
    fn burst_into_interface(&mut self, now: Instant, burst: u32, again: bool) -> u32 {
        let Some(i) = self.interface else { return burst };
        if i.room == 0 {
            // Packets wait for the interface and are not lost.
            self.paced = now + i.rate.time_for(Bytes(u64::from(self.profile.packet())));
            self.on_interface_full(now);
            return 0;
        }
        let burst = burst.min(u32::try_from(i.room).unwrap_or(u32::MAX));
        if self.small_queue_is_full(burst, again) { 0 } else { burst }
    }

    /// Counts packets that went into that queue.
    #[cold]
    fn count_into_interface(&mut self, packets: u64) {
        let bytes = Bytes(packets * u64::from(self.profile.packet()));
        if let Some(i) = &mut self.interface {
            i.room = i.room.saturating_sub(packets);
            i.held = i.held.map(|held| held + bytes);
        }
    }

    /// The interface has no room. Linux 2.4 reduces its window, once per RTT, unless a loss or a mark does
    /// (`tcp_enter_cwr`); nothing is lost, so there is nothing to retransmit. Later versions only wait.
    #[cold]
    fn on_interface_full(&mut self, now: Instant) {
        self.counters.stalls += 1;
        let reducing = !matches!(self.phase, Phase::Open | Phase::Disorder);
        if !self.profile.stalls || reducing || self.board.una() < self.stalled {
            return;
        }
        self.stalled = self.next;
        self.push_event(now, Event::Stall);
        self.signal_congestion(now, Signal::LocalStall, true, Lost::default());
        let change = self.control.on_recovered(&self.facts(now), &Recovery::default());
        self.apply_change(now, change);
        self.update_pacer();
    }

    /// Retransmits the segment that ends `back` bytes before SND.NXT, at the controller's request, unless it
    /// is delivered or marked lost. Not part of a recovery.
    #[cold]
    pub(super) fn resend_requested(&mut self, now: Instant, back: Bytes, out: &mut impl FnMut(Outgoing)) {
        let end = self.next.checked_sub(back.0);
        let found = end.and_then(|e| e.checked_sub(1)).and_then(|last| self.board.number_of(last));
        let Some(n) = found.filter(|n| self.board.get(*n).is_some_and(|r| !r.sacked() && !r.lost())) else {
            return;
        };
        let undo = self.undo.take();
        self.resend(now, n, out);
        self.undo = undo;
    }

    pub(super) fn mark_app_limited(&mut self) {
        if u64::from(self.board.packets_inflight()) < self.window() {
            self.app_limited_until = (self.board.delivered + self.board.inflight().0).max(1);
        }
    }

    #[cold]
    pub(super) fn after_idle(&mut self, now: Instant) {
        let idle = now.since(self.last_sent);
        if self.counters.packets == 0 || idle == Span::ZERO {
            return;
        }
        let rto = self.rtt.rto();
        let restart = (self.profile.idle_restart && idle > rto).then_some(rto);
        self.regrows |= restart.is_some();
        let change = self.control.on_idle(&self.facts(now), idle, restart);
        self.apply_change(now, change);
        self.update_pacer();
    }

    /// Sends up to `burst` segments of new data; returns their bytes, 0 if the peer's window does not allow
    /// one.
    #[inline]
    pub(super) fn send_new(&mut self, now: Instant, burst: u32, out: &mut impl FnMut(Outgoing)) -> u64 {
        let all = u64::from(burst) * u64::from(self.profile.mss);
        let room = self.send_limit().saturating_sub(self.next);
        let whole = room.min(self.end.saturating_sub(self.next)).min(self.buffers.size());
        if all <= whole && !self.control.needs_on_sent() {
            self.send_train(now, burst, out);
            return all;
        }
        self.send_each(now, burst, out)
    }

    /// Sends segments one by one: at the end of the data or of the window, if they may lie in more than two
    /// buffers, or if the controller observes each.
    #[inline(never)]
    fn send_each(&mut self, now: Instant, burst: u32, out: &mut impl FnMut(Outgoing)) -> u64 {
        let mss = u64::from(self.profile.mss);
        let burst = burst.min(self.buffers.most(self.next, self.profile.mss));
        let cwnd = self.cwnd_bytes;
        // Built once per burst, and only if the controller needs it.
        let mut facts = self.control.needs_on_sent().then(|| self.facts(now));
        let mut sent = 0;
        for i in 0..burst {
            let left = self.end - self.next.min(self.end);
            let room = self.send_limit().saturating_sub(self.next);
            let mut len = mss.min(left);
            let fin = left == 0 && self.closed && self.end == self.next;
            // A segment that the window would cut waits (sender-side silly window avoidance, RFC 1122
            // §4.2.3.4), but follows one that is full (tcp_mss_split_point).
            let cut = len > room;
            if cut {
                len = if i > 0 && self.next + room == self.window_end { room } else { 0 };
            }
            if len == 0 && !fin {
                break;
            }
            // A FIN releases a segment that is held back.
            if len < mss && !fin && (cut || !self.closed) {
                let small = self.hold.nagle && self.small > self.board.una();
                if self.hold.cork || small {
                    break;
                }
                self.small = self.next + len;
            }
            // Until more than that is delivered (tcp_rate_gen): the first flight after an idle period is
            // application-limited too.
            let app_limited = self.app_limited_until >= self.board.delivered;
            let span = if fin { 1 } else { len };
            let n = self.board.send(now, self.next, span as u16, cwnd, app_limited);
            let cwr = self.ecn.cwr && len > 0;
            let last = i + 1 == burst || len + mss.min(left - len) > room;
            let push = len == left || (i > 0 && last);
            let len = len as u32;
            out(Outgoing { start: self.next, len, fin, retransmission: false, cwr, times: 1, push });
            self.ecn.cwr &= !cwr;
            self.next += span;
            sent += span;
            self.on_segment_sent(facts.as_mut(), n);
        }
        sent
    }

    /// Sends `n` full segments of new data.
    #[inline]
    fn send_train(&mut self, now: Instant, n: u32, out: &mut impl FnMut(Outgoing)) {
        let app_limited = self.app_limited_until >= self.board.delivered;
        let len = self.profile.mss;
        self.board.send_train(now, self.next, len as u16, n, self.cwnd_bytes, app_limited);
        let cwr = std::mem::take(&mut self.ecn.cwr);
        let end = self.next + u64::from(n) * u64::from(len);
        let push = n > 1 || end == self.end;
        out(Outgoing { start: self.next, len, fin: false, retransmission: false, cwr, times: n, push });
        self.next = end;
        self.counters.packets += u64::from(n);
        if let Some(p) = &mut self.prr {
            p.sent += u64::from(n);
        }
    }

    pub(super) fn on_segment_sent(&mut self, facts: Option<&mut Facts>, n: u64) {
        self.counters.packets += 1;
        if let Some(p) = &mut self.prr {
            p.sent += 1;
        }
        if let (Some(facts), Some(sent)) = (facts, self.board.sent(n)) {
            facts.inflight = self.board.inflight();
            facts.next = SendOrder::new(self.next);
            facts.unacked = Some(Bytes(self.next.saturating_sub(self.board.una())));
            self.control.on_sent(facts, &sent);
            self.sync_state();
        }
    }

    #[cold]
    pub(super) fn resend_burst(
        &mut self,
        now: Instant,
        first: u64,
        burst: u32,
        out: &mut impl FnMut(Outgoing),
    ) -> u64 {
        let mut sent = self.resend(now, first, out);
        for n in (first + 1..).take(burst.saturating_sub(1) as usize) {
            if self.board.next_to_resend() != Some(n) {
                break;
            }
            sent += self.resend(now, n, out);
        }
        sent
    }

    pub(super) fn resend(&mut self, now: Instant, n: u64, out: &mut impl FnMut(Outgoing)) -> u64 {
        let (start, len) = self.board.resend(now, n, self.cwnd_bytes);
        self.rack.resent(n, now);
        let fin = self.closed && self.end == start;
        let push = start + u64::from(len) == self.end;
        out(Outgoing {
            start,
            len: if fin { 0 } else { u32::from(len) },
            fin,
            retransmission: true,
            cwr: false,
            times: 1,
            push,
        });
        self.counters.retransmitted += 1;
        if let Some(u) = &mut self.undo {
            u.first.get_or_insert(milliseconds(now));
            u.open = Some(u.open.unwrap_or(0) + 1);
            u.retransmitted += Bytes(u64::from(len));
        }
        let mut facts = self.control.needs_on_sent().then(|| self.facts(now));
        self.on_segment_sent(facts.as_mut(), n);
        u64::from(len)
    }
}
