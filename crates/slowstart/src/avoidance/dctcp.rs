//! DCTCP, RFC 8257, in the arithmetic of Linux `tcp_dctcp.c` (the share of marks in 1024ths).
//!
//! The window grows as Reno's. A mark reduces it by half the smoothed share of marked bytes, once a round
//! trip, a loss by half.
//!
//! Departs from Linux:
//! - the share is of bytes, as in the RFC, and not of packets;
//! - the window keeps fractions of a segment;
//! - on a host that does not count marks, the share stays what it is at first: a mark halves the window (RFC
//!   8257 §3.5).

use super::{Adjust, Avoidance};
use super::reno::{self, Reno};
use crate::param::params;
use crate::step::Exit;
use crate::units::{Bytes, SendOrder};
use crate::view::{Ack, Congestion, Signal, View};

params! {
    /// The parameters of DCTCP, with their defaults.
    pub struct Params {
        /// The gain of the smoothing is 1 / 2^shift (RFC 8257 §4.2; Linux `dctcp_shift_g`).
        shift: u32 = 4, "a number from 0 to 10", |v| v <= 10;
        /// The share of marks that is assumed at first, in 1024ths (RFC 8257 §3.3; Linux
        /// `dctcp_alpha_on_init`).
        alpha: u32 = ONE, "a number from 0 to 1024", |v| v <= ONE;
    }
}

/// A share of 1.
const ONE: u32 = 1024;

/// DCTCP's congestion avoidance, one instance a connection.
#[derive(Clone, Debug)]
pub struct Dctcp {
    pub(crate) params: Params,
    growth: Reno,
    /// The smoothed share of marked bytes, in 1024ths.
    alpha: u32,
    /// The round ends when this is acknowledged.
    round: SendOrder,
    /// Bytes delivered, and delivered marked, when it began.
    began: (Bytes, Bytes),
}

impl Dctcp {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            growth: Reno::new(reno::Params::default()),
            alpha: params.alpha,
            round: SendOrder::default(),
            began: (Bytes::ZERO, Bytes::ZERO),
            params,
        }
    }
}

impl Avoidance for Dctcp {
    fn enter(&mut self, v: &View, how: Exit) {
        self.growth.enter(v, how);
    }

    fn observe(&mut self, v: &View, ack: &Ack) {
        let Some(total) = v.marked.filter(|_| ack.upto >= self.round) else { return };
        // dctcp_update_alpha
        let (delivered, marked) = (v.delivered - self.began.0, total - self.began.1);
        let less = self.alpha >> self.params.shift;
        self.alpha -= if less == 0 { self.alpha } else { less };
        if marked > Bytes::ZERO {
            let share = marked.min(delivered).scale(u64::from(ONE >> self.params.shift), delivered.0.max(1));
            self.alpha = (self.alpha + share.0 as u32).min(ONE);
        }
        self.began = (v.delivered, total);
        self.round = v.next;
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Adjust {
        self.growth.on_ack(v, ack)
    }

    fn on_congestion(&mut self, v: &View, c: &Congestion) -> Bytes {
        match c.signal {
            Signal::Ecn => v.cwnd - v.cwnd.scale(u64::from(self.alpha), u64::from(2 * ONE)),
            _ => self.growth.on_congestion(v, c),
        }
    }

    fn needs_each_mark(&self) -> bool {
        true
    }
}
