//! `HyStart`, Ha & Rhee, *Hybrid Slow Start for High-Bandwidth and Long-Distance Networks*, 2008: ends slow
//! start when the train of closely spaced ACKs becomes as long as the path, or when the minimum RTT of a
//! round rises. As published, as in three generations of Linux `tcp_cubic.c`, and as in ns-3 `tcp-cubic.cc`.
//!
//! | `rules` | ends if the train exceeds | ends if the RTT exceeds its baseline by | judged from sample | a round begins |
//! |---|---|---|---|---|
//! |`6.13` | half the minimum RTT; paced: all of it, plus a cushion | 1/8 of the minimum RTT, 4 to 16 ms | 9 | with its first ACK |
//! |`5.16` | as 6.13 | as 6.13 | 9 | as 6.13, but not below `low_window` |
//! |`5.10` | as 6.13 | as 6.13 | 9 | after its first ACK, and only while the window is used |
//! |`ns3` | the minimum RTT | the minimum RTT, 4 ms to 1 s | 9, minimum of the first 8 | after its first ACK |
//! |`paper` | or equals half the minimum RTT | or equals 1/16 of the last round's minimum, at least 2 ms | 8, minimum of the first 8 | with its first ACK |
//!
//! Linux departs from the paper: the baseline is the minimum RTT of the connection, not of the previous
//! round; the train of a paced sender is compared with the whole minimum RTT plus a cushion for GSO bursts;
//! there is no detection below `low_window`. ns-3 departs from Linux: it does not divide the minimum RTT by
//! eight, so it exits on delay only when the RTT has doubled.
//!
//! Departs from Linux: samples in the first second after a recovery are not discarded.
//!
//! Ours, off by default: `pause=2` does not judge the delay of a round before which no ACK came for a quarter of
//! the minimum RTT. What a path that is full delivers comes without pauses, so that no queue stood when the
//! packets of this round left, and a higher RTT is noise. `contrib/linux` has it as a patch.
//!
//! Reconstructed because Algorithm 1 leaves it open (`paper`):
//! - rounds begin as in Linux 6.13; the paper does not say when;
//! - a clock tick is 1 ms, so that `max(2, ...)` is 2 ms (at HZ = 250 it would be 8); only the threshold is
//!   rounded to ticks;
//! - the first round has no previous round to compare with.
//!
//! The text and figure 3b of the paper skip wide gaps in a train, where Algorithm 1 ends it at the first:
//! `train=sum` adds up the gaps of closely spaced ACKs only.

use super::Startup;
use crate::param::{choice, params};
use crate::step::{Exit, Resume, Step};
use crate::units::{Bytes, Instant, SendOrder, Span};
use crate::view::{Ack, Restart, View};

choice! {
    /// Which detectors are used.
    pub enum Detect {
        /// By the delay and by the ACK train.
        Both = "both",
        /// By the length of the ACK train alone.
        Train = "train",
        /// The rise in delay.
        Delay = "delay",
    }
}

choice! {
    /// What the length of an ACK train is.
    pub enum Train {
        /// From the start of the round to the last ACK before the first wide gap (Algorithm 1, Linux, ns-3).
        Gap = "gap",
        /// The sum of the gaps between closely spaced ACKs of the round (the paper's text and figure 3b).
        Sum = "sum",
    }
}

choice! {
    /// Whose rules to follow.
    pub enum Rules {
        /// Linux since January 2025 (25c1a9ca53db): rounds begin at any window.
        V613 = "6.13",
        /// Linux from November 2021 (4e1fddc98d25): rounds begin only at `low_window` or above.
        V516 = "5.16",
        /// Linux before that: rounds begin in the growth of the window, after the sample and only if the
        /// window is used.
        V510 = "5.10",
        /// ns-3 from 2019 on; the ESS paper compares with it.
        Ns3 = "ns3",
        /// Algorithm 1 of the paper.
        Paper = "paper",
    }
}

params! {
    /// Parameters of `HyStart` (Linux: the module parameters of `tcp_cubic`).
    pub struct Params {
        /// Whose rules to follow.
        rules: Rules = Rules::V613, "one of 6.13, 5.16, 5.10, ns3, paper", |_v| true;
        /// Which detectors are used.
        detect: Detect = Detect::Both, "one of both, train, delay", |_v| true;
        /// Window below which nothing is detected, in segments.
        low_window: u32 = 16, "a number of segments", |_v| true;
        /// Maximum time between ACKs of one train.
        ack_delta: Span = Span::millis(2), "a time such as 2ms", |_v| true;
        /// With the paper's rules, a detection below `low_window` ends the startup when the window reaches
        /// it, as Algorithm 1 prints it: `found` is sticky. Off, it is discarded, as in Linux.
        latch: bool = false, "on or off", |_v| true;
        /// What the length of a train is.
        train: Train = Train::Gap, "one of gap, sum", |_v| true;
        /// The delay of a round is not judged if the time without ACKs before it exceeded the minimum RTT,
        /// halved this many times. 0: every round is judged, as in Linux.
        pause: u32 = 0, "a number of halvings, to 8", |v| v <= 8;
        /// Detect at `cwnd == ssthresh` too, as Algorithm 1 prints it, and not only below.
        at_ssthresh: bool = false, "on or off", |_v| true;
    }
}

impl Params {
    /// Returns the parameters of the paper.
    pub fn paper() -> Self {
        Self { rules: Rules::Paper, latch: true, ..Self::default() }
    }

    /// Returns the parameters of ns-3.
    pub fn ns3() -> Self {
        Self { rules: Rules::Ns3, ..Self::default() }
    }
}

/// Samples per round before its delay is judged.
const SAMPLES: u32 = 8;
/// A clock tick of the paper.
const TICK: Span = Span::millis(1);

impl Rules {
    /// Returns the longest train that does not end the startup.
    fn train(self, v: &View, delay_min: Span) -> Span {
        match self {
            Self::Ns3 => delay_min,
            // A train of exactly half ends it.
            Self::Paper => (delay_min / 2) - Span(1),
            _ => {
                let whole = delay_min + cushion(v);
                if v.pacing_on { whole } else { whole / 2 }
            }
        }
    }

    /// Returns the largest RTT that does not end the startup. `before` is the minimum RTT of the previous
    /// round.
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

/// The allowance for bursts by segmentation offload and receive aggregation (`hystart_ack_delay`).
fn cushion(v: &View) -> Span {
    let burst = v.gso_max * 4;
    v.pacing_rate.filter(|r| r.0 > 0).map_or(Span::ZERO, |r| r.time_for(burst).min(Span::millis(1)))
}

/// The startup `HyStart`, one instance a connection.
#[derive(Clone, Debug)]
pub struct HyStart {
    pub(crate) params: Params,
    /// Minimum RTT of the connection.
    delay_min: Option<Span>,
    round: Option<Round>,
    /// A detection below `low_window`, with `latch`.
    latched: Option<Exit>,
    /// When the newest sample came.
    newest: Option<Instant>,
    /// It has ended slow start by its own rule (`ca->found`).
    left: bool,
}

#[derive(Clone, Debug)]
struct Round {
    start: Instant,
    /// When the last ACK of the train arrived; with `train=sum`, the last ACK.
    last_ack: Instant,
    /// The length of the train.
    train: Span,
    end: SendOrder,
    least: Option<Span>,
    samples: u32,
    /// The minimum RTT of the previous round.
    before: Option<Span>,
    /// It follows a pause, so its delay is not judged.
    paused: bool,
}

impl HyStart {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, delay_min: None, round: None, latched: None, newest: None, left: false }
    }

    /// Begins a round if this ACK is beyond the end of the last, the first with the first that advances: `after(snd_una,
    /// end_seq)`.
    fn mark(&mut self, v: &View, ack: &Ack) {
        if self.round.as_ref().map_or(ack.bytes > Bytes::ZERO, |r| ack.upto > r.end) {
            let before = self.round.as_ref().and_then(|r| r.least);
            let pause = Span(self.delay_min.unwrap_or_default().0 >> self.params.pause);
            let paused = self.params.pause > 0 && self.newest.is_none_or(|t| v.now.since(t) > pause);
            self.round = Some(Round {
                start: v.now,
                last_ack: v.now,
                train: Span::ZERO,
                end: v.next,
                least: None,
                samples: 0,
                before,
                paused,
            });
        }
        self.newest = Some(v.now);
    }

    fn found(&mut self, v: &View, delay_min: Span, rtt: Span) -> Option<Exit> {
        let p = &self.params;
        let r = self.round.as_mut()?;
        let mut why = None;
        if p.detect != Detect::Delay {
            let gap = v.now.since(r.last_ack);
            let close = gap <= p.ack_delta;
            if close {
                r.train = if p.train == Train::Sum { r.train + gap } else { v.now.since(r.start) };
                if r.train > p.rules.train(v, delay_min) {
                    why = Some(Exit::AckTrain);
                }
            }
            if close || p.train == Train::Sum {
                r.last_ack = v.now;
            }
        }
        if p.detect != Detect::Train {
            // Linux includes every sample before it judges, the others only the first eight.
            let full = r.samples >= SAMPLES;
            r.samples += u32::from(!full);
            let first_eight = matches!(p.rules, Rules::Ns3 | Rules::Paper);
            let least =
                r.least.filter(|_| full && first_eight).unwrap_or_else(|| r.least.unwrap_or(rtt).min(rtt));
            r.least = Some(least);
            let judged = if p.rules == Rules::Paper { r.samples == SAMPLES } else { full };
            if judged && !r.paused && least > p.rules.delay(delay_min, r.before) {
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
        let p = self.params;
        // No detection at or above the threshold (`tcp_in_slow_start`).
        if v.ssthresh.is_some_and(|t| v.cwnd > t || (v.cwnd == t && !p.at_ssthresh)) {
            return grow;
        }
        let low = v.cwnd < v.mss * u64::from(p.low_window);
        let marks_first = match p.rules {
            Rules::V613 | Rules::Paper => true,
            Rules::V516 => !low,
            Rules::V510 | Rules::Ns3 => false,
        };
        if marks_first {
            self.mark(v, ack);
        }
        // The paper also measures below `low_window`.
        let found = if low && p.rules != Rules::Paper { None } else { self.found(v, delay_min, rtt) };
        if low && p.latch {
            self.latched = self.latched.or(found);
        }
        if let Some(why) = found.or(self.latched).filter(|_| !low) {
            self.left = true;
            return Step::exit(why);
        }
        // `bictcp_cong_avoid` returns early if the window is not used.
        if p.rules == Rules::Ns3 || (p.rules == Rules::V510 && ack.limit.allows_growth()) {
            self.mark(v, ack);
        }
        grow
    }

    fn on_restart(&mut self, _: &View, why: Restart) -> Resume {
        // CA_Loss resets the state; the restart after an idle period does not: what has not ended slow start
        // yet still may.
        match why {
            Restart::Timeout | Restart::Avoidance => Resume::FromStart,
            Restart::Idle if self.left => Resume::Standard,
            Restart::Idle => Resume::Unchanged,
        }
    }

    fn observe(&mut self, rtt: Span) {
        // `cubictcp_acked` measures in avoidance too. It sees no sample of the handshake, which `v.min_rtt` contains.
        self.delay_min = Some(self.delay_min.map_or(rtt, |d| d.min(rtt)));
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let span = |s: Option<Span>| s.map_or(f64::NAN, Span::as_secs_f64);
        put("delay_min_s", span(self.delay_min));
        put("round_least_s", span(self.round.as_ref().and_then(|r| r.least)));
        put("train_s", span(self.round.as_ref().map(|r| r.train)));
    }
}

/// The state has a fixed size.
const _: () = assert!(size_of::<HyStart>() <= 192 && size_of::<Bytes>() == 8);
