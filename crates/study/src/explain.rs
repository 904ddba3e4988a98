//! One run as a timeline in sentences: what the startup saw, what it did, why it left, and what that cost.

use crate::limits::{LostBy, dropper};
use crate::record::{Class, EventRow, ExitRow, HANDSHAKE_FAILED, Marks, Objects, Row, Sample, Trace};
use crate::scenario::Study;
use crate::summary::label;
use crate::words::{bytes, number, plural, rate};
use slowstart::step::Exit;
use slowstart::units::{Bytes, Span};
use slowstart_sim::app;
use slowstart_sim::path::Cause;

/// Loss events told one by one; the rest are counted.
const TOLD: usize = 6;
/// A pause of this many seconds without anything in flight is told: the least retransmission timeout of Linux.
const PAUSE: f64 = 0.2;
/// What happens when the loss that ended a startup proves spurious.
const RESUMES: &str = "The startup resumes.";

/// A time with three decimals.
pub fn fixed(seconds: f64) -> String {
    format!("{seconds:.3}")
}

/// One run and what its sentences need.
#[derive(Debug)]
pub struct Told<'a> {
    row: &'a Row,
    study: &'a Study,
    /// Samples of its flow, with the seconds since that began.
    pub samples: Vec<(f64, &'a Sample)>,
    /// Its events in the same form.
    pub events: Vec<(f64, &'a EventRow)>,
    /// Payload of a full packet, bytes.
    pub mss: u64,
}

/// Whose data first filled the path.
#[derive(Copy, Clone, PartialEq, Eq)]
enum FilledBy {
    /// The flow's own.
    Itself,
    /// With that of other flows, from some time on.
    All,
    /// That of other flows, before anything of this one arrived.
    Others,
}

/// A packet of data that the path dropped.
struct Drop {
    /// Seconds since the flow began.
    at: f64,
    cause: Cause,
    /// From 1; `None` on a path of one link.
    link: Option<u8>,
}

/// Where on a path of several links something happened.
fn at_link(link: u8) -> String {
    format!(" at link {link}")
}

/// A queue that holds so much.
fn queue(buffer: Option<u64>) -> String {
    buffer.map_or("a queue without limit".to_string(), |b| format!("a queue of {}", bytes(b)))
}

/// What became of the objects that the application asked for.
fn told_objects(o: &Objects) -> String {
    match o.median_s.zip(o.p95_s) {
        Some((median, p95)) => {
            let (median, p95) = (number(median), number(p95));
            format!("Objects: {}, median {median} s, 95th percentile {p95} s.", plural(o.asked, "object"))
        }
        None => format!("Objects: {} of {} never came.", o.asked - o.complete, plural(o.asked, "object")),
    }
}

impl<'a> Told<'a> {
    /// A run of a study, with packets of `mss` bytes.
    pub fn new(study: &'a Study, row: &'a Row, trace: &'a Trace, mss: u64) -> Self {
        let start = Span(study.start().0).as_secs_f64();
        let samples = trace.samples.iter().filter(|s| s.flow == row.flow).map(|s| (s.time_s - start, s));
        let events = trace.events.iter().filter(|e| e.flow == row.flow).map(|e| (e.time_s - start, e));
        Self { row, study, samples: samples.collect(), events: events.collect(), mss }
    }

    fn bdps(&self, n: u64) -> String {
        number(n as f64 / self.row.bdp_bytes.max(1) as f64)
    }

    /// `1,200 segments (0.160 BDP)`.
    fn window(&self, n: u64) -> String {
        format!("{} ({} of the BDP)", plural(n / self.mss.max(1), "segment"), self.bdps(n))
    }

    /// The last sample at or before a time.
    fn sample_at(&self, at: f64) -> Option<&'a Sample> {
        self.samples[..self.samples.partition_point(|(t, _)| *t <= at)].last().map(|(_, s)| *s)
    }

    /// What ran: startup, path and stack.
    pub fn heading(&self) -> String {
        let r = self.row;
        let size = r.size_bytes.map_or(format!("{} s", number(r.duration_s)), bytes);
        let queue = queue(r.buffer_bytes);
        format!(
            "{} on {}, run {} (seed {}): {size} over {}, base RTT {:.1} ms, BDP {} ({}), {queue}; {}",
            label(r),
            r.path,
            r.run,
            r.seed,
            rate(r.rate_bps as f64),
            r.base_rtt_s * 1e3,
            bytes(r.bdp_bytes),
            plural(r.bdp_bytes / self.mss.max(1), "segment"),
            r.profile
        )
    }

    /// The outcome in a sentence.
    pub fn headline(&self) -> String {
        let row = self.row;
        let exit = match &row.exit {
            Some(e) => format!(
                "exits {} after {} s, with {}",
                row.class.manner(),
                number(e.time_s),
                self.window(e.detected_cwnd_bytes)
            ),
            None => "does not exit".to_string(),
        };
        let lost = match row.lost_packets {
            Some(0) => "nothing is dropped".to_string(),
            Some(n) => format!("{} dropped", packets(n)),
            None => "drops are not observed".to_string(),
        };
        let end = row.completion_s.map_or_else(
            || "the transfer is not complete".to_string(),
            |s| format!("the transfer takes {} s", number(s)),
        );
        format!("{} {exit}; {lost}; {end}.", label(row))
    }

    /// What happened, in order of time.
    pub fn timeline(&self) -> Vec<(f64, String)> {
        let row = self.row;
        let mut all = self.growth();
        if let Some(at) = row.capacity_time_s {
            let rtt = self.sample_at(at).and_then(|s| s.rtt_s);
            let rtt =
                rtt.map_or(String::new(), |r| format!("; the newest RTT sample is {} ms", number(r * 1e3)));
            all.push(match self.filled_by(at) {
                FilledBy::Itself => {
                    (at, format!("The data in flight reaches the capacity of the path{rtt}."))
                }
                FilledBy::All => {
                    (at, format!("With that of the other flows, the data in flight fills the path{rtt}."))
                }
                FilledBy::Others => (0.0, "Other flows fill the path already.".to_string()),
            });
        }
        if let Some(at) = row.first_drop_time_s {
            let first = self.drops().min_by(|a, b| a.at.total_cmp(&b.at));
            // An engine that does not see single drops may know that all have one cause.
            let alone = row
                .lost_by
                .map(|by| by.named().filter(|(_, n)| *n > 0).map(|(cause, _)| cause).collect::<Vec<_>>());
            let alone = if let Some([cause]) = alone.as_deref() { Some(*cause) } else { None };
            let who = first.as_ref().map(|d| d.cause).or(alone).map_or("The network", dropper);
            let place = first.and_then(|d| d.link).map_or(String::new(), at_link);
            all.push((at, format!("{who}{place} drops a packet for the first time.")));
        }
        if let Some(at) = row.first_loss_time_s {
            let text = if row.lost_packets == Some(0) {
                "The sender takes a packet for lost for the first time; the path has dropped none."
            } else {
                "The sender learns of a loss for the first time."
            };
            all.push((at, text.to_string()));
        }
        if let Some(at) = row.marks.as_ref().and_then(|m| m.first_time_s) {
            all.push((at, "The sender learns of a mark (CE) for the first time.".to_string()));
        }
        if let Some(exit) = &row.exit {
            all.extend(self.exit(exit));
        }
        all.extend(brief(self.losses()));
        all.extend(brief(self.pauses()));
        let end = match row.completion_s {
            Some(at) => (at, "The receiver has everything."),
            None if row.caveats.iter().any(|c| c == HANDSHAKE_FAILED) => {
                (row.duration_s, "The observation ends; the handshake has failed.")
            }
            None => (row.duration_s, "The observation ends; the transfer is not complete."),
        };
        let end = (end.0, end.1.to_string());
        if row.exit.is_none() {
            all.push((end.0, format!("{} has not exited.", label(row))));
        }
        all.push(end);
        // Sorting is stable: what happened at one time stays in the order above. A startup that resumes does so before
        // it exits again.
        let resumes = |text: &str| text == RESUMES;
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(resumes(&b.1).cmp(&resumes(&a.1))));
        all
    }

    /// Whose data filled the path at the time of capacity, which counts that of all flows.
    fn filled_by(&self, capacity: f64) -> FilledBy {
        if self.study.against.is_empty() {
            return FilledBy::Itself;
        }
        let first = self.samples.iter().find(|(_, s)| s.delivered_bytes > 0);
        if first.is_none_or(|(at, _)| capacity <= *at) { FilledBy::Others } else { FilledBy::All }
    }

    /// The window during the startup: at first, at each power of four times the first, and at its peak.
    fn growth(&self) -> Vec<(f64, String)> {
        let until = self.row.exit.as_ref().map_or(f64::INFINITY, |e| e.time_s);
        // A sample of a stack before anything was delivered tells of no ACK of data.
        let startup = || self.samples.iter().filter(|(t, s)| *t <= until && s.delivered_bytes > 0);
        let Some((first_at, first)) = startup().next() else { return Vec::new() };
        let mut all = vec![(
            *first_at,
            format!(
                "The first acknowledgement arrives{}; the window is {}.",
                first.rtt_s.map_or(String::new(), |r| format!(" after an RTT of {} ms", number(r * 1e3))),
                self.window(first.cwnd_bytes)
            ),
        )];
        let mut next = first.cwnd_bytes.saturating_mul(4);
        for (at, s) in startup() {
            if s.cwnd_bytes < next {
                continue;
            }
            let rtt = s.rtt_s.map_or(String::new(), |r| format!(", RTT {} ms", number(r * 1e3)));
            let paced = s.pacing_bps.map_or(String::new(), |p| format!(", pacing at {}", rate(p as f64)));
            let used = if s.inflight_bytes * 2 < s.cwnd_bytes {
                format!(", of which {} is in flight", self.bdps(s.inflight_bytes))
            } else {
                String::new()
            };
            all.push((*at, format!("The window is {}{used}{rtt}{paced}.", self.window(s.cwnd_bytes))));
            while next <= s.cwnd_bytes {
                next = next.saturating_mul(4);
            }
        }
        all
    }

    /// Why and how it left.
    fn exit(&self, e: &ExitRow) -> Vec<(f64, String)> {
        let name = label(self.row);
        let class = self.row.class;
        let mut all = Vec::new();
        let internal = self.sample_at(e.time_s).map(internal_values).unwrap_or_default();
        all.push((
            e.time_s,
            format!(
                "{name} finds its reason to exit: {} (reason `{}`). The window is {}. This is {}: {}.{internal}",
                reason(&e.reason),
                e.reason,
                self.window(e.detected_cwnd_bytes),
                class.how(),
                class.meaning()
            ),
        ));
        let change = match e.cwnd_bytes.cmp(&e.detected_cwnd_bytes) {
            std::cmp::Ordering::Less => format!("reduces the window to {}", self.window(e.cwnd_bytes)),
            _ => "keeps the window".to_string(),
        };
        let next = self.row.avoidance.as_deref().map_or(String::new(), |a| format!("; {a} takes over"));
        let drained = if e.left_s > e.time_s { " after draining the queue" } else { "" };
        all.push((
            e.left_s,
            format!("It {change} and exits{drained} with {} in flight{next}.", self.window(e.inflight_bytes)),
        ));
        all
    }

    /// Pauses of the application after which the window restarts, or stays, and what ends that slow start.
    fn pauses(&self) -> Vec<(f64, String)> {
        let mut all = Vec::new();
        // The threshold with which a slow start after a pause began.
        let mut again: Option<Option<u64>> = None;
        for pair in self.samples.windows(2) {
            let [(before, a), (at, b)] = pair else { continue };
            let avoids = |s: &Sample| s.phase.as_deref() == Some("avoidance");
            if a.inflight_bytes == 0 && a.delivered_bytes > 0 && at - before >= PAUSE {
                let how = if b.cwnd_bytes < a.cwnd_bytes { "restarts at" } else { "is still" };
                let pause = number(at - before);
                all.push((
                    *at,
                    format!(
                        "After {pause} s with nothing in flight the window {how} {}.",
                        self.window(b.cwnd_bytes)
                    ),
                ));
                again = (avoids(a) && !avoids(b)).then_some(b.ssthresh_bytes);
            } else if let Some(threshold) = again.filter(|_| avoids(b)) {
                let lost = self
                    .events
                    .iter()
                    .any(|(t, e)| (t - at).abs() < 1e-9 && matches!(&*e.what, "loss" | "timeout" | "mark"));
                let why = match threshold.zip(b.ssthresh_bytes) {
                    _ if lost => "",
                    Some((was, now)) if now < was => ", by its own rule",
                    _ => ", at the threshold that it had kept",
                };
                all.push((
                    *at,
                    format!("It leaves slow start again with {}{why}.", self.window(b.cwnd_bytes)),
                ));
                again = None;
            }
        }
        all
    }

    /// Lost handshake packets, loss recoveries, reductions for marks, timeouts, and slow starts that go on or begin again.
    fn losses(&self) -> Vec<(f64, String)> {
        let mut all = Vec::new();
        for (i, (at, e)) in self.events.iter().enumerate() {
            let text = match &*e.what {
                "loss" => {
                    let end =
                        self.events[i..].iter().find(|(_, e)| matches!(&*e.what, "recovered" | "undone"));
                    match end {
                        Some((t, e)) if e.what == "undone" => format!(
                            "The sender takes a late packet for lost; the recovery is undone as spurious at {} s.",
                            fixed(*t)
                        ),
                        Some((t, _)) => format!("Loss recovery begins; it is over at {} s.", fixed(*t)),
                        None => "Loss recovery begins; it is not over at the end.".to_string(),
                    }
                }
                // The exit says so already.
                "mark" if self.row.exit.as_ref().is_some_and(|x| fixed(x.time_s) == fixed(*at)) => continue,
                "mark" => "The sender reduces its window for marks.".to_string(),
                "timeout" => {
                    let next = self.events[i + 1..]
                        .iter()
                        .find(|(_, e)| matches!(&*e.what, "loss" | "timeout" | "recovered" | "undone"));
                    match next {
                        Some((t, e)) if e.what == "undone" => {
                            format!(
                                "The retransmission timer fires; that is undone as spurious at {} s.",
                                fixed(*t)
                            )
                        }
                        _ => "The retransmission timer fires.".to_string(),
                    }
                }
                "resumed" => RESUMES.to_string(),
                "restart" => {
                    let end = self.events[i..].iter().find(|(_, e)| e.what == "exit");
                    let end = end.map_or("does not end".to_string(), |(t, e)| {
                        format!("ends at {} s ({})", fixed(*t), e.why.as_deref().unwrap_or_default())
                    });
                    format!("The avoidance returns to slow start, which {end}.")
                }
                "stall" => "The host's own queue refuses a packet.".to_string(),
                "handshake" => match e.why.as_deref().and_then(|why| why.split_once(' ')) {
                    Some((packet, "lost")) => format!("The network drops the {packet}."),
                    Some((packet, what)) => format!("The {packet} is {what}."),
                    None => continue,
                },
                _ => continue,
            };
            all.push((*at, text));
        }
        all
    }

    /// What the startup cost, a sentence each.
    pub fn costs(&self) -> Vec<String> {
        let row = self.row;
        let mut all = Vec::new();
        if let Some(o) = &row.objects {
            all.push(told_objects(o));
        } else if let (Some(size), Some(took)) = (row.size_bytes, row.completion_s) {
            // Payload in a full segment: the rest of a packet is headers.
            let wire = Bytes((size as f64 * self.overhead()) as u64);
            let path = self.study.path.draw(row.seed);
            let writes = match &self.study.app {
                app::Kind::Writes(writes) => writes.lasts().as_secs_f64(),
                _ => 0.0,
            };
            let carries = path.least_time(wire).as_secs_f64();
            let least = carries.max(writes) + 1.5 * row.base_rtt_s;
            let pace = if writes > carries {
                format!(", as the application writes for {} s", number(writes))
            } else {
                String::new()
            };
            all.push(format!(
                "Time: {} s. With the whole capacity from the first round trip on it would be about {} s{pace}: {} s more.",
                number(took),
                number(least),
                number((took - least).max(0.0))
            ));
        } else {
            all.push(format!("Goodput: {} over {} s.", rate(row.goodput_bps as f64), number(row.duration_s)));
        }
        match (row.exit.as_ref(), row.class) {
            (Some(e), Class::Early) => all.push(self.after_early(e)),
            (Some(_), _) if row.capacity_time_s.is_some_and(|at| self.filled_by(at) != FilledBy::Itself) => {
                all.push(
                    "How much of the capacity the other flows leave, and when this one had that in flight, is not observed."
                        .to_string(),
                );
            }
            (Some(e), _) => {
                let spare = e.time_s - row.capacity_time_s.unwrap_or(e.time_s);
                all.push(format!(
                    "The exit came {} s ({} base RTTs) after the path was full.",
                    number(spare.max(0.0)),
                    number((spare / row.base_rtt_s.max(1e-9)).max(0.0))
                ));
            }
            (None, _) => {}
        }
        let or = |text: Option<String>, what: &str| text.unwrap_or_else(|| format!("{what} not observed"));
        all.push(format!(
            "Loss: {} dropped of the packets sent before the exit, {} in all; {} and {}.",
            or(row.startup_lost_packets.map(packets), "packets"),
            or(row.lost_packets.map(|n| number(n as f64)), "drops"),
            or(row.retransmitted_packets.map(|n| plural(n, "retransmission")), "retransmissions"),
            or(row.timeouts.map(|n| plural(n, "timeout")), "timeouts"),
        ));
        all.extend(self.dropped());
        all.extend(row.marks.as_ref().filter(|m| m.packets + m.responses > 0).map(|m| self.marked(m)));
        all.extend(row.limits.map(|l| l.sentence()));
        all.push(row.peak_queue_delay_s.map_or_else(
            || "Delay: the wait at the bottleneck was not observed.".to_string(),
            |s| {
                format!(
                    "Delay: the longest wait {} was {} ms.",
                    if row.links.is_empty() { "at the bottleneck" } else { "in all queues" },
                    number(s * 1e3)
                )
            },
        ));
        all.extend(row.links.iter().zip(1..).map(|(link, n)| {
            let waited = link
                .peak_queue_delay_s
                .map_or(String::new(), |s| format!("; the longest wait was {} ms", number(s * 1e3)));
            format!(
                "Link {n}: {}, {} ms of the RTT, {}{waited}.",
                rate(link.rate_bps as f64),
                number(link.base_rtt_s * 1e3),
                queue(link.buffer_bytes)
            )
        }));
        if let Some(o) = &row.others {
            let dip = o
                .goodput_dip
                .map_or(String::new(), |d| format!(", their goodput fell by up to {} %", number(d * 100.0)));
            all.push(format!("Other flows: {} dropped{dip}.", packets(o.lost_packets)));
        }
        for caveat in &row.caveats {
            all.push(format!("Note: {}.", caveat.trim_end_matches('.')));
        }
        all
    }

    /// When and where data was dropped, and why.
    fn drops(&self) -> impl Iterator<Item = Drop> {
        let drops = self.events.iter().filter(|(_, e)| e.what == "drop");
        drops.filter_map(|(at, e)| {
            Some(Drop { at: *at, cause: Cause::named(e.why.as_deref()?)?, link: e.link })
        })
    }

    /// What dropped data and how much of it, at each link of a path of several.
    fn lost_by(&self) -> Vec<(Option<u8>, LostBy)> {
        let links = self.row.links.iter().zip(1..).map(|(link, n)| (Some(n), link.lost_by));
        let whole = self.row.links.is_empty().then(|| (None, self.row.lost_by.unwrap_or_default()));
        links.chain(whole).collect()
    }

    /// What dropped data, how much and when; and what follows from drops that no queue foretells.
    fn dropped(&self) -> Vec<String> {
        let by = self.row.lost_by.unwrap_or_default();
        let mut all = Vec::new();
        let parts = self.lost_by();
        let parts = parts.iter().flat_map(|(link, by)| by.named().map(move |(cause, n)| (*link, cause, n)));
        for (link, cause, n) in parts {
            let times = || self.drops().filter(|d| d.cause == cause && d.link == link).map(|d| d.at);
            let first = times().min_by(f64::total_cmp);
            let span = match first.zip(times().max_by(f64::total_cmp)) {
                Some((first, last)) if fixed(first) != fixed(last) => {
                    format!(", from {} to {} s", fixed(first), fixed(last))
                }
                Some((first, _)) => format!(", at {} s", fixed(first)),
                None => String::new(),
            };
            let place = link.map_or(String::new(), at_link);
            all.push(format!("{}{place} drops {}{span}.", dropper(cause), packets(n)));
        }
        if by.policer > 0 {
            all.push("A policer has no queue: no delay rises before its drops.".to_string());
        }
        let grows = matches!(self.row.avoidance.as_deref(), Some("reno" | "cubic"));
        let slowed =
            self.row.limits.and_then(|l| Some(l.avoidance? + l.recovery?)).is_some_and(|share| share > 0.5);
        let unqueued = by.policer + by.random + by.burst;
        if grows && slowed && unqueued * 2 > by.named().map(|(_, n)| n).sum() {
            all.push(
                "Most drops do not come from a full queue. After each the window grows again round trip by round trip, so that \
                 a longer RTT leaves a lower rate."
                    .to_string(),
            );
        }
        all
    }

    /// How many packets were marked, and how often the sender reduced its window for that.
    fn marked(&self, m: &Marks) -> String {
        let delivered = self.samples.last().map_or(0, |(_, s)| s.delivered_bytes);
        let arrived = delivered.div_ceil(self.mss.max(1));
        let share = if m.packets <= arrived && arrived > 0 {
            format!(" ({} % of those that arrived)", number(m.packets as f64 * 100.0 / arrived as f64))
        } else {
            String::new()
        };
        format!(
            "Marks: {} marked (CE){share}; the sender reduced its window for marks {}.",
            packets(m.packets),
            plural(m.responses, "time")
        )
    }

    /// Wire bytes for each byte of payload.
    fn overhead(&self) -> f64 {
        let bdp_on_wire = self.row.rate_bps as f64 / 8.0 * self.row.base_rtt_s;
        if self.row.bdp_bytes == 0 { 1.0 } else { (bdp_on_wire / self.row.bdp_bytes as f64).max(1.0) }
    }

    /// When the window reached the BDP after an early exit.
    fn after_early(&self, e: &ExitRow) -> String {
        // What the path holds may have changed: its capacity is that of the time.
        let sampled =
            || self.samples.iter().find(|(t, s)| *t >= e.left_s && s.inflight_bytes >= self.row.bdp_bytes);
        let reached = self.row.capacity_time_s.filter(|t| *t > e.left_s).or_else(|| sampled().map(|s| s.0));
        let avoidance = self.row.avoidance.as_deref().unwrap_or("the controller");
        match reached {
            Some(t) => format!(
                "The exit came before the path was full: from {} of the BDP, {avoidance} needed {} s until the path was \
                 full.",
                self.bdps(e.cwnd_bytes),
                number(t - e.left_s)
            ),
            None => format!(
                "The exit came before the path was full: from {} of the BDP, {avoidance} did not fill it before the \
                 end.",
                self.bdps(e.cwnd_bytes)
            ),
        }
    }
}

/// The first [`TOLD`] of what happened, and how many more there are.
fn brief(mut all: Vec<(f64, String)>) -> Vec<(f64, String)> {
    let more = all.len().saturating_sub(TOLD);
    all.truncate(TOLD);
    if let Some((_, text)) = all.last_mut().filter(|_| more > 0) {
        *text = format!("{text} {more} more such events follow.");
    }
    all
}

/// The internal values of a sample, in a sentence that begins with a space.
fn internal_values(s: &Sample) -> String {
    if s.gauges.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = s.gauges.iter().map(|(k, v)| format!("{k} = {}", number(*v))).collect();
    format!(" Its internal values: {}.", shown.join(", "))
}

fn packets(n: u64) -> String {
    plural(n, "packet")
}

/// The reason of an exit in words; the name itself for one that only the kernel has.
fn reason(name: &str) -> &str {
    match Exit::named(name) {
        Some(exit) => exit.meaning(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Job;
    use crate::scenario::StudyText;
    use slowstart_sim::engine::Sampling;

    fn told(path: &str, startup: &str) -> (Row, String) {
        let text = StudyText {
            path: path.to_string(),
            startups: vec![startup.to_string()],
            size: Some("5MB".to_string()),
            runs: Some(1),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).expect("a study");
        let outcome = study.run(Job { contender: 0, run: 0 }, Sampling::EachAck, true);
        let told = Told::new(&study, &outcome.row, &outcome.trace, u64::from(study.profile.mss));
        let lines: Vec<String> =
            told.timeline().into_iter().map(|(at, text)| format!("{at:.3} {text}")).collect();
        assert!(
            lines.is_sorted_by_key(|l| l
                .split(' ')
                .next()
                .and_then(|t| t.parse::<f64>().ok())
                .map(f64::to_bits))
        );
        let text = format!("{}\n{}\n{}", told.heading(), lines.join("\n"), told.costs().join("\n"));
        (outcome.row, text)
    }

    #[test]
    fn a_late_exit_names_loss_and_its_cost() {
        let (row, text) = told("rate=20Mbit rtt=40ms queue=1bdp", "standard");
        assert_eq!(row.class, Class::Late);
        for part in [
            "packets were lost (reason `loss`)",
            "This is by loss",
            "cubic takes over",
            "Loss recovery begins",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let lost = row.startup_lost_packets.expect("observed");
        assert!(lost > 1);
        assert!(text.contains(&format!("Loss: {} packets dropped", number(lost as f64))), "{text}");
    }

    /// The time of bursts has the pause of their user in it: what came, and how soon, is told instead.
    #[test]
    fn objects_are_told_instead_of_the_time_of_pauses() {
        let text = StudyText {
            path: "rate=20Mbit rtt=40ms queue=1bdp".into(),
            startups: vec!["hystart".into()],
            app: Some("1MB,9s,1MB,9s,1MB".into()),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).expect("a study");
        let outcome = study.run(Job { contender: 0, run: 0 }, Sampling::EachAck, true);
        let told = Told::new(&study, &outcome.row, &outcome.trace, u64::from(study.profile.mss)).costs();
        let objects = outcome.row.objects.expect("bursts");
        let [median, p95] = [objects.median_s, objects.p95_s].map(|t| number(t.expect("all came")));
        assert_eq!(told[0], format!("Objects: 3 objects, median {median} s, 95th percentile {p95} s."));
        let lacks = Objects::new(vec![Some(0.5), None, None]);
        assert_eq!(told_objects(&lacks), "Objects: 2 of 3 objects never came.");
    }

    #[test]
    fn an_exit_by_its_own_rule_has_no_loss() {
        let (row, text) = told("rate=20Mbit rtt=40ms queue=4bdp", "hystart");
        let exit = row.exit.as_ref().expect("an exit");
        assert!(text.contains(reason(&exit.reason)) && text.contains("Loss: 0 packets"), "{text}");
        assert!(text.contains(&format!("{:.3} hystart finds its reason", exit.time_s)), "{text}");
    }

    #[test]
    fn a_handshake_that_fails_is_said() {
        let (row, text) = told("rate=2Mbit rtt=90ms queue=30packets drop_synack=40", "standard");
        assert!(row.completion_s.is_none());
        for part in ["the handshake has failed", "Note: the handshake failed"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("not complete"), "{text}");
    }
}
