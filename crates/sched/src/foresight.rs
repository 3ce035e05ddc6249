//! Whether the next declared call will last.
//!
//! Most declared calls are over in a microsecond, so that a machine keeps its processor in name and the
//! monitor takes it if the call lasts. Where calls do last, as files on a slow disk or a hundred
//! requests to a library that sleeps, each one's successor waits for the monitor, which sees one call
//! in a look. So each processor counts how many of its calls have lasted one after the other, and after
//! two the machine hands the processor on by itself before it calls. A call that is over sooner than the
//! monitor would have seen it sets the count back.
//!
//! Go hands on at once only where the runtime knows that it waits (`entersyscallblock`).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// So many calls in a row have lasted: the next one is taken to last too.
const LASTED_MIN: u32 = 2;
/// A call that was over within this time should have kept its processor: the monitor's two looks.
pub(crate) const SHORT_NS: u64 = 50_000;

/// What the calls of a processor were like. Hints: written by anyone.
#[derive(Debug)]
pub(crate) struct Foresight {
    /// How many have lasted since the last short one, up to `LASTED_MIN`.
    lasted: AtomicU32,
}

impl Foresight {
    pub(crate) const fn new() -> Foresight {
        Foresight { lasted: AtomicU32::new(0) }
    }

    /// Whether the next call is taken to last.
    #[inline]
    pub(crate) fn says_long(&self) -> bool {
        // ORDERING: Relaxed; a hint.
        self.lasted.load(Relaxed) >= LASTED_MIN
    }

    /// A call was seen to last.
    pub(crate) fn note_long(&self) {
        // ORDERING: Relaxed for both; a hint, and a count too few delays one hand-off.
        let lasted = self.lasted.load(Relaxed);
        if lasted < LASTED_MIN {
            self.lasted.store(lasted + 1, Relaxed);
        }
    }

    /// A call was short.
    #[inline]
    pub(crate) fn note_short(&self) {
        // ORDERING: Relaxed for both; a hint.
        if self.lasted.load(Relaxed) != 0 {
            self.lasted.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Foresight;

    #[test]
    fn two_long_calls_foretell_a_third_until_a_short_one() {
        let foresight = Foresight::new();
        assert!(!foresight.says_long());
        foresight.note_long();
        assert!(!foresight.says_long());
        foresight.note_short();
        foresight.note_long();
        assert!(!foresight.says_long(), "the one before was short");
        foresight.note_long();
        assert!(foresight.says_long());
        foresight.note_long();
        foresight.note_short();
        assert!(!foresight.says_long(), "one short call is enough");
    }
}
