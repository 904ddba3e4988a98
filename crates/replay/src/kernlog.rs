//! Per-ACK logs of a kernel: comma-separated values with a header of column names and one line per ACK.
//! || The columns are those logged by the authors of SEARCH: `now_us` since the first ACK, `bytes_acked` so far,
//! `mss`, `rtt_us`, `snd_nxt`, `sk_pacing_rate` in bytes per second, and optionally `snd_una`, `lost_pkt` and
//! `total_retrans_pkt`. For an observer to agree with Linux, a row is judged before its ACK grows the window; every
//! acknowledged byte grows it (Linux tests `tcp_is_cwnd_limited`, not the log's `app_limited`); and the sender is
//! paced, so HyStart++ has no limit L.

use crate::analysis::{Analysis, Findings, Setup, facts};
use crate::error::InputError;
use crate::observer::Candidate;
use slowstart::units::{Bytes, Instant, Mark, Rate, Span};
use slowstart::view::{Ack, Congestion, Handshake, Limit, Sent, Signal};
use std::sync::Arc;

/// Initial window of Linux, segments.
const IW: u64 = 10;

struct Columns {
    required: [usize; 6],
    una: Option<usize>,
    lost: [Option<usize>; 2],
}

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
        Ok(Self { required, una: find("snd_una"), lost: [find("lost_pkt"), find("total_retrans_pkt")] })
    }
}

/// Result of reading a log.
#[derive(Clone, Debug)]
pub struct Log {
    /// The findings.
    pub findings: Findings,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Number of ACKs.
    pub rows: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
}

/// Reads a log.
pub fn replay(text: &str, candidates: &Arc<[Candidate]>, snapshots: bool) -> Result<Log, InputError> {
    let mut lines = text.lines();
    let columns = Columns::find(lines.next().unwrap_or_default())?;
    let mut log: Option<(Analysis, slowstart::view::Facts)> = None;
    let (mut acked, mut sent, mut isn, mut rows, mut losses) = (Bytes::ZERO, Bytes::ZERO, 0, 0, [0; 2]);
    for (i, line) in lines.enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let number = i as u64 + 2;
        let fields: Vec<&str> = line.split(',').collect();
        let read = |column: usize, name: &str| -> Result<u64, InputError> {
            let text = fields.get(column).map_or("", |f| f.trim());
            let n = text.parse::<f64>().ok().filter(|n| *n >= 0.0 && *n < 1e15);
            n.map(|n| n as u64)
                .ok_or_else(|| InputError::line(number, format!("{name}: found {text:?}, expected a number")))
        };
        let mut values = [0; 6];
        for ((value, column), name) in values.iter_mut().zip(columns.required).zip(REQUIRED) {
            *value = read(column, name)?;
        }
        let [now, bytes, mss, rtt, next, pacing] = values;
        if mss == 0 {
            return Err(InputError::line(number, "mss: found \"0\", expected a number of bytes"));
        }
        let una = columns.una.map(|c| read(c, "snd_una")).transpose()?;
        if rows == 0 {
            // Without `snd_una`, only the initial window had been sent at the first row.
            isn = una.map_or(next.wrapping_sub(IW * mss), |una| una.wrapping_sub(bytes)) as u32;
        }
        // Sequence numbers wrap; no log covers 4 GB.
        let mark = |seq: u64| Mark(u64::from((seq as u32).wrapping_sub(isn)));
        let (una, next) = (una.map_or(Mark(bytes), mark), mark(next));
        let (analysis, f) = log.get_or_insert_with(|| {
            let setup = Setup {
                mss: Bytes(mss),
                iw: Some(Bytes(mss * IW)),
                gated: false,
                handshake: Handshake::default(),
                snapshots,
                fork_states: false,
            };
            (Analysis::new(setup, candidates), facts(Bytes(mss)))
        });
        rows += 1;
        f.now = f.now.max(Instant::ZERO + Span::micros(now));
        let rtt = Span::micros(rtt);
        f.next = next;
        f.delivered = Bytes(bytes);
        f.pacing_rate = Some(Rate(pacing.saturating_mul(8)));
        f.min_rtt = Some(f.min_rtt.map_or(rtt, |m| m.min(rtt)));
        f.srtt = Some(f.srtt.map_or(rtt, |s| s - s / 8 + rtt / 8));
        let prior = Bytes(next.0.saturating_sub(acked.0));
        let newly = Bytes(bytes) - acked;
        acked = acked.max(Bytes(bytes));
        f.inflight = Bytes(next.0.saturating_sub(una.0));
        let new = Bytes(next.0) - sent;
        sent += new;
        // Everything sent up to this row counts as sent now: the log has no send times.
        let left = Sent {
            mark: next,
            at: f.now,
            bytes: new,
            sent_total: sent,
            // As after this row's ACK; differences between rows would be wrong for logs that miss rows.
            inflight: f.inflight,
            delivered: f.delivered,
            ..Sent::default()
        };
        analysis.sent(f, &left, false);
        for (counted, column) in losses.iter_mut().zip(columns.lost) {
            let Some(column) = column else { continue };
            let n = read(column, "lost_pkt or total_retrans_pkt")?;
            if n > *counted {
                *counted = n;
                let lost = Congestion {
                    signal: Signal::Loss,
                    first: analysis.first_loss().is_none(),
                    lost: f.mss,
                    lost_ranges: 1,
                    newest: Sent::default(),
                };
                analysis.loss(f, &lost);
            }
        }
        let ack = Ack {
            upto: una,
            bytes: newly,
            delivered: newly,
            newly_lost: Bytes::ZERO,
            prior_inflight: prior,
            rtt: Some(rtt),
            newest: Sent::default(),
            limit: Limit::Window,
        };
        analysis.ack(f, &ack);
    }
    let (analysis, f) =
        log.ok_or_else(|| InputError::line(2, "found no row, expected one for each acknowledgement"))?;
    Ok(Log { findings: analysis.finish(None), mss: f.mss, rows, retransmitted: losses[1] })
}
