//! A file, whatever it is, and what it says.

use crate::analysis::Findings;
use crate::capture::{self, Counts};
use crate::connection::{Config, Connection};
use crate::error::{InputError, ReplayError};
use crate::observer::Candidate;
use crate::open::{self, Kind};
use crate::table::Table;
use crate::transfer::{self, Transfer};
use crate::{events, kernlog, qlog, samples};
use std::path::Path;
use std::sync::Arc;

/// What to look at, and for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which startups to ask.
    pub candidates: Arc<[Candidate]>,
    /// Whether to keep samples.
    pub snapshots: bool,
    /// Whether to keep where each startup's prediction ends, so that it can be gone on from there.
    pub fork_states: bool,
    /// Connections to show, by number; all if none.
    pub connections: Vec<u64>,
    /// Transfers of fewer bytes are left out.
    pub min_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            candidates: Arc::new([]),
            snapshots: false,
            fork_states: false,
            connections: Vec::new(),
            min_bytes: 0,
        }
    }
}

impl Options {
    fn wants(&self, t: &Transfer) -> bool {
        t.bytes >= self.min_bytes && (self.connections.is_empty() || self.connections.contains(&t.connection))
    }
}

/// A transfer with the findings it was made from, where there were events to find them in.
#[derive(Clone, Debug)]
pub struct AnalysedTransfer {
    /// The row.
    pub row: Transfer,
    /// The findings.
    pub findings: Option<Findings>,
}

/// What a file said.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it is.
    pub kind: Kind,
    /// Its transfers, in the order in which their connections ended.
    pub transfers: Vec<AnalysedTransfer>,
    /// Connections of a capture, with data or without.
    pub connections: u64,
    /// Transfers that were left out.
    pub left_out: u64,
    /// What was in the capture.
    pub counts: Counts,
    /// Where the file could not be read further: the transfers are of what stood before.
    pub incomplete: Option<InputError>,
}

/// Reads a file. `progress` is told how many bytes of a capture have been read, decompressed.
pub fn replay(file: &Path, options: &Options, progress: impl FnMut(u64)) -> Result<Report, ReplayError> {
    let name = |why| ReplayError { file: file.to_path_buf(), why };
    let (kind, input) = open::open(file).map_err(name)?;
    read(kind, input, options, progress).map_err(name)
}

/// Reads a stream of a kind.
pub fn read(
    kind: Kind,
    input: open::Input,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Report, InputError> {
    let mut report = Report {
        kind,
        transfers: Vec::new(),
        connections: 0,
        left_out: 0,
        counts: Counts::default(),
        incomplete: None,
    };
    let mut add = |row: Transfer, findings: Option<Findings>| {
        if options.wants(&row) {
            let findings = findings.filter(|_| options.snapshots || options.fork_states);
            report.transfers.push(AnalysedTransfer { row, findings });
        } else {
            report.left_out += 1;
        }
    };
    match kind {
        Kind::Capture => {
            let config = Config {
                candidates: &options.candidates,
                snapshots: options.snapshots,
                fork_states: options.fork_states,
            };
            let mut table = Table::new(config);
            let mut over = |c: Box<Connection>| {
                for (row, findings) in transfer::of(*c) {
                    add(row, Some(findings));
                }
            };
            let mut counts = Counts::default();
            let mut seen = 0_u64;
            let done = capture::read(input, &mut counts, |p, bytes| {
                table.on_packet(p, &mut over);
                seen += 1;
                if seen.is_multiple_of(1 << 16) {
                    progress(bytes);
                }
            });
            let connections = table.connections();
            table.finish(&mut over);
            report.connections = connections;
            report.counts = counts;
            report.transfers.sort_by_key(|t| t.row.connection);
            match done {
                // What was read says something, as long as it is said that it is not all.
                Err(e) if counts.tcp > 0 => report.incomplete = Some(e),
                Err(e) => return Err(e),
                Ok(()) if counts.packets > 0 && counts.tcp == 0 => {
                    let why = counts.unknown_link.map_or("found no TCP packet".to_string(), |(n, link)| {
                        format!("found {n} packets of link type {link}, expected Ethernet, Linux cooked, raw IP or loopback")
                    });
                    return Err(InputError::whole(why));
                }
                Ok(()) => {}
            }
        }
        Kind::KernelLog => {
            let log = kernlog::replay(&open::text(input)?, &options.candidates, options.snapshots)?;
            let mut row = Transfer::new("kernel-log", 1, log.mss).with(&log.findings);
            (row.packets, row.retransmitted_packets) = (log.rows, log.retransmitted);
            row.caveats.push("the log tells when ACKs came, not when packets left".to_string());
            add(row, Some(log.findings));
        }
        Kind::Qlog => {
            for (row, findings) in qlog::replay(&open::text(input)?, &options.candidates, options.snapshots)?
            {
                add(row, findings);
            }
        }
        Kind::Events => {
            for (row, findings) in
                events::replay(&open::text(input)?, &options.candidates, options.snapshots)?
            {
                add(row, findings);
            }
        }
        Kind::Ndt7 => samples::ndt7(&open::text(input)?)?.into_iter().for_each(|t| add(t, None)),
        Kind::Flent => samples::flent(&open::text(input)?)?.into_iter().for_each(|t| add(t, None)),
        Kind::Ss => samples::ss(&open::text(input)?)?.into_iter().for_each(|t| add(t, None)),
        Kind::Rows => samples::rows(&open::text(input)?)?.into_iter().for_each(|t| add(t, None)),
    }
    Ok(report)
}
