//! What makes a controller for each connection of an endpoint, whatever the stack.

use crate::host::{Host, INITIAL_PACKETS};
use slowstart::avoidance::{AnyAvoidance, Avoidance as _};
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::{Bytes, Instant};
use slowstart::view::PathMemory;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The host of a connection, shared by the stack and the program.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Mutex<Host<AnyController>>>);

impl Handle {
    /// The host. Do not keep the guard over a call into the stack.
    pub fn lock(&self) -> MutexGuard<'_, Host<AnyController>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host of a connection as an adapter has it: alone, or shared with the program.
#[derive(Debug)]
pub struct Owner(Kind);

#[derive(Debug)]
enum Kind {
    /// No call takes a lock.
    Alone(Box<Host<AnyController>>),
    /// `moved`: the next event is the first of a new path.
    Shared { handle: Handle, moved: bool },
}

impl Owner {
    /// Tells the host of an event.
    pub fn with<T>(&mut self, event: impl FnOnce(&mut Host<AnyController>) -> T) -> T {
        match &mut self.0 {
            Kind::Alone(host) => event(host),
            Kind::Shared { handle, moved } => {
                let mut host = handle.lock();
                if std::mem::take(moved) {
                    host.on_new_path();
                }
                event(&mut host)
            }
        }
    }

    /// Asks the host.
    pub fn read<T>(&self, question: impl FnOnce(&Host<AnyController>) -> T) -> T {
        match &self.0 {
            Kind::Alone(host) => question(host),
            Kind::Shared { handle, .. } => question(&handle.lock()),
        }
    }

    /// Returns a copy of the host, which the program does not see.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self(Kind::Alone(Box::new(self.read(Clone::clone))))
    }

    /// Returns the host of a copy of the controller. quinn and noq copy a controller for the path to a peer whose
    /// port alone has changed, and for a program that asks for a connection's congestion state. A host that
    /// is shared goes to the new path with its first event, so that the program goes on to see the
    /// connection; a copy to look at has none.
    #[must_use]
    pub fn for_new_path(&self) -> Self {
        Self(match &self.0 {
            Kind::Alone(host) => {
                let mut host = host.clone();
                host.on_new_path();
                Kind::Alone(host)
            }
            Kind::Shared { handle, .. } => Kind::Shared { handle: handle.clone(), moved: true },
        })
    }
}

/// Why an avoidance cannot follow a startup in a QUIC stack.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsuited {
    /// It responds to the share of marked packets, and the stack does not tell how many were marked (noq and
    /// quinn).
    NeedsMarks,
    /// It needs packets with ECT(1), and no stack lets a controller choose the codepoint.
    NeedsL4s,
}

impl fmt::Display for Unsuited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeedsMarks => {
                "the avoidance needs the number of marked packets, which this QUIC stack does not tell its controller"
            }
            Self::NeedsL4s => "the avoidance needs packets with ECT(1), which no QUIC stack lets a controller ask for",
        })
    }
}

impl std::error::Error for Unsuited {}

/// Makes a host for each connection of an endpoint. The adapter of a stack makes its controllers of these.
#[derive(Debug)]
pub struct Factory {
    algorithm: Algorithm,
    avoidance: AnyAvoidance,
    seed: u64,
    remembered: Option<PathMemory>,
    origin: Option<std::time::Instant>,
    watched: Option<Mutex<Option<Handle>>>,
}

impl Factory {
    /// Connections with this startup and what follows it, in any stack; random choices follow from the seed.
    ///
    /// # Errors
    /// If the avoidance needs the number of marked packets, or packets with ECT(1).
    pub fn new(algorithm: Algorithm, avoidance: AnyAvoidance, seed: u64) -> Result<Self, Unsuited> {
        if avoidance.needs_each_mark() && !avoidance.is_l4s() && !algorithm.is_standalone() {
            return Err(Unsuited::NeedsMarks);
        }
        Self::counting_marks(algorithm, avoidance, seed)
    }

    /// Connections in a stack that counts marked packets, which is s2n-quic. (In another, a mark then halves
    /// the window, as RFC 8257 §3.5 asks.)
    ///
    /// # Errors
    /// If the avoidance needs packets with ECT(1).
    pub fn counting_marks(
        algorithm: Algorithm,
        avoidance: AnyAvoidance,
        seed: u64,
    ) -> Result<Self, Unsuited> {
        if avoidance.is_l4s() && !algorithm.is_standalone() {
            return Err(Unsuited::NeedsL4s);
        }
        Ok(Self { algorithm, avoidance, seed, remembered: None, origin: None, watched: None })
    }

    /// The startup of this name, followed by CUBIC; `None` if the registry has no such name.
    pub fn named(startup: &str) -> Option<Self> {
        let cubic = slowstart::avoidance::REGISTRY.iter().find(|e| e.name == "cubic")?;
        Self::new(slowstart::registry::named(startup)?.algorithm, (cubic.make)(), 1).ok()
    }

    /// Gives its connections what an earlier one to the same peer left (see [`crate::peers`]).
    #[must_use]
    pub fn remembering(mut self, memory: Option<PathMemory>) -> Self {
        self.remembered = memory;
        self
    }

    /// Lets the times of its hosts count from `origin`, so that they compare with other times of the program.
    /// By default they count from the begin of each connection. (s2n-quic has a clock of its own, so this has
    /// no effect there.)
    #[must_use]
    pub fn since(mut self, origin: std::time::Instant) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Shares the host of each connection with the program, which asks for it by [`Factory::newest`]. Each
    /// call of the stack then takes a lock; else the stack owns the hosts and none does.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.watched = Some(Mutex::new(None));
        self
    }

    /// The host of the newest connection; `None` before the first, and if the connections are not
    /// [watched](Factory::watched).
    pub fn newest(&self) -> Option<Handle> {
        self.watched.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the host of a connection that begins `now`, with packets of `mtu` bytes. `paces` is false for a
    /// stack with a pacer that no controller can set.
    pub fn make(&self, now: std::time::Instant, mtu: u16, paces: bool) -> (Owner, Clock) {
        let clock = Clock(self.origin.unwrap_or(now));
        (self.make_at(clock.at(now), mtu, paces), clock)
    }

    /// [`Self::make`] for a stack with a clock of its own.
    pub fn make_at(&self, now: Instant, mtu: u16, paces: bool) -> Owner {
        let mss = Bytes(u64::from(mtu));
        let control = self.algorithm.controller(&self.avoidance, mss * INITIAL_PACKETS, self.seed);
        let mut host = Host::new(control, now, mss);
        host.remembered = self.remembered;
        host.paces = paces;
        let Some(newest) = &self.watched else { return Owner(Kind::Alone(Box::new(host))) };
        let handle = Handle(Arc::new(Mutex::new(host)));
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.clone());
        Owner(Kind::Shared { handle, moved: false })
    }
}

/// Converts the times of a stack to those of a host, which count from this moment.
#[derive(Copy, Clone, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Returns the time of the host.
    pub fn at(self, t: std::time::Instant) -> Instant {
        let since = t.saturating_duration_since(self.0);
        Instant(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
