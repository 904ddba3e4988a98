//! `slowstart explain --trace`: one run as lines of numbers, one for each change that an author looks for.

use slowstart_study::record::{EventRow, Sample};
use slowstart_study::words::{number, rate};
use std::fmt::Write;

/// A sample makes a line if its window is this many times the one of the line before, or less than the
/// reverse of it.
const CHANGE: f64 = 1.25;
/// Packets that the network drops within so many seconds of each other are one line.
const BURST_S: f64 = 0.05;

/// Packets dropped one after the other, which one line tells.
struct Drops<'a> {
    what: &'a str,
    first: f64,
    last: f64,
    count: u64,
    why: String,
}

impl Drops<'_> {
    /// True if an event is a drop of the same kind and cause.
    fn is_like(&self, e: &EventRow) -> bool {
        self.what == e.what && self.why == e.why.as_deref().unwrap_or_default()
    }

    fn line(&self) -> String {
        let why = if self.why.is_empty() { String::new() } else { format!(" ({})", self.why) };
        let count = number(self.count as f64);
        format!("{:>10.4}  {} {count}{why}, the last at {:.4}", self.first, self.what, self.last)
    }
}

/// Returns the lines of a run: one for its first ACK, for each change of phase, each time the window has
/// changed by a quarter since the last line, for each event, and for each burst of drops. Times are in
/// seconds since the flow began; windows are in segments of `mss` bytes.
pub(crate) fn lines(samples: &[(f64, &Sample)], events: &[(f64, &EventRow)], mss: u64) -> Vec<String> {
    let mut all = vec![format!(
        "{:>10}  {:<12} {:<14} {:>8} {:>8} {:>9} {:>8} {:>13}  internal values",
        "time s", "phase", "limited by", "cwnd", "inflight", "RTT ms", "queue", "pace"
    )];
    let mut last: Option<&Sample> = None;
    let mut drops: Option<Drops> = None;
    let (mut s, mut e) = (0, 0);
    while s < samples.len() || e < events.len() {
        // What an event did shows in the sample of the same moment: the event comes first.
        if e < events.len() && (s == samples.len() || events[e].0 <= samples[s].0) {
            let (at, event) = events[e];
            e += 1;
            if !matches!(&*event.what, "drop" | "ack-drop") {
                all.extend(drops.take().map(|d| d.line()));
                let why = event.why.as_ref().map_or(String::new(), |w| format!(" ({w})"));
                all.push(format!("{at:>10.4}  {}{why}", event.what));
                continue;
            }
            match &mut drops {
                Some(d) if at - d.last <= BURST_S && d.is_like(event) => {
                    (d.last, d.count) = (at, d.count + 1);
                }
                other => {
                    let why = event.why.clone().unwrap_or_default();
                    let drops = Drops { what: &event.what, first: at, last: at, count: 1, why };
                    let before = other.replace(drops);
                    all.extend(before.map(|d| d.line()));
                }
            }
            continue;
        }
        let (at, sample) = samples[s];
        s += 1;
        let changed = last.is_none_or(|l| {
            let by = sample.cwnd_bytes as f64 / l.cwnd_bytes.max(1) as f64;
            l.phase != sample.phase || !(1.0 / CHANGE..CHANGE).contains(&by)
        });
        if changed {
            all.extend(drops.take().map(|d| d.line()));
            all.push(line(at, sample, mss));
            last = Some(sample);
        }
    }
    all.extend(drops.map(|d| d.line()));
    all
}

fn line(at: f64, s: &Sample, mss: u64) -> String {
    let segments = |b: u64| number(b as f64 / mss.max(1) as f64);
    let rtt = s.rtt_s.map_or("-".into(), |r| format!("{:.2}", r * 1e3));
    let pace = s.pacing_bps.map_or("-".into(), |p| rate(p as f64));
    let mut text = format!(
        "{at:>10.4}  {:<12} {:<14} {:>8} {:>8} {rtt:>9} {:>8} {pace:>13} ",
        s.phase.as_deref().unwrap_or("-"),
        s.limited_by.as_deref().unwrap_or("-"),
        segments(s.cwnd_bytes),
        segments(s.inflight_bytes),
        s.queue_bytes.map_or("-".into(), segments)
    );
    for (name, value) in &s.gauges {
        let unit = |v: f64| if name.ends_with("_bps") { rate(v) } else { number(v) };
        let value = if value.is_finite() { unit(*value) } else { "-".into() };
        write!(text, " {name}={value}").expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart_sim::engine::Sampling;
    use slowstart_study::run::Job;
    use slowstart_study::scenario::{Study, StudyText};

    fn trace(path: &str, startup: &str) -> Vec<String> {
        let text = StudyText {
            path: path.into(),
            startups: vec![startup.into()],
            size: Some("2MB".into()),
            runs: Some(1),
            ..StudyText::default()
        };
        let study = Study::check(&text, None).expect("a study");
        let outcome = study.run(Job { contender: 0, run: 0 }, Sampling::EachAck, true);
        let samples: Vec<_> = outcome.trace.samples.iter().map(|s| (s.time_s, s)).collect();
        let events: Vec<_> = outcome.trace.events.iter().map(|e| (e.time_s, e)).collect();
        lines(&samples, &events, u64::from(study.profile.mss))
    }

    /// From 10 segments to 80 are three doublings, of three lines and a bit each; then packets are dropped,
    /// which makes one line, and the loss ends it.
    #[test]
    fn a_run_is_told_in_few_lines() {
        let all = trace("rate=20Mbit rtt=40ms queue=1bdp", "standard");
        let exit = all.iter().position(|l| l.contains("exit (loss)")).expect("it leaves");
        assert!((8..25).contains(&exit), "{all:#?}");
        // The queue overflows for a round trip before the sender knows. Changes of the window divide these
        // drops.
        let drops = all[..exit].iter().filter(|l| l.contains("  drop ")).count();
        assert!((1..=5).contains(&drops), "{all:#?}");
        assert!(all[exit + 1..].iter().any(|l| l.contains("avoidance")), "{all:#?}");
        let times: Vec<f64> = all[1..]
            .iter()
            .map(|l| l.split_whitespace().next().expect("a time").parse().expect("a time"))
            .collect();
        assert!(times.is_sorted(), "{all:#?}");
    }

    #[test]
    fn internal_values_have_their_units() {
        let all = trace("rate=20Mbit rtt=40ms queue=1bdp", "rate-bound");
        assert!(
            all.iter().any(|l| l.contains("rate_bps=") && l.contains("Mbit/s") && l.contains("noise_s=")),
            "{all:#?}"
        );
    }
}
