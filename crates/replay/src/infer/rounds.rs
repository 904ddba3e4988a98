//! Growth of the bytes in flight from one round trip to the next: the phases of a sender, and the rules that
//! move it from one to another.

use super::flight::Flight;
use super::{Evidence, ExitEstimate, LESS, LimitedBy, NoExit, Round, tolerance};
use slowstart::units::{Bytes, Instant};

/// Growth per round trip, in percent, up to which a round trip counts as flat, and the same as a minimum
/// number of segments. Slow start doubles, or grows by half with delayed ACKs; conservative slow start (RFC
/// 9406) grows by a quarter; congestion avoidance by a segment or two, CUBIC by 5 % while it knows no maximum
/// (`tcp_cubic.c`).
pub(crate) const FLAT: u64 = 9;
const FLAT_LEAST: u64 = 3;
/// Growth, in percent, that one of the two round trips before an exit must have had: less than the quarter of
/// conservative slow start. Limited slow start (RFC 3742), which adds 50 segments per round trip, slows
/// gradually and has no such step.
pub(super) const SUDDEN: u64 = 20;
/// Fall of the window without loss, in percent (and more than a segment), that counts as a reduction: to what
/// fills the path (Vegas), or to drain its queue (SEARCH). Less is what one burst holds back.
const FALLEN: u64 = 5;
/// Round trips after the last growth in which the data of a sender may end that was in slow start until then:
/// its last flight, and the ACKs of that.
const TAIL: u32 = 2;
/// The window must be in flight for one of so many parts of a flat round trip before the application pauses:
/// data that ends sooner makes every round trip flat.
const HELD: u64 = 3;
/// Flat round trips that make an exit. One is what delayed ACKs and a late burst make of a doubling
/// (`a_pause_in_growth_is_no_exit`).
const FLAT_ROUNDS: u32 = 2;
/// Round trips after an exit in which growth by half revokes it: growth had only paused, as with bursts of
/// ACKs or slow clocks.
const SURE_ROUNDS: u32 = 3;
/// Round trips after an exit in which congestion avoidance would have added some segments (RFC 5681 §3.1: one
/// per round trip, half of one with delayed ACKs). If nothing was added to the end, something other than cwnd
/// limited the sender.
pub(crate) const STILL_ROUNDS: u32 = 8;
/// Round trips after an exit whose maxima are kept: eight times as many as are needed.
const PEAKS: usize = 64;

/// What the sender does, as far as its round trips show it.
#[derive(Clone, Debug, Default)]
enum Phase {
    /// It is in slow start, or nothing shows that it has left.
    #[default]
    Growing,
    /// It has not grown in this many round trips that cwnd limited.
    Flat { rounds: u32 },
    /// Its data ended, or it waits for more, after a flat round trip.
    Ended,
    /// It has left slow start.
    Left(Left),
}

/// A sender that has left slow start.
#[derive(Clone, Debug)]
struct Left {
    exit: ExitEstimate,
    /// True if cwnd limited it from the growth to the exit, and the growth was sudden.
    seen_before: bool,
    /// True if something other than cwnd limited it in a round trip before the exit was found.
    interrupted: bool,
    /// Round trips since the exit was found.
    after: u32,
    /// Maximum in flight in the newest of them. Before the first: that of the newest growth; zero if the exit
    /// was found after a pause of the application, so that any return to the former window revokes it.
    last: Bytes,
    /// Maximum in flight in each of them, until the first that had less than half as much: the first `PEAKS`.
    peaks: Vec<Bytes>,
    /// True once one had.
    halved: bool,
}

impl Left {
    fn new(exit: ExitEstimate, last: Bytes) -> Self {
        Self {
            exit,
            seen_before: false,
            interrupted: false,
            after: 0,
            last,
            peaks: Vec::new(),
            halved: false,
        }
    }

    /// A round trip that cwnd limited. A pause has reduced the window (RFC 2861): what follows does not show
    /// what limited it before.
    fn count(&mut self, peak: Bytes) {
        self.after += 1;
        self.halved |= self.peaks.last().is_some_and(|before| peak < *before / 2);
        if !self.halved && self.peaks.len() < PEAKS {
            self.peaks.push(peak);
        }
    }

    /// True if this round trip shows that growth to `level` had only paused: the window doubles again. CUBIC
    /// grows by less than half in each of these round trips, where they are long.
    fn is_revoked(&mut self, peak: Bytes, level: Bytes) -> bool {
        let doubles = peak > self.last + self.last / 2;
        self.last = peak;
        doubles && peak > level + level / 2
    }
}

/// Round trips that something other than cwnd limited, and those after them in which the window has not been
/// reached again. A window that is not used may have been reduced (RFC 2861), and its growth to the former
/// value shows nothing.
#[derive(Copy, Clone, Debug, Default)]
struct Unused {
    /// Round trips that something other than cwnd limited.
    rounds: u32,
    /// Maximum in flight in the newest round trip that cwnd limited.
    low: Bytes,
    /// The number of such round trips in a row in which it did not grow.
    flat: u32,
}

/// A window that fell without a loss.
#[derive(Copy, Clone, Debug)]
struct Fall {
    /// When the maximum was last in flight before it.
    at: Instant,
    /// For how many round trips the window has been lower.
    rounds: u32,
}

/// An exit after one flat round trip, before the application's first pause.
#[derive(Copy, Clone, Debug)]
struct BeforePause {
    exit: ExitEstimate,
    /// True if as much was in flight again.
    confirmed: bool,
}

/// The round trips of a sender until its first loss.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// How many each thing limited, in the order of [`LimitedBy`].
    limited: [u32; 4],
    /// Maximum in flight in a round trip so far.
    pub(super) best: Bytes,
    /// Round trips that grew, and those since something other than cwnd last limited the sender.
    grew: u32,
    grew_since: u32,
    /// Round trips since the newest that grew, of whatever kind.
    since_growth: u32,
    /// Growth in the last two growing round trips, in percent.
    growth: [u64; 2],
    phase: Phase,
    /// The maximum in flight before the newest flat round trips, and when the first of them began.
    level: Bytes,
    flat_from: Instant,
    /// The maximum in flight in the round trip in which growth went on, if it had stopped; `None` if it never
    /// had.
    paused: Option<Bytes>,
    /// Round trips since the receive window last limited the sender; `None` if it never did, or sudden growth
    /// was seen since.
    since_peer: Option<u32>,
    fell: Option<Fall>,
    unused: Option<Unused>,
    before_pause: Option<BeforePause>,
    /// True if data was sent in this round trip.
    sent: bool,
}

impl Rounds {
    pub(super) fn on_sent(&mut self) {
        self.sent = true;
    }

    /// True until the window is as large again as it was before something other than cwnd limited the sender.
    pub(super) fn is_unused(&self) -> bool {
        self.unused.is_some()
    }

    /// True if nothing can change the exit any more.
    pub(super) fn decided(&self) -> bool {
        matches!(&self.phase, Phase::Left(left) if left.after >= SURE_ROUNDS)
    }

    /// True if a rule may have ended slow start unseen: the receive window hid it, or growth had stopped
    /// once.
    pub(super) fn is_doubtful(&self) -> bool {
        self.since_peer.is_some() || self.paused.is_some()
    }

    /// True if the application limited more round trips than cwnd: a few that look otherwise are then its
    /// pattern.
    pub(super) fn mostly_application(&self) -> bool {
        self.count(LimitedBy::Application) > self.count(LimitedBy::Cwnd)
    }

    fn count(&self, by: LimitedBy) -> u32 {
        self.limited[by as usize]
    }

    /// A round trip is complete.
    pub(super) fn on_round(&mut self, round: &Round, flight: &Flight, mss: Bytes) {
        self.limited[round.limited_by as usize] += 1;
        self.since_growth += 1;
        let sent = std::mem::take(&mut self.sent);
        if let Phase::Left(left) = &mut self.phase {
            if round.limited_by == LimitedBy::Cwnd {
                left.count(round.peak);
            }
            if left.after > SURE_ROUNDS {
                return;
            }
        }
        if round.limited_by == LimitedBy::ReceiveWindow {
            self.since_peer = Some(0);
        }
        self.before_pause = self.before_pause.filter(|b| round.peak <= b.exit.cwnd + b.exit.cwnd / 2);
        if round.limited_by == LimitedBy::Cwnd {
            self.on_full_round(round, flight, mss);
        } else {
            self.on_unused_round(round, sent, flight, mss);
        }
    }

    /// Something other than cwnd limited the round trip.
    fn on_unused_round(&mut self, round: &Round, sent: bool, flight: &Flight, mss: Bytes) {
        // A window that was not used may still have grown.
        self.best = self.best.max(round.peak);
        let ended = match self.phase {
            Phase::Flat { .. } => self.grew_since > 0,
            // Once the last data is sent nothing more shows.
            Phase::Ended => !sent,
            Phase::Growing | Phase::Left(_) => false,
        };
        let ended = ended && round.limited_by == LimitedBy::Application;
        if ended && self.is_first_pause(round, flight) {
            self.before_pause = self.plateau(flight, mss).map(|exit| BeforePause { exit, confirmed: false });
        }
        if !matches!(self.phase, Phase::Left(_)) {
            self.phase = if ended { Phase::Ended } else { Phase::Growing };
        }
        self.grew_since = 0;
        let rounds = self.unused.map_or(0, |u| u.rounds) + 1;
        self.unused = Some(Unused { rounds, ..Unused::default() });
    }

    /// True if this is the application's first pause, after a flat round trip that shows a plateau: data that
    /// ends in a round trip is flat in what is left of it.
    fn is_first_pause(&self, round: &Round, flight: &Flight) -> bool {
        let held = flight.full.since(self.flat_from) * HELD >= round.start.since(self.flat_from);
        held && (self.count(LimitedBy::Application), self.count(LimitedBy::ReceiveWindow)) == (1, 0)
    }

    /// Cwnd limited the round trip.
    fn on_full_round(&mut self, round: &Round, flight: &Flight, mss: Bytes) {
        let peak = round.peak;
        if matches!(self.phase, Phase::Ended) {
            self.phase = Phase::Growing;
        }
        if let Some(b) = &mut self.before_pause {
            b.confirmed |= peak + b.exit.cwnd.scale(FLAT, 100) >= b.exit.cwnd;
        }
        if let Some(unused) = self.unused
            && peak + tolerance(self.best, mss) < self.best
        {
            self.stay_low(unused, peak, flight, mss);
            return;
        }
        self.unused = None;
        self.watch_fall(peak, flight, mss);
        if let Phase::Left(left) = &mut self.phase {
            if left.is_revoked(peak, self.level) {
                (self.phase, self.fell, self.paused) = (Phase::Growing, None, Some(peak));
                (self.grew, self.best) = (self.grew + 1, peak);
            }
            return;
        }
        self.watch_growth(round, flight, mss);
    }

    /// Without a loss, a fall is a reduction by the rule that ended slow start (Vegas; SEARCH, which drains).
    fn watch_fall(&mut self, peak: Bytes, flight: &Flight, mss: Bytes) {
        self.fell = if peak + mss.max(self.best.scale(FALLEN, 100)) < self.best {
            let fell = self.fell.unwrap_or(Fall { at: flight.full, rounds: 0 });
            Some(Fall { rounds: fell.rounds + 1, ..fell })
        } else {
            self.fell.filter(|f| f.rounds >= FLAT_ROUNDS)
        };
    }

    /// Whether the round trip grew or was flat, and whether enough were flat for an exit.
    fn watch_growth(&mut self, round: &Round, flight: &Flight, mss: Bytes) {
        let peak = round.peak;
        let flat_rounds = if let Phase::Flat { rounds } = self.phase { rounds } else { 0 };
        let grows = peak > self.best + flat_growth(self.best, mss);
        let grew = (peak - self.best).scale(100, self.best.0.max(1)).0;
        self.since_peer = match self.since_peer {
            // Growth in the first round trip after the limit may come from the receive window that opened.
            Some(n) if n > 0 && grew >= SUDDEN => None,
            n => n.map(|n| n + 1),
        };
        // After a flat round trip, less than sudden growth shows neither slow start nor its end.
        if flat_rounds > 0 && grows && grew < SUDDEN {
            (self.best, self.growth) = (peak, [self.growth[1], grew]);
            return;
        }
        // The first round trip shows the initial window, not growth.
        let first = self.best == Bytes::ZERO;
        if first || grows || self.growth.iter().all(|g| *g < SUDDEN) {
            self.phase = Phase::Growing;
            if !first {
                self.growth = [self.growth[1], grew];
            }
            if grows && !first {
                (self.grew, self.grew_since, self.since_growth) = (self.grew + 1, self.grew_since + 1, 0);
            }
            self.best = self.best.max(peak);
            return;
        }
        if flat_rounds == 0 {
            (self.level, self.flat_from) = (self.best, round.start);
        }
        self.best = self.best.max(peak);
        self.phase = Phase::Flat { rounds: flat_rounds + 1 };
        let enough = if self.grew_since > 0 { FLAT_ROUNDS } else { FLAT_ROUNDS * 2 };
        if flat_rounds + 1 >= enough && self.grew > 0 {
            self.stop(flight, mss);
        }
    }

    /// A window that fell, stays low and grows by no more than in congestion avoidance is beyond its
    /// threshold: what seemed to be a pause of the application was the sender, which waits until less than
    /// its new window is in flight (SEARCH drains). After a true pause the window would grow as before (RFC
    /// 2861).
    fn stay_low(&mut self, unused: Unused, peak: Bytes, flight: &Flight, mss: Bytes) {
        let is_flat = peak <= unused.low + flat_growth(unused.low, mss);
        let flat = if is_flat { unused.flat + 1 } else { 0 };
        self.unused = Some(Unused { low: peak, flat, ..unused });
        let at_once = unused.rounds <= FLAT_ROUNDS && self.count(LimitedBy::ReceiveWindow) == 0;
        if flat >= SURE_ROUNDS && at_once && self.grew > 0 && !matches!(self.phase, Phase::Left(_)) {
            let exit = ExitEstimate { at: flight.full, cwnd: self.best, evidence: Evidence::GrowthStopped };
            self.phase = Phase::Left(Left::new(exit, self.paused.unwrap_or(Bytes::ZERO)));
        }
    }

    /// The exit if growth has stopped. `None` if the receive window limited the growth since, which hides the
    /// exit, or if so far the application limited most round trips.
    fn plateau(&self, flight: &Flight, mss: Bytes) -> Option<ExitEstimate> {
        if self.since_peer.is_some() || self.mostly_application() {
            return None;
        }
        let at = flight.stopped_at(self.level, mss)?;
        Some(ExitEstimate { at, cwnd: self.level, evidence: Evidence::GrowthStopped })
    }

    /// Leaves slow start at the plateau.
    fn stop(&mut self, flight: &Flight, mss: Bytes) {
        let Some(exit) = self.plateau(flight, mss) else { return };
        self.phase = Phase::Left(Left {
            seen_before: self.grew_since > 0 && self.growth[1] >= SUDDEN,
            interrupted: self.count(LimitedBy::Application) > 0,
            ..Left::new(exit, self.best)
        });
    }

    /// The exit that the round trips, or growth over acknowledged bytes before a loss (`before_loss`), show
    /// by the end; `None` if they show none; an error if something other than cwnd explains what looks like
    /// one.
    pub(super) fn finish(
        &mut self,
        flight: &Flight,
        lost: bool,
        before_loss: Option<ExitEstimate>,
        mss: Bytes,
    ) -> Result<Option<ExitEstimate>, NoExit> {
        // One flat round trip before a loss or the end of the data: growth had already stopped.
        let stopped = matches!(self.phase, Phase::Ended) || lost && matches!(self.phase, Phase::Flat { .. });
        if stopped && self.grew > 0 {
            self.stop(flight, mss);
        }
        let left = if let Phase::Left(left) = &self.phase { Some(left) } else { None };
        // Slow start may have ended while the receive window still limited the sender.
        if left.is_none() && before_loss.is_some() && self.since_peer.is_some() {
            return Err(NoExit::PeerLimited);
        }
        // A plateau that later fell without a loss ended when it fell.
        let fell = self.fell.filter(|f| f.rounds >= FLAT_ROUNDS).map_or(Instant::ZERO, |f| f.at);
        let left_at = left.map(|l| ExitEstimate { at: l.exit.at.max(fell), ..l.exit });
        let confirmed = self.before_pause.filter(|b| b.confirmed).map(|b| b.exit);
        let found = confirmed.or(left_at).or(before_loss);
        if found.is_some() && left.and_then(|l| still(&l.peaks, mss)) == Some(true) {
            return Err(NoExit::LimitedOtherwise);
        }
        if found.is_none() && self.since_peer.is_some_and(|n| n > FLAT_ROUNDS) {
            return Err(NoExit::PeerLimited);
        }
        Ok(found)
    }

    /// True if the exit of [`Rounds::finish`] is certain.
    pub(super) fn is_certain(&self, mss: Bytes) -> bool {
        let Phase::Left(left) = &self.phase else { return false };
        // A window that falls without a loss may have been in a later phase of its startup (BBR).
        let fell = left.halved || left.peaks.iter().any(|p| *p < left.exit.cwnd.scale(LESS, 100));
        left.seen_before && !left.interrupted && !fell && still(&left.peaks, mss) == Some(false)
    }

    /// Why there is neither an exit nor a loss.
    pub(super) fn why_none(&self, flight: &Flight) -> NoExit {
        let [window, application, peer, _] = self.limited;
        let growing = self.grew > 0 && application <= window && peer <= window;
        if growing && self.since_growth > TAIL {
            NoExit::ApplicationLimited
        } else if growing && flight.grows(flight.acked_at_last) == Some(false) {
            NoExit::EndedInDoubt
        } else if growing {
            NoExit::StillGrowing
        } else if peer > 0 && peer >= application {
            NoExit::PeerLimited
        } else if application > 0 {
            NoExit::ApplicationLimited
        } else {
            NoExit::NoGrowth
        }
    }
}

/// Growth of a window up to which a round trip is flat.
pub(crate) fn flat_growth(window: Bytes, mss: Bytes) -> Bytes {
    window.scale(FLAT, 100).max(mss * FLAT_LEAST)
}

/// Whether the window did not grow over these round trips: the middle one of the last third is at most a segment
/// above that of the first. `None` if they are too few.
fn still(peaks: &[Bytes], mss: Bytes) -> Option<bool> {
    let third = peaks.len() / 3;
    let middle = |part: &[Bytes]| {
        let mut sorted = part.to_vec();
        sorted.sort_unstable();
        sorted.get(part.len() / 2).copied().unwrap_or(Bytes::ZERO)
    };
    (peaks.len() >= STILL_ROUNDS as usize)
        .then(|| middle(&peaks[peaks.len() - third..]) <= middle(&peaks[..third]) + mss)
}
