//! The verdict: a few sentences. What the baseline needs and why; the best answer within the margins of its costs, or the
//! cheapest; which startups nothing beats, and what the fastest costs; what did not complete or broke a rule.
//!
//! A price is stated as what happens: in how many runs, and how much at most. Nothing, not certain and not
//! shown have different words.

use crate::decision::{Change, Decision, Difference, Standing, is_broken, role};
use crate::measures::Measure;
use crate::price::{Price, RARE, share};
use crate::record::{Class, Row};
use crate::stats::FEWEST_PAIRS;
use crate::summary::Summary;
use crate::words::{bytes, delay, list, number, rate, share_of_bdp};
use slowstart::registry::Need;
use std::cmp::Ordering;

pub mod paths;

/// Most names in a list.
const NAMED: usize = 4;

/// Returns the verdict: a few sentences, or that there are no runs.
pub fn verdict(d: &Decision) -> String {
    let Some(base) = d.baseline() else { return "There are no runs, so there is no verdict.".into() };
    let mut sentences = vec![today(d, base)];
    if d.standings.len() > 1 {
        if let Some(why) = undecided(std::slice::from_ref(d)) {
            sentences.push(why);
        } else {
            let chosen = answer(d);
            sentences.push(chosen.text);
            sentences.extend(front(d, chosen.label));
        }
        let others: Vec<&str> = d.standings.iter().skip(1).map(|s| s.summary.label.as_str()).collect();
        sentences.extend(left_behind(std::slice::from_ref(d), &others));
    }
    sentences.join(" ")
}

/// The label of the startup that the verdict recommends; `None` if it is to keep the baseline.
pub fn recommended<'d>(d: &'d Decision) -> Option<&'d str> {
    if undecided(std::slice::from_ref(d)).is_some() { None } else { answer(d).label }
}

/// Why no verdict can be given over one path or several with the same baseline; `None` if one can.
fn undecided(all: &[Decision]) -> Option<String> {
    let Some(base) = all.first().and_then(Decision::baseline) else {
        return Some("There is no verdict: there are no runs.".into());
    };
    let label = &base.summary.label;
    let others = || all.iter().flat_map(|d| d.standings.iter().skip(1));
    let why = if others().next().is_none() {
        format!("there is nothing to compare {label} with")
    } else if all.iter().filter_map(Decision::baseline).any(|b| is_broken(&b.summary)) {
        format!("the baseline, {label}, broke a rule")
    } else if others().all(|s| is_broken(&s.summary)) {
        "every other startup broke a rule".to_string()
    } else if all.iter().all(|d| common(d).next().is_none()) {
        "every other startup needs what a sender may lack, or is reconstructed without its paper".to_string()
    } else if all.iter().any(Decision::is_decided) {
        return None;
    } else if all.iter().all(|d| d.runs() < FEWEST_PAIRS) {
        format!("it takes {FEWEST_PAIRS} valid runs or more (--runs)")
    } else {
        format!("nothing can be compared with {label}")
    };
    Some(format!("There is no verdict: {why}."))
}

/// Startups besides the baseline that need nothing special and broke no rule.
fn common<'s, 'a>(d: &'s Decision<'a>) -> impl Iterator<Item = &'s Standing<'a>> {
    d.standings.iter().skip(1).filter(|s| !s.is_apart() && !is_broken(&s.summary))
}

/// What the baseline needs, and how it leaves slow start.
fn today(d: &Decision, base: &Standing) -> String {
    let (s, row) = (&base.summary, base.summary.rows[0]);
    // Most runs of the baseline have a value of what decides.
    let (middle, some) = s.typical(d.by).map_or((0.0, 0), |(m, n)| (m.mid, n));
    let of = s.rows.len();
    let in_some = if some < of { format!(" in {}", share(some, of)) } else { String::new() };
    let who = match role(row, &s.label) {
        Some(role) => format!("{}, {role},", s.label),
        None => s.label.clone(),
    };
    let does = match d.by {
        Measure::ObjectMedian => {
            let tail = s.typical(Measure::ObjectP95).map(|(m, _)| number(m.mid));
            let tail = tail.map_or(String::new(), |t| format!(" and {t} s at the 95th percentile"));
            format!("needs {} s for the median object{tail}{in_some}", number(middle))
        }
        Measure::Goodput => format!("gets {} over {} s{in_some}", rate(middle * 1e6), number(row.duration_s)),
        by => format!("needs {} s{}{in_some}", number(middle), size(by, row)),
    };
    let few = match d.runs() {
        1 => " (one run, which may be chance)".to_string(),
        n if n < FEWEST_PAIRS => format!(" ({n} runs, which may be chance)"),
        _ => String::new(),
    };
    let every = if row.objects.is_some() { " every object" } else { "" };
    let unfinished = match s.unfinished() {
        0 => String::new(),
        n if n == of => format!(", and never completes{every}"),
        n => format!(", and does not complete{every} in {}", share(n, of)),
    };
    let broke = if is_broken(s) { ", and broke a rule" } else { "" };
    format!("{who} {does}{few}{unfinished}{broke}: {}.", manner(s))
}

fn size(by: Measure, row: &Row) -> String {
    match (by, row.size_bytes) {
        (Measure::Time10MB, _) => " for 10 MB".to_string(),
        (_, Some(size)) => format!(" for {}", bytes(size)),
        _ => String::new(),
    }
}

/// How most runs left slow start, and with which window they did.
fn manner(s: &Summary) -> String {
    let (class, n) = s.classes()[0];
    let runs = s.rows.len();
    let share = if n < runs { format!(" in {n} of {runs} runs") } else { String::new() };
    let of_class = s.rows.iter().filter(|r| r.class == class).copied().collect();
    let of_class = Summary { label: s.label.clone(), rows: of_class };
    let at = match of_class.typical(Measure::ExitWindow).map(|(m, _)| m.mid) {
        None => String::new(),
        // The window is full, the path is not: what is under way has not reached it, or the RTT has grown.
        Some(bdps) if class == Class::Early && bdps >= 0.995 => {
            format!(", before the bytes in flight fill the path, though its window is {}", share_of_bdp(bdps))
        }
        Some(bdps) => format!(", with a window of {}", share_of_bdp(bdps)),
    };
    format!("it {}{share}{at}", class.verb(false))
}

/// Joins the labels, at most [`NAMED`].
fn names(group: &[&Standing]) -> String {
    let mut names: Vec<String> = group.iter().map(|s| s.summary.label.clone()).collect();
    if names.len() > NAMED {
        let others = names.split_off(NAMED).len();
        names.push(if others == 1 { "one other".to_string() } else { format!("{others} others") });
    }
    list(&names)
}

fn change(d: &Decision, s: &Standing, figure: Measure) -> Option<Difference> {
    d.against(&s.summary, figure)
}

fn is(d: &Decision, s: &Standing, figure: Measure, what: Change) -> bool {
    change(d, s, figure).is_some_and(|c| c.change == what)
}

/// The gain in percent, positive if it is one.
fn gain(d: &Decision, s: &Standing) -> f64 {
    let mid = change(d, s, d.by).map_or(0.0, |c| c.median.mid);
    if d.by == Measure::Goodput { mid } else { -mid }
}

/// `41`, `0.4`, `under 0.1`: what is not zero is not printed as zero.
fn percent(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_string(),
        x if x < 0.05 => "under 0.1".to_string(),
        x if x < 0.95 => format!("{x:.1}"),
        x => number(x.round()),
    }
}

/// The difference from the baseline with its interval: `takes 41 % less time (35 to 44)`.
fn gains(d: &Decision, s: &Standing) -> String {
    let verb = takes(d.by, false);
    let Some(c) = change(d, s, d.by) else { return String::new() };
    let [mid, low, high] = [c.median.mid, c.median.low, c.median.high].map(f64::abs);
    let [low, mid, high] = [low.min(high), mid, low.max(high)].map(percent);
    let less = match (d.by, c.median.mid < 0.0) {
        (Measure::Goodput, true) => "less",
        (Measure::Goodput, false) => "more",
        (_, true) => "less time",
        (_, false) => "more time",
    };
    let range = if low == high { String::new() } else { format!(" ({low} to {high})") };
    let base = d.baseline().map_or("", |b| &b.summary.label);
    let completes = format!("completes in {} in which {base} does not", share(c.never[1], c.runs));
    let is_even = c.median.low.abs().max(c.median.high.abs()) <= 100.0 * d.margin();
    match c.never[1] {
        0 => format!("{verb} {mid} % {less}{range}"),
        // In no run do both get there.
        _ if !c.median.mid.is_finite() => format!("{verb} {less}, and {completes}"),
        _ if is_even => format!("{verb} as long, and {completes}"),
        // Where both get there, neither is known to be faster.
        _ if c.median.low * c.median.high <= 0.0 => completes,
        _ => format!("{verb} {mid} % {less}{range}, and {completes}"),
    }
}

/// The verb of a gain: a time is taken, a rate is got.
const fn takes(by: Measure, several: bool) -> &'static str {
    match (by, several) {
        (Measure::Goodput, false) => "gets",
        (Measure::Goodput, true) => "get",
        (_, false) => "takes",
        (_, true) => "take",
    }
}

/// What a startup costs beyond what the baseline does, or may cost, a clause each.
fn prices(d: &Decision, s: &Standing) -> Vec<String> {
    let mut all: Vec<String> = d.costs().filter_map(|f| clause(d, f, d.price(&s.summary, f)?)).collect();
    all.dedup();
    all
}

/// A price as a clause; `None` if it is known to be nothing.
fn clause(d: &Decision, figure: Measure, p: Price) -> Option<String> {
    if p.is_nothing() {
        return None;
    }
    let most = number(p.most.round());
    let text = match figure {
        Measure::OthersGot if p.runs + p.left_out == 0 => {
            "what it does to a CUBIC flow was not measured".to_string()
        }
        _ if p.runs == 0 => "what it costs is not shown, since in no run both complete".to_string(),
        _ if !p.is_paid() => match figure {
            Measure::StartupLost => {
                let why = if d.by == Measure::ObjectMedian {
                    "slow start did not end"
                } else {
                    "the transfer ended before slow start did"
                };
                format!("its losses are not shown, since {why} in {}", p.share(p.unseen))
            }
            Measure::ObjectP95 => "its 95th percentile is not shown".to_string(),
            Measure::OthersGot => format!("its harm was not observed in {}", p.share(p.unseen)),
            _ => format!("its queue was not observed in {}", p.share(p.unseen)),
        },
        Measure::StartupLost if more(d) => {
            format!("loses more packets in {}, up to {most} more", p.share(p.pays))
        }
        Measure::StartupLost => format!("loses packets in {}, up to {most}", p.share(p.pays)),
        Measure::ObjectP95 => {
            format!("takes longer at the 95th percentile in {}, up to {} s", p.share(p.pays), number(p.most))
        }
        Measure::OthersGot => {
            format!("slows a CUBIC flow beside it in {}, by up to {most} points", p.share(p.pays))
        }
        _ => format!("waits longer in the queue in {}, up to {}", p.share(p.pays), delay(p.most * 1e3)),
    };
    let hidden = if p.is_paid() && p.unseen > 0 {
        format!(" (not shown in {})", p.share(p.unseen))
    } else {
        String::new()
    };
    Some(text + &hidden)
}

/// True if the baseline loses packets too.
fn more(d: &Decision) -> bool {
    d.baseline()
        .is_some_and(|b| b.summary.rows.iter().any(|r| Measure::StartupLost.of(r).is_some_and(|x| x > 0.0)))
}

/// What a startup costs, to compare: the share of runs that pay or do not show whether they do, losses first,
/// then harm, then delay.
fn cost(d: &Decision, s: &Standing) -> Vec<f64> {
    let of = |p: Price| if p.is_nothing() { 0.0 } else { (p.pays + p.unseen) as f64 / p.runs.max(1) as f64 };
    d.costs().filter_map(|f| d.price(&s.summary, f)).map(of).collect()
}

/// True if all that it costs is known.
fn is_known(d: &Decision, s: &Standing) -> bool {
    d.costs().filter_map(|f| d.price(&s.summary, f)).all(|p| !p.is_unseen())
}

/// A sentence and the label of the startup it recommends.
struct Answer<'s> {
    text: String,
    label: Option<&'s str>,
}

/// The best of startups that gain: of those within the margin of the greatest gain, the one that loses least,
/// then the one with the shortest queue.
fn best<'s, 'a>(d: &Decision, of: &[&'s Standing<'a>]) -> Option<&'s Standing<'a>> {
    let most = of.iter().map(|s| gain(d, s)).fold(f64::NEG_INFINITY, f64::max);
    let cost = |s: &Standing, m| s.summary.of_all_runs(m).map_or(f64::INFINITY, |x| x.mid);
    of.iter().copied().filter(|s| gain(d, s) >= most - 100.0 * d.margin()).min_by(|a, b| {
        let by = |m| cost(a, m).total_cmp(&cost(b, m));
        by(Measure::StartupLost).then(by(Measure::QueueDelay))
    })
}

/// The best answer within the margins of its costs, or the cheapest, or that there is none.
fn answer<'s>(d: &'s Decision) -> Answer<'s> {
    let sooner: Vec<&Standing> = common(d).filter(|s| is(d, s, d.by, Change::Better)).collect();
    // They take as long as the baseline, save something for certain, and are worse in nothing.
    let savers: Vec<&Standing> = common(d)
        .filter(|s| is(d, s, d.by, Change::Even) && savings(d, s).len() > 1)
        .filter(|s| !is(d, s, Measure::Time1MB, Change::Worse) && d.slower(&s.summary, d.by).is_none())
        .filter(|s| !d.costs().any(|f| is(d, s, f, Change::Worse)))
        .collect();
    let spares = |s: &&&Standing| saving(d, s, Measure::StartupLost).is_some();
    let is_free = |s: &&&Standing| prices(d, s).is_empty();
    if let Some(s) = best(d, &sooner.iter().filter(is_free).copied().collect::<Vec<_>>()) {
        let in_what = list(&weighed(d)[1..]);
        let where_both = match change(d, s, d.by) {
            Some(c) if c.never[1] > 0 => " where both complete",
            _ => "",
        };
        // So few runs do not show what happens in one of twenty.
        let fewest = d.costs().filter_map(|f| Some(d.price(&s.summary, f)?.runs)).min().unwrap_or(0);
        let in_these = if fewest < RARE { format!(" in each of these {fewest} runs") } else { String::new() };
        return Answer {
            text: format!(
                "{} {}, within the margins of {in_what}{in_these}{where_both}.",
                s.summary.label,
                gains(d, s)
            ),
            label: Some(&s.summary.label),
        };
    }
    let saves = |s: &'s Standing| {
        let paid = prices(d, s);
        let but = if paid.is_empty() { String::new() } else { format!(", but {}", list(&paid)) };
        Answer {
            text: format!("{} {}{but}.", s.summary.label, list(&savings(d, s))),
            label: is_known(d, s).then_some(s.summary.label.as_str()),
        }
    };
    if let Some(s) = best(d, &savers.iter().filter(is_free).filter(spares).copied().collect::<Vec<_>>()) {
        return saves(s);
    }
    let cheaper = |a: &&Standing, b: &&Standing| {
        cost(d, a).partial_cmp(&cost(d, b)).unwrap_or(Ordering::Equal).then(gain(d, b).total_cmp(&gain(d, a)))
    };
    let cheapest = |of: &mut dyn Iterator<Item = &'s Standing>| of.filter(|s| is_known(d, s)).min_by(cheaper);
    let fast = cheapest(&mut sooner.iter().copied());
    let spares = cheapest(&mut savers.iter().filter(spares).copied());
    if let Some(s) = spares.filter(|s| fast.is_none_or(|f| cheaper(s, &f).is_lt())) {
        return saves(s);
    }
    if let Some(s) = fast {
        let text = format!(
            "No startup is known to be faster at no cost. The cheapest, {}, {} but {}.",
            s.summary.label,
            gains(d, s),
            list(&prices(d, s))
        );
        return Answer { text, label: Some(&s.summary.label) };
    }
    if let Some(s) = sooner.iter().copied().min_by(cheaper) {
        let text = format!("{} {}, but {}.", s.summary.label, gains(d, s), list(&prices(d, s)));
        return Answer { text, label: None };
    }
    if let Some(s) = savers.iter().copied().min_by(cheaper) {
        return saves(s);
    }
    let maybe = common(d).find_map(|s| match change(d, s, d.by)?.change {
        Change::NotShown { runs: Some(runs) } if gain(d, s) > 0.0 => Some(format!(
            "; {} may be {} % faster, but it takes about {} runs to show it, not {}",
            s.summary.label,
            percent(gain(d, s)),
            number(runs as f64),
            d.runs()
        )),
        _ => None,
    });
    let (label, margin) = (d.baseline().map_or("", |b| &b.summary.label), number(100.0 * d.margin()));
    let text = format!(
        "Keep {label}: no startup{} is shown to be {margin} % faster{}.",
        needing_nothing(std::slice::from_ref(d)),
        maybe.unwrap_or_default()
    );
    Answer { text, label: None }
}

/// What limits a sentence about all startups, where some are no answer for every sender.
fn needing_nothing(all: &[Decision]) -> &'static str {
    let any = |of: fn(&Standing) -> bool| all.iter().any(|d| d.standings.iter().skip(1).any(of));
    match (any(|s| s.need.is_some_and(Need::is_rare)), any(|s| s.reconstructed)) {
        (false, false) => "",
        (true, false) => " without special needs",
        (false, true) => " with a published specification",
        (true, true) => " with a published specification and without special needs",
    }
}

/// What is compared, in words: time, and the costs that some startup shows.
fn weighed(d: &Decision) -> Vec<String> {
    let all: Vec<&Summary> = d.standings.iter().map(|s| &s.summary).collect();
    let words = [
        (Measure::ObjectP95, "tail latency"),
        (Measure::StartupLost, "losses"),
        (Measure::QueueDelay, "delay"),
        (Measure::OthersGot, "harm"),
    ];
    let shown = d.shown(&all);
    let costs = words.into_iter().filter(|(f, _)| shown.contains(f)).map(|(_, word)| word);
    std::iter::once("time").chain(costs).map(String::from).collect()
}

/// What a startup saves for certain against the baseline in one cost, such as lost packets; `None` if it saves nothing
/// or its runs do not show that cost.
fn saving(d: &Decision, s: &Standing, figure: Measure) -> Option<f64> {
    let c = change(d, s, figure).filter(|c| c.change == Change::Better && !d.hides(&s.summary, figure))?;
    Some(c.median.mid.abs())
}

/// What a startup that is as quick as the baseline saves: `takes as long`, and where it is better at 95 % confidence.
fn savings(d: &Decision, s: &Standing) -> Vec<String> {
    let clause = |figure| {
        let by = saving(d, s, figure)?;
        Some(match figure {
            Measure::StartupLost => format!("loses {} packets fewer", number(by.round())),
            Measure::ObjectP95 => {
                format!("takes {} % less time at the 95th percentile", percent(by))
            }
            Measure::OthersGot => format!("leaves a CUBIC flow beside it {} points more", number(by.round())),
            _ => format!("waits {} less in the queue", delay(by * 1e3)),
        })
    };
    std::iter::once("takes as long".to_string()).chain(d.costs().filter_map(clause)).collect()
}

/// What nothing beats, and what the fastest costs if it is not the answer.
fn front(d: &Decision, answer: Option<&str>) -> Option<String> {
    let in_what = list(&weighed(d));
    let front: Vec<&Standing> = d.standings.iter().filter(|s| s.unbeaten).collect();
    let maybe: Vec<&Standing> = d.standings.iter().filter(|s| s.maybe_unbeaten).collect();
    front.first()?;
    let of = d.standings.len();
    let mut parts = Vec::new();
    parts.push(if front.len() == 1 + common(d).count() {
        format!("no startup here beats another in {in_what} together")
    } else {
        let (s, are) = if front.len() == 1 { ("", "is") } else { ("s", "are") };
        format!("of these {of} startups, the best trade-off{s} of {in_what} {are} {}", names(&front))
    });
    parts.extend((!maybe.is_empty()).then(|| {
        let is = if maybe.len() == 1 { "is one" } else { "are" };
        format!("whether {} {is} too is not shown", names(&maybe))
    }));
    let fastest =
        common(d).filter(|s| is(d, s, d.by, Change::Better)).min_by(|a, b| gain(d, b).total_cmp(&gain(d, a)));
    let answer = d.standings.iter().find(|s| Some(s.summary.label.as_str()) == answer);
    match (fastest, answer) {
        (Some(f), Some(a)) if d.compare(&f.summary, &a.summary).is_lt() && !prices(d, f).is_empty() => {
            let but = list(&prices(d, f));
            parts.push(format!("the fastest, {}, {} but {but}", f.summary.label, gains(d, f)));
        }
        _ => parts.extend(lossiest(d, answer)),
    }
    let text = parts.join("; ");
    let mut letters = text.chars();
    letters.next().map(|c| format!("{}{}.", c.to_uppercase(), letters.as_str()))
}

/// The startups that pay in losses, besides the answer, and what they lose at most.
fn lossiest(d: &Decision, answer: Option<&Standing>) -> Option<String> {
    let price = |s: &Standing| d.price(&s.summary, Measure::StartupLost).filter(Price::is_paid);
    let losers: Vec<&Standing> = common(d)
        .filter(|s| price(s).is_some() && answer.is_none_or(|a| a.summary.label != s.summary.label))
        .collect();
    let all: Vec<Price> = losers.iter().filter_map(|s| price(s)).collect();
    let most = number(all.iter().map(|p| p.most).fold(0.0, f64::max).round());
    let more = if more(d) { " more" } else { "" };
    match (&losers[..], &all[..]) {
        ([one], [p]) => Some(format!(
            "{} loses{more} packets in {}, up to {most}{more}",
            one.summary.label,
            p.share(p.pays)
        )),
        ([_, ..], _) => Some(format!("{} lose up to {most}{more} packets in a run", names(&losers))),
        _ => None,
    }
}

/// Of these startups, those that did not complete in every run, or broke a rule, over one path or several.
fn left_behind(all: &[Decision], labels: &[&str]) -> Option<String> {
    let told = |label: &&str| {
        let of: Vec<&Summary> = all.iter().filter_map(|d| find(d, label)).collect();
        let on = |what: &dyn Fn(&Summary) -> bool| {
            let some = of.iter().filter(|s| what(s)).count();
            if all.len() > 1 { format!(" {}", on(some, all.len())) } else { String::new() }
        };
        if of.iter().any(|s| is_broken(s)) {
            return Some(format!("{label} broke a rule{} and has no place", on(&|s| is_broken(s))));
        }
        let n: usize = of.iter().map(|s| s.unfinished()).sum();
        let runs = of.iter().map(|s| s.rows.len()).sum();
        let on = on(&|s| s.unfinished() > 0);
        let some = if n == runs { "any run".to_string() } else { share(n, runs) };
        let objects = of.iter().any(|s| s.rows.iter().any(|r| r.objects.is_some()));
        let what = if objects { " every object" } else { "" };
        (n > 0).then(|| format!("{label} does not complete{what} in {some}{on}"))
    };
    let all: Vec<String> = labels.iter().filter_map(told).collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} others likewise") } else { String::new() };
    let shown: Vec<String> = all.into_iter().take(NAMED).collect();
    (!shown.is_empty()).then(|| format!("{}{more}.", shown.join("; ")))
}

fn find<'d, 'a>(d: &'d Decision<'a>, label: &str) -> Option<&'d Summary<'a>> {
    d.standings.iter().find(|s| s.summary.label == label).map(|s| &s.summary)
}

/// `nowhere`, `on both paths`, `on 2 of 6 paths`.
fn on(some: usize, of: usize) -> String {
    match (some, of) {
        (0, _) => "nowhere".to_string(),
        (2, 2) => "on both paths".to_string(),
        (some, of) if some == of => format!("on all {of} paths"),
        _ => format!("on {some} of {of} paths"),
    }
}

#[cfg(test)]
mod tests;
