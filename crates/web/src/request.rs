//! What a page asks for: a study, with the files its path names.

use serde_json::{Map, Value};
use slowstart_sim::path::Files;
use slowstart_study::scenario::{Study, StudyText};
use std::collections::BTreeMap;

/// A study as a page writes it: the keys of a study file, and in `files` the texts of the files that its path
/// names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The keys of the study.
    pub text: StudyText,
    /// Texts of files, by their names in the path.
    pub files: BTreeMap<String, String>,
}

/// Studies of more runs than this are left to the command line.
const MOST_JOBS: usize = 20_000;

impl Request {
    /// Reads a request. An error is a sentence for the page.
    pub fn read(json: &str) -> Result<Self, String> {
        let read = |json: &str| {
            let mut all: Map<String, Value> = serde_json::from_str(json)?;
            let files = all.remove("files").map_or(Ok(BTreeMap::new()), serde_json::from_value)?;
            Ok(Self { text: serde_json::from_value(all.into())?, files })
        };
        read(json).map_err(|e: serde_json::Error| format!("the request is not valid: {e}"))
    }

    /// Returns the study, checked; an error is a sentence for the page.
    pub fn study(&self) -> Result<Study, String> {
        let files = self.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
        let study = Study::check_with(&self.text, &Files::given(files)).map_err(|e| e.to_string())?;
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
        toml::to_string(&self.text).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_study_file() {
        let json = r#"{"path":"rate=50Mbit rtt=80ms queue=\"codel ecn\"","startups":["search","hystart:detect=delay"],
            "against":["cubic@-10s"],"runs":3,"set":{"iw":"4"},"files":{"a":"1"}}"#;
        let request = Request::read(json).expect("valid");
        assert_eq!(request.files["a"], "1");
        let again: StudyText = toml::from_str(&request.toml().expect("TOML")).expect("a study file");
        assert_eq!(again, request.text);
        assert_eq!((again.runs, again.set["iw"].as_str()), (Some(3), "4"));
    }

    /// The page keeps the fields of a study in its address.
    #[test]
    fn the_page_has_the_keys_of_a_study() {
        let page = include_str!("../page/state.js");
        let (_, list) = page.split_once("STUDY_FIELDS = [").expect("a list");
        let list = list.split(']').next().unwrap_or_default();
        let fields: Vec<&str> = list.split(',').map(|f| f.trim().trim_matches('\'')).collect();
        let keys = StudyText::KEYS.iter().map(|k| k.name).filter(|k| !["path", "engine"].contains(k));
        assert_eq!(fields, keys.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_wrong_is_said_in_a_sentence() {
        let of = |json: &str| Request::read(json).and_then(|r| r.study().map(|_| ())).expect_err(json);
        assert!(of("{\"path\":\"geoo\"}").contains("did you mean"));
        assert!(of("{\"pathh\":1}").contains("unknown field"));
        assert!(of("{\"path\":\"geo\",\"runs\":100000}").contains("at most 20000"));
    }
}
