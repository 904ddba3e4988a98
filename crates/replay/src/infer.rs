//! Where the connection that was seen left slow start, from outside: its window is not in a packet, but what it has in
//! flight is, and a sender that is held back by its window has all of it in flight.

use slowstart::units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// Growth in a round trip that is none: this share, in hundredths, and at least so many segments. Slow start doubles, or
/// grows by half with delayed ACKs; conservative slow start (RFC 9406) grows by a quarter; avoidance by a segment or two,
/// CUBIC by a twentieth where it knows no maximum (`tcp_cubic.c`).
const FLAT: u64 = 9;
const FLAT_LEAST: u64 = 3;
/// An end is sudden: one of the two round trips before it grew by this share. Limited slow start (RFC 3742), which adds
/// 50 segments each, ever less of its window, has none.
const SUDDEN: u64 = 20;
/// Marks of growth over what was acknowledged: so many a window, of the last windows.
const MARKS: u64 = 16;
const WINDOWS: u64 = 4;
/// Growth is judged over a mark at least, and over more than a sender holds back for a burst (64 kB:
/// `tcp_tso_should_defer`, GSO): until a burst leaves its flight does not grow, in slow start either.
const BURST: Bytes = Bytes(65_536);
/// A window has fallen, where nothing was lost, by more than this share, in hundredths, and more than a segment.
const FALLEN: u64 = 5;
/// Round trips without growth that end it.
const FLAT_ROUNDS: u32 = 2;
/// Round trips after those in which growth by a half would say that it had only paused, as it does where a receiver's
/// ACKs come in bursts or its clock ticks slowly.
const SURE_ROUNDS: u32 = 3;
/// Round trips after the end in which avoidance would have added some segments (RFC 5681 §3.1: one each, half of one with
/// delayed ACKs). What is flat to the end is held by something else than a window.
const STILL_ROUNDS: u32 = 8;
/// A spurt of growth begins after a silence of so many hundredths of a round trip. Of senders that grow in every
/// round trip such spurts are a round trip apart, or there is no such silence; of those that grow in every other one, two.
const SILENT: u64 = 90;
const APART: u64 = 150;
/// A spurt is of one round trip, and doubles; delayed ACKs may carry some of it over.
const SPURT: u64 = 250;
/// Moments kept at which more was in flight than ever before.
const REACHED: usize = 1024;

/// What held the sender back in a round trip.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// Its window, as far as can be seen.
    Cwnd,
    /// It had nothing to send.
    Application,
    /// The peer's window.
    ReceiveWindow,
    /// Nothing was in flight.
    Idle,
}

impl LimitedBy {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Cwnd => "window",
            Self::Application => "application",
            Self::ReceiveWindow => "receive window",
            Self::Idle => "idle",
        }
    }
}

/// A round trip that is over.
#[derive(Copy, Clone, Debug)]
pub struct Round {
    /// When its first ACK came.
    pub start: Instant,
    /// The most in flight.
    pub peak: Bytes,
    /// What held it.
    pub held: LimitedBy,
}

/// Why it is believed that slow start ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// What is in flight stopped growing, and nothing had been lost.
    GrowthStopped,
    /// A loss became known while it grew.
    Loss,
    /// The retransmission timer fired while it grew.
    Timeout,
    /// The network marked packets while it grew (RFC 3168).
    Mark,
    /// A sample has a threshold that the one before had not, and nothing was lost between.
    Threshold,
    /// The file says so.
    Recorded,
}

impl Evidence {
    /// Whether the network ended it, and not its own rule.
    pub const fn is_congestion(self) -> bool {
        matches!(self, Self::Loss | Self::Timeout | Self::Mark)
    }

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::GrowthStopped => "growth stopped without loss",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Mark => "a mark by the network",
            Self::Threshold => "a threshold was set without loss",
            Self::Recorded => "told by the file",
        }
    }
}

/// The end of slow start as seen from outside.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExitEstimate {
    /// When.
    pub at: Instant,
    /// The window then: the most in flight.
    pub cwnd: Bytes,
    /// Why.
    pub evidence: Evidence,
}

/// Why no end of slow start is claimed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoExit {
    /// It had too little to send.
    ApplicationLimited,
    /// The peer's window held it.
    PeerLimited,
    /// It ended before growth did.
    StillGrowing,
    /// It never grew.
    NoGrowth,
    /// Growth stopped, and not even avoidance added anything until the end, though nothing was lost: not a window held it.
    LimitedOtherwise,
    /// The capture begins later.
    BeganBefore,
    /// The file has samples, between which it is not seen.
    TooFew,
}

impl NoExit {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ApplicationLimited => "application-limited",
            Self::PeerLimited => "limited by the receive window",
            Self::StillGrowing => "ended while growing",
            Self::NoGrowth => "no growth seen",
            Self::LimitedOtherwise => "held by something else than its window",
            Self::BeganBefore => "began before the capture",
            Self::TooFew => "too few samples",
        }
    }
}

/// Looks for the end of slow start, round trip by round trip.
#[derive(Clone, Debug, Default)]
pub struct Inference {
    best: Bytes,
    grew: u32,
    flat: u32,
    /// The growth of the last two round trips that grew, in hundredths.
    growth: [u64; 2],
    /// The most in flight in the round trip before the first flat one.
    level: Bytes,
    /// The most ever in flight.
    most: Bytes,
    /// What was acknowledged that let something be sent.
    acked: Bytes,
    /// When so much was, and the most that had then been in flight.
    marks: VecDeque<(Instant, Bytes, Bytes)>,
    /// Growth: when, to how much, and the round trip then.
    reached: Vec<(Instant, Bytes, Span)>,
    rounds: [u32; 4],
    /// Round trips since the peer's window last held it, if it did and no sudden growth was seen since.
    since_peer: Option<u32>,
    found: Option<ExitEstimate>,
    /// Round trips since it was found.
    after: u32,
    /// When as much as ever was last in flight.
    full: Instant,
    /// That, before the window fell without a loss, and for how many round trips it has been less.
    fell: Option<(Instant, u32)>,
    /// There was no more to send after a round trip without growth.
    ended_flat: bool,
    /// The least and the most in flight in those.
    between: Option<(Bytes, Bytes)>,
    loss: Option<ExitEstimate>,
    /// An end shortly before that.
    before_loss: Option<ExitEstimate>,
}

impl Inference {
    /// So much is in flight; `rtt` is the newest round trip, zero if there is none.
    pub fn on_sent(&mut self, at: Instant, inflight: Bytes, rtt: Span, mss: Bytes) {
        if inflight + near(self.most, mss) >= self.most {
            self.full = at;
        }
        self.most = self.most.max(inflight);
        if !self.decided() && self.reached.len() < REACHED {
            let most = self.reached.last().map_or(Bytes::ZERO, |r| r.1);
            if inflight >= most + mss.max(most / 100) || (most == Bytes::ZERO && inflight > most) {
                self.reached.push((at, inflight, rtt));
            }
        }
    }

    /// So much more is acknowledged, and lets something be sent.
    pub fn on_ack(&mut self, at: Instant, bytes: Bytes) {
        let most = self.most;
        if most == Bytes::ZERO || self.loss.is_some() || self.decided() {
            return;
        }
        self.acked += bytes;
        let due = self.marks.back().is_none_or(|m| self.acked >= m.1 + most / MARKS);
        if due {
            self.marks.push_back((at, self.acked, most));
            if self.marks.len() as u64 > MARKS * WINDOWS {
                self.marks.pop_front();
            }
        }
    }

    /// A loss became known. What was acknowledged since slow start ended, if it ended before, let nothing more be sent
    /// than was: the slope of growth over acknowledgements fell.
    pub fn on_loss(&mut self, at: Instant, evidence: Evidence) {
        if self.loss.is_some() {
            return;
        }
        let cwnd = self.most.max(self.best);
        self.loss = Some(ExitEstimate { at, cwnd, evidence });
        let now = (at, self.acked, cwnd);
        // Hundredths of growth for each byte acknowledged.
        let slope = |from: &(Instant, Bytes, Bytes), to: &(Instant, Bytes, Bytes)| {
            (to.2 - from.2).scale(100, (to.1 - from.1).0.max(1)).0
        };
        for (i, m) in self.marks.iter().enumerate() {
            let before = self.marks.iter().take(i).rev().find(|b| b.1 + m.2 / 2 <= m.1);
            let long = now.1 >= m.1 + BURST.max(m.2 / MARKS);
            if long && slope(m, &now) <= FLAT && before.is_some_and(|b| slope(b, m) >= SUDDEN) {
                self.before_loss =
                    Some(ExitEstimate { at: m.0, cwnd: m.2, evidence: Evidence::GrowthStopped });
                return;
            }
        }
    }

    /// It was none.
    pub fn on_undone(&mut self) {
        (self.loss, self.before_loss) = (None, None);
    }

    /// A round trip is over.
    pub fn on_round(&mut self, round: &Round, mss: Bytes) {
        if self.loss.is_some() {
            return;
        }
        self.rounds[round.held as usize] += 1;
        if self.found.is_some() && round.held == LimitedBy::Cwnd {
            self.after += 1;
            let (low, high) = self.between.unwrap_or((round.peak, round.peak));
            self.between = Some((low.min(round.peak), high.max(round.peak)));
        }
        if self.after > SURE_ROUNDS {
            return;
        }
        if round.held == LimitedBy::ReceiveWindow {
            self.since_peer = Some(0);
        }
        if round.held != LimitedBy::Cwnd {
            // A window that was not used need not have stopped growing.
            self.best = self.best.max(round.peak);
            self.ended_flat = round.held == LimitedBy::Application && (self.flat > 0 || self.ended_flat);
            self.flat = 0;
            return;
        }
        self.ended_flat = false;
        // Nothing was lost: what falls was made smaller by the rule that ended slow start (Vegas; SEARCH, which drains).
        self.fell = if round.peak + mss.max(self.best.scale(FALLEN, 100)) < self.best {
            Some(self.fell.map_or((self.full, 1), |f| (f.0, f.1 + 1)))
        } else {
            self.fell.filter(|f| f.1 >= FLAT_ROUNDS)
        };
        if self.found.is_some() {
            if round.peak > self.level + self.level / 2 {
                (self.found, self.after, self.between, self.fell) = (None, 0, None, None);
                (self.grew, self.best, self.flat) = (self.grew + 1, round.peak, 0);
            }
            return;
        }
        let none = self.best.scale(FLAT, 100).max(mss * FLAT_LEAST);
        let grew = (round.peak - self.best).scale(100, self.best.0.max(1)).0;
        self.since_peer = match self.since_peer {
            // What grew in the first may be due to the peer's window that has opened.
            Some(n) if n > 0 && grew >= SUDDEN => None,
            n => n.map(|n| n + 1),
        };
        // The first round trip is the initial window, and no growth.
        let first = self.best == Bytes::ZERO;
        if first || round.peak > self.best + none || self.growth.iter().all(|g| *g < SUDDEN) {
            self.flat = 0;
            self.grew += u32::from(!first && round.peak > self.best + none);
            if !first {
                self.growth = [self.growth[1], grew];
            }
            self.best = self.best.max(round.peak);
            return;
        }
        if self.flat == 0 {
            self.level = self.best;
        }
        self.best = self.best.max(round.peak);
        self.flat += 1;
        if self.flat >= FLAT_ROUNDS && self.grew > 0 {
            self.stop(mss);
        }
    }

    /// It stopped when the level, but for a segment or two hundredths, was first in flight; of a sender that grows by
    /// spurts, when the next was due. If all growth since was held by the peer's window, its end hides behind that.
    fn stop(&mut self, mss: Bytes) {
        if self.since_peer.is_some() {
            return;
        }
        let level = self.level - near(self.level, mss);
        let Some(i) = self.reached.iter().position(|r| r.1 >= level) else { return };
        let at = due(&self.reached[..=i]).unwrap_or(self.reached[i].0);
        (self.after, self.between) = (0, None);
        self.found = Some(ExitEstimate { at, cwnd: self.level, evidence: Evidence::GrowthStopped });
    }

    /// When as much was first in flight, if that was before the answer was certain.
    pub fn first(&self, inflight: Bytes) -> Option<Instant> {
        self.reached.iter().find(|r| r.1 >= inflight).map(|r| r.0)
    }

    /// When more than as much was: by more than a round trip without growth may add.
    pub fn first_above(&self, inflight: Bytes) -> Option<Instant> {
        self.first(inflight + inflight.scale(FLAT, 100))
    }

    /// Whether anything more may change the answer.
    pub fn decided(&self) -> bool {
        self.found.is_some() && self.after >= SURE_ROUNDS
    }

    /// The answer.
    pub fn answer(mut self, mss: Bytes) -> Result<ExitEstimate, NoExit> {
        // A loss, or no more data, after one flat round trip: growth had stopped before.
        let flat = self.loss.is_some() && self.flat > 0 || self.ended_flat;
        if self.found.is_none() && flat && self.grew > 0 {
            self.stop(mss);
        }
        let [window, application, peer, _] = self.rounds;
        // Growth that the peer's window held back until then may have ended behind it.
        if self.found.is_none() && self.before_loss.is_some() && self.since_peer.is_some() {
            return Err(NoExit::PeerLimited);
        }
        // A window that was kept, and then fell, was given up when it fell.
        if let (Some(found), Some((at, FLAT_ROUNDS..))) = (&mut self.found, self.fell) {
            found.at = found.at.max(at);
        }
        self.found = self.found.or(self.before_loss);
        if let (None, Some((low, high))) = (self.loss, self.between)
            && self.after >= STILL_ROUNDS
            && high <= low + mss
        {
            return Err(NoExit::LimitedOtherwise);
        }
        if self.since_peer.is_some_and(|n| n > FLAT_ROUNDS) && self.found.is_none() {
            return Err(NoExit::PeerLimited);
        }
        // What a sender loses that mostly has nothing to send says little of its window.
        if application > window {
            self.loss = None;
        }
        self.found.or(self.loss).ok_or(if self.grew > 0 && application <= window && peer <= window {
            NoExit::StillGrowing
        } else if peer > 0 && peer >= application {
            NoExit::PeerLimited
        } else if application > 0 {
            NoExit::ApplicationLimited
        } else {
            NoExit::NoGrowth
        })
    }
}

/// What is no difference between windows: a segment or two hundredths.
fn near(window: Bytes, mss: Bytes) -> Bytes {
    mss.max(window / 50)
}

/// When a sender that doubles, pauses for a round trip and doubles again (Vegas) would have grown again.
fn due(reached: &[(Instant, Bytes, Span)]) -> Option<Instant> {
    let flows = |a: &(Instant, Bytes, Span), b: &(Instant, Bytes, Span)| {
        b.2 == Span::ZERO || b.0.since(a.0) < b.2.scale(SILENT, 100)
    };
    let spurts: Vec<_> = reached.chunk_by(flows).collect();
    let mut at = None;
    for (i, pair) in spurts.windows(2).enumerate() {
        let ([.., before], [first, .., last] | [first @ last]) = (pair[0], pair[1]) else { return None };
        if last.1 > before.1.scale(SPURT, 100) {
            return None;
        }
        // The first is the initial window, and the second follows with the first ACK.
        if i == 0 {
            continue;
        }
        let apart = first.0.since(pair[0][0].0);
        let one = first.2.scale(APART, 100);
        if apart < one || before.0.since(pair[0][0].0) > one || last.0.since(first.0) > one {
            return None;
        }
        at = Some(first.0 + apart);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes(1000);

    /// Round trips of 100 ms with so many segments in flight, reached in their middle.
    fn rounds(peaks: &[u64]) -> Inference {
        let mut i = Inference::default();
        for (n, peak) in peaks.iter().enumerate() {
            let start = Instant(n as u64 * 100_000_000);
            i.on_sent(Instant(start.0 + 50_000_000), MSS * *peak, Span::millis(100), MSS);
            i.on_round(&Round { start, peak: MSS * *peak, held: LimitedBy::Cwnd }, MSS);
        }
        i
    }

    #[test]
    fn a_plateau_ends_it_where_it_was_reached() {
        let found = rounds(&[10, 20, 36, 37, 38]).answer(MSS).expect("an exit");
        assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 36, 250));
        assert_eq!(found.evidence, Evidence::GrowthStopped);
    }

    #[test]
    fn slower_growth_is_growth() {
        // Conservative slow start, then the plateau.
        let found = rounds(&[10, 20, 40, 50, 62, 78, 79, 80]).answer(MSS).expect("an exit");
        assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 78, 550));
        // Limited slow start.
        assert_eq!(rounds(&[100, 150, 200, 250, 300, 350]).answer(MSS), Err(NoExit::StillGrowing));
    }

    #[test]
    fn a_pause_is_no_end() {
        assert_eq!(rounds(&[3, 6, 13, 13, 14, 18, 25, 38, 60]).answer(MSS), Err(NoExit::StillGrowing));
        // Avoidance adds a segment a round trip, and as much as it likes later.
        let mut peaks = vec![5, 10, 20];
        peaks.extend(20..60);
        assert_eq!(rounds(&peaks).answer(MSS).map(|f| f.cwnd), Ok(MSS * 20));
    }

    #[test]
    fn a_loss_ends_growth_unless_it_was_none() {
        let mut i = rounds(&[10, 20, 40]);
        i.on_loss(Instant(300_000_000), Evidence::Loss);
        assert_eq!(i.clone().answer(MSS).map(|f| f.evidence), Ok(Evidence::Loss));
        i.on_undone();
        assert_eq!(i.answer(MSS), Err(NoExit::StillGrowing));
    }

    /// A window of 1000 segments that grows by a segment for each acknowledged since it was a hundred, and so many more
    /// acknowledged, for each of which it grows by so many hundredths, when a loss becomes known.
    fn slope_before_a_loss(mut i: Inference, segments: u64, slope: u64) -> Result<ExitEstimate, NoExit> {
        for n in 0..900 + segments {
            let at = Instant(400_000_000 + n * 100_000);
            i.on_ack(at, MSS);
            let window = 100 + n.min(900) + n.saturating_sub(900) * slope / 100;
            i.on_sent(at, MSS * window, Span::millis(100), MSS);
        }
        i.on_loss(Instant(600_000_000), Evidence::Loss);
        i.answer(MSS)
    }

    #[test]
    fn growth_that_ended_before_a_loss_is_told_over_more_than_a_burst() {
        let before = rounds(&[10, 20, 40, 100]);
        let found = slope_before_a_loss(before.clone(), 200, 0).expect("an exit");
        assert_eq!(found.evidence, Evidence::GrowthStopped);
        assert!((480..520).contains(&(found.at.0 / 1_000_000)), "{found:?}");
        // What one burst holds back is no end, and a quarter is growth (RFC 9406).
        for (segments, slope) in [(40, 0), (200, 25)] {
            let found = slope_before_a_loss(before.clone(), segments, slope);
            assert_eq!(found.map(|f| f.evidence), Ok(Evidence::Loss));
        }
        // Where the peer's window held it back until then, it may have ended behind that.
        let mut held = before;
        held.on_round(
            &Round { start: Instant(400_000_000), peak: MSS * 100, held: LimitedBy::ReceiveWindow },
            MSS,
        );
        assert_eq!(slope_before_a_loss(held, 200, 0), Err(NoExit::PeerLimited));
    }

    #[test]
    fn a_window_that_falls_was_given_up_then() {
        // Vegas: it grows in every other round trip, and leaves with less than it had.
        let found = rounds(&[10, 20, 20, 17, 17, 18]).answer(MSS).expect("an exit");
        assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 20, 250));
        // A burst that is held back once is no fall.
        assert_eq!(rounds(&[10, 20, 20, 17, 20, 20]).answer(MSS).map(|f| f.at.0 / 1_000_000), Ok(150));
    }

    #[test]
    fn what_a_round_trip_without_growth_may_add_fills_no_path() {
        let i = rounds(&[10, 20, 40, 42]);
        let ms = |at: Option<Instant>| at.map(|t| t.0 / 1_000_000);
        assert_eq!((ms(i.first(MSS * 40)), ms(i.first_above(MSS * 40))), (Some(250), None));
        assert_eq!(ms(i.first_above(MSS * 30)), Some(250));
    }

    #[test]
    fn one_flat_round_trip_before_the_data_ends_will_do() {
        let over = |peaks: &[u64]| {
            let mut i = rounds(peaks);
            i.on_round(&Round { start: Instant(1 << 30), peak: MSS * 10, held: LimitedBy::Application }, MSS);
            i.answer(MSS).map(|f| f.cwnd)
        };
        assert_eq!(over(&[10, 20, 40, 41]), Ok(MSS * 40));
        assert_eq!(over(&[10, 20, 40]), Err(NoExit::StillGrowing));
    }

    #[test]
    fn a_sender_with_nothing_to_send_has_no_exit() {
        let mut i = Inference::default();
        for n in 0..9 {
            let round = Round { start: Instant(n), peak: MSS * 3, held: LimitedBy::Application };
            i.on_round(&round, MSS);
        }
        assert_eq!(i.answer(MSS), Err(NoExit::ApplicationLimited));
    }
}
