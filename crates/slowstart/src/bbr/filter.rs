//! Maximum filters.

/// The maximum of the values of the last `window` ticks, from the three best candidates (Kathleen Nichols'
/// algorithm, Linux `win_minmax.c`): constant space, and exact while the maximum is recent.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax {
    /// The maximum, the maximum since it, and the maximum since that, each as (tick, value).
    best: [(u64, u64); 3],
}

impl WindowedMax {
    /// Returns the maximum, or 0 without values.
    pub(super) fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Adds a value at `tick`. Ticks must not decrease.
    pub(super) fn raise(&mut self, window: u64, tick: u64, value: u64) {
        let new = (tick, value);
        let [first, second, third] = &mut self.best;
        if value >= first.1 || tick - third.0 > window {
            self.best = [new; 3];
            return;
        }
        if value >= second.1 {
            (*second, *third) = (new, new);
        } else if value >= third.1 {
            *third = new;
        }
        let age = tick - first.0;
        if age > window {
            // The second becomes the first; it may be too old as well.
            self.best = [self.best[1], self.best[2], new];
            if tick - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if second.0 == first.0 && age > window / 4 {
            // A quarter of the window has passed without a second candidate.
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > window / 2 {
            *third = new;
        }
    }
}

/// The maximum of the current period and the one before it.
#[derive(Clone, Debug, Default)]
pub(super) struct TwoPeriods([u64; 2]);

impl TwoPeriods {
    /// Returns the maximum, or 0 without values.
    pub(super) fn get(&self) -> u64 {
        self.0[0].max(self.0[1])
    }
    /// Adds a value.
    pub(super) fn raise(&mut self, value: u64) {
        self.0[1] = self.0[1].max(value);
    }
    /// Begins a new period.
    pub(super) fn advance(&mut self) {
        self.0 = [self.0[1], 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Compares with a filter that keeps all values: never less than the newest value and never more than the
    /// exact maximum.
    #[test]
    fn the_windowed_maximum_is_near_the_true_one() {
        let mut random = super::super::random::Random::new(7);
        for window in [1, 2, 10] {
            let mut filter = WindowedMax::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut tick = 0;
            for _ in 0..20_000 {
                tick += random.below(3);
                let value = random.below(1000);
                filter.raise(window, tick, value);
                all.push((tick, value));
                all.retain(|(t, _)| tick - t <= window);
                let most = all.iter().map(|(_, v)| *v).max().unwrap_or(0);
                assert!(value <= filter.get() && filter.get() <= most, "{value} {} {most}", filter.get());
            }
        }
    }

    #[test]
    fn a_maximum_lasts_as_long_as_its_window() {
        let mut filter = WindowedMax::default();
        filter.raise(10, 0, 100);
        for tick in 1..=10 {
            filter.raise(10, tick, 50);
            assert_eq!(filter.get(), 100, "at {tick}");
        }
        filter.raise(10, 11, 50);
        assert_eq!(filter.get(), 50);
        // A larger value replaces the maximum at once.
        filter.raise(10, 12, 60);
        assert_eq!(filter.get(), 60);
    }

    #[test]
    fn two_periods_forget_the_third() {
        let mut filter = TwoPeriods::default();
        filter.raise(5);
        filter.raise(3);
        filter.advance();
        filter.raise(4);
        assert_eq!(filter.get(), 5);
        filter.advance();
        assert_eq!(filter.get(), 4);
        filter.advance();
        assert_eq!(filter.get(), 0);
    }
}
