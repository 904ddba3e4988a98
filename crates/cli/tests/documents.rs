//! Links between the documents lead to files and headings that exist.

use std::fs;
use std::path::{Path, PathBuf};

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

#[test]
fn links_lead_to_files_and_headings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let markdown = |dir: &Path| -> Vec<PathBuf> {
        let files = fs::read_dir(dir).expect("a folder").flatten().map(|f| f.path());
        files.filter(|f| f.extension().is_some_and(|e| e == "md")).collect()
    };
    let documents = [markdown(&root), markdown(&root.join("docs"))].concat();
    assert!(documents.len() > 15);
    let mut broken = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).expect("a document");
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let dir = document.parent().expect("a folder");
            let to = if file.is_empty() { document.clone() } else { dir.join(file) };
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
