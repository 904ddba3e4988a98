//! How often the startup of a sender is named, and how often wrongly.

use crate::conditions::{self, CONDITIONS};
use slowstart::registry;
use slowstart::step::Exit;
use slowstart_replay::naming;
use slowstart_replay::transfer::Transfer;
use slowstart_sim::random::Stream;
use slowstart_study::run::Job;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Senders with other thresholds than those that are tried.
const OTHERS: [&str; 6] = [
    "hystart:ack_delta=6ms,low_window=48",
    "hystart:rules=5.10",
    "hystart++:rtt_divisor=4,css_rounds=2",
    "search:threshold=0.6",
    "search:window=6",
    "stopeg:share=0.4",
];

/// Answers for a sender that is in the class that `replay` gives, and for one without a class.
const FEW: &str = "one of two or three";
const HALF: &str = "one of up to half";
const MORE: &str = "one of more";
const NO_CLASS: &str = "no class";

/// Captures, those with a right name, with a right class of few, of up to half of the families and of more, and those where a
/// name or class of few is wrong, and another class.
#[derive(Copy, Clone, Default)]
struct Shares {
    all: u64,
    named: u64,
    few: u64,
    half: u64,
    more: u64,
    wrong: u64,
    wrong_class: u64,
}

impl Shares {
    fn add(&mut self, said: &str) {
        self.all += 1;
        let right = [
            ("right", &mut self.named),
            (FEW, &mut self.few),
            (HALF, &mut self.half),
            (MORE, &mut self.more),
        ];
        for (what, n) in right {
            *n += u64::from(said == what);
        }
        self.wrong += u64::from(said.starts_with("as "));
        self.wrong_class += u64::from(said.starts_with("in none of "));
    }

    fn print(self, what: &str) {
        let percent = |n: u64, of: u64| n as f64 * 100.0 / of.max(1) as f64;
        let right = self.named + self.few + self.half + self.more;
        let answers = right + self.wrong + self.wrong_class;
        println!(
            "Of {} {what}: {answers} names and classes ({:.1} %), {:.1} % of them right: {} names, {} of two or three, {} of up to half, {} of more. Wrong: {} names and classes of few ({:.2} % of all), {} of more.",
            self.all,
            percent(answers, self.all),
            percent(right, answers),
            self.named,
            self.few,
            self.half,
            self.more,
            self.wrong,
            percent(self.wrong, self.all),
            self.wrong_class
        );
    }
}

/// The captures of the senders of one family, by what `replay` says of the startup.
type Said = BTreeMap<String, u64>;

/// Prints for each family of senders how often it is named, and as what. Half of the senders are drawn as in the
/// rest of the corpus, and half evenly from all algorithms and [`OTHERS`].
pub(crate) fn print(seeds: &RangeInclusive<u64>, only: &[&str]) {
    let names: Vec<&str> = registry::all().map(|e| e.name).chain(OTHERS).collect();
    let mut families: BTreeMap<String, Said> = BTreeMap::new();
    let mut by_condition: BTreeMap<&str, Said> = BTreeMap::new();
    let [mut every, mut ended, mut acted] = [Shares::default(); 3];
    for condition in CONDITIONS.iter().filter(|c| only.is_empty() || only.contains(c)) {
        for seed in seeds.clone() {
            let mut case = conditions::draw(condition, seed);
            let mut drawn = Stream::named(seed, &format!("sender, {condition}"));
            if drawn.below(2) == 0 {
                case.study.startups = vec![names[drawn.below(names.len() as u64) as usize].to_string()];
            }
            let o = case.checked().capture(Job { contender: 0, run: 0 });
            let Some((t, _)) = crate::answer(&case, &o, 0) else { continue };
            let startup = &case.study.startups[0];
            let family = naming::family(startup.split(':').next().unwrap_or(startup)).unwrap_or(startup);
            let said = said(&t, family);
            if said.starts_with("as ") {
                println!("{condition}, seed {seed}, {startup}, {}: {said}, {:?}", case.study.path, t.exit);
            }
            let wrong = said.starts_with("as ");
            every.add(&said);
            if t.exit.is_some() {
                ended.add(&said);
            }
            // Before a packet was lost.
            let by_rule = |e: &slowstart_study::record::ExitRow| {
                let loss = Exit::named(&e.reason).is_some_and(Exit::by_congestion);
                !loss && o.row.first_loss_time_s.is_none_or(|l| e.time_s < l)
            };
            if o.row.exit.as_ref().is_some_and(by_rule) {
                acted.add(&said);
            }
            let kind = if wrong {
                "wrong"
            } else if said.starts_with("in none of ") {
                "wrong class"
            } else {
                &said
            };
            *by_condition.entry(condition).or_default().entry(kind.to_string()).or_default() += 1;
            *families.entry(family.to_string()).or_default().entry(said).or_default() += 1;
        }
    }
    let line = |name: &str, said: &Said| {
        let of = |what: &str| said.get(what).copied().unwrap_or(0);
        let wrong: Vec<String> = said
            .iter()
            .filter(|(s, _)| s.starts_with("as ") || s.starts_with("in none of ") || s.starts_with("wrong"))
            .map(|(s, n)| format!("{n} {s}"))
            .collect();
        let wrong = if wrong.is_empty() { "0".to_string() } else { wrong.join(", ") };
        println!(
            "| {name} | {} | {} | {} | {} | {} | {wrong} | {} | {} |",
            said.values().sum::<u64>(),
            of("right"),
            of(FEW),
            of(HALF),
            of(MORE),
            of(NO_CLASS),
            of("not compared")
        );
    };
    let head = |first: &str| {
        println!(
            "| {first} | Captures | Named, right | One of two or three | One of up to half | One of more | Wrong | No class | Not compared |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
    };
    head("Sender");
    for (name, said) in &families {
        line(name, said);
    }
    head("Condition");
    for (name, said) in &by_condition {
        line(name, said);
    }
    every.print("recordings");
    ended.print("recordings that show an end of slow start");
    acted.print("recordings of senders that left by their own rule before a loss");
}

/// What `replay` says of the startup of a sender of this family.
fn said(t: &Transfer, family: &str) -> String {
    if let Some(name) = &t.sender_startup {
        return if name == family { "right".to_string() } else { format!("as {name}") };
    }
    let Some(class) = &t.sender_startup_class else {
        return if t.sender_startup_fits.is_some() { NO_CLASS } else { "not compared" }.to_string();
    };
    let few = class.len() <= naming::FEW;
    match class.iter().any(|f| f == family) {
        true if few => FEW.to_string(),
        true if class.len() * 2 <= families() => HALF.to_string(),
        true => MORE.to_string(),
        false if few => format!("as one of {}", class.join(", ")),
        false => format!("in none of {}", class.len()),
    }
}

/// The families that are tried.
fn families() -> usize {
    registry::all().filter_map(|e| naming::family(e.name)).collect::<BTreeSet<_>>().len()
}
