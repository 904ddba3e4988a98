//! `slowstart kernel trial`: a controlled experiment among a server's own connections.

use crate::output::{color, note, print};
use crate::replay::warn;
use crate::trial_folder::{self, TrialFolder};
use crate::trial_output::{metrics, table, unix_s};
use crate::{prometheus, signals};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use slowstart_linux::{Capability, KernelError, RunningTrial, TrialRecord, TrialSpec, drop_privileges};
use slowstart_trial::kept::{Fixed, Kept};
use slowstart_trial::page::gap_text;
use slowstart_trial::plan::seed_of_server;
use slowstart_trial::statistics::PlannedTrial;
use slowstart_trial::{
    Analysis, Arm, Guard, Measure, Plan, Stratify, Trial, TrialCounts, TrialResult, TrialServer,
};
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A controlled experiment among a service's own connections, until Ctrl-C
///
/// It finds out which startup serves the users best. Each new connection of the
/// cgroup is assigned to an arm at random, when it is established. The first arm
/// is the control. Connections whose program asks for a congestion control are
/// left alone. You may look at the result as often as you like (docs/guide/trial.md).
/// When the trial ends, in any way, new connections use what they used before. With
/// the --out of a trial that was ended or killed, as by a restart of the machine, and
/// its plan, that trial goes on; its result states the gap.
///
/// Examples:
///   slowstart kernel trial --cgroup /sys/fs/cgroup/system.slice/nginx.service \
///     --arm cubic:50% --arm search:25% --arm ess:25% --stop-on-harm retrans=+20%
///   slowstart kernel trial --cgroup /sys/fs/cgroup/system.slice/nginx.service \
///     --arm cubic:90% --arm search:10% --dry-run --for 60s
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
#[allow(clippy::doc_markdown, reason = "help is not Markdown")]
pub(crate) struct TrialArgs {
    /// Directory of the service's cgroup, such as /sys/fs/cgroup/system.slice/nginx.service, or a pattern for
    /// several, those that are made later too, such as '/sys/fs/cgroup/system.slice/docker-*.scope'
    #[arg(long, value_name = "DIR")]
    cgroup: PathBuf,
    /// An arm and its share of new connections: a congestion control of the kernel, or a startup such as
    /// search:threshold=0.3, then :PERCENT%. Two to eight; the first is the control
    #[arg(long = "arm", value_name = "NAME:SHARE%", required_unless_present = "plan")]
    arms: Vec<String>,
    /// The plan of a fleet: a TOML file with arms, measure, stratify, sticky, stop-on-harm, aa and seed, the
    /// same on each server. Each server assigns with a seed of its own, made from the plan's and its name
    #[arg(long, value_name = "FILE", requires = "server",
        conflicts_with_all = ["arms", "measure", "stratify", "sticky", "stop_on_harm", "aa", "seed"])]
    plan: Option<PathBuf>,
    /// The name of this server in its fleet, such as $(hostname)
    #[arg(long, value_name = "NAME", requires = "plan")]
    server: Option<String>,
    /// What arms are compared by: time-100kb, time-1mb, time-10mb, time-last, retrans, rtt-mean, rtt-peak
    /// [default: time-last]
    #[arg(long)]
    measure: Option<String>,
    /// Compare within classes of the handshake's RTT, of clients' prefixes, or both: rtt, prefix, rtt,prefix
    #[arg(long, value_name = "BY")]
    stratify: Option<String>,
    /// Give all connections of a client's prefix (/24 of IPv4, /56 of IPv6) the same arm
    #[arg(long, value_name = "BY", value_parser = ["prefix"])]
    sticky: Option<String>,
    /// End an arm once it is shown to have more of a measure than the control, such as retrans=+20%
    #[arg(long, value_name = "MEASURE=+PERCENT%")]
    stop_on_harm: Vec<String>,
    /// End the arms that this file names, one a line, as soon as it does. `slowstart trial pool` writes it
    #[arg(long, value_name = "FILE")]
    stop_file: Option<PathBuf>,
    /// Begin with an A/A phase of this length, in which all arms use the first arm's control and must not
    /// differ
    #[arg(long, value_name = "TIME")]
    aa: Option<String>,
    /// Change nothing: count what would be assigned, for 10 s or the time of --for
    #[arg(long)]
    dry_run: bool,
    /// End after this time, not counting the A/A phase
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<String>,
    /// Time between two results printed while the trial runs
    #[arg(long, value_name = "TIME", default_value = "60s")]
    every: String,
    /// Seed of the assignment [default: that of the trial that goes on, or random; printed at the start]
    #[arg(long)]
    seed: Option<u64>,
    /// Write a row for each connection, the result and a report page to this folder, or go on with its trial
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print each result as a JSON object on one line
    #[arg(long)]
    json: bool,
    /// Serve counters by arm for Prometheus at this address, such as 127.0.0.1:9478
    #[arg(long, value_name = "ADDRESS")]
    prometheus: Option<SocketAddr>,
}

/// Time between two reads of the records.
const POLL: Duration = Duration::from_millis(100);
/// Time between two checks of the guardrails, and of the cgroup.
const CHECK: Duration = Duration::from_secs(1);
/// Time of a dry run without --for.
const DRY: Duration = Duration::from_secs(10);

fn random_seed() -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes)).context("read /dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The largest plan and stop file, in bytes: a few lines each.
const SHORT: u64 = 1 << 16;

/// Reads a text that is short. Others may write the file, and a longer one is not held.
fn read_short(file: &Path) -> Result<String> {
    let bytes = slowstart_files::read_from(slowstart_files::open(file)?, SHORT)?;
    String::from_utf8(bytes).context("expected text")
}

/// The keys of the plan of a fleet: arguments of the same names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PlanFile {
    arms: Vec<String>,
    measure: Option<String>,
    stratify: Option<String>,
    sticky: Option<String>,
    #[serde(default)]
    stop_on_harm: Vec<String>,
    aa: Option<String>,
    seed: u64,
}

/// The parsed arguments.
struct Request {
    plan: Plan,
    measure: Measure,
    stratify: Stratify,
    guards: Vec<Guard>,
    aa: Option<Duration>,
    duration: Option<Duration>,
    every: Duration,
    on: TrialServer,
}

/// This server, as its kernel has it now.
fn this_server() -> TrialServer {
    let line = |file: &str| {
        let text = slowstart_files::read_kernel(file).ok()?;
        Some(text.trim().to_string()).filter(|t| !t.is_empty())
    };
    TrialServer {
        host: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        default_control: line("/proc/sys/net/ipv4/tcp_congestion_control"),
        began_unix_s: unix_s() as u64,
    }
}

impl Request {
    /// What does not change while the trial lasts, however often it is started.
    fn fixed(&self, args: &TrialArgs) -> Fixed {
        let guards = self.guards.iter().map(ToString::to_string).collect();
        let (by_rtt, sticky) = (self.stratify.rtt, args.sticky.is_some());
        let plan = PlannedTrial::new(&self.plan, self.measure, guards, by_rtt, sticky);
        let aa_ns = self.aa.map(|d| d.as_nanos() as u64);
        Fixed::new(&args.cgroup.display().to_string(), plan, self.stratify, aa_ns, self.plan.seed())
    }

    /// What the trial does to connections that no arm has the control of today.
    fn moved(&self) -> Option<String> {
        let today = self.on.default_control.as_deref()?;
        let used = self.plan.arms().iter().any(|a| a.name.split(':').next() == Some(today));
        (!used).then(|| {
            format!(
                "sockets that name no congestion control have {today}, which is no arm: in the trial none of them keeps it"
            )
        })
    }
}

impl TrialArgs {
    /// Replaces the arguments that the plan gives.
    fn with_plan(mut self) -> Result<Self> {
        let (Some(file), Some(server)) = (&self.plan, &self.server) else { return Ok(self) };
        let shown = format!("--plan {}", file.display());
        let text = read_short(file).with_context(|| shown.clone())?;
        let plan: PlanFile = toml::from_str(&text).with_context(|| shown.clone())?;
        if let Some(other) = plan.sticky.as_ref().filter(|s| *s != "prefix") {
            bail!("{shown}: sticky: found {other:?}, expected \"prefix\"");
        }
        self.seed = Some(seed_of_server(plan.seed, server));
        self.arms = plan.arms;
        self.measure = plan.measure;
        self.stratify = plan.stratify;
        self.sticky = plan.sticky;
        self.stop_on_harm = plan.stop_on_harm;
        self.aa = plan.aa;
        Ok(self)
    }

    /// `kept_seed` is that of a trial that goes on.
    fn request(&self, kept_seed: Option<u64>) -> Result<Request> {
        let arms = self.arms.iter().map(|a| Arm::parse(a)).collect::<Result<Vec<_>, _>>().context("--arm")?;
        let seed = self.seed.or(kept_seed).map_or_else(random_seed, Ok)?;
        let measure = self.measure.as_deref().unwrap_or("time-last");
        let measure = Measure::named(measure).with_context(|| {
            let known = Measure::ALL.map(Measure::name).join(", ");
            format!("--measure: found {measure:?}, expected one of {known}")
        })?;
        let stratify = self.stratify.as_deref().map_or(Some(Stratify::default()), Stratify::parse);
        let time = |key: &str, text: &Option<String>| -> Result<Option<Duration>> {
            let span = text.as_deref().map(|t| slowstart_study::scenario::time(key, t)).transpose()?;
            Ok(span.map(|s| Duration::from_nanos(s.0)))
        };
        let every = time("--every", &Some(self.every.clone()))?.unwrap_or(CHECK);
        Ok(Request {
            plan: Plan::new(arms, seed).context("--arm")?,
            measure,
            stratify: stratify.context("--stratify: expected rtt, prefix or rtt,prefix")?,
            guards: self
                .stop_on_harm
                .iter()
                .map(|g| Guard::parse(g))
                .collect::<Result<_, _>>()
                .context("--stop-on-harm")?,
            aa: time("--aa", &self.aa)?,
            duration: time("--for", &self.duration)?,
            every,
            on: this_server(),
        })
    }

    pub(crate) fn main(&self) -> Result<()> {
        self.clone().with_plan()?.conduct()
    }

    fn conduct(&self) -> Result<()> {
        let out = self.out.as_deref().filter(|_| !self.dry_run);
        let before = out.map(trial_folder::kept).transpose()?.flatten();
        let mut request = self.request(before.as_ref().map(|k| k.fixed.seed))?;
        let listener =
            self.prometheus.map(|a| TcpListener::bind(a).with_context(|| a.to_string())).transpose()?;
        let new = || {
            let Request { plan, measure, stratify, guards, .. } = &request;
            Trial::new(plan.clone(), *measure, *stratify, guards.clone(), self.sticky.is_some())
        };
        let (a_a, mut trial) = (new(), new());
        let (fixed, kernel) = (request.fixed(self), request.on.kernel.clone());
        let goes_on = before.is_some();
        let mut kept = match before {
            Some(kept) => kept,
            None => Kept::new(
                fixed.clone(),
                format!("{:016x}", random_seed()?),
                request.on.began_unix_s,
                kernel.clone(),
            ),
        };
        let folder = match out {
            Some(dir) if goes_on => {
                let mut connection = 0;
                let each = |outcome, of_a_a: bool| {
                    // An A/A phase that was cut begins again.
                    if !of_a_a {
                        trial.put(connection, outcome, true);
                        connection += 1;
                    }
                };
                let now = (request.on.began_unix_s, kernel);
                Some(TrialFolder::resume(dir, &mut kept, (&fixed, &request.plan), now, each)?)
            }
            Some(dir) => Some(TrialFolder::create(dir, &kept)?),
            None => None,
        };
        request.on.began_unix_s = kept.began_unix_s;
        let salted = self.sticky.is_some() || request.stratify.prefix;
        let salt = folder.as_ref().filter(|_| salted).map(TrialFolder::salt).transpose()?.flatten();
        signals::catch()?;
        let mut running = RunningTrial::start(&TrialSpec {
            cgroup: &self.cgroup,
            plan: &request.plan,
            sticky: self.sticky.is_some(),
            a_a: !kept.past_a_a,
            dry: self.dry_run,
            salt,
        })?;
        for (arm, why) in kept.ended_by.iter().enumerate() {
            if let Some(why) = why {
                trial.end(arm, why);
                running.end_arm(arm)?;
            }
        }
        if let Some(folder) = folder.as_ref().filter(|_| salted && salt.is_none()) {
            folder.keep_salt(&running.salt())?;
        }
        for other in running.others() {
            warn(&format!(
                "{other} sees the same connections; a control that it sets counts as their program's choice"
            ));
        }
        if !running.sees_choices() {
            warn(
                "this kernel refuses a program of the type cgroup/setsockopt: that a program sets a connection's \
                 control is not seen where the connection has that control already, and the arms may then differ \
                 in which connections are left",
            );
        }
        drop_privileges(&[Capability::NetAdmin, Capability::Bpf])?;
        if let Some(moved) = request.moved() {
            warn(&moved);
        }
        if self.dry_run {
            return dry_run(&running, &request);
        }
        if let (Some(gap), Some(dir)) = (kept.gaps.last(), out) {
            let names: Vec<&str> = request.plan.arms().iter().map(|a| a.name.as_str()).collect();
            let n = trial.outcomes().len();
            let text = gap_text(gap, &names);
            note(&format!("{}: the trial goes on with {n} connections from before; {text}", dir.display()));
        }
        let shown: Vec<String> =
            request.plan.arms().iter().map(|a| format!("{} {}", a.name, a.share)).collect();
        note(&format!(
            "{}: new connections are assigned to {}; seed {}; Ctrl-C ends the trial",
            self.cgroup.display(),
            shown.join(", "),
            request.plan.seed()
        ));
        let closed = vec![0; kept.open.len()];
        let state = State { a_a, trial, folder, closed };
        let reader = Reader::start(&running)?;
        let metrics = Arc::new(Mutex::new(String::new()));
        if let Some(listener) = listener {
            let text = Arc::clone(&metrics);
            prometheus::serve(listener, move || text.lock().unwrap_or_else(PoisonError::into_inner).clone())?;
        }
        let (counts_before, seconds_before) = (kept.counts.clone(), kept.seconds);
        Conductor {
            args: self,
            request: &request,
            running,
            reader,
            state,
            metrics,
            kept,
            counts_before,
            seconds_before,
            unread: None,
            trouble: String::new(),
        }
        .conduct()
    }
}

/// Counts what would be assigned, and prints it.
fn dry_run(running: &RunningTrial, request: &Request) -> Result<()> {
    let until = signals::now() + request.duration.unwrap_or(DRY);
    while !signals::caught() && signals::now() < until {
        std::thread::sleep(POLL);
    }
    let counts = running.counts()?;
    let total = counts.assigned.iter().sum::<u64>() + counts.outside + counts.own_choice;
    print(&format!("dry run, nothing was changed: {total} new connections"))?;
    for (arm, n) in request.plan.arms().iter().zip(&counts.assigned) {
        print(&format!("  {n} would use {} ({} of all)", arm.name, arm.share))?;
    }
    print(&format!("  {} outside the shares, left alone", counts.outside))?;
    print(&format!("  {} with a control chosen by the program, left alone", counts.own_choice))
}

/// How a phase of a trial ended.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Ending {
    /// Its time is over, or no arm but the control is left.
    Over,
    /// A signal, or an error: it may go on later.
    Stopped,
}

/// What the records are added to.
struct State {
    a_a: Trial,
    trial: Trial,
    folder: Option<TrialFolder>,
    /// Connections of each arm that were closed since this start.
    closed: Vec<u64>,
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
struct Reader {
    records: Receiver<TrialRecord>,
    stop: Arc<AtomicBool>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Result<(), KernelError>>>,
}

impl Reader {
    fn start(running: &RunningTrial) -> Result<Self> {
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
struct Conductor<'a> {
    args: &'a TrialArgs,
    request: &'a Request,
    running: RunningTrial,
    reader: Reader,
    state: State,
    /// The text for Prometheus.
    metrics: Arc<Mutex<String>>,
    /// What it needs to go on after a restart.
    kept: Kept,
    /// What became of connections, and how long it had run, before this start.
    counts_before: TrialCounts,
    seconds_before: f64,
    /// Why nobody reads standard output any more.
    unread: Option<anyhow::Error>,
    /// What could not be done meanwhile, as it was last said.
    trouble: String,
}

impl Conductor<'_> {
    /// Conducts it. Whatever ends it, what was found is written.
    fn conduct(mut self) -> Result<()> {
        self.analyse()?;
        let mut began = None;
        let ran = self.run(&mut began);
        let read = self.reader.end();
        self.take_records();
        let seconds = self.seconds_since(began);
        if began.is_some() {
            self.show(seconds);
        }
        let (analysis, counts) = self.analyse()?;
        self.update(seconds, &counts);
        self.kept.over = began.is_some() && matches!(ran, Ok(Ending::Over)) && read.is_ok();
        self.kept.ended = true;
        let written = self.state.folder.take().map_or(Ok(()), |mut folder| {
            for outcome in self.state.trial.open() {
                folder.write(self.state.trial.plan(), outcome, false, false);
            }
            self.kept.rows_missing = folder.rows_missing();
            folder.finish(&self.result(&analysis, &counts, seconds), &self.kept)
        });
        let ran = ran.map(|_| ());
        ran.and(read).and(written).and(self.unread.map_or(Ok(()), Err))
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
                        // An arm that was ended stays so, whatever happens.
                        let counts = self.counts()?;
                        self.keep(self.seconds_since(begin), &counts);
                    }
                    if all {
                        note("every arm but the control was ended");
                        return Ok(Ending::Over);
                    }
                }
            }
            if let Some(begin) = begin.filter(|_| now >= next_shown) {
                next_shown = now + self.request.every;
                self.show(self.seconds_since(Some(begin)));
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

    /// Prints the result so far. That nobody reads it does not end a trial.
    fn show(&mut self, seconds: f64) {
        match self.shown(seconds) {
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

    /// Writes the statistics of the result so far, and returns its text.
    fn shown(&mut self, seconds: f64) -> Result<String> {
        let (analysis, counts) = self.analyse()?;
        if let Some(folder) = &self.state.folder {
            let release = self.request.on.kernel.as_deref().unwrap_or_default();
            let (trial, lost) = (&self.state.trial, counts.lost_records);
            let statistics = trial.statistics(&self.kept.run, release, seconds, lost);
            if let Err(e) = folder.put_statistics(&statistics) {
                warn(&format!("{e:#}; the trial goes on"));
            }
        }
        self.keep(seconds, &counts);
        if self.args.json {
            let result = self.result(&analysis, &counts, seconds);
            return Ok(serde_json::to_string(&result)?);
        }
        let all: u64 = analysis.arms.iter().map(|a| a.connections).sum();
        Ok(format!(
            "after {seconds:.0} s, {all} connections:\n{}",
            table(&analysis, &self.kept.gaps, &counts, color())
        ))
    }
}
