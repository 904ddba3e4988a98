//! A packet that the path dropped, and why.

use slowstart::units::Instant;
use std::fmt;

/// Why a packet was dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it.
    Aqm,
    /// Random loss, whatever the load.
    Random,
    /// A loss of a burst that has nothing to do with the load: a fade, a hand-over, the bad state of a chain.
    Burst,
    /// A loss that the path's script names.
    Scripted,
    /// An outage: the queue was flushed, or the link is down.
    Outage,
    /// A policer dropped it.
    Policer,
}

impl Cause {
    /// All causes, in the order of their definition.
    pub const ALL: [Self; 7] =
        [Self::QueueFull, Self::Aqm, Self::Random, Self::Burst, Self::Scripted, Self::Outage, Self::Policer];

    /// The cause of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.to_string() == name)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::QueueFull => "queue-full",
            Self::Aqm => "aqm",
            Self::Random => "random",
            Self::Burst => "burst",
            Self::Scripted => "scripted",
            Self::Outage => "outage",
            Self::Policer => "policer",
        })
    }
}

/// A packet that the path dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Time of the drop. Drops and arrivals are not in one order, as a loss may be before or after a queue.
    pub at: Instant,
    /// Why the path dropped it.
    pub cause: Cause,
    /// Which link of the path dropped it, from 0: the first, with all that surrounds it, or one behind it.
    pub link: u8,
}

impl Dropped {
    /// A drop at the first link of a path, or beside it.
    pub const fn new(at: Instant, cause: Cause) -> Self {
        Self { at, cause, link: 0 }
    }
}
