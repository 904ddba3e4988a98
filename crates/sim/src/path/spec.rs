//! Reads paths: TOML files, one line of `key=value`, or the name of a built-in path.
//!
//! The keys are the same in all three. All values are checked and all files are read when a path is loaded,
//! so that building one cannot fail.

mod build;
mod builtin;
mod chain;
mod keys;
mod proxy;
mod random_values;
mod supply;
mod tbf;
#[cfg(test)]
mod tests;
mod then;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path as fs_path;
use std::path::PathBuf;
use std::sync::Arc;

use slowstart::units::{Bytes, Rate, Span};

use super::carrier;
use super::element::Elements;
use super::ensemble;
use super::error::PathError;
use super::fade::{Burst, Fades};
use super::files::Files;
use super::netem;
use super::outage::OutageSpec;
use super::queue::Discipline;
use super::trace::{DelayTrace, LossTrace};
use super::{Kind, PathFacts};
use crate::suggest::did_you_mean;
pub use builtin::Builtin;
use builtin::TEXTS;
use chain::{BucketSpec, QueueSpec};
pub(super) use keys::{Keys, PACKET, QUEUE, SHARE, SPAN};
pub use keys::{PATH_KEYS, PathKey};
pub use proxy::ProxySpec;
use random_values::Ensemble;
use supply::Supply;
pub(super) use supply::UNLIMITED;
pub use then::LinkFacts;

/// The settings of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionSpec {
    /// Propagation; zero where a delay trace has it.
    delay: Span,
    elements: Elements,
    /// The chance that a packet arrives twice, in millionths.
    duplicate: u32,
    scripts: Vec<(Kind, Vec<(u64, u64)>)>,
    filters: bool,
    interface: Option<Rate>,
    grants: Option<Rate>,
    netem: Option<netem::Spec>,
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
    queue: QueueSpec,
    /// The rate and the queue of the sender's own interface.
    host: Option<(Rate, Discipline)>,
    shaper: Option<BucketSpec>,
    policer: Option<BucketSpec>,
    second_carrier: Option<carrier::Params>,
    /// The chance of a drop in millionths, and the backlog above which it applies.
    random_drop: Option<(u32, Bytes)>,
    /// The wait above which the forward link marks.
    mark: Option<Span>,
    forward: DirectionSpec,
    back: DirectionSpec,
    back_link: Option<(Rate, QueueSpec)>,
    /// Amplitude and period.
    wave: Option<(Span, Span)>,
    /// The most delay it adds, and its period.
    handover: Option<(Span, Span)>,
    handover_loss: Option<Burst>,
    fades: Option<Fades>,
    outage: Option<OutageSpec>,
    proxy: Option<Arc<ProxySpec>>,
    delay_trace: Option<Arc<DelayTrace>>,
    loss_trace: Option<Arc<LossTrace>>,
    random_start: bool,
    facts: PathFacts,
    /// Its first link, and the links behind that.
    own: LinkFacts,
    then: Vec<Self>,
    /// What each run draws; none for a fixed path.
    ensemble: Option<Arc<Ensemble>>,
    /// The values drawn for this path, by name; empty unless it is one draw of an ensemble.
    drawn: BTreeMap<String, f64>,
    /// The least mean rate that a run may draw.
    least_rate: Rate,
    /// The most that a run's path may take in before it drops anything.
    most_held: Bytes,
    /// The built-in path that stands for this ensemble where one path is wanted.
    fixed: Option<String>,
    ack_jitter_is_set: bool,
    /// The ACK jitter it was given because it draws nothing.
    default_jitter: Option<Span>,
    written: Written,
}

/// What a path was loaded from: text, and the folder of the files that it names.
#[derive(Clone, Default)]
struct Written(Option<Arc<(String, PathBuf)>>);

#[allow(clippy::missing_fields_in_debug, reason = "the same path is the same wherever its files are")]
impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}

impl PathSpec {
    /// Loads the path that `arg` names: a built-in path, a file `*.toml`, or a line such as
    /// `rate=100Mbit rtt=40ms queue=1bdp`. The first word of a line may name a built-in path or a file, whose
    /// keys the others replace or add to: `geo rate=50Mbit`. Relative names of files are looked for in
    /// `root`, or else in the current directory; those within a TOML file, in that file's folder.
    pub fn load(arg: &str, root: Option<&fs_path::Path>) -> Result<Self, PathError> {
        Self::load_from(arg, &Files::folder(root.map(PathBuf::from).unwrap_or_default()))
    }

    /// [`Self::load`] with the files that `files` has.
    pub fn load_from(arg: &str, files: &Files) -> Result<Self, PathError> {
        let (keys, name, sources) = Self::keys(arg, files)?;
        let mut spec = Self::from_keys(keys, name, sources)?;
        spec.written = Written(files.on_disk().map(|folder| Arc::new((arg.to_string(), folder.into()))));
        Ok(spec)
    }

    /// What [`Self::load`] was given, by which another process loads the same path; `None` if its files are
    /// not on a disk, or it is a draw of another path.
    pub fn written(&self) -> Option<(&str, &fs_path::Path)> {
        self.written.0.as_deref().map(|(arg, folder)| (arg.as_str(), folder.as_path()))
    }

    /// The keys of a path as [`Self::load`] takes it, its name and its sources.
    fn keys(arg: &str, files: &Files) -> Result<(Keys, String, Vec<String>), PathError> {
        let first = arg.trim_start_matches(PROMPT).split_whitespace().next();
        if arg.contains('=') || first.is_some_and(netem::Spec::begins_line) {
            return Self::inline(arg, files.clone());
        }
        Self::named(arg, files)
    }

    /// The keys of a built-in path or of a file, its name and its sources.
    fn named(arg: &str, files: &Files) -> Result<(Keys, String, Vec<String>), PathError> {
        if fs_path::Path::new(arg).extension().is_some_and(|e| e == "toml") {
            let file = files.place(arg);
            let text = files.text(&file).map_err(|e| PathError::File {
                file: file.display().to_string(),
                why: e.to_string(),
                expected: "a path in TOML",
            })?;
            Self::toml(&file, &text, files)
        } else {
            let (_, text) =
                TEXTS.iter().find(|(name, _)| *name == arg).ok_or_else(|| PathError::UnknownName {
                    found: arg.into(),
                    hint: did_you_mean(arg, &TEXTS.iter().map(|(name, _)| *name).collect::<Vec<_>>()),
                    names: TEXTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
                })?;
            Self::toml(fs_path::Path::new(&format!("{arg}.toml")), text, files)
        }
    }

    /// Returns the true properties of the path; of an ensemble, those with the median of each drawn value.
    pub const fn facts(&self) -> PathFacts {
        self.facts
    }

    /// The shortest time in which the path can carry this many bytes of IP packets: every rate has its mean, every token
    /// bucket is full at first, and the delay of the path is not included.
    pub fn least_time(&self, bytes: Bytes) -> Span {
        let own = |spec: &Self| {
            let host = spec.host.as_ref().map(|(rate, _)| *rate);
            let netem = spec.forward.netem.as_ref().and_then(netem::Spec::rate);
            let rates = std::iter::once(spec.supply.mean()).chain(host).chain(netem);
            let buckets = spec.shaper.iter().chain(&spec.policer);
            let times = rates.map(|rate| rate.time_for(bytes));
            times.chain(buckets.map(|bucket| bucket.least_time(bytes))).max().unwrap_or(Span::ZERO)
        };
        std::iter::once(self).chain(&self.then).map(own).max().unwrap_or(Span::ZERO)
    }

    /// Each value that runs draw: the name of its field in rows, and its distribution as written. Empty for a
    /// fixed path.
    pub fn distributions(&self) -> Vec<(&str, &str)> {
        let laws = self.ensemble.iter().flat_map(|e| &e.laws);
        laws.map(|law| (law.name.as_str(), law.text.as_str())).collect()
    }

    /// True if each run draws its path from its seed.
    pub const fn is_ensemble(&self) -> bool {
        self.ensemble.is_some()
    }

    /// The proxy that splits connections, if there is one: the path itself lies between that and the client.
    pub fn proxy(&self) -> Option<&ProxySpec> {
        self.proxy.as_deref()
    }

    /// True if packets wait in an interface of the sender, which does not drop them when it is full.
    pub fn has_interface(&self) -> bool {
        self.host.is_some() || self.forward.interface.is_some()
    }

    /// True if it drops SYNs or SYN-ACKs by their number.
    pub fn drops_syns(&self) -> bool {
        let scripts = self.forward.scripts.iter().chain(&self.back.scripts);
        scripts.into_iter().any(|(kind, _)| matches!(kind, Kind::Syn | Kind::SynAck))
    }

    /// The built-in path to use in place of this ensemble where one fixed path is wanted (the key `fixed`).
    pub fn fixed(&self) -> Option<&str> {
        self.fixed.as_deref()
    }

    /// The ACK jitter of one packet time that a path has by default if it draws nothing; `ack_jitter=0` turns
    /// it off.
    pub const fn default_jitter(&self) -> Option<Span> {
        self.default_jitter
    }

    /// The limit in packets of a netem that bounds the rate of the path, since what is on its delay line counts;
    /// `None` if something else does.
    pub fn limit_of_netem(&self) -> Option<usize> {
        self.forward.netem.as_ref()?.bounds(self.facts.rate)
    }

    /// The slots in which ACKs come: the time between two of them; `None` if ACKs do not wait for one.
    pub const fn ack_slot(&self) -> Option<Span> {
        self.back.elements.aggregate
    }

    /// The least mean rate that a run may draw; the path's own mean rate if it draws none.
    pub const fn least_rate(&self) -> Rate {
        self.least_rate
    }

    /// The most bytes that may be on the path and in its queue before it drops any, of all paths that a run
    /// may draw: the BDP, and what the queue holds or the backlog from which it drops at random. A queue
    /// without a limit counts as empty.
    pub const fn most_held(&self) -> Bytes {
        self.most_held
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

    fn inline(line: &str, files: Files) -> Result<(Keys, String, Vec<String>), PathError> {
        let mut words = split_unquoted(line.trim_start_matches(PROMPT)).peekable();
        let lines_of_tc = lines_of_tc(&mut words);
        let (mut keys, sources) = if let Some(base) = words.next_if(|word| !word.contains('=')) {
            let (mut keys, _, sources) = Self::named(base, &files)?;
            // Both stand for the path as it was.
            keys.values.retain(|key, _| !["fixed", "name"].contains(&key.as_str()));
            (keys, sources)
        } else {
            (Keys::new("path".into(), files), Vec::new())
        };
        let mut seen = Vec::new();
        for (key, value) in lines_of_tc {
            if seen.contains(&key) {
                return Err(keys.wrong(key, &value, "one line of each: ack_netem= is that of the way back"));
            }
            seen.push(key);
            keys.values.insert(key.into(), value);
        }
        // The key to whose value the words after it belong.
        let mut open = None;
        for word in words {
            if let Some(value) = open.filter(|_| !word.contains('=')).and_then(|key| keys.values.get_mut(key))
            {
                *value = format!("{value} {word}");
                continue;
            }
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| keys.wrong(word, "nothing", "key=value, such as rate=100Mbit"))?;
            let inner = value.strip_prefix('"').map(|v| v.strip_suffix('"').filter(|v| !v.contains('"')));
            let value = inner.unwrap_or(Some(value).filter(|v| !v.contains('"')));
            let value =
                value.ok_or_else(|| keys.wrong(key, &word[key.len() + 1..], "quotes around the value"))?;
            if key == then::KEY
                && seen.contains(&key)
                && let Some(links) = keys.values.get_mut(key)
            {
                links.push(then::SEPARATOR);
                links.push_str(value);
                continue;
            }
            if seen.contains(&key) {
                return Err(keys.wrong(key, value, "each key once"));
            }
            seen.push(key);
            open = Some(key).filter(|key| OF_TC.contains(key) && inner.is_none());
            // A path has one supply of rate.
            if SUPPLIES.contains(&key) {
                keys.values.retain(|k, _| !SUPPLIES.contains(&k.as_str()) || seen.contains(&k.as_str()));
            }
            keys.values.insert(key.into(), value.into());
        }
        let name = line.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        Ok((keys, name, sources))
    }

    fn toml(
        file: &fs_path::Path,
        text: &str,
        files: &Files,
    ) -> Result<(Keys, String, Vec<String>), PathError> {
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
        let files = files.within(file.parent().map(PathBuf::from).unwrap_or_default());
        let mut keys = Keys::new(source, files);
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
                toml::Value::Array(list) if key == then::KEY => {
                    let links = list.iter().map(toml::Value::as_str).collect::<Option<Vec<_>>>();
                    let links = links.ok_or_else(|| keys.wrong(&key, "other values", "a list of strings"))?;
                    links.join(&then::SEPARATOR.to_string())
                }
                other => return Err(keys.wrong(&key, &other.to_string(), "a string or a number")),
            };
            keys.values.insert(key, value);
        }
        let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((keys, stem, sources))
    }

    fn from_keys(keys: Keys, name: String, sources: Vec<String>) -> Result<Self, PathError> {
        keys.known()?;
        if keys.values.iter().any(|(key, value)| ensemble::is_distribution(key, value)) {
            if let Some(links) = keys.values.get(then::KEY) {
                return Err(keys.wrong(then::KEY, links, "a path without distributions: each link is fixed"));
            }
            return Ensemble::check(keys, name, sources);
        }
        let mut spec = Self::without_distributions(keys, name, sources)?;
        spec.jitter_by_default();
        Ok(spec)
    }

    /// True if anything on the path is random.
    fn draws(&self) -> bool {
        let drawn = |d: &DirectionSpec| {
            !d.elements.is_empty() || d.duplicate > 0 || d.netem.as_ref().is_some_and(netem::Spec::is_random)
        };
        let starts_anywhere =
            self.random_start && (self.delay_trace.is_some() || matches!(self.supply, Supply::Trace(_)));
        drawn(&self.forward)
            || drawn(&self.back)
            || starts_anywhere
            || matches!(self.supply, Supply::Drawn { .. })
            || self.random_drop.is_some()
            || self.queue.discipline.as_ref().is_some_and(Discipline::is_random)
            || self.wave.is_some()
            || self.handover.is_some()
            || self.fades.is_some()
            || self.loss_trace.is_some()
            || self.outage.is_some_and(|o| o.at.is_none())
            || self.then.iter().any(Self::draws)
    }

    /// Gives a path that draws nothing ACK jitter of one packet time, unless its `ack_jitter` is set. Without
    /// it every run is the same, and ties at a full queue come out the same way each time, as they do on no
    /// network (Floyd and Jacobson, On Traffic Phase Effects in Packet-Switched Gateways, 1992).
    fn jitter_by_default(&mut self) {
        if !self.draws() && !self.ack_jitter_is_set {
            self.default_jitter = Some(self.facts.rate.time_for(PACKET));
            self.back.elements.jitter = self.default_jitter.filter(|most| *most > Span::ZERO);
        }
    }
}

/// The keys of which a path has one.
const SUPPLIES: [&str; 3] = ["rate", "schedule", "trace"];

/// The keys whose values are words of `tc`; these need no quotes.
const OF_TC: [&str; 6] = ["netem", "ack_netem", "queue", "ack_queue", "host_queue", "shaper"];

/// What a shell shows before a command.
const PROMPT: [char; 3] = ['#', '$', ' '];

/// Takes commands of `tc`, or lines that it shows, from the beginning of a path: the key of each, and the
/// line.
fn lines_of_tc<'a>(
    words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> Vec<(&'static str, String)> {
    if words.peek().is_none_or(|word| !netem::Spec::begins_line(word)) {
        return Vec::new();
    }
    let mut lines: Vec<Vec<&str>> = Vec::new();
    let mut ends = true;
    while let Some(word) = words.next_if(|word| !word.contains('=')) {
        let text = word.trim_end_matches(';');
        let line = lines.last().map_or(&[][..], Vec::as_slice);
        let begins = match text {
            "sudo" => true,
            "tc" => line != ["sudo"],
            "qdisc" => {
                line.contains(&"qdisc") || line.first().is_some_and(|first| first.starts_with("netem"))
            }
            _ => false,
        };
        if ends || begins {
            lines.push(Vec::new());
        }
        ends = text.len() < word.len() || word == "&&";
        if let Some(line) = lines.last_mut().filter(|_| !text.is_empty() && word != "&&") {
            line.push(text);
        }
    }
    let key = |line: &[&str]| {
        let has = |name: &str| line.iter().any(|word| word.trim_end_matches(':') == name);
        if has("netem") {
            "netem"
        } else if has("tbf") {
            "shaper"
        } else {
            "queue"
        }
    };
    lines.retain(|line| !line.is_empty());
    lines.iter().map(|line| (key(line), line.join(" "))).collect()
}

/// The words of a line; white space within double quotes separates none.
fn split_unquoted(line: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let words = line.split(move |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && c.is_ascii_whitespace()
    });
    words.filter(|word| !word.is_empty())
}
