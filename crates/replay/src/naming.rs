//! Names the startup that a sender used: the one whose window, under the ACKs that the sender got, is what the sender
//! had in flight, from the initial window through the exit from slow start and into avoidance.
//!
//! Every startup that senders run is tried, and BBR. Versions of one startup are one family. Several families may
//! have sent the same: HyStart that has not left when a packet is lost has done what slow start does. So the answer
//! is a list, and a name only if one family alone is near. A sender that is none of these may be named by chance: how
//! often is measured (`examples/certain`).

use crate::track::{Distance, LEAST_AFTER_LOSS, Track};
use slowstart::avoidance;
use slowstart::registry::{self, Algorithm, AnyController};
use slowstart::startup::AnyStartup;
use slowstart::startup::hystart::{Detect, HyStart, Params};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::{Facts, Handshake};

/// The family of startups that double until packets are lost.
pub const STANDARD: &str = "standard";
/// The family of BBR.
pub const BBR: &str = "bbr";

/// Startups that do what slow start does unless the host or the network tells them something that a capture does not
/// have, or that a handshake without losses does not need.
const SILENT: [&str; 6] = ["restricted", "tsl", "quick-start", "stateful", "careful-resume", "abc"];
/// Families of several entries of the registry: all whose names begin so.
const FAMILIES: [&str; 7] =
    ["hystart-picoquic", "hystart++", "hystart", "search", "rapid-start", "vegas", BBR];

/// How far a startup may be from what was sent, in permille: at all, and for each round trip; to explain it, and to
/// be possible. One that has a name must be nearer.
const NAMES: (u64, u64) = (20, 3);
const EXPLAINS: (u64, u64) = (80, 4);
const POSSIBLE: (u64, u64) = (120, 5);
/// Round trips that must have been compared, and of them after an exit by a rule.
const LEAST: u32 = 4;
const LEAST_AFTER: u32 = 3;
/// Segments in flight without which a startup has no name: a segment is a large part of less.
const LEAST_SEGMENTS: u64 = 40;

/// The family of a startup of the registry; `None` if no sender's capture can show it.
pub fn family(name: &str) -> Option<&'static str> {
    let entry = registry::named(name)?;
    if entry.is_reconstructed {
        return None;
    }
    if SILENT.contains(&entry.name) {
        return Some(STANDARD);
    }
    Some(FAMILIES.into_iter().find(|f| entry.name.starts_with(f)).unwrap_or(entry.name))
}

/// A startup that is tried in place of a sender's.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    family: &'static str,
    track: Track,
}

/// All that are tried, at the begin of a connection.
pub(crate) fn suspects(f: &Facts, handshake: &Handshake) -> Vec<Suspect> {
    let avoidance = (avoidance::REGISTRY[0].make)();
    let mut all = Vec::new();
    let mut add = |family, algorithm: &Algorithm, pacing| {
        let controller: AnyController = algorithm.controller(&avoidance, f.iw, 1);
        all.push(Suspect { family, track: Track::new(controller, pacing, f, handshake) });
    };
    for entry in registry::all().filter(|e| !SILENT.contains(&e.name)) {
        let Some(family) = family(entry.name) else { continue };
        if family == "hystart" {
            // Its limit on trains depends on whether the host paces, which a capture does not state.
            add(family, &entry.algorithm, Some(true));
            add(family, &entry.algorithm, Some(false));
        } else {
            add(family, &entry.algorithm, None);
        }
    }
    // As it is often configured (`hystart_detect`).
    let mut by_delay = Params::default();
    by_delay.detect = Detect::Delay;
    add("hystart", &AnyStartup::HyStart(HyStart::new(by_delay)).into(), None);
    all
}

impl Suspect {
    /// The track, to pass events to it.
    pub(crate) fn track(&mut self) -> &mut Track {
        &mut self.track
    }
}

/// True if a startup that may have sent what was sent left by its own rule within two round trips before a loss: then
/// the rule ended slow start, and the loss came of what had been sent by then.
pub(crate) fn left_before(all: &[Suspect], loss: Instant, rtt: Span) -> bool {
    all.iter().any(|s| {
        let just = s.track.left.is_some_and(|l| l.0 < loss && loss.since(l.0) <= rtt * 2);
        just && within(s.track.distance, POSSIBLE)
    })
}

/// True if a startup is no farther than this from what was sent: at all, and for each round trip.
fn within(d: Distance, (once, each): (u64, u64)) -> bool {
    d.permille <= once + each * u64::from(d.rounds)
}

/// Which startup the sender used, by what it sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The one family that explains what was sent; `None` if several do, or none.
    pub name: Option<&'static str>,
    /// All families that explain it, in the order of the registry: what was sent does not tell them apart.
    pub fits: Vec<&'static str>,
}

/// Which startup the sender used; `None` if too little is seen to compare any, or if its startup did not end.
pub(crate) fn named(all: &[Suspect], mss: Bytes) -> Option<Named> {
    let near = all.iter().filter(|s| within(s.track.distance, POSSIBLE));
    let compared = all.iter().map(|s| s.track.distance.rounds).max()?;
    let seen = |t: &Track| t.distance.after >= LEAST_AFTER || t.disturbed.is_some();
    if compared < LEAST || near.clone().next().is_some() && !near.clone().any(|s| seen(&s.track)) {
        return None;
    }
    let (mut fits, mut possible) = (Vec::new(), Vec::new());
    let mut exits: Vec<(&str, (Instant, Bytes))> = Vec::new();
    for s in near {
        // One that did nothing but what an earlier one does has shown nothing of its own (SUSS, while it does not
        // accelerate, is HyStart).
        if let Some(own) = s.track.left {
            if exits.iter().any(|(family, e)| *e == own && *family != s.family) {
                continue;
            }
            exits.push((s.family, own));
        }
        for (list, bounds) in [(&mut fits, EXPLAINS), (&mut possible, POSSIBLE)] {
            if within(s.track.distance, bounds) && !list.contains(&s.family) {
                list.push(s.family);
            }
        }
    }
    let alone = if let ([only], [_]) = (&fits[..], &possible[..]) { Some(*only) } else { None };
    // A loss that ends slow start is no rule's doing, and names nothing but slow start itself.
    let left = |s: &Suspect| {
        let d = s.track.distance;
        let by_rule = s.track.disturbed.is_none_or(|at| s.track.left.is_some_and(|l| l.0 < at));
        d.after >= LEAST_AFTER && by_rule || s.family == STANDARD && d.after_loss >= LEAST_AFTER_LOSS
    };
    let shown = |s: &Suspect| {
        let enough = !s.track.limited && s.track.before >= mss * LEAST_SEGMENTS;
        enough && left(s) && within(s.track.distance, NAMES)
    };
    let name = alone.filter(|only| all.iter().any(|s| s.family == *only && shown(s)));
    Some(Named { name, fits })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of families are those that `slowstart list startups` has.
    #[test]
    fn families_have_names_of_the_registry() {
        for entry in registry::all() {
            let Some(family) = family(entry.name) else { continue };
            assert!(registry::named(family).is_some(), "{family}");
        }
        assert_eq!(family("search-3.1"), Some("search"));
        assert_eq!(family("hystart-picoquic"), Some("hystart-picoquic"));
        assert_eq!(family("bbr2-quiche"), Some(BBR));
        assert_eq!((family("stopeg"), family("none")), (None, None));
    }
}
