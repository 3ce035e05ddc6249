//! What a trace has said last of each goroutine and processor, in one word that its owner has.

use super::FIRST;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What was last said of a goroutine or a processor.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) generation: u64,
    pub(super) status: u64,
    pub(super) seq: u64,
}

const STATUS_SHIFT: u32 = 28;

impl Word {
    #[inline]
    pub(super) fn read(word: &AtomicU64) -> Word {
        // ORDERING: Relaxed; handed over with what it belongs to.
        let bits = word.load(Relaxed);
        let low = bits as u32;
        let (status, seq) = (low >> STATUS_SHIFT, low & ((1 << STATUS_SHIFT) - 1));
        Word { generation: bits >> 32, status: status.into(), seq: seq.into() }
    }

    #[inline]
    pub(super) fn write(self, word: &AtomicU64) {
        // ORDERING: Relaxed; as above.
        word.store(self.generation << 32 | self.status << STATUS_SHIFT | self.seq, Relaxed);
    }

    /// Whether it was named in this trace.
    pub(super) fn is_known(self) -> bool {
        // ORDERING: Relaxed; written before the trace began.
        self.generation != 0 && self.generation >= u64::from(FIRST.load(Relaxed))
    }
}
