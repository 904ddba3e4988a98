//! What a stack's qlog tells of a transfer, and the link does not show.

use slowstart::units::{Bytes, Span};
use slowstart_replay::analysis::Keep;
use slowstart_replay::infer::Evidence;
use slowstart_replay::open::open;
use slowstart_replay::replay::{AnalysedTransfer, Options, stream};
use slowstart_replay::transfer::ExitClass;
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
    /// When the startup ended, in seconds since the log's first packet, and with which window; infinite if it
    /// did not end.
    pub(super) exit: Option<(f64, Option<u64>)>,
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
        Some(e) if agrees(e.time_s, fell, row.min_rtt_s) => all.exit = Some((e.time_s, Some(e.cwnd_bytes))),
        Some(_) => {
            all.withheld = Some(
                "its qlog shows no fall of the window where slow start seems to end: the exit is not observed.",
            );
        }
        None => all.exit = (row.class == ExitClass::None && fell.is_none()).then_some((f64::INFINITY, None)),
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

    #[test]
    fn an_exit_of_a_log_needs_a_window_that_falls_there() {
        assert!(agrees(0.4, Some(0.42), Some(0.05)));
        assert!(!agrees(0.4, Some(0.9), Some(0.05)), "it fell later");
        assert!(!agrees(0.4, None, Some(0.05)), "it never fell, or no window was logged");
    }
}
