//! Fits a path to a transfer: rate and its variation, base RTT, waves of delay, ACK slots, jitter, queue and
//! loss, each with an interval and what it rests on. What a transfer does not show is said: without a
//! standing queue the rate is a lower bound, and so is the queue if it never filled. [`FittedPath::inline`]
//! and [`text`] write the path as the simulator reads it.

mod base;
mod flow;
mod jitter;
mod policer;
mod queue;
mod rate;
pub mod rate_over_time;
pub mod sampled;
mod slots;
mod steps;
pub mod text;
mod waits;
mod waves;

use crate::analysis::Findings;
use crate::infer::LimitedBy;
use flow::Flow;
use serde::{Deserialize, Serialize};

/// JSON Schema of a [`Row`].
pub const FIT_SCHEMA: &str = include_str!("../../schema/fit.json");
/// Version of that schema.
pub const SCHEMA: u32 = 1;

/// Delays of less are clock noise, seconds.
const CLOCK: f64 = 1e-5;

/// An estimate, with an interval in which the true value should be.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value that the path has.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end; null if the transfer shows a lower bound only.
    pub high: Option<f64>,
    /// What the estimate rests on.
    pub basis: String,
}

/// A rate that is drawn anew with a period, uniformly from the mean less a share to the mean and a share.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vary {
    /// The share of the mean by which the rate varies either way.
    pub share: Estimate,
    /// The period, in seconds.
    pub period_s: Estimate,
}

/// A periodic delay, `amplitude (1 + sin)`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wave {
    /// Half of the greatest delay, seconds.
    pub amplitude_s: Estimate,
    /// The period, in seconds.
    pub period_s: Estimate,
}

/// A queue that drops arriving packets with a chance, above a backlog.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RandomDrop {
    /// The chance that an arriving packet is dropped, from 0 to 1.
    pub share: Estimate,
    /// The backlog, bytes on the wire.
    pub above_bytes: Estimate,
}

/// A token bucket before the link, which drops what finds too few tokens.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policer {
    /// The rate of its tokens, bits per second on the wire.
    pub rate_bps: Estimate,
    /// What it holds, bytes on the wire.
    pub burst_bytes: Estimate,
}

/// A path fitted to a transfer, as `slowstart fit --json` prints it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row<'a> {
    /// The version of the schema.
    pub schema: u32,
    /// Version of the program.
    pub version: &'a str,
    /// The name of the file, without its folder.
    pub file: &'a str,
    /// Number of the connection in the file, from 1.
    pub connection: u64,
    /// Payload bytes that the transfer delivered.
    pub bytes: u64,
    /// Where the capture was made: `sender`, `receiver`, `middle` or `unknown`.
    pub vantage: &'a str,
    /// The fitted path, each value an estimate.
    pub path: &'a FittedPath,
    /// The path as an argument of `slowstart compare`.
    pub inline: String,
}

/// A path fitted to a transfer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedPath {
    /// Rate on the wire, bits per second.
    pub rate_bps: Estimate,
    /// How the rate varies; null if no variation was seen.
    pub rate_vary: Option<Vary>,
    /// Two-way delay without transmission and queues, seconds.
    pub base_rtt_s: Estimate,
    /// Waves of delay; null if none were seen.
    pub wave: Option<Wave>,
    /// The period of ACK slots, seconds; null if none were seen.
    pub ack_aggregate_s: Option<Estimate>,
    /// The maximum of a uniform delay for each packet, without reordering, seconds; null if none was seen.
    pub jitter_s: Option<Estimate>,
    /// What the packets of the first window, which met no queue, took at least above the least RTT, seconds;
    /// null if the rate does not change, if ACKs wait for slots, or if it is nothing. It is the jitter of a path
    /// whose rate follows time.
    #[serde(default)]
    pub first_delay_s: Option<Estimate>,
    /// What the queue holds, bytes on the wire.
    pub queue_bytes: Estimate,
    /// A chance of a drop above a backlog; null if none was seen.
    pub random_drop: Option<RandomDrop>,
    /// A chance of a loss whatever the backlog; null if none was seen.
    pub loss: Option<Estimate>,
    /// A policer before the link, whose rate and queue are then lower bounds; null if none was seen.
    #[serde(default)]
    pub policer: Option<Policer>,
    /// True if the rates of single round trips differ by so much that one mean describes none of them;
    /// `rate_bps` is then nearer to the low ones, at which most waits. Continuations follow the rate over
    /// time.
    #[serde(default)]
    pub rate_changes: bool,
    /// What the transfer does not show.
    pub notes: Vec<String>,
}

impl FittedPath {
    /// True if a queue stood, so that the rate is known.
    pub fn link_was_full(&self) -> bool {
        self.rate_bps.high.is_some()
    }

    /// True if losses showed the queue's limit; otherwise it holds at least `queue_bytes`.
    pub fn queue_was_full(&self) -> bool {
        self.queue_bytes.high.is_some()
    }
}

/// Fits a path to findings with packets.
///
/// # Errors
/// What was found and what is needed.
pub fn fit(f: &Findings) -> Result<FittedPath, String> {
    if let Some(why) = f.no_path {
        return Err(format!("found no round-trip time of the path: {}", why.words()));
    }
    let acks = f.packets.acks().len();
    let mut flow = Flow::new(f)
        .ok_or_else(|| format!("found {acks} ACKs of new data and no RTT sample, expected at least two"))?;
    let mut notes = Vec::new();
    if let Some(end) = f.packets.full_since() {
        let (begin, end) = (flow.acks[0].at, end.0 as f64 / 1e9);
        // What is in flight later is not known.
        flow.acks.retain(|a| a.at <= end);
        if flow.acks.len() < 2 {
            return Err(format!(
                "found {} ACKs among the first million packets, expected at least two",
                flow.acks.len()
            ));
        }
        notes.push(format!("the fit is of the first million packets, {:.1} s", end - begin));
    }
    let slots = slots::of(f, &flow);
    let slot = slots.as_ref().map_or(0.0, |s| s.value);
    if slot > 0.0 {
        flow = flow.grouped();
    }
    if let Some(found) = steps::find(&flow) {
        notes.push(format!(
            "the path seems to have been up to {:.1} ms longer for {:.2} s: its RTT did not fall while the flight did",
            found.most * 1e3,
            found.seconds
        ));
        flow = found.without;
    }
    let mut busy = rate::busy(&flow, slot).ok_or_else(|| {
        format!("found {acks} ACKs of new data within less than a round trip, expected those of several")
    })?;
    let jitter = jitter::find(&flow, &busy, slot);
    let mut wave = None;
    if !busy.full {
        notes.push(limits(f));
    } else if let Some(found) = waves::find(&flow, &busy, slot) {
        busy.rate *= found.factor;
        (wave, flow) = (Some(found.wave), found.without);
    }
    if slot > 0.0 {
        notes.push("jitter looks the same as the wait for ACK slots".to_string());
    }
    let rate_vary = busy.vary(&flow, jitter.variance, slot);
    if rate_vary.is_some() && wave.is_none() {
        notes.push("waves of delay look the same as a varying rate".to_string());
    }
    // Where a rate changes much, the longest waits are those while it is low: the busy time is of one rate.
    let changes = if busy.full { rate_over_time::changes(&flow, slot) } else { None };
    let varies = rate_vary.as_ref().map(|v| v.share.value).or(changes.as_ref().map(|c| c.share));
    let varies = varies.unwrap_or_default();
    // The phase of the wave is that of a moment within a slot.
    let unsure = wave.as_ref().map_or(0.0, |w| {
        let slope = std::f64::consts::TAU * w.amplitude_s.value / w.period_s.value;
        2.0 * (w.amplitude_s.value - w.amplitude_s.low) + slope * slot
    });
    let base_rtt_s = if busy.full {
        base::find(&flow, busy.rate, varies, slot, &jitter, unsure)
    } else {
        // How long the link takes for a packet is not known, except that it is less than at this rate.
        let least = base::find(&flow, f64::INFINITY, varies, slot, &jitter, unsure);
        Estimate { low: (least.low - flow.packet / busy.rate).max(0.0), ..least }
    };
    let link = queue::Link { rate: busy.rate, varies, base: base_rtt_s.value, late: jitter.mean, slot };
    let noise = busy.rate * (slot / 2.0 + jitter.variance.sqrt()) + flow.packet;
    let policer = policer::find(&flow);
    let mut queue = queue::find(&flow, &link, noise);
    if policer.is_some() {
        // Its losses are neither the queue's nor random, and it let no more through than its rate.
        (queue.loss, queue.random_drop, queue.bytes.high) = (None, None, None);
        busy.full = false;
        notes
            .push("a policer limited the sender, so that rate and queue of the link are lower bounds".into());
    }
    if !busy.full {
        // Nothing is known of a queue that never stood but that it takes a packet.
        (queue.bytes.low, queue.bytes.high) = (flow.packet, None);
        if busy.stretched {
            queue.bytes.basis =
                "the greatest backlog if longer RTTs were waits: none is known to have been one".into();
        }
    }
    if varies > 0.0 {
        queue.bytes.low = queue.least.min(queue.bytes.low);
    }
    let lost = queue.loss.as_ref().map_or(0.0, |l| l.value);
    let first_delay_s = (changes.is_some() && slot == 0.0)
        .then(|| first_delay(&flow, f.iw.0 as f64 * flow.packet / f.mss.0 as f64))
        .flatten();
    let jitter_s = (jitter.most >= CLOCK).then(|| Estimate {
        value: jitter.most,
        low: jitter.most * 2.0 / 3.0,
        high: Some(jitter.most * 4.0 / 3.0),
        basis: format!("how ACKs scatter about {} lines of 32 ACKs of a full link", jitter.lines),
    });
    let mut rate_bps = busy.estimate(lost, rate_vary.as_ref(), changes.as_ref());
    // A wait is as many bytes as the link carried meanwhile. Where its rate varies, they were counted.
    if let Some((high, bytes)) = rate_bps.high.zip(queue.bytes.high).filter(|_| varies == 0.0) {
        queue.bytes.low = (queue.bytes.low * rate_bps.low / rate_bps.value).max(flow.packet);
        queue.bytes.high = Some(bytes * high / rate_bps.value);
    }
    if let Some(faster) = busy.faster.filter(|_| busy.full && rate_vary.is_none()) {
        let faster = faster * 8.0;
        if changes.is_none() {
            rate_bps.value = faster;
        }
        rate_bps.high = None;
        rate_bps.basis =
            format!("{}; {:.3} Mbit/s were delivered at another time", rate_bps.basis, faster / 1e6);
        notes.push("the rate of the link is not the same all the time, so that it is a lower bound".into());
    }
    Ok(FittedPath {
        rate_bps,
        rate_vary,
        rate_changes: changes.is_some(),
        base_rtt_s,
        wave,
        ack_aggregate_s: slots,
        jitter_s: jitter_s.filter(|_| busy.full),
        first_delay_s,
        queue_bytes: queue.bytes,
        random_drop: queue.random_drop,
        loss: queue.loss,
        policer,
        notes,
    })
}

/// What the packets of the first window, of so many bytes on the wire, took at least above the least RTT.
fn first_delay(flow: &Flow, window: f64) -> Option<Estimate> {
    let first = flow.acks.iter().take_while(|a| a.delivered <= window * 1.01);
    let more = first.filter_map(|a| a.rtt).reduce(f64::min)? - flow.least;
    (more >= CLOCK).then(|| Estimate {
        value: more,
        low: more,
        high: None,
        basis: "the least RTT of the first window, which met no queue, above the least of all".into(),
    })
}

/// For how many seconds this limited the sender.
fn limited(f: &Findings, by: LimitedBy) -> f64 {
    f.periods.iter().filter(|p| p.0 == by).map(|p| p.2.since(p.1).as_secs_f64()).sum()
}

/// Why no queue stood, as far as the transfer shows it.
fn limits(f: &Findings) -> String {
    let window = limited(f, LimitedBy::ReceiveWindow);
    let application = limited(f, LimitedBy::Application) + limited(f, LimitedBy::Idle);
    let why = if window > 0.0 && window >= application {
        format!("the receive window limited the sender for {window:.2} s")
    } else if application > 0.0 {
        format!("the application limited the sender for {application:.2} s")
    } else {
        "the window did not exceed what the path holds".to_string()
    };
    format!("no queue stood, so that rate and queue are lower bounds: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Acked;

    fn flow(rtts: &[f64]) -> Flow {
        let acked = |(i, rtt): (usize, &f64)| {
            let delivered = (i + 1) as f64 * 1500.0;
            Acked { at: delivered / 1e6, delivered, rtt: Some(*rtt) }
        };
        let acks: Vec<Acked> = rtts.iter().enumerate().map(acked).collect();
        let least = rtts.iter().copied().fold(f64::INFINITY, f64::min);
        Flow { sends: Vec::new(), acks, packet: 1500.0, least, first_loss: f64::INFINITY }
    }

    #[test]
    fn delay_of_the_first_window_is_no_queue() {
        // Of a window of three packets the first waits for nothing; later ones find a path that is faster.
        let found = first_delay(&flow(&[0.042, 0.044, 0.052, 0.022, 0.060]), 4500.0).expect("a delay");
        assert!((found.value - 0.02).abs() < 1e-9 && found.high.is_none(), "{found:?}");
        assert_eq!(first_delay(&flow(&[0.022, 0.044, 0.052, 0.060]), 4500.0), None);
    }
}
