//! What the probe computes, and the test beside it with std.

use slowstart::control::{Composed, Controller};
use slowstart::units::{Bytes, Instant, Mark, Span};
use slowstart::view::{Ack, Facts, Growth, Limit, Sent};
use slowstart::{avoidance, startup};

/// The windows of all pairs of startup and avoidance after one ACK of a segment, added up.
pub fn windows(now_ns: u64, mss: u64, rtt_ns: u64) -> u64 {
    let mss = Bytes(mss);
    let facts = Facts {
        now: Instant(now_ns),
        mss,
        iw: mss * 10,
        inflight: mss * 9,
        delivered: mss,
        lost: Bytes::ZERO,
        next: Mark(mss.0 * 10),
        srtt: Some(Span(rtt_ns)),
        min_rtt: Some(Span(rtt_ns)),
        rwnd: Bytes::MAX,
        pacing_rate: None,
        pacing_on: false,
        gso_max: Bytes::ZERO,
        unsent: None,
        host_queue: None,
        nic_rate: None,
        supports_pacing: false,
        growth: Growth::Bytes,
        in_recovery: false,
    };
    let ack = Ack {
        upto: Mark(mss.0),
        bytes: mss,
        delivered: mss,
        newly_lost: Bytes::ZERO,
        prior_inflight: mss * 10,
        rtt: Some(Span(rtt_ns)),
        newest: Sent::default(),
        limit: Limit::Window,
    };
    let mut sum = 0;
    for s in startup::REGISTRY {
        for a in avoidance::REGISTRY {
            let mut control = Composed::new((s.make)(), (a.make)(), facts.iw);
            let _ = control.on_ack(&facts, &ack);
            sum += control.state().cwnd.0;
        }
    }
    sum
}
