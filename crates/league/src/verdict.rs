//! The league in a few sentences: who reaches 10 MB sooner than the baseline, and what that costs.

use crate::game::GameRow;
use crate::rank::{Place, Terms, places};
use crate::score::populations;
use slowstart_study::decision::Change;
use slowstart_study::price::{Price, RARE};
use slowstart_study::stats::FEWEST_PAIRS;
use slowstart_study::words::{list, number, signed};

/// Most startups that a sentence names.
const NAMED: usize = 4;

fn change(p: &Place) -> Option<Change> {
    p.differences[0].map(|d| d.change)
}

fn gain(p: &Place) -> f64 {
    p.differences[0].map_or(0.0, |d| d.median.mid)
}

/// True if it takes less time, by the margin at least, where both get there.
fn is_sooner(p: &Place, terms: &Terms) -> bool {
    gain(p).is_finite() && gain(p) <= -100.0 * terms.margin
}

/// Cases in which it never delivers 10 MB and the baseline does.
fn stalls(p: &Place) -> usize {
    p.differences[0].map_or(0, |d| d.never[0])
}

fn names(of: &[&Place], text: impl Fn(&Place) -> String) -> String {
    let mut named: Vec<String> = of.iter().take(NAMED).map(|p| text(p)).collect();
    named.extend((of.len() > NAMED).then(|| format!("{} more", of.len() - NAMED)));
    list(&named)
}

/// `loses more packets in 14 of 69 cases (up to 3,749 more)`.
fn cost(price: Option<Price>, does: [&str; 3]) -> Option<String> {
    let [more, nothing, hidden] = does;
    let p = price?;
    Some(if p.is_paid() {
        format!("{more} in {} of {} cases (up to {} more)", p.pays, p.runs, number(p.most.round()))
    } else if p.is_nothing() {
        nothing.to_string()
    } else {
        format!("{hidden} in {} of {} cases", p.unseen, p.runs)
    })
}

fn costs(p: &Place) -> String {
    let own = ["loses more packets", "loses no more packets", "does not show its losses"];
    let others = [
        "makes other flows lose more",
        "makes other flows lose no more",
        "does not show what other flows lose",
    ];
    let all = [cost(p.prices[0], own), cost(p.prices[1], others)];
    list(&all.into_iter().flatten().collect::<Vec<_>>())
}

/// The share of cases in which it pays or may, over both costs.
fn paid(p: &Place) -> f64 {
    let share = |p: &Price| (p.pays + p.unseen) as f64 / p.runs.max(1) as f64;
    p.prices.iter().flatten().filter(|p| !p.is_nothing()).map(share).sum()
}

/// Returns the verdict over the cases of all populations: a few sentences, or why there is none.
pub fn verdict(rows: &[GameRow], terms: &Terms) -> String {
    let places = places(rows, None, terms);
    let Some((base, others)) = places.split_first() else {
        return "There is no verdict: there are no cases.".into();
    };
    let name = base.startup;
    if others.is_empty() {
        return format!("There is no verdict: there is nothing to compare {name} with.");
    }
    if base.broke_a_rule {
        return format!("There is no verdict: the baseline, {name}, broke a rule.");
    }
    let cases = others.iter().filter_map(|p| p.differences[0]).map(|d| d.runs).max().unwrap_or(0);
    if cases < FEWEST_PAIRS {
        return format!(
            "There is no verdict: {cases} cases decide nothing, it takes {FEWEST_PAIRS} or more."
        );
    }
    let able: Vec<&Place> = others.iter().filter(|p| p.rank.is_some() && !p.is_apart()).collect();
    let are = |what: Change| able.iter().copied().filter(|p| change(p) == Some(what)).collect::<Vec<_>>();
    // What is only better in that it completes where the baseline does not is no sooner.
    let by_time = |p: &&Place| is_sooner(p, terms);
    let mut sooner: Vec<&Place> = are(Change::Better).into_iter().filter(by_time).collect();
    sooner.sort_by(|a, b| paid(a).total_cmp(&paid(b)).then(gain(a).total_cmp(&gain(b))));
    let mut told = Vec::new();
    let by = |p: &Place| {
        let d = p.differences[0].expect("it has been compared").median;
        format!("{} % ({} to {})", signed(d.mid), signed(d.low), signed(d.high))
    };
    match sooner.first() {
        None => told.push(format!(
            "Over {cases} cases together no startup that every sender can use is shown to reach 10 MB {} % sooner than {name}.",
            number(100.0 * terms.margin)
        )),
        Some(best) => {
            told.push(format!(
                "Over {cases} cases {} of {} others reach 10 MB sooner than {name}. {} costs least: {} in time, and it {}.",
                sooner.len(),
                able.len(),
                best.startup,
                by(best),
                costs(best)
            ));
            let fastest = sooner.iter().min_by(|a, b| gain(a).total_cmp(&gain(b))).filter(|f| gain(f) < gain(best));
            told.extend(
                fastest.map(|f| format!("{} gains most: {}, and it {}.", f.startup, by(f), costs(f))),
            );
        }
    }
    told.extend(somewhere(rows, terms));
    let spares = |p: &Place| p.prices[0].is_some_and(|c| c.spares > c.pays && c.spares * RARE >= c.runs);
    let mut sparing: Vec<&Place> =
        able.iter().copied().filter(|p| change(p) == Some(Change::Even) && spares(p)).collect();
    sparing.sort_by_key(|p| std::cmp::Reverse(p.prices[0].map(|c| c.spares)));
    let lost = |p: &Place| {
        let c = p.prices[0].unwrap_or_default();
        let more = if c.pays > 0 { format!(", more in {}", c.pays) } else { String::new() };
        format!("{} in {} of {}{more}", p.startup, c.spares, c.runs)
    };
    told.extend(
        (!sparing.is_empty())
            .then(|| format!("As fast as {name}, with fewer packets lost: {}.", names(&sparing, lost))),
    );
    let stalling: Vec<&Place> = able.iter().copied().filter(|p| stalls(p) > 0).collect();
    let completing: Vec<&Place> =
        able.iter().copied().filter(|p| p.differences[0].is_some_and(|d| d.never[1] > 0)).collect();
    told.extend((!completing.is_empty()).then(|| {
        let some = |p: &Place| format!("{} in {}", p.startup, p.differences[0].map_or(0, |d| d.never[1]));
        format!("Delivers 10 MB where {name} never does, by cases: {}.", names(&completing, some))
    }));
    told.extend((!stalling.is_empty()).then(|| {
        let some = |p: &Place| format!("{} in {}", p.startup, stalls(p));
        format!("Never delivers 10 MB where {name} does, by cases: {}.", names(&stalling, some))
    }));
    let unsure: Vec<&Place> = able
        .iter()
        .copied()
        .filter(|p| {
            stalls(p) == 0 && matches!(change(p), None | Some(Change::NotShown { .. } | Change::TooFew))
        })
        .collect();
    told.extend(
        (!unsure.is_empty()).then(|| {
            format!("Not shown, for more cases to decide: {}.", names(&unsure, |p| p.startup.into()))
        }),
    );
    let broken: Vec<&Place> = others.iter().filter(|p| p.broke_a_rule).collect();
    told.extend(
        (!broken.is_empty()).then(|| format!("Broke a rule: {}.", names(&broken, |p| p.startup.into()))),
    );
    told.join(" ")
}

/// What it costs, in brackets behind its gain: nothing if it is shown to cost nothing.
fn pays_there(p: &Place) -> String {
    let cost = |price: Option<Price>, more: &str, hidden: &str| match price {
        Some(c) if c.is_paid() => format!(", {more} in {} of {}", c.pays, c.runs),
        Some(c) if !c.is_nothing() => format!(", {hidden}"),
        _ => String::new(),
    };
    let own = cost(p.prices[0], "more lost", "its losses not shown");
    own + &cost(p.prices[1], "others lose more", "what others lose not shown")
}

/// The populations in which a startup is sooner, each with the one that gains most there: the median over all
/// cases hides them.
fn somewhere(rows: &[GameRow], terms: &Terms) -> Option<String> {
    let mut all: Vec<(f64, String)> = Vec::new();
    let populations = populations(rows);
    for name in populations.iter().filter(|_| populations.len() > 1) {
        let places = places(rows, Some(name), terms);
        let sooner = places.iter().skip(1).filter(|p| {
            change(p) == Some(Change::Better) && is_sooner(p, terms) && p.rank.is_some() && !p.is_apart()
        });
        if let Some(p) = sooner.min_by(|a, b| gain(a).total_cmp(&gain(b))) {
            let gains = format!("{} {} %", p.startup, signed(gain(p)));
            all.push((gain(p), format!("{name} ({gains}{})", pays_there(p))));
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut named: Vec<String> = all.iter().take(NAMED).map(|x| x.1.clone()).collect();
    let more = all.len().saturating_sub(NAMED);
    named.extend((more > 0).then(|| format!("{more} more (--by-population)")));
    (!named.is_empty()).then(|| format!("Soonest by population: {}.", list(&named)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::tests::row;
    use slowstart_study::record::Class;

    const TERMS: Terms = Terms { baseline: "hystart", margin: 0.03 };

    fn cases(startup: &str, n: u32, by: f64, lost: impl Fn(u32) -> u64) -> Vec<GameRow> {
        let one = |case: u32| {
            let mut r = row(startup, case, by * f64::from(case + 1), lost(case));
            r.time_s.insert("10000000".into(), Some(10.0 * by * f64::from(case + 1)));
            r
        };
        (0..n).map(one).collect()
    }

    fn said(all: &[Vec<GameRow>]) -> String {
        verdict(&all.concat(), &TERMS)
    }

    /// The median of the losses is 0; four cases of twelve lose 3,000.
    #[test]
    fn a_price_is_a_share_of_cases() {
        let base = || cases("hystart", 12, 1.0, |_| 0);
        let text = said(&[base(), cases("search", 12, 0.6, |c| if c % 3 == 0 { 3000 } else { 0 })]);
        assert!(text.contains("loses more packets in 4 of 12 cases (up to 3,000 more)"), "{text}");
        let text = said(&[base(), cases("search", 12, 0.6, |_| 0)]);
        assert!(
            text.contains("1 of 1 others reach 10 MB sooner") && text.contains("loses no more packets"),
            "{text}"
        );
        let mut hidden = cases("search", 12, 0.6, |_| 0);
        for r in &mut hidden {
            r.class = Class::None;
        }
        let text = said(&[base(), hidden]);
        assert!(
            text.contains("does not show its losses in 12 of 12 cases") && !text.contains("no more"),
            "{text}"
        );
    }

    #[test]
    fn what_stalls_broke_a_rule_or_is_not_shown_gains_nothing() {
        let base = || cases("hystart", 12, 1.0, |_| 0);
        let mut stalls = cases("stalls", 12, 0.5, |_| 0);
        stalls[3].time_s.insert("10000000".into(), None);
        let mut broken = cases("broken", 12, 0.5, |_| 0);
        broken[0].broken = Some("cwnd 0".into());
        let mut mixed = cases("mixed", 12, 0.9, |_| 0);
        mixed.iter_mut().step_by(3).for_each(|r| r.time_s.values_mut().flatten().for_each(|t| *t *= 1.4));
        let of_broken = verdict(&[broken.clone(), base()].concat(), &Terms { baseline: "broken", ..TERMS });
        assert_eq!(of_broken, "There is no verdict: the baseline, broken, broke a rule.");
        let text = said(&[base(), stalls, broken, mixed]);
        assert!(text.starts_with("Over 12 cases together no startup"), "{text}");
        for what in ["hystart does, by cases: stalls in 1.", "Broke a rule: broken.", "decide: mixed."] {
            assert!(text.contains(what), "{what}: {text}");
        }
    }

    /// Where the baseline never gets there, six others get there as late as it does elsewhere.
    #[test]
    fn completing_where_the_baseline_does_not_is_no_sooner() {
        let mut base = cases("hystart", 12, 1.0, |_| 0);
        base[3].time_s.insert("10000000".into(), None);
        let text = said(&[base, cases("same", 12, 1.0, |_| 0)]);
        assert!(
            text.contains("where hystart never does, by cases: same in 1.") && !text.contains("costs least"),
            "{text}"
        );
    }

    /// Over all cases the median is 0; in six of eighteen it is half the time.
    #[test]
    fn the_median_over_all_hides_no_population() {
        let base = cases("hystart", 18, 1.0, |_| 0);
        let mut fast = cases("fast", 18, 1.0, |_| 0);
        fast[..6].iter_mut().for_each(|r| r.time_s.values_mut().flatten().for_each(|t| *t *= 0.5));
        fast[..2].iter_mut().for_each(|r| r.startup_lost_packets = Some(900));
        let mut all = vec![base, fast];
        for r in all.iter_mut().flat_map(|rows| &mut rows[..6]) {
            r.population = "geo".into();
        }
        let text = said(&all);
        assert!(
            text.starts_with("Over 18 cases together no startup")
                && text.contains("by population: geo (fast -50 %, more lost in 2 of 6)"),
            "{text}"
        );
    }

    #[test]
    fn few_cases_and_one_startup_give_no_verdict() {
        let of = |n| said(&[cases("hystart", n, 1.0, |_| 0), cases("fast", n, 0.5, |_| 0)]);
        assert!(of(5).contains("There is no verdict: 5 cases decide nothing"), "{}", of(5));
        assert!(of(6).contains("fast costs least: -50 %"), "{}", of(6));
        assert!(said(&[cases("hystart", 9, 1.0, |_| 0)]).contains("nothing to compare hystart with"));
    }
}
