//! Chance that is an argument: numbers that follow from a seed.

/// `SplitMix64` (Steele, Lea & Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A whole number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The upper half of the product: no division, and no low bits that are worse than others.
        ((u128::from(z) * u128::from(n)) >> 64) as u64
    }
}
