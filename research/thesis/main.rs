//! Tables 5.1 to 5.3 of the SEARCH thesis beside the built-in paths:
//! `cargo run --release -p slowstart-research --bin thesis [-- NAME=PATH ..]`, where `PATH` takes the place of
//! the built-in path of that name.
//!
//! As in the thesis, capacity and loss are those of slow start alone (CUBIC without HyStart), and SEARCH and
//! HyStart are judged by them; here each of the three runs over the same drawn path. Servers do not pace.

use slowstart::step::Exit;
use slowstart_sim::engine::Sampling;
use slowstart_study::measured::{Ended, class};
use slowstart_study::record::{Class, Row};
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::stats;

/// A network of the thesis: mean and standard deviation of capacity, loss and exit (Tables 5.1 and 5.2), and
/// the shares of SEARCH's and HyStart's early, choke-point and late exits in per cent (Table 5.3).
struct Network {
    name: &'static str,
    duration: &'static str,
    times: [(f64, f64); 3],
    search: [f64; 3],
    hystart: [f64; 3],
}

const NETWORKS: [Network; 5] = [
    Network {
        name: "geo",
        duration: "50s",
        times: [(11.8, 2.6), (22.9, 8.7), (13.7, 1.7)],
        search: [3.9, 93.5, 2.6],
        hystart: [100.0, 0.0, 0.0],
    },
    Network {
        name: "leo",
        duration: "10s",
        times: [(0.4, 0.1), (0.6, 0.1), (0.5, 0.1)],
        search: [3.9, 39.0, 57.1],
        hystart: [100.0, 0.0, 0.0],
    },
    Network {
        name: "lte",
        duration: "15s",
        times: [(0.3, 0.2), (1.9, 1.8), (0.7, 0.6)],
        search: [3.6, 60.0, 36.4],
        hystart: [100.0, 0.0, 0.0],
    },
    Network {
        name: "wifi-strong",
        duration: "3s",
        times: [(0.01, 0.004), (0.77, 0.44), (0.04, 0.02)],
        search: [4.8, 91.0, 4.2],
        hystart: [10.8, 89.2, 0.0],
    },
    Network {
        name: "wifi-weak",
        duration: "3s",
        times: [(0.02, 0.004), (0.68, 0.37), (0.04, 0.03)],
        search: [1.0, 90.5, 8.5],
        hystart: [4.8, 95.2, 0.0],
    },
];

const RUNS: u32 = 200;

fn rows(study: &Study) -> Vec<Row> {
    study.jobs().into_iter().map(|job| study.run(job, Sampling::Off, false).row).collect()
}

fn mean_sd(values: &[Option<f64>]) -> String {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let n = known.len() as f64;
    let mean = known.iter().sum::<f64>() / n;
    let sd = (known.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let missing = values.len() - known.len();
    let missing = if missing > 0 { format!(", {missing} without") } else { String::new() };
    if mean < 0.1 { format!("{mean:.3} ({sd:.3}{missing})") } else { format!("{mean:.2} ({sd:.2}{missing})") }
}

fn shares(classes: &[Class]) -> String {
    let share = |class| 100.0 * classes.iter().filter(|c| **c == class).count() as f64 / classes.len() as f64;
    format!("{:.1} / {:.1} / {:.1}", share(Class::Early), share(Class::LinkFull), share(Class::Late))
}

/// How an exit is judged by the capacity and the first loss of slow start alone over the same path.
fn judged(own: &Row, alone: &Row, heuristic: bool) -> Class {
    let capacity = if heuristic { alone.capacity_time_by_heuristic_s } else { alone.capacity_time_s };
    let by_congestion = |reason: &str| Exit::named(reason).is_some_and(Exit::by_congestion);
    let ended = own.exit.as_ref().map(|e| Ended { at: e.time_s, by_congestion: by_congestion(&e.reason) });
    class(ended, capacity, alone.first_loss_time_s)
}

fn main() {
    let replaced: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| Network | | Capacity (s) | Loss (s) | Exit of SEARCH (s) | SEARCH: early / choke point / late (%) | HyStart |"
    );
    println!("|---|---|---|---|---|---|---|");
    for network in NETWORKS {
        let own = replaced.iter().find_map(|r| r.strip_prefix(&format!("{}=", network.name)));
        if own.is_none() && !replaced.is_empty() {
            continue;
        }
        let study = |startup: &str| {
            let text = StudyText {
                path: own.unwrap_or(network.name).to_string(),
                startups: vec![startup.to_string()],
                duration: Some(network.duration.to_string()),
                set: [("pacing".to_string(), "off".to_string())].into(),
                runs: Some(RUNS),
                ..StudyText::default()
            };
            rows(&Study::check(&text, None).unwrap_or_else(|e| panic!("{e}")))
        };
        let (alone, search, hystart) = (study("standard"), study("search-2.0"), study("hystart"));
        let [capacity, loss, exit] = network.times.map(|(mean, sd)| format!("{mean} ({sd})"));
        let three = |v: [f64; 3]| format!("{} / {} / {}", v[0], v[1], v[2]);
        println!(
            "| {} | thesis | {capacity} | {loss} | {exit} | {} | {} |",
            network.name,
            three(network.search),
            three(network.hystart)
        );
        let of = |rows: &[Row], what: &dyn Fn(&Row) -> Option<f64>| {
            mean_sd(&rows.iter().map(what).collect::<Vec<_>>())
        };
        let loss = of(&alone, &|r| r.first_loss_time_s);
        let exit = of(&search, &|r| r.exit.as_ref().map(|e| e.time_s));
        for (label, heuristic) in [("ours, by the thesis' heuristic", true), ("ours, by truth", false)] {
            let capacity =
                of(&alone, &|r| if heuristic { r.capacity_time_by_heuristic_s } else { r.capacity_time_s });
            // On WiFi the thesis judged each run by its own throughput.
            let own = heuristic && network.name.starts_with("wifi");
            let judge = |rows: &[Row]| {
                let each = rows.iter().zip(&alone).map(|(r, a)| match r.class_by_heuristic {
                    Some(class) if own => class,
                    _ => judged(r, a, heuristic),
                });
                shares(&each.collect::<Vec<_>>())
            };
            println!(
                "| | {label} | {capacity} | {loss} | {exit} | {} | {} |",
                judge(&search),
                judge(&hystart)
            );
        }
        let retransmitted: Vec<f64> =
            alone.iter().filter_map(|r| r.retransmitted_packets).map(|n| n as f64).collect();
        let goodput: Vec<f64> = alone.iter().map(|r| r.goodput_bps as f64 / 1e6).collect();
        let q = |v: &[f64]| {
            [0.1, 0.5, 0.9].map(|q| format!("{:.0}", stats::quantile(v, q).unwrap_or(f64::NAN))).join(" / ")
        };
        eprintln!(
            "{}: retransmitted {}, goodput {} Mbit/s (10 / 50 / 90 %)",
            network.name,
            q(&retransmitted),
            q(&goodput)
        );
    }
}
