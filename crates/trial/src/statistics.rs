//! What one server tells a fleet of its trial: sums by arm, measure and class of RTT. They suffice for every
//! estimate of [`mod@crate::pool`], so no row of a connection has to leave the server. The file is
//! `statistics.json` in the folder of a trial.

use crate::estimate::Sums;
use crate::outcome::Measure;
use crate::plan::{Plan, Share};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the file; one of a later version is refused. The first had no `lacking`.
pub const VERSION: u32 = 2;

/// An arm of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedArm {
    /// The name of the arm.
    pub name: String,
    /// Its share of new connections, in millionths.
    pub share_millionths: u32,
}

/// What all servers of a fleet have to have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTrial {
    /// The arms; the first is the control.
    pub arms: Vec<PlannedArm>,
    /// The measure that arms are compared by.
    pub measure: String,
    /// Guardrails, such as `retrans=+20%`.
    pub guards: Vec<String>,
    /// True if connections are compared within classes of the handshake's RTT.
    pub by_rtt: bool,
    /// True if all connections of a client's prefix have the same arm.
    pub sticky: bool,
}

impl PlannedTrial {
    /// Returns it from the parts of a trial.
    pub fn new(plan: &Plan, measure: Measure, guards: Vec<String>, by_rtt: bool, sticky: bool) -> Self {
        let arm = |a: &crate::plan::Arm| PlannedArm { name: a.name.clone(), share_millionths: a.share.0 };
        let arms = plan.arms().iter().map(arm).collect();
        Self { arms, measure: measure.name().to_string(), guards, by_rtt, sticky }
    }

    /// Returns the first thing that differs, with what this plan and the other have; `None` if they are one plan.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let arms = |p: &Self| {
            let arm = |a: &PlannedArm| format!("{}:{}", a.name, Share(a.share_millionths));
            p.arms.iter().map(arm).collect::<Vec<_>>().join(" ")
        };
        let guards = |p: &Self| match p.guards.as_slice() {
            [] => "none".to_string(),
            all => all.join(" "),
        };
        let keys = [
            ("arms", arms(self), arms(other)),
            ("measure", self.measure.clone(), other.measure.clone()),
            ("guardrails", guards(self), guards(other)),
            ("stratified by rtt", self.by_rtt.to_string(), other.by_rtt.to_string()),
            ("sticky", self.sticky.to_string(), other.sticky.to_string()),
        ];
        keys.into_iter().find(|(_, a, b)| a != b)
    }
}

/// The sums of one class of RTT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StratumSums {
    /// The class of the handshake's RTT; `None` if the trial is not stratified by it.
    pub rtt: Option<String>,
    /// For each measure, by its name, the sums of each arm in the order of the plan.
    pub sums: BTreeMap<String, Vec<Sums>>,
    /// In the same way, the sums of connections without a value of the measure: each counts 1, the others 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lacking: BTreeMap<String, Vec<Sums>>,
}

/// What a server tells of its trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// The version of the format, 1 to [`VERSION`].
    pub version: u32,
    /// An identifier of this trial on this server, drawn at random when it began: 16 hexadecimal digits.
    pub run: String,
    /// The release of the server's kernel, as `uname -r` prints it.
    pub kernel: String,
    /// The plan that was fixed before the first connection.
    pub plan: PlannedTrial,
    /// Seconds since the trial began, by a clock that is not set.
    pub seconds: f64,
    /// Units of each arm, in the order of the plan.
    pub units: Vec<u64>,
    /// Records that the kernel could not hand over.
    pub lost_records: u64,
    /// Arms that this server ended by a guardrail, or because it was told to.
    pub ended: Vec<String>,
    /// The sums of each arm, stratum by stratum.
    pub strata: Vec<StratumSums>,
}

/// Why a file is not the statistics of a trial.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// It is not JSON of this form.
    #[error("{0}")]
    Form(#[from] serde_json::Error),
    /// It has another version.
    #[error("version: found {0}, expected 1 to {VERSION}; pool the folders with the command that wrote them")]
    Version(u64),
    /// Parts of it contradict each other.
    #[error("{key}: found {found}, expected {expected}")]
    Contradiction {
        /// The key.
        key: String,
        /// What it holds.
        found: String,
        /// What belongs there.
        expected: String,
    },
}

impl Statistics {
    /// Reads the text of a file. The version is looked at first, so a later form is refused by its version
    /// and not by a key.
    pub fn parse(text: &str) -> Result<Self, StatisticsError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let versioned: Versioned = serde_json::from_str(text)?;
        if !(1..=u64::from(VERSION)).contains(&versioned.version) {
            return Err(StatisticsError::Version(versioned.version));
        }
        let all: Self = serde_json::from_str(text)?;
        all.check()?;
        Ok(all)
    }

    fn check(&self) -> Result<(), StatisticsError> {
        let contradiction = |key: &str, found: String, expected: String| {
            Err(StatisticsError::Contradiction { key: key.to_string(), found, expected })
        };
        let arms = self.plan.arms.len();
        if !(2..=crate::plan::MAX_ARMS).contains(&arms) {
            let expected = format!("2 to {} arms", crate::plan::MAX_ARMS);
            return contradiction("plan.arms", format!("{arms} arms"), expected);
        }
        let shares: u64 = self.plan.arms.iter().map(|a| u64::from(a.share_millionths)).sum();
        if self.plan.arms.iter().any(|a| a.share_millionths == 0) || shares > 1_000_000 {
            let expected = "shares above 0 that add up to 1000000 at most".to_string();
            return contradiction("plan.arms", format!("shares that add up to {shares}"), expected);
        }
        if Measure::named(&self.plan.measure).is_none() {
            let names = Measure::ALL.map(Measure::name).join(", ");
            return contradiction(
                "plan.measure",
                format!("{:?}", self.plan.measure),
                format!("one of {names}"),
            );
        }
        for guard in &self.plan.guards {
            if let Err(e) = crate::guard::Guard::parse(guard) {
                return contradiction("plan.guards", format!("{guard:?}"), e.to_string());
            }
        }
        if self.units.len() != arms {
            return contradiction(
                "units",
                format!("{} numbers", self.units.len()),
                format!("{arms}, one an arm"),
            );
        }
        for stratum in &self.strata {
            let both = [("sums", &stratum.sums), ("lacking", &stratum.lacking)];
            for (kind, measure, sums) in
                both.iter().flat_map(|(k, all)| all.iter().map(move |(m, s)| (k, m, s)))
            {
                let key = format!("strata.{kind}.{measure}");
                if sums.len() != arms {
                    return contradiction(&key, format!("{} arms", sums.len()), format!("{arms}"));
                }
                if !sums.iter().all(Sums::is_plausible) {
                    return contradiction(
                        &key,
                        "sums of no units".to_string(),
                        "sums of real numbers".to_string(),
                    );
                }
            }
        }
        Ok(())
    }
}
