//! Reference senders: they know the path, as the oracle does, but obey rules that a real sender obeys too.
//!
//! The oracle sends at the rate of the path from its first packet on, which no sender can. A reference begins
//! with an initial window of ten packets and has a window for each round trip, which its class determines; it
//! never loses a packet, and stops growing exactly where the path is full:
//!
//! | class | window of a round trip |
//! |---|---|
//! | `doubling` | twice the last |
//! | `2.5` | two and a half times the last |
//! | `jump` | from the second on what fills the path |
//!
//! No window exceeds the receiver's, which is 64 kB in the first round trip and doubles with each
//! (right-sizing). Once the window fills the path, what remains takes the time that the link needs for it:
//!
//! ```text
//! time(B) = 2 RTT + n RTT + link time of B * (B - sent in the n round trips before) / B
//! ```
//!
//! The link time is the oracle's, so that schedules and drawn rates are in it on average. Where an
//! application writes bit by bit the reference is at least the oracle.

use crate::game::GameRow;
use crate::score::figure;
use crate::sheet::{ABSENT, Sheet, mean};
use slowstart_study::words::marked;

/// A class of reference senders.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// Doubles each round trip.
    Doubling,
    /// Grows by two and a half.
    Faster,
    /// Fills the path after the first round trip.
    Jump,
}

/// The initial window in bytes: ten packets (RFC 6928).
const INITIAL: f64 = 14_480.0;
/// The receiver's first window.
const RECEIVE: f64 = 65_536.0;
/// Startups that may grow by more than doubling, and those that jump.
const FASTER: [&str; 7] =
    ["rate-bound", "rapid-start", "rapid-start-00", "suss", "bbr", "bbr3", "bbr2-quiche"];
const JUMP: [&str; 7] =
    ["ess", "hybla", "jump-start", "quick-start", "halfback", "stateful", "careful-resume"];

impl Reference {
    /// All, from the slowest.
    pub const ALL: [Self; 3] = [Self::Doubling, Self::Faster, Self::Jump];

    /// The class of a startup, by its name in the registry: how it may grow by its own rules.
    pub fn of(startup: &str) -> Self {
        let name = startup.split(':').next().unwrap_or(startup);
        if FASTER.contains(&name) {
            Self::Faster
        } else if JUMP.contains(&name) {
            Self::Jump
        } else {
            Self::Doubling
        }
    }

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Doubling => "doubling",
            Self::Faster => "2.5",
            Self::Jump => "jump",
        }
    }

    /// The seconds until its receiver has so many bytes in the case of this row, if that is a milestone.
    pub fn time(self, row: &GameRow, bytes: u64) -> Option<f64> {
        let oracle = *row.oracle_s.get(&bytes.to_string())?;
        let (rtt, full, all) = (row.base_rtt_s, row.bdp_bytes as f64, bytes as f64);
        let link = (oracle - 2.0 * rtt).max(0.0);
        let (mut window, mut receive, mut sent, mut rounds) = (INITIAL, RECEIVE, 0.0, 0.0);
        while window.min(receive) < full && sent + window.min(receive) < all {
            sent += window.min(receive);
            rounds += 1.0;
            receive *= 2.0;
            window = match self {
                Self::Doubling => window * 2.0,
                Self::Faster => window * 2.5,
                Self::Jump => full,
            };
        }
        let time = (2.0 + rounds) * rtt + link * (all - sent) / all;
        Some(time.max(oracle))
    }
}

/// The milestones of the table.
const MILESTONES: [u64; 3] = [100_000, 1_000_000, 10_000_000];

/// The table of distances: the references' time over the oracle's, then each startup's over that of the
/// reference of its class.
pub fn distance(rows: &[GameRow], population: Option<&str>) -> Sheet {
    let rows: Vec<&GameRow> = rows.iter().filter(|r| population.is_none_or(|p| r.population == p)).collect();
    let mut names: Vec<&str> = Vec::new();
    for r in &rows {
        if !names.contains(&r.startup.as_str()) {
            names.push(&r.startup);
        }
    }
    let cells = |value: &dyn Fn(&GameRow, u64) -> Option<f64>, own: &dyn Fn(&GameRow) -> bool| {
        MILESTONES.map(|b| {
            let all: Vec<f64> = rows.iter().filter(|r| own(r)).filter_map(|r| value(r, b)).collect();
            figure(&all).map_or(ABSENT.to_string(), |f| mean(f.mean))
        })
    };
    let first = names.first().copied().unwrap_or_default();
    let mut lines: Vec<Vec<String>> = Vec::new();
    for reference in Reference::ALL {
        let over = |r: &GameRow, b| Some(reference.time(r, b)? / r.oracle_s.get(&b.to_string())?);
        let mut line = vec![format!("({})", reference.name()), "reference".into()];
        line.extend(cells(&over, &|r| r.startup == first));
        lines.push(line);
    }
    for name in names {
        let class = Reference::of(name);
        let over =
            |r: &GameRow, b| Some(r.regret(b)?.0 * r.oracle_s.get(&b.to_string())? / class.time(r, b)?);
        let mut line = vec![marked(name), class.name().into()];
        line.extend(cells(&over, &|r| r.startup == name));
        lines.push(line);
    }
    Sheet {
        title: "Time over that of a sender that knows the path and obeys rules; first these, over the oracle's",
        headers: vec!["startup", "class", "100 kB", "1 MB", "10 MB"],
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::tests::row;

    fn case(bdp: u64, rtt: f64, link: f64) -> GameRow {
        let mut r = row("standard", 1, 1.0, 0);
        (r.bdp_bytes, r.base_rtt_s) = (bdp, rtt);
        r.oracle_s = [("1000000".into(), 2.0 * rtt + link)].into();
        r
    }

    /// 14,480, 28,960, ... : four round trips send 217,200 bytes, and the fifth window of 231,680 fills 200
    /// kB.
    #[test]
    fn a_reference_waits_for_its_window() {
        let r = case(200_000, 0.1, 0.5);
        let time = |c: Reference| c.time(&r, 1_000_000).unwrap();
        assert!((time(Reference::Doubling) - (0.6 + 0.5 * 0.7828)).abs() < 1e-9);
        // 14,480, 36,200, 90,500 and then 226,250: three round trips, 141,180 bytes.
        assert!((time(Reference::Faster) - (0.5 + 0.5 * 0.858_82)).abs() < 1e-9);
        // The receiver's 131,072 in the second and 262,144 in the third.
        assert!((time(Reference::Jump) - (0.4 + 0.5 * (1.0 - 0.145_552))).abs() < 1e-9);
        assert_eq!(Reference::Jump.time(&r, 5), None);
    }

    /// Where the initial window fills the path every reference is the oracle.
    #[test]
    fn a_small_path_has_no_distance() {
        let r = case(10_000, 0.01, 8.0);
        for class in Reference::ALL {
            assert_eq!(class.time(&r, 1_000_000), Some(8.02));
        }
        assert_eq!(Reference::of("rate-bound:few=0"), Reference::Faster);
        assert_eq!(Reference::of("search"), Reference::Doubling);
    }
}
