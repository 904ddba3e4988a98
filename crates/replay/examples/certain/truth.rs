//! What happened in a simulated run, and how an answer compares with it.

use crate::conditions::{Capacity, Case};
use slowstart_replay::transfer::{ExitClass, Transfer};
use slowstart_study::record::{Class, Sample};
use slowstart_study::run::Outcome;

/// What is in flight of what the path holds, between which it is neither full nor empty: classes of either
/// kind are right.
const BORDER: (f64, f64) = (0.85, 1.2);
/// Bytes on the wire of a segment with this payload.
const WIRE: f64 = 1500.0 / 1448.0;

/// The end of a run's slow start, in seconds from the capture's first packet.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    /// Between which times an answer is right; `None` if the run was in slow start to the end.
    pub(crate) exit: Option<(f64, f64)>,
    /// The classes that are right; empty if any is.
    pub(crate) classes: Vec<Class>,
}

/// An answer, compared with the truth.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Judged {
    /// The exit within a round trip, and its class if one is given.
    Right,
    /// Another exit or class, or an exit where there was none.
    Wrong,
    /// That it is not known, or that there was no exit.
    Unknown,
}

impl Truth {
    /// What the run shows of itself. `end` is the end at which the capture is made.
    pub(crate) fn of(case: &Case, o: &Outcome, end: u8) -> Self {
        let begin = o.trace.packets.iter().find(|p| p.end == end).map_or(0.0, |p| p.at.0 as f64 / 1e9);
        let samples: Vec<&Sample> = o.trace.samples.iter().filter(|s| s.flow == 0).collect();
        // A loss that proved spurious has taken the threshold back: the last one counts.
        let unset = samples.iter().rposition(|s| s.ssthresh_bytes.is_none());
        let set = match unset {
            Some(i) => samples.get(i + 1).map(|s| s.time_s),
            None => samples.first().map(|s| s.time_s),
        };
        // BBR sets no threshold, and the exit of others may be noticed before its window shows it.
        let stated = o.row.exit.as_ref().map(|e| e.time_s);
        let (Some(first), Some(last)) = (
            [set, stated].into_iter().flatten().reduce(f64::min),
            [set, stated].into_iter().flatten().reduce(f64::max),
        ) else {
            return Self { exit: None, classes: Vec::new() };
        };
        let first = if set.is_some_and(|s| stated.is_some_and(|e| e < s - 10.0 * o.row.base_rtt_s)) {
            // The one that was taken back.
            last
        } else {
            first
        };
        let near = |at: f64| samples.iter().rev().find(|s| s.time_s <= at).copied();
        let rtt = samples
            .iter()
            .filter(|s| (s.time_s - last).abs() < o.row.base_rtt_s * 3.0)
            .filter_map(|s| s.rtt_s)
            .fold(case.base_rtt_s(first), f64::max);
        let rtt = rtt.max(near(last).and_then(|s| s.rtt_s).unwrap_or(0.0));
        let late = if end == 0 { 0.0 } else { 0.5 };
        let exit =
            Some((first - begin - rtt * (1.0 + late) - 2e-3, last - begin + rtt * (1.0 + late) + 2e-3));
        let by_congestion = samples
            .iter()
            .find(|s| s.time_s >= last)
            .is_some_and(|s| s.ssthresh_bytes.is_some_and(|t| t * 10 < s.inflight_bytes.max(1) * 9));
        // A loss that became known in the round trip of the exit counts with either.
        let known = o.row.first_loss_time_s.is_some_and(|l| l <= last + rtt);
        let full = if by_congestion && !(stated.is_some() && o.row.class == Class::LinkFull) {
            vec![Class::Late]
        } else if by_congestion || known {
            vec![Class::Late, Class::LinkFull]
        } else {
            vec![Class::LinkFull]
        };
        let classes = match case.capacity {
            Capacity::Open => Vec::new(),
            Capacity::Measured => match o.row.class {
                Class::Early => vec![Class::Early],
                _ => full,
            },
            Capacity::Constant(rate) => {
                let around = |s: &&&Sample| s.time_s > first - rtt && s.time_s <= last;
                let most = samples.iter().filter(around).map(|s| s.inflight_bytes).max();
                let most = most.or(near(last).map(|s| s.inflight_bytes)).unwrap_or(0) as f64 * WIRE;
                let holds = rate / 8.0 * case.base_rtt_s(last);
                match most / holds {
                    x if x < BORDER.0 => vec![Class::Early],
                    x if x > BORDER.1 => full,
                    _ => [vec![Class::Early], full].concat(),
                }
            }
        };
        Self { exit, classes }
    }

    /// How an answer compares with it.
    pub(crate) fn judge(&self, t: &Transfer, shifted: f64) -> Judged {
        let Some(exit) = &t.exit else { return Judged::Unknown };
        let at = exit.time_s + shifted;
        let near = self.exit.is_some_and(|(from, until)| (from..=until).contains(&at));
        let class = match t.class {
            ExitClass::Unknown => true,
            class => self.classes.is_empty() || self.classes.iter().any(|c| class == (*c).into()),
        };
        if near && class { Judged::Right } else { Judged::Wrong }
    }
}
