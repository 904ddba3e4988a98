//! The exits that a control of this project reports for a connection, without those that were undone.

use crate::facts::{ExitReason, Facts, Kind};

/// Exits in order, each with what the caller keeps of it.
#[derive(Debug)]
pub(crate) struct Exits<T>(Vec<(T, bool)>);

impl<T> Default for Exits<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Exits<T> {
    /// Takes what a control reports; `exit` is called for the end of a startup. A loss that proves spurious takes
    /// back the exit that its reduction of cwnd was, unless there was another reduction since.
    pub(crate) fn see(&mut self, f: &Facts, exit: impl FnOnce() -> T) {
        let cut = matches!(f.kind, Kind::Loss | Kind::Timeout);
        if f.why != ExitReason::None {
            // `bbr3` reports an exit by loss with a later ACK.
            self.0.push((exit(), cut || f.why == ExitReason::Loss));
        } else if f.kind == Kind::Undo {
            self.0.pop_if(|(_, undoable)| *undoable);
        } else if cut || f.kind == Kind::Begin {
            self.0.last_mut().into_iter().for_each(|(_, undoable)| *undoable = false);
        }
    }

    /// Returns the exits that were not undone, the first one first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().map(|(exit, _)| exit)
    }

    /// Forgets the exits of which `keep` is false.
    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.0.retain(|(exit, _)| keep(exit));
    }

    /// Returns true if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
