//! How a startup ended, from the states of the sender after each acknowledgement.

use crate::order::{HyStart, Recording, Seen};
use slowstart::step::Exit;
use slowstart::units::{Bytes, Span};
use slowstart_study::measured::{CWR, MeasuredExit};

/// `tcp_ca_state` of a sender that repairs losses; above it, one whose timer fired.
pub(crate) const RECOVERY: u32 = 3;
/// Of one whose timer fired.
pub(crate) const LOSS: u32 = 4;

/// The phase of bbr, from its gains of pacing and of the window, of 256 (`TCP_CC_INFO`). In `PROBE_RTT` both are 1: its startup
/// may go on after that.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    /// Not asked for, or a phase that says nothing of the startup.
    #[default]
    Other,
    Startup,
    Drain,
    ProbeBw,
}

impl Phase {
    /// The gains of the kernel's bbr are 2.89 in startup, 1 / 2.89 in the drain with the window's still 2.89, and a window's of 2
    /// after.
    pub(crate) fn of((pacing, window): (u32, u32)) -> Self {
        match (pacing, window) {
            (500.., 500..) => Self::Startup,
            (0..128, 500..) => Self::Drain,
            (_, 400..600) => Self::ProbeBw,
            _ => Self::Other,
        }
    }
}

/// The end of the startup, if it was seen.
pub(crate) fn exit(r: &Recording) -> Option<MeasuredExit> {
    if r.seen.iter().any(|s| s.phase == Phase::Startup as u32) {
        return bbr_exit(r);
    }
    // Where the threshold was taken back, the loss that had set it proved spurious.
    let begin = r.seen.iter().rposition(|s| s.ssthresh == u32::MAX && s.state != LOSS).map_or(0, |i| i + 1);
    // Where much is lost at once, proportional rate reduction holds the window below the threshold until all is repaired.
    let ends =
        |s: &Seen| s.state == LOSS || s.ssthresh != u32::MAX && (s.cwnd >= s.ssthresh || s.state >= CWR);
    let i = begin + r.seen[begin..].iter().position(ends)?;
    let seen = &r.seen[i];
    // A loss may have reduced the window: the one before is that of the acknowledgement before.
    let earlier = i.checked_sub(1).map_or(r.initial_window, |i| r.seen[i].cwnd);
    let (why, before) = match seen.state {
        LOSS => (Exit::Timeout, earlier),
        RECOVERY => (Exit::Loss, earlier),
        CWR => (Exit::Ecn, earlier),
        _ => match r.hystart {
            // The threshold is the window at which it decided; the same acknowledgement may enlarge that.
            HyStart { train: 1.., .. } => (Exit::AckTrain, seen.ssthresh),
            HyStart { delay: 1.., .. } => (Exit::Delay, seen.ssthresh),
            // A tail loss probe may find and repair a loss within one acknowledgement.
            HyStart { .. } if seen.retransmitted > 0 => (Exit::Loss, earlier),
            HyStart { .. } => (Exit::Ssthresh, seen.cwnd),
        },
    };
    let bytes = |segments: u32| Bytes(u64::from(segments) * u64::from(r.mss));
    let after = match why {
        Exit::Timeout => bytes(seen.cwnd).min(bytes(before)),
        // The kernel lowers the window to the threshold over the next round trip (PRR).
        Exit::Loss | Exit::Ecn => bytes(seen.ssthresh.min(before)),
        _ => bytes(before),
    };
    Some(measured(why, (seen.at, seen.at), (bytes(before), bytes(before), after), bytes(seen.inflight)))
}

/// bbr says in which phase it is: its startup ends when it begins to drain the queue, and it leaves when that is done.
fn bbr_exit(r: &Recording) -> Option<MeasuredExit> {
    let is = |phases: &'static [Phase]| move |s: &&Seen| phases.iter().any(|p| *p as u32 == s.phase);
    let detected = r.seen.iter().find(is(&[Phase::Drain, Phase::ProbeBw]))?;
    let left = r.seen.iter().find(is(&[Phase::ProbeBw]))?;
    let bytes = |segments: u32| Bytes(u64::from(segments) * u64::from(r.mss));
    let windows = (bytes(detected.cwnd), bytes(left.cwnd), bytes(left.cwnd));
    Some(measured(Exit::RateFlat, (detected.at, left.at), windows, bytes(left.inflight)))
}

fn measured(
    why: Exit,
    (detected, left): (u64, u64),
    (detected_cwnd, before, after): (Bytes, Bytes, Bytes),
    inflight: Bytes,
) -> MeasuredExit {
    MeasuredExit {
        reason: why.name(),
        by_congestion: why.by_congestion(),
        detected: Span(detected),
        left: Span(left),
        detected_cwnd,
        before: Some(before),
        after,
        inflight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: u64, cwnd: u32, ssthresh: u32) -> Seen {
        Seen { at, cwnd, ssthresh, ..Seen::default() }
    }

    fn recording(seen: Vec<Seen>, hystart: HyStart) -> Recording {
        Recording { mss: 1000, initial_window: 10, seen, hystart, ..Recording::default() }
    }

    #[test]
    fn hystart_says_itself_why_it_ended() {
        let states = vec![seen(1, 20, u32::MAX), seen(2, 23, 21)];
        for (hystart, reason, window) in [
            (HyStart { train: 1, delay: 0 }, "ack-train", Bytes(21_000)),
            (HyStart { train: 0, delay: 1 }, "delay", Bytes(21_000)),
            (HyStart::default(), "ssthresh", Bytes(23_000)),
        ] {
            let e = exit(&recording(states.clone(), hystart)).expect("it ended");
            assert_eq!((e.reason, e.detected, e.detected_cwnd, e.after), (reason, Span(2), window, window));
        }
        assert_eq!(exit(&recording(states[..1].to_vec(), HyStart::default())), None);
    }

    #[test]
    fn a_loss_is_told_with_the_window_before_it() {
        let lost = Seen { state: RECOVERY, retransmitted: 1, ..seen(2, 19, 14) };
        let e = exit(&recording(vec![seen(1, 20, u32::MAX), lost], HyStart::default())).expect("it ended");
        assert_eq!((e.reason, e.detected_cwnd, e.after), ("loss", Bytes(20_000), Bytes(14_000)));
        // So much was lost that the window is below the threshold.
        let much = Seen { cwnd: 5, ..lost };
        let states = vec![seen(1, 20, u32::MAX), much, seen(9, 14, 14)];
        let e = exit(&recording(states, HyStart::default())).expect("it ended");
        assert_eq!((e.detected, e.detected_cwnd, e.after), (Span(2), Bytes(20_000), Bytes(14_000)));
        // Repaired by a probe: the state is open again.
        let probed = Seen { retransmitted: 1, ..seen(2, 14, 14) };
        let e = exit(&recording(vec![seen(1, 20, u32::MAX), probed], HyStart::default())).expect("it ended");
        assert_eq!((e.reason, e.detected_cwnd, e.after), ("loss", Bytes(20_000), Bytes(14_000)));
        let timeout = Seen { state: LOSS, ..seen(2, 1, 10) };
        assert_eq!(exit(&recording(vec![timeout], HyStart::default())).map(|e| e.reason), Some("timeout"));
    }

    #[test]
    fn a_loss_that_proves_spurious_is_no_exit() {
        let taken_for_lost = Seen { state: RECOVERY, retransmitted: 1, ..seen(2, 19, 14) };
        let mut states = vec![seen(1, 20, u32::MAX), taken_for_lost, seen(3, 24, u32::MAX)];
        assert_eq!(exit(&recording(states.clone(), HyStart::default())), None);
        states.push(seen(4, 40, 40));
        let e = exit(&recording(states, HyStart { train: 1, delay: 0 })).expect("it ended");
        assert_eq!((e.reason, e.detected, e.detected_cwnd), ("ack-train", Span(4), Bytes(40_000)));
    }

    #[test]
    fn bbr_leaves_when_it_has_drained_and_not_for_probe_rtt() {
        assert_eq!(Phase::of((739, 739)), Phase::Startup);
        assert_eq!(Phase::of((88, 739)), Phase::Drain);
        assert_eq!(Phase::of((320, 512)), Phase::ProbeBw);
        assert_eq!(Phase::of((256, 256)), Phase::Other);
        let in_phase = |at, cwnd, phase: Phase| Seen { phase: phase as u32, ..seen(at, cwnd, u32::MAX) };
        let mut states = vec![
            in_phase(1, 20, Phase::Startup),
            in_phase(2, 4, Phase::Other),
            in_phase(3, 20, Phase::Startup),
        ];
        assert_eq!(exit(&recording(states.clone(), HyStart::default())), None);
        states.extend([in_phase(4, 40, Phase::Drain), in_phase(5, 30, Phase::ProbeBw)]);
        let e = exit(&recording(states, HyStart::default())).expect("it ended");
        assert_eq!((e.reason, e.detected, e.left), ("rate-flat", Span(4), Span(5)));
        assert_eq!((e.detected_cwnd, e.after), (Bytes(40_000), Bytes(30_000)));
    }
}
