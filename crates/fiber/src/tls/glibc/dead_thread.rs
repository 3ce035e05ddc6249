//! Threads that end without libc noticing, so that their control blocks stay valid for ever.
//!
//! The thread is created on memory of ours by `pthread_create`, which initialises everything that
//! a thread needs; its start routine then ends by a raw `exit` system call. libc never frees the
//! block, keeps it in its list of threads, and (a user's stack) never touches its memory again.
//! Public interfaces only; about 80 us each.
//!
//! A set*id call counts the threads that it could signal and waits until as many have answered. A
//! thread that dies with the signal pending would make it wait for ever (seen under a loop of
//! `setgid`). So the thread takes its kernel number out of its control block first, goes on
//! answering until no call that may have read the number is left, and only then ends.

use super::robust::Robust;
use super::symbols::Plain;
use super::untouched::Untouched;
use super::{Area, list};
use crate::signals;
use gosched_base::os;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// What a dead thread left behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadThread {
    /// Its control block, which is its `pthread_t` and was its FS.
    pub(super) tcb: usize,
    /// The lowest stack address it is known to have used; below is free.
    pub(super) stack_used: usize,
    /// The kernel's number that it had.
    tid: i32,
    /// Offset of the byte in the control block that says whether a pthread key was ever set.
    pub(super) specific_used: Option<usize>,
    /// Offset of the only 32-bit word in the control block that held its number.
    pub(super) tid_offset: Option<usize>,
    /// Offset from FS of the word that became the malloc cache's pointer.
    pub(super) tcache: Option<isize>,
    /// Offset of the head of its list of robust mutexes.
    pub(super) robust: Option<usize>,
    /// Where it shows that libc has nothing to take back.
    pub(super) untouched: Untouched,
}

/// What a thread does before it ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Finds fields by watching them change.
    Learn {
        /// Bytes of the control block to look at.
        tcb_bytes: usize,
        /// Bytes below the control block to look at.
        below: usize,
        /// Where the number should be, by the debuggers' tables.
        tid_expected: Option<usize>,
        /// libc's `__call_tls_dtors`.
        call_tls_dtors: Option<Plain>,
    },
    /// Nothing; its number lies at this offset.
    Die { tid_offset: usize },
}

/// What the creator tells the thread, and the thread the creator.
struct Errand {
    task: Task,
    /// Written by: the thread, before `READY`. Read by: the creator, after it.
    found: UnsafeCell<DeadThread>,
    stage: AtomicU32,
}

/// The thread is at work.
const WORKING: u32 = 0;
/// The thread has found what it was to find, and waits.
const READY: u32 = 1;
/// The thread may end.
const END: u32 = 2;

/// Makes a dead thread whose stack, and whose block at its top, is `memory`.
///
/// On an error no thread was made, and the memory is as it was.
pub(super) fn make(
    area: Area,
    memory: *mut u8,
    bytes: usize,
    task: Task,
) -> Result<DeadThread, i32> {
    let errand = Errand {
        task,
        found: UnsafeCell::new(DeadThread::default()),
        stage: AtomicU32::new(WORKING),
    };
    create(memory, bytes, &errand)?;
    wait_for(&errand.stage, READY);
    // SAFETY: the thread does not touch it after READY.
    let found = unsafe { *errand.found.get() };
    // If this fails, a set*id call of just now may hang; there is nothing else to be done.
    let _ = list::wait_for_walkers(area);
    advance(&errand.stage, END);
    wait_until_gone(&found);
    Ok(found)
}

fn wait_for(stage: &AtomicU32, wanted: u32) {
    loop {
        // ORDERING: Acquire pairs with `advance`; makes what was found before visible.
        let now = stage.load(Acquire);
        if now == wanted {
            return;
        }
        let _ = os::futex_wait(stage, now, None);
    }
}

fn advance(stage: &AtomicU32, to: u32) {
    let word: *const AtomicU32 = stage;
    // ORDERING: Release pairs with `wait_for`.
    stage.store(to, Release);
    os::futex_wake(word, 1);
}

fn create(memory: *mut u8, bytes: usize, errand: &Errand) -> Result<(), i32> {
    list::with_stack(memory, bytes, |attributes| {
        // Detached: `pthread_join` on such a block then fails with EINVAL instead of waiting.
        let detached = libc::PTHREAD_CREATE_DETACHED;
        // SAFETY: the attributes are initialised; the value is one of two.
        unsafe { libc::pthread_attr_setdetachstate(attributes, detached) };
        let mut thread = 0;
        let argument = (&raw const *errand).cast_mut().cast::<c_void>();
        // SAFETY: `errand` outlives the thread: `make` waits for its end.
        let made = unsafe { libc::pthread_create(&mut thread, attributes, start, argument) };
        if made == 0 { Ok(()) } else { Err(made) }
    })
}

/// Returns when the kernel has let go of the thread's stack and control block: it then clears the
/// word that held the number, or where that has moved, forgets the number.
fn wait_until_gone(found: &DeadThread) {
    let cleared = || {
        found.tid_offset.is_some_and(|at| {
            // SAFETY: a word of the block, which is never freed.
            unsafe { ((found.tcb + at) as *const i32).read_volatile() == 0 }
        })
    };
    while !cleared() && os::is_thread(found.tid) {
        std::thread::yield_now();
    }
}

extern "C" fn start(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the creator keeps the errand alive until this thread is gone.
    let errand = unsafe { &*argument.cast::<Errand>() };
    // Not libc's own signals: a set*id call may be waiting for this thread.
    signals::block_for_good();
    let mut found = DeadThread {
        // SAFETY: pthread_self has no preconditions.
        tcb: unsafe { libc::pthread_self() } as usize,
        stack_used: crate::arch::stack_pointer(),
        tid: os::gettid(),
        ..DeadThread::default()
    };
    match errand.task {
        Task::Learn { tcb_bytes, below, tid_expected, call_tls_dtors } => {
            learn_fields(&mut found, tcb_bytes, tid_expected);
            found.tcache = watch_malloc(found.tcb, below);
            found.untouched = Untouched::learn(found.tcb, below, call_tls_dtors);
        }
        Task::Die { tid_offset } => found.tid_offset = Some(tid_offset),
    }
    if let Some(at) = found.tid_offset {
        // SAFETY: the number's place in this thread's own block. No thread has this number, so
        // that libc's attempts to signal it fail.
        unsafe { ((found.tcb + at) as *mut i32).write_volatile(NOBODY) };
    }
    // SAFETY: the creator does not read it before READY.
    unsafe { *errand.found.get() = found };
    advance(&errand.stage, READY);
    wait_for(&errand.stage, END);
    loop {
        // SAFETY: ends this kernel thread and nothing else; libc does not hear of it.
        let _ = unsafe { os::syscall(libc::SYS_exit, [0; 6]) };
    }
}

/// A number above the largest that the kernel gives (2^22).
const NOBODY: i32 = 1 << 29;

/// In a frame of its own: `start`'s lies above the stack of whoever uses the block for ever, and the
/// snapshots of 4 KiB each would make it 16 KiB larger.
#[inline(never)]
fn learn_fields(found: &mut DeadThread, bytes: usize, tid_expected: Option<usize>) {
    found.tid_offset = tid_offset(found, bytes, tid_expected);
    found.specific_used = watch_key(found.tcb, bytes);
    found.robust = Robust::of_caller(found.tcb, bytes);
}

/// Where the control block holds the thread's number.
fn tid_offset(found: &DeadThread, bytes: usize, expected: Option<usize>) -> Option<usize> {
    let word = |offset: usize| {
        // SAFETY: inside this thread's control block, which is aligned to 64.
        unsafe { ((found.tcb + offset) as *const i32).read_volatile() }
    };
    only_place((0..bytes).step_by(4).filter(|at| word(*at) == found.tid), expected)
}

/// The expected place if it is among `places`, else the only one there is. Numbers around 0x5555
/// and 0x7ffd are also the upper halves of addresses, so there may be several.
fn only_place(places: impl Iterator<Item = usize>, expected: Option<usize>) -> Option<usize> {
    let mut first = None;
    let mut several = false;
    for place in places {
        if Some(place) == expected {
            return expected;
        }
        several |= first.replace(place).is_some();
    }
    first.filter(|_| !several && expected.is_none())
}

/// Sets a pthread key and sees which lone byte outside the values turned from 0 to 1.
fn watch_key(tcb: usize, bytes: usize) -> Option<usize> {
    let mut key = 0;
    // SAFETY: makes a key without a destructor.
    if unsafe { libc::pthread_key_create(&mut key, None) } != 0 {
        return None;
    }
    let before = Snapshot::take(tcb, bytes);
    let value = 0x5a5a_usize as *const c_void;
    // SAFETY: the key is ours.
    let set = unsafe { libc::pthread_setspecific(key, value) };
    let after = Snapshot::take(tcb, bytes);
    // SAFETY: the key is ours.
    unsafe { libc::pthread_setspecific(key, std::ptr::null()) };
    // SAFETY: the key is ours and not used again.
    unsafe { libc::pthread_key_delete(key) };
    // The value's slot is { sequence number, value }; a first sequence number is 1 as well.
    let slot = (0..bytes / 8).map(|i| i * 8).find(|&i| after.word(i) == value as usize);
    let in_slot = |i: usize| slot.is_some_and(|s| (s - 8..s + 8).contains(&i));
    let mut flags = (0..bytes).filter(|&i| {
        before.byte(i) == 0 && after.byte(i) == 1 && after.is_lone_byte(i) && !in_slot(i)
    });
    if let Some(slot) = slot {
        // SAFETY: the sequence number beside the value; the template must not keep it.
        unsafe { ((tcb + slot - 8) as *mut usize).write_volatile(before.word(slot - 8)) };
    }
    let flag = flags.next().filter(|_| flags.next().is_none() && set == 0)?;
    // SAFETY: inside this thread's control block; what was 0 before is 0 again.
    unsafe { ((tcb + flag) as *mut u8).write_volatile(0) };
    Some(flag)
}

/// Allocates for the first time on this thread and finds the word below FS that then points at a
/// heap chunk with the size of a malloc cache (0x290 bytes in glibc 2.30 and later).
#[inline(never)]
fn watch_malloc(tcb: usize, below: usize) -> Option<isize> {
    let from = tcb - below;
    let before = Snapshot::take(from, below);
    // SAFETY: allocates; not inside the runtime, on a thread of ours.
    let p = unsafe { libc::malloc(64) };
    let after = Snapshot::take(from, below);
    let found = (0..below / 8).map(|i| i * 8).find(|&i| {
        let (old, new) = (before.word(i), after.word(i));
        let is_near = new.is_multiple_of(16) && new.abs_diff(p as usize) < 1 << 16;
        if old == new || !is_near {
            return false;
        }
        // SAFETY: it is close to the chunk just allocated, in the same heap; the word before a chunk
        // is its size.
        let size = unsafe { ((new - 8) as *const usize).read() };
        size & !7 == TCACHE_CHUNK
    });
    // SAFETY: allocated above.
    unsafe { libc::free(p) };
    found.map(|i| i as isize - below as isize)
}

/// malloc's chunk that holds a `tcache_perthread_struct`: 64 counters, 64 pointers, a header.
pub(super) const TCACHE_CHUNK: usize = 0x290;

/// A copy of up to 4 KiB of memory, on the stack: this thread must not disturb what it watches.
pub(super) struct Snapshot {
    bytes: [u8; 4096],
}

impl Snapshot {
    pub(super) fn take(from: usize, len: usize) -> Snapshot {
        let mut copy = Snapshot { bytes: [0; 4096] };
        for (i, byte) in copy.bytes.iter_mut().enumerate().take(len) {
            // SAFETY: the caller names memory of this thread's own block.
            *byte = unsafe { ((from + i) as *const u8).read_volatile() };
        }
        copy
    }

    fn byte(&self, i: usize) -> u8 {
        self.bytes[i]
    }

    pub(super) fn word(&self, i: usize) -> usize {
        usize::from_ne_bytes(self.bytes[i..i + 8].try_into().unwrap_or([0; 8]))
    }

    /// Whether the byte is not part of a larger number: its neighbours in the 32-bit word are 0
    /// or 1 themselves.
    fn is_lone_byte(&self, i: usize) -> bool {
        let word = i & !3;
        self.bytes[word..word + 4].iter().all(|b| *b <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::only_place;

    #[test]
    fn a_number_that_also_occurs_elsewhere_is_found_where_it_is_expected() {
        let at = |places: &[usize], expected| only_place(places.iter().copied(), expected);
        assert_eq!(at(&[720], None), Some(720));
        assert_eq!(at(&[720, 1684], None), None, "which?");
        assert_eq!(at(&[20, 720, 1684], Some(720)), Some(720));
        assert_eq!(at(&[20], Some(720)), None, "the tables are wrong");
        assert_eq!(at(&[], Some(720)), None);
    }
}
