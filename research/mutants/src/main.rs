//! How many mutants of each startup the vectors for ports find.
//!
//! ```sh
//! slowstart vectors > target/vectors.jsonl
//! cargo run -p slowstart-mutants -- crates/slowstart target/vectors.jsonl target/mutants
//! ```
//!
//! Copies the core, plants every mutant of its startups into the copy behind a switch, drops those that do not
//! compile, and plays the vectors against each, as one would against a port. Prints
//! `docs/evidence/vectors.csv`. A survivor that neither `equal.txt` nor `open.txt` explains is an error.

#![allow(clippy::disallowed_methods, reason = "it reads files of its own")]

mod explained;
mod mutate;

use explained::Table;
use mutate::{Mutant, Planted};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What plays the vectors against a mutant; compiled against the copy.
const CHECK: &str = include_str!("../check/src/main.rs");

/// The switch: which mutant is on, and how often any was asked for, so that a loop that a mutant made endless
/// ends. While none is on it notes which are reached, so that only these need to be played.
const SWITCH: &str = "
#[doc(hidden)]
pub mod mutant {
    use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
    pub static ON: AtomicU32 = AtomicU32::new(0);
    pub static ASKED: AtomicU64 = AtomicU64::new(0);
    pub static REACHED: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];
    pub fn is(n: u32) -> bool {
        if ON.load(Relaxed) == 0 { REACHED[n as usize].store(true, Relaxed); return false; }
        let asked = ASKED.load(Relaxed) + 1;
        ASKED.store(asked, Relaxed);
        assert!(asked < 10_000_000, \"it does not end\");
        ON.load(Relaxed) == n
    }
}
";

/// Files of the core with rules of startups.
const SOURCES: [&str; 3] = ["src/startup", "src/bbr", "src/round.rs"];
/// Files without rules.
const LEFT_OUT: [&str; 3] = ["mod.rs", "foreign.rs", "not_implemented.rs"];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [core, vectors, out] = args.as_slice() else {
        return Err("usage: slowstart-mutants CORE VECTORS OUT".into());
    };
    let (core, out) = (Path::new(core), Path::new(out));
    let files = sources(core)?;
    let mut dropped = BTreeSet::new();
    let planted = loop {
        let planted = plant(core, out, &files, &dropped)?;
        let bad = rejected(out, &planted)?;
        if bad.is_empty() {
            break planted;
        }
        eprintln!("{} mutants do not compile", bad.len());
        dropped.extend(bad);
    };
    let survivors = survivors(out, Path::new(vectors), &planted)?;
    let mut explained = Vec::new();
    for text in [explained::EQUAL, explained::OPEN] {
        let table = Table::read(text)?;
        if let Some(entry) = table.stale(&planted).first() {
            return Err(format!("no such mutant: {entry}").into());
        }
        explained.push(table.explained(&planted, &survivors)?);
    }
    print!("{}", report(&planted, &survivors, &explained[0]));
    if let Some(id) = explained[0].intersection(&explained[1]).next() {
        return Err(format!("mutant {id} is in both tables").into());
    }
    let without = |p: &&Planted| survivors.contains(&p.id) && explained.iter().all(|e| !e.contains(&p.id));
    let without: Vec<String> = planted.iter().filter(without).map(|p| explained::line(&p.mutant)).collect();
    if without.is_empty() {
        return Ok(());
    }
    Err(format!("survivors without a reason:\n{}", without.join("\n")).into())
}

/// The files to mutate, relative to the core.
fn sources(core: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open: Vec<PathBuf> = SOURCES.iter().map(PathBuf::from).collect();
    while let Some(path) = open.pop() {
        if core.join(&path).is_dir() {
            for entry in fs::read_dir(core.join(&path))? {
                open.push(path.join(entry?.file_name()));
            }
        } else if !LEFT_OUT.iter().any(|name| path.ends_with(name)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Writes the copy with all mutants but those dropped.
fn plant(core: &Path, out: &Path, files: &[PathBuf], dropped: &BTreeSet<Mutant>) -> Outcome<Vec<Planted>> {
    copy(&core.join("src"), &out.join("core/src"))?;
    let lib = fs::read_to_string(core.join("src/lib.rs"))?;
    let lib = lib.replace("#![doc = include_str!(\"../README.md\")]", "");
    write(&out.join("core/src/lib.rs"), &format!("{lib}{SWITCH}"))?;
    let manifest = "[package]\nname = \"slowstart\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[features]\nforeign = []\n";
    write(&out.join("core/Cargo.toml"), manifest)?;
    write(&out.join("check/src/main.rs"), CHECK)?;
    let manifest = "[package]\nname = \"check\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
        [dependencies]\nslowstart = { path = \"../core\" }\nserde_json = \"1\"\n\
        [profile.dev]\nopt-level = 1\ndebug = false\noverflow-checks = true\n[workspace]\n";
    write(&out.join("check/Cargo.toml"), manifest)?;
    let mut planted = Vec::new();
    for file in files {
        let text = fs::read_to_string(core.join(file))?;
        let name = file.to_string_lossy().into_owned();
        let (text, mut new) = mutate::plant(&name, &text, planted.len() as u32 + 1, dropped)?;
        write(&out.join("core").join(file), &text)?;
        planted.append(&mut new);
    }
    Ok(planted)
}

/// Writes a file unless it has this text already.
fn write(path: &Path, text: &str) -> Outcome<()> {
    if fs::read_to_string(path).is_ok_and(|have| have == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().ok_or("a file is in a folder")?)?;
    Ok(fs::write(path, text)?)
}

fn copy(from: &Path, to: &Path) -> Outcome<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            write(&to, &fs::read_to_string(entry.path())?)?;
        }
    }
    Ok(())
}

/// Mutants in whose lines the compiler found an error.
fn rejected(out: &Path, planted: &[Planted]) -> Outcome<BTreeSet<Mutant>> {
    let cargo = Command::new("cargo")
        .args(["build", "--quiet", "--message-format=json"])
        .current_dir(out.join("check"))
        .env("RUSTFLAGS", "-Awarnings")
        .output()?;
    let mut bad = BTreeSet::new();
    let mut others = String::new();
    for line in String::from_utf8_lossy(&cargo.stdout).lines() {
        let message: Value = serde_json::from_str(line)?;
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
        let lines = spans.iter().filter_map(|s| Some((s["file_name"].as_str()?, s["line_start"].as_u64()?)));
        let lines: Vec<(&str, u64)> = lines.collect();
        let here = |p: &&Planted| {
            lines.iter().any(|(file, line)| file.ends_with(&p.mutant.file) && *line == p.at_line)
        };
        let found: Vec<&Planted> = planted.iter().filter(here).collect();
        if found.is_empty() {
            let _ = writeln!(others, "{}", message["rendered"].as_str().unwrap_or_default());
        }
        bad.extend(found.iter().map(|p| p.mutant.clone()));
    }
    if bad.is_empty() && !cargo.status.success() {
        return Err(format!("{others}\n{}", String::from_utf8_lossy(&cargo.stderr)).into());
    }
    Ok(bad)
}

/// Plays the vectors against each mutant. Returns those that survive.
fn survivors(out: &Path, vectors: &Path, planted: &[Planted]) -> Outcome<BTreeSet<u32>> {
    let ids: String = planted.iter().fold(String::new(), |mut all, p| {
        let _ = writeln!(all, "{} {}", p.id, p.mutant.file);
        all
    });
    let list = out.join("mutants.txt");
    fs::write(&list, ids)?;
    let check = Command::new(out.join("check/target/debug/check")).arg(vectors).arg(&list).output()?;
    if !check.status.success() {
        return Err(String::from_utf8_lossy(&check.stderr).into());
    }
    fs::write(out.join("found.txt"), &check.stdout)?;
    let found = String::from_utf8_lossy(&check.stdout).into_owned();
    let each = found.lines().filter_map(|l| l.split_once(' '));
    let alive = each.filter(|(_, by)| ["-", "unreached"].contains(by));
    Ok(alive.filter_map(|(id, _)| id.parse().ok()).collect())
}

/// A row for each file: mutants, found, not found but equal to the original, open, and the shares found of all and
/// of those that are not equal.
fn report(planted: &[Planted], survivors: &BTreeSet<u32>, equal: &BTreeSet<u32>) -> String {
    let mut files: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for p in planted {
        let [all, alive, same] = files.entry(&p.mutant.file).or_default();
        *all += 1;
        *alive += u32::from(survivors.contains(&p.id));
        *same += u32::from(equal.contains(&p.id));
    }
    let total = files.values().fold([0; 3], |t, f| [t[0] + f[0], t[1] + f[1], t[2] + f[2]]);
    let mut text = String::from("rules,mutants,found,equal,open,percent_of_all,percent_of_those_not_equal\n");
    let short =
        |file: &str| file.trim_start_matches("src/").trim_start_matches("startup/").replace(".rs", "");
    let rows = files.iter().map(|(file, n)| (short(file), *n));
    for (name, [all, alive, equal]) in rows.chain([("all".to_string(), total)]) {
        let (found, open) = (all - alive, alive - equal);
        let share = |of: u32| f64::from(found) * 100.0 / f64::from(of);
        let (whole, rest) = (share(all), share(all - equal));
        let _ = writeln!(text, "{name},{all},{found},{equal},{open},{whole:.1},{rest:.1}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the core makes an explanation stale: whoever changes a line explains its survivors anew.
    #[test]
    fn every_explained_mutant_exists() {
        let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/slowstart");
        let mut planted = Vec::new();
        for file in sources(&core).expect("the core is there") {
            let text = fs::read_to_string(core.join(&file)).expect("it was listed");
            let name = file.to_string_lossy().into_owned();
            planted.extend(mutate::plant(&name, &text, 1, &BTreeSet::new()).expect("Rust").1);
        }
        for text in [explained::EQUAL, explained::OPEN] {
            let table = Table::read(text).expect("the table is well formed");
            assert_eq!(table.stale(&planted), Vec::<String>::new());
        }
    }

    #[test]
    fn an_explained_mutant_that_is_found_is_an_error() {
        let text = "fn f(a: u32) -> bool {\n    a > 3\n}\n";
        let (_, planted) = mutate::plant("src/f.rs", text, 1, &BTreeSet::new()).expect("Rust");
        let equal = Table::read("= it is never three\nf.rs\ta > 3\ta > 3\t(a) >= (3)\n").expect("a table");
        let id = planted.iter().find(|p| p.mutant.to == "(a) >= (3)").expect("it is planted").id;
        let alive = BTreeSet::from([id]);
        assert_eq!(equal.explained(&planted, &alive).expect("it survives"), BTreeSet::from([id]));
        assert!(equal.explained(&planted, &BTreeSet::new()).is_err());
        assert_eq!(equal.stale(&[]).len(), 1);
        assert!(Table::read("f.rs\ta > 3\ta > 3\t(a) >= (3)\n").is_err(), "no reason");
    }
}
