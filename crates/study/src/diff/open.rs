//! What two results leave open: measures that one of them only has, and those that may differ.

use crate::decision::{Change, Decision, Difference};
use crate::measures::{LOSS_MARGIN, Measure};
use crate::summary::Summary;

/// The measures that no run of one result has and a run of the other does, and whether the other is B. A transfer that
/// did not get there has its times, which say so.
pub(super) fn only(a: &Summary, b: &Summary) -> Vec<(Measure, bool)> {
    let has = |s: &Summary, m: Measure| match m {
        Measure::Time10MB => s.rows.iter().any(|r| r.time_to_bytes_s.contains_key("10000000")),
        m => s.rows.iter().any(|r| m.of(r).is_some()),
    };
    let measures = [Measure::Time10MB, Measure::StartupLost, Measure::OthersGot, Measure::QueueDelay];
    let one = |m: Measure| (has(a, m) != has(b, m)).then(|| (m, has(b, m)));
    measures.into_iter().filter_map(one).collect()
}

/// The times that may differ.
pub(super) fn times(all: &[(Measure, Difference)]) -> Vec<Measure> {
    let may = |d: &Difference| matches!(d.change, Change::NotShown { .. });
    all.iter().filter(|(_, d)| may(d)).map(|(m, _)| *m).collect()
}

/// The costs that may differ, or that the runs of one of the two do not show.
pub(super) fn costs(d: &Decision, a: &Summary, b: &Summary) -> Vec<Measure> {
    let may = |f: &Measure| {
        let change = d.against(b, *f).map(|x| x.change);
        matches!(change, Some(Change::NotShown { .. })) || d.hides(a, *f) != d.hides(b, *f)
    };
    d.costs().filter(may).collect()
}

/// What may differ where no run has the seed of another: as far as the ends of both intervals are apart.
pub(super) fn apart(a: &Summary, b: &Summary, by: Measure, margin: f64) -> Vec<Measure> {
    let rtt = a.rows.iter().map(|r| r.base_rtt_s).fold(f64::INFINITY, f64::min);
    let may = |m: Measure, margin: f64, relative: bool| {
        let (x, y) = a.typical(m).zip(b.typical(m)).map(|(x, y)| (x.0, y.0))?;
        let by = |y: f64, x: f64| if relative { y / x - 1.0 } else { y - x };
        (by(y.low, x.high).abs().max(by(y.high, x.low).abs()) > margin).then_some(m)
    };
    let all = [
        may(by, margin, true),
        may(Measure::StartupLost, LOSS_MARGIN, false),
        may(Measure::QueueDelay, rtt, false),
    ];
    all.into_iter().flatten().collect()
}
