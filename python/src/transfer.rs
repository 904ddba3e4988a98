//! One transfer that an agent steers, for `slowstart.gym`.

use crate::bad;
use pyo3::prelude::*;
use slowstart::control::Controller;
use slowstart::registry::Algorithm;
use slowstart::startup::foreign::{Event, Foreign, Host};
use slowstart::step::{Exit, Step};
use slowstart::units::Span;
use slowstart::view::View;
use slowstart_sim::engine::{Engine, Sampling};
use slowstart_study::run::Job;
use slowstart_study::scenario::{Study, StudyText};
use slowstart_study::simulator;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an agent asks for at present.
#[derive(Copy, Clone, Debug)]
struct Action {
    /// Growth, in millionths of that of standard slow start.
    growth: u64,
    exit: bool,
}

/// The actions in force, by the number of the transfer.
static ACTIONS: Mutex<Option<BTreeMap<u64, Action>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0);

fn set(transfer: u64, action: Option<Action>) {
    let mut all = ACTIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all = all.get_or_insert_default();
    match action {
        Some(action) => drop(all.insert(transfer, action)),
        None => drop(all.remove(&transfer)),
    }
}

/// Grows as the agent says.
struct Agent;
static AGENT: Agent = Agent;

impl Host for Agent {
    fn begin(&self, class: u64) -> u64 {
        class
    }

    fn event(&self, connection: u64, v: &View, event: Event) -> Step {
        match event {
            Event::Ack(ack) => {
                let all = ACTIONS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let Some(action) = all.as_ref().and_then(|a| a.get(&connection)) else { return Step::HOLD };
                if action.exit {
                    return Step::exit(Exit::Estimate);
                }
                Step::grow(v.slow_start_growth(ack).scale(action.growth, 1_000_000))
            }
            Event::Congestion(c) => Step::exit(c.signal.into()),
            _ => Step::HOLD,
        }
    }
}

/// A transfer that an agent steers: `step` sets how slow start grows and lets an interval pass.
#[pyclass(module = "slowstart")]
pub(crate) struct Transfer {
    study: Study,
    engine: Engine,
    end: slowstart::units::Instant,
    number: u64,
    run: u32,
    interval: Span,
    /// Bytes delivered and lost until the last step.
    before: (u64, u64),
}

#[pymethods]
impl Transfer {
    /// Begins a transfer; `run` selects the random numbers as in `compare`. `interval_s` is the time of a
    /// step, a base RTT without it.
    #[new]
    #[pyo3(signature = (path, *, size=None, seed=1, run=0, interval_s=None, profile=None))]
    fn new(
        path: String,
        size: Option<String>,
        seed: u64,
        run: u32,
        interval_s: Option<f64>,
        profile: Option<String>,
    ) -> PyResult<Self> {
        let startups = vec!["standard".to_string()];
        let text = StudyText {
            path,
            startups,
            size,
            profile,
            seed: Some(seed),
            runs: Some(1),
            ..StudyText::default()
        };
        let mut study = Study::check(&text, None).map_err(bad)?;
        if study.path.proxy().is_some() {
            return Err(bad(
                "path: found one with a proxy, expected one without: an agent steers one sender",
            ));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        study.contenders[0].startup = Algorithm::Foreign(Foreign::new(&AGENT, number));
        let (engine, end) = study.prepare(Job { contender: 0, run }, Sampling::Off, false);
        let interval = match interval_s {
            None => engine.path().facts.base_rtt,
            Some(s) if (1e-6..=1e3).contains(&s) => Span((s * 1e9) as u64),
            Some(s) => return Err(bad(format!("interval_s: found {s}, expected seconds from 1e-6 to 1000"))),
        };
        set(number, Some(Action { growth: 1_000_000, exit: false }));
        Ok(Self { study, engine, end, number, run, interval, before: (0, 0) })
    }

    /// Sets growth (1: that of standard slow start) and exit, and lets an interval pass. Returns the
    /// observation, the reward, and whether the transfer is complete or its time is over.
    fn step(&mut self, py: Python<'_>, growth: f64, exit: bool) -> PyResult<(Vec<f64>, f64, bool, bool)> {
        if !(0.0..=1000.0).contains(&growth) {
            return Err(bad(format!("growth: found {growth}, expected a number from 0 to 1000")));
        }
        set(self.number, Some(Action { growth: (growth * 1e6).round() as u64, exit }));
        let until = (self.engine.now() + self.interval).min(self.end);
        py.detach(|| self.engine.run_until(until, |e| e.flows[0].truth.completed.is_some()));
        let (observation, delivered, lost) = self.look();
        let (dd, dl) = (delivered - self.before.0, lost - self.before.1);
        self.before = (delivered, lost);
        let capacity = self.engine.path().facts.rate.over(self.interval).0.max(1) as f64;
        let reward = (dd as f64 - dl as f64) / capacity;
        let complete = self.engine.flows[0].truth.completed.is_some();
        Ok((observation, reward, complete, !complete && self.engine.now() >= self.end))
    }

    /// The observation at present: see `slowstart.gym`.
    fn observation(&self) -> Vec<f64> {
        self.look().0
    }

    /// The row of the transfer so far, as JSON.
    fn row(&self) -> PyResult<String> {
        let row = simulator::row(
            &self.study,
            &self.study.contenders[0],
            &self.engine,
            0,
            self.run,
            self.study.run_seed(self.run),
        );
        serde_json::to_string(&row).map_err(bad)
    }
}

impl Transfer {
    /// The observation, bytes delivered and bytes lost.
    fn look(&self) -> (Vec<f64>, u64, u64) {
        let flow = &self.engine.flows[0];
        let tx = &flow.ends[flow.sender()].tx;
        let mss = f64::from(self.study.profile.mss);
        let state = tx.control().state();
        let seconds = |s: Option<Span>| s.map_or(0.0, Span::as_secs_f64);
        let (delivered, lost) = (flow.delivered(), flow.truth.dropped * u64::from(self.study.profile.mss));
        let observation = vec![
            self.engine.now().0 as f64 / 1e9,
            state.cwnd.0 as f64 / mss,
            tx.board().inflight().0 as f64 / mss,
            seconds(tx.rtt().srtt()),
            seconds(tx.rtt().min()),
            delivered.saturating_sub(self.before.0) as f64 / mss,
            lost.saturating_sub(self.before.1) as f64 / mss,
            f64::from(u8::from(flow.truth.exit.is_none())),
        ];
        (observation, delivered, lost)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        set(self.number, None);
    }
}
