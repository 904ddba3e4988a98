//! What is written conforms to the JSON Schemas, and CSV has their columns.

use crate::common::{folder, succeeds};
use crate::conform::conform;
use serde_json::Value;
use slowstart_league::game::{GAME_SCHEMA, GameRow};
use slowstart_replay::advise::Advice;
use slowstart_replay::fit::{self, FIT_SCHEMA};
use slowstart_replay::transfer::{self, TRANSFER_SCHEMA, Transfer};
use slowstart_study::columns::columns;
use slowstart_study::diff::{LINE_SCHEMA, Line};
use slowstart_study::record::{
    EVENT_SCHEMA, EventRow, OfRun, ROW_SCHEMA, Row, SAMPLE_SCHEMA, Sample as SampleOfRun,
};
use slowstart_study::schema::{fields, hold, text};
use slowstart_suite::report::REPORT_SCHEMA;
use slowstart_suite::run::Report;
use slowstart_trial::{ConnectionRow, Pooled, TrialResult};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The files of the schemas are what the types and their doc comments say. `SLOWSTART_BLESS=1` writes them.
#[test]
fn the_schemas_are_those_of_the_types() {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let sample = text::<OfRun<'_, SampleOfRun>>("sample", &[]);
    let event = text::<OfRun<'_, EventRow>>("event", &[]);
    hold(&text::<Row>("row", fields::<Row>()), &crates.join("study/schema/row.json"));
    hold(&sample, &crates.join("study/schema/sample.json"));
    hold(&event, &crates.join("study/schema/event.json"));
    hold(&text::<Line>("diff", &[]), &crates.join("study/schema/diff.json"));
    hold(&text::<Transfer>("transfer", fields::<Transfer>()), &crates.join("replay/schema/transfer.json"));
    hold(&text::<transfer::Sample>("replay-sample", &[]), &crates.join("replay/schema/sample.json"));
    hold(&text::<fit::Row<'_>>("fit", &[]), &crates.join("replay/schema/fit.json"));
    hold(&text::<Advice>("advice", &[]), &crates.join("replay/schema/advice.json"));
    hold(&text::<GameRow>("game", fields::<GameRow>()), &crates.join("league/schema/game.json"));
    hold(&text::<Report>("report", fields::<Report>()), &crates.join("suite/schema/report.json"));
    hold(&text::<ConnectionRow<'_>>("connection", &[]), &crates.join("trial/schema/connection.json"));
    hold(&text::<TrialResult<'_>>("result", &[]), &crates.join("trial/schema/result.json"));
    hold(&text::<Pooled>("pooled", &[]), &crates.join("trial/schema/pooled.json"));
}

fn properties(schema: &str) -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(schema).expect("a schema in JSON");
    schema["properties"].as_object().expect("properties").keys().cloned().collect()
}

/// With `--harm` rows say what a CUBIC flow beside each startup got, in the first ten runs, in each form; without it
/// they do not.
#[test]
fn harm_is_a_column_of_rows() {
    let args =
        ["compare", "rate=10Mbit rtt=40ms queue=1bdp", "--startup", "hystart,standard", "--size", "1MB"];
    let with = |more: &[&str]| succeeds(&[&args[..], &["--runs", "12", "--quiet"], more].concat());
    let got = |text: &str| -> Vec<Option<f64>> {
        conform(text, ROW_SCHEMA);
        let row = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["got_percent"].as_f64();
        text.lines().map(row).collect()
    };
    assert_eq!(got(&with(&["--json"])), [None; 24]);
    let printed = with(&["--json", "--harm"]);
    let all = got(&printed);
    for runs in all.chunks(12) {
        assert!(runs[..10].iter().flatten().filter(|g| (0.0..=110.0).contains(*g)).count() == 10, "{runs:?}");
        assert_eq!(runs[10..], [None, None], "{runs:?}");
    }
    let out = folder("rows-harm");
    with(&["--harm", "--out", out.join("made").to_str().expect("UTF-8")]);
    let file = std::fs::read_to_string(out.join("made/results.jsonl")).expect("rows");
    assert_eq!(file, printed);
    let csv = with(&["--csv", "--harm"]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let at = reader.headers().expect("a header").iter().position(|h| h == "got_percent").expect("the column");
    let cells: Vec<Option<f64>> = reader.records().map(|r| r.expect("a row")[at].parse().ok()).collect();
    assert_eq!(cells, all);
}

/// Rows with marks, objects of a browser, several connections, drawn values, other flows, harm, several links; samples with internal values; events
/// with reasons: between them every property of the schemas occurs.
#[test]
fn rows_samples_and_events_conform() {
    let (mut rows, mut samples, mut events) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (i, args) in [
        &["geo", "--size", "300kB", "--harm"][..],
        &[
            "rate=20Mbit rtt=20ms mark=1ms",
            "--set",
            "ecn=accecn",
            "--against",
            "cubic@-1s",
            "--size",
            "500kB",
        ],
        &["cable", "--app", "browser", "--duration", "2s"],
        &["cable", "--app", "connections:2", "--size", "500kB"],
        &["rate=10Mbit rtt=40ms loss=2% then=\"rate=20Mbit rtt=9ms\"", "--size", "500kB"],
    ]
    .into_iter()
    .enumerate()
    {
        let dir = folder(&format!("conform-{i}"));
        let out = dir.to_str().expect("UTF-8");
        let common = ["--startup", "hystart,standard,bbr,bbr@iw=4", "--runs", "2", "--json", "--out", out];
        let printed = succeeds(&[&["compare"], args, &common].concat());
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).expect(name);
        assert_eq!(printed, read("results.jsonl"));
        rows.extend(conform(&printed, ROW_SCHEMA));
        samples.extend(conform(&read("samples.jsonl"), SAMPLE_SCHEMA));
        events.extend(conform(&read("events.jsonl"), EVENT_SCHEMA));
    }
    assert_eq!(rows, properties(ROW_SCHEMA));
    assert_eq!(samples, properties(SAMPLE_SCHEMA));
    assert_eq!(events, properties(EVENT_SCHEMA));
}

#[test]
fn rows_of_replay_and_league_conform() {
    let dir = folder("conform-replay");
    let out = dir.to_str().expect("UTF-8");
    let capture = "scenarios/captures/download.pcapng.gz";
    let printed =
        succeeds(&["replay", capture, "--startup", "hystart,search", "--json", "--fork", "--out", out]);
    conform(&printed, TRANSFER_SCHEMA);
    let samples = std::fs::read_to_string(dir.join("samples.jsonl")).expect("samples");
    conform(&samples, transfer::SAMPLE_SCHEMA);
    let fitted = succeeds(&["fit", capture, "--json"]);
    conform(&fitted, FIT_SCHEMA);
    let csv = succeeds(&["fit", capture, "--csv"]);
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = csv.headers().expect("a header").iter().map(str::to_string).collect();
    let record = csv.records().next().expect("a row").expect("a record");
    let row: Value = serde_json::from_str(&fitted).expect("JSON");
    for (column, (name, text)) in columns(FIT_SCHEMA).iter().zip(names.iter().zip(&record)) {
        assert_eq!((name, text), (&column.name, column.cell(&row).text().as_str()));
    }
    let league = ["league", "hystart", "--population", "lte", "--runs", "2", "--json"];
    conform(&succeeds(&league), GAME_SCHEMA);
}

#[test]
fn a_report_of_the_suite_conforms() {
    let dir = folder("conform-suite");
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("report.json");
    let name = file.to_str().expect("UTF-8");
    succeeds(&[
        "suite",
        "run",
        "--startup",
        "standard",
        "--scenario",
        "short-1MB",
        "--runs",
        "2",
        "--json",
        name,
    ]);
    let report = std::fs::read_to_string(&file).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(conform(&report.to_string(), REPORT_SCHEMA), properties(REPORT_SCHEMA));
}

#[test]
fn lines_of_diff_conform() {
    let dir = folder("rows-diff");
    std::fs::create_dir_all(&dir).expect("a folder");
    let rows = |name: &str, startups: &str| {
        let args = ["compare", "dsl", "--size", "100kB", "--runs", "6", "--json", "--startup", startups];
        let file = dir.join(name);
        std::fs::write(&file, succeeds(&args)).expect("a file");
        file.to_str().expect("UTF-8").to_string()
    };
    let (a, b) = (rows("a.jsonl", "standard"), rows("b.jsonl", "standard,search"));
    let lines = succeeds(&["diff", &a, &b, "--json"]);
    assert_eq!(conform(&lines, LINE_SCHEMA), properties(LINE_SCHEMA));
    assert_eq!(lines.lines().count(), 2);
}

/// A schema refuses what it does not describe: a field that is missing, one of another type, one that is not
/// known.
#[test]
fn a_row_that_is_none_is_found() {
    let line = slowstart_study::record::GOLDEN_ROWS.lines().next().expect("a row");
    let row: Value = serde_json::from_str(line).expect("JSON");
    let schema: Value = serde_json::from_str(ROW_SCHEMA).expect("JSON");
    let refused = |change: fn(&mut Value)| {
        let mut row = row.clone();
        change(&mut row);
        !jsonschema::is_valid(&schema, &row)
    };
    assert!(!refused(|_| ()));
    assert!(refused(|r| drop(r.as_object_mut().and_then(|o| o.remove("seed")))));
    assert!(refused(|r| r["more"] = 1.into()));
    assert!(refused(|r| r["class"] = "soon".into()));
    assert!(refused(|r| r["cost"]["packets"] = (-1).into()));
    assert!(refused(|r| r["time_to_bytes_s"]["100000"] = "1 s".into()));
}

/// CSV has the values of JSON in the columns of the schema, quoted where needed.
#[test]
fn csv_has_the_columns_of_the_schema() {
    let study =
        ["compare", "geo", "--startup", "hystart:detect=delay,search", "--runs", "2", "--size", "300kB"];
    let json = succeeds(&[&study[..], &["--json"]].concat());
    let text = succeeds(&[&study[..], &["--csv"]].concat());
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let columns = columns(ROW_SCHEMA);
    let names: Vec<String> = csv.headers().expect("a header").iter().map(str::to_string).collect();
    assert_eq!(names, columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>());
    let records: Vec<csv::StringRecord> = csv.records().map(|r| r.expect("a record")).collect();
    assert_eq!(records.len(), 4);
    for (record, line) in records.iter().zip(json.lines()) {
        let row: Value = serde_json::from_str(line).expect("JSON");
        for (column, text) in columns.iter().zip(record) {
            assert_eq!(text, column.cell(&row).text(), "{}", column.name);
        }
        assert_eq!(&record[names.iter().position(|n| n == "engine").expect("it is there")], "sim");
    }
}

/// docs/reference/rows.md names a schema for each kind of row; ci/columns.py lists their columns in the book.
#[test]
fn the_document_names_the_schemas() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/reference/rows.md")).expect("the document");
    let named: Vec<String> = text
        .lines()
        .filter_map(|l| l.strip_prefix("<!-- columns: ")?.strip_suffix(" -->"))
        .map(|file| std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}")))
        .collect();
    let known = [
        ROW_SCHEMA,
        SAMPLE_SCHEMA,
        EVENT_SCHEMA,
        TRANSFER_SCHEMA,
        transfer::SAMPLE_SCHEMA,
        FIT_SCHEMA,
        GAME_SCHEMA,
    ];
    assert_eq!(named, known);
}
