//! Congestion avoidance, which follows a startup.

pub mod cubic;
pub mod reno;

use crate::param::{ParamError, ParamValue, Parameters};
use crate::step::{Exit, Window};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Congestion, View};

/// A congestion avoidance algorithm.
pub trait Avoidance {
    /// Called when the avoidance takes over. `how` is the reason: without loss there is no `W_max` (RFC 9438 §4.10).
    fn enter(&mut self, v: &View, how: Exit);
    /// Called for each ACK that permits growth. Returns the change of the window.
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Window;
    /// Called on congestion. Returns the reduced window in bytes, which is also the new slow-start threshold.
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes;
    /// Called when sending begins after nothing was in flight for `idle`, so that a window that depends on time can
    /// exclude it.
    fn on_idle(&mut self, _idle: Span) {}
}

/// One name in the list of avoidances.
pub struct AvoidanceEntry {
    /// The name that users write and results contain.
    pub name: &'static str,
    /// The RFC or code that specifies it.
    pub source: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Returns a new instance with default parameters.
    pub make: fn() -> AnyAvoidance,
}

/// Any avoidance of the list, by value.
#[derive(Clone, Debug)]
pub enum AnyAvoidance {
    /// See [`reno`].
    Reno(reno::Reno),
    /// See [`cubic`].
    Cubic(cubic::Cubic),
}

/// All avoidances. The first is the default.
pub const REGISTRY: &[AvoidanceEntry] = &[
    AvoidanceEntry {
        name: "cubic",
        source: "RFC 9438; Linux 6.18 tcp_cubic.c",
        about: "a cubic function of the time since the last cut",
        make: || AnyAvoidance::Cubic(cubic::Cubic::new(cubic::Params::default())),
    },
    AvoidanceEntry {
        name: "reno",
        source: "RFC 5681",
        about: "one segment a round trip",
        make: || AnyAvoidance::Reno(reno::Reno::new(reno::Params::default())),
    },
];

impl AnyAvoidance {
    /// Returns its parameters.
    pub fn params(&mut self) -> &mut dyn Parameters {
        match self {
            Self::Reno(a) => &mut a.params,
            Self::Cubic(a) => &mut a.params,
        }
    }

    /// Sets the parameter `key` from text.
    ///
    /// # Errors
    /// If there is no such parameter, or the text is not a valid value of it; `self` is then unchanged.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
        self.params().set(key, value)
    }

    /// Calls `put` with name and value of each parameter, in order of declaration.
    pub fn each_param(&self, put: &mut dyn FnMut(&'static str, ParamValue)) {
        match self {
            Self::Reno(a) => a.params.each(put),
            Self::Cubic(a) => a.params.each(put),
        }
    }
}

impl Avoidance for AnyAvoidance {
    fn enter(&mut self, v: &View, how: Exit) {
        match self {
            Self::Reno(a) => a.enter(v, how),
            Self::Cubic(a) => a.enter(v, how),
        }
    }
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Window {
        match self {
            Self::Reno(a) => a.on_ack(v, ack),
            Self::Cubic(a) => a.on_ack(v, ack),
        }
    }
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        match self {
            Self::Reno(a) => a.on_congestion(v, c),
            Self::Cubic(a) => a.on_congestion(v, c),
        }
    }
    fn on_idle(&mut self, idle: Span) {
        match self {
            Self::Reno(a) => a.on_idle(idle),
            Self::Cubic(a) => a.on_idle(idle),
        }
    }
}
