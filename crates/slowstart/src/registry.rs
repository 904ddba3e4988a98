//! Every algorithm that a user can name as a startup: those of [`startup::REGISTRY`], which an avoidance
//! follows, and the standalone controllers. The command line, the tests and error messages iterate over this
//! list.

use crate::avoidance::AnyAvoidance;
use crate::bbr::v1::{self, Bbr};
use crate::bbr::v3::{Bbr3, quiche};
use crate::control::{Change, Composed, Controller, State};
use crate::param::{ParamError, ParamValue, Parameters};
use crate::startup::{self, AnyStartup, Startup};
use crate::units::{Bytes, Rate, Span};
use crate::view::{Ack, Congestion, Facts, Handshake, Recovery, Sent};

/// An algorithm with its parameters.
#[allow(clippy::large_enum_variant, reason = "by value, so that nothing needs a heap")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Algorithm {
    /// A startup, which an avoidance follows.
    Startup(AnyStartup),
    /// BBR, version 1: [`crate::bbr::v1`].
    Bbr(v1::Params),
    /// BBR, version 3: [`crate::bbr::v3`].
    Bbr3,
    /// BBR as quiche has it: [`crate::bbr::v3::quiche`].
    Bbr2Quiche(quiche::Params),
    /// A startup that a host defines, which an avoidance follows.
    #[cfg(feature = "foreign")]
    Foreign(crate::startup::foreign::Foreign),
    /// A controller that a host defines.
    #[cfg(feature = "foreign")]
    ForeignController(crate::control::foreign::Class),
}

/// What an algorithm needs beyond a sender that counts bytes and times ACKs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// The state of an earlier connection on the path.
    PathMemory,
    /// Routers that grant a rate.
    Routers,
    /// A sender that paces packets, as Linux and most QUIC stacks do.
    Pacer,
}

impl Need {
    /// True if most senders lack it.
    pub const fn is_rare(self) -> bool {
        matches!(self, Self::PathMemory | Self::Routers)
    }

    /// The need in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PathMemory => "memory of an earlier connection",
            Self::Routers => "routers that grant a rate",
            Self::Pacer => "a pacer",
        }
    }
}

/// One name in the list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AlgorithmEntry {
    /// The name that users write and results contain. Unique in the list.
    pub name: &'static str,
    /// The paper, RFC, draft or code that specifies it.
    pub source: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// True if its paper was not available: it is made from an abstract, or from what others write about it.
    pub is_reconstructed: bool,
    /// The algorithm with the parameters of `source`.
    pub algorithm: Algorithm,
}

/// Returns the controllers that contain their own startup and that no avoidance follows.
fn standalone() -> [AlgorithmEntry; 3] {
    let bbr = AlgorithmEntry {
        name: "bbr",
        source: "Cardwell et al. 2016; Linux 6.18 tcp_bbr.c",
        about: "paces at the measured bandwidth; exits after three rounds of growth below 25 %, then drains",
        is_reconstructed: false,
        algorithm: Algorithm::Bbr(v1::Params::default()),
    };
    let bbr3 = AlgorithmEntry {
        name: "bbr3",
        source: "draft-ietf-ccwg-bbr-06",
        about: "BBR that also exits when a round loses more than 2 % in six ranges; losses limit its probes",
        is_reconstructed: false,
        algorithm: Algorithm::Bbr3,
    };
    let quiche = AlgorithmEntry {
        name: "bbr2-quiche",
        source: "Cloudflare quiche gcongestion/bbr2, 2026",
        about: "bbr3 with the Startup of quiche: exits also by a queue, or when eight events of a round lose more than 1.5 %",
        is_reconstructed: false,
        algorithm: Algorithm::Bbr2Quiche(quiche::Params::default()),
    };
    [bbr, bbr3, quiche]
}

/// Returns every algorithm, in the order of listings and results.
pub fn all() -> impl Iterator<Item = AlgorithmEntry> {
    let startups = startup::REGISTRY.iter().map(|e| AlgorithmEntry {
        name: e.name,
        source: e.source,
        about: e.about,
        is_reconstructed: e.is_reconstructed,
        algorithm: Algorithm::Startup((e.make)()),
    });
    startups.chain(standalone())
}

/// Returns the algorithm of this name, or `None` if there is none.
pub fn named(name: &str) -> Option<AlgorithmEntry> {
    all().find(|e| e.name == name)
}

impl From<AnyStartup> for Algorithm {
    fn from(s: AnyStartup) -> Self {
        Self::Startup(s)
    }
}

#[cfg(feature = "foreign")]
impl From<crate::startup::foreign::Foreign> for Algorithm {
    fn from(f: crate::startup::foreign::Foreign) -> Self {
        Self::Foreign(f)
    }
}

#[cfg(feature = "foreign")]
impl From<crate::control::foreign::Class> for Algorithm {
    fn from(c: crate::control::foreign::Class) -> Self {
        Self::ForeignController(c)
    }
}

impl Algorithm {
    /// Sets the parameter `key` from text.
    ///
    /// # Errors
    /// If there is no such parameter, or the text is not a valid value of it; `self` is then unchanged.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParamError> {
        match self {
            Self::Startup(s) => s.set(key, value),
            Self::Bbr(p) => p.set(key, value),
            Self::Bbr2Quiche(p) => p.set(key, value),
            _ => Err(ParamError::Unknown(&[])),
        }
    }

    /// Calls `put` with name and value of each parameter, in order of declaration.
    pub fn each_param(&self, put: &mut dyn FnMut(&'static str, ParamValue)) {
        match self {
            Self::Startup(s) => s.each_param(put),
            Self::Bbr(p) => p.each(put),
            Self::Bbr2Quiche(p) => p.each(put),
            _ => {}
        }
    }

    /// Returns true if it uses the state of an earlier connection on the path (see
    /// [`Startup::uses_path_memory`]).
    pub fn uses_path_memory(&self) -> bool {
        matches!(self, Self::Startup(s) if s.uses_path_memory())
    }

    /// Returns what it needs that a sender may lack, if anything. Without it, it is plain slow start or does
    /// not work.
    pub fn need(&self) -> Option<Need> {
        match self {
            Self::Startup(s) => match s {
                AnyStartup::QuickStart(_) => Some(Need::Routers),
                s if s.uses_path_memory() => Some(Need::PathMemory),
                AnyStartup::JumpStart(_) | AnyStartup::Halfback(_) | AnyStartup::Suss(_) => Some(Need::Pacer),
                _ => None,
            },
            Self::Bbr(_) | Self::Bbr3 | Self::Bbr2Quiche(_) => Some(Need::Pacer),
            #[cfg(feature = "foreign")]
            Self::Foreign(_) | Self::ForeignController(_) => None,
        }
    }

    /// Returns true if it can end by a rule of its own (see [`Startup::has_exit_rule`]).
    pub fn has_exit_rule(&self) -> bool {
        match self {
            Self::Startup(s) => s.has_exit_rule(),
            _ => true,
        }
    }

    /// Returns true if it is a complete controller, which no avoidance follows.
    pub fn is_standalone(&self) -> bool {
        matches!(self, Self::Bbr(_) | Self::Bbr3 | Self::Bbr2Quiche(_)) || self.is_foreign_controller()
    }

    /// Returns true if it is a controller that a host defines (feature `foreign`).
    pub const fn is_foreign_controller(&self) -> bool {
        match self {
            #[cfg(feature = "foreign")]
            Self::ForeignController(_) => true,
            _ => false,
        }
    }

    /// Returns the size of the state that one connection keeps, in bytes: of a startup without its avoidance,
    /// of a standalone controller in total.
    pub fn state_bytes(&self) -> usize {
        match self {
            Self::Startup(s) => s.state_bytes(),
            Self::Bbr(_) => size_of::<Bbr>(),
            Self::Bbr3 | Self::Bbr2Quiche(_) => size_of::<Bbr3>(),
            #[cfg(feature = "foreign")]
            Self::Foreign(f) => size_of_val(f),
            #[cfg(feature = "foreign")]
            Self::ForeignController(_) => size_of::<crate::control::foreign::Foreign>(),
        }
    }

    /// Returns a new controller for one connection, with the initial window `iw`. `seed` determines its
    /// random numbers, if it uses any. A standalone controller ignores `avoidance`.
    pub fn controller(&self, avoidance: &AnyAvoidance, iw: Bytes, seed: u64) -> AnyController {
        match self {
            Self::Startup(s) => AnyController::Composed(Composed::new(s.clone(), avoidance.clone(), iw)),
            Self::Bbr(p) => AnyController::Bbr(Bbr::with(iw, seed, *p)),
            Self::Bbr3 => AnyController::Bbr3(Bbr3::new(iw, seed)),
            Self::Bbr2Quiche(p) => AnyController::Bbr3(Bbr3::quiche(iw, seed, *p)),
            #[cfg(feature = "foreign")]
            Self::Foreign(f) => AnyController::Foreign(Composed::new(f.begin(), avoidance.clone(), iw)),
            #[cfg(feature = "foreign")]
            Self::ForeignController(c) => AnyController::ForeignController(c.begin(iw, seed)),
        }
    }
}

/// A controller of any algorithm in the list, by value.
#[allow(clippy::large_enum_variant, reason = "by value, so that nothing needs a heap")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyController {
    /// A startup and the avoidance that follows it.
    Composed(Composed<AnyStartup, AnyAvoidance>),
    /// BBR, version 1: [`crate::bbr::v1`].
    Bbr(Bbr),
    /// BBR, version 3, also as quiche has it: [`crate::bbr::v3`].
    Bbr3(Bbr3),
    /// A startup that a host defines and the avoidance that follows it.
    #[cfg(feature = "foreign")]
    Foreign(Composed<crate::startup::foreign::Foreign, AnyAvoidance>),
    /// A controller that a host defines.
    #[cfg(feature = "foreign")]
    ForeignController(crate::control::foreign::Foreign),
}

impl AnyController {
    /// Returns true once a controller that a host defines broke the rules of one (feature `foreign`).
    #[inline]
    pub const fn is_broken(&self) -> bool {
        match self {
            #[cfg(feature = "foreign")]
            Self::ForeignController(f) => f.is_broken(),
            _ => false,
        }
    }

    /// Passes to `put` what a controller that a host defines did wrong, if it is broken.
    pub fn fault(&self, put: &mut dyn FnMut(&str)) {
        match self {
            #[cfg(feature = "foreign")]
            Self::ForeignController(f) => f.fault(put),
            _ => _ = put,
        }
    }
}

/// Makes the same call on whichever variant it is.
macro_rules! each {
    ($self:ident, $c:ident => $call:expr) => {
        match $self {
            Self::Composed($c) => $call,
            Self::Bbr($c) => $call,
            Self::Bbr3($c) => $call,
            #[cfg(feature = "foreign")]
            Self::Foreign($c) => $call,
            #[cfg(feature = "foreign")]
            Self::ForeignController($c) => $call,
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
    fn is_l4s(&self) -> bool {
        each!(self, c => c.is_l4s())
    }
    fn needs_each_mark(&self) -> bool {
        each!(self, c => c.needs_each_mark())
    }
    fn grows_between_marks(&self) -> bool {
        each!(self, c => c.grows_between_marks())
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
