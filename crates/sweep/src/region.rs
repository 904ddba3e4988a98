//! Which runs a sweep has, by arithmetic: the run at an index is found without those before it.
//!
//! A run belongs to a point, a startup and a number. Points that differ only in what a startup does not see, a
//! parameter of another, are one for it: it runs at the first of them. So the runs are dense: those of a drawn
//! point, of a place on the axes that all see, of a startup, of a place on its own axes, in this order.

use std::ops::Range;

/// Who sees an axis of the grid.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Every startup.
    All,
    /// Some, by [`Contender::own`].
    Some,
    /// Every startup, and its value decides which startups there are.
    Decides,
}

/// An axis of the grid.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Side {
    /// The number of its values.
    pub(crate) values: usize,
    /// Who sees it.
    pub(crate) seen: Seen,
}

/// A startup where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// Its index in the study.
    pub(crate) index: u32,
    /// The axes of its own, in order.
    pub(crate) own: Vec<usize>,
}

/// The startups that run at a drawn point and a value of the axis that decides.
#[derive(Clone, Debug)]
struct Segment {
    /// The index of its first run.
    first: usize,
    /// The drawn point.
    drawn: usize,
    /// The value of the axis that decides.
    decides: usize,
    /// Which of the casts.
    cast: usize,
}

/// Where a run is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) point: u64,
    pub(crate) contender: u32,
    pub(crate) run: u32,
}

/// All runs of a sweep.
#[derive(Debug, Default)]
pub(crate) struct Region {
    sides: Vec<Side>,
    runs: usize,
    casts: Vec<Vec<Contender>>,
    segments: Vec<Segment>,
    /// The number of runs; at its largest if there are more than fit.
    pub(crate) len: usize,
}

fn product(sizes: impl Iterator<Item = usize>) -> usize {
    sizes.fold(1, usize::saturating_mul)
}

impl Region {
    /// The runs over a grid and `drawn` points, `runs` at each place. `cast` returns the startups that
    /// run at a drawn point and a value of the axis that decides.
    pub(crate) fn new(
        sides: Vec<Side>,
        drawn: usize,
        runs: u32,
        mut cast: impl FnMut(usize, usize) -> Vec<Contender>,
    ) -> Self {
        let decided = product(sides.iter().filter(|s| s.seen == Seen::Decides).map(|s| s.values));
        let mut region = Self { sides, runs: runs as usize, ..Self::default() };
        for drawn in 0..drawn {
            for decides in 0..decided {
                let here = cast(drawn, decides);
                // Most points have the startups of one before them.
                let cast = region.casts.iter().position(|c| *c == here).unwrap_or_else(|| {
                    region.casts.push(here);
                    region.casts.len() - 1
                });
                region.segments.push(Segment { first: region.len, drawn, decides, cast });
                let all = region.places().saturating_mul(region.block(cast));
                region.len = region.len.saturating_add(all);
            }
        }
        region
    }

    /// Places on the axes that all see.
    fn places(&self) -> usize {
        product(self.sides.iter().filter(|s| s.seen == Seen::All).map(|s| s.values))
    }

    /// Runs of a startup at such a place.
    fn of(&self, contender: &Contender) -> usize {
        product(contender.own.iter().map(|i| self.sides[*i].values)).saturating_mul(self.runs)
    }

    /// Runs of all startups at such a place.
    fn block(&self, cast: usize) -> usize {
        self.casts[cast].iter().map(|c| self.of(c)).fold(0, usize::saturating_add)
    }

    /// The number of points, those included at which no startup runs.
    pub(crate) fn points(&self, drawn: usize) -> usize {
        product(self.sides.iter().map(|s| s.values)).saturating_mul(drawn)
    }

    /// The run at an index below [`Region::len`].
    pub(crate) fn at(&self, index: usize) -> Place {
        let segment = &self.segments[self.segments.partition_point(|s| s.first <= index) - 1];
        let block = self.block(segment.cast);
        let (mut place, mut rest) = ((index - segment.first) / block, (index - segment.first) % block);
        let mut contender = &self.casts[segment.cast][0];
        for c in &self.casts[segment.cast] {
            contender = c;
            if rest < self.of(c) {
                break;
            }
            rest -= self.of(c);
        }
        let run = (rest % self.runs) as u32;
        let mut own = rest / self.runs;
        // The last axis changes fastest, in the numbers of points too.
        let (mut point, mut stride) = (0, 1);
        for (i, side) in self.sides.iter().enumerate().rev() {
            let digit = match side.seen {
                Seen::All => digit(&mut place, side.values),
                Seen::Some if contender.own.contains(&i) => digit(&mut own, side.values),
                Seen::Some => 0,
                Seen::Decides => segment.decides,
            };
            point += stride * digit as u64;
            stride *= side.values as u64;
        }
        Place { point: point + stride * segment.drawn as u64, contender: contender.index, run }
    }

    /// Runs of a part, in pieces that are of one point.
    pub(crate) fn pieces(&self, part: Range<usize>) -> impl Iterator<Item = Vec<Place>> {
        let mut all = part.map(|i| self.at(i)).peekable();
        std::iter::from_fn(move || {
            let mut piece = vec![all.next()?];
            while let Some(next) = all.next_if(|p| p.point == piece[0].point) {
                piece.push(next);
            }
            Some(piece)
        })
    }
}

/// Takes the last digit of `rest`, in base `values`.
fn digit(rest: &mut usize, values: usize) -> usize {
    let last = *rest % values;
    *rest /= values;
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every run occurs once, and only where its startup sees something new.
    #[test]
    fn the_runs_are_those_of_an_enumeration() {
        let side = |values, seen| Side { values, seen };
        let sides = vec![
            side(2, Seen::All),
            side(3, Seen::Some),
            side(2, Seen::Decides),
            side(4, Seen::All),
            side(2, Seen::Some),
        ];
        // The second startup is there for one value only; the third runs at even drawn points.
        let cast = |drawn: usize, decides: usize| {
            let mut all = vec![Contender { index: 0, own: vec![] }];
            all.extend((decides == 1).then(|| Contender { index: 1, own: vec![1] }));
            all.extend(drawn.is_multiple_of(2).then(|| Contender { index: 2, own: vec![1, 4] }));
            all
        };
        let region = Region::new(sides, 5, 2, cast);
        let mut expected = BTreeSet::new();
        for point in 0..5 * 2 * 3 * 2 * 4 * 2_u64 {
            let digits = [point / 48 % 2, point / 16 % 3, point / 8 % 2, point / 2 % 4, point % 2];
            for c in cast((point / 96) as usize, digits[2] as usize) {
                let first = [1, 4].iter().all(|i| c.own.contains(i) || digits[*i] == 0);
                for run in (0..2).filter(|_| first) {
                    expected.insert((point, c.index, run));
                }
            }
        }
        let found: Vec<_> = region.pieces(0..region.len).flatten().collect();
        assert_eq!(found.len(), region.len);
        assert_eq!(found.iter().map(|p| (p.point, p.contender, p.run)).collect::<BTreeSet<_>>(), expected);
        assert_eq!(found.len(), expected.len());
        assert_eq!(region.points(5), 480);
    }

    #[test]
    fn more_runs_than_fit_are_counted_as_the_most() {
        let sides = vec![Side { values: usize::MAX / 2, seen: Seen::All }; 2];
        let region = Region::new(sides, 1, 1, |_, _| vec![Contender { index: 0, own: vec![] }]);
        assert_eq!(region.len, usize::MAX);
    }
}
