//! A store that one process fills with the rows of files that other processes read.

use super::journal::{Claim, Journal, claim};
use super::{Captures, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Takes chunks that are not finished, and writes them when the lines of their files are there.
pub struct Collector {
    captures: Captures,
    store: Store,
    /// The keys of files in parts of other calls.
    others: BTreeSet<String>,
    /// Chunks to take.
    todo: VecDeque<usize>,
    /// Chunks that other processes had when they were to be taken.
    theirs: VecDeque<usize>,
    taken: BTreeMap<usize, Taken>,
}

/// A chunk that this process has.
struct Taken {
    journal: Journal,
    /// The files that its journal lacks. They are appended in this order, which is that of a call without
    /// other processes.
    lacks: VecDeque<usize>,
    /// Lines of files that are not the next.
    early: BTreeMap<usize, String>,
}

impl Collector {
    /// Opens a store for what is missing of these files.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn new(captures: Captures, store: Store) -> Result<Self, StoreError> {
        let others = captures.start(&store)?;
        let todo = (0..captures.chunks()).collect();
        Ok(Self { captures, store, others, todo, theirs: VecDeque::new(), taken: BTreeMap::new() })
    }

    /// Takes the next chunk; returns its number and the indices of the files that it lacks, or `None` if no
    /// chunk can be taken now. A chunk whose files are all in its journal is finished at once.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn take(&mut self) -> Result<Option<(usize, Vec<usize>)>, StoreError> {
        while let Some(chunk) = self.todo.pop_front() {
            let name = self.captures.name(chunk);
            let files = self.captures.range(chunk).map(|f| (f, self.captures.key(f)));
            let wanted: Vec<(usize, String)> = files.filter(|(_, key)| !self.others.contains(key)).collect();
            if wanted.is_empty() {
                continue;
            }
            match claim(&self.store, &name)? {
                Claim::Done => {}
                Claim::Theirs => self.theirs.push_back(chunk),
                Claim::Ours(journal) => {
                    let lacks = wanted.iter().filter(|(_, key)| !journal.done.contains(key));
                    let lacks: Vec<usize> = lacks.map(|(f, _)| *f).collect();
                    if lacks.is_empty() {
                        journal.finish(&self.store, &name)?;
                        continue;
                    }
                    let taken = Taken { journal, lacks: lacks.clone().into(), early: BTreeMap::new() };
                    self.taken.insert(chunk, taken);
                    return Ok(Some((chunk, lacks)));
                }
            }
        }
        Ok(None)
    }

    /// The number of chunks that other processes had when they were to be taken; `take` tries them again.
    pub fn retry(&mut self) -> usize {
        self.todo = std::mem::take(&mut self.theirs);
        self.todo.len()
    }

    /// Adds the lines of a file to a chunk that was taken. When all are there, the chunk is finished.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn add(&mut self, chunk: usize, file: usize, lines: String) -> Result<(), StoreError> {
        let Some(taken) = self.taken.get_mut(&chunk) else { return Ok(()) };
        taken.early.insert(file, lines);
        while let Some(next) = taken.lacks.front()
            && let Some(lines) = taken.early.remove(next)
        {
            taken.journal.append(self.captures.key(*next), &lines)?;
            taken.lacks.pop_front();
        }
        if taken.lacks.is_empty()
            && let Some(taken) = self.taken.remove(&chunk)
        {
            taken.journal.finish(&self.store, &self.captures.name(chunk))?;
        }
        Ok(())
    }

    /// Releases the chunks that are not finished, and writes the manifest.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn close(&mut self) -> Result<(), StoreError> {
        self.taken.clear();
        self.store.write_manifest().map(drop)
    }
}
