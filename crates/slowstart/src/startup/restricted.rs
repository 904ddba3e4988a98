//! Restricted slow start: a PID controller on the host's own interface queue holds growth back before the queue
//! overflows (the send-stall of Linux 2.4).
//!
//! e = `set_point` of the queue's limit - the queue; u = kp (e + 1/ti ∫e dt + td de/dt), in segments; an ACK earns
//! u of what it earns in standard slow start, u bounded to 0..1.
//!
//! Departs from the paper, and is reconstructed where it is silent:
//! - the printed formula has lost its parentheses and bars; this is the form its gains (Ziegler-Nichols) are for;
//! - it does not say what the output does to the window: here it scales the increment, so that it is never faster than
//!   slow start; a negative output holds the window (`hold=off` shrinks it, for finding the gains only);
//! - it gives no gains: ours are those of its procedure, run on the loop of ACK, window and interface queue (a test,
//!   `restricted::gains_by_ziegler_and_nichols`, shows it): Kc = 2, Tc = two ACK intervals, 240 us at 100 Mbit/s;
//! - it does not say when it samples: here with each ACK that time has passed before. The integral stands still while
//!   the output is bounded (anti-windup).
//!
//! A host that does not show its queue gets standard slow start.

use super::Startup;
use crate::param::params;
use crate::step::Step;
use crate::units::{Bytes, Fixed, Instant, Span, mul_div};
use crate::view::{Ack, HostQueue, View};

params! {
    /// Parameters of restricted slow start.
    pub struct Params {
        /// The queue it aims for, as a share of its limit.
        set_point: Fixed = Fixed::milli(900), "a share from 0 to 1", |v| (0..=Fixed::ONE).contains(&v.0);
        /// Proportional gain, increments a segment of error: 0.33 of the critical gain.
        kp: Fixed = Fixed::milli(KP), "a number from 0 to 1000", |v| (0..=1000 * Fixed::ONE).contains(&v.0);
        /// Integral time: half the critical period; 0s for none.
        ti: Span = Span::micros(TI), "a time such as 120us, 0s for no integral", |_v| true;
        /// Derivative time: a third of the critical period.
        td: Span = Span::micros(TD), "a time such as 80us", |v| v <= Span::secs(10);
        /// Whether a negative output holds the window (off: shrinks it).
        hold: bool = true, "on or off", |_v| true;
    }
}

// Ziegler-Nichols, "some overshoot": 0.33 Kc, Tc / 2, Tc / 3 of Kc = 2 and Tc = 240 us.
const KP: i64 = 660;
const TI: u64 = 120;
const TD: u64 = 80;

/// Errors are bounded to this many bytes, far above any interface queue, so that nothing overflows.
const LARGEST: i64 = 1 << 32;

/// Restricted slow start.
#[derive(Clone, Debug)]
pub struct Restricted {
    pub(crate) params: Params,
    /// Time and error of the last sample.
    last: Option<(Instant, i64)>,
    /// The integral over `ti`, in bytes.
    integral: i64,
    /// The output, in millionths of a segment.
    output: i64,
}

/// `a * b / c`, signed in `a`; no more than [`LARGEST`].
fn scale(a: i64, b: u64, c: u64) -> i64 {
    let size = i64::try_from(mul_div(a.unsigned_abs(), b, c)).unwrap_or(i64::MAX).min(LARGEST);
    if a < 0 { -size } else { size }
}

impl Restricted {
    /// With these parameters.
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
        // What is beyond the bounds and would be driven further is not summed up.
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
