//! Links between the documents lead to files and headings that exist, on a forge and in the book; tests that
//! documents name are there.

use crate::common::root;
use slowstart::registry;
use slowstart::step::Exit;
use slowstart_sim::path::queue::Discipline;
use slowstart_study::scenario::StudyText;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut code = false;
    let mut all = Vec::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
        let slug: String = heading.trim().to_lowercase().chars().filter(kept).collect();
        all.push(slug.replace(' ', "-"));
    }
    all
}

/// The targets of the links of a document, without those of code.
fn targets(text: &str) -> Vec<String> {
    let mut code = false;
    let mut all = Vec::new();
    for line in text.lines() {
        code ^= line.starts_with("```");
        let links =
            line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(to, _)| to.to_string()));
        all.extend(links.filter(|_| !code));
    }
    all
}

/// The files of Markdown below a folder.
fn below(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in fs::read_dir(dir).expect("a folder").flatten().map(|f| f.path()) {
        if path.is_dir() {
            all.extend(below(&path));
        } else if path.extension().is_some_and(|e| e == "md") {
            all.push(path);
        }
    }
    all
}

/// The file of a link in `document`, and the heading, which is empty if the link names none.
fn split<'a>(document: &Path, target: &'a str) -> (PathBuf, &'a str) {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let dir = document.parent().expect("a folder");
    (if file.is_empty() { document.to_path_buf() } else { dir.join(file) }, anchor)
}

fn is_external(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// Pages that ci/book.sh writes; the repository has none of them.
const PRINTED: [&str; 8] = [
    "reference/paths.md",
    "reference/path-keys.md",
    "reference/avoidances.md",
    "reference/stacks.md",
    "reference/commands.md",
    "reference/startups.md",
    "evidence/papers/claims.md",
    "../playground/index.html",
];

#[test]
fn links_lead_to_files_and_headings() {
    let root = root();
    let mut documents = below(&root.join("docs"));
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"] {
        documents.push(root.join(name));
    }
    assert!(documents.len() > 25);
    let mut broken = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).expect("a document");
        for target in targets(&text).iter().filter(|t| !is_external(t)) {
            if PRINTED.contains(&target.as_str()) {
                continue;
            }
            let (to, anchor) = split(document, target);
            let found = if anchor.is_empty() {
                to.exists()
            } else {
                fs::read_to_string(&to).is_ok_and(|t| anchors(&t).iter().any(|a| a == anchor))
            };
            if !found {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// mdBook leaves out a page that SUMMARY.md does not name, and ci/book.sh makes a link out of docs/ one to
/// the forge if it has the one form that it knows.
#[test]
fn the_book_has_every_page_and_its_links() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("a summary");
    let pages: Vec<PathBuf> = targets(&summary).iter().map(|t| docs.join(t)).collect();
    let mut broken = Vec::new();
    for document in below(&docs) {
        if document.ends_with("SUMMARY.md") {
            continue;
        }
        if document.with_extension("html").exists() {
            broken.push(format!(
                "{} and the page of the same name are one file of the book",
                document.display()
            ));
        }
        if !pages.contains(&document) {
            broken.push(format!("SUMMARY.md has no {}", document.display()));
        }
        let depth = document.strip_prefix(&docs).expect("below docs").components().count();
        for target in targets(&fs::read_to_string(&document).expect("a page")) {
            let (to, _) = split(&document, &target);
            let outside = !is_external(&target) && to.canonicalize().is_ok_and(|t| !t.starts_with(&docs));
            if outside && (depth > 2 || !target.starts_with(&"../".repeat(depth))) {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The texts of the files below a folder whose names end in this.
fn sources(dir: &Path, end: &str) -> Vec<String> {
    let mut all = Vec::new();
    for path in fs::read_dir(dir).into_iter().flatten().flatten().map(|f| f.path()) {
        if path.is_dir() {
            all.extend(sources(&path, end));
        } else if path.to_str().is_some_and(|p| p.ends_with(end)) {
            all.push(fs::read_to_string(path).expect("text"));
        }
    }
    all
}

/// True if one of these texts has a test of this name.
fn has_test(texts: &[String], name: &str) -> bool {
    texts.iter().any(|text| {
        let python = text.contains(&format!("\ndef {name}("));
        let rust = text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
            // Its attributes and comments.
            let lines = text[..at].trim_end().lines().rev().map(str::trim);
            let mut above = lines.take_while(|l| l.starts_with("#[") || l.starts_with("//"));
            above.any(|l| l == "#[test]")
        });
        python || rust
    })
}

/// The names between backquotes, each with the text up to the next one.
fn quoted(cell: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = cell.split('`').collect();
    parts[1..].chunks(2).map(|p| (p[0], p.get(1).copied().unwrap_or_default())).collect()
}

/// The tests of a crate, or of the Python package.
fn tests_of(part: &str) -> Vec<String> {
    if part == "python" {
        return sources(&root().join("python/tests"), ".py");
    }
    let of = |folder| sources(&root().join("crates").join(part).join(folder), ".rs");
    [of("src"), of("tests")].concat()
}

/// Each promise names tests that exist, in the crates that it names, and fuzz targets that exist.
#[test]
fn each_promise_of_security_has_its_tests() {
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("a document");
    let (_, section) = text.split_once("### Promises and their tests").expect("a section");
    let rows: Vec<&str> = section.lines().filter(|l| l.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 30, "{rows:#?}");
    let mut missing = Vec::new();
    for row in rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().expect("two cells");
        let (mut found, mut waiting) = (0, Vec::new());
        let mut fuzzed = cell.starts_with("fuzz target");
        for (name, after) in quoted(cell) {
            if fuzzed {
                found += usize::from(root().join("crates/fuzz/corpus").join(name).is_dir());
            } else {
                waiting.push(name);
            }
            fuzzed = after.contains("fuzz target") || (fuzzed && after == ", ");
            // The crate stands behind the last of its tests: (cli), or (*root*; cli).
            let part = after.split_once(')').and_then(|(p, _)| p.rsplit(['(', ' ']).next());
            if let Some(part) = part.filter(|p| *p != "*root*") {
                let texts = tests_of(part);
                found += waiting.drain(..).filter(|name| has_test(&texts, name)).count();
            }
        }
        if found == 0 || found < quoted(cell).len() {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "tests that are not there: {missing:#?}");
}

/// Each attack that the evidence lists has tests that exist.
#[test]
fn each_finding_of_an_attack_has_its_tests() {
    let text = fs::read_to_string(root().join("docs/evidence/security.md")).expect("a document");
    let mut all: Vec<String> = sources(&root().join("crates"), ".rs");
    all.extend(tests_of("python"));
    let mut names = Vec::new();
    for row in text.lines().filter(|l| l.starts_with("| ")) {
        names.extend(quoted(row).iter().map(|(name, _)| *name).filter(|n| n.matches('_').count() > 2));
    }
    assert!(names.len() > 15, "{names:?}");
    names.retain(|name| !has_test(&all, name));
    assert!(names.is_empty(), "no such tests: {names:?}");
}

/// Every startup and avoidance of the registry has a section. Versions of one algorithm share that of its
/// name.
#[test]
fn every_algorithm_has_a_section() {
    let text = fs::read_to_string(root().join("docs/reference/algorithms.md")).expect("a document");
    let headings: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("## "))
        .flat_map(|h| h.split(", ").flat_map(|part| part.split(" and ")))
        .collect();
    for kind in ["startups", "avoidances"] {
        let out =
            Command::new(env!("CARGO_BIN_EXE_slowstart")).args(["list", kind]).output().expect("it runs");
        let list = String::from_utf8(out.stdout).expect("text");
        let names: Vec<&str> = list
            .lines()
            .filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')))
            .filter_map(|l| l.split(' ').next())
            .collect();
        assert!(names.len() >= 7, "{kind}: {list}");
        for name in names {
            let shared = ["search", "rapid-start", "cubic", "reno"];
            let found = headings.contains(&name)
                || shared.iter().any(|s| {
                    name.strip_prefix(s).is_some_and(|r| r.starts_with('-'))
                        && headings.contains(s)
                        && text.contains(&format!("`{name}`"))
                });
            assert!(found, "docs/reference/algorithms.md has no section on {name}");
        }
    }
}

/// The startups that tables mark as reconstructed are those that the section lists.
#[test]
fn the_reconstructed_startups_are_listed() {
    let text = fs::read_to_string(root().join("docs/reference/algorithms.md")).expect("a document");
    let (_, section) = text.split_once("## Reconstructed without the paper").expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let listed: BTreeSet<&str> =
        section.split('`').skip(1).step_by(2).filter(|n| registry::named(n).is_some()).collect();
    let marked: BTreeSet<&str> = registry::all().filter(|e| e.is_reconstructed).map(|e| e.name).collect();
    assert_eq!(listed, marked);
    let readme = fs::read_to_string(root().join("README.md")).expect("a document");
    let says = format!("implements {} versions, seven [reconstructed", registry::all().count());
    assert!(readme.contains(&says) && marked.len() == 7, "README.md does not say: {says}");
}

/// What the style page says not to write is in no other document.
#[test]
fn no_document_says_what_the_style_page_forbids() {
    let style = root().join("docs/dev/style.md");
    let text = fs::read_to_string(&style).expect("the style page");
    let rows = text.lines().filter(|l| l.starts_with("| ")).skip(1);
    let forbidden: Vec<&str> = rows.filter_map(|l| l.split('|').nth(1).map(str::trim)).collect();
    assert!(forbidden.len() >= 20, "{} pairs", forbidden.len());
    let top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"].map(|name| root().join(name));
    for file in
        below(&root().join("docs")).into_iter().chain(top).filter(|f| !f.ends_with("docs/dev/style.md"))
    {
        let said = fs::read_to_string(&file).expect("a document");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        for phrase in &forbidden {
            assert!(!said.contains(&phrase.to_lowercase()), "{}: {phrase:?}", file.display());
        }
    }
}

/// The words of a text that are code.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The reasons to exit and the queue disciplines that the reference names are those of the lists.
#[test]
fn every_reason_and_every_discipline_is_listed() {
    let page = |name: &str| fs::read_to_string(root().join("docs/reference").join(name)).expect("a document");
    let algorithms = page("algorithms.md");
    let (_, listed) = algorithms.split_once("An exit is recorded with its reason:").expect("a list");
    let listed: BTreeSet<&str> = words(listed.split('.').next().unwrap_or_default()).collect();
    assert_eq!(listed, Exit::ALL.iter().map(|e| e.name()).collect::<BTreeSet<_>>());
    let disciplines = page("disciplines.md");
    let known: BTreeSet<&str> = words(&disciplines).collect();
    for name in Discipline::names() {
        assert!(known.contains(name), "docs/reference/disciplines.md does not name {name}");
    }
}

/// The table of the keys of a study is that of the list. `SLOWSTART_BLESS=1` rewrites it.
#[test]
fn every_key_of_a_study_is_listed() {
    let file = root().join("docs/reference/studies.md");
    let text = fs::read_to_string(&file).expect("a document");
    let (before, rest) = text.split_once("<!-- keys -->\n").expect("where the table begins");
    let (_, after) = rest.split_once("<!-- end of keys -->\n").expect("where it ends");
    let mut table = String::from("\n| Key | Argument | Type | Default | Meaning |\n|---|---|---|---|---|\n");
    for key in StudyText::KEYS {
        let argument =
            if key.name == "path" { "the first".to_string() } else { format!("`--{}`", key.argument) };
        let default = match (key.name, key.default) {
            ("path", _) => "required",
            (_, "") => "none",
            (_, default) => default,
        };
        let row = [&format!("`{}`", key.name), &argument, key.kind.name(), default, key.about].join(" | ");
        writeln!(table, "| {row} |").expect("a String takes everything");
    }
    let wanted = format!("{before}<!-- keys -->\n{table}\n<!-- end of keys -->\n{after}");
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        fs::write(&file, &wanted).expect("the checkout is writable");
    } else {
        assert!(text == wanted, "docs/reference/studies.md is not what the list of keys says (make bless)");
    }
}

/// The reason for a dependency stands beside it: each has a comment above it in its manifest.
#[test]
fn each_dependency_has_its_reason() {
    let folders = fs::read_dir(root().join("crates")).expect("a folder").map(|f| f.expect("an entry").path());
    let all = folders.chain([root().join("python"), root().join("research")]);
    let (mut seen, mut missing) = (0, Vec::new());
    for file in all.map(|f| f.join("Cargo.toml")) {
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let (mut section, mut before) = ("", "");
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let name = line.split([' ', '.', '=']).next().unwrap_or_default();
            let is_ours = name.starts_with("slowstart");
            let is_one =
                section.ends_with("dependencies]") && line.contains('=') && !line.starts_with(['#', '[']);
            if is_one && !is_ours {
                seen += 1;
                if !before.starts_with("# ") {
                    missing.push(format!("{}: {name}", file.display()));
                }
            }
            before = line;
        }
    }
    assert!(seen > 60, "{seen}");
    assert!(missing.is_empty(), "{missing:#?}");
}
