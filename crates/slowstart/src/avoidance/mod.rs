//! Congestion avoidance, which follows a startup.

use crate::param::{ParamError, ParamValue, Parameters};
use crate::step::Exit;
use crate::units::{Bytes, Instant, Span};
use crate::view::{Ack, Congestion, View};

/// What an avoidance does with the window on an ACK.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Adjust {
    /// The window stays as it is.
    Keep,
    /// Increase by this many bytes.
    Grow(Bytes),
    /// Slow start begins again, with the window as it is and without a threshold. When that ends,
    /// [`Avoidance::enter`] is called.
    Restart,
}

/// A congestion avoidance algorithm.
pub trait Avoidance {
    /// Called when the avoidance takes over. `how` is the reason: without loss there is no `W_max` (RFC 9438
    /// §4.10).
    fn enter(&mut self, v: &View, how: Exit);
    /// Called after [`Avoidance::enter`] if the startup knows a window, in bytes, that the path may hold: a
    /// `W_max` that no congestion has set.
    fn look_for(&mut self, _v: &View, _window: Bytes) {}
    /// Called for each ACK that permits growth. Returns the change of the window.
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust;
    /// Called on congestion. Returns the reduced window in bytes, which is also the new slow-start threshold.
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes;
    /// Called at `now`, when sending begins after nothing was sent for `idle` and nothing is in flight, so that
    /// a window that depends on time can exclude it.
    fn on_idle(&mut self, _now: Instant, _idle: Span) {}
    /// Called for each ACK of the connection, also during the startup and in recovery, before anything else
    /// is.
    fn observe(&mut self, _v: &View, _ack: &Ack) {}
    /// Returns true if packets are to carry ECT(1): see
    /// [`Controller::is_l4s`](crate::control::Controller::is_l4s).
    fn is_l4s(&self) -> bool {
        false
    }
    /// Returns true if it counts marks: see
    /// [`Controller::needs_each_mark`](crate::control::Controller::needs_each_mark).
    fn needs_each_mark(&self) -> bool {
        false
    }
    /// Returns true if marks do not stop growth: see
    /// [`Controller::grows_between_marks`](crate::control::Controller::grows_between_marks).
    fn grows_between_marks(&self) -> bool {
        false
    }
}

/// One name in the list of avoidances.
#[non_exhaustive]
pub struct AvoidanceEntry {
    /// The name that users write and results contain.
    pub name: &'static str,
    /// The startup before it in a flow that is named by the avoidance alone, as `--against` does: what Linux
    /// runs under it, or standard slow start.
    pub before: &'static str,
    /// The RFC or code that specifies it.
    pub source: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Returns a new instance with default parameters.
    pub make: fn() -> AnyAvoidance,
}

/// Defines the avoidances from two lists: their types, each of a module, and their names. Each name has the
/// constructor of its parameters, the startup before it in the flows of others (`before`), its source and
/// what it does.
macro_rules! avoidances {
    (
        $($module:ident::$ty:ident;)+
        $($name:literal: $of:ident::$of_ty:ident, $params:ident, before: $before:literal, $source:literal, $about:literal;)+
    ) => {
        $(pub mod $module;)+

        /// Any avoidance of the list, by value.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum AnyAvoidance { $(
            #[doc = concat!("See [`", stringify!($module), "`].")]
            $ty($module::$ty)
        ),+ }

        /// All avoidances. The first is the default.
        pub const REGISTRY: &[AvoidanceEntry] = &[$(AvoidanceEntry {
            name: $name,
            before: $before,
            source: $source,
            about: $about,
            make: || AnyAvoidance::$of_ty($of::$of_ty::new($of::Params::$params())),
        }),+];

        $(impl Default for $module::$ty {
            /// With the default parameters.
            fn default() -> Self {
                Self::new(Default::default())
            }
        })+

        impl AnyAvoidance {
            /// Sets the parameter `key` from text. The instance begins anew.
            ///
            /// # Errors
            /// If there is no such parameter, or the text is not a valid value of it; `self` is then
            /// unchanged.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
                match self { $(Self::$ty(a) => {
                    let mut params = a.params;
                    params.set(key, value)?;
                    *a = $module::$ty::new(params);
                }),+ }
                Ok(())
            }
        }

        /// Evaluates an expression for whichever avoidance it is.
        macro_rules! each {
            ($any:expr, $a:ident => $value:expr) => { match $any { $(AnyAvoidance::$ty($a) => $value),+ } };
        }
    };
}

avoidances! {
    cubic::Cubic;
    reno::Reno;
    cuback::Cuback;
    abba::Abba;
    abba_recalibrate::Recalibrate;
    dctcp::Dctcp;
    prague::Prague;

    "cubic": cubic::Cubic, default, before: "hystart",
        "RFC 9438; Linux 6.18 tcp_cubic.c", "a cubic function of the time since the last cut";
    "reno": reno::Reno, default, before: "standard",
        "RFC 5681", "one segment a round trip";
    "cubic-abe": cubic::Cubic, abe, before: "hystart",
        "RFC 9438, RFC 8511", "cubic, and a smaller cut for a mark than for a loss";
    "reno-abe": reno::Reno, abe, before: "standard",
        "RFC 5681, RFC 8511", "reno, and a smaller cut for a mark than for a loss";
    "cuback": cuback::Cuback, default, before: "standard",
        "draft-kazuho-ccwg-cuback, 2026", "cubic as a function of what is acknowledged and not of time";
    "abba": abba::Abba, default, before: "standard",
        "draft-kazuho-ccwg-abba, September 2026, with a linear model",
        "cubic, and faster while the round-trip time is below what a line says for the window";
    "abba-recalibrate": abba_recalibrate::Recalibrate, default, before: "standard",
        "draft-kazuho-ccwg-abba, September 2026, before the linear model",
        "cubic, and faster while the queue is drained; returns to slow start where it stays so";
    "dctcp": dctcp::Dctcp, default, before: "standard",
        "RFC 8257; Linux 6.18 tcp_dctcp.c",
        "cuts in proportion to the share of marked packets; needs a receiver that tells of each";
    "prague": prague::Prague, default, before: "standard",
        "draft-briscoe-iccrg-prague-congestion-control; L4S Linux tcp_prague.c",
        "as dctcp for the L4S service, with growth that depends less on the round trip; needs Accurate ECN";
}

impl AnyAvoidance {
    /// Calls `put` with name and value of each parameter, in order of declaration.
    pub fn each_param(&self, put: &mut dyn FnMut(&'static str, ParamValue)) {
        each!(self, a => a.params.each(put));
    }

    /// Not CUBIC, the default, whose code stays shorter without the others.
    #[inline(never)]
    fn on_ack_of_other(&mut self, v: &View, ack: &Ack) -> Adjust {
        each!(self, a => a.on_ack(v, ack))
    }

    #[inline(never)]
    fn observe_of_other(&mut self, v: &View, ack: &Ack) {
        each!(self, a => a.observe(v, ack));
    }
}

impl Avoidance for AnyAvoidance {
    fn enter(&mut self, v: &View, how: Exit) {
        each!(self, a => a.enter(v, how));
    }
    fn look_for(&mut self, v: &View, window: Bytes) {
        each!(self, a => a.look_for(v, window));
    }
    #[inline]
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        if let Self::Cubic(a) = self { a.on_ack(v, ack) } else { self.on_ack_of_other(v, ack) }
    }
    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        each!(self, a => a.on_congestion(v, c))
    }
    fn on_idle(&mut self, now: Instant, idle: Span) {
        each!(self, a => a.on_idle(now, idle));
    }
    #[inline]
    fn observe(&mut self, v: &View, ack: &Ack) {
        // CUBIC, the default, observes nothing.
        if !matches!(self, Self::Cubic(_)) {
            self.observe_of_other(v, ack);
        }
    }
    fn is_l4s(&self) -> bool {
        each!(self, a => a.is_l4s())
    }
    fn needs_each_mark(&self) -> bool {
        each!(self, a => a.needs_each_mark())
    }
    fn grows_between_marks(&self) -> bool {
        each!(self, a => a.grows_between_marks())
    }
}
