//! The inputs of the corpus, each and cut short, through their targets. Most whole ones are valid: otherwise fuzzing would
//! begin with bytes that a parser refuses at once.

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
