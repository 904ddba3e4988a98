//! The method on populations whose truth is known. Each trial is looked at again and again; what is counted
//! is whether any look went wrong. `SLOWSTART_LONG=1`: 4,000 trials each, of more connections.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

mod common;

use common::{NONE, Truth, normal, plan, uniform};
use rayon::prelude::*;
use slowstart_stats::random::{self, Stream};
use slowstart_stats::sequence::{Power, needed};
use slowstart_trial::estimate::Effect;
use slowstart_trial::{Exit, Guard, Measure, Outcome, Plan, Stratify, Trial};
use std::fmt::Write as _;

fn long() -> bool {
    std::env::var_os("SLOWSTART_LONG").is_some()
}

fn trials() -> u64 {
    if long() { 4000 } else { 400 }
}

fn connections() -> u64 {
    if long() { 6000 } else { 1500 }
}

/// A server's connections: RTTs of four regions, sizes with a heavy tail (Pareto, 1.2, up to 100 MB), times
/// that depend on both and vary by a factor of 1.8 (one standard deviation) beyond that. Four in five
/// connections resend nothing. With `clients`, each client has properties of its own that all its connections
/// share.
fn population(r: &mut Stream, plan: &Plan, n: u64, clients: Option<u64>, truth: &[Truth]) -> Vec<Outcome> {
    let seed = r.any();
    let mut next = |key: u64| {
        let unit = clients.map_or(key, |c| r.below(c));
        let mut of_client = Stream::named(random::at(seed, unit), "client");
        let rtt = [0.012, 0.04, 0.12, 0.6][of_client.below(4) as usize] * (1.0 + uniform(&mut of_client));
        let common = if clients.is_some() { normal(&mut of_client) } else { 0.0 };
        let arm = plan.assign(unit)?;
        let size = (20_000.0 * libm::pow(uniform(r), -1.0 / 1.2)).min(1e8);
        let t = truth[arm];
        let noise = libm::exp(0.6 * normal(r) + 0.4 * common);
        let time = t.time * noise * rtt * libm::log2(2.0 + size / 14_480.0);
        let sent = size as u64;
        let share = if r.chance(200_000) { 0.05 * uniform(r) * t.retrans } else { 0.0 };
        Some(Outcome {
            arm,
            unit,
            prefix: unit,
            handshake_rtt_s: Some(rtt),
            milestones_s: [(size > 1e5).then_some(time * 0.7), (size > 1e6).then_some(time * 0.9), None],
            last_s: Some(time),
            delivered_bytes: sent,
            sent_bytes: sent,
            retransmitted_bytes: (size * share) as u64,
            rtt_mean: Some(1.0 + uniform(r)),
            rtt_peak: Some(2.0 + uniform(r)),
            app_limited: Some(0.1),
            exit: Some(Exit { reason: "loss", cwnd: 40, time_s: time / 2.0 }),
        })
    };
    (0..n).filter_map(&mut next).collect()
}

/// Runs trials with different seeds, and calls `look` after each 50 connections, with what it has returned
/// before. Returns the number of trials for which it returned something.
fn count<T: Send>(
    arms: &[&str],
    truth: &[Truth],
    clients: Option<u64>,
    stratify: Stratify,
    guards: &[Guard],
    look: impl Fn(&mut Trial, usize) -> Option<T> + Sync,
) -> Vec<T> {
    count_of(connections(), arms, truth, clients, stratify, guards, look)
}

/// As [`count`], with trials of `n` connections.
fn count_of<T: Send>(
    n: u64,
    arms: &[&str],
    truth: &[Truth],
    clients: Option<u64>,
    stratify: Stratify,
    guards: &[Guard],
    look: impl Fn(&mut Trial, usize) -> Option<T> + Sync,
) -> Vec<T> {
    let one = |seed: u64| {
        let plan = plan(arms, seed);
        let mut r = Stream::named(seed, "population");
        let all = population(&mut r, &plan, n, clients, truth);
        let mut trial = Trial::new(plan, Measure::TimeLast, stratify, guards.to_vec(), clients.is_some());
        all.into_iter().enumerate().find_map(|(i, o)| {
            trial.put(i as u64, o, true);
            ((i + 1) % 50 == 0).then(|| look(&mut trial, i + 1)).flatten()
        })
    };
    (0..trials()).into_par_iter().filter_map(one).collect()
}

const THREE: [&str; 3] = ["cubic:50%", "search:25%", "ours:25%"];
const BY_RTT: Stratify = Stratify { rtt: true, prefix: false };

/// The most errors that 5 % of the trials are.
fn five_percent() -> usize {
    (trials() / 20) as usize
}

fn any_difference(trial: &mut Trial, _: usize) -> Option<()> {
    let differs = |a, b| {
        let e = trial.compare(Measure::TimeLast, a, b)?;
        (e.is_less() || e.is_more()).then_some(())
    };
    differs(1, 0).or_else(|| differs(2, 0)).or_else(|| differs(2, 1))
}

#[test]
fn a_a_trials_find_a_difference_in_no_more_than_the_stated_share() {
    let found = count(&THREE, &[NONE; 3], None, Stratify::default(), &[], any_difference).len();
    println!("measured: {found} of {} A/A trials found a difference", trials());
    assert!(found <= five_percent(), "{found}");
    let found = count(&THREE, &[NONE; 3], None, BY_RTT, &[], any_difference).len();
    println!("measured: {found} of {} A/A trials with strata found a difference", trials());
    assert!(found <= five_percent(), "{found}");
}

/// As above, with the share of bytes sent again, which is zero for four connections of five.
#[test]
fn a_a_trials_find_no_difference_in_retransmissions_either() {
    let look = |trial: &mut Trial, _: usize| {
        let e = trial.compare(Measure::Retrans, 1, 0)?;
        (e.is_less() || e.is_more()).then_some(())
    };
    let found = count(&["a:50%", "b:50%"], &[NONE; 2], None, Stratify::default(), &[], look).len();
    println!("measured: {found} of {} A/A trials found a difference in retrans", trials());
    assert!(found <= five_percent(), "{found}");
}

/// 300 clients whose connections are alike: they are assigned together and counted together.
#[test]
fn connections_of_one_client_are_not_taken_as_independent() {
    let found = count(&THREE, &[NONE; 3], Some(300), Stratify::default(), &[], any_difference).len();
    println!("measured: {found} of {} A/A trials of 300 clients found a difference", trials());
    assert!(found <= five_percent(), "{found}");
}

#[test]
fn a_known_effect_is_covered_at_every_look() {
    let truth = [NONE, Truth { time: 0.8, retrans: 1.0 }, Truth { time: 1.1, retrans: 1.0 }];
    let misses = |arm: usize, effect: f64| {
        move |trial: &mut Trial, _: usize| {
            let e = trial.compare(Measure::TimeLast, arm, 0)?;
            (effect < e.low || effect > e.high).then_some(())
        }
    };
    for (arm, effect) in [(1, -0.2), (2, 0.1)] {
        for stratify in [Stratify::default(), BY_RTT] {
            let missed = count(&THREE, &truth, None, stratify, &[], misses(arm, effect)).len();
            println!("measured: {missed} of {} trials missed an effect of {effect} at some look", trials());
            assert!(missed <= five_percent(), "{missed}");
        }
    }
}

/// A trial without any effect, from which numbers of connections are stated.
fn pilot(guards: &[Guard]) -> Trial {
    let plan = plan(&["a:50%", "b:50%"], 99);
    let all = population(&mut Stream::named(99, "pilot"), &plan, 20_000, None, &[NONE; 2]);
    let mut trial = Trial::new(plan, Measure::TimeLast, Stratify::default(), guards.to_vec(), false);
    for (i, o) in all.into_iter().enumerate() {
        trial.put(i as u64, o, true);
    }
    trial
}

#[test]
fn an_effect_is_found_after_the_number_of_connections_that_was_stated() {
    let pilot = pilot(&[]).compare(Measure::TimeLast, 1, 0).expect("enough connections");
    let needed = needed(libm::log(0.8), pilot.deviation, 0.05, Power::Eighty).expect("few");
    let look = |trial: &mut Trial, _: usize| {
        trial.compare(Measure::TimeLast, 1, 0).filter(Effect::is_less).map(|_| ())
    };
    let truth = [NONE, Truth { time: 0.8, retrans: 1.0 }];
    // The last look is at the first multiple of 50 that is not less.
    let n = needed.next_multiple_of(50);
    let found = count_of(n, &["a:50%", "b:50%"], &truth, None, Stratify::default(), &[], look).len();
    println!(
        "measured: {found} of {} trials found an effect of 20 % in the stated {needed} connections",
        trials()
    );
    assert!(found as u64 >= trials() * 4 / 5, "{found}");
}

#[test]
fn a_harm_is_stopped_within_the_stated_delay_and_what_is_permitted_is_not() {
    let guards = [Guard::parse("retrans=+20%").expect("a guard")];
    let stops = |factor: f64| {
        let truth = [NONE, Truth { time: 1.0, retrans: factor }];
        let look = |trial: &mut Trial, n: usize| (!trial.end_harmful().is_empty()).then_some(n as u64);
        let mut stopped = count(&["a:50%", "b:50%"], &truth, None, Stratify::default(), &guards, look);
        stopped.sort_unstable();
        stopped
    };
    for permitted in [1.0, 1.2] {
        let stopped = stops(permitted).len();
        println!(
            "measured: {stopped} of {} arms stopped with {permitted} times the retransmissions",
            trials()
        );
        assert!(stopped <= five_percent(), "{stopped}");
    }
    let stated = pilot(&guards).units_until_ended(&guards[0], 1, 2.0).expect("enough connections");
    let stopped = stops(3.0);
    let in_time = stopped.iter().filter(|n| **n <= stated + 50).count() as u64;
    println!(
        "measured: with 3 times the retransmissions {in_time} of {} arms stopped in the stated {stated} connections; median {}",
        trials(),
        stopped[stopped.len() / 2]
    );
    assert!(stated + 50 <= connections() && in_time >= trials() * 19 / 20, "{in_time}");
}

#[test]
fn an_arm_whose_records_are_lost_is_noticed() {
    let one = |seed: u64| {
        let plan = plan(&THREE, seed);
        let mut r = Stream::named(seed, "population");
        let all = population(&mut r, &plan, 4000, None, &[NONE; 3]);
        let mut trial = Trial::new(plan, Measure::TimeLast, Stratify::default(), Vec::new(), false);
        // One record of four of the third arm is lost.
        for (i, o) in all.into_iter().enumerate().filter(|(i, o)| o.arm != 2 || i % 4 > 0) {
            trial.put(i as u64, o, true);
        }
        !trial.is_balanced()
    };
    let noticed = (0..100_u64).into_par_iter().filter(|seed| one(*seed)).count();
    println!("measured: {noticed} of 100 trials with lost records were noticed");
    assert!(noticed >= 90);
}

/// The picture of docs/guide/trial.md: what a trial reports as its connections come, of an arm that takes 20
/// % less time than the control and one that takes as long. `SLOWSTART_BLESS=1` draws it anew
/// (`make pictures`).
#[test]
fn the_picture_shows_a_trial() {
    const AREA: (f64, f64, f64, f64) = (70.0, 62.0, 900.0, 330.0);
    let plan = plan(&THREE, 2026);
    let mut r = Stream::named(2026, "population");
    let truth = [NONE, Truth { time: 0.8, ..NONE }, NONE];
    let all = population(&mut r, &plan, 6000, None, &truth);
    let mut trial = Trial::new(plan, Measure::TimeLast, BY_RTT, Vec::new(), false);
    let x = |n: usize| AREA.0 + (AREA.2 - AREA.0) * n as f64 / 6000.0;
    let y = |share: f64| AREA.1 + (AREA.3 - AREA.1) * (0.4 - share.clamp(-0.4, 0.4)) / 0.8;
    let mut bands = [(Vec::new(), Vec::new(), Vec::new()), (Vec::new(), Vec::new(), Vec::new())];
    let mut shown = None;
    for (i, o) in all.into_iter().enumerate() {
        trial.put(i as u64, o, true);
        let n = i + 1;
        if !n.is_multiple_of(100) {
            continue;
        }
        for (band, arm) in bands.iter_mut().zip([1, 2]) {
            let Some(e) = trial.compare(Measure::TimeLast, arm, 0) else { continue };
            let point = |share: f64| format!("{:.1} {:.1}", x(n), y(share));
            band.0.push(point(e.low));
            band.1.push(point(e.high));
            band.2.push(point(e.estimate));
            if arm == 1 && e.is_less() && shown.is_none() {
                shown = Some((n, e.estimate));
            }
        }
    }
    let mut body = String::new();
    let mut text = |x: f64, y: f64, class: &str, anchor: &str, words: &str| {
        writeln!(
            body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
        )
        .expect("a String takes everything");
    };
    text(16.0, 30.0, "t", "start", "What a trial reports while it runs");
    for percent in [-40, -20, 0, 20, 40] {
        text(
            AREA.0 - 8.0,
            y(f64::from(percent) / 100.0) + 4.5,
            "",
            "end",
            &format!("{percent:+} %").replace("+0", "0"),
        );
    }
    for n in [0, 1000, 2000, 3000, 4000, 5000, 6000] {
        text(x(n), AREA.3 + 18.0, "", "middle", &n.to_string());
    }
    text(f64::midpoint(AREA.0, AREA.2), AREA.3 + 38.0, "", "middle", "connections in the trial");
    text(AREA.2, y(-0.2) + 20.0, "h c1 halo", "end", "search: truly 20 % less time than cubic");
    text(AREA.2, y(0.0) - 8.0, "h c0 halo", "end", "ours: truly none");
    for percent in [-40, -20, 0, 20, 40] {
        let (class, at) = (if percent == 0 { "a" } else { "g" }, y(f64::from(percent) / 100.0));
        writeln!(
            body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\"/>",
            AREA.0, AREA.2
        )
        .expect("a String takes everything");
    }
    for (i, (low, high, middle)) in bands.iter().enumerate() {
        let back: Vec<&str> = low.iter().rev().map(String::as_str).collect();
        let k = 1 - i;
        writeln!(body, "<path class=\"c{k} band\" d=\"M{}L{}z\"/>", high.join("L"), back.join("L"))
            .expect("a String takes everything");
        writeln!(body, "<path class=\"l l{k}\" d=\"M{}\"/>", middle.join("L"))
            .expect("a String takes everything");
    }
    let (n, at) = shown.expect("the effect is found");
    writeln!(body, "<circle class=\"b\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"/>", x(n), y(at))
        .expect("a String takes everything");
    writeln!(body, "<text class=\"h halo\" x=\"{:.1}\" y=\"{:.1}\">after {n} connections it is shown: you may stop</text>",
        x(n) + 4.0,
        y(-0.36)).expect("a String takes everything");
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 920 385\" role=\"img\" aria-label=\"Effects on the time to the last byte \
         and their 95 percent intervals, over the connections of a trial: the interval of an arm that takes 20 percent less time \
         narrows until it lies below zero, that of an arm without effect keeps containing zero.\"><style>text{{font:13px system-ui,'DejaVu \
         Sans',sans-serif;fill:#444}}.t{{font-size:20px;font-weight:700;fill:#111}}.h{{font-weight:700;fill:#111}}.g{{stroke:#000;\
         stroke-opacity:.1}}.a{{stroke:#333}}.b{{fill:#fff;stroke:#333}}.halo{{paint-order:stroke;stroke:#fff;stroke-width:4px}}\
         .band{{fill-opacity:.18}}.c0{{fill:#555}}.c1{{fill:#008a63}}.l{{fill:none;stroke-width:2.5}}.l0{{stroke:#555}}\
         .l1{{stroke:#008a63}}</style><rect width=\"920\" height=\"385\" fill=\"#fff\"/>\n{body}</svg>\n"
    );
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/trial.svg");
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(&file, &svg).expect("docs/guide/trial.svg");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == svg, "docs/guide/trial.svg is not what is drawn from this version: make pictures");
}
