//! The pool on fleets whose truth is known: four servers with populations of their own, which report at
//! different times. What is counted is whether any look at the fleet went wrong. `SLOWSTART_LONG=1`: 1,000
//! fleets each.

mod common;

use common::{NONE, Truth, normal, plan, uniform};
use rayon::prelude::*;
use slowstart_stats::random::{self, Stream};
use slowstart_trial::statistics::StatisticsError;
use slowstart_trial::{Guard, Measure, Outcome, Plan, Pooled, Server, Statistics, Stratify, Trial, pool};

const TWO: [&str; 2] = ["cubic:50%", "ours:50%"];
const TWO_NAMES: [&str; 2] = ["cubic", "ours"];
const SERVERS: usize = 4;
const LOOKS: usize = 20;

fn fleets() -> u64 {
    if std::env::var_os("SLOWSTART_LONG").is_some() { 1000 } else { 200 }
}

/// The most errors that 5 % of the fleets are.
fn five_percent() -> usize {
    (fleets() / 20) as usize
}

/// A server: its connections are `scale` times as slow as those of another with the same RTTs, and it has `n`
/// of them.
#[derive(Copy, Clone)]
struct Kind {
    scale: f64,
    n: usize,
    truth: [Truth; 2],
}

/// Four servers that differ in load, clients and number of connections.
fn kinds(truth: Truth) -> [Kind; SERVERS] {
    [(1.0, 400), (3.0, 200), (0.5, 800), (10.0, 100)].map(|(scale, n)| Kind {
        scale,
        n,
        truth: [NONE, truth],
    })
}

fn outcome(r: &mut Stream, plan: &Plan, key: u64, kind: Kind) -> Outcome {
    let arm = plan.assign(key).expect("all are in the trial");
    let rtt = [0.012, 0.04, 0.12, 0.6][r.below(4) as usize] * (1.0 + uniform(r));
    let time =
        kind.scale * kind.truth[arm].time * libm::exp(0.6 * normal(r)) * rtt * (3.0 + 5.0 * uniform(r));
    let share = if r.chance(200_000) { 0.05 * uniform(r) * kind.truth[arm].retrans } else { 0.0 };
    Outcome {
        arm,
        unit: key,
        prefix: key,
        handshake_rtt_s: Some(rtt),
        milestones_s: [None; 3],
        last_s: Some(time),
        delivered_bytes: 1_000_000,
        sent_bytes: 1_000_000,
        retransmitted_bytes: (1e6 * share) as u64,
        rtt_mean: None,
        rtt_peak: None,
        app_limited: None,
        exit: None,
    }
}

/// Runs a fleet: between two looks each server takes a random number of connections, so that some have much
/// to tell and others nothing new. Calls `look` with what the fleet knows until it returns something.
fn fleet<T>(
    seed: u64,
    kinds: [Kind; SERVERS],
    by_rtt: bool,
    guards: &[Guard],
    mut look: impl FnMut(&Pooled) -> Option<T>,
) -> Option<T> {
    let mut r = Stream::named(seed, "fleet");
    let stratify = Stratify { rtt: by_rtt, prefix: false };
    let mut trials: Vec<(Trial, Plan)> = (0..SERVERS as u64)
        .map(|i| {
            let plan = plan(&TWO, random::at(seed, i));
            (Trial::new(plan.clone(), Measure::TimeLast, stratify, guards.to_vec(), false), plan)
        })
        .collect();
    let mut taken = [0_usize; SERVERS];
    let mut told: Vec<Option<Server>> = vec![None; SERVERS];
    for _ in 0..LOOKS {
        for (i, (trial, plan)) in trials.iter_mut().enumerate() {
            let more = r.below(2 * kinds[i].n as u64 / LOOKS as u64 + 1) as usize;
            for _ in 0..more.min(kinds[i].n - taken[i]) {
                trial.put(taken[i] as u64, outcome(&mut r, plan, taken[i] as u64, kinds[i]), true);
                taken[i] += 1;
            }
            // A server reports at two looks of three.
            if told[i].is_none() || r.below(3) > 0 {
                let statistics = trial.statistics(&format!("{seed:08x}{i:08x}"), "6.18", 1.0, 0);
                told[i] = Some(Server { name: format!("server{i}"), statistics });
            }
        }
        let servers: Vec<Server> = told.iter().flatten().cloned().collect();
        if let Some(found) = look(&pool(&servers).expect("one plan")) {
            return Some(found);
        }
    }
    None
}

fn count<T: Send>(
    kinds: [Kind; SERVERS],
    by_rtt: bool,
    guards: &[Guard],
    look: impl Fn(&Pooled) -> Option<T> + Sync,
) -> Vec<T> {
    (0..fleets()).into_par_iter().filter_map(|seed| fleet(seed, kinds, by_rtt, guards, &look)).collect()
}

#[test]
fn a_a_fleets_find_a_difference_in_no_more_than_the_stated_share() {
    for by_rtt in [false, true] {
        for measure in [Measure::TimeLast, Measure::Retrans] {
            let differs = |p: &Pooled| {
                let e = p.comparisons.iter().find(|c| c.measure == measure)?.effect?;
                (e.is_less() || e.is_more()).then_some(())
            };
            let found = count(kinds(NONE), by_rtt, &[], differs).len();
            println!(
                "measured: {found} of {} A/A fleets found a difference in {measure}, by rtt: {by_rtt}",
                fleets()
            );
            assert!(found <= five_percent(), "{found}");
        }
    }
}

#[test]
fn a_known_effect_is_covered_at_every_look_and_found_at_the_end() {
    let missed = |p: &Pooled| {
        let e = p.comparisons[0].effect?;
        (e.low > -0.2 || e.high < -0.2).then_some(())
    };
    let truth = Truth { time: 0.8, retrans: 1.0 };
    let misses = count(kinds(truth), false, &[], missed).len();
    println!("measured: of {} fleets {misses} missed an effect of -20 % at some look", fleets());
    assert!(misses <= five_percent(), "{misses}");
    // 1,500 connections whose times vary by a factor of four find an effect of -40 %.
    let truth = Truth { time: 0.6, retrans: 1.0 };
    let found = |p: &Pooled| p.verdict.starts_with("ours has less").then_some(());
    let finds = count(kinds(truth), false, &[], found).len();
    println!("measured: {finds} of {} fleets found an effect of -40 %", fleets());
    assert!(finds as u64 >= fleets() * 9 / 10, "{finds}");
}

#[test]
fn a_harm_is_seen_over_the_fleet_and_what_is_permitted_is_not() {
    let guards = [Guard::parse("retrans=+20%").expect("a guard")];
    let stopped = |retrans: f64| {
        let crossed = |p: &Pooled| (!p.arms[1].crossed.is_empty()).then_some(());
        count(kinds(Truth { time: 1.0, retrans }), false, &guards, crossed).len()
    };
    for permitted in [1.0, 1.2] {
        let n = stopped(permitted);
        println!("measured: {n} of {} fleets stopped with {permitted} times the retransmissions", fleets());
        assert!(n <= five_percent(), "{n}");
    }
    let n = stopped(3.0);
    println!("measured: {n} of {} fleets stopped with 3 times the retransmissions", fleets());
    assert!(n as u64 >= fleets() * 9 / 10, "{n}");
}

/// One server of four has the opposite effect.
#[test]
fn a_server_that_is_different_is_named_and_others_are_not() {
    let named = |kinds: [Kind; SERVERS]| {
        let last = std::sync::Mutex::new((0, 0));
        (0..fleets()).into_par_iter().for_each(|seed| {
            let (mut right, mut wrong) = (false, false);
            fleet(seed, kinds, false, &[], |p| -> Option<()> {
                for s in p.comparisons[0].servers.iter().filter(|s| s.disagrees) {
                    if s.server == "server2" { right = true } else { wrong = true }
                }
                None
            });
            let mut last = last.lock().expect("no panic");
            last.0 += u64::from(right);
            last.1 += u64::from(wrong);
        });
        last.into_inner().expect("no panic")
    };
    let agree = Truth { time: 0.7, retrans: 1.0 };
    let (right, wrong) = named(kinds(agree));
    println!("measured: servers that agree: {} of {} fleets named one", right.max(wrong), fleets());
    assert!(right + wrong <= five_percent() as u64, "{right} {wrong}");
    let mut kinds = kinds(agree);
    kinds[2].truth[1].time = 2.0;
    let (right, _) = named(kinds);
    println!("measured: one server with the opposite effect was named in {right} of {} fleets", fleets());
    assert!(right >= fleets() * 9 / 10, "{right}");
}

/// The statistics of a server, with `n` connections of which `keep` are told.
fn server(name: &str, seed: u64, n: u64, keep: impl Fn(&Outcome, u64) -> bool, lost: u64) -> Server {
    let plan = plan(&TWO, seed);
    let mut r = Stream::named(seed, name);
    let mut trial = Trial::new(plan.clone(), Measure::TimeLast, Stratify::default(), Vec::new(), false);
    for key in 0..n {
        let o = outcome(&mut r, &plan, key, kinds(NONE)[0]);
        if keep(&o, key) {
            trial.put(key, o, true);
        }
    }
    Server {
        name: name.to_string(),
        statistics: trial.statistics(&format!("{seed:016x}"), "6.18", 1.0, lost),
    }
}

#[test]
fn a_server_whose_records_were_lost_is_left_out_and_named() {
    let whole = server("a", 1, 4000, |_, _| true, 0);
    // One record of three of the second arm is lost.
    let broken = server("b", 2, 4000, |o, key| o.arm == 0 || key % 3 > 0, 650);
    let p = pool(&[whole.clone(), broken.clone()]).expect("one plan");
    assert_eq!((p.servers[0].balanced, p.servers[1].balanced), (true, false));
    let notes = p.notes.join("\n");
    assert!(notes.contains("b: its arms have not received their shares, so it is left out"), "{notes}");
    assert!(notes.contains("b: 650 records were lost"), "{notes}");
    let alone = pool(&[whole]).expect("one");
    assert_eq!(p.comparisons[0].effect, alone.comparisons[0].effect);
    // Nothing is left to compare.
    let nothing = pool(&[broken]).expect("one");
    assert!(nothing.verdict.starts_with("invalid: on no server"), "{}", nothing.verdict);
    assert!(nothing.comparisons.iter().all(|c| c.effect.is_none()) && nothing.leaders == TWO_NAMES);
}

/// A server ended the faster arm, so that its connections there are those of another time.
#[test]
fn an_arm_that_a_server_ended_takes_part_in_no_comparison() {
    let whole = completing("a", 1, 4000, (0.6, false), |_, _| true);
    let mut ended = completing("b", 2, 4000, (0.6, false), |_, _| true);
    let both = pool(&[whole.clone(), ended.clone()]).expect("one plan");
    assert_eq!(both.leaders, ["ours"], "{}", both.verdict);
    ended.statistics.ended = vec!["ours".to_string()];
    let p = pool(&[whole, ended]).expect("one plan");
    assert_eq!((p.leaders, p.comparisons.len()), (vec!["cubic".to_string()], 0), "{}", p.verdict);
    assert_eq!(p.verdict, "only cubic is left");
    assert!(p.notes.join("\n").contains("ours: ended on b"), "{:?}", p.notes);
}

/// Times are ratios within a server, so one whose clock runs fast changes nothing.
#[test]
fn a_clock_that_runs_fast_on_one_server_changes_no_effect() {
    let of = |scale: f64| {
        let mut kinds = kinds(Truth { time: 0.8, retrans: 1.0 });
        kinds[1].scale *= scale;
        let mut last = None;
        fleet(7, kinds, false, &[], |p| -> Option<()> {
            last = p.comparisons[0].effect;
            None
        });
        last.expect("enough units")
    };
    let (right, fast) = (of(1.0), of(1.5));
    assert!(
        (right.estimate - fast.estimate).abs() < 1e-9 && (right.low - fast.low).abs() < 1e-9,
        "{right:?} {fast:?}"
    );
}

#[test]
fn folders_that_do_not_belong_together_are_refused() {
    let a = server("a", 1, 100, |_, _| true, 0);
    let mut b = server("b", 2, 100, |_, _| true, 0);
    b.statistics.plan.arms[1].share_millionths = 250_000;
    let e = pool(&[a.clone(), b]).expect_err("another plan").to_string();
    assert!(e.contains("b: arms: found cubic:50% ours:25%, expected cubic:50% ours:50% as in a"), "{e}");
    let mut again = a.clone();
    again.name = "copy-of-a".to_string();
    let e = pool(&[a.clone(), again]).expect_err("twice").to_string();
    assert!(e.contains("a and copy-of-a hold the same trial"), "{e}");
    assert!(pool(&[]).is_err());

    let text = serde_json::to_string(&a.statistics).expect("plain data");
    assert_eq!(Statistics::parse(&text).expect("its own form"), a.statistics);
    let other = text.replacen("\"version\":2", "\"version\":3", 1);
    assert!(matches!(Statistics::parse(&other), Err(StatisticsError::Version(3))));
    let e = Statistics::parse(&text[..text.len() / 2]).expect_err("truncated").to_string();
    assert!(e.contains("line 1 column"), "{e}");
    let e =
        Statistics::parse(&text.replace("\"units\":[", "\"units\":[1,")).expect_err("too many").to_string();
    assert!(e.contains("units: found 3 numbers, expected 2"), "{e}");
}

/// On one server no connection of an arm completes: it is not better, however fast it is elsewhere.
#[test]
fn an_arm_that_never_completes_on_a_server_is_worse_than_any_time() {
    let of = |name: &str, seed: u64, completes: bool| {
        let plan = plan(&TWO, seed);
        let mut r = Stream::named(seed, name);
        let mut trial = Trial::new(plan.clone(), Measure::TimeLast, Stratify::default(), Vec::new(), false);
        let truth = Truth { time: 0.3, retrans: 1.0 };
        for key in 0..1000 {
            let mut o = outcome(&mut r, &plan, key, kinds(truth)[0]);
            o.last_s = o.last_s.filter(|_| completes || o.arm == 0);
            trial.put(key, o, true);
        }
        let statistics = trial.statistics(&format!("{seed:016x}"), "6.18", 1.0, 0);
        Server { name: name.to_string(), statistics }
    };
    let p = pool(&[of("a", 1, true), of("b", 2, true)]).expect("one plan");
    assert_eq!(p.leaders, ["ours"], "{}", p.verdict);
    let p = pool(&[of("a", 1, true), of("b", 2, false)]).expect("one plan");
    assert!(!p.leaders.contains(&"ours".to_string()), "{}", p.verdict);
    let notes = p.notes.join("\n");
    assert!(notes.contains("b: no unit of ours has a time-last, and "), "{notes}");
}

/// The statistics of a server whose connections have a time to the last byte if `completes` says so.
fn completing(
    name: &str,
    seed: u64,
    n: u64,
    (factor, shared): (f64, bool),
    completes: impl Fn(&Outcome, u64) -> bool,
) -> Server {
    let plan = plan(&TWO, seed);
    let mut r = Stream::named(seed, name);
    let mut trial = Trial::new(plan.clone(), Measure::TimeLast, Stratify::default(), Vec::new(), shared);
    for key in 0..n {
        let unit = if shared { key / 4 } else { key };
        let mut o = outcome(&mut r, &plan, unit, kinds(Truth { time: factor, retrans: 1.0 })[0]);
        o.last_s = o.last_s.filter(|_| completes(&o, key));
        trial.put(key, o, true);
    }
    let statistics = trial.statistics(&format!("{seed:016x}"), "6.18", 1.0, 0);
    Server { name: name.to_string(), statistics }
}

/// A server's file as version 1 had it.
fn version_1(mut s: Server) -> Server {
    s.statistics.version = 1;
    s.statistics.strata.iter_mut().for_each(|s| s.lacking.clear());
    s
}

#[test]
fn an_arm_that_lacks_values_more_often_is_not_better_by_those_that_it_has() {
    for shared in [false, true] {
        let whole = completing("a", 1, 8000, (0.6, shared), |_, _| true);
        let some = completing("b", 2, 8000, (0.6, shared), |o, key| o.arm == 0 || key % 4 > 0);
        let p = pool(std::slice::from_ref(&whole)).expect("one");
        assert_eq!(p.leaders, ["ours"], "{}", p.verdict);
        let p = pool(&[whole.clone(), some.clone()]).expect("one plan");
        assert_eq!((p.leaders.len(), p.comparisons[0].effect), (2, None), "{}", p.verdict);
        assert!(
            p.verdict.starts_with("not decided") && p.verdict.contains("ours lacks a time-last more often")
        );
        let (first, second) = (&p.comparisons[0].servers[0], &p.comparisons[0].servers[1]);
        assert!(
            first.effect.is_some() && second.effect.is_none() && p.comparisons[0].heterogeneity.is_none()
        );
        assert_eq!((p.servers[0].without_value[1], p.servers[1].without_value[0]), (Some(0), Some(0)));
        let lost = p.servers[1].without_value[1].expect("known");
        assert!((850..1150).contains(&lost) && p.arms[1].without_value == lost, "{lost}");
        let notes = p.notes.join("\n");
        assert!(notes.contains(&format!("b: {lost} of ")), "{notes}");
        if !shared {
            let old = pool(&[whole, version_1(some)]).expect("one plan");
            assert_eq!((&old.verdict, &old.notes, &old.servers), (&p.verdict, &p.notes, &p.servers));
        }
    }
}

#[test]
fn an_arm_that_lacks_values_more_often_may_be_shown_to_be_worse() {
    let server = completing("a", 1, 4000, (1.8, false), |o, key| o.arm == 0 || key % 4 > 0);
    let p = pool(&[server]).expect("one");
    assert_eq!(p.leaders, ["cubic"], "{}", p.verdict);
    assert!(p.comparisons[0].effect.is_some_and(|e| e.is_more()));
}

#[test]
fn a_server_where_no_arm_has_a_value_is_named() {
    let whole = completing("a", 1, 2000, (0.6, false), |_, _| true);
    let none = completing("b", 2, 2000, (0.6, false), |_, _| false);
    for none in [none.clone(), version_1(none)] {
        let p = pool(&[whole.clone(), none]).expect("one plan");
        assert_eq!(p.leaders, ["ours"], "{}", p.verdict);
        let notes = p.notes.join("\n");
        assert!(notes.contains("b: none of its 2000 units has a time-last"), "{notes}");
        assert_eq!(p.servers[1].without_value.iter().flatten().sum::<u64>(), 2000);
    }
}

#[test]
fn values_that_both_arms_lack_as_often_change_no_verdict() {
    let server = completing("a", 1, 8000, (0.6, false), |_, key| key % 4 > 0);
    let p = pool(&[server]).expect("one");
    assert_eq!((p.leaders, p.arms[0].without_value > 0), (vec!["ours".to_string()], true), "{}", p.verdict);
}

/// The same holds of one trial as it runs.
#[test]
fn one_trial_says_no_more_than_the_pool() {
    let plan = plan(&TWO, 5);
    let mut r = Stream::named(5, "one");
    let mut trial = Trial::new(
        plan.clone(),
        Measure::TimeLast,
        Stratify::parse("rtt").expect("a word"),
        Vec::new(),
        false,
    );
    for key in 0..4000 {
        let mut o = outcome(&mut r, &plan, key, kinds(Truth { time: 0.6, retrans: 1.0 })[0]);
        o.last_s = o.last_s.filter(|_| o.arm == 0 || key % 4 > 0);
        trial.put(key, o, true);
    }
    let a = trial.analyse();
    assert!(
        a.verdict.starts_with("not decided") && a.verdict.contains("ours lacks a time-last more often"),
        "{}",
        a.verdict
    );
    assert!(a.leaders.len() == 2 && a.arms[1].without_value > 400 && a.arms[0].without_value == 0);
    let main: Vec<_> = a.comparisons.iter().filter(|c| c.measure == Measure::TimeLast).collect();
    assert!(main.len() > 4 && main.iter().all(|c| c.effect.is_none_or(|e| e.is_more())), "{main:?}");
}
