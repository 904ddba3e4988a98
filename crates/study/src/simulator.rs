//! The simulator as an engine, and what it observed of a flow: exit, class, losses and times.

use crate::connections;
use crate::engines::{self, Capture, EngineError, Lack, Part, Watched};
use crate::measured::{Ended, Identity, Measured, MeasuredExit, PacketSize, SIMULATOR, class};
use crate::record::{Class, HANDSHAKE_FAILED, Limits, LinkRow, LostBy, Marks, Objects, Others, Row, Trace};
use crate::run::{Job, Outcome, in_order};
use crate::scenario::{Contender, Study};
use crate::stats;
use slowstart::control::Controller;
use slowstart::registry;
use slowstart::units::{Bytes, Instant, Rate, Span};
use slowstart::view::PathMemory;
use slowstart_sim::app::{self, Object};
use slowstart_sim::engine::{BIN, Direction, Engine, Flow, FlowSpec, Proxied, Sampling, Truth};
use slowstart_sim::random::{self, Stream};
use slowstart_sim::tcp::ecn::Feedback;

/// Round trips below which the thesis takes the median throughput for capacity (5.2.2) and not the one-way
/// delay (5.2.1). It used the delay on LEO at 30 ms, and the median on `WiFi`; the border is ours.
const LOW_RTT: Span = Span::millis(25);

/// The median throughput over round trips (to the nearest [`BIN`], at least one) between the first and the
/// last byte, bytes a second, and when a round trip first reached it.
fn median_throughput(t: &Truth, start: Instant, base_rtt: Span) -> Option<(f64, Instant)> {
    let width = ((base_rtt + BIN / 2).0 / BIN.0).max(1) as usize;
    let bins = t.bins();
    let first = bins.iter().position(|b| *b > 0)?;
    let seconds = BIN.as_secs_f64() * width as f64;
    let rates: Vec<f64> = bins[first..]
        .chunks_exact(width)
        .map(|c| c.iter().map(|b| f64::from(*b)).sum::<f64>() / seconds)
        .collect();
    let median = stats::quantile(&rates, 0.5)?;
    let reached = rates.iter().position(|r| *r >= median)?;
    Some((median, start + BIN * (first + reached * width) as u64))
}

/// Objects under way when a run ends are waited for as long as it lasted, and this at least.
pub const LEAST_WAIT: Span = Span::secs(60);

/// The thesis' two heuristics (5.2.1, 5.2.2): class and capacity time. For paths of high round-trip time the
/// one-way delay tells when; for low ones the throughput tells whether, and the time is that of the first
/// round trip that reached the median (the thesis does not say how it got one).
fn by_heuristic(f: &Flow, base_rtt: Span) -> (Option<Class>, Option<Instant>) {
    let t = &f.truth;
    if base_rtt >= LOW_RTT {
        let capacity = t.capacity_by_delay;
        // Where the delay never showed a full path, this heuristic has no answer.
        return (capacity.map(|_| class(t.exit.as_ref().map(Ended::from), capacity, t.first_loss)), capacity);
    }
    let Some((median, at)) = median_throughput(t, f.spec.start, base_rtt) else { return (None, None) };
    let judged = match (&t.exit, t.exit_rtt) {
        (Some(e), Some(rtt)) => {
            let reached = e.detected_cwnd.0 as f64 / rtt.as_secs_f64().max(1e-9) > median;
            Some(class(Some(e.into()), reached.then_some(Instant::ZERO), t.first_loss))
        }
        (Some(_), None) => None,
        (None, _) => Some(Class::None),
    };
    (judged, Some(at))
}

/// The effect of the flow on those that were there before it.
fn others(engine: &Engine, flow: usize) -> Option<Others> {
    let start = engine.flows[flow].spec.start;
    let witnesses: Vec<&Flow> = engine.flows.iter().filter(|f| f.truth.impact.is_some()).collect();
    let first = witnesses.first()?;
    let arrived: Vec<(Instant, Vec<u32>)> =
        witnesses.iter().map(|f| (f.spec.start, f.truth.bins())).collect();
    let lost_packets = witnesses.iter().filter_map(|f| f.truth.impact.as_ref()).map(|w| w.dropped).sum();
    // Goodput of all of them together, second by second around the start.
    let per_second = (1_000_000_000 / BIN.0) as usize;
    let second = |from: Instant| -> Option<f64> {
        let mut sum = 0.0;
        for (start, bins) in &arrived {
            let at = (from.0.checked_sub(start.0)? / BIN.0) as usize;
            sum += bins.get(at..at + per_second)?.iter().map(|b| f64::from(*b)).sum::<f64>();
        }
        Some(sum)
    };
    let earlier = |s: u64| start.0.checked_sub(Span::secs(s).0).and_then(|at| second(Instant(at)));
    let before: Vec<f64> = (1..=5).filter_map(earlier).collect();
    let lasted = engine.now().since(start).0 / 1_000_000_000;
    let during: Vec<f64> = (0..lasted).filter_map(|s| second(start + Span::secs(s))).collect();
    let delay = first.truth.impact.as_ref().and_then(|w| w.order_statistic_bound(990));
    Some(Others::new(lost_packets, &before, &during, delay.map(Span::as_secs_f64)))
}

/// Waits for the objects that are under way when a run ends. `None` of an application without.
fn objects(study: &Study, engine: &mut Engine) -> Option<Objects> {
    if !study.app.has_objects() {
        return None;
    }
    let asked = engine.flows[0].objects().len();
    let now = engine.now();
    // A transfer with a size was given its time.
    let lasted = now.since(engine.flows[0].spec.start);
    engine.complete_objects(if study.size.is_some() { now } else { now + lasted.max(LEAST_WAIT) });
    let time = |o: &Object| o.came.map(|at| at.since(o.asked).as_secs_f64());
    let mut times: Vec<Option<f64>> = engine.flows[0].objects()[..asked].iter().map(time).collect();
    if times.is_empty() {
        // The first was to be asked for as soon as the connection was there.
        times.push(None);
    }
    Some(Objects::new(times))
}

/// What only the simulator knows to be a caveat.
fn caveats(study: &Study, engine: &Engine, f: &Flow, limits: &Limits) -> Vec<String> {
    let mut all = Vec::new();
    if f.handshake_failed() {
        all.push(HANDSHAKE_FAILED.to_string());
    }
    if limits.rwnd_limited.is_some_and(|share| share > 0.01) {
        all.push("the peer's receive window held the sender back".to_string());
    }
    if limits.sndbuf_limited.is_some_and(|share| share > 0.01) {
        all.push("the send buffer held the sender back".to_string());
    }
    if study.path.proxy().is_some() {
        all.push(
            "a proxy splits the connection: rate, RTT, exit and losses are those between server and proxy, times those of \
             the client"
                .to_string(),
        );
    }
    if let Some(limit) = study.path.limit_of_netem() {
        all.push(format!(
            "netem's limit of {limit} packets bounds the rate of the path, since it counts those on the delay line"
        ));
    }
    if f.ends.iter().any(|end| end.syn_losses() > 0) {
        all.push("a packet of the handshake was sent again".to_string());
    }
    let path = engine.path();
    if let Some(exit) = f.truth.exit.filter(|e| !e.why.by_congestion()) {
        let (first, then) = (path.rtt_at(f.spec.start), path.rtt_at(exit.detected_at));
        if then > first + first / 8 {
            all.push("the delay of the path itself had risen when the startup left".to_string());
        }
    }
    let marks =
        if f.spec.direction == Direction::Download { path.forward.marks() } else { path.back.marks() };
    if marks && f.ends[f.sender()].feedback() == Feedback::None {
        all.push("the path marks packets, and the ends do not use ECN".to_string());
    }
    all
}

/// What the simulator observed of one flow of a run, but its objects, which may be under way.
pub fn measured(study: &Study, engine: &Engine, flow: usize) -> Measured {
    let f = &engine.flows[flow];
    let (t, p, facts) = (&f.truth, &f.spec.profile, engine.path().facts);
    let tx = &f.ends[f.sender()].tx;
    let since = |at: Instant| at.since(f.spec.start);
    let base_rtt = facts.base_rtt + f.spec.extra_delay * 2;
    let (class_by_heuristic, capacity_by_heuristic) = by_heuristic(f, base_rtt);
    let ecn = f.ends[f.sender()].feedback() != Feedback::None;
    let limits = Limits::new(tx.limits(), f.spec.start, engine.now());
    Measured {
        packet: PacketSize { payload: u64::from(p.mss), wire: u64::from(p.packet()) },
        iw_bytes: Some(u64::from(p.iw) * u64::from(p.mss)),
        facts,
        base_rtt,
        drawn: engine.path().drawn.clone(),
        lasted: since(engine.now()),
        exit: t.exit.map(|e| MeasuredExit::of(&e, f.spec.start)),
        exit_unknown: None,
        capacity: t.capacity.map(since),
        class_by_heuristic,
        capacity_by_heuristic: capacity_by_heuristic.map(since),
        first_drop: t.first_drop.map(since),
        first_loss: t.first_loss.map(since),
        marks: ecn.then(|| Marks {
            first_time_s: t.first_mark.map(|at| since(at).as_secs_f64()),
            packets: f.ends[f.sender().other()].rx.ecn.marked,
            responses: tx.counters.mark_responses,
        }),
        peak_inflight: Some(tx.counters.peak_inflight),
        peak_queue_delay: Some(t.peak_queue_delay),
        startup_queue_delay: Some(if t.exit.is_some() { t.exit_queue_delay } else { t.peak_queue_delay }),
        startup_lost: Some(t.dropped_in_startup),
        lost: Some(t.dropped),
        lost_by: Some(LostBy::new(t.dropped_by)),
        links: LinkRow::all(&study.path, &engine.path().forward.at_links(flow as u32)),
        retransmitted: Some(tx.counters.retransmitted),
        timeouts: Some(tx.counters.timeouts),
        limits: Some(limits),
        delivered: f.delivered(),
        completed: t.completed.map(since),
        milestones: t.milestones.map(|at| at.map(since)),
        objects: None,
        connections: Vec::new(),
        others: others(engine, flow),
        cost: engine.cost.into(),
        closed: None,
        broken: f.fault(),
        caveats: caveats(study, engine, f, &limits),
    }
}

/// Returns the row of one flow of a run.
pub fn row(study: &Study, contender: &Contender, engine: &Engine, flow: usize, run: u32, seed: u64) -> Row {
    let identity = Identity::new(SIMULATOR, study, contender, run, seed);
    Row::new(Identity { flow: flow as u32, ..identity }, &measured(study, engine, flow))
}

impl Study {
    fn flows(&self, contender: &Contender, seed: u64) -> Vec<FlowSpec> {
        let start = self.start();
        let flow = |c: &Contender, start, direction, app, recorded| FlowSpec {
            start,
            direction,
            app,
            startup: c.startup.clone(),
            avoidance: c.avoidance.clone(),
            profile: self.profile_of(c),
            extra_delay: Span::ZERO,
            links: slowstart_sim::path::Links::ALL,
            remembered: None,
            recorded,
            impact_from: None,
        };
        let part = |i: u64| match self.app {
            app::Kind::Bulk { size: Some(size) } => {
                let n = u64::from(self.connections);
                app::Kind::Bulk { size: Some(size / n + u64::from(i < size % n)) }
            }
            other => other,
        };
        let own = 0..u64::from(self.connections);
        let mut flows: Vec<FlowSpec> =
            own.map(|i| flow(contender, start, Direction::Download, part(i), true)).collect();
        let mut arrivals = Stream::named(seed, "against");
        for b in &self.against {
            let mut begins = start - b.before + b.after;
            if b.drawn {
                begins = begins.min(start) + arrivals.uniform_span(b.before + b.after);
            }
            let mut other = flow(&b.contender, begins, b.direction, b.app, false);
            (other.links, other.extra_delay) = (b.links, b.longer / 2);
            other.impact_from = (b.direction == Direction::Download && begins <= start).then_some(start);
            flows.push(other);
        }
        flows
    }

    /// Returns the state of an earlier connection, for startups that use it: that of the same transfer over
    /// the same path or another, alone, with other random numbers.
    pub(crate) fn memory(&self, flow: &FlowSpec, seed: u64) -> Option<PathMemory> {
        let path = self.remember.path(&self.path).filter(|_| flow.startup.uses_path_memory())?;
        let before = random::at(seed, u64::MAX) >> 11;
        let alone = vec![FlowSpec { start: Instant::ZERO, recorded: false, ..flow.clone() }];
        // The same path, if it is drawn: only what varies on it is drawn afresh.
        let path = path.draw(seed).build(before);
        let mut engine = Engine::new(path, alone, before, Sampling::Off, false);
        engine.complete(Instant::ZERO + self.duration);
        let flow = &engine.flows[0];
        let tx = &flow.ends[flow.sender()].tx;
        let cwnd = tx.control().state().cwnd.min(Bytes(tx.counters.peak_inflight));
        let rate = Rate::new(cwnd, tx.rtt().srtt()?)?;
        Some(PathMemory { cwnd, rtt: tx.rtt().min()?, rate })
    }

    /// Returns the engine of a job, before its first event, and the time at which the run ends. Not for a
    /// path with a proxy, which takes two engines.
    pub fn prepare(&self, job: Job, sampling: Sampling, gauges: bool) -> (Engine, Instant) {
        self.prepare_among(job, sampling, gauges, Vec::new())
    }

    /// As [`Study::prepare`], with flows of the caller after those of the study.
    pub fn prepare_among(
        &self,
        job: Job,
        sampling: Sampling,
        gauges: bool,
        others: Vec<FlowSpec>,
    ) -> (Engine, Instant) {
        let seed = self.run_seed(job.run);
        let mut flows = self.flows(&self.contenders[job.contender], seed);
        let end = flows[0].start + self.duration;
        let remembered = self.memory(&flows[0], seed);
        for flow in &mut flows[..self.connections as usize] {
            flow.remembered = remembered;
        }
        flows.extend(others);
        (Engine::new(self.path.build(seed), flows, seed, sampling, gauges), end)
    }

    /// Runs one job. `gauges` records internal values of the startup with each sample.
    pub fn run(&self, job: Job, sampling: Sampling, gauges: bool) -> Outcome {
        self.execute(job, sampling, gauges, false)
    }

    /// Runs one job and keeps every acknowledgement and every packet.
    pub fn capture(&self, job: Job) -> Outcome {
        self.execute(job, Sampling::EachAck, false, true)
    }

    fn execute(&self, job: Job, sampling: Sampling, gauges: bool, capture: bool) -> Outcome {
        let contender = &self.contenders[job.contender];
        let seed = self.run_seed(job.run);
        let own = self.connections as usize;
        let mut milestones = None;
        let mut engine = if let Some(proxy) = self.path.proxy() {
            let flow = self.flows(contender, seed).swap_remove(0);
            let end = flow.start + self.duration;
            let path = self.path.build(seed);
            Proxied::new(proxy, path, flow, seed, (sampling, gauges), capture).complete(end)
        } else {
            let (mut engine, end) = self.prepare(job, sampling, gauges);
            if capture {
                engine.start_capture();
            }
            if own > 1 {
                let start = self.start();
                milestones =
                    Some(connections::complete(&mut engine, own, end).map(|at| at.map(|at| at.since(start))));
            } else {
                engine.complete(end);
            }
            engine
        };
        let mut measured = measured(self, &engine, 0);
        let packets = engine.take_capture();
        let trace = Trace { packets, ..std::mem::take(&mut engine.trace).into() };
        if let Some(milestones) = milestones {
            let each: Vec<Measured> = (0..own).map(|flow| self::measured(self, &engine, flow)).collect();
            measured = connections::together(&each, milestones).unwrap_or(measured);
        }
        measured.objects = objects(self, &mut engine);
        let row = Row::new(Identity::new(SIMULATOR, self, contender, job.run, seed), &measured);
        Outcome { job, row, trace, measured }
    }

    /// Runs every job on all processors. `each` gets the outcomes in the order of [`Study::jobs`], each as
    /// soon as those before it are there. An error of `each` ends the study.
    pub fn run_all<E>(&self, each: impl FnMut(Outcome) -> Result<(), E>) -> Result<(), E> {
        in_order(&self.jobs(), |job| self.run(job, Sampling::Off, false), each)
    }
}

/// The simulator of this crate.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulator;

impl engines::Engine for Simulator {
    fn name(&self) -> &str {
        SIMULATOR
    }

    fn lacks(&self, _: Part) -> Option<Lack> {
        None
    }

    fn startups(&self, _: &str) -> Vec<String> {
        registry::all().map(|e| e.name.to_string()).collect()
    }

    fn contender(&self, startup: &str, avoidance: &str) -> Result<Contender, EngineError> {
        Ok(Contender::read("startup", startup, avoidance)?)
    }

    fn stack(&self, study: &Study) -> String {
        study.profile_label.clone()
    }

    fn run(&self, study: &Study, job: Job, watched: &Watched<'_>) -> Result<Outcome, EngineError> {
        Ok(study.run(job, watched.sampling, watched.internals))
    }

    fn capture(&self, study: &Study, job: Job) -> Result<Capture, EngineError> {
        Ok(Capture::Trace(Box::new(study.capture(job).trace)))
    }
}
