//! TCP Hybla's slow start, Caini & Firrincieli 2004, in the arithmetic of Linux `tcp_hybla.c`: an ACK
//! increases the window by 2^rho - 1 times the standard amount, where rho is the minimum RTT divided by a
//! reference RTT. The window then grows over time like that of a connection with the reference RTT.
//!
//! Departs from Linux:
//! - the growth under the host's rule is multiplied, where Linux multiplies one segment per ACK;
//! - the initial window is multiplied by rho, as in the paper, where Linux replaces it by rho segments;
//! - after an idle period rho follows anew from the least RTT, where Linux keeps it.
//!
//! Departs from both: the avoidance is not Hybla's (rho^2 segments per round trip).

use super::Startup;
use crate::param::params;
use crate::step::{Resume, Step};
use crate::units::Span;
use crate::view::{Ack, Handshake, Restart, View};

params! {
    /// The parameters of Hybla, with their defaults.
    pub struct Params {
        /// Reference RTT (25 ms in the paper and in Linux).
        rtt0: Span = Span::millis(25), "a time above 0 such as 25ms", |v| v.0 > 0;
    }
}

/// 2^(n/8) in units of 1/128 (`hybla_fraction`).
const FRACTIONS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
/// Maximum window, in segments (`snd_cwnd_clamp`).
const CLAMP: u64 = 65_535;

/// The startup of TCP Hybla, one instance a connection.
#[derive(Clone, Debug)]
pub struct Hybla {
    pub(crate) params: Params,
    /// Rho in eighths; at least one.
    rho: u64,
}

impl Hybla {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, rho: 8 }
    }

    fn measure(&mut self, rtt: Option<Span>) {
        self.rho = rtt.map_or(8, |r| (r.0.saturating_mul(8) / self.params.rtt0.0).max(8));
    }

    /// Returns 2^rho - 1 in units of 1/128, where 2^rho is at most 2^16, as in Linux.
    fn gain(&self) -> u64 {
        (FRACTIONS[(self.rho % 8) as usize] << (self.rho / 8).min(16)) - 128
    }
}

impl Startup for Hybla {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_established(&mut self, v: &View, hs: &Handshake) -> Step {
        self.measure(hs.rtt);
        Step::set(v.cwnd.scale(self.rho, 8).min(v.mss * CLAMP).max(v.cwnd))
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        self.measure(v.min_rtt);
        let grown = v.cwnd + v.slow_start_growth(ack).scale(self.gain(), 128);
        Step::raise(v.cwnd, grown.min(v.mss * CLAMP))
    }

    fn on_restart(&mut self, _: &View, _: Restart) -> Resume {
        Resume::FromStart
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rho", self.rho as f64 / 8.0);
    }
}
