//! Named streams of random integers.
//!
//! Every user of random numbers has a stream of its own, found by name, so that a new one leaves the others'
//! numbers as they were. The generator is `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom
//! number generators, OOPSLA 2014) read as a function of its counter; a stream is that function with a
//! counter inside.

use slowstart::units::Span;

/// The increment of `SplitMix64`: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the `n`th random number of `seed`, uniform over all of `u64`. For values that are a function of
/// time, which may be needed in any order.
#[inline]
pub const fn at(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(GOLDEN));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Maps a random number to `0..n` (to 0 if `n` is 0). Its bias is n / 2^64 at most.
#[inline]
pub const fn scale(random: u64, n: u64) -> u64 {
    ((random as u128 * n as u128) >> 64) as u64
}

/// The name of a stream, made of parts without a string.
#[derive(Copy, Clone, Debug)]
pub struct Name(u64);

impl Name {
    /// A name that is this text.
    pub fn new(text: &str) -> Self {
        Self(0xcbf2_9ce4_8422_2325).text(text)
    }

    /// This name with a text after it.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        text.bytes().fold(self, Self::byte)
    }

    /// This name with a decimal number after it.
    #[must_use]
    pub fn number(self, n: usize) -> Self {
        let before = if n < 10 { self } else { self.number(n / 10) };
        before.byte(b'0' + (n % 10) as u8)
    }

    /// FNV-1a distinguishes names.
    fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    key: u64,
    drawn: u64,
}

impl Stream {
    /// Returns the stream of this name for this seed, the same on every machine.
    pub fn named(seed: u64, name: &str) -> Self {
        Self::of(seed, Name::new(name))
    }

    /// The same for a name in parts.
    pub fn of(seed: u64, name: Name) -> Self {
        // One step of the generator spreads (seed, name) over all keys.
        Self { key: at(at(seed, 0) ^ name.0, 0), drawn: 0 }
    }

    /// Returns any `u64`, all equally likely.
    #[inline]
    pub fn any(&mut self) -> u64 {
        self.drawn += 1;
        at(self.key, self.drawn - 1)
    }

    /// Returns a number uniform in `0..n`; 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        scale(self.any(), n)
    }

    /// Returns true with this probability, in millionths.
    #[inline]
    pub fn chance(&mut self, millionths: u32) -> bool {
        self.below(1_000_000) < u64::from(millionths)
    }

    /// Returns a number uniform in (0, 1], in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.any() >> 11) + 1) as f64 / 9_007_199_254_740_992.0
    }

    /// Returns an exponential number of mean 1; at most 37.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    /// Returns an exponential time of this mean, at most 37 means.
    pub fn exponential_span(&mut self, mean: Span) -> Span {
        Span((self.exponential() * mean.0 as f64) as u64)
    }

    /// Returns a normal number of mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }

    /// Returns a time uniform in `0..=max`.
    pub fn uniform_span(&mut self, max: Span) -> Span {
        Span(self.below(max.0.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_generator() {
        // First outputs of SplitMix64 from state 1234567, as listed with its reference implementation.
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|n| at(1_234_567, n)), first);
    }

    #[test]
    fn names_and_seeds_make_streams_apart() {
        let take = |seed, name| {
            let mut s = Stream::named(seed, name);
            [s.any(), s.any(), s.any()]
        };
        assert_eq!(take(1, "forward.loss"), take(1, "forward.loss"));
        assert_ne!(take(1, "forward.loss"), take(2, "forward.loss"));
        assert_ne!(take(1, "forward.loss"), take(1, "back.loss"));
    }

    #[test]
    fn a_name_in_parts_is_the_whole_name() {
        for n in [0, 9, 10, 1_234_567, usize::MAX] {
            let parts = Name::new("flow").number(n).text(".app");
            let whole = format!("flow{n}.app");
            assert_eq!(Stream::of(7, parts).any(), Stream::named(7, &whole).any(), "{whole}");
        }
    }

    #[test]
    fn draws_are_uniform_and_in_range() {
        let mut s = Stream::named(7, "test");
        let mut seen = [0_u32; 10];
        for _ in 0..100_000 {
            seen[s.below(10) as usize] += 1;
        }
        // Five standard deviations of a binomial (100000, 1/10): 474.
        assert!(seen.iter().all(|n| n.abs_diff(10_000) < 474), "{seen:?}");
        assert_eq!(s.below(0), 0);
        assert!((0..1000).all(|_| s.uniform_span(Span(3)) <= Span(3)));
        assert!((0..1000).all(|_| !s.chance(0) && s.chance(1_000_000)));
    }
}
