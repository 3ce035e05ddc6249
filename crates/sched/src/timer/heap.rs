//! The heap of a processor's timers: the earliest is at hand.
//!
//! It has four children a node: fewer levels, one cache line of children. (As Go's, whose children
//! lie in two lines.)
//!
//! What stands in it is a time and the address of a [`Hook`]. A hook that may have to leave early
//! knows its place; one that stays until its time comes does not, since keeping it up to date costs
//! a cache miss for every entry that moves.

use crate::rt::Cell;
use crate::slab;
use std::ptr;

const ARITY: usize = 4;
/// Room left before the first entry, so that the children of each are one cache line.
const BEFORE: usize = ARITY - 1;
const _: () = assert!(cfg!(loom) || size_of::<Entry>() * ARITY == 64);

/// What a timer's record has for its heap.
pub(crate) struct Hook {
    pub(crate) kind: Kind,
    /// Its place. Guarded by: the heap's lock.
    index: Cell<usize>,
}

/// What lies around a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A waiter's record, on its stack.
    Waiter,
    /// An alarm.
    Alarm,
}

impl Hook {
    crate::rt::const_unless_modelled! {
        pub(crate) fn new(kind: Kind) -> Hook {
            Hook { kind, index: Cell::new(usize::MAX) }
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) when: u64,
    hook: TaggedHook,
}

/// The address of a hook; the lowest bit is set if it is not told its place.
#[derive(Clone, Copy)]
struct TaggedHook(*const Hook);

const STAYS: usize = 1;

impl Entry {
    /// One that may be removed or moved.
    pub(super) fn new(when: u64, hook: *const Hook) -> Entry {
        Entry { when, hook: TaggedHook(hook) }
    }

    /// One that stays until it is the first.
    pub(super) fn that_stays(when: u64, hook: *const Hook) -> Entry {
        Entry { when, hook: TaggedHook(hook.map_addr(|address| address | STAYS)) }
    }

    /// Whether it stays until it is the first.
    #[inline]
    pub(super) fn stays(self) -> bool {
        self.hook.0.addr() & STAYS != 0
    }

    #[inline]
    pub(super) fn hook(self) -> *const Hook {
        self.hook.0.map_addr(|address| address & !STAYS)
    }
}

/// Entries by deadline, in memory of our own: the heap grows inside the runtime.
pub(super) struct Heap {
    entries: *mut Entry,
    len: usize,
    /// How many there is room for, with those before the first.
    capacity: usize,
}

// SAFETY: the heap's memory is its own, and hooks are used under its lock.
unsafe impl Send for Heap {}

impl Heap {
    pub(super) const fn new() -> Heap {
        Heap { entries: ptr::null_mut(), len: 0, capacity: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        (self.len > 0).then(|| self.get(0))
    }

    #[inline]
    fn get(&self, i: usize) -> Entry {
        debug_assert!(i < self.len);
        // SAFETY: below `len`.
        unsafe { self.place(i).read() }
    }

    #[inline]
    fn place(&self, i: usize) -> *mut Entry {
        self.entries.wrapping_add(BEFORE + i)
    }

    #[inline]
    fn put(&mut self, i: usize, entry: Entry) {
        // SAFETY: callers stay below the capacity.
        unsafe { self.place(i).write(entry) };
        if !entry.stays() {
            // SAFETY: what stands in the heap is alive, by `push`.
            unsafe { &*entry.hook.0 }.index.set(i);
        }
    }

    /// # Safety
    /// * The hook stays where it is until it was popped or removed.
    pub(super) unsafe fn push(&mut self, entry: Entry) {
        if BEFORE + self.len >= self.capacity {
            self.grow();
        }
        self.len += 1;
        self.sift_up(self.len - 1, entry);
    }

    pub(super) fn pop(&mut self) {
        self.remove_at(0);
    }

    /// Removes the entry of `hook`, which is in this heap and knows its place.
    pub(super) fn remove(&mut self, hook: &Hook) {
        self.remove_at(hook.index.get());
    }

    /// Gives the entry of `hook`, which is in this heap and knows its place, an earlier time. False:
    /// it is later, and nothing was changed.
    pub(super) fn advance(&mut self, hook: &Hook, when: u64) -> bool {
        let i = hook.index.get();
        let entry = self.get(i);
        let is_earlier = when < entry.when;
        if is_earlier {
            self.sift_up(i, Entry { when, ..entry });
        }
        is_earlier
    }

    /// Gives the first entry a later time.
    pub(super) fn delay_first(&mut self, when: u64) {
        let first = self.get(0);
        self.sift_down(0, Entry { when, ..first });
    }

    fn remove_at(&mut self, i: usize) {
        self.len -= 1;
        if i == self.len {
            return;
        }
        // SAFETY: the old last one, below the capacity.
        let last = unsafe { self.place(self.len).read() };
        if i > 0 && last.when < self.get((i - 1) / ARITY).when {
            self.sift_up(i, last);
        } else {
            self.sift_down(i, last);
        }
    }

    fn sift_up(&mut self, mut i: usize, entry: Entry) {
        while i > 0 {
            let parent = (i - 1) / ARITY;
            let above = self.get(parent);
            if above.when <= entry.when {
                break;
            }
            self.put(i, above);
            i = parent;
        }
        self.put(i, entry);
    }

    fn sift_down(&mut self, mut i: usize, entry: Entry) {
        while let Some((child, below)) = self.least_child(i) {
            if entry.when <= below.when {
                break;
            }
            self.put(i, below);
            i = child;
        }
        self.put(i, entry);
    }

    fn least_child(&self, i: usize) -> Option<(usize, Entry)> {
        let first = ARITY * i + 1;
        let last = (first + ARITY).min(self.len);
        (first..last).map(|c| (c, self.get(c))).min_by_key(|(_, e)| e.when)
    }

    /// Doubles the room. Without malloc: this runs inside the runtime. Pages move without being
    /// copied: whoever arms a timer meanwhile waits for the lock.
    #[cold]
    fn grow(&mut self) {
        let capacity = (self.capacity * 2).max(4096 / size_of::<Entry>());
        let bytes = capacity * size_of::<Entry>();
        let entries = if self.capacity == 0 {
            slab::map(bytes)
        } else {
            // SAFETY: mapped by an earlier call, with that size, and only used through `self`.
            unsafe { slab::remap(self.entries.cast(), self.capacity * size_of::<Entry>(), bytes) }
        };
        (self.entries, self.capacity) = (entries.cast(), capacity);
    }
}

#[cfg(all(test, not(loom)))]
#[path = "heap/tests.rs"]
mod tests;
