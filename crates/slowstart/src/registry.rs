//! The one list of what a person may name as a startup: those of [`startup::REGISTRY`], which an avoidance follows, and
//! controllers that are a whole of their own. Command line, laws and messages iterate over it.

use crate::avoidance::AnyAvoidance;
use crate::bbr::v1::Bbr;
use crate::bbr::v3::Bbr3;
use crate::control::{Change, Composed, Controller, State};
use crate::param::{ParamError, ParamValue};
use crate::startup::{self, AnyStartup, Startup};
use crate::units::{Bytes, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent};

/// What a name stands for.
#[allow(clippy::large_enum_variant, reason = "by value, so that nothing needs a heap")]
#[derive(Clone, Debug)]
pub enum Algorithm {
    /// A startup, which an avoidance follows.
    Startup(AnyStartup),
    /// See [`crate::bbr::v1`].
    Bbr,
    /// See [`crate::bbr::v3`].
    Bbr3,
}

/// One line of the list.
#[derive(Clone, Debug)]
pub struct AlgorithmEntry {
    /// Its name, wherever a person writes one.
    pub name: &'static str,
    /// The paper, RFC or draft it follows.
    pub source: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// With that source's parameters.
    pub algorithm: Algorithm,
}

/// The controllers of their own.
const STANDALONE: &[AlgorithmEntry] = &[
    AlgorithmEntry {
        name: "bbr",
        source: "Cardwell et al. 2016; Linux 6.18 tcp_bbr.c",
        about: "paces at the bandwidth it measures; leaves when three rounds bring no 25 % more, then drains",
        algorithm: Algorithm::Bbr,
    },
    AlgorithmEntry {
        name: "bbr3",
        source: "draft-ietf-ccwg-bbr of August 2026",
        about: "the same, and leaves when a round loses more than 2 % in six places; losses bound what it probes",
        algorithm: Algorithm::Bbr3,
    },
];

/// Every line.
pub fn all() -> impl Iterator<Item = AlgorithmEntry> {
    let startups = startup::REGISTRY.iter().map(|e| AlgorithmEntry {
        name: e.name,
        source: e.source,
        about: e.about,
        algorithm: Algorithm::Startup((e.make)()),
    });
    startups.chain(STANDALONE.iter().cloned())
}

/// The line of this name.
pub fn named(name: &str) -> Option<AlgorithmEntry> {
    all().find(|e| e.name == name)
}

impl From<AnyStartup> for Algorithm {
    fn from(s: AnyStartup) -> Self {
        Self::Startup(s)
    }
}

impl Algorithm {
    /// Sets one parameter from what a person wrote.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
        match self {
            Self::Startup(s) => s.set(key, value),
            Self::Bbr | Self::Bbr3 => Err(ParamError::Unknown(&[])),
        }
    }

    /// Shows each parameter.
    pub fn each_param(&self, put: &mut dyn FnMut(&'static str, ParamValue)) {
        if let Self::Startup(s) = self {
            s.each_param(put);
        }
    }

    /// Whether it uses what an earlier connection of the path left (see [`Startup::uses_path_memory`]).
    pub fn uses_path_memory(&self) -> bool {
        matches!(self, Self::Startup(s) if s.uses_path_memory())
    }

    /// Whether it is a controller of its own: no avoidance follows it.
    pub fn is_standalone(&self) -> bool {
        !matches!(self, Self::Startup(_))
    }

    /// Bytes that one connection keeps of it; of a controller that is a whole of its own, all of it.
    pub fn state_bytes(&self) -> usize {
        match self {
            Self::Startup(s) => s.state_bytes(),
            Self::Bbr => size_of::<Bbr>(),
            Self::Bbr3 => size_of::<Bbr3>(),
        }
    }

    /// A connection's controller, with its initial window. What it leaves to chance follows from the seed.
    pub fn controller(&self, avoidance: &AnyAvoidance, iw: Bytes, seed: u64) -> AnyController {
        match self {
            Self::Startup(s) => AnyController::Composed(Composed::new(s.clone(), avoidance.clone(), iw)),
            Self::Bbr => AnyController::Bbr(Bbr::new(iw, seed)),
            Self::Bbr3 => AnyController::Bbr3(Bbr3::new(iw, seed)),
        }
    }
}

/// Any controller of the list, by value: one engine mixes them over one bottleneck.
#[allow(clippy::large_enum_variant, reason = "by value, so that nothing needs a heap")]
#[derive(Clone, Debug)]
pub enum AnyController {
    /// A startup and what follows it.
    Composed(Composed<AnyStartup, AnyAvoidance>),
    /// See [`crate::bbr::v1`].
    Bbr(Bbr),
    /// See [`crate::bbr::v3`].
    Bbr3(Bbr3),
}

/// The same call of whichever it is.
macro_rules! each {
    ($self:ident, $c:ident => $call:expr) => {
        match $self {
            Self::Composed($c) => $call,
            Self::Bbr($c) => $call,
            Self::Bbr3($c) => $call,
        }
    };
}

impl Controller for AnyController {
    fn requested_rate(&self) -> Option<Rate> {
        each!(self, c => c.requested_rate())
    }
    fn on_established(&mut self, f: &Facts, hs: &Handshake) -> Change {
        each!(self, c => c.on_established(f, hs))
    }
    fn on_sent(&mut self, f: &Facts, s: &Sent) {
        each!(self, c => c.on_sent(f, s));
    }
    fn needs_on_sent(&self) -> bool {
        each!(self, c => c.needs_on_sent())
    }
    fn needs_delivery_state(&self) -> bool {
        each!(self, c => c.needs_delivery_state())
    }
    fn on_ack(&mut self, f: &Facts, a: &Ack) -> Change {
        each!(self, c => c.on_ack(f, a))
    }
    fn on_congestion(&mut self, f: &Facts, c: &Congestion) -> Change {
        each!(self, x => x.on_congestion(f, c))
    }
    fn on_recovered(&mut self, f: &Facts, r: &Recovery) -> Change {
        each!(self, c => c.on_recovered(f, r))
    }
    fn on_timer(&mut self, f: &Facts) -> Change {
        each!(self, c => c.on_timer(f))
    }
    fn on_idle(&mut self, f: &Facts, idle: Span, restart: Option<Span>) -> Change {
        each!(self, c => c.on_idle(f, idle, restart))
    }
    fn state(&self) -> &State {
        each!(self, c => c.state())
    }
    fn owns_recovery(&self) -> bool {
        each!(self, c => c.owns_recovery())
    }
    fn phase(&self) -> &'static str {
        each!(self, c => c.phase())
    }
    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        each!(self, c => c.internal_values(put));
    }
}
