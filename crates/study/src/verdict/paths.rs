//! The verdict over several paths: on how many each startup gains and pays, against the same baseline. The words
//! and what counts are those of one path.

use super::{common, find, left_behind, needing_nothing, on, undecided};
use crate::decision::{Change, Decision};
use crate::measures::Measure;
use crate::words::list;

/// Most startups in the sentence about losses.
const NAMED: usize = 4;

/// The startups that have runs on every path: the baseline of the first, then by how many paths they are
/// sooner on less those where they are later, then by the mean of their differences; last those that need what a
/// sender may lack.
pub fn labels(all: &[Decision]) -> Vec<String> {
    let Some(first) = all.first() else { return Vec::new() };
    let everywhere = |label: &str| all.iter().all(|d| find(d, label).is_some());
    let mut labels: Vec<(bool, bool, i64, f64, String)> = Vec::new();
    for (i, s) in first.standings.iter().enumerate().filter(|(_, s)| everywhere(&s.summary.label)) {
        let label = &s.summary.label;
        let of = Totals::of(all, label);
        let rare = s.is_apart();
        let ahead = of.sooner as i64 - of.later as i64;
        labels.push((i > 0, rare, -ahead, of.mean, label.clone()));
    }
    labels.sort_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)).then(a.3.total_cmp(&b.3)));
    labels.into_iter().map(|l| l.4).collect()
}

/// On how many paths something is so, and on how many that is not shown.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Count {
    is: usize,
    unseen: usize,
}

impl Count {
    fn add(&mut self, is: bool, unseen: bool) {
        self.is += usize::from(is);
        self.unseen += usize::from(unseen);
    }

    /// `loses more packets on 2 of 6 paths (not shown on 1 of 6 paths)`; or, as an error, that nothing is shown of
    /// what `hidden` names.
    fn says(self, does: &str, hidden: &str, of: usize) -> Result<String, String> {
        let unseen = match (self.unseen, of) {
            (2, 2) => "on either path".to_string(),
            (k, of) if k == of => format!("on any of {of} paths"),
            (k, of) => on(k, of),
        };
        match (self.is, self.unseen) {
            (is, 0) => Ok(format!("{does} {}", on(is, of))),
            (0, _) => Err(format!("{hidden} not shown {unseen}")),
            (is, _) => Ok(format!("{does} {} (not shown {unseen})", on(is, of))),
        }
    }
}

/// On how many paths a startup is sooner or later than the baseline at 95 % confidence, on how many this is open, and
/// where it pays in losses, harm and delay; and its mean difference in percent over the paths that show one, negative
/// if it is sooner.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
struct Totals {
    sooner: usize,
    later: usize,
    uncertain: usize,
    /// On how many it does not complete where the baseline does.
    stalls: usize,
    tail: Count,
    losses: Count,
    harm: Count,
    waits: Count,
    mean: f64,
}

impl Totals {
    fn of(all: &[Decision], label: &str) -> Self {
        let mut t = Self::default();
        let mut changes = Vec::new();
        for d in all {
            let Some(s) = find(d, label) else { continue };
            let time = d.against(s, d.by);
            match time.map(|x| x.change) {
                Some(Change::Better) => t.sooner += 1,
                Some(Change::Worse) => t.later += 1,
                Some(Change::Even) => {}
                _ => t.uncertain += 1,
            }
            t.stalls += usize::from(time.is_some_and(|x| x.never[0] > 0 && x.never[1] == 0));
            let add = |count: &mut Count, figure| {
                let price = d.price(s, figure).unwrap_or_default();
                count.add(price.is_paid(), price.is_unseen());
            };
            if d.by == Measure::ObjectMedian {
                add(&mut t.tail, Measure::ObjectP95);
            }
            add(&mut t.losses, Measure::StartupLost);
            add(&mut t.harm, Measure::OthersGot);
            add(&mut t.waits, Measure::QueueDelay);
            let sign = if d.by == Measure::Goodput { -1.0 } else { 1.0 };
            // What never gets there counts as ten times the time. A path on which nobody does shows nothing.
            changes.extend(time.map(|x| sign * x.median.mid.clamp(-900.0, 900.0)));
        }
        // Nothing is known of one without a difference: it stands last.
        let mean = changes.iter().sum::<f64>() / changes.len() as f64;
        t.mean = if changes.is_empty() { f64::INFINITY } else { mean };
        t
    }

    /// Paths on which it is later, at the 95th percentile too, loses more or takes from others, or may.
    fn pays(&self) -> usize {
        let of = |count: Count| count.is + count.unseen;
        self.later + of(self.tail) + of(self.losses) + of(self.harm)
    }

    fn says(&self, of: usize, has_harm: bool) -> String {
        let mut clauses = vec![format!("is faster {}", on(self.sooner, of))];
        // What is uncertain somewhere may be slower there.
        clauses.extend(
            (self.later > 0 || self.uncertain == 0).then(|| format!("slower {}", on(self.later, of))),
        );
        clauses.extend(
            (self.uncertain > 0).then(|| format!("not certain to be either {}", on(self.uncertain, of))),
        );
        let tail = self.tail != Count::default();
        let costs = [
            tail.then(|| self.tail.says("takes longer at the 95th percentile", "its 95th percentile is", of)),
            Some(self.losses.says("loses more packets", "its losses are", of)),
            Some(self.waits.says("waits longer in the queue", "its wait in the queue is", of)),
            has_harm.then(|| self.harm.says("slows a CUBIC flow", "what it does to a CUBIC flow is", of)),
        ];
        let mut hidden = Vec::new();
        for clause in costs.into_iter().flatten() {
            clause.map_or_else(|h| hidden.push(h), |c| clauses.push(c));
        }
        std::iter::once(list(&clauses)).chain(hidden).collect::<Vec<_>>().join("; ")
    }
}

/// Returns the verdict over paths with the same baseline: a few sentences, or why there is none.
pub fn verdict(all: &[Decision]) -> String {
    let labels = labels(all);
    let names: Vec<&str> = labels.iter().map(String::as_str).collect();
    let text = undecided(all).unwrap_or_else(|| best(all, &names));
    let behind = left_behind(all, &names);
    std::iter::once(text).chain(behind).collect::<Vec<_>>().join(" ")
}

/// The startup that does best, the one that gains most, and those that lose more.
fn best(all: &[Decision], labels: &[&str]) -> String {
    let Some((base, others)) = labels.split_first() else { return String::new() };
    let able = |label: &str| all.iter().all(|d| common(d).any(|s| s.summary.label == label));
    let candidates: Vec<(&str, Totals)> =
        others.iter().filter(|l| able(l)).map(|l| (*l, Totals::of(all, l))).collect();
    let complete = || candidates.iter().filter(|(_, t)| t.stalls == 0);
    let (n, has_harm) = (all.len(), all.iter().any(Decision::has_harm));
    // No price first, then the most gain.
    let best = complete().filter(|(_, t)| t.sooner > 0).min_by(|(_, a), (_, b)| {
        a.pays().cmp(&b.pays()).then(b.sooner.cmp(&a.sooner)).then(a.mean.total_cmp(&b.mean))
    });
    let Some((label, t)) = best else {
        let (needing, any) = (needing_nothing(all), if n == 2 { "either" } else { "any" });
        let paths = if n == 2 { "path" } else { "of these paths" };
        return format!("Keep {base}: no startup{needing} is shown to be faster on {any} {paths}.");
    };
    let mut sentences = vec![format!(
        "Compared with {base}, {label} does best of {} others: it {}.",
        others.len(),
        t.says(n, has_harm)
    )];
    let fastest = complete()
        .filter(|(l, f)| l != label && f.mean < t.mean)
        .min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
    sentences.extend(fastest.map(|(l, f)| format!("{l} gains most on average: it {}.", f.says(n, has_harm))));
    let told = |l: &str| l == *label || fastest.is_some_and(|f| f.0 == l);
    let mut losers: Vec<_> = candidates.iter().filter(|(l, t)| !told(l) && t.losses.is > 0).collect();
    losers.sort_by_key(|(_, t)| std::cmp::Reverse(t.losses.is));
    if !losers.is_empty() {
        let more = losers.len().saturating_sub(NAMED);
        let mut named: Vec<String> =
            losers.into_iter().take(NAMED).map(|(l, t)| format!("{l} {}", on(t.losses.is, n))).collect();
        named.extend((more > 0).then(|| format!("{more} more")));
        sentences.push(format!("Others lose more packets: {}.", list(&named)));
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Terms;
    use crate::measured::BROKEN;
    use crate::record::{Class, Row};
    use crate::sample::{rows, with};

    fn said(paths: &[Vec<Row>]) -> String {
        let all: Vec<Decision> = paths.iter().map(|rows| Decision::new(rows, &Terms::default())).collect();
        verdict(&all)
    }

    #[test]
    fn what_is_not_shown_is_not_nowhere() {
        let one = |unended: bool| {
            let mut fast = rows("search", &[7.0; 6]);
            fast.iter_mut().filter(|_| unended).for_each(|r| (r.exit, r.class) = (None, Class::None));
            [rows("hystart", &[10.0; 6]), fast].concat()
        };
        let says = |paths: &[Vec<Row>], what: &str| {
            let text = said(paths);
            assert!(text.contains(what), "{what}: {text}");
        };
        says(
            &[one(true), one(true)],
            "waits longer in the queue nowhere; its losses are not shown on either path.",
        );
        says(&[one(true), one(false)], "; its losses are not shown on 1 of 2 paths.");
        says(&[one(false), one(false)], "slower nowhere, loses more packets nowhere and waits longer");
    }

    #[test]
    fn what_stalls_or_breaks_is_named() {
        let never = |mut rows: Vec<Row>, runs: usize| {
            rows[..runs].iter_mut().for_each(|r| {
                (r.completion_s, r.exit) = (None, None);
                r.time_to_bytes_s.clear();
            });
            rows
        };
        let broken = with(rows("mine", &[5.0; 6]), |r| r.caveats = vec![format!("{BROKEN}: cwnd 0")]);
        let first = [rows("hystart", &[10.0; 6]), never(rows("stall", &[5.0; 6]), 2), broken].concat();
        let second =
            [never(rows("hystart", &[10.0; 6]), 1), rows("stall", &[10.0; 6]), rows("mine", &[5.0; 6])]
                .concat();
        let text = said(&[first, second]);
        for says in [
            "Keep hystart: no startup is shown to be faster on either path.",
            "hystart does not complete in 1 of 12 runs on 1 of 2 paths",
            "stall does not complete in 2 of 12 runs on 1 of 2 paths",
            "mine broke a rule on 1 of 2 paths and has no place",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
    }

    /// 20 % sooner on the one path that shows a difference.
    #[test]
    fn a_path_on_which_nobody_delivers_is_no_difference_of_zero() {
        let never = |r: &mut Row| {
            (r.completion_s, r.exit, r.goodput_bps) = (None, None, 0);
            r.time_to_bytes_s.clear();
        };
        let first = [rows("hystart", &[10.0; 6]), rows("search", &[8.0; 6])].concat();
        let second = with(first.clone(), never);
        let all = [&first, &second].map(|rows| Decision::new(rows, &Terms::default()));
        let mean = Totals::of(&all, "search").mean;
        assert!((mean + 20.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn one_startup_is_no_comparison() {
        let one = || rows("search", &[10.0; 6]);
        assert_eq!(said(&[one(), one()]), "There is no verdict: there is nothing to compare search with.");
    }
}
