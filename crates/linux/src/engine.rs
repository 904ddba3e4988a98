//! The running kernel as an engine of studies.

use crate::check::Check;
use crate::error::KernelError;
use crate::load::Spec;
use crate::study::{KERNEL_CONTROLS, LoadedControl, run_transfer};
use crate::table::{Control, TABLE};
use slowstart::units::{Bytes, Span};
use slowstart_study::engines::{Capture, Engine, EngineError, Lack, Part, Refusal, Watched};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{Contender, Study};
use slowstart_study::words;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Time that setting up and removing a path takes, for each run.
const SETUP: Span = Span::millis(500);
/// Payload of a segment and its bytes with IP and TCP headers.
const SEGMENT: (u64, u64) = (1448, 1500);
/// The initial window of the kernel, in segments.
const INITIAL_WINDOW: u64 = 10;

/// The running kernel over the path of a study on the real clock: one transfer at a time, between two network
/// namespaces. Its startups are those of this project that have an object, and the congestion controls of the
/// kernel itself.
#[derive(Default)]
pub struct Kernel {
    /// The control of the last run, and its startup and avoidance as written.
    loaded: Mutex<Option<((String, String), LoadedControl)>>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").finish_non_exhaustive()
    }
}

impl From<KernelError> for EngineError {
    fn from(e: KernelError) -> Self {
        match e {
            KernelError::Interrupted => Self::Stopped,
            other => Self::Failed(other.into()),
        }
    }
}

impl Kernel {
    /// Its name, as `--engine` takes it.
    pub const NAME: &str = "kernel";

    /// Checks that a startup has an object that takes its parameters.
    fn has_object(startup: &str, avoidance: &str) -> Result<(), KernelError> {
        let spec = Spec::read(startup, avoidance)?;
        Control::of(&spec.startup, &spec.given)?.constants(&spec.algorithm, &spec.given).map(|_| ())
    }
}

impl Engine for Kernel {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn is_real_clock(&self) -> bool {
        true
    }

    fn lacks(&self, part: Part) -> Option<Lack> {
        Some(Lack::but_sim(match part {
            Part::Ecn | Part::Handshake => return None,
            Part::Profile | Part::Knobs | Part::Buffers => {
                "the stack is that of this kernel, with its own settings"
            }
            Part::App => "it sends one bulk transfer",
            Part::Against | Part::Driven => "it runs one connection at a time, a download",
            Part::Remember => "what a startup remembers is in the kernel (slowstart kernel memory)",
            Part::Proxy => "the emulated path has no proxy",
            Part::Interface => {
                "a full queue of the emulated path drops packets, that of an interface (link=host, host_rate) holds them back"
            }
            Part::Samples => "it reports a sample when it processes an acknowledgement",
            Part::Pcap => "it writes none (tcpdump does)",
            Part::Qlog => "a run on the real clock cannot be repeated",
        }))
    }

    fn startups(&self, avoidance: &str) -> Vec<String> {
        let able = TABLE.iter().filter(|t| avoidance != "reno" || t.no_reno().is_none());
        able.map(Control::written).chain(KERNEL_CONTROLS).map(str::to_string).collect()
    }

    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError> {
        if KERNEL_CONTROLS.contains(&startup) {
            // What the simulator runs in its place; here only the name counts.
            let (model, with) = match startup {
                "cubic" => ("hystart", "cubic"),
                "reno" => ("standard", "reno"),
                other => (other, "cubic"),
            };
            return Ok(Contender {
                label: startup.to_string(),
                startup_name: startup.to_string(),
                params: BTreeMap::new(),
                avoidance_name: None,
                ..Contender::read("startup", model, with)?
            });
        }
        let contender = Contender::read("startup", startup, avoidance)?;
        Self::has_object(startup, avoidance).map_err(|e| Refusal {
            key: "startup",
            engine: Self::NAME.into(),
            why: e.to_string(),
            instead: "sim".into(),
        })?;
        Ok(Contender { avoidance_name: Some(avoidance.to_string()), ..contender })
    }

    fn stack(&self, _: &Study) -> String {
        format!("Linux {}", Check::new().release)
    }

    fn notes(&self, study: &Study) -> Vec<String> {
        std::iter::once(time_needed(study)).chain(too_short(study)).collect()
    }

    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError> {
        let contender = &study.contenders[job.contender];
        let avoidance = contender.avoidance_name.as_deref().unwrap_or("cubic");
        let wanted = (contender.label.clone(), avoidance.to_string());
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.as_ref().is_none_or(|(there, _)| *there != wanted) {
            // The one before is unloaded first.
            *loaded = None;
            let control = LoadedControl::load(&contender.label, avoidance)?;
            *loaded = Some((wanted, control));
        }
        let Some((_, control)) = &*loaded else { unreachable!("loaded above") };
        Ok(run_transfer(study, control, job, watched.stop)?)
    }

    fn capture(&self, _: &Study, _: Job) -> Result<Capture, EngineError> {
        self.require(&[Part::Qlog])?;
        unreachable!("refused above")
    }
}

/// Says how long the study takes: at the rate of the path, and at most.
fn time_needed(study: &Study) -> String {
    let facts = study.path.facts();
    let startups = study.contenders.len() as u64;
    let runs = startups * u64::from(study.runs);
    let wall = |transfer: Span| duration(Span(runs.saturating_mul(transfer.0.saturating_add(SETUP.0))));
    let most = wall(study.duration);
    let what = format!("startups: {startups}, runs of each: {}, on the real clock", study.runs);
    match study.size {
        Some(bytes) => {
            let sending = facts.rate.time_for(Bytes(bytes / SEGMENT.0 * SEGMENT.1));
            let usual = wall(sending + Span(facts.base_rtt.0.saturating_mul(rounds_to_fill(study))));
            format!("{what}: about {usual}, at most {most}")
        }
        None => format!("{what}: about {most}"),
    }
}

/// Round trips until slow start has doubled the initial window to one BDP.
fn rounds_to_fill(study: &Study) -> u64 {
    let packets = study.path.facts().bdp.0 / SEGMENT.1;
    u64::from((packets / INITIAL_WINDOW).max(1).ilog2()) + 1
}

/// Returns a warning if slow start cannot fill the path within the transfer, so that no startup is sure to
/// end.
fn too_short(study: &Study) -> Option<String> {
    let facts = study.path.facts();
    // When slow start has raised cwnd to one BDP, it has sent twice that, less the initial window.
    let bytes = (facts.bdp.0 / SEGMENT.1 * SEGMENT.0 * 2).saturating_sub(INITIAL_WINDOW * SEGMENT.0);
    let time = Span(facts.base_rtt.0.saturating_mul(rounds_to_fill(study) + 1));
    let (given, needed) = match study.size {
        Some(size) if size < bytes => (words::bytes(size), words::bytes(bytes)),
        None if study.duration < time => (duration(study.duration), duration(time)),
        _ => return None,
    };
    Some(format!(
        "a transfer of {given} may end before its startup does: slow start needs {needed} to fill this path"
    ))
}

/// A duration in words, in steps of 0.1 s, of a second or of a minute.
fn duration(span: Span) -> String {
    let seconds = span.as_secs_f64();
    let minutes = (seconds / 60.0).ceil() as u64;
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_study::scenario::StudyText;

    fn study(path: &str, size: Option<&str>, duration: Option<&str>, startups: &[&str]) -> Study {
        let text = StudyText {
            path: path.to_string(),
            startups: startups.iter().map(ToString::to_string).collect(),
            size: size.map(str::to_string),
            duration: duration.map(str::to_string),
            ..StudyText::default()
        };
        Kernel::default().study(&text, None).expect("a study")
    }

    #[test]
    fn the_time_needed_is_that_of_the_transfers() {
        // 10 runs of 15 MB at 12 Mbit/s take 10.36 s each, with four round trips and 0.5 s of setup 11.26 s.
        // A run ends after ten times 10 s and a minute: 160.5 s with setup.
        let s = study("rate=12Mbit rtt=100ms queue=1bdp", Some("15MB"), None, &["standard"]);
        assert_eq!(
            time_needed(&s),
            "startups: 1, runs of each: 10, on the real clock: about 113 s, at most 27 min"
        );
        let s = study("rate=12Mbit rtt=100ms queue=1bdp", None, Some("5s"), &["cubic", "reno"]);
        assert_eq!(time_needed(&s), "startups: 2, runs of each: 10, on the real clock: about 110 s");
    }

    #[test]
    fn what_the_kernel_cannot_run_is_refused() {
        let kernel = Kernel::default();
        let refused = |text: StudyText| {
            let text = StudyText { path: "geo".into(), ..text };
            kernel.study(&text, None).expect_err("refused").to_string()
        };
        let startups = |s: &str| StudyText { startups: vec![s.into()], ..StudyText::default() };
        let halfback = refused(startups("halfback"));
        assert!(halfback.contains("halfback: has no object for the kernel"), "{halfback}");
        assert!(halfback.ends_with("expected --engine sim"), "{halfback}");
        let parameter = refused(startups("hystart:train=sum"));
        assert!(parameter.contains("hystart:train: the kernel has no such parameter"), "{parameter}");
        let beside = refused(StudyText { against: vec!["cubic@-1s".into()], ..startups("cubic") });
        assert!(beside.starts_with("against: the engine kernel cannot"), "{beside}");
        assert!(refused(startups("standart")).contains("did you mean"), "unknown");
        let set = [("iw".to_string(), "4".to_string())].into();
        assert!(refused(StudyText { set, ..startups("cubic") }).starts_with("set: the engine kernel"));
    }

    #[test]
    fn a_transfer_that_cannot_fill_the_path_is_too_short() {
        // BDP 100 packets: cwnd is 100 once 190 are sent, after five round trips.
        let path = "rate=12Mbit rtt=100ms queue=1bdp";
        assert!(
            too_short(&study(path, Some("274kB"), None, &["cubic"])).is_some_and(|w| w.contains("275 kB"))
        );
        assert_eq!(too_short(&study(path, Some("276kB"), None, &["cubic"])), None);
        assert!(
            too_short(&study(path, None, Some("400ms"), &["cubic"])).is_some_and(|w| w.contains("0.5 s"))
        );
        assert_eq!(too_short(&study(path, None, Some("2s"), &["cubic"])), None);
    }
}
