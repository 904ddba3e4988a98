//! Whether the path was full when slow start ended: a queue stands only if delivery no longer rises with what is
//! in flight.
//!
//! Delay alone does not show it. A wave, jitter or another route raise the RTT of a path that is empty, and the
//! rate still follows the flight; a full link delivers the same for any flight.

use slowstart::units::{Bytes, Instant, Span};

/// Round trips that are kept: slow start ends in one of the first twenty, and the others show how the rate
/// answers to the flight after it.
const KEPT: usize = 256;
/// Round trips before the exit, and after it, that are compared.
const BEFORE: usize = 3;
const AFTER: usize = 24;
/// Round trips after the exit from which the answer of the rate to the flight is measured.
const LEAST: usize = 4;
/// By how much, as a logarithm, the flights of those round trips must differ at least.
const SPREAD: f64 = 0.04;
/// The rate answers to the flight with this power of it, or less, if the link is full, and with this or more if it
/// is not.
const SATURATED: f64 = 0.3;
const FOLLOWS: f64 = 0.7;
/// Errors of the power that are allowed for.
const ERRORS: f64 = 3.0;
/// A flight of so many times what the path holds has a queue; one of so much of it has none.
const FULL: f64 = 1.1;
const EMPTY: f64 = 0.8;
/// Flights that differ by this factor are not the same: the link was full if it carried both at the same rate.
const FELL: f64 = 1.25;
/// Round trips around the exit in which a queue stood, so that the same rate is no chance.
const HELD: usize = 3;
/// Difference of two rates of a full link, and of two RTTs of an empty path.
const ALIKE: f64 = 0.06;
const SAME_RTT: f64 = 0.12;
/// A rate that was never exceeded by more than this factor is the link's.
const EXCEEDED: f64 = 1.15;
/// A later rate above that at the exit by this factor shows that the path was not full.
const HIGHER: f64 = 1.3;

/// A completed round trip.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// The most in flight.
    pub(crate) flight: Bytes,
    /// Bytes delivered since the connection began.
    pub(crate) delivered: Bytes,
    /// The least and the greatest RTT sample; zero if there was none.
    pub(crate) least_rtt: Span,
    pub(crate) most_rtt: Span,
    /// True if cwnd limited it, and nothing was repaired.
    pub(crate) usable: bool,
}

/// The round trips of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filling {
    rounds: Vec<Seen>,
    /// What had been delivered before the newest round trip began.
    before: Bytes,
}

/// What was in flight in a round trip; the rate at which the next one delivered, bytes per second, and its least and
/// greatest RTT, seconds.
#[derive(Copy, Clone, Debug)]
struct Carried {
    flight: f64,
    rate: f64,
    rtt: f64,
    most: f64,
    usable: bool,
}

/// Whether the path was full at the exit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) full: bool,
    /// True if a longer RTT shows that packets waited. Else the same rate may be that of losses.
    pub(crate) waited: bool,
    /// True if no other explanation fits.
    pub(crate) certain: bool,
}

impl Filling {
    /// A round trip is complete.
    pub(crate) fn add(&mut self, round: Seen) {
        if self.rounds.len() < KEPT {
            self.rounds.push(Seen { delivered: round.delivered - self.before, ..round });
        }
        self.before = round.delivered;
    }

    fn carried(&self) -> Vec<Carried> {
        let of = |pair: &[Seen]| {
            let seconds = pair[1].end.since(pair[1].start).as_secs_f64().max(1e-9);
            Carried {
                flight: pair[0].flight.0.max(1) as f64,
                rate: pair[1].delivered.0.max(1) as f64 / seconds,
                rtt: pair[1].least_rtt.as_secs_f64(),
                most: pair[1].most_rtt.as_secs_f64(),
                usable: pair[0].usable && pair[1].usable,
            }
        };
        self.rounds.windows(2).map(of).collect()
    }

    /// Whether the path was full at an exit with this window; `None` if the round trips do not show it.
    pub(crate) fn at_exit(&self, at: Instant, window: Bytes) -> Option<Filled> {
        let all = self.carried();
        let exit = self.rounds.iter().rposition(|r| r.start <= at)?.min(all.len().checked_sub(1)?);
        judge(&all, exit, window.0 as f64)
    }
}

/// The rate that the link has if the rate follows the flight up to it, with the least RTT `base`; infinite if it
/// always follows.
fn link(points: &[Carried], base: f64) -> f64 {
    let off = |rate: f64| -> f64 {
        points.iter().map(|p| libm::log(p.rate / (p.flight / base).min(rate)).abs()).sum()
    };
    let tried = points.iter().map(|p| p.rate).chain([f64::INFINITY]);
    tried.min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(f64::INFINITY)
}

/// The power of the flight with which the rate grows, by least squares of the logarithms, and its standard error;
/// `None` if the flights differ too little.
fn power(points: &[Carried]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (libm::log(p.flight), libm::log(p.rate))).collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let squares: f64 = logs.iter().map(|p| (p.0 - x).powi(2)).sum();
    let (low, high) =
        logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |m, p| (m.0.min(p.0), m.1.max(p.0)));
    if points.len() < LEAST || high - low < SPREAD {
        return None;
    }
    let slope = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / squares;
    let left: f64 = logs.iter().map(|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sum();
    Some((slope, (left / (n - 2.0) / squares).sqrt()))
}

fn alike(a: f64, b: f64) -> bool {
    libm::log(a / b).abs() <= ALIKE
}

fn judge(all: &[Carried], exit: usize, window: f64) -> Option<Filled> {
    let after: Vec<Carried> = all[exit + 1..].iter().filter(|c| c.usable).copied().collect();
    let soon = &after[..after.len().min(AFTER)];
    let near: Vec<Carried> = all[exit.saturating_sub(BEFORE)..=exit].iter().chain(soon).copied().collect();
    let rtts = || near.iter().map(|c| c.rtt).filter(|r| *r > 0.0);
    let base = rtts().reduce(f64::min)?;
    let rate = link(&near, base);
    let filled = window / (rate * base);
    let at_exit = all[exit];
    let mut later: Vec<f64> = after.iter().map(|c| c.rate).collect();
    later.sort_by(f64::total_cmp);
    // Three round trips had it: one may be a burst of ACKs.
    let highest = later.len().checked_sub(3).map_or(0.0, |i| later[i]);
    // The path may have changed before the exit: what counts is that of the exit.
    let since = soon.iter().map(|c| c.rtt).filter(|r| *r > 0.0).fold(at_exit.rtt, f64::min);
    let risen = highest > at_exit.rate * HIGHER
        && at_exit.rtt < since * (1.0 + SAME_RTT)
        && window <= highest * since;
    let answer = power(soon);
    // Of all round trips: a queue of others may stand all the time that is compared.
    let least = all.iter().map(|c| c.rtt).filter(|r| *r > 0.0).fold(base, f64::min);
    let full = filled >= FULL && highest <= rate * EXCEEDED && at_exit.rate >= rate * (1.0 - 2.0 * ALIKE);
    if full {
        let queues = |c: &&Carried| c.flight >= rate * base * FULL;
        let still = answer.is_some_and(|(power, error)| power + ERRORS * error < SATURATED)
            && soon.iter().all(|c| alike(c.rate, rate));
        // What slow start itself showed, and the repair of its losses: the flight doubled or fell, and the rate stayed.
        let around = &all[exit.saturating_sub(BEFORE)..all.len().min(exit + 1 + BEFORE)];
        let queued: Vec<&Carried> = around.iter().filter(queues).collect();
        let (least, most) =
            queued.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), c| (l.min(c.flight), m.max(c.flight)));
        let held = queued.len() >= HELD
            && queued.iter().all(|c| alike(c.rate, rate))
            && most >= least * FELL
            && most * FELL >= window;
        // Without a longer RTT nothing waited: a policer, or losses of another kind.
        let waited = near.iter().filter(queues).any(|c| c.rtt > base * (1.0 + SAME_RTT));
        return Some(Filled { full, waited, certain: waited && (still || held) });
    }
    if risen {
        let follows = |(power, error): (f64, f64)| {
            power - ERRORS * error > FOLLOWS && power + ERRORS * error < 2.0 - FOLLOWS
        };
        // The path carried more than the window of the exit fills: losses hide the rate of that round trip.
        let more = window <= highest * since * EMPTY;
        // In a queue of others the rate follows the flight as well, and the RTT changes with what they send.
        let is_least = |rtt: f64| rtt > 0.0 && rtt < least * (1.0 + SAME_RTT);
        let empty = soon.iter().chain([&at_exit]).all(|c| is_least(c.rtt));
        // The link may have become faster since: at the exit no packet waited.
        let certain = more && answer.is_some_and(follows) && empty && is_least(at_exit.most);
        return Some(Filled { full: false, waited: false, certain });
    }
    (filled <= EMPTY).then_some(Filled { full: false, waited: false, certain: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips with so much in flight, which have this RTT or what a link of so much a second makes of it.
    fn all(flights: &[f64], rtt: impl Fn(usize) -> f64, rate: f64) -> Vec<Carried> {
        let of = |(n, flight): (usize, &f64)| {
            let rtt = rtt(n).max(flight / rate);
            Carried { flight: *flight, rate: flight / rtt, rtt, most: rtt, usable: true }
        };
        flights.iter().enumerate().map(of).collect()
    }

    #[test]
    fn a_link_is_full_if_another_flight_is_carried_at_the_same_rate() {
        let flights = [10.0, 20.0, 40.0, 80.0, 56.0, 57.0, 58.0, 59.0, 60.0, 61.0];
        let found = judge(&all(&flights, |_| 0.05, 1000.0), 3, 80.0);
        assert_eq!(found, Some(Filled { full: true, waited: true, certain: true }));
    }

    #[test]
    fn a_link_is_full_if_the_flight_doubles_and_the_rate_stays() {
        let short = |flights: &[f64]| {
            let mut seen = all(flights, |_| 0.05, 1000.0);
            // Losses are repaired to the end.
            seen.iter_mut().skip(3).for_each(|c| c.usable = false);
            judge(&seen, 3, 120.0)
        };
        let full = Filled { full: true, waited: true, certain: true };
        assert_eq!(short(&[15.0, 30.0, 60.0, 120.0, 84.0]), Some(full));
        // One round trip with a queue may be chance.
        assert_eq!(short(&[15.0, 30.0, 45.0, 120.0]), Some(Filled { certain: false, ..full }));
    }

    /// The delay of a path of 7 MB/s rose from 46 to 87 ms at the exit: a flight of 392 kB leaves it empty.
    #[test]
    fn a_delay_that_steps_up_at_the_exit_is_not_certain_to_be_a_queue() {
        let seen = [
            (202_720.0, 3_364_014.0, 0.0468),
            (392_408.0, 2_904_120.0, 0.0593),
            (392_408.0, 3_118_439.0, 0.0874),
            (279_464.0, 3_172_834.0, 0.0874),
            (283_808.0, 3_209_328.0, 0.0874),
            (289_600.0, 3_264_941.0, 0.0875),
            (293_944.0, 3_326_570.0, 0.0876),
            (298_288.0, 3_357_760.0, 0.0877),
            (302_632.0, 3_430_512.0, 0.0876),
        ];
        let all = seen.map(|(flight, rate, rtt)| Carried { flight, rate, rtt, most: rtt, usable: true });
        assert_eq!(judge(&all, 2, 392_408.0).map(|f| f.certain), Some(false));
    }

    #[test]
    fn a_delay_that_steps_up_is_no_queue() {
        let flights: Vec<f64> =
            [10.0, 20.0, 40.0].into_iter().chain((0..30).map(|n| 42.0 + 2.0 * f64::from(n))).collect();
        let found = judge(&all(&flights, |n| if n < 2 { 0.05 } else { 0.1 }, 1e9), 2, 40.0);
        assert_eq!(found.map(|f| f.full), Some(false));
    }

    #[test]
    fn a_queue_that_others_fill_is_not_certain_to_be_none() {
        let flights: Vec<f64> =
            [10.0, 20.0, 40.0].into_iter().chain((0..30).map(|n| 42.0 + 2.0 * f64::from(n))).collect();
        let rtt = |n: usize| if n > 2 && n.is_multiple_of(8) { 0.06 } else { 0.05 };
        let found = judge(&all(&flights, rtt, 1e9), 2, 40.0);
        assert_eq!(found, Some(Filled { full: false, waited: false, certain: false }));
    }

    #[test]
    fn an_exit_is_early_if_the_rate_then_follows_the_flight() {
        let flights: Vec<f64> =
            [10.0, 20.0, 40.0].into_iter().chain((0..30).map(|n| 42.0 + 2.0 * f64::from(n))).collect();
        let mut seen = all(&flights, |_| 0.05, 1e9);
        let found = judge(&seen, 2, 40.0);
        assert_eq!(found, Some(Filled { full: false, waited: false, certain: true }));
        // A packet waited at the exit: the link may have been slower then.
        seen[2].most = 0.08;
        assert_eq!(judge(&seen, 2, 40.0).map(|f| f.certain), Some(false));
        // No sample says whether one did.
        (seen[2].rtt, seen[2].most) = (0.0, 0.0);
        assert_eq!(judge(&seen, 2, 40.0).map(|f| f.certain), Some(false));
    }
}
