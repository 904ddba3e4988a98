//! Vectors for ports: what happens on one connection after another, event by event, and what a controller of
//! this project makes of it, so that an implementation in another language can be checked against ours.
//!
//! A case is a connection over a modelled bottleneck. It fixes the path, the host (as in TCP or as in QUIC),
//! what the host knows, how the receiver acknowledges, and what goes wrong. Every startup runs through every
//! case. Nothing is random, but for the controllers that draw (BBR), whose seed is 1.
//!
//! [`write()`] makes JSON lines, which `docs/reference/vectors.md` describes field by field.

mod by_hand;
mod calls;
mod case;
mod line;
mod own;
mod play;
mod random_cases;

use by_hand::{Hand, SCRIPTS, Script};
use calls::Calls;
use case::{CASES, Case};
use play::Play;
use random_cases::{Drawn, SEEDS};
use serde_json::{Value, json};
use slowstart::control::Controller;
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::Bytes;
use std::io::{self, Write};

/// ACKs that a case goes on for after slow start ended.
const TAIL: u32 = 40;

/// Writes the vectors of these startups, each with the name that its cases get.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(startups: &[(String, Algorithm)], out: &mut dyn Write) -> io::Result<()> {
    for (name, algorithm) in startups {
        for case in CASES {
            write_case(name, algorithm, case, out)?;
        }
        for seed in SEEDS.iter().chain(own::drawn(name)) {
            write_case(name, algorithm, &Drawn::new(*seed).case(), out)?;
        }
        for seed in own::seeds(name) {
            write_calls(name, algorithm, &Calls::new(*seed), out)?;
        }
        for script in SCRIPTS.iter().filter(|s| s.startups.contains(&own::name(name))) {
            write_script(name, algorithm, script, out)?;
        }
    }
    Ok(())
}

/// Writes the head of a case. Returns its controller.
fn begin(
    name: &str,
    algorithm: &Algorithm,
    (case, avoidance, mss, iw): (&str, &str, u64, u64),
    out: &mut dyn Write,
) -> io::Result<AnyController> {
    let iw = mss * iw;
    let known = slowstart::avoidance::REGISTRY.iter().find(|e| e.name == avoidance);
    let rules = (known.expect("the table of cases names avoidances that exist").make)();
    let control = algorithm.controller(&rules, Bytes(iw), 1);
    let head = json!({
        "case": case, "startup": name, "avoidance": avoidance, "mss": mss, "iw": iw,
        "requested_rate_bps": control.requested_rate().map(|r| r.0),
    });
    writeln!(out, "{head}")?;
    Ok(control)
}

fn end(lines: Vec<Value>, out: &mut dyn Write) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn write_case(name: &str, algorithm: &Algorithm, case: &Case, out: &mut dyn Write) -> io::Result<()> {
    let control = begin(name, algorithm, (case.name, case.avoidance, case.mss, case.iw), out)?;
    // No avoidance follows a complete controller: its rules go on after slow start.
    let whole = algorithm.is_standalone();
    let case = Case { acks: if whole { case.acks * 3 } else { case.acks }, ..*case };
    end(Play::new(&case, control, if whole { u32::MAX } else { TAIL }).run(), out)
}

fn write_calls(name: &str, algorithm: &Algorithm, calls: &Calls, out: &mut dyn Write) -> io::Result<()> {
    let control = begin(name, algorithm, (&calls.name, calls.avoidance, calls.mss, calls.iw), out)?;
    let times = if algorithm.is_standalone() { 3 } else { 1 };
    end(calls.play(control, times, algorithm.uses_path_memory()), out)
}

fn write_script(name: &str, algorithm: &Algorithm, script: &Script, out: &mut dyn Write) -> io::Result<()> {
    let control = begin(name, algorithm, (script.name, "reno", script.mss, script.iw), out)?;
    let mut hand = Hand::new(control, script.mss, script.iw);
    (script.play)(&mut hand);
    end(hand.lines(), out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::registry;
    use std::collections::BTreeSet;

    fn lines(name: &str) -> Vec<Value> {
        let algorithm = registry::named(name).expect("it is there").algorithm;
        let mut out = Vec::new();
        write(&[(name.into(), algorithm)], &mut out).expect("memory");
        let text = String::from_utf8(out).expect("JSON");
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect()
    }

    /// What the lines of a startup show of what cases may have.
    fn shown(lines: &[Value]) -> BTreeSet<String> {
        let mut shown = BTreeSet::new();
        let word = |v: &Value| v.as_str().unwrap_or_default().to_string();
        for l in lines {
            let a = &l["ack"];
            shown.extend([word(&l["event"]), word(&l["exit"]["why"]), word(&a["limit"])]);
            shown.insert(word(&l["congestion"]["signal"]));
            let facts = [
                ("selective ACK", a["bytes"].as_u64() < a["delivered"].as_u64()),
                ("retransmission", a["newest"]["retransmission"] == true),
                ("no RTT", a.is_object() && a["rtt_ns"].is_null()),
                ("stretch ACK", a["delivered"].as_u64() > Some(15_000)),
                ("larger packets", l["facts"]["mss"] == 1452),
                ("resend", l["resend"].is_u64()),
                ("resumed", l["resumed"] == true),
                ("undone", l["recovery"]["undone"] == true),
            ];
            shown.extend(facts.iter().filter(|f| f.1).map(|f| f.0.to_string()));
        }
        shown
    }

    #[test]
    fn the_cases_have_what_their_fields_say() {
        for (i, case) in CASES.iter().enumerate() {
            assert!(CASES[..i].iter().all(|c| c.name != case.name), "{} is there twice", case.name);
        }
        let names = ["search", "hystart", "hystart++", "delay", "halfback", "packet-pair", "smooth", "suss"];
        let mut all = BTreeSet::new();
        for name in names {
            let lines = lines(name);
            let heads = lines.iter().filter(|l| l.get("case").is_some()).count();
            let scripts = SCRIPTS.iter().filter(|s| s.startups.contains(&name)).count();
            let own = own::drawn(name).len() + own::seeds(name).len() + scripts;
            assert_eq!(heads, CASES.len() + SEEDS.len() + own);
            all.append(&mut shown(&lines));
        }
        let events = "established sent ack congestion recovered timer idle";
        let words =
            "window pacer application peer loss ecn timeout local-stall resend resumed undone retransmission";
        let kinds = ["selective ACK", "no RTT", "stretch ACK", "larger packets"];
        // `other` is of startups that a host defines.
        let exits = slowstart::step::Exit::ALL.iter().map(|e| e.name()).filter(|e| *e != "other");
        for wanted in events.split(' ').chain(words.split(' ')).chain(kinds).chain(exits) {
            assert!(all.contains(wanted), "no {wanted}");
        }
    }

    /// Each key that a line has is explained where the format is described.
    #[test]
    fn every_key_is_in_the_reference() {
        fn keys(of: &Value, all: &mut BTreeSet<String>) {
            match of {
                Value::Object(map) => map.iter().for_each(|(key, value)| {
                    all.insert(key.clone());
                    keys(value, all);
                }),
                Value::Array(values) => values.iter().for_each(|value| keys(value, all)),
                _ => {}
            }
        }
        let mut all = BTreeSet::new();
        for name in
            ["search", "bbr3", "careful-resume", "restricted", "rapid-start", "jump-start", "halfback"]
        {
            for line in lines(name) {
                keys(&line, &mut all);
            }
        }
        assert!(all.len() > 60, "{all:?}");
        let text = include_str!("../../../docs/reference/vectors.md");
        // Containers are told by what they hold: `handshake.syn_losses`.
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let unknown: Vec<&String> = all.iter().filter(|key| !words.contains(key.as_str())).collect();
        assert!(unknown.is_empty(), "docs/reference/vectors.md does not say what {unknown:?} are");
    }

    #[test]
    fn vectors_repeat() {
        assert_eq!(lines("bbr"), lines("bbr"));
    }

    /// The windows of the two worked examples of draft-ietf-ccwg-ratelimited-increase (version 11, section 3.1 and
    /// appendix A), in thousands of bytes.
    #[test]
    fn the_examples_of_rate_limited_increase() {
        let lines = lines("standard");
        let of = |case: &str| -> Vec<u64> {
            let from = lines.iter().position(|l| l["case"] == case).expect("it is a case") + 1;
            let own = lines[from..].iter().take_while(|l| l.get("case").is_none());
            own.filter(|l| l["event"] == "ack").filter_map(|l| Some(l["cwnd"].as_u64()? / 1000)).collect()
        };
        let grows = 11..=20;
        assert_eq!(of("rate-limited-segments"), grows.chain([20; 4]).collect::<Vec<_>>());
        let little = [12, 14, 16, 18, 20, 20, 20, 20];
        let full = (22..=40).step_by(2);
        assert_eq!(of("rate-limited-bytes"), little.into_iter().chain(full).collect::<Vec<_>>());
    }

    /// RFC 5681 by hand: each ACK of a segment earns a segment, and the first loss halves.
    #[test]
    fn standard_slow_start_by_hand() {
        let lines = lines("standard");
        let acks: Vec<u64> = lines[1..]
            .iter()
            .filter(|l| l["event"] == "ack")
            .take(20)
            .filter_map(|l| l["cwnd"].as_u64())
            .collect();
        assert_eq!(acks, (11..=30).map(|n| n * 1000).collect::<Vec<_>>());
        let loss = lines.iter().position(|l| l["exit"]["why"] == "loss").expect("a loss");
        let before = lines[loss - 1]["cwnd"].as_u64().expect("a window");
        assert_eq!(lines[loss]["cwnd"].as_u64(), Some(before / 2));
    }
}
