//! Opens a file: decompresses it and recognises its kind by its content.

use crate::error::InputError;
use crate::iperf;
use crate::limits::MOST_WINDOW;
use crate::probe;
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::FrameDecoderError;
use slowstart_files::head;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

/// Bytes from which a kind is recognised.
const PROBE: usize = 4096;

/// The kind of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pcap, pcapng or snoop capture.
    Capture,
    /// A kernel log: comma-separated numbers, one line per ACK.
    KernelLog,
    /// A qlog, as one JSON text or as a sequence.
    Qlog,
    /// A log of Chrome's network stack.
    Netlog,
    /// NDT7 measurements or rows of `tcp-info` of M-Lab.
    Mlab,
    /// A result of iperf3.
    Iperf,
    /// Text printed by iperf3, iperf 2 or nuttcp.
    IperfText,
    /// A flent data file.
    Flent,
    /// Repeated output of `ss -tin`.
    Ss,
    /// Events of the tracepoint `tcp:tcp_probe`, as text.
    TcpProbe,
    /// Rows of `slowstart compare`.
    Rows,
    /// Events of startups in a running kernel.
    Events,
}

/// A kind of file and how it is recognised.
pub struct Format {
    /// What the file is.
    pub kind: Kind,
    /// What it is called in messages.
    pub name: &'static str,
    is: fn(&Start) -> bool,
}

/// The begin of a file.
struct Start<'a> {
    bytes: &'a [u8],
    /// These bytes as text, from the first visible character on.
    text: &'a str,
    /// The first line of that.
    line: &'a str,
}

impl Start<'_> {
    fn is_json(&self) -> bool {
        self.text.starts_with('{')
    }

    /// True if it is JSON with one of these words.
    fn has(&self, words: &[&str]) -> bool {
        self.is_json() && words.iter().any(|w| self.text.contains(w))
    }
}

/// The formats, in the order in which a file is compared with them.
pub const FORMATS: [Format; 12] = [
    Format { kind: Kind::Capture, name: "capture (pcap, pcapng, snoop)", is: is_capture },
    Format {
        kind: Kind::KernelLog,
        name: "kernel log (CSV)",
        is: |s| s.line.starts_with("now_us,") || s.line.split(',').any(|c| c.trim() == "bytes_acked"),
    },
    Format {
        kind: Kind::TcpProbe,
        name: "trace of tcp:tcp_probe (text)",
        is: |s| !s.is_json() && (s.text.contains(probe::NAME) || s.text.lines().any(probe::is_module_line)),
    },
    Format {
        kind: Kind::Ss,
        name: "samples of ss -tin",
        is: |s| !s.is_json() && s.text.lines().any(is_ss_line),
    },
    Format {
        kind: Kind::IperfText,
        name: "text of iperf or nuttcp",
        is: |s| !s.is_json() && s.text.lines().any(iperf::text::is_line),
    },
    Format {
        kind: Kind::Qlog,
        name: "qlog",
        is: |s| s.has(&["\"qlog_version\"", "\"qlog_format\"", "urn:ietf:params:qlog"]),
    },
    Format {
        kind: Kind::Netlog,
        name: "log of Chrome's network stack (netlog)",
        is: |s| s.is_json() && s.text[1..].trim_start().starts_with("\"constants\""),
    },
    Format {
        kind: Kind::Iperf,
        name: "result of iperf3 (JSON)",
        is: |s| s.has(&["\"iperf "]) && s.has(&["\"start\""]),
    },
    Format {
        kind: Kind::Mlab,
        name: "measurements of M-Lab (JSON)",
        is: |s| {
            s.has(&["\"TCPInfo\"", "\"ServerMeasurements\"", "\"Snapshots\""])
                && !s.has(&["\"S2C\"", "\"C2S\""])
        },
    },
    Format { kind: Kind::Flent, name: "flent data file", is: |s| s.has(&["\"BATCH_", "\"FLENT_VERSION\""]) },
    Format {
        kind: Kind::Rows,
        name: "rows of slowstart compare",
        is: |s| s.is_json() && s.line.contains("\"schema\"") && s.line.contains("\"startup\""),
    },
    Format {
        kind: Kind::Events,
        name: "kernel events of slowstart",
        is: |s| s.is_json() && s.line.contains("\"sk\"") && s.line.contains("\"now_ns\""),
    },
];

impl Kind {
    /// What it is called in messages.
    ///
    /// # Panics
    /// Never: a test says that [`FORMATS`] has every kind.
    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|f| f.kind == self).expect("every kind is a format").name
    }
}

fn is_capture(s: &Start) -> bool {
    const MAGIC: [&[u8]; 7] = [
        &[0xa1, 0xb2, 0xc3, 0xd4],
        &[0xd4, 0xc3, 0xb2, 0xa1],
        &[0xa1, 0xb2, 0x3c, 0x4d],
        &[0x4d, 0x3c, 0xb2, 0xa1],
        &[0x34, 0xcd, 0xb2, 0xa1],
        &[0x0a, 0x0d, 0x0d, 0x0a],
        b"snoop\0\0\0",
    ];
    MAGIC.iter().any(|magic| s.bytes.starts_with(magic))
}

fn is_ss_line(line: &str) -> bool {
    line.contains("cwnd:") && (line.contains("rtt:") || line.contains("mss:"))
}

/// The bytes of a file after decompression.
pub type Input = Box<dyn Read + Send>;

/// Consecutive zstd frames.
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
            self.frame = Some(zstd_frame(rest).map_err(io::Error::other)?);
        }
    }
}

/// Begins to read a frame. Its decoder holds about three times its window.
fn zstd_frame<R: Read>(input: R) -> Result<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>, String> {
    StreamingDecoder::new_with_max_window_size(input, MOST_WINDOW).map_err(|e| match e {
        FrameDecoderError::WindowSizeTooBig { requested, max } => format!(
            "found a zstd frame with a window of {} MiB, expected at most {} MiB: compress it again without --long and --ultra",
            requested >> 20,
            max >> 20
        ),
        e => format!("found a damaged zstd frame: {e}"),
    })
}

/// Opens a file and recognises its kind. `-` is standard input.
pub fn open(file: &Path) -> Result<(Kind, Input), InputError> {
    if file == Path::new("-") {
        return detect(Box::new(io::stdin()));
    }
    let cannot = |e: io::Error| InputError::whole(e.to_string());
    let raw: Input = Box::new(File::open(file).map_err(cannot)?);
    detect(raw)
}

/// Decompresses a stream and recognises its kind.
pub fn detect(mut raw: Input) -> Result<(Kind, Input), InputError> {
    let cannot = |e: io::Error| InputError::at(0, e.to_string());
    let start = head(&mut raw, 4).map_err(cannot)?;
    let raw: Input = Box::new(Cursor::new(start.clone()).chain(raw));
    let mut input: Input = match start.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::new(raw))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let frame = zstd_frame(BufReader::new(raw)).map_err(|e| InputError::at(0, e))?;
            Box::new(Zstd { frame: Some(frame) })
        }
        _ => raw,
    };
    let probe = head(&mut input, PROBE as u64).map_err(cannot)?;
    let kind = kind(&probe).ok_or_else(|| InputError::at(0, unknown(&probe)))?;
    Ok((kind, Box::new(Cursor::new(probe).chain(input))))
}

/// What an unsupported file is, if it can be named, and what is supported.
fn unknown(probe: &[u8]) -> String {
    let named = name(probe);
    let found = named.as_deref().unwrap_or(if probe.is_empty() { "nothing" } else { "an unknown format" });
    let known = FORMATS.map(|f| f.name).join(", ");
    format!("found {found}, expected a {known}; plain or compressed by gzip or zstd")
}

const NDT5: &str = "an NDT5 result (it has one TCPInfo, of the end of the test, which does not show when slow start ended; give the \
                    tcp-info row or the capture of the same test)";

/// The name of a format that is known but has no data to analyse, and what to do.
fn name(probe: &[u8]) -> Option<String> {
    let binary: [(&[u8], &str); 11] = [
        (b"GMBU", "a Network Monitor capture (convert it: editcap -F pcapng)"),
        (b"RTSS", "a Network Monitor capture (convert it: editcap -F pcapng)"),
        (b"BZh", "a bzip2 file (decompress it first)"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "an xz file (decompress it first)"),
        (b"PK\x03\x04", "a zip archive (extract it first)"),
        (b"PERFILE2", "a perf.data file (give the output of perf script, for the event tcp:tcp_probe)"),
        (
            &[0x17, 0x08, 0x44],
            "a trace-cmd file (give the output of trace-cmd report, for the event tcp:tcp_probe)",
        ),
        (b"\x7fELF", "a program"),
        (b"%PDF", "a PDF document"),
        (&[0x89, b'P', b'N', b'G'], "a PNG image"),
        (b"<", "an HTML or XML document"),
    ];
    if let Some((_, name)) = binary.iter().find(|(magic, _)| probe.starts_with(magic)) {
        return Some((*name).to_string());
    }
    if probe.get(257..262) == Some(b"ustar") {
        return Some("a tar archive (extract it first)".to_string());
    }
    let text = String::from_utf8_lossy(probe);
    let texts = [
        ("\"S2C\"", NDT5),
        ("\"C2S\"", NDT5),
        ("\"creator\"", "an HTTP archive (HAR; it has no packets)"),
        ("CLIENT_RANDOM ", "a TLS key log (give the capture or the qlog)"),
        ("IP6 ", "text printed by tcpdump (write a capture: tcpdump -w FILE)"),
        (" IP ", "text printed by tcpdump (write a capture: tcpdump -w FILE)"),
        ("Recv-Q", "the output of ss without TCP information (use ss -tin)"),
    ];
    let named = texts.iter().find(|(word, _)| text.contains(word)).map(|(_, name)| (*name).to_string());
    named.or_else(|| text.trim_start().starts_with('{').then(|| "JSON of an unknown format".to_string()))
}

/// The kind of a supported file.
fn kind(probe: &[u8]) -> Option<Kind> {
    let text = String::from_utf8_lossy(probe);
    let text = text.trim_start_matches(['\u{feff}', '\u{1e}', ' ', '\t', '\r', '\n']);
    let start = Start { bytes: probe, text, line: text.lines().next().unwrap_or_default() };
    FORMATS.iter().find(|f| (f.is)(&start)).map(|f| f.kind)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]
mod tests {
    use super::*;

    /// A zstd frame with a window of 2^log bytes, whose one block holds `text` as it is.
    fn frame(log: u8, text: &str) -> Vec<u8> {
        let header = [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3];
        let block = (text.len() as u32) << 3 | 1;
        [&header, &block.to_le_bytes()[..3], text.as_bytes()].concat()
    }

    /// A decoder holds its window, which a file of some bytes may ask to be large.
    #[test]
    fn the_window_of_a_zstd_frame_is_limited() {
        let text = "now_us,bytes_acked,mss,rtt_us,snd_nxt,snd_una,sk_pacing_rate\n";
        let of = |bytes: Vec<u8>| detect(Box::new(Cursor::new(bytes)));
        let (kind, mut input) = of(frame(23, text)).expect("as zstd -19 writes it");
        let mut read = String::new();
        input.read_to_string(&mut read).expect("text");
        assert_eq!((kind, read.as_str()), (Kind::KernelLog, text));
        let Err(e) = of(frame(27, text)) else { panic!("a window of 128 MiB") };
        assert!(e.to_string().contains("window of 128 MiB, expected at most 8 MiB"), "{e}");
        // Also of a frame that is not the first.
        let e = match of([frame(20, text), frame(27, text)].concat()) {
            Ok((_, mut input)) => input.read_to_string(&mut read).expect_err("the second").to_string(),
            Err(e) => e.to_string(),
        };
        assert!(e.contains("window of 128 MiB"), "{e}");
    }
}
