//! Sparklines: a quantity over time in one row of a terminal.

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
