//! `HyStart`, Ha & Rhee 2011: leave when the train of closely spaced ACKs has grown as long as the path, or when the
//! round's least RTT rises. As published, as Linux `tcp_cubic.c` has had it, and as ns-3 `tcp-cubic.cc` has it.
//!
//! | `rules` | a train longer than | a rise of more than | judged from sample | rounds begin |
//! |---|---|---|---|---|
//! | `6.13` | half the least RTT; paced: all of it, and a cushion | 1/8 of the least RTT, 4..16 ms | 9 | with their first ACK |
//! | `5.16` | as 6.13 | as 6.13 | 9 | the same, but not below `low_window` |
//! | `5.10` | as 6.13 | as 6.13 | 9 | after their first ACK, and only while the window is needed |
//! | `ns3` | the least RTT | the least RTT, 4 ms..1 s | 9, least of the first 8 | after their first ACK |
//! | `paper` | or as long as half the least RTT | or of 1/16 of the last round's, from 2 ms | 8, least of the first 8 | with their first ACK |
//!
//! Linux departs from the paper: delay is compared with the least RTT of the connection, not of the round before; a
//! paced sender's train is compared with the whole least RTT, plus a cushion for bursts of a GSO packet's size; nothing
//! is detected below `low_window`. ns-3 departs from Linux, where it forgets to divide the least RTT by eight: it leaves
//! by delay only once the RTT has doubled.
//!
//! Departs from Linux: samples of the first second after a recovery are not discarded.
//!
//! Reconstructed because Algorithm 1 leaves it open (`paper`):
//! - rounds begin as in Linux 6.13; the paper does not say when they do;
//! - a tick of the clock is 1 ms, so that `max(2, ...)` is 2 ms (at HZ = 250 it is 8); only the threshold is rounded to
//!   ticks;
//! - the first round has none before it, and so no rise;
//! - what is found below `low_window` is forgotten, as in Linux; with `latch` it ends the startup at `low_window`, which
//!   the print can also mean.

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Instant, Mark, Span};
use crate::view::{Ack, Restart, View};

choice! {
    /// Which detector may end it.
    pub enum Detect {
        /// Both.
        Both = "both",
        /// The ACK train.
        Train = "train",
        /// The rise in delay.
        Delay = "delay",
    }
}

choice! {
    /// Whose rules.
    pub enum Rules {
        /// Linux since January 2025 (25c1a9ca53db): rounds begin whatever the window is.
        V613 = "6.13",
        /// Linux from November 2021 (4e1fddc98d25): only once the window has reached `low_window`.
        V516 = "5.16",
        /// Linux before: in the growth of the window, which comes after the sample and only if the window is needed.
        V510 = "5.10",
        /// ns-3, from 2019 to today: what ESS was compared with.
        Ns3 = "ns3",
        /// Algorithm 1 of the paper.
        Paper = "paper",
    }
}

params! {
    /// Parameters of `HyStart` (Linux: the module parameters of `tcp_cubic`).
    pub struct Params {
        /// Whose rules.
        rules: Rules = Rules::V613, "one of 6.13, 5.16, 5.10, ns3, paper", |_v| true;
        /// Which detector may end it.
        detect: Detect = Detect::Both, "one of both, train, delay", |_v| true;
        /// The window in segments below which nothing is detected.
        low_window: u32 = 16, "a number of segments", |_v| true;
        /// ACKs no further apart than this belong to one train.
        ack_delta: Span = Span::millis(2), "a time such as 2ms", |_v| true;
        /// What the paper's rules find below `low_window` ends the startup once the window is there.
        latch: bool = false, "on or off", |_v| true;
    }
}

impl Params {
    /// As published.
    pub fn paper() -> Self {
        Self { rules: Rules::Paper, ..Self::default() }
    }

    /// As ns-3 has it.
    pub fn ns3() -> Self {
        Self { rules: Rules::Ns3, ..Self::default() }
    }
}

/// Samples a round needs before its delay is judged.
const SAMPLES: u32 = 8;
/// A tick of the paper's clock.
const TICK: Span = Span::millis(1);

impl Rules {
    /// The length of train that does not end it yet.
    fn train(self, v: &View, delay_min: Span) -> Span {
        match self {
            Self::Ns3 => delay_min,
            // At half it ends already.
            Self::Paper => (delay_min / 2) - Span(1),
            _ => {
                let whole = delay_min + cushion(v);
                if v.pacing_on { whole } else { whole / 2 }
            }
        }
    }

    /// The RTT that does not end it yet. `before` is the least RTT of the round before.
    fn delay(self, delay_min: Span, before: Option<Span>) -> Span {
        let (ms, s) = (Span::millis, Span::secs);
        match self {
            Self::Ns3 => delay_min + delay_min.clamp(ms(4), s(1)),
            Self::Paper => before.map_or(Span::MAX, |b| {
                let rise = TICK * b.0.div_ceil(16 * TICK.0);
                b + rise.max(TICK * 2) - Span(1)
            }),
            _ => delay_min + (delay_min / 8).clamp(ms(4), ms(16)),
        }
    }
}

/// A cushion for the bursts that segmentation offload and receive aggregation make (`hystart_ack_delay`).
fn cushion(v: &View) -> Span {
    let burst = v.gso_max * 4;
    v.pacing_rate.filter(|r| r.0 > 0).map_or(Span::ZERO, |r| r.time_for(burst).min(Span::millis(1)))
}

/// `HyStart`.
#[derive(Clone, Debug)]
pub struct HyStart {
    pub(crate) params: Params,
    /// Least RTT of the connection.
    delay_min: Option<Span>,
    round: Option<Round>,
    /// What was found below `low_window`, with `latch`.
    latched: Option<Exit>,
}

#[derive(Clone, Debug)]
struct Round {
    start: Instant,
    /// The newest ACK of the train.
    last_ack: Instant,
    end: Mark,
    least: Option<Span>,
    samples: u32,
    /// The least of the round before.
    before: Option<Span>,
}

impl HyStart {
    /// With these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, delay_min: None, round: None, latched: None }
    }

    /// Begins a round if this ACK is beyond the last: `after(snd_una, end_seq)`, strictly.
    fn mark(&mut self, v: &View, ack: &Ack) {
        if self.round.as_ref().is_none_or(|r| ack.upto > r.end) {
            let before = self.round.as_ref().and_then(|r| r.least);
            self.round =
                Some(Round { start: v.now, last_ack: v.now, end: v.next, least: None, samples: 0, before });
        }
    }

    fn found(&mut self, v: &View, delay_min: Span, rtt: Span) -> Option<Exit> {
        let p = &self.params;
        let r = self.round.as_mut()?;
        let mut why = None;
        if p.detect != Detect::Delay && v.now.since(r.last_ack) <= p.ack_delta {
            r.last_ack = v.now;
            if v.now.since(r.start) > p.rules.train(v, delay_min) {
                why = Some(Exit::AckTrain);
            }
        }
        if p.detect != Detect::Train {
            // Linux takes every sample in before it judges, the others the first eight.
            let full = r.samples >= SAMPLES;
            r.samples += u32::from(!full);
            let first_eight = matches!(p.rules, Rules::Ns3 | Rules::Paper);
            let least =
                r.least.filter(|_| full && first_eight).unwrap_or_else(|| r.least.unwrap_or(rtt).min(rtt));
            r.least = Some(least);
            let judged = if p.rules == Rules::Paper { r.samples == SAMPLES } else { full };
            if judged && least > p.rules.delay(delay_min, r.before) {
                why = why.or(Some(Exit::Delay));
            }
        }
        why
    }
}

impl Startup for HyStart {
    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let grow = Step::grow(v.slow_start_growth(ack));
        let Some(rtt) = ack.rtt else { return grow };
        let rtt = rtt.max(Span::micros(1));
        let delay_min = self.delay_min.map_or(rtt, |d| d.min(rtt));
        self.delay_min = Some(delay_min);
        // A startup that has reached its threshold no longer looks (`tcp_in_slow_start`).
        if v.ssthresh.is_some_and(|t| v.cwnd >= t) {
            return grow;
        }
        let p = self.params;
        let low = v.cwnd < v.mss * u64::from(p.low_window);
        let marks_first = match p.rules {
            Rules::V613 | Rules::Paper => true,
            Rules::V516 => !low,
            Rules::V510 | Rules::Ns3 => false,
        };
        if marks_first {
            self.mark(v, ack);
        }
        // The paper measures below `low_window` too.
        let found = if low && p.rules != Rules::Paper { None } else { self.found(v, delay_min, rtt) };
        if low && p.latch {
            self.latched = self.latched.or(found);
        }
        if let Some(why) = found.or(self.latched).filter(|_| !low) {
            return Step::exit(why);
        }
        // `bictcp_cong_avoid` returns at once where the window is not needed.
        if p.rules == Rules::Ns3 || (p.rules == Rules::V510 && ack.limit.allows_growth()) {
            self.mark(v, ack);
        }
        grow
    }

    fn on_restart(&mut self, _: &View, why: Restart) -> Resume {
        // CA_Loss resets it; the restart of an idle window does not.
        match why {
            Restart::Timeout => Resume::FromStart,
            Restart::Idle => Resume::Standard,
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let span = |s: Option<Span>| s.map_or(f64::NAN, Span::as_secs_f64);
        put("delay_min_s", span(self.delay_min));
        put("round_least_s", span(self.round.as_ref().and_then(|r| r.least)));
        put("train_s", span(self.round.as_ref().map(|r| r.last_ack.since(r.start))));
    }
}

/// Nothing is kept for each packet.
const _: () = assert!(size_of::<HyStart>() <= 176 && size_of::<Bytes>() == 8);
