//! Per-ACK logs of a kernel: comma-separated values with a header of column names and one line per ACK.
//!
//! The columns are those logged by the authors of SEARCH: `now_us` since the first ACK, `bytes_acked` so far,
//! `mss`, `rtt_us`, `snd_nxt`, `sk_pacing_rate` in bytes per second, and optionally `snd_una`, `lost_pkt` and
//! `total_retrans_pkt`. For an observer to agree with Linux, a row is judged before its ACK grows the window;
//! every acknowledged byte grows it (Linux tests `tcp_is_cwnd_limited`, not the log's `app_limited`); and the
//! sender is paced, so HyStart++ has no limit L.

use crate::analysis::{Analysis, Findings, Keep, Setup, facts};
use crate::error::InputError;
use crate::limits::Lines;
use crate::observer::Candidate;
use slowstart::units::{Bytes, Instant, Rate, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts, Handshake, Sent, Signal};
use std::io::Read;
use std::sync::Arc;

/// Initial window of Linux, segments.
const IW: u64 = 10;

struct Columns {
    required: [usize; 6],
    una: Option<usize>,
    lost: [Option<usize>; 2],
}

const LOST: [&str; 2] = ["lost_pkt", "total_retrans_pkt"];
const REQUIRED: [&str; 6] = ["now_us", "bytes_acked", "mss", "rtt_us", "snd_nxt", "sk_pacing_rate"];

impl Columns {
    fn find(header: &str) -> Result<Self, InputError> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let find = |name: &str| names.iter().position(|n| *n == name);
        let mut required = [0; 6];
        for (at, name) in required.iter_mut().zip(REQUIRED) {
            *at = find(name).ok_or_else(|| {
                InputError::line(1, format!("found {header:?}, expected a column {name:?}"))
            })?;
        }
        Ok(Self { required, una: find("snd_una"), lost: LOST.map(find) })
    }
}

/// Result of reading a log.
#[derive(Clone, Debug)]
pub struct Log {
    /// What the log shows of the transfer.
    pub findings: Findings,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The number of ACKs that the log has.
    pub rows: u64,
    /// Packets that the sender sent again.
    pub retransmitted: u64,
    /// Times at which the 32-bit clock of `now_us` wrapped.
    pub wraps: u64,
    /// The error at which reading ended; the findings are those of the rows before it.
    pub incomplete: Option<InputError>,
}

/// Range of a 32-bit clock in microseconds.
const WRAP: i64 = 1 << 32;
/// Microseconds by which a row may be earlier than the row before it.
const DISORDER: i64 = 1_000_000;

/// The clock of `now_us`, which may have 32 bits, signed or unsigned.
#[derive(Default)]
struct Clock {
    last: Option<i64>,
    wraps: u64,
}

impl Clock {
    /// Returns the time without wraps; `None` if it goes back.
    fn unwrap(&mut self, us: i64) -> Option<u64> {
        let us = if us < 0 { us + WRAP } else { us };
        let mut now = us + self.wraps as i64 * WRAP;
        let last = self.last.unwrap_or(now);
        if us < WRAP && now + WRAP / 2 < last {
            self.wraps += 1;
            now += WRAP;
        }
        self.last = Some(last.max(now));
        (now + DISORDER >= last).then_some(now.max(last) as u64)
    }
}

/// A log while it is read.
struct Reader<'a> {
    columns: Columns,
    candidates: &'a Arc<[Candidate]>,
    keep: Keep,
    log: Option<(Analysis, Facts)>,
    clock: Clock,
    acked: Bytes,
    sent: Bytes,
    isn: u32,
    rows: u64,
    /// Counts of lost and of retransmitted packets so far.
    losses: [u64; 2],
}

/// Reads a log, up to the first invalid row; an error if that is the first row.
pub fn replay(input: impl Read, candidates: &Arc<[Candidate]>, keep: Keep) -> Result<Log, InputError> {
    let mut lines = Lines::new(input);
    let header = lines.next().transpose()?.map(|l| l.1).unwrap_or_default();
    let mut r = Reader {
        columns: Columns::find(header.trim_end())?,
        candidates,
        keep,
        log: None,
        clock: Clock::default(),
        acked: Bytes::ZERO,
        sent: Bytes::ZERO,
        isn: 0,
        rows: 0,
        losses: [0; 2],
    };
    let read = || {
        for line in lines {
            let (number, line) = line?;
            if !line.trim().is_empty() {
                r.on_row(number, &line)?;
            }
        }
        Ok(())
    };
    let done: Result<(), InputError> = read();
    let (rows, retransmitted, wraps) = (r.rows, r.losses[1], r.clock.wraps);
    let Some((analysis, f)) = r.log else {
        done?;
        return Err(InputError::line(2, "found no row, expected one for each acknowledgement"));
    };
    Ok(Log {
        findings: analysis.finish(None),
        mss: f.mss,
        rows,
        retransmitted,
        wraps,
        incomplete: done.err(),
    })
}

impl Reader<'_> {
    fn on_row(&mut self, number: u64, line: &str) -> Result<(), InputError> {
        let fields: Vec<&str> = line.split(',').collect();
        let real = |column: usize, name: &str| -> Result<f64, InputError> {
            let text = fields.get(column).map_or("", |f| f.trim());
            let n = text.parse::<f64>().ok().filter(|n| (-2_147_483_648.0..1e15).contains(n));
            n.ok_or_else(|| InputError::line(number, format!("{name}: found {text:?}, expected a number")))
        };
        let read = |column: usize, name: &str| -> Result<u64, InputError> {
            let n = real(column, name)?;
            let why = || InputError::line(number, format!("{name}: found \"{n}\", expected a number from 0"));
            if n < 0.0 { Err(why()) } else { Ok(n as u64) }
        };
        let mut values = [0; 6];
        for ((value, column), name) in values.iter_mut().zip(self.columns.required).zip(REQUIRED).skip(1) {
            *value = read(column, name)?;
        }
        let [_, bytes, mss, rtt, next, pacing] = values;
        let time = real(self.columns.required[0], REQUIRED[0])? as i64;
        if mss == 0 {
            return Err(InputError::line(number, "mss: found \"0\", expected a number of bytes"));
        }
        let una = self.columns.una.map(|c| read(c, "snd_una")).transpose()?;
        let mut counts = self.losses;
        for ((count, column), name) in counts.iter_mut().zip(self.columns.lost).zip(LOST) {
            if let Some(column) = column {
                *count = read(column, name)?.max(*count);
            }
        }
        let now = self.clock.unwrap(time).ok_or_else(|| {
            InputError::line(
                number,
                format!("now_us: found {time}, expected no less than in the line before"),
            )
        })?;
        if self.rows == 0 {
            // Without `snd_una`, only the initial window had been sent at the first row.
            self.isn = una.map_or(next.wrapping_sub(IW * mss), |una| una.wrapping_sub(bytes)) as u32;
        }
        // Sequence numbers wrap; no log covers 4 GB.
        let isn = self.isn;
        let offset = |seq: u64| u64::from((seq as u32).wrapping_sub(isn));
        let (una, next) = (una.map_or(bytes, offset), offset(next));
        let (analysis, f) = self.log.get_or_insert_with(|| {
            let setup = Setup {
                mss: Bytes(mss),
                iw: Some(Bytes(mss * IW)),
                gated: false,
                handshake: Handshake::default(),
                keep: self.keep,
            };
            (Analysis::new(setup, self.candidates), facts(Bytes(mss)))
        });
        self.rows += 1;
        f.now = f.now.max(Instant::ZERO + Span::micros(now));
        let rtt = Span::micros(rtt);
        f.next = SendOrder::new(next);
        f.delivered = Bytes(bytes);
        f.pacing_rate = Some(Rate(pacing.saturating_mul(8)));
        f.min_rtt = Some(f.min_rtt.map_or(rtt, |m| m.min(rtt)));
        f.srtt = Some(f.srtt.map_or(rtt, |s| s - s / 8 + rtt / 8));
        let prior = Bytes(next.saturating_sub(self.acked.0));
        let newly = Bytes(bytes) - self.acked;
        self.acked = self.acked.max(Bytes(bytes));
        f.inflight = Bytes(next.saturating_sub(una));
        let new = Bytes(next) - self.sent;
        self.sent += new;
        // Everything sent up to this row counts as sent now: the log has no send times.
        let left = Sent {
            mark: f.next,
            at: f.now,
            bytes: new,
            sent_total: self.sent,
            // As after this row's ACK; differences between rows would be wrong for logs that miss rows.
            inflight: f.inflight,
            delivered: f.delivered,
            ..Sent::default()
        };
        if let Some(log) = analysis.packets() {
            log.sent(&left, next);
        }
        analysis.sent(f, &left, false);
        // Each lost packet is retransmitted: one of the two counts is enough.
        let counted = usize::from(self.columns.lost[1].is_some());
        for (i, (before, now)) in self.losses.iter_mut().zip(counts).enumerate() {
            if now > *before {
                if let Some(log) = analysis.packets().filter(|_| i == counted) {
                    // The log counts losses; which packets they were shows when they were found, a round trip
                    // later.
                    log.lost_at(f.now - f.srtt.unwrap_or_default(), Bytes((now - *before) * mss));
                }
                *before = now;
                let first = analysis.first_loss().is_none();
                let lost = Congestion::new(Signal::Loss, first, Sent::default()).losing(f.mss, 1);
                analysis.loss(f, &lost);
            }
        }
        let mut ack = Ack::new(Sent::default(), newly, prior);
        ack.upto = SendOrder::new(una);
        ack.rtt = Some(rtt);
        analysis.ack(f, &ack);
        Ok(())
    }
}
