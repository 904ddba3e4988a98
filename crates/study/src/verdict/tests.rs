//! The sentences of a verdict, one situation a test.

use super::*;
use crate::decision::Terms;
use crate::record::Objects;
use crate::sample::{beside, rows, with};

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

/// Twelve runs of a browser. `of_run` gives the number of objects that come, each after about `time` seconds, and
/// whether one more never does.
fn browsers(startup: &str, time: f64, of_run: impl Fn(u32) -> (usize, bool)) -> Vec<Row> {
    with(rows(startup, &[1.0; 12]), |r| {
        let (n, stalls) = of_run(r.run);
        let times = (0..n).map(|i| Some(time * (1.0 + i as f64 / 1000.0)));
        r.objects = Some(Objects::new(times.chain(stalls.then_some(None)).collect()));
        (r.size_bytes, r.completion_s) = (None, None);
    })
}

/// Of a browser that stalls in 2 of 12 runs, the few objects that came first are no gain.
#[test]
fn a_browser_that_stalls_is_worse() {
    let stalls = browsers("search", 0.169, |run| if run % 6 == 0 { (7, true) } else { (371, false) });
    let all = [browsers("hystart", 0.656, |_| (371, false)), stalls].concat();
    let d = Decision::new(&all, &Terms::default());
    let [hystart, search] = [0, 1].map(|i| &d.standings[i]);
    let time = d.against(&search.summary, Measure::ObjectMedian).expect("a difference");
    assert_eq!((d.by, time.change, time.never), (Measure::ObjectMedian, Change::Worse, [2, 0]));
    assert!(hystart.unbeaten && !search.unbeaten);
    let said = verdict(&d);
    assert!(
        said.starts_with("hystart, Linux's default, needs 0.777 s for the median object and 0.887 s at the"),
        "{said}"
    );
    assert!(
        said.contains("Keep hystart")
            && said.ends_with("search does not complete every object in 2 of 12 runs."),
        "{said}"
    );
}

/// Runs are compared over the objects that both asked for: those that only the faster reaches are slower ones.
#[test]
fn the_same_objects_are_compared() {
    let fast = browsers("search", 0.6, |_| (400, false));
    let all = [browsers("hystart", 0.6, |_| (100, false)), fast].concat();
    let d = Decision::new(&all, &Terms::default());
    let search = &d.standings[1].summary;
    let [median, tail] = [Measure::ObjectMedian, Measure::ObjectP95].map(|m| d.against(search, m));
    assert!([median, tail].iter().all(|x| x.is_some_and(|x| x.median.mid.abs() < 1e-9)));
    let own = search.typical(Measure::ObjectMedian).expect("a median").0.mid;
    assert!((own / 0.6 - 1.1995).abs() < 1e-6, "{own}");
}

#[test]
fn slow_objects_are_a_price() {
    let mut slow = browsers("search", 0.5, |_| (100, false));
    for r in slow.iter_mut().filter(|r| r.run < 4) {
        let mut times = r.objects.take().expect("objects").times_s;
        times[90..].iter_mut().for_each(|t| *t = Some(3.0));
        r.objects = Some(Objects::new(times));
    }
    let paid = said(&[browsers("hystart", 0.7, |_| (100, false)), slow].concat());
    assert!(paid.contains("but takes longer at the 95th percentile in 4 of 12 runs, up to 2.23 s"), "{paid}");
    let quick = browsers("search", 0.5, |_| (100, false));
    let free = said(&[browsers("hystart", 0.7, |_| (100, false)), quick].concat());
    assert!(free.contains("within the margins of tail latency, losses and delay"), "{free}");
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
         less time, within the margins of losses and delay in each of these 6 runs. Of these 4 startups, the best trade-offs of time, losses and delay are \
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
    let all = beside(all, |startup, _| Some(if startup == "ess" { 71.0 } else { 90.0 }));
    let text = verdict(&Decision::new(&all, &Terms::default()));
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
            "search takes less time, and completes in every run in which hystart does not, but what it costs is not shown, since in no run \
             both complete."
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
        text.starts_with("a gets 10 Mbit/s over 30 s, and never completes: it does not leave slow start."),
        "{text}"
    );
    assert!(text.contains("Keep a: no startup is shown to be 3 % faster."), "{text}");
}

fn stalling(mut rows: Vec<Row>, runs: usize) -> Vec<Row> {
    for r in &mut rows[..runs] {
        (r.completion_s, r.exit, r.class) = (None, None, Class::None);
        r.time_to_bytes_s.clear();
    }
    rows
}

fn broken(rows: Vec<Row>) -> Vec<Row> {
    with(rows, |r| r.caveats = vec![format!("{}: cwnd 0", crate::measured::BROKEN)])
}

/// As fast, 1,444 packets fewer, and one run of six in which another flow gets less.
#[test]
fn fewer_losses_at_a_rare_price_are_an_answer() {
    let all = [
        lossy(rows("hystart", &[10.0; 6]), 1444),
        rows("ess", &[10.0; 6]),
        with(lossy(rows("suss", &[9.5; 6]), 1600), |r| r.peak_queue_delay_s = Some(0.03)),
    ]
    .concat();
    let got = |label: &str, run: u32| match (label, run) {
        ("ess", 0) => Some(78.0),
        ("suss", _) => Some(80.0),
        _ => Some(90.0),
    };
    let harm = beside(all.clone(), got);
    let of = |all: &[Row]| verdict(&Decision::new(all, &Terms::default()));
    assert!(
        of(&harm).contains(
            "ess takes as long and loses 1,444 packets fewer, but slows a CUBIC flow beside it in 1 of 6 runs, by up to 12 points."
        ),
        "{}",
        of(&harm)
    );
    // Without a price it goes before what is faster and loses more.
    assert!(of(&all).contains("ess takes as long and loses 1,444 packets fewer."), "{}", of(&all));
}

#[test]
fn losses_that_nobody_shows_are_not_weighed() {
    let unended = |name, time| with(rows(name, &[time; 12]), |r| (r.exit, r.class) = (None, Class::None));
    let all = [unended("hystart", 10.0), unended("ess", 7.0)].concat();
    let text = said(&all);
    // No star, and no trade-off, beside losses that are not shown.
    assert!(
        !text.contains("trade-off") && text.contains("ess takes 30 % less time, but its losses"),
        "{text}"
    );
    let decision = Decision::new(&all, &Terms::default());
    assert!(decision.standings.iter().all(|s| !s.unbeaten));
    // One that shows its own is not beaten by one that does not.
    let few = with(rows("suss", &[8.0; 12]), |r| r.startup_lost_packets = Some(12));
    let text = said(&[unended("hystart", 10.0), unended("ess", 7.0), few].concat());
    assert!(
        text.contains(
            "the best trade-off of time, losses and delay is suss; whether ess is one too is not shown"
        ),
        "{text}"
    );
}

/// What the baseline saves by stalling is no price of the others.
#[test]
fn a_stall_of_the_baseline_makes_nobody_dear() {
    let base = with(stalling(rows("hystart", &[10.0; 12]), 2), |r| {
        r.peak_queue_delay_s = Some(if r.completion_s.is_none() { 0.0 } else { 0.4 });
    });
    let other = with(rows("search", &[10.0; 12]), |r| r.peak_queue_delay_s = Some(0.4));
    let text = said(&[base, other].concat());
    assert!(
        text.starts_with("hystart, Linux's default, needs 10 s for 10 MB in 10 of 12 runs, and"),
        "{text}"
    );
    assert!(
        text.contains(
            "search takes as long, and completes in 2 of 12 runs in which hystart does not, within the margins of losses and delay in each of these 10 runs where \
             both complete."
        ),
        "{text}"
    );
}

#[test]
fn without_a_verdict_the_reason_is_said() {
    let (a, b) = (|| rows("hystart", &[10.0; 7]), || rows("search", &[5.0; 7]));
    let text = said(&[broken(a()), b()].concat());
    assert!(text.ends_with("There is no verdict: the baseline, hystart, broke a rule."), "{text}");
    let text = said(&[a(), broken(b())].concat());
    assert!(
        text.ends_with(
            "There is no verdict: every other startup broke a rule. search broke a rule and has no place."
        ),
        "{text}"
    );
    let idle = with(stalling(a(), 7), |r| r.goodput_bps = 0);
    let text = said(&[idle, b()].concat());
    assert!(text.ends_with("There is no verdict: nothing can be compared with hystart."), "{text}");
    let text = said(&[a(), rows("careful-resume", &[5.0; 7])].concat());
    assert!(text.contains("every other startup needs what a sender may lack"), "{text}");
    let text = said(&[a(), rows("careful-resume", &[5.0; 7]), rows("search", &[10.0; 7])].concat());
    assert!(text.contains("no startup without special needs is shown to be 3 % faster"), "{text}");
    let text = said(&[a(), rows("jump-start", &[5.0; 7]), rows("search", &[10.0; 7])].concat());
    assert!(
        text.contains("no startup with a published specification is shown to be 3 % faster")
            && !text.contains("jump-start"),
        "{text}"
    );
}

#[test]
fn a_small_end_of_an_interval_is_not_zero() {
    assert_eq!([0.0, 0.004, 0.4, 3.2, 14.4].map(percent), ["0", "under 0.1", "0.4", "3", "14"]);
    let times = [9.96, 9.6, 9.6, 9.6, 8.6, 8.6];
    let text = said(&[rows("hystart", &[10.0; 6]), rows("search", &times)].concat());
    assert!(text.contains("takes 4 % less time (0.4 to 14)"), "{text}");
}

#[test]
fn a_full_window_that_is_too_early_says_against_what() {
    let window = |r: &mut Row, class, bytes| {
        r.class = class;
        r.exit.as_mut().expect("an exit").detected_cwnd_bytes = bytes;
    };
    let all = with(rows("hystart", &[10.0; 6]), |r| match r.run {
        0..4 => window(r, Class::Early, 1_200_000),
        _ => window(r, Class::Late, 7_000_000),
    });
    let text = said(&all);
    assert!(
        text.ends_with(
            "too early in 4 of 6 runs, before the bytes in flight fill the path, though its window is 1.2 times the BDP."
        ),
        "{text}"
    );
}

/// Within the margin for 10 MB, 5 % later for 1 MB, with fewer losses.
#[test]
fn what_is_later_for_one_megabyte_does_not_take_as_long() {
    let base = with(rows("hystart", &[10.0; 20]), |r| r.startup_lost_packets = Some(1500));
    let saves = |by: f64| {
        with(rows("bbr3", &[10.2; 20]), |r| {
            r.startup_lost_packets = Some(0);
            r.time_to_bytes_s.get_mut("1000000").expect("it got there").replace(by);
        })
    };
    let one = base[0].time_to_bytes_s["1000000"].expect("it got there");
    assert!(said(&[base.clone(), saves(one)].concat()).contains("bbr3 takes as long"));
    assert!(!said(&[base, saves(1.05 * one)].concat()).contains("bbr3 takes as long"));
}
