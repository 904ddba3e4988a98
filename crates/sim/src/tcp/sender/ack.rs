//! ACK processing (Linux `tcp_ack`).

use super::super::rack::{DUPLICATES, Lost};
use super::super::scoreboard::{Delivered, Record};
use super::super::segment::{is_before, milliseconds};
use super::{Incoming, Outgoing, Phase, Sender, Timer};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Limit};

/// The effect of an ACK.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Summary {
    /// `advanced`: it advanced the cumulative acknowledgement. `progress`: it advanced that or delivered
    /// something by SACK.
    advanced: bool,
    progress: bool,
    /// Segments and bytes delivered, and the bytes for which the window may grow.
    newly: u64,
    delivered: Bytes,
    earns: Bytes,
    /// Segments that are newly marked lost, their bytes, and the RTT sample.
    lost: Lost,
    newly_lost: Bytes,
    sample: Option<Span>,
}

impl<C: Controller + Clone> Sender<C> {
    /// Processes an ACK without SACK blocks and `AccECN` option, and sends what it allows.
    #[inline]
    pub fn on_ack(&mut self, now: Instant, a: &Incoming, out: &mut impl FnMut(Outgoing)) {
        if a.ack > self.next {
            return;
        }
        let before = (self.growth_limit(), self.board.inflight());
        let summary = if self.is_expected(a) {
            #[cfg(debug_assertions)]
            let general = self.process_copy(now, a);
            let summary = self.process_expected(now, a);
            #[cfg(debug_assertions)]
            self.compare_paths(general, summary);
            summary
        } else {
            None
        };
        match summary {
            Some(summary) => self.respond(now, summary, before, out),
            None => self.on_unexpected_ack(now, *a, before, out),
        }
    }

    /// Processes an ACK with SACK blocks or an `AccECN` option.
    #[inline]
    pub(crate) fn on_ack_with_options(&mut self, now: Instant, a: &Incoming, out: &mut impl FnMut(Outgoing)) {
        if a.ack <= self.next {
            let before = (self.growth_limit(), self.board.inflight());
            self.on_unexpected_ack(now, *a, before, out);
        }
    }

    /// Processes an ACK that is not [expected](Sender::is_expected).
    #[inline(never)]
    fn on_unexpected_ack(
        &mut self,
        now: Instant,
        a: Incoming,
        before: (Limit, Bytes),
        out: &mut impl FnMut(Outgoing),
    ) {
        let summary = self.process(now, &a);
        self.respond(now, summary, before, out);
        self.end_frto_without_new_data(now, out);
    }

    /// Acts on the effect of an ACK: calls the controller, updates recovery, timers and pacer, and sends.
    /// `limit` and `prior_inflight` are the state before the ACK.
    #[allow(clippy::inline_always, reason = "for an expected ACK the summary is mostly constant here")]
    #[inline(always)]
    fn respond(
        &mut self,
        now: Instant,
        summary: Summary,
        (limit, prior_inflight): (Limit, Bytes),
        out: &mut impl FnMut(Outgoing),
    ) {
        if summary.progress {
            let mut ack = Ack::new(self.board.newest(), summary.delivered, prior_inflight);
            ack.upto = SendOrder::new(self.board.una());
            ack.bytes = summary.earns;
            ack.newly_lost = summary.newly_lost;
            ack.rtt = summary.sample;
            ack.limit = limit;
            ack.most = self.growth_bound();
            let change = self.control.on_ack(&self.facts(now), &ack);
            self.apply_change(now, change);
            if let Some(back) = change.resend {
                self.resend_requested(now, back, out);
            }
            self.update_pacer();
        }
        self.update_prr(summary.newly, summary.lost, summary.advanced);
        // A SACK restarts the timer only if it covers data sent before the first segment in flight: a segment
        // that is lost again must time out (tcp_clean_rtx_queue).
        let moves = summary.advanced || summary.sample.is_some_and(|s| self.head_sent() > now - s);
        let rearms = summary.progress && moves && self.timer != Timer::Reordering;
        self.transmit_after(now, rearms, out);
        if self.timer == Timer::Off {
            self.rearm(now);
        }
        #[cfg(debug_assertions)]
        if self.counters.packets.is_multiple_of(4099) {
            self.board.check();
        }
    }

    /// True if nothing is lost or out of order and the ACK is purely cumulative, as nearly all are (compare
    /// the header prediction of `tcp_rcv_established`). All that [`Sender::process`] does for other ACKs then
    /// has no effect.
    fn is_expected(&self, a: &Incoming) -> bool {
        self.phase == Phase::Open
            && a.sacks == 0
            && a.ack > self.board.una()
            && !self.ecn.has_news(a.flags)
            && a.option.is_none()
            && self.board.has_no_holes()
            && self.profile.sack
            && !self.profile.echo_rtt
            && self.rack.has_no_retransmissions()
            && self.probe.is_none()
            && self.timer != Timer::Reordering
    }

    /// Processes an [expected](Sender::is_expected) ACK. Returns `None` and changes nothing if it ends within
    /// a segment or covers a retransmitted one.
    #[inline]
    fn process_expected(&mut self, now: Instant, a: &Incoming) -> Option<Summary> {
        let sent = self.board.acknowledge_in_order(now, a.ack)?;
        self.window_end = a.window_end;
        self.rtt.progress();
        self.rack.delivered(now, &sent.last, None);
        let sample = Some(self.record_rtt(now.since(sent.first), now.since(sent.last.at)));
        let delivered = Bytes(sent.bytes);
        Some(Summary {
            advanced: true,
            progress: true,
            newly: u64::from(sent.packets),
            delivered,
            earns: delivered,
            sample,
            ..Summary::default()
        })
    }

    /// Processes an expected ACK by the general path, on a copy. For one of eight ACKs, and at most 4096
    /// segments in flight, so that tests stay fast.
    #[cfg(debug_assertions)]
    fn process_copy(&self, now: Instant, a: &Incoming) -> Option<(Self, Summary)> {
        (self.counters.packets.is_multiple_of(8) && self.board.len() <= 4096).then(|| {
            let mut copy = self.clone();
            let summary = copy.process(now, a);
            (copy, summary)
        })
    }

    /// Asserts that the path for expected ACKs, if it took this one, has the effect of the general path.
    #[cfg(debug_assertions)]
    fn compare_paths(&mut self, general: Option<(Self, Summary)>, summary: Option<Summary>) {
        let (Some((general, of_general)), Some(summary)) = (general, summary) else { return };
        let g = &general;
        assert_eq!(summary, of_general);
        assert!(self.board == g.board, "{:?}, not {:?}", self.board, g.board);
        assert_eq!((&self.rtt, &self.rack), (&g.rtt, &g.rack));
        assert_eq!((&self.prr, &self.undo, &self.probe), (&g.prr, &g.undo, &g.probe));
        assert_eq!((&self.ecn, self.counters.marked), (&g.ecn, g.counters.marked));
        assert_eq!((self.phase, self.timer, self.timer_at), (g.phase, g.timer, g.timer_at));
        assert_eq!((self.window_end, self.last_rtt), (g.window_end, g.last_rtt));
        assert_eq!((self.duplicates, self.high, self.next), (g.duplicates, g.high, g.next));
        assert_eq!((self.cwnd, self.events.len()), (g.cwnd, g.events.len()));
        self.counters.compared_acks += 1;
    }

    /// Processes any ACK.
    fn process(&mut self, now: Instant, a: &Incoming) -> Summary {
        let prior_una = self.board.una();
        let lost_before = self.board.lost_total;
        let opens = a.window_end > self.window_end;
        // tcp_may_update_window: new data is acknowledged, or the window grows or closes.
        let moved = a.ack > prior_una || (a.ack == prior_una && (opens || a.window_end == a.ack));
        let window_moved = moved && a.window_end != self.window_end;
        if opens && moved && self.board.is_empty() {
            // tcp_ack_probe: the window opens again.
            self.rtt.progress();
        }
        if moved {
            self.window_end = a.window_end;
        }
        let (d, duplicate) = self.update_scoreboard(now, a);
        let advanced = d.acked > 0;
        if advanced {
            self.rtt.progress();
        }
        let sample = self.sample_rtt(now, &d, a.echo);
        if let Some(range) = duplicate {
            self.on_duplicate(now, range, prior_una);
        }
        let progress = advanced || d.bytes > 0;
        let marked = progress && self.count_marks(a, &d);
        let duplicates = self.duplicates;
        let lost = if progress || duplicate.is_some() || self.is_duplicate(a, prior_una, window_moved) {
            self.update_recovery(now, a, &d, (advanced, marked), prior_una)
        } else {
            Lost::default()
        };
        // Data that the peer already held has been counted (tcp_cong_avoid's acked_sacked): the ACK that
        // fills the last hole of a recovery does not grow the window by all of it.
        let earns =
            if advanced || self.sack_earns_growth(&d) { self.newly_reported(&d, duplicates) } else { 0 };
        Summary {
            advanced,
            progress,
            newly: if self.profile.sack { u64::from(d.packets) } else { 1 },
            delivered: Bytes(d.bytes),
            earns: Bytes(earns),
            lost,
            newly_lost: Bytes(self.board.lost_total - lost_before),
            sample,
        }
    }

    /// Updates the scoreboard; returns what was newly delivered, and the duplicate that was reported.
    fn update_scoreboard(&mut self, now: Instant, a: &Incoming) -> (Delivered, Option<(u64, u64)>) {
        // A lost ACK left its news to this one: only data held before this ACK is evidence of reordering.
        let mut d = Delivered::new(self.board.highest_held());
        let mut duplicate = None;
        let min = self.rtt.min();
        let rack = &mut self.rack;
        if self.profile.sack {
            for (i, &(from, to)) in a.blocks[..a.sacks].iter().enumerate() {
                // RFC 2883 §4: a duplicate is below the acknowledgement or inside the second block.
                let inside = i == 0 && a.sacks > 1 && a.blocks[1].0 <= from && to <= a.blocks[1].1;
                if to <= a.ack || (i == 0 && inside) {
                    if i == 0 {
                        duplicate = Some((from, to));
                    }
                    continue;
                }
                self.board.sack(now, from.max(a.ack), to, &mut d, |r| rack.delivered(now, r, min));
            }
        }
        // The SACK blocks may show reordering, and then the cumulative acknowledgement again.
        let mss = u64::from(self.profile.mss);
        if let Some(low) = d.reordered.take() {
            rack.reordering(self.board.highest_held() - low, mss);
        }
        // A retransmission that left after what this ACK echoes was unnecessary (tcp_skb_spurious_retrans).
        let unnecessary =
            |r: &Record| r.ever_resent() && a.echo.is_some_and(|e| is_before(e, milliseconds(r.at)));
        self.board.acknowledge(now, a.ack, &mut d, |r| {
            if !unnecessary(r) {
                rack.delivered(now, r, min);
            }
        });
        if let Some(low) = d.reordered {
            rack.reordering(self.board.highest_held().saturating_sub(low), mss);
        }
        (d, duplicate)
    }

    /// Takes what an ACK that makes progress says of marks; returns true if packets were marked.
    fn count_marks(&mut self, a: &Incoming, d: &Delivered) -> bool {
        if !self.ecn.has_news(a.flags) && a.option.is_none() {
            return false;
        }
        let delivered = (u64::from(d.packets).max(1), d.bytes);
        let mss = u64::from(self.profile.mss);
        let (packets, bytes) = self.ecn.on_ack(a.flags, a.option.as_ref(), delivered, mss);
        self.counters.marked += bytes;
        packets > 0
    }

    /// True if SACKed data may grow the window: on a path known to reorder (`tcp_may_raise_cwnd`).
    fn sack_earns_growth(&self, d: &Delivered) -> bool {
        d.sacked && self.profile.rack && self.rack.degree > DUPLICATES
    }

    /// The bytes that no ACK before this one reported: without SACK each duplicate ACK stands for one segment
    /// (`tcp_remove_reno_sacks`).
    fn newly_reported(&self, d: &Delivered, duplicates: u32) -> u64 {
        if duplicates == 0 {
            return d.bytes;
        }
        let mss = u64::from(self.profile.mss);
        d.bytes.saturating_sub(u64::from(duplicates) * mss).max(mss.min(d.bytes))
    }

    /// True for a duplicate ACK of a stack without SACK.
    fn is_duplicate(&self, a: &Incoming, prior_una: u64, window_moved: bool) -> bool {
        !self.profile.sack && a.ack == prior_una && !window_moved && !self.board.is_empty()
    }

    /// Takes RTT samples (`tcp_ack_update_rtt`): the timeout uses the oldest segment delivered, controllers
    /// the newest. Returns the latter.
    fn sample_rtt(&mut self, now: Instant, d: &Delivered, echo: Option<u32>) -> Option<Span> {
        let (oldest, newest) = match d.sent_once() {
            Some((first, last)) if !d.resent && !self.profile.echo_rtt => (now.since(first), now.since(last)),
            // After a retransmission only the timestamp shows which copy was acknowledged (RFC 7323 §4).
            _ => {
                let echo = echo.filter(|_| d.acked > 0)?;
                let ago = milliseconds(now).wrapping_sub(echo);
                let rtt = Span::millis(u64::from(ago.max(1)));
                (rtt, rtt)
            }
        };
        Some(self.record_rtt(oldest, newest))
    }

    /// Records the RTTs of the oldest and of the newest segment delivered; returns the latter.
    fn record_rtt(&mut self, oldest: Span, newest: Span) -> Span {
        let (una, next) = (SendOrder::new(self.board.una()), SendOrder::new(self.next));
        self.rtt.sample(oldest, una, next);
        self.rtt.least(newest);
        self.last_rtt = newest;
        newest
    }
}
