//! Memory for small tasks: blocks of two sizes, kept by processors.
//!
//! A task is made by its spawner and freed by whoever joins it, with many others alive in between.
//! What malloc keeps for a thread is too little for that (seven of a size in glibc), and where
//! goroutines have thread-locals of their own it begins anew with each of them: malloc took a quarter
//! of the time of `spawn_join`.
//!
//! Magazines, after Bonwick and Adams ("Magazines and Vmem", USENIX 2001): a chain of up to
//! [`ROUNDS`] blocks goes from hand to hand as a whole. A processor takes from and gives to its
//! loaded one, and keeps a few full ones; a depot has those of all, and takes no more than
//! [`DEPOT_MAX`]. New blocks come from the global allocator, a few at a time and in user context, and
//! go back there.
//!
//! Invariants
//! * I1. A block is in one magazine, all of whose blocks are of one size, or a task's.
//! * I2. What is written into a block that is free is a [`Free`], and only its holder reads it.

use crate::machine::Inside;
use crate::no_preempt::NoPreempt;
use gosched_base::Lock;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How large a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Size {
    /// For a task with a closure of 16 bytes. With its head it is a cache line of glibc's heap: of a
    /// million at once most are in no cache, and twice the size took 20 to 60 % more time each.
    Small,
    /// For one of 80 bytes, with its head two lines.
    Large,
}

impl Size {
    const ALL: [Size; 2] = [Size::Small, Size::Large];

    /// The smallest one that `layout` fits into.
    pub(crate) const fn of(layout: Layout) -> Option<Size> {
        if layout.align() > Size::Small.layout().align() {
            return None;
        }
        match layout.size() {
            0..=56 => Some(Size::Small),
            57..=120 => Some(Size::Large),
            _ => None,
        }
    }

    pub(crate) const fn layout(self) -> Layout {
        let bytes = match self {
            Size::Small => 56,
            Size::Large => 120,
        };
        match Layout::from_size_align(bytes, 16) {
            Ok(layout) => layout,
            Err(_) => panic!("sixteen is a power of two"),
        }
    }
}

/// Blocks of a full magazine.
const ROUNDS: usize = 64;
/// Full magazines that a processor keeps beside the loaded one: a wave of a thousand tasks.
const KEPT_MAX: usize = 15;
/// Blocks that are allocated when none is at hand.
const NEW: usize = ROUNDS;
/// What glibc's heap is to have at its end: less than what makes it look for chunks to merge.
const GROWTH: usize = 60 << 10;
/// Magazines in a depot: 1 and 2 MiB.
const DEPOT_MAX: usize = 256;

/// What a free block holds.
struct Free {
    /// The next one in its magazine.
    next: *mut Free,
    /// In the first block of a magazine on a [`Stack`]: the magazine below it, and its length.
    below: *mut Free,
    count: usize,
}

/// A chain of free blocks.
struct Magazine {
    first: *mut Free,
    count: usize,
}

/// A chain of magazines that are not empty.
struct Stack {
    top: *mut Free,
    count: usize,
}

// SAFETY: a stack is a set of free blocks; who holds it holds them.
unsafe impl Send for Stack {}

/// Whether the depot was full when a processor came last with a magazine. Blocks are freed where they
/// are then, until one is taken from there: a hint.
static ARE_FULL: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
static DEPOTS: [Lock<Stack>; 2] = [const { Lock::new(Stack::EMPTY) }; 2];

impl Magazine {
    const EMPTY: Magazine = Magazine { first: ptr::null_mut(), count: 0 };

    #[inline]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.first)?;
        // SAFETY: a free block of this magazine.
        self.first = unsafe { block.as_ref() }.next;
        self.count -= 1;
        Some(block.cast())
    }

    /// # Safety
    /// * `block` has a size's layout, and is nobody's.
    #[inline]
    unsafe fn push(&mut self, block: NonNull<u8>) {
        let free = block.cast::<Free>();
        // SAFETY: the block is the caller's, large enough, and aligned.
        unsafe { free.write(Free { next: self.first, below: ptr::null_mut(), count: 0 }) };
        self.first = free.as_ptr();
        self.count += 1;
    }

    /// Gives the blocks to the allocator. User context.
    #[cold]
    fn free(mut self, size: Size) {
        while let Some(block) = self.pop() {
            // SAFETY: allocated with this layout (I1).
            unsafe { dealloc(block.as_ptr(), size.layout()) };
        }
    }
}

impl Stack {
    const EMPTY: Stack = Stack { top: ptr::null_mut(), count: 0 };

    fn pop(&mut self) -> Option<Magazine> {
        let first = self.top;
        // SAFETY: a free block on this stack, the first one of a magazine.
        let head = unsafe { first.as_ref() }?;
        self.top = head.below;
        self.count -= 1;
        Some(Magazine { first, count: head.count })
    }

    fn push(&mut self, magazine: Magazine) {
        // SAFETY: a free block of that magazine, which is the caller's.
        let Some(head) = (unsafe { magazine.first.as_mut() }) else { return };
        (head.below, head.count) = (self.top, magazine.count);
        self.top = magazine.first;
        self.count += 1;
    }
}

/// What a processor keeps.
pub(crate) struct Blocks([OfSize; 2]);

/// The blocks of one size.
struct OfSize {
    loaded: Magazine,
    kept: Stack,
}

/// A magazine that nobody has room for. Whoever gets it frees it in user context.
#[must_use = "its memory would be lost"]
pub(crate) struct Surplus(Magazine, Size);

impl Surplus {
    pub(crate) fn free(self) {
        self.0.free(self.1);
    }
}

impl Blocks {
    pub(crate) const EMPTY: Blocks =
        Blocks([const { OfSize { loaded: Magazine::EMPTY, kept: Stack::EMPTY } }; 2]);

    #[inline]
    fn take(&mut self, size: Size) -> Option<NonNull<u8>> {
        let own = &mut self.0[size as usize];
        own.loaded.pop().or_else(|| own.reload(size))
    }

    /// Keeps a block for the next task.
    ///
    /// # Safety
    /// * As for [`free`].
    #[inline]
    pub(crate) unsafe fn give(&mut self, block: NonNull<u8>, size: Size) -> Option<Surplus> {
        let own = &mut self.0[size as usize];
        let surplus = if own.loaded.count < ROUNDS { None } else { own.unload(size) };
        // SAFETY: by the caller.
        unsafe { own.loaded.push(block) };
        surplus
    }

    /// Keeps new blocks. Few do it, so they may be one magazine more than is kept of others.
    fn load(&mut self, new: Magazine, size: Size) {
        let own = &mut self.0[size as usize];
        own.kept.push(std::mem::replace(&mut own.loaded, new));
    }

    /// Everything goes to the depots, whatever there is.
    pub(crate) fn flush(&mut self) {
        for (own, depot) in self.0.iter_mut().zip(&DEPOTS) {
            let mut depot = depot.lock();
            depot.push(std::mem::replace(&mut own.loaded, Magazine::EMPTY));
            while let Some(magazine) = own.kept.pop() {
                depot.push(magazine);
            }
        }
    }
}

impl OfSize {
    #[cold]
    fn reload(&mut self, size: Size) -> Option<NonNull<u8>> {
        self.loaded = self.kept.pop().or_else(|| {
            // ORDERING: Relaxed; a hint.
            ARE_FULL[size as usize].store(false, Relaxed);
            DEPOTS[size as usize].lock().pop()
        })?;
        self.loaded.pop()
    }

    #[cold]
    fn unload(&mut self, size: Size) -> Option<Surplus> {
        let full = std::mem::replace(&mut self.loaded, Magazine::EMPTY);
        if self.kept.count < KEPT_MAX {
            self.kept.push(full);
            return None;
        }
        let mut depot = DEPOTS[size as usize].lock();
        if depot.count < DEPOT_MAX {
            depot.push(full);
            return None;
        }
        drop(depot);
        // ORDERING: Relaxed; a hint.
        ARE_FULL[size as usize].store(true, Relaxed);
        Some(Surplus(full, size))
    }
}

/// A block: one that the processor has at hand, else a new one, for which the caller leaves the
/// runtime meanwhile.
#[inline]
pub(crate) fn take(inside: Inside, size: Size) -> (Inside, NonNull<u8>) {
    // SAFETY: this machine holds the processor, inside the runtime.
    match unsafe { inside.processor().core() }.blocks.take(size) {
        Some(block) => (inside, block),
        None => allocate_some(inside, size),
    }
}

/// New blocks: one for the caller, the others for the processor that it comes back to.
#[cold]
#[inline(never)]
fn allocate_some(inside: Inside, size: Size) -> (Inside, NonNull<u8>) {
    inside.leave();
    grow_heap();
    let block = allocate(size.layout());
    let mut more = Magazine::EMPTY;
    for _ in 1..NEW {
        // SAFETY: a size is not 0.
        let another = unsafe { alloc(size.layout()) };
        // What is not wanted at once may be refused.
        let Some(another) = NonNull::new(another) else { break };
        // SAFETY: allocated with the size's layout just now.
        unsafe { more.push(another) };
    }
    let inside = Inside::enter_on_goroutine();
    // SAFETY: this machine holds the processor, inside the runtime.
    unsafe { inside.processor().core() }.blocks.load(more, size);
    (inside, block)
}

/// Makes malloc's heap large enough for what comes next. A heap of a thread that is not the main one
/// grows by single pages otherwise, with an `mprotect` for each, which was a seventh of the time of a
/// million tasks.
fn grow_heap() {
    let mut room = Vec::<u8>::new();
    // Where there is no room for that there may be for a block.
    let _ = room.try_reserve_exact(GROWTH);
    drop(std::hint::black_box(room));
}

/// As [`allocate`], from inside the runtime, which is left meanwhile.
#[cold]
#[inline(never)]
pub(crate) fn allocate_outside(inside: Inside, layout: Layout) -> (Inside, NonNull<u8>) {
    inside.leave();
    let block = allocate(layout);
    (Inside::enter_on_goroutine(), block)
}

/// Memory from the global allocator. User context.
#[inline]
pub(crate) fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: tasks have a header, so the size is not 0.
    let block = unsafe { alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives a block back: to the caller's processor, if it is a goroutine. User context.
///
/// # Safety
/// * `block` came from [`take`] with `size`, or from [`allocate`] with its layout, and nobody uses
///   it.
#[inline]
pub(crate) unsafe fn free(block: NonNull<u8>, size: Size) {
    // ORDERING: Relaxed; a hint.
    let is_full = ARE_FULL[size as usize].load(Relaxed);
    let inside = if is_full { None } else { Inside::enter() };
    let Some(inside) = inside else {
        // SAFETY: by the caller.
        return unsafe { dealloc(block.as_ptr(), size.layout()) };
    };
    // SAFETY: this machine holds the processor, inside the runtime.
    let blocks = &mut unsafe { inside.processor().core() }.blocks;
    // SAFETY: by the caller.
    let surplus = unsafe { blocks.give(block, size) };
    inside.leave();
    if let Some(surplus) = surplus {
        surplus.free();
    }
}

/// What is in the depots goes back to the allocator. User context.
pub(crate) fn give_back() {
    for size in Size::ALL {
        // Whoever was stopped with the lock in hand would stop everybody.
        let no_preempt = NoPreempt::new();
        let mut all = std::mem::replace(&mut *DEPOTS[size as usize].lock(), Stack::EMPTY);
        // ORDERING: Relaxed; a hint.
        ARE_FULL[size as usize].store(false, Relaxed);
        drop(no_preempt);
        while let Some(magazine) = all.pop() {
            magazine.free(size);
        }
    }
}

#[cfg(test)]
mod tests;
