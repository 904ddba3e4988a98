//! The pictures of the documents that are drawn from runs of this version, or from its manifests.
//! `SLOWSTART_BLESS=1` draws them anew (`make pictures`).

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use slowstart_sim::engine::Sampling;
use slowstart_study::decision::{Decision, Terms};
use slowstart_study::record::Row;
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The colours of Okabe and Ito, on white, so that a picture is readable on a dark page too.
const STYLE: &str = "<style>text{font:13px system-ui,'DejaVu Sans',sans-serif;fill:#444}.t{font-size:20px;font-weight:700;fill:#111}\
.h{font-weight:700;fill:#111}.g{stroke:#000;stroke-opacity:.1}.a{stroke:#333}.b{fill:#fff;stroke:#333}.e{fill:none;stroke:#999}\
.halo{paint-order:stroke;stroke:#fff;stroke-width:4px}.c0{fill:#d55e00}.c1{fill:#008a63}.c2{fill:#b57a00}.c3{fill:#a64d79}\
.c4{fill:#825}.c5{fill:#1a1a1a}.c6{fill:#0072b2}.l{fill:none;stroke-width:2.5}.l0{stroke:#d55e00}.l1{stroke:#0072b2}\
.m{fill-opacity:.3;stroke-width:1.5}.m0{stroke:#d55e00}.m1{stroke:#008a63}.m2{stroke:#b57a00}.m3{stroke:#a64d79}.m4{stroke:#825}.m5{stroke:#1a1a1a}</style>";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An SVG of this size with this description.
fn svg(width: u32, height: u32, about: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{about}\">{STYLE}\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
    writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    )
    .expect("a String takes everything");
}

fn line(out: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((a, b), (c, d)) = (from, to);
    writeln!(out, "<line class=\"{class}\" x1=\"{a:.1}\" y1=\"{b:.1}\" x2=\"{c:.1}\" y2=\"{d:.1}\"/>")
        .expect("a String takes everything");
}

/// The file is what is drawn.
fn is_drawn(file: &str, drawn: &str) {
    let path = root().join(file);
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(&path, drawn).expect(file);
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == drawn, "{file} is not what is drawn from this version: make pictures");
}

fn study(path: &str, startups: &[&str], size: Option<&str>, runs: u32) -> Study {
    let text = StudyText {
        path: path.into(),
        startups: startups.iter().map(ToString::to_string).collect(),
        size: size.map(Into::into),
        runs: Some(runs),
        ..StudyText::default()
    };
    Study::check(&text, None).unwrap_or_else(|e| panic!("{e}"))
}

/// Which startup is sooner on which path, and what it loses there: a panel a path, a mark a startup.
#[test]
fn gain_against_loss_by_path() {
    const STARTUPS: [&str; 7] =
        ["hystart", "standard", "search", "hystart-picoquic", "rate-bound", "ess", "bbr3"];
    const PATHS: [(&str, &str); 6] = [
        ("geo", "geostationary satellite"),
        ("leo", "low-orbit satellite"),
        ("lte", "mobile network"),
        ("wifi-weak", "weak WiFi"),
        ("cable", "300 Mbit/s"),
        ("policed", "a plan that is policed"),
    ];
    const WIDTH: f64 = 300.0;
    const HEIGHT: f64 = 190.0;
    let mut out = String::new();
    text(&mut out, 16.0, 30.0, "t", "start", "What each startup gains and loses, by path");
    for (i, name) in STARTUPS[1..].iter().enumerate() {
        let x = 24.0 + 150.0 * i as f64;
        mark(&mut out, i, x, 55.0);
        text(&mut out, x + 12.0, 59.5, "", "start", name);
    }
    for (i, (path, about)) in PATHS.iter().enumerate() {
        let (left, top) = (60.0 + (WIDTH + 20.0) * (i % 3) as f64, 108.0 + (HEIGHT + 62.0) * (i / 3) as f64);
        // No loss, 1, 10, ... 10,000 packets; from 60 % sooner to 100 % later.
        let decades = |lost: f64| if lost < 1.0 { 0.0 } else { 1.0 + libm::log10(lost) };
        let x = |lost: f64| left + 14.0 + (WIDTH - 28.0) * decades(lost).min(5.0) / 5.0;
        let y = |percent: f64| top + HEIGHT * (percent.clamp(-60.0, 100.0) + 60.0) / 160.0;
        text(&mut out, left, top - 10.0, "h", "start", &format!("{path}: {about}"));
        for percent in [-50.0, 0.0, 50.0, 100.0] {
            line(
                &mut out,
                if percent == 0.0 { "a" } else { "g" },
                (left, y(percent)),
                (left + WIDTH, y(percent)),
            );
            if i % 3 == 0 {
                text(
                    &mut out,
                    left - 6.0,
                    y(percent) + 4.5,
                    "",
                    "end",
                    &format!("{percent:+} %").replace("+0 %", "0 %"),
                );
            }
        }
        for (lost, name) in
            [(0.0, "0"), (1.0, "1"), (10.0, "10"), (100.0, "100"), (1e3, "1,000"), (1e4, "10,000")]
        {
            line(&mut out, "g", (x(lost), top), (x(lost), top + HEIGHT));
            text(&mut out, x(lost), top + HEIGHT + 16.0, "", "middle", name);
        }
        text(&mut out, left + WIDTH / 2.0, top + HEIGHT + 32.0, "", "middle", "packets lost in startup");
        // At the path's own size most startups end before the transfer does, so that their losses are known.
        let study = study(path, &STARTUPS, None, 10);
        let mut rows: Vec<Row> = Vec::new();
        study
            .run_all(|o| {
                rows.push(o.row);
                Ok::<_, ()>(())
            })
            .expect("nothing refuses");
        let decision = Decision::new(&rows, &Terms::default());
        let mut unseen = Vec::new();
        for (k, name) in STARTUPS[1..].iter().enumerate() {
            let of = decision.standings.iter().find(|s| s.summary.label == *name).expect("it ran");
            // No mark where most runs do not show the losses.
            let Ok(lost) =
                of.summary.lost(|m| m.mid.to_string()).split(' ').next().unwrap_or_default().parse::<f64>()
            else {
                unseen.push(*name);
                continue;
            };
            let gain = decision.against(&of.summary, decision.by).map_or(0.0, |d| d.median.mid);
            // A median hides the runs that lose more.
            let most =
                of.summary.rows.iter().filter_map(|r| r.startup_lost_packets).max().unwrap_or(0) as f64;
            let (from, to) = (x(lost), x(most));
            writeln!(
                out,
                "<rect class=\"c{k}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"2\"/>",
                y(gain) - 1.0,
                to - from
            )
            .expect("a String takes everything");
            mark(&mut out, k, x(lost), y(gain));
        }
        if !unseen.is_empty() {
            let note = format!("losses not observed: {}", unseen.join(", "));
            text(&mut out, left + WIDTH - 6.0, top + HEIGHT - 8.0, "", "end", &note);
        }
    }
    text(
        &mut out,
        16.0,
        612.0,
        "",
        "start",
        "Up: 10 MB arrive sooner than with hystart, Linux's default. Right: more packets lost in startup. \
        Medians of ten runs; a line ends at the run that loses most.",
    );
    let about = "Time to 10 MB against hystart over packets lost in startup, for six startups on six paths. On satellite paths most are \
                 up to 45 percent sooner; standard loses thousands of packets. On cable, WiFi and policed paths nothing is more than 5 percent sooner.";
    is_drawn("docs/guide/gain.svg", &svg(1030, 625, about, &out));
}

/// The mark of the startup of this number: they differ in colour and in form, and one shows through another.
fn mark(out: &mut String, i: usize, x: f64, y: f64) {
    let form = match i {
        0 => format!("<circle class=\"m m0 c0\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"/>"),
        1 => format!(
            "<rect class=\"m m1 c1\" x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\"/>",
            x - 5.5,
            y - 5.5
        ),
        2 => format!("<path class=\"m m2 c2\" d=\"M{:.1} {:.1}l7 12h-14z\"/>", x, y - 7.0),
        3 => format!("<path class=\"m m3 c3\" d=\"M{:.1} {:.1}l7 7l-7 7l-7-7z\"/>", x, y - 7.0),
        4 => format!("<path class=\"m m4 c4\" d=\"M{:.1} {:.1}h14l-7 12z\"/>", x - 7.0, y - 6.0),
        _ => format!(
            "<path class=\"m m5 c5\" d=\"M{:.1} {:.1}h4v5h5v4h-5v5h-4v-5h-5v-4h5z\"/>",
            x - 2.0,
            y - 7.0
        ),
    };
    out.push_str(&form);
    out.push('\n');
}

/// Slow start explained: one run of `standard`, with what happens and when the sender learns of it.
#[test]
fn one_run_explained() {
    const AREA: (f64, f64, f64, f64) = (56.0, 56.0, 980.0, 400.0);
    let study = study("rate=20Mbit rtt=50ms queue=1bdp", &["standard"], Some("10MB"), 1);
    let outcome = study.run(Job { contender: 0, run: 0 }, Sampling::EachAck, false);
    let row = &outcome.row;
    let bdp = row.bdp_bytes as f64;
    let until = 0.7;
    let most = 4.5;
    let x = |t: f64| AREA.0 + (AREA.2 - AREA.0) * (t / until).min(1.0);
    let y = |bdps: f64| AREA.3 - (AREA.3 - AREA.1) * (bdps / most).min(1.0);
    let mut out = String::new();
    text(&mut out, 16.0, 30.0, "t", "start", "One run of slow start: 20 Mbit/s, 50 ms, a queue of one BDP");
    for bdps in 0..=4 {
        let at = y(f64::from(bdps));
        line(&mut out, if bdps == 0 { "a" } else { "g" }, (AREA.0, at), (AREA.2, at));
        text(&mut out, AREA.0 - 8.0, at + 4.5, "", "end", &bdps.to_string());
    }
    text(&mut out, AREA.0 - 8.0, AREA.1 - 6.0, "", "start", "BDP");
    for tenth in 0..=7 {
        let at = f64::from(tenth) / 10.0;
        text(&mut out, x(at), AREA.3 + 18.0, "", "middle", &format!("{at:.1} s"));
    }
    for (bdps, words) in [(1.0, "the path is full"), (2.0, "the queue is full")] {
        line(&mut out, "a", (AREA.0, y(bdps)), (AREA.2, y(bdps)));
        text(&mut out, AREA.2 - 4.0, y(bdps) + 16.0, "", "end", words);
    }
    let start = slowstart::units::Span(study.start().0).as_secs_f64();
    let curve = |out: &mut String, class: &str, of: &dyn Fn(&slowstart_study::record::Sample) -> u64| {
        let mut d = String::new();
        let mut last = f64::NEG_INFINITY;
        for s in outcome.trace.samples.iter().filter(|s| s.flow == row.flow) {
            let at = x(s.time_s - start);
            if s.time_s - start > until || at - last < 1.5 {
                continue;
            }
            write!(d, "{}{at:.1} {:.1}", if d.is_empty() { "M" } else { "L" }, y(of(s) as f64 / bdp))
                .expect("a String");
            last = at;
        }
        writeln!(out, "<path class=\"l {class}\" d=\"{d}\"/>").expect("a String");
    };
    curve(&mut out, "l1", &|s| s.inflight_bytes);
    curve(&mut out, "l0", &|s| s.cwnd_bytes);
    let exit = row.exit.as_ref().expect("it leaves");
    let moments = [
        (
            row.capacity_time_s.expect("it fills the path"),
            1.0,
            "1  the path is full: from here on packets wait",
        ),
        (row.first_drop_time_s.expect("a drop"), 2.0, "2  the queue is full: packets are dropped"),
        (exit.time_s, exit.detected_cwnd_bytes as f64 / bdp, "3  a round trip later the sender learns of it"),
    ];
    for (at, bdps, words) in moments {
        writeln!(out, "<circle class=\"b\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"6\"/>", x(at), y(bdps))
            .expect("a String");
        text(&mut out, x(at) - 14.0, y(bdps) - 8.0, "h halo", "end", words);
    }
    let cut = y(exit.cwnd_bytes as f64 / bdp);
    text(&mut out, x(exit.left_s) + 96.0, cut - 34.0, "h halo", "start", "4  it cuts the window and repairs");
    text(&mut out, x(0.02), y(0.62), "c0 halo", "start", "window: doubles in each round trip");
    text(&mut out, x(0.57), y(2.25), "c6 halo", "start", "bytes in flight");
    let about = "The window and the bytes in flight of one run of standard slow start. The window doubles in each round trip. After 0.28 \
                 seconds the path is full, after 0.34 the queue; at 0.44 seconds the sender learns of the first loss, with a window of \
                 four times what the path holds.";
    is_drawn("docs/guide/one-run.svg", &svg(1000, 430, about, &out));
}

/// The dependencies of a package of the workspace on others, without those of its tests.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(manifest).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    let mut all = BTreeSet::new();
    let mut add = |table: Option<&toml::Value>| {
        let names = table.and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
        all.extend(
            names
                .filter(|n| n.starts_with("slowstart"))
                .map(|n| n.trim_start_matches("slowstart-").to_string()),
        );
    };
    add(manifest.get("dependencies"));
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    targets.into_iter().flatten().for_each(|(_, t)| add(t.get("dependencies")));
    all
}

/// What the crates are, in this order from the left; what is not here comes last.
const ABOUT: [(&str, &str); 27] = [
    ("slowstart", "the algorithms"),
    ("sim", "the simulator"),
    ("study", "runs, rows, verdicts"),
    ("report", "pages, charts"),
    ("files", "written whole"),
    ("abi", "the layout of C"),
    ("plugin", "startups in C"),
    ("replay", "captures and logs"),
    ("linux", "the kernel"),
    ("uml", "virtual kernels"),
    ("quic", "any QUIC stack"),
    ("quic-sim", "QUIC stacks"),
    ("papers", "claims of papers"),
    ("engines", "what runs a study"),
    ("league", "many paths"),
    ("suite", "RFC 9743"),
    ("ffi", "C"),
    ("stats", "random, intervals"),
    ("quinn", "an adapter"),
    ("noq", "an adapter"),
    ("s2n", "an adapter"),
    ("trial", "trials"),
    ("sweep", "regions, stores"),
    ("packetdrill", "scripts"),
    ("web", "the browser"),
    ("cli", "the command"),
    ("python", "the package"),
];

/// How far above the lowest a crate stands.
fn storey(uses: &BTreeMap<String, BTreeSet<String>>, name: &str) -> usize {
    uses[name].iter().map(|n| storey(uses, n) + 1).max().unwrap_or(0)
}

/// True if a crate uses another, directly or by way of others.
fn reaches(uses: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    uses[from].iter().any(|n| n == to || reaches(uses, n, to))
}

/// The house of crates: each stands on those that it uses. An arrow that others imply is left out.
#[test]
fn the_house_of_crates() {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in std::fs::read_dir(root().join("crates")).expect("crates").flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        if folder.path().join("Cargo.toml").is_file() && !["bindgen", "fuzz"].contains(&name.as_str()) {
            uses.insert(name, dependencies(&folder.path().join("Cargo.toml")));
        }
    }
    uses.insert("python".into(), dependencies(&root().join("python/Cargo.toml")));
    let mut storeys: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let rank = |name: &str| ABOUT.iter().position(|(n, _)| *n == name).unwrap_or(ABOUT.len());
    let mut names: Vec<&str> = uses.keys().map(String::as_str).collect();
    names.sort_by_key(|n| (rank(n), *n));
    for name in &names {
        storeys.entry(storey(&uses, name)).or_default().push(name);
    }
    let top = *storeys.keys().max().expect("crates");
    let place = |name: &str| {
        let s = storey(&uses, name);
        let all = &storeys[&s];
        let i = all.iter().position(|n| *n == name).expect("a crate");
        (500.0 + 140.0 * (i as f64 - (all.len() as f64 - 1.0) / 2.0), 40.0 + 92.0 * (top - s) as f64)
    };
    let mut out = String::new();
    for (name, own) in &uses {
        for on in own.iter().filter(|on| !own.iter().any(|o| reaches(&uses, o, on))) {
            let ((x, y), (a, b)) = (place(name), place(on));
            let bend = f64::midpoint(y + 44.0, b);
            writeln!(
                out,
                "<path class=\"e\" d=\"M{x:.1} {:.1}C{x:.1} {bend:.1} {a:.1} {bend:.1} {a:.1} {b:.1}\"/>",
                y + 44.0
            )
            .expect("a String");
        }
    }
    for name in names {
        let (x, y) = place(name);
        let about = ABOUT.get(rank(name)).map_or("", |(_, about)| about);
        writeln!(
            out,
            "<rect class=\"b\" x=\"{:.1}\" y=\"{y:.1}\" width=\"132\" height=\"44\" rx=\"5\"/>",
            x - 66.0
        )
        .expect("a String");
        text(&mut out, x, y + 18.0, "h", "middle", name);
        text(&mut out, x, y + 35.0, "", "middle", about);
    }
    let about = "The crates in layers: slowstart at the bottom, sim and study above it, then the crates that use study, and the \
                 command and the Python package at the top.";
    is_drawn("docs/dev/crates.svg", &svg(1000, 100 + 92 * top as u32, about, &out));
}
