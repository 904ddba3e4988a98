//! The arguments that describe a study: what is transferred, by which startups, over which stack.

use anyhow::{Context, Result};
use clap::Args;
use slowstart_lab::scenario::StudyText;
use std::collections::BTreeMap;

/// The arguments of a study but its path.
#[derive(Args, Clone, Default)]
pub(crate) struct StudyArgs {
    /// Startups, as name or name:key=value,key=value, separated by commas, such as search,hystart:detect=delay (see
    /// `slowstart list startups`) [default: all]
    #[arg(long, value_name = "STARTUPS")]
    pub startup: Vec<String>,
    /// Number of runs, each with its own random seed [default: 10; 30 over a distribution of paths]
    #[arg(long, value_name = "N")]
    pub runs: Option<u32>,
    #[command(flatten)]
    pub transfer: TransferArgs,
}

/// What is transferred over which stack, and the seed.
#[derive(Args, Clone, Default)]
pub(crate) struct TransferArgs {
    /// Congestion avoidance after the startup, such as reno or cubic:beta=0.5 (see `slowstart list avoidances`) [default:
    /// cubic]
    #[arg(long)]
    pub avoidance: Option<String>,
    /// Bytes to transfer, such as 20MB [default: 20 bandwidth-delay products, at least 10MB]
    #[arg(long)]
    pub size: Option<String>,
    /// Observe a transfer without end for this time, such as 30s
    #[arg(long, conflicts_with = "size")]
    pub duration: Option<String>,
    /// TCP stack at both ends (see `slowstart list profiles`) [default: linux-6.18]
    #[arg(long)]
    pub profile: Option<String>,
    /// Settings of the stack, as key=value separated by commas, such as iw=4,pacing=off (see `slowstart list knobs`)
    #[arg(long, value_name = "KNOBS")]
    pub set: Vec<String>,
    /// Application: bulk, web, video or browser [default: bulk]
    #[arg(long)]
    pub app: Option<String>,
    /// Flows that share the path, as name@start or name@start/up: cubic@-10s starts 10 s before the studied flow,
    /// search@2s/up starts 2 s after it and uploads
    #[arg(long, value_delimiter = ',', value_name = "FLOWS")]
    pub against: Vec<String>,
    /// Give startups the state of an earlier connection: on or off [default: on]
    #[arg(long, value_name = "on|off")]
    pub remember: Option<String>,
    /// Random seed of the study [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
}

impl StudyArgs {
    /// The study over a path, as written.
    pub(crate) fn text(&self, path: &str) -> Result<StudyText> {
        let text = self.transfer.text(path)?;
        Ok(StudyText { startups: startups(&self.startup), runs: self.runs, ..text })
    }
}

impl TransferArgs {
    /// The study over a path with every startup, as written.
    pub(crate) fn text(&self, path: &str) -> Result<StudyText> {
        let mut set = BTreeMap::new();
        for knob in self.set.iter().flat_map(|s| s.split(',')) {
            let (key, value) =
                knob.split_once('=').with_context(|| format!("set: found {knob:?}, expected key=value"))?;
            set.insert(key.to_string(), value.to_string());
        }
        Ok(StudyText {
            path: path.to_string(),
            engine: None,
            startups: Vec::new(),
            avoidance: self.avoidance.clone(),
            size: self.size.clone(),
            duration: self.duration.clone(),
            profile: self.profile.clone(),
            set,
            app: self.app.clone(),
            against: self.against.clone(),
            remember: self.remember.clone(),
            runs: None,
            seed: self.seed,
        })
    }
}

/// Splits a list in which commas separate startups and also the parameters of a startup: a piece of the form key=value
/// belongs to the startup before it.
pub(crate) fn startups(written: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in written.iter().flat_map(|w| w.split(',')) {
        let parameter = piece.contains('=') && !piece.contains(':');
        match all.last_mut().filter(|_| parameter) {
            Some(last) => {
                last.push(',');
                last.push_str(piece);
            }
            None => all.push(piece.to_string()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_separates_startups_and_parameters() {
        let written = ["search:threshold=0.3,drain=off,hystart".to_string(), "standard".to_string()];
        assert_eq!(startups(&written), ["search:threshold=0.3,drain=off", "hystart", "standard"]);
    }
}
