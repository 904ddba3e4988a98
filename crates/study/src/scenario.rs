//! Studies: which startups run over which path, and how often.
//!
//! A [`StudyText`] is what a user wrote, as arguments or as TOML; [`Study::check`] returns a study or an
//! error.

mod remember;
mod text;

use slowstart_sim::app;
use slowstart_sim::engine::Direction;

use crate::measured::SIMULATOR;
use crate::record::Param;
pub use remember::Remember;
use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::param::{ParamError, ParamValue};
use slowstart::registry::{self, Algorithm};
use slowstart::startup::AnyStartup;
use slowstart::units::{Bytes, Instant, Span};
use slowstart_sim::path::{Files, Links, PathError, PathSpec, quantity};
use slowstart_sim::suggest::did_you_mean;
use slowstart_sim::tcp::profile::Profile;
use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
pub use text::{Key, KeyKind, StudyText};
use thiserror::Error;

/// What is wrong with a study.
#[derive(Debug, Error)]
pub enum StudyError {
    /// What is wrong with its path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// With a key: what was found and what was expected.
    #[error("{key}: found {found:?}{hint}, expected {expected}")]
    Value {
        /// The key, as written in TOML or on the command line.
        key: String,
        /// What was found.
        found: String,
        /// ` (did you mean "search"?)`, or nothing.
        hint: String,
        /// What was expected.
        expected: String,
    },
    /// It is no TOML, or has a key that is no key of a study.
    #[error("{0}")]
    Toml(String),
    /// The file cannot be read.
    #[error("{}: {why}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        why: String,
    },
}

/// A startup with its avoidance, by name and by value.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The startup as it was written.
    pub label: String,
    /// The startup's name in the registry.
    pub startup_name: String,
    /// The parameters of the startup; times are in seconds.
    pub params: BTreeMap<String, Param>,
    /// The startup, or a controller of its own.
    pub startup: Algorithm,
    /// The avoidance's name, if one follows.
    pub avoidance_name: Option<String>,
    /// The congestion avoidance that follows it.
    pub avoidance: AnyAvoidance,
    /// Its own settings of the stack; `None` if it has those of the study.
    pub stack: Option<Stack>,
}

/// Settings that a startup has besides those of its study, as `hystart@iw=20,pacing=on`.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The settings as written, by key.
    pub settings: BTreeMap<String, String>,
    /// The stack with all of them.
    pub profile: Profile,
}

/// A flow beside the one studied.
#[derive(Clone, Debug)]
pub struct CompetingFlow {
    /// The startup and the avoidance that it runs.
    pub contender: Contender,
    /// What its application does.
    pub app: app::Kind,
    /// When it starts: this long before the flow studied.
    pub before: Span,
    /// Or this long after it.
    pub after: Span,
    /// True if it begins at a random time between that and the start of the flow studied.
    pub drawn: bool,
    /// Which way its data goes.
    pub direction: Direction,
    /// Which links of the path its data crosses.
    pub links: Links,
    /// What its round-trip time is longer than that of its links.
    pub longer: Span,
}

/// A study whose values are checked: every run of it can begin.
#[derive(Clone, Debug)]
pub struct Study {
    /// The path, before values are drawn for a run.
    pub path: PathSpec,
    /// The startups, each of which gets its own runs.
    pub contenders: Vec<Contender>,
    /// The TCP stack of both ends.
    pub profile: Profile,
    /// Its name, with the knobs that were set.
    pub profile_label: String,
    /// What the application does.
    pub app: app::Kind,
    /// That as [`application`] reads it.
    pub app_text: String,
    /// Number of connections that carry the transfer, 1 at least; above 1 only a bulk one.
    pub connections: u32,
    /// Bytes to transfer, if the transfer has a size.
    pub size: Option<u64>,
    /// The longest time to observe.
    pub duration: Span,
    /// Flows beside the one studied.
    pub against: Vec<CompetingFlow>,
    /// Which earlier connection's state startups get.
    pub remember: Remember,
    /// The number of runs of each startup, 1 at least.
    pub runs: u32,
    /// The seed from which every run's own is drawn.
    pub seed: u64,
}

/// Bytes of the default transfer: so many bandwidth-delay products, and at least [`LEAST_SIZE`]. Long enough
/// for every startup to end on its own, short enough that how it ended still shows in the time it took.
const DEFAULT_BDPS: u64 = 20;
/// Over an ensemble, also so many times what the largest path holds ([`PathSpec::most_held`]): slow start has
/// delivered twice that when its first loss is found, since it sends two bytes for each that is delivered.
const DEFAULT_HELD: u64 = 3;
const LEAST_SIZE: u64 = 10_000_000;
/// Time given to applications that have no size.
const DEFAULT_DURATION: Span = Span::secs(30);
/// A transfer is given this many times what the path would need for it, and a minute.
const PATIENCE: u64 = 10;
/// No flow is observed longer than this, whatever its size and rate, so that every run ends.
const LONGEST_DURATION: Span = Span::secs(86_400);
/// All flows of a run together are observed no longer than this: what arrives is counted in bins of time, 35
/// MB for a flow and a day.
const MOST_OBSERVED: Span = Span::secs(4 * 86_400);
/// The most rows that a table or a page is made of: they are held, some kilobytes each.
const MOST_ROWS: usize = 100_000;
/// The longest text of a study's value, bytes: an error repeats it.
const LONGEST_TEXT: usize = 1 << 14;
/// Runs by default.
const DEFAULT_RUNS: u32 = 10;
/// Runs by default over an ensemble: of ten, no split of the drawn values tells more than chance does.
const DEFAULT_RUNS_OF_ENSEMBLE: u32 = 30;
/// The stream of the video application.
const VIDEO_BPS: u64 = 5_000_000;

fn bad(key: &str, found: &str, expected: impl Into<String>) -> StudyError {
    named(key, found, &[], expected)
}

/// The error of a name, with the most similar of `names` as a hint.
fn named(key: &str, found: &str, names: &[&str], expected: impl Into<String>) -> StudyError {
    StudyError::Value {
        key: key.to_string(),
        found: found.to_string(),
        hint: did_you_mean(found, names),
        expected: expected.into(),
    }
}

/// `name` and the parameters after it.
fn split(text: &str) -> (&str, Vec<(&str, &str)>) {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let params = rest.split(',').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")));
    (name, params.collect())
}

fn refused(key: &str, name: &str, param: (&str, &str), why: ParamError) -> StudyError {
    match why {
        ParamError::Unknown([]) => bad(key, param.0, format!("no parameter: {name} has none")),
        ParamError::Unknown(known) => {
            named(key, param.0, known, format!("a parameter of {name}: one of {}", known.join(", ")))
        }
        ParamError::Value(expected) => bad(&format!("{key}: {name}:{}", param.0), param.1, expected),
    }
}

/// What a startup in a library begins with: `plugin:./libmine.so`.
const PLUGIN: &str = "plugin:";

/// A controller in a library.
#[cfg(feature = "plugin")]
fn plugin(key: &str, text: &str, file: &str) -> Result<Algorithm, StudyError> {
    slowstart_plugin::load(FilePath::new(file))
        .map(Algorithm::from)
        .map_err(|why| bad(key, text, format!("a library with the functions of slowstart.h: {why}")))
}

#[cfg(not(feature = "plugin"))]
fn plugin(key: &str, text: &str, _: &str) -> Result<Algorithm, StudyError> {
    Err(bad(key, text, "a startup by name: this program loads no libraries"))
}

/// A startup, or a controller of its own, from `name:key=value,...` or `plugin:FILE`.
pub fn algorithm(key: &str, text: &str) -> Result<(String, Algorithm), StudyError> {
    if let Some(file) = text.strip_prefix(PLUGIN) {
        return Ok((text.to_string(), plugin(key, text, file)?));
    }
    let (name, params) = split(text);
    let entry = registry::named(name).ok_or_else(|| {
        let names: Vec<&str> = registry::all().map(|e| e.name).collect();
        named(key, name, &names, format!("a startup: one of {}", names.join(", ")))
    })?;
    let mut s = entry.algorithm;
    for param in params {
        s.set(param.0, param.1).map_err(|why| refused(key, name, param, why))?;
    }
    Ok((name.to_string(), s))
}

/// A startup in the same form; a controller of its own is none.
pub fn startup(key: &str, text: &str) -> Result<(String, AnyStartup), StudyError> {
    match algorithm(key, text)? {
        (name, Algorithm::Startup(s)) => Ok((name, s)),
        (name, _) => Err(bad(key, &name, "a startup: this is a controller of its own")),
    }
}

/// An avoidance from `name:key=value,...`.
pub fn avoidance(key: &str, text: &str) -> Result<(String, AnyAvoidance), StudyError> {
    let (name, params) = split(text);
    let entry = avoidance::REGISTRY.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<&str> = avoidance::REGISTRY.iter().map(|e| e.name).collect();
        named(key, name, &names, format!("an avoidance: one of {}", names.join(", ")))
    })?;
    let mut a = (entry.make)();
    for param in params {
        a.set(param.0, param.1).map_err(|why| refused(key, name, param, why))?;
    }
    Ok((name.to_string(), a))
}

/// A startup's parameters, as rows have them.
pub fn params(s: &Algorithm) -> BTreeMap<String, Param> {
    let mut all = BTreeMap::new();
    s.each_param(&mut |k, v| {
        let v = match v {
            ParamValue::Number(n) => Param::Number(n),
            ParamValue::Word(w) => Param::Word(w.to_string()),
        };
        all.insert(k.to_string(), v);
    });
    all
}

impl Contender {
    /// A startup and an avoidance, as written.
    pub fn read(key: &str, text: &str, with: &str) -> Result<Self, StudyError> {
        let (startup_name, s) = algorithm(key, text)?;
        let (avoidance_name, a) = avoidance("avoidance", with)?;
        Ok(Self {
            label: text.to_string(),
            startup_name,
            params: params(&s),
            avoidance_name: (!s.is_standalone()).then_some(avoidance_name),
            startup: s,
            avoidance: a,
            stack: None,
        })
    }

    /// Its own settings of the stack, as written.
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.stack.as_ref().map(|s| s.settings.clone()).unwrap_or_default()
    }
}

/// A startup as written, and after an `@` its own settings of the stack.
pub fn own_settings(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('@') {
        // The file of a library may have one in its name.
        Some((file, rest)) if !text.starts_with(PLUGIN) || rest.contains('=') => (file, Some(rest)),
        _ => (text, None),
    }
}

/// Sets knobs of a stack.
fn set_all<'a>(
    key: &str,
    profile: &mut Profile,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), StudyError> {
    for (k, v) in settings {
        profile.set(k, v).map_err(|expected| {
            if let Some(expected) = expected {
                return bad(&format!("{key} {k}"), v, expected);
            }
            let keys: Vec<&str> = Profile::KNOBS.iter().map(|k| k.name).collect();
            named(key, k, &keys, format!("a knob: one of {}", keys.join(", ")))
        })?;
    }
    Ok(())
}

/// Bytes such as `20MB`, `100kB`, `1500B`, `1GiB`.
pub fn bytes(key: &str, text: &str) -> Result<u64, StudyError> {
    quantity::bytes(text)
        .map(|b| b.0)
        .filter(|b| (1..=1 << 50).contains(b))
        .ok_or_else(|| bad(key, text, "a size such as 20MB, 100kB or 1GiB"))
}

/// A time such as `30s` or `250ms`, above zero.
pub fn time(key: &str, text: &str) -> Result<Span, StudyError> {
    quantity::some_span(text)
        .filter(|t| *t <= LONGEST_DURATION)
        .ok_or_else(|| bad(key, text, "a time such as 30s or 250ms, up to a day"))
}

/// The most connections of a transfer.
const MOST_CONNECTIONS: u32 = 100;
/// What the application of several looks like.
const CONNECTIONS: &str = "a transfer over 1 to 100 connections, such as connections:10";

fn connections(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && (1..=MOST_CONNECTIONS).contains(n))
}

/// The most flows that one entry of `against` may stand for.
const MOST_FLOWS: usize = 1000;

/// Reads one entry of `against`: a flow, or several that begin at random times (`web*5@-10s`).
fn competing_flows(text: &str) -> Result<Vec<CompetingFlow>, StudyError> {
    let Some((name, rest)) = text.split_once('@').and_then(|(n, _)| n.split_once('*')) else {
        return Ok(vec![competing_flow(text)?]);
    };
    let count = rest.split('@').next().unwrap_or_default();
    let expected = format!("a number of flows from 1 to {MOST_FLOWS} after *, as in web*5@-10s");
    let valid = count.bytes().all(|b| b.is_ascii_digit());
    let n = count.parse().ok().filter(|n| valid && (1..=MOST_FLOWS).contains(n));
    let n = n.ok_or_else(|| bad("against", text, expected))?;
    let when = text.split_once('@').map_or("", |(_, when)| when);
    let flow = competing_flow(&format!("{name}@{when}"))?;
    Ok(vec![CompetingFlow { drawn: true, ..flow }; n])
}

/// The way of a competing flow.
struct Route {
    direction: Direction,
    links: Links,
    longer: Span,
}

/// What may stand behind the time of a competing flow.
const ROUTE: &str = "behind the time /up for an upload over all links, or /2 or /1-2 for the links that it crosses; and /+30ms for what its \
                     round-trip time is longer, each once";

/// Reads what stands behind the time of a competing flow.
fn route<'a>(options: impl Iterator<Item = &'a str>) -> Option<Route> {
    let (mut up, mut links, mut longer) = (false, None, None);
    for option in options {
        if option == "up" && !up {
            up = true;
        } else if let Some(length) = option.strip_prefix('+').filter(|_| longer.is_none()) {
            longer = Some(quantity::some_span(length).filter(|t| *t <= LONGEST_DURATION)?);
        } else if links.is_none() {
            links = Some(Links::parse(option)?);
        } else {
            return None;
        }
    }
    // The way back is one link.
    if up && links.is_some() {
        return None;
    }
    let direction = if up { Direction::Upload } else { Direction::Download };
    Some(Route { direction, links: links.unwrap_or_default(), longer: longer.unwrap_or_default() })
}

fn competing_flow(text: &str) -> Result<CompetingFlow, StudyError> {
    let expected = "a flow such as cubic@-10s, search@2s/up, cubic@-10s/2 or cubic@-10s/1-2/+30ms";
    let (name, when) = text.split_once('@').ok_or_else(|| bad("against", text, expected))?;
    let mut options = when.split('/');
    let when = options.next().unwrap_or_default();
    let Some(Route { direction, links, longer }) = route(options) else {
        return Err(bad("against", text, ROUTE));
    };
    let (earlier, length) = match when.strip_prefix('-') {
        Some(l) => (true, l),
        None => (false, when),
    };
    let span = if length == "0s" { Span::ZERO } else { time("against", length)? };
    let app = match name {
        "web" => app::Kind::Web,
        "browser" => app::Kind::Browser,
        "video" => app::Kind::Video { rate_bps: VIDEO_BPS },
        "media" => app::Kind::Media,
        _ => app::Kind::Bulk { size: None },
    };
    if !matches!(app, app::Kind::Bulk { .. }) && direction == Direction::Upload {
        return Err(bad("against", text, format!("a {name} client without /up: its data is downloaded")));
    }
    // The server of a client runs the default. The name of an avoidance stands for it with the startup before
    // it.
    let contender = if let app::Kind::Bulk { .. } = app {
        match avoidance::REGISTRY.iter().find(|a| a.name == split(name).0) {
            Some(a) => Contender::read("against", a.before, name)?,
            None => Contender::read("against", name, avoidance::REGISTRY[0].name)?,
        }
    } else {
        Contender::read("against", avoidance::REGISTRY[0].before, avoidance::REGISTRY[0].name)?
    };
    let (before, after) = if earlier { (span, Span::ZERO) } else { (Span::ZERO, span) };
    Ok(CompetingFlow { contender, app, before, after, drawn: false, direction, links, longer })
}

/// Fails if the rows of these studies are too many to be held, as a table and a page need them.
///
/// # Errors
/// With the number of runs.
pub fn check_rows<'a>(studies: impl IntoIterator<Item = &'a Study>) -> Result<(), StudyError> {
    let studies: Vec<&Study> = studies.into_iter().collect();
    let rows: usize = studies.iter().map(|s| s.contenders.len() * s.runs as usize).sum();
    match studies.first().filter(|_| rows > MOST_ROWS) {
        Some(study) => {
            let expected = format!(
                "at most {MOST_ROWS} rows for a table or a page, not {rows}: fewer runs, startups or paths, or --json, --csv or \
                 --parquet without --out, which hold no rows"
            );
            Err(bad("runs", &study.runs.to_string(), expected))
        }
        None => Ok(()),
    }
}

/// The application of a text such as `web` or `writes:5MB,2s,5MB`; a bulk transfer has no size yet. `None` if there is no
/// such application.
pub fn application(text: &str) -> Option<app::Kind> {
    Some(match text {
        "bulk" => app::Kind::Bulk { size: None },
        "web" => app::Kind::Web,
        "browser" => app::Kind::Browser,
        "video" => app::Kind::Video { rate_bps: VIDEO_BPS },
        other if other.starts_with("writes:") => app::Kind::Writes(app::Writes::parse(other)?),
        other => app::Kind::Bursts(app::Bursts::parse(other)?),
    })
}

fn not_an_application(text: &str) -> StudyError {
    if text.starts_with("writes:") {
        return bad("app", text, app::Writes::EXPECTED);
    }
    let expected = format!(
        "one of bulk, connections:10, web, video, browser, writes:500kB@1Mbit,2s,10MB, or {}",
        app::Bursts::EXPECTED
    );
    named("app", text, &["bulk", "web", "video", "browser"], expected)
}

/// A time as a study is written, to the second.
fn time_text(t: Span) -> String {
    format!("{}s", t.0 / 1_000_000_000)
}

impl Study {
    /// The stack of a startup.
    pub fn profile_of(&self, contender: &Contender) -> Profile {
        contender.stack.as_ref().map_or(self.profile, |s| s.profile)
    }

    /// True if its application is a bulk transfer over one connection.
    pub const fn is_one_bulk(&self) -> bool {
        matches!(self.app, app::Kind::Bulk { .. }) && self.connections == 1
    }

    /// Reads a study for the simulator from a TOML file.
    pub fn load(file: &FilePath) -> Result<Self, StudyError> {
        let text = StudyText::load(file)?;
        Self::check(&text, file.parent())
            .map_err(|e| StudyError::File { file: file.to_path_buf(), why: e.to_string() })
    }

    /// Reads a study from its text in TOML. Files it names are relative to `root`.
    pub fn read(text: &str, root: Option<&FilePath>) -> Result<Self, StudyError> {
        Self::check(&StudyText::read(text)?, root)
    }

    /// Checks what was written. Files it names are relative to `root`.
    pub fn check(text: &StudyText, root: Option<&FilePath>) -> Result<Self, StudyError> {
        Self::check_with(text, &Files::folder(root.map(PathBuf::from).unwrap_or_default()))
    }

    /// [`Self::check`] with the files that `files` has.
    pub fn check_with(text: &StudyText, files: &Files) -> Result<Self, StudyError> {
        text.check_lengths()?;
        if let Some(engine) = text.engine.as_deref().filter(|e| *e != SIMULATOR) {
            return Err(bad("engine", engine, "sim: this reads a study for the simulator"));
        }
        let with = text.avoidance.as_deref().unwrap_or("cubic");
        let all: Vec<String> = registry::all().map(|e| e.name.to_string()).collect();
        let wanted = if text.startups.is_empty() { &all } else { &text.startups };
        let contender = |written: &String| {
            let startup = own_settings(written).0;
            Ok(Contender { label: written.clone(), ..Contender::read("startup", startup, with)? })
        };
        let contenders = wanted.iter().map(contender).collect::<Result<Vec<_>, StudyError>>()?;
        Self::with_files(text, contenders, files)
    }

    /// Checks everything but the startups and the avoidance, which an engine has read: of a startup its own
    /// settings of the stack, which its label has. Files it names are relative to `root`.
    pub fn of(
        text: &StudyText,
        contenders: Vec<Contender>,
        root: Option<&FilePath>,
    ) -> Result<Self, StudyError> {
        Self::with_files(text, contenders, &Files::folder(root.map(PathBuf::from).unwrap_or_default()))
    }

    fn with_files(
        text: &StudyText,
        mut contenders: Vec<Contender>,
        files: &Files,
    ) -> Result<Self, StudyError> {
        let path = PathSpec::load_from(&text.path, files)?;
        let stack = text.profile.as_deref().unwrap_or(Profile::LINUX_6_18.name);
        let mut profile = Profile::named(stack).ok_or_else(|| {
            let names: Vec<&str> = Profile::ALL.iter().map(|p| p.name).collect();
            named("profile", stack, &names, format!("one of {}", names.join(", ")))
        })?;
        let mut profile_label = stack.to_string();
        set_all("set", &mut profile, text.set.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
        for (k, v) in &text.set {
            profile_label = format!("{profile_label},{k}={v}");
        }
        for c in &mut contenders {
            let Some(own) = own_settings(&c.label).1 else { continue };
            let mut settings = BTreeMap::new();
            for setting in own.split(',') {
                let pair = setting.split_once('=').ok_or_else(|| {
                    bad("startup", &c.label, "settings of the stack after @, as in hystart@iw=20,pacing=on")
                })?;
                settings.insert(pair.0.to_string(), pair.1.to_string());
            }
            let mut profile = profile;
            set_all("startup", &mut profile, settings.iter().map(|(k, v)| (k.as_str(), v.as_str())))?;
            c.stack = Some(Stack { settings, profile });
        }
        let size = text.size.as_deref().map(|s| bytes("size", s)).transpose()?;
        let duration = text.duration.as_deref().map(|d| time("duration", d)).transpose()?;
        if size.is_some() && duration.is_some() {
            return Err(bad(
                "duration",
                text.duration.as_deref().unwrap_or_default(),
                "size or duration, not both",
            ));
        }
        let written = text.app.as_deref().unwrap_or("bulk");
        let (app, connections) = match written.strip_prefix("connections:") {
            Some(n) => ("bulk", connections(n).ok_or_else(|| bad("app", written, CONNECTIONS))?),
            None => (written, 1),
        };
        if let Some(size) = size.filter(|size| *size < connections.into()) {
            return Err(bad("size", &size.to_string(), "a byte for each connection"));
        }
        let facts = path.facts();
        let mut pauses = Span::ZERO;
        let app_text = app.to_string();
        let app = application(app).ok_or_else(|| not_an_application(app))?;
        let (app, size) = match app {
            app::Kind::Bulk { .. } => {
                let held = if path.is_ensemble() { path.most_held() * DEFAULT_HELD } else { Bytes::ZERO };
                let default = (facts.bdp * DEFAULT_BDPS).max(held).0.max(LEAST_SIZE);
                let size = if duration.is_some() { None } else { Some(size.unwrap_or(default)) };
                (app::Kind::Bulk { size }, size)
            }
            app::Kind::Writes(writes) => {
                if size.is_some() {
                    let found = text.size.as_deref().unwrap_or_default();
                    return Err(bad("size", found, "no size: those of the writes are given"));
                }
                pauses = writes.lasts();
                (app, Some(writes.bytes()).filter(|_| duration.is_none()))
            }
            app::Kind::Bursts(bursts) => {
                if size.is_some() {
                    let found = text.size.as_deref().unwrap_or_default();
                    return Err(bad("size", found, "no size: those of the bursts are given"));
                }
                pauses = bursts.pauses();
                (app, Some(bursts.bytes()).filter(|_| duration.is_none()))
            }
            _ if size.is_some() => {
                return Err(bad(
                    "size",
                    text.size.as_deref().unwrap_or_default(),
                    "a duration: this application has no size",
                ));
            }
            _ => (app, None),
        };
        let against: Vec<Vec<CompetingFlow>> =
            text.against.iter().map(|a| competing_flows(a)).collect::<Result<_, _>>()?;
        let before = against.iter().flatten().map(|b| b.before).max().unwrap_or(Span::ZERO);
        let flows = u64::from(connections) + against.iter().map(|b| b.len() as u64).sum::<u64>();
        let longest = (MOST_OBSERVED / flows - before).min(LONGEST_DURATION);
        let too_long = |key: &str, found: &str| {
            let expected = format!(
                "{} at most with {flows} flows, which are observed for {} days at most together",
                time_text(longest),
                MOST_OBSERVED.0 / Span::secs(86_400).0
            );
            bad(key, found, expected)
        };
        if longest == Span::ZERO {
            return Err(too_long("against", &text.against.join(", ")));
        }
        let links = path.links().len();
        let beyond = |flows: &[CompetingFlow]| flows[0].links.last().is_some_and(|last| last > links);
        if let Some(i) = against.iter().position(|flows| beyond(flows)) {
            let expected = match links {
                1 => "a flow over the one link of this path; then=LINK adds another".to_string(),
                _ => format!("links of this path, which are 1 to {links}"),
            };
            return Err(bad("against", &text.against[i], expected));
        }
        let duration = match (duration, size) {
            (Some(d), _) if d > longest => {
                return Err(too_long("duration", text.duration.as_deref().unwrap_or_default()));
            }
            (Some(d), _) => d,
            (None, Some(bytes)) => {
                (path.least_rate().time_for(Bytes(bytes)) * PATIENCE + Span::secs(60) + pauses).min(longest)
            }
            (None, None) => DEFAULT_DURATION.min(longest),
        };
        if let Some(i) = against.iter().position(|b| b[0].direction == Direction::Upload) {
            // Without a limit on the way back an upload would grow for ever.
            let a_second = Instant(1_000_000_000);
            if path.build(0).back.capacity(Instant::ZERO, a_second) == Bytes::MAX {
                return Err(bad(
                    "against",
                    &text.against[i],
                    "a path with ack_rate: the way back of this one has no limit",
                ));
            }
        }
        if path.proxy().is_some() {
            if let Some(other) = text.against.first() {
                return Err(bad("against", other, "a path without a proxy: this one carries one connection"));
            }
            if !matches!(app, app::Kind::Bulk { .. }) || connections > 1 {
                let app = text.app.as_deref().unwrap_or_default();
                return Err(bad("app", app, "bulk: the proxy of this path forwards one transfer"));
            }
        }
        let default_runs = if path.is_ensemble() { DEFAULT_RUNS_OF_ENSEMBLE } else { DEFAULT_RUNS };
        let runs = text.runs.unwrap_or(default_runs);
        if runs == 0 || runs > 1_000_000 {
            return Err(bad("runs", &runs.to_string(), "a number of runs from 1 to 1000000"));
        }
        let remember = Remember::read(text.remember.as_deref().unwrap_or("on"), files)?;
        Ok(Self {
            path,
            contenders,
            profile,
            profile_label,
            app,
            app_text,
            connections,
            size,
            duration,
            against: against.concat(),
            remember,
            runs,
            seed: text.seed.unwrap_or(1),
        })
    }
}
