//! Controllers in C that run in the simulator.

use slowstart_sim::engine::Sampling;
use slowstart_study::record::Row;
use slowstart_study::run::Outcome;
use slowstart_study::scenario::{Study, StudyText};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A C compiler, or `None`, and then one line.
fn compiler() -> Option<&'static str> {
    let found =
        ["cc", "clang", "gcc"].into_iter().find(|c| Command::new(c).arg("--version").output().is_ok());
    if found.is_none() {
        eprintln!("skipped: no C compiler");
    }
    found
}

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Builds a plugin; returns how a study names it.
fn build(cc: &str, source: &Path, name: &str, defines: &[&str]) -> String {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let mut c = Command::new(cc);
    c.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-I"])
        .arg(dir().join("include"));
    let out = c.args(defines).arg(source).arg("-o").arg(&to).output().expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    format!("plugin:{}", to.display())
}

/// The outcomes of each startup of a study with the avoidance Reno.
fn outcomes(text: &str, startups: &[&str]) -> Vec<Vec<Outcome>> {
    let mut text: StudyText = StudyText::read(text).expect("a study");
    text.startups = startups.iter().map(ToString::to_string).collect();
    text.avoidance = Some("reno".into());
    let study = Study::check(&text, None).expect("a study");
    let mut all = vec![Vec::new(); startups.len()];
    for job in study.jobs() {
        all[job.contender].push(study.run(job, Sampling::EachAck, false));
    }
    all
}

/// Losses, bursts, timeouts, spurious losses, idle time, marks, small windows and other flows.
const STUDIES: [&str; 12] = [
    "path='geo'\nruns=2",
    "path='lte'\nruns=2",
    "path='leo'\nruns=2",
    "path='wifi-weak'\nruns=2",
    "path='rate=20Mbit rtt=40ms queue=0.2bdp'\nsize='5MB'\nruns=2",
    "path='rate=20Mbit rtt=40ms queue=2bdp loss=2%'\nsize='2MB'\nruns=4",
    "path='rate=20Mbit rtt=40ms queue=2bdp jitter=20ms'\nsize='5MB'\nruns=4",
    "path='rate=20Mbit rtt=40ms queue=1bdp outage=at=300ms,for=1s,queue=kept'\nsize='8MB'\nruns=2",
    "path='rate=20Mbit rtt=40ms queue=fq_codel'\nsize='8MB'\nruns=2\nset={ecn='rfc3168'}",
    "path='rate=20Mbit rtt=40ms queue=1bdp'\napp='web'\nduration='30s'\nruns=2",
    "path='rate=20Mbit rtt=40ms queue=1bdp'\napp='video'\nduration='30s'\nruns=2",
    "path='rate=20Mbit rtt=40ms queue=1bdp'\nagainst=['cubic@-10s']\nsize='8MB'\nruns=2",
];

#[test]
fn newreno_in_c_has_the_rows_of_standard() {
    let Some(cc) = compiler() else { return };
    let newreno = build(cc, &dir().join("examples/newreno.c"), "newreno", &[]);
    let (mut timeouts, mut undone, mut marks) = (0, 0, 0);
    for text in STUDIES {
        let all = outcomes(text, &[&newreno, "standard"]);
        for (ours, theirs) in all[0].iter().zip(&all[1]) {
            let named = Row {
                startup: theirs.row.startup.clone(),
                params: theirs.row.params.clone(),
                avoidance: theirs.row.avoidance.clone(),
                ..ours.row.clone()
            };
            let json = |row: &Row| serde_json::to_string(row).expect("JSON");
            assert_eq!(json(&named), json(&theirs.row), "{text}");
            // The window after each ACK; a plugin names no phases.
            let windows = |o: &Outcome| {
                o.trace.samples.iter().map(|s| (s.cwnd_bytes, s.ssthresh_bytes)).collect::<Vec<_>>()
            };
            assert_eq!(windows(ours), windows(theirs), "{text}");
            timeouts += theirs.row.timeouts.expect("observed");
            undone += theirs.trace.events.iter().filter(|e| e.what == "undone").count();
            marks += theirs.row.marks.as_ref().map_or(0, |m| m.responses);
        }
    }
    assert!(timeouts > 0 && undone > 0 && marks > 0, "{timeouts} timeouts, {undone} undone, {marks} marks");
}

/// What a plugin does wrong: the code of its `ack`, and the fault that is told.
const FAULTS: [(&str, &str); 5] = [
    ("s->cwnd = 0;", "cwnd: found 0, expected at least min_window, 1448"),
    ("s->cwnd = UINT64_C(1) << 63;", "cwnd: found 9223372036854775808, expected at most 2^40"),
    ("s->wake_ns = f->now_ns;", "wake_ns: found "),
    ("s->pace_kind = SLOWSTART_PACE_RATE;", "pace: found 0, expected bit/s above 0"),
    ("s->exit_detected_ns = f->now_ns;", "exit_why: found null, expected a word such as loss"),
];

fn bad(ack: &str, table: &str) -> String {
    format!(
        "#include \"slowstart.h\"\n#include <stdlib.h>\n\
         static void *create(uint64_t iw, uint64_t seed) {{ (void)iw; (void)seed; return malloc(1); }}\n\
         static void *nothing(uint64_t iw, uint64_t seed) {{ (void)iw; (void)seed; return NULL; }}\n\
         static void begin(void *c, const struct slowstart_facts *f, const struct slowstart_handshake *h, struct slowstart_state *s)\n\
         {{ (void)c; (void)f; (void)h; (void)s; (void)nothing; }}\n\
         static void ack(void *c, const struct slowstart_facts *f, const struct slowstart_ack *a, struct slowstart_state *s)\n\
         {{ (void)c; (void)f; (void)a; (void)s; {ack} }}\n\
         static void congestion(void *c, const struct slowstart_facts *f, const struct slowstart_congestion *e, struct slowstart_state *s)\n\
         {{ (void)c; (void)f; (void)e; (void)s; }}\n\
         static const struct slowstart_plugin p = {{ .size = sizeof p, .version = SLOWSTART_VERSION, .create = create,\n\
         .destroy = free, .established = begin, .ack = ack, .congestion = congestion, {table} }};\n\
         const struct slowstart_plugin *slowstart_get_plugin(void) {{ return &p; }}\n"
    )
}

/// `-Woverride-init` is of -Wextra: a field that is set again wins.
fn build_text(cc: &str, name: &str, text: &str) -> String {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    std::fs::write(&source, text).expect("the temporary folder is writable");
    build(
        cc,
        &source,
        name,
        &["-Wno-override-init", "-Wno-initializer-overrides", "-Wno-unknown-warning-option"],
    )
}

#[test]
fn a_plugin_that_breaks_a_rule_is_named_and_its_run_ends() {
    let Some(cc) = compiler() else { return };
    for (i, (ack, fault)) in FAULTS.iter().enumerate() {
        let plugin = build_text(cc, &format!("bad{i}"), &bad(ack, ""));
        let all = outcomes("path='rate=20Mbit rtt=40ms queue=1bdp'\nruns=1", &["standard", &plugin]);
        assert!(all[0][0].row.completion_s.is_some(), "the others run");
        let row = &all[1][0].row;
        let told = &row.caveats[0];
        assert!(told.contains(&plugin) && told.contains(": ack at 0.10") && told.contains(fault), "{told}");
        assert!(row.duration_s < 0.11 && row.completion_s.is_none(), "{ack}: {} s", row.duration_s);
    }
    let none = build_text(cc, "none", &bad("", ".create = nothing,"));
    let row = &outcomes("path='geo'\nruns=1", &[&none])[0][0].row;
    assert!(row.caveats[0].contains("create: found null, expected a controller"), "{:?}", row.caveats);
}

#[test]
fn a_library_that_is_no_plugin_is_refused() {
    let Some(cc) = compiler() else { return };
    let refused = |startup: &str| {
        let text = StudyText { path: "geo".into(), startups: vec![startup.into()], ..StudyText::default() };
        Study::check(&text, None).expect_err("refused").to_string()
    };
    let missing = refused("plugin:./no/such.so");
    assert!(
        missing.contains("found \"plugin:./no/such.so\"") && missing.contains("No such file"),
        "{missing}"
    );
    let header = refused(&format!("plugin:{}", dir().join("include/slowstart.h").display()));
    assert!(header.contains("expected a library"), "{header}");
    for (name, table, fault) in [
        ("version", ".version = 99,", "version: found 99, expected a version up to 1"),
        ("size", ".size = 16,", "size: found 16, expected at least"),
        ("flags", ".flags = 4,", "flags: found 4"),
        ("null", ".ack = NULL,", "ack: found null, expected a function"),
    ] {
        let plugin = build_text(cc, name, &bad("", table));
        let told = refused(&plugin);
        assert!(told.contains(fault), "{told}");
    }
}

/// A word that no startup here has is a reason all the same.
#[test]
fn a_reason_of_its_own_is_other() {
    let Some(cc) = compiler() else { return };
    let ack = "if (s->exit_why) return; s->exit_detected_ns = f->now_ns; s->exit_detected_cwnd = s->exit_cwnd = s->cwnd; s->exit_why = \"bored\";";
    let plugin = build_text(cc, "own", &bad(ack, ""));
    let row = &outcomes("path='rate=20Mbit rtt=40ms queue=1bdp'\nsize='100kB'\nruns=1", &[&plugin])[0][0].row;
    let row = serde_json::to_value(row).expect("JSON");
    assert_eq!(row["exit"]["reason"], "other", "{row}");
    assert!(row["completion_s"].is_f64(), "{row}");
}

/// What is missing is named before the first run.
#[test]
fn a_missing_symbol_is_named() {
    let Some(cc) = compiler() else { return };
    let refused = |name: &str, source: &str| {
        let text = StudyText {
            path: "geo".into(),
            startups: vec![build_text(cc, name, source)],
            ..StudyText::default()
        };
        Study::check(&text, None).expect_err("refused").to_string()
    };
    let whole = bad("", "");
    let shown = "#include \"slowstart.h\"\n#include <stdlib.h>\n";
    assert!(whole.starts_with(shown));
    let hidden = whole.replace(
        shown,
        "#include <stdlib.h>\n#pragma GCC visibility push(hidden)\n#include \"slowstart.h\"\n",
    );
    let told = refused("hidden", &hidden);
    assert!(told.contains("found no function slowstart_get_plugin"), "{told}");
    let lacking = bad("extern void not_there(void); not_there();", "");
    let told = refused("lacking", &lacking);
    assert!(told.contains("not_there"), "{told}");
}
