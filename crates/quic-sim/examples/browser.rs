//! What would Firefox see? Plays the same connections of a browser with each of its three slow starts, under
//! neqo's rule for senders that are limited by their application. Prints the tables of
//! docs/evidence/browser.md.
//!
//!     cargo run --release -p slowstart-quic-sim --example browser -- SEED CONNECTIONS

use slowstart::control::Exited;
use slowstart::units::Span;
use slowstart_league::browser::{self, Connection};
use slowstart_quic_sim::{Knobs, Quic, Session, Which, Write};
use slowstart_study::engines::{Engine as _, EngineError};
use slowstart_study::run::{Job, in_order};
use slowstart_study::scenario::StudyText;
use slowstart_study::stats;

/// neqo's slow starts, as this project names them.
const STARTUPS: [&str; 3] = ["standard", "hystart++:skip=paced", "search-neqo:skip=paced"];
/// Packets of 1,252 bytes (its default for IPv4), its rule for limited senders.
const NEQO: &str = "mtu=1252,limited=neqo";
/// A connection that is not over so long after the last pause is cut off.
const LIMIT: Span = Span::secs(600);

/// A connection with each startup.
struct Played {
    files: u32,
    sessions: Vec<Session>,
}

fn play(c: &Connection) -> Result<Played, EngineError> {
    let text = StudyText {
        path: c.path.clone(),
        startups: STARTUPS.map(String::from).into(),
        runs: Some(1),
        seed: Some(c.seed),
        ..StudyText::default()
    };
    let study = Quic::new(Which::Noq, NEQO)?.study(&text, None)?;
    let knobs = Knobs::read(Which::Noq, NEQO)?;
    let writes: Vec<Write> = c.writes.iter().map(|w| Write { wait: w.wait, bytes: w.bytes }).collect();
    let limit = LIMIT + writes.iter().fold(Span::ZERO, |sum, w| sum + w.wait);
    let sessions = (0..STARTUPS.len()).map(|contender| {
        let job = Job { contender, run: 0 };
        Ok(Which::Noq.session(&knobs, &study, job, &writes, limit)?)
    });
    Ok(Played { files: c.files, sessions: sessions.collect::<Result<_, EngineError>>()? })
}

/// True if the exit was by a rule of the startup.
fn by_rule(exit: &Exited) -> bool {
    !exit.why.by_congestion()
}

/// True if the exit came before the path was full.
fn is_early(s: &Session, exit: &Exited) -> bool {
    s.capacity.is_none_or(|at| at > exit.detected_at)
}

/// The connections of a startup.
struct Seen<'a> {
    all: Vec<&'a Session>,
    /// Those whose window grew.
    grown: Vec<&'a Session>,
}

impl<'a> Seen<'a> {
    fn of(played: &'a [Played], startup: usize) -> Self {
        let all: Vec<&Session> = played.iter().map(|p| &p.sessions[startup]).collect();
        let grown = all.iter().copied().filter(|s| !s.is_limited()).collect();
        Self { all, grown }
    }

    fn exits(&self) -> impl Iterator<Item = &Exited> {
        self.grown.iter().filter_map(|s| s.exit.as_ref())
    }
}

/// `part` of `whole` in per cent, with its 95 % interval.
fn share(part: usize, whole: usize) -> String {
    let (p, low, high) = stats::wilson(part as f64 / whole as f64, whole as f64);
    format!("{p:.2} ({low:.2} to {high:.2})")
}

/// The value at this share of the values; not a number if there are none.
fn quantile(values: &[f64], share: f64) -> f64 {
    stats::quantile(values, share).unwrap_or(f64::NAN)
}

fn row(what: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    println!("| {what} | {} |", cells.join(" | "));
}

fn heads(what: &str) {
    row(what, STARTUPS.iter().map(|s| format!("`{s}`")));
    println!("|---|{}", "--:|".repeat(STARTUPS.len()));
}

fn figures(seen: &[Seen<'_>]) {
    heads("share of connections, %");
    row("limited by their application", seen.iter().map(|s| share(s.all.len() - s.grown.len(), s.all.len())));
    row("of the others: left slow start", seen.iter().map(|s| share(s.exits().count(), s.grown.len())));
    row(
        "of these: by a rule",
        seen.iter().map(|s| share(s.exits().filter(|e| by_rule(e)).count(), s.exits().count())),
    );
    println!();
    heads("of those that grew");
    let lost = |s: &Session| 100.0 * s.counters.lost_packets as f64 / s.counters.packets as f64;
    for at in [0.90, 0.95, 0.99] {
        let cell = |s: &Seen<'_>| quantile(&s.grown.iter().map(|s| lost(s)).collect::<Vec<_>>(), at);
        row(
            &format!("packets lost, %, percentile {:.0}", 100.0 * at),
            seen.iter().map(|s| format!("{:.2}", cell(s))),
        );
    }
    for at in [0.05, 0.10, 0.25, 0.50, 0.75, 0.95] {
        let cell =
            |s: &Seen<'_>| quantile(&s.exits().map(|e| e.exit_cwnd.0 as f64 / 1e3).collect::<Vec<_>>(), at);
        row(
            &format!("ssthresh at the exit, kB, percentile {:.0}", 100.0 * at),
            seen.iter().map(|s| format!("{:.1}", cell(s))),
        );
    }
    for at in [0.05, 0.10, 0.25, 0.50, 0.75, 0.95] {
        let cell =
            |s: &Seen<'_>| quantile(&s.grown.iter().map(|s| s.window.0 as f64 / 1e3).collect::<Vec<_>>(), at);
        row(
            &format!("final window, kB, percentile {:.0}", 100.0 * at),
            seen.iter().map(|s| format!("{:.1}", cell(s))),
        );
    }
}

/// Exits by a rule, and the window that `standard` ends with on the same connection.
fn finals(played: &[Played]) {
    println!(
        "\n| startup | left by a rule | with less than `standard` ended with | with as much or more | median ratio |"
    );
    println!("|---|--:|--:|--:|--:|");
    for (i, startup) in STARTUPS.iter().enumerate().skip(1) {
        let pairs = played.iter().filter(|p| !p.sessions[i].is_limited()).filter_map(|p| {
            let exit = p.sessions[i].exit.filter(by_rule)?;
            Some(exit.exit_cwnd.0 as f64 / p.sessions[0].window.0 as f64)
        });
        let ratios: Vec<f64> = pairs.collect();
        let less = ratios.iter().filter(|r| **r < 1.0).count();
        if ratios.is_empty() {
            continue;
        }
        println!(
            "| `{startup}` | {} | {less} | {} | {:.2} |",
            ratios.len(),
            ratios.len() - less,
            quantile(&ratios, 0.5)
        );
    }
}

/// Time that the server waited for all that was written.
fn waited(s: &Session) -> f64 {
    s.took.iter().map(|t| t.as_secs_f64()).sum()
}

/// What exits by a rule cost: time and packets over those of `standard` on the same connection.
fn costs(played: &[Played]) {
    println!(
        "\n| startup | left by a rule | connections | time over `standard`, median | worst tenth | packets lost | `standard` |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    for (i, startup) in STARTUPS.iter().enumerate().skip(1) {
        for early in [true, false] {
            let chosen: Vec<&Played> = played
                .iter()
                .filter(|p| {
                    let s = &p.sessions[i];
                    !s.is_limited() && s.exit.is_some_and(|e| by_rule(&e) && is_early(s, &e) == early)
                })
                .collect();
            let over: Vec<f64> =
                chosen.iter().map(|p| waited(&p.sessions[i]) / waited(&p.sessions[0])).collect();
            let lost = |of: usize| {
                chosen.iter().map(|p| p.sessions[of].counters.lost_packets as f64).sum::<f64>()
                    / chosen.len() as f64
            };
            if chosen.is_empty() {
                continue;
            }
            let when = if early { "before the path was full" } else { "later" };
            println!(
                "| `{startup}` | {when} | {} | {:.3} | {:.3} | {:.1} | {:.1} |",
                chosen.len(),
                quantile(&over, 0.5),
                quantile(&over, 0.9),
                lost(i),
                lost(0)
            );
        }
    }
}

/// Who grew, and who left: with a file, or without.
fn deciders(played: &[Played]) {
    println!("\n| connections | all | grew | left slow start, `standard` | before the path was full |");
    println!("|---|--:|--:|--:|--:|");
    for (name, has) in [("with a file", true), ("without", false)] {
        let of: Vec<&Session> =
            played.iter().filter(|p| (p.files > 0) == has).map(|p| &p.sessions[0]).collect();
        let grown = of.iter().filter(|s| !s.is_limited());
        let left = grown.clone().filter_map(|s| Some((s, s.exit?)));
        let early = left.clone().filter(|(s, e)| is_early(s, e));
        println!("| {name} | {} | {} | {} | {} |", of.len(), grown.count(), left.count(), early.count());
    }
}

/// The path without some keys, and with another text at its end.
fn edited(path: &str, without: &[&str], with: &str) -> String {
    let kept = path.split(' ').filter(|part| without.iter().all(|key| !part.starts_with(key)));
    let mut text: Vec<&str> = kept.collect();
    text.push(with);
    text.join(" ").trim_end().to_string()
}

/// Connections with a file, over their paths and over others: what decides how they leave.
fn variants(files: &[Connection]) -> Result<(), EngineError> {
    println!(
        "\n| {} connections with a file | left, `standard` | by a rule, `hystart++` | by a rule, `search-neqo` |",
        files.len()
    );
    println!("|---|--:|--:|--:|");
    let all: [(&str, &[&str], &str); 5] = [
        ("as drawn", &[], ""),
        ("no random loss", &["loss="], ""),
        ("no Wi-Fi", &["wifi_jitter=", "ack_wifi_jitter="], ""),
        ("a queue of 1 BDP", &["queue="], "queue=1bdp"),
        ("a queue of 4 BDP", &["queue="], "queue=4bdp"),
    ];
    for (name, without, with) in all {
        let connections =
            files.iter().map(|c| Connection { path: edited(&c.path, without, with), ..c.clone() });
        let played = play_all(&connections.collect::<Vec<_>>())?;
        let seen: Vec<Seen<'_>> = (0..STARTUPS.len()).map(|i| Seen::of(&played, i)).collect();
        let rule = |s: &Seen<'_>| share(s.exits().filter(|e| by_rule(e)).count(), s.exits().count());
        let left = share(seen[0].exits().count(), seen[0].grown.len());
        println!("| {name} | {left} | {} | {} |", rule(&seen[1]), rule(&seen[2]));
    }
    Ok(())
}

/// Plays connections, in order.
fn play_all(connections: &[Connection]) -> Result<Vec<Played>, EngineError> {
    let places: Vec<usize> = (0..connections.len()).collect();
    let mut played = Vec::new();
    in_order(
        &places,
        |i| play(&connections[i]),
        |p: Result<Played, EngineError>| {
            played.push(p?);
            Ok::<(), EngineError>(())
        },
    )?;
    Ok(played)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seed, count] = args.as_slice() else {
        return Err("expected SEED CONNECTIONS".into());
    };
    let (seed, count): (u64, u32) = (seed.parse()?, count.parse()?);
    let connections: Vec<Connection> = (0..count).map(|n| browser::connection(seed, n)).collect();
    println!("{count} connections, seed {seed}\n");
    let played = play_all(&connections)?;
    let seen: Vec<Seen<'_>> = (0..STARTUPS.len()).map(|i| Seen::of(&played, i)).collect();
    figures(&seen);
    finals(&played);
    costs(&played);
    deciders(&played);
    // Files are rare, so more connections are drawn.
    let more = (0..4 * count).map(|n| browser::connection(seed, n));
    variants(&more.filter(|c| c.files > 0).collect::<Vec<_>>())?;
    Ok(())
}
