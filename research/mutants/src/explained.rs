//! Why mutants survive: `equal.txt` has those of which no call can show a difference, `open.txt` those that a call
//! would show which the vectors do not have, and which call that is.
//!
//! A line `= REASON` begins a group. Each further line is one mutant: its file, the line of the source, the
//! expression and what it became, separated by tabs. An entry that fits no mutant, or one that the vectors find,
//! is an error, as is a survivor without an entry.

use crate::mutate::{Mutant, Planted};
use std::collections::BTreeSet;

/// The tables.
pub(crate) const EQUAL: &str = include_str!("../equal.txt");
pub(crate) const OPEN: &str = include_str!("../open.txt");

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

pub(crate) struct Table(Vec<Entry>);

/// The line of a table for a mutant.
pub(crate) fn line(m: &Mutant) -> String {
    [m.file.trim_start_matches("src/"), &m.source, &m.from, &m.to].join("\t")
}

impl Table {
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
        survivors: &BTreeSet<u32>,
    ) -> Result<BTreeSet<u32>, String> {
        let mut explained = BTreeSet::new();
        for e in &self.0 {
            let ids = planted.iter().filter(|p| e.is(p) && survivors.contains(&p.id));
            let before = explained.len();
            explained.extend(ids.map(|p| p.id));
            if explained.len() == before {
                return Err(format!("it is found, is no mutant, or is there twice: {}", e.text()));
            }
        }
        Ok(explained)
    }
}
