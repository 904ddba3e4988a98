//! `HyStart++`, RFC 9406: a rise of the round's least RTT slows growth to a quarter (conservative slow start); five
//! such rounds end it, a fall of the RTT takes it back.
//!
//! Departs from the RFC:
//! - `baseline=entry` compares the RTT in conservative slow start with the threshold that led there, not with the RTT
//!   that crossed it, as neqo does against oscillation; the RFC's reading is the default.

use super::Startup;
use crate::param::{choice, params};
use crate::round::{Round, RoundMin};
use crate::step::{Exit, Resume, Step};
use crate::units::Span;
use crate::view::{Ack, Restart, View};

choice! {
    /// What an RTT must fall below to end conservative slow start.
    pub enum Baseline {
        /// The RTT that began it (RFC 9406 §4.2).
        Rfc = "rfc",
        /// The threshold that RTT crossed.
        Entry = "entry",
    }
}

params! {
    /// Parameters of `HyStart++`, with the values of RFC 9406 §4.3.
    pub struct Params {
        /// Least rise that counts: `MIN_RTT_THRESH`.
        min_rtt_thresh: Span = Span::millis(4), "a time such as 4ms", |_v| true;
        /// Rise that always counts: `MAX_RTT_THRESH`.
        max_rtt_thresh: Span = Span::millis(16), "a time such as 16ms", |_v| true;
        /// The share of the last round's RTT in between: `MIN_RTT_DIVISOR`.
        rtt_divisor: u32 = 8, "a whole number from 1", |v| v > 0;
        /// Samples a round needs: `N_RTT_SAMPLE`.
        samples: u32 = 8, "a whole number from 1", |v| v > 0;
        /// How much slower conservative slow start is: `CSS_GROWTH_DIVISOR`.
        css_divisor: u32 = 4, "a whole number from 1", |v| v > 0;
        /// How many rounds it lasts, the first, partial one included: `CSS_ROUNDS`.
        css_rounds: u32 = 5, "a whole number from 1", |v| v > 0;
        /// Segments an ACK may earn a sender that does not pace: L.
        limit: u32 = 8, "a whole number from 1", |v| v > 0;
        /// What ends conservative slow start early.
        baseline: Baseline = Baseline::Rfc, "one of rfc, entry", |_v| true;
    }
}

/// `HyStart++`.
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
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, round: Round::default(), last: None, current: RoundMin::default(), css: None }
    }

    /// §4.2: into conservative slow start on a rise, out of it on a fall.
    fn judge(&mut self) {
        let p = &self.params;
        let Some(current) = self.current.least.filter(|_| self.current.samples >= p.samples) else { return };
        if self.css.as_ref().is_some_and(|css| current < css.baseline) {
            self.css = None;
        }
        // Slow start that resumes is judged at once: a fall that is still a rise over the last round, as within a round
        // that began with long RTTs, only lowers the baseline (and starts the count of rounds anew).
        if let (None, Some(last)) = (&self.css, self.last) {
            let rise = (last / u64::from(p.rtt_divisor)).min(p.max_rtt_thresh).max(p.min_rtt_thresh);
            if current >= last + rise {
                let baseline = if p.baseline == Baseline::Rfc { current } else { last + rise };
                self.css = Some(Css { baseline, rounds: 0 });
            }
        }
    }
}

impl Startup for HyStartPp {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let p = self.params;
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
        // §4.2: only in the initial slow start.
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
