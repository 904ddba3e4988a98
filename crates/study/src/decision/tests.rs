//! Decisions over made rows: ranks, order, and what decides nothing.

use super::*;
use crate::sample::{beside, rows, with};
use crate::verdict::verdict;
use slowstart_sim::random::Stream;

fn decide<'a>(rows: &'a [Row], baseline: &'a str) -> Decision<'a> {
    Decision::new(rows, &Terms { baseline: Some(baseline), ..Terms::default() })
}

#[test]
fn the_default_is_that_of_the_engine_and_an_unknown_engine_has_none() {
    let named = ["sim", "kernel", "quic", "quic:noq", "ns-3"].map(default_startup);
    assert_eq!(named, [Some("hystart"), Some("cubic"), Some("standard"), Some("standard"), None]);
    let mut all = [rows("standard", &[1.0; 4]), rows("hystart", &[1.0; 4])].concat();
    let of = |all: &[Row]| {
        let decision = Decision::new(all, &Terms::default());
        decision.baseline().expect("a baseline").summary.label.clone()
    };
    assert_eq!((of(&all).as_str(), role(&all[4], "hystart")), ("hystart", Some("Linux's default")));
    for r in &mut all {
        r.engine = "ns-3".into();
    }
    assert_eq!((of(&all).as_str(), role(&all[4], "hystart")), ("standard", None));
}

/// A study of random startups: times that share the path of their run, losses and queues.
fn random(seed: u64, names: &[String], runs: usize) -> Vec<Row> {
    let mut chance = Stream::named(seed, "decision");
    let path: Vec<f64> = (0..runs).map(|_| 5.0 + chance.below(2000) as f64 / 100.0).collect();
    let mut all = Vec::new();
    for name in names {
        let (speed, noise) = (0.6 + chance.below(80) as f64 / 100.0, 1 + chance.below(60));
        let (lost, queue) = (chance.below(3) * chance.below(200), chance.below(300) as f64);
        let times: Vec<f64> =
            path.iter().map(|p| p * speed * (1.0 + chance.below(noise) as f64 / 100.0)).collect();
        let mut mine = rows(name, &times);
        for r in &mut mine {
            r.startup_lost_packets = Some(lost * chance.below(3));
            r.peak_queue_delay_s = Some((queue + chance.below(40) as f64) / 1e3);
        }
        all.extend(mine);
    }
    all
}

/// Over random data no startup stands behind one that it beats at 95 % confidence, by rank or in the order of the
/// lines; the front is not empty, and nothing outside the needs of its startups beats one of it alone.
#[test]
fn ranks_and_order_are_sound() {
    let names: Vec<String> = (0..7).map(|i| format!("s{i}")).collect();
    let mut certain = 0;
    for seed in 0..300 {
        let all = random(seed, &names, [6, 10, 30][seed as usize % 3]);
        let d = decide(&all, "s0");
        let of = |i: usize| &d.standings[i].summary;
        let n = d.standings.len();
        let order = Order::new(n, |i, j| d.beats(of(i), of(j)));
        for (i, s) in d.standings.iter().enumerate() {
            for (j, other) in d.standings.iter().enumerate() {
                let wins = d.beats(&s.summary, &other.summary);
                certain += usize::from(wins);
                if wins && order.is_ahead(i, j) {
                    assert!(s.rank < other.rank, "seed {seed}: rank of {}", s.summary.label);
                    // The baseline stands first, whoever beats it.
                    assert!(i < j || j == 0, "seed {seed}: {} stands behind", s.summary.label);
                }
            }
        }
        assert!(d.standings.iter().any(|s| s.rank == Some(1)));
        assert!(d.standings.iter().any(|s| s.unbeaten), "seed {seed}: an empty front");
    }
    // Both certain and uncertain pairs are many.
    assert!((1000..300 * 21 - 500).contains(&certain), "{certain} of 6300 pairs");
}

/// Other names change nothing but the names, in order, ranks, front and words.
#[test]
fn names_decide_nothing() {
    let names: Vec<String> = (0..6).map(|i| format!("s{i}")).collect();
    let renamed: Vec<String> = names.iter().rev().map(|n| format!("{n}x")).collect();
    let back = |text: &str| {
        let swapped =
            names.iter().zip(&renamed).fold(text.to_string(), |t, (n, r)| t.replace(r, &format!("<{n}>")));
        swapped.replace(['<', '>'], "")
    };
    for seed in 0..100 {
        let (a, b) = (random(seed, &names, 10), random(seed, &renamed, 10));
        let (da, db) = (decide(&a, "s0"), decide(&b, &renamed[0]));
        let facts = |d: &Decision| -> Vec<_> {
            d.standings.iter().map(|s| (back(&s.summary.label), s.rank, s.unbeaten)).collect()
        };
        assert_eq!(facts(&da), facts(&db), "seed {seed}");
        assert_eq!(verdict(&da), back(&verdict(&db)), "seed {seed}");
    }
}

/// The verdict depends on the measurements only: not on the seed, the version and the order of the runs.
#[test]
fn the_same_facts_give_the_same_words() {
    let names: Vec<String> = (0..4).map(|i| format!("s{i}")).collect();
    for seed in 0..50 {
        let a = random(seed, &names, 10);
        let mut b = with(a.clone(), |r| (r.version, r.seed) = ("9".into(), r.seed + 100));
        for of_startup in b.chunks_mut(10) {
            of_startup.reverse();
        }
        assert_eq!(verdict(&decide(&a, "s0")), verdict(&decide(&b, "s0")), "seed {seed}");
    }
}

/// Each run of b takes 4 % longer than that of a, which medians with their intervals do not show.
#[test]
fn runs_are_compared_with_the_same_run() {
    let times = [7.0, 9.0, 8.0, 12.0, 10.0, 7.5, 8.5];
    let all = [rows("a", &times), rows("b", &times.map(|t| t * 1.04)), rows("c", &times.map(|t| t * 1.02))]
        .concat();
    let d = decide(&all, "a");
    let of = |label: &str| {
        let s = d.standings.iter().find(|s| s.summary.label == label).expect("a startup");
        (s.rank, d.against(&s.summary, d.by).map(|x| (x.median.mid.round(), x.change)))
    };
    assert_eq!(of("a"), (Some(1), None));
    assert_eq!(of("b"), (Some(2), Some((4.0, Change::Worse))));
    assert_eq!(of("c"), (Some(1), Some((2.0, Change::Even))), "within the margin, however certain");
    assert_eq!(d.by, Measure::Time10MB);
}

#[test]
fn what_runs_do_not_show_says_how_many_would() {
    let a = [10.0; 10];
    let b = [8.0, 12.0, 8.1, 12.0, 8.2, 12.0, 8.0, 9.0, 9.1, 8.9];
    let all = [rows("a", &a), rows("b", &b)].concat();
    let d = decide(&all, "a");
    let change = d.against(&d.standings[1].summary, d.by).expect("a difference").change;
    assert!(matches!(change, Change::NotShown { runs: Some(runs) } if runs > 10), "{change:?}");
    assert_eq!((d.standings[1].rank, d.runs()), (Some(1), 10));
}

/// Ten of thirty runs take six times as long: the median difference is 0, its interval is not.
#[test]
fn what_may_be_beyond_the_margin_is_not_even() {
    let change = |slow: usize, by: f64| {
        let mut b = [10.0; 30];
        b[..slow].iter_mut().for_each(|t| *t *= by);
        let all = [rows("a", &[10.0; 30]), rows("b", &b)].concat();
        let d = decide(&all, "a");
        let found = d.against(&d.standings[1].summary, d.by).expect("a difference");
        (found.median.mid, found.change)
    };
    assert_eq!(change(12, 6.0), (0.0, Change::NotShown { runs: None }));
    assert_eq!(change(12, 0.5), (0.0, Change::NotShown { runs: None }));
    assert_eq!(change(12, 1.02), (0.0, Change::Even));
    assert_eq!(change(2, 6.0), (0.0, Change::Even), "the interval is 0");
}

#[test]
fn the_front_weighs_more_than_time() {
    let lossy = |rows| with(rows, |r: &mut Row| r.startup_lost_packets = Some(5000));
    let all = [
        rows("today", &[10.0; 6]),
        lossy(rows("fast", &[6.0; 6])),
        rows("good", &[7.0; 6]),
        lossy(rows("bad", &[8.0; 6])),
    ]
    .concat();
    let d = decide(&all, "today");
    let front: Vec<&str> =
        d.standings.iter().filter(|s| s.unbeaten).map(|s| s.summary.label.as_str()).collect();
    assert_eq!(front, ["fast", "good"]);
    assert_eq!(d.standings.iter().map(|s| s.rank).collect::<Vec<_>>(), [4, 1, 2, 3].map(Some));
}

/// What costs less beats what is as quick; where that is not shown, nothing is said.
#[test]
fn what_is_not_shown_to_be_as_quick_beats_nothing_for_sure() {
    let lossy = with(rows("lossy", &[6.0; 10]), |r: &mut Row| r.startup_lost_packets = Some(500));
    let of = |clean: &[f64; 10]| {
        let all = [rows("today", &[10.0; 10]), lossy.clone(), rows("clean", clean)].concat();
        let d = decide(&all, "today");
        let found = d.standings.iter().find(|s| s.summary.label == "lossy").expect("lossy");
        (found.unbeaten, found.maybe_unbeaten)
    };
    assert_eq!(of(&[6.0; 10]), (false, false));
    assert_eq!(of(&[5.0, 7.0, 7.2, 7.0, 5.0, 7.1, 5.0, 6.9, 7.0, 5.0]), (false, true));
}

/// A startup that takes half of what another flow got is beaten by one that takes nothing, if both are as
/// quick.
#[test]
fn harm_decides_between_equals() {
    let all = [rows("today", &[10.0; 6]), rows("rude", &[8.0; 6]), rows("kind", &[8.0; 6])].concat();
    let all = beside(all, |startup, _| Some(if startup == "rude" { 50.0 } else { 90.0 }));
    let d = Decision::new(&all, &Terms { baseline: Some("today"), ..Terms::default() });
    let front: Vec<&str> =
        d.standings.iter().filter(|s| s.unbeaten).map(|s| s.summary.label.as_str()).collect();
    assert_eq!(front, ["kind"]);
}

/// What is known of jump-start is what others say of it: it takes no rank, no star, and neither from another.
#[test]
fn what_is_reconstructed_stands_apart() {
    let all =
        [rows("hystart", &[10.0; 6]), rows("jump-start", &[5.0; 6]), rows("search", &[8.0; 6])].concat();
    let d = Decision::new(&all, &Terms::default());
    let places: Vec<(&str, Option<usize>, bool)> =
        d.standings.iter().map(|s| (s.summary.label.as_str(), s.rank, s.unbeaten)).collect();
    assert_eq!(places, [("hystart", Some(2), false), ("search", Some(1), true), ("jump-start", None, false)]);
    assert!(d.standings[2].is_apart() && !d.standings[1].is_apart());
}

/// careful-resume needs memory: it never heads the list.
#[test]
fn what_needs_more_stands_last() {
    let all =
        [rows("hystart", &[10.0; 6]), rows("careful-resume", &[5.0; 6]), rows("search", &[8.0; 6])].concat();
    let d = Decision::new(&all, &Terms::default());
    let labels: Vec<&str> = d.standings.iter().map(|s| s.summary.label.as_str()).collect();
    assert_eq!(labels, ["hystart", "search", "careful-resume"]);
    assert!(d.standings[1].unbeaten && !d.standings[2].unbeaten);
    assert_eq!(d.standings[2].need, Some(Need::PathMemory));
}

#[test]
fn what_never_completes_is_worse_than_any_time() {
    let never = |r: &mut Row| {
        r.completion_s = None;
        r.time_to_bytes_s.clear();
    };
    let mut some = rows("some", &[5.0; 12]);
    some[3..5].iter_mut().for_each(never);
    let all = [rows("a", &[7.0; 12]), some, with(rows("none", &[9.0; 12]), never)].concat();
    let d = decide(&all, "a");
    let of = |label: &str| d.standings.iter().find(|s| s.summary.label == label).expect("a startup");
    let time = |label: &str| d.against(&of(label).summary, d.by).expect("a difference");
    assert_eq!(d.by, Measure::Time10MB);
    // 29 % sooner in the ten runs in which it completes.
    assert_eq!((time("some").change, time("some").never), (Change::Worse, [2, 0]));
    assert_eq!((time("none").change, time("none").never), (Change::Worse, [12, 0]));
    let places = ["a", "some", "none"].map(|l| (of(l).rank, of(l).unbeaten));
    assert_eq!(places, [(Some(1), true), (Some(2), false), (Some(3), false)]);
    // What stalls loses less than what does not: that is no merit.
    let lossy = with(all.clone(), |r| {
        r.startup_lost_packets = Some(if r.startup == "a" { 170 } else { 0 });
    });
    let d = decide(&lossy, "a");
    assert_eq!(d.standings.iter().map(|s| s.unbeaten).collect::<Vec<_>>(), [true, false, false]);
    let some = d.standings.iter().find(|s| s.summary.label == "some").expect("a startup");
    let price = d.price(&some.summary, Measure::StartupLost).expect("a price");
    assert_eq!((price.spares, price.runs), (10, 12));
    // A baseline that completes in no run leaves goodput.
    assert_eq!(decide(&all, "none").by, Measure::Goodput);
    assert!(Decision::new(&[], &Terms::default()).baseline().is_none());
}

#[test]
fn what_broke_a_rule_has_no_place() {
    let broken = with(rows("mine", &[5.0; 6]), |r| r.caveats = vec![format!("{BROKEN}: cwnd 0")]);
    let all = [rows("a", &[7.0; 6]), broken].concat();
    let d = decide(&all, "a");
    assert_eq!(
        d.standings.iter().map(|s| (s.rank, s.unbeaten)).collect::<Vec<_>>(),
        [(Some(1), true), (None, false)]
    );
}

#[test]
fn invalid_and_few_runs_decide_nothing() {
    let change = |all: &[Row]| {
        let d = decide(all, "a");
        let time = d.against(&d.standings[1].summary, d.by).map(|x| x.change);
        (time, d.standings[1].unbeaten)
    };
    let of = |n: usize| [rows("a", &vec![7.0; n]), rows("b", &vec![5.0; n])].concat();
    assert_eq!(change(&of(6)), (Some(Change::Better), true));
    assert_eq!(change(&of(5)), (Some(Change::TooFew), false));
    let mut late = of(6);
    late[0].caveats = vec![INVALID.to_string()];
    assert_eq!(change(&late), (Some(Change::TooFew), false));
}

/// Half of the runs show no queue: the other half decides nothing.
#[test]
fn what_a_run_does_not_show_is_not_left_out() {
    let queue = |s: f64| with(rows("a", &[7.0; 12]), |r| r.peak_queue_delay_s = Some(s));
    let mut b = with(rows("b", &[7.0; 12]), |r| r.peak_queue_delay_s = Some(0.0));
    let change = |b: &[Row]| {
        let all = [queue(2.0), b.to_vec()].concat();
        let d = decide(&all, "a");
        d.against(&d.standings[1].summary, Measure::QueueDelay).map(|x| x.change)
    };
    assert_eq!(change(&b), Some(Change::Better));
    b[..6].iter_mut().for_each(|r| r.peak_queue_delay_s = None);
    assert_eq!(change(&b), None);
}

/// Losses of transfers that ended before slow start did are not fewer than those that another shows, in part
/// or whole.
#[test]
fn what_hides_its_losses_does_not_lose_less() {
    let unended = |r: &mut Row| (r.exit, r.class) = (None, Class::None);
    let mut partly = with(rows("a", &[10.0; 12]), |r| r.startup_lost_packets = Some(100));
    partly[..1].iter_mut().for_each(|r| {
        unended(r);
        r.startup_lost_packets = Some(0);
    });
    let all = [partly, with(rows("b", &[10.0; 12]), unended)].concat();
    let d = decide(&all, "a");
    let [a, b] = [0, 1].map(|i| &d.standings[i].summary);
    assert_eq!(d.against(b, Measure::StartupLost).map(|x| x.change), Some(Change::Better));
    assert!(!d.is_better(b, a) && d.shown(&[a, b]) == [Measure::QueueDelay]);
}

/// Ten of thirty runs lose 3,000 packets: the median hides it.
#[test]
fn a_mixture_of_losses_beats_nothing() {
    let mut mixed = rows("mixed", &[6.0; 30]);
    mixed[..10].iter_mut().for_each(|r| r.startup_lost_packets = Some(3000));
    let all = [rows("a", &[10.0; 30]), mixed, rows("clean", &[7.0; 30])].concat();
    let d = decide(&all, "a");
    let price = d.price(&d.standings[1].summary, Measure::StartupLost).expect("a price");
    assert_eq!((price.pays, price.runs, price.most), (10, 30, 3000.0));
    assert!(!d.is_better(&d.standings[1].summary, &d.standings[0].summary));
    assert!(d.standings[2].unbeaten, "clean is not beaten by what loses");
}
