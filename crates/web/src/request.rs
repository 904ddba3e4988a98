//! What a page asks for: a study, with the files its path names.

use serde::{Deserialize, Serialize};
use slowstart_lab::path::Files;
use slowstart_lab::scenario::{Study, StudyText};
use std::collections::BTreeMap;

/// A study as a page writes it: the keys of a study file, and the texts of the files that its path names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// A built-in name, or keys of a path.
    pub path: String,
    /// Startups; all if none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub startups: Vec<String>,
    /// The avoidance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avoidance: Option<String>,
    /// Bytes to transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Time to observe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Flows beside the one studied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// Whether startups get the state of an earlier connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
    /// How many runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// The seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Settings of the stack.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Texts of files, by their names in the path.
    #[serde(skip_serializing)]
    pub files: BTreeMap<String, String>,
}

/// Studies of more runs than this are left to the command line.
const MOST_JOBS: usize = 20_000;

impl Request {
    /// Reads a request. An error is a sentence for the page.
    pub fn read(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|e| format!("the request is not valid: {e}"))
    }

    /// The study, checked.
    pub fn study(&self) -> Result<Study, String> {
        let text = StudyText {
            path: self.path.clone(),
            engine: None,
            startups: self.startups.clone(),
            avoidance: self.avoidance.clone(),
            size: self.size.clone(),
            duration: self.duration.clone(),
            profile: self.profile.clone(),
            set: self.set.clone(),
            app: self.app.clone(),
            against: self.against.clone(),
            remember: self.remember.clone(),
            runs: self.runs,
            seed: self.seed,
        };
        let files = self.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
        let study = Study::check_with(&text, &Files::given(files)).map_err(|e| e.to_string())?;
        let jobs = study.jobs().len();
        if jobs > MOST_JOBS {
            return Err(format!(
                "found {jobs} runs in all, expected at most {MOST_JOBS} in a browser; the command line has no such limit"
            ));
        }
        Ok(study)
    }

    /// The study file (TOML) of the same study.
    pub fn toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|e| e.to_string())
    }

    /// The command line that runs the same study, quoted for a POSIX shell.
    pub fn command(&self) -> String {
        let mut words = vec!["slowstart".to_string(), "compare".to_string(), self.path.clone()];
        let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        if !self.startups.is_empty() {
            add("startup", self.startups.join(","));
        }
        let texts = [
            ("avoidance", &self.avoidance),
            ("size", &self.size),
            ("duration", &self.duration),
            ("profile", &self.profile),
            ("app", &self.app),
            ("remember", &self.remember),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                add(name, value.clone());
            }
        }
        if !self.set.is_empty() {
            add("set", self.set.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(","));
        }
        if !self.against.is_empty() {
            // A value that begins with a hyphen would be an argument of its own.
            words.push(format!("--against={}", self.against.join(",")));
        }
        for (name, value) in [("runs", self.runs.map(u64::from)), ("seed", self.seed)] {
            if let Some(value) = value {
                words.extend([format!("--{name}"), value.to_string()]);
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

    #[test]
    fn a_request_is_a_study_file_and_a_command_line() {
        let json = r#"{"path":"rate=50Mbit rtt=80ms queue=\"codel ecn\"","startups":["search","hystart:detect=delay"],
            "against":["cubic@-10s"],"runs":3,"set":{"iw":"4"}}"#;
        let request = Request::read(json).expect("valid");
        assert_eq!(
            request.command(),
            "slowstart compare 'rate=50Mbit rtt=80ms queue=\"codel ecn\"' --startup search,hystart:detect=delay \
             --set iw=4 --against=cubic@-10s --runs 3"
        );
        let again: StudyText = toml::from_str(&request.toml().expect("TOML")).expect("a study file");
        assert_eq!((again.path, again.startups), (request.path.clone(), request.startups.clone()));
        assert_eq!((again.runs, again.set), (Some(3), request.set.clone()));
    }

    #[test]
    fn words_of_a_shell_stay_one_word() {
        let request = Request { path: "it's $HOME; `x`".to_string(), ..Request::default() };
        assert_eq!(request.command(), "slowstart compare 'it'\\''s $HOME; `x`'");
    }

    #[test]
    fn what_is_wrong_is_said_in_a_sentence() {
        let of = |json: &str| Request::read(json).and_then(|r| r.study().map(|_| ())).expect_err(json);
        assert!(of("{\"path\":\"geoo\"}").contains("did you mean"));
        assert!(of("{\"pathh\":1}").contains("unknown field"));
        assert!(of("{\"path\":\"geo\",\"runs\":100000}").contains("at most 20000"));
    }
}
