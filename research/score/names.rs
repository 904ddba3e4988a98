//! Which startup a capture at the sender names, beside the one that its control has.

use serde_json::Value;
use slowstart::registry;
use slowstart_replay::naming::{FEW, family};
use std::collections::{BTreeMap, BTreeSet};

/// How many captures got which answer about the startup of their sender.
#[derive(Clone, Debug, Default)]
struct Said {
    named: u32,
    /// In its class: of few, of up to half of the families, of more.
    class: [u32; 3],
    /// Wrong names and classes of few.
    wrong: Vec<String>,
    /// Not in its larger class.
    wrong_class: u32,
    no_class: u32,
    not_compared: u32,
}

impl Said {
    fn add(&mut self, row: &Value, truth: &str, families: usize) {
        let class: Option<Vec<&str>> =
            row["sender_startup_class"].as_array().map(|c| c.iter().filter_map(Value::as_str).collect());
        match (row["sender_startup"].as_str(), class) {
            (Some(name), _) if name == truth => self.named += 1,
            (Some(name), _) => self.wrong.push(name.to_string()),
            (None, Some(class)) => {
                let few = class.len() <= FEW;
                if class.contains(&truth) {
                    let size = if few { 0 } else { 1 + usize::from(class.len() * 2 > families) };
                    self.class[size] += 1;
                } else if few {
                    self.wrong.push(class.join("/"));
                } else {
                    self.wrong_class += 1;
                }
            }
            (None, None) if row["sender_startup_fits"].is_null() => self.not_compared += 1,
            (None, None) => self.no_class += 1,
        }
    }

    fn right(&self) -> u32 {
        self.named + self.class.iter().sum::<u32>()
    }

    fn answers(&self) -> u32 {
        self.right() + self.wrong.len() as u32 + self.wrong_class
    }

    fn all(&self) -> u32 {
        self.answers() + self.no_class + self.not_compared
    }
}

/// The family of a control of the kernel, or of an object of this project.
fn family_of(control: &str) -> &str {
    match control {
        // The kernel's CUBIC begins with HyStart, its Reno with slow start.
        "cubic" => "hystart",
        "reno" => "standard",
        other => family(other).unwrap_or(other),
    }
}

/// Prints a line for each family of senders, and the shares of all.
pub(crate) fn print<'a>(captures: impl Iterator<Item = (&'a str, &'a Value)>) {
    let families = registry::all().filter_map(|e| family(e.name)).collect::<BTreeSet<_>>().len();
    let (mut by_family, mut all) = (BTreeMap::<&str, Said>::new(), Said::default());
    for (control, row) in captures {
        let truth = family_of(control);
        by_family.entry(truth).or_default().add(row, truth, families);
        all.add(row, truth, families);
    }
    println!(
        "| sender | captures | named, right | one of two or three | one of up to half | one of more | named wrong | not in its class | no class | not compared |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, s) in &by_family {
        let wrong = s.wrong.iter().map(|w| format!("as {w}")).collect::<Vec<_>>().join(", ");
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            s.all(),
            s.named,
            s.class[0],
            s.class[1],
            s.class[2],
            if wrong.is_empty() { "0".to_string() } else { wrong },
            s.wrong_class,
            s.no_class,
            s.not_compared
        );
    }
    let percent = |n: u32, of: u32| f64::from(n) * 100.0 / f64::from(of.max(1));
    println!(
        "Of {} captures {} have a name or class ({:.1} %), {} of them right ({:.1} %); {} names and classes of few are wrong ({:.1} % of all).\n",
        all.all(),
        all.answers(),
        percent(all.answers(), all.all()),
        all.right(),
        percent(all.right(), all.answers()),
        all.wrong.len(),
        percent(all.wrong.len() as u32, all.all())
    );
}
