//! Claims that are arithmetic: rounds of window growth, and the closed form of SEARCH's rule.

/// Number of rounds in which limited slow start (RFC 3742) brings the window from one segment to `target`
/// segments. The window doubles up to `limit` segments and then grows by half of `limit` each round trip.
pub fn limited_rounds(target: f64, limit: f64) -> f64 {
    let (mut window, mut rounds) = (1.0, 0.0);
    while window < target {
        window += if window < limit { window } else { limit / 2.0 };
        rounds += 1.0;
    }
    rounds
}

/// Number of rounds in which a window that doubles grows from `initial` to `target` segments (ESS, equation
/// 1).
pub fn doubling_rounds(initial: f64, target: f64) -> f64 {
    (target / initial).log2()
}

/// Delivered data up to `x` round trips after capacity was reached, in BDPs, for a rate that doubles each
/// round trip until then and stays constant afterwards.
fn delivered(x: f64) -> f64 {
    if x <= 0.0 { x.exp2() / std::f64::consts::LN_2 } else { 1.0 / std::f64::consts::LN_2 + x }
}

/// SEARCH's normalised difference, `r` round trips after capacity, with a window of `w` round trips (thesis
/// 4.5.2, equations 4.1 to 4.3). Each of the two windows is evaluated separately, because the printed cases
/// mix them.
pub fn search_difference(w: f64, r: f64) -> f64 {
    let now = delivered(r) - delivered(r - w);
    let before = delivered(r - 1.0) - delivered(r - 1.0 - w);
    (2.0 * before - now) / (2.0 * before)
}

/// The time at which the normalised difference reaches `threshold`, in round trips after capacity; `None` if
/// it never does.
pub fn search_crossing(w: f64, threshold: f64) -> Option<f64> {
    if threshold >= 0.5 {
        return None;
    }
    let (mut low, mut high) = (-1.0, w + 2.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if search_difference(w, middle) < threshold {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_by_hand() {
        // Computed by hand for the continuous model: a row for each window, a column for each time after
        // capacity.
        let expected = [
            (2.0, [0.064, 0.205, 0.329, 0.419, 0.480, 0.500]),
            (3.5, [0.052, 0.168, 0.267, 0.330, 0.376, 0.416]),
            (5.0, [0.049, 0.158, 0.251, 0.307, 0.345, 0.374]),
        ];
        for (w, row) in expected {
            for (i, want) in row.into_iter().enumerate() {
                let got = search_difference(w, 0.5 * (i + 1) as f64);
                assert!((got - want).abs() < 6e-4, "w {w}: {got}, not {want}");
            }
        }
        for (w, at35, at26) in [(2.0, 1.61, 1.19), (3.5, 2.20, 1.45), (5.0, 2.58, 1.57)] {
            let (a, b) = (search_crossing(w, 0.35), search_crossing(w, 0.26));
            assert!(a.is_some_and(|a| (a - at35).abs() < 0.02), "{a:?}, not {at35}");
            assert!(b.is_some_and(|b| (b - at26).abs() < 0.02), "{b:?}, not {at26}");
        }
        assert_eq!(search_crossing(2.0, 0.5), None);
    }

    #[test]
    fn limited_slow_start_takes_the_rounds_that_its_rfc_says() {
        assert!((limited_rounds(5000.0, 100.0) - 105.0).abs() < 1.1);
    }
}
