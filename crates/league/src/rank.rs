//! Startups against a baseline, case by case, by what decides in a comparison: a rank only where a difference
//! is certain and beyond the margin, and what it costs as a share of the cases.

use crate::game::GameRow;
use crate::score::{Exits, Measure, scores, startups};
use crate::sheet::{ABSENT, Sheet, percent};
use slowstart::registry::{self, Need};
use slowstart_study::difference::{Change, Difference, times};
use slowstart_study::measures::LOSS_MARGIN;
use slowstart_study::order::Order;
use slowstart_study::price::Price;
use slowstart_study::record::Class;
use slowstart_study::stats::FEWEST_PAIRS;
use slowstart_study::words::{marked, signed};
use std::collections::BTreeMap;

/// What startups are compared with, and by which margin.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Terms<'a> {
    /// The baseline; the first startup if it is not among them.
    pub baseline: &'a str,
    /// Differences of times below this share count as noise.
    pub margin: f64,
}

/// A startup and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<'a> {
    /// The startup as written, with its parameters.
    pub startup: &'a str,
    /// One more than the number of startups that reach 10 MB sooner at 95 % confidence, directly or by way of
    /// others; `None` if it broke a rule, or is reconstructed.
    pub rank: Option<usize>,
    /// True if none that every sender can use beats it in time and costs together, directly or by way of others.
    /// What broke a rule, never gets there where another does, or hides what it loses is beaten, and fewer than
    /// [`FEWEST_PAIRS`] cases decide nothing. What needs something that a sender may lack beats only its like.
    pub unbeaten: bool,
    /// What it needs that a sender may lack.
    pub need: Option<Need>,
    /// True if it broke a rule, so that it has no figures.
    pub broke_a_rule: bool,
    /// True if it is reconstructed without its paper: it neither ranks nor beats another.
    pub reconstructed: bool,
    /// The differences in time from the baseline; none for the baseline itself.
    pub differences: [Option<Difference>; TIMES.len()],
    /// In how many cases it loses more packets than the baseline, and makes others lose more; none for the
    /// baseline itself.
    pub prices: [Option<Price>; COSTS.len()],
}

impl Place<'_> {
    /// True if it is no answer for every sender: it needs what one may lack, or is reconstructed.
    pub fn is_apart(&self) -> bool {
        self.reconstructed || self.need.is_some_and(Need::is_rare)
    }
}

/// The times that are compared; the first decides.
const TIMES: [Measure; 2] = [Measure::Regret10MB, Measure::Regret1MB];
/// What a startup may cost.
const COSTS: [Measure; 2] = [Measure::Lost, Measure::OthersLost];

/// The cases of a startup, each at the place that it has for every startup.
type Cases<'a> = Vec<Option<&'a GameRow>>;

/// The cases that two startups have.
fn both<'a>(a: &Cases<'a>, b: &Cases<'a>) -> impl Iterator<Item = (&'a GameRow, &'a GameRow)> {
    a.iter().zip(b).filter_map(|(a, b)| Some(((*a)?, (*b)?)))
}

fn difference(a: &Cases, b: &Cases, m: Measure, margin: f64) -> Option<Difference> {
    let value = |r: &GameRow| Some(gets_there(r, m).then_some(m.of(r)?));
    let pairs: Vec<_> = both(a, b).filter_map(|(x, y)| Some((value(x)?, value(y)?))).collect();
    times(&pairs, margin)
}

/// What `a` costs against `b`, over the cases that have the measure. What stalls loses little: a case in which only `b`
/// does is left out, and where only `a` does it spares nothing. A transfer that ends before its startup does shows only
/// losses that it had.
fn price(a: &Cases, b: &Cases, m: Measure) -> Price {
    let never = |r: &GameRow| r.never(10_000_000);
    let pairs: Vec<_> = both(a, b).filter(|(x, y)| m.of(x).is_some() && m.of(y).is_some()).collect();
    let counted = pairs.iter().filter(|(x, y)| never(x) || !never(y));
    let differences = counted.map(|(x, y)| {
        let by = m.of(x)? - m.of(y)?;
        let by = if never(x) && !never(y) { by.max(0.0) } else { by };
        let hidden = m == Measure::Lost && x.class == Class::None;
        (by > LOSS_MARGIN || !hidden).then_some(by)
    });
    let price = Price::of(differences, LOSS_MARGIN);
    Price { left_out: pairs.len() - price.runs, ..price }
}

/// True if `a` beats `b` in time and costs together. It has an advantage: it is sooner at 95 % confidence, or it costs
/// less in at least one case in twenty and more in fewer. And it has no drawback: it is not later at 95 % confidence,
/// does not cost more in more cases than it costs less, completes wherever `b` does, and shows every cost that `b` shows.
fn is_better(a: &Cases, b: &Cases, margin: f64) -> bool {
    let times = || TIMES.iter().filter_map(|m| difference(a, b, *m, margin));
    if times().any(|d| d.change == Change::Worse || d.never[0] > 0) {
        return false;
    }
    let costs = COSTS.map(|m| (price(a, b, m), price(b, a, m)));
    let spares = |(own, theirs): &(Price, Price)| theirs.is_paid() && own.is_nothing();
    !costs.iter().any(|(own, theirs)| own.outweighs() || own.is_unseen() && !theirs.is_unseen())
        && (costs.iter().any(spares) || times().any(|d| d.change == Change::Better))
}

/// True if the case has a time to these bytes.
fn gets_there(r: &GameRow, m: Measure) -> bool {
    match m {
        Measure::Regret10MB => !r.never(10_000_000),
        _ => !r.never(1_000_000),
    }
}

/// The startups in the order of the decision: the baseline, then by the difference in time to 10 MB, none
/// behind one that it beats at 95 % confidence; last those that need what a sender may lack, and the reconstructed.
pub fn places<'a>(rows: &'a [GameRow], population: Option<&str>, terms: &Terms) -> Vec<Place<'a>> {
    let names = startups(rows);
    if names.is_empty() {
        return Vec::new();
    }
    let base = names.iter().position(|n| *n == terms.baseline).unwrap_or(0);
    let judged: Vec<&GameRow> =
        rows.iter().filter(|r| population.is_none_or(|p| r.population == p)).collect();
    let numbers: BTreeMap<(&str, u32), usize> =
        judged.iter().map(|r| ((r.population.as_str(), r.case), 0)).collect();
    let numbers: BTreeMap<_, usize> = numbers.into_keys().enumerate().map(|(i, case)| (case, i)).collect();
    let mut own: Vec<Cases> = vec![vec![None; numbers.len()]; names.len()];
    for r in judged {
        let at = numbers[&(r.population.as_str(), r.case)];
        let startup = names.iter().position(|n| *n == r.startup).expect("the names are those of the rows");
        own[startup][at] = Some(r);
    }
    let entries: Vec<_> = names.iter().map(|n| registry::named(n.split(':').next().unwrap_or(n))).collect();
    let needs: Vec<Option<Need>> =
        entries.iter().map(|e| e.as_ref().and_then(|e| e.algorithm.need())).collect();
    let reconstructed: Vec<bool> =
        entries.iter().map(|e| e.as_ref().is_some_and(|e| e.is_reconstructed)).collect();
    let broken: Vec<bool> =
        names.iter().map(|n| rows.iter().any(|r| r.startup == *n && r.broken.is_some())).collect();
    let ranks = |i: usize| !broken[i] && !reconstructed[i];
    let lacking: Vec<bool> =
        (0..names.len()).map(|i| i != base && (!ranks(i) || needs[i].is_some_and(Need::is_rare))).collect();
    let time = |i: usize, j: usize| difference(&own[i], &own[j], TIMES[0], terms.margin);
    let order = Order::new(names.len(), |i, j| {
        ranks(i) && time(i, j).is_some_and(|d: Difference| d.change == Change::Better)
    });
    let costs: Vec<f64> =
        (0..names.len()).map(|i| time(i, base).map_or(f64::INFINITY, |d| d.median.mid)).collect();
    let better = Order::new(names.len(), |i, j| {
        ranks(i) && (!lacking[i] || lacking[j]) && is_better(&own[i], &own[j], terms.margin)
    });
    let stalled = |i: usize| own[i].iter().flatten().filter(|r| r.never(10_000_000)).count();
    let price_of = |i: usize, m: Measure| price(&own[i], &own[base], m);
    let unbeaten = |i: usize| {
        let able = |j: &usize| ranks(*j) && (!lacking[*j] || lacking[i]);
        ranks(i)
            && own[i].iter().flatten().count() >= FEWEST_PAIRS
            && (i == base || !price_of(i, COSTS[0]).is_unseen())
            && !(0..names.len()).filter(able).any(|j| better.is_ahead(j, i) || stalled(j) < stalled(i))
    };
    let place = |i: usize| {
        let judged = i != base && !broken[i];
        Place {
            startup: names[i],
            rank: ranks(i).then(|| order.rank(i)),
            unbeaten: unbeaten(i),
            need: needs[i],
            broke_a_rule: broken[i],
            reconstructed: reconstructed[i],
            differences: TIMES.map(|m| difference(&own[i], &own[base], m, terms.margin).filter(|_| judged)),
            prices: COSTS.map(|m| judged.then(|| price_of(i, m)).filter(|p| p.runs > 0)),
        }
    };
    order.sorted(base, &lacking, &costs).into_iter().map(place).collect()
}

/// A difference in time as text; with a question mark if the cases do not show it.
fn time(d: Option<Difference>) -> String {
    let Some(d) = d else { return ABSENT.to_string() };
    let unsure = if matches!(d.change, Change::NotShown { .. } | Change::TooFew) { "?" } else { "" };
    let [mid, low, high] = [d.median.mid, d.median.low, d.median.high].map(signed);
    let range = if low == high { String::new() } else { format!(" ({low} to {high})") };
    let never = match d.never {
        [0, 0] => return format!("{mid}{range}{unsure}"),
        [own, 0] => format!("never in {own} of {}", d.runs),
        [0, theirs] => format!("the first never in {theirs} of {}", d.runs),
        [own, theirs] => format!("never in {own} of {}, the first in {theirs}", d.runs),
    };
    // In no case do both get there.
    if d.median.mid.is_finite() { format!("{mid}{range}{unsure}, {never}") } else { never }
}

/// The percentages of cases that pay and that spare; with a question mark if too many do not show it.
fn shares(p: Option<Price>) -> String {
    let of = |some: usize, p: Price| percent(100.0 * some as f64 / p.runs as f64);
    let text =
        |p: Price| format!("{}/{}{}", of(p.pays, p), of(p.spares, p), if p.is_unseen() { "?" } else { "" });
    p.map_or(ABSENT.to_string(), text)
}

/// The places as a table. What the cases do not show has a question mark.
pub fn sheet(rows: &[GameRow], population: Option<&str>, terms: &Terms) -> Sheet {
    let scores = scores(rows, population);
    let line = |p: Place| {
        let at = scores.iter().position(|s| s.startup == p.startup);
        let need = if p.need.is_some_and(Need::is_rare) { " +" } else { "" };
        let none = if p.broke_a_rule { "broke a rule" } else { ABSENT };
        let rank = p.rank.map_or(none.to_string(), |r| r.to_string());
        let mut cells =
            vec![format!("{}{}{need}", marked(p.startup), if p.unbeaten { " *" } else { "" }), rank];
        cells.extend(p.differences.map(time));
        cells.extend(p.prices.map(shares));
        let e = at.map_or_else(Exits::default, |i| scores[i].exits);
        cells.extend([e.early_by_rule + e.early_by_loss, e.full, e.late, e.none].map(percent));
        cells
    };
    Sheet {
        title: "Against the first line, case by case: median difference in time (%), and shares of cases (%)",
        headers: vec![
            "startup",
            "rank",
            "10 MB",
            "1 MB",
            "loses more/less",
            "others more/less",
            "early",
            "full",
            "late",
            "none",
        ],
        lines: places(rows, population, terms).into_iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::tests::row;

    const TERMS: Terms = Terms { baseline: "hystart", margin: 0.03 };

    fn cases(startup: &str, by: f64, lost: u64) -> impl Iterator<Item = GameRow> {
        let startup = startup.to_string();
        (0..8).map(move |case| {
            let seconds = by * (1.0 + f64::from(case * case));
            let mut r = row(&startup, case, seconds, lost);
            r.time_s.insert("10000000".into(), Some(10.0 * seconds));
            r
        })
    }

    /// Means of regrets are those of the slowest cases; here each case counts against the same case.
    #[test]
    fn a_rank_needs_a_certain_difference_beyond_the_margin() {
        let rows: Vec<GameRow> = cases("careful-resume", 0.5, 0)
            .chain(cases("same", 1.02, 0))
            .chain(cases("slow", 1.5, 0))
            .chain(cases("hystart", 1.0, 0))
            .chain(cases("fast", 0.7, 900))
            .collect();
        let all = places(&rows, None, &TERMS);
        let found: Vec<(&str, usize)> = all.iter().map(|p| (p.startup, p.rank.expect("a rank"))).collect();
        assert_eq!(
            found,
            [("hystart", 3), ("fast", 2), ("same", 3), ("slow", 5), ("careful-resume", 1)],
            "the baseline first, what needs memory last"
        );
        let lines = sheet(&rows, None, &TERMS).lines;
        assert_eq!(lines[1], ["fast *", "2", "-30", "-30", "100/0", "-", "0", "100", "0", "0"]);
        assert_eq!((lines[0][2].as_str(), lines[4][0].as_str()), ("-", "careful-resume * +"));
    }

    #[test]
    fn what_is_reconstructed_has_no_rank_and_beats_nobody() {
        let rows: Vec<GameRow> = cases("hystart", 1.0, 0)
            .chain(cases("search", 0.8, 0))
            .chain(cases("jump-start", 0.5, 0))
            .collect();
        let found: Vec<(&str, Option<usize>, bool)> =
            places(&rows, None, &TERMS).iter().map(|p| (p.startup, p.rank, p.unbeaten)).collect();
        assert_eq!(
            found,
            [("hystart", Some(2), false), ("search", Some(1), true), ("jump-start", None, false)]
        );
        assert_eq!(sheet(&rows, None, &TERMS).lines[2][..2], ["jump-start~", "-"]);
        assert!(!crate::verdict::verdict(&rows, &TERMS).contains("jump-start"));
    }

    /// Faster in six of eight cases, and never there in two: later than any time.
    #[test]
    fn what_never_gets_there_is_later_than_any_and_what_broke_a_rule_has_no_rank() {
        let mut rows: Vec<GameRow> =
            cases("hystart", 1.0, 0).chain(cases("stalls", 0.5, 0)).chain(cases("broken", 0.5, 0)).collect();
        for r in rows.iter_mut().filter(|r| r.startup == "stalls" && r.case < 2) {
            r.time_s.insert("10000000".into(), None);
        }
        rows.iter_mut().filter(|r| r.startup == "broken").for_each(|r| r.broken = Some("cwnd 0".into()));
        let ranks: Vec<(&str, Option<usize>)> =
            places(&rows, None, &TERMS).iter().map(|p| (p.startup, p.rank)).collect();
        assert_eq!(ranks, [("hystart", Some(1)), ("stalls", Some(2)), ("broken", None)]);
        let lines = sheet(&rows, None, &TERMS).lines;
        assert_eq!((lines[1][2].as_str(), lines[2][1].as_str()), ("-50, never in 2 of 8", "broke a rule"));
    }

    /// In one case of eight, in which it loses nothing: that is no merit, and half the time elsewhere beats nobody.
    #[test]
    fn what_once_never_gets_there_has_no_merit_by_it() {
        let mut rows: Vec<GameRow> = cases("hystart", 1.0, 900).chain(cases("stalls", 0.5, 900)).collect();
        for r in rows.iter_mut().filter(|r| r.startup == "stalls" && r.case == 1) {
            r.time_s.insert("10000000".into(), None);
            r.startup_lost_packets = Some(0);
        }
        let all = places(&rows, None, &TERMS);
        assert_eq!(all[1].prices[0].map(|p| (p.spares, p.runs)), Some((0, 8)));
        assert!(all[0].unbeaten);
    }

    #[test]
    fn what_never_gets_there_anywhere_is_behind() {
        let mut rows: Vec<GameRow> = cases("hystart", 1.0, 0).chain(cases("stalls", 0.5, 0)).collect();
        for r in rows.iter_mut().filter(|r| r.startup == "stalls") {
            r.time_s.insert("10000000".into(), None);
        }
        let ranks: Vec<_> = places(&rows, None, &TERMS).iter().map(|p| (p.startup, p.rank)).collect();
        assert_eq!(ranks, [("hystart", Some(1)), ("stalls", Some(2))]);
        assert_eq!(sheet(&rows, None, &TERMS).lines[1][2], "never in 8 of 8");
    }

    /// The mean of `clean` is worse than that of `lossy` in time, and no case is.
    #[test]
    fn a_star_is_by_cases_and_not_by_means() {
        let mut rows: Vec<GameRow> = cases("hystart", 1.0, 0)
            .chain(cases("clean", 0.7, 0))
            .chain(cases("lossy", 0.7, 0))
            .chain(cases("hidden", 0.7, 0))
            .collect();
        for r in &mut rows {
            match (r.startup.as_str(), r.case) {
                ("lossy", 3) => r.startup_lost_packets = Some(900),
                ("clean", 7) => r.time_s.values_mut().flatten().for_each(|t| *t *= 1.02),
                ("hidden", _) => r.class = Class::None,
                _ => {}
            }
        }
        let stars = |rows: &[GameRow]| -> Vec<String> {
            let all = places(rows, None, &TERMS);
            all.iter().filter(|p| p.unbeaten).map(|p| p.startup.to_string()).collect()
        };
        assert_eq!(stars(&rows), ["clean"], "lossy loses in one case of eight, hidden shows no losses");
        let few: Vec<GameRow> = rows.iter().filter(|r| r.case < 5).cloned().collect();
        assert_eq!(stars(&few), [""; 0], "five cases decide nothing");
        // A startup that stalls loses little.
        rows.iter_mut()
            .filter(|r| r.startup == "clean" && r.case == 0)
            .for_each(|r| _ = r.time_s.insert("10000000".into(), None));
        assert_eq!(stars(&rows), ["hystart", "lossy"], "lossy is sooner and loses more");
    }

    #[test]
    fn what_cases_do_not_show_has_no_rank() {
        let mut rows: Vec<GameRow> = cases("hystart", 1.0, 0).chain(cases("mixed", 0.9, 0)).collect();
        for r in rows.iter_mut().filter(|r| r.startup == "mixed" && r.case % 3 == 0) {
            r.time_s.values_mut().flatten().for_each(|t| *t *= 1.4);
        }
        let lines = sheet(&rows, None, &TERMS).lines;
        assert_eq!((lines[0][1].as_str(), lines[1][1].as_str()), ("1", "1"));
        assert!(lines[1][2].ends_with('?'), "{lines:?}");
    }
}
