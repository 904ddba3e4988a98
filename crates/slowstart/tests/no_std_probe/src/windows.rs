//! What the probe computes, and the test beside it with std.

use slowstart::control::{Composed, Controller};
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Facts, Sent};
use slowstart::{avoidance, startup};

/// The windows of all pairs of startup and avoidance after one ACK of a segment, added up.
pub fn windows(now_ns: u64, mss: u64, rtt_ns: u64) -> u64 {
    let mss = Bytes(mss);
    let mut facts = Facts::new(mss, mss * 10);
    facts.now = Instant(now_ns);
    (facts.inflight, facts.delivered, facts.next) = (mss * 9, mss, SendOrder::new(mss.0 * 10));
    (facts.srtt, facts.min_rtt) = (Some(Span(rtt_ns)), Some(Span(rtt_ns)));
    let mut ack = Ack::new(Sent::default(), mss, mss * 10);
    (ack.upto, ack.rtt) = (SendOrder::new(mss.0), Some(Span(rtt_ns)));
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
