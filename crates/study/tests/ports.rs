//! The example ports in `contrib/ports` pass the vectors, and with an error in them they do not.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use slowstart::registry;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn ports() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/ports")
}

fn vectors() -> Vec<u8> {
    let entry = registry::named("hystart++").expect("it is there");
    let mut out = Vec::new();
    slowstart_study::vectors::write(&[(entry.name.into(), entry.algorithm)], &mut out).expect("memory");
    out
}

/// Plays the vectors to a program. Returns its status and what it printed.
fn play(program: &mut Command, vectors: &[u8]) -> (Option<i32>, String) {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was found before");
    // A port that found a difference reads no further.
    _ = child.stdin.take().expect("piped").write_all(vectors);
    let out = child.wait_with_output().expect("it ends");
    (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
}

fn is_there(program: &str, argument: &str) -> bool {
    let found = Command::new(program).arg(argument).output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: ports ({program} was not found)");
    }
    found
}

#[test]
fn the_port_in_go_passes() {
    if !is_there("go", "version") {
        return;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hystart_pp");
    let built =
        Command::new("go").arg("build").arg("-o").arg(&out).arg(ports().join("hystart_pp.go")).output();
    let built = built.expect("it was found before");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let (status, text) = play(&mut Command::new(&out), &vectors());
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(play(&mut Command::new(&out), b"").0, Some(1), "no vectors are no success");
}

/// What was written, and what somebody might have written.
const ERRORS: &[(&str, &str)] = &[
    ("ack[\"upto\"] > self.window_end", "ack[\"upto\"] >= self.window_end"),
    ("CSS_ROUNDS = 4, 5", "CSS_ROUNDS = 4, 6"),
    ("CSS_ROUNDS = 4, 5", "CSS_ROUNDS = 4, 4"),
    ("CSS_ROUNDS = 4, 5", "CSS_ROUNDS = 3, 5"),
    ("min(self.current_min or ack[\"rtt_ns\"], ack[\"rtt_ns\"])", "ack[\"rtt_ns\"]"),
    ("N_RTT_SAMPLE = 8, 8", "N_RTT_SAMPLE = 8, 1"),
    ("N_RTT_SAMPLE = 8, 8", "N_RTT_SAMPLE = 8, 7"),
    ("N_RTT_SAMPLE = 8, 8", "N_RTT_SAMPLE = 8, 9"),
    ("N_RTT_SAMPLE = 8, 8", "N_RTT_SAMPLE = 4, 8"),
    ("self.current_min < self.baseline", "False"),
    ("max(MIN_RTT_THRESH, ", "max(0, "),
    (", MAX_RTT_THRESH))", ", 10**18))"),
    ("self.current_min >= self.last_min", "self.current_min > self.last_min"),
    ("grow = ack[\"bytes\"] if", "grow = facts[\"mss\"] if"),
    ("\nL = 8", "\nL = 10**9"),
    ("if facts[\"pacing_on\"] else", "if False else"),
    ("ack[\"limit\"] in (\"window\", \"pacer\") and ", ""),
    ("self.baseline, self.css_rounds = self.current_min, 0", "self.baseline = self.current_min"),
    ("self.current_min, None, 0", "self.current_min, self.current_min, 0"),
    ("self.current_min, None, 0", "self.current_min, None, self.samples"),
    ("ack[\"bytes\"], L", "ack[\"delivered\"], L"),
];

#[test]
fn the_port_in_python_passes_and_each_error_in_it_is_found() {
    if !is_there("python3", "--version") {
        return;
    }
    let (file, vectors) = (ports().join("hystart_pp.py"), vectors());
    let (status, text) = play(Command::new("python3").arg(&file), &vectors);
    assert_eq!(status, Some(0), "{text}");
    let right = std::fs::read_to_string(&file).expect("text");
    for (i, (from, to)) in ERRORS.iter().enumerate() {
        assert_eq!(right.matches(from).count(), 1, "{from}");
        let wrong = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wrong-{i}.py"));
        std::fs::write(&wrong, right.replace(from, to)).expect("the temporary folder is writable");
        let (status, text) = play(Command::new("python3").arg(&wrong), &vectors);
        assert!(status == Some(1) && text.contains("expected"), "{from} -> {to}: {text}");
    }
}
