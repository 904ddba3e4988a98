//! What a stack's qlog tells of a transfer, and the link does not show.

use slowstart::units::{Bytes, Span};
use slowstart_replay::analysis::Keep;
use slowstart_replay::infer::Evidence;
use slowstart_replay::open::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_study::engines::EngineError;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The newest file of a folder that was written since.
pub(super) fn newest(dir: &Path, since: SystemTime) -> Option<PathBuf> {
    let written = |p: &PathBuf| p.metadata().and_then(|m| m.modified()).ok().filter(|at| *at >= since);
    let all = fs::read_dir(dir).ok()?.flatten().map(|e| e.path()).filter(|p| p.is_file());
    all.filter(|p| written(p).is_some()).max_by_key(written)
}

/// What the link does not see of a transfer, and a qlog may tell.
#[derive(Clone, Default)]
pub(super) struct Inside {
    /// When the startup ended, in seconds since the log's first packet, and with which window.
    pub(super) exit: Option<(f64, u64)>,
    /// That exit is certain.
    pub(super) certain: bool,
    /// Why an exit is not reported.
    pub(super) withheld: Option<&'static str>,
    /// The most in flight.
    pub(super) peak_inflight: Option<Bytes>,
    /// The congestion control.
    pub(super) control: Option<String>,
}

/// What a qlog tells of its largest transfer.
pub(super) fn inside(file: &Path) -> Result<Inside, EngineError> {
    let named =
        |e: &dyn std::fmt::Display| EngineError::Failed(format!("--qlog {}: {e}", file.display()).into());
    let (kind, input) = open(file).map_err(|e| named(&e))?;
    let mut largest: Option<AnalysedTransfer> = None;
    let mut each = |t: AnalysedTransfer| {
        if largest.as_ref().is_none_or(|l| t.row.bytes > l.row.bytes) {
            largest = Some(t);
        }
    };
    // With snapshots, findings are kept.
    let options = Options { keep: Keep { snapshots: true, ..Keep::default() }, ..Options::default() };
    stream(kind, input, &options, &mut each, &mut |_| ()).map_err(|e| named(&e))?;
    let Some(AnalysedTransfer { row, findings, .. }) = largest else { return Ok(Inside::default()) };
    let mut all = Inside {
        certain: row.certain || row.exit.as_ref().is_some_and(|e| e.evidence == Evidence::Recorded.words()),
        peak_inflight: findings.as_ref().and_then(|f| f.peak_inflight),
        control: row.congestion_control,
        ..Inside::default()
    };
    let fell = findings.as_ref().and_then(|f| f.window_fell).map(|at| Span(at.0).as_secs_f64());
    match row.exit {
        Some(e) if agrees(e.time_s, fell, row.min_rtt_s) => all.exit = Some((e.time_s, e.cwnd_bytes)),
        Some(_) => {
            all.withheld = Some(
                "its qlog shows no fall of the window where slow start seems to end: the exit is not observed.",
            );
        }
        // A log that the server did not finish ends sooner than the transfer.
        None => {
            all.withheld = Some("its qlog shows no end of slow start: whether it ended is not observed.");
        }
    }
    Ok(all)
}

/// True if the window that a log states falls within a round trip of an exit, in seconds.
fn agrees(exit: f64, fell: Option<f64>, rtt: Option<f64>) -> bool {
    fell.zip(rtt).is_some_and(|(fell, rtt)| (fell - exit).abs() <= rtt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// The log of a server over an RTT of 50 ms: 10 packets, twice as many in each round trip, and 40 in each once the
    /// first packet of the fifth is lost. `window` is what the log states of the window in a round trip, if it does.
    fn log(rounds: usize, window: impl Fn(usize) -> Option<u32>) -> String {
        let mut text = String::from(
            "{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n",
        );
        let mut event = |at: f64, name: &str, data: &str| {
            let _ = writeln!(text, "{{\"time\":{at},\"name\":\"{name}\",\"data\":{{{data}}}}}");
        };
        let header = |n: usize| format!("\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{n}}}");
        let (mut before, mut received) = (0..0, 0);
        for round in 0..rounds {
            let begin = 50.0 * round as f64;
            if let Some(bytes) = window(round) {
                event(begin, "recovery:metrics_updated", &format!("\"congestion_window\":{bytes}"));
            }
            let packets = if round < 5 { 10 << round } else { 40 };
            let (mut next, acks) = (before.end, before.len().max(1));
            // Each ACK of the round trip before lets its share of packets go.
            for i in 0..acks {
                let (at, acked) = (begin + 40.0 * i as f64 / acks as f64, before.start + i);
                if (round, i) == (5, 0) {
                    event(at, "recovery:packet_lost", &header(acked));
                } else if round > 0 {
                    let ack = format!(
                        "\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":[[{acked},{acked}]]}}]"
                    );
                    event(at, "transport:packet_received", &format!("{},{ack}", header(received)));
                    received += 1;
                }
                while next < before.end + packets * (i + 1) / acks {
                    let size = "\"raw\":{\"length\":1250}";
                    event(at, "transport:packet_sent", &format!("{},{size}", header(next)));
                    next += 1;
                }
            }
            before = before.end..next;
        }
        text
    }

    #[test]
    fn an_exit_of_a_log_needs_a_window_that_falls_there() {
        assert!(agrees(0.4, Some(0.42), Some(0.05)));
        assert!(!agrees(0.4, Some(0.9), Some(0.05)), "it fell later");
        assert!(!agrees(0.4, None, Some(0.05)), "it never fell, or no window was logged");
    }

    #[test]
    fn an_exit_that_a_log_does_not_show_is_withheld() {
        let dir = std::env::temp_dir().join(format!("slowstart-inside-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        let read = |text: &str| {
            let file = dir.join("server.sqlog");
            fs::write(&file, text).expect("writable");
            inside(&file).expect("a log")
        };
        let slow = |round: usize| 12_500 << round.min(4);
        let falls = |at: usize| move |round: usize| Some(if round < at { slow(round) } else { 50_000 });
        let shown = read(&log(10, falls(5)));
        let (at, window) = shown.exit.expect("the window falls with the loss");
        assert!((0.2..0.3).contains(&at) && window == 200_000, "{at} {window}");
        assert_eq!(shown.withheld, None);
        let withheld = |text: &str| {
            let inside = read(text);
            assert_eq!(inside.exit, None, "{:?}", inside.withheld);
            assert!(inside.peak_inflight.is_some(), "the rest of the log is read");
            inside.withheld.expect("it says why")
        };
        for (window, text) in [
            ("not logged", log(10, |_| None)),
            ("never falls", log(10, |round| Some(slow(round)))),
            ("falls four round trips later", log(12, falls(9))),
        ] {
            let why = withheld(&text);
            assert!(why.contains("shows no fall of the window"), "{window}: {why}");
        }
        // A log that stops before the transfer does: what came then is not known.
        for text in [log(4, |_| None), log(4, |round| Some(slow(round)))] {
            let why = withheld(&text);
            assert!(why.contains("shows no end of slow start"), "{why}");
        }
        fs::remove_dir_all(&dir).expect("ours");
    }
}
