//! The language of the scripts: parses, runs and checks one line at a time.

use crate::common::{Host, avoidance, facts, startup};
use slowstart::control::{Change, Controller, Exited};
use slowstart::param::Value;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Rate, Span};
use slowstart::view::{Facts, Growth, Handshake, HostQueue, Limit, PathMemory, Signal};

/// Runs a script. Panics at the first line whose expectation is not met.
pub(crate) fn play(script: &str) {
    let mut player = Player {
        startup: "standard".into(),
        avoidance: "reno".into(),
        facts: facts(1000, 10),
        handshake: Handshake::default(),
        rtt: Span::millis(100),
        host: None,
    };
    for (n, line) in script.lines().enumerate() {
        let text = line.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let (act, expected) = text.split_once("->").unwrap_or((text, ""));
        let seen = player.act(act.trim());
        let wrong = player.check(expected.trim(), &seen);
        assert!(wrong.is_empty(), "line {}: {}\n{}", n + 1, line.trim(), wrong.join("\n"));
    }
}

struct Player {
    startup: String,
    avoidance: String,
    facts: Facts,
    handshake: Handshake,
    rtt: Span,
    host: Option<Host>,
}

/// What happened in one line.
#[derive(Default)]
struct Seen {
    exited: Option<Exited>,
    resumed: bool,
    resend: Option<u64>,
}

impl Seen {
    /// A change, when `next` bytes had been sent.
    fn add(&mut self, c: Change, next: u64) {
        assert!(c.exited.is_none() || self.exited.is_none(), "two exits in a line");
        self.exited = self.exited.or(c.exited);
        self.resumed |= c.resumed;
        self.resend = c.resend.map(|back| next - back.0).or(self.resend);
    }
}

fn span(text: &str) -> Span {
    Span::read(text).unwrap_or_else(|| panic!("not a time: {text}"))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().ok().unwrap_or_else(|| panic!("not a number: {text}"))
}

impl Player {
    fn host(&mut self) -> &mut Host {
        if self.host.is_none() {
            let _ = self.establish();
        }
        self.host.as_mut().expect("it was established")
    }

    fn establish(&mut self) -> Change {
        let (startup, avoidance) = (startup(&self.startup), avoidance(&self.avoidance));
        self.facts.min_rtt = self.handshake.rtt;
        let (mut host, change) = Host::after(startup, avoidance, self.facts, &self.handshake);
        host.fill();
        self.host = Some(host);
        change
    }

    fn act(&mut self, text: &str) -> Seen {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let wait = words[0].strip_prefix('+').map_or(Span::ZERO, span);
        if words[0].starts_with('+') {
            words.remove(0);
        }
        // `rtt T`, `rto T` and `xN` may follow any event.
        let after = |key: &str| words.iter().position(|w| *w == key).map(|i| span(words[i + 1]));
        self.rtt = after("rtt").unwrap_or(self.rtt);
        let (rtt, rto) = (self.rtt, after("rto"));
        let times = words.iter().find_map(|w| w.strip_prefix('x')).map_or(1, number::<usize>);
        let mut seen = Seen::default();
        for _ in 0..times {
            if words == ["established"] {
                seen.add(self.establish(), 0);
            } else if !self.prepare(&words) {
                let host = self.host();
                host.wait(wait);
                for change in event(host, &words, rtt, rto) {
                    seen.add(change, host.next);
                }
                host.fill();
            }
        }
        seen
    }

    /// Lines that describe the connection.
    fn prepare(&mut self, words: &[&str]) -> bool {
        let hs = &mut self.handshake;
        let f = self.host.as_mut().map_or(&mut self.facts, |h| &mut h.facts);
        match words {
            ["startup", s] => self.startup = (*s).into(),
            ["avoidance", a] => self.avoidance = (*a).into(),
            ["iw", n] => f.iw = f.mss * number::<u64>(n),
            ["mss", n] => {
                f.mss = Bytes(number(n));
                f.min_window = f.mss;
            }
            ["gso", n] => f.gso_max = Bytes(number(n)),
            ["pacing", bits] => {
                f.pacing_on = true;
                f.pacing_rate = Some(Rate(number(bits)));
            }
            ["unsent", n] => f.unsent = Some(f.mss * number::<u64>(n)),
            ["rwnd", n] => f.rwnd = f.mss * number::<u64>(n),
            ["queue", used, limit] => {
                let (used, limit) = (f.mss * number::<u64>(used), f.mss * number::<u64>(limit));
                f.host_queue = Some(HostQueue { used, limit });
            }
            ["syn", "lost", n] => hs.syn_losses = number(n),
            ["syn", "late"] => (hs.syn_losses, hs.spurious) = (1, true),
            ["handshake", time] => hs.rtt = Some(span(time)),
            ["granted", bits] => hs.granted = Some(Rate(number(bits))),
            ["remembered", cwnd, time, bits] => {
                let cwnd = f.mss * number::<u64>(cwnd);
                hs.remembered = Some(PathMemory { cwnd, rtt: span(time), rate: Rate(number(bits)) });
            }
            ["unpaced"] => f.pacing_on = false,
            ["growth", rule] => {
                f.growth = match *rule {
                    "ack" => Growth::PerAck,
                    "rfc5681" => Growth::Segment,
                    "abc" => Growth::Abc { limit: 2 },
                    "bytes" => Growth::Bytes,
                    other => panic!("no growth rule {other}"),
                };
            }
            _ => return false,
        }
        true
    }

    fn check(&mut self, expected: &str, seen: &Seen) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut exit = None;
        let mut resumed = false;
        for item in expected.split(',').map(str::trim).filter(|i| !i.is_empty()) {
            let (key, want) = item.split_once(' ').unwrap_or((item, ""));
            let host = self.host();
            let mss = host.facts.mss.0 as f64;
            let segments = |b: Bytes| (b.0 as f64 / mss).to_string();
            let got = match key {
                "cwnd" => host.cwnd().to_string(),
                "ssthresh" => host.ssthresh().map_or("-".into(), |t| t.to_string()),
                "phase" => host.control.phase().into(),
                "exit" => {
                    exit = Some(want);
                    seen.exited.map_or("no exit", |e| e.why.name()).into()
                }
                "detected" => seen.exited.map_or("no exit".into(), |e| segments(e.detected_cwnd)),
                "left" => seen.exited.map_or("no exit".into(), |e| segments(e.exit_cwnd)),
                "out" => host.out().to_string(),
                "resend" => seen.resend.map_or("-".into(), |m| (m as f64 / mss).to_string()),
                "pace" => match host.state().pace {
                    None => "host".into(),
                    Some(Pace::Rate(r)) => r.0.to_string(),
                    Some(other) => format!("{other:?}"),
                },
                "resumed" => {
                    resumed = true;
                    (if seen.resumed { "" } else { "not resumed" }).into()
                }
                internal_value => {
                    host.internal_value(internal_value).map_or("no such value".into(), |g| g.to_string())
                }
            };
            if got != want {
                wrong.push(format!("  {key}: wanted {want}, got {got}"));
            }
        }
        if exit.is_none()
            && let Some(e) = seen.exited
        {
            wrong.push(format!("  an exit that the line does not state: {}", e.why.name()));
        }
        if seen.resumed && !resumed {
            wrong.push("  a resumption that the line does not state".into());
        }
        wrong
    }
}

fn event(host: &mut Host, words: &[&str], rtt: Span, rto: Option<Span>) -> Vec<Change> {
    let mss = host.facts.mss.0;
    vec![match words {
        ["ack", n, ..] => {
            let bytes = n.strip_suffix('b').map_or_else(|| number::<u64>(n) * mss, number);
            host.ack(bytes, Some(rtt))
        }
        ["duplicate", ..] => host.ack(0, None),
        ["round", rest @ ..] => {
            let each = rest.first().and_then(|n| n.parse().ok()).unwrap_or(1);
            return host.round(each, Span::ZERO, rtt);
        }
        ["limit", what] => {
            host.limit = match *what {
                "application" => Limit::Application,
                "peer" => Limit::Peer,
                "pacer" => Limit::Pacer,
                "window" => Limit::Window,
                other => panic!("no limit {other}"),
            };
            return Vec::new();
        }
        ["loss", n, ..] => host.lose(number(n)),
        ["ecn", ..] => host.signal(Signal::Ecn),
        ["stall", ..] => host.signal(Signal::LocalStall),
        ["timeout", ..] => host.timeout(),
        ["timer", ..] => host.timer(),
        ["recovered", ..] => host.recovered(false),
        ["undone", ..] => host.recovered(true),
        ["idle", time, ..] => host.idle(span(time), rto),
        other => panic!("no such event: {other:?}"),
    }]
}
