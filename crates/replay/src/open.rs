//! What a file is, by what stands in it; compressed or not.

use crate::error::InputError;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

/// Bytes by which a kind is told.
const PROBE: usize = 4096;
/// Files of text are held whole; none that anybody wrote comes near this.
const MOST_TEXT: u64 = 1 << 30;

/// What a file holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// pcap or pcapng.
    Capture,
    /// A line of comma-separated numbers for each acknowledgement.
    KernelLog,
    /// qlog, as one JSON text or as a sequence.
    Qlog,
    /// A measurement of NDT7.
    Ndt7,
    /// A data file of flent.
    Flent,
    /// Printed by `ss -tin`, again and again.
    Ss,
    /// Rows of ours.
    Rows,
    /// Events of startups in a running kernel.
    Events,
}

/// A decompressed stream.
pub type Input = Box<dyn Read + Send>;

/// Zstandard frames one after the other.
struct Zstd<R: Read> {
    frame: Option<StreamingDecoder<BufReader<R>, ruzstd::decoding::FrameDecoder>>,
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(frame) = self.frame.as_mut() else { return Ok(0) };
            let n = frame.read(buf)?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            let Some(mut rest) = self.frame.take().map(StreamingDecoder::into_inner) else { return Ok(0) };
            if io::BufRead::fill_buf(&mut rest)?.is_empty() {
                return Ok(0);
            }
            self.frame = Some(StreamingDecoder::new(rest).map_err(io::Error::other)?);
        }
    }
}

/// Reads up to so many bytes.
fn head(input: &mut dyn Read, most: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    input.take(most as u64).read_to_end(&mut out)?;
    Ok(out)
}

/// Opens a file and tells what it is.
pub fn open(file: &Path) -> Result<(Kind, Input), InputError> {
    let cannot = |e: io::Error| InputError::whole(e.to_string());
    let raw: Input = Box::new(File::open(file).map_err(cannot)?);
    detect(raw)
}

/// Decompresses and tells what it is.
pub fn detect(mut raw: Input) -> Result<(Kind, Input), InputError> {
    let cannot = |e: io::Error| InputError::at(0, e.to_string());
    let start = head(&mut raw, 4).map_err(cannot)?;
    let raw: Input = Box::new(Cursor::new(start.clone()).chain(raw));
    let mut input: Input = match start.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::new(raw))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let frame = StreamingDecoder::new(BufReader::new(raw))
                .map_err(|e| InputError::at(0, format!("found a damaged zstd frame: {e}")))?;
            Box::new(Zstd { frame: Some(frame) })
        }
        _ => raw,
    };
    let probe = head(&mut input, PROBE).map_err(cannot)?;
    let kind = kind(&probe).ok_or_else(|| {
        let found = if probe.is_empty() { "nothing" } else { "something else" };
        InputError::at(
            0,
            format!(
                "found {found}, expected a capture (pcap, pcapng), a kernel log (CSV), qlog, NDT7 or flent JSON, \
                 the output of ss -tin, or rows or kernel events of slowstart; plain or compressed by gzip or zstd"
            ),
        )
    })?;
    Ok((kind, Box::new(Cursor::new(probe).chain(input))))
}

/// All of a text.
pub fn text(input: Input) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    input
        .take(MOST_TEXT)
        .read_to_end(&mut bytes)
        .map_err(|e| InputError::at(bytes.len() as u64, e.to_string()))?;
    String::from_utf8(bytes)
        .map_err(|e| InputError::at(e.utf8_error().valid_up_to() as u64, "found bytes that are no text"))
}

fn kind(probe: &[u8]) -> Option<Kind> {
    const PCAPS: [[u8; 4]; 6] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0x34, 0xcd, 0xb2, 0xa1],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    if PCAPS.iter().any(|magic| probe.starts_with(magic)) {
        return Some(Kind::Capture);
    }
    let text = String::from_utf8_lossy(probe);
    let start = text.trim_start_matches(['\u{feff}', '\u{1e}', ' ', '\t', '\r', '\n']);
    let first = start.lines().next().unwrap_or_default();
    if first.starts_with("now_us,") || first.split(',').any(|c| c.trim() == "bytes_acked") {
        Some(Kind::KernelLog)
    } else if !start.starts_with('{') {
        let sample = |l: &str| l.contains("cwnd:") && (l.contains("rtt:") || l.contains("mss:"));
        start.lines().any(sample).then_some(Kind::Ss)
    } else if start.contains("\"qlog_version\"")
        || start.contains("\"qlog_format\"")
        || start.contains("urn:ietf:params:qlog")
    {
        Some(Kind::Qlog)
    } else if start.contains("\"TCPInfo\"") || start.contains("\"ServerMeasurements\"") {
        Some(Kind::Ndt7)
    } else if start.contains("\"BATCH_") || start.contains("\"FLENT_VERSION\"") {
        Some(Kind::Flent)
    } else if first.contains("\"schema\"") && first.contains("\"startup\"") {
        Some(Kind::Rows)
    } else if first.contains("\"sk\"") && first.contains("\"now_ns\"") {
        Some(Kind::Events)
    } else {
        None
    }
}
