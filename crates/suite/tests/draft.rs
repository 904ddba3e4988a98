//! A stored result as an Internet-Draft: the bytes, what refuses it, and what xml2rfc and idnits say where they are
//! installed. `SLOWSTART_BLESS=1` writes the draft.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use slowstart_suite::report::board::check_verdicts;
use slowstart_suite::report::{Date, DraftError, Front, draft, markdown};
use slowstart_suite::run::Planned;
use slowstart_suite::{Report, Suite, Verdict};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUITE: &str = include_str!("data/draft.toml");
const RESULT: &str = include_str!("data/draft.json");
const NAME: &str = "draft-author-ccwg-startup-evaluation-00";

fn suite() -> Suite {
    Suite::read(SUITE).expect("a suite")
}

fn report() -> Report {
    serde_json::from_str(RESULT).expect("a report")
}

fn front() -> Front {
    let date: Date = "2026-11-28".parse().expect("a day");
    Front { name: NAME.into(), date, author: None, organization: None, email: None }
}

fn made() -> String {
    draft(&suite(), &report(), RESULT, &front()).expect("a draft")
}

#[test]
fn a_result_makes_the_same_bytes_each_time() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/draft.xml");
    let text = made();
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(&file, &text).expect("writable");
    }
    let there = std::fs::read_to_string(&file).expect("the draft");
    assert!(text == there, "another draft; run SLOWSTART_BLESS=1 cargo test -p slowstart-suite --test draft");
}

/// What the result says is in the draft: each value to the digit, what was not run, and what is not known.
#[test]
fn a_draft_says_no_more_than_its_result() {
    let text = made();
    let scenario = |name: &str| {
        let at = text.find(&format!("<section anchor=\"scenario-{name}\" toc=\"exclude\">")).expect(name);
        text[at..].split_once("</section>").expect("it ends").0.to_string()
    };
    assert!(scenario("not-asked").contains("<t>Not run: the command left it out.</t>"));
    assert!(scenario("random-loss").contains("<dd>&lt;Losses&gt; &amp; \"bursts\".</dd>"));
    assert!(text.contains("RFC 99999, which nobody wrote"), "what we do not know is text");

    let mut report = report();
    let open = &mut report.entries[0];
    (open.verdict, open.runs_to_decide) = (Verdict::Undecided, Some(40));
    open.values = vec![Some(0.5), None, Some(0.25), None, None, Some(0.75)];
    (open.never, open.value, open.limit, open.excess) = (1, Some(0.5), Some(0.4), Some([-0.1, 1e300]));
    let unseen = &mut report.entries[1];
    (unseen.verdict, unseen.value, unseen.limit, unseen.excess) = (Verdict::NotObserved, None, None, None);
    unseen.values = vec![None; 6];
    report.notes.push("short-1MB, 2 of 6 runs: late".into());
    report.commit = Some("0123456789ab, modified".into());
    let text = draft(&suite(), &report, "", &front()).expect("a draft");
    for cell in [
        "0.500; never completes in 1 of 6 runs [0.250, 0.750]",
        "-0.100 to no end",
        "undecided (6 runs; about 40 would decide; no value in 2)",
        "not observed (6 runs; no value in 6)",
    ] {
        assert!(text.contains(&format!("<td>{cell}</td>")), "{cell}");
    }
    assert!(text.contains("<li>short-1MB, 2 of 6 runs: late</li>"));
    assert!(text.contains("was not observed</li>"));
    assert!(text.contains("git checkout 0123456789ab\n"));
    assert!(text.contains("a clean clone may give other numbers"));
}

/// The draft of a whole stack and a scenario of another suite, with commands and a name longer than a line.
fn of_a_stack() -> String {
    let suite = Suite::read(&SUITE.replace("\"random-loss\"", "\"1 % <lost>, é\"")).expect("a suite");
    let name = "mine:window=100,detect=delay,more=0.123456789,still-more=1";
    let mut report = report();
    (report.real_clock, report.avoidance) = (true, String::new());
    report.engine = "emulated path, Linux 6.18".into();
    report.stack.clone_from(&report.engine);
    report.startups = vec![name.into()];
    report.entries.retain(|e| e.startup == "search");
    report.entries.iter_mut().for_each(|e| e.startup = name.into());
    let serve = "cd \"$SLOWSTART_FILES\" && exec /opt/mine/server --listen 0.0.0.0:443 --certificate cert.pem --key key.pem";
    report.command =
        ["slowstart", "suite", "run", "--serve", serve, "--fetch", "f"].map(str::to_string).to_vec();
    report.suite_sha256.clone_from(&suite.sha256);
    for e in report.entries.iter_mut().filter(|e| e.scenario == "random-loss") {
        e.scenario = "1 % <lost>, é".into();
    }
    draft(&suite, &report, "", &front()).expect("a draft")
}

/// Of a whole stack the draft says that another run gives other numbers, and how the stack was run.
#[test]
fn a_whole_stack_on_the_real_clock() {
    let text = of_a_stack();
    assert!(text.contains("<dd>not stated</dd>"));
    assert!(text.contains("a run again gives other numbers"));
    assert!(text.contains("--features kernel"));
    assert!(text.contains("the kernel's Reno"));
    for block in text.split("<sourcecode type=\"shell\">").skip(1) {
        let (block, _) = block.split_once("</sourcecode>").expect("it ends");
        assert!(block.lines().all(|l| l.chars().count() <= 69), "{block}");
    }
}

#[test]
fn what_makes_no_draft_is_refused() {
    let refused = |suite: &Suite, report: &Report, front: &Front| {
        draft(suite, report, RESULT, front).expect_err("refused").to_string()
    };
    let (suite, report, front) = (suite(), report(), front());
    let named = Front { name: "mine".into(), ..front.clone() };
    assert_eq!(draft(&suite, &report, RESULT, &named), Err(DraftError::Name("mine".into())));
    let older = Report { suite_sha256: String::new(), ..report.clone() };
    assert!(refused(&suite, &older, &front).contains("found no hash of its suite in the report"));
    let library = Report { command: Vec::new(), ..report.clone() };
    assert!(refused(&suite, &library, &front).contains("found no command in the report"));
    let built_in = refused(&Suite::built_in(), &report, &front);
    assert!(
        built_in.contains("found startup-1 with SHA-256") && built_in.contains("expected small-1"),
        "{built_in}"
    );
    let mut other = report.clone();
    other.entries[0].criterion = "timeouts <= 0".into();
    assert!(refused(&suite, &other, &front).contains("short-1MB: found the criterion \"timeouts <= 0\""));
}

/// What RFCXML calls empty: an element with neither text nor element, but those that have attributes alone.
fn empty_elements(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let opens =
        |line: &str, name: &str| line == format!("<{name}>") || line.starts_with(&format!("<{name} "));
    let mut all = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        for name in ["ul", "dl", "tbody"] {
            if opens(line, name) && lines[i + 1] == format!("</{name}>") {
                all.push(format!("{name} at line {}", i + 1));
            }
        }
        if opens(line, "section") && lines[i + 2] == "</section>" {
            all.push(lines[i + 1].to_string());
        }
    }
    all
}

/// Of each suite, and of a result of a part of it, the draft has no empty list and no empty section, and a section that the suite
/// has nothing of says so.
#[test]
fn no_list_and_no_section_is_empty() {
    assert_eq!(empty_elements("<ul>\n</ul>\n<section a=\"b\">\n<name>x</name>\n</section>").len(), 2);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).expect("the suites") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a suite");
        let suite = Suite::read(&text).expect("a suite");
        let mut report = report();
        (report.suite, report.suite_sha256) = (suite.name.clone(), suite.sha256.clone());
        report.entries.truncate(1);
        let (s, e) = (&suite.scenarios[0], &mut report.entries[0]);
        (e.scenario, e.section, e.criterion) =
            (s.name.clone(), s.section.clone(), s.criteria[0].text.clone());
        (report.left_out, report.notes) = (Vec::new(), Vec::new());
        e.limits.clear();
        let text = draft(&suite, &report, RESULT, &front()).expect("a draft");
        assert_eq!(empty_elements(&text), Vec::<String>::new(), "{}", suite.name);
        for (section, _) in slowstart_suite::scenario::SECTIONS {
            let (_, own) =
                text.split_once(&format!("<section anchor=\"rfc9743-{section}\">")).expect("a section");
            let has = suite.scenarios.iter().any(|s| s.section == *section)
                || suite.gaps.iter().any(|g| g.section == *section);
            let says = own
                .split("<section ")
                .next()
                .is_some_and(|own| own.contains("<t>Not evaluated: nothing in "));
            assert_eq!(says, !has, "{}, section {section}", suite.name);
        }
        seen += 1;
    }
    assert!(seen >= 3);
}

/// A result of nothing but the first criterion of a suite, with every startup in its list, and this avoidance.
fn of_every_startup(suite: &Suite, avoidance: &str) -> Report {
    let mut report = report();
    (report.suite, report.suite_sha256) = (suite.name.clone(), suite.sha256.clone());
    report.avoidance = avoidance.into();
    report.startups = slowstart::registry::all().map(|e| e.name.to_string()).collect();
    report.entries.truncate(1);
    let (s, e) = (&suite.scenarios[0], &mut report.entries[0]);
    (e.scenario, e.section, e.criterion) = (s.name.clone(), s.section.clone(), s.criteria[0].text.clone());
    e.limits.clear();
    report
}

/// The values of an attribute in elements that begin so.
fn values<'a>(text: &'a str, begins: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begins).skip(1).map(|rest| rest.split('"').next().expect("a value ends"))
}

/// Every citation has an entry, every entry is cited, and what a text names is cited: with every suite, startup and avoidance.
#[test]
fn what_a_draft_names_is_cited_and_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut texts = vec![made(), of_a_stack()];
    for file in std::fs::read_dir(folder).expect("the suites") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a suite");
        let suite = Suite::read(&text).expect("a suite");
        for avoidance in slowstart::avoidance::REGISTRY {
            let report = of_every_startup(&suite, avoidance.name);
            texts.push(draft(&suite, &report, RESULT, &front()).expect("a draft"));
        }
    }
    // Of TSL nobody here knows authors and title.
    let unnamed = ["TCP SYN Loss paper"];
    let mut all = BTreeSet::new();
    for text in &texts {
        let cited: BTreeSet<&str> = values(text, "<xref target=\"").collect();
        let listed: Vec<&str> = values(text, "<reference anchor=\"").collect();
        assert_eq!(cited, listed.iter().copied().collect(), "cited and listed");
        assert_eq!(cited.len(), listed.len(), "once each");
        all.extend(cited);
        let (_, body) = text.split_once("<middle>").expect("it has");
        let (body, back) = body.split_once("<back>").expect("it has");
        for line in body.lines().chain(back.lines().skip_while(|l| !l.contains("anchor=\"commands\""))) {
            let text = ["t", "li", "dd", "td"].iter().any(|e| line.trim().starts_with(&format!("<{e}>")));
            if !text || unnamed.iter().any(|n| line.contains(n)) {
                continue;
            }
            let number = |at: usize| line[at + 4..].split(|c: char| !c.is_ascii_digit()).next();
            let rfcs = line.match_indices("RFC ").filter_map(|(at, _)| number(at));
            assert!(
                rfcs.into_iter().all(|n| n.is_empty() || n == "99999"),
                "an RFC without citation: {line}"
            );
            let drafts = line.match_indices("draft-").filter(|(at, _)| {
                let rest = line[*at..].trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-');
                // The suite of the tests is in a file of this name.
                !rest.starts_with(" <xref target=") && !rest.starts_with(".toml")
            });
            assert_eq!(drafts.count(), 0, "a draft without citation: {line}");
            // A paper has a year or others beside its first author.
            let year = line.split(|c: char| !c.is_ascii_digit()).any(|n| {
                n.len() == 4 && (n.starts_with("199") || n.starts_with("200") || n.starts_with("201"))
            });
            if year || line.contains(" et al") || line.contains("arXiv:") {
                assert!(line.contains("<xref target="), "a paper without citation: {line}");
            }
        }
    }
    for anchor in
        ["RFC9743", "RFC9406", "I-D.ietf-ccwg-bbr", "I-D.chung-ccwg-search", "HYSTART", "SUSS", "STARLINK"]
    {
        assert!(all.contains(anchor), "{anchor}");
    }
    let normative = made();
    let (_, normative) = normative.split_once("<name>Normative References</name>").expect("it has");
    let (normative, informative) =
        normative.split_once("<name>Informative References</name>").expect("it has");
    assert!(normative.contains("anchor=\"RFC9743\"") && !informative.contains("anchor=\"RFC9743\""));
    // The source of every startup and avoidance is a citation.
    let report = of_every_startup(&Suite::built_in(), "cubic");
    let text = draft(&Suite::built_in(), &report, RESULT, &front()).expect("a draft");
    for e in slowstart::registry::all().filter(|e| !unnamed.contains(&e.source)) {
        let (_, own) = text.split_once(&format!("<dt>{}:</dt>", e.name)).expect(e.name);
        let own = own.split("</dd>").next().expect("it ends");
        assert!(own.contains("<xref target="), "{}: {own}", e.name);
    }
}

/// A suite whose numbers have sources shows them.
#[test]
fn the_sources_of_numbers_are_in_the_draft() {
    let text = include_str!("../scenarios/sources-3.toml");
    let suite = Suite::read(text).expect("a suite");
    let text = draft(&suite, &of_every_startup(&suite, "cubic"), RESULT, &front()).expect("a draft");
    let numbers: usize = suite.scenarios.iter().map(|s| s.numbers.len()).sum();
    assert!(numbers > 0);
    assert_eq!(text.matches("<dt>Source of ").count(), numbers);
    assert!(text.contains("IMC 2026 (arXiv:2605.27717) <xref target=\"STARLINK-QUEUE\"/>"));
}

/// A verdict that someone edited is refused, as the board does.
#[test]
fn a_verdict_that_its_runs_do_not_give_makes_no_draft() {
    let mut report = report();
    check_verdicts(&report).expect("as it was computed");
    let e = report.entries.iter_mut().find(|e| e.verdict == Verdict::DoesNotMeet).expect("one is not met");
    (e.values, e.limits) = (vec![e.value; 6], vec![e.limit; 6]);
    e.verdict = Verdict::Meets;
    let why = check_verdicts(&report).expect_err("refused");
    assert!(why.ends_with("found \"meets\", expected \"does not meet\" by its runs"), "{why}");
    assert_eq!(draft(&suite(), &report, RESULT, &front()), Err(DraftError::Verdict(why)));
}

/// What is open against today's default is counted and marked; without a value no median is at a limit.
#[test]
fn what_is_open_or_unseen_is_told() {
    let mut report = report();
    report.entries[0].against_default = Some(Verdict::Undecided);
    report.entries[1].planned = Some(Planned { runs: 3, verdict: Verdict::Undecided });
    let text = draft(&suite(), &report, RESULT, &front()).expect("a draft");
    assert!(text.contains("; 1 met against slow start, and undecided against today's default"), "{text}");
    assert!(text.contains("(6 runs); undecided against hystart</td>"));
    assert!(text.contains("(6 runs; undecided after the first 3 runs)"), "{text}");
    let e = &mut report.entries[0];
    (e.verdict, e.value, e.limit, e.excess, e.runs_to_decide) = (Verdict::Undecided, None, None, None, None);
    e.values = vec![None; 6];
    let text = markdown(&suite(), &report);
    assert!(text.contains("| not known: nothing was observed |"), "{text}");
    assert!(!text.contains("the median is at the limit"));
}

/// A reader has in front what is not met, and in its place where each startup comes from, what a path of a name is and what the
/// printed limit is.
#[test]
fn a_draft_has_what_a_reader_asks_first() {
    let mut report = report();
    let text = made();
    let (front_part, _) = text.split_once("What Was Run").expect("it has");
    assert!(
        front_part.contains("hybla: short-1MB (5.1.5), lost_packets &lt;= 1 standard + 5: "),
        "{front_part}"
    );
    assert!(text.contains("<dd>draft-chung-ccwg-search-"), "the source of search");
    assert!(text.contains("<name>Paths given by name</name>") && text.contains("<td>geo</td>"));
    assert!(text.contains("the value less the median excess"));
    assert!(text.contains("ends with status 1 if a criterion is not met"));
    report.startups[0] = "hystart++".into();
    report.entries.iter_mut().filter(|e| e.startup == "search").for_each(|e| e.startup = "hystart++".into());
    let text = draft(&suite(), &report, RESULT, &front()).expect("a draft");
    assert!(text.contains("<xref target=\"RFC9406\"/>") && text.contains("<reference anchor=\"RFC9406\""));
}

/// Flows of HyStart are no flows of what is judged.
#[test]
fn flows_of_another_startup_are_no_fairness_within() {
    let moved = SUITE.replace("section = \"5.2.1\"", "section = \"5.1.4\"");
    let suite = Suite::read(&moved).expect("a suite");
    let mut report = report();
    report.suite_sha256.clone_from(&suite.sha256);
    report.entries.iter_mut().filter(|e| e.section == "5.2.1").for_each(|e| e.section = "5.1.4".into());
    let text = draft(&suite, &report, RESULT, &front()).expect("a draft");
    assert!(text.contains("Fairness within one algorithm was not evaluated"));
    let (_, summary) = text.split_once("<name>Criteria by verdict</name>").expect("a summary");
    let (summary, _) = summary.split_once("</table>").expect("it ends");
    assert!(summary.contains("<td>5.1.5</td>") && !summary.contains("<td>5.1.4</td>"), "{summary}");
    // The sentences in front count what the summary counts.
    for startup in &report.startups {
        let own = report.entries.iter().filter(|e| e.startup == *startup);
        let (of_section, others): (Vec<_>, Vec<_>) = own.partition(|e| e.section == "5.1.4");
        assert!(!of_section.is_empty());
        assert!(text.contains(&format!(" of {} criteria", others.len())), "{startup}");
    }
}

/// A control character of a foreign result is no XML.
#[test]
fn foreign_bytes_make_no_bad_xml() {
    let mut report = report();
    report.notes = vec!["a\u{1}b\0c ]]> <x>&amp;\u{ffff}".into()];
    report.command.push("\0".into());
    let text = draft(&suite(), &report, RESULT, &front()).expect("a draft");
    assert!(text.chars().all(|c| c >= ' ' || c == '\n'), "a control character");
    assert!(text.contains("<li>a\u{fffd}b\u{fffd}c ]]&gt; &lt;x&gt;&amp;amp;\u{fffd}</li>"));
}

/// A folder with the draft in the file of its name.
fn written(test: &str, text: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&dir).expect("writable");
    std::fs::write(dir.join(format!("{NAME}.xml")), text).expect("writable");
    dir
}

/// True if the program is there.
fn has(program: &str, test: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    if !there {
        println!("skipped: {test} (no {program})");
    }
    there
}

/// The text that xml2rfc makes of a draft, about which it has nothing to say.
fn rendered(dir: &Path) -> String {
    let out = Command::new("xml2rfc")
        .args(["--no-network", "--text", &format!("{NAME}.xml")])
        .current_dir(dir)
        .output()
        .expect("xml2rfc");
    let said = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && !said.contains("Warning") && !said.contains("Error"), "{said}");
    std::fs::read_to_string(dir.join(format!("{NAME}.txt"))).expect("the text")
}

/// Sections have the numbers that they have in RFC 9743.
#[test]
fn xml2rfc_accepts_it() {
    if !has("xml2rfc", "xml2rfc_accepts_it") {
        return;
    }
    let dir = written("draft-xml2rfc", &made());
    let text = rendered(&dir);
    for (section, title) in slowstart_suite::scenario::SECTIONS {
        let line = format!("{section}.  {title}");
        assert!(text.lines().any(|l| l == line), "no section {line}");
    }
    assert!(text.contains("  slowstart suite run --startup "));
    if has("idnits", "idnits on the text") {
        nits(&dir, "txt");
    }
    rendered(&written("draft-xml2rfc-stack", &of_a_stack()));
    // Nearly all references at once.
    let suite = Suite::read(include_str!("../scenarios/sources-3.toml")).expect("a suite");
    let report = of_every_startup(&suite, "prague");
    let every = draft(&suite, &report, RESULT, &front()).expect("a draft");
    let text = rendered(&written("draft-xml2rfc-every", &every));
    assert!(values(&every, "<reference anchor=\"").all(|a| text.contains(&format!("   [{a}]"))));
}

#[test]
fn idnits_finds_nothing() {
    if has("idnits", "idnits_finds_nothing") {
        nits(&written("draft-idnits", &made()), "xml");
    }
}

/// Holds the draft to idnits 3 (`npm install -g @ietf-tools/idnits`). The day of the draft is not that of the test; without a
/// network idnits knows the status of no RFC and of no other draft; and of the XML it takes the heading over both lists of
/// references, which it requires in the text, for the name of a list.
fn nits(dir: &Path, extension: &str) {
    let out = Command::new("idnits")
        .args(["--offline", "--no-progress", "--no-color", "--output", "json"])
        .arg(format!("{NAME}.{extension}"))
        .current_dir(dir)
        .output()
        .expect("idnits");
    let said = String::from_utf8_lossy(&out.stdout);
    let found: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    let nits = found["nits"].as_array().unwrap_or_else(|| panic!("{said}"));
    let expected = |code: &str| {
        code.starts_with("DOC_DATE_IN_")
            || code == "INVALID_REFERENCES_NAME" && extension == "xml"
            || ["UNDEFINED_STATUS", "UNDEFINED_STATE", "POSSIBLE_DOWNREF"].contains(&code)
    };
    let others: Vec<_> = nits.iter().filter(|n| !n["code"].as_str().is_some_and(expected)).collect();
    assert!(others.is_empty(), "{others:?}");
}
