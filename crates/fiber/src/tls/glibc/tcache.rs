//! Emptying the malloc cache of a block that ends for good.
//!
//! glibc keeps up to seven free chunks of each of 64 sizes in a cache per thread and exports no
//! way to free it. The pointer's place was learned from a dead thread. Here every cached chunk is
//! taken out with the block loaded, and freed, with the cache itself, under the caller's.
//!
//! The counters at the cache's start (16-bit since 2.30) say what there is, so that no chunk comes
//! from anywhere else.

use std::ffi::c_void;

const CLASSES: usize = 64;
/// glibc's default `tcache_count` and what its tunable may raise it to is larger; the counters
/// decide, this only bounds one pass.
const PASS: usize = 64;
/// Size of the first class's user memory and the step to the next.
const FIRST: usize = 24;
const STEP: usize = 16;

/// Frees what the malloc cache of the block at `tcb` holds, and the cache.
///
/// # Safety
/// * Nothing runs on that block, and it is not used again.
/// * `offset` is where libc keeps the cache's pointer, relative to FS.
pub(super) unsafe fn drain(tcb: usize, offset: isize) {
    let slot = tcb.wrapping_add_signed(offset) as *mut *mut c_void;
    // SAFETY: a word of the block's libc part.
    let cache = unsafe { slot.read() };
    if cache.is_null() || !is_cache(cache) {
        return;
    }
    for class in 0..CLASSES {
        // SAFETY: by the caller; the counters are the cache's own.
        unsafe { drain_class(tcb, cache, class) };
    }
    // SAFETY: as above. The block must not find the freed cache.
    unsafe { slot.write(std::ptr::null_mut()) };
    // SAFETY: the cache is an ordinary chunk of the heap that nobody refers to now.
    unsafe { libc::free(cache) };
}

/// # Safety
/// * As for `drain`; `cache` is the block's.
unsafe fn drain_class(tcb: usize, cache: *mut c_void, class: usize) {
    let counter = cache.cast::<u16>().wrapping_add(class);
    let mut chunks = [std::ptr::null_mut(); PASS];
    loop {
        // SAFETY: the first 64 u16 of a cache.
        let count = usize::from(unsafe { counter.read() }).min(PASS);
        if count == 0 {
            return;
        }
        let take = || {
            for chunk in &mut chunks[..count] {
                // SAFETY: allocates; the counter says that a cached chunk serves it.
                *chunk = unsafe { libc::malloc(FIRST + class * STEP) };
            }
        };
        // SAFETY: a complete block that nobody uses; malloc needs nothing else of it.
        unsafe { super::super::on_block(tcb, take) };
        for chunk in &chunks[..count] {
            // SAFETY: allocated above.
            unsafe { libc::free(*chunk) };
        }
    }
}

/// Whether the chunk has a cache's size (2.30 to 2.41; another size is left alone).
fn is_cache(cache: *mut c_void) -> bool {
    let size = cache.cast::<usize>().wrapping_sub(1);
    // SAFETY: the word before a heap chunk's memory is its size.
    unsafe { size.read() & !7 == super::dead_thread::TCACHE_CHUNK }
}
