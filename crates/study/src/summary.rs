//! Summaries of the rows of one path, one for each startup.

use crate::measures::{LOSS_MARGIN, Measure};
use crate::price::RARE;
use crate::record::{Class, Param, Row};
use crate::scenario::{Contender, params};
use crate::stats::{Median, median};
use slowstart::registry;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The runs of one startup with the same parameters and settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary<'a> {
    /// Name, parameters and settings of the startup: `search:drain=off,threshold=0.5@iw=20`.
    pub label: String,
    /// Its runs, at least one, in the order of the rows.
    pub rows: Vec<&'a Row>,
}

/// Returns the label of a startup: its name, the parameters that differ from those in the registry, and its own
/// settings of the stack.
pub fn label(row: &Row) -> String {
    label_of(&row.startup, &row.params, &row.settings)
}

/// The label of a startup of a study.
pub fn label_of_contender(c: &Contender) -> String {
    label_of(&c.startup_name, &c.params, &c.settings())
}

/// The label of a startup with these parameters and settings.
pub fn label_of(startup: &str, of: &BTreeMap<String, Param>, settings: &BTreeMap<String, String>) -> String {
    let own = registry::named(startup).map(|e| params(&e.algorithm)).unwrap_or_default();
    let mut out = startup.to_string();
    let mut sign = ':';
    for (key, value) in of.iter().filter(|(k, v)| own.get(*k) != Some(v)) {
        let done = match value {
            Param::Number(x) => write!(out, "{sign}{key}={x}"),
            Param::Word(w) => write!(out, "{sign}{key}={w}"),
        };
        done.expect("a String takes everything");
        sign = ',';
    }
    sign = '@';
    for (key, value) in settings {
        write!(out, "{sign}{key}={value}").expect("a String takes everything");
        sign = ',';
    }
    out
}

/// True if two rows are of the same startup with the same parameters and settings.
pub fn is_same_startup(a: &Row, b: &Row) -> bool {
    (&a.startup, &a.params, &a.settings) == (&b.startup, &b.params, &b.settings)
}

/// `rows` by startup, parameters and settings, in order of first appearance.
pub fn summarise(rows: &[Row]) -> Vec<Summary<'_>> {
    let mut out: Vec<Summary> = Vec::new();
    for row in rows {
        match out.iter_mut().find(|s| is_same_startup(s.rows[0], row)) {
            Some(s) => s.rows.push(row),
            None => out.push(Summary { label: label(row), rows: vec![row] }),
        }
    }
    out
}

impl Summary<'_> {
    /// The median over the runs that have a value, and how many have.
    pub fn typical(&self, measure: Measure) -> Option<(Median, usize)> {
        let values: Vec<f64> = self.rows.iter().filter_map(|r| measure.of(r)).collect();
        Some((median(&values)?, values.len()))
    }

    /// The median if every run has a value. Medians of fewer are not compared: the runs left out are the
    /// worst.
    pub fn of_all_runs(&self, measure: Measure) -> Option<Median> {
        self.typical(measure).filter(|&(_, runs)| runs == self.rows.len()).map(|(m, _)| m)
    }

    /// Runs in which a transfer of a given size did not complete, or an object never came.
    pub fn unfinished(&self) -> usize {
        self.rows.iter().filter(|r| r.is_unfinished()).count()
    }

    /// The packets lost during startup, as a table shows them, with `text` for the median: `0 (10/30)` where
    /// ten runs of thirty lose more than the median tells, `0 (?3/30)` where three do not show it since the
    /// transfer ended before the startup did, and `not shown` where most do not.
    pub fn lost(&self, text: impl Fn(&Median) -> String) -> String {
        let of = self.rows.len();
        let lost = |r: &Row| Measure::StartupLost.of(r);
        let shown = |r: &&&Row| lost(r).is_some_and(|x| x > LOSS_MARGIN || r.class != Class::None);
        let unseen = of - self.rows.iter().filter(shown).count();
        if 2 * unseen > of {
            return "not shown".to_string();
        }
        let Some((middle, _)) = self.typical(Measure::StartupLost) else { return "-".to_string() };
        let pays = self.rows.iter().filter(|r| lost(r).is_some_and(|x| x > LOSS_MARGIN)).count();
        match (pays, unseen) {
            _ if middle.mid > LOSS_MARGIN => text(&middle),
            (pays, _) if pays > 0 => format!("{} ({pays}/{of})", text(&middle)),
            (_, unseen) if unseen * RARE >= of => format!("{} (?{unseen}/{of})", text(&middle)),
            _ => text(&middle),
        }
    }

    /// The exit classes and in how many runs each, most frequent first.
    pub fn classes(&self) -> Vec<(Class, usize)> {
        let count = |class| self.rows.iter().filter(|r| r.class == class).count();
        let mut shares: Vec<_> =
            Class::ALL.map(|c| (c, count(c))).into_iter().filter(|&(_, n)| n > 0).collect();
        shares.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{rows, with};

    #[test]
    fn parameters_make_another_startup() {
        let mut rows = rows("search", &[7.0, 7.1]);
        rows[1].params.insert("threshold".into(), Param::Number(0.5));
        rows[1].params.insert("drain".into(), Param::Word("off".into()));
        let labels: Vec<_> = summarise(&rows).into_iter().map(|s| s.label).collect();
        assert_eq!(labels, ["search", "search:drain=off,threshold=0.5"]);
        rows[1].settings = [("iw".into(), "20".into()), ("pacing".into(), "on".into())].into();
        assert_eq!(summarise(&rows)[1].label, "search:drain=off,threshold=0.5@iw=20,pacing=on");
    }

    #[test]
    fn a_cell_of_losses_shows_a_mixture_and_what_is_not_shown() {
        let of = |losing: usize, unended: usize| {
            let mut all = rows("a", &[7.0; 30]);
            all[..losing].iter_mut().for_each(|r| r.startup_lost_packets = Some(3000));
            all[30 - unended..].iter_mut().for_each(|r| r.class = Class::None);
            summarise(&all)[0].lost(|m| m.mid.to_string())
        };
        let found = [of(0, 0), of(10, 0), of(20, 0), of(0, 3), of(0, 1), of(0, 20), of(29, 1)];
        assert_eq!(found, ["0", "0 (10/30)", "3000", "0 (?3/30)", "0", "not shown", "3000"]);
    }

    #[test]
    fn absent_values_are_left_out() {
        let mut all = rows("a", &[7.0, 8.0]);
        all[0].bdp_bytes = 0;
        all[1].exit = None;
        let s = &summarise(&all)[0];
        assert_eq!(s.typical(Measure::ExitWindow), None);
        assert_eq!(s.typical(Measure::ExitTime).map(|(m, n)| (m.mid, n)), Some((1.5, 1)));
        let early = with(rows("a", &[7.0]), |r| r.class = Class::Early);
        assert_eq!(summarise(&early)[0].classes(), [(Class::Early, 1)]);
    }
}
