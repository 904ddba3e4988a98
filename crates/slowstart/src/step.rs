//! The output of an algorithm: what a startup requests of its host after an event.

use crate::units::{Bytes, Gain, Instant, Rate};
use crate::view::Signal;
use core::ffi::CStr;

/// The change of the congestion window.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// The window stays as it is.
    #[default]
    Keep,
    /// Increase by this many bytes, up to the slow-start threshold. Applied only on an ACK that permits
    /// growth (see [`Limit`](crate::view::Limit)).
    Grow(Bytes),
    /// Set to this many bytes, at least the host's [least window](crate::view::Facts::min_window). Always
    /// applied.
    Set(Bytes),
}

/// How packets are spaced.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pace {
    /// No pacing: packets are sent as soon as the window allows.
    Off,
    /// At this multiple of cwnd / SRTT.
    Gain(Gain),
    /// At this rate, from the first packet on.
    Rate(Rate),
    /// By the host's own rule. Ends a pacing request.
    Host,
}

/// The startup's timer, which calls [`Startup::on_timer`](crate::startup::Startup::on_timer).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wake {
    /// The timer stays as it is.
    #[default]
    Keep,
    /// Set to this time.
    At(Instant),
    /// The timer is stopped; [`Startup::on_timer`](crate::startup::Startup::on_timer) is not called.
    Cancel,
}

/// The list of reasons: each with its name in results, whether it is congestion, and what it means in words.
macro_rules! exits {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $congestion:literal, $meaning:literal;)*) => {
        /// Why a startup ended.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Exit {
            $($(#[$doc])* $variant,)*
        }

        impl Exit {
            /// Every reason, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name used in results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the same name for programs in C.
            pub const fn c_name(self) -> &'static CStr {
                match self {
                    $(Self::$variant => const {
                        match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                            Ok(name) => name,
                            Err(_) => panic!("a name has no zero"),
                        }
                    },)*
                }
            }

            /// Returns true if congestion ended the startup, and false if a rule of its own did.
            pub const fn by_congestion(self) -> bool {
                match self {
                    $(Self::$variant => $congestion,)*
                }
            }

            /// Returns what happened, as a clause: `packets were lost`.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }
        }
    };
}

exits! {
    /// The window reached a threshold that was set earlier.
    Ssthresh, "ssthresh", false, "the window reached its slow-start threshold";
    /// Packets were lost.
    Loss, "loss", true, "packets were lost";
    /// The network marked packets (ECN).
    Ecn, "ecn", true, "the network marked packets";
    /// The retransmission timer fired.
    Timeout, "timeout", true, "the retransmission timer fired";
    /// The host's own interface queue refused a packet.
    LocalStall, "local-stall", true, "the host's own queue refused a packet";
    /// A train of closely spaced ACKs became as long as the round-trip time (`HyStart`).
    AckTrain, "ack-train", false, "a train of closely spaced acknowledgements grew as long as the path";
    /// The round-trip time rose.
    Delay, "delay", false, "the round-trip time rose";
    /// Conservative slow start completed its five rounds (`HyStart++`).
    CssRounds, "css-rounds", false, "conservative slow start lasted all of its rounds";
    /// The delivery rate no longer grows as expected.
    RateFlat, "rate-flat", false, "delivery no longer kept pace with sending";
    /// The window reached an estimate of capacity.
    Estimate, "estimate", false, "the window reached an estimate of the capacity";
    /// A rule that has no word here, of a startup that a host defines.
    Other, "other", false, "a rule of its own ended it";
}

impl Exit {
    /// Returns the reason of this name in results, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|e| e.name() == name).copied()
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

/// When, and with which window, the startup detected its reason to end, if it ends later (for example after a
/// drain).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// When the reason was seen.
    pub at: Instant,
    /// Window at that time.
    pub cwnd: Bytes,
}

/// What a startup requests after one event.
#[must_use]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Change of the congestion window.
    pub window: Window,
    /// New slow-start threshold, at least two segments. Without `exit` it only limits growth, and the startup
    /// may raise it again.
    pub ssthresh: Option<Bytes>,
    /// How packets are spaced from now on; `None` leaves that unchanged.
    pub pace: Option<Pace>,
    /// Change of the timer.
    pub wake: Wake,
    /// End the startup, for this reason. Without `ssthresh` the threshold becomes the window at the exit.
    pub exit: Option<Exit>,
    /// When the reason was detected, if earlier than now.
    pub detected: Option<Detected>,
    /// Retransmit now the packet whose data ends this many bytes before the end of the data sent so far (in
    /// TCP before SND.NXT), unless it is known to have arrived or is already marked lost.
    pub resend: Option<Bytes>,
}

impl Step {
    /// A step that changes nothing.
    pub const HOLD: Self = Self {
        window: Window::Keep,
        ssthresh: None,
        pace: None,
        wake: Wake::Keep,
        exit: None,
        detected: None,
        resend: None,
    };

    /// Increase the window by `b`.
    pub const fn grow(b: Bytes) -> Self {
        Self { window: Window::Grow(b), ..Self::HOLD }
    }
    /// Raise the window from `from`, what it is, to `to`; never lowers it. Unlike [`Step::set`], which is
    /// always applied, this is growth: it is withheld unless an ACK permits it, so that a window that was not
    /// earned cannot be asked for.
    pub const fn raise(from: Bytes, to: Bytes) -> Self {
        Self::grow(Bytes(to.0.saturating_sub(from.0)))
    }
    /// Set the window to `b`.
    pub const fn set(b: Bytes) -> Self {
        Self { window: Window::Set(b), ..Self::HOLD }
    }
    /// End the startup with the window unchanged.
    pub const fn exit(why: Exit) -> Self {
        Self { exit: Some(why), ..Self::HOLD }
    }
    /// Returns this step with an exit for that reason.
    pub const fn and_exit(mut self, why: Exit) -> Self {
        self.exit = Some(why);
        self
    }
    /// Adds the time and window of detection.
    pub const fn detected(mut self, d: Detected) -> Self {
        self.detected = Some(d);
        self
    }
    /// Returns this step with a slow-start threshold of `b`.
    pub const fn ssthresh(mut self, b: Bytes) -> Self {
        self.ssthresh = Some(b);
        self
    }
    /// Adds a change of pacing.
    pub const fn pace(mut self, p: Pace) -> Self {
        self.pace = Some(p);
        self
    }
    /// Adds the retransmission of the packet that ends `back` bytes before the end of the data sent.
    pub const fn resend(mut self, back: Bytes) -> Self {
        self.resend = Some(back);
        self
    }
    /// Adds a timer at `t`.
    pub const fn wake(mut self, t: Instant) -> Self {
        self.wake = Wake::At(t);
        self
    }
}

/// How slow start continues after a restart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// With a new instance of the startup, up to the threshold that the restart set, if any.
    FromStart,
    /// With standard growth, up to the threshold that the restart set, if any. After an idle period a startup
    /// that has not ended goes on unchanged.
    Standard,
    /// With the startup as it is, up to the threshold.
    Unchanged,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_is_growth_and_never_lowers() {
        assert_eq!(Step::raise(Bytes(10), Bytes(25)), Step::grow(Bytes(15)));
        assert_eq!(Step::raise(Bytes(10), Bytes(5)), Step::grow(Bytes::ZERO));
    }
}
