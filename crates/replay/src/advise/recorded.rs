//! What recordings say: how transfers left slow start, which startup that agrees with, and the paths that
//! they show.

use crate::analysis::Keep;
use crate::answer::mostly_waited_for_data;
use crate::fit::text::Fitted;
use crate::fit::{fit, sampled};
use crate::observer::Candidate;
use crate::replay::{AnalysedTransfer, Options};
use crate::transfer::{ExitClass, Transfer};
use serde::Serialize;
use slowstart_study::chosen;
use slowstart_study::scenario;
use slowstart_study::stats;
use std::collections::BTreeMap;

/// Classes of least RTT, seconds. The last is of those whose RTT is not known.
const BANDS: [(&str, f64); 5] = [
    ("below 30 ms", 0.03),
    ("30 to 100 ms", 0.1),
    ("100 to 300 ms", 0.3),
    ("300 ms and more", f64::INFINITY),
    ("unknown", f64::NAN),
];
/// An exit agrees with a startup's if both are within this many least RTTs: a window is seen once a round
/// trip.
const WITHIN_RTTS: f64 = 1.0;

/// The startups whose rules recorded exits are compared with: those that can observe a connection.
fn candidates() -> Vec<Candidate> {
    let of = |name: &'static str| {
        let startup = scenario::startup("startup", name).ok()?.1;
        Some(Candidate { label: name.to_string(), startup })
    };
    chosen::names().filter_map(of).collect()
}

/// How to read recordings for an advice: transfers of at least `min_bytes`.
pub fn options(min_bytes: u64) -> Options {
    let keep = Keep { packets: true, ..Keep::default() };
    Options { candidates: candidates().into(), keep, min_bytes, ..Options::default() }
}

/// Most transfers that become paths: the largest.
const MOST_PATHS: usize = 100;

/// Transfers of one class of RTT.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Serialize)]
pub struct Band {
    /// The class of round-trip times, as the tables show it.
    pub rtt: &'static str,
    /// How many transfers are of this class.
    pub transfers: u64,
    /// By the classes of exits, in the order of [`ExitClass::ALL`].
    pub exits: [u64; 5],
    /// The least that early exits cost, seconds each, where it is known.
    #[serde(skip)]
    costs_s: Vec<f64>,
}

impl Band {
    /// The median of what early exits cost at least, seconds; `None` where it is not known.
    pub fn cost_s(&self) -> Option<f64> {
        stats::median(&self.costs_s).map(|m| m.mid)
    }
}

/// How often the exits of a startup agree with those that were recorded.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// How many exits are as the startup predicted.
    pub agree: u64,
    /// Exits that could have: those of transfers in which the startup was followed that far.
    pub of: u64,
}

/// What was read.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recorded {
    /// Files that were read.
    pub files: u64,
    /// Files that could not be.
    pub failed: u64,
    /// Transfers of at least the size asked for.
    pub transfers: u64,
    /// Those whose sender mostly waited for its application.
    pub waited: u64,
    /// The bytes that all transfers delivered.
    pub bytes: u64,
    /// The transfers by class of their least round-trip time.
    pub bands: Vec<Band>,
    /// How well each startup agrees with what was recorded, by its name.
    pub agreement: BTreeMap<String, Agreement>,
    /// Transfers by the startup of their sender: that of the congestion control that the file names, or the one that
    /// what was sent shows. A congestion control without a startup here has its own name.
    pub in_use: BTreeMap<String, u64>,
    /// Transfers whose sender nothing names, although some startup explains what was sent.
    pub unnamed: u64,
    /// Those of them for which this startup, by its name, explains it.
    pub fits: BTreeMap<String, u64>,
    /// Transfers without packets and ACKs, or too short for a path.
    pub without_path: u64,
    /// Transfers that show no filled path: its rate is not known.
    pub never_full: u64,
    /// Paths that transfers filled whose queues never were: the queue is a lower bound.
    pub queue_not_full: u64,
    /// The paths of transfers that filled them, with the bytes of each.
    #[serde(skip)]
    pub paths: Vec<(u64, Fitted)>,
}

/// The class of a least RTT in seconds, by its place among [`BANDS`].
fn band(rtt_s: Option<f64>) -> usize {
    rtt_s.and_then(|rtt| BANDS.iter().position(|(_, below)| rtt < *below)).unwrap_or(BANDS.len() - 1)
}

/// True if the startup's exit is the recorded one; `None` if that is not known.
fn agrees(row: &Transfer, startup: &str) -> Option<bool> {
    let seen = row.exit.as_ref()?;
    let predicted = row.startups.iter().find(|s| s.startup == startup)?;
    let near = row.min_rtt_s? * WITHIN_RTTS;
    match &predicted.exit {
        Some(e) => Some((e.time_s - seen.time_s).abs() <= near),
        // A loss ends every startup that has not left before; without one, this startup would have gone on.
        None => Some(row.class == ExitClass::Late),
    }
}

/// The startup of a transfer's sender. The file's word counts before what was sent.
fn in_use(row: &Transfer) -> Option<&str> {
    let Some(control) = row.congestion_control.as_deref() else { return row.sender_startup.as_deref() };
    Some(match control.to_ascii_lowercase().as_str() {
        // The kernel's CUBIC begins with HyStart, its Reno with nothing but slow start.
        "cubic" => "hystart",
        "reno" | "newreno" | "new_reno" => "standard",
        "vegas" => "vegas-linux",
        _ => control,
    })
}

impl Recorded {
    /// Adds a transfer of a file, by its name.
    pub fn add(&mut self, file: &str, t: &AnalysedTransfer) {
        let row = &t.row;
        self.transfers += 1;
        self.bytes += row.bytes.unwrap_or(0);
        if mostly_waited_for_data(row) {
            self.waited += 1;
            return;
        }
        if self.bands.is_empty() {
            self.bands = BANDS.map(|(rtt, _)| Band { rtt, ..Band::default() }).into();
        }
        let band = &mut self.bands[band(row.min_rtt_s.or(row.handshake_rtt_s))];
        band.transfers += 1;
        band.exits[row.class as usize] += 1;
        band.costs_s.extend(row.cost_s.filter(|_| row.class == ExitClass::Early));
        if let Some(name) = in_use(row) {
            *self.in_use.entry(name.to_string()).or_default() += 1;
        } else if let Some(fits) = row.sender_startup_fits.as_ref().filter(|f| !f.is_empty()) {
            self.unnamed += 1;
            for name in fits {
                *self.fits.entry(name.clone()).or_default() += 1;
            }
        }
        for s in &row.startups {
            if let Some(agree) = agrees(row, &s.startup) {
                let a = self.agreement.entry(s.startup.clone()).or_default();
                *a = Agreement { agree: a.agree + u64::from(agree), of: a.of + 1 };
            }
        }
        let fitted = match (&t.findings, &t.samples) {
            (Some(findings), _) => Some(fit(findings)),
            (None, Some(samples)) => Some(sampled::fit(samples).map(|(path, _)| path)),
            (None, None) => None,
        };
        match fitted {
            Some(Ok(path)) if path.link_was_full() => {
                self.queue_not_full += u64::from(!path.queue_was_full());
                let source = format!("{file}, connection {}", row.connection);
                // A path is fitted to what was delivered.
                self.paths.push((row.bytes.unwrap_or(0), Fitted { source, path }));
            }
            Some(Ok(_)) => self.never_full += 1,
            Some(Err(_)) | None => self.without_path += 1,
        }
    }

    /// The paths of the largest transfers, the largest first.
    pub fn largest_paths(&self) -> Vec<Fitted> {
        let mut paths: Vec<_> = self.paths.iter().collect();
        paths.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        paths.into_iter().take(MOST_PATHS).map(|(_, path)| path.clone()).collect()
    }

    /// The bytes of the transfer in the middle, of those with a path.
    pub(super) fn middle_bytes(&self) -> Option<u64> {
        let mut all: Vec<u64> = self.paths.iter().map(|p| p.0).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// Exits that were too early, and all whose class is known.
    pub(super) fn early(&self) -> (u64, u64) {
        let of = |class: ExitClass| self.bands.iter().map(|b| b.exits[class as usize]).sum::<u64>();
        (of(ExitClass::Early), of(ExitClass::Early) + of(ExitClass::LinkFull) + of(ExitClass::Late))
    }

    /// The startups that agree most often, with how often; empty if no exit was recorded.
    pub(super) fn most_alike(&self) -> (Vec<&str>, Agreement) {
        let share = |a: &Agreement| a.agree as f64 / a.of.max(1) as f64;
        let best = self.agreement.values().copied().max_by(|a, b| share(a).total_cmp(&share(b)));
        let best = best.filter(|a| a.agree > 0).unwrap_or_default();
        let alike = self.agreement.iter().filter(|(_, a)| best.of > 0 && share(a) >= share(&best));
        (alike.map(|(name, _)| name.as_str()).collect(), best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_rtt_is_not_a_short_one() {
        let name = |rtt| BANDS[band(rtt)].0;
        assert_eq!(
            [name(Some(0.0)), name(Some(0.3)), name(None)],
            ["below 30 ms", "300 ms and more", "unknown"]
        );
    }
}
