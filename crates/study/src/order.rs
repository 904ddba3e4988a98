//! Ranks and an order of items of which some beat others at 95 % confidence.

/// Which of several items beat which, over any number of steps.
#[derive(Clone, Debug)]
pub struct Order {
    reach: Vec<Vec<bool>>,
}

impl Order {
    /// The order of `n` items. `beats` need not be transitive.
    pub fn new(n: usize, beats: impl Fn(usize, usize) -> bool) -> Self {
        let mut reach: Vec<Vec<bool>> =
            (0..n).map(|i| (0..n).map(|j| i != j && beats(i, j)).collect()).collect();
        for k in 0..n {
            let through = reach[k].clone();
            for row in &mut reach {
                if row[k] {
                    row.iter_mut().zip(&through).for_each(|(r, t)| *r |= t);
                }
            }
        }
        Self { reach }
    }

    /// True if `i` beats `j`, over any number of steps, and not the reverse.
    pub fn is_ahead(&self, i: usize, j: usize) -> bool {
        self.reach[i][j] && !self.reach[j][i]
    }

    /// One more than the number of items that are ahead. Items that beat each other in a circle share a rank.
    pub fn rank(&self, i: usize) -> usize {
        1 + (0..self.reach.len()).filter(|j| self.is_ahead(*j, i)).count()
    }

    /// The items: `first`; then by their `costs`, least first, but none behind one that it is ahead of; those
    /// that are `apart` in the same way after all others. Equals stay in their order.
    pub fn sorted(&self, first: usize, apart: &[bool], costs: &[f64]) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.reach.len()).filter(|i| *i != first).collect();
        left.sort_by(|a, b| apart[*a].cmp(&apart[*b]).then(costs[*a].total_cmp(&costs[*b])));
        let mut order = vec![first];
        while !left.is_empty() {
            let is_free = |j: &usize| !left.iter().any(|i| apart[*i] == apart[*j] && self.is_ahead(*i, *j));
            let free = left.iter().position(is_free).unwrap_or(0);
            order.push(left.remove(free));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_beats_whom_decides_before_costs() {
        // 3 beats 2, which beats 1; 0 is the first.
        let order = Order::new(5, |i, j| (i, j) == (3, 2) || (i, j) == (2, 1));
        assert_eq!(order.sorted(0, &[false; 5], &[9.0, 1.0, 2.0, 3.0, 1.5]), [0, 4, 3, 2, 1]);
        assert_eq!([0, 1, 2, 3, 4].map(|i| order.rank(i)), [1, 3, 2, 1, 1]);
        let apart = [false, false, true, true, false];
        assert_eq!(order.sorted(0, &apart, &[9.0, 1.0, 2.0, 3.0, 1.5]), [0, 1, 4, 3, 2]);
    }

    #[test]
    fn a_circle_shares_its_rank() {
        let order = Order::new(4, |i, j| j == (i + 1) % 3 && i < 3 || (i, j) == (1, 3));
        assert_eq!([0, 1, 2, 3].map(|i| order.rank(i)), [1, 1, 1, 4]);
        assert!(!order.is_ahead(0, 1) && order.is_ahead(0, 3));
    }
}
