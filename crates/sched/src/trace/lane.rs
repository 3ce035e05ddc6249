//! Where one thread at a time writes events.
//!
//! Each machine has a lane, written by its own thread inside the runtime (and once, while it is known
//! to sleep in the kernel, by whoever takes its processor: see [`Lane::lend`]). Threads that are no
//! machines, or have no processor, share a few more.
//!
//! The protocol between a writer and the collector, who ends a generation:
//!
//! * Writer: W1 `section` odd; W2 a light barrier; W3 read the generation, write into a chunk of it;
//!   W4 `section` even, Release.
//! * Collector: C1 the next generation; C2 a heavy barrier; C3 wait until `section` is even or has
//!   changed; C4 take chunks of the old generation, under `flips`.
//!
//! If W1 comes before C2 the collector sees the section and waits for its end; if after, W3 reads the
//! next generation, and the writer leaves the old chunk alone but for giving it away under `flips`. It
//! knows by a mark in the lane's pointer which generation the chunk is of: the collector may have taken
//! it meanwhile, and others may use its memory.
//!
//! The model is `tests/loom_trace.rs`.

use super::chunk::{self, Chunk, EVENT_ROOM, Kind, Owned, TEXT_ROOM};
use super::clock;
use super::{GENERATION, overrun};
use crate::rt::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Lock, barrier, compiler_fence,
    const_unless_modelled, fence, give_way, yield_now,
};
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// A place to write events.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Odd while somebody writes.
    section: AtomicU32,
    /// With the lowest bits of its generation in the address, see [`mark`].
    chunk: AtomicPtr<Chunk>,
    /// Held while the chunk is exchanged.
    flips: Lock<()>,
    /// Whether the machine's goroutine is in a call, as far as the trace says. Written by: its thread;
    /// the borrower; whoever starts a trace, under `calls`.
    in_call: AtomicBool,
    /// Held where a machine without a processor gives its goroutine up.
    pub(super) calls: Lock<()>,
    /// The taker of the machine's processor writes here, or may be about to.
    is_lent: AtomicBool,
    /// Why the machine's goroutine is about to give way. Its thread only.
    why: AtomicU8,
    /// What is written here is not for everybody.
    is_apart: bool,
}

/// The right to write into a lane, in one generation.
pub(super) struct Section<'a> {
    lane: &'a Lane,
    /// The lane's chunk, which is of this generation. Nobody else uses it before the section has ended
    /// (the protocol).
    chunk: NonNull<Chunk>,
    pub(super) generation: u64,
    thread: u64,
    pub(super) now: u64,
}

impl Lane {
    const_unless_modelled! {
        pub(crate) fn new() -> Lane {
            Lane {
                section: AtomicU32::new(0),
                chunk: AtomicPtr::new(ptr::null_mut()),
                flips: Lock::new(()),
                in_call: AtomicBool::new(false),
                calls: Lock::new(()),
                is_lent: AtomicBool::new(false),
                why: AtomicU8::new(0),
                is_apart: false,
            }
        }
    }

    const_unless_modelled! {
        /// One whose chunks are collected apart from the others.
        pub(crate) fn apart() -> Lane {
            Lane { is_apart: true, ..Lane::new() }
        }
    }

    /// Puts a chunk among the full ones; true: there are many.
    fn put(&self, chunk: Owned) -> bool {
        if self.is_apart {
            chunk::put_apart(chunk);
            return false;
        }
        chunk::put_full(chunk)
    }

    /// Begins to write for `thread`, if a trace is on. One at a time.
    #[inline(always)]
    pub(super) fn enter(&self, thread: u64) -> Option<Section<'_>> {
        // ORDERING: W1. Relaxed for the load: one writer. Release: a collector that waits for the last
        // section's end may see this instead of that end, and pairs with this then.
        self.section.store(self.section.load(Relaxed).wrapping_add(1), Release);
        if barrier::is_asymmetric() {
            // ORDERING: W2; the CPU's part is C2.
            compiler_fence(SeqCst);
        } else {
            // ORDERING: W2; pairs with the fence of `next_generation`.
            fence(SeqCst);
        }
        // ORDERING: Relaxed: whoever comes after an event, by way of its goroutine, reads the same
        // generation or a later one (coherence).
        let generation = u64::from(GENERATION.load(Relaxed));
        if generation == 0 {
            self.leave();
            return None;
        }
        let now = clock::now();
        let chunk =
            self.chunk_of(generation).or_else(|| self.flip_or_leave(generation, thread, now))?;
        Some(Section { lane: self, chunk, generation, thread, now })
    }

    /// Begins to write as a part of `section`, which holds the generation open: the collector waits for
    /// its end, so there is no section of its own. One at a time.
    pub(super) fn enter_within(
        &self,
        section: &Section<'_>,
        thread: u64,
    ) -> Option<ManuallyDrop<Section<'_>>> {
        let (generation, now) = (section.generation, section.now);
        let held = self.chunk_of(generation);
        let chunk = held.or_else(|| self.flip(generation, thread, now))?;
        Some(ManuallyDrop::new(Section { lane: self, chunk, generation, thread, now }))
    }

    #[cold]
    #[inline(never)]
    fn flip_or_leave(&self, generation: u64, thread: u64, now: u64) -> Option<NonNull<Chunk>> {
        let chunk = self.flip(generation, thread, now);
        if chunk.is_none() {
            self.leave();
        }
        chunk
    }

    /// Its chunk, if it is of that generation.
    #[inline(always)]
    fn chunk_of(&self, generation: u64) -> Option<NonNull<Chunk>> {
        // ORDERING: Acquire pairs with `flip`: the memory may be another thread's from before.
        let held = self.chunk.load(Acquire);
        let chunk = NonNull::new(unmark(held))?;
        (held.addr() & MARK == generation as usize & MARK).then_some(chunk)
    }

    #[inline(always)]
    fn leave(&self) {
        // ORDERING: W4; Release pairs with `wait_for_writer`. Relaxed for the load, as in `enter`.
        self.section.store(self.section.load(Relaxed).wrapping_add(1), Release);
    }

    /// C3. For the collector, after C1 and C2.
    pub(super) fn wait_for_writer(&self) {
        // ORDERING: Acquire pairs with `leave`, or with the next `enter`.
        let seen = self.section.load(Acquire);
        while seen % 2 == 1 && self.section.load(Acquire) == seen {
            yield_now();
        }
    }

    /// C4: puts what was written in generations before `next` among the full chunks. The thread of a
    /// machine does so before its end, too, with everything.
    pub(crate) fn flush(&self, next: u64) {
        let _alone = self.flips.lock();
        // ORDERING: Acquire pairs with `flip`.
        let held = unmark(self.chunk.load(Acquire));
        let Some(chunk) = NonNull::new(held) else { return };
        // SAFETY: the lane's, under the lock; the head was written before the chunk was published.
        if unsafe { Chunk::generation(chunk) } < next {
            // ORDERING: Release, as in `flip`.
            self.chunk.store(ptr::null_mut(), Release);
            // SAFETY: by the protocol its writer leaves it alone, and the lane has it no more.
            let chunk = unsafe { Owned::from_raw(held) };
            chunk.map(|chunk| self.put(chunk));
        }
    }

    /// Whether the trace has the machine's goroutine in a call.
    pub(super) fn is_in_call(&self) -> bool {
        // ORDERING: Relaxed; ordered by what orders the writers.
        self.in_call.load(Relaxed)
    }

    pub(super) fn set_in_call(&self, in_call: bool) {
        // ORDERING: Relaxed; as above.
        self.in_call.store(in_call, Relaxed);
    }

    /// Before the processor of a machine that sleeps in the kernel is taken: its thread will wait for
    /// [`Lane::take_back`] before it writes.
    pub(crate) fn lend(&self) {
        // ORDERING: Relaxed; published by the taking.
        self.is_lent.store(true, Relaxed);
    }

    /// Ends [`Lane::lend`].
    pub(crate) fn take_back(&self) {
        // ORDERING: Release pairs with `wait_for_borrower`.
        self.is_lent.store(false, Release);
    }

    /// The machine has seen that its processor is gone. Its thread's first act then.
    pub(crate) fn wait_for_borrower(&self) {
        // ORDERING: Acquire pairs with `take_back`.
        while self.is_lent.load(Acquire) {
            give_way();
        }
    }

    /// Says why the goroutine is about to give way.
    pub(crate) fn set_why(&self, why: u8) {
        // ORDERING: Relaxed; one thread.
        self.why.store(why, Relaxed);
    }

    #[inline]
    pub(super) fn take_why(&self) -> u8 {
        // ORDERING: Relaxed for both; one thread, so no exchange is needed.
        let why = self.why.load(Relaxed);
        if why != 0 {
            self.why.store(0, Relaxed);
        }
        why
    }
}

impl Section<'_> {
    /// Goes on in `generation`, which has begun since the section did. The collector waits for the section
    /// still, so no other one follows meanwhile. False: there is no memory, and the trace has ended.
    #[cold]
    pub(super) fn go_on_in(&mut self, generation: u64) -> bool {
        self.now = clock::now();
        let Some(chunk) = self.lane.flip(generation, self.thread, self.now) else { return false };
        (self.chunk, self.generation) = (chunk, generation);
        true
    }

    /// Writes an event.
    #[inline(never)]
    pub(super) fn put<const N: usize>(&mut self, kind: Kind, args: &[u64; N]) {
        self.put_here(kind, args);
    }

    /// As [`put`](Section::put), in the caller's code: for events that are many.
    #[inline(always)]
    pub(super) fn put_here<const N: usize>(&mut self, kind: Kind, args: &[u64; N]) {
        let now = self.now;
        if let Some(chunk) = self.chunk_with_room(EVENT_ROOM) {
            chunk.put(kind, now, args);
        }
    }

    /// As [`put_here`](Section::put_here), right after another event of this section: at its time.
    #[inline(always)]
    pub(super) fn put_along<const N: usize>(&mut self, kind: Kind, args: &[u64; N]) {
        if let Some(chunk) = self.chunk_with_room(EVENT_ROOM) {
            chunk.put_along(kind, args);
        }
    }

    /// As [`put`](Section::put), where the number of arguments depends.
    pub(super) fn put_slice(&mut self, kind: Kind, args: &[u64]) {
        let now = self.now;
        if let Some(chunk) = self.chunk_with_room(EVENT_ROOM) {
            chunk.put_slice(kind, now, args);
        }
    }

    /// Writes a string under a number of its own.
    pub(super) fn put_string(&mut self, id: u64, text: &str) {
        if let Some(chunk) = self.chunk_with_room(TEXT_ROOM) {
            chunk.put_string(id, text);
        }
    }

    #[inline(always)]
    fn chunk_with_room(&mut self, room: usize) -> Option<&mut Chunk> {
        // SAFETY: the lane's chunk, of which this writer is the only user while the generation is
        // its own (the protocol).
        if !unsafe { self.chunk.as_ref() }.has_room(room) {
            // Without one, what comes now is lost, and what comes later.
            self.chunk = self.lane.flip(self.generation, self.thread, self.now)?;
        }
        // SAFETY: as above.
        Some(unsafe { self.chunk.as_mut() })
    }

    /// Calls `f`, which is seldom, with a copy, so that the section itself can stay in registers.
    #[inline(always)]
    pub(super) fn aside<R>(&mut self, f: impl FnOnce(&mut Section<'_>) -> R) -> R {
        let mut copy = ManuallyDrop::new(Section { ..*self });
        let returned = f(&mut copy);
        self.chunk = copy.chunk;
        returned
    }
}

impl Lane {
    /// Gives the lane's chunk away and takes an empty one. By the writer, in a section, unless there is no
    /// memory: then the trace has ended.
    #[cold]
    #[inline(never)]
    fn flip(&self, generation: u64, thread: u64, now: u64) -> Option<NonNull<Chunk>> {
        let _alone = self.flips.lock();
        let Some(new) = chunk::take(generation, thread, now) else {
            overrun(true);
            return None;
        };
        let new = new.into_raw();
        // ORDERING: Relaxed for this one, under the lock; Release publishes the new one's head.
        let old = unmark(self.chunk.load(Relaxed));
        self.chunk.store(mark(new, generation), Release);
        // SAFETY: it was the lane's, which has it no more.
        if unsafe { Owned::from_raw(old) }.is_some_and(|chunk| self.put(chunk)) {
            overrun(false);
        }
        NonNull::new(new)
    }
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lane.leave();
    }
}

/// Chunks lie at multiples of a page.
const MARK: usize = 0xfff;

/// The address of a chunk with the lowest bits of its generation. Of one 4,096 generations older no
/// lane has a chunk.
fn mark(chunk: *mut Chunk, generation: u64) -> *mut Chunk {
    if chunk.is_null() { chunk } else { chunk.map_addr(|at| at | generation as usize & MARK) }
}

fn unmark(held: *mut Chunk) -> *mut Chunk {
    held.map_addr(|at| at & !MARK)
}
