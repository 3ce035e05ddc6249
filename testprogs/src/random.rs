//! Random numbers that a seed repeats.

/// xorshift64*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One of 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.bits() >> 33) % bound
    }

    /// Another one, for a goroutine.
    pub fn fork(&mut self) -> Random {
        Random::new(self.bits())
    }
}
