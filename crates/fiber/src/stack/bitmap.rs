//! Runs of set bits in a shared bitmap: how neighbouring idle slots are found.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const BITS: u32 = u64::BITS;

/// One bit a slot. ORDERING of all accesses: Relaxed, the sweep lock of `depot` guards it.
#[derive(Clone, Copy)]
pub(super) struct Bitmap {
    words: &'static [AtomicU64],
}

impl Bitmap {
    pub(super) const fn new(words: &'static [AtomicU64]) -> Self {
        Self { words }
    }

    /// Words needed for `bits` bits.
    pub(super) fn words_for(bits: u32) -> usize {
        bits.div_ceil(BITS) as usize
    }

    pub(super) fn set(&self, bit: u32) {
        let word = &self.words[(bit / BITS) as usize];
        // ORDERING: relaxed, guarded by the sweep lock.
        word.store(word.load(Relaxed) | 1 << (bit % BITS), Relaxed);
    }

    /// Clears the first run of set bits at or after `from` and returns it.
    pub(super) fn take_run(&self, from: u32) -> Option<Range<u32>> {
        let start = self.first_set(from)?;
        let end = self.first_clear(start);
        (start..end).for_each(|bit| self.clear(bit));
        Some(start..end)
    }

    fn clear(&self, bit: u32) {
        let word = &self.words[(bit / BITS) as usize];
        // ORDERING: relaxed, guarded by the sweep lock.
        word.store(word.load(Relaxed) & !(1 << (bit % BITS)), Relaxed);
    }

    fn first_set(&self, from: u32) -> Option<u32> {
        self.first_where(from, |word| word)
    }

    fn first_clear(&self, from: u32) -> u32 {
        self.first_where(from, |word| !word).unwrap_or(self.words.len() as u32 * BITS)
    }

    fn first_where(&self, from: u32, view: impl Fn(u64) -> u64) -> Option<u32> {
        let first = (from / BITS) as usize;
        let mut mask = u64::MAX << (from % BITS);
        for (index, word) in self.words.iter().enumerate().skip(first) {
            // ORDERING: relaxed, guarded by the sweep lock.
            let hits = view(word.load(Relaxed)) & mask;
            if hits != 0 {
                return Some(index as u32 * BITS + hits.trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
}
