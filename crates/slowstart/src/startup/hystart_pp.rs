//! `HyStart++`, RFC 9406: when the minimum RTT of a round rises, growth falls to a quarter (conservative slow
//! start). Five such rounds end the startup; if the RTT falls again, normal slow start resumes.
//!
//! Departs from the RFC:
//! - `baseline=entry` compares the RTT in conservative slow start with the threshold that the RTT crossed, as
//!   neqo does to avoid oscillation. The default compares it with the RTT itself, as the RFC does.
//! - with `fresh` conservative slow start ends only after as many samples in it as began it, as in neqo (#3505).
//! - `skip` leaves out ACKs of a limited sender, as neqo does: they bring no RTT sample and end no round.

use super::Startup;
use super::skip::Skip;
use crate::param::{choice, params};
use crate::round::{Round, RoundMin};
use crate::step::{Exit, Resume, Step};
use crate::units::Span;
use crate::view::{Ack, Restart, View};

choice! {
    /// What the RTT must fall below to end conservative slow start.
    pub enum Baseline {
        /// The RTT that started it (RFC 9406 §4.2).
        Rfc = "rfc",
        /// The threshold that this RTT crossed.
        Entry = "entry",
    }
}

params! {
    /// Parameters of `HyStart++`, with the values of RFC 9406 §4.3.
    pub struct Params {
        /// Minimum rise that counts: `MIN_RTT_THRESH`.
        min_rtt_thresh: Span = Span::millis(4), "a time such as 4ms", |_v| true;
        /// Rise that always counts: `MAX_RTT_THRESH`.
        max_rtt_thresh: Span = Span::millis(16), "a time such as 16ms", |_v| true;
        /// Divisor of the last round's RTT for the threshold in between: `MIN_RTT_DIVISOR`.
        rtt_divisor: u32 = 8, "a whole number from 1", |v| v > 0;
        /// Samples required per round: `N_RTT_SAMPLE`.
        samples: u32 = 8, "a whole number from 1", |v| v > 0;
        /// Divisor of the growth in conservative slow start: `CSS_GROWTH_DIVISOR`.
        css_divisor: u32 = 4, "a whole number from 1", |v| v > 0;
        /// Duration of conservative slow start in rounds, including the first, partial one: `CSS_ROUNDS`.
        css_rounds: u32 = 5, "a whole number from 1", |v| v > 0;
        /// Maximum growth per ACK without pacing, in segments: L.
        limit: u32 = 8, "a whole number from 1", |v| v > 0;
        /// What ends conservative slow start early.
        baseline: Baseline = Baseline::Rfc, "one of rfc, entry", |_v| true;
        /// Conservative slow start ends only after `samples` samples in it.
        fresh: bool = false, "on or off", |_v| true;
        /// Which ACKs are not judged.
        skip: Skip = Skip::Off, "one of off, limited, paced", |_v| true;
    }
}

/// The startup `HyStart++`, one instance a connection.
#[derive(Clone, Debug)]
pub struct HyStartPp {
    pub(crate) params: Params,
    round: Round,
    last: Option<Span>,
    current: RoundMin,
    css: Option<Css>,
}

#[derive(Clone, Debug)]
struct Css {
    baseline: Span,
    rounds: u32,
}

impl HyStartPp {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, round: Round::default(), last: None, current: RoundMin::default(), css: None }
    }

    /// Returns true in conservative slow start.
    pub(super) fn is_conservative(&self) -> bool {
        self.css.is_some()
    }

    /// §4.2: enters conservative slow start when the RTT rises, and leaves it when the RTT falls.
    fn judge(&mut self) {
        let p = &self.params;
        let Some(current) = self.current.least.filter(|_| self.current.samples >= p.samples) else { return };
        if self.css.as_ref().is_some_and(|css| current < css.baseline) {
            self.css = None;
        }
        // After leaving it, the RTT is judged again at once: if it is still above the last round's threshold,
        // as within a round that began with long RTTs, only the baseline falls (and the count of rounds
        // restarts).
        if let (None, Some(last)) = (&self.css, self.last) {
            let rise = (last / u64::from(p.rtt_divisor)).min(p.max_rtt_thresh).max(p.min_rtt_thresh);
            if current >= last + rise {
                let baseline = if p.baseline == Baseline::Rfc { current } else { last + rise };
                self.css = Some(Css { baseline, rounds: 0 });
                if p.fresh {
                    self.current.samples = 0;
                }
            }
        }
    }
}

impl Startup for HyStartPp {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let p = self.params;
        if p.skip.skips(ack.limit) {
            return Step::HOLD;
        }
        if self.round.ends_round(ack.upto, v.next) {
            self.last = self.current.restart();
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds >= p.css_rounds {
                    return Step::exit(Exit::CssRounds);
                }
            }
        }
        // §4.2: cwnd += min(N, L * SMSS), and a quarter of it in CSS; L is infinite for a paced sender.
        let earned = v.slow_start_growth(ack);
        let n = if v.pacing_on { earned } else { earned.min(v.mss * u64::from(p.limit)) };
        if let Some(rtt) = ack.rtt {
            self.current.add(rtt);
            self.judge();
        }
        Step::grow(if self.css.is_some() { n / u64::from(p.css_divisor) } else { n })
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        // §4.2: only for the initial slow start.
        Resume::Standard
    }

    fn phase(&self) -> &'static str {
        if self.css.is_some() { "css" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let span = |s: Option<Span>| s.map_or(f64::NAN, Span::as_secs_f64);
        put("last_round_least_s", span(self.last));
        put("round_least_s", span(self.current.least));
        put("css_rounds", self.css.as_ref().map_or(f64::NAN, |c| f64::from(c.rounds)));
    }
}
