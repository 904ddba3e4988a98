//! Every experiment's file is valid, and the quick experiments give their recorded verdicts.

use slowstart_papers::catalogue::ALL;
use slowstart_papers::claim::Origin;
use slowstart_papers::experiment::{Experiment, ExperimentError};
use slowstart_papers::result::RunResult;
use slowstart_papers::statistic::Statistic;
use slowstart_papers::{judge, page, run};
use std::path::Path;

#[test]
fn every_file_is_an_experiment() {
    for (id, text) in ALL {
        Experiment::read(id, text).unwrap_or_else(|e| panic!("{e}"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/papers");
    for paper in std::fs::read_dir(&root).expect("scenarios/papers").flatten() {
        for file in std::fs::read_dir(paper.path()).expect("a paper's folder").flatten() {
            let path = file.path();
            let id = path.strip_prefix(&root).expect("below it").with_extension("");
            assert!(ALL.iter().any(|(known, _)| Path::new(known) == id), "{} is not in ALL", id.display());
        }
    }
}

/// Numbers in a text, such as `0.35`, `12,334` or `2`.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
    parts.map(|n| n.trim_matches(['.', ','])).filter(|n| n.starts_with(|c: char| c.is_ascii_digit()))
}

/// A measured figure in a reason is `{name}`, computed from the runs. Any other number in it must be part of
/// the claim or of the experiment's definition, and no measured figure is a word ("a fifth").
#[test]
fn reasons_have_no_typed_figures() {
    const WORDS: [&str; 10] =
        ["third", "thirds", "quarter", "fifth", "sixth", "seventh", "eighth", "tenth", "tenths", "hundredth"];
    let mut wrong = Vec::new();
    for (id, text) in ALL {
        let e = Experiment::read(id, text).unwrap_or_else(|e| panic!("{e}"));
        let definition =
            format!("{} {} {} {:?} {:?} {:?}", e.title, e.figure, e.about, e.ours, e.study, e.cloud);
        for c in &e.claim {
            let given = format!(
                "{definition} {} {} {:?} {:?} {:?}",
                c.says, c.claimed, c.measure, c.at_least, c.at_most
            );
            let known: Vec<&str> = numbers(&given).collect();
            let literal: String =
                c.why.split('{').map(|part| part.rsplit('}').next().unwrap_or("")).collect();
            wrong.extend(
                numbers(&literal).filter(|n| !known.contains(n)).map(|n| format!("{id}: {n}: {}", c.why)),
            );
            // A study may be named by what is given ("a quarter of the queue").
            let texts = || [&c.says, &c.claimed].into_iter().chain(&c.studies);
            let word = |w: &&&str| literal.contains(**w) && !texts().any(|t| t.contains(**w));
            wrong.extend(WORDS.iter().filter(word).map(|w| format!("{id}: {w}: {}", c.why)));
        }
    }
    assert!(wrong.is_empty(), "typed figures in reasons:\n{}", wrong.join("\n"));
}

/// The index and the search show a claim without the one before it.
#[test]
fn each_claim_stands_alone() {
    for (id, text) in ALL {
        let e = Experiment::read(id, text).unwrap_or_else(|e| panic!("{e}"));
        for c in &e.claim {
            assert!(
                c.says.starts_with(|first: char| first != '.') && !c.says.contains("..."),
                "{id}/{}: {}",
                c.id,
                c.says
            );
        }
    }
}

/// The NewReno of the ESS paper is ns-3's, which adds a segment for each ACK.
#[test]
fn newreno_counts_acks() {
    for (id, text) in ALL {
        let e = Experiment::read(id, text).unwrap_or_else(|e| panic!("{e}"));
        let cells = e.cells(1, false).unwrap_or_else(|e| panic!("{e}"));
        let counts_acks = |study: &str| {
            let set = cells.iter().find(|c| c.study == study).map(|c| c.text.set.clone()).unwrap_or_default();
            format!("{set:?}").contains(r#""growth": "ack""#)
        };
        let newreno =
            |c: &&slowstart_papers::claim::Claim| c.origin == Origin::Paper && c.id.contains("newreno");
        for c in e.claim.iter().filter(newreno) {
            for study in e.studies_of(c, &cells) {
                let own = c.of.iter().any(|of| of == "standard").then(|| study.clone());
                let other = [&c.versus, &c.less].into_iter().flatten().any(|of| of == "standard");
                let other = other.then(|| c.study_of_other(&study));
                assert!(own.is_some() || other.is_some(), "{id}/{}: no standard startup", c.id);
                for study in own.iter().chain(&other) {
                    assert!(counts_acks(study), "{id}/{}: {study}: expected growth = \"ack\"", c.id);
                }
            }
        }
    }
}

/// Early, at the choke point and late are shares of the same runs: their verdicts cannot contradict each other.
#[test]
fn complements_are_shares_of_the_same_runs() {
    for (id, text) in ALL {
        let e = Experiment::read(id, text).unwrap_or_else(|e| panic!("{e}"));
        let kind = |c: &slowstart_papers::claim::Claim| {
            use slowstart_papers::measure::Measure::{HeuristicIs, Is};
            match (c.measure, c.take) {
                (Some(Is(_)), Statistic::Share) => Some(false),
                (Some(HeuristicIs(_)), Statistic::Share) => Some(true),
                _ => None,
            }
        };
        let printed = |c: &&slowstart_papers::claim::Claim| {
            c.origin == Origin::Paper && c.printed.is_some() && kind(c).is_some()
        };
        let all: Vec<_> = e.claim.iter().filter(printed).collect();
        for (i, a) in all.iter().enumerate() {
            for b in all[..i].iter().filter(|b| b.of == a.of && kind(b) == kind(a)) {
                assert_eq!(a.studies, b.studies, "{id}: {} and {}", a.id, b.id);
            }
        }
    }
}

/// All in one pool; each is judged by its own runs, in their order.
#[test]
fn quick_experiments_give_their_recorded_verdicts() {
    let quick: Vec<&Experiment> = Experiment::all().iter().filter(|e| e.quick).collect();
    let mut done = Vec::new();
    let judge = |e: &'static Experiment, results: Vec<RunResult>| {
        let judged = judge::judge(e, &results);
        for j in &judged {
            assert!(j.matches_record(), "{}: {}: {:?}, {}", e.id, j.claim.says, j.verdict, j.measured_text());
        }
        let page = page::html(e, &judged, &results);
        assert_eq!(page, page::html(e, &judged, &results));
        for j in &judged {
            let reason = j
                .reason
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;");
            assert!(page.contains(&reason) && !reason.contains('{'), "{}: {reason}", e.id);
        }
        done.push(&e.id);
        Ok::<(), ExperimentError>(())
    };
    run::several(&quick, 1, false, || (), judge).unwrap_or_else(|e| panic!("{e}"));
    assert!(done.into_iter().eq(quick.iter().map(|e| &e.id)));
}

/// A flow beside the one studied that has its startup has its avoidance too; another has its own.
#[test]
fn both_flows_have_one_avoidance() {
    let avoidance = |against: &str| {
        let text = format!(
            "title = 't'\nfigure = 'f'\ncovers = ['H1']\nabout = 'a'\nclaim = []\n[[study]]\nname = 's'\npath = 'rate=5Mbit rtt=20ms'\n\
             startups = ['standard']\nagainst = ['{against}']\navoidance = 'reno'\nduration = '2s'\n"
        );
        let e = Experiment::read("x/y", &text).unwrap_or_else(|e| panic!("{e}"));
        let study = e.cells(1, false).expect("cells")[0].study().expect("as written");
        study.against[0].contender.avoidance_name.clone()
    };
    assert_eq!(avoidance("{startup}@1s").as_deref(), Some("reno"));
    assert_eq!(avoidance("cubic@1s").as_deref(), Some("cubic"));
}

/// Where a study adds a flow beside the one studied, a chart of each startup has a line for both.
#[test]
fn both_flows_are_drawn() {
    let text = |against: &str| {
        format!(
            "title = 't'\nfigure = 'f'\ncovers = ['H1']\nabout = 'a'\n[[study]]\nname = 's'\npath = 'rate=5Mbit rtt=20ms ack_rate=5Mbit'\n\
             startups = ['standard', 'hystart']\nagainst = [{against}]\ncharts = ['window', 'threshold']\nduration = '2s'\n\
             [[claim]]\nid = 'c'\nsays = 'c'\nverdict = 'holds'\nmeasure = 'timeouts'\nof = ['standard']\nat_most = 1.0\n"
        )
    };
    let drawn = |against: &str| {
        let e = Experiment::read("x/y", &text(against)).unwrap_or_else(|e| panic!("{e}"));
        let results = run::all(&e, 1, false, || ()).unwrap_or_else(|e| panic!("{e}"));
        let alone = results.iter().all(|r| r.samples.iter().all(|s| s.flow == 0));
        assert!(alone, "the measures of a run are those of the flow studied");
        let page = page::html(&e, &judge::judge(&e, &results), &results);
        let named = |flow: &str| page.matches(flow).count();
        (results[0].beside.len(), named("first flow"), named("second flow"))
    };
    // Two startups, each with two charts.
    let (beside, first, second) = drawn("'{startup}@1s'");
    assert_eq!((beside, first), (1, second));
    assert!(second >= 4, "{second}");
    // A flow in the other direction is not drawn.
    assert_eq!(drawn("'cubic@1s/up'"), (0, 0, 0));
    assert_eq!(drawn(""), (0, 0, 0));
}

#[test]
fn errors_name_file_and_value() {
    let head = "title = 't'\nfigure = 'f'\ncovers = ['H1']\nabout = 'a'\n";
    let study =
        "[[study]]\nname = 's'\npath = 'rate=1Mbit rtt=10ms'\nstartups = ['standard']\nduration = '1s'\n";
    let say = |text: &str| Experiment::read("x/y", text).expect_err(text).to_string();
    let claim = |more: &str| {
        format!("{head}{study}[[claim]]\nid = 'c'\nsays = 'c'\nverdict = 'holds'\nwhy = 'w'\n{more}")
    };
    assert!(say(&claim("")).contains("expected a measure"));
    assert!(say(&claim("measure = 'exits'\nat_most = 1.0")).contains("expected a measure"));
    assert!(
        say(&claim("measure = 'exit_time_s'\nof = ['standard']")).contains("expected at_least or at_most")
    );
    assert!(
        say(&claim("measure = 'exit_time_s'\nof = ['ess']\nat_most = 1.0")).contains("expected it there")
    );
    assert!(say(&claim("measure = 'exit_time_s'\nat_most = 1.0")).contains("expected a startup of a study"));
    let beside = |row: &str| {
        format!(
            "{head}[beside]\nsource = 's'\ncolumns = [{{ name = 'c', measure = 'exit_time_s' }}]\nrows = [{row}]\n{study}claim = []\n"
        )
    };
    assert!(
        say(&beside("['s', 'ess', [1.0]]").replace("claim = []\n", "")).contains("missing field `claim`")
    );
    let claimed = "[[claim]]\nid = 'c'\nsays = 'c'\nverdict = 'holds'\nwhy = 'w'\nmeasure = 'exit_time_s'\nof = ['standard']\nat_most = 1.0\n";
    let row = |row: &str| say(&beside(row).replace("claim = []\n", claimed));
    assert!(row("['s', 'ess', [1.0]]").contains("expected it to be run there"));
    assert!(row("['s', 'standard', [1.0, 2.0]]").contains("found 2 values, expected 1"));
    assert!(say(&format!("{head}nonsense = 1\n")).starts_with("scenarios/papers/x/y.toml: "));
}
