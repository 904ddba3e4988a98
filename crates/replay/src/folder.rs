//! The files of folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that marks a folder as a store of results, in which no recordings are looked for.
pub const STORE: &str = "slowstart-store.json";

/// Replaces folders by the files in them and in the folders within them, in the order of their names. Hidden
/// files and stores are left out, and links to folders are not followed. A folder that cannot be read stands for
/// its files, so that who reads them finds the error.
///
/// # Errors
/// If a folder has no file.
pub fn expand(named: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in named {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let before = all.len();
        walk(path, &mut all);
        if all.len() == before {
            let why = "found no file in the folder, expected captures or logs";
            return Err(io::Error::other(format!("{}: {why}", path.display())));
        }
        all[before..].sort();
    }
    Ok(all)
}

fn walk(dir: &Path, all: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let Ok(entries) = entries else { return all.push(dir.to_path_buf()) };
    for entry in entries {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            if !path.join(STORE).exists() {
                walk(&path, all);
            }
        } else if path.is_file() {
            all.push(path);
        }
    }
}
