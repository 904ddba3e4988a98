//! What the commands print: widths, colour, pipes, lists, completions, and the examples of the documents.

use crate::common::{folder, root, text};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    command.args(args).env_remove("NO_COLOR").env("TERM", "xterm");
    command
}

fn slowstart(args: &[&str]) -> Output {
    command(args).output().expect("it runs")
}

/// Standard output of a command that succeeds.
fn printed(args: &[&str]) -> String {
    let out = slowstart(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

const PATH: &str = "rate=20Mbit rtt=20ms queue=1bdp jitter=1ms";
const QUICK: [&str; 6] = ["compare", PATH, "--size", "300kB", "--runs", "3"];

#[test]
fn a_pipe_gets_a_hundred_columns() {
    let shown = printed(&QUICK);
    assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
    assert!(shown.contains("hystart, Linux's default, needs") && shown.contains("CUBIC"), "{shown}");
    let all = printed(&[&QUICK[..], &["--all"]].concat());
    assert!(all.lines().all(|l| l.chars().count() <= 100), "{all}");
    // This path is so short that many startups did the same.
    assert!(
        all.contains(" more") && all.contains("same in every run: ") && all.contains(" versions"),
        "{all}"
    );
    assert!(!printed(&[&QUICK[..], &["--all", "--quiet"]].concat()).contains("same in every run: "));
    let top = printed(&[&QUICK[..], &["--top", "2", "--columns", "exit,all", "--sort", "all"]].concat());
    assert!(top.contains("2 of ") && !top.contains("lost  "), "{top}");
}

#[test]
fn colour_is_asked_for_or_follows_the_terminal() {
    let always = [&QUICK[..], &["--color", "always"]].concat();
    assert!(printed(&always).contains("\u{1b}[1m"));
    assert!(!printed(&QUICK).contains('\u{1b}'));
    let out = command(&always).env("NO_COLOR", "1").output().expect("it runs");
    assert!(text(&out.stdout).contains("\u{1b}[1m"), "--color always is stronger than NO_COLOR");
    assert!(!printed(&[&QUICK[..], &["--color", "never"]].concat()).contains('\u{1b}'));
}

#[test]
fn a_pipe_that_is_closed_early_is_no_error() {
    for args in [&[&QUICK[..], &["--json"]].concat()[..], &["list"], &["explain", PATH, "hystart"]] {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        let status = child.wait().expect("it ends");
        assert!(status.success() && said.is_empty(), "{args:?}: {status}, {said}");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let rows = |jobs: &str| printed(&[&QUICK[..], &["--json", "--jobs", jobs]].concat());
    assert_eq!(rows("1"), rows("3"));
    assert_eq!(slowstart(&["compare", "geo", "--jobs", "0"]).status.code(), Some(2));
}

#[test]
fn timing_says_how_long_it_took() {
    let out = slowstart(&[&QUICK[..], &["--timing", "--startup", "standard"]].concat());
    let said = text(&out.stderr);
    assert!(said.contains("3 runs in ") && said.contains(" s: ") && said.contains("data packets"), "{said}");
}

#[test]
fn several_paths_give_one_summary() {
    let dir = folder("terminal-paths");
    for (name, rate) in [("slow", "5Mbit"), ("fast", "50Mbit")] {
        let path = format!("rate = \"{rate}\"\nrtt = \"20ms\"\n");
        std::fs::write(dir.join(format!("{name}.toml")), path).expect("a file");
    }
    let paths = dir.to_str().expect("text");
    let common = ["--size", "200kB", "--runs", "6", "--startup", "standard,search,limited"];
    let shown = printed(&[&["compare", PATH, paths][..], &common].concat());
    for part in ["slow: 5 Mbit/s", "fast: 50 Mbit/s", "startup", "lost", "against standard", "Keep standard"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let rows = printed(&[&["compare", paths, "--json"][..], &common].concat());
    assert_eq!(rows.lines().count(), 2 * 6 * 3);
    let empty = folder("terminal-no-paths");
    assert_eq!(slowstart(&["compare", empty.to_str().expect("text")]).status.code(), Some(2));
}

#[test]
fn one_run_is_explained() {
    let shown = printed(&["explain", PATH, "standard", "--size", "2MB"]);
    for part in [
        "standard on rate=20Mbit",
        "finds its reason to exit: ",
        "What that cost",
        "Time: ",
        "Loss: ",
        "Delay: ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
    // It is the run that compare makes.
    let row = printed(&["compare", PATH, "--startup", "standard", "--size", "2MB", "--runs", "2", "--json"]);
    let row: serde_json::Value = serde_json::from_str(row.lines().nth(1).expect("two rows")).expect("a row");
    let second = printed(&["explain", PATH, "standard", "--size", "2MB", "--run", "1"]);
    assert!(second.contains(&format!("seed {}", row["seed"])), "{second}");
    let completion =
        format!("{:.3} s  The receiver has everything", row["completion_s"].as_f64().expect("a time"));
    assert!(second.contains(&completion), "{completion}: {second}");
    assert_eq!(slowstart(&["explain", PATH, "standart"]).status.code(), Some(2));
}

#[test]
fn two_results_are_compared() {
    let dir = folder("terminal-diff");
    let save = |name: &str, more: &[&str]| {
        let file = dir.join(name);
        let study = ["compare", PATH, "--size", "300kB", "--runs", "6"];
        let rows = printed(&[&study[..], &["--json", "--startup", "standard,search,limited"], more].concat());
        std::fs::write(&file, rows).expect("a file");
        file.display().to_string()
    };
    let (a, b) = (save("a.jsonl", &[]), save("b.jsonl", &["--set", "iw=2"]));
    let same = slowstart(&["diff", &a, &a]);
    assert_eq!(same.status.code(), Some(0));
    assert!(text(&same.stdout).contains("same"));
    let changed = slowstart(&["diff", &a, &b]);
    assert_eq!(changed.status.code(), Some(1), "{}", text(&changed.stdout));
    assert!(text(&changed.stdout).contains("slower"), "{}", text(&changed.stdout));
    // A startup that only A has is worse; with none in common, or too few runs, nothing was compared.
    let part = |name: &str, keep: &dyn Fn(&str) -> bool| {
        let rows = std::fs::read_to_string(&a).expect("rows");
        let some: String = rows.lines().filter(|l| keep(l)).flat_map(|l| [l, "\n"]).collect();
        let file = dir.join(name);
        std::fs::write(&file, some).expect("a file");
        file.display().to_string()
    };
    let limited = |line: &str| line.contains("\"startup\":\"limited\"");
    let (only, without) = (part("only.jsonl", &limited), part("without.jsonl", &|l| !limited(l)));
    let few = part("few.jsonl", &|l| !l.contains("\"run\":5"));
    for (from, to, status, says) in [
        (&a, &without, 1, ""),
        (&only, &without, 2, "found no startup and path that both have"),
        (&a, &few, 2, "3 of 3 cannot be compared: expected 6 valid runs or more"),
    ] {
        let out = slowstart(&["diff", from, to]);
        assert_eq!(out.status.code(), Some(status), "{to}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(says), "{to}: {}", text(&out.stderr));
    }
    std::fs::write(dir.join("c.jsonl"), "{}\n").expect("a file");
    let bad = slowstart(&["diff", &a, dir.join("c.jsonl").to_str().expect("text")]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("c.jsonl: line 1"), "{}", text(&bad.stderr));
    assert_eq!(slowstart(&["diff", &a, "nowhere"]).status.code(), Some(2));
}

#[test]
fn keys_and_knobs_are_listed() {
    let keys = printed(&["list", "path-keys"]);
    for key in slowstart_sim::path::PATH_KEYS {
        assert!(keys.contains(key.name) && keys.contains(key.about), "{}", key.name);
    }
    let knobs = printed(&["list", "knobs"]);
    for k in slowstart_sim::tcp::profile::Profile::KNOBS {
        assert!([k.name, k.expects, k.about].iter().all(|t| knobs.contains(t)), "{}", k.name);
    }
    let all: serde_json::Value = serde_json::from_str(&printed(&["list", "--all", "--json"])).expect("JSON");
    for kind in
        ["startups", "avoidances", "paths", "path_keys", "profiles", "knobs", "engines", "not_implemented"]
    {
        assert!(all[kind][0]["name"].is_string(), "{kind}: {all}");
    }
    assert_eq!(all["startups"].as_array().map(Vec::len), Some(slowstart::registry::all().count()));
}

#[test]
fn a_path_is_drawn_link_by_link() {
    let path = "rate=50Mbit rtt=20ms queue=2bdp then=\"rate=30Mbit rtt=30ms queue=100packets\"";
    assert_eq!(
        printed(&["list", path]).lines().collect::<Vec<_>>(),
        [
            "sender",
            "  |  link 1: 50 Mbit/s, 20 ms of RTT, a queue of 625 kB",
            "  |  link 2: 30 Mbit/s, 30 ms of RTT, a queue of 150 kB; the rate of the path",
            "receiver",
            "as a whole: 30 Mbit/s, RTT 50 ms, BDP 188 kB",
        ]
    );
    assert!(printed(&["list", "geo"]).contains("each run draws its values"));
    let json: serde_json::Value = serde_json::from_str(&printed(&["list", "--json", path])).expect("JSON");
    assert_eq!(
        (json["links"][1]["rate_bps"].as_u64(), json["base_rtt_s"].as_f64()),
        (Some(30_000_000), Some(0.05))
    );
    for (args, part) in [
        (&["list", "rate=50Mbit rtt=20ms then=\"rate=30Mbit\""][..], "rtt"),
        (&["list", "rate=50Mbit", "rtt=20ms"], "in quotes"),
        (&["list", "path"], "expected one of startups"),
        (&["compare", path, "--against", "cubic@1s/3"], "links of this path, which are 1 to 2"),
        (&["compare", path, "--against", "cubic@1s/2", "--engine", "quic:quinn"], "against"),
    ] {
        let out = slowstart(args);
        assert!(
            out.status.code() == Some(2) && text(&out.stderr).contains(part),
            "{args:?}: {}",
            text(&out.stderr)
        );
    }
    let told = printed(&["explain", path, "hystart", "--against=cubic@-3s/2", "--size", "5MB"]);
    assert!(told.contains("at link 2 drops") && told.contains("Link 1: 50 Mbit/s"), "{told}");
}

#[test]
fn shells_and_man_get_their_files() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(printed(&["completions", shell]).contains("explain"), "{shell}");
    }
    let dir = folder("terminal-man");
    printed(&["man", dir.to_str().expect("text")]);
    let page = std::fs::read_to_string(dir.join("slowstart-compare.1")).expect("a page");
    assert!(page.contains(".TH") && page.contains("satellite") | page.contains("startups"), "{page}");
    assert!(dir.join("slowstart.1").is_file());
}

#[test]
fn every_help_has_two_examples() {
    let verbs = "compare run explain diff replay fit reproduce list suite vectors completions man";
    for verb in verbs.split(' ') {
        let help = printed(&[verb, "--help"]);
        let (_, examples) = help.split_once("Examples:").unwrap_or_else(|| panic!("{verb}: {help}"));
        let count = examples.lines().filter(|l| l.contains(&format!("slowstart {verb}"))).count();
        assert!(count >= 2, "{verb}: {help}");
        // Files of this repository that an example names exist.
        let ours = |w: &&str| ["crates/", "docs/", "scenarios/"].iter().any(|d| w.starts_with(d));
        for word in examples.split_whitespace().filter(ours).filter(|w| !w.contains('*')) {
            assert!(root().join(word).exists(), "{verb}: {word}");
        }
    }
}

#[test]
fn text_of_others_is_made_printable() {
    let dir = folder("terminal-escapes");
    let file = dir.join("path.toml");
    std::fs::write(&file, "name = \"a\\u001b[2Jb\"\nrate = \"5Mbit\"\nrtt = \"20ms\"\n").expect("a file");
    let file = file.to_str().expect("text");
    let shown =
        printed(&["compare", file, "--startup", "standard,limited", "--runs", "1", "--size", "100kB"]);
    assert!(!shown.contains('\u{1b}') && shown.contains("a\\u{1b}[2Jb"), "{shown}");
    let shown = printed(&["explain", file, "standard", "--size", "100kB"]);
    assert!(!shown.contains('\u{1b}') && shown.contains("a\\u{1b}[2Jb"), "{shown}");
    let out = slowstart(&["compare", "no\u{1b}[2Jwhere"]);
    assert!(!text(&out.stderr).contains('\u{1b}'));
}

/// The blocks of a document in a language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let file = root().join(document);
    let document = std::fs::read_to_string(&file).expect("a document");
    let mut all = Vec::new();
    let mut inside: Option<String> = None;
    for line in document.lines() {
        match &mut inside {
            Some(_) if line == "```" => all.extend(inside.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line == format!("```{language}") => inside = Some(String::new()),
            None => {}
        }
    }
    all
}

/// Every command of the README runs as typed, with fewer runs, in a folder that has the repository's files.
#[test]
#[cfg(unix)]
fn commands_of_the_readme_run() {
    let dir = folder("terminal-readme");
    for name in ["docs", "scenarios", "crates"] {
        std::os::unix::fs::symlink(root().join(name).canonicalize().expect("there"), dir.join(name))
            .expect("a link");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_slowstart")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let mut ran = 0;
    for line in blocks("README.md", "sh").iter().flat_map(|b| b.lines()) {
        // This is one of them.
        if line.starts_with("make test ") {
            continue;
        }
        let line = line.replace("cargo run --release -- ", "slowstart ");
        assert!(line.starts_with("slowstart "), "a command that this test does not know: {line}");
        // The whole comparison is compared to the byte in ci/test.sh; in a debug build it takes long.
        let line = line.replace("slowstart compare", "slowstart compare --runs 1");
        let out = Command::new("bash")
            .args(["-o", "pipefail", "-c", &line])
            .env("PATH", &path)
            .current_dir(&dir)
            .output()
            .expect("bash");
        assert!(out.status.success(), "{line}: {}", text(&out.stderr));
        assert!(!out.stdout.is_empty(), "{line} printed nothing");
        ran += 1;
    }
    assert_eq!(ran, 3, "commands");
}

/// The examples of docs/reference/studies.md run, and between them they use every key, each of which is in
/// the table.
#[test]
fn studies_are_documented() {
    let dir = folder("terminal-studies");
    let document = std::fs::read_to_string(root().join("docs/reference/studies.md")).expect("a document");
    let mut used = BTreeSet::new();
    for (i, example) in blocks("docs/reference/studies.md", "toml").iter().enumerate() {
        let file = dir.join(format!("{i}.toml"));
        std::fs::write(&file, example).expect("a file");
        let shown = printed(&["run", file.to_str().expect("text")]);
        assert!(shown.contains("leaves slow start"), "{example}\n{shown}");
        used.extend(example.lines().filter_map(|l| Some(l.split_once(" = ")?.0.to_string())));
        used.extend(example.contains("[set]").then(|| "set".to_string()));
    }
    // The error for an unknown key lists all keys.
    let file = dir.join("unknown.toml");
    std::fs::write(&file, "path = \"geo\"\nunknown = 1\n").expect("a file");
    let said = text(&slowstart(&["run", file.to_str().expect("text")]).stderr);
    let keys: Vec<&str> =
        said.split("expected one of ").nth(1).expect("the keys").split('`').skip(1).step_by(2).collect();
    assert!(keys.len() >= 12, "{said}");
    for key in keys {
        assert!(document.contains(&format!("| `{key}` |")), "docs/reference/studies.md has no {key}");
        assert!(used.contains(key), "no example has {key}");
    }
}
