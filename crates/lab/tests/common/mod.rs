//! A flow or a few over a path, for the tests.
#![allow(dead_code, reason = "each test takes what it needs")]

use slowstart::avoidance;
use slowstart::startup::Entry;
use slowstart::units::{Instant, Span};
use slowstart_lab::app::Kind;
use slowstart_lab::engine::{Direction, Engine, FlowSpec, Sampling};
use slowstart_lab::path::PathSpec;
use slowstart_lab::tcp::profile::Profile;

/// A download that begins at once and does not end.
pub fn flow(startup: &str, profile: Profile) -> FlowSpec {
    let (name, params) = startup.split_once(':').unwrap_or((startup, ""));
    let mut s = (Entry::named(name).expect("a startup").make)();
    for p in params.split(',').filter(|p| !p.is_empty()) {
        let (k, v) = p.split_once('=').expect("key=value");
        s.set(k, v).expect("a parameter");
    }
    FlowSpec {
        start: Instant::ZERO,
        direction: Direction::Download,
        app: Kind::Bulk { size: None },
        startup: s,
        avoidance: (avoidance::REGISTRY[0].make)(),
        profile,
        extra_delay: Span::ZERO,
        recorded: true,
        witness_from: None,
    }
}

/// A flow of so many bytes.
pub fn sized(startup: &str, profile: Profile, size: u64) -> FlowSpec {
    FlowSpec { app: Kind::Bulk { size: Some(size) }, ..flow(startup, profile) }
}

/// Runs flows over a path written inline.
pub fn run(path: &str, flows: Vec<FlowSpec>, until: Span) -> Engine {
    let spec = PathSpec::load(path, None).expect("a path");
    let mut engine = Engine::new(spec.build(1), flows, 1, Sampling::Off, false);
    engine.run(Instant(until.0), |_| false);
    engine
}
