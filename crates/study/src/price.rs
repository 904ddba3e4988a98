//! What a startup costs in a figure, run by run: in how many runs it is worse than another, and by how much.
//!
//! A median hides mixtures: of 20 runs without a loss and 10 with 3,000 it is 0. So a price is a share of runs.

use crate::stats::wilson;

/// One run in so many that pays is a price. As fewer pay, the upper end of the 95 % interval of the median
/// difference is within the margin too: with 20 runs it is the sixth greatest, with six the greatest.
pub const RARE: usize = 20;

/// What one startup pays against another in a figure, over the runs that both have.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// Runs that both have, and in which the other gets there or neither does.
    pub runs: usize,
    /// Runs in which only this one gets there: what stalls loses little and waits for nobody, so that they show
    /// no price.
    pub left_out: usize,
    /// Runs in which it is worse by more than the margin.
    pub pays: usize,
    /// Runs in which it is better by more than the margin.
    pub spares: usize,
    /// The most by which it is worse, in the unit of the figure; 0 if no run pays.
    pub most: f64,
    /// Runs that do not show what it would pay: nothing was observed, or the transfer ended before the
    /// startup did.
    pub unseen: usize,
}

impl Price {
    /// Collects the differences of runs, positive if worse; `None` for a run that does not show any.
    pub fn of(differences: impl IntoIterator<Item = Option<f64>>, margin: f64) -> Self {
        let mut price = Self::default();
        for difference in differences {
            price.runs += 1;
            match difference {
                None => price.unseen += 1,
                Some(by) if by > margin => {
                    price.pays += 1;
                    price.most = price.most.max(by);
                }
                Some(by) => price.spares += usize::from(by < -margin),
            }
        }
        price
    }

    /// True if so many runs pay that it counts.
    pub const fn is_paid(&self) -> bool {
        self.runs > 0 && self.pays * RARE >= self.runs
    }

    /// True if [it is paid](Self::is_paid), and more runs pay than spare, at 95 % confidence.
    pub fn is_certain(&self) -> bool {
        let unlike = (self.pays + self.spares) as f64;
        self.is_paid() && wilson(self.pays as f64 / unlike, unlike).1 > 50.0
    }

    /// True if nobody knows: it is not paid, and too many runs do not show it.
    pub const fn is_unseen(&self) -> bool {
        !self.is_paid() && (self.pays + self.unseen) * RARE >= self.runs
    }

    /// True if it is known to cost nothing.
    pub const fn is_nothing(&self) -> bool {
        !self.is_paid() && !self.is_unseen()
    }

    /// True if it pays, and in more runs than it spares: where both are noise, neither is worse.
    pub const fn outweighs(&self) -> bool {
        self.is_paid() && self.pays > self.spares
    }

    /// `every run`, `10 of 30 runs`, or `10 of the 28 runs in which both complete`.
    pub fn share(&self, some: usize) -> String {
        match self.left_out {
            0 => share(some, self.runs),
            _ if some == self.runs => "every run in which both complete".to_string(),
            _ => format!("{some} of the {} runs in which both complete", self.runs),
        }
    }
}

/// `every run`, or `10 of 30 runs`.
pub fn share(some: usize, of: usize) -> String {
    if some == of { "every run".to_string() } else { format!("{some} of {of} runs") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_in_twenty_is_a_price() {
        let of = |paying: usize, runs: usize| {
            Price::of((0..runs).map(|i| Some(if i < paying { 3000.0 } else { 0.0 })), 10.0)
        };
        assert!(of(0, 6).is_nothing() && of(1, 6).is_paid());
        assert!(of(1, 30).is_nothing() && of(2, 30).is_paid() && of(1, 20).is_paid());
        let shares = [of(10, 30).share(10), of(6, 6).share(6), Price { left_out: 2, ..of(1, 10) }.share(1)];
        assert_eq!(shares, ["10 of 30 runs", "every run", "1 of the 10 runs in which both complete"]);
    }

    #[test]
    fn what_is_not_shown_is_not_nothing() {
        let half = Price::of((0..10).map(|i| (i % 2 == 0).then_some(0.0)), 10.0);
        assert!(half.is_unseen() && !half.is_nothing() && !half.is_paid());
        let none = Price::of([], 10.0);
        assert!(none.is_unseen() && !none.is_nothing(), "nothing was measured");
    }
}
