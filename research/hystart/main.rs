//! Searches for a HyStart that does not leave early, by the rules of `protocol.md`:
//! `cargo run --release -p slowstart-research --bin hystart -- search|choice|RESULT_SEED STARTUP..`.
//! Prints a table: for each startup and population the difference to `hystart`, and the shares that pay.

use anyhow::{Context, Result};
use slowstart_league::game::{GameRow, play};
use slowstart_league::population::{self, Case, Load};
use slowstart_sim::random::{self, Stream};
use slowstart_study::decision::MARGIN;
use slowstart_study::harm;
use slowstart_study::measures::{HARM_MARGIN, LOSS_MARGIN};
use slowstart_study::price::Price;
use slowstart_study::run::in_order;
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::simulator::Simulator;
use slowstart_study::stats::median;
use slowstart_study::summary::label_of_contender;
use std::collections::BTreeMap;

const SEARCH: &[&str] =
    &["geo", "leo", "5g", "lte", "cable", "dsl", "fiber", "wifi-weak", "policed", "shallow", "random"];
/// Two routes of 80 and 110 ms.
const ROUTES: &str = "rate=50Mbit rtt=80ms queue=1bdp second_route=20%,30ms";
const CHOICE: &[&str] = &[
    "geo",
    "leo",
    "5g",
    "geo-recorded",
    "wifi-strong",
    "transatlantic",
    "cable-boost",
    ROUTES,
    "thin-acks",
    "bursty",
    "limited",
    "arriving",
    "managed",
    "starters",
];
/// Paths on which a CUBIC flow is there first, and about how long a transfer takes there, in seconds.
const SHARED: &[(&str, f64)] = &[
    ("rate=50Mbit rtt=80ms queue=1bdp", 2.5),
    ("leo", 2.0),
    ("cable", 0.7),
    ("rate=20Mbit rtt=40ms queue=2bdp", 4.5),
];
const BASELINE: &str = "hystart";

/// The cases of a population of the league, or of a path by its name.
fn cases(name: &str, seed: u64, count: u32) -> Vec<Case> {
    // The built-in path of this name is meant, not the population.
    if let Some(p) = population::all().iter().find(|p| p.name == name && name != "policed") {
        return p.cases(seed, count);
    }
    let own = Stream::named(seed, &format!("hystart.{name}")).any();
    let case = |number| Case {
        drawn_from: seed,
        population: name.into(),
        number,
        path: name.into(),
        profile: "linux-6.18",
        set: BTreeMap::new(),
        seed: random::at(own, u64::from(number)) >> 11,
        load: Load::Alone,
    };
    (0..count).map(case).collect()
}

/// The time to 10 MB; that observed if it never had them, which is a lower bound.
fn time(row: &GameRow) -> f64 {
    row.time_s.get("10000000").copied().flatten().unwrap_or(row.given_s)
}

/// Cases that pay, and that spare; whether that counts, and the most that a case pays.
fn share(price: &Price) -> String {
    let mark = if price.outweighs() { "!" } else { "" };
    let most = if price.pays > 0 { format!(", most {:.1}", price.most) } else { String::new() };
    format!("{}-{}{mark}{most}", price.pays, price.spares)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [stage, startups @ ..] = &words[..] else {
        anyhow::bail!("expected search, choice or a seed, and startups")
    };
    let all: Vec<&str> = SEARCH.iter().chain(&CHOICE[3..]).copied().collect();
    let (seed, count, names) = match stage.as_str() {
        "search" => (1, 10, SEARCH),
        "choice" => (2, 10, CHOICE),
        seed => (seed.parse().context("a seed")?, 30, &all[..]),
    };
    println!(
        "times in percent of {BASELINE}, median; pays-spares of {count} and the most that one pays: time (%), lost (packets), queue (least RTTs); ! a price that counts\n"
    );
    println!("| population | startup | 10 MB | time | lost | queue | early |\n|---|---|---|---|---|---|---|");
    for name in names {
        let cases = cases(name, seed, count);
        let jobs: Vec<(&str, &Case)> = std::iter::once(BASELINE)
            .chain(startups.iter().map(String::as_str))
            .flat_map(|s| cases.iter().map(move |c| (s, c)))
            .collect();
        let mut rows: Vec<GameRow> = Vec::new();
        in_order(
            &jobs,
            |(s, c)| play(&Simulator, s, None, c, &|| false),
            |row| row.map(|row| rows.push(row)),
        )?;
        let mut of = rows.chunks(count as usize);
        let base = of.next().context("the baseline")?;
        for (startup, rows) in startups.iter().zip(of) {
            let pairs = || rows.iter().zip(base);
            let times: Vec<f64> = pairs().map(|(r, b)| 100.0 * (time(r) / time(b) - 1.0)).collect();
            let price = |margin, cost: &dyn Fn(&GameRow) -> Option<f64>| {
                Price::of(pairs().map(|(r, b)| Some(cost(r)? - cost(b)?)), margin)
            };
            let lost = price(LOSS_MARGIN, &|r| Some(r.startup_lost_packets? as f64));
            let queue = price(1.0, &|r| Some(r.startup_queue_delay_s? / r.base_rtt_s));
            let slower = Price::of(times.iter().map(|t| Some(*t)), 100.0 * MARGIN);
            let early =
                rows.iter().filter(|r| r.by_rule && r.class == slowstart_study::record::Class::Early).count();
            let mid = median(&times).map_or(f64::NAN, |m| m.mid);
            println!(
                "| {name} | `{startup}` | {mid:+.1} | {} | {} | {} | {early} |",
                share(&slower),
                share(&lost),
                share(&queue)
            );
        }
    }
    if stage == "search" {
        return Ok(());
    }
    println!("\n| a CUBIC flow on | startup | points | harm |\n|---|---|---|---|");
    for (path, alone) in SHARED {
        let list = std::iter::once(BASELINE.to_string()).chain(startups.iter().cloned()).collect();
        let text = StudyText {
            path: (*path).into(),
            startups: list,
            runs: Some(10),
            seed: Some(seed),
            ..StudyText::default()
        };
        let study = Study::check(&text, None)?;
        let got = harm::measure(&study, *alone);
        for (n, startup) in startups.iter().enumerate() {
            let one = |contender: usize, run| {
                got.get(&(label_of_contender(&study.contenders[contender]), run)).copied()
            };
            let runs = 0..study.runs;
            let less: Vec<f64> = runs.filter_map(|r| Some(one(0, r)? - one(n + 1, r)?)).collect();
            let price = Price::of(less.iter().map(|l| Some(*l)), HARM_MARGIN);
            let mid = median(&less).map_or(f64::NAN, |m| m.mid);
            println!("| {path} | `{startup}` | {:+.1} | {} |", -mid, share(&price));
        }
    }
    Ok(())
}
