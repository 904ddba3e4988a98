//! Infers where a connection left slow start. Packets do not carry cwnd, but a sender that is limited by its
//! cwnd has all of it in flight.
//!
//! - `flight`: growth over the bytes that are acknowledged
//! - `rounds`: growth from one round trip to the next, and its phases

mod flight;
mod rounds;

use flight::Flight;
use rounds::Rounds;
use slowstart::units::{Bytes, Instant, Span};

pub(crate) use rounds::{FLAT, STILL_ROUNDS, flat_growth};

/// What limited the sender in a round trip.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// Its congestion window, as far as can be seen.
    Cwnd,
    /// The application had no more data.
    Application,
    /// The peer's receive window.
    ReceiveWindow,
    /// The size of the socket's send buffer.
    SendBuffer,
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
            Self::SendBuffer => "send buffer",
            Self::Idle => "idle",
        }
    }
}

impl LimitedBy {
    /// Why a sender that this limited shows no exit.
    pub(crate) const fn no_exit(self) -> NoExit {
        match self {
            Self::Cwnd => NoExit::NoGrowth,
            Self::Application | Self::Idle => NoExit::ApplicationLimited,
            Self::ReceiveWindow => NoExit::PeerLimited,
            Self::SendBuffer => NoExit::BufferLimited,
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
    /// True if losses were being repaired when it ended.
    pub recovering: bool,
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
    /// The file states the exit, and that congestion was the reason.
    RecordedLoss,
    /// The file states the exit.
    Recorded,
}

impl Evidence {
    /// True if the network caused the exit (loss, timeout or ECN), not the startup's own rule.
    pub const fn is_congestion(self) -> bool {
        matches!(self, Self::Loss | Self::Timeout | Self::Mark | Self::RecordedLoss)
    }

    /// The text used in rows and messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::GrowthStopped => "growth stopped without loss",
            Self::Loss => "loss",
            Self::Timeout => "timeout",
            Self::Mark => "a mark by the network",
            Self::Threshold => "a threshold was set without loss",
            Self::RecordedLoss => "congestion, stated in the file",
            Self::Recorded => "stated in the file",
        }
    }
}

/// An observed end of slow start.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ExitEstimate {
    /// When slow start ended.
    pub at: Instant,
    /// The window at that time: the maximum in flight, or cwnd if the file states it.
    pub cwnd: Bytes,
    /// What shows that it ended.
    pub evidence: Evidence,
}

/// Why no exit is reported.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoExit {
    /// The application had too little data.
    ApplicationLimited,
    /// The peer's receive window limited the sender.
    PeerLimited,
    /// The socket's send buffer limited the sender.
    BufferLimited,
    /// The data ended while the window was still growing.
    StillGrowing,
    /// The window never grew.
    NoGrowth,
    /// Growth stopped, and congestion avoidance added nothing until the end although nothing was lost:
    /// something other than cwnd limited the sender.
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
    /// The file does not state the window.
    NoWindow,
    /// No acknowledgement was captured.
    NoAcks,
    /// Where the capture was made is not known, and so is when the sender did what.
    NoVantage,
    /// Seen at the receiver, the round trip is not longer than the ticks of the timestamps that restore the sender's
    /// order of events.
    BelowTick,
}

impl NoExit {
    /// Something other than cwnd limited the sender: what it then sent shows nothing of the path.
    pub(crate) const LIMITS: [Self; 4] =
        [Self::ApplicationLimited, Self::PeerLimited, Self::BufferLimited, Self::LimitedOtherwise];

    /// True if something other than cwnd limited the sender.
    pub(crate) fn is_limit(self) -> bool {
        Self::LIMITS.contains(&self)
    }

    /// The text used in rows and messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ApplicationLimited => "application-limited",
            Self::PeerLimited => "limited by the receive window",
            Self::BufferLimited => "limited by the send buffer",
            Self::StillGrowing => "ended while growing",
            Self::NoGrowth => "no growth seen",
            Self::LimitedOtherwise => "limited by something other than cwnd",
            Self::BeganBefore => "began before the capture",
            Self::TooFew => "too few samples",
            Self::EndedInDoubt => "the data ended when growth had slowed",
            Self::LittleData => "little data: most went the other way",
            Self::Uncaptured => "most of its data was not captured",
            Self::NoWindow => "the file does not state the window",
            Self::NoAcks => "no acknowledgement was captured",
            Self::NoVantage => "where it was captured is not known",
            Self::BelowTick => "the round trip is no longer than a few ticks of the timestamps",
        }
    }
}

/// The first loss, timeout or mark.
#[derive(Clone, Debug)]
struct Loss {
    exit: ExitEstimate,
    /// An exit shortly before it.
    before: Option<ExitEstimate>,
    /// True if the bytes in flight grew with what was acknowledged until it.
    grew_until: bool,
    /// True if the window was measured by its retransmission.
    measured: bool,
    /// What was known when it was detected.
    flight: Flight,
    rounds: Rounds,
    /// True if the window fell after it, and if that was at once.
    fell: bool,
    at_once: bool,
    /// Since the window fell: the newest window; for how many round trips in a row it did nothing but what congestion
    /// avoidance does, the most in flight in them, and in how many of them that grew: a flight that takes back what it
    /// added is BBR's.
    low: Bytes,
    high: Bytes,
    steady: u32,
    climbed: u32,
    /// Round trips since, and those of them that show the window: cwnd limited them, and nothing was repaired.
    after: u32,
    shown: u32,
}

/// A window that is less than so many percent of the one before the loss has fallen. CUBIC leaves 70, the
/// least reduction known 85 (RFC 8511, ABE).
const LESS: u64 = 90;
/// One that is more than so many percent of it, and so many segments, in one of the `RESPONSE` round trips
/// after the loss has not: what a loss has ended does not grow by a quarter in this time.
const MORE: u64 = 125;
const MORE_LEAST: u64 = 4;
/// Round trips after a loss in which the window shows what the sender made of it.
const RESPONSE: u32 = 6;
/// Round trips in which a window that the loss reduced is seen to fall. BBR goes on for some round trips before it
/// leaves its startup.
const AT_ONCE: u32 = 3;
/// Round trips after a loss that are followed, for how many of them the window must do what congestion avoidance
/// does, and how often it must grow. What BBR has in flight falls and grows by a quarter in every eight.
const FOLLOWED: u32 = 24;
const STEADY: u32 = 8;
const CLIMBED: u32 = 2;
/// Round trips that show the window, of which none is lower: the sender made nothing of the loss.
const UNMOVED: u32 = 3;

/// Finds the end of slow start.
#[derive(Clone, Debug, Default)]
pub struct Inference {
    flight: Flight,
    rounds: Rounds,
    loss: Option<Box<Loss>>,
    /// True if the window did not fall after a loss, so that this was no exit.
    ignored: bool,
}

impl Inference {
    /// `bytes` were sent and `inflight` are in flight; `rtt` is the newest RTT sample, zero before the first.
    pub fn on_sent(&mut self, at: Instant, inflight: Bytes, bytes: Bytes, rtt: Span, mss: Bytes) {
        self.rounds.on_sent();
        self.flight.on_sent(at, inflight, bytes, mss);
        if !self.decided() {
            self.flight.record(at, inflight, rtt, mss);
        }
    }

    /// `bytes` more are acknowledged and allow new data to be sent.
    pub fn on_ack(&mut self, at: Instant, bytes: Bytes) {
        if !self.decided() {
            self.flight.on_ack(at, bytes);
        }
    }

    /// A loss was detected. `limited`: the sender could send nothing new by then for lack of data or of
    /// receive window, so that its window does not show.
    pub fn on_loss(&mut self, at: Instant, evidence: Evidence, limited: bool) {
        if self.loss.is_some() || self.decided() {
            return;
        }
        let cwnd = self.flight.most.max(self.rounds.best);
        self.loss = Some(Box::new(Loss {
            exit: ExitEstimate { at, cwnd, evidence },
            before: self.flight.exit_before_loss(at, cwnd),
            grew_until: !limited
                && !self.rounds.is_unused()
                && self.flight.grows(self.flight.acked) == Some(true),
            measured: false,
            flight: self.flight.clone(),
            rounds: self.rounds.clone(),
            fell: false,
            at_once: false,
            low: Bytes::ZERO,
            high: Bytes::ZERO,
            steady: 0,
            climbed: 0,
            after: 0,
            shown: 0,
        }));
    }

    /// This much was in flight when the sender detected the first loss, as its retransmission shows.
    pub fn window_at_loss(&mut self, window: Bytes) {
        if let Some(loss) = self.loss.as_mut().filter(|l| !l.measured) {
            (loss.measured, loss.exit.cwnd) = (true, loss.exit.cwnd.max(window));
        }
    }

    /// The loss was spurious.
    pub fn on_undone(&mut self) {
        self.loss = None;
    }

    /// A round trip is complete.
    pub fn on_round(&mut self, round: &Round, mss: Bytes) {
        if self.loss.as_ref().is_some_and(|l| l.is_settled()) {
            return;
        }
        self.rounds.on_round(round, &self.flight, mss);
        if self.loss.as_mut().is_some_and(|l| !l.is_exit(round, mss)) {
            self.loss = None;
            self.ignored = true;
        }
    }

    /// When this many bytes were first in flight, if that was before the exit was certain.
    pub fn first(&self, inflight: Bytes) -> Option<Instant> {
        self.flight.first(inflight)
    }

    /// When more than this was first in flight, by more than a flat round trip may add.
    pub fn first_above(&self, inflight: Bytes) -> Option<Instant> {
        self.first(inflight + inflight.scale(FLAT, 100))
    }

    /// True if nothing can change the result any more.
    pub fn decided(&self) -> bool {
        match &self.loss {
            Some(loss) => loss.is_settled(),
            None => self.rounds.decided(),
        }
    }

    /// True if this exit of [`Self::result`] is certain. A loss: growth was seen until it, so that no rule
    /// had ended slow start before, and the window fell. Growth that stopped: it had been fast, and after it
    /// the window grew as in congestion avoidance; data that an application or a buffer limits would not.
    pub fn is_certain(&self, exit: ExitEstimate, mss: Bytes) -> bool {
        match (exit.evidence, &self.loss) {
            (Evidence::GrowthStopped, loss) => {
                !self.ignored && loss.as_ref().map_or(&self.rounds, |l| &l.rounds).is_certain(mss)
            }
            (Evidence::Mark, Some(l)) => l.is_avoidance(),
            (_, Some(l)) => l.grew_until && l.is_avoidance() && !l.rounds.is_doubtful() && !self.ignored,
            (_, None) => false,
        }
    }

    /// Returns the exit, or why none is reported.
    pub fn result(&mut self, mss: Bytes) -> Result<ExitEstimate, NoExit> {
        let Some(loss) = &mut self.loss else {
            let found = self.rounds.finish(&self.flight, false, None, mss)?;
            return found.ok_or_else(|| self.rounds.why_none(&self.flight));
        };
        let found = loss.rounds.finish(&loss.flight, true, loss.before, mss)?;
        // A loss of a sender that is mostly application-limited does not show its window.
        let shown = !loss.rounds.mostly_application();
        found.or(shown.then_some(loss.exit)).ok_or_else(|| loss.rounds.why_none(&loss.flight))
    }
}

impl Loss {
    /// True if nothing shows any more that it was no exit.
    fn is_settled(&self) -> bool {
        self.fell && self.after >= FOLLOWED
    }

    /// True if the window fell at once, and then grew as in congestion avoidance.
    fn is_avoidance(&self) -> bool {
        self.at_once && self.steady >= STEADY && self.climbed >= CLIMBED
    }

    /// False if this round trip shows that slow start did not end with the loss: the window did not fall.
    fn is_exit(&mut self, round: &Round, mss: Bytes) -> bool {
        self.after += 1;
        // The first holds what was sent before.
        let shows = self.after > 1 && round.limited_by == LimitedBy::Cwnd;
        if !shows {
            return true;
        }
        let window = self.exit.cwnd;
        let less = round.peak < window.scale(LESS, 100);
        self.at_once |= less && self.after <= AT_ONCE;
        if round.peak > window.scale(MORE, 100).max(window + mss * MORE_LEAST) && self.after <= RESPONSE {
            return false;
        }
        if round.recovering {
            return true;
        }
        self.shown += 1;
        self.fell |= less;
        if less {
            let most = self.low + flat_growth(self.low, mss);
            if !self.is_avoidance() {
                let as_before = round.peak + mss >= self.low && round.peak <= most;
                self.climbed = if as_before { self.climbed + u32::from(round.peak > self.high) } else { 0 };
                self.steady = if as_before { self.steady + 1 } else { 0 };
                self.high = if as_before { self.high.max(round.peak) } else { round.peak };
            }
            self.low = round.peak;
        }
        self.fell || self.shown < UNMOVED
    }
}

/// Difference up to which two windows are equal: a segment or 2 %.
fn tolerance(window: Bytes, mss: Bytes) -> Bytes {
    mss.max(window / 50)
}

#[cfg(test)]
mod tests;
