//! Files that never end, outputs that nobody reads, names that are no text, plugins that loop, folders of other
//! users: none of them ends a run without a message, falsifies it, or keeps it from ending.

use crate::common::folder;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const PATH: &str = "rate=10Mbit rtt=20ms queue=1bdp";
const STUDY: [&str; 8] = ["compare", PATH, "--startup", "search", "--size", "20kB", "--runs", "1"];
const SWEEP: &str = "path = \"rate=10Mbit rtt=20ms queue=1bdp\"\nstartups = [\"search\"]\nsize = \"20kB\"\n\
                     [axes]\nrate = \"log(2..4Mbit)/3\"\n";

fn slowstart() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    slowstart().args(args).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(feature = "sweep")]
fn pipe(file: &Path) {
    assert!(Command::new("mkfifo").arg(file).status().expect("coreutils are installed").success());
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("bash").args(["-c", &format!("kill -{name} {}", child.id())]).status();
    assert!(sent.expect("bash").success());
}

/// Waits up to 20 s, since other tests run beside this one. Returns the exit status; `None` if it did not end.
fn ended(child: &mut Child) -> Option<i32> {
    for _ in 0..200 {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status.code().unwrap_or(-1));
        }
        thread::sleep(Duration::from_millis(100));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux").into()
}

#[test]
fn an_error_output_that_is_full_or_closed_ends_nothing() {
    let missing = slowstart().args(["run", "/nonexistent"]).stderr(full()).status().expect("it runs");
    assert_eq!(missing.code(), Some(2));
    let good = slowstart().args(STUDY).stderr(full()).stdout(Stdio::null()).status().expect("it runs");
    assert_eq!(good.code(), Some(0));
    let script = format!("exec 2>&-; exec {} run /nonexistent", env!("CARGO_BIN_EXE_slowstart"));
    assert_eq!(Command::new("sh").args(["-c", &script]).status().expect("sh").code(), Some(2));
}

#[test]
fn arguments_that_are_not_utf_8_are_names_of_files() {
    let dir = folder("attack-bytes");
    let name = OsStr::from_bytes(b"out\xff");
    let out = slowstart().args(STUDY).arg("--out").arg(dir.join(name)).output().expect("it runs");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(dir.join(name).join("results.jsonl").is_file());
}

#[test]
fn a_file_without_end_is_refused_with_its_limit() {
    let file = folder("attack-zero").join("zero.toml");
    symlink("/dev/zero", &file).expect("writable");
    let (zero, store) = (file.to_str().expect("text"), file.with_extension("store"));
    let store = store.to_str().expect("text");
    for args in [
        &["run", zero][..],
        &["compare", zero],
        &["sweep", zero, "--out", store],
        &["suite", "list", "--file", zero],
        &["league", "--against-baseline", zero],
        &["trial", "pool", zero],
        &["diff", zero, zero],
        &["reproduce", zero],
    ] {
        if args[0] == "sweep" && cfg!(not(feature = "sweep")) {
            continue;
        }
        let mut child =
            slowstart().args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it runs");
        assert_eq!(ended(&mut child), Some(2), "{args:?}");
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert!(said.contains("zero.toml") && said.contains("bytes"), "{args:?}: {said}");
    }
}

#[test]
fn a_folder_that_is_a_link_of_another_user_is_not_written_to() {
    let dir = folder("attack-foreign");
    let (target, link) = (dir.join("target"), dir.join("link"));
    fs::create_dir(&target).expect("writable");
    symlink(&target, &link).expect("writable");
    if lchown(&link, Some(65534), Some(65534)).is_err() {
        println!("skipped: links of another user (needs root)");
        return;
    }
    let to = link.to_str().expect("text");
    let inside = link.join("file");
    let inside = inside.to_str().expect("text");
    for args in [
        [&STUDY[..], &["--out", to]].concat(),
        [&STUDY[..], &["--picture", inside]].concat(),
        vec!["man", to],
    ] {
        let out = run(&args);
        let said = text(&out.stderr);
        assert!(
            out.status.code() == Some(2) && said.contains("symbolic link of user 65534"),
            "{args:?}: {said}"
        );
    }
    assert_eq!(fs::read_dir(&target).expect("readable").count(), 0);
}

/// Whoever can read a file can lock it.
#[test]
fn a_lock_of_who_may_only_read_blocks_nobody() {
    let dir = folder("attack-lock");
    let out = dir.join("out");
    let args = [&STUDY[..], &["--out", out.to_str().expect("text")]].concat();
    assert!(run(&args).status.success());
    let held = File::open(out.join("results.jsonl")).expect("readable");
    held.lock().expect("nobody has it");
    let again = run(&args);
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[cfg(feature = "sweep")]
#[test]
fn a_store_with_pipes_and_locks_of_others_ends_with_a_message_or_goes_on() {
    let dir = folder("attack-store");
    let (plan, store) = (dir.join("plan.toml"), dir.join("store"));
    fs::write(&plan, SWEEP).expect("writable");
    let sweep = ["sweep", plan.to_str().expect("text"), "--out", store.to_str().expect("text")];
    assert!(run(&sweep).status.success());
    let marker = File::open(store.join("slowstart-store.json")).expect("readable");
    marker.lock().expect("nobody has it");
    let mut child =
        slowstart().args(sweep).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("it runs");
    assert_eq!(ended(&mut child), Some(0), "a lock of who may only read");
    for name in ["parts/z-00000.parquet", "journal/z-00000.jsonl", "sweeps/z.json"] {
        let file = store.join(name);
        pipe(&file);
        for args in [&sweep[..], &["sweep", "status", store.to_str().expect("text")]] {
            let mut child =
                slowstart().args(args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it runs");
            let status = ended(&mut child);
            let mut said = String::new();
            child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
            assert!(status.is_some(), "{name}: {args:?} waits");
            assert!(status == Some(0) || said.contains(name), "{name}: {args:?}: {said}");
        }
        fs::remove_file(&file).expect("it is there");
    }
}

/// A part without the columns of rows, as a query writes it.
#[cfg(feature = "sweep")]
#[test]
fn a_part_without_keys_is_named() {
    let dir = folder("attack-keys");
    let (plan, store, part) = (dir.join("plan.toml"), dir.join("store"), dir.join("part.parquet"));
    fs::write(&plan, SWEEP).expect("writable");
    let (plan, store, part) =
        (plan.to_str().expect("text"), store.to_str().expect("text"), part.to_str().expect("text"));
    assert!(run(&["sweep", plan, "--out", store]).status.success());
    let query = ["sweep", "query", store, "--columns", "startup", "--parquet", part];
    let out = run(&query);
    assert!(out.status.success(), "{}", text(&out.stderr));
    fs::copy(part, Path::new(store).join("parts/aaaaaaaaaaaa-00000.parquet")).expect("writable");
    fs::write(plan, SWEEP.replace("20ms", "30ms")).expect("writable");
    let out = run(&["sweep", plan, "--out", store]);
    let said = text(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains("aaaaaaaaaaaa-00000"), "{:?} {said}", out.status);
}

/// The readers of Parquet panic at some damage: here where a byte of the first page's header is 0.
#[cfg(feature = "sweep")]
#[test]
fn a_damaged_part_is_refused_by_name() {
    let dir = folder("attack-damage");
    let (plan, store, part) = (dir.join("plan.toml"), dir.join("store"), dir.join("part.parquet"));
    fs::write(&plan, SWEEP).expect("writable");
    let [plan, store, part] = [&plan, &store, &part].map(|p| p.to_str().expect("text"));
    assert!(run(&["sweep", plan, "--out", store]).status.success());
    assert!(run(&["sweep", "query", store, "--columns", "key", "--parquet", part]).status.success());
    let whole = fs::read(part).expect("written");
    let damaged = Path::new(store).join("parts/aaaaaaaaaaaa-00000.parquet");
    let mut refused = 0;
    for at in 4..24 {
        let mut bytes = whole.clone();
        bytes[at] = 0;
        fs::write(&damaged, bytes).expect("writable");
        let out = run(&["sweep", "query", store, "--columns", "key"]);
        let said = text(&out.stderr);
        match out.status.code() {
            Some(0) => {}
            Some(2) if said.contains("aaaaaaaaaaaa-00000") => refused += 1,
            status => panic!("byte {at}: {status:?} {said}"),
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_plugin_that_loops_ends_with_the_first_signal() {
    let dir = folder("attack-loops");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ffi/examples/newreno.c");
    let code = fs::read_to_string(source).expect("in the repository");
    // Each function of the controller loops.
    let at = code
        .find("static void ack(")
        .and_then(|at| Some(at + code[at..].find('{')? + 1))
        .expect("a function");
    let code = format!("{}\n\tfor (volatile int loops = 1; loops;)\n\t\t;\n{}", &code[..at], &code[at..]);
    fs::write(dir.join("loops.c"), code).expect("writable");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ffi/include");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"])
        .arg(include)
        .arg(dir.join("loops.c"))
        .arg("-o")
        .arg(dir.join("loops.so"));
    let Ok(built) = cc.output() else {
        println!("skipped: a plugin that loops (no C compiler)");
        return;
    };
    assert!(built.status.success(), "{}", text(&built.stderr));
    let plugin = format!("plugin:{}", dir.join("loops.so").display());
    for (name, status) in [("TERM", 143), ("INT", 130)] {
        let mut child = slowstart()
            .args(["compare", PATH, "--startup", &plugin, "--avoidance", "reno", "--runs", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        thread::sleep(Duration::from_secs(2));
        assert!(child.try_wait().expect("a child").is_none(), "it loops");
        signal(&child, name);
        assert_eq!(ended(&mut child), Some(status), "{name}");
    }
}

#[test]
fn escapes_of_a_terminal_in_names_are_printed_as_text() {
    let dir = folder("attack-escapes");
    let file = dir.join("path.toml");
    let name = "\\u001b]0;pwn\\u0007\\u009b2J";
    let path = format!(
        "name = \"{name}n\"\nabout = \"{name}a\"\nsources = [\"{name}s\"]\nrate = \"10Mbit\"\nrtt = \"20ms\"\n"
    );
    fs::write(&file, path).expect("writable");
    let file = file.to_str().expect("text");
    for more in [&[][..], &["--csv"], &["--json"], &["--wide"]] {
        let args = [&["compare", file, "--startup", "search,hystart", "--size", "20kB", "--runs", "2"], more]
            .concat();
        let out = run(&args);
        let said = text(&out.stdout) + &text(&out.stderr);
        assert!(out.status.success(), "{said}");
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t' && c != '\r';
        assert_eq!(said.find(acts), None, "{more:?}: {said:?}");
    }
}

#[test]
fn a_disk_that_is_full_is_named_with_its_file() {
    let dir = folder("attack-disk");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/download.pcapng.gz");
    // The signal of a file that is too large is ignored, so that it is an error as of a full disk.
    let limited = |args: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 4; exec {} {args}", env!("CARGO_BIN_EXE_slowstart"));
        let out = Command::new("sh").args(["-c", &script]).current_dir(&dir).output().expect("sh");
        (out.status.code(), text(&out.stderr))
    };
    let capture = capture.display();
    for (args, file) in [
        (format!("replay {capture} --no-fork -q --out o"), ".jsonl: "),
        (format!("compare '{PATH}' --startup search --size 200kB --runs 9 --out c"), "c/results.jsonl: "),
        (format!("fit {capture} --trace --out x.toml"), "x-1-1.down: "),
        ("man pages".to_string(), "pages/slowstart"),
        (format!("compare '{PATH}' --startup search --size 20kB --runs 1 >/dev/full"), "standard output: "),
    ] {
        let (code, said) = limited(&args);
        assert!(code == Some(2) && said.contains(file), "{args}: {code:?}, {said}");
    }
    #[cfg(feature = "sweep")]
    {
        let (code, said) =
            limited(&format!("compare '{PATH}' --startup search --size 20kB --runs 1 --parquet t"));
        assert!(code == Some(2) && said.contains("--parquet t: "), "{code:?}, {said}");
        assert!(!dir.join("t").exists());
    }
}

#[test]
fn nothing_is_writable_by_others_without_a_umask() {
    let dir = folder("attack-umask");
    fs::write(dir.join("sweep.toml"), SWEEP).expect("writable");
    let command = env!("CARGO_BIN_EXE_slowstart");
    let sweep = if cfg!(feature = "sweep") {
        format!(" && {command} -q sweep sweep.toml --out s")
    } else {
        String::new()
    };
    let compare = format!("{command} -q compare '{PATH}' --startup search --size 20kB --runs 1 --out c");
    let script = format!("umask 0; {compare}{sweep} && {command} man pages");
    let out = Command::new("sh").args(["-c", &script]).current_dir(&dir).output().expect("sh");
    assert!(out.status.success(), "{}", text(&out.stderr));
    let found = Command::new("find").args(["c", "pages", "s", "-perm", "/022"]).current_dir(&dir).output();
    assert_eq!(text(&found.expect("findutils").stdout), "");
}

#[test]
fn a_folder_that_cannot_be_read_is_named_and_the_others_are_read() {
    let dir = folder("attack-unreadable");
    let all = dir.join("all");
    fs::create_dir_all(all.join("closed")).expect("writable");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/captures/download.pcapng.gz");
    fs::copy(capture, all.join("a.pcapng.gz")).expect("writable");
    let mut command = slowstart();
    let command = command.args(["replay", "--no-fork", "--json"]).arg(&all);
    fs::set_permissions(all.join("closed"), fs::Permissions::from_mode(0o0)).expect("ours");
    if fs::read_dir(all.join("closed")).is_ok() {
        // Root reads everything. Nobody may read what everybody may, if the folders above permit it.
        command.uid(65_534).gid(65_534);
        let test = Command::new("test").arg("-r").arg(all.join("a.pcapng.gz")).uid(65_534).status();
        if !test.is_ok_and(|s| s.success()) {
            println!("skipped: a folder that cannot be read (the checkout is root's alone)");
            return;
        }
    }
    let out = command.output().expect("it runs");
    let said = text(&out.stderr);
    assert!(said.contains("closed: ") && said.contains("1 of 2 files could not be read"), "{said}");
    assert_eq!((out.status.code(), text(&out.stdout).lines().count()), (Some(2), 1), "{said}");
}

#[test]
fn cells_of_csv_are_not_computed_by_a_spreadsheet() {
    let path = "rate=10Mbit rtt=20ms queue=1bdp name==HYPERLINK(1)";
    let out = run(&["compare", path, "--startup", "search", "--size", "20kB", "--runs", "1", "--csv"]);
    let rows = text(&out.stdout);
    assert!(rows.contains(",'=HYPERLINK(1),") && !rows.contains(",=HYPERLINK"), "{rows}");
}
