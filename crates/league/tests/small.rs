//! A small league: two cases of each population, four startups. Its figures are in `data/small.txt`, for a
//! reviewer to read when a change of results is meant:
//! `SLOWSTART_BLESS=1 cargo test -p slowstart-league --test small`.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use rayon::prelude::*;
use slowstart_league::game::{self, GameRow};
use slowstart_league::population;
use slowstart_league::rank::{self, Terms};
use slowstart_league::{score, sheet};
use slowstart_study::record::Class;
use slowstart_study::simulator::Simulator;
use std::sync::OnceLock;

const STARTUPS: [&str; 4] = ["standard", "hystart++", "search", "rate-bound"];
const SEED: u64 = 20_260;
const CASES: u32 = 2;

/// The rows, by startup and then by case.
fn rows() -> &'static [GameRow] {
    static ROWS: OnceLock<Vec<GameRow>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let cases: Vec<_> = population::all().iter().flat_map(|p| p.cases(SEED, CASES)).collect();
        let games: Vec<_> = STARTUPS.iter().flat_map(|s| cases.iter().map(move |c| (s, c))).collect();
        let play =
            |(s, c): &(&&str, &_)| game::play(&Simulator, s, None, c, &|| false).expect("the startup exists");
        games.par_iter().with_max_len(1).map(play).collect()
    })
}

fn tables() -> String {
    let mut text = String::new();
    let names = score::populations(rows());
    for scope in std::iter::once(None).chain(names.into_iter().map(Some)) {
        let scores = score::scores(rows(), scope);
        text = format!("{text}## {}\n\n", scope.unwrap_or("all populations"));
        let terms = Terms { baseline: "standard", margin: 0.03 };
        for s in [rank::sheet(rows(), scope, &terms), sheet::speed(&scores), sheet::harm(&scores)] {
            text = format!("{text}{}:\n\n{}\n", s.title, sheet::markdown(&s));
        }
    }
    text
}

#[test]
fn the_small_league_has_its_golden_figures() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.txt");
    let got = tables();
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(file, &got).expect("the folder is there");
    }
    let want = std::fs::read_to_string(file).expect("the golden tables");
    for (got, want) in got.lines().zip(want.lines()) {
        assert_eq!(got, want, "if this is meant: SLOWSTART_BLESS=1");
    }
    assert_eq!(got.lines().count(), want.lines().count());
}

#[test]
fn nobody_beats_the_oracle() {
    for row in rows() {
        for bytes in [100_000, 1_000_000, 10_000_000] {
            let (regret, _) = row.regret(bytes).expect("a milestone");
            assert!(regret >= 1.0, "{} on {}: {regret} to {bytes}", row.startup, row.path);
        }
    }
}

#[test]
fn every_startup_meets_the_same_path() {
    let of = |name: &'static str| rows().iter().filter(move |r| r.startup == name);
    for other in &STARTUPS[1..] {
        assert_eq!(of("standard").count(), of(other).count());
        for (a, b) in of("standard").zip(of(other)) {
            assert_eq!(
                (a.seed, &a.path, a.bdp_bytes, &a.oracle_s),
                (b.seed, &b.path, b.bdp_bytes, &b.oracle_s)
            );
        }
    }
}

#[test]
fn each_population_measures_what_it_is_for() {
    for row in rows() {
        let beside = row.population.starts_with("beside-");
        assert_eq!(row.others.is_some(), beside, "{}", row.population);
        let dip = row.others.as_ref().is_some_and(|o| o.goodput_dip.is_some());
        assert_eq!(dip, beside && row.population != "beside-web", "{}", row.population);
        assert_eq!(row.fairness.is_some(), row.population == "starters");
        assert!(row.startup_queue_delay_s > Some(0.0) && row.bdp_bytes > 0, "{}", row.population);
        // Standard slow start has no rule.
        assert!(row.startup != "standard" || row.class != Class::LinkFull);
    }
}
