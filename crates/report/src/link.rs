//! The address at which the playground shows a study.

use slowstart::registry;
use slowstart::units::Span;
use slowstart_sim::app;
use slowstart_sim::engine::Direction;
use slowstart_sim::path::{Files, Links};
use slowstart_study::scenario::{CompetingFlow, Study, StudyText};
use std::fmt::Write;

/// Where the playground is, unless a host has its own.
pub const PLAYGROUND: &str = "https://slowstart.github.io/slowstart/playground/";

/// The address of the playground at `base` with the settings of `study`. `None` if an address cannot hold
/// them, since the path is in a file or has a name of its own.
pub fn playground(base: &str, study: &Study) -> Option<String> {
    let text = shortest(study)?;
    let mut out = format!("{base}#");
    for key in StudyText::KEYS {
        let mut parts = (key.parts)(&text);
        if key.name == "startups" && parts.is_empty() {
            parts.push("all".to_string());
        }
        if !parts.is_empty() {
            let sign = if out.ends_with('#') { "" } else { "&" };
            write!(out, "{sign}{}={}", key.name, encoded(&parts.join(",")))
                .expect("a String takes everything");
        }
    }
    Some(out)
}

/// A value in the form of `application/x-www-form-urlencoded`; characters that need no code in a fragment
/// stay.
fn encoded(value: &str) -> String {
    let mut out = String::new();
    for b in value.bytes() {
        match b {
            b' ' => out.push('+'),
            b if b.is_ascii_alphanumeric() || b"-_.*=,:@/".contains(&b) => out.push(b.into()),
            b => write!(out, "%{b:02X}").expect("a String takes everything"),
        }
    }
    out
}

/// What has to be written to get the same study: without what it has by default.
fn shortest(study: &Study) -> Option<StudyText> {
    let all: Vec<&str> = registry::all().map(|e| e.name).collect();
    let labels: Vec<&str> = study.contenders.iter().map(|c| c.label.as_str()).collect();
    let mut stack = study.profile_label.split(',');
    let profile = stack.next().map(String::from);
    let set = stack.filter_map(|s| s.split_once('=')).map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let mut text = StudyText {
        path: study.path.name.clone(),
        engine: None,
        startups: if labels == all { Vec::new() } else { labels.iter().map(ToString::to_string).collect() },
        avoidance: study.contenders.iter().find_map(|c| c.avoidance_name.clone()),
        size: study.size.map(|b| format!("{b}B")),
        duration: if study.size.is_none() { Some(written(study.duration)) } else { None },
        profile,
        set,
        app: Some(match study.connections {
            1 => app_name(study.app).to_string(),
            n => format!("connections:{n}"),
        }),
        against: study.against.chunk_by(|a, b| a.drawn && same(a, b)).map(flows).collect(),
        remember: Some(study.remember.text().to_string()),
        runs: Some(study.runs),
        seed: Some(study.seed),
    };
    let wanted = identity(study);
    let is_study =
        |text: &StudyText| Study::check_with(text, &Files::none()).is_ok_and(|s| identity(&s) == wanted);
    if !is_study(&text) {
        return None;
    }
    for key in StudyText::KEYS {
        let mut shorter = text.clone();
        (key.clear)(&mut shorter);
        if shorter != text && is_study(&shorter) {
            text = shorter;
        }
    }
    Some(text)
}

/// What tells two studies apart that need no file: their text without the folders in which files would be
/// looked for.
fn identity(study: &Study) -> String {
    let text = format!("{study:?}");
    let mut parts = text.split("Files { folder: ");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str(part.split_once(", given").map_or(part, |(_, rest)| rest));
    }
    out
}

/// A time in the largest unit that makes it a whole number.
fn written(time: Span) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
    let (per, unit) = units.into_iter().find(|(per, _)| time.0.is_multiple_of(*per)).unwrap_or((1, "ns"));
    format!("{}{unit}", time.0 / per)
}

fn app_name(kind: app::Kind) -> &'static str {
    match kind {
        app::Kind::Web => "web",
        app::Kind::Browser => "browser",
        app::Kind::Video { .. } => "video",
        app::Kind::Media => "media",
        _ => "bulk",
    }
}

/// True if two flows are written alike.
fn same(a: &CompetingFlow, b: &CompetingFlow) -> bool {
    b.drawn && flow(a) == flow(b)
}

/// The name and the start of a flow.
fn flow(f: &CompetingFlow) -> (String, String) {
    let name = match (app_name(f.app), f.contender.avoidance_name.as_deref()) {
        ("bulk", None | Some("cubic")) => f.contender.label.clone(),
        ("bulk", Some(avoidance)) => avoidance.to_string(),
        (app, _) => app.to_string(),
    };
    let when = if f.before > Span::ZERO { format!("-{}", written(f.before)) } else { written(f.after) };
    let up = if f.direction == Direction::Upload { "/up" } else { "" };
    let links = if f.links == Links::ALL { String::new() } else { format!("/{}", f.links) };
    let longer = if f.longer > Span::ZERO { format!("/+{}", written(f.longer)) } else { String::new() };
    (name, format!("{when}{up}{links}{longer}"))
}

/// Several equal flows that begin at random times, or one.
fn flows(all: &[CompetingFlow]) -> String {
    let (name, when) = flow(&all[0]);
    if all[0].drawn { format!("{name}*{}@{when}", all.len()) } else { format!("{name}@{when}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(toml: &str) -> Option<String> {
        let folder = std::path::Path::new("somewhere");
        let study = Study::read(toml, Some(folder)).expect("a study");
        playground("/", &study)
    }

    #[test]
    fn an_address_has_what_is_not_the_default() {
        assert_eq!(link("path = \"geo\"").as_deref(), Some("/#path=geo&startups=all"));
        let inline = "path = \"rate=5Mbit rtt=20ms queue='codel ecn'\"\nstartups = [\"search:threshold=0.3,drain=off\"]
            size = \"2MB\"\nset = { iw = \"4\" }\nruns = 3\nseed = 7\navoidance = \"reno\"";
        let inline = inline.replace('\'', "\\\"");
        let expected = "/#path=rate=5Mbit+rtt=20ms+queue=%22codel+ecn%22&startups=search:threshold=0.3,drain=off&set=iw=4\
                        &avoidance=reno&size=2000000B&runs=3&seed=7";
        assert_eq!(link(&inline).as_deref(), Some(expected));
        let flows = "path = \"dsl\"\nduration = \"5s\"\nagainst = [\"cubic@-3s\", \"reno@250ms/+9ms\", \"web*5@-10s/1\"]";
        let expected =
            "/#path=dsl&startups=all&duration=5s&against=hystart@-3s,reno@250ms/%2B9ms,web*5@-10s/1";
        assert_eq!(link(flows).as_deref(), Some(expected));
    }

    #[test]
    fn a_path_with_a_name_of_its_own_or_a_file_has_no_address() {
        assert_eq!(link("path = \"rate=5Mbit rtt=20ms name=mine\""), None);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/samples/example.down");
        assert_eq!(link(&format!("path = \"trace={file} rtt=40ms queue=1bdp\"")), None);
    }
}
