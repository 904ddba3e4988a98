//! The verdict: a few sentences. What the baseline needs and why; the best answer that costs nothing, or the
//! cheapest; which startups nothing beats, and what the fastest costs; what did not complete or broke a rule.
//!
//! A price is stated as what happens: in how many runs, and how much at most. Nothing, not certain and not
//! shown have different words.

use crate::decision::{Change, Decision, Difference, Figure, Standing, is_broken, role};
use crate::price::{Price, share};
use crate::record::{Class, Row};
use crate::stats::FEWEST_PAIRS;
use crate::summary::{Measure, Summary};
use crate::words::{bytes, delay, list, number, rate, share_of_bdp};
use slowstart::registry::Need;
use std::cmp::Ordering;

/// Most names in a list.
const NAMED: usize = 4;

/// Returns the verdict: a few sentences, or that there are no runs.
pub fn verdict(d: &Decision) -> String {
    let Some(base) = d.baseline() else { return "There are no runs, so there is no verdict.".into() };
    let mut sentences = vec![today(d, base)];
    if d.standings.len() > 1 {
        let chosen = answer(d);
        sentences.push(chosen.text);
        sentences.extend(front(d, chosen.label));
        sentences.extend(left_behind(d));
    }
    sentences.join(" ")
}

/// The label of the startup that the verdict recommends; `None` if it is to keep the baseline.
pub fn recommended<'d>(d: &'d Decision) -> Option<&'d str> {
    if d.standings.len() > 1 { answer(d).label } else { None }
}

/// Startups besides the baseline that need nothing special and broke no rule.
fn common<'s, 'a>(d: &'s Decision<'a>) -> impl Iterator<Item = &'s Standing<'a>> {
    d.standings.iter().skip(1).filter(|s| !s.need.is_some_and(Need::is_rare) && !is_broken(&s.summary))
}

/// What the baseline needs, and how it leaves slow start.
fn today(d: &Decision, base: &Standing) -> String {
    let (s, row) = (&base.summary, base.summary.rows[0]);
    // Most runs of the baseline have a value of what decides.
    let middle = s.typical(d.by).map_or(0.0, |(m, _)| m.mid);
    let who = match role(row, &s.label) {
        Some(role) => format!("{}, {role},", s.label),
        None => s.label.clone(),
    };
    let does = match d.by {
        Measure::Goodput => format!("gets {} over {} s", rate(middle * 1e6), number(row.duration_s)),
        by => format!("needs {} s{}", number(middle), size(by, row)),
    };
    let few = match d.runs() {
        1 => " (one run, which may be chance)".to_string(),
        n if n < FEWEST_PAIRS => format!(" ({n} runs, which may be chance)"),
        _ => String::new(),
    };
    let unfinished = match s.unfinished() {
        0 => String::new(),
        n if n == s.rows.len() => ", and never completes".to_string(),
        n => format!(", and does not complete in {}", share(n, s.rows.len())),
    };
    format!("{who} {does}{few}{unfinished}: {}.", manner(s))
}

fn size(by: Measure, row: &Row) -> String {
    match (by, row.size_bytes) {
        (Measure::Time10MB, _) => " for 10 MB".to_string(),
        (_, Some(size)) => format!(" for {}", bytes(size)),
        _ => String::new(),
    }
}

/// How most runs left slow start.
fn manner(s: &Summary) -> String {
    let (class, n) = s.classes()[0];
    let runs = s.rows.len();
    let share = if n < runs { format!(" in {n} of {runs} runs") } else { String::new() };
    let at = s
        .typical(Measure::ExitWindow)
        .filter(|_| class != Class::None)
        .map_or(String::new(), |(m, _)| format!(", with a window of {}", share_of_bdp(m.mid)));
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

fn change(d: &Decision, s: &Standing, figure: Figure) -> Option<Difference> {
    d.against(&s.summary, figure)
}

fn is(d: &Decision, s: &Standing, figure: Figure, what: Change) -> bool {
    change(d, s, figure).is_some_and(|c| c.change == what)
}

/// The gain in percent, positive if it is one.
fn gain(d: &Decision, s: &Standing) -> f64 {
    let mid = change(d, s, Figure::Of(d.by)).map_or(0.0, |c| c.median.mid);
    if d.by == Measure::Goodput { mid } else { -mid }
}

/// `41 % less time (35 to 44)`.
fn gained(d: &Decision, s: &Standing) -> String {
    let Some(c) = change(d, s, Figure::Of(d.by)) else { return String::new() };
    let [mid, low, high] = [c.median.mid, c.median.low, c.median.high].map(|x| x.abs().round());
    let (low, high) = (low.min(high), low.max(high));
    let less = match (d.by, c.median.mid < 0.0) {
        (Measure::Goodput, true) => "less",
        (Measure::Goodput, false) => "more",
        (_, true) => "less time",
        (_, false) => "more time",
    };
    let range = if low < high { format!(" ({low} to {high})") } else { String::new() };
    let never = match c.never {
        [0, n] if n > 0 => {
            let base = d.baseline().map_or("", |b| &b.summary.label);
            format!(", and completes in {} in which {base} does not", share(n, c.runs))
        }
        _ => String::new(),
    };
    // In no run do both get there.
    let amount = if c.median.mid.is_finite() { format!("{mid} % {less}{range}") } else { less.to_string() };
    format!("{amount}{never}")
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
    d.costs().filter_map(|f| clause(d, f, d.price(&s.summary, f)?)).collect()
}

/// A price as a clause; `None` if it is known to be nothing.
fn clause(d: &Decision, figure: Figure, p: Price) -> Option<String> {
    if p.is_nothing() {
        return None;
    }
    let most = number(p.most.round());
    let text = match figure {
        Figure::OthersGot if p.runs == 0 => "what it does to a CUBIC flow was not measured".to_string(),
        _ if !p.is_paid() => match figure {
            Figure::Of(Measure::StartupLost) => {
                format!(
                    "its losses are not shown, since the transfer ended before slow start did in {}",
                    unseen(&p)
                )
            }
            Figure::Of(_) => format!("its queue was not observed in {}", unseen(&p)),
            Figure::OthersGot => format!("its harm was not observed in {}", unseen(&p)),
        },
        Figure::Of(Measure::StartupLost) if more(d) => {
            format!("loses more packets in {}, up to {most} more", p.share())
        }
        Figure::Of(Measure::StartupLost) => format!("loses packets in {}, up to {most}", p.share()),
        Figure::Of(_) => format!("waits longer in the queue in {}, up to {}", p.share(), delay(p.most)),
        Figure::OthersGot => {
            format!("slows a CUBIC flow beside it in {}, by up to {most} points", p.share())
        }
    };
    let hidden =
        if p.is_paid() && p.unseen > 0 { format!(" (not shown in {})", unseen(&p)) } else { String::new() };
    Some(text + &hidden)
}

fn unseen(p: &Price) -> String {
    share(p.unseen, p.runs)
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
    let cost = |s: &Standing, m| s.summary.of_all_runs(m).map_or(0.0, |x| x.mid);
    of.iter().copied().filter(|s| gain(d, s) >= most - 100.0 * d.margin()).min_by(|a, b| {
        let by = |m| cost(a, m).total_cmp(&cost(b, m));
        by(Measure::StartupLost).then(by(Measure::QueueDelay))
    })
}

/// The best answer that costs nothing, or the cheapest, or that there is none.
fn answer<'s>(d: &'s Decision) -> Answer<'s> {
    if !d.is_decided() {
        let text = format!("There is no verdict: it takes {FEWEST_PAIRS} valid runs or more (--runs).");
        return Answer { text, label: None };
    }
    let harm = if d.has_harm() { ", delay and harm" } else { " and delay" };
    let sooner: Vec<&Standing> = common(d).filter(|s| is(d, s, Figure::Of(d.by), Change::Better)).collect();
    let free: Vec<&Standing> = sooner.iter().copied().filter(|s| prices(d, s).is_empty()).collect();
    if let Some(s) = best(d, &free) {
        let text = format!(
            "{} {} {} and costs nothing in losses{harm}.",
            s.summary.label,
            takes(d.by, false),
            gained(d, s)
        );
        return Answer { text, label: Some(&s.summary.label) };
    }
    let margin = number(100.0 * d.margin());
    let known: Vec<&Standing> = sooner.iter().copied().filter(|s| is_known(d, s)).collect();
    let cheaper = |a: &&Standing, b: &&Standing| {
        cost(d, a).partial_cmp(&cost(d, b)).unwrap_or(Ordering::Equal).then(gain(d, b).total_cmp(&gain(d, a)))
    };
    if let Some(s) = known.iter().copied().min_by(cheaper) {
        let text = format!(
            "No startup is known to be faster at no cost. The cheapest, {}, {} {} but {}.",
            s.summary.label,
            takes(d.by, false),
            gained(d, s),
            list(&prices(d, s))
        );
        return Answer { text, label: Some(&s.summary.label) };
    }
    if let Some(s) = sooner.iter().copied().min_by(cheaper) {
        let text = format!(
            "{} {} {}, but {}.",
            s.summary.label,
            takes(d.by, false),
            gained(d, s),
            list(&prices(d, s))
        );
        return Answer { text, label: None };
    }
    let base = d.baseline().map(|b| &b.summary);
    let good: Vec<&Standing> = common(d)
        .filter(|s| base.is_some_and(|b| d.is_better(&s.summary, b)))
        .filter(|s| is(d, s, Figure::Of(d.by), Change::Even))
        .collect();
    if let Some(s) = best(d, &good) {
        let paid = prices(d, s);
        let but = if paid.is_empty() { String::new() } else { format!(", but {}", list(&paid)) };
        return Answer {
            text: format!("{} takes as long and {}{but}.", s.summary.label, list(&savings(d, s))),
            label: Some(&s.summary.label),
        };
    }
    let label = base.map_or("", |b| &b.label);
    let maybe = common(d).find_map(|s| match change(d, s, Figure::Of(d.by))?.change {
        Change::NotShown { runs } if gain(d, s) > 0.0 => Some(format!(
            "; {} may be {} % faster, but it takes about {} runs to show it, not {}",
            s.summary.label,
            gain(d, s).round(),
            number(runs as f64),
            d.runs()
        )),
        _ => None,
    });
    let text =
        format!("Keep {label}: no startup is shown to be {margin} % faster{}.", maybe.unwrap_or_default());
    Answer { text, label: None }
}

/// What a startup saves where it is certainly better than the baseline.
fn savings(d: &Decision, s: &Standing) -> Vec<String> {
    let mut all = Vec::new();
    for figure in d.figures().into_iter().skip(1) {
        let Some(c) = change(d, s, figure).filter(|c| c.change == Change::Better) else { continue };
        let by = c.median.mid.abs();
        all.push(match figure {
            Figure::Of(Measure::StartupLost) => format!("loses {} packets fewer", number(by.round())),
            Figure::Of(_) => format!("waits {} less in the queue", delay(by)),
            Figure::OthersGot => format!("leaves a CUBIC flow beside it {} points more", number(by.round())),
        });
    }
    all
}

/// What nothing beats, and what the fastest costs if it is not the answer; nothing if no runs decide.
fn front(d: &Decision, answer: Option<&str>) -> Option<String> {
    if !d.is_decided() {
        return None;
    }
    let in_what = if d.has_harm() { "time, losses, delay and harm" } else { "time, losses and delay" };
    let front: Vec<&Standing> = d.standings.iter().filter(|s| s.unbeaten).collect();
    let everything = front.len() == 1 + common(d).count();
    let mut parts = Vec::new();
    let of = d.standings.len();
    parts.push(if everything {
        format!("no startup here beats another in {in_what} together")
    } else {
        {
            let (s, are) = if front.len() == 1 { ("", "is") } else { ("s", "are") };
            format!("of these {of} startups, the best trade-off{s} of {in_what} {are} {}", names(&front))
        }
    });
    let fastest = common(d)
        .filter(|s| is(d, s, Figure::Of(d.by), Change::Better))
        .min_by(|a, b| gain(d, b).total_cmp(&gain(d, a)));
    let answer = d.standings.iter().find(|s| Some(s.summary.label.as_str()) == answer);
    match (fastest, answer) {
        (Some(f), Some(a)) if d.compare(&f.summary, &a.summary).is_lt() && !prices(d, f).is_empty() => {
            parts.push(format!(
                "the fastest, {}, {} {} but {}",
                f.summary.label,
                takes(d.by, false),
                gained(d, f),
                list(&prices(d, f))
            ));
        }
        _ => parts.extend(lossiest(d, answer)),
    }
    let text = parts.join("; ");
    let mut letters = text.chars();
    letters.next().map(|c| format!("{}{}.", c.to_uppercase(), letters.as_str()))
}

/// The startups that pay in losses, besides the answer, and what they lose at most.
fn lossiest(d: &Decision, answer: Option<&Standing>) -> Option<String> {
    let price = |s: &Standing| d.price(&s.summary, Figure::Of(Measure::StartupLost)).filter(Price::is_paid);
    let losers: Vec<&Standing> = common(d)
        .filter(|s| price(s).is_some() && answer.is_none_or(|a| a.summary.label != s.summary.label))
        .collect();
    let all: Vec<Price> = losers.iter().filter_map(|s| price(s)).collect();
    let most = number(all.iter().map(|p| p.most).fold(0.0, f64::max).round());
    let more = if more(d) { " more" } else { "" };
    match (&losers[..], &all[..]) {
        ([one], [p]) => {
            Some(format!("{} loses{more} packets in {}, up to {most}{more}", one.summary.label, p.share()))
        }
        ([_, ..], _) => Some(format!("{} lose up to {most}{more} packets in a run", names(&losers))),
        _ => None,
    }
}

/// The startups that did not complete in every run, or broke a rule.
fn left_behind(d: &Decision) -> Option<String> {
    let all: Vec<String> = d
        .standings
        .iter()
        .skip(1)
        .filter_map(|s| {
            let (s, of) = (&s.summary, s.summary.rows.len());
            if is_broken(s) {
                return Some(format!("{} broke a rule and has no place", s.label));
            }
            let n = s.unfinished();
            (n > 0).then(|| format!("{} does not complete in {}", s.label, share(n, of)))
        })
        .collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} others likewise") } else { String::new() };
    let shown: Vec<String> = all.into_iter().take(NAMED).collect();
    (!shown.is_empty()).then(|| format!("{}{more}.", shown.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Harm, Terms};
    use crate::sample::{rows, with};

    fn lossy(rows: Vec<Row>, lost: u64) -> Vec<Row> {
        with(rows, |r| (r.class, r.startup_lost_packets) = (Class::Late, Some(lost)))
    }

    fn early(rows: Vec<Row>) -> Vec<Row> {
        with(rows, |r| {
            r.class = Class::Early;
            if let Some(exit) = &mut r.exit {
                exit.detected_cwnd_bytes = 29_000;
            }
        })
    }

    fn said(rows: &[Row]) -> String {
        verdict(&Decision::new(rows, &Terms::default()))
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(said(&[]), "There are no runs, so there is no verdict.");
    }

    #[test]
    fn one_startup() {
        assert_eq!(
            said(&rows("search", &[7.4])),
            "search needs 7.40 s for 10 MB (one run, which may be chance): it leaves slow start with the link full, with a \
             window of 1.2 times the BDP."
        );
    }

    #[test]
    fn an_answer_that_costs_nothing_and_what_the_fastest_costs() {
        let all = [
            early(rows("hystart", &[19.5; 6])),
            rows("search", &[11.7; 6]),
            lossy(rows("standard", &[10.6; 6]), 5606),
            rows("hystart++", &[13.7; 6]),
        ]
        .concat();
        assert_eq!(
            said(&all),
            "hystart, Linux's default, needs 19.5 s for 10 MB: it leaves slow start too early, with a window of 2.9 % of the BDP. search takes 40 % \
             less time and costs nothing in losses and delay. Of these 4 startups, the best trade-offs of time, losses and delay are \
             standard and search; the fastest, standard, takes 46 % less time but loses packets in every run, up to 5,606."
        );
    }

    #[test]
    fn everything_has_its_price() {
        let all = [early(rows("hystart", &[10.0; 6])), lossy(rows("standard", &[8.0; 6]), 300)].concat();
        assert_eq!(
            said(&all),
            "hystart, Linux's default, needs 10 s for 10 MB: it leaves slow start too early, with a window of 2.9 % of the BDP. No startup is known \
             to be faster at no cost. The cheapest, standard, takes 20 % less time but loses packets in every run, up to 300. No \
             startup here beats another in time, losses and delay together."
        );
    }

    #[test]
    fn less_loss_in_the_same_time_is_an_answer() {
        let all = [lossy(rows("hystart", &[10.0; 6]), 1283), rows("rate-bound", &[10.1; 6])].concat();
        let text = said(&all);
        assert!(text.contains("rate-bound takes as long and loses 1,283 packets fewer."), "{text}");
        assert!(
            text.contains("Of these 2 startups, the best trade-off of time, losses and delay is rate-bound"),
            "{text}"
        );
    }

    #[test]
    fn within_the_margin_the_baseline_stays() {
        let all = [rows("hystart", &[10.0; 10]), rows("search", &[9.9; 10])].concat();
        assert!(said(&all).contains("Keep hystart: no startup is shown to be 3 % faster."), "{}", said(&all));
        let noisy = [9.0, 8.0, 11.0, 9.0, 8.5, 11.5, 9.0, 10.5, 9.5, 8.0];
        let all = [rows("hystart", &[10.0; 10]), rows("search", &noisy)].concat();
        let text = said(&all);
        assert!(
            text.contains("search may be 10 % faster, but it takes about 40 runs to show it, not 10"),
            "{text}"
        );
    }

    #[test]
    fn harm_is_a_price() {
        let all = [rows("hystart", &[10.0; 6]), rows("ess", &[8.0; 6])].concat();
        let harm: Vec<Harm> = [("hystart", 90.0), ("ess", 71.0)]
            .into_iter()
            .flat_map(|(l, got_percent)| {
                (0..6).map(move |run| Harm { label: l.to_string(), run, got_percent })
            })
            .collect();
        let text = verdict(&Decision::new(&all, &Terms { harm: &harm, ..Terms::default() }));
        assert!(
            text.contains(
                "takes 20 % less time but slows a CUBIC flow beside it in every run, by up to 19 points"
            ),
            "{text}"
        );
    }

    /// The rows of the first screen: a third of the runs lose thousands.
    #[test]
    fn a_price_is_the_share_of_runs_that_pay() {
        let mut search = rows("search", &[11.7; 30]);
        search[..10].iter_mut().for_each(|r| r.startup_lost_packets = Some(3749));
        let mut bound = rows("rate-bound", &[12.9; 30]);
        bound[..2].iter_mut().for_each(|r| r.startup_lost_packets = Some(500));
        let text = said(&[early(rows("hystart", &[19.5; 30])), search, bound].concat());
        assert!(
            text.contains(
                "No startup is known to be faster at no cost. The cheapest, rate-bound, takes 34 % less time but loses packets in 2 of 30 runs, \
                 up to 500."
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "the fastest, search, takes 40 % less time but loses packets in 10 of 30 runs, up to 3,749."
            ),
            "{text}"
        );
    }

    #[test]
    fn losses_after_the_end_are_not_shown() {
        let unended = with(rows("standard", &[5.0; 10]), |r| (r.exit, r.class) = (None, Class::None));
        let all = [rows("hystart", &[10.0; 10]), unended].concat();
        let text = said(&all);
        assert!(
            text.contains(
                "standard takes 50 % less time, but its losses are not shown, since the transfer ended before slow start did in every run."
            ),
            "{text}"
        );
        assert_eq!(recommended(&Decision::new(&all, &Terms::default())), None);
    }

    #[test]
    fn few_runs_give_no_verdict() {
        let text = said(&[rows("hystart", &[10.0; 5]), rows("search", &[5.0; 5])].concat());
        assert!(text.ends_with("There is no verdict: it takes 6 valid runs or more (--runs)."), "{text}");
    }

    #[test]
    fn a_transfer_that_stalls_is_named() {
        let mut stall = rows("stall", &[5.0; 12]);
        for r in &mut stall[..2] {
            (r.completion_s, r.exit) = (None, None);
            r.time_to_bytes_s.clear();
        }
        let text = said(&[rows("hystart", &[10.0; 12]), stall].concat());
        assert!(
            text.contains("Keep hystart") && text.ends_with("stall does not complete in 2 of 12 runs."),
            "{text}"
        );
    }

    /// The baseline completes in most of its runs, and in none of those that the other has.
    #[test]
    fn a_gain_without_a_time_has_no_percentage() {
        let mut base = rows("hystart", &[10.0; 30]);
        for r in &mut base[..6] {
            (r.completion_s, r.exit) = (None, None);
            r.time_to_bytes_s.clear();
        }
        let text = said(&[base, rows("search", &[5.0; 6])].concat());
        assert!(
            text.contains(
                "search takes less time, and completes in every run in which hystart does not and costs nothing"
            ),
            "{text}"
        );
    }

    #[test]
    fn none_completes() {
        let none = |r: &mut Row| {
            (r.completion_s, r.exit, r.class) = (None, None, Class::None);
            r.time_to_bytes_s.clear();
        };
        let all = [with(rows("a", &[8.0; 6]), none), with(rows("b", &[10.0; 6]), none)].concat();
        let text = said(&all);
        assert!(
            text.starts_with(
                "a gets 10 Mbit/s over 30 s, and never completes: it does not leave slow start."
            ),
            "{text}"
        );
        assert!(text.contains("Keep a: no startup is shown to be 3 % faster."), "{text}");
    }
}
