//! A small pseudo-random generator.

/// Marsaglia's xorshift64* (2003, with Vigna's multiplier of 2016). Not for secrets.
///
/// ```
/// let mut rng = gosched_base::Rng::new(7);
/// assert!(rng.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose numbers depend only on `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Rng {
        // Any odd constant keeps the state from being 0, where xorshift stays.
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let mut x = self.0;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0 = x;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n` (Lemire's multiply-shift; the bias is below n / 2^32). `n` is not 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.next_u64() >> 32) * u64::from(n)) >> 32) as u32
    }
}
