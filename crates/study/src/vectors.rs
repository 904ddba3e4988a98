//! Vectors for ports: what happens on one connection after another, event by event, and what a controller of
//! this project makes of it, so that an implementation in another language can be checked against ours.
//!
//! A case is a connection over a modelled bottleneck: packets of 1000 bytes, 10 Mbit/s, 50 ms, one ACK a
//! packet, packet numbers as marks. The case fixes the queue, what the host knows, and what goes wrong. Every
//! startup runs through every case. Nothing is random, but for the controllers that draw (BBR), whose seed is
//! 1.
//!
//! [`write()`] makes JSON lines. The first of a case has `case`, `startup`, `avoidance`, `mss`, `iw`. Each
//! further one is a call: `event`, `facts` (those that differ from the call before; a null is unknown), the
//! arguments under the event's own key, and the state after it: `cwnd`, `ssthresh` (null: arbitrarily high),
//! `pace`, `wake_ns`, and `exit` where the startup left. Times are nanoseconds, sizes bytes, rates bit/s.

use serde_json::{Map, Value, json};
use slowstart::control::{Change, Checked, Controller};
use slowstart::registry::{AlgorithmEntry, AnyController};
use slowstart::step::Pace;
use slowstart::units::{Bytes, Instant, Mark, Rate, Span};
use slowstart::view::{
    Ack, Congestion, Facts, Handshake, HostQueue, Limit, PathMemory, Recovery, Sent, Signal,
};
use std::collections::VecDeque;
use std::io::{self, Write};

const MSS: Bytes = Bytes(1000);
const RTT: Span = Span::millis(50);
/// A packet at 10 Mbit/s.
const EACH: Span = Span::micros(800);
/// ACKs of a case.
const ACKS: u32 = 1000;

/// What happens on one connection.
#[derive(Copy, Clone, Debug)]
struct Case {
    name: &'static str,
    /// Packets that the queue of the bottleneck holds.
    queue: u64,
    /// Packets of queue beyond which it marks and does not drop.
    marks: Option<u64>,
    /// The application has two packets a round trip until this ACK.
    little: u32,
    /// After this ACK nothing is sent for three seconds.
    pause: Option<u32>,
    /// Everything in flight at this ACK is lost, and the timer expires.
    timeout: Option<u32>,
    /// Losses prove spurious.
    spurious: bool,
    /// The host knows an earlier connection, a granted rate, what is unsent, and its interface queue.
    knows: bool,
    /// The handshake lost its first packet.
    syn_lost: bool,
}

const PLAIN: Case = Case {
    name: "deep-queue",
    queue: 1000,
    marks: None,
    little: 0,
    pause: None,
    timeout: None,
    spurious: false,
    knows: false,
    syn_lost: false,
};

const CASES: &[Case] = &[
    PLAIN,
    Case { name: "shallow-queue", queue: 20, ..PLAIN },
    Case { name: "marks", marks: Some(15), ..PLAIN },
    Case { name: "application-limited", little: 60, queue: 60, ..PLAIN },
    Case { name: "idle", pause: Some(150), ..PLAIN },
    Case { name: "timeout", timeout: Some(120), ..PLAIN },
    Case { name: "spurious-loss", queue: 20, spurious: true, ..PLAIN },
    Case { name: "known-path", queue: 60, knows: true, ..PLAIN },
    Case { name: "lost-syn", queue: 60, syn_lost: true, ..PLAIN },
];

/// Writes the vectors of these startups.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(startups: &[AlgorithmEntry], out: &mut dyn Write) -> io::Result<()> {
    let avoidance = &slowstart::avoidance::REGISTRY[1];
    for s in startups {
        for case in CASES {
            let head = json!({
                "case": case.name, "startup": s.name, "avoidance": avoidance.name, "mss": MSS.0, "iw": MSS.0 * 10,
            });
            writeln!(out, "{head}")?;
            let control = s.algorithm.controller(&(avoidance.make)(), MSS * 10, 1);
            for line in Play::new(*case, control).run() {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(())
}

fn facts(f: &Facts, next: u64) -> Map<String, Value> {
    let Value::Object(all) = json!({
        "now_ns": f.now.0, "mss": f.mss.0, "iw": f.iw.0, "min_window": f.min_window.0, "inflight": f.inflight.0,
        "delivered": f.delivered.0, "lost": f.lost.0, "marked": f.marked.map(|b| b.0), "next": next,
        "srtt_ns": f.srtt.map(|t| t.0), "min_rtt_ns": f.min_rtt.map(|t| t.0), "unsent": f.unsent.map(|b| b.0),
        "host_queue": f.host_queue.map(|q| [q.used.0, q.limit.0]), "supports_pacing": f.supports_pacing,
        "in_recovery": f.in_recovery,
    }) else {
        unreachable!("it is an object")
    };
    all
}

/// The number of a packet, which is its mark; 0 for none.
fn number(s: &Sent) -> u64 {
    s.sent_total.units(MSS)
}

fn sent(s: &Sent) -> Value {
    json!({
        "mark": number(s), "at_ns": s.at.0, "bytes": s.bytes.0, "retransmission": s.retransmission,
        "sent_total": s.sent_total.0, "inflight": s.inflight.0, "delivered": s.delivered.0,
        "delivered_at_ns": s.delivered_at.0, "first_sent_at_ns": s.first_sent_at.0, "lost": s.lost.0,
        "app_limited": s.app_limited, "cwnd": s.cwnd.0,
    })
}

fn pace(p: Pace) -> Value {
    match p {
        Pace::Off => json!("off"),
        Pace::Gain(gain) => json!({"gain_1024ths": gain.0}),
        Pace::Rate(rate) => json!({"rate_bps": rate.0}),
        _ => Value::Null,
    }
}

/// A packet on its way: when it was sent, and when its ACK arrives unless it was dropped.
struct Packet {
    sent: Sent,
    arrival: Option<Instant>,
    marked: bool,
}

struct Play {
    case: Case,
    control: Checked<AnyController>,
    f: Facts,
    before: Map<String, Value>,
    flight: VecDeque<Packet>,
    free: Instant,
    total: Bytes,
    /// Packets sent, which are their marks.
    number: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    newest: Sent,
    /// The end of the loss episode that lasts.
    episode: Option<Mark>,
    lines: Vec<Value>,
}

impl Play {
    fn new(case: Case, control: AnyController) -> Self {
        let mut f = Facts::new(MSS, MSS * 10);
        f.supports_pacing = true;
        f.marked = Some(Bytes::ZERO);
        if case.knows {
            f.unsent = Some(MSS * 2000);
            f.host_queue = Some(HostQueue { used: Bytes::ZERO, limit: MSS * 100 });
        }
        Self {
            case,
            control: Checked::new(control),
            f,
            before: Map::new(),
            flight: VecDeque::new(),
            free: Instant::ZERO,
            total: Bytes::ZERO,
            number: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            newest: Sent::default(),
            episode: None,
            lines: Vec::new(),
        }
    }

    fn note(&mut self, event: &str, key: &str, argument: Value, change: Change) {
        let now = facts(&self.f, self.number);
        let differs = now.iter().filter(|(k, v)| self.before.get(*k) != Some(v));
        let changed: Map<String, Value> = differs.map(|(k, v)| (k.clone(), v.clone())).collect();
        let state = self.control.state();
        let mut line = json!({
            "event": event, "facts": changed, "cwnd": state.cwnd.0, "ssthresh": state.ssthresh.map(|t| t.0),
            "pace": state.pace.map(pace), "wake_ns": state.wake.map(|t| t.0),
        });
        line[key] = argument;
        if let Some(e) = change.exited {
            line["exit"] =
                json!({"why": e.why.name(), "detected_cwnd": e.detected_cwnd.0, "cwnd": e.exit_cwnd.0});
        }
        if change.resumed {
            line["resumed"] = json!(true);
        }
        if change.restarted {
            line["restarted"] = json!(true);
        }
        self.before = now;
        self.lines.push(line);
    }

    fn run(mut self) -> Vec<Value> {
        self.establish();
        for n in 0..ACKS {
            self.fill(n);
            self.timer();
            let Some(at) = self.flight.iter().position(|p| p.arrival.is_some()) else { break };
            self.acknowledge(at, n);
            if self.case.timeout == Some(n) {
                self.time_out();
            }
            if self.case.pause == Some(n) {
                self.pause(n);
            }
        }
        self.lines
    }

    fn establish(&mut self) {
        let mut hs = Handshake::new(Some(RTT));
        if self.case.syn_lost {
            hs = Handshake::new(None);
            hs.syn_losses = 1;
        }
        if self.case.knows {
            hs.granted = Some(Rate(8_000_000));
            hs.remembered = Some(PathMemory { cwnd: MSS * 60, rtt: RTT, rate: Rate(9_600_000) });
        }
        let change = self.control.on_established(&self.f, &hs);
        let remembered =
            hs.remembered.map(|m| json!({"cwnd": m.cwnd.0, "rtt_ns": m.rtt.0, "rate_bps": m.rate.0}));
        let argument = json!({
            "syn_losses": hs.syn_losses, "spurious": hs.spurious, "rtt_ns": hs.rtt.map(|t| t.0),
            "granted_bps": hs.granted.map(|r| r.0), "remembered": remembered,
        });
        self.note("established", "handshake", argument, change);
    }

    fn fill(&mut self, n: u32) {
        let most = if n < self.case.little { MSS * 2 } else { Bytes::MAX };
        while self.f.inflight + MSS <= self.control.state().cwnd.min(most) {
            self.number += 1;
            self.f.next = Mark::new(self.number);
            self.f.inflight += MSS;
            self.total += MSS;
            self.f.unsent = self.f.unsent.map(|u| u - MSS);
            if self.f.inflight == MSS {
                (self.delivered_at, self.first_sent_at) = (self.f.now, self.f.now);
            }
            let sent_now = Sent {
                mark: self.f.next,
                at: self.f.now,
                bytes: MSS,
                retransmission: false,
                sent_total: self.total,
                inflight: self.f.inflight,
                delivered: self.f.delivered,
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                lost: self.f.lost,
                app_limited: n < self.case.little,
                cwnd: self.control.state().cwnd,
            };
            let begins = self.free.max(self.f.now);
            let waiting = begins.since(self.f.now).0 / EACH.0;
            let dropped = waiting >= self.case.queue;
            if !dropped {
                self.free = begins + EACH;
            }
            self.flight.push_back(Packet {
                sent: sent_now,
                arrival: (!dropped).then(|| self.free + RTT),
                marked: self.case.marks.is_some_and(|m| waiting > m),
            });
            if self.control.needs_on_sent() {
                self.control.on_sent(&self.f, &sent_now);
                self.note("sent", "sent", sent(&sent_now), Change::default());
            }
        }
    }

    fn timer(&mut self) {
        let next = self.flight.iter().find_map(|p| p.arrival);
        while let Some(at) = self.control.state().wake.filter(|at| next.is_none_or(|n| *at <= n)) {
            self.f.now = self.f.now.max(at);
            let change = self.control.on_timer(&self.f);
            self.note("timer", "timer", Value::Null, change);
        }
    }

    fn acknowledge(&mut self, at: usize, n: u32) {
        let Some(p) = self.flight.remove(at) else { return };
        let prior = self.f.inflight;
        self.f.now = self.f.now.max(p.arrival.unwrap_or(self.f.now));
        self.f.inflight -= MSS;
        self.f.delivered += MSS;
        self.delivered_at = self.f.now;
        self.first_sent_at = p.sent.at;
        self.newest = p.sent;
        let rtt = self.f.now.since(p.sent.at);
        self.f.min_rtt = Some(self.f.min_rtt.map_or(rtt, |m| m.min(rtt)));
        self.f.srtt = Some(self.f.srtt.map_or(rtt, |s| s.scale(7, 8) + rtt / 8));
        if p.marked {
            self.f.marked = self.f.marked.map(|m| m + MSS);
        }
        if self.episode.is_some_and(|end| p.sent.mark > end) {
            self.recovered(false);
        }
        // The packet threshold of RFC 9002: three later packets have been acknowledged.
        let lost = self.flight.iter().take_while(|l| number(&l.sent) + 3 <= number(&p.sent)).count();
        let lost_bytes: Bytes = self.flight.drain(..lost).map(|l| l.sent.bytes).sum();
        if lost > 0 {
            self.f.inflight -= lost_bytes;
            self.f.lost += lost_bytes;
            self.congestion(Signal::Loss, lost_bytes);
        } else if p.marked && self.episode.is_none() {
            self.congestion(Signal::Ecn, Bytes::ZERO);
        }
        let mut ack = Ack::new(p.sent, MSS, prior);
        (ack.newly_lost, ack.rtt) = (lost_bytes, Some(rtt));
        ack.limit = if n < self.case.little { Limit::Application } else { Limit::Window };
        let change = self.control.on_ack(&self.f, &ack);
        let argument = json!({
            "upto": number(&p.sent), "bytes": ack.bytes.0, "delivered": ack.delivered.0, "newly_lost": ack.newly_lost.0,
            "prior_inflight": ack.prior_inflight.0, "rtt_ns": rtt.0, "newest": sent(&p.sent),
            "limit": if n < self.case.little { "application" } else { "window" },
        });
        self.note("ack", "ack", argument, change);
        if self.case.spurious && lost > 0 {
            self.recovered(true);
        }
    }

    fn congestion(&mut self, signal: Signal, lost: Bytes) {
        let first = self.episode.is_none();
        self.episode.get_or_insert(self.f.next);
        self.f.in_recovery = signal != Signal::Timeout;
        let c = Congestion::new(signal, first, self.newest).losing(lost, u32::from(lost.0 > 0));
        let change = self.control.on_congestion(&self.f, &c);
        let signal = match signal {
            Signal::Ecn => "ecn",
            Signal::Timeout => "timeout",
            _ => "loss",
        };
        let argument = json!({
            "signal": signal, "first": first, "lost": lost.0, "lost_ranges": c.lost_ranges, "newest": sent(&c.newest),
        });
        self.note("congestion", "congestion", argument, change);
    }

    fn recovered(&mut self, undone: bool) {
        self.episode = None;
        self.f.in_recovery = false;
        let r = Recovery::new(Bytes::ZERO, undone);
        let change = self.control.on_recovered(&self.f, &r);
        self.note("recovered", "recovery", json!({"retransmitted": 0, "undone": undone}), change);
    }

    fn time_out(&mut self) {
        let lost = std::mem::take(&mut self.f.inflight);
        self.flight.clear();
        self.f.lost += lost;
        self.f.now = self.f.now + Span::millis(300);
        self.free = self.f.now;
        self.congestion(Signal::Timeout, lost);
    }

    /// All in flight is acknowledged, the application pauses, and begins again.
    fn pause(&mut self, n: u32) {
        while let Some(at) = self.flight.iter().position(|p| p.arrival.is_some()) {
            self.acknowledge(at, n);
        }
        let idle = Span::secs(3);
        self.f.now = self.f.now + idle;
        if self.f.inflight > Bytes::ZERO {
            return;
        }
        let restart = Some(Span::millis(300));
        let change = self.control.on_idle(&self.f, idle, restart);
        let argument = json!({"idle_ns": idle.0, "restart_ns": restart.map(|t| t.0)});
        self.note("idle", "idle", argument, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::registry;

    /// Every case has what its name says, and the vectors are the same each time.
    #[test]
    fn every_startup_has_every_case_and_it_repeats() {
        let all: Vec<AlgorithmEntry> = registry::all().collect();
        let text = || {
            let mut out = Vec::new();
            write(&all, &mut out).expect("memory");
            String::from_utf8(out).expect("JSON")
        };
        let one = text();
        assert_eq!(one, text());
        let lines: Vec<Value> = one.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        let heads = lines.iter().filter(|l| l.get("case").is_some()).count();
        assert_eq!(heads, all.len() * CASES.len());
        let has = |event: &str| lines.iter().any(|l| l["event"] == event);
        for event in ["established", "sent", "ack", "congestion", "recovered", "timer", "idle"] {
            assert!(has(event), "{event}");
        }
        for why in ["loss", "ecn", "timeout", "delay", "rate-flat", "ack-train", "css-rounds"] {
            assert!(lines.iter().any(|l| l["exit"]["why"] == why), "no exit by {why}");
        }
    }

    /// RFC 5681 by hand: each ACK of a segment earns a segment, and the first loss halves.
    #[test]
    fn standard_slow_start_by_hand() {
        let standard = registry::named("standard").expect("it is there");
        let mut out = Vec::new();
        write(&[standard], &mut out).expect("memory");
        let text = String::from_utf8(out).expect("JSON");
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
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
