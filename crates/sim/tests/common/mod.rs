//! Helpers for tests that run flows over a path.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod named;

use slowstart::avoidance;
use slowstart::units::{Instant, Span};
use slowstart_sim::app::Kind;
use slowstart_sim::engine::{Direction, Engine, FlowSpec, Sampling};
use slowstart_sim::path::PathSpec;
use slowstart_sim::tcp::profile::Profile;

/// Returns a profile with some parameters changed.
pub(crate) fn with(mut profile: Profile, knobs: &[(&str, &str)]) -> Profile {
    for (key, value) in knobs {
        profile.set(key, value).unwrap_or_else(|why| panic!("{key}={value}: {why:?}"));
    }
    profile
}

/// A download that begins at once and does not end.
pub(crate) fn flow(startup: &str, profile: Profile) -> FlowSpec {
    FlowSpec {
        start: Instant::ZERO,
        direction: Direction::Download,
        app: Kind::Bulk { size: None },
        startup: named::startup(startup),
        avoidance: (avoidance::REGISTRY[0].make)(),
        profile,
        extra_delay: Span::ZERO,
        links: slowstart_sim::path::Links::ALL,
        recorded: true,
        remembered: None,
        impact_from: None,
    }
}

/// A download of `size` bytes.
pub(crate) fn sized(startup: &str, profile: Profile, size: u64) -> FlowSpec {
    FlowSpec { app: Kind::Bulk { size: Some(size) }, ..flow(startup, profile) }
}

/// An engine at time zero with flows over a path written inline.
pub(crate) fn engine(path: &str, flows: Vec<FlowSpec>) -> Engine {
    let spec = PathSpec::load(path, None).unwrap_or_else(|e| panic!("{path}: {e}"));
    Engine::new(spec.build(1), flows, 1, Sampling::Off, false)
}

/// Runs flows over a path written inline for a time.
pub(crate) fn run(path: &str, flows: Vec<FlowSpec>, until: Span) -> Engine {
    let mut engine = engine(path, flows);
    engine.run(Instant(until.0));
    engine
}

/// Runs flows until the first has left its startup.
pub(crate) fn run_to_exit(path: &str, flows: Vec<FlowSpec>, at_most: Span) -> Engine {
    let mut engine = engine(path, flows);
    engine.run_until(Instant(at_most.0), |e| e.flows[0].truth.exit.is_some());
    engine
}
