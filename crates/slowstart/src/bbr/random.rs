//! A pseudo-random generator: the same seed gives the same numbers.

/// `SplitMix64` (Steele, Lea & Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an integer from 0 to `n` - 1, uniformly distributed; 0 if `n` is 0.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The upper half of the product: no division, and no dependence on the weaker low bits.
        ((u128::from(z) * u128::from(n)) >> 64) as u64
    }
}
