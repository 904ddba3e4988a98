//! Claims of a paper judged jointly: for each value of what it does not give, all numbers that it prints. The
//! value that meets most of them is the paper's network; what no value meets together differs, whatever each
//! claim alone.

use crate::record::Record;
use serde::Deserialize;
use std::fmt::Write;

/// Claims that depend on the same unknown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// The name by which headlines refer to it.
    pub(crate) name: String,
    /// The unknown.
    unknown: String,
    /// Its values: the ends of the names of studies.
    values: Vec<String>,
    /// The claims, as `paper/experiment/claim`, each with the heading of its column.
    claims: Vec<(String, String)>,
}

/// A headline of a paper, which several claims state together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headline {
    /// What the paper says.
    says: String,
    /// The claims, as `paper/experiment/claim`.
    claims: Vec<String>,
    /// The group in which they are judged; absent if they share no unknown.
    within: Option<String>,
}

/// The verdict on some claims together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Met {
    All,
    NotAll,
    Open,
}

impl Met {
    fn of<'a>(verdicts: impl Iterator<Item = &'a str>) -> Self {
        let (mut met, mut any) = (Self::All, false);
        for v in verdicts {
            any = true;
            match v {
                "differs" => return Self::NotAll,
                "holds" => {}
                _ => met = Self::Open,
            }
        }
        if any { met } else { Self::Open }
    }

    const fn letter(self) -> &'static str {
        match self {
            Self::All => "holds",
            Self::NotAll => "differs",
            Self::Open => "undecided",
        }
    }
}

/// What a claim measured with a value of the unknown; `None` if it was not run with it.
type Cell = Option<(String, Met)>;

/// The measured values of a claim with one value of the unknown, and the verdict on them.
fn cell(r: &Record, value: &str) -> Cell {
    let parts = r.measured.split("; ").zip(&r.each);
    let of_value = |part: &str| {
        let (of, measured) = part.rsplit_once(": ")?;
        let (study, _) = of.rsplit_once(", ")?;
        study.ends_with(value).then(|| measured.to_string())
    };
    let here: Vec<(String, &str)> =
        parts.filter_map(|(part, verdict)| Some((of_value(part)?, verdict.as_str()))).collect();
    let number = |text: &str| text.split(" (").next().unwrap_or(text).to_string();
    let text = match here.as_slice() {
        [] => return None,
        [(one, _)] => number(one),
        [(first, _), .., (last, _)] => format!("{}; ..; {}", number(first), number(last)),
    };
    Some((text, Met::of(here.iter().map(|(_, v)| *v))))
}

fn record<'a>(records: &'a [Record], id: &str) -> Result<Option<&'a Record>, String> {
    let found = records.iter().find(|r| r.id == id);
    let experiment = id.rsplit_once('/').map_or("", |(e, _)| e);
    if found.is_none() && records.iter().any(|r| r.experiment() == experiment) {
        return Err(format!("papers.toml: found {id:?}, expected the id of a claim"));
    }
    Ok(found)
}

/// How many of the claims hold with a value, and how many have a value at all.
fn count(cells: &[Cell]) -> (usize, usize) {
    let met = cells.iter().flatten().filter(|c| c.1 == Met::All).count();
    (met, cells.iter().flatten().count())
}

/// The table of a group, and what it says: which value meets most, and what none meets together. `None` if none
/// of its experiments was run.
///
/// # Errors
/// Says which id is no claim.
pub(crate) fn table(g: &Group, records: &[Record]) -> Result<Option<String>, String> {
    let mut columns = Vec::new();
    for (id, heading) in &g.claims {
        if let Some(r) = record(records, id)? {
            columns.push((heading, r));
        }
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let mut out = format!("| {} |", g.unknown);
    for (heading, r) in &columns {
        let _ = write!(out, " {heading} (paper: {}) |", r.claimed.replace('|', "\\|"));
    }
    let _ = writeln!(out, " met |\n|---|{}--:|", "--:|".repeat(columns.len()));
    let mut best: (usize, Vec<(&String, Vec<Cell>)>) = (0, Vec::new());
    for value in &g.values {
        let cells: Vec<_> = columns.iter().map(|(_, r)| cell(r, value)).collect();
        let _ = write!(out, "| {} |", value.trim_start_matches(", "));
        for c in &cells {
            let text = c.as_ref().map_or("-".into(), |(text, met)| match met {
                Met::All => format!("**{text}**"),
                Met::NotAll => text.clone(),
                Met::Open => format!("{text} (?)"),
            });
            let _ = write!(out, " {text} |");
        }
        let (met, known) = count(&cells);
        let _ = writeln!(out, " {met} of {known} |");
        match met.cmp(&best.0) {
            std::cmp::Ordering::Greater => best = (met, vec![(value, cells)]),
            std::cmp::Ordering::Equal if met > 0 => best.1.push((value, cells)),
            _ => {}
        }
    }
    out.push_str("\nBold: it holds; (?): undecided.");
    let name = |v: &str| v.trim_start_matches(", ").to_string();
    for (value, cells) in &best.1 {
        let missing: Vec<&str> = columns
            .iter()
            .zip(cells)
            .filter(|(_, c)| c.as_ref().is_none_or(|c| c.1 != Met::All))
            .map(|((heading, _), _)| heading.as_str())
            .collect();
        let rest = if missing.is_empty() { "nothing is missing".into() } else { missing.join(", ") };
        let _ =
            write!(out, " Most, {} of {}, with {}; not with it: {rest}.", best.0, columns.len(), name(value));
    }
    if best.1.is_empty() {
        out.push_str(" No value meets any.");
    }
    out.push('\n');
    Ok(Some(out))
}

/// The verdict on a headline, with its reason; `None` if none of its experiments was run.
///
/// # Errors
/// Says which id is no claim, or which group does not exist.
pub(crate) fn headline(h: &Headline, groups: &[Group], records: &[Record]) -> Result<Option<String>, String> {
    let mut of = Vec::new();
    for id in &h.claims {
        let Some(r) = record(records, id)? else { return Ok(None) };
        of.push(r);
    }
    let paper: Vec<String> = of.iter().map(|r| r.claimed.clone()).collect();
    let alone: Vec<&str> = of.iter().map(|r| r.verdict.as_str()).collect();
    let joint = match &h.within {
        None => Met::of(of.iter().map(|r| r.verdict.as_str())).letter().to_string(),
        Some(name) => {
            let g = groups.iter().find(|g| g.name == *name);
            let g = g.ok_or_else(|| format!("papers.toml: found group {name:?}, expected one of `joint`"))?;
            let met = |value: &String| {
                let cells = of.iter().map(|r| cell(r, value).map_or("undecided", |c| c.1.letter()));
                Met::of(cells.collect::<Vec<_>>().into_iter())
            };
            let with = |wanted: Met| {
                let found = g.values.iter().filter(|v| met(v) == wanted);
                found.map(|v| v.trim_start_matches(", ")).collect::<Vec<_>>().join(" or ")
            };
            match (with(Met::All), with(Met::Open)) {
                (all, _) if !all.is_empty() => format!("holds with {all}"),
                (_, open) if !open.is_empty() => format!("undecided with {open}; differs otherwise"),
                _ => format!("differs with every {}", g.unknown),
            }
        }
    };
    Ok(Some(format!("| {} | {} | {} | **{joint}** |\n", h.says, paper.join("; "), alone.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(id: &str, measured: &str, each: &[&str]) -> Record {
        Record {
            id: id.into(),
            claimed: "1".into(),
            measured: measured.into(),
            each: each.iter().map(|v| (*v).into()).collect(),
            verdict: "the paper does not say".into(),
            ..Record::default()
        }
    }

    fn group() -> Group {
        toml::from_str(
            "name = 'g'\nunknown = 'buffer'\nvalues = [', small', ', large']\nclaims = [['p/e/a', 'tail'], ['p/e/b', 'loss']]",
        )
        .expect("as written")
    }

    /// Each of two claims holds with one buffer: with none do both.
    #[test]
    fn what_no_value_meets_together_differs() {
        let a = claim("p/e/a", "net, small, x: 1.0 (0.9 to 1.1); net, large, x: 9", &["holds", "differs"]);
        let b = claim("p/e/b", "net, small, x: 8; net, large, x: 1", &["differs", "holds"]);
        let h: Headline =
            toml::from_str("says = 'both'\nclaims = ['p/e/a', 'p/e/b']\nwithin = 'g'").expect("as written");
        let of = |records: &[Record]| headline(&h, &[group()], records).expect("claims").expect("run");
        assert!(of(&[a.clone(), b.clone()]).contains("**differs with every buffer**"));
        let both = claim("p/e/b", "net, small, x: 1; net, large, x: 1", &["holds", "holds"]);
        assert!(of(&[a.clone(), both.clone()]).contains("**holds with small**"));
        let open = claim("p/e/b", "net, small, x: 1; net, large, x: 1", &["undecided", "holds"]);
        assert!(of(&[a.clone(), open]).contains("**undecided with small; differs otherwise**"));
        let text = table(&group(), &[a.clone(), both]).expect("claims").expect("run");
        assert!(text.contains("| small | **1.0** | **1** | 2 of 2 |"), "{text}");
        assert!(text.contains("Most, 2 of 2, with small; not with it: nothing is missing."), "{text}");
        assert!(table(&group(), std::slice::from_ref(&a)).is_err(), "its experiment has no such claim");
        assert_eq!(table(&group(), &[]), Ok(None));
    }
}
