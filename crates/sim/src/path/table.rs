//! A trace as a table (CSV): a header, and a row for each change. Columns are found by their names, in any
//! order: `time_s` or `time_ms`; `rate_bps`, `rate_kbps` or `rate_mbps`; `delay_s` or `delay_ms`, of one
//! direction; `loss`, a share, or `loss_percent`. Others are not read.
//!
//! A row holds until the next, and the last as long as the one before it. The table then repeats, after a whole
//! number of slots of 10 ms.

use slowstart::units::{Fixed, NS_PER_S, Span};

use super::error::PathError;
use super::quantity;

/// What a column says: the names it may have, each with the factor and the divisor that make of a millionth of
/// its unit one of ours.
pub(super) struct Column {
    names: &'static [(&'static str, u64, u64)],
    /// The greatest value.
    most: u64,
    expected: &'static str,
}

const TIME: Column = Column {
    names: &[("time_s", 1000, 1), ("time_ms", 1, 1)],
    most: 1_000_000 * NS_PER_S,
    expected: "a time above that of the row before",
};
/// Bits a second.
pub(super) const RATE: Column = Column {
    names: &[("rate_bps", 1, 1_000_000), ("rate_kbps", 1, 1000), ("rate_mbps", 1, 1)],
    most: 1_000_000_000_000,
    expected: "a rate, not above 1 Tbit/s",
};
/// Nanoseconds in one direction.
pub(super) const DELAY: Column = Column {
    names: &[("delay_s", 1000, 1), ("delay_ms", 1, 1)],
    most: 1000 * NS_PER_S,
    expected: "a delay, not above 1000 seconds",
};
/// The share lost, in millionths.
pub(super) const LOSS: Column = Column {
    names: &[("loss", 1, 1), ("loss_percent", 1, 100)],
    most: Fixed::ONE as u64,
    expected: "a share from 0 to 1, or a percentage from 0 to 100",
};

/// What a table looks like.
pub(super) const EXPECTED: &str =
    "a table with a header that names its columns, such as time_s,rate_mbps,delay_ms,loss";
/// The slot in which values are taken where they are needed often.
pub(super) const SLOT: Span = Span::millis(10);
/// The most slots of a table: a day.
const MOST_SLOTS: u64 = 8_640_000;

/// A column over time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// When each value begins to hold, and the value; the first at zero.
    pub(super) rows: Vec<(Span, u64)>,
    /// When the table repeats.
    pub(super) period: Span,
}

/// True if a text is a table: its first line has a letter.
pub(super) fn is_table(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains(|c: char| c.is_ascii_alphabetic()))
}

impl Column {
    fn place(&self, file: &str, header: &[&str]) -> Result<(usize, u64, u64), PathError> {
        let found = self.names.iter().find_map(|(name, factor, divisor)| {
            header.iter().position(|h| h == name).map(|i| (i, *factor, *divisor))
        });
        found.ok_or_else(|| {
            let names: Vec<&str> = self.names.iter().map(|n| n.0).collect();
            let has: String = header.join(",").chars().take(80).collect();
            let why = format!("no column {}; its header is {has}", names.join(" or "));
            PathError::File { file: file.into(), why, expected: EXPECTED }
        })
    }

    /// Reads this column of a table.
    pub(super) fn read(&self, file: &str, text: &str) -> Result<Steps, PathError> {
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
        let (time, value) = (TIME.place(file, &header)?, self.place(file, &header)?);
        let mut rows: Vec<(Span, u64)> = Vec::new();
        let mut first = Span::ZERO;
        for (i, line) in lines.enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let bad = |column: &Column| PathError::Line {
                file: file.into(),
                line: i + 2,
                found: line.chars().take(40).collect(),
                expected: column.expected.into(),
            };
            let cell = |(place, factor, divisor): (usize, u64, u64), most: u64| {
                let value = quantity::decimal(cells.get(place)?)?.checked_mul(factor)? / divisor;
                (value <= most).then_some(value)
            };
            let at = Span(cell(time, TIME.most).ok_or_else(|| bad(&TIME))?);
            let value = cell(value, self.most).ok_or_else(|| bad(self))?;
            if rows.is_empty() {
                first = at;
            }
            if rows.last().is_some_and(|(last, _)| at <= first + *last) {
                return Err(bad(&TIME));
            }
            rows.push((at - first, value));
        }
        let [.., (before, _), (last, _)] = rows[..] else {
            let why = "less than two rows".to_string();
            return Err(PathError::File { file: file.into(), why, expected: EXPECTED });
        };
        let slots = (last + (last - before)).0.div_ceil(SLOT.0);
        if slots > MOST_SLOTS {
            let why = "longer than a day".to_string();
            return Err(PathError::File { file: file.into(), why, expected: EXPECTED });
        }
        Ok(Steps { rows, period: SLOT * slots })
    }
}

impl Steps {
    /// The values at the beginning of each slot of 10 ms.
    pub(super) fn slots(&self) -> Vec<u64> {
        let mut rows = self.rows.iter().peekable();
        let mut value = 0;
        let at = (0..self.period.0 / SLOT.0).map(|slot| SLOT * slot);
        at.map(|at| {
            while let Some((_, new)) = rows.next_if(|(begins, _)| *begins <= at) {
                value = *new;
            }
            value
        })
        .collect()
    }

    /// The milliseconds in which 1500-byte packets are complete at these rates, up to the end of the period,
    /// which counts as one; `None` if there are more than `most`.
    pub(super) fn opportunities(&self, most: usize) -> Option<Vec<u32>> {
        // Bits times nanoseconds a second.
        const PACKET: u128 = 12_000 * NS_PER_S as u128;
        let ends = self.rows.iter().skip(1).map(|r| r.0).chain([self.period]);
        let spans = || {
            self.rows
                .iter()
                .zip(ends.clone())
                .map(|((from, rate), to)| (*from, to - *from, u128::from(*rate)))
        };
        let all: u128 = spans().map(|(_, took, rate)| rate * u128::from(took.0)).sum();
        if all / PACKET >= most as u128 {
            return None;
        }
        let mut times = Vec::with_capacity((all / PACKET) as usize + 1);
        let mut done = 0;
        for (from, took, rate) in spans() {
            let (mut at, end) = (from, from + took);
            // When the packet under way is complete at this rate, if it is by the end of the row.
            let complete = |at: Span, done: u128| {
                let need = (PACKET - done).div_ceil(rate.max(1)).min(1 << 62) as u64;
                (rate > 0 && need <= (end - at).0).then(|| at + Span(need))
            };
            while let Some(next) = complete(at, done) {
                done = (done + rate * u128::from((next - at).0)).saturating_sub(PACKET);
                at = next;
                times.push(at.0.div_ceil(1_000_000) as u32);
            }
            done += rate * u128::from((end - at).0);
        }
        let last = (self.period.0 / 1_000_000) as u32;
        if times.last() != Some(&last) {
            times.push(last);
        }
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "loss_percent, delay_ms ,x,rate_mbps,time_s\n0,20,?,12,100\n2.5,70.5,,24,100.02\n\n";

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let steps = |column: &Column| column.read("t", TEXT).expect("a table");
        let ms = Span::millis;
        let of = |a: u64, b: u64| Steps { rows: vec![(ms(0), a), (ms(20), b)], period: ms(40) };
        assert_eq!(steps(&RATE), of(12_000_000, 24_000_000));
        assert_eq!(steps(&DELAY), of(20_000_000, 70_500_000));
        assert_eq!(steps(&LOSS), of(0, 25_000));
        assert_eq!(steps(&DELAY).slots(), [20_000_000, 20_000_000, 70_500_000, 70_500_000]);
    }

    /// 12 Mbit/s are a packet of 1500 bytes a millisecond, 24 Mbit/s two.
    #[test]
    fn rates_are_opportunities() {
        let steps = RATE.read("t", TEXT).expect("a table");
        let times = steps.opportunities(1000).expect("few");
        let want: Vec<u32> = (1..=20).chain((21..=40).flat_map(|ms| [ms, ms])).collect();
        assert_eq!(times, want);
        assert_eq!(steps.opportunities(59), None);
        let idle = RATE.read("t", "time_ms,rate_bps\n0,0\n10,0").expect("a table");
        assert_eq!(idle.opportunities(10), Some(vec![20]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let why = |text: &str| DELAY.read("t.csv", text).expect_err("wrong").to_string();
        assert!(why("time_s,rate_bps\n0,1\n1,1").contains("delay_s or delay_ms"));
        for (text, part) in [
            ("time_s,delay_ms\n0,1\n0,1", "above that of the row before"),
            ("time_s,delay_ms\n0,1\n1,-1", "a delay"),
            ("time_s,delay_ms\n0,1\n1", "a delay"),
            ("time_s,delay_ms\n0,1", "less than two rows"),
            ("time_s,delay_ms\n0,1\n99999999,1", "a time"),
            ("time_s,delay_ms\n0,1\n90000,1", "longer than a day"),
        ] {
            assert!(why(text).contains(part), "{text}: {}", why(text));
        }
        assert!(is_table("time,rate\n") && !is_table("12\n13\n") && !is_table(""));
    }
}
