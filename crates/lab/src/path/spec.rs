//! Reads paths: TOML files, one line of `key=value`, or the name of a built-in path.
//!
//! The keys are the same in all three. All values are checked and all files are read when a path is loaded, so that building
//! one cannot fail.

mod keys;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path as fs_path;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use slowstart::units::{Bytes, Instant, Rate, Span};

use super::aggregate::Aggregate;
use super::delay::{Course, Delay, Jitter};
use super::ensemble::{self, Law};
use super::error::PathError;
use super::link::{Limit, Link, RandomDrop, Service};
use super::loss::{Loss, Script};
use super::rates::{Profile, Rates};
use super::trace::{DelayTrace, Opportunities, Trace};
use super::{Direction, Element, Kind, Path, PathFacts, quantity};
use crate::random::Stream;
use crate::suggest::did_you_mean;
use keys::{COUNT, Keys, Loaded, PACKET, RATE, SPAN};
pub use keys::{PATH_KEYS, PathKey};

/// A built-in path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// What to call it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: String,
    /// Where its numbers come from.
    pub sources: Vec<String>,
    /// Its TOML file.
    pub text: &'static str,
}

macro_rules! texts {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../scenarios/paths/", $name, ".toml")))),*]
    };
}
/// The names of the built-in paths, and their files.
const TEXTS: &[(&str, &str)] = texts!(
    "geo",
    "leo",
    "lte",
    "wifi-strong",
    "wifi-weak",
    "geo-144",
    "leo-100",
    "lte-75",
    "wifi-strong-200",
    "wifi-weak-80",
    "fiber",
    "dsl",
    "cable",
    "transatlantic",
    "datacenter",
    "interface",
    "lost-synack",
    "granted"
);

/// The rate of the forward link, over time.
#[derive(Clone, Debug)]
enum Supply {
    Steps(Arc<[(Instant, Rate)]>),
    Drawn { mean: Rate, spread: Rate, period: Span },
    Trace(Arc<Trace>),
}

/// The settings of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionSpec {
    /// Propagation; zero where a delay trace has it.
    delay: Span,
    jitter: Span,
    /// The chance of a loss, in millionths.
    loss: u32,
    scripts: Vec<(Kind, Vec<(u64, u64)>)>,
    aggregate: Option<Span>,
    filters: bool,
    interface: Option<Rate>,
    grants: Option<Rate>,
}

/// A path as written, checked.
#[derive(Clone, Debug)]
pub struct PathSpec {
    /// Its name: that of the built-in path, the key `name`, the name of the file, or the line itself.
    pub name: String,
    /// What it is, in a sentence; may be empty.
    pub about: String,
    /// Where its numbers come from; may be empty.
    pub sources: Vec<String>,
    supply: Supply,
    limit: Limit,
    /// The chance of a drop in millionths, and the backlog above which it applies.
    random_drop: Option<(u32, Bytes)>,
    forward: DirectionSpec,
    back: DirectionSpec,
    back_link: Option<(Rate, Limit)>,
    /// Amplitude and period.
    wave: Option<(Span, Span)>,
    /// The most delay it adds, and its period.
    handover: Option<(Span, Span)>,
    delay_trace: Option<Arc<DelayTrace>>,
    random_start: bool,
    facts: PathFacts,
    /// What each run draws; none for a fixed path.
    ensemble: Option<Arc<Ensemble>>,
    /// The values drawn for this path, by name; empty unless it is one draw of an ensemble.
    drawn: BTreeMap<String, f64>,
    /// The least mean rate that a run may draw.
    least_rate: Rate,
    /// The built-in path that stands for this ensemble where one path is wanted.
    fixed: Option<String>,
    ack_jitter_is_set: bool,
    /// The ACK jitter it was given because it draws nothing.
    default_jitter: Option<Span>,
}

/// The values of a path, some of which are drawn.
#[derive(Debug)]
struct Ensemble {
    keys: Keys,
    name: String,
    sources: Vec<String>,
    laws: Vec<Law>,
    /// Each key with drawn values, as pieces: text, or the index of a law.
    templates: BTreeMap<String, Vec<Piece>>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Law(usize),
}

impl PathSpec {
    /// Loads the path that `arg` names: a built-in path, a file `*.toml`, or a line such as `rate=100Mbit rtt=40ms
    /// queue=1bdp`. Relative names of files are looked for in `root`, or else in the current directory; those within a
    /// TOML file, in that file's folder.
    pub fn load(arg: &str, root: Option<&fs_path::Path>) -> Result<Self, PathError> {
        let root = root.map(PathBuf::from).unwrap_or_default();
        if arg.contains('=') {
            Self::inline(arg, root)
        } else if fs_path::Path::new(arg).extension().is_some_and(|e| e == "toml") {
            let file = root.join(arg);
            let text = fs::read_to_string(&file).map_err(|e| PathError::File {
                file: file.display().to_string(),
                why: e.to_string(),
                expected: "a path in TOML",
            })?;
            Self::toml(&file, &text)
        } else {
            let (_, text) =
                TEXTS.iter().find(|(name, _)| *name == arg).ok_or_else(|| PathError::UnknownName {
                    found: arg.into(),
                    hint: did_you_mean(arg, &TEXTS.iter().map(|(name, _)| *name).collect::<Vec<_>>()),
                    names: TEXTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
                })?;
            Self::toml(fs_path::Path::new(&format!("{arg}.toml")), text)
        }
    }

    /// Returns the built-in paths.
    pub fn builtins() -> &'static [Builtin] {
        static LIST: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
            let each = |&(name, text)| {
                let spec = PathSpec::load(name, None).expect("a test loads every built-in path");
                Builtin { name, about: spec.about, sources: spec.sources, text }
            };
            TEXTS.iter().map(each).collect()
        });
        &LIST
    }

    /// Returns the true properties of the path; of an ensemble, those with the median of each drawn value.
    pub const fn facts(&self) -> PathFacts {
        self.facts
    }

    /// Each value that runs draw: the name of its field in rows, and its distribution as written. Empty for a fixed path.
    pub fn distributions(&self) -> Vec<(&str, &str)> {
        let laws = self.ensemble.iter().flat_map(|e| &e.laws);
        laws.map(|law| (law.name.as_str(), law.text.as_str())).collect()
    }

    /// True if each run draws its path from its seed.
    pub const fn is_ensemble(&self) -> bool {
        self.ensemble.is_some()
    }

    /// The built-in path to use in place of this ensemble where one fixed path is wanted (the key `fixed`).
    pub fn fixed(&self) -> Option<&str> {
        self.fixed.as_deref()
    }

    /// The ACK jitter of one packet time that a path has by default if it draws nothing; `ack_jitter=0` turns it off.
    pub const fn default_jitter(&self) -> Option<Span> {
        self.default_jitter
    }

    /// The least mean rate that a run may draw; the path's own mean rate if it draws none.
    pub const fn least_rate(&self) -> Rate {
        self.least_rate
    }

    /// The fixed path that the run of this seed draws; the path itself if it draws none.
    pub fn draw(&self, seed: u64) -> Cow<'_, Self> {
        match &self.ensemble {
            None => Cow::Borrowed(self),
            Some(e) => {
                let drawn = e.with(&ensemble::draw(&e.laws, seed));
                Cow::Owned(drawn.expect("the ends of all distributions were checked when it was loaded"))
            }
        }
    }

    fn inline(line: &str, root: PathBuf) -> Result<Self, PathError> {
        let mut keys = Keys { source: "path".into(), root, values: BTreeMap::new(), loaded: None };
        for word in line.split_ascii_whitespace() {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| keys.wrong(word, "nothing", "key=value, such as rate=100Mbit"))?;
            if keys.values.insert(key.into(), value.into()).is_some() {
                return Err(keys.wrong(key, value, "each key once"));
            }
        }
        let name = line.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        Self::from_keys(keys, name, Vec::new())
    }

    fn toml(file: &fs_path::Path, text: &str) -> Result<Self, PathError> {
        let source = file.display().to_string();
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
            let at = e.span().map_or(0, |s| s.start);
            let line = text.bytes().take(at).filter(|b| *b == b'\n').count();
            PathError::Line {
                file: source.clone(),
                line: line + 1,
                found: text.lines().nth(line).unwrap_or_default().chars().take(80).collect(),
                expected: format!("TOML ({})", e.message()),
            }
        })?;
        let root = file.parent().map(PathBuf::from).unwrap_or_default();
        let mut keys = Keys { source, root, values: BTreeMap::new(), loaded: None };
        let mut sources = Vec::new();
        for (key, value) in table {
            let value = match value {
                toml::Value::String(s) => s,
                toml::Value::Integer(n) => n.to_string(),
                toml::Value::Float(x) => x.to_string(),
                toml::Value::Array(list) if key == "sources" => {
                    let strings = list.iter().map(|s| s.as_str().map(String::from)).collect::<Option<_>>();
                    sources = strings.ok_or_else(|| keys.wrong(&key, "other values", "a list of strings"))?;
                    continue;
                }
                other => return Err(keys.wrong(&key, &other.to_string(), "a string or a number")),
            };
            keys.values.insert(key, value);
        }
        let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Self::from_keys(keys, stem, sources)
    }

    fn from_keys(keys: Keys, name: String, sources: Vec<String>) -> Result<Self, PathError> {
        keys.known()?;
        if keys.values.iter().any(|(key, value)| ensemble::is_distribution(key, value)) {
            return Ensemble::check(keys, name, sources);
        }
        let mut spec = Self::without_distributions(keys, name, sources)?;
        spec.jitter_by_default();
        Ok(spec)
    }

    /// Gives a path that draws nothing ACK jitter of one packet time, unless its `ack_jitter` is set. Without it every run is
    /// the same, and ties at a full queue come out the same way each time, as they do on no network (Floyd and Jacobson, On
    /// Traffic Phase Effects in Packet-Switched Gateways, 1992).
    fn jitter_by_default(&mut self) {
        let drawn = |d: &DirectionSpec| d.jitter > Span::ZERO || d.loss > 0 || d.aggregate.is_some();
        let starts_anywhere =
            self.random_start && (self.delay_trace.is_some() || matches!(self.supply, Supply::Trace(_)));
        let draws = drawn(&self.forward)
            || drawn(&self.back)
            || starts_anywhere
            || matches!(self.supply, Supply::Drawn { .. })
            || self.random_drop.is_some()
            || self.wave.is_some()
            || self.handover.is_some();
        if !draws && !self.ack_jitter_is_set {
            self.back.jitter = self.facts.rate.time_for(PACKET);
            self.default_jitter = Some(self.back.jitter);
        }
    }

    fn without_distributions(
        mut keys: Keys,
        name: String,
        mut sources: Vec<String>,
    ) -> Result<Self, PathError> {
        let name = keys.values.remove("name").unwrap_or(name);
        let about = keys.values.remove("about").unwrap_or_default();
        sources.extend(keys.values.remove("sources"));
        let fixed = keys.values.remove("fixed");
        let ack_jitter_is_set = keys.values.contains_key("ack_jitter");

        let supply = keys.supply()?;
        let rtt = keys.take("rtt", quantity::some_span, SPAN)?;
        let delay_trace = keys.delay_trace()?;
        let (forward, back) = match (&delay_trace, rtt) {
            (Some(trace), rtt) => (Span::ZERO, rtt.map_or(trace.least(), |r| r / 2)),
            (None, Some(rtt)) => (rtt / 2, rtt - rtt / 2),
            (None, None) => return Err(keys.missing("rtt", SPAN)),
        };
        let base_rtt = forward + delay_trace.as_ref().map_or(Span::ZERO, |t| t.least()) + back;
        let rate = supply.mean();
        let bdp = rate.over(base_rtt);
        let limit = keys.limit("queue", bdp)?;
        let back_link = match keys.take("ack_rate", quantity::rate, RATE)? {
            Some(rate) => Some((rate, keys.limit("ack_queue", rate.over(base_rtt))?)),
            None => None,
        };
        if let Some(found) = keys.values.get("ack_queue") {
            return Err(keys.wrong("ack_queue", found, "ack_rate with it"));
        }
        let start = |text: &str| match text {
            "random" => Some(true),
            "0" => Some(false),
            _ => None,
        };
        let random_start = keys.take("trace_start", start, "random or 0")?.unwrap_or(true);

        // A connection may be opened from either end, so the scripts for its SYNs lie in both directions.
        let mut syns = Vec::new();
        for (key, kind) in [("drop_syn", Kind::Syn), ("drop_synack", Kind::SynAck)] {
            let first = keys.take(key, quantity::whole, COUNT)?.filter(|n| *n > 0);
            syns.extend(first.map(|n| (kind, vec![(1, n)])));
        }
        let grants = keys.take("quick_start", quantity::rate, RATE)?;
        let host = |text: &str| match text {
            "host" => Some(true),
            "network" => Some(false),
            _ => None,
        };
        let host = keys.take("link", host, "host or network")?.unwrap_or(false);
        if host && !matches!(limit, Limit::Packets(_) | Limit::Bytes(_)) {
            return Err(keys.wrong("link", "host", "a queue in packets or bytes with it"));
        }
        let wave = keys.pair("vary", quantity::span, "vary_period")?;
        let handover = keys.pair("handover_step", quantity::span, "handover")?;
        let buffer = match limit {
            Limit::Infinite => None,
            Limit::Packets(n) => Some(PACKET * n),
            Limit::Bytes(b) => Some(b),
            Limit::Time(t) => Some(rate.over(t)),
        };
        let mut ways = (
            keys.way(forward, ["jitter", "loss", "drop", "aggregate"], Kind::Data, &syns)?,
            keys.way(back, ["ack_jitter", "ack_loss", "drop_ack", "ack_aggregate"], Kind::Ack, &syns)?,
        );
        let on = |text: &str| match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        ways.1.filters = keys.take("ack_filter", on, "on or off")?.unwrap_or(false);
        if ways.1.filters && ways.1.aggregate.is_none() {
            return Err(keys.wrong("ack_filter", "on", "ack_aggregate with it"));
        }
        ways.0.interface = host.then_some(rate);
        (ways.0.grants, ways.1.grants) = (grants, grants);
        Ok(Self {
            name,
            about,
            sources,
            limit,
            random_drop: keys.take(
                "random_drop",
                quantity::share_above,
                "a share and a backlog, as 25%@18MB",
            )?,
            forward: ways.0,
            back: ways.1,
            back_link,
            wave,
            handover,
            delay_trace,
            random_start,
            facts: PathFacts { rate, base_rtt, bdp, buffer, variable: supply.varies() },
            supply,
            ensemble: None,
            drawn: BTreeMap::new(),
            least_rate: rate,
            fixed,
            ack_jitter_is_set,
            default_jitter: None,
        })
    }

    /// Builds a path to run. All random values come from the seed, each from a stream of its own.
    pub fn build(&self, seed: u64) -> Path {
        self.draw(seed).build_fixed(seed)
    }

    fn build_fixed(&self, seed: u64) -> Path {
        let stream = |name: &str| Stream::named(seed, name);
        let phase = |name: &str, period: Span| Span(stream(name).below(period.0));
        // Both traces of a path were recorded together, so they start at the same place.
        let start = match (&self.supply, &self.delay_trace) {
            _ if !self.random_start => Span::ZERO,
            (Supply::Trace(trace), _) => phase("trace-start", trace.period()),
            (_, Some(trace)) => phase("trace-start", trace.period()),
            _ => Span::ZERO,
        };
        let service = match &self.supply {
            Supply::Steps(steps) => Service::Rates(Rates::new(Profile::Steps(Arc::clone(steps)))),
            &Supply::Drawn { mean, spread, period } => Service::Rates(Rates::new(Profile::Drawn {
                mean,
                spread,
                period,
                phase: phase("forward.rate.phase", period),
                seed: stream("forward.rate").any(),
            })),
            Supply::Trace(trace) => Service::Opportunities(Opportunities::new(Arc::clone(trace), start)),
        };
        let random_drop = self.random_drop.map(|(share, above)| RandomDrop {
            share,
            above,
            stream: stream("forward.random-drop"),
        });
        let forward_link = Link::new(service, self.limit, random_drop);
        let back_link = self.back_link.map(|(rate, limit)| {
            let steady = Profile::Steps([(Instant::ZERO, rate)].into());
            Link::new(Service::Rates(Rates::new(steady)), limit, None)
        });

        let mut courses = Vec::new();
        courses
            .extend(self.delay_trace.as_ref().map(|t| Course::Trace { trace: Arc::clone(t), offset: start }));
        courses.extend(
            self.wave
                .map(|(amplitude, period)| Course::wave(amplitude, period, stream("forward.vary").any())),
        );
        courses.extend(self.handover.map(|(most, period)| Course::Handover {
            most,
            period,
            phase: phase("forward.handover.phase", period),
            seed: stream("forward.handover").any(),
        }));
        Path {
            forward: self.forward.build(seed, "forward", Some(forward_link), courses),
            back: self.back.build(seed, "back", back_link, Vec::new()),
            facts: self.facts,
            drawn: self.drawn.clone(),
        }
    }
}

impl Ensemble {
    /// Reads the distributions, and checks the path at both ends of each.
    ///
    /// Every bound on a value, or between two values, is an interval, so that a path whose ends are valid is valid within.
    fn check(keys: Keys, name: String, sources: Vec<String>) -> Result<PathSpec, PathError> {
        let mut e = Self { keys, name, sources, laws: Vec::new(), templates: BTreeMap::new() };
        let values: Vec<_> = e.keys.values.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        for (key, value) in values {
            if !ensemble::is_distribution(&key, &value) {
                continue;
            }
            let parts = ensemble::parts(&key, &value);
            let mut pieces = Vec::new();
            for (i, part) in parts.iter().enumerate() {
                if !ensemble::is_distribution(&key, part) {
                    pieces.push(Piece::Text((*part).into()));
                    continue;
                }
                // Drawn moments could come out of order.
                if key == "schedule" && parts.get(i + 1) == Some(&":") {
                    return Err(e.keys.wrong(&key, part, "a fixed time: in a schedule only rates are drawn"));
                }
                let mut law = ensemble::law(&key, part).map_err(|why| e.keys.wrong(&key, part, &why))?;
                let same = e.laws.iter().filter(|l| l.key == key).count();
                if same > 0 {
                    law.name = format!("{}_{}", law.name, same + 1);
                }
                pieces.push(Piece::Law(e.laws.len()));
                e.laws.push(law);
            }
            e.templates.insert(key, pieces);
        }
        if let Some((law, why)) = ensemble::refused(&e.laws) {
            return Err(e.keys.wrong(&law.key, &law.text, &why));
        }
        let middle = ensemble::middle(&e.laws);
        let spec = e.checked(&middle)?;
        e.keys.loaded = Some(Loaded {
            trace: match &spec.supply {
                Supply::Trace(trace) => Some(Arc::clone(trace)),
                _ => None,
            },
            delays: spec.delay_trace.clone(),
        });
        let mut least_rate = spec.least_rate;
        let all = |end: fn((u64, u64)) -> u64| e.laws.iter().map(|l| end(l.bounds())).collect::<Vec<u64>>();
        for others in [all(|b| b.0), all(|b| b.1)] {
            for (i, law) in e.laws.iter().enumerate() {
                for end in law.ends() {
                    let mut values = others.clone();
                    values[i] = end;
                    least_rate = least_rate.min(e.checked(&values)?.facts.rate);
                }
            }
        }
        Ok(PathSpec { ensemble: Some(Arc::new(e)), least_rate, drawn: BTreeMap::new(), ..spec })
    }

    /// The path with these values for the laws; an error names the value as it was written.
    fn checked(&self, values: &[u64]) -> Result<PathSpec, PathError> {
        self.with(values).map_err(|why| match why {
            PathError::Value { source_name, key, found, expected } => {
                let written = self.keys.values.get(&key).filter(|_| self.templates.contains_key(&key));
                let found = written.cloned().unwrap_or(found);
                PathError::Value { source_name, key, found, expected }
            }
            other => other,
        })
    }

    fn with(&self, values: &[u64]) -> Result<PathSpec, PathError> {
        let mut keys = self.keys.clone();
        for (key, pieces) in &self.templates {
            let piece = |p: &Piece| match p {
                Piece::Text(text) => text.clone(),
                Piece::Law(i) => self.laws[*i].write(values[*i]),
            };
            keys.values.insert(key.clone(), pieces.iter().map(piece).collect());
        }
        let mut spec = PathSpec::without_distributions(keys, self.name.clone(), self.sources.clone())?;
        spec.drawn = self.laws.iter().zip(values).map(|(l, v)| (l.name.clone(), l.read(*v))).collect();
        Ok(spec)
    }
}

impl Supply {
    fn mean(&self) -> Rate {
        match self {
            Self::Steps(steps) => {
                // The last step has no end; it counts as long as the one before it.
                let ends = steps.iter().skip(1).map(|(at, _)| *at);
                let last = match **steps {
                    [.., (a, _), (b, _)] => b.since(a),
                    _ => Span(1),
                };
                let end = steps.last().map_or(Instant::ZERO, |(at, _)| *at) + last;
                let work: u128 = steps
                    .iter()
                    .zip(ends.chain([end]))
                    .map(|((from, rate), to)| u128::from(rate.0) * u128::from(to.since(*from).0))
                    .sum();
                Rate((work / u128::from(end.0)) as u64)
            }
            Self::Drawn { mean, .. } => *mean,
            Self::Trace(trace) => trace.mean(),
        }
    }

    fn varies(&self) -> bool {
        match self {
            Self::Steps(steps) => steps.len() > 1,
            Self::Drawn { .. } | Self::Trace(_) => true,
        }
    }
}

impl DirectionSpec {
    fn build(&self, seed: u64, name: &str, link: Option<Link>, courses: Vec<Course>) -> Direction {
        let stream = |what: &str| Stream::named(seed, &format!("{name}.{what}"));
        let scripts = self.scripts.iter().map(|(kind, places)| Script::new(*kind, places)).collect();
        let mut beyond = Vec::new();
        beyond.extend(courses.into_iter().map(|c| Element::Delay(Delay::new(c))));
        if self.jitter > Span::ZERO {
            beyond.push(Element::Jitter(Jitter::new(self.jitter, stream("jitter"))));
        }
        if self.loss > 0 {
            beyond.push(Element::Loss(Loss::new(self.loss, stream("loss"))));
        }
        beyond.extend(self.aggregate.map(|period| {
            let phase = Span(stream("aggregate").below(period.0));
            Element::Aggregate(Aggregate::new(period, phase))
        }));
        Direction {
            scripts,
            link,
            propagation: self.delay,
            beyond,
            filters: self.filters,
            interface: self.interface,
            grants: self.grants,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts(line: &str) -> PathFacts {
        PathSpec::load(line, None).unwrap_or_else(|e| panic!("{line}: {e}")).facts()
    }

    fn error(line: &str) -> String {
        PathSpec::load(line, None).expect_err(line).to_string()
    }

    #[test]
    fn every_builtin_loads_and_names_its_sources() {
        for builtin in PathSpec::builtins() {
            let spec = PathSpec::load(builtin.name, None).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(spec.name, builtin.name);
            assert!(!builtin.about.is_empty() && !builtin.sources.is_empty(), "{}", builtin.name);
            spec.build(1);
        }
        for builtin in PathSpec::builtins() {
            let spec = PathSpec::load(builtin.name, None).expect("as above");
            let fixed = spec.fixed().map(|f| PathSpec::load(f, None).expect("a built-in path"));
            assert_eq!(spec.is_ensemble(), fixed.is_some(), "{}", builtin.name);
            assert!(fixed.is_none_or(|f| !f.is_ensemble()), "{}", builtin.name);
        }
        let geo = PathSpec::load("geo-144", None).expect("a built-in path").facts();
        assert_eq!(geo.bdp, Bytes(10_800_000));
        assert_eq!(geo.buffer, Some(Bytes(36_000_000)));
    }

    #[test]
    fn queues_are_measured_in_bytes() {
        for (queue, want) in [
            ("", Some(500_000)),
            (" queue=1.5bdp", Some(750_000)),
            (" queue=0.001bdp", Some(1500)),
            (" queue=300packets", Some(450_000)),
            (" queue=36MB", Some(36_000_000)),
            (" queue=50ms", Some(625_000)),
            (" queue=infinite", None),
        ] {
            assert_eq!(facts(&format!("rate=100Mbit rtt=40ms{queue}")).buffer, want.map(Bytes), "{queue:?}");
        }
    }

    #[test]
    fn rates_have_their_mean() {
        let steady = facts("rate=100Mbit rtt=40ms");
        assert_eq!((steady.rate, steady.variable), (Rate(100_000_000), false));
        let step = facts("schedule=0s:12Mbit,7s:48Mbit rtt=40ms");
        assert_eq!((step.rate, step.variable), (Rate(30_000_000), true));
        assert_eq!(facts("schedule=0s:12Mbit,1s:0bit,3s:24Mbit rtt=40ms").rate, Rate(12_000_000));
        let noisy = facts("rate=100Mbit rate_vary=20% rate_vary_period=10ms rtt=40ms");
        assert_eq!((noisy.rate, noisy.variable), (Rate(100_000_000), true));
    }

    #[test]
    fn every_mistake_is_named() {
        for (line, message) in [
            ("rate=-5Mbit rtt=40ms", "path: rate: found \"-5Mbit\", expected a rate such as 100Mbit"),
            (
                "rate=5Mbit rtt=40ms queue=0packets",
                "path: queue: found \"0packets\", expected a queue of at least one packet, such as 1bdp, 300packets, \
                 36MB, 50ms or infinite",
            ),
            ("rate=5Mbit", "path: rtt: found nothing, expected a length of time such as 40ms"),
            ("rate=5Mbit rtt=0ms", "path: rtt: found \"0ms\", expected a length of time such as 40ms"),
            (
                "rtt=40ms",
                "path: rate: found nothing, expected a rate such as 100Mbit, or a schedule or a trace",
            ),
            ("rate=5Mbit rtt=40ms rtt=50ms", "path: rtt: found \"50ms\", expected each key once"),
            ("rate=5Mbit geo", "path: geo: found \"nothing\", expected key=value, such as rate=100Mbit"),
            (
                "rate=5Mbit rtt=40ms schedule=0s:5Mbit",
                "path: schedule: found \"0s:5Mbit\", expected only one of rate, schedule and trace",
            ),
            (
                "rate=5Mbit rtt=40ms rate_vary=20%",
                "path: rate_vary_period: found nothing, expected a length of time such as 40ms",
            ),
            (
                "schedule=0s:5Mbit rtt=40ms rate_vary=20%",
                "path: rate_vary: found \"20%\", expected rate with it",
            ),
            (
                "rate=5Mbit rtt=40ms vary=5ms",
                "path: vary_period: found nothing, expected a length of time such as 40ms",
            ),
            (
                "rate=5Mbit rtt=40ms handover=15s",
                "path: handover_step: found nothing, expected a length of time such as 40ms",
            ),
            (
                "rate=5Mbit rtt=40ms loss=101%",
                "path: loss: found \"101%\", expected a share such as 1% or 0.01",
            ),
            (
                "rate=5Mbit rtt=40ms drop=0",
                "path: drop: found \"0\", expected places from 1 on, such as 1,5,10-20",
            ),
            (
                "rate=5Mbit rtt=40ms ack_queue=9kB",
                "path: ack_queue: found \"9kB\", expected ack_rate with it",
            ),
            (
                "rate=5Mbit rtt=40ms ack_filter=on",
                "path: ack_filter: found \"on\", expected ack_aggregate with it",
            ),
            (
                "rate=5Mbit rtt=40ms random_drop=25%",
                "path: random_drop: found \"25%\", expected a share and a backlog, as 25%@18MB",
            ),
            ("rate=5Mbit rtt=40ms trace_start=1", "path: trace_start: found \"1\", expected random or 0"),
        ] {
            assert_eq!(error(line), message, "{line}");
        }
        let unknown = error("ratee=5Mbit rtt=40ms");
        assert!(unknown.starts_with(
            "path: found unknown key \"ratee\" (did you mean \"rate\"?), expected one of name, about, sources, fixed, rate, "
        ));
        let name = error("goe");
        assert!(
            name.starts_with(
                "path: found \"goe\" (did you mean \"geo\"?), expected one of geo, leo, lte, wifi-strong, "
            ),
            "{name}"
        );
        let missing = error("trace=no/such.down rtt=40ms");
        assert!(missing.starts_with("no/such.down: ") && missing.contains("expected a trace"), "{missing}");
        let file = error("no/such.toml");
        assert!(file.starts_with("no/such.toml: ") && file.ends_with("expected a path in TOML"), "{file}");
    }

    #[test]
    fn a_link_without_a_rate_is_refused() {
        let folder = std::env::temp_dir().join(format!("slowstart-slow-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        for (ms, good) in [(12_000, true), (12_001, false), (100_000_000, false)] {
            fs::write(folder.join("slow.down"), format!("{ms}\n")).expect("a file");
            let found = PathSpec::load("trace=slow.down rtt=40ms", Some(&folder)).map(|_| ());
            let message = "path: trace: found \"slow.down\", expected a mean rate of at least 1kbit";
            assert_eq!(
                found.map_err(|e| e.to_string()),
                if good { Ok(()) } else { Err(message.into()) },
                "{ms}"
            );
        }
        fs::remove_dir_all(&folder).expect("to be removed");
        let line = "schedule=0s:0bit,999998s:0bit,999999s:1kbit rtt=40ms";
        assert!(error(line).ends_with("expected a mean rate of at least 1kbit"), "{}", error(line));
    }

    #[test]
    fn a_path_that_draws_nothing_has_ack_jitter_of_a_packet_time() {
        let packet =
            |line: &str| PathSpec::load(line, None).unwrap_or_else(|e| panic!("{e}")).default_jitter();
        assert_eq!(packet("rate=12Mbit rtt=110ms queue=2bdp"), Some(Span::millis(1)));
        assert_eq!(packet("schedule=0s:12Mbit,7s:36Mbit rtt=40ms drop=1"), Some(Span::micros(500)));
        for fixed in ["fiber", "datacenter", "dsl"] {
            assert!(packet(fixed).is_some(), "{fixed}");
        }
        for line in [
            "rate=12Mbit rtt=40ms ack_jitter=0",
            "rate=12Mbit rtt=40ms ack_jitter=5ms",
            "rate=12Mbit rtt=40ms jitter=1ms",
            "rate=12Mbit rtt=40ms loss=1%",
            "rate=12Mbit rtt=40ms ack_aggregate=1ms",
            "rate=12Mbit rtt=40ms random_drop=1%@3kB",
            "rate=12Mbit rtt=40ms vary=1ms vary_period=1s",
            "rate=12..20Mbit rtt=40ms",
            "geo-144",
            "geo",
        ] {
            assert_eq!(packet(line), None, "{line}");
            assert_eq!(PathSpec::load(line, None).expect("good").draw(1).default_jitter(), None, "{line}");
        }
    }

    #[test]
    fn mistakes_in_distributions_are_named() {
        for (line, message) in [
            (
                "rate=70..20Mbit rtt=40ms",
                "path: rate: found \"70..20Mbit\", expected a range whose second number is greater than its first, such \
                 as 20..70Mbit",
            ),
            ("rate=20..70 rtt=40ms", "path: rate: found \"20..70\", expected a rate such as 100Mbit"),
            ("rate=0..70Mbit rtt=40ms", "path: rate: found \"0..70Mbit\", expected a rate such as 100Mbit"),
            (
                "rate=20Mbit*0|50Mbit rtt=40ms",
                "path: rate: found \"20Mbit*0|50Mbit\", expected a weight above 0 after *, such as 20Mbit*3|50Mbit",
            ),
            (
                "rate=5Mbit rtt=40ms queue=1..2bdp~rate",
                "path: queue: found \"1..2bdp~rate\", expected a key after ~ that is drawn on its own, such as \
                 300..900kB~rate",
            ),
            (
                "rtt=40ms schedule=0s:5Mbit,1..2s:6Mbit",
                "path: schedule: found \"1..2s\", expected a fixed time: in a schedule only rates are drawn",
            ),
            (
                "rate=5Mbit rtt=40ms loss=50..150%",
                "path: loss: found \"50..150%\", expected a share such as 1% or 0.01",
            ),
            (
                "rate=5Mbit rtt=0..40ms",
                "path: rtt: found \"0..40ms\", expected a length of time such as 40ms",
            ),
        ] {
            assert_eq!(error(line), message, "{line}");
        }
    }

    #[test]
    fn facts_of_an_ensemble_are_those_of_its_medians() {
        let spec = PathSpec::load("rate=20..70Mbit rtt=100ms queue=1..3bdp", None).expect("good");
        let near = |a: u64, b: u64| a.abs_diff(b) <= b / 1000;
        assert!(near(spec.facts().rate.0, 45_000_000) && near(spec.facts().buffer.unwrap().0, 2 * 562_500));
        assert_eq!(spec.least_rate(), Rate(20_000_000));
        assert_eq!(spec.distributions(), [("queue_bdp", "1..3bdp"), ("rate_bps", "20..70Mbit")]);
        let drawn: Vec<f64> = (0..50).map(|seed| spec.build(seed).drawn["rate_bps"]).collect();
        assert!(drawn.iter().any(|r| *r < 30e6) && drawn.iter().any(|r| *r > 60e6), "{drawn:?}");
        assert_eq!(spec.build(7).facts.rate.0, spec.build(7).drawn["rate_bps"] as u64);
    }

    #[test]
    fn toml_says_where() {
        let read = |text: &str| PathSpec::toml(fs_path::Path::new("paths/my.toml"), text);
        let spec =
            read("about = 'x'\nrate = '5Mbit'\nrtt = '40ms'\nloss = 0.01\ndrop_syn = 2\n").expect("good");
        assert_eq!((spec.name.as_str(), spec.about.as_str(), spec.forward.loss), ("my", "x", 10_000));
        let say = |text: &str| read(text).expect_err(text).to_string();
        assert!(
            say("rate = '5Mbit'\nrtt = \n")
                .starts_with("paths/my.toml: line 2: found \"rtt = \", expected TOML (")
        );
        assert_eq!(
            say("rate = '5'\nrtt = '40ms'"),
            "paths/my.toml: rate: found \"5\", expected a rate such as 100Mbit"
        );
        assert_eq!(
            say("rate = ['5Mbit']"),
            "paths/my.toml: rate: found \"[\\\"5Mbit\\\"]\", expected a string or a number"
        );
        assert!(say("trace = 'x.down'\nrtt = '40ms'").starts_with("paths/x.down: "));
    }

    /// Values of which any makes an ensemble of a path.
    const DRAWN: &[&str] = &[
        "rate=1..70Mbit queue=0.01..2bdp",
        "rate=log(2kbit..1Gbit) queue=1..300packets~rate",
        "rate=20Mbit*0.5|50Mbit|1..2Mbit*3 queue=1500B..36MB rate_vary=0..100% rate_vary_period=1..200ms",
        "schedule=0s:0bit|12Mbit,7s:1..48Mbit queue=1ms..1s",
        "rate=5Mbit link=host queue=1..100packets",
    ];
    const MORE_DRAWN: &[&str] = &[
        "vary=0..120ms vary_period=1.9..2.1s",
        "ack_jitter=0|5..200ms jitter=0..3ms",
        "ack_aggregate=log(1..40ms) ack_filter=on",
        "random_drop=0..25%@1kB..18MB loss=0..1% ack_loss=0.001..0.01",
        "handover=10..20s handover_step=0..20ms~-rtt",
        "ack_rate=100kbit..1Mbit ack_queue=1..2bdp",
        "drop=1..10,100..200 drop_syn=0..2 quick_start=1..2Mbit",
    ];

    proptest! {
        /// Whatever the seed, an ensemble draws a valid path, with each value within its bounds, and the same one again.
        #[test]
        fn drawn_paths_are_valid(
            base in prop::sample::select(DRAWN),
            more in prop::sample::subsequence(MORE_DRAWN, 0..=MORE_DRAWN.len()),
            seed in any::<u64>(),
        ) {
            let line = format!("{base} rtt=20..600ms {}", more.join(" "));
            let spec = PathSpec::load(&line, None).unwrap_or_else(|e| panic!("{line}: {e}"));
            let one = spec.draw(seed);
            prop_assert!(spec.is_ensemble() && !one.is_ensemble());
            prop_assert_eq!(one.drawn.len(), spec.distributions().len());
            prop_assert!(one.facts.rate >= spec.least_rate());
            prop_assert!((Span::millis(20)..=Span::millis(600)).contains(&one.facts.base_rtt));
            let (a, b) = (spec.build(seed), spec.build(seed));
            prop_assert_eq!(&a.drawn, &one.drawn);
            prop_assert_eq!((&a.drawn, a.facts), (&b.drawn, b.facts));
        }

        #[test]
        fn no_text_is_too_strange(
            text in any::<String>(), key in prop::sample::select(keys::names()), value in "[0-9a-zA-Z%@:,.-]{0,12}"
        ) {
            let _ = PathSpec::inline(&text, PathBuf::new());
            let _ = PathSpec::toml(fs_path::Path::new("x.toml"), &text);
            let base: String = [("rate", "=5Mbit "), ("rtt", "=40ms ")]
                .iter().filter(|(k, _)| *k != key).map(|(k, v)| [*k, *v].concat()).collect();
            if let Ok(spec) = PathSpec::load(&format!("{base}{key}={value}"), None) {
                spec.build(1);
            }
        }
    }
}
