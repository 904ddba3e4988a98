//! What is recorded of a run: what the path did to packets, events and samples.

use super::queued::{Fate, What};
use super::{Direction, Engine, FlowId, Sampling};
use crate::ends::End;
use crate::path::{Dropped, Kind};
use crate::trace::{FlowEvent, Sample};
use slowstart::control::Controller;
use slowstart::units::{Instant, Span};
use std::collections::BTreeMap;

impl Engine {
    /// Records what the path did to packets during the current event.
    #[cold]
    pub(super) fn record_fates(&mut self) {
        let now = self.net.now;
        let mut fates = std::mem::take(&mut self.net.fates);
        for Fate { flow, is_data, what } in fates.drain(..) {
            let truth = &mut self.flows[flow.index()].truth;
            match what {
                What::Dropped(d, kind) => {
                    self.record_drop(flow, is_data, &d);
                    if let Kind::Syn | Kind::SynAck = kind {
                        let name = if kind == Kind::Syn { "SYN" } else { "SYN-ACK" };
                        self.record_event(flow, "handshake", d.at, || Some(format!("{name} lost")));
                    }
                }
                What::Waited(wait) => {
                    truth.peak_queue_delay = truth.peak_queue_delay.max(wait);
                    // A discipline tells it when the packet leaves; it may have come before the startup ended.
                    if truth.exit.is_some_and(|e| now.since(e.at) <= wait) {
                        truth.exit_queue_delay = truth.exit_queue_delay.max(wait);
                    }
                }
            }
        }
        self.net.fates = fates;
    }

    fn record_drop(&mut self, flow: FlowId, is_data: bool, d: &Dropped) {
        let f = &mut self.flows[flow.index()];
        if is_data {
            self.dropped += 1;
            f.truth.first_drop = f.truth.first_drop.or(Some(d.at));
            f.truth.dropped += 1;
            f.truth.dropped_by[d.cause as usize] += 1;
            f.truth.dropped_in_startup += u64::from(f.truth.exit.is_none());
            if let Some(impact) = f.truth.impact.as_mut().filter(|i| self.net.now >= i.from) {
                impact.dropped += 1;
            }
        }
        let what = if is_data { "drop" } else { "ack-drop" };
        // The way back is one.
        let over_links =
            self.flow(flow).spec.direction == Direction::Download && self.net.path.forward.links() > 1;
        let link = (is_data && over_links).then_some(d.link + 1);
        self.record(flow, what, d.at, link, || Some(d.cause.to_string()));
    }

    /// Adds an event of a recorded flow to the trace, unless sampling is off.
    pub(super) fn record_event(
        &mut self,
        flow: FlowId,
        what: &'static str,
        at: Instant,
        why: impl FnOnce() -> Option<String>,
    ) {
        self.record(flow, what, at, None, why);
    }

    /// Records what happened at one of several links, which count from 1.
    fn record(
        &mut self,
        flow: FlowId,
        what: &'static str,
        at: Instant,
        link: Option<u8>,
        why: impl FnOnce() -> Option<String>,
    ) {
        if self.flow(flow).spec.recorded && self.sampling != Sampling::Off {
            self.trace.events.push(FlowEvent { at, flow: flow.0, what, why: why(), link });
        }
    }

    /// Records that an end has sent its SYN or SYN-ACK again, since it had been `resent` times.
    #[inline]
    pub(super) fn record_handshake(&mut self, flow: FlowId, end: End, resent: u8) {
        if self.flow(flow).ends[end].syn_losses() > resent {
            let name = if end == End::Client { "SYN" } else { "SYN-ACK" };
            self.record_event(flow, "handshake", self.net.now, || Some(format!("{name} sent again")));
        }
    }

    /// Takes the periodic sample of every recorded flow.
    #[cold]
    pub(super) fn sample_all(&mut self) {
        let at = self.next_sample;
        for i in 0..self.flows.len() {
            if self.flows[i].spec.start <= at {
                self.sample(FlowId(i as u32), at);
            }
        }
        if let Sampling::Every(interval) = self.sampling {
            self.next_sample = at + interval;
        }
    }

    /// Takes a sample of a flow at `at`, if it is recorded.
    #[cold]
    pub(super) fn sample(&mut self, flow: FlowId, at: Instant) {
        let f = &self.flows[flow.index()];
        if !f.spec.recorded {
            return;
        }
        let tx = &f.ends[f.sender()].tx;
        let s = tx.control().state();
        let link = if f.spec.direction == Direction::Download {
            &mut self.net.path.forward
        } else {
            &mut self.net.path.back
        };
        let mut gauges = BTreeMap::new();
        if self.gauges {
            tx.control().internal_values(&mut |k, v| {
                if v.is_finite() {
                    gauges.insert(k, v);
                }
            });
        }
        self.trace.samples.push(Sample {
            time_s: Span(at.0).as_secs_f64(),
            flow: flow.0,
            cwnd_bytes: s.cwnd.0,
            ssthresh_bytes: s.ssthresh.map(|t| t.0),
            inflight_bytes: tx.board().inflight().0,
            rtt_s: tx.last_rtt().map(Span::as_secs_f64),
            delivered_bytes: f.delivered(),
            queue_bytes: link.backlog(at).0,
            pacing_bps: tx.pacer().rate().map(|r| r.0),
            phase: tx.control().phase(),
            limited_by: tx.limits().now().name(),
            gauges,
        });
    }
}
