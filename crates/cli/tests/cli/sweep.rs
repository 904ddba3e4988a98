//! Sweeps: what a store holds after kills, on a full disk, with two processes; what is refused; queries.

use crate::common::{command, folder, refuses, succeeds};
use crate::conform::conform;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Writes a sweep of so many rates.
fn study(dir: &Path, rates: usize, axes: &str) -> PathBuf {
    let file = dir.join("sweep.toml");
    let toml = format!(
        "path = \"rate=5Mbit rtt=20ms queue=1bdp\"\nstartups = [\"standard\", \"hystart\"]\nsize = \"100kB\"\nruns = 1\n\
         [axes]\nrate = \"5..25Mbit/{rates}\"\n{axes}\n"
    );
    fs::write(&file, toml).expect("a study");
    file
}

/// Every file of a store with its bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for sub in ["", "parts", "journal", "sweeps"] {
        for entry in fs::read_dir(dir.join(sub)).expect("a folder").flatten().filter(|e| e.path().is_file()) {
            let name = format!("{sub}/{}", entry.file_name().to_string_lossy());
            all.insert(name, fs::read(entry.path()).expect("a file"));
        }
    }
    all
}

/// Runs of a chunk of a small sweep.
const CHUNK: u64 = 8;

/// The lines of a journal that are whole; none if it is gone.
fn whole_lines(journal: &Path) -> u64 {
    fs::read_to_string(journal)
        .map_or(0, |t| t.split_inclusive('\n').filter(|l| l.ends_with('\n')).count() as u64)
}

/// The runs that a store of one sweep has recorded, in finished parts and in journals.
fn recorded(store: &Path, runs: u64) -> u64 {
    let names = |sub: &str| -> Vec<PathBuf> {
        fs::read_dir(store.join(sub)).into_iter().flatten().flatten().map(|e| e.path()).collect()
    };
    let of = |all: &[PathBuf], end: &str| -> Option<PathBuf> {
        all.iter().find(|p| p.to_string_lossy().ends_with(end)).cloned()
    };
    // A finished chunk has its part before its journal is removed.
    let (journals, parts) = (names("journal"), names("parts"));
    (0..runs.div_ceil(CHUNK))
        .map(|c| match of(&parts, &format!("-{c:05}.parquet")) {
            Some(_) => CHUNK.min(runs - c * CHUNK),
            None => of(&journals, &format!("-{c:05}.jsonl")).map_or(0, |p| whole_lines(&p)),
        })
        .sum()
}

/// The runs that a call computed, as it says.
fn computed(stderr: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(stderr);
    let before = text.split_once(" runs computed in ").expect("it says so").0;
    before.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}

/// A random number below `n`, from a seed that moves on.
fn random(seed: &mut u64, n: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % n
}

/// A sweep that is killed with SIGKILL again and again ends with the same bytes as one that is not, and loses
/// nothing that was recorded. `SLOWSTART_LONG=1`: 2,000 runs, 100 kills.
#[test]
fn killed_again_and_again_it_gives_the_same_bytes() {
    let long = std::env::var_os("SLOWSTART_LONG").is_some();
    let (rates, runs, kills) = if long { (1000, 2000, 100) } else { (60, 120, 5) };
    let dir = folder("sweep-kill");
    // Runs that take longer than what is written about them.
    let file = study(&dir, rates, "size = [\"1MB\"]");
    let (whole, killed) = (dir.join("whole"), dir.join("killed"));
    succeeds(&["sweep", text(&file), "--out", text(&whole)]);
    let args = ["-j", "2", "sweep", text(&file), "--out", text(&killed)];
    let start = || -> Child { command(&args).stderr(Stdio::null()).spawn().expect("it runs") };
    let recorded = || recorded(&killed, runs);
    let mut seed = 7;
    let mut done = 0;
    for _ in 0..kills {
        let mut child = start();
        // Each kill comes a moment after a random number of further runs, so that on any machine the kills are spread
        // over the sweep.
        let before = recorded();
        let until = before + random(&mut seed, 2 * runs * 4 / 5 / kills);
        while recorded() < until && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_micros(random(&mut seed, 5000)));
        let finished = child.try_wait().expect("a child").is_some();
        child.kill().expect("SIGKILL");
        child.wait().expect("a child");
        done += u64::from(!finished);
        assert!(recorded() >= before, "{} runs are recorded, {before} before a kill", recorded());
    }
    let before = recorded();
    let last = command(&args).output().expect("it runs");
    println!("{runs} runs, {done} kills of a running sweep, {before} runs recorded after them");
    assert!(last.status.success() && done > 0, "no kill met a running sweep");
    assert_eq!(
        (before + computed(&last.stderr), recorded()),
        (runs, runs),
        "what is recorded is not computed again"
    );
    assert_eq!(contents(&whole), contents(&killed));
}

#[test]
fn what_a_killed_process_left_in_the_folder_of_sweeps_is_removed() {
    let dir = folder("sweep-cut");
    let out = dir.join("store");
    let file = study(&dir, 2, "");
    let args = ["sweep", text(&file), "--out", text(&out)];
    succeeds(&args);
    let whole = contents(&out);
    fs::write(out.join("sweeps/.0123456789abcdef.json"), "{\"text\":").expect("a file");
    succeeds(&args);
    assert_eq!(contents(&out), whole);
}

#[test]
fn an_extended_axis_computes_the_new_cells_only() {
    let dir = folder("sweep-extend");
    let out = dir.join("store");
    let extended = |rtts: &str| {
        let file = study(&dir, 3, &format!("rtt = \"{rtts}\""));
        let ran = command(&["sweep", text(&file), "--out", text(&out)]).output().expect("it runs");
        assert!(ran.status.success());
        computed(&ran.stderr)
    };
    assert_eq!(extended("20,40ms"), 12);
    assert_eq!(extended("20,40,60ms"), 6);
    let grouped = succeeds(&["sweep", "query", text(&out), "--group", "rtt,startup", "--csv"]);
    // Three round-trip times and two startups, three rates in each: no run counts twice.
    let counts: Vec<&str> = grouped.lines().skip(1).filter_map(|l| l.split(',').nth(2)).collect();
    assert_eq!(counts, ["3"; 6], "{grouped}");
    // The second sweep has all rows of the first.
    let grouped = succeeds(&["sweep", "query", text(&out), "--group", "startup", "--csv"]);
    assert!(grouped.lines().skip(1).all(|l| l.split(',').nth(1) == Some("9")), "{grouped}");
}

/// Runs of two sizes are no runs of one kind.
#[test]
fn sweeps_are_not_pooled() {
    let dir = folder("sweep-pooled");
    let out = dir.join("store");
    for size in ["100kB", "200kB"] {
        let file = study(&dir, 3, "");
        let other = fs::read_to_string(&file)
            .expect("a study")
            .replace("size = \"100kB\"", &format!("size = \"{size}\""));
        fs::write(&file, other).expect("a study");
        succeeds(&["sweep", text(&file), "--out", text(&out)]);
    }
    let store = text(&out);
    let query = |more: &[&'static str]| [&["sweep", "query", store, "--csv", "--group"], more].concat();
    let says = ["found rows of several sweeps", "expected those of one", "--where size_bytes"];
    refuses(&query(&["startup"]), &says);
    refuses(&query(&["startup", "--baseline", "hystart"]), &says);
    for told in [query(&["startup,size_bytes"]), query(&["startup", "--where", "size_bytes=100000"])] {
        succeeds(&told);
    }
}

#[test]
fn two_processes_and_shards_share_a_store() {
    let dir = folder("sweep-two");
    let file = study(&dir, 40, "");
    let (whole, shared, sharded) = (dir.join("whole"), dir.join("shared"), dir.join("sharded"));
    succeeds(&["sweep", text(&file), "--out", text(&whole)]);
    let start = || {
        let mut c = command(&["-j", "1", "sweep", text(&file), "--out", text(&shared)]);
        c.stderr(Stdio::piped()).spawn().expect("it runs")
    };
    let both = [start(), start()].map(|c| c.wait_with_output().expect("a child"));
    assert!(both.iter().all(|c| c.status.success()));
    assert_eq!(both.iter().map(|c| computed(&c.stderr)).sum::<u64>(), 80, "each run once");
    assert_eq!(contents(&whole), contents(&shared));
    for k in 1..=3 {
        succeeds(&["sweep", text(&file), "--out", text(&sharded), "--shard", &format!("{k}/3")]);
    }
    assert_eq!(contents(&whole), contents(&sharded));
}

#[test]
fn bad_sweeps_and_stores_are_refused() {
    let dir = folder("sweep-bad");
    let out = dir.join("store");
    let bad = |axes: &str, says: &[&str]| {
        let file = study(&dir, 2, axes);
        refuses(&["sweep", text(&file), "--out", text(&out)], says);
        assert!(!out.exists(), "{axes}: it left something");
    };
    bad("rate_of_change = \"1,2\"", &["rate_of_change", "expected a key of a path"]);
    bad("rt = \"20,40ms\"", &["\"rt\"", "did you mean \"rtt\"?"]);
    bad("\"search:treshold\" = [0.1]", &["did you mean \"threshold\"?"]);
    bad("\"set.colour\" = [1]", &["set.colour"]);
    bad("rtt = \"20..40ms/0\"", &["rtt", "2 to 100000 points"]);
    bad("rtt = []", &["rtt", "at least one value"]);
    bad("rtt = \"40..20ms/3\"", &["first number below its second"]);
    bad("queue = [\"0packets\"]", &["queue=0packets", "at least one packet"]);
    bad("[draws]\npoints = 0\n[draws.axes]\nrtt = \"20..40ms\"", &["draws.points"]);
    let huge = u64::MAX.to_string();
    bad(
        &format!("[draws]\npoints = {huge}\n[draws.axes]\nrtt = \"20..40ms\""),
        &["sweep.toml", "points", &huge],
    );
    let file = study(&dir, 2, "");
    let sweep = ["sweep", text(&file), "--out", text(&out)];
    refuses(&[&sweep[..], &["--shard", "4/3"]].concat(), &["--shard", "\"4/3\"", "from 1 to N"]);
    fs::create_dir_all(&out).expect("a folder");
    fs::write(out.join("thesis.tex"), "mine").expect("a file");
    refuses(&sweep, &["thesis.tex", "another program"]);
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), 1);
    fs::remove_file(out.join("thesis.tex")).expect("a file");
    let marker = out.join("slowstart-store.json");
    fs::write(&marker, "{\"format\": 1, \"results\": \"0.0.9-0000000000000000\"}").expect("a file");
    refuses(&sweep, &["0.0.9-0000000000000000", "choose another folder"]);
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), 1);
    refuses(&["sweep", "status", text(&dir)], &["expected the store of a sweep"]);
    fs::remove_dir_all(&out).expect("a folder");
    succeeds(&sweep);
    refuses(&["sweep", "query", text(&out), "--columns", "startpu"], &["did you mean \"startup\"?"]);
    refuses(&["sweep", "query", text(&out), "--where", "rate"], &["filter", "rate>=50Mbit"]);
    refuses(&["sweep", "query", text(&out), "--where", "rate>>5"], &["\">5\" for column rate", "a number"]);
}

/// Two nights of a sweep, the first of a version with other results.
#[test]
fn stores_are_compared() {
    let dir = folder("sweep-nights");
    let (file, monday, tuesday) = (dir.join("sweep.toml"), dir.join("monday"), dir.join("tuesday"));
    let night = |more: &str, store: &Path| {
        let toml = format!(
            "path = \"rate=20Mbit rtt=50ms\"\nstartups = [\"standard\", \"search\"]\nsize = \"200kB\"\nruns = 6\n\
             {more}[axes]\nrate = [\"10Mbit\", \"20Mbit\"]\nsize = [\"100kB\", \"200kB\"]\n"
        );
        fs::write(&file, toml).expect("a file");
        succeeds(&["sweep", text(&file), "--out", text(store)]);
    };
    night("", &monday);
    night("", &tuesday);
    let marker = monday.join("slowstart-store.json");
    let other = fs::read_to_string(&marker).expect("a marker").replace("0.1.0-", "0.0.9-");
    fs::write(&marker, other).expect("a file");
    let (stores, rows) = (["diff", text(&monday), text(&tuesday)], dir.join("rows.jsonl"));
    let all = succeeds(&stores);
    assert!(all.contains("0 of 8 startups and paths are worse in B."), "{all}");
    assert!(all.contains("rate=10Mbit size=100000"), "{all}");
    // The rows as `query` prints them are the same result, and conform to their schema.
    let printed = succeeds(&["sweep", "query", text(&tuesday), "--json"]);
    conform(&printed, slowstart_sweep::row::SWEEP_ROW_SCHEMA);
    fs::write(&rows, printed).expect("a file");
    assert!(succeeds(&["diff", text(&rows), text(&tuesday), "--any"]).contains("0 of 8"));
    fs::remove_dir_all(&tuesday).expect("a folder");
    night("[set]\niw = \"2\"\n", &tuesday);
    let out = command(&stores).output().expect("it runs");
    assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stdout).contains("8 of 8 startups and paths are worse in B."));
    night("", &tuesday);
    refuses(&stores, &["found 2 sweeps, expected one"]);
}

#[test]
fn drawn_points_and_parameters_of_one_startup() {
    let dir = folder("sweep-draws");
    let out = dir.join("store");
    for (method, points) in [("sobol", 8), ("random", 5)] {
        let file = dir.join("sweep.toml");
        let toml = format!(
            "path = \"rate=5Mbit rtt=20ms\"\nstartups = [\"standard\", \"search\"]\nsize = \"50kB\"\n[axes]\n\
             \"search:threshold\" = [0.2, 0.3]\n\"set.iw\" = [4, 10]\n[draws]\npoints = {points}\nmethod = \"{method}\"\n\
             [draws.axes]\nrate = \"log(1..100Mbit)\"\nrtt = \"10..50ms\"\n"
        );
        fs::write(&file, toml).expect("a study");
        // The parameter is one of search alone: standard has half as many runs.
        let runs = points * 2 * 3;
        assert_eq!(
            succeeds(&["sweep", text(&file), "--out", text(&out), "--count"]).split(' ').next(),
            Some(runs.to_string().as_str())
        );
        succeeds(&["sweep", text(&file), "--out", text(&out)]);
    }
    let rates = succeeds(&["sweep", "query", text(&out), "--columns", "axis_rate,rate_bps", "--csv"]);
    let rates: Vec<(f64, f64)> = rates
        .lines()
        .skip(1)
        .map(|l| l.split_once(',').expect("two"))
        .map(|(a, b)| (a.parse().expect("a number"), b.parse().expect("a number")))
        .collect();
    assert_eq!(rates.len(), 13 * 6);
    assert!(rates.iter().all(|(a, b)| (1e6..=1e8).contains(a) && (a - b).abs() <= 1.0), "{rates:?}");
    let thresholds = succeeds(&[
        "sweep",
        "query",
        text(&out),
        "--group",
        "startup,search:threshold",
        "--csv",
        "--value",
        "iw_bytes",
    ]);
    assert_eq!(thresholds.lines().count(), 1 + 3, "{thresholds}");
}

/// A shard makes only its own runs: of twenty million, the first begin before the others are known. A value that
/// is wrong is refused at the beginning all the same, wherever it is on its axis.
#[test]
fn twenty_million_runs_are_counted_and_a_shard_begins() {
    let dir = folder("sweep-large");
    let out = dir.join("store");
    let file = study(&dir, 100_000, "rtt = \"20..40ms/100\"");
    assert_eq!(succeeds(&["sweep", text(&file), "--count"]), "20000000 runs in 4883 chunks\n");
    let mut shard = command(&["-j", "1", "sweep", text(&file), "--out", text(&out), "--shard", "5/4883"])
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let lines = || {
        let journals = fs::read_dir(out.join("journal")).into_iter().flatten().flatten();
        journals.map(|e| whole_lines(&e.path())).sum::<u64>()
    };
    while lines() < 2 && shard.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    shard.kill().expect("SIGKILL");
    shard.wait().expect("a child");
    let journals: Vec<_> =
        fs::read_dir(out.join("journal")).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(journals.len(), 1, "{journals:?}");
    assert!(journals[0].to_string_lossy().ends_with("-00004.jsonl"), "{journals:?}");

    let file = study(&dir, 2, "queue = [\"1bdp\", \"2bdp\", \"0packets\"]\nrtt = \"20..40ms/1000\"");
    refuses(&["sweep", text(&file), "--count"], &["queue=0packets", "at least one packet"]);
    let file = study(&dir, 50_000, "rtt = \"20..40ms/1000\"");
    refuses(&["sweep", text(&file), "--count"], &["found 100000000 runs", "at most 20000000"]);
}

/// A value twice, or written in two ways that rows do not tell apart, is one; a study without startups has those
/// of each avoidance.
#[test]
fn runs_that_are_the_same_occur_once() {
    let dir = folder("sweep-same");
    let counted = |axes: &str| {
        let file = study(&dir, 2, axes);
        let text = succeeds(&["sweep", text(&file), "--count"]);
        text.split(' ').next().and_then(|n| n.parse::<usize>().ok()).expect("a number")
    };
    assert_eq!(counted("rtt = [\"20ms\", \"40ms\", \"20ms\"]"), 2 * 2 * 2);
    assert_eq!(counted("seed = [1, \"01\", 2]"), 2 * 2 * 2);
    assert_eq!(
        counted("\"set.iw\" = [4]\n[draws]\npoints = 20\n[draws.axes]\nrtt = [\"20ms\", \"40ms\"]"),
        8
    );
    let file = dir.join("all.toml");
    fs::write(
        &file,
        "path = \"rate=5Mbit rtt=20ms\"\nsize = \"10kB\"\n[axes]\navoidance = [\"cubic\", \"reno\"]\n",
    )
    .expect("a study");
    let out = dir.join("store");
    succeeds(&["sweep", text(&file), "--out", text(&out)]);
    let rows = succeeds(&["sweep", "query", text(&out), "--columns", "startup,axis_avoidance,key", "--csv"]);
    let lines: std::collections::BTreeSet<&str> = rows.lines().skip(1).collect();
    assert_eq!(lines.len(), rows.lines().count() - 1, "{rows}");
    let n = succeeds(&["sweep", text(&file), "--count"]);
    assert_eq!(n.split(' ').next(), Some(lines.len().to_string().as_str()), "{n}");
}

/// Of ten runs the interval of the median is from the second to the ninth; differences are those of runs over the same
/// path with the same seed, whatever the parameter of the other startup.
#[test]
fn a_query_has_intervals_and_paired_differences() {
    let dir = folder("sweep-intervals");
    let (file, out) = (dir.join("sweep.toml"), dir.join("store"));
    let toml = "path = \"rate=10Mbit rtt=40ms queue=2bdp jitter=5ms\"\nstartups = [\"standard\", \"search\"]\nsize = \"1MB\"\n\
                runs = 10\n[axes]\nqueue = [\"1bdp\", \"2bdp\"]\n\"search:threshold\" = [0.2, 0.3]\n";
    fs::write(&file, toml).expect("a study");
    succeeds(&["sweep", text(&file), "--out", text(&out)]);
    let query = |more: &[&str]| -> Vec<serde_json::Value> {
        let lines = succeeds(&[&["sweep", "query", text(&out), "--json"], more].concat());
        lines.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    };
    let rows = query(&["--columns", "startup,queue,search:threshold,run,seed,completion_s"]);
    assert_eq!(rows.len(), 2 * 3 * 10);
    let groups = query(&["--group", "startup,queue,search:threshold", "--baseline", "standard"]);
    assert_eq!(groups.len(), 2 * 3);
    for g in &groups {
        let of = |r: &&serde_json::Value, startup: &str| {
            r["startup"] == startup && r["axis_queue"] == g["axis_queue"]
        };
        let own = |r: &&serde_json::Value| {
            of(r, g["startup"].as_str().expect("a name"))
                && r["axis_search:threshold"] == g["axis_search:threshold"]
        };
        let time = |r: &serde_json::Value| r["completion_s"].as_f64().expect("a time");
        let mut times: Vec<f64> = rows.iter().filter(own).map(time).collect();
        let mut differences: Vec<f64> = rows
            .iter()
            .filter(own)
            .map(|r| {
                let base = rows.iter().filter(|b| of(b, "standard")).find(|b| b["seed"] == r["seed"]);
                100.0 * (time(r) / time(base.expect("a run of the baseline")) - 1.0)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        differences.sort_by(f64::total_cmp);
        assert_eq!(
            (g["completion_s_low"].as_f64(), g["completion_s_high"].as_f64()),
            (Some(times[1]), Some(times[8]))
        );
        let difference = |end: &str| g[format!("completion_s_difference_{end}")].as_f64();
        assert_eq!(
            (difference("low_percent"), difference("high_percent")),
            (Some(differences[1]), Some(differences[8]))
        );
        assert_eq!((g["completion_s_pairs"].as_u64(), g["completion_s_never"].as_u64()), (Some(10), Some(0)));
    }
    let group = ["sweep", "query", text(&out), "--group", "startup", "--baseline"];
    refuses(&[&group[..], &["hystart"]].concat(), &["found \"hystart\"", "search:threshold=0.2", "standard"]);
    refuses(&[&group[..], &["search"]].concat(), &["several runs of search", "name its parameters"]);
    let named = query(&["--group", "startup,search:threshold", "--baseline", "search:threshold=0.2"]);
    assert_eq!(named.iter().map(|g| g["completion_s_pairs"].as_u64()).collect::<Vec<_>>(), [Some(20); 3]);
    refuses(
        &["sweep", "query", text(&out), "--group", "queue", "--baseline", "standard"],
        &["expected --group startup,..."],
    );
}

/// The places of a map's page that have a winner, and those that are a tie.
fn winners_and_ties(page: &str) -> (usize, usize) {
    (page.matches("<td class=\"h").count(), page.matches("<td class=\"tie").count())
}

/// rapid-start more than doubles a window each round trip, which counts where round trips do and not where
/// the link does: at 1 ms 1 MB takes the link's time, whichever startup sends it. (Without `ack_pushed` rapid-start
/// waits for a delayed ACK at 40 Mbit/s and 1 ms, and standard is first by 7 %: five winners and one tie.)
#[test]
fn a_map_names_a_winner_only_where_there_is_one() {
    let dir = folder("sweep-winners");
    let (file, out, page) = (dir.join("sweep.toml"), dir.join("store"), dir.join("map.html"));
    let toml = "path = \"rate=20Mbit rtt=1ms queue=1bdp\"\nstartups = [\"standard\", \"rapid-start\"]\nsize = \"1MB\"\nruns = 1\n\
                [axes]\nrate = \"10,20Mbit\"\nrtt = \"1,100,200ms\"\n";
    fs::write(&file, toml).expect("a study");
    succeeds(&["sweep", text(&file), "--out", text(&out)]);
    let map = succeeds(&["sweep", "map", text(&out), "--x", "rate", "--y", "rtt", "--html", text(&page)]);
    let page = fs::read_to_string(&page).expect("a page");
    assert_eq!(winners_and_ties(&page), (3, 3), "{map}");
    let short = map.lines().find(|l| l.trim_start().starts_with("1 ms")).expect("a line of 1 ms");
    assert_eq!(short.matches("tie: ").count(), 2, "{map}");
    assert!(map.contains("rapid-start"), "{map}");
}

#[test]
fn queries_maps_and_status_agree_with_the_rows() {
    let dir = folder("sweep-query");
    let file = study(&dir, 3, "rtt = \"20,40ms\"");
    let out = dir.join("store");
    succeeds(&["sweep", text(&file), "--out", text(&out)]);
    let status = succeeds(&["sweep", "status", text(&out)]);
    assert!(status.contains("finished, 12 runs") && status.contains("12 rows"), "{status}");
    let json = succeeds(&[
        "sweep",
        "query",
        text(&out),
        "--where",
        "rate>=15Mbit",
        "--where",
        "startup=hystart",
        "--json",
    ]);
    let rows: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|r| r["startup"] == "hystart" && r["rate_bps"].as_u64() >= Some(15_000_000)));
    // The same rows as those of compare over the same path.
    let path = format!("rtt=20ms queue=1bdp rate={}Mbit", 25);
    let direct =
        succeeds(&["compare", &path, "--startup", "standard", "--size", "100kB", "--runs", "1", "--json"]);
    let direct: serde_json::Value = serde_json::from_str(direct.trim()).expect("JSON");
    let same = succeeds(&[
        "sweep",
        "query",
        text(&out),
        "--where",
        "rate=25Mbit",
        "--where",
        "rtt=20ms",
        "--where",
        "startup=standard",
        "--columns",
        "completion_s,seed",
        "--json",
    ]);
    let same: serde_json::Value = serde_json::from_str(same.trim()).expect("one row");
    assert_eq!((&same["completion_s"], &same["seed"]), (&direct["completion_s"], &direct["seed"]));
    let (page, table) = (dir.join("map.html"), dir.join("rows.parquet"));
    let map = succeeds(&["sweep", "map", text(&out), "--x", "rate", "--y", "rtt", "--html", text(&page)]);
    assert!(map.contains("hystart") || map.contains("standard"), "{map}");
    let page = fs::read_to_string(&page).expect("a page");
    assert_eq!(winners_and_ties(&page), (0, 6), "100 kB never fill these paths, so both do the same");
    succeeds(&["sweep", "query", text(&out), "--columns", "startup", "--parquet", text(&table), "--json"]);
    assert_eq!(&fs::read(&table).expect("a file")[..4], b"PAR1");
}

/// A disk that fills: a message with the file and the reason, and a store that goes on when there is room.
#[test]
fn a_full_disk_is_reported_and_the_store_goes_on() {
    let dir = folder("sweep-full");
    let file = study(&dir, 200, "");
    let disk = dir.join("disk");
    fs::create_dir_all(&disk).expect("a folder");
    let script = format!(
        "mount -t tmpfs -o size=300k none {disk} && {{ {exe} -j 1 sweep {file} --out {disk}/store; echo status $?; \
         mount -o remount,size=50m {disk}; {exe} sweep {file} --out {disk}/store; echo status $?; cp -r {disk}/store {dir}/after; }}",
        disk = text(&disk),
        exe = env!("CARGO_BIN_EXE_slowstart"),
        file = text(&file),
        dir = text(&dir),
    );
    let ran = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    let Some(ran) = ran.ok().filter(|r| !r.stdout.is_empty()) else {
        println!("skipped: a full disk (needs root and unshare for a file system of its own)");
        return;
    };
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(out.trim(), "status 2\nstatus 0", "{err}");
    assert!(err.contains("No space left on device") && err.contains("store"), "{err}");
    succeeds(&["sweep", text(&file), "--out", text(&dir.join("whole"))]);
    assert_eq!(contents(&dir.join("whole")), contents(&dir.join("after")));
}

/// Files with their identity and time of change.
#[cfg(unix)]
fn identities(dir: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    let of = |sub: &str| fs::read_dir(dir.join(sub)).expect("a folder").flatten();
    let all = ["", "parts", "journal", "sweeps"].into_iter().flat_map(of);
    all.map(|e| (e.path(), e.metadata().expect("a file")))
        .filter(|(_, m)| m.is_file())
        .map(|(p, m)| (p, (m.ino(), m.modified().expect("a time"))))
        .collect()
}

/// A sweep that is finished needs a disk that can be read, no more.
#[cfg(unix)]
#[test]
fn a_finished_sweep_writes_nothing() {
    let dir = folder("sweep-finished");
    let (file, out) = (study(&dir, 20, ""), dir.join("store"));
    let sweep = ["sweep", text(&file), "--out", text(&out)];
    succeeds(&sweep);
    let before = identities(&out);
    succeeds(&sweep);
    assert_eq!(before, identities(&out));
    // What a killed process left of another sweep is finished when the disk can be written.
    fs::write(out.join("journal/0000000000000000-00000.jsonl"), "{\"key\":\"").expect("a file");
    let script = format!(
        "mount --bind {out} {out} && mount -o remount,bind,ro {out} && {exe} sweep {file} --out {out}; echo status $?",
        out = text(&out),
        exe = env!("CARGO_BIN_EXE_slowstart"),
        file = text(&file),
    );
    let ran = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    match ran.ok().filter(|r| !String::from_utf8_lossy(&r.stderr).contains("permi")) {
        Some(r) => assert_eq!(
            String::from_utf8_lossy(&r.stdout).trim(),
            "status 0",
            "{}",
            String::from_utf8_lossy(&r.stderr)
        ),
        None => println!("skipped: a disk that is read-only (needs root and unshare)"),
    }
}

/// A process that writes the manifest lists the parts when no other can add one.
#[test]
fn the_manifest_lists_the_parts_that_came_while_its_writer_waited() {
    let dir = folder("sweep-manifest");
    let (file, out) = (study(&dir, 4, ""), dir.join("store"));
    let sweep = ["sweep", text(&file), "--out", text(&out)];
    succeeds(&sweep);
    let manifest = out.join("manifest.json");
    fs::remove_file(&manifest).expect("it is there");
    let store = slowstart_files::Folder::open(&out).expect("a store");
    let lock = store.lock(".lock", Duration::ZERO).expect("nobody has it");
    let mut waits = command(&sweep).spawn().expect("it runs");
    std::thread::sleep(Duration::from_secs(1));
    assert!(waits.try_wait().expect("a child").is_none() && !manifest.exists(), "it waits");
    let part = fs::read_dir(out.join("parts")).expect("a folder").flatten().next().expect("a part").path();
    fs::copy(&part, out.join("parts/ffffffffffffffff-00000.parquet")).expect("a part of another process");
    drop(lock);
    assert!(waits.wait().expect("a child").success());
    let listed = fs::read_to_string(&manifest).expect("a manifest");
    assert!(listed.contains("ffffffffffffffff-00000.parquet"), "{listed}");
}

/// What links in a store name is not written to.
#[cfg(unix)]
#[test]
fn links_in_a_store_are_refused() {
    use std::os::unix::fs::symlink;
    let dir = folder("sweep-links");
    let (file, out, elsewhere) = (study(&dir, 4, ""), dir.join("store"), dir.join("elsewhere"));
    let sweep = ["sweep", text(&file), "--out", text(&out)];
    succeeds(&sweep);
    for sub in ["parts", "journal", "sweeps"] {
        let moved = dir.join("moved");
        fs::rename(out.join(sub), &moved).expect("ours");
        fs::create_dir_all(&elsewhere).expect("a folder");
        symlink(&elsewhere, out.join(sub)).expect("a link");
        refuses(&sweep, &[sub, "symbolic link"]);
        refuses(&["sweep", "status", text(&out)], &[sub, "symbolic link"]);
        assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 0);
        fs::remove_file(out.join(sub)).expect("a link");
        fs::rename(&moved, out.join(sub)).expect("ours");
    }
    // A journal, and the temporary files beside it and beside the manifest.
    let part = fs::read_dir(out.join("parts")).expect("a folder").flatten().next().expect("a part").path();
    let stem = part.file_stem().expect("a name").to_string_lossy().into_owned();
    fs::remove_file(&part).expect("ours");
    fs::write(elsewhere.join("mine"), "mine").expect("a file");
    let mine = || fs::read_to_string(elsewhere.join("mine")).expect("a file");
    for name in [format!("journal/{stem}.part"), ".manifest.json".to_string()] {
        symlink(elsewhere.join("mine"), out.join(&name)).expect("a link");
        fs::remove_file(out.join("manifest.json")).expect("ours");
        let _ = fs::remove_file(&part);
        succeeds(&sweep);
        assert_eq!(mine(), "mine", "{name}");
    }
    fs::remove_file(&part).expect("ours");
    symlink(elsewhere.join("mine"), out.join(format!("journal/{stem}.jsonl"))).expect("a link");
    refuses(&sweep, &[&stem, "symbolic link"]);
    assert_eq!(mine(), "mine");
}

/// A line of a journal is held up to the length of a row: one of 4 GB, all zeros, takes no memory.
#[cfg(target_os = "linux")]
#[test]
fn a_long_line_of_a_journal_is_not_held() {
    let dir = folder("sweep-long");
    let (file, out, whole) = (study(&dir, 4, ""), dir.join("store"), dir.join("whole"));
    succeeds(&["sweep", text(&file), "--out", text(&whole)]);
    succeeds(&["sweep", text(&file), "--out", text(&out)]);
    let part = fs::read_dir(out.join("parts")).expect("a folder").flatten().next().expect("a part").path();
    let stem = part.file_stem().expect("a name").to_string_lossy().into_owned();
    fs::remove_file(&part).expect("ours");
    for name in [format!("journal/{stem}.jsonl"), "journal/0000000000000000-00000.jsonl".into()] {
        let journal = fs::File::create(out.join(name)).expect("a journal");
        journal.set_len(4 << 30).expect("a sparse file");
    }
    let exe = env!("CARGO_BIN_EXE_slowstart");
    let script = format!(
        "ulimit -v 2000000; {exe} sweep status {out} && {exe} -j 1 sweep {file} --out {out}",
        out = text(&out),
        file = text(&file)
    );
    let ran = Command::new("sh").args(["-c", &script]).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(contents(&whole), contents(&out));
}

/// An axis goes before a column of rows that has its name: `path` of a row has the values of all axes.
#[test]
fn a_sweep_over_paths_is_grouped_by_them() {
    let dir = folder("sweep-paths");
    let (file, out) = (dir.join("sweep.toml"), dir.join("store"));
    let toml = "path = \"leo\"\nstartups = [\"standard\"]\nsize = \"100kB\"\nruns = 1\n\
                [axes]\npath = [\"leo\", \"dsl\"]\nqueue = \"0.5bdp,1bdp\"\n";
    fs::write(&file, toml).expect("a study");
    // What computes nothing needs no store.
    assert_eq!(succeeds(&["sweep", text(&file), "--count"]).trim(), "4 runs in 1 chunks");
    refuses(&["sweep", text(&file)], &["--out"]);
    succeeds(&["sweep", text(&file), "--out", text(&out)]);
    let grouped = succeeds(&["sweep", "query", text(&out), "--group", "path", "--csv"]);
    let paths: Vec<&str> = grouped.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
    assert_eq!(paths, ["dsl", "leo"], "{grouped}");
    let map = succeeds(&["sweep", "map", text(&out), "--x", "queue", "--y", "path", "--quiet"]);
    assert_eq!(map.lines().filter(|l| l.contains("dsl") || l.contains("leo")).count(), 2, "{map}");
    let one = succeeds(&["sweep", "query", text(&out), "--where", "path=dsl", "--csv"]);
    assert_eq!(one.lines().count(), 3, "{one}");
}
