//! The appendix: what an outsider types to get the numbers, and the draft itself, again.

use super::Front;
use super::xml::{Page, clean};
use crate::run::Report;
use crate::scenario::sha256;

/// Characters of a line: a page of an Internet-Draft holds 72, of which the indentation takes some.
const LINE: usize = 66;
/// Where the commands put what they make.
const RESULT: &str = "result.json";

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    shlex::try_quote(&clean(word)).unwrap_or_else(|e| unreachable!("it has no zero byte: {e}")).into_owned()
}

/// A command in lines of at most [`LINE`] characters, which a shell reads as one: also within a word it ends a line where
/// that is too long.
pub(super) fn folded(words: &[String]) -> String {
    let (mut out, mut line) = (String::new(), 0);
    for (i, word) in words.iter().enumerate() {
        let whole = quoted(word);
        let (space, length) = (usize::from(i > 0), whole.chars().count());
        if line + space + length + 2 > LINE && i > 0 {
            out += " \\\n ";
            line = 1;
        }
        if i > 0 {
            out.push(' ');
            line += 1;
        }
        if line + length + 2 <= LINE {
            out += &whole;
            line += length;
            continue;
        }
        // Quotes make a piece longer; half a line holds one whatever is in it.
        let letters: Vec<char> = word.chars().collect();
        for (j, piece) in letters.chunks(LINE / 2).enumerate() {
            out += if j > 0 { "\\\n" } else { "" };
            let piece = quoted(&piece.iter().collect::<String>());
            line = piece.chars().count();
            out += &piece;
        }
    }
    out
}

/// The feature of the program that an engine needs.
fn feature(engine: &str, real_clock: bool) -> Option<&'static str> {
    match engine {
        _ if real_clock => Some("kernel"),
        _ if engine.starts_with("quic") => Some("quic"),
        _ => None,
    }
}

pub(super) fn write(p: &mut Page, report: &Report, stored: &str, front: &Front) {
    let words = |of: &[&str]| of.iter().map(ToString::to_string).collect::<Vec<String>>();
    let mut build = vec![words(&["git", "clone", env!("CARGO_PKG_REPOSITORY")]), words(&["cd", "slowstart"])];
    let commit = report.commit.as_deref().and_then(|c| c.split(',').next());
    build.extend(commit.map(|c| words(&["git", "checkout", c])));
    let mut install = words(&["cargo", "install", "--locked", "--path", "crates/cli"]);
    let feature = feature(&report.engine, report.real_clock);
    install.extend(feature.into_iter().flat_map(|f| words(&["--features", f])));
    build.push(install);
    p.t("The program, from a clean clone:");
    code(p, &build);
    if report.commit.is_none() {
        p.t("The program that computed the result does not know its commit: that of this clone may be another one.");
    } else if report.commit.as_deref().is_some_and(|c| c.contains(',')) {
        p.t("The program that computed the result had changes that the commit does not have: a clean clone may give other numbers.");
    }
    p.t("The result, and its hash (the first command ends with status 1 if a criterion is not met, and writes the result also \
         then):");
    let mut run = report.command.clone();
    run.extend(words(&["--json", RESULT]));
    code(p, &[run, words(&["sha256sum", RESULT])]);
    if report.real_clock {
        p.t("It ran on the real clock: a run again gives other numbers, another hash, and as a rule the same verdicts.");
    } else {
        p.t(&format!("The hash is {}.", sha256(stored.as_bytes())));
    }
    p.t("This document from the result, to the byte:");
    let date = front.date.to_string();
    let mut own = words(&["slowstart", "suite", "report", "--draft", "--date", &date, "--name", &front.name]);
    for (option, value) in
        [("--author", &front.author), ("--organization", &front.organization), ("--email", &front.email)]
    {
        own.extend(value.iter().flat_map(|v| words(&[option, v])));
    }
    if let Some(at) = report.command.iter().position(|w| w == "--file") {
        own.extend(report.command[at..].iter().take(2).cloned());
    }
    own.push(RESULT.into());
    let file = format!("{} \\\n  >{}.xml", folded(&own), front.name);
    p.element("sourcecode", &[("type", "shell")], &format!("\n{file}\n"));
}

/// The command for one of its scenarios.
pub(super) fn alone(report: &Report, scenario: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut all = report.command.iter();
    while let Some(word) = all.next() {
        if word == "--scenario" {
            all.next();
        } else {
            words.push(word.clone());
        }
    }
    words.extend(["--scenario".into(), scenario.into()]);
    words
}

/// Commands in a block, one a line.
pub(super) fn code(p: &mut Page, commands: &[Vec<String>]) {
    let lines: Vec<String> = commands.iter().map(|c| folded(c)).collect();
    p.element("sourcecode", &[("type", "shell")], &format!("\n{}\n", lines.join("\n")));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell reads the folded words as they were.
    #[test]
    fn folded_words_are_the_same_words() {
        let long = "cd \"$FILES\" && exec /opt/server --name 'it''s' ".repeat(6);
        let words: Vec<String> =
            ["printf", "%s\\n", "--startup", "a,b", "", "it's $HOME", &long, &"x".repeat(200), "--last"]
                .map(str::to_string)
                .to_vec();
        let text = folded(&words);
        assert!(text.lines().all(|l| l.chars().count() <= LINE + 6), "{text}");
        let out = std::process::Command::new("sh").args(["-c", &text]).output().expect("sh");
        let expected = words[2..].join("\n") + "\n";
        assert_eq!(String::from_utf8_lossy(&out.stdout), expected);
    }
}
