//! What an acknowledgement means (Linux `tcp_ack`).

use super::super::rack::{DUPLICATES, Lost};
use super::super::scoreboard::Delivered;
use super::{Chunk, Incoming, Phase, Sender, Timer, milliseconds};
use slowstart::control::Controller;
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Limit};

/// What an acknowledgement told.
#[derive(Copy, Clone, Default)]
struct News {
    /// It advanced what is acknowledged; or told of something else that was delivered.
    advanced: bool,
    progress: bool,
    /// Segments and bytes delivered, and the bytes that earn growth.
    newly: u64,
    delivered: Bytes,
    earns: Bytes,
    /// What follows from it.
    lost: Lost,
    newly_lost: Bytes,
    sample: Option<Span>,
}

impl<C: Controller> Sender<C> {
    /// An acknowledgement arrived.
    #[inline]
    pub fn on_ack(&mut self, now: Instant, a: &Incoming, out: &mut impl FnMut(Chunk)) {
        if a.ack > self.next {
            return;
        }
        let before = (self.limit(), self.board.inflight());
        let news = if self.expects(a) { self.take_expected(now, a) } else { None };
        match news {
            Some(news) => self.act_on(now, news, before, out),
            None => self.on_other_ack(now, *a, before, out),
        }
    }

    /// One that is not as [expected](Sender::expects).
    #[inline(never)]
    fn on_other_ack(
        &mut self,
        now: Instant,
        a: Incoming,
        before: (Limit, Bytes),
        out: &mut impl FnMut(Chunk),
    ) {
        let news = self.take(now, &a);
        self.act_on(now, news, before, out);
    }

    /// What follows from the news of an acknowledgement, before which this had held growth back and so much was in flight.
    #[allow(
        clippy::inline_always,
        reason = "of the news that are expected most is known where they are told"
    )]
    #[inline(always)]
    fn act_on(
        &mut self,
        now: Instant,
        news: News,
        (limit, prior_inflight): (Limit, Bytes),
        out: &mut impl FnMut(Chunk),
    ) {
        if news.progress {
            let ack = Ack {
                upto: Mark(self.board.una()),
                bytes: news.earns,
                delivered: news.delivered,
                newly_lost: news.newly_lost,
                prior_inflight,
                rtt: news.sample,
                newest: self.board.newest(),
                limit,
            };
            let change = self.control.on_ack(&self.facts(now), &ack);
            self.took(now, change);
            if let Some(mark) = change.resend {
                self.repeat(now, mark, out);
            }
            self.update_pacer();
        }
        self.reduce(news.newly, news.lost, news.advanced);
        // What was selectively acknowledged moves the timer only if it was sent before the head: a head that is lost
        // again must time out (tcp_clean_rtx_queue).
        let moves = news.advanced || news.sample.is_some_and(|s| self.head_sent() > now - s);
        let rearms = news.progress && moves && self.timer != Timer::Reordering;
        self.transmit_after(now, rearms, out);
        if self.timer == Timer::Off {
            self.rearm(now);
        }
        #[cfg(debug_assertions)]
        if self.counters.packets.is_multiple_of(4099) {
            self.board.check();
        }
    }

    /// Nothing is amiss, and the acknowledgement tells only that what was sent first arrived: as nearly all do
    /// (`tcp_rcv_established` predicts its header). What [`Sender::take`] does about all else is then nothing.
    fn expects(&self, a: &Incoming) -> bool {
        self.phase == Phase::Open
            && a.sacks == 0
            && a.ack > self.board.una()
            && self.board.is_whole()
            && self.profile.sack
            && !self.profile.echo_rtt
            && self.rack.is_calm()
            && self.probe.is_none()
            && self.timer != Timer::Reordering
    }

    /// What an acknowledgement means that was [expected](Sender::expects); `None`, and nothing has changed, if it ends
    /// within a segment or something of it was sent more than once.
    #[inline]
    fn take_expected(&mut self, now: Instant, a: &Incoming) -> Option<News> {
        let sent = self.board.acknowledge_plain(now, a.ack)?;
        self.window_end = a.window_end;
        self.rtt.progress();
        self.rack.delivered(now, &sent.last, None);
        let sample = Some(self.measure(now.since(sent.first), now.since(sent.last.at)));
        let delivered = Bytes(sent.bytes);
        Some(News { advanced: true, progress: true, delivered, earns: delivered, sample, ..News::default() })
    }

    /// What any acknowledgement means.
    fn take(&mut self, now: Instant, a: &Incoming) -> News {
        let prior_una = self.board.una();
        let lost_before = self.board.lost_total;
        let opens = a.window_end > self.window_end;
        // tcp_may_update_window: with new data acknowledged, larger, or closed.
        let moved = a.ack > prior_una || (a.ack == prior_una && (opens || a.window_end == a.ack));
        let window_moved = moved && a.window_end != self.window_end;
        if opens && moved && self.board.is_empty() {
            // tcp_ack_probe: it opens again.
            self.rtt.progress();
        }
        if moved {
            self.window_end = a.window_end;
        }
        let (d, duplicate) = self.deliver(now, a);
        let advanced = d.acked > 0;
        if advanced {
            self.rtt.progress();
        }
        let sample = self.sample(now, &d, a.echo);
        if let Some(range) = duplicate {
            self.on_duplicate(now, range, prior_una);
        }
        let progress = advanced || d.bytes > 0;
        let duplicates = self.duplicates;
        let lost = if progress || duplicate.is_some() || self.is_duplicate(a, prior_una, window_moved) {
            self.alert(now, a, &d, advanced)
        } else {
            Lost::default()
        };
        // What the peer already held has been counted (tcp_cong_avoid's acked_sacked): the acknowledgement that fills
        // the last hole of a recovery does not earn a window at once.
        let earns = if advanced || self.raises(&d) { self.fresh(&d, duplicates) } else { 0 };
        News {
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

    /// Tells the scoreboard; answers what was new, and which duplicate was reported.
    fn deliver(&mut self, now: Instant, a: &Incoming) -> (Delivered, Option<(u64, u64)>) {
        // An acknowledgement that was lost left its news to this one: only what was held before is older evidence.
        let mut d = Delivered::new(self.board.held_to());
        let mut duplicate = None;
        let min = self.rtt.min();
        let rack = &mut self.rack;
        if self.profile.sack {
            for (i, &(from, to)) in a.blocks[..a.sacks].iter().enumerate() {
                // RFC 2883 §4: below the acknowledgement, or inside the next block.
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
        // The blocks tell of it, and the acknowledgement may once more.
        let mss = u64::from(self.profile.mss);
        if let Some(low) = d.reordered.take() {
            rack.reordering(self.board.held_to() - low, mss);
        }
        self.board.acknowledge(now, a.ack, &mut d, |r| rack.delivered(now, r, min));
        if let Some(low) = d.reordered {
            rack.reordering(self.board.held_to().saturating_sub(low), mss);
        }
        (d, duplicate)
    }

    /// On a path known to reorder, what arrives out of order earns as what arrives in order (`tcp_may_raise_cwnd`).
    fn raises(&self, d: &Delivered) -> bool {
        d.sacked && self.profile.rack && self.rack.degree > DUPLICATES
    }

    /// The bytes that an acknowledgement is the first to tell of: without blocks, each duplicate before it told of a segment
    /// (`tcp_remove_reno_sacks`).
    fn fresh(&self, d: &Delivered, duplicates: u32) -> u64 {
        if duplicates == 0 {
            return d.bytes;
        }
        let mss = u64::from(self.profile.mss);
        d.bytes.saturating_sub(u64::from(duplicates) * mss).max(mss.min(d.bytes))
    }

    /// A bare duplicate, for stacks without selective acknowledgement.
    fn is_duplicate(&self, a: &Incoming, prior_una: u64, window_moved: bool) -> bool {
        !self.profile.sack && a.ack == prior_una && !window_moved && !self.board.is_empty()
    }

    /// Round-trip samples (`tcp_ack_update_rtt`): the timeout takes the oldest, the algorithms the newest.
    fn sample(&mut self, now: Instant, d: &Delivered, echo: Option<u32>) -> Option<Span> {
        let (oldest, newest) = match d.once() {
            Some((first, last)) if !d.resent && !self.profile.echo_rtt => (now.since(first), now.since(last)),
            // Only the timestamp tells which copy was answered (RFC 7323 §4).
            _ => {
                let echo = echo.filter(|_| d.acked > 0)?;
                let ago = milliseconds(now).wrapping_sub(echo);
                let rtt = Span::millis(u64::from(ago.max(1)));
                (rtt, rtt)
            }
        };
        Some(self.measure(oldest, newest))
    }

    /// Takes the round trips of the oldest and the newest packet delivered; answers what the algorithms are told.
    fn measure(&mut self, oldest: Span, newest: Span) -> Span {
        let (una, next) = (Mark(self.board.una()), Mark(self.next));
        self.rtt.sample(oldest, una, next);
        self.rtt.least(newest);
        self.last_rtt = newest;
        newest
    }
}
