//! Infers where a connection left slow start. Packets do not carry cwnd, but a sender that is limited by its cwnd
//! has all of it in flight.

use slowstart::units::{Bytes, Instant, Span};
use std::collections::VecDeque;

/// Growth per round trip, in percent, up to which a round trip counts as flat, and the same as a minimum number of
/// segments. Slow start doubles, or grows by half with delayed ACKs; conservative slow start (RFC 9406) grows by a
/// quarter; congestion avoidance by a segment or two, CUBIC by 5 % while it knows no maximum (`tcp_cubic.c`).
pub(crate) const FLAT: u64 = 9;
const FLAT_LEAST: u64 = 3;
/// Growth, in percent, that one of the two round trips before an exit must have had. Limited slow start (RFC 3742),
/// which adds 50 segments per round trip, slows gradually and has no such step.
const SUDDEN: u64 = 20;
/// Growth over acknowledged bytes is recorded this many times per window, for the last `WINDOWS` windows.
const MARKS: u64 = 16;
const WINDOWS: u64 = 4;
/// Bytes acknowledged over which growth must be measured at least: a sender holds back up to 64 kB for a burst
/// (`tcp_tso_should_defer`, GSO), and bytes in flight do not grow until the burst is sent, in slow start either.
const BURST: Bytes = Bytes(65_536);
/// As many of the largest bursts seen are enough.
const BURSTS: u64 = 2;
/// Fall of the window without loss, in percent (and more than a segment), that counts as a reduction.
const FALLEN: u64 = 5;
/// Growth over acknowledged bytes, in percent, of a window that grows (slow start: 50 or more).
const GROWING: u64 = 25;
/// Round trips after the last growth in which the data of a sender may end that was in slow start until then.
const TAIL: u32 = 2;
/// The window must be in flight for one of so many parts of a flat round trip before the application pauses.
const HELD: u64 = 3;
/// Flat round trips that make an exit.
const FLAT_ROUNDS: u32 = 2;
/// Round trips after an exit in which growth by half revokes it: growth had only paused, as with bursts of ACKs or
/// slow clocks.
const SURE_ROUNDS: u32 = 3;
/// Round trips after an exit in which congestion avoidance would have added some segments (RFC 5681 §3.1: one per
/// round trip, half of one with delayed ACKs). If nothing was added to the end, something other than cwnd limited
/// the sender.
pub(crate) const STILL_ROUNDS: u32 = 8;
/// Round trips after an exit whose maxima are kept.
const PEAKS: usize = 64;
/// A burst of growth begins after a silence of this many percent of an RTT (`SILENT`). Bursts of a sender that
/// grows in every second round trip are more than `APART` percent of an RTT apart.
const SILENT: u64 = 90;
const APART: u64 = 150;
/// Maximum growth of one burst, in percent: a doubling, plus what delayed ACKs carry over.
const BURST_GROWTH: u64 = 250;
/// Maximum number of records of a new maximum in flight.
const REACHED: usize = 1024;

/// What limited the sender in a round trip.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// Its congestion window, as far as can be seen.
    Cwnd,
    /// The application had no more data.
    Application,
    /// The peer's receive window.
    ReceiveWindow,
    /// Nothing was in flight.
    Idle,
}

impl LimitedBy {
    /// The name used in rows and messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Cwnd => "window",
            Self::Application => "application",
            Self::ReceiveWindow => "receive window",
            Self::Idle => "idle",
        }
    }
}

/// A completed round trip.
#[derive(Copy, Clone, Debug)]
pub struct Round {
    /// When its first ACK arrived.
    pub start: Instant,
    /// Maximum bytes in flight.
    pub peak: Bytes,
    /// What limited the sender.
    pub limited_by: LimitedBy,
}

/// The evidence for an exit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The bytes in flight stopped growing, without a loss before.
    GrowthStopped,
    /// A loss was detected while the window grew.
    Loss,
    /// The retransmission timer expired while the window grew.
    Timeout,
    /// The network marked packets while the window grew (RFC 3168).
    Mark,
    /// A sample has ssthresh set, the sample before had not, and nothing was lost between them.
    Threshold,
    /// The file states the exit.
    Recorded,
}

impl Evidence {
    /// True if the network caused the exit (loss, timeout or ECN), not the startup's own rule.
    pub const fn is_congestion(self) -> bool {
        matches!(self, Self::Loss | Self::Timeout | Self::Mark)
    }

    /// The text used in rows and messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::GrowthStopped => "growth stopped without loss",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Mark => "a mark by the network",
            Self::Threshold => "a threshold was set without loss",
            Self::Recorded => "stated in the file",
        }
    }
}

/// An observed end of slow start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExitEstimate {
    /// When it ended.
    pub at: Instant,
    /// The window at that time: the maximum in flight, or cwnd if the file states it.
    pub cwnd: Bytes,
    /// The evidence.
    pub evidence: Evidence,
}

/// Why no exit is reported.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoExit {
    /// The application had too little data.
    ApplicationLimited,
    /// The peer's receive window limited the sender.
    PeerLimited,
    /// The data ended while the window was still growing.
    StillGrowing,
    /// The window never grew.
    NoGrowth,
    /// Growth stopped, and congestion avoidance added nothing until the end although nothing was lost: something
    /// other than cwnd limited the sender.
    LimitedOtherwise,
    /// The connection began before the capture.
    BeganBefore,
    /// The file has too few samples.
    TooFew,
    /// Most data of the connection went the other way.
    LittleData,
    /// Most data was acknowledged but not captured.
    Uncaptured,
    /// Growth slowed shortly before the data ended.
    EndedInDoubt,
}

impl NoExit {
    /// The text used in rows and messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ApplicationLimited => "application-limited",
            Self::PeerLimited => "limited by the receive window",
            Self::StillGrowing => "ended while growing",
            Self::NoGrowth => "no growth seen",
            Self::LimitedOtherwise => "limited by something other than cwnd",
            Self::BeganBefore => "began before the capture",
            Self::TooFew => "too few samples",
            Self::EndedInDoubt => "the data ended when growth had slowed",
            Self::LittleData => "little data: most went the other way",
            Self::Uncaptured => "most of its data was not captured",
        }
    }
}

/// Finds the end of slow start, round trip by round trip.
#[derive(Clone, Debug, Default)]
pub struct Inference {
    best: Bytes,
    grew: u32,
    /// Round trips since the newest growing one, of whatever kind.
    since_growth: u32,
    /// Whether the bytes in flight grew with what was acknowledged until the first loss.
    grew_until_loss: bool,
    /// Growing round trips since something other than cwnd last limited the sender.
    grew_since: u32,
    /// True until the window is as large again as it was before something other than cwnd limited the sender: a window that was
    /// not used may have been reduced (RFC 2861), and its growth to the former value shows nothing.
    restarted: bool,
    flat: u32,
    /// When the first of them began.
    flat_from: Instant,
    /// Growth in the last two growing round trips, in percent.
    growth: [u64; 2],
    /// Maximum in flight in the round trip before the first flat one.
    level: Bytes,
    /// Maximum in flight in the newest round trip after an exit.
    last: Bytes,
    /// True if growth had stopped, and went on.
    paused: bool,
    /// Maximum in flight so far.
    most: Bytes,
    /// Acknowledged bytes that allowed new data to be sent.
    acked: Bytes,
    /// Bytes sent since the newest ACK, and the most between two.
    burst: Bytes,
    largest_burst: Bytes,
    /// Acknowledged bytes when the newest data was sent: what is acknowledged after the last data shows nothing.
    acked_at_last: Bytes,
    /// Time, acknowledged bytes and maximum in flight, recorded `MARKS` times per window.
    marks: VecDeque<(Instant, Bytes, Bytes)>,
    /// Each new maximum in flight: when, how much, and the RTT at that time.
    reached: Vec<(Instant, Bytes, Span)>,
    rounds: [u32; 4],
    /// Round trips since the receive window last limited the sender; `None` if it never did, or sudden growth was
    /// seen since.
    since_peer: Option<u32>,
    found: Option<ExitEstimate>,
    /// True if cwnd limited the sender from the growth to that exit.
    seen_before: bool,
    /// True if something other than cwnd limited the sender in a round trip before that exit was found.
    interrupted: bool,
    /// Round trips since the exit was found.
    after: u32,
    /// When the maximum was last in flight.
    full: Instant,
    /// The value of `full` before the window fell without a loss, and for how many round trips it has been lower.
    fell: Option<(Instant, u32)>,
    /// True if the newest round trip in which data was sent was the application's, and the one before it flat: the data ends, or
    /// the sender waits.
    ended_flat: bool,
    /// True if data was sent in this round trip.
    sent: bool,
    /// An exit before the application's first pause, after one flat round trip, and whether as much was in flight again, but not
    /// half as much again.
    before_pause: Option<ExitEstimate>,
    confirmed: bool,
    /// Round trips limited by something other than cwnd since the window was last in flight.
    unused: u32,
    /// Maximum in flight in the newest round trip limited by cwnd while the window has not been reached again, and the number of
    /// such round trips in which it did not grow.
    low: (Bytes, u32),
    /// Maximum in flight in each round trip since the exit, until the first that had less than half as much: the first `PEAKS`.
    between: Vec<Bytes>,
    /// True once one had.
    halved: bool,
    loss: Option<ExitEstimate>,
    /// True if the window at that loss was measured by its retransmission.
    measured: bool,
    /// An exit shortly before that loss.
    before_loss: Option<ExitEstimate>,
}

impl Inference {
    /// `bytes` were sent and `inflight` are in flight; `rtt` is the newest RTT sample, zero before the first.
    pub fn on_sent(&mut self, at: Instant, inflight: Bytes, bytes: Bytes, rtt: Span, mss: Bytes) {
        self.sent = true;
        self.burst += bytes;
        if inflight + tolerance(self.most, mss) >= self.most {
            self.full = at;
        }
        self.most = self.most.max(inflight);
        self.acked_at_last = self.acked;
        if !self.decided() && self.reached.len() < REACHED {
            let most = self.reached.last().map_or(Bytes::ZERO, |r| r.1);
            if inflight >= most + mss.max(most / 100) || (most == Bytes::ZERO && inflight > most) {
                self.reached.push((at, inflight, rtt));
            }
        }
    }

    /// `bytes` more are acknowledged and allow new data to be sent.
    pub fn on_ack(&mut self, at: Instant, bytes: Bytes) {
        let most = self.most;
        if most == Bytes::ZERO || self.loss.is_some() || self.decided() {
            return;
        }
        if self.acked > Bytes::ZERO {
            self.largest_burst = self.largest_burst.max(self.burst);
        }
        self.burst = Bytes::ZERO;
        self.acked += bytes;
        let due = self.marks.back().is_none_or(|m| self.acked >= m.1 + most / MARKS);
        if due {
            self.marks.push_back((at, self.acked, most));
            if self.marks.len() as u64 > MARKS * WINDOWS {
                self.marks.pop_front();
            }
        }
    }

    /// A loss was detected. If slow start had ended before it, the bytes in flight stopped growing with what was
    /// acknowledged: the slope of growth over acknowledged bytes fell. `limited`: the sender could send nothing new by then for
    /// lack of data or of receive window, so that its window does not show.
    pub fn on_loss(&mut self, at: Instant, evidence: Evidence, limited: bool) {
        if self.loss.is_some() {
            return;
        }
        self.grew_until_loss = !limited && !self.restarted && self.grows(self.acked) == Some(true);
        let cwnd = self.most.max(self.best);
        self.loss = Some(ExitEstimate { at, cwnd, evidence });
        let now = (at, self.acked, cwnd);
        // Growth per acknowledged byte, in percent.
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

    /// This much was in flight when the sender detected the first loss, as its retransmission shows.
    pub fn window_at_loss(&mut self, window: Bytes) {
        if let Some(loss) = self.loss.as_mut().filter(|_| !std::mem::replace(&mut self.measured, true)) {
            loss.cwnd = loss.cwnd.max(window);
        }
    }

    /// The loss was spurious.
    pub fn on_undone(&mut self) {
        (self.loss, self.before_loss, self.measured) = (None, None, false);
    }

    /// A round trip is complete.
    pub fn on_round(&mut self, round: &Round, mss: Bytes) {
        if self.loss.is_some() {
            return;
        }
        self.rounds[round.limited_by as usize] += 1;
        self.since_growth += 1;
        let sent = std::mem::take(&mut self.sent);
        if self.found.is_some() && round.limited_by == LimitedBy::Cwnd {
            self.after += 1;
            // A pause has reduced the window (RFC 2861): what follows does not show what limited it before.
            self.halved |= self.between.last().is_some_and(|before| round.peak < *before / 2);
            if !self.halved && self.between.len() < PEAKS {
                self.between.push(round.peak);
            }
        }
        if self.after > SURE_ROUNDS {
            return;
        }
        if round.limited_by == LimitedBy::ReceiveWindow {
            self.since_peer = Some(0);
        }
        if self.before_pause.is_some_and(|e| round.peak > e.cwnd + e.cwnd / 2) {
            self.before_pause = None;
        }
        if round.limited_by != LimitedBy::Cwnd {
            // A window that was not used may still have grown.
            self.best = self.best.max(round.peak);
            let flat = self.flat > 0 && self.grew_since > 0;
            // Once the last data is sent nothing more shows.
            self.ended_flat =
                round.limited_by == LimitedBy::Application && (flat || self.ended_flat && !sent);
            let [_, application, peer, _] = self.rounds;
            // Data that ends in a round trip is flat in what is left of it.
            let held = self.full.since(self.flat_from) * HELD >= round.start.since(self.flat_from);
            if self.ended_flat && held && self.found.is_none() && (application, peer) == (1, 0) {
                self.before_pause = self.plateau(mss);
            }
            (self.flat, self.grew_since, self.restarted) = (0, 0, true);
            self.unused += 1;
            self.low = (Bytes::ZERO, 0);
            return;
        }
        self.ended_flat = false;
        self.confirmed |= self.before_pause.is_some_and(|e| round.peak + e.cwnd.scale(FLAT, 100) >= e.cwnd);
        if self.restarted && round.peak + tolerance(self.best, mss) < self.best {
            self.stay_low(round.peak, mss);
            return;
        }
        (self.restarted, self.unused) = (false, 0);
        // Without a loss, a fall is a reduction by the rule that ended slow start (Vegas; SEARCH, which drains).
        self.fell = if round.peak + mss.max(self.best.scale(FALLEN, 100)) < self.best {
            Some(self.fell.map_or((self.full, 1), |f| (f.0, f.1 + 1)))
        } else {
            self.fell.filter(|f| f.1 >= FLAT_ROUNDS)
        };
        if self.found.is_some() {
            // CUBIC grows by less than half in each of these round trips, where they are long.
            let doubles = round.peak > self.last + self.last / 2;
            self.last = round.peak;
            if doubles && round.peak > self.level + self.level / 2 {
                (self.found, self.after, self.fell) = (None, 0, None);
                self.paused = true;
                self.forget_between();
                (self.grew, self.best, self.flat) = (self.grew + 1, round.peak, 0);
            }
            return;
        }
        let none = self.best.scale(FLAT, 100).max(mss * FLAT_LEAST);
        let grew = (round.peak - self.best).scale(100, self.best.0.max(1)).0;
        self.since_peer = match self.since_peer {
            // Growth in the first round trip after the limit may come from the receive window that opened.
            Some(n) if n > 0 && grew >= SUDDEN => None,
            n => n.map(|n| n + 1),
        };
        // After a flat round trip, less than sudden growth shows neither slow start nor its end.
        if self.flat > 0 && round.peak > self.best + none && grew < SUDDEN {
            (self.best, self.growth) = (round.peak, [self.growth[1], grew]);
            return;
        }
        // The first round trip shows the initial window, not growth.
        let first = self.best == Bytes::ZERO;
        if first || round.peak > self.best + none || self.growth.iter().all(|g| *g < SUDDEN) {
            self.flat = 0;
            let more = u32::from(!first && round.peak > self.best + none);
            (self.grew, self.grew_since) = (self.grew + more, self.grew_since + more);
            if more > 0 {
                self.since_growth = 0;
            }
            if !first {
                self.growth = [self.growth[1], grew];
            }
            self.best = self.best.max(round.peak);
            return;
        }
        if self.flat == 0 {
            (self.level, self.flat_from) = (self.best, round.start);
        }
        self.best = self.best.max(round.peak);
        self.flat += 1;
        let enough = if self.grew_since > 0 { FLAT_ROUNDS } else { FLAT_ROUNDS * 2 };
        if self.flat >= enough && self.grew > 0 {
            self.stop(mss);
        }
    }

    fn forget_between(&mut self) {
        self.between.clear();
        self.halved = false;
    }

    /// A window that fell, stays low and grows by no more than in congestion avoidance is beyond its threshold: what seemed to
    /// be a pause of the application was the sender, which waits until less than its new window is in flight (SEARCH drains). After a
    /// true pause the window would grow as before (RFC 2861).
    fn stay_low(&mut self, peak: Bytes, mss: Bytes) {
        let (before, n) = self.low;
        let flat = peak <= before + before.scale(FLAT, 100).max(mss * FLAT_LEAST);
        self.low = (peak, if flat { n + 1 } else { 0 });
        let at_once = self.unused <= FLAT_ROUNDS && self.rounds[LimitedBy::ReceiveWindow as usize] == 0;
        if self.low.1 >= SURE_ROUNDS && at_once && self.grew > 0 && self.found.is_none() {
            let exit = ExitEstimate { at: self.full, cwnd: self.best, evidence: Evidence::GrowthStopped };
            (self.found, self.after, self.seen_before) = (Some(exit), 0, false);
        }
    }

    /// The exit if growth has stopped: when the plateau (within a segment or 2 %) was first in flight, or where growth changed
    /// before that; for a sender that grows in every second round trip, when the next growth was due. `None` if the receive
    /// window limited the growth since, which hides the exit, or if so far the application limited most round trips: a few that
    /// look otherwise are then its pattern.
    fn plateau(&self, mss: Bytes) -> Option<ExitEstimate> {
        let [window, application, ..] = self.rounds;
        if self.since_peer.is_some() || application > window {
            return None;
        }
        let level = self.level - tolerance(self.level, mss);
        let i = self.reached.iter().position(|r| r.1 >= level)?;
        let reached = self.reached[i].0;
        let at = next_growth(&self.reached[..=i]).or_else(|| self.knot(reached)).unwrap_or(reached);
        Some(ExitEstimate { at, cwnd: self.level, evidence: Evidence::GrowthStopped })
    }

    /// Sets the exit to that of the plateau.
    fn stop(&mut self, mss: Bytes) {
        let Some(exit) = self.plateau(mss) else { return };
        (self.after, self.seen_before) = (0, self.grew_since > 0 && self.growth[1] >= SUDDEN);
        self.interrupted = self.rounds[LimitedBy::Application as usize] > 0;
        self.forget_between();
        (self.last, self.found) = (self.best, Some(exit));
    }

    /// Where growth over acknowledged bytes changed, if that was before the plateau was reached: a window that still grows in
    /// congestion avoidance reaches it late. The knot of the line of two pieces that fits the newest marks best by least
    /// squares, if the first piece is growth and the second is flat.
    fn knot(&self, reached: Instant) -> Option<Instant> {
        let least = self.level - self.level.scale(FLAT, 100);
        let origin = *self.marks.front()?;
        let points: Vec<(f64, f64)> =
            self.marks.iter().map(|m| ((m.1 - origin.1).0 as f64, (m.2 - origin.2).0 as f64)).collect();
        let mut best: Option<(f64, usize)> = None;
        for (i, m) in self.marks.iter().enumerate() {
            if m.2 < least || m.0 >= reached {
                continue;
            }
            if let Some(error) = hinge(&points, points[i].0)
                && best.is_none_or(|b| error < b.0)
            {
                best = Some((error, i));
            }
        }
        best.map(|(_, i)| self.marks[i].0)
    }

    /// When this many bytes were first in flight, if that was before the exit was certain.
    pub fn first(&self, inflight: Bytes) -> Option<Instant> {
        self.reached.iter().find(|r| r.1 >= inflight).map(|r| r.0)
    }

    /// When more than this was first in flight, by more than a flat round trip may add.
    pub fn first_above(&self, inflight: Bytes) -> Option<Instant> {
        self.first(inflight + inflight.scale(FLAT, 100))
    }

    /// True if nothing can change the result any more.
    pub fn decided(&self) -> bool {
        self.found.is_some() && self.after >= SURE_ROUNDS
    }

    /// Whether the bytes in flight grew with what was acknowledged, until `acked`, over the last half of a window, and over the last sixth of
    /// it or a burst; `None` if less was acknowledged.
    fn grows(&self, acked: Bytes) -> Option<bool> {
        let over = |bytes: Bytes| {
            let then = self.marks.iter().rfind(|m| m.1 + bytes <= acked)?;
            Some((self.most - then.2).scale(100, (acked - then.1).0.max(1)).0 >= GROWING)
        };
        let half = self.most / 2;
        let burst = BURST.min(self.largest_burst * BURSTS);
        Some(over(half)? && over((self.most / 6).max(burst).min(half))?)
    }

    /// True if this exit of [`Self::result`] is certain. A loss: growth was seen until it, so that no rule had ended slow start
    /// before. Growth that stopped: it had been fast, and after it the window grew as in congestion avoidance; data that an
    /// application or a buffer limits would not.
    pub fn is_certain(&self, exit: ExitEstimate, mss: Bytes) -> bool {
        if exit.evidence == Evidence::GrowthStopped {
            return self.found == Some(exit)
                && self.seen_before
                && !self.interrupted
                && still(&self.between, mss) == Some(false);
        }
        exit.evidence == Evidence::Mark || self.grew_until_loss && self.since_peer.is_none() && !self.paused
    }

    /// Returns the exit, or why none is reported.
    pub fn result(&mut self, mss: Bytes) -> Result<ExitEstimate, NoExit> {
        // One flat round trip before a loss or the end of the data: growth had already stopped.
        let flat = self.loss.is_some() && self.flat > 0 || self.ended_flat;
        if self.found.is_none() && flat && self.grew > 0 {
            self.stop(mss);
        }
        let [window, application, peer, _] = self.rounds;
        // Slow start may have ended while the receive window still limited the sender.
        if self.found.is_none() && self.before_loss.is_some() && self.since_peer.is_some() {
            return Err(NoExit::PeerLimited);
        }
        // A plateau that later fell without a loss ended when it fell.
        if let (Some(found), Some((at, FLAT_ROUNDS..))) = (&mut self.found, self.fell) {
            found.at = found.at.max(at);
        }
        self.found = self.before_pause.filter(|_| self.confirmed).or(self.found).or(self.before_loss);
        if self.found.is_some() && still(&self.between, mss) == Some(true) {
            return Err(NoExit::LimitedOtherwise);
        }
        if self.since_peer.is_some_and(|n| n > FLAT_ROUNDS) && self.found.is_none() {
            return Err(NoExit::PeerLimited);
        }
        // A loss of a sender that is mostly application-limited does not show its window.
        if application > window {
            self.loss = None;
        }
        let growing = self.grew > 0 && application <= window && peer <= window;
        self.found.or(self.loss).ok_or(if growing && self.since_growth > TAIL {
            NoExit::ApplicationLimited
        } else if growing && self.grows(self.acked_at_last) == Some(false) {
            NoExit::EndedInDoubt
        } else if growing {
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

/// Whether the window did not grow over these round trips: the median of the last third is at most a segment above that of the
/// first. `None` if they are too few.
fn still(peaks: &[Bytes], mss: Bytes) -> Option<bool> {
    let third = peaks.len() / 3;
    let median = |part: &[Bytes]| {
        let mut sorted = part.to_vec();
        sorted.sort_unstable();
        sorted.get(part.len() / 2).copied().unwrap_or(Bytes::ZERO)
    };
    (peaks.len() >= STILL_ROUNDS as usize)
        .then(|| median(&peaks[peaks.len() - third..]) <= median(&peaks[..third]) + mss)
}

/// Difference up to which two windows are equal: a segment or 2 %.
fn tolerance(window: Bytes, mss: Bytes) -> Bytes {
    mss.max(window / 50)
}

/// The squared error of a line with a knot at `x`, fitted to these points; `None` if it does not grow before and stop there.
fn hinge(points: &[(f64, f64)], knot: f64) -> Option<f64> {
    // Normal equations of the slopes before and after the knot, and of the height there.
    let mut m = [[0.0; 4]; 3];
    for (x, y) in points {
        let row = [(x - knot).min(0.0), (x - knot).max(0.0), 1.0, *y];
        for i in 0..3 {
            for j in 0..4 {
                m[i][j] += row[i] * row[j];
            }
        }
    }
    let [a, b, c] = m;
    // No point is on both sides.
    let (before, after) = (a[0], b[1]);
    if before == 0.0 || after == 0.0 {
        return None;
    }
    let height = (c[3] - a[2] / before * a[3] - b[2] / after * b[3])
        / (c[2] - a[2] / before * a[2] - b[2] / after * b[2]);
    let (grows, flat) = ((a[3] - a[2] * height) / before, (b[3] - b[2] * height) / after);
    let fits = grows * 100.0 >= GROWING as f64 && flat * 100.0 <= FLAT as f64;
    let of = |x: f64| height + grows * (x - knot).min(0.0) + flat * (x - knot).max(0.0);
    fits.then(|| points.iter().map(|(x, y)| (y - of(*x)).powi(2)).sum())
}

/// When a sender that grows in every second round trip (Vegas) would have grown again.
fn next_growth(reached: &[(Instant, Bytes, Span)]) -> Option<Instant> {
    let flows = |a: &(Instant, Bytes, Span), b: &(Instant, Bytes, Span)| {
        b.2 == Span::ZERO || b.0.since(a.0) < b.2.scale(SILENT, 100)
    };
    let bursts: Vec<_> = reached.chunk_by(flows).collect();
    let mut at = None;
    for (i, pair) in bursts.windows(2).enumerate() {
        let ([.., before], [first, .., last] | [first @ last]) = (pair[0], pair[1]) else { return None };
        if last.1 > before.1.scale(BURST_GROWTH, 100) {
            return None;
        }
        // The first burst is the initial window, and the second follows its first ACK.
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

    /// Round trips of 100 ms with this many segments in flight, reached half-way through.
    fn rounds(peaks: &[u64]) -> Inference {
        let mut i = Inference::default();
        for (n, peak) in peaks.iter().enumerate() {
            let start = Instant(n as u64 * 100_000_000);
            i.on_sent(Instant(start.0 + 50_000_000), MSS * *peak, MSS, Span::millis(100), MSS);
            i.on_round(&Round { start, peak: MSS * *peak, limited_by: LimitedBy::Cwnd }, MSS);
        }
        i
    }

    #[test]
    fn an_exit_is_where_the_plateau_was_reached() {
        let found = rounds(&[10, 20, 36, 37, 38]).result(MSS).expect("an exit");
        assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 36, 250));
        assert_eq!(found.evidence, Evidence::GrowthStopped);
    }

    #[test]
    fn slower_growth_is_no_exit() {
        // Conservative slow start, then the plateau.
        let found = rounds(&[10, 20, 40, 50, 62, 78, 79, 80]).result(MSS).expect("an exit");
        assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 78, 550));
        // Limited slow start.
        assert_eq!(rounds(&[100, 150, 200, 250, 300, 350]).result(MSS), Err(NoExit::StillGrowing));
    }

    #[test]
    fn a_pause_in_growth_is_no_exit() {
        assert_eq!(rounds(&[3, 6, 13, 13, 14, 18, 25, 38, 60]).result(MSS), Err(NoExit::StillGrowing));
        // Congestion avoidance adds a segment per round trip, for any number of round trips.
        let mut peaks = vec![5, 10, 20];
        peaks.extend(20..60);
        assert_eq!(rounds(&peaks).result(MSS).map(|f| f.cwnd), Ok(MSS * 20));
    }

    #[test]
    fn a_loss_is_an_exit_unless_it_was_spurious() {
        let mut i = rounds(&[10, 20, 40]);
        i.on_loss(Instant(300_000_000), Evidence::Loss, false);
        assert_eq!(i.clone().result(MSS).map(|f| f.evidence), Ok(Evidence::Loss));
        i.on_undone();
        assert_eq!(i.result(MSS), Err(NoExit::StillGrowing));
    }

    /// A window that grows from 100 to 1000 segments by one segment per segment acknowledged, then by `slope`
    /// percent of one for `segments` more, and then detects a loss.
    fn slope_before_a_loss(mut i: Inference, segments: u64, slope: u64) -> Result<ExitEstimate, NoExit> {
        for n in 0..900 + segments {
            let at = Instant(400_000_000 + n * 100_000);
            i.on_ack(at, MSS);
            let window = 100 + n.min(900) + n.saturating_sub(900) * slope / 100;
            i.on_sent(at, MSS * window, MSS, Span::millis(100), MSS);
        }
        i.on_loss(Instant(600_000_000), Evidence::Loss, false);
        i.result(MSS)
    }

    #[test]
    fn an_exit_before_a_loss_is_measured_over_more_than_a_burst() {
        let before = rounds(&[10, 20, 40, 100]);
        let found = slope_before_a_loss(before.clone(), 200, 0).expect("an exit");
        assert_eq!(found.evidence, Evidence::GrowthStopped);
        assert!((480..520).contains(&(found.at.0 / 1_000_000)), "{found:?}");
        // What one burst holds back is no exit, and a quarter is growth (RFC 9406).
        for (segments, slope) in [(40, 0), (200, 25)] {
            let found = slope_before_a_loss(before.clone(), segments, slope);
            assert_eq!(found.map(|f| f.evidence), Ok(Evidence::Loss));
        }
        // If the receive window limited the sender until then, the exit may be hidden by it.
        let mut limited_by = before;
        limited_by.on_round(
            &Round { start: Instant(400_000_000), peak: MSS * 100, limited_by: LimitedBy::ReceiveWindow },
            MSS,
        );
        assert_eq!(slope_before_a_loss(limited_by, 200, 0), Err(NoExit::PeerLimited));
    }

    #[test]
    fn an_exit_is_where_the_window_falls_without_loss() {
        // Vegas grows in every second round trip and reduces its window at the exit.
        let found = rounds(&[10, 20, 20, 17, 17, 18]).result(MSS).expect("an exit");
        assert_eq!((found.cwnd, found.at.0 / 1_000_000), (MSS * 20, 250));
        // One burst limited_by back is no reduction.
        assert_eq!(rounds(&[10, 20, 20, 17, 20, 20]).result(MSS).map(|f| f.at.0 / 1_000_000), Ok(150));
    }

    #[test]
    fn the_growth_of_a_flat_round_trip_does_not_fill_the_path() {
        let i = rounds(&[10, 20, 40, 42]);
        let ms = |at: Option<Instant>| at.map(|t| t.0 / 1_000_000);
        assert_eq!((ms(i.first(MSS * 40)), ms(i.first_above(MSS * 40))), (Some(250), None));
        assert_eq!(ms(i.first_above(MSS * 30)), Some(250));
    }

    #[test]
    fn one_flat_round_trip_is_enough_before_the_data_ends() {
        let over = |peaks: &[u64]| {
            let mut i = rounds(peaks);
            i.on_round(
                &Round { start: Instant(1 << 30), peak: MSS * 10, limited_by: LimitedBy::Application },
                MSS,
            );
            i.result(MSS).map(|f| f.cwnd)
        };
        assert_eq!(over(&[10, 20, 40, 41]), Ok(MSS * 40));
        assert_eq!(over(&[10, 20, 40]), Err(NoExit::StillGrowing));
    }

    /// A server that answers small requests: of forty round trips the application limits all but four, in which an answer looks
    /// like growth that stops.
    #[test]
    fn a_few_round_trips_of_an_application_limited_sender_show_no_exit() {
        let mut i = Inference::default();
        for (n, peak) in [6; 36].into_iter().chain([6, 19, 20, 20]).enumerate() {
            let (start, peak) = (Instant(n as u64 * 100_000_000), MSS * peak);
            let limited_by = if n < 36 { LimitedBy::Application } else { LimitedBy::Cwnd };
            i.on_sent(start, peak, MSS, Span::millis(100), MSS);
            i.on_round(&Round { start, peak, limited_by }, MSS);
        }
        assert_eq!(i.result(MSS), Err(NoExit::ApplicationLimited));
    }

    /// Round trips of 100 ms as in `rounds`, some of them limited by the application (`true`).
    fn limited(all: &[(u64, bool)]) -> Inference {
        let mut i = Inference::default();
        for (n, (peak, application)) in all.iter().enumerate() {
            let (start, peak) = (Instant(n as u64 * 100_000_000), MSS * *peak);
            let limited_by = if *application { LimitedBy::Application } else { LimitedBy::Cwnd };
            i.on_sent(Instant(start.0 + 50_000_000), peak, MSS, Span::millis(100), MSS);
            i.on_round(&Round { start, peak, limited_by }, MSS);
        }
        i
    }

    /// One flat round trip before the application's first pause, and then no more than that in flight: an exit, not certain.
    #[test]
    fn an_exit_before_a_pause_is_confirmed_by_later_data() {
        let first = [(10, false), (20, false), (36, false), (37, false), (20, true)];
        let pauses = |then: &[(u64, bool)]| {
            let mut i = limited(&[&first[..], then, &[(10, true); 9]].concat());
            let exit = i.result(MSS);
            assert!(exit.is_err() || !i.is_certain(exit.expect("an exit"), MSS));
            exit.map(|e| (e.cwnd, e.at.0 / 1_000_000))
        };
        assert_eq!(pauses(&[(5, true), (38, false), (9, true)]), Ok((MSS * 36, 250)));
        // Unconfirmed, and refuted.
        assert_eq!(pauses(&[(5, true), (20, false), (9, true)]), Err(NoExit::ApplicationLimited));
        assert_eq!(pauses(&[(5, true), (38, false), (60, false)]), Err(NoExit::ApplicationLimited));
    }

    /// The data ends in the second flat round trip, and what is in flight is acknowledged in one more, in which nothing is sent.
    #[test]
    fn the_rest_of_the_data_is_acknowledged_in_round_trips_that_show_nothing() {
        let mut i = limited(&[(10, false), (20, false), (36, false), (37, false), (37, true)]);
        i.on_round(
            &Round { start: Instant(500_000_000), peak: MSS * 20, limited_by: LimitedBy::Application },
            MSS,
        );
        assert_eq!(i.result(MSS).map(|e| e.cwnd), Ok(MSS * 36));
        // Data that is sent later shows a pause, and not the end.
        let mut i = limited(&[(10, false), (20, false), (36, false), (37, false), (37, true), (20, true)]);
        assert_eq!(i.result(MSS), Err(NoExit::ApplicationLimited));
    }

    /// After a pause the window is smaller than at the exit; this does not show that something else had limited it.
    #[test]
    fn windows_after_a_pause_do_not_show_what_limited_before() {
        let grows =
            [(10, false), (20, false), (40, false), (41, false), (42, false), (43, false), (44, false)];
        let mut i = limited(&[&grows[..], &[(30, true)], &[(9, false); 9]].concat());
        assert_eq!(i.result(MSS).map(|e| e.cwnd), Ok(MSS * 40));
        let mut i = limited(&[&grows[..4], &[(41, false); 9]].concat());
        assert_eq!(i.result(MSS), Err(NoExit::LimitedOtherwise));
    }

    /// SEARCH drains: it sends nothing until its flight has fallen to a smaller window, and goes on in congestion avoidance.
    #[test]
    fn a_window_that_falls_and_stays_low_is_an_exit() {
        let grows = [(10, false), (20, false), (40, false), (80, false), (130, true), (30, true)];
        let after = |then: &[u64]| {
            let then: Vec<_> = then.iter().map(|n| (*n, false)).collect();
            let mut i = limited(&[&grows[..], &then, &[(9, true); 9]].concat());
            i.result(MSS).map(|e| (e.cwnd, e.at.0 / 1_000_000))
        };
        assert_eq!(after(&[21, 22, 23, 24, 25]), Ok((MSS * 130, 450)));
        // After a pause the window grows again.
        assert_eq!(after(&[10, 20, 40, 80]), Err(NoExit::ApplicationLimited));
    }

    /// Doubling that stops is a certain exit if congestion avoidance follows. It is not certain after slow growth (as between the
    /// ends, where it is known to some segments only), nor when it was seen for a few round trips only.
    #[test]
    fn an_exit_is_certain_if_avoidance_follows_fast_growth() {
        let avoidance = [36, 36, 37, 37, 38, 38, 39, 39, 40, 40];
        for (first, rest, certain) in [
            ([10, 19, 27, 35], &avoidance[..], true),
            ([10, 19, 27, 35], &avoidance[..5], false),
            ([10, 27, 29, 34], &avoidance[..], false),
        ] {
            let mut i = rounds(&[&first, rest].concat());
            let exit = i.result(MSS).expect("an exit");
            assert_eq!(i.is_certain(exit, MSS), certain, "{first:?} {rest:?}");
        }
    }

    /// The window doubles until 96 segments are in flight; a loss comes when as much as a third of the window was acknowledged without
    /// growth, or none. Where segments are sent one by one, a third is enough to see that growth had stopped before the loss.
    #[test]
    fn a_loss_is_certain_if_the_window_grew_until_it() {
        for (flat, certain) in [(0, true), (32, false)] {
            let (mut i, mut segments, mut ms) = (Inference::default(), 10, 0);
            i.on_sent(Instant::ZERO, MSS * segments, MSS * segments, Span::millis(100), MSS);
            for n in 0..86 + flat {
                ms += 1;
                i.on_ack(Instant(ms * 1_000_000), MSS);
                let more = 1 + u64::from(n < 86);
                segments += more - 1;
                i.on_sent(Instant(ms * 1_000_000), MSS * segments, MSS * more, Span::millis(100), MSS);
            }
            i.on_loss(Instant((ms + 1) * 1_000_000), Evidence::Loss, false);
            let exit = i.result(MSS).expect("a loss");
            assert_eq!((exit.evidence, i.is_certain(exit, MSS)), (Evidence::Loss, certain), "{flat}");
        }
    }

    /// 33 segments double each 100 ms until 144, then grow by a twentieth of what is acknowledged: the exit is where the slope
    /// changes, although 2 % less than the plateau is reached half a round trip later.
    #[test]
    fn an_exit_into_growing_avoidance_is_where_the_slope_changes() {
        let (mut i, mut ns, mut segments, mut exit) = (Inference::default(), 0.0, 33.0_f64, 0.0);
        for _ in 0..7 {
            let (start, flight) = (Instant(ns as u64), segments as u64);
            for _ in 0..flight {
                ns += 1e8 / flight as f64;
                i.on_ack(Instant(ns as u64), MSS);
                (segments, exit) =
                    if segments < 144.0 { (segments + 1.0, ns) } else { (segments + 0.05, exit) };
                i.on_sent(Instant(ns as u64), MSS * segments as u64, MSS, Span::millis(100), MSS);
            }
            i.on_round(&Round { start, peak: MSS * segments as u64, limited_by: LimitedBy::Cwnd }, MSS);
        }
        let found = i.result(MSS).expect("an exit");
        assert!((found.at.0 as f64 - exit).abs() < 2e7, "{found:?}, expected {exit}");
    }

    #[test]
    fn an_application_limited_sender_has_no_exit() {
        let mut i = Inference::default();
        for n in 0..9 {
            let round = Round { start: Instant(n), peak: MSS * 3, limited_by: LimitedBy::Application };
            i.on_round(&round, MSS);
        }
        assert_eq!(i.result(MSS), Err(NoExit::ApplicationLimited));
    }
}
