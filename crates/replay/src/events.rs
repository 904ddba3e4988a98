//! Events of startups in a running kernel, as written by `slowstart kernel watch --json`: one JSON object per
//! line.
//!
//! The keys are those of `Facts` in `crates/linux`. Required are `sk` (identifies a live connection),
//! `now_ns`, `kind` (`begin`, `ack`, `loss`, `timeout`, `idle`, `undo`, `end`), `acked_bytes`, `next`, `mss`
//! and `cwnd`; others are optional, and unknown keys are ignored. If the file has an event for every ACK,
//! every startup gets a prediction; otherwise its events are samples of the connection's state, as those of `ss`, with
//! the exit of the kernel's own startup where one states it.

use crate::analysis::{Analysis, Findings, Keep, Setup, facts};
use crate::error::InputError;
use crate::infer::{Evidence, ExitEstimate, NoExit};
use crate::limits::{BoundedVec, Lines, MOST_LIVE};
use crate::observer::Candidate;
use crate::samples::{self, Sample, threshold};
use crate::transfer::{Source, Transfer};
use serde::Deserialize;
use serde_json::Value;
use slowstart::step::Exit;
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Limit, Sent, Signal};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Maximum plausible window or byte count.
const MOST: u64 = 1 << 50;

/// Maximum length of the name of a connection and of an address, which are held while the connection is live.
const LONGEST_NAME: usize = 64;

/// States kept of a connection without ACKs; of more, every second is dropped.
const STATES: usize = 1024;

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
    control: String,
    #[serde(default)]
    ssthresh: Option<u64>,
    #[serde(default)]
    srtt_us: u64,
    #[serde(default)]
    min_rtt_us: u64,
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
    control: String,
    /// True if its startup was called at least once, and if it had not ended by the newest event.
    asked: bool,
    growing: bool,
    /// Its state at events other than ACKs: every `stride`th of them.
    states: BoundedVec<Sample>,
    stride: u64,
    told: u64,
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
            control: e.control.clone(),
            asked: false,
            growing: false,
            states: BoundedVec::default(),
            stride: 1,
            told: 0,
            left: None,
            ends: [format!(":{}", e.sport), format!("{address}:{}", e.dport)],
        }
    }

    fn on_event(&mut self, e: &Event) -> Result<(), String> {
        let f = &mut self.f;
        f.now = f.now.max(Instant(e.now_ns.saturating_sub(self.begin)));
        let next = e.next.min(MOST);
        f.next = SendOrder::new(next);
        f.inflight = Bytes(next.saturating_sub(e.acked_bytes));
        f.pacing_rate = (e.pacing_rate > 0).then(|| Rate(e.pacing_rate.saturating_mul(8)));
        let rtt = |us: u64| (us > 0).then(|| Span::micros(us.min(MOST / 1000)));
        let state = Sample {
            at: f.now,
            cwnd: f.mss * e.cwnd.min(MOST),
            ssthresh: e.ssthresh.and_then(|n| threshold(n, f.mss.0)),
            rtt: rtt(e.srtt_us),
            min_rtt: rtt(e.min_rtt_us),
            delivered: Some(Bytes(e.acked_bytes.min(MOST))),
            retransmitted: Some(e.retransmitted),
            ..Sample::default()
        };
        self.asked |= e.asked;
        self.growing = e.asked && state.ssthresh.is_none();
        self.retransmitted = self.retransmitted.max(e.retransmitted);
        if !e.why.is_empty() && e.why != "none" && self.left.is_none() {
            let congestion = e.why == "cwr" || Exit::named(&e.why).is_some_and(Exit::by_congestion);
            let evidence = if congestion { Evidence::RecordedLoss } else { Evidence::Recorded };
            self.left = Some(ExitEstimate { at: f.now, cwnd: state.cwnd, evidence });
        }
        if e.kind != "ack" {
            self.keep(state, e.kind == "end")?;
        }
        let f = &mut self.f;
        match e.kind.as_str() {
            "ack" => self.ack(e),
            "loss" | "timeout" => {
                let signal = if e.kind == "loss" { Signal::Loss } else { Signal::Timeout };
                let first = self.analysis.first_loss().is_none();
                let c = Congestion::new(signal, first, Sent::default()).losing(f.mss, 1);
                self.analysis.loss(f, &c);
            }
            "undo" => self.analysis.undone(f),
            // Begin, idle, exit and end are states.
            _ => {}
        }
        Ok(())
    }

    /// Keeps a state, the last in any case.
    fn keep(&mut self, state: Sample, last: bool) -> Result<(), String> {
        self.told += 1;
        if !self.told.is_multiple_of(self.stride) && !last {
            return Ok(());
        }
        if self.states.0.len() >= STATES {
            let mut n = 0;
            self.states.0.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.stride *= 2;
        }
        self.states.push(state, "states")
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
        ack.upto = SendOrder::new(acked.0);
        ack.rtt = rtt;
        ack.limit = if e.limited == Some(false) { Limit::Application } else { Limit::Window };
        self.analysis.ack(f, &ack);
    }

    fn row(self, number: u64) -> (Transfer, Option<Findings>) {
        let exit = match self.left {
            Some(found) => Ok(found),
            None if self.growing => Err(NoExit::StillGrowing),
            // The exit itself is in none of the events.
            None if self.asked => samples::find(&self.states.0).map(|f| f.0),
            None => Err(NoExit::BeganBefore),
        };
        let (mss, states) = (self.f.mss, &self.states.0);
        let (mut row, findings) = if self.acks == 0 {
            let mut row = match self.left {
                Some(left) => samples::with_stated(Source::KernelEvents, number, mss, states, left),
                None => samples::transfer(Source::KernelEvents, number, mss, states),
            };
            row.observe(exit, row.class);
            // A stated exit is certain; of its class only the absence of one.
            row.certain =
                exit == Err(NoExit::StillGrowing) || self.left.is_some() && row.class.known().is_none();
            (row, None)
        } else {
            let findings = self.analysis.finish(Some(exit));
            let mut row = Transfer::new(Source::KernelEvents, number, mss).with(&findings);
            row.packets = Some(self.acks);
            row.caveats.push("the file has the times of ACKs, not of sent packets".to_string());
            row.bytes = row.bytes.max(states.iter().filter_map(|s| s.delivered).max().map(|b| b.0));
            (row, Some(findings))
        };
        let [from, to] = self.ends;
        (row.from, row.to) = (from, to);
        row.congestion_control = Some(self.control).filter(|c| !c.is_empty());
        row.retransmitted_packets = Some(self.retransmitted);
        row.duration_s = Span(self.f.now.0).as_secs_f64();
        (row, findings)
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
        for (key, length) in [("sk", sk.len()), ("daddr", address.len()), ("control", e.control.len())] {
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
            c.on_event(&e).map_err(|why| InputError::line(number, why))?;
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
