//! The rate of the forward link, as written.

use std::sync::Arc;

use slowstart::units::{Instant, Rate, Span};

use super::super::trace::Trace;

/// The rate of a link that holds nothing back: a packet takes less than a nanosecond.
pub(in crate::path) const UNLIMITED: Rate = Rate(100_000_000_000_000);

/// The rate of the forward link, over time.
#[derive(Clone, Debug)]
pub(super) enum Supply {
    Steps(Arc<[(Instant, Rate)]>),
    Drawn { mean: Rate, spread: Rate, period: Span },
    Trace(Arc<Trace>),
}

impl Supply {
    /// A link that holds nothing back.
    pub(super) fn unlimited() -> Self {
        Self::Steps([(Instant::ZERO, UNLIMITED)].into())
    }

    pub(super) fn mean(&self) -> Rate {
        match self {
            Self::Steps(steps) => {
                // The last step has no end; it counts as long as the one before it.
                let ends = steps.iter().skip(1).map(|(at, _)| *at);
                let last = match **steps {
                    [.., (a, _), (b, _)] => b.since(a),
                    _ => Span(1),
                };
                let end = steps.last().map_or(Instant::ZERO, |(at, _)| *at) + last;
                let work: u128 = steps
                    .iter()
                    .zip(ends.chain([end]))
                    .map(|((from, rate), to)| u128::from(rate.0) * u128::from(to.since(*from).0))
                    .sum();
                Rate((work / u128::from(end.0)) as u64)
            }
            Self::Drawn { mean, .. } => *mean,
            Self::Trace(trace) => trace.mean(),
        }
    }

    pub(super) fn varies(&self) -> bool {
        match self {
            Self::Steps(steps) => steps.len() > 1,
            Self::Drawn { .. } | Self::Trace(_) => true,
        }
    }
}
