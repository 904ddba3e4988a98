//! A second carrier that a mobile network adds while there is much to send: a rate that grows with use.
//!
//! Carrier aggregation of LTE: the base station activates a secondary cell once the queue of a device is
//! long; it can be used 24 ms later if the device had measured it, 34 ms if not (3GPP TS 36.133 §7.7.2), and
//! is deactivated when nothing was sent on it for `sCellDeactivationTimer` (3GPP TS 36.321 §5.13; 20 to 1280
//! ms by TS 36.331). At which backlog it is activated is left to the vendor. Departs from it: the share of
//! the second carrier is the same at all times, and every packet is spread over both while both are active.

use slowstart::units::{Bytes, Instant, Span};

/// The parameters of the second carrier.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// Its share of the link's rate, in millionths; below one.
    pub(super) share: u32,
    /// The backlog above which it is activated.
    pub(super) backlog: Bytes,
    /// How long that takes.
    pub(super) activation: Span,
    /// How long it stays without a packet.
    pub(super) idle: Span,
}

/// Its state.
#[derive(Copy, Clone, Debug)]
pub(super) struct Carrier {
    params: Params,
    /// From when on it can be used; [`Instant::NEVER`] if it is not activated.
    from: Instant,
    last_sent: Instant,
}

impl Carrier {
    pub(super) fn new(params: Params) -> Self {
        Self { params, from: Instant::NEVER, last_sent: Instant::ZERO }
    }

    /// Activates it if the backlog is long enough.
    pub(super) fn on_backlog(&mut self, now: Instant, backlog: u64) {
        self.expire(now);
        if self.from == Instant::NEVER && backlog > self.params.backlog.0 {
            self.from = now + self.params.activation;
        }
    }

    /// The bytes of the whole link that a packet sent now takes.
    pub(super) fn cost(&mut self, now: Instant, bytes: u32) -> u32 {
        self.expire(now);
        self.last_sent = now;
        if self.from <= now {
            return bytes;
        }
        let first = 1_000_000 - u64::from(self.params.share);
        (u64::from(bytes) * 1_000_000).div_ceil(first) as u32
    }

    fn expire(&mut self, now: Instant) {
        if self.from <= now && now.since(self.last_sent.max(self.from)) > self.params.idle {
            self.from = Instant::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_with_backlog_after_its_time_and_goes_when_unused() {
        let at = |ms: u64| Instant(ms * 1_000_000);
        let mut c = Carrier::new(Params {
            share: 750_000,
            backlog: Bytes(30_000),
            activation: Span::millis(24),
            idle: Span::millis(640),
        });
        c.on_backlog(at(0), 30_000);
        assert_eq!(c.cost(at(100), 1500), 6000);
        c.on_backlog(at(100), 30_001);
        assert_eq!((c.cost(at(123), 1500), c.cost(at(124), 1500)), (6000, 1500));
        assert_eq!(c.cost(at(764), 1500), 1500);
        assert_eq!(c.cost(at(764 + 641), 1500), 6000);
    }
}
