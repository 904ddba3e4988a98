//! Compares the runs of two engines in one cell.
//!
//! A figure of the first engine agrees if it lies within the range of the second's runs, widened by 10 %; the
//! time of an exit also by one round trip; the time to a number of bytes by 5 % only. The first engine's
//! figure is the median over as many runs with the same seeds, so that both have the same jitter, losses and
//! start in a trace. A cell passes if every figure agrees.

use super::{BBR, Cell, Ran};
use crate::record::{Row, Sample};
use crate::stats::{median, quantile};

/// By how much a range is widened.
#[derive(Copy, Clone, Debug)]
struct Slack {
    share: f64,
    more: f64,
}

/// A simulated figure beside the kernel's range.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, with the unit.
    pub name: &'static str,
    /// The median of the first engine's runs; `None` if most of them have none.
    pub ours: Option<f64>,
    /// The second engine's minimum and maximum; `None` if none of its runs has one.
    pub theirs: Option<(f64, f64)>,
    /// True if the first engine's figure lies in that range, widened.
    pub agrees: bool,
}

impl Figure {
    fn new(name: &'static str, ours: &[Option<f64>], kernel: &[Option<f64>], slack: Slack) -> Self {
        // If some of the kernel's runs have the figure and some do not, both outcomes agree.
        let some = |v: &[Option<f64>]| v.iter().flatten().copied().collect::<Vec<f64>>();
        let (ours_all, kernel_all) = (some(ours), some(kernel));
        let ours_mid = median(&ours_all).filter(|_| 2 * ours_all.len() > ours.len()).map(|m| m.mid);
        let range = quantile(&kernel_all, 0.0).zip(quantile(&kernel_all, 1.0));
        let agrees = match (ours_mid, range) {
            (None, _) => kernel_all.len() < kernel.len() || kernel.is_empty(),
            (Some(_), None) => false,
            (Some(ours), Some((low, high))) => {
                ours >= low * (1.0 - slack.share) - slack.more
                    && ours <= high * (1.0 + slack.share) + slack.more
            }
        };
        Self { name, ours: ours_mid, theirs: range, agrees }
    }
}

/// Every compared figure of a cell: the first engine's runs beside the second's.
pub fn compare(cell: &Cell, ours: &[Ran], kernel: &[Ran]) -> Vec<Figure> {
    let rtt_s = ours.first().map_or(0.0, |o| o.row.base_rtt_s);
    let tenth = Slack { share: 0.1, more: 0.0 };
    let of = |name, slack, what: &dyn Fn(&Row) -> Option<f64>| {
        let all = |o: &[Ran]| o.iter().map(|o| what(&o.row)).collect::<Vec<_>>();
        Figure::new(name, &all(ours), &all(kernel), slack)
    };
    // The initial window is ten segments; where it was not observed, no window in packets is compared.
    let segment = |r: &Row| r.iw_bytes.map(|iw| (iw / 10).max(1) as f64);
    let mut figures = Vec::new();
    // The kernel does not report when BBR's startup ends.
    if cell.control != BBR {
        figures.push(of("exit (s)", Slack { share: 0.1, more: rtt_s }, &|r| Some(r.exit.as_ref()?.time_s)));
        figures.push(of("window at exit (packets)", tenth, &|r| {
            Some(r.exit.as_ref()?.detected_cwnd_bytes as f64 / segment(r)?)
        }));
        figures.push(of("lost in startup", tenth, &|r| r.startup_lost_packets.map(|n| n as f64)));
    }
    figures.push(of("first loss known (s)", tenth, &|r| r.first_loss_time_s));
    for (name, bytes) in
        [("to 100 kB (s)", "100000"), ("to 1 MB (s)", "1000000"), ("to 10 MB (s)", "10000000")]
    {
        figures.push(of(name, Slack { share: 0.05, more: 0.0 }, &|r| *r.time_to_bytes_s.get(bytes)?));
    }
    if cell.app.is_some() {
        let median = |r: &Row| r.objects.as_ref()?.median_s;
        figures.push(of("median object (s)", Slack { share: 0.05, more: 0.0 }, &median));
    }
    if cell.size.is_some() || cell.ends() {
        figures.push(of("complete (s)", Slack { share: 0.05, more: 0.0 }, &|r| r.completion_s));
    }
    if cell.ecn.is_some() {
        figures.push(of("marked", tenth, &|r| Some(r.marks.as_ref()?.packets as f64)));
        figures.push(of("reductions for marks", tenth, &|r| Some(r.marks.as_ref()?.responses as f64)));
    }
    figures.push(of("retransmitted", tenth, &|r| r.retransmitted_packets.map(|n| n as f64)));
    figures.push(of("goodput (Mbit/s)", tenth, &|r| Some(r.goodput_bps as f64 / 1e6)));
    figures.push(trajectory(ours, kernel));
    figures
}

/// The number of times at which windows are compared.
const MOMENTS: usize = 300;

/// The window at a time: that of the last sample before it.
fn window(samples: &[Sample], time_s: f64) -> Option<f64> {
    let after = samples.partition_point(|s| s.time_s <= time_s);
    Some(samples.get(after.checked_sub(1)?)?.cwnd_bytes as f64)
}

/// The distance of a run's window from that of the kernel's median run, in per cent: the mean over time of
/// the greater over the smaller, minus one. The simulated run may be a tenth farther away than the kernel's
/// own runs are.
fn trajectory(ours: &[Ran], kernel: &[Ran]) -> Figure {
    let last = |o: &Ran| o.trace.samples.last().map_or(0.0, |s| s.time_s);
    let end = ours.iter().chain(kernel).map(last).fold(f64::INFINITY, f64::min);
    let moments: Vec<f64> = (1..MOMENTS).map(|i| end * i as f64 / MOMENTS as f64).collect();
    let at = |o: &Ran, t: f64| window(&o.trace.samples, t);
    let middle: Vec<Option<f64>> = moments
        .iter()
        .map(|t| quantile(&kernel.iter().filter_map(|o| at(o, *t)).collect::<Vec<_>>(), 0.5))
        .collect();
    let distance = |o: &Ran| {
        let apart: Vec<f64> = moments
            .iter()
            .zip(&middle)
            .filter_map(|(t, m)| Some((at(o, *t)?.max(1.0) / (*m)?.max(1.0)).ln().abs()))
            .collect();
        let mean = apart.iter().sum::<f64>() / apart.len().max(1) as f64;
        (!apart.is_empty()).then(|| 100.0 * mean.exp_m1())
    };
    let all = |o: &[Ran]| o.iter().map(distance).collect::<Vec<_>>();
    let mut figure =
        Figure::new("window from middle (%)", &all(ours), &all(kernel), Slack { share: 0.1, more: 10.0 });
    // A smaller distance than that of the kernel's own runs also agrees.
    figure.agrees |= figure.ours.zip(figure.theirs).is_some_and(|(ours, (low, _))| ours < low);
    figure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Simulator;

    fn outcomes(cell: &Cell) -> Vec<Ran> {
        let study = cell.study(&Simulator, None).expect("a study");
        let run = |job| Cell::run(&Simulator, &study, job, &|| false).expect("it runs");
        study.jobs().into_iter().map(run).collect()
    }

    #[test]
    fn a_run_agrees_with_itself_and_not_with_another_startup() {
        let cells = Cell::all();
        let named = |name: &str| cells.iter().find(|c| c.name == name).expect("a cell");
        let (cubic, plain) = (named("100M-50ms-1 cubic"), named("100M-50ms-1 cubic without HyStart"));
        let (ours, theirs) = (outcomes(cubic), outcomes(plain));
        assert!(compare(cubic, &ours, &ours).iter().all(|f| f.agrees));
        let apart: Vec<&str> =
            compare(cubic, &ours, &theirs).iter().filter(|f| !f.agrees).map(|f| f.name).collect();
        for name in ["window at exit (packets)", "lost in startup", "retransmitted"] {
            assert!(apart.contains(&name), "{name} is not in {apart:?}");
        }
    }

    #[test]
    fn a_range_is_widened_on_both_sides_and_no_more() {
        let agrees = |ours: f64, slack| {
            Figure::new("x", &[Some(ours)], &[Some(10.0), Some(20.0), Some(12.0)], slack).agrees
        };
        let tenth = Slack { share: 0.1, more: 0.0 };
        assert_eq!([8.9, 9.0, 15.0, 22.0, 22.1].map(|x| agrees(x, tenth)), [false, true, true, true, false]);
        let more = Slack { share: 0.1, more: 1.0 };
        assert_eq!([7.9, 8.0, 23.0, 23.1].map(|x| agrees(x, more)), [false, true, true, false]);
    }

    #[test]
    fn what_some_runs_of_the_kernel_lack_ours_may_lack_and_what_all_have_it_may_not() {
        let tenth = Slack { share: 0.1, more: 0.0 };
        let lacks = |kernel: &[Option<f64>]| Figure::new("x", &[None, None, None], kernel, tenth).agrees;
        assert!(lacks(&[None, None]) && lacks(&[Some(1.0), None]));
        assert!(!lacks(&[Some(1.0), Some(1.0)]));
        assert!(!Figure::new("x", &[Some(1.0)], &[None, None], tenth).agrees, "nor have what none has");
    }
}
