//! What identifies an entrant: the SHA-256 of the file that ran, or of all files below a folder.

use hmac_sha256::Hash;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The SHA-256 of a file in hexadecimal, or of a folder: of its names, kinds and contents, in the order of names.
///
/// # Errors
/// If something below it cannot be read.
pub fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hash = Hash::new();
    if path.is_dir() {
        add_folder(&mut hash, path)?;
    } else {
        add_file(&mut hash, path)?;
    }
    Ok(hex(&hash.finalize()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, b| format!("{text}{b:02x}"))
}

fn add_file(hash: &mut Hash, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn add_folder(hash: &mut Hash, dir: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (kind, name) = (entry.file_type()?, entry.file_name());
        // A zero byte ends the name, and no name has one: so name and content cannot be confused.
        let mut head = |kind: &str, size: u64| {
            hash.update(format!("{kind} {size} "));
            hash.update(name.as_encoded_bytes());
            hash.update([0]);
        };
        if kind.is_dir() {
            head("folder", 0);
            add_folder(hash, &entry.path())?;
            hash.update("end\0");
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path())?;
            head("link", target.as_os_str().len() as u64);
            hash.update(target.as_os_str().as_encoded_bytes());
        } else if kind.is_file() {
            head("file", entry.metadata()?.len());
            add_file(hash, &entry.path())?;
        } else {
            head("device", 0);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_another_hash_if_anything_below_it_is_another() {
        let dir = std::env::temp_dir().join(format!("slowstart-entrant-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("bin")).expect("writable");
        let put = |name: &str, text: &str| fs::write(dir.join(name), text).expect("writable");
        put("bin/server", "abc");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_of(&dir.join("bin/server")).expect("a file"), abc);
        let mut seen = vec![sha256_of(&dir).expect("a folder")];
        assert_eq!(sha256_of(&dir).expect("a folder"), seen[0]);
        put("bin/server", "abd");
        seen.push(sha256_of(&dir).expect("a folder"));
        put("bin/client", "");
        seen.push(sha256_of(&dir).expect("a folder"));
        fs::rename(dir.join("bin/client"), dir.join("client")).expect("writable");
        seen.push(sha256_of(&dir).expect("a folder"));
        let distinct: std::collections::BTreeSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len());
        assert!(sha256_of(&dir.join("nothing")).is_err());
        fs::remove_dir_all(&dir).expect("ours");
    }
}
