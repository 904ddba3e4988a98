//! Stateful-TCP, Guo & Lee, IEEE Access 2020, as in its authors' kernel module (`scubic_release.c` 1.0,
//! mclab-cuhk/Stateful-TCP): the first window is the rate of an earlier connection to this peer times its
//! minimum RTT, paced at that rate. The first RTT sample ends pacing with the data in flight as the window,
//! and CUBIC goes on in slow start with its `HyStart`.
//!
//! Departs from the module:
//! - the saved rate is the final window over the smoothed RTT. The module saves the largest of the last five
//!   rates, each of a round trip without its first ACK and without its longest gap;
//! - the receive window of the peer limits the sender, which the module ignores;
//! - `HyStart` is that of Linux 6.13.
//!
//! Without saved state worth more than the initial window, or without a pacer, it is `HyStart`.

use super::Startup;
use super::hystart::{self, HyStart};
use crate::param::params;
use crate::step::{Pace, Resume, Step, Window};
use crate::units::{Bytes, Span};
use crate::view::{Ack, Handshake, Restart, View};

params! {
    /// Stateful-TCP has no parameters.
    pub struct Params {}
}

/// With fewer segments in flight an RTT sample does not end the first flight
/// (`MIN_INFLIGHT_TO_EXIT_STARTUP_PHASE`).
const FEW: u64 = 5;
/// The RTT samples after which it ends anyway, with the initial window.
const SAMPLES: u8 = 10;

/// The startup of Stateful-TCP, one instance a connection.
#[derive(Clone, Debug)]
pub struct Stateful {
    pub(crate) params: Params,
    hystart: HyStart,
    /// The RTT samples in the paced flight, while that lasts.
    flight: Option<u8>,
}

impl Stateful {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, hystart: HyStart::new(hystart::Params::default()), flight: None }
    }

    /// Returns the window with which an RTT sample ends the paced flight, if it does.
    fn landed(&mut self, v: &View) -> Option<Bytes> {
        let samples = self.flight.as_mut()?;
        let window = if *samples > SAMPLES {
            v.iw
        } else if v.inflight > v.mss * FEW {
            v.inflight.max(v.iw)
        } else {
            *samples += 1;
            return None;
        };
        self.flight = None;
        Some(window.min(v.cwnd))
    }
}

impl Startup for Stateful {
    fn uses_path_memory(&self) -> bool {
        true
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        let Some(memory) = hs.remembered.filter(|_| v.supports_pacing) else { return Step::HOLD };
        let segments = memory.rate.over(memory.rtt).0 / v.mss.0.max(1);
        let window = v.mss * segments;
        if window <= v.iw {
            return Step::HOLD;
        }
        self.flight = Some(0);
        Step::set(window).pace(Pace::Rate(memory.rate))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let landed = if ack.rtt.is_some() { self.landed(v) } else { None };
        let Some(window) = landed else { return self.hystart.on_ack(v, ack) };
        // What follows the sample sees the new window: detection, and growth for the same ACK.
        let step = self.hystart.on_ack(&View { cwnd: window, ..*v }, ack);
        let growth = match step.window {
            Window::Grow(b) if ack.limit.allows_growth() => b,
            _ => Bytes::ZERO,
        };
        Step { window: Window::Set(window + growth), ..step }.pace(Pace::Host)
    }

    fn on_restart(&mut self, v: &View, why: Restart) -> Resume {
        self.hystart.on_restart(v, why)
    }

    fn observe(&mut self, rtt: Span) {
        self.hystart.observe(rtt);
    }

    fn phase(&self) -> &'static str {
        if self.flight.is_some() { "paced" } else { "slow-start" }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.hystart.internal_values(put);
    }
}
