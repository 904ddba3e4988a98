//! The names that a request may use, with what they mean.

use serde::Serialize;
use slowstart::avoidance;
use slowstart::registry;
use slowstart_sim::path::{PATH_KEYS, PathSpec};
use slowstart_sim::tcp::profile::Profile;

/// A name and what it means.
#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    about: String,
    source: String,
}

/// A built-in path.
#[derive(Debug, Serialize)]
struct Path {
    name: &'static str,
    about: String,
    rate_bps: u64,
    base_rtt_s: f64,
    bdp_bytes: u64,
    /// True if each run draws its path.
    ensemble: bool,
    /// Its TOML file.
    text: &'static str,
}

/// Everything.
#[derive(Debug, Serialize)]
struct Catalogue {
    version: &'static str,
    paths: Vec<Path>,
    path_keys: Vec<Entry>,
    startups: Vec<Entry>,
    avoidances: Vec<Entry>,
    profiles: Vec<Entry>,
    knobs: Vec<Entry>,
}

/// Returns the names as JSON.
pub fn catalogue() -> String {
    let path = |p: &slowstart_sim::path::Builtin| {
        let spec = PathSpec::load(p.name, None).expect("a test loads every built-in path");
        let facts = spec.facts();
        Path {
            name: p.name,
            about: p.about.clone(),
            rate_bps: facts.rate.0,
            base_rtt_s: facts.base_rtt.as_secs_f64(),
            bdp_bytes: facts.bdp.0,
            ensemble: spec.is_ensemble(),
            text: p.text,
        }
    };
    let entry = |name, about: &str, source: &str| Entry { name, about: about.into(), source: source.into() };
    let all = Catalogue {
        version: env!("CARGO_PKG_VERSION"),
        paths: PathSpec::builtins().iter().map(path).collect(),
        path_keys: PATH_KEYS.iter().map(|k| entry(k.name, k.about, k.expects)).collect(),
        startups: registry::all().map(|e| entry(e.name, e.about, e.source)).collect(),
        avoidances: avoidance::REGISTRY.iter().map(|e| entry(e.name, e.about, e.source)).collect(),
        profiles: Profile::ALL.iter().map(|p| entry(p.name, p.about, "")).collect(),
        knobs: Profile::KNOBS.iter().map(|k| entry(k.name, k.about, k.expects)).collect(),
    };
    serde_json::to_string(&all).expect("names are JSON")
}
