//! Analyses a file of any supported kind.

use crate::analysis::{Findings, Keep};
use crate::capture::{self, Counts, Packet};
use crate::connection::{BACK, Config, Connection};
use crate::error::{InputError, ReplayError};
use crate::observer::Candidate;
use crate::open::{self, Kind};
use crate::samples::Series;
use crate::table::Table;
use crate::transfer::{self, Source, Transfer};
use crate::{events, flent, iperf, kernlog, mlab, netlog, probe, qlog, samples, ss};
use std::path::Path;
use std::sync::Arc;

/// What to compute, and for which transfers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The startups whose behaviour is predicted.
    pub candidates: Arc<[Candidate]>,
    /// What is kept of each connection besides its row.
    pub keep: Keep,
    /// Numbers of the connections to report; empty: all.
    pub connections: Vec<u64>,
    /// Transfers of fewer bytes are left out.
    pub min_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { candidates: Arc::new([]), keep: Keep::default(), connections: Vec::new(), min_bytes: 0 }
    }
}

impl Options {
    fn wants(&self, t: &Transfer) -> bool {
        t.bytes.is_none_or(|b| b >= self.min_bytes)
            && (self.connections.is_empty() || self.connections.contains(&t.connection))
    }
}

/// A transfer, with its findings if the file has events and anything is to be kept.
#[derive(Clone, Debug)]
pub struct AnalysedTransfer {
    /// The transfer as programs get it.
    pub row: Transfer,
    /// What its packets and ACKs show; `None` if the file has none.
    pub findings: Option<Findings>,
    /// The samples of its window and of what was delivered, if the file has such from the begin of the transfer
    /// on, and packets are to be kept.
    pub samples: Option<Series>,
}

/// What a file contained.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What the file is.
    pub kind: Kind,
    /// Number of transfers reported.
    pub transfers: u64,
    /// Number of connections in a capture, with data or without.
    pub connections: u64,
    /// Number of transfers left out.
    pub left_out: u64,
    /// Packet counts of a capture.
    pub counts: Counts,
    /// The error at which reading ended; the transfers are those of the part before it.
    pub incomplete: Option<InputError>,
}

/// The transfers of a file.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the file contained.
    pub summary: Summary,
    /// Its transfers, by the number of their connection.
    pub transfers: Vec<AnalysedTransfer>,
}

/// The newest time of each interface of a capture, in nanoseconds since 1970.
#[derive(Default)]
struct Clocks {
    newest: Vec<u64>,
    /// The first time that goes back.
    step: Option<InputError>,
}

impl Clocks {
    fn on_packet(&mut self, p: &Packet, offset: u64) {
        let i = p.interface as usize;
        if i >= self.newest.len() {
            self.newest.resize(i + 1, 0);
        }
        if p.at.saturating_add(BACK) < self.newest[i] && self.step.is_none() {
            let by = (self.newest[i] - p.at) as f64 / 1e9;
            self.step = Some(InputError::at(offset, format!("the clock goes back by {by:.3} s")));
        }
        self.newest[i] = self.newest[i].max(p.at);
    }
}

/// Analyses a file and returns all of its transfers. `progress` gets the number of bytes of a capture read so
/// far, decompressed.
pub fn replay(file: &Path, options: &Options, progress: impl FnMut(u64)) -> Result<Report, ReplayError> {
    let name = |why| ReplayError { file: file.to_path_buf(), why };
    let (kind, input) = open::open(file).map_err(name)?;
    read(kind, input, options, progress).map_err(name)
}

/// Analyses a stream of a kind and returns all of its transfers.
pub fn read(
    kind: Kind,
    input: open::Input,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Report, InputError> {
    let mut transfers = Vec::new();
    let summary = stream(kind, input, options, &mut |t| transfers.push(t), &mut progress)?;
    transfers.sort_by_key(|t| t.row.connection);
    Ok(Report { summary, transfers })
}

/// Analyses a stream of a kind. `each` gets every transfer when its connection is over; nothing is kept of
/// it, so memory is that of the live connections. If the stream is damaged, the transfers of the part before
/// the damage are reported, and the summary has the error; it is returned as an error if there is no such
/// transfer.
// Not generic, so that the readers are compiled once and not in each crate that calls it.
pub fn stream(
    kind: Kind,
    input: open::Input,
    options: &Options,
    each: &mut dyn FnMut(AnalysedTransfer),
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, InputError> {
    let mut summary = Summary {
        kind,
        transfers: 0,
        connections: 0,
        left_out: 0,
        counts: Counts::default(),
        incomplete: None,
    };
    let (mut reported, mut left_out) = (0, 0);
    let mut add = |row: Transfer, findings: Option<Findings>, samples: Option<Series>| {
        if options.wants(&row) {
            reported += 1;
            let findings = findings.filter(|_| options.keep.any());
            let samples = samples.filter(|_| options.keep.packets);
            each(AnalysedTransfer { row, findings, samples });
        } else {
            left_out += 1;
        }
    };
    let candidates = &options.candidates;
    // Only of captures is the state of a startup continued.
    let keep = Keep { fork_states: false, ..options.keep };
    let done = match kind {
        Kind::Capture => {
            let config = Config { candidates, keep: options.keep };
            let mut table = Table::new(config);
            let (mut clocks, mut stepped) = (Clocks::default(), false);
            let mut over = |c: &mut Connection| {
                stepped |= c.stepped;
                for (row, findings) in transfer::of(c) {
                    add(row, Some(findings), None);
                }
            };
            let counts = &mut summary.counts;
            let mut packets = 0_u64;
            let done = capture::read(capture::old::convert(input)?, counts, |p, bytes| {
                clocks.on_packet(p, bytes);
                table.on_packet(p, &mut over);
                packets += 1;
                if packets.is_multiple_of(1 << 16) {
                    progress(bytes);
                }
            });
            summary.connections = table.connections();
            table.finish(&mut over);
            let done = done.and(clocks.step.filter(|_| stepped).map_or(Ok(()), Err));
            if done.is_ok() && counts.packets > 0 && counts.tcp == 0 {
                return Err(InputError::whole(counts.without_tcp()));
            }
            // A part without data still has connections.
            if counts.tcp > 0 {
                done.or_else(|e| {
                    summary.incomplete = Some(e);
                    Ok(())
                })
            } else {
                done
            }
        }
        Kind::KernelLog => kernlog::replay(input, candidates, keep).map(|log| {
            let mut row = Transfer::new(Source::KernelLog, 1, log.mss).with(&log.findings);
            (row.packets, row.retransmitted_packets) = (Some(log.rows), Some(log.retransmitted));
            row.caveats.push("the file has the times of ACKs, not of sent packets".to_string());
            if log.wraps > 0 {
                row.caveats.push("now_us wraps after 2^32 us: the time continues".to_string());
            }
            add(row, Some(log.findings), None);
            summary.incomplete = log.incomplete;
        }),
        Kind::Qlog => qlog::replay(input, candidates, keep, &mut |t, f| add(t, f, None)),
        Kind::Events => events::replay(input, candidates, keep, &mut |t, f| add(t, f, None)),
        Kind::Netlog => netlog::replay(input, candidates, keep, &mut |t, f| add(t, f, None)),
        Kind::Mlab => mlab::replay(input, |t, s| add(t, None, s)),
        Kind::Iperf => iperf::replay(input, |t, s| add(t, None, Some(s))),
        Kind::IperfText => iperf::text::replay(input, |t, s| add(t, None, Some(s))),
        Kind::Flent => flent::replay(input, |t| add(t, None, None)),
        Kind::Ss => ss::replay(input, |t, s| add(t, None, s)),
        Kind::TcpProbe => probe::replay(input, |t| add(t, None, None)),
        Kind::Rows => samples::rows(input, |t| add(t, None, None)),
    };
    (summary.transfers, summary.left_out) = (reported, left_out);
    match done {
        Err(e) if reported + left_out > 0 => summary.incomplete = Some(e),
        done => done?,
    }
    Ok(summary)
}
