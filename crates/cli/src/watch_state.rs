//! What `slowstart kernel watch` knows of the connections.

use crate::prometheus::Metrics;
use slowstart_linux::{ExitReason, Flow, RecordKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The open connections, and counters since the watch began.
#[derive(Default)]
pub(crate) struct State {
    /// By identifier of the socket.
    pub(crate) flows: BTreeMap<u64, Flow>,
    /// Exit reasons that controls of this project reported themselves.
    pub(crate) reasons: BTreeMap<u64, ExitReason>,
    /// Connections whose control reports its events itself.
    pub(crate) reported: BTreeSet<u64>,
    /// Connections whose control reported its end since the last [`State::forget_ended`].
    pub(crate) ended: Vec<u64>,
    /// Shared with the thread that serves Prometheus.
    pub(crate) metrics: Arc<Mutex<Metrics>>,
}

/// Returns the exit reason to print: `-` while the startup lasts, `before` if it ended before the watch
/// began.
pub(crate) fn reason(f: &Flow, reported: &BTreeMap<u64, ExitReason>) -> &'static str {
    match (f.why, reported.get(&f.sk)) {
        (Some(ExitReason::None), _) => "-",
        (None, _) => "before",
        (Some(ExitReason::Ssthresh), Some(w)) => w.name(),
        (Some(w), _) => w.name(),
    }
}

/// Returns the phase of a connection to print.
pub(crate) fn phase(f: &Flow) -> &'static str {
    match f.state {
        2 => "reducing",
        3 => "recovery",
        4 => "timeout",
        _ if f.cwnd < f.ssthresh && f.why == Some(ExitReason::None) => "startup",
        _ if f.cwnd < f.ssthresh => "slow start",
        _ => "avoidance",
    }
}

impl State {
    /// Adds a record of the tracepoints.
    pub(crate) fn add(&mut self, f: Flow) {
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        if f.kind == RecordKind::Exit {
            metrics.count_exit(&f.control, reason(&f, &self.reasons), f.exit_cwnd);
        }
        if f.kind == RecordKind::Closed {
            metrics.count_closed(&f);
            if let Some(before) = self.flows.remove(&f.sk) {
                metrics.left(&before.control);
            }
            self.reasons.remove(&f.sk);
            self.reported.remove(&f.sk);
        } else {
            metrics.opened(&f.control);
            if let Some(before) = self.flows.insert(f.sk, f) {
                metrics.left(&before.control);
            }
        }
    }

    /// Drops what is known of the connections in `ended`. The tracepoints report the close of a connection
    /// before its control reports the end, so call it after the records of both were added. A connection that
    /// never sent has no record of its close.
    pub(crate) fn forget_ended(&mut self) {
        for sk in self.ended.drain(..) {
            self.reported.remove(&sk);
            if !self.flows.contains_key(&sk) {
                self.reasons.remove(&sk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(kind: RecordKind, cwnd: u32) -> Flow {
        Flow {
            sk: 1,
            now_ns: 3,
            acked_bytes: 4,
            next: 4,
            sent_bytes: 5,
            pacing_rate: 6,
            kind,
            why: Some(ExitReason::Ssthresh),
            cwnd,
            ssthresh: cwnd,
            inflight: 1,
            mss: 1448,
            srtt_us: 1000,
            min_rtt_us: 1000,
            retransmitted: 0,
            state: 0,
            timeouts: 0,
            exit_cwnd: cwnd,
            exit_ns: 2,
            begun_ns: 1,
            sport: 80,
            dport: 5000,
            peer: std::net::Ipv4Addr::LOCALHOST.into(),
            control: "ss_search".into(),
        }
    }

    #[test]
    fn exits_are_counted_by_reason_and_window() {
        let mut s = State::default();
        s.reasons.insert(1, ExitReason::RateFlat);
        s.add(flow(RecordKind::Exit, 250));
        s.add(flow(RecordKind::Closed, 250));
        let text = s.metrics.lock().expect("no panic").text();
        let of = "control=\"ss_search\",reason=\"rate-flat\"";
        assert!(text.contains(&format!("segments_bucket{{{of},le=\"100\"}} 0\n")), "{text}");
        assert!(text.contains(&format!("segments_bucket{{{of},le=\"300\"}} 1\n")), "{text}");
        assert!(text.contains(&format!("segments_sum{{{of}}} 250\n")), "{text}");
        for line in [
            "slowstart_connections{control=\"ss_search\"} 0",
            "slowstart_closed_total{control=\"ss_search\"} 1",
            "slowstart_sent_bytes_total{control=\"ss_search\"} 5",
            "slowstart_min_rtt_seconds_bucket{control=\"ss_search\",le=\"0.001\"} 1",
            "slowstart_min_rtt_seconds_sum{control=\"ss_search\"} 0.001",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
        // Every family says what it is.
        for name in text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()) {
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        }
        assert_eq!((s.flows.len(), s.reasons.len()), (0, 0));
    }

    #[test]
    fn a_connection_is_open_once_and_changes_its_control() {
        let mut s = State::default();
        s.add(flow(RecordKind::Exit, 10));
        s.add(Flow { control: "cubic".into(), min_rtt_us: u32::MAX, ..flow(RecordKind::Exit, 10) });
        let text = s.metrics.lock().expect("no panic").text();
        assert!(text.contains("slowstart_connections{control=\"cubic\"} 1\n"), "{text}");
        assert!(text.contains("slowstart_connections{control=\"ss_search\"} 0\n"), "{text}");
        assert!(!text.contains("slowstart_min_rtt_seconds_"), "{text}");
    }

    #[test]
    fn a_connection_that_never_sent_is_forgotten() {
        let mut s = State::default();
        s.reported.insert(1);
        s.reasons.insert(1, ExitReason::Loss);
        s.ended.push(1);
        s.forget_ended();
        assert_eq!((s.reported.len(), s.reasons.len(), s.ended.len()), (0, 0, 0));
    }
}
