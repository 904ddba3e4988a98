//! Differences to the rows of an earlier league, case by case.

use crate::game::{GAME_SCHEMA, GameRow};
use crate::score::{self, Measure};
use slowstart_study::field;
use slowstart_study::measures::Margin;
use slowstart_study::price::share;
use slowstart_study::stats::{self, FEWEST_PAIRS, Median};
use slowstart_study::words::number;
use std::collections::BTreeMap;
use thiserror::Error;

/// What is wrong with a baseline.
#[derive(Debug, Error)]
pub enum BaselineError {
    /// A line is no row.
    #[error("line {line}: {why} (`slowstart league --json` prints rows)")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The field, what was found and what was expected.
        why: String,
    },
    /// There are no rows.
    #[error("found no rows, expected rows as `slowstart league --json` prints them")]
    Empty,
    /// The rows are of several leagues.
    #[error("found rows of seeds {0} and {1}, expected those of one league")]
    Seeds(u64, u64),
    /// It has several startups, and not this one.
    #[error("found startups {found}, expected {startup} among them, or one startup")]
    Startup {
        /// The startup that is compared.
        startup: String,
        /// Those of the baseline.
        found: String,
    },
    /// Too few cases are in both.
    #[error("found {found} cases that {startup} and the baseline both have, expected {FEWEST_PAIRS} or more")]
    Few {
        /// The startup that is compared.
        startup: String,
        /// Cases that both have.
        found: usize,
    },
}

/// The rows of an earlier league.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Its rows, at least one.
    pub rows: Vec<GameRow>,
    /// The seed of that league.
    pub seed: u64,
}

impl Baseline {
    /// Reads rows as JSON lines.
    pub fn read(text: &str) -> Result<Self, BaselineError> {
        let mut rows: Vec<GameRow> = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let row = field::read(line.as_bytes(), GAME_SCHEMA);
            rows.push(row.map_err(|why| BaselineError::Line { line: i + 1, why })?);
        }
        let seed = rows.first().ok_or(BaselineError::Empty)?.drawn_from;
        if let Some(other) = rows.iter().find(|r| r.drawn_from != seed) {
            return Err(BaselineError::Seeds(seed, other.drawn_from));
        }
        Ok(Self { rows, seed })
    }

    /// The startup of the baseline that a startup is judged against: itself, or the only one there is.
    ///
    /// # Errors
    /// If it has several startups and not this one.
    pub fn judge_of(&self, startup: &str) -> Result<&str, BaselineError> {
        let all = score::startups(&self.rows);
        match &all[..] {
            [one] => Ok(one),
            _ => all.iter().find(|s| **s == startup).copied().ok_or_else(|| BaselineError::Startup {
                startup: startup.to_string(),
                found: all.join(", "),
            }),
        }
    }

    /// How many cases it has of a population: one more than the greatest number.
    pub fn cases(&self, population: &str) -> u32 {
        self.rows.iter().filter(|r| r.population == population).map(|r| r.case + 1).max().unwrap_or(0)
    }
}

/// A startup against one of the baseline, over the cases that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The startup as written, with its parameters.
    pub startup: String,
    /// The startup of the baseline.
    pub baseline: String,
    /// The population; `None` for all of them.
    pub population: Option<String>,
    /// Cases that both have.
    pub cases: usize,
    /// Cases in which only this startup never delivered 10 MB, and those in which only the baseline's never did.
    pub never: [usize; 2],
    /// Cases in which this startup broke a rule.
    pub broken: usize,
    /// For each measure: the mean of the differences, with Student's interval, and the baseline's mean over
    /// the same cases.
    pub measures: Vec<(Measure, Median, f64)>,
}

impl Difference {
    /// What is worse than in the baseline, a clause each: it broke a rule, never delivered 10 MB where the
    /// baseline did, or, at 95 % confidence, takes longer by at least `margin` (a share), or loses or makes others
    /// lose [`LOSS_MARGIN`](slowstart_study::measures::LOSS_MARGIN) packets more, in the mean over the cases.
    pub fn worse(&self, margin: f64) -> Vec<String> {
        let mut all = Vec::new();
        let cases = |n: usize| share(n, self.cases).replace("runs", "cases").replace("run", "case");
        all.extend((self.broken > 0).then(|| format!("it broke a rule in {}", cases(self.broken))));
        let [own, _] = self.never;
        all.extend(
            (own > 0)
                .then(|| format!("it never delivers 10 MB in {} in which the baseline does", cases(own))),
        );
        for (m, by, base) in &self.measures {
            let least = match m.entry().margin {
                Margin::Relative => margin * base,
                Margin::Fixed(margin) => margin,
                Margin::RoundTrip | Margin::Unjudged => continue,
            };
            if by.low > 0.0 && by.mid >= least {
                all.push(format!(
                    "{}: {} more (95 % interval {} to {}), where the baseline has {}",
                    m.entry().heading,
                    number(by.mid),
                    number(by.low),
                    number(by.high),
                    number(*base)
                ));
            }
        }
        all
    }

    /// Fails if too few cases are in both to judge by.
    ///
    /// # Errors
    /// If there are fewer than [`FEWEST_PAIRS`].
    pub fn check(&self) -> Result<(), BaselineError> {
        if self.cases >= FEWEST_PAIRS {
            return Ok(());
        }
        Err(BaselineError::Few { startup: self.startup.clone(), found: self.cases })
    }
}

/// Every startup of `rows` against every startup of `baseline`, over all populations and over each.
pub fn differences(rows: &[GameRow], baseline: &[GameRow]) -> Vec<Difference> {
    let mut all = Vec::new();
    for ours in score::startups(rows) {
        for theirs in score::startups(baseline) {
            let scopes = std::iter::once(None).chain(score::populations(rows).into_iter().map(Some));
            all.extend(scopes.filter_map(|scope| difference(rows, ours, baseline, theirs, scope)));
        }
    }
    all
}

fn difference(
    rows: &[GameRow],
    ours: &str,
    baseline: &[GameRow],
    theirs: &str,
    scope: Option<&str>,
) -> Option<Difference> {
    // The path too: a list of built-in paths may have changed between two versions.
    let key = |r: &GameRow| (r.population.clone(), r.seed, r.path.clone());
    let known: BTreeMap<_, &GameRow> =
        baseline.iter().filter(|r| r.startup == theirs).map(|r| (key(r), r)).collect();
    let pairs: Vec<(&GameRow, &GameRow)> = rows
        .iter()
        .filter(|r| r.startup == ours && scope.is_none_or(|s| r.population == s))
        .filter_map(|r| Some((r, *known.get(&key(r))?)))
        .collect();
    let of = |m: Measure| {
        let both: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| Some((m.of(a)?, m.of(b)?))).collect();
        let differences: Vec<f64> = both.iter().map(|(a, b)| a - b).collect();
        let base: Vec<f64> = both.iter().map(|(_, b)| *b).collect();
        Some((m, stats::mean(&differences)?, stats::mean(&base)?.mid))
    };
    let never = |a: &GameRow, b: &GameRow| a.never(10_000_000) && !b.never(10_000_000);
    (!pairs.is_empty()).then(|| Difference {
        startup: ours.to_string(),
        baseline: theirs.to_string(),
        population: scope.map(str::to_string),
        cases: pairs.len(),
        never: [
            pairs.iter().filter(|(a, b)| never(a, b)).count(),
            pairs.iter().filter(|(a, b)| never(b, a)).count(),
        ],
        broken: pairs.iter().filter(|(a, _)| a.broken.is_some()).count(),
        measures: Measure::ALL.iter().copied().filter_map(of).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::tests::row;

    #[test]
    fn rows_are_read_back_and_bad_ones_are_named() {
        let rows = [row("a", 0, 1.0, 5), row("a", 1, 2.0, 5)];
        let text: String =
            rows.iter().map(|r| serde_json::to_string(r).expect("plain data") + "\n").collect();
        let read = Baseline::read(&text).expect("rows");
        assert_eq!((read.rows.as_slice(), read.seed, read.cases("random")), (&rows[..], 1, 2));
        let bad = Baseline::read(&format!("{text}{{}}\n")).expect_err("no row").to_string();
        assert!(bad.starts_with("line 3: league: found nothing, expected a whole number"), "{bad}");
        assert!(Baseline::read("\n").is_err());
        let other = GameRow { drawn_from: 2, ..row("a", 2, 1.0, 5) };
        let mixed = text + &serde_json::to_string(&other).expect("plain data");
        assert!(matches!(Baseline::read(&mixed), Err(BaselineError::Seeds(1, 2))));
    }

    #[test]
    fn a_gate_tells_what_is_worse_and_refuses_what_it_cannot_compare() {
        let of = |name: &str, seconds: f64| -> Vec<GameRow> {
            let one = |case: u32| {
                let mut r = row(name, case, seconds + 0.01 * f64::from(case), 5);
                r.seed = u64::from(case);
                r.time_s.insert("10000000".into(), Some(10.0 * seconds));
                r
            };
            (0..8).map(one).collect()
        };
        let worse = |ours: &[GameRow], base: &[GameRow]| {
            let all = differences(ours, base);
            let d = all.iter().find(|d| d.population.is_none()).expect("over all");
            d.check().expect("enough");
            d.worse(0.03)
        };
        let base = of("a", 1.0);
        assert!(worse(&of("a", 1.0), &base).is_empty() && worse(&of("a", 0.5), &base).is_empty());
        assert!(worse(&of("a", 1.01), &base).is_empty(), "within the margin");
        let slower = worse(&of("a", 1.5), &base);
        assert!(slower[0].starts_with("1 MB: 1 more") && slower[1].starts_with("10 MB: "), "{slower:?}");
        let mut stalls = of("a", 0.5);
        stalls[2].time_s.insert("10000000".into(), None);
        stalls[3].broken = Some("cwnd 0".into());
        let found = worse(&stalls, &base);
        assert!(
            found[..2]
                == [
                    "it broke a rule in 1 of 8 cases",
                    "it never delivers 10 MB in 1 of 8 cases in which the baseline does"
                ],
            "{found:?}"
        );
        // One case of eight: the interval of the mean holds none.
        let mut once = of("a", 1.0);
        once[2].startup_lost_packets = Some(3000);
        assert_eq!(worse(&once, &base), Vec::<String>::new());
        let few = differences(&base[..5], &base);
        let why = few[0].check().expect_err("few").to_string();
        assert!(why.starts_with("found 5 cases that a and the baseline both have"), "{why}");
        let both = Baseline { rows: [of("a", 1.0), of("b", 1.0)].concat(), seed: 1 };
        assert_eq!(both.judge_of("b").expect("it is there"), "b");
        assert_eq!(
            both.judge_of("c").expect_err("it is not").to_string(),
            "found startups a, b, expected c among them, or one startup"
        );
        assert_eq!(Baseline { rows: base, seed: 1 }.judge_of("c").expect("the only one"), "a");
    }

    #[test]
    fn differences_are_taken_case_by_case() {
        let base = [row("a", 0, 1.0, 5), row("a", 1, 9.0, 5), row("a", 2, 4.0, 5)];
        // The third case is missing, and the order is another.
        let ours = [row("b", 1, 9.5, 0), row("b", 0, 1.5, 0)];
        let all = differences(&ours, &base);
        let d = all.iter().find(|d| d.population.is_none()).expect("over all");
        assert_eq!((d.cases, d.startup.as_str(), d.baseline.as_str()), (2, "b", "a"));
        let of = |m| d.measures.iter().find(|x| x.0 == m).expect("known").1.mid;
        // Half a second is one of the oracle's times.
        assert!((of(Measure::Regret1MB) - 1.0).abs() < 1e-9 && (of(Measure::Lost) + 5.0).abs() < 1e-9);
    }
}
