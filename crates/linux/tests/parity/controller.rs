//! The Rust controller for a connection of the kernel under an object that is a complete congestion control
//! (BBR v3, also with quiche's Startup): window, pacing rate, threshold and exit must be the same after each event.

use super::mirror::{INFINITE, Tally, known, seg, some, why};
use slowstart::bbr::v3::Bbr3;
use slowstart::control::{Change, Controller};
use slowstart::registry::Algorithm;
use slowstart::step::Pace;
use slowstart::units::{Bytes, Instant, SendOrder, Span};
use slowstart::view::{Ack, Congestion, Facts as Known, Handshake, Limit, Recovery, Sent, Signal};
use slowstart_linux::{ExitReason, Facts, Kind};

/// The controller of one connection.
pub(crate) struct ControllerMirror {
    name: String,
    controller: Bbr3,
    /// The reason of its exit, until the exit is void; [`ExitReason::None`] while it is in its startup.
    left: ExitReason,
    /// Segments that had been marked lost at the last loss or timeout.
    lost: u32,
    threshold: Option<Bytes>,
}

/// The newest packet delivered. The times are chosen so that its delivery-rate sample takes `interval_us`.
fn newest(f: &Facts) -> Sent {
    let sent = Instant(f.now_ns - u64::from(f.interval_us) * 1000);
    Sent {
        mark: SendOrder::new(f.acked_bytes),
        at: sent,
        first_sent_at: sent,
        delivered_at: sent,
        delivered: seg(f, f.newest_delivered),
        inflight: seg(f, f.newest_inflight),
        lost: seg(f, f.newest_lost),
        app_limited: f.newest_limited,
        ..Sent::default()
    }
}

impl ControllerMirror {
    pub(crate) fn new(name: &str, algorithm: &Algorithm, f: &Facts) -> Self {
        // The object's seed.
        let (iw, seed) = (seg(f, f.iw), f.now_ns + u64::from(f.dport));
        let controller = match algorithm {
            Algorithm::Bbr2Quiche(params) => Bbr3::quiche(iw, seed, *params),
            _ => Bbr3::new(iw, seed),
        };
        Self { name: name.to_string(), controller, left: ExitReason::None, lost: f.lost, threshold: None }
    }

    /// Processes an event of the kernel.
    pub(crate) fn take(&mut self, f: &Facts, t: &mut Tally) {
        let k = &known(f);
        let change = match f.kind {
            Kind::Begin => {
                t.connections += 1;
                self.controller.on_established(k, &Handshake::default())
            }
            Kind::Ack => {
                t.acks += 1;
                t.not_limited += u64::from(!f.limited);
                Self::compare_flight(f, t);
                self.controller.on_ack(k, &Self::ack(f))
            }
            Kind::Loss | Kind::Timeout => self.congestion(f, k, t),
            Kind::Recovered | Kind::Undo => {
                let undone = f.kind == Kind::Undo;
                t.undone += u64::from(undone);
                self.controller.on_recovered(k, &Recovery::new(Bytes::ZERO, undone))
            }
            Kind::Idle => {
                t.idle += 1;
                self.controller.on_idle(k, Span::ZERO, None)
            }
            Kind::End => {
                if self.left == ExitReason::None {
                    *t.exits.entry((self.name.clone(), "none")).or_default() += 1;
                }
                return;
            }
            Kind::Send => return,
        };
        self.compare(f, t, change);
    }

    /// Compares the estimate of the data in flight when a packet was sent with what has been delivered since
    /// then. Without loss both are the same, except where the ACK ends within a burst or a packet was
    /// overtaken.
    fn compare_flight(f: &Facts, t: &mut Tally) {
        if f.acked == 0 || f.interval_us == 0 || f.lost > 0 || f.retransmitted > 0 {
            return;
        }
        let since = f.delivered - f.newest_delivered;
        t.flights += 1;
        t.flights_equal += u64::from(f.newest_inflight == since);
        t.flights_near += u64::from(f.newest_inflight.abs_diff(since) <= f.gso_max / f.mss);
    }

    fn ack(f: &Facts) -> Ack {
        let mut a = Ack::new(newest(f), seg(f, f.acked), seg(f, f.prior));
        a.rtt = some(f.rtt_us);
        a.limit = if f.limited { Limit::Window } else { Limit::Application };
        a
    }

    fn congestion(&mut self, f: &Facts, k: &Known, t: &mut Tally) -> Change {
        let timeout = f.kind == Kind::Timeout;
        *(if timeout { &mut t.timeouts } else { &mut t.recoveries }) += u64::from(f.cut);
        let lost = seg(f, f.lost.wrapping_sub(self.lost));
        self.lost = f.lost;
        let signal = if timeout { Signal::Timeout } else { Signal::Loss };
        let newest = newest(f);
        self.controller.on_congestion(k, &Congestion::new(signal, f.cut, newest).losing(lost, 1))
    }

    fn compare(&mut self, f: &Facts, t: &mut Tally, change: Change) {
        t.phases.insert(self.controller.phase());
        let state = *self.controller.state();
        let segments = (state.cwnd.0 / u64::from(f.mss)).max(1);
        if segments != u64::from(f.set) {
            t.differ(&self.name, "window", &format!("{segments} in {}", self.controller.phase()), f);
        }
        let Some(Pace::Rate(rate)) = state.pace else { panic!("BBR always sets a rate") };
        t.paced += 1;
        if rate.0 != f.pace {
            t.differ(&self.name, "rate", &format!("{} in {}", rate.0, self.controller.phase()), f);
        }
        let threshold = state.ssthresh.map_or(INFINITE, |b| (b.0 / u64::from(f.mss)).max(2) as u32);
        if state.ssthresh != self.threshold && threshold != f.threshold {
            t.differ(&self.name, "threshold", &threshold.to_string(), f);
        }
        self.threshold = state.ssthresh;
        if change.resumed {
            let n = t.exits.entry((self.name.clone(), self.left.name())).or_default();
            *n = n.saturating_sub(1);
            self.left = ExitReason::None;
        }
        let exit = change.exited.map_or(ExitReason::None, |e| why(e.why));
        if exit != f.why {
            t.differ(&self.name, "reason", exit.name(), f);
        }
        if exit != ExitReason::None {
            self.left = exit;
            *t.exits.entry((self.name.clone(), exit.name())).or_default() += 1;
        }
    }
}
