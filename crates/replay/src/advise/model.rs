//! The startups over the paths that were recorded.

use super::{AdviseError, Effect, INITIAL_WINDOWS, InitialWindow};
use crate::fit::text::{self, Fitted};
use slowstart_sim::path::Files;
use slowstart_study::decision::{Decision, MARGIN, Terms};
use slowstart_study::difference::{self, Difference};
use slowstart_study::measures::Measure;
use slowstart_study::record::{Param, Row};
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::summary::{Summary, label};
use std::collections::BTreeMap;

/// Time for which a browser is observed, for what idle restart costs.
const BROWSING: &str = "60s";

/// The paths, and the size of a transfer.
pub(super) struct Model<'a> {
    toml: String,
    /// Bytes of a transfer.
    pub size: u64,
    /// As many as there are paths, each over one drawn of them: more would count the same paths as new
    /// evidence.
    runs: u32,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Model<'a> {
    pub(super) fn new(paths: &[Fitted], size: u64, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { toml: text::toml("slowstart advise", paths), size, runs: paths.len() as u32, stop }
    }

    /// A study of these startups; of the application, if one is named, or of the transfer.
    pub(super) fn study(
        &self,
        startups: &[String],
        app: Option<&str>,
        set: &[(&str, String)],
    ) -> Result<Study, AdviseError> {
        const NAME: &str = "recorded.toml";
        let files = Files::given([(NAME.to_string(), self.toml.clone().into_bytes())].into());
        let text = StudyText {
            path: NAME.to_string(),
            startups: startups.to_vec(),
            size: app.is_none().then(|| format!("{}B", self.size)),
            duration: app.map(|_| BROWSING.to_string()),
            app: app.map(str::to_string),
            set: set.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect::<BTreeMap<_, _>>(),
            runs: Some(self.runs),
            ..StudyText::default()
        };
        Ok(Study::check_with(&text, &files)?)
    }

    /// The rows of a study.
    pub(super) fn run(&self, study: &Study) -> Result<Vec<Row>, AdviseError> {
        let mut rows = Vec::new();
        study.run_all(|outcome| {
            rows.push(outcome.row);
            if (self.stop)() { Err(AdviseError::Stopped) } else { Ok(()) }
        })?;
        Ok(rows)
    }

    /// What each initial window does, and the largest that loses no more than the first.
    pub(super) fn initial_windows(
        &self,
        startup: &str,
    ) -> Result<(Vec<InitialWindow>, Option<u32>), AdviseError> {
        let mut rows = Vec::new();
        for iw in INITIAL_WINDOWS {
            let study = self.study(&[startup.to_string()], None, &[("iw", iw.to_string())])?;
            rows.extend(self.run(&study)?.into_iter().map(|mut r| {
                r.params.insert("iw".to_string(), Param::Number(iw.into()));
                r
            }));
        }
        let segments = |s: &Summary| match s.rows[0].params.get("iw") {
            Some(Param::Number(iw)) => *iw as u32,
            _ => 0,
        };
        let first = label(&rows[0]);
        let d = Decision::new(&rows, &Terms { baseline: Some(&first), margin: MARGIN });
        let mut all: Vec<InitialWindow> = d
            .standings
            .iter()
            .map(|s| InitialWindow {
                segments: segments(&s.summary),
                time_percent: d.against(&s.summary, d.by).map(Effect::from),
                lost_packets: d.against(&s.summary, Measure::StartupLost).map(Effect::from),
            })
            .collect();
        all.sort_by_key(|w| w.segments);
        let safe = |w: &&InitialWindow| {
            let fine = |e: &Option<Effect>| e.as_ref().is_none_or(|e| e.is != "worse");
            fine(&w.time_percent) && fine(&w.lost_packets)
        };
        let largest = all.iter().take_while(safe).last().map(|w| w.segments);
        Ok((all, largest))
    }

    /// The change of a browser's median time of an object without idle restart.
    pub(super) fn without_idle_restart(&self, startup: &str) -> Result<Option<Difference>, AdviseError> {
        let rows = |restart: &str| -> Result<Vec<Row>, AdviseError> {
            let set = [("idle_restart", restart.to_string())];
            let study = self.study(&[startup.to_string()], Some("browser"), &set)?;
            self.run(&study)
        };
        let (off, on) = (rows("off")?, rows("on")?);
        let pairs = off.iter().zip(&on).map(|(off, on)| Measure::ObjectMedian.of_pair(off, on));
        Ok(difference::times(&pairs.collect::<Vec<_>>(), MARGIN))
    }
}
