//! Plays vectors against mutants of the core, and prints the number of each with the case that finds it;
//! `-` if none does, and `unreached` if none comes to the changed expression.
//! `check VECTORS MUTANTS`; each line of the second file is a number and the file that the mutant changes.

use serde_json::Value;
use slowstart::control::{Change, Controller};
use slowstart::registry::{self, AnyController};
use slowstart::step::Pace;
use slowstart::units::{Bytes, Instant, SendOrder, Rate, Span};
use slowstart::view::{
    Ack, Congestion, Facts, Handshake, HostQueue, Limit, PathMemory, Recovery, Sent, Signal,
};
use slowstart::mutant::REACHED;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

enum Event {
    Established(Handshake),
    Sent(Sent),
    Ack(Ack),
    Congestion(Congestion),
    Recovered(Recovery),
    Timer,
    Idle(Span, Option<Span>),
}

#[derive(PartialEq)]
struct After {
    cwnd: u64,
    ssthresh: Option<u64>,
    pace: Option<Pace>,
    wake: Option<u64>,
    exit: Option<(String, u64, u64, u64)>,
    resumed: bool,
    restarted: bool,
    resend: Option<u64>,
    owns: bool,
}

struct Case {
    name: String,
    startup: String,
    avoidance: String,
    iw: u64,
    requested: Option<u64>,
    lines: Vec<(Facts, Event, After)>,
}

fn n(v: &Value) -> u64 {
    v.as_u64().unwrap_or(0)
}

fn sent(v: &Value) -> Sent {
    let s = &v["state"];
    Sent {
        mark: SendOrder::new(n(&v["mark"])),
        at: Instant(n(&v["at_ns"])),
        bytes: Bytes(n(&v["bytes"])),
        retransmission: v["retransmission"] == true,
        sent_total: Bytes(n(&s["sent_total"])),
        inflight: Bytes(n(&s["inflight"])),
        delivered: Bytes(n(&s["delivered"])),
        delivered_at: Instant(n(&s["delivered_at_ns"])),
        first_sent_at: Instant(n(&s["first_sent_at_ns"])),
        lost: Bytes(n(&s["lost"])),
        app_limited: s["app_limited"] == true,
        cwnd: Bytes(n(&s["cwnd"])),
    }
}

fn facts(k: &serde_json::Map<String, Value>) -> Facts {
    let v = |key: &str| k.get(key).and_then(Value::as_u64);
    let b = |key: &str| k.get(key) == Some(&Value::Bool(true));
    let mut f = Facts::new(Bytes(v("mss").unwrap_or(0)), Bytes(v("iw").unwrap_or(0)));
    f.now = Instant(v("now_ns").unwrap_or(0));
    f.min_window = Bytes(v("min_window").unwrap_or(0));
    f.inflight = Bytes(v("inflight").unwrap_or(0));
    f.delivered = Bytes(v("delivered").unwrap_or(0));
    f.lost = Bytes(v("lost").unwrap_or(0));
    f.marked = v("marked").map(Bytes);
    f.next = SendOrder::new(v("next").unwrap_or(0));
    f.unacked = v("unacked").map(Bytes);
    f.srtt = v("srtt_ns").map(Span);
    f.min_rtt = v("min_rtt_ns").map(Span);
    f.rwnd = v("rwnd").map_or(Bytes::MAX, Bytes);
    f.pacing_rate = v("pacing_rate_bps").map(Rate);
    f.pacing_on = b("pacing_on");
    f.gso_max = Bytes(v("gso_max").unwrap_or(0));
    f.unsent = v("unsent").map(Bytes);
    f.host_queue = k.get("host_queue").and_then(Value::as_array).map(|q| HostQueue { used: Bytes(n(&q[0])), limit: Bytes(n(&q[1])) });
    f.nic_rate = v("nic_rate_bps").map(Rate);
    f.supports_pacing = b("supports_pacing");
    f.in_recovery = b("in_recovery");
    f
}

fn event(line: &Value) -> Event {
    match line["event"].as_str().expect("an event") {
        "established" => {
            let h = &line["handshake"];
            let mut hs = Handshake::new(h["rtt_ns"].as_u64().map(Span));
            hs.syn_losses = n(&h["syn_losses"]) as u8;
            hs.spurious = h["spurious"] == true;
            hs.granted = h["granted_bps"].as_u64().map(Rate);
            let m = &h["remembered"];
            hs.remembered = m.is_object().then(|| PathMemory {
                cwnd: Bytes(n(&m["cwnd"])),
                rtt: Span(n(&m["rtt_ns"])),
                rate: Rate(n(&m["rate_bps"])),
            });
            Event::Established(hs)
        }
        "sent" => Event::Sent(sent(&line["sent"])),
        "ack" => {
            let a = &line["ack"];
            let mut ack = Ack::new(sent(&a["newest"]), Bytes(n(&a["delivered"])), Bytes(n(&a["prior_inflight"])));
            ack.upto = SendOrder::new(n(&a["upto"]));
            ack.bytes = Bytes(n(&a["bytes"]));
            ack.newly_lost = Bytes(n(&a["newly_lost"]));
            ack.rtt = a["rtt_ns"].as_u64().map(Span);
            ack.limit = match a["limit"].as_str() {
                Some("pacer") => Limit::Pacer,
                Some("application") => Limit::Application,
                Some("peer") => Limit::Peer,
                _ => Limit::Window,
            };
            Event::Ack(ack)
        }
        "congestion" => {
            let c = &line["congestion"];
            let signal = match c["signal"].as_str() {
                Some("ecn") => Signal::Ecn,
                Some("timeout") => Signal::Timeout,
                Some("local-stall") => Signal::LocalStall,
                _ => Signal::Loss,
            };
            let of = Congestion::new(signal, c["first"] == true, sent(&c["newest"]));
            Event::Congestion(of.losing(Bytes(n(&c["lost"])), n(&c["lost_ranges"]) as u32))
        }
        "recovered" => {
            let r = &line["recovery"];
            Event::Recovered(Recovery::new(Bytes(n(&r["retransmitted"])), r["undone"] == true))
        }
        "timer" => Event::Timer,
        "idle" => Event::Idle(Span(n(&line["idle"]["idle_ns"])), line["idle"]["restart_ns"].as_u64().map(Span)),
        other => panic!("no event {other}"),
    }
}

fn wanted(line: &Value) -> After {
    let pace = &line["pace"];
    let e = &line["exit"];
    After {
        cwnd: n(&line["cwnd"]),
        ssthresh: line["ssthresh"].as_u64(),
        pace: match pace {
            Value::String(_) => Some(Pace::Off),
            Value::Object(p) if p.contains_key("gain_1024ths") => {
                Some(Pace::Gain(slowstart::units::Gain(n(&pace["gain_1024ths"]) as u32)))
            }
            Value::Object(_) => Some(Pace::Rate(Rate(n(&pace["rate_bps"])))),
            _ => None,
        },
        wake: line["wake_ns"].as_u64(),
        exit: e.is_object().then(|| {
            let why = e["why"].as_str().expect("a word").to_string();
            (why, n(&e["detected_at_ns"]), n(&e["detected_cwnd"]), n(&e["cwnd"]))
        }),
        resumed: line["resumed"] == true,
        restarted: line["restarted"] == true,
        resend: line["resend"].as_u64(),
        owns: line["owns_recovery"] == true,
    }
}

fn play(c: &mut AnyController, f: &Facts, e: &Event) -> Change {
    match e {
        Event::Established(hs) => c.on_established(f, hs),
        Event::Sent(s) => {
            c.on_sent(f, s);
            Change::default()
        }
        Event::Ack(a) => c.on_ack(f, a),
        Event::Congestion(x) => c.on_congestion(f, x),
        Event::Recovered(r) => c.on_recovered(f, r),
        Event::Timer => c.on_timer(f),
        Event::Idle(idle, restart) => c.on_idle(f, *idle, *restart),
    }
}

fn matches(c: &AnyController, change: &Change, w: &After) -> bool {
    let s = c.state();
    let exit = change.exited.map(|e| (e.why.name(), e.detected_at.0, e.detected_cwnd.0, e.exit_cwnd.0));
    s.cwnd.0 == w.cwnd
        && s.ssthresh.map(|t| t.0) == w.ssthresh
        && s.pace == w.pace
        && s.wake.map(|t| t.0) == w.wake
        && exit == w.exit.as_ref().map(|e| (e.0.as_str(), e.1, e.2, e.3))
        && change.resumed == w.resumed
        && change.restarted == w.restarted
        && change.resend.map(|b| b.0) == w.resend
        && c.owns_recovery() == w.owns
}

/// True if every line of the case has the state that the vectors have.
fn passes(case: &Case) -> bool {
    let run = || {
        let algorithm = if let Some((name, rest)) = case.startup.split_once(':') {
            let mut a = registry::named(name).expect("a startup").algorithm;
            for (key, value) in rest.split(',').filter_map(|p| p.split_once('=')) {
                a.set(key, value).expect("a parameter");
            }
            a
        } else {
            registry::named(&case.startup).expect("a startup").algorithm
        };
        let avoidance = slowstart::avoidance::REGISTRY.iter().find(|e| e.name == case.avoidance).expect("it is there");
        let mut c = algorithm.controller(&(avoidance.make)(), Bytes(case.iw), 1);
        c.requested_rate().map(|r| r.0) == case.requested
            && case.lines.iter().all(|(f, e, after)| {
                let change = play(&mut c, f, e);
                matches(&c, &change, after)
            })
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or(false)
}

/// The file that defines a startup.
fn file_of(startup: &str) -> &'static str {
    let name = startup.split(':').next().unwrap_or_default();
    let table = [
        ("hystart-picoquic", "hystart_picoquic"), ("hystart++", "hystart_pp"), ("hystart", "hystart"), ("search", "search"),
        ("rapid-start", "rapid_start"), ("vegas", "vegas"), ("bbr3", "bbr/v3.rs"), ("bbr2", "bbr/v3/quiche.rs"), ("bbr", "bbr/v1.rs"),
        ("jump-start", "jump_start"), ("quick-start", "quick_start"), ("careful-resume", "careful_resume"),
        ("packet-pair", "packet_pair"), ("rate-bound", "rate_bound"),
    ];
    table.iter().find(|(from, _)| name.starts_with(from)).map_or("", |(_, file)| file)
}

/// True if a mutant in `file` may change the startup.
fn concerns(file: &str, startup: &str) -> bool {
    let name = startup.split(':').next().unwrap_or_default();
    let stem = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
    if file.contains("/bbr/") {
        return match stem {
            "v1" => name == "bbr",
            "v3" | "bounds" | "cycle" => ["bbr3", "bbr2-quiche"].contains(&name),
            "quiche" => name == "bbr2-quiche",
            _ => name.starts_with("bbr"),
        };
    }
    match stem {
        "round" | "skip" => true,
        // Startups that are made of others.
        "limited" => ["limited", "delay", "capstart"].contains(&name),
        "hystart_pp" => ["hystart++", "rapid-start", "rapid-start-00"].contains(&name),
        "hystart" => name.starts_with("hystart") || name == "suss",
        _ => {
            let of = file_of(startup);
            stem == if of.is_empty() { name } else { of }
        }
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<String> = std::env::args().collect();
    let mut cases: Vec<Case> = Vec::new();
    let mut known = serde_json::Map::new();
    let file = BufReader::new(std::fs::File::open(&args[1]).expect("vectors"));
    for line in file.lines() {
        let line: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
        if line.get("case").is_some() {
            known.clear();
            cases.push(Case {
                name: line["case"].as_str().expect("text").into(),
                startup: line["startup"].as_str().expect("text").into(),
                avoidance: line["avoidance"].as_str().expect("text").into(),
                iw: n(&line["iw"]),
                requested: line["requested_rate_bps"].as_u64(),
                lines: Vec::new(),
            });
            continue;
        }
        known.extend(line["facts"].as_object().expect("facts").clone());
        let case = cases.last_mut().expect("a case has begun");
        case.lines.push((facts(&known), event(&line), wanted(&line)));
    }
    // For each case the mutants that it reaches.
    let reach: Vec<BTreeSet<u32>> = cases
        .iter()
        .map(|case| {
            REACHED.iter().for_each(|r| r.store(false, Relaxed));
            assert!(passes(case), "{} differs without a mutant", case.startup);
            (0..).zip(REACHED.iter()).filter(|(_, r)| r.load(Relaxed)).map(|(n, _)| n).collect()
        })
        .collect();
    let mutants = std::fs::read_to_string(&args[2]).expect("mutants");
    let mut of_file: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for line in mutants.lines() {
        let (id, file) = line.split_once(' ').expect("a number and a file");
        let id: u32 = id.parse().expect("a number");
        let which = of_file
            .entry(file.into())
            .or_insert_with(|| (0..cases.len()).filter(|i| concerns(file, &cases[*i].startup)).collect());
        slowstart::mutant::ON.store(id, Relaxed);
        let (mut found, mut reached) = ("-", false);
        // The case that found the last one is likely to find the next.
        for i in 0..which.len() {
            if !reach[which[i]].contains(&id) {
                continue;
            }
            reached = true;
            slowstart::mutant::ASKED.store(0, Relaxed);
            if !passes(&cases[which[i]]) {
                found = &cases[which[i]].name;
                which[..=i].rotate_right(1);
                break;
            }
        }
        println!("{id} {}", if reached { found } else { "unreached" });
    }
}
