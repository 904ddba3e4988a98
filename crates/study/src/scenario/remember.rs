//! What an earlier connection leaves for startups that use it.

use super::StudyError;
use slowstart_sim::path::{Files, PathSpec};

/// Which path an earlier connection had, whose state startups get.
#[derive(Clone, Debug)]
pub enum Remember {
    /// There was none.
    Nothing,
    /// The path of the study.
    SamePath,
    /// Another, such as one that was slower then.
    Another(Box<PathSpec>),
}

impl Remember {
    /// What may be written.
    const EXPECTED: &'static str =
        "on, off, or the path of the earlier connection, such as \"rate=20Mbit rtt=40ms\"";

    /// Reads `on`, `off` or a path.
    pub(super) fn read(text: &str, files: &Files) -> Result<Self, StudyError> {
        let bad = |why: String| super::bad("remember", text, why);
        match text {
            "on" => Ok(Self::SamePath),
            "off" => Ok(Self::Nothing),
            path => match PathSpec::load_from(path, files) {
                Ok(path) if path.proxy().is_some() => Err(bad("a path without a proxy".to_string())),
                Ok(path) => Ok(Self::Another(Box::new(path))),
                Err(e) => Err(bad(format!("{} ({e})", Self::EXPECTED))),
            },
        }
    }

    /// The path of the earlier connection, where `own` is that of the study; `None` if there was none.
    pub fn path<'a>(&'a self, own: &'a PathSpec) -> Option<&'a PathSpec> {
        match self {
            Self::Nothing => None,
            Self::SamePath => Some(own),
            Self::Another(path) => Some(path),
        }
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        match self {
            Self::Nothing => "off",
            Self::SamePath => "on",
            Self::Another(path) => &path.name,
        }
    }
}
