//! The arguments that describe a study: what is transferred, by which startups, over which stack.

use anyhow::{Result, anyhow};
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use slowstart_study::scenario::{Key, KeyKind, StudyText};

/// The arguments of a study but its path and engine: one for each key.
pub(crate) type StudyArgs = KeyArgs<true>;

/// The arguments of one transfer: those of a study but its startups and runs.
pub(crate) type TransferArgs = KeyArgs<false>;

/// An argument for each key, with or without startups and runs: the words that were given for it.
#[derive(Clone, Default)]
pub(crate) struct KeyArgs<const RUNS: bool>(Vec<(&'static Key, Vec<String>)>);

impl<const RUNS: bool> KeyArgs<RUNS> {
    fn keys() -> impl Iterator<Item = &'static Key> {
        let left_out: &[&str] =
            if RUNS { &["path", "engine"] } else { &["path", "engine", "startups", "runs"] };
        StudyText::KEYS.iter().filter(|k| !left_out.contains(&k.name))
    }

    /// True if the argument of this key was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key.name == name)
    }

    /// The study over a path, as written.
    pub(crate) fn text(&self, path: &str) -> Result<StudyText> {
        let mut text = StudyText { path: path.to_string(), ..StudyText::default() };
        for (key, words) in &self.0 {
            let parts = match key.kind {
                KeyKind::Text | KeyKind::Number(_) => words.clone(),
                KeyKind::List => startups(words),
                KeyKind::Table => words.iter().flat_map(|w| w.split(',')).map(str::to_string).collect(),
            };
            (key.put)(&mut text, parts).map_err(|why| anyhow!("{}: {why}", key.argument))?;
        }
        Ok(text)
    }
}

/// The argument of a key.
fn argument(key: &'static Key) -> Arg {
    let separated = if matches!(key.kind, KeyKind::List | KeyKind::Table) {
        "; several are separated by commas"
    } else {
        ""
    };
    let default = match key.name {
        // A study file without startups has all.
        "startups" => " [default: those that people choose among]".to_string(),
        _ if key.default.is_empty() => String::new(),
        _ => format!(" [default: {}]", key.default),
    };
    let arg = Arg::new(key.argument)
        .long(key.argument)
        .value_name(key.value)
        .help(format!("{}{separated}{default}", key.about));
    match key.kind {
        KeyKind::Text => arg,
        KeyKind::Number(most) => arg.value_parser(value_parser!(u64).range(0..=most)),
        KeyKind::List | KeyKind::Table => arg.action(ArgAction::Append),
    }
}

impl<const RUNS: bool> Args for KeyArgs<RUNS> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::keys().map(argument)).mut_arg("duration", |a| a.conflicts_with("size"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const RUNS: bool> FromArgMatches for KeyArgs<RUNS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let words = |key: &Key| match key.kind {
            KeyKind::Number(_) => matches.get_one::<u64>(key.argument).map(|n| vec![n.to_string()]),
            _ => matches.get_many::<String>(key.argument).map(|all| all.cloned().collect()),
        };
        Ok(Self(Self::keys().filter_map(|key| Some((key, words(key)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Splits a list in which commas separate startups and also the parameters and settings of a startup: a piece of
/// the form key=value belongs to the startup before it.
pub(crate) fn startups(written: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in written.iter().flat_map(|w| w.split(',')) {
        let parameter = piece.split_once('=').is_some_and(|(key, _)| !key.contains([':', '@']));
        match all.last_mut().filter(|_| parameter) {
            Some(last) => {
                last.push(',');
                last.push_str(piece);
            }
            None => all.push(piece.to_string()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_separates_startups_and_parameters() {
        let written = ["search:threshold=0.3,drain=off,hystart".to_string(), "standard".to_string()];
        assert_eq!(startups(&written), ["search:threshold=0.3,drain=off", "hystart", "standard"]);
        let written = ["hystart,hystart@iw=20,pacing=on,search:drain=off@iw=4,standard".to_string()];
        let settings = ["hystart", "hystart@iw=20,pacing=on", "search:drain=off@iw=4", "standard"];
        assert_eq!(startups(&written), settings);
    }
}
