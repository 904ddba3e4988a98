//! Startups against a baseline, case by case, by what decides in a comparison: a rank only where a difference
//! is certain and beyond the margin, and what it costs as a share of the cases.

use crate::game::GameRow;
use crate::score::{Exits, Measure, front, scores, startups};
use crate::sheet::{ABSENT, Sheet, percent};
use slowstart::registry::{self, Need};
use slowstart_study::decision::{Change, Difference, LOSS_MARGIN, times};
use slowstart_study::order::Order;
use slowstart_study::price::Price;
use slowstart_study::record::Class;
use slowstart_study::words::{marked, signed};
use std::collections::BTreeMap;

/// What startups are compared with, and by which margin.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Terms<'a> {
    /// The baseline; the first startup if it is not among them.
    pub baseline: &'a str,
    /// Differences of times below this share are none.
    pub margin: f64,
}

/// A startup and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place<'a> {
    /// The startup as written, with its parameters.
    pub startup: &'a str,
    /// One more than the number of startups that certainly reach 10 MB sooner, directly or by way of others;
    /// `None` if it broke a rule.
    pub rank: Option<usize>,
    /// What it needs that a sender may lack.
    pub need: Option<Need>,
    /// The differences in time from the baseline; none for the baseline itself.
    pub differences: [Option<Difference>; TIMES.len()],
    /// In how many cases it loses more packets than the baseline, and makes others lose more; none for the
    /// baseline itself.
    pub prices: [Option<Price>; COSTS.len()],
}

/// The times that are compared; the first decides.
const TIMES: [Measure; 2] = [Measure::Regret10MB, Measure::Regret1MB];
/// What a startup may cost.
const COSTS: [Measure; 2] = [Measure::Lost, Measure::OthersLost];

/// The values of the cases of a startup, in the order of the rows; of a time `None` if it never got there.
type Values = Vec<((String, u32), Option<f64>)>;

fn difference(a: &Values, b: &Values, margin: f64) -> Option<Difference> {
    let known: BTreeMap<_, Option<f64>> = b.iter().map(|(case, v)| (case, *v)).collect();
    let pairs: Vec<_> = a.iter().filter_map(|(case, v)| Some((*v, *known.get(case)?))).collect();
    times(&pairs, margin)
}

/// What `a` costs against `b`, over the cases that have the measure and in which `b` gets there or neither does:
/// what stalls loses little. A transfer that ends before its startup does shows only losses that it had.
fn price(a: &[&GameRow], b: &[&GameRow], m: Measure) -> Price {
    let never = |r: &GameRow| r.never(10_000_000);
    let theirs: BTreeMap<_, &GameRow> = b.iter().map(|r| ((&r.population, r.case), *r)).collect();
    let pairs: Vec<(&GameRow, &GameRow)> = a
        .iter()
        .filter_map(|r| Some((*r, *theirs.get(&(&r.population, r.case))?)))
        .filter(|(x, y)| m.of(x).is_some() && m.of(y).is_some())
        .collect();
    let both = pairs.iter().filter(|(x, y)| never(x) || !never(y));
    let differences = both.map(|(x, y)| {
        let by = m.of(x)? - m.of(y)?;
        let hidden = m == Measure::Lost && x.class == Class::None;
        (by > LOSS_MARGIN || !hidden).then_some(by)
    });
    let price = Price::of(differences, LOSS_MARGIN);
    Price { left_out: pairs.len() - price.runs, ..price }
}

/// True if the case has a time to these bytes.
fn gets_there(r: &GameRow, m: Measure) -> bool {
    match m {
        Measure::Regret10MB => !r.never(10_000_000),
        _ => !r.never(1_000_000),
    }
}

/// The startups in the order of the decision: the baseline, then by the difference in time to 10 MB, none
/// behind one that it certainly beats; last those that need what a sender may lack.
pub fn places<'a>(rows: &'a [GameRow], population: Option<&str>, terms: &Terms) -> Vec<Place<'a>> {
    let names = startups(rows);
    if names.is_empty() {
        return Vec::new();
    }
    let base = names.iter().position(|n| *n == terms.baseline).unwrap_or(0);
    let own: Vec<Vec<&GameRow>> = names
        .iter()
        .map(|n| {
            rows.iter().filter(|r| r.startup == *n && population.is_none_or(|p| r.population == p)).collect()
        })
        .collect();
    let values = |rows: &Vec<&GameRow>, m: Measure| -> Values {
        let of = |r: &&GameRow| {
            let value = m.of(r)?;
            Some(((r.population.clone(), r.case), gets_there(r, m).then_some(value)))
        };
        rows.iter().filter_map(of).collect()
    };
    let all: Vec<[Values; TIMES.len()]> = own.iter().map(|rows| TIMES.map(|m| values(rows, m))).collect();
    let needs: Vec<Option<Need>> = names
        .iter()
        .map(|n| registry::named(n.split(':').next().unwrap_or(n)).and_then(|e| e.algorithm.need()))
        .collect();
    let broken: Vec<bool> =
        names.iter().map(|n| rows.iter().any(|r| r.startup == *n && r.broken.is_some())).collect();
    let lacking: Vec<bool> =
        (0..names.len()).map(|i| i != base && (broken[i] || needs[i].is_some_and(Need::is_rare))).collect();
    let time = |i: usize, j: usize| difference(&all[i][0], &all[j][0], terms.margin);
    let order = Order::new(names.len(), |i, j| {
        !broken[i] && time(i, j).is_some_and(|d: Difference| d.change == Change::Better)
    });
    let costs: Vec<f64> =
        (0..names.len()).map(|i| time(i, base).map_or(f64::INFINITY, |d| d.median.mid)).collect();
    let place = |i: usize| {
        let judged = i != base && !broken[i];
        Place {
            startup: names[i],
            rank: (!broken[i]).then(|| order.rank(i)),
            need: needs[i],
            differences: std::array::from_fn(|k| {
                difference(&all[i][k], &all[base][k], terms.margin).filter(|_| judged)
            }),
            prices: COSTS.map(|m| judged.then(|| price(&own[i], &own[base], m)).filter(|p| p.runs > 0)),
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
    let fronts = front(&scores);
    let line = |p: Place| {
        let at = scores.iter().position(|s| s.startup == p.startup);
        let star = at.is_some_and(|i| fronts[i]);
        let need = if p.need.is_some_and(Need::is_rare) { " +" } else { "" };
        let rank = p.rank.map_or("broke a rule".to_string(), |r| r.to_string());
        let mut cells = vec![format!("{}{}{need}", marked(p.startup), if star { " *" } else { "" }), rank];
        cells.extend(p.differences.map(time));
        cells.extend(p.prices.map(shares));
        let e = at.map_or_else(Exits::default, |i| scores[i].exits);
        cells.extend([e.early_by_rule + e.early_by_loss, e.choke, e.late, e.none].map(percent));
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
        assert_eq!(lines[1], ["fast", "2", "-30", "-30", "100/0", "-", "0", "100", "0", "0"]);
        assert_eq!((lines[0][2].as_str(), lines[4][0].as_str()), ("-", "careful-resume * +"));
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
