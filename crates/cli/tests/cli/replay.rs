//! `slowstart replay`: the documented commands print what the document shows; several files, folders and
//! standard input; foreign text.

use crate::common::{folder, root, slowstart, text};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SAMPLE: &str = "scenarios/captures/download.pcapng.gz";

/// The words of a command; those in double quotes are one.
fn words(command: &str) -> Vec<String> {
    let quoted = command.trim().split('"').enumerate();
    quoted
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_string).collect(),
            _ => vec![part.to_string()],
        })
        .collect()
}

/// Guides that show what commands print.
const SHOWN: [(&str, usize); 6] = [
    ("captures", 2),
    ("tutorial", 4),
    ("advise", 1),
    ("which-startup", 1),
    ("operator", 2),
    ("add-an-algorithm", 1),
];

/// Stands for the lines from "Difference from" to the verdict.
const LEFT_OUT: &str = "...\n";

/// Each command of these guides with an output prints exactly that. `SLOWSTART_BLESS=1` writes the outputs
/// anew.
#[test]
fn documented_outputs_are_real() {
    for (guide, least) in SHOWN {
        outputs_are_real(&root().join(format!("docs/guide/{guide}.md")), least);
    }
}

fn outputs_are_real(file: &Path, least: usize) {
    let doc = std::fs::read_to_string(file).expect("the document");
    let (mut written, mut rest, mut commands) = (String::new(), doc.as_str(), 0);
    while let Some((before, after)) = rest.split_once("```sh\n") {
        let (command, after) = after.split_once("```\n").expect("a closed block");
        written.push_str(before);
        write!(written, "```sh\n{command}```\n").expect("a String");
        rest = after;
        let Some(after) = after.strip_prefix("```text\n") else { continue };
        let shown = after.split("```\n").next().expect("a closed block");
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let out = slowstart(&words[1..]);
        assert!(words[0] == "slowstart" && out.status.success(), "{command}: {}", text(&out.stderr));
        let mut printed = text(&out.stdout);
        // A page may leave out what explains a table, where another explains it.
        if shown.contains(LEFT_OUT) {
            let from = printed.find("\nDifference from ").expect("what explains the table") + 1;
            let verdict = printed.rfind("\n\n").expect("a paragraph") + 1;
            printed.replace_range(from..verdict, LEFT_OUT);
        }
        write!(written, "```text\n{printed}```\n").expect("a String");
        rest = &after[shown.len() + "```\n".len()..];
        commands += 1;
        if std::env::var_os("SLOWSTART_BLESS").is_none() {
            assert_eq!(printed, shown, "{command}");
        }
    }
    written.push_str(rest);
    assert!(commands >= least, "{}: {commands} outputs", file.display());
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(file, written).expect("written");
    }
}

/// The prose of a guide, and the outputs that it shows.
fn prose_and_outputs(guide: &str) -> (String, String) {
    let doc = std::fs::read_to_string(root().join(format!("docs/guide/{guide}.md"))).expect("the document");
    let (mut prose, mut outputs) = (String::new(), String::new());
    for (i, part) in doc.split("```").enumerate() {
        match i % 2 {
            0 => prose.push_str(part),
            _ => outputs.push_str(part.strip_prefix("text\n").unwrap_or_default()),
        }
    }
    (prose, outputs)
}

/// Each percentage that these guides say, in alternative texts too, is in an output of the page or in the figures of
/// `which-startup`, whose runs the pictures show.
#[test]
fn guides_say_what_their_outputs_show() {
    // The level of all intervals.
    const LEVEL: &str = "95";
    let (_, figures) = prose_and_outputs("which-startup");
    let mut said = 0;
    for (guide, _) in SHOWN {
        let (prose, outputs) = prose_and_outputs(guide);
        let words: Vec<&str> = prose.split_whitespace().collect();
        for pair in words.windows(2).filter(|w| w[1].starts_with('%')) {
            let number = pair[0].trim_start_matches('(');
            let shown = |text: &str| {
                text.match_indices(&format!("{number} %"))
                    .any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.'))
            };
            assert!(
                number == LEVEL || shown(&outputs) || shown(&figures),
                "{guide}: no output shows {number} %"
            );
            said += 1;
        }
    }
    assert!(said >= 10, "{said} percentages");
}

/// Several files, a folder and standard input; each row names its file.
#[test]
fn several_files_folders_and_standard_input_are_read() {
    let dir = folder("replay-several");
    let sample = std::fs::read(root().join(SAMPLE)).expect("the sample");
    for name in ["one.pcapng.gz", "two.pcapng.gz"] {
        std::fs::write(dir.join(name), &sample).expect("a file");
    }
    std::fs::write(dir.join("notes.txt"), "nothing to analyse\n").expect("a file");
    std::fs::create_dir_all(dir.join("2024/may")).expect("a folder");
    std::fs::write(dir.join("2024/may/three.pcapng.gz"), &sample).expect("a file");
    std::fs::write(dir.join(".hidden"), "not read").expect("a file");
    let dir = dir.to_str().expect("text");
    let out = slowstart(&["replay", dir, "--startup", "hystart"]);
    let (shown, said) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(
        said.contains("notes.txt: offset 0: found an unknown format") && said.contains("skipped"),
        "{said}"
    );
    assert!(said.contains("1 of 4 files could not be read"), "{said}");
    assert!(
        ["file ", "one.pcapng.gz  ", "two.pcapng.gz  ", "three.pcapng.gz  "]
            .iter()
            .all(|n| shown.contains(n)),
        "{shown}"
    );
    let one = format!("{dir}/one.pcapng.gz");
    let out = slowstart(&["replay", &one, SAMPLE, "--startup", "hystart", "--json"]);
    let files: Vec<String> = text(&out.stdout)
        .lines()
        .map(|l| {
            serde_json::from_str::<serde_json::Value>(l).expect("JSON")["file"]
                .as_str()
                .expect("named")
                .to_string()
        })
        .collect();
    assert_eq!(files, [one.as_str(), SAMPLE]);
    // A named file that cannot be read makes the status 2, and the others are read.
    let out = slowstart(&["replay", &one, "absent.pcap", "--json", "--startup", "hystart"]);
    assert_eq!((out.status.code(), text(&out.stdout).lines().count()), (Some(2), 1));
    assert!(text(&out.stderr).contains("absent.pcap"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_slowstart"));
    let child =
        child.args(["replay", "-", "--startup", "hystart"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().expect("it runs");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &sample).expect("it reads");
    let shown = text(&child.wait_with_output().expect("it ends").stdout);
    assert!(shown.starts_with("-: capture of 2,661 packets") && shown.contains("link full"), "{shown}");
}

/// Escape sequences in file names, titles and notes do not reach the terminal.
#[test]
fn foreign_text_is_escaped() {
    let dir = folder("replay-escapes");
    let qlog = dir.join("a\u{1b}[31m.qlog");
    let text_of = "{\"qlog_version\":\"0.3\",\"traces\":[{\"vantage_point\":{\"name\":\"x\\u001b[2Jy\"},\"events\":[\
                   {\"time\":1,\"name\":\"recovery:metrics_updated\",\"data\":{\"congestion_window\":1}}]}]}";
    std::fs::write(&qlog, text_of).expect("a file");
    let bad = dir.join("b\u{1b}[31m.pcap");
    std::fs::write(&bad, "\u{1b}[2J").expect("a file");
    for file in [&qlog, &bad] {
        let out = slowstart(&["replay", file.to_str().expect("text")]);
        let all = [out.stdout, out.stderr].concat();
        assert!(!all.contains(&0x1b) && !all.is_empty(), "{}", String::from_utf8_lossy(&all));
        assert!(text(&all).contains("\\u{1b}[31m"), "{}", text(&all));
    }
    let out = slowstart(&["replay", qlog.to_str().expect("text")]);
    assert!(text(&out.stdout).contains("x\\u{1b}[2Jy"), "{}", text(&out.stdout));
}

/// More than twenty transfers are summarised, with the share that is not known.
#[test]
fn many_transfers_are_summarised() {
    let dir = folder("replay-many");
    let sample = std::fs::read(root().join(SAMPLE)).expect("the sample");
    for n in 0..21 {
        std::fs::write(dir.join(format!("{n}.pcapng.gz")), &sample).expect("a file");
    }
    let folder = dir.to_str().expect("text");
    let out = slowstart(&["replay", folder, "--startup", "hystart,vegas", "--wide"]);
    let shown = text(&out.stdout);
    let line =
        |name: &str| shown.lines().find(|l| l.starts_with(name)).map(str::to_string).unwrap_or_default();
    let words = |l: String| l.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert!(
        words(line("       ")).join(" ").starts_with("too early link full by loss not at all unknown"),
        "{shown}"
    );
    // As observed: all with the link full. Vegas would have sent something else long before it left.
    assert_eq!(words(line("as observed"))[5..7], ["21", "(100"], "{shown}");
    assert!(line("vegas").contains("21 (100 %)"), "{shown}");
    // Without --wide: the number, the exits, and the answer for the largest.
    let out = slowstart(&["replay", folder, "--startup", "hystart,vegas"]);
    let shown = text(&out.stdout);
    assert!(
        shown.starts_with("21 transfers of 40.5 MB\nexits: too early 0 (0 %), link full 21 (100 %)"),
        "{shown}"
    );
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" the largest, ") && words.contains("none of 2 startups"), "{shown}");
    assert!(!shown.contains("vegas"), "{shown}");
}
