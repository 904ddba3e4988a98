//! Claims of a paper judged jointly: for each value of what it does not give, all numbers that it prints. The
//! value that meets most of them is the paper's network; what no value meets together differs, whatever each
//! claim alone.

use crate::claim::Verdict;
use crate::record::{Record, find};
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
    pub(crate) claims: Vec<(String, String)>,
}

/// A headline of a paper, which several claims state together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headline {
    /// What the paper says.
    says: String,
    /// The claims, as `paper/experiment/claim`.
    pub(crate) claims: Vec<String>,
    /// The group in which they are judged; absent if they share no unknown.
    within: Option<String>,
}

/// The verdict on some claims together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Met {
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

    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::All => "holds",
            Self::NotAll => "differs",
            Self::Open => "undecided",
        }
    }
}

/// What a claim measured with a value of the unknown; `None` if it was not run with it.
pub(crate) type Cell = Option<(String, Met)>;

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

/// How many of the claims hold with a value.
fn count(cells: &[Cell]) -> usize {
    cells.iter().flatten().filter(|c| c.1 == Met::All).count()
}

/// The claims of a group, for each value of the unknown.
pub(crate) struct Table {
    pub(crate) unknown: String,
    /// Heading and printed value of each claim.
    pub(crate) columns: Vec<(String, String)>,
    /// A value of the unknown, and what each claim measured with it.
    pub(crate) rows: Vec<(String, Vec<Cell>)>,
    /// Which value meets most, and what it does not meet.
    pub(crate) most: String,
}

/// The table of a group. `None` if none of its experiments was run.
///
/// # Errors
/// Says which id is no claim.
pub(crate) fn table(g: &Group, records: &[Record]) -> Result<Option<Table>, String> {
    let mut claims = Vec::new();
    for (id, heading) in &g.claims {
        if let Some(r) = find(records, id)? {
            claims.push((heading, r));
        }
    }
    if claims.is_empty() {
        return Ok(None);
    }
    let name = |v: &str| v.trim_start_matches(", ").to_string();
    let rows: Vec<(String, Vec<Cell>)> =
        g.values.iter().map(|v| (name(v), claims.iter().map(|(_, r)| cell(r, v)).collect())).collect();
    let met = |row: &(String, Vec<Cell>)| count(&row.1);
    let best = rows.iter().map(met).max().unwrap_or(0);
    let mut most = String::new();
    for (value, cells) in rows.iter().filter(|row| best > 0 && met(row) == best) {
        let missing: Vec<&str> = claims
            .iter()
            .zip(cells)
            .filter(|(_, c)| c.as_ref().is_none_or(|c| c.1 != Met::All))
            .map(|((heading, _), _)| heading.as_str())
            .collect();
        let rest = if missing.is_empty() { "nothing is missing".into() } else { missing.join(", ") };
        let _ = write!(most, " Most, {best} of {}, with {value}; not with it: {rest}.", claims.len());
    }
    if best == 0 {
        most.push_str(" No value meets any.");
    }
    let columns = claims.iter().map(|(heading, r)| ((*heading).clone(), r.claimed.clone())).collect();
    Ok(Some(Table { unknown: g.unknown.clone(), columns, rows, most }))
}

/// A headline with the verdicts on it.
pub(crate) struct Verdicts {
    pub(crate) says: String,
    /// What the paper prints; what it prints of several claims alike stands once.
    pub(crate) paper: String,
    /// The verdict on each of its claims.
    pub(crate) alone: String,
    /// The verdict on them together.
    pub(crate) together: String,
}

/// The verdict on a headline, with its reason; `None` if none of its experiments was run.
///
/// # Errors
/// Says which id is no claim, or which group does not exist.
pub(crate) fn headline(
    h: &Headline,
    groups: &[Group],
    records: &[Record],
) -> Result<Option<Verdicts>, String> {
    let mut of = Vec::new();
    for id in &h.claims {
        let Some(r) = find(records, id)? else { return Ok(None) };
        of.push(r);
    }
    let mut paper: Vec<&str> = of.iter().map(|r| r.claimed.as_str()).collect();
    paper.dedup();
    let alone: Vec<&str> = of.iter().map(|r| r.verdict.as_str()).collect();
    let joint = match &h.within {
        None => match Met::of(alone.iter().copied()) {
            // What the paper leaves out decides: no number of runs would.
            Met::Open
                if alone.iter().all(|v| [Verdict::Holds.name(), Verdict::NotStated.name()].contains(v)) =>
            {
                Verdict::NotStated.name().to_string()
            }
            met => met.letter().to_string(),
        },
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
    Ok(Some(Verdicts {
        says: h.says.clone(),
        paper: paper.join("; "),
        alone: alone.join("; "),
        together: joint,
    }))
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
        let of =
            |records: &[Record]| headline(&h, &[group()], records).expect("claims").expect("run").together;
        assert!(of(&[a.clone(), b.clone()]).contains("differs with every buffer"));
        let both = claim("p/e/b", "net, small, x: 1; net, large, x: 1", &["holds", "holds"]);
        assert!(of(&[a.clone(), both.clone()]).contains("holds with small"));
        // Without a group: what the paper leaves out decides, so it is not undecided.
        let plain: Headline = toml::from_str("says = 'both'\nclaims = ['p/e/a']").expect("as written");
        let alone = headline(&plain, &[], std::slice::from_ref(&a)).expect("a claim").expect("run").together;
        assert_eq!(alone, "the paper does not say");
        let open = claim("p/e/b", "net, small, x: 1; net, large, x: 1", &["undecided", "holds"]);
        assert!(of(&[a.clone(), open]).contains("undecided with small; differs otherwise"));
        let both = table(&group(), &[a.clone(), both]).expect("claims").expect("run");
        let cell = |text: &str, met| Some((text.to_string(), met));
        assert_eq!(both.rows[0], ("small".into(), vec![cell("1.0", Met::All), cell("1", Met::All)]));
        assert_eq!(both.rows[1].1, [cell("9", Met::NotAll), cell("1", Met::All)]);
        assert_eq!(both.most, " Most, 2 of 2, with small; not with it: nothing is missing.");
        assert!(table(&group(), std::slice::from_ref(&a)).is_err(), "its experiment has no such claim");
        assert!(table(&group(), &[]).is_ok_and(|t| t.is_none()));
    }
}
