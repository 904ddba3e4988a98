//! The functions of the page, without a browser.

use serde_json::Value;
use slowstart_replay::observer::Candidate;
use slowstart_replay::replay::{Options, read};
use slowstart_replay::{open, wire};
use slowstart_study::scenario::{Study, StudyText};
use slowstart_web::study::Task;
use slowstart_web::{capture, catalogue, packets};
use std::io::Cursor;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Two startups over a path that loses packets at random.
const REQUEST: &str = r#"{"path":"rate=20Mbit rtt=40ms queue=1bdp loss=0.5%","startups":["standard","hystart"],"size":"500kB",
    "runs":3}"#;

fn analyse(name: &str, bytes: Vec<u8>, names: &[String], fork: bool) -> Result<String, String> {
    capture::analyse(capture::File { name, bytes }, names, fork, "/play/")
}

fn study() -> Study {
    let text = StudyText {
        path: "rate=20Mbit rtt=40ms queue=1bdp loss=0.5%".to_string(),
        startups: vec!["standard".to_string(), "hystart".to_string()],
        size: Some("500kB".to_string()),
        runs: Some(3),
        ..StudyText::default()
    };
    Study::check(&text, None).expect("a study")
}

#[test]
fn rows_are_those_of_all_processors() {
    let mut task = Task::new(REQUEST).expect("a request");
    let mut rows = Vec::new();
    while let Some(row) = task.run_next() {
        rows.push(row);
    }
    let mut expected = Vec::new();
    study()
        .run_all(|outcome| {
            expected.push(serde_json::to_string(&outcome.row).expect("JSON"));
            Ok::<(), ()>(())
        })
        .expect("no error");
    assert_eq!((rows.len(), rows), (task.jobs(), expected));
    let summary = json(&task.summary());
    assert!(summary["verdict"].as_str().is_some_and(|v| v.starts_with("hystart, Linux's default, needs")));
    assert_eq!(summary["rows"].as_array().map(Vec::len), Some(6));
    let report = task.report("/play/");
    assert!(report.contains(
        "href=\"/play/#path=rate=20Mbit+rtt=40ms+queue=1bdp+loss=0.5%25&amp;startups=standard,hystart&amp;"
    ));
    assert!(report.contains("slowstart compare 'rate=20Mbit") && report.contains("application/gzip"));
}

#[test]
fn curves_are_of_the_same_run() {
    let task = Task::new(REQUEST).expect("a request");
    let answer = json(&task.curves(1, 200).expect("run 1"));
    let data = &answer["data"];
    assert_eq!(data["labels"], serde_json::json!(["standard", "hystart"]));
    for curve in data["curves"].as_array().expect("curves") {
        let row = &data["rows"][curve["row"].as_u64().expect("an index") as usize];
        assert_eq!(row["run"], 1);
        let delivered: i64 =
            curve["delivered"].as_array().expect("a column").iter().filter_map(Value::as_i64).sum();
        assert!((400_000..=500_000).contains(&delivered), "{delivered} of 500 kB by the last sample");
        assert_eq!(curve["t"].as_array().map(Vec::len), curve["cwnd"].as_array().map(Vec::len));
    }
    assert!(task.curves(3, 200).expect_err("there are three").contains("below 3"));
}

#[test]
fn every_packet_arrives_or_is_lost() {
    let answer = json(&packets::packets(REQUEST, 0, 0).expect("a run"));
    let data = answer["data"].as_array().expect("packets");
    let lost = data.iter().filter(|p| p["arrived"].is_null()).count() as u64;
    let row = study().run(study().jobs()[0], slowstart_sim::engine::Sampling::Off, false).row;
    assert_eq!(Some(lost), row.lost_packets);
    let again = data.iter().filter(|p| p["again"] == true).count() as u64;
    assert_eq!(Some(again), row.retransmitted_packets);
    let half = answer["base_rtt_us"].as_u64().expect("a number") / 2;
    for p in data.iter().filter(|p| !p["arrived"].is_null()) {
        let way = p["arrived"].as_u64().expect("a time") - p["left"].as_u64().expect("a time");
        assert!(way >= half - 1, "{p}: less than half of the round trip");
    }
}

#[test]
fn a_capture_has_the_rows_of_replay() {
    let trace = study().capture(study().jobs()[0]).trace;
    let mut file = Vec::new();
    wire::write(&mut file, &trace.packets, 0).expect("a Vec takes everything");
    let names = ["standard".to_string(), "hystart".to_string()];
    let answer = json(&analyse("<b>.pcapng", file.clone(), &names, false).expect("a capture"));
    // Continued in the simulator: the row has the result of each startup, and the page leads to the fitted
    // path.
    let forked = json(&analyse("<b>.pcapng", file.clone(), &names, true).expect("a capture"));
    let fork = &forked["transfers"][0]["fork"];
    assert_eq!(fork["startups"].as_array().map(Vec::len), Some(2), "{}", forked["not_continued"]);
    assert!(fork["startups"][0]["done_s"].as_f64().is_some_and(|s| s > 0.2));
    let row = json(forked["rows"].as_array().and_then(|r| r.last()).and_then(Value::as_str).expect("rows"));
    assert_eq!(&row["fork"], fork);
    let page = forked["transfers"][0]["page"].as_str().expect("a page");
    assert!(page.contains("href=\"/play/#path=rate="), "no link");
    let candidates = names.iter().map(|n| Candidate {
        label: n.clone(),
        startup: slowstart_study::scenario::startup("startup", n).expect("a startup").1,
    });
    let options = Options { candidates: candidates.collect(), ..Options::default() };
    let (kind, input) = open::detect(Box::new(Cursor::new(file))).expect("a capture");
    let mut expected = read(kind, input, &options, |_| {}).expect("a capture").transfers;
    for t in &mut expected {
        t.row.file = Some("<b>.pcapng".to_string());
    }
    let rows: Vec<String> =
        answer["rows"].as_array().expect("rows").iter().filter_map(Value::as_str).map(String::from).collect();
    let expected: Vec<String> =
        expected.iter().map(|t| serde_json::to_string(&t.row).expect("JSON")).collect();
    assert_eq!(rows, expected);
    let page = answer["transfers"][0]["page"].as_str().expect("a page");
    assert!(page.contains("&lt;b&gt;.pcapng") && !page.contains("<b>.pcapng"));
    let damaged = analyse("x", vec![1, 2, 3], &names, true).expect_err("no capture");
    assert!(damaged.starts_with("x: ") && damaged.contains("expected a capture"));
    assert!(
        analyse("x", vec![0; capture::LARGEST + 1], &names, true)
            .expect_err("large")
            .contains("at most 100 MB")
    );
}

#[test]
fn the_catalogue_has_what_a_request_may_name() {
    let names = json(&catalogue::catalogue());
    for list in ["paths", "path_keys", "startups", "avoidances", "profiles", "knobs"] {
        assert!(names[list].as_array().is_some_and(|l| l.len() > 2), "{list}");
    }
    for path in names["paths"].as_array().expect("a list") {
        let request = format!("{{\"path\":{}}}", path["name"]);
        assert!(Task::new(&request).is_ok(), "{request}");
    }
}
