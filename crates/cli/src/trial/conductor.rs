//! A trial that runs: reads its records, looks at the result, ends arms that harm, and writes what it found.

use super::{CHECK, POLL, Request, TrialArgs, read_short};
use crate::output::{color, note, print};
use crate::replay::warn;
use crate::signals;
use crate::trial_folder::TrialFolder;
use crate::trial_output::{metrics, table, unix_s};
use anyhow::{Result, bail};
use slowstart_linux::{KernelError, RunningTrial, TrialRecord};
use slowstart_trial::kept::Kept;
use slowstart_trial::{Analysis, Trial, TrialCounts, TrialResult};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a phase of a trial ended.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its time is over.
    Over,
    /// No arm but the control is left.
    OnlyControl,
    /// A signal, or an error: it may go on later.
    Stopped,
}

/// What the records are added to.
pub(super) struct State {
    pub a_a: Trial,
    pub trial: Trial,
    pub folder: Option<TrialFolder>,
    /// Connections of each arm that were closed since this start.
    pub closed: Vec<u64>,
}

impl State {
    fn take(&mut self, r: &TrialRecord) {
        let trial = if r.a_a { &mut self.a_a } else { &mut self.trial };
        if r.own_choice {
            trial.withdraw(r.connection);
            return;
        }
        trial.put(r.connection, r.outcome.clone(), r.closed);
        self.closed[r.outcome.arm] += u64::from(r.closed);
        if let Some(folder) = self.folder.as_mut().filter(|_| r.closed) {
            folder.write(trial.plan(), &r.outcome, r.a_a, true);
        }
    }
}

/// The thread that reads the records: a result of a million connections takes seconds, and the kernel holds
/// 7,000 records.
pub(super) struct Reader {
    records: Receiver<TrialRecord>,
    stop: Arc<AtomicBool>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Result<(), KernelError>>>,
}

impl Reader {
    pub(super) fn start(running: &RunningTrial) -> Result<Self> {
        let (sender, records) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        // Nobody receives the records if this program ends with an error.
        let mut reader = running.reader(move |r| drop(sender.send(r)))?;
        let ended = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                reader.poll()?;
                std::thread::sleep(POLL);
            }
            reader.poll()
        });
        Ok(Self { records, stop, thread: Some(thread) })
    }

    /// True if it could not read.
    fn failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Ends the thread after it has read what is left. Returns its error.
    fn end(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.take().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        Ok(ended.unwrap_or(Ok(()))?)
    }
}

/// A trial that runs.
pub(super) struct Conductor<'a> {
    pub args: &'a TrialArgs,
    pub request: &'a Request,
    pub running: RunningTrial,
    pub reader: Reader,
    pub state: State,
    /// The text for Prometheus.
    pub metrics: Arc<Mutex<String>>,
    /// What it needs to go on after a restart.
    pub kept: Kept,
    /// What became of connections, and how long it had run, before this start.
    pub counts_before: TrialCounts,
    pub seconds_before: f64,
    /// Why nobody reads standard output any more.
    pub unread: Option<anyhow::Error>,
    /// What could not be done meanwhile, as it was last said.
    pub trouble: String,
}

impl Conductor<'_> {
    /// Conducts it, and returns how it ended. Whatever ends it, what was found is written.
    pub(super) fn conduct(mut self) -> Result<Ending> {
        self.analyse()?;
        let mut began = None;
        let ran = self.run(&mut began);
        let read = self.reader.end();
        self.take_records();
        let seconds = self.seconds_since(began);
        // Connections still come: what is printed and what is written are of one reading.
        let (analysis, counts) = self.analyse()?;
        if began.is_some() {
            self.show(seconds, &analysis, &counts);
        }
        self.update(seconds, &counts);
        let over = matches!(ran, Ok(Ending::Over | Ending::OnlyControl));
        self.kept.over = began.is_some() && over && read.is_ok();
        self.kept.ended = true;
        let written = self.state.folder.take().map_or(Ok(()), |mut folder| {
            for outcome in self.state.trial.open() {
                folder.write(self.state.trial.plan(), outcome, false, false);
            }
            self.kept.rows_missing = folder.rows_missing();
            folder.finish(&self.result(&analysis, &counts, seconds), &self.kept)
        });
        let ending = ran?;
        read.and(written).and(self.unread.map_or(Ok(ending), Err))
    }

    /// Returns how long the trial has run, in seconds. `began` is when its second phase began in this start.
    fn seconds_since(&self, began: Option<Instant>) -> f64 {
        self.seconds_before + began.map_or(0.0, |begin| (signals::now() - begin).as_secs_f64())
    }

    /// Returns what is written of the result after this time.
    fn result<'a>(
        &'a self,
        analysis: &'a Analysis,
        counts: &'a TrialCounts,
        seconds: f64,
    ) -> TrialResult<'a> {
        let (seed, server, gaps) = (self.request.plan.seed(), &self.request.on, &self.kept.gaps);
        TrialResult { seed, server, seconds, gaps, counts, rows_missing: None, analysis }
    }

    /// Brings what is kept up to date.
    fn update(&mut self, seconds: f64, counts: &TrialCounts) {
        let kept = &mut self.kept;
        (kept.seconds, kept.last_unix_s, kept.counts) = (seconds, unix_s() as u64, counts.clone());
        let ended = self.state.trial.ended().iter();
        kept.ended_by = ended.map(|e| e.as_ref().map(|e| e.guard.clone())).collect();
        let assigned =
            counts.assigned.iter().zip(&self.counts_before.assigned).map(|(all, before)| all - before);
        kept.open = assigned.zip(&self.state.closed).map(|(n, closed)| n.saturating_sub(*closed)).collect();
    }

    /// Writes what the trial needs to go on after a restart.
    fn keep(&mut self, seconds: f64, counts: &TrialCounts) {
        self.update(seconds, counts);
        let Some(folder) = &self.state.folder else { return };
        self.kept.rows_missing = folder.rows_missing();
        if let Err(e) = folder.keep(&self.kept) {
            warn(&format!("{e:#}; the trial goes on"));
        }
    }

    /// Runs both phases; `began` becomes the time when the second begins.
    fn run(&mut self, began: &mut Option<Instant>) -> Result<Ending> {
        if let Some(length) = self.request.aa.filter(|_| !self.kept.past_a_a) {
            if self.run_until(Some(signals::now() + length), None)? == Ending::Stopped {
                bail!("ended during the A/A phase");
            }
            self.end_a_a()?;
            self.kept.past_a_a = true;
        }
        let begin = *began.insert(signals::now());
        let left =
            self.request.duration.map(|d| d.saturating_sub(Duration::from_secs_f64(self.seconds_before)));
        self.run_until(left.map(|d| begin + d), Some(begin))
    }

    /// Says what could not be done; the trial goes on.
    fn say(&mut self, trouble: &anyhow::Error) {
        let text = format!("{trouble:#}");
        if self.trouble != text {
            warn(&format!("{text}; the trial goes on"));
            self.trouble = text;
        }
    }

    /// Adds what was read since the last call.
    fn take_records(&mut self) {
        for r in self.reader.records.try_iter() {
            self.state.take(&r);
        }
    }

    /// Takes records until this time, a signal or the end of every arm. After `begin` it checks guardrails and
    /// prints results.
    fn run_until(&mut self, until: Option<Instant>, begin: Option<Instant>) -> Result<Ending> {
        let mut next_check = signals::now() + CHECK;
        let mut next_shown = signals::now() + self.request.every;
        loop {
            self.take_records();
            let now = signals::now();
            if signals::caught() {
                return Ok(Ending::Stopped);
            }
            if self.reader.failed() {
                // Its error ends the trial.
                return Ok(Ending::Stopped);
            }
            if until.is_some_and(|u| now >= u) {
                return Ok(Ending::Over);
            }
            if now >= next_check {
                next_check = now + CHECK;
                match self.running.follow() {
                    Ok(made) => {
                        for cgroup in made {
                            note(&format!("{}: made since; the trial goes on there", cgroup.display()));
                        }
                    }
                    Err(e) => self.say(&e.into()),
                }
                if begin.is_some() {
                    let ended = self.state.trial.ended().iter().flatten().count();
                    let all = self.end_harmful()?;
                    if self.state.trial.ended().iter().flatten().count() > ended {
                        // An arm that was ended stays so, whatever happens; an alarm need not wait for the next result.
                        let (_, counts) = self.analyse()?;
                        self.keep(self.seconds_since(begin), &counts);
                    }
                    if all {
                        note("every arm but the control was ended");
                        return Ok(Ending::OnlyControl);
                    }
                }
            }
            if let Some(begin) = begin.filter(|_| now >= next_shown) {
                next_shown = now + self.request.every;
                match self.analyse() {
                    Ok((analysis, counts)) => self.show(self.seconds_since(Some(begin)), &analysis, &counts),
                    Err(e) => self.say(&e),
                }
            }
            std::thread::sleep(POLL);
        }
    }

    /// The arms that the stop file names, beside the control. A file that is not there names none.
    fn told_to_end(&self) -> Vec<usize> {
        let Some(file) = &self.args.stop_file else { return Vec::new() };
        let text = read_short(file).unwrap_or_default();
        let names: Vec<&str> = text.lines().map(str::trim).collect();
        let arms = self.request.plan.arms().iter().enumerate().skip(1);
        arms.filter(|(_, a)| names.contains(&a.name.as_str())).map(|(i, _)| i).collect()
    }

    /// Ends the arms that crossed a guardrail or that the stop file names; returns true if none but the
    /// control is left.
    fn end_harmful(&mut self) -> Result<bool> {
        for arm in self.told_to_end() {
            if self.state.trial.end(arm, "--stop-file") {
                self.running.end_arm(arm)?;
                let name = &self.request.plan.arms()[arm].name;
                note(&format!(
                    "{name} is ended by the stop file: its connections are left alone from now on"
                ));
            }
        }
        for arm in self.state.trial.end_harmful() {
            self.running.end_arm(arm)?;
            let name = &self.request.plan.arms()[arm].name;
            note(&format!("{name} has crossed a guardrail: its connections are left alone from now on"));
        }
        Ok(self.state.trial.ended()[1..].iter().all(Option::is_some))
    }

    /// Checks the A/A phase and begins the trial.
    fn end_a_a(&mut self) -> Result<()> {
        let analysis = self.state.a_a.analyse();
        let counts: Vec<String> =
            analysis.arms.iter().map(|a| format!("{} {}", a.connections, a.name)).collect();
        if !self.state.a_a.is_a_a() {
            let table = table(&analysis, &self.kept.gaps, &self.running.counts()?, false);
            bail!(
                "the A/A phase failed: arms that use the same control differ or have not received their shares. Nothing was \
                 changed but the control of connections in the trial, which was that of the first arm.\n{table}"
            );
        }
        let compared = analysis.comparisons.iter().any(|c| c.effect.is_some());
        let found = if compared { "no difference" } else { "too few connections to compare" };
        note(&format!("A/A phase: {found} ({}); the trial begins", counts.join(", ")));
        Ok(self.running.end_a_a()?)
    }

    /// Returns what became of the connections, before this start too.
    fn counts(&self) -> Result<TrialCounts> {
        Ok(self.counts_before.plus(&self.running.counts()?))
    }

    /// Returns the result so far, and makes it that of Prometheus.
    fn analyse(&mut self) -> Result<(Analysis, TrialCounts)> {
        let counts = self.counts()?;
        self.state.trial.set_lost(counts.lost_records);
        let analysis = self.state.trial.analyse();
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = metrics(&analysis, &counts);
        Ok((analysis, counts))
    }

    /// Prints a result. That nobody reads it does not end a trial.
    fn show(&mut self, seconds: f64, analysis: &Analysis, counts: &TrialCounts) {
        match self.shown(seconds, analysis, counts) {
            Ok(text) => {
                if let Err(e) = print(&text)
                    && self.unread.is_none()
                {
                    warn(&format!("standard output: {e:#}; the trial goes on"));
                    self.unread = Some(e);
                }
            }
            Err(e) => self.say(&e),
        }
    }

    /// Writes the statistics of a result, and returns its text.
    fn shown(&mut self, seconds: f64, analysis: &Analysis, counts: &TrialCounts) -> Result<String> {
        if let Some(folder) = &self.state.folder {
            let release = self.request.on.kernel.as_deref().unwrap_or_default();
            let (trial, lost) = (&self.state.trial, counts.lost_records);
            let statistics = trial.statistics(&self.kept.run, release, seconds, lost);
            if let Err(e) = folder.put_statistics(&statistics) {
                warn(&format!("{e:#}; the trial goes on"));
            }
        }
        self.keep(seconds, counts);
        if self.args.json {
            let result = self.result(analysis, counts, seconds);
            return Ok(serde_json::to_string(&result)?);
        }
        let all: u64 = analysis.arms.iter().map(|a| a.connections).sum();
        Ok(format!(
            "after {seconds:.0} s, {all} connections:\n{}",
            table(analysis, &self.kept.gaps, counts, color())
        ))
    }
}
