//! A global allocator whose goroutines are not stopped inside it.

use crate::no_preempt::NoPreempt;
use std::alloc::{GlobalAlloc, Layout};

/// Wraps a global allocator that is linked into the executable (jemalloc, mimalloc, snmalloc, one
/// of your own), so that no goroutine is stopped by signal while it holds one of its locks.
///
/// It is not needed for correctness: a stopped goroutine gets its turn again, and then lets go of
/// the lock. But until then everybody who allocates waits, each on a thread of its own, which with
/// many allocating goroutines makes a program several times slower. libc's `malloc`
/// ([`System`](std::alloc::System)) is recognised by its addresses and needs no wrapper.
///
/// Go's runtime allocates itself and has no counterpart. Costs about a nanosecond a call on a
/// goroutine.
///
/// ```
/// use std::alloc::System; // in place of an allocator that needs it
///
/// #[global_allocator]
/// static ALLOCATOR: gosched_sched::Alloc<System> = gosched_sched::Alloc::new(System);
///
/// let text = String::from("allocated through it");
/// assert_eq!(text.len(), 20);
/// ```
#[derive(Debug, Default)]
pub struct Alloc<A>(A);

impl<A> Alloc<A> {
    /// Wraps `allocator`.
    pub const fn new(allocator: A) -> Alloc<A> {
        Alloc(allocator)
    }

    /// The allocator inside, for what else it can do.
    pub const fn inner(&self) -> &A {
        &self.0
    }
}

// SAFETY: every call goes to the allocator inside, which keeps the contract. What is done around
// it neither allocates nor unwinds: a count in the goroutine's descriptor, and, if somebody asked
// for it meanwhile, a yield, in which other goroutines may allocate.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Alloc<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _no_preempt = NoPreempt::new();
        // SAFETY: by the caller.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let _no_preempt = NoPreempt::new();
        // SAFETY: by the caller.
        unsafe { self.0.dealloc(ptr, layout) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let _no_preempt = NoPreempt::new();
        // SAFETY: by the caller.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let _no_preempt = NoPreempt::new();
        // SAFETY: by the caller.
        unsafe { self.0.realloc(ptr, layout, new_size) }
    }
}
