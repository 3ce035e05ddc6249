//! The head of a ring as one word: an index, and how often it was moved backwards.
//!
//! ```text
//!   63            32 31             0
//!   [   fronts     ][    index      ]
//! ```
//!
//! Whoever compare-exchanges the word with one it read earlier must fail if the head moved in the
//! meantime. Forward moves alone bring an index back after 2^32 tokens. Backward moves would bring
//! it back at once, so each of them changes `fronts` for good.

/// A head word, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(u64);

impl Head {
    /// The head of a ring that starts at `index`.
    #[inline]
    pub(super) const fn at(index: u32) -> Head {
        Head(index as u64)
    }

    /// The head that was stored as `word`.
    #[inline]
    pub(super) const fn of(word: u64) -> Head {
        Head(word)
    }

    /// The word to store.
    #[inline]
    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// The first filled slot, if any is filled.
    #[inline]
    pub(super) const fn index(self) -> u32 {
        self.0 as u32
    }

    /// The head after `count` tokens have been taken.
    #[inline]
    pub(super) const fn advance(self, count: u32) -> Head {
        Head::join(self.fronts(), self.index().wrapping_add(count))
    }

    /// The head after one token has been put before the first.
    #[inline]
    pub(super) const fn retreat(self) -> Head {
        Head::join(self.fronts().wrapping_add(1), self.index().wrapping_sub(1))
    }

    #[inline]
    const fn fronts(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    const fn join(fronts: u32, index: u32) -> Head {
        Head((fronts as u64) << 32 | index as u64)
    }
}
