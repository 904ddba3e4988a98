//! What would have come after: each startup goes on, in the simulator, from where what it would have sent differs from
//! what was sent.
//!
//! Up to there the very packets of the capture are sent again at their times, over a path fitted to the capture, so
//! that link and queue are as full as they were. Then the startup takes over as it stood, with all that it had made of
//! the true acknowledgements. The clocks of both are one: neither sees a seam.

use crate::analysis::{EPOCH, Findings, StartupResult, facts};
use crate::fit::FittedPath;
use crate::observer::{Candidate, SavedState, TimedEvent};
use serde::{Deserialize, Serialize};
use slowstart::avoidance::{self, AnyAvoidance};
use slowstart::control::{Composed, Exited, State as Window};
use slowstart::registry::{Algorithm, AnyController};
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart::view::Facts;
use slowstart_lab::app;
use slowstart_lab::engine::{Direction, Engine, FlowSpec, Sampling};
use slowstart_lab::eval::{self, Ended};
use slowstart_lab::path::{PathError, PathSpec};
use slowstart_lab::record::Class;
use slowstart_lab::tcp::profile::Profile;

/// What the path draws is drawn from this.
const SEED: u64 = 1;
/// A window that holds nothing back.
const OPEN: Bytes = Bytes(1 << 40);
/// A transfer is given this many times what the path would need for it, and a minute.
const PATIENCE: u64 = 10;

/// What a startup would have made of the rest of the transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkResult {
    /// Its name and parameters.
    pub startup: String,
    /// From when on this is simulated, seconds since the connection's first packet.
    pub from_s: f64,
    /// Its exit: as observed, if it had left by then, else as simulated.
    pub exit: Option<TimedEvent>,
    /// How that is judged, by what the simulator knows of the fitted path.
    pub class: Class,
    /// When everything would have been acknowledged; null if it was not within the time given.
    pub done_s: Option<f64>,
    /// Packets that the fitted path dropped.
    pub lost_packets: u64,
    /// Packets sent again.
    pub retransmitted_packets: u64,
    /// The longest wait in its queue, seconds.
    pub peak_queue_delay_s: f64,
}

/// A transfer to go on with.
struct Fork<'a> {
    path: PathSpec,
    profile: Profile,
    avoidance: AnyAvoidance,
    iw: Bytes,
    size: u64,
    sends: &'a [(Instant, Bytes)],
    end: Instant,
}

/// Goes on with a transfer under each startup. Those whose prediction was not asked for are left out; errors are those of
/// a path that cannot be built.
pub fn run(
    f: &Findings,
    fitted: &FittedPath,
    candidates: &[Candidate],
) -> Result<Vec<ForkResult>, PathError> {
    let mss = f.mss.0.clamp(88, 65_000);
    let profile = Profile {
        mss: mss as u32,
        iw: f.iw.0.div_ceil(mss).clamp(1, 1000) as u32,
        // How far the peer's window would have opened is not known: it does not hold the sender back.
        autotune: false,
        ..Profile::LINUX_6_18
    };
    let time = Rate(fitted.rate_bps as u64).time_for(f.delivered) * PATIENCE;
    let fork = Fork {
        path: PathSpec::load(&fitted.inline(), None)?,
        profile,
        avoidance: (avoidance::REGISTRY[0].make)(),
        iw: f.iw,
        size: f.delivered.0,
        sends: &f.sends,
        end: f.last + EPOCH + time + Span::secs(60),
    };
    let of = |j: &StartupResult| {
        let saved = j.prediction.saved.as_ref()?;
        let fresh = candidates.iter().find(|c| c.label == j.label)?;
        Some(fork.go_on(&j.label, saved, fresh))
    };
    Ok(f.startups.iter().filter_map(of).collect())
}

fn seconds(at: Instant) -> f64 {
    Span(at.since(Instant::ZERO + EPOCH).0).as_secs_f64()
}

impl Fork<'_> {
    fn composed(
        &self,
        of: &Candidate,
        s: &SavedState,
    ) -> Composed<slowstart::startup::AnyStartup, AnyAvoidance> {
        Composed::mid_connection(s.startup.clone(), of.startup.clone(), self.avoidance.clone(), s.state)
    }

    /// A window that lets everything be sent that was.
    fn open(&self, of: &Candidate) -> AnyController {
        let state = Window { cwnd: OPEN, ssthresh: Some(OPEN), pace: None, wake: None };
        let (s, a) = (of.startup.clone(), self.avoidance.clone());
        let mut open = Composed::mid_connection(s.clone(), s, a, state);
        open.exit_startup(&self.facts(Instant::ZERO), slowstart::step::Exit::Ssthresh);
        AnyController::Composed(open)
    }

    fn facts(&self, now: Instant) -> Facts {
        Facts { now, iw: self.iw, ..facts(Bytes(self.profile.mss.into())) }
    }

    fn go_on(&self, label: &str, s: &SavedState, of: &Candidate) -> ForkResult {
        // What was sent at that moment is the answer of another window.
        let sends = &self.sends[..self.sends.partition_point(|d| d.0 + EPOCH < s.at)];
        let rtt = self.path.facts().base_rtt;
        let begin = sends.first().map_or(s.at, |d| d.0 + EPOCH);
        let spec = FlowSpec {
            // Time for the handshake.
            start: begin - rtt * 3 - Span::millis(1),
            direction: Direction::Download,
            app: app::Kind::Told { size: self.size },
            startup: Algorithm::Startup(of.startup.clone()),
            avoidance: self.avoidance.clone(),
            profile: self.profile,
            extra_delay: Span::ZERO,
            remembered: None,
            recorded: false,
            witness_from: None,
        };
        let mut e = Engine::new(self.path.build(SEED), vec![spec], SEED, Sampling::Off, false);
        let mut written = 0;
        for (i, (at, bytes)) in sends.iter().enumerate() {
            let bytes = bytes.0.min(self.size - written);
            e.run(*at + EPOCH);
            e.write(0, bytes);
            written += bytes;
            if i == 0 {
                // The endpoint has told the controller of the connection: from here on nothing is held back.
                e.take_over(0, self.open(of));
            }
        }
        e.run(s.at);
        // What happened so far was another's doing.
        let truth = &mut e.flows[0].truth;
        (truth.exit, truth.dropped_in_startup) = (None, 0);
        let again = e.flows[0].ends[0].tx.counters.retransmitted;
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
            e.take_over(0, AnyController::Composed(control));
        }
        e.write(0, self.size - written);
        let size = self.size;
        let done = |e: &Engine| e.flows[0].ends[0].tx.board().una() > size;
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
            class: eval::class(truth.exit.as_ref().map(Ended::from), truth.capacity, truth.first_loss),
            done_s: done(&e).then(|| seconds(e.now())),
            lost_packets: truth.dropped,
            retransmitted_packets: flow.ends[0].tx.counters.retransmitted - again,
            peak_queue_delay_s: truth.peak_queue_delay.as_secs_f64(),
        }
    }
}
