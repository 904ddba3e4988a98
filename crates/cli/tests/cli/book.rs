//! Every command of the book's pages works.
//!
//! The pages are those below docs. A command that takes long is run with fewer runs and fewer bytes, unless
//! `SLOWSTART_LONG` is set. Of commands that change the running system only the arguments are checked; tests
//! of crates/linux run such commands in network namespaces. Commands of other programs are run by scripts of
//! ci/.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands in the blocks for a shell. A backslash at the end of a line joins it to the next, and so does
/// a quote that is open.
fn commands(text: &str) -> Vec<String> {
    let mut is_shell = false;
    let mut all: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell {
            // An apostrophe of a comment opens no quote.
            let line = line.split(" #").next().unwrap_or_default().trim_end();
            match all.last_mut().filter(|_| goes_on) {
                Some(last) if last.ends_with('\\') => {
                    *last = format!("{}{line}", last.trim_end_matches('\\'));
                }
                Some(last) => *last = format!("{last}\n{line}"),
                None => all.push(line.to_string()),
            }
            let open = all.last().is_some_and(|c| c.matches('\'').count() % 2 == 1);
            goes_on = open || line.ends_with('\\');
        }
    }
    all.iter().map(|c| c.trim().to_string()).collect()
}

/// How the test treats a command.
#[derive(Clone, Debug, PartialEq)]
enum Treatment {
    /// It is run, with these arguments in the form of a shell.
    Run(String),
    /// Its arguments are checked.
    Check(String),
    /// It needs this feature, which the build does not have.
    Without(&'static str),
    /// It is of another program.
    Other,
}

/// Programs whose commands other tests run, or which are not of this project.
const OTHERS: [&str; 22] = [
    "CG=",
    "GOBIN=",
    "cargo bench ",
    "cargo build ",
    "cargo install ",
    "cargo run -p slowstart-",
    "cargo test ",
    "cargo run --release -p slowstart-league ",
    "cargo run --release -p slowstart-replay ",
    "make ",
    "cargo run --release -p slowstart-quic-sim ",
    "git clone ",
    "docker run ",
    "bash ci/",
    "pip install ",
    "sudo apt-get ",
    "sudo install ",
    "sudo systemctl ",
    "python3 ",
    "ss ",
    "bpftrace ",
    "sh contrib/",
];

/// A command without the variables that are set before it.
fn without_variables(command: &str) -> &str {
    let is_set = |word: &str| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    };
    match command.split_once(' ') {
        Some((first, rest)) if is_set(first) => without_variables(rest),
        _ => command,
    }
}

fn treatment(command: &str) -> Option<Treatment> {
    if OTHERS.iter().any(|o| command.starts_with(o) || without_variables(command).starts_with(o)) {
        return Some(Treatment::Other);
    }
    // What a reader compiles is compiled, for the commands after it.
    if command.starts_with("cc ") {
        return Some(Treatment::Run(format!("--version && {command}")));
    }
    let command = command.strip_prefix("sudo ").unwrap_or(command);
    let quic = "cargo run --release -p slowstart-cli --features quic -- ";
    let arguments = command.strip_prefix("slowstart ").or_else(|| command.strip_prefix(quic))?;
    // The reader's cgroup; a fleet's statistics are not here.
    let arguments = &arguments.replace("$CG", "/sys/fs/cgroup");
    let changes_system = ["kernel ", "emulate ", "trial pool "].iter().any(|c| arguments.starts_with(c));
    let on_system = ["--engine kernel", "--engine linux:", "kernel-patch ", " --serve ", " --interop "]
        .iter()
        .any(|o| arguments.contains(o));
    Some(if changes_system || on_system {
        if cfg!(feature = "kernel") {
            Treatment::Check(arguments.clone())
        } else {
            Treatment::Without("kernel")
        }
    } else if command.starts_with(quic) && !cfg!(feature = "quic") {
        Treatment::Without("quic")
    } else if ["sweep ", "replay captures/ "].iter().any(|c| arguments.starts_with(c))
        && !cfg!(feature = "sweep")
    {
        Treatment::Without("sweep")
    } else if std::env::var_os("SLOWSTART_LONG").is_some() {
        Treatment::Run(arguments.clone())
    } else {
        Treatment::Run(shorter(arguments))
    })
}

/// The arguments with less to do.
fn shorter(arguments: &str) -> String {
    // `mine` stands for the reader's startup.
    let arguments = arguments.replace("league mine ", "league search ");
    let end = [" > ", " | "].iter().filter_map(|s| arguments.find(s)).min().unwrap_or(arguments.len());
    let (command, redirected) = arguments.split_at(end);
    let mut out = command.to_string();
    let has = |key: &str| command.contains(key);
    let mut add = |key: &str, value: &str, unless: &[&str]| {
        if !has(key) && !unless.iter().any(|u| has(u)) {
            out.extend([" ", key, " ", value]);
        }
    };
    match command.split(' ').next().unwrap_or_default() {
        "compare" => {
            add("--startup", "standard,hystart", &["--all"]);
            add("--runs", "1", &[]);
            add("--size", "1MB", &["--duration", "--app"]);
        }
        "league" if !has("--list") => {
            for given in [" --runs 10", " --runs 20"] {
                out = out.replace(given, "");
            }
            out.push_str(" --runs 1");
            if let Some((before, rest)) = out.clone().split_once("--population ") {
                let (first, after) = rest.split_at(rest.find([',', ' ']).unwrap_or(rest.len()));
                let after = after.split_once(' ').map_or("", |(_, a)| a);
                out = format!("{before}--population {first} {after}");
            } else if !has("--json") && !has("--against") {
                out.push_str(" --population leo");
            }
        }
        // All of them are hundreds of megabytes; the port that reads them has a test of its own.
        "vectors" => return "vectors limited".to_string(),
        "suite" if command.starts_with("suite run") => add("--scenario", "short-1MB", &[]),
        _ => {}
    }
    out + redirected
}

/// The pages of the book.
fn pages(docs: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![docs.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("a folder of pages").flatten().map(|e| e.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

/// Runs a line of a shell in `dir`, in which `slowstart` is this build. A suite of which a criterion is not
/// met, and results that differ, have status 1.
fn succeeds(dir: &Path, arguments: &str) -> bool {
    let line = format!("\"$0\" {arguments}");
    let program = env!("CARGO_BIN_EXE_slowstart");
    let shell =
        Command::new("sh").args(["-c", &line, program]).current_dir(dir).stdout(Stdio::null()).status();
    shell.is_ok_and(|s| {
        let may_be_one = ["suite run", "diff "].iter().any(|c| arguments.starts_with(c));
        s.success() || may_be_one && s.code() == Some(1)
    })
}

#[test]
fn every_command_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    let dir = std::env::temp_dir().join(format!("slowstart-book-{}", std::process::id()));
    let mut failed = Vec::new();
    let (mut run, mut checked) = (0, 0);
    for (i, page) in pages(&root.join("docs")).into_iter().enumerate() {
        // A folder for each page, as a reader may have one.
        let dir = dir.join(i.to_string());
        fs::create_dir_all(&dir).expect("a folder");
        for name in ["crates", "docs", "scenarios"] {
            symlink(root.join(name), dir.join(name)).expect("a link");
        }
        // The reader's captures.
        fs::create_dir(dir.join("captures")).expect("a folder");
        let capture = "download.pcapng.gz";
        fs::copy(root.join("scenarios/captures").join(capture), dir.join("captures").join(capture))
            .expect("a copy");
        // What the kernel reported of the reader's service: its kind is found by its content.
        fs::copy(root.join("scenarios/captures").join(capture), dir.join("service.jsonl")).expect("a copy");
        if cfg!(feature = "sweep") && page.ends_with("docs/guide/sweeps.md") {
            // The store that it asks for.
            let sweep = "path = \"rate=1Mbit rtt=20ms\"\nstartups = [\"standard\", \"search\", \"hystart\"]\nsize = \"200kB\"\n[axes]\n\
                     rate = \"10,50Mbit\"\nrtt = \"20,80ms\"\n";
            fs::write(dir.join("sweep.toml"), sweep).expect("a file");
            if !succeeds(&dir, "sweep sweep.toml --out store") {
                failed.push("the store".to_string());
            }
        }
        for command in commands(&fs::read_to_string(&page).expect("a page")) {
            let name = page.strip_prefix(&root).expect("below the root").display();
            let (arguments, works) = match treatment(&command) {
                None => {
                    failed.push(format!("{name}: {command}: found no program that is known here"));
                    continue;
                }
                Some(Treatment::Run(arguments)) => {
                    run += 1;
                    (arguments.clone(), succeeds(&dir, &arguments))
                }
                Some(Treatment::Check(arguments)) => {
                    checked += 1;
                    // What comes before --help is read first, and a mistake in it is an error.
                    let own = arguments.split([';', '|', '>']).next().unwrap_or_default();
                    let own = own.split(" -- ").next().unwrap_or_default();
                    (arguments.clone(), succeeds(&dir, &format!("{own} --help")))
                }
                Some(Treatment::Without(_) | Treatment::Other) => continue,
            };
            if !works {
                failed.push(format!("{name}: {command} (as: {arguments})"));
            }
        }
    }
    fs::remove_dir_all(&dir).expect("to be removed");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(run >= 35, "{run} commands");
    assert!(!cfg!(feature = "kernel") || checked >= 15, "{checked} commands");
}

#[test]
fn commands_are_shortened_and_joined() {
    assert_eq!(
        commands("```sh\na b \\\n  c   # why it's so\nd '1\n2'\n```\ntext\n```text\ne\n```\n"),
        ["a b   c", "d '1\n2'"]
    );
    assert_eq!(
        shorter("compare geo --runs 2 --csv > x"),
        "compare geo --runs 2 --csv --startup standard,hystart --size 1MB > x"
    );
    assert_eq!(
        shorter("compare geo --runs 2 --json | head -1"),
        "compare geo --runs 2 --json --startup standard,hystart --size 1MB | head -1"
    );
    assert_eq!(shorter("suite run --json a.json"), "suite run --json a.json --scenario short-1MB");
    assert_eq!(treatment("make kernel"), Some(Treatment::Other));
    assert_eq!(treatment("cc -o x y.c"), Some(Treatment::Run("--version && cc -o x y.c".to_string())));
    assert_eq!(treatment("rm -r x"), None);
}
