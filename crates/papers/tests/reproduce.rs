//! Every experiment's file is valid, and the quick experiments give their recorded verdicts.

use slowstart_papers::experiment::{ALL, Experiment};
use slowstart_papers::{claim, page, run};
use std::path::Path;

#[test]
fn every_file_is_an_experiment() {
    for (id, text) in ALL {
        let e = Experiment::read(id, text).unwrap_or_else(|e| panic!("{e}"));
        assert!(e.claim.iter().all(|c| !c.why.is_empty()), "{id}: every verdict has a reason");
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

#[test]
fn quick_experiments_give_their_recorded_verdicts() {
    for e in Experiment::all().iter().filter(|e| e.quick) {
        let results = run::all(e, 1, false, || ()).unwrap_or_else(|e| panic!("{e}"));
        let judged = claim::judge(e, &results);
        for j in &judged {
            assert!(j.matches_record(), "{}: {}: {:?}, {}", e.id, j.claim.says, j.verdict, j.measured_text());
        }
        assert_eq!(page::html(e, &judged, &results), page::html(e, &judged, &results));
    }
}

#[test]
fn errors_name_file_and_value() {
    let head = "title = 't'\nfigure = 'f'\ncovers = ['H1']\nabout = 'a'\n";
    let study =
        "[[study]]\nname = 's'\npath = 'rate=1Mbit rtt=10ms'\nstartups = ['standard']\nduration = '1s'\n";
    let say = |text: &str| Experiment::read("x/y", text).expect_err(text).to_string();
    let claim =
        |more: &str| format!("{head}{study}[[claim]]\nsays = 'c'\nverdict = 'holds'\nwhy = 'w'\n{more}");
    assert!(say(&claim("")).contains("expected a measure"));
    assert!(say(&claim("measure = 'exits'\nat_most = 1.0")).contains("expected a measure"));
    assert!(say(&claim("measure = 'exit_s'\nof = ['standard']")).contains("expected at_least or at_most"));
    assert!(say(&claim("measure = 'exit_s'\nof = ['ess']\nat_most = 1.0")).contains("expected it there"));
    assert!(say(&claim("measure = 'exit_s'\nat_most = 1.0")).contains("expected a startup of a study"));
    let beside = |row: &str| {
        format!(
            "{head}[beside]\nsource = 's'\ncolumns = [{{ name = 'c', measure = 'exit_s' }}]\nrows = [{row}]\n{study}claim = []\n"
        )
    };
    assert!(
        say(&beside("['s', 'ess', [1.0]]").replace("claim = []\n", "")).contains("missing field `claim`")
    );
    let claimed = "[[claim]]\nsays = 'c'\nverdict = 'holds'\nwhy = 'w'\nmeasure = 'exit_s'\nof = ['standard']\nat_most = 1.0\n";
    let row = |row: &str| say(&beside(row).replace("claim = []\n", claimed));
    assert!(row("['s', 'ess', [1.0]]").contains("expected it to be run there"));
    assert!(row("['s', 'standard', [1.0, 2.0]]").contains("found 2 values, expected 1"));
    assert!(say(&format!("{head}nonsense = 1\n")).starts_with("scenarios/papers/x/y.toml: "));
}
