//! The distributions of netem's delay: the tables that `tc` sends to the kernel, computed. Each has 4096
//! quantiles in 1/8192 of a deviation. The fourth, `experimental`, was measured, and is not here.

use std::sync::LazyLock;

/// Number of entries.
const ENTRIES: usize = 4096;
/// A deviation, as the kernel has it (`NETEM_DIST_SCALE`).
pub(super) const SCALE: i64 = 8192;

/// A distribution other than the uniform one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::path) enum Distribution {
    Normal,
    Pareto,
    ParetoNormal,
}

impl Distribution {
    /// The distribution of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "normal" => Some(Self::Normal),
            "pareto" => Some(Self::Pareto),
            "paretonormal" => Some(Self::ParetoNormal),
            _ => None,
        }
    }

    /// Its quantiles.
    pub(super) fn table(self) -> &'static [i16] {
        static NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| {
            // The first lies below what 16 bits hold.
            (0..ENTRIES).map(|i| normal(i).max(i64::from(i16::MIN)) as i16).collect()
        });
        static PARETO: LazyLock<Vec<i16>> =
            LazyLock::new(|| (0..ENTRIES).map(|i| pareto(i) as i16).collect());
        static BOTH: LazyLock<Vec<i16>> = LazyLock::new(|| {
            let quarters = |i| normal(i) + 3 * pareto(i);
            (0..ENTRIES).map(|i| (quarters(i) / 4) as i16).collect()
        });
        match self {
            Self::Normal => &NORMAL,
            Self::Pareto => &PARETO,
            Self::ParetoNormal => &BOTH,
        }
    }
}

/// The quantile of (i + 1/8) / 4096 of the normal distribution, rounded down to 1/20,000 of a deviation.
fn normal(i: usize) -> i64 {
    const STEPS: f64 = 20_000.0;
    let share = (i as f64 + 0.125) / ENTRIES as f64;
    let below = |step: i64| {
        let x = step as f64 / STEPS;
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    };
    // Four and a half deviations hold all quantiles.
    let (mut low, mut high) = (-90_000, 90_000);
    while high - low > 1 {
        let middle = i64::midpoint(low, high);
        if below(middle) <= share {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::rint(low as f64 / STEPS * SCALE as f64) as i64
}

/// The quantile of i / 4096 of the Pareto distribution with exponent 3, less its mean, in deviations of 3/4.
fn pareto(i: usize) -> i64 {
    let above = 1.0 - i as f64 / ENTRIES as f64;
    let value = (libm::pow(above, -1.0 / 3.0) - 1.5) * 4.0 / 3.0;
    libm::rint((value * SCALE as f64).min(f64::from(i16::MAX))) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_tc() {
        let all = [
            ("normal", [-32768, -28307, -26871, 26164, 27159, 28858]),
            ("pareto", [-5461, -5460, -5460, 32767, 32767, 32767]),
            ("paretonormal", [-12305, -11171, -10812, 31116, 31365, 31789]),
        ];
        for (name, ends) in all {
            let table = Distribution::named(name).expect("a name").table();
            let (first, last) = (&table[..3], &table[ENTRIES - 3..]);
            assert_eq!([first, last].concat(), ends, "{name}");
            assert!(table.is_sorted());
            let folders = ["/usr/lib/tc", "/usr/lib64/tc", "/usr/lib/x86_64-linux-gnu/tc", "/usr/share/tc"];
            let file =
                folders.iter().find_map(|f| slowstart_files::read_kernel(format!("{f}/{name}.dist")).ok());
            let Some(text) = file else {
                println!("skipped: {name}.dist (no iproute2)");
                continue;
            };
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let numbers = lines.flat_map(str::split_whitespace).map(|n| n.parse::<i16>().expect("a number"));
            assert!(numbers.eq(table.iter().copied()), "{name}");
        }
    }
}
