//! Continues a transfer in the simulator: each startup takes over where it would have sent something else
//! than was sent.
//!
//! Until that point the simulator sends the packets of the capture at their times over a path fitted to the
//! capture, so that link and queue are as full as they were. Then the startup takes over with its saved
//! state, including all that it derived from the real ACKs. Simulator and capture share one clock, so that a
//! rate that was seen to vary is that of the capture at each moment.

use crate::analysis::{EPOCH, Findings, StartupResult, facts};
use crate::fit::FittedPath;
use crate::fit::rate_over_time::course;
use crate::observer::{Candidate, SavedState, TimedEvent};
use crate::packets::SentData;
use serde::{Deserialize, Serialize};
use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::control::{Composed, Exited, State as Window};
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart::view::Facts;
use slowstart_sim::app;
use slowstart_sim::engine::{Direction, End, Engine, FlowId, FlowSpec, Sampling};
use slowstart_sim::path::{PathError, PathSpec};
use slowstart_sim::tcp::profile::Profile;
use slowstart_study::measured::{self, Ended};
use slowstart_study::record::Class;

/// Random seed of the path.
const SEED: u64 = 1;
/// A window that limits nothing.
const OPEN: Bytes = Bytes(1 << 40);
/// Time limit of the simulation, as a multiple of the transfer's duration at the path's rate.
const PATIENCE: u64 = 10;

/// Result of continuing a transfer with one startup.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkResult {
    /// The startup's name and parameters.
    pub startup: String,
    /// Begin of the simulated part, seconds since the connection's first packet.
    pub from_s: f64,
    /// Its exit: as observed if it had left before the simulated part, otherwise as simulated.
    pub exit: Option<TimedEvent>,
    /// Class of that exit, from the simulator's knowledge of the fitted path.
    pub class: Class,
    /// When everything would have been acknowledged; null if not within the time limit.
    pub done_s: Option<f64>,
    /// Packets dropped by the fitted path.
    pub lost_packets: u64,
    /// Packets that the sender sent again.
    pub retransmitted_packets: u64,
    /// Maximum queueing delay, seconds.
    pub peak_queue_delay_s: f64,
}

/// A transfer to continue.
struct Simulation<'a> {
    path: PathSpec,
    profile: Profile,
    avoidance: AnyAvoidance,
    iw: Bytes,
    size: u64,
    sends: &'a [SentData],
    end: Instant,
}

/// Continues a transfer with each startup that has a saved state. Errors are those of a path that cannot be
/// built.
pub fn run(
    f: &Findings,
    fitted: &FittedPath,
    candidates: &[Candidate],
) -> Result<Vec<ForkResult>, PathError> {
    let mss = f.mss.0.clamp(88, 65_000);
    let profile = Profile {
        mss: mss as u32,
        iw: f.iw.0.div_ceil(mss).clamp(1, 1000) as u32,
        // The size to which the receive window would have grown is unknown: it does not limit the sender.
        autotune: false,
        ..Profile::LINUX_6_18_FQ
    };
    let time = Rate(fitted.rate_bps.value as u64).time_for(f.delivered) * PATIENCE;
    let simulation = Simulation {
        path: PathSpec::load(&path(f, fitted), None)?,
        profile,
        avoidance: (avoidance::REGISTRY[0].make)(),
        iw: f.iw,
        size: f.delivered.0,
        sends: f.packets.sends(),
        end: f.last + EPOCH + time + Span::secs(60),
    };
    let of = |j: &StartupResult| {
        let saved = j.prediction.saved.as_ref()?;
        let fresh = candidates.iter().find(|c| c.label == j.label)?;
        Some(simulation.continue_with(&j.label, saved, fresh))
    };
    Ok(f.startups.iter().filter_map(of).collect())
}

/// The path on which a transfer is continued: with the rate over time that the transfer shows, if it changes.
fn path(f: &Findings, fitted: &FittedPath) -> String {
    let found = course(f, fitted.base_rtt_s.value).ok().filter(|_| fitted.rate_changes);
    match (found, f.packets.sends().first()) {
        (Some(c), Some(first)) => fitted.inline_over_time(&c.schedule(first.at + EPOCH)),
        _ => fitted.inline(),
    }
}

fn seconds(at: Instant) -> f64 {
    Span(at.since(Instant::ZERO + EPOCH).0).as_secs_f64()
}

impl Simulation<'_> {
    fn composed(
        &self,
        of: &Candidate,
        s: &SavedState,
    ) -> Composed<slowstart::startup::AnyStartup, AnyAvoidance> {
        Composed::mid_connection(s.startup.clone(), of.startup.clone(), self.avoidance.clone(), s.state)
    }

    /// A controller that allows everything to be sent.
    fn open(&self, of: &Candidate) -> AnyController {
        let state = Window { cwnd: OPEN, ssthresh: Some(OPEN), pace: None, wake: None };
        let (s, a) = (of.startup.clone(), self.avoidance.clone());
        let mut open = Composed::mid_connection(s.clone(), s, a, state);
        open.exit_startup(&self.facts(Instant::ZERO), slowstart::step::Exit::Ssthresh);
        AnyController::Composed(open)
    }

    fn facts(&self, now: Instant) -> Facts {
        let mut f = facts(Bytes(self.profile.mss.into()));
        (f.now, f.iw) = (now, self.iw);
        f
    }

    fn continue_with(&self, label: &str, s: &SavedState, of: &Candidate) -> ForkResult {
        // Packets sent at that moment belong to another window.
        let sends = &self.sends[..self.sends.partition_point(|d| d.at + EPOCH < s.at)];
        let rtt = self.path.facts().base_rtt;
        let begin = sends.first().map_or(s.at, |d| d.at + EPOCH);
        let spec = FlowSpec {
            // Leaves time for the handshake.
            start: begin - rtt * 3 - Span::millis(1),
            direction: Direction::Download,
            app: app::Kind::External { size: self.size },
            startup: Algorithm::Startup(of.startup.clone()),
            avoidance: self.avoidance.clone(),
            profile: self.profile,
            extra_delay: Span::ZERO,
            links: slowstart_sim::path::Links::ALL,
            remembered: None,
            recorded: false,
            impact_from: None,
        };
        let mut e = Engine::new(self.path.build(SEED), vec![spec], SEED, Sampling::Off, false);
        let mut written = 0;
        for (i, data) in sends.iter().enumerate() {
            let bytes = u64::from(data.bytes).min(self.size - written);
            e.run(data.at + EPOCH);
            e.write(FlowId(0), bytes);
            written += bytes;
            if i == 0 {
                // The endpoint has called the controller for the connection: from here on nothing limits it.
                e.replace_controller(FlowId(0), self.open(of));
            }
        }
        e.run(s.at);
        // What happened before belongs to the original sender.
        let truth = &mut e.flows[0].truth;
        (truth.exit, truth.dropped_in_startup) = (None, 0);
        let again = e.flows[0].ends[End::Server].tx.counters.retransmitted;
        if !sends.is_empty() {
            let mut control = self.composed(of, s);
            if let Some((why, m)) = s.left {
                control.exit_startup(&self.facts(s.at), why);
                e.flows[0].truth.exit = Some(Exited {
                    why,
                    at: s.at,
                    detected_at: m.at,
                    detected_cwnd: m.cwnd,
                    exit_cwnd: s.state.cwnd,
                    inflight: Bytes::ZERO,
                });
            }
            e.replace_controller(FlowId(0), AnyController::Composed(control));
        }
        e.write(FlowId(0), self.size - written);
        let size = self.size;
        let done = |e: &Engine| e.flows[0].ends[End::Server].tx.board().una() > size;
        e.run_until(self.end, done);
        let flow = &e.flows[0];
        let truth = &flow.truth;
        ForkResult {
            startup: label.to_string(),
            from_s: seconds(s.at),
            exit: truth.exit.map(|x| TimedEvent {
                what: x.why.name().to_string(),
                time_s: seconds(x.detected_at),
                cwnd_bytes: x.detected_cwnd.0,
            }),
            class: measured::class(truth.exit.as_ref().map(Ended::from), truth.capacity, truth.first_loss),
            done_s: done(&e).then(|| seconds(e.now())),
            lost_packets: truth.dropped,
            retransmitted_packets: flow.ends[End::Server].tx.counters.retransmitted - again,
            peak_queue_delay_s: truth.peak_queue_delay.as_secs_f64(),
        }
    }
}
