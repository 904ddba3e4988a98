//! What B is against A: one startup over one path in two results.

use super::open::{self, only};
use crate::decision::{Change, Decision, Difference, Terms, is_broken};
use crate::measures::{LOSS_MARGIN, Measure};
use crate::price::{Price, share};
use crate::record::Row;
use crate::stats::{FEWEST_PAIRS, Median, median, wilson};
use crate::summary::Summary;
use crate::words::{bytes, delay, list, number};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// What B is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Is {
    /// A measure is better at 95 % confidence and beyond the margin, and none is worse.
    Better,
    /// A measure is worse at 95 % confidence and beyond the margin.
    Worse,
    /// Every measure differs by less than its margin, with its whole interval.
    Open,
    /// A measure may differ by more than its margin.
    Uncertain,
    /// A measure is in one result only, and nothing else differs.
    OneSided,
    /// Every run that both have has the same figures.
    Same,
    /// Fewer than [`FEWEST_PAIRS`] valid runs, and not the same.
    TooFew,
    /// The two transferred other sizes, or ran other applications: their times do not compare.
    Unlike,
}

impl Is {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Open => "no-difference",
            Self::Uncertain => "not-certain",
            Self::OneSided => "one-sided",
            Self::Same => "same",
            Self::TooFew => "too-few-runs",
            Self::Unlike => "other-workload",
        }
    }
}

/// The comparison of a startup over a path.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What B is.
    pub is: Is,
    /// What it is by: the median time of an object, the time to 10 MB, the time to completion, or goodput.
    pub by: Measure,
    /// What is worse, then what is better: a word for a table, and a clause.
    pub why: Vec<(&'static str, String)>,
    /// Measures that one result only has, and whether that is B.
    pub only: Vec<(Measure, bool)>,
    /// Measures that may differ, if nothing is worse or better.
    pub uncertain: Vec<Measure>,
    /// The difference of B from A in percent with its interval, over runs in which both have a value; `None`
    /// where runs do not pair.
    pub percent: Option<Median>,
    /// Valid runs with the same random seed.
    pub pairs: usize,
}

/// The names of the two results as startups of one decision.
const NAMES: [&str; 2] = ["A", "B"];

/// The runs of both with seeds that both have, as rows of two startups, without the time to 10 MB if `only` one result
/// has it: it was not observed, which is not late.
fn common(a: &Summary, b: &Summary, only: &[(Measure, bool)]) -> Vec<Row> {
    let theirs: BTreeSet<u64> = b.rows.iter().map(|r| r.seed).collect();
    let seeds = a.rows.iter().map(|r| r.seed).filter(|s| theirs.contains(s));
    let numbers: BTreeMap<u64, u32> = seeds.zip(0..).collect();
    let of = |s: &Summary, name: &str| -> Vec<Row> {
        let own = s.rows.iter().filter_map(|r| Some((*r, *numbers.get(&r.seed)?)));
        own.map(|(r, run)| Row { run, startup: name.into(), ..nameless(r) }).collect()
    };
    let mut all = of(a, NAMES[0]);
    all.extend(of(b, NAMES[1]));
    if only.iter().any(|(m, _)| *m == Measure::Time10MB) {
        for row in &mut all {
            row.time_to_bytes_s.clear();
        }
    }
    all
}

/// A row without what is of its startup alone.
fn nameless(r: &Row) -> Row {
    Row { params: BTreeMap::new(), settings: BTreeMap::new(), ..r.clone() }
}

/// The rows without the runs in which only A never completes: that it loses little there is no merit.
fn where_a_completes(rows: &[Row]) -> Vec<Row> {
    let never = |name: &str| -> BTreeSet<u32> {
        rows.iter().filter(|r| r.startup == name && r.is_unfinished()).map(|r| r.run).collect()
    };
    let [a, b] = NAMES.map(never);
    rows.iter().filter(|r| !a.contains(&r.run) || b.contains(&r.run)).cloned().collect()
}

/// True if something happens in a larger share of the runs than elsewhere: `[1, 30]` is once in 30. By the 95 % intervals of
/// both shares.
fn more_often(here: [usize; 2], there: [usize; 2]) -> bool {
    let [here, there] = [here, there].map(|[some, of]| wilson(some as f64 / of as f64, of as f64));
    here.1 > there.2
}

/// In how many runs it loses packets, of those that show it.
fn losing(s: &Summary) -> [usize; 2] {
    let all: Vec<f64> = s.rows.iter().filter_map(|r| Measure::StartupLost.of(r)).collect();
    [all.iter().filter(|lost| **lost > LOSS_MARGIN).count(), all.len()]
}

/// What the runs transfer; `None` if they differ among themselves.
fn workload(s: &Summary) -> Option<String> {
    let of = |r: &Row| {
        let what = match (r.size_bytes, r.objects.is_some()) {
            (Some(size), _) => format!("transfers of {}", bytes(size)),
            (None, true) => "objects".to_string(),
            (None, false) => "transfers without end".to_string(),
        };
        if r.others.is_some() { what + " beside other flows" } else { what }
    };
    let (first, rest) = s.rows.split_first()?;
    let first = of(first);
    rest.iter().all(|r| of(r) == first).then_some(first)
}

/// True if the runs of both have the same figures, run by run.
fn same(a: &Summary, b: &Summary) -> bool {
    let values = |r: &Row| -> Vec<Option<f64>> { Measure::ALL.iter().map(|m| m.of(r)).collect() };
    let figures = |s: &Summary| -> BTreeMap<u32, _> {
        let of = |r: &&Row| (r.run, (values(r), r.objects.clone(), r.class, r.caveats.clone()));
        s.rows.iter().map(of).collect()
    };
    figures(a) == figures(b)
}

impl Outcome {
    /// Compares the runs of a startup over a path in two results. `margin` is a share.
    pub fn new(a: &Summary, b: &Summary, margin: f64) -> Self {
        if let [Some(x), Some(y)] = [a, b].map(workload)
            && x != y
        {
            let (by, why) = (Measure::Completion, vec![("other workload", format!("A has {x}, B {y}"))]);
            let (only, uncertain) = (Vec::new(), Vec::new());
            return Self { is: Is::Unlike, by, why, only, uncertain, percent: None, pairs: 0 };
        }
        let only = only(a, b);
        let rows = common(a, b, &only);
        let terms = Terms { baseline: Some(NAMES[0]), margin };
        let d = Decision::new(&rows, &terms);
        let find = |name: &str| d.standings.iter().map(|s| &s.summary).find(|s| s.label == name);
        let mut outcome = match (find(NAMES[0]), find(NAMES[1])) {
            (Some(x), Some(y)) => {
                let completed = where_a_completes(&rows);
                Self::paired(&d, &Decision::new(&completed, &terms), x, y)
            }
            _ => Self::apart(a, b, margin),
        };
        outcome.is = match outcome.is {
            // The runs that both have are equal, but too few: the others may differ.
            Is::Same if a.rows.len() != b.rows.len() && outcome.pairs < FEWEST_PAIRS => Is::TooFew,
            Is::Open | Is::Same if !only.is_empty() => Is::OneSided,
            Is::Open if !outcome.uncertain.is_empty() => Is::Uncertain,
            is => is,
        };
        outcome.uncertain.retain(|m| !only.iter().any(|o| o.0 == *m));
        outcome.only = only;
        if !matches!(outcome.is, Is::Uncertain | Is::OneSided) {
            outcome.uncertain.clear();
        }
        if is_broken(b) && !is_broken(a) {
            outcome.is = Is::Worse;
            outcome.why.insert(0, ("broke a rule", "broke a rule".into()));
        }
        outcome
    }

    /// Run by run; `costs` is over the runs whose losses and queues can be compared.
    fn paired(d: &Decision, costs: &Decision, a: &Summary, b: &Summary) -> Self {
        let time = d.against(b, d.by);
        let pairs = time.map_or(0, |t| t.runs);
        // Time to 10 MB does not show how a longer transfer ends.
        let mut by = vec![d.by];
        if d.by != Measure::ObjectMedian {
            by.extend([Measure::Completion, Measure::Time10MB].into_iter().filter(|m| *m != d.by));
        }
        let times: Vec<(Measure, Difference)> =
            by.into_iter().filter_map(|m| Some((m, d.against(b, m)?))).collect();
        let most = |better: fn([usize; 2]) -> bool| {
            let all = times.iter().filter(|(_, t)| better(t.never));
            all.min_by_key(|(m, _)| *m != Measure::Completion)
        };
        let (stalls, completes) = (most(|[a, b]| a > b), most(|[a, b]| b > a));
        let all_get_there = times.iter().all(|(_, t)| t.never == [0, 0]);
        let first = |change: Change| times.iter().find(|(_, t)| all_get_there && t.change == change);
        let in_some = |m: Measure, some: usize, of: usize| {
            let what = if m == Measure::Time10MB { "deliver 10 MB" } else { "complete" };
            (what, share(some, of))
        };
        let mut why = Vec::new();
        let change = time.map_or(Change::TooFew, |t| t.change);
        if let Some((m, t)) = stalls {
            let (what, runs) = in_some(*m, t.never[0], t.runs);
            why.push(("stalls", format!("does not {what} in {runs} in which A does")));
        } else if let Some((m, t)) = first(Change::Worse) {
            why.push(if *m == d.by {
                ("slower", "is slower".to_string())
            } else {
                ("later", format!("needs {} % more {}", number(t.median.mid.abs()), m.entry().label))
            });
        } else if let Some((m, p)) =
            times.iter().filter(|_| all_get_there).find_map(|(m, _)| Some((*m, d.slower(b, *m)?)))
        {
            let (runs, most) = (p.share(p.pays), number(p.most.round()));
            why.push(if m == d.by {
                ("slower", format!("is slower in {runs}, by up to {most} %"))
            } else {
                ("later", format!("needs more {} in {runs}, up to {most} %", m.entry().label))
            });
        }
        let own = costs.standings.iter().map(|s| &s.summary).find(|s| s.label == NAMES[1]);
        for figure in costs.costs() {
            let price = own.and_then(|b| costs.price(b, figure));
            let Some(p) = price.filter(Price::outweighs) else { continue };
            let (runs, most) = (p.share(p.pays), number(p.most));
            why.push(match figure {
                Measure::ObjectP95 => {
                    ("longer tail", format!("takes up to {most} s longer at the 95th percentile in {runs}"))
                }
                Measure::StartupLost => {
                    ("loses more", format!("loses more packets in {runs}, up to {most} more"))
                }
                Measure::OthersGot => {
                    ("more harm", format!("slows a CUBIC flow beside it in {runs}, by up to {most} points"))
                }
                _ => {
                    let most = delay(p.most * 1e3);
                    ("longer queue", format!("waits longer in the queue in {runs}, up to {most}"))
                }
            });
        }
        let worse = !why.is_empty();
        if let Some((m, t)) = completes {
            let (what, runs) = in_some(*m, t.never[1], t.runs);
            why.push(("completes", format!("{what}s in {runs} in which A does not")));
        } else if let Some((m, t)) = first(Change::Better) {
            why.push(if *m == d.by {
                ("faster", "is faster".to_string())
            } else {
                ("sooner", format!("needs {} % less {}", number(t.median.mid.abs()), m.entry().label))
            });
        }
        let fewer = own.and_then(|b| costs.against(b, Measure::StartupLost));
        if fewer.is_some_and(|x| x.change == Change::Better) {
            why.push(("loses fewer", "loses fewer packets".into()));
        }
        let is = match change {
            _ if same(a, b) => Is::Same,
            Change::TooFew => Is::TooFew,
            _ if worse => Is::Worse,
            _ if !why.is_empty() => Is::Better,
            _ => Is::Open,
        };
        if matches!(is, Is::Same | Is::TooFew) {
            why.clear();
        }
        let mut uncertain = open::times(&times);
        uncertain.extend(own.map_or_else(Vec::new, |b| open::costs(costs, a, b)));
        let percent = time.map(|t| t.median).filter(|m| m.mid.is_finite());
        Self { is, by: d.by, why, only: Vec::new(), uncertain, percent, pairs }
    }

    /// By intervals of each, where no run has the seed of another.
    fn apart(a: &Summary, b: &Summary, margin: f64) -> Self {
        let any = |has: fn(&Row) -> bool| [a, b].iter().any(|s| s.rows.iter().any(|r| has(r)));
        let by = if any(|r| r.objects.is_some()) {
            Measure::ObjectMedian
        } else if any(|r| r.completion_s.is_some()) {
            Measure::Completion
        } else {
            Measure::Goodput
        };
        let of = |s: &Summary, m: Measure| s.typical(m).map(|(middle, _)| middle);
        let order = |m: Measure, beyond: &dyn Fn(f64, f64) -> bool| {
            let (x, y) = of(a, m).zip(of(b, m))?;
            y.compare(&x).filter(|_| beyond(x.mid, y.mid))
        };
        let mut why = Vec::new();
        let (never_a, never_b) = (a.unfinished(), b.unfinished());
        let time = order(by, &|x, y| (y / x - 1.0).abs() >= margin);
        let slower = if by.more_is_better() { Ordering::Less } else { Ordering::Greater };
        let lost = order(Measure::StartupLost, &|x, y| (y - x).abs() > LOSS_MARGIN);
        if never_b > 0 && never_a == 0 {
            let of = share(never_b, b.rows.len());
            why.push(("stalls", format!("does not complete in {of}, where A completes in all")));
        } else if more_often([never_b, b.rows.len()], [never_a, a.rows.len()]) {
            let [x, y] = [share(never_b, b.rows.len()), share(never_a, a.rows.len())];
            why.push(("stalls", format!("does not complete in {x}, A in {y}")));
        } else if time == Some(slower) && never_b >= never_a {
            why.push(("slower", "is slower".to_string()));
        }
        let [losing_a, losing_b] = [a, b].map(losing);
        if lost == Some(Ordering::Greater) {
            why.push(("loses more", "loses more packets".into()));
        } else if more_often(losing_b, losing_a) {
            let [x, y] = [losing_b, losing_a].map(|[k, n]| share(k, n));
            why.push(("loses more", format!("loses packets in {x}, A in {y}")));
        }
        let rtt = a.rows.iter().map(|r| r.base_rtt_s).fold(f64::INFINITY, f64::min);
        if order(Measure::QueueDelay, &|x, y| (y - x).abs() > rtt) == Some(Ordering::Greater) {
            why.push(("longer queue", "waits longer in the queue".into()));
        }
        let worse = !why.is_empty();
        if more_often([never_a, a.rows.len()], [never_b, b.rows.len()]) {
            why.push(("completes", "completes in more runs".into()));
        }
        if time == Some(slower.reverse()) && never_b == 0 {
            why.push(("faster", "is faster".into()));
        }
        if lost == Some(Ordering::Less) && never_b == 0 {
            why.push(("loses fewer", "loses fewer packets".into()));
        }
        let is = if a.rows.len().min(b.rows.len()) < FEWEST_PAIRS {
            why.clear();
            Is::TooFew
        } else if worse {
            Is::Worse
        } else if why.is_empty() {
            Is::Open
        } else {
            Is::Better
        };
        let uncertain = open::apart(a, b, by, margin);
        Self { is, by, why, only: Vec::new(), uncertain, percent: None, pairs: 0 }
    }

    /// The words for a table.
    pub fn words(&self) -> String {
        match self.is {
            Is::Same => "same".into(),
            Is::TooFew => "too few runs".into(),
            Is::Open => "no difference".into(),
            Is::Uncertain => "not certain".into(),
            Is::OneSided => {
                let place = |b: bool| if b { "B" } else { "A" };
                let all = self.only.iter().map(|(m, b)| format!("{} only in {}", m.entry().word, place(*b)));
                all.collect::<Vec<_>>().join(", ")
            }
            Is::Unlike => "another workload".into(),
            Is::Better | Is::Worse => self.why.iter().map(|w| w.0).collect::<Vec<_>>().join(", "),
        }
    }

    /// What is in one result only, and what is not certain: a clause each.
    pub fn open(&self) -> Vec<String> {
        let labels =
            |all: &[Measure]| -> Vec<String> { all.iter().map(|m| m.entry().label.to_string()).collect() };
        let of = |b: bool| -> Vec<Measure> { self.only.iter().filter(|o| o.1 == b).map(|o| o.0).collect() };
        let mut all = Vec::new();
        for (is_b, name) in [(false, "A"), (true, "B")] {
            let some = of(is_b);
            all.extend((!some.is_empty()).then(|| format!("only in {name}: {}", list(&labels(&some)))));
        }
        all.extend(
            (!self.uncertain.is_empty())
                .then(|| format!("whether it differs is not certain: {}", list(&labels(&self.uncertain)))),
        );
        all
    }

    /// What a reader should know beside the table; nothing if that tells all.
    pub fn note(&self, a: &Summary, b: &Summary) -> Option<String> {
        let head = match self.is {
            Is::Worse => {
                format!("{} {}", b.label, self.why.iter().map(|w| &*w.1).collect::<Vec<_>>().join(", "))
            }
            Is::Unlike => format!("{}: {}", b.label, self.why[0].1),
            Is::TooFew => {
                let runs = if self.pairs > 0 { self.pairs } else { a.rows.len().min(b.rows.len()) };
                format!("{}: {runs} valid runs, where a comparison takes {FEWEST_PAIRS} or more", b.label)
            }
            _ => String::new(),
        };
        let mut parts = Vec::from_iter((!head.is_empty()).then_some(head));
        if a.rows.len() != b.rows.len() && self.pairs > 0 {
            let [x, y] = [a, b].map(|s| s.rows.len());
            parts.push(format!("compared over the {} runs that both have, of {x} and {y}", self.pairs));
        }
        parts.extend(self.open());
        parts.extend(is_broken(a).then(|| "A broke a rule".to_string()));
        let never = [a, b].map(Summary::unfinished);
        parts.extend((never[0] > 0 && never[1] > 0).then(|| {
            let [x, y] = [a, b].map(|s| s.rows.len());
            format!("completes in {} of {x} runs of A and in {} of {y} of B", x - never[0], y - never[1])
        }));
        let named = matches!(self.is, Is::Worse | Is::TooFew | Is::Unlike);
        let name = if named { String::new() } else { format!("{}: ", b.label) };
        (!parts.is_empty()).then(|| name + &parts.join("; "))
    }
}

/// The median of a measure with its interval, over the runs that have it.
pub fn middle(s: &Summary, m: Measure) -> Option<Median> {
    median(&s.rows.iter().filter_map(|r| m.of(r)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{BROKEN, INVALID};
    use crate::sample;
    use crate::summary::summarise;

    fn of(times: [f64; 2], runs: u32) -> Vec<Row> {
        let one = |run: u32| Row {
            run,
            seed: 100 + u64::from(run),
            startup_lost_packets: Some(0),
            ..sample::rows("search", &[times[run as usize % 2]]).remove(0)
        };
        (0..runs).map(one).collect()
    }

    fn outcome(a: &[Row], b: &[Row]) -> Outcome {
        Outcome::new(&summarise(a)[0], &summarise(b)[0], 0.03)
    }

    fn is(a: &[Row], b: &[Row]) -> (Is, String) {
        let o = outcome(a, b);
        (o.is, o.words())
    }

    fn never(mut rows: Vec<Row>, runs: &[usize]) -> Vec<Row> {
        for i in runs {
            rows[*i].completion_s = None;
            rows[*i].time_to_bytes_s.clear();
        }
        rows
    }

    #[test]
    fn a_difference_is_certain_and_beyond_the_margin() {
        let (a, near, far) = (of([7.0, 7.2], 6), of([7.1, 7.3], 6), of([9.0, 9.2], 6));
        assert_eq!(is(&a, &a), (Is::Same, "same".into()));
        assert_eq!(is(&a, &near), (Is::Open, "no difference".into()));
        assert_eq!(is(&a, &far), (Is::Worse, "slower".into()));
        assert_eq!(is(&far, &a), (Is::Better, "faster".into()));
        assert_eq!(is(&a[..5], &far[..5]).0, Is::TooFew);
        assert_eq!(is(&a[..5], &a[..5]).0, Is::Same);
        // Of the sixth nothing is known.
        assert_eq!(is(&a[..5], &a).0, Is::TooFew);
    }

    /// 2 of 12 runs never complete; the other ten are 29 % faster.
    #[test]
    fn what_never_completes_is_worse_than_any_time() {
        let (a, fast) = (of([7.0, 7.2], 12), never(of([5.0, 5.1], 12), &[3, 8]));
        let o = outcome(&a, &fast);
        assert_eq!((o.is, o.words().as_str()), (Is::Worse, "stalls"));
        assert_eq!(o.why[0].1, "does not complete in 2 of 12 runs in which A does");
        // The same in both is no difference, and is said.
        let none = never(of([7.0, 7.2], 6), &[0, 1, 2, 3, 4, 5]);
        let (same, said) =
            (outcome(&none, &none), "search: completes in 0 of 6 runs of A and in 0 of 6 of B");
        assert_eq!(same.note(&summarise(&none)[0], &summarise(&none)[0]).as_deref(), Some(said));
        assert_eq!(same.is, Is::Same);
        assert_eq!(is(&fast, &a).0, Is::Better);
        // What stalls loses little: the other does not lose more for that.
        let mut lossy = a.clone();
        for r in &mut lossy {
            r.startup_lost_packets = Some(170);
        }
        let mut stalls = lossy.clone();
        for run in [3, 8] {
            stalls[run].startup_lost_packets = Some(0);
        }
        assert_eq!(is(&never(stalls, &[3, 8]), &lossy), (Is::Better, "completes".into()));
        // Most runs of A have no time either, so that goodput decides, and a run of B stalls besides.
        let (a, b) = (never(of([7.0, 7.2], 6), &[0, 1, 2, 3]), never(of([7.0, 7.2], 6), &[0, 1, 2, 3, 4]));
        assert_eq!(is(&a, &b), (Is::Worse, "stalls".into()));
        // Without common seeds.
        let mut other = fast;
        for r in &mut other {
            r.seed += 1000;
        }
        assert_eq!(is(&of([7.0, 7.2], 12), &other), (Is::Worse, "stalls".into()));
    }

    /// In six of 13 runs only B completes: those in which both do show that it loses fewer packets.
    #[test]
    fn what_stalls_loses_little_and_that_is_no_merit() {
        let lost = |rows: Vec<Row>, odd: u64, even: u64| {
            sample::with(rows, |r| r.startup_lost_packets = Some(if r.run % 2 == 1 { odd } else { even }))
        };
        let a = never(lost(of([7.0, 7.2], 13), 0, 500), &[1, 3, 5, 7, 9, 11]);
        let b = lost(of([7.0, 7.2], 13), 100, 100);
        let o = outcome(&a, &b);
        assert_eq!((o.is, o.words().as_str()), (Is::Better, "completes, loses fewer"));
    }

    /// A third of the runs lose 3,000 packets, so that the median tells nothing.
    #[test]
    fn a_mixture_of_losses_is_worse() {
        let a = of([7.0, 7.2], 30);
        let mut b = of([6.0, 6.2], 30);
        for r in &mut b[..10] {
            r.startup_lost_packets = Some(3000);
        }
        let o = outcome(&a, &b);
        assert_eq!((o.is, o.words().as_str()), (Is::Worse, "loses more, faster"));
        assert_eq!(o.why[0].1, "loses more packets in 10 of 30 runs, up to 3,000 more");
    }

    /// A third of the runs takes four times as long, so that the median tells nothing; or a few each way, which is noise.
    #[test]
    fn a_mixture_of_times_is_worse() {
        let a = of([7.0, 7.2], 30);
        let with = |slow: usize, fast: usize| {
            let mut b = of([7.0, 7.2], 30);
            for (i, r) in b.iter_mut().enumerate() {
                let by = if i < slow {
                    4.0
                } else if i < slow + fast {
                    0.5
                } else {
                    1.0
                };
                r.time_to_bytes_s.values_mut().flatten().for_each(|t| *t *= by);
                r.completion_s = r.completion_s.map(|t| t * by);
            }
            b
        };
        let o = outcome(&a, &with(10, 0));
        assert_eq!((o.is, o.words().as_str()), (Is::Worse, "slower"));
        assert_eq!(o.why[0].1, "is slower in 10 of 30 runs, by up to 300 %");
        assert_eq!(is(&a, &with(6, 5)).0, Is::Open);
        assert_eq!(is(&a, &with(1, 0)).0, Is::Open, "one run of 30 is chance");
    }

    /// Runs of other seeds: shares of runs compare, and waits.
    #[test]
    fn shares_of_runs_compare_without_common_seeds() {
        let elsewhere = |mut rows: Vec<Row>| {
            for r in &mut rows {
                r.seed += 1000;
            }
            rows
        };
        let a = of([7.0, 7.2], 30);
        let (one, most) = (never(a.clone(), &[0]), never(a.clone(), &(0..25).collect::<Vec<_>>()));
        assert_eq!(is(&one, &elsewhere(most.clone())), (Is::Worse, "stalls".into()));
        assert_eq!(is(&one, &elsewhere(never(a.clone(), &[0, 1]))).0, Is::Open);
        let mut lossy = a.clone();
        for r in &mut lossy[..10] {
            r.startup_lost_packets = Some(5000);
        }
        let o = outcome(&a, &elsewhere(lossy));
        assert_eq!((o.is, o.words().as_str()), (Is::Worse, "loses more"));
        assert_eq!(o.why[0].1, "loses packets in 10 of 30 runs, A in 0 of 30 runs");
        let mut waits = a.clone();
        for r in &mut waits {
            r.peak_queue_delay_s = Some(30.0);
        }
        assert_eq!(is(&a, &elsewhere(waits)), (Is::Worse, "longer queue".into()));
    }

    /// What a CUBIC flow beside it got is compared where both results have it.
    #[test]
    fn harm_is_compared_run_by_run() {
        let with = |got: f64| sample::beside(of([7.0, 7.2], 12), move |_, run| (run < 10).then_some(got));
        assert_eq!(is(&with(90.0), &with(89.0)).0, Is::Open);
        let o = outcome(&with(90.0), &with(70.0));
        assert_eq!((o.is, o.words().as_str()), (Is::Worse, "more harm"));
        assert_eq!(o.why[0].1, "slows a CUBIC flow beside it in every run, by up to 20 points");
    }

    /// Null against a number is no difference of nothing, whichever has it; and what was not observed is not late.
    #[test]
    fn what_one_result_only_has_is_named() {
        let a = sample::beside(of([7.0, 7.2], 6), |_, _| Some(90.0));
        let without = |change: fn(&mut Row)| sample::with(a.clone(), change);
        for (b, word, label) in [
            (without(|r| r.peak_queue_delay_s = None), "queue", "longest wait in the queue"),
            (without(|r| r.got_percent = None), "harm", "goodput of a CUBIC flow beside it"),
            (without(|r| r.startup_lost_packets = None), "lost", "packets lost in startup"),
            (without(|r| r.time_to_bytes_s.clear()), "10mb", "time to 10 MB"),
        ] {
            assert_eq!(is(&a, &b), (Is::OneSided, format!("{word} only in A")));
            assert_eq!(is(&b, &a), (Is::OneSided, format!("{word} only in B")));
            let note = outcome(&b, &a).note(&summarise(&b)[0], &summarise(&a)[0]);
            assert_eq!(note, Some(format!("search: only in B: {label}")));
            // What is slower besides stays worse, and the measure is named.
            let slow = sample::with(b, |r| r.completion_s = r.completion_s.map(|t| 2.0 * t));
            let o = outcome(&a, &slow);
            assert_eq!((o.is, o.open()), (Is::Worse, vec![format!("only in A: {label}")]));
        }
        // A transfer that does not complete in any run lost its time for another reason.
        assert_eq!(is(&a, &without(|r| r.completion_s = None)), (Is::Worse, "stalls".into()));
    }

    /// A transfer of 50 MB reaches 10 MB as early as before, and its end later.
    #[test]
    fn completion_is_compared_beside_the_time_to_10_mb() {
        let of = |by: f64| {
            sample::with(of([7.0, 7.2], 6), |r| {
                r.size_bytes = Some(50_000_000);
                r.completion_s = r.completion_s.map(|t| 4.0 * t * by);
            })
        };
        let o = outcome(&of(1.0), &of(1.25));
        assert_eq!((o.is, o.words().as_str(), o.by), (Is::Worse, "later", Measure::Time10MB));
        assert_eq!(o.why[0].1, "needs 25 % more time to completion");
        assert_eq!(is(&of(1.0), &of(0.75)), (Is::Better, "sooner".into()));
        assert_eq!(is(&of(1.0), &of(1.01)).0, Is::Open);
        let never = sample::with(of(1.0), |r| r.completion_s = None);
        assert_eq!(outcome(&of(1.0), &never).why[0].1, "does not complete in every run in which A does");
    }

    #[test]
    fn what_may_be_beyond_the_margin_is_not_certain() {
        let a = of([7.0, 7.2], 30);
        let mut b = a.clone();
        for (i, r) in b.iter_mut().enumerate() {
            let by = [4.0, 0.5, 1.0][i % 3];
            r.time_to_bytes_s.values_mut().flatten().for_each(|t| *t *= by);
            r.completion_s = r.completion_s.map(|t| t * by);
        }
        let o = outcome(&a, &b);
        assert_eq!((o.is, o.words().as_str()), (Is::Uncertain, "not certain"));
        let said = ["whether it differs is not certain: time to 10 MB and time to completion"];
        assert_eq!((o.open(), o.uncertain.len()), (said.map(String::from).to_vec(), 2));
        // Runs of other seeds, whose times overlap.
        let wide = sample::with(of([7.0, 9.0], 30), |r| r.seed += 1000);
        assert_eq!(is(&a, &wide), (Is::Uncertain, "not certain".into()));
        assert_eq!(is(&a[..5], &wide[..5]).0, Is::TooFew);
        let near = sample::with(of([7.0, 7.2], 30), |r| r.seed += 1000);
        assert_eq!(is(&a, &near).0, Is::Open);
        // Losses that one result does not show, since slow start had not ended.
        let unended = sample::with(a.clone(), |r| (r.exit, r.class) = (None, crate::record::Class::None));
        let o = outcome(&a, &unended);
        assert_eq!((o.is, o.uncertain), (Is::Uncertain, vec![Measure::StartupLost]));
    }

    /// Neither a larger transfer nor one that has no end is a slower one.
    #[test]
    fn other_workloads_do_not_compare() {
        let a = of([7.0, 7.2], 6);
        let with = |size: Option<u64>| {
            let mut rows = of([9.0, 9.2], 6);
            for row in &mut rows {
                row.size_bytes = size;
            }
            rows
        };
        for (b, said) in [
            (with(Some(20_000_000)), "search: A has transfers of 10 MB, B transfers of 20 MB"),
            (with(None), "search: A has transfers of 10 MB, B transfers without end"),
        ] {
            let o = outcome(&a, &b);
            assert_eq!((o.is, o.words().as_str()), (Is::Unlike, "another workload"));
            assert_eq!(o.note(&summarise(&a)[0], &summarise(&b)[0]).as_deref(), Some(said));
        }
    }

    #[test]
    fn unequal_numbers_compare_the_runs_that_both_have() {
        let (a, b) = (of([7.0, 7.2], 12), of([9.0, 9.2], 6));
        let o = outcome(&a, &b);
        assert_eq!((o.is, o.pairs), (Is::Worse, 6));
        let note = o.note(&summarise(&a)[0], &summarise(&b)[0]).expect("a note");
        assert_eq!(note, "search is slower; compared over the 6 runs that both have, of 12 and 6");
        assert_eq!(is(&a, &a[..6]).0, Is::Same);
    }

    #[test]
    fn invalid_runs_decide_nothing_and_a_broken_controller_is_worse() {
        let a = of([7.0, 7.2], 6);
        let mark = |mut rows: Vec<Row>, why: &str| {
            rows[0].caveats = vec![why.to_string()];
            rows
        };
        assert_eq!(is(&a, &mark(of([9.0, 9.2], 6), INVALID)).0, Is::TooFew);
        let broken = mark(of([5.0, 5.2], 6), &format!("{BROKEN}: cwnd 0"));
        assert_eq!(is(&a, &broken), (Is::Worse, "broke a rule, faster".into()));
    }
}
