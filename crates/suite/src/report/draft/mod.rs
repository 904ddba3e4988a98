//! A stored report as an Internet-Draft, in the XML that `xml2rfc` reads (RFC 7991). Sections 5 to 7 are those of RFC 9743,
//! with its numbers.

mod commands;
mod front;
mod references;
mod xml;

use super::board::check_verdicts;
use super::{number, sentences, value_and_limit};
use crate::judge::Verdict;
use crate::run::{Entry, MORE_RUNS, Report, Settings, study_of};
use crate::scenario::{Criterion, Reference, SECTIONS, Scenario, Suite, sha256, title};
use front::is_name;
pub use front::{Date, Front};
use slowstart::{avoidance, registry};
use slowstart_report::study::shown;
use slowstart_study::measures::Measure;
use slowstart_study::scenario::StudyText;
use slowstart_study::stats::FEWEST_PAIRS;
use thiserror::Error;
use xml::{Page, anchor};

/// Why a report makes no draft.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DraftError {
    /// The name of the draft.
    #[error("--name: found {0:?}, expected a name such as draft-author-ccwg-startups-00")]
    Name(String),
    /// The report lacks what a reader needs to repeat it.
    #[error(
        "found no {0} in the report, which an older version or another program than the command line wrote; run the suite again"
    )]
    Lacks(&'static str),
    /// The suite is not that of the report.
    #[error("the suite: found {found}, expected {expected}, as the report has; --file takes its file")]
    Suite {
        /// That of the suite.
        found: String,
        /// That of the report.
        expected: String,
    },
    /// The suite has no such criterion.
    #[error("{scenario}: found the criterion {criterion:?}, which the suite does not have")]
    Criterion {
        /// The scenario of the report.
        scenario: String,
        /// Its criterion.
        criterion: String,
    },
    /// A verdict does not follow from its runs.
    #[error("{0}")]
    Verdict(String),
}

fn check(suite: &Suite, report: &Report, front: &Front) -> Result<(), DraftError> {
    if !is_name(&front.name) {
        return Err(DraftError::Name(front.name.clone()));
    }
    for (empty, what) in
        [(report.command.is_empty(), "command"), (report.suite_sha256.is_empty(), "hash of its suite")]
    {
        if empty {
            return Err(DraftError::Lacks(what));
        }
    }
    let whole = |name: &str, hash: &str| format!("{name} with SHA-256 {hash}");
    let (found, expected) = (whole(&suite.name, &suite.sha256), whole(&report.suite, &report.suite_sha256));
    if found != expected {
        return Err(DraftError::Suite { found, expected });
    }
    for e in &report.entries {
        let scenario = suite.scenarios.iter().find(|s| s.name == e.scenario && s.section == e.section);
        if !scenario.is_some_and(|s| s.criteria.iter().any(|c| c.text == e.criterion)) {
            return Err(DraftError::Criterion {
                scenario: e.scenario.clone(),
                criterion: e.criterion.clone(),
            });
        }
    }
    check_verdicts(report).map_err(DraftError::Verdict)
}

/// Returns the draft of a report. `stored` is the text of the report as it is stored, whose hash the draft names. The same
/// arguments give the same bytes.
///
/// # Errors
/// If the name is none of a draft, the suite is not that of the report, a verdict does not follow from its runs, or the
/// report lacks its command.
pub fn draft(suite: &Suite, report: &Report, stored: &str, front: &Front) -> Result<String, DraftError> {
    check(suite, report, front)?;
    let mut page = Page::new();
    page.open(
        "rfc",
        &[
            ("version", "3"),
            ("ipr", "trust200902"),
            ("submissionType", "IETF"),
            ("category", "info"),
            ("docName", &front.name),
            ("tocInclude", "true"),
            ("symRefs", "true"),
            ("sortRefs", "true"),
            ("xml:lang", "en"),
        ],
    );
    front::write(&mut page, report, front);
    page.open("middle", &[]);
    page.section("introduction", "Introduction", |p| introduction(p, report));
    page.section("run", "What Was Run", |p| what_was_run(p, suite, report, stored));
    page.section("method", "Method", |p| method(p, suite, report));
    page.section("summary", "Summary by Section of RFC 9743", |p| summary(p, report));
    for (chapter, name, parts) in CHAPTERS {
        page.section(&format!("rfc9743-{chapter}"), name, |p| {
            if parts.is_empty() {
                return sections(p, suite, report, chapter);
            }
            for (part, name) in parts {
                p.section(&format!("rfc9743-{part}"), name, |p| sections(p, suite, report, part));
            }
        });
    }
    page.section("not-shown", "What Is Not Shown", |p| not_shown(p, suite, report));
    page.section("security", "Security Considerations", |p| {
        p.t("This document reports measurements and specifies no protocol: it changes the security of none. What a receiver that \
             lies gains is in Section 7.6 (misbehaving nodes), as far as it was measured.");
    });
    page.section("iana", "IANA Considerations", |p| p.t("This document has no IANA actions."));
    page.close("middle");
    page.open("back", &[]);
    references::write(&mut page);
    page.section("commands", "Commands", |p| commands::write(p, report, stored, front));
    page.close("back");
    page.close("rfc");
    Ok(page.into_text())
}

/// A chapter of RFC 9743 that this document repeats: its number and title, and its parts with those.
type Chapter = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const CHAPTERS: [Chapter; 3] = [
    (
        "5",
        "Evaluation Criteria",
        &[
            ("5.1", "Single Algorithm Behavior"),
            ("5.2", "Mixed Algorithm Behavior"),
            ("5.3", "Other Criteria"),
        ],
    ),
    ("6", "General Use", &[]),
    ("7", "Special Cases", &[]),
];

fn introduction(p: &mut Page, report: &Report) {
    p.t("A connection begins on a path whose capacity it does not know. How it finds it is its startup: slow start as in RFC 5681, and its \
         successors. Sections 5 to 7 of RFC 9743 say what an evaluation of a congestion control covers; this document goes through them \
         one by one, under their own numbers.");
    // As the summary, without what says nothing of the startup.
    let entries = report.entries.iter().filter(|e| e.section != WITHIN).cloned().collect();
    p.list(&sentences(&Report { entries, ..report.clone() }));
    let not_met: Vec<String> = report.startups.iter().filter_map(|s| not_met(report, s)).collect();
    if !not_met.is_empty() {
        p.t("Not met, by scenario:");
        p.list(&not_met);
    }
    p.t("A criterion that is met is met on the paths and with the applications that were tested, and says nothing of others. Many limits \
         are what slow start had in the same place: \"meets\" then means no worse than slow start, which itself may lose much.");
}

/// What a startup does not meet, as a sentence; `None` if there is nothing.
fn not_met(report: &Report, startup: &str) -> Option<String> {
    let of = |e: &&Entry| e.startup == startup && e.verdict == Verdict::DoesNotMeet;
    let all: Vec<String> = report
        .entries
        .iter()
        .filter(of)
        .map(|e| {
            let (value, limit) = value_and_limit(e);
            format!("{} ({}), {}: {value}, limit {limit}", e.scenario, e.section, e.criterion)
        })
        .collect();
    (!all.is_empty()).then(|| format!("{startup}: {}.", all.join("; ")))
}

fn what_was_run(p: &mut Page, suite: &Suite, report: &Report, stored: &str) {
    let commit = report.commit.as_deref().map_or("of no known commit".to_string(), |c| format!("commit {c}"));
    let clock = if report.real_clock {
        "the real clock: another run gives other numbers"
    } else {
        "virtual time: the same command gives the same bytes on every machine"
    };
    let absent = || "not stated".to_string();
    let seed = report.seed.to_string();
    let program = format!("slowstart {}, {commit}", report.version);
    let population = format!("{} (SHA-256 of its file: {})", report.suite, report.suite_sha256);
    let result = format!("SHA-256 {}", sha256(stored.as_bytes()));
    let startups = report.startups.join("; ");
    let hashes: Vec<String> = report.entrants.iter().map(|(name, hash)| format!("{name}: {hash}")).collect();
    let hashes = hashes.join("; ");
    let version = report.stack_version.clone().unwrap_or_else(absent);
    let control = report.congestion_control.clone().unwrap_or_else(absent);
    let mut terms = vec![("Program", &*program), ("Suite", &*population)];
    if report.avoidance.is_empty() {
        terms.extend([
            ("Stack", &*startups),
            ("Version of the stack", &*version),
            ("Congestion control", &*control),
        ]);
    } else {
        terms.extend([("Startups", &*startups), ("Avoidance after the startup", &*report.avoidance)]);
    }
    terms.extend([("Engine", &*report.engine)]);
    if !report.stack.is_empty() && report.stack != report.engine {
        terms.push(("Stack that the engine ran", &*report.stack));
    }
    if !report.entrants.is_empty() {
        terms.push(("SHA-256 of what ran", &*hashes));
    }
    terms.extend([("Clock", clock), ("Seed", &*seed), ("Result", &*result)]);
    p.terms(terms);
    sources(p, report);
    p.t("The result is the file from which this document was made; it also has the value of each run. The suite has the scenarios: the \
         paths, applications and other flows. A path that the suite gives by a name alone is built into the program, so that the version \
         and commit of the program hold it.");
    named_paths(p, suite, report);
}

/// The sources of the startups and of the avoidance, as the registries have them. Another's, such as a plugin's, is not known.
fn sources(p: &mut Page, report: &Report) {
    let name = |of: &str| of.split(':').next().unwrap_or_default().to_string();
    let mut known: Vec<(&str, &str)> = Vec::new();
    if !report.avoidance.is_empty() {
        let startup = |s: &String| registry::named(&name(s)).map(|e| e.source);
        known.extend(report.startups.iter().filter_map(|s| Some((&**s, startup(s)?))));
        let own = avoidance::REGISTRY.iter().find(|e| e.name == name(&report.avoidance));
        known.extend(own.map(|e| (&*report.avoidance, e.source)));
    }
    if !known.is_empty() {
        p.t("Their sources, with the version that is implemented:");
        p.terms(known);
    }
}

/// What decides on each path that the suite gives by a name alone; of one that is drawn anew for each run, from the least to the
/// greatest value.
fn named_paths(p: &mut Page, suite: &Suite, report: &Report) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for s in suite.scenarios.iter().filter(|s| !s.study.path.contains('=')) {
        let new = rows.iter().all(|r| r[0] != s.study.path);
        if let Some(study) = study_of(s, &[], &settings(report)).ok().filter(|_| new) {
            let seeds: Vec<u64> = (0..study.runs).map(|run| study.run_seed(run)).collect();
            let of = shown(&study.path, &seeds);
            let queue = of.queue.unwrap_or_else(|| "without limit".into());
            rows.push(vec![s.study.path.clone(), of.rate, of.rtt, of.bdp, queue]);
        }
    }
    if !rows.is_empty() {
        p.table("paths", "Paths given by name", &["Path", "Rate", "RTT", "BDP", "Queue"], &rows);
    }
}

/// The settings that a result states.
fn settings(report: &Report) -> Settings {
    Settings { startups: Vec::new(), avoidance: "cubic".into(), seed: report.seed, runs: None }
}

fn method(p: &mut Page, suite: &Suite, report: &Report) {
    p.section("verdicts", "Verdicts", |p| {
        p.t("A scenario runs several times. A run of one number meets the same path, with the same random numbers, whatever is \
             evaluated. In each run the value of a measure is compared with its limit: a number, or a factor of what a reference had in \
             the same run, plus an allowance. Factors and allowances are the suite's own, unless the source of a scenario has them.");
        p.t(&format!(
            "The excess of a run is its value less its limit (with >=, its limit less its value), so that what is positive is worse. A \
             criterion is met if the whole 95 % confidence interval of the median excess is at most zero, not met if all of it is \
             above zero, and undecided otherwise. Fewer than {FEWEST_PAIRS} runs decide nothing. A transfer that never completes, where \
             slow start completes, is not met whatever the others do."
        ));
        if !report.real_clock && !report.command.iter().any(|w| w == "--runs") {
            p.t(&format!(
                "A startup with an undecided criterion runs the scenario twice as often, and again, up to {MORE_RUNS} times the runs that \
                 the suite states. The interval is not corrected for that, nor for the number of criteria; where runs were added, the \
                 tables also have the verdict of the first runs alone."
            ));
        } else {
            p.t("No interval is corrected for the number of criteria.");
        }
        p.t("Tables have the median value; in brackets the least and the most of any run; the median limit, or, where that lies on \
             the other side of the median value than the runs say, the value less the median excess (with >=, plus it); the \
             interval of the median excess; and the verdict with the number of runs. \"Worse than hystart\" is what meets a limit \
             that refers to standard, and would not meet the same one of hystart; \"undecided against hystart\" is where the runs \
             leave that open. Below each table is the command that makes its numbers.");
    });
    p.section("references-of-limits", "References of Limits", |p| {
        let about = if report.avoidance.is_empty() {
            [
                ("standard", "the kernel's Reno, with slow start as in RFC 5681, in the same place"),
                (
                    "hystart",
                    "the kernel's CUBIC as in RFC 9438, with the HyStart of Linux, in the same place",
                ),
            ]
        } else {
            [
                ("standard", "slow start as in RFC 5681"),
                ("hystart", "HyStart as Linux has it, today's default"),
            ]
        };
        let used = |name: &str| {
            let of = |c: &Criterion| c.reference.is_some_and(|(_, r): (f64, Reference)| r.name() == name);
            suite.scenarios.iter().flat_map(|s| &s.criteria).any(of)
        };
        if about.iter().any(|(name, _)| used(name)) {
            p.terms(about.into_iter().filter(|(name, _)| used(name)));
        } else {
            p.t("No limit refers to another startup.");
        }
    });
    p.section("measures", "Measures", |p| {
        let used = |m: &Measure| {
            report.entries.iter().any(|e| Criterion::parse(&e.criterion).is_some_and(|c| c.measure == *m))
        };
        if report.entries.is_empty() {
            p.t("Nothing was measured.");
        } else {
            p.terms(Measure::of_rows().filter(used).map(|m| (m.name(), m.entry().about)));
        }
    });
}

/// The section on fairness within the proposed algorithm.
const WITHIN: &str = "5.1.4";

/// A line for each section and startup: how many criteria have each verdict.
fn summary(p: &mut Page, report: &Report) {
    let verdicts = [Verdict::Meets, Verdict::DoesNotMeet, Verdict::Undecided, Verdict::NotObserved];
    let several = report.startups.len() > 1;
    let row = |section: &str, startup: &str, of: &dyn Fn(&Entry) -> bool| {
        let own = |e: &&Entry| e.startup == *startup && of(e);
        let count = |v| report.entries.iter().filter(own).filter(|e| e.verdict == v).count();
        let counts = verdicts.map(count);
        let mut cells = vec![section.to_string()];
        cells.extend(several.then(|| startup.to_string()));
        cells.extend(counts.map(|n| n.to_string()));
        (counts.iter().sum::<usize>() > 0).then_some(cells)
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (section, _) in SECTIONS.iter().filter(|s| s.0 != WITHIN) {
        let of = |s: &String| row(section, s, &|e| e.section == *section);
        rows.extend(report.startups.iter().filter_map(of));
    }
    rows.extend(report.startups.iter().filter_map(|s| row("All", s, &|e| e.section != WITHIN)));
    let mut head = vec!["Section"];
    head.extend(several.then_some("Startup"));
    head.extend(["Meets", "Does not meet", "Undecided", "Not observed"]);
    if rows.is_empty() {
        p.t("No criterion that counts was judged.");
    } else {
        p.table("by-section", "Criteria by verdict", &head, &rows);
    }
    p.t("A section of RFC 9743 without a line was not evaluated; its section below says why.");
}

/// The sections of a chapter of RFC 9743, one by one.
fn sections(p: &mut Page, suite: &Suite, report: &Report, chapter: &str) {
    let within = |s: &&(&str, &str)| s.0.strip_prefix(chapter).is_some_and(|rest| rest.starts_with('.'));
    for (section, name) in SECTIONS.iter().filter(within) {
        p.section(&format!("rfc9743-{section}"), name, |p| {
            // The other flows of a study are the same whatever startup is judged.
            if *section == WITHIN && suite.scenarios.iter().any(|s| s.section == WITHIN) {
                p.t("Fairness within one algorithm was not evaluated: the other flows of what follows run the startup that its \
                     conditions name (\"against\"), whatever is judged. The summary does not count it.");
            }
            for s in suite.scenarios.iter().filter(|s| s.section == *section) {
                scenario(p, s, report);
            }
            for g in suite.gaps.iter().filter(|g| g.section == *section) {
                p.t(&format!("Not evaluated: {}", g.why));
            }
            let of_suite = suite.scenarios.iter().map(|s| &s.section).chain(suite.gaps.iter().map(|g| &g.section));
            if !of_suite.into_iter().any(|s| s == section) {
                p.t(&format!("Not evaluated: nothing in {} is of this section.", suite.name));
            }
        });
    }
}

fn scenario(p: &mut Page, s: &Scenario, report: &Report) {
    // The table of contents has the sections of RFC 9743, and so fits a page.
    p.section_with(&[("anchor", &anchor("scenario", &s.name)), ("toc", "exclude")], &s.name, |p| {
        p.t(&s.question);
        let conditions = conditions(&s.study);
        let keys: Vec<String> = s.numbers.keys().map(|key| format!("Source of {key}")).collect();
        let numbers = keys.iter().map(String::as_str).zip(s.numbers.values().map(String::as_str));
        let first = [("Source", &*s.source), ("Conditions", &*conditions)];
        p.terms(first.into_iter().chain(numbers).chain([("Not tested", &*s.not_tested)]));
        let own: Vec<&Entry> = report.entries.iter().filter(|e| e.scenario == s.name).collect();
        if let Some(l) = report.left_out.iter().find(|l| l.scenario == s.name) {
            p.t(&format!("Not run: {}.", l.why.trim_end_matches('.')));
        } else if own.is_empty() {
            p.t("Not run: the command left it out.");
        }
        if own.is_empty() {
            return;
        }
        let several = report.startups.len() > 1;
        let mut head = vec!["Criterion"];
        head.extend(several.then_some("Startup"));
        head.extend(["Value", "Limit", "Excess", "Verdict"]);
        let rows: Vec<Vec<String>> = own.iter().map(|e| row(e, several)).collect();
        p.table(&anchor("results", &s.name), &s.name, &head, &rows);
        commands::code(p, &[commands::alone(report, &s.name)]);
    });
}

/// What a study sets, as its keys say it.
fn conditions(study: &StudyText) -> String {
    let keys = StudyText::KEYS.iter().filter(|k| k.name != "runs");
    let set = keys.map(|k| (k.name, (k.parts)(study))).filter(|(_, parts)| !parts.is_empty());
    set.map(|(name, parts)| format!("{name} {}", parts.join(", "))).collect::<Vec<_>>().join("; ")
}

fn row(e: &Entry, several: bool) -> Vec<String> {
    let (value, limit) = value_and_limit(e);
    let seen = || e.values.iter().flatten().copied();
    let ends = seen().reduce(f64::min).zip(seen().reduce(f64::max));
    let range = ends
        .map_or(String::new(), |(least, most)| format!(" [{}, {}]", number(Some(least)), number(Some(most))));
    let excess = e.excess.map_or("-".into(), |[low, high]| {
        // An excess of a transfer that never completes has no number.
        let end = |v: f64| if v.abs() < 1e299 { number(Some(v)) } else { "no end".into() };
        format!("{} to {}", end(low), end(high))
    });
    let runs = e.values.len();
    let worse = match e {
        e if e.is_worse_than_default() => "; worse than hystart",
        e if e.is_open_against_default() => "; undecided against hystart",
        _ => "",
    };
    let planned = e.planned_in_words().map_or(String::new(), |p| format!("; {p}"));
    let decide = e.runs_to_decide.map_or(String::new(), |n| format!("; about {n} would decide"));
    let unseen = e.values.iter().filter(|v| v.is_none()).count() as u32;
    let unseen = unseen.saturating_sub(e.never + e.broken);
    let unseen = if unseen > 0 { format!("; no value in {unseen}") } else { String::new() };
    let verdict = format!(
        "{} ({runs} {}{planned}{decide}{unseen}){worse}",
        e.verdict.word(),
        if runs == 1 { "run" } else { "runs" }
    );
    let mut cells = vec![e.criterion.clone()];
    cells.extend(several.then(|| e.startup.clone()));
    cells.extend([value + &range, limit, excess, verdict]);
    cells
}

fn not_shown(p: &mut Page, suite: &Suite, report: &Report) {
    let what = if report.real_clock {
        "What ran, ran over emulated paths. No number here was measured on the Internet."
    } else {
        "What ran, ran at virtual time over simulated paths. No number here was measured on the Internet."
    };
    p.t(what);
    let mut all: Vec<String> = suite
        .gaps
        .iter()
        .map(|g| format!("Section {} of RFC 9743 ({}): {}", g.section, title(&g.section), g.why))
        .collect();
    all.extend(report.left_out.iter().map(|l| format!("{}: not run: {}", l.scenario, l.why)));
    let unseen = report.entries.iter().filter(|e| e.verdict == Verdict::NotObserved);
    all.extend(unseen.map(|e| format!("{}, {}: {} was not observed", e.scenario, e.startup, e.criterion)));
    all.extend(report.notes.iter().cloned());
    p.list(&all);
    p.t("What a scenario does not test is in its own section.");
}
