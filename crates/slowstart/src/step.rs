//! All that an algorithm may ask of its host.

use crate::units::{Bytes, Gain, Instant, Mark, Rate};
use crate::view::Signal;

/// What becomes of the congestion window.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// As it is.
    #[default]
    Keep,
    /// Larger by this much, if the sender earned it; never past the threshold.
    Grow(Bytes),
    /// This, earned or not: a jump or a drain.
    Set(Bytes),
}

/// How sending is spread over time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As the ACKs come.
    Off,
    /// At a gain of cwnd/srtt.
    Gain(Gain),
    /// At a rate, from the first packet on.
    Rate(Rate),
    /// Again by the host's own rule: what a paced first flight ends with.
    Host,
}

/// When the startup wants to be called without an ACK.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// As arranged before.
    #[default]
    Keep,
    /// At this time.
    At(Instant),
    /// Not at all.
    Cancel,
}

/// Why a startup was left.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// The window reached a threshold set earlier.
    Ssthresh,
    /// Packets were lost.
    Loss,
    /// The network marked packets.
    Ecn,
    /// The retransmission timer fired.
    Timeout,
    /// The host's own queue refused a packet.
    LocalStall,
    /// A train of closely spaced ACKs grew as long as the path (`HyStart`).
    AckTrain,
    /// The round-trip time rose.
    Delay,
    /// Conservative slow start lasted its five rounds (`HyStart++`).
    CssRounds,
    /// Delivery no longer keeps pace with sending.
    RateFlat,
    /// The window reached an estimate of capacity.
    Estimate,
}

impl Exit {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssthresh => "ssthresh",
            Self::Loss => "loss",
            Self::Ecn => "ecn",
            Self::Timeout => "timeout",
            Self::LocalStall => "local-stall",
            Self::AckTrain => "ack-train",
            Self::Delay => "delay",
            Self::CssRounds => "css-rounds",
            Self::RateFlat => "rate-flat",
            Self::Estimate => "estimate",
        }
    }

    /// Left because the network (or the host) complained, not by a rule of the startup's own.
    pub const fn by_congestion(self) -> bool {
        matches!(self, Self::Loss | Self::Ecn | Self::Timeout | Self::LocalStall)
    }
}

impl From<Signal> for Exit {
    fn from(s: Signal) -> Self {
        match s {
            Signal::Loss => Self::Loss,
            Signal::Ecn => Self::Ecn,
            Signal::Timeout => Self::Timeout,
            Signal::LocalStall => Self::LocalStall,
        }
    }
}

/// When and at which window a reason to leave was seen, where that is not the moment of leaving (a drain follows).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// When.
    pub at: Instant,
    /// The window then.
    pub cwnd: Bytes,
}

/// What a startup asks of its host after one event.
#[must_use]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The congestion window.
    pub window: Window,
    /// A threshold. Without `exit` it is a ceiling, which the startup may raise again.
    pub ssthresh: Option<Bytes>,
    /// Pacing from now on.
    pub pace: Option<Pace>,
    /// A timer.
    pub wake: Wake,
    /// Leave startup, for this reason; the threshold defaults to the window left with.
    pub exit: Option<Exit>,
    /// When the reason was seen, if earlier.
    pub detected: Option<Detected>,
    /// Send the packet that ends at this mark again now, unasked, unless it is known to have arrived or held for lost.
    pub resend: Option<Mark>,
}

impl Step {
    /// Nothing changes.
    pub const HOLD: Self = Self {
        window: Window::Keep,
        ssthresh: None,
        pace: None,
        wake: Wake::Keep,
        exit: None,
        detected: None,
        resend: None,
    };

    /// Grow by `b`.
    pub const fn grow(b: Bytes) -> Self {
        Self { window: Window::Grow(b), ..Self::HOLD }
    }
    /// Make the window `b`.
    pub const fn set(b: Bytes) -> Self {
        Self { window: Window::Set(b), ..Self::HOLD }
    }
    /// Leave startup with the window as it is.
    pub const fn exit(why: Exit) -> Self {
        Self { exit: Some(why), ..Self::HOLD }
    }
    /// ... and leave startup.
    pub const fn and_exit(mut self, why: Exit) -> Self {
        self.exit = Some(why);
        self
    }
    /// ... for a reason seen earlier.
    pub const fn detected(mut self, d: Detected) -> Self {
        self.detected = Some(d);
        self
    }
    /// ... with a threshold.
    pub const fn ssthresh(mut self, b: Bytes) -> Self {
        self.ssthresh = Some(b);
        self
    }
    /// ... paced so.
    pub const fn pace(mut self, p: Pace) -> Self {
        self.pace = Some(p);
        self
    }
    /// ... with the packet that ends at `mark` sent again.
    pub const fn resend(mut self, mark: Mark) -> Self {
        self.resend = Some(mark);
        self
    }
    /// ... to be woken at `t`.
    pub const fn wake(mut self, t: Instant) -> Self {
        self.wake = Wake::At(t);
        self
    }
}

/// How slow start goes on after a restart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The algorithm from its beginning, up to the threshold the restart left.
    FromStart,
    /// The algorithm as it stands (after an idle period), or standard growth to the threshold (after a timeout).
    Standard,
}
