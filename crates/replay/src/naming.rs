//! Names the startup that a sender used: the one whose window, under the ACKs that the sender got, is what the sender
//! had in flight, from the initial window through the exit from slow start and into avoidance.
//!
//! Nearly every startup of the registry is tried, and BBR. Versions of one startup are one family. Several families may have
//! sent the same: HyStart that has not left when a packet is lost has done what slow start does. So the answer is a
//! class, and a name only if one family alone is near. A sender that is none of these may be named by chance: how often
//! is measured (`examples/certain`, and `research/score` on running kernels).

use crate::infer::{ExitEstimate, flat_growth};
use crate::track::{Compared, Distance, LEAST_AFTER_LOSS, Track};
use slowstart::avoidance;
use slowstart::registry::{self, Algorithm, AlgorithmEntry, AnyController, Need};
use slowstart::startup::hystart::{Detect, HyStart, Params};
use slowstart::startup::{AnyStartup, REGISTRY};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::{Facts, Handshake};

/// The family of startups that double until packets are lost.
pub const STANDARD: &str = "standard";
/// The family of BBR.
pub const BBR: &str = "bbr";

/// Startups that do what slow start does unless the host tells them something that a capture does not have, the
/// handshake lost a packet, or a timer expired.
const SILENT: [&str; 3] = ["restricted", "tsl", "abc"];
/// Startups that jump by what the application has written, which no capture shows.
const BY_THE_QUEUE: [&str; 2] = ["jump-start", "halfback"];
/// Without an earlier connection Stateful-TCP is HyStart. All others that use what a capture does not show are slow start then.
const WITHOUT_MEMORY: (&str, &str) = ("stateful", "hystart");

/// How far a startup may be from what was sent, in permille: at all, and for each round trip; to explain it, and to
/// be possible. One that has a name must be nearer.
const NAMES: (u64, u64) = (5, 1);
const EXPLAINS: (u64, u64) = (80, 4);
const POSSIBLE: (u64, u64) = (120, 5);
/// How much farther than the nearest a startup may be to be possible, in hundredths of what the right one mostly is off
/// in a round trip ([`Distance::off`]); and what one that has a name may be off in the mean after its exit, and in any
/// round trip. A rule that is not tried leaves at another window than those that are, if only by some percent.
const FARTHER: u64 = 300;
const NAMES_OFF: (u64, u64) = (40, 400);
/// Round trips that must have been compared, and of them after an exit by a rule.
const LEAST: u32 = 4;
const LEAST_AFTER: u32 = 2;
/// Startups of a class of which one must have a window that is exact: a class of few is one by chance more often than
/// one of many.
pub const FEW: usize = 3;
/// Round trips of a cycle of BBR: a flight that stays in the bounds of its gains for as long shows it, however small it is.
const CYCLE: u32 = 8;
/// Where at least [`VARIES_IN`] round trips after an exit were compared, their flights must differ by at least this many segments:
/// otherwise something else than the window holds them.
const VARIES: u64 = 2;
const VARIES_IN: u32 = 3;
/// Segments in flight without which a startup has no name: a segment is a large part of less.
const LEAST_SEGMENTS: u64 = 40;

/// The family of a startup of the registry: the shortest of the names of its versions. `None` if no sender's capture
/// can show it.
pub fn family(name: &str) -> Option<&'static str> {
    let entry = registry::named(name)?;
    let Algorithm::Startup(startup) = &entry.algorithm else { return Some(BBR) };
    if BY_THE_QUEUE.contains(&entry.name) {
        return None;
    }
    if is_silent(&entry) {
        return Some(if entry.name == WITHOUT_MEMORY.0 { WITHOUT_MEMORY.1 } else { STANDARD });
    }
    let kind = std::mem::discriminant(startup);
    let same = REGISTRY.iter().filter(|e| std::mem::discriminant(&(e.make)()) == kind);
    same.map(|e| e.name).min_by_key(|name| name.len())
}

fn is_silent(entry: &AlgorithmEntry) -> bool {
    SILENT.contains(&entry.name) || entry.algorithm.need().is_some_and(Need::is_rare)
}

/// A startup that is tried in place of a sender's: its place among all, its family, and what is shown of it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Suspect {
    place: usize,
    family: &'static str,
    shown: Compared,
}

/// Startups that are tried in place of a sender's. Those that are compared to the end are small.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    tried: Vec<(usize, &'static str, Track)>,
    compared: Vec<Suspect>,
}

impl Suspects {
    /// All, at the begin of a connection.
    pub(crate) fn new(f: &Facts, handshake: &Handshake) -> Self {
        let avoidance = (avoidance::REGISTRY[0].make)();
        let mut tried = Vec::new();
        let mut add = |family, algorithm: &Algorithm, pacing| {
            let controller: AnyController = algorithm.controller(&avoidance, f.iw, 1);
            tried.push((tried.len(), family, Track::new(controller, pacing, f, handshake)));
        };
        for entry in registry::all().filter(|e| !is_silent(e)) {
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
        Self { tried, compared: Vec::new() }
    }

    /// Passes an event to all that are still compared.
    pub(crate) fn each(&mut self, mut event: impl FnMut(&mut Track)) {
        let mut over = false;
        for (_, _, track) in &mut self.tried {
            event(track);
            over |= track.over();
        }
        if over {
            let done = self.tried.extract_if(.., |(_, _, track)| track.over());
            self.compared.extend(done.map(|(place, family, t)| Suspect {
                place,
                family,
                shown: t.compared(),
            }));
            self.tried.shrink_to_fit();
        }
    }

    /// The loss was none: nothing is known of the distance of those that are still compared, nor is it later.
    pub(crate) fn undone(&mut self) {
        let tried = std::mem::take(&mut self.tried).into_iter();
        self.compared.extend(tried.map(|(place, family, t)| Suspect {
            place,
            family,
            shown: Compared { distance: None, ..t.compared() },
        }));
    }

    /// What is shown of each, in the order of the registry.
    pub(crate) fn all(mut self) -> Vec<Suspect> {
        let tried = self.tried.into_iter();
        self.compared.extend(tried.map(|(place, family, t)| Suspect { place, family, shown: t.compared() }));
        self.compared.sort_unstable_by_key(|s| s.place);
        self.compared
    }
}

/// True if a startup that may have sent what was sent left by its own rule within two round trips before a loss: then
/// the rule ended slow start, and the loss came of what had been sent by then. One whose window was not enough for what
/// was in flight at the loss has not sent it: the sender went on growing.
pub(crate) fn left_before(all: &[Suspect], loss: ExitEstimate, rtt: Span, mss: Bytes) -> bool {
    all.iter().any(|s| {
        let just = s.shown.left.is_some_and(|l| l.0 < loss.at && loss.at.since(l.0) <= rtt * 2);
        let enough = loss.cwnd <= s.shown.reached + flat_growth(s.shown.reached, mss);
        just && enough && s.shown.distance.is_none_or(|d| within(d, POSSIBLE))
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
    /// The families of which the sender used one: what was sent does not tell them apart. Unlike `fits` it has those that are
    /// farther off but possible, and those that acted like an earlier one. At most [`FEW`] only where an exit by a rule, or a
    /// growth that no other has, shows that. `None` if that is not known, or if all are possible.
    pub class: Option<Vec<&'static str>>,
    /// All families that explain it, in the order of the registry: what was sent does not tell them apart.
    pub fits: Vec<&'static str>,
}

/// Which startup the sender used; `None` if too little is seen to compare any, or if its startup did not end.
pub(crate) fn named(all: &[Suspect], mss: Bytes) -> Option<Named> {
    let known: Option<Vec<(&Suspect, Distance)>> = all.iter().map(|s| Some((s, s.shown.distance?))).collect();
    let known = known?;
    let possible = || known.iter().copied().filter(|(_, d)| within(*d, POSSIBLE));
    let nearest = possible().filter(|(_, d)| !d.paces).map(|(_, d)| d.off).min().unwrap_or_default();
    let near = || possible().filter(|(_, d)| d.paces || d.off <= nearest + FARTHER);
    let compared = known.iter().map(|(_, d)| d.rounds).max()?;
    let ended = |(s, d): (&Suspect, Distance)| d.after >= LEAST_AFTER || s.shown.disturbed.is_some();
    if compared < LEAST || near().next().is_some() && !near().any(ended) {
        return None;
    }
    let (mut fits, mut possible, mut class) = (Vec::new(), Vec::new(), Vec::new());
    let mut exits: Vec<(&str, (Instant, Bytes))> = Vec::new();
    for (s, d) in near() {
        if !class.contains(&s.family) {
            class.push(s.family);
        }
        // One that did nothing but what an earlier one does has shown nothing of its own (SUSS, while it does not
        // accelerate, is HyStart).
        if let Some(own) = s.shown.left {
            if exits.iter().any(|(family, e)| *e == own && *family != s.family) {
                continue;
            }
            exits.push((s.family, own));
        }
        for (list, bounds) in [(&mut fits, EXPLAINS), (&mut possible, POSSIBLE)] {
            if within(d, bounds) && !list.contains(&s.family) {
                list.push(s.family);
            }
        }
    }
    let alone = if let ([only], [_]) = (&fits[..], &possible[..]) { Some(*only) } else { None };
    // A loss that ends slow start is no rule's doing, and names nothing but slow start itself.
    let by_rule = |s: &Suspect, d: Distance| {
        let undisturbed = s.shown.disturbed.is_none_or(|at| s.shown.left.is_some_and(|l| l.0 < at));
        let varies =
            s.shown.after.is_some_and(|(low, high)| high - low >= mss * VARIES) || d.after < VARIES_IN;
        d.after >= LEAST_AFTER && undisturbed && varies
    };
    let shown = |s: &Suspect, d: Distance| {
        let exact = d.off_after <= NAMES_OFF.0 * u64::from(d.after) && d.off_most <= NAMES_OFF.1;
        let large = s.shown.before >= mss * LEAST_SEGMENTS;
        let cycles = s.family == BBR && d.after >= CYCLE;
        within(d, NAMES) && (cycles || !s.shown.limited && large && (d.paces || exact))
    };
    let by_loss = |s: &Suspect, d: Distance| s.family == STANDARD && d.after_loss >= LEAST_AFTER_LOSS;
    // Until a loss no other grew as it did.
    let by_growth = |s: &Suspect, d: Distance| {
        let seen = d.after < LEAST_AFTER && d.rounds + d.after_loss >= LEAST;
        s.family != STANDARD && s.shown.disturbed.is_some() && seen
    };
    let name = alone.filter(|only| {
        near().any(|(s, d)| {
            s.family == *only && shown(s, d) && (by_rule(s, d) || by_loss(s, d) || by_growth(s, d))
        })
    });
    let exact = name.is_some() || near().any(|(s, d)| shown(s, d) && by_rule(s, d));
    let class = Some(class).filter(|c| exact && !c.is_empty() || c.len() > FEW).map(|mut c| {
        // After a loss BBR may fall to what the path holds, as others do, and its model is not exact: only a window that
        // another kept to shows that it was not used.
        if !exact && !c.contains(&BBR) {
            c.push(BBR);
        }
        c
    });
    let class = class.filter(|c| all.iter().any(|s| !c.contains(&s.family)));
    Some(Named { name, class, fits })
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
        assert_eq!((family("stateful"), family("careful-resume")), (Some("hystart"), Some(STANDARD)));
        assert_eq!((family("stopeg"), family("jump-start"), family("none")), (Some("stopeg"), None, None));
    }
}
