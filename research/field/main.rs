//! Recordings as predictions of each other: `make field DIR=FOLDER`.
//!
//! `field FOLDER NAME..` draws the window of these recordings beside what is predicted of it, as SVG.
//!
//! Kernel logs, and results of iperf3 and nuttcp with intervals of 0.1 s, whose names begin alike up to the
//! first hyphen (`geo-`, `4g-`, `sa-`) are of one network. Each is predicted by others of its network, with
//! the code of `slowstart fit`, in two ways: as paths whose rate follows time, and as paths of constant rate;
//! and by the built-in ensembles of such networks. Nothing of a recording goes into its prediction. Runs over
//! the path fitted to it are beside them: how far they are off is the error of the fit, the rest of a
//! prediction's error is how recordings differ. So are the outcomes of the others themselves, where two or
//! more have the quantity: what no path can predict much better than.
//!
//! An ensemble takes in 100 recordings. Of a network of more, [`OTHERS`] others are drawn for each, by a seed
//! which is the recording's place in the order of the names.
//!
//! Of kernel logs are predicted:
//!
//! - for each startup, when it decides to leave by its own rule over the ACKs of the recording itself
//!   (`standard`: the first loss), and the class of that exit. Its sender had the startup that was really used,
//!   and so has that of each run, whose ACKs are read in the same way;
//! - of the startup that was really used: the first loss, and the times to 1 MB and 10 MB.
//!
//! Of samples, with `hystart`, which Linux uses:
//!
//! - the sample at which slow start had ended, found in the same way in the samples of each run, and what
//!   shows it (`class`); a recording that something else limited is left out;
//! - the first retransmission, and the first after which the window fell;
//! - the times to 1 MB and 10 MB, between the bounds of what had been delivered. Of nuttcp only these: its
//!   windows are not those of its intervals.
//!
//! Times count from the first ACK of data in kernel logs and from the first data in samples, up to the end of
//! the shortest recording of the network and at most 60 s, of samples 10 s; what did not happen until then
//! counts as infinite. A prediction is 60 runs. It covers an outcome if its interval, from the 10 % to the
//! 90 % quantile, meets that of the outcome, which of samples is the time between two of them. Its width is
//! the ratio of these quantiles, and its score the CRPS of the logarithm of the time without the part within
//! the outcome's interval, in which infinite counts as the end: a proper score, of which less is better. A
//! time that may have been before the end or after it is not judged.

mod picture;

use picture::{Panel, svg};
use slowstart::units::{Bytes, Instant, Span};
use slowstart_replay::analysis::{Findings, Keep, StartupResult};
use slowstart_replay::error::InputError;
use slowstart_replay::fit::rate_over_time::{Course, course, traces};
use slowstart_replay::fit::text::{Fitted, toml, with_traces};
use slowstart_replay::fit::{FittedPath, fit, sampled};
use slowstart_replay::observer::Candidate;
use slowstart_replay::replay::{Options, replay};
use slowstart_replay::samples::{Sample, Series, transfer};
use slowstart_replay::transfer::{Source, Transfer};
use slowstart_replay::{kernlog, open};
use slowstart_sim::engine::Sampling;
use slowstart_sim::random::Stream;
use slowstart_sim::tcp::segment::SYN;
use slowstart_study::record::{Row, Trace};
use slowstart_study::run::{Job, Outcome};
use slowstart_study::scenario::{self, Study, StudyText};
use slowstart_study::stats::quantile;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

const STARTUPS: [&str; 6] =
    ["standard", "hystart", "hystart:rules=5.10", "hystart++", "search-2.0", "search"];
const RUNS: u32 = 60;
/// The most seconds that are predicted: of kernel logs, and of samples.
const LONGEST: f64 = 60.0;
const LONGEST_SAMPLED: f64 = 10.0;
/// The most others of a network by which a recording is predicted.
const OTHERS: usize = 99;
/// The most traces of a recording.
const TRACES: usize = 9;
/// The interval of samples.
const EVERY: Span = Span::millis(100);
const OTHERS_OUTCOMES: &str = "outcomes of the others";
const WAYS: [&str; 6] = [
    "rate over time",
    "constant rate",
    "built-in",
    "built-in from recordings",
    OTHERS_OUTCOMES,
    "its own, which is no prediction",
];
/// What is transferred where only times to at most 10 MB are judged: no loss of its last packets delays those.
const SIZE: &str = "20MB";
/// A quantity of samples: only the startup that was used.
const USED: [&str; 1] = ["hystart"];

/// What a recording has.
enum Recorded {
    /// Its ACKs.
    Acks(Box<Findings>),
    /// A row of samples, and the samples.
    Samples(Box<Transfer>, Series),
}

struct Log {
    name: String,
    recorded: Recorded,
    mss: u64,
    /// Its length, in seconds.
    length: f64,
    /// The startup that was really used, as far as the name tells: growth of the flight in the logs named
    /// `search` ends at the exit of `search-2.0`.
    used: &'static str,
    fitted: Option<(FittedPath, Option<Course>)>,
}

fn read(file: &Path) -> Option<Log> {
    let name = file.file_name()?.to_string_lossy().into_owned();
    let skipped = |why: &dyn std::fmt::Display| eprintln!("{name}: {why}; skipped");
    let (kind, input) = open::open(file).ok()?;
    if matches!(kind, open::Kind::Iperf | open::Kind::IperfText) {
        let options = Options { keep: Keep { packets: true, ..Keep::default() }, ..Options::default() };
        let report = replay(file, &options, |_| ()).map_err(|e| skipped(&e)).ok()?;
        let largest = report.transfers.into_iter().max_by_key(|t| t.row.bytes)?;
        let series = largest.samples?;
        let fitted = sampled::fit(&series).map_err(|e| eprintln!("{name}: {e}; in no ensemble")).ok();
        return Some(Log {
            name,
            mss: series.mss.0,
            length: largest.row.duration_s,
            used: USED[0],
            fitted: fitted.map(|(path, course)| (path, Some(course))),
            recorded: Recorded::Samples(Box::new(largest.row), series),
        });
    }
    if kind != open::Kind::KernelLog {
        return None;
    }
    let findings = analysed(input).map_err(|e| skipped(&e)).ok()?;
    let used = match name.split('-').nth(1).unwrap_or_default() {
        n if n.starts_with("hystart") => "hystart",
        n if n.starts_with("search") => "search-2.0",
        _ => "standard",
    };
    let fitted = fit(&findings).map_err(|e| eprintln!("{name}: {e}; in no ensemble")).ok();
    let fitted = fitted.map(|path| {
        let found = course(&findings, path.base_rtt_s.value).map_err(|e| eprintln!("{name}: {e}")).ok();
        (path, found)
    });
    Some(Log {
        name,
        mss: findings.mss.0,
        length: seconds(findings.last),
        used,
        fitted,
        recorded: Recorded::Acks(Box::new(findings)),
    })
}

fn seconds(at: Instant) -> f64 {
    at.0 as f64 / 1e9
}

/// What a kernel log shows.
fn analysed(input: impl Read) -> Result<Findings, InputError> {
    let candidate = |label: &&str| {
        let startup = scenario::startup("startup", label).expect("of the registry").1;
        Candidate { label: (*label).to_string(), startup }
    };
    let candidates: Vec<Candidate> = STARTUPS.iter().map(candidate).collect();
    let keep = Keep { packets: true, ..Keep::default() };
    Ok(kernlog::replay(input, &candidates.into(), keep)?.findings)
}

/// The ACKs of a run as a kernel log.
fn as_log(trace: &Trace, mss: u64) -> String {
    let mut out = "now_us,bytes_acked,mss,rtt_us,snd_nxt,sk_pacing_rate,total_retrans_pkt\n".to_string();
    let mut samples = trace.samples.iter().peekable();
    let (mut isn, mut next, mut again, mut first, mut latest) = (0, 0, 0, None, None);
    for p in trace.packets.iter().filter(|p| p.end == 0) {
        let s = &p.segment;
        if s.has(SYN) {
            isn = if p.leaves { s.seq.wrapping_add(1) } else { isn };
            continue;
        }
        if p.leaves {
            let end = s.seq.wrapping_sub(isn) + s.len;
            again += u64::from(s.len > 0 && end <= next);
            next = next.max(end);
            continue;
        }
        while let Some(sample) = samples.next_if(|x| x.time_s <= seconds(p.at) + 1e-9) {
            latest = Some(sample);
        }
        let acked = s.ack.wrapping_sub(isn);
        let Some((rtt, pacing)) = latest.and_then(|x| Some((x.rtt_s?, x.pacing_bps))) else { continue };
        if acked == 0 || next == 0 {
            continue;
        }
        let now = p.at.since(*first.get_or_insert(p.at)).as_secs_f64() * 1e6;
        let pacing = pacing.unwrap_or_default() / 8;
        writeln!(out, "{now:.0},{acked},{mss},{:.0},{next},{pacing},{again}", rtt * 1e6)
            .expect("a String takes everything");
    }
    out
}

/// When each startup decides to leave, seconds since the first ACK, and the class of that exit.
type Decisions = BTreeMap<&'static str, (Option<f64>, Option<String>)>;

fn decisions(f: &Findings) -> Decisions {
    let of = |startup: &&'static str| {
        let found = f.startups.iter().find(|s| s.label == *startup);
        let at = if *startup == "standard" { f.first_loss } else { found.and_then(decided) };
        let class = found.map(|s| s.class.name()).filter(|c| *c != "unknown");
        (*startup, (at.map(seconds), class.map(str::to_string)))
    };
    STARTUPS.iter().map(of).collect()
}

/// When a startup decides to leave. One that drains first does not leave over the ACKs of a sender that did
/// not drain.
fn decided(s: &StartupResult) -> Option<Instant> {
    let drain = || s.prediction.changes.iter().find(|m| m.what == "drain").map(|m| m.at);
    s.prediction.rule.map(|(_, m)| m.at).or_else(drain)
}

/// A quantity.
#[derive(Copy, Clone)]
enum Measure {
    /// When a startup decides to leave over the ACKs.
    Decision(&'static str),
    /// The end of slow start in samples.
    Exit,
    FirstLoss,
    /// The first loss after which the window fell.
    FirstFall,
    TimeTo(u64),
}

/// A quantity of a recording, and its outcome.
struct Question {
    group: &'static str,
    name: String,
    measure: Measure,
    /// It lies after the first and not after the second; both are the same if it is known, and infinite if it
    /// did not happen.
    outcome: (f64, f64),
    class: Option<String>,
}

impl Log {
    /// When a quantity of this name happened, in the middle of its bounds on a logarithm; `None` if the recording
    /// does not have it.
    fn outcome(&self, name: &str) -> Option<f64> {
        let (after, by) = self.questions().into_iter().find(|q| q.name == name)?.outcome;
        Some(libm::sqrt(after.max(1e-3) * by))
    }

    fn questions(&self) -> Vec<Question> {
        match &self.recorded {
            Recorded::Acks(f) => self.of_acks(f),
            Recorded::Samples(t, s) => of_samples(t, s),
        }
    }

    fn of_acks(&self, f: &Findings) -> Vec<Question> {
        let known = |at: Option<f64>| at.map_or((f64::INFINITY, f64::INFINITY), |t| (t, t));
        let first_loss = known(f.first_loss.map(seconds));
        let exit = |(startup, (at, class)): (&'static str, (Option<f64>, Option<String>))| Question {
            group: "exits",
            name: startup.to_string(),
            measure: Measure::Decision(startup),
            outcome: known(at),
            class,
        };
        let mut all: Vec<Question> = decisions(f).into_iter().map(exit).collect();
        let used = |group, name, measure, outcome| Question { group, name, measure, outcome, class: None };
        all.push(used("first loss", "first loss".into(), Measure::FirstLoss, first_loss));
        for (name, bytes) in [("1 MB", 1_000_000), ("10 MB", 10_000_000)] {
            let at = f.packets.acks().iter().find(|a| a.delivered.0 >= bytes).map(|a| seconds(a.at));
            all.push(used("times", format!("to {name}, {}", self.used), Measure::TimeTo(bytes), known(at)));
        }
        all
    }
}

fn of_samples(t: &Transfer, s: &Series) -> Vec<Question> {
    let mut all = Vec::new();
    let mut add = |group, name: &str, measure, outcome, class| {
        all.push(Question { group, name: name.into(), measure, outcome, class });
    };
    let times: Vec<f64> = s.samples.iter().map(|p| seconds(p.at)).collect();
    let before = |i: usize| i.checked_sub(1).map_or(0.0, |b| times[b]);
    let since = |i: Option<usize>| i.map_or((f64::INFINITY, f64::INFINITY), |i| (before(i), times[i]));
    if s.windows {
        let found = t.exit.as_ref().and_then(|e| times.iter().position(|at| (at - e.time_s).abs() < 1e-3));
        if found.is_some() || t.unclear.as_deref() == Some("ended while growing") {
            add("exits", "exit", Measure::Exit, since(found), shown(t));
        }
        let resent = |i: usize| i.checked_sub(1).map_or(0, |b| s.samples[b].retransmitted.unwrap_or(0));
        let lost = |i: &usize| s.samples[*i].retransmitted > Some(resent(*i));
        let fell = |i: &usize| *i > 0 && lost(i) && s.samples[*i].cwnd < s.samples[*i - 1].cwnd;
        let all = 0..s.samples.len();
        add("first loss", "first retransmission", Measure::FirstLoss, since(all.clone().find(lost)), None);
        add("first fall", "first fall by a loss", Measure::FirstFall, since(all.clone().find(fell)), None);
    }
    let delivered = s.delivered();
    for (name, group, bytes) in
        [("to 1 MB", "time to 1 MB", 1_000_000), ("to 10 MB", "time to 10 MB", 10_000_000)]
    {
        let after = since(delivered.iter().position(|d| d.1 >= bytes)).0;
        let by = since(delivered.iter().position(|d| d.0 >= bytes)).1;
        add(group, name, Measure::TimeTo(bytes), (after, by), None);
    }
    all
}

/// What shows how slow start ended in samples.
fn shown(t: &Transfer) -> Option<String> {
    t.exit.as_ref().map(|e| e.evidence.clone()).or_else(|| t.unclear.clone())
}

/// A run, and what its ACKs or samples show.
struct Run {
    row: Row,
    decisions: Decisions,
    sampled: Option<Transfer>,
    /// Its samples: seconds since the first data, and the window in bytes.
    windows: Vec<(f64, f64)>,
    /// True if the recording has the times of ACKs, false if it has those of the receiver.
    acked: bool,
}

impl Run {
    /// Its samples count from the first data, as those of recordings do.
    fn new(o: Outcome, log: &Log) -> Self {
        let row = o.row;
        let begin = 1.5 * row.base_rtt_s;
        let lost = row.first_loss_time_s.unwrap_or(f64::INFINITY);
        let sample = |s: &slowstart_study::record::Sample| Sample {
            at: Instant(((s.time_s - begin) * 1e9) as u64),
            cwnd: Bytes(s.cwnd_bytes),
            delivered: Some(Bytes(s.delivered_bytes)),
            retransmitted: Some(u64::from(s.time_s >= lost)),
            ..Sample::default()
        };
        let all: Vec<Sample> = o.trace.samples.iter().filter(|s| s.time_s > begin).map(sample).collect();
        let sampled = matches!(log.recorded, Recorded::Samples(..))
            .then(|| transfer(Source::Iperf3, 1, Bytes(log.mss), &all));
        let windows = all.iter().map(|s| (seconds(s.at), s.cwnd.0 as f64)).collect();
        let acked = !matches!(&log.recorded, Recorded::Samples(_, s) if !s.written);
        let acks = matches!(log.recorded, Recorded::Acks(_)).then(|| as_log(&o.trace, log.mss));
        let decisions = acks.and_then(|l| Some(decisions(&analysed(l.as_bytes()).ok()?))).unwrap_or_default();
        Self { row, decisions, sampled, windows, acked }
    }

    /// The time of a quantity, as the recording has it.
    fn time(&self, measure: Measure) -> Option<f64> {
        let row = &self.row;
        // Without samples, times count from the first ACK, two and a half round trips after the client's SYN,
        // with which a flow begins: SYN, SYN-ACK, the ACK that lets the server send, data, its ACK.
        let begin = if self.sampled.is_some() { 1.5 } else { 2.5 };
        let since = |t: f64| (t - begin * row.base_rtt_s).max(1e-3);
        match measure {
            Measure::Decision(startup) => self.decisions.get(startup)?.0,
            Measure::Exit => self.sampled.as_ref()?.exit.as_ref().map(|e| e.time_s),
            Measure::FirstLoss | Measure::FirstFall => row.first_loss_time_s.map(since),
            // The row has the time at the client.
            Measure::TimeTo(bytes) => {
                let later = if self.acked { row.base_rtt_s / 2.0 } else { 0.0 };
                Some(since((*row.time_to_bytes_s.get(&bytes.to_string())?)? + later))
            }
        }
    }

    fn class(&self, measure: Measure) -> Option<String> {
        match measure {
            Measure::Decision(startup) => self.decisions.get(startup)?.1.clone(),
            _ => self.sampled.as_ref().and_then(shown),
        }
    }
}

/// Runs over a path with the startup of a recording.
fn runs(path: &str, log: &Log, horizon: f64) -> Vec<Run> {
    let sampled = matches!(log.recorded, Recorded::Samples(..));
    let only_times = matches!(&log.recorded, Recorded::Samples(_, s) if !s.windows);
    let text = StudyText {
        path: path.to_string(),
        startups: vec![log.used.to_string()],
        duration: (!only_times).then(|| format!("{:.0}ms", (horizon + 2.0) * 1e3)),
        size: only_times.then(|| SIZE.to_string()),
        set: [("pacing".to_string(), "off".to_string()), ("mss".to_string(), log.mss.to_string())].into(),
        runs: Some(RUNS),
        ..StudyText::default()
    };
    let study = Study::check(&text, None).unwrap_or_else(|e| panic!("{path}: {e}"));
    let run = |job: &Job| {
        let done = if sampled { study.run(*job, Sampling::Every(EVERY), false) } else { study.capture(*job) };
        Run::new(done, log)
    };
    let jobs = study.jobs();
    std::thread::scope(|s| {
        let part = |part| s.spawn(move || <[Job]>::iter(part).map(run).collect::<Vec<Run>>());
        let parts: Vec<_> = jobs.chunks(jobs.len().div_ceil(2)).map(part).collect();
        parts.into_iter().flat_map(|p| p.join().expect("no panic")).collect()
    })
}

/// One prediction and its outcome; infinite: not until the horizon.
struct Judged {
    low: f64,
    high: f64,
    covers: bool,
    score: f64,
}

/// A quantile of values some of which are infinite: an order statistic.
fn ordered(values: &[f64], q: f64) -> f64 {
    values[(q * (values.len() - 1) as f64).round() as usize]
}

fn judge(predicted: &[Option<f64>], outcome: (f64, f64), horizon: f64) -> Judged {
    let within = |t: f64| if t <= horizon { t } else { f64::INFINITY };
    let mut all: Vec<f64> = predicted.iter().map(|t| within(t.unwrap_or(f64::INFINITY))).collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (ordered(&all, 0.1), ordered(&all, 0.9));
    let (after, by) = (within(outcome.0), within(outcome.1));
    let log = |t: f64| libm::log(t.clamp(1e-3, horizon));
    let (a, b) = (log(after), log(by));
    let logs: Vec<f64> = all.iter().map(|t| log(*t)).collect();
    let mut cuts = logs.clone();
    cuts.extend([a, b]);
    cuts.sort_by(f64::total_cmp);
    let part = |w: &[f64]| {
        let share = logs.partition_point(|t| *t <= w[0]) as f64 / logs.len() as f64;
        let off = match (w[1] <= a, w[0] >= b) {
            (true, _) => share,
            (_, true) => 1.0 - share,
            _ => 0.0,
        };
        off * off * (w[1] - w[0])
    };
    let score = cuts.windows(2).map(part).sum();
    let covers = low <= by && (high > after || high >= by);
    Judged { low, high, covers, score }
}

fn words(t: f64) -> String {
    if t.is_finite() { format!("{t:.2}") } else { "no".into() }
}

/// The others of a network by which a recording is predicted.
fn others(logs: &[Log], of: usize) -> Vec<&Log> {
    let mut rest: Vec<usize> = (0..logs.len()).filter(|i| *i != of).collect();
    if rest.len() > OTHERS {
        let mut stream = Stream::named(of as u64, "field.others");
        for i in 0..OTHERS {
            let left = (rest.len() - i) as u128;
            rest.swap(i, i + ((u128::from(stream.any()) * left) >> 64) as usize);
        }
        rest.truncate(OTHERS);
        rest.sort_unstable();
    }
    rest.into_iter().map(|i| &logs[i]).collect()
}

/// How many seconds are predicted of recordings of a network.
fn horizon(logs: &[Log]) -> f64 {
    let sampled = matches!(logs[0].recorded, Recorded::Samples(..));
    let longest = if sampled { LONGEST_SAMPLED } else { LONGEST };
    logs.iter().map(|l| l.length).fold(longest, f64::min)
}

/// The files of the ensembles of these recordings; the first is none if no recording shows its rate.
fn ensembles(folder: &Path, others: &[&Log], horizon: f64) -> [Option<PathBuf>; 2] {
    let mut fitted = Vec::new();
    let mut courses = Vec::new();
    for log in others {
        let Some((path, found)) = &log.fitted else { continue };
        if let Some(c) = found {
            let mut c = c.clone();
            if matches!(log.recorded, Recorded::Samples(..)) {
                // What comes later is not predicted.
                let end = c.steps.partition_point(|s| s.until < horizon + 2.0) + 1;
                c.steps.truncate(end);
            }
            courses.push((c, fitted.len()));
        }
        fitted.push(Fitted { source: log.name.clone(), path: path.clone() });
    }
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).expect("written");
        file
    };
    let constant = (!fitted.is_empty()).then(|| write("constant.toml", &toml("example field", &fitted)));
    let over_time = (!courses.is_empty()).then(|| {
        let all: Vec<_> = courses.iter().map(|c| &c.0).collect();
        let of = |(i, texts): (usize, &Vec<String>)| -> Vec<String> {
            let one = |(v, text): (usize, &String)| {
                let name = format!("{i}-{v}.down");
                write(&name, text);
                name
            };
            texts.iter().enumerate().map(one).collect()
        };
        let names: Vec<Vec<String>> =
            traces(&all, ((OTHERS + 1) / all.len()).clamp(1, TRACES)).iter().enumerate().map(of).collect();
        let paths: Vec<Fitted> = courses.iter().map(|c| fitted[c.1].clone()).collect();
        write("over-time.toml", &with_traces("example field", &paths, &names))
    });
    [over_time, constant]
}

/// The built-in ensembles of a network: the one that is fitted to published tables, and the one that is made
/// of recordings.
fn built_in(network: &str) -> [Option<&'static str>; 2] {
    match network {
        "geo" => [Some("geo"), Some("geo-recorded")],
        "leo" | "starlink" => [Some("leo"), None],
        "4g" | "lte" => [Some("lte"), None],
        _ => [Some("lte"), Some("5g")],
    }
}

/// A recording beside the runs of its prediction.
fn panel(log: &Log, runs: &[Run], horizon: f64) -> Option<Panel> {
    let Recorded::Samples(_, s) = &log.recorded else { return None };
    let count = runs.iter().map(|r| r.windows.len()).min()?;
    let at = |i: usize| {
        let mut all: Vec<f64> = runs.iter().map(|r| r.windows[i].1).collect();
        all.sort_by(f64::total_cmp);
        (runs[0].windows[i].0, [0.1, 0.5, 0.9].map(|q| ordered(&all, q)))
    };
    Some(Panel {
        name: log.name.clone(),
        recorded: s.samples.iter().map(|p| (seconds(p.at), p.cwnd.0 as f64)).collect(),
        predicted: (0..count).map(at).collect(),
        end: horizon,
    })
}

#[derive(Default)]
struct Total {
    covered: u32,
    all: u32,
    widths: Vec<f64>,
    score: f64,
    /// The share of runs with the class of the recording, summed, and of how many.
    class: f64,
    classes: u32,
}

impl Total {
    fn add(&mut self, j: &Judged) {
        self.covered += u32::from(j.covers);
        self.all += 1;
        self.widths.push(if j.high <= j.low { 1.0 } else { j.high / j.low });
        self.score += j.score;
    }
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder of recordings"));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    let mut networks: BTreeMap<String, Vec<Log>> = BTreeMap::new();
    for log in files.iter().filter_map(|f| read(f)) {
        let network = log.name.split('-').next().unwrap_or_default().to_string();
        networks.entry(network).or_default().push(log);
    }
    let temporary = std::env::temp_dir().join(format!("slowstart-field-{}", std::process::id()));
    std::fs::create_dir(&temporary).expect("a folder of its own");
    let drawn: Vec<String> = std::env::args().skip(2).collect();
    if !drawn.is_empty() {
        let mut panels = Vec::new();
        for (network, logs) in &networks {
            let horizon = horizon(logs);
            for (i, log) in logs.iter().enumerate().filter(|l| drawn.contains(&l.1.name)) {
                let [over_time, _] = ensembles(&temporary, &others(logs, i), horizon);
                let Some(file) = over_time else {
                    eprintln!("{network}: no rate over time; skipped");
                    continue;
                };
                let all = runs(file.to_str().expect("text"), log, horizon);
                panels.extend(panel(log, &all, horizon));
            }
        }
        print!("{}", svg(&panels));
        std::fs::remove_dir_all(&temporary).expect("removed");
        return;
    }
    println!("| Recording | Quantity | Outcome (s) | {} |", WAYS.join(" | "));
    println!("|---|---|---{}|", "|---".repeat(WAYS.len()));
    let mut totals: BTreeMap<(String, String, usize), Total> = BTreeMap::new();
    for (network, logs) in &networks {
        if logs.len() < 2 {
            eprintln!("{network}: found one recording, expected two or more; skipped");
            continue;
        }
        let horizon = horizon(logs);
        let mut standing: BTreeMap<&str, [Option<Vec<Run>>; 2]> = BTreeMap::new();
        for log in logs {
            let all = || built_in(network).map(|name| name.map(|n| runs(n, log, horizon)));
            standing.entry(log.used).or_insert_with(all);
        }
        for (i, log) in logs.iter().enumerate() {
            let rest = others(logs, i);
            let [over_time, constant] = ensembles(&temporary, &rest, horizon)
                .map(|file| file.map(|f| runs(f.to_str().expect("text"), log, horizon)));
            let [own, _] = ensembles(&temporary, &[log], horizon);
            let own = own.map(|f| runs(f.to_str().expect("text"), log, horizon));
            let [published, recorded] = &standing[log.used];
            let ways = [&over_time, &constant, published, recorded, &None, &own];
            for q in log.questions() {
                let (after, by) = (q.outcome.0.min(q.outcome.1), q.outcome.1);
                if after <= horizon && by > horizon {
                    println!("| {} | {} | after {}, not judged |", log.name, q.name, words(after));
                    continue;
                }
                let outcome = if by > horizon {
                    words(f64::INFINITY)
                } else if after < by {
                    format!("{} to {}", words(after), words(by))
                } else {
                    words(by)
                };
                print!("| {} | {} | {outcome} |", log.name, q.name);
                for (way, all) in ways.iter().enumerate() {
                    let rows = all.as_deref().unwrap_or_default();
                    let times: Vec<Option<f64>> = if WAYS[way] == OTHERS_OUTCOMES {
                        rest.iter().filter_map(|l| l.outcome(&q.name)).map(Some).collect()
                    } else {
                        rows.iter().map(|r| r.time(q.measure)).collect()
                    };
                    if times.len() < 2 {
                        print!(" - |");
                        continue;
                    }
                    let j = judge(&times, (after, by), horizon);
                    let not = if j.covers { "" } else { " **not**" };
                    print!(" {} to {}{not} |", words(j.low), words(j.high));
                    let total = totals.entry((network.clone(), q.group.to_string(), way)).or_default();
                    total.add(&j);
                    if let Some(class) = q.class.as_ref().filter(|_| !rows.is_empty()) {
                        let same = rows.iter().filter(|r| r.class(q.measure).as_ref() == Some(class)).count();
                        total.class += same as f64 / rows.len() as f64;
                        total.classes += 1;
                    }
                }
                println!();
            }
        }
    }
    println!("\n| Network | Quantity | Prediction | Covered | Median width | Score | Class |");
    println!("|---|---|---|---|---|---|---|");
    for ((network, group, way), t) in &totals {
        let width = quantile(&t.widths, 0.5).filter(|w| w.is_finite());
        println!(
            "| {network} | {group} | {} | {} of {} | {} | {:.3} | {} |",
            WAYS[*way],
            t.covered,
            t.all,
            width.map_or("open".to_string(), |w| format!("{w:.2}")),
            t.score / f64::from(t.all),
            if t.classes > 0 {
                format!("{:.0} %", t.class / f64::from(t.classes) * 100.0)
            } else {
                "-".into()
            },
        );
    }
    std::fs::remove_dir_all(&temporary).expect("removed");
}
