//! Every command of the book's pages works.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// The lines of the blocks for a shell.
fn commands(text: &str) -> Vec<String> {
    let mut is_shell = false;
    let mut all = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell {
            all.push(line.to_string());
        }
    }
    all
}

#[test]
fn every_command_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = std::env::temp_dir().join(format!("slowstart-book-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    let root = root.canonicalize().expect("the repository");
    for name in ["scenarios", "docs"] {
        symlink(root.join(name), dir.join(name)).expect("a link");
    }
    let mut failed = Vec::new();
    let mut run = 0;
    for page in fs::read_dir(root.join("docs/book")).expect("the pages").flatten() {
        if page.path().extension().is_none_or(|e| e != "md") {
            continue;
        }
        for command in commands(&fs::read_to_string(page.path()).expect("a page")) {
            let Some(arguments) = command.strip_prefix("slowstart ") else {
                failed.push(format!("{command}: found no slowstart at its start"));
                continue;
            };
            let line = format!("exec \"$0\" {arguments}");
            let status = Command::new("sh")
                .args(["-c", &line, env!("CARGO_BIN_EXE_slowstart")])
                .current_dir(&dir)
                .stdout(Stdio::null())
                .status();
            if !status.is_ok_and(|s| s.success()) {
                failed.push(format!("{}: {command}", page.file_name().display()));
            }
            run += 1;
        }
    }
    fs::remove_dir_all(&dir).expect("to be removed");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(run >= 15, "{run} commands");
}
