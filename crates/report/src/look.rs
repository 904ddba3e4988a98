//! The look of a startup on every page: a number that stands for its colour and its dashes.

use slowstart::registry;
use slowstart_study::chosen;

/// Colours of the style sheet.
pub const COLOURS: usize = 12;

/// The startups that readers meet most have the colours that differ most.
const FIRST: [&str; 7] =
    ["hystart", "standard", "search", "rate-bound", "hystart-picoquic", "hystart++", "bbr3"];

/// The numbers of these labels, in their order: a startup with the registry's parameters has the same on every
/// page. Other labels, as those of parameters, have the least that are free.
pub fn looks<S: AsRef<str>>(labels: &[S]) -> Vec<usize> {
    let mut order: Vec<&str> = FIRST.to_vec();
    let others = chosen::names().chain(registry::all().map(|e| e.name));
    for name in others {
        if !order.contains(&name) {
            order.push(name);
        }
    }
    let fixed = |label: &str| order.iter().position(|name| *name == label);
    let mut numbers: Vec<Option<usize>> = labels.iter().map(|l| fixed(l.as_ref())).collect();
    let mut next = 0;
    for i in 0..numbers.len() {
        if numbers[i].is_none() {
            let same = (0..i).find(|j| labels[*j].as_ref() == labels[i].as_ref());
            numbers[i] = same.map_or_else(
                || {
                    while numbers.contains(&Some(next)) {
                        next += 1;
                    }
                    Some(next)
                },
                |j| numbers[j],
            );
        }
    }
    numbers.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_startup_looks_the_same_on_every_page() {
        let alone = looks(&["search"]);
        assert_eq!(looks(&["standard", "hystart", "search"]), [1, 0, alone[0]]);
        let all: Vec<&str> = registry::all().map(|e| e.name).collect();
        let mut numbers = looks(&all);
        numbers.sort_unstable();
        assert_eq!(numbers, (0..all.len()).collect::<Vec<_>>(), "each has its own");
    }

    #[test]
    fn others_take_what_is_free() {
        let of = looks(&["search:window=3", "hystart", "search:window=9", "search:window=3", "standard"]);
        assert_eq!(of, [2, 0, 3, 2, 1]);
    }
}
