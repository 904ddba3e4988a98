//! What follows a startup: congestion avoidance.

pub mod cubic;
pub mod reno;

use crate::param::{ParamError, ParamValue, Parameters};
use crate::step::{Exit, Window};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Congestion, View};

/// A way of living at capacity.
pub trait Avoidance {
    /// It takes over, told how: there is no maximum to remember where nothing was lost (RFC 9438 §4.10).
    fn enter(&mut self, v: &View, how: Exit);
    /// New data was acknowledged and the sender had earned growth.
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Window;
    /// The window to go on with after congestion: also the new threshold.
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes;
    /// Nothing was in flight for this long: no time has passed for a window that is a function of time.
    fn on_idle(&mut self, _idle: Span) {}
}

/// One line of the list of avoidances.
pub struct AvoidanceEntry {
    /// Its name.
    pub name: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// With its default parameters.
    pub make: fn() -> AnyAvoidance,
}

/// Any avoidance, by value.
#[derive(Clone, Debug)]
pub enum AnyAvoidance {
    /// See [`reno`].
    Reno(reno::Reno),
    /// See [`cubic`].
    Cubic(cubic::Cubic),
}

/// The list of avoidances.
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
    /// Its parameters, to read or set.
    pub fn params(&mut self) -> &mut dyn Parameters {
        match self {
            Self::Reno(a) => &mut a.params,
            Self::Cubic(a) => &mut a.params,
        }
    }

    /// Sets one parameter from what a person wrote.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
        self.params().set(key, value)
    }

    /// Shows each parameter.
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
