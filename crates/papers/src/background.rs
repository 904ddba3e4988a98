//! Background flows of medium size in both directions (Ha & Rhee, "Hybrid Slow Start", 2008, section 5).

use serde::Deserialize;
use slowstart::units::{Instant, Span};
use slowstart_sim::app;
use slowstart_sim::engine::{Direction, FlowSpec};
use slowstart_sim::random::Stream;
use slowstart_study::scenario::{Contender, Study, StudyError};

/// Background flows, in each direction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// The offered load in each direction, Mbit/s.
    pub mbit: u64,
    /// Bounds of their sizes, which are uniform, in kB.
    pub kilobytes: [u64; 2],
    /// Upper bound of their own additional round-trip time, which is uniform from 0, in ms.
    pub extra_ms: u64,
}

impl Background {
    /// Returns the flows of a run. Arrivals are a Poisson process whose rate gives the offered load.
    pub fn flows(&self, study: &Study, seed: u64) -> Result<Vec<FlowSpec>, StudyError> {
        let cubic = Contender::read("background", "hystart", "cubic")?;
        let [low, high] = self.kilobytes;
        let mean_gap_s = (low + high) as f64 / 2.0 * 8.0 / (self.mbit as f64 * 1000.0);
        let mut flows = Vec::new();
        for (direction, name) in [(Direction::Download, "down"), (Direction::Upload, "up")] {
            let mut chance = Stream::named(seed, &format!("background.{name}"));
            let mut at = Instant::ZERO;
            loop {
                let u = (chance.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64;
                at = at + Span((-libm::log(u) * mean_gap_s * 1e9) as u64);
                if at >= study.start() + study.duration {
                    break;
                }
                let kilobytes = low + chance.below(high.saturating_sub(low) + 1);
                flows.push(FlowSpec {
                    start: at,
                    direction,
                    app: app::Kind::Bulk { size: Some(kilobytes * 1000) },
                    startup: cubic.startup.clone(),
                    avoidance: cubic.avoidance.clone(),
                    profile: study.profile,
                    extra_delay: chance.uniform_span(Span::millis(self.extra_ms) / 2),
                    links: slowstart_sim::path::Links::ALL,
                    remembered: None,
                    recorded: false,
                    impact_from: None,
                });
            }
        }
        Ok(flows)
    }
}

/// An inline path with the ACK jitter that it states and no default: experiments state what varies.
pub(crate) fn stated_jitter(path: String) -> String {
    if path.contains('=') && !path.contains("ack_jitter=") { path + " ack_jitter=0" } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::scenario::StudyText;

    #[test]
    fn the_offered_load_is_that_of_the_file() {
        let text = StudyText {
            path: "rate=400Mbit rtt=160ms queue=1bdp".into(),
            startups: vec!["standard".into()],
            duration: Some("200s".into()),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).expect("as written");
        let background = Background { mbit: 50, kilobytes: [100, 1900], extra_ms: 40 };
        let flows = background.flows(&study, 1).expect("flows");
        for direction in [Direction::Download, Direction::Upload] {
            let size = |f: &FlowSpec| match f.app {
                app::Kind::Bulk { size } => size.unwrap_or(0),
                _ => 0,
            };
            let bytes: u64 = flows.iter().filter(|f| f.direction == direction).map(size).sum();
            let mbit = bytes as f64 * 8.0 / 200.0 / 1e6;
            assert!((43.0..57.0).contains(&mbit), "{mbit}");
        }
    }
}
