//! What a trace has said last of each goroutine and processor, in one word that its owner has.

use super::FIRST;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was last said of a goroutine or a processor: how often it changed hands in a generation, above
/// that generation, above its status. So a count that is full begins anew and touches nothing else, and
/// a generation with a status is compared at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

const GENERATION_SHIFT: u32 = 4;
const STATUS_MASK: u64 = (1 << GENERATION_SHIFT) - 1;
const SEQ_SHIFT: u32 = GENERATION_SHIFT + u32::BITS;
const SEQ_BITS: u32 = u64::BITS - SEQ_SHIFT;

impl Word {
    /// Nothing was said.
    pub(super) const NONE: Word = Word(0);

    #[inline(always)]
    pub(super) fn new(generation: u64, status: u64) -> Word {
        Word(generation << GENERATION_SHIFT | status)
    }

    #[inline(always)]
    pub(super) fn read(word: &AtomicU64) -> Word {
        // ORDERING: Relaxed; handed over with what it belongs to.
        Word(word.load(Relaxed))
    }

    #[inline(always)]
    pub(super) fn write(self, word: &AtomicU64) {
        // ORDERING: Relaxed; as above.
        word.store(self.0, Relaxed);
    }

    #[inline(always)]
    pub(super) fn generation(self) -> u64 {
        u64::from((self.0 >> GENERATION_SHIFT) as u32)
    }

    #[inline(always)]
    pub(super) fn status(self) -> u64 {
        self.0 & STATUS_MASK
    }

    #[inline(always)]
    pub(super) fn seq(self) -> u64 {
        self.0 >> SEQ_SHIFT
    }

    /// Whether that status was said in that generation.
    #[inline(always)]
    pub(super) fn says(self, generation: u64, status: u64) -> bool {
        self.0 << SEQ_BITS == Word::new(generation, status).0 << SEQ_BITS
    }

    /// It changes hands once more.
    #[inline(always)]
    pub(super) fn next(self) -> Word {
        Word(self.0.wrapping_add(1 << SEQ_SHIFT))
    }

    #[inline(always)]
    pub(super) fn with_status(self, status: u64) -> Word {
        Word(self.0 & !STATUS_MASK | status)
    }

    /// Whether it was named in this trace.
    #[inline]
    pub(super) fn is_known(self) -> bool {
        let generation = self.generation();
        // ORDERING: Relaxed; written before the trace began.
        generation != 0 && generation >= u64::from(FIRST.load(Relaxed))
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.generation(), self.status(), self.seq())
    }
}

#[cfg(test)]
mod tests {
    use super::{SEQ_SHIFT, Word};

    #[test]
    fn parts_do_not_touch_each_other() {
        let word = Word::new(u64::from(u32::MAX), 4);
        assert_eq!((word.generation(), word.status(), word.seq()), (u64::from(u32::MAX), 4, 0));
        let last = Word(word.0 | u64::MAX << SEQ_SHIFT);
        assert_eq!(last.next(), word);
        let other = word.next().with_status(1).next();
        assert_eq!((other.generation(), other.status(), other.seq()), (u64::from(u32::MAX), 1, 2));
        assert!(other.says(u64::from(u32::MAX), 1) && last.says(u64::from(u32::MAX), 4));
        assert!(!other.says(u64::from(u32::MAX), 4) && !other.says(u64::from(u32::MAX) - 1, 1));
    }
}
