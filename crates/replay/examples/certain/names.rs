//! How often the startup of a sender is named, and how often wrongly.

use crate::conditions::{self, CONDITIONS};
use slowstart::registry;
use slowstart::step::Exit;
use slowstart_replay::naming;
use slowstart_sim::random::Stream;
use slowstart_study::run::Job;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Senders that are none of those that are tried: other thresholds.
const OTHERS: [&str; 6] = [
    "hystart:ack_delta=6ms,low_window=48",
    "hystart:rules=5.10",
    "hystart++:rtt_divisor=4,css_rounds=2",
    "search:threshold=0.6",
    "search:window=6",
    "stopeg:share=0.4",
];

/// Families that are few.
const FEW: usize = 4;
/// The answer for a sender that is in the class that `replay` names.
const IN_CLASS: &str = "in its class";

/// Captures, those with a right name, those with a right name or class, and those where either is wrong.
#[derive(Copy, Clone, Default)]
struct Shares {
    all: u64,
    named: u64,
    right: u64,
    wrong: u64,
}

impl Shares {
    fn add(&mut self, said: &str) {
        self.all += 1;
        self.named += u64::from(said == "right");
        self.right += u64::from(said == "right" || said == IN_CLASS);
        self.wrong += u64::from(said.starts_with("as "));
    }

    fn print(self, what: &str) {
        let percent = |n: u64, of: u64| n as f64 * 100.0 / of.max(1) as f64;
        println!(
            "Of {} {what}: {} right ({:.1} %), {} of them a name; {} wrong, {:.1} % of the answers.",
            self.all,
            self.right,
            percent(self.right, self.all),
            self.named,
            self.wrong,
            percent(self.wrong, self.right + self.wrong)
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
    // Names and classes, and those of them that are wrong: of startups that are tried, and of others.
    let mut answers = [(0u32, 0u32); 2];
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
            let tried = naming::family(startup.split(':').next().unwrap_or(startup));
            let family = tried.unwrap_or(startup);
            let said = match (&t.sender_startup, &t.sender_startup_fits) {
                (Some(name), _) if name == family => "right".to_string(),
                (Some(name), _) => format!("as {name}"),
                (None, None) => "not compared".to_string(),
                (None, Some(_)) if t.sender_startup_class.is_some() => {
                    let class = t.sender_startup_class.iter().flatten();
                    let holds = class.clone().any(|f| f == family);
                    if holds {
                        IN_CLASS.to_string()
                    } else {
                        format!("as one of {}", class.map(String::as_str).collect::<Vec<_>>().join(", "))
                    }
                }
                (None, Some(fits)) if fits.is_empty() => "none fits".to_string(),
                (None, Some(fits)) if fits.iter().any(|f| f == family) && fits.len() <= FEW => {
                    "one of few".to_string()
                }
                (None, Some(fits)) if fits.iter().any(|f| f == family) => "several fit".to_string(),
                (None, Some(_)) => "others fit".to_string(),
            };
            if said.starts_with("as ") {
                println!("{condition}, seed {seed}, {startup}, {}: {said}, {:?}", case.study.path, t.exit);
            }
            let wrong = said.starts_with("as ");
            if wrong || said == "right" || said == IN_CLASS {
                let answers = &mut answers[usize::from(tried.is_none())];
                *answers = (answers.0 + 1, answers.1 + u32::from(wrong));
            }
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
            let kind = if wrong { "wrong" } else { &said };
            *by_condition.entry(condition).or_default().entry(kind.to_string()).or_default() += 1;
            *families.entry(family.to_string()).or_default().entry(said).or_default() += 1;
        }
    }
    let line = |name: &str, said: &Said| {
        let of = |what: &str| said.get(what).copied().unwrap_or(0);
        let wrong: Vec<String> = said
            .iter()
            .filter(|(s, _)| s.starts_with("as ") || *s == "wrong")
            .map(|(s, n)| format!("{n} {s}"))
            .collect();
        let wrong = if wrong.is_empty() { "0".to_string() } else { wrong.join(", ") };
        println!(
            "| {name} | {} | {} | {} | {wrong} | {} | {} | {} | {} | {} |",
            said.values().sum::<u64>(),
            of("right"),
            of(IN_CLASS),
            of("one of few"),
            of("several fit"),
            of("others fit"),
            of("none fits"),
            of("not compared")
        );
    };
    let head = |first: &str| {
        println!(
            "| {first} | Captures | Named, right | In the class named | Name or class wrong | One of 2 to 4 | One of more | Only others fit | None fits | Not compared |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
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
    for (of, (all, wrong)) in ["startups that are tried", "others"].iter().zip(answers) {
        println!("Senders with {of}: {all} names and classes, {wrong} wrong.");
    }
}
