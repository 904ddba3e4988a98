//! Folders in which somebody else puts links, pipes and second names.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use slowstart_files::{Folder, LockError, WholeFile, append, create_new, open, read, read_text};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

/// A folder of a test, removed on drop.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("slowstart-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        Self(dir)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let dir = Temporary::new("whole");
    let file = dir.0.join("a");
    let mut out = WholeFile::beside(&file).expect("writable");
    out.write_all(b"half").expect("room");
    assert!(!file.exists());
    drop(out);
    assert_eq!(fs::read_dir(&dir.0).expect("readable").count(), 0, "what is not completed is removed");
    let mut out = WholeFile::beside(&file).expect("writable");
    out.write_all(b"whole").expect("room");
    out.finish().expect("renamed");
    assert_eq!(fs::read(&file).expect("there"), b"whole");
    let e = WholeFile::beside(&file).expect("writable").finish_new().expect_err("it is there");
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&file).expect("there"), b"whole");
}

#[cfg(unix)]
#[test]
fn links_pipes_and_second_names_are_neither_read_nor_written() {
    let dir = Temporary::new("names");
    let (victim, inside) = (dir.0.join("victim"), dir.0.join("out"));
    fs::write(&victim, "secret").expect("writable");
    let folder = Folder::create(&inside).expect("writable");
    std::os::unix::fs::symlink(&victim, inside.join("link")).expect("writable");
    fs::hard_link(&victim, inside.join("second")).expect("the same file system");
    let made = std::process::Command::new("mkfifo").arg(inside.join("pipe")).status();
    for name in ["link", "second", "pipe"] {
        if name == "pipe" && !made.as_ref().is_ok_and(std::process::ExitStatus::success) {
            println!("skipped: a pipe in a folder (there is no mkfifo)");
            continue;
        }
        let file = inside.join(name);
        assert!(append(&file).is_err() && create_new(&file).is_err(), "{name}");
        assert!(name == "second" || open(&file).is_err(), "{name}");
        assert!(folder.lock(name, Duration::ZERO).is_err(), "{name}");
        let mut out = WholeFile::beside(&file).expect("another name");
        out.write_all(b"ours").expect("room");
        out.finish().expect("replaces the name");
    }
    assert_eq!(fs::read_to_string(&victim).expect("there"), "secret");
    assert_eq!(read_text(&inside.join("link"), 100).expect("a file now"), "ours");
    // A file belongs to the folder in which it was begun, whatever has the name of that now.
    let late = WholeFile::beside(&inside.join("late")).expect("writable");
    let elsewhere = dir.0.join("elsewhere");
    fs::create_dir(&elsewhere).expect("writable");
    fs::rename(&inside, dir.0.join("moved")).expect("writable");
    std::os::unix::fs::symlink(&elsewhere, &inside).expect("writable");
    late.finish().expect("writable");
    assert!(dir.0.join("moved/late").exists() && !elsewhere.join("late").exists());
}

#[cfg(unix)]
#[test]
fn a_device_is_not_replaced() {
    let dir = Temporary::new("device");
    let device = dir.0.join("null");
    let made = std::process::Command::new("mknod").arg(&device).args(["c", "1", "3"]).status();
    if !made.is_ok_and(|s| s.success()) {
        println!("skipped: a device in a folder (only root makes one)");
        return;
    }
    let e = WholeFile::beside(&device).expect("another name").finish().expect_err("it is there");
    assert!(e.to_string().contains("found a device"), "{e}");
    assert!(!fs::symlink_metadata(&device).expect("still there").is_file());
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link_of_another_user_is_refused() {
    let dir = Temporary::new("foreign");
    let (target, link) = (dir.0.join("target"), dir.0.join("link"));
    fs::create_dir(&target).expect("writable");
    std::os::unix::fs::symlink("target", &link).expect("writable");
    assert!(Folder::open(&link).is_ok(), "an own link is followed");
    if std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).is_err() {
        println!("skipped: links of another user (needs root)");
        return;
    }
    let e = Folder::open(&link).expect_err("of user 65534").to_string();
    assert!(e.contains("symbolic link of user 65534"), "{e}");
    assert!(WholeFile::beside(&link.join("file")).is_err());
    assert!(Folder::open(&PathBuf::from(format!("{}/", link.display()))).is_err());
}

#[test]
fn a_lock_is_held_by_one_and_names_its_holder() {
    let dir = Temporary::new("lock");
    let folder = Folder::open(&dir.0).expect("there");
    let lock = folder.lock("lock", Duration::ZERO).expect("free");
    let e = folder.lock("lock", Duration::from_millis(50)).expect_err("held");
    assert!(matches!(e, LockError::Held(Some(n)) if n == std::process::id()), "{e}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(dir.0.join("lock")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    drop(lock);
    assert_eq!(fs::read_dir(&dir.0).expect("readable").count(), 0, "it leaves nothing");
    drop(folder.lock("lock", Duration::ZERO).expect("free again"));
}

#[test]
fn a_file_is_read_up_to_a_limit() {
    let dir = Temporary::new("limit");
    let file = dir.0.join("a");
    fs::write(&file, [b'a'; 100]).expect("writable");
    assert_eq!(read(&file, 100).expect("not longer").len(), 100);
    let e = read(&file, 99).expect_err("longer").to_string();
    assert!(e.contains("more than 99 bytes"), "{e}");
    fs::write(&file, b"ab\xff").expect("writable");
    let e = read_text(&file, 99).expect_err("no text").to_string();
    assert!(e.contains("offset 2"), "{e}");
    #[cfg(unix)]
    assert!(read(std::path::Path::new("/dev/zero"), 1 << 16).is_err(), "it never ends");
}
