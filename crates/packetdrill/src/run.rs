//! Runs a script on a virtual clock, and compares the packets sent with those expected.

use crate::Fault;
use crate::expr::{self, Names};
use crate::host::Host;
use crate::parse::{Event, Packet, Script, What, When};
use crate::socket::Sockets;
use slowstart::units::{Instant, Span};
use slowstart_sim::path::Ecn;
use slowstart_sim::tcp::segment::{ACK, AE, CWR, ECE, FIN, PSH, RST, SYN, Segment};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// The start time of a script. It is not zero, so that timestamps are not zero.
const BEGIN: Instant = Instant(1_000_000_000);
/// Default tolerance of an event's time (that of packetdrill).
const TOLERANCE: Span = Span::micros(4000);
/// The largest file descriptor: a C `int`.
const LARGEST_FD: i64 = i32::MAX as i64;
/// The longest wait for a packet that may leave at any time.
const PATIENCE: Span = Span::secs(60);

/// A call that has not returned yet.
struct Pending {
    line: usize,
    name: String,
    args: Vec<String>,
    result: String,
    due: Instant,
    /// The time at which it returned.
    done: Option<Instant>,
}

struct Run {
    sockets: Sockets,
    names: Names,
    now: Instant,
    /// The reference of relative times.
    base: Instant,
    tolerance: Span,
    ranges: bool,
    seen: VecDeque<(Instant, Segment)>,
    pending: Option<Pending>,
    /// The first timestamp sent: its value in the script and its actual value.
    first_stamp: Option<(u32, u32)>,
    /// The last actual timestamp sent for each value in the script.
    stamps: BTreeMap<u32, u32>,
    /// The duration of one timestamp tick, if timestamps are compared.
    tick: Option<Span>,
}

/// Runs a script. `ranges` compares adjacent packets as ranges of bytes, and ignores PSH.
///
/// # Errors
/// The first event that does not hold, or that is not modelled.
pub fn run(script: &Script, ranges: bool, tolerance: Option<Span>) -> Result<(), Fault> {
    let mut r = Run {
        sockets: Sockets::new(&Host::default()),
        names: Names::new(),
        now: BEGIN,
        base: BEGIN,
        tolerance: tolerance.or(script.tolerance).unwrap_or(TOLERANCE),
        ranges,
        seen: VecDeque::new(),
        pending: None,
        first_stamp: None,
        stamps: BTreeMap::new(),
        tick: script.tick,
    };
    let mut rest = script.events.as_slice();
    while let Some(first) = rest.first() {
        let n = r.step(first, rest)?;
        rest = &rest[n..];
    }
    r.settle()
}

impl Run {
    /// Runs one event, or as many packets as form one range. Returns the number of events.
    fn step(&mut self, e: &Event, rest: &[Event]) -> Result<usize, Fault> {
        let from = self.due(&e.when, e.when.from);
        if let What::Out(p) = &e.what {
            return self.expect(e, p, rest);
        }
        let returns = self.due(&e.when, e.when.returns);
        let fault = |what| Fault::new(e.line, what);
        self.advance(from)?;
        self.base = from;
        match &e.what {
            What::Out(_) => {}
            What::In(p) => {
                let mut s = p.segment;
                if let Some((_, echo)) = &mut s.timestamp {
                    *echo = self.live(*echo);
                }
                let mut out = Vec::new();
                self.sockets.receive(self.now, &s, &mut out);
                self.collect(out);
                self.retry().map_err(fault)?;
            }
            What::Call { name, args, result } => {
                // A thread can make one call at a time.
                self.settle()?;
                if let ("socket" | "accept", Ok(fd @ 3..=LARGEST_FD)) = (name.as_str(), result.parse()) {
                    self.sockets.number(fd);
                }
                let mut out = Vec::new();
                let answer = self.sockets.call(self.now, name, args, false, &mut out).map_err(fault)?;
                self.collect(out);
                match (answer, e.when.returns) {
                    (None, None) => {
                        return Err(fault(format!("expected {name}() = {result}, but it blocks")));
                    }
                    (Some(a), None) => verify(name, result, a).map_err(fault)?,
                    (a, Some(_)) => {
                        // Its result is compared when it returns.
                        if let Some(a) = a {
                            verify(name, result, a).map_err(fault)?;
                        }
                        self.pending = Some(Pending {
                            line: e.line,
                            name: name.clone(),
                            args: args.clone(),
                            result: result.clone(),
                            due: returns,
                            done: a.map(|_| self.now),
                        });
                    }
                }
            }
            What::Code(code) => {
                self.sockets.info(self.now, &mut self.names);
                expr::run(code, &mut self.names).map_err(fault)?;
            }
            What::Shell(text) => {
                self.sockets.host().shell(text).map_err(fault)?;
                self.sockets.block();
            }
        }
        Ok(1)
    }

    fn due(&self, when: &When, time: Option<Span>) -> Instant {
        match time {
            None => self.now,
            Some(t) if when.relative => self.base + t,
            Some(t) => BEGIN + t,
        }
    }

    /// The timestamp that the endpoint sent for this value of the script.
    fn live(&self, script: u32) -> u32 {
        let near = self.first_stamp.map_or(0, |s| s.1.wrapping_sub(s.0));
        self.stamps.get(&script).copied().unwrap_or(script.wrapping_add(near))
    }

    fn collect(&mut self, out: Vec<Segment>) {
        self.seen.extend(out.into_iter().map(|s| (self.now, s)));
    }

    /// Advances the clock and runs the endpoint's timers that expire until then.
    fn advance(&mut self, to: Instant) -> Result<(), Fault> {
        while let Some(at) = self.next_timer().filter(|&t| t <= to) {
            self.fire(at)?;
        }
        self.now = self.now.max(to);
        Ok(())
    }

    fn next_timer(&self) -> Option<Instant> {
        let next = self.sockets.end.as_ref()?.deadlines().into_iter().min()?;
        (next < Instant::NEVER).then_some(next)
    }

    fn fire(&mut self, at: Instant) -> Result<(), Fault> {
        self.now = self.now.max(at);
        let mut out = Vec::new();
        self.sockets.on_timer(self.now, &mut out);
        self.collect(out);
        let line = self.pending.as_ref().map_or(0, |p| p.line);
        self.retry().map_err(|e| Fault::new(line, e))
    }

    /// Checks whether a blocking call has returned.
    fn retry(&mut self) -> Result<(), String> {
        let Some(p) = self.pending.as_mut().filter(|p| p.done.is_none()) else { return Ok(()) };
        let mut out = Vec::new();
        if let Some(answer) = self.sockets.call(self.now, &p.name, &p.args, true, &mut out)? {
            p.done = Some(self.now);
            verify(&p.name, &p.result, answer)?;
        }
        self.collect(out);
        Ok(())
    }

    /// A blocking call must return at its time, before the next call.
    fn settle(&mut self) -> Result<(), Fault> {
        let Some((due, line)) = self.pending.as_ref().map(|p| (p.due, p.line)) else { return Ok(()) };
        if self.pending.as_ref().is_some_and(|p| p.done.is_none()) {
            self.advance(due + self.tolerance)?;
        }
        let Some(p) = self.pending.take() else { return Ok(()) };
        match p.done {
            Some(at) if at <= due + self.tolerance && at + self.tolerance >= due => Ok(()),
            Some(at) => Err(Fault::new(
                line,
                format!("expected {}() to return at {}, seen at {}", p.name, clock(due), clock(at)),
            )),
            None => Err(Fault::new(
                line,
                format!("expected {}() to return at {}, but it blocks", p.name, clock(due)),
            )),
        }
    }

    /// The next packet that leaves until then, if any.
    fn next_seen(&mut self, latest: Instant) -> Result<Option<(Instant, Segment)>, Fault> {
        loop {
            if let Some(s) = self.seen.pop_front() {
                return Ok(Some(s));
            }
            match self.next_timer().filter(|&t| t <= latest) {
                Some(at) => self.fire(at)?,
                None => return Ok(None),
            }
        }
    }

    /// Compares a packet, or adjacent packets as a range.
    fn expect(&mut self, e: &Event, p: &Packet, rest: &[Event]) -> Result<usize, Fault> {
        let mut want = p.segment;
        let earliest = e.when.from.map(|_| self.due(&e.when, e.when.from));
        let mut latest = self.due(&e.when, e.when.to.or(e.when.from))
            + if earliest.is_some() { Span::ZERO } else { PATIENCE };
        let mut taken = 1;
        let mut text = p.text.clone();
        if earliest.is_some() && e.when.to.is_none() {
            self.base = latest;
        }
        while self.ranges && want.len > 0 && !want.has(FIN) {
            let Some(Event { when, what: What::Out(p), .. }) = rest.get(taken) else { break };
            let s = &p.segment;
            let adjacent = s.len > 0 && s.seq == want.seq.wrapping_add(want.len) && s.ack == want.ack;
            if !adjacent || when.to.is_some() || when.from.is_none() || s.timestamp != want.timestamp {
                break;
            }
            latest = self.due(when, when.from);
            self.base = latest;
            want.len += s.len;
            want.flags |= s.flags;
            text.push_str(", ");
            text.push_str(&p.text);
            taken += 1;
        }
        let mut got: Option<(Instant, Segment)> = None;
        let say = |got: &str| Fault::new(e.line, format!("expected  {text}\n    seen  {got}"));
        loop {
            let Some((at, s)) = self.next_seen(latest + self.tolerance)? else {
                let so_far = got
                    .map_or_else(|| "nothing".to_owned(), |(_, s)| format!("{}, then nothing", describe(&s)));
                return Err(say(&format!("{so_far} by {}", clock(latest + self.tolerance))));
            };
            let early = earliest.is_some_and(|t| at + self.tolerance < t);
            if early || at > latest + self.tolerance {
                let due = earliest.unwrap_or(latest);
                return Err(say(&format!("{} at {}, not {}", describe(&s), clock(at), clock(due))));
            }
            let whole = match got {
                None => s,
                Some((_, g)) if s.seq == g.seq.wrapping_add(g.len) && s.ack == g.ack => {
                    Segment { len: g.len + s.len, flags: g.flags | s.flags, ..g }
                }
                Some((_, g)) => return Err(say(&format!("{}, then {}", describe(&g), describe(&s)))),
            };
            got = Some((at, whole));
            // A FIN may be sent in a packet of its own.
            let more = whole.len < want.len || (want.has(FIN) && !whole.has(FIN));
            if !(self.ranges && want.len > 0 && more && s.len > 0) {
                break;
            }
        }
        let Some((at, s)) = got else { return Ok(taken) };
        if e.when.from.is_none() || e.when.to.is_some() {
            self.base = at;
        }
        self.now = self.now.max(at);
        if let (Some(t), Some(l)) = (p.segment.timestamp, s.timestamp) {
            self.stamps.insert(t.0, l.0);
            let first = *self.first_stamp.get_or_insert((t.0, l.0));
            if let Some(tick) = self.tick {
                let due = tick * u64::from(t.0.wrapping_sub(first.0));
                let seen = Span::millis(u64::from(l.0.wrapping_sub(first.1)));
                if due.0.abs_diff(seen.0) > self.tolerance.0 {
                    return Err(say(&format!("{}, {} ms after the first", describe(&s), seen.0 / 1_000_000)));
                }
            }
        }
        if self.matches(p, &want, &s) { Ok(taken) } else { Err(say(&describe(&s))) }
    }

    fn matches(&self, p: &Packet, want: &Segment, s: &Segment) -> bool {
        let mask = if self.ranges { !PSH } else { !0 };
        let options = p.any_options
            || (want.blocks() == s.blocks()
                && want.mss == s.mss
                && want.scale == s.scale
                && want.sack_ok == s.sack_ok
                && want.ecn_option() == s.ecn_option()
                && want.timestamp.map(|t| t.1) == s.timestamp.map(|t| t.1));
        want.flags & mask == s.flags & mask
            && (want.seq, want.len) == (s.seq, s.len)
            && (!want.has(ACK) || want.ack == s.ack)
            && (!p.window || want.window == s.window)
            && p.codepoints.is_none_or(|c| c.contains(&s.ecn))
            && options
    }
}

fn verify(name: &str, expected: &str, answer: Result<i64, &'static str>) -> Result<(), String> {
    let mut words = expected.split_whitespace();
    let number = words.next().unwrap_or("");
    let number = match number.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    };
    let holds = match answer {
        Ok(n) => number == Some(n),
        Err(e) => number == Some(-1) && words.next() == Some(e),
    };
    let seen = answer.map_or_else(|e| format!("-1 {e}"), |n| n.to_string());
    if holds { Ok(()) } else { Err(format!("expected {name}() = {expected}\n    seen  {seen}")) }
}

fn clock(t: Instant) -> String {
    format!("{:.6}", t.since(BEGIN).as_secs_f64())
}

/// A segment in the form of a script.
fn describe(s: &Segment) -> String {
    let flags: String =
        [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (ACK, '.'), (ECE, 'E'), (CWR, 'W'), (AE, 'A')]
            .iter()
            .filter(|f| s.has(f.0))
            .map(|f| f.1)
            .collect();
    let mark = match s.ecn {
        Ecn::NotEct => "",
        Ecn::Ect0 => "[ect0] ",
        Ecn::Ect1 => "[ect1] ",
        Ecn::Ce => "[ce] ",
    };
    let mut text = format!("{mark}{flags} {}:{}({})", s.seq, s.seq.wrapping_add(s.len), s.len);
    if s.has(ACK) {
        let _ = write!(text, " ack {}", s.ack);
    }
    let _ = write!(text, " win {}", s.window);
    let mut options: Vec<String> = Vec::new();
    if s.mss > 0 {
        options.push(format!("mss {}", s.mss));
    }
    if s.sack_ok {
        options.push("sackOK".to_owned());
    }
    if let Some((value, echo)) = s.timestamp {
        options.push(format!("TS val {value} ecr {echo}"));
    }
    if let Some(scale) = s.scale {
        options.push(format!("wscale {scale}"));
    }
    if s.sacks > 0 {
        let blocks: Vec<_> = s.blocks().iter().map(|b| format!("{}:{}", b.0, b.1)).collect();
        options.push(format!("sack {}", blocks.join(" ")));
    }
    if let Some(option) = s.ecn_option() {
        let fields = ["e1b", "ceb", "e0b"].iter().zip(option.bytes).enumerate();
        let fields = fields.filter(|(i, _)| option.fields & 1 << i != 0);
        let words: Vec<_> = fields.map(|(_, (name, value))| format!("{name} {value}")).collect();
        options.push(format!("ECN {}", words.join(" ")));
    }
    if !options.is_empty() {
        let _ = write!(text, " <{}>", options.join(","));
    }
    text
}
