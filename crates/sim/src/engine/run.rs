//! Runs: the full packets of a burst that follow each other through the link. One place in a line stands for all
//! of them, and they are received in one call.

use super::Engine;
use super::flow::Flow;
use super::id::{ClockId, LineId};
use super::net::{Net, leaving};
use super::packet::Packet;
use crate::ends::End;
use crate::path::Spacing;
use crate::tcp::endpoint::DELAYED_ACK_CLOCK;
use crate::tcp::receiver::AckDecision;
use slowstart::units::Instant;

/// Number of packets from which a run takes less than each by itself.
pub(super) const LEAST: u32 = 3;

/// The packets of a run that follow the first one in its place.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Run {
    /// Their number.
    pub(super) left: u32,
    /// The payload of each.
    pub(super) len: u32,
    /// True if the last one pushes.
    pub(super) pushes: bool,
    pub(super) spacing: Spacing,
}

impl Run {
    /// Goes on to the next packet, from one that arrives at `at` with this sequence number.
    #[inline]
    pub(super) fn step(&mut self, at: &mut Instant, seq: &mut u32) {
        *at = self.spacing.next(*at);
        *seq = seq.wrapping_add(self.len);
        self.left -= 1;
    }

    /// True if the packet before these pushes.
    #[inline]
    pub(super) fn is_pushed(&self) -> bool {
        self.left == 0 && self.pushes
    }
}

/// True if an end can take the packets of a run after the first by [`Engine::receive_run`]: they bring data to a
/// receiver that has nothing to send and nothing else to do about each.
fn takes_run(f: &Flow, net: &mut Net, end: End, first: &Packet) -> bool {
    end != f.sender()
        && !f.origins[end].captured
        && !leaving(&mut net.path, end).is_interface()
        && net.fates.is_empty()
        && f.is_quiet(end)
        && f.ends[end].takes_data_alone(first.numbers())
}

impl Engine {
    /// Receives the packets that follow `first` in its run, which arrived at `at`, as long as they arrive before
    /// `until` and before any other event of their end. Only their sequence numbers
    /// differ from those of the first, so that their acknowledgement number and timestamps say nothing new. Returns
    /// when the last one arrived, and when the next packet of the line does.
    #[inline(never)]
    pub(super) fn receive_run(
        &mut self,
        end: End,
        mut at: Instant,
        line: LineId,
        until: Instant,
        first: &Packet,
    ) -> (Instant, Instant) {
        let flow = first.to.flow();
        let (f, net) = (&mut self.flows[flow.index()], &mut self.net);
        let Some((mut next, mut seq, mut run)) = net.lines[line.index()].rest_of_run() else {
            return (at, Instant::NEVER);
        };
        if !takes_run(f, net, end, first) {
            return (at, next);
        }
        let clock = ClockId::of(end, DELAYED_ACK_CLOCK);
        let (start, sent, len, stamp) = (f.spec.start, first.sent, first.len(), first.stamp());
        let mut limit = net.first_clock(end).min(until);
        let (mut is_over, mut is_quiet) = (false, true);
        while next < limit.min(net.waiting.pending[end]) && !is_over && is_quiet {
            at = next;
            net.advance_to(end, at);
            self.cost.events += 1;
            f.one_way.record_arrival(at, sent, f.witness, &mut f.truth);
            f.truth.count_arrival(at, start, len);
            let endpoint = &mut f.ends[end];
            if endpoint.take_data(at, seq, len, run.is_pushed(), stamp) == AckDecision::Now {
                endpoint.acknowledge(at, &mut net.sink(&f.origins[end]));
                is_quiet = net.fates.is_empty();
            }
            is_quiet &= f.has_nothing_for_application(end);
            is_over = run.left == 0;
            if !is_over {
                run.step(&mut next, &mut seq);
            }
            if is_quiet && f.ends[end].receiver_deadline() < f.armed[clock.index()] {
                net.arm_delayed_ack(flow, f, end);
                limit = net.first_clock(end).min(until);
            }
        }
        let next = net.lines[line.index()].keep_rest_of_run(next, seq, run, is_over);
        if !is_quiet {
            self.finish_event(flow, end);
        }
        (at, next)
    }
}
