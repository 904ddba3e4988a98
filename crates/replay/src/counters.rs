//! What a kernel counts of a connection beside its window (`TCP_INFO` of Linux): for how long the receive
//! window or the send buffer limited it, whether the application did, and how fast data was delivered.

use crate::infer::LimitedBy;
use crate::samples::Sample;
use crate::transfer::LimitPeriod;
use slowstart::units::Span;

/// Share of the time between two samples above which one thing limited the sender.
const MOST: f64 = 0.5;
/// Times of less are rounding: seconds, and a share of the time between two samples.
const ROUNDING: (f64, f64) = (0.004, 0.05);
/// Periods kept of a transfer.
const PERIODS: usize = 256;

/// Counts of a kernel at one moment, each `None` if the file does not state it. There are many, so the type
/// is kept small.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// For how long data was in flight or waited to be sent, milliseconds.
    pub busy_ms: Option<u32>,
    /// For how long of that the receive window limited the sender, milliseconds.
    pub receive_window_ms: Option<u32>,
    /// For how long of that the send buffer did, milliseconds.
    pub send_buffer_ms: Option<u32>,
    /// The newest delivery rate, in kilobits per second.
    pub delivery_kbps: Option<u32>,
    /// True if the application limited the sender when that rate was measured.
    pub application: Option<bool>,
}

/// Seconds between two samples, and for how many of them something else than cwnd limited the sender.
#[derive(Copy, Clone, Debug)]
struct Between {
    all: f64,
    by: [(LimitedBy, f64); 3],
}

/// `None` if the counters do not show it: what is not stated may have limited the sender.
fn between(a: &Sample, b: &Sample) -> Option<Between> {
    let all = b.at.since(a.at).as_secs_f64();
    let grew = |of: fn(&Counters) -> Option<u32>| {
        let (from, to) = (of(&a.counters)?, of(&b.counters)?);
        Some(Span::millis(to.saturating_sub(from).into()).as_secs_f64().min(all))
    };
    let busy = grew(|c| c.busy_ms);
    let application = b.counters.application.unwrap_or(false);
    if busy.is_none() && !application {
        return None;
    }
    let window = grew(|c| c.receive_window_ms).unwrap_or(0.0);
    let buffer = grew(|c| c.send_buffer_ms).unwrap_or(0.0);
    let idle = all - busy.unwrap_or(all);
    let waited = if application { (all - window - buffer).max(0.0) } else { idle };
    let by = [
        (LimitedBy::Application, waited),
        (LimitedBy::ReceiveWindow, window),
        (LimitedBy::SendBuffer, buffer),
    ];
    Some(Between {
        all,
        by: by.map(|(by, s)| (by, if s < ROUNDING.0.max(ROUNDING.1 * all) { 0.0 } else { s })),
    })
}

/// What limited the sender for most of the time between two samples; `None` if it was cwnd, or if the counters
/// do not show it.
pub(crate) fn limit(a: &Sample, b: &Sample) -> Option<LimitedBy> {
    let found = between(a, b)?;
    found.by.into_iter().find(|(_, s)| *s > MOST * found.all).map(|(by, _)| by)
}

/// The periods in which something else than cwnd limited the sender, by their length: within the time between
/// two samples their place is not known. `None` if the counters do not show it for most of the time.
pub(crate) fn periods(samples: &[Sample]) -> Option<Vec<LimitPeriod>> {
    let mut out: Vec<LimitPeriod> = Vec::new();
    let (mut known, mut all) = (0.0, 0.0);
    for w in samples.windows(2) {
        let mut at = Span(w[0].at.0).as_secs_f64();
        all += w[1].at.since(w[0].at).as_secs_f64();
        let Some(found) = between(&w[0], &w[1]) else { continue };
        known += found.all;
        for (by, s) in found.by.into_iter().filter(|(_, s)| *s > 0.0) {
            let kept = out.len();
            match out.last_mut().filter(|l| l.what == by.words() && l.until_s >= at) {
                Some(last) => last.until_s = at + s,
                None if kept < PERIODS => {
                    out.push(LimitPeriod { what: by.words().to_string(), from_s: at, until_s: at + s });
                }
                None => {}
            }
            at += s;
        }
    }
    (known > MOST * all).then_some(out)
}
