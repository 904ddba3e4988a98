//! Restricted slow start, Allcock, Hegde & Kettimuthu 2005: a PID controller on the host's own interface
//! queue reduces growth before the queue overflows (the send-stall of Linux 2.4).
//!
//! e = `set_point` * (limit of the queue) - (bytes in the queue); u = kp (e + 1/ti ∫e dt + td de/dt), in
//! segments. An ACK increases the window by u times the standard amount, with u limited to 0..1.
//!
//! Departs from the paper, or is reconstructed where it is silent:
//! - the printed formula lacks parentheses and bars; this is the form to which Ziegler-Nichols gains apply;
//! - it does not say how the output changes the window: here it scales the growth, which is never faster than
//!   slow start; a negative output holds the window (`hold=off` reduces it, only for finding the gains);
//! - it gives no gains: ours follow from its procedure on the loop of ACK, window and interface queue (test
//!   `restricted::gains_by_ziegler_and_nichols`): Kc = 2, Tc = two ACK intervals, 240 us at 100 Mbit/s;
//! - it does not say when it samples: here with each ACK at a later time than the last sample. The integral
//!   does not change while the output is at a limit (anti-windup).
//!
//! On a host that does not report its queue it is standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::Step;
use crate::units::{Bytes, Fixed, Instant, Span, mul_div};
use crate::view::{Ack, HostQueue, View};

params! {
    /// Parameters of restricted slow start.
    pub struct Params {
        /// Target of the queue, as a share of its limit.
        set_point: Fixed = Fixed::milli(900), "a share from 0 to 1", |v| (0..=Fixed::ONE).contains(&v.0);
        /// Proportional gain, in increments per segment of error: 0.33 of the critical gain.
        kp: Fixed = Fixed::milli(KP), "a number from 0 to 1000", |v| (0..=1000 * Fixed::ONE).contains(&v.0);
        /// Integral time: half the critical period; 0s for no integral.
        ti: Span = Span::micros(TI), "a time such as 120us, 0s for no integral", |_v| true;
        /// Derivative time: a third of the critical period.
        td: Span = Span::micros(TD), "a time such as 80us", |v| v <= Span::secs(10);
        /// If on, a negative output holds the window; if off, it reduces it.
        hold: bool = true, "on or off", |_v| true;
        /// Sampling period if the output is an increment of the window in segments for each period; 0s: the
        /// output scales the growth of each ACK.
        every: Span = Span::ZERO, "a time such as 1ms, 0s for each ACK", |v| v <= Span::secs(10);
    }
}

// Ziegler-Nichols, "some overshoot": 0.33 Kc, Tc / 2, Tc / 3 of Kc = 2 and Tc = 240 us.
const KP: i64 = 660;
const TI: u64 = 120;
const TD: u64 = 80;

/// Limit of errors and of the integral, in bytes: far above any interface queue, so that no product
/// overflows.
const LARGEST: i64 = 1 << 32;

/// Restricted slow start, one instance a connection.
#[derive(Clone, Debug)]
pub struct Restricted {
    pub(crate) params: Params,
    /// Time and error of the last sample, in bytes.
    last: Option<(Instant, i64)>,
    /// The integral divided by `ti`, in bytes.
    integral: i64,
    /// The output, in millionths.
    output: i64,
}

/// Returns `a * b / c` with the sign of `a`, limited to [`LARGEST`].
fn scale(a: i64, b: u64, c: u64) -> i64 {
    let size = i64::try_from(mul_div(a.unsigned_abs(), b, c)).unwrap_or(i64::MAX).min(LARGEST);
    if a < 0 { -size } else { size }
}

impl Restricted {
    /// Returns an instance with these parameters.
    pub fn new(params: Params) -> Self {
        Self { params, last: None, integral: 0, output: Fixed::ONE }
    }

    fn sample(&mut self, v: &View, q: HostQueue) {
        let p = &self.params;
        let bytes = |b: Bytes| i64::try_from(b.0).unwrap_or(LARGEST).min(LARGEST);
        let error =
            scale(bytes(q.limit), p.set_point.0.unsigned_abs(), Fixed::ONE.unsigned_abs()) - bytes(q.used);
        let (dt, before) = self.last.map_or((Span::ZERO, error), |(at, e)| (v.now.since(at), e));
        if self.last.is_some() && dt == Span::ZERO {
            return;
        }
        self.last = Some((v.now, error));
        let slope = if dt == Span::ZERO { 0 } else { scale(error - before, p.td.0, dt.0) };
        let more = if p.ti == Span::ZERO { 0 } else { scale(error, dt.0, p.ti.0) };
        let integral = (self.integral + more).clamp(-LARGEST, LARGEST);
        let output = |integral| scale(error + integral + slope, p.kp.0.unsigned_abs(), v.mss.0);
        let raw = output(integral);
        // At a limit, the integral must not move further in the same direction.
        let bounded = (raw > Fixed::ONE && more > 0) || (raw < 0 && more < 0);
        if !bounded {
            self.integral = integral;
        }
        self.output = output(self.integral);
    }
}

impl Startup for Restricted {
    fn has_exit_rule(&self) -> bool {
        false
    }

    fn on_ack(&mut self, v: &View, ack: &Ack) -> Step {
        let earned = v.slow_start_growth(ack);
        let Some(queue) = v.host_queue else { return Step::grow(earned) };
        let every = self.params.every;
        if every > Span::ZERO {
            if self.last.is_some_and(|(at, _)| v.now.since(at) < every) {
                return Step::HOLD;
            }
            self.sample(v, queue);
            let step = v.mss.scale(self.output.unsigned_abs(), Fixed::ONE.unsigned_abs());
            return match self.output {
                0.. => Step::grow(step),
                _ if self.params.hold => Step::HOLD,
                _ => Step::set(v.cwnd - step),
            };
        }
        self.sample(v, queue);
        let part = earned
            .scale(self.output.unsigned_abs().min(Fixed::ONE.unsigned_abs()), Fixed::ONE.unsigned_abs());
        match self.output {
            0.. => Step::grow(part),
            _ if self.params.hold => Step::HOLD,
            _ => Step::set(v.cwnd - part),
        }
    }

    fn internal_values(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("error_bytes", self.last.map_or(f64::NAN, |(_, e)| e as f64));
        put("output", Fixed(self.output).as_f64());
    }
}
