//! The facts of an event for controls that stand in place of the sender's.

use slowstart::units::{Bytes, Gain, Instant, Rate, Span};
use slowstart::view::Facts;

/// The sender's facts, of which each control has its own pacing. One copy serves them all.
#[derive(Debug)]
pub struct OwnFacts {
    facts: Facts,
    /// The pacing rate that the file states, and whether the host seems to pace.
    stated: Option<Rate>,
    paces: bool,
    /// The window that the pacing rate is for: many controls have the same.
    newest: Option<Bytes>,
}

impl From<Facts> for OwnFacts {
    fn from(facts: Facts) -> Self {
        Self { facts, stated: facts.pacing_rate, paces: facts.pacing_on, newest: None }
    }
}

impl OwnFacts {
    /// When the event happened.
    pub fn now(&self) -> Instant {
        self.facts.now
    }

    /// The facts for a control with this window: with the pacing rate for it, if the file does not state one
    /// (`tcp_update_pacing_rate`). `pacing` is whether the host paces; `None`: as it seems.
    pub fn of(&mut self, cwnd: Bytes, pacing: Option<bool>) -> &Facts {
        let f = &mut self.facts;
        if self.newest != Some(cwnd) {
            let rate = || Some(Rate::new(cwnd, f.srtt.filter(|s| *s > Span::ZERO)?)? * Gain::percent(200));
            f.pacing_rate = self.stated.or_else(rate);
            self.newest = Some(cwnd);
        }
        f.pacing_on = pacing.unwrap_or(self.paces);
        f
    }
}
