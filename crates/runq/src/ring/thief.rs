//! What anyone may do to a ring: take half of it, or, after a grace period, what is in `next`.

use std::{fmt, ptr};

use super::{Head, Owner, Ring, SLOTS};
use crate::{
    sync::{Ordering, spin_loop},
    token::{Token, token_of},
};

/// What a thief saw in `next`, to be stolen later if it is still there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    word: *mut (),
    fills: u32,
}

impl<T: Token> Ring<T> {
    /// Takes the first half of the ring, rounded up. The last of these is returned, the others go
    /// to the end of `into`. Go's `runqsteal` without `runnext`.
    ///
    /// Fewer are taken if `into` has too little room. While the others are on their way they are
    /// in no queue, as far as third parties can tell.
    #[inline]
    pub fn steal_half(&self, into: &mut Owner<'_, T>) -> Option<T> {
        loop {
            let (head, tail) = self.snapshot();
            let filled = tail.wrapping_sub(head.index());
            if filled == 0 {
                return None;
            }
            if filled as usize > SLOTS {
                // The head has moved between the two reads, so `take_from` would fail anyway.
                spin_loop();
                continue;
            }
            let count = (filled - filled / 2).min(into.room() as u32 + 1);
            let last = self.copy(head, count - 1, into);
            if self.take_from(head, count) {
                into.publish_behind_tail(count - 1);
                // SAFETY: from `word_of` - slots are set to nothing else.
                let token = unsafe { token_of(last) };
                return Some(token.expect("a slot between head and tail is filled"));
            }
        }
    }

    /// What `next` holds now, to be passed to [`steal_next`](Ring::steal_next) after a while.
    #[inline]
    pub fn peek_next(&self) -> Option<Seen> {
        // Relaxed: a value that is too old or too new only makes `steal_next` refuse.
        let fills = self.ends.next_fills.load(Ordering::Relaxed);
        let word = self.load_next();
        (!word.is_null()).then_some(Seen { word, fills })
    }

    /// Takes the token out of `next` if it is the one that was seen, and if it has been there ever
    /// since. It doesn't inherit a time slice.
    ///
    /// A processor that readies a goroutine and is about to block runs it within a microsecond or
    /// so; a thief that took it at once would tear such pairs apart. So thieves look twice, some
    /// microseconds apart. Go compares only the goroutine, and so steals from a pair that hands
    /// the processor back and forth; here each filling of `next` counts as new.
    #[inline]
    pub fn steal_next(&self, seen: Seen) -> Option<T> {
        let ends = &self.ends;
        // Relaxed: a filling that is missed costs that token its grace period, nothing else.
        if ends.next_fills.load(Ordering::Relaxed) != seen.fills {
            return None;
        }
        // ORDERING: pairs with `Owner::push_next` (edge `next-handover`); makes what was written
        // before the push visible. A failure takes nothing, so it needs nothing.
        let (taken, otherwise) = (Ordering::Acquire, Ordering::Relaxed);
        let word = ends.next.compare_exchange(seen.word, ptr::null_mut(), taken, otherwise).ok()?;
        // SAFETY: from `word_of` - `next` holds nothing else (I5 of ring).
        unsafe { token_of(word) }
    }

    /// Copies the first `count` words from `head` on to behind the tail of `into` and returns the
    /// one after them. None of them counts until `take_from` succeeds.
    #[inline]
    fn copy(&self, head: Head, count: u32, into: &mut Owner<'_, T>) -> *mut () {
        for offset in 0..count {
            into.fill_behind_tail(offset, self.load_slot(head.index().wrapping_add(offset)));
        }
        self.load_slot(head.index().wrapping_add(count))
    }

    /// The word in the slot of `index`; anything, if the head has moved past it.
    #[inline]
    fn load_slot(&self, index: u32) -> *mut () {
        // Relaxed: `snapshot` has acquired the slots; `take_from` says if they were still filled.
        self.slot(index).load(Ordering::Relaxed)
    }

    /// Moves the head past `count` tokens; false if somebody else has moved it.
    #[inline]
    fn take_from(&self, head: Head, count: u32) -> bool {
        let (seen, taken) = (head.word(), head.advance(count).word());
        // ORDERING: pairs with `Owner::head` (edge `slot-reuse`); keeps our reads of the slots
        // before the owner's next writes to them. A failure is followed by a fresh look.
        self.ends.head.compare_exchange(seen, taken, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

impl fmt::Debug for Seen {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seen").field(&self.word).finish()
    }
}
