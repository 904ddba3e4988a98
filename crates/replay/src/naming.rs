//! Names the startup that a sender used: the one whose rule, run over the ACKs that the sender got, leaves slow
//! start when the sender did, with the window that it had, and goes on as it did.
//!
//! All startups of the registry are tried, and the rule of BBR. A name is given only if one family alone explains
//! the exit and no other comes near it. Startups that differ in parameters only are one family; with a loss, so are
//! all without a rule of their own. A sender that is none of these may be named by chance: how often is measured
//! (`examples/certain`).

use crate::filled::Seen;
use crate::infer::{Evidence, ExitEstimate};
use crate::observer::{Candidate, Moment, Prediction};
use slowstart::bbr::v1::Bbr;
use slowstart::bbr::v3::Bbr3;
use slowstart::control::Controller;
use slowstart::registry::AnyController;
use slowstart::startup::hystart::{Detect, HyStart, Params};
use slowstart::startup::{AnyStartup, REGISTRY, Startup};
use slowstart::units::{Bytes, Instant, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake};
use std::sync::OnceLock;

/// The family of startups that double until packets are lost.
pub const STANDARD: &str = "standard";
/// The family of BBR.
pub const BBR: &str = "bbr";
/// An exit with a smaller window fits by chance: a segment is a large part of it.
const LEAST_SEGMENTS: u64 = 40;
/// A startup explains an exit that it predicts within this share of a round trip, in percent, and of the window.
const NEAR_RTT: u64 = 20;
const NEAR_WINDOW: u64 = 3;
/// One that predicts an exit within this share of a round trip, in percent, and of the window, may have made it.
const POSSIBLE_RTT: u64 = 60;
const POSSIBLE_WINDOW: u64 = 15;
/// Round trips before a loss until which a startup must have sent what was sent, not to be a possible one.
const POSSIBLE_ROUNDS: u64 = 2;
/// Round trips after an exit in which the window is compared with that of the startup: the first of them holds
/// what was sent before.
const AFTER: usize = 3;
/// Bounds, in percent, of the window after an exit over that of the startup, which avoidance lets grow.
const LOW: u64 = 85;
const HIGH: u64 = 130;
/// Round trips after an exit in which the window of a sender that does not drain is seen not to fall.
const CLEAN: usize = 8;
/// The phase of a startup that has found the path full and waits until less is in flight.
const DRAIN: &str = "drain";
/// After BBR has drained, no more than this percentage of what was in flight before is.
const DRAINED: u64 = 70;
/// A probe of BBR has at least this percentage of the usual flight in flight.
const PROBE: u64 = 112;
/// Round trips after an exit in which a startup may drain.
const DRAINS: usize = 2;
/// A flight of less than so many percent of that of the exit fell.
const FELL: u64 = 90;

/// A startup that is tried.
pub(crate) struct Suspect {
    pub(crate) candidate: Candidate,
    /// Its family: the shortest of the names of its versions.
    family: &'static str,
    /// True if it is made from an abstract only: no sender runs it, but one may run what it stands for.
    is_reconstructed: bool,
}

/// The startups that are tried: the registry, and HyStart as it is often configured (`hystart_detect`).
pub(crate) fn suspects() -> &'static [Suspect] {
    static ALL: OnceLock<Vec<Suspect>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of = |name: &str, startup: AnyStartup| {
            let kind = std::mem::discriminant(&startup);
            let same = REGISTRY.iter().filter(|e| std::mem::discriminant(&(e.make)()) == kind);
            let own = same.min_by_key(|e| e.name.len());
            Suspect {
                candidate: Candidate { label: name.to_string(), startup },
                family: own.map_or(STANDARD, |e| e.name),
                is_reconstructed: own.is_some_and(|e| e.is_reconstructed),
            }
        };
        let mut all: Vec<Suspect> = REGISTRY.iter().map(|e| of(e.name, (e.make)())).collect();
        let mut by_delay = Params::default();
        by_delay.detect = Detect::Delay;
        all.push(of("hystart:detect=delay", AnyStartup::HyStart(HyStart::new(by_delay))));
        all
    })
}

/// BBR, which sees the events of another sender.
#[derive(Clone, Debug)]
pub(crate) struct WatchedBbr {
    controller: AnyController,
    /// When it left its startup.
    pub(crate) left: Option<Instant>,
}

impl WatchedBbr {
    /// Both versions, at the begin of a connection.
    pub(crate) fn all(f: &Facts, handshake: &Handshake) -> Vec<Self> {
        let both = [AnyController::Bbr(Bbr::new(f.iw, 1)), AnyController::Bbr3(Bbr3::new(f.iw, 1))];
        let begin = |mut controller: AnyController| {
            let _ = controller.on_established(f, handshake);
            Self { controller, left: None }
        };
        both.map(begin).into()
    }

    pub(crate) fn on_ack(&mut self, f: &Facts, ack: &Ack) {
        if self.left.is_some() {
            return;
        }
        let change = self.controller.on_ack(f, ack);
        self.left = self.left.or(change.exited.map(|e| e.detected_at));
    }

    pub(crate) fn on_congestion(&mut self, f: &Facts, c: &Congestion) {
        if self.left.is_some() {
            return;
        }
        let change = self.controller.on_congestion(f, c);
        self.left = self.left.or(change.exited.map(|e| e.detected_at));
    }
}

/// Which startup the sender used, by what it sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The one family that explains what was sent; `None` if several do, or none.
    pub name: Option<&'static str>,
    /// All families that explain it, in the order of the registry.
    pub fits: Vec<&'static str>,
}

/// What a sender did, with which startups are compared.
pub(crate) struct Sender<'a> {
    pub(crate) exit: ExitEstimate,
    /// Its round trips from the begin of the connection.
    pub(crate) rounds: &'a [Seen],
    pub(crate) mss: Bytes,
    pub(crate) rtt: Span,
    pub(crate) first_loss: Option<Instant>,
}

/// How well a startup explains an exit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fit {
    Explains,
    Possible,
    No,
}

impl Sender<'_> {
    /// Which startup it used; `None` if too little is seen to compare any.
    pub(crate) fn named<'p>(
        &self,
        tried: impl Iterator<Item = (&'static Suspect, &'p Prediction)>,
        bbr: impl Iterator<Item = Option<Instant>>,
    ) -> Option<Named> {
        let level = self.level()?;
        if self.exit.cwnd < self.mss * LEAST_SEGMENTS {
            return None;
        }
        let stopped = self.exit.evidence == Evidence::GrowthStopped;
        if !stopped && (self.exit.evidence != Evidence::Loss || level > self.exit.cwnd.scale(FELL, 100)) {
            return None;
        }
        let (mut fits, mut possible) = (Vec::new(), Vec::new());
        let mut add = |name: &'static str, fit: Fit| match fit {
            Fit::Explains if !fits.contains(&name) => fits.push(name),
            Fit::Possible if !possible.contains(&name) => possible.push(name),
            _ => {}
        };
        let mut exits: Vec<(Moment, &'static str)> = Vec::new();
        for (suspect, prediction) in tried {
            // One that did nothing but what an earlier one does has shown nothing of its own (SUSS, while it does not
            // accelerate, is HyStart).
            if stopped && let Some((_, own)) = prediction.rule {
                if exits
                    .iter()
                    .any(|(e, family)| (e.at, e.cwnd) == (own.at, own.cwnd) && *family != suspect.family)
                {
                    continue;
                }
                exits.push((own, suspect.family));
            }
            if stopped {
                match self.by_rule(prediction, level) {
                    Fit::Explains if suspect.is_reconstructed => add(suspect.family, Fit::Possible),
                    fit => add(suspect.family, fit),
                }
            } else {
                let own = suspect.candidate.startup.has_exit_rule();
                add(if own { suspect.family } else { STANDARD }, self.by_loss(prediction));
            }
        }
        bbr.for_each(|left| add(BBR, self.by_bbr(left)));
        let alone = if let [only] = fits[..] { Some(only) } else { None };
        let name = alone.filter(|only| possible.iter().all(|p| p == only));
        Some(Named { name, fits })
    }

    /// The most in flight in the round trips after the exit; `None` if too few show it.
    fn level(&self) -> Option<Bytes> {
        if self.exit.evidence == Evidence::GrowthStopped {
            return self.clean().skip(1).take(AFTER).map(|r| r.flight).max();
        }
        let after = self.rounds.iter().skip_while(|r| r.start <= self.exit.at).skip(1);
        after.filter(|r| r.usable).take(AFTER).map(|r| r.flight).max()
    }

    fn within(&self, at: Instant, percent: u64) -> bool {
        let apart = at.since(self.exit.at).max(self.exit.at.since(at));
        apart <= self.rtt.scale(percent, 100)
    }

    /// Of a sender whose window stopped growing without a loss.
    fn by_rule(&self, p: &Prediction, level: Bytes) -> Fit {
        let drain = || p.changes.iter().find(|m| m.what == DRAIN).copied();
        let Some(rule) = p.rule.map(|(_, m)| m).or_else(drain) else {
            // A threshold ends its growth, and no rule: its window is what is in flight to the end.
            let end = self.clean().skip(AFTER).last().map(|r| r.start);
            let held = end.is_some_and(|end| p.valid_until.is_none_or(|v| v >= end));
            return if held { Fit::Possible } else { Fit::No };
        };
        // One that drains sends less than its window in the round trip of its exit.
        let drains = p.rule.is_none() || p.cwnd < rule.cwnd.scale(FELL, 100);
        let slack = if drains { self.rtt } else { Span::ZERO };
        let valid = p.valid_until.is_none_or(|v| rule.at <= v + slack);
        let window = self.exit.cwnd;
        let same = |percent: u64| {
            let tolerance = self.mss.max(window.scale(percent, 100));
            rule.cwnd <= window + tolerance && window <= rule.cwnd + tolerance
        };
        let few = self.mss * 2;
        let goes_on = if drains {
            // With a window that is not known before it has drained.
            level < window.scale(FELL, 100)
        } else {
            let least = self.clean().take(CLEAN).map(|r| r.flight).min().unwrap_or(level);
            least + few >= p.cwnd.scale(LOW, 100) && level <= p.cwnd.scale(HIGH, 100) + few
        };
        if valid && same(NEAR_WINDOW) && goes_on && self.within(rule.at, NEAR_RTT) {
            return Fit::Explains;
        }
        let followed = p.valid_until.is_none_or(|v| v + self.rtt * POSSIBLE_ROUNDS >= self.exit.at);
        let possible = followed && same(POSSIBLE_WINDOW) && self.within(rule.at, POSSIBLE_RTT);
        if possible { Fit::Possible } else { Fit::No }
    }

    /// Of a sender whose window grew until a loss.
    fn by_loss(&self, p: &Prediction) -> Fit {
        let left = p.rule.filter(|(_, m)| m.at < self.exit.at).map(|(_, m)| m.at);
        let until = p.valid_until.unwrap_or(Instant::NEVER);
        if left.is_none() && until >= self.exit.at {
            return Fit::Explains;
        }
        let near = self.rtt * POSSIBLE_ROUNDS;
        let is_near = |at: Instant| at + near >= self.exit.at;
        if is_near(until) && left.is_none_or(is_near) { Fit::Possible } else { Fit::No }
    }

    /// BBR goes on until its rule finds the path full, and then drains: its flight falls when it leaves.
    fn by_bbr(&self, left: Option<Instant>) -> Fit {
        if self.exit.evidence != Evidence::GrowthStopped {
            let near = |left: Instant| left + self.rtt * POSSIBLE_ROUNDS >= self.exit.at;
            return if left.is_none_or(near) { Fit::Possible } else { Fit::No };
        }
        let clean: Vec<&Seen> = self.clean().collect();
        let fell = clean.iter().find(|r| r.flight < self.exit.cwnd.scale(FELL, 100));
        let end = clean.last().map_or(self.exit.at, |r| r.end);
        let round = |r: &Seen| r.end.since(r.start).max(self.rtt);
        match (left, fell) {
            // Its rule waits for data (BBR takes no notice of round trips that the application limits).
            (None, None) => Fit::Possible,
            (Some(left), None) if left + self.rtt * POSSIBLE_ROUNDS >= end => Fit::Possible,
            (None, Some(_)) | (Some(_), None) => Fit::No,
            (Some(left), Some(fell)) => match fell.start.since(left).max(left.since(fell.start)) {
                apart if apart <= round(fell) && self.drained_and_probes(fell) => Fit::Explains,
                apart if apart <= round(fell) * POSSIBLE_ROUNDS => Fit::Possible,
                _ => Fit::No,
            },
        }
    }

    /// True if no more than a drained path holds is in flight after the flight fell, and a probe for more, which is
    /// taken back.
    fn drained_and_probes(&self, fell: &Seen) -> bool {
        let low = self.exit.cwnd.scale(DRAINED, 100);
        let after: Vec<Bytes> = self.clean().filter(|r| r.start > fell.start).map(|r| r.flight).collect();
        let mut sorted = after.clone();
        sorted.sort_unstable();
        let Some(usual) = sorted.get(sorted.len() / 2) else { return false };
        let probes = after.windows(AFTER).any(|w| {
            let [before, more, then @ ..] = w else { return false };
            let up = usual.scale(PROBE, 100) + self.mss;
            *before < up && *more >= up && then.iter().any(|t| *t < up)
        });
        after.len() >= CLEAN && after.iter().all(|f| *f < low) && probes
    }

    /// The round trips after the exit, until something else than avoidance changes the window. One that drains
    /// sends nothing at first.
    fn clean(&self) -> impl Iterator<Item = &Seen> {
        let lost = self.first_loss.unwrap_or(Instant::NEVER);
        let after = self.rounds.iter().skip_while(|r| r.start <= self.exit.at);
        let clean = after.enumerate().take_while(move |(i, r)| r.end < lost && (r.usable || *i < DRAINS));
        clean.map(|(_, r)| r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::step::Exit;

    const MSS: Bytes = Bytes(1000);

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    /// Round trips of 100 ms with so many segments in flight.
    fn rounds(flights: &[u64]) -> Vec<Seen> {
        let of = |(n, flight): (usize, &u64)| Seen {
            start: at(n as u64 * 100),
            end: at(n as u64 * 100 + 100),
            flight: MSS * *flight,
            delivered: MSS,
            least_rtt: Span::millis(100),
            usable: true,
        };
        flights.iter().enumerate().map(of).collect()
    }

    fn leaves(ms: u64, segments: u64) -> Prediction {
        let moment = Moment { what: "delay", at: at(ms), cwnd: MSS * segments };
        Prediction {
            cwnd: MSS * segments,
            changes: Vec::new(),
            rule: Some((Exit::Delay, moment)),
            loss: None,
            valid_until: None,
            saved: None,
        }
    }

    /// What is said of a sender that stops growing at 80 segments after 350 ms.
    fn said(tried: &[(&str, Prediction)], bbr: &[Option<Instant>]) -> Named {
        let flights = [10, 20, 40, 80, 80, 81, 82, 83, 84, 85, 86, 87];
        let rounds = rounds(&flights);
        let exit = ExitEstimate { at: at(350), cwnd: MSS * 80, evidence: Evidence::GrowthStopped };
        let sender = Sender { exit, rounds: &rounds, mss: MSS, rtt: Span::millis(100), first_loss: None };
        let of = |label: &str| suspects().iter().find(|s| s.candidate.label == label).expect("a startup");
        sender.named(tried.iter().map(|(l, p)| (of(l), p)), bbr.iter().copied()).expect("enough to compare")
    }

    #[test]
    fn one_family_that_leaves_when_the_sender_did_is_its_name() {
        let versions = [("hystart", leaves(352, 81)), ("hystart-paper", leaves(348, 79))];
        let named = said(&versions, &[Some(at(900))]);
        assert_eq!((named.name, named.fits), (Some("hystart"), vec!["hystart"]));
    }

    #[test]
    fn no_name_is_given_where_two_fit_or_another_comes_near() {
        let two = said(&[("hystart", leaves(352, 81)), ("search", leaves(355, 80))], &[]);
        assert_eq!((two.name, two.fits), (None, vec!["hystart", "search"]));
        let near = said(&[("hystart", leaves(352, 81)), ("search", leaves(400, 90))], &[]);
        assert_eq!((near.name, near.fits), (None, vec!["hystart"]));
        // BBR's rule has not fired: it may be BBR, which the application limits.
        let bbr = said(&[("hystart", leaves(352, 81))], &[None]);
        assert_eq!((bbr.name, bbr.fits), (None, vec!["hystart"]));
    }

    #[test]
    fn a_sender_that_is_none_of_them_has_no_name() {
        let none = said(&[("hystart", leaves(200, 40)), ("search", leaves(500, 160))], &[Some(at(900))]);
        assert_eq!(none, Named::default());
    }

    /// SUSS does what HyStart does while it does not accelerate.
    #[test]
    fn a_startup_that_shows_nothing_of_its_own_does_not_count() {
        let named = said(&[("hystart", leaves(352, 81)), ("suss", leaves(352, 81))], &[]);
        assert_eq!(named.name, Some("hystart"));
    }

    /// The names of families are those that `slowstart list startups` has.
    #[test]
    fn families_have_names_of_the_registry() {
        let names: Vec<&str> = suspects().iter().map(|s| s.family).collect();
        assert!(names.iter().all(|n| REGISTRY.iter().any(|e| e.name == *n)));
        assert!(["hystart", "search", "vegas", "rapid-start"].iter().all(|n| names.contains(n)));
    }
}
