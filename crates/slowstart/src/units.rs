//! Types for the quantities of a transport, with the arithmetic that is meaningful for each.
//!
//! All are integers, so results are identical on every machine and in BPF. Addition and multiplication
//! saturate at the maximum, and subtraction at zero.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// An amount of data, in bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes at all.
    pub const ZERO: Self = Self(0);
    /// The largest value; larger than any window.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns `self * num / den`, rounded down, without overflow of the product; `den` 0 counts as 1.
    #[must_use]
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }

    /// Returns how many whole `unit`s fit; `unit` 0 counts as 1.
    pub fn units(self, unit: Self) -> u64 {
        self.0 / unit.0.max(1)
    }
}

/// Returns `a * b / c`, rounded down, with a 128-bit product; saturates at `u64::MAX`. `c` 0 counts as 1.
pub fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    // Most products fit into 64 bits, and a 64-bit division is several times faster.
    match a.checked_mul(b) {
        Some(p) => p / c.max(1),
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c.max(1))).unwrap_or(u64::MAX),
    }
}

/// A time, in nanoseconds since an origin that the host chooses.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The origin of the host's clock.
    pub const ZERO: Self = Self(0);
    /// Later than every event.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    fn add(self, d: Span) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    fn sub(self, d: Span) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

/// A duration, in nanoseconds. (`core::time::Duration` stores seconds separately, which costs a division per
/// ACK.)
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The largest value; longer than any connection.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a span of `s` seconds.
    pub const fn secs(s: u64) -> Self {
        Self(s * NS_PER_S)
    }
    /// Returns a number of `m` thousandths.
    pub const fn millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Returns a span of `us` microseconds.
    pub const fn micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// Returns `self * num / den`, rounded down, without overflow of the product; `den` 0 counts as 1.
    #[must_use]
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }
    /// Returns the duration in seconds, for output. Algorithms compute in integers.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
}

/// Saturates at [`Span::MAX`], some 584 years.
impl From<core::time::Duration> for Span {
    fn from(d: core::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for core::time::Duration {
    fn from(s: Span) -> Self {
        Self::from_nanos(s.0)
    }
}

/// A rate, in bits per second.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Rate {
    /// Returns the rate of `bytes` per `time`, or `None` if `time` is zero.
    pub fn new(bytes: Bytes, time: Span) -> Option<Self> {
        (time.0 > 0).then(|| Self(mul_div(bytes.0.saturating_mul(8), NS_PER_S, time.0)))
    }
    /// Returns the bytes that this rate transfers in `time`. With an RTT this is the bandwidth-delay product.
    pub fn over(self, time: Span) -> Bytes {
        Bytes(mul_div(self.0, time.0, 8 * NS_PER_S))
    }
    /// Returns the time that `bytes` take at this rate; [`Span::MAX`] if the rate is zero.
    pub fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 { Span::MAX } else { Span(mul_div(bytes.0.saturating_mul(8), NS_PER_S, self.0)) }
    }
    /// Returns `self * num / den`, rounded down, without overflow of the product; `den` 0 counts as 1.
    #[must_use]
    pub fn scale(self, num: u64, den: u64) -> Self {
        Self(mul_div(self.0, num, den))
    }
}

/// A factor, in units of 1/1024.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gain(pub u32);

impl Gain {
    /// The factor 1, which changes nothing.
    pub const UNIT: Self = Self(1024);
    /// Returns `p` percent, rounded down to 1/1024.
    pub const fn percent(p: u32) -> Self {
        Self(p * 1024 / 100)
    }
}

impl Mul<Gain> for Rate {
    type Output = Self;
    fn mul(self, g: Gain) -> Self {
        self.scale(u64::from(g.0), 1024)
    }
}

impl Mul<Gain> for Bytes {
    type Output = Self;
    fn mul(self, g: Gain) -> Self {
        self.scale(u64::from(g.0), 1024)
    }
}

/// A position in the order of sending: the stream offset after the last byte in TCP, the packet number in
/// QUIC.
///
/// Those of one connection are compared, and nothing else: a host makes them, and no code can read a number
/// from one. So an algorithm cannot take their differences for bytes, which they are in TCP only.
///
/// ```
/// use slowstart::units::SendOrder;
/// assert!(SendOrder::new(3) > SendOrder::new(1));
/// ```
///
/// No bytes between two of them:
///
/// ```compile_fail
/// use slowstart::units::SendOrder;
/// let _ = SendOrder::new(3) - SendOrder::new(1);
/// ```
///
/// None that is some bytes after another:
///
/// ```compile_fail
/// use slowstart::units::{Bytes, SendOrder};
/// let _ = SendOrder::new(3) + Bytes(1000);
/// ```
///
/// No number:
///
/// ```compile_fail
/// use slowstart::units::SendOrder;
/// let _: u64 = SendOrder::new(3).0;
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendOrder(u64);

impl SendOrder {
    /// Returns the place at `position`. Positions increase in the order of sending, from any origin and with
    /// any gaps; a retransmission in TCP has the position of its data.
    pub const fn new(position: u64) -> Self {
        Self(position)
    }
    /// Returns the position as a number, for comparison with another position only.
    pub const fn position(self) -> u64 {
        self.0
    }
}

/// A signed decimal number in millionths, for parameters such as a threshold of 0.26.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fixed(pub i64);

impl Fixed {
    /// The number 1, in millionths.
    pub const ONE: i64 = 1_000_000;

    /// Returns a number of `m` thousandths.
    pub const fn milli(m: i64) -> Self {
        Self(m * 1000)
    }
    /// Returns `part / whole`, rounded down; zero if `whole` is zero.
    pub fn ratio(part: Bytes, whole: Bytes) -> Self {
        if whole.0 == 0 {
            return Self(0);
        }
        Self(i64::try_from(mul_div(part.0, Self::ONE as u64, whole.0)).unwrap_or(i64::MAX))
    }
    /// Returns the number as a float, for output. Algorithms compute in integers.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::ONE as f64
    }
    /// Parses decimal notation with at most six decimal places, such as `-1.25`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (whole, places) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(places) || places.len() > 6 {
            return None;
        }
        let scale = 10_i64.pow(6 - places.len() as u32);
        let whole = whole.parse::<i64>().ok()?.checked_mul(Self::ONE)?;
        Some(Self(sign * whole.checked_add(places.parse::<i64>().ok()? * scale)?))
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

macro_rules! amounts {
    ($($t:ident),*) => {$(
        impl Add for $t {
            type Output = Self;
            fn add(self, o: Self) -> Self { Self(self.0.saturating_add(o.0)) }
        }
        impl AddAssign for $t {
            fn add_assign(&mut self, o: Self) { *self = *self + o; }
        }
        impl Sub for $t {
            type Output = Self;
            fn sub(self, o: Self) -> Self { Self(self.0.saturating_sub(o.0)) }
        }
        impl SubAssign for $t {
            fn sub_assign(&mut self, o: Self) { *self = *self - o; }
        }
        impl Mul<u64> for $t {
            type Output = Self;
            fn mul(self, k: u64) -> Self { Self(self.0.saturating_mul(k)) }
        }
        impl Div<u64> for $t {
            type Output = Self;
            fn div(self, k: u64) -> Self { Self(self.0 / k.max(1)) }
        }
        impl Sum for $t {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self { all.fold(Self(0), |a, b| a + b) }
        }
    )*};
}
amounts!(Bytes, Span);

/// Returns the integer cube root, rounded down.
pub fn cube_root(x: u64) -> u64 {
    (0..22).rev().fold(0, |r, bit| {
        let t = r | 1 << bit;
        if u128::from(t) * u128::from(t) * u128::from(t) <= u128::from(x) { t } else { r }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_products_agree() {
        let rate = Rate(144_000_000);
        assert_eq!(rate.over(Span::millis(600)), Bytes(10_800_000));
        assert_eq!(rate.time_for(Bytes(10_800_000)), Span::millis(600));
        assert_eq!(Rate::new(Bytes(10_800_000), Span::millis(600)), Some(rate));
        assert_eq!(Rate::new(Bytes(1), Span::ZERO), None);
        assert_eq!(Rate(0).time_for(Bytes(1)), Span::MAX);
    }

    #[test]
    fn durations_convert_both_ways_and_saturate() {
        use core::time::Duration;
        assert_eq!(Span::from(Duration::new(3, 7)), Span(3_000_000_007));
        assert_eq!(Duration::from(Span(3_000_000_007)), Duration::new(3, 7));
        assert_eq!(Span::from(Duration::MAX), Span::MAX);
    }

    #[test]
    fn subtraction_saturates_at_zero() {
        assert_eq!(Bytes(3) - Bytes(5), Bytes::ZERO);
        assert_eq!(Instant(3).since(Instant(5)), Span::ZERO);
    }

    #[test]
    fn fixed_reads_decimals_and_nothing_else() {
        for (text, want) in [
            ("0.26", Some(260_000)),
            ("-1.5", Some(-1_500_000)),
            ("16", Some(16_000_000)),
            ("", None),
            (".5", None),
            ("1e3", None),
            ("0.1234567", None),
            ("--1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(Fixed::parse(text).map(|f| f.0), want, "{text:?}");
        }
    }

    #[test]
    fn cube_roots_are_exact() {
        for r in [1_u64, 2, 3, 7, 10, 99, 1000, 123_456, 2_642_244, 2_642_245] {
            let cube = r * r * r;
            assert_eq!(cube_root(cube), r);
            assert_eq!(cube_root(cube - 1), r - 1);
            assert_eq!(cube_root(cube + 1), r);
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }
}
