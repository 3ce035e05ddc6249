//! Where descriptors live: dense chunks of memory that are never freed.
//!
//! Made by bumping one index, so that plain threads need no lock for a new one, and kept for ever,
//! so that stale references stay harmless and a dump can walk them all. The memory of those that are
//! dead may go back to the system, see [`bare`].
//!
//! A descriptor is touched first when it is taken, so that a program of a few goroutines pays for a
//! few pages. From the second chunk on the kernel is asked for huge pages: many goroutines are
//! many, and each fault less is 1 us less. Not while pages that were given back are left: there were
//! many.

pub(crate) mod bare;

use crate::goroutine::{GRef, Goroutine};
use crate::names::Place;
use gosched_base::rt_abort;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Descriptors in a chunk: 2 MiB, a huge page, and as much address space for their names.
const CHUNK: usize = 16_384;
/// Chunks lie at multiples of their size, so that a descriptor's address tells its place.
const CHUNK_BYTES: usize = CHUNK * (size_of::<Goroutine>() + size_of::<Place>());
/// 67 million goroutines at once.
const CHUNKS: usize = 4096;

const _: () = assert!(CHUNK_BYTES.is_power_of_two() && CHUNK_BYTES == 4 << 20);

/// How far ahead lines are fetched: a few goroutines' time.
const AHEAD: usize = 8 * size_of::<Goroutine>();

static TABLE: [AtomicPtr<Goroutine>; CHUNKS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// A descriptor that was never used, dead. Lock-free.
pub(crate) fn fresh() -> GRef {
    // ORDERING: Relaxed; the index is unique, the chunk synchronises below.
    let index = USED.fetch_add(1, Relaxed);
    let slot = &TABLE[(index / CHUNK).min(CHUNKS - 1)];
    if index >= CHUNKS * CHUNK {
        rt_abort!("more than {} goroutines at once", CHUNKS * CHUNK);
    }
    // ORDERING: Acquire pairs with `install`; makes the chunk's initial contents visible.
    let mut chunk = slot.load(Acquire);
    if chunk.is_null() {
        chunk = install(slot, index >= CHUNK && !bare::are_some());
    }
    // SAFETY: inside the chunk. Nobody else has it, and zeroes are valid in every field.
    let g = unsafe { GRef::from_address(chunk.wrapping_add(index % CHUNK)) };
    g.status.never_used();
    g.start_count_at(index);
    // The next ones, whose lines nobody has in a cache.
    gosched_base::prefetch(g.as_ptr().addr() + AHEAD);
    gosched_base::prefetch(g.as_ptr().addr() + AHEAD + 64);
    g
}

/// Maps a chunk; the first of several threads wins.
#[cold]
fn install(slot: &AtomicPtr<Goroutine>, with_huge_pages: bool) -> *mut Goroutine {
    let chunk = map_aligned(CHUNK_BYTES).cast::<Goroutine>();
    if with_huge_pages {
        // SAFETY: mapped above. Changes no contents; where it isn't known, pages stay small.
        unsafe { libc::madvise(chunk.cast(), CHUNK_BYTES / 2, libc::MADV_HUGEPAGE) };
    }
    // ORDERING: AcqRel pairs with the loads of the slot; publishes the mapping.
    match slot.compare_exchange(std::ptr::null_mut(), chunk, AcqRel, Acquire) {
        Ok(_) => chunk,
        Err(winner) => {
            // SAFETY: mapped above, published to nobody.
            unsafe { libc::munmap(chunk.cast(), CHUNK_BYTES) };
            winner
        }
    }
}

/// Zeroed memory for the process's life. Without malloc: callable inside the runtime.
pub(crate) fn map(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new private mapping.
    let p = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if p == libc::MAP_FAILED {
        rt_abort!("no memory: mmap of {bytes} bytes failed");
    }
    p.cast()
}

/// Makes a mapping larger; it may move. What is added is zeroed.
///
/// # Safety
/// * The bytes were mapped by [`map`], and nobody uses them at their old place afterwards.
pub(crate) unsafe fn remap(start: *mut u8, bytes: usize, new_bytes: usize) -> *mut u8 {
    // SAFETY: by the caller.
    let p = unsafe { libc::mremap(start.cast(), bytes, new_bytes, libc::MREMAP_MAYMOVE) };
    if p == libc::MAP_FAILED {
        rt_abort!("no memory: mremap to {new_bytes} bytes failed");
    }
    p.cast()
}

/// As [`map`], at a multiple of `bytes`, a power of two: maps twice as much and cuts it.
fn map_aligned(bytes: usize) -> *mut u8 {
    let whole = map(2 * bytes);
    let before = whole.align_offset(bytes);
    let start = whole.wrapping_add(before);
    // SAFETY: mapped above, published to nobody.
    unsafe { unmap(whole, before) };
    // SAFETY: as above.
    unsafe { unmap(start.wrapping_add(bytes), bytes - before) };
    start
}

/// # Safety
/// * The bytes were mapped by [`map`], and nobody uses them.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: by the caller.
        unsafe { libc::munmap(start.cast(), bytes) };
    }
}

/// Where the name of `g` lies.
pub(crate) fn name_of(g: GRef) -> &'static Place {
    let address = g.as_ptr().cast::<u8>();
    let offset = address.addr() % CHUNK_BYTES;
    let names = address.wrapping_sub(offset).wrapping_add(CHUNK * size_of::<Goroutine>());
    let place = names.cast::<Place>().wrapping_add(offset / size_of::<Goroutine>());
    // SAFETY: inside the chunk, zeroed by the kernel, never freed.
    unsafe { &*place }
}

/// Calls `f` for every descriptor ever made.
pub(crate) fn for_each(mut f: impl FnMut(GRef)) {
    // ORDERING: Relaxed; descriptors made meanwhile may be missed.
    let used = USED.load(Relaxed).min(CHUNKS * CHUNK);
    for index in 0..used {
        // ORDERING: Acquire as in `fresh`.
        let chunk = TABLE[index / CHUNK].load(Acquire);
        if let Some(g) = NonNull::new(chunk) {
            let g = g.as_ptr().wrapping_add(index % CHUNK);
            // SAFETY: inside the chunk.
            f(unsafe { GRef::from_address(g) });
        }
    }
}
