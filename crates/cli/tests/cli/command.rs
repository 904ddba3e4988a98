//! The command line: what it prints and which input it refuses.

use crate::common::{folder, refuses, slowstart, text};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Distributions of a path: an empty range, a reversed one, one without a unit, and a weight of zero.
#[test]
fn bad_distributions_are_refused_with_what_was_found_and_expected() {
    for (rate, found, expected) in [
        ("20..20Mbit", "\"20..20Mbit\"", "second number is greater than its first"),
        ("70..20Mbit", "\"70..20Mbit\"", "second number is greater than its first"),
        ("20..70", "\"20..70\"", "100Mbit"),
        ("20Mbit*0|50Mbit", "\"20Mbit*0|50Mbit\"", "a weight above 0"),
        ("..70Mbit", "\"..70Mbit\"", "two numbers"),
    ] {
        let path = format!("rate={rate} rtt=40ms queue=1bdp");
        refuses(&["compare", &path, "--startup", "hystart"], &["rate", found, expected]);
    }
}

#[test]
fn bad_input_is_refused_with_what_was_found_and_expected() {
    refuses(
        &["compare", "geo", "--startup", "quickest"],
        &["startup", "\"quickest\"", "quick-start", "slowstart list startups"],
    );
    refuses(&["compare", "rate=-5Mbit rtt=40ms"], &["rate", "\"-5Mbit\"", "100Mbit"]);
    refuses(&["compare", "trace=nowhere.down rtt=40ms"], &["nowhere.down", "No such file"]);
    refuses(
        &["compare", "rate=1Mbit rtt=40ms queue=0packets"],
        &["queue", "\"0packets\"", "at least one packet"],
    );
    refuses(&["compare", "rate=1Mbit rtt=40ms colour=red"], &["colour", "slowstart list path-keys"]);
    refuses(&["compare", "atlantis"], &["atlantis", "slowstart list paths", "my.toml"]);
    refuses(&["compare", "goe"], &["did you mean \"geo\"?"]);
    refuses(&["compare", "geo", "--startup", "serch"], &["did you mean \"search\"?"]);
    refuses(&["compare", "geo", "--startup", "search:treshold=1"], &["did you mean \"threshold\"?"]);
    refuses(&["compare", "rate=1Mbit rtt=40ms qeue=1bdp"], &["did you mean \"queue\"?"]);
    refuses(&["compare", "geo", "--set", "pace=on"], &["did you mean \"pacing\"?"]);
    refuses(&["compare", "geo", "--avoidance", "cubick"], &["did you mean \"cubic\"?"]);
    refuses(&["compare", "geo", "--sort", "speed"], &["speed", "gain, startup"]);
    refuses(&["compare", "geo", "--columns", "speed"], &["speed", "1mb", "lost"]);
    refuses(&["compare", "geo", "--startup", "search:threshold=2"], &["search:threshold", "\"2\"", "0 to 1"]);
    refuses(&["compare", "geo", "--startup", "search:thresh=0.3"], &["thresh", "threshold, window"]);
    refuses(&["compare", "geo", "--set", "iw=0"], &["iw", "\"0\"", "1 to 1000"]);
    refuses(&["compare", "geo", "--set", "warp=9"], &["warp", "slowstart list knobs"]);
    refuses(&["compare", "geo", "--size", "big"], &["size", "\"big\"", "20MB"]);
    refuses(&["compare", "geo", "--runs", "0"], &["runs", "\"0\""]);
    refuses(&["compare", "geo", "--against", "cubic"], &["against", "cubic@-10s"]);
    refuses(&["compare", "geo", "--size", "1MB", "--app", "web"], &["size", "no size"]);
    refuses(&["compare", "geo", "--against", "reno@0s/up"], &["against", "reno@0s/up", "ack_rate"]);
    refuses(&["run", "missing.toml"], &["missing.toml", "No such file"]);
}

#[test]
fn a_trace_with_a_letter_names_its_line() {
    let file = folder("command-letter").join("a.down");
    std::fs::write(&file, "1\n2\n3\n4\n5\n6\n7x\n8\n").expect("a file");
    refuses(&["compare", &format!("trace={} rtt=40ms", file.display())], &["a.down", "line 7", "\"7x\""]);
}

#[test]
fn an_impossible_key_names_file_and_key() {
    let file = folder("command-key").join("study.toml");
    std::fs::write(&file, "path = \"geo\"\nstart_ups = []\n").expect("a file");
    refuses(
        &["run", &file.display().to_string()],
        &["study.toml", "line 2", "`start_ups` (did you mean \"startups\"?)"],
    );
    std::fs::write(&file, "path = \"geo\"\nruns = -1\n").expect("a file");
    refuses(&["run", &file.display().to_string()], &["study.toml", "line 2", "-1"]);
}

const QUICK: [&str; 6] =
    ["compare", "rate=20Mbit rtt=20ms queue=1bdp jitter=1ms", "--size", "300kB", "--runs", "3"];

#[test]
fn json_is_rows_and_nothing_else() {
    let out = slowstart(&[&QUICK[..], &["--all", "--json"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows: Vec<slowstart_study::record::Row> =
        text(&out.stdout).lines().map(|l| serde_json::from_str(l).expect("a row")).collect();
    assert_eq!(rows.len(), 3 * slowstart::registry::all().count());
    assert!(rows.iter().all(|r| r.schema == 1 && r.completion_s.is_some() && r.goodput_bps < 20_000_000));
    // Run n of every startup meets the same path.
    let seeds: BTreeSet<(u32, u64)> = rows.iter().map(|r| (r.run, r.seed)).collect();
    assert_eq!((seeds.len(), rows[0].seed != rows[rows.len() - 1].seed), (3, true));
}

#[test]
fn the_wide_table_has_a_line_for_each_startup() {
    let out = slowstart(&[&QUICK[..], &["--all", "--wide"]].concat());
    let table = text(&out.stdout);
    for e in slowstart::registry::all() {
        assert!(
            table.lines().any(|l| l.split_whitespace().take(2).any(|w| w.trim_end_matches('~') == e.name)),
            "no {} in {table}",
            e.name
        );
    }
    assert!(!table.contains('\u{1b}'), "escapes in a pipe");
}

#[test]
fn a_folder_gets_rows_samples_events_and_a_page() {
    let dir = folder("command-out");
    let out = slowstart(
        &[&QUICK[..], &["--all", "--out", &dir.display().to_string(), "--samples", "ack"]].concat(),
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).expect(name);
    assert_eq!(read("results.jsonl").lines().count(), 3 * slowstart::registry::all().count());
    assert!(read("samples.jsonl").lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()));
    assert!(read("events.jsonl").contains("\"what\":\"drop\""));
    let page = read("report.html");
    // Its scripts may name NaN; what it shows may not.
    let shown: String =
        page.split("<script").map(|part| part.rsplit("</script>").next().unwrap_or_default()).collect();
    assert!(shown.contains("<svg") && !shown.contains("NaN") && !page.contains("src=\"http"));
}

#[test]
fn others_are_asked_what_was_done_to_them() {
    let path = "rate=20Mbit rtt=20ms queue=1bdp ack_rate=5Mbit";
    let beside =
        ["--against", "cubic@-2s,reno@-1s/up", "--startup", "standard", "--size", "300kB", "--runs", "1"];
    let out = slowstart(&[&["compare", path][..], &beside].concat());
    let table = text(&out.stdout);
    assert!(
        table.contains("goodput (% of before)") && table.contains("delay p99"),
        "{table}\n{}",
        text(&out.stderr)
    );
}

/// An inline path with a list and a range stands for a path at each point.
#[test]
fn an_inline_path_may_have_axes() {
    let rows = |path: &str| {
        let out = slowstart(&[
            "compare",
            path,
            "--startup",
            "standard",
            "--runs",
            "1",
            "--size",
            "100kB",
            "--json",
        ]);
        let rows: Vec<serde_json::Value> =
            text(&out.stdout).lines().map(|l| serde_json::from_str(l).expect("a row")).collect();
        rows.iter().map(|r| (r["rate_bps"].as_u64(), r["base_rtt_s"].as_f64())).collect::<Vec<_>>()
    };
    let four = rows("rate=10,20Mbit rtt=20..40ms/2");
    let point = |rate, rtt| (Some(rate), Some(rtt));
    let all =
        [point(10_000_000, 0.02), point(10_000_000, 0.04), point(20_000_000, 0.02), point(20_000_000, 0.04)];
    assert_eq!(four, all);
    assert_eq!(rows("geo-144 rate=10Mbit,20Mbit rtt=30ms random_drop=0%@18MB queue=1bdp").len(), 2);
    refuses(
        &["compare", "rate=20..10Mbit/3 rtt=20ms"],
        &["rate", "20..10Mbit", "first number below its second"],
    );
    refuses(&["compare", "rate=1..2Mbit/999 rtt=1..2ms/999"], &["at most 1000 paths", "slowstart sweep"]);
}

#[test]
fn shipped_studies_are_sound() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let files = std::fs::read_dir(dir).expect("scenarios").map(|f| f.expect("a file").path());
    let studies: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "toml")).collect();
    assert!(studies.len() >= 2);
    for file in studies {
        slowstart_study::scenario::Study::load(&file).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn everything_is_listed_with_its_source() {
    let list = text(&slowstart(&["list"]).stdout);
    for e in slowstart::registry::all() {
        assert!(list.contains(e.name) && list.contains(e.source));
    }
    for name in ["cubic", "geo", "linux-6.18", "pacing"] {
        assert!(list.contains(name), "no {name}");
    }
}

#[test]
fn without_the_kernel_it_says_how_to_get_it() {
    if cfg!(feature = "kernel") {
        refuses(&["kernel", "load", "quickest"], &["quickest", "slowstart list startups"]);
    } else {
        refuses(&["kernel", "load", "search", "--pin"], &["make kernel", "clang", "libelf-dev"]);
    }
}

/// A run of our own as somebody else's capture: rows, samples and pages, and what would have come after.
#[test]
fn a_capture_is_replayed_and_gone_on_with() {
    let dir = folder("command-replayed");
    let out = dir.join("run");
    let path = "rate=20Mbit rtt=60ms queue=1bdp";
    let out = out.to_str().expect("text");
    let made = slowstart(&[
        "compare",
        path,
        "--startup",
        "vegas",
        "--size",
        "3MB",
        "--runs",
        "1",
        "--out",
        out,
        "--pcap",
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let captured = std::fs::read_dir(out).expect("a folder").flatten().map(|e| e.path());
    let capture =
        captured.into_iter().find(|f| f.to_string_lossy().ends_with("server.pcapng")).expect("captured");
    let capture = capture.to_str().expect("text");
    let seen = dir.join("seen");
    let seen = seen.to_str().expect("text");
    let asked = ["replay", capture, "--startup", "vegas,standard", "--fork", "--out", seen];
    let replayed = slowstart(&asked);
    let shown = text(&replayed.stdout);
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for what in ["as observed", "on a path fitted to it (rate=", "standard"] {
        assert!(words.contains(what), "{shown}");
    }
    let file = |name: &str| std::fs::read_to_string(dir.join("seen").join(name)).expect("written");
    let row: serde_json::Value =
        serde_json::from_str(file("results.jsonl").lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["fork"]["startups"].as_array().map(Vec::len), Some(2), "{row}");
    let sample: serde_json::Value =
        serde_json::from_str(file("samples.jsonl").lines().next().expect("a sample")).expect("JSON");
    assert!(sample["cwnd_bytes"]["standard"].is_u64() && sample["inflight_bytes"].is_u64(), "{sample}");
    assert!(file("report.html").contains("on a path fitted to it"));
    // Cut in its midst, it is answered in part, and that is said; of nothing, nothing can be said.
    let bytes = std::fs::read(capture).expect("there");
    let half = dir.join("half.pcapng");
    std::fs::write(&half, &bytes[..=bytes.len() / 2]).expect("a file");
    let part = slowstart(&["replay", half.to_str().expect("text"), "--startup", "vegas"]);
    assert!(part.status.success() && text(&part.stderr).contains("the rows are those of the part before it"));
    for (name, bytes, says) in [
        ("empty.pcap", Vec::new(), "offset 0: found nothing"),
        ("noise.pcap", vec![0x55; 5000], "offset 0: found an unknown format"),
        (
            "huge.pcap",
            [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 12], &[1, 0, 0, 0], &[0xff; 5000]].concat(),
            "offset 24",
        ),
    ] {
        let file = dir.join(name);
        std::fs::write(&file, bytes).expect("a file");
        refuses(&["replay", file.to_str().expect("text")], &[name, says]);
    }
}

#[test]
fn a_verdict_that_changed_is_status_1() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/papers/hystart/limited.toml");
    let recorded = std::fs::read_to_string(root).expect("a scenario");
    let dir = folder("command-verdicts");
    // What is recorded, how it is seen, and the status with the seed of the record and with another.
    for (verdict, seen, statuses) in [
        ("holds", "all as recorded", [0, 0]),
        ("differs", "holds (recorded: differs)", [1, 1]),
        ("undecided", "holds (recorded: undecided)", [1, 0]),
    ] {
        let edited = recorded.replace("verdict = \"holds\"", &format!("verdict = \"{verdict}\""));
        assert!(edited.contains(&format!("verdict = \"{verdict}\"")));
        let file = dir.join(format!("{verdict}.toml"));
        std::fs::write(&file, edited).expect("a file");
        let file = file.display().to_string();
        for (seed, status) in ["1", "2"].into_iter().zip(statuses) {
            let out = slowstart(&["reproduce", &file, "--seed", seed]);
            let said = text(&out.stdout);
            assert_eq!(out.status.code(), Some(status), "{verdict}, seed {seed}: {said}");
            assert!(said.contains(seen), "{verdict}: {said}");
        }
    }
    // The same of one that comes with the program, and of what is none.
    assert_eq!(slowstart(&["reproduce", "hystart/limited"]).status.code(), Some(0));
    let broken = dir.join("broken.toml");
    std::fs::write(&broken, recorded.replace("at_least", "at_last")).expect("a file");
    refuses(&["reproduce", &broken.display().to_string()], &["broken.toml", "at_last"]);
    refuses(&["reproduce", "missing.toml"], &["missing.toml", "No such file"]);
    refuses(&["reproduce", "hystart/fig9"], &["hystart/fig9", "did you mean \"hystart/fig", "--list"]);
}

/// What would take gigabytes is refused before it begins, with the key that asks for it.
#[test]
fn what_takes_too_much_memory_is_refused_with_its_key() {
    let path = "rate=5Mbit rtt=20ms queue=1bdp";
    let study = ["compare", path, "--startup", "standard,search"];
    let with = |more: &[&'static str]| [&study[..], more].concat();
    refuses(&with(&["--runs", "60000"]), &["runs", "60000", "at most 100000 rows", "not 120000", "--json"]);
    refuses(&[&with(&["--runs", "30000"])[..], &["--startup", "hystart,ess"]].concat(), &["not 120000"]);
    refuses(
        &with(&["--against", "cubic*1000@-1s", "--duration", "400s"]),
        &["duration", "400s", "344s", "1001 flows"],
    );
    refuses(&with(&["--against", "cubic*1000@-400s"]), &["against", "1001 flows"]);
    let long = "x".repeat(50_000);
    refuses(&["compare", &long], &["path", "a text of 50000 bytes", "at most 16384"]);
    refuses(&["compare", path, "--startup", &long], &["startups", "a text of 50000 bytes"]);
    // A slow path beside slow flows is observed for as long as memory allows.
    let row = slowstart(&[
        "compare",
        "rate=1kbit rtt=40ms queue=1bdp",
        "--startup",
        "standard",
        "--size",
        "1kB",
        "--runs",
        "1",
        "--json",
    ]);
    assert!(row.status.success());
}
