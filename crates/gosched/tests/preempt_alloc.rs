//! A global allocator of the program's own, in which no goroutine is stopped.

use gosched::{go, run, runtime};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// libc's, with a long detour through this executable, where addresses tell nothing.
struct Slow;

/// The goroutine inside, plus one for number 0; 0 if there is none.
static INSIDE: AtomicU64 = AtomicU64::new(0);
static FOUND_OTHERS: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: libc's allocator does the work.
unsafe impl GlobalAlloc for Slow {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(g) = runtime::goroutine_id() {
            CALLS.fetch_add(1, SeqCst);
            if INSIDE.swap(g + 1, SeqCst) != 0 {
                FOUND_OTHERS.fetch_add(1, SeqCst);
            }
            (0..500).for_each(|_| std::hint::spin_loop());
            INSIDE.store(0, SeqCst);
        }
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) };
    }
}

/// As the global allocator it is wrapped only if the test says so.
struct MaybeWrapped {
    wrapped: gosched::Alloc<Slow>,
}

static IS_WRAPPED: AtomicBool = AtomicBool::new(true);

// SAFETY: libc's allocator does the work.
unsafe impl GlobalAlloc for MaybeWrapped {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_WRAPPED.load(SeqCst) {
            // SAFETY: by the caller.
            unsafe { self.wrapped.alloc(layout) }
        } else {
            // SAFETY: by the caller.
            unsafe { Slow.alloc(layout) }
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: by the caller.
        unsafe { self.wrapped.dealloc(ptr, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: MaybeWrapped = MaybeWrapped { wrapped: gosched::Alloc::new(Slow) };

/// Two goroutines allocate on one processor until `until` says so; how often one of them found the
/// other stopped inside.
fn found_others(until: fn() -> bool) -> u64 {
    let before = FOUND_OTHERS.load(SeqCst);
    run(move || {
        let allocate = move || {
            let mut all = Vec::new();
            while !until() {
                all.push(Box::new(7_u8));
                if all.len() > 100 {
                    all.clear();
                }
            }
        };
        let other = go(allocate);
        allocate();
        other.join().unwrap();
    });
    FOUND_OTHERS.load(SeqCst) - before
}

#[test]
fn goroutines_are_stopped_in_it_only_without_the_wrapper() {
    gosched::Config::new().procs(1).slice(Duration::from_micros(100)).start().unwrap();
    IS_WRAPPED.store(false, SeqCst);
    let without = found_others(|| FOUND_OTHERS.load(SeqCst) >= 10);
    assert!(without >= 10, "the test sees nothing");
    IS_WRAPPED.store(true, SeqCst);
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    REFUSED.store(runtime::preemptions().flagged, SeqCst);
    let with = found_others(|| runtime::preemptions().flagged > REFUSED.load(SeqCst) + 200);
    assert_eq!(with, 0, "of {} calls", CALLS.load(SeqCst));
}
