//! Parses a script: options, shell commands, and events with their times.

use crate::Fault;
use slowstart::units::Span;
use slowstart_sim::path::Ecn;
use slowstart_sim::tcp::accecn::EcnOption;
use slowstart_sim::tcp::segment::{ACK, AE, CWR, ECE, FIN, PSH, RST, SACK_BLOCKS, SYN, Segment};

/// The longest time that an event may give: a day, so that a script's retransmissions stay bounded.
const LONGEST: Span = Span::secs(86_400);

/// When an event is due.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// The earliest time; `None` for any time (`*`).
    pub from: Option<Span>,
    /// The latest time, of a range `a~b`.
    pub to: Option<Span>,
    /// The time at which a blocking call returns (`a...b`).
    pub returns: Option<Span>,
    /// Relative to the previous event.
    pub relative: bool,
}

/// A packet of a script. Fields that the script leaves out are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// With the sequence numbers of the script, which start at 0.
    pub segment: Segment,
    /// The script gives the window.
    pub window: bool,
    /// The ECN codepoints of which an outgoing packet must have one, if the script gives any.
    pub codepoints: Option<&'static [Ecn]>,
    /// True for `<...>`: any options are right.
    pub any_options: bool,
    /// The packet as the script has it, for messages.
    pub text: String,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A packet arrives at the host.
    In(Packet),
    /// A packet must leave.
    Out(Packet),
    /// A system call of the application, with what it returns.
    Call {
        /// Its name.
        name: String,
        /// Its arguments.
        args: Vec<String>,
        /// The expected result, with the name of the error if it must fail.
        result: String,
    },
    /// Assertions on the state of the connection, as code.
    Code(String),
    /// Shell commands, of which those for sysctls are applied.
    Shell(String),
}

/// One line of a script: when, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its line, from 1.
    pub line: usize,
    /// When it is due.
    pub when: When,
    /// What happens at that time.
    pub what: What,
}

/// A script that is read, and not yet run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The tolerance of event times, if the script sets one.
    pub tolerance: Option<Span>,
    /// The duration of one timestamp tick, if timestamps are to be compared.
    pub tick: Option<Span>,
    /// Its events, in order of time.
    pub events: Vec<Event>,
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Offsets of the line ends, so that the line number of an offset is found by binary search.
    line_ends: Vec<usize>,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, line_ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn line(&self) -> usize {
        1 + self.line_ends.partition_point(|end| *end < self.at)
    }

    fn fault(&self, what: impl Into<String>) -> Fault {
        Fault::new(self.line(), what)
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") || trimmed.starts_with('#') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.at += trimmed.find("*/").map_or(trimmed.len(), |n| n + 2);
            } else {
                return;
            }
        }
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Returns the text before `end`, and skips `end`.
    fn until(&mut self, end: &str) -> Result<&'a str, Fault> {
        let rest = self.rest();
        let n = rest.find(end).ok_or_else(|| self.fault(format!("expected `{end}`, found the end")))?;
        self.at += n + end.len();
        Ok(&rest[..n])
    }

    fn word(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let n = rest.find(|c| !of(c)).unwrap_or(rest.len());
        self.at += n;
        &rest[..n]
    }

    /// The rest of the line, without its comment.
    fn line_end(&mut self) -> &'a str {
        let line = self.word(|c| c != '\n');
        line.split("//").next().unwrap_or(line).trim()
    }

    fn time(&mut self) -> Result<Span, Fault> {
        let mut digits = self.word(|c| c.is_ascii_digit()).to_owned();
        // One point is part of the number; three points separate a range.
        if self.rest().starts_with('.') && !self.rest().starts_with("...") {
            self.at += 1;
            digits.push('.');
            digits.push_str(self.word(|c| c.is_ascii_digit()));
        }
        let (whole, part) = digits.split_once('.').unwrap_or((&digits, ""));
        let nanos = format!("{part:0<9}");
        let whole = if whole.is_empty() && !part.is_empty() { Some(0) } else { whole.parse::<u64>().ok() };
        whole
            .and_then(|s| s.checked_mul(1_000_000_000))
            .zip(nanos.get(..9).and_then(|n| n.parse::<u64>().ok()))
            .map(|(s, n)| Span(s.saturating_add(n)))
            .filter(|t| *t <= LONGEST)
            .ok_or_else(|| {
                self.fault(format!(
                    "expected a time in seconds of at most a day, found `{}`",
                    first_word(self.rest())
                ))
            })
    }

    fn spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches(' ').len();
    }

    /// Skips spaces if this token follows them.
    fn spaces_before(&mut self, token: &str) {
        if self.rest().trim_start_matches(' ').starts_with(token) {
            self.spaces();
        }
    }

    fn when(&mut self) -> Result<When, Fault> {
        let mut when = When { from: None, to: None, returns: None, relative: true };
        if self.take("*") {
            return Ok(when);
        }
        when.relative = self.take("+");
        when.from = Some(self.time()?);
        self.spaces_before("...");
        self.spaces_before("~");
        if self.take("...") {
            self.spaces();
            self.take("+");
            when.returns = Some(self.time()?);
        } else if self.take("~") {
            self.spaces();
            self.take("+");
            when.to = Some(self.time()?);
        }
        Ok(when)
    }

    fn what(&mut self) -> Result<What, Fault> {
        if self.take("%{") {
            return Ok(What::Code(self.until("}%")?.to_owned()));
        }
        if self.take("`") {
            return Ok(What::Shell(self.until("`")?.to_owned()));
        }
        if self.rest().starts_with(['<', '>']) {
            let line = self.line();
            let inward = self.take("<");
            if !inward {
                self.at += 1;
            }
            let text = self.line_end();
            let p = packet(text).map_err(|e| Fault::new(line, format!("{e} in packet `{text}`")))?;
            return Ok(if inward { What::In(p) } else { What::Out(p) });
        }
        self.call()
    }

    fn call(&mut self) -> Result<What, Fault> {
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
        if name.is_empty() || !self.take("(") {
            return Err(
                self.fault(format!("expected a packet or a call, found `{}`", first_word(self.rest())))
            );
        }
        let mut depth = 1;
        let mut args = vec![String::new()];
        for c in self.rest().chars() {
            self.at += c.len_utf8();
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            match args.last_mut() {
                Some(last) if c != ',' || depth > 1 => last.push(c),
                _ => args.push(String::new()),
            }
        }
        let args = args.iter().map(|a| a.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        self.skip();
        if depth > 0 || !self.take("=") {
            return Err(self.fault(format!("expected `= result` after {name}(...)")));
        }
        Ok(What::Call { name, args, result: self.line_end().to_owned() })
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("the end")
}

/// Parses a script.
///
/// # Errors
/// The first construct that is not in the language, with its line.
pub fn script(text: &str) -> Result<Script, Fault> {
    let mut c = Cursor::new(text);
    let mut s = Script::default();
    loop {
        c.skip();
        if c.rest().is_empty() {
            return Ok(s);
        }
        let line = c.line();
        if c.take("--") {
            let option = c.line_end();
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let micros = value.parse::<u64>().ok().filter(|&n| n < 1 << 40).map(Span::micros);
            match (key, micros) {
                ("tolerance_usecs", Some(_)) => s.tolerance = micros,
                // Zero means: do not compare.
                ("tcp_ts_tick_usecs", Some(tick)) if tick.0 < 1 << 30 => {
                    s.tick = Some(tick).filter(|t| *t > Span::ZERO);
                }
                _ => {
                    let expected = "--tolerance_usecs=N or --tcp_ts_tick_usecs=N";
                    return Err(Fault::new(line, format!("expected {expected}, found `--{option}`")));
                }
            }
            continue;
        }
        let when = if c.rest().starts_with(['`', '%']) {
            When { from: Some(Span::ZERO), to: None, returns: None, relative: true }
        } else {
            c.when()?
        };
        c.skip();
        let what = c.what()?;
        s.events.push(Event { line, when, what });
    }
}

fn number<T: std::str::FromStr>(text: Option<&str>, of: &str) -> Result<T, String> {
    let text = text.unwrap_or("the end").trim_end_matches(',');
    text.parse().map_err(|_| format!("expected {of}, found `{text}`"))
}

fn range(text: &str) -> Result<(u32, u32), String> {
    let (from, to) = text.split_once(':').ok_or_else(|| format!("expected from:to, found `{text}`"))?;
    Ok((number(Some(from), "a sequence number")?, number(Some(to), "a sequence number")?))
}

/// Parses a packet without its direction.
fn packet(text: &str) -> Result<Packet, String> {
    let mut p = Packet {
        segment: Segment::default(),
        window: false,
        codepoints: None,
        any_options: false,
        text: text.to_owned(),
    };
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => {
            let (options, _) = rest.rsplit_once('>').ok_or("expected `>`")?;
            (head, Some(options))
        }
        None => (text, None),
    };
    let mut words = head.split_whitespace().peekable();
    if let Some(mark) = words.next_if(|w| w.starts_with('[')) {
        let codepoints: &[Ecn] = match mark {
            "[noecn]" => &[Ecn::NotEct],
            "[ect0]" => &[Ecn::Ect0],
            "[ect1]" => &[Ecn::Ect1],
            "[ect01]" | "[ectN]" => &[Ecn::Ect0, Ecn::Ect1],
            "[ce]" => &[Ecn::Ce],
            _ => {
                let expected = "[noecn], [ect0], [ect1], [ect01] or [ce]";
                return Err(format!("expected {expected}, found `{mark}`"));
            }
        };
        p.codepoints = Some(codepoints);
        p.segment.ecn = codepoints[0];
    }
    for c in words.next().ok_or("expected flags")?.chars() {
        p.segment.flags |= match c {
            'S' => SYN,
            'F' => FIN,
            'R' => RST,
            'P' => PSH,
            '.' => ACK,
            'E' => ECE,
            'W' => CWR,
            'A' => AE,
            // The value of the ACE field.
            '0'..='7' => slowstart_sim::tcp::ecn::ace_flags(c as u8 - b'0'),
            _ => return Err(format!("expected flags of SFRP.EWA or a digit up to 7, found `{c}`")),
        };
    }
    let seq = words.next().ok_or("expected seq:end(length)")?;
    let (numbers, len) = seq
        .trim_end_matches(')')
        .split_once('(')
        .ok_or_else(|| format!("expected seq:end(length), found `{seq}`"))?;
    let (from, to) = range(numbers)?;
    p.segment.seq = from;
    p.segment.len = number(Some(len), "a length")?;
    if to.wrapping_sub(from) != p.segment.len {
        return Err(format!("expected {} bytes, found ({len})", to.wrapping_sub(from)));
    }
    while let Some(word) = words.next() {
        match word {
            "ack" => p.segment.ack = number(words.next(), "a number")?,
            "win" => {
                p.segment.window = number(words.next(), "a window below 65536")?;
                p.window = true;
            }
            _ => return Err(format!("expected ack or win, found `{word}`")),
        }
    }
    match options {
        Some("...") => p.any_options = true,
        Some(options) => self::options(options, &mut p.segment)?,
        None => {}
    }
    Ok(p)
}

fn options(text: &str, s: &mut Segment) -> Result<(), String> {
    let mut ecn = EcnOption::default();
    for option in text.split(',').map(str::trim).filter(|o| !o.is_empty()) {
        let mut words = option.split_whitespace();
        match words.next() {
            Some("nop" | "eol") => {}
            Some("mss") => s.mss = number(words.next(), "a size")?,
            Some("wscale") => s.scale = Some(number(words.next(), "a shift")?),
            Some("sackOK") => s.sack_ok = true,
            Some("TS") => {
                let word = words.next();
                if word != Some("val") {
                    return Err(format!("expected val, found `{}`", word.unwrap_or("the end")));
                }
                let value = number(words.next(), "a timestamp")?;
                if words.next() != Some("ecr") {
                    return Err("expected ecr".to_owned());
                }
                s.timestamp = Some((value, number(words.next(), "a timestamp")?));
            }
            Some("sack") => {
                for block in words {
                    // A fourth block does not fit beside timestamps, and is not modelled.
                    let at = usize::from(s.sacks);
                    *s.sack.get_mut(at).ok_or_else(|| format!("expected at most {SACK_BLOCKS} blocks"))? =
                        range(block)?;
                    s.sacks += 1;
                }
            }
            Some("ECN") => {
                while let Some(name) = words.next() {
                    let field = ["e1b", "ceb", "e0b"].iter().position(|n| *n == name);
                    let field = field.ok_or_else(|| format!("expected e1b, ceb or e0b, found `{name}`"))?;
                    ecn.fields |= 1 << field;
                    ecn.bytes[field] = number(words.next(), "a number of bytes")?;
                }
            }
            _ => return Err(format!("expected an option that is modelled, found `{option}`")),
        }
    }
    // After all SACK blocks, with which it shares its space.
    if ecn.fields > 0 && !s.set_ecn_option(&ecn) {
        return Err("expected fewer SACK blocks beside an ECN option".to_owned());
    }
    Ok(())
}
