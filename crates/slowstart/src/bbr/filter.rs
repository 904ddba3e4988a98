//! Maxima over a window.

/// The greatest of the values of the last `window` ticks, from the three best candidates (Kathleen Nichols' algorithm,
/// Linux `win_minmax.c`): constant space, and exact while the greatest is young.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax {
    /// The greatest, and the greatest since it, and since that: each with its tick.
    best: [(u64, u64); 3],
}

impl WindowedMax {
    /// The greatest.
    pub(super) fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Takes a value at `tick`, which never falls.
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
            // The second takes its place; its own may be too old as well.
            self.best = [self.best[1], self.best[2], new];
            if tick - self.best[0].0 > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if second.0 == first.0 && age > window / 4 {
            // A quarter of the window has passed without a second candidate: this one is it.
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > window / 2 {
            *third = new;
        }
    }
}

/// The greatest value of this period and the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct TwoPeriods([u64; 2]);

impl TwoPeriods {
    /// The greatest.
    pub(super) fn get(&self) -> u64 {
        self.0[0].max(self.0[1])
    }
    /// Takes a value.
    pub(super) fn raise(&mut self, value: u64) {
        self.0[1] = self.0[1].max(value);
    }
    /// A period ends: the one before it is forgotten.
    pub(super) fn advance(&mut self) {
        self.0 = [self.0[1], 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Against a filter that keeps everything: never less than the newest value, never more than the true maximum, and
    /// equal to it while values fall slowly enough that a candidate of each quarter suffices.
    #[test]
    fn the_windowed_maximum_is_near_the_true_one() {
        let mut chance = super::super::chance::Chance::new(7);
        for window in [1, 2, 10] {
            let mut filter = WindowedMax::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut tick = 0;
            for _ in 0..20_000 {
                tick += chance.below(3);
                let value = chance.below(1000);
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
        // A greater value takes over at once.
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
