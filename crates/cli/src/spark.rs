//! Sparklines: a quantity over time in one row of a terminal.

use crate::compare::Drawn;
use crate::table::Comparison;
use slowstart::units::Span;
use slowstart_lab::report::words;
use slowstart_lab::scenario::Study;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns `values` as bars in at most `width` columns; `max` is the full height. A column shows the greatest of its
/// values; values that are no numbers are gaps.
pub(crate) fn spark(values: &[f64], width: usize, max: f64) -> String {
    let columns = width.min(values.len());
    let column = |i: usize| {
        let part = &values[i * values.len() / columns..(i + 1) * values.len() / columns];
        let peak = part.iter().copied().filter(|v| !v.is_nan()).reduce(f64::max);
        // If `max` is 0, the quotient is no number, and the cast makes it 0: the lowest bar.
        peak.map_or(' ', |v| BLOCKS[((v / max * 8.0).ceil() as usize).clamp(1, 8) - 1])
    };
    (0..columns).map(column).collect()
}

/// Width of a sparkline, in characters; less on a terminal that is too narrow.
const SPARK: usize = 48;

/// Base round-trip times that sparklines show after the last exit.
const SPARK_RTTS: f64 = 4.0;

/// The window of each line's first startup over time, on one scale, from the start until all of them have exited and
/// [`SPARK_RTTS`] round-trip times more; over the whole transfer if none exits.
pub(crate) fn windows(study: &Study, comparison: &Comparison, drawn: &[Drawn], width: usize) -> String {
    let lines: Vec<(String, &Drawn)> = comparison
        .lines
        .iter()
        .filter_map(|l| Some((l.name(30), drawn.iter().find(|d| d.label == l.labels[0])?)))
        .collect();
    let longest =
        |of: &dyn Fn(&Drawn) -> Option<f64>| lines.iter().filter_map(|(_, d)| of(d)).reduce(f64::max);
    let whole = longest(&|d| Some(d.row.duration_s)).unwrap_or(0.0);
    let exits = longest(&|d| Some(d.row.exit.as_ref()?.left_s + SPARK_RTTS * d.row.base_rtt_s));
    let until = exits.unwrap_or(whole).min(whole);
    let names = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let bars = SPARK.min(width.saturating_sub(names + 2)).max(8);
    let start = Span(study.start().0).as_secs_f64();
    let window = |d: &Drawn| -> Vec<f64> {
        let mut columns = vec![0.0; bars];
        for s in &d.trace.samples {
            let at = (((s.time_s - start) / until) * bars as f64) as usize;
            if let Some(c) = columns.get_mut(at) {
                *c = f64::max(*c, s.cwnd_bytes as f64);
            }
        }
        columns
    };
    let windows: Vec<Vec<f64>> = lines.iter().map(|(_, d)| window(d)).collect();
    let max = windows.iter().flatten().copied().fold(1.0, f64::max);
    let bdp = lines.first().map_or(1.0, |(_, d)| d.row.bdp_bytes as f64);
    let until = words::number(until);
    let scope = if exits.is_some() { "until the last exit" } else { "no exits" };
    let mut text = format!("cwnd over the first {until} s ({scope}); full height is {:.1} BDP\n", max / bdp);
    for ((name, _), w) in lines.iter().zip(&windows) {
        text = format!("{text}{name:names$}  {}\n", spark(w, bars, max));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_shares_of_the_full_height() {
        let values: Vec<f64> = (0..=8).map(f64::from).collect();
        assert_eq!(spark(&values, 9, 8.0), "▁▁▂▃▄▅▆▇█");
        assert_eq!(spark(&values, 9, 4.0), "▁▂▄▆█████");
    }

    #[test]
    fn peaks_survive() {
        let mut values = vec![0.0; 1000];
        values[777] = 1.0;
        assert_eq!(spark(&values, 10, 1.0), "▁▁▁▁▁▁▁█▁▁");
        // No column is empty where values do not divide evenly.
        assert_eq!(spark(&[1.0; 7], 5, 1.0), "█████");
    }

    #[test]
    fn edge_cases() {
        assert_eq!(spark(&[], 10, 1.0), "");
        assert_eq!(spark(&[1.0], 0, 1.0), "");
        assert_eq!(spark(&[0.0, f64::NAN, -1.0, f64::INFINITY], 4, 1.0), "▁ ▁█");
        assert_eq!(spark(&[0.0, 0.0], 2, 0.0), "▁▁");
    }
}
