//! When to leave slow start and what to leave with: which matters more? Plays each exit rule with each
//! landing, before each avoidance, over the same cases of all populations of the league. Prints the tables of
//! docs/evidence/landing.md, and writes its picture.
//!
//!     cargo run --release -p slowstart-league --example landing -- SEED CASES docs/evidence/landing.svg

use rayon::prelude::*;
use slowstart_league::game::{self, GameRow};
use slowstart_league::population::{self, Case};
use slowstart_study::engines::EngineError;
use slowstart_study::simulator::Simulator;
use std::fmt::Write as _;

/// Exit rules, each with what must be set where the landing is another than its own.
const RULES: [(&str, &str); 6] = [
    ("hystart", ""),
    ("hystart++", ""),
    ("search", "drain=off,"),
    ("ess", ""),
    ("rate-bound", ""),
    ("hystart-picoquic", ""),
];
/// Windows to leave with.
const LANDINGS: [&str; 5] = ["own", "detected", "0.7", "0.5", "delivered"];
/// What follows: the avoidance, and whether it is told to look for the window detected.
const AFTER: [(&str, bool); 3] = [("cubic", false), ("cubic", true), ("reno", false)];
/// Bytes by whose time a combination is judged.
const BYTES: u64 = 10_000_000;
/// The colour-blind palette of the project's pictures.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// The startup of a rule with a landing.
fn startup((rule, otherwise): (&str, &str), landing: &str, plateau: bool) -> String {
    let told = if plateau { "plateau=on" } else { "" };
    let landed = if landing == "own" { String::new() } else { format!("{otherwise}landing={landing}") };
    let params: Vec<&str> = [landed.as_str(), told].into_iter().filter(|p| !p.is_empty()).collect();
    if params.is_empty() { rule.to_string() } else { format!("{rule}:{}", params.join(",")) }
}

/// A combination: indices into the three lists.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Choice {
    after: usize,
    rule: usize,
    landing: usize,
}

/// What a combination did, over all cases.
struct Played {
    choice: Choice,
    rows: Vec<GameRow>,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
    sum / n
}

impl Played {
    /// The time to [`BYTES`] over that of the oracle, of a case.
    fn regret(&self, case: usize) -> f64 {
        self.rows[case].regret(BYTES).map_or(f64::NAN, |(regret, _)| regret)
    }

    fn mean_regret(&self) -> f64 {
        mean((0..self.rows.len()).map(|c| self.regret(c)))
    }

    fn lost(&self) -> f64 {
        mean(self.rows.iter().filter_map(|r| Some(r.lost? as f64)))
    }

    fn others_lost(&self) -> f64 {
        mean(self.rows.iter().filter_map(|r| Some(r.others.as_ref()?.lost_packets as f64)))
    }
}

fn play(cases: &[Case]) -> Result<Vec<Played>, EngineError> {
    let mut choices = Vec::new();
    for after in 0..AFTER.len() {
        for rule in 0..RULES.len() {
            choices.extend((0..LANDINGS.len()).map(|landing| Choice { after, rule, landing }));
        }
    }
    choices
        .into_iter()
        .map(|choice| {
            let (avoidance, plateau) = AFTER[choice.after];
            let startup = startup(RULES[choice.rule], LANDINGS[choice.landing], plateau);
            let game = |case: &Case| game::play(&Simulator, &startup, Some(avoidance), case, &|| false);
            let rows = cases.par_iter().with_max_len(1).map(game).collect::<Result<Vec<_>, _>>()?;
            Ok(Played { choice, rows })
        })
        .collect()
}

/// The standard deviation that each of three choices brings to the logarithm of the time of a case, by the
/// means over the other two, and what the three alone do not explain; means over the cases. For small numbers
/// a share of the time.
fn effects(played: &[Played], cases: usize) -> [f64; 4] {
    let mut sums = [0.0; 4];
    for case in 0..cases {
        let log = |keep: &dyn Fn(Choice) -> bool| {
            mean(played.iter().filter(|p| keep(p.choice)).map(|p| p.regret(case).ln()))
        };
        let all = log(&|_| true);
        let level = |n: usize, of: fn(Choice) -> usize| -> Vec<f64> {
            (0..n).map(|i| log(&|c| of(c) == i) - all).collect()
        };
        let by = [
            level(RULES.len(), |c| c.rule),
            level(LANDINGS.len(), |c| c.landing),
            level(AFTER.len(), |c| c.after),
        ];
        for (sum, effect) in sums.iter_mut().zip(&by) {
            *sum += mean(effect.iter().map(|e| e * e)).sqrt();
        }
        let rest = played.iter().map(|p| {
            let c = p.choice;
            let alone = by[0][c.rule] + by[1][c.landing] + by[2][c.after];
            (p.regret(case).ln() - all - alone).powi(2)
        });
        sums[3] += mean(rest).sqrt();
    }
    sums.map(|s| s / cases as f64)
}

fn table(played: &[Played], after: usize, title: &str, value: impl Fn(&Played) -> String) {
    println!("{title}\n");
    println!("| rule |{}", LANDINGS.map(|l| format!(" {l} |")).concat());
    println!("|---|{}", "--:|".repeat(LANDINGS.len()));
    for (rule, (name, _)) in RULES.iter().enumerate() {
        let cells = (0..LANDINGS.len()).filter_map(|landing| {
            let choice = Choice { after, rule, landing };
            played.iter().find(|p| p.choice == choice).map(|p| format!(" {} |", value(p)))
        });
        println!("| {name} |{}", cells.collect::<String>());
    }
    println!();
}

/// A mark of the landing of this index around a place, with its title.
fn mark(landing: usize, x: f64, y: f64, colour: &str, title: &str) -> String {
    let circle =
        |looks: &str| format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" {looks}><title>{title}</title></circle>");
    let corners = |points: &[(f64, f64)]| {
        let at: Vec<String> = points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        format!("<polygon fill=\"{colour}\" points=\"{}\"><title>{title}</title></polygon>", at.join(" "))
    };
    match landing {
        0 => circle(&format!("r=\"5\" fill=\"{colour}\"")),
        1 => circle(&format!("r=\"8\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"")),
        2 => corners(&[(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)]),
        3 => corners(&[(-6.0, 5.0), (0.0, -6.0), (6.0, 5.0)]),
        _ => corners(&[(-7.0, 0.0), (0.0, -7.0), (7.0, 0.0), (0.0, 7.0)]),
    }
}

/// The picture: time and packets lost of each rule (a colour) with each landing (a mark), before CUBIC.
fn picture(played: &[Played]) -> String {
    const STYLE: &str = "text{font:13px system-ui,'DejaVu Sans',sans-serif;fill:#444}.t{font-size:20px;font-weight:700;fill:#111}\
                         .g{stroke:#000;stroke-opacity:.1}.l{fill:none;stroke-width:2;stroke-opacity:.4}.h{font-weight:700}";
    let shown: Vec<&Played> = played.iter().filter(|p| p.choice.after == 0).collect();
    let most = |of: fn(&Played) -> f64| shown.iter().map(|p| of(p)).fold(0.0, f64::max);
    // From the time of the oracle and no loss.
    let (right, high) = ((most(Played::mean_regret) * 4.0).ceil() / 4.0, (most(Played::lost) / 100.0).ceil());
    let x = |v: f64| 70.0 + 640.0 * (v - 1.0) / (right - 1.0);
    let y = |hundreds: f64| 360.0 - 290.0 * hundreds / high;
    let mut body = String::new();
    let _ = writeln!(
        body,
        "<text class=\"t\" x=\"16\" y=\"30\">When to leave decides more than what to leave with</text>"
    );
    for i in 0..=(4.0 * (right - 1.0)) as u32 {
        let v = 1.0 + f64::from(i) / 4.0;
        let at = x(v);
        let _ = writeln!(body, "<line class=\"g\" x1=\"{at:.1}\" y1=\"70\" x2=\"{at:.1}\" y2=\"360\"/>");
        let _ = writeln!(body, "<text x=\"{at:.1}\" y=\"378\" text-anchor=\"middle\">{v:.2}</text>");
    }
    for i in 0..=high as u32 {
        let at = y(f64::from(i));
        let _ = writeln!(body, "<line class=\"g\" x1=\"70\" y1=\"{at:.1}\" x2=\"710\" y2=\"{at:.1}\"/>");
        let _ = writeln!(body, "<text x=\"62\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", at + 4.0, 100 * i);
    }
    let _ = writeln!(
        body,
        "<text x=\"390\" y=\"402\" text-anchor=\"middle\">mean time to 10 MB over that of an oracle</text>\n\
         <text x=\"16\" y=\"54\">packets lost, mean</text>"
    );
    for (rule, (name, _)) in RULES.iter().enumerate() {
        let colour = COLOURS[rule];
        let of_rule = || shown.iter().filter(|p| p.choice.rule == rule);
        let places = of_rule().map(|p| (p.choice.landing, x(p.mean_regret()), y(p.lost() / 100.0)));
        let places: Vec<(usize, f64, f64)> = places.collect();
        let line: Vec<String> = places.iter().map(|(_, x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(body, "<polyline class=\"l\" stroke=\"{colour}\" points=\"{}\"/>", line.join(" "));
        for (landing, x, y) in places {
            let _ =
                writeln!(body, "{}", mark(landing, x, y, colour, &format!("{name}, {}", LANDINGS[landing])));
        }
        let at = 84.0 + 24.0 * rule as f64;
        let _ = writeln!(
            body,
            "<rect x=\"745\" y=\"{:.1}\" width=\"14\" height=\"10\" fill=\"{colour}\"/>\
             <text class=\"h\" x=\"772\" y=\"{at:.1}\">{name}</text>",
            at - 10.0
        );
    }
    for (landing, name) in LANDINGS.iter().enumerate() {
        let at = 256.0 + 24.0 * landing as f64;
        let shape = mark(landing, 752.0, at - 5.0, "#444", name);
        let _ = writeln!(body, "{shape}<text x=\"772\" y=\"{at:.1}\">{name}</text>");
    }
    let about = "Each exit rule with each window to leave with, before CUBIC: mean time to 10 MB over that of an oracle, and mean packets lost.";
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 920 415\" role=\"img\" aria-label=\"{about}\"><style>{STYLE}</style>\
         <rect width=\"920\" height=\"415\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seed, count, file] = args.as_slice() else {
        return Err("expected SEED CASES FILE.svg".into());
    };
    let (seed, count): (u64, u32) = (seed.parse()?, count.parse()?);
    let cases: Vec<Case> = population::all()
        .iter()
        .flat_map(|p| p.cases(seed, count * if p.name == "random" { 5 } else { 1 }))
        .collect();
    let played = play(&cases)?;
    println!("{} cases, seed {seed}\n", cases.len());
    for (after, (avoidance, plateau)) in AFTER.iter().enumerate() {
        let told = if *plateau { ", which looks for the window detected" } else { "" };
        table(&played, after, &format!("Time to 10 MB over that of the oracle, {avoidance}{told}:"), |p| {
            format!("{:.2}", p.mean_regret())
        });
    }
    table(&played, 0, "Packets lost in the transfer, before cubic:", |p| format!("{:.0}", p.lost()));
    table(&played, 0, "Packets that others lost, before cubic:", |p| format!("{:.0}", p.others_lost()));
    let [rule, landing, after, rest] = effects(&played, cases.len());
    println!("| choice | deviation of the time of a case, % |\n|---|--:|");
    for (name, value) in [
        ("the rule: when", rule),
        ("the landing: with what", landing),
        ("the avoidance and its plateau", after),
        ("what only the combination explains", rest),
    ] {
        println!("| {name} | {:.1} |", 100.0 * value);
    }
    std::fs::write(file, picture(&played))?;
    Ok(())
}
