//! The inputs of the corpus, each and cut short, through their targets. Most whole ones are valid: otherwise
//! fuzzing would begin with bytes that a parser refuses at once.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use slowstart_fuzz::TARGETS;
use std::fs;
use std::path::Path;

#[test]
fn every_input_passes_and_most_are_valid() {
    for (name, target) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let inputs: Vec<Vec<u8>> =
            files.map(|f| fs::read(f.expect("an entry").path()).expect("a file")).collect();
        let valid = inputs.iter().filter(|bytes| target(bytes)).count();
        assert!(valid >= 3 && valid * 4 >= inputs.len() * 3, "{name}: {valid} of {} are valid", inputs.len());
        for bytes in &inputs {
            for part in 1..8 {
                target(&bytes[..bytes.len() * part / 8]);
            }
        }
    }
}

/// The folders of the corpus and the programs are those of the targets.
#[test]
fn every_target_has_a_folder_and_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|e| e.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let mut targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    targets.sort_unstable();
    assert_eq!(names("corpus"), targets);
    assert_eq!(names("targets"), targets);
}

/// A random number, from a seed that moves on.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Megabytes of memory that this process has used at most; 0 where Linux does not say it.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

/// How many inputs are drawn: `SLOWSTART_CASES`.
fn cases() -> usize {
    std::env::var("SLOWSTART_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// Random calls of a QUIC stack, for each first byte, which chooses startup and avoidance.
#[test]
fn random_calls_of_a_stack_end() {
    let mut seed = 2;
    for case in 0..cases().max(256) {
        let mut bytes: Vec<u8> = (0..4000).map(|_| next(&mut seed) as u8).collect();
        bytes[0] = case as u8;
        assert!(slowstart_fuzz::stacks(&bytes));
    }
}

/// Random studies, most of them valid, end within the bounds of the target and in little memory.
#[test]
fn random_studies_end_in_bounded_time_and_memory() {
    let cases = cases();
    let (mut seed, mut valid) = (1, 0);
    for _ in 0..cases {
        let bytes: Vec<u8> = (0..500).map(|_| next(&mut seed) as u8).collect();
        valid += usize::from(slowstart_fuzz::runs(&bytes));
    }
    println!("{valid} of {cases} valid, {} MB", peak_mb());
    assert!(valid * 4 >= cases * 3, "{valid} of {cases}");
    assert!(peak_mb() < 500, "{} MB", peak_mb());
}
