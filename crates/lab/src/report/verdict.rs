//! The verdict: a sentence that says which startup is best, by how much, and why.

use super::summary::{Measure, Place, Summary, rank};
use super::words::{bytes, list, number, rate};
use crate::record::{Class, Row};

/// Returns the verdict on the rows of one path.
pub fn verdict(rows: &[Row]) -> String {
    let (by, places) = rank(rows);
    let Some(first) = places.first().map(|p| p.summary.rows[0]) else {
        return "There are no runs, so there is no verdict.".into();
    };
    let leaders = places.iter().take_while(|p| p.rank == 1).count();
    let (best, rest) = places.split_at(leaders);
    let mut clauses = reasons(best);
    // The startup that lost most and the last one show the cost of the alternatives; one startup may be both.
    let lossiest = lossiest(&places);
    let last = rest.last();
    let lost_most = |p: &Place| lossiest.len() == 1 && lossiest[0].label == p.summary.label;
    if !lossiest.is_empty() && !last.is_some_and(lost_most) {
        clauses.push(format!("{} {}", names(&lossiest), losses(&lossiest)));
    }
    if let Some(p) = last {
        let lost = lost_most(p).then(|| losses(&lossiest));
        let parts: Vec<String> =
            [Some(manner(&p.summary)), lost, Some(cost(by, &p.summary))].into_iter().flatten().collect();
        clauses.push(format!("{} {}", p.summary.label, list(&parts)));
    }
    let unfinished = if by == Measure::Goodput && first.size_bytes.is_some() { unfinished(rows) } else { "" };
    format!("On {}, {}{unfinished}: {}.", first.path, headline(by, best, rest.is_empty()), clauses.join("; "))
}

/// Returns the first clause: the best startups and their result.
fn headline(by: Measure, best: &[Place], all: bool) -> String {
    let summaries: Vec<&Summary> = best.iter().map(|p| &p.summary).collect();
    let names = names(&summaries);
    let first = &best[0].summary;
    let row = first.rows[0];
    let middle = first.of_all_runs(by).map_or(0.0, |m| m.mid);
    let mut facts = match (by, row.size_bytes) {
        (Measure::Completion, Some(size)) => format!("{} s for {}", number(middle), bytes(size)),
        (Measure::Completion, None) => format!("{} s", number(middle)),
        _ => format!("{} over {} s", rate(middle * 1e6), number(row.duration_s)),
    };
    let alone = best.len() == 1 && all;
    if first.rows.len() == 1 {
        facts += if alone { " in one run" } else { ", one run each" };
    }
    let (takes, finishes, finish, first) = match by {
        Measure::Completion => ("takes", "finishes", "finish", "first"),
        _ => ("gets", "delivers", "deliver", "most"),
    };
    match best.len() {
        1 if alone => format!("{names} {takes} {facts}"),
        1 => format!("{names} {finishes} {first} ({facts})"),
        _ if all => format!("{names} do not differ ({facts})"),
        _ => format!("{names} {finish} {first} ({facts}; no difference between them)"),
    }
}

/// Returns the clause for transfers that did not complete.
fn unfinished(rows: &[Row]) -> &'static str {
    if rows.iter().any(|r| r.completion_s.is_some()) {
        ", though not every run completes"
    } else {
        ", though no run completes"
    }
}

/// Returns how the best startups exited, one clause for each class.
fn reasons(best: &[Place]) -> Vec<String> {
    let mut by_class: Vec<(Class, Vec<&Summary>)> = Vec::new();
    for summary in best.iter().map(|p| &p.summary) {
        let class = summary.classes()[0].0;
        match by_class.iter_mut().find(|(c, _)| *c == class) {
            Some((_, group)) => group.push(summary),
            None => by_class.push((class, vec![summary])),
        }
    }
    by_class.into_iter().map(|(_, group)| clause(&group, group.len() == best.len())).collect()
}

/// Returns how startups of one class exited. `just_said` replaces their names by a pronoun.
fn clause(group: &[&Summary], just_said: bool) -> String {
    if let [one] = group {
        return format!("{} {}", if just_said { "it" } else { &one.label }, manner(one));
    }
    let subject = match group.len() {
        2 if just_said => "both".into(),
        _ if just_said => "they".into(),
        _ => names(group),
    };
    let steady = group.iter().all(|s| s.classes().len() == 1);
    let verb = match group[0].classes()[0].0 {
        Class::Early => "leave early",
        Class::ChokePoint => "leave at the choke point",
        Class::Late => "leave late",
        Class::None => "do not leave",
    };
    format!("{subject} {}{verb}", if steady { "" } else { "mostly " })
}

/// Joins the labels, at most four names.
fn names(group: &[&Summary]) -> String {
    const MOST: usize = 4;
    let mut names: Vec<String> = group.iter().map(|s| s.label.clone()).collect();
    if names.len() > MOST {
        let others = names.split_off(MOST - 1).len();
        names.push(format!("{others} others"));
    }
    list(&names)
}

/// Returns how most runs of a startup exited.
fn manner(summary: &Summary) -> String {
    let classes = summary.classes();
    let at = summary
        .typical(Measure::ExitWindow)
        .map_or(String::new(), |(m, _)| format!(" ({} of the BDP)", number(m.mid)));
    let does = match classes[0].0 {
        Class::Early => format!("leaves early{at}"),
        Class::ChokePoint => "leaves at the choke point".into(),
        Class::Late => "leaves late".into(),
        Class::None => "does not leave".into(),
    };
    if classes.len() == 1 { does } else { format!("mostly {does}") }
}

/// Returns the startups that lost most during startup; none if nothing was lost.
fn lossiest<'a, 'b>(places: &'a [Place<'b>]) -> Vec<&'a Summary<'b>> {
    let most = places.iter().map(|p| lost(&p.summary)).fold(0.0, f64::max);
    places.iter().map(|p| &p.summary).filter(|s| most > 0.0 && lost(s) >= most).collect()
}

fn lost(summary: &Summary) -> f64 {
    summary.of_all_runs(Measure::StartupLost).map_or(0.0, |m| m.mid)
}

/// Returns the clause about the loss, which is the same for each of `group`.
fn losses(group: &[&Summary]) -> String {
    let verb = if group.len() == 1 { "loses" } else { "lose" };
    let lost = number(group.first().map_or(0.0, |s| lost(s)));
    format!("{verb} {lost} packet{} in startup", if lost == "1" { "" } else { "s" })
}

/// Returns the clause about the result of the last startup.
fn cost(by: Measure, summary: &Summary) -> String {
    let middle = summary.of_all_runs(by).map_or(0.0, |m| m.mid);
    if by == Measure::Completion {
        format!("needs {} s", number(middle))
    } else {
        format!("gets {}", rate(middle * 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{rows, with};
    use super::*;

    fn lossy(rows: Vec<Row>, lost: u64) -> Vec<Row> {
        with(rows, |r| (r.class, r.startup_lost_packets) = (Class::Late, lost))
    }

    fn early(rows: Vec<Row>) -> Vec<Row> {
        with(rows, |r| {
            r.class = Class::Early;
            if let Some(exit) = &mut r.exit {
                exit.detected_cwnd_bytes = 110_000;
            }
        })
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(verdict(&[]), "There are no runs, so there is no verdict.");
    }

    #[test]
    fn one_startup() {
        assert_eq!(
            verdict(&rows("search", &[7.4])),
            "On geo, search takes 7.40 s for 10 MB in one run: it leaves at the choke point."
        );
    }

    #[test]
    fn two_startups() {
        let all = [rows("search", &[7.4, 7.42]), lossy(rows("standard", &[9.0, 9.1]), 14_210)].concat();
        assert_eq!(
            verdict(&all),
            "On geo, search finishes first (7.41 s for 10 MB): it leaves at the choke point; standard leaves late, \
             loses 14,210 packets in startup and needs 9.05 s."
        );
    }

    #[test]
    fn many_startups() {
        let all = [
            early(rows("hystart", &[31.0, 31.0])),
            rows("search", &[7.41, 7.45]),
            lossy(rows("standard", &[9.0, 9.1]), 1),
            rows("hystart++", &[7.4, 7.43]),
        ]
        .concat();
        assert_eq!(
            verdict(&all),
            "On geo, hystart++ and search finish first (7.42 s for 10 MB; no difference between them): both \
             leave at the choke point; standard loses 1 packet in startup; hystart leaves early (0.110 of the \
             BDP) and needs 31 s."
        );
    }

    #[test]
    fn all_equal() {
        let mut all =
            [rows("a", &[7.0, 7.2]), rows("b", &[7.1, 7.3]), early(rows("c", &[7.0, 7.3]))].concat();
        all[0].class = Class::Late;
        assert_eq!(
            verdict(&all),
            "On geo, a, c and b do not differ (7.10 s for 10 MB): a and b mostly leave at the choke point; c \
             leaves early (0.110 of the BDP)."
        );
    }

    #[test]
    fn none_completes() {
        let none = |r: &mut Row| (r.completion_s, r.exit, r.class) = (None, None, Class::None);
        let all = [with(rows("a", &[8.0, 8.1]), none), with(rows("b", &[10.0, 10.1]), none)].concat();
        assert_eq!(
            verdict(&all),
            "On geo, a delivers most (9.94 Mbit/s over 30 s), though no run completes: it does not leave; b does not \
             leave and gets 7.96 Mbit/s."
        );
    }
}
