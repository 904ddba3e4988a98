//! The keys of a study: the one list that study files, the command line, the browser and links have them
//! from.

use super::{LONGEST_TEXT, StudyError, bad};
use serde::{Deserialize, Serialize};
use slowstart_sim::suggest::did_you_mean;
use std::collections::BTreeMap;
use std::path::Path as FilePath;

/// What the value of a key is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A text, quoted in a file.
    Text,
    /// A whole number from 0 to this one.
    Number(u64),
    /// Several texts, in an order that is kept.
    List,
    /// Several texts, each with a name.
    Table,
}

impl KeyKind {
    /// Returns the words for the type of such a value in a study file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number(_) => "integer",
            Self::List => "list of strings",
            Self::Table => "table of strings",
        }
    }
}

/// A key of a study.
pub struct Key {
    /// Its name in a study file, in a request of the browser, in a link and as a keyword of Python.
    pub name: &'static str,
    /// Its name as an argument of the command line, without hyphens.
    pub argument: &'static str,
    /// What stands for its value in the help of the command line.
    pub value: &'static str,
    /// What it has if it is absent, in words; empty if nothing.
    pub default: &'static str,
    /// What it means, without a full stop.
    pub about: &'static str,
    /// What its value is.
    pub kind: KeyKind,
    /// Returns its parts as they are written: one of a text or a number, none if it is absent. Those of a
    /// table are `name=value`.
    pub parts: fn(&StudyText) -> Vec<String>,
    /// Sets it from its parts.
    ///
    /// # Errors
    /// What was found and what is expected.
    pub put: fn(&mut StudyText, Vec<String>) -> Result<(), String>,
    /// Makes it absent, so that its default holds.
    pub clear: fn(&mut StudyText),
}

/// A type that a key can have.
trait Field: Default {
    const KIND: KeyKind;
    fn parts(&self) -> Vec<String>;
    fn put(&mut self, parts: Vec<String>) -> Result<(), String>;

    fn is_absent(&self) -> bool {
        self.parts().is_empty()
    }
}

/// The one part of a value that is no list.
fn only(parts: Vec<String>) -> Result<String, String> {
    let found = parts.len();
    parts
        .into_iter()
        .next()
        .filter(|_| found == 1)
        .ok_or_else(|| format!("found {found} values, expected one"))
}

impl Field for String {
    const KIND: KeyKind = KeyKind::Text;

    fn parts(&self) -> Vec<String> {
        vec![self.clone()]
    }

    fn put(&mut self, parts: Vec<String>) -> Result<(), String> {
        *self = only(parts)?;
        Ok(())
    }
}

impl Field for Option<String> {
    const KIND: KeyKind = KeyKind::Text;

    fn parts(&self) -> Vec<String> {
        self.iter().cloned().collect()
    }

    fn put(&mut self, parts: Vec<String>) -> Result<(), String> {
        *self = Some(only(parts)?);
        Ok(())
    }
}

/// An absent or given whole number.
macro_rules! number {
    ($($type:ty),+) => { $(impl Field for Option<$type> {
        const KIND: KeyKind = KeyKind::Number(<$type>::MAX as u64);

        fn parts(&self) -> Vec<String> {
            self.iter().map(ToString::to_string).collect()
        }

        fn put(&mut self, parts: Vec<String>) -> Result<(), String> {
            let text = only(parts)?;
            let number = text.parse().map_err(|_| format!("found {text:?}, expected a whole number up to {}", <$type>::MAX))?;
            *self = Some(number);
            Ok(())
        }
    })+ };
}
number!(u32, u64);

impl Field for Vec<String> {
    const KIND: KeyKind = KeyKind::List;

    fn parts(&self) -> Vec<String> {
        self.clone()
    }

    fn put(&mut self, parts: Vec<String>) -> Result<(), String> {
        *self = parts;
        Ok(())
    }
}

impl Field for BTreeMap<String, String> {
    const KIND: KeyKind = KeyKind::Table;

    fn parts(&self) -> Vec<String> {
        self.iter().map(|(k, v)| format!("{k}={v}")).collect()
    }

    fn put(&mut self, parts: Vec<String>) -> Result<(), String> {
        let pair = |part: &String| {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("found {part:?}, expected key=value"))?;
            Ok((key.to_string(), value.to_string()))
        };
        *self = parts.iter().map(pair).collect::<Result<_, String>>()?;
        Ok(())
    }
}

/// Defines [`StudyText`] and its keys from one list. The first is required. Each has its type; its argument,
/// and what stands for its value in help; its default in words; and what it means.
macro_rules! keys {
    (
        $first:ident: $first_type:ty, $first_argument:literal $first_value:literal, $first_about:literal;
        $($name:ident: $type:ty, $argument:literal $value:literal, default $default:literal, $about:literal;)+
    ) => {
        /// A study as written; only the path is required. Each field is a key of [`StudyText::KEYS`].
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        pub struct StudyText {
            #[doc = $first_about]
            pub $first: $first_type,
            $(
                #[doc = $about]
                #[serde(default, skip_serializing_if = "Field::is_absent")]
                pub $name: $type,
            )+
        }

        impl StudyText {
            /// The keys of a study, in the order of documents.
            pub const KEYS: &'static [Key] = &[
                Key {
                    name: stringify!($first),
                    argument: $first_argument,
                    value: $first_value,
                    default: "",
                    about: $first_about,
                    kind: <$first_type as Field>::KIND,
                    parts: |t| t.$first.parts(),
                    put: |t, parts| t.$first.put(parts),
                    clear: |t| t.$first = Default::default(),
                },
                $(Key {
                    name: stringify!($name),
                    argument: $argument,
                    value: $value,
                    default: $default,
                    about: $about,
                    kind: <$type as Field>::KIND,
                    parts: |t| t.$name.parts(),
                    put: |t, parts| t.$name.put(parts),
                    clear: |t| t.$name = Default::default(),
                }),+
            ];
        }
    };
}

keys! {
    path: String, "path" "PATH",
        "A built-in path (`slowstart list paths`), a TOML file, or an inline path such as \"rate=50Mbit rtt=80ms queue=1bdp\" (`slowstart list path-keys`)";
    engine: Option<String>, "engine" "ENGINE", default "sim",
        "What runs it: sim, quic:STACK or kernel (`slowstart list engines`)";
    startups: Vec<String>, "startup" "STARTUPS", default "all",
        "Startups, as name or name:key=value,key=value, such as search,hystart:detect=delay (see `slowstart list startups`); with settings of the stack of its own after an @, as hystart@iw=20,pacing=on";
    profile: Option<String>, "profile" "PROFILE", default "linux-6.18",
        "TCP stack at both ends (see `slowstart list profiles`)";
    set: BTreeMap<String, String>, "set" "KNOBS", default "",
        "Settings of the stack, as key=value, such as iw=4,pacing=off (see `slowstart list knobs`)";
    avoidance: Option<String>, "avoidance" "AVOIDANCE", default "cubic",
        "Congestion avoidance after the startup, such as reno or cubic:beta=0.5 (see `slowstart list avoidances`)";
    size: Option<String>, "size" "SIZE", default "20 bandwidth-delay products, at least 10MB",
        "Bytes to transfer, such as 20MB";
    duration: Option<String>, "duration" "DURATION", default "",
        "Observe a transfer without end for this time, such as 30s; not together with a size";
    app: Option<String>, "app" "APP", default "bulk",
        "Application: bulk, connections:10 (a bulk transfer over ten), web, video, browser, bursts with pauses such as 5MB,2s,5MB, or writes by a schedule such as writes:500kB@1Mbit,2s,10MB";
    against: Vec<String>, "against" "FLOWS", default "",
        "Flows that share the path, as name@start or name@start/up: cubic@-10s starts 10 s before the studied flow, search@2s/up starts 2 s after it and uploads; cubic@-10s/2 crosses link 2 only, /1-2 links 1 and 2, and /+30ms adds 30 ms to its RTT";
    remember: Option<String>, "remember" "on|off|PATH", default "on",
        "Give startups the state of an earlier connection: on (over the same path), off, or the path that it had, such as 'rate=20Mbit rtt=40ms'";
    runs: Option<u32>, "runs" "N", default "10; 30 over a distribution of paths",
        "Number of runs, each with its own random seed";
    seed: Option<u64>, "seed" "SEED", default "1",
        "Random seed of the study";
}

/// Adds to serde's message about an unknown key the most similar of the keys that the message lists.
fn with_hint(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(found) = quoted.next().filter(|_| message.contains("unknown field")) else {
        return message.to_string();
    };
    let hint = did_you_mean(found, &quoted.collect::<Vec<_>>());
    message.replacen(&format!("`{found}`"), &format!("`{found}`{hint}"), 1)
}

impl StudyText {
    /// Fails if a text is longer than any value needs: an error about it would repeat it.
    ///
    /// # Errors
    /// With the key of the first.
    pub fn check_lengths(&self) -> Result<(), StudyError> {
        for key in Self::KEYS {
            if let Some(part) = (key.parts)(self).iter().find(|part| part.len() > LONGEST_TEXT) {
                let expected = format!("at most {LONGEST_TEXT}");
                return Err(bad(key.name, &format!("a text of {} bytes", part.len()), expected));
            }
        }
        Ok(())
    }

    /// Reads a study as written from a TOML file, unchecked.
    pub fn load(file: &FilePath) -> Result<Self, StudyError> {
        let failed = |why: String| StudyError::File { file: file.to_path_buf(), why };
        let text = slowstart_files::read_text(file, slowstart_files::MOST_TEXT)
            .map_err(|e| failed(e.to_string()))?;
        Self::read(&text).map_err(|e| failed(e.to_string()))
    }

    /// Reads it from its text in TOML.
    pub fn read(text: &str) -> Result<Self, StudyError> {
        toml::from_str(text).map_err(|e| StudyError::Toml(with_hint(&e.to_string())))
    }

    /// Returns the command line that runs it, quoted for a POSIX shell.
    pub fn command(&self) -> String {
        let mut words = vec!["slowstart".to_string(), "compare".to_string(), self.path.clone()];
        for key in Self::KEYS.iter().filter(|k| k.name != "path") {
            let parts = (key.parts)(self);
            if parts.is_empty() {
                continue;
            }
            let value = parts.join(",");
            if key.name == "against" {
                // A value that begins with a hyphen would be an argument of its own.
                words.push(format!("--{}={value}", key.argument));
            } else {
                words.extend([format!("--{}", key.argument), value]);
            }
        }
        words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
    }
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a key gives is what it takes, and what a file has.
    #[test]
    fn a_study_survives_its_parts_and_its_file() {
        let toml = "path = \"geo\"\nstartups = [\"search:threshold=0.3,drain=off\", \"hystart\"]\nsize = \"5MB\"\n\
                    against = [\"cubic@-5s\"]\nruns = 3\nseed = 7\n\n[set]\niw = \"4\"\n";
        let text = StudyText::read(toml).expect("a study");
        let mut again = StudyText::default();
        for key in StudyText::KEYS {
            let parts = (key.parts)(&text);
            if !parts.is_empty() {
                (key.put)(&mut again, parts).expect("its own parts");
            }
        }
        assert_eq!(again, text);
        assert_eq!(toml::to_string(&text).expect("TOML"), toml);
        for key in StudyText::KEYS {
            (key.clear)(&mut again);
        }
        assert_eq!(again, StudyText::default());
    }

    #[test]
    fn wrong_parts_are_named() {
        let put = |name: &str, part: &str| {
            let key = StudyText::KEYS.iter().find(|k| k.name == name).expect("a key");
            (key.put)(&mut StudyText::default(), vec![part.into()]).expect_err(part)
        };
        assert_eq!(
            put("runs", "4294967296"),
            "found \"4294967296\", expected a whole number up to 4294967295"
        );
        assert_eq!(put("set", "iw"), "found \"iw\", expected key=value");
    }

    #[test]
    fn a_study_is_a_command_line() {
        let mut text = StudyText {
            path: "rate=50Mbit rtt=80ms queue=\"codel ecn\"".into(),
            startups: vec!["search".into(), "hystart:detect=delay".into()],
            against: vec!["cubic@-10s".into()],
            runs: Some(3),
            ..StudyText::default()
        };
        text.set.insert("iw".into(), "4".into());
        assert_eq!(
            text.command(),
            "slowstart compare 'rate=50Mbit rtt=80ms queue=\"codel ecn\"' --startup search,hystart:detect=delay \
             --set iw=4 --against=cubic@-10s --runs 3"
        );
        let path = "it's $HOME; `x`".to_string();
        assert_eq!(
            StudyText { path, ..StudyText::default() }.command(),
            "slowstart compare 'it'\\''s $HOME; `x`'"
        );
    }
}
