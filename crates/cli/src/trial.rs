//! `slowstart kernel trial`: a controlled experiment among a server's own connections.

mod conductor;

use self::conductor::{Conductor, Ending, Reader, State};
use crate::output::{note, print};
use crate::replay::warn;
use crate::trial_folder::{self, TrialFolder};
use crate::trial_output::unix_s;
use crate::{prometheus, signals};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use slowstart_linux::{Capability, RunningTrial, TrialSpec, drop_privileges};
use slowstart_report::trial::gap_text;
use slowstart_trial::kept::{Fixed, Kept};
use slowstart_trial::plan::seed_of_server;
use slowstart_trial::statistics::PlannedTrial;
use slowstart_trial::{Arm, Guard, Measure, Plan, Stratify, Trial, TrialServer};
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
/// Time in which a scraper reads the metrics of a trial that ended itself.
const READ_WITHIN: Duration = Duration::from_mins(2);
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
        let reads = Arc::new(AtomicU64::new(0));
        if let Some(listener) = listener {
            let (text, reads) = (Arc::clone(&metrics), Arc::clone(&reads));
            prometheus::serve(listener, move || {
                reads.fetch_add(1, Ordering::SeqCst);
                text.lock().unwrap_or_else(PoisonError::into_inner).clone()
            })?;
        }
        let (counts_before, seconds_before) = (kept.counts.clone(), kept.seconds);
        let ending = Conductor {
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
        .conduct()?;
        if ending == Ending::OnlyControl && self.prometheus.is_some() {
            await_reader(&reads);
        }
        Ok(())
    }
}

/// Waits until the metrics were read once more. They say which arm was ended, and nobody can read them after the
/// end of this process, so that no alarm would be raised.
fn await_reader(reads: &AtomicU64) {
    note("the metrics are served until they are read once more, for two minutes at most; Ctrl-C ends this");
    let (seen, until) = (reads.load(Ordering::SeqCst), signals::now() + READ_WITHIN);
    while !signals::caught() && signals::now() < until {
        std::thread::sleep(POLL);
        if reads.load(Ordering::SeqCst) > seen {
            // The answer is being sent.
            std::thread::sleep(CHECK);
            return;
        }
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
