//! Where the messages of a channel lie: a ring, a chain of blocks, or nowhere.
//!
//! The channel counts them; a store only knows its ends. Moving a message is a copy of its bytes,
//! and memory is got and given back by the caller, outside the lock (see [`Spare`]).

use crate::rt::rt_abort;
use std::mem::MaybeUninit;
use std::ptr;

pub(crate) enum Store<T> {
    /// Messages go from stack to stack.
    None,
    Ring(Ring<T>),
    Blocks(Blocks<T>),
}

/// A fixed number of slots.
pub(crate) struct Ring<T> {
    slots: Box<[MaybeUninit<T>]>,
    head: usize,
}

/// Blocks of slots, linked from the oldest to the newest.
pub(crate) struct Blocks<T> {
    head: *mut Block<T>,
    tail: *mut Block<T>,
    head_index: usize,
    tail_index: usize,
    /// An empty block, kept so that a channel in balance allocates nothing.
    spare: *mut Block<T>,
}

const SLOTS: usize = 32;

/// A link of [`Blocks`].
pub(crate) struct Block<T> {
    next: *mut Block<T>,
    slots: [MaybeUninit<T>; SLOTS],
}

/// Blocks on their way into or out of a store, owned by the caller, who is outside the lock when it
/// makes or drops them.
pub(crate) struct Spare<T>(*mut Block<T>);

impl<T> Spare<T> {
    #[inline(always)]
    pub(crate) const fn none() -> Spare<T> {
        Spare(ptr::null_mut())
    }

    #[cold]
    pub(crate) fn fill(&mut self) {
        let block = Box::into_raw(Box::<Block<T>>::new_uninit()).cast::<Block<T>>();
        self.put(block);
    }

    fn put(&mut self, block: *mut Block<T>) {
        // SAFETY: the block is the caller's, and its links are only used through raw pointers.
        unsafe { (*block).next = self.0 };
        self.0 = block;
    }

    fn take(&mut self) -> *mut Block<T> {
        let block = self.0;
        if !block.is_null() {
            // SAFETY: the first of the chain.
            self.0 = unsafe { (*block).next };
        }
        block
    }
}

impl<T> Drop for Spare<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.0.is_null() {
            free_blocks(self.0);
        }
    }
}

#[cold]
fn free_blocks<T>(mut first: *mut Block<T>) {
    while !first.is_null() {
        // SAFETY: blocks come from boxes, in `fill`, and their slots need no drop.
        let block = unsafe { Box::from_raw(first.cast::<MaybeUninit<Block<T>>>()) };
        // SAFETY: `next` is initialised, in `put` or `append`.
        first = unsafe { (*block.as_ptr()).next };
    }
}

/// There is no block for another message.
pub(crate) struct NeedsBlock;

impl<T> Store<T> {
    pub(crate) fn ring(capacity: usize) -> Store<T> {
        Store::Ring(Ring { slots: Box::new_uninit_slice(capacity), head: 0 })
    }

    pub(crate) fn blocks() -> Store<T> {
        Store::Blocks(Blocks {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            head_index: 0,
            tail_index: 0,
            spare: ptr::null_mut(),
        })
    }

    /// Copies the message at `from` in, behind the `len` messages that are here.
    ///
    /// # Safety
    /// * `from` holds a message, which moves if this succeeds.
    /// * `len` is the number of messages, and less than a ring's capacity.
    #[inline]
    pub(crate) unsafe fn push(
        &mut self,
        len: usize,
        from: *const T,
        spare: &mut Spare<T>,
    ) -> Result<(), NeedsBlock> {
        let slot = match self {
            Store::Ring(ring) => ring.slot_after(len),
            Store::Blocks(blocks) => blocks.next_slot(spare)?,
            Store::None => rt_abort!("a channel without a buffer stores nothing"),
        };
        // SAFETY: `slot` is a free one of ours; `from` by the caller.
        unsafe { slot.copy_from_nonoverlapping(from, 1) };
        Ok(())
    }

    /// Copies the oldest message out to `to`.
    ///
    /// # Safety
    /// * There is a message, and `to` has room for it.
    #[inline]
    pub(crate) unsafe fn pop(&mut self, to: *mut T, spare: &mut Spare<T>) {
        match self {
            Store::Ring(ring) => {
                let slot = ring.slots[ring.head].as_ptr();
                // SAFETY: the oldest message's slot; `to` by the caller.
                unsafe { to.copy_from_nonoverlapping(slot, 1) };
                ring.head = if ring.head + 1 == ring.slots.len() { 0 } else { ring.head + 1 };
            }
            // SAFETY: by the caller.
            Store::Blocks(blocks) => unsafe { blocks.pop(to, spare) },
            Store::None => rt_abort!("a channel without a buffer stores nothing"),
        }
    }
}

impl<T> Ring<T> {
    #[inline]
    fn slot_after(&mut self, len: usize) -> *mut T {
        let capacity = self.slots.len();
        let index = self.head + len;
        self.slots[if index >= capacity { index - capacity } else { index }].as_mut_ptr()
    }
}

/// # Safety
/// * `block` is a block, and `index` less than `SLOTS`.
#[inline(always)]
unsafe fn slot<T>(block: *mut Block<T>, index: usize) -> *mut T {
    debug_assert!(index < SLOTS);
    // SAFETY: by the caller.
    unsafe { &raw mut (*block).slots }.cast::<T>().wrapping_add(index)
}

impl<T> Blocks<T> {
    #[inline]
    fn next_slot(&mut self, spare: &mut Spare<T>) -> Result<*mut T, NeedsBlock> {
        if self.tail.is_null() || self.tail_index == SLOTS {
            self.append(spare)?;
        }
        let index = self.tail_index;
        self.tail_index += 1;
        // SAFETY: the tail is a block of ours, and `index` is below its number of slots.
        Ok(unsafe { slot(self.tail, index) })
    }

    fn append(&mut self, spare: &mut Spare<T>) -> Result<(), NeedsBlock> {
        let mut block = std::mem::replace(&mut self.spare, ptr::null_mut());
        if block.is_null() {
            block = spare.take();
        }
        if block.is_null() {
            return Err(NeedsBlock);
        }
        // SAFETY: a block that was nobody's but the spare's, and is ours now.
        unsafe { (*block).next = ptr::null_mut() };
        if self.tail.is_null() {
            (self.head, self.head_index) = (block, 0);
        } else {
            // SAFETY: a block of ours, used under the channel's lock.
            unsafe { (*self.tail).next = block };
        }
        (self.tail, self.tail_index) = (block, 0);
        Ok(())
    }

    /// # Safety
    /// * As for [`Store::pop`].
    #[inline]
    unsafe fn pop(&mut self, to: *mut T, spare: &mut Spare<T>) {
        if self.head_index == SLOTS {
            self.retire_head(spare);
        }
        // SAFETY: there is a message, so the head is a block of ours with a slot for it.
        let slot = unsafe { slot(self.head, self.head_index) };
        // SAFETY: the oldest message's slot; `to` by the caller.
        unsafe { to.copy_from_nonoverlapping(slot, 1) };
        self.head_index += 1;
        if self.head == self.tail && self.head_index == self.tail_index {
            (self.head_index, self.tail_index) = (0, 0);
        }
    }

    /// Goes on to the next block, which a message beyond this one implies.
    fn retire_head(&mut self, spare: &mut Spare<T>) {
        let empty = self.head;
        // SAFETY: a block of ours.
        let next = unsafe { (*empty).next };
        (self.head, self.head_index) = (next, 0);
        if self.spare.is_null() {
            // SAFETY: as above; it is out of the chain.
            unsafe { (*empty).next = ptr::null_mut() };
            self.spare = empty;
        } else {
            spare.put(empty);
        }
    }
}

impl<T> Drop for Blocks<T> {
    /// Frees the blocks; the messages were taken out before.
    fn drop(&mut self) {
        free_blocks(self.head);
        free_blocks(self.spare);
    }
}
