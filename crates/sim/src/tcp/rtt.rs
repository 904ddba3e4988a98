//! RTT estimation and the retransmission timeout: RFC 6298 with the bounds of Linux (`tcp_rtt_estimator`).

use super::profile::RtoRule;
use slowstart::units::{SendOrder, Span};

/// Maximum retransmission timeout (`TCP_RTO_MAX`).
pub const RTO_MAX: Span = Span::secs(120);
/// Retransmission timeout before the first RTT sample (RFC 6298 §2.1).
pub const RTO_INITIAL: Span = Span::secs(1);

/// The estimator of the round-trip time and of the timeout (RFC 6298).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rtt {
    rule: RtoRule,
    rto_min: Span,
    srtt: Option<Span>,
    /// Four times the mean deviation.
    mdev: Span,
    /// Maximum of `mdev` in the current RTT.
    mdev_max: Span,
    /// The margin that the timeout adds to the smoothed RTT.
    rttvar: Span,
    round_end: SendOrder,
    min: Option<Span>,
    base: Span,
    backoff: u32,
    /// The timeout with back-off.
    rto: Span,
}

impl Rtt {
    /// An estimator without samples.
    pub fn new(rule: RtoRule, rto_min: Span) -> Self {
        Self {
            rule,
            rto_min,
            srtt: None,
            mdev: Span::ZERO,
            mdev_max: Span::ZERO,
            rttvar: Span::ZERO,
            round_end: SendOrder::new(0),
            min: None,
            base: RTO_INITIAL,
            backoff: 0,
            rto: RTO_INITIAL,
        }
    }

    /// Takes a sample, where everything before `una` is acknowledged and `next` is the next offset to send.
    pub fn sample(&mut self, rtt: Span, una: SendOrder, next: SendOrder) {
        self.least(rtt);
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.mdev = rtt * 2;
            self.rttvar = self.floor(self.mdev);
            self.mdev_max = self.rttvar;
            self.round_end = next;
            self.set_rto();
            return;
        };
        let error = Span(rtt.0.abs_diff(srtt.0));
        self.srtt = Some(if rtt >= srtt { srtt + error / 8 } else { srtt - error / 8 });
        // mdev is four times the deviation: mdev += error - mdev / 4. If the RTT falls suddenly, the error
        // counts an eighth of that, so that it does not look like variance (tcp_rtt_estimator).
        let quarter = self.mdev / 4;
        if self.rule == RtoRule::Linux && rtt < srtt && error > quarter {
            self.mdev += (error - quarter) / 8;
        } else {
            self.mdev = self.mdev + error - quarter;
        }
        match self.rule {
            RtoRule::Linux => {
                if self.mdev > self.mdev_max {
                    self.mdev_max = self.mdev;
                    self.rttvar = self.rttvar.max(self.mdev_max);
                }
                if una > self.round_end {
                    if self.mdev_max < self.rttvar {
                        self.rttvar -= (self.rttvar - self.mdev_max) / 4;
                    }
                    self.round_end = next;
                    self.mdev_max = self.rto_min;
                }
            }
            RtoRule::Rfc6298 => self.rttvar = self.mdev,
        }
        self.set_rto();
    }

    /// Takes a sample for the minimum RTT only: that of the newest segment of an ACK, which no delayed ACK
    /// has lengthened (`tcp_update_rtt_min`).
    pub fn least(&mut self, rtt: Span) {
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
    }

    fn floor(&self, var: Span) -> Span {
        if self.rule == RtoRule::Linux { var.max(self.rto_min) } else { var }
    }

    fn set_rto(&mut self) {
        let rto = self.srtt.unwrap_or_default() + self.rttvar;
        let floor = if self.rule == RtoRule::Rfc6298 { self.rto_min } else { Span::ZERO };
        self.base = rto.max(floor).min(RTO_MAX);
        self.enforce();
    }

    fn enforce(&mut self) {
        self.rto = (self.base * (1 << self.backoff.min(16))).min(RTO_MAX);
    }

    /// The retransmission timeout with back-off.
    pub fn rto(&self) -> Span {
        self.rto
    }

    /// Doubles the timeout, after it fired (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
        self.enforce();
    }

    /// True if a timeout occurred since new data was last acknowledged.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// Ends the back-off: new data was acknowledged.
    pub fn progress(&mut self) {
        if self.backoff > 0 {
            self.backoff = 0;
            self.enforce();
        }
    }

    /// Sets the timeout after a handshake packet was lost, if there is no RTT sample (RFC 6298 §5.7).
    pub fn after_syn_loss(&mut self, timeout: Span) {
        if self.srtt.is_none() {
            self.base = timeout;
            self.enforce();
        }
    }

    /// The smoothed RTT; `None` before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// The minimum RTT of the connection. (Linux forgets samples older than five minutes; no run lasts that
    /// long.)
    pub fn min(&self) -> Option<Span> {
        self.min
    }

    /// The minimum margin of the timeout.
    pub fn rto_min(&self) -> Span {
        self.rto_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rule: RtoRule, min: Span, samples_ms: &[u64]) -> Rtt {
        let mut r = Rtt::new(rule, min);
        for (i, ms) in samples_ms.iter().enumerate() {
            r.sample(Span::millis(*ms), SendOrder::new(i as u64 * 2 + 1), SendOrder::new(i as u64 * 2 + 2));
        }
        r
    }

    #[test]
    fn the_first_sample_gives_three_round_trips() {
        // RFC 6298 §2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        let r = after(RtoRule::Linux, Span::millis(200), &[300]);
        assert_eq!((r.srtt(), r.rto()), (Some(Span::millis(300)), Span::millis(900)));
    }

    #[test]
    fn linux_keeps_200_ms_above_the_smoothed_round_trip() {
        let r = after(RtoRule::Linux, Span::millis(200), &[40; 200]);
        assert_eq!(r.rto(), Span::millis(240));
        let r = after(RtoRule::Rfc6298, Span::secs(1), &[40; 200]);
        assert_eq!(r.rto(), Span::secs(1));
    }

    #[test]
    fn smoothing_is_an_eighth() {
        let r = after(RtoRule::Rfc6298, Span::ZERO, &[80, 160]);
        assert_eq!(r.srtt(), Some(Span::millis(90)));
        // RTTVAR = 3/4 * 40 + 1/4 * 80 = 50; RTO = 90 + 200.
        assert_eq!(r.rto(), Span::millis(290));
    }

    /// RFC 6298 §2.3 in floating point, over samples with jumps: equal to within the rounding of integer
    /// division, a few ns.
    #[test]
    fn the_arithmetic_is_that_of_rfc_6298() {
        let mut ours = Rtt::new(RtoRule::Rfc6298, Span::ZERO);
        let mut plain: Option<(f64, f64)> = None;
        for n in 0..10_000 {
            let scale = if n % 100 < 50 { 20_000_000 } else { 900_000_000 };
            let r = Span(1_000_000 + crate::random::scale(crate::random::at(7, n), scale));
            ours.sample(r, SendOrder::new(n), SendOrder::new(n + 1));
            let r = r.0 as f64;
            let (srtt, var) = match plain {
                None => (r, r / 2.0),
                Some((srtt, var)) => (0.875 * srtt + 0.125 * r, 0.75 * var + 0.25 * (srtt - r).abs()),
            };
            plain = Some((srtt, var));
            let seen = (ours.srtt().unwrap_or_default().0 as f64, ours.rto().0 as f64);
            assert!((seen.0 - srtt).abs() < 20.0, "sample {n}: SRTT {} for {srtt}", seen.0);
            assert!(
                (seen.1 - srtt - 4.0 * var).abs() < 100.0,
                "sample {n}: RTO {} for {}",
                seen.1,
                srtt + 4.0 * var
            );
        }
    }

    #[test]
    fn backs_off_to_two_minutes_and_recovers() {
        let mut r = after(RtoRule::Linux, Span::millis(200), &[100; 50]);
        for n in 0..20 {
            assert_eq!(r.rto(), (Span::millis(300) * (1 << n)).min(RTO_MAX));
            r.back_off();
        }
        r.progress();
        assert_eq!(r.rto(), Span::millis(300));
    }

    #[test]
    fn after_a_lost_syn_three_seconds() {
        let mut r = Rtt::new(RtoRule::Linux, Span::millis(200));
        assert_eq!(r.rto(), Span::secs(1));
        r.after_syn_loss(Span::secs(3));
        assert_eq!(r.rto(), Span::secs(3));
        r.sample(Span::millis(100), SendOrder::new(1), SendOrder::new(2));
        r.after_syn_loss(Span::secs(3));
        assert_eq!(r.rto(), Span::millis(300));
    }
}
