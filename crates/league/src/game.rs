//! One startup on one case, and its row.

use crate::oracle::{self, Write};
use crate::population::{Case, Load};
use serde::{Deserialize, Serialize};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_sim::app::Kind;
use slowstart_sim::engine::{Direction, FlowId, FlowSpec, Sampling};
use slowstart_sim::random::Stream;
use slowstart_sim::trace::MILESTONES;
use slowstart_study::engines::{Engine, EngineError, Part, Refusal, Watched};
use slowstart_study::measured::{Identity, Measured, PacketSize};
use slowstart_study::record::{Class, Others, Row};
use slowstart_study::run::Job;
use slowstart_study::scenario::{Contender, Study, StudyText};
use slowstart_study::simulator;
use std::collections::BTreeMap;

/// The version of the schema of rows.
pub const SCHEMA: u32 = 1;

/// JSON Schema of a [`GameRow`], of version [`SCHEMA`].
pub const GAME_SCHEMA: &str = include_str!("../schema/game.json");

/// One startup in one case of the league, as `slowstart league --json` prints it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GameRow {
    /// The version of the schema.
    pub league: u32,
    /// The seed of the league, from which all cases are drawn.
    pub drawn_from: u64,
    /// The version that computed it.
    pub version: String,
    /// The commit of the program that computed it; null if it was not built in a checkout or is not the command.
    #[serde(default)]
    pub commit: Option<String>,
    /// The name of the population that the case is drawn from.
    pub population: String,
    /// The number of the case in it.
    pub case: u32,
    /// The seed of the case.
    pub seed: u64,
    /// The path, as `slowstart compare` takes it.
    pub path: String,
    /// The stack's name, with the knobs that were set.
    pub profile: String,
    /// The startup as written: its name, and parameters that differ from the registry's.
    pub startup: String,
    /// True if it uses what an earlier connection learned.
    pub memory: bool,
    /// Mean rate of the path, on the wire.
    pub rate_bps: u64,
    /// Least round-trip time of the path, in seconds.
    pub base_rtt_s: f64,
    /// Payload that fills the path without a queue.
    pub bdp_bytes: u64,
    /// Bytes its queue holds, on the wire; null if it is infinite.
    pub buffer_bytes: Option<u64>,
    /// Seconds until the receiver had so many bytes; null if it never had, within the time given.
    pub time_s: BTreeMap<String, Option<f64>>,
    /// Seconds that the oracle needs until the receiver has so many bytes, by their number.
    pub oracle_s: BTreeMap<String, f64>,
    /// The time given, in seconds.
    pub given_s: f64,
    /// The class of the exit by truth.
    pub class: Class,
    /// The reason of the exit; null if the startup did not end.
    pub exit: Option<String>,
    /// True if the startup ended by a rule of its own, false if by loss, mark, timeout or stall.
    pub by_rule: bool,
    /// The window that it left with, in bandwidth-delay products.
    pub left_bdp: Option<f64>,
    /// Data packets dropped of those sent before the startup ended.
    pub startup_lost_packets: Option<u64>,
    /// Data packets dropped in all.
    pub lost_packets: Option<u64>,
    /// The longest wait at the bottleneck of a packet sent before the startup ended, in seconds; null if the
    /// engine does not observe it.
    pub startup_queue_delay_s: Option<f64>,
    /// Effect on the flows that were there before.
    pub others: Option<Others>,
    /// Jain's index of what flows that started together had delivered when the run ended.
    pub fairness: Option<f64>,
    /// What a controller in a library did wrong, after which the run ended; null if it kept the rules.
    #[serde(default)]
    pub broken: Option<String>,
}

impl GameRow {
    /// Time over the oracle's time until the receiver had so many bytes, and whether it is only a lower bound
    /// because the run ended before.
    pub fn regret(&self, bytes: u64) -> Option<(f64, bool)> {
        let key = bytes.to_string();
        let oracle = *self.oracle_s.get(&key)?;
        let time = *self.time_s.get(&key)?;
        Some((time.unwrap_or(self.given_s) / oracle, time.is_none()))
    }

    /// True if the receiver did not get `bytes` within ten times the oracle's time or more. A run that
    /// ended sooner, as those of flows that start together do, gives a lower bound and no more.
    pub fn never(&self, bytes: u64) -> bool {
        self.regret(bytes).is_some_and(|(regret, is_bound)| is_bound && regret >= PATIENCE)
    }

    /// True if the queue holds half a bandwidth-delay product or more.
    pub fn has_deep_queue(&self) -> bool {
        self.buffer_bytes.is_none_or(|b| b * 2 >= self.bdp_bytes)
    }
}

/// Bytes of a transfer: ten megabytes, so that each milestone is met, and this many bandwidth-delay products,
/// so that the startup ends on its own.
const BDPS: u64 = 8;
/// Twice as much as path and queue hold, so that a startup without a rule meets a loss.
const FILLS: u64 = 2;
/// Who has not delivered in so many times the oracle's time never does.
const PATIENCE: f64 = 10.0;
/// Harm is observed for this long, and three times what the oracle needs for 10 MB.
const HARM: Span = Span::secs(5);
/// Flows that start together are observed for this long and [`ROUNDS`] round trips.
const TOGETHER: Span = Span::secs(5);
const ROUNDS: u64 = 20;

/// Fails if an engine cannot run a case.
///
/// # Errors
/// What it lacks.
pub fn check(engine: &dyn Engine, case: &Case) -> Result<(), Refusal> {
    let needs = [
        // The league drives the other flows and the writes of these cases itself.
        (Part::Driven, case.load != Load::Alone),
    ];
    let set = case.set.keys().map(|key| (Part::of_knob(key), true));
    let needs: Vec<Part> =
        needs.into_iter().chain(set).filter_map(|(part, needed)| needed.then_some(part)).collect();
    engine.require(&needs)?;
    // An engine that carries a setting may refuse a value of it, whatever the startup.
    let any = if case.set.is_empty() { None } else { engine.startups("cubic").into_iter().next() };
    match any.map(|startup| study(engine, &startup, None, case)) {
        Some(Err(EngineError::Refused(why))) => Err(why),
        _ => Ok(()),
    }
}

/// Runs one startup on one case that [`check`] accepts.
///
/// # Errors
/// The startup is unknown, a parameter of it is wrong, or the run fails. Cases are correct by construction.
pub fn play(
    engine: &dyn Engine,
    startup: &str,
    avoidance: Option<&str>,
    case: &Case,
    stop: &dyn Fn() -> bool,
) -> Result<GameRow, EngineError> {
    let mut study = study(engine, startup, avoidance, case)?;
    let job = Job { contender: 0, run: 0 };
    let seed = study.run_seed(0);
    // The bytes of the transfer depend on the path that this run draws.
    let facts = study.path.draw(seed).facts();
    let queue = facts.buffer.unwrap_or(Bytes::ZERO);
    let size = MILESTONES[2].max(facts.bdp.0 * BDPS).max((facts.bdp.0 + queue.0) * FILLS);
    let mut writes: Vec<Write> = vec![(Span::ZERO, size)];
    study.duration = facts.rate.time_for(Bytes(size)) * 10 + Span::secs(60);
    let mut others = Vec::new();
    match &case.load {
        Load::Alone | Load::Against(_) => study.app = Kind::Bulk { size: Some(size) },
        Load::Starters { flows, within } => {
            study.app = Kind::Bulk { size: None };
            study.duration = TOGETHER + facts.base_rtt * ROUNDS;
            others = starters(&study, *flows, *within, seed);
        }
        Load::Limited { bytes, every, writes: count } => {
            writes = (0..u64::from(*count)).map(|i| (*every * i, *bytes)).collect();
            writes.push((*every * u64::from(*count), size));
            study.app = Kind::External { size: writes.iter().map(|w| w.1).sum() };
        }
    }
    study.size = match study.app {
        Kind::Bulk { size } => size,
        Kind::External { size } => Some(size),
        _ => None,
    };
    let path = study.path.build(seed);
    let (measured, others, fairness) = if case.load == Load::Alone {
        (engine.run(&study, job, &Watched { stop, ..Watched::ROW })?.measured, None, None)
    } else {
        let oracle = |bytes| oracle::time(&path, packet(&study), study.start(), &writes, bytes);
        drive(&study, job, case, others, &writes, HARM.max(oracle(MILESTONES[2]) * 3))
    };
    let oracle = |bytes| oracle::time(&path, measured.packet, study.start(), &writes, bytes);
    let oracle_s = MILESTONES.iter().map(|b| (b.to_string(), oracle(*b).as_secs_f64())).collect();
    Ok(GameRow { oracle_s, others, fairness, ..game_row(case, &study, &measured) })
}

/// A full packet of the simulator's flows.
fn packet(study: &Study) -> PacketSize {
    PacketSize { payload: u64::from(study.profile.mss), wire: u64::from(study.profile.packet()) }
}

/// Runs a case whose flows or writes the league drives. Returns what was observed, the harm to other flows
/// after `harm`, and the fairness among flows that start together.
fn drive(
    study: &Study,
    job: Job,
    case: &Case,
    others: Vec<FlowSpec>,
    writes: &[Write],
    harmed: Span,
) -> (Measured, Option<Others>, Option<f64>) {
    let start = study.start();
    let (mut engine, end) = study.prepare_among(job, Sampling::Off, false, others);
    let mut harm = None;
    if let Load::Limited { .. } = case.load {
        for (at, bytes) in writes {
            engine.run(start + *at);
            engine.write(FlowId(0), *bytes);
        }
    } else if engine.flows.iter().any(|f| f.truth.impact.is_some()) {
        engine.run(start + harmed);
        harm = simulator::measured(study, &engine, 0).others;
    }
    if engine.flows[0].truth.completed.is_none() {
        engine.complete(end);
    }
    let fairness = matches!(case.load, Load::Starters { .. })
        .then(|| jain(engine.flows.iter().map(|f| f.delivered() as f64)));
    if let Some(harm) = harm.as_mut().filter(|_| study.against.iter().any(|b| b.app == Kind::Web)) {
        // The goodput of clients that think is no measure of what they could have had.
        harm.goodput_dip = None;
    }
    (simulator::measured(study, &engine, 0), harm, fairness)
}

/// The row of a case, with what was observed of its flow.
fn game_row(case: &Case, study: &Study, m: &Measured) -> GameRow {
    let contender = &study.contenders[0];
    let row = Row::new(Identity::new("", study, contender, 0, case.seed), m);
    // Not every engine knows the wait until the exit.
    GameRow {
        league: SCHEMA,
        drawn_from: case.drawn_from,
        version: row.version,
        commit: row.commit,
        population: case.population.clone(),
        case: case.number,
        seed: case.seed,
        path: case.path.clone(),
        profile: row.profile,
        startup: contender.label.clone(),
        memory: contender.startup.uses_path_memory(),
        rate_bps: row.rate_bps,
        base_rtt_s: row.base_rtt_s,
        bdp_bytes: row.bdp_bytes,
        buffer_bytes: row.buffer_bytes,
        time_s: row.time_to_bytes_s,
        oracle_s: BTreeMap::new(),
        given_s: row.duration_s,
        class: row.class,
        exit: m.exit.map(|e| e.reason.to_string()),
        by_rule: m.exit.is_some_and(|e| !e.by_congestion),
        left_bdp: m.exit.map(|e| e.after.0 as f64 / row.bdp_bytes.max(1) as f64),
        startup_lost_packets: row.startup_lost_packets,
        lost_packets: row.lost_packets,
        startup_queue_delay_s: m.startup_queue_delay.map(Span::as_secs_f64),
        others: None,
        fairness: None,
        broken: m.broken.clone(),
    }
}

/// The study of a case: one startup, one run. An engine with a stack of its own ignores the case's TCP
/// profile.
fn study(
    engine: &dyn Engine,
    startup: &str,
    avoidance: Option<&str>,
    case: &Case,
) -> Result<Study, EngineError> {
    let against = if let Load::Against(flows) = &case.load { flows.clone() } else { Vec::new() };
    let text = StudyText {
        path: case.path.clone(),
        startups: vec![startup.into()],
        avoidance: avoidance.map(Into::into),
        profile: engine.lacks(Part::Profile).is_none().then(|| case.profile.into()),
        set: case.set.clone(),
        against,
        runs: Some(1),
        seed: Some(case.seed),
        ..StudyText::default()
    };
    engine.study(&text, None)
}

/// A flow of a contender, begun at `start`.
fn flow(study: &Study, contender: &Contender, start: Instant, app: Kind) -> FlowSpec {
    FlowSpec {
        start,
        direction: Direction::Download,
        recorded: false,
        app,
        profile: study.profile,
        extra_delay: Span::ZERO,
        links: slowstart_sim::path::Links::ALL,
        remembered: None,
        impact_from: None,
        avoidance: contender.avoidance.clone(),
        startup: contender.startup.clone(),
    }
}

/// The other flows that start with the flow studied.
fn starters(study: &Study, flows: u32, within: Span, seed: u64) -> Vec<FlowSpec> {
    let mut r = Stream::named(seed, "league.starters");
    let mut one = |_| {
        let start = study.start() + r.uniform_span(within);
        flow(study, &study.contenders[0], start, Kind::Bulk { size: None })
    };
    (1..flows).map(&mut one).collect()
}

/// Jain's fairness index (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 if all are equal, 1/n if one has
/// everything.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum, squares) = values.fold((0.0, 0.0, 0.0), |(n, s, q), v| (n + 1.0, s + v, q + v * v));
    if squares > 0.0 { sum * sum / (n * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_a_share_for_one_winner() {
        assert!((jain([3.0, 3.0, 3.0].into_iter()) - 1.0).abs() < 1e-12);
        assert!((jain([8.0, 0.0, 0.0, 0.0].into_iter()) - 0.25).abs() < 1e-12);
    }
}
