//! What packets wait for a link of constant rate, by when they were sent alone.

use super::flow::Flow;

/// Error of the rate where it does not vary, as a share.
pub(super) const ERROR: f64 = 0.03;

/// A packet at the link.
#[derive(Copy, Clone, Debug)]
pub(super) struct Wait {
    /// Bytes sent up to it.
    pub(super) upto: f64,
    /// When it was sent, seconds.
    pub(super) at: f64,
    /// When the link has sent it, and all before it, seconds.
    pub(super) done: f64,
    /// True if any of it was lost.
    pub(super) lost: bool,
}

/// The waits of the packets sent before the first loss was known. Those whose send time is not known are left out.
/// `rate` is in bytes per second.
pub(super) fn find(flow: &Flow, rate: f64) -> Vec<Wait> {
    let (mut upto, mut done) = (0.0, 0.0_f64);
    let before = flow.sends.iter().take_while(|s| !s.again && s.at < flow.first_loss);
    let waits = before.map(|s| {
        upto += s.bytes;
        done = if s.dated { done.max(s.at) } else { done } + (s.bytes - s.lost) / rate;
        (s.dated, Wait { upto, at: s.at, done, lost: s.lost > 0.0 })
    });
    waits.filter_map(|(dated, wait)| dated.then_some(wait)).collect()
}

/// The newest packet that was sent by `at` and is among the first `delivered` bytes.
pub(super) fn of(all: &[Wait], at: f64, delivered: f64) -> Option<Wait> {
    let sent = all.partition_point(|w| w.at <= at + 1e-9);
    let arrived = all.partition_point(|w| w.upto <= delivered + 1.0);
    sent.min(arrived).checked_sub(1).map(|i| all[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::flow::{Acked, Send};
    use crate::fit::jitter::Jitter;
    use crate::fit::{base, queue};

    const RATE: f64 = 150_000.0;

    /// Two packets of 1500 bytes in the time in which the link carries one, 10 ms. It drops what finds more than 30 kB; the
    /// path besides takes as long as `delay` says for each packet.
    fn flow(delay: impl Fn(usize) -> f64) -> Flow {
        let (mut sends, mut acks, mut done, mut delivered) = (Vec::new(), Vec::new(), 0.0_f64, 0.0);
        for n in 0..60 {
            let at = n as f64 * 0.005;
            let full = (done - at) * RATE > 30_000.0;
            if !full {
                (done, delivered) = (done.max(at) + 0.01, delivered + 1500.0);
                acks.push(Acked { at: done + delay(n), delivered, rtt: Some(done + delay(n) - at) });
            }
            let lost = if full { 1500.0 } else { 0.0 };
            sends.push(Send { at, dated: true, bytes: 1500.0, lost, again: false });
        }
        let least = acks.iter().filter_map(|a| a.rtt).fold(f64::INFINITY, f64::min);
        Flow { sends, acks, packet: 1500.0, least, first_loss: 0.4 }
    }

    #[test]
    fn a_path_that_became_shorter_while_a_queue_stood_is_in_the_interval() {
        let jitter = Jitter::default();
        let base = |delay: fn(usize) -> f64| base::find(&flow(delay), RATE, 0.0, 0.0, &jitter, 0.0);
        let shorter = base(|n| if n < 6 { 0.05 } else { 0.03 });
        assert!((shorter.value - 0.05).abs() < 1e-9 && shorter.low < 0.03, "{shorter:?}");
        let same = base(|_| 0.05);
        assert!((same.value - 0.05).abs() < 1e-9 && same.low > 0.039, "{same:?}");
    }

    #[test]
    fn a_queue_behind_a_longer_path_is_what_was_sent_until_it_dropped() {
        let found = |delay: fn(usize) -> f64| {
            let flow = flow(delay);
            let link = queue::Link { rate: RATE, varies: 0.0, base: 0.05, late: 0.0, slot: 0.0 };
            queue::find(&flow, &link, 1500.0).bytes
        };
        let same = found(|_| 0.05);
        assert!(same.low > 25_000.0 && same.high.is_some_and(|h| h < 36_000.0), "{same:?}");
        // The path grows longer packet by packet, so that its delay looks like a queue.
        let longer = found(|n| 0.05 + n.min(30) as f64 * 0.004);
        assert!(longer.value > 40_000.0 && longer.low < 31_000.0, "{longer:?}");
    }
}
