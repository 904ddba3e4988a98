//! Mutants of which no call can show a difference, with the reason of each: `equal.txt`.
//!
//! A line `= REASON` begins a group. Each further line is one mutant: its file, the line of the source, the
//! expression and what it became, separated by tabs. An entry that fits no mutant, or one that the vectors find,
//! is an error.

use crate::mutate::Planted;
use std::collections::{BTreeMap, BTreeSet};

/// The table.
pub(crate) const EQUAL: &str = include_str!("../equal.txt");

/// One mutant of the table.
struct Entry {
    file: String,
    source: String,
    from: String,
    to: String,
}

impl Entry {
    fn is(&self, p: &Planted) -> bool {
        let m = &p.mutant;
        m.file.trim_start_matches("src/") == self.file
            && (&m.source, &m.from, &m.to) == (&self.source, &self.from, &self.to)
    }

    fn text(&self) -> String {
        format!("{}: `{}`: `{}` -> `{}`", self.file, self.source, self.from, self.to)
    }
}

pub(crate) struct Equal(Vec<Entry>);

impl Equal {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (mut entries, mut reason) = (Vec::new(), false);
        for line in text.lines().filter(|l| !l.is_empty()) {
            if let Some(why) = line.strip_prefix("= ") {
                reason = !why.trim().is_empty();
                continue;
            }
            let parts: Vec<String> = line.split('\t').map(String::from).collect();
            let [file, source, from, to] =
                <[String; 4]>::try_from(parts).map_err(|_| format!("not four parts: {line}"))?;
            if !reason {
                return Err(format!("no reason: {line}"));
            }
            entries.push(Entry { file, source, from, to });
        }
        Ok(Self(entries))
    }

    /// Entries that fit no mutant.
    pub(crate) fn stale(&self, planted: &[Planted]) -> Vec<String> {
        self.0.iter().filter(|e| !planted.iter().any(|p| e.is(p))).map(Entry::text).collect()
    }

    /// The survivors that the table explains.
    pub(crate) fn explained(
        &self,
        planted: &[Planted],
        survivors: &BTreeMap<u32, bool>,
    ) -> Result<BTreeSet<u32>, String> {
        let mut explained = BTreeSet::new();
        for e in &self.0 {
            let ids = planted.iter().filter(|p| e.is(p) && survivors.contains_key(&p.id));
            let before = explained.len();
            explained.extend(ids.map(|p| p.id));
            if explained.len() == before {
                return Err(format!("it is found, is no mutant, or is there twice: {}", e.text()));
            }
        }
        Ok(explained)
    }
}
