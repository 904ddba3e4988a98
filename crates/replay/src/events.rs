//! Events of startups in a running kernel, as written by `slowstart kernel watch --json`: one JSON object per
//! line.
//!
//! The keys are those of `Facts` in `crates/linux`. Required are `sk` (identifies a live connection),
//! `now_ns`, `kind` (`begin`, `ack`, `loss`, `timeout`, `idle`, `undo`, `end`), `acked_bytes`, `next`, `mss`
//! and `cwnd`; others are optional, and unknown keys are ignored. If the file has an event for every ACK,
//! every startup gets a prediction; otherwise the row states only when the kernel's own startup left.

use crate::analysis::{Analysis, Findings, Keep, Setup, facts};
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::limits::{Lines, MOST_LIVE};
use crate::observer::Candidate;
use crate::transfer::{Source, Transfer};
use serde::Deserialize;
use serde_json::Value;
use slowstart::units::{Bytes, Instant, Mark, Rate, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Sent, Signal};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Maximum plausible window or byte count.
const MOST: u64 = 1 << 50;

/// Maximum length of the name of a connection and of an address, which are held while the connection is live.
const LONGEST_NAME: usize = 64;

#[derive(Deserialize)]
struct Event {
    /// A number or a string; it only identifies the connection.
    sk: Value,
    now_ns: u64,
    kind: String,
    acked_bytes: u64,
    next: u64,
    mss: u64,
    cwnd: u64,
    #[serde(default)]
    pacing_rate: u64,
    #[serde(default)]
    rtt_us: u64,
    #[serde(default)]
    iw: u64,
    #[serde(default)]
    retransmitted: u64,
    #[serde(default)]
    asked: bool,
    #[serde(default)]
    limited: Option<bool>,
    #[serde(default)]
    why: String,
    #[serde(default)]
    daddr: Value,
    #[serde(default)]
    sport: u16,
    #[serde(default)]
    dport: u16,
}

/// A connection, from its events so far.
struct KernelConnection {
    analysis: Analysis,
    f: Facts,
    begin: u64,
    sent: Bytes,
    acks: u64,
    retransmitted: u64,
    /// True if its startup was called at least once.
    asked: bool,
    left: Option<ExitEstimate>,
    ends: [String; 2],
}

impl KernelConnection {
    fn new(e: &Event, candidates: &Arc<[Candidate]>, keep: Keep) -> Self {
        let mss = Bytes(e.mss);
        let iw = (e.iw > 0).then(|| mss * e.iw);
        let setup = Setup { mss, iw, gated: false, handshake: Handshake::default(), keep };
        let address = match &e.daddr {
            Value::String(a) => a.clone(),
            // In memory order, which is network byte order.
            v => Ipv4Addr::from((v.as_u64().unwrap_or(0) as u32).to_le_bytes()).to_string(),
        };
        Self {
            analysis: Analysis::new(setup, candidates),
            f: facts(mss),
            begin: e.now_ns,
            sent: Bytes::ZERO,
            acks: 0,
            retransmitted: 0,
            asked: false,
            left: None,
            ends: [format!(":{}", e.sport), format!("{address}:{}", e.dport)],
        }
    }

    fn on_event(&mut self, e: &Event) {
        let f = &mut self.f;
        f.now = f.now.max(Instant(e.now_ns.saturating_sub(self.begin)));
        let next = e.next.min(MOST);
        f.next = Mark::new(next);
        f.inflight = Bytes(next.saturating_sub(e.acked_bytes));
        f.pacing_rate = (e.pacing_rate > 0).then(|| Rate(e.pacing_rate.saturating_mul(8)));
        self.asked |= e.asked;
        self.retransmitted = self.retransmitted.max(e.retransmitted);
        if !e.why.is_empty() && e.why != "none" && self.left.is_none() {
            let cwnd = f.mss * e.cwnd.min(MOST);
            self.left = Some(ExitEstimate { at: f.now, cwnd, evidence: Evidence::Recorded });
        }
        match e.kind.as_str() {
            "ack" => self.ack(e),
            "loss" | "timeout" => {
                let signal = if e.kind == "loss" { Signal::Loss } else { Signal::Timeout };
                let first = self.analysis.first_loss().is_none();
                let c = Congestion::new(signal, first, Sent::default()).losing(f.mss, 1);
                self.analysis.loss(f, &c);
            }
            "undo" => self.analysis.undone(f),
            // Begin, idle and end only carry the time.
            _ => {}
        }
    }

    fn ack(&mut self, e: &Event) {
        let f = &mut self.f;
        self.acks += 1;
        let acked = Bytes(e.acked_bytes.min(MOST));
        let rtt = (e.rtt_us > 0).then(|| Span::micros(e.rtt_us.min(MOST / 1000)));
        if let Some(rtt) = rtt {
            f.min_rtt = Some(f.min_rtt.map_or(rtt, |m| m.min(rtt)));
            f.srtt = Some(f.srtt.map_or(rtt, |s| s - s / 8 + rtt / 8));
        }
        let newly = acked - f.delivered;
        let prior = f.inflight + newly;
        f.delivered = f.delivered.max(acked);
        // Everything sent since the previous event counts as sent now: the file has no send times.
        let new = Bytes(e.next.min(MOST)) - self.sent;
        self.sent += new;
        let sent = Sent {
            mark: f.next,
            at: f.now,
            bytes: new,
            sent_total: self.sent,
            inflight: f.inflight,
            delivered: f.delivered,
            ..Sent::default()
        };
        if let Some(log) = self.analysis.packets() {
            log.sent(&sent, e.next.min(MOST));
        }
        self.analysis.sent(f, &sent, false);
        let mut ack = Ack::new(Sent::default(), newly, prior);
        ack.upto = Mark::new(acked.0);
        ack.rtt = rtt;
        ack.limit = if e.limited == Some(false) { Limit::Application } else { Limit::Window };
        self.analysis.ack(f, &ack);
    }

    fn row(self, number: u64) -> (Transfer, Option<Findings>) {
        let exit = match self.left {
            Some(found) => Ok(found),
            None if self.asked => Err(NoExit::StillGrowing),
            None => Err(NoExit::BeganBefore),
        };
        let last = Span(self.f.now.0).as_secs_f64();
        let mut findings = self.analysis.finish(Some(exit));
        if self.acks == 0 {
            findings.startups.clear();
        }
        let mut row = Transfer::new(Source::KernelEvents, number, self.f.mss).with(&findings);
        let [from, to] = self.ends;
        (row.from, row.to) = (from, to);
        (row.packets, row.retransmitted_packets) = (Some(self.acks), Some(self.retransmitted));
        row.duration_s = last;
        row.caveats.push("the file has the times of ACKs, not of sent packets".to_string());
        if self.acks == 0 {
            row.caveats.push("the file has no ACKs: no startup can be predicted".to_string());
        }
        (row, Some(findings))
    }
}

/// The connections of a file while it is read.
struct Connections<'a> {
    candidates: &'a Arc<[Candidate]>,
    keep: Keep,
    /// Live connections by the kernel's name, with their number.
    live: BTreeMap<String, (u64, KernelConnection)>,
    begun: u64,
}

impl Connections<'_> {
    fn on_line(
        &mut self,
        number: u64,
        line: &str,
        each: &mut impl FnMut(Transfer, Option<Findings>),
    ) -> Result<(), InputError> {
        let e: Event = serde_json::from_str(line)
            .map_err(|e| InputError::line(number, format!("found no kernel event: {e}")))?;
        if !(1..=1 << 20).contains(&e.mss) {
            let why = format!("mss: found {}, expected a number of bytes from 1 to 1048576", e.mss);
            return Err(InputError::line(number, why));
        }
        let sk = e.sk.to_string();
        let address = e.daddr.as_str().unwrap_or_default();
        for (key, length) in [("sk", sk.len()), ("daddr", address.len())] {
            if length > LONGEST_NAME {
                let why = format!("{key}: found {length} bytes, expected at most {LONGEST_NAME}");
                return Err(InputError::line(number, why));
            }
        }
        // The kernel reuses the address of a closed socket.
        let begins = e.kind == "begin" || !self.live.contains_key(&sk);
        if begins {
            let oldest = || {
                let first = self.live.iter().min_by_key(|(_, c)| c.0)?;
                (self.live.len() >= MOST_LIVE).then(|| first.0.clone())
            };
            let over = if self.live.contains_key(&sk) { Some(sk.clone()) } else { oldest() };
            if let Some((n, c)) = over.and_then(|sk| self.live.remove(&sk)) {
                let (row, findings) = c.row(n);
                each(row, findings);
            }
            self.begun += 1;
            let c = KernelConnection::new(&e, self.candidates, self.keep);
            self.live.insert(sk.clone(), (self.begun, c));
        }
        if let Some((_, c)) = self.live.get_mut(&sk) {
            c.on_event(&e);
        }
        if e.kind == "end"
            && let Some((n, c)) = self.live.remove(&sk)
        {
            let (row, findings) = c.row(n);
            each(row, findings);
        }
        Ok(())
    }
}

/// Reads events: `each` gets a row for each connection. The rows are those of the lines before the first
/// invalid one.
pub fn replay(
    input: impl Read,
    candidates: &Arc<[Candidate]>,
    keep: Keep,
    mut each: impl FnMut(Transfer, Option<Findings>),
) -> Result<(), InputError> {
    let mut all = Connections { candidates, keep, live: BTreeMap::new(), begun: 0 };
    let done = Lines::new(input).try_for_each(|line| {
        let (number, line) = line?;
        if line.trim().is_empty() { Ok(()) } else { all.on_line(number, &line, &mut each) }
    });
    let mut rest: Vec<_> = all.live.into_values().collect();
    rest.sort_by_key(|c| c.0);
    for (n, c) in rest {
        let (row, findings) = c.row(n);
        each(row, findings);
    }
    done?;
    if all.begun == 0 {
        return Err(InputError::whole("found no event, expected one per line"));
    }
    Ok(())
}
