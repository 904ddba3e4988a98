//! What was observed in a run, of the measures that a criterion may name.

use slowstart_study::measures::Measure;
use slowstart_study::run::Outcome;

/// The values of a run; what was not observed has none.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Observed {
    values: [Option<f64>; Measure::ALL.len()],
    /// True if the controller broke a rule, after which the run ended: it has no values.
    pub broken: bool,
    late: bool,
}

impl Observed {
    /// What an engine observed.
    pub fn of(outcome: &Outcome) -> Self {
        let row = &outcome.row;
        let mut all = Self { broken: outcome.measured.broken.is_some(), ..Self::default() };
        if all.broken {
            return all;
        }
        for m in Measure::of_rows() {
            all.set(m, m.of(row));
        }
        // A transfer that never completes is later than any other.
        if row.size_bytes.is_some() && row.completion_s.is_none() {
            all.set(Measure::Completion, Some(f64::INFINITY));
        }
        all
    }

    /// Nothing, since an engine on the real clock was too late: another run might observe something.
    pub fn late() -> Self {
        Self { late: true, ..Self::default() }
    }

    /// True if the engine was too late to observe anything.
    pub const fn is_late(&self) -> bool {
        self.late
    }

    /// The value of a measure.
    pub const fn get(&self, m: Measure) -> Option<f64> {
        self.values[m as usize]
    }

    /// Only the values of these measures.
    #[must_use]
    pub fn only(self, of: &[Measure]) -> Self {
        let mut all = Self::default();
        for m in of {
            all.set(*m, self.get(*m));
        }
        all
    }

    /// These values, and those of `other` where they have none.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.values.iter_mut().zip(other.values).for_each(|(value, other)| *value = value.or(other));
        self
    }

    /// Sets the value of a measure.
    pub const fn set(&mut self, m: Measure, value: Option<f64>) {
        self.values[m as usize] = value;
    }
}
