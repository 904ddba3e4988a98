//! `slowstart list`: the names that other commands take.

use crate::output::{print, width, wrap};
use crate::paths_summary::COMMON;
use anyhow::{Result, bail};
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use serde::Serialize;
use slowstart::avoidance;
use slowstart::param::ParamValue;
use slowstart::registry;
use slowstart::startup::not_implemented::NOT_IMPLEMENTED;
use slowstart_engines::ENGINES;
use slowstart_report::study::shown;
use slowstart_sim::path::{PATH_KEYS, PathSpec};
use slowstart_sim::suggest::did_you_mean;
use slowstart_sim::tcp::profile::{Knob, Profile};
use slowstart_study::chosen;
use slowstart_study::decision::default_startup;
use slowstart_study::measured::SIMULATOR;
use slowstart_study::record::Param;
use slowstart_study::words::{bytes, delay, rate};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::path::Path;

/// List startups, avoidances, paths, keys of a path, TCP stacks and their settings, and engines
#[derive(Args)]
#[command(after_help = "Examples:
  slowstart list startups
  slowstart list startups search hystart   what these do, from which source, and their parameters
  slowstart list path-keys
  slowstart list 'rate=50Mbit rtt=20ms then=\"rate=30Mbit rtt=30ms\"'   prints a picture of a path
  slowstart list --json | jq '.startups[].name'")]
pub(crate) struct List {
    /// Only one kind of names; or a path, to print a picture of it
    #[arg(value_parser = WhatParser)]
    what: Option<What>,
    /// Only these names, in detail
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Also list the startups that are not implemented because their specification is incomplete
    #[arg(long)]
    all: bool,
    /// Print one JSON object with a list for each kind
    #[arg(long)]
    json: bool,
}

/// A kind of names.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Kind {
    /// For `--startup`
    Startups,
    /// For `--avoidance`
    Avoidances,
    /// Built-in paths
    Paths,
    /// Keys of a path, for TOML files and inline paths
    PathKeys,
    /// TCP stacks, for `--profile`
    Profiles,
    /// Settings of a TCP stack, for `--set`
    Knobs,
    /// What runs studies, for `--engine`
    Engines,
}

/// What is listed.
#[derive(Clone)]
enum What {
    Kind(Kind),
    /// A path as other commands take it.
    Path(String),
}

/// True if a text is meant as a path, not as the name of a kind.
fn is_path(text: &str) -> bool {
    let is_file = Path::new(text).extension().is_some_and(|e| e == "toml");
    is_file || text.contains(['=', ' ']) || PathSpec::builtins().iter().any(|p| p.name == text)
}

/// Reads the kind of names to list, or a path.
#[derive(Clone)]
struct WhatParser;

impl TypedValueParser for WhatParser {
    type Value = What;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<What, clap::Error> {
        match value.to_str().filter(|text| is_path(text)) {
            Some(path) => Ok(What::Path(path.to_string())),
            None => EnumValueParser::<Kind>::new().parse_ref(cmd, arg, value).map(What::Kind),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Kind::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Startups,
        Self::Avoidances,
        Self::Paths,
        Self::PathKeys,
        Self::Profiles,
        Self::Knobs,
        Self::Engines,
    ];

    /// The key in JSON, and the heading.
    const fn name(self) -> &'static str {
        match self {
            Self::Startups => "startups",
            Self::Avoidances => "avoidances",
            Self::Paths => "paths",
            Self::PathKeys => "path_keys",
            Self::Profiles => "profiles",
            Self::Knobs => "knobs",
            Self::Engines => "engines",
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Startups => "startups (--startup name:key=value,...)",
            Self::Avoidances => "avoidances (--avoidance)",
            Self::Paths => "paths",
            Self::PathKeys => "keys of a path (in a TOML file, or inline as \"key=value key=value\")",
            Self::Profiles => "profiles (--profile)",
            Self::Knobs => "knobs (--set knob=value,...)",
            Self::Engines => "engines (--engine name,setting=value,...)",
        }
    }
}

/// A line of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Entry {
    name: &'static str,
    about: String,
    /// The paper, RFC, draft or measurement it follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    /// True if `slowstart compare` takes it where none is named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_default: bool,
    /// Parameters and their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    params: BTreeMap<&'static str, Param>,
    /// What a value looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    expects: Option<String>,
    /// True if it is reconstructed without its paper.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_reconstructed: bool,
    /// Why it is not implemented, or not in this build.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

impl Entry {
    fn new(name: &'static str, about: impl Into<String>) -> Self {
        Self {
            name,
            about: about.into(),
            sources: Vec::new(),
            is_default: false,
            params: BTreeMap::new(),
            expects: None,
            is_reconstructed: false,
            missing: None,
        }
    }

    fn with_source(mut self, source: &str) -> Self {
        self.sources = vec![source.to_string()];
        self
    }

    fn with_params(mut self, each: impl FnOnce(&mut dyn FnMut(&'static str, ParamValue))) -> Self {
        each(&mut |key, value| {
            let value = match value {
                ParamValue::Number(n) => Param::Number(n),
                ParamValue::Word(w) => Param::Word(w.to_string()),
            };
            self.params.insert(key, value);
        });
        self
    }

    /// The text beside the name, in lines.
    fn lines(&self) -> Vec<String> {
        let sources =
            if self.sources.is_empty() { String::new() } else { format!(" ({})", self.sources.join("; ")) };
        let expects = self.expects.as_ref().map_or(String::new(), |e| format!("{e}. "));
        let mut all = vec![format!("{expects}{}{sources}", self.about)];
        if !self.params.is_empty() {
            let params = self.params.iter().map(|(k, v)| match v {
                Param::Number(n) => format!("{k}={n}"),
                Param::Word(w) => format!("{k}={w}"),
            });
            all.push(params.collect::<Vec<_>>().join(", "));
        }
        all.extend(self.is_reconstructed.then(|| "reconstructed without its paper".to_string()));
        all.extend(self.missing.as_ref().map(|m| format!("missing: {m}")));
        all
    }
}

fn entries(kind: Kind) -> Vec<Entry> {
    match kind {
        Kind::Startups => registry::all()
            .map(|e| {
                let entry = Entry::new(e.name, e.about)
                    .with_source(e.source)
                    .with_params(|put| e.algorithm.each_param(put));
                let is_default = chosen::is_chosen(e.name);
                Entry { is_reconstructed: e.is_reconstructed, is_default, ..entry }
            })
            .collect(),
        Kind::Avoidances => avoidance::REGISTRY
            .iter()
            .map(|e| {
                Entry::new(e.name, e.about)
                    .with_source(e.source)
                    .with_params(|put| (e.make)().each_param(put))
            })
            .collect(),
        Kind::Paths => PathSpec::builtins()
            .iter()
            .map(|p| {
                let is_default = COMMON.contains(&p.name);
                Entry { sources: p.sources.clone(), is_default, ..Entry::new(p.name, p.about.as_str()) }
            })
            .collect(),
        Kind::PathKeys => PATH_KEYS
            .iter()
            .map(|k| Entry { expects: Some(k.expects.to_string()), ..Entry::new(k.name, k.about) })
            .collect(),
        Kind::Profiles => Profile::ALL
            .iter()
            .map(|p| {
                Entry::new(
                    p.name,
                    format!("MSS {} bytes, initial window {} segments, {}", p.mss, p.iw, p.about),
                )
            })
            .collect(),
        Kind::Knobs => {
            let entry =
                |k: &Knob| Entry { expects: Some(k.expects.to_string()), ..Entry::new(k.name, k.about) };
            Profile::KNOBS.iter().map(entry).collect()
        }
        Kind::Engines => ENGINES
            .iter()
            .map(|e| Entry { missing: e.absence().map(str::to_string), ..Entry::new(e.name, e.about) })
            .collect(),
    }
}

fn not_implemented() -> Vec<Entry> {
    let entry = |u: &slowstart::startup::not_implemented::NotImplemented| Entry {
        missing: Some(u.missing.to_string()),
        ..Entry::new(u.name, u.about).with_source(u.source)
    };
    NOT_IMPLEMENTED.iter().map(entry).collect()
}

/// Prints a list; on a terminal, lines are wrapped at its width.
fn show(heading: &str, list: &[Entry]) -> Result<()> {
    print(heading)?;
    let names = 4 + list.iter().map(|e| e.name.len()).max().unwrap_or(0);
    for entry in list {
        for (i, line) in entry.lines().iter().enumerate() {
            let name = if i == 0 { entry.name } else { "" };
            let line = format!("  {name:<0$}{line}", names - 2);
            print(&if io::stdout().is_terminal() { wrap(&line, names) } else { line })?;
        }
    }
    Ok(())
}

/// Prints a line; on a terminal, as many of its words as there is room for.
fn line(text: &str) -> Result<()> {
    print(&cut(text, room()))
}

/// Columns of a line.
fn room() -> usize {
    if io::stdout().is_terminal() { width() } else { usize::MAX }
}

/// The first words of a text that fit into `room` columns.
fn cut(text: &str, room: usize) -> String {
    let text = text.trim_end();
    if text.chars().count() <= room {
        return text.to_string();
    }
    let end = text.char_indices().nth(room - 1).map_or(text.len(), |(at, _)| at);
    let is_whole = text[end..].starts_with(' ');
    let end = if is_whole { end } else { text[..end].rfind(' ').unwrap_or(end) };
    text[..end].trim_end_matches(|c: char| c.is_whitespace() || "(,;:".contains(c)).to_string() + "…"
}

/// Startups, a line each.
fn brief(list: &[Entry]) -> Result<()> {
    let baseline = default_startup(SIMULATOR).unwrap_or_default();
    let heading = format!("{}; * compared by default, {baseline} as the baseline", Kind::Startups.heading());
    print(&wrap(&heading, 2))?;
    let names = list.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let (apart, ranked): (Vec<&Entry>, Vec<&Entry>) = list.iter().partition(|e| e.is_reconstructed);
    for (i, e) in ranked.iter().chain(&apart).enumerate() {
        if i == ranked.len() {
            line("reconstructed without their papers, neither ranked nor advised:")?;
        }
        let mark = if e.is_default { '*' } else { ' ' };
        let about = format!("  {:<names$} {mark} {}", e.name, e.about);
        let whole = format!("{about} ({})", e.sources.join("; "));
        // Part of a source names none.
        line(if whole.chars().count() <= room() { &whole } else { &about })?;
    }
    line("`slowstart list startups NAME` shows the parameters and their values.")
}

/// The least room for a description, in columns.
const LEAST_ABOUT: usize = 20;

/// Seeds of which the values of an ensemble are shown.
const DRAWN: u64 = 30;

/// Paths, a line each: rate, RTT and queue first, by which one chooses.
fn brief_paths(list: &[Entry]) -> Result<()> {
    let seeds: Vec<u64> = (0..DRAWN).collect();
    let row = |e: &Entry| -> Result<Vec<String>> {
        let of = shown(&PathSpec::load(e.name, None)?, &seeds);
        let mark = if e.is_default { " *" } else { "" };
        Ok(vec![
            format!("{}{mark}", e.name),
            of.rate,
            of.rtt,
            of.queue.unwrap_or_else(|| "no limit".into()),
            e.about.clone(),
        ])
    };
    let rows = list.iter().map(row).collect::<Result<Vec<_>>>()?;
    let headers = ["path", "rate", "RTT", "queue", "what it is"].map(String::from).to_vec();
    let wide =
        |i: usize| rows.iter().map(|r| r[i].chars().count()).chain([headers[i].len()]).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(wide);
    // A few letters of a description say nothing.
    let used = widths.iter().map(|w| w + 2).sum::<usize>();
    let described = !io::stdout().is_terminal() || width() >= used + LEAST_ABOUT;
    print("paths; * compared by default")?;
    for r in std::iter::once(&headers).chain(&rows) {
        let cells = r.iter().zip(widths).map(|(cell, w)| format!("{cell:<w$}")).collect::<Vec<_>>();
        let about = if described { r[4].as_str() } else { "" };
        line(&format!("  {}  {about}", cells.join("  ")))?;
    }
    line("`slowstart list paths NAME` shows what a path is, and the sources.")
}

/// A link of a path that is drawn.
#[derive(Serialize)]
struct LinkEntry {
    rate_bps: u64,
    held_by: Option<&'static str>,
    base_rtt_s: f64,
    buffer_bytes: Option<u64>,
}

/// Draws a path: its links in the order in which the data of a download crosses them, and what the path is as a whole.
/// Of an ensemble, the link has the median values.
fn draw(path: &PathSpec) -> Result<()> {
    let links = path.links();
    let slowest = links.iter().map(|l| l.rate).min();
    print("sender")?;
    for (number, link) in (1..).zip(&links) {
        let name = if links.len() == 1 { "link".to_string() } else { format!("link {number}") };
        let queue =
            link.buffer.map_or("a queue without limit".to_string(), |b| format!("a queue of {}", bytes(b.0)));
        let (rate, rtt) = (rate(link.rate.0 as f64), delay(link.base_rtt.as_secs_f64() * 1e3));
        let is_slowest = links.len() > 1 && Some(link.rate) == slowest;
        let mark = if is_slowest { "; the rate of the path" } else { "" };
        let held = link.held_by.map_or_else(String::new, |by| format!(" (held to that by {by})"));
        line(&format!("  |  {name}: {rate}{held}, {rtt} of RTT, {queue}{mark}"))?;
    }
    print("receiver")?;
    let of = shown(path, &(0..DRAWN).collect::<Vec<_>>());
    let drawn = if path.is_ensemble() { "; each run draws its values" } else { "" };
    line(&format!("as a whole: {}, RTT {}, BDP {}{drawn}", of.rate, of.rtt, of.bdp))
}

impl List {
    /// Draws the path, or prints it as JSON.
    fn path(&self, text: &str) -> Result<()> {
        if let Some(name) = self.names.first() {
            bail!("list: found {name:?} behind a path, expected one path, in quotes if it has spaces");
        }
        let path = PathSpec::load(text, None)?;
        if !self.json {
            return draw(&path);
        }
        let facts = path.facts();
        let links: Vec<LinkEntry> = path
            .links()
            .iter()
            .map(|l| LinkEntry {
                rate_bps: l.rate.0,
                held_by: l.held_by,
                base_rtt_s: l.base_rtt.as_secs_f64(),
                buffer_bytes: l.buffer.map(|b| b.0),
            })
            .collect();
        print(&serde_json::to_string_pretty(&serde_json::json!({
            "name": path.name,
            "rate_bps": facts.rate.0,
            "base_rtt_s": facts.base_rtt.as_secs_f64(),
            "bdp_bytes": facts.bdp.0,
            "links": links,
        }))?)
    }

    pub(crate) fn main(&self) -> Result<()> {
        let only = match &self.what {
            Some(What::Path(path)) => return self.path(path),
            Some(What::Kind(kind)) => Some(*kind),
            None => None,
        };
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|k| only.is_none_or(|only| only == *k)).collect();
        if let (Some(kind), false) = (only, self.names.is_empty()) {
            let all = entries(kind);
            let known: Vec<&str> = all.iter().map(|e| e.name).collect();
            if let Some(unknown) = self.names.iter().find(|n| !known.contains(&n.as_str())) {
                let hint = did_you_mean(unknown, &known);
                bail!("{}: found {unknown:?}{hint}, expected names that `slowstart list` shows", kind.name());
            }
            let some: Vec<Entry> =
                all.into_iter().filter(|e| self.names.iter().any(|n| n == e.name)).collect();
            if self.json {
                return print(&serde_json::to_string_pretty(&BTreeMap::from([(kind.name(), some)]))?);
            }
            return show(kind.heading(), &some);
        }
        if self.json {
            let mut all: BTreeMap<&str, Vec<Entry>> =
                kinds.into_iter().map(|k| (k.name(), entries(k))).collect();
            if self.all {
                all.insert("not_implemented", not_implemented());
            }
            return print(&serde_json::to_string_pretty(&all)?);
        }
        for kind in kinds {
            match kind {
                Kind::Startups => brief(&entries(kind))?,
                Kind::Paths => brief_paths(&entries(kind))?,
                _ => show(kind.heading(), &entries(kind))?,
            }
            if kind == Kind::Startups && self.all {
                show("Not implemented: the specification is incomplete.", &not_implemented())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_words() {
        let text = "  hystart  exits on a long ACK train (µs, RFC)";
        for room in 12..text.chars().count() {
            let cut = cut(text, room);
            let kept = cut.strip_suffix('…').expect("it is cut");
            assert!(cut.chars().count() <= room, "{room}: {cut}");
            let rest = text.strip_prefix(kept).expect("its first words");
            assert!(rest.starts_with([' ', ',', '(']), "{room}: {cut}");
        }
        assert_eq!(cut(text, 100), text);
        assert_eq!(cut("a_name_without_spaces", 6), "a_nam…");
    }
}
