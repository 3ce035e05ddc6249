//! The queue of one processor: a ring of slots and the `next` slot before it.
//!
//! ```text
//!   next            takes precedence; the one who leaves through it inherits the time slice
//!   [ G ]
//!             head                     tail
//!              ▼                        ▼
//!   [   ][   ][ G ][ G ][ G ][ G ][ G ][   ][   ]      index modulo SLOTS
//!     ▲        │                        ▲
//!     │        └─ pop (owner), steal    └─ push_back (owner)
//!     └─ push_front (owner)
//! ```
//!
//! One thread at a time is the owner and holds the [`Owner`]; all others may look and steal.
//! Go's counterparts are `p.runq`, `p.runqhead`, `p.runqtail` and `p.runnext`.
//!
//! Invariants
//! * I1. `tail - head`, modulo 2^32, is the number of tokens in the ring, at most [`SLOTS`].
//! * I2. Slots from `head` up to `tail` are filled. All other slots are free, whatever they hold;
//!   only the owner writes slots, and only free ones.
//! * I3. Only the owner stores `tail`. `head` moves by compare-exchange of the whole word, so
//!   that whoever moves it past a slot has that slot's token alone.
//! * I4. The same `head` word never comes back while somebody could still remember it:
//!   `push_front`, the only step backwards, raises the count in the word's other half.
//! * I5. Only the owner fills `next`, by swap; whoever gets it out by swap or compare-exchange has
//!   the token alone.
//! * I6. While a ring is its owner's alone there are no thieves, and a load and a store are as good as
//!   the swaps and compare-exchanges of I3 and I5.
//!
//! Edges, each named at both ends: `slot-handover`, `front-handover`, `next-handover` (a token and
//! all that was written before it was put), `slot-reuse` (a thief's reads before the owner's next
//! write), `next-moved` (what `is_empty` relies on). The proofs are in `ring/README.md`, the models
//! in `tests/loom_ring.rs`.
//!
//! A type-level promise: tokens come out with the lifetimes with which they went in.
//! ```compile_fail
//! fn shorten<'a>(ring: &'a gosched_runq::Ring<&'static ()>) -> &'a gosched_runq::Ring<&'a ()> {
//!     ring
//! }
//! ```
//!
//! Rejected: a plain 32-bit head as in Go. Without `push_front` it only grows, and that is enough;
//! with it, pop and `push_front` of another token bring the same index back in nanoseconds.
//! Rejected: the head on a line of its own. The owner changes head and tail in turn and whoever
//! looks reads both, so that two lines travel instead of one: a push and a pop took 89 instead of
//! 62 ns beside a thread that asks `is_empty` without pause, 114 instead of 80 beside one that
//! steals, and the same when left alone.

mod head;

mod owner;

mod thief;

pub use self::{
    owner::{Full, Overflow, Owner, Popped},
    thief::Seen,
};

use std::{cell::Cell, fmt, marker::PhantomData, ptr};

use gosched_base::CachePadded;

use self::head::Head;
use crate::sync::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, const_unless_modelled, null_pointers,
    spin_loop,
};

/// How many tokens fit into a ring. Models shrink it, which changes no code path.
pub const SLOTS: usize = if cfg!(loom) { 4 } else { 256 };

/// How many tokens a full ring gives away besides the one that did not fit.
pub const HALF: usize = SLOTS / 2;

const _: () = assert!(SLOTS.is_power_of_two(), "indices wrap at 2^32 and must go on modulo SLOTS");

/// The queue of one processor: a ring of [`SLOTS`] tokens and the `next` slot before it.
///
/// Everybody may look and steal; all else is the [`Owner`]'s. Go's `p.runq` and `p.runnext`, with
/// `push_front` added.
///
/// # Examples
/// ```
/// # use std::ptr::NonNull;
/// # use gosched_runq::{Link, Linked, Popped, Ring, Token};
/// # struct Node { link: Link, id: u32 }
/// # #[derive(Clone, Copy)]
/// # struct Task(&'static Node);
/// # // SAFETY: the pointer is that of a `&'static Node`, and comes back as one.
/// # unsafe impl Token for Task {
/// #     fn into_ptr(self) -> NonNull<()> { NonNull::from(self.0).cast() }
/// #     // SAFETY: by the trait's contract the pointer came from `into_ptr`.
/// #     unsafe fn from_ptr(ptr: NonNull<()>) -> Task { Task(unsafe { ptr.cast().as_ref() }) }
/// # }
/// # // SAFETY: each node has a link of its own.
/// # unsafe impl Linked for Task { fn link(&self) -> &Link { &self.0.link } }
/// # let task = |id| Task(Box::leak(Box::new(Node { link: Link::new(), id })));
/// let (ring, other) = (Ring::new(), Ring::new());
/// // SAFETY: these are the only owners.
/// let (mut owner, mut thief) = unsafe { (ring.owner(), other.owner()) };
///
/// owner.push_back(task(1)).unwrap();
/// owner.push_back(task(2)).unwrap();
/// owner.push_next(task(3));
///
/// assert_eq!(ring.steal_half(&mut thief).unwrap().0.id, 1);
/// assert!(matches!(owner.pop(), Some(Popped::Next(t)) if t.0.id == 3));
/// assert!(matches!(owner.pop(), Some(Popped::Ring(t)) if t.0.id == 2));
/// assert!(ring.is_empty());
/// ```
#[repr(C)]
pub struct Ring<T> {
    /// Where tokens are put and taken. All that changes is on one cache line.
    ends: CachePadded<Ends>,
    /// The ring. Written by: owner, while free (I2). Read by: owner, thieves.
    slots: [AtomicPtr<()>; SLOTS],
    /// Invariant in `T`: tokens come out as they went in, with the same lifetimes.
    tokens: PhantomData<Cell<T>>,
}

/// The words that say where the tokens are.
struct Ends {
    /// Where both sides take; see [`Head`]. Written by: owner, thieves. Read by: anyone.
    head: AtomicU64,
    /// One past the last filled slot. Written by: owner. Read by: anyone.
    tail: AtomicU32,
    /// How often `next` was filled, modulo 2^32. Written by: owner. Read by: thieves, to tell
    /// whether the token they saw a while ago has been out in the meantime.
    next_fills: AtomicU32,
    /// The token to run next, or null. Written by: owner; thieves to empty it. Read by: anyone.
    next: AtomicPtr<()>,
    /// Whether there are no thieves (I6). Written by: whoever sees to that. Read by: owner.
    is_owners_alone: AtomicBool,
}

// Thieves and observers read the ends again and again; the slots they read only to take them. So
// the slots, which the owner writes and reads, share no line with the ends, nor do two rings.
#[cfg(not(loom))]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Ends>() <= 64 && offset_of!(Ring<()>, ends) == 0);
    assert!(offset_of!(Ring<()>, slots) == 128);
    assert!(size_of::<Ring<()>>() == 128 + SLOTS * size_of::<usize>());
    assert!(align_of::<Ring<()>>() == 128);
};

// SAFETY: a ring is a set of tokens; who owns the ring may send them.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: whoever shares the ring can take tokens out of it, hence `Send`; references to one token
// on two threads are not made, hence no `Sync`. All fields are atomics.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    const_unless_modelled! {
        /// An empty ring.
        #[inline]
        pub fn new() -> Ring<T> {
            Ring::starting_at(0)
        }
    }

    const_unless_modelled! {
        /// An empty ring whose indices start at `index`, for tests of their wrap-around.
        #[doc(hidden)]
        #[inline]
        pub fn starting_at(index: u32) -> Ring<T> {
            Ring {
                ends: CachePadded::new(Ends {
                    head: AtomicU64::new(Head::at(index).word()),
                    tail: AtomicU32::new(index),
                    next_fills: AtomicU32::new(0),
                    next: AtomicPtr::new(ptr::null_mut()),
                    is_owners_alone: AtomicBool::new(false),
                }),
                slots: null_pointers(),
                tokens: PhantomData,
            }
        }
    }

    /// The owner's side of the ring.
    ///
    /// # Safety
    /// * No other `Owner` of this ring is used until the returned one is dropped.
    /// * What earlier owners did happens before this call.
    #[inline]
    pub unsafe fn owner(&self) -> Owner<'_, T> {
        Owner::new(self)
    }

    /// Says whether there are no thieves from now on, so that the owner needs no read-modify-writes,
    /// which are a tenth of a switch. Others may still look.
    ///
    /// # Safety
    /// * No `Owner` of this ring is used, and nobody steals, until this returns; what they do later
    ///   happens after it.
    /// * Nobody steals from the ring until this is called with false.
    #[inline]
    pub unsafe fn set_owners_alone(&self, is_owners_alone: bool) {
        // Relaxed: by the caller, all that depends on it happens after it.
        self.ends.is_owners_alone.store(is_owners_alone, Ordering::Relaxed);
    }

    /// How many tokens the ring and `next` hold together.
    ///
    /// Exact for the owner while nobody steals; to anyone else, a value it had at some time.
    #[inline]
    pub fn len(&self) -> usize {
        loop {
            let (head, tail) = self.snapshot();
            let filled = tail.wrapping_sub(head.index()) as usize;
            if filled <= SLOTS {
                return filled + usize::from(!self.load_next().is_null());
            }
            spin_loop();
        }
    }

    /// Whether neither the ring nor `next` holds a token. Go's `runqempty`.
    ///
    /// A token that its owner displaces from `next` into the ring is never missed: there is another
    /// one in `next` while it moves, and when the owner takes that one too, the ring has changed.
    /// A token in the hands of a thief or of the owner is in no queue and is not counted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        loop {
            let (head, tail) = self.snapshot();
            if head.index() != tail || !self.load_next().is_null() {
                return false;
            }
            if self.is_unchanged(head, tail) {
                return true;
            }
            spin_loop();
        }
    }

    /// Whether the ring itself holds no token, whatever is in `next`. A hint to all but the owner: a
    /// token that is displaced from `next` is in neither for a moment.
    #[inline]
    pub fn has_none_behind_next(&self) -> bool {
        let (head, tail) = self.snapshot();
        head.index() == tail
    }

    /// Whether `next` holds a token. A hint to all but the owner.
    #[inline]
    pub fn has_next(&self) -> bool {
        !self.load_next().is_null()
    }

    /// Whether nothing has been put into the ring or taken out since `head` and `tail` were read.
    #[inline]
    fn is_unchanged(&self, head: Head, tail: u32) -> bool {
        // Relaxed: that these reads are not older than the one of `next` is what the edge
        // `next-moved` is for.
        head.word() == self.ends.head.load(Ordering::Relaxed)
            && tail == self.ends.tail.load(Ordering::Relaxed)
    }

    /// Head and tail, read in this order. `tail` is never behind `head`; it may be more than
    /// [`SLOTS`] ahead of it if the head has moved in between.
    #[inline]
    fn snapshot(&self) -> (Head, u32) {
        // ORDERING: pairs with the compare-exchanges of `head` (edge `front-handover`); makes the
        // slot that `push_front` wrote visible, and every `tail` that whoever moved the head saw.
        let head = Head::of(self.ends.head.load(Ordering::Acquire));
        // ORDERING: pairs with `Owner::publish` (edge `slot-handover`); makes the slots before
        // `tail` visible, and what was written before their tokens were pushed.
        let tail = self.ends.tail.load(Ordering::Acquire);
        (head, tail)
    }

    /// The word in `next`.
    #[inline]
    fn load_next(&self) -> *mut () {
        // ORDERING: pairs with `Owner::push_next` and `Owner::pop_next` (edge `next-moved`); makes
        // every `tail` visible that the owner stored before it changed `next`.
        self.ends.next.load(Ordering::Acquire)
    }

    /// The slot of `index`.
    #[inline]
    fn slot(&self, index: u32) -> &AtomicPtr<()> {
        &self.slots[index as usize % SLOTS]
    }
}

impl<T> Default for Ring<T> {
    #[inline]
    fn default() -> Ring<T> {
        Ring::new()
    }
}

impl<T> fmt::Debug for Ring<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("len", &self.len()).finish_non_exhaustive()
    }
}
